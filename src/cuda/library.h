/* SPDX-License-Identifier: MIT */
/* Finding CUPTI in a CUDA program. */
#ifndef EW_CUDA_LIBRARY_H
#define EW_CUDA_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda/cupti_abi.h"

/* A handle that is never closed. NULL: *reterr (size bytes) says why. */
void *ew_cuda_library_open(char *reterr, size_t size);
/* False: *reterr says what is missing, or that this version is not known. */
bool ew_cuda_library_resolve(void *library, struct cupti_api *ret_api, char *reterr, size_t size);
/* A function of the driver, which is loaded already; NULL: none. */
void *ew_cuda_driver_function(const char *name);

#endif
