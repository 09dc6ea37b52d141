/* SPDX-License-Identifier: MIT */
/* Internal interfaces of the eBPF source. */
#ifndef EW_SOURCE_EBPF_EBPF_H
#define EW_SOURCE_EBPF_EBPF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/facts.h"
#include "source/ebpf/abi.h"
#include "source/ebpf/load.h"
#include "source/source.h"

/* ---------------------------------------------------------------------------- convert */

/* Converts the layouts of abi.h to the facts of the model. */

/* How to read an entry on this machine. */
struct ew_ebpf_units {
    uint64_t page_bytes;
    uint64_t features;  /* enum ew_k_feature */
    uint32_t want;      /* enum ew_k_want: the groups that are copied */
    bool affinity_fits; /* at most 64 CPUs */
};

/* A start time of 0 becomes 1: the first process may start at 0, which means unknown elsewhere. */
uint64_t ew_ebpf_start(uint64_t start_ns);
/* The requested groups (enum ew_k_want) that a kernel with these features keeps. */
uint32_t ew_ebpf_effective_want(uint32_t want, uint64_t features);
/* The counters of an entry. cpu_ns is larger than the entry's if the thread still runs. */
void ew_ebpf_counters(const struct ew_ebpf_units *units, const struct ew_k_entry *entry,
                      uint64_t cpu_ns, uint32_t *ret_has, uint64_t counter[EW_COUNTER_COUNT]);
void ew_ebpf_gauges(const struct ew_ebpf_units *units, const struct ew_k_thread *thread,
                    uint32_t *ret_has, uint64_t gauge[EW_GAUGE_COUNT]);
/* The caller sets the kind. */
void ew_ebpf_process(const struct ew_ebpf_units *units, const struct ew_k_life *life,
                     struct ew_process_fact *ret_fact);

/* ------------------------------------------------------------------ optional_counters */

/* Counters that are added up only on request: network bytes and hardware counters. */

extern const struct etwatch_metric_set ew_ebpf_net_metrics, ew_ebpf_pmu_metrics;

struct ew_ebpf_optional {
    uint32_t cpu_count;
    bool want_net, net;             /* requested; attached */
    bool net_tracepoints, has_ipv6; /* how; see optional_counters.bpf.h */
    uint32_t pmu;                   /* enum ew_k_pmu: the counters that are open */
    int *fds;                       /* by counter and CPU; NULL: not requested */
    char no_pmu_reason[160];
};

/* Opens the requested hardware counters that exist. 0 or ETWATCH_ENOMEM. */
int ew_ebpf_optional_open(struct ew_ebpf_optional *optional, const struct ew_source_config *config,
                          uint32_t cpu_count);
void ew_ebpf_optional_close(struct ew_ebpf_optional *optional);
/* The map of hardware counter i, NULL after the last. _fill puts the events into it: 0 or -errno.
 */
const char *ew_ebpf_optional_map(uint32_t i);
int ew_ebpf_optional_fill(const struct ew_ebpf_optional *optional, uint32_t which, int map_fd);

struct etwatch_metric_set ew_ebpf_optional_available(const struct ew_ebpf_optional *optional);
/* Why this requested metric is not available; NULL: it is, or it is not one of these. */
const char *ew_ebpf_optional_unavailable_reason(const struct ew_ebpf_optional *optional,
                                                uint32_t metric);
/* Writes the available counters; returns EW_HAS_C bits. */
uint32_t ew_ebpf_optional_counters(const struct ew_ebpf_optional *optional,
                                   const struct ew_k_optional *sums, uint64_t *counter);

/* ------------------------------------------------------------------------ proc_gauges */

/* Polled gauges: read from /proc on request, only of processes that ran. */

struct ew_ebpf_source;
struct ew_ebpf_proc_gauges;

/* *ret_gauges is NULL if no such gauge is selected or /proc is missing. 0 or ETWATCH_ENOMEM. */
int ew_ebpf_proc_gauges_new(struct ew_ebpf_source *source, const struct ew_source_config *config,
                            struct ew_ebpf_proc_gauges **ret_gauges);
void ew_ebpf_proc_gauges_free(struct ew_ebpf_proc_gauges *proc_gauges);

/* The process ran or started. NULL is ignored. */
void ew_ebpf_proc_gauges_ran(struct ew_ebpf_proc_gauges *proc_gauges, uint32_t pid);
void ew_ebpf_proc_gauges_gone(struct ew_ebpf_proc_gauges *proc_gauges, uint32_t pid);
/* Reads and delivers the gauges that are due. */
void ew_ebpf_proc_gauges_read(struct ew_ebpf_proc_gauges *proc_gauges, uint64_t now_ns,
                              const struct ew_facts *facts);

