/* SPDX-License-Identifier: MIT */
/*
 * stat: streams samples until told to stop, or until everything that was named by -p has ended (by
 * name, user or cgroup another one may come), or until a recording ends.
 */
#include "cli/commands.h"

#include <stdio.h>

#include "base/buf.h"
#include "cli/signals.h"
#include "cli/watch_run.h"
#include "os/os.h"

static bool only_pids(const struct ew_options *options)
{
    return options->files.count == 0 && options->pid_count > 0 && options->names.count == 0 &&
           options->uid_count == 0 && options->cgroups.count == 0 &&
           (options->config_flags & ETWATCH_CONFIG_ALL) == 0;
}

static void tell_cost(const struct ew_watch *session)
{
    struct ew_buf line;
    const struct ew_options *options = session->options;
    bool table = !options->json && !options->csv;
    if (options->quiet || (!table && session->stats.lost == 0))
        return;
    ew_buf_init(&line, 0, NULL, NULL);
    ew_watch_put_cost(&line, &session->stats);
    ew_buf_char(&line, '\0');
    if (line.error == 0)
        ew_say(options, "%s", line.data);
    ew_buf_done(&line);
}

/* A process that ended before it was seen at all never starts and never exits. */
static bool all_ended(const struct ew_options *options)
{
    const char *root = options->proc_root != NULL ? options->proc_root : "/proc";
    for (uint32_t i = 0; i < options->pid_count; i++)
        if (!ew_os_process_ended(root, options->pids[i]))
            return false;
    return true;
}

static void watch(struct ew_watch *session)
{
    const struct ew_options *options = session->options;
    bool until_gone = only_pids(options);
    while (ew_signals_ending() == 0 && ew_watch_step(session, 1000))
        if (until_gone && session->live == 0 && (session->any_started || all_ended(options)))
            break;
}

int ew_cmd_stat(const struct ew_options *options)
{
    struct ew_watch session = {0};
    uint32_t format = options->json  ? ETWATCH_FORMAT_JSONL
                      : options->csv ? ETWATCH_FORMAT_CSV
                                     : ETWATCH_FORMAT_TABLE;
    int code = ew_watch_prepare(&session, options, format);
    if (code == EW_EXIT_OK) {
        ew_signals_init();
        code = ew_watch_open(&session, 0);
    }
    bool watched = code == EW_EXIT_OK;
    if (watched)
        watch(&session);
    int signal = ew_signals_ending();
    bool known = session.meta_known;
    int end_code = ew_watch_close(&session);
    if (watched && known && end_code == EW_EXIT_OK && session.output.os_error == 0)
        tell_cost(&session);
    if (code != EW_EXIT_OK)
        return code;
    if (end_code != EW_EXIT_OK || session.output.os_error != 0)
        return end_code;
    return signal != 0 ? EW_EXIT_SIGNAL + signal : EW_EXIT_OK;
}
