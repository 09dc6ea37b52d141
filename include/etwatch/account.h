/* SPDX-License-Identifier: MIT */
/*
 * Accounts: everything that a monitor delivered, added up into one report. It is the same report,
 * to the last digit, that etwatch_trace_report gives for a Perfetto trace of the run.
 *
 * Add everything in the order of delivery. Memory grows with the processes and threads of the run,
 * up to 131072 of them; samples that find no room count as lost.
 *
 * The rules of etwatch.h hold. One thread at a time.
 */
#ifndef ETWATCH_ACCOUNT_H
#define ETWATCH_ACCOUNT_H

#include <etwatch/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

struct etwatch_account;

struct etwatch_account_options {
    uint32_t size;
    uint32_t flags; /* 0 or ETWATCH_REPORT_THREADS: THREAD samples get rows of their own */
};

/* options may be NULL. */
ETWATCH_API int etwatch_account_new(const struct etwatch_account_options *options,
                                    struct etwatch_account **ret_account);
/* NULL is fine. */
ETWATCH_API void etwatch_account_free(struct etwatch_account *account);

ETWATCH_API int etwatch_account_add_meta(struct etwatch_account *account,
                                         const struct etwatch_meta *meta);
ETWATCH_API int etwatch_account_add_sample(struct etwatch_account *account,
                                           const struct etwatch_sample *sample);
ETWATCH_API int etwatch_account_add_event(struct etwatch_account *account,
                                          const struct etwatch_event *event);
ETWATCH_API int etwatch_account_add_loss(struct etwatch_account *account,
                                         const struct etwatch_loss *loss);
ETWATCH_API int etwatch_account_add_alert(struct etwatch_account *account,
                                          const struct etwatch_alert *alert);
/* The statistics at the end of the run. */
ETWATCH_API int etwatch_account_add_stats(struct etwatch_account *account,
                                          const struct etwatch_stats *stats);

/* Events, losses and times so far; what concerns a file is 0. */
ETWATCH_API int etwatch_account_stats(const struct etwatch_account *account,
                                      struct etwatch_trace_stats *ret_stats);
/* Calls on_system, on_class and on_process as etwatch_trace_report does. Of the flags only
 * ETWATCH_REPORT_CMDLINE is used. */
ETWATCH_API int etwatch_account_report(struct etwatch_account *account,
                                       const struct etwatch_report_callbacks *callbacks);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_ACCOUNT_H */
