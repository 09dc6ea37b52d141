/* SPDX-License-Identifier: MIT */
/*
 * Alerts: conditions on a metric of a process, such as "cpu_percent>80 for 20ms".
 *
 * ew_alert_parse reads one condition; ew_alerts takes samples in the order of the sampler and tells
 * when a condition has held long enough, with the interval in which it did. Windows are whatever
 * the samples are; a counter counts per second; no sample of a process means that it did nothing.
 *
 * CPU time is known to the nanosecond at both ends of a window, so where a burst begins within a
 * window is known too, if it is the only thing in it: its CPU time lies next to the burst
 * (`edges`).
 *
 * No clock, no thread, no allocation once the processes that run at a time are known.
 */
#ifndef EW_SAMPLER_ALERT_H
#define EW_SAMPLER_ALERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/etwatch.h>

#include "base/error.h"

enum {
    EW_ALERT_RULES_MAX = ETWATCH_ALERTS_MAX,
    EW_ALERT_TRACKS_MAX = 8192, /* conditions times processes that are near them; about 6 MB */
    EW_ALERT_THREADS_MAX = 16,  /* told apart in one alert */
    EW_ALERT_TEXT_SIZE = 128,
};

enum ew_alert_op { EW_ALERT_ABOVE, EW_ALERT_AT_LEAST, EW_ALERT_BELOW, EW_ALERT_AT_MOST };

struct ew_alert_rule {
    uint32_t metric; /* enum etwatch_metric */
    enum ew_alert_op op;
    double threshold; /* in the metric's unit; of a counter: a second */
    uint64_t for_ns;  /* 0: not given */
    char text[EW_ALERT_TEXT_SIZE];
};

/*
 * METRIC OP VALUE[UNIT][/s] [for DURATION]; OP is >, >=, < or <=. 0, or ETWATCH_EINVAL with what is
 * wrong and the right form in *reterr (may be NULL); its offset is that of the byte that is wrong.
 */
int ew_alert_parse(const char *text, struct ew_alert_rule *ret_rule, struct ew_error *reterr);

/* Whether the metric is CPU time, which is known for windows however short. */
bool ew_alert_fine(const struct ew_alert_rule *rule);
/* What a sample says of a metric; of a counter: a second. 0 if it is not known. */
double ew_alert_value(const struct etwatch_sample *sample, uint32_t metric);
/* The windows that a rule needs: a quarter of its time, within 1 to 100 ms. */
uint64_t ew_alert_window_ns(const struct ew_alert_rule *rule);

enum ew_alert_class {
    EW_ALERT_FINE = 1u << 0,   /* take the rules on CPU time */
    EW_ALERT_COARSE = 1u << 1, /* take the others */
};

struct ew_alerts;

struct ew_alerts_config {
    const struct ew_alert_rule *rules; /* copied; their indexes are those of the alerts */
    uint32_t rule_count;
    uint32_t classes; /* enum ew_alert_class */
    bool edges;       /* the windows' ends are exact: a burst may be cut out of them */
    void *ctx;
    void (*alert)(void *ctx, const struct etwatch_alert *alert); /* pointers: until it returns */
};

/* ETWATCH_EINVAL: the configuration; ETWATCH_ENOMEM. */
int ew_alerts_new(const struct ew_alerts_config *config, struct ew_alerts **ret_alerts);
void ew_alerts_free(struct ew_alerts *alerts);
/* As the sampler emits them, THREADs too if there are any. */
void ew_alerts_feed(struct ew_alerts *alerts, const struct etwatch_sample *samples, size_t count);
/* All samples up to here (Unix time) were fed. What was over by the last call is told, and what has
 * held for its time is told as not yet ended. */
void ew_alerts_advance(struct ew_alerts *alerts, uint64_t horizon_ns);
/* Nothing more will come. */
void ew_alerts_finish(struct ew_alerts *alerts);
/* How often a process could not be looked at: more at a time than EW_ALERT_TRACKS_MAX, or no
 * memory. */
uint64_t ew_alerts_lost(const struct ew_alerts *alerts);

#endif
