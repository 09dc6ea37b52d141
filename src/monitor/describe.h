/* SPDX-License-Identifier: MIT */
/* Names that only the system can give: users, cgroups, command lines. Asked once, kept. */
#ifndef EW_MONITOR_DESCRIBE_H
#define EW_MONITOR_DESCRIBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ew_described {
    uint64_t key;
    char *text;
};

struct ew_described_set {
    struct ew_described *items;
    size_t count, size;
};

struct ew_describe {
    const char *proc_root;
    bool want_cmdline;
    struct ew_described_set users;   /* by uid */
    struct ew_described_set cgroups; /* by cgroup id */
    char cgroup[1024];               /* of the last process asked for without an id */
    char cmdline[4096];              /* of the last process asked for */
};

void ew_describe_init(struct ew_describe *describe, const char *proc_root, bool want_cmdline);
void ew_describe_done(struct ew_describe *describe);

/* Each may be NULL afterwards: unknown. All stay valid until the next call. Wide: every call may
 * read files; ask once per process. */
void ew_describe_process(struct ew_describe *describe, uint32_t pid, uint32_t uid,
                         uint64_t cgroup_id, const char **ret_user, const char **ret_cgroup,
                         const char **ret_cmdline);

#endif
