/* SPDX-License-Identifier: MIT */
/*
 * The folder of an output file, and the rules for creating files there (cli.h). The path is walked
 * one name at a time, so that every symbolic link can be judged by its owner and its folder; the
 * kernel's own protection (protected_symlinks) covers only sticky folders and may be off.
 *
 * Root acts as the owner of the folder, by the file system user id of the thread: a hostile owner
 * can then make it do only what that user may do anyway. Files that are needed after capabilities
 * were dropped are created by a helper process (place_helper_linux.c).
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/path.h"
#include "cli/place_linux.h"

enum { LINKS_MAX = 40, TRIES = 8, DEFAULT_MODE = 0600 };

/* -------------------------------------------------------------------- acting as a user */

/* Returns the user to go back to. */
static uint32_t become(uint32_t user)
{
    uint32_t before = (uint32_t)setfsuid(UINT32_MAX);
    if (user != EW_NO_ACTOR && user != before)
        (void)setfsuid(user);
    return before;
}

static bool can_become(uint32_t user)
{
    uint32_t before = become(user);
    bool done = (uint32_t)setfsuid(UINT32_MAX) == user;
    (void)setfsuid(before);
    return done;
}

static bool trusted(const struct ew_place *place, uint32_t user)
{
    return user == 0 || user == geteuid() || user == place->actor;
}

