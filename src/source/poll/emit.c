/* SPDX-License-Identifier: MIT */
/* Facts that the poll source emits for a process. Every fact carries the time of the round. */
#include "source/poll/poll.h"

#include <string.h>

void ew_poll_emit_process(struct ew_poll *poll, const struct ew_poll_process *process,
                          const struct ew_proc_stat *stat, enum ew_process_kind kind)
{
    struct ew_process_fact fact = {.kind = kind,
                                   .has = EW_HAS_NAME,
                                   .t_ns = poll->base.now_ns,
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
        fact.gauge_has = process->figures.gauge_has;
        memcpy(fact.gauge, process->figures.gauge, sizeof fact.gauge);
    }
    if (kind == EW_PROCESS_SEEN) {
        fact.counter_has = process->figures.counter_has;
        memcpy(fact.counter, process->figures.counter, sizeof fact.counter);
    }
    /* The kernel reveals the exit status only to a caller that may read io, else 0. */
    if (kind == EW_PROCESS_EXIT && stat && !process->io_denied) {
        fact.has |= EW_HAS_EXIT_STATUS;
        fact.exit_signal = stat->exit_code & 0x7f;
        fact.exit_code = fact.exit_signal ? 0 : stat->exit_code >> 8;
    }
    poll->base.stats.events++;
    poll->base.facts->process(poll->base.facts->ctx, &fact);
}
