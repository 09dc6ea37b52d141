/* SPDX-License-Identifier: MIT */
/*
 * A session that was created before the probes has a model with a path that only the process knows:
 * ONNX Runtime keeps it as a text in the session's object. Where in the object differs between
 * versions, so it is looked for: the address of a text and its length next to each other. What is
 * found must have that length and end like a model; else the name stays unknown. Only the file's
 * name is kept.
 */
#include "probe/sessions_linux.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"

enum { OBJECT_SIZE = 16384, PIECE = 4096, PATH_LEN_MAX = 1024, CANDIDATES_MAX = 256 };

static int ends_like_a_model(const char *path, size_t len)
{
    static const char *const ends[] = {".onnx", ".ort"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i]);
        if (len > end && memcmp(path + len - end, ends[i], end) == 0)
            return 1;
    }
    return 0;
}

int ew_probe_find_path(const uint8_t *object, size_t object_size,
                       int (*read)(void *ctx, uint64_t address, void *bytes, size_t size),
                       void *ctx, char *ret_path, size_t size)
{
    char text[PATH_LEN_MAX + 1];
    uint32_t candidates = 0;
    for (size_t at = 0; at + 16 <= object_size && candidates < CANDIDATES_MAX; at += 8) {
        uint64_t address = ew_load_u64(object + at), len = ew_load_u64(object + at + 8);
        if (address < 65536 || address >> 56 != 0 || len < 5 || len > PATH_LEN_MAX)
            continue;
        candidates++;
        if (read(ctx, address, text, (size_t)len + 1) < 0 || text[len] != '\0' ||
            strlen(text) != len || !ends_like_a_model(text, (size_t)len))
            continue;
        (void)snprintf(ret_path, size, "%s", text);
        return 0;
    }
    return -1;
}

static int read_memory(void *ctx, uint64_t address, void *bytes, size_t size)
{
    ssize_t got = pread(*(int *)ctx, bytes, size, (off_t)address);
    return got == (ssize_t)size ? 0 : -1;
}

/* Leaves path as it is if there is nothing to be found. */
static void find_path(uint32_t pid, uint64_t address, char *path, size_t size)
{
    uint8_t object[OBJECT_SIZE];
    char name[32];
    size_t got = 0;
    (void)snprintf(name, sizeof name, "/proc/%u/mem", (unsigned)pid);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    /* The object may end before, at the end of the heap. */
    while (got < sizeof object && read_memory(&fd, address + got, object + got, PIECE) == 0)
        got += PIECE;
    (void)ew_probe_find_path(object, got, read_memory, &fd, path, size);
    (void)close(fd);
}

static uint32_t used_by(const struct ew_probe_sessions *sessions, uint32_t pid, const char *name)
{
    uint32_t count = 0;
    size_t len = name == NULL ? 0 : strlen(name);
    for (uint32_t i = 0; i < EW_PROBE_SESSIONS; i++) {
        const struct ew_probe_session *cell = &sessions->cells[i];
        if (cell->pid == pid &&
            (name == NULL || (strncmp(cell->name, name, len) == 0 &&
                              (cell->name[len] == '\0' || cell->name[len] == '#'))))
            count++;
    }
    return count;
}

static void set_name(const struct ew_probe_sessions *sessions, struct ew_probe_session *cell,
                     uint32_t pid, const char *path)
{
    const char *slash = strrchr(path, '/');
    char name[EW_PROBE_NAME_SIZE - 8];
    if (path[0] == '\0') {
        (void)snprintf(cell->name, sizeof cell->name, "session %u",
                       (unsigned)used_by(sessions, pid, NULL) + 1);
        return;
    }
    (void)snprintf(name, sizeof name, "%s", slash != NULL ? slash + 1 : path);
    uint32_t used = used_by(sessions, pid, name);
    if (used == 0)
        (void)snprintf(cell->name, sizeof cell->name, "%s", name);
    else
        (void)snprintf(cell->name, sizeof cell->name, "%s#%u", name, (unsigned)used + 1);
}

const char *ew_probe_session_name(struct ew_probe_sessions *sessions, uint32_t pid,
                                  uint64_t address, const char *path, int created)
{
    char found[PATH_LEN_MAX + 1] = "";
    uint64_t at = address / 16 * 31 + pid;
    struct ew_probe_session *cell = NULL;
    if (address == 0 || pid == 0)
        return NULL;
    for (uint32_t i = 0; i < EW_PROBE_SESSIONS && cell == NULL; i++) {
        struct ew_probe_session *next = &sessions->cells[(at + i) % EW_PROBE_SESSIONS];
        if (next->pid == 0 || (next->pid == pid && next->address == address))
            cell = next;
    }
    if (cell == NULL || (cell->pid == 0 && sessions->count >= EW_PROBE_SESSIONS / 4 * 3))
        return NULL;
    if (cell->pid != 0 && !created)
        return cell->name;
    if (cell->pid == 0)
        sessions->count++;
    cell->pid = 0; /* its own name does not count */
    (void)snprintf(found, sizeof found, "%s", path);
    if (found[0] == '\0')
        find_path(pid, address, found, sizeof found);
    set_name(sessions, cell, pid, found);
    cell->pid = pid;
    cell->address = address;
    return cell->name;
}
