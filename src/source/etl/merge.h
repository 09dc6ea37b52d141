/* SPDX-License-Identifier: MIT */
/*
 * Merges the events of all CPUs and files in time order.
 *
 * Every CPU of a file writes its own buffers in time order; the file has them in the order in which
 * they were flushed, and an idle CPU flushes late. So the headers of all buffers are read first,
 * which gives each CPU a list of its buffers (a stream), with the time of the first event in each.
 * Then the streams are merged, and a buffer is opened only when its time has come.
 *
 * The index holds up to EW_ETL_INDEX_MAX buffers (16 MiB). In larger files the scan over the
 * headers continues while buffers are consumed; buffers that it finds too late are counted as late.
 */
#ifndef EW_SOURCE_ETL_MERGE_H
#define EW_SOURCE_ETL_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/etl/file.h"
#include "source/etl/merge_load.h"

enum {
    EW_ETL_INDEX_MAX = 1 << 19,
    EW_ETL_STREAMS_MAX = 4096,
    EW_ETL_NO_ENTRY = -1,
};

/* One buffer in the index. */
struct ew_etl_entry {
    uint64_t offset;
    uint64_t first_ns; /* time of its first event, or the best estimate */
    uint32_t size, filled;
    int32_t next; /* in the same stream, or EW_ETL_NO_ENTRY */
    uint16_t flags;
    bool cut;
};

/* The buffers of one CPU of one file, in time order. */
struct ew_etl_stream {
    /* The current event. */
    const uint8_t *at;
    uint64_t t_ns; /* its time in the output: never decreases */
    uint64_t t_raw;
    uint32_t size;
    uint16_t cpu, file;
    /* The event after it, framed ahead in the common case. This takes framing out of the
     * dependency chain that determines the next stream. */
    const uint8_t *next_at; /* NULL: not framed */
    uint64_t next_ns, next_raw;
    uint32_t next_size;
    uint8_t next_type;
    const uint8_t *end;
    uint64_t limit_ns; /* start of the next buffer: later times are suspicious */
    const struct ew_etl_clock *clock;
    uint8_t op;      /* header type of the event, or another action: EW_ETL_OP_* */
    uint8_t type;    /* header type of an out-of-order event ... */
    bool ended;      /* currently not part of the merge */
    bool damaged;    /* the damage in this buffer has been counted */
    uint64_t odd_ns; /* ... and its real time; UINT64_MAX: implausible */

    /* The piece holds the current buffer or a part of it. */
    struct ew_etl_piece *piece;
    uint64_t piece_offset;                   /* of piece->bytes; unused if compressed */
    struct ew_etl_piece *ahead, *ahead_tail; /* the next buffers, being loaded */

    /* The index. entry: current, or next to be opened. */
    int32_t entry, tail;
    int32_t ahead_entry; /* the first entry that is not being loaded */
    uint64_t key;        /* file, logger, buffer type and CPU */
    uint64_t tail_ns;    /* first_ns of the tail */
    int32_t sibling;     /* another stream with the same key, or -1 */
};

/* Records for the caller of the reader, with the pieces they point into. */
struct ew_etl_batch {
    struct ew_record *records;
    uint16_t *files; /* file of each record; NULL: there is only one file */
    size_t count, capacity;
    struct ew_etl_piece *retired; /* consumed pieces: released together with the batch */
    uint64_t retired_bytes;       /* the batch ends early if this exceeds retired_max */
    uint64_t retired_max;
    struct ew_etl_counts counts; /* as of its end */
    int status;                  /* 0, or the error that ended reading */
};

struct ew_etl_merge {
    struct ew_etl_file *files;
    struct ew_etl_scan *scans; /* one per file */
    size_t file_count;
    bool scan_done, begun;
    struct ew_etl_loader loader;
    struct ew_etl_counts counts;
    uint64_t losses; /* loss records: not counted as records */

    struct ew_etl_entry *entries;
    uint32_t entry_count, entry_capacity, entry_max;
    uint32_t refill_at; /* the scan continues when this many entries are free */
    int32_t free_entry; /* list linked by next */
    uint32_t free_count;

    struct ew_etl_stream *streams; /* never moves: has EW_ETL_STREAMS_MAX elements */
    uint32_t stream_count;
    int32_t *first_of_key; /* hash table into streams */

    /* The loser tree over the live streams in file order. A key combines time and rank, so that
     * the smaller key is the earlier event, or the one that comes first in the file. */
    uint32_t bits;
    uint64_t max_ns; /* times are capped here, so that they fit a key */
    struct ew_etl_stream **by_rank;
    uint64_t *tree;
    uint32_t live, leaf_count;
    uint64_t winner;
    bool dirty, revived;        /* the tree must be rebuilt; an ended stream has buffers again */
    uint64_t last_ns;           /* of the last record of the previous batch */
    size_t part_size;           /* large uncompressed buffers are loaded in parts of this size */
    uint32_t ahead_count;       /* pieces queued for loading and not used yet */
    struct ew_etl_batch *batch; /* being filled */
    int failed;                 /* the error that ended reading */
};

/* Starts at the beginning of the files, which must outlive the merge. load_threads: see
 * ew_etl_loader_init. entry_max 0: EW_ETL_INDEX_MAX. ew_etl_merge_done must be called after a
 * failure too. */
int ew_etl_merge_init(struct ew_etl_merge *merge, struct ew_etl_file *files, size_t file_count,
                      uint64_t window_bytes, uint32_t load_threads, uint32_t entry_max);
void ew_etl_merge_done(struct ew_etl_merge *merge);

/* Releases the retired pieces of the batch, then fills it. Count 0: the end, or batch->status. */
void ew_etl_merge_fill(struct ew_etl_merge *merge, struct ew_etl_batch *batch);
/* Only releases the pieces. */
void ew_etl_merge_release(struct ew_etl_merge *merge, struct ew_etl_batch *batch);

/* --------------------------------------------------------------------- internal */

/* Actions of a stream other than an event. */
enum {
    EW_ETL_OP_OPEN = 32, /* open its next buffer; t_ns is the start of that buffer */
    EW_ETL_OP_ODD,       /* an out-of-order event */
};

/* File offset of the current event; not if compressed. */
static inline uint64_t ew_etl_stream_offset(const struct ew_etl_stream *stream)
{
    return stream->piece_offset + (uint64_t)(stream->at - stream->piece->bytes);
}

/* merge_open.c: opens the stream's buffer and frames its first event; may add a loss record to
 * the batch. */
void ew_etl_merge_open(struct ew_etl_merge *merge, struct ew_etl_stream *stream);
/* Frames the event at stream->at; if there is none, goes to the next buffer. */
void ew_etl_merge_next(struct ew_etl_merge *merge, struct ew_etl_stream *stream);
/* Queues the buffers that will be needed next for loading. */
void ew_etl_merge_read_ahead(struct ew_etl_merge *merge);

/* merge_index.c: reads headers until the index is full or all files have ended. 0 or
 * ETWATCH_ENOMEM, ETWATCH_EOS. */
int ew_etl_merge_index(struct ew_etl_merge *merge);
void ew_etl_merge_free_entry(struct ew_etl_merge *merge, int32_t entry);

#endif
