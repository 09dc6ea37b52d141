/* SPDX-License-Identifier: MIT */
/* One recording: its bytes, what its header says, its clock; and the walk over its buffers. */
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
    uint32_t number; /* in its reader */
    struct ew_etl_clock clock;
    struct ew_etl_file_info info;
    char *path;
    char session_name[EW_ETL_NAME_SIZE], file_name[EW_ETL_NAME_SIZE];
};

/* Opens and reads the header. path NULL: the bytes. As ew_etl_open. */
int ew_etl_file_open(struct ew_etl_file *file, const char *path, const void *bytes, size_t size,
                     struct ew_error *reterr);
/* Also for one whose opening failed. */
void ew_etl_file_close(struct ew_etl_file *file);
/* Less than size only at the end; ETWATCH_EOS. From any thread. */
int64_t ew_etl_file_read(const struct ew_etl_file *file, uint64_t offset, void *bytes, size_t size);

/* Counts damage. what: NULL-free text of what is wrong; the lowest place is the one that is told.
 */
enum ew_etl_damage { EW_ETL_BAD_BUFFER, EW_ETL_BAD_RECORD };
void ew_etl_count_bad(struct ew_etl_counts *counts, enum ew_etl_damage damage, uint32_t file,
                      uint64_t offset, uint64_t bad_bytes, const char *what);

/* ------------------------------------------------------- the walk over buffers */

enum { EW_ETL_SCAN_CHUNK = 4096 };

/* Where in the file the walk is. Memory: one chunk, whatever the size of the file. */
struct ew_etl_scan {
    const struct ew_etl_file *file;
    uint64_t offset;
    uint64_t last_ns; /* of the buffer found last: its user's */
    uint64_t chunk_offset;
    size_t chunk_size;
    uint8_t chunk[EW_ETL_SCAN_CHUNK];
};

/* A buffer that may hold something. */
struct ew_etl_found {
    uint64_t offset;
    struct ew_etl_buffer buffer; /* size and filled are cut to what the file has */
    bool cut;                    /* the file ends inside of what is filled */
    bool has_time;
    uint64_t first_raw; /* time of its first event, if has_time */
};

void ew_etl_scan_init(struct ew_etl_scan *scan, const struct ew_etl_file *file);
/*
 * The next buffer, in file order. Returns 1, 0 at the end of the file, or ETWATCH_EOS. Damage is
 * counted and passed over; so are buffers with nothing in them.
 *
 * After a header that cannot be, the walk goes on at the next multiple of the file's buffer size,
 * where every buffer of an uncompressed file begins. In a compressed file they begin anywhere:
 * there it goes on at the next header that is right in everything and is followed by another, or by
 * the end. Room that was never written (zeros) is no damage.
 */
int ew_etl_scan_next(struct ew_etl_scan *scan, struct ew_etl_found *ret_found,
                     struct ew_etl_counts *counts);

#endif
