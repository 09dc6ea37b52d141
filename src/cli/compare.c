/* SPDX-License-Identifier: MIT */
/*
 * Pairs the series of two runs, tests each pair, and states the result. A pair is different only if
 * the test says so after its correction for values that depend on each other, and the interval of
 * the ratio does not contain 1; everything else is "no significant difference".
 */
#include "cli/compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/units.h"

/* Beyond this a difference is reported as one. */
static const double significant = 0.01;

/* Intervals of samples that differ by more than this share are not comparable. */
static const double interval_tolerance = 0.1;

/* ------------------------------------------------------------------------------ pairs */

static bool same_work(const struct ew_series *a, const struct ew_series *b)
{
    return a->what == b->what && strcmp(a->kind, b->kind) == 0 && strcmp(a->name, b->name) == 0;
}

static const struct ew_series *exact_partner(const struct ew_series *series,
                                             const struct ew_run_data *run)
{
    for (uint32_t i = 0; i < run->series_count; i++)
        if (same_work(series, &run->series[i]) &&
            strcmp(series->session, run->series[i].session) == 0)
            return &run->series[i];
    return NULL;
}

/* Two models of one kind of work, such as fp32.onnx and int8.onnx: if each run has one. */
static const struct ew_series *only_partner(const struct ew_series *series,
                                            const struct ew_run_data *own,
                                            const struct ew_run_data *run)
{
    const struct ew_series *found = NULL;
    for (uint32_t i = 0; i < own->series_count; i++)
        if (&own->series[i] != series && same_work(series, &own->series[i]))
            return NULL;
    for (uint32_t i = 0; i < run->series_count; i++) {
        if (!same_work(series, &run->series[i]))
            continue;
        if (found != NULL)
            return NULL;
        found = &run->series[i];
    }
    return found;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Nearest rank, as in the report of run. */
static int fill_percentiles(const struct ew_series *series, double ret_p[4])
{
    static const size_t percents[] = {50, 95, 99, 100};
    double *sorted = ew_calloc(series->count, sizeof *sorted);
    if (sorted == NULL)
        return ETWATCH_ENOMEM;
    memcpy(sorted, series->values, series->count * sizeof *sorted);
    qsort(sorted, series->count, sizeof *sorted, by_size);
    for (size_t i = 0; i < 4; i++) {
        size_t rank = (series->count * percents[i] + 99) / 100;
        ret_p[i] = sorted[rank == 0 ? 0 : rank - 1];
    }
    ew_free(sorted);
    return 0;
}

static int fill_pair(struct ew_compare_pair *pair)
{
    int rc =
        ew_rank_test(pair->a->values, pair->a->count, pair->b->values, pair->b->count, &pair->test);
    if (rc == 0)
        rc = fill_percentiles(pair->a, pair->a_p);
    if (rc == 0)
        rc = fill_percentiles(pair->b, pair->b_p);
    const struct ew_rank_test *test = &pair->test;
    pair->different = rc == 0 && test->p_serial < significant && test->has_ratio &&
                      (test->low > 1 || test->high < 1);
    return rc;
}

static int add_pairs(struct ew_comparison *comparison)
{
    const struct ew_run_data *a = comparison->a, *b = comparison->b;
    bool spans = a->spans > 0;
    comparison->pairs = ew_calloc(a->series_count, sizeof *comparison->pairs);
    if (comparison->pairs == NULL)
        return ETWATCH_ENOMEM;
    for (uint32_t i = 0; i < a->series_count; i++) {
        const struct ew_series *series = &a->series[i];
        if ((series->what == EW_SERIES_LATENCY) != spans)
            continue;
        const struct ew_series *partner = exact_partner(series, b);
        if (partner == NULL)
            partner = only_partner(series, a, b);
        if (partner == NULL)
            continue;
        struct ew_compare_pair *pair = &comparison->pairs[comparison->pair_count++];
        pair->a = series;
        pair->b = partner;
        int rc = fill_pair(pair);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ------------------------------------------------------------------------------- totals */

/* Energy is known if the samples without it used hardly any CPU time. */
static double energy_of(const struct ew_run_data *run)
{
    bool known = run->energy_uj > 0 && run->metered_cpu_ns >= 0.99 * run->sample_cpu_ns;
    return known ? run->energy_uj : -1;
}

static void fill_totals(struct ew_comparison *comparison)
{
    const struct ew_run_data *runs[] = {comparison->a, comparison->b};
    double *cpu_ns[] = {&comparison->a_cpu_ns, &comparison->b_cpu_ns};
    double *energy_uj[] = {&comparison->a_energy_uj, &comparison->b_energy_uj};
    for (size_t i = 0; i < 2; i++) {
        double parts = runs[i]->inferences > 0 ? (double)runs[i]->inferences : 1;
        double energy = energy_of(runs[i]);
        *cpu_ns[i] = runs[i]->samples > 0 ? runs[i]->sample_cpu_ns / parts : -1;
        *energy_uj[i] = energy < 0 ? -1 : energy / parts;
    }
}

static void name_series(const struct ew_run_data *run, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < run->series_count && used < size; i++) {
        const struct ew_series *series = &run->series[i];
        if (run->spans > 0 ? series->what != EW_SERIES_LATENCY : series->what != EW_SERIES_CPU)
            continue;
        int len = snprintf(text + used, size - used, "%s%s%s%s", used == 0 ? "" : ", ",
                           series->name, series->session[0] == '\0' ? "" : " of ", series->session);
        used += len > 0 ? (size_t)len : 0;
    }
}

static int refuse(struct ew_comparison *comparison, const char *format, ...) EW_PRINTF(2, 3);

static int refuse(struct ew_comparison *comparison, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(comparison->error, sizeof comparison->error, format, args);
    va_end(args);
    return -1;
}

static int check_alike(struct ew_comparison *comparison)
{
    const struct ew_run_data *a = comparison->a, *b = comparison->b;
    if ((a->spans > 0) != (b->spans > 0))
        return refuse(comparison,
                      "%s has spans and %s has none: run both with the same options (--onnx or "
                      "--spans)",
                      a->spans > 0 ? a->path : b->path, a->spans > 0 ? b->path : a->path);
    if (a->spans == 0 && fabs(a->interval_ns - b->interval_ns) >
                             interval_tolerance * fmax(a->interval_ns, b->interval_ns))
        return refuse(comparison,
                      "the samples of %s are %.4g ms long and those of %s %.4g ms: run both with "
                      "the same --hz",
                      a->path, a->interval_ns / 1e6, b->path, b->interval_ns / 1e6);
    return 0;
}

int ew_compare_runs(struct ew_comparison *comparison, const struct ew_run_data *a,
                    const struct ew_run_data *b)
{
    char a_names[160], b_names[160];
    memset(comparison, 0, sizeof *comparison);
    comparison->a = a;
    comparison->b = b;
    if (check_alike(comparison) < 0)
        return -1;
    if (add_pairs(comparison) < 0)
        return refuse(comparison, "out of memory");
    if (comparison->pair_count == 0) {
        name_series(a, a_names, sizeof a_names);
        name_series(b, b_names, sizeof b_names);
        return refuse(comparison, "the runs have nothing in common: %s has %s; %s has %s", a->path,
                      a_names, b->path, b_names);
    }
    fill_totals(comparison);
    return 0;
}

void ew_compare_runs_done(struct ew_comparison *comparison)
{
    ew_free(comparison->pairs);
    comparison->pairs = NULL;
    comparison->pair_count = 0;
}

/* ------------------------------------------------------------------------------ words */

static void put_value(struct ew_buf *out, uint32_t what, double value)
{
    if (what == EW_SERIES_LATENCY)
        ew_units_ns(out, (uint64_t)(value + 0.5));
    else if (what == EW_SERIES_MEMORY)
        ew_units_bytes(out, (uint64_t)(value + 0.5));
    else {
        (void)ew_buf_fixed(out, value, value < 10 ? 2 : 1);
        ew_buf_text(out, " %");
    }
}

static void put_p(struct ew_buf *out, double p)
{
    if (p < 0.001) {
        ew_buf_text(out, "p < 0.001");
        return;
    }
    ew_buf_text(out, "p = ");
    (void)ew_buf_fixed(out, p, p < 0.1 ? 3 : 2);
}

/* "2.1x faster", "3.4 % slower": of a time. "1.3x as much": of an amount. */
static void put_change(struct ew_buf *out, uint32_t what, double ratio)
{
    bool less = ratio < 1;
    double factor = less ? 1 / ratio : ratio;
    if (factor >= 1.1) {
        (void)ew_buf_fixed(out, factor, factor < 10 ? 2 : 0);
        ew_buf_text(out, "x ");
    } else {
        (void)ew_buf_fixed(out, 100 * fabs(ratio - 1), 1);
        ew_buf_text(out, " % ");
    }
    if (what == EW_SERIES_LATENCY)
        ew_buf_text(out, less ? "faster" : "slower");
    else
        ew_buf_text(out, less ? "less" : "more");
    if (what == EW_SERIES_CPU)
        ew_buf_text(out, " CPU");
    else if (what == EW_SERIES_MEMORY)
        ew_buf_text(out, " memory");
}

static void put_total(struct ew_buf *out, double a, double b, const char *name)
{
    if (a <= 0 || b < 0)
        return;
    ew_buf_text(out, ", ");
    (void)ew_buf_fixed(out, b / a, 2);
    ew_buf_text(out, "x ");
    ew_buf_text(out, name);
}

void ew_compare_sentence(struct ew_buf *out, const struct ew_comparison *comparison,
                         const struct ew_compare_pair *pair)
{
    const struct ew_rank_test *test = &pair->test;
    if (!test->has_ratio) {
        ew_buf_text(out, "too few values for a statement: 6 in each run are needed");
        return;
    }
    ew_buf_text(out, pair->different ? "B: " : "no significant difference");
    if (pair->different)
        put_change(out, pair->a->what, test->ratio);
    ew_buf_text(out, " (");
    put_p(out, test->p_serial);
    ew_buf_text(out, "; median ");
    put_value(out, pair->b->what, test->b_median);
    ew_buf_text(out, " instead of ");
    put_value(out, pair->a->what, test->a_median);
    ew_buf_char(out, ')');
    if (pair->different && strcmp(pair->a->kind, "inference") == 0) {
        put_total(out, comparison->a_cpu_ns, comparison->b_cpu_ns, "CPU time");
        put_total(out, comparison->a_energy_uj, comparison->b_energy_uj, "energy");
    }
}

/* ------------------------------------------------------------------------------- text */

enum { LABEL = 30, COLUMN = 12 };

/* Pads what was written since `from` to the right side of a column. */
static void align(struct ew_buf *out, size_t from, size_t width)
{
    size_t len = out->len - from;
    if (len >= width || !ew_buf_reserve(out, width))
        return;
    memmove(out->data + from + (width - len), out->data + from, len);
    memset(out->data + from, ' ', width - len);
    out->len = from + width;
}

static void put_label(struct ew_buf *out, const char *text)
{
    size_t from = out->len;
    ew_buf_text(out, "  ");
    ew_buf_text(out, text);
    size_t used = out->len - from;
    ew_buf_repeat(out, ' ', used < LABEL ? LABEL - used : 1);
}

static void put_ratio(struct ew_buf *out, double a, double b)
{
    size_t from = out->len;
    if (a > 0 && b >= 0)
        (void)ew_buf_fixed(out, b / a, 2);
    else
        ew_buf_char(out, '-');
    align(out, from, COLUMN);
}

/* Negative: unknown. */
static void put_row(struct ew_buf *out, const char *label, uint32_t what, double a, double b)
{
    put_label(out, label);
    for (int i = 0; i < 2; i++) {
        size_t from = out->len;
        if ((i == 0 ? a : b) < 0)
            ew_buf_char(out, '-');
        else
            put_value(out, what, i == 0 ? a : b);
        align(out, from, COLUMN);
    }
    put_ratio(out, a, b);
}

static void put_count(struct ew_buf *out, const char *label, uint64_t a, uint64_t b)
{
    put_label(out, label);
    for (int i = 0; i < 2; i++) {
        size_t from = out->len;
        ew_buf_u64(out, i == 0 ? a : b);
        align(out, from, COLUMN);
    }
    ew_buf_char(out, '\n');
}

static const char *const cause_labels[ETWATCH_CAUSE_COUNT] = {
    "work",
    "waiting for a CPU",
    "throttled by its cgroup",
    "page faults",
    "waiting for a disk",
    "waiting for a thread",
    "waiting for a process",
    "asleep",
    "unknown",
};

/* The average of a span. */
static double cause_of(const struct ew_series *series, uint32_t cause)
{
    if (cause == ETWATCH_CAUSE_FAULT && !series->faults_known)
        return -1;
    return series->cause_ns[cause] / (double)series->count;
}

static void put_causes(struct ew_buf *out, const struct ew_compare_pair *pair)
{
    double a_all = 0, b_all = 0;
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++) {
        a_all += pair->a->cause_ns[i] / (double)pair->a->count;
        b_all += pair->b->cause_ns[i] / (double)pair->b->count;
    }
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++) {
        double a = cause_of(pair->a, i), b = cause_of(pair->b, i);
        if (a <= 0.005 * a_all && b <= 0.005 * b_all)
            continue;
        put_row(out, cause_labels[i], EW_SERIES_LATENCY, a, b);
        ew_buf_char(out, '\n');
    }
}

