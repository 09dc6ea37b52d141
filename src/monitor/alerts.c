/* SPDX-License-Identifier: MIT */
/*
 * Owns the conditions and the second sampler. Its windows divide the interval of the samples, so
 * the source needs only the shorter interval: readings are absolute, so additional ones do not
 * disturb the main sampler.
 */
#include "monitor/monitor.h"

#include <string.h>

static const uint64_t window_min_ns = 1000 * 1000;

int ew_watch_alerts_init(struct ew_watch_alerts *watch, const char *const *texts, uint32_t count,
                         struct ew_error *reterr)
{
    struct ew_error why;
    memset(watch, 0, sizeof *watch);
    watch->divisor = 1;
    if (count > EW_ALERT_RULES_MAX)
        return ew_error_set(reterr, ETWATCH_ELIMIT, 0, "more than %d alerts", EW_ALERT_RULES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        memset(&why, 0, sizeof why);
        int rc = ew_alert_parse(texts[i], &watch->rules[i], &why);
        if (rc < 0) {
            (void)ew_error_set(reterr, rc, 0, "alert \"%.100s\": %.120s", texts[i], why.message);
            ew_error_fix(reterr, "%s", why.fix);
            if (reterr != NULL)
                reterr->offset = why.offset;
            return rc;
        }
    }
    watch->rule_count = count;
    return 0;
}

void ew_watch_alerts_add_metrics(const struct ew_watch_alerts *watch,
                                 struct etwatch_metric_set *metrics)
{
    for (uint32_t i = 0; i < watch->rule_count; i++)
        etwatch_metric_set_add(metrics, watch->rules[i].metric);
}

void ew_watch_alerts_divide(struct ew_watch_alerts *watch, uint64_t interval_ns)
{
    uint64_t finest_ns = interval_ns;
    watch->divisor = 1;
    for (uint32_t i = 0; i < watch->rule_count; i++) {
        uint64_t window_ns = ew_alert_window_ns(&watch->rules[i]);
        if (ew_alert_fine(&watch->rules[i]) && window_ns < finest_ns)
            finest_ns = window_ns;
    }
    uint64_t divisor = (interval_ns + finest_ns - 1) / finest_ns;
    while (divisor > 1 && interval_ns / divisor < window_min_ns)
        divisor--;
    watch->divisor = (uint32_t)divisor;
}

/* -------------------------------------------------------------- both samplers */

static void both_process(void *ctx, const struct ew_process_fact *fact)
{
    struct ew_watch_alerts *watch = ctx;
    watch->first.process(watch->first.ctx, fact);
    watch->second.process(watch->second.ctx, fact);
}

static void both_reading(void *ctx, const struct ew_reading *reading)
{
    struct ew_watch_alerts *watch = ctx;
    watch->first.reading(watch->first.ctx, reading);
    watch->second.reading(watch->second.ctx, reading);
}

static void both_expect(void *ctx, const uint32_t *tids, uint32_t count)
{
    struct ew_watch_alerts *watch = ctx;
    watch->first.expect(watch->first.ctx, tids, count);
    watch->second.expect(watch->second.ctx, tids, count);
}

static void first_event(void *ctx, const struct etwatch_event *event)
{
    struct ew_watch_alerts *watch = ctx;
    watch->first.event(watch->first.ctx, event);
}

static void both_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct ew_watch_alerts *watch = ctx;
    watch->first.loss(watch->first.ctx, loss);
    watch->second.loss(watch->second.ctx, loss);
}

static void both_all_seen(void *ctx, uint64_t since_ns)
{
    struct ew_watch_alerts *watch = ctx;
    watch->first.all_seen(watch->first.ctx, since_ns);
    watch->second.all_seen(watch->second.ctx, since_ns);
}

static void both_over(void *ctx, uint64_t end_ns)
{
    struct ew_watch_alerts *watch = ctx;
    watch->first.over(watch->first.ctx, end_ns);
    watch->second.over(watch->second.ctx, end_ns);
}

static void both_use(void *ctx, const struct ew_device_use *use)
{
    struct ew_watch_alerts *watch = ctx;
    watch->first.use(watch->first.ctx, use);
    watch->second.use(watch->second.ctx, use);
}

static void on_window(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    struct ew_watch_alerts *watch = ctx;
    ew_alerts_feed(watch->fine, samples, count);
}

