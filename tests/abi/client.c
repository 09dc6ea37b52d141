/* SPDX-License-Identifier: MIT */
/*
 * A program built with headers of another release than the library (versions.py makes them): reads
 * and passes every kind of struct. Each struct that the library fills is followed by guard bytes.
 * Usage: client FOLDER; exits with 0 and prints "fine" if everything holds.
 */
#include <etwatch/account.h>
#include <etwatch/arrow.h>
#include <etwatch/consumer.h>
#include <etwatch/device.h>
#include <etwatch/etwatch.h>
#include <etwatch/export.h>
#include <etwatch/gpu.h>
#include <etwatch/metrics.h>
#include <etwatch/process.h>
#include <etwatch/rollup.h>
#include <etwatch/session.h>
#include <etwatch/sink.h>
#include <etwatch/span.h>
#include <etwatch/summary.h>
#include <etwatch/system.h>
#include <etwatch/trace.h>
#include <etwatch/waits.h>
#include <etwatch/window.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int failures;

static void must(int holds, int line, const char *what)
{
    if (holds)
        return;
    failures++;
    fprintf(stderr, "line %d: %s\n", line, what);
}
#define MUST(condition) must((condition) != 0, __LINE__, #condition)

enum { GUARD = 64, GUARD_BYTE = 0xa5 };

