/* SPDX-License-Identifier: MIT */
/*
 * A slice lasts from the switch to a thread until the next switch on the same CPU. The thread that
 * runs at the start of the recording is known only from the first switch on; a slice that overlaps
 * a loss has no known end and is omitted.
 */
#include "export/export.h"

#include <string.h>

#include "base/alloc.h"
#include "recording/trace.h"
#include "sink/chrome.h"

enum { CPUS = 65536 };

struct running {
    uint64_t from_ns;
    uint32_t pid, tid;
    int32_t priority;
    bool known, wanted;
};

struct timeline {
    struct etwatch_trace *trace;
    const struct ew_selection *selection;
    struct ew_buf *out;
    struct running *cpus;
    uint64_t slices, last_ns;
};

/* end_state NULL: unknown. */
static void end_slice(struct timeline *line, uint16_t cpu, uint64_t t_ns, const char *end_state,
                      int wait_reason)
{
    struct running *running = &line->cpus[cpu];
    uint64_t from_ns = running->from_ns;
    if (from_ns < line->trace->options.from_ns)
        from_ns = line->trace->options.from_ns;
    if (running->known && running->wanted && running->tid != 0 && t_ns >= from_ns) {
        struct ew_chrome_slice slice = {
            .from_ns = from_ns,
            .to_ns = t_ns,
            .pid = running->pid,
            .tid = running->tid,
            .cpu = cpu,
            .priority = running->priority,
            .end_state = end_state,
            .wait_reason = wait_reason,
        };
        ew_chrome_slice(line->out, &slice);
        line->slices++;
    }
    running->known = false;
}

/* At the end of the time range or the recording. */
static void end_all(struct timeline *line, uint64_t t_ns)
{
    for (uint32_t cpu = 0; cpu < CPUS; cpu++)
        end_slice(line, (uint16_t)cpu, t_ns, NULL, -1);
}

/* --------------------------------------------------------------------- .etl */

static void take_switch(struct timeline *line, const struct ew_record *record,
                        const struct ew_event *event)
{
    struct running *running = &line->cpus[record->cpu];
    const struct ew_process_history *history = &line->trace->history;
    uint32_t pid = EW_NO_ID, tid = event->u.cswitch.new_tid;
    end_slice(line, record->cpu, record->t_ns, ew_chrome_windows_state(event->u.cswitch.old_state),
              event->u.cswitch.old_wait_reason);
    if (tid != 0)
        (void)ew_recording_history_process_of(history, tid, record->t_ns, &pid);
    *running = (struct running){
        .from_ns = record->t_ns,
        .pid = pid,
        .tid = tid,
        .priority = event->u.cswitch.new_priority,
        .known = true,
    };
    running->wanted =
        pid == EW_NO_ID || ew_selection_is_all(line->selection)
            ? ew_selection_includes_all(line->selection)
            : ew_recording_history_selected(history, line->selection, pid, record->t_ns);
}

/* Reads everything up to the end of the time range: earlier events show which threads run at its
 * start. */
static int walk_etl(struct timeline *line)
{
    struct etwatch_trace *trace = line->trace;
    const struct ew_record *records;
    struct ew_event event;
    int count = 0, rc = ew_trace_restart(trace);
    bool over = false;
    while (rc == 0 && !over && (count = ew_etl_next(trace->reader, &records)) > 0) {
        for (int i = 0; i < count && !over; i++) {
            const struct ew_record *record = &records[i];
            over = trace->options.until_ns != 0 && record->t_ns >= trace->options.until_ns;
            if (over)
                break;
            line->last_ns = record->t_ns;
            trace->events++;
            if (record->kind == EW_RECORD_LOSS)
                line->cpus[record->cpu].known = false;
            else if (ew_decode_event(record, &event) && event.kind == EW_EVENT_SWITCH)
                take_switch(line, record, &event);
        }
        rc = line->out->error != 0 ? line->out->error : ew_trace_progress(trace, 2, 3, false);
    }
    end_all(line, over ? trace->options.until_ns : line->last_ns);
    return rc == 0 && count < 0 ? count : rc;
}

/* ----------------------------------------------------------------- .pftrace */

