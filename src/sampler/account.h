/* SPDX-License-Identifier: MIT */
/*
 * The inside of etwatch/account.h: adds up a run, in the order of delivery, into one report. The
 * same code adds up a live run and a recording of it, so both give the same report.
 *
 * Samples of a process are summed; what its EXIT says replaces the sums if the process began within
 * the run. Memory grows with the processes and threads that were there, up to a stated maximum;
 * what found no room is counted as lost.
 */
#ifndef EW_SAMPLER_ACCOUNT_H
#define EW_SAMPLER_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include <etwatch/account.h>

enum {
    EW_ACCOUNT_ROWS_MAX = 1 << 17,
    EW_ACCOUNT_CPUS_MAX = 1024,
    EW_ACCOUNT_KINDS_MAX = 512,
};

struct ew_account_options {
    bool threads;     /* THREAD samples get rows of their own */
    bool part;        /* not the whole run is told: an EXIT's totals are of more than that */
    uint64_t from_ns; /* Unix; 0: the beginning. Only for how long a process was there. */
    uint64_t until_ns;
};

/* NULL: out of memory. */
struct etwatch_account *ew_account_new(const struct ew_account_options *options);

void ew_account_meta(struct etwatch_account *account, const struct etwatch_meta *meta);
void ew_account_sample(struct etwatch_account *account, const struct etwatch_sample *sample);
void ew_account_event(struct etwatch_account *account, const struct etwatch_event *event);
void ew_account_loss(struct etwatch_account *account, const struct etwatch_loss *loss);
void ew_account_stats(struct etwatch_account *account, const struct etwatch_stats *stats);
/* Something that is none of these, at t_ns (0: no time): counted by what it is called. */
void ew_account_other(struct etwatch_account *account, const char *provider, const char *event,
                      uint64_t t_ns, bool decoded);
/* The run was added up by somebody who knew more of it: a process or one of the threads that follow
 * it, and the machine. If the whole run is told, these are the report. */
void ew_account_total(struct etwatch_account *account, const struct etwatch_sample *total,
                      uint64_t estimated);
void ew_account_system(struct etwatch_account *account, const struct etwatch_trace_system *system);
/* There are no samples in this recording: CPU time comes from switches. */
void ew_account_by_switches(struct etwatch_account *account);

/* Events, times and losses go into *ret_stats, which keeps what else it has. */
void ew_account_sum(const struct etwatch_account *account, struct etwatch_trace_stats *ret_stats,
                    struct etwatch_trace_system *ret_system);
/* When the run ended, Unix; 0: nobody said. */
uint64_t ew_account_end_ns(const struct etwatch_account *account);

struct ew_account_visitor {
    void *ctx;
    int (*on_class)(void *ctx, const struct etwatch_trace_class *klass);
    int (*on_process)(void *ctx, const struct etwatch_sample *process, uint64_t estimated);
    /* May be NULL: all. Threads go with their process. */
    bool (*wants)(void *ctx, const struct etwatch_sample *process);
    bool cmdline;
};

/* 0, ETWATCH_ENOMEM, or what a function returned that was not 0. */
int ew_account_visit_classes(struct etwatch_account *account,
                             const struct ew_account_visitor *teller);
int ew_account_visit_processes(struct etwatch_account *account,
                               const struct ew_account_visitor *teller);

/* ----------------------------------------------------------------------- account_rows */

/* The rows of an account: one for each process and thread of a run. */

struct ew_account_row {
    struct etwatch_sample sum; /* its strings are the row's own */
    uint32_t order;            /* as it came */
    uint32_t owner;            /* order of its process; its own if it is one */
    bool started;              /* within the run */
    bool exited;
};

struct ew_account_rows {
    struct ew_account_row *rows;
    uint32_t count, size;
    uint32_t *index; /* hash of (pid, start, tid) to row + 1 */
    uint32_t index_mask;
};

/* Finds or makes one; NULL: no room. */
struct ew_account_row *ew_account_row(struct ew_account_rows *rows, uint32_t pid, uint64_t start_ns,
                                      uint32_t tid);
void ew_account_rows_done(struct ew_account_rows *rows);
/* Counters are added, gauges and words replaced. */
void ew_account_row_add(struct ew_account_row *row, const struct etwatch_sample *sample);
/* The end of a process; totals: its counters replace the sums. */
void ew_account_row_end(struct ew_account_row *row, const struct etwatch_sample *exit, bool totals);
/* The strings of a sample: copies of its own instead of somebody else's, and their end. */
void ew_account_strings_copy(struct etwatch_sample *sample);
void ew_account_strings_done(const struct etwatch_sample *sample);
/* Words that are new replace those that are there. */
void ew_account_row_strings(struct ew_account_row *row, const struct etwatch_sample *sample);

#endif
