/* SPDX-License-Identifier: MIT */
/* Tables generated from the list in the header; independent of any session. */
#include "source/etw/kernel.h"

#include <string.h>

#include "source/etw/classes.h"

enum { PROCESS, SCHEDULER, PROFILE, INTERRUPT, IO, MEMORY, SYSCALL };

static const uint8_t providers[EW_ETW_SYSTEM_PROVIDERS][16] = {
    [PROCESS] = {0xdc, 0x55, 0x1f, 0x15, 0x7d, 0x46, 0x1f, 0x47, 0x83, 0xb5, 0x5f, 0x88, 0x9d, 0x46,
                 0xff, 0x66},
    [SCHEDULER] = {0x76, 0x2a, 0x9a, 0x59, 0x91, 0x4d, 0x10, 0x49, 0x9a, 0xc7, 0x7d, 0x33, 0xf2,
                   0xe9, 0x7a, 0x6c},
    [PROFILE] = {0x24, 0x03, 0xeb, 0xbf, 0xee, 0x1c, 0x6f, 0x49, 0xa4, 0x09, 0x2a, 0xc2, 0xb4, 0x8a,
                 0x63, 0x22},
    [INTERRUPT] = {0x17, 0xee, 0xbb, 0xd4, 0x45, 0xb5, 0x88, 0x48, 0x85, 0x8b, 0x74, 0x41, 0x69,
                   0x01, 0x5b, 0x25},
    [IO] = {0xe3, 0x43, 0x5c, 0x3d, 0x1c, 0x0f, 0x02, 0x42, 0xb8, 0x17, 0x17, 0x4c, 0x00, 0x70,
            0xdc, 0x79},
    [MEMORY] = {0xa9, 0x8c, 0x95, 0x82, 0xcd, 0xb6, 0xf8, 0x47, 0xa3, 0xa8, 0x03, 0xae, 0x85, 0xa4,
                0xbc, 0x24},
    [SYSCALL] = {0xf7, 0x86, 0x42, 0x43, 0x1b, 0x6f, 0xbb, 0x45, 0xb3, 0x7e, 0x95, 0xf6, 0x23, 0x04,
                 0x6c, 0x7c},
};

static const struct {
    const char *name;
    uint32_t flag;
    uint8_t provider;
    uint64_t keyword;
} kernel[EW_ETW_KERNEL_COUNT] = {
#define EW_X(id, name, flag, provider, keyword) {name, flag, provider, keyword},
    EW_ETW_KERNEL(EW_X)
#undef EW_X
};

/* The Windows names, without the prefix EVENT_TRACE_FLAG_. */
static const struct {
    const char *name;
    uint32_t kernel; /* index */
} windows_names[] = {
    {"PROCESS", EW_ETW_K_PROCESS},
    {"THREAD", EW_ETW_K_THREAD},
    {"IMAGE_LOAD", EW_ETW_K_IMAGE},
    {"PROCESS_COUNTERS", EW_ETW_K_COUNTERS},
    {"CSWITCH", EW_ETW_K_CSWITCH},
    {"DPC", EW_ETW_K_DPC},
    {"INTERRUPT", EW_ETW_K_INTERRUPT},
    {"SYSTEMCALL", EW_ETW_K_SYSCALL},
    {"DISK_IO", EW_ETW_K_DISK},
    {"DISK_FILE_IO", EW_ETW_K_FILE_NAMES},
    {"DISK_IO_INIT", EW_ETW_K_DISK_INIT},
    {"DISPATCHER", EW_ETW_K_DISPATCHER},
    {"MEMORY_PAGE_FAULTS", EW_ETW_K_PAGE_FAULTS},
    {"MEMORY_PAGE", EW_ETW_K_PAGE_FAULTS}, /* common misspelling */
    {"MEMORY_HARD_FAULTS", EW_ETW_K_HARD_FAULTS},
    {"VIRTUAL_ALLOC", EW_ETW_K_VIRTUAL_ALLOC},
    {"NETWORK_TCPIP", EW_ETW_K_NETWORK},
    {"SPLIT_IO", EW_ETW_K_SPLIT_IO},
    {"DRIVER", EW_ETW_K_DRIVER},
    {"PROFILE", EW_ETW_K_PROFILE},
    {"FILE_IO", EW_ETW_K_FILE_IO},
    {"FILE_IO_INIT", EW_ETW_K_FILE_IO_INIT},
};

static bool is_word(const char *name, const char *word, size_t len)
{
    return strlen(name) == len && memcmp(name, word, len) == 0;
}

/* The index of a name, or EW_ETW_KERNEL_COUNT. */
static uint32_t find_word(const char *word, size_t len)
{
    static const char prefix[] = "EVENT_TRACE_FLAG_";
    const size_t prefix_len = sizeof prefix - 1;
    for (uint32_t i = 0; i < EW_ETW_KERNEL_COUNT; i++)
        if (is_word(kernel[i].name, word, len))
            return i;
    if (len <= prefix_len || memcmp(word, prefix, prefix_len) != 0)
        return EW_ETW_KERNEL_COUNT;
    for (size_t i = 0; i < sizeof windows_names / sizeof windows_names[0]; i++)
        if (is_word(windows_names[i].name, word + prefix_len, len - prefix_len))
            return windows_names[i].kernel;
    return EW_ETW_KERNEL_COUNT;
}

const char *ew_etw_kernel_name(uint32_t index)
{
    return index < EW_ETW_KERNEL_COUNT ? kernel[index].name : NULL;
}

