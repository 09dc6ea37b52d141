/* SPDX-License-Identifier: MIT */
/*
 * Gauges of a process, and the samples for which they are valid. Gauges come in classes that are
 * read together (model/counter.h): the time is kept per class; gauge_now has the gauges that the
 * last reading of their class contained. A gauge missing from the last reading of its class is no
 * longer valid, but START and the totals still report it as the latest known value.
 */
#include "base/alloc.h"
#include "sampler/internal.h"

static const uint32_t class_masks[EW_GAUGE_CLASS_COUNT] = EW_GAUGE_CLASS_MASKS;

struct ew_process_more *ew_gauges_more(struct ew_sampler *sampler, struct ew_process *process)
{
    if (process->more == NULL)
        process->more = ew_calloc(1, sizeof *process->more);
    if (process->more == NULL)
        sampler->failure = ETWATCH_ENOMEM;
    return process->more;
}

/* Allocates room for the gauges that few sources read. */
static bool has_room(struct ew_sampler *sampler, struct ew_process *process, uint32_t has)
{
    return has >> EW_GAUGE_BASE_COUNT == 0 || ew_gauges_more(sampler, process) != NULL;
}

static void store(struct ew_process *process, uint32_t has, const uint64_t *gauge)
{
    for (; has != 0; has &= has - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(has);
        if (i < EW_GAUGE_BASE_COUNT)
            process->gauge[i] = gauge[i];
        else
            process->more->gauge[i - EW_GAUGE_BASE_COUNT] = gauge[i];
    }
}

void ew_gauges_take(struct ew_sampler *sampler, struct ew_process *process, uint32_t has,
                    const uint64_t *gauge, uint64_t t_ns)
{
    if (!has_room(sampler, process, has))
        has &= (1u << EW_GAUGE_BASE_COUNT) - 1;
    for (uint32_t i = 0; i < EW_GAUGE_CLASS_COUNT; i++) {
        uint32_t of_class = has & class_masks[i];
        if (of_class == 0 || t_ns < process->gauge_ns[i])
            continue;
        if (t_ns > process->gauge_ns[i])
            process->gauge_now &= ~class_masks[i];
        process->gauge_now |= of_class;
        process->gauge_has |= of_class;
        process->gauge_ns[i] = t_ns;
        store(process, of_class, gauge);
    }
    ew_pending_gauges_read(sampler, process, t_ns);
}

uint32_t ew_gauges_at(const struct ew_process *process, uint64_t end_ns, uint64_t until_ns)
{
    uint32_t has = 0;
    bool rests = process->active_ns <= end_ns; /* it has not run since end_ns */
    /* Fast path for high rates: all gauges are older than the interval's end, or belong to a later
     * one. */
    if (process->gauges_ns < (rests ? process->active_ns : end_ns) ||
        (!rests && process->gauges_since_ns >= until_ns))
        return 0;
    for (uint32_t i = 0; i < EW_GAUGE_CLASS_COUNT; i++) {
        uint64_t read_ns = process->gauge_ns[i];
        bool after = read_ns >= end_ns && read_ns < until_ns;
        bool unchanged = rests && read_ns >= process->active_ns;
        if (after || unchanged)
            has |= class_masks[i];
    }
    return has & process->gauge_now;
}
