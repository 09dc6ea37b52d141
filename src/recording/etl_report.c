/* SPDX-License-Identifier: MIT */
/*
 * The report on a recording: one pass, in which every event is counted by kind and, if accounting
 * needs it, added up; then the results are emitted.
 *
 * A time range of a recording is the difference of two sums. Events before it have to be read
 * anyway, because they identify processes and threads; so the totals are saved when the range
 * begins, and subtracted from those at its end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/sid.h"
#include "base/sized.h"
#include "model/metric.h"
#include "model/windows_cmdline.h"
#include "recording/trace.h"
#include "tally/tally.h"

/* The totals of one process or thread when the range began. */
struct before {
    uint32_t pid, tid;
    uint64_t start_ns;
    uint64_t samples, gpu_ns, presents;
    uint64_t counter[EW_COUNTER_COUNT];
};

/* The selected processes with one id; used to find their descendants. */
struct selected {
    uint32_t pid;
    bool used;
    bool running;    /* one of them has not ended */
    bool shown;      /* one is not excluded, and did not end before the range */
    uint64_t end_ns; /* of the last that ended */
};

struct report {
    struct etwatch_trace *trace;
    const struct etwatch_report_callbacks *callbacks;
    struct ew_event_classes classes;
    struct ew_tally *tally;
    struct ew_tally_system system_before;
    struct before *before;
    size_t before_count, before_size;
    uint32_t before_has; /* counters that were known then: EW_HAS_C */
    bool began;          /* the time range has begun */
    uint64_t until_ns;   /* raw: time is accounted for up to here */
    uint64_t undecoded;
    bool loss_located;         /* the recording gives the position of losses */
    bool lossy;                /* it does not, but events were lost */
    struct selected *selected; /* hash table by pid */
    uint32_t selected_count, selected_size;
    bool emit_threads; /* of the current process */
    const char *name;  /* of the current process */
    char cmdline[EW_CMDLINE_BYTES];
};

static uint64_t raw_to_ns(void *ctx, const struct ew_record *record, uint64_t raw)
{
    return ew_etl_raw_to_ns(ctx, record, raw);
}

static uint32_t cpu_count(const struct etwatch_trace *trace)
{
    uint32_t count = 0;
    for (size_t i = 0; i < ew_etl_file_count(trace->reader); i++) {
        uint32_t cpus = ew_etl_file_info(trace->reader, i)->cpu_count;
        count = cpus > count ? cpus : count;
    }
    return count;
}

static int begin(struct report *report)
{
    struct etwatch_trace *trace = report->trace;
    struct ew_tally_config config = {
        .cpu_count = cpu_count(trace),
        .threads = (report->callbacks->flags & ETWATCH_REPORT_THREADS) != 0,
        .images = (report->callbacks->flags & ETWATCH_REPORT_IMAGES) != 0,
        .clock_ctx = trace->reader,
        .raw_to_ns = raw_to_ns,
        .working_set = ew_decode_working_set,
    };
    report->began = trace->options.from_ns == 0;
    int rc = ew_recording_classes_init(&report->classes);
    if (rc == 0)
        rc = ew_tally_new(&config, &report->tally);
    return rc == 0 ? ew_trace_restart(trace) : rc;
}

static void done(struct report *report)
{
    if (report->tally != NULL)
        ew_tally_free(report->tally);
    ew_recording_classes_done(&report->classes);
    ew_free(report->before);
    ew_free(report->selected);
}

/* Space for one more item. */
static void *grow(void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    size_t wanted = *capacity == 0 ? 64 : *capacity * 2;
    void *grown = ew_realloc_array(items, wanted, size);
    if (grown != NULL)
        *capacity = wanted;
    return grown;
}

/* -------------------------------------------------- totals before the range */

