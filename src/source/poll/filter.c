/* SPDX-License-Identifier: MIT */
/* Owns: copies of the user's rules, so that the caller's may go. */
#include "source/poll/filter.h"

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

int ew_poll_rules_copy(struct ew_poll_rules *rules, const struct ew_filter *filter)
{
    *rules = (struct ew_poll_rules){.all = filter->all,
                                    .kernel_threads = filter->kernel_threads,
                                    .pid_count = filter->pid_count,
                                    .pid_capacity = filter->pid_count,
                                    .name_count = filter->name_count,
                                    .uid_count = filter->uid_count,
                                    .cgroup_count = filter->cgroup_count};
    if (copy_ids(filter->pids, filter->pid_count, &rules->pids) == 0 &&
        copy_ids(filter->uids, filter->uid_count, &rules->uids) == 0 &&
        copy_texts(filter->names, filter->name_count, &rules->names) == 0 &&
        copy_texts(filter->cgroups, filter->cgroup_count, &rules->cgroups) == 0)
        return 0;
    ew_poll_rules_done(rules);
    return ETWATCH_ENOMEM;
}

void ew_poll_rules_done(struct ew_poll_rules *rules)
{
    ew_free(rules->pids);
    ew_free(rules->uids);
    free_texts(rules->names, rules->name_count);
    free_texts(rules->cgroups, rules->cgroup_count);
    *rules = (struct ew_poll_rules){0};
}

bool ew_poll_rules_has_pid(const struct ew_poll_rules *rules, uint32_t pid)
{
    for (uint32_t i = 0; i < rules->pid_count; i++)
        if (rules->pids[i] == pid)
            return true;
    return false;
}

int ew_poll_rules_add_pid(struct ew_poll_rules *rules, uint32_t pid)
{
    if (ew_poll_rules_has_pid(rules, pid))
        return 0;
    if (rules->pid_count == rules->pid_capacity) {
        uint32_t capacity = rules->pid_capacity * 2 + 8;
        uint32_t *grown = ew_realloc_array(rules->pids, capacity, sizeof *grown);
        if (!grown)
            return ETWATCH_ENOMEM;
        rules->pids = grown;
        rules->pid_capacity = capacity;
    }
    rules->pids[rules->pid_count++] = pid;
    return 0;
}

bool ew_poll_rules_has_name(const struct ew_poll_rules *rules, const char *name)
{
    for (uint32_t i = 0; i < rules->name_count; i++)
        if (ew_name_matches(rules->names[i], name))
            return true;
    return false;
}
