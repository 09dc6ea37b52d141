/* SPDX-License-Identifier: MIT */
/*
 * Writes the objects and delivers them in batches. The batch is zeroed once: each object rewrites
 * every field that any object ever sets, which is far fewer than a sample has. The strings belong
 * to ledger entries, which therefore outlive the flush.
 */
#include "sampler/internal.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sid.h"

static const uint64_t no_counters[EW_COUNTER_COUNT];
static const uint64_t no_gauges[EW_GAUGE_COUNT - EW_GAUGE_BASE_COUNT];

static const uint64_t *more_of(const struct ew_process *process)
{
    return process->more != NULL ? process->more->gauge : NULL;
}

static uint64_t to_unix(const struct ew_sampler *sampler, uint64_t raw_ns)
{
    return raw_ns + (uint64_t)sampler->config.unix_minus_raw_ns;
}

/* Converts the dense bits to a public set. */
static struct etwatch_metric_set translate_counters(uint32_t mask)
{
    struct etwatch_metric_set has = {{0}};
#define EW_X(name)                    \
    if ((mask & EW_HAS_C(name)) != 0) \
        etwatch_metric_set_add(&has, ETWATCH_M_##name);
    EW_COUNTERS(EW_X)
#undef EW_X
    return has;
}

static struct etwatch_metric_set translate_gauges(uint32_t mask)
{
    struct etwatch_metric_set has = {{0}};
#define EW_X(name)                    \
    if ((mask & EW_HAS_G(name)) != 0) \
        etwatch_metric_set_add(&has, ETWATCH_M_##name);
    EW_GAUGES(EW_X)
#undef EW_X
    return has;
}

static void put_counters(struct ew_sampler *sampler, struct etwatch_sample *out, uint32_t mask,
                         const uint64_t *counter)
{
    mask &= ~sampler->unproven;
    if (mask != sampler->memo_counters) {
        sampler->memo_counters = mask;
        sampler->memo_counters_has = translate_counters(mask);
    }
    etwatch_metric_set_union(&out->has, &sampler->memo_counters_has);
#define EW_X(name) out->name = counter[EW_C_##name];
    EW_COUNTERS_BASE(EW_X)
    sampler->more_counters |= mask >> EW_COUNTER_BASE_COUNT != 0;
    if (sampler->more_counters) {
        EW_COUNTERS_MORE(EW_X)
    }
#undef EW_X
}

/* Gauges are stored as 64 bits, independent of the metric's type. */
#define EW_X(name) \
    static_assert(sizeof((struct etwatch_sample *)0)->name == sizeof(uint64_t), "same size");
EW_GAUGES(EW_X)
#undef EW_X

static void put_gauges(struct ew_sampler *sampler, struct etwatch_sample *out, uint32_t mask,
                       const uint64_t *gauge, const uint64_t *more)
{
    if (mask != sampler->memo_gauges) {
        sampler->memo_gauges = mask;
        sampler->memo_gauges_has = translate_gauges(mask);
    }
    etwatch_metric_set_union(&out->has, &sampler->memo_gauges_has);
    uint64_t value = 0;
    sampler->more_gauges |= mask >> EW_GAUGE_BASE_COUNT != 0;
    if (mask == 0) {
#define EW_X(name) memcpy(&out->name, &value, sizeof value);
        EW_GAUGES_BASE(EW_X)
        if (sampler->more_gauges) {
            EW_GAUGES_MORE(EW_X)
        }
#undef EW_X
        return;
    }
    if (more == NULL)
        more = no_gauges;
#define EW_X(name)                                                                             \
    value = ew_gauge_of(gauge, more, EW_G_##name) & (0 - (uint64_t)(mask >> EW_G_##name & 1)); \
    memcpy(&out->name, &value, sizeof value);
    EW_GAUGES_BASE(EW_X)
    if (sampler->more_gauges) {
        EW_GAUGES_MORE(EW_X)
    }
#undef EW_X
}

static void put_devices(struct etwatch_sample *out, uint32_t has, const uint64_t *values)
{
    if (has == 0) { /* nearly always */
#define EW_X(name) out->name = 0;
        EW_DEVICE_VALUES(EW_X)
#undef EW_X
        return;
    }
#define EW_X(name)                                                       \
    out->name = (has & EW_HAS_DV(name)) != 0 ? values[EW_DV_##name] : 0; \
    if ((has & EW_HAS_DV(name)) != 0)                                    \
        etwatch_metric_set_add(&out->has, ETWATCH_M_##name);
    EW_DEVICE_VALUES(EW_X)
#undef EW_X
}

static void put_device_totals(struct etwatch_sample *out, const struct ew_process *process)
{
    const struct ew_process_more *more = process->more;
    put_devices(out, more != NULL ? more->device_has : 0, more != NULL ? more->device : NULL);
}

/* After the counters and gauges: adds derived values and removes metrics that are not requested. */
static void put_rest(const struct ew_sampler *sampler, struct etwatch_sample *out)
{
    out->cpu_percent = 0;
    if (etwatch_sample_has(out, ETWATCH_M_cpu_ns) && out->dt_ns != 0) {
        etwatch_metric_set_add(&out->has, ETWATCH_M_cpu_percent);
        out->cpu_percent = 100.0 * (double)out->cpu_ns / (double)out->dt_ns;
    }
    out->gpu_percent = out->npu_percent = 0;
    if (etwatch_sample_has(out, ETWATCH_M_gpu_ns) && out->dt_ns != 0) {
        etwatch_metric_set_add(&out->has, ETWATCH_M_gpu_percent);
        out->gpu_percent = 100.0 * (double)out->gpu_ns / (double)out->dt_ns;
    }
    if (etwatch_sample_has(out, ETWATCH_M_npu_ns) && out->dt_ns != 0) {
        etwatch_metric_set_add(&out->has, ETWATCH_M_npu_percent);
        out->npu_percent = 100.0 * (double)out->npu_ns / (double)out->dt_ns;
    }
    etwatch_metric_set_intersect(&out->has, &sampler->config.metrics);
}

void ew_sample_flush(struct ew_sampler *sampler)
{
    if (sampler->batch_count > 0)
        sampler->config.emit(sampler->config.ctx, sampler->batch, sampler->batch_count);
    sampler->batch_count = 0;
}

static void describe(struct ew_sampler *sampler, struct ew_process *process)
{
    process->flags |= EW_P_DESCRIBED;
    if (sampler->config.describe == NULL) {
        if (process->user != NULL &&
            ew_ledger_set_text(&sampler->ledger, &process->user, ew_sid_name(process->user)) < 0)
            sampler->failure = ETWATCH_ENOMEM;
        return;
    }
    const char *user = NULL, *cgroup = NULL, *cmdline = NULL;
    sampler->config.describe(sampler->config.ctx, process->pid, process->uid, process->user,
                             process->cgroup_id, &user, &cgroup, &cmdline);
    struct ew_ledger *ledger = &sampler->ledger;
    /* Unknown strings (the process may have exited) keep their value. */
    if ((user != NULL && ew_ledger_set_text(ledger, &process->user, user) < 0) ||
        (cgroup != NULL && ew_ledger_set_text(ledger, &process->cgroup, cgroup) < 0) ||
        (cmdline != NULL && ew_ledger_set_text(ledger, &process->cmdline, cmdline) < 0))
        sampler->failure = ETWATCH_ENOMEM;
}

static void put_identity(const struct ew_sampler *sampler, const struct ew_process *process,
                         uint32_t type, struct etwatch_sample *out)
{
    out->size = sizeof *out;
    out->type = type;
    out->source = sampler->config.source;
    out->flags = ((process->flags & EW_P_HAS_PPID) != 0 ? ETWATCH_SAMPLE_HAS_PPID : 0u) |
                 ((process->flags & EW_P_HAS_SESSION) != 0 ? ETWATCH_SAMPLE_HAS_SESSION : 0u);
    out->pid = process->pid;
    out->tid = 0;
    out->ppid = process->ppid;
    out->session_id = process->session_id;
    out->start_ns = process->start_ns == 0 ? 0 : to_unix(sampler, process->start_ns);
    out->name = process->name;
    out->thread_name = NULL;
    out->user = process->user;
    out->cgroup = process->cgroup;
    out->cmdline = process->cmdline;
    out->has = (struct etwatch_metric_set){{0}};
    out->exit_ns = 0;
    out->exit_code = out->exit_signal = 0;
}

static struct etwatch_sample *next_object(struct ew_sampler *sampler, struct ew_process *process,
                                          uint32_t type)
{
    /* Must precede its first object of this cut: the batch must not refer to strings that this
     * replaces. */
    if ((process->flags & EW_P_DESCRIBED) == 0)
        describe(sampler, process);
    if (sampler->batch_count == EW_BATCH)
        ew_sample_flush(sampler);
    struct etwatch_sample *out = &sampler->batch[sampler->batch_count++];
    sampler->counts.objects++;
    put_identity(sampler, process, type, out);
    return out;
}

void ew_sample_start(struct ew_sampler *sampler, struct ew_process *process)
{
    process->flags |= EW_P_ANNOUNCED;
    struct etwatch_sample *out = next_object(sampler, process, ETWATCH_TYPE_START);
    if ((process->flags & EW_P_UNKNOWN) == 0)
        out->flags |= ETWATCH_SAMPLE_COMPLETE;
    if ((process->flags & EW_P_SEEN) != 0)
        out->flags |= ETWATCH_SAMPLE_PREEXISTING;
    out->t_ns = to_unix(sampler, process->watched_ns);
    out->dt_ns = 0;
    put_counters(sampler, out, 0, no_counters);
    put_gauges(sampler, out, process->gauge_has, process->gauge, more_of(process));
    put_devices(out, 0, NULL);
    put_rest(sampler, out);
}

/* Gauges read before this time belong to this cell: the end of the process's next cell. */
static uint64_t gauges_until(const struct ew_sampler *sampler, const struct ew_cell *cell)
{
    if (cell == NULL)
        return 0; /* idle: the process may have run since */
    return cell->next == NULL ? UINT64_MAX : ew_ticks_end(&sampler->ticks, cell->next->index);
}

static void aggregate(struct ew_sampler *sampler, struct ew_process *process,
                      const struct etwatch_sample *sample)
{
    if (process->aggregate == NULL) {
        process->aggregate = ew_calloc(1, sizeof *process->aggregate);
        if (process->aggregate == NULL) {
            sampler->failure = ETWATCH_ENOMEM;
            return;
        }
    }
    int r = 0;
    if (etwatch_sample_has(sample, ETWATCH_M_cpu_percent))
        r = ew_aggregate_add(&process->aggregate->cpu_percent, sample->cpu_percent);
    else
        process->aggregate->unknown++;
    if (r == 0 && etwatch_sample_has(sample, ETWATCH_M_rss_bytes))
        r = ew_aggregate_add(&process->aggregate->rss_bytes, (double)sample->rss_bytes);
    if (r < 0)
        sampler->failure = r;
}

void ew_sample_forget_aggregate(struct ew_process *process)
{
    if (process->aggregate == NULL)
        return;
    ew_aggregate_done(&process->aggregate->cpu_percent);
    ew_aggregate_done(&process->aggregate->rss_bytes);
    ew_free(process->aggregate);
    process->aggregate = NULL;
}

static void thread_object(struct ew_sampler *sampler, const struct ew_cell *cell, uint64_t begin_ns,
                          uint64_t end_ns, uint32_t flags)
{
    const struct ew_thread *thread = cell->thread;
    struct etwatch_sample *out = next_object(sampler, cell->process, ETWATCH_TYPE_THREAD);
    sampler->counts.samples++;
    out->tid = thread->tid;
    out->thread_name = thread->name;
    out->flags |= (cell->flags & EW_CELL_INCOMPLETE) != 0 ? 0 : flags;
    out->t_ns = to_unix(sampler, end_ns);
    if (thread->start_ns > begin_ns && thread->start_ns < end_ns)
        begin_ns = thread->start_ns;
    out->dt_ns = end_ns > begin_ns ? end_ns - begin_ns : 0;
    put_counters(sampler, out, cell->has, cell->counter);
    uint64_t gauge[EW_GAUGE_BASE_COUNT] = {0};
    gauge[EW_G_priority] = (uint64_t)(int64_t)thread->priority;
    gauge[EW_G_affinity] = thread->affinity;
    bool true_now = thread->gauge_ns >= end_ns || thread->gauge_ns >= thread->credited_ns;
    put_gauges(sampler, out, cell->next == NULL && true_now ? thread->gauge_has : 0, gauge, NULL);
    put_devices(out, 0, NULL);
    put_rest(sampler, out);
}

uint32_t ew_sample_idle_counters(const struct ew_sampler *sampler, const struct ew_process *process)
{
    if (!sampler->config.rounds)
        return sampler->known_counters;
    return process->round_has; /* polling reads what changed: the last reading is still valid */
}

void ew_sample_interval(struct ew_sampler *sampler, struct ew_process *process,
                        struct ew_cell *cell)
{
    bool final = cell != NULL && (cell->flags & EW_CELL_FINAL) != 0;
    uint64_t begin_ns = final ? cell->begin_ns : sampler->first_ns;
    uint64_t end_ns = final ? process->exit_ns : sampler->interval_end_ns;
    if (process->start_ns > begin_ns && process->start_ns < end_ns)
        begin_ns = process->start_ns;
    uint32_t has = cell != NULL ? cell->has : ew_sample_idle_counters(sampler, process);
    bool missed = cell != NULL && (cell->flags & EW_CELL_INCOMPLETE) != 0;
    if (final && has == 0 && !missed && (process->flags & EW_P_READ) != 0)
        has = ew_sample_idle_counters(sampler, process);
    uint32_t flags = ETWATCH_SAMPLE_COMPLETE;
    if ((final || sampler->interval_lossy) && ew_deliver_lossy(sampler, begin_ns, end_ns))
        flags = 0;

    process->emitted = (uint32_t)sampler->first + 1;
    process->flags |= EW_P_SAMPLED;
    struct etwatch_sample *out = next_object(sampler, process, ETWATCH_TYPE_SAMPLE);
    sampler->counts.samples++;
    out->flags |= missed ? 0 : flags;
    out->t_ns = to_unix(sampler, end_ns);
    out->dt_ns = end_ns > begin_ns ? end_ns - begin_ns : 0;
    put_counters(sampler, out, has, cell != NULL ? cell->counter : no_counters);
    uint32_t gauges = ew_gauges_at(process, end_ns, gauges_until(sampler, cell));
    put_gauges(sampler, out, gauges, process->gauge, more_of(process));
    if (!etwatch_sample_has(out, ETWATCH_M_rss_bytes) && cell != NULL &&
        (cell->flags & EW_CELL_RSS) != 0) {
        etwatch_metric_set_add(&out->has, ETWATCH_M_rss_bytes);
        out->rss_bytes = cell->rss_bytes;
    }
    put_devices(out, cell != NULL ? cell->device_has : 0, cell != NULL ? cell->device : NULL);
    put_rest(sampler, out);
    if (sampler->config.aggregate)
        aggregate(sampler, process, out);
    if (cell == NULL)
        return;
    for (const struct ew_cell *child = cell->children; child != NULL; child = child->follower)
        thread_object(sampler, child, begin_ns, end_ns, flags);
}

static uint32_t total_counters(const struct ew_process *process)
{
    return process->total_has | process->exit_has;
}

void ew_sample_exit(struct ew_sampler *sampler, struct ew_process *process)
{
    struct etwatch_sample *out = next_object(sampler, process, ETWATCH_TYPE_EXIT);
    uint32_t uncertain = EW_P_UNKNOWN | EW_P_REPLACED | EW_P_LOSSY;
    bool lossless = sampler->loss_seen_ns == 0 || sampler->loss_seen_ns < process->watched_ns;
    if ((process->flags & uncertain) == 0 && lossless)
        out->flags |= ETWATCH_SAMPLE_COMPLETE;
    out->t_ns = to_unix(sampler, process->exit_ns);
    out->dt_ns = process->start_ns == 0 ? 0 : process->exit_ns - process->start_ns;
    put_counters(sampler, out, total_counters(process), process->value);
    put_gauges(sampler, out, ew_gauges_at(process, process->exit_ns, UINT64_MAX), process->gauge,
               more_of(process));
    put_device_totals(out, process);
    put_rest(sampler, out);
    if ((process->flags & EW_P_REPLACED) == 0) {
        out->exit_ns = out->t_ns;
        etwatch_metric_set_add(&out->has, ETWATCH_M_exit_ns);
    }
    if ((process->flags & EW_P_EXIT_STATUS) != 0) {
        out->exit_code = process->exit_code;
        out->exit_signal = process->exit_signal;
        etwatch_metric_set_add(&out->has, ETWATCH_M_exit_code);
        etwatch_metric_set_add(&out->has, ETWATCH_M_exit_signal);
    }
}

void ew_sample_totals(const struct ew_sampler *sampler, const struct ew_process *process,
                      struct etwatch_sample *ret_sample)
{
    struct etwatch_sample out = {0};
    put_identity(sampler, process, ETWATCH_TYPE_SAMPLE, &out);
    out.name = out.user = out.cgroup = out.cmdline = NULL;
    if ((process->flags & (EW_P_UNKNOWN | EW_P_LOSSY)) == 0)
        out.flags |= ETWATCH_SAMPLE_COMPLETE;
    uint64_t now_ns =
        sampler->latest_ns > sampler->first_ns ? sampler->latest_ns : sampler->first_ns;
    out.t_ns = to_unix(sampler, now_ns);
    if (process->start_ns != 0 && process->start_ns < now_ns)
        out.dt_ns = now_ns - process->start_ns;
    uint32_t mask = total_counters(process) & ~sampler->unproven;
    struct etwatch_metric_set gauges = translate_gauges(process->gauge_has);
    out.has = translate_counters(mask);
    etwatch_metric_set_union(&out.has, &gauges);
#define EW_X(name)                    \
    if ((mask & EW_HAS_C(name)) != 0) \
        out.name = process->value[EW_C_##name];
    EW_COUNTERS(EW_X)
#undef EW_X
    const uint64_t *more = more_of(process) != NULL ? more_of(process) : no_gauges;
#define EW_X(name)                                                                 \
    memcpy(&out.name, &(uint64_t){ew_gauge_of(process->gauge, more, EW_G_##name)}, \
           sizeof(uint64_t));
    EW_GAUGES(EW_X)
#undef EW_X
    put_device_totals(&out, process);
    put_rest(sampler, &out);
    *ret_sample = out;
}
