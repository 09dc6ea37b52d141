/* SPDX-License-Identifier: MIT */
/*
 * Owns a table of tracks: one per rule and process that is relevant to it. A rule with an upper
 * threshold on a rate needs a track only while its process runs; one with a lower threshold, or on
 * a gauge (which keeps its value), needs a track for the whole lifetime.
 *
 * The exit of a process may be delivered slightly later than what others did at the same time, so
 * the end of an alert is accepted only one call of advance later.
 */
#include "sampler/alert.h"

#include <string.h>

#include "base/alloc.h"
#include "ledger/index.h"
#include "ledger/pool.h"
#include "sampler/alert_track.h"

struct ew_alerts {
    struct ew_alerts_config config;
    struct ew_alert_rule rules[EW_ALERT_RULES_MAX];
    uint32_t rule_count;
    struct ew_pool tracks;
    struct ew_index by_pid;
    uint64_t horizon_ns; /* of the last advance */
    uint64_t lost;
};

enum kind { GAUGE, COUNTER };

static enum kind kind_of(uint32_t metric)
{
#define gauge GAUGE
#define counter COUNTER
    static const enum kind kinds[] = {
#define ETWATCH_X(name, type, kind) kind,
        ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
    };
#undef gauge
#undef counter
    return kinds[metric];
}

/* cpu_percent and similar metrics are amounts in the window, divided by its length. */
static bool is_rate(uint32_t metric)
{
    return kind_of(metric) == COUNTER || metric == ETWATCH_M_cpu_percent ||
           metric == ETWATCH_M_gpu_percent || metric == ETWATCH_M_npu_percent;
}

double ew_alert_value(const struct etwatch_sample *sample, uint32_t metric)
{
    double value = 0;
    switch (metric) {
#define ETWATCH_X(name, type, kind)   \
    case ETWATCH_M_##name:            \
        value = (double)sample->name; \
        break;
        ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
    default:
        break;
    }
    if (kind_of(metric) == COUNTER)
        value = sample->dt_ns == 0 ? 0 : value * 1e9 / (double)sample->dt_ns;
    return value;
}

int ew_alerts_new(const struct ew_alerts_config *config, struct ew_alerts **ret_alerts)
{
    if (config->rule_count > EW_ALERT_RULES_MAX || config->alert == NULL)
        return ETWATCH_EINVAL;
    struct ew_alerts *alerts = ew_calloc(1, sizeof *alerts);
    if (alerts == NULL)
        return ETWATCH_ENOMEM;
    alerts->config = *config;
    alerts->config.rules = alerts->rules;
    if (config->rule_count > 0)
        memcpy(alerts->rules, config->rules, config->rule_count * sizeof *config->rules);
    alerts->rule_count = config->rule_count;
    ew_pool_init(&alerts->tracks, sizeof(struct ew_track));
    ew_index_init(&alerts->by_pid);
    *ret_alerts = alerts;
    return 0;
}

void ew_alerts_free(struct ew_alerts *alerts)
{
    if (alerts == NULL)
        return;
    ew_pool_done(&alerts->tracks);
    ew_index_done(&alerts->by_pid);
    ew_free(alerts);
}

uint64_t ew_alerts_lost(const struct ew_alerts *alerts)
{
    return alerts->lost;
}

static struct ew_track_config config_of(const struct ew_alerts *alerts, uint32_t rule)
{
    bool fine = ew_alert_fine(&alerts->rules[rule]);
    return (struct ew_track_config){
        .rule = &alerts->rules[rule],
        .edges = alerts->config.edges && fine,
        .window_ns = fine ? ew_alert_window_ns(&alerts->rules[rule]) : 0,
        .ctx = alerts->config.ctx,
        .alert = alerts->config.alert,
    };
}

static bool takes(const struct ew_alerts *alerts, uint32_t rule)
{
    bool fine = ew_alert_fine(&alerts->rules[rule]);
    return (alerts->config.classes & (fine ? EW_ALERT_FINE : EW_ALERT_COARSE)) != 0;
}

/* Whether a track is needed while its process is idle. */
static bool stays(const struct ew_alerts *alerts, uint32_t rule)
{
    const struct ew_alert_rule *r = &alerts->rules[rule];
    return !is_rate(r->metric) || r->op == EW_ALERT_BELOW || r->op == EW_ALERT_AT_MOST;
}

/* -------------------------------------------------------------------- tracks */

static struct ew_track *find(const struct ew_alerts *alerts, uint32_t rule,
                             const struct etwatch_sample *sample)
{
    uint32_t cursor = ew_index_home(&alerts->by_pid, sample->pid), ref;
    while ((ref = ew_index_next(&alerts->by_pid, sample->pid, &cursor)) != 0) {
        struct ew_track *track = ew_pool_at(&alerts->tracks, ref);
        if (track->rule == rule && track->start_ns == sample->start_ns)
            return track;
    }
    return NULL;
}

static struct ew_track *make(struct ew_alerts *alerts, uint32_t rule,
                             const struct etwatch_sample *sample)
{
    uint32_t ref = 0;
    struct ew_track *track =
        alerts->tracks.used >= EW_ALERT_TRACKS_MAX ? NULL : ew_pool_take(&alerts->tracks, &ref);
    if (track != NULL && ew_index_add(&alerts->by_pid, sample->pid, ref) < 0) {
        ew_pool_give(&alerts->tracks, ref);
        track = NULL;
    }
    if (track == NULL) {
        alerts->lost++;
        return NULL;
    }
    track->self = ref;
    track->rule = rule;
    track->pid = sample->pid;
    track->start_ns = sample->start_ns;
    track->source = sample->source;
    return track;
}

