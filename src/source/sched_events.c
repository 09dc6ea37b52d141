/* SPDX-License-Identifier: MIT */
/*
 * Switches, ready threads, starts and ends of threads, in the words of etwatch_event. Owns nothing:
 * who runs where and whose a thread is the tally knows.
 *
 * Why a thread left its CPU is told as Linux tells it, so that whoever reads the stream need not
 * know where it comes from. Windows has no exec: a new process is a thread started into it.
 */
#include "source/record_accounting.h"

/* KTHREAD_STATE. */
enum { TERMINATED = 4, WAITING = 5 };
/* KWAIT_REASON: for a page, or for room for one. */
enum { FREE_PAGE = 1, PAGE_IN = 2, WR_FREE_PAGE = 8, WR_PAGE_IN = 9 };
/* Task states of Linux. */
enum { READY = 0, SLEEPS = 1, BLOCKED = 2, OVER = 0x80 };

static uint32_t state_of(uint8_t state, uint8_t reason)
{
    if (state == TERMINATED)
        return OVER;
    if (state != WAITING)
        return READY;
    bool page =
        reason == FREE_PAGE || reason == PAGE_IN || reason == WR_FREE_PAGE || reason == WR_PAGE_IN;
    return page ? BLOCKED : SLEEPS;
}

/* KWAIT_REASON by name; NULL: one that came later. */
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

/* Who it is. An id that nobody knows is told as it is, its process as 0. */
static const char *name_of(const struct ew_tally *tally, uint16_t cpu, uint32_t *pid, uint32_t *tid)
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
    /* Somebody always can run: it is not put to sleep but has nothing to do. */
    if (event->tid == 0)
        out->state = READY;
}

/* Whoever made it is in the header, or runs on the CPU. */
static void fill_start(struct etwatch_event *out, const struct ew_record *record,
                       const struct ew_event *event)
{
    begin(out, event, ETWATCH_EVENT_FORK);
    out->pid = record->pid;
    out->tid = record->tid;
    out->next_pid = event->pid;
    out->next_tid = event->tid;
}

static bool fill(struct etwatch_event *out, bool over, const struct ew_record *record,
                 const struct ew_event *event)
{
    if (event->from_manifest || over != (event->kind == EW_EVENT_THREAD_START))
        return false;
    switch (event->kind) {
    case EW_EVENT_SWITCH:
        fill_switch(out, event);
        return true;
    case EW_EVENT_READY: /* whoever runs on the CPU made it ready */
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

void ew_sched_events_emit(const struct ew_tally *tally, bool all, bool over,
                          const struct ew_record *record, const struct ew_event *event,
                          const struct ew_facts *facts)
{
    struct etwatch_event out;
    if (facts->event == NULL || !fill(&out, over, record, event))
        return;
    out.name = name_of(tally, event->cpu, &out.pid, &out.tid);
    if (out.kind == ETWATCH_EVENT_EXIT) {
        out.next_pid = out.next_tid = 0;
    } else {
        const char *name = name_of(tally, event->cpu, &out.next_pid, &out.next_tid);
        out.next_name = out.kind == ETWATCH_EVENT_WAKEUP ? NULL : name;
    }
    bool next = out.kind == ETWATCH_EVENT_SWITCH || out.kind == ETWATCH_EVENT_FORK;
    if (all || ew_tally_is_selected(tally, out.pid) ||
        (next && ew_tally_is_selected(tally, out.next_pid)))
        facts->event(facts->ctx, &out);
}
