/* SPDX-License-Identifier: MIT */
/*
 * --spans and --onnx: receives the marks of the command, joins them with the events of the watch
 * (etwatch/span.h), and writes each span as it is explained and a report at the end.
 *
 * A span is explained when events later than its end have been delivered: events of all CPUs are
 * drained together, so those before are there as well.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include <etwatch/export.h>
#include <etwatch/trace.h>

#include "base/alloc.h"
#include "base/units.h"
#include "os/os.h"

/* Events of different CPUs may be out of order by less than this. */
static const uint64_t order_ns = 1000000;

/* GPU operations are delivered within this time of their end: two flushes of CUPTI and a wake-up.
 */
static const uint64_t gpu_ns = 1000000000;

static const size_t kept_spans_max = 262144, recorded_max = 1 << 20;

/* Operators are known when their session ends: until then the history of their time is needed. 8
 * million entries are 192 MB. */
static const uint64_t operators_history_ns = UINT64_C(3600) * 1000000000;
static const uint64_t operators_history_max = 8000000;

static const char *const cause_words[ETWATCH_CAUSE_COUNT] = {
    "work",
    "waiting for a CPU",
    "throttled by its cgroup",
    "page faults",
    "waiting for a disk",
    "waiting for another thread",
    "waiting for another process",
    "asleep (timer or network)",
    "unknown",
};

static void keep_error(struct ew_spans_view *view, int rc)
{
    if (rc < 0 && view->error == 0)
        view->error = rc;
}

/* ----------------------------------------------------------------------- feeding */

static bool takes_spans(const struct ew_spans_view *view)
{
    return view->sink != NULL &&
           (view->options->json || view->options->spans_format == ETWATCH_EXPORT_PERFETTO);
}

/* A span for the samples of py-spy, which are known at the end. */
struct ew_kept_span {
    uint64_t start_ns, end_ns;
    uint32_t pid, tid;
    char name[32], session[64];
};

static void keep_span(struct ew_spans_view *view, const struct etwatch_span *span)
{
    if (view->kept_count == view->kept_size) {
        size_t size = view->kept_size == 0 ? 256 : view->kept_size * 2;
        struct ew_kept_span *grown =
            size > kept_spans_max ? NULL : ew_realloc_array(view->kept, size, sizeof *grown);
        if (grown == NULL) {
            view->not_kept++;
            return;
        }
        view->kept = grown;
        view->kept_size = size;
    }
    struct ew_kept_span *kept = &view->kept[view->kept_count++];
    memset(kept, 0, sizeof *kept);
    kept->start_ns = span->start_ns;
    kept->end_ns = span->end_ns;
    kept->pid = span->pid;
    kept->tid = span->tid;
    (void)snprintf(kept->name, sizeof kept->name, "%s", span->name);
    if (span->session != NULL)
        (void)snprintf(kept->session, sizeof kept->session, "%s", span->session);
}

static void on_span(void *ctx, const struct etwatch_span *span)
{
    struct ew_spans_view *view = ctx;
    if (view->each != NULL)
        view->each(view->each_ctx, span);
    if (view->folded_open)
        keep_span(view, span);
    if (takes_spans(view))
        keep_error(view, etwatch_sink_span(view->sink, span));
    ew_cli_spans_tables_span(&view->tables, span);
}

static void on_operator(void *ctx, const struct etwatch_operator *op)
{
    struct ew_spans_view *view = ctx;
    ew_cli_operators_add(&view->operators, op);
    ew_cli_spans_tables_operator(&view->tables, op);
    if (takes_spans(view))
        keep_error(view, etwatch_sink_operator(view->sink, op));
}

/* From a profile: with the mark only. */
static void add_operator(void *ctx, const struct etwatch_operator *op)
{
    struct ew_spans_view *view = ctx;
    (void)etwatch_spans_add_operator(view->spans, op);
}

/* Programs that are not Python. Without probes those in Python are seen all the same. */
static void open_probes(struct ew_spans_view *view, const struct ew_options *options)
{
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_probes_options wanted = {.size = sizeof wanted,
                                            .flags = ETWATCH_PROBES_NO_PYTHON};
    if (etwatch_probes_new(&wanted, &view->probes, &error) < 0)
        ew_print_info(options, "only inferences in Python are seen: %s", error.message);
    ew_cli_spans_python_init(&view->python);
}

