/* SPDX-License-Identifier: MIT */
/* What compare keeps of a run, and the comparison of two. */
#ifndef EW_CLI_COMPARE_H
#define EW_CLI_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/span.h>

#include "base/buf.h"
#include "cli/rank_test.h"

struct ew_options;

enum {
    EW_COMPARE_SERIES_MAX = 1024,    /* of a run */
    EW_COMPARE_VALUES_MAX = 4000000, /* of all series of a run */
    EW_COMPARE_LINE_MAX = 1 << 20,
};

enum ew_series_what {
    EW_SERIES_LATENCY, /* of spans with one kind, name and session; ns */
    EW_SERIES_CPU,     /* cpu_percent of the samples of processes with one name */
    EW_SERIES_MEMORY,  /* rss_bytes of the same */
};

/* Measurements of one kind, in their order. */
struct ew_series {
    uint32_t what;
    char kind[16]; /* latency: the kind of the spans */
    char name[64];
    char session[64]; /* "": none */
    double *values;
    size_t count, size;
    double cause_ns[ETWATCH_CAUSE_COUNT]; /* sums over all spans */
    double cpu_ns;
    double gpu_ns, wait_gpu_ns; /* likewise, if gpu_known */
    bool faults_known, gpu_known;
    uint64_t failed;
};

struct ew_run_data {
    const char *path;
    struct ew_series *series;
    uint32_t series_count, series_size;
    size_t value_count;
    uint64_t spans, inferences, samples, lost;
    uint64_t ignored;      /* lines and values that found no room */
    bool cut;              /* the last line is incomplete */
    double interval_ns;    /* of the first sample; 0: none */
    double sample_cpu_ns;  /* of all samples */
    double metered_cpu_ns; /* of those with energy */
    double energy_uj;
    char error[256]; /* why the file cannot be read */
};

/* Reads a run from JSON Lines, or from a recording. 0, or -1 with `error` set. */
int ew_compare_read(struct ew_run_data *run, const char *path);
void ew_compare_done(struct ew_run_data *run);

/* Two series that are about the same. */
struct ew_compare_pair {
    const struct ew_series *a, *b;
    struct ew_rank_test test;
    double a_p[4], b_p[4]; /* p50, p95, p99, max */
    bool different;
};

struct ew_comparison {
    const struct ew_run_data *a, *b;
    struct ew_compare_pair *pairs;
    uint32_t pair_count;
    /* Per inference, or of the whole run without inferences; negative: unknown. */
    double a_cpu_ns, b_cpu_ns, a_energy_uj, b_energy_uj;
    char error[512]; /* why the runs cannot be compared */
};

/* 0, or -1 with `error` set. */
int ew_compare_runs(struct ew_comparison *comparison, const struct ew_run_data *a,
                    const struct ew_run_data *b);
void ew_compare_runs_done(struct ew_comparison *comparison);
/* The sentence of a pair. */
void ew_compare_sentence(struct ew_buf *out, const struct ew_comparison *comparison,
                         const struct ew_compare_pair *pair);
void ew_compare_write_text(struct ew_buf *out, const struct ew_comparison *comparison);
void ew_compare_write_json(struct ew_buf *out, const struct ew_comparison *comparison);

#endif
