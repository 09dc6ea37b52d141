/* SPDX-License-Identifier: MIT */
/* Scheduler events under the names that the kernel's tracepoints have: of Perfetto traces and of
 * live consumers. Pure functions. */
#include "recording/trace.h"

#include <string.h>

#include "model/perfetto.h"

static void put_number(struct etwatch_field **at, const char *name, uint64_t value)
{
    *(*at)++ = (struct etwatch_field){.name = name, .type = ETWATCH_FIELD_U64, .v.u = value};
}

static void put_signed(struct etwatch_field **at, const char *name, int64_t value)
{
    *(*at)++ = (struct etwatch_field){.name = name, .type = ETWATCH_FIELD_I64, .v.i = value};
}

static void put_text(struct etwatch_field **at, const char *name, const char *text)
{
    struct etwatch_field field = {.name = name, .type = ETWATCH_FIELD_NULL};
    if (text != NULL) {
        field.type = ETWATCH_FIELD_TEXT;
        field.len = (uint32_t)strlen(text);
        field.v.text = text;
    }
    *(*at)++ = field;
}

void ew_recording_sched_describe(const struct etwatch_event *event,
                                 struct etwatch_trace_event *ret_event)
{
    static const char *const names[] = {
        "",
        "sched_switch",
        "sched_waking",
        "task_newtask",
        "sched_process_exec",
        "sched_process_exit",
    };
    ret_event->provider = "sched";
    ret_event->event = event->kind < sizeof names / sizeof names[0] ? names[event->kind] : "";
    ret_event->cpu = event->cpu;
    ret_event->pid = event->pid;
    ret_event->tid = event->tid;
    ret_event->flags |=
        ETWATCH_TRACE_HAS_PID | ETWATCH_TRACE_HAS_TID | ETWATCH_TRACE_DECODED | ETWATCH_TRACE_NAMED;
    if ((event->kind == ETWATCH_EVENT_FORK && event->next_pid == event->next_tid) ||
        (event->kind == ETWATCH_EVENT_EXIT && event->pid == event->tid))
        ret_event->flags |= ETWATCH_TRACE_FIRST_THREAD;
    ret_event->process = event->name;
}

uint32_t ew_recording_sched_fields(const struct etwatch_event *e, struct etwatch_field *fields)
{
    struct etwatch_field *at = fields;
    switch (e->kind) {
    case ETWATCH_EVENT_SWITCH:
        put_text(&at, "prev_comm", e->name);
        put_number(&at, "prev_pid", e->tid);
        put_signed(&at, "prev_prio", (int64_t)e->priority + EW_PF_PRIO_BASE);
        put_number(&at, "prev_state", e->state);
        put_text(&at, "next_comm", e->next_name);
        put_number(&at, "next_pid", e->next_tid);
        put_signed(&at, "next_prio", (int64_t)e->next_priority + EW_PF_PRIO_BASE);
        break;
    case ETWATCH_EVENT_WAKEUP:
        put_text(&at, "comm", e->name);
        put_number(&at, "pid", e->tid);
        put_signed(&at, "prio", (int64_t)e->priority + EW_PF_PRIO_BASE);
        put_number(&at, "waker_pid", e->next_tid);
        if (e->target_cpu != UINT32_MAX)
            put_number(&at, "target_cpu", e->target_cpu);
        break;
    case ETWATCH_EVENT_FORK:
        put_number(&at, "child_pid", e->next_pid);
        put_number(&at, "child_tid", e->next_tid);
        put_text(&at, "child_comm", e->next_name);
        break;
    default:
        put_text(&at, "comm", e->name);
        put_number(&at, "pid", e->tid);
        break;
    }
    return (uint32_t)(at - fields);
}
