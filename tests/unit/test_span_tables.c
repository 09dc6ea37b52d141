/* SPDX-License-Identifier: MIT */
/* Spans, inferences, operators and devices as Arrow tables of a collector, and as lines of JSON and
 * CSV. */
#include "test.h"

#include <string.h>

#include <etwatch/arrow.h>
#include <etwatch/device.h>

#include "arrow_kit.h"
#include "base/buf.h"

static struct etwatch_span a_span(uint32_t kind)
{
    struct etwatch_span span = {
        .size = sizeof span,
        .kind = kind,
        .flags = ETWATCH_SPAN_COMPLETE | ETWATCH_SPAN_HAS_FAULTS,
        .pid = 7,
        .tid = 8,
        .end_tid = 8,
        .start_ns = 1000,
        .end_ns = 1900,
        .name = "run",
        .session = "mlp.onnx",
        .thread_name = "python3",
        .cpu_ns = 500,
        .fault_count = 3,
        .preempted = 2,
        .cause_count = 1,
        .causes = {{.kind = ETWATCH_CAUSE_CPU, .pid = 9, .ns = 400, .name = "ffmpeg"}},
    };
    span.ns[ETWATCH_CAUSE_WORK] = 450;
    span.ns[ETWATCH_CAUSE_CPU] = 400;
    span.ns[ETWATCH_CAUSE_FAULT] = 50;
    return span;
}

static struct etwatch_collector *filled(void)
{
    struct etwatch_collector *collector = NULL;
    CHECK_EQ_INT(etwatch_collector_new(NULL, &collector, NULL), 0);
    struct etwatch_span load = a_span(ETWATCH_SPAN_LOAD), run = a_span(ETWATCH_SPAN_INFERENCE);
    struct etwatch_span work = a_span(ETWATCH_SPAN_WORK), node = a_span(ETWATCH_SPAN_OPERATOR);
    work.session = NULL;
    work.thread_name = NULL;
    work.flags = 0;
    work.cause_count = 0;
    node.name = "MatMul";
    struct etwatch_operator op = {
        .size = sizeof op,
        .pool_threads = 4,
        .node = "dense_1",
        .provider = "CPUExecutionProvider",
        .inference_ns = 1900,
        .pool_percent = 62.5,
        .span = &node,
    };
    etwatch_collector_on_span(collector, &load);
    etwatch_collector_on_span(collector, &run);
    etwatch_collector_on_span(collector, &work);
    etwatch_collector_on_operator(collector, &op);
    op.pool_threads = 0;
    op.inference_ns = 0;
    op.provider = NULL;
    etwatch_collector_on_operator(collector, &op);
    return collector;
}

static int append(void *ctx, const void *bytes, size_t len)
{
    struct ew_buf *text = ctx;
    ew_buf_bytes(text, bytes, len);
    return text->error;
}

static void check_lines(uint32_t table, uint32_t format, const char *type, const char *expected)
{
    struct etwatch_collector *collector = filled();
    struct ArrowArrayStream stream;
    struct ew_buf text;
    ew_buf_init(&text, 0, NULL, NULL);
    CHECK_EQ_INT(etwatch_collector_table(collector, table, 0, &stream), 0);
    CHECK_EQ_INT(etwatch_table_write(&stream, format, type, append, &text, NULL, NULL), 0);
    ew_buf_char(&text, '\0');
    CHECK_EQ_STR(text.data, expected);
    ew_buf_done(&text);
    etwatch_collector_free(collector);
}

#define REST_JSON                                                                                 \
    "\"pid\":7,\"tid\":8,\"thread_name\":\"python3\",\"t_ns\":1900,\"dt_ns\":900,\"cpu_ns\":500," \
    "\"work_ns\":450,\"runq_wait_ns\":400,\"throttled_ns\":0,\"fault_ns\":50,\"disk_wait_ns\":0," \
    "\"lock_wait_ns\":0,\"process_wait_ns\":0,\"sleep_ns\":0,\"unknown_ns\":0,\"helpers\":0,"     \
    "\"helper_cpu_ns\":0,\"helper_runq_wait_ns\":0,\"shared_cpu_ns\":0,\"faults\":3,"             \
    "\"preempted\":2,\"gpu_ns\":null,\"wait_gpu_ns\":null,\"gpu_kernels\":null,"                  \
    "\"failed\":false,\"async\":false,\"complete\":true,\"causes\":[{\"cause\":"                  \
    "\"cpu\",\"pid\":9,\"tid\":null,\"name\":\"ffmpeg\",\"ns\":400}]}\n"

