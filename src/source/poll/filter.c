/* SPDX-License-Identifier: MIT */
/* Owns copies of the filter rules, so that the caller's may be freed. Independent of the
 * operating system; rules that need /proc are in proc_filter.c. */
#include "source/poll/poller.h"

#include "base/alloc.h"
#include "model/name.h"

static int copy_ids(const uint32_t *from, uint32_t count, uint32_t **ret_ids)
{
    uint32_t *ids = ew_calloc(count ? count : 1, sizeof *ids);
    if (!ids)
        return ETWATCH_ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        ids[i] = from[i];
    *ret_ids = ids;
    return 0;
}

static void free_texts(char **texts, uint32_t count)
{
    for (uint32_t i = 0; texts && i < count; i++)
        ew_free(texts[i]);
    ew_free(texts);
}

static int copy_texts(const char *const *from, uint32_t count, char ***ret_texts)
{
    char **texts = ew_calloc(count ? count : 1, sizeof *texts);
    if (!texts)
        return ETWATCH_ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        texts[i] = ew_strdup(from[i]);
        if (!texts[i]) {
            free_texts(texts, count);
            return ETWATCH_ENOMEM;
        }
    }
    *ret_texts = texts;
    return 0;
}

int ew_poll_filter_copy(struct ew_poll_filter *to, const struct ew_filter *from)
{
    *to = (struct ew_poll_filter){.all = from->all,
                                  .kernel_threads = from->kernel_threads,
                                  .pid_count = from->pid_count,
                                  .pid_capacity = from->pid_count,
                                  .name_count = from->name_count,
                                  .uid_count = from->uid_count,
                                  .cgroup_count = from->cgroup_count};
    if (copy_ids(from->pids, from->pid_count, &to->pids) == 0 &&
        copy_ids(from->uids, from->uid_count, &to->uids) == 0 &&
        copy_texts(from->names, from->name_count, &to->names) == 0 &&
        copy_texts(from->cgroups, from->cgroup_count, &to->cgroups) == 0)
        return 0;
    ew_poll_filter_done(to);
    return ETWATCH_ENOMEM;
}

void ew_poll_filter_done(struct ew_poll_filter *filter)
{
    ew_free(filter->pids);
    ew_free(filter->uids);
    free_texts(filter->names, filter->name_count);
    free_texts(filter->cgroups, filter->cgroup_count);
    *filter = (struct ew_poll_filter){0};
}

bool ew_poll_filter_has_pid(const struct ew_poll_filter *filter, uint32_t pid)
{
    for (uint32_t i = 0; i < filter->pid_count; i++)
        if (filter->pids[i] == pid)
            return true;
    return false;
}

int ew_poll_filter_add_pid(struct ew_poll_filter *filter, uint32_t pid)
{
    if (ew_poll_filter_has_pid(filter, pid))
        return 0;
    if (filter->pid_count == filter->pid_capacity) {
        uint32_t capacity = filter->pid_capacity * 2 + 8;
        uint32_t *grown = ew_realloc_array(filter->pids, capacity, sizeof *grown);
        if (!grown)
            return ETWATCH_ENOMEM;
        filter->pids = grown;
        filter->pid_capacity = capacity;
    }
    filter->pids[filter->pid_count++] = pid;
    return 0;
}

bool ew_poll_filter_has_name(const struct ew_poll_filter *filter, const char *name)
{
    for (uint32_t i = 0; i < filter->name_count; i++)
        if (ew_name_matches(filter->names[i], name))
            return true;
    return false;
}
