/* SPDX-License-Identifier: MIT */
/*
 * Reads bundles of Windows events. Switches and readied threads become the same events as on Linux,
 * so that consumers need not know the origin of a trace: a wait is a sleep, a wait for a page an
 * uninterruptible sleep, and a thread that could continue was preempted. Other events are only
 * counted by name.
 */
#include "source/pftrace/pftrace.h"

/* KTHREAD_STATE, and KWAIT_REASON: waiting for a page, or for memory to put one in. */
enum { TERMINATED = 4, WAITING = 5 };
enum { FREE_PAGE = 1, PAGE_IN = 2, WR_FREE_PAGE = 8, WR_PAGE_IN = 9 };
enum { STATE_SLEEP = 1, STATE_BLOCKED = 2 };

struct etw_event {
    uint64_t t_ns;
    uint32_t kind, cpu, tid;
    struct ew_bytes body;
};

static void read_etw(struct ew_bytes *bytes, struct etw_event *ret)
{
    struct ew_proto_field field;
    while (ew_proto_next(bytes, &field)) {
        if (field.wire == EW_PROTO_LEN) {
            ret->kind = field.number;
            ret->body = field.body;
        } else if (field.number == EW_PF_ETW_TIME) {
            ret->t_ns = field.u;
        } else if (field.number == EW_PF_ETW_CPU) {
            ret->cpu = (uint32_t)field.u;
        } else if (field.number == EW_PF_ETW_TID) {
            ret->tid = (uint32_t)field.u;
        }
    }
}

static uint32_t state_of(int64_t state, uint64_t reason)
{
    if (state == TERMINATED)
        return EW_PF_KERNEL_DEAD;
    if (state != WAITING)
        return 0;
    bool page =
        reason == FREE_PAGE || reason == PAGE_IN || reason == WR_FREE_PAGE || reason == WR_PAGE_IN;
    return page ? STATE_BLOCKED : STATE_SLEEP;
}

/* The idle threads, one per CPU, have tid 0 and belong to pid 0. */
static void name_thread(const struct ew_pftrace *trace, uint32_t tid, uint32_t *ret_pid,
                        const char **ret_name)
{
    const struct ew_pft_thread *thread = ew_pft_thread(trace, tid);
    *ret_pid = thread != NULL ? thread->pid : tid == 0 ? 0 : UINT32_MAX;
    *ret_name = thread != NULL && thread->name[0] != '\0' ? thread->name : NULL;
}

static void read_switch(struct ew_bytes *body, struct etwatch_event *e)
{
    struct ew_proto_field field;
    uint64_t reason = 0;
    int64_t state = 0;
    e->kind = ETWATCH_EVENT_SWITCH;
    while (ew_proto_next(body, &field)) {
        switch (field.number) {
        case EW_PF_CSWITCH_NEW_TID:
            e->next_tid = (uint32_t)field.u;
            break;
        case EW_PF_CSWITCH_OLD_TID:
            e->tid = (uint32_t)field.u;
            break;
        case EW_PF_CSWITCH_NEW_PRIORITY:
            e->next_priority = (int32_t)ew_proto_unzigzag(field.u);
            break;
        case EW_PF_CSWITCH_OLD_PRIORITY:
            e->priority = (int32_t)ew_proto_unzigzag(field.u);
            break;
        case EW_PF_CSWITCH_REASON:
        case EW_PF_CSWITCH_REASON_INT:
            reason = field.u;
            break;
        case EW_PF_CSWITCH_STATE:
            state = (int64_t)field.u;
            break;
        case EW_PF_CSWITCH_STATE_INT:
            state = ew_proto_unzigzag(field.u);
            break;
        default:
            break;
        }
    }
    e->state = state_of(state, reason);
}

/* The waker is the thread that runs on the CPU. */
static void read_ready(struct ew_bytes *body, uint32_t waker, struct etwatch_event *e)
{
    struct ew_proto_field field;
    e->kind = ETWATCH_EVENT_WAKEUP;
    e->next_tid = waker;
    while (ew_proto_next(body, &field))
        if (field.number == 1 && field.wire == EW_PROTO_VARINT)
            e->tid = (uint32_t)field.u;
}

static int emit_sched(struct ew_pftrace *trace, struct etw_event *found,
                      const struct ew_pftrace_visitor *visitor)
{
    struct etwatch_event event = {
        .size = sizeof event,
        .t_ns = found->t_ns + trace->unix_minus_boot_ns,
        .cpu = found->cpu,
        .target_cpu = UINT32_MAX,
    };
    if (found->kind == EW_PF_ETW_CSWITCH)
        read_switch(&found->body, &event);
    else
        read_ready(&found->body, found->tid, &event);
    if (!ew_bytes_ok(&found->body)) {
        ew_pft_damage(trace, found->body.base, found->body.size, "a Windows event is malformed");
        return 0;
    }
    name_thread(trace, event.tid, &event.pid, &event.name);
    name_thread(trace, event.next_tid, &event.next_pid, &event.next_name);
    return visitor->event != NULL ? visitor->event(visitor->ctx, &event) : 0;
}

static int emit_other(struct ew_pftrace *trace, const struct etw_event *found,
                      const struct ew_pftrace_visitor *visitor)
{
    static const char *const names[] = {
        "other",         "other",      "CSwitch",         "ReadyThread",
        "other",         "other",      "MemInfo",         "FileIoCreate",
        "FileIoDirEnum", "FileIoInfo", "FileIoReadWrite", "FileIoSimpleOp",
        "FileIoOpEnd",   "StackWalk",  "FileIoPath",      "DiskIo",
    };
    const char *name = names[found->kind < sizeof names / sizeof names[0] ? found->kind : 0];
    if (visitor->other == NULL)
        return 0;
    return visitor->other(visitor->ctx, "etw", name, found->t_ns + trace->unix_minus_boot_ns, true);
}

int ew_pft_etw_emit(struct ew_pftrace *trace, const struct ew_pftrace_visitor *visitor)
{
    struct ew_proto_field field;
    int rc = 0;
    for (; rc == 0 && trace->steps < EW_PFT_STEPS; trace->steps++) {
        if (!ew_proto_next(&trace->etw, &field)) {
            ew_bytes_init(&trace->etw, NULL, 0);
            break;
        }
        if (field.number == EW_PF_BUNDLE_CPU && field.wire == EW_PROTO_VARINT)
            trace->etw_cpu = (uint32_t)field.u;
        if (field.number != EW_PF_BUNDLE_EVENT || field.wire != EW_PROTO_LEN)
            continue;
        struct etw_event found = {.cpu = trace->etw_cpu};
        read_etw(&field.body, &found);
        bool sched = found.kind == EW_PF_ETW_CSWITCH || found.kind == EW_PF_ETW_READY;
        rc = sched && found.cpu < EW_PFT_CPUS_MAX ? emit_sched(trace, &found, visitor)
                                                  : emit_other(trace, &found, visitor);
    }
    return rc;
}