static void drop(struct ew_alerts *alerts, struct ew_track *track)
{
    ew_index_remove(&alerts->by_pid, track->pid, track->self);
    ew_pool_give(&alerts->tracks, track->self);
}

static void set_name(struct ew_track *track, const char *name)
{
    size_t len = name == NULL ? 0 : strlen(name);
    len = len < sizeof track->name ? len : sizeof track->name - 1;
    if (len > 0)
        memcpy(track->name, name, len);
    track->name[len] = '\0';
}

/* ------------------------------------------------------------------- samples */

static void take_sample(struct ew_alerts *alerts, uint32_t rule,
                        const struct etwatch_sample *sample)
{
    uint32_t metric = alerts->rules[rule].metric;
    struct ew_track_config config = config_of(alerts, rule);
    if (!etwatch_sample_has(sample, metric))
        return; /* unknown: nothing changes */
    double value = ew_alert_value(sample, metric);
    struct ew_track *track = find(alerts, rule, sample);
    if (track == NULL && value == 0 && !stays(alerts, rule))
        return;
    if (track == NULL && (track = make(alerts, rule, sample)) == NULL)
        return;
    set_name(track, sample->name);
    if (is_rate(metric))
        ew_track_add(track, &config, sample->t_ns - sample->dt_ns, sample->t_ns, value);
    else
        ew_track_read(track, &config, sample->t_ns, value);
    track->incomplete |= (sample->flags & ETWATCH_SAMPLE_COMPLETE) == 0;
}

/* A process that is idle from its start may also be below a threshold. */
static void take_start(struct ew_alerts *alerts, uint32_t rule, const struct etwatch_sample *sample)
{
    if (!stays(alerts, rule) || !is_rate(alerts->rules[rule].metric) ||
        find(alerts, rule, sample) != NULL)
        return;
    struct ew_track *track = make(alerts, rule, sample);
    if (track == NULL)
        return;
    set_name(track, sample->name);
    track->begin_ns = track->end_ns = sample->t_ns;
}

static void take_exit(struct ew_alerts *alerts, uint32_t rule, const struct etwatch_sample *sample)
{
    struct ew_track_config config = config_of(alerts, rule);
    struct ew_track *track = find(alerts, rule, sample);
    if (track == NULL)
        return;
    if (is_rate(alerts->rules[rule].metric))
        ew_track_rest(track, &config, sample->t_ns);
    ew_track_finish(track, &config, true);
    drop(alerts, track);
}

void ew_alerts_feed(struct ew_alerts *alerts, const struct etwatch_sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct etwatch_sample *sample = &samples[i];
        for (uint32_t rule = 0; rule < alerts->rule_count; rule++) {
            if (!takes(alerts, rule))
                continue;
            if (sample->type == ETWATCH_TYPE_SAMPLE) {
                take_sample(alerts, rule, sample);
            } else if (sample->type == ETWATCH_TYPE_THREAD) {
                struct ew_track *track = find(alerts, rule, sample);
                if (track != NULL)
                    ew_track_thread(track, sample);
            } else if (sample->type == ETWATCH_TYPE_START) {
                take_start(alerts, rule, sample);
            } else {
                take_exit(alerts, rule, sample);
            }
        }
    }
}

/* ---------------------------------------------------------------------- time */

static bool is_needed(const struct ew_alerts *alerts, const struct ew_track *track)
{
    return stays(alerts, track->rule) || track->state != EW_TRACK_IDLE ||
           track->end_ns > track->begin_ns || track->before > 0;
}

void ew_alerts_advance(struct ew_alerts *alerts, uint64_t horizon_ns)
{
    uint64_t settled_ns = alerts->horizon_ns;
    alerts->horizon_ns = horizon_ns;
    for (uint32_t ref = 1; ref <= ew_pool_last(&alerts->tracks); ref++) {
        struct ew_track *track = ew_pool_at(&alerts->tracks, ref);
        if (track->self == 0)
            continue;
        struct ew_track_config config = config_of(alerts, track->rule);
        if (is_rate(config.rule->metric))
            ew_track_rest(track, &config, settled_ns);
        /* An alert that stopped before the horizon has ended, but its end is not accepted yet. */
        if (stays(alerts, track->rule) || track->end_ns + config.window_ns >= horizon_ns)
            ew_track_report_open(track, &config);
        if (!is_needed(alerts, track))
            drop(alerts, track);
    }
}

void ew_alerts_finish(struct ew_alerts *alerts)
{
    for (uint32_t ref = 1; ref <= ew_pool_last(&alerts->tracks); ref++) {
        struct ew_track *track = ew_pool_at(&alerts->tracks, ref);
        if (track->self == 0)
            continue;
        struct ew_track_config config = config_of(alerts, track->rule);
        if (is_rate(config.rule->metric))
            ew_track_rest(track, &config, alerts->horizon_ns);
        ew_track_finish(track, &config, false);
        drop(alerts, track);
    }
}
