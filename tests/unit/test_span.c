/* SPDX-License-Identifier: MIT */
/* The latency of a span is divided without a remainder, and each wait is given to its cause. */
#include <etwatch/sink.h>

#include <string.h>

#include "base/buf.h"
#include "span/explain.h"
#include "span/history.h"
#include "test.h"

enum { ME = 100, OTHER = 101, HELPER = 102, HOG = 200, MS = 1000000 };

struct story {
    struct etwatch_spans *spans;
    struct etwatch_span last;
    uint32_t count;
};

static void on_span(void *ctx, const struct etwatch_span *span)
{
    struct story *story = ctx;
    story->last = *span;
    story->count++;
}

static void begin(struct story *story)
{
    struct etwatch_spans_options options = {
        .size = sizeof options, .ctx = story, .on_span = on_span};
    memset(story, 0, sizeof *story);
    CHECK_EQ_INT(etwatch_spans_new(&options, &story->spans), 0);
    CHECK_EQ_INT(etwatch_spans_add_process(story->spans, ME, "python"), 0);
}

static uint32_t pid_of(uint32_t tid)
{
    return tid == 0 ? 0 : tid < 200 ? ME : HOG;
}

static struct etwatch_event event_of(uint32_t kind, uint64_t ms, uint32_t tid, uint32_t next)
{
    struct etwatch_event event = {
        .size = sizeof event,
        .kind = kind,
        .t_ns = ms * MS,
        .pid = pid_of(tid),
        .tid = tid,
        .next_pid = pid_of(next),
        .next_tid = next,
        .io_wait = 1,
        .in_fault = 1,
        .throttled = 1,
        .name = tid == OTHER    ? "holder"
                : tid == HELPER ? "pool"
                : tid == HOG    ? "ffmpeg"
                                : NULL,
    };
    return event;
}

/* state 0: preempted, 1: asleep. */
static void sw(struct story *story, uint64_t ms, uint32_t cpu, uint32_t tid, uint32_t state,
               uint32_t next)
{
    struct etwatch_event event = event_of(ETWATCH_EVENT_SWITCH, ms, tid, next);
    event.cpu = cpu;
    event.state = state;
    CHECK_EQ_INT(etwatch_spans_add_event(story->spans, &event), 0);
}

static void wake(struct story *story, uint64_t ms, uint32_t tid, uint32_t waker)
{
    struct etwatch_event event = event_of(ETWATCH_EVENT_WAKEUP, ms, tid, waker);
    CHECK_EQ_INT(etwatch_spans_add_event(story->spans, &event), 0);
}

static const struct etwatch_span *explain_kind(struct story *story, uint32_t kind, uint64_t from_ms,
                                               uint64_t to_ms)
{
    struct etwatch_span span = {
        .size = sizeof span,
        .kind = kind,
        .pid = ME,
        .tid = ME,
        .end_tid = ME,
        .start_ns = from_ms * MS,
        .end_ns = to_ms * MS,
        .name = "run",
        .session = "model.onnx",
    };
    uint64_t sum_ns = 0;
    CHECK_EQ_INT(etwatch_spans_add(story->spans, &span), 0);
    CHECK_EQ_INT(etwatch_spans_advance(story->spans, to_ms * MS), 0);
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++)
        sum_ns += story->last.ns[i];
    CHECK_EQ_UINT(sum_ns, (to_ms - from_ms) * MS);
    return &story->last;
}

static const struct etwatch_span *explain(struct story *story, uint64_t from_ms, uint64_t to_ms)
{
    return explain_kind(story, ETWATCH_SPAN_WORK, from_ms, to_ms);
}

