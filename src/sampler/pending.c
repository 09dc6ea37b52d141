/* SPDX-License-Identifier: MIT */
/*
 * Owns what waits for delivery: the cells, and the ring of buckets that orders them by interval.
 *
 * Readings arrive thread by thread, samples must be delivered interval by interval. So a cell is in
 * two lists: its owner's, by interval, for lookup; and its interval's bucket, for delivery. The
 * owner remembers the cell it used last, and readings of one thread arrive in time order, so a
 * lookup takes one step or none; sorting everything at each cut would cost more than all the rest.
 */
#include "sampler/internal.h"

#include "base/alloc.h"

uint64_t ew_pending_index(struct ew_sampler *sampler, uint64_t t_ns)
{
    return sampler->config.rounds ? sampler->first : ew_ticks_index(&sampler->ticks, t_ns);
}

uint64_t ew_pending_start_ns(const struct ew_sampler *sampler, uint64_t index)
{
    if (index <= sampler->first || sampler->config.rounds)
        return sampler->first_ns;
    return ew_ticks_start(&sampler->ticks, index);
}

uint64_t ew_pending_clamp(struct ew_sampler *sampler, uint64_t index)
{
    if (index - sampler->first < EW_RING_MAX)
        return index;
    sampler->late = true;
    return index < sampler->first ? sampler->first : sampler->first + EW_RING_MAX - 1;
}

static int grow_ring(struct ew_sampler *sampler, uint64_t needed)
{
    uint32_t capacity = sampler->ring_capacity == 0 ? 16 : sampler->ring_capacity;
    while (capacity < needed)
        capacity *= 2;
    struct ew_bucket *ring = ew_calloc(capacity, sizeof *ring);
    if (ring == NULL) {
        sampler->failure = ETWATCH_ENOMEM;
        return ETWATCH_ENOMEM;
    }
    for (uint32_t i = 0; i < sampler->ring_capacity; i++) {
        uint64_t index = sampler->first + i;
        ring[index % capacity] = sampler->ring[index % sampler->ring_capacity];
    }
    ew_free(sampler->ring);
    sampler->ring = ring;
    sampler->ring_capacity = capacity;
    return 0;
}

struct ew_bucket *ew_pending_bucket(struct ew_sampler *sampler, uint64_t index)
{
    uint64_t ahead = index - sampler->first;
    if (ahead >= sampler->ring_capacity && grow_ring(sampler, ahead + 1) < 0)
        return NULL;
    if (index >= sampler->end_index)
        sampler->end_index = index + 1;
    return &sampler->ring[index & (sampler->ring_capacity - 1)];
}

/* The last cell in the list of `hint` with an index not above `index`. If there is none, returns
 * NULL and the list's first cell in *ret_first. */
static struct ew_cell *seek(struct ew_cell *hint, uint64_t index, struct ew_cell **ret_first)
{
    struct ew_cell *cell = hint;
    *ret_first = NULL;
    if (cell == NULL)
        return NULL;
    if (cell->index <= index) {
        while (cell->next != NULL && cell->next->index <= index)
            cell = cell->next;
        return cell;
    }
    while (cell != NULL && cell->index > index) {
        *ret_first = cell;
        cell = cell->prev;
    }
    return cell;
}

/* Inserts a new cell after `before` or, if that is NULL, in front of `first`. */
static struct ew_cell *insert(struct ew_sampler *sampler, uint64_t index, struct ew_cell *before,
                              struct ew_cell *first)
{
    uint32_t ref;
    struct ew_cell *cell = ew_pool_take(&sampler->cells, &ref);
    if (cell == NULL) {
        sampler->failure = ETWATCH_ENOMEM;
        return NULL;
    }
    cell->self = ref;
    cell->index = index;
    cell->prev = before;
    cell->next = before != NULL ? before->next : first;
    if (cell->prev != NULL)
        cell->prev->next = cell;
    if (cell->next != NULL)
        cell->next->prev = cell;
    return cell;
}

static struct ew_cell *process_cell(struct ew_sampler *sampler, struct ew_process *process,
                                    uint64_t index)
{
    struct ew_cell *first;
    struct ew_cell *near = seek(process->cells, index, &first);
    if (near == NULL || near->index != index) {
        struct ew_cell *other = near != NULL ? near : first;
        if (sampler->cells.used >= EW_CELLS_MAX && other != NULL) {
            sampler->late = true;
            return other;
        }
        struct ew_bucket *bucket = ew_pending_bucket(sampler, index);
        if (bucket == NULL)
            return NULL;
        near = insert(sampler, index, near, first);
        if (near == NULL)
            return NULL;
        near->process = process;
        if (bucket->last != NULL)
            bucket->last->follower = near;
        else
            bucket->first = near;
        bucket->last = near;
    }
    process->cells = near;
    return near;
}