/* The gauges that can be read here. */
struct etwatch_metric_set
ew_ebpf_proc_gauges_available(const struct ew_ebpf_proc_gauges *proc_gauges);

/* ------------------------------------------------------------------------ fault_events */

/* The software events of perf at the begin and the end of page faults, on each CPU. */
struct ew_ebpf_faults {
    int *fds;
    uint32_t count, size;
};

/* Attaches ew_fault_begin or ew_fault_end. 0 or -errno. */
int ew_ebpf_faults_attach(struct ew_ebpf_faults *faults, const char *program, int program_fd,
                          uint32_t cpu_count);
void ew_ebpf_faults_detach(struct ew_ebpf_faults *faults);

/* ----------------------------------------------------------------------------- object */

/* The loaded programs and their maps. */

enum { EW_EBPF_LINKS_MAX = 40, EW_EBPF_TIMED_MAX = 40 };

/* A map in memory that both sides access without a system call. */
struct ew_ebpf_mapping {
    void *base;
    size_t size;
};

struct ew_ebpf_object {
    const struct ew_image *image;
    struct ew_loaded loaded;
    int links[EW_EBPF_LINKS_MAX];
    uint32_t link_count;
    uint32_t cpu_count;          /* possible CPUs */
    uint32_t log_entries;        /* per CPU, a power of two */
    int read_tasks_fd;           /* programs */
    int switch_fd;               /* program */
    int seed_link_fd;            /* link of the task iterator */
    int watched_fd, excluded_fd; /* maps */
    int life_fd;
    struct ew_ebpf_faults faults;
    bool causes; /* the stream has the times of page faults, and knows interrupts */
    int stream_fd;
    int timed_fds[EW_EBPF_TIMED_MAX]; /* programs that count as our cost */
    uint32_t timed_count;
    struct ew_ebpf_mapping mappings[12];
    uint32_t mapping_count;
    struct ew_k_clock *clock;
    struct ew_k_head *heads;
    const struct ew_k_entry *entries;
    const struct ew_k_lost *losses;
    uint64_t *requests; /* indexes of entries */
    const struct ew_k_thread *threads;
    const struct ew_k_running *running;
    const struct ew_k_optional *entry_optionals; /* parallel to the entries; NULL: not requested */
    struct ew_ebpf_optional optional;
    uint32_t want; /* enum ew_k_want: the groups that the programs copy */
};

/* Loads and attaches what the configuration needs. On failure nothing stays in the kernel. */
int ew_ebpf_object_open(struct ew_ebpf_object *object, const struct ew_source_config *config,
                        struct ew_error *reterr);
void ew_ebpf_object_close(struct ew_ebpf_object *object);

/* Reads the threads of the first request_count requests and, if cpus, those on the CPUs. */
int ew_ebpf_object_read_tasks(struct ew_ebpf_object *object, uint32_t request_count, bool cpus,
                              bool clear_cells);

/* ---------------------------------------------------------------------------- cgroups */

/* Finds the kernel's ids of cgroups. */

/*
 * The id of a cgroup of version 2, by path or as "container:ID". ENOENT: no such cgroup, or several
 * containers with ids that begin with ID; ENOTSUP: it is in a hierarchy of version 1.
 */
int ew_ebpf_cgroup_id(const char *wanted, uint64_t *ret_id, struct ew_error *reterr);

struct ring_buffer;

/* A thread with entries since the last drain; index is that of its latest entry. */
struct ew_ebpf_active {
    uint32_t tid;
    uint32_t index;
    uint64_t noted_ns;    /* time of that entry */
    uint64_t run_from_ns; /* start of the last run that is completely in the log; 0 = none */
    bool over;            /* its FINAL entry was read */
};

/* Facts that are delivered after the entries of the logs. */
struct ew_ebpf_kept {
    struct ew_process_fact *facts;
    uint32_t count, size;
};

enum { EW_EBPF_GONE_CELLS = 256, EW_EBPF_ENDED_CELLS = 4096, EW_EBPF_NAMED_BITS = 14 };

/* The last name of a thread in the full stream. */
struct ew_ebpf_named {
    uint32_t tid;
    char name[EW_K_NAME_SIZE];
};

struct ew_ebpf_running {
    uint32_t tid, cpu;
};

