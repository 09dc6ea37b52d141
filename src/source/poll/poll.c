/* SPDX-License-Identifier: MIT */
/*
 * Owns the round. Each drain is one round: which processes exist, which of them are watched, what
 * they did.
 *
 * The cost of a round follows what happened, not the number of processes: a process is not read
 * while its CPU clock stands still, and the directory is not listed while the kernel has assigned
 * no new id. Both need the /proc of our own pid namespace; in any other tree every round reads
 * everything.
 *
 * Every fact of a round carries the time of the round: the time of a start or exit between two
 * rounds is not known more precisely. A process that starts and exits between two rounds is never
 * seen.
 */
#include "source/poll/poll.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "model/metric.h"

/* How long the exit or a change of an ignored process may go unnoticed; likewise a new process
 * with an id that the kernel assigned out of order. */
#define SCAN_PERIOD_NS UINT64_C(1000000000)
/* Memory of a process that does not run changes only through other processes. */
#define GAUGE_PERIOD_NS UINT64_C(5000000000)
/* A process is forked under its parent's name and gets its own by exec: it is checked again
 * during this time. */
#define YOUNG_NS UINT64_C(1000000000)

/* ----------------------------------------------------- start and end of watching */

static void emit_figures(struct ew_poll *poll, const struct ew_poll_process *process,
                         bool incomplete)
{
    ew_poller_emit_figures(&poll->base, process->pid, process->start_ns, &process->figures,
                           incomplete);
}

/* A process that no longer exists: what it did since the last round is lost. */
static void end_unseen(struct ew_poll *poll, struct ew_poll_entry *entry)
{
    if (entry->process) {
        entry->process->figures.gauge_has = 0;
        emit_figures(poll, entry->process, true);
        ew_poll_emit_process(poll, entry->process, NULL, EW_PROCESS_EXIT);
    }
    ew_poller_unwatch(&poll->base, entry, EW_POLL_ENDED);
}

/* A zombie: its counters are final. */
static void end_zombie(struct ew_poll *poll, struct ew_poll_entry *entry,
                       const struct ew_proc_stat *stat)
{
    emit_figures(poll, entry->process, entry->process->figures.fell);
    ew_poll_emit_process(poll, entry->process, stat, EW_PROCESS_EXIT);
    ew_poller_unwatch(&poll->base, entry, EW_POLL_ENDED);
}

/* Starts to watch. *found is its stat as read a moment ago. */
static void begin(struct ew_poll *poll, struct ew_poll_entry *entry,
                  const struct ew_proc_stat *found, bool preexisting)
{
    struct ew_proc_stat stat;
    uint64_t cpu_ns = 0;
    struct ew_poll_process *process = NULL;
    if (poll->base.watched_count < poll->base.max_watched)
        process = ew_poll_process_new(found, entry->start_ns);
    if (!process) {
        entry->state = EW_POLL_NO_SPACE;
        ew_poller_emit_full(&poll->base, 1);
        return;
    }
    bool cpu_known = poll->files.own_ids && ew_proc_cpu_ns(entry->pid, &cpu_ns) == EW_PROC_OK;
    process->busy = !poll->files.own_ids;
    ew_slow_gauges_ran(&process->slow);
    enum ew_poll_result result = ew_poll_process_read(poll, process, cpu_known, cpu_ns, &stat);
    if (result != EW_POLL_READ || (preexisting && process->ended)) {
        entry->state = result == EW_POLL_READ ? EW_POLL_ENDED : EW_POLL_IGNORED;
        ew_poll_process_free(poll, process);
        return;
    }
    memcpy(process->name, stat.comm, sizeof process->name);
    entry->process = process;
    entry->state = EW_POLL_WATCHED;
    entry->checked_cpu_ns = cpu_ns;
    poll->base.watched_count++;
    ew_poll_emit_process(poll, process, &stat, preexisting ? EW_PROCESS_SEEN : EW_PROCESS_START);
    if (process->ended) {
        end_zombie(poll, entry, &stat);
        return;
    }
    if (!preexisting)
        emit_figures(poll, process, false);
    ew_poll_threads_emit(poll, process);
}

/* --------------------------------------------------------------------- filter */

