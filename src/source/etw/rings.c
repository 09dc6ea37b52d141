/* SPDX-License-Identifier: MIT */
/*
 * Owns the pool of blocks and the chains. Invariants: bytes of a block below `filled` never change
 * again; a block with a successor is full for good; a block is in the pool or in one chain. The
 * pool is a stack with one thread that pops, which is why popping needs no counter against blocks
 * that come back; the last block used is the next one, so that memory in use stays small.
 *
 * An entry is 8 bytes (size, number) and the event as in a recording, padded to 8. Numbers tell the
 * order of events of the same time.
 */
#include "source/etw/rings.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "source/etl/walk.h"
#include "source/etw/convert.h"

#include <etwatch/etwatch.h>

enum {
    ENTRY_HEAD = 8,
    BLOCK_ROOM = 65536 + 2 * ENTRY_HEAD, /* any event fits */
    CPUS_MAX = 2048,
    LINE = 64,
};
#define MARKER 0x80000000u /* in the size of an entry: no event but a count of those lost */

struct block {
    _Atomic(struct block *) next; /* in its chain, or in the pool */
    _Atomic uint32_t filled;
    uint8_t pad[LINE - sizeof(void *) - 4];
    uint8_t data[BLOCK_ROOM];
};

struct entry {
    uint64_t t_raw;   /* not before that of the entry before it on its CPU */
    uint64_t written; /* the time it says itself */
    uint32_t number, size;
    const uint8_t *at;
    uint8_t type;
    bool marker;
};

struct stream {
    /* who puts */
    struct block *tail;
    _Atomic(struct block *) first; /* set once */
    _Atomic uint64_t dropped;
    uint64_t marked; /* of these, told by markers */
    uint8_t pad[LINE - 32];
    /* who takes */
    struct block *head;
    uint32_t at;
    bool has_entry;
    struct entry entry;
    uint64_t told;  /* lost ones */
    uint64_t t_raw; /* of the last entry seen: time does not go back on a CPU */
    uint8_t count[8];
};

struct ew_etw_rings {
    _Atomic(struct block *) pool;
    _Atomic uint32_t used;
    uint32_t used_max, number;
    _Atomic uint64_t put;
    _Atomic uint32_t cpus; /* those seen */
    uint32_t cpu_room;
    struct stream *streams;
    struct block *blocks;
    uint32_t block_count;
    /* who takes */
    struct stream **heap;
    size_t heap_count;
    struct block *spent; /* their events are with the caller */
    uint64_t taken_raw, late;
};

/* ----------------------------------------------------------------------- making */

int ew_etw_rings_new(uint32_t cpu_count, uint64_t pool_bytes, struct ew_etw_rings **ret_rings)
{
    struct ew_etw_rings *rings = ew_calloc(1, sizeof *rings);
    if (rings == NULL)
        return ETWATCH_ENOMEM;
    uint64_t count = pool_bytes / sizeof(struct block);
    rings->block_count = count < 4 ? 4 : count > 65536 ? 65536 : (uint32_t)count;
    rings->cpu_room = cpu_count == 0 ? 1 : cpu_count > CPUS_MAX ? CPUS_MAX : cpu_count;
    rings->streams = ew_calloc(rings->cpu_room, sizeof *rings->streams);
    rings->heap = ew_calloc(rings->cpu_room, sizeof(struct stream *));
    rings->blocks = ew_calloc(rings->block_count, sizeof *rings->blocks);
    if (rings->streams == NULL || rings->heap == NULL || rings->blocks == NULL) {
        ew_etw_rings_free(rings);
        return ETWATCH_ENOMEM;
    }
    *ret_rings = rings;
    return 0;
}

void ew_etw_rings_free(struct ew_etw_rings *rings)
{
    if (rings == NULL)
        return;
    ew_free(rings->streams);
    ew_free(rings->heap);
    ew_free(rings->blocks);
    ew_free(rings);
}

