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
    int8_t priority;
    bool ended;    /* state and wait_reason are known */
    uint8_t state; /* why the thread left: as Windows numbers it */
    uint8_t wait_reason;
};

void ew_chrome_begin(struct ew_buf *out);
/* Any of the names may be NULL. tid 0: the process. */
void ew_chrome_name(struct ew_buf *out, uint32_t pid, uint32_t tid, const char *name);
void ew_chrome_slice(struct ew_buf *out, const struct ew_chrome_slice *slice);
void ew_chrome_end(struct ew_buf *out, uint64_t start_unix_ns);

#endif
