/* SPDX-License-Identifier: MIT */
/*
 * Reads what compare needs of a run: the latencies of its spans, the samples of its processes, CPU
 * time and energy. Files are foreign bytes. A recording is read through the library, as the same
 * lines that --json writes, so that there is one way from a line to a series.
 */
#include "cli/compare.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <etwatch/arrow.h>
#include <etwatch/trace.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json_read.h"
#include "os/os.h"

/* The members of an object that are used. */
enum member {
    DT_NS,
    CPU_NS,
    CPU_PERCENT,
    RSS_BYTES,
    ENERGY_UJ,
    LOST,
    GPU_NS,
    WAIT_GPU_NS,
    CAUSES, /* one for each cause */
    MEMBER_COUNT = CAUSES + ETWATCH_CAUSE_COUNT,
};

static const char *const members[MEMBER_COUNT] = {
    [DT_NS] = "dt_ns",
    [CPU_NS] = "cpu_ns",
    [CPU_PERCENT] = "cpu_percent",
    [RSS_BYTES] = "rss_bytes",
    [ENERGY_UJ] = "energy_uj",
    [LOST] = "lost",
    [GPU_NS] = "gpu_ns",
    [WAIT_GPU_NS] = "wait_gpu_ns",
    [CAUSES + ETWATCH_CAUSE_WORK] = "work_ns",
    [CAUSES + ETWATCH_CAUSE_CPU] = "runq_wait_ns",
    [CAUSES + ETWATCH_CAUSE_THROTTLED] = "throttled_ns",
    [CAUSES + ETWATCH_CAUSE_FAULT] = "fault_ns",
    [CAUSES + ETWATCH_CAUSE_DISK] = "disk_wait_ns",
    [CAUSES + ETWATCH_CAUSE_LOCK] = "lock_wait_ns",
    [CAUSES + ETWATCH_CAUSE_PROCESS] = "process_wait_ns",
    [CAUSES + ETWATCH_CAUSE_SLEEP] = "sleep_ns",
    [CAUSES + ETWATCH_CAUSE_UNKNOWN] = "unknown_ns",
};

struct record {
    char type[16], kind[16], name[64], session[64];
    bool failed;
    bool has[MEMBER_COUNT];
    double values[MEMBER_COUNT];
};

struct reader {
    struct ew_run_data *run;
    char *line;
    size_t len, size;
    uint64_t number; /* of the line */
    bool failed;
};

static int fail(struct ew_run_data *run, const char *format, ...) EW_PRINTF(2, 3);

static int fail(struct ew_run_data *run, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(run->error, sizeof run->error, format, args);
    va_end(args);
    return -1;
}

/* ---------------------------------------------------------------------------- series */

static struct ew_series *series_of(struct ew_run_data *run, uint32_t what,
                                   const struct record *record)
{
    for (uint32_t i = 0; i < run->series_count; i++) {
        struct ew_series *series = &run->series[i];
        if (series->what == what && strcmp(series->kind, record->kind) == 0 &&
            strcmp(series->name, record->name) == 0 &&
            strcmp(series->session, record->session) == 0)
            return series;
    }
    if (run->series_count == run->series_size) {
        uint32_t size = run->series_size == 0 ? 16 : run->series_size * 2;
        struct ew_series *grown = size > EW_COMPARE_SERIES_MAX
                                      ? NULL
                                      : ew_realloc_array(run->series, size, sizeof *grown);
        if (grown == NULL)
            return NULL;
        run->series = grown;
        run->series_size = size;
    }
    struct ew_series *series = &run->series[run->series_count++];
    memset(series, 0, sizeof *series);
    series->what = what;
    series->faults_known = true;
    series->gpu_known = true;
    memcpy(series->kind, record->kind, sizeof series->kind);
    memcpy(series->name, record->name, sizeof series->name);
    memcpy(series->session, record->session, sizeof series->session);
    return series;
}

/* The series, or NULL: there is no room. */
static struct ew_series *add_value(struct ew_run_data *run, uint32_t what,
                                   const struct record *record, double value)
{
    struct ew_series *series =
        run->value_count < EW_COMPARE_VALUES_MAX ? series_of(run, what, record) : NULL;
    if (series != NULL && series->count == series->size) {
        size_t size = series->size == 0 ? 64 : series->size * 2;
        double *values = ew_realloc_array(series->values, size, sizeof *values);
        if (values == NULL) {
            series = NULL;
        } else {
            series->values = values;
            series->size = size;
        }
    }
    if (series == NULL) {
        run->ignored++;
        return NULL;
    }
    series->values[series->count++] = value;
    run->value_count++;
    return series;
}

