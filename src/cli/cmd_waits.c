/* SPDX-License-Identifier: MIT */
/*
 * waits: who waited for whom, of running processes (every switch and wake-up of theirs) or in a
 * recording that has both, of Windows or a Perfetto trace. The sums are kept by sampler/waits.c;
 * here events are brought to it and the result is written at the end.
 */
#include "cli/commands.h"

#include <string.h>

#include "cli/recording.h"
#include "cli/signals.h"
#include "cli/term.h"
#include "cli/waits_live.h"
#include "cli/watch_run.h"

/* KWAIT_REASON: for a page, or for room for one. */
enum { FREE_PAGE = 1, PAGE_IN = 2, WR_FREE_PAGE = 8, WR_PAGE_IN = 9 };
/* KTHREAD_STATE. */
enum { TERMINATED = 4, WAITING = 5 };
enum { CPUS_MAX = 2048 };

static int write_view(const struct ew_waits_view *view, struct ew_output *output,
                      const struct ew_options *options)
{
    return ew_waits_write(view, output, options->json, options->output_path == NULL, EW_TERM_OUT);
}

/* ------------------------------------------------------------------------- live */

struct live {
    struct ew_watch session;
    struct ew_waits_live waits;
};

static int on_sample(void *ctx, const struct etwatch_sample *sample)
{
    return ew_waits_live_sample(&((struct live *)ctx)->waits, sample);
}

static void on_events(void *ctx, const struct etwatch_event *events, size_t count)
{
    ew_waits_live_events(&((struct live *)ctx)->waits, events, count);
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct live *live = ctx;
    ew_waits_live_loss(&live->waits, loss, live->session.meta.source);
}

static int on_end(void *ctx)
{
    struct live *live = ctx;
    ew_waits_live_end(&live->waits, live->session.options);
    return write_view(&live->waits.view, &live->session.output, live->session.options);
}

static int watch_live(const struct ew_options *given)
{
    struct live live = {0};
    struct ew_options options = *given;
    options.config_flags |= ETWATCH_CONFIG_EVENTS | ETWATCH_CONFIG_NO_FALLBACK;
    int code = ew_waits_live_init(&live.waits) < 0 ? EW_EXIT_FAILED : EW_EXIT_OK;
    if (code == EW_EXIT_OK)
        code = ew_watch_prepare(&live.session, &options,
                                options.json ? (uint32_t)ETWATCH_FORMAT_JSONL : 0);
    live.session.no_samples = true;
    live.session.on_sample = on_sample;
    live.session.on_events = on_events;
    live.session.on_loss = on_loss;
    live.session.on_end = on_end;
    live.session.ctx = &live;
    ew_signals_init();
    if (code == EW_EXIT_OK)
        code = ew_watch_open(&live.session, 0);
    while (code == EW_EXIT_OK && ew_signals_ending() == 0 && ew_watch_step(&live.session, 1000))
        if (live.session.any_started && live.session.live == 0 && options.names.count == 0)
            break;
    int end_code = ew_watch_close(&live.session);
    ew_waits_live_done(&live.waits);
    return code != EW_EXIT_OK ? code : end_code;
}

/* -------------------------------------------------------------------- recordings */

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

/* Of a Perfetto trace, whatever system it is from. */
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

static enum ew_wait_reason why_of(uint64_t state, uint64_t reason)
{
    if (state == TERMINATED)
        return EW_WAIT_OVER;
    if (state != WAITING)
        return EW_WAIT_READY;
    bool page =
        reason == FREE_PAGE || reason == PAGE_IN || reason == WR_FREE_PAGE || reason == WR_PAGE_IN;
    return page ? EW_WAIT_BLOCKED : EW_WAIT_SLEEP;
}

struct running {
    /* Who runs on each CPU: what makes a thread ready is whoever runs there. 0: nobody, or an
     * interrupt while nobody ran. */
    uint32_t tids[CPUS_MAX];
    uint64_t first_raw, first_ns; /* the first event, by both clocks */
    bool any;
    bool etw;           /* everything came with the stream */
    uint64_t frequency; /* of Windows' performance counter; 0: unknown */
};

