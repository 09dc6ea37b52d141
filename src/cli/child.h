/* SPDX-License-Identifier: MIT */
/* The command of `run`: made first, held before exec until the monitor watches it, then let go. */
#ifndef EW_CLI_CHILD_H
#define EW_CLI_CHILD_H

#include <stdbool.h>
#include <stdint.h>

struct ew_child {
    uint32_t pid;
    /* Linux. */
    int go_fd;     /* one byte here lets it exec; closing it ends it */
    int failed_fd; /* the errno of a failed exec comes from here */
    /* Windows. */
    void *process, *thread, *job, *port; /* handles; the job tells of its processes at the port */
    int failed;                          /* why it could not be made, as an errno */
    bool ended;
    bool reaped;
    int status; /* exit status as a shell tells it; once ended */
    int signal; /* the signal that ended it, or 0 */
};

/* Makes the process, which does nothing yet. 0 or the errno. */
int ew_child_hold(struct ew_child *child, char **command);
/* Lets it begin. 0, or why the command cannot be run: then it has ended and been reaped. */
int ew_child_release(struct ew_child *child);
/* True once it has ended. It stays a zombie, so that its last figures can still be read. */
bool ew_child_ended(struct ew_child *child);
/* The next process that the command started, itself or through others, or 0. Where a system does
 * not tell: always 0, and the tree is known by parents alone. */
uint32_t ew_child_take_started(struct ew_child *child);
/* False while the system knows of a process that the command left behind. */
bool ew_child_tree_ended(struct ew_child *child);
/* Removes the zombie. If the child was never released, ends it. */
void ew_child_reap(struct ew_child *child);
void ew_child_signal(const struct ew_child *child, int number);
/* Sleeps until it has ended or a signal for us came. */
void ew_child_wait(struct ew_child *child);

#endif
