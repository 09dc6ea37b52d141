/* SPDX-License-Identifier: MIT */
/*
 * Where a recording goes: one file, a row of files of which the last few are kept, or a ring in
 * memory that becomes a file when it is asked for.
 */
#ifndef EW_CLI_RECORD_FILE_H
#define EW_CLI_RECORD_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/output.h"

enum { EW_RING_PARTS = 16 };

/* A piece of the ring: it can be read by itself. */
struct ew_ring_part {
    char *bytes;
    size_t len, size;
    uint64_t begun_ns;
};

struct ew_record_file {
    const char *path;   /* as it was given */
    uint64_t max_bytes; /* of a file, or of the ring; 0: no limit */
    uint32_t keep;      /* --rotate: so many files; 0: one */
    uint64_t ring_ns;   /* 0: no ring */

    struct ew_output output;
    bool open;
    uint32_t number; /* of the file that is written, or of the next dump, from 1 */
    char *name;      /* of that file */
    uint64_t bytes;  /* in it */
    uint64_t total_bytes;
    int os_error;

    struct ew_ring_part parts[EW_RING_PARTS]; /* the newest last */
    uint32_t part_count;
    uint64_t ring_bytes;
    uint64_t dropped_parts;
    uint32_t dumps;
};

/* Opens the file, so that what is wrong with it is known before anything begins. 0 or the errno. */
int ew_record_file_open(struct ew_record_file *file, const char *path, uint64_t max_bytes,
                        uint32_t keep, uint64_t ring_ns);
/* An etwatch_write_fn. What a full disk took only in part is cut off again. */
int ew_record_file_write(void *file, const void *bytes, size_t len);
/* Nothing more should be written: the file has its size. */
bool ew_record_file_full(const struct ew_record_file *file);
/* The next piece should begin: write out, call ew_record_file_next, begin anew. */
bool ew_record_file_due(const struct ew_record_file *file, uint64_t now_ns);
/* 0 or the errno. */
int ew_record_file_next(struct ew_record_file *file, uint64_t now_ns);
/* Writes the ring to its file and empties it. 0 or the errno. */
int ew_record_file_dump(struct ew_record_file *file);
/* 0 or the errno. A ring that was never written leaves no file. */
int ew_record_file_close(struct ew_record_file *file);

#endif