static double gpu_of(const struct ew_series *series, double ns)
{
    return series->gpu_known ? ns / (double)series->count : -1;
}

static void put_gpu(struct ew_buf *out, const struct ew_compare_pair *pair)
{
    const struct ew_series *a = pair->a, *b = pair->b;
    if (!a->gpu_known && !b->gpu_known)
        return;
    put_row(out, "GPU time", EW_SERIES_LATENCY, gpu_of(a, a->gpu_ns), gpu_of(b, b->gpu_ns));
    ew_buf_char(out, '\n');
    put_row(out, "waiting for the GPU", EW_SERIES_LATENCY, gpu_of(a, a->wait_gpu_ns),
            gpu_of(b, b->wait_gpu_ns));
    ew_buf_char(out, '\n');
}

static void put_title(struct ew_buf *out, const struct ew_compare_pair *pair)
{
    static const char *const amounts[] = {"", ": CPU of an interval", ": memory"};
    (void)ew_buf_screen(out, pair->a->name, strlen(pair->a->name), 64);
    if (pair->a->session[0] != '\0') {
        ew_buf_text(out, " of ");
        (void)ew_buf_screen(out, pair->a->session, strlen(pair->a->session), 64);
    }
    if (strcmp(pair->a->session, pair->b->session) != 0) {
        ew_buf_text(out, " and ");
        (void)ew_buf_screen(out, pair->b->session, strlen(pair->b->session), 64);
    }
    ew_buf_text(out, amounts[pair->a->what]);
    ew_buf_char(out, '\n');
}

