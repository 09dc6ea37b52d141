/* SPDX-License-Identifier: MIT */
/*
 * Reads the records of a ring. A ring is foreign bytes that another process may change at any time:
 * a record is copied before it is looked at, texts are bounded and copied, and what is not a span
 * counts as lost. Nothing is kept but the number of the next record.
 */
#include "span/ring_reader.h"

#include <stddef.h>
#include <string.h>

#include "base/bytes.h"
#include "span/ring.h"

enum { STUCK_READS = 8 };

bool ew_spans_ring_valid(const unsigned char *bytes)
{
    struct ew_spans_ring_header header;
    memcpy(&header, bytes, sizeof header);
    return memcmp(header.magic, EW_SPANS_RING_MAGIC, sizeof header.magic) == 0 &&
           header.version == EW_SPANS_RING_VERSION && header.records == EW_SPANS_RING_RECORDS &&
           header.texts == EW_SPANS_RING_TEXTS;
}

/* Copies the text at this offset; false: there is none. */
static bool read_text(const struct ew_spans_ring *ring, uint32_t offset, char *to)
{
    struct ew_bytes bytes;
    if (offset == 0 || offset >= EW_SPANS_RING_TEXTS)
        return false;
    ew_bytes_init(&bytes, ring->bytes + EW_SPANS_RING_HEADER + offset,
                  EW_SPANS_RING_TEXTS - offset);
    uint16_t len = ew_bytes_u16(&bytes);
    len = len > EW_SPANS_RING_TEXT_MAX ? EW_SPANS_RING_TEXT_MAX : len;
    const uint8_t *text = ew_bytes_take(&bytes, len);
    if (text == NULL)
        return false;
    memcpy(to, text, len);
    to[len] = '\0';
    return true;
}

/* Whether the record is a span: of a known kind, with times that are in order on both clocks. */
static bool is_span(const struct ew_spans_ring_record *record, int64_t unix_minus_raw_ns)
{
    uint64_t offset_ns = (uint64_t)unix_minus_raw_ns;
    return record->start_ns != 0 && record->end_ns >= record->start_ns &&
           record->end_ns + offset_ns >= record->start_ns + offset_ns &&
           record->kind >= ETWATCH_SPAN_WORK && record->kind <= ETWATCH_SPAN_LOAD;
}

static void deliver(const struct ew_spans_ring *ring, const struct ew_spans_ring_record *record,
                    const struct ew_spans_ring_target *target)
{
    char name[EW_SPANS_RING_TEXT_MAX + 1] = "", session[EW_SPANS_RING_TEXT_MAX + 1];
    char shape[EW_SPANS_RING_TEXT_MAX + 1];
    struct etwatch_span span = {
        .size = sizeof span,
        .kind = record->kind,
        .flags = record->flags & (ETWATCH_SPAN_FAILED | ETWATCH_SPAN_ASYNC),
        .pid = ring->pid,
        .tid = record->tid,
        .end_tid = record->end_tid,
        .start_ns = record->start_ns + (uint64_t)target->unix_minus_raw_ns,
        .end_ns = record->end_ns + (uint64_t)target->unix_minus_raw_ns,
        .name = name,
    };
    (void)read_text(ring, record->name, name);
    if (read_text(ring, record->session, session))
        span.session = session;
    if (read_text(ring, record->shape, shape))
        span.shape = shape;
    target->on_span(target->ctx, &span);
}

static uint64_t commit_of(const struct ew_spans_ring *ring, uint64_t number)
{
    const unsigned char *at = ring->bytes + EW_SPANS_RING_FIRST +
                              number % EW_SPANS_RING_RECORDS * sizeof(struct ew_spans_ring_record) +
                              offsetof(struct ew_spans_ring_record, commit);
    return __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_ACQUIRE);
}

/* Skips records that were overwritten, and one that was never finished: its thread was ended. */
static bool skip(struct ew_spans_ring *ring, uint64_t commit, bool last, uint64_t *lost)
{
    if (commit > ring->next + 1) { /* the writer is a whole ring ahead */
        uint64_t oldest = commit - 1 >= EW_SPANS_RING_RECORDS ? commit - EW_SPANS_RING_RECORDS : 0;
        uint64_t to = oldest > ring->next ? oldest : ring->next + 1;
        *lost += to - ring->next;
        ring->next = to;
        return true;
    }
    bool later = commit_of(ring, ring->next + 1) == ring->next + 2;
    if (later && (last || ++ring->stuck > STUCK_READS)) {
        ++*lost;
        ring->next++;
        ring->stuck = 0;
        return true;
    }
    return false;
}

int ew_spans_ring_read(struct ew_spans_ring *ring, const struct ew_spans_ring_target *target,
                       bool last, uint64_t *lost)
{
    int count = 0;
    /* A writer that is faster than this must not keep the reader here. */
    for (uint32_t i = 0; i < 2 * EW_SPANS_RING_RECORDS; i++) {
        struct ew_spans_ring_record record;
        uint64_t commit = commit_of(ring, ring->next);
        if (commit != ring->next + 1) {
            if (!skip(ring, commit, last, lost))
                break;
            continue;
        }
        memcpy(&record,
               ring->bytes + EW_SPANS_RING_FIRST +
                   ring->next % EW_SPANS_RING_RECORDS * sizeof record,
               sizeof record);
        ring->stuck = 0;
        ring->next++;
        /* Overwritten while it was copied, or not a span. */
        if (commit_of(ring, ring->next - 1) != ring->next ||
            !is_span(&record, target->unix_minus_raw_ns)) {
            ++*lost;
            continue;
        }
        deliver(ring, &record, target);
        count++;
    }
    return count;
}
