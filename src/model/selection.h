/* SPDX-License-Identifier: MIT */
/* Included and excluded processes, by id or name. */
#ifndef EW_MODEL_SELECTION_H
#define EW_MODEL_SELECTION_H

#include <stdbool.h>
#include <stdint.h>

struct ew_selection {
    uint32_t *pids;
    char **names;
    uint32_t pid_count, name_count;
    uint32_t *excluded_pids;
    char **excluded_names;
    uint32_t excluded_pid_count, excluded_name_count;
    bool no_system; /* exclude the processes of Windows itself */
};

/* Copies the lists. Returns 0, ETWATCH_EINVAL (a count without a list) or ETWATCH_ENOMEM. */
int ew_selection_init(struct ew_selection *selection, const uint32_t *pids, uint32_t pid_count,
                      const char *const *names, uint32_t name_count);
/* Adds or removes one id. Returns 0, ETWATCH_ENOMEM, or ETWATCH_ENOENT (not in the list). */
int ew_selection_add(struct ew_selection *selection, uint32_t pid);
int ew_selection_remove(struct ew_selection *selection, uint32_t pid);
/* Sets the exclusions; call at most once. Returns like init. */
int ew_selection_exclude(struct ew_selection *selection, const uint32_t *pids, uint32_t pid_count,
                         const char *const *names, uint32_t name_count, bool no_system);
void ew_selection_done(struct ew_selection *selection);

/* No process is included explicitly, so all are. */
static inline bool ew_selection_includes_all(const struct ew_selection *selection)
{
    return selection->pid_count == 0 && selection->name_count == 0;
}

/* All processes are included and none is excluded. */
static inline bool ew_selection_is_all(const struct ew_selection *selection)
{
    return ew_selection_includes_all(selection) && selection->excluded_pid_count == 0 &&
           selection->excluded_name_count == 0 && !selection->no_system;
}

/* Whether this process is included by its own id or name. name may be NULL. */
bool ew_selection_includes(const struct ew_selection *selection, uint32_t pid, const char *name);
/* Whether this process is excluded, which overrides inclusion but does not affect descendants. */
bool ew_selection_excludes(const struct ew_selection *selection, uint32_t pid, const char *name);
/* Whether the process is selected, as far as this does not depend on its ancestors. */
static inline bool ew_selection_matches(const struct ew_selection *selection, uint32_t pid,
                                        const char *name)
{
    return (ew_selection_includes_all(selection) || ew_selection_includes(selection, pid, name)) &&
           !ew_selection_excludes(selection, pid, name);
}

#endif
