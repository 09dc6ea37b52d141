/* SPDX-License-Identifier: MIT */
/* The compiled kernel half, as the build embeds it: an ELF object, aligned for libbpf. */
#ifndef EW_SOURCE_EBPF_OBJECT_H
#define EW_SOURCE_EBPF_OBJECT_H

#include <stddef.h>

extern const unsigned char ew_ebpf_object[];
extern const size_t ew_ebpf_object_size;

#endif
