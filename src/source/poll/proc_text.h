/* SPDX-License-Identifier: MIT */
/*
 * Parsers for the files of /proc: from text to numbers, without system calls. Based on
 * Documentation/filesystems/proc.rst and fs/proc/ of Linux 5.15 to 6.18.
 *
 * Every parser returns 0 or ETWATCH_EFORMAT/ETRUNC with the byte offset in *reterr; the out
 * parameter is written only on success. Values that a kernel does not print lack their `has` bit.
 */
#ifndef EW_SOURCE_POLL_PROC_TEXT_H
#define EW_SOURCE_POLL_PROC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"

#define EW_PROC_COMM_SIZE 64 /* 16 for programs; kernel threads print more */

/* /proc/PID/stat and /proc/PID/task/TID/stat. Times are clock ticks. */
struct ew_proc_stat {
    uint32_t pid, ppid, session;
    char state;
    char comm[EW_PROC_COMM_SIZE];
    bool kernel_thread;
    uint64_t faults_minor, faults_major;
    uint64_t user_ticks, kernel_ticks;
    int64_t priority;
    uint64_t threads;
    uint64_t start_ticks; /* since boot */
    uint64_t virtual_bytes, rss_pages;
    int32_t exit_code; /* as encoded by wait(); only valid for a zombie; 0 if hidden */
};

int ew_proc_parse_stat(const void *text, size_t size, struct ew_proc_stat *ret_stat,
                       struct ew_error *reterr);

/* /proc/PID/io: of all threads, including ended ones. */
struct ew_proc_io {
    uint64_t read_chars, write_chars, read_calls, write_calls, read_bytes, write_bytes;
};

int ew_proc_parse_io(const void *text, size_t size, struct ew_proc_io *ret_io,
                     struct ew_error *reterr);

/* schedstat: of one thread, even as /proc/PID/schedstat. All zero: the kernel does not maintain
 * it. */
struct ew_proc_schedstat {
    uint64_t run_ns, wait_ns, slices;
};

int ew_proc_parse_schedstat(const void *text, size_t size, struct ew_proc_schedstat *ret_schedstat,
                            struct ew_error *reterr);

enum ew_proc_status_has {
    EW_STATUS_UID = 1u << 0,
    EW_STATUS_RSS = 1u << 1,
    EW_STATUS_PEAK = 1u << 2,
    EW_STATUS_VIRTUAL = 1u << 3,
    EW_STATUS_ANON = 1u << 4,
    EW_STATUS_SWAP = 1u << 5,
    EW_STATUS_SWITCHES = 1u << 6,
    EW_STATUS_AFFINITY = 1u << 7,
};

/* /proc/PID/status and that of a thread. The switches are those of one thread, even for a
 * process. */
struct ew_proc_status {
    uint32_t has; /* enum ew_proc_status_has */
    uint32_t uid; /* real */
    uint64_t rss_bytes, peak_bytes, virtual_bytes, anon_bytes, swap_bytes;
    uint64_t switches_voluntary, switches_involuntary;
    uint64_t affinity;
};

int ew_proc_parse_status(const void *text, size_t size, struct ew_proc_status *ret_status,
                         struct ew_error *reterr);

/* The cgroup v2 path in /proc/PID/cgroup. It points into text; empty if there is none. */
int ew_proc_parse_cgroup(const void *text, size_t size, struct ew_span *ret_path,
                         struct ew_error *reterr);

/* The last assigned id according to /proc/loadavg. */
int ew_proc_parse_last_pid(const void *text, size_t size, uint32_t *ret_pid,
                           struct ew_error *reterr);

/* Whether the status text shows that the process has this pid in the pid namespace of this /proc
 * and is in no inner one, so that ids mean the same to the process and to this /proc. */
bool ew_proc_same_namespace(const void *text, size_t size, uint32_t pid);

/* Parses a directory entry of a process or thread: decimal, no sign, no leading zero. 0:
 * neither. */
uint32_t ew_proc_parse_pid_name(const char *name);

#endif