static void put_pair(struct ew_buf *out, const struct ew_comparison *comparison,
                     const struct ew_compare_pair *pair)
{
    static const char *const labels[] = {"p50", "p95", "p99", "max"};
    uint32_t what = pair->a->what;
    ew_buf_char(out, '\n');
    put_title(out, pair);
    put_label(out, "");
    for (size_t i = 0; i < 3; i++) {
        size_t from = out->len;
        ew_buf_text(out, i == 0 ? "A" : i == 1 ? "B" : "B / A");
        align(out, from, COLUMN);
    }
    ew_buf_char(out, '\n');
    put_count(out, what == EW_SERIES_LATENCY ? "count" : "intervals", pair->a->count,
              pair->b->count);
    if (pair->a->failed + pair->b->failed > 0)
        put_count(out, "failed", pair->a->failed, pair->b->failed);
    for (size_t i = 0; i < 4; i++) {
        put_row(out, labels[i], what, pair->a_p[i], pair->b_p[i]);
        if (i == 0 && pair->test.has_ratio) {
            ew_buf_text(out, "  95 %: ");
            (void)ew_buf_fixed(out, pair->test.low, 3);
            ew_buf_text(out, " to ");
            (void)ew_buf_fixed(out, pair->test.high, 3);
        }
        ew_buf_char(out, '\n');
    }
    if (what == EW_SERIES_LATENCY) {
        put_causes(out, pair);
        put_gpu(out, pair);
    }
    ew_buf_text(out, "  ");
    ew_compare_sentence(out, comparison, pair);
    ew_buf_char(out, '\n');
}