static int open_spans(struct ew_spans_view *view)
{
    struct etwatch_spans_options wanted = {.size = sizeof wanted, .ctx = view, .on_span = on_span};
    const struct ew_options *options = view->options;
    if (options->py_spy_path != NULL) {
        int os_error = ew_output_open(&view->folded, options->py_spy_path, options->mode);
        if (os_error != 0)
            return ew_print_write_error(options->py_spy_path, os_error);
        view->folded_open = true;
    }
    if (options->operators)
        wanted.on_operator = on_operator;
    if (options->operators || options->py_spy_path != NULL) {
        wanted.history_ns = operators_history_ns;
        wanted.history_max = operators_history_max;
    }
    int code = ew_cli_spans_tables_init(&view->tables, options);
    if (code != EW_EXIT_OK)
        return code;
    int rc = etwatch_spans_new(&wanted, &view->spans);
    if (rc < 0) {
        ew_print_error("%s", etwatch_strerror(rc));
        return EW_EXIT_FAILED;
    }
    return EW_EXIT_OK;
}

int ew_cli_spans_init(struct ew_spans_view *view, const struct ew_options *options)
{
    struct etwatch_error_info error = {.size = sizeof error};
    /* Windows has no marks, and needs none for inferences. */
    if (ew_os_is_windows() && options->onnx && !options->spans && !options->operators &&
        options->py_spy_path == NULL)
        return ew_cli_spans_init_running(view, options);
    memset(view, 0, sizeof *view);
    view->options = options;
    int rc = etwatch_receiver_new(&view->receiver, &error);
    if (rc < 0)
        return ew_print_failure(&error, rc);
    int code = open_spans(view);
    if (code != EW_EXIT_OK)
        return code;
    if (options->onnx)
        open_probes(view, options);
    code = ew_cli_spans_environment(etwatch_receiver_address(view->receiver), options->onnx);
    return code == EW_EXIT_OK && options->operators ? ew_cli_operators_folder_open(&view->folder)
                                                    : code;
}

int ew_cli_spans_init_running(struct ew_spans_view *view, const struct ew_options *options)
{
    struct etwatch_error_info error = {.size = sizeof error};
    memset(view, 0, sizeof *view);
    view->options = options;
    int rc = etwatch_probes_new(NULL, &view->probes, &error);
    return rc < 0 ? ew_print_failure(&error, rc) : open_spans(view);
}

int ew_cli_spans_init_recording(struct ew_spans_view *view, const struct ew_options *options)
{
    memset(view, 0, sizeof *view);
    view->options = options;
    return open_spans(view);
}

int ew_cli_spans_init_serve(struct ew_spans_view *view, const struct ew_options *options,
                            void (*each)(void *ctx, const struct etwatch_span *span), void *ctx)
{
    struct etwatch_error_info error = {.size = sizeof error};
    memset(view, 0, sizeof *view);
    view->options = options;
    view->each = each;
    view->each_ctx = ctx;
    int rc = options->spans ? etwatch_receiver_new(&view->receiver, &error) : 0;
    if (rc == 0 && options->onnx)
        rc = etwatch_probes_new(NULL, &view->probes, &error);
    return rc < 0 ? ew_print_failure(&error, rc) : open_spans(view);
}

void ew_cli_spans_done(struct ew_spans_view *view)
{
    etwatch_spans_free(view->spans);
    etwatch_receiver_free(view->receiver);
    etwatch_probes_free(view->probes);
    ew_cli_spans_python_done(&view->python);
    ew_cli_spans_tables_done(&view->tables);
    ew_cli_operators_folder_close(&view->folder);
    ew_cli_operators_done(&view->operators);
    ew_free(view->kept);
    ew_free(view->recorded);
    if (view->folded_open)
        (void)ew_output_close(&view->folded);
    memset(view, 0, sizeof *view);
}

void ew_cli_spans_output(struct ew_spans_view *view, struct etwatch_sink *sink,
                         struct ew_output *output)
{
    view->sink = sink;
    ew_cli_spans_tables_output(&view->tables, output);
}

int ew_cli_spans_sample(struct ew_spans_view *view, const struct etwatch_sample *sample)
{
    bool process = sample->type == ETWATCH_TYPE_START || sample->type == ETWATCH_TYPE_SAMPLE;
    /* What it maps from now on is probed without a request. */
    if (view->probes != NULL && sample->type == ETWATCH_TYPE_START &&
        (sample->flags & ETWATCH_SAMPLE_PREEXISTING) != 0)
        (void)etwatch_probes_add_process(view->probes, sample->pid);
    return process ? etwatch_spans_add_process(view->spans, sample->pid, sample->name) : 0;
}

