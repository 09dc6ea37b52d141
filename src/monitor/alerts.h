/* SPDX-License-Identifier: MIT */
/*
 * Alerts beside the samples. Conditions on CPU time are looked at in windows of their own, whatever
 * the sample rate: the source's facts go to a second sampler that cuts finer. Others are looked at
 * in the samples; when polling, all are.
 */
#ifndef EW_MONITOR_ALERTS_H
#define EW_MONITOR_ALERTS_H

#include "sampler/alert.h"
#include "sampler/sampler.h"

struct ew_watch_alerts {
    struct ew_alert_rule rules[EW_ALERT_RULES_MAX];
    uint32_t rule_count;
    uint32_t divisor; /* windows in a sample's interval; 1: the samples are fine enough */
    void *ctx;
    void (*on_alert)(void *ctx, const struct etwatch_alert *alert);

    uint64_t told_ns;                /* raw: when what holds was last told */
    struct ew_alerts *fine, *coarse; /* NULL: nothing to look at */
    struct ew_sampler *sampler;      /* of the finer windows; NULL: none */
    struct ew_facts first, second;   /* where the facts go, if there are two samplers */
};

/* Reads the conditions; ETWATCH_EINVAL says which and where. */
int ew_watch_alerts_init(struct ew_watch_alerts *watch, const char *const *texts, uint32_t count,
                         struct ew_error *reterr);
/* Bits of the metrics that they are about. */
uint64_t ew_watch_alerts_metrics(const struct ew_watch_alerts *watch);
/* For a source that has events: into how many windows an interval of samples is divided. */
void ew_watch_alerts_divide(struct ew_watch_alerts *watch, uint64_t interval_ns);

/* Begins. like: the sampler of the samples. *facts goes to the source: with finer windows it is
 * changed to serve both. */
int ew_watch_alerts_open(struct ew_watch_alerts *watch, const struct ew_sampler_config *like,
                         struct ew_facts *facts);
void ew_watch_alerts_close(struct ew_watch_alerts *watch);

/* Samples as they are delivered. */
void ew_watch_alerts_samples(struct ew_watch_alerts *watch, const struct etwatch_sample *samples,
                             size_t count);
/* After the samples up to here were delivered; raw time. Once in latency_ns, what is over is told,
 * and what holds. */
void ew_watch_alerts_cut(struct ew_watch_alerts *watch, uint64_t horizon_ns,
                         int64_t unix_minus_raw_ns, uint64_t latency_ns);
void ew_watch_alerts_finish(struct ew_watch_alerts *watch, uint64_t now_ns);
/* 0, or as ew_sampler_set_interval; interval_ns is that of the samples. */
int ew_watch_alerts_set_interval(struct ew_watch_alerts *watch, uint64_t at_ns,
                                 uint64_t interval_ns);
uint64_t ew_watch_alerts_lost(const struct ew_watch_alerts *watch);

#endif
