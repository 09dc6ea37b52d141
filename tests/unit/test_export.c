/* SPDX-License-Identifier: MIT */
/* export: stacks of samples and slices of time, from a recording with known content. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include <etwatch/export.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "export/export.h"
#include "sink/flame.h"
#include "trace_kit.h"

#define KERNEL UINT64_C(0xFFFFF80000000000)

/* ---------------------------------------------------------------- a recording */

static void put_image(struct file *file, unsigned opcode, uint64_t t_raw, uint32_t pid,
                      uint64_t base, const char *path)
{
    struct etl_payload payload;
    etl_clear(&payload);
    etl_image(&payload, 2, PTR,
              &(struct etl_image){.base = base, .size = 0x1000, .pid = pid, .path = path});
    CHECK_EQ_INT(
        etl_write_kernel(file->writer, PTR, 0x1400 | opcode, 2, 0, t_raw, pid, 0, &payload), 0);
}

static void put_sample(struct file *file, uint64_t t_raw, uint32_t tid, uint64_t ip)
{
    struct etl_payload payload;
    etl_clear(&payload);
    etl_sample(&payload, 2, PTR, ip, tid, 1, 0);
    CHECK_EQ_INT(etl_write_kernel(file->writer, PTR, 0x0F2E, 2, 0, t_raw, 0, 0, &payload), 0);
}

static void put_stack(struct file *file, uint64_t t_raw, uint64_t of_raw, uint32_t tid,
                      const uint64_t *frames, size_t count)
{
    struct etl_payload payload;
    etl_clear(&payload);
    etl_stack(&payload, PTR, of_raw, 200, tid, frames, count);
    CHECK_EQ_INT(etl_write_kernel(file->writer, PTR, 0x1820, 2, 0, t_raw, 0, 0, &payload), 0);
}

static void put_key(struct file *file, unsigned opcode, uint64_t t_raw, uint64_t of_raw,
                    uint32_t tid, uint64_t key)
{
    struct etl_payload payload;
    etl_clear(&payload);
    etl_stack_key(&payload, PTR, of_raw, 200, tid, key);
    CHECK_EQ_INT(etl_write_kernel(file->writer, PTR, 0x1800 | opcode, 2, 0, t_raw, 0, 0, &payload),
                 0);
}

static void put_definition(struct file *file, unsigned opcode, uint64_t t_raw, uint64_t key,
                           const uint64_t *frames, size_t count)
{
    struct etl_payload payload;
    etl_clear(&payload);
    etl_stack_definition(&payload, PTR, key, frames, count);
    CHECK_EQ_INT(etl_write_kernel(file->writer, PTR, 0x1800 | opcode, 2, 0, t_raw, 0, 0, &payload),
                 0);
}

/*
 * app.exe (200) with thread 204: two samples with separate kernel and user stacks, the second by
 * keys that are defined at the end; one sample without a stack; one with only a kernel stack. A
 * stack of another event (a switch) is in between. 1 ms is 10000 ticks.
 */
static void make_file(struct file *file)
{
    const uint64_t user[] = {0x400010, 0x400800}, kernel[] = {KERNEL + 0x20, KERNEL + 0x300};
    const uint64_t lost[] = {0x999000};
    struct etl_payload payload;
    begin_file(file, 1);
    etl_clear(&payload);
    etl_sample_interval(&payload, 2, 0, 10000, 10000);
    CHECK_EQ_INT(etl_write_kernel(file->writer, PTR, 0x0F49, 2, 0, START_RAW + 1, 0, 0, &payload),
                 0);
    put_process(file, 3, START_RAW + 10, 200, 4, "app.exe");
    put_thread(file, 3, START_RAW + 20, 200, 204);
    put_image(file, 3, START_RAW + 30, 0, KERNEL, "\\SystemRoot\\system32\\ntoskrnl.exe");
    put_image(file, 10, START_RAW + 40, 200, 0x400000, "\\Device\\HarddiskVolume1\\app.exe");
    put_switch(file, START_RAW + 100, 0, 204);
    put_stack(file, START_RAW + 101, START_RAW + 100, 204, lost, 1);
    put_sample(file, START_RAW + 1000, 204, KERNEL + 0x20);
    put_stack(file, START_RAW + 1001, START_RAW + 1000, 204, kernel, 2);
    put_sample(file, START_RAW + 2000, 204, 0x400010);
    put_stack(file, START_RAW + 2500, START_RAW + 1000, 204, user, 2);
    put_key(file, 37, START_RAW + 2600, START_RAW + 2000, 204, 0xAAAA);
    put_key(file, 38, START_RAW + 2700, START_RAW + 2000, 204, 0xBBBB);
    put_sample(file, START_RAW + 3000, 204, 0x999000);
    put_sample(file, START_RAW + 4000, 204, KERNEL + 0x300);
    put_stack(file, START_RAW + 4001, START_RAW + 4000, 204, kernel + 1, 1);
    put_switch(file, START_RAW + 5000, 204, 0);
    put_definition(file, 36, START_RAW + 8000, 0xAAAA, kernel, 2);
    put_definition(file, 36, START_RAW + 8001, 0xBBBB, user, 2);
    end_file(file, START_RAW + 10000, 0);
}