void ew_cli_spans_events(struct ew_spans_view *view, const struct etwatch_events *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct etwatch_event *event = etwatch_event_at(batch, i);
        (void)etwatch_spans_add_event(view->spans, event);
        if (event->t_ns > view->events_ns)
            view->events_ns = event->t_ns;
        view->events++;
    }
}

void ew_cli_spans_loss(struct ew_spans_view *view, const struct etwatch_loss *loss)
{
    (void)etwatch_spans_add_loss(view->spans, loss);
}

/* ------------------------------------------------------------------------ marks */

/* An inference of a recording, until the events up to its end have been read. */
struct ew_recorded_mark {
    uint64_t start_ns, end_ns;
    uint32_t kind, flags, pid, tid;
    char session[64]; /* "": unknown */
};

static void keep_mark(void *ctx, const struct etwatch_span *span)
{
    struct ew_spans_view *view = ctx;
    if (view->recorded_count == view->recorded_size) {
        size_t size = view->recorded_size == 0 ? 256 : view->recorded_size * 2;
        struct ew_recorded_mark *grown =
            size > recorded_max ? NULL : ew_realloc_array(view->recorded, size, sizeof *grown);
        if (grown == NULL) {
            view->not_kept++;
            return;
        }
        view->recorded = grown;
        view->recorded_size = size;
    }
    struct ew_recorded_mark *mark = &view->recorded[view->recorded_count++];
    *mark = (struct ew_recorded_mark){span->start_ns, span->end_ns, span->kind, span->flags,
                                      span->pid,      span->tid,    ""};
    if (span->session != NULL)
        (void)snprintf(mark->session, sizeof mark->session, "%s", span->session);
    /* Its events are needed from the first one on. */
    keep_error(view, etwatch_spans_add_process(view->spans, span->pid, NULL));
}

int ew_cli_spans_read(struct ew_spans_view *view)
{
    const struct ew_options *options = view->options;
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_trace_options wanted = ew_cli_recording_selection(options);
    struct etwatch_trace *trace = NULL;
    wanted.until_ns = options->duration_ns;
    int rc = etwatch_trace_open((const char *const *)options->files.words, options->files.count,
                                &wanted, &trace, &error);
    if (rc == 0)
        rc = etwatch_trace_spans(trace, keep_mark, view, &error);
    etwatch_trace_free(trace);
    return rc < 0 ? ew_print_failure(&error, rc) : EW_EXIT_OK;
}

static void add_mark(void *ctx, const struct etwatch_span *span)
{
    struct ew_spans_view *view = ctx;
    view->marks++;
    (void)etwatch_spans_add(view->spans, span);
}

/* Of a program, not of a probe. */
static void add_own_mark(void *ctx, const struct etwatch_span *span)
{
    struct ew_spans_view *view = ctx;
    ew_cli_spans_python_mark(&view->python, span);
    add_mark(ctx, span);
}

static void add_recorded_marks(struct ew_spans_view *view, bool last)
{
    for (; view->recorded_at < view->recorded_count; view->recorded_at++) {
        const struct ew_recorded_mark *mark = &view->recorded[view->recorded_at];
        struct etwatch_span span = {
            .size = sizeof span,
            .kind = mark->kind,
            .flags = mark->flags,
            .pid = mark->pid,
            .tid = mark->tid,
            .end_tid = mark->tid,
            .start_ns = mark->start_ns,
            .end_ns = mark->end_ns,
            .name = mark->kind == ETWATCH_SPAN_LOAD ? "load" : "run",
            .session = mark->session[0] == '\0' ? NULL : mark->session,
        };
        if (!last && mark->end_ns > view->events_ns)
            return;
        add_mark(view, &span);
    }
}

