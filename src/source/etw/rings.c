/* SPDX-License-Identifier: MIT */
/*
 * Owns the pool of blocks and the chains. Invariants: bytes of a block below `filled` never change
 * again; a block with a successor is complete; a block is in the pool or in one chain. Only one
 * thread pops from the pool, so popping needs no ABA counter. The pool is a stack: the most
 * recently used block is reused first, which keeps the memory in use small.
 *
 * An entry is 8 bytes (size, number) and the event in the format of recordings, padded to 8; or all
 * events of a buffer of the session, copied as they are. Numbers give the order of events with
 * equal times.
 */
#include "source/etw/rings.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "source/etl/header.h"
#include "source/etl/walk.h"
#include "source/etl/xpress.h"
#include "source/etw/convert.h"

#include <etwatch/etwatch.h>

enum {
    ENTRY_HEAD = 8,
    BLOCK_ROOM = 65536 + 2 * ENTRY_HEAD, /* any event fits */
    CPUS_MAX = 2048,
    LINE = 64,
};
/* Flags in the size of an entry. */
#define MARKER 0x80000000u  /* not an event but a count of lost events */
#define CHUNK 0x40000000u   /* consecutive events of a buffer */
#define FLAGGED 0x20000000u /* a chunk before which the session lost events */
#define ENTRY_KINDS (MARKER | CHUNK | FLAGGED)

struct block {
    _Atomic(struct block *) next; /* in its chain, or in the pool */
    _Atomic uint32_t filled;
    uint8_t pad[LINE - sizeof(void *) - 4];
    uint8_t data[BLOCK_ROOM];
};

struct entry {
    uint64_t t_raw;   /* not less than that of the previous entry of its CPU */
    uint64_t written; /* the time in the event itself */
    uint32_t number, size;
    const uint8_t *at;
    uint8_t type;
    bool marker;
    bool flag;    /* not an event: the session lost events here */
    bool damaged; /* not an event: the rest of its buffer cannot be read */
};

struct stream {
    /* producer */
    struct block *tail;
    _Atomic(struct block *) first; /* set once */
    _Atomic uint64_t dropped;
    uint64_t marked; /* part of dropped that markers account for */
    uint8_t pad[LINE - 32];
    /* consumer */
    struct block *head;
    uint32_t at;
    const uint8_t *chunk, *chunk_end; /* remaining events of the current buffer */
    uint32_t chunk_number;
    bool has_entry;
    struct entry entry;
    uint64_t reported; /* lost events already reported */
    uint64_t t_raw;    /* of the last entry; never decreases on a CPU */
    uint8_t count[8];
};

struct ew_etw_rings {
    _Atomic(struct block *) pool;
    _Atomic uint32_t used;
    uint32_t used_max, number;
    _Atomic uint64_t put;
    _Atomic uint32_t cpus; /* highest CPU seen plus 1 */
    uint32_t cpu_room;
    struct stream *streams;
    struct block *blocks;
    uint32_t block_count;
    uint8_t *inflated; /* for decompressed buffers */
    size_t inflated_size;
    /* consumer */
    struct stream **heap;
    size_t heap_count;
    struct block *spent; /* the caller still uses their events */
    uint64_t taken_raw, late;
    uint64_t horizon_raw, lateness_raw; /* of the last take; see ew_etw_rings_lateness */
    uint64_t from_chunks, damaged;
};

/* ----------------------------------------------------------------- new and free */

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
    ew_free(rings->inflated);
    ew_free(rings);
}

/* ---------------------------------------------------------------------- the pool */

/* Blocks that were never used are not in the pool: linking them would touch their memory. */
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

/* ---------------------------------------------------------------------- producer */

/* Space for an entry at the end of the chain, or NULL. */
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

static void drop(struct stream *stream, uint64_t count)
{
    uint64_t dropped = atomic_load_explicit(&stream->dropped, memory_order_relaxed);
    atomic_store_explicit(&stream->dropped, dropped + count, memory_order_release);
}

/* Put before the first event after a loss. */
static bool put_marker(struct ew_etw_rings *rings, struct stream *stream)
{
    uint64_t dropped = atomic_load_explicit(&stream->dropped, memory_order_relaxed);
    if (dropped == stream->marked)
        return true;
    uint8_t *at = make_room(rings, stream, 2 * ENTRY_HEAD);
    if (at == NULL)
        return false;
    entry_head(rings, at, MARKER | 8);
    memcpy(at + ENTRY_HEAD, &dropped, 8);
    publish(stream, 2 * ENTRY_HEAD);
    stream->marked = dropped;
    return true;
}

