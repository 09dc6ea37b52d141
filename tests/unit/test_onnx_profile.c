/* SPDX-License-Identifier: MIT */
/* The profile of ONNX Runtime: what is an operator, what is lost, in any portions; and how
 * operators are joined with inferences and pool threads. */
#include <stdio.h>
#include <string.h>

#include "span/profile_reader.h"
#include "test.h"

enum { ME = 100, POOL = 101, MS = 1000000 };

#define NODE(name, ts, dur, more)                                                                 \
    "{\"cat\" : \"Node\",\"pid\" :7,\"tid\" :100,\"dur\" :" dur ",\"ts\" :" ts                    \
    ",\"ph\" : \"X\",\"name\" :\"" name "_kernel_time\",\"args\" : {\"op_name\" : \"MatMul\""     \
    ",\"provider\" : \"CPUExecutionProvider\",\"input_type_shape\" : [{\"float\":[64,256]}]" more \
    "}}"
#define POOL_STATS                                                                        \
    ",\"thread_scheduling_stats\" : {\"main_thread\": {\"block_size\": [1], \"Run\": 4}," \
    "\"sub_threads\": {\"139\": {\"num_run\": 0, \"core\": -1}, \"140\": {\"core\": 1}}}"

struct seen {
    uint32_t count;
    struct etwatch_operator last;
    struct etwatch_span span;
    char node[64], type[64], provider[64], session[64];
};

static void on_operator(void *ctx, const struct etwatch_operator *op)
{
    struct seen *seen = ctx;
    seen->count++;
    seen->last = *op;
    seen->span = *op->span;
    (void)snprintf(seen->node, sizeof seen->node, "%s", op->node);
    (void)snprintf(seen->type, sizeof seen->type, "%s", op->span->name);
    (void)snprintf(seen->provider, sizeof seen->provider, "%s",
                   op->provider == NULL ? "none" : op->provider);
    (void)snprintf(seen->session, sizeof seen->session, "%s",
                   op->span->session == NULL ? "none" : op->span->session);
}

/* Reads a text in portions. */
static struct ew_spans_profile read_all(const char *text, size_t portion, struct seen *seen)
{
    struct ew_spans_profile profile = {
        .pid = ME, .start_ns = 1000, .session = "m.onnx", .on_operator = on_operator, .ctx = seen};
    memset(seen, 0, sizeof *seen);
    for (size_t at = 0, len = strlen(text); at < len; at += portion)
        CHECK_EQ_INT(
            ew_spans_profile_add(&profile, text + at, portion < len - at ? portion : len - at), 0);
    ew_spans_profile_end(&profile);
    return profile;
}

static const char whole[] =
    "[\n"
    "{\"cat\" : \"Session\",\"pid\" :7,\"tid\" :100,\"dur\" :9,\"ts\" :1,\"name\" :\"model_run\","
    "\"args\" : {}},\n" NODE("a", "5", "20", "") ",\n" NODE("b/c", "30", "7", POOL_STATS) "\n]\n";

TEST(nodes_are_operators_in_portions_of_any_size)
{
    for (size_t portion = 1; portion < sizeof whole; portion += 7) {
        struct seen seen;
        struct ew_spans_profile profile = read_all(whole, portion, &seen);
        CHECK_EQ_UINT(seen.count, 2);
        CHECK_EQ_UINT(profile.operators, 2);
        CHECK_EQ_UINT(profile.events, 3);
        CHECK_EQ_UINT(profile.lost, 0);
        CHECK_EQ_STR(seen.node, "b/c");
        CHECK_EQ_STR(seen.type, "MatMul");
        CHECK_EQ_STR(seen.provider, "CPUExecutionProvider");
        CHECK_EQ_STR(seen.session, "m.onnx");
        CHECK_EQ_UINT(seen.span.start_ns, 1000 + 30000);
        CHECK_EQ_UINT(seen.span.end_ns, 1000 + 37000);
        CHECK_EQ_UINT(seen.span.pid, ME);
        CHECK_EQ_UINT(seen.span.tid, 100);
        CHECK_EQ_UINT(seen.last.pool_threads, 3);
        CHECK(seen.last.pool_percent < 0);
    }
}

