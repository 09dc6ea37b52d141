/* SPDX-License-Identifier: MIT */
/*
 * Parser for the list of all processes and threads that Windows returns in one call: the output of
 * NtQuerySystemInformation for SystemProcessInformation on a 64-bit system, Windows 7 to 11. Makes
 * no system call.
 */
#ifndef EW_SOURCE_POLL_WINDOWS_LISTING_H
#define EW_SOURCE_POLL_WINDOWS_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/counter.h"

#define EW_LISTED_PROCESS_SIZE 0x100u /* threads follow */
#define EW_LISTED_THREAD_SIZE 0x50u

struct ew_listing {
    const uint8_t *data;
    size_t size;
    uint64_t address; /* of data when it was written: names are given by address */
    size_t pos;       /* of the next process */
    bool over;
};

/* Times are in units of 100 ns, `created` since 1601. */
struct ew_listed_process {
    uint32_t pid, ppid, session_id;
    int32_t priority;
    uint64_t created, user, kernel;
    uint64_t cycles;              /* executed; 0: unknown */
    uint32_t faults, faults_hard; /* these wrap at 2^32 */
    uint32_t thread_count, handles;
    uint64_t virtual_bytes, rss_bytes, rss_private_bytes, rss_peak_bytes, private_bytes;
    uint64_t pool_paged_bytes, pool_nonpaged_bytes;
    uint64_t read_ops, write_ops, other_ops, read_bytes, write_bytes, other_bytes;
    const uint8_t *name; /* UTF-16, not terminated */
    uint32_t name_len;   /* bytes */
    const uint8_t *threads;
};

struct ew_listed_thread {
    uint32_t tid;
    int32_t priority;
    uint64_t created, user, kernel;
    uint32_t state, wait_reason;
};

/* KTHREAD_STATE. */
enum ew_listed_state {
    EW_LISTED_READY = 1,
    EW_LISTED_RUNNING = 2,
    EW_LISTED_STANDBY = 3, /* next on its CPU */
    EW_LISTED_TERMINATED = 4,
    EW_LISTED_WAITING = 5,
    EW_LISTED_TRANSITION = 6, /* ready, but its stack is not in memory */
    EW_LISTED_DEFERRED_READY = 7,
};
#define EW_LISTED_SUSPENDED 5u /* a wait reason */

void ew_listing_init(struct ew_listing *listing, const void *data, size_t size, uint64_t address);
/* 1 and the next process, 0 after the last, ETWATCH_ETRUNC or ETWATCH_EFORMAT. */
int ew_listing_next(struct ew_listing *listing, struct ew_listed_process *ret_process);
/* Thread i < thread_count. */
void ew_listed_thread(const struct ew_listed_process *process, uint32_t i,
                      struct ew_listed_thread *ret_thread);
/* Whether a thread of the process is running; false for the idle process. The caller itself is
 * running: if no process is, this system does not report thread states. */
bool ew_listed_runs(const struct ew_listed_process *process);
/*
 * Fills gauge with the current gauges of a process and returns which ones (EW_HAS_G). A gauge that
 * is 0 although every process has some is not reported by this system. states: the system reports
 * thread states.
 */
uint32_t ew_listed_gauges(const struct ew_listed_process *process, bool states,
                          uint64_t gauge[EW_GAUGE_COUNT]);
/* The name in UTF-8, truncated to size, which must be > 0. */
void ew_listed_name(const struct ew_listed_process *process, char *buffer, size_t size);

#endif
