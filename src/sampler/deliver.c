/* SPDX-License-Identifier: MIT */
/*
 * Delivers finished intervals. Only what has content is touched: a bucket holds its STARTs, cells
 * and exits, so a cut costs what happened and not what exists (except in dense mode, which requests
 * a row for every process).
 *
 * An exit may have to wait for readings of its threads. Then its last cell waits with it, outside
 * its bucket, and both are delivered with a later interval: their times are still correct.
 */
#include "sampler/internal.h"

/* A thread entry idle for this many cuts is freed (25 s at the usual ten cuts a second). */
#define IDLE_CUTS 256u
#define SWEEP_STEPS 16u

bool ew_deliver_lossy(const struct ew_sampler *sampler, uint64_t from_ns, uint64_t to_ns)
{
    for (uint32_t i = 0; i < sampler->loss_count; i++) {
        if (sampler->losses[i].from_ns < to_ns && sampler->losses[i].to_ns >= from_ns)
            return true;
    }
    return false;
}

static void announce(struct ew_sampler *sampler, struct ew_process *process)
{
    if ((process->flags & EW_P_ANNOUNCED) == 0)
        ew_sample_start(sampler, process);
}

static void announce_list(struct ew_sampler *sampler, struct ew_process_list *list)
{
    struct ew_process *process;
    while ((process = ew_list_pop_start(sampler, list)) != NULL) {
        process->flags &= ~(uint32_t)EW_P_LISTED;
        announce(sampler, process);
    }
}

static void free_cell(struct ew_sampler *sampler, struct ew_cell *cell)
{
    while (cell->children != NULL) {
        struct ew_cell *child = cell->children;
        cell->children = child->follower;
        ew_pending_drop(sampler, child);
    }
    ew_pending_drop(sampler, cell);
}

static bool has_content(const struct ew_cell *cell)
{
    return (cell->has | cell->device_has) != 0 || cell->children != NULL;
}

static void deliver_cells(struct ew_sampler *sampler, struct ew_cell *first)
{
    for (struct ew_cell *cell = first, *next; cell != NULL; cell = next) {
        next = cell->follower;
        cell->follower = NULL;
        if ((cell->flags & EW_CELL_FINAL) != 0)
            continue; /* delivered with the exit */
        if ((cell->flags & EW_CELL_VOID) == 0 && has_content(cell))
            ew_sample_interval(sampler, cell->process, cell);
        free_cell(sampler, cell);
    }
}

/* A row for every existing process that had none. */
static void deliver_idle(struct ew_sampler *sampler)
{
    const struct ew_pool *pool = &sampler->ledger.processes;
    for (uint32_t ref = 1; ref <= ew_pool_last(pool); ref++) {
        struct ew_process *process = ew_pool_at(pool, ref);
        if (process->self == 0 || (process->flags & EW_P_ANNOUNCED) == 0 ||
            process->emitted == (uint32_t)sampler->first + 1)
            continue;
        if ((process->flags & EW_P_EXITING) != 0) {
            const struct ew_cell *final = ew_pending_newest(process);
            if (final == NULL || final->index <= sampler->first)
                continue;
        }
        ew_sample_interval(sampler, process, NULL);
    }
}

/* The last readings of the threads may have been lost; otherwise they arrive when the kernel has
 * freed the memory of the process, possibly long after its exit was reported. */
static bool waited_enough(const struct ew_sampler *sampler, const struct ew_process *process)
{
    if (sampler->cuts - process->exit_cut < EW_WAIT_CUTS)
        return false;
    uint32_t missed = EW_P_REPLACED | EW_P_FORGOTTEN;
    return (process->flags & missed) != 0 || sampler->loss_seen_ns >= process->start_ns ||
           sampler->first_ns > process->exit_ns + EW_WAIT_NS;
}

static bool may_exit(const struct ew_sampler *sampler, struct ew_process *process, bool force)
{
    if ((process->flags & EW_P_LISTED) != 0)
        return false;
    if (force || sampler->config.rounds || process->thread_count == 0)
        return true;
    if (!waited_enough(sampler, process))
        return false;
    process->flags |= EW_P_LOSSY;
    return true;
}

