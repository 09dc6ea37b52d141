/* SPDX-License-Identifier: MIT */
/*
 * Perfetto traces as recordings: opening, file information and the report.
 *
 * Several files are the parts of one recording, in the given order. The report uses the same
 * accounting as a live run, so the totals that `record` prints at its end and those of the
 * recording are the same. One pass; memory grows with the number of processes, not with the file.
 */
#include "recording/trace.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "os/os.h"
#include "recording/perfetto_trace.h"
#include "sampler/account.h"

enum { PROGRESS_BYTES = 1 << 20, HEAD_PACKETS = 64 };

int ew_perfetto_trace_is(const char *path)
{
    struct ew_os_file *file;
    uint64_t bytes;
    int64_t os_code;
    uint8_t head[2];
    if (ew_os_file_open(path, &file, &bytes, &os_code) < 0)
        return 0;
    int64_t got = ew_os_file_read(file, 0, head, sizeof head);
    ew_os_file_close(file);
    return got > 0 && ew_pftrace_is(head, (size_t)got);
}

/* ---------------------------------------------------------------------- open */

static int on_meta(void *ctx, const struct etwatch_meta *meta, const char *os, const char *host)
{
    struct ew_perfetto_trace_file *file = ctx;
    file->meta = *meta;
    (void)snprintf(file->os, sizeof file->os, "%s", os);
    (void)snprintf(file->host, sizeof file->host, "%s", host);
    return 0;
}

/* The description of a file is at its beginning. */
static int read_head(struct ew_perfetto_trace_file *file)
{
    struct ew_pftrace_visitor visitor = {.ctx = file, .meta = on_meta};
    int rc = 1;
    for (int i = 0; i < HEAD_PACKETS && rc > 0 && file->meta.size == 0; i++)
        rc = ew_pftrace_next(file->reader, &visitor);
    ew_pftrace_rewind(file->reader);
    return rc < 0 ? rc : 0;
}

int ew_perfetto_trace_open(const char *const *paths, size_t count,
                           const struct etwatch_trace_options *options,
                           const struct ew_selection *selection,
                           struct ew_perfetto_trace **ret_trace, struct ew_error *reterr)
{
    struct ew_perfetto_trace *trace = ew_calloc(1, sizeof *trace);
    int rc = trace == NULL                         ? ETWATCH_ENOMEM
             : count > EW_PERFETTO_TRACE_FILES_MAX ? ETWATCH_ELIMIT
                                                   : 0;
    if (rc == 0) {
        trace->options = options;
        trace->selection = selection;
        trace->files = ew_calloc(count, sizeof *trace->files);
        rc = trace->files == NULL ? ETWATCH_ENOMEM : 0;
    }
    if (rc < 0)
        (void)ew_error_set(reterr, rc, 0, "%s", etwatch_strerror(rc));
    for (size_t i = 0; i < count && rc == 0; i++) {
        struct ew_perfetto_trace_file *file = &trace->files[trace->file_count++];
        file->path = ew_strdup(paths[i]);
        rc = file->path == NULL ? ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory") : 0;
        if (rc == 0 && i > 0 && !ew_perfetto_trace_is(paths[i]))
            rc = ew_error_set(reterr, ETWATCH_EFORMAT, 0, "%s is not a Perfetto trace, but %s is",
                              paths[i], paths[0]);
        if (rc == 0)
            rc = ew_pftrace_open(paths[i], &file->reader, reterr);
        if (rc == 0 && read_head(file) < 0)
            rc = ew_error_set(reterr, ETWATCH_EOS, 0, "cannot read %s", paths[i]);
    }
    if (rc < 0) {
        ew_perfetto_trace_free(trace);
        return rc;
    }
    uint32_t source = trace->files[0].meta.source;
    if (selection->no_system && source != ETWATCH_SOURCE_ETL && source != ETWATCH_SOURCE_ETW) {
        ew_perfetto_trace_free(trace);
        return ew_error_set(reterr, ETWATCH_ENOTSUP, 0, "%s does not identify system processes",
                            paths[0]);
    }
    trace->begin_ns = trace->files[0].meta.anchor_unix_ns;
    *ret_trace = trace;
    return 0;
}