/* Applies the filter to an entry that is not watched. */
static void decide(struct ew_poll *poll, struct ew_poll_entry *entry,
                   const struct ew_proc_stat *stat)
{
    if (entry->state != EW_POLL_IGNORED)
        return;
    if (!entry->tree && ew_poller_in_tree(&poll->base, entry))
        entry->tree = poll->base.has_trees = true;
    if (!entry->tree && !ew_poll_filter_match(poll, stat))
        return;
    /* A process found after the first round has started since the previous one. */
    bool preexisting = poll->base.round == 1 || entry->found_ns != poll->base.now_ns;
    begin(poll, entry, stat, preexisting);
}

static void describe(struct ew_poll *poll, struct ew_poll_entry *entry,
                     const struct ew_proc_stat *stat)
{
    entry->ppid = stat->ppid;
    entry->start_ns = ew_poll_start_ns(poll, stat);
    entry->kernel_thread = stat->kernel_thread;
}

/* Reads the stat of an entry that is not watched and applies the filter. */
static void evaluate(struct ew_poll *poll, struct ew_poll_entry *entry)
{
    struct ew_proc_stat stat;
    int fd = -1;
    if (ew_poll_read_stat(poll, entry->pid, 0, false, &fd, &stat) != EW_POLL_READ)
        return;
    if (entry->start_ns != 0 && entry->start_ns != ew_poll_start_ns(poll, &stat))
        *entry = (struct ew_poll_entry){
            .pid = entry->pid, .round = entry->round, .found_ns = poll->base.now_ns};
    describe(poll, entry, &stat);
    decide(poll, entry, &stat);
}

/* A child may precede its parent in the list: repeats until no process joins a tree. */
static void grow_trees(struct ew_poll *poll)
{
    bool joined;
    do {
        joined = false;
        for (uint32_t i = 0; i < poll->base.table.count; i++) {
            struct ew_poll_entry *entry = &poll->base.table.entries[i];
            if (entry->state == EW_POLL_IGNORED && !entry->tree &&
                ew_poller_in_tree(&poll->base, entry)) {
                entry->tree = poll->base.has_trees = joined = true;
                evaluate(poll, entry);
            }
        }
    } while (joined);
    poll->base.tree_changed = false;
}

static void decide_fresh(struct ew_poll *poll)
{
    for (uint32_t i = 0; i < poll->fresh.count; i++) {
        struct ew_poll_entry *entry = ew_poll_table_find(&poll->base.table, poll->fresh.ids[i]);
        if (entry)
            evaluate(poll, entry);
    }
    if (poll->base.tree_changed || (poll->base.has_trees && poll->fresh.count))
        grow_trees(poll);
    poll->base.filter.pid_count = 0;
}

/* ------------------------------------------------------------------ discovery */

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void find_one(struct ew_poll *poll, uint32_t pid)
{
    struct ew_poll_entry *entry = ew_poll_table_find(&poll->base.table, pid);
    if (entry) {
        entry->round = poll->base.round;
        return;
    }
    entry = ew_poll_table_add(&poll->base.table, pid);
    if (!entry) {
        poll->base.overflow++;
        return;
    }
    entry->round = poll->base.round;
    entry->found_ns = poll->base.now_ns;
    poll->fresh.ids[poll->fresh.count++] = pid;
}

static int reserve_fresh(struct ew_poll *poll, uint32_t count)
{
    poll->fresh.count = 0;
    if (count <= poll->fresh.capacity)
        return 0;
    uint32_t *grown = ew_realloc_array(poll->fresh.ids, count, sizeof *grown);
    if (!grown)
        return ETWATCH_ENOMEM;
    poll->fresh.ids = grown;
    poll->fresh.capacity = count;
    return 0;
}

/* Lists the directory; afterwards every entry with an older round has exited. */
static int scan(struct ew_poll *poll, struct ew_error *reterr)
{
    int rc = ew_proc_list(&poll->files, 0, poll->base.table.max, &poll->listed);
    if (rc < 0)
        return ew_error_set(reterr, rc, 0, "cannot list %s", poll->files.root);
    if (reserve_fresh(poll, poll->listed.count) != 0)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    /* A recorded tree is in the order of its file system. */
    if (!poll->files.procfs)
        qsort(poll->listed.ids, poll->listed.count, sizeof *poll->listed.ids, compare_ids);
    poll->base.overflow = poll->listed.overflow;
    for (uint32_t i = 0; i < poll->listed.count; i++)
        find_one(poll, poll->listed.ids[i]);
    poll->scan_ns = poll->base.now_ns;
    return 0;
}

