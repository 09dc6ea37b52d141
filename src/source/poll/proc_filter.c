/* SPDX-License-Identifier: MIT */
/*
 * The filter rules that need /proc: user and cgroup. A process is watched if any rule matches; the
 * trees below selected pids are maintained by poll.c, which knows the parents. Separate from
 * filter.c, which is also built on Windows.
 *
 * Kernel threads run as root in the root cgroup, so a rule for that user or cgroup would select all
 * of them: these two rules exclude kernel threads unless they are requested.
 */
#include "source/poll/poll.h"

#include "model/cgroup.h"

static bool uid_matches(struct ew_poll *poll, uint32_t pid)
{
    struct ew_proc_files *files = &poll->files;
    struct ew_proc_status status;
    int fd = -1;
    if (ew_proc_read(files, pid, 0, "status", false, &fd) != EW_PROC_OK)
        return false;
    if (ew_proc_parse_status(files->text, files->len, &status, NULL) != 0) {
        poll->base.stats.undecoded++;
        return false;
    }
    for (uint32_t i = 0; i < poll->base.filter.uid_count; i++)
        if ((status.has & EW_STATUS_UID) && poll->base.filter.uids[i] == status.uid)
            return true;
    return false;
}

static bool cgroup_matches(struct ew_poll *poll, uint32_t pid)
{
    struct ew_proc_files *files = &poll->files;
    struct ew_span path;
    int fd = -1;
    if (ew_proc_read(files, pid, 0, "cgroup", false, &fd) != EW_PROC_OK)
        return false;
    if (ew_proc_parse_cgroup(files->text, files->len, &path, NULL) != 0) {
        poll->base.stats.undecoded++;
        return false;
    }
    for (uint32_t i = 0; i < poll->base.filter.cgroup_count; i++)
        if (ew_cgroup_text_matches(files->text, files->len, poll->base.filter.cgroups[i]))
            return true;
    return false;
}

bool ew_poll_filter_match(struct ew_poll *poll, const struct ew_proc_stat *stat)
{
    const struct ew_poll_filter *filter = &poll->base.filter;
    if (ew_poll_filter_has_name(filter, stat->comm))
        return true;
    if (stat->kernel_thread && !filter->kernel_threads)
        return false;
    return filter->all || (filter->uid_count && uid_matches(poll, stat->pid)) ||
           (filter->cgroup_count && cgroup_matches(poll, stat->pid));
}
