/* SPDX-License-Identifier: MIT */
/*
 * Access to a /proc tree: the real one, that of another pid namespace, or a recorded one.
 *
 * Only a real procfs allows keeping descriptors open: a kept descriptor refers to the process
 * itself and not to its pid, so it returns "gone" when the process exits even if the pid is reused.
 * Only with the procfs of our own pid namespace can the kernel be queried by pid outside of /proc
 * (CPU clock, last assigned id).
 */
#ifndef EW_SOURCE_POLL_PROC_FILES_H
#define EW_SOURCE_POLL_PROC_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Buffer for the text of one file; longer ones (none that we read) are truncated. */
#define EW_PROC_TEXT_SIZE 8192

struct ew_proc_files {
    char *root;
    int root_fd;
    int loadavg_fd;
    bool procfs;    /* descriptors may be kept */
    bool own_ids;   /* procfs of our own pid namespace */
    bool fd_counts; /* the size of PID/fd is the number of open descriptors (Linux 6.2) */
    uint32_t kept_count, kept_max;
    char text[EW_PROC_TEXT_SIZE]; /* text of the last read */
    size_t len;
};

enum ew_proc_result {
    EW_PROC_OK = 0,
    EW_PROC_GONE,   /* the process or thread has ended */
    EW_PROC_DENIED, /* exists, but this file cannot be read */
};

int ew_proc_files_open(struct ew_proc_files *files, const char *root, struct ew_error *reterr);
void ew_proc_files_close(struct ew_proc_files *files);

/* Called at the start of a round: a recorded tree may have been replaced under its name. */
int ew_proc_files_refresh(struct ew_proc_files *files, struct ew_error *reterr);

/* Reads PID/FILE, or PID/task/TID/FILE if tid is not 0, into text and len. *fd is the kept
 * descriptor or -1; with keep it stays open while the limit allows it. */
enum ew_proc_result ew_proc_read(struct ew_proc_files *files, uint32_t pid, uint32_t tid,
                                 const char *file, bool keep, int *fd);
void ew_proc_drop(struct ew_proc_files *files, int *fd);

/* Lists the processes, or the threads of pid if it is not 0, unordered. Returns their number or
 * a negative code (ENOENT: the process has ended). *ids grows as needed up to max; the excess is
 * only counted. */
struct ew_proc_ids {
    uint32_t *ids;
    uint32_t count, capacity;
    uint32_t overflow;
};
int ew_proc_list(struct ew_proc_files *files, uint32_t pid, uint32_t max, struct ew_proc_ids *ids);

/* Exact CPU time of a process with all its threads, past and present. Only with own_ids. */
enum ew_proc_result ew_proc_cpu_ns(uint32_t pid, uint64_t *ret_ns);
/* The last assigned id; false: unknown. */
bool ew_proc_last_pid(struct ew_proc_files *files, uint32_t *ret_pid);
/* The number of open descriptors; false: unknown. */
bool ew_proc_fd_count(struct ew_proc_files *files, uint32_t pid, uint64_t *ret_count);

#endif
