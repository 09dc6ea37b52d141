/* SPDX-License-Identifier: MIT */
/*
 * Adds the context switches, wake-ups, hard faults and disk requests of a recording to an
 * etwatch_waits. Owns nothing: one walk with the public calls of a trace, after a report that gives
 * the names of threads. The kernel events of Windows and the sched events of a Perfetto trace are
 * understood.
 */
#include <string.h>

#include "base/error.h"
#include "sampler/waits.h"

/* KWAIT_REASON: waits for a page, or for a free one. */
enum { FREE_PAGE = 1, PAGE_IN = 2, WR_FREE_PAGE = 8, WR_PAGE_IN = 9 };
/* KTHREAD_STATE. */
enum { TERMINATED = 4, WAITING = 5 };
enum { CPUS_MAX = 2048 };

static bool is_switch(const struct etwatch_trace_event *event)
{
    return strcmp(event->event, "Thread/CSwitch") == 0;
}

static bool is_ready(const struct etwatch_trace_event *event)
{
    return strcmp(event->event, "Dispatcher/ReadyThread") == 0;
}

static bool is_fault(const struct etwatch_trace_event *event)
{
    return strcmp(event->event, "Memory/HardFault") == 0;
}

static bool is_disk(const struct etwatch_trace_event *event)
{
    return strcmp(event->event, "DiskIO/Read") == 0 || strcmp(event->event, "DiskIO/Write") == 0;
}

/* Of a Perfetto trace of any system. */
static bool is_sched(const struct etwatch_trace_event *event)
{
    return strcmp(event->provider, "sched") == 0;
}

static bool is_loss(const struct etwatch_trace_event *event)
{
    return strcmp(event->provider, "etwatch") == 0 && strcmp(event->event, "loss") == 0;
}

static const struct etwatch_field *field_of(const struct etwatch_trace_event *event,
                                            const char *name)
{
    for (uint32_t i = 0; i < event->field_count; i++)
        if (event->fields[i].name != NULL && strcmp(event->fields[i].name, name) == 0)
            return &event->fields[i];
    return NULL;
}

static uint64_t number_of(const struct etwatch_trace_event *event, const char *name)
{
    const struct etwatch_field *field = field_of(event, name);
    return field == NULL ? 0 : field->v.u;
}

static enum ew_wait_reason reason_of(uint64_t state, uint64_t wait_reason)
{
    if (state == TERMINATED)
        return EW_WAIT_OVER;
    if (state != WAITING)
        return EW_WAIT_READY;
    bool page = wait_reason == FREE_PAGE || wait_reason == PAGE_IN || wait_reason == WR_FREE_PAGE ||
                wait_reason == WR_PAGE_IN;
    return page ? EW_WAIT_BLOCKED : EW_WAIT_SLEEP;
}

struct walk {
    struct etwatch_waits *waits;
    /* The running thread of each CPU: on Windows it is the one that readies another. 0: idle. */
    uint32_t tids[CPUS_MAX];
    uint64_t first_raw, first_ns; /* the first event, by both clocks */
    bool any;
    bool etw;           /* live ETW: switches and samples share one stream */
    uint64_t frequency; /* of the performance counter of Windows; 0: unknown */
};

/* A hard fault states its start by the clock of the recording. */
static void add_fault(const struct walk *walk, const struct etwatch_trace_event *event)
{
    uint64_t began_raw = number_of(event, "InitialTime");
    double passed_ns = (double)(event->t_rel_ns - walk->first_ns);
    if (began_raw < walk->first_raw || began_raw >= event->t_raw)
        return;
    double share = (double)(event->t_raw - began_raw) / (double)(event->t_raw - walk->first_raw);
    ew_waits_fault(walk->waits, (uint32_t)number_of(event, "TThreadId"),
                   (uint64_t)(share * passed_ns + 0.5));
}

/* The response time of a disk is measured with the performance counter, whatever clock the
 * recording has. The event names the issuing thread since Windows 8; before, it is the thread of
 * the event. */
static void add_disk(const struct walk *walk, const struct etwatch_trace_event *event)
{
    const struct etwatch_field *issuer = field_of(event, "IssuingThreadId");
    uint64_t ticks = number_of(event, "HighResResponseTime");
    bool known = issuer != NULL || (event->flags & ETWATCH_TRACE_HAS_TID) != 0;
    if (walk->frequency == 0 || !known)
        return;
    ew_waits_know_disks(walk->waits);
    ew_waits_disk(walk->waits, issuer != NULL ? (uint32_t)issuer->v.u : event->tid,
                  (uint64_t)((double)ticks * 1e9 / (double)walk->frequency + 0.5));
}

/* The event belongs to the outgoing thread, or to the one that is woken; the other thread is known
 * by its id. */