static struct stream *stream_of(struct ew_etw_rings *rings, uint32_t cpu)
{
    if (cpu >= rings->cpu_room)
        cpu = rings->cpu_room - 1;
    if (cpu >= atomic_load_explicit(&rings->cpus, memory_order_relaxed))
        atomic_store_explicit(&rings->cpus, cpu + 1, memory_order_release);
    return &rings->streams[cpu];
}

void ew_etw_rings_put(struct ew_etw_rings *rings, const uint8_t *event_record)
{
    struct ew_etw_shape shape;
    ew_etw_shape(event_record, &shape);
    struct stream *stream = stream_of(rings, shape.cpu);
    uint32_t bytes = ENTRY_HEAD + ew_etl_padded(shape.size);
    uint8_t *at = NULL;
    if (put_marker(rings, stream) && shape.size != 0)
        at = make_room(rings, stream, bytes);
    if (at == NULL) {
        drop(stream, 1);
        return;
    }
    entry_head(rings, at, shape.size);
    ew_etw_write(event_record, &shape, at + ENTRY_HEAD);
    publish(stream, bytes);
    uint64_t put = atomic_load_explicit(&rings->put, memory_order_relaxed);
    atomic_store_explicit(&rings->put, put + 1, memory_order_relaxed);
}

/* ---------------------------------------------------------------- whole buffers */

/* Bytes of complete events within the first `most` bytes, and their number. */
static uint32_t whole_events(const uint8_t *events, uint32_t size, uint32_t most,
                             uint64_t *ret_count)
{
    struct ew_etl_frame frame;
    const char *what;
    uint32_t at = 0;
    for (*ret_count = 0; at < size; (*ret_count)++) {
        if (ew_etl_frame_slow(events + at, events + size, &frame, &what) != EW_ETL_EVENT)
            return size;
        uint32_t next = at + ew_etl_padded(frame.size);
        if (next > most)
            break;
        at = next;
    }
    return at < size ? at : size;
}

/* Puts as much as fits into a block; returns the number of bytes consumed. */
static uint32_t put_chunk(struct ew_etw_rings *rings, struct stream *stream, const uint8_t *events,
                          uint32_t size, uint32_t flag)
{
    enum { ROOM = BLOCK_ROOM - ENTRY_HEAD };
    uint64_t count;
    uint32_t bytes = size <= ROOM ? size : whole_events(events, size, ROOM, &count);
    if (bytes > ROOM) /* the events cannot be separated */
        bytes = ROOM;
    uint8_t *at = NULL;
    if (put_marker(rings, stream))
        at = make_room(rings, stream, ENTRY_HEAD + ew_etl_padded(bytes));
    if (at == NULL) {
        (void)whole_events(events, bytes, bytes, &count);
        drop(stream, count);
        return bytes;
    }
    entry_head(rings, at, bytes | CHUNK | flag);
    memcpy(at + ENTRY_HEAD, events, bytes);
    publish(stream, ENTRY_HEAD + ew_etl_padded(bytes));
    return bytes;
}

/* Decompresses a buffer; returns the size, or 0 on failure. */
static uint32_t inflate(struct ew_etw_rings *rings, const struct ew_etl_buffer *buffer,
                        const uint8_t *bytes, uint32_t size)
{
    size_t want = buffer->filled - EW_ETL_HEADER_SIZE, got = 0;
    if (want > EW_ETL_BUFFER_MAX)
        return 0;
    if (rings->inflated_size < want) {
        uint8_t *room = ew_realloc_array(rings->inflated, want, 1);
        if (room == NULL)
            return 0;
        rings->inflated = room;
        rings->inflated_size = want;
    }
    (void)(buffer->flags & EW_ETL_FLAG_HUFFMAN ? ew_xpress_huffman_inflate : ew_xpress_inflate)(
        bytes, size, rings->inflated, want, &got);
    return (uint32_t)got;
}

