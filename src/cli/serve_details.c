/* SPDX-License-Identifier: MIT */
/*
 * What the process for details of serve sends: the scheduling of the requested processes, live or
 * from a recording, and the stacks of a process of a recording. Each request runs in a process of
 * its own, which gives up its rights as soon as its source is open.
 */
#include <stdio.h>
#include <string.h>

#include <etwatch/export.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "os/os.h"

enum { FRAMES_MAX = 4 << 20, THREADS_MAX = 65536, STACKS_PART = 1 << 18 };

struct details {
    const struct ew_options *options;
    const struct ew_serve_request *request;
    struct ew_buf frames;
    struct ew_serve_event events[EW_SERVE_EVENTS_MAX];
    size_t count;
    uint64_t lost;
    /* Of a recording of Windows: the threads of the requested process and their names. */
    struct ew_serve_event *threads; /* by tid: pid and name */
    uint32_t thread_count;
};

static void flush_events(struct details *details)
{
    if (details->count > 0)
        ew_wire_sched(&details->frames, details->events, details->count);
    details->count = 0;
    (void)ew_buf_flush(&details->frames);
}

static void put(struct details *details, const struct ew_serve_event *event)
{
    details->events[details->count++] = *event;
    if (details->count == EW_SERVE_EVENTS_MAX)
        flush_events(details);
}

static void copy_name(char to[16], const char *name)
{
    (void)snprintf(to, 16, "%.15s", name != NULL ? name : "");
}

static void put_event(struct details *details, const struct etwatch_event *event)
{
    struct ew_serve_event sent = {
        .t_ns = event->t_ns,
        .pid = event->pid,
        .tid = event->tid,
        .next_pid = event->next_pid,
        .next_tid = event->next_tid,
        .ready_ns = event->kind == ETWATCH_EVENT_SWITCH ? event->ready_ns : UINT64_MAX,
        .kind = event->kind,
        .cpu = event->cpu,
        .state = event->state,
    };
    copy_name(sent.name, event->name);
    copy_name(sent.next_name, event->next_name);
    put(details, &sent);
}

static void end_request(struct details *details, const char *text)
{
    struct ew_serve_detail_end end;
    memset(&end, 0, sizeof end);
    end.request = *details->request;
    end.lost = details->lost;
    (void)snprintf(end.text, sizeof end.text, "%s", text);
    flush_events(details);
    ew_wire_detail_end(&details->frames, &end);
    (void)ew_buf_flush(&details->frames);
}

static void end_failed(struct details *details, const struct etwatch_error_info *error, int rc)
{
    end_request(details, error->message[0] != '\0' ? error->message : etwatch_strerror(rc));
}

/* ----------------------------------------------------------------------------- live */

static void on_events(void *ctx, const struct etwatch_events *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        put_event(ctx, etwatch_event_at(batch, i));
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    ((struct details *)ctx)->lost += loss->count;
}

static void watch_live(struct details *details)
{
    const struct ew_serve_request *request = details->request;
    const char *root = details->options->proc_root != NULL ? details->options->proc_root : "/proc";
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_monitor *monitor = NULL;
    struct etwatch_callbacks callbacks = {
        .size = sizeof callbacks, .ctx = details, .on_events = on_events, .on_loss = on_loss};
    uint32_t pids[EW_SERVE_PIDS_MAX];
    struct etwatch_config config = {
        .size = sizeof config,
        .flags = ETWATCH_CONFIG_EVENTS | ETWATCH_CONFIG_NO_FALLBACK | ETWATCH_CONFIG_NO_BUDGET,
        .source = ETWATCH_SOURCE_EBPF,
        .hz = 1,
        .latency_ms = 200,
        .proc_root = details->options->proc_root,
        .pids = pids,
    };
    for (uint32_t i = 0; i < request->pid_count; i++)
        if (ew_os_process_exists(root, request->pids[i]))
            pids[config.pid_count++] = request->pids[i];
    if (config.pid_count == 0) {
        end_request(details, "the process has exited");
        return;
    }
    int rc = etwatch_monitor_new(&config, &callbacks, &monitor, &error);
    if (rc == 0)
        rc = etwatch_monitor_open(monitor, &error);
    if (rc < 0) {
        end_failed(details, &error, rc);
        etwatch_monitor_free(monitor);
        return;
    }
    ew_os_drop_rights();
    (void)ew_os_confine_live();
    while (rc >= 0 && details->frames.error == 0) {
        rc = etwatch_monitor_poll(monitor, 250, &error);
        flush_events(details);
    }
    if (rc < 0)
        end_failed(details, &error, rc);
    etwatch_monitor_free(monitor);
}

