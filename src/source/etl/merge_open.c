/* SPDX-License-Identifier: MIT */
/*
 * The slow path of the merge: opens the next buffer of a stream, the next part of a large one, and
 * frames events that the fast path rejects.
 *
 * Every path either gives the stream an event, or moves it to its next buffer, or ends it: nothing
 * is retried, so no content can make it loop.
 */
#include <string.h>

#include "source/etl/merge.h"
#include "source/etl/walk.h"

/* Behind the end: the padding of the last event, and the prefetch distance. */
enum { PIECE_SLACK = 256 };

/* Events of one buffer are not this far apart, unless the CPU was idle or the time is damaged. */
#define GAP_NS UINT64_C(600000000000)

/* ------------------------------------------------------------------ opening */

/* Bytes of the buffer beyond its piece: only large uncompressed buffers are loaded in parts. */
static uint64_t bytes_behind(const struct ew_etl_merge *merge, const struct ew_etl_stream *stream)
{
    const struct ew_etl_entry *entry = &merge->entries[stream->entry];
    if (entry->flags & EW_ETL_FLAG_COMPRESSED || stream->piece->error)
        return 0;
    return entry->offset + entry->filled - (stream->piece_offset + stream->piece->size);
}

static void retire(struct ew_etl_merge *merge, struct ew_etl_piece *piece)
{
    if (!piece)
        return;
    piece->next = merge->batch->retired;
    merge->batch->retired = piece;
    merge->batch->retired_bytes += piece->capacity;
}

/* A piece for a buffer, or for its first part; not loaded yet. */
static struct ew_etl_piece *make_piece(struct ew_etl_merge *merge,
                                       const struct ew_etl_stream *stream, int32_t at,
                                       bool *ret_limit)
{
    const struct ew_etl_entry *entry = &merge->entries[at];
    bool compressed = (entry->flags & EW_ETL_FLAG_COMPRESSED) != 0;
    uint32_t size = entry->filled;
    if (!compressed && size > merge->part_size)
        size = (uint32_t)merge->part_size;
    struct ew_etl_piece *piece =
        ew_etl_piece_take(&merge->loader, (size_t)size + PIECE_SLACK, ret_limit);
    if (!piece)
        return NULL;
    piece->file = &merge->files[stream->file];
    piece->offset = entry->offset;
    piece->disk_size = compressed ? entry->size : size;
    piece->filled = size;
    piece->flags = entry->flags;
    return piece;
}

void ew_etl_merge_read_ahead(struct ew_etl_merge *merge)
{
    struct ew_etl_loader *loader = &merge->loader;
    while (loader->load_threads && merge->ahead_count < 16 * loader->load_threads + 8 &&
           loader->held_bytes < loader->window_bytes) {
        struct ew_etl_stream *next = NULL;
        for (uint32_t i = 0; i < merge->live; i++) {
            struct ew_etl_stream *stream = merge->by_rank[i];
            if (stream->ahead_entry != EW_ETL_NO_ENTRY &&
                (!next || merge->entries[stream->ahead_entry].first_ns <
                              merge->entries[next->ahead_entry].first_ns))
                next = stream;
        }
        bool limit;
        struct ew_etl_piece *piece =
            next ? make_piece(merge, next, next->ahead_entry, &limit) : NULL;
        if (!piece)
            return;
        next->ahead_entry = merge->entries[next->ahead_entry].next;
        piece->next = NULL;
        if (next->ahead)
            next->ahead_tail->next = piece;
        else
            next->ahead = piece;
        next->ahead_tail = piece;
        merge->ahead_count++;
        ew_etl_piece_queue(loader, piece);
    }
}

static struct ew_etl_piece *get_piece(struct ew_etl_merge *merge, struct ew_etl_stream *stream,
                                      bool *ret_limit)
{
    struct ew_etl_piece *piece = stream->ahead;
    *ret_limit = false;
    if (piece) {
        stream->ahead = piece->next;
        merge->ahead_count--;
        ew_etl_piece_wait(&merge->loader, piece);
        return piece;
    }
    if (stream->ahead_entry == stream->entry)
        stream->ahead_entry = merge->entries[stream->entry].next;
    piece = make_piece(merge, stream, stream->entry, ret_limit);
    if (piece)
        ew_etl_piece_load(&merge->loader, piece);
    return piece;
}

