/* SPDX-License-Identifier: MIT */
/* Internals of the poll source for Windows. */
#ifndef EW_SOURCE_POLL_WINDOWS_POLL_H
#define EW_SOURCE_POLL_WINDOWS_POLL_H

#include "model/facts.h"
#include "source/poll/poller.h"
#include "source/poll_windows/listing.h"
#include "source/source.h"

/* Maximum number of threads of all processes together. */
#define EW_WINPOLL_THREADS_MAX 1048576u
/* Maximum number of threads with an open handle for their cycles. */
#define EW_WINPOLL_HELD_THREADS_MAX 4096u

/* Final figures of an ended process that we hold. */
struct ew_winpoll_last {
    uint64_t user, kernel; /* units of 100 ns */
    uint64_t cycles;       /* 0: unknown */
    uint64_t read_ops, write_ops, other_ops, read_bytes, write_bytes, other_bytes;
    uint32_t faults;
    uint32_t exit_code;
    bool only_exit_code; /* the other figures are unknown */
};

/* Windows, or its replacement in a test. */
struct ew_winpoll_system {
    void *ctx;
    /* All processes. The bytes belong to the system and are valid until the next call. */
    int (*list)(void *ctx, struct ew_listing *ret_listing, struct ew_error *reterr);
    /* Keeps a process readable after its end; NULL if access is denied. */
    void *(*hold)(void *ctx, uint32_t pid);
    bool (*last)(void *ctx, void *held, struct ew_winpoll_last *ret_last);
    /* Gauges that are not in the list, each needs a call: fills gauge and returns which ones.
     * May be NULL. */
    uint32_t (*slow)(void *ctx, void *held, uint64_t gauge[EW_GAUGE_COUNT]);
    struct etwatch_metric_set slow_has; /* the metrics of these */
    void (*release)(void *ctx, void *held);
    /* A held thread reports its cycles, even after its end; 0: unknown. The list has no cycles
     * of threads. Both may be NULL; release is the same as for processes. */
    void *(*hold_thread)(void *ctx, uint32_t tid);
    uint64_t (*thread_cycles)(void *ctx, void *held);
    void (*close)(void *ctx);
    /* Time of the raw clock's zero since 1601, in units of 100 ns. The two clocks drift apart by
     * more than a second within a day: zero returns it as of now. May be NULL: it is constant. */
    uint64_t raw_zero;
    uint64_t (*zero)(void *ctx);
};

struct ew_winpoll_thread {
    uint32_t tid;
    int32_t priority;
    uint64_t round; /* last round in which it was listed */
    uint64_t created, user, kernel;
    uint64_t cycles;
    void *held;   /* NULL: its cycles are unknown */
    bool emitted; /* at least once */
};

/* A watched process. */
struct ew_poll_process {
    uint32_t pid, ppid, session_id;
    uint64_t created, start_ns;
    void *held; /* NULL: access denied */
    char name[EW_NAME_SIZE];
    uint32_t faults, faults_hard; /* as last read: they wrap at 2^32 */
    struct ew_poll_figures figures;
    struct ew_winpoll_thread *threads;
    uint32_t thread_count, thread_capacity, thread_cursor;
};

struct ew_winpoll {
    struct ew_poller base;
    struct ew_winpoll_system system;
    bool counts_io, counts_faults, has_states; /* false in Wine */
    bool wants_cycles, counts_cycles;          /* requested; available and requested */
    bool holds_threads;                        /* for their cycles */
    uint32_t held_threads;
    uint64_t first_ns; /* of the first round */
};

/* The real system; only on Windows. */
int ew_winpoll_system(struct ew_winpoll_system *ret_system);

/* Takes ownership of system, also on failure. */
int ew_winpoll_open(const struct ew_source_config *config, const struct ew_winpoll_system *system,
                    struct ew_source **ret_source, struct ew_error *reterr);

/* ----------------------------------------------------------------- process */

/* Raw time of a Windows time. */
uint64_t ew_winpoll_raw_ns(const struct ew_winpoll *poll, uint64_t time);

struct ew_poll_process *ew_winpoll_process_new(struct ew_winpoll *poll,
                                               const struct ew_listed_process *listed);
void ew_winpoll_process_free(struct ew_winpoll *poll, struct ew_poll_process *process);
/* Takes the figures; true if any of them is new. */
bool ew_winpoll_process_read(struct ew_winpoll *poll, struct ew_poll_process *process,
                             const struct ew_listed_process *listed);
/* Emits the threads that ran, started or ended since the last round. */
void ew_winpoll_threads_emit(struct ew_winpoll *poll, struct ew_poll_process *process,
                             const struct ew_listed_process *listed);
/* Emits the last figures, as far as they are still available, and the exit. */
void ew_winpoll_process_end(struct ew_winpoll *poll, struct ew_poll_process *process);

void ew_winpoll_emit_process(struct ew_winpoll *poll, const struct ew_poll_process *process,
                             enum ew_process_kind kind, const struct ew_winpoll_last *last);
void ew_winpoll_emit_figures(struct ew_winpoll *poll, const struct ew_poll_process *process,
                             bool incomplete);

#endif
