/* SPDX-License-Identifier: MIT */
/*
 * Which thread runs on which CPU, and since when. Invariant, for every CPU and up to its since_ns:
 * the time since the start of the recording equals the time of its threads, its idle thread, its
 * interrupts and its unknown time, to the nanosecond, less what is in irq_ns.
 *
 * Interrupt time belongs to the CPU. An interrupt is recorded when it ends, so its time is
 * subtracted from the run it interrupted; a longer interrupt contains the shorter ones recorded
 * before it.
 */
#include <string.h>

#include "base/alloc.h"
#include "tally/internal.h"
#include "tally/pmc.h"

/* States of an outgoing thread. */
enum { STATE_READY = 1, STATE_RUNNING = 2, STATE_STANDBY = 3, STATE_TERMINATED = 4 };
enum { STATE_DEFERRED_READY = 7, REASON_YIELD_EXECUTION = 33 };

/* The thread is runnable and waits only for a CPU: preempted, end of quantum, or it yielded. */
static bool stays_ready(uint8_t state)
{
    uint32_t ready =
        1u << STATE_READY | 1u << STATE_RUNNING | 1u << STATE_STANDBY | 1u << STATE_DEFERRED_READY;
    return (ready >> (state & 31) & 1) != 0;
}

bool ew_run_grow(struct ew_tally *tally, uint32_t count)
{
    if (count > EW_CPUS_MAX)
        return false;
    struct ew_tally_cpu *cpus = ew_realloc_array(tally->cpus, count, sizeof *cpus);
    if (cpus == NULL) {
        ew_tally_short_of_memory(tally);
        return false;
    }
    tally->cpus = cpus;
    for (uint32_t i = tally->cpu_count; i < count; i++)
        cpus[i] = (struct ew_tally_cpu){.since_ns = tally->config.first_ns,
                                        .began_ns = tally->config.first_ns,
                                        .last_ns = tally->config.first_ns};
    tally->cpu_count = count;
    return true;
}

static struct ew_tally_cpu *cpu_of(struct ew_tally *tally, const struct ew_event *event)
{
    if (event->cpu >= tally->cpu_count && !ew_run_grow(tally, event->cpu + 1u))
        return NULL;
    return &tally->cpus[event->cpu];
}

void ew_run_charge(struct ew_tally *tally, struct ew_tally_cpu *cpu, uint64_t t_ns)
{
    if (t_ns < cpu->since_ns)
        t_ns = cpu->since_ns;
    /* May be negative: an interrupt may have started before the last charge. */
    uint64_t spent_ns = t_ns - cpu->since_ns - cpu->irq_ns;
    cpu->since_ns = t_ns;
    cpu->irq_ns = 0;
    if (cpu->running == NULL) {
        tally->unknown_ns += spent_ns;
        return;
    }
    cpu->running->cpu_ns += spent_ns;
    tally->run_ns += spent_ns;
}

static void begin_run(struct ew_tally_cpu *cpu, struct ew_tally_thread *thread, uint32_t tid,
                      uint64_t t_ns)
{
    cpu->running = thread;
    cpu->tid = tid;
    cpu->since_ns = cpu->began_ns = t_ns;
    if (cpu->irqs != NULL)
        cpu->irqs->count = 0;
}

void ew_run_blind(struct ew_tally *tally, struct ew_tally_cpu *cpu, uint64_t since_ns)
{
    struct ew_tally_thread *running = cpu->running;
    if (running != NULL && (running->flags & EW_TT_IDLE) == 0)
        running->flags |= EW_TT_INCOMPLETE;
    ew_run_charge(tally, cpu, since_ns);
    begin_run(cpu, NULL, 0, cpu->since_ns);
    if (!cpu->blind) {
        cpu->blind = true;
        tally->blind_cpus++;
    }
}

static void lose_on(struct ew_tally *tally, struct ew_tally_cpu *cpu, uint64_t t_ns)
{
    /* Up to the CPU's last event, its running thread is certain. */
    ew_run_blind(tally, cpu, cpu->last_ns < t_ns ? cpu->last_ns : t_ns);
}

void ew_run_lose(struct ew_tally *tally, uint16_t cpu, uint64_t t_ns, uint64_t count,
                 enum etwatch_loss_stage stage)
{
    uint64_t from_ns = cpu < tally->cpu_count ? tally->cpus[cpu].last_ns : tally->now_ns;
    for (uint32_t i = 0; i < tally->cpu_count; i++)
        if (cpu == UINT16_MAX || cpu == i)
            lose_on(tally, &tally->cpus[i], t_ns);
    ew_graphics_lose(tally);
    tally->lost += count;
    tally->losses++;
    tally->lost_ns = t_ns;
    if (count == 0 || tally->facts == NULL || tally->facts->loss == NULL || tally->interval_ns == 0)
        return;
    struct etwatch_loss loss = {.size = sizeof loss,
                                .stage = stage,
                                .count = count,
                                .from_ns = from_ns < t_ns ? from_ns : t_ns,
                                .to_ns = t_ns};
    tally->facts->loss(tally->facts->ctx, &loss);
}

