/* SPDX-License-Identifier: MIT */
/*
 * The kinds of kernel events by name. Each is a session flag (every Windows) and a keyword of a
 * system provider (Windows 11, Server 2022; SYSTEM_IO_KW_FILE_INIT only in newer builds). Flags are
 * used wherever they work: every Windows knows all of them. tests/windows/etw_gates.c has the same
 * facts from other sources; a test compares both.
 */
#ifndef EW_SOURCE_ETW_KERNEL_H
#define EW_SOURCE_ETW_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/etw/api.h"

#define EW_ETW_KERNEL(X)                                    \
    X(PROCESS, "process", 0x1, PROCESS, 0x1)                \
    X(THREAD, "thread", 0x2, PROCESS, 0x800)                \
    X(IMAGE, "image", 0x4, PROCESS, 0x1000)                 \
    X(COUNTERS, "counters", 0x8, PROCESS, 0x8)              \
    X(CSWITCH, "cswitch", 0x10, SCHEDULER, 0x200)           \
    X(DPC, "dpc", 0x20, INTERRUPT, 0x4)                     \
    X(INTERRUPT, "interrupt", 0x40, INTERRUPT, 0x1)         \
    X(SYSCALL, "syscall", 0x80, SYSCALL, 0x1)               \
    X(DISK, "disk", 0x100, IO, 0x1)                         \
    X(FILE_NAMES, "filenames", 0x200, IO, 0x4)              \
    X(DISK_INIT, "disk-init", 0x400, IO, 0x2)               \
    X(DISPATCHER, "dispatcher", 0x800, SCHEDULER, 0x2)      \
    X(PAGE_FAULTS, "pagefaults", 0x1000, MEMORY, 0x4)       \
    X(HARD_FAULTS, "hardfaults", 0x2000, MEMORY, 0x2)       \
    X(VIRTUAL_ALLOC, "virtualalloc", 0x4000, MEMORY, 0x400) \
    X(NETWORK, "network", 0x10000, IO, 0x200)               \
    X(SPLIT_IO, "splitio", 0x200000, IO, 0x8)               \
    X(DRIVER, "driver", 0x800000, IO, 0x80)                 \
    X(PROFILE, "profile", 0x1000000, PROFILE, 0x1)          \
    X(FILE_IO, "fileio", 0x2000000, IO, 0x10)               \
    X(FILE_IO_INIT, "fileio-init", 0x4000000, IO, 0x400)

enum ew_etw_kernel_index {
#define EW_X(id, name, flag, provider, keyword) EW_ETW_K_##id,
    EW_ETW_KERNEL(EW_X)
#undef EW_X
        EW_ETW_KERNEL_COUNT
};

/* A set of kinds. */
enum ew_etw_kernel {
#define EW_X(id, name, flag, provider, keyword) EW_ETW_##id = 1u << EW_ETW_K_##id,
    EW_ETW_KERNEL(EW_X)
#undef EW_X
};

/* The default: what watching processes needs. */
#define EW_ETW_KERNEL_WATCH                                                               \
    ((uint32_t)(EW_ETW_PROCESS | EW_ETW_THREAD | EW_ETW_COUNTERS | EW_ETW_CSWITCH |       \
                EW_ETW_DISPATCHER | EW_ETW_DISK | EW_ETW_DISK_INIT | EW_ETW_HARD_FAULTS | \
                EW_ETW_NETWORK | EW_ETW_FILE_IO_INIT))

/* Parses "process,cswitch,…". On EINVAL the error names the unknown word and lists the valid
 * ones. */
int ew_etw_kernel_parse(const char *text, uint32_t *ret_set, struct ew_error *reterr);
const char *ew_etw_kernel_name(uint32_t index);

/* EVENT_TRACE_FLAG_NO_SYSCONFIG: no description of the machine's hardware and services, which only
 * readers of a file need. */
#define EW_ETW_FLAG_NO_SYSCONFIG 0x10000000u
uint32_t ew_etw_kernel_flags(uint32_t set);
uint32_t ew_etw_kernel_from_flags(uint32_t flags);

/* Server 2022 and Windows 11. */
bool ew_etw_has_system_providers(uint32_t os_build);
enum { EW_ETW_SYSTEM_PROVIDERS = 7 };
/* Keywords of a provider for a set; 0: the provider is not needed. */
uint64_t ew_etw_kernel_keywords(uint32_t set, uint32_t provider);
const uint8_t *ew_etw_system_provider(uint32_t provider);

/* The events of a set that can carry a stack. Returns their number. */
enum { EW_ETW_STACKS_MAX = 32 };
size_t ew_etw_kernel_stacks(uint32_t set, struct ew_etw_classic_id ret_ids[EW_ETW_STACKS_MAX]);

#endif
