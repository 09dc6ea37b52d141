/* SPDX-License-Identifier: MIT */
/* Which processes were asked for and which are left out, by id or name. */
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
    bool no_system; /* without those of Windows itself */
};

/* Takes copies. 0, ETWATCH_EINVAL (a count without its list) or ETWATCH_ENOMEM. */
int ew_selection_init(struct ew_selection *selection, const uint32_t *pids, uint32_t pid_count,
                      const char *const *names, uint32_t name_count);
/* One more, or one less. ETWATCH_ENOMEM; ETWATCH_ENOENT: it was not among them. */
int ew_selection_add(struct ew_selection *selection, uint32_t pid);
int ew_selection_remove(struct ew_selection *selection, uint32_t pid);
/* Who is left out, once; returns as init does. */
int ew_selection_exclude(struct ew_selection *selection, const uint32_t *pids, uint32_t pid_count,
                         const char *const *names, uint32_t name_count, bool no_system);
void ew_selection_done(struct ew_selection *selection);

/* Nobody in particular was asked for. */
static inline bool ew_selection_includes_all(const struct ew_selection *selection)
{
    return selection->pid_count == 0 && selection->name_count == 0;
}

/* Nor is anybody left out. */
static inline bool ew_selection_is_all(const struct ew_selection *selection)
{
    return ew_selection_includes_all(selection) && selection->excluded_pid_count == 0 &&
           selection->excluded_name_count == 0 && !selection->no_system;
}

/* Whether this process is one of them by itself. name may be NULL. */
bool ew_selection_includes(const struct ew_selection *selection, uint32_t pid, const char *name);
/* Whether it is left out, whoever asked for it. Not so its descendants. */
bool ew_selection_excludes(const struct ew_selection *selection, uint32_t pid, const char *name);
/* Whether what it did is asked for, as far as that does not depend on its parents. */
static inline bool ew_selection_matches(const struct ew_selection *selection, uint32_t pid,
                                        const char *name)
{
    return (ew_selection_includes_all(selection) || ew_selection_includes(selection, pid, name)) &&
           !ew_selection_excludes(selection, pid, name);
}

#endif