static int open_sampler(struct ew_watch_alerts *watch, const struct ew_sampler_config *like,
                        struct ew_facts *facts)
{
    struct ew_sampler_config own = *like;
    own.interval_ns = like->interval_ns / watch->divisor;
    own.threads = true;
    own.dense = own.aggregate = false;
    own.ctx = watch;
    own.emit = on_window;
    own.emitted = NULL;
    own.loss = NULL;
    own.event = NULL;
    own.describe = NULL;
    int rc = ew_sampler_new(&own, &watch->sampler);
    if (rc < 0)
        return rc;
    watch->first = *facts;
    ew_sampler_facts(watch->sampler, &watch->second);
    *facts = (struct ew_facts){
        .ctx = watch,
        .process = both_process,
        .reading = both_reading,
        .expect = both_expect,
        .event = first_event,
        .loss = both_loss,
        .all_seen = both_all_seen,
        .over = both_over,
        .use = both_use,
    };
    return 0;
}

/* -------------------------------------------------------------- opening, closing */

static int open_alerts(struct ew_watch_alerts *watch, uint32_t classes, bool edges,
                       struct ew_alerts **ret_alerts)
{
    struct ew_alerts_config config = {
        .rules = watch->rules,
        .rule_count = watch->rule_count,
        .classes = classes,
        .edges = edges,
        .ctx = watch->ctx,
        .alert = watch->on_alert,
    };
    return ew_alerts_new(&config, ret_alerts);
}

int ew_watch_alerts_open(struct ew_watch_alerts *watch, const struct ew_sampler_config *like,
                         struct ew_facts *facts)
{
    bool fine = false;
    int rc = 0;
    for (uint32_t i = 0; i < watch->rule_count; i++)
        fine |= ew_alert_fine(&watch->rules[i]);
    if (watch->rule_count == 0 || watch->on_alert == NULL)
        return 0;
    /* Only these windows have threads, so they are used even if they are as long as the interval.
     */
    if (fine && !like->rounds) {
        rc = open_alerts(watch, EW_ALERT_FINE, true, &watch->fine);
        if (rc == 0)
            rc = open_sampler(watch, like, facts);
    }
    uint32_t rest = like->rounds ? EW_ALERT_FINE | EW_ALERT_COARSE : EW_ALERT_COARSE;
    if (rc == 0)
        rc = open_alerts(watch, rest, false, &watch->coarse);
    if (rc < 0)
        ew_watch_alerts_close(watch);
    return rc;
}

void ew_watch_alerts_close(struct ew_watch_alerts *watch)
{
    ew_sampler_free(watch->sampler);
    ew_alerts_free(watch->fine);
    ew_alerts_free(watch->coarse);
    watch->sampler = NULL;
    watch->fine = watch->coarse = NULL;
    watch->reported_ns = 0;
}

/* ------------------------------------------------------------------------ time */

void ew_watch_alerts_samples(struct ew_watch_alerts *watch, const struct etwatch_sample *samples,
                             size_t count)
{
    if (watch->coarse != NULL)
        ew_alerts_feed(watch->coarse, samples, count);
}

void ew_watch_alerts_advance(struct ew_watch_alerts *watch, uint64_t horizon_ns,
                             int64_t unix_minus_raw_ns, uint64_t latency_ns)
{
    uint64_t unix_ns = horizon_ns + (uint64_t)unix_minus_raw_ns;
    if (watch->sampler != NULL)
        (void)ew_sampler_deliver(watch->sampler, horizon_ns);
    if (horizon_ns < watch->reported_ns + latency_ns)
        return;
    watch->reported_ns = horizon_ns;
    if (watch->sampler != NULL)
        ew_alerts_advance(watch->fine, unix_ns);
    if (watch->coarse != NULL)
        ew_alerts_advance(watch->coarse, unix_ns);
}

void ew_watch_alerts_finish(struct ew_watch_alerts *watch, uint64_t now_ns)
{
    if (watch->sampler != NULL) {
        (void)ew_sampler_finish(watch->sampler, now_ns);
        ew_alerts_finish(watch->fine);
    }
    if (watch->coarse != NULL)
        ew_alerts_finish(watch->coarse);
}

int ew_watch_alerts_set_interval(struct ew_watch_alerts *watch, uint64_t at_ns,
                                 uint64_t interval_ns)
{
    if (watch->sampler == NULL)
        return 0;
    return ew_sampler_set_interval(watch->sampler, at_ns, interval_ns / watch->divisor);
}

uint64_t ew_watch_alerts_lost(const struct ew_watch_alerts *watch)
{
    return (watch->fine == NULL ? 0 : ew_alerts_lost(watch->fine)) +
           (watch->coarse == NULL ? 0 : ew_alerts_lost(watch->coarse));
}