TEST(inferences_are_the_runs_and_loads_of_sessions)
{
    check_lines(ETWATCH_TABLE_INFERENCES, ETWATCH_FORMAT_JSONL, "span",
                "{\"type\":\"span\",\"kind\":\"load\",\"name\":\"run\",\"shape\":null,\"session\":"
                "\"mlp.onnx\"," REST_JSON "{\"type\":\"span\",\"kind\":\"inference\",\"name\":"
                "\"run\",\"shape\":null,\"session\":\"mlp."
                "onnx\"," REST_JSON);
}

TEST(an_operator_has_its_node_its_provider_and_the_use_of_the_pool)
{
    check_lines(
        ETWATCH_TABLE_OPERATORS, ETWATCH_FORMAT_JSONL, NULL,
        "{\"node\":\"dense_1\",\"operator\":\"MatMul\",\"provider\":\"CPUExecutionProvider\","
        "\"inference_t_ns\":1900,\"pool_threads\":4,\"pool_percent\":62.500,"
        "\"session\":\"mlp.onnx\"," REST_JSON
        "{\"node\":\"dense_1\",\"operator\":\"MatMul\",\"provider\":null,"
        "\"inference_t_ns\":null,\"pool_threads\":null,\"pool_percent\":null,"
        "\"session\":\"mlp.onnx\"," REST_JSON);
}

TEST(unknown_page_faults_are_null_in_the_table_of_all_spans)
{
    struct etwatch_collector *collector = filled();
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray batch;
    CHECK_EQ_INT(etwatch_collector_table(collector, ETWATCH_TABLE_SPANS, 0, &stream), 0);
    CHECK_EQ_INT(stream.get_schema(&stream, &schema), 0);
    CHECK_EQ_INT(stream.get_next(&stream, &batch), 0);
    CHECK_EQ_INT(batch.length, 3);
    CHECK_EQ_STR(text_at(batch.children[column_of(&schema, "kind")], 2), "work");
    CHECK_EQ_STR(text_at(batch.children[column_of(&schema, "session")], 2), NULL);
    CHECK(is_null(batch.children[column_of(&schema, "fault_ns")], 2));
    CHECK(is_null(batch.children[column_of(&schema, "faults")], 2));
    CHECK(!is_null(batch.children[column_of(&schema, "fault_ns")], 1));
    CHECK_EQ_INT(number_at(batch.children[column_of(&schema, "fault_ns")], 1), 50);
    batch.release(&batch);
    schema.release(&schema);
    stream.release(&stream);
    etwatch_collector_free(collector);
}

TEST(rows_are_counted_and_taken_once)
{
    struct etwatch_collector *collector = filled();
    struct etwatch_collector_stats stats = {.size = sizeof stats};
    struct ArrowArrayStream stream;
    CHECK_EQ_INT(etwatch_collector_stats(collector, &stats), 0);
    CHECK_EQ_INT(stats.spans, 3);
    CHECK_EQ_INT(stats.inferences, 2);
    CHECK_EQ_INT(stats.operators, 2);
    CHECK_EQ_INT(
        etwatch_collector_table(collector, ETWATCH_TABLE_INFERENCES, ETWATCH_TABLE_TAKE, &stream),
        0);
    CHECK_EQ_INT(drain(&stream, NULL), 2);
    stream.release(&stream);
    CHECK_EQ_INT(etwatch_collector_stats(collector, &stats), 0);
    CHECK_EQ_INT(stats.inferences, 0);
    CHECK_EQ_INT(stats.spans, 3);
    etwatch_collector_free(collector);
}

TEST(an_invalid_span_is_not_a_row)
{
    struct etwatch_collector *collector = filled();
    struct etwatch_collector_stats stats = {.size = sizeof stats};
    struct etwatch_span span = a_span(ETWATCH_SPAN_WORK);
    struct etwatch_operator op = {.size = sizeof op, .node = "n"};
    span.cause_count = ETWATCH_SPAN_CAUSES + 1;
    etwatch_collector_on_span(collector, &span);
    etwatch_collector_on_span(collector, NULL);
    etwatch_collector_on_operator(collector, &op);
    op.span = &span;
    etwatch_collector_on_operator(collector, &op);
    CHECK_EQ_INT(etwatch_collector_stats(collector, &stats), 0);
    CHECK_EQ_INT(stats.spans, 3);
    CHECK_EQ_INT(stats.operators, 2);
    etwatch_collector_free(collector);
}

