/* SPDX-License-Identifier: MIT */
/* Owns copies of the lists, so that the caller's may go. */
#include "model/selection.h"

#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "model/name.h"

/* What was copied is counted, so that it can be freed wherever this ends. */
static int copy_lists(const uint32_t *pids, uint32_t pid_count, const char *const *names,
                      uint32_t name_count, struct ew_chosen *ret)
{
    memset(ret, 0, sizeof *ret);
    if ((pid_count > 0 && pids == NULL) || (name_count > 0 && names == NULL))
        return ETWATCH_EINVAL;
    ret->pids = pid_count == 0 ? NULL : ew_calloc(pid_count, sizeof *ret->pids);
    ret->names = name_count == 0 ? NULL : ew_calloc(name_count, sizeof *ret->names);
    if ((pid_count > 0 && ret->pids == NULL) || (name_count > 0 && ret->names == NULL))
        return ETWATCH_ENOMEM;
    if (pid_count > 0)
        memcpy(ret->pids, pids, pid_count * sizeof *pids);
    ret->pid_count = pid_count;
    for (uint32_t i = 0; i < name_count; i++) {
        if (names[i] == NULL)
            return ETWATCH_EINVAL;
        ret->names[i] = ew_strdup(names[i]);
        if (ret->names[i] == NULL)
            return ETWATCH_ENOMEM;
        ret->name_count++;
    }
    return 0;
}

int ew_chosen_init(struct ew_chosen *chosen, const uint32_t *pids, uint32_t pid_count,
                   const char *const *names, uint32_t name_count)
{
    return copy_lists(pids, pid_count, names, name_count, chosen);
}

int ew_chosen_exclude(struct ew_chosen *chosen, const uint32_t *pids, uint32_t pid_count,
                      const char *const *names, uint32_t name_count, bool no_system)
{
    struct ew_chosen out;
    int rc = copy_lists(pids, pid_count, names, name_count, &out);
    chosen->out_pids = out.pids;
    chosen->out_names = out.names;
    chosen->out_pid_count = out.pid_count;
    chosen->out_name_count = out.name_count;
    chosen->no_system = no_system;
    return rc;
}

int ew_chosen_add(struct ew_chosen *chosen, uint32_t pid)
{
    for (uint32_t i = 0; i < chosen->pid_count; i++)
        if (chosen->pids[i] == pid)
            return 0;
    uint32_t *pids = ew_realloc_array(chosen->pids, chosen->pid_count + 1, sizeof *pids);
    if (pids == NULL)
        return ETWATCH_ENOMEM;
    pids[chosen->pid_count++] = pid;
    chosen->pids = pids;
    return 0;
}

int ew_chosen_remove(struct ew_chosen *chosen, uint32_t pid)
{
    for (uint32_t i = 0; i < chosen->pid_count; i++)
        if (chosen->pids[i] == pid) {
            chosen->pids[i] = chosen->pids[--chosen->pid_count];
            return 0;
        }
    return ETWATCH_ENOENT;
}

void ew_chosen_done(struct ew_chosen *chosen)
{
    for (uint32_t i = 0; i < chosen->name_count; i++)
        ew_free(chosen->names[i]);
    for (uint32_t i = 0; i < chosen->out_name_count; i++)
        ew_free(chosen->out_names[i]);
    ew_free(chosen->names);
    ew_free(chosen->pids);
    ew_free(chosen->out_names);
    ew_free(chosen->out_pids);
    memset(chosen, 0, sizeof *chosen);
}

bool ew_chosen_has(const struct ew_chosen *chosen, uint32_t pid, const char *name)
{
    for (uint32_t i = 0; i < chosen->pid_count; i++)
        if (chosen->pids[i] == pid)
            return true;
    for (uint32_t i = 0; i < chosen->name_count && name != NULL; i++)
        if (ew_name_matches(chosen->names[i], name))
            return true;
    return false;
}

bool ew_chosen_out(const struct ew_chosen *chosen, uint32_t pid, const char *name)
{
    for (uint32_t i = 0; i < chosen->out_pid_count; i++)
        if (chosen->out_pids[i] == pid)
            return true;
    for (uint32_t i = 0; i < chosen->out_name_count && name != NULL; i++)
        if (ew_name_matches(chosen->out_names[i], name))
            return true;
    return chosen->no_system && ew_name_is_windows_system(pid, name);
}
