/* SPDX-License-Identifier: MIT */
/*
 * Many processes share few users and cgroups, so their names are queried once and kept in a short
 * list, most recently used first. A cgroup is queried through a process in it; the key is the
 * kernel's id of the cgroup, unless the path is also that of a cgroup v1. Both lists are bounded:
 * beyond the limit names are unknown.
 */
#include "monitor/monitor.h"

#include <string.h>

#include "base/alloc.h"
#include "base/sid.h"
#include "model/mask.h"
#include "os/os.h"

enum { DESCRIBED_MAX = 1024 };

static const uint32_t no_uid = UINT32_MAX;

void ew_describe_init(struct ew_describe *describe, const char *proc_root, bool want_cmdline)
{
    memset(describe, 0, sizeof *describe);
    describe->proc_root = proc_root;
    describe->want_cmdline = want_cmdline;
}

static void free_set(struct ew_described_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        ew_free(set->items[i].text);
    ew_free(set->items);
    memset(set, 0, sizeof *set);
}

void ew_describe_done(struct ew_describe *describe)
{
    free_set(&describe->users);
    free_set(&describe->cgroups);
}

static const char *find(struct ew_described_set *set, uint64_t key)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->items[i].key != key)
            continue;
        struct ew_described found = set->items[i];
        memmove(set->items + 1, set->items, i * sizeof *set->items);
        set->items[0] = found;
        return found.text;
    }
    return NULL;
}

static const char *add(struct ew_described_set *set, uint64_t key, const char *text)
{
    if (set->count == DESCRIBED_MAX)
        return NULL;
    if (set->count == set->size) {
        size_t size = set->size == 0 ? 16 : set->size * 2;
        struct ew_described *items = ew_realloc_array(set->items, size, sizeof *items);
        if (items == NULL)
            return NULL;
        set->items = items;
        set->size = size;
    }
    char *copy = ew_strdup(text);
    if (copy != NULL)
        set->items[set->count++] = (struct ew_described){key, copy};
    return copy;
}

/* By the SID of an event, which is known of a process that has exited too, else by the process. */
static bool query_user(uint32_t pid, const char *sid, uint64_t *ret_key, char *buffer, size_t size)
{
    return sid != NULL ? ew_os_sid_user(sid, ret_key, buffer, size)
                       : ew_os_process_user(pid, ret_key, buffer, size);
}

static const char *user_of(struct ew_describe *describe, uint32_t pid, uint32_t uid,
                           const char *sid)
{
    char text[256];
    uint64_t key = uid;
    if (uid == no_uid && !query_user(pid, sid, &key, NULL, 0))
        return sid != NULL ? ew_sid_name(sid) : NULL;
    const char *known = find(&describe->users, key);
    if (known != NULL)
        return known;
    if (uid == no_uid)
        return query_user(pid, sid, &key, text, sizeof text) ? add(&describe->users, key, text)
               : sid != NULL ? add(&describe->users, key, ew_sid_name(sid))
                             : NULL;
    ew_os_user_name(uid, text, sizeof text);
    return add(&describe->users, uid, text);
}

/* Without an id (polling) the path is read for each process. */
static const char *cgroup_of(struct ew_describe *describe, uint32_t pid, uint64_t cgroup_id)
{
    const char *known = cgroup_id == 0 ? NULL : find(&describe->cgroups, cgroup_id);
    if (known != NULL)
        return known;
    bool only = true;
    if (!ew_os_cgroup(describe->proc_root, pid, describe->cgroup, sizeof describe->cgroup, &only))
        return NULL;
    return cgroup_id == 0 || !only ? describe->cgroup
                                   : add(&describe->cgroups, cgroup_id, describe->cgroup);
}

void ew_describe_process(struct ew_describe *describe, uint32_t pid, uint32_t uid, const char *sid,
                         uint64_t cgroup_id, const char **ret_user, const char **ret_cgroup,
                         const char **ret_cmdline)
{
    *ret_user = user_of(describe, pid, uid, sid);
    *ret_cgroup = cgroup_of(describe, pid, cgroup_id);
    *ret_cmdline = NULL;
    char args[sizeof describe->cmdline];
    size_t len = 0;
    if (describe->want_cmdline &&
        ew_os_cmdline(describe->proc_root, pid, args, sizeof args, &len) && len > 0) {
        (void)ew_mask_cmdline(args, len, describe->cmdline, sizeof describe->cmdline);
        *ret_cmdline = describe->cmdline;
    }
}
