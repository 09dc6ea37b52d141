/* SPDX-License-Identifier: MIT */
/*
 * Owns a list of disjoint intervals. Operations mostly arrive in order, so that one is appended to
 * the last interval or follows it; buffers of several streams arrive one after another, so that
 * some are inserted a little before the end. The list is bounded: when it is full, its older half
 * is forgotten. So is the work: the times come from the traced program, and inserting far from the
 * end moves all that follows. What exceeds the limit between two calls of forget is late.
 */
#include "gpu/busy.h"

#include <string.h>

#include "base/alloc.h"

enum { INTERVALS_MAX = 1 << 18, MOVES_MAX = 1 << 28 };

void ew_gpu_busy_done(struct ew_gpu_busy_list *busy)
{
    ew_free(busy->list);
    memset(busy, 0, sizeof *busy);
}

void ew_gpu_busy_forget(struct ew_gpu_busy_list *busy, uint64_t before_ns)
{
    uint32_t gone = 0;
    busy->moves = 0;
    while (gone + 1 < busy->count && busy->list[gone + 1].end_ns <= before_ns) {
        const struct ew_gpu_interval *next = &busy->list[gone + 1];
        uint64_t idle_ns = busy->list[gone].end_ns;
        uint64_t given_ns = next->given_ns < next->start_ns ? next->given_ns : next->start_ns;
        busy->wait_ns += given_ns > idle_ns ? given_ns - idle_ns : 0;
        gone++;
    }
    if (gone == 0)
        return;
    memmove(busy->list, busy->list + gone, (busy->count - gone) * sizeof *busy->list);
    busy->count -= gone;
    busy->forgotten_ns = busy->list[0].start_ns;
}

static bool make_room(struct ew_gpu_busy_list *busy)
{
    if (busy->count == INTERVALS_MAX)
        ew_gpu_busy_forget(busy, busy->list[INTERVALS_MAX / 2].start_ns);
    if (busy->count < busy->size)
        return true;
    uint32_t size = busy->size == 0 ? 64 : busy->size * 2;
    void *bigger =
        size > INTERVALS_MAX ? NULL : ew_realloc_array(busy->list, size, sizeof *busy->list);
    if (bigger == NULL)
        return false;
    busy->list = bigger;
    busy->size = size;
    return true;
}

/* The first interval that begins after t_ns. */
static uint32_t first_after(const struct ew_gpu_busy_list *busy, uint64_t t_ns)
{
    uint32_t low = 0, high = busy->count;
    if (high > 0 && busy->list[high - 1].start_ns <= t_ns)
        return high;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (busy->list[middle].start_ns <= t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void ew_gpu_busy_add(struct ew_gpu_busy_list *busy, const struct ew_gpu_interval *added,
                     void (*on_piece)(void *ctx, uint64_t from_ns, uint64_t to_ns), void *ctx)
{
    struct ew_gpu_interval merged = *added;
    if (merged.start_ns < busy->forgotten_ns) {
        uint64_t end_ns = merged.end_ns < busy->forgotten_ns ? merged.end_ns : busy->forgotten_ns;
        busy->late_ns += end_ns - merged.start_ns;
        merged.start_ns = busy->forgotten_ns;
    }
    if (merged.end_ns <= merged.start_ns)
        return;
    if (!make_room(busy)) {
        busy->late_ns += merged.end_ns - merged.start_ns;
        return;
    }
    uint32_t from = first_after(busy, merged.start_ns), to = from;
    if (busy->count - from > MOVES_MAX - busy->moves) {
        busy->late_ns += merged.end_ns - merged.start_ns;
        return;
    }
    busy->moves += busy->count - from;
    uint64_t cursor_ns = merged.start_ns, end_ns = merged.end_ns;
    if (from > 0 && busy->list[from - 1].end_ns >= merged.start_ns)
        to = --from;
    for (; to < busy->count && busy->list[to].start_ns <= end_ns; to++) {
        const struct ew_gpu_interval *known = &busy->list[to];
        if (known->start_ns > cursor_ns) {
            busy->busy_ns += known->start_ns - cursor_ns;
            on_piece(ctx, cursor_ns, known->start_ns);
        }
        if (known->start_ns <= merged.start_ns) {
            merged.start_ns = known->start_ns;
            merged.given_ns = known->given_ns;
        }
        cursor_ns = known->end_ns > cursor_ns ? known->end_ns : cursor_ns;
        merged.end_ns = known->end_ns > merged.end_ns ? known->end_ns : merged.end_ns;
    }
    if (cursor_ns < end_ns) {
        busy->busy_ns += end_ns - cursor_ns;
        on_piece(ctx, cursor_ns, end_ns);
    }
    /* Replaces the intervals from `from` to `to` by one. */
    if (to != from + 1)
        memmove(busy->list + from + 1, busy->list + to, (busy->count - to) * sizeof *busy->list);
    busy->count = busy->count - (to - from) + 1;
    busy->list[from] = merged;
}