void ew_etw_rings_put_buffer(struct ew_etw_rings *rings, const uint8_t *bytes, uint32_t size)
{
    struct ew_etl_buffer buffer;
    if (size < EW_ETL_HEADER_SIZE)
        return;
    ew_etl_buffer_parse(bytes, &buffer);
    if (buffer.filled < EW_ETL_HEADER_SIZE)
        return;
    struct stream *stream = stream_of(rings, buffer.cpu);
    const uint8_t *events = bytes + EW_ETL_HEADER_SIZE;
    uint32_t left = size - EW_ETL_HEADER_SIZE;
    uint32_t flag = buffer.flags & EW_ETL_FLAG_LOST ? FLAGGED : 0;
    if (buffer.flags & EW_ETL_FLAG_COMPRESSED) {
        left = inflate(rings, &buffer, events, left);
        if (left == 0)
            drop(stream, 1);
        else
            events = rings->inflated;
    } else if (left > buffer.filled - EW_ETL_HEADER_SIZE) {
        left = buffer.filled - EW_ETL_HEADER_SIZE;
    }
    if (left == 0 && flag != 0) /* only the flag: something was lost, and nothing followed */
        (void)put_chunk(rings, stream, events, 0, flag);
    while (left > 0) {
        uint32_t taken = put_chunk(rings, stream, events, left, flag);
        events += taken;
        left -= taken;
        flag = 0;
    }
}

/* ---------------------------------------------------------------------- consumer */