/* ---------------------------------------------------------------------- the pool */

/* Blocks never used yet are not in the pool: linking them would touch them all. */
static struct block *pop(struct ew_etw_rings *rings)
{
    struct block *block = atomic_load_explicit(&rings->pool, memory_order_acquire);
    while (block != NULL) {
        struct block *next = atomic_load_explicit(&block->next, memory_order_relaxed);
        if (atomic_compare_exchange_weak_explicit(&rings->pool, &block, next, memory_order_acquire,
                                                  memory_order_acquire))
            break;
    }
    uint32_t fresh = rings->used_max;
    if (block == NULL && fresh < rings->block_count) {
        block = &rings->blocks[fresh];
        rings->used_max = fresh + 1;
        atomic_store_explicit(&rings->used, fresh + 1, memory_order_relaxed);
    }
    if (block != NULL) {
        atomic_store_explicit(&block->next, NULL, memory_order_relaxed);
        atomic_store_explicit(&block->filled, 0, memory_order_relaxed);
    }
    return block;
}

static void push(struct ew_etw_rings *rings, struct block *block)
{
    struct block *top = atomic_load_explicit(&rings->pool, memory_order_relaxed);
    do {
        atomic_store_explicit(&block->next, top, memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&rings->pool, &top, block, memory_order_release,
                                                    memory_order_relaxed));
}

/* ----------------------------------------------------------------------- putting */

/* Room for an entry at the end of the chain, or NULL. */
static uint8_t *make_room(struct ew_etw_rings *rings, struct stream *stream, uint32_t bytes)
{
    struct block *tail = stream->tail;
    uint32_t filled = tail == NULL ? 0 : atomic_load_explicit(&tail->filled, memory_order_relaxed);
    if (tail != NULL && filled + bytes <= BLOCK_ROOM)
        return tail->data + filled;
    struct block *fresh = pop(rings);
    if (fresh == NULL)
        return NULL;
    if (tail == NULL)
        atomic_store_explicit(&stream->first, fresh, memory_order_release);
    else
        atomic_store_explicit(&tail->next, fresh, memory_order_release);
    stream->tail = fresh;
    return fresh->data;
}

static void entry_head(struct ew_etw_rings *rings, uint8_t *at, uint32_t size)
{
    uint32_t number = rings->number++;
    memcpy(at, &size, 4);
    memcpy(at + 4, &number, 4);
}

static void publish(struct stream *stream, uint32_t bytes)
{
    uint32_t filled = atomic_load_explicit(&stream->tail->filled, memory_order_relaxed);
    atomic_store_explicit(&stream->tail->filled, filled + bytes, memory_order_release);
}

static void drop(struct stream *stream)
{
    uint64_t dropped = atomic_load_explicit(&stream->dropped, memory_order_relaxed);
    atomic_store_explicit(&stream->dropped, dropped + 1, memory_order_release);
}

/* Before the first event after a loss. */
static bool put_marker(struct ew_etw_rings *rings, struct stream *stream, uint64_t dropped)
{
    uint8_t *at = make_room(rings, stream, 2 * ENTRY_HEAD);
    if (at == NULL)
        return false;
    entry_head(rings, at, MARKER | 8);
    memcpy(at + ENTRY_HEAD, &dropped, 8);
    publish(stream, 2 * ENTRY_HEAD);
    stream->marked = dropped;
    return true;
}

