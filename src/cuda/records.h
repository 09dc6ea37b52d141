/* SPDX-License-Identifier: MIT */
/* Records of CUPTI in, records of the shared ring out. */
#ifndef EW_CUDA_RECORDS_H
#define EW_CUDA_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/cupti_abi.h"
#include "gpu/ring.h"

/* Makes the ring and sends it to the watcher at this address. False: nothing can be reported. */
bool ew_cuda_ring_open(const char *address);
struct ew_gpu_ring_header *ew_cuda_ring_header(void);
/* The state, and why it failed (may be NULL). */
void ew_cuda_ring_set_state(uint32_t state, const char *problem);

/* CLOCK_BOOTTIME. */
uint64_t ew_cuda_now(void);
/* What to add to the times of CUPTI to get those of ew_cuda_now. */
void ew_cuda_set_clock(int64_t boot_minus_cupti_ns);
/* Calls by this thread with this number of the driver are not recorded but counted. */
void ew_cuda_set_canary(uint32_t tid, uint32_t cbid);
uint64_t ew_cuda_canaries(void);

/* The functions for cuptiActivityRegisterCallbacks. */
void ew_cuda_request(uint8_t **buffer, size_t *size, size_t *records_max);
void ew_cuda_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
/* Before the first buffer. */
void ew_cuda_records_init(const struct cupti_api *api);

#endif
