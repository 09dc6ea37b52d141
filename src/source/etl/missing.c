/* SPDX-License-Identifier: MIT */
/*
 * Finds out whether a recording lacks buffers, and which.
 *
 * Windows numbers the buffers of a session (not of a CPU) in the order in which the CPUs begin to
 * fill them. So a missing number has a time: its buffer was begun after those with lower numbers
 * and before those with higher ones. It has a CPU if all others were filling a buffer of the file
 * meanwhile. Threads that race for a new buffer take numbers that they never use: a gap alone is no
 * evidence (real recordings of Windows 7 have such gaps). The header of a closed file counts its
 * buffers, and this count is exact in every real recording.
 *
 * The numbers are looked at, in a second scan, only when something is missing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "source/etl/file.h"

enum {
    PLACES_MAX = 1 << 18, /* 16 GiB of usual buffers */
    NEIGHBORS = 2,        /* threads that race may begin neighbouring buffers in another order */
    CPUS_NAMED = 3,
    CPUS_MAX = 2048,
};

/* Consecutive numbers that no buffer has. */
struct run {
    uint64_t first, last;
    uint32_t after; /* index of the place that follows it */
};

struct search {
    const struct ew_etl_file *file;
    struct ew_etl_places places;
    struct run run;   /* the longest one, the first of those */
    uint64_t gaps;    /* numbers without a buffer */
    uint64_t missing; /* buffers, by the count of the header; 0: not known */
};

void ew_etl_places_add(struct ew_etl_places *places, const struct ew_etl_found *found)
{
    if (places->count == places->capacity) {
        uint32_t capacity = places->capacity ? places->capacity * 2 : 256;
        void *grown = capacity > PLACES_MAX
                          ? NULL
                          : ew_realloc_array(places->list, capacity, sizeof *places->list);
        if (!grown) {
            places->incomplete = true;
            return;
        }
        places->list = grown;
        places->capacity = capacity;
    }
    places->list[places->count++] = (struct ew_etl_place){
        .sequence = found->buffer.sequence,
        .offset = found->offset,
        .first_raw = found->has_time ? found->first_raw : 0,
        .flushed_raw = found->buffer.flushed_raw,
        .cpu = found->buffer.cpu,
        .has_time = found->has_time,
    };
}

static int by_number(const void *a, const void *b)
{
    const struct ew_etl_place *left = a, *right = b;
    return (left->sequence > right->sequence) - (left->sequence < right->sequence);
}

/* Scans the file again and sorts its buffers by number. False: the numbers say nothing. */
static bool list_places(struct search *search)
{
    struct ew_etl_counts counts = {0};
    struct ew_etl_found found;
    struct ew_etl_scan *scan = ew_calloc(1, sizeof *scan);
    struct ew_etl_places *places = &search->places;
    int rc = scan ? 1 : ETWATCH_ENOMEM;
    if (scan) {
        ew_etl_scan_init(scan, search->file);
        scan->places = places;
    }
    while (rc > 0)
        rc = ew_etl_scan_next(scan, &found, &counts);
    ew_free(scan);
    if (rc < 0 || places->incomplete || places->count == 0)
        return false;
    qsort(places->list, places->count, sizeof *places->list, by_number);
    for (uint32_t i = 1; i < places->count; i++) {
        uint64_t low = places->list[i - 1].sequence, high = places->list[i].sequence;
        if (low == high) /* several sessions appended to one file */
            return false;
        uint64_t size = high - low - 1, longest = search->run.last - search->run.first + 1;
        search->gaps += size;
        if (size > 0 && (search->run.after == 0 || size > longest))
            search->run = (struct run){low + 1, high - 1, i};
    }
    return true;
}

/* When the missing buffers were begun: *ret_low, *ret_high in ticks. */
static bool find_window(const struct search *search, uint64_t *ret_low, uint64_t *ret_high)
{
    const struct ew_etl_place *list = search->places.list;
    uint32_t after = search->run.after, count = search->places.count;
    bool low = false, high = false;
    for (uint32_t i = 0; i < NEIGHBORS && i < after; i++) {
        const struct ew_etl_place *place = &list[after - 1 - i];
        if (place->has_time && (!low || place->first_raw < *ret_low)) {
            *ret_low = place->first_raw;
            low = true;
        }
    }
    for (uint32_t i = after; i < after + NEIGHBORS && i < count; i++) {
        if (list[i].has_time && (!high || list[i].first_raw > *ret_high)) {
            *ret_high = list[i].first_raw;
            high = true;
        }
    }
    return low && high && *ret_low <= *ret_high;
}

/* ", of CPU 0 or 3": all others were filling a buffer of the file in the whole window. Nothing if
 * that leaves more than a few. */