void ew_perfetto_trace_free(struct ew_perfetto_trace *trace)
{
    if (trace == NULL)
        return;
    for (size_t i = 0; i < trace->file_count; i++) {
        ew_pftrace_close(trace->files[i].reader);
        ew_free(trace->files[i].path);
    }
    ew_perfetto_trace_walk_done(trace);
    ew_free(trace->files);
    ew_free(trace);
}

size_t ew_perfetto_trace_file_count(const struct ew_perfetto_trace *trace)
{
    return trace->file_count;
}

static const char *or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

void ew_perfetto_trace_file(const struct ew_perfetto_trace *trace, size_t i,
                            struct etwatch_trace_file *ret_file)
{
    const struct ew_perfetto_trace_file *file = &trace->files[i];
    *ret_file = (struct etwatch_trace_file){
        .cpu_count = file->meta.cpu_count,
        .pointer_size = 8,
        .clock = 4,
        .start_ns = file->meta.anchor_unix_ns,
        .end_ns = file->end_ns,
        .file_bytes = ew_pftrace_file_bytes(file->reader),
        .path = file->path,
        .format = ETWATCH_TRACE_PERFETTO,
        .source = file->meta.source,
        .os = or_null(file->os),
        .host = or_null(file->host),
    };
}

/* --------------------------------------------------------------------- reading */

bool ew_perfetto_trace_in_range(const struct ew_perfetto_trace *trace, uint64_t t_ns)
{
    const struct etwatch_trace_options *options = trace->options;
    if (options->from_ns == 0 && options->until_ns == 0)
        return true;
    uint64_t at_ns = t_ns > trace->begin_ns ? t_ns - trace->begin_ns : 0;
    return at_ns >= options->from_ns && (options->until_ns == 0 || at_ns < options->until_ns);
}

bool ew_perfetto_trace_meta(const struct ew_perfetto_trace *trace, size_t i,
                            struct etwatch_meta *ret_meta)
{
    *ret_meta = trace->files[i].meta;
    return ret_meta->size != 0;
}

int ew_perfetto_trace_progress(struct ew_perfetto_trace *trace, size_t at)
{
    uint64_t done = 0, all = 0;
    if (trace->options->on_progress == NULL)
        return 0;
    for (size_t i = 0; i < trace->file_count; i++) {
        struct ew_pftrace_counts counts;
        ew_pftrace_counts(trace->files[i].reader, &counts);
        all += ew_pftrace_file_bytes(trace->files[i].reader);
        done += i <= at ? counts.bytes : 0;
    }
    if (done - trace->progress_bytes < PROGRESS_BYTES)
        return 0;
    trace->progress_bytes = done;
    return trace->options->on_progress(trace->options->ctx, done, all) != 0 ? ETWATCH_ESTATE : 0;
}

void ew_perfetto_trace_count_damage(struct ew_perfetto_trace *trace)
{
    struct etwatch_trace_stats *stats = &trace->stats;
    stats->bad_buffers = stats->bad_events = stats->bad_bytes = stats->bytes = 0;
    for (size_t i = 0; i < trace->file_count; i++) {
        struct ew_pftrace_counts counts;
        ew_pftrace_counts(trace->files[i].reader, &counts);
        if (counts.bad_packets > 0 && stats->bad_events == 0) {
            stats->first_bad_offset = counts.first_bad_offset;
            stats->first_bad_file = (uint32_t)i;
            memcpy(stats->first_bad, counts.first_bad, sizeof stats->first_bad);
        }
        stats->bad_events += counts.bad_packets;
        stats->bad_bytes += counts.bad_bytes;
        stats->bytes += counts.bytes;
    }
}

void ew_perfetto_trace_stats(const struct ew_perfetto_trace *trace,
                             struct etwatch_trace_stats *ret_stats)
{
    *ret_stats = trace->stats;
}

/* ---------------------------------------------------------------------- report */

