/* SPDX-License-Identifier: MIT */
/* The public walk over recordings and the report: order, names, filters, ends, refusals. */
#include "test.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <etwatch/trace.h>

#include "base/alloc.h"
#include "base/real.h"
#include "model/windows_cmdline.h"
#include "recording/trace.h"
#include "system.h"
#include "trace_kit.h"

/*
 * One CPU. parent.exe (100) appears only in the rundown at the end; its child child.exe (200) runs
 * from tick 1000 to 3000 and from 5000 to 6000 and exits; its ID is reused by other.exe.
 */
static void make_file(struct file *file)
{
    begin_file(file, 1);
    put_thread(file, 3, START_RAW + 10, 100, 104);
    put_switch(file, START_RAW + 500, 0, 104);
    put_process(file, 1, START_RAW + 600, 200, 100, "child.exe");
    put_thread(file, 1, START_RAW + 700, 200, 204);
    put_switch(file, START_RAW + 1000, 104, 204);
    put_switch(file, START_RAW + 3000, 204, 0);
    put_switch(file, START_RAW + 5000, 0, 204);
    put_switch(file, START_RAW + 6000, 204, 0);
    put_thread(file, 2, START_RAW + 6100, 200, 204);
    put_process(file, 2, START_RAW + 6200, 200, 100, "child.exe");
    put_process(file, 1, START_RAW + 7000, 200, 4, "other.exe");
    put_process(file, 4, START_RAW + 9000, 100, 4, "parent.exe");
    end_file(file, START_RAW + 10000, 0);
}

/* -------------------------------------------------------------------- events */

TEST(events_are_in_order_with_names_that_are_logged_later)
{
    static const struct {
        const char *event;
        int pid;
        const char *process;
    } want[] = {
        {"EventTrace", 4, NULL},
        {"Thread/DCStart", 100, "parent.exe"},
        {"Thread/CSwitch", 100, "parent.exe"},
        {"Process/Start", 200, "child.exe"},
        {"Thread/Start", 200, "child.exe"},
        {"Thread/CSwitch", 200, "child.exe"},
        {"Thread/CSwitch", 0, NULL},
        {"Thread/CSwitch", 200, "child.exe"},
        {"Thread/CSwitch", 0, NULL},
        {"Thread/Stop", 200, "child.exe"},
        {"Process/Stop", 200, "child.exe"},
        {"Process/Start", 200, "other.exe"},
        {"Process/DCStop", 100, "parent.exe"},
    };
    struct file file;
    make_file(&file);
    struct etwatch_trace *trace = open_file(&file, NULL);
    struct etwatch_trace_event event = {.size = sizeof event};
    for (int round = 0; round < 2; round++) {
        uint64_t last_ns = 0;
        for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
            test_row(want[i].event);
            CHECK_EQ_INT(etwatch_trace_next(trace, &event, NULL), 1);
            CHECK_EQ_STR(event.event, want[i].event);
            CHECK_EQ_STR(event.provider, "Windows Kernel");
            CHECK_EQ_INT(event.pid, want[i].pid);
            CHECK_EQ_STR(event.process, want[i].process);
            CHECK(event.t_ns >= last_ns);
            CHECK_EQ_UINT(event.field_count, 0);
            last_ns = event.t_ns;
            CHECK_EQ_INT(etwatch_trace_fields(trace, &event), 0);
            CHECK(event.field_count > 0);
            CHECK((event.flags & ETWATCH_TRACE_DECODED) != 0);
        }
        CHECK_EQ_INT(etwatch_trace_next(trace, &event, NULL), 0);
        CHECK_EQ_INT(etwatch_trace_next(trace, &event, NULL), 0);
        CHECK_EQ_INT(etwatch_trace_fields(trace, &event), ETWATCH_ESTATE);
        CHECK_EQ_INT(etwatch_trace_rewind(trace), 0);
    }
    etwatch_trace_free(trace);
    remove_file(&file);
}