static void put_cpus(const struct search *search, uint64_t low, uint64_t high, char *out,
                     size_t size)
{
    const struct ew_etl_file_info *info = &search->file->info;
    uint8_t busy[CPUS_MAX / 8] = {0};
    uint32_t cpus = info->cpu_count, left = 0, named[CPUS_NAMED] = {0};
    out[0] = '\0';
    /* The flush time of compressed buffers is of another clock. */
    if (info->compressed || (info->log_file_mode & EW_ETL_MODE_NO_CPUS) != 0 || cpus > CPUS_MAX)
        return;
    for (uint32_t i = 0; i < search->places.count; i++) {
        const struct ew_etl_place *place = &search->places.list[i];
        if (place->has_time && place->first_raw <= low && place->flushed_raw >= high &&
            place->cpu < cpus)
            busy[place->cpu / 8] |= (uint8_t)(1u << place->cpu % 8);
    }
    for (uint32_t cpu = 0; cpu < cpus && left <= CPUS_NAMED; cpu++) {
        if ((busy[cpu / 8] >> cpu % 8 & 1) != 0)
            continue;
        if (left < CPUS_NAMED)
            named[left] = cpu;
        left++;
    }
    size_t used = 0;
    for (uint32_t i = 0; i < left && left <= CPUS_NAMED && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%u",
                                 i == 0          ? " of CPU "
                                 : i + 1 == left ? " or "
                                                 : ", ",
                                 (unsigned)named[i]);
}

/* How many are missing, of how many; "" if the header does not say. */
static void put_total(const struct search *search, char *out, size_t size)
{
    out[0] = '\0';
    if (search->missing > 0)
        (void)snprintf(out, size, "%" PRIu64 " of %u buffers are missing", search->missing,
                       (unsigned)search->file->info.buffers_written);
}

static void report_run(const struct search *search, struct ew_etl_counts *counts)
{
    char text[sizeof counts->first_bad], total[48], numbers[48], cpus[48];
    uint64_t low = 0, high = 0;
    const struct run *run = &search->run;
    put_total(search, total, sizeof total);
    if (run->first == run->last)
        (void)snprintf(numbers, sizeof numbers, "number %" PRIu64, run->first);
    else
        (void)snprintf(numbers, sizeof numbers, "numbers %" PRIu64 " to %" PRIu64, run->first,
                       run->last);
    int used = total[0] == '\0' ? snprintf(text, sizeof text, "buffers are missing: %s", numbers)
               : search->gaps > search->missing
                   ? snprintf(text, sizeof text, "%s, probably %s", total, numbers)
                   : snprintf(text, sizeof text, "%s: %s", total, numbers);
    if (find_window(search, &low, &high) && used > 0 && (size_t)used < sizeof text) {
        const struct ew_etl_clock *clock = &search->file->clock;
        uint64_t from = ew_etl_clock_ns(clock, low) / 1000,
                 to = ew_etl_clock_ns(clock, high) / 1000;
        put_cpus(search, low, high, cpus, sizeof cpus);
        (void)snprintf(text + used, sizeof text - (size_t)used,
                       "%s, begun from %" PRIu64 ".%06u to %" PRIu64 ".%06u s", cpus,
                       from / 1000000, (unsigned)(from % 1000000), to / 1000000,
                       (unsigned)(to % 1000000));
    }
    ew_etl_count_bad(counts, EW_ETL_BAD_BUFFER, search->file->number,
                     search->places.list[run->after].offset, 0, text);
}

static void report_end(const struct search *search, bool at_end, struct ew_etl_counts *counts)
{
    char text[sizeof counts->first_bad], total[48];
    put_total(search, total, sizeof total);
    (void)snprintf(text, sizeof text, "%s%s", total, at_end ? " at the end" : "");
    ew_etl_count_bad(counts, EW_ETL_BAD_BUFFER, search->file->number, search->file->size_bytes, 0,
                     text);
}

/* A circular file that has reached its size overwrites its oldest buffers. */
static bool is_overwritten(const struct ew_etl_file *file)
{
    const struct ew_etl_file_info *info = &file->info;
    uint64_t unit = (info->log_file_mode & EW_ETL_MODE_KILOBYTES) != 0 ? 1024 : 1048576;
    return (info->log_file_mode & EW_ETL_MODE_CIRCULAR) != 0 &&
           (info->file_size_max == 0 ||
            file->size_bytes + info->buffer_bytes > info->file_size_max * unit);
}

/* A file that was never closed lacks what was in memory: one open buffer per CPU, and full buffers
 * with the highest numbers. More consecutive numbers than CPUs, with a written buffer after them,
 * were in the file and are not. */
static bool may_lack(const struct ew_etl_scan *scan)
{
    const struct ew_etl_file_info *info = &scan->file->info;
    return info->end_filetime == 0 && info->buffers_written > 0 && info->cpu_count > 0 &&
           (info->log_file_mode & (EW_ETL_MODE_CIRCULAR | EW_ETL_MODE_NEWFILE)) == 0 &&
           scan->highest >= scan->buffers + info->cpu_count;
}

void ew_etl_check_missing(const struct ew_etl_scan *scan, struct ew_etl_counts *counts)
{
    const struct ew_etl_file_info *info = &scan->file->info;
    struct search search = {.file = scan->file};
    if (scan->places) /* the second scan */
        return;
    if (info->end_filetime != 0 && !is_overwritten(scan->file) &&
        scan->buffers < info->buffers_written)
        search.missing = info->buffers_written - scan->buffers;
    if (search.missing == 0 && !may_lack(scan))
        return;
    bool known = list_places(&search);
    if (search.missing == 0) {
        if (known && search.run.after != 0 && search.run.last - search.run.first >= info->cpu_count)
            report_run(&search, counts);
    } else if (known && search.run.after != 0 && scan->valid == scan->buffers &&
               !scan->ends_early) {
        report_run(&search, counts);
    } else {
        report_end(&search, scan->ends_early || (known && search.gaps == 0), counts);
    }
    ew_free(search.places.list);
}
