/* SPDX-License-Identifier: MIT */
/*
 * Sources. Flags and keywords: the constants of evntrace.h in the Windows SDK (10.0.26100;
 * SYSTEM_IO_KW_FILE_INIT is missing in 10.0.20348). Which flag gives which events: the page of each
 * event class (Process, Thread, Image, DiskIo, FileIo, PageFault_V2, PerfInfo, TcpIp, UdpIp) and
 * EVENT_TRACE_PROPERTIES. Which keyword is which flag: the page "System Providers". Masks: PERF_…
 * of ntwmi.h; real recordings are compared with them (tests/etl/gates.py).
 */
#include "etw_gates.h"

#include <string.h>

#include "base/bytes.h"

enum { PROCESS, SCHEDULER, PROFILE, INTERRUPT, IO, MEMORY, SYSCALL };
enum {
    DISK = 1,
    FAULT = 2,
    PROC = 3,
    FILES = 4,
    THREAD = 5,
    TCP = 6,
    UDP = 8,
    PERF = 15,
    IMAGE = 20,
    SPLIT = 27,
};
enum { OLD = 20348, NEW = 26100 };
enum {
    DOCS = ETW_GATE_SDK | ETW_GATE_DOC,
    ALL = ETW_GATE_SDK | ETW_GATE_DOC | ETW_GATE_RECORDING,
};

const uint8_t etw_gate_guid[ETW_GATE_PROVIDERS][16] = {
    /* {151f55dc-467d-471f-83b5-5f889d46ff66} */
    [PROCESS] = {0xdc, 0x55, 0x1f, 0x15, 0x7d, 0x46, 0x1f, 0x47, 0x83, 0xb5, 0x5f, 0x88, 0x9d, 0x46,
                 0xff, 0x66},
    /* {599a2a76-4d91-4910-9ac7-7d33f2e97a6c} */
    [SCHEDULER] = {0x76, 0x2a, 0x9a, 0x59, 0x91, 0x4d, 0x10, 0x49, 0x9a, 0xc7, 0x7d, 0x33, 0xf2,
                   0xe9, 0x7a, 0x6c},
    /* {bfeb0324-1cee-496f-a409-2ac2b48a6322} */
    [PROFILE] = {0x24, 0x03, 0xeb, 0xbf, 0xee, 0x1c, 0x6f, 0x49, 0xa4, 0x09, 0x2a, 0xc2, 0xb4, 0x8a,
                 0x63, 0x22},
    /* {d4bbee17-b545-4888-858b-744169015b25} */
    [INTERRUPT] = {0x17, 0xee, 0xbb, 0xd4, 0x45, 0xb5, 0x88, 0x48, 0x85, 0x8b, 0x74, 0x41, 0x69,
                   0x01, 0x5b, 0x25},
    /* {3d5c43e3-0f1c-4202-b817-174c0070dc79} */
    [IO] = {0xe3, 0x43, 0x5c, 0x3d, 0x1c, 0x0f, 0x02, 0x42, 0xb8, 0x17, 0x17, 0x4c, 0x00, 0x70,
            0xdc, 0x79},
    /* {82958ca9-b6cd-47f8-a3a8-03ae85a4bc24} */
    [MEMORY] = {0xa9, 0x8c, 0x95, 0x82, 0xcd, 0xb6, 0xf8, 0x47, 0xa3, 0xa8, 0x03, 0xae, 0x85, 0xa4,
                0xbc, 0x24},
    /* {434286f7-6f1b-45bb-b37e-95f623046c7c} */
    [SYSCALL] = {0xf7, 0x86, 0x42, 0x43, 0x1b, 0x6f, 0xbb, 0x45, 0xb3, 0x7e, 0x95, 0xf6, 0x23, 0x04,
                 0x6c, 0x7c},
};

