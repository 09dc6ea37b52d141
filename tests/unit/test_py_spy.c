/* SPDX-License-Identifier: MIT */
/* What py-spy wrote: threads, stacks, its time, and the join with what the kernel saw. */
#include <string.h>

#include "cli/py_spy.c"
#include "test.h"

enum { ME = 100, MS = 1000000 };

#define EVENT(phase, name, us)                                                               \
    "{\"args\":{\"filename\":\"/a/b.py\",\"line\":null},\"cat\":\"py-spy\",\"name\":\"" name \
    "\",\"ph\":\"" phase "\",\"pid\":100,\"tid\":7,\"ts\":" us "}"

/* The clock says 50 ms at 10 ms: py-spy began at 40 ms. */
static const char sampled[] = "[" EVENT("B", "process 100:\\\"python secret\\\"",
                                        "10000") "," EVENT("B", "thread (100): Main", "10000") //
    "," EVENT("B", "main", "10000") "," EVENT("B", "etwatch_clock_50000000", "10000")          //
    "," EVENT("E", "etwatch_clock_50000000", "15000") "," EVENT("B", "a;b", "15000")           //
    "," EVENT("E", "a;b", "25000") "," EVENT("E", "main", "30000") "]";

static uint64_t weight_of(const struct ew_py_spy_table *table, const char *text)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (strcmp(table->texts[i].text, text) == 0)
            return table->texts[i].weight;
    return 0;
}

TEST(stacks_and_the_start_are_read)
{
    struct ew_py_spy spy;
    CHECK_EQ_INT(ew_py_spy_parse(&spy, sampled, sizeof sampled - 1), 0);
    CHECK_EQ_UINT(spy.start_ns, 40 * (uint64_t)MS);
    CHECK_EQ_UINT(spy.lost, 0);
    CHECK_EQ_UINT(spy.part_count, 4);
    CHECK_EQ_UINT(spy.parts[0].tid, 100);
    CHECK_EQ_UINT(spy.parts[1].from_us, 15000);
    CHECK_EQ_STR(spy.stacks->texts[spy.parts[1].stack].text, "main (b.py);a:b (b.py)");
    CHECK_EQ_STR(spy.stacks->texts[spy.parts[2].stack].text, "main (b.py)");
    CHECK_EQ_UINT(spy.parts[3].stack, UINT32_MAX);
    ew_py_spy_done(&spy);
}

TEST(broken_text_is_an_error_and_other_events_are_lost)
{
    struct ew_py_spy spy;
    CHECK(ew_py_spy_parse(&spy, "[{\"name\":", 9) < 0);
    ew_py_spy_done(&spy);
    CHECK(ew_py_spy_parse(&spy, "", 0) < 0);
    ew_py_spy_done(&spy);
    CHECK_EQ_INT(ew_py_spy_parse(&spy, "[{\"ph\":\"X\",\"ts\":1},7]", 21), ETWATCH_EFORMAT);
    CHECK_EQ_UINT(spy.lost, 1);
    ew_py_spy_done(&spy);
}

TEST(samples_are_joined_with_the_states_of_the_thread)
{
    struct ew_py_spy spy;
    struct etwatch_spans *spans;
    struct ew_py_spy_table *folded = ew_py_spy_table_new();
    struct etwatch_event event = {.size = sizeof event, .kind = ETWATCH_EVENT_SWITCH};
    static const struct {
        uint64_t ms;
        uint32_t from, to;
    } switches[] = {{45, 0, ME}, {57, ME, 0}, {60, 0, ME}, {90, ME, 0}};
    CHECK_EQ_INT(ew_py_spy_parse(&spy, sampled, sizeof sampled - 1), 0);
    CHECK_EQ_INT(etwatch_spans_new(NULL, &spans), 0);
    CHECK_EQ_INT(etwatch_spans_add_process(spans, ME, "python"), 0);
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        event.t_ns = 1000 * (uint64_t)MS + switches[i].ms * MS; /* Unix time */
        event.pid = event.tid = switches[i].from;
        event.next_pid = event.next_tid = switches[i].to;
        event.state = switches[i].from == ME; /* asleep */
        event.io_wait = event.in_fault = event.throttled = 1;
        CHECK_EQ_INT(etwatch_spans_add_event(spans, &event), 0);
    }
    /* From 46 ms: 4 ms before the first sample, then 5 of the clock, 10 of a;b, 5 of main. */
    struct etwatch_span span = {.size = sizeof span,
                                .pid = ME,
                                .tid = ME,
                                .start_ns = 1046 * (uint64_t)MS,
                                .end_ns = 1072 * (uint64_t)MS,
                                .name = "run",
                                .session = "m.onnx"};
    ew_py_spy_join(&spy, spans, &span, 1000 * (int64_t)MS, folded);
    CHECK_EQ_UINT(weight_of(folded, "run of m.onnx;on a CPU;no sample"), 4000 + 2000);
    CHECK_EQ_UINT(
        weight_of(folded, "run of m.onnx;on a CPU;main (b.py);etwatch_clock_50000000 (b.py)"),
        5000);
    CHECK_EQ_UINT(weight_of(folded, "run of m.onnx;on a CPU;main (b.py);a:b (b.py)"), 2000 + 5000);
    CHECK_EQ_UINT(weight_of(folded, "run of m.onnx;asleep;main (b.py);a:b (b.py)"), 3000);
    CHECK_EQ_UINT(weight_of(folded, "run of m.onnx;on a CPU;main (b.py)"), 5000);
    struct ew_buf out;
    ew_buf_init(&out, 0, NULL, NULL);
    ew_py_spy_write(folded, &out);
    ew_buf_char(&out, '\0');
    CHECK_CONTAINS(out.data, "run of m.onnx;asleep;main (b.py);a:b (b.py) 3000\n");
    ew_buf_done(&out);
    ew_py_spy_table_free(folded);
    etwatch_spans_free(spans);
    ew_py_spy_done(&spy);
}
