/* SPDX-License-Identifier: MIT */
/*
 * Inside the poll source: its state and the pieces it is made of.
 *
 *   proc_text   the text of /proc          table    which processes there are
 *   proc_files  the system calls           watch    which of them are watched
 *   process     what one process did       threads  the same for its threads
 *   poll        the round that ties them together      tell  the facts that leave it
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

/* What the kernel's numbers mean; a recorded tree may come from another machine. */
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
    bool changed;   /* read in this round and not told yet */
    uint64_t round; /* the last one in which it was listed */
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
    bool had_threads; /* more than one at some time: what is kept per thread is no total */
    bool io_denied;
    bool busy, busy_before; /* ran in this round and the one before: worth keeping open */
    bool ended;             /* a zombie */
    uint64_t read_ns;       /* raw time of the last reading */
    struct ew_slow_gauges_item slow;
    struct ew_poll_figures figures;
    int fd[EW_POLL_FILE_COUNT];
    struct ew_poll_thread *threads;
    uint32_t thread_count, thread_capacity, thread_cursor;
    uint64_t summed[EW_COUNTER_COUNT]; /* over all threads ever listed; switches and wait only */
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
    uint64_t scan_ns;          /* raw time of the last look at the whole directory */
    uint32_t last_pid;
};

/* As ew_source_poll.open, with units given. */
int ew_poll_open(const struct ew_source_config *config, const struct ew_poll_units *units,
                 struct ew_poll **ret_poll, struct ew_error *reterr);

/* ------------------------------------------------------------------- watch */

/* Whether a rule other than the tree of pids asks for it. May read more files of the process. */
bool ew_poll_filter_match(struct ew_poll *poll, const struct ew_proc_stat *stat);

/* ----------------------------------------------------------------- process */

uint64_t ew_poll_ticks_to_ns(const struct ew_poll *poll, uint64_t ticks);
/* When a process began, on the raw clock. */
uint64_t ew_poll_start_ns(const struct ew_poll *poll, const struct ew_proc_stat *stat);

struct ew_poll_process *ew_poll_process_new(const struct ew_proc_stat *stat, uint64_t start_ns);
void ew_poll_process_free(struct ew_poll *poll, struct ew_poll_process *process);
/* Lets go of its descriptors. */
void ew_poll_process_rest(struct ew_poll *poll, struct ew_poll_process *process);

enum ew_poll_look {
    EW_POLL_READ = 0,
    EW_POLL_GONE,
    EW_POLL_OTHER,      /* the pid belongs to another process now */
    EW_POLL_UNREADABLE, /* there, but its stat could not be read or understood */
};

/* Reads everything there is to know; cpu_ns is its CPU clock if cpu_known. *ret_stat is what stat
 * said; on OTHER it is that of the other process. */
enum ew_poll_look ew_poll_process_read(struct ew_poll *poll, struct ew_poll_process *process,
                                       bool cpu_known, uint64_t cpu_ns,
                                       struct ew_proc_stat *ret_stat);
enum ew_poll_look ew_poll_read_stat(struct ew_poll *poll, uint32_t pid, uint32_t tid, bool keep,
                                    int *fd, struct ew_proc_stat *ret_stat);

/* ----------------------------------------------------------------- threads */

/* Reads those that ran and adds to process->summed. Nothing is told yet: facts about a process come
 * before those about its threads. */
void ew_poll_threads_read(struct ew_poll *poll, struct ew_poll_process *process);
/* Tells what the last read found, also of those that are over, and forgets the latter. */
void ew_poll_threads_emit(struct ew_poll *poll, struct ew_poll_process *process);
void ew_poll_threads_rest(struct ew_poll *poll, struct ew_poll_process *process);
void ew_poll_threads_free(struct ew_poll *poll, struct ew_poll_process *process);

/* -------------------------------------------------------------------- tell */

/* stat may be NULL: gone before it could be read. An EXIT with it has the exit status. */
void ew_poll_emit_process(struct ew_poll *poll, const struct ew_poll_process *process,
                          const struct ew_proc_stat *stat, enum ew_process_kind kind);
#endif
