/* SPDX-License-Identifier: MIT */
/*
 * Who had a process or thread id at which time. A recording is read once to learn, then asked: so a
 * name that comes only at the end (the rundown) is known from the beginning.
 */
#ifndef EW_RECORDING_PROCESS_HISTORY_H
#define EW_RECORDING_PROCESS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/event.h"
#include "model/selection.h"

struct ew_life {
    uint64_t from_ns; /* 0: was there when the recording began */
    uint64_t to_ns;   /* UINT64_MAX: still there, as far as was told */
    uint32_t id;
    uint32_t older; /* the life of this id before: its place + 1, or 0 */
    uint32_t pid;   /* of a thread: its process; of a process: its parent, or EW_NO_ID */
    uint32_t name;  /* of a process: place in the text + 1, or 0 */
    bool selection; /* of a process: was asked for */
};

struct ew_process_history_table {
    struct ew_life *history;
    uint32_t count, size;
    uint32_t *newest; /* hash of ids: place of the newest life + 1, or 0 */
    uint32_t mask, used;
};

struct ew_process_history {
    struct ew_process_history_table processes, threads;
    char *text;
    uint32_t text_len, text_size;
    uint64_t refused; /* lives beyond the maximum, or without memory: they have no name */
};

void ew_process_history_init(struct ew_process_history *history);
void ew_process_history_done(struct ew_process_history *history);

/* In order of time. */
void ew_process_history_learn(struct ew_process_history *history, const struct ew_event *event);

/* The place of that life in the table of processes, for whoever keeps something beside it, or
 * UINT32_MAX. */
uint32_t ew_process_history_find(const struct ew_process_history *history, uint32_t pid,
                                 uint64_t t_ns);
/* The name of the process that had the id then, or last before then; NULL: unknown. */
const char *ew_process_history_name(const struct ew_process_history *history, uint32_t pid,
                                    uint64_t t_ns);
/* The process of the thread that had the id then, or last before then. */
bool ew_process_history_process_of(const struct ew_process_history *history, uint32_t tid,
                                   uint64_t t_ns, uint32_t *ret_pid);

/* Marks the processes that were asked for, and their descendants. After learning. */
void ew_process_history_select(struct ew_process_history *history,
                               const struct ew_selection *selection);
/* Whether the process that had the id then was asked for. */
bool ew_process_history_selected(const struct ew_process_history *history,
                                 const struct ew_selection *selection, uint32_t pid, uint64_t t_ns);

/* Text of a payload as UTF-8, without the folder in front of a file name. Terminated. */
size_t ew_event_text_copy(const struct ew_event_text *text, char *buffer, size_t size);

#endif
