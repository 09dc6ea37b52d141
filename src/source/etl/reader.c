/* SPDX-License-Identifier: MIT */
/*
 * The reader: files, one clock for all of them, and batches for the caller.
 *
 * With one worker everything happens in the caller's thread. With more, one thread merges into a
 * ring of batches, which the caller takes out; the other threads load buffers ahead, and so does
 * the caller when it would have to wait. So the caller's own work per event runs in parallel with
 * reading, no more threads are busy than there are workers, and the order, which one thread
 * produces, is the same for any number of them.
 */
#include "source/etl/reader.h"

#include <string.h>

#include "base/alloc.h"
#include "os/os.h"
#include "source/etl/merge.h"

enum {
    FILES_MAX = 1024,
    BATCH_RECORDS = 1024, /* 64 KB: fits into the cache together with the data it points to */
    RING_SIZE = 16,
    WORKERS_DEFAULT_MAX = 8,
};

#define WINDOW_DEFAULT (UINT64_C(32) << 20)
#define WINDOW_MIN (UINT64_C(1) << 20)
#define FILETIME_UNIX_EPOCH INT64_C(116444736000000000)

struct ew_etl_reader {
    struct ew_etl_file *files;
    size_t file_count;
    uint32_t workers;
    uint64_t window_bytes;
    int64_t unix_minus_raw_ns;
    uint64_t set_back_ns; /* the earliest event is this much before the earliest header */
    void (*visit)(void *ctx, const struct ew_record *records, size_t count);
    void *visit_ctx;

    bool begun;
    struct ew_etl_merge merge;
    struct ew_etl_batch batches[RING_SIZE];
    size_t batch_count;           /* batches with memory */
    struct ew_etl_batch *current; /* in use by the caller */
    bool at_end, halted;

    /* With a merge thread: batches [taken, filled) are ready; guarded by the loader's lock. */
    struct ew_thread_handle *thread;
    struct ew_cond *room;
    uint64_t taken, filled;
    bool waits_for_room, finished, stop;
    struct ew_etl_scratch scratch; /* of the caller */
};

/* -------------------------------------------------------------------- clock */

/* Sessions of one machine since one boot read the same counter: the counter gives their order
 * more precisely than the wall clock, which is sampled once per session and may step in between. */
static bool same_counter(const struct ew_etl_file *a, const struct ew_etl_file *b)
{
    enum { CLOCK_COUNTER = 1 };
    const int64_t boot_slack_100ns = 20000000; /* has a resolution of one second */
    const int64_t wall_slack_ns = 50000000;    /* three ticks of the wall clock */
    const struct ew_etl_file_info *x = &a->info, *y = &b->info;
    if (x->clock != CLOCK_COUNTER || y->clock != CLOCK_COUNTER ||
        x->perf_frequency != y->perf_frequency || x->boot_filetime <= 0 || y->boot_filetime <= 0)
        return false;
    int64_t boot = x->boot_filetime - y->boot_filetime;
    int64_t wall = y->start_filetime - x->start_filetime;
    if (boot > boot_slack_100ns || boot < -boot_slack_100ns || wall < 0 || wall > INT64_MAX / 200)
        return false;
    uint64_t raw = y->header_raw - x->header_raw;
    bool back = raw > INT64_MAX;
    uint64_t raw_ns = ew_etl_clock_ticks_ns(&a->clock, back ? 0 - raw : raw);
    int64_t counter_ns = raw_ns > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)raw_ns;
    int64_t off_ns = wall * 100 - (back ? -counter_ns : counter_ns);
    return off_ns <= wall_slack_ns && off_ns >= -wall_slack_ns;
}

static int64_t start_of(const struct ew_etl_file *file)
{
    return file->info.start_filetime > 0 ? file->info.start_filetime : 0;
}

/*
 * How much the first event of a buffer is before the reader's zero. Only the wall clock can be set
 * back. More than LONGEST is a damaged time.
 */
static uint64_t before_zero(const struct ew_etl_file *file)
{
    enum { CLOCK_WALL = 2 };
    const uint64_t longest_ns = UINT64_C(50) * 86400 * 1000000000;
    struct ew_etl_scan scan;
    struct ew_etl_found found;
    struct ew_etl_counts counts = {0};
    uint64_t before_ns = 0;
    if (file->info.clock != CLOCK_WALL)
        return 0;
    ew_etl_scan_init(&scan, file);
    while (ew_etl_scan_next(&scan, &found, &counts) > 0) {
        uint64_t ticks = file->clock.zero_raw - found.first_raw;
        uint64_t ns = ticks > INT64_MAX ? 0 : ew_etl_clock_ticks_ns(&file->clock, ticks);
        ns = ns > file->clock.zero_ns ? ns - file->clock.zero_ns : 0;
        if (found.has_time && ns > before_ns && ns <= longest_ns)
            before_ns = ns;
    }
    return before_ns;
}