/* The outgoing thread is not the one known to run here: the time is charged to unknown_ns. */
static struct ew_tally_thread *enter_unknown(struct ew_tally *tally, struct ew_tally_cpu *cpu,
                                             const struct ew_event *event, uint64_t t_ns)
{
    if (cpu->running != NULL) {
        tally->inconsistent++;
        ew_run_blind(tally, cpu, cpu->since_ns);
    }
    ew_run_charge(tally, cpu, t_ns);
    struct ew_tally_thread *thread = ew_threads_find(tally, event->tid);
    if (thread == NULL && event->u.cswitch.old_state != STATE_TERMINATED)
        thread = ew_threads_get(tally, event->tid);
    if (thread != NULL && (thread->flags & EW_TT_IDLE) == 0) {
        ew_facts_active(tally, thread, t_ns);
        thread->flags |= EW_TT_INCOMPLETE;
    }
    if (cpu->blind) {
        cpu->blind = false;
        tally->blind_cpus--;
    }
    return thread;
}

/* The reason of a switch is unpredictable, so there are no branches on it. */
static void leave(struct ew_tally *tally, struct ew_tally_thread *thread,
                  const struct ew_event *event, uint64_t t_ns)
{
    bool ready = stays_ready(event->u.cswitch.old_state);
    bool taken = ready & (event->u.cswitch.old_wait_reason != REASON_YIELD_EXECUTION);
    thread->involuntary += taken;
    thread->voluntary += !taken;
    /* A thread made ready while it was about to wait is runnable from now on as well. */
    thread->ready_ns = t_ns & (0 - (uint64_t)(ready | (thread->ready_ns != 0)));
    if (event->u.cswitch.old_state == STATE_TERMINATED && (thread->flags & EW_TT_IDLE) == 0)
        ew_threads_end(tally, thread, t_ns);
}

/* Adds the time the incoming thread waited for a CPU. */
static void enter(const struct ew_tally *tally, struct ew_tally_thread *thread, uint64_t t_ns)
{
    uint64_t ready_ns = thread->ready_ns;
    bool waited = (ready_ns > tally->lost_ns) & (ready_ns < t_ns);
    thread->runq_ns += (t_ns - ready_ns) & (0 - (uint64_t)waited);
    thread->ready_ns = 0;
}

void ew_run_switch(struct ew_tally *tally, const struct ew_event *event)
{
    ew_tally_saw(tally, EW_TALLY_SWITCHES);
    tally->switches++;
    struct ew_tally_cpu *cpu = cpu_of(tally, event);
    if (cpu == NULL) {
        tally->unattributed++;
        return;
    }
    uint64_t t_ns = event->t_ns > cpu->since_ns ? event->t_ns : cpu->since_ns;
    uint32_t new_tid = event->u.cswitch.new_tid;
    struct ew_tally_thread *old = cpu->running;
    bool sure = old != NULL && cpu->tid == event->tid;
    if (sure)
        ew_run_charge(tally, cpu, t_ns);
    else
        old = enter_unknown(tally, cpu, event, t_ns);
    if ((event->u.cswitch.pmc_count | tally->pmc_seen) != 0)
        ew_tally_pmc_switch(tally, cpu, event, sure ? old : NULL);
    begin_run(cpu, NULL, 0, t_ns);
    if (old != NULL) {
        if (old->process == NULL)
            old->cold->orphans++;
        leave(tally, old, event, t_ns);
    }
    struct ew_tally_thread *thread = ew_threads_find(tally, new_tid);
    if (thread == NULL) {
        thread = ew_threads_add(tally, NULL, new_tid);
        if (thread == NULL) {
            tally->unattributed++;
            return;
        }
    }
    /* A thread runs on one CPU at a time: its switch away from another one is missing. That CPU
     * must not keep it, because a thread that ends leaves only the CPU it names. */
    if (thread->cpu != event->cpu && (thread->flags & EW_TT_IDLE) == 0 &&
        ew_threads_running(tally, thread))
        ew_run_blind(tally, &tally->cpus[thread->cpu], tally->cpus[thread->cpu].last_ns);
    ew_facts_active(tally, thread, t_ns);
    enter(tally, thread, t_ns);
    thread->cpu = event->cpu;
    thread->priority = event->u.cswitch.new_priority;
    cpu->running = thread;
    cpu->tid = new_tid;
}

void ew_run_ready(struct ew_tally *tally, const struct ew_event *event)
{
    ew_tally_saw(tally, EW_TALLY_READY);
    if (event->tid == 0)
        return;
    struct ew_tally_thread *thread = ew_threads_find(tally, event->tid);
    if (thread == NULL && (thread = ew_threads_add(tally, NULL, event->tid)) == NULL) {
        tally->unattributed++;
        return;
    }
    bool since_before = thread->ready_ns > tally->lost_ns;
    thread->ready_ns = since_before ? thread->ready_ns : event->t_ns;
    if (thread->process == NULL)
        thread->cold->orphans++;
}

