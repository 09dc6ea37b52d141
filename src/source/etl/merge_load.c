/* SPDX-License-Identifier: MIT */
/*
 * Loads buffers into pieces: one positioned read, and decompression if needed.
 *
 * Pieces are reused, so that reading a file of any length allocates only until the window is full,
 * and small pieces stay in the cache. A helper thread touches a piece only between taking it from
 * the queue and marking it ready, both under the lock; everything else belongs to the merge thread
 * and needs no lock.
 */
#include "source/etl/merge_load.h"

#include <string.h>

#include "base/alloc.h"
#include "source/etl/xpress.h"

enum { STATE_IDLE, STATE_QUEUED, STATE_LOADING };
enum { GRAIN = 8192 };

/* ------------------------------------------------------------------- memory */

static void drop(struct ew_etl_loader *loader, struct ew_etl_piece *piece)
{
    loader->held_bytes -= piece->capacity;
    ew_free(piece->bytes);
    ew_free(piece);
}

static struct ew_etl_piece *reuse(struct ew_etl_loader *loader, size_t capacity)
{
    for (struct ew_etl_piece **at = &loader->free_list; *at; at = &(*at)->next) {
        struct ew_etl_piece *piece = *at;
        if (piece->capacity >= capacity) {
            *at = piece->next;
            return piece;
        }
    }
    return NULL;
}

struct ew_etl_piece *ew_etl_piece_take(struct ew_etl_loader *loader, size_t capacity,
                                       bool *ret_limit)
{
    capacity = (capacity + GRAIN - 1) / GRAIN * GRAIN;
    struct ew_etl_piece *piece = reuse(loader, capacity);
    *ret_limit = false;
    if (piece)
        return piece;
    /* The free ones are too small to be of use now. */
    while (loader->free_list && loader->held_bytes + capacity > loader->window_bytes) {
        piece = loader->free_list;
        loader->free_list = piece->next;
        drop(loader, piece);
    }
    *ret_limit = loader->held_bytes + capacity > loader->max_bytes;
    if (*ret_limit)
        return NULL;
    piece = ew_calloc(1, sizeof *piece);
    if (!piece)
        return NULL;
    piece->bytes = ew_realloc_array(NULL, capacity, 1);
    if (!piece->bytes) {
        ew_free(piece);
        return NULL;
    }
    piece->capacity = capacity;
    loader->held_bytes += capacity;
    return piece;
}

void ew_etl_piece_give(struct ew_etl_loader *loader, struct ew_etl_piece *piece)
{
    piece->next = loader->free_list;
    loader->free_list = piece;
}

/* ------------------------------------------------------------------ loading */

static bool make_room(struct ew_etl_scratch *scratch, size_t size)
{
    if (scratch->capacity >= size)
        return true;
    size_t capacity = (size + GRAIN - 1) / GRAIN * GRAIN;
    uint8_t *bytes = ew_realloc_array(scratch->bytes, capacity, 1);
    if (!bytes)
        return false;
    scratch->bytes = bytes;
    scratch->capacity = capacity;
    return true;
}

static void inflate(struct ew_etl_piece *piece, const uint8_t *in, size_t in_size)
{
    size_t written = 0;
    if (in_size < EW_ETL_HEADER_SIZE) {
        piece->error = ETWATCH_ETRUNC;
        return;
    }
    memcpy(piece->bytes, in, EW_ETL_HEADER_SIZE);
    piece->error = (piece->flags & EW_ETL_FLAG_HUFFMAN ? ew_xpress_huffman_inflate
                                                       : ew_xpress_inflate)(
        in + EW_ETL_HEADER_SIZE, in_size - EW_ETL_HEADER_SIZE, piece->bytes + EW_ETL_HEADER_SIZE,
        piece->filled - (size_t)EW_ETL_HEADER_SIZE, &written);
    piece->size = EW_ETL_HEADER_SIZE + written;
}

static void load(struct ew_etl_piece *piece, struct ew_etl_scratch *scratch)
{
    bool compressed = (piece->flags & EW_ETL_FLAG_COMPRESSED) != 0;
    uint8_t *to = piece->bytes;
    piece->size = 0;
    piece->error = 0;
    if (compressed) {
        if (!make_room(scratch, piece->disk_size)) {
            piece->error = ETWATCH_ENOMEM;
            return;
        }
        to = scratch->bytes;
    }
    int64_t got = ew_etl_file_read(piece->file, piece->offset, to, piece->disk_size);
    if (got < 0) {
        piece->error = (int)got;
    } else if (compressed) {
        inflate(piece, to, (size_t)got);
    } else {
        piece->size = (size_t)got;
        piece->error = piece->size < piece->disk_size ? ETWATCH_ETRUNC : 0;
    }
}