/* Whether to emit a sample for the last interval. Always, except if it was already delivered as a
 * whole and nothing followed, or if the process is no longer monitored. */
static bool final_has_content(const struct ew_process *process, const struct ew_cell *final)
{
    if (has_content(final))
        return true;
    if ((process->flags & EW_P_FORGOTTEN) != 0)
        return false;
    return (process->flags & EW_P_SAMPLED) == 0 || process->exit_ns > final->begin_ns;
}

static void emit_exit(struct ew_sampler *sampler, struct ew_process *process)
{
    if ((process->flags & EW_P_FORGOTTEN) == 0)
        ew_sample_exit(sampler, process);
    ew_lifecycle_note_left(sampler, process->pid, process->start_ns, process->exit_ns);
    ew_list_push_exit(sampler, &sampler->dead_processes, process);
}

static void deliver_exits(struct ew_sampler *sampler, struct ew_process_list *list, bool force)
{
    struct ew_process_list ready = {0};
    struct ew_process *process;
    while ((process = ew_list_pop_exit(sampler, list)) != NULL) {
        if (!may_exit(sampler, process, force)) {
            ew_list_push_exit(sampler, &sampler->waiting, process);
            continue;
        }
        announce(sampler, process);
        struct ew_cell *final = ew_pending_newest(process);
        if (final != NULL) {
            if (final_has_content(process, final))
                ew_sample_interval(sampler, process, final);
            free_cell(sampler, final);
        }
        ew_list_push_exit(sampler, &ready, process);
    }
    while ((process = ew_list_pop_exit(sampler, &ready)) != NULL)
        emit_exit(sampler, process);
}

/* Delivers the oldest interval, up to end_ns; `waiters`: also try the waiting exits. */
static void deliver_interval(struct ew_sampler *sampler, uint64_t end_ns, bool waiters, bool force)
{
    struct ew_bucket bucket = {0};
    if (sampler->first < sampler->end_index) {
        struct ew_bucket *slot = ew_pending_bucket(sampler, sampler->first);
        bucket = *slot;
        *slot = (struct ew_bucket){0};
    }
    sampler->interval_end_ns = end_ns;
    sampler->interval_lossy = ew_deliver_lossy(sampler, sampler->first_ns, end_ns);

    struct ew_process_list waiting = {0};
    if (waiters) {
        waiting = sampler->waiting;
        sampler->waiting = (struct ew_process_list){0};
    }
    announce_list(sampler, &sampler->due_starts);
    announce_list(sampler, &bucket.starts);
    for (struct ew_cell *cell = bucket.first; cell != NULL; cell = cell->follower) {
        if (cell->process != NULL)
            announce(sampler, cell->process);
    }
    deliver_cells(sampler, bucket.first);
    if (sampler->config.dense && end_ns > sampler->first_ns)
        deliver_idle(sampler);
    deliver_exits(sampler, &waiting, force);
    deliver_exits(sampler, &bucket.exits, force);
}

static void advance(struct ew_sampler *sampler, uint64_t index, uint64_t start_ns)
{
    sampler->counts.intervals += index - sampler->first;
    sampler->first = index;
    sampler->first_ns = start_ns;
    if (sampler->end_index < index)
        sampler->end_index = index;
}

/* All intervals before `last`. */
static void deliver_until(struct ew_sampler *sampler, uint64_t last, bool force)
{
    bool waiters = true;
    uint64_t begin = sampler->first;
    while (sampler->first < last) {
        uint64_t next = sampler->first + 1;
        bool nothing = sampler->first >= sampler->end_index && sampler->due_starts.first == 0 &&
                       (!waiters || sampler->waiting.first == 0);
        /* A long gap (a suspended machine) becomes one long row, not millions. */
        if (nothing && (!sampler->config.dense || next - begin > EW_RING_MAX))
            next = last;
        uint64_t end_ns = ew_ticks_start(&sampler->ticks, next);
        if (!nothing || sampler->config.dense)
            deliver_interval(sampler, end_ns, waiters, force);
        waiters = false;
        advance(sampler, next, end_ns);
    }
}