/* Advances the stream to its next buffer, or ends it. */
static void leave_buffer(struct ew_etl_merge *merge, struct ew_etl_stream *stream)
{
    struct ew_etl_entry *entry = &merge->entries[stream->entry];
    int32_t next = entry->next;
    merge->counts.buffers++;
    merge->counts.compressed_buffers += (entry->flags & EW_ETL_FLAG_COMPRESSED) != 0;
    merge->counts.bytes += entry->size;
    retire(merge, stream->piece);
    stream->piece = NULL;
    stream->at = stream->end = stream->next_at = NULL;
    ew_etl_merge_free_entry(merge, stream->entry);
    stream->entry = next;
    merge->dirty = true;
    if (next == EW_ETL_NO_ENTRY) {
        stream->tail = EW_ETL_NO_ENTRY;
        stream->ended = true;
    } else {
        uint64_t first_ns = merge->entries[next].first_ns;
        if (first_ns > merge->max_ns)
            first_ns = merge->max_ns;
        stream->op = EW_ETL_OP_OPEN;
        if (stream->t_ns < first_ns)
            stream->t_ns = first_ns;
    }
    if (!merge->scan_done && merge->failed == 0)
        merge->failed = ew_etl_merge_index(merge);
}

/* Loads the next part of the same buffer, from the current event on. */
static bool load_part(struct ew_etl_merge *merge, struct ew_etl_stream *stream)
{
    const struct ew_etl_entry *entry = &merge->entries[stream->entry];
    uint64_t offset = ew_etl_stream_offset(stream), left = entry->offset + entry->filled - offset;
    size_t size = merge->part_size;
    /* The current event is longer than the loaded part. */
    if (offset == stream->piece_offset && size < EW_ETL_EVENT_MAX)
        size = EW_ETL_EVENT_MAX;
    if (size > left)
        size = (size_t)left;
    bool limit;
    struct ew_etl_piece *piece = ew_etl_piece_take(&merge->loader, size + PIECE_SLACK, &limit);
    if (!piece) {
        merge->failed = ETWATCH_ENOMEM;
        return false;
    }
    piece->file = &merge->files[stream->file];
    piece->offset = offset;
    piece->disk_size = piece->filled = (uint32_t)size;
    piece->flags = 0;
    ew_etl_piece_load(&merge->loader, piece);
    retire(merge, stream->piece);
    stream->piece = piece;
    stream->piece_offset = offset;
    stream->at = piece->bytes;
    stream->end = piece->bytes + piece->size;
    if (piece->error == ETWATCH_EOS)
        merge->failed = piece->error;
    return piece->error == 0;
}

/* ---------------------------------------------------------------- next event */

/* A time far after the previous one is an outlier if the following time is before it. */
static bool is_outlier(const struct ew_etl_merge *merge, const struct ew_etl_stream *stream,
                       const struct ew_etl_frame *frame, uint64_t t_ns)
{
    struct ew_etl_frame next;
    const char *what;
    uint32_t padded = ew_etl_padded(frame->size);
    if ((size_t)(stream->end - stream->at) > padded) {
        if (ew_etl_frame_slow(stream->at + padded, stream->end, &next, &what) == EW_ETL_EVENT)
            return next.has_time && ew_etl_clock_ns(stream->clock, next.t_raw) < t_ns;
        if (bytes_behind(merge, stream) > 0)
            return false;
    }
    int32_t after = merge->entries[stream->entry].next;
    return after != EW_ETL_NO_ENTRY && merge->entries[after].first_ns < t_ns;
}

/* Times after this limit are checked by is_outlier. */
static void set_limit(const struct ew_etl_merge *merge, struct ew_etl_stream *stream,
                      uint64_t limit_ns)
{
    if (limit_ns > stream->t_ns + GAP_NS)
        limit_ns = stream->t_ns + GAP_NS;
    stream->limit_ns = limit_ns < merge->max_ns ? limit_ns : merge->max_ns;
}

static void take_event(struct ew_etl_merge *merge, struct ew_etl_stream *stream,
                       const struct ew_etl_frame *frame)
{
    uint64_t t_ns = stream->t_ns;
    if (frame->has_time) {
        stream->t_raw = frame->t_raw;
        t_ns = ew_etl_clock_ns(stream->clock, frame->t_raw);
        t_ns = t_ns < merge->max_ns ? t_ns : merge->max_ns;
    }
    stream->size = frame->size;
    stream->op = stream->type = frame->type;
    if (t_ns < stream->t_ns) {
        stream->odd_ns = t_ns;
        stream->op = EW_ETL_OP_ODD;
    } else if (t_ns > stream->limit_ns && is_outlier(merge, stream, frame, t_ns)) {
        stream->odd_ns = UINT64_MAX;
        stream->op = EW_ETL_OP_ODD;
    } else {
        stream->t_ns = t_ns;
        if (t_ns > stream->limit_ns)
            set_limit(merge, stream, merge->max_ns);
    }
}

static void count_bad(struct ew_etl_merge *merge, const struct ew_etl_stream *stream,
                      const char *what)
{
    const struct ew_etl_entry *entry = &merge->entries[stream->entry];
    /* In a compressed buffer, only the buffer itself has a file offset. */
    uint64_t offset = entry->offset, left = (uint64_t)(stream->end - stream->at);
    if (!(entry->flags & EW_ETL_FLAG_COMPRESSED)) {
        offset = ew_etl_stream_offset(stream);
        left = entry->offset + entry->filled - offset;
    }
    ew_etl_count_bad(&merge->counts, EW_ETL_BAD_RECORD, stream->file, offset, left, what);
}

