/* SPDX-License-Identifier: MIT */
/* Walks the records of a track backwards into buckets, then forwards to hold gauges. */
#include "serve/range.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

#define DEFAULT_SPAN_NS (UINT64_C(300) * EW_STATE_SECOND_NS)
#define LEAST_STEP_NS UINT64_C(1000000)

static uint64_t round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

/* 1, 2, 5, 10, 20, 50 … ms: the first that is not below. */
static uint64_t round_step(uint64_t step_ns)
{
    static const uint64_t seconds[] = {1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600};
    for (uint64_t decade = LEAST_STEP_NS; decade < EW_STATE_SECOND_NS; decade *= 10)
        for (uint64_t digit = 1; digit <= 5; digit += digit == 2 ? 3 : 1)
            if (digit * decade >= step_ns)
                return digit * decade;
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++)
        if (seconds[i] * EW_STATE_SECOND_NS >= step_ns)
            return seconds[i] * EW_STATE_SECOND_NS;
    return round_up(step_ns, 3600 * EW_STATE_SECOND_NS);
}

bool ew_range_fit(const struct ew_state *state, uint64_t from_ns, uint64_t to_ns, uint64_t step_ns,
                  bool machine, struct ew_range *ret_range)
{
    if (to_ns == 0 || to_ns > state->now_ns)
        to_ns = state->now_ns;
    if (from_ns == 0)
        from_ns = to_ns > DEFAULT_SPAN_NS ? to_ns - DEFAULT_SPAN_NS : 1;
    if (from_ns < state->first_ns)
        from_ns = state->first_ns > EW_STATE_SECOND_NS ? state->first_ns - EW_STATE_SECOND_NS : 0;
    if (from_ns >= to_ns)
        return false;
    uint64_t least_ns = (to_ns - from_ns) / 600;
    if (step_ns == 0)
        step_ns = least_ns;
    if (step_ns < (to_ns - from_ns) / (EW_RANGE_BUCKETS_MAX - 2))
        step_ns = (to_ns - from_ns) / (EW_RANGE_BUCKETS_MAX - 2);
    uint64_t oldest_ns = ew_history_oldest_ns(&state->fine);
    ret_range->fine = !machine && step_ns < EW_STATE_SECOND_NS && oldest_ns != 0 &&
                      from_ns + EW_STATE_SECOND_NS >= oldest_ns;
    /* Buckets narrower than an interval would be gaps. */
    double hz = state->meta.meta.hz_requested > 0 ? state->meta.meta.hz_requested : 1;
    if (state->stats.size != 0 && state->stats.hz_effective > 0)
        hz = state->stats.hz_effective;
    uint64_t interval_ns = (uint64_t)((double)EW_STATE_SECOND_NS / hz);
    if (!ret_range->fine && interval_ns < EW_STATE_SECOND_NS)
        interval_ns = EW_STATE_SECOND_NS;
    if (step_ns < interval_ns)
        step_ns = interval_ns;
    step_ns = round_step(step_ns);
    ret_range->step_ns = step_ns;
    ret_range->from_ns = from_ns / step_ns * step_ns;
    ret_range->to_ns = ret_range->fine ? to_ns / step_ns * step_ns : round_up(to_ns, step_ns);
    if (ret_range->to_ns <= ret_range->from_ns)
        return false;
    uint64_t buckets = (ret_range->to_ns - ret_range->from_ns) / step_ns;
    ret_range->buckets = buckets > EW_RANGE_BUCKETS_MAX ? EW_RANGE_BUCKETS_MAX : (uint32_t)buckets;
    return true;
}

