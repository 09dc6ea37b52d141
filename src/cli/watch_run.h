/* SPDX-License-Identifier: MIT */
/* One watch from its options to its last line: what run, stat and top have in common. */
#ifndef EW_CLI_WATCH_RUN_H
#define EW_CLI_WATCH_RUN_H

#include <etwatch/sink.h>

#include "base/error.h"
#include "cli/args/options.h"
#include "cli/output.h"
#include "cli/window_aggregate.h"

/* Sees everything, in the order of delivery, whether there is a sink or not. Each returns 0 or a
 * negative code, which ends the session. */
struct ew_watch_tap {
    int (*meta)(void *ctx, const struct etwatch_meta *meta);
    int (*samples)(void *ctx, const struct etwatch_samples *batch);
    int (*events)(void *ctx, const struct etwatch_events *batch);
    int (*loss)(void *ctx, const struct etwatch_loss *loss);
    int (*alert)(void *ctx, const struct etwatch_alert *alert);
    int (*flush)(void *ctx); /* a batch of them is over */
    int (*stats)(void *ctx, const struct etwatch_stats *stats);
};

struct ew_watch {
    const struct ew_options *options;
    const struct ew_watch_tap *tap; /* NULL: nobody */
    void *tap_ctx;
    struct ew_output output;
    bool output_open;
    struct etwatch_sink *sink; /* NULL: nobody wants lines (top, run without --json or --csv) */
    struct etwatch_monitor *monitor;
    struct etwatch_meta meta;
    bool meta_known;
    bool stopped;
    struct etwatch_stats stats;         /* after ew_session_stop */
    struct ew_window_aggregate windows; /* with --window */
    uint64_t end_raw_ns;                /* --duration; 0: no end */
    uint64_t end_unix_ns;               /* the same for a recording, by its own time */
    bool past_end;
    uint64_t opened_cpu_ns; /* our own CPU time when the watching began */
    uint64_t live;          /* processes that started and have not ended */
    bool any_started;
    uint64_t alerts;      /* told so far */
    char last_alert[512]; /* in words; "": none yet */
    int error;            /* of the sink, the monitor or on_sample: ETWATCH_E* */
    /* Sees every sample too; may be NULL. Returns 0 or a negative code. */
    int (*on_sample)(void *ctx, const struct etwatch_sample *sample);
    /* Likewise of events and losses. */
    void (*on_events)(void *ctx, const struct etwatch_events *batch);
    void (*on_loss)(void *ctx, const struct etwatch_loss *loss);
    /* Called when all samples were seen, before the last line; may write to output. */
    int (*on_end)(void *ctx);
    struct etwatch_system_reader *system;  /* --system */
    uint64_t system_next_ns;               /* raw: when it is read again */
    uint64_t system_started, system_ended; /* processes, since it was read */
    bool no_samples;                       /* they are not written; nor are events */
    bool no_events;                        /* only on_events and tap see them */
    void *ctx;
};

/* Opens the output and makes the sink (format 0: none). Nothing is watched yet. An exit code. */
int ew_watch_prepare(struct ew_watch *session, const struct ew_options *options, uint32_t format);
/* Begins to watch what the options name, and pid unless it is 0; then gives up rights. */
int ew_watch_open(struct ew_watch *session, uint32_t pid);
/* Waits for the next delivery, a quarter of a second at most. True if the session is to go on. */
bool ew_watch_step(struct ew_watch *session, int max_ms);
/* Stops and writes the last lines; session->stats is valid from then on. */
void ew_watch_stop(struct ew_watch *session);
/* Stops if need be, tells of errors, frees everything. An exit code. */
int ew_watch_close(struct ew_watch *session);

/* One line on standard error, with the program's name; ew_say is silent with -q. */
void ew_complain(const char *format, ...) EW_PRINTF(1, 2);
void ew_say(const struct ew_options *options, const char *format, ...) EW_PRINTF(2, 3);
/* The exit code that says the same as a code of the library. */
int ew_exit_code(int rc);
/* One line for a call that failed, with the fix; its exit code. */
int ew_complain_about(const struct etwatch_error_info *err, int rc);
/* One line about what the watching itself cost and lost, for people. */
struct ew_buf;
void ew_watch_put_cost(struct ew_buf *out, const struct etwatch_stats *stats);

#endif
