/* SPDX-License-Identifier: MIT */
/*
 * Shared by the parts of the writer: little-endian stores, and the framing of events and of the
 * log-file header.
 */
#ifndef EW_SOURCE_ETL_WRITER_LAYOUT_H
#define EW_SOURCE_ETL_WRITER_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "etl_writer.h"

enum {
    EW_ETL_BUFFER_HEADER_BYTES = 72,
    EW_ETL_MAX_EVENT_BYTES = UINT16_MAX,
    EW_ETL_MODE_COMPRESSED = 0x04000000,
};

static inline void ew_store_u16(uint8_t *p, uint16_t value)
{
    p[0] = (uint8_t)value;
    p[1] = (uint8_t)(value >> 8);
}

static inline void ew_store_u32(uint8_t *p, uint32_t value)
{
    ew_store_u16(p, (uint16_t)value);
    ew_store_u16(p + 2, (uint16_t)(value >> 16));
}

static inline void ew_store_u64(uint8_t *p, uint64_t value)
{
    ew_store_u32(p, (uint32_t)value);
    ew_store_u32(p + 4, (uint32_t)(value >> 32));
}

/*
 * Size of the event with its header, without padding; 0 if the header type is invalid. May be more
 * than the maximum event size.
 */
size_t ew_etl_event_size(const struct ew_etl_event *event);
/* Writes the event into the given number of bytes. number counts the messages of the session. */
void ew_etl_event_put(const struct ew_etl_event *event, size_t size, uint32_t number, uint8_t *out);

/* A config with every default filled in. */
struct ew_etl_writer_config ew_etl_config_filled(const struct ew_etl_writer_config *config);
/* Ticks of the session's clock in 100 ns. */
uint64_t ew_etl_ticks_to_100ns(const struct ew_etl_writer_config *config, uint64_t ticks);

/* The log-file header event with its names, in a block that the caller frees. ETWATCH_ENOMEM. */
int ew_etl_file_header_new(const struct ew_etl_writer_config *config, uint8_t **ret_bytes,
                           size_t *ret_size);

/* Values that are known only at the end. */
struct ew_etl_closing {
    int64_t end_filetime;
    uint32_t buffers_written, events_lost, buffers_lost;
};
/* Writes them into the header event. */
void ew_etl_file_header_close(uint8_t *event, uint32_t pointer_size,
                              const struct ew_etl_closing *closing);

#endif
