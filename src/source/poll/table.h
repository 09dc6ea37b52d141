/* SPDX-License-Identifier: MIT */
/*
 * Every process that is there, by pid: those that are watched, with what was read of them, and
 * those that are not, so that they need not be looked at again.
 */
#ifndef EW_SOURCE_POLL_TABLE_H
#define EW_SOURCE_POLL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct ew_poll_process;

enum ew_poll_state {
    EW_POLL_IGNORED = 0, /* no rule matches, so far */
    EW_POLL_WATCHED,
    EW_POLL_ENDED,   /* a zombie whose end was told */
    EW_POLL_REMOVED, /* the user does not want it any more */
    EW_POLL_BEYOND,  /* to be watched, but there is no room; told as lost */
};

struct ew_poll_entry {
    uint32_t pid, ppid;
    enum ew_poll_state state;
    bool tree; /* its children are watched as well */
    bool kernel_thread;
    uint64_t round;    /* the last one in which it was seen in the directory */
    uint64_t start_ns; /* with pid: the identity */
    uint64_t gate_ns;  /* its CPU clock when it was last read: unchanged means it did not run */
    uint64_t found_ns; /* raw time of the round that found it */
    struct ew_poll_process *process; /* WATCHED only; owned */
};

struct ew_poll_table {
    struct ew_poll_entry *entries; /* dense; removal moves the last one */
    uint32_t count, capacity, max;
    uint32_t *slots; /* index into entries + 1, by hash of the pid; 0 = empty */
    uint32_t slot_mask;
};

void ew_poll_table_init(struct ew_poll_table *table, uint32_t max);
/* Frees the table, not the processes in it. */
void ew_poll_table_done(struct ew_poll_table *table);
/* NULL if it is not there. Valid until the next add or remove. */
struct ew_poll_entry *ew_poll_table_find(struct ew_poll_table *table, uint32_t pid);
/* The pid must not be there. NULL if the table is full or memory is out. */
struct ew_poll_entry *ew_poll_table_add(struct ew_poll_table *table, uint32_t pid);
/* The last entry takes the place of this one. */
void ew_poll_table_remove(struct ew_poll_table *table, struct ew_poll_entry *entry);

#endif