/* Advances to the block with the next entry; false: none yet. */
static bool reach_entry(struct ew_etw_rings *rings, struct stream *stream)
{
    if (stream->head == NULL)
        stream->head = atomic_load_explicit(&stream->first, memory_order_acquire);
    while (stream->head != NULL) {
        struct block *next = atomic_load_explicit(&stream->head->next, memory_order_acquire);
        /* Read after `next`: if there is a successor, `filled` is final. */
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

/* Sets the time of the current event, corrected to not decrease on its CPU. */
static void take_time(struct stream *stream, const struct ew_etl_frame *frame)
{
    stream->entry.type = frame->type;
    stream->entry.written = frame->t_raw;
    if (frame->t_raw > stream->t_raw)
        stream->t_raw = frame->t_raw;
    stream->entry.t_raw = stream->t_raw;
}

/* Loads the next event of the current buffer; false: no more. */
static bool load_from_chunk(struct stream *stream)
{
    struct entry *entry = &stream->entry;
    struct ew_etl_frame frame;
    const char *what;
    enum ew_etl_step step = EW_ETL_EVENT;
    if (!ew_etl_frame_fast(stream->chunk, stream->chunk_end, &frame))
        step = stream->chunk >= stream->chunk_end
                   ? EW_ETL_DONE
                   : ew_etl_frame_slow(stream->chunk, stream->chunk_end, &frame, &what);
    entry->marker = entry->flag = false;
    entry->damaged = step == EW_ETL_CUT || step == EW_ETL_BAD;
    entry->number = stream->chunk_number;
    entry->at = stream->chunk;
    entry->t_raw = entry->written = stream->t_raw;
    if (step != EW_ETL_EVENT) {
        stream->chunk = stream->chunk_end;
        return entry->damaged;
    }
    entry->size = frame.size;
    stream->chunk += ew_etl_padded(frame.size);
    take_time(stream, &frame);
    return true;
}

/* Starts a buffer. True: a loss precedes it and is the current entry. */
static bool begin_chunk(struct stream *stream, uint32_t kinds)
{
    struct entry *entry = &stream->entry;
    uint64_t first_raw = 0;
    stream->chunk = entry->at;
    stream->chunk_end = entry->at + entry->size;
    stream->chunk_number = entry->number;
    if ((kinds & FLAGGED) == 0)
        return false;
    if (ew_etl_peek_time(entry->at, entry->size, &first_raw) && first_raw > stream->t_raw)
        stream->t_raw = first_raw;
    entry->flag = true;
    entry->t_raw = entry->written = stream->t_raw;
    return true;
}

static bool load_entry(struct ew_etw_rings *rings, struct stream *stream)
{
    struct entry *entry = &stream->entry;
    struct ew_etl_frame frame;
    const char *what;
    stream->has_entry = true;
    for (;;) {
        if (stream->chunk != NULL && load_from_chunk(stream))
            return true;
        stream->chunk = NULL;
        if (!reach_entry(rings, stream))
            return stream->has_entry = false;
        const uint8_t *at = stream->head->data + stream->at;
        uint32_t size = ew_load_u32(at);
        entry->marker = (size & MARKER) != 0;
        entry->flag = entry->damaged = false;
        entry->size = size & ~ENTRY_KINDS;
        entry->number = ew_load_u32(at + 4);
        entry->at = at + ENTRY_HEAD;
        entry->type = 0;
        entry->t_raw = stream->t_raw;
        stream->at += ENTRY_HEAD + ew_etl_padded(entry->size);
        if (entry->marker || ((size & CHUNK) != 0 && begin_chunk(stream, size)))
            return true;
        if ((size & CHUNK) != 0)
            continue;
        if (!ew_etl_frame_fast(entry->at, entry->at + entry->size, &frame))
            (void)ew_etl_frame_slow(entry->at, entry->at + entry->size, &frame, &what);
        take_time(stream, &frame);
        return true;
    }
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

/* Builds the heap of streams with an entry, earliest on top. */
static void build_heap(struct ew_etw_rings *rings)
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

/* False: a marker for losses that were already reported. */
static bool take_entry(struct ew_etw_rings *rings, struct stream *stream, struct ew_record *record)
{
    const struct entry *entry = &stream->entry;
    uint16_t cpu = (uint16_t)(stream - rings->streams);
    if (entry->flag || entry->damaged) {
        fill_loss(stream, cpu, 1, record);
        record->opcode = entry->flag; /* 1: lost by the session */
        record->t_raw = entry->t_raw;
        rings->damaged += entry->damaged;
    } else if (entry->marker) {
        uint64_t total = ew_load_u64(entry->at);
        if (total <= stream->reported)
            return false;
        fill_loss(stream, cpu, total - stream->reported, record);
        stream->reported = total;
        record->t_raw = entry->t_raw;
    } else {
        (void)ew_etl_fill(record, entry->at, entry->size, entry->type, cpu);
        record->t_raw = entry->written;
        rings->from_chunks += stream->chunk != NULL;
    }
    rings->late += entry->t_raw < rings->taken_raw;
    if (entry->t_raw < rings->taken_raw && rings->horizon_raw > entry->t_raw &&
        rings->horizon_raw - entry->t_raw > rings->lateness_raw)
        rings->lateness_raw = rings->horizon_raw - entry->t_raw;
    if (entry->t_raw > rings->taken_raw)
        rings->taken_raw = entry->t_raw;
    return true;
}

/* Losses after the last event of a CPU: no later entry marks them. */
static size_t take_losses(struct ew_etw_rings *rings, struct ew_record *records, size_t max)
{
    uint32_t cpus = atomic_load_explicit(&rings->cpus, memory_order_acquire);
    size_t count = 0;
    for (uint32_t cpu = 0; cpu < cpus && count < max; cpu++) {
        struct stream *stream = &rings->streams[cpu];
        uint64_t dropped = atomic_load_explicit(&stream->dropped, memory_order_acquire);
        if (stream->has_entry || dropped <= stream->reported)
            continue;
        if (load_entry(rings, stream))
            continue;
        fill_loss(stream, (uint16_t)cpu, dropped - stream->reported, &records[count]);
        records[count++].t_raw = rings->taken_raw;
        stream->reported = dropped;
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
    if (horizon_raw != UINT64_MAX)
        rings->horizon_raw = horizon_raw;
    release_spent(rings);
    build_heap(rings);
    while (count < max && rings->heap_count > 0) {
        struct stream *stream = rings->heap[0];
        if (stream->entry.t_raw > horizon_raw)
            break;
        /* The count belongs to the caller until the next call: one loss per call. */
        const struct entry *entry = &stream->entry;
        if ((entry->marker || entry->flag || entry->damaged) && count > 0)
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

uint64_t ew_etw_rings_lateness(struct ew_etw_rings *rings)
{
    uint64_t lateness_raw = rings->lateness_raw;
    rings->lateness_raw = 0;
    return lateness_raw;
}

uint64_t ew_etw_rings_late(const struct ew_etw_rings *rings)
{
    return rings->late;
}

void ew_etw_rings_counts(const struct ew_etw_rings *rings, struct ew_etw_rings_counts *ret_counts)
{
    uint32_t cpus = atomic_load_explicit(&rings->cpus, memory_order_acquire);
    memset(ret_counts, 0, sizeof *ret_counts);
    for (uint32_t cpu = 0; cpu < cpus; cpu++)
        ret_counts->dropped +=
            atomic_load_explicit(&rings->streams[cpu].dropped, memory_order_relaxed);
    ret_counts->put = atomic_load_explicit(&rings->put, memory_order_relaxed) + rings->from_chunks;
    ret_counts->dropped += rings->damaged;
    ret_counts->late = rings->late;
    ret_counts->blocks = rings->block_count;
    ret_counts->blocks_used_max = atomic_load_explicit(&rings->used, memory_order_relaxed);
}
