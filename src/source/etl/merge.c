/* SPDX-License-Identifier: MIT */
/*
 * The merge loop. A loser tree gives the stream with the earliest event, which has already been
 * framed; the event becomes a record in the batch, and the next event of its stream is framed.
 * There is no array of records per CPU in between: writing 64 bytes per record twice would cost
 * more than everything else.
 *
 * Output times never decrease. Events out of order within their stream are moved to their place if
 * it is in the same batch and not far back; others are counted as late and get the time of the
 * preceding event, so that consumers never see a negative duration (t_raw keeps the recorded time).
 */
#include "source/etl/merge.h"

#include <string.h>

#include "base/alloc.h"
#include "source/etl/walk.h"

enum {
    MOVE_BACK_MAX = 64,
    PREFETCH_DISTANCE = 192,
    PART_SIZE_MIN = 8192,
    PART_SIZE_MAX = 131072,
};

#define KEY_END UINT64_MAX

#if defined(__GNUC__)
#define likely(x) __builtin_expect(!!(x), 1)
#define NOINLINE __attribute__((noinline))
#define prefetch(p) __builtin_prefetch(p)
#else
#define likely(x) (x)
#define NOINLINE
#define prefetch(p) ((void)(p))
#endif

/* --------------------------------------------------------------------- tree */

static uint64_t key_of(const struct ew_etl_merge *merge, uint64_t t_ns, uint32_t rank)
{
    return t_ns << merge->bits | rank;
}

static bool comes_before(const struct ew_etl_merge *merge, const struct ew_etl_stream *a,
                         const struct ew_etl_stream *b)
{
    if (a->file != b->file)
        return a->file < b->file;
    return merge->entries[a->entry].offset < merge->entries[b->entry].offset;
}

/* The state that replay needs, apart from anything that the loop writes. */
struct tree {
    uint64_t *nodes;
    uint64_t mask;
    uint32_t bits, leaf_count;
};

static struct tree tree_of(const struct ew_etl_merge *merge)
{
    return (struct tree){.nodes = merge->tree,
                         .mask = (UINT64_C(1) << merge->bits) - 1,
                         .bits = merge->bits,
                         .leaf_count = merge->leaf_count};
}

/* The winner's stream has advanced to t_ns: finds the new winner. Branch-free, because the
 * outcome is unpredictable. */
EW_ETL_INLINE uint64_t replay(const struct tree *tree, uint64_t winner, uint64_t t_ns)
{
    uint32_t rank = (uint32_t)(winner & tree->mask);
    uint64_t key = t_ns << tree->bits | rank;
    for (uint32_t node = (tree->leaf_count + rank) / 2; node > 0; node /= 2) {
        uint64_t other = tree->nodes[node];
        bool stays = key < other;
        tree->nodes[node] = stays ? other : key;
        key = stays ? key : other;
    }
    return key;
}

/* Streams that have buffers again rejoin the tree. Their time is at least that of the last
 * output, so that their events count as late instead of breaking the order. */
static void revive(struct ew_etl_merge *merge)
{
    const struct ew_etl_batch *batch = merge->batch;
    uint64_t now_ns = batch->count ? batch->records[batch->count - 1].t_ns : merge->last_ns;
    for (uint32_t i = 0; i < merge->stream_count; i++) {
        struct ew_etl_stream *stream = &merge->streams[i];
        if (!stream->ended || stream->entry == EW_ETL_NO_ENTRY)
            continue;
        uint64_t first_ns = merge->entries[stream->entry].first_ns;
        stream->ended = false;
        stream->op = EW_ETL_OP_OPEN;
        if (first_ns > merge->max_ns)
            first_ns = merge->max_ns;
        if (first_ns < now_ns)
            first_ns = now_ns;
        if (stream->t_ns < first_ns)
            stream->t_ns = first_ns;
        merge->by_rank[merge->live++] = stream;
    }
    merge->revived = false;
}

