/* SPDX-License-Identifier: MIT */
/* One condition on one process over time: windows in, intervals in which it held out. */
#ifndef EW_SAMPLER_ALERT_TRACK_H
#define EW_SAMPLER_ALERT_TRACK_H

#include "sampler/alert.h"

enum ew_track_state {
    EW_TRACK_IDLE,
    EW_TRACK_HOLDS,
    EW_TRACK_ENDING, /* held until the last window, which may contain its end */
};

struct ew_track_thread {
    uint32_t tid;
    uint32_t reserved;
    uint64_t now_ns;    /* CPU time in the window at hand, */
    uint64_t before_ns; /* in the one before it, while that did not hold, */
    uint64_t cpu_ns;    /* and since it holds */
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
    bool incomplete, told;

    /* The window at hand, made of samples until it is as long as the rule's. */
    uint64_t begin_ns, end_ns; /* equal: nothing yet; end_ns is up to where all is known */
    double sum;                /* value times ns */

    /* The last whole window, while it did not hold: a part of it may belong to what comes. */
    double before;
    uint64_t before_ns;

    /* While it holds. */
    uint64_t from_ns, to_ns;
    double area, peak; /* area: value times ns */
    double edge;       /* ENDING: the value and the length of the window after it */
    uint64_t edge_ns;

    uint64_t window_ns;                    /* the longest window meanwhile */
    uint32_t thread_count, threads_beyond; /* kept; and those that found no room */
    struct ew_track_thread threads[EW_ALERT_THREADS_MAX];
    char name[64];
};

struct ew_track_config {
    const struct ew_alert_rule *rule;
    bool edges;
    uint64_t window_ns; /* 0: each sample is one */
    void *ctx;
    void (*alert)(void *ctx, const struct etwatch_alert *alert);
};

/* The value held from begin_ns to end_ns; begin_ns is not before the end of the last. */
void ew_track_add(struct ew_track *track, const struct ew_track_config *config, uint64_t begin_ns,
                  uint64_t end_ns, double value);
/* A gauge was this at t_ns; nothing is known of the time since it was last read. */
void ew_track_read(struct ew_track *track, const struct ew_track_config *config, uint64_t t_ns,
                   double value);
/* It did nothing up to t_ns. */
void ew_track_rest(struct ew_track *track, const struct ew_track_config *config, uint64_t t_ns);
void ew_track_thread(struct ew_track *track, const struct etwatch_sample *sample);
/* Tells that it holds, if it has for long enough and that was not told. */
void ew_track_report_open(struct ew_track *track, const struct ew_track_config *config);
/* Nothing more comes. ended: because the process is over. */
void ew_track_finish(struct ew_track *track, const struct ew_track_config *config, bool ended);

#endif
