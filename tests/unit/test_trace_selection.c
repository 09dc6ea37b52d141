/* SPDX-License-Identifier: MIT */
/*
 * Which processes of a Perfetto trace are reported when some are selected: those and their
 * descendants.
 */
#include <stdio.h>
#include <string.h>

#include <etwatch/sink.h>
#include <etwatch/trace.h>

#include "system.h"
#include "test.h"

struct reported {
    uint32_t pids[8];
    uint32_t count;
};

static int put_bytes(void *ctx, const void *bytes, size_t size)
{
    return fwrite(bytes, 1, size, ctx) == size ? 0 : ETWATCH_EOS;
}

static int take_process(void *ctx, const struct etwatch_sample *process,
                        const struct etwatch_metric_set *estimated)
{
    struct reported *reported = ctx;
    (void)estimated;
    if (reported->count < sizeof reported->pids / sizeof reported->pids[0])
        reported->pids[reported->count++] = process->pid;
    return 0;
}

static struct etwatch_sample start_of(uint32_t pid, uint32_t ppid)
{
    return (struct etwatch_sample){
        .size = sizeof(struct etwatch_sample),
        .type = ETWATCH_TYPE_START,
        .source = ETWATCH_SOURCE_EBPF,
        .flags = ETWATCH_SAMPLE_COMPLETE | ETWATCH_SAMPLE_HAS_PPID,
        .pid = pid,
        .ppid = ppid,
        .start_ns = 1700000000000000000u + pid,
        .t_ns = 1700000001000000000u,
        .name = "worker",
    };
}

static void report_of(const char *path, uint32_t pid, struct reported *ret_reported)
{
    struct etwatch_trace_options options = {.size = sizeof options, .pids = &pid, .pid_count = 1};
    struct etwatch_report_callbacks callbacks = {
        .size = sizeof callbacks, .on_process = take_process, .ctx = ret_reported};
    struct etwatch_trace *trace = NULL;
    *ret_reported = (struct reported){0};
    CHECK_EQ_INT(etwatch_trace_open(&path, 1, &options, &trace, NULL), 0);
    CHECK_EQ_INT(etwatch_trace_report(trace, &callbacks, NULL, NULL), 0);
    etwatch_trace_free(trace);
}

TEST(a_descendant_recorded_before_its_parent_is_selected)
{
    /* 40 is the grandchild of 20, 50 is unrelated; the process watched last may come first. */
    const struct etwatch_sample starts[] = {start_of(40, 30), start_of(30, 20), start_of(50, 10),
                                            start_of(20, 10)};
    char folder[320], path[400];
    test_folder(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/t.pftrace", folder);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL);
    struct etwatch_sink *sink = NULL;
    CHECK_EQ_INT(etwatch_sink_new(ETWATCH_FORMAT_PERFETTO, put_bytes, file, NULL, &sink, NULL), 0);
    CHECK_EQ_INT(etwatch_sink_samples(sink, starts, sizeof starts / sizeof starts[0]), 0);
    CHECK_EQ_INT(etwatch_sink_flush(sink), 0);
    etwatch_sink_free(sink);
    CHECK_EQ_INT(fclose(file), 0);
    struct reported reported;
    report_of(path, 20, &reported);
    CHECK_EQ_UINT(reported.count, 3);
    for (uint32_t i = 0; i < reported.count; i++)
        CHECK(reported.pids[i] != 50);
    report_of(path, 30, &reported);
    CHECK_EQ_UINT(reported.count, 2);
    report_of(path, 50, &reported);
    CHECK_EQ_UINT(reported.count, 1);
    (void)remove(path);
    test_folder_remove(folder);
}
