/* SPDX-License-Identifier: MIT */
/* sessions: lists the ETW sessions of this machine; stops those that etwatch left behind. */
#include "cli/cli.h"

#include <string.h>

struct listing {
    const struct ew_options *options;
    struct ew_buf out;
    uint32_t ours, orphans;
};

static const char *mode_of(const struct etwatch_session_info *info)
{
    bool real_time = (info->flags & ETWATCH_SESSION_REAL_TIME) != 0;
    if (info->file[0] != '\0')
        return real_time ? "real-time+file" : "file";
    return real_time ? "real-time" : "memory";
}

static const char *clock_of(const struct etwatch_session_info *info)
{
    static const char *const names[] = {"", "qpc", "system", "cycles"};
    return info->clock < 4 ? names[info->clock] : "";
}

/* The numbers, in the order of the header. */
enum { NUMBERS = 9 };
static const char *const number_names[NUMBERS] = {
    "buffer_kb",   "min_buffers",  "max_buffers",
    "buffers",     "free_buffers", "buffers_written",
    "events_lost", "buffers_lost", "real_time_buffers_lost"};

static void take_numbers(const struct etwatch_session_info *info, uint32_t numbers[NUMBERS])
{
    numbers[0] = info->buffer_kb;
    numbers[1] = info->min_buffers;
    numbers[2] = info->max_buffers;
    numbers[3] = info->buffers;
    numbers[4] = info->free_buffers;
    numbers[5] = info->buffers_written;
    numbers[6] = info->events_lost;
    numbers[7] = info->buffers_lost;
    numbers[8] = info->real_time_buffers_lost;
}

static void put_json_text(struct ew_buf *out, const char *key, const char *text)
{
    ew_buf_text(out, key);
    if (text[0] == '\0')
        ew_buf_text(out, "null");
    else
        ew_buf_json_string(out, text, strlen(text));
}

static void put_json(struct ew_buf *out, const struct etwatch_session_info *info)
{
    uint32_t numbers[NUMBERS];
    bool ours = (info->flags & ETWATCH_SESSION_OURS) != 0;
    bool system = (info->flags & ETWATCH_SESSION_SYSTEM) != 0;
    take_numbers(info, numbers);
    put_json_text(out, "{\"type\":\"session\",\"name\":", info->name);
    bool orphan = (info->flags & ETWATCH_SESSION_ORPHAN) != 0;
    ew_buf_text(out, ours ? ",\"ours\":true" : ",\"ours\":false");
    ew_buf_text(out, orphan ? ",\"orphan\":true" : ",\"orphan\":false");
    ew_buf_text(out, system ? ",\"system\":true" : ",\"system\":false");
    put_json_text(out, ",\"mode\":", mode_of(info));
    for (int i = 0; i < NUMBERS; i++) {
        ew_buf_text(out, ",\"");
        ew_buf_text(out, number_names[i]);
        ew_buf_text(out, "\":");
        ew_buf_u64(out, numbers[i]);
    }
    put_json_text(out, ",\"clock\":", clock_of(info));
    put_json_text(out, ",\"kernel\":", info->kernel);
    put_json_text(out, ",\"file\":", info->file);
    ew_buf_text(out, "}\n");
}

static void put_csv_header(struct ew_buf *out)
{
    ew_buf_text(out, "name,ours,orphan,system,mode");
    for (int i = 0; i < NUMBERS; i++) {
        ew_buf_char(out, ',');
        ew_buf_text(out, number_names[i]);
    }
    ew_buf_text(out, ",clock,kernel,file\n");
}

static void put_csv_text(struct ew_buf *out, const char *text)
{
    if (text[0] != '\0') /* an unknown value is empty */
        ew_buf_csv_field(out, text, strlen(text));
}

static void put_csv(struct ew_buf *out, const struct etwatch_session_info *info)
{
    uint32_t numbers[NUMBERS];
    take_numbers(info, numbers);
    put_csv_text(out, info->name);
    ew_buf_text(out, (info->flags & ETWATCH_SESSION_OURS) != 0 ? ",true" : ",false");
    ew_buf_text(out, (info->flags & ETWATCH_SESSION_ORPHAN) != 0 ? ",true" : ",false");
    ew_buf_text(out, (info->flags & ETWATCH_SESSION_SYSTEM) != 0 ? ",true," : ",false,");
    ew_buf_text(out, mode_of(info));
    for (int i = 0; i < NUMBERS; i++) {
        ew_buf_char(out, ',');
        ew_buf_u64(out, numbers[i]);
    }
    ew_buf_char(out, ',');
    put_csv_text(out, clock_of(info));
    ew_buf_char(out, ',');
    put_csv_text(out, info->kernel);
    ew_buf_char(out, ',');
    put_csv_text(out, info->file);
    ew_buf_char(out, '\n');
}