void ew_etw_rings_put(struct ew_etw_rings *rings, const uint8_t *event_record)
{
    struct ew_etw_shape shape;
    ew_etw_shape(event_record, &shape);
    uint32_t cpu = shape.cpu < rings->cpu_room ? shape.cpu : rings->cpu_room - 1;
    struct stream *stream = &rings->streams[cpu];
    if (cpu >= atomic_load_explicit(&rings->cpus, memory_order_relaxed))
        atomic_store_explicit(&rings->cpus, cpu + 1, memory_order_release);
    uint64_t dropped = atomic_load_explicit(&stream->dropped, memory_order_relaxed);
    if (dropped != stream->marked && !put_marker(rings, stream, dropped)) {
        drop(stream);
        return;
    }
    uint32_t bytes = ENTRY_HEAD + ew_etl_padded(shape.size);
    uint8_t *at = shape.size == 0 ? NULL : make_room(rings, stream, bytes);
    if (at == NULL) {
        drop(stream);
        return;
    }
    entry_head(rings, at, shape.size);
    ew_etw_write(event_record, &shape, at + ENTRY_HEAD);
    publish(stream, bytes);
    uint64_t put = atomic_load_explicit(&rings->put, memory_order_relaxed);
    atomic_store_explicit(&rings->put, put + 1, memory_order_relaxed);
}

/* ------------------------------------------------------------------------ taking */

/* Goes to the block that has the next entry; false: there is none yet. */
static bool reach_entry(struct ew_etw_rings *rings, struct stream *stream)
{
    if (stream->head == NULL)
        stream->head = atomic_load_explicit(&stream->first, memory_order_acquire);
    while (stream->head != NULL) {
        struct block *next = atomic_load_explicit(&stream->head->next, memory_order_acquire);
        /* After the successor: then what is filled is all there will be. */
        if (stream->at < atomic_load_explicit(&stream->head->filled, memory_order_acquire))
            return true;
        if (next == NULL)
            return false;
        atomic_store_explicit(&stream->head->next, rings->spent, memory_order_relaxed);
        rings->spent = stream->head;
        stream->head = next;
        stream->at = 0;
    }
    return false;
}

static bool load_entry(struct ew_etw_rings *rings, struct stream *stream)
{
    struct entry *entry = &stream->entry;
    struct ew_etl_frame frame;
    const char *what;
    stream->has_entry = reach_entry(rings, stream);
    if (!stream->has_entry)
        return false;
    const uint8_t *at = stream->head->data + stream->at;
    uint32_t size = ew_load_u32(at);
    entry->marker = (size & MARKER) != 0;
    entry->size = size & ~MARKER;
    entry->number = ew_load_u32(at + 4);
    entry->at = at + ENTRY_HEAD;
    entry->type = 0;
    stream->at += ENTRY_HEAD + ew_etl_padded(entry->size);
    if (!entry->marker) {
        const uint8_t *end = entry->at + entry->size;
        if (!ew_etl_frame_fast(entry->at, end, &frame))
            (void)ew_etl_frame_slow(entry->at, end, &frame, &what);
        entry->type = frame.type;
        entry->written = frame.t_raw;
        if (frame.t_raw > stream->t_raw)
            stream->t_raw = frame.t_raw;
    }
    entry->t_raw = stream->t_raw;
    return true;
}

static bool before(const struct entry *a, const struct entry *b)
{
    if (a->t_raw != b->t_raw)
        return a->t_raw < b->t_raw;
    return (int32_t)(a->number - b->number) < 0;
}

static void sift_down(struct ew_etw_rings *rings, size_t i)
{
    struct stream **heap = rings->heap, *moved = heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= rings->heap_count)
            break;
        if (child + 1 < rings->heap_count && before(&heap[child + 1]->entry, &heap[child]->entry))
            child++;
        if (!before(&heap[child]->entry, &moved->entry))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moved;
}

/* Every stream that has something, the earliest on top. */
static void gather(struct ew_etw_rings *rings)
{
    uint32_t cpus = atomic_load_explicit(&rings->cpus, memory_order_acquire);
    rings->heap_count = 0;
    for (uint32_t cpu = 0; cpu < cpus; cpu++) {
        struct stream *stream = &rings->streams[cpu];
        if (stream->has_entry || load_entry(rings, stream))
            rings->heap[rings->heap_count++] = stream;
    }
    for (size_t i = rings->heap_count / 2; i-- > 0;)
        sift_down(rings, i);
}

