/* SPDX-License-Identifier: MIT */
/* Process lists in the format that Windows returns, built by hand. */
#ifndef LISTING_KIT_H
#define LISTING_KIT_H

#include <stdint.h>
#include <string.h>

#include "source/poll_windows/listing.h"

enum { LIST_MAX = 64 * 1024, NAME_UNITS = 40 };
#define ADDRESS UINT64_C(0x7ff600000000) /* address at which the list claims to be */
#define ZERO UINT64_C(130000000000000000)
#define MS_UNITS UINT64_C(10000) /* units of 100 ns */
#define MS UINT64_C(1000000)

/* ------------------------------------------------------------------ lists by hand */

struct row {
    uint32_t pid, ppid;
    const char *name;
    uint64_t created, user, kernel;
    uint32_t threads;
    uint32_t faults, hard;
    uint64_t rss, rss_private, read_bytes;
    uint64_t other_bytes, pools; /* paged pool; half of it is the nonpaged pool */
    uint32_t states[4];          /* state of the first threads; 0 means 5, waiting */
    uint32_t wait_reason;
    uint32_t first_tid; /* 0 means pid + 100 */
    uint64_t cycles;
};

struct list {
    uint8_t bytes[LIST_MAX];
    size_t size;
};

static inline void put(uint8_t *at, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

/* Returns the offset of the record. */
static inline size_t add_row(struct list *list, size_t last, const struct row *row)
{
    size_t at = list->size, name_len = 2 * strlen(row->name);
    size_t name_at = at + EW_LISTED_PROCESS_SIZE + row->threads * EW_LISTED_THREAD_SIZE;
    uint8_t *record = list->bytes + at;
    if (at > 0)
        put(list->bytes + last, at - last, 4);
    memset(record, 0, name_at + NAME_UNITS * 2 - at);
    put(record + 0x04, row->threads, 4);
    put(record + 0x08, row->rss_private, 8);
    put(record + 0x10, row->hard, 4);
    put(record + 0x18, row->cycles, 8);
    put(record + 0x20, row->created, 8);
    put(record + 0x28, row->user, 8);
    put(record + 0x30, row->kernel, 8);
    put(record + 0x38, name_len, 2);
    put(record + 0x40, name_len > 0 ? ADDRESS + name_at : 0, 8);
    put(record + 0x48, 8, 4);
    put(record + 0x50, row->pid, 8);
    put(record + 0x58, row->ppid, 8);
    put(record + 0x60, 33, 4);
    put(record + 0x64, 1, 4);
    put(record + 0x80, row->faults, 4);
    put(record + 0x90, row->rss, 8);
    put(record + 0xA0, row->pools, 8);
    put(record + 0xB0, row->pools / 2, 8);
    put(record + 0xD0, row->read_bytes / 10, 8);
    put(record + 0xE0, row->other_bytes / 10, 8);
    put(record + 0xF8, row->other_bytes, 8);
    put(record + 0xE8, row->read_bytes, 8);
    for (uint32_t i = 0; i < row->threads; i++) {
        uint8_t *thread = record + EW_LISTED_PROCESS_SIZE + i * EW_LISTED_THREAD_SIZE;
        put(thread + 0x08, row->user / row->threads, 8);
        put(thread + 0x10, row->created + i, 8);
        put(thread + 0x30, (row->first_tid ? row->first_tid : row->pid + 100) + 4 * i, 8);
        put(thread + 0x38, 9, 4);
        put(thread + 0x44, i < 4 && row->states[i] != 0 ? row->states[i] : 5, 4);
        put(thread + 0x48, row->wait_reason, 4);
    }
    for (size_t i = 0; row->name[i] != '\0'; i++)
        list->bytes[name_at + 2 * i] = (uint8_t)row->name[i];
    list->size = name_at + NAME_UNITS * 2;
    return at;
}

static inline void make_list(struct list *list, const struct row *rows, size_t count)
{
    size_t last = 0;
    list->size = 0;
    for (size_t i = 0; i < count; i++)
        last = add_row(list, last, &rows[i]);
}

#endif
