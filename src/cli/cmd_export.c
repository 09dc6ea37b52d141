/* SPDX-License-Identifier: MIT */
/* export: converts recordings to the formats of other tools. */
#include "cli/cli.h"

#include <etwatch/export.h>

static uint32_t flags_of(const struct ew_options *options)
{
    const struct ew_export_options *export = &options->export;
    uint32_t flags = 0;
    flags |= export->fields ? (uint32_t)ETWATCH_TABLE_FIELDS : 0;
    flags |= export->typed ? (uint32_t)ETWATCH_TABLE_TYPED : 0;
    flags |= export->timestamps ? (uint32_t)ETWATCH_TABLE_TIMESTAMPS : 0;
    flags |= options->csv_raw ? (uint32_t)ETWATCH_TABLE_CSV_RAW : 0;
    flags |= options->payload ? (uint32_t)ETWATCH_TABLE_PAYLOAD : 0;
    flags |=
        (options->config_flags & ETWATCH_CONFIG_CMDLINE) != 0 ? (uint32_t)ETWATCH_TABLE_CMDLINE : 0;
    flags |=
        (options->config_flags & ETWATCH_CONFIG_DENSE) != 0 ? (uint32_t)ETWATCH_TABLE_DENSE : 0;
    return flags;
}

static unsigned long long big(uint64_t value)
{
    return value;
}

/* Facts that the data does not show by itself. */
static void report_counts(const struct ew_recording *recording,
                          const struct etwatch_export_counts *counts,
                          const struct etwatch_trace_stats *stats)
{
    const struct ew_options *options = recording->options;
    if (counts->without_stack > 0)
        ew_print_info(options, "%llu of %llu samples have no stack: only their address is shown",
                      big(counts->without_stack), big(counts->rows));
    if (counts->frames_unnamed > 0)
        ew_print_info(options, "%llu of %llu frames belong to no module of the recording",
                      big(counts->frames_unnamed), big(counts->frames));
    if (counts->rows == 0 && options->export.format == ETWATCH_EXPORT_CHROME)
        ew_print_info(options, "the selected part has no context switches, so there are no slices");
    if (counts->refused > 0)
        ew_print_error("%llu samples did not fit into memory and were dropped",
                       big(counts->refused));
    if (stats->lost > 0 || stats->lost_buffers > 0)
        ew_print_info(options, "%llu events and %llu buffers were lost while this was recorded",
                      big(stats->lost), big(stats->lost_buffers));
    ew_cli_recording_report_damage(recording, stats);
}

int ew_cmd_export(const struct ew_options *options)
{
    struct ew_recording recording;
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_export_counts counts = {.size = sizeof counts};
    struct etwatch_trace_stats stats = {.size = sizeof stats};
    struct etwatch_table_options wanted = {
        .size = sizeof wanted,
        .flags = flags_of(options),
        .providers = (const char *const *)options->providers.words,
        .provider_count = options->providers.count,
        .events = (const char *const *)options->events.words,
        .event_count = options->events.count,
        .hz = options->hz,
        .on_progress = ew_cli_recording_on_progress,
        .ctx = &recording,
    };
    uint32_t format = options->export.format;
    bool binary = format == ETWATCH_EXPORT_ARROW || format == ETWATCH_EXPORT_PERFETTO;
    if (binary && options->output_path == NULL && ew_term_is(EW_TERM_OUT)) {
        ew_print_error("%s is binary and not for a terminal: use -o FILE",
                       etwatch_export_name(format));
        return EW_EXIT_USAGE;
    }
    int code = ew_cli_recording_open(&recording, options, 0, 0);
    if (code != EW_EXIT_OK) {
        (void)ew_cli_recording_close(&recording, 0, NULL);
        return code;
    }
    int rc = etwatch_trace_export(recording.trace, format, options->export.table, &wanted,
                                  ew_output_write, &recording.output, &counts, &stats, &error);
    recording.complete = rc == 0;
    ew_cli_recording_hide_progress(&recording);
    if (recording.output.os_error == 0)
        report_counts(&recording, &counts, &stats);
    return ew_cli_recording_close(&recording, rc, &error);
}