/* A struct with its size set, and bytes behind it that no call may change. */
#define GUARDED(type, name)                            \
    struct {                                           \
        struct type value;                             \
        unsigned char guard[GUARD];                    \
    } name##_guarded;                                  \
    memset(&name##_guarded, 0, sizeof name##_guarded); \
    memset(name##_guarded.guard, GUARD_BYTE, GUARD);   \
    struct type *const name = &name##_guarded.value;   \
    name->size = sizeof *name
#define INTACT(name)                                     \
    for (size_t guard_i = 0; guard_i < GUARD; guard_i++) \
    MUST(name##_guarded.guard[guard_i] == GUARD_BYTE && name->size == sizeof *name)

/* Fields that only a newer header has: zero is fine, anything else is refused. */
#ifdef NEWER
#define REFUSED(name, call)              \
    do {                                 \
        (name)->etwatch_future[1] = 1;   \
        MUST((call) == ETWATCH_ENOTSUP); \
        (name)->etwatch_future[1] = 0;   \
    } while (0)
/* What the library fills: unknown fields become zero. */
#define FILLED(name) MUST((name)->etwatch_future[0] == 0 && (name)->etwatch_future[1] == 0)
#define DIRTY(name) ((name)->etwatch_future[0] = (name)->etwatch_future[1] = 7)
#else
#define REFUSED(name, call) (void)0
#define FILLED(name) (void)0
#define DIRTY(name) (void)0
#endif

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --------------------------------------------------------------------------- samples */

struct seen {
    unsigned samples, starts, stored;
    struct etwatch_sample kept[8]; /* copies, as this program knows them */
};
static struct seen seen;

static void check_sample(const struct etwatch_sample *sample)
{
    MUST(sample->pid == (uint32_t)getpid());
    MUST(sample->source == ETWATCH_SOURCE_POLL);
    MUST(sample->type >= ETWATCH_TYPE_START && sample->type <= ETWATCH_TYPE_THREAD);
    MUST(sample->t_ns > now_ns() - UINT64_C(60000000000) && sample->t_ns <= now_ns());
    MUST(sample->name == NULL || strlen(sample->name) > 0);
#ifdef NEWER
    MUST(!etwatch_sample_has(sample, ETWATCH_M_future_count));
#endif
}

static void on_samples(void *ctx, const struct etwatch_samples *batch)
{
    MUST(ctx == &seen);
    MUST(batch->count > 0 && batch->stride % 8 == 0 && batch->stride > 8);
    for (size_t i = 0; i < batch->count; i++) {
        const struct etwatch_sample *sample = etwatch_sample_at(batch, i);
        check_sample(sample);
        seen.starts += sample->type == ETWATCH_TYPE_START;
        seen.samples += sample->type == ETWATCH_TYPE_SAMPLE;
        if (seen.stored < 8) {
            struct etwatch_sample *kept = &seen.kept[seen.stored++];
            memset(kept, 0, sizeof *kept);
            memcpy(kept, sample, sample->size < sizeof *kept ? sample->size : sizeof *kept);
            kept->size = sizeof *kept;
            kept->name = kept->thread_name = kept->user = kept->cgroup = kept->cmdline = NULL;
        }
    }
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    MUST(ctx == &seen && loss->count > 0);
}

static void watch(void)
{
    static union {
        uint64_t align;
        char bytes[ETWATCH_READ_COPY_MIN + GUARD];
    } buffer;
    uint32_t self = (uint32_t)getpid();
    struct etwatch_monitor *monitor = NULL;
    GUARDED(etwatch_error_info, error);
    struct etwatch_config config = {.size = sizeof config,
                                    .source = ETWATCH_SOURCE_POLL,
                                    .hz = 100,
                                    .latency_ms = 10,
                                    .flags = ETWATCH_CONFIG_DENSE | ETWATCH_CONFIG_QUEUE |
                                             ETWATCH_CONFIG_AGGREGATE,
                                    .pids = &self,
                                    .pid_count = 1};
    struct etwatch_callbacks callbacks = {
        .size = sizeof callbacks, .ctx = &seen, .on_samples = on_samples, .on_loss = on_loss};
    REFUSED(&config, etwatch_monitor_new(&config, &callbacks, &monitor, error));
    REFUSED(&callbacks, etwatch_monitor_new(&config, &callbacks, &monitor, error));
    INTACT(error);
    MUST(monitor == NULL);
    config.hz = 12345;
    DIRTY(error);
    MUST(etwatch_monitor_new(&config, &callbacks, &monitor, error) == ETWATCH_EINVAL);
    MUST(error->code == ETWATCH_EINVAL && strstr(error->message, "hz") != NULL);
    FILLED(error);
    INTACT(error);
    config.hz = 100;
    MUST(etwatch_monitor_new(&config, &callbacks, &monitor, error) == 0);
    MUST(etwatch_monitor_open(monitor, error) == 0);
    for (int i = 0; i < 500 && seen.samples < 6; i++)
        MUST(etwatch_monitor_poll(monitor, 20, error) >= 0);
    MUST(seen.samples >= 6 && seen.starts == 1);

    GUARDED(etwatch_stats, stats);
    DIRTY(stats);
    MUST(etwatch_monitor_stats(monitor, stats) == 0);
    MUST(stats->source == ETWATCH_SOURCE_POLL && stats->hz_requested == 100 && stats->samples >= 6);
    FILLED(stats);
    INTACT(stats);
    GUARDED(etwatch_meta, meta);
    DIRTY(meta);
    MUST(etwatch_monitor_meta(monitor, meta) == 0);
    MUST(meta->source == ETWATCH_SOURCE_POLL && meta->cpu_count > 0 && meta->hz_requested == 100);
    FILLED(meta);
    INTACT(meta);
    GUARDED(etwatch_sample, sample);
    MUST(etwatch_monitor_snapshot(monitor, self, sample, NULL, 0) == 0);
    check_sample(sample);
    INTACT(sample);
    struct etwatch_aggregate aggregate;
    MUST(etwatch_monitor_aggregate(monitor, self, ETWATCH_M_cpu_percent, &aggregate) == 0);
    MUST(aggregate.count > 0);

    GUARDED(etwatch_samples, batch);
    DIRTY(batch);
    int count = etwatch_monitor_read(monitor, 3, 0, batch);
    MUST(count == 3 && batch->count == 3);
    for (size_t i = 0; i < batch->count; i++)
        check_sample(etwatch_sample_at(batch, i));
    FILLED(batch);
    INTACT(batch);
    size_t used = 0;
    memset(&buffer, GUARD_BYTE, sizeof buffer);
    count = etwatch_monitor_read_copy(monitor, buffer.bytes, ETWATCH_READ_COPY_MIN, 1000, 0, batch,
                                      &used);
    MUST(count >= 3 && (size_t)count == batch->count && used <= ETWATCH_READ_COPY_MIN);
    for (size_t i = 0; i < batch->count; i++)
        check_sample(etwatch_sample_at(batch, i));
    for (size_t i = ETWATCH_READ_COPY_MIN; i < sizeof buffer.bytes; i++)
        MUST((unsigned char)buffer.bytes[i] == GUARD_BYTE);
    INTACT(batch);
    MUST(etwatch_monitor_read_copy(monitor, buffer.bytes, 100, 1, 0, batch, NULL) ==
         ETWATCH_EINVAL);
    batch->size = 0;
    MUST(etwatch_monitor_read(monitor, 3, 0, batch) == ETWATCH_EINVAL);
    batch->size = sizeof *batch;
    MUST(etwatch_monitor_last_error(monitor, error) == 0);
    MUST(etwatch_monitor_stop(monitor) == 0);
    MUST(etwatch_monitor_poll(monitor, 0, error) == ETWATCH_ESTATE &&
         error->code == ETWATCH_ESTATE);
    INTACT(error);
    etwatch_monitor_free(monitor);
}

/* ------------------------------------------------------------------------------ sink */

struct text {
    char bytes[1 << 20];
    size_t len;
};
static struct text text;

static int keep(void *ctx, const void *bytes, size_t len)
{
    struct text *to = ctx;
    if (len > sizeof to->bytes - 1 - to->len)
        return ETWATCH_ELIMIT;
    memcpy(to->bytes + to->len, bytes, len);
    to->len += len;
    to->bytes[to->len] = '\0';
    return 0;
}

static struct etwatch_sink *new_sink(uint32_t format)
{
    struct etwatch_sink *sink = NULL;
    GUARDED(etwatch_error_info, error);
    struct etwatch_sink_options options = {.size = sizeof options, .host = "here"};
    REFUSED(&options, etwatch_sink_new(format, keep, &text, &options, &sink, error));
    text.len = 0;
    MUST(etwatch_sink_new(format, keep, &text, &options, &sink, error) == 0);
    INTACT(error);
    return sink;
}

/* Elements as long as this program knows them, one after the other. */
static void write_lines(void)
{
    struct etwatch_sink *sink = new_sink(ETWATCH_FORMAT_JSONL);
    struct etwatch_samples samples = etwatch_samples_of(seen.kept, seen.stored);
    struct etwatch_event events[3] = {{.size = sizeof events[0],
                                       .kind = ETWATCH_EVENT_SWITCH,
                                       .pid = 4001,
                                       .tid = 4001,
                                       .next_pid = 4002}};
    events[1] = events[2] = events[0];
    events[1].pid = 4003;
    events[2].pid = 4004;
    struct etwatch_events event_batch = etwatch_events_of(events, 3);
    struct etwatch_window windows[2] = {{.size = sizeof windows[0], .pid = 5001, .t_ns = 1},
                                        {.size = sizeof windows[0], .pid = 5002, .t_ns = 2}};
    struct etwatch_windows window_batch = etwatch_windows_of(windows, 2);
    struct etwatch_meta meta = {.size = sizeof meta, .source = ETWATCH_SOURCE_POLL};
    struct etwatch_loss loss = {.size = sizeof loss, .stage = ETWATCH_LOSS_QUEUE, .count = 6001};
    struct etwatch_alert alert = {
        .size = sizeof alert, .metric = ETWATCH_M_cpu_ns, .condition = "c", .pid = 7001};
    struct etwatch_stats stats = {.size = sizeof stats, .samples = 8001};
    struct etwatch_sample process = {
        .size = sizeof process, .type = ETWATCH_TYPE_EXIT, .pid = 9001};
    MUST(etwatch_sink_meta(sink, &meta) == 0);
    MUST(etwatch_sink_samples(sink, &samples) == 0);
    MUST(etwatch_sink_events(sink, &event_batch) == 0);
    MUST(etwatch_sink_windows(sink, &window_batch) == 0);
    MUST(etwatch_sink_loss(sink, &loss) == 0);
    MUST(etwatch_sink_alert(sink, &alert) == 0);
    MUST(etwatch_sink_process(sink, &process, 0) == 0);
    REFUSED(&meta, etwatch_sink_meta(sink, &meta));
    REFUSED(&loss, etwatch_sink_loss(sink, &loss));
    REFUSED(&alert, etwatch_sink_alert(sink, &alert));
    REFUSED(&stats, etwatch_sink_stats(sink, &stats));
    loss.size = 0;
    MUST(etwatch_sink_loss(sink, &loss) == ETWATCH_EINVAL);
    MUST(etwatch_sink_stats(sink, &stats) == 0);
    MUST(etwatch_sink_flush(sink) == 0);
    etwatch_sink_free(sink);
    size_t lines = 0;
    char pid[32];
    (void)snprintf(pid, sizeof pid, "\"pid\":%d,", (int)getpid());
    for (const char *at = text.bytes; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    MUST(lines == 1 + seen.stored + 3 + 2 + 1 + 1 + 1 + 1);
    size_t own = 0;
    for (const char *at = text.bytes; (at = strstr(at, pid)) != NULL; at++)
        own++;
    MUST(own == seen.stored);
    static const char *const parts[] = {"\"pid\":4001,", "\"pid\":4003,", "\"pid\":4004,",
                                        "\"pid\":5001,", "\"pid\":5002,", "\"count\":6001",
                                        "\"pid\":7001",  "8001",          "\"pid\":9001"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(text.bytes, parts[i]) == NULL)
            must(0, __LINE__, parts[i]);
}

/* ------------------------------------------------------------- summary and collector */

static void on_process(void *ctx, const struct etwatch_summary_process *process)
{
    *(unsigned *)ctx += 1;
    MUST(process->sample->pid == (uint32_t)getpid());
    MUST(process->metric_count > ETWATCH_M_cpu_percent);
    MUST(process->metrics[ETWATCH_M_cpu_percent].count > 0);
}

static void keep_samples(void)
{
    struct etwatch_samples samples = etwatch_samples_of(seen.kept, seen.stored);
    struct etwatch_summary_options options = {.size = sizeof options, .max_processes = 4};
    struct etwatch_summary *summary = NULL;
    unsigned processes = 0;
    REFUSED(&options, etwatch_summary_new(&options, &summary));
    MUST(etwatch_summary_new(&options, &summary) == 0);
    etwatch_summary_add(summary, &samples);
    MUST(etwatch_summary_for_each(summary, 0, on_process, &processes) == 1 && processes == 1);
    etwatch_summary_free(summary);

    GUARDED(etwatch_error_info, error);
    GUARDED(etwatch_collector_stats, stats);
    struct etwatch_table_options table = {.size = sizeof table, .max_rows = 100};
    struct etwatch_collector *collector = NULL;
    REFUSED(&table, etwatch_collector_new(&table, &collector, error));
    MUST(etwatch_collector_new(&table, &collector, error) == 0);
    etwatch_collector_on_samples(collector, &samples);
    DIRTY(stats);
    MUST(etwatch_collector_stats(collector, stats) == 0);
    MUST(stats->samples == seen.stored - 1); /* all but the START */
    FILLED(stats);
    INTACT(stats);
    INTACT(error);
    etwatch_collector_free(collector);
}

/* ------------------------------------------------------------------------ recordings */

static unsigned reported;

static int on_system(void *ctx, const struct etwatch_trace_system *system)
{
    (void)ctx;
    MUST(system->size > 8);
    return 0;
}

static int on_report(void *ctx, const struct etwatch_sample *process,
                     const struct etwatch_metric_set *estimated)
{
    (void)ctx;
    (void)estimated;
    reported++;
    MUST(process->pid == (uint32_t)getpid());
    return 0;
}

static int on_class(void *ctx, const struct etwatch_trace_class *klass)
{
    (void)ctx;
    MUST(klass->size > 8 && klass->count > 0);
    return 0;
}

static int on_image(void *ctx, const struct etwatch_trace_image *image)
{
    (void)ctx;
    MUST(image->size > 8);
    return 0;
}

static void write_recording(const char *path)
{
    struct etwatch_sink *sink = new_sink(ETWATCH_FORMAT_PERFETTO);
    struct etwatch_samples samples = etwatch_samples_of(seen.kept, seen.stored);
    struct etwatch_meta meta = {.size = sizeof meta,
                                .source = ETWATCH_SOURCE_POLL,
                                .cpu_count = 1,
                                .hz_requested = 100,
                                .anchor_unix_ns = seen.kept[0].t_ns,
                                .anchor_raw_ns = 1000};
    MUST(etwatch_sink_meta(sink, &meta) == 0);
    MUST(etwatch_sink_samples(sink, &samples) == 0);
    MUST(etwatch_sink_flush(sink) == 0);
    etwatch_sink_free(sink);
    FILE *file = fopen(path, "wb");
    MUST(file != NULL && fwrite(text.bytes, 1, text.len, file) == text.len && fclose(file) == 0);
}

static void read_recording(const char *folder)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/client.pftrace", folder);
    write_recording(path);
    const char *const paths[] = {path}, *const missing[] = {"/there/is/no/such.etl"};
    struct etwatch_trace *trace = NULL;
    struct etwatch_trace_options options = {.size = sizeof options, .workers = 1};
    GUARDED(etwatch_error_info, error);
    REFUSED(&options, etwatch_trace_open(paths, 1, &options, &trace, error));
    DIRTY(error);
    MUST(etwatch_trace_open(missing, 1, &options, &trace, error) < 0 && error->code < 0);
    FILLED(error);
    MUST(etwatch_trace_open(paths, 1, &options, &trace, error) == 0);
    GUARDED(etwatch_trace_file, file);
    DIRTY(file);
    MUST(etwatch_trace_file(trace, 0, file) == 0 && file->file_bytes > 0);
    FILLED(file);
    INTACT(file);
    unsigned events = 0;
    for (;;) {
        GUARDED(etwatch_trace_event, event);
        DIRTY(event);
        int rc = etwatch_trace_next(trace, event, error);
        if (rc <= 0) {
            MUST(rc == 0);
            break;
        }
        FILLED(event);
        MUST(etwatch_trace_fields(trace, event) == 0);
        INTACT(event);
        events++;
    }
    MUST(events > 0);
    struct etwatch_report_callbacks callbacks = {.size = sizeof callbacks,
                                                 .on_system = on_system,
                                                 .on_class = on_class,
                                                 .on_process = on_report,
                                                 .on_image = on_image};
    GUARDED(etwatch_trace_system, system);
    DIRTY(system);
    REFUSED(&callbacks, etwatch_trace_report(trace, &callbacks, system, error));
    MUST(etwatch_trace_report(trace, &callbacks, system, error) == 0);
    MUST(reported == 1);
    FILLED(system);
    INTACT(system);
    GUARDED(etwatch_trace_stats, stats);
    DIRTY(stats);
    MUST(etwatch_trace_stats(trace, stats) == 0 && stats->events == events);
    FILLED(stats);
    INTACT(stats);
    struct etwatch_sink *sink = new_sink(ETWATCH_FORMAT_JSONL);
    struct etwatch_trace_file files[2] = {*file, *file};
    struct etwatch_trace_summary summary = {
        .size = sizeof summary, .file_count = 2, .files = files, .stats = stats, .system = system};
    files[1].cpu_count = 77;
    MUST(etwatch_sink_trace(sink, &summary) == 0 && etwatch_sink_flush(sink) == 0);
    MUST(strstr(text.bytes, "77") != NULL);
    REFUSED(&files[0], etwatch_sink_trace(sink, &summary));
    REFUSED(&summary, etwatch_sink_trace(sink, &summary));
    etwatch_sink_free(sink);
    GUARDED(etwatch_export_counts, counts);
    struct etwatch_table_options table = {.size = sizeof table};
#ifndef OLDER
    /* Two filters of this program's size; no event matches the second one. */
    struct etwatch_event_filter filters[2] = {
        {.size = sizeof filters[0], .flags = ETWATCH_FILTER_EXCLUDE, .provider = "none"},
        {.size = sizeof filters[0], .provider = "no such provider"}};
    table.filters = filters;
    table.filter_count = 2;
    MUST(etwatch_trace_export(trace, ETWATCH_EXPORT_CSV, ETWATCH_TABLE_EVENTS, &table, keep, &text,
                              counts, stats, error) == 0);
    MUST(counts->rows == 0);
    REFUSED(&filters[0], etwatch_trace_export(trace, ETWATCH_EXPORT_CSV, ETWATCH_TABLE_EVENTS,
                                              &table, keep, &text, counts, stats, error));
    table.filters = NULL;
    table.filter_count = 0;
#endif
    DIRTY(counts);
    text.len = 0;
    MUST(etwatch_trace_export(trace, ETWATCH_EXPORT_CSV, ETWATCH_TABLE_SAMPLES, &table, keep, &text,
                              counts, stats, error) == 0);
    MUST(counts->rows == seen.stored - 1);
    REFUSED(&table, etwatch_trace_export(trace, ETWATCH_EXPORT_CSV, ETWATCH_TABLE_SAMPLES, &table,
                                         keep, &text, counts, stats, error));
    FILLED(counts);
    INTACT(counts);
    INTACT(stats);
    INTACT(error);
    etwatch_trace_free(trace);
    (void)remove(path);
}

/* ---------------------------------------------------------------------------- tables */

static void on_check(void *ctx, const struct etwatch_check *check)
{
    *(unsigned *)ctx += 1;
    MUST(check->id != NULL && check->size > 8);
}

static void read_tables(void)
{
    unsigned known = 0, checks = 0;
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        GUARDED(etwatch_metric_info, info);
        GUARDED(etwatch_metric_backend, backend);
        DIRTY(info);
        DIRTY(backend);
        int rc = etwatch_metric_info(i, info);
        MUST(rc == 0 || (rc == ETWATCH_EINVAL && i + 1 == ETWATCH_METRIC_COUNT));
        known += rc == 0;
        if (rc < 0)
            continue;
        FILLED(info);
        MUST(info->metric == i && info->name != NULL);
        MUST(etwatch_metric_backend(i, ETWATCH_BACKEND_EBPF, backend) == 0);
        FILLED(backend);
        INTACT(info);
        INTACT(backend);
    }
    MUST(known >= 40);
    GUARDED(etwatch_metric_info, info);
    MUST(etwatch_system_info(ETWATCH_S_cpu_percent, info) == 0);
    INTACT(info);
    GUARDED(etwatch_system, system);
    struct etwatch_system_reader *reader = NULL;
    MUST(etwatch_system_open(NULL, &reader) == 0);
    MUST(etwatch_system_read(reader, system) == 0 && system->t_ns > 0);
    INTACT(system);
    struct etwatch_sink *sink = new_sink(ETWATCH_FORMAT_JSONL);
    MUST(etwatch_sink_system(sink, system) == 0);
    etwatch_sink_free(sink);
    etwatch_system_close(reader);
    GUARDED(etwatch_sample, sample);
    GUARDED(etwatch_error_info, error);
    MUST(etwatch_process_read((uint32_t)getpid(), 0, sample, NULL, 0, NULL, error) == 0);
    check_sample(sample);
    INTACT(sample);
    MUST(etwatch_doctor(NULL, on_check, &checks) >= 0 && checks > 0);
    /* Two providers of this program's size; what is wrong is in the second. */
    struct etwatch_provider providers[2] = {{.size = sizeof providers[0], .name = "*One"},
                                            {.size = sizeof providers[0], .name = ""}};
    struct etwatch_session_options session = {
        .size = sizeof session, .providers = providers, .provider_count = 2};
    struct etwatch_config config = {.size = sizeof config, .session_options = &session};
    struct etwatch_monitor *monitor = NULL;
    MUST(etwatch_monitor_new(&config, NULL, &monitor, error) == ETWATCH_EINVAL);
    REFUSED(&providers[0], etwatch_monitor_new(&config, NULL, &monitor, error));
    REFUSED(&session, etwatch_monitor_new(&config, NULL, &monitor, error));
    INTACT(error);
}

/* ------------------------------------------------------- sums of samples and events */

static int on_window(void *ctx, const struct etwatch_window *window)
{
    *(unsigned *)ctx += 1;
    MUST(window->size > 8 && window->pid == (uint32_t)getpid() && window->dt_ns > 0);
    return 0;
}

static void add_up_samples(void)
{
    struct etwatch_account_options account_options = {.size = sizeof account_options};
    struct etwatch_rollup_options rollup_options = {.size = sizeof rollup_options};
    unsigned windows = 0;
    struct etwatch_aggregator_options aggregator_options = {
        .size = sizeof aggregator_options, .length_ns = 20000000, .on_window = on_window};
#ifndef OLDER
    aggregator_options.ctx = &windows;
#else
    MUST(windows == 0);
#endif
    struct etwatch_account *account = NULL;
    struct etwatch_rollup *rollup = NULL;
    struct etwatch_aggregator *aggregator = NULL;
    GUARDED(etwatch_error_info, error);
    REFUSED(&account_options, etwatch_account_new(&account_options, &account));
    REFUSED(&rollup_options, etwatch_rollup_new(&rollup_options, &rollup));
    REFUSED(&aggregator_options, etwatch_aggregator_new(&aggregator_options, &aggregator, error));
    /* An older release may have had no options at all. */
    MUST(etwatch_account_new(sizeof account_options < 8 ? NULL : &account_options, &account) == 0);
    MUST(etwatch_rollup_new(&rollup_options, &rollup) == 0);
#ifndef OLDER
    MUST(etwatch_aggregator_new(&aggregator_options, &aggregator, error) == 0);
#endif
    for (unsigned i = 0; i < seen.stored; i++) {
        MUST(etwatch_account_add_sample(account, &seen.kept[i]) == 0);
        MUST(etwatch_rollup_add(rollup, &seen.kept[i]) == 0);
        MUST(aggregator == NULL || etwatch_aggregator_add(aggregator, &seen.kept[i]) == 0);
    }
    MUST(aggregator == NULL || (etwatch_aggregator_end(aggregator) == 0 && windows > 0));
    etwatch_aggregator_free(aggregator);

    struct etwatch_report_callbacks callbacks = {.size = sizeof callbacks, .on_process = on_report};
    GUARDED(etwatch_trace_stats, stats);
    DIRTY(stats);
    MUST(etwatch_account_stats(account, stats) == 0);
    FILLED(stats);
    INTACT(stats);
    reported = 0;
    REFUSED(&callbacks, etwatch_account_report(account, &callbacks));
    MUST(etwatch_account_report(account, &callbacks) == 0 && reported == 1);
    reported = 0;
    etwatch_account_free(account);

    GUARDED(etwatch_rollup_row, row);
    GUARDED(etwatch_rollup_info, info);
    DIRTY(row);
    DIRTY(info);
    MUST(etwatch_rollup_sort(rollup, ETWATCH_M_cpu_ns, 0) == 1);
    MUST(etwatch_rollup_row(rollup, 0, row) == 0 && row->first_ns > 0);
    MUST(etwatch_rollup_row(rollup, 1, row) == ETWATCH_EINVAL);
    MUST(etwatch_rollup_info(rollup, info) == 0 && info->last_ns > 0);
    FILLED(row);
    FILLED(info);
    INTACT(row);
    INTACT(info);
    etwatch_rollup_free(rollup);
}

/* Thread 10 sleeps and is woken by thread 11 of the same process. */
static struct etwatch_events made_events(void)
{
    static struct etwatch_event events[3];
    events[0] = (struct etwatch_event){.size = sizeof events[0],
                                       .kind = ETWATCH_EVENT_SWITCH,
                                       .t_ns = 1000000,
                                       .pid = 10,
                                       .tid = 10,
                                       .next_pid = 10,
                                       .next_tid = 11,
                                       .state = 1};
    events[1] = events[2] = events[0];
    events[1].kind = ETWATCH_EVENT_WAKEUP;
    events[1].t_ns = 2000000;
    events[2].t_ns = 3000000;
    events[2].tid = 11;
    events[2].next_tid = 10;
    return etwatch_events_of(events, 3);
}

static void follow_waits(void)
{
    struct etwatch_events events = made_events();
    struct etwatch_waits *waits = NULL;
    MUST(etwatch_waits_new(&waits) == 0);
    for (size_t i = 0; i < events.count; i++) {
        struct etwatch_event event = *etwatch_event_at(&events, i);
        REFUSED(&event, etwatch_waits_add(waits, &event));
        MUST(etwatch_waits_add(waits, &event) == 0);
    }
    MUST(etwatch_waits_end(waits) == 0);
    GUARDED(etwatch_waits_info, info);
    GUARDED(etwatch_waits_thread, thread);
    GUARDED(etwatch_waits_edge, edge);
    DIRTY(info);
    DIRTY(thread);
    DIRTY(edge);
    MUST(etwatch_waits_info(waits, info) == 0 && info->thread_count == 2 && info->edge_count == 1);
    MUST(etwatch_waits_thread(waits, 0, thread) == 0 && thread->pid == 10);
    MUST(etwatch_waits_edge(waits, 0, edge) == 0 && edge->tid == 10 && edge->waker_tid == 11);
    FILLED(info);
    FILLED(thread);
    FILLED(edge);
    INTACT(info);
    INTACT(thread);
    INTACT(edge);
    struct etwatch_loss loss = {.size = sizeof loss, .stage = ETWATCH_LOSS_STREAM, .count = 1};
    REFUSED(&loss, etwatch_waits_add_loss(waits, ETWATCH_SOURCE_EBPF, &loss));
    MUST(etwatch_waits_add_loss(waits, ETWATCH_SOURCE_EBPF, &loss) == 0);
    loss.size = 0;
    MUST(etwatch_waits_add_loss(waits, ETWATCH_SOURCE_EBPF, &loss) == ETWATCH_EINVAL);
    etwatch_waits_free(waits);
}

/* ----------------------------------------------------------------------------- spans */

static struct etwatch_span made_span(void)
{
    struct etwatch_span span = {.size = sizeof span,
                                .kind = ETWATCH_SPAN_WORK,
                                .pid = 10,
                                .tid = 10,
                                .end_tid = 10,
                                .start_ns = 1000000,
                                .end_ns = 3000000,
                                .name = "work"};
    return span;
}

static void on_span(void *ctx, const struct etwatch_span *span)
{
    uint64_t sum_ns = 0;
    *(unsigned *)ctx += 1;
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++)
        sum_ns += span->ns[i];
    MUST(span->size > 8 && strcmp(span->name, "work") == 0);
    MUST(sum_ns == 0 || sum_ns == span->end_ns - span->start_ns);
}

static void on_strip(void *ctx, const struct etwatch_strip *strip)
{
    *(unsigned *)ctx += 1;
    MUST(strip->size > 8 && strip->to_ns > strip->from_ns && strip->state != 0);
}

static void explain_spans(void)
{
    unsigned spans_seen = 0, strips = 0;
    struct etwatch_spans_options options = {
        .size = sizeof options, .ctx = &spans_seen, .on_span = on_span};
    struct etwatch_spans *spans = NULL;
    struct etwatch_events events = made_events();
    struct etwatch_samples samples = etwatch_samples_of(seen.kept, seen.stored);
    struct etwatch_loss loss = {.size = sizeof loss, .stage = ETWATCH_LOSS_QUEUE, .count = 1};
    struct etwatch_span span = made_span();
    struct etwatch_gpu_op op = {.size = sizeof op,
                                .kind = ETWATCH_GPU_KERNEL,
                                .flags = ETWATCH_GPU_OP_HAS_CALL,
                                .pid = 10,
                                .tid = 10,
                                .start_ns = 1500000,
                                .end_ns = 1600000,
                                .call_start_ns = 1100000,
                                .call_end_ns = 1200000};
    struct etwatch_gpu_process process = {
        .size = sizeof process, .pid = 10, .state = ETWATCH_GPU_ACTIVE};
    REFUSED(&options, etwatch_spans_new(&options, &spans));
    MUST(etwatch_spans_new(&options, &spans) == 0);
    MUST(etwatch_spans_add_process(spans, 10, "worker") == 0);
    etwatch_spans_on_samples(spans, &samples);
    etwatch_spans_on_events(spans, &events);
    REFUSED(&loss, etwatch_spans_add_loss(spans, &loss));
    MUST(etwatch_spans_add_loss(spans, &loss) == 0);
    loss.size = 0;
    MUST(etwatch_spans_add_loss(spans, &loss) == ETWATCH_EINVAL);
    REFUSED(&op, etwatch_spans_add_gpu_op(spans, &op));
    MUST(etwatch_spans_add_gpu_op(spans, &op) == 0);
    REFUSED(&process, etwatch_spans_add_gpu_process(spans, &process));
    MUST(etwatch_spans_add_gpu_process(spans, &process) == 0);
    REFUSED(&span, etwatch_spans_add(spans, &span));
    MUST(etwatch_spans_add(spans, &span) == 0);
    MUST(etwatch_spans_advance(spans, UINT64_MAX) == 0 && spans_seen == 1);
    MUST(etwatch_spans_strips(spans, 10, 1000000, 3000000, on_strip, &strips) > 0 && strips > 0);
    GUARDED(etwatch_span_group, group);
    DIRTY(group);
    MUST(etwatch_spans_group(spans, 0, group) == 0 && group->count == 1);
    FILLED(group);
    INTACT(group);
    char sentence[256];
    MUST(etwatch_span_group_text(group, sentence, sizeof sentence) > 0);
    REFUSED(group, etwatch_span_group_text(group, sentence, sizeof sentence));
    etwatch_spans_free(spans);
}

/* The mark of this program arrives at a receiver of its own. */
static void mark_spans(void)
{
    unsigned arrived = 0;
    struct etwatch_receiver *receiver = NULL;
    struct etwatch_marks *marks = NULL;
    GUARDED(etwatch_error_info, error);
    MUST(etwatch_receiver_new(&receiver, error) == 0);
    MUST(setenv("ETWATCH_SPANS", etwatch_receiver_address(receiver), 1) == 0);
    MUST(etwatch_marks_new(&marks) == 0);
    uint64_t begun = etwatch_span_begin(marks);
    MUST(begun > 0);
    etwatch_span_end(marks, begun, "work", NULL);
    MUST(etwatch_receiver_read(receiver, 0, 0, on_span, &arrived) == 1 && arrived == 1);
    etwatch_marks_free(marks);
    etwatch_receiver_free(receiver);
    INTACT(error);
}

static void write_lines_of_spans(void)
{
    struct etwatch_sink *sink = new_sink(ETWATCH_FORMAT_JSONL);
    struct etwatch_span span = made_span();
    struct etwatch_span_group group = {.size = sizeof group, .name = "grouped"};
    struct etwatch_gpu_op op = {.size = sizeof op, .kind = ETWATCH_GPU_KERNEL, .pid = 4101};
    struct etwatch_gpu_process process = {.size = sizeof process, .pid = 4102};
    struct etwatch_gpu_sum sum = {.size = sizeof sum, .pid = 4103, .name = "summed"};
    struct etwatch_trace_class klass = {.size = sizeof klass, .id = 4104, .count = 1};
    struct etwatch_trace_image image = {.size = sizeof image, .pid = 4105};
    struct etwatch_operator node = {.size = sizeof node, .node = "node"};
    struct etwatch_device devices[2] = {
        {.size = sizeof devices[0], .kind = ETWATCH_DEVICE_GPU, .t_ns = 1, .driver = "first"},
        {.size = sizeof devices[0], .kind = ETWATCH_DEVICE_NPU, .t_ns = 2, .driver = "second"}};
    struct etwatch_devices batch = etwatch_devices_of(devices, 2);
    MUST(etwatch_sink_span(sink, &span) == 0);
    MUST(etwatch_sink_span_group(sink, &group) == 0);
    MUST(etwatch_sink_gpu_op(sink, &op) == 0);
    MUST(etwatch_sink_gpu_process(sink, &process) == 0);
    MUST(etwatch_sink_gpu_sum(sink, &sum) == 0);
    MUST(etwatch_sink_class(sink, &klass) == 0);
    MUST(etwatch_sink_image(sink, &image) == 0);
    MUST(etwatch_sink_devices(sink, &batch) == 0);
    /* Without its span an operator has no time. */
    MUST(etwatch_sink_operator(sink, &node) == ETWATCH_EINVAL);
    REFUSED(&span, etwatch_sink_span(sink, &span));
    REFUSED(&group, etwatch_sink_span_group(sink, &group));
    REFUSED(&op, etwatch_sink_gpu_op(sink, &op));
    REFUSED(&process, etwatch_sink_gpu_process(sink, &process));
    REFUSED(&sum, etwatch_sink_gpu_sum(sink, &sum));
    REFUSED(&klass, etwatch_sink_class(sink, &klass));
    REFUSED(&image, etwatch_sink_image(sink, &image));
    REFUSED(&node, etwatch_sink_operator(sink, &node));
    MUST(etwatch_sink_flush(sink) == 0);
    static const char *const parts[] = {"\"work\"", "\"grouped\"", "4101",
                                        "4102",     "\"summed\"",  "4104",
                                        "4105",     "\"first\"",   "\"second\""};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(text.bytes, parts[i]) == NULL)
            must(0, __LINE__, parts[i]);
    etwatch_sink_free(sink);

    GUARDED(etwatch_error_info, error);
    GUARDED(etwatch_collector_stats, stats);
    struct etwatch_table_options table = {.size = sizeof table};
    struct etwatch_collector *collector = NULL;
    MUST(etwatch_collector_new(&table, &collector, error) == 0);
    etwatch_collector_on_span(collector, &span);
    etwatch_collector_on_operator(collector, &node);
    etwatch_collector_on_devices(collector, &batch);
    MUST(etwatch_collector_stats(collector, stats) == 0);
    INTACT(stats);
    etwatch_collector_free(collector);
}