struct report {
    struct ew_perfetto_trace *trace;
    struct ew_perfetto_trace_file *file;
    struct etwatch_account *account;
    const struct etwatch_report_callbacks *callbacks;
    bool any_meta;
    struct selected {
        uint32_t pid;
        bool included;
        uint64_t start_ns;
        uint64_t parent; /* a pid; UINT64_MAX: unknown */
    } * selected;        /* all processes, if some are selected */
    uint32_t selected_count, selected_size;
    int error;
};

static int take_meta(void *ctx, const struct etwatch_meta *meta, const char *os, const char *host)
{
    struct report *report = ctx;
    (void)os;
    (void)host;
    if (!report->any_meta)
        ew_account_meta(report->account, meta);
    report->any_meta = true;
    return 0;
}

/* Starts and exits count even if they are outside of the time range: they identify the process. */
static int take_sample(void *ctx, const struct etwatch_sample *sample)
{
    struct report *report = ctx;
    bool counts = sample->type == ETWATCH_TYPE_SAMPLE || sample->type == ETWATCH_TYPE_THREAD;
    if (!counts || ew_perfetto_trace_in_range(report->trace, sample->t_ns))
        ew_account_sample(report->account, sample);
    return 0;
}

static int take_event(void *ctx, const struct etwatch_event *event)
{
    struct report *report = ctx;
    if (!report->any_meta) {
        report->any_meta = true;
        ew_account_by_switches(report->account);
    }
    if (ew_perfetto_trace_in_range(report->trace, event->t_ns))
        ew_account_event(report->account, event);
    return 0;
}

static int take_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct report *report = ctx;
    if (ew_perfetto_trace_in_range(report->trace, loss->to_ns))
        ew_account_loss(report->account, loss);
    return 0;
}

static int take_stats(void *ctx, const struct etwatch_stats *stats)
{
    struct report *report = ctx;
    ew_account_stats(report->account, stats);
    report->file->end_ns = ew_account_end_ns(report->account);
    return 0;
}

/* In one of several files they would cover only a part. */
static int take_total(void *ctx, const struct etwatch_sample *total,
                      const struct etwatch_metric_set *estimated)
{
    struct report *report = ctx;
    if (report->trace->file_count == 1)
        ew_account_total(report->account, total, estimated);
    return 0;
}

static int take_system(void *ctx, const struct etwatch_trace_system *system)
{
    struct report *report = ctx;
    if (report->trace->file_count == 1)
        ew_account_system(report->account, system);
    return 0;
}

static int take_other(void *ctx, const char *provider, const char *event, uint64_t t_ns,
                      bool decoded)
{
    struct report *report = ctx;
    if (ew_perfetto_trace_in_range(report->trace, t_ns))
        ew_account_other(report->account, provider, event, t_ns, decoded);
    return 0;
}

static int read_all(struct report *report)
{
    struct ew_perfetto_trace *trace = report->trace;
    struct ew_pftrace_visitor visitor = {
        .ctx = report,
        .meta = take_meta,
        .sample = take_sample,
        .event = take_event,
        .loss = take_loss,
        .stats = take_stats,
        .total = take_total,
        .system = take_system,
        .other = take_other,
    };
    int rc = 0;
    trace->progress_bytes = 0;
    for (size_t i = 0; i < trace->file_count && rc == 0; i++) {
        report->file = &trace->files[i];
        ew_pftrace_rewind(report->file->reader);
        rc = 1;
        while (rc > 0) {
            rc = ew_pftrace_next(report->file->reader, &visitor);
            if (rc > 0 && ew_perfetto_trace_progress(trace, i) < 0)
                rc = ETWATCH_ESTATE;
        }
    }
    return rc;
}

/* ------------------------------------------------------------------- selection */