/* A probe sees every process with the library. */
TEST(a_span_of_a_probe_in_another_process_is_dropped)
{
    struct story story;
    struct etwatch_span span = {.size = sizeof span,
                                .kind = ETWATCH_SPAN_INFERENCE,
                                .flags = ETWATCH_SPAN_PROBED,
                                .pid = HOG,
                                .tid = HOG,
                                .start_ns = MS,
                                .end_ns = 2 * MS,
                                .name = "run",
                                .shape = "16x256"};
    begin(&story);
    CHECK_EQ_INT(etwatch_spans_add(story.spans, &span), 0);
    span.pid = span.tid = ME;
    CHECK_EQ_INT(etwatch_spans_add(story.spans, &span), 0);
    CHECK_EQ_INT(etwatch_spans_advance(story.spans, UINT64_MAX), 0);
    CHECK_EQ_UINT(story.count, 1);
    CHECK_EQ_UINT(story.last.pid, ME);
    CHECK_EQ_STR(story.last.shape, "16x256");
    etwatch_spans_free(story.spans);
}

TEST(statistics_that_were_cleared_begin_anew)
{
    struct story story;
    struct etwatch_span_group group = {.size = sizeof group};
    begin(&story);
    (void)explain(&story, 1, 101);
    CHECK_EQ_INT(etwatch_spans_clear(story.spans), 0);
    CHECK_EQ_INT(etwatch_spans_group(story.spans, 0, &group), 0);
    CHECK_EQ_UINT(group.count, 0);
    (void)explain(&story, 102, 103);
    CHECK_EQ_INT(etwatch_spans_group(story.spans, 0, &group), 0);
    CHECK_EQ_UINT(group.count, 1);
    CHECK_EQ_UINT(group.max_ns, MS);
    CHECK_EQ_STR(group.name, "run");
    etwatch_spans_free(story.spans);
}

TEST(a_span_that_lost_the_cpu_waited_for_the_thread_that_ran)
{
    struct story story;
    begin(&story);
    sw(&story, 1, 0, 0, 0, ME);
    sw(&story, 10, 0, ME, 0, HOG);
    sw(&story, 17, 0, HOG, 0, 0);
    sw(&story, 18, 0, 0, 0, ME);
    const struct etwatch_span *span = explain(&story, 5, 25);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_WORK], 12 * MS);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_CPU], 8 * MS);
    CHECK_EQ_UINT(span->preempted, 1);
    CHECK_EQ_UINT(span->cause_count, 2);
    CHECK_EQ_STR(span->causes[0].name, "ffmpeg");
    CHECK_EQ_UINT(span->causes[0].ns, 7 * MS);
    CHECK_EQ_UINT(span->causes[1].pid, 0); /* the CPU was idle */
    CHECK(span->flags & ETWATCH_SPAN_COMPLETE);
    etwatch_spans_free(story.spans);
}

/* Some kernels do not report every switch: see ebpf/bpf/causes.bpf.h. */
TEST(a_thread_that_sets_a_mark_runs_whatever_the_last_event_was)
{
    struct story story;
    begin(&story);
    sw(&story, 1, 0, 0, 0, ME);
    sw(&story, 10, 0, ME, 0, HOG);
    const struct etwatch_span *span = explain(&story, 5, 15);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_WORK], 5 * MS);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_CPU], 5 * MS);
    span = explain(&story, 20, 30);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_WORK], 10 * MS);
    CHECK_EQ_UINT(span->cpu_ns, 10 * MS);
    /* The missing switch, late, and the next one. */
    sw(&story, 14, 0, HOG, 1, ME);
    sw(&story, 40, 0, ME, 0, HOG);
    sw(&story, 42, 0, HOG, 1, ME);
    span = explain(&story, 35, 45);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_WORK], 8 * MS);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_CPU], 2 * MS);
    etwatch_spans_free(story.spans);
}