/* The wall clock was set back by an hour: the second CPU logs before the time of the header. */
TEST(events_before_the_header_keep_their_time_and_the_report_says_why)
{
    enum { TICKS = 10000000 };
    const int64_t start = 134116992000000000;
    const uint64_t unix_ns = (uint64_t)(start - 116444736000000000) * 100;
    const uint64_t hour_ns = UINT64_C(3600) * 1000000000;
    struct file file;
    memset(&file, 0, sizeof file);
    struct ew_etl_writer_config config = {
        .cpu_count = 2,
        .clock = 2,
        .start_raw = (uint64_t)start,
        .start_filetime = start,
        .ctx = &file.memory,
        .write = etl_memory_write,
        .rewrite = etl_memory_rewrite,
    };
    CHECK_EQ_INT(ew_etl_writer_new(&config, &file.writer), 0);
    put_process(&file, 1, (uint64_t)start + TICKS, 100, 4, "a.exe");
    uint64_t back = (uint64_t)start - 3600 * (uint64_t)TICKS;
    struct ew_etl_event event = {.header_type = 2,
                                 .group = 5,
                                 .opcode = 50,
                                 .cpu = 1,
                                 .pid = 100,
                                 .tid = 104,
                                 .payload = "12345678",
                                 .payload_size = 8};
    for (uint64_t i = 0; i < 3; i++) {
        event.t_raw = back + i * TICKS;
        CHECK_EQ_INT(ew_etl_write(file.writer, &event), 0);
    }
    end_file(&file, (uint64_t)start + 5 * TICKS, 0);
    struct etwatch_trace *trace = open_file(&file, NULL);
    struct etwatch_trace_event got = {.size = sizeof got};
    static const uint64_t after_ns[] = {0, 1000000000, 2000000000, 3600000000000, 3601000000000};
    for (size_t i = 0; i < sizeof after_ns / sizeof after_ns[0]; i++) {
        CHECK_EQ_INT(etwatch_trace_next(trace, &got, NULL), 1);
        CHECK_EQ_UINT(got.t_ns, unix_ns - hour_ns + after_ns[i]);
        CHECK_EQ_UINT(got.t_rel_ns, after_ns[i]);
    }
    CHECK_EQ_INT(etwatch_trace_next(trace, &got, NULL), 0);
    struct etwatch_trace_stats stats = {.size = sizeof stats};
    CHECK_EQ_INT(etwatch_trace_stats(trace, &stats), 0);
    CHECK_EQ_UINT(stats.clock_set_back_ns, hour_ns);
    CHECK_EQ_UINT(stats.late, 0);
    etwatch_trace_free(trace);
    remove_file(&file);
}

struct states {
    uint32_t of[64]; /* by opcode */
    uint32_t count;
};

static int note_state(void *ctx, const struct etwatch_trace_class *klass)
{
    struct states *states = ctx;
    states->of[klass->opcode] = klass->state;
    states->count++;
    CHECK_EQ_UINT(klass->decoded, klass->state == ETWATCH_CLASS_DECODED);
    return 0;
}

