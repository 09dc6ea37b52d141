/* SPDX-License-Identifier: MIT */
/* Internal access to the table of metrics. See etwatch/metrics.h for its meaning. */
#ifndef EW_MODEL_METRIC_H
#define EW_MODEL_METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/metrics.h>

struct ew_metric_backend {
    uint8_t exactness; /* enum etwatch_exactness */
    bool on_request;
    const char *how;
};

struct ew_metric_row {
    const char *group, *unit, *help;
    const char *prometheus, *prometheus_labels; /* after etwatch_process_ */
    const char *otlp, *otlp_attribute, *otlp_unit;
    double scale;
    double default_hz;
    struct ew_metric_backend backend[ETWATCH_BACKEND_COUNT];
    const char *otlp_linux, *otlp_linux_unit; /* NULL: same as otlp and otlp_unit */
};

extern const struct ew_metric_row ew_metric_rows[ETWATCH_METRIC_COUNT];

/* --------------------------------------------------------------- constant sets */

#define EW_METRIC_SET_SIZE (ETWATCH_METRIC_SET_WORDS * 64)
/* The words that the metrics of today need: a loop over them alone leaves the unused ones out. */
#define EW_METRIC_WORDS_USED ((ETWATCH_METRIC_COUNT + 63) / 64)

#define EW_METRIC_WORD(m, word) ((m) / 64 == (word) ? (uint64_t)1 << ((m) % 64) : (uint64_t)0)
#define EW_METRIC_WORD_OF(word, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, first_unused, ...) \
    (EW_METRIC_WORD(a, word) | EW_METRIC_WORD(b, word) | EW_METRIC_WORD(c, word) |                 \
     EW_METRIC_WORD(d, word) | EW_METRIC_WORD(e, word) | EW_METRIC_WORD(f, word) |                 \
     EW_METRIC_WORD(g, word) | EW_METRIC_WORD(h, word) | EW_METRIC_WORD(i, word) |                 \
     EW_METRIC_WORD(j, word) | EW_METRIC_WORD(k, word) | EW_METRIC_WORD(l, word) |                 \
     EW_METRIC_WORD(m, word) | EW_METRIC_WORD(n, word) | EW_METRIC_WORD(o, word) |                 \
     EW_METRIC_WORD(p, word) | 0 * sizeof(char[(first_unused) == EW_METRIC_SET_SIZE ? 1 : -1]))
#define EW_METRIC_WORD_PADDED(word, ...)                                                        \
    EW_METRIC_WORD_OF(word, __VA_ARGS__, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, \
                      256, 256, 256, 256, 256, 256, 256)

/* The initialiser of a set of 1 to 16 constants: EW_METRIC_SET(ETWATCH_M_cycles,
 * ETWATCH_M_instructions). Unused places hold 256, which is in no word; more than 16 members do not
 * compile. */
#define EW_METRIC_SET(...)                                                                   \
    {                                                                                        \
        {                                                                                    \
            EW_METRIC_WORD_PADDED(0, __VA_ARGS__), EW_METRIC_WORD_PADDED(1, __VA_ARGS__),    \
                EW_METRIC_WORD_PADDED(2, __VA_ARGS__), EW_METRIC_WORD_PADDED(3, __VA_ARGS__) \
        }                                                                                    \
    }
/* The same as an expression; its address may be taken. */
#define EW_METRICS(...) ((const struct etwatch_metric_set)EW_METRIC_SET(__VA_ARGS__))

_Static_assert(ETWATCH_METRIC_SET_WORDS == 4 && EW_METRIC_SET_SIZE == 256, "as many as are padded");
_Static_assert(ETWATCH_METRIC_COUNT <= ETWATCH_METRIC_DEFAULT, "every metric is a member of a set");

/* ------------------------------------------------------------------- questions */

static inline bool ew_metric_set_intersects(const struct etwatch_metric_set *a,
                                            const struct etwatch_metric_set *b)
{
    struct etwatch_metric_set both = *a;
    etwatch_metric_set_intersect(&both, b);
    return !etwatch_metric_set_is_empty(&both);
}

/* Every member that is a metric, in ascending order; members without a metric are not visited.
 * `set` is an address and is evaluated once per member. */
#define EW_METRIC_SET_EACH(metric, set)                                                      \
    for (uint32_t metric = etwatch_metric_set_next((set), 0); metric < ETWATCH_METRIC_COUNT; \
         metric = etwatch_metric_set_next((set), metric + 1))

/* The metrics with this exactness, and those that are measured without being selected. */
struct etwatch_metric_set ew_metrics_with(uint32_t backend, uint32_t exactness);
struct etwatch_metric_set ew_metrics_default(uint32_t backend);
/* Measured by sensors next to a source, not by the source itself. */
extern const struct etwatch_metric_set ew_metrics_of_devices;
/* The metrics that a source measures if nothing else is known: exact, polled or estimated. */
struct etwatch_metric_set ew_metrics_available(uint32_t backend);

/* True if at least one backend measures this metric. The others are in no output. */
bool ew_metric_is_measurable(uint32_t metric);
struct etwatch_metric_set ew_metrics_measurable(void);

/* The metrics that a source of this kind measures for a selection (etwatch_config.metrics). */
struct etwatch_metric_set ew_metrics_selected(uint32_t backend,
                                              const struct etwatch_metric_set *selection);
/* The metrics that have a rate of their own. */
struct etwatch_metric_set ew_metrics_rated(void);
/* The shortest time between two readings of those of `metrics` that are selected; 0: none of them
 * is, 1: one of them has no rate. */
uint64_t ew_metrics_period_ns(const struct etwatch_metric_set *selected,
                              const struct etwatch_rate *rates, uint32_t rate_count,
                              const struct etwatch_metric_set *metrics);

/* The metrics that are polled for a request: gauges that are read together are polled together. */
struct etwatch_metric_set ew_metrics_polled(const struct etwatch_metric_set *requested);

/* Ids, masks, levels and peaks: an average over intervals is meaningless. */
extern const struct etwatch_metric_set ew_metrics_without_average;

/* Always reported: how a process ended. */
extern const struct etwatch_metric_set ew_metrics_always;

#endif