/* Finds new processes by the ids that the kernel assigned since the last round, most of them
 * threads or already gone. False if listing the directory is cheaper, or due. */
static bool find_new(struct ew_poll *poll)
{
    uint32_t last_pid, before = poll->last_pid;
    if (!ew_proc_last_pid(&poll->files, &last_pid))
        return false;
    poll->last_pid = last_pid;
    if (poll->base.round == 1 || poll->base.now_ns - poll->scan_ns >= SCAN_PERIOD_NS ||
        last_pid < before || last_pid - before > poll->base.table.count + 64 ||
        reserve_fresh(poll, last_pid - before) != 0)
        return false;
    for (uint32_t pid = before + 1; pid <= last_pid; pid++) {
        uint64_t cpu_ns;
        if (ew_proc_cpu_ns(pid, &cpu_ns) == EW_PROC_OK)
            find_one(poll, pid);
    }
    return true;
}

/* ---------------------------------------------------------------- readings */

/* Nearly always an exec; a program that renames itself looks the same. */
static void follow_name(struct ew_poll *poll, struct ew_poll_process *process,
                        const struct ew_proc_stat *stat)
{
    if (memcmp(process->name, stat->comm, sizeof process->name) == 0)
        return;
    memcpy(process->name, stat->comm, sizeof process->name);
    ew_poll_emit_process(poll, process, stat, EW_PROCESS_EXEC);
}

static bool changed(const struct ew_poll_figures *now, const struct ew_poll_figures *before)
{
    return now->fell || now->counter_has != before->counter_has ||
           now->gauge_has != before->gauge_has ||
           memcmp(now->counter, before->counter, sizeof before->counter) != 0 ||
           memcmp(now->gauge, before->gauge, sizeof before->gauge) != 0;
}

/* The process exists, but its activity in this round cannot be read. */
static void emit_unknown(struct ew_poll *poll, const struct ew_poll_process *process)
{
    struct ew_reading reading = {.kind = EW_READING_AT,
                                 .pid = process->pid,
                                 .start_ns = process->start_ns,
                                 .t_ns = poll->base.now_ns,
                                 .incomplete = true};
    ew_poller_emit_reading(&poll->base, &reading);
}

/* False if the entry's process is gone. */
static bool read_watched(struct ew_poll *poll, struct ew_poll_entry *entry)
{
    struct ew_poll_process *process = entry->process;
    struct ew_proc_stat stat;
    struct ew_poll_figures before;
    uint64_t cpu_ns = 0;
    bool cpu_known = poll->files.own_ids;
    bool ran = true;
    if (process->read_ns == poll->base.now_ns)
        return true;
    if (cpu_known) {
        if (ew_proc_cpu_ns(entry->pid, &cpu_ns) != EW_PROC_OK)
            return false;
        ran = cpu_ns != entry->checked_cpu_ns;
        process->busy = ran && process->busy_before;
        process->busy_before = ran;
        if (!ran && poll->base.now_ns - process->read_ns < GAUGE_PERIOD_NS &&
            poll->base.now_ns < ew_slow_gauges_due_ns(&poll->slow, &process->slow))
            return true;
    }
    if (ran || poll->base.now_ns - process->read_ns >= GAUGE_PERIOD_NS)
        ew_slow_gauges_ran(&process->slow);
    if (!ran) {
        process->io_denied = false; /* rights may have changed: retry occasionally */
        ew_poll_process_close_files(poll, process);
    }
    before = process->figures;
    switch (ew_poll_process_read(poll, process, cpu_known, cpu_ns, &stat)) {
    case EW_POLL_READ:
        break;
    case EW_POLL_GONE:
        poll->scan_ns =
            0; /* the CPU clock of this pid still worked: it may belong to another process now */
        return false;
    case EW_POLL_UNREADABLE:
        emit_unknown(poll, process);
        return true;
    case EW_POLL_OTHER:
        end_unseen(poll, entry);
        *entry = (struct ew_poll_entry){
            .pid = entry->pid, .round = poll->base.round, .found_ns = poll->base.now_ns};
        describe(poll, entry, &stat);
        decide(poll, entry, &stat);
        return true;
    }
    entry->checked_cpu_ns = cpu_ns;
    entry->ppid = stat.ppid;
    follow_name(poll, process, &stat);
    if (process->ended) {
        end_zombie(poll, entry, &stat);
        return true;
    }
    if (changed(&process->figures, &before))
        emit_figures(poll, process, process->figures.fell);
    ew_poll_threads_emit(poll, process);
    return true;
}

