/* SPDX-License-Identifier: MIT */
/*
 * Pieces: the memory in which buffers are open, and the threads that fill it.
 *
 * A piece is a whole buffer, inflated if need be, or a part of a large uncompressed one. The loader
 * belongs to one thread (that of the merge), which takes pieces, has them filled ahead by the
 * helpers, and gives them back; only the filling happens elsewhere.
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
    struct ew_etl_piece *next; /* in whatever list it is */
    /* What to load. */
    const struct ew_etl_file *file;
    uint64_t offset;
    uint32_t disk_size; /* of the buffer or part */
    uint32_t filled;    /* what it becomes; without compression the same */
    uint16_t flags;
    bool is_part; /* bytes from the middle of a buffer: no header before them */
    /* What came of it. */
    int error; /* 0; ETWATCH_EFORMAT, ETRUNC: size bytes are good; ETWATCH_EOS, ENOMEM */
    size_t size;
    /* Belongs to the loader. */
    uint8_t state;
    struct ew_etl_piece *queue_next;
    size_t capacity;
    uint8_t *bytes;
};

/* Room for compressed bytes, one for each thread. */
struct ew_etl_scratch {
    uint8_t *bytes;
    size_t capacity;
};

struct ew_etl_loader {
    uint64_t window_bytes; /* reading ahead stops here */
    uint64_t max_bytes;    /* nothing goes beyond */
    uint64_t held_bytes;   /* in all pieces */
    struct ew_etl_piece *free_list;
    struct ew_etl_scratch scratch;

    /* Others who load: everything below is under the lock. */
    uint32_t others; /* threads that load beside the merge; 0: there is no lock */
    uint32_t helper_count;
    struct ew_thread_handle *helpers[EW_ETL_WORKERS_MAX];
    struct ew_mutex *lock;
    struct ew_cond *work; /* for helpers: a piece is queued */
    struct ew_cond *done; /* for the merge: a piece is loaded */
    struct ew_cond *user; /* for the reader's user, who loads while it has to wait */
    bool user_waits;
    struct ew_etl_piece *queue_head, *queue_tail;
    bool stop;
};

/* others: how many threads load beside that of the merge: the reader's user, and all but one of
 * them own threads. 0: the merge is alone. ew_etl_loader_done is due after a failure too. */
int ew_etl_loader_init(struct ew_etl_loader *loader, uint64_t window_bytes, uint32_t others);
/* All pieces must have been given back. */
void ew_etl_loader_done(struct ew_etl_loader *loader);

/* A piece with room for so much; NULL: no memory, or *ret_limit: it would exceed max_bytes. */
struct ew_etl_piece *ew_etl_piece_take(struct ew_etl_loader *loader, size_t capacity,
                                       bool *ret_limit);
void ew_etl_piece_give(struct ew_etl_loader *loader, struct ew_etl_piece *piece);

/* Fills it, now and here. */
void ew_etl_piece_load(struct ew_etl_loader *loader, struct ew_etl_piece *piece);
/* Lets somebody else fill it. */
void ew_etl_piece_queue(struct ew_etl_loader *loader, struct ew_etl_piece *piece);
/* Until a queued piece is filled; does it here if no helper has begun. */
void ew_etl_piece_wait(struct ew_etl_loader *loader, struct ew_etl_piece *piece);

/* Fills one of the queued pieces; false: there is none. With the lock held, which is let go
 * meanwhile. leave_first: the merge is about to need the first one, and would only wait for it. */
bool ew_etl_loader_help(struct ew_etl_loader *loader, struct ew_etl_scratch *scratch,
                        bool leave_first);

#endif