static void take_sched(struct timeline *line, const struct etwatch_event *event, uint64_t t_ns)
{
    uint16_t cpu = (uint16_t)event->cpu;
    end_slice(line, cpu, t_ns, ew_chrome_linux_state(event->state), -1);
    line->cpus[cpu] = (struct running){
        .from_ns = t_ns,
        .pid = event->next_pid,
        .tid = event->next_tid,
        .priority = event->next_priority,
        .known = true,
        .wanted = ew_perfetto_trace_selected(line->trace->perfetto, line->selection,
                                             event->next_pid, event->next_name),
    };
}

static int walk_perfetto(struct timeline *line)
{
    struct etwatch_trace *trace = line->trace;
    struct etwatch_trace_event event = {.size = sizeof event};
    int rc = etwatch_trace_rewind(trace);
    if (rc < 0)
        return rc;
    while ((rc = etwatch_trace_next(trace, &event, NULL)) > 0 && line->out->error == 0) {
        const struct etwatch_event *sched = ew_perfetto_trace_event(trace->perfetto);
        line->last_ns = event.t_rel_ns;
        if (sched != NULL && sched->kind == ETWATCH_EVENT_SWITCH)
            take_sched(line, sched, event.t_rel_ns);
        else if (strcmp(event.event, "loss") == 0 && strcmp(event.provider, "etwatch") == 0)
            for (uint32_t cpu = 0; cpu < CPUS; cpu++)
                line->cpus[cpu].known = false;
    }
    end_all(line, line->last_ns);
    return rc < 0 ? rc : line->out->error;
}

/* -------------------------------------------------------------------- names */

static int on_process(void *ctx, const struct etwatch_sample *sample,
                      const struct etwatch_metric_set *estimated)
{
    struct timeline *line = ctx;
    struct etwatch_trace *trace = line->trace;
    bool thread = sample->type == ETWATCH_TYPE_THREAD,
         wanted = ew_selection_is_all(line->selection);
    uint64_t t_ns = sample->t_ns - (uint64_t)trace->unix_minus_raw_ns;
    (void)estimated;
    if (!wanted && trace->perfetto != NULL)
        wanted =
            ew_perfetto_trace_selected(trace->perfetto, line->selection, sample->pid, sample->name);
    else if (!wanted)
        wanted = ew_recording_history_selected(&trace->history, line->selection, sample->pid, t_ns);
    if (wanted)
        ew_chrome_name(line->out, sample->pid, thread ? sample->tid : 0,
                       thread ? sample->thread_name : sample->name);
    return line->out->error;
}

static int put_names(struct timeline *line)
{
    struct etwatch_report_callbacks callbacks = {
        .size = sizeof callbacks,
        .flags = ETWATCH_REPORT_THREADS,
        .on_process = on_process,
        .ctx = line,
    };
    return etwatch_trace_report(line->trace, &callbacks, NULL, NULL);
}

int ew_timeline_chrome(struct etwatch_trace *trace, const struct ew_selection *selection,
                       struct ew_buf *out, uint64_t *ret_slices)
{
    struct timeline line = {.trace = trace, .selection = selection, .out = out};
    struct etwatch_trace_file file = {.size = sizeof file};
    bool etl = trace->perfetto == NULL;
    line.cpus = ew_calloc(CPUS, sizeof *line.cpus);
    int rc = line.cpus == NULL ? ETWATCH_ENOMEM : 0;
    if (rc == 0)
        rc = etl ? ew_trace_learn(trace) : ew_perfetto_trace_learn(trace->perfetto, selection);
    if (rc == 0 && etl && !ew_selection_is_all(selection))
        rc = ew_recording_history_select(&trace->history, selection);
    if (rc == 0)
        rc = etwatch_trace_file(trace, 0, &file);
    if (rc == 0) {
        ew_chrome_begin(out, etl ? "Idle" : "swapper");
        rc = put_names(&line);
    }
    if (rc == 0)
        rc = etl ? walk_etl(&line) : walk_perfetto(&line);
    if (rc == 0) {
        ew_chrome_end(out, file.start_ns);
        *ret_slices = line.slices;
    }
    ew_free(line.cpus);
    return rc;
}