/* Names without fields are not counted as decoded. */
TEST(a_kind_of_event_is_decoded_known_by_name_or_raw)
{
    static const uint8_t image_id[16] = {0xd7, 0x75, 0xe6, 0xb3, 0x54, 0x25, 0x18, 0x4f,
                                         0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde};
    static const uint8_t portable[20] = {0, 0, 0, 0x40, 1, 0, 0, 0, 100, 0,
                                         0, 0, 9, 0,    0, 0, 1, 0, 2,   0};
    const struct ew_etl_event events[] = {
        {.header_type = 20,
         .opcode = 38,
         .provider = image_id,
         .payload = portable,
         .payload_size = 20},
        {.header_type = 20,
         .opcode = 40,
         .provider = image_id,
         .payload = portable,
         .payload_size = 12},
        {.header_type = 2, .group = 11, .opcode = 37, .payload = portable, .payload_size = 20},
        {.header_type = 2, .group = 12, .opcode = 63, .payload = portable, .payload_size = 20},
    };
    struct file file;
    begin_file(&file, 1);
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        struct ew_etl_event event = events[i];
        event.t_raw = START_RAW + 10 * (i + 1);
        CHECK_EQ_INT(ew_etl_write(file.writer, &event), 0);
    }
    end_file(&file, START_RAW + 100, 0);
    struct etwatch_trace *trace = open_file(&file, NULL);
    struct states states = {0};
    struct etwatch_report_callbacks callbacks = {
        .size = sizeof callbacks, .on_class = note_state, .ctx = &states};
    CHECK_EQ_INT(etwatch_trace_report(trace, &callbacks, NULL, NULL), 0);
    CHECK_EQ_UINT(states.of[38], ETWATCH_CLASS_DECODED);
    CHECK_EQ_UINT(states.of[40], ETWATCH_CLASS_DECODED);
    CHECK_EQ_UINT(states.of[37], ETWATCH_CLASS_PARTLY);
    CHECK_EQ_UINT(states.of[63], ETWATCH_CLASS_RAW);
    struct etwatch_trace_stats stats = {.size = sizeof stats};
    CHECK_EQ_INT(etwatch_trace_stats(trace, &stats), 0);
    CHECK_EQ_UINT(stats.undecoded, 2);
    CHECK_EQ_INT(etwatch_trace_rewind(trace), 0);
    struct etwatch_trace_event event = {.size = sizeof event};
    while (etwatch_trace_next(trace, &event, NULL) > 0) {
        CHECK_EQ_INT(etwatch_trace_fields(trace, &event), 0);
        if (event.opcode != 38)
            continue;
        CHECK_EQ_UINT(event.field_count, 5);
        CHECK_EQ_UINT(event.fields[0].v.u, 0x140000000);
        CHECK_EQ_UINT(event.fields[2].v.u, 9);
        CHECK_EQ_UINT(event.fields[4].v.u, 2);
    }
    CHECK_EQ_INT(etwatch_trace_stats(trace, &stats), 0);
    CHECK_EQ_UINT(stats.undecoded, 2);
    etwatch_trace_free(trace);
    remove_file(&file);
}

static size_t count_events(const struct file *file, const struct etwatch_trace_options *options)
{
    struct etwatch_trace *trace = open_file(file, options);
    struct etwatch_trace_event event = {.size = sizeof event};
    struct etwatch_trace_stats stats = {.size = sizeof stats};
    size_t count = 0;
    while (etwatch_trace_next(trace, &event, NULL) > 0)
        count++;
    CHECK_EQ_INT(etwatch_trace_stats(trace, &stats), 0);
    CHECK_EQ_UINT(stats.events, count);
    etwatch_trace_free(trace);
    return count;
}

TEST(a_time_range_and_a_process_filter_exclude_the_rest)
{
    static const uint32_t child = 200, parent = 100;
    static const char *const names[] = {"parent"};
    struct file file;
    make_file(&file);
    struct etwatch_trace_options options = {.size = sizeof options};
    CHECK_EQ_UINT(count_events(&file, &options), 13);
    options.from_ns = 1000 * TICK_NS;
    CHECK_EQ_UINT(count_events(&file, &options), 8);
    options.until_ns = 3000 * TICK_NS;
    CHECK_EQ_UINT(count_events(&file, &options), 1);
    options.from_ns = options.until_ns = 0;
    options.pids = &child;
    options.pid_count = 1;
    CHECK_EQ_UINT(count_events(&file, &options), 7);
    options.pids = &parent; /* with its child, but not the later process with the child's ID */
    CHECK_EQ_UINT(count_events(&file, &options), 9);
    options.pid_count = 0;
    options.names = names;
    options.name_count = 1;
    CHECK_EQ_UINT(count_events(&file, &options), 9);
    remove_file(&file);
}

/* -------------------------------------------------------------------- report */

struct reported {
    size_t systems, classes, processes, threads;
    uint64_t class_events;
    struct etwatch_sample child, parent;
    char child_cmdline[64];
    int code;
};

