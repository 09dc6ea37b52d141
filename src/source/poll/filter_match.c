/* SPDX-License-Identifier: MIT */
/*
 * Whether a rule of the user asks for a process. It is watched if any of them does; the tree below
 * a pid is kept up by poll.c, which knows who is whose child.
 *
 * Kernel threads run as root in the root cgroup, so a rule for that user or group would bring all
 * of them: these two rules leave them out unless they were asked for.
 */
#include "source/poll/poll.h"

#include "model/cgroup.h"

static bool uid_asked(struct ew_poll *poll, uint32_t pid)
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

static bool cgroup_asked(struct ew_poll *poll, uint32_t pid)
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
    return filter->all || (filter->uid_count && uid_asked(poll, stat->pid)) ||
           (filter->cgroup_count && cgroup_asked(poll, stat->pid));
}