static void set_clocks(struct ew_etl_reader *reader)
{
    struct ew_etl_file *first = &reader->files[0];
    for (size_t i = 1; i < reader->file_count; i++) {
        if (start_of(&reader->files[i]) < start_of(first))
            first = &reader->files[i];
    }
    for (size_t i = 0; i < reader->file_count; i++) {
        struct ew_etl_file *file = &reader->files[i];
        uint64_t later_100ns = (uint64_t)(start_of(file) - start_of(first));
        if (file != first && same_counter(first, file))
            file->clock = first->clock;
        else
            file->clock.zero_ns =
                later_100ns > EW_ETL_NS_MAX / 200 ? EW_ETL_NS_MAX / 2 : later_100ns * 100;
    }
    int64_t unix_100ns = start_of(first) - FILETIME_UNIX_EPOCH;
    bool sane = unix_100ns < INT64_MAX / 200 && unix_100ns > -INT64_MAX / 200;
    reader->unix_minus_raw_ns = sane ? unix_100ns * 100 : 0;
    for (size_t i = 0; i < reader->file_count; i++) {
        uint64_t before_ns = before_zero(&reader->files[i]);
        reader->set_back_ns = before_ns > reader->set_back_ns ? before_ns : reader->set_back_ns;
    }
    for (size_t i = 0; i < reader->file_count && reader->set_back_ns > 0; i++)
        reader->files[i].clock.zero_ns += reader->set_back_ns;
    reader->unix_minus_raw_ns -= (int64_t)reader->set_back_ns;
}

int64_t ew_etl_unix_minus_raw_ns(const struct ew_etl_reader *reader)
{
    return reader->unix_minus_raw_ns;
}

uint64_t ew_etl_set_back_ns(const struct ew_etl_reader *reader)
{
    return reader->set_back_ns;
}

size_t ew_etl_file_of(const struct ew_etl_reader *reader, const struct ew_record *record)
{
    const struct ew_etl_batch *batch = reader->current;
    if (!batch || !batch->files || record < batch->records ||
        record >= batch->records + batch->count)
        return 0;
    return batch->files[record - batch->records];
}

uint64_t ew_etl_raw_to_ns(const struct ew_etl_reader *reader, const struct ew_record *record,
                          uint64_t raw)
{
    return ew_etl_clock_ns(&reader->files[ew_etl_file_of(reader, record)].clock, raw);
}

uint64_t ew_etl_ticks_to_ns(const struct ew_etl_reader *reader, const struct ew_record *record,
                            uint64_t ticks)
{
    return ew_etl_clock_ticks_ns(&reader->files[ew_etl_file_of(reader, record)].clock, ticks);
}

/* ------------------------------------------------------------------ batches */

static int make_batches(struct ew_etl_reader *reader, size_t count)
{
    while (reader->batch_count < count) {
        struct ew_etl_batch *batch = &reader->batches[reader->batch_count];
        batch->records = ew_calloc(BATCH_RECORDS, sizeof *batch->records);
        if (reader->file_count > 1)
            batch->files = ew_calloc(BATCH_RECORDS, sizeof *batch->files);
        if (!batch->records || (reader->file_count > 1 && !batch->files)) {
            ew_free(batch->records);
            ew_free(batch->files);
            *batch = (struct ew_etl_batch){0};
            return ETWATCH_ENOMEM;
        }
        batch->capacity = BATCH_RECORDS;
        reader->batch_count++;
    }
    for (size_t i = 0; i < count; i++)
        reader->batches[i].retired_max = reader->window_bytes / 2 / count;
    return 0;
}

static void fill_batch(struct ew_etl_reader *reader, struct ew_etl_batch *batch)
{
    ew_etl_merge_fill(&reader->merge, batch);
    if (reader->visit)
        reader->visit(reader->visit_ctx, batch->records, batch->count);
}

/*
 * The merge thread: fills batches until the end, which is an empty one. Neither side wakes the
 * other before half of the ring is ready for it: a wakeup costs as much as a batch.
 */
