/* SPDX-License-Identifier: MIT */
/* The compiled kernel half, as the build embeds it: ELF objects, aligned for libbpf. */
#ifndef EW_SOURCE_EBPF_EBPF_OBJECT_H
#define EW_SOURCE_EBPF_EBPF_OBJECT_H

#include <stddef.h>

/* For kernels that let a program read a task by plain loads (6.2), and for all. */
extern const unsigned char ew_ebpf_typed[];
extern const size_t ew_ebpf_typed_size;
extern const unsigned char ew_ebpf_plain[];
extern const size_t ew_ebpf_plain_size;

#endif