static int on_system(void *ctx, const struct etwatch_trace_system *system)
{
    struct reported *reported = ctx;
    reported->systems++;
    CHECK_EQ_UINT(system->cpu_from_switches, 1);
    CHECK_EQ_UINT(reported->classes, 0);
    return 0;
}

static int on_class(void *ctx, const struct etwatch_trace_class *klass)
{
    struct reported *reported = ctx;
    reported->classes++;
    reported->class_events += klass->count;
    CHECK_EQ_UINT(klass->decoded, 1);
    return 0;
}

static int on_process(void *ctx, const struct etwatch_sample *process,
                      const struct etwatch_metric_set *estimated)
{
    struct reported *reported = ctx;
    CHECK(etwatch_metric_set_is_empty(estimated));
    reported->processes += process->type == ETWATCH_TYPE_EXIT;
    reported->threads += process->type == ETWATCH_TYPE_THREAD;
    if (process->type == ETWATCH_TYPE_EXIT && process->name != NULL) {
        if (strcmp(process->name, "child.exe") == 0) {
            reported->child = *process;
            (void)snprintf(reported->child_cmdline, sizeof reported->child_cmdline, "%s",
                           process->cmdline != NULL ? process->cmdline : "-");
        }
        if (strcmp(process->name, "parent.exe") == 0)
            reported->parent = *process;
    }
    return reported->code;
}

static int report(const struct file *file, const struct etwatch_trace_options *options,
                  uint32_t flags, struct reported *reported)
{
    struct etwatch_trace *trace = open_file(file, options);
    struct etwatch_report_callbacks callbacks = {
        .size = sizeof callbacks,
        .flags = flags,
        .on_system = on_system,
        .on_class = on_class,
        .on_process = on_process,
        .ctx = reported,
    };
    int rc = etwatch_trace_report(trace, &callbacks, NULL, NULL);
    etwatch_trace_free(trace);
    return rc;
}

TEST(a_report_adds_up_the_work_of_each_process)
{
    struct file file;
    struct reported reported = {0};
    make_file(&file);
    CHECK_EQ_INT(report(&file, NULL, ETWATCH_REPORT_THREADS | ETWATCH_REPORT_CMDLINE, &reported),
                 0);
    CHECK_EQ_UINT(reported.systems, 1);
    CHECK_EQ_UINT(reported.class_events, 13);
    CHECK_EQ_UINT(reported.child.cpu_ns, 3000 * TICK_NS);
    CHECK_EQ_UINT(reported.parent.cpu_ns, 500 * TICK_NS);
    CHECK_EQ_UINT(reported.child.dt_ns, 5600 * TICK_NS);
    CHECK_NEAR(reported.child.cpu_percent, 100.0 * 3000 / 5600, 1e-9);
    CHECK_EQ_INT(reported.child.exit_code, 7);
    CHECK_EQ_UINT(reported.child.ppid, 100);
    CHECK_EQ_UINT(reported.child.threads, 1);
    CHECK_EQ_STR(reported.child_cmdline, "\"a b.exe\" --token *** x");
    CHECK((reported.child.flags & ETWATCH_SAMPLE_COMPLETE) != 0);
    CHECK(!etwatch_sample_has(&reported.child, ETWATCH_M_disk_read_bytes));
    CHECK_EQ_UINT(reported.parent.start_ns, 0);
    CHECK(!etwatch_sample_has(&reported.parent, ETWATCH_M_exit_ns));
    CHECK(reported.threads >= 2);
    remove_file(&file);
}

TEST(a_time_range_counts_only_events_inside_it)
{
    struct file file;
    struct reported reported = {0};
    struct etwatch_trace_options options = {.size = sizeof options, .from_ns = 1500 * TICK_NS};
    make_file(&file);
    options.until_ns = 2500 * TICK_NS; /* in the middle of a run, without any event in it */
    CHECK_EQ_INT(report(&file, &options, 0, &reported), 0);
    CHECK_EQ_UINT(reported.child.cpu_ns, 1000 * TICK_NS);
    CHECK_EQ_UINT(reported.class_events, 0);
    memset(&reported, 0, sizeof reported);
    options.until_ns = 5500 * TICK_NS;
    CHECK_EQ_INT(report(&file, &options, 0, &reported), 0);
    CHECK_EQ_UINT(reported.child.cpu_ns, 2000 * TICK_NS);
    CHECK_EQ_UINT(reported.parent.cpu_ns, 0);
    CHECK(!etwatch_sample_has(&reported.child, ETWATCH_M_exit_ns)); /* its exit is later */
    remove_file(&file);
}