static int keep(void *ctx, const void *bytes, size_t len)
{
    ew_buf_bytes(ctx, bytes, len);
    return 0;
}

static int export_file(const struct file *file, uint32_t format,
                       const struct etwatch_trace_options *options, struct ew_buf *out,
                       struct etwatch_export_counts *counts, struct etwatch_error_info *error)
{
    struct etwatch_trace *trace = open_file(file, options);
    ew_buf_init(out, 0, NULL, NULL);
    int rc = etwatch_trace_export(trace, format, 0, NULL, keep, out, counts, error);
    ew_buf_char(out, '\0');
    etwatch_trace_free(trace);
    return rc;
}

/* ---------------------------------------------------------------------- stacks */

TEST(a_sample_gets_both_parts_of_its_stack_and_frames_are_named_by_module)
{
    static const char want[] =
        "app.exe (200);thread 204;app.exe!0x800;app.exe!0x10;ntoskrnl.exe!0x300;ntoskrnl.exe!0x20 "
        "2\n"
        "app.exe (200);thread 204;0x999000 1\n"
        "app.exe (200);thread 204;ntoskrnl.exe!0x300 1\n";
    struct file file;
    struct ew_buf out;
    struct etwatch_export_counts counts = {.size = sizeof counts};
    make_file(&file);
    CHECK_EQ_INT(export_file(&file, ETWATCH_EXPORT_FOLDED, NULL, &out, &counts, NULL), 0);
    CHECK_EQ_STR(out.data, want);
    CHECK_EQ_UINT(counts.rows, 4);
    CHECK_EQ_UINT(counts.without_stack, 1);
    CHECK_EQ_UINT(counts.frames, 6);
    CHECK_EQ_UINT(counts.frames_unnamed, 1);
    CHECK_EQ_UINT(counts.refused, 0);
    ew_buf_done(&out);
    remove_file(&file);
}

TEST(speedscope_has_the_samples_in_order_with_the_time_each_represents)
{
    struct file file;
    struct ew_buf out;
    make_file(&file);
    CHECK_EQ_INT(export_file(&file, ETWATCH_EXPORT_SPEEDSCOPE, NULL, &out, NULL, NULL), 0);
    CHECK_CONTAINS(out.data, "\"name\":\"app.exe (200) thread 204\",\"unit\":\"nanoseconds\","
                             "\"startValue\":0,\"endValue\":4000000");
    CHECK_CONTAINS(out.data, "\"samples\":[[2,3,4,5],[2,3,4,5],[6],[4]]");
    CHECK_CONTAINS(out.data, "\"weights\":[1000000,1000000,1000000,1000000]");
    ew_buf_done(&out);
    remove_file(&file);
}

TEST(a_range_without_samples_is_refused_with_the_reason)
{
    struct file file;
    struct ew_buf out;
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_trace_options part = {.size = sizeof part, .from_ns = 450000};
    make_file(&file);
    CHECK_EQ_INT(export_file(&file, ETWATCH_EXPORT_FOLDED, &part, &out, NULL, &error),
                 ETWATCH_ENOTSUP);
    CHECK_CONTAINS(error.message, "no profile samples");
    CHECK_EQ_UINT(out.len, 1);
    ew_buf_done(&out);
    remove_file(&file);
}

TEST(a_name_cannot_break_a_folded_line)
{
    struct ew_flame flame;
    struct ew_buf out;
    ew_flame_init(&flame);
    ew_buf_init(&out, 0, NULL, NULL);
    uint32_t process = ew_flame_add(&flame, EW_FLAME_ROOT, 1, "a;b\nc");
    uint32_t thread = ew_flame_add(&flame, process, 2, "d");
    ew_flame_sample(&flame, thread, thread, 0);
    ew_flame_sample(&flame, thread, thread, 0);
    ew_flame_sample(&flame, thread, UINT32_MAX, 0);
    CHECK_EQ_UINT(flame.refused, 1);
    ew_flame_put_folded(&flame, &out);
    ew_buf_char(&out, '\0');
    CHECK_EQ_STR(out.data, "a:b?c;d 2\n");
    out.len = 0;
    ew_flame_put_speedscope(&flame, &out, "x");
    ew_buf_char(&out, '\0');
    CHECK_CONTAINS(out.data, "\"unit\":\"none\",\"startValue\":0,\"endValue\":2");
    ew_buf_done(&out);
    ew_flame_done(&flame);
}