/* A hard fault says by the clock of the recording when it began. */
static void take_fault(struct ew_waits *waits, const struct running *running,
                       const struct etwatch_trace_event *event)
{
    uint64_t began_raw = number_of(event, "InitialTime");
    double passed_ns = (double)(event->t_rel_ns - running->first_ns);
    if (began_raw < running->first_raw || began_raw >= event->t_raw)
        return;
    double share = (double)(event->t_raw - began_raw) / (double)(event->t_raw - running->first_raw);
    ew_waits_fault(waits, (uint32_t)number_of(event, "TThreadId"),
                   (uint64_t)(share * passed_ns + 0.5));
}

/* The answer of a disk is measured with Windows' performance counter, whatever clock the recording
 * has. Who asked is in the event from Windows 8 on, else it is who the walk says. */
static void take_disk(struct ew_waits_view *view, const struct running *running,
                      const struct etwatch_trace_event *event)
{
    const struct etwatch_field *asked = field_of(event, "IssuingThreadId");
    uint64_t ticks = number_of(event, "HighResResponseTime");
    bool known = asked != NULL || (event->flags & ETWATCH_TRACE_HAS_TID) != 0;
    if (running->frequency == 0 || !known)
        return;
    view->disks = true;
    ew_waits_disk(view->waits, asked != NULL ? (uint32_t)asked->v.u : event->tid,
                  (uint64_t)((double)ticks * 1e9 / (double)running->frequency + 0.5));
}

/* The event is of the thread that leaves, or that is woken; the other is known by its number. */
static void take_sched(struct ew_waits *waits, const struct etwatch_trace_event *event)
{
    struct etwatch_event e = {
        .size = sizeof e,
        .t_ns = event->t_rel_ns,
        .pid = event->pid,
        .tid = event->tid,
        .next_pid = UINT32_MAX,
    };
    /* The report knows more of it, if it tells of threads. */
    const struct ew_waits_thread *known = ew_waits_find(waits, event->tid);
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
    ew_waits_event(waits, &e);
}

static void take_event(struct ew_waits_view *view, struct running *running,
                       const struct etwatch_trace_event *event)
{
    struct ew_waits *waits = view->waits;
    uint32_t cpu = event->cpu % CPUS_MAX;
    if (is_sched(event)) {
        take_sched(waits, event);
    } else if (is_loss(event)) {
        if (number_of(event, "stage") == ETWATCH_LOSS_STREAM || running->etw)
            ew_waits_gap(waits);
    } else if (is_switch(event)) {
        uint64_t state = number_of(event, "OldThreadState") & 0xff;
        uint64_t reason = number_of(event, "OldThreadWaitReason") & 0xff;
        running->tids[cpu] = (uint32_t)number_of(event, "NewThreadId");
        ew_waits_switch(waits, event->t_rel_ns, (uint32_t)number_of(event, "OldThreadId"),
                        why_of(state, reason), running->tids[cpu]);
    } else if (is_fault(event)) {
        take_fault(waits, running, event);
    } else if (is_disk(event)) {
        take_disk(view, running, event);
    } else {
        ew_waits_wake(waits, event->t_rel_ns, (uint32_t)number_of(event, "TThreadId"),
                      running->tids[cpu]);
    }
}

/* Ids of threads are used again: the last one to have one gives the name. */
static int on_process(void *ctx, const struct etwatch_sample *sample,
                      const struct etwatch_metric_set *estimated)
{
    struct ew_waits_view *view = ctx;
    (void)estimated;
    if (sample->type == ETWATCH_TYPE_THREAD) {
        const char *name = sample->thread_name != NULL ? sample->thread_name : sample->name;
        ew_waits_owner(view->waits, sample->pid, sample->tid, name, sample->t_ns);
        return 0;
    }
    return view->all ? 0 : ew_waits_view_add(view, sample->pid);
}

static int learn_threads(struct etwatch_trace *trace, struct ew_waits_view *view,
                         struct etwatch_error_info *error)
{
    struct etwatch_report_callbacks callbacks = {
        .size = sizeof callbacks,
        .flags = ETWATCH_REPORT_THREADS,
        .on_process = on_process,
        .ctx = view,
    };
    return etwatch_trace_report(trace, &callbacks, NULL, error);
}

