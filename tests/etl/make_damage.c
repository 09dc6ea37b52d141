/* SPDX-License-Identifier: MIT */
/*
 * Recordings with one kind of damage each. They begin as valid recordings of the synthetic machine,
 * with buffers of 4096 bytes unless compressed, and are damaged in memory.
 */
#include <string.h>

#include <etwatch/etwatch.h>

#include "make_etl.h"

enum { EVENTS = 600, BUFFER_HEADER = 72, DEFAULT_BUFFER = 4096 };

struct damage {
    const char *name, *what;
    bool compressed;
    /* Damages the bytes; the second buffer begins at `second`. */
    void (*damage)(struct etl_memory *m, size_t second, uint64_t *random);
};

static void store_u32(uint8_t *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(value >> 8 * i);
}

static void damage_truncated(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)second;
    (void)random;
    m->size -= DEFAULT_BUFFER / 2 + 3;
}

static void damage_header_only(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    m->size = second;
}

static void damage_short(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)second;
    (void)random;
    m->size = 100;
}

static void damage_empty(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)second;
    (void)random;
    m->size = 0;
}

static void damage_foreign(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)second;
    (void)random;
    static const char text[] = "This is a text and not a recording.\n";
    for (size_t i = 0; i < m->size; i++)
        m->bytes[i] = (uint8_t)text[i % (sizeof text - 1)];
}

static void damage_header_event(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)second;
    (void)random;
    store_u32(m->bytes + BUFFER_HEADER, 0);
}

static void damage_size_zero(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    store_u32(m->bytes + second, 0);
}

static void damage_size_huge(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    store_u32(m->bytes + second, 0x7FFFFFF0);
}

static void damage_size_odd(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    store_u32(m->bytes + second, DEFAULT_BUFFER - 13);
}

static void damage_filled_huge(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    store_u32(m->bytes + second + 0x30, 0xFFFFFFF8);
}

static void damage_filled_small(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    store_u32(m->bytes + second + 0x30, 8);
}

static void damage_event_size_zero(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    m->bytes[second + BUFFER_HEADER + 4] = m->bytes[second + BUFFER_HEADER + 5] = 0;
}

static void damage_event_size_huge(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    m->bytes[second + BUFFER_HEADER + 4] = m->bytes[second + BUFFER_HEADER + 5] = 0xFF;
}

static void damage_marker(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    m->bytes[second + BUFFER_HEADER + 3] = 0;
}

static void damage_time(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    memset(m->bytes + second + BUFFER_HEADER + 0x10, 0xFF, 8); /* PERFINFO or SYSTEM: in the past */
    memset(m->bytes + second + BUFFER_HEADER + 8, 0x7F, 8);
}

static void damage_cpu(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    m->bytes[second + 0x28] = 0xFF;
    m->bytes[second + 0x29] = 0x07;
}

static void damage_counts(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)second;
    (void)random;
    uint8_t *info = m->bytes + BUFFER_HEADER + 0x20;
    store_u32(info, 0xFFFFFFFF);        /* buffer size */
    store_u32(info + 0x0C, 0xFFFFFFFF); /* CPUs */
    store_u32(info + 0x24, 0xFFFFFFFF); /* buffers */
    memset(info + 0x100, 0, 8);         /* the clock's frequency */
}

static void damage_packed(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    memset(m->bytes + second + BUFFER_HEADER, 0xFF, 40);
}

static void damage_packed_claim(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    store_u32(m->bytes + second + 0x30, 0x40000000);
}

static void damage_noise(struct etl_memory *m, size_t second, uint64_t *random)
{
    for (size_t i = 0; i < m->size / 200; i++) {
        size_t at = second + etl_random(random) % (m->size - second);
        m->bytes[at] = (uint8_t)etl_random(random);
    }
}

#define DAMAGES(X)                                                                                \
    X("truncated", "ends in the middle of a buffer", false, damage_truncated)                     \
    X("header-only", "only the header buffer", false, damage_header_only)                         \
    X("short", "100 bytes", false, damage_short)                                                  \
    X("empty", "no bytes at all", false, damage_empty)                                            \
    X("not-etl", "something else", false, damage_foreign)                                         \
    X("damaged-header", "the first event is invalid", false, damage_header_event)                 \
    X("damaged-size-zero", "a buffer of no size", false, damage_size_zero)                        \
    X("damaged-size-huge", "a buffer beyond the end", false, damage_size_huge)                    \
    X("damaged-size-odd", "a buffer that ends within itself", false, damage_size_odd)             \
    X("damaged-filled-huge", "a buffer with too large a fill level", false, damage_filled_huge)   \
    X("damaged-filled-small", "a buffer filled less than its header", false, damage_filled_small) \
    X("damaged-event-zero", "an event of no size", false, damage_event_size_zero)                 \
    X("damaged-event-huge", "an event beyond its buffer", false, damage_event_size_huge)          \
    X("damaged-marker", "an event without its marker", false, damage_marker)                      \
    X("damaged-time", "an event with a wrong time", false, damage_time)                           \
    X("damaged-cpu", "a CPU that does not exist", false, damage_cpu)                              \
    X("damaged-counts", "a header with wrong numbers", false, damage_counts)                      \
    X("damaged-packed", "a buffer that does not decompress", true, damage_packed)                 \
    X("damaged-packed-claim", "a buffer that claims to decompress to 1 GiB", true,                \
      damage_packed_claim)                                                                        \
    X("damaged-noise", "random bytes changed everywhere", false, damage_noise)                    \
    X("damaged-noise-packed", "the same in a compressed file", true, damage_noise)

static const struct damage damages[] = {
#define X(name, what, compressed, damage) {name, what, compressed, damage},
    DAMAGES(X)
#undef X
};

static int make_damaged(const struct make_options *o, struct make_output *output)
{
    const struct damage *damage = damages;
    while (strcmp(damage->name, o->kind) != 0)
        damage++;
    struct etl_memory memory = {0};
    uint64_t random = o->seed;
    int rc =
        make_memory(o, damage->compressed || o->compress, o->events ? o->events : EVENTS, &memory);
    if (rc == 0) {
        size_t second =
            (size_t)memory.bytes[0] | (size_t)memory.bytes[1] << 8 | (size_t)memory.bytes[2] << 16;
        damage->damage(&memory, second, &random);
        rc = make_put(output, memory.bytes, memory.size);
    }
    etl_memory_free(&memory);
    return rc;
}

const struct make_kind make_damage_kinds[] = {
#define X(name, what, compressed, damage) {name, what, make_damaged},
    DAMAGES(X)
#undef X
        {NULL, NULL, NULL},
};
