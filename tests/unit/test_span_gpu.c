/* SPDX-License-Identifier: MIT */
/* GPU operations are joined with the span that launched them, and what is not known is not zero. */
#include <etwatch/span.h>

#include <stdio.h>
#include <string.h>

#include "span/gpu_ops.h"
#include "test.h"

enum { PID = 10, TID = 11, OTHER = 12 };

static struct etwatch_gpu_op op_of(uint32_t kind, uint32_t tid, uint64_t call_ns, uint64_t start_ns,
                                   uint64_t end_ns)
{
    return (struct etwatch_gpu_op){
        .size = sizeof(struct etwatch_gpu_op),
        .kind = kind,
        .flags = tid != 0 ? (uint32_t)ETWATCH_GPU_OP_HAS_CALL : 0,
        .pid = PID,
        .tid = tid,
        .start_ns = start_ns,
        .end_ns = end_ns,
        .call_start_ns = call_ns,
        .call_end_ns = call_ns + 5,
    };
}

struct seen {
    struct etwatch_span spans[8];
    uint32_t count;
};

static void on_span(void *ctx, const struct etwatch_span *span)
{
    struct seen *seen = ctx;
    if (seen->count < 8)
        seen->spans[seen->count++] = *span;
}

static struct etwatch_spans *spans_of(struct seen *seen, uint64_t history_ns)
{
    struct etwatch_spans_options options = {
        .size = sizeof options, .history_ns = history_ns, .ctx = seen, .on_span = on_span};
    struct etwatch_spans *spans = NULL;
    memset(seen, 0, sizeof *seen);
    CHECK_EQ_INT(etwatch_spans_new(&options, &spans), 0);
    return spans;
}

static void add_span(struct etwatch_spans *spans, uint32_t flags, uint64_t start_ns,
                     uint64_t end_ns)
{
    struct etwatch_span span = {.size = sizeof span,
                                .kind = ETWATCH_SPAN_INFERENCE,
                                .flags = flags,
                                .pid = PID,
                                .tid = TID,
                                .end_tid = (flags & ETWATCH_SPAN_ASYNC) != 0 ? OTHER : TID,
                                .start_ns = start_ns,
                                .end_ns = end_ns,
                                .name = "run"};
    CHECK_EQ_INT(etwatch_spans_add(spans, &span), 0);
}

static void add_op(struct etwatch_spans *spans, struct etwatch_gpu_op op)
{
    CHECK_EQ_INT(etwatch_spans_add_gpu_op(spans, &op), 0);
}

static void add_process(struct etwatch_spans *spans, uint32_t state, uint64_t lost)
{
    struct etwatch_gpu_process process = {
        .size = sizeof process, .pid = PID, .state = state, .lost = lost, .last_ns = 2000000000};
    CHECK_EQ_INT(etwatch_spans_add_gpu_process(spans, &process), 0);
}

TEST(own_operations_are_united_by_device)
{
    struct seen seen;
    struct etwatch_spans *spans = spans_of(&seen, 0);
    add_process(spans, ETWATCH_GPU_ACTIVE, 0);
    add_span(spans, 0, 1000, 2000);
    /* In any order; 100 to 300 of device 0 is covered twice, device 1 counts on its own. */
    add_op(spans, op_of(ETWATCH_GPU_COPY, TID, 1900, 2100, 2300));
    add_op(spans, op_of(ETWATCH_GPU_KERNEL, TID, 1100, 1200, 1500));
    struct etwatch_gpu_op second = op_of(ETWATCH_GPU_KERNEL, TID, 1150, 1400, 1600);
    add_op(spans, second);
    second.device = 1;
    add_op(spans, second);
    add_op(spans, op_of(ETWATCH_GPU_KERNEL, OTHER, 1300, 1700, 1800)); /* another thread */
    add_op(spans, op_of(ETWATCH_GPU_KERNEL, TID, 999, 1000, 1100));    /* before */
    add_op(spans, op_of(ETWATCH_GPU_KERNEL, TID, 2001, 2100, 2200));   /* after */
    add_op(spans, op_of(ETWATCH_GPU_WAIT, TID, 1800, 1800, 2500)); /* until the end of the span */
    CHECK_EQ_INT(etwatch_spans_advance(spans, UINT64_MAX), 0);
    CHECK_EQ_INT(seen.count, 1);
    CHECK(seen.spans[0].flags & ETWATCH_SPAN_HAS_GPU);
    CHECK_EQ_INT(seen.spans[0].gpu_ns, 400 + 200 + 200);
    CHECK_EQ_INT(seen.spans[0].gpu_kernels, 3);
    CHECK_EQ_INT(seen.spans[0].wait_gpu_ns, 200);
    struct etwatch_span_group group = {.size = sizeof group};
    CHECK_EQ_INT(etwatch_spans_group(spans, 0, &group), 0);
    CHECK_EQ_INT(group.gpu_ns, 800);
    CHECK_EQ_INT(group.gpu_kernels, 3);
    CHECK(group.flags & ETWATCH_SPAN_HAS_GPU);
    etwatch_spans_free(spans);
}