TEST(a_sleep_that_a_thread_of_the_process_ended_is_a_lock)
{
    struct story story;
    begin(&story);
    sw(&story, 1, 1, 0, 0, OTHER);
    sw(&story, 1, 0, 0, 0, ME);
    sw(&story, 10, 0, ME, 1, 0);
    wake(&story, 22, ME, OTHER);
    sw(&story, 22, 0, 0, 0, ME);
    sw(&story, 24, 1, OTHER, 1, 0);
    const struct etwatch_span *span = explain(&story, 5, 25);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_LOCK], 12 * MS);
    CHECK_EQ_STR(span->causes[0].name, "holder");
    CHECK_EQ_UINT(span->causes[0].tid, OTHER);
    CHECK_EQ_UINT(span->shared_cpu_ns, 19 * MS);
    CHECK_EQ_UINT(span->helper_cpu_ns, 0);
    etwatch_spans_free(story.spans);
}

TEST(a_wake_up_may_overtake_the_switch_of_its_thread)
{
    struct story story;
    begin(&story);
    sw(&story, 1, 1, 0, 0, OTHER);
    sw(&story, 1, 0, 0, 0, ME);
    wake(&story, 10, ME, OTHER);
    sw(&story, 10, 0, ME, 1, HOG);
    sw(&story, 12, 0, HOG, 0, ME);
    const struct etwatch_span *span = explain(&story, 5, 20);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_CPU], 2 * MS);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_UNKNOWN], 0);
    etwatch_spans_free(story.spans);
}

TEST(a_switch_to_another_cpu_may_overtake_the_switch_from_the_first)
{
    for (uint32_t state = 0; state < 2; state++) { /* it lost the first CPU, or slept a moment */
        struct story story;
        begin(&story);
        sw(&story, 1, 1, 0, 0, OTHER);
        sw(&story, 1, 0, 0, 0, ME);
        sw(&story, 10, 1, OTHER, 0, ME);
        sw(&story, 10, 0, ME, state, HOG);
        sw(&story, 30, 1, ME, 1, OTHER);
        const struct etwatch_span *span = explain(&story, 5, 25);
        CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_WORK], 20 * MS);
        etwatch_spans_free(story.spans);
    }
}

TEST(a_thread_that_an_inference_woke_works_for_it)
{
    struct story story;
    begin(&story);
    sw(&story, 1, 0, 0, 0, ME);
    wake(&story, 6, HELPER, ME);
    sw(&story, 7, 1, 0, 0, HELPER);
    sw(&story, 10, 0, ME, 1, 0);
    sw(&story, 12, 1, HELPER, 0, HOG); /* the helper loses its CPU */
    sw(&story, 16, 1, HOG, 0, HELPER);
    wake(&story, 20, ME, HELPER);
    sw(&story, 20, 0, 0, 0, ME);
    sw(&story, 21, 1, HELPER, 1, 0);
    const struct etwatch_span *span = explain_kind(&story, ETWATCH_SPAN_INFERENCE, 5, 25);
    CHECK_EQ_UINT(span->helpers, 1);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_LOCK], 0);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_CPU], 4 * MS); /* of the helper */
    CHECK_EQ_UINT(span->wait_cpu_ns, 6 * MS);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_WORK], 16 * MS);
    CHECK_EQ_UINT(span->helper_cpu_ns, 10 * MS);
    CHECK_EQ_UINT(span->helper_ready_ns, 5 * MS);
    CHECK_EQ_UINT(span->shared_cpu_ns, 0);
    etwatch_spans_free(story.spans);
}