int ew_cli_spans_step(struct ew_spans_view *view, const struct etwatch_meta *meta, bool last)
{
    int64_t unix_minus_raw_ns = (int64_t)(meta->anchor_unix_ns - meta->anchor_raw_ns);
    int rc = 0;
    if (view->receiver != NULL)
        rc = etwatch_receiver_read(view->receiver, unix_minus_raw_ns, last, add_own_mark, view);
    if (rc >= 0 && view->probes != NULL)
        rc = etwatch_probes_read(view->probes, unix_minus_raw_ns, add_mark, view);
    if (rc >= 0)
        rc = ew_cli_spans_python_read(&view->python, unix_minus_raw_ns,
                                      last ? UINT64_MAX : view->events_ns, add_mark, view);
    add_recorded_marks(view, last);
    uint64_t late_ns = order_ns + (view->with_gpu ? gpu_ns : 0);
    uint64_t until_ns = last                        ? UINT64_MAX
                        : view->events_ns > late_ns ? view->events_ns - late_ns
                                                    : 1;
    if (rc >= 0)
        rc = etwatch_spans_advance(view->spans, until_ns);
    if (rc >= 0 && last && view->options->operators) {
        rc = etwatch_receiver_operators(view->receiver, unix_minus_raw_ns, add_operator, view);
        view->operators.lost = etwatch_receiver_lost_operators(view->receiver);
    }
    keep_error(view, rc);
    keep_error(view, ew_cli_spans_tables_flush(&view->tables));
    return view->error;
}

/* ------------------------------------------------------------------------ report */

static void put_share(struct ew_buf *out, uint64_t part, uint64_t whole)
{
    (void)ew_buf_fixed(out, whole == 0 ? 0 : 100.0 * (double)part / (double)whole, 1);
    ew_buf_text(out, " %");
}

static void put_names(struct ew_buf *out, const struct etwatch_span_group *group, uint32_t kind)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; i < group->cause_count && shown < 3; i++) {
        const struct etwatch_cause *cause = &group->causes[i];
        if (cause->kind != kind || cause->ns * 20 < group->total[kind])
            continue;
        ew_buf_text(out, shown++ == 0 ? " (" : ", ");
        const char *name = kind == ETWATCH_CAUSE_CPU && cause->pid == 0 ? "the CPU was idle"
                           : cause->name[0] == '\0'                     ? "unknown"
                                                                        : cause->name;
        (void)ew_buf_screen(out, name, strlen(name), 32);
        ew_buf_char(out, ' ');
        ew_units_ns(out, cause->ns);
    }
    if (shown > 0)
        ew_buf_char(out, ')');
}

/* Causes of at least 1 %, the largest first. */
static void put_causes(struct ew_buf *out, const struct etwatch_span_group *group)
{
    uint64_t all_ns = 0;
    bool done[ETWATCH_CAUSE_COUNT] = {false};
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++)
        all_ns += group->total[i];
    for (uint32_t shown = 0;; shown++) {
        uint32_t largest = ETWATCH_CAUSE_COUNT;
        for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++)
            if (!done[i] && group->total[i] * 100 >= all_ns && group->total[i] > 0 &&
                (largest == ETWATCH_CAUSE_COUNT || group->total[i] > group->total[largest]))
                largest = i;
        if (largest == ETWATCH_CAUSE_COUNT)
            return;
        done[largest] = true;
        ew_buf_text(out, shown == 0 ? "  time: " : ", ");
        put_share(out, group->total[largest], all_ns);
        ew_buf_char(out, ' ');
        ew_buf_text(out, cause_words[largest]);
        if (largest != ETWATCH_CAUSE_WORK)
            put_names(out, group, largest);
    }
}

static void put_line(struct ew_buf *out, const char *label, uint64_t ns)
{
    ew_buf_text(out, label);
    ew_units_ns(out, ns);
}

/* Averages: the work of an inference on a GPU may end after it. */
static void put_gpu(struct ew_buf *out, const struct etwatch_span_group *group)
{
    put_line(out, "  GPU: ", group->gpu_ns / group->count);
    ew_buf_text(out, " each in ");
    (void)ew_buf_fixed(out, (double)group->gpu_kernels / (double)group->count, 1);
    put_line(out, " kernels; the thread waited for it: ", group->wait_gpu_ns / group->count);
    ew_buf_text(out, " each\n");
}

