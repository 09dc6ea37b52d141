/* SPDX-License-Identifier: MIT */
/* Types and fields of the running kernel, from its BTF. See kernel_btf.c. */
#ifndef EW_SOURCE_EBPF_KERNEL_BTF_H
#define EW_SOURCE_EBPF_KERNEL_BTF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EW_KERNEL_TYPE_IDS = 4 };

/* A type or function to be found, by name. */
struct ew_kernel_type {
    const char *name;
    uint32_t kind;                    /* BTF_KIND_STRUCT, _FUNC or _TYPEDEF */
    uint32_t count;                   /* how many have that name */
    uint32_t ids[EW_KERNEL_TYPE_IDS]; /* of the first of them */
    uint16_t next;                    /* internal */
};

struct ew_ebpf_btf {
    void *data; /* mapped; NULL: the caller's */
    size_t size;
    const unsigned char *types, *strings;
    size_t types_size, strings_size;
    uint32_t type_count;
    uint32_t *marks; /* where every so many types begin */
};

struct ew_kernel_field {
    uint64_t offset, size; /* in bytes */
    uint64_t left_shift, right_shift;
    bool is_signed;
    bool bits; /* a bit field: offset and size are those of the integer that holds it */
};

/* Maps or reads `path` and finds what is wanted. 0 or an errno. */
int ew_ebpf_btf_open(struct ew_ebpf_btf *btf, const char *path, struct ew_kernel_type *wanted,
                     uint32_t wanted_count);
void ew_ebpf_btf_close(struct ew_ebpf_btf *btf);
/* The same for data in memory, 4-byte aligned, which must outlive it. Close it all the same. */
int ew_ebpf_btf_index(struct ew_ebpf_btf *btf, const void *data, size_t size,
                      struct ew_kernel_type *wanted, uint32_t wanted_count);
/* Follows the path (see struct ew_image_field) from a struct. false: there is no such field. */
bool ew_ebpf_btf_field(const struct ew_ebpf_btf *btf, uint32_t type_id, const char *path,
                       struct ew_kernel_field *ret_field);

#endif