static int by_identity(const void *a, const void *b)
{
    const struct before *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static int note_before(void *ctx, const struct ew_total *total)
{
    struct report *report = ctx;
    struct before *list =
        grow(report->before, report->before_count, &report->before_size, sizeof *report->before);
    if (list == NULL)
        return ETWATCH_ENOMEM;
    report->before = list;
    struct before *before = &list[report->before_count++];
    *before = (struct before){
        .pid = total->pid,
        .tid = total->tid,
        .start_ns = total->start_ns,
        .samples = total->samples,
        .gpu_ns = total->gpu_ns,
        .presents = total->presents,
    };
    memcpy(before->counter, total->counter, sizeof before->counter);
    return 0;
}

/* The time range begins here. */
static int begin_part(struct report *report)
{
    bool threads = (report->callbacks->flags & ETWATCH_REPORT_THREADS) != 0;
    report->began = true;
    ew_tally_charge_running(report->tally, report->trace->options.from_ns);
    ew_tally_system(report->tally, &report->system_before);
    report->before_has = ew_tally_counters(report->tally);
    int rc = ew_tally_totals(report->tally, threads, note_before, report);
    if (report->before_count > 0)
        qsort(report->before, report->before_count, sizeof *report->before, by_identity);
    return rc;
}

static void subtract_before(const struct report *report, struct ew_total *total)
{
    if (report->before_count == 0)
        return;
    /* Hardware counters may be identified later: then their value before the range is unknown. */
    total->counter_has &= ~(EW_HAS_PMC & ~report->before_has);
    struct before key = {.pid = total->pid, .tid = total->tid, .start_ns = total->start_ns};
    const struct before *before =
        bsearch(&key, report->before, report->before_count, sizeof *report->before, by_identity);
    if (before == NULL)
        return;
    for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++)
        total->counter[i] -=
            before->counter[i] < total->counter[i] ? before->counter[i] : total->counter[i];
    total->samples -= before->samples < total->samples ? before->samples : total->samples;
    total->presents -= before->presents < total->presents ? before->presents : total->presents;
    total->gpu_ns -= before->gpu_ns < total->gpu_ns ? before->gpu_ns : total->gpu_ns;
}

/* ------------------------------------------------------------------ reading */

/* One record: 1 if it is after the time range, else 0 or an error. */
static int take_slow(struct report *report, const struct ew_record *record)
{
    struct etwatch_trace *trace = report->trace;
    if (record->kind == EW_RECORD_LOSS) {
        ew_tally_loss(report->tally, record->cpu, record->t_ns, 1, NULL);
        report->loss_located = true;
        return 0;
    }
    if (!report->began && record->t_ns >= trace->options.from_ns) {
        int rc = begin_part(report);
        if (rc < 0)
            return rc;
    }
    return trace->options.until_ns != 0 && record->t_ns >= trace->options.until_ns;
}

/* Runs in parallel with reading: counts the events of each kind. */
static void count_kinds(void *ctx, const struct ew_record *records, size_t count)
{
    struct report *report = ctx;
    for (size_t i = 0; i < count; i++)
        if (records[i].kind != EW_RECORD_LOSS && ew_trace_in_range(report->trace, records[i].t_ns))
            ew_event_classes_count(&report->classes, &records[i]);
}

/* The hot loop: the events of one batch. Returns the same as take_slow. */
static int take_batch(struct report *report, const struct ew_record *records, int count)
{
    struct etwatch_trace *trace = report->trace;
    struct ew_event event;
    bool whole = trace->options.until_ns == 0;
    for (int i = 0; i < count; i++) {
        const struct ew_record *record = &records[i];
        if (record->kind == EW_RECORD_LOSS || !whole || !report->began) {
            int rc = take_slow(report, record);
            if (rc != 0)
                return rc;
            if (record->kind == EW_RECORD_LOSS)
                continue;
        }
        if (report->began) {
            if (trace->events++ == 0)
                trace->first_ns = record->t_ns;
            trace->last_ns = record->t_ns;
        }
        if (record->kind != EW_RECORD_KERNEL) {
            int rc = ew_decoder_learn(trace->decoder, record);
            if (rc < 0)
                return rc;
        }
        if (!ew_decode_event(record, &event)) {
            report->undecoded += report->began;
        } else if (event.kind != EW_EVENT_OTHER) {
            if (event.kind == EW_EVENT_LOST) {
                trace->lost += event.u.lost.what == 32;
                trace->lost_buffers += event.u.lost.what == 33;
                report->loss_located = true;
            }
            /* On allocation failure the tally counts what it drops. */
            (void)ew_tally_event(report->tally, record, &event, NULL);
        }
    }
    return 0;
}

