/* SPDX-License-Identifier: MIT */
/*
 * The inside of etwatch/waits.h: its tables, and the events that the reader of a recording adds one
 * by one. Events come in the order of time. No clock, no thread; tables are bounded, what finds no
 * room is counted.
 */
#ifndef EW_SAMPLER_WAITS_H
#define EW_SAMPLER_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include <etwatch/waits.h>

enum { EW_WAITS_THREADS_MAX = 65536, EW_WAITS_EDGES_MAX = 65536 };

/* Why a thread left the CPU. */
enum ew_wait_reason {
    EW_WAIT_READY,   /* preempted: it could still run */
    EW_WAIT_SLEEP,   /* waits for a timer, a lock, another thread */
    EW_WAIT_BLOCKED, /* waits for a disk, or a page from it */
    EW_WAIT_OVER,    /* exited */
};

struct ew_waits_thread {
    uint32_t pool_word;
    uint32_t self;
    uint32_t pid, tid;
    uint64_t since_ns; /* start of its current state */
    uint32_t state;
    uint32_t edge; /* READY: that of the thread that woke it; 0: none */
    uint64_t run_ns, ready_ns, sleep_ns, blocked_ns, fault_ns, disk_ns;
    uint64_t sleeps, blocks;      /* the number of such waits */
    uint64_t wait_max_ns;         /* the longest of them */
    uint64_t switches, preempted; /* times it got a CPU; times it lost it while it could run */
    bool in_io, faults_known;
    uint32_t hard_faults; /* so far, low 31 bits, when it last left the CPU */
    uint64_t io_wait_ns;  /* the last wait, if it was for a disk: a fault may have caused it */
    uint64_t named_ns;    /* end of the last thread with this id, if that is known */
    char name[24];
};

/* tid was woken by waker_tid. */
struct ew_waits_edge {
    uint32_t pool_word;
    uint32_t self;
    uint32_t pid, tid, waker_pid, waker_tid;
    uint64_t count;
    uint64_t wait_ns, wait_max_ns; /* from leaving the CPU until it was woken */
    uint64_t blocked_ns;           /* the part of it in which it was blocked */
    uint64_t ready_ns;             /* from the wake-up until it ran */
};

/* pid may be UINT32_MAX: unknown; name NULL: unknown, or unchanged. */
void ew_waits_name(struct etwatch_waits *waits, uint32_t pid, uint32_t tid, const char *name);
/* The same for a thread that existed until t_ns. Ids are reused: the last thread with an id gives
 * its name. */
void ew_waits_owner(struct etwatch_waits *waits, uint32_t pid, uint32_t tid, const char *name,
                    uint64_t t_ns);
void ew_waits_switch(struct etwatch_waits *waits, uint64_t t_ns, uint32_t tid,
                     enum ew_wait_reason reason, uint32_t next_tid);
void ew_waits_wake(struct etwatch_waits *waits, uint64_t t_ns, uint32_t tid, uint32_t waker_tid);
/* The time that the recording states for a hard fault; a part of the time in which it waited. */
void ew_waits_fault(struct etwatch_waits *waits, uint32_t tid, uint64_t wait_ns);
/* The time that a disk took for a request of this thread, as the recording states it, whether the
 * thread waited for it or not. */
void ew_waits_disk(struct etwatch_waits *waits, uint32_t tid, uint64_t length_ns);
/* Events were lost: the state of every thread is unknown. */
void ew_waits_gap(struct etwatch_waits *waits);
/* Some event, of whatever kind, at this time. */
void ew_waits_time(struct etwatch_waits *waits, uint64_t t_ns);
/* The recording has hard faults, or requests to disks: their times are known from now on. */
void ew_waits_know_faults(struct etwatch_waits *waits);
void ew_waits_know_disks(struct etwatch_waits *waits);
/* Ends the current state of every thread at t_ns; no thread woke it. */
void ew_waits_end(struct etwatch_waits *waits, uint64_t t_ns);

/* Whether the events have the time that threads wait for disks, and their hard faults. */
bool ew_waits_knows_io(const struct etwatch_waits *waits);

/* Number i, from 0; NULL after the last. */
const struct ew_waits_thread *ew_waits_thread_at(const struct etwatch_waits *waits, uint32_t i);
const struct ew_waits_edge *ew_waits_edge_at(const struct etwatch_waits *waits, uint32_t i);
const struct ew_waits_thread *ew_waits_find(const struct etwatch_waits *waits, uint32_t tid);

#endif
