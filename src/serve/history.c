/* SPDX-License-Identifier: MIT */
/*
 * The ring of records. A record never wraps: if it does not fit before the end of the ring, the
 * rest is padding. The values are varints, so an idle counter takes one byte. The set of known
 * metrics is a number in a table of the distinct sets, of which a run has a few dozen.
 */
#include "serve/history.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/proto.h"

enum {
    /* length, mark of the record before, t_ns, then varints: dt_ns, flags and shape */
    HEAD_SIZE = 4 + 8 + 8,
    RECORD_MAX = HEAD_SIZE + (2 + EW_HISTORY_VALUES) * EW_PROTO_VARINT_MAX,
    SHAPES_MAX = 1024,
    PADDING = 0,
};

int ew_history_init(struct ew_history *history, size_t size, uint64_t keep_ns, const uint8_t *types)
{
    *history = (struct ew_history){.size = size, .keep_ns = keep_ns, .types = types};
    history->ring = ew_calloc(size, 1);
    history->shapes = ew_calloc(SHAPES_MAX, sizeof *history->shapes);
    if (history->ring != NULL && history->shapes != NULL && size >= 2 * RECORD_MAX)
        return 0;
    ew_history_done(history);
    return ETWATCH_ENOMEM;
}

void ew_history_done(struct ew_history *history)
{
    ew_free(history->ring);
    ew_free(history->shapes);
    *history = (struct ew_history){0};
}

static void store_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static void store_u64(uint8_t *at, uint64_t value)
{
    store_u32(at, (uint32_t)value);
    store_u32(at + 4, (uint32_t)(value >> 32));
}

/* ------------------------------------------------------------------------ values */

uint64_t ew_history_pack(uint8_t type, uint64_t raw)
{
    double number;
    switch (type) {
    case EW_HISTORY_I64:
        return raw << 1 ^ (uint64_t) - (int64_t)(raw >> 63);
    case EW_HISTORY_DOUBLE:
        memcpy(&number, &raw, sizeof number);
        return number > 0 && number < 9e15 ? (uint64_t)(number * 1000 + 0.5) : 0;
    default:
        return raw;
    }
}

uint64_t ew_history_unpack(uint8_t type, uint64_t packed)
{
    double number;
    uint64_t raw;
    switch (type) {
    case EW_HISTORY_I64:
        return (uint64_t)ew_proto_unzigzag(packed);
    case EW_HISTORY_DOUBLE:
        number = (double)packed / 1000;
        memcpy(&raw, &number, sizeof raw);
        return raw;
    default:
        return packed;
    }
}

/* SHAPES_MAX: the table is full. */
static uint32_t find_shape(struct ew_history *history, const struct etwatch_metric_set *has)
{
    for (uint32_t i = 0; i < history->shape_count; i++)
        if (etwatch_metric_set_equal(&history->shapes[i], has))
            return i;
    if (history->shape_count < SHAPES_MAX)
        history->shapes[history->shape_count++] = *has;
    else
        return SHAPES_MAX;
    return history->shape_count - 1;
}

/* -------------------------------------------------------------------------- ring */

/* The size of the record, or of the padding, at the tail. */
static size_t size_at(const struct ew_history *history, uint64_t position)
{
    size_t offset = (size_t)(position % history->size);
    uint32_t size = offset + 4 <= history->size ? ew_load_u32(history->ring + offset) : PADDING;
    return size == PADDING ? history->size - offset : size;
}

static bool is_padding(const struct ew_history *history, uint64_t position)
{
    size_t offset = (size_t)(position % history->size);
    return offset + 4 > history->size || ew_load_u32(history->ring + offset) == PADDING;
}

static void drop_oldest(struct ew_history *history)
{
    history->overwritten += !is_padding(history, history->tail);
    history->tail += size_at(history, history->tail);
}

static void make_room(struct ew_history *history, size_t size)
{
    while (history->head + size - history->tail > history->size)
        drop_oldest(history);
}