static void put_notes(struct ew_buf *out, const struct ew_run_data *run)
{
    if (run->lost > 0) {
        ew_buf_text(out, "  events lost: ");
        ew_buf_u64(out, run->lost);
        ew_buf_char(out, '\n');
    }
    if (run->ignored > 0) {
        ew_buf_text(out, "  values without room: ");
        ew_buf_u64(out, run->ignored);
        ew_buf_char(out, '\n');
    }
    if (run->cut)
        ew_buf_text(out, "  its end is missing: the last line is incomplete\n");
}

static void put_file(struct ew_buf *out, const char *label, const struct ew_run_data *run)
{
    ew_buf_text(out, label);
    (void)ew_buf_screen(out, run->path, strlen(run->path), 200);
    ew_buf_text(out, ": ");
    ew_buf_u64(out, run->spans > 0 ? run->spans : run->samples);
    ew_buf_text(out, run->spans > 0 ? " spans\n" : " samples\n");
    put_notes(out, run);
}

void ew_compare_write_text(struct ew_buf *out, const struct ew_comparison *comparison)
{
    bool each = comparison->a->inferences > 0 && comparison->b->inferences > 0;
    put_file(out, "A  ", comparison->a);
    put_file(out, "B  ", comparison->b);
    for (uint32_t i = 0; i < comparison->pair_count; i++)
        put_pair(out, comparison, &comparison->pairs[i]);
    ew_buf_text(out, each ? "\nwhole run, per inference\n" : "\nwhole run\n");
    put_row(out, "CPU time", EW_SERIES_LATENCY, comparison->a_cpu_ns, comparison->b_cpu_ns);
    ew_buf_text(out, "\n");
    put_label(out, "energy (estimate)");
    for (int i = 0; i < 2; i++) {
        double uj = i == 0 ? comparison->a_energy_uj : comparison->b_energy_uj;
        size_t from = out->len;
        if (uj >= 0) {
            (void)ew_buf_fixed(out, uj / 1000, 2);
            ew_buf_text(out, " mJ");
        } else {
            ew_buf_char(out, '-');
        }
        align(out, from, COLUMN);
    }
    put_ratio(out, comparison->a_energy_uj, comparison->b_energy_uj);
    ew_buf_char(out, '\n');
}