struct ew_ebpf_source {
    struct ew_source base;
    struct ew_source_ops ops; /* a copy: the available metrics depend on the machine */
    struct ew_ebpf_proc_gauges *proc_gauges; /* NULL: no polled gauges */
    struct ew_ebpf_object object;
    struct ew_ebpf_units units;
    struct ring_buffer *rings;   /* lifecycle records */
    struct ring_buffer *stream;  /* the full stream; NULL: not requested */
    struct ew_ebpf_named *named; /* NULL without the full stream */
    bool optional;               /* object.entry_optionals is in use */
    bool filtered;
    bool seeded, drained; /* at least once */
    uint32_t *requested;  /* pids added since the last seed */
    uint32_t requested_count, requested_size;
    uint64_t read_until_ns; /* entries before this time were delivered */

    /* Only while draining. */
    const struct ew_facts *facts;
    struct ew_reading entry_reading;
    struct ew_ebpf_active *active;
    uint32_t active_count, active_size;
    struct ew_ebpf_running running[EW_K_CPUS_MAX]; /* as of the last run of ew_read_tasks */
    uint32_t running_count;
    uint32_t *active_index; /* open addressing by tid: position in active + 1 */
    uint32_t active_index_mask;
    struct ew_ebpf_kept exits; /* delivered after the readings of the same drain */
    uint64_t exit_bits[64];    /* a filter of their pids */
    struct ew_ebpf_kept moves; /* execs that gave a thread another tid, by time */
    uint32_t moves_delivered;
    /* Exited leaders, by pid: a thread that has such a tid later got it by an exec. */
    struct {
        uint32_t pid;
        uint64_t start_ns;
    } gone[EW_EBPF_GONE_CELLS];
    /* Exited threads other than leaders, by tid: entries of theirs that are read later are older.
     */
    struct {
        uint32_t tid;
        uint64_t start_ns;
    } ended[EW_EBPF_ENDED_CELLS];
    uint64_t last_drain_ns;
    uint32_t cleared_at; /* sequence numbers: when the cells were last cleared */

    /* Losses reported so far. */
    uint64_t lost_log, lost_life, lost_stream, lost_watch, lost_runs;
    uint64_t refused, lost_refused; /* for which there was no memory; those reported */
    uint64_t missed_runs;           /* switches at which the kernel skipped the program */
    uint64_t missed_read_ns;        /* when that number was last read */

    /* Cost in the kernel: sampled now and then, extrapolated by the number of switches. */
    int stats_fd;
    bool cost_known;
    uint64_t stats_next_ns;              /* when to begin or end a measurement */
    uint64_t runs_before, run_ns_before; /* the kernel's counts at its beginning */
    uint64_t switches_before;            /* number of switches at its beginning */
    double ns_per_switch;                /* run time of all programs, per switch */
    uint64_t switches, switches_accounted;
    double kernel_ns;
    uint64_t events;
    uint64_t undecoded;
};

/* Lists all tasks and delivers the watched processes as SEEN. */
int ew_ebpf_seed(struct ew_ebpf_source *source, struct ew_error *reterr);

/* Delivers the entries of the logs, then the threads that ran since. CPU time of running threads is
 * delivered up to horizon_ns. */
int ew_ebpf_read_logs(struct ew_ebpf_source *source, uint64_t horizon_ns, struct ew_error *reterr);

/* Lifecycle records and the full stream. Exits are held until ew_ebpf_flush_exits. */
int ew_ebpf_life_open(struct ew_ebpf_source *source, bool events);
void ew_ebpf_life_close(struct ew_ebpf_source *source);
int ew_ebpf_read_life(struct ew_ebpf_source *source);
/* Delivers the oldest `count` moves. */
void ew_ebpf_flush_moves(struct ew_ebpf_source *source, uint32_t count);
void ew_ebpf_flush_exits(struct ew_ebpf_source *source);

/* The cost of the programs in the kernel. */
void ew_ebpf_cost_open(struct ew_ebpf_source *source);
void ew_ebpf_cost_close(struct ew_ebpf_source *source);
/* Reads about once a second how often the kernel skipped the switch program. */
void ew_ebpf_cost_missed(struct ew_ebpf_source *source, uint64_t now_ns);
/* When the current measurement should end; UINT64_MAX: there is none. */
uint64_t ew_ebpf_cost_due_ns(const struct ew_ebpf_source *source);
void ew_ebpf_cost_update(struct ew_ebpf_source *source, uint64_t now_ns);

#endif