static void produce(void *arg)
{
    struct ew_etl_reader *reader = arg;
    struct ew_etl_loader *loader = &reader->merge.loader;
    ew_mutex_lock(loader->lock);
    while (!reader->stop && !reader->finished) {
        if (reader->filled - reader->taken == RING_SIZE) {
            reader->waits_for_room = true;
            (void)ew_cond_wait(reader->room, loader->lock, -1);
            continue;
        }
        struct ew_etl_batch *batch = &reader->batches[reader->filled % RING_SIZE];
        ew_mutex_unlock(loader->lock);
        fill_batch(reader, batch);
        ew_mutex_lock(loader->lock);
        reader->filled++;
        reader->finished = batch->count == 0;
        if (loader->user_waits &&
            (reader->finished || reader->filled - reader->taken >= RING_SIZE / 2))
            ew_cond_signal(loader->user);
    }
    ew_mutex_unlock(loader->lock);
}

/* No batch is ready: loads buffers for the merge, or sleeps until enough batches are ready. */
static void wait_for_batch(struct ew_etl_reader *reader)
{
    struct ew_etl_loader *loader = &reader->merge.loader;
    bool slept = false;
    while (reader->filled == reader->taken ||
           (slept && !reader->finished && reader->filled - reader->taken < RING_SIZE / 2)) {
        if (ew_etl_loader_help(loader, &reader->scratch, true))
            continue;
        slept = loader->user_waits = true;
        (void)ew_cond_wait(loader->user, loader->lock, -1);
        loader->user_waits = false;
    }
}

/* Returns the previous batch and takes the next. */
static struct ew_etl_batch *take_batch(struct ew_etl_reader *reader)
{
    struct ew_etl_loader *loader = &reader->merge.loader;
    ew_mutex_lock(loader->lock);
    if (reader->current)
        reader->taken++;
    if (reader->waits_for_room && reader->filled - reader->taken <= RING_SIZE / 2) {
        reader->waits_for_room = false;
        ew_cond_signal(reader->room);
    }
    wait_for_batch(reader);
    struct ew_etl_batch *batch = &reader->batches[reader->taken % RING_SIZE];
    ew_mutex_unlock(loader->lock);
    return batch;
}

static int start_thread(struct ew_etl_reader *reader)
{
    int rc = make_batches(reader, RING_SIZE);
    if (rc == 0)
        rc = ew_cond_new(&reader->room);
    if (rc == 0)
        rc = ew_os_thread_start(produce, reader, &reader->thread);
    return rc;
}

static void join_thread(struct ew_etl_reader *reader)
{
    if (reader->thread) {
        ew_mutex_lock(reader->merge.loader.lock);
        reader->stop = true;
        ew_cond_signal(reader->room);
        ew_mutex_unlock(reader->merge.loader.lock);
        ew_os_thread_join(reader->thread);
    }
    reader->thread = NULL;
}

/* Resets to the state before the first batch. */
static void stop(struct ew_etl_reader *reader)
{
    join_thread(reader);
    ew_cond_free(reader->room);
    reader->room = NULL;
    reader->taken = reader->filled = 0;
    reader->waits_for_room = reader->finished = reader->stop = false;
    for (size_t i = 0; i < reader->batch_count; i++)
        ew_etl_merge_release(&reader->merge, &reader->batches[i]);
    if (reader->begun)
        ew_etl_merge_done(&reader->merge);
    reader->begun = reader->at_end = reader->halted = false;
    reader->current = NULL;
}

static int begin_with(struct ew_etl_reader *reader, uint32_t workers)
{
    reader->begun = true;
    int rc = ew_etl_merge_init(&reader->merge, reader->files, reader->file_count,
                               reader->window_bytes, workers - 1, 0);
    if (rc == 0)
        rc = workers > 1 ? start_thread(reader) : make_batches(reader, 1);
    if (rc < 0)
        stop(reader);
    return rc;
}

/* Falls back to one worker if threads cannot be created. */
static int begin(struct ew_etl_reader *reader)
{
    int rc = begin_with(reader, reader->workers);
    if (rc < 0 && rc != ETWATCH_ENOMEM && reader->workers > 1)
        rc = begin_with(reader, 1);
    return rc;
}

