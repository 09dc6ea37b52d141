/* SPDX-License-Identifier: MIT */
/* One reading of recordings from its options to its last line: what report and events share. */
#ifndef EW_CLI_RECORDING_H
#define EW_CLI_RECORDING_H

#include <etwatch/sink.h>
#include <etwatch/trace.h>

#include "cli/args/options.h"
#include "cli/output.h"

struct ew_recording {
    const struct ew_options *options;
    struct ew_output output;
    bool output_open;
    char *part;    /* what the output is called until it is complete; NULL: as it will be */
    bool complete; /* it is */
    struct etwatch_sink *sink;
    struct etwatch_trace *trace;
    bool show_progress, progress_shown;
    uint64_t begun_ns, shown_ns; /* of the raw clock */
};

/* Whom the options mean; the rest is left to the caller. */
struct etwatch_trace_options ew_recording_selection(const struct ew_options *options);
/* Opens the output, then the recordings. format 0: without a sink. sink_flags: in addition to what
 * the options ask for. An exit code. */
int ew_recording_open(struct ew_recording *recording, const struct ew_options *options,
                      uint32_t format, uint32_t sink_flags);
/* Tells of errors (rc: what the reading ended with), loss and damage, and frees everything. An exit
 * code. */
int ew_recording_close(struct ew_recording *recording, int rc,
                       const struct etwatch_error_info *error);
/* Everything that is known about the recordings as a whole. system may be NULL. */
int ew_recording_put_trace(struct ew_recording *recording,
                           const struct etwatch_trace_system *system);
/* Damage is told even if nobody asked for words: the data alone looks complete. */
void ew_recording_report_damage(const struct ew_recording *recording,
                                const struct etwatch_trace_stats *stats);
/* The progress bar: an on_progress with the recording as its ctx. */
int ew_recording_on_progress(void *recording, uint64_t done, uint64_t all);
/* Removes the bar, so that something else can be written. */
void ew_recording_hide_progress(struct ew_recording *recording);

#endif
