/* SPDX-License-Identifier: MIT */
/*
 * Puts the events of all CPUs and files in one order, by time.
 *
 * Every CPU of a file writes buffers of its own, in the order of time; they lie in the file as they
 * were flushed, and an idle CPU flushes late. So the headers of all buffers are read first, which
 * gives each CPU a list of its buffers (a stream), with the time of the first event in each. Then
 * the streams are merged, and a buffer is opened only when its time has come.
 *
 * The index has room for EW_ETL_INDEX_MAX buffers (16 MiB). In a file with more, the walk over the
 * headers goes on while buffers are used up; what it then finds too late is counted as late.
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
    uint64_t first_ns; /* time of its first event, or as good a guess as there is */
    uint32_t size, filled;
    int32_t next; /* of the same stream, or EW_ETL_NO_ENTRY */
    uint16_t flags;
    bool cut;
};

/* The buffers of one CPU of one file, in the order of time. */
struct ew_etl_stream {
    /* The event at hand. */
    const uint8_t *at;
    uint64_t t_ns; /* its place in the order: never goes back */
    uint64_t t_raw;
    uint32_t size;
    uint16_t cpu, file;
    /* The one after it, framed ahead if it is as nearly all are. That takes the framing out of the
     * chain of things that must wait for each other to know which stream is the next. */
    const uint8_t *next_at; /* NULL: not framed */
    uint64_t next_ns, next_raw;
    uint32_t next_size;
    uint8_t next_type;
    const uint8_t *end;
    uint64_t limit_ns; /* the next buffer begins here: later times are suspicious */
    const struct ew_etl_clock *clock;
    uint8_t op;      /* header type of the event, or what else is to be done: EW_ETL_OP_* */
    uint8_t type;    /* header type of an event that is out of order ... */
    bool ended;      /* has no part in the merge at present */
    bool damaged;    /* the damage in this buffer has been counted */
    uint64_t odd_ns; /* ... and its true time, or UINT64_MAX: not to be believed */

    /* Its buffer: part of it, or all, is in the piece. */
    struct ew_etl_piece *piece;
    uint64_t piece_offset;                   /* of piece->bytes; not if compressed */
    struct ew_etl_piece *ahead, *ahead_tail; /* the next buffers, being loaded */

    /* The index. entry: at hand or to be opened next. */
    int32_t entry, tail;
    int32_t ahead_entry; /* the first that is not being loaded */
    uint64_t key;        /* which CPU of which file */
    uint64_t tail_ns;    /* first_ns of the tail */
    int32_t sibling;     /* another stream with the same key, or -1 */
};

/* Records on their way to the reader's user, with the pieces they point into. */
struct ew_etl_batch {
    struct ew_record *records;
    uint16_t *files; /* of each record; NULL: there is only one file */
    size_t count, capacity;
    struct ew_etl_piece *retired; /* used up: may be given back with the batch */
    uint64_t retired_bytes;       /* the batch ends early when it keeps too much */
    uint64_t retired_max;
    struct ew_etl_counts counts; /* as of its end */
    int status;                  /* 0 or the error that ended everything */
};

struct ew_etl_merge {
    struct ew_etl_file *files;
    struct ew_etl_scan *scans; /* one for each file */
    size_t file_count;
    bool scan_done, begun;
    struct ew_etl_loader loader;
    struct ew_etl_counts counts;
    uint64_t losses; /* records of losses: not counted as records */

    struct ew_etl_entry *entries;
    uint32_t entry_count, entry_capacity, entry_max;
    uint32_t refill_at; /* the walk goes on when so many are free */
    int32_t free_entry; /* list through next */
    uint32_t free_count;

    struct ew_etl_stream *streams; /* never moves: room for EW_ETL_STREAMS_MAX */
    uint32_t stream_count;
    int32_t *first_of_key; /* hash table into streams */

    /* The tree of losers over the live streams in file order. Keys are time and rank in one number,
     * so that the smaller is the earlier, or the one that comes first in the file. */
    uint32_t bits;
    uint64_t max_ns; /* times are cut to this, so that they fit a key */
    struct ew_etl_stream **by_rank;
    uint64_t *tree;
    uint32_t live, leaf_count;
    uint64_t winner;
    bool dirty, revived;        /* the tree must be built again; a stream that had ended goes on */
    uint64_t last_ns;           /* of the last record of the batch before */
    size_t part_size;           /* large uncompressed buffers are open in parts of this size */
    uint32_t ahead_count;       /* pieces given to others to load and not used yet */
    struct ew_etl_batch *batch; /* being filled */
    int failed;                 /* the error that ended everything */
};

/* Takes the files, which must outlive it, from their beginning. others: see ew_etl_loader_init.
 * entry_max 0: EW_ETL_INDEX_MAX.
 * ew_etl_merge_done is due after a failure too. */
int ew_etl_merge_init(struct ew_etl_merge *merge, struct ew_etl_file *files, size_t file_count,
                      uint64_t window_bytes, uint32_t others, uint32_t entry_max);
void ew_etl_merge_done(struct ew_etl_merge *merge);

/* Fills the batch, gives back its retired pieces before. Count 0: the end, or batch->status. */
void ew_etl_merge_fill(struct ew_etl_merge *merge, struct ew_etl_batch *batch);
/* Only gives the pieces back. */
void ew_etl_merge_release(struct ew_etl_merge *merge, struct ew_etl_batch *batch);

/* ------------------------------------------------------------ between its files */

/* What else than an event a stream may be at. */
enum {
    EW_ETL_OP_OPEN = 32, /* its next buffer: t_ns is when that begins */
    EW_ETL_OP_ODD,       /* an event out of order */
};

/* Where the event at hand is in the file; not if compressed. */
static inline uint64_t ew_etl_stream_offset(const struct ew_etl_stream *stream)
{
    return stream->piece_offset + (uint64_t)(stream->at - stream->piece->bytes);
}

/* merge_open.c: opens the buffer that the stream is at, up to its first event; may add the record
 * of a loss to the batch. */
void ew_etl_merge_open(struct ew_etl_merge *merge, struct ew_etl_stream *stream);
/* Frames what is at stream->at; without an event there, goes to the next buffer. */
void ew_etl_merge_next(struct ew_etl_merge *merge, struct ew_etl_stream *stream);
/* Gives others to load the buffers that will be needed next. */
void ew_etl_merge_read_ahead(struct ew_etl_merge *merge);

/* merge_index.c: reads headers until the index is full or the files are at their end. 0 or
 * ETWATCH_ENOMEM, ETWATCH_EOS. */
int ew_etl_merge_index(struct ew_etl_merge *merge);
void ew_etl_merge_free_entry(struct ew_etl_merge *merge, int32_t entry);

#endif