TEST(a_loss_without_a_time_marks_every_process)
{
    struct file file;
    struct reported reported = {0};
    begin_file(&file, 1);
    put_process(&file, 1, START_RAW + 600, 200, 100, "child.exe");
    put_thread(&file, 1, START_RAW + 700, 200, 204);
    put_switch(&file, START_RAW + 1000, 0, 204);
    put_switch(&file, START_RAW + 3000, 204, 0);
    end_file(&file, START_RAW + 10000, 3);
    CHECK_EQ_INT(report(&file, NULL, 0, &reported), 0);
    CHECK_EQ_UINT(reported.child.cpu_ns, 2000 * TICK_NS);
    CHECK_EQ_UINT(reported.child.flags & ETWATCH_SAMPLE_COMPLETE, 0);
    remove_file(&file);
}

static int end_at_once(void *ctx, uint64_t done, uint64_t all)
{
    (void)done;
    (void)all;
    ++*(int *)ctx;
    return 1;
}

TEST(a_callback_can_end_the_walk)
{
    struct file file;
    struct reported reported = {.code = -77};
    make_file(&file);
    CHECK_EQ_INT(report(&file, NULL, 0, &reported), -77);
    CHECK_EQ_UINT(reported.processes, 1);
    remove_file(&file);
    /* Progress is reported every megabyte. */
    int calls = 0;
    struct etwatch_trace_options options = {
        .size = sizeof options, .workers = 1, .on_progress = end_at_once, .ctx = &calls};
    struct etwatch_trace_event event = {.size = sizeof event};
    begin_file(&file, 1);
    for (uint32_t i = 0; i < 100000; i++)
        put_switch(&file, START_RAW + 10 + i, i % 2 == 0 ? 0 : 204, i % 2 == 0 ? 204 : 0);
    end_file(&file, START_RAW + 200000, 0);
    memset(&reported, 0, sizeof reported);
    CHECK_EQ_INT(report(&file, &options, 0, &reported), ETWATCH_ESTATE);
    CHECK_EQ_INT(calls, 1);
    CHECK(reported.class_events > 1000 && reported.class_events < 100001);
    struct etwatch_trace *trace = open_file(&file, &options);
    CHECK_EQ_INT(etwatch_trace_next(trace, &event, NULL), ETWATCH_ESTATE);
    etwatch_trace_free(trace);
    remove_file(&file);
}

/* ------------------------------------------------------------------ refusals */