/* Reads to the end of the time range. ETWATCH_ESTATE: canceled by the caller. */
static int read_all(struct report *report)
{
    struct etwatch_trace *trace = report->trace;
    const struct ew_record *records;
    int rc = 0, count = 0;
    ew_etl_set_visitor(trace->reader, count_kinds, report);
    while (rc == 0 && (count = ew_etl_next(trace->reader, &records)) > 0) {
        rc = take_batch(report, records, count);
        if (rc == 0)
            rc = ew_trace_progress(trace, 0, 1, false);
    }
    ew_etl_halt(trace->reader);
    ew_etl_set_visitor(trace->reader, NULL, NULL);
    if (rc == 0 && count < 0)
        rc = count;
    if (rc == 0 && !report->began)
        rc = begin_part(report);
    report->until_ns = rc == 1 ? trace->options.until_ns : trace->last_ns;
    ew_tally_finish(report->tally, report->until_ns, NULL);
    return rc == 1 ? ew_trace_progress(trace, 0, 1, true) : rc;
}

/* ----------------------------------------------------------------- emitting */

static void set_counters(struct etwatch_sample *s, const struct ew_total *total)
{
#define EW_X(name)                                         \
    if ((total->counter_has & EW_HAS_C(name)) != 0) {      \
        s->name = total->counter[EW_C_##name];             \
        etwatch_metric_set_add(&s->has, ETWATCH_M_##name); \
    }
    EW_COUNTERS(EW_X)
#undef EW_X
}

static void set_gauges(struct etwatch_sample *s, const struct ew_total *total)
{
#define EW_X(name)                                                    \
    if ((total->gauge_has & EW_HAS_G(name)) != 0) {                   \
        memcpy(&s->name, &total->gauge[EW_G_##name], sizeof s->name); \
        etwatch_metric_set_add(&s->has, ETWATCH_M_##name);            \
    }
    EW_GAUGES(EW_X)
#undef EW_X
    /* An ended process has no threads left: the number it had is more useful. */
    bool none = !etwatch_sample_has(s, ETWATCH_M_threads) || s->threads == 0;
    if (total->tid == 0 && none && total->thread_count > 0) {
        s->threads = total->thread_count;
        etwatch_metric_set_add(&s->has, ETWATCH_M_threads);
    }
}

/* Names for totals that belong to no known process. */
static const char *name_of(const struct ew_total *total)
{
    if ((total->flags & EW_TOTAL_UNKNOWN) != 0)
        return "[unknown]";
    if ((total->flags & EW_TOTAL_REST) != 0)
        return "[ended]";
    return total->name[0] != '\0' ? total->name : NULL;
}

static void make_sample(struct report *report, const struct ew_total *total,
                        struct etwatch_sample *s)
{
    const struct etwatch_trace *trace = report->trace;
    uint64_t shift_ns = (uint64_t)trace->unix_minus_raw_ns;
    bool thread = total->tid != 0, ended = (total->flags & EW_TOTAL_ENDED) != 0;
    uint64_t begin_ns = trace->options.from_ns;
    uint64_t from_ns = total->start_ns > begin_ns ? total->start_ns : begin_ns;
    uint64_t to_ns = ended && total->end_ns < report->until_ns ? total->end_ns : report->until_ns;
    bool started = (total->flags & EW_TOTAL_STARTED) != 0;
    ended = ended && total->end_ns <= report->until_ns;
    *s = (struct etwatch_sample){
        .size = sizeof *s,
        .type = thread ? ETWATCH_TYPE_THREAD : ETWATCH_TYPE_EXIT,
        .source = ETWATCH_SOURCE_ETL,
        .pid = total->pid,
        .tid = total->tid,
        .ppid = total->ppid,
        .session_id = total->session_id,
        .start_ns = started ? total->start_ns + shift_ns : 0,
        .t_ns = to_ns + shift_ns,
        .dt_ns = to_ns > from_ns ? to_ns - from_ns : 0,
    };
    bool complete = (total->flags & EW_TOTAL_INCOMPLETE) == 0 && !report->lossy;
    s->flags |= complete ? ETWATCH_SAMPLE_COMPLETE : 0;
    s->flags |= started ? 0 : ETWATCH_SAMPLE_PREEXISTING;
    s->flags |= (total->flags & EW_TOTAL_HAS_PPID) != 0 ? ETWATCH_SAMPLE_HAS_PPID : 0;
    s->flags |= (total->flags & EW_TOTAL_HAS_SESSION) != 0 ? ETWATCH_SAMPLE_HAS_SESSION : 0;
    set_counters(s, total);
    set_gauges(s, total);
    if (etwatch_sample_has(s, ETWATCH_M_cpu_ns) && s->dt_ns > 0) {
        s->cpu_percent = 100.0 * (double)s->cpu_ns / (double)s->dt_ns;
        etwatch_metric_set_add(&s->has, ETWATCH_M_cpu_percent);
    }
    if ((total->flags & EW_TOTAL_PRESENTS) != 0) {
        s->presents = total->presents;
        etwatch_metric_set_add(&s->has, ETWATCH_M_presents);
    }
    if ((total->flags & EW_TOTAL_GPU) != 0) {
        s->gpu_ns = total->gpu_ns;
        etwatch_metric_set_add(&s->has, ETWATCH_M_gpu_ns);
    }
    if ((total->flags & EW_TOTAL_GPU) != 0 && s->dt_ns > 0) {
        s->gpu_percent = 100.0 * (double)s->gpu_ns / (double)s->dt_ns;
        etwatch_metric_set_add(&s->has, ETWATCH_M_gpu_percent);
    }
    if (ended && !thread) {
        s->exit_ns = total->end_ns + shift_ns;
        etwatch_metric_set_add(&s->has, ETWATCH_M_exit_ns);
        if ((total->flags & EW_TOTAL_HAS_EXIT) != 0) {
            s->exit_code = total->exit_status;
            etwatch_metric_set_add(&s->has, ETWATCH_M_exit_code);
        }
    }
}

static bool in_part(const struct report *report, const struct ew_total *total)
{
    const struct etwatch_trace_options *options = &report->trace->options;
    bool over = (total->flags & EW_TOTAL_ENDED) != 0 && total->end_ns < options->from_ns;
    return !over;
}

/* The entry of a pid, or the free one for it. The table is not empty. */
static struct selected *selected_slot(struct selected *table, uint32_t size, uint32_t pid)
{
    uint32_t at = (uint32_t)(ew_hash_mix(ew_hash_seed(), pid) >> 32) & (size - 1);
    while (table[at].used && table[at].pid != pid)
        at = (at + 1) & (size - 1);
    return &table[at];
}

static const struct selected *find_selected(const struct report *report, uint32_t pid)
{
    if (report->selected_size == 0)
        return NULL;
    const struct selected *found = selected_slot(report->selected, report->selected_size, pid);
    return found->used ? found : NULL;
}

/* Selected itself, or a child of a selected process. Parents come first: totals are in order of
 * start, so every process in the table started before this one. */
static bool is_selected(const struct report *report, const struct ew_total *total)
{
    const struct ew_selection *selection = &report->trace->selection;
    if (ew_selection_includes_all(selection) ||
        ew_selection_includes(selection, total->pid, total->name))
        return true;
    if ((total->flags & EW_TOTAL_HAS_PPID) == 0 || total->ppid == total->pid)
        return false;
    const struct selected *parent = find_selected(report, total->ppid);
    return parent != NULL && (parent->running || parent->end_ns >= total->start_ns);
}

static int remember_selected(struct report *report, const struct ew_total *total, bool shown)
{
    if ((report->selected_count + 1) * 2 > report->selected_size) {
        uint32_t size = report->selected_size == 0 ? 64 : report->selected_size * 2;
        struct selected *larger = ew_calloc(size, sizeof *larger);
        if (larger == NULL)
            return ETWATCH_ENOMEM;
        for (uint32_t i = 0; i < report->selected_size; i++)
            if (report->selected[i].used)
                *selected_slot(larger, size, report->selected[i].pid) = report->selected[i];
        ew_free(report->selected);
        report->selected = larger;
        report->selected_size = size;
    }
    struct selected *entry = selected_slot(report->selected, report->selected_size, total->pid);
    report->selected_count += !entry->used;
    entry->used = true;
    entry->pid = total->pid;
    entry->running = entry->running || total->end_ns == 0;
    entry->shown = entry->shown || shown;
    entry->end_ns = total->end_ns > entry->end_ns ? total->end_ns : entry->end_ns;
    return 0;
}

static int emit_total(void *ctx, const struct ew_total *full_total)
{
    struct report *report = ctx;
    struct ew_total total = *full_total;
    struct etwatch_sample sample;
    if (total.tid == 0) {
        const struct ew_selection *selection = &report->trace->selection;
        bool included = is_selected(report, &total);
        report->emit_threads = included && in_part(report, &total) &&
                               !ew_selection_excludes(selection, total.pid, total.name);
        int rc = included && !ew_selection_is_all(selection)
                     ? remember_selected(report, &total, report->emit_threads)
                     : 0;
        if (rc < 0 || !report->emit_threads)
            return rc;
    } else if (!report->emit_threads || !in_part(report, &total)) {
        return 0;
    }
    subtract_before(report, &total);
    make_sample(report, &total, &sample);
    if (total.tid == 0) {
        sample.name = report->name = name_of(&total);
        sample.user = total.sid != NULL && total.sid[0] != '\0' ? ew_sid_name(total.sid) : NULL;
        if ((report->callbacks->flags & ETWATCH_REPORT_CMDLINE) != 0) {
            ew_cmdline_mask(total.command_line, report->cmdline);
            sample.cmdline = report->cmdline[0] != '\0' ? report->cmdline : NULL;
        }
    } else {
        sample.name = report->name;
        sample.thread_name = total.name[0] != '\0' ? total.name : NULL;
    }
    /* Always from profile samples. */
    struct etwatch_metric_set estimated =
        EW_METRIC_SET(ETWATCH_M_cpu_user_ns, ETWATCH_M_cpu_kernel_ns);
    if ((total.flags & EW_TOTAL_CPU_ESTIMATED) != 0)
        etwatch_metric_set_union(&estimated, &EW_METRICS(ETWATCH_M_cpu_percent, ETWATCH_M_cpu_ns));
    if ((total.flags & EW_TOTAL_GPU_ESTIMATED) != 0)
        etwatch_metric_set_union(&estimated, &EW_METRICS(ETWATCH_M_gpu_ns, ETWATCH_M_gpu_percent));
    etwatch_metric_set_intersect(&estimated, &sample.has);
    return report->callbacks->on_process(report->callbacks->ctx, &sample, &estimated);
}

static bool image_is_selected(const struct report *report, const struct ew_tally_image *image)
{
    if (ew_selection_is_all(&report->trace->selection))
        return true;
    const struct selected *process = find_selected(report, image->pid);
    return process != NULL && process->shown;
}

static int emit_image(void *ctx, const struct ew_tally_image *image)
{
    struct report *report = ctx;
    uint64_t shift_ns = (uint64_t)report->trace->unix_minus_raw_ns;
    struct etwatch_trace_image selected = {
        .size = sizeof selected,
        .pid = image->pid,
        .base = image->base,
        .bytes = image->bytes,
        .load_ns = image->load_ns == 0 ? 0 : image->load_ns + shift_ns,
        .unload_ns = image->unload_ns == 0 ? 0 : image->unload_ns + shift_ns,
        .path = image->path,
    };
    if (!image_is_selected(report, image))
        return 0;
    return report->callbacks->on_image(report->callbacks->ctx, &selected);
}

static uint64_t difference(uint64_t after, uint64_t before)
{
    return after > before ? after - before : 0;
}

static void sum_system(const struct report *report, struct etwatch_trace_system *ret_system)
{
    const struct ew_tally_system *before = &report->system_before;
    struct ew_tally_system after;
    ew_tally_system(report->tally, &after);
    report->trace->refused = after.refused;
    *ret_system = (struct etwatch_trace_system){
        .size = sizeof *ret_system,
        .cpu_from_switches = after.cpu_from_switches,
        .busy_ns = difference(after.busy_ns, before->busy_ns),
        .idle_ns = difference(after.idle_ns, before->idle_ns),
        .dpc_ns = difference(after.dpc_ns, before->dpc_ns),
        .isr_ns = difference(after.isr_ns, before->isr_ns),
        .unknown_ns = difference(after.unknown_ns, before->unknown_ns),
        .switches = difference(after.switches, before->switches),
        .samples = difference(after.samples, before->samples),
    };
}

/* Whether events were lost at an unknown time: any process may be affected then. */
static bool lost_somewhere(const struct report *report)
{
    const struct ew_etl_reader *reader = report->trace->reader;
    bool lost = false;
    for (size_t i = 0; i < ew_etl_file_count(reader) && !report->loss_located; i++) {
        const struct ew_etl_file_info *info = ew_etl_file_info(reader, i);
        lost = lost || info->events_lost > 0 || info->buffers_lost > 0;
    }
    return lost;
}

static int emit(struct report *report, const struct etwatch_trace_system *system)
{
    report->lossy = lost_somewhere(report);
    const struct etwatch_report_callbacks *callbacks = report->callbacks;
    bool threads = (callbacks->flags & ETWATCH_REPORT_THREADS) != 0;
    uint64_t unknown = 0;
    /* Count first: the statistics must be complete before the first callback. */
    int rc = ew_recording_classes_for_each(&report->classes, report->trace->decoder, NULL, NULL,
                                           &unknown);
    report->trace->undecoded = report->undecoded + unknown;
    if (rc == 0 && callbacks->on_system != NULL)
        rc = callbacks->on_system(callbacks->ctx, system);
    if (rc == 0 && callbacks->on_class != NULL)
        rc = ew_recording_classes_for_each(&report->classes, report->trace->decoder,
                                           callbacks->on_class, callbacks->ctx, &unknown);
    if (rc == 0 && callbacks->on_process != NULL)
        rc = ew_tally_totals(report->tally, threads, emit_total, report);
    if (rc == 0 && callbacks->on_image != NULL && (callbacks->flags & ETWATCH_REPORT_IMAGES) != 0)
        rc = ew_tally_images(report->tally, emit_image, report);
    return rc;
}

/* 0; ETWATCH_ESTATE if reading was canceled: what was read is reported nevertheless. */
static int report_etl(struct etwatch_trace *trace, const struct etwatch_report_callbacks *callbacks,
                      struct etwatch_trace_system *ret_system)
{
    struct report *report = ew_calloc(1, sizeof *report);
    if (report == NULL)
        return ETWATCH_ENOMEM;
    report->trace = trace;
    report->callbacks = callbacks;
    int rc = begin(report);
    if (rc == 0)
        rc = read_all(report);
    bool ended = rc == ETWATCH_ESTATE;
    if (rc == 0 || ended) {
        sum_system(report, ret_system);
        rc = emit(report, ret_system);
    }
    done(report);
    ew_free(report);
    return rc == 0 && ended ? ETWATCH_ESTATE : rc;
}

int etwatch_trace_report(struct etwatch_trace *trace,
                         const struct etwatch_report_callbacks *callbacks,
                         struct etwatch_trace_system *ret_system, struct etwatch_error_info *reterr)
{
    struct etwatch_report_callbacks wanted = {0};
    struct etwatch_trace_system system;
    struct ew_error why = {0};
    if (trace == NULL || callbacks == NULL ||
        (ret_system != NULL && ew_sized_check(ret_system) < 0))
        return ETWATCH_EINVAL;
    int rc = ew_sized_in(&wanted, sizeof wanted, callbacks, "callbacks", &why);
    if (rc < 0) {
        ew_error_out(reterr, &why, rc);
        return rc;
    }
    struct ew_alloc_limit *before = ew_alloc_limit_use(trace->memory);
    rc = trace->perfetto != NULL ? ew_perfetto_trace_report(trace->perfetto, &wanted, &system)
                                 : report_etl(trace, &wanted, &system);
    (void)ew_alloc_limit_use(before);
    if ((rc == 0 || rc == ETWATCH_ESTATE) && ret_system != NULL)
        (void)ew_sized_out(ret_system, &system, sizeof system);
    return ew_trace_result(trace, rc, reterr);
}
