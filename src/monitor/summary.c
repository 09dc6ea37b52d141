/* SPDX-License-Identifier: MIT */
/*
 * Owns a table of the processes of a stream: by (pid, start time), and two lists: in the order in
 * which they were first seen, and in which they exited. When the table is full the first of the
 * exited list is dropped. Every text is a copy. The lock is held for a batch of samples (a few µs
 * each) and in etwatch_summary_for_each. A histogram gets memory only for values that are not 0.
 * Values are held for a few samples and then added metric by metric: a cache miss in a histogram
 * for each value is most of what a summary costs.
 */
#include <etwatch/summary.h>

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "model/metric.h"
#include "os/os.h"
#include "sampler/sparse_histogram.h"

enum { DEFAULT_PROCESSES = 2048, SLOTS = 4096, HELD_MAX = 8, THREADS_MAX = 4096 };

/* The sums are kept like metrics, after the last one. */
enum { KEPT_COUNT = ETWATCH_METRIC_COUNT + ETWATCH_SUM_COUNT };
static const uint32_t parts[ETWATCH_SUM_COUNT][2] = {
    [ETWATCH_SUM_SWITCHES] = {ETWATCH_M_switches_voluntary, ETWATCH_M_switches_involuntary},
    [ETWATCH_SUM_FAULTS] = {ETWATCH_M_faults_minor, ETWATCH_M_faults_major},
};

struct held {
    struct etwatch_metric_set has;
    double values[KEPT_COUNT];
};

struct process {
    struct process *next_slot;     /* same place in the hash table */
    struct process *newer, *older; /* in the order in which they were first seen */
    struct process *next_ended;    /* in the order in which they exited */
    uint64_t first_ns, last_ns;
    uint64_t busy_ns;    /* in its samples */
    uint64_t longest_ns; /* longest interval: the first and the last may be shorter */
    uint64_t samples;
    bool ended;
    uint32_t held_count;
    struct held *held; /* HELD_MAX of them, not yet in the histograms; NULL: none, or it exited */
    struct etwatch_sample sample;
    struct ew_sparse_histogram *spread;     /* by metric; NULL: no samples yet */
    struct etwatch_summary_thread *threads; /* by tid */
    uint32_t thread_count, thread_size;
};

struct etwatch_summary {
    struct ew_mutex *lock;
    uint32_t max_processes, process_count;
    uint64_t latest_ns, dropped;
    struct etwatch_summary_options options;
    struct process *oldest, *newest;
    struct process *first_ended, *last_ended;
    struct process *slots[SLOTS];
};

/* -------------------------------------------------------------------- metrics */