/* -------------------------------------------------------------------------------- JSON */

static void put_key(struct ew_buf *out, const char *prefix, const char *key)
{
    ew_buf_text(out, ",\"");
    ew_buf_text(out, prefix);
    ew_buf_text(out, key);
    ew_buf_text(out, "\":");
}

static void put_number(struct ew_buf *out, const char *prefix, const char *key, bool known,
                       double value)
{
    char text[40];
    put_key(out, prefix, key);
    if (!known) {
        ew_buf_text(out, "null");
        return;
    }
    if (value == floor(value) && fabs(value) < 1e15) {
        ew_buf_i64(out, (int64_t)value);
        return;
    }
    (void)snprintf(text, sizeof text, "%.9g", value);
    for (char *at = text; *at != '\0'; at++) /* whatever the locale is */
        *at = *at == ',' ? '.' : *at;
    ew_buf_text(out, text);
}

static void put_text(struct ew_buf *out, const char *prefix, const char *key, const char *text)
{
    put_key(out, prefix, key);
    if (text[0] == '\0')
        ew_buf_text(out, "null");
    else
        ew_buf_json_string(out, text, strlen(text));
}

static void json_side(struct ew_buf *out, const char *prefix, const struct ew_series *series,
                      const double p[4])
{
    static const char *const latencies[] = {"p50_ns", "p95_ns", "p99_ns", "max_ns"};
    static const char *const others[] = {"p50", "p95", "p99", "max"};
    static const char *const causes[ETWATCH_CAUSE_COUNT] = {
        "work_ns",      "runq_wait_ns",    "throttled_ns", "fault_ns",  "disk_wait_ns",
        "lock_wait_ns", "process_wait_ns", "sleep_ns",     "unknown_ns"};
    bool latency = series->what == EW_SERIES_LATENCY;
    put_text(out, prefix, "session", series->session);
    put_number(out, prefix, "count", true, (double)series->count);
    for (size_t i = 0; i < 4; i++)
        put_number(out, prefix, latency ? latencies[i] : others[i], true, p[i]);
    for (uint32_t i = 0; latency && i < ETWATCH_CAUSE_COUNT; i++) {
        double ns = cause_of(series, i);
        put_number(out, prefix, causes[i], ns >= 0, ns);
    }
    if (!latency)
        return;
    put_number(out, prefix, "gpu_ns", series->gpu_known, gpu_of(series, series->gpu_ns));
    put_number(out, prefix, "wait_gpu_ns", series->gpu_known, gpu_of(series, series->wait_gpu_ns));
    put_number(out, prefix, "failed", true, (double)series->failed);
}