static void add_span(struct ew_run_data *run, const struct record *record)
{
    struct ew_series *series = add_value(run, EW_SERIES_LATENCY, record, record->values[DT_NS]);
    run->spans++;
    run->inferences += strcmp(record->kind, "inference") == 0;
    if (series == NULL)
        return;
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++)
        series->cause_ns[i] += record->values[CAUSES + i];
    series->faults_known = series->faults_known && record->has[CAUSES + ETWATCH_CAUSE_FAULT];
    series->cpu_ns += record->values[CPU_NS];
    series->gpu_known = series->gpu_known && record->has[GPU_NS] && record->has[WAIT_GPU_NS];
    series->gpu_ns += record->values[GPU_NS];
    series->wait_gpu_ns += record->values[WAIT_GPU_NS];
    series->failed += record->failed;
}

static void add_sample(struct ew_run_data *run, const struct record *record)
{
    run->samples++;
    if (run->interval_ns <= 0)
        run->interval_ns = record->values[DT_NS];
    run->sample_cpu_ns += record->values[CPU_NS];
    if (record->has[ENERGY_UJ]) {
        run->metered_cpu_ns += record->values[CPU_NS];
        run->energy_uj += record->values[ENERGY_UJ];
    }
    if (record->has[CPU_PERCENT])
        (void)add_value(run, EW_SERIES_CPU, record, record->values[CPU_PERCENT]);
    if (record->has[RSS_BYTES])
        (void)add_value(run, EW_SERIES_MEMORY, record, record->values[RSS_BYTES]);
}

/* ------------------------------------------------------------------------------ lines */

static void read_value(struct ew_bytes *in, const char *key, struct record *record)
{
    static const struct {
        const char *key;
        size_t offset, size;
    } texts[] = {
        {"type", offsetof(struct record, type), sizeof record->type},
        {"kind", offsetof(struct record, kind), sizeof record->kind},
        {"name", offsetof(struct record, name), sizeof record->name},
        {"session", offsetof(struct record, session), sizeof record->session},
    };
    char c = ew_jsonin_peek(in);
    for (size_t i = 0; c == '"' && i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(key, texts[i].key) == 0) {
            (void)ew_jsonin_text(in, (char *)record + texts[i].offset, texts[i].size);
            return;
        }
    for (uint32_t i = 0; c >= '0' && c <= '9' && i < MEMBER_COUNT; i++)
        if (strcmp(key, members[i]) == 0) {
            record->values[i] = ew_jsonin_number(in);
            record->has[i] = true;
            return;
        }
    if (strcmp(key, "failed") == 0 && (c == 't' || c == 'f'))
        record->failed = ew_jsonin_bool(in);
    else
        ew_jsonin_skip(in);
}

/* false: it is no JSON object with a type. */
static bool read_record(const char *line, size_t len, struct record *record)
{
    struct ew_bytes in;
    char key[32];
    memset(record, 0, sizeof *record);
    ew_bytes_init(&in, line, len);
    for (bool more = ew_jsonin_first(&in, '{'); more; more = ew_jsonin_next(&in, '}')) {
        ew_jsonin_key(&in, key, sizeof key);
        read_value(&in, key, record);
    }
    return ew_bytes_ok(&in) && ew_jsonin_peek(&in) == 0 && record->type[0] != '\0';
}

static void take_record(struct ew_run_data *run, const struct record *record)
{
    if (strcmp(record->type, "span") == 0 && record->has[DT_NS])
        add_span(run, record);
    else if (strcmp(record->type, "sample") == 0)
        add_sample(run, record);
    else if (strcmp(record->type, "stats") == 0)
        run->lost += (uint64_t)record->values[LOST];
}

/* last: it has no end. That of a run that was killed may be cut. */
static int take_line(struct reader *reader, bool last)
{
    struct record record;
    reader->number++;
    if (reader->len == 0)
        return 0;
    if (read_record(reader->line, reader->len, &record)) {
        take_record(reader->run, &record);
        return 0;
    }
    if (last && reader->number > 1) {
        reader->run->cut = true;
        return 0;
    }
    reader->failed = true;
    return fail(reader->run,
                "%s:%llu: not an object of etwatch --json; compare reads the output of "
                "'etwatch run --json' or 'stat --json' and recordings (.pftrace)",
                reader->run->path, (unsigned long long)reader->number);
}

/* Bytes of the file, in any portions. */
static int take_bytes(void *ctx, const void *bytes, size_t len)
{
    struct reader *reader = ctx;
    const char *at = bytes;
    while (len > 0 && !reader->failed) {
        const char *end = memchr(at, '\n', len);
        size_t part = end == NULL ? len : (size_t)(end - at);
        if (reader->len + part > reader->size) {
            size_t size = reader->len + part < 4096 ? 4096 : 2 * (reader->len + part);
            char *line =
                size > 2 * EW_COMPARE_LINE_MAX ? NULL : ew_realloc_array(reader->line, size, 1);
            if (line == NULL) {
                reader->failed = true;
                return fail(reader->run, "%s:%llu: the line is longer than %d bytes",
                            reader->run->path, (unsigned long long)reader->number + 1,
                            EW_COMPARE_LINE_MAX);
            }
            reader->line = line;
            reader->size = size;
        }
        if (part > 0) /* an empty first line: there is no buffer yet */
            memcpy(reader->line + reader->len, at, part);
        reader->len += part;
        if (end == NULL)
            break;
        if (take_line(reader, false) < 0)
            return ETWATCH_EFORMAT;
        reader->len = 0;
        at += part + 1;
        len -= part + 1;
    }
    return reader->failed ? ETWATCH_EFORMAT : 0;
}

