/* SPDX-License-Identifier: MIT */
/*
 * The whole machine: processors, memory, paging, disks, network, processes. Read beside the stream,
 * a handful of system calls each time. One thread at a time.
 *
 * Stable: the names and their order; new ones are appended.
 */
#ifndef ETWATCH_SYSTEM_H
#define ETWATCH_SYSTEM_H

#include <etwatch/metrics.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A counter is what happened since the last reading (unknown in the first), a gauge is as of now.
 */
#define ETWATCH_SYSTEM_METRICS(X)              \
    X(cpu_percent, double, gauge)              \
    X(load_1, double, gauge)                   \
    X(load_5, double, gauge)                   \
    X(load_15, double, gauge)                  \
    X(memory_total_bytes, uint64_t, gauge)     \
    X(memory_available_bytes, uint64_t, gauge) \
    X(swap_total_bytes, uint64_t, gauge)       \
    X(swap_used_bytes, uint64_t, gauge)        \
    X(paged_in_bytes, uint64_t, counter)       \
    X(paged_out_bytes, uint64_t, counter)      \
    X(disk_read_bytes, uint64_t, counter)      \
    X(disk_write_bytes, uint64_t, counter)     \
    X(net_received_bytes, uint64_t, counter)   \
    X(net_sent_bytes, uint64_t, counter)       \
    X(processes, uint64_t, gauge)              \
    X(threads, uint64_t, gauge)                \
    X(threads_running, uint64_t, gauge)        \
    X(threads_started, uint64_t, counter)      \
    X(threads_ended, uint64_t, counter)        \
    X(switches, uint64_t, counter)             \
    X(processes_started, uint64_t, counter)    \
    X(processes_ended, uint64_t, counter)

enum etwatch_system_metric {
#define ETWATCH_X(name, type, kind) ETWATCH_S_##name,
    ETWATCH_SYSTEM_METRICS(ETWATCH_X)
#undef ETWATCH_X
        ETWATCH_SYSTEM_METRIC_COUNT
};

struct etwatch_system {
    uint32_t size;
    uint32_t cpu_count;         /* entries of cpu_percents; 0: unknown */
    uint64_t t_ns;              /* Unix time of the reading */
    uint64_t dt_ns;             /* since the last one; 0: it is the first */
    const double *cpu_percents; /* of each CPU, until the next reading; < 0: not there */
    /* Sets of enum etwatch_system_metric. */
    struct etwatch_metric_set has;       /* the metrics that are known */
    struct etwatch_metric_set estimated; /* those that are only an estimate this time */
#define ETWATCH_X(name, type, kind) type name;
    ETWATCH_SYSTEM_METRICS(ETWATCH_X)
#undef ETWATCH_X
};

/* 1 if the value of this metric is known: etwatch_system_has(system, ETWATCH_S_load_1). */
static inline int etwatch_system_has(const struct etwatch_system *system, uint32_t metric)
{
    return etwatch_metric_set_has(&system->has, metric);
}

struct etwatch_system_reader;

/* ETWATCH_ENOMEM, ETWATCH_EOS. proc_root: NULL = "/proc" (Linux). */
ETWATCH_API int etwatch_system_open(const char *proc_root,
                                    struct etwatch_system_reader **ret_reader);
ETWATCH_API int etwatch_system_read(struct etwatch_system_reader *reader,
                                    struct etwatch_system *ret_system);
ETWATCH_API void etwatch_system_close(struct etwatch_system_reader *reader);
/* What somebody who sees every start and exit (a monitor with events and ETWATCH_CONFIG_ALL)
 * counted since the last reading: the next one has these, exact, instead of what two lists of
 * processes differ by. Whoever calls it once calls it before every reading. */
ETWATCH_API void etwatch_system_set_process_counts(struct etwatch_system_reader *reader,
                                                   uint64_t started, uint64_t ended);

/* Where it is read. */
enum etwatch_system_os {
    ETWATCH_SYSTEM_LINUX = 0,
    ETWATCH_SYSTEM_WINDOWS = 1,
    ETWATCH_SYSTEM_OS_COUNT = 2,
};

/* "linux", "windows"; NULL for anything else. */
ETWATCH_API const char *etwatch_system_os_name(uint32_t os);

/* What the table of metrics says of these: as etwatch_metric_info and etwatch_metric_backend, with
 * enum etwatch_system_metric, the group "system", and a system instead of a way. */
ETWATCH_API int etwatch_system_info(uint32_t metric, struct etwatch_metric_info *ret_info);
ETWATCH_API int etwatch_system_backend(uint32_t metric, uint32_t os,
                                       struct etwatch_metric_backend *ret_backend);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_SYSTEM_H */
