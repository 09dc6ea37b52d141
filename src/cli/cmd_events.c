/* SPDX-License-Identifier: MIT */
/* events: every event of recordings, or the number of events of each type. */
#include "cli/cli.h"

#include <string.h>

enum { SIGNALS_EVERY = 1024 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Whether text contains part; ASCII letters are compared without case. */
static bool has_part(const char *text, const char *part)
{
    for (; *text != '\0'; text++) {
        size_t i = 0;
        while (part[i] != '\0' && lower(text[i]) == lower(part[i]))
            i++;
        if (part[i] == '\0')
            return true;
    }
    return false;
}

/* The usual form, without braces. */
static void put_guid(const uint8_t guid[16], char text[37])
{
    static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *text++ = '-';
        *text++ = digits[guid[order[i]] >> 4];
        *text++ = digits[guid[order[i]] & 15];
    }
    *text = '\0';
}

static bool is_guid(const struct etwatch_trace_event *event, const char *word)
{
    char text[37], word_lower[37];
    size_t len = strlen(word), from = word[0] == '{';
    if (len - from < 36)
        return false;
    for (size_t i = 0; i < 36; i++)
        word_lower[i] = lower(word[from + i]);
    word_lower[36] = '\0';
    put_guid(event->provider_guid, text);
    return strcmp(text, word_lower) == 0;
}

static bool is_selected(const struct ew_options *options, const struct etwatch_trace_event *event)
{
    bool provider = options->providers.count == 0, name = options->events.count == 0;
    for (uint32_t i = 0; i < options->providers.count && !provider; i++)
        provider = has_part(event->provider, options->providers.words[i]) ||
                   is_guid(event, options->providers.words[i]);
    for (uint32_t i = 0; i < options->events.count && provider && !name; i++)
        name = has_part(event->event, options->events.words[i]);
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