/* Python hands its lock over by a wake-up: its next holder does not work for the inference. */
TEST(only_threads_of_the_pool_work_for_an_inference)
{
    struct story story;
    begin(&story);
    sw(&story, 1, 0, 0, 0, ME);
    struct etwatch_event fork = event_of(ETWATCH_EVENT_FORK, 2, ME, HELPER);
    CHECK_EQ_INT(etwatch_spans_add_event(story.spans, &fork), 0);
    (void)explain_kind(&story, ETWATCH_SPAN_LOAD, 1, 4);
    wake(&story, 6, OTHER, ME);
    wake(&story, 6, HELPER, ME);
    sw(&story, 6, 1, 0, 0, OTHER);
    sw(&story, 10, 0, ME, 1, 0);
    wake(&story, 18, ME, OTHER);
    sw(&story, 18, 0, 0, 0, ME);
    const struct etwatch_span *span = explain_kind(&story, ETWATCH_SPAN_INFERENCE, 5, 20);
    CHECK_EQ_UINT(span->helpers, 1);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_LOCK], 8 * MS);
    CHECK_EQ_STR(span->causes[0].name, "holder");
    etwatch_spans_free(story.spans);
}

TEST(the_steps_of_a_wait_for_pythons_lock_are_one_wait)
{
    struct story story;
    begin(&story);
    sw(&story, 1, 1, 0, 0, OTHER);
    sw(&story, 1, 0, 0, 0, ME);
    sw(&story, 10, 0, ME, 1, 0);
    wake(&story, 15, ME, 0); /* its timer */
    sw(&story, 15, 0, 0, 0, ME);
    sw(&story, 15, 0, ME, 1, 0);
    wake(&story, 19, ME, OTHER);
    sw(&story, 19, 0, 0, 0, ME);
    const struct etwatch_span *span = explain(&story, 5, 20);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_LOCK], 9 * MS);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_SLEEP], 0);
    etwatch_spans_free(story.spans);
}

TEST(throttling_disks_faults_timers_and_processes_are_told_apart)
{
    struct story story;
    begin(&story);
    sw(&story, 1, 0, 0, 0, ME);
    struct etwatch_event event = event_of(ETWATCH_EVENT_SWITCH, 10, ME, 0);
    event.throttled = 2;
    CHECK_EQ_INT(etwatch_spans_add_event(story.spans, &event), 0);
    sw(&story, 13, 0, 0, 0, ME);
    event = event_of(ETWATCH_EVENT_SWITCH, 14, ME, 0);
    event.state = 2;
    event.io_wait = 2;
    CHECK_EQ_INT(etwatch_spans_add_event(story.spans, &event), 0);
    wake(&story, 18, ME, 0);
    sw(&story, 18, 0, 0, 0, ME);
    event = event_of(ETWATCH_EVENT_SWITCH, 20, ME, 0);
    event.state = 2;
    event.in_fault = 2;
    event.io_wait = 2;
    CHECK_EQ_INT(etwatch_spans_add_event(story.spans, &event), 0);
    wake(&story, 25, ME, 0);
    sw(&story, 25, 0, 0, 0, ME);
    sw(&story, 30, 0, ME, 1, 0);
    wake(&story, 36, ME, 0); /* a timer */
    sw(&story, 36, 0, 0, 0, ME);
    sw(&story, 40, 0, ME, 1, HOG);
    wake(&story, 47, ME, HOG);
    sw(&story, 47, 0, HOG, 1, ME);
    event = event_of(ETWATCH_EVENT_FAULTS, 50, ME, 0);
    event.from_ns = 48 * MS;
    event.fault_ns = 1 * MS;
    event.fault_count = 40;
    CHECK_EQ_INT(etwatch_spans_add_event(story.spans, &event), 0);
    const struct etwatch_span *span = explain(&story, 5, 55);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_THROTTLED], 3 * MS);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_DISK], 4 * MS);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_FAULT], 5 * MS + 1 * MS);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_SLEEP], 6 * MS);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_PROCESS], 7 * MS);
    CHECK_EQ_UINT(span->fault_count, 40);
    CHECK(span->flags & ETWATCH_SPAN_HAS_FAULTS);
    CHECK_EQ_STR(span->causes[0].name, "ffmpeg");
    etwatch_spans_free(story.spans);
}

static int keep_text(void *ctx, const void *data, size_t size)
{
    struct ew_buf *text = ctx;
    ew_buf_bytes(text, data, size);
    return text->error;
}

