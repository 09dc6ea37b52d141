/* SPDX-License-Identifier: MIT */
/*
 * Alerts: conditions on a metric of a process, such as "cpu_percent>80 for 20ms".
 *
 * ew_alert_parse reads one condition; ew_alerts takes samples in the sampler's order and reports
 * when a condition has held long enough, with the interval in which it did. The windows are those
 * of the samples; counters are rates per second; an interval without a sample means that the
 * process was idle.
 *
 * CPU time is known to the nanosecond at both ends of a window. So if a burst is the only activity
 * of a window, its start or end within the window is known too: its CPU time is adjacent to the
 * burst
 * (`edges`).
 *
 * No clock, no thread, and no allocation once the number of running processes is stable.
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
    EW_ALERT_TRACKS_MAX = 8192, /* pairs of conditions and relevant processes; about 6 MB */
    EW_ALERT_THREADS_MAX = 16,  /* listed in one alert */
    EW_ALERT_TEXT_SIZE = 128,
};

enum ew_alert_op { EW_ALERT_ABOVE, EW_ALERT_AT_LEAST, EW_ALERT_BELOW, EW_ALERT_AT_MOST };

struct ew_alert_rule {
    uint32_t metric; /* enum etwatch_metric */
    enum ew_alert_op op;
    double threshold; /* in the metric's unit; for counters: per second */
    uint64_t for_ns;  /* 0: not given */
    char text[EW_ALERT_TEXT_SIZE];
};

/*
 * METRIC OP VALUE[UNIT][/s] [for DURATION]; OP is >, >=, < or <=. 0, or ETWATCH_EINVAL with the
 * error and the correct form in *reterr (may be NULL); its offset is that of the offending byte.
 */
int ew_alert_parse(const char *text, struct ew_alert_rule *ret_rule, struct ew_error *reterr);

/* Whether the metric is CPU time, which is exact for windows of any length. */
bool ew_alert_fine(const struct ew_alert_rule *rule);
/* The value of a metric in a sample; for counters: per second. 0 if unknown. */
double ew_alert_value(const struct etwatch_sample *sample, uint32_t metric);
/* The window length that a rule needs: a quarter of its duration, limited to 1 to 100 ms. */
uint64_t ew_alert_window_ns(const struct ew_alert_rule *rule);

enum ew_alert_class {
    EW_ALERT_FINE = 1u << 0,   /* evaluate the rules on CPU time */
    EW_ALERT_COARSE = 1u << 1, /* evaluate the others */
};

struct ew_alerts;

struct ew_alerts_config {
    const struct ew_alert_rule *rules; /* copied; alerts refer to their indexes */
    uint32_t rule_count;
    uint32_t classes; /* enum ew_alert_class */
    bool edges;       /* window ends are exact: the bounds of a burst can be computed */
    void *ctx;
    void (*alert)(void *ctx,
                  const struct etwatch_alert *alert); /* pointers are valid until it returns */
};

/* ETWATCH_EINVAL (configuration) or ETWATCH_ENOMEM. */
int ew_alerts_new(const struct ew_alerts_config *config, struct ew_alerts **ret_alerts);
void ew_alerts_free(struct ew_alerts *alerts);
/* Samples as emitted by the sampler, including THREADs if there are any. */
void ew_alerts_feed(struct ew_alerts *alerts, const struct etwatch_sample *samples, size_t count);
/* All samples up to here (Unix time) were fed. Reports alerts that ended by the last call, and
 * those that have held for their duration as still open. */
void ew_alerts_advance(struct ew_alerts *alerts, uint64_t horizon_ns);
/* No more samples follow. */
void ew_alerts_finish(struct ew_alerts *alerts);
/* How often a process could not be tracked: more than EW_ALERT_TRACKS_MAX at a time, or no memory.
 */
uint64_t ew_alerts_lost(const struct ew_alerts *alerts);

#endif
