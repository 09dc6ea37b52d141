/* SPDX-License-Identifier: MIT */
/* Which processes were asked for and which are left out, by id or name. */
#ifndef EW_MODEL_SELECTION_H
#define EW_MODEL_SELECTION_H

#include <stdbool.h>
#include <stdint.h>

struct ew_chosen {
    uint32_t *pids;
    char **names;
    uint32_t pid_count, name_count;
    uint32_t *out_pids;
    char **out_names;
    uint32_t out_pid_count, out_name_count;
    bool no_system; /* without those of Windows itself */
};

/* Takes copies. 0, ETWATCH_EINVAL (a count without its list) or ETWATCH_ENOMEM. */
int ew_chosen_init(struct ew_chosen *chosen, const uint32_t *pids, uint32_t pid_count,
                   const char *const *names, uint32_t name_count);
/* One more, or one less. ETWATCH_ENOMEM; ETWATCH_ENOENT: it was not among them. */
int ew_chosen_add(struct ew_chosen *chosen, uint32_t pid);
int ew_chosen_remove(struct ew_chosen *chosen, uint32_t pid);
/* Who is left out, once; returns as init does. */
int ew_chosen_exclude(struct ew_chosen *chosen, const uint32_t *pids, uint32_t pid_count,
                      const char *const *names, uint32_t name_count, bool no_system);
void ew_chosen_done(struct ew_chosen *chosen);

/* Nobody in particular was asked for. */
static inline bool ew_chosen_anybody(const struct ew_chosen *chosen)
{
    return chosen->pid_count == 0 && chosen->name_count == 0;
}

/* Nor is anybody left out. */
static inline bool ew_chosen_all(const struct ew_chosen *chosen)
{
    return ew_chosen_anybody(chosen) && chosen->out_pid_count == 0 && chosen->out_name_count == 0 &&
           !chosen->no_system;
}

/* Whether this process is one of them by itself. name may be NULL. */
bool ew_chosen_has(const struct ew_chosen *chosen, uint32_t pid, const char *name);
/* Whether it is left out, whoever asked for it. Not so its descendants. */
bool ew_chosen_out(const struct ew_chosen *chosen, uint32_t pid, const char *name);
/* Whether what it did is asked for, as far as that does not depend on its parents. */
static inline bool ew_chosen_wants(const struct ew_chosen *chosen, uint32_t pid, const char *name)
{
    return (ew_chosen_anybody(chosen) || ew_chosen_has(chosen, pid, name)) &&
           !ew_chosen_out(chosen, pid, name);
}

#endif
