/* SPDX-License-Identifier: MIT */
/*
 * Waits: how long each thread ran, was ready, slept and was blocked, and which thread woke it.
 *
 * Add the events of a monitor (ETWATCH_CONFIG_EVENTS) in their order, or read a recording that has
 * context switches and wake-ups; then iterate over threads and edges. Tables are bounded (65536
 * threads, 65536 edges); events that find no room are counted.
 *
 * The rules of etwatch.h hold. One thread at a time.
 */
#ifndef ETWATCH_WAITS_H
#define ETWATCH_WAITS_H

#include <etwatch/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

struct etwatch_waits;

/* One thread. */
struct etwatch_waits_thread {
    uint32_t size;
    uint32_t pid; /* UINT32_MAX: unknown */
    uint32_t tid;
    uint32_t reserved;
    const char *name; /* NULL: unknown. Valid until the next event is added. */
    uint64_t run_ns;
    uint64_t ready_ns;   /* ready to run, on no CPU */
    uint64_t sleep_ns;   /* waiting for a timer, a lock or another thread */
    uint64_t blocked_ns; /* Linux: uninterruptible, mostly a disk; Windows: waiting for a page */
    uint64_t fault_ns;   /* waiting for hard page faults; UINT64_MAX: unknown */
    /* Live: waiting for disks. In a recording: how long disks took for the requests of this thread,
     * whether it waited or not. UINT64_MAX: unknown. */
    uint64_t disk_ns;
    uint64_t sleeps, blocks; /* the number of such waits */
    uint64_t wait_max_ns;    /* the longest of them */
    uint64_t switches;       /* the number of times it got a CPU */
    uint64_t preempted;      /* the number of times it lost the CPU while it could run */
};

/* Thread tid was woken by thread waker_tid. */
struct etwatch_waits_edge {
    uint32_t size;
    uint32_t pid, tid; /* a pid of UINT32_MAX: unknown */
    uint32_t waker_pid;
    uint32_t waker_tid; /* 0: woken by an interrupt while the CPU was idle */
    uint32_t reserved;
    const char *name, *waker_name; /* NULL: unknown. Valid until the next event is added. */
    uint64_t count;                /* wake-ups */
    uint64_t wait_ns, wait_max_ns; /* off the CPU until it was woken */
    uint64_t blocked_ns;           /* the part of wait_ns in which it was blocked */
    uint64_t ready_ns;             /* from the wake-up until it ran */
};

struct etwatch_waits_info {
    uint32_t size;
    uint32_t thread_count, edge_count;
    uint32_t reserved;
    uint64_t events;  /* context switches and wake-ups that were added */
    uint64_t dropped; /* events that found no room in the tables */
};

ETWATCH_API int etwatch_waits_new(struct etwatch_waits **ret_waits);
/* NULL is fine. */
ETWATCH_API void etwatch_waits_free(struct etwatch_waits *waits);

/* Adds one event of a monitor; kinds other than SWITCH and WAKEUP are ignored. */
ETWATCH_API int etwatch_waits_add(struct etwatch_waits *waits, const struct etwatch_event *event);
/* Events were lost. If they may have been switches or wake-ups, the state of every thread is
 * unknown until its next event. source: of the monitor. */
ETWATCH_API int etwatch_waits_add_loss(struct etwatch_waits *waits, uint32_t source,
                                       const struct etwatch_loss *loss);
/* Reads a recording (.etl, .pftrace) from its beginning: first the names of its threads, then its
 * events. Open the trace without a selection of processes: any thread may wake another. */
ETWATCH_API int etwatch_waits_read(struct etwatch_waits *waits, struct etwatch_trace *trace,
                                   struct etwatch_error_info *reterr);
/* Ends the current state of every thread at the time of the last event. Call it once, before the
 * results are read. */
ETWATCH_API int etwatch_waits_end(struct etwatch_waits *waits);

ETWATCH_API int etwatch_waits_info(const struct etwatch_waits *waits,
                                   struct etwatch_waits_info *ret_info);
/* Thread or edge i, from 0, in the order in which they were first seen. ETWATCH_EINVAL: none. */
ETWATCH_API int etwatch_waits_thread(const struct etwatch_waits *waits, uint32_t i,
                                     struct etwatch_waits_thread *ret_thread);
ETWATCH_API int etwatch_waits_edge(const struct etwatch_waits *waits, uint32_t i,
                                   struct etwatch_waits_edge *ret_edge);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_WAITS_H */