/* In the order: flag, class, opcodes, flag, provider, keyword, build, mask, sources. */
const struct etw_gate etw_gates[] = {
    {"PROCESS", PROC, 1, 4, 0x00000001, PROCESS, 0x001, OLD, 0x00000001, ALL},
    {"PROCESS", PROC, 11, 11, 0x00000001, PROCESS, 0x001, OLD, 0x00000001, ETW_GATE_RECORDING},
    {"PROCESS", PROC, 39, 39, 0x00000001, PROCESS, 0x001, OLD, 0x00000001, ALL},
    {"THREAD", THREAD, 1, 4, 0x00000002, PROCESS, 0x800, OLD, 0x00000002, ALL},
    {"IMAGE_LOAD", PROC, 10, 10, 0x00000004, PROCESS, 0x1000, OLD, 0x00000004, ALL},
    {"IMAGE_LOAD", IMAGE, 2, 4, 0x00000004, PROCESS, 0x1000, OLD, 0x00000004, ALL},
    {"PROCESS_COUNTERS", PROC, 32, 33, 0x00000008, PROCESS, 0x008, OLD, 0x00000008, ALL},
    {"CSWITCH", THREAD, 36, 36, 0x00000010, SCHEDULER, 0x200, OLD, 0x20000004, DOCS},
    {"DPC", PERF, 66, 66, 0x00000020, INTERRUPT, 0x4, OLD, 0x20000080, DOCS},
    {"DPC", PERF, 68, 69, 0x00000020, INTERRUPT, 0x4, OLD, 0x20000080, DOCS},
    {"INTERRUPT", PERF, 67, 67, 0x00000040, INTERRUPT, 0x1, OLD, 0x20004000, DOCS},
    {"SYSTEMCALL", PERF, 51, 52, 0x00000080, SYSCALL, 0x1, OLD, 0x40000040, DOCS},
    {"DISK_IO", DISK, 10, 11, 0x00000100, IO, 0x1, OLD, 0x00000100, ALL},
    {"DISK_IO", DISK, 14, 14, 0x00000100, IO, 0x1, OLD, 0x00000100, ALL},
    {"DISK_FILE_IO", FILES, 0, 0, 0x00000200, IO, 0x4, OLD, 0x00000200, DOCS},
    {"DISK_FILE_IO", FILES, 32, 36, 0x00000200, IO, 0x4, OLD, 0x00000200, ALL},
    {"DISK_IO_INIT", DISK, 12, 13, 0x00000400, IO, 0x2, OLD, 0x00000400, ALL},
    {"DISK_IO_INIT", DISK, 15, 15, 0x00000400, IO, 0x2, OLD, 0x00000400, ALL},
    {"DISPATCHER", THREAD, 50, 50, 0x00000800, SCHEDULER, 0x2, OLD, 0x20000200, DOCS},
    {"MEMORY_PAGE_FAULTS", FAULT, 10, 15, 0x00001000, MEMORY, 0x4, OLD, 0x00001000, DOCS},
    {"MEMORY_HARD_FAULTS", FAULT, 32, 32, 0x00002000, MEMORY, 0x2, OLD, 0x00002000, ALL},
    {"VIRTUAL_ALLOC", FAULT, 98, 99, 0x00004000, MEMORY, 0x400, OLD, 0x20008000, DOCS},
    {"VIRTUAL_ALLOC", FAULT, 128, 129, 0x00004000, MEMORY, 0x400, OLD, 0x20008000, DOCS},
    {"NETWORK_TCPIP", TCP, 10, 31, 0x00010000, IO, 0x200, OLD, 0x00010000, ALL},
    {"NETWORK_TCPIP", UDP, 10, 31, 0x00010000, IO, 0x200, OLD, 0x00010000, ALL},
    {"SPLIT_IO", SPLIT, 32, 32, 0x00200000, IO, 0x8, OLD, 0x00200000, DOCS},
    {"DRIVER", DISK, 34, 35, 0x00800000, IO, 0x80, OLD, 0x20000010, DOCS},
    {"DRIVER", DISK, 37, 37, 0x00800000, IO, 0x80, OLD, 0x20000010, DOCS},
    {"DRIVER", DISK, 52, 53, 0x00800000, IO, 0x80, OLD, 0x20000010, DOCS},
    {"PROFILE", PERF, 46, 46, 0x01000000, PROFILE, 0x1, OLD, 0x20000002, ALL},
    /* Only the end of an operation: no read and no write. */
    {"FILE_IO", FILES, 76, 76, 0x02000000, IO, 0x10, OLD, 0x02000000, DOCS},
    {"FILE_IO_INIT", FILES, 64, 75, 0x04000000, IO, 0x400, NEW, 0x04000000, DOCS},
    {"FILE_IO_INIT", FILES, 77, 77, 0x04000000, IO, 0x400, NEW, 0x04000000, DOCS},
};
const size_t etw_gate_count = sizeof etw_gates / sizeof etw_gates[0];

