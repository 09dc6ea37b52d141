/* SPDX-License-Identifier: MIT */
/* The reading side of a ring (ring.h): foreign bytes of EW_GPU_RING_SIZE, aligned to 8. */
#ifndef EW_GPU_RING_READER_H
#define EW_GPU_RING_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/ring.h"

struct ew_gpu_ring {
    const unsigned char *bytes;
    uint64_t next;  /* number of the next record */
    uint32_t stuck; /* reads in a row that found the same unfinished record */
    uint64_t lost;
};

/* Whether the header is that of a ring of this version. */
bool ew_gpu_ring_valid(const unsigned char *bytes);
/* A copy of the header; `problem` is terminated. */
void ew_gpu_ring_header(const struct ew_gpu_ring *ring, struct ew_gpu_ring_header *ret_header);
/* Delivers the finished records since the last call, at most `most`; returns their number. `last`:
 * nothing is written any more. */
uint32_t ew_gpu_ring_read(struct ew_gpu_ring *ring, bool last, uint32_t most,
                          void (*on_record)(void *ctx, const struct ew_gpu_ring_record *record),
                          void *ctx);
/* Copies the text at this offset, cut to size bytes with its terminating 0; false: there is none.
 */
bool ew_gpu_ring_text(const struct ew_gpu_ring *ring, uint32_t offset, char *to, size_t size);

#endif
