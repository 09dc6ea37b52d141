/* SPDX-License-Identifier: MIT */
/*
 * Attributes what sensors read to processes and intervals.
 *
 * A reading covers the time since the reading before it, which may cross interval ends and may
 * begin before the oldest undelivered interval. Its counts are distributed evenly over the part
 * that is not delivered yet. If most of the time is already delivered (the driver hung, or it is
 * read less often than samples are cut), only the share of the open part goes to intervals: those
 * that were delivered without it stay unknown, and no interval gets the activity of others. The
 * totals of the process always get everything.
 *
 * Energy that CPU time causes is attributed in proportion to it: the CPU time of each pending cell
 * against that of the whole machine. What unwatched processes caused is left over.
 */
#include "sampler/internal.h"

/* The first values are counters, the last one is a gauge. */
enum { DEVICE_COUNTERS = EW_DV_gpu_memory_bytes };
_Static_assert(EW_DEVICE_VALUE_COUNT == DEVICE_COUNTERS + 1, "one gauge, at the end");

/* The part of [from_ns, t_ns] that is not delivered yet. */
struct span {
    uint64_t from_ns, t_ns;
    uint64_t open_from_ns;
    uint64_t first, last; /* intervals */
};

static bool open_span(struct ew_sampler *sampler, uint64_t from_ns, uint64_t t_ns,
                      struct span *ret_span)
{
    if (t_ns <= from_ns || t_ns <= sampler->first_ns)
        return false;
    *ret_span = (struct span){.from_ns = from_ns, .t_ns = t_ns};
    ret_span->open_from_ns = from_ns > sampler->first_ns ? from_ns : sampler->first_ns;
    ret_span->first = ew_pending_clamp(sampler, ew_pending_index(sampler, ret_span->open_from_ns));
    ret_span->last = ew_pending_clamp(sampler, ew_pending_index(sampler, t_ns - 1));
    sampler->late = false;
    return true;
}

/* How much of a count goes to the open part. */
static uint64_t open_part(const struct span *span, uint64_t count)
{
    uint64_t open_ns = span->t_ns - span->open_from_ns, all_ns = span->t_ns - span->from_ns;
    return open_ns >= all_ns / 2 ? count : ew_distribute_scale(count, open_ns, all_ns);
}

/* The time up to which interval `index` shares the span. */
static uint64_t span_end(const struct ew_sampler *sampler, const struct span *span, uint64_t index)
{
    if (index >= span->last || sampler->config.rounds)
        return span->t_ns;
    uint64_t end_ns = ew_ticks_end(&sampler->ticks, index);
    return end_ns < span->t_ns ? end_ns : span->t_ns;
}

/* The cell of an interval that exists already, or NULL. */
static struct ew_cell *find_cell(const struct ew_process *process, uint64_t index)
{
    struct ew_cell *cell = ew_pending_newest(process);
    while (cell != NULL && cell->index > index)
        cell = cell->prev;
    bool match = cell != NULL && cell->index == index;
    return match ? cell : NULL;
}

/* A process that used only a device in this interval: its other counters are known to be 0. */
static void complete_new(struct ew_sampler *sampler, const struct ew_process *process,
                         struct ew_cell *cell)
{
    if (cell->has == 0 && (cell->flags & EW_CELL_INCOMPLETE) == 0)
        cell->has = ew_sample_idle_counters(sampler, process);
}

static void put_in_cell(struct ew_cell *cell, uint32_t has, const uint64_t *counts,
                        uint64_t memory_bytes)
{
    for (uint32_t i = 0; i < DEVICE_COUNTERS; i++)
        cell->device[i] += counts[i];
    if ((has & EW_HAS_DV(gpu_memory_bytes)) != 0)
        cell->device[EW_DV_gpu_memory_bytes] = memory_bytes;
    cell->device_has |= has;
}

static void distribute(struct ew_sampler *sampler, struct ew_process *process,
                       const struct ew_device_use *use, uint32_t has, const uint64_t *totals)
{
    struct span span;
    if (!open_span(sampler, use->from_ns, use->t_ns, &span))
        return;
    uint64_t parts[DEVICE_COUNTERS], done[DEVICE_COUNTERS] = {0};
    for (uint32_t i = 0; i < DEVICE_COUNTERS; i++)
        parts[i] = open_part(&span, totals[i]);
    for (uint64_t index = span.first; index <= span.last; index++) {
        uint64_t passed_ns = span_end(sampler, &span, index) - span.open_from_ns;
        uint64_t counts[DEVICE_COUNTERS], any = 0;
        for (uint32_t i = 0; i < DEVICE_COUNTERS; i++) {
            uint64_t up_to =
                ew_distribute_scale(parts[i], passed_ns, span.t_ns - span.open_from_ns);
            counts[i] = up_to - done[i];
            done[i] = up_to;
            any |= counts[i];
        }
        struct ew_cell *cell =
            any != 0 ? ew_pending_cell(sampler, process, NULL, index) : find_cell(process, index);
        if (cell == NULL)
            continue;
        complete_new(sampler, process, cell);
        put_in_cell(cell, has, counts, use->process.memory_bytes);
    }
    sampler->late = false;
}

