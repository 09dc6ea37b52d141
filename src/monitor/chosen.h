/* SPDX-License-Identifier: MIT */
/* Which processes were asked for, by id or name. */
#ifndef EW_MONITOR_CHOSEN_H
#define EW_MONITOR_CHOSEN_H

#include <stdbool.h>
#include <stdint.h>

struct ew_chosen {
    uint32_t *pids;
    char **names;
    uint32_t pid_count, name_count;
};

/* Takes copies. 0, ETWATCH_EINVAL (a count without its list) or ETWATCH_ENOMEM. */
int ew_chosen_init(struct ew_chosen *chosen, const uint32_t *pids, uint32_t pid_count,
                   const char *const *names, uint32_t name_count);
/* One more, or one less. ETWATCH_ENOMEM; ETWATCH_ENOENT: it was not among them. */
int ew_chosen_add(struct ew_chosen *chosen, uint32_t pid);
int ew_chosen_remove(struct ew_chosen *chosen, uint32_t pid);
void ew_chosen_done(struct ew_chosen *chosen);

static inline bool ew_chosen_all(const struct ew_chosen *chosen)
{
    return chosen->pid_count == 0 && chosen->name_count == 0;
}

/* Whether this process is one of them by itself. name may be NULL. */
bool ew_chosen_has(const struct ew_chosen *chosen, uint32_t pid, const char *name);

#endif
