/* SPDX-License-Identifier: MIT */
/* What leaves the poll source: its figures as facts. Everything carries the time of the round. */
#include "source/poll/poll.h"

#include <string.h>

void ew_poll_tell_reading(struct ew_poll *poll, const struct ew_reading *reading)
{
    poll->stats.events++;
    poll->facts->reading(poll->facts->ctx, reading);
}

void ew_poll_tell_full(struct ew_poll *poll, uint64_t count)
{
    struct etwatch_loss loss = {.size = sizeof loss,
                                .stage = ETWATCH_LOSS_TABLE,
                                .count = count,
                                .from_ns = poll->now_ns,
                                .to_ns = poll->now_ns};
    poll->stats.lost += count;
    poll->facts->loss(poll->facts->ctx, &loss);
}

void ew_poll_tell_process(struct ew_poll *poll, const struct ew_poll_process *process,
                          const struct ew_proc_stat *stat, enum ew_process_kind kind)
{
    struct ew_process_fact fact = {.kind = kind,
                                   .has = EW_HAS_NAME,
                                   .t_ns = poll->now_ns,
                                   .start_ns = process->start_ns,
                                   .pid = process->pid};
    memcpy(fact.name, process->name, sizeof fact.name);
    if (process->uid_known) {
        fact.has |= EW_HAS_UID;
        fact.uid = process->uid;
    }
    if (stat) {
        fact.has |= EW_HAS_PPID | EW_HAS_SESSION;
        fact.ppid = stat->ppid;
        fact.session_id = stat->session;
        fact.kernel_thread = stat->kernel_thread;
        fact.gauge_has = process->gauge_has;
        memcpy(fact.gauge, process->gauge, sizeof fact.gauge);
    }
    if (kind == EW_PROCESS_SEEN) {
        fact.counter_has = process->counter_has;
        memcpy(fact.counter, process->counter, sizeof fact.counter);
    }
    /* The kernel shows the status to those who may also read io, and 0 to all others. */
    if (kind == EW_PROCESS_EXIT && stat && !process->io_denied) {
        fact.has |= EW_HAS_EXIT_STATUS;
        fact.exit_signal = stat->exit_code & 0x7f;
        fact.exit_code = fact.exit_signal ? 0 : stat->exit_code >> 8;
    }
    poll->stats.events++;
    poll->facts->process(poll->facts->ctx, &fact);
}

void ew_poll_tell_counters(struct ew_poll *poll, const struct ew_poll_process *process,
                           bool incomplete)
{
    struct ew_reading reading = {.kind = EW_READING_AT,
                                 .pid = process->pid,
                                 .start_ns = process->start_ns,
                                 .t_ns = poll->now_ns,
                                 .incomplete = incomplete,
                                 .counter_has = process->counter_has,
                                 .gauge_has = process->gauge_has};
    memcpy(reading.counter, process->counter, sizeof reading.counter);
    memcpy(reading.gauge, process->gauge, sizeof reading.gauge);
    ew_poll_tell_reading(poll, &reading);
}