/* ------------------------------------------------- devices, GPU traces, consumer, probes */

static void read_devices(void)
{
    const char *nowhere = "/there/is/no/such/folder";
    struct etwatch_device_options options = {
        .size = sizeof options, .hz = 100, .proc_root = nowhere, .sys_root = nowhere};
#ifndef OLDER
    options.nvml_library = nowhere;
#endif
    struct etwatch_device_reader *reader = NULL;
    GUARDED(etwatch_devices, batch);
    DIRTY(batch);
    REFUSED(&options, etwatch_device_reader_open(&options, &reader));
    MUST(reader == NULL);
    MUST(etwatch_device_reader_open(&options, &reader) == 0);
    int count = etwatch_device_reader_read(reader, 5000, batch);
    MUST(count >= 0 && (size_t)count == batch->count);
    for (size_t i = 0; i < batch->count; i++)
        MUST(etwatch_device_at(batch, i)->size > 8 && etwatch_device_at(batch, i)->driver != NULL);
    FILLED(batch);
    INTACT(batch);
    etwatch_device_reader_close(reader);
}

static void trace_gpu(void)
{
    struct etwatch_gpu_trace_options options = {.size = sizeof options};
    struct etwatch_gpu_trace *trace = NULL;
    GUARDED(etwatch_error_info, error);
    GUARDED(etwatch_gpu_process, process);
    GUARDED(etwatch_gpu_sum, sum);
    REFUSED(&options, etwatch_gpu_trace_new(&options, &trace, error));
    MUST(etwatch_gpu_trace_new(&options, &trace, error) == 0);
    MUST(etwatch_gpu_trace_read(trace, 0, 0) == 0);
    MUST(etwatch_gpu_trace_process(trace, 0, process) == ETWATCH_EINVAL);
    MUST(etwatch_gpu_trace_kernel(trace, 0, sum) == ETWATCH_EINVAL);
    INTACT(process);
    INTACT(sum);
    INTACT(error);
    etwatch_gpu_trace_free(trace);
}