static void json_pair(struct ew_buf *out, const struct ew_comparison *comparison,
                      const struct ew_compare_pair *pair)
{
    static const char *const metrics[] = {"dt_ns", "cpu_percent", "rss_bytes"};
    const struct ew_rank_test *test = &pair->test;
    struct ew_buf sentence;
    ew_buf_text(out, "{\"type\":\"comparison\"");
    put_text(out, "", "metric", metrics[pair->a->what]);
    put_text(out, "", "kind", pair->a->kind);
    put_text(out, "", "name", pair->a->name);
    json_side(out, "a_", pair->a, pair->a_p);
    json_side(out, "b_", pair->b, pair->b_p);
    put_number(out, "", "ratio", test->has_ratio, test->ratio);
    put_number(out, "", "ratio_low", test->has_ratio, test->low);
    put_number(out, "", "ratio_high", test->has_ratio, test->high);
    put_number(out, "", "u", true, test->u);
    put_number(out, "", "p", true, test->p);
    put_number(out, "", "p_serial", true, test->p_serial);
    put_number(out, "", "b_larger", true, test->larger);
    put_key(out, "", "different");
    ew_buf_text(out, !test->has_ratio ? "null" : pair->different ? "true" : "false");
    ew_buf_init(&sentence, 0, NULL, NULL);
    ew_compare_sentence(&sentence, comparison, pair);
    put_key(out, "", "text");
    ew_buf_json_string(out, sentence.data, sentence.len);
    ew_buf_done(&sentence);
    ew_buf_text(out, "}\n");
}

void ew_compare_write_json(struct ew_buf *out, const struct ew_comparison *comparison)
{
    const struct ew_comparison *c = comparison;
    for (uint32_t i = 0; i < c->pair_count; i++)
        json_pair(out, c, &c->pairs[i]);
    ew_buf_text(out, "{\"type\":\"comparison_total\",\"per\":");
    bool each = c->a->inferences > 0 && c->b->inferences > 0;
    ew_buf_text(out, each ? "\"inference\"" : "\"run\"");
    put_text(out, "a_", "path", c->a->path);
    put_text(out, "b_", "path", c->b->path);
    put_number(out, "a_", "cpu_ns", c->a_cpu_ns >= 0, c->a_cpu_ns);
    put_number(out, "b_", "cpu_ns", c->b_cpu_ns >= 0, c->b_cpu_ns);
    put_number(out, "a_", "energy_uj", c->a_energy_uj >= 0, c->a_energy_uj);
    put_number(out, "b_", "energy_uj", c->b_energy_uj >= 0, c->b_energy_uj);
    put_number(out, "a_", "lost", true, (double)c->a->lost);
    put_number(out, "b_", "lost", true, (double)c->b->lost);
    ew_buf_text(out, "}\n");
}