/* ----------------------------------------------------------------------- recordings */

/* Opens the part of the recording that is requested; the range of a trace is relative. */
static int open_part(const struct details *details, bool selected, struct etwatch_trace **ret_trace,
                     struct etwatch_error_info *error)
{
    const struct ew_options *options = details->options;
    const struct ew_serve_request *request = details->request;
    const char *const *paths = (const char *const *)options->files.words;
    struct etwatch_trace_options wanted = {.size = sizeof wanted, .workers = 1};
    struct etwatch_trace_file file = {.size = sizeof file};
    int rc = etwatch_trace_open(paths, options->files.count, NULL, ret_trace, error);
    if (rc == 0)
        rc = etwatch_trace_file(*ret_trace, 0, &file);
    if (rc < 0)
        return rc;
    etwatch_trace_free(*ret_trace);
    *ret_trace = NULL;
    wanted.from_ns = request->from_ns > file.start_ns ? request->from_ns - file.start_ns : 0;
    wanted.until_ns = request->to_ns > file.start_ns ? request->to_ns - file.start_ns : 0;
    wanted.pids = selected ? request->pids : NULL;
    wanted.pid_count = selected ? request->pid_count : 0;
    return etwatch_trace_open(paths, options->files.count, &wanted, ret_trace, error);
}

static uint32_t hash_of(uint32_t tid)
{
    return tid * 2654435761u >> 16; /* below THREADS_MAX */
}

static const struct ew_serve_event *thread_of(const struct details *details, uint32_t tid)
{
    for (uint32_t at = hash_of(tid); details->threads[at].tid != 0; at = (at + 1) % THREADS_MAX)
        if (details->threads[at].tid == tid)
            return &details->threads[at];
    return NULL;
}

static int on_thread(void *ctx, const struct etwatch_sample *sample,
                     const struct etwatch_metric_set *estimated)
{
    struct details *details = ctx;
    (void)estimated;
    if (sample->type != ETWATCH_TYPE_THREAD || sample->tid == 0 ||
        details->thread_count >= THREADS_MAX / 2 || thread_of(details, sample->tid) != NULL)
        return 0;
    uint32_t at = hash_of(sample->tid);
    while (details->threads[at].tid != 0)
        at = (at + 1) % THREADS_MAX;
    details->threads[at].tid = sample->tid;
    details->threads[at].pid = sample->pid;
    copy_name(details->threads[at].name,
              sample->thread_name != NULL ? sample->thread_name : sample->name);
    details->thread_count++;
    return 0;
}

static uint64_t number_of(const struct etwatch_trace_event *event, const char *name)
{
    for (uint32_t i = 0; i < event->field_count; i++)
        if (event->fields[i].name != NULL && strcmp(event->fields[i].name, name) == 0)
            return event->fields[i].v.u;
    return 0;
}

static void set_thread(const struct details *details, uint32_t tid, uint32_t *pid, char name[16])
{
    const struct ew_serve_event *thread = tid != 0 ? thread_of(details, tid) : NULL;
    *pid = thread != NULL ? thread->pid : 0;
    copy_name(name, thread != NULL ? thread->name : NULL);
}

/* A context switch or a wake-up of Windows, if it is of the requested process. */
static void put_windows(struct details *details, const struct etwatch_trace_event *event,
                        bool is_switch)
{
    enum { TERMINATED = 4, WAITING = 5 }; /* KTHREAD_STATE */
    struct ew_serve_event sent = {.t_ns = event->t_ns, .cpu = event->cpu, .ready_ns = UINT64_MAX};
    uint64_t state = number_of(event, "OldThreadState") & 0xff;
    sent.kind = is_switch ? ETWATCH_EVENT_SWITCH : ETWATCH_EVENT_WAKEUP;
    sent.tid = (uint32_t)number_of(event, is_switch ? "OldThreadId" : "TThreadId");
    sent.next_tid = is_switch ? (uint32_t)number_of(event, "NewThreadId") : 0;
    sent.state = state == WAITING || state == TERMINATED ? 1 : 0;
    set_thread(details, sent.tid, &sent.pid, sent.name);
    set_thread(details, sent.next_tid, &sent.next_pid, sent.next_name);
    if (sent.pid == details->request->pids[0] ||
        (is_switch && sent.next_pid == details->request->pids[0]))
        put(details, &sent);
}

