/* SPDX-License-Identifier: MIT */
/* The buffer header, and the log-file header event in the first buffer. */
#ifndef EW_SOURCE_ETL_HEADER_H
#define EW_SOURCE_ETL_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/etl/reader.h"

enum {
    EW_ETL_HEADER_SIZE = 72,          /* of a buffer, in all versions */
    EW_ETL_BUFFER_MAX = 16 * 1048576, /* maximum of Windows: 16384 KB */
    EW_ETL_EVENT_MAX = 65536,         /* event sizes are 16 bits */
    EW_ETL_FLAG_LOST = 2 | 4,         /* events, buffers were lost before this buffer */
    EW_ETL_FLAG_BACKUP = 0x10,        /* backup file of a real-time session */
    EW_ETL_FLAG_COMPRESSED = 0x40,
    EW_ETL_FLAG_HUFFMAN = 0x8000, /* ours, not on disk: compressed with LZ77+Huffman */
    EW_ETL_TYPE_HEADER = 4,
    EW_ETL_MODE_CIRCULAR = 0x2,
    EW_ETL_MODE_NEWFILE = 0x8,
    EW_ETL_MODE_KILOBYTES = 0x2000, /* the unit of MaximumFileSize */
    EW_ETL_MODE_COMPRESSED = 0x04000000,
    EW_ETL_MODE_NO_CPUS = 0x10000000, /* buffers are not per CPU */
};

struct ew_etl_buffer {
    uint32_t size;   /* on disk, including the header */
    uint32_t filled; /* including the header; if compressed: after decompression */
    uint16_t cpu, logger, flags, type;
    uint64_t sequence;    /* per session, in the order in which the CPUs began to fill them */
    uint64_t flushed_raw; /* when the CPU began its next buffer; a FILETIME if compressed */
    uint64_t clock;       /* kind in the low 3 bits, then the frequency */
    uint64_t reference_filetime, reference_raw; /* of real-time backup files */
};

/* bytes has EW_ETL_HEADER_SIZE bytes. Performs no checks. */
void ew_etl_buffer_parse(const uint8_t *bytes, struct ew_etl_buffer *ret_buffer);
/* NULL if the buffer can be read; else a description of what is wrong with its header. */
const char *ew_etl_buffer_problem(const struct ew_etl_buffer *buffer);

/*
 * Parses the log-file header event at `event` into *ret_info (all but path and file_bytes) and its
 * two strings, each EW_ETL_NAME_SIZE long. Returns NULL, or what is wrong.
 */
enum { EW_ETL_NAME_SIZE = 1024 };
const char *ew_etl_log_header_parse(const uint8_t *event, size_t size,
                                    struct ew_etl_file_info *ret_info, char *ret_session,
                                    char *ret_file);

#endif
