/* SPDX-License-Identifier: MIT */
/*
 * Which thread waited for which: takes switches and wake-ups and yields the time of each thread by
 * state (running, ready, sleeping, blocked) and, for each pair of threads, how often one woke the
 * other and how long the latter had waited.
 *
 * Events must come in time order. No clock, no thread; tables are bounded, and events beyond the
 * limits are counted.
 */
#ifndef EW_SAMPLER_WAITS_H
#define EW_SAMPLER_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include <etwatch/etwatch.h>

enum { EW_WAITS_THREADS_MAX = 65536, EW_WAITS_EDGES_MAX = 65536 };

/* Why a thread left the CPU. */
enum ew_wait_reason {
    EW_WAIT_READY,   /* preempted, still runnable */
    EW_WAIT_SLEEP,   /* for a timer, a lock, another thread */
    EW_WAIT_BLOCKED, /* for a disk, or a page from it */
    EW_WAIT_OVER,    /* the thread ended */
};

struct ew_waits_thread {
    uint32_t pool_word;
    uint32_t self;
    uint32_t pid, tid;
    uint64_t since_ns; /* start of its current state */
    uint32_t state;
    uint32_t edge; /* READY: the wake-up that made it so; 0: none */
    uint64_t run_ns, ready_ns, sleep_ns, blocked_ns, fault_ns, disk_ns;
    uint64_t sleeps, blocks;      /* numbers */
    uint64_t wait_max_ns;         /* longest of both */
    uint64_t switches, preempted; /* times switched in; times preempted */
    bool in_io, faults_known;
    uint32_t hard_faults; /* low 31 bits of the count when it last left the CPU */
    uint64_t io_wait_ns;  /* the last wait, if it was for a disk: possibly for a fault */
    uint64_t named_ns;    /* time of the last ew_waits_owner */
    char name[24];
};

/* tid was woken by waker_tid. */
struct ew_waits_edge {
    uint32_t pool_word;
    uint32_t self;
    uint32_t pid, tid, waker_pid, waker_tid;
    uint64_t count;
    uint64_t wait_ns, wait_max_ns; /* from leaving the CPU until it was woken */
    uint64_t blocked_ns;           /* of that, blocked */
    uint64_t ready_ns;             /* from the wake-up until it ran */
};

struct ew_waits;

int ew_waits_new(struct ew_waits **ret_waits);
void ew_waits_free(struct ew_waits *waits);

/* pid may be UINT32_MAX: unknown; name NULL: unknown or unchanged. */
void ew_waits_name(struct ew_waits *waits, uint32_t pid, uint32_t tid, const char *name);
/* The same for the owner of this tid until t_ns: of several owners the last one counts. */
void ew_waits_owner(struct ew_waits *waits, uint32_t pid, uint32_t tid, const char *name,
                    uint64_t t_ns);
void ew_waits_switch(struct ew_waits *waits, uint64_t t_ns, uint32_t tid,
                     enum ew_wait_reason reason, uint32_t next_tid);
void ew_waits_wake(struct ew_waits *waits, uint64_t t_ns, uint32_t tid, uint32_t waker_tid);
/* Time waited for a page, from the recording; part of the thread's wait time. */
void ew_waits_fault(struct ew_waits *waits, uint32_t tid, uint64_t wait_ns);
/* Duration of a disk request of the thread, from the recording; whether the thread waited for it or
 * not. */
void ew_waits_disk(struct ew_waits *waits, uint32_t tid, uint64_t length_ns);
/* Events were lost: the current state of every thread is unknown. */
void ew_waits_gap(struct ew_waits *waits);
/* The end: current states are counted up to here, without a waker. */
void ew_waits_end(struct ew_waits *waits, uint64_t t_ns);
/* An event from a monitor's event stream. */
void ew_waits_event(struct ew_waits *waits, const struct etwatch_event *event);

/* Whether the events include disk waits and hard faults of threads. */
bool ew_waits_knows_io(const struct ew_waits *waits);

/* Number i, from 0; NULL after the last. */
const struct ew_waits_thread *ew_waits_thread_at(const struct ew_waits *waits, uint32_t i);
const struct ew_waits_edge *ew_waits_edge_at(const struct ew_waits *waits, uint32_t i);
const struct ew_waits_thread *ew_waits_find(const struct ew_waits *waits, uint32_t tid);
/* Events beyond the limits of the tables. */
uint64_t ew_waits_lost(const struct ew_waits *waits);

#endif
