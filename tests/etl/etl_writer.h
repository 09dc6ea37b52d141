/* SPDX-License-Identifier: MIT */
/*
 * Writes .etl recordings: per-CPU buffers, every kind of event header, optional compression.
 *
 * The bytes go to a write function in file order; patching the header at the end (EndTime,
 * BuffersWritten, events lost) goes through `rewrite`, which may be NULL: the file then looks as if
 * it was never closed.
 */
#ifndef EW_SOURCE_ETL_WRITER_H
#define EW_SOURCE_ETL_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ew_etl_writer;

struct ew_etl_writer_config {
    uint32_t buffer_bytes;                 /* 0: 65536 */
    uint32_t cpu_count;                    /* 0: 1 */
    uint32_t pointer_size;                 /* 0: 8 */
    uint32_t os_major, os_minor, os_build; /* 0: 10.0.19045 */
    uint32_t clock;                        /* 0: 1, QPC */
    uint64_t perf_frequency;               /* 0: 10 MHz */
    uint64_t start_raw;                    /* time of the header event */
    int64_t start_filetime;                /* 0: 2026-01-01 */
    uint32_t log_file_mode;
    bool compress;  /* XPRESS; the mode bit and layout version follow */
    bool cpu_bytes; /* Windows 7 and earlier: 8-bit CPU numbers, no flag 0x20 */
    const char *session_name, *file_name; /* UTF-8; NULL: "etwatch" */
    void *ctx;
    int (*write)(void *ctx, const void *bytes, size_t len);
    int (*rewrite)(void *ctx, uint64_t offset, const void *bytes, size_t len); /* may be NULL */
};

/* One event to write. Fields that its header type does not have are ignored. */
struct ew_etl_event {
    uint8_t header_type; /* 1, 2 SYSTEM; 3, 4 COMPACT; 10, 20 FULL; 11, 21 INSTANCE; 16, 17
                            PERFINFO; 18, 19 EVENT_HEADER; 15 MESSAGE */
    uint8_t group, opcode, version, level, channel;
    uint16_t cpu;
    uint64_t t_raw;
    uint32_t pid, tid;
    const uint8_t *provider; /* 16 bytes as on disk */
    uint16_t id, task;
    uint64_t keyword;
    const uint8_t *activity; /* 16 bytes; NULL: zero */
    const void *extended;    /* whole items, each already framed and padded to 8 */
    uint32_t extended_size;
    uint32_t message_flags;   /* MESSAGE */
    const uint64_t *counters; /* PERFINFO: hardware counters of the CPU */
    uint8_t counter_count;    /* at most 7 */
    uint32_t kernel_ticks, user_ticks;
    const void *payload;
    uint32_t payload_size;
};

int ew_etl_writer_new(const struct ew_etl_writer_config *config, struct ew_etl_writer **ret_writer);
/*
 * Events of one CPU must be in time order; ETWATCH_EINVAL if not, or if the event fits no buffer.
 */
int ew_etl_write(struct ew_etl_writer *writer, const struct ew_etl_event *event);
/* Ends the buffer of this CPU here, with the given flags (2: events lost before it, …). */
int ew_etl_writer_end_buffer(struct ew_etl_writer *writer, uint16_t cpu, uint16_t flags);
/* Writes the open buffers and patches the header. The caller still has to free the writer. */
int ew_etl_writer_finish(struct ew_etl_writer *writer, uint64_t end_raw, uint32_t events_lost,
                         uint32_t buffers_lost);
void ew_etl_writer_free(struct ew_etl_writer *writer);

#endif
