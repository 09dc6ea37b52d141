/* SPDX-License-Identifier: MIT */
/*
 * Owns a poll source for one query. It reads one process with the code of a round, but neither
 * lists the directory nor keeps anything.
 */
#include "source/snapshot.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "os/os.h"
#include "source/poll/poll.h"

/* The maximum of Linux. */
#define LISTED_MAX 4194304u

static int open_poll(bool threads, const struct ew_facts *facts, struct ew_poll **ret_poll,
                     struct ew_error *reterr)
{
    struct ew_source_config config = {.threads = threads,
                                      .max_processes = 1,
                                      .proc_root = "/proc",
                                      .metrics = ew_metrics_measurable()};
    etwatch_metric_set_subtract(&config.metrics, &ew_slow_gauge_states);
    long ticks = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    struct ew_poll_units units = {.ticks_per_s = ticks > 0 ? (uint64_t)ticks : 100,
                                  .page_bytes = page > 0 ? (uint64_t)page : 4096};
    int rc = ew_poll_open(&config, &units, ret_poll, reterr);
    if (rc < 0)
        return rc;
    (*ret_poll)->base.facts = facts;
    (*ret_poll)->base.now_ns = ew_os_raw_ns();
    (*ret_poll)->base.round = 1;
    return 0;
}

static void close_poll(struct ew_poll *poll)
{
    poll->base.source.ops->close(&poll->base.source);
}

static int emit_one(struct ew_poll *poll, uint32_t pid, struct ew_error *reterr)
{
    struct ew_proc_stat stat;
    uint64_t cpu_ns = 0;
    int fd = -1;
    enum ew_poll_result result = ew_poll_read_stat(poll, pid, 0, false, &fd, &stat);
    struct ew_poll_process *process = NULL;
    if (result == EW_POLL_READ) {
        process = ew_poll_process_new(&stat, ew_poll_start_ns(poll, &stat));
        if (!process)
            return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
        ew_slow_gauges_ran(&process->slow);
        bool cpu_known = poll->files.own_ids && ew_proc_cpu_ns(pid, &cpu_ns) == EW_PROC_OK;
        result = ew_poll_process_read(poll, process, cpu_known, cpu_ns, &stat);
    }
    if (result == EW_POLL_READ) {
        memcpy(process->name, stat.comm, sizeof process->name);
        process->figures.gauge_has &= ~EW_HAS_G(handles_peak); /* a single reading has no peak */
        ew_poll_emit_process(poll, process, &stat, EW_PROCESS_SEEN);
        ew_poll_threads_emit(poll, process);
    }
    ew_poll_process_free(poll, process);
    if (result == EW_POLL_UNREADABLE)
        return ew_error_set(reterr, ETWATCH_EPERM, 0, "process %u cannot be read", pid);
    return result == EW_POLL_READ ? 0
                                  : ew_error_set(reterr, ETWATCH_ENOENT, 0, "no process %u", pid);
}

int ew_snapshot_process(uint32_t pid, bool threads, const struct ew_facts *facts,
                        struct ew_error *reterr)
{
    struct ew_poll *poll;
    int rc = open_poll(threads, facts, &poll, reterr);
    if (rc < 0)
        return rc;
    rc = emit_one(poll, pid, reterr);
    close_poll(poll);
    return rc;
}

int ew_snapshot_all(const struct ew_facts *facts, struct ew_error *reterr)
{
    struct ew_poll *poll;
    int rc = open_poll(false, facts, &poll, reterr);
    if (rc < 0)
        return rc;
    rc = ew_proc_list(&poll->files, 0, LISTED_MAX, &poll->listed);
    if (rc < 0)
        (void)ew_error_set(reterr, rc, 0, "cannot list %s", poll->files.root);
    for (uint32_t i = 0; rc >= 0 && i < poll->listed.count; i++) {
        struct ew_proc_stat stat;
        int fd = -1;
        if (ew_poll_read_stat(poll, poll->listed.ids[i], 0, false, &fd, &stat) != EW_POLL_READ)
            continue; /* ended since it was listed */
        struct ew_process_fact fact = {.kind = EW_PROCESS_SEEN,
                                       .has = EW_HAS_PPID,
                                       .t_ns = poll->base.now_ns,
                                       .start_ns = ew_poll_start_ns(poll, &stat),
                                       .pid = stat.pid,
                                       .ppid = stat.ppid};
        facts->process(facts->ctx, &fact);
    }
    close_poll(poll);
    return rc < 0 ? rc : 0;
}
