/* SPDX-License-Identifier: MIT */
/* One recording: its bytes, its header, its clock, and the scan over its buffers. */
#ifndef EW_SOURCE_ETL_FILE_H
#define EW_SOURCE_ETL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/os.h"
#include "source/etl/clock.h"
#include "source/etl/header.h"

struct ew_etl_file {
    struct ew_os_file *os; /* NULL: memory */
    const uint8_t *memory;
    uint64_t size_bytes;
    uint32_t number; /* index in the reader */
    struct ew_etl_clock clock;
    struct ew_etl_file_info info;
    char *path;
    char session_name[EW_ETL_NAME_SIZE], file_name[EW_ETL_NAME_SIZE];
};

/* Opens the file and reads its header; path NULL: from bytes. Errors as ew_etl_open. */
int ew_etl_file_open(struct ew_etl_file *file, const char *path, const void *bytes, size_t size,
                     struct ew_error *reterr);
/* Also to be called after a failed open. */
void ew_etl_file_close(struct ew_etl_file *file);
/* Returns less than size only at the end of the file, or ETWATCH_EOS. May be called from any
 * thread. */
int64_t ew_etl_file_read(const struct ew_etl_file *file, uint64_t offset, void *bytes, size_t size);

/* Counts damage; `what` describes it. The description at the lowest offset is kept. */
enum ew_etl_damage { EW_ETL_BAD_BUFFER, EW_ETL_BAD_RECORD };
void ew_etl_count_bad(struct ew_etl_counts *counts, enum ew_etl_damage damage, uint32_t file,
                      uint64_t offset, uint64_t bad_bytes, const char *what);

/* ----------------------------------------------------------- scan over buffers */

enum { EW_ETL_SCAN_CHUNK = 4096 };

/* Position of the scan. Uses one chunk of memory, independent of the file size. */
struct ew_etl_scan {
    const struct ew_etl_file *file;
    uint64_t offset;
    uint64_t expanded_bytes;          /* of the compressed buffers found so far */
    uint64_t last_ns;                 /* of the last buffer found; set by the merge */
    uint64_t buffers;                 /* found so far, with the damaged ones */
    uint64_t valid, highest;          /* of these with a valid header; the highest number */
    uint64_t zero_offset, zero_bytes; /* zeros just passed: damage if a buffer follows */
    bool ends_early;                  /* the last buffer has fewer bytes than its header says */
    struct ew_etl_places *places;     /* where the buffers are noted; NULL: nowhere */
    uint64_t chunk_offset;
    size_t chunk_size;
    uint8_t chunk[EW_ETL_SCAN_CHUNK];
};

/* A buffer that may hold events. */
struct ew_etl_found {
    uint64_t offset;
    struct ew_etl_buffer buffer; /* size and filled are capped to the end of the file */
    bool cut;                    /* the file ends within the filled part */
    bool has_time;
    uint64_t first_raw; /* time of its first event, if has_time */
};

void ew_etl_scan_init(struct ew_etl_scan *scan, const struct ew_etl_file *file);
/*
 * Finds the next buffer, in file order. Returns 1, 0 at the end of the file, or ETWATCH_EOS. Damage
 * is counted and skipped; empty buffers are skipped.
 *
 * After an invalid header the scan continues at the next multiple of the file's buffer size, where
 * every buffer of an uncompressed file starts. In a compressed file buffers start anywhere: there
 * the scan continues at the next header that is valid in every field and is followed by another one
 * or by the end of the file. Space that was never written (zeros) is not damage.
 */
int ew_etl_scan_next(struct ew_etl_scan *scan, struct ew_etl_found *ret_found,
                     struct ew_etl_counts *counts);

/* ------------------------------------------------------------- missing buffers */

struct ew_etl_place {
    uint64_t sequence, offset;
    uint64_t first_raw, flushed_raw; /* its first event, and the beginning of the next buffer */
    uint16_t cpu;
    bool has_time;
};

struct ew_etl_places {
    struct ew_etl_place *list;
    uint32_t count, capacity;
    bool incomplete; /* too many buffers, or no memory */
};

void ew_etl_places_add(struct ew_etl_places *places, const struct ew_etl_found *found);
/*
 * Compares the buffers that a complete scan found with what the file must have, by the count of its
 * header and by the numbers of its buffers, and counts what is missing as damage. If something is,
 * the file is scanned once more to find out which buffers, of which CPU and when.
 */
void ew_etl_check_missing(const struct ew_etl_scan *scan, struct ew_etl_counts *counts);

#endif
