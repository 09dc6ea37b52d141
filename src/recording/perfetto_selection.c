/* SPDX-License-Identifier: MIT */
/*
 * Determines which processes of a Perfetto trace are selected. An event has the pid of its process
 * and the name of its thread; the selection needs process names and parents, which are only known
 * from the whole trace. So the trace is read once for that, before the walk. A pid that was used
 * twice stands for both processes.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "recording/perfetto_trace.h"

enum { PROCESSES_MAX = 1 << 20 };

enum { INCLUDED = 1, EXCLUDED = 2 };

static int by_pid(const void *a, const void *b)
{
    const struct ew_perfetto_trace_process *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static int by_parent(const void *a, const void *b)
{
    const struct ew_perfetto_trace_process *x = a, *y = b;
    return (x->ppid > y->ppid) - (x->ppid < y->ppid);
}

/* Index of the first entry with this parent in a list sorted by parent. */
static uint32_t first_child(const struct ew_perfetto_trace_process *list, uint32_t count,
                            uint32_t ppid)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (list[middle].ppid < ppid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct ew_perfetto_trace_process *find(const struct ew_perfetto_trace *trace, uint32_t pid)
{
    struct ew_perfetto_trace_process key = {.pid = pid};
    return trace->process_count == 0 ? NULL
                                     : bsearch(&key, trace->processes, trace->process_count,
                                               sizeof *trace->processes, by_pid);
}

/* ------------------------------------------------------------------- learning */

struct learning {
    struct ew_perfetto_trace *trace;
    const struct ew_selection *selection;
    int error;
};

/* Entries of the same pid are merged at the end. */
static void note(struct learning *learning, uint32_t pid, uint32_t ppid, uint32_t flags)
{
    struct ew_perfetto_trace *trace = learning->trace;
    struct ew_perfetto_trace_process *last =
        trace->process_count == 0 ? NULL : &trace->processes[trace->process_count - 1];
    if (last != NULL && last->pid == pid && last->ppid == ppid) {
        last->flags |= flags;
        return;
    }
    if (trace->process_count == trace->process_size) {
        uint32_t size = trace->process_size == 0 ? 256 : trace->process_size * 2;
        struct ew_perfetto_trace_process *larger =
            size > PROCESSES_MAX ? NULL : ew_realloc_array(trace->processes, size, sizeof *larger);
        if (larger == NULL) {
            learning->error = size > PROCESSES_MAX ? ETWATCH_ELIMIT : ETWATCH_ENOMEM;
            return;
        }
        trace->processes = larger;
        trace->process_size = size;
    }
    trace->processes[trace->process_count++] =
        (struct ew_perfetto_trace_process){.pid = pid, .ppid = ppid, .flags = flags};
}

static uint32_t match_flags(const struct learning *learning, uint32_t pid, const char *name)
{
    return (ew_selection_includes(learning->selection, pid, name) ? (uint32_t)INCLUDED : 0) |
           (ew_selection_excludes(learning->selection, pid, name) ? (uint32_t)EXCLUDED : 0);
}

static int on_sample(void *ctx, const struct etwatch_sample *sample)
{
    struct learning *learning = ctx;
    bool parent = (sample->flags & ETWATCH_SAMPLE_HAS_PPID) != 0;
    if (sample->type == ETWATCH_TYPE_START || sample->type == ETWATCH_TYPE_EXIT)
        note(learning, sample->pid, parent ? sample->ppid : UINT32_MAX,
             match_flags(learning, sample->pid, sample->name));
    return learning->error;
}

static int on_event(void *ctx, const struct etwatch_event *event)
{
    struct learning *learning = ctx;
    if (event->kind == ETWATCH_EVENT_FORK && event->next_pid != event->pid)
        note(learning, event->next_pid, event->pid, 0);
    if (event->kind == ETWATCH_EVENT_EXEC)
        note(learning, event->pid, UINT32_MAX, match_flags(learning, event->pid, event->name));
    return learning->error;
}

/* Descendants of an included process are included too; exclusion applies to one process only. */
static int inherit(struct ew_perfetto_trace *trace)
{
    uint32_t count = trace->process_count, waiting = 0;
    /* Entries sorted by parent, so that each process finds its children at once. */
    struct ew_perfetto_trace_process *children = ew_calloc(count, sizeof *children);
    uint32_t *queue = ew_calloc(count, sizeof *queue); /* pids that became included */
    if (children == NULL || queue == NULL) {
        ew_free(children);
        ew_free(queue);
        return ETWATCH_ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        children[i] = trace->processes[i];
        if (find(trace, trace->processes[i].pid) == &trace->processes[i] &&
            (trace->processes[i].flags & INCLUDED) != 0)
            queue[waiting++] = trace->processes[i].pid;
    }
    qsort(children, count, sizeof *children, by_parent);
    for (uint32_t next = 0; next < waiting; next++) {
        for (uint32_t i = first_child(children, count, queue[next]);
             i < count && children[i].ppid == queue[next]; i++) {
            struct ew_perfetto_trace_process *child = find(trace, children[i].pid);
            if ((child->flags & INCLUDED) != 0)
                continue;
            child->flags |= INCLUDED;
            queue[waiting++] = child->pid;
        }
    }
    ew_free(children);
    ew_free(queue);
    return 0;
}

/* Merges the flags of all entries of a pid into the one that find returns. */
static int merge_entries(struct ew_perfetto_trace *trace)
{
    if (trace->process_count == 0)
        return 0;
    qsort(trace->processes, trace->process_count, sizeof *trace->processes, by_pid);
    for (uint32_t i = 0; i < trace->process_count; i++) {
        struct ew_perfetto_trace_process *first = find(trace, trace->processes[i].pid);
        first->flags |= trace->processes[i].flags;
    }
    return inherit(trace);
}

int ew_perfetto_trace_learn(struct ew_perfetto_trace *trace, const struct ew_selection *selection)
{
    struct learning learning = {.trace = trace, .selection = selection};
    struct ew_pftrace_visitor visitor = {.ctx = &learning, .sample = on_sample, .event = on_event};
    int rc = 0;
    trace->process_count = 0;
    trace->learned = true;
    if (ew_selection_is_all(selection))
        return 0;
    for (size_t i = 0; i < trace->file_count && rc == 0; i++) {
        struct ew_pftrace *reader = trace->files[i].reader;
        ew_pftrace_rewind(reader);
        do
            rc = ew_pftrace_next(reader, &visitor);
        while (rc > 0);
        ew_pftrace_rewind(reader);
    }
    int merged = merge_entries(trace);
    return rc < 0 ? rc : merged;
}

bool ew_perfetto_trace_selected(const struct ew_perfetto_trace *trace,
                                const struct ew_selection *selection, uint32_t pid,
                                const char *name)
{
    if (ew_selection_is_all(selection))
        return true;
    const struct ew_perfetto_trace_process *process = find(trace, pid);
    if (process == NULL)
        return ew_selection_matches(selection, pid, name);
    return (ew_selection_includes_all(selection) || (process->flags & INCLUDED) != 0) &&
           (process->flags & EXCLUDED) == 0;
}