static void add_point(const struct ew_history *history, const struct ew_history_point *point,
                      struct ew_range_metric *metrics, uint32_t count, uint32_t bucket)
{
    for (uint32_t i = 0; i < count; i++) {
        struct ew_range_metric *metric = &metrics[i];
        uint32_t m = metric->metric;
        if (!etwatch_metric_set_has(&point->has, m))
            continue;
        double value = ew_catalog_number(history->types[m], point->values[m]);
        double dt_s = (double)point->dt_ns / (double)EW_STATE_SECOND_NS;
        double *at = &metric->values[bucket];
        if (metric->counter) {
            *at = isnan(*at) ? value : *at + value;
            double rate = dt_s > 0 ? value / dt_s : 0;
            if (metric->peaks != NULL &&
                (isnan(metric->peaks[bucket]) || rate > metric->peaks[bucket]))
                metric->peaks[bucket] = rate;
        } else if (isnan(*at)) {
            *at = value; /* the latest of the bucket: the walk is backwards */
        }
    }
}

/* Sums become rates; gaps in the life of the track become 0 or the value before. */
static void finish(struct ew_range_metric *metric, const struct ew_range *range, const bool *known,
                   double held)
{
    double step_s = (double)range->step_ns / (double)EW_STATE_SECOND_NS;
    bool seen = metric->counter ? !isnan(held) : false;
    for (uint32_t b = 0; b < range->buckets && metric->counter && !seen; b++)
        seen = !isnan(metric->values[b]);
    for (uint32_t b = 0; b < range->buckets; b++) {
        double *at = &metric->values[b];
        if (!known[b]) {
            *at = NAN;
            held = metric->counter ? held : NAN;
        } else if (metric->counter) {
            *at = isnan(*at) ? (seen ? 0 : NAN) : *at / step_s;
            if (metric->peaks != NULL && isnan(metric->peaks[b]))
                metric->peaks[b] = *at;
        } else {
            held = isnan(*at) ? held : *at;
            *at = held;
        }
    }
}

int ew_range_read(const struct ew_history *history, uint64_t mark, const struct ew_range *range,
                  uint64_t known_from_ns, uint64_t known_to_ns, struct ew_range_metric *metrics,
                  uint32_t count)
{
    struct ew_history_point *point = ew_calloc(1, sizeof *point);
    bool *known = ew_calloc(range->buckets, sizeof *known);
    double held[EW_RANGE_METRICS_MAX];
    if (point == NULL || known == NULL) {
        ew_free(point);
        ew_free(known);
        return ETWATCH_ENOMEM;
    }
    uint64_t oldest_ns = ew_history_oldest_ns(history);
    for (uint32_t b = 0; b < range->buckets; b++) {
        uint64_t begin_ns = range->from_ns + b * range->step_ns;
        uint64_t end_ns = begin_ns + range->step_ns;
        known[b] = end_ns > known_from_ns && (known_to_ns == 0 || begin_ns < known_to_ns) &&
                   end_ns >= oldest_ns;
        for (uint32_t i = 0; i < count; i++) {
            metrics[i].values[b] = NAN;
            if (metrics[i].peaks != NULL)
                metrics[i].peaks[b] = NAN;
        }
    }
    for (uint32_t i = 0; i < count; i++)
        held[i] = NAN;
    uint64_t t_ns = 0, before = 0;
    while (ew_history_peek(history, mark, &t_ns, &before) && t_ns > range->from_ns) {
        uint64_t bucket = (t_ns - 1 - range->from_ns) / range->step_ns;
        if (bucket < range->buckets && ew_history_read(history, mark, point))
            add_point(history, point, metrics, count, (uint32_t)bucket);
        mark = before;
    }
    /* The gauges at the beginning are those of the record before. */
    if (ew_history_read(history, mark, point))
        for (uint32_t i = 0; i < count; i++)
            if (etwatch_metric_set_has(&point->has, metrics[i].metric))
                held[i] = ew_catalog_number(history->types[metrics[i].metric],
                                            point->values[metrics[i].metric]);
    for (uint32_t i = 0; i < count; i++)
        finish(&metrics[i], range, known, held[i]);
    ew_free(point);
    ew_free(known);
    return 0;
}