static int read_events(struct details *details, struct etwatch_trace *trace,
                       struct etwatch_error_info *error)
{
    struct etwatch_trace_event event = {.size = sizeof event};
    int rc;
    while (details->frames.error == 0 && (rc = etwatch_trace_next(trace, &event, error)) > 0) {
        const struct etwatch_event *sched = etwatch_trace_sched_event(trace);
        bool is_switch = strcmp(event.event, "Thread/CSwitch") == 0;
        bool is_ready = strcmp(event.event, "Dispatcher/ReadyThread") == 0;
        if (sched != NULL)
            put_event(details, sched);
        else if ((is_switch || is_ready) && etwatch_trace_fields(trace, &event) == 0)
            put_windows(details, &event, is_switch);
    }
    return details->frames.error != 0 ? details->frames.error : rc;
}

static void read_sched(struct details *details)
{
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_trace_file file = {.size = sizeof file};
    struct etwatch_trace *trace = NULL;
    struct etwatch_report_callbacks report = {.size = sizeof report,
                                              .flags = ETWATCH_REPORT_THREADS,
                                              .on_process = on_thread,
                                              .ctx = details};
    int rc = open_part(details, false, &trace, &error);
    if (rc == 0)
        rc = etwatch_trace_file(trace, 0, &file);
    details->threads = ew_calloc(THREADS_MAX, sizeof *details->threads);
    if (rc == 0 && details->threads == NULL)
        rc = ETWATCH_ENOMEM;
    if (rc == 0 && file.format == ETWATCH_TRACE_ETL)
        rc = etwatch_trace_report(trace, &report, NULL, &error);
    if (rc == 0 && file.format == ETWATCH_TRACE_ETL)
        rc = etwatch_trace_rewind(trace);
    if (rc == 0)
        rc = read_events(details, trace, &error);
    etwatch_trace_free(trace);
    ew_free(details->threads);
    if (rc < 0)
        end_failed(details, &error, rc);
    else
        end_request(details, "");
}

static int write_stacks(void *ctx, const void *bytes, size_t len)
{
    struct details *details = ctx;
    const char *at = bytes;
    while (len > 0) {
        size_t part = len < STACKS_PART ? len : STACKS_PART;
        ew_wire_stacks(&details->frames, at, part);
        (void)ew_buf_flush(&details->frames);
        at += part;
        len -= part;
    }
    return details->frames.error;
}

static void read_stacks(struct details *details)
{
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_export_counts counts = {.size = sizeof counts};
    struct etwatch_trace *trace = NULL;
    int rc = open_part(details, true, &trace, &error);
    if (rc == 0)
        rc = etwatch_trace_export(trace, ETWATCH_EXPORT_FOLDED, 0, NULL, write_stacks, details,
                                  &counts, NULL, &error);
    etwatch_trace_free(trace);
    if (rc < 0)
        end_failed(details, &error, rc);
    else
        end_request(details,
                    counts.rows == 0
                        ? "this part of the recording has no profile samples of the process"
                        : "");
}

/* Without the message of a refused filter: the start of the server had it. */
static bool confine(const struct ew_options *options)
{
    const char *const *paths = (const char *const *)options->files.words;
    if (ew_os_file_keep(paths, options->files.count) < 0)
        return false;
    (void)ew_os_confine_reader();
    return true;
}

void ew_cli_serve_details(void *ctx, const struct ew_serve_request *request,
                          struct ew_server_link *to)
{
    struct details *details = ew_calloc(1, sizeof *details);
    if (details == NULL)
        return;
    details->options = ctx;
    details->request = request;
    ew_buf_init(&details->frames, FRAMES_MAX, ew_server_send, to);
    bool recorded = details->options->files.count > 0;
    if (!recorded)
        watch_live(details);
    else if (!confine(details->options))
        end_request(details, "out of memory");
    else if (request->kind == EW_SERVE_STACKS)
        read_stacks(details);
    else
        read_sched(details);
    ew_buf_done(&details->frames);
    ew_free(details);
}