static int collect(void *ctx)
{
    struct etwatch_collector *collector = NULL;
    struct ArrowArrayStream stream;
    struct etwatch_collector_stats stats = {.size = sizeof stats};
    struct etwatch_span span = a_span(ETWATCH_SPAN_INFERENCE);
    (void)ctx;
    int rc = etwatch_collector_new(NULL, &collector, NULL);
    if (rc < 0)
        return rc;
    etwatch_collector_on_span(collector, &span);
    rc = etwatch_collector_table(collector, ETWATCH_TABLE_SPANS, 0, &stream);
    if (rc == 0)
        stream.release(&stream);
    (void)etwatch_collector_stats(collector, &stats);
    etwatch_collector_free(collector);
    return rc == 0 && stats.dropped > 0 ? ETWATCH_ENOMEM : rc;
}

TEST(a_failed_allocation_loses_rows_and_counts_them)
{
    TORTURE(collect, NULL);
}

TEST(a_reading_of_a_device_is_a_row_and_what_is_unknown_is_null)
{
    struct etwatch_collector *collector = NULL;
    struct etwatch_collector_stats stats = {.size = sizeof stats};
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray batch;
    struct etwatch_device items[2] = {{.size = sizeof items[0],
                                       .kind = ETWATCH_DEVICE_GPU,
                                       .index = 1,
                                       .t_ns = 1900,
                                       .dt_ns = 900,
                                       .driver = "nvml",
                                       .id = "0000:41:00.0",
                                       .energy_uj = 77,
                                       .util_percent = 12.5},
                                      {.size = sizeof items[0],
                                       .kind = ETWATCH_DEVICE_ENERGY,
                                       .flags = ETWATCH_DEVICE_PROBLEM,
                                       .t_ns = 2000,
                                       .driver = "powercap",
                                       .problem = "no energy meter"}};
    etwatch_metric_set_add(&items[0].has, ETWATCH_D_energy_uj);
    etwatch_metric_set_add(&items[0].has, ETWATCH_D_util_percent);
    etwatch_metric_set_add(&items[0].estimated, ETWATCH_D_busy_ns);
    etwatch_metric_set_add(&items[0].estimated, ETWATCH_D_energy_uj);
    const struct etwatch_devices devices = etwatch_devices_of(items, 2);
    CHECK_EQ_INT(etwatch_collector_new(NULL, &collector, NULL), 0);
    etwatch_collector_on_devices(collector, &devices);
    CHECK_EQ_INT(etwatch_collector_stats(collector, &stats), 0);
    CHECK_EQ_UINT(stats.devices, 2);
    CHECK_EQ_STR(etwatch_table_name(ETWATCH_TABLE_DEVICES), "devices");
    CHECK_EQ_INT(etwatch_collector_table(collector, ETWATCH_TABLE_DEVICES, 0, &stream), 0);
    CHECK_EQ_INT(stream.get_schema(&stream, &schema), 0);
    CHECK_EQ_INT(stream.get_next(&stream, &batch), 0);
    CHECK_EQ_INT(batch.length, 2);
#define COLUMN(name) batch.children[column_of(&schema, (name))]
    CHECK_EQ_STR(text_at(COLUMN("kind"), 0), "gpu");
    CHECK_EQ_STR(text_at(COLUMN("driver"), 1), "powercap");
    CHECK_EQ_STR(text_at(COLUMN("id"), 0), "0000:41:00.0");
    CHECK(is_null(COLUMN("id"), 1));
    CHECK(is_null(COLUMN("name"), 0));
    CHECK(is_null(COLUMN("index"), 1));
    CHECK_EQ_INT(number_at(COLUMN("t_ns"), 0), 1900);
    CHECK_EQ_INT(number_at(COLUMN("dt_ns"), 0), 900);
    CHECK_EQ_INT(number_at(COLUMN("energy_uj"), 0), 77);
    CHECK_NEAR(((const double *)COLUMN("util_percent")->buffers[1])[0], 12.5, 1e-12);
    for (uint32_t i = 0; i < 2; i++)
        CHECK(is_null(COLUMN("power_watts"), i));
    CHECK(is_null(COLUMN("energy_uj"), 1));
    CHECK_EQ_STR(text_at(COLUMN("estimated"), 0), "busy_ns,energy_uj");
    CHECK_EQ_STR(text_at(COLUMN("estimated"), 1), "");
    CHECK(is_null(COLUMN("problem"), 0));
    CHECK_EQ_STR(text_at(COLUMN("problem"), 1), "no energy meter");
#undef COLUMN
    batch.release(&batch);
    schema.release(&schema);
    stream.release(&stream);
    etwatch_collector_free(collector);
}
