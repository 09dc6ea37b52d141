/* SPDX-License-Identifier: MIT */
/*
 * What each thread of the watched processes did when, and which thread each CPU ran: the past that
 * spans are compared with. Entries are in order of time; an entry lasts until the next one begins.
 * Bounded by time and by number: the oldest entries go first.
 */
#ifndef EW_SPANS_HISTORY_H
#define EW_SPANS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/span.h>

#include "ledger/index.h"
#include "ledger/pool.h"

enum {
    EW_SPANS_CPUS_MAX = 2048,
    EW_SPANS_THREADS_MAX = 65536,
    EW_SPANS_PROCESSES_MAX = 65536,
    EW_SPANS_LOSSES = 32,
};

enum ew_spans_state {
    EW_SPANS_UNKNOWN, /* events were lost, or none was seen yet */
    EW_SPANS_RUN,
    EW_SPANS_READY,
    EW_SPANS_SLEEP,
    EW_SPANS_DISK,
    EW_SPANS_FAULT, /* off the CPU within a page fault */
    EW_SPANS_GONE,
};

enum { EW_SPANS_NO_CPU = 0xffff };

/* One state of a thread. */
struct ew_spans_part {
    uint64_t from_ns;
    uint8_t state; /* enum ew_spans_state */
    bool throttled;
    uint16_t cpu;                  /* RUN; READY: where it lost the CPU, or EW_SPANS_NO_CPU */
    uint32_t waker_pid, waker_tid; /* READY; a tid of 0: an interrupt; UINT32_MAX: preempted */
};

/* A CPU runs a thread. */
struct ew_spans_turn {
    uint64_t from_ns;
    uint32_t pid, tid;
};

/* Page faults of a thread. */
struct ew_spans_faults {
    uint64_t from_ns, to_ns, sum_ns;
    uint64_t count;
};

/* An array that grows at its end and is cut at its start. */
struct ew_spans_list {
    void *items;
    uint32_t first, count, size;
};

struct ew_spans_thread {
    uint32_t pool_word;
    uint32_t pid, tid;
    uint32_t next;    /* thread of the same process; 0: none */
    uint32_t process; /* number of its process; 0: not watched, so it has no history */
    bool pool;        /* created while a session was loaded: works for its inferences only */
    uint64_t born_ns; /* 0: unknown */
    /* A wake-up while it still ran: it was about to sleep. 0: none. */
    uint64_t early_ns;
    uint32_t early_pid, early_tid;
    char name[16];
    struct ew_spans_list parts;  /* struct ew_spans_part */
    struct ew_spans_list faults; /* struct ew_spans_faults */
};

struct ew_spans_process {
    uint32_t pool_word;
    uint32_t pid;
    uint32_t threads; /* first thread; 0: none */
    bool has_pool;    /* a session was loaded while it was watched */
    char name[16];
};

struct ew_spans_history {
    struct ew_pool threads, processes;
    struct ew_index by_tid, by_pid;
    struct ew_spans_list cpus[EW_SPANS_CPUS_MAX]; /* struct ew_spans_turn */
    uint64_t begun_ns;                            /* the first event: before it nothing is known */
    uint64_t last_ns;
    uint64_t gap_ns; /* end of the last loss; 0: none */
    struct {
        uint64_t from_ns, to_ns;
    } losses[EW_SPANS_LOSSES]; /* the latest */
    uint64_t loss_count;
    uint64_t history_ns, max_entries, entries;
    uint64_t dropped; /* entries that found no room */
    bool knows_faults;
};

void ew_spans_history_init(struct ew_spans_history *history, uint64_t history_ns,
                           uint64_t max_entries);
void ew_spans_history_done(struct ew_spans_history *history);
/* 0 or ETWATCH_ENOMEM. name may be NULL. */
int ew_spans_history_process(struct ew_spans_history *history, uint32_t pid, const char *name);
void ew_spans_history_event(struct ew_spans_history *history, const struct etwatch_event *event);
/* Events were lost: all states are unknown. */
void ew_spans_history_gap(struct ew_spans_history *history, uint64_t from_ns, uint64_t to_ns);
/* Whether events of this time are known to be lost. */
bool ew_spans_history_lost(const struct ew_spans_history *history, uint64_t from_ns,
                           uint64_t to_ns);
/* A session was loaded in this time: the threads that were created belong to its pool. */
void ew_spans_history_loaded(struct ew_spans_history *history, uint32_t pid, uint64_t from_ns,
                             uint64_t to_ns);
/* Drops what is older than the history, seen from t_ns. */
void ew_spans_history_trim(struct ew_spans_history *history, uint64_t t_ns);

struct ew_spans_thread *ew_spans_history_thread(const struct ew_spans_history *history,
                                                uint32_t tid);
struct ew_spans_process *ew_spans_history_find(const struct ew_spans_history *history,
                                               uint32_t pid);
/* The name of a process, or of one of its threads; "": unknown. */
const char *ew_spans_history_name(const struct ew_spans_history *history, uint32_t pid,
                                  uint32_t tid);

/* The entry that contains t_ns, or the first one after it; count if there is none. Works for all
 * entries that begin with from_ns. */
uint32_t ew_spans_list_find(const struct ew_spans_list *list, size_t item_size, uint64_t t_ns);

static inline const struct ew_spans_part *ew_spans_part_at(const struct ew_spans_thread *thread,
                                                           uint32_t i)
{
    return (const struct ew_spans_part *)thread->parts.items + thread->parts.first + i;
}

static inline const struct ew_spans_turn *ew_spans_turn_at(const struct ew_spans_list *cpu,
                                                           uint32_t i)
{
    return (const struct ew_spans_turn *)cpu->items + cpu->first + i;
}

static inline const struct ew_spans_faults *ew_spans_faults_at(const struct ew_spans_thread *thread,
                                                               uint32_t i)
{
    return (const struct ew_spans_faults *)thread->faults.items + thread->faults.first + i;
}

#endif
