/* SPDX-License-Identifier: MIT */
/*
 * A synthetic machine with known results: processes and threads that start, run, wait, fault, do
 * I/O and exit on some CPUs, written as the events that Windows would log. The same seed gives the
 * same events. The work of each thread is counted while it is generated, in ticks of the session's
 * clock: the truth that reading the events must reproduce.
 *
 * Kept simple on purpose: the first event of each CPU is a switch, the last one is the switch to
 * idle, IDs are reused as soon as they are free, and an I/O completes before its thread exits.
 */
#ifndef ETL_SCENARIO_H
#define ETL_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

#include "etl_writer.h"

enum etl_class {
    ETL_SWITCHES = 1u << 0,
    ETL_READY = 1u << 1,
    ETL_SAMPLES = 1u << 2,
    ETL_INTERRUPTS = 1u << 3,
    ETL_FAULTS = 1u << 4, /* soft, hard, VirtualAlloc */
    ETL_DISK = 1u << 5,
    ETL_FILES = 1u << 6,
    ETL_NET = 1u << 7,
    ETL_IMAGES = 1u << 8,
    ETL_CHURN = 1u << 9, /* processes and threads start and exit */
    ETL_STACKS = 1u << 10,
    ETL_MEMORY = 1u << 11, /* working sets, and counters at process exit */
    ETL_EVERYTHING = (1u << 12) - 1,
    ETL_COUNTERS = 1u << 12, /* switches carry hardware counters; not on every machine */
};

/* What happens to the hardware counters. */
enum etl_counters_fate {
    ETL_COUNTERS_NAMED, /* their names are logged first */
    ETL_COUNTERS_NAMED_LATE,
    ETL_COUNTERS_UNNAMED,
    ETL_COUNTERS_RENAMED,   /* halfway other names of the same number */
    ETL_COUNTERS_RESTART,   /* those of one CPU restart once */
    ETL_COUNTERS_PAUSE,     /* a hundred switches in the middle have none */
    ETL_COUNTERS_DISTURBED, /* at the end Windows reports that they are disturbed */
    ETL_COUNTERS_OURS       /* only cycles, instructions and cache misses, as etwatch requests them;
                               unnamed */
};

/* The order in which they are carried: the second is one that etwatch never requests. */
enum { ETL_INSTRUCTIONS, ETL_BRANCHES, ETL_CYCLES, ETL_CACHE_MISSES, ETL_COUNTER_COUNT };

struct etl_scenario_config {
    uint64_t seed;
    uint32_t classes; /* enum etl_class */
    enum etl_counters_fate counters;
    uint32_t cpu_count;    /* as in the writer */
    uint32_t pointer_size; /* 4 or 8 */
    bool windows7;         /* the versions of its events; default: Windows 10 */
    bool chains;           /* events follow from each other as in reality; default: at random */
    uint64_t event_count;  /* about this many, without the rundown; 0: until stop returns true */
    bool (*stop)(void *ctx);
    void *stop_ctx;
    uint64_t start_raw;
    uint32_t process_count;  /* at the beginning; 0: 12 */
    uint32_t max_threads;    /* that may ever exist; 0: 4096 */
    uint32_t gap_ticks;      /* between events of all CPUs, on average; 0: 60 */
    uint32_t sample_100ns;   /* 0: 10000, 1 ms */
    uint64_t perf_frequency; /* as in the writer; 0: 10 MHz */
};

struct etl_truth_process {
    uint32_t pid, parent_pid, session_id;
    int32_t exit_status;
    uint64_t key;
    uint64_t start_raw, end_raw; /* 0: preexisting, or still running */
    char name[32];
    uint32_t thread_count; /* in total */
    uint32_t live_threads;
    uint32_t image_count;
    uint64_t sent_bytes, received_bytes;
    uint64_t working_set_peak_bytes; /* from the counters at its exit or in the rundown */
};

struct etl_truth_thread {
    uint32_t pid, tid, process; /* index */
    uint64_t start_raw, end_raw;
    uint64_t cpu_ticks;              /* from switch-in to switch-out */
    uint64_t interrupt_ticks;        /* part of it in DPCs and ISRs */
    uint64_t ready_ticks;            /* waiting for a CPU */
    uint64_t out_waiting, out_ready; /* switch-outs: voluntary (or at exit), or not */
    uint64_t samples, faults, hard_faults;
    uint64_t disk_read_bytes, disk_write_bytes, disk_reads, disk_writes;
    uint64_t file_read_bytes, file_write_bytes;
    uint64_t counters[ETL_COUNTER_COUNT];
    bool counters_gap; /* some part of them cannot be known */
};

struct etl_truth {
    struct etl_truth_process *processes;
    uint32_t process_count;
    struct etl_truth_thread *threads;
    uint32_t thread_count;
    uint64_t events, switches, readies, samples;
    uint64_t idle_ticks; /* of all CPUs, each from its first switch to last_raw */
    uint64_t busy_ticks; /* the same for all threads together, including interrupts */
    uint64_t dpc_ticks, isr_ticks;
    uint64_t idle_samples;
    uint64_t first_raw, last_raw; /* of all events */
};

/* Writes the events; the caller frees ret_truth. The writer is not finished. 0 or ETWATCH_E*. */
int etl_scenario_run(const struct etl_scenario_config *config, struct ew_etl_writer *writer,
                     struct etl_truth *ret_truth);
void etl_truth_free(struct etl_truth *truth);

/* A random generator for tests: the same on every system. */
uint64_t etl_random(uint64_t *state);

#endif