static int unknown_word(const char *word, size_t len, struct ew_error *reterr)
{
    char names[240];
    size_t at = 0;
    for (size_t i = 0; i < EW_ETW_KERNEL_COUNT; i++) {
        size_t name_len = strlen(kernel[i].name);
        if (at + name_len + 2 > sizeof names)
            break;
        memcpy(names + at, kernel[i].name, name_len);
        at += name_len;
        names[at++] = ' ';
    }
    names[at > 0 ? at - 1 : 0] = '\0';
    ew_error_set(reterr, ETWATCH_EINVAL, 0, "'%.*s' is not a kind of kernel event", (int)len, word);
    ew_error_fix(reterr, "use one of: %s", names);
    return ETWATCH_EINVAL;
}

int ew_etw_kernel_parse(const char *text, uint32_t *ret_set, struct ew_error *reterr)
{
    uint32_t set = 0;
    while (*text != '\0') {
        size_t len = strcspn(text, ",");
        uint32_t i = find_word(text, len);
        if (i == EW_ETW_KERNEL_COUNT)
            return unknown_word(text, len < 60 ? len : 60, reterr);
        set |= 1u << i;
        text += len;
        text += *text == ',';
    }
    *ret_set = set;
    return 0;
}

uint32_t ew_etw_kernel_flags(uint32_t set)
{
    uint32_t flags = 0;
    for (size_t i = 0; i < EW_ETW_KERNEL_COUNT; i++)
        flags |= set >> i & 1 ? kernel[i].flag : 0;
    return flags;
}

uint32_t ew_etw_kernel_from_flags(uint32_t flags)
{
    uint32_t set = 0;
    for (size_t i = 0; i < EW_ETW_KERNEL_COUNT; i++)
        set |= (flags & kernel[i].flag) != 0 ? 1u << i : 0;
    return set;
}

bool ew_etw_has_system_providers(uint32_t os_build)
{
    return os_build >= 20348;
}

uint64_t ew_etw_kernel_keywords(uint32_t set, uint32_t provider)
{
    uint64_t keywords = 0;
    for (size_t i = 0; i < EW_ETW_KERNEL_COUNT; i++)
        keywords |= (set >> i & 1) && kernel[i].provider == provider ? kernel[i].keyword : 0;
    return keywords;
}

const uint8_t *ew_etw_system_provider(uint32_t provider)
{
    return providers[provider];
}

static const struct {
    uint32_t kernel; /* index */
    uint8_t group, type;
} stacks[] = {
    {EW_ETW_K_PROCESS, EW_ETW_CLASS_PROCESS, 1},
    {EW_ETW_K_PROCESS, EW_ETW_CLASS_PROCESS, 2},
    {EW_ETW_K_THREAD, EW_ETW_CLASS_THREAD, 1},
    {EW_ETW_K_THREAD, EW_ETW_CLASS_THREAD, 2},
    {EW_ETW_K_IMAGE, EW_ETW_CLASS_IMAGE, 10},
    {EW_ETW_K_CSWITCH, EW_ETW_CLASS_THREAD, 36},
    {EW_ETW_K_DISPATCHER, EW_ETW_CLASS_THREAD, 50},
    {EW_ETW_K_PROFILE, EW_ETW_CLASS_PERFINFO, 46},
    {EW_ETW_K_SYSCALL, EW_ETW_CLASS_PERFINFO, 51},
    {EW_ETW_K_DISK_INIT, EW_ETW_CLASS_DISK, 12},
    {EW_ETW_K_DISK_INIT, EW_ETW_CLASS_DISK, 13},
    {EW_ETW_K_DISK_INIT, EW_ETW_CLASS_DISK, 15},
    {EW_ETW_K_HARD_FAULTS, EW_ETW_CLASS_FAULT, 32},
    {EW_ETW_K_PAGE_FAULTS, EW_ETW_CLASS_FAULT, 10},
    {EW_ETW_K_PAGE_FAULTS, EW_ETW_CLASS_FAULT, 11},
    {EW_ETW_K_PAGE_FAULTS, EW_ETW_CLASS_FAULT, 12},
    {EW_ETW_K_PAGE_FAULTS, EW_ETW_CLASS_FAULT, 13},
    {EW_ETW_K_PAGE_FAULTS, EW_ETW_CLASS_FAULT, 14},
    {EW_ETW_K_VIRTUAL_ALLOC, EW_ETW_CLASS_FAULT, 98},
    {EW_ETW_K_VIRTUAL_ALLOC, EW_ETW_CLASS_FAULT, 99},
    {EW_ETW_K_FILE_IO_INIT, EW_ETW_CLASS_FILE, 67},
    {EW_ETW_K_FILE_IO_INIT, EW_ETW_CLASS_FILE, 68},
};
_Static_assert(sizeof stacks / sizeof stacks[0] <= EW_ETW_STACKS_MAX, "room");

size_t ew_etw_kernel_stacks(uint32_t set, struct ew_etw_classic_id ret_ids[EW_ETW_STACKS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof stacks / sizeof stacks[0]; i++) {
        if ((set >> stacks[i].kernel & 1) == 0)
            continue;
        memset(&ret_ids[count], 0, sizeof ret_ids[count]);
        memcpy(ret_ids[count].guid, ew_etw_class_guid(stacks[i].group), 16);
        ret_ids[count++].type = stacks[i].type;
    }
    return count;
}
