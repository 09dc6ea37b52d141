/* SPDX-License-Identifier: MIT */
/*
 * Who waited for whom: switches and wake-ups in, the time of each thread by what it did (ran, was
 * ready, slept, was blocked) and, for each pair of threads, how often one woke the other and how
 * long that one had waited, out.
 *
 * Events come in the order of time. No clock, no thread; tables are bounded, what finds no room is
 * counted.
 */
#ifndef EW_SAMPLER_WAITS_H
#define EW_SAMPLER_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include <etwatch/etwatch.h>

enum { EW_WAITS_THREADS_MAX = 65536, EW_WAITS_EDGES_MAX = 65536 };

/* Why a thread left the CPU. */
enum ew_wait_why {
    EW_WAIT_READY,   /* it did not want to */
    EW_WAIT_SLEEP,   /* for a timer, a lock, another thread */
    EW_WAIT_BLOCKED, /* for a disk, or a page from it */
    EW_WAIT_OVER,    /* it ended */
};

struct ew_waits_thread {
    uint32_t pool_word;
    uint32_t self;
    uint32_t pid, tid;
    uint64_t since_ns; /* when it came into its present state */
    uint32_t state;
    uint32_t edge; /* READY: who woke it; 0: nobody */
    uint64_t run_ns, ready_ns, sleep_ns, blocked_ns, fault_ns, disk_ns;
    uint64_t sleeps, blocks;      /* how often */
    uint64_t wait_max_ns;         /* longest of both */
    uint64_t switches, preempted; /* times on a CPU; times it lost it */
    bool in_io, faults_known;
    uint32_t hard_faults; /* so far, low 31 bits, when it last left the CPU */
    uint64_t io_wait_ns;  /* the last wait, if it was for a disk: a fault may be behind it */
    uint64_t named_ns;    /* who had this number last, if that was said */
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
    uint64_t ready_ns;             /* from then until it ran */
};

struct ew_waits;

int ew_waits_new(struct ew_waits **ret_waits);
void ew_waits_free(struct ew_waits *waits);

/* pid may be UINT32_MAX: unknown; name NULL: unknown, or as before. */
void ew_waits_name(struct ew_waits *waits, uint32_t pid, uint32_t tid, const char *name);
/* The same of somebody who had this number until t_ns: the last one to have it counts. */
void ew_waits_owner(struct ew_waits *waits, uint32_t pid, uint32_t tid, const char *name,
                    uint64_t t_ns);
void ew_waits_switch(struct ew_waits *waits, uint64_t t_ns, uint32_t tid, enum ew_wait_why why,
                     uint32_t next_tid);
void ew_waits_wake(struct ew_waits *waits, uint64_t t_ns, uint32_t tid, uint32_t waker_tid);
/* So long it waited for a page, as the recording tells; part of what it waited. */
void ew_waits_fault(struct ew_waits *waits, uint32_t tid, uint64_t wait_ns);
/* So long a disk took for a request of it, as the recording tells; whether it waited for it or not.
 */
void ew_waits_disk(struct ew_waits *waits, uint32_t tid, uint64_t length_ns);
/* Events were lost: what every thread does now is not known. */
void ew_waits_gap(struct ew_waits *waits);
/* The end: what lasts is counted up to here, without anyone who ended it. */
void ew_waits_end(struct ew_waits *waits, uint64_t t_ns);
/* An event of the stream of a monitor. */
void ew_waits_event(struct ew_waits *waits, const struct etwatch_event *event);

/* Whether the events told who waits for a disk, and the hard faults of threads. */
bool ew_waits_knows_io(const struct ew_waits *waits);

/* Number i, from 0; NULL after the last. */
const struct ew_waits_thread *ew_waits_thread_at(const struct ew_waits *waits, uint32_t i);
const struct ew_waits_edge *ew_waits_edge_at(const struct ew_waits *waits, uint32_t i);
const struct ew_waits_thread *ew_waits_find(const struct ew_waits *waits, uint32_t tid);
/* Events that found no room in the tables. */
uint64_t ew_waits_lost(const struct ew_waits *waits);

#endif
