/* SPDX-License-Identifier: MIT */
/* The functions of CUDA that are recorded. */
#ifndef EW_GPU_CALLS_H
#define EW_GPU_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ew_gpu_call_info {
    uint32_t cbid;
    uint32_t call; /* enum ew_gpu_call */
    const char *name;
};

/* The functions of the runtime or of the driver, by number. */
const struct ew_gpu_call_info *ew_gpu_calls(bool driver, uint32_t *ret_count);
/* NULL: not recorded. */
const struct ew_gpu_call_info *ew_gpu_call_find(bool driver, uint32_t cbid);

#endif