static uint32_t values_of(uint32_t has)
{
    return ((has & ETWATCH_DEVICE_PROCESS_GPU_TIME) != 0 ? EW_HAS_DV(gpu_ns) : 0u) |
           ((has & ETWATCH_DEVICE_PROCESS_NPU_TIME) != 0 ? EW_HAS_DV(npu_ns) : 0u) |
           ((has & ETWATCH_DEVICE_PROCESS_CODEC_TIME) != 0
                ? EW_HAS_DV(gpu_encoder_ns) | EW_HAS_DV(gpu_decoder_ns)
                : 0u) |
           ((has & ETWATCH_DEVICE_PROCESS_ENERGY) != 0 ? EW_HAS_DV(energy_uj) : 0u) |
           ((has & ETWATCH_DEVICE_PROCESS_MEMORY) != 0 ? EW_HAS_DV(gpu_memory_bytes) : 0u);
}

bool ew_sampler_device(struct ew_sampler *sampler, const struct ew_device_use *use)
{
    struct ew_process *process =
        ew_ledger_find_process_at(&sampler->ledger, use->process.pid, use->t_ns);
    struct ew_process_more *more = process == NULL ? NULL : ew_gauges_more(sampler, process);
    if (more == NULL)
        return false;
    uint32_t has = values_of(use->process.has) | (use->has_presents ? EW_HAS_DV(presents) : 0u);
    uint64_t totals[DEVICE_COUNTERS] = {
        [EW_DV_gpu_ns] = use->process.gpu_ns,
        [EW_DV_npu_ns] = use->process.npu_ns,
        [EW_DV_energy_uj] = use->process.energy_uj,
        [EW_DV_presents] = use->presents,
        [EW_DV_gpu_encoder_ns] = use->process.encoder_ns,
        [EW_DV_gpu_decoder_ns] = use->process.decoder_ns,
    };
    for (uint32_t i = 0; i < DEVICE_COUNTERS; i++) {
        totals[i] = (has >> i & 1) != 0 ? totals[i] : 0;
        more->device[i] += totals[i];
    }
    if ((has & EW_HAS_DV(gpu_memory_bytes)) != 0)
        more->device[EW_DV_gpu_memory_bytes] = use->process.memory_bytes;
    more->device_has |= has;
    distribute(sampler, process, use, has, totals);
    return true;
}

/* ------------------------------------------------------------------------- energy */

/* The CPU time of a cell inside the span, if it is spread evenly over the interval. */
static uint64_t cpu_inside(const struct ew_sampler *sampler, const struct span *span,
                           const struct ew_cell *cell)
{
    uint64_t cpu_ns = (cell->has & EW_HAS_C(cpu_ns)) != 0 ? cell->counter[EW_C_cpu_ns] : 0;
    uint64_t begin_ns = ew_pending_start_ns(sampler, cell->index);
    uint64_t end_ns =
        sampler->config.rounds ? sampler->latest_ns : ew_ticks_end(&sampler->ticks, cell->index);
    uint64_t from_ns = begin_ns > span->open_from_ns ? begin_ns : span->open_from_ns;
    uint64_t to_ns = end_ns < span->t_ns ? end_ns : span->t_ns;
    if (cpu_ns == 0 || end_ns <= begin_ns || to_ns <= from_ns)
        return 0;
    return ew_distribute_scale(cpu_ns, to_ns - from_ns, end_ns - begin_ns);
}

/* The cells of an interval; NULL: none. */
static struct ew_cell *cells_of(struct ew_sampler *sampler, uint64_t index)
{
    return index < sampler->end_index ? ew_pending_bucket(sampler, index)->first : NULL;
}

static uint64_t cpu_of_all(struct ew_sampler *sampler, const struct span *span)
{
    uint64_t sum_ns = 0;
    for (uint64_t index = span->first; index <= span->last && index < sampler->end_index; index++)
        for (const struct ew_cell *cell = cells_of(sampler, index); cell != NULL;
             cell = cell->follower)
            sum_ns += (cell->flags & EW_CELL_VOID) != 0 ? 0 : cpu_inside(sampler, span, cell);
    return sum_ns;
}

static void add_energy(struct ew_sampler *sampler, struct ew_cell *cell, uint64_t energy_uj)
{
    struct ew_process_more *more = ew_gauges_more(sampler, cell->process);
    if (more != NULL) {
        more->device[EW_DV_energy_uj] += energy_uj;
        more->device_has |= EW_HAS_DV(energy_uj);
    }
    cell->device[EW_DV_energy_uj] += energy_uj;
    cell->device_has |= EW_HAS_DV(energy_uj);
}

uint64_t ew_sampler_energy(struct ew_sampler *sampler, const struct ew_energy_use *use)
{
    struct span span;
    if (!open_span(sampler, use->from_ns, use->t_ns, &span))
        return 0;
    uint64_t watched_ns = cpu_of_all(sampler, &span);
    if (watched_ns == 0)
        return 0;
    uint64_t busy_ns =
        ew_distribute_scale(use->busy_ns, span.t_ns - span.open_from_ns, span.t_ns - span.from_ns);
    busy_ns = busy_ns > watched_ns ? busy_ns : watched_ns;
    uint64_t energy_uj = ew_distribute_scale(open_part(&span, use->energy_uj), watched_ns, busy_ns);
    uint64_t passed_ns = 0, done_uj = 0;
    for (uint64_t index = span.first; index <= span.last && index < sampler->end_index; index++) {
        for (struct ew_cell *cell = cells_of(sampler, index); cell != NULL; cell = cell->follower) {
            if ((cell->flags & EW_CELL_VOID) != 0)
                continue;
            passed_ns += cpu_inside(sampler, &span, cell);
            uint64_t up_to = ew_distribute_scale(energy_uj, passed_ns, watched_ns);
            add_energy(sampler, cell, up_to - done_uj);
            done_uj = up_to;
        }
    }
    return done_uj;
}
