/* SPDX-License-Identifier: MIT */
/*
 * Owns: the round. Each drain is one: Windows lists everything it knows of all processes and
 * threads in one call, so a round costs the same whatever is watched, and only what is watched and
 * changed is told.
 *
 * Everything a round tells carries the time of the round. A process that came and went between two
 * rounds is never seen; one that was seen once has final totals (see process.c).
 */
#include "source/poll_windows/poll.h"

#include <string.h>

#include "base/alloc.h"

/* Beside the watched ones, so many others are remembered. */
#define IGNORED_MAX 262144u
/* Asked for within this time, a new process is told from its beginning. */
#define YOUNG_NS UINT64_C(1000000000)
/* What is listed for the time in which nothing runs. */
#define IDLE_PID 0u

static void let_go(struct ew_winpoll *poll, struct ew_poll_entry *entry, enum ew_poll_state state)
{
    if (entry->process) {
        ew_winpoll_process_free(poll, entry->process);
        entry->process = NULL;
        poll->watched_count--;
    }
    entry->state = state;
}

static void end(struct ew_winpoll *poll, struct ew_poll_entry *entry)
{
    if (entry->process)
        ew_winpoll_process_end(poll, entry->process);
    let_go(poll, entry, EW_POLL_ENDED);
}

/* --------------------------------------------------------------- who is there */

/* While we hold a process its number cannot go to another, whatever the list says of its beginning:
 * Wine sets that a second time, when the program begins. */
static bool is_same(const struct ew_poll_entry *entry, const struct ew_listed_process *listed)
{
    return (entry->process && entry->process->held) || entry->start_ns == listed->created;
}

static void find(struct ew_winpoll *poll, const struct ew_listed_process *listed, bool *ret_fresh)
{
    struct ew_poll_entry *entry = ew_poll_table_find(&poll->table, listed->pid);
    if (entry && !is_same(entry, listed)) {
        end(poll, entry);
        ew_poll_table_remove(&poll->table, entry);
        entry = NULL;
    }
    if (!entry) {
        entry = ew_poll_table_add(&poll->table, listed->pid);
        if (!entry) {
            poll->beyond++;
            return;
        }
        entry->ppid = listed->ppid;
        entry->start_ns = listed->created;
        entry->found_ns = poll->now_ns;
        *ret_fresh = true;
    }
    entry->round = poll->round;
}

/* ------------------------------------------------------------- who is watched */

static bool in_tree(struct ew_winpoll *poll, const struct ew_poll_entry *entry)
{
    if (ew_poll_rules_has_pid(&poll->rules, entry->pid))
        return true;
    const struct ew_poll_entry *parent = ew_poll_table_find(&poll->table, entry->ppid);
    return parent && parent->tree && parent->start_ns <= entry->start_ns;
}

static bool asked_for(const struct ew_winpoll *poll, const struct ew_listed_process *listed)
{
    char name[EW_NAME_SIZE];
    if (poll->rules.all)
        return true;
    if (poll->rules.name_count == 0)
        return false;
    ew_listed_name(listed, name, sizeof name);
    return ew_poll_rules_has_name(&poll->rules, name);
}

static void begin(struct ew_winpoll *poll, struct ew_poll_entry *entry,
                  const struct ew_listed_process *listed)
{
    /* Whatever is found after the first round has come since the one before. If it is asked for
     * only later, what it did until then is soon too much for one interval. */
    bool was_there =
        entry->found_ns == poll->first_ns || poll->now_ns - entry->found_ns >= YOUNG_NS;
    struct ew_poll_process *process = NULL;
    if (poll->watched_count < poll->max_watched)
        process = ew_winpoll_process_new(poll, listed);
    if (!process) {
        entry->state = EW_POLL_BEYOND;
        ew_winpoll_tell_full(poll, 1);
        return;
    }
    entry->process = process;
    entry->state = EW_POLL_WATCHED;
    poll->watched_count++;
    (void)ew_winpoll_process_read(poll, process, listed);
    ew_winpoll_tell_process(poll, process, was_there ? EW_PROCESS_SEEN : EW_PROCESS_START, NULL);
    if (!was_there)
        ew_winpoll_tell_counters(poll, process, false);
    ew_winpoll_threads_tell(poll, process, listed);
}

/* True if somebody joined a tree: his children may stand before him in the list. */
static bool decide(struct ew_winpoll *poll, const struct ew_listed_process *listed)
{
    struct ew_poll_entry *entry = ew_poll_table_find(&poll->table, listed->pid);
    bool joined = false;
    if (!entry || entry->state == EW_POLL_WATCHED || entry->state == EW_POLL_REMOVED)
        return false;
    if (entry->state == EW_POLL_BEYOND && poll->watched_count >= poll->max_watched)
        return false;
    if (!entry->tree && in_tree(poll, entry))
        entry->tree = poll->has_trees = joined = true;
    if (entry->tree || asked_for(poll, listed))
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
    poll->rules.pid_count = 0;
    poll->tree_changed = false;
}

