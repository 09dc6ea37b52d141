/* SPDX-License-Identifier: MIT */
/* The JSON that chrome://tracing and its relatives read: names, and slices of time. */
#ifndef EW_SINK_CHROME_H
#define EW_SINK_CHROME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct ew_chrome_slice {
    uint64_t from_ns, to_ns; /* since the recording began */
    uint32_t pid, tid;
    uint16_t cpu;
    int32_t priority;
    const char *end_state; /* why the thread left; NULL: unknown */
    int wait_reason;       /* as Windows numbers it; -1: none */
};

/* idle: what process 0 is called. */
void ew_chrome_begin(struct ew_buf *out, const char *idle);
/* Any of the names may be NULL. tid 0: the process. */
void ew_chrome_name(struct ew_buf *out, uint32_t pid, uint32_t tid, const char *name);
void ew_chrome_slice(struct ew_buf *out, const struct ew_chrome_slice *slice);
/* Names for the states of a thread that leaves: Windows' numbers, Linux's bits. */
const char *ew_chrome_windows_state(uint8_t state);
const char *ew_chrome_linux_state(uint32_t state);
void ew_chrome_end(struct ew_buf *out, uint64_t start_unix_ns);

#endif