static int by_parent(const void *a, const void *b)
{
    const struct selected *x = a, *y = b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_identity(const void *a, const void *b)
{
    const struct selected *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Index of the first entry that is not before (parent, start_ns), in a list sorted by parent. */
static uint32_t first_child(const struct report *report, uint64_t parent, uint64_t start_ns)
{
    struct selected key = {.parent = parent, .start_ns = start_ns};
    uint32_t low = 0, high = report->selected_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (by_parent(&report->selected[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_selected(void *ctx, const struct etwatch_sample *process)
{
    const struct report *report = ctx;
    const struct ew_selection *selection = report->trace->selection;
    if (ew_selection_is_all(selection))
        return true;
    if (ew_selection_excludes(selection, process->pid, process->name))
        return false;
    if (ew_selection_includes_all(selection))
        return true;
    struct selected key = {.pid = process->pid, .start_ns = process->start_ns};
    const struct selected *found = report->selected_count == 0
                                       ? NULL
                                       : bsearch(&key, report->selected, report->selected_count,
                                                 sizeof *report->selected, by_identity);
    return found != NULL && found->included;
}

/* Collects the processes; is called for each by a visit that selects none. */
static bool note_process(void *ctx, const struct etwatch_sample *process)
{
    struct report *report = ctx;
    if (report->selected_count == report->selected_size) {
        uint32_t size = report->selected_size == 0 ? 64 : report->selected_size * 2;
        struct selected *larger = ew_realloc_array(report->selected, size, sizeof *larger);
        if (larger == NULL) {
            report->error = ETWATCH_ENOMEM;
            return false;
        }
        report->selected = larger;
        report->selected_size = size;
    }
    bool parent = (process->flags & ETWATCH_SAMPLE_HAS_PPID) != 0;
    report->selected[report->selected_count++] = (struct selected){
        .pid = process->pid,
        .start_ns = process->start_ns,
        .parent = parent ? process->ppid : UINT64_MAX,
        .included = ew_selection_includes(report->trace->selection, process->pid, process->name),
    };
    return false;
}

static int skip(void *ctx, const struct etwatch_sample *process,
                const struct etwatch_metric_set *estimated)
{
    (void)ctx;
    (void)process;
    (void)estimated;
    return 0;
}

/* Includes the descendants of included processes: children that did not start before them. A
 * process may precede its parent, so included ones are queued. The children of one pid are sorted
 * by start; `reached` is where those begin that are done, so each is visited once. */
static int include_descendants(struct report *report)
{
    uint32_t count = report->selected_count, waiting = 0;
    uint32_t *queue = ew_calloc((size_t)count + 1, sizeof *queue);
    uint32_t *reached =
        ew_calloc((size_t)count + 1, sizeof *reached); /* by first child: index + 1 */
    if (queue == NULL || reached == NULL) {
        ew_free(queue);
        ew_free(reached);
        return ETWATCH_ENOMEM;
    }
    struct selected *list = report->selected;
    qsort(list, count, sizeof *list, by_parent);
    for (uint32_t i = 0; i < count; i++)
        if (list[i].included)
            queue[waiting++] = i;
    for (uint32_t next = 0; next < waiting; next++) {
        const struct selected *parent = &list[queue[next]];
        uint32_t group = first_child(report, parent->pid, 0);
        uint32_t from = first_child(report, parent->pid, parent->start_ns);
        uint32_t end = reached[group] == 0 ? count : reached[group] - 1;
        for (uint32_t i = from; i < end && list[i].parent == parent->pid; i++) {
            if (list[i].included)
                continue;
            list[i].included = true;
            queue[waiting++] = i;
        }
        if (from < end)
            reached[group] = from + 1;
    }
    ew_free(queue);
    ew_free(reached);
    return 0;
}

static int find_selected(struct report *report)
{
    struct ew_account_visitor finder = {.ctx = report, .on_process = skip, .wants = note_process};
    if (ew_selection_is_all(report->trace->selection) ||
        ew_selection_includes_all(report->trace->selection))
        return 0;
    int rc = ew_account_visit_processes(report->account, &finder);
    if (rc == 0)
        rc = report->error;
    if (rc < 0 || report->selected_count == 0)
        return rc;
    rc = include_descendants(report);
    qsort(report->selected, report->selected_count, sizeof *report->selected, by_identity);
    /* Totals of the same identity are selected together. */
    uint32_t kept = 0;
    for (uint32_t i = 0; i < report->selected_count; i++) {
        struct selected *entry = &report->selected[i];
        if (kept > 0 && by_identity(&report->selected[kept - 1], entry) == 0)
            report->selected[kept - 1].included |= entry->included;
        else
            report->selected[kept++] = *entry;
    }
    report->selected_count = kept;
    return rc;
}

static int emit_class(void *ctx, const struct etwatch_trace_class *klass)
{
    const struct report *report = ctx;
    return report->callbacks->on_class(report->callbacks->ctx, klass);
}

static int emit_process(void *ctx, const struct etwatch_sample *process,
                        const struct etwatch_metric_set *estimated)
{
    const struct report *report = ctx;
    return report->callbacks->on_process(report->callbacks->ctx, process, estimated);
}

static int emit(struct report *report, struct etwatch_trace_system *system)
{
    const struct etwatch_report_callbacks *callbacks = report->callbacks;
    struct ew_account_visitor emitter = {
        .ctx = report,
        .on_class = emit_class,
        .on_process = emit_process,
        .wants = is_selected,
        .cmdline = (callbacks->flags & ETWATCH_REPORT_CMDLINE) != 0,
    };
    ew_perfetto_trace_count_damage(report->trace);
    ew_account_sum(report->account, &report->trace->stats, system);
    int rc = find_selected(report);
    if (rc == 0 && callbacks->on_system != NULL)
        rc = callbacks->on_system(callbacks->ctx, system);
    if (rc == 0 && callbacks->on_class != NULL)
        rc = ew_account_visit_classes(report->account, &emitter);
    if (rc == 0 && callbacks->on_process != NULL)
        rc = ew_account_visit_processes(report->account, &emitter);
    return rc;
}

struct span_walk {
    void (*on_span)(void *ctx, const struct etwatch_span *span);
    void *ctx;
    int count;
};

static int take_span(void *ctx, const struct etwatch_span *span)
{
    struct span_walk *walk = ctx;
    walk->on_span(walk->ctx, span);
    walk->count += walk->count < INT_MAX;
    return 0;
}

int ew_perfetto_trace_spans(struct ew_perfetto_trace *trace,
                            void (*on_span)(void *ctx, const struct etwatch_span *span), void *ctx)
{
    struct span_walk walk = {.on_span = on_span, .ctx = ctx};
    struct ew_pftrace_visitor visitor = {.ctx = &walk, .span = take_span};
    int rc = ew_perfetto_trace_rewind(trace);
    for (size_t i = 0; i < trace->file_count && rc >= 0; i++)
        do
            rc = ew_pftrace_next(trace->files[i].reader, &visitor);
        while (rc > 0);
    int rewound = ew_perfetto_trace_rewind(trace);
    return rc < 0 ? rc : rewound < 0 ? rewound : walk.count;
}

int ew_perfetto_trace_report(struct ew_perfetto_trace *trace,
                             const struct etwatch_report_callbacks *callbacks,
                             struct etwatch_trace_system *ret_system)
{
    const struct etwatch_trace_options *options = trace->options;
    struct ew_account_options wanted = {
        .threads = (callbacks->flags & ETWATCH_REPORT_THREADS) != 0,
        .part = options->from_ns != 0 || options->until_ns != 0,
        .from_ns = trace->begin_ns + options->from_ns,
        .until_ns = options->until_ns == 0 ? 0 : trace->begin_ns + options->until_ns,
    };
    struct report report = {.trace = trace, .callbacks = callbacks};
    report.account = ew_account_new(&wanted);
    if (report.account == NULL)
        return ETWATCH_ENOMEM;
    trace->stats = (struct etwatch_trace_stats){0};
    int rc = read_all(&report);
    bool ended = rc == ETWATCH_ESTATE;
    if (rc == 0 || ended)
        rc = emit(&report, ret_system);
    etwatch_account_free(report.account);
    ew_free(report.selected);
    return rc == 0 && ended ? ETWATCH_ESTATE : rc;
}
