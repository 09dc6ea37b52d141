/* SPDX-License-Identifier: MIT */
/*
 * Helpers for tests of the reader: recordings made by the writer, and everything that the reader
 * returns for them as one list that can be compared.
 */
#ifndef ETL_READER_KIT_H
#define ETL_READER_KIT_H

#include <stdlib.h>
#include <string.h>

#include "../etl/etl_kit.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "source/etl/reader.h"
#include "test.h"

enum { KIT_HEADER_SIZE = 72, KIT_START_RAW = 1000000 };

/* The part of a record that is kept after its batch is gone. */
struct seen {
    uint64_t t_ns, t_raw;
    uint32_t pid, tid, payload_size;
    uint32_t first; /* the payload, as a number */
    uint16_t cpu, id, extended_size;
    uint8_t kind, header_type, pointer_size, version, opcode, group;
    uint32_t file;
    uint32_t sum; /* checksum over header, payload and provider */
};

struct seen_list {
    struct seen *items;
    size_t count, room;
    struct ew_etl_counts counts;
    int status;
};

static inline uint32_t kit_sum(uint32_t sum, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ bytes[i]) * 16777619u;
    return sum;
}

static inline void kit_keep(struct seen_list *list, struct ew_etl_reader *reader,
                            const struct ew_record *r)
{
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 256;
        list->items = realloc(list->items, list->room * sizeof *list->items);
        CHECK(list->items != NULL);
    }
    struct seen *s = &list->items[list->count++];
    memset(s, 0, sizeof *s);
    s->t_ns = r->t_ns;
    s->t_raw = r->t_raw;
    s->pid = r->pid;
    s->tid = r->tid;
    s->payload_size = r->payload_size;
    s->first = r->payload_size >= 4 ? ew_load_u32(r->payload) : 0;
    s->cpu = r->cpu;
    s->id = r->id;
    s->extended_size = r->extended_size;
    s->kind = r->kind;
    s->header_type = r->header_type;
    s->pointer_size = r->pointer_size;
    s->version = r->version;
    s->opcode = r->opcode;
    s->group = r->group;
    s->file = (uint32_t)ew_etl_file_of(reader, r);
    s->sum = kit_sum(0, r->header, 8);
    s->sum = kit_sum(s->sum, r->payload, r->payload_size);
    if (r->provider)
        s->sum = kit_sum(s->sum, r->provider, 16);
}

/* Reads all records. The caller frees the list with kit_free. */
static inline struct seen_list kit_drain(struct ew_etl_reader *reader)
{
    struct seen_list list = {0};
    const struct ew_record *records;
    int got;
    while ((got = ew_etl_next(reader, &records)) > 0) {
        for (int i = 0; i < got; i++)
            kit_keep(&list, reader, &records[i]);
    }
    list.status = got;
    ew_etl_counts(reader, &list.counts);
    return list;
}

static inline void kit_free(struct seen_list *list)
{
    free(list->items);
    memset(list, 0, sizeof *list);
}

static inline struct seen_list kit_read(const struct etl_memory *memory, uint32_t workers)
{
    struct ew_etl_options options = {.workers = workers};
    struct ew_etl_reader *reader = NULL;
    struct ew_error error = {0};
    CHECK_EQ_INT(ew_etl_open_memory(memory->bytes, memory->size, &options, &reader, &error), 0);
    struct seen_list list = kit_drain(reader);
    ew_etl_close(reader);
    return list;
}

static inline void kit_check_same(const struct seen_list *a, const struct seen_list *b)
{
    CHECK_EQ_UINT(a->count, b->count);
    if (a->count)
        CHECK_EQ_MEM(a->items, b->items, a->count * sizeof *a->items);
    CHECK_EQ_MEM(&a->counts, &b->counts, sizeof a->counts);
    CHECK_EQ_INT(a->status, b->status);
}

static inline void kit_check_order(const struct seen_list *list)
{
    for (size_t i = 1; i < list->count; i++)
        CHECK(list->items[i - 1].t_ns <= list->items[i].t_ns);
}

/* ------------------------------------------------------------------- making */

static inline struct ew_etl_writer *kit_writer(struct etl_memory *memory,
                                               struct ew_etl_writer_config config)
{
    struct ew_etl_writer *writer = NULL;
    memset(memory, 0, sizeof *memory);
    config.ctx = memory;
    config.write = etl_memory_write;
    config.rewrite = etl_memory_rewrite;
    if (!config.start_raw)
        config.start_raw = KIT_START_RAW;
    CHECK_EQ_INT(ew_etl_writer_new(&config, &writer), 0);
    return writer;
}

/* A PERFINFO64 event with one number in it. */
static inline void kit_put(struct ew_etl_writer *writer, uint16_t cpu, uint64_t t_raw,
                           uint32_t number)
{
    uint32_t payload[6] = {number, cpu, 3, 4, 5, 6};
    struct ew_etl_event event = {.header_type = 17,
                                 .group = 5,
                                 .opcode = 36,
                                 .version = 4,
                                 .cpu = cpu,
                                 .t_raw = t_raw,
                                 .payload = payload,
                                 .payload_size = sizeof payload};
    CHECK_EQ_INT(ew_etl_write(writer, &event), 0);
}

static inline void kit_finish(struct ew_etl_writer *writer, uint64_t end_raw)
{
    CHECK_EQ_INT(ew_etl_writer_finish(writer, end_raw, 0, 0), 0);
    ew_etl_writer_free(writer);
}

/* `count` events in time order, numbered from 0, distributed over the CPUs at random. */
static inline void kit_make(struct etl_memory *memory, struct ew_etl_writer_config config,
                            uint32_t count)
{
    struct ew_etl_writer *writer = kit_writer(memory, config);
    uint64_t raw = KIT_START_RAW;
    uint32_t seed = 7;
    for (uint32_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        raw += 1 + (seed >> 29);
        kit_put(writer, (uint16_t)((seed >> 16) % config.cpu_count), raw, i);
    }
    kit_finish(writer, raw + 1);
}

/* The offset of the event with this number in an uncompressed recording. */
static inline uint8_t *kit_find(struct etl_memory *memory, uint32_t number, uint16_t cpu)
{
    for (size_t i = 16; i + 24 <= memory->size; i += 8) {
        uint8_t *p = memory->bytes + i;
        if (ew_load_u32(p) == number && ew_load_u32(p + 4) == cpu && ew_load_u32(p + 8) == 3 &&
            ew_load_u32(p + 12) == 4)
            return p - 16;
    }
    FAIL("no such event");
    return NULL;
}

static inline void kit_set(uint8_t *p, unsigned size, uint64_t value)
{
    for (unsigned i = 0; i < size; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

/* The n-th buffer; number 0 is the header. NULL if there are fewer. */
static inline uint8_t *kit_buffer(const struct etl_memory *memory, size_t n)
{
    size_t at = 0;
    while (at + KIT_HEADER_SIZE <= memory->size) {
        if (n-- == 0)
            return memory->bytes + at;
        at += ew_load_u32(memory->bytes + at);
    }
    return NULL;
}

#endif