static void put_group(struct ew_buf *out, const struct etwatch_span_group *group)
{
    char why[512];
    if (group->count == 0)
        return;
    ew_buf_text(out, "\n");
    (void)ew_buf_screen(out, group->name, strlen(group->name), 64);
    if (group->session != NULL) {
        ew_buf_text(out, " of ");
        (void)ew_buf_screen(out, group->session, strlen(group->session), 64);
    }
    ew_buf_text(out, ": ");
    ew_buf_u64(out, group->count);
    ew_buf_text(out, group->count == 1 ? " time" : " times");
    if (group->count > 1 && group->last_ns > group->first_ns) {
        ew_buf_text(out, ", ");
        (void)ew_buf_fixed(
            out, (double)group->count * 1e9 / (double)(group->last_ns - group->first_ns), 1);
        ew_buf_text(out, " a second");
    }
    if (group->failed > 0) {
        ew_buf_text(out, ", ");
        ew_buf_u64(out, group->failed);
        ew_buf_text(out, " failed");
    }
    ew_buf_char(out, '\n');
    if (group->count > 1) {
        put_line(out, "  latency: p50 ", group->p50_ns);
        put_line(out, ", p95 ", group->p95_ns);
        put_line(out, ", p99 ", group->p99_ns);
        put_line(out, ", max ", group->max_ns);
        put_line(out, ", first ", group->cold_ns);
    } else {
        put_line(out, "  latency: ", group->max_ns);
    }
    ew_buf_char(out, '\n');
    put_causes(out, group);
    ew_buf_char(out, '\n');
    if (group->helpers > 0) {
        ew_buf_text(out, "  up to ");
        ew_buf_u64(out, group->helpers);
        put_line(out, " other threads worked for them: ", group->helper_cpu_ns);
        put_line(out, " on a CPU, ", group->helper_ready_ns);
        ew_buf_text(out, " waiting for one\n");
    }
    if ((group->flags & ETWATCH_SPAN_HAS_GPU) != 0)
        put_gpu(out, group);
    if (group->count > 1 && etwatch_span_group_text(group, why, sizeof why) >= 0) {
        ew_buf_text(out, "  slow: ");
        (void)ew_buf_screen(out, why, strlen(why), sizeof why); /* quotes names of processes */
        ew_buf_char(out, '\n');
    }
    if (group->incomplete > 0) {
        ew_buf_text(out, "  events are missing for ");
        ew_buf_u64(out, group->incomplete);
        ew_buf_text(out, " of them\n");
    }
}

static void put_probe_notes(struct ew_buf *out, struct etwatch_probes *probes, uint64_t no_room)
{
    struct etwatch_probes_stats stats = {.size = sizeof stats};
    if (probes == NULL || etwatch_probes_stats(probes, &stats) < 0)
        return;
    stats.lost += no_room;
    if (stats.unusable > 0) {
        ew_buf_text(out, "\ninferences in ");
        ew_buf_u64(out, stats.unusable);
        ew_buf_text(out, stats.unusable == 1 ? " library are not seen: "
                                             : " libraries are not seen; the last: ");
        (void)ew_buf_screen(out, stats.problem, strlen(stats.problem), sizeof stats.problem);
        ew_buf_char(out, '\n');
    }
    if (stats.lost > 0) {
        ew_buf_text(out, "\nlost inferences: ");
        ew_buf_u64(out, stats.lost);
        ew_buf_char(out, '\n');
    }
}

/* Two different things: no marks at all, and marks without events. */
static void put_notes(const struct ew_spans_view *view, struct ew_buf *out)
{
    uint64_t lost = etwatch_receiver_lost(view->receiver);
    put_probe_notes(out, view->probes, 0);
    put_probe_notes(out, view->python.probes, view->python.lost);
    bool recorded = view->options->files.count > 0;
    if (view->marks == 0 && recorded)
        ew_buf_text(out, "\nno inference is in the recording: it needs the events of the provider "
                         "Microsoft.ML.ONNXRuntime, level 5\n");
    else if (view->marks == 0 && view->options->command == EW_CMD_ONNX)
        ew_buf_text(out, "\nno inference was seen\n");
    else if (view->marks == 0)
        ew_buf_text(out, view->options->onnx
                             ? "\nno inference was seen: the command ran no session of ONNX "
                               "Runtime\n"
                             : "\nno span was marked: see etwatch.span (Python) and "
                               "etwatch/span.h (C)\n");
    if (view->marks > 0 && view->events == 0)
        ew_buf_text(out, recorded ? "\ncauses are unknown: the recording has no context switches\n"
                                  : "\ncauses are unknown: they need the source ebpf (see etwatch "
                                    "doctor)\n");
    if (recorded && view->not_kept > 0) {
        ew_buf_text(out, "\ninferences without room: ");
        ew_buf_u64(out, view->not_kept);
        ew_buf_char(out, '\n');
    }
    if (lost > 0) {
        ew_buf_text(out, "\nlost marks: ");
        ew_buf_u64(out, lost);
        ew_buf_char(out, '\n');
    }
    uint64_t rows = ew_cli_spans_tables_dropped(&view->tables);
    if (rows > 0) {
        ew_buf_text(out, "\nrows without room in the Arrow file, the oldest: ");
        ew_buf_u64(out, rows);
        ew_buf_char(out, '\n');
    }
    if (etwatch_spans_late_gpu_ops(view->spans) > 0) {
        ew_buf_text(out, "\nGPU operations that arrived too late to be joined: ");
        ew_buf_u64(out, etwatch_spans_late_gpu_ops(view->spans));
        ew_buf_char(out, '\n');
    }
    if (etwatch_spans_dropped(view->spans) > 0) {
        ew_buf_text(out, "\nevents and spans without room in the tables: ");
        ew_buf_u64(out, etwatch_spans_dropped(view->spans));
        ew_buf_char(out, '\n');
    }
}

