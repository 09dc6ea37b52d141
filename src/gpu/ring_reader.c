/* SPDX-License-Identifier: MIT */
/*
 * Reads the records of a ring. A ring is foreign bytes that another process may change at any time:
 * header and records are copied before they are looked at, and texts are bounded.
 */
#include "gpu/ring_reader.h"

#include <string.h>

#include "base/bytes.h"

enum { STUCK_READS = 8 };

bool ew_gpu_ring_valid(const unsigned char *bytes)
{
    struct ew_gpu_ring_header header;
    memcpy(&header, bytes, sizeof header);
    return memcmp(header.magic, EW_GPU_RING_MAGIC, sizeof header.magic) == 0 &&
           header.version == EW_GPU_RING_VERSION && header.records == EW_GPU_RING_RECORDS &&
           header.texts == EW_GPU_RING_TEXTS;
}

void ew_gpu_ring_header(const struct ew_gpu_ring *ring, struct ew_gpu_ring_header *ret_header)
{
    memcpy(ret_header, ring->bytes, sizeof *ret_header);
    ret_header->problem[sizeof ret_header->problem - 1] = '\0';
}

bool ew_gpu_ring_text(const struct ew_gpu_ring *ring, uint32_t offset, char *to, size_t size)
{
    struct ew_bytes bytes;
    if (offset == 0 || offset >= EW_GPU_RING_TEXTS || size == 0)
        return false;
    ew_bytes_init(&bytes, ring->bytes + EW_GPU_RING_HEADER + offset, EW_GPU_RING_TEXTS - offset);
    size_t len = ew_bytes_u16(&bytes);
    len = len > EW_GPU_RING_TEXT_MAX ? EW_GPU_RING_TEXT_MAX : len;
    const uint8_t *text = ew_bytes_take(&bytes, len);
    if (text == NULL)
        return false;
    len = len < size ? len : size - 1;
    memcpy(to, text, len);
    to[len] = '\0';
    return true;
}

static const unsigned char *record_at(const struct ew_gpu_ring *ring, uint64_t number)
{
    return ring->bytes + EW_GPU_RING_FIRST +
           number % EW_GPU_RING_RECORDS * sizeof(struct ew_gpu_ring_record);
}

static uint64_t commit_of(const struct ew_gpu_ring *ring, uint64_t number)
{
    const unsigned char *at = record_at(ring, number) + offsetof(struct ew_gpu_ring_record, commit);
    return __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_ACQUIRE);
}

/* Skips records that were overwritten, and one that was never finished. */
static bool skip(struct ew_gpu_ring *ring, uint64_t commit, bool last)
{
    if (commit > ring->next + 1) { /* the writer is a whole ring ahead */
        uint64_t oldest = commit - 1 >= EW_GPU_RING_RECORDS ? commit - EW_GPU_RING_RECORDS : 0;
        uint64_t to = oldest > ring->next ? oldest : ring->next + 1;
        ring->lost += to - ring->next;
        ring->next = to;
        return true;
    }
    bool later = commit_of(ring, ring->next + 1) == ring->next + 2;
    if (later && (last || ++ring->stuck > STUCK_READS)) {
        ring->lost++;
        ring->next++;
        ring->stuck = 0;
        return true;
    }
    return false;
}

uint32_t ew_gpu_ring_read(struct ew_gpu_ring *ring, bool last, uint32_t most,
                          void (*on_record)(void *ctx, const struct ew_gpu_ring_record *record),
                          void *ctx)
{
    uint32_t count = 0;
    /* A writer that is faster than this must not keep the reader here. */
    for (uint32_t i = 0; i < 2 * EW_GPU_RING_RECORDS && count < most; i++) {
        struct ew_gpu_ring_record record;
        uint64_t commit = commit_of(ring, ring->next);
        if (commit != ring->next + 1) {
            if (!skip(ring, commit, last))
                break;
            continue;
        }
        memcpy(&record, record_at(ring, ring->next), sizeof record);
        ring->stuck = 0;
        ring->next++;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (commit_of(ring, ring->next - 1) != ring->next) {
            ring->lost++; /* overwritten while it was copied */
            continue;
        }
        on_record(ctx, &record);
        count++;
    }
    return count;
}
