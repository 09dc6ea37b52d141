/* SPDX-License-Identifier: MIT */
/* Owns copies of the lists, so that the caller's may go. */
#include "monitor/chosen.h"

#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "model/name.h"

int ew_chosen_init(struct ew_chosen *chosen, const uint32_t *pids, uint32_t pid_count,
                   const char *const *names, uint32_t name_count)
{
    memset(chosen, 0, sizeof *chosen);
    if ((pid_count > 0 && pids == NULL) || (name_count > 0 && names == NULL))
        return ETWATCH_EINVAL;
    chosen->pids = pid_count == 0 ? NULL : ew_calloc(pid_count, sizeof *chosen->pids);
    chosen->names = name_count == 0 ? NULL : ew_calloc(name_count, sizeof *chosen->names);
    if ((pid_count > 0 && chosen->pids == NULL) || (name_count > 0 && chosen->names == NULL))
        return ETWATCH_ENOMEM;
    if (pid_count > 0)
        memcpy(chosen->pids, pids, pid_count * sizeof *pids);
    chosen->pid_count = pid_count;
    for (uint32_t i = 0; i < name_count; i++) {
        if (names[i] == NULL)
            return ETWATCH_EINVAL;
        chosen->names[i] = ew_strdup(names[i]);
        if (chosen->names[i] == NULL)
            return ETWATCH_ENOMEM;
        chosen->name_count++;
    }
    return 0;
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
    ew_free(chosen->names);
    ew_free(chosen->pids);
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