static void drop_ended(struct ew_etl_merge *merge)
{
    uint32_t live = 0;
    for (uint32_t i = 0; i < merge->live; i++) {
        if (!merge->by_rank[i]->ended)
            merge->by_rank[live++] = merge->by_rank[i];
    }
    merge->live = live;
}

/* Insertion sort: all but one are already in order. */
static void rank_streams(struct ew_etl_merge *merge)
{
    for (uint32_t i = 1; i < merge->live; i++) {
        struct ew_etl_stream *stream = merge->by_rank[i];
        uint32_t at = i;
        for (; at > 0 && comes_before(merge, stream, merge->by_rank[at - 1]); at--)
            merge->by_rank[at] = merge->by_rank[at - 1];
        merge->by_rank[at] = stream;
    }
}

/* The tree is an array: node n has the children 2n and 2n+1, the leaves start at leaf_count.
 * During construction the upper half holds the winners. */
static void build_tree(struct ew_etl_merge *merge)
{
    drop_ended(merge);
    if (merge->revived)
        revive(merge);
    rank_streams(merge);
    uint32_t leaves = 1;
    while (leaves < merge->live)
        leaves *= 2;
    merge->leaf_count = leaves;
    uint64_t *winners = merge->tree + leaves;
    for (uint32_t i = 0; i < leaves; i++)
        winners[i] = i < merge->live ? key_of(merge, merge->by_rank[i]->t_ns, i) : KEY_END;
    /* Losers stay in their node, winners move up. */
    for (uint32_t width = leaves / 2; width > 0; width /= 2) {
        for (uint32_t i = 0; i < width; i++) {
            uint64_t a = winners[2 * i], b = winners[2 * i + 1];
            merge->tree[width + i] = a < b ? b : a;
            winners[i] = a < b ? a : b;
        }
    }
    merge->winner = winners[0];
    merge->dirty = false;
}

/* ----------------------------------------------------------------- emission */

/* Moves the last record of the batch to its place in time order. */
static bool move_back(struct ew_etl_batch *batch, uint64_t last_ns, uint64_t t_ns)
{
    size_t from = batch->count - 1, to = from;
    while (to > 0 && from - to < MOVE_BACK_MAX && batch->records[to - 1].t_ns > t_ns)
        to--;
    if (to > 0 ? batch->records[to - 1].t_ns > t_ns : last_ns > t_ns)
        return false;
    struct ew_record record = batch->records[from];
    record.t_ns = t_ns;
    memmove(batch->records + to + 1, batch->records + to, (from - to) * sizeof record);
    batch->records[to] = record;
    if (batch->files) {
        uint16_t file = batch->files[from];
        memmove(batch->files + to + 1, batch->files + to, (from - to) * sizeof file);
        batch->files[to] = file;
    }
    return true;
}

static NOINLINE void count_broken(struct ew_etl_merge *merge, const struct ew_etl_stream *stream)
{
    const struct ew_etl_entry *entry = &merge->entries[stream->entry];
    uint64_t offset = entry->offset;
    if (!(entry->flags & EW_ETL_FLAG_COMPRESSED))
        offset = ew_etl_stream_offset(stream);
    ew_etl_count_bad(&merge->counts, EW_ETL_BAD_RECORD, stream->file, offset, 0,
                     "an event contradicts its own size");
}

EW_ETL_INLINE void fill(struct ew_etl_merge *merge, struct ew_etl_stream *stream,
                        struct ew_record *record)
{
    record->t_ns = stream->t_ns;
    record->t_raw = stream->t_raw;
    if (!likely(ew_etl_fill(record, stream->at, stream->size, stream->type, stream->cpu)))
        count_broken(merge, stream);
}

static void emit(struct ew_etl_merge *merge, struct ew_etl_batch *batch,
                 struct ew_etl_stream *stream)
{
    if (batch->files)
        batch->files[batch->count] = stream->file;
    fill(merge, stream, &batch->records[batch->count++]);
    if (stream->op == EW_ETL_OP_ODD &&
        (stream->odd_ns == UINT64_MAX || !move_back(batch, merge->last_ns, stream->odd_ns)))
        merge->counts.late++;
}

