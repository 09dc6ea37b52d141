/* SPDX-License-Identifier: MIT */
/*
 * Converts context switches, readied threads, thread starts and thread ends into struct
 * etwatch_event. Keeps no state: the tally knows which thread runs on a CPU and which process a
 * thread belongs to.
 *
 * The state of the outgoing thread uses the task states of Linux, so that a consumer of the stream
 * can ignore the system it came from. Windows has no exec: a new process is a thread started in it.
 */
#include "source/record_accounting.h"

/* KTHREAD_STATE. */
enum { TERMINATED = 4, WAITING = 5 };
/* KWAIT_REASON: waiting for a page, or for memory to put one in. */
enum { FREE_PAGE = 1, PAGE_IN = 2, WR_FREE_PAGE = 8, WR_PAGE_IN = 9 };
/* Flags of ReadyThread. */
enum { READY_BY_DPC = 1 };
/* Linux task states. */
enum { READY = 0, SLEEPING = 1, BLOCKED = 2, DEAD = 0x80 };

static uint32_t state_of(uint8_t state, uint8_t reason)
{
    if (state == TERMINATED)
        return DEAD;
    if (state != WAITING)
        return READY;
    bool page =
        reason == FREE_PAGE || reason == PAGE_IN || reason == WR_FREE_PAGE || reason == WR_PAGE_IN;
    return page ? BLOCKED : SLEEPING;
}

/* Name of a KWAIT_REASON; NULL: unknown, newer than this table. */
static const char *reason_name(uint8_t reason)
{
    static const char *const names[] = {
        "Executive",
        "FreePage",
        "PageIn",
        "PoolAllocation",
        "DelayExecution",
        "Suspended",
        "UserRequest",
        "WrExecutive",
        "WrFreePage",
        "WrPageIn",
        "WrPoolAllocation",
        "WrDelayExecution",
        "WrSuspended",
        "WrUserRequest",
        "WrEventPair",
        "WrQueue",
        "WrLpcReceive",
        "WrLpcReply",
        "WrVirtualMemory",
        "WrPageOut",
        "WrRendezvous",
        "WrKeyedEvent",
        "WrTerminated",
        "WrProcessInSwap",
        "WrCpuRateControl",
        "WrCalloutStack",
        "WrKernel",
        "WrResource",
        "WrPushLock",
        "WrMutex",
        "WrQuantumEnd",
        "WrDispatchInt",
        "WrPreempted",
        "WrYieldExecution",
        "WrFastMutex",
        "WrGuardedMutex",
        "WrRundown",
        "WrAlertByThreadId",
        "WrDeferredPreempt",
        "WrPhysicalFault",
        "WrIoRing",
        "WrMdlCache",
        "WrRcu",
    };
    return reason < sizeof names / sizeof names[0] ? names[reason] : NULL;
}

/* Fills in the missing one of *pid and *tid and returns the process name. An unknown thread
 * keeps its tid; its pid is 0. */
static const char *resolve(const struct ew_tally *tally, uint16_t cpu, uint32_t *pid, uint32_t *tid)
{
    const char *name = ew_tally_identify(tally, cpu, pid, tid);
    if (*tid == EW_NO_ID)
        *tid = 0;
    if (*pid == EW_NO_ID)
        *pid = 0;
    return name;
}

static void begin(struct etwatch_event *out, const struct ew_event *event, uint32_t kind)
{
    *out = (struct etwatch_event){
        .size = sizeof *out,
        .kind = kind,
        .t_ns = event->t_ns,
        .cpu = event->cpu,
        .pid = EW_NO_ID,
        .tid = event->tid,
        .next_pid = EW_NO_ID,
        .next_tid = EW_NO_ID,
        .target_cpu = UINT32_MAX,
    };
}

static void fill_switch(struct etwatch_event *out, const struct ew_event *event)
{
    begin(out, event, ETWATCH_EVENT_SWITCH);
    out->next_tid = event->u.cswitch.new_tid;
    out->state = state_of(event->u.cswitch.old_state, event->u.cswitch.old_wait_reason);
    if (event->u.cswitch.old_state == WAITING && event->tid != 0)
        out->wait_reason = reason_name(event->u.cswitch.old_wait_reason);
    out->priority = event->u.cswitch.old_priority;
    out->next_priority = event->u.cswitch.new_priority;
    /* The idle thread never sleeps: it is always ready. */
    if (event->tid == 0)
        out->state = READY;
}

/* The creator is in the record header; without it, it is the thread that runs on the CPU. */
static void fill_start(struct etwatch_event *out, const struct ew_record *record,
                       const struct ew_event *event)
{
    begin(out, event, ETWATCH_EVENT_FORK);
    out->pid = record->pid;
    out->tid = record->tid;
    out->next_pid = event->pid;
    out->next_tid = event->tid;
}

static bool fill(struct etwatch_event *out, bool after, const struct ew_record *record,
                 const struct ew_event *event)
{
    if (event->from_manifest || after != (event->kind == EW_EVENT_THREAD_START))
        return false;
    switch (event->kind) {
    case EW_EVENT_SWITCH:
        fill_switch(out, event);
        return true;
    case EW_EVENT_READY: /* made ready by the thread that runs on this CPU */
        begin(out, event, ETWATCH_EVENT_WAKEUP);
        return true;
    case EW_EVENT_THREAD_START:
        fill_start(out, record, event);
        return true;
    case EW_EVENT_THREAD_END:
        begin(out, event, ETWATCH_EVENT_EXIT);
        out->pid = event->pid;
        out->exit_code = -1;
        return true;
    default:
        return false;
    }
}

/* A timer or a device makes a thread ready in a DPC: the thread that it interrupted is no cause. */
static void add_causes(struct etwatch_event *out, const struct ew_event *event)
{
    if (out->kind == ETWATCH_EVENT_SWITCH)
        out->in_fault = out->state == BLOCKED ? 2 : 1;
    if (out->kind == ETWATCH_EVENT_WAKEUP && (event->u.ready.flags & READY_BY_DPC) != 0) {
        out->next_pid = out->next_tid = 0;
        out->next_name = NULL;
    }
}

void ew_sched_events_emit(const struct ew_tally *tally, const struct ew_sched_events *options,
                          bool after, const struct ew_record *record, const struct ew_event *event,
                          const struct ew_facts *facts)
{
    struct etwatch_event out;
    if (facts->event == NULL || !fill(&out, after, record, event))
        return;
    out.name = resolve(tally, event->cpu, &out.pid, &out.tid);
    if (out.kind == ETWATCH_EVENT_EXIT) {
        out.next_pid = out.next_tid = 0;
    } else {
        const char *name = resolve(tally, event->cpu, &out.next_pid, &out.next_tid);
        out.next_name = out.kind == ETWATCH_EVENT_WAKEUP ? NULL : name;
    }
    if (options->causes)
        add_causes(&out, event);
    bool next = out.kind == ETWATCH_EVENT_SWITCH || out.kind == ETWATCH_EVENT_FORK;
    if (options->all || ew_tally_is_selected(tally, out.pid) ||
        (next && ew_tally_is_selected(tally, out.next_pid)))
        facts->event(facts->ctx, &out);
}