/* ------------------------------------------------------------------------------ files */

static int read_lines(struct reader *reader)
{
    struct ew_run_data *run = reader->run;
    char bytes[65536];
    struct ew_os_file *file;
    uint64_t size, at = 0;
    int64_t os_code = 0, len = 0;
    int rc = ew_os_file_open(run->path, &file, &size, &os_code);
    if (rc < 0)
        return fail(run, "cannot read %s: %s", run->path,
                    rc == ETWATCH_EOS && os_code > 0 ? strerror((int)os_code)
                                                     : etwatch_strerror(rc));
    while (!reader->failed && (len = ew_os_file_read(file, at, bytes, sizeof bytes)) > 0) {
        (void)take_bytes(reader, bytes, (size_t)len);
        at += (uint64_t)len;
    }
    ew_os_file_close(file);
    if (len < 0)
        return fail(run, "cannot read %s: %s", run->path, etwatch_strerror((int)len));
    return reader->failed ? -1 : take_line(reader, true);
}

static void copy_text(char *to, size_t size, const char *text)
{
    (void)snprintf(to, size, "%s", text == NULL ? "" : text);
}

/* A span of a recording as its line of --json. */
static void on_span(void *ctx, const struct etwatch_span *span)
{
    struct reader *reader = ctx;
    struct record record = {.failed = (span->flags & ETWATCH_SPAN_FAILED) != 0};
    copy_text(record.type, sizeof record.type, "span");
    copy_text(record.kind, sizeof record.kind, etwatch_span_kind_name(span->kind));
    copy_text(record.name, sizeof record.name, span->name);
    copy_text(record.session, sizeof record.session, span->session);
    record.values[DT_NS] = (double)(span->end_ns - span->start_ns);
    record.values[CPU_NS] = (double)span->cpu_ns;
    record.has[DT_NS] = record.has[CPU_NS] = true;
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++) {
        record.values[CAUSES + i] = (double)span->ns[i];
        record.has[CAUSES + i] =
            i != ETWATCH_CAUSE_FAULT || (span->flags & ETWATCH_SPAN_HAS_FAULTS) != 0;
    }
    record.values[GPU_NS] = (double)span->gpu_ns;
    record.values[WAIT_GPU_NS] = (double)span->wait_gpu_ns;
    record.has[GPU_NS] = record.has[WAIT_GPU_NS] = (span->flags & ETWATCH_SPAN_HAS_GPU) != 0;
    take_record(reader->run, &record);
}

static int read_recording(struct reader *reader)
{
    struct ew_run_data *run = reader->run;
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_trace_options options = {.size = sizeof options};
    struct ArrowArrayStream stream;
    struct etwatch_trace *trace = NULL;
    int rc = etwatch_trace_open(&run->path, 1, &options, &trace, &error);
    if (rc == 0)
        rc = etwatch_trace_table(trace, ETWATCH_TABLE_SAMPLES, NULL, &stream, &error);
    if (rc == 0)
        rc = etwatch_table_write(&stream, ETWATCH_FORMAT_JSONL, "sample", take_bytes, reader, NULL,
                                 &error);
    if (rc == 0)
        rc = etwatch_trace_spans(trace, on_span, reader, &error);
    etwatch_trace_free(trace);
    if (rc < 0 && !reader->failed)
        return fail(run, "cannot read %s: %s", run->path,
                    error.message[0] != '\0' ? error.message : etwatch_strerror(rc));
    return rc < 0 ? -1 : 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

int ew_compare_read(struct ew_run_data *run, const char *path)
{
    memset(run, 0, sizeof *run);
    run->path = path;
    struct reader reader = {.run = run};
    bool recording = ends_with(path, ".pftrace") || ends_with(path, ".perfetto-trace") ||
                     ends_with(path, ".etl");
    int rc = recording ? read_recording(&reader) : read_lines(&reader);
    ew_free(reader.line);
    if (rc == 0 && run->spans == 0 && run->samples == 0)
        rc = fail(run, "%s has neither spans nor samples", path);
    return rc;
}

void ew_compare_done(struct ew_run_data *run)
{
    for (uint32_t i = 0; i < run->series_count; i++)
        ew_free(run->series[i].values);
    ew_free(run->series);
    memset(run, 0, sizeof *run);
}
