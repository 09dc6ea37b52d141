/* SPDX-License-Identifier: MIT */
/*
 * History: a ring of bytes of a fixed size that holds records of many tracks (a process, a thread,
 * the machine). A record is what one track did in one interval: its time, the set of known metrics
 * and their values. The records of a track are linked backwards, so reading one track costs what
 * the track wrote, not what the ring holds. The oldest record is overwritten when the ring is full
 * or when it is older than the retention.
 *
 * Values are 64-bit patterns, as in struct etwatch_sample. A double is kept with three decimals.
 */
#ifndef EW_SERVE_HISTORY_H
#define EW_SERVE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/etwatch.h>

enum { EW_HISTORY_VALUES = ETWATCH_METRIC_SET_WORDS * 64 };

enum ew_history_type { EW_HISTORY_U64, EW_HISTORY_I64, EW_HISTORY_DOUBLE };

struct ew_history {
    uint8_t *ring;
    size_t size;
    uint64_t head, tail; /* positions since the beginning; the ring holds tail to head */
    uint64_t keep_ns;    /* retention; 0: as long as there is room */
    uint64_t overwritten;
    const uint8_t *types;              /* EW_HISTORY_VALUES of enum ew_history_type */
    struct etwatch_metric_set *shapes; /* the distinct sets of known metrics */
    uint32_t shape_count;
};

/* One decoded record. */
struct ew_history_point {
    uint64_t t_ns, dt_ns;
    uint64_t before; /* mark of the record before, for ew_history_read */
    bool complete;
    struct etwatch_metric_set has;
    uint64_t values[EW_HISTORY_VALUES];
};

/* size: bytes of the ring. types must outlive the history. 0 or ETWATCH_ENOMEM. */
int ew_history_init(struct ew_history *history, size_t size, uint64_t keep_ns,
                    const uint8_t *types);
void ew_history_done(struct ew_history *history);

/* Appends a record. *mark belongs to the track: 0 at first, then the mark of its latest record.
 * values[m] is used for the members m of has. False: the record does not fit into the ring. */
bool ew_history_append(struct ew_history *history, uint64_t *mark, uint64_t t_ns, uint64_t dt_ns,
                       bool complete, const struct etwatch_metric_set *has, const uint64_t *values);
/* Decodes the record with this mark. False: it is gone, or mark is 0. */
bool ew_history_read(const struct ew_history *history, uint64_t mark,
                     struct ew_history_point *ret_point);
/* Only its time and the mark of the one before, which is cheaper. */
bool ew_history_peek(const struct ew_history *history, uint64_t mark, uint64_t *ret_t_ns,
                     uint64_t *ret_before);
/* A value as a varint holds it, and back. */
uint64_t ew_history_pack(uint8_t type, uint64_t raw);
uint64_t ew_history_unpack(uint8_t type, uint64_t packed);
/* The time of the oldest record; 0: there is none. */
uint64_t ew_history_oldest_ns(const struct ew_history *history);

#endif