static void add_sched(const struct walk *walk, const struct etwatch_trace_event *event)
{
    struct etwatch_event e = {
        .size = sizeof e,
        .t_ns = event->t_rel_ns,
        .pid = event->pid,
        .tid = event->tid,
        .next_pid = UINT32_MAX,
    };
    /* A name from the report is better than that of the process. */
    const struct ew_waits_thread *known = ew_waits_find(walk->waits, event->tid);
    if (known == NULL || known->named_ns == 0)
        e.name = event->process;
    else
        e.pid = UINT32_MAX;
    if (strcmp(event->event, "sched_switch") == 0) {
        e.kind = ETWATCH_EVENT_SWITCH;
        e.state = (uint32_t)number_of(event, "prev_state");
        e.next_tid = (uint32_t)number_of(event, "next_pid");
    } else if (strcmp(event->event, "sched_waking") == 0) {
        e.kind = ETWATCH_EVENT_WAKEUP;
        e.next_tid = (uint32_t)number_of(event, "waker_pid");
    }
    (void)etwatch_waits_add(walk->waits, &e);
}

static void add_event(struct walk *walk, const struct etwatch_trace_event *event)
{
    struct etwatch_waits *waits = walk->waits;
    uint32_t cpu = event->cpu % CPUS_MAX;
    if (is_sched(event)) {
        add_sched(walk, event);
    } else if (is_loss(event)) {
        if (number_of(event, "stage") == ETWATCH_LOSS_STREAM || walk->etw)
            ew_waits_gap(waits);
    } else if (is_switch(event)) {
        uint64_t state = number_of(event, "OldThreadState") & 0xff;
        uint64_t reason = number_of(event, "OldThreadWaitReason") & 0xff;
        walk->tids[cpu] = (uint32_t)number_of(event, "NewThreadId");
        ew_waits_switch(waits, event->t_rel_ns, (uint32_t)number_of(event, "OldThreadId"),
                        reason_of(state, reason), walk->tids[cpu]);
    } else if (is_fault(event)) {
        ew_waits_know_faults(waits);
        add_fault(walk, event);
    } else if (is_disk(event)) {
        add_disk(walk, event);
    } else {
        ew_waits_wake(waits, event->t_rel_ns, (uint32_t)number_of(event, "TThreadId"),
                      walk->tids[cpu]);
    }
}

static int on_process(void *ctx, const struct etwatch_sample *sample,
                      const struct etwatch_metric_set *estimated)
{
    (void)estimated;
    if (sample->type == ETWATCH_TYPE_THREAD) {
        const char *name = sample->thread_name != NULL ? sample->thread_name : sample->name;
        ew_waits_owner(ctx, sample->pid, sample->tid, name, sample->t_ns);
    }
    return 0;
}

static int read_names(struct etwatch_waits *waits, struct etwatch_trace *trace,
                      struct etwatch_error_info *reterr)
{
    struct etwatch_report_callbacks callbacks = {
        .size = sizeof callbacks,
        .flags = ETWATCH_REPORT_THREADS,
        .on_process = on_process,
        .ctx = waits,
    };
    return etwatch_trace_report(trace, &callbacks, NULL, reterr);
}

static int read_events(struct walk *walk, struct etwatch_trace *trace,
                       struct etwatch_error_info *reterr)
{
    struct etwatch_trace_event event = {.size = sizeof event};
    int rc = etwatch_trace_rewind(trace);
    while (rc == 0 && (rc = etwatch_trace_next(trace, &event, reterr)) > 0) {
        rc = 0;
        if (!walk->any) {
            walk->first_raw = event.t_raw;
            walk->first_ns = event.t_rel_ns;
            walk->any = true;
        }
        ew_waits_time(walk->waits, event.t_rel_ns);
        bool sched = is_switch(&event) || is_ready(&event) || is_sched(&event);
        if (!sched && !is_fault(&event) && !is_disk(&event) && !is_loss(&event))
            continue;
        rc = etwatch_trace_fields(trace, &event);
        if (rc == 0)
            add_event(walk, &event);
    }
    return rc < 0 ? rc : 0;
}

int etwatch_waits_read(struct etwatch_waits *waits, struct etwatch_trace *trace,
                       struct etwatch_error_info *reterr)
{
    struct walk walk = {.waits = waits};
    struct etwatch_trace_file file = {.size = sizeof file};
    struct ew_error err = {0};
    int rc = waits == NULL || trace == NULL ? ETWATCH_EINVAL : etwatch_trace_file(trace, 0, &file);
    if (rc < 0) {
        ew_error_out(reterr, &err, rc);
        return rc;
    }
    walk.etw = file.source == ETWATCH_SOURCE_ETW;
    walk.frequency = file.clock_frequency;
    rc = read_names(waits, trace, reterr);
    return rc == 0 ? read_events(&walk, trace, reterr) : rc;
}