/* Frames the event after the current one. */
EW_ETL_INLINE void frame_next(struct ew_etl_stream *stream)
{
    struct ew_etl_frame frame;
    const uint8_t *at = stream->at + ew_etl_padded(stream->size);
    stream->next_at = NULL;
    prefetch(at + PREFETCH_DISTANCE); /* may be beyond the end, in the slack */
    if (!likely(ew_etl_frame_fast(at, stream->end, &frame)))
        return;
    uint64_t t_ns = ew_etl_clock_ns(stream->clock, frame.t_raw);
    if (t_ns < stream->t_ns || t_ns > stream->limit_ns)
        return;
    stream->next_at = at;
    stream->next_ns = t_ns;
    stream->next_raw = frame.t_raw;
    stream->next_size = frame.size;
    stream->next_type = frame.type;
}

/* One step of the winner outside of the common case. */
static NOINLINE void step_slow(struct ew_etl_merge *merge, struct ew_etl_batch *batch)
{
    const struct tree tree = tree_of(merge);
    struct ew_etl_stream *stream = merge->by_rank[merge->winner & tree.mask];
    if (stream->op == EW_ETL_OP_OPEN) {
        ew_etl_merge_open(merge, stream);
    } else {
        emit(merge, batch, stream);
        stream->at += ew_etl_padded(stream->size);
        ew_etl_merge_next(merge, stream);
    }
    if (stream->op < EW_ETL_OP_OPEN && !stream->ended)
        frame_next(stream);
    else
        stream->next_at = NULL;
    if (merge->dirty)
        build_tree(merge);
    else
        merge->winner = replay(&tree, merge->winner, stream->t_ns);
}

/* Runs while the next event of every stream is framed: the shape of the tree does not change
 * here, so it stays in registers. Stops at a full batch or before an uncommon step. */
EW_ETL_INLINE void run_common(struct ew_etl_merge *merge, struct ew_etl_batch *batch,
                              bool has_files)
{
    const struct tree tree = tree_of(merge);
    struct ew_etl_stream *const *const by_rank = merge->by_rank;
    struct ew_record *record = batch->records + batch->count;
    const struct ew_record *const end = batch->records + batch->capacity;
    uint64_t winner = merge->winner;
    while (record < end && winner != KEY_END) {
        struct ew_etl_stream *stream = by_rank[winner & tree.mask];
        if (stream->next_at == NULL)
            break;
        winner = replay(&tree, winner, stream->next_ns);
        if (has_files)
            batch->files[record - batch->records] = stream->file;
        fill(merge, stream, record++);
        stream->at = stream->next_at;
        stream->t_ns = stream->next_ns;
        stream->t_raw = stream->next_raw;
        stream->size = stream->next_size;
        stream->op = stream->type = stream->next_type;
        frame_next(stream);
    }
    merge->winner = winner;
    batch->count = (size_t)(record - batch->records);
}

static void run_fast(struct ew_etl_merge *merge, struct ew_etl_batch *batch)
{
    if (batch->files)
        run_common(merge, batch, true);
    else
        run_common(merge, batch, false);
}

static void run(struct ew_etl_merge *merge, struct ew_etl_batch *batch)
{
    for (;;) {
        run_fast(merge, batch);
        if (batch->count == batch->capacity || merge->winner == KEY_END || merge->failed ||
            (batch->count > 0 && batch->retired_bytes > batch->retired_max))
            return;
        step_slow(merge, batch);
    }
}

/* ------------------------------------------------------------ init and done */

