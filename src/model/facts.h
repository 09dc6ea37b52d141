/* SPDX-License-Identifier: MIT */
/*
 * What a source delivers: process starts and exits, absolute readings, losses, raw events.
 *
 * All times are nanoseconds of the raw clock (CLOCK_BOOTTIME on Linux); they become Unix time only
 * at the public interface. A reading carries absolute counters, so a missing reading loses no
 * count: the next one includes it, only its time is less precise.
 */
#ifndef EW_MODEL_FACTS_H
#define EW_MODEL_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/counter.h"

struct ew_device_use;

#define EW_NAME_SIZE 64

enum ew_process_kind {
    EW_PROCESS_SEEN = 1, /* preexisting: existed when monitoring started */
    EW_PROCESS_START,
    EW_PROCESS_EXEC,   /* same process, new program: name may change */
    EW_PROCESS_RENAME, /* name changed */
    EW_PROCESS_EXIT,   /* exited; exit_* and final gauges as indicated by has */
};

enum ew_process_has {
    EW_HAS_PPID = 1u << 0,
    EW_HAS_SESSION = 1u << 1,
    EW_HAS_UID = 1u << 2,
    EW_HAS_CGROUP = 1u << 3,
    EW_HAS_EXIT_STATUS = 1u << 4, /* exit_code and exit_signal */
    EW_HAS_NAME = 1u << 5,
};

struct ew_process_fact {
    enum ew_process_kind kind;
    uint32_t has; /* enum ew_process_has */
    uint64_t t_ns;
    uint64_t start_ns;
    uint32_t pid, ppid, session_id, uid;
    uint32_t old_tid; /* EXEC by a thread other than the leader: its previous tid, else 0 */
    uint64_t cgroup_id;
    int32_t exit_code, exit_signal;
    uint32_t gauge_has; /* EW_HAS_G_* */
    uint64_t gauge[EW_GAUGE_COUNT];
    /* SEEN: counters up to now; EXIT: totals over the lifetime, if the source has better ones than
     * the sum of its readings. */
    uint32_t counter_has;
    uint64_t counter[EW_COUNTER_COUNT];
    char name[EW_NAME_SIZE];
    const char *sid; /* of the user, on Windows: S-1-…; NULL: unknown */
    bool kernel_thread;
};

/*
 * How a reading relates to the time on the CPU.
 *
 *   OPEN   the thread is about to run and has not run since it last left the CPU: what was counted
 *          since the last reading belongs to the thread's open interval; a new one opens.
 *   SPAN   the thread leaves the CPU (or is found on it) after an uninterrupted run from
 * ran_from_ns to t_ns, in which cpu_ns went from ran_from_cpu_ns to its value here. The run may
 * cross interval ends; CPU time is split exactly at each. AT     counters and gauges as of t_ns.
 * What was counted since the last reading is not split: it belongs to the open interval (event
 * source) or to the time since the last reading (polling). FINAL  like SPAN, and the thread has
 * ended.
 *
 * Polling sources emit only AT (and FINAL, with an empty run, for a thread that has disappeared).
 * Their process counters come with tid 0 only; a reading with another tid is of that thread alone
 * and adds nothing to the process. Every drain delivers a reading of what changed since the
 * previous drain. So a missing reading means no change, and a change happened between these two
 * drains, no matter how old the last reading is.
 */
enum ew_reading_kind { EW_READING_OPEN = 1, EW_READING_SPAN, EW_READING_AT, EW_READING_FINAL };

/* How the run of a SPAN or FINAL ended: the last switch that its counters include. NOT: the thread
 * is still on the CPU, or the source does not know; then no switch happened at t_ns. */
enum ew_left { EW_LEFT_NOT, EW_LEFT_WAITING, EW_LEFT_PREEMPTED };

struct ew_reading {
    enum ew_reading_kind kind;
    uint32_t pid;
    uint32_t tid;      /* 0: reading of the whole process */
    uint64_t start_ns; /* of the process if tid is 0, else of the thread; 0 = unknown */
    uint64_t t_ns;
    uint64_t ran_from_ns;
    uint64_t ran_from_cpu_ns;
    enum ew_left left;
    bool incomplete;      /* something was lost before it */
    bool base_line;       /* initial values of a thread not seen before; ignored if it is known */
    uint32_t counter_has; /* EW_HAS_C_* */
    uint32_t gauge_has;   /* EW_HAS_G_* */
    uint64_t counter[EW_COUNTER_COUNT];
    uint64_t gauge[EW_GAUGE_COUNT];
    const char *thread_name; /* NULL: unknown */
};

/* Callbacks that receive a source's facts, on the thread that drains it. */
struct ew_facts {
    void *ctx;
    void (*process)(void *ctx, const struct ew_process_fact *fact);
    void (*reading)(void *ctx, const struct ew_reading *reading);
    /* May be NULL. Readings of these threads follow, so their memory can be prefetched. */
    void (*expect)(void *ctx, const uint32_t *tids, uint32_t count);
    void (*event)(void *ctx, const struct etwatch_event *event); /* t_ns raw; may be NULL */
    void (*loss)(void *ctx, const struct etwatch_loss *loss);    /* times raw */
    /* After a loss of lifecycle facts: every existing process has been reported again (SEEN), with
     * a time not before since_ns, and so was every process started later. The EXIT of all others
     * was lost. */
    void (*all_seen)(void *ctx, uint64_t since_ns);
    /* May be NULL, and need not be called. All facts up to end_ns, an interval end, have been
     * delivered. A receiver that cuts samples here, before later facts, gets the same samples no
     * matter how facts arrive. */
    void (*over)(void *ctx, uint64_t end_ns);
    /* May be NULL. What a process did on GPUs between two times of one interval, counted from
     * events. */
    void (*use)(void *ctx, const struct ew_device_use *use);
};

#endif