TEST(a_copy_that_its_call_waited_for_is_a_wait)
{
    struct seen seen;
    struct etwatch_spans *spans = spans_of(&seen, 0);
    struct etwatch_gpu_op copy = op_of(ETWATCH_GPU_COPY, TID, 1100, 1200, 1500);
    add_process(spans, ETWATCH_GPU_ACTIVE, 0);
    add_span(spans, 0, 1000, 2000);
    copy.call_end_ns = 1510;
    copy.call = "cudaMemcpy";
    add_op(spans, copy);
    copy.call = "cudaMemcpyAsync";
    add_op(spans, copy);
    CHECK_EQ_INT(etwatch_spans_advance(spans, UINT64_MAX), 0);
    CHECK_EQ_INT(seen.spans[0].wait_gpu_ns, 400);
    CHECK_EQ_INT(seen.spans[0].gpu_ns, 300);
    etwatch_spans_free(spans);
}

TEST(an_asynchronous_span_has_the_operations_of_the_thread_that_ends_it)
{
    struct seen seen;
    struct etwatch_spans *spans = spans_of(&seen, 0);
    add_process(spans, ETWATCH_GPU_ACTIVE, 0);
    add_span(spans, ETWATCH_SPAN_ASYNC, 1000, 2000);
    add_op(spans, op_of(ETWATCH_GPU_KERNEL, OTHER, 1300, 1700, 1800));
    CHECK_EQ_INT(etwatch_spans_advance(spans, UINT64_MAX), 0);
    CHECK_EQ_INT(seen.spans[0].gpu_ns, 100);
    etwatch_spans_free(spans);
}

