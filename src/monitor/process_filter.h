/* SPDX-License-Identifier: MIT */
/*
 * Who is left out: stands between a source and the samplers and lets through what is not of a
 * process that was excluded, whatever the source. A process is judged when it is told of and again
 * when it executes a program or changes its name; its descendants are judged for themselves.
 */
#ifndef EW_MONITOR_PROCESS_FILTER_H
#define EW_MONITOR_PROCESS_FILTER_H

#include "ledger/index.h"
#include "ledger/pool.h"
#include "model/facts.h"
#include "monitor/describe.h"

enum { EW_GATE_PROCESSES_MAX = 1 << 18 }; /* 6 MB */

struct ew_process_filter_rules {
    const uint32_t *pids;
    const char *const *names;
    const uint32_t *uids;
    const char *const *cgroups;
    uint32_t pid_count, name_count, uid_count, cgroup_count;
    /* Where users have no numbers (Windows) sources cannot choose by them: everybody else is out.
     */
    const uint32_t *only_uids;
    uint32_t only_uid_count;
    bool system;  /* the system's own processes too */
    bool windows; /* those are by name and number */
};

struct ew_process_filter {
    struct ew_process_filter_rules rules; /* lists are the caller's */
    struct ew_describe *describe;
    void *ctx;
    /* A process that was let through is left out from now on. */
    void (*forget)(void *ctx, uint32_t pid);
    /* May be NULL: the source may save itself the trouble with this process, or must not. */
    void (*shut)(void *ctx, uint32_t pid, uint64_t start_ns, bool shut);

    struct ew_facts next;
    struct ew_pool processes; /* of struct ew_gate_process */
    struct ew_index by_pid;
    uint64_t lost; /* processes that found no room: they are left out */
};

/* Whether anything is to be left out at all. */
bool ew_process_filter_needed(const struct ew_process_filter_rules *rules);
/* *facts: where facts go; changed to lead through the gate. Pointers of the gate are set before. */
void ew_process_filter_open(struct ew_process_filter *filter, struct ew_facts *facts);
void ew_process_filter_close(struct ew_process_filter *filter);

#endif
