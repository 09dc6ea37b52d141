/* SPDX-License-Identifier: MIT */
/* The reading side of a ring (ring.h): foreign bytes of EW_SPANS_RING_SIZE, aligned to 8. */
#ifndef EW_SPANS_RING_READER_H
#define EW_SPANS_RING_READER_H

#include <stdbool.h>
#include <stdint.h>

#include <etwatch/span.h>

struct ew_spans_ring {
    const unsigned char *bytes;
    uint32_t pid;   /* of its sender */
    uint32_t stuck; /* reads in a row that found the same unfinished record */
    uint64_t next;  /* number of the next record */
};

/* Where spans go. Their strings are valid during the call. */
struct ew_spans_ring_target {
    int64_t unix_minus_raw_ns;
    void (*on_span)(void *ctx, const struct etwatch_span *span);
    void *ctx;
};

/* Whether the header is that of a ring of this version. */
bool ew_spans_ring_valid(const unsigned char *bytes);
/* Delivers the finished records since the last call; returns their number. `last`: see
 * etwatch_receiver_read. Adds the records that are lost to *lost. */
int ew_spans_ring_read(struct ew_spans_ring *ring, const struct ew_spans_ring_target *target,
                       bool last, uint64_t *lost);

#endif
