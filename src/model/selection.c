/* SPDX-License-Identifier: MIT */
/* Owns copies of the caller's lists. */
#include "model/selection.h"

#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "model/name.h"

/* Keeps the counts current, so that a partial copy can be freed on any error. */
static int copy_lists(const uint32_t *pids, uint32_t pid_count, const char *const *names,
                      uint32_t name_count, struct ew_selection *ret)
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

int ew_selection_init(struct ew_selection *selection, const uint32_t *pids, uint32_t pid_count,
                      const char *const *names, uint32_t name_count)
{
    return copy_lists(pids, pid_count, names, name_count, selection);
}

int ew_selection_exclude(struct ew_selection *selection, const uint32_t *pids, uint32_t pid_count,
                         const char *const *names, uint32_t name_count, bool no_system)
{
    struct ew_selection out;
    int rc = copy_lists(pids, pid_count, names, name_count, &out);
    selection->excluded_pids = out.pids;
    selection->excluded_names = out.names;
    selection->excluded_pid_count = out.pid_count;
    selection->excluded_name_count = out.name_count;
    selection->no_system = no_system;
    return rc;
}

int ew_selection_add(struct ew_selection *selection, uint32_t pid)
{
    for (uint32_t i = 0; i < selection->pid_count; i++)
        if (selection->pids[i] == pid)
            return 0;
    uint32_t *pids = ew_realloc_array(selection->pids, selection->pid_count + 1, sizeof *pids);
    if (pids == NULL)
        return ETWATCH_ENOMEM;
    pids[selection->pid_count++] = pid;
    selection->pids = pids;
    return 0;
}

int ew_selection_remove(struct ew_selection *selection, uint32_t pid)
{
    for (uint32_t i = 0; i < selection->pid_count; i++)
        if (selection->pids[i] == pid) {
            selection->pids[i] = selection->pids[--selection->pid_count];
            return 0;
        }
    return ETWATCH_ENOENT;
}

void ew_selection_done(struct ew_selection *selection)
{
    for (uint32_t i = 0; i < selection->name_count; i++)
        ew_free(selection->names[i]);
    for (uint32_t i = 0; i < selection->excluded_name_count; i++)
        ew_free(selection->excluded_names[i]);
    ew_free(selection->names);
    ew_free(selection->pids);
    ew_free(selection->excluded_names);
    ew_free(selection->excluded_pids);
    memset(selection, 0, sizeof *selection);
}

bool ew_selection_includes(const struct ew_selection *selection, uint32_t pid, const char *name)
{
    for (uint32_t i = 0; i < selection->pid_count; i++)
        if (selection->pids[i] == pid)
            return true;
    for (uint32_t i = 0; i < selection->name_count && name != NULL; i++)
        if (ew_name_matches(selection->names[i], name))
            return true;
    return false;
}

bool ew_selection_excludes(const struct ew_selection *selection, uint32_t pid, const char *name)
{
    for (uint32_t i = 0; i < selection->excluded_pid_count; i++)
        if (selection->excluded_pids[i] == pid)
            return true;
    for (uint32_t i = 0; i < selection->excluded_name_count && name != NULL; i++)
        if (ew_name_matches(selection->excluded_names[i], name))
            return true;
    return selection->no_system && ew_name_is_windows_system(pid, name);
}