/* Both need rights that not every user has: then the error is checked. */
static void open_streams(void)
{
    struct etwatch_consumer_options options = {.size = sizeof options};
    struct etwatch_consumer *consumer = NULL;
    GUARDED(etwatch_error_info, error);
    GUARDED(etwatch_consumer_stats, stats);
    REFUSED(&options, etwatch_consumer_open(&options, &consumer, error));
    MUST(consumer == NULL);
    DIRTY(error);
    int rc = etwatch_consumer_open(&options, &consumer, error);
    MUST(rc == 0 || error->code == rc);
    DIRTY(stats);
    if (rc == 0) {
        MUST(etwatch_consumer_stats(consumer, stats) == 0);
        MUST(stats->source == ETWATCH_SOURCE_EBPF);
        FILLED(stats);
    }
    INTACT(stats);
    etwatch_consumer_free(consumer);

    struct etwatch_probes_options probes_options = {.size = sizeof probes_options};
    struct etwatch_probes *probes = NULL;
    GUARDED(etwatch_probes_stats, probes_stats);
    REFUSED(&probes_options, etwatch_probes_new(&probes_options, &probes, error));
    rc = etwatch_probes_new(sizeof probes_options < 8 ? NULL : &probes_options, &probes, error);
    MUST(rc == 0 || error->code == rc);
    DIRTY(probes_stats);
    if (rc == 0) {
        MUST(etwatch_probes_stats(probes, probes_stats) == 0 && probes_stats->spans == 0);
        FILLED(probes_stats);
    }
    INTACT(probes_stats);
    INTACT(error);
    etwatch_probes_free(probes);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    watch();
    write_lines();
    keep_samples();
    read_recording(argv[1]);
    add_up_samples();
    follow_waits();
    explain_spans();
    mark_spans();
    write_lines_of_spans();
    read_devices();
    trace_gpu();
    open_streams();
    read_tables();
    if (failures == 0)
        puts("fine");
    return failures != 0;
}
