/* SPDX-License-Identifier: MIT */
/*
 * stat: streams samples until a signal or --duration, until all processes of -p have exited (with a
 * name, user or cgroup another one may start), or until a recording ends.
 */
#include "cli/cli.h"

#include <stdio.h>

#include "os/os.h"

static void print_cost(const struct ew_watch *watch)
{
    struct ew_buf line;
    const struct ew_options *options = watch->options;
    bool table = !options->json && !options->csv;
    if (options->quiet || (!table && watch->stats.lost == 0))
        return;
    ew_buf_init(&line, 0, NULL, NULL);
    ew_cli_watch_put_cost(&line, &watch->stats);
    ew_buf_char(&line, '\0');
    if (line.error == 0)
        ew_print_info(options, "%s", line.data);
    ew_buf_done(&line);
}

/* A process that exited before it was seen has neither a START nor an EXIT. */
static bool all_exited(const struct ew_options *options)
{
    const char *root = options->proc_root != NULL ? options->proc_root : "/proc";
    for (uint32_t i = 0; i < options->pids.count; i++)
        if (!ew_os_process_ended(root, options->pids.ids[i]))
            return false;
    return true;
}

static void watch_until_end(struct ew_watch *watch)
{
    const struct ew_options *options = watch->options;
    bool until_exit = options->files.count == 0 && ew_options_only_pids(options);
    while (ew_signals_ending() == 0 && ew_cli_watch_step(watch, 1000))
        if (until_exit && watch->live == 0 && (watch->any_started || all_exited(options)))
            break;
}

int ew_cmd_stat(const struct ew_options *options)
{
    struct ew_watch watch = {0};
    uint32_t format = ew_cli_text_format(options);
    int code = ew_cli_watch_prepare(&watch, options, format);
    if (code == EW_EXIT_OK) {
        ew_signals_init();
        code = ew_cli_watch_open(&watch, 0);
    }
    bool watched = code == EW_EXIT_OK;
    if (watched)
        watch_until_end(&watch);
    int signal = ew_signals_ending();
    bool known = watch.meta_known;
    int end_code = ew_cli_watch_close(&watch);
    if (watched && known && end_code == EW_EXIT_OK && watch.output.os_error == 0)
        print_cost(&watch);
    if (code != EW_EXIT_OK)
        return code;
    if (end_code != EW_EXIT_OK || watch.output.os_error != 0)
        return end_code;
    return signal != 0 ? EW_EXIT_SIGNAL + signal : EW_EXIT_OK;
}