TEST(impossible_options_are_refused)
{
    struct file file;
    struct etwatch_trace *trace = NULL;
    struct etwatch_error_info error = {.size = sizeof error};
    make_file(&file);
    const char *path = file.path;
    struct etwatch_trace_options options = {.size = 0};
    CHECK_EQ_INT(etwatch_trace_open(NULL, 1, NULL, &trace, &error), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_trace_open(&path, 0, NULL, &trace, &error), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_trace_open(&path, 1, &options, &trace, &error), ETWATCH_EINVAL);
    CHECK_CONTAINS(error.message, "options.size");
    options = (struct etwatch_trace_options){.size = sizeof options, .from_ns = 5, .until_ns = 5};
    CHECK_EQ_INT(etwatch_trace_open(&path, 1, &options, &trace, &error), ETWATCH_EINVAL);
    CHECK_CONTAINS(error.message, "until_ns");
    options = (struct etwatch_trace_options){.size = sizeof options, .pid_count = 1};
    CHECK_EQ_INT(etwatch_trace_open(&path, 1, &options, &trace, &error), ETWATCH_EINVAL);
    struct {
        struct etwatch_trace_options options;
        uint64_t later;
    } newer = {{.size = sizeof newer}, 1};
    CHECK_EQ_INT(etwatch_trace_open(&path, 1, &newer.options, &trace, &error), ETWATCH_ENOTSUP);
    CHECK(trace == NULL);
    trace = open_file(&file, NULL);
    struct etwatch_trace_event event = {.size = 0};
    struct etwatch_trace_file info = {.size = sizeof info};
    CHECK_EQ_INT(etwatch_trace_next(trace, &event, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_trace_file(trace, 1, &info), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_trace_file(trace, 0, &info), 0);
    CHECK_EQ_UINT(info.cpu_count, 1);
    CHECK_EQ_STR(info.path, file.path);
    etwatch_trace_free(trace);
    etwatch_trace_free(NULL);
    remove_file(&file);
}

static int walk_all(void *ctx)
{
    const char *path = ((const struct file *)ctx)->path;
    struct etwatch_trace_options options = {.size = sizeof options, .workers = 1};
    struct etwatch_trace_event event = {.size = sizeof event};
    struct etwatch_trace *trace = NULL;
    struct reported reported = {0};
    struct etwatch_report_callbacks callbacks = {
        .size = sizeof callbacks,
        .flags = ETWATCH_REPORT_THREADS,
        .on_process = on_process,
        .ctx = &reported,
    };
    int rc = etwatch_trace_open(&path, 1, &options, &trace, NULL);
    while (rc == 0 && (rc = etwatch_trace_next(trace, &event, NULL)) > 0)
        rc = etwatch_trace_fields(trace, &event);
    if (rc == 0)
        rc = etwatch_trace_report(trace, &callbacks, NULL, NULL);
    etwatch_trace_free(trace);
    return rc;
}

static int fail_nth(void *ctx, size_t size)
{
    long *left = ctx;
    (void)size;
    return (*left)-- == 0;
}

/*
 * When memory is short, values may stay unknown or the call may fail; but nothing leaks, is freed
 * twice or used after free (checked by the address sanitizer build).
 */
TEST(every_failed_allocation_is_handled)
{
    struct file file;
    long n = 0;
    make_file(&file);
    for (bool failed = true; failed; n++) {
        long left = n;
        ew_alloc_set_hook(fail_nth, &left);
        int rc = walk_all(&file);
        ew_alloc_set_hook(NULL, NULL);
        failed = left < 0;
        CHECK(rc == 0 || (failed && rc < 0));
    }
    CHECK(n > 20);
    remove_file(&file);
}

/* -------------------------------------------------------------------- pieces */

TEST(an_id_means_the_process_that_had_it_at_that_time)
{
    struct ew_process_history history;
    static const uint8_t first[] = "C:\\x\\first.exe", second[] = "second.exe";
    struct ew_event event = {.kind = EW_EVENT_PROCESS_END, .pid = 8, .t_ns = 500};
    event.u.process.image = (struct ew_event_text){first, sizeof first - 1, false};
    ew_recording_history_init(&history);
    ew_recording_history_learn(&history, &event);
    event.kind = EW_EVENT_PROCESS_STILL; /* its start was not logged */
    event.t_ns = 900;
    event.u.process.image = (struct ew_event_text){second, sizeof second - 1, false};
    ew_recording_history_learn(&history, &event);
    CHECK_EQ_STR(ew_recording_history_name(&history, 8, 0), "first.exe");
    CHECK_EQ_STR(ew_recording_history_name(&history, 8, 499), "first.exe");
    CHECK_EQ_STR(ew_recording_history_name(&history, 8, 500), "second.exe");
    CHECK_EQ_STR(ew_recording_history_name(&history, 8, 99999), "second.exe");
    CHECK(ew_recording_history_name(&history, 9, 600) == NULL);
    uint32_t pid = 0;
    struct ew_event thread = {.kind = EW_EVENT_THREAD_START, .pid = 8, .tid = 12, .t_ns = 600};
    ew_recording_history_learn(&history, &thread);
    thread.pid = 16;
    thread.t_ns = 700;
    ew_recording_history_learn(&history, &thread);
    CHECK(!ew_recording_history_process_of(&history, 12, 599, &pid));
    CHECK(ew_recording_history_process_of(&history, 12, 699, &pid));
    CHECK_EQ_UINT(pid, 8);
    CHECK(ew_recording_history_process_of(&history, 12, 700, &pid));
    CHECK_EQ_UINT(pid, 16);
    for (uint32_t i = 0; i < 5000; i++) {
        thread.tid = 4 * i;
        thread.pid = i;
        ew_recording_history_learn(&history, &thread);
    }
    for (uint32_t i = 0; i < 5000; i++) {
        CHECK(ew_recording_history_process_of(&history, 4 * i, 800, &pid));
        CHECK_EQ_UINT(pid, i);
    }
    ew_recording_history_done(&history);
}

TEST(real_numbers_are_read_back_exactly_in_any_locale)
{
    static const double values[] = {
        0, 1.5, 0.1, -2.25, 1e300, 5e-324, 3.141592653589793, 1.0 / 3, 1e15, 1e16, 123456789.125};
    static const char *const locales[] = {"C", "de_DE.UTF-8", "ar_EG.UTF-8"};
    for (size_t l = 0; l < sizeof locales / sizeof locales[0]; l++) {
        (void)setlocale(LC_NUMERIC, locales[l]); /* setlocale fails where it is not installed, and
                                                    the locale is unchanged */
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            char text[EW_REAL_LEN];
            CHECK(ew_raw_real(text, values[i], false) != NULL);
            CHECK(strchr(text, ',') == NULL);
            (void)setlocale(LC_NUMERIC, "C");
            CHECK(strtod(text, NULL) == values[i]);
            (void)setlocale(LC_NUMERIC, locales[l]);
        }
    }
    (void)setlocale(LC_NUMERIC, "C");
    char text[EW_REAL_LEN];
    CHECK(ew_raw_real(text, 0.1f, true) != NULL);
    CHECK_EQ_STR(text, "0.1");
    CHECK(ew_raw_real(text, NAN, false) == NULL);
    CHECK(ew_raw_real(text, -INFINITY, false) == NULL);
}

