/* SPDX-License-Identifier: MIT */
/*
 * Sums up a run: everything that was delivered, in order, becomes one report. The same code
 * processes a live monitor and a recording of it, so both yield the same report.
 *
 * Samples of a process are summed; the totals of its EXIT replace the sums if the process started
 * during the run. Memory grows with the number of processes and threads, up to a fixed maximum;
 * anything beyond is counted as lost.
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
    bool part;        /* only a part of the run: totals of an EXIT cover more than that */
    uint64_t from_ns; /* Unix; 0: the start. Only limits the time a process existed. */
    uint64_t until_ns;
};

/* NULL: out of memory. */
struct etwatch_account *ew_account_new(const struct ew_account_options *options);

void ew_account_meta(struct etwatch_account *account, const struct etwatch_meta *meta);
void ew_account_sample(struct etwatch_account *account, const struct etwatch_sample *sample);
void ew_account_event(struct etwatch_account *account, const struct etwatch_event *event);
void ew_account_loss(struct etwatch_account *account, const struct etwatch_loss *loss);
void ew_account_stats(struct etwatch_account *account, const struct etwatch_stats *stats);
/* Any other event, at t_ns (0: no time): counted by name. */
void ew_account_other(struct etwatch_account *account, const char *provider, const char *event,
                      uint64_t t_ns, bool decoded);
/* Totals computed by a source with more information: a process or one of the threads that follow
 * it, and the machine. If the whole run is reported, these are the report. */
void ew_account_total(struct etwatch_account *account, const struct etwatch_sample *total,
                      const struct etwatch_metric_set *estimated);
void ew_account_system(struct etwatch_account *account, const struct etwatch_trace_system *system);
/* The recording has no samples: CPU time is computed from switches. */
void ew_account_by_switches(struct etwatch_account *account);

/* Sets events, times and losses in *ret_stats; its other fields are kept. */
void ew_account_sum(const struct etwatch_account *account, struct etwatch_trace_stats *ret_stats,
                    struct etwatch_trace_system *ret_system);
/* End of the run, Unix; 0: unknown. */
uint64_t ew_account_end_ns(const struct etwatch_account *account);

struct ew_account_visitor {
    void *ctx;
    int (*on_class)(void *ctx, const struct etwatch_trace_class *klass);
    int (*on_process)(void *ctx, const struct etwatch_sample *process,
                      const struct etwatch_metric_set *estimated);
    /* May be NULL: all. Threads follow their process. */
    bool (*wants)(void *ctx, const struct etwatch_sample *process);
    bool cmdline;
};

/* 0, ETWATCH_ENOMEM, or the first nonzero result of a callback. */
int ew_account_visit_classes(struct etwatch_account *account,
                             const struct ew_account_visitor *visitor);
int ew_account_visit_processes(struct etwatch_account *account,
                               const struct ew_account_visitor *visitor);

/* ----------------------------------------------------------------------- account_rows */

/* The rows of an account: one per process and thread of a run. */

struct ew_account_row {
    struct etwatch_sample sum; /* owns its strings */
    uint32_t order;            /* order of arrival */
    uint32_t owner;            /* order of its process; of a process its own */
    bool started;              /* within the run */
    bool exited;
};

struct ew_account_rows {
    struct ew_account_row *rows;
    uint32_t count, size;
    uint32_t *index; /* hash of (pid, start, tid) to row + 1 */
    uint32_t index_mask;
};

/* Finds or creates a row; NULL: no room. */
struct ew_account_row *ew_account_row(struct ew_account_rows *rows, uint32_t pid, uint64_t start_ns,
                                      uint32_t tid);
void ew_account_rows_done(struct ew_account_rows *rows);
/* Adds counters, replaces gauges and strings. */
void ew_account_row_add(struct ew_account_row *row, const struct etwatch_sample *sample);
/* End of a process; totals: its counters replace the sums. */
void ew_account_row_end(struct ew_account_row *row, const struct etwatch_sample *exit, bool totals);
/* Replaces the strings of a sample by copies that it owns; and frees them. */
void ew_account_strings_copy(struct etwatch_sample *sample);
void ew_account_strings_done(const struct etwatch_sample *sample);
/* Known strings of the sample replace those of the row. */
void ew_account_row_strings(struct ew_account_row *row, const struct etwatch_sample *sample);

#endif
