/* SPDX-License-Identifier: MIT */
/*
 * Hash chains over three bytes: head holds the last position of each hash; prev, a ring as long as
 * the window, holds the previous position of each. Positions are stored plus one, so that zeroed
 * memory means none.
 *
 * Recordings are full of exact repetitions a few events back, so short chains find nearly all
 * matches; the depth determines the cost of compression.
 */
#include "xpress_match.h"

#include <etwatch/etwatch.h>

#include "base/alloc.h"

enum { HASH_BITS = 14, DEPTH = 8, GOOD_ENOUGH = 96 };

int ew_xpress_finder_init(struct ew_xpress_finder *finder, const uint8_t *in, size_t size,
                          size_t window)
{
    *finder = (struct ew_xpress_finder){.in = in, .size = size, .window = window};
    if (size >= UINT32_MAX)
        return ETWATCH_EINVAL;
    finder->head = ew_calloc((size_t)1 << HASH_BITS, sizeof *finder->head);
    finder->prev = ew_calloc(window, sizeof *finder->prev);
    if (!finder->head || !finder->prev) {
        ew_xpress_finder_done(finder);
        return ETWATCH_ENOMEM;
    }
    return 0;
}

void ew_xpress_finder_done(struct ew_xpress_finder *finder)
{
    ew_free(finder->head);
    ew_free(finder->prev);
    finder->head = finder->prev = NULL;
}

static uint32_t hash_at(const uint8_t *p)
{
    uint32_t three = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
    return three * 0x9E3779B1u >> (32 - HASH_BITS);
}

/* Enters everything before pos into the chains. */
static void enter_until(struct ew_xpress_finder *f, size_t pos)
{
    size_t last = f->size < EW_XPRESS_MIN_MATCH ? 0 : f->size - EW_XPRESS_MIN_MATCH + 1;
    size_t stop = pos < last ? pos : last;
    for (; f->entered < stop; f->entered++) {
        uint32_t hash = hash_at(f->in + f->entered);
        f->prev[f->entered & (f->window - 1)] = f->head[hash];
        f->head[hash] = (uint32_t)f->entered + 1;
    }
}

static size_t common_length(const uint8_t *a, const uint8_t *b, const uint8_t *b_end)
{
    const uint8_t *begin = b;
    while (b < b_end && *a == *b) {
        a++;
        b++;
    }
    return (size_t)(b - begin);
}

struct ew_xpress_match ew_xpress_find(struct ew_xpress_finder *f, size_t pos, size_t end)
{
    struct ew_xpress_match best = {0, 0};
    enter_until(f, pos);
    if (end - pos < EW_XPRESS_MIN_MATCH)
        return best;
    uint32_t candidate = f->head[hash_at(f->in + pos)];
    for (int depth = 0; candidate != 0 && depth < DEPTH; depth++) {
        size_t at = candidate - 1;
        /* An overwritten entry of the ring leads to positions outside of the window. */
        if (pos - at > f->window)
            break;
        if (best.len == 0 ||
            (pos + best.len < end && f->in[at + best.len] == f->in[pos + best.len])) {
            size_t len = common_length(f->in + at, f->in + pos, f->in + end);
            if (len > best.len)
                best = (struct ew_xpress_match){len, pos - at};
            if (len >= GOOD_ENOUGH)
                break;
        }
        uint32_t next = f->prev[at & (f->window - 1)];
        if (next >= candidate)
            break;
        candidate = next;
    }
    if (best.len < EW_XPRESS_MIN_MATCH)
        best.len = 0;
    return best;
}
