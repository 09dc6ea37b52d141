/* SPDX-License-Identifier: MIT */
/*
 * The input is a recording that is exported completely: stacks of its samples, slices of its
 * switches, its events as a table with typed fields. For any input, every sample is in the stacks,
 * a slice does not end before it begins, and every column is as long as its batch.
 */
#include <string.h>

#include <etwatch/arrow.h>

#include "base/alloc.h"
#include "export/export.h"
#include "fuzz.h"
#include "recording/trace.h"

enum { CPUS = 65536, OUT_MAX = 1 << 20 };

static int drop(void *ctx, const void *bytes, size_t len)
{
    (void)ctx;
    (void)touch(bytes, len);
    return 0;
}

/* Like etwatch_trace_open, for bytes in memory. NULL: they are not a recording. */
static struct etwatch_trace *open_bytes(const uint8_t *data, size_t size)
{
    struct ew_etl_options options = {.workers = 1, .window_bytes = 1 << 20};
    struct ew_error error;
    struct etwatch_trace *trace = ew_calloc(1, sizeof *trace);
    require(trace != NULL, "memory");
    ew_recording_history_init(&trace->history);
    ew_trace_fields_init(&trace->fields);
    trace->options.size = sizeof trace->options;
    if (ew_etl_open_memory(data, size, &options, &trace->reader, &error) < 0) {
        etwatch_trace_free(trace);
        return NULL;
    }
    trace->on_cpu = ew_calloc(CPUS, sizeof *trace->on_cpu);
    require(ew_decoder_new(&trace->decoder) == 0 && trace->on_cpu != NULL, "memory");
    trace->unix_minus_raw_ns = ew_etl_unix_minus_raw_ns(trace->reader);
    return trace;
}

static void export_stacks(const uint8_t *data, size_t size)
{
    struct etwatch_trace *all = open_bytes(data, size), *selected = open_bytes(data, size);
    struct ew_stacks_counts counts;
    struct ew_flame flame;
    struct ew_buf out;
    uint64_t sum = 0;
    ew_flame_init(&flame);
    ew_buf_init(&out, OUT_MAX, drop, NULL);
    out.flush_at = 1;
    require(ew_stacks_read(all, selected, &flame, &counts) == 0, "stacks are read");
    for (uint32_t i = 0; i < flame.node_count; i++)
        sum += flame.nodes[i].count;
    require(sum + counts.refused == counts.samples, "every sample is counted");
    require(counts.with_stack <= counts.samples, "every stack belongs to a sample");
    ew_flame_put_folded(&flame, &out);
    ew_flame_put_speedscope(&flame, &out, "fuzz");
    require(out.error == 0, "stacks are written");
    ew_buf_done(&out);
    ew_flame_done(&flame);
    etwatch_trace_free(all);
    etwatch_trace_free(selected);
}

static void export_timeline(const uint8_t *data, size_t size)
{
    struct etwatch_trace *trace = open_bytes(data, size);
    struct ew_selection all = {0};
    struct ew_buf out;
    uint64_t slices = 0;
    ew_buf_init(&out, OUT_MAX, drop, NULL);
    out.flush_at = 1;
    require(ew_timeline_chrome(trace, &all, &out, &slices) == 0, "slices are written");
    ew_buf_done(&out);
    etwatch_trace_free(trace);
}

static void export_events(const uint8_t *data, size_t size, uint32_t flags)
{
    struct etwatch_trace *trace = open_bytes(data, size);
    struct etwatch_table_options options = {
        .size = sizeof options, .flags = flags, .batch_rows = 100};
    struct ArrowArrayStream stream;
    struct ew_error error;
    uint64_t rows = 0;
    int rc = ew_table_events(trace, &options, NULL, &stream, &error);
    require(rc == 0 || rc == ETWATCH_ELIMIT, "a table is made");
    if (rc < 0) {
        etwatch_trace_free(trace);
        return;
    }
    require(etwatch_arrow_write(&stream, drop, NULL, &rows, NULL) == 0, "a table is written");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct etwatch_trace *trace = open_bytes(data, size);
    if (trace == NULL)
        return 0;
    etwatch_trace_free(trace);
    export_stacks(data, size);
    export_timeline(data, size);
    export_events(data, size, ETWATCH_TABLE_TYPED | ETWATCH_TABLE_PAYLOAD);
    export_events(data, size, ETWATCH_TABLE_FIELDS);
    return 0;
}