uint32_t etw_gate_provider(const uint8_t guid[16])
{
    uint32_t i = 0;
    while (i < ETW_GATE_PROVIDERS && memcmp(etw_gate_guid[i], guid, 16) != 0)
        i++;
    return i;
}

uint32_t etw_gate_manifest(const uint8_t guid[16])
{
    static const uint8_t guids[ETW_GATE_MANIFESTS][16] = {
        {0x5a, 0xc4, 0x2e, 0x80, 0x99, 0x1e, 0x83, 0x4b, 0x99, 0x20, 0x87, 0xc9, 0x82, 0x77, 0xba,
         0x9d},
        {0x36, 0xc0, 0x11, 0xca, 0x02, 0x01, 0x2d, 0x4a, 0xa6, 0xad, 0xf0, 0x3c, 0xfe, 0xd5, 0xd3,
         0xc9},
        {0x0a, 0xca, 0x3a, 0x78, 0x0e, 0x79, 0x7f, 0x4d, 0x84, 0x51, 0xaa, 0x85, 0x05, 0x11, 0xc6,
         0xb9},
    };
    uint32_t i = 0;
    while (i < ETW_GATE_MANIFESTS && memcmp(guids[i], guid, 16) != 0)
        i++;
    return i;
}

static bool is_of(const struct etw_gate *gate, uint8_t group, uint8_t opcode)
{
    return gate->group == group && opcode >= gate->first && opcode <= gate->last;
}

bool etw_gate_passes(const struct etw_enabled *enabled, uint32_t os_build, uint8_t group,
                     uint8_t opcode)
{
    bool known = false;
    for (size_t i = 0; i < etw_gate_count; i++) {
        const struct etw_gate *gate = &etw_gates[i];
        if (!is_of(gate, group, opcode))
            continue;
        known = true;
        if ((enabled->flags & gate->flag) != 0 ||
            (os_build >= gate->keyword_build &&
             (enabled->keywords[gate->provider] & gate->keyword) != 0))
            return true;
    }
    return !known;
}

/* EventTrace/Extension and EndExtension. */
bool etw_gate_add_mask(uint32_t mask[8], const struct ew_record *record)
{
    bool any = false;
    if (record->kind != EW_RECORD_KERNEL || record->group != 0 ||
        (record->opcode != 5 && record->opcode != 32) || record->payload_size < 32)
        return false;
    for (int i = 0; i < 8; i++) {
        uint32_t bits = ew_load_u32(record->payload + 4 * i);
        mask[i] |= bits;
        any |= bits != 0;
    }
    return any;
}

bool etw_gate_mask_gives(const struct etw_gate *gate, const uint32_t mask[8], uint8_t group,
                         uint8_t opcode)
{
    return is_of(gate, group, opcode) && (mask[gate->mask >> 29] & gate->mask & 0x1FFFFFFFu) != 0;
}

bool etw_gate_mask_passes(const uint32_t mask[8], uint8_t group, uint8_t opcode)
{
    bool known = false;
    for (size_t i = 0; i < etw_gate_count; i++) {
        const struct etw_gate *gate = &etw_gates[i];
        if (!is_of(gate, group, opcode))
            continue;
        known = true;
        if (etw_gate_mask_gives(gate, mask, group, opcode))
            return true;
    }
    return !known;
}