static bool writable_by_others(const struct ew_place *place, const struct stat *folder)
{
    return !trusted(place, folder->st_uid) || (folder->st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

/* ------------------------------------------------------------------------ the path */

struct walk {
    struct ew_place *place;
    char rest[2 * PATH_MAX]; /* what is still to be walked */
    uint32_t links;
};

static int enter(struct walk *walk, int fd)
{
    if (fd < 0)
        return errno;
    if (walk->place->folder_fd >= 0)
        (void)close(walk->place->folder_fd);
    walk->place->folder_fd = fd;
    return 0;
}

static int enter_start(struct walk *walk)
{
    const char *start = walk->rest[0] == '/' ? "/" : ".";
    return enter(walk, open(start, O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Links of /proc lead to open files; only the kernel can follow them. */
static bool is_magic(int folder_fd)
{
    struct statfs found;
    return fstatfs(folder_fd, &found) == 0 && found.f_type == PROC_SUPER_MAGIC;
}

/* Whether a link may be followed; one of another user is followed with that user's rights only. */
static int judge_link(struct walk *walk, const struct stat *link)
{
    struct ew_place *place = walk->place;
    struct stat folder;
    if (++walk->links > LINKS_MAX)
        return ELOOP;
    if (fstat(place->folder_fd, &folder) != 0)
        return errno;
    if (trusted(place, link->st_uid) || !writable_by_others(place, &folder))
        return 0;
    if (place->actor != EW_NO_ACTOR || !can_become(link->st_uid))
        return ELOOP;
    place->actor = link->st_uid;
    return 0;
}

/* Puts the target of a link in front of the rest. */
static int follow(struct walk *walk, const char *name, const char *after)
{
    char target[PATH_MAX], joined[sizeof walk->rest];
    ssize_t len = readlinkat(walk->place->folder_fd, name, target, sizeof target - 1);
    if (len < 0)
        return errno;
    target[len] = '\0';
    int needed =
        snprintf(joined, sizeof joined, "%s%s%s", target, *after != '\0' ? "/" : "", after);
    if (needed < 0 || (size_t)needed >= sizeof joined)
        return ENAMETOOLONG;
    memcpy(walk->rest, joined, (size_t)needed + 1);
    return target[0] == '/' ? enter_start(walk) : 0;
}

/* One name of the path. *ret_done: it was the last one. */
static int step(struct walk *walk, bool *ret_done)
{
    struct ew_place *place = walk->place;
    char name[NAME_MAX + 1];
    struct stat found;
    const char *from = walk->rest + strspn(walk->rest, "/");
    size_t len = strcspn(from, "/");
    const char *after = from + len + strspn(from + len, "/");
    bool last = from[len] == '\0';
    if (len > NAME_MAX)
        return ENAMETOOLONG;
    memcpy(name, from, len);
    name[len] = '\0';
    if (len == 0 || (last && (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)))
        return EISDIR;
    bool exists = fstatat(place->folder_fd, name, &found, AT_SYMLINK_NOFOLLOW) == 0;
    if (!exists && (errno != ENOENT || !last))
        return errno;
    bool link = exists && S_ISLNK(found.st_mode), magic = link && is_magic(place->folder_fd);
    int error = link ? judge_link(walk, &found) : 0;
    if (error == 0 && link && !magic)
        return follow(walk, name, after);
    if (error == 0 && last) {
        *ret_done = true;
        place->special = exists && (magic || !S_ISREG(found.st_mode));
        place->magic = magic;
        memcpy(place->name, name, len + 1);
    } else if (error == 0) {
        error = enter(walk, openat(place->folder_fd, name,
                                   O_PATH | O_DIRECTORY | O_CLOEXEC | (magic ? 0 : O_NOFOLLOW)));
        memmove(walk->rest, after, strlen(after) + 1);
    }
    return error;
}

static int walk_path(struct ew_place *place, const char *path)
{
    struct walk walk = {.place = place};
    struct stat folder;
    bool done = false;
    int len = snprintf(walk.rest, sizeof walk.rest, "%s", path);
    if (len < 0 || (size_t)len >= sizeof walk.rest)
        return ENAMETOOLONG;
    if (len == 0)
        return ENOENT;
    int error = enter_start(&walk);
    while (error == 0 && !done)
        error = step(&walk, &done);
    if (error == 0 && fstat(place->folder_fd, &folder) != 0)
        error = errno;
    if (error != 0)
        return error;
    if (!trusted(place, folder.st_uid) && place->actor == EW_NO_ACTOR && can_become(folder.st_uid))
        place->actor = folder.st_uid;
    place->exposed = place->actor != EW_NO_ACTOR || writable_by_others(place, &folder);
    return 0;
}

int ew_place_open(const char *path, uint32_t mode, struct ew_place **ret_place)
{
    struct ew_place *place = ew_calloc(1, sizeof *place);
    if (!place)
        return ENOMEM;
    place->folder_fd = place->socket_fd = -1;
    place->actor = EW_NO_ACTOR;
    place->mode = mode;
    int error = walk_path(place, path);
    if (error != 0)
        ew_place_close(place);
    else
        *ret_place = place;
    return error;
}

bool ew_place_is_special(const struct ew_place *place)
{
    return place->special;
}

/* ----------------------------------------------------------------------- the files */

static bool name_of(const struct ew_place *place, uint32_t number, char *buffer)
{
    if (number == 0)
        (void)snprintf(buffer, NAME_MAX + 1, "%s", place->temporary);
    return number == 0 || ew_path_numbered(place->name, number, buffer, NAME_MAX + 1);
}

static int open_in(const struct ew_place *place, const char *name, int flags)
{
    int links = place->magic ? 0 : O_NOFOLLOW;
    mode_t mode = place->mode != 0 ? place->mode : DEFAULT_MODE;
    int fd = openat(place->folder_fd, name, O_WRONLY | O_CLOEXEC | O_NOCTTY | links | flags, mode);
    /* The umask applies to what is created, not to what was requested. */
    if (fd >= 0 && place->mode != 0 && !place->special)
        (void)fchmod(fd, place->mode);
    return fd;
}

/* A device or a pipe. In a folder that others can write to, it may not be another user's. */
static int open_special(const struct ew_place *place)
{
    struct stat found;
    if (place->exposed && !place->magic) {
        if (fstatat(place->folder_fd, place->name, &found, AT_SYMLINK_NOFOLLOW) != 0)
            return -1;
        if (!trusted(place, found.st_uid)) {
            errno = EACCES;
            return -1;
        }
    }
    return open_in(place, place->name, O_TRUNC);
}

/* An existing file that belongs to the acting user and has no other name. */
static int reuse(const struct ew_place *place, const char *name)
{
    struct stat found;
    uint32_t self = place->actor != EW_NO_ACTOR ? place->actor : geteuid();
    int fd = open_in(place, name, O_NONBLOCK);
    if (fd < 0)
        return -1;
    if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == self &&
        found.st_nlink == 1 && ftruncate(fd, 0) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* Never truncates what another user could have put there. */
static int open_exposed(const struct ew_place *place, const char *name)
{
    for (int i = 0; i < TRIES; i++) {
        struct stat found;
        int fd = open_in(place, name, O_CREAT | O_EXCL);
        if (fd >= 0 || errno != EEXIST)
            return fd;
        fd = reuse(place, name);
        if (fd >= 0)
            return fd;
        if (fstatat(place->folder_fd, name, &found, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (!S_ISREG(found.st_mode)) {
            errno = S_ISLNK(found.st_mode) ? ELOOP : EEXIST;
            return -1;
        }
        if (unlinkat(place->folder_fd, name, 0) != 0 && errno != ENOENT)
            return -1;
    }
    errno = EEXIST;
    return -1;
}

static int open_temporary(struct ew_place *place)
{
    for (int i = 0; i < TRIES; i++) {
        /* Room for what is added, whatever the length of the name. */
        (void)snprintf(place->temporary, sizeof place->temporary, ".%.200s.%016llx", place->name,
                       (unsigned long long)ew_random_u64());
        int fd = open_in(place, place->temporary, O_CREAT | O_EXCL);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    errno = EEXIST;
    return -1;
}

int ew_place_create(struct ew_place *place, uint32_t number, int *ret_fd)
{
    char name[NAME_MAX + 1];
    if (place->socket_fd >= 0)
        return ew_place_ask(place, EW_PLACE_CREATE, number, ret_fd);
    if (!name_of(place, number, name))
        return ENAMETOOLONG;
    uint32_t before = become(place->actor);
    int fd = number == 0                     ? open_temporary(place)
             : number == 1 && place->special ? open_special(place)
             : place->exposed                ? open_exposed(place, name)
                                             : open_in(place, name, O_CREAT | O_TRUNC);
    int error = fd < 0 ? errno : 0;
    (void)become(before);
    if (error == 0)
        *ret_fd = fd;
    else if (number == 0)
        place->temporary[0] = '\0';
    return error;
}

int ew_place_commit(struct ew_place *place)
{
    if (place->socket_fd >= 0)
        return ew_place_ask(place, EW_PLACE_COMMIT, 0, NULL);
    uint32_t before = become(place->actor);
    int rc = renameat(place->folder_fd, place->temporary, place->folder_fd, place->name);
    int error = rc != 0 ? errno : 0;
    (void)become(before);
    if (error == 0)
        place->temporary[0] = '\0';
    return error;
}

int ew_place_remove(struct ew_place *place, uint32_t number)
{
    char name[NAME_MAX + 1];
    if (place->socket_fd >= 0)
        return ew_place_ask(place, EW_PLACE_REMOVE, number, NULL);
    if (number == 1 && place->special)
        return EINVAL;
    if (!name_of(place, number, name))
        return ENAMETOOLONG;
    uint32_t before = become(place->actor);
    int error = unlinkat(place->folder_fd, name, 0) != 0 ? errno : 0;
    (void)become(before);
    return error;
}

void ew_place_close(struct ew_place *place)
{
    if (!place)
        return;
    if (place->socket_fd >= 0)
        ew_place_dismiss(place);
    else if (place->temporary[0] != '\0')
        (void)ew_place_remove(place, 0);
    if (place->folder_fd >= 0)
        (void)close(place->folder_fd);
    ew_free(place);
}