/* Counters are added, gauges replaced. */
static void merge(struct etwatch_sample *into, const struct etwatch_sample *sample)
{
#define add_counter(name) into->name += sample->name
#define add_gauge(name) into->name = sample->name
#define ETWATCH_X(name, type, kind)                           \
    if (etwatch_sample_has(sample, ETWATCH_M_##name)) {       \
        add_##kind(name);                                     \
        etwatch_metric_set_add(&into->has, ETWATCH_M_##name); \
    }
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
#undef add_counter
#undef add_gauge
}

/* ---------------------------------------------------------------------- table */

static struct process **slot_of(struct etwatch_summary *summary, uint32_t pid)
{
    return &summary->slots[(pid * 2654435761u) >> 20 & (SLOTS - 1)];
}

static bool keep_text(const char **kept, const char *text)
{
    if (text == NULL || (*kept != NULL && strcmp(*kept, text) == 0))
        return true;
    char *copy = ew_strdup(text);
    if (copy == NULL)
        return false;
    ew_free((void *)(uintptr_t)*kept);
    *kept = copy;
    return true;
}

static bool keep_texts(struct etwatch_sample *kept, const struct etwatch_sample *sample)
{
    return keep_text(&kept->name, sample->name) && keep_text(&kept->user, sample->user) &&
           keep_text(&kept->cgroup, sample->cgroup) && keep_text(&kept->cmdline, sample->cmdline);
}

static void free_process(struct process *process)
{
    const char *texts[] = {process->sample.name, process->sample.user, process->sample.cgroup,
                           process->sample.cmdline};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ew_free((void *)(uintptr_t)texts[i]);
    for (uint32_t i = 0; process->spread != NULL && i < KEPT_COUNT; i++)
        ew_sparse_histogram_done(&process->spread[i]);
    ew_free(process->spread);
    ew_free(process->held);
    ew_free(process->threads);
    ew_free(process);
}

static void forget(struct etwatch_summary *summary, struct process *process)
{
    struct process **at = slot_of(summary, process->sample.pid);
    while (*at != process)
        at = &(*at)->next_slot;
    *at = process->next_slot;
    *(process->older != NULL ? &process->older->newer : &summary->oldest) = process->newer;
    *(process->newer != NULL ? &process->newer->older : &summary->newest) = process->older;
    summary->process_count--;
    free_process(process);
}

static void make_room(struct etwatch_summary *summary)
{
    if (summary->process_count < summary->max_processes)
        return;
    struct process *dropped = summary->first_ended;
    if (dropped != NULL) {
        summary->first_ended = dropped->next_ended;
        if (summary->first_ended == NULL)
            summary->last_ended = NULL;
    } else {
        dropped = summary->oldest;
    }
    forget(summary, dropped);
    summary->dropped++;
}

static struct process *find(struct etwatch_summary *summary, const struct etwatch_sample *sample)
{
    struct process *process = *slot_of(summary, sample->pid);
    while (process != NULL &&
           (process->sample.pid != sample->pid || process->sample.start_ns != sample->start_ns))
        process = process->next_slot;
    return process;
}

static struct process *enter(struct etwatch_summary *summary, const struct etwatch_sample *sample)
{
    make_room(summary);
    struct process *process = ew_calloc(1, sizeof *process);
    if (process == NULL)
        return NULL;
    struct etwatch_sample *kept = &process->sample;
    kept->size = sizeof *kept;
    kept->type = ETWATCH_TYPE_SAMPLE;
    kept->pid = sample->pid;
    kept->start_ns = sample->start_ns;
    uint64_t begin_ns = sample->t_ns - (sample->dt_ns <= sample->t_ns ? sample->dt_ns : 0);
    process->first_ns = sample->type == ETWATCH_TYPE_START ? sample->t_ns : begin_ns;
    struct process **slot = slot_of(summary, sample->pid);
    process->next_slot = *slot;
    *slot = process;
    process->older = summary->newest;
    *(summary->newest != NULL ? &summary->newest->newer : &summary->oldest) = process;
    summary->newest = process;
    summary->process_count++;
    return process;
}

/* --------------------------------------------------------------------- adding */

/* Adds the held values of one metric. Equal values in a row, common for gauges, are added at once.
 */
static bool spread_metric(struct process *process, uint32_t metric)
{
    double value = 0;
    uint32_t count = 0;
    bool whole = true;
    for (uint32_t i = 0; i < process->held_count; i++) {
        const struct held *held = &process->held[i];
        if (!etwatch_metric_set_has(&held->has, metric))
            continue;
        if (count > 0 && held->values[metric] != value) {
            whole =
                ew_sparse_histogram_add(&process->spread[metric], value, count) != ETWATCH_ENOMEM &&
                whole;
            count = 0;
        }
        value = held->values[metric];
        count++;
    }
    if (count > 0)
        whole = ew_sparse_histogram_add(&process->spread[metric], value, count) != ETWATCH_ENOMEM &&
                whole;
    return whole;
}

static bool spread_held(struct process *process)
{
    struct etwatch_metric_set has = {{0}};
    bool whole = true;
    for (uint32_t i = 0; i < process->held_count; i++)
        etwatch_metric_set_union(&has, &process->held[i].has);
    EW_METRIC_SET_EACH (i, &has)
        whole = spread_metric(process, i) && whole;
    for (uint32_t i = ETWATCH_METRIC_COUNT; i < KEPT_COUNT; i++)
        if (etwatch_metric_set_has(&has, i))
            whole = spread_metric(process, i) && whole;
    process->held_count = 0;
    return whole;
}

static bool hold(struct process *process, const struct etwatch_sample *sample)
{
    if (process->spread == NULL)
        process->spread = ew_calloc(KEPT_COUNT, sizeof *process->spread);
    if (process->held == NULL)
        process->held = ew_calloc(HELD_MAX, sizeof *process->held);
    if (process->spread == NULL || process->held == NULL)
        return false;
    struct held *held = &process->held[process->held_count++];
    held->has = sample->has;
    etwatch_metric_set_subtract(&held->has, &ew_metrics_without_average);
    ew_sparse_histogram_values(sample, held->values);
    for (uint32_t i = 0; i < ETWATCH_SUM_COUNT; i++) {
        if (!etwatch_sample_has(sample, parts[i][0]) || !etwatch_sample_has(sample, parts[i][1]))
            continue;
        etwatch_metric_set_add(&held->has, ETWATCH_METRIC_COUNT + i);
        held->values[ETWATCH_METRIC_COUNT + i] =
            held->values[parts[i][0]] + held->values[parts[i][1]];
    }
    return process->held_count < HELD_MAX || spread_held(process);
}

static bool end_process(struct etwatch_summary *summary, struct process *process,
                        const struct etwatch_sample *sample)
{
    if (process->ended)
        return true;
    process->ended = true;
    bool whole = spread_held(process);
    ew_free(process->held);
    process->held = NULL;
    process->sample.type = ETWATCH_TYPE_EXIT;
    *(summary->last_ended != NULL ? &summary->last_ended->next_ended : &summary->first_ended) =
        process;
    summary->last_ended = process;
    /* Its totals replace our sums; metrics that the EXIT does not have stay sums. */
#define reset_counter(name) process->sample.name = 0
#define reset_gauge(name) (void)0
#define ETWATCH_X(name, type, kind)                   \
    if (etwatch_sample_has(sample, ETWATCH_M_##name)) \
        reset_##kind(name);
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
#undef reset_counter
#undef reset_gauge
    return whole;
}

/* The first thread with at least this tid. */
static uint32_t thread_at(const struct process *process, uint32_t tid)
{
    uint32_t low = 0, high = process->thread_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (process->threads[middle].tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool enter_thread(struct process *process, uint32_t index, uint32_t tid)
{
    if (process->thread_count == process->thread_size) {
        uint32_t size = process->thread_size == 0 ? 4 : process->thread_size * 2;
        struct etwatch_summary_thread *bigger =
            size > THREADS_MAX ? NULL
                               : ew_realloc_array(process->threads, size, sizeof *process->threads);
        if (bigger == NULL)
            return false;
        process->threads = bigger;
        process->thread_size = size;
    }
    memmove(process->threads + index + 1, process->threads + index,
            (process->thread_count - index) * sizeof *process->threads);
    process->threads[index] = (struct etwatch_summary_thread){.tid = tid};
    process->thread_count++;
    return true;
}

/* Of threads only what a process does not have: the cycles of each. */
static bool add_thread(struct etwatch_summary *summary, const struct etwatch_sample *sample)
{
    if (!etwatch_sample_has(sample, ETWATCH_M_cycles))
        return true;
    struct process *process = find(summary, sample);
    if (process == NULL)
        process = enter(summary, sample);
    if (process == NULL)
        return false;
    uint32_t index = thread_at(process, sample->tid);
    bool known = index < process->thread_count && process->threads[index].tid == sample->tid;
    if (!known && !enter_thread(process, index, sample->tid))
        return false;
    process->threads[index].cycles += sample->cycles;
    return true;
}

static bool add_one(struct etwatch_summary *summary, const struct etwatch_sample *sample)
{
    if (sample->type == ETWATCH_TYPE_THREAD)
        return add_thread(summary, sample);
    if (sample->t_ns > summary->latest_ns)
        summary->latest_ns = sample->t_ns;
    struct process *process = find(summary, sample);
    if (process == NULL)
        process = enter(summary, sample);
    if (process == NULL)
        return false;
    struct etwatch_sample *kept = &process->sample;
    kept->source = sample->source;
    kept->flags = sample->flags;
    kept->ppid = sample->ppid;
    kept->session_id = sample->session_id;
    kept->t_ns = sample->t_ns;
    kept->dt_ns = sample->dt_ns;
    process->last_ns = sample->t_ns;
    bool whole = keep_texts(kept, sample);
    if (sample->type == ETWATCH_TYPE_EXIT)
        whole = end_process(summary, process, sample) && whole;
    merge(kept, sample);
    if (sample->type != ETWATCH_TYPE_SAMPLE)
        return whole;
    process->samples++;
    process->busy_ns += sample->dt_ns;
    if (sample->dt_ns > process->longest_ns)
        process->longest_ns = sample->dt_ns;
    return hold(process, sample) && whole;
}

void etwatch_summary_add(void *ctx, const struct etwatch_samples *batch)
{
    struct etwatch_summary *summary = ctx;
    struct etwatch_sample scratch;
    struct ew_items items;
    if (summary == NULL || ew_items_in(&items, batch) < 0)
        return;
    ew_mutex_lock(summary->lock);
    for (size_t i = 0; i < items.count; i++)
        if (!add_one(summary, ew_items_at(&items, i, &scratch, sizeof scratch)))
            summary->dropped++;
    ew_mutex_unlock(summary->lock);
    if (summary->options.on_samples != NULL)
        summary->options.on_samples(summary->options.ctx, batch);
}

void etwatch_summary_on_devices(void *ctx, const struct etwatch_devices *batch)
{
    struct etwatch_summary *summary = ctx;
    if (summary != NULL && batch != NULL && summary->options.on_devices != NULL)
        summary->options.on_devices(summary->options.ctx, batch);
}

/* ------------------------------------------------------------------- reporting */

/* Intervals without a sample: the process was idle in them. */
static uint64_t idle_intervals(const struct process *process, uint64_t until_ns)
{
    if (process->longest_ns == 0 || until_ns <= process->first_ns)
        return 0;
    uint64_t whole_ns = until_ns - process->first_ns;
    uint64_t idle_ns = whole_ns > process->busy_ns ? whole_ns - process->busy_ns : 0;
    return (idle_ns + process->longest_ns / 2) / process->longest_ns;
}

static void describe(const struct etwatch_summary *summary, const struct process *process,
                     struct etwatch_aggregate metrics[KEPT_COUNT],
                     struct etwatch_summary_process *ret_process)
{
    uint64_t until_ns = process->ended ? process->last_ns : summary->latest_ns;
    uint64_t idle = idle_intervals(process, until_ns);
    static const struct ew_sparse_histogram nothing;
    for (uint32_t i = 0; i < KEPT_COUNT; i++) {
        const struct ew_sparse_histogram *spread =
            process->spread == NULL ? &nothing : &process->spread[i];
        bool zero = i >= ETWATCH_METRIC_COUNT || ew_sparse_histogram_idle_is_zero(i);
        ew_sparse_histogram_result(spread, zero ? idle : 0, &metrics[i]);
    }
    *ret_process = (struct etwatch_summary_process){
        .size = sizeof *ret_process,
        .flags = process->ended ? ETWATCH_SUMMARY_ENDED : 0,
        .first_ns = process->first_ns,
        .last_ns = until_ns,
        .samples = process->samples,
        .sample = &process->sample,
        .metrics = metrics,
        .metric_count = ETWATCH_METRIC_COUNT,
        .thread_count = process->thread_count,
        .threads = process->threads,
        .sums = metrics + ETWATCH_METRIC_COUNT,
        .sum_count = ETWATCH_SUM_COUNT,
    };
}

int etwatch_summary_for_each(struct etwatch_summary *summary, uint32_t pid,
                             void (*on_process)(void *ctx,
                                                const struct etwatch_summary_process *process),
                             void *ctx)
{
    struct etwatch_aggregate metrics[KEPT_COUNT];
    struct etwatch_summary_process shown;
    int count = 0;
    if (summary == NULL || on_process == NULL)
        return ETWATCH_EINVAL;
    ew_mutex_lock(summary->lock);
    for (struct process *process = summary->oldest; process != NULL; process = process->newer) {
        if (pid != 0 && process->sample.pid != pid)
            continue;
        if (!spread_held(process))
            summary->dropped++;
        describe(summary, process, metrics, &shown);
        on_process(ctx, &shown);
        count++;
    }
    ew_mutex_unlock(summary->lock);
    return count;
}

uint64_t etwatch_summary_dropped(struct etwatch_summary *summary)
{
    if (summary == NULL)
        return 0;
    ew_mutex_lock(summary->lock);
    uint64_t dropped = summary->dropped;
    ew_mutex_unlock(summary->lock);
    return dropped;
}

/* ----------------------------------------------------------------------- life */

int etwatch_summary_new(const struct etwatch_summary_options *options,
                        struct etwatch_summary **ret_summary)
{
    struct etwatch_summary_options own = {.size = sizeof own};
    if (ret_summary == NULL)
        return ETWATCH_EINVAL;
    int error = options == NULL ? 0 : ew_sized_in(&own, sizeof own, options, "options", NULL);
    if (error != 0)
        return error;
    struct etwatch_summary *summary = ew_calloc(1, sizeof *summary);
    if (summary == NULL)
        return ETWATCH_ENOMEM;
    summary->options = own;
    summary->max_processes = summary->options.max_processes;
    if (summary->max_processes == 0)
        summary->max_processes = DEFAULT_PROCESSES;
    error = ew_mutex_new(&summary->lock);
    if (error != 0) {
        ew_free(summary);
        return error;
    }
    *ret_summary = summary;
    return 0;
}

void etwatch_summary_free(struct etwatch_summary *summary)
{
    if (summary == NULL)
        return;
    for (struct process *process = summary->oldest, *next; process != NULL; process = next) {
        next = process->newer;
        free_process(process);
    }
    ew_mutex_free(summary->lock);
    ew_free(summary);
}
