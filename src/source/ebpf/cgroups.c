/* SPDX-License-Identifier: MIT */
/*
 * Looks for cgroups in the mounted hierarchies. The inode number of a cgroup's folder is the id
 * that the kernel goes by; a container is found by walking the folders, which is done once, before
 * the programs are loaded. At most FOLDERS_MAX are looked at, DEPTH_MAX below each other.
 */
#include "source/ebpf/ebpf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/cgroup.h"

enum { FOLDERS_MAX = 100000, DEPTH_MAX = 16 };

static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
static const char *const old_roots[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids",
                                        "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/systemd"};

struct search {
    const char *wanted; /* "container:ID" */
    uint32_t looked_at;
    uint64_t id; /* 0: not found */
    char name[EW_CONTAINER_ID_LEN + 1];
    bool several; /* containers that begin like that */
};

static void found(struct search *search, struct ew_span container, int fd)
{
    struct stat status;
    char name[EW_CONTAINER_ID_LEN + 1];
    (void)ew_span_copy(container, name, sizeof name);
    if (fstat(fd, &status) != 0)
        return;
    search->several |= search->id != 0 && strcmp(name, search->name) != 0;
    if (search->id == 0) {
        search->id = (uint64_t)status.st_ino;
        memcpy(search->name, name, sizeof name);
    }
}

/* Closes fd. What lies below a folder that was found belongs to it. */
static void look_in(struct search *search, int fd, uint32_t depth)
{
    DIR *folder = fdopendir(fd);
    if (folder == NULL) {
        (void)close(fd);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL && search->looked_at < FOLDERS_MAX) {
        if (entry->d_name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
            continue;
        int below =
            openat(dirfd(folder), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        struct ew_span name = {entry->d_name, strlen(entry->d_name)}, container;
        if (below < 0)
            continue;
        search->looked_at++;
        if (ew_cgroup_matches(name, search->wanted) && ew_cgroup_container(name, &container)) {
            found(search, container, below);
            (void)close(below);
        } else if (depth < DEPTH_MAX) {
            look_in(search, below, depth + 1);
        } else {
            (void)close(below);
        }
    }
    (void)closedir(folder);
}

static struct search look_for(const char *root, const char *wanted)
{
    struct search search = {.wanted = wanted};
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        look_in(&search, fd, 0);
    return search;
}

static const char *find_root(void)
{
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        char full[128];
        (void)snprintf(full, sizeof full, "%s/cgroup.controllers", roots[i]);
        if (access(full, F_OK) == 0)
            return roots[i];
    }
    return NULL;
}

static int find_container(const char *root, const char *wanted, uint64_t *ret_id,
                          struct ew_error *reterr)
{
    struct search search = look_for(root, wanted);
    const char *id = ew_cgroup_requested_container(wanted);
    if (search.several)
        return ew_error_set(reterr, ETWATCH_ENOENT, 0,
                            "more than one container begins with %.64s: write more of its id", id);
    if (search.id != 0) {
        *ret_id = search.id;
        return 0;
    }
    for (size_t i = 0; i < sizeof old_roots / sizeof *old_roots; i++) {
        if (look_for(old_roots[i], wanted).id == 0)
            continue;
        ew_error_set(reterr, ETWATCH_ENOTSUP, 0,
                     "eBPF: container %.64s is in cgroups of version 1, which it does not follow",
                     id);
        ew_error_fix(reterr, "use --source poll, or boot with systemd.unified_cgroup_hierarchy=1");
        return ETWATCH_ENOTSUP;
    }
    ew_error_set(reterr, ETWATCH_ENOENT, 0, "no such container: %.64s", id);
    ew_error_fix(reterr, "it must be running; docker ps and podman ps show the ids");
    return ETWATCH_ENOENT;
}

int ew_ebpf_cgroup_id(const char *wanted, uint64_t *ret_id, struct ew_error *reterr)
{
    const char *root = find_root();
    char full[4096];
    struct stat status;
    if (root == NULL) {
        ew_error_set(reterr, ETWATCH_ENOTSUP, 0, "no cgroup v2 hierarchy is mounted");
        ew_error_fix(reterr, "turn it on in the kernel, or use --source poll");
        return ETWATCH_ENOTSUP;
    }
    if (ew_cgroup_requested_container(wanted) != NULL)
        return find_container(root, wanted, ret_id, reterr);
    (void)snprintf(full, sizeof full, "%s/%s", root, wanted);
    if (stat(full, &status) != 0)
        return ew_error_set(reterr, ETWATCH_ENOENT, errno, "no such cgroup: %s", wanted);
    *ret_id = (uint64_t)status.st_ino;
    return 0;
}