TEST(what_cannot_be_read_is_counted)
{
    static const struct {
        const char *remark, *text;
        uint32_t operators, lost;
    } rows[] = {
        {"empty: its process was killed", "", 0, 1},
        {"no end", "[\n" NODE("a", "5", "20", "") ",\n", 1, 1},
        {"cut in a line", "[\n" NODE("a", "5", "20", "") ",\n{\"cat\" : \"No", 1, 2},
        {"a name that is not escaped", "[\n" NODE("a\"b", "5", "20", "") ",\n]\n", 0, 1},
        {"a time beyond all times", "[\n" NODE("a", "99999999999999999", "1", "") "\n]\n", 0, 1},
        {"no node", "[\n{\"cat\":\"Kernel\",\"name\":\"x_kernel_time\",\"ts\":1,\"dur\":1}\n]\n", 0,
         0},
        {"another event of a node", "[\n{\"cat\":\"Node\",\"name\":\"x_fence\",\"ts\":1}\n]\n", 0,
         0},
        {"no array", "hello\n", 0, 2},
        {"windows line ends", "[\r\n" NODE("a", "5", "20", "") "\r\n]\r\n", 1, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct seen seen;
        test_row(rows[i].remark);
        struct ew_spans_profile profile = read_all(rows[i].text, 5, &seen);
        CHECK_EQ_UINT(seen.count, rows[i].operators);
        CHECK_EQ_UINT(profile.lost, rows[i].lost);
    }
}

TEST(a_line_beyond_the_limit_is_lost_and_the_next_is_read)
{
    static char text[EW_SPANS_PROFILE_LINE_MAX + 4096];
    struct seen seen;
    memset(text, 'x', EW_SPANS_PROFILE_LINE_MAX + 10);
    (void)snprintf(text + EW_SPANS_PROFILE_LINE_MAX + 10, 2000, "%s",
                   "\n" NODE("a", "5", "20", "") "\n]\n");
    struct ew_spans_profile profile = read_all(text, 4000, &seen);
    CHECK_EQ_UINT(seen.count, 1);
    CHECK_EQ_UINT(profile.lost, 1);
}

/* ------------------------------------------------------------------------ explained */

static void add_event(struct etwatch_spans *spans, uint32_t kind, uint64_t ms, uint32_t tid,
                      uint32_t next)
{
    struct etwatch_event event = {.size = sizeof event,
                                  .kind = kind,
                                  .t_ns = ms * MS,
                                  .pid = tid == 0 ? 0 : ME,
                                  .tid = tid,
                                  .next_pid = next == 0 ? 0 : ME,
                                  .next_tid = next,
                                  .cpu = next == POOL || tid == POOL ? 1 : 0};
    CHECK_EQ_INT(etwatch_spans_add_event(spans, &event), 0);
}

static void add_mark(struct etwatch_spans *spans, uint32_t kind, uint64_t from_ms, uint64_t to_ms)
{
    struct etwatch_span span = {.size = sizeof span,
                                .kind = kind,
                                .pid = ME,
                                .tid = ME,
                                .end_tid = ME,
                                .start_ns = from_ms * MS,
                                .end_ns = to_ms * MS,
                                .name = "run"};
    CHECK_EQ_INT(etwatch_spans_add(spans, &span), 0);
}

static void add_operator(struct etwatch_spans *spans, uint64_t from_ms, uint64_t to_ms)
{
    struct etwatch_span span = {.size = sizeof span,
                                .kind = ETWATCH_SPAN_OPERATOR,
                                .pid = ME,
                                .tid = ME,
                                .end_tid = ME,
                                .start_ns = from_ms * MS,
                                .end_ns = to_ms * MS,
                                .name = "MatMul"};
    struct etwatch_operator op = {
        .size = sizeof op, .pool_threads = 2, .node = "a", .pool_percent = -1, .span = &span};
    CHECK_EQ_INT(etwatch_spans_add_operator(spans, &op), 0);
}

TEST(an_operator_gets_its_inference_and_its_causes)
{
    struct seen seen = {0};
    struct etwatch_spans *spans;
    struct etwatch_spans_options options = {
        .size = sizeof options, .ctx = &seen, .on_operator = on_operator};
    CHECK_EQ_INT(etwatch_spans_new(&options, &spans), 0);
    CHECK_EQ_INT(etwatch_spans_add_process(spans, ME, "python"), 0);
    add_event(spans, ETWATCH_EVENT_SWITCH, 1, 0, ME);
    add_event(spans, ETWATCH_EVENT_SWITCH, 30, ME, 0); /* asleep for 10 ms */
    add_event(spans, ETWATCH_EVENT_SWITCH, 40, 0, ME);
    add_event(spans, ETWATCH_EVENT_SWITCH, 90, ME, 0);
    add_mark(spans, ETWATCH_SPAN_INFERENCE, 10, 20);
    add_mark(spans, ETWATCH_SPAN_INFERENCE, 22, 60);
    CHECK_EQ_INT(etwatch_spans_advance(spans, UINT64_MAX), 0);
    add_operator(spans, 25, 45);
    CHECK_EQ_UINT(seen.count, 1);
    CHECK_EQ_UINT(seen.last.inference_ns, 60 * (uint64_t)MS);
    CHECK_EQ_UINT(seen.span.kind, ETWATCH_SPAN_OPERATOR);
    CHECK_EQ_UINT(seen.span.cpu_ns, 10 * (uint64_t)MS);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++)
        sum += seen.span.ns[i];
    CHECK_EQ_UINT(sum, 20 * (uint64_t)MS);
    CHECK_EQ_UINT(seen.span.ns[ETWATCH_CAUSE_WORK], 10 * (uint64_t)MS);
    CHECK(seen.last.pool_percent < 0); /* no load was seen: which threads are a pool is unknown */
    add_operator(spans, 12, 15);
    CHECK_EQ_UINT(seen.last.inference_ns, 20 * (uint64_t)MS);
    add_operator(spans, 70, 80);
    CHECK_EQ_UINT(seen.last.inference_ns, 0);
    etwatch_spans_free(spans);
}