/* in_fault 0: the source does not report it. */
static void check_group_faults(uint8_t in_fault, const char *total, const char *excess)
{
    struct story story;
    struct etwatch_span_group group = {.size = sizeof group};
    struct etwatch_sink *sink = NULL;
    struct ew_buf text;
    begin(&story);
    struct etwatch_event event = event_of(ETWATCH_EVENT_SWITCH, 1, 0, ME);
    event.in_fault = in_fault;
    CHECK_EQ_INT(etwatch_spans_add_event(story.spans, &event), 0);
    event = event_of(ETWATCH_EVENT_SWITCH, 30, ME, 0);
    event.in_fault = in_fault;
    CHECK_EQ_INT(etwatch_spans_add_event(story.spans, &event), 0);
    (void)explain(&story, 5, 25);
    CHECK_EQ_INT(etwatch_spans_group(story.spans, 0, &group), 0);
    ew_buf_init(&text, 0, NULL, NULL);
    CHECK_EQ_INT(etwatch_sink_new(ETWATCH_FORMAT_JSONL, keep_text, &text, NULL, &sink, NULL), 0);
    CHECK_EQ_INT(etwatch_sink_span_group(sink, &group), 0);
    CHECK_EQ_INT(etwatch_sink_flush(sink), 0);
    ew_buf_char(&text, '\0');
    CHECK(strstr(text.data, total) != NULL);
    CHECK(strstr(text.data, excess) != NULL);
    etwatch_sink_free(sink);
    ew_buf_done(&text);
    etwatch_spans_free(story.spans);
}

TEST(unknown_page_faults_of_a_group_are_null)
{
    check_group_faults(0, ",\"fault_ns\":null,", ",\"fault\":null,");
    check_group_faults(1, ",\"fault_ns\":0,", ",\"fault\":0,");
}

TEST(lost_events_are_unknown_and_mark_the_span)
{
    struct story story;
    begin(&story);
    sw(&story, 1, 0, 0, 0, ME);
    struct etwatch_loss loss = {.size = sizeof loss,
                                .stage = ETWATCH_LOSS_STREAM,
                                .count = 1,
                                .from_ns = 8 * MS,
                                .to_ns = 10 * MS};
    CHECK_EQ_INT(etwatch_spans_add_loss(story.spans, &loss), 0);
    sw(&story, 14, 0, ME, 0, HOG);
    sw(&story, 16, 0, HOG, 0, ME);
    const struct etwatch_span *span = explain(&story, 5, 20);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_UNKNOWN], 4 * MS);
    CHECK_EQ_UINT(span->ns[ETWATCH_CAUSE_CPU], 2 * MS);
    CHECK((span->flags & ETWATCH_SPAN_COMPLETE) == 0);
    etwatch_spans_free(story.spans);
}

TEST(a_span_before_the_kept_history_is_unknown)
{
    struct story story;
    begin(&story);
    sw(&story, 1, 0, 0, 0, ME);
    for (uint64_t ms = 2; ms < 60000; ms += 2) {
        sw(&story, ms, 0, ME, 0, HOG);
        sw(&story, ms + 1, 0, HOG, 0, ME);
        if (ms % 1000 == 0)
            CHECK_EQ_INT(etwatch_spans_advance(story.spans, ms * MS), 0);
    }
    const struct etwatch_span *span = explain(&story, 10000, 60000);
    CHECK(span->ns[ETWATCH_CAUSE_UNKNOWN] > 0);
    CHECK((span->flags & ETWATCH_SPAN_COMPLETE) == 0);
    etwatch_spans_free(story.spans);
}