TEST(an_address_belongs_to_the_module_loaded_there_at_that_time)
{
    struct ew_modules modules;
    char name[64];
    struct ew_event event = {.kind = EW_EVENT_IMAGE_LOAD, .t_ns = 100, .pid = 7};
    event.u.image.base = 0x1000;
    event.u.image.bytes = 0x100;
    event.u.image.path = (struct ew_event_text){(const uint8_t *)"one.dll", 7, false};
    ew_modules_init(&modules);
    ew_modules_learn(&modules, &event);
    event.kind = EW_EVENT_IMAGE_UNLOAD;
    event.t_ns = 200;
    ew_modules_learn(&modules, &event);
    event.kind = EW_EVENT_IMAGE_LOAD;
    event.t_ns = 300;
    event.u.image.path = (struct ew_event_text){(const uint8_t *)"two.dll", 7, false};
    ew_modules_learn(&modules, &event);
    ew_modules_sort(&modules);
    ew_modules_name(&modules, 7, 0x1010, 150, name, sizeof name);
    CHECK_EQ_STR(name, "one.dll!0x10");
    ew_modules_name(&modules, 7, 0x10FF, 300, name, sizeof name);
    CHECK_EQ_STR(name, "two.dll!0xff");
    ew_modules_name(&modules, 7, 0x1100, 300, name, sizeof name);
    CHECK_EQ_STR(name, "0x1100");
    ew_modules_name(&modules, 8, 0x1010, 300, name, sizeof name);
    CHECK_EQ_STR(name, "0x1010");
    ew_modules_done(&modules);
}

/* -------------------------------------------------------------------- timeline */

TEST(a_slice_lasts_from_switch_to_switch_with_the_reason_for_its_end)
{
    struct file file;
    struct ew_buf out;
    struct etwatch_export_counts counts = {.size = sizeof counts};
    make_file(&file);
    CHECK_EQ_INT(export_file(&file, ETWATCH_EXPORT_CHROME, NULL, &out, &counts, NULL), 0);
    CHECK_EQ_UINT(counts.rows, 1);
    CHECK_CONTAINS(out.data, "{\"ph\":\"M\",\"pid\":200,\"name\":\"process_name\","
                             "\"args\":{\"name\":\"app.exe\"}}");
    CHECK_CONTAINS(out.data, "{\"ph\":\"X\",\"pid\":200,\"tid\":204,\"ts\":10.000,\"dur\":490.000,"
                             "\"cat\":\"sched\",\"name\":\"CPU 0\",\"args\":{\"cpu\":0,"
                             "\"priority\":0,\"end_state\":\"waiting\",\"wait_reason\":0}}");
    ew_buf_done(&out);
    uint32_t other = 999;
    struct etwatch_trace_options selected = {
        .size = sizeof selected, .pids = &other, .pid_count = 1};
    CHECK_EQ_INT(export_file(&file, ETWATCH_EXPORT_CHROME, &selected, &out, &counts, NULL), 0);
    CHECK_EQ_UINT(counts.rows, 0);
    CHECK(strstr(out.data, "app.exe") == NULL);
    ew_buf_done(&out);
    remove_file(&file);
}

/* ---------------------------------------------------------------------- memory */

struct failing {
    unsigned at, count;
};

static int fail_one(void *ctx, size_t size)
{
    struct failing *failing = ctx;
    (void)size;
    return ++failing->count == failing->at;
}

static int drop(void *ctx, const void *bytes, size_t len)
{
    (void)ctx;
    (void)bytes;
    (void)len;
    return 0;
}

TEST(nothing_leaks_whichever_allocation_fails)
{
    static const uint32_t formats[] = {ETWATCH_EXPORT_SPEEDSCOPE, ETWATCH_EXPORT_CHROME};
    struct etwatch_trace_options single = {.size = sizeof single, .workers = 1};
    struct file file;
    make_file(&file);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        unsigned failed = 0;
        for (unsigned at = 1;; at++) {
            struct failing failing = {.at = at};
            struct etwatch_trace *trace = open_file(&file, &single);
            ew_alloc_set_hook(fail_one, &failing);
            int rc = etwatch_trace_export(trace, formats[i], 0, NULL, drop, NULL, NULL, NULL);
            ew_alloc_set_hook(NULL, NULL);
            etwatch_trace_free(trace);
            failed += rc < 0;
            if (failing.count < at)
                break;
        }
        CHECK(failed > 10);
    }
    remove_file(&file);
}

TEST(wrong_arguments_are_refused)
{
    struct file file;
    struct etwatch_error_info error = {.size = sizeof error};
    make_file(&file);
    struct etwatch_trace *trace = open_file(&file, NULL);
    CHECK_EQ_INT(etwatch_trace_export(trace, 99, 0, NULL, drop, NULL, NULL, &error),
                 ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_trace_export(trace, ETWATCH_EXPORT_CSV, 0, NULL, drop, NULL, NULL, &error),
                 ETWATCH_EINVAL);
    CHECK_CONTAINS(error.message, "table");
    CHECK_EQ_INT(etwatch_trace_export(NULL, ETWATCH_EXPORT_CSV, 5, NULL, drop, NULL, NULL, NULL),
                 ETWATCH_EINVAL);
    CHECK(etwatch_export_name(0) == NULL);
    CHECK_EQ_STR(etwatch_export_name(ETWATCH_EXPORT_CHROME), "chrome");
    etwatch_trace_free(trace);
    remove_file(&file);
}
