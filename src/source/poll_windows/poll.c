/* SPDX-License-Identifier: MIT */
/*
 * Owns the round. Each drain is one round: Windows lists all processes and threads in one call, so
 * a round costs the same whatever is watched, and only watched and changed processes are emitted.
 *
 * Every fact of a round carries the time of the round. A process that starts and exits between two
 * rounds is never seen; one that was seen once has final totals (see process.c).
 */
#include "source/poll_windows/poll.h"

#include <string.h>

#include "base/alloc.h"
#include "model/metric.h"

/* A new process that is selected within this time is reported from its start. */
#define YOUNG_NS UINT64_C(1000000000)
/* Stands for idle time. */
#define IDLE_PID 0u

static void end(struct ew_winpoll *poll, struct ew_poll_entry *entry)
{
    if (entry->process)
        ew_winpoll_process_end(poll, entry->process);
    ew_poller_unwatch(&poll->base, entry, EW_POLL_ENDED);
}

/* ------------------------------------------------------------------ discovery */

/* While we hold a process its pid cannot be reused, whatever creation time the list has: Wine
 * sets it a second time, when the program starts. */
static bool is_same(const struct ew_poll_entry *entry, const struct ew_listed_process *listed)
{
    return (entry->process && entry->process->held) || entry->start_ns == listed->created;
}

static void find(struct ew_winpoll *poll, const struct ew_listed_process *listed, bool *ret_fresh)
{
    struct ew_poll_entry *entry = ew_poll_table_find(&poll->base.table, listed->pid);
    if (entry && !is_same(entry, listed)) {
        end(poll, entry);
        ew_poll_table_remove(&poll->base.table, entry);
        entry = NULL;
    }
    if (!entry) {
        entry = ew_poll_table_add(&poll->base.table, listed->pid);
        if (!entry) {
            poll->base.overflow++;
            return;
        }
        entry->ppid = listed->ppid;
        entry->start_ns = listed->created;
        entry->found_ns = poll->base.now_ns;
        *ret_fresh = true;
    }
    entry->round = poll->base.round;
}

/* --------------------------------------------------------------------- filter */

static bool matches_filter(const struct ew_winpoll *poll, const struct ew_listed_process *listed)
{
    char name[EW_NAME_SIZE];
    if (poll->base.filter.all)
        return true;
    if (poll->base.filter.name_count == 0)
        return false;
    ew_listed_name(listed, name, sizeof name);
    return ew_poll_filter_has_name(&poll->base.filter, name);
}

static void begin(struct ew_winpoll *poll, struct ew_poll_entry *entry,
                  const struct ew_listed_process *listed)
{
    /* A process found after the first round has started since the previous one. If it is
     * selected only later, its activity until then soon exceeds one interval. */
    bool preexisting =
        entry->found_ns == poll->first_ns || poll->base.now_ns - entry->found_ns >= YOUNG_NS;
    struct ew_poll_process *process = NULL;
    if (poll->base.watched_count < poll->base.max_watched)
        process = ew_winpoll_process_new(poll, listed);
    if (!process) {
        entry->state = EW_POLL_NO_SPACE;
        ew_poller_emit_full(&poll->base, 1);
        return;
    }
    entry->process = process;
    entry->state = EW_POLL_WATCHED;
    poll->base.watched_count++;
    (void)ew_winpoll_process_read(poll, process, listed);
    ew_winpoll_emit_process(poll, process, preexisting ? EW_PROCESS_SEEN : EW_PROCESS_START, NULL);
    if (!preexisting)
        ew_winpoll_emit_figures(poll, process, false);
    ew_winpoll_threads_emit(poll, process, listed);
}

/* True if a process joined a tree: its children may precede it in the list. */
static bool decide(struct ew_winpoll *poll, const struct ew_listed_process *listed)
{
    struct ew_poll_entry *entry = ew_poll_table_find(&poll->base.table, listed->pid);
    bool joined = false;
    if (!entry || entry->state == EW_POLL_WATCHED || entry->state == EW_POLL_REMOVED)
        return false;
    if (entry->state == EW_POLL_NO_SPACE && poll->base.watched_count >= poll->base.max_watched)
        return false;
    if (!entry->tree && ew_poller_in_tree(&poll->base, entry))
        entry->tree = poll->base.has_trees = joined = true;
    if (entry->tree || matches_filter(poll, listed))
        begin(poll, entry, listed);
    return joined;
}

static void decide_all(struct ew_winpoll *poll, const struct ew_listing *whole)
{
    struct ew_listed_process listed;
    bool joined;
    do {
        struct ew_listing listing = *whole;
        joined = false;
        while (ew_listing_next(&listing, &listed) > 0)
            if (listed.pid != IDLE_PID)
                joined |= decide(poll, &listed);
    } while (joined);
    poll->base.filter.pid_count = 0;
    poll->base.tree_changed = false;
}