TEST(the_excess_of_slow_spans_is_explained_without_a_remainder)
{
    struct ew_spans_kept kept[200];
    struct etwatch_span_group group = {.size = sizeof group, .count = 200};
    char text[512];
    memset(kept, 0, sizeof kept);
    for (uint32_t i = 0; i < 200; i++) {
        kept[i].latency_ns = kept[i].ns[ETWATCH_CAUSE_WORK] = 10 * MS;
        if (i >= 197) {
            kept[i].ns[ETWATCH_CAUSE_CPU] = 24 * MS;
            kept[i].ns[ETWATCH_CAUSE_FAULT] = 6 * MS;
            kept[i].latency_ns += 30 * MS;
            kept[i].causes[0] = (struct etwatch_cause){
                .kind = ETWATCH_CAUSE_CPU, .pid = HOG, .ns = 24 * MS, .name = "ffmpeg"};
            kept[i].cause_count = 1;
        }
    }
    ew_spans_explain(kept, 200, &group);
    CHECK_EQ_UINT(group.p50_ns, 10 * MS);
    CHECK_EQ_UINT(group.p95_ns, 10 * MS);
    CHECK_EQ_UINT(group.p99_ns, 40 * MS);
    CHECK_EQ_UINT(group.slow_count, 3);
    CHECK_EQ_INT(group.excess_ns[ETWATCH_CAUSE_CPU], 24 * MS);
    CHECK_EQ_INT(group.excess_ns[ETWATCH_CAUSE_WORK], 0);
    CHECK(etwatch_span_group_text(&group, text, sizeof text) > 0);
    CHECK_EQ_STR(text,
                 "p99 40.0 ms, median 10.0 ms; the slowest (3) took 30.0 ms more than a typical "
                 "one: 24.0 ms waiting for a CPU (ffmpeg 24.0 ms), 6.00 ms page faults");
}

TEST(spans_that_hardly_differ_have_no_cause)
{
    struct ew_spans_kept kept[100];
    struct etwatch_span_group group = {.size = sizeof group, .count = 100};
    char text[512];
    memset(kept, 0, sizeof kept);
    for (uint32_t i = 0; i < 100; i++)
        kept[i].latency_ns = kept[i].ns[ETWATCH_CAUSE_WORK] = 10 * MS + i * 1000;
    ew_spans_explain(kept, 100, &group);
    CHECK(etwatch_span_group_text(&group, text, sizeof text) > 0);
    CHECK_EQ_STR(text, "p99 10.1 ms, median 10.0 ms: the slowest are within 10 % of a typical one");
}

static int one_story(void *ctx)
{
    struct story story = {0};
    struct etwatch_spans_options options = {
        .size = sizeof options, .ctx = &story, .on_span = on_span};
    struct etwatch_span span = {.size = sizeof span,
                                .kind = ETWATCH_SPAN_WORK,
                                .pid = ME,
                                .tid = ME,
                                .end_tid = ME,
                                .start_ns = 1,
                                .end_ns = MS,
                                .name = "x",
                                .session = "y"};
    struct etwatch_span_group group = {.size = sizeof group};
    (void)ctx;
    int rc = etwatch_spans_new(&options, &story.spans);
    if (rc == 0)
        rc = etwatch_spans_add_process(story.spans, ME, "python");
    if (rc < 0) {
        etwatch_spans_free(story.spans);
        return rc;
    }
    for (uint32_t i = 0; i < 100; i++) {
        sw(&story, i, i % 3, ME, 0, HOG);
        sw(&story, i, i % 3, HOG, 0, ME);
    }
    rc = etwatch_spans_add(story.spans, &span);
    if (rc == 0)
        rc = etwatch_spans_advance(story.spans, UINT64_MAX);
    if (rc == 0)
        rc = etwatch_spans_group(story.spans, 0, &group);
    uint64_t dropped = etwatch_spans_dropped(story.spans);
    etwatch_spans_free(story.spans);
    return rc < 0 ? rc : dropped > 0 ? ETWATCH_ENOMEM : 0;
}

TEST(spans_survive_every_failed_allocation)
{
    TORTURE(one_story, NULL);
}