void ew_etl_piece_load(struct ew_etl_loader *loader, struct ew_etl_piece *piece)
{
    load(piece, &loader->scratch);
}

/* ------------------------------------------------------------------ helpers */

static void unqueue(struct ew_etl_loader *loader, struct ew_etl_piece *piece)
{
    struct ew_etl_piece *before = NULL;
    for (struct ew_etl_piece *at = loader->queue_head; at != piece; at = at->queue_next)
        before = at;
    if (before)
        before->queue_next = piece->queue_next;
    else
        loader->queue_head = piece->queue_next;
    if (loader->queue_tail == piece)
        loader->queue_tail = before;
    piece->state = STATE_IDLE;
}

bool ew_etl_loader_help(struct ew_etl_loader *loader, struct ew_etl_scratch *scratch,
                        bool leave_first)
{
    struct ew_etl_piece *piece = loader->queue_head;
    if (!piece)
        return false;
    if (leave_first && piece->queue_next)
        piece = piece->queue_next;
    unqueue(loader, piece);
    piece->state = STATE_LOADING;
    ew_mutex_unlock(loader->lock);
    load(piece, scratch);
    ew_mutex_lock(loader->lock);
    piece->state = STATE_IDLE;
    ew_cond_signal(loader->done);
    return true;
}

static void run_helper(void *arg)
{
    struct ew_etl_loader *loader = arg;
    struct ew_etl_scratch scratch = {0};
    ew_mutex_lock(loader->lock);
    while (!loader->stop) {
        if (!ew_etl_loader_help(loader, &scratch, false))
            (void)ew_cond_wait(loader->work, loader->lock, -1);
    }
    ew_mutex_unlock(loader->lock);
    ew_free(scratch.bytes);
}

void ew_etl_piece_queue(struct ew_etl_loader *loader, struct ew_etl_piece *piece)
{
    ew_mutex_lock(loader->lock);
    piece->state = STATE_QUEUED;
    piece->queue_next = NULL;
    if (loader->queue_head)
        loader->queue_tail->queue_next = piece;
    else
        loader->queue_head = piece;
    loader->queue_tail = piece;
    if (loader->helper_count)
        ew_cond_signal(loader->work);
    /* Reading alone is not worth a wakeup. */
    if (loader->user_waits && piece->flags & EW_ETL_FLAG_COMPRESSED)
        ew_cond_signal(loader->user);
    ew_mutex_unlock(loader->lock);
}

void ew_etl_piece_wait(struct ew_etl_loader *loader, struct ew_etl_piece *piece)
{
    ew_mutex_lock(loader->lock);
    bool mine = piece->state == STATE_QUEUED;
    if (mine)
        unqueue(loader, piece);
    while (piece->state != STATE_IDLE)
        (void)ew_cond_wait(loader->done, loader->lock, -1);
    ew_mutex_unlock(loader->lock);
    if (mine)
        load(piece, &loader->scratch);
}

/* ------------------------------------------------------------ init and done */

int ew_etl_loader_init(struct ew_etl_loader *loader, uint64_t window_bytes, uint32_t load_threads)
{
    enum { HARD_LIMIT_FACTOR = 8 };
    *loader = (struct ew_etl_loader){
        .window_bytes = window_bytes,
        .max_bytes = window_bytes * HARD_LIMIT_FACTOR,
        .load_threads = load_threads,
    };
    if (load_threads == 0)
        return 0;
    int rc = ew_mutex_new(&loader->lock);
    if (rc == 0)
        rc = ew_cond_new(&loader->work);
    if (rc == 0)
        rc = ew_cond_new(&loader->done);
    if (rc == 0)
        rc = ew_cond_new(&loader->user);
    while (rc == 0 && loader->helper_count < load_threads - 1) {
        rc = ew_os_thread_start(run_helper, loader, &loader->helpers[loader->helper_count]);
        if (rc == 0)
            loader->helper_count++;
    }
    return rc;
}

void ew_etl_loader_done(struct ew_etl_loader *loader)
{
    if (loader->helper_count) {
        ew_mutex_lock(loader->lock);
        loader->stop = true;
        ew_cond_signal(loader->work);
        ew_mutex_unlock(loader->lock);
    }
    for (uint32_t i = 0; i < loader->helper_count; i++)
        ew_os_thread_join(loader->helpers[i]);
    loader->helper_count = 0;
    ew_cond_free(loader->work);
    ew_cond_free(loader->done);
    ew_cond_free(loader->user);
    ew_mutex_free(loader->lock);
    while (loader->free_list) {
        struct ew_etl_piece *piece = loader->free_list;
        loader->free_list = piece->next;
        drop(loader, piece);
    }
    ew_free(loader->scratch.bytes);
    *loader = (struct ew_etl_loader){0};
}