/* -------------------------------------------------------------------- readings */

static void read_watched(struct ew_winpoll *poll, const struct ew_listed_process *listed)
{
    struct ew_poll_entry *entry = ew_poll_table_find(&poll->base.table, listed->pid);
    if (!entry || !entry->process)
        return;
    struct ew_poll_process *process = entry->process;
    if (ew_winpoll_process_read(poll, process, listed))
        ew_winpoll_emit_figures(poll, process, process->figures.fell);
    ew_winpoll_threads_emit(poll, process, listed);
}

/* Ends the processes that the list no longer has; called after the trees have been updated. */
static void end_gone(struct ew_winpoll *poll)
{
    for (uint32_t i = 0; i < poll->base.table.count;) {
        struct ew_poll_entry *entry = &poll->base.table.entries[i];
        if (entry->round == poll->base.round) {
            i++;
            continue;
        }
        end(poll, entry);
        ew_poll_table_remove(&poll->base.table, entry);
    }
}

static int check_listing(const struct ew_listing *whole, struct ew_error *reterr)
{
    struct ew_listing listing = *whole;
    struct ew_listed_process listed;
    int rc;
    do
        rc = ew_listing_next(&listing, &listed);
    while (rc > 0);
    return rc == 0 ? 0
                   : ew_error_set(reterr, rc, 0, "the list of processes cannot be read at byte %zu",
                                  listing.pos);
}

static int drain(struct ew_source *source, uint64_t now_ns, const struct ew_facts *facts,
                 uint64_t *ret_horizon_ns, struct ew_error *reterr)
{
    struct ew_winpoll *poll = (struct ew_winpoll *)source;
    struct ew_listing whole, listing;
    struct ew_listed_process listed;
    bool fresh = false;
    int rc = poll->system.list(poll->system.ctx, &whole, reterr);
    if (rc == 0)
        rc = check_listing(&whole, reterr);
    if (rc < 0)
        return rc;
    poll->base.facts = facts;
    poll->base.now_ns = now_ns;
    poll->base.round++;
    if (poll->base.round == 1)
        poll->first_ns = now_ns;
    uint64_t overflow = poll->base.overflow;
    poll->base.overflow = 0;
    listing = whole;
    while (ew_listing_next(&listing, &listed) > 0)
        if (listed.pid != IDLE_PID)
            find(poll, &listed, &fresh);
    if (poll->base.round > 1) {
        listing = whole;
        while (ew_listing_next(&listing, &listed) > 0)
            read_watched(poll, &listed);
    }
    /* Start times of new processes are on the raw clock, which drifts from that of the list. */
    if ((fresh || poll->base.tree_changed) && poll->system.zero)
        poll->system.raw_zero = poll->system.zero(poll->system.ctx);
    if (fresh || poll->base.tree_changed)
        decide_all(poll, &whole);
    end_gone(poll);
    ew_poller_end_round(&poll->base, overflow);
    *ret_horizon_ns = now_ns;
    return 0;
}

/* -------------------------------------------------------------------- source */

static void free_process(struct ew_poller *poller, struct ew_poll_process *process)
{
    ew_winpoll_process_free((struct ew_winpoll *)poller, process);
}

static void close_source(struct ew_source *source)
{
    struct ew_winpoll *poll = (struct ew_winpoll *)source;
    if (!poll)
        return;
    ew_poller_done(&poll->base);
    poll->system.close(poll->system.ctx);
    ew_free(poll);
}

/* The next round shows whether the process exists. */
static int add(struct ew_source *source, uint32_t pid)
{
    return ew_poller_select_pid((struct ew_poller *)source, pid);
}

/* One line for doctor, where the metric table says that other versions of Windows have the
 * metric. */
static const char *unavailable_reason(const struct ew_source *source, uint32_t metric)
{
    const struct ew_winpoll *poll = (const struct ew_winpoll *)source;
    if (metric == ETWATCH_M_cycles &&
        !etwatch_metric_set_has(&poll->base.ops.available, ETWATCH_M_cycles))
        return "CycleTime is 0 for every listed process, as in Wine";
    return NULL;
}

/* The metrics that ew_winpoll_system.slow may provide. */
static const struct etwatch_metric_set slow_metrics =
    EW_METRIC_SET(ETWATCH_M_affinity, ETWATCH_M_handles_peak, ETWATCH_M_io_priority,
                  ETWATCH_M_gdi_objects, ETWATCH_M_user_objects);

/*
 * Estimated are: times, which Windows charges by tick (15.6 ms) to the running thread, and the kind
 * of a process's last faults, because the number of hard faults is unknown after its end. Switches
 * are counted only as one sum for both kinds, so they are unknown.
 */
static const struct ew_source_ops ops = {
    .id = ETWATCH_SOURCE_POLL,
    .backend = ETWATCH_BACKEND_POLL_WINDOWS,
    .close = close_source,
    .drain = drain,
    .set_interval = ew_poller_set_interval,
    .add = add,
    .remove = ew_poller_remove,
    .stats = ew_poller_stats,
    .wake_fd = ew_poller_wake_fd,
    .unavailable_reason = unavailable_reason,
};

