/* SPDX-License-Identifier: MIT */
/*
 * One process, asked once: what it did since it began and what it holds now. No monitor, no source
 * that has to be started; for callers who want a figure now and then. What happens between two
 * questions is not seen: to watch, use a monitor.
 *
 * The rules of etwatch.h hold. Nothing is kept between calls, so any thread may call.
 */
#ifndef ETWATCH_PROCESS_H
#define ETWATCH_PROCESS_H

#include <etwatch/etwatch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fixed: these two do not grow. start_raw_ns is on a clock that nobody sets; with pid it is the
 * identity of a process as long as the system runs (Windows: to a millisecond). */
struct etwatch_process_id {
    uint32_t pid, ppid;
    uint64_t start_ns, start_raw_ns;
};

struct etwatch_process_thread {
    uint32_t tid;
    uint32_t reserved;
    uint64_t start_ns;
    struct etwatch_metric_set has; /* which of the three below are known */
    uint64_t cpu_ns, cpu_user_ns, cpu_kernel_ns;
};

enum etwatch_process_flag {
    /* Adds up what the kernel keeps per thread (context switches, waits); costs a read each. */
    ETWATCH_PROCESS_THREAD_SUMS = 1u << 0,
};

/* Totals since the process began and its gauges now, as type SAMPLE with source POLL. `name` is
 * NULL unless buffer (buffer_size bytes) is given to hold it; ret_id may be NULL. ETWATCH_ENOENT:
 * there is no such process. */
ETWATCH_API int etwatch_process_read(uint32_t pid, uint32_t flags,
                                     struct etwatch_sample *ret_sample, char *buffer,
                                     size_t buffer_size, struct etwatch_process_id *ret_id,
                                     struct etwatch_error_info *reterr);

/* Its threads, up to max of them; returns how many there are, which may be more. */
ETWATCH_API int etwatch_process_threads(uint32_t pid, struct etwatch_process_thread *ret_threads,
                                        size_t max, struct etwatch_error_info *reterr);

/* Every process there is, kernel threads included, up to max of them; returns how many there are,
 * which may be more. */
ETWATCH_API int etwatch_process_list(struct etwatch_process_id *ret_ids, size_t max,
                                     struct etwatch_error_info *reterr);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_PROCESS_H */