TEST(a_command_line_is_masked_argument_by_argument)
{
    char text[EW_CMDLINE_BYTES];
    ew_cmdline_mask("\"C:\\Program Files\\x.exe\"  --password hunter2 \"--token=a b\" y", text);
    CHECK(strstr(text, "hunter2") == NULL);
    CHECK(strstr(text, "a b") == NULL);
    CHECK_CONTAINS(text, "\"C:\\Program Files\\x.exe\"");
    CHECK_CONTAINS(text, " y");
    ew_cmdline_mask("", text);
    CHECK_EQ_STR(text, "");
}

TEST(a_trace_that_needs_more_memory_than_its_limit_fails_with_a_message)
{
    struct file file;
    begin_file(&file, 1);
    for (uint32_t i = 0; i < 2000; i++)
        put_process(&file, 1, START_RAW + i, 8 + 4 * i, 4, "a.exe");
    end_file(&file, START_RAW + 5000, 0);
    const char *path = file.path;
    static const uint64_t limits[] = {1 << 16, 3 << 20, 0};
    for (int i = 0; i < 3; i++) {
        struct etwatch_trace_options options = {
            .size = sizeof options, .workers = 1, .max_memory_bytes = limits[i]};
        struct etwatch_report_callbacks callbacks = {.size = sizeof callbacks};
        struct etwatch_error_info error = {.size = sizeof error};
        struct etwatch_trace *trace = NULL;
        int rc = etwatch_trace_open(&path, 1, &options, &trace, &error);
        if (rc == 0)
            rc = etwatch_trace_report(trace, &callbacks, NULL, &error);
        CHECK_EQ_INT(rc, limits[i] == 0 ? 0 : ETWATCH_ELIMIT);
        if (limits[i] != 0)
            CHECK(strstr(error.message, "limit of") != NULL);
        etwatch_trace_free(trace);
    }
    remove_file(&file);
}
