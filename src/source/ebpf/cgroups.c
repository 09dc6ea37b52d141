/* SPDX-License-Identifier: MIT */
/*
 * Finds cgroups in the mounted hierarchies. The kernel's id of a cgroup is the inode number of its
 * folder. A container is found by walking the folders, once, before
 * the programs are loaded: at most FOLDERS_MAX folders, at most DEPTH_MAX levels deep.
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
    uint32_t visited;
    uint64_t id; /* 0: not found */
    char name[EW_CONTAINER_ID_LEN + 1];
    bool several; /* containers match */
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

/* Closes fd. Folders below a match are part of it and are not searched. */
static void search_folder(struct search *search, int fd, uint32_t depth)
{
    DIR *folder = fdopendir(fd);
    if (folder == NULL) {
        (void)close(fd);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL && search->visited < FOLDERS_MAX) {
        if (entry->d_name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
            continue;
        int below =
            openat(dirfd(folder), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        struct ew_span name = {entry->d_name, strlen(entry->d_name)}, container;
        if (below < 0)
            continue;
        search->visited++;
        if (ew_cgroup_matches(name, search->wanted) && ew_cgroup_container(name, &container)) {
            found(search, container, below);
            (void)close(below);
        } else if (depth < DEPTH_MAX) {
            search_folder(search, below, depth + 1);
        } else {
            (void)close(below);
        }
    }
    (void)closedir(folder);
}

static struct search search_root(const char *root, const char *wanted)
{
    struct search search = {.wanted = wanted};
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        search_folder(&search, fd, 0);
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
    struct search search = search_root(root, wanted);
    const char *id = ew_cgroup_requested_container(wanted);
    if (search.several)
        return ew_error_set(reterr, ETWATCH_ENOENT, 0,
                            "more than one container id begins with %.64s: give more of the id",
                            id);
    if (search.id != 0) {
        *ret_id = search.id;
        return 0;
    }
    for (size_t i = 0; i < sizeof old_roots / sizeof *old_roots; i++) {
        if (search_root(old_roots[i], wanted).id == 0)
            continue;
        ew_error_set(reterr, ETWATCH_ENOTSUP, 0,
                     "eBPF: container %.64s is in a cgroup of version 1, which is not supported",
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
