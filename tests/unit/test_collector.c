/* SPDX-License-Identifier: MIT */
/* The collector: a monitor's output in tables; what is kept, dropped and taken out. */
#include "test.h"

#include <string.h>

#include <etwatch/arrow.h>

#include "arrow_kit.h"
#include "sample_maker.h"

static struct etwatch_collector *new_collector(uint64_t max_rows)
{
    struct etwatch_table_options options = {.size = sizeof options, .max_rows = max_rows};
    struct etwatch_collector *collector = NULL;
    CHECK_EQ_INT(etwatch_collector_new(&options, &collector, NULL), 0);
    return collector;
}

TEST(a_collector_keeps_samples_in_tables_that_can_be_read_repeatedly)
{
    struct etwatch_collector *collector = new_collector(0);
    struct etwatch_sample samples[] = {
        make_sample(ETWATCH_TYPE_START, 12, "python", 0),
        make_sample(ETWATCH_TYPE_SAMPLE, 12, "python", 100),
        make_sample(ETWATCH_TYPE_THREAD, 12, "python", 100),
        make_sample(ETWATCH_TYPE_SAMPLE, 13, NULL, 100),
        make_sample(ETWATCH_TYPE_EXIT, 12, "python", 200),
    };
    samples[2].tid = 14;
    samples[1].has = EW_METRICS(ETWATCH_M_cpu_ns);
    samples[1].cpu_ns = 5000;
    etwatch_collector_on_samples(collector, samples, 5);
    struct etwatch_event event = {.kind = ETWATCH_EVENT_SWITCH, .t_ns = 9, .tid = 1, .next_tid = 2};
    etwatch_collector_on_events(collector, &event, 1);
    struct etwatch_collector_stats stats = {.size = sizeof stats};
    CHECK_EQ_INT(etwatch_collector_stats(collector, &stats), 0);
    CHECK_EQ_UINT(stats.samples, 2);
    CHECK_EQ_UINT(stats.thread_samples, 1);
    CHECK_EQ_UINT(stats.processes, 1);
    CHECK_EQ_UINT(stats.events, 1);
    struct ArrowArrayStream first, second;
    CHECK_EQ_INT(etwatch_collector_table(collector, ETWATCH_TABLE_SAMPLES, 0, &first), 0);
    CHECK_EQ_INT(
        etwatch_collector_table(collector, ETWATCH_TABLE_SAMPLES, ETWATCH_TABLE_TAKE, &second), 0);
    etwatch_collector_free(collector);
    struct ArrowSchema schema;
    struct ArrowArray batch;
    CHECK_EQ_INT(first.get_schema(&first, &schema), 0);
    CHECK_EQ_INT(first.get_next(&first, &batch), 0);
    first.release(&first);
    CHECK_EQ_INT(batch.length, 2);
    const struct ArrowArray *cpu = batch.children[column_of(&schema, "cpu_ns")];
    CHECK_EQ_INT(number_at(cpu, 0), 5000);
    CHECK(is_null(cpu, 1));
    CHECK_EQ_STR(text_at(batch.children[column_of(&schema, "name")], 0), "python");
    CHECK_EQ_STR(text_at(batch.children[column_of(&schema, "name")], 1), NULL);
    CHECK_EQ_STR(text_at(batch.children[column_of(&schema, "source")], 1), "ebpf");
    CHECK_EQ_STR(schema.children[column_of(&schema, "affinity")]->format, "L");
    CHECK_EQ_STR(schema.children[column_of(&schema, "t_ns")]->format, "l");
    batch.release(&batch);
    schema.release(&schema);
    CHECK_EQ_UINT(drain(&second, NULL), 2);
    second.release(&second);
}

TEST(a_collector_drops_the_oldest_rows_and_counts_them)
{
    struct etwatch_collector *collector = new_collector(1600);
    for (uint32_t i = 0; i < 10000; i++) {
        struct etwatch_sample sample = make_sample(ETWATCH_TYPE_SAMPLE, i, "x", i);
        etwatch_collector_on_samples(collector, &sample, 1);
    }
    struct etwatch_collector_stats stats = {.size = sizeof stats};
    CHECK_EQ_INT(etwatch_collector_stats(collector, &stats), 0);
    CHECK(stats.samples <= 1600 && stats.samples >= 1400);
    CHECK_EQ_UINT(stats.samples + stats.dropped, 10000);
    struct ArrowArrayStream stream;
    struct ArrowArray batch;
    CHECK_EQ_INT(etwatch_collector_table(collector, ETWATCH_TABLE_SAMPLES, 0, &stream), 0);
    CHECK_EQ_INT(stream.get_next(&stream, &batch), 0);
    CHECK_EQ_UINT(((const uint32_t *)batch.children[0]->buffers[1])[0], stats.dropped);
    batch.release(&batch);
    stream.release(&stream);
    etwatch_collector_free(collector);
}

static void collect_steadily(void *ctx)
{
    struct etwatch_sample sample = make_sample(ETWATCH_TYPE_SAMPLE, 1, "steady", 1);
    for (int i = 0; i < 1000; i++)
        etwatch_collector_on_samples(ctx, &sample, 1);
}

TEST(collecting_allocates_nothing_per_row)
{
    struct etwatch_collector *collector = new_collector(0);
    collect_steadily(collector);
    CHECK(test_count_allocations(collect_steadily, collector) < 100);
    etwatch_collector_free(collector);
}

TEST(a_collector_refuses_tables_it_does_not_have)
{
    struct etwatch_collector *collector = new_collector(0);
    struct ArrowArrayStream stream;
    struct etwatch_table_options options = {.size = sizeof options, .hz = 5000};
    struct etwatch_error_info error = {.size = sizeof error};
    CHECK_EQ_INT(etwatch_collector_table(collector, ETWATCH_TABLE_IMAGES, 0, &stream),
                 ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_collector_table(collector, ETWATCH_TABLE_SAMPLES, 1, &stream),
                 ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_collector_table(NULL, ETWATCH_TABLE_SAMPLES, 0, &stream), ETWATCH_EINVAL);
    etwatch_collector_free(collector);
    CHECK_EQ_INT(etwatch_collector_new(&options, &collector, &error), ETWATCH_EINVAL);
    CHECK_CONTAINS(error.message, "hz");
    etwatch_collector_free(NULL);
}