static void report_refused(struct ew_sampler *sampler)
{
    struct etwatch_loss loss = sampler->refused;
    if (loss.count == 0)
        return;
    sampler->refused = (struct etwatch_loss){0};
    sampler->counts.lost += loss.count;
    if (sampler->config.loss == NULL)
        return;
    loss.size = sizeof loss;
    loss.stage = ETWATCH_LOSS_TABLE;
    loss.from_ns += (uint64_t)sampler->config.unix_minus_raw_ns;
    loss.to_ns += (uint64_t)sampler->config.unix_minus_raw_ns;
    sampler->config.loss(sampler->config.ctx, &loss);
}

/* Drops loss ranges that cannot affect any future sample. */
static void forget_losses(struct ew_sampler *sampler)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < sampler->loss_count; i++) {
        if (sampler->losses[i].to_ns >= sampler->first_ns || sampler->waiting.first != 0)
            sampler->losses[kept++] = sampler->losses[i];
    }
    sampler->loss_count = kept;
}

/* Called after the flush: no sample refers to their strings any more. */
static void free_dead(struct ew_sampler *sampler)
{
    struct ew_ledger *ledger = &sampler->ledger;
    while (sampler->dead_threads != 0) {
        struct ew_thread *thread = ew_pool_at(&ledger->threads, sampler->dead_threads);
        sampler->dead_threads = thread->next;
        ew_ledger_free_thread(ledger, thread);
    }
    struct ew_process *process;
    while ((process = ew_list_pop_exit(sampler, &sampler->dead_processes)) != NULL) {
        ew_sample_forget_aggregate(process);
        ew_ledger_drop_process(ledger, process);
    }
}

static int close_cut(struct ew_sampler *sampler, uint64_t objects_before)
{
    ew_sample_flush(sampler);
    if (sampler->config.emitted != NULL)
        sampler->config.emitted(sampler->config.ctx);
    free_dead(sampler);
    report_refused(sampler);
    forget_losses(sampler);
    ew_ticks_forget(&sampler->ticks, sampler->first);
    sampler->cuts++;
    /* Polling reads only threads that ran and reports itself which ones have ended. */
    if (!sampler->config.rounds)
        ew_ledger_sweep_threads(&sampler->ledger, SWEEP_STEPS, sampler->cuts - IDLE_CUTS,
                                sampler->first);
    int failure = sampler->failure;
    sampler->failure = 0;
    uint64_t delivered = sampler->counts.objects - objects_before;
    return failure < 0 ? failure : delivered > INT32_MAX ? INT32_MAX : (int)delivered;
}

static void note_unproven(struct ew_sampler *sampler)
{
    if (sampler->config.unproven != NULL)
        sampler->unproven = sampler->config.unproven(sampler->config.unproven_ctx);
}

int ew_sampler_deliver(struct ew_sampler *sampler, uint64_t horizon_ns)
{
    note_unproven(sampler);
    if (sampler->finished)
        return ETWATCH_ESTATE;
    uint64_t before = sampler->counts.objects;
    if (!sampler->config.rounds) {
        deliver_until(sampler, ew_ticks_index(&sampler->ticks, horizon_ns), false);
    } else if (horizon_ns > sampler->first_ns) {
        deliver_interval(sampler, horizon_ns, true, false);
        advance(sampler, sampler->first + 1, horizon_ns);
    }
    return close_cut(sampler, before);
}

int ew_sampler_finish(struct ew_sampler *sampler, uint64_t now_ns)
{
    note_unproven(sampler);
    if (sampler->finished)
        return ETWATCH_ESTATE;
    uint64_t before = sampler->counts.objects;
    uint64_t end_ns = now_ns > sampler->latest_ns ? now_ns : sampler->latest_ns;
    if (end_ns < sampler->first_ns)
        end_ns = sampler->first_ns;
    if (!sampler->config.rounds)
        deliver_until(sampler, ew_ticks_index(&sampler->ticks, end_ns), true);
    /* Something may have happened exactly at the end, so the last interval is delivered even if
     * empty. */
    deliver_interval(sampler, end_ns, true, true);
    if (end_ns > sampler->first_ns)
        advance(sampler, sampler->first + 1, end_ns);
    sampler->finished = true;
    return close_cut(sampler, before);
}
