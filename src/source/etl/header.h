/* SPDX-License-Identifier: MIT */
/* The header of a buffer, and the log-file header event in the first one. */
#ifndef EW_SOURCE_ETL_HEADER_H
#define EW_SOURCE_ETL_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/etl/reader.h"

enum {
    EW_ETL_HEADER_SIZE = 72,          /* of a buffer, in all versions */
    EW_ETL_BUFFER_MAX = 16 * 1048576, /* Windows' own maximum: 16384 KB */
    EW_ETL_EVENT_MAX = 65536,         /* sizes of events are 16 bits */
    EW_ETL_FLAG_LOST = 2 | 4,         /* events, buffers were lost before this buffer */
    EW_ETL_FLAG_BACKUP = 0x10,        /* of a real-time session, kept in a file */
    EW_ETL_FLAG_COMPRESSED = 0x40,
    EW_ETL_FLAG_HUFFMAN = 0x8000, /* ours: compressed with LZ77+Huffman */
    EW_ETL_TYPE_HEADER = 4,
    EW_ETL_MODE_CIRCULAR = 0x2,
    EW_ETL_MODE_COMPRESSED = 0x04000000,
};

struct ew_etl_buffer {
    uint32_t size;   /* on disk, with the header */
    uint32_t filled; /* with the header; of a compressed one: inflated */
    uint16_t cpu, logger, flags, type;
    uint64_t clock;                             /* kind in the low 3 bits, frequency */
    uint64_t reference_filetime, reference_raw; /* of real-time backups */
};

/* bytes has EW_ETL_HEADER_SIZE. Nothing is checked. */
void ew_etl_buffer_parse(const uint8_t *bytes, struct ew_etl_buffer *ret_buffer);
/* NULL if the buffer can be read; else what is wrong with its header. */
const char *ew_etl_buffer_problem(const struct ew_etl_buffer *buffer);

/*
 * Reads the log-file header event, which begins at `event`, into *ret_info (all but path and
 * file_bytes) and its two strings, each EW_ETL_NAME_SIZE long. NULL, or what is wrong.
 */
enum { EW_ETL_NAME_SIZE = 1024 };
const char *ew_etl_log_header_parse(const uint8_t *event, size_t size,
                                    struct ew_etl_file_info *ret_info, char *ret_session,
                                    char *ret_file);

#endif
