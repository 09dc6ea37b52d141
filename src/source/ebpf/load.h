/* SPDX-License-Identifier: MIT */
/* Loading an image into the kernel: what to load, and the descriptors that come out. */
#ifndef EW_SOURCE_EBPF_LOAD_H
#define EW_SOURCE_EBPF_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "source/ebpf/abi.h"
#include "source/ebpf/image.h"

enum { EW_LOAD_UPROBE_MULTI = 48 }; /* BPF_TRACE_UPROBE_MULTI, which older headers lack */

struct ew_load_plan {
    const struct ew_image *image;
    const struct ew_k_config *config;
    bool programs[EW_IMAGE_FUNCTIONS_MAX]; /* by function: load it */
    /* By map. 0: no code that runs with this configuration refers to it. */
    uint32_t map_entries[EW_IMAGE_MAPS_MAX];
};

/* By program and by map of the image; -1: not there. */
struct ew_loaded {
    int program_fds[EW_IMAGE_FUNCTIONS_MAX];
    int map_fds[EW_IMAGE_MAPS_MAX];
};

void ew_loaded_init(struct ew_loaded *loaded);
void ew_loaded_close(struct ew_loaded *loaded);

/*
 * Loads by system calls alone. 0 or an errno, then nothing is left. ENOSYS: the kernel lacks a
 * function that the image calls, so libbpf cannot load it either.
 */
int ew_load_directly(const struct ew_load_plan *plan, struct ew_loaded *ret_loaded);
/* The same through libbpf, which handles more cases. Needs no capability beyond CAP_BPF and
 * CAP_PERFMON either. */
int ew_load_by_libbpf(const struct ew_load_plan *plan, struct ew_loaded *ret_loaded);

/* Attaches to the target that the section names; the descriptor of the link or -errno. */
int ew_load_attach(const struct ew_image_function *program, int program_fd);

#endif
