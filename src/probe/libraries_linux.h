/* SPDX-License-Identifier: MIT */
/*
 * The libraries of ONNX Runtime that processes map, and the probes in them. A thread learns of new
 * mappings from the kernel (records of perf, on each CPU) and attaches at once.
 */
#ifndef EW_PROBE_LIBRARIES_LINUX_H
#define EW_PROBE_LIBRARIES_LINUX_H

#include <stdbool.h>
#include <stdint.h>

#include "probe/onnx_elf.h"

/* Programs at each function: -1 where there is none. */
struct ew_probe_programs {
    int enter[EW_ONNX_FUNCTIONS], leave[EW_ONNX_FUNCTIONS];
};

struct ew_probe_libraries;

/* flags: enum etwatch_probes_flag. 0 or an errno. */
int ew_probe_libraries_new(const struct ew_probe_programs *programs, uint32_t flags,
                           struct ew_probe_libraries **ret_libraries);
void ew_probe_libraries_free(struct ew_probe_libraries *libraries);
/* Probes the libraries that the process has mapped; 0: those of all. Soon, on the thread. */
void ew_probe_libraries_of(struct ew_probe_libraries *libraries, uint32_t pid);
void ew_probe_libraries_stats(struct ew_probe_libraries *libraries, uint32_t *ret_probed,
                              uint32_t *ret_unusable, char *problem, size_t size);

#endif