/* Whether an ignored process is now a different process or program. False if it is gone. */
static bool recheck(struct ew_poll *poll, struct ew_poll_entry *entry, bool scanned)
{
    uint64_t cpu_ns = 0;
    if (entry->found_ns == poll->base.now_ns)
        return true;
    if (entry->state == EW_POLL_NO_SPACE && poll->base.watched_count < poll->base.max_watched) {
        entry->state = EW_POLL_IGNORED;
        entry->checked_cpu_ns = 0;
    }
    if (poll->files.own_ids) {
        if (!scanned && poll->base.now_ns - entry->found_ns >= YOUNG_NS)
            return true;
        if (ew_proc_cpu_ns(entry->pid, &cpu_ns) != EW_PROC_OK)
            return false;
        if (cpu_ns == entry->checked_cpu_ns)
            return true;
        entry->checked_cpu_ns = cpu_ns;
    }
    evaluate(poll, entry);
    return true;
}

static void read_all(struct ew_poll *poll, bool scanned)
{
    for (uint32_t i = 0; i < poll->base.table.count;) {
        struct ew_poll_entry *entry = &poll->base.table.entries[i];
        bool there = !scanned || entry->round == poll->base.round;
        if (there)
            there = entry->process ? read_watched(poll, entry) : recheck(poll, entry, scanned);
        if (there) {
            i++;
            continue;
        }
        end_unseen(poll, entry);
        ew_poll_table_remove(&poll->base.table, entry);
    }
}

/* -------------------------------------------------------------------- source */

static int drain(struct ew_source *source, uint64_t now_ns, const struct ew_facts *facts,
                 uint64_t *ret_horizon_ns, struct ew_error *reterr)
{
    struct ew_poll *poll = (struct ew_poll *)source;
    poll->base.facts = facts;
    poll->base.now_ns = now_ns;
    poll->base.round++;
    int rc = ew_proc_files_refresh(&poll->files, reterr);
    if (rc < 0)
        return rc;
    uint64_t overflow = poll->base.overflow;
    bool scanned = !find_new(poll);
    if (scanned)
        rc = scan(poll, reterr);
    if (rc < 0)
        return rc;
    decide_fresh(poll);
    read_all(poll, scanned);
    ew_poller_end_round(&poll->base, overflow);
    *ret_horizon_ns = now_ns;
    return 0;
}

static void free_process(struct ew_poller *poller, struct ew_poll_process *process)
{
    ew_poll_process_free((struct ew_poll *)poller, process);
}

static void close_source(struct ew_source *source)
{
    struct ew_poll *poll = (struct ew_poll *)source;
    if (!poll)
        return;
    ew_poller_done(&poll->base);
    ew_proc_files_close(&poll->files);
    ew_free(poll->listed.ids);
    ew_free(poll->slow.listed.ids);
    ew_free(poll->fresh.ids);
    ew_free(poll);
}

/* Removes metrics that this /proc does not provide, and marks the inexact ones. */
static void describe_source(struct ew_poll *poll)
{
    poll->base.ops = ew_source_poll;
    poll->base.ops.available = ew_metrics_available(ETWATCH_BACKEND_POLL_LINUX);
    poll->base.ops.estimated =
        ew_metrics_with(ETWATCH_BACKEND_POLL_LINUX, ETWATCH_EXACTNESS_ESTIMATED);
    poll->base.source.ops = &poll->base.ops;
    if (!poll->files.own_ids) /* no CPU clock: times in ticks */
        etwatch_metric_set_union(&poll->base.ops.estimated,
                                 &EW_METRICS(ETWATCH_M_cpu_ns, ETWATCH_M_cpu_percent));
    if (!poll->files.procfs)
        etwatch_metric_set_subtract(&poll->base.ops.available,
                                    &EW_METRICS(ETWATCH_M_handles, ETWATCH_M_handles_peak));
    if (!poll->files.own_ids)
        etwatch_metric_set_remove(&poll->base.ops.available, ETWATCH_M_io_priority);
}

