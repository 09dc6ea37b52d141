/* SPDX-License-Identifier: MIT */
/*
 * The index: the buffers of each CPU in time order.
 *
 * Buffers of a CPU are in time order with three exceptions: the first buffer of a file may hold
 * events of the end, so buffers of different types are kept separate; circular files start in the
 * middle; and times may be damaged. A buffer that starts before the last one of its CPU therefore
 * starts another stream for that CPU. After the scan, two streams of which one ends before the
 * other starts are joined: this rotates a circular file, per CPU.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "source/etl/merge.h"

enum { HASH_SIZE = 16384, SIBLINGS_MAX = 8, FIRST_CAPACITY = 1024 };

static uint32_t hash_of(uint64_t key)
{
    return (uint32_t)(ew_hash_mix(ew_hash_seed(), key) >> 50);
}

/* The slot of the key in the hash table, or the free one for it. */
static int32_t *slot_of(struct ew_etl_merge *merge, uint64_t key)
{
    uint32_t at = hash_of(key);
    while (merge->first_of_key[at] >= 0 && merge->streams[merge->first_of_key[at]].key != key)
        at = (at + 1) % HASH_SIZE;
    return &merge->first_of_key[at];
}

static int32_t take_entry(struct ew_etl_merge *merge)
{
    int32_t entry = merge->free_entry;
    if (entry >= 0) {
        merge->free_entry = merge->entries[entry].next;
        merge->free_count--;
        return entry;
    }
    if (merge->entry_count == merge->entry_capacity) {
        uint32_t capacity = merge->entry_capacity ? merge->entry_capacity * 2 : FIRST_CAPACITY;
        capacity = capacity < merge->entry_max ? capacity : merge->entry_max;
        void *grown = ew_realloc_array(merge->entries, capacity, sizeof *merge->entries);
        if (!grown)
            return ETWATCH_ENOMEM;
        merge->entries = grown;
        merge->entry_capacity = capacity;
    }
    return (int32_t)merge->entry_count++;
}

void ew_etl_merge_free_entry(struct ew_etl_merge *merge, int32_t entry)
{
    merge->entries[entry].next = merge->free_entry;
    merge->free_entry = entry;
    merge->free_count++;
}

static bool has_room(const struct ew_etl_merge *merge)
{
    return merge->free_entry >= 0 || merge->entry_count < merge->entry_max;
}

/* The stream with this key that ends closest before first_ns, or NULL. */
static struct ew_etl_stream *best_of(struct ew_etl_merge *merge, int32_t first, uint64_t first_ns,
                                     uint32_t *ret_count)
{
    struct ew_etl_stream *best = NULL;
    *ret_count = 0;
    for (int32_t i = first; i >= 0; i = merge->streams[i].sibling) {
        struct ew_etl_stream *stream = &merge->streams[i];
        if (stream->tail_ns <= first_ns && (!best || stream->tail_ns > best->tail_ns))
            best = stream;
        ++*ret_count;
    }
    return best;
}

static struct ew_etl_stream *new_stream(struct ew_etl_merge *merge, int32_t *slot, uint64_t key,
                                        const struct ew_etl_file *file, uint16_t cpu)
{
    struct ew_etl_stream *stream = &merge->streams[merge->stream_count];
    *stream = (struct ew_etl_stream){
        .clock = &file->clock,
        .cpu = cpu,
        .file = (uint16_t)file->number,
        .entry = EW_ETL_NO_ENTRY,
        .tail = EW_ETL_NO_ENTRY,
        .ahead_entry = EW_ETL_NO_ENTRY,
        .key = key,
        .ended = true,
        .sibling = *slot,
    };
    *slot = (int32_t)merge->stream_count++;
    return stream;
}

/* The stream for a buffer. With too many streams it is any of its CPU, or of all: then the order
 * suffers, but everything is read. */
static struct ew_etl_stream *stream_for(struct ew_etl_merge *merge, const struct ew_etl_file *file,
                                        const struct ew_etl_buffer *buffer, uint64_t first_ns,
                                        bool has_time)
{
    uint64_t key = (uint64_t)file->number << 48 | (uint64_t)buffer->logger << 32 |
                   (uint64_t)buffer->type << 16 | buffer->cpu;
    int32_t *slot = slot_of(merge, key);
    uint32_t count;
    struct ew_etl_stream *best = best_of(merge, *slot, has_time ? first_ns : UINT64_MAX, &count);
    if (best)
        return best;
    if (count >= SIBLINGS_MAX)
        return &merge->streams[*slot];
    if (merge->stream_count < EW_ETL_STREAMS_MAX)
        return new_stream(merge, slot, key, file, buffer->cpu);
    return *slot >= 0 ? &merge->streams[*slot] : NULL;
}

