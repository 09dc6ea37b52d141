/* SPDX-License-Identifier: MIT */
/* report: recordings summarized: the machine, the types of events, each process. */
#include "cli/cli.h"

static int on_system(void *ctx, const struct etwatch_trace_system *system)
{
    struct ew_recording *recording = ctx;
    ew_cli_recording_hide_progress(recording);
    return ew_cli_recording_put_trace(recording, system);
}

static int on_class(void *ctx, const struct etwatch_trace_class *klass)
{
    return etwatch_sink_class(((struct ew_recording *)ctx)->sink, klass);
}

static int on_process(void *ctx, const struct etwatch_sample *process,
                      const struct etwatch_metric_set *estimated)
{
    return etwatch_sink_process(((struct ew_recording *)ctx)->sink, process, estimated);
}

static int on_image(void *ctx, const struct etwatch_trace_image *image)
{
    return etwatch_sink_image(((struct ew_recording *)ctx)->sink, image);
}

int ew_cmd_report(const struct ew_options *options)
{
    struct ew_recording recording;
    struct etwatch_error_info error = {.size = sizeof error};
    uint32_t format = ew_cli_text_format(options);
    struct etwatch_report_callbacks callbacks = {
        .size = sizeof callbacks,
        .on_system = on_system,
        .on_class = on_class,
        .on_process = on_process,
        .on_image = on_image,
        .ctx = &recording,
    };
    if ((options->config_flags & ETWATCH_CONFIG_THREADS) != 0)
        callbacks.flags |= ETWATCH_REPORT_THREADS;
    if ((options->config_flags & ETWATCH_CONFIG_CMDLINE) != 0)
        callbacks.flags |= ETWATCH_REPORT_CMDLINE;
    if (options->images)
        callbacks.flags |= ETWATCH_REPORT_IMAGES;
    int code = ew_cli_recording_open(&recording, options, format, 0);
    if (code != EW_EXIT_OK) {
        (void)ew_cli_recording_close(&recording, 0, NULL);
        return code;
    }
    int rc = etwatch_trace_report(recording.trace, &callbacks, NULL, &error);
    if (rc == 0 || rc == ETWATCH_ESTATE) {
        int end = etwatch_sink_end(recording.sink);
        rc = rc == 0 ? end : rc;
    }
    return ew_cli_recording_close(&recording, rc, &error);
}
