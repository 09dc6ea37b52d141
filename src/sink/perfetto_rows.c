/* SPDX-License-Identifier: MIT */
/*
 * Owns the Perfetto sink's state of processes and threads: their tracks, the last values written
 * there, their start. Linear probing; a removal moves up the following entries, so that lookups
 * never pass dead cells, no matter how many short processes there were. The table has a maximum:
 * beyond it all rows are dropped and written again, which costs bytes but loses nothing.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "sink/perfetto.h"

static uint32_t home_of(const struct ew_pf_rows *rows, const struct ew_pf_row *row)
{
    return ew_hash_identity(row->pid, row->start_ns, row->tid) & rows->mask;
}

struct ew_pf_row *ew_pf_rows_find(const struct ew_pf_rows *rows, uint32_t pid, uint64_t start_ns,
                                  uint32_t tid)
{
    if (rows->count == 0)
        return NULL;
    for (uint32_t i = ew_hash_identity(pid, start_ns, tid) & rows->mask; rows->cells[i] != NULL;
         i = (i + 1) & rows->mask) {
        struct ew_pf_row *row = rows->cells[i];
        if (row->pid == pid && row->tid == tid && row->start_ns == start_ns)
            return row;
    }
    return NULL;
}

static void free_row(struct ew_pf_row *row)
{
    ew_free(row->name);
    ew_free(row->start);
    ew_free(row);
}

static void put(struct ew_pf_rows *rows, struct ew_pf_row *row)
{
    uint32_t i = home_of(rows, row);
    while (rows->cells[i] != NULL)
        i = (i + 1) & rows->mask;
    rows->cells[i] = row;
}

static bool grow(struct ew_pf_rows *rows)
{
    uint32_t size = rows->cells == NULL ? 64 : (rows->mask + 1) * 2;
    struct ew_pf_rows larger = *rows;
    larger.mask = size - 1;
    larger.cells = ew_calloc(size, sizeof *larger.cells);
    if (larger.cells == NULL)
        return false;
    for (uint32_t i = 0; rows->cells != NULL && i <= rows->mask; i++)
        if (rows->cells[i] != NULL)
            put(&larger, rows->cells[i]);
    ew_free(rows->cells);
    *rows = larger;
    return true;
}

struct ew_pf_row *ew_pf_rows_add(struct ew_pf_rows *rows, uint32_t pid, uint64_t start_ns,
                                 uint32_t tid)
{
    if (rows->count == EW_PF_ROWS_MAX)
        ew_pf_rows_done(rows);
    if ((rows->cells == NULL || rows->count * 2 > rows->mask) && !grow(rows))
        return NULL;
    struct ew_pf_row *row = ew_calloc(1, sizeof *row);
    if (row == NULL)
        return NULL;
    row->pid = pid;
    row->tid = tid;
    row->start_ns = start_ns;
    row->before = rows->last;
    *(rows->last != NULL ? &rows->last->next : &rows->first) = row;
    rows->last = row;
    put(rows, row);
    rows->count++;
    return row;
}

void ew_pf_rows_remove(struct ew_pf_rows *rows, struct ew_pf_row *row)
{
    uint32_t hole = home_of(rows, row);
    while (rows->cells[hole] != row)
        hole = (hole + 1) & rows->mask;
    rows->cells[hole] = NULL;
    rows->count--;
    *(row->before != NULL ? &row->before->next : &rows->first) = row->next;
    *(row->next != NULL ? &row->next->before : &rows->last) = row->before;
    free_row(row);
    for (uint32_t i = (hole + 1) & rows->mask; rows->cells[i] != NULL; i = (i + 1) & rows->mask) {
        uint32_t home = home_of(rows, rows->cells[i]);
        /* It may move up if the hole is on its probe path. */
        if (((i - home) & rows->mask) < ((i - hole) & rows->mask))
            continue;
        rows->cells[hole] = rows->cells[i];
        rows->cells[i] = NULL;
        hole = i;
    }
}

void ew_pf_rows_done(struct ew_pf_rows *rows)
{
    for (uint32_t i = 0; rows->cells != NULL && i <= rows->mask; i++)
        if (rows->cells[i] != NULL)
            free_row(rows->cells[i]);
    ew_free(rows->cells);
    *rows = (struct ew_pf_rows){0};
}