static struct ew_cell *thread_cell(struct ew_sampler *sampler, struct ew_thread *thread,
                                   struct ew_cell *parent)
{
    struct ew_cell *first;
    struct ew_cell *near = seek(thread->cells, parent->index, &first);
    if (near == NULL || near->index != parent->index) {
        struct ew_cell *other = near != NULL ? near : first;
        if (sampler->cells.used >= EW_CELLS_MAX && other != NULL) {
            sampler->late = true;
            return other;
        }
        near = insert(sampler, parent->index, near, first);
        if (near == NULL)
            return NULL;
        near->process = parent->process;
        near->thread = thread;
        near->parent = parent;
        near->follower = parent->children;
        parent->children = near;
    }
    thread->cells = near;
    return near;
}

struct ew_cell *ew_pending_newest(const struct ew_process *process)
{
    struct ew_cell *cell = process->cells;
    while (cell != NULL && cell->next != NULL)
        cell = cell->next;
    return cell;
}

struct ew_cell *ew_pending_cell(struct ew_sampler *sampler, struct ew_process *process,
                                struct ew_thread *thread, uint64_t index)
{
    struct ew_cell *cell = NULL;
    if ((process->flags & EW_P_EXITING) != 0) {
        /* Nothing follows its end, and its last interval stays open until the exit is delivered. */
        struct ew_cell *final = ew_pending_newest(process);
        if (final == NULL)
            return NULL;
        if (index >= final->index || (index = ew_pending_clamp(sampler, index)) >= final->index)
            cell = final;
    } else {
        index = ew_pending_clamp(sampler, index);
    }
    if (cell == NULL)
        cell = process_cell(sampler, process, index);
    if (cell == NULL)
        return NULL;
    if ((process->flags & EW_P_MARK) != 0) {
        process->flags &= ~(uint32_t)EW_P_MARK;
        cell->flags |= EW_CELL_INCOMPLETE;
    }
    if (thread == NULL || !sampler->config.threads)
        return cell;
    return thread_cell(sampler, thread, cell);
}

void ew_pending_drop(struct ew_sampler *sampler, struct ew_cell *cell)
{
    struct ew_cell *other = cell->next != NULL ? cell->next : cell->prev;
    if (cell->prev != NULL)
        cell->prev->next = cell->next;
    if (cell->next != NULL)
        cell->next->prev = cell->prev;
    struct ew_thread *thread = cell->thread;
    if (thread != NULL) {
        if (thread->cells == cell)
            thread->cells = other;
        if (thread->cells == NULL && (thread->flags & EW_T_RETIRED) != 0) {
            thread->next = sampler->dead_threads;
            sampler->dead_threads = thread->self;
        }
    } else if (cell->process != NULL && cell->process->cells == cell) {
        cell->process->cells = other;
    }
    ew_pool_give(&sampler->cells, cell->self);
}

void ew_pending_gauges_read(const struct ew_sampler *sampler, struct ew_process *process,
                            uint64_t t_ns)
{
    if (t_ns > process->gauges_ns)
        process->gauges_ns = t_ns;
    if (process->gauges_since_ns <= sampler->first_ns || t_ns < process->gauges_since_ns)
        process->gauges_since_ns = t_ns;
}

void ew_pending_rss_read(struct ew_sampler *sampler, struct ew_process *process, uint64_t t_ns,
                         uint64_t rss_bytes)
{
    struct ew_cell *cell = process->cells, *first;
    uint64_t index = ew_pending_index(sampler, t_ns);
    if (cell == NULL || index == 0)
        return;
    cell = seek(cell, index - 1, &first);
    if (cell == NULL || (cell->flags & (EW_CELL_RSS | EW_CELL_FINAL)) != 0)
        return;
    cell->flags |= EW_CELL_RSS;
    cell->rss_bytes = rss_bytes;
}

static struct ew_process *process_at(struct ew_sampler *sampler, uint32_t ref)
{
    return ew_pool_at(&sampler->ledger.processes, ref);
}

void ew_list_push_start(struct ew_sampler *sampler, struct ew_process_list *list,
                        struct ew_process *process)
{
    process->next_start = 0;
    if (list->last != 0)
        process_at(sampler, list->last)->next_start = process->self;
    else
        list->first = process->self;
    list->last = process->self;
}

struct ew_process *ew_list_pop_start(struct ew_sampler *sampler, struct ew_process_list *list)
{
    if (list->first == 0)
        return NULL;
    struct ew_process *process = process_at(sampler, list->first);
    list->first = process->next_start;
    if (list->first == 0)
        list->last = 0;
    return process;
}

void ew_list_push_exit(struct ew_sampler *sampler, struct ew_process_list *list,
                       struct ew_process *process)
{
    process->next_exit = 0;
    if (list->last != 0)
        process_at(sampler, list->last)->next_exit = process->self;
    else
        list->first = process->self;
    list->last = process->self;
}

struct ew_process *ew_list_pop_exit(struct ew_sampler *sampler, struct ew_process_list *list)
{
    if (list->first == 0)
        return NULL;
    struct ew_process *process = process_at(sampler, list->first);
    list->first = process->next_exit;
    if (list->first == 0)
        list->last = 0;
    return process;
}