/* ---------------------------------------------------------------------- samples */

void ew_run_interval(struct ew_tally *tally, const struct ew_event *event)
{
    if (event->u.interval.profile_source == 0 && event->u.interval.interval_100ns != 0 &&
        event->u.interval.interval_100ns < UINT64_C(1) << 40)
        tally->sample_ns = event->u.interval.interval_100ns * 100;
}

/* Adds the time that a sample stands for, by mode. */
static void count_sample(const struct ew_tally *tally, struct ew_tally_thread_cold *cold,
                         uint32_t count, bool in_kernel)
{
    bool early = tally->sample_ns == 0; /* the sampling interval is still unknown */
    uint64_t amount = early ? count : count * tally->sample_ns;
    cold->work[early ? EW_WORK_SAMPLES_EARLY : EW_WORK_SAMPLE_NS] += amount;
    if (in_kernel)
        cold->work[early ? EW_WORK_KERNEL_EARLY : EW_WORK_KERNEL_NS] += amount;
}

void ew_run_sample(struct ew_tally *tally, const struct ew_event *event)
{
    ew_tally_saw(tally, EW_TALLY_SAMPLES);
    uint32_t count = event->u.sample.count == 0 ? 1 : event->u.sample.count;
    tally->samples += count;
    struct ew_tally_thread *thread = ew_threads_find(tally, event->tid);
    if (thread == NULL && event->tid != EW_NO_ID)
        thread = ew_work_thread(tally, event->tid, event->t_ns);
    if (thread == NULL) {
        tally->unattributed++;
        return;
    }
    ew_facts_active(tally, thread, event->t_ns);
    struct ew_tally_thread_cold *cold = thread->cold;
    cold->work[EW_WORK_SAMPLES] += count;
    if (thread->process == NULL)
        cold->orphans++;
    if (event->u.sample.in_dpc || event->u.sample.in_isr)
        tally->sampled_irq[event->u.sample.in_isr ? 1 : 0] += count;
    else
        count_sample(tally, cold, count, event->u.sample.in_kernel);
}

/* ------------------------------------------------------------------- interrupts */

/* Returns the part of [from_ns, to_ns] that no earlier interrupt covers, and marks it as covered.
 */
static uint64_t take_irq(struct ew_tally_irqs *irqs, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t within_ns = 0;
    while (irqs->count > 0 && irqs->irq[irqs->count - 1].from_ns >= from_ns)
        within_ns += irqs->irq[--irqs->count].spent_ns;
    if (irqs->count > 0 && irqs->irq[irqs->count - 1].to_ns > from_ns)
        from_ns = irqs->irq[irqs->count - 1]
                      .to_ns; /* overlap, which should not happen: do not count it twice */
    if (from_ns > to_ns)
        from_ns = to_ns;
    uint64_t own_ns = to_ns - from_ns > within_ns ? to_ns - from_ns - within_ns : 0;
    if (irqs->count == EW_IRQ_DEPTH) {
        /* Merges the oldest two; the gap between them counts as covered from now on. */
        irqs->irq[0].to_ns = irqs->irq[1].to_ns;
        irqs->irq[0].spent_ns += irqs->irq[1].spent_ns;
        memmove(&irqs->irq[1], &irqs->irq[2], (EW_IRQ_DEPTH - 2) * sizeof irqs->irq[0]);
        irqs->count--;
    }
    irqs->irq[irqs->count].from_ns = from_ns;
    irqs->irq[irqs->count].to_ns = to_ns;
    irqs->irq[irqs->count++].spent_ns = own_ns + within_ns;
    return own_ns;
}

void ew_run_interrupt(struct ew_tally *tally, const struct ew_record *record,
                      const struct ew_event *event)
{
    ew_tally_saw(tally, EW_TALLY_INTERRUPTS);
    struct ew_tally_cpu *cpu = cpu_of(tally, event);
    if (cpu == NULL || tally->config.raw_to_ns == NULL) {
        tally->unattributed++;
        return;
    }
    if (cpu->irqs == NULL) {
        cpu->irqs = ew_calloc(1, sizeof *cpu->irqs);
        if (cpu->irqs == NULL) {
            ew_tally_short_of_memory(tally);
            return;
        }
    }
    uint64_t from_ns =
        tally->config.raw_to_ns(tally->config.clock_ctx, record, event->u.interrupt.began_raw);
    uint64_t to_ns = event->t_ns > cpu->began_ns ? event->t_ns : cpu->began_ns;
    from_ns = from_ns > cpu->began_ns ? from_ns : cpu->began_ns;
    from_ns = from_ns < to_ns ? from_ns : to_ns;
    uint64_t own_ns = take_irq(cpu->irqs, from_ns, to_ns);
    cpu->irq_ns += own_ns;
    if (event->u.interrupt.is_isr)
        tally->isr_ns += own_ns;
    else
        tally->dpc_ns += own_ns;
}
