/* SPDX-License-Identifier: MIT */
/* events: every event of recordings, or the number of events of each type. */
#include "cli/cli.h"

#include "base/event_pattern.h"

enum { SIGNALS_EVERY = 1024 };

static bool is_selected(const struct ew_options *options, const struct etwatch_trace_event *event)
{
    bool provider = options->providers.count == 0, name = options->events.count == 0;
    for (uint32_t i = 0; i < options->providers.count && !provider; i++)
        provider =
            ew_pattern_provider(options->providers.words[i], event->provider, event->provider_guid);
    for (uint32_t i = 0; i < options->events.count && provider && !name; i++)
        name = ew_pattern_event(options->events.words[i], event->event);
    return provider && name;
}

/* Fields are decoded only for events that are shown. */
static int walk(struct ew_recording *recording, struct ew_histogram *histogram,
                struct etwatch_error_info *error)
{
    const struct ew_options *options = recording->options;
    struct etwatch_trace_event event = {.size = sizeof event};
    uint64_t shown = 0, seen = 0;
    int rc = 0;
    while ((rc = etwatch_trace_next(recording->trace, &event, error)) > 0) {
        if (++seen % SIGNALS_EVERY == 0 && ew_signals_ending() != 0)
            return ETWATCH_ESTATE;
        if (!is_selected(options, &event))
            continue;
        if (options->count_by_type) {
            rc = ew_histogram_add(histogram, &event);
        } else {
            rc = etwatch_trace_fields(recording->trace, &event);
            if (rc == 0)
                rc = etwatch_sink_trace_event(recording->sink, &event);
        }
        if (rc < 0 || ++shown == options->limit)
            break;
    }
    return rc < 0 ? rc : 0;
}

static void report_loss(const struct ew_recording *recording)
{
    struct etwatch_trace_stats stats = {.size = sizeof stats};
    if (etwatch_trace_stats(recording->trace, &stats) < 0 ||
        (stats.lost == 0 && stats.lost_buffers == 0))
        return;
    ew_print_info(recording->options,
                  "%llu events and %llu buffers were lost while this was recorded",
                  (unsigned long long)stats.lost, (unsigned long long)stats.lost_buffers);
}

int ew_cmd_events(const struct ew_options *options)
{
    struct ew_recording recording;
    struct ew_histogram histogram;
    struct etwatch_error_info error = {.size = sizeof error};
    uint32_t format = options->json ? ETWATCH_FORMAT_JSONL : ETWATCH_FORMAT_TABLE;
    int code = ew_cli_recording_open(&recording, options, format, ETWATCH_SINK_CLASSES);
    if (code != EW_EXIT_OK) {
        (void)ew_cli_recording_close(&recording, 0, NULL);
        return code;
    }
    /* A progress bar would be mixed with the lines on the same screen. */
    if (!options->count_by_type && options->output_path == NULL && ew_term_is(EW_TERM_OUT))
        recording.show_progress = false;
    ew_histogram_init(&histogram);
    int rc = walk(&recording, &histogram, &error);
    ew_cli_recording_hide_progress(&recording);
    if (options->count_by_type && (rc == 0 || rc == ETWATCH_ESTATE)) {
        int put = ew_histogram_put(&histogram, recording.sink);
        rc = rc == 0 ? put : rc;
    }
    if (recording.output.os_error == 0)
        report_loss(&recording);
    ew_histogram_done(&histogram);
    return ew_cli_recording_close(&recording, rc, &error);
}
