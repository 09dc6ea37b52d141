/* SPDX-License-Identifier: MIT */
/* The poll source for Windows from the inside: what its files share. */
#ifndef EW_SOURCE_POLL_WINDOWS_POLL_H
#define EW_SOURCE_POLL_WINDOWS_POLL_H

#include "model/facts.h"
#include "source/poll/poller.h"
#include "source/poll_windows/listing.h"
#include "source/source.h"

/* At most this many threads are remembered, of all processes together. */
#define EW_WINPOLL_THREADS_MAX 1048576u
/* And so many of them are held open for their cycles. */
#define EW_WINPOLL_HELD_THREADS_MAX 4096u

/* What an ended process that we hold still tells. */
struct ew_winpoll_last {
    uint64_t user, kernel; /* units of 100 ns */
    uint64_t cycles;       /* 0: not told */
    uint64_t read_ops, write_ops, other_ops, read_bytes, write_bytes, other_bytes;
    uint32_t faults;
    uint32_t exit_code;
};

/* Windows, or what a test puts in its place. */
struct ew_winpoll_system {
    void *ctx;
    /* All processes. The bytes are the system's, until the next call. */
    int (*list)(void *ctx, struct ew_listing *ret_listing, struct ew_error *reterr);
    /* Keeps what is left of a process readable after its end; NULL if that is not allowed. */
    void *(*hold)(void *ctx, uint32_t pid);
    bool (*last)(void *ctx, void *held, struct ew_winpoll_last *ret_last);
    /* Gauges that the list does not have, each a call: fills gauge and returns which. May be NULL.
     */
    uint32_t (*slow)(void *ctx, void *held, uint64_t gauge[EW_GAUGE_COUNT]);
    struct etwatch_metric_set slow_has; /* the metrics of these */
    void (*release)(void *ctx, void *held);
    /* A thread that is held tells its cycles, also after its end; 0: it does not. The list has none
     * of threads. Both may be NULL; release is as of processes. */
    void *(*hold_thread)(void *ctx, uint32_t tid);
    uint64_t (*thread_cycles)(void *ctx, void *held);
    void (*close)(void *ctx);
    /* Time since 1601 of the raw clock's zero, in units of 100 ns. */
    uint64_t raw_zero;
};

struct ew_winpoll_thread {
    uint32_t tid;
    int32_t priority;
    uint64_t round; /* the last one in which it was listed */
    uint64_t created, user, kernel;
    uint64_t cycles;
    void *held; /* NULL: its cycles are not known */
    bool told;  /* at least once */
};

/* Of a watched process. The name is that of the table's entry, see poll/table.h. */
struct ew_poll_process {
    uint32_t pid, ppid, session_id;
    uint64_t created, start_ns;
    void *held; /* NULL: Windows did not let us */
    char name[EW_NAME_SIZE];
    uint32_t faults, faults_hard; /* as last read: they start over at 2^32 */
    struct ew_poll_figures figures;
    struct ew_winpoll_thread *threads;
    uint32_t thread_count, thread_capacity, thread_cursor;
};

struct ew_winpoll {
    struct ew_poller base;
    struct ew_winpoll_system system;
    bool counts_io, counts_faults, tells_states; /* Wine does not */
    bool asks_cycles, counts_cycles;             /* neither; or nobody asks for them */
    bool holds_threads;                          /* for their cycles */
    uint32_t held_threads;
    uint64_t first_ns; /* of the first round */
};

/* Windows itself: only there. */
int ew_winpoll_system(struct ew_winpoll_system *ret_system);

/* The system is closed with the source, also if this fails. */
int ew_winpoll_open(const struct ew_source_config *config, const struct ew_winpoll_system *system,
                    struct ew_source **ret_source, struct ew_error *reterr);

/* ----------------------------------------------------------------- process */

/* Raw time of an instant that Windows tells. */
uint64_t ew_winpoll_raw_ns(const struct ew_winpoll *poll, uint64_t time);

struct ew_poll_process *ew_winpoll_process_new(struct ew_winpoll *poll,
                                               const struct ew_listed_process *listed);
void ew_winpoll_process_free(struct ew_winpoll *poll, struct ew_poll_process *process);
/* Takes the figures; true if any of them is new. */
bool ew_winpoll_process_read(struct ew_winpoll *poll, struct ew_poll_process *process,
                             const struct ew_listed_process *listed);
/* Tells of the threads that ran, began or ended since the last round. */
void ew_winpoll_threads_emit(struct ew_winpoll *poll, struct ew_poll_process *process,
                             const struct ew_listed_process *listed);
/* The last figures and the exit, as far as they can still be had. */
void ew_winpoll_process_end(struct ew_winpoll *poll, struct ew_poll_process *process);

void ew_winpoll_emit_process(struct ew_winpoll *poll, const struct ew_poll_process *process,
                             enum ew_process_kind kind, const struct ew_winpoll_last *last);
void ew_winpoll_emit_figures(struct ew_winpoll *poll, const struct ew_poll_process *process,
                             bool incomplete);

#endif
