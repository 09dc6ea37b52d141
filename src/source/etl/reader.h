/* SPDX-License-Identifier: MIT */
/*
 * Reads .etl recordings: takes one or several files and delivers their records in time order.
 *
 * Memory is bounded for files of any size: only a window of buffers per file and CPU is open, plus
 * an index of 32 bytes per buffer (16 MiB at most: half a million buffers, 32 GiB of usual ones;
 * the order is exact as long as they fit). Damage never ends reading: what cannot be read is
 * counted with the offset where it starts, and reading continues at the next buffer.
 *
 * In addition to the records of the files, the reader emits records of kind EW_RECORD_LOSS before
 * the first record of a buffer with the flag that events were lost before it.
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
    uint32_t workers; /* threads, including the caller's, which decompresses instead of waiting; 1:
                         only the caller's; 0: one per CPU of this machine, at most 8 */
    /* Memory for open buffers; 0: 32 MiB. Compressed buffers must be open as a whole: where
     * those of all CPUs at once need more, it grows up to 8 times this size. */
    uint64_t window_bytes;
};

/* The log-file header event of one file, and properties of the file. */
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
    uint32_t file_size_max; /* MaximumFileSize: MiB, or KiB by the mode; 0: none */
    uint32_t log_file_mode;
    uint32_t buffers_written; /* from the header; may be wrong */
    uint32_t events_lost, buffers_lost;
    int64_t start_filetime, end_filetime, boot_filetime; /* end 0: never closed */
    int32_t timezone_bias_minutes;
    uint64_t header_raw; /* time of the header event: the anchor of the file's clock */
    bool compressed;
    const char *session_name, *file_name; /* UTF-8; "" if absent */
};

struct ew_etl_counts {
    uint64_t buffers, compressed_buffers, records; /* records: without losses */
    uint64_t bytes;                                /* of the files, read so far */
    uint64_t bad_buffers;                          /* invalid header or compression; skipped */
    uint64_t bad_records;                          /* buffers that could not be read to their end */
    uint64_t bad_bytes;                            /* of both */
    uint64_t late; /* out of order beyond correction: t_ns is that of the preceding record, t_raw is
                      as recorded */
    uint64_t first_bad_offset; /* valid if bad_buffers or bad_records */
    uint32_t first_bad_file;   /* and its file */
    char first_bad[128];       /* description of the damage */
    uint64_t flag_events_lost; /* buffers with the flag "events were lost before this" */
    uint64_t flag_buffers_lost;
};

/*
 * Opens files. EFORMAT: not an .etl file, with the offset and what was found instead; ETRUNC: empty
 * or too short for one header; EOS, EPERM: cannot be opened.
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
 * The next records in time order (equal times: file order), valid until the next call. t_ns never
 * decreases. Returns their number, 0 at the end, or ETWATCH_ENOMEM or ETWATCH_EOS. The log-file
 * header event is a record like any other.
 */
int ew_etl_next(struct ew_etl_reader *reader, const struct ew_record **ret_records);
/*
 * Sets a function that sees every batch on the merge thread, before the caller gets it. Must be set
 * before the first batch; NULL: none. What it writes may be read after the end, or after
 * ew_etl_halt.
 */
void ew_etl_set_visitor(struct ew_etl_reader *reader,
                        void (*visit)(void *ctx, const struct ew_record *records, size_t count),
                        void *ctx);
/* Stops reading until ew_etl_rewind; the last batch and the counts stay valid. */
void ew_etl_halt(struct ew_etl_reader *reader);
/* Restarts at the beginning; resets the counts. */
int ew_etl_rewind(struct ew_etl_reader *reader);
void ew_etl_counts(const struct ew_etl_reader *reader, struct ew_etl_counts *ret_counts);

/*
 * Time. The raw clock of a reader counts ns from the earliest header of its files (from the
 * earliest event if the clock was set back); unix_minus_raw converts it to Unix time. raw_to_ns
 * converts a time in the payload of a record (InitialTime of a DPC, the event time of a stack).
 *
 * Files of one machine and boot share its counter and are ordered by it; others by the wall clock
 * in their headers.
 */
int64_t ew_etl_unix_minus_raw_ns(const struct ew_etl_reader *reader);
/* The wall clock of the recording was set back: the raw clock begins this much before the earliest
 * header, at the earliest event. 0: it was not. */
uint64_t ew_etl_set_back_ns(const struct ew_etl_reader *reader);
uint64_t ew_etl_raw_to_ns(const struct ew_etl_reader *reader, const struct ew_record *record,
                          uint64_t raw);
/* Converts ticks of the session's clock to a duration. */
uint64_t ew_etl_ticks_to_ns(const struct ew_etl_reader *reader, const struct ew_record *record,
                            uint64_t ticks);
/* The file of a record of the last batch. Must be the record itself, not a copy. */
size_t ew_etl_file_of(const struct ew_etl_reader *reader, const struct ew_record *record);

#endif