static void put_right(struct ew_buf *out, uint64_t number, size_t width)
{
    char digits[24];
    size_t len = (size_t)(ew_raw_u64(digits, number) - digits);
    ew_buf_repeat(out, ' ', len < width ? width - len : 1);
    ew_buf_bytes(out, digits, len);
}

static void put_left(struct ew_buf *out, const char *text, size_t width)
{
    size_t used = ew_buf_screen(out, text, strlen(text), width);
    ew_buf_repeat(out, ' ', width - used);
}

static void put_table_header(struct ew_buf *out)
{
    ew_buf_text(out, "  SESSION                              MODE              KB  BUFFERS     F"
                     "REE   WRITTEN     LOST  LOST BUF  KERNEL EVENTS OR FILE\n");
}

static void put_row(struct ew_buf *out, const struct etwatch_session_info *info)
{
    ew_buf_text(out, (info->flags & ETWATCH_SESSION_ORPHAN) != 0 ? "! "
                     : (info->flags & ETWATCH_SESSION_OURS) != 0 ? "* "
                                                                 : "  ");
    put_left(out, info->name, 36);
    ew_buf_char(out, ' ');
    put_left(out, mode_of(info), 14);
    put_right(out, info->buffer_kb, 6);
    put_right(out, info->buffers, 9);
    put_right(out, info->free_buffers, 9);
    put_right(out, info->buffers_written, 10);
    put_right(out, info->events_lost, 9);
    put_right(out, (uint64_t)info->buffers_lost + info->real_time_buffers_lost, 10);
    ew_buf_text(out, "  ");
    const char *what = info->kernel[0] != '\0' ? info->kernel : info->file;
    (void)ew_buf_screen(out, what, strlen(what), 200);
    ew_buf_char(out, '\n');
}

static void on_session(void *ctx, const struct etwatch_session_info *info)
{
    struct listing *listing = ctx;
    listing->ours += (info->flags & ETWATCH_SESSION_OURS) != 0;
    listing->orphans += (info->flags & ETWATCH_SESSION_ORPHAN) != 0;
    if (listing->options->json)
        put_json(&listing->out, info);
    else if (listing->options->csv)
        put_csv(&listing->out, info);
    else
        put_row(&listing->out, info);
}

static int list(struct listing *listing, struct etwatch_error_info *reterr)
{
    if (listing->options->csv)
        put_csv_header(&listing->out);
    else if (!listing->options->json)
        put_table_header(&listing->out);
    int rc = etwatch_session_list(on_session, listing, reterr);
    if (rc >= 0 && !listing->options->json && !listing->options->csv)
        ew_print_info(listing->options,
                      "%d sessions, %u of etwatch (*), %u of them left behind (!)%s", rc,
                      (unsigned)listing->ours, (unsigned)listing->orphans,
                      listing->orphans > 0 ? "; stop these with: etwatch sessions --cleanup" : "");
    return rc;
}

static int clean_up(struct listing *listing, struct etwatch_error_info *reterr)
{
    struct ew_buf *out = &listing->out;
    int rc = etwatch_session_cleanup(reterr);
    if (rc < 0)
        return rc;
    ew_buf_text(out, listing->options->json  ? "{\"type\":\"cleanup\",\"ended\":"
                     : listing->options->csv ? "ended\n"
                                             : "stopped ");
    ew_buf_u64(out, (uint64_t)rc);
    ew_buf_text(out, listing->options->json  ? "}\n"
                     : listing->options->csv ? "\n"
                     : rc == 1               ? " session of etwatch\n"
                                             : " sessions of etwatch\n");
    return rc;
}

int ew_cmd_sessions(const struct ew_options *options)
{
    struct etwatch_error_info err = {.size = sizeof err};
    struct listing listing = {.options = options};
    struct ew_output output;
    int error = ew_output_open(&output, options->output_path, options->mode);
    if (error != 0)
        return ew_print_write_error(options->output_path, error);
    ew_signals_init();
    ew_buf_init(&listing.out, 0, ew_output_write, &output);
    int rc = options->cleanup ? clean_up(&listing, &err) : list(&listing, &err);
    int code = rc < 0 ? ew_print_failure(&err, rc) : EW_EXIT_OK;
    if (rc >= 0 && ew_buf_flush(&listing.out) < 0 && !ew_output_reader_gone(&output))
        code = ew_print_write_error(options->output_path, output.os_error);
    ew_buf_done(&listing.out);
    error = ew_output_close(&output);
    return error != 0 && code == EW_EXIT_OK ? ew_print_write_error(options->output_path, error)
                                            : code;
}
