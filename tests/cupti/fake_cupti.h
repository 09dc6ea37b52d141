/* SPDX-License-Identifier: MIT */
/* What the fake driver reports to the fake CUPTI. */
#ifndef FAKE_CUPTI_H
#define FAKE_CUPTI_H

#include <stdint.h>

/* An operation on the GPU, with the call that started it. kind: as CUPTI numbers them. */
struct fake_operation {
    uint32_t kind;
    uint32_t device, context, stream;
    uint32_t correlation;
    uint64_t start, end; /* CLOCK_MONOTONIC */
    uint64_t bytes;
    uint8_t copy_kind;
    const char *name;
};

typedef void (*fake_operation_fn)(const struct fake_operation *operation);
typedef void (*fake_call_fn)(int driver, uint32_t cbid, uint32_t correlation, uint64_t start,
                             uint64_t end, uint32_t result);
typedef void (*fake_marker_fn)(uint32_t id, uint32_t flags, const char *name);

#endif
