/* SPDX-License-Identifier: MIT */
/*
 * The compiled BPF programs, as scripts/embed_bpf.py writes them: functions with their
 * instructions, what must be patched in these before the kernel takes them, and the maps. Two
 * builds: `typed` for kernels that let a program read a task by plain loads (6.2), `plain` for all.
 */
#ifndef EW_SOURCE_EBPF_IMAGE_H
#define EW_SOURCE_EBPF_IMAGE_H

#include <stddef.h>
#include <stdint.h>

enum ew_image_relocation_kind {
    EW_IMAGE_MAP,      /* target: index of a map */
    EW_IMAGE_RODATA,   /* target: offset in the configuration */
    EW_IMAGE_CALL,     /* target: index of a function */
    EW_IMAGE_CALLBACK, /* the same, its address is taken */
    EW_IMAGE_KFUNC,    /* target: index of a kernel function's name */
    EW_IMAGE_FIELD,    /* target: index of a field */
};

struct ew_image_relocation {
    uint32_t insn; /* within the function */
    uint32_t kind; /* enum ew_image_relocation_kind */
    uint32_t target;
};

struct ew_image_function {
    const char *name;
    const char
        *section; /* where it attaches, "tp_btf/sched_switch"; NULL: other functions call it */
    uint32_t insn, insn_count;
    uint32_t relocation, relocation_count;
    uint32_t type_id; /* in the BTF of the image */
};

/*
 * One CO-RE relocation: a property of a kernel type or field. The path to a field is text:
 * ".s:se.u:sum_exec_runtime",
 * ".ap:pids[3]". The letters before the colon are what the program expects there: s struct or
 * union, p pointer, u unsigned and i signed integer, a array of what follows. A field of another
 * shape does not match.
 */
struct ew_image_field {
    uint32_t kind; /* enum bpf_core_relo_kind */
    uint32_t size; /* as the program loads it; 0: not loaded as one piece */
    const char *type;
    const char *path;
};

struct ew_image_map {
    const char *name;
    uint32_t type, key_size, value_size, max_entries, flags;
};

struct ew_image {
    const unsigned char *object; /* the ELF object, for libbpf */
    size_t object_size;
    const unsigned char *instructions;
    const struct ew_image_function *functions;
    size_t function_count;
    const struct ew_image_relocation *relocations;
    const struct ew_image_field *fields;
    size_t field_count;
    const struct ew_image_map *maps;
    size_t map_count;
    const char *const *kfuncs; /* ends with NULL */
    const unsigned char *btf;  /* the types of the functions */
    size_t btf_size;
    const char *license;
};

enum { EW_IMAGE_FUNCTIONS_MAX = 80, EW_IMAGE_FIELDS_MAX = 256, EW_IMAGE_MAPS_MAX = 32 };

extern const struct ew_image ew_ebpf_typed;
extern const struct ew_image ew_ebpf_plain;

#endif
