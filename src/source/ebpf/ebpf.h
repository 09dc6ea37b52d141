/* SPDX-License-Identifier: MIT */
/* The eBPF source from the inside: what its files share. */
#ifndef EW_SOURCE_EBPF_EBPF_H
#define EW_SOURCE_EBPF_EBPF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/facts.h"
#include "source/ebpf/abi.h"
#include "source/source.h"

/* ---------------------------------------------------------------------------- convert */

/* From the layouts of abi.h to the facts of the model. */

/* What of an entry is known on this machine. */
struct ew_ebpf_units {
    uint64_t page_bytes;
    uint64_t features;  /* enum ew_k_feature */
    uint32_t want;      /* enum ew_k_want: what the kernel copies */
    bool affinity_fits; /* no more CPUs than bits in a word */
};

/* The first process may have started at 0, which means unknown everywhere else. */
uint64_t ew_ebpf_start(uint64_t start_ns);
/* What is wanted (enum ew_k_want), less what a kernel with these features does not keep. */
uint32_t ew_ebpf_had(uint32_t want, uint64_t features);
/* The counters of an entry; cpu_ns may differ from the entry's when a run is credited up to now. */
void ew_ebpf_counters(const struct ew_ebpf_units *units, const struct ew_k_entry *entry,
                      uint64_t cpu_ns, uint32_t *ret_has, uint64_t counter[EW_COUNTER_COUNT]);
void ew_ebpf_gauges(const struct ew_ebpf_units *units, const struct ew_k_settled *settled,
                    uint32_t *ret_has, uint64_t gauge[EW_GAUGE_COUNT]);
/* The kind is the caller's. */
void ew_ebpf_process(const struct ew_ebpf_units *units, const struct ew_k_life *life,
                     struct ew_process_fact *ret_fact);

/* ------------------------------------------------------------------ optional_counters */

/* What is added up only on request, seen from user space. */

extern const struct etwatch_metric_set ew_ebpf_net_metrics, ew_ebpf_pmu_metrics;

struct ew_ebpf_optional {
    uint32_t cpu_count;
    bool want_net, net;             /* asked for; attached */
    bool net_tracepoints, has_ipv6; /* by which way; see extra.h */
    uint32_t pmu;                   /* enum ew_k_pmu: the counters that count */
    int *fds;                       /* by counter and CPU; NULL: not asked for */
    char why_no_pmu[160];
};

/* Opens the hardware counters that are asked for and there. 0 or ETWATCH_ENOMEM. */
int ew_ebpf_optional_open(struct ew_ebpf_optional *optional, const struct ew_source_config *config,
                          uint32_t cpu_count);
void ew_ebpf_optional_close(struct ew_ebpf_optional *optional);
/* The maps that want the counters, NULL after the last; and puts them there. 0 or -errno. */
const char *ew_ebpf_optional_map(uint32_t i);
int ew_ebpf_optional_fill(const struct ew_ebpf_optional *optional, uint32_t which, int map_fd);

struct etwatch_metric_set ew_ebpf_optional_available(const struct ew_ebpf_optional *optional);
/* Why this metric, which was asked for, cannot be had; NULL: it can, or it is none of these. */
const char *ew_ebpf_optional_lacks(const struct ew_ebpf_optional *optional, uint32_t metric);
/* Writes the counters that there are; returns EW_HAS_C bits. */
uint32_t ew_ebpf_optional_counters(const struct ew_ebpf_optional *optional,
                                   const struct ew_k_extra *sums, uint64_t *counter);

/* ------------------------------------------------------------------------ proc_gauges */

/* What no event carries, read beside the events: only on request, only of processes that ran. */

struct ew_ebpf_source;
struct ew_proc_gauges;

/* *ret_aside is NULL if nothing of it is wanted. 0 or ETWATCH_ENOMEM. What cannot be read here is
 * not offered. */
int ew_proc_gauges_new(struct ew_ebpf_source *source, const struct ew_source_config *config,
                       struct ew_proc_gauges **ret_aside);
void ew_proc_gauges_free(struct ew_proc_gauges *proc_gauges);

/* It ran, or came. NULL is fine. */
void ew_proc_gauges_ran(struct ew_proc_gauges *proc_gauges, uint32_t pid);
void ew_proc_gauges_gone(struct ew_proc_gauges *proc_gauges, uint32_t pid);
/* Reads and tells what is due. */
void ew_proc_gauges_read(struct ew_proc_gauges *proc_gauges, uint64_t now_ns,
                         const struct ew_facts *facts);

/* The metrics that it can read here. */
struct etwatch_metric_set ew_proc_gauges_available(const struct ew_proc_gauges *proc_gauges);

/* ----------------------------------------------------------------------------- object */

/* The loaded programs and their maps, as user space sees them. */

struct bpf_object;
struct bpf_link;

enum { EW_EBPF_LINKS_MAX = 24, EW_EBPF_TIMED_MAX = 24 };

/* One of the maps that both sides write to without a system call. */
struct ew_ebpf_mapping {
    void *base;
    size_t size;
};

struct ew_ebpf_object {
    struct bpf_object *bpf;
    struct bpf_link *links[EW_EBPF_LINKS_MAX];
    uint32_t link_count;
    uint32_t cpu_count;          /* possible CPUs */
    uint32_t log_entries;        /* per CPU, a power of two */
    int settle_fd;               /* programs */
    int switch_fd;               /* program */
    int seed_link_fd;            /* iterator link; each read makes an iterator of it */
    int watched_fd, excluded_fd; /* maps */
    int life_fd;
    int stream_fd;
    int timed_fds[EW_EBPF_TIMED_MAX]; /* attached programs, whose run time is ours */
    uint32_t timed_count;
    struct ew_ebpf_mapping mappings[12];
    uint32_t mapping_count;
    struct ew_k_clock *clock;
    struct ew_k_head *heads;
    const struct ew_k_entry *entries;
    const struct ew_k_lost *losses;
    uint64_t *requests; /* indexes of entries */
    const struct ew_k_settled *settled;
    const struct ew_k_running *running;
    const struct ew_k_extra *entry_extras; /* beside the entries, if asked for */
    struct ew_ebpf_optional optional;
    uint32_t want; /* enum ew_k_want: what the programs copy */
};

/* Loads and attaches everything the configuration asks for. On failure nothing stays behind. */
int ew_ebpf_object_open(struct ew_ebpf_object *object, const struct ew_source_config *config,
                        struct ew_error *reterr);
void ew_ebpf_object_close(struct ew_ebpf_object *object);

/* Runs the settle program over the first request_count requests and, if cpus, all CPUs. */
int ew_ebpf_object_settle(struct ew_ebpf_object *object, uint32_t request_count, bool cpus,
                          bool clear_cells);

/* ---------------------------------------------------------------------------- cgroups */

/* The ids by which the kernel knows the cgroups that were asked for. */

/*
 * The id of a cgroup of version 2, by its path or as "container:ID". ENOENT: there is none, or more
 * than one container begins like that; ENOTSUP: it is not in the hierarchy of version 2.
 */
int ew_ebpf_cgroup_id(const char *wanted, uint64_t *ret_id, struct ew_error *reterr);

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