/* Who is meant is known from a reading of theirs alone; who woke them may be anybody. */
static int learn_wanted(const struct ew_options *options, struct ew_waits_view *view,
                        struct etwatch_error_info *error)
{
    struct etwatch_trace_options wanted = ew_recording_selection(options);
    struct etwatch_trace *trace = NULL;
    if (view->all)
        return 0;
    int rc = etwatch_trace_open((const char *const *)options->files.words, options->files.count,
                                &wanted, &trace, error);
    if (rc == 0)
        rc = learn_threads(trace, view, error);
    etwatch_trace_free(trace);
    return rc;
}

static int walk(struct ew_recording *recording, struct ew_waits_view *view, uint64_t *ret_used,
                struct etwatch_error_info *error)
{
    struct etwatch_trace_event event = {.size = sizeof event};
    struct running running = {.any = false};
    struct etwatch_trace_file file = {.size = sizeof file};
    uint64_t last_ns = 0;
    int rc = etwatch_trace_file(recording->trace, 0, &file);
    running.etw = file.source == ETWATCH_SOURCE_ETW;
    running.frequency = file.clock_frequency;
    if (rc == 0)
        rc = etwatch_trace_rewind(recording->trace);
    while (rc == 0 && (rc = etwatch_trace_next(recording->trace, &event, error)) > 0) {
        last_ns = event.t_rel_ns;
        rc = 0;
        if (!running.any) {
            running.first_raw = event.t_raw;
            running.first_ns = event.t_rel_ns;
            running.any = true;
        }
        bool sched = is_switch(&event) || is_ready(&event) || is_sched(&event);
        view->faults = view->faults || is_fault(&event);
        if (!sched && !is_fault(&event) && !is_disk(&event) && !is_loss(&event))
            continue;
        rc = etwatch_trace_fields(recording->trace, &event);
        if (rc == 0)
            take_event(view, &running, &event);
        *ret_used += sched;
        if (*ret_used % 4096 == 0 && ew_signals_ending() != 0)
            return ETWATCH_ESTATE;
    }
    ew_waits_end(view->waits, last_ns);
    return rc < 0 ? rc : 0;
}

static int read_recording(const struct ew_options *given)
{
    struct ew_options options = *given;
    struct ew_recording recording;
    bool chosen = given->pid_count > 0 || given->names.count > 0 || given->exclude_pid_count > 0 ||
                  given->exclude_names.count > 0 ||
                  (given->config_flags & ETWATCH_CONFIG_NO_SYSTEM) != 0;
    struct ew_waits_view view = {.all = !chosen};
    struct etwatch_error_info error = {.size = sizeof error};
    uint64_t used = 0;
    options.pid_count = options.exclude_pid_count = 0; /* the walk is over everything */
    options.names = options.exclude_names = (struct ew_list){0};
    options.config_flags &= ~(uint32_t)ETWATCH_CONFIG_NO_SYSTEM;
    int code = ew_recording_open(&recording, &options, 0, 0);
    int rc = code == EW_EXIT_OK ? ew_waits_new(&view.waits) : 0;
    if (code == EW_EXIT_OK && rc == 0)
        rc = learn_wanted(given, &view, &error);
    /* Names of everybody, without adding to who is meant. */
    struct ew_waits_view everybody = {.waits = view.waits, .all = true};
    if (code == EW_EXIT_OK && rc == 0)
        rc = learn_threads(recording.trace, &everybody, &error);
    if (code == EW_EXIT_OK && rc == 0)
        rc = walk(&recording, &view, &used, &error);
    ew_recording_hide_progress(&recording);
    if (code == EW_EXIT_OK && rc == 0 && used == 0)
        ew_say(given, "the recording has no context switches: record CSWITCH and DISPATCHER on "
                      "Windows, with eBPF on Linux");
    if (code == EW_EXIT_OK && rc == 0)
        rc = write_view(&view, &recording.output, given);
    ew_waits_view_done(&view);
    int end_code = ew_recording_close(&recording, rc, &error);
    return code != EW_EXIT_OK ? code : end_code;
}

int ew_cmd_waits(const struct ew_options *options)
{
    return options->files.count > 0 ? read_recording(options) : watch_live(options);
}
