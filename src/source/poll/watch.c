/* SPDX-License-Identifier: MIT */
/*
 * Owns: the user's rules. A process is watched if any of them matches; the tree below a pid is kept
 * up by poll.c, which knows who is whose child.
 *
 * Kernel threads run as root in the root cgroup, so a rule for that user or group would bring all
 * of them: these two rules leave them out unless they were asked for.
 */
#include "source/poll/poll.h"

#include <string.h>

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

bool ew_poll_cgroup_below(struct ew_span path, const char *wanted)
{
    while (*wanted == '/')
        wanted++;
    while (path.len > 0 && *path.text == '/') {
        path.text++;
        path.len--;
    }
    size_t len = strlen(wanted);
    while (len > 0 && wanted[len - 1] == '/')
        len--;
    if (path.len < len || memcmp(path.text, wanted, len) != 0)
        return false;
    return len == 0 || path.len == len || path.text[len] == '/';
}

static bool name_asked(const struct ew_poll_rules *rules, const char *name)
{
    for (uint32_t i = 0; i < rules->name_count; i++)
        if (ew_name_matches(rules->names[i], name))
            return true;
    return false;
}

static bool uid_asked(struct ew_poll *poll, uint32_t pid)
{
    struct ew_proc_files *files = &poll->files;
    struct ew_proc_status status;
    int fd = -1;
    if (ew_proc_read(files, pid, 0, "status", false, &fd) != EW_PROC_OK)
        return false;
    if (ew_proc_parse_status(files->text, files->len, &status, NULL) != 0) {
        poll->stats.undecoded++;
        return false;
    }
    for (uint32_t i = 0; i < poll->rules.uid_count; i++)
        if ((status.has & EW_STATUS_UID) && poll->rules.uids[i] == status.uid)
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
        poll->stats.undecoded++;
        return false;
    }
    for (uint32_t i = 0; path.len > 0 && i < poll->rules.cgroup_count; i++)
        if (ew_poll_cgroup_below(path, poll->rules.cgroups[i]))
            return true;
    return false;
}

bool ew_poll_rules_match(struct ew_poll *poll, const struct ew_proc_stat *stat)
{
    const struct ew_poll_rules *rules = &poll->rules;
    if (name_asked(rules, stat->comm))
        return true;
    if (stat->kernel_thread && !rules->kernel_threads)
        return false;
    return rules->all || (rules->uid_count && uid_asked(poll, stat->pid)) ||
           (rules->cgroup_count && cgroup_asked(poll, stat->pid));
}
