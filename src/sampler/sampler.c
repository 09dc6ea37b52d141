/* SPDX-License-Identifier: MIT */
/*
 * The sampler's public functions: create, free, the callbacks for a source, and queries. The work
 * is done in readings.c, lifecycle.c, pending.c, deliver.c and sample.c.
 */
#include "sampler/sampler.h"

#include <string.h>

#include "base/alloc.h"
#include "sampler/internal.h"

/* Converts public metrics: counters of the source are known to be 0 where nothing ran. */
static uint32_t available_counters(const struct etwatch_metric_set *available)
{
    uint32_t mask = 0;
#define EW_X(name) \
    mask |= etwatch_metric_set_has(available, ETWATCH_M_##name) ? EW_HAS_C(name) : 0u;
    EW_COUNTERS(EW_X)
#undef EW_X
    return mask;
}

static bool interval_valid(uint64_t interval_ns)
{
    return interval_ns >= EW_INTERVAL_MIN_NS && interval_ns <= EW_INTERVAL_MAX_NS;
}

void ew_sampler_set_available(struct ew_sampler *sampler,
                              const struct etwatch_metric_set *available)
{
    sampler->known_counters = available_counters(available);
}

int ew_sampler_new(const struct ew_sampler_config *config, struct ew_sampler **ret_sampler)
{
    if (config->emit == NULL || !interval_valid(config->interval_ns) ||
        config->max_processes == 0 || config->max_threads == 0)
        return ETWATCH_EINVAL;
    struct ew_sampler *sampler = ew_calloc(1, sizeof *sampler);
    if (sampler == NULL)
        return ETWATCH_ENOMEM;
    sampler->config = *config;
    if (etwatch_metric_set_is_empty(&config->metrics))
        memset(&sampler->config.metrics, 0xFF, sizeof sampler->config.metrics);
    sampler->known_counters = available_counters(&config->available);
    ew_ledger_init(&sampler->ledger, config->max_processes, config->max_threads);
    ew_pool_init(&sampler->cells, sizeof(struct ew_cell));
    ew_ticks_init(&sampler->ticks, config->epoch_ns, config->interval_ns);
    sampler->first_ns = sampler->latest_ns = config->epoch_ns;
    *ret_sampler = sampler;
    return 0;
}

static void free_aggregates(struct ew_sampler *sampler)
{
    const struct ew_pool *pool = &sampler->ledger.processes;
    for (uint32_t ref = 1; ref <= ew_pool_last(pool); ref++) {
        struct ew_process *process = ew_pool_at(pool, ref);
        if (process->self != 0)
            ew_sample_forget_aggregate(process);
    }
}

void ew_sampler_free(struct ew_sampler *sampler)
{
    if (sampler == NULL)
        return;
    free_aggregates(sampler);
    ew_free(sampler->ring);
    ew_pool_done(&sampler->cells);
    ew_ledger_done(&sampler->ledger);
    ew_free(sampler);
}

static void on_process(void *ctx, const struct ew_process_fact *fact)
{
    ew_lifecycle_fact(ctx, fact);
}

static void on_reading(void *ctx, const struct ew_reading *reading)
{
    ew_reading_take(ctx, reading);
}

static void on_event(void *ctx, const struct etwatch_event *event)
{
    struct ew_sampler *sampler = ctx;
    if (sampler->config.event == NULL)
        return;
    struct etwatch_event out = *event;
    out.t_ns += (uint64_t)sampler->config.unix_minus_raw_ns;
    if (out.kind == ETWATCH_EVENT_FAULTS)
        out.from_ns += (uint64_t)sampler->config.unix_minus_raw_ns;
    sampler->config.event(sampler->config.ctx, &out, 1);
}

/* Keeps the range of a loss until all samples that it affects are delivered. */
static void note_loss(struct ew_sampler *sampler, uint64_t from_ns, uint64_t to_ns)
{
    if (to_ns < from_ns)
        to_ns = from_ns;
    /* Reported too late for the samples it affects: marks the next ones instead. */
    if (to_ns < sampler->first_ns)
        to_ns = sampler->first_ns;
    if (to_ns > sampler->loss_seen_ns)
        sampler->loss_seen_ns = to_ns;
    if (sampler->loss_count < EW_LOSS_RANGES) {
        sampler->losses[sampler->loss_count++] = (struct ew_range){from_ns, to_ns};
        return;
    }
    struct ew_range *last = &sampler->losses[EW_LOSS_RANGES - 1];
    last->from_ns = from_ns < last->from_ns ? from_ns : last->from_ns;
    last->to_ns = to_ns > last->to_ns ? to_ns : last->to_ns;
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct ew_sampler *sampler = ctx;
    sampler->counts.lost += loss->count;
    if (loss->stage == ETWATCH_LOSS_KERNEL_LOG || loss->stage == ETWATCH_LOSS_LIFECYCLE)
        note_loss(sampler, loss->from_ns, loss->to_ns);
    if (sampler->config.loss == NULL)
        return;
    struct etwatch_loss out = *loss;
    out.size = sizeof out;
    out.from_ns += (uint64_t)sampler->config.unix_minus_raw_ns;
    out.to_ns += (uint64_t)sampler->config.unix_minus_raw_ns;
    sampler->config.loss(sampler->config.ctx, &out);
}

static void on_expect(void *ctx, const uint32_t *tids, uint32_t count)
{
    struct ew_sampler *sampler = ctx;
    ew_ledger_fetch(&sampler->ledger, tids, count);
}

static void on_all_seen(void *ctx, uint64_t since_ns)
{
    ew_lifecycle_all_seen(ctx, since_ns);
}

/* An allocation failure is kept and returned by the next cut. */
static void on_over(void *ctx, uint64_t end_ns)
{
    struct ew_sampler *sampler = ctx;
    if (ew_sampler_deliver(sampler, end_ns) == ETWATCH_ENOMEM)
        sampler->failure = ETWATCH_ENOMEM;
}

static void on_use(void *ctx, const struct ew_device_use *use)
{
    (void)ew_sampler_device(ctx, use);
}

void ew_sampler_facts(struct ew_sampler *sampler, struct ew_facts *ret_facts)
{
    *ret_facts = (struct ew_facts){
        .ctx = sampler,
        .process = on_process,
        .reading = on_reading,
        .expect = on_expect,
        .event = on_event,
        .loss = on_loss,
        .all_seen = on_all_seen,
        .over = on_over,
        .use = on_use,
    };
}

int ew_sampler_set_interval(struct ew_sampler *sampler, uint64_t at_ns, uint64_t interval_ns)
{
    if (!interval_valid(interval_ns))
        return ETWATCH_EINVAL;
    if (sampler->config.rounds)
        return 0;
    if (at_ns < sampler->first_ns || at_ns <= sampler->latest_ns)
        return ETWATCH_ESTATE;
    return ew_ticks_change(&sampler->ticks, at_ns, interval_ns);
}

/* A process that still runs; exited ones only wait to be delivered. */
static struct ew_process *find_live(const struct ew_sampler *sampler, uint32_t pid)
{
    struct ew_process *process = ew_ledger_find_process(&sampler->ledger, pid, 0);
    return process != NULL && (process->flags & EW_P_EXITING) == 0 ? process : NULL;
}

int ew_sampler_snapshot(const struct ew_sampler *sampler, uint32_t pid,
                        struct etwatch_sample *ret_sample, char *buffer, size_t buffer_size)
{
    const struct ew_process *process = find_live(sampler, pid);
    if (process == NULL)
        return ETWATCH_ENOENT;
    ew_sample_totals(sampler, process, ret_sample);
    if (buffer != NULL && buffer_size > 0 && process->name != NULL) {
        size_t len = strlen(process->name);
        len = len < buffer_size ? len : buffer_size - 1;
        memcpy(buffer, process->name, len);
        buffer[len] = '\0';
        ret_sample->name = buffer;
    }
    return 0;
}

int ew_sampler_aggregate(const struct ew_sampler *sampler, uint32_t pid, uint32_t metric,
                         struct etwatch_aggregate *ret_aggregate)
{
    if (metric != ETWATCH_M_cpu_percent && metric != ETWATCH_M_rss_bytes)
        return ETWATCH_EINVAL;
    if (!sampler->config.aggregate)
        return ETWATCH_ESTATE;
    const struct ew_process *process = find_live(sampler, pid);
    if (process == NULL)
        return ETWATCH_ENOENT;
    struct ew_aggregate copy;
    ew_aggregate_init(&copy);
    uint64_t unknown = 0;
    if (process->aggregate != NULL) {
        copy = metric == ETWATCH_M_cpu_percent ? process->aggregate->cpu_percent
                                               : process->aggregate->rss_bytes;
        unknown = process->aggregate->unknown;
    }
    if (metric == ETWATCH_M_cpu_percent && sampler->first > process->first_index) {
        uint64_t intervals = sampler->first - process->first_index;
        if (intervals > copy.count + unknown)
            ew_aggregate_add_zeros(&copy, intervals - copy.count - unknown);
    }
    ew_aggregate_result(&copy, ret_aggregate);
    return 0;
}

int ew_sampler_forget(struct ew_sampler *sampler, uint32_t pid)
{
    struct ew_process *process = find_live(sampler, pid);
    if (process == NULL)
        return ETWATCH_ENOENT;
    while (process->threads != 0) {
        struct ew_thread *thread = ew_pool_at(&sampler->ledger.threads, process->threads);
        ew_ledger_retire_thread(&sampler->ledger, thread);
        if (thread->cells == NULL)
            ew_ledger_free_thread(&sampler->ledger, thread);
    }
    ew_lifecycle_end(sampler, process, sampler->latest_ns, EW_P_FORGOTTEN);
    return 0;
}

void ew_sampler_counts(const struct ew_sampler *sampler, struct ew_sampler_counts *ret_counts)
{
    *ret_counts = sampler->counts;
    ret_counts->processes = sampler->ledger.processes.used;
    ret_counts->threads = sampler->ledger.threads.used;
}