/* --------------------------------------------------------------- what they did */

static void read_watched(struct ew_winpoll *poll, const struct ew_listed_process *listed)
{
    struct ew_poll_entry *entry = ew_poll_table_find(&poll->table, listed->pid);
    if (!entry || !entry->process)
        return;
    struct ew_poll_process *process = entry->process;
    if (ew_winpoll_process_read(poll, process, listed))
        ew_winpoll_tell_counters(poll, process, process->fell);
    ew_winpoll_threads_tell(poll, process, listed);
}

/* Those that the list does not have any more; after it was decided who is whose child. */
static void end_gone(struct ew_winpoll *poll)
{
    for (uint32_t i = 0; i < poll->table.count;) {
        struct ew_poll_entry *entry = &poll->table.entries[i];
        if (entry->round == poll->round) {
            i++;
            continue;
        }
        end(poll, entry);
        ew_poll_table_remove(&poll->table, entry);
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
    poll->facts = facts;
    poll->now_ns = now_ns;
    poll->round++;
    if (poll->round == 1)
        poll->first_ns = now_ns;
    uint64_t beyond = poll->beyond;
    poll->beyond = 0;
    listing = whole;
    while (ew_listing_next(&listing, &listed) > 0)
        if (listed.pid != IDLE_PID)
            find(poll, &listed, &fresh);
    if (poll->round > 1) {
        listing = whole;
        while (ew_listing_next(&listing, &listed) > 0)
            read_watched(poll, &listed);
    }
    if (fresh || poll->tree_changed)
        decide_all(poll, &whole);
    end_gone(poll);
    /* Each that finds no room is told once, and not in every round. */
    if (poll->beyond > beyond)
        ew_winpoll_tell_full(poll, poll->beyond - beyond);
    poll->facts = NULL;
    *ret_horizon_ns = now_ns;
    return 0;
}

/* ---------------------------------------------------------------- the source */

static void close_source(struct ew_source *source)
{
    struct ew_winpoll *poll = (struct ew_winpoll *)source;
    if (!poll)
        return;
    for (uint32_t i = 0; i < poll->table.count; i++)
        ew_winpoll_process_free(poll, poll->table.entries[i].process);
    ew_poll_table_done(&poll->table);
    ew_poll_rules_done(&poll->rules);
    poll->system.close(poll->system.ctx);
    ew_free(poll);
}

/* A round reads what there is at its time: how far apart rounds are is not its business. */
static int set_interval(struct ew_source *source, uint64_t at_ns, uint64_t interval_ns)
{
    (void)source, (void)at_ns, (void)interval_ns;
    return 0;
}

/* Whether there is such a process shows in the next round. */
static int add(struct ew_source *source, uint32_t pid)
{
    struct ew_winpoll *poll = (struct ew_winpoll *)source;
    int rc = ew_poll_rules_add_pid(&poll->rules, pid);
    if (rc < 0)
        return rc;
    struct ew_poll_entry *entry = ew_poll_table_find(&poll->table, pid);
    if (entry && entry->state == EW_POLL_REMOVED)
        entry->state = EW_POLL_IGNORED;
    if (entry && entry->state == EW_POLL_WATCHED)
        entry->tree = poll->has_trees = true;
    poll->tree_changed = true;
    return 0;
}

/* The process alone: what descends from it stays watched, what it starts from now on is not. */
static int remove_pid(struct ew_source *source, uint32_t pid)
{
    struct ew_winpoll *poll = (struct ew_winpoll *)source;
    struct ew_poll_entry *entry = ew_poll_table_find(&poll->table, pid);
    if (!entry || entry->state != EW_POLL_WATCHED)
        return ETWATCH_ENOENT;
    entry->tree = false;
    let_go(poll, entry, EW_POLL_REMOVED);
    return 0;
}

static void stats(struct ew_source *source, struct ew_source_stats *ret_stats)
{
    *ret_stats = ((struct ew_winpoll *)source)->stats;
}

static int wake_fd(struct ew_source *source)
{
    (void)source;
    return -1;
}

#define EW_WINPOLL_STATES                                                                       \
    (ETWATCH_HAS(threads_running) | ETWATCH_HAS(threads_ready) | ETWATCH_HAS(threads_waiting) | \
     ETWATCH_HAS(threads_suspended))

/*
 * What is marked: Windows charges times by the tick (15.6 ms) to whoever runs then, and which of
 * the last faults of a process waited for a disk is not told. Switches come only as one sum for
 * both kinds, so they stay unknown.
 */
static const struct ew_source_ops ops = {
    .id = ETWATCH_SOURCE_POLL,
    .way = ETWATCH_WAY_POLL_WINDOWS,
    .available = ETWATCH_HAS(cpu_percent) | ETWATCH_HAS(cpu_ns) | ETWATCH_HAS(cpu_user_ns) |
                 ETWATCH_HAS(cpu_kernel_ns) | ETWATCH_HAS(priority) | ETWATCH_HAS(rss_bytes) |
                 ETWATCH_HAS(rss_peak_bytes) | ETWATCH_HAS(private_bytes) |
                 ETWATCH_HAS(virtual_bytes) | ETWATCH_HAS(faults_minor) |
                 ETWATCH_HAS(faults_major) | ETWATCH_HAS(threads) | ETWATCH_HAS(io_read_bytes) |
                 ETWATCH_HAS(io_write_bytes) | ETWATCH_HAS(io_read_ops) |
                 ETWATCH_HAS(io_write_ops) | ETWATCH_HAS(io_other_bytes) |
                 ETWATCH_HAS(io_other_ops) | ETWATCH_HAS(pool_paged_bytes) |
                 ETWATCH_HAS(pool_nonpaged_bytes) | EW_WINPOLL_STATES | ETWATCH_HAS(handles) |
                 ETWATCH_HAS(exit_ns) | ETWATCH_HAS(exit_code) | ETWATCH_HAS(exit_signal),
    .estimated = ETWATCH_HAS(cpu_percent) | ETWATCH_HAS(cpu_ns) | ETWATCH_HAS(cpu_user_ns) |
                 ETWATCH_HAS(cpu_kernel_ns) | ETWATCH_HAS(faults_minor) |
                 ETWATCH_HAS(faults_major) | ETWATCH_HAS(exit_ns),
    .close = close_source,
    .drain = drain,
    .set_interval = set_interval,
    .add = add,
    .remove = remove_pid,
    .stats = stats,
    .wake_fd = wake_fd,
};

/* A system on which no process ever did any I/O does not count it, and so on (Wine). */
static int describe_source(struct ew_winpoll *poll, struct ew_error *reterr)
{
    struct ew_listing listing;
    struct ew_listed_process listed;
    bool owns_memory = false, has_pools = false;
    int rc = poll->system.list(poll->system.ctx, &listing, reterr);
    if (rc < 0)
        return rc;
    while (ew_listing_next(&listing, &listed) > 0) {
        poll->counts_io |= listed.read_ops != 0 || listed.write_ops != 0;
        poll->counts_faults |= listed.faults != 0;
        poll->tells_states |= ew_listed_runs(&listed);
        owns_memory |= listed.private_bytes != 0;
        has_pools |= listed.pool_paged_bytes != 0;
    }
    poll->ops = ops;
    poll->source.ops = &poll->ops;
    poll->ops.available |= poll->system.more ? poll->system.more_has : 0;
    if (!poll->counts_io)
        poll->ops.available &=
            ~(ETWATCH_HAS(io_read_bytes) | ETWATCH_HAS(io_write_bytes) | ETWATCH_HAS(io_read_ops) |
              ETWATCH_HAS(io_write_ops) | ETWATCH_HAS(io_other_bytes) | ETWATCH_HAS(io_other_ops));
    if (!poll->counts_faults)
        poll->ops.available &= ~(ETWATCH_HAS(faults_minor) | ETWATCH_HAS(faults_major));
    if (!owns_memory)
        poll->ops.available &= ~ETWATCH_HAS(private_bytes);
    if (!has_pools)
        poll->ops.available &= ~(ETWATCH_HAS(pool_paged_bytes) | ETWATCH_HAS(pool_nonpaged_bytes));
    if (!poll->tells_states)
        poll->ops.available &= ~EW_WINPOLL_STATES;
    return 0;
}

static int open_rules(struct ew_winpoll *poll, const struct ew_filter *filter,
                      struct ew_error *reterr)
{
    if (filter->uid_count > 0 || filter->cgroup_count > 0)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0,
                            "Windows knows no numbers of users and no cgroups: use pids or names");
    int rc = ew_poll_rules_copy(&poll->rules, filter);
    return rc == 0 ? 0 : ew_error_set(reterr, rc, 0, "out of memory");
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
    poll->threads = config->threads;
    poll->max_watched = config->max_processes;
    poll->stats.kernel_ns_known = true; /* nothing of ours runs there */
    ew_poll_table_init(&poll->table, config->max_processes + IGNORED_MAX);
    int rc = open_rules(poll, &config->filter, reterr);
    if (rc == 0)
        rc = describe_source(poll, reterr);
    if (rc < 0) {
        close_source(&poll->source);
        return rc;
    }
    *ret_source = &poll->source;
    return 0;
}
