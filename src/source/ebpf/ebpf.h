/* SPDX-License-Identifier: MIT */
/* The eBPF source from the inside: what its files share. */
#ifndef EW_EBPF_H
#define EW_EBPF_H

#include "source/ebpf/convert.h"
#include "source/ebpf/object.h"

struct ring_buffer;

/* A thread that was noted in a log since the last drain; index is that of its latest entry. */
struct ew_ebpf_active {
    uint32_t tid;
    uint32_t index;
    uint64_t noted_ns;    /* time of that entry */
    uint64_t run_from_ns; /* start of the last run that the log has told of in full; 0 = none */
    bool over;            /* its FINAL has come */
};

struct ew_ebpf_source {
    struct ew_source base;
    struct ew_ebpf_object object;
    struct ew_ebpf_units units;
    struct ring_buffer *rings; /* lifecycle records and, if asked for, the full stream */
    bool filtered;
    bool seeded;

    /* Only while draining. */
    const struct ew_facts *facts;
    struct ew_ebpf_active *active;
    uint32_t active_count, active_size;
    uint32_t *active_index; /* open addressing by tid: position in active + 1 */
    uint32_t active_index_mask;
    struct ew_process_fact *exits; /* delivered after the readings of the same drain */
    uint32_t exit_count, exit_size;
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
void ew_ebpf_flush_exits(struct ew_ebpf_source *source);

/* Own cost in the kernel. */
void ew_ebpf_cost_open(struct ew_ebpf_source *source);
void ew_ebpf_cost_close(struct ew_ebpf_source *source);
/* Asks the kernel, about once a second, how often it skipped our program. */
void ew_ebpf_cost_missed(struct ew_ebpf_source *source, uint64_t now_ns);
void ew_ebpf_cost_update(struct ew_ebpf_source *source, uint64_t now_ns);

#endif