/* A counter that is 0 for every process is not maintained by this system (Wine). */
static int describe_source(struct ew_winpoll *poll, struct ew_error *reterr)
{
    struct ew_listing listing;
    struct ew_listed_process listed;
    bool owns_memory = false, has_pools = false, has_private_rss = false;
    int rc = poll->system.list(poll->system.ctx, &listing, reterr);
    if (rc < 0)
        return rc;
    while (ew_listing_next(&listing, &listed) > 0) {
        poll->counts_cycles |= listed.pid != IDLE_PID && listed.cycles != 0;
        poll->counts_io |= listed.read_ops != 0 || listed.write_ops != 0;
        poll->counts_faults |= listed.faults != 0;
        poll->has_states |= ew_listed_runs(&listed);
        owns_memory |= listed.private_bytes != 0;
        has_pools |= listed.pool_paged_bytes != 0;
        has_private_rss |= listed.rss_private_bytes != 0;
    }
    poll->base.ops = ops;
    poll->base.source.ops = &poll->base.ops;
    struct etwatch_metric_set *available = &poll->base.ops.available;
    *available = ew_metrics_available(ops.backend);
    etwatch_metric_set_subtract(available, &slow_metrics);
    if (poll->system.slow)
        etwatch_metric_set_union(available, &poll->system.slow_has);
    poll->base.ops.estimated = ew_metrics_with(ops.backend, ETWATCH_EXACTNESS_ESTIMATED);
    if (!poll->counts_cycles)
        etwatch_metric_set_remove(available, ETWATCH_M_cycles);
    poll->counts_cycles &= poll->wants_cycles;
    /* Handles to all threads of a few selected processes are affordable; for all processes there
     * would be too many. */
    poll->holds_threads = poll->counts_cycles && poll->base.threads && !poll->base.filter.all &&
                          poll->system.hold_thread;
    if (!poll->counts_io)
        etwatch_metric_set_subtract(available,
                                    &EW_METRICS(ETWATCH_M_io_read_bytes, ETWATCH_M_io_write_bytes,
                                                ETWATCH_M_io_read_ops, ETWATCH_M_io_write_ops,
                                                ETWATCH_M_io_other_bytes, ETWATCH_M_io_other_ops));
    if (!poll->counts_faults)
        etwatch_metric_set_subtract(available,
                                    &EW_METRICS(ETWATCH_M_faults_minor, ETWATCH_M_faults_major));
    if (!owns_memory)
        etwatch_metric_set_remove(available, ETWATCH_M_private_bytes);
    if (!has_private_rss)
        etwatch_metric_set_remove(available, ETWATCH_M_rss_private_bytes);
    if (!has_pools)
        etwatch_metric_set_subtract(
            available, &EW_METRICS(ETWATCH_M_pool_paged_bytes, ETWATCH_M_pool_nonpaged_bytes));
    if (!poll->has_states)
        etwatch_metric_set_subtract(
            available, &EW_METRICS(ETWATCH_M_threads_running, ETWATCH_M_threads_ready,
                                   ETWATCH_M_threads_waiting, ETWATCH_M_threads_suspended));
    return 0;
}

static int init(struct ew_winpoll *poll, const struct ew_source_config *config,
                struct ew_error *reterr)
{
    const struct ew_filter *filter = &config->filter;
    poll->base.free_process = free_process;
    bool all = etwatch_metric_set_is_empty(&config->metrics);
    if (!all && !ew_metric_set_intersects(&config->metrics, &poll->system.slow_has))
        poll->system.slow = NULL; /* none of its metrics is selected */
    poll->wants_cycles = all || etwatch_metric_set_has(&config->metrics, ETWATCH_M_cycles);
    int rc = ew_poller_init(&poll->base, config);
    if (rc < 0)
        return ew_error_set(reterr, rc, 0, "out of memory");
    if (filter->uid_count > 0 || filter->cgroup_count > 0)
        return ew_error_set(
            reterr, ETWATCH_EINVAL, 0,
            "Windows has no numeric user ids and no cgroups: filter by pid or name");
    return 0;
}

int ew_winpoll_open(const struct ew_source_config *config, const struct ew_winpoll_system *system,
                    struct ew_source **ret_source, struct ew_error *reterr)
{
    struct ew_winpoll *poll = ew_calloc(1, sizeof *poll);
    if (!poll) {
        system->close(system->ctx);
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    }
    poll->system = *system;
    int rc = init(poll, config, reterr);
    if (rc == 0)
        rc = describe_source(poll, reterr);
    if (rc < 0) {
        close_source(&poll->base.source);
        return rc;
    }
    *ret_source = &poll->base.source;
    return 0;
}