static int begin(struct ew_etl_merge *merge)
{
    int rc = ew_etl_merge_index(merge);
    if (rc < 0)
        return rc;
    merge->begun = true;
    uint32_t streams = merge->scan_done ? merge->stream_count : EW_ETL_STREAMS_MAX;
    while (UINT64_C(1) << merge->bits < streams)
        merge->bits++;
    merge->max_ns = (UINT64_MAX >> merge->bits) - 1;
    if (merge->max_ns > EW_ETL_NS_MAX)
        merge->max_ns = EW_ETL_NS_MAX;
    merge->by_rank = ew_calloc(streams ? streams : 1, sizeof(struct ew_etl_stream *));
    merge->tree = ew_calloc((size_t)2 << merge->bits, sizeof *merge->tree);
    if (!merge->by_rank || !merge->tree)
        return ETWATCH_ENOMEM;
    merge->part_size = merge->loader.window_bytes / 2 / (streams ? streams : 1);
    if (merge->part_size < PART_SIZE_MIN)
        merge->part_size = PART_SIZE_MIN;
    if (merge->part_size > PART_SIZE_MAX)
        merge->part_size = PART_SIZE_MAX;
    build_tree(merge);
    ew_etl_merge_read_ahead(merge);
    return 0;
}

void ew_etl_merge_release(struct ew_etl_merge *merge, struct ew_etl_batch *batch)
{
    while (batch->retired) {
        struct ew_etl_piece *piece = batch->retired;
        batch->retired = piece->next;
        ew_etl_piece_give(&merge->loader, piece);
    }
    batch->retired_bytes = 0;
}

void ew_etl_merge_fill(struct ew_etl_merge *merge, struct ew_etl_batch *batch)
{
    ew_etl_merge_release(merge, batch);
    batch->count = 0;
    merge->batch = batch;
    if (!merge->begun && merge->failed == 0)
        merge->failed = begin(merge);
    uint64_t losses = merge->losses;
    if (merge->failed == 0)
        run(merge, batch);
    merge->counts.records += batch->count - (merge->losses - losses);
    if (batch->count)
        merge->last_ns = batch->records[batch->count - 1].t_ns;
    batch->status = batch->count ? 0 : merge->failed;
    batch->counts = merge->counts;
}

int ew_etl_merge_init(struct ew_etl_merge *merge, struct ew_etl_file *files, size_t file_count,
                      uint64_t window_bytes, uint32_t load_threads, uint32_t entry_max)
{
    enum { REFILL_SHARE = 8, HASH_SIZE = 16384 };
    memset(merge, 0, sizeof *merge);
    merge->files = files;
    merge->file_count = file_count;
    merge->entry_max = entry_max ? entry_max : EW_ETL_INDEX_MAX;
    merge->refill_at = merge->entry_max / REFILL_SHARE;
    merge->free_entry = EW_ETL_NO_ENTRY;
    merge->scans = ew_calloc(file_count, sizeof *merge->scans);
    merge->streams = ew_calloc(EW_ETL_STREAMS_MAX, sizeof *merge->streams);
    merge->first_of_key = ew_calloc(HASH_SIZE, sizeof *merge->first_of_key);
    if (!merge->scans || !merge->streams || !merge->first_of_key)
        return ETWATCH_ENOMEM;
    for (size_t i = 0; i < file_count; i++)
        ew_etl_scan_init(&merge->scans[i], &files[i]);
    for (size_t i = 0; i < HASH_SIZE; i++)
        merge->first_of_key[i] = -1;
    return ew_etl_loader_init(&merge->loader, window_bytes, load_threads);
}

void ew_etl_merge_done(struct ew_etl_merge *merge)
{
    for (uint32_t i = 0; i < merge->stream_count; i++) {
        struct ew_etl_stream *stream = &merge->streams[i];
        if (stream->piece)
            ew_etl_piece_give(&merge->loader, stream->piece);
        while (stream->ahead) {
            struct ew_etl_piece *piece = stream->ahead;
            stream->ahead = piece->next;
            ew_etl_piece_wait(&merge->loader, piece);
            ew_etl_piece_give(&merge->loader, piece);
        }
    }
    ew_etl_loader_done(&merge->loader);
    ew_free(merge->tree);
    ew_free(merge->by_rank);
    ew_free(merge->first_of_key);
    ew_free(merge->streams);
    ew_free(merge->entries);
    ew_free(merge->scans);
    memset(merge, 0, sizeof *merge);
}