static void append(struct ew_etl_merge *merge, struct ew_etl_stream *stream, int32_t entry)
{
    if (stream->entry == EW_ETL_NO_ENTRY)
        stream->entry = entry;
    else
        merge->entries[stream->tail].next = entry;
    if (stream->ahead_entry == EW_ETL_NO_ENTRY)
        stream->ahead_entry = entry;
    stream->tail = entry;
    stream->tail_ns = merge->entries[entry].first_ns;
    if (stream->ended)
        merge->revived = merge->dirty = true;
}

static int add(struct ew_etl_merge *merge, struct ew_etl_scan *scan,
               const struct ew_etl_found *found)
{
    const struct ew_etl_file *file = scan->file;
    uint64_t first_ns = ew_etl_clock_ns(&file->clock, found->first_raw);
    struct ew_etl_stream *stream =
        stream_for(merge, file, &found->buffer, first_ns, found->has_time);
    if (!stream) {
        ew_etl_count_bad(&merge->counts, EW_ETL_BAD_BUFFER, file->number, found->offset,
                         found->buffer.size, "too many CPUs");
        merge->counts.bytes += found->buffer.size;
        return 0;
    }
    int32_t at = take_entry(merge);
    if (at < 0)
        return at;
    /* Only a damaged time can be before the end of the only stream left. */
    if (!found->has_time || first_ns < stream->tail_ns)
        first_ns = stream->tail_ns;
    merge->entries[at] = (struct ew_etl_entry){
        .offset = found->offset,
        .first_ns = first_ns,
        .size = found->buffer.size,
        .filled = found->buffer.filled,
        .next = EW_ETL_NO_ENTRY,
        .flags = found->buffer.flags,
        .cut = found->cut,
    };
    append(merge, stream, at);
    scan->last_ns = first_ns;
    return 0;
}

/* Both have the same key; before ends where after starts, or earlier. */
static void join(struct ew_etl_merge *merge, struct ew_etl_stream *before,
                 struct ew_etl_stream *after)
{
    merge->entries[before->tail].next = after->entry;
    before->tail = after->tail;
    before->tail_ns = after->tail_ns;
    after->entry = after->tail = after->ahead_entry = EW_ETL_NO_ENTRY;
}

/* Only valid before any buffer was opened. */
static void join_siblings(struct ew_etl_merge *merge)
{
    for (uint32_t i = 0; i < merge->stream_count; i++) {
        struct ew_etl_stream *a = &merge->streams[i];
        for (int32_t j = a->sibling; j >= 0 && a->entry >= 0; j = merge->streams[j].sibling) {
            struct ew_etl_stream *b = &merge->streams[j];
            if (b->entry < 0)
                continue;
            if (a->tail_ns <= merge->entries[b->entry].first_ns)
                join(merge, a, b);
            else if (b->tail_ns <= merge->entries[a->entry].first_ns)
                join(merge, b, a);
        }
    }
}

/* Of the unfinished scans the one that is least far in time, so that a full index covers the
 * same time range of every file. */
static struct ew_etl_scan *next_scan(struct ew_etl_merge *merge)
{
    struct ew_etl_scan *next = NULL;
    for (size_t i = 0; i < merge->file_count; i++) {
        struct ew_etl_scan *scan = &merge->scans[i];
        if (scan->offset < scan->file->size_bytes && (!next || scan->last_ns < next->last_ns))
            next = scan;
    }
    return next;
}

int ew_etl_merge_index(struct ew_etl_merge *merge)
{
    /* Once the index has been full, refilling entry by entry would cost one read per buffer. */
    if (merge->scan_done || (merge->begun && merge->free_count < merge->refill_at))
        return 0;
    struct ew_etl_scan *scan;
    while ((scan = next_scan(merge)) != NULL && has_room(merge)) {
        struct ew_etl_found found;
        int rc = ew_etl_scan_next(scan, &found, &merge->counts);
        if (rc > 0)
            rc = add(merge, scan, &found);
        if (rc < 0)
            return rc;
    }
    merge->scan_done = scan == NULL;
    if (!merge->begun)
        join_siblings(merge);
    return 0;
}