/* A file is read only if one of its metrics is selected. */
static void select_files(struct ew_poll *poll, const struct etwatch_metric_set *metrics)
{
    static const struct etwatch_metric_set status =
        EW_METRIC_SET(ETWATCH_M_rss_bytes, ETWATCH_M_rss_peak_bytes, ETWATCH_M_private_bytes,
                      ETWATCH_M_virtual_bytes, ETWATCH_M_affinity, ETWATCH_M_switches_voluntary,
                      ETWATCH_M_switches_involuntary);
    static const struct etwatch_metric_set io = EW_METRIC_SET(
        ETWATCH_M_io_read_bytes, ETWATCH_M_io_write_bytes, ETWATCH_M_io_read_ops,
        ETWATCH_M_io_write_ops, ETWATCH_M_disk_read_bytes, ETWATCH_M_disk_write_bytes);
    bool all = etwatch_metric_set_is_empty(metrics);
    poll->reads_status = all || ew_metric_set_intersects(metrics, &status);
    poll->reads_io = all || ew_metric_set_intersects(metrics, &io);
    poll->reads_schedstat = all || etwatch_metric_set_has(metrics, ETWATCH_M_runq_wait_ns);
}

int ew_poll_open(const struct ew_source_config *config, const struct ew_poll_units *units,
                 struct ew_poll **ret_poll, struct ew_error *reterr)
{
    struct ew_poll *poll = ew_calloc(1, sizeof *poll);
    if (!poll)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    poll->units = *units;
    select_files(poll, &config->metrics);
    ew_slow_gauges_init(&poll->slow, config);
    poll->slow.files = &poll->files;
    poll->base.free_process = free_process;
    int rc = ew_poller_init(&poll->base, config);
    if (rc < 0) {
        ew_free(poll);
        return ew_error_set(reterr, rc, 0, "out of memory");
    }
    rc = ew_proc_files_open(&poll->files, config->proc_root, reterr);
    if (rc < 0) {
        ew_poll_filter_done(&poll->base.filter);
        ew_free(poll);
        return rc;
    }
    describe_source(poll);
    *ret_poll = poll;
    return 0;
}

static int open_source(const struct ew_source_config *config, struct ew_source **ret_source,
                       struct ew_error *reterr)
{
    long ticks = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    struct ew_poll_units units = {.ticks_per_s = ticks > 0 ? (uint64_t)ticks : 100,
                                  .page_bytes = page > 0 ? (uint64_t)page : 4096};
    struct ew_poll *poll;
    int rc = ew_poll_open(config, &units, &poll, reterr);
    if (rc == 0)
        *ret_source = &poll->base.source;
    return rc;
}

static int add(struct ew_source *source, uint32_t pid)
{
    struct ew_poll *poll = (struct ew_poll *)source;
    struct ew_proc_stat stat;
    int fd = -1;
    if (ew_poll_read_stat(poll, pid, 0, false, &fd, &stat) != EW_POLL_READ)
        return ETWATCH_ENOENT;
    return ew_poller_select_pid(&poll->base, pid);
}

/*
 * cpu_ns is the kernel's own exact clock, except in a /proc of another pid namespace (see
 * describe_source). Estimated are: the user/kernel split, which is in ticks, and counters that the
 * kernel keeps per thread, which are lost when a thread exits.
 */
const struct ew_source_ops ew_source_poll = {
    .id = ETWATCH_SOURCE_POLL,
    .backend = ETWATCH_BACKEND_POLL_LINUX,
    .open = open_source,
    .close = close_source,
    .drain = drain,
    .set_interval = ew_poller_set_interval,
    .add = add,
    .remove = ew_poller_remove,
    .stats = ew_poller_stats,
    .wake_fd = ew_poller_wake_fd,
};