static void drop_outdated(struct ew_history *history, uint64_t now_ns)
{
    uint64_t oldest_ns = ew_history_oldest_ns(history);
    while (history->keep_ns != 0 && oldest_ns != 0 && oldest_ns + history->keep_ns < now_ns) {
        drop_oldest(history);
        oldest_ns = ew_history_oldest_ns(history);
    }
}

uint64_t ew_history_oldest_ns(const struct ew_history *history)
{
    uint64_t tail = history->tail;
    if (tail < history->head && is_padding(history, tail))
        tail += size_at(history, tail);
    if (tail >= history->head)
        return 0;
    return ew_load_u64(history->ring + tail % history->size + 12);
}

bool ew_history_append(struct ew_history *history, uint64_t *mark, uint64_t t_ns, uint64_t dt_ns,
                       bool complete, const struct etwatch_metric_set *has, const uint64_t *values)
{
    uint8_t record[RECORD_MAX];
    char *at = (char *)record + HEAD_SIZE;
    uint32_t shape = find_shape(history, has);
    if (shape == SHAPES_MAX)
        return false;
    store_u64(record + 4, *mark);
    store_u64(record + 12, t_ns);
    at = ew_proto_raw(at, dt_ns);
    at = ew_proto_raw(at, (uint64_t)shape << 1 | (complete ? 1 : 0));
    for (uint32_t m = etwatch_metric_set_next(has, 0); m != ETWATCH_METRIC_SET_END;
         m = etwatch_metric_set_next(has, m + 1))
        at = ew_proto_raw(at, ew_history_pack(history->types[m], values[m]));
    size_t size = (size_t)(at - (char *)record);
    store_u32(record, (uint32_t)size);
    size_t offset = (size_t)(history->head % history->size);
    if (offset + size > history->size) {
        size_t rest = history->size - offset;
        make_room(history, rest);
        if (rest >= 4)
            store_u32(history->ring + offset, PADDING);
        history->head += rest;
        offset = 0;
    }
    make_room(history, size);
    memcpy(history->ring + offset, record, size);
    *mark = history->head + 1;
    history->head += size;
    drop_outdated(history, t_ns);
    return true;
}

static bool is_there(const struct ew_history *history, uint64_t mark)
{
    return mark != 0 && mark - 1 >= history->tail && mark - 1 < history->head;
}

bool ew_history_peek(const struct ew_history *history, uint64_t mark, uint64_t *ret_t_ns,
                     uint64_t *ret_before)
{
    if (!is_there(history, mark))
        return false;
    const uint8_t *record = history->ring + (mark - 1) % history->size;
    *ret_before = ew_load_u64(record + 4);
    *ret_t_ns = ew_load_u64(record + 12);
    return true;
}

bool ew_history_read(const struct ew_history *history, uint64_t mark,
                     struct ew_history_point *ret_point)
{
    struct ew_bytes bytes;
    if (!ew_history_peek(history, mark, &ret_point->t_ns, &ret_point->before))
        return false;
    const uint8_t *record = history->ring + (mark - 1) % history->size;
    ew_bytes_init(&bytes, record + HEAD_SIZE, ew_load_u32(record) - HEAD_SIZE);
    ret_point->dt_ns = ew_proto_read_varint(&bytes);
    uint64_t shape = ew_proto_read_varint(&bytes);
    ret_point->complete = (shape & 1) != 0;
    if (shape >> 1 >= history->shape_count)
        return false;
    ret_point->has = history->shapes[shape >> 1];
    for (uint32_t m = etwatch_metric_set_next(&ret_point->has, 0); m != ETWATCH_METRIC_SET_END;
         m = etwatch_metric_set_next(&ret_point->has, m + 1))
        ret_point->values[m] = ew_history_unpack(history->types[m], ew_proto_read_varint(&bytes));
    return ew_bytes_ok(&bytes);
}
