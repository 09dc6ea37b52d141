/* SPDX-License-Identifier: MIT */
/*
 * A library in memory that has what onnx_elf.c looks for: OrtGetApiBase, its table, and two methods
 * that refer to the names of events. Addresses equal offsets in the file.
 */
#ifndef ONNX_LIBRARY_H
#define ONNX_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    LIBRARY_SIZE = 0x5000,
    LIBRARY_X86 = 62,
    LIBRARY_ARM64 = 183,
    AT_DYNAMIC = 0x200,
    AT_SYMBOLS = 0x300,
    AT_STRINGS = 0x400,
    AT_HASH = 0x480,
    AT_RELA = 0x500,
    AT_FRAMES = 0xa00,
    AT_TEXTS = 0xb00,
    AT_CODE = 0x1000, /* executable, up to 0x3000 */
    AT_GET_BASE = 0x1100,
    AT_GET_API = 0x1200,
    AT_INIT = 0x2000,
    AT_RUN = 0x2400,
    AT_OTHER = 0x2800,
    AT_FUNCTIONS = 0x2900, /* of the table: one every 16 bytes */
    AT_DATA = 0x3000,
    AT_BASE = 0x3000,
    AT_TABLE = 0x3100,
    TABLE_MEMBERS = 40,
};

static inline void put(uint8_t *library, uint64_t at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        library[at + (uint64_t)i] = (uint8_t)(value >> 8 * i);
}

static inline void put_segment(uint8_t *library, int i, uint32_t type, uint32_t flags, uint64_t at,
                               uint64_t size)
{
    uint64_t entry = 64 + (uint64_t)i * 56;
    put(library, entry, type, 4);
    put(library, entry + 4, flags, 4);
    put(library, entry + 8, at, 8);
    put(library, entry + 16, at, 8);
    put(library, entry + 32, size, 8);
    put(library, entry + 40, size, 8);
}

/* Forms the address `to` at the address `at`. */
static inline void put_address(uint8_t *library, uint32_t machine, uint64_t at, uint64_t to)
{
    if (machine == LIBRARY_X86) {
        put(library, at, 0x058d48, 3); /* lea to(%rip), %rax */
        put(library, at + 3, to - at - 7, 4);
        return;
    }
    uint64_t pages = ((to & ~UINT64_C(4095)) - (at & ~UINT64_C(4095))) >> 12;
    put(library, at, 0x90000003 | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5, 4);
    put(library, at + 4, 0xd503201f, 4); /* a nop between the two */
    put(library, at + 8, 0x91000000 | (to & 4095) << 10 | 3 << 5 | 3, 4);
}

static inline void put_relocation(uint8_t *library, uint32_t machine, int i, uint64_t at,
                                  uint64_t to)
{
    uint64_t entry = AT_RELA + (uint64_t)i * 24;
    put(library, entry, at, 8);
    put(library, entry + 8, machine == LIBRARY_X86 ? 8 : 1027, 8);
    put(library, entry + 16, to, 8);
}

static inline void put_symbol(uint8_t *library)
{
    uint32_t hash = 5381;
    static const char name[] = "OrtGetApiBase";
    for (const char *c = name; *c != '\0'; c++)
        hash = hash * 33 + (unsigned char)*c;
    memcpy(library + AT_STRINGS + 1, name, sizeof name);
    put(library, AT_SYMBOLS + 24, 1, 4);
    put(library, AT_SYMBOLS + 32, AT_GET_BASE, 8);
    put(library, AT_HASH, 1, 4);      /* buckets */
    put(library, AT_HASH + 4, 1, 4);  /* first symbol */
    put(library, AT_HASH + 8, 1, 4);  /* words of the filter */
    put(library, AT_HASH + 24, 1, 4); /* the bucket */
    put(library, AT_HASH + 28, hash | 1, 4);
}

static inline void put_dynamic(uint8_t *library)
{
    static const uint64_t entries[][2] = {{5, AT_STRINGS}, {6, AT_SYMBOLS},
                                          {7, AT_RELA},    {8, (TABLE_MEMBERS + 1) * 24},
                                          {10, 64},        {0x6ffffef5, AT_HASH}};
    for (uint64_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        put(library, AT_DYNAMIC + i * 16, entries[i][0], 8);
        put(library, AT_DYNAMIC + i * 16 + 8, entries[i][1], 8);
    }
}

static inline void make_library(uint8_t *library, uint32_t machine)
{
    static const uint32_t functions[] = {AT_CODE, AT_INIT, AT_RUN, AT_OTHER};
    memset(library, 0, LIBRARY_SIZE);
    memcpy(library, "\177ELF\2\1", 6);
    put(library, 18, machine, 2);
    put(library, 32, 64, 8);
    put(library, 54, 56, 2);
    put(library, 56, 5, 2);
    put_segment(library, 0, 1, 4, 0, AT_CODE);
    put_segment(library, 1, 1, 5, AT_CODE, AT_DATA - AT_CODE);
    put_segment(library, 2, 1, 6, AT_DATA, LIBRARY_SIZE - AT_DATA);
    put_segment(library, 3, 2, 6, AT_DYNAMIC, 128);
    put_segment(library, 4, 0x6474e550, 4, AT_FRAMES, 64);
    put_dynamic(library);
    put_symbol(library);
    put_address(library, machine, AT_GET_BASE, AT_BASE);
    put_address(library, machine, AT_GET_API, AT_TABLE);
    put_relocation(library, machine, 0, AT_BASE, AT_GET_API);
    for (int i = 0; i < TABLE_MEMBERS; i++)
        put_relocation(library, machine, i + 1, (uint64_t)(AT_TABLE + i * 8),
                       (uint64_t)(AT_FUNCTIONS + i * 16));
    put(library, AT_FRAMES, 0x3b031b01, 4);
    put(library, AT_FRAMES + 8, 4, 4);
    for (uint64_t i = 0; i < 4; i++)
        put(library, AT_FRAMES + 12 + i * 8, functions[i] - (uint64_t)AT_FRAMES, 4);
    memcpy(library + AT_TEXTS, "\0model_run_2\0session_initialization\0model_run", 46);
    put_address(library, machine, AT_INIT + 0x40, AT_TEXTS + 13);
    put_address(library, machine, AT_RUN + 0x100, AT_TEXTS + 36);
    put_address(library, machine, AT_RUN + 0x200, AT_TEXTS + 36);
}

#endif