void ew_etl_merge_next(struct ew_etl_merge *merge, struct ew_etl_stream *stream)
{
    for (;;) {
        struct ew_etl_frame frame;
        const char *what = NULL;
        enum ew_etl_step step = EW_ETL_DONE;
        if (stream->at < stream->end)
            step = ew_etl_frame_slow(stream->at, stream->end, &frame, &what);
        if (step == EW_ETL_EVENT) {
            take_event(merge, stream, &frame);
            return;
        }
        bool at_end = step == EW_ETL_CUT || stream->end - stream->at < 4;
        uint64_t behind = bytes_behind(merge, stream);
        if (at_end && behind > 0 &&
            ew_etl_stream_offset(stream) < stream->piece_offset + stream->piece->size + behind) {
            if (load_part(merge, stream))
                continue;
            what = "the file can no longer be read";
            step = EW_ETL_BAD;
        }
        if ((step == EW_ETL_CUT || step == EW_ETL_BAD) && !stream->damaged)
            count_bad(merge, stream, what);
        leave_buffer(merge, stream);
        return;
    }
}

static void emit_loss(struct ew_etl_merge *merge, struct ew_etl_stream *stream, uint16_t flags)
{
    struct ew_etl_batch *batch = merge->batch;
    merge->losses++;
    merge->counts.flag_events_lost += (flags & 2) != 0;
    merge->counts.flag_buffers_lost += (flags & 4) != 0;
    if (batch->files)
        batch->files[batch->count] = stream->file;
    batch->records[batch->count++] = (struct ew_record){
        .t_ns = stream->t_ns,
        .t_raw = stream->t_raw,
        .header = stream->piece->bytes,
        .payload = stream->piece->bytes + EW_ETL_HEADER_SIZE,
        .pid = EW_NO_ID,
        .tid = EW_NO_ID,
        .cpu = stream->cpu,
        .id = flags & EW_ETL_FLAG_LOST,
        .kind = EW_RECORD_LOSS,
        .pointer_size = 8,
    };
}

/* Checks the result of loading. False: there is nothing to read. */
static bool check_piece(struct ew_etl_merge *merge, struct ew_etl_stream *stream)
{
    const struct ew_etl_entry *entry = &merge->entries[stream->entry];
    const struct ew_etl_piece *piece = stream->piece;
    if (piece->error == ETWATCH_EOS || piece->error == ETWATCH_ENOMEM) {
        merge->failed = piece->error;
        return false;
    }
    if (piece->error && entry->flags & EW_ETL_FLAG_COMPRESSED) {
        ew_etl_count_bad(&merge->counts, EW_ETL_BAD_BUFFER, stream->file, entry->offset,
                         entry->filled - piece->size,
                         piece->error == ETWATCH_ETRUNC ? "the compressed bytes end early"
                                                        : "the compressed bytes are damaged");
        stream->damaged = true;
    } else if (entry->cut || piece->error) {
        ew_etl_count_bad(&merge->counts, EW_ETL_BAD_RECORD, stream->file,
                         entry->offset + entry->size, 0, "the file ends inside this buffer");
        stream->damaged = true;
    }
    return piece->size >= EW_ETL_HEADER_SIZE;
}

void ew_etl_merge_open(struct ew_etl_merge *merge, struct ew_etl_stream *stream)
{
    const struct ew_etl_entry *entry = &merge->entries[stream->entry];
    bool limit;
    stream->damaged = false;
    stream->piece_offset = entry->offset;
    set_limit(merge, stream,
              entry->next == EW_ETL_NO_ENTRY ? merge->max_ns
                                             : merge->entries[entry->next].first_ns);
    stream->piece = get_piece(merge, stream, &limit);
    ew_etl_merge_read_ahead(merge);
    if (!stream->piece) {
        if (limit)
            ew_etl_count_bad(&merge->counts, EW_ETL_BAD_BUFFER, stream->file, entry->offset,
                             entry->size, "more memory at once than the window allows");
        else
            merge->failed = ETWATCH_ENOMEM;
        leave_buffer(merge, stream);
        return;
    }
    if (!check_piece(merge, stream)) {
        leave_buffer(merge, stream);
        return;
    }
    stream->at = stream->piece->bytes + EW_ETL_HEADER_SIZE;
    stream->end = stream->piece->bytes + stream->piece->size;
    if (entry->flags & EW_ETL_FLAG_LOST)
        emit_loss(merge, stream, entry->flags);
    ew_etl_merge_next(merge, stream);
}
