/* SPDX-License-Identifier: MIT */
/* One condition on one process over time: takes windows, reports the intervals in which it held. */
#ifndef EW_SAMPLER_ALERT_TRACK_H
#define EW_SAMPLER_ALERT_TRACK_H

#include "sampler/alert.h"

enum ew_track_state {
    EW_TRACK_IDLE,
    EW_TRACK_HOLDS,
    EW_TRACK_ENDING, /* the last window, in which it did not hold, may contain its end */
};

struct ew_track_thread {
    uint32_t tid;
    uint32_t reserved;
    uint64_t now_ns;    /* CPU time in the current window, */
    uint64_t before_ns; /* in the previous one, if that did not hold, */
    uint64_t cpu_ns;    /* and since the condition holds */
    char name[24];
};

struct ew_track {
    uint32_t pool_word;
    uint32_t self;
    uint32_t rule;
    uint32_t pid;
    uint64_t start_ns;
    uint32_t source;
    enum ew_track_state state;
    bool incomplete, reported;

    /* The current window, extended by samples until it has the rule's length. */
    uint64_t begin_ns, end_ns; /* equal: empty; everything up to end_ns is known */
    double sum;                /* value times ns */

    /* The last complete window, if it did not hold: a part of it may belong to the next alert. */
    double before;
    uint64_t before_ns;

    /* While the condition holds. */
    uint64_t from_ns, to_ns;
    double area, peak; /* area: value times ns */
    double edge;       /* ENDING: value and length of the following window */
    uint64_t edge_ns;

    uint64_t window_ns;                    /* longest window of the alert */
    uint32_t thread_count, threads_beyond; /* kept; beyond the limit */
    struct ew_track_thread threads[EW_ALERT_THREADS_MAX];
    char name[64];
};

struct ew_track_config {
    const struct ew_alert_rule *rule;
    bool edges;
    uint64_t window_ns; /* 0: each sample is a window */
    void *ctx;
    void (*alert)(void *ctx, const struct etwatch_alert *alert);
};

/* The value applied from begin_ns to end_ns; begin_ns is not before the last end_ns. */
void ew_track_add(struct ew_track *track, const struct ew_track_config *config, uint64_t begin_ns,
                  uint64_t end_ns, double value);
/* A gauge had this value at t_ns; its values since the last reading are unknown. */
void ew_track_read(struct ew_track *track, const struct ew_track_config *config, uint64_t t_ns,
                   double value);
/* The process was idle up to t_ns. */
void ew_track_rest(struct ew_track *track, const struct ew_track_config *config, uint64_t t_ns);
void ew_track_thread(struct ew_track *track, const struct etwatch_sample *sample);
/* Reports an open alert if it has held long enough and was not reported yet. */
void ew_track_report_open(struct ew_track *track, const struct ew_track_config *config);
/* No more values follow. ended: the process exited. */
void ew_track_finish(struct ew_track *track, const struct ew_track_config *config, bool ended);

#endif
