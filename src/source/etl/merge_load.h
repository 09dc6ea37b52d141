/* SPDX-License-Identifier: MIT */
/*
 * Pieces: the memory for open buffers, and the threads that fill it.
 *
 * A piece is a whole buffer, decompressed if needed, or a part of a large uncompressed one. The
 * loader belongs to the merge thread, which takes pieces, has helpers fill them ahead, and gives
 * them back; only the filling happens on other threads.
 */
#ifndef EW_SOURCE_ETL_MERGE_LOAD_H
#define EW_SOURCE_ETL_MERGE_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/os.h"
#include "source/etl/file.h"

enum { EW_ETL_WORKERS_MAX = 64 };

struct ew_etl_piece {
    struct ew_etl_piece *next; /* in the list it is in */
    /* What to load. */
    const struct ew_etl_file *file;
    uint64_t offset;
    uint32_t disk_size; /* of the buffer or part */
    uint32_t filled;    /* size after loading; equal to disk_size without compression */
    uint16_t flags;
    bool is_part; /* from the middle of a buffer: no header before the bytes */
    /* The result. */
    int error; /* 0; ETWATCH_EFORMAT, ETRUNC: the first `size` bytes are good; ETWATCH_EOS, ENOMEM
                */
    size_t size;
    /* Private to the loader. */
    uint8_t state;
    struct ew_etl_piece *queue_next;
    size_t capacity;
    uint8_t *bytes;
};

/* Buffer for compressed bytes, one per thread. */
struct ew_etl_scratch {
    uint8_t *bytes;
    size_t capacity;
};

struct ew_etl_loader {
    uint64_t window_bytes; /* reading ahead stops here */
    uint64_t max_bytes;    /* hard limit */
    uint64_t held_bytes;   /* in all pieces */
    struct ew_etl_piece *free_list;
    struct ew_etl_scratch scratch;

    /* Shared with other threads: everything below is guarded by the lock. */
    uint32_t load_threads; /* threads that load in addition to the merge; 0: there is no lock */
    uint32_t helper_count;
    struct ew_thread_handle *helpers[EW_ETL_WORKERS_MAX];
    struct ew_mutex *lock;
    struct ew_cond *work; /* for helpers: a piece is queued */
    struct ew_cond *done; /* for the merge: a piece is loaded */
    struct ew_cond *user; /* for the caller of the reader, which loads instead of waiting */
    bool user_waits;
    struct ew_etl_piece *queue_head, *queue_tail;
    bool stop;
};

/* load_threads: number of threads that load in addition to the merge thread: the caller of the
 * reader and load_threads - 1 helpers. 0: only the merge thread. ew_etl_loader_done must be
 * called after a failure too. */
int ew_etl_loader_init(struct ew_etl_loader *loader, uint64_t window_bytes, uint32_t load_threads);
/* All pieces must have been given back. */
void ew_etl_loader_done(struct ew_etl_loader *loader);

/* A piece of at least this capacity; NULL: no memory, or *ret_limit: it would exceed max_bytes. */
struct ew_etl_piece *ew_etl_piece_take(struct ew_etl_loader *loader, size_t capacity,
                                       bool *ret_limit);
void ew_etl_piece_give(struct ew_etl_loader *loader, struct ew_etl_piece *piece);

/* Fills it on the calling thread. */
void ew_etl_piece_load(struct ew_etl_loader *loader, struct ew_etl_piece *piece);
/* Queues it to be filled by another thread. */
void ew_etl_piece_queue(struct ew_etl_loader *loader, struct ew_etl_piece *piece);
/* Waits until a queued piece is filled; fills it on the calling thread if no helper has started. */
void ew_etl_piece_wait(struct ew_etl_loader *loader, struct ew_etl_piece *piece);

/* Fills one of the queued pieces; false: there is none. Called with the lock held, which is
 * released meanwhile. leave_first: skip the first piece, which the merge is about to need: it
 * would have to wait for it. */
bool ew_etl_loader_help(struct ew_etl_loader *loader, struct ew_etl_scratch *scratch,
                        bool leave_first);

#endif
