/* SPDX-License-Identifier: MIT */
/* The JSON read by chrome://tracing and similar tools: names and slices of time. */
#ifndef EW_SINK_CHROME_H
#define EW_SINK_CHROME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct ew_chrome_slice {
    uint64_t from_ns, to_ns; /* since the start of the recording */
    uint32_t pid, tid;
    uint16_t cpu;
    int32_t priority;
    const char *end_state; /* state of the thread at the end; NULL: unknown */
    int wait_reason;       /* number used by Windows; -1: none */
};

/* idle: name of process 0. */
void ew_chrome_begin(struct ew_buf *out, const char *idle);
/* name may be NULL. tid 0: names the process. */
void ew_chrome_name(struct ew_buf *out, uint32_t pid, uint32_t tid, const char *name);
void ew_chrome_slice(struct ew_buf *out, const struct ew_chrome_slice *slice);
/* Names for the states of an outgoing thread: numbers of Windows, bits of Linux. */
const char *ew_chrome_windows_state(uint8_t state);
const char *ew_chrome_linux_state(uint32_t state);
void ew_chrome_end(struct ew_buf *out, uint64_t start_unix_ns);

#endif