/* ------------------------------------------------------------------------ py-spy */

static void write_folded(struct ew_spans_view *view, const struct ew_py_spy_table *folded)
{
    struct ew_buf out;
    ew_buf_init(&out, 0, ew_output_write, &view->folded);
    ew_py_spy_write(folded, &out);
    int rc = ew_buf_flush(&out);
    ew_buf_done(&out);
    int os_error = view->folded.os_error, close_error = ew_output_close(&view->folded);
    view->folded_open = false;
    if (rc < 0 || close_error != 0)
        (void)ew_print_write_error(view->options->py_spy_path,
                                   os_error != 0 ? os_error : close_error);
}

static void join_spans(struct ew_spans_view *view, const struct ew_py_spy *samples,
                       int64_t unix_minus_raw_ns)
{
    struct ew_py_spy_table *folded = ew_py_spy_table_new();
    for (size_t i = 0; folded != NULL && i < view->kept_count; i++) {
        const struct ew_kept_span *kept = &view->kept[i];
        struct etwatch_span span = {.size = sizeof span,
                                    .pid = kept->pid,
                                    .tid = kept->tid,
                                    .start_ns = kept->start_ns,
                                    .end_ns = kept->end_ns,
                                    .name = kept->name,
                                    .session = kept->session[0] == '\0' ? NULL : kept->session};
        ew_py_spy_join(samples, view->spans, &span, unix_minus_raw_ns, folded);
    }
    if (folded != NULL)
        write_folded(view, folded);
    ew_py_spy_table_free(folded);
}

void ew_cli_spans_py_spy(struct ew_spans_view *view, const struct etwatch_meta *meta,
                         const struct ew_cli_py_spy *spy)
{
    struct ew_py_spy samples;
    char message[512];
    size_t size = 0;
    char *text = ew_cli_py_spy_text(spy, &size);
    ew_cli_py_spy_message(spy, message, sizeof message);
    int rc = text == NULL ? ETWATCH_ENOENT : ew_py_spy_parse(&samples, text, size);
    if (text == NULL)
        ew_print_error("py-spy sampled nothing: %s",
                       message[0] == '\0' ? "it wrote nothing" : message);
    else if (rc < 0)
        ew_print_error("what py-spy wrote cannot be read: %s", etwatch_strerror(rc));
    else if (samples.start_ns == 0)
        ew_print_error(
            "py-spy saw no mark of the time: the command ran Python for less than its first "
            "samples took");
    else
        join_spans(view, &samples, (int64_t)(meta->anchor_unix_ns - meta->anchor_raw_ns));
    if (rc == 0 && samples.lost + view->not_kept > 0)
        ew_print_info(view->options, "py-spy: %llu samples and spans found no room",
                      (unsigned long long)(samples.lost + view->not_kept));
    if (text != NULL)
        ew_py_spy_done(&samples);
    ew_free(text);
}

int ew_cli_spans_end(struct ew_spans_view *view)
{
    struct etwatch_span_group group = {.size = sizeof group};
    for (uint32_t i = 0; view->sink != NULL && view->options->json &&
                         etwatch_spans_group(view->spans, i, &group) == 0;
         i++)
        keep_error(view, etwatch_sink_span_group(view->sink, &group));
    if (view->sink != NULL)
        keep_error(view, etwatch_sink_flush(view->sink));
    keep_error(view, ew_cli_spans_tables_end(&view->tables));
    return view->error;
}

int ew_cli_spans_write(struct ew_spans_view *view, struct ew_buf *out)
{
    struct etwatch_span_group group = {.size = sizeof group};
    for (uint32_t i = 0; etwatch_spans_group(view->spans, i, &group) == 0; i++)
        put_group(out, &group);
    if (view->options->operators)
        ew_cli_operators_write(&view->operators, out);
    put_notes(view, out);
    return out->error;
}
