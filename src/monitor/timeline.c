/* SPDX-License-Identifier: MIT */
/*
 * A slice lasts from the switch to a thread until the next switch on the same CPU. Who runs when
 * the recording begins is known only from its first switch on; a slice that a loss touches has no
 * known end, and is left out.
 */
#include "monitor/timeline.h"

#include <string.h>

#include "base/alloc.h"
#include "monitor/trace.h"
#include "sink/chrome.h"

enum { CPUS = 65536 };

struct running {
    uint64_t from_ns;
    uint32_t pid, tid;
    int8_t priority;
    bool known;
};

struct timeline {
    struct etwatch_trace *trace;
    const struct ew_chosen *chosen;
    struct ew_buf *out;
    struct running *cpus;
    uint64_t slices, last_ns;
};

static bool is_wanted(const struct timeline *line, const struct running *running)
{
    return running->known && running->tid != 0 &&
           (ew_chosen_all(line->chosen) ||
            (running->pid != EW_NO_ID &&
             ew_lives_chosen(&line->trace->lives, line->chosen, running->pid, running->from_ns)));
}

static void end_slice(struct timeline *line, uint16_t cpu, uint64_t t_ns,
                      const struct ew_event *event)
{
    struct running *running = &line->cpus[cpu];
    uint64_t from_ns = running->from_ns;
    if (from_ns < line->trace->options.from_ns)
        from_ns = line->trace->options.from_ns;
    if (is_wanted(line, running) && t_ns >= from_ns) {
        struct ew_chrome_slice slice = {
            .from_ns = from_ns,
            .to_ns = t_ns,
            .pid = running->pid == EW_NO_ID ? UINT32_MAX : running->pid,
            .tid = running->tid,
            .cpu = cpu,
            .priority = running->priority,
            .ended = event != NULL,
            .state = event != NULL ? event->u.cswitch.old_state : 0,
            .wait_reason = event != NULL ? event->u.cswitch.old_wait_reason : 0,
        };
        ew_chrome_slice(line->out, &slice);
        line->slices++;
    }
    running->known = false;
}

static void take_switch(struct timeline *line, const struct ew_record *record,
                        const struct ew_event *event)
{
    struct running *running = &line->cpus[record->cpu];
    uint32_t pid = EW_NO_ID, tid = event->u.cswitch.new_tid;
    end_slice(line, record->cpu, record->t_ns, event);
    if (tid != 0)
        (void)ew_lives_process_of(&line->trace->lives, tid, record->t_ns, &pid);
    *running = (struct running){
        .from_ns = record->t_ns,
        .pid = pid,
        .tid = tid,
        .priority = event->u.cswitch.new_priority,
        .known = true,
    };
}

/* Everything up to the end of the part: what comes before it tells who runs when it begins. */
static int walk(struct timeline *line)
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
    uint64_t end_ns = over ? trace->options.until_ns : line->last_ns;
    for (uint32_t cpu = 0; cpu < CPUS && rc == 0; cpu++)
        end_slice(line, (uint16_t)cpu, end_ns, NULL);
    return rc == 0 && count < 0 ? count : rc;
}

static int on_process(void *ctx, const struct etwatch_sample *sample, uint64_t estimated)
{
    struct timeline *line = ctx;
    bool thread = sample->type == ETWATCH_THREAD;
    uint64_t t_ns = sample->t_ns - (uint64_t)line->trace->unix_minus_raw_ns;
    (void)estimated;
    if (!ew_chosen_all(line->chosen) &&
        !ew_lives_chosen(&line->trace->lives, line->chosen, sample->pid, t_ns))
        return 0;
    ew_chrome_name(line->out, sample->pid, thread ? sample->tid : 0,
                   thread ? sample->thread_name : sample->name);
    return line->out->error;
}

int ew_timeline_chrome(struct etwatch_trace *trace, const struct ew_chosen *chosen,
                       struct ew_buf *out, uint64_t *ret_slices)
{
    struct timeline line = {.trace = trace, .chosen = chosen, .out = out};
    struct etwatch_report_callbacks callbacks = {
        .size = sizeof callbacks,
        .flags = ETWATCH_REPORT_THREADS,
        .on_process = on_process,
        .ctx = &line,
    };
    line.cpus = ew_calloc(CPUS, sizeof *line.cpus);
    int rc = line.cpus == NULL ? ETWATCH_ENOMEM : ew_trace_learn(trace);
    if (rc == 0 && !ew_chosen_all(chosen))
        ew_lives_choose(&trace->lives, chosen);
    if (rc == 0) {
        ew_chrome_begin(out);
        rc = etwatch_trace_report(trace, &callbacks, NULL, NULL);
    }
    if (rc == 0)
        rc = walk(&line);
    if (rc == 0) {
        ew_chrome_end(out, (uint64_t)trace->unix_minus_raw_ns);
        *ret_slices = line.slices;
    }
    ew_free(line.cpus);
    return rc;
}