static void fill_loss(struct stream *stream, uint16_t cpu, uint64_t count, struct ew_record *record)
{
    memset(record, 0, sizeof *record);
    memcpy(stream->count, &count, 8);
    record->kind = EW_RECORD_LOSS;
    record->id = 2;
    record->cpu = cpu;
    record->pid = record->tid = EW_NO_ID;
    record->payload = stream->count;
    record->payload_size = 8;
}

/* False: it stands for losses that were told already. */
static bool take_entry(struct ew_etw_rings *rings, struct stream *stream, struct ew_record *record)
{
    const struct entry *entry = &stream->entry;
    uint16_t cpu = (uint16_t)(stream - rings->streams);
    if (entry->marker) {
        uint64_t total = ew_load_u64(entry->at);
        if (total <= stream->told)
            return false;
        fill_loss(stream, cpu, total - stream->told, record);
        stream->told = total;
        record->t_raw = entry->t_raw;
    } else {
        (void)ew_etl_fill(record, entry->at, entry->size, entry->type, cpu);
        record->t_raw = entry->written;
    }
    rings->late += entry->t_raw < rings->taken_raw;
    if (entry->t_raw > rings->taken_raw)
        rings->taken_raw = entry->t_raw;
    return true;
}

/* Lost since the last event of a CPU: nothing follows that could mark it. */
static size_t take_losses(struct ew_etw_rings *rings, struct ew_record *records, size_t max)
{
    uint32_t cpus = atomic_load_explicit(&rings->cpus, memory_order_acquire);
    size_t count = 0;
    for (uint32_t cpu = 0; cpu < cpus && count < max; cpu++) {
        struct stream *stream = &rings->streams[cpu];
        uint64_t dropped = atomic_load_explicit(&stream->dropped, memory_order_acquire);
        if (stream->has_entry || dropped <= stream->told)
            continue;
        if (load_entry(rings, stream))
            continue;
        fill_loss(stream, (uint16_t)cpu, dropped - stream->told, &records[count]);
        records[count++].t_raw = rings->taken_raw;
        stream->told = dropped;
    }
    return count;
}

static void release_spent(struct ew_etw_rings *rings)
{
    while (rings->spent != NULL) {
        struct block *block = rings->spent;
        rings->spent = atomic_load_explicit(&block->next, memory_order_relaxed);
        push(rings, block);
    }
}

size_t ew_etw_rings_take(struct ew_etw_rings *rings, uint64_t horizon_raw,
                         struct ew_record *records, size_t max)
{
    size_t count = 0;
    release_spent(rings);
    gather(rings);
    while (count < max && rings->heap_count > 0) {
        struct stream *stream = rings->heap[0];
        if (stream->entry.t_raw > horizon_raw)
            break;
        /* Its count is with the caller until the next call: one loss per stream and call. */
        if (stream->entry.marker && count > 0)
            break;
        count += take_entry(rings, stream, &records[count]);
        if (!load_entry(rings, stream)) {
            rings->heap[0] = rings->heap[--rings->heap_count];
            if (rings->heap_count == 0)
                break;
        }
        sift_down(rings, 0);
    }
    if (count == 0)
        count = take_losses(rings, records, max);
    return count;
}

void ew_etw_rings_counts(const struct ew_etw_rings *rings, struct ew_etw_rings_counts *ret_counts)
{
    uint32_t cpus = atomic_load_explicit(&rings->cpus, memory_order_acquire);
    memset(ret_counts, 0, sizeof *ret_counts);
    for (uint32_t cpu = 0; cpu < cpus; cpu++)
        ret_counts->dropped +=
            atomic_load_explicit(&rings->streams[cpu].dropped, memory_order_relaxed);
    ret_counts->put = atomic_load_explicit(&rings->put, memory_order_relaxed);
    ret_counts->late = rings->late;
    ret_counts->blocks = rings->block_count;
    ret_counts->blocks_used_max = atomic_load_explicit(&rings->used, memory_order_relaxed);
}