/* What makes the figures of a span unknown. */
TEST(what_is_not_known_is_marked)
{
    static const struct {
        const char *remark;
        uint32_t state;
        uint64_t lost, start_ns;
        bool traced, unjoined, known;
    } rows[] = {
        {"complete", ETWATCH_GPU_ACTIVE, 0, 1000, true, false, true},
        {"closed", ETWATCH_GPU_CLOSED, 0, 1000, true, false, true},
        {"no trace of the process", 0, 0, 1000, false, false, false},
        {"CUPTI failed", ETWATCH_GPU_FAILED, 0, 1000, true, false, false},
        {"another profiler took CUPTI", ETWATCH_GPU_TAKEN, 0, 1000, true, false, false},
        {"not started yet", ETWATCH_GPU_STARTING, 0, 1000, true, false, false},
        {"records were lost", ETWATCH_GPU_ACTIVE, 1, 1000, true, false, false},
        {"an operation without its call", ETWATCH_GPU_ACTIVE, 0, 1000, true, true, false},
        {"ended, long before its last record", ETWATCH_GPU_CUT, 0, 1000, true, false, true},
        {"ended, within a flush of its last record", ETWATCH_GPU_CUT, 0, 1950000000, true, false,
         false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct seen seen;
        struct etwatch_spans *spans = spans_of(&seen, 0);
        uint64_t start_ns = rows[i].start_ns;
        if (rows[i].traced)
            add_process(spans, rows[i].state, rows[i].lost);
        add_span(spans, 0, start_ns, start_ns + 1000);
        add_op(spans, op_of(ETWATCH_GPU_KERNEL, rows[i].unjoined ? 0 : TID, start_ns + 100,
                            start_ns + 200, start_ns + 300));
        CHECK_EQ_INT(etwatch_spans_advance(spans, UINT64_MAX), 0);
        bool known = (seen.spans[0].flags & ETWATCH_SPAN_HAS_GPU) != 0;
        if (known != rows[i].known)
            printf("# %s\n", rows[i].remark);
        CHECK_EQ_INT(known, rows[i].known);
        CHECK_EQ_INT(seen.spans[0].gpu_ns, rows[i].known ? 100 : 0);
        etwatch_spans_free(spans);
    }
}

TEST(late_operations_are_counted_and_forgotten_ones_make_a_span_unknown)
{
    struct seen seen;
    struct etwatch_spans *spans = spans_of(&seen, 1000);
    add_process(spans, ETWATCH_GPU_ACTIVE, 0);
    add_op(spans, op_of(ETWATCH_GPU_KERNEL, TID, 1100, 1200, 1300));
    CHECK_EQ_INT(etwatch_spans_advance(spans, 5000), 0); /* drops what is older than 4000 */
    CHECK_EQ_INT(etwatch_spans_late_gpu_ops(spans), 0);
    add_op(spans, op_of(ETWATCH_GPU_KERNEL, TID, 4500, 4600, 4700));
    CHECK_EQ_INT(etwatch_spans_late_gpu_ops(spans), 1);
    add_span(spans, 0, 1000, 6000);
    add_span(spans, 0, 5500, 6000);
    CHECK_EQ_INT(etwatch_spans_advance(spans, UINT64_MAX), 0);
    CHECK_EQ_INT(seen.count, 2);
    CHECK((seen.spans[0].flags & ETWATCH_SPAN_HAS_GPU) == 0 ||
          (seen.spans[1].flags & ETWATCH_SPAN_HAS_GPU) == 0);
    for (uint32_t i = 0; i < 2; i++)
        CHECK_EQ_INT((seen.spans[i].flags & ETWATCH_SPAN_HAS_GPU) != 0,
                     seen.spans[i].start_ns == 5500);
    etwatch_spans_free(spans);
}

TEST(the_list_is_bounded)
{
    struct seen seen;
    struct etwatch_spans *spans = spans_of(&seen, 0);
    add_process(spans, ETWATCH_GPU_ACTIVE, 0);
    for (uint64_t i = 0; i < EW_SPANS_GPU_OPS_MAX + 10; i++)
        add_op(spans, op_of(ETWATCH_GPU_KERNEL, TID, 1000 + i * 10, 1001 + i * 10, 1002 + i * 10));
    uint64_t end_ns = 1000 + (uint64_t)(EW_SPANS_GPU_OPS_MAX + 10) * 10;
    add_span(spans, 0, 1000, end_ns);
    add_span(spans, 0, end_ns - 1000, end_ns);
    CHECK_EQ_INT(etwatch_spans_advance(spans, UINT64_MAX), 0);
    for (uint32_t i = 0; i < 2; i++) {
        bool whole = seen.spans[i].start_ns == 1000;
        CHECK_EQ_INT((seen.spans[i].flags & ETWATCH_SPAN_HAS_GPU) != 0, !whole);
        CHECK_EQ_INT(seen.spans[i].gpu_kernels, whole ? 0 : 100);
    }
    etwatch_spans_free(spans);
}

TEST(a_sliding_window_has_the_sums_of_what_is_left)
{
    struct seen seen;
    struct etwatch_spans *spans = spans_of(&seen, 0);
    struct etwatch_span_group all = {.size = sizeof all}, left = {.size = sizeof left};
    add_process(spans, ETWATCH_GPU_ACTIVE, 0);
    add_span(spans, ETWATCH_SPAN_FAILED, 1000, 2000);
    add_span(spans, 0, 3000, 4000);
    add_span(spans, ETWATCH_SPAN_FAILED, 5000, 8000);
    add_op(spans, op_of(ETWATCH_GPU_KERNEL, TID, 1100, 1200, 1300));
    add_op(spans, op_of(ETWATCH_GPU_KERNEL, TID, 5100, 5200, 5600));
    CHECK_EQ_INT(etwatch_spans_advance(spans, UINT64_MAX), 0);
    CHECK_EQ_INT(etwatch_spans_group(spans, 0, &all), 0);
    CHECK_EQ_INT(etwatch_spans_forget(spans, 2000), 0); /* the border is inside */
    CHECK_EQ_INT(etwatch_spans_group(spans, 0, &left), 0);
    CHECK_EQ_INT(left.count, 3);
    CHECK_EQ_MEM(&left, &all, sizeof left);
    CHECK_EQ_INT(etwatch_spans_forget(spans, 4000), 0);
    CHECK_EQ_INT(etwatch_spans_group(spans, 0, &left), 0);
    CHECK_EQ_INT(left.count, 2);
    CHECK_EQ_INT(left.failed, 1);
    CHECK_EQ_INT(left.first_ns, 3000);
    CHECK_EQ_INT(left.last_ns, 8000);
    CHECK_EQ_INT(left.max_ns, 3000);
    CHECK_EQ_INT(left.mean_ns, 2000);
    CHECK_EQ_INT(left.gpu_ns, 400);
    CHECK_EQ_INT(left.gpu_kernels, 1);
    CHECK_EQ_INT(etwatch_spans_forget(spans, 9000), 0);
    CHECK_EQ_INT(etwatch_spans_group(spans, 0, &left), 0);
    CHECK_EQ_INT(left.count, 0);
    CHECK_EQ_INT(etwatch_spans_forget(NULL, 1), ETWATCH_EINVAL);
    etwatch_spans_free(spans);
}

TEST(nonsense_is_refused)
{
    struct seen seen;
    struct etwatch_spans *spans = spans_of(&seen, 0);
    struct etwatch_gpu_op op = op_of(ETWATCH_GPU_KERNEL, TID, 1, 20, 10);
    CHECK_EQ_INT(etwatch_spans_add_gpu_op(spans, &op), ETWATCH_EINVAL);
    op = op_of(99, TID, 1, 2, 3);
    CHECK_EQ_INT(etwatch_spans_add_gpu_op(spans, &op), ETWATCH_EINVAL);
    op = op_of(ETWATCH_GPU_RANGE, TID, 1, 2, 3);
    CHECK_EQ_INT(etwatch_spans_add_gpu_op(spans, &op), 0);
    CHECK_EQ_INT(etwatch_spans_add_gpu_op(NULL, &op), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_spans_add_gpu_process(spans, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_spans_late_gpu_ops(NULL), 0);
    etwatch_spans_free(spans);
}
