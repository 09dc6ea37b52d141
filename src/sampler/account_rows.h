/* SPDX-License-Identifier: MIT */
/* The rows of an account: one for each process and thread of a run. */
#ifndef EW_SAMPLER_ACCOUNT_ROWS_H
#define EW_SAMPLER_ACCOUNT_ROWS_H

#include "sampler/account.h"

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
