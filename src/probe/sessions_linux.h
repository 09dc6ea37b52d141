/* SPDX-License-Identifier: MIT */
/* The names of sessions of ONNX Runtime, by process and address. */
#ifndef EW_PROBE_SESSIONS_LINUX_H
#define EW_PROBE_SESSIONS_LINUX_H

#include <stddef.h>
#include <stdint.h>

enum { EW_PROBE_SESSIONS = 4096, EW_PROBE_NAME_SIZE = 96 };

struct ew_probe_session {
    uint64_t address;
    uint32_t pid; /* 0: a free cell */
    char name[EW_PROBE_NAME_SIZE];
};

struct ew_probe_sessions {
    struct ew_probe_session cells[EW_PROBE_SESSIONS];
    uint32_t count;
};

/*
 * The name of a session: "model.onnx", the second one of a process with this name "model.onnx#2",
 * and if the model is unknown "session 1". path: that of the model, "" if it is unknown; then it is
 * looked for in the memory of the process. created: a new session is at this address. NULL: there
 * is no room, or address is 0.
 */
const char *ew_probe_session_name(struct ew_probe_sessions *sessions, uint32_t pid,
                                  uint64_t address, const char *path, int created);

/* Looks for the path of a model in the bytes of an object: a text that it points to, with its
 * length, that ends like a model. read reads memory of the process: 0 or negative. */
int ew_probe_find_path(const uint8_t *object, size_t object_size,
                       int (*read)(void *ctx, uint64_t address, void *bytes, size_t size),
                       void *ctx, char *ret_path, size_t size);

#endif
