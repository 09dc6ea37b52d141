/* SPDX-License-Identifier: MIT */
/* The eBPF source from the inside: what its files share. */
#ifndef EW_SOURCE_EBPF_EBPF_H
#define EW_SOURCE_EBPF_EBPF_H

#include "source/ebpf/convert.h"
#include "source/ebpf/object.h"
#include "source/ebpf/proc_gauges.h"

struct ring_buffer;

/* A thread that was noted in a log since the last drain; index is that of its latest entry. */
struct ew_ebpf_active {
    uint32_t tid;
    uint32_t index;
    uint64_t noted_ns;    /* time of that entry */
    uint64_t run_from_ns; /* start of the last run that the log has told of in full; 0 = none */
    bool over;            /* its FINAL has come */
};

/* Facts that wait for the logs. */
struct ew_ebpf_kept {
    struct ew_process_fact *facts;
    uint32_t count, size;
};

enum { EW_EBPF_GONE_CELLS = 256, EW_EBPF_NAMED_BITS = 14 };

/* The name of a thread, as the full stream last told it. */
struct ew_ebpf_named {
    uint32_t tid;
    char name[EW_K_NAME_SIZE];
};

struct ew_ebpf_running {
    uint32_t tid, cpu;
};

struct ew_ebpf_source {
    struct ew_source base;
    struct ew_source_ops ops;           /* of this one: what it can tell depends on the machine */
    struct ew_proc_gauges *proc_gauges; /* NULL: nothing is read beside the events */
    struct ew_ebpf_object object;
    struct ew_ebpf_units units;
    struct ring_buffer *rings;   /* lifecycle records */
    struct ring_buffer *stream;  /* the full stream; NULL: nobody asked for it */
    struct ew_ebpf_named *named; /* with the full stream, else NULL */
    bool optional;               /* the entries have sums beside them */
    bool filtered;
    bool seeded;
    uint32_t *asked; /* pids that the user named since then */
    uint32_t asked_count, asked_size;
    uint64_t read_until_ns; /* what was noted before is delivered */

    /* Only while draining. */
    const struct ew_facts *facts;
    struct ew_reading entry_reading;
    struct ew_ebpf_active *active;
    uint32_t active_count, active_size;
    struct ew_ebpf_running running[EW_K_CPUS_MAX]; /* as of the last settle call */
    uint32_t running_count;
    uint32_t *active_index; /* open addressing by tid: position in active + 1 */
    uint32_t active_index_mask;
    struct ew_ebpf_kept exits; /* delivered after the readings of the same drain */
    uint64_t exit_bits[64];    /* which pids may be among them */
    struct ew_ebpf_kept moves; /* execs that gave a thread another tid, by time */
    uint32_t moves_delivered;
    /* Leaders that are over, by pid: whoever has their tid after that got it by an exec. */
    struct {
        uint32_t pid;
        uint64_t start_ns;
    } gone[EW_EBPF_GONE_CELLS];
    uint64_t last_drain_ns;
    uint32_t cleared_at; /* sequence numbers: when the cells were last cleared */

    /* What was lost, as far as it has been reported. */
    uint64_t lost_log, lost_life, lost_stream, lost_watch, lost_runs;
    uint64_t missed_runs;     /* switches at which the kernel skipped our program */
    uint64_t missed_asked_ns; /* when it was last asked for that number */

    /* In-kernel cost: measured for a moment now and then, and extrapolated by the run count. */
    int stats_fd;
    bool cost_known;
    uint64_t stats_next_ns;              /* when to begin or end a measurement */
    uint64_t runs_before, run_ns_before; /* the kernel's own counts when it began */
    uint64_t switches_before;            /* our count then */
    double ns_per_switch;                /* everything we run, per switch seen */
    uint64_t switches, switches_accounted;
    double kernel_ns;
    uint64_t events;
    uint64_t undecoded;
};

/* Reads every task there is and delivers the watched processes as SEEN. */
int ew_ebpf_seed(struct ew_ebpf_source *source, struct ew_error *reterr);

/* Delivers what the logs hold, settles the threads that ran, credits those on a CPU up to
 * horizon_ns. */
int ew_ebpf_read_logs(struct ew_ebpf_source *source, uint64_t horizon_ns, struct ew_error *reterr);

/* Lifecycle records and the full stream. Exits are kept back until ew_ebpf_flush_exits. */
int ew_ebpf_life_open(struct ew_ebpf_source *source, bool events);
void ew_ebpf_life_close(struct ew_ebpf_source *source);
int ew_ebpf_read_life(struct ew_ebpf_source *source);
/* Delivers the oldest so many of the moves. */
void ew_ebpf_flush_moves(struct ew_ebpf_source *source, uint32_t count);
void ew_ebpf_flush_exits(struct ew_ebpf_source *source);

/* Own cost in the kernel. */
void ew_ebpf_cost_open(struct ew_ebpf_source *source);
void ew_ebpf_cost_close(struct ew_ebpf_source *source);
/* Asks the kernel, about once a second, how often it skipped our program. */
void ew_ebpf_cost_missed(struct ew_ebpf_source *source, uint64_t now_ns);
/* When the measurement under way should end; UINT64_MAX: none is. */
uint64_t ew_ebpf_cost_due_ns(const struct ew_ebpf_source *source);
void ew_ebpf_cost_update(struct ew_ebpf_source *source, uint64_t now_ns);

#endif