int ew_etl_next(struct ew_etl_reader *reader, const struct ew_record **ret_records)
{
    struct ew_etl_batch *batch = reader->current;
    if (reader->halted)
        return 0;
    if (!reader->at_end) {
        int rc = reader->begun ? 0 : begin(reader);
        if (rc < 0)
            return rc;
        if (reader->thread) {
            batch = take_batch(reader);
        } else {
            batch = &reader->batches[0];
            fill_batch(reader, batch);
        }
        reader->current = batch;
        reader->at_end = batch->count == 0;
    }
    *ret_records = batch->records;
    return batch->count ? (int)batch->count : batch->status;
}

void ew_etl_set_visitor(struct ew_etl_reader *reader,
                        void (*visit)(void *ctx, const struct ew_record *records, size_t count),
                        void *ctx)
{
    reader->visit = visit;
    reader->visit_ctx = ctx;
}

void ew_etl_halt(struct ew_etl_reader *reader)
{
    join_thread(reader);
    reader->halted = true;
}

int ew_etl_rewind(struct ew_etl_reader *reader)
{
    stop(reader);
    return 0;
}

void ew_etl_counts(const struct ew_etl_reader *reader, struct ew_etl_counts *ret_counts)
{
    if (reader->current)
        *ret_counts = reader->current->counts;
    else
        *ret_counts = (struct ew_etl_counts){0};
}

/* ----------------------------------------------------------- open and close */

static int open_files(struct ew_etl_reader *reader, const char *const *paths, const void *bytes,
                      size_t size, struct ew_error *reterr)
{
    for (size_t i = 0; i < reader->file_count; i++) {
        struct ew_etl_file *file = &reader->files[i];
        file->number = (uint32_t)i;
        int rc = ew_etl_file_open(file, paths ? paths[i] : NULL, bytes, size, reterr);
        if (rc < 0)
            return rc;
    }
    set_clocks(reader);
    return 0;
}

static int open_reader(const char *const *paths, size_t count, const void *bytes, size_t size,
                       const struct ew_etl_options *options, struct ew_etl_reader **ret_reader,
                       struct ew_error *reterr)
{
    static const struct ew_etl_options defaults;
    const struct ew_etl_options *o = options ? options : &defaults;
    if (count == 0 || count > FILES_MAX)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "a reader takes 1 to %d files", FILES_MAX);
    struct ew_etl_reader *reader = ew_calloc(1, sizeof *reader);
    if (!reader)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    uint32_t cpus = ew_os_cpu_count();
    reader->workers = o->workers ? o->workers : cpus;
    if (!o->workers && reader->workers > WORKERS_DEFAULT_MAX)
        reader->workers = WORKERS_DEFAULT_MAX;
    if (reader->workers > EW_ETL_WORKERS_MAX)
        reader->workers = EW_ETL_WORKERS_MAX;
    reader->window_bytes = o->window_bytes ? o->window_bytes : WINDOW_DEFAULT;
    if (reader->window_bytes < WINDOW_MIN)
        reader->window_bytes = WINDOW_MIN;
    reader->file_count = count;
    reader->files = ew_calloc(count, sizeof *reader->files);
    int rc = reader->files ? open_files(reader, paths, bytes, size, reterr)
                           : ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    if (rc < 0) {
        ew_etl_close(reader);
        return rc;
    }
    *ret_reader = reader;
    return 0;
}

int ew_etl_open(const char *const *paths, size_t count, const struct ew_etl_options *options,
                struct ew_etl_reader **ret_reader, struct ew_error *reterr)
{
    return open_reader(paths, count, NULL, 0, options, ret_reader, reterr);
}

int ew_etl_open_memory(const void *bytes, size_t size, const struct ew_etl_options *options,
                       struct ew_etl_reader **ret_reader, struct ew_error *reterr)
{
    return open_reader(NULL, 1, bytes, size, options, ret_reader, reterr);
}

void ew_etl_close(struct ew_etl_reader *reader)
{
    if (!reader)
        return;
    stop(reader);
    for (size_t i = 0; i < reader->batch_count; i++) {
        ew_free(reader->batches[i].records);
        ew_free(reader->batches[i].files);
    }
    for (size_t i = 0; reader->files && i < reader->file_count; i++)
        ew_etl_file_close(&reader->files[i]);
    ew_free(reader->scratch.bytes);
    ew_free(reader->files);
    ew_free(reader);
}

size_t ew_etl_file_count(const struct ew_etl_reader *reader)
{
    return reader->file_count;
}

const struct ew_etl_file_info *ew_etl_file_info(const struct ew_etl_reader *reader, size_t file)
{
    return file < reader->file_count ? &reader->files[file].info : NULL;
}
