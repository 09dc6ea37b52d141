/* SPDX-License-Identifier: MIT */
/*
 * Reads .etl recordings: one or several files in, their records in time order out.
 *
 * Memory is bounded whatever the size of the files: a window of buffers per file and CPU is open,
 * never the whole, beside an index of 32 bytes for each buffer (16 MiB at most: half a million
 * buffers, 32 GiB of usual ones; order is exact as long as they fit). Damage never ends a reading:
 * what cannot be read is counted with the offset where it began, and reading goes on at the next
 * buffer.
 *
 * Beside the records of the files there are those of kind EW_RECORD_LOSS, which the reader makes
 * before the first record of a buffer that says that something was lost before it.
 */
#ifndef EW_SOURCE_ETL_READER_H
#define EW_SOURCE_ETL_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/record.h"

struct ew_etl_reader;

struct ew_etl_options {
    uint32_t workers; /* threads, with the caller's, which inflates while it would wait; 1: only
                         that; 0: one per CPU of this machine, at most 8 */
    /* Of memory for open buffers; 0: 32 MiB. Compressed buffers must be open as a whole: where
     * those of all CPUs at once need more it grows, to 8 times this and no further. */
    uint64_t window_bytes;
};

/* What the log-file header event of one file says, and what reading it found. */
struct ew_etl_file_info {
    const char *path;
    uint64_t file_bytes;
    uint32_t buffer_bytes;
    uint8_t os_major, os_minor, layout_major, layout_minor; /* 6.2 and 1.5, 10.0 and 2.0, … */
    uint32_t os_build;
    uint32_t cpu_count;
    uint32_t pointer_size;
    uint32_t clock; /* 1 QPC, 2 system time, 3 CPU cycles */
    uint64_t perf_frequency;
    uint32_t cpu_mhz;
    uint32_t timer_resolution_100ns;
    uint32_t log_file_mode;
    uint32_t buffers_written; /* as the header says; may be wrong */
    uint32_t events_lost, buffers_lost;
    int64_t start_filetime, end_filetime, boot_filetime; /* end 0: never closed */
    int32_t timezone_bias_minutes;
    uint64_t header_raw; /* the header event's own time: the anchor of the file's clock */
    bool compressed;
    const char *session_name, *file_name; /* UTF-8; "" if absent */
};

struct ew_etl_counts {
    uint64_t buffers, compressed_buffers, records; /* records without those of losses */
    uint64_t bytes;                                /* of the files, read so far */
    uint64_t bad_buffers;      /* header or compression not understood; passed over */
    uint64_t bad_records;      /* walks that ended before the buffer's end */
    uint64_t bad_bytes;        /* in both */
    uint64_t late;             /* out of order and could not be put right: their t_ns is that of
                                  the record before them, t_raw is as written */
    uint64_t first_bad_offset; /* valid if bad_buffers or bad_records */
    uint32_t first_bad_file;   /* and in which file */
    char first_bad[128];       /* what was wrong there */
    uint64_t flag_events_lost; /* buffers that carry the flag "events were lost before this" */
    uint64_t flag_buffers_lost;
};

/*
 * Opens files. EFORMAT: not an .etl, with the offset and what was found instead; ETRUNC: empty or
 * too short for one header; EOS, EPERM: cannot be opened.
 */
int ew_etl_open(const char *const *paths, size_t count, const struct ew_etl_options *options,
                struct ew_etl_reader **ret_reader, struct ew_error *reterr);
/* The same from memory (tests, fuzzing). The bytes must outlive the reader. */
int ew_etl_open_memory(const void *bytes, size_t size, const struct ew_etl_options *options,
                       struct ew_etl_reader **ret_reader, struct ew_error *reterr);
void ew_etl_close(struct ew_etl_reader *reader);

size_t ew_etl_file_count(const struct ew_etl_reader *reader);
const struct ew_etl_file_info *ew_etl_file_info(const struct ew_etl_reader *reader, size_t file);

/*
 * The next records in time order (equal times: file order), valid until the next call. Their t_ns
 * never goes back. Returns their number, 0 at the end, or ETWATCH_ENOMEM or ETWATCH_EOS. The
 * log-file header event is a record like any other.
 */
int ew_etl_next(struct ew_etl_reader *reader, const struct ew_record **ret_records);
/*
 * Looks at every batch beside the reading: on the thread that merges, before the user gets it. To
 * be set before the first batch; NULL: nobody looks. What it writes may be read after the end, or
 * after ew_etl_halt.
 */
void ew_etl_set_visitor(struct ew_etl_reader *reader,
                        void (*visit)(void *ctx, const struct ew_record *records, size_t count),
                        void *ctx);
/* No more will be read before ew_etl_rewind; the last batch and the counts stay. */
void ew_etl_halt(struct ew_etl_reader *reader);
/* From the beginning again; the counts too. */
int ew_etl_rewind(struct ew_etl_reader *reader);
void ew_etl_counts(const struct ew_etl_reader *reader, struct ew_etl_counts *ret_counts);

/*
 * Time. The raw clock of a reader counts ns from the earliest header of its files; unix_minus_raw
 * turns it into Unix time. raw_to_ns turns a time in a payload (InitialTime of a DPC, the time a
 * stack belongs to) of a record of this file.
 *
 * Files of one machine and boot share its counter, and are put in order by that; others by the wall
 * clock in their headers.
 */
int64_t ew_etl_unix_minus_raw_ns(const struct ew_etl_reader *reader);
uint64_t ew_etl_raw_to_ns(const struct ew_etl_reader *reader, const struct ew_record *record,
                          uint64_t raw);
/* Ticks of the session's clock as a duration. */
uint64_t ew_etl_ticks_to_ns(const struct ew_etl_reader *reader, const struct ew_record *record,
                            uint64_t ticks);
/* Which file a record of the last batch is from: the record itself, not a copy of it. */
size_t ew_etl_file_of(const struct ew_etl_reader *reader, const struct ew_record *record);

#endif
