/* SPDX-License-Identifier: MIT */
/*
 * Internals of the poll source for Linux: its state and its parts.
 *
 *   proc_text   parses the text of /proc    table        all known processes
 *   proc_files  system calls                proc_filter  which of them are watched
 *   process     readings of one process     threads      readings of its threads
 *   poll        the round                   emit         facts
 */
#ifndef EW_SOURCE_POLL_POLL_H
#define EW_SOURCE_POLL_POLL_H

#include "source/poll/poller.h"
#include "source/poll/proc_files.h"
#include "source/poll/proc_text.h"
#include "source/poll/slow_gauges.h"
#include "source/source.h"

/* Threads of all watched processes together. */
#define EW_POLL_THREADS_MAX 131072u

/* Units of the kernel's numbers; a recorded tree may come from another machine. */
struct ew_poll_units {
    uint64_t ticks_per_s; /* divides 1e9 */
    uint64_t page_bytes;
};

enum ew_poll_file {
    EW_POLL_STAT,
    EW_POLL_STATUS,
    EW_POLL_IO,
    EW_POLL_SCHEDSTAT,
    EW_POLL_FILE_COUNT
};
extern const char *const ew_poll_file_names[EW_POLL_FILE_COUNT];

struct ew_poll_thread {
    uint32_t tid;
    bool known;     /* read at least once */
    bool changed;   /* read in this round and not emitted yet */
    uint64_t round; /* last round in which it was listed */
    uint64_t start_ns;
    uint32_t counter_has, gauge_has;
    uint64_t counter[EW_COUNTER_COUNT];
    int64_t priority;
    uint64_t affinity;
    char name[EW_NAME_SIZE];
    int fd[EW_POLL_FILE_COUNT];
};

struct ew_poll_process {
    uint32_t pid;
    uint64_t start_ns;
    char name[EW_NAME_SIZE];
    uint32_t uid;
    bool uid_known;
    bool had_threads; /* has had more than one: the process files of per-thread counters are no
                         totals */
    bool io_denied;
    bool busy, busy_before; /* ran in this round and the previous one: worth keeping files open */
    bool ended;             /* a zombie */
    uint64_t read_ns;       /* raw time of the last reading */
    struct ew_slow_gauges_item slow;
    struct ew_poll_figures figures;
    int fd[EW_POLL_FILE_COUNT];
    struct ew_poll_thread *threads;
    uint32_t thread_count, thread_capacity, thread_cursor;
    uint64_t
        summed[EW_COUNTER_COUNT]; /* over all threads ever listed; only switches and wait time */
    uint32_t summed_has;
};

struct ew_poll {
    struct ew_poller base;
    struct ew_proc_files files;
    struct ew_slow_gauges slow;
    bool reads_status, reads_io, reads_schedstat; /* some metric of that file is selected */
    struct ew_poll_units units;
    struct ew_proc_ids listed; /* scratch: the directory, or the threads of one process */
    struct ew_proc_ids fresh;  /* found in this round */
    uint64_t scan_ns;          /* raw time of the last listing of the directory */
    uint32_t last_pid;
};

/* Like ew_source_poll.open, with given units. */
int ew_poll_open(const struct ew_source_config *config, const struct ew_poll_units *units,
                 struct ew_poll **ret_poll, struct ew_error *reterr);

/* ------------------------------------------------------------- proc_filter */

/* Whether a rule other than a pid tree selects the process. May read more files of it. */
bool ew_poll_filter_match(struct ew_poll *poll, const struct ew_proc_stat *stat);

/* ----------------------------------------------------------------- process */

uint64_t ew_poll_ticks_to_ns(const struct ew_poll *poll, uint64_t ticks);
/* Start time of a process on the raw clock. */
uint64_t ew_poll_start_ns(const struct ew_poll *poll, const struct ew_proc_stat *stat);

struct ew_poll_process *ew_poll_process_new(const struct ew_proc_stat *stat, uint64_t start_ns);
void ew_poll_process_free(struct ew_poll *poll, struct ew_poll_process *process);
/* Closes its descriptors. */
void ew_poll_process_close_files(struct ew_poll *poll, struct ew_poll_process *process);

enum ew_poll_result {
    EW_POLL_READ = 0,
    EW_POLL_GONE,
    EW_POLL_OTHER,      /* the pid belongs to another process now */
    EW_POLL_UNREADABLE, /* exists, but its stat could not be read or parsed */
};

/* Reads all figures; cpu_ns is the CPU clock if cpu_known. *ret_stat is the parsed stat; for
 * OTHER it is that of the other process. */
enum ew_poll_result ew_poll_process_read(struct ew_poll *poll, struct ew_poll_process *process,
                                         bool cpu_known, uint64_t cpu_ns,
                                         struct ew_proc_stat *ret_stat);
enum ew_poll_result ew_poll_read_stat(struct ew_poll *poll, uint32_t pid, uint32_t tid, bool keep,
                                      int *fd, struct ew_proc_stat *ret_stat);

/* ----------------------------------------------------------------- threads */

/* Reads the threads that ran and adds to process->summed. Emits nothing yet: facts of a process
 * precede those of its threads. */
void ew_poll_threads_read(struct ew_poll *poll, struct ew_poll_process *process);
/* Emits what the last read found, including ended threads, and drops the latter. */
void ew_poll_threads_emit(struct ew_poll *poll, struct ew_poll_process *process);
void ew_poll_threads_close_files(struct ew_poll *poll, struct ew_poll_process *process);
void ew_poll_threads_free(struct ew_poll *poll, struct ew_poll_process *process);

/* -------------------------------------------------------------------- emit */

/* stat may be NULL: gone before it could be read. With a stat, EXIT includes the exit status. */
void ew_poll_emit_process(struct ew_poll *poll, const struct ew_poll_process *process,
                          const struct ew_proc_stat *stat, enum ew_process_kind kind);
#endif
