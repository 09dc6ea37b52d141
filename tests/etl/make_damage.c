/* SPDX-License-Identifier: MIT */
/* Recordings that are broken in one way each. They begin as sound ones of the made-up machine, with
 * buffers of 4096 bytes unless compressed, and are bent in memory. */
#include <string.h>

#include <etwatch/etwatch.h>

#include "make_etl.h"

enum { EVENTS = 600, BUFFER_HEADER = 72, DEFAULT_BUFFER = 4096 };

struct damage {
    const char *name, *what;
    bool compressed;
    /* Bends the bytes; the second buffer begins at `second`. */
    void (*bend)(struct etl_memory *m, size_t second, uint64_t *random);
};

static void store_u32(uint8_t *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(value >> 8 * i);
}

static void bend_truncated(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)second;
    (void)random;
    m->size -= DEFAULT_BUFFER / 2 + 3;
}

static void bend_header_only(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    m->size = second;
}

static void bend_short(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)second;
    (void)random;
    m->size = 100;
}

static void bend_empty(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)second;
    (void)random;
    m->size = 0;
}

static void bend_foreign(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)second;
    (void)random;
    static const char text[] = "This is a text and not a recording.\n";
    for (size_t i = 0; i < m->size; i++)
        m->bytes[i] = (uint8_t)text[i % (sizeof text - 1)];
}

static void bend_header_event(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)second;
    (void)random;
    store_u32(m->bytes + BUFFER_HEADER, 0);
}

static void bend_size_zero(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    store_u32(m->bytes + second, 0);
}

static void bend_size_huge(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    store_u32(m->bytes + second, 0x7FFFFFF0);
}

static void bend_size_odd(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    store_u32(m->bytes + second, DEFAULT_BUFFER - 13);
}

static void bend_filled_huge(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    store_u32(m->bytes + second + 0x30, 0xFFFFFFF8);
}

static void bend_filled_small(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    store_u32(m->bytes + second + 0x30, 8);
}

static void bend_event_size_zero(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    m->bytes[second + BUFFER_HEADER + 4] = m->bytes[second + BUFFER_HEADER + 5] = 0;
}

static void bend_event_size_huge(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    m->bytes[second + BUFFER_HEADER + 4] = m->bytes[second + BUFFER_HEADER + 5] = 0xFF;
}

static void bend_marker(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    m->bytes[second + BUFFER_HEADER + 3] = 0;
}

static void bend_time(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    memset(m->bytes + second + BUFFER_HEADER + 0x10, 0xFF, 8); /* PERFINFO or SYSTEM: in the past */
    memset(m->bytes + second + BUFFER_HEADER + 8, 0x7F, 8);
}

static void bend_cpu(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    m->bytes[second + 0x28] = 0xFF;
    m->bytes[second + 0x29] = 0x07;
}

static void bend_counts(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)second;
    (void)random;
    uint8_t *info = m->bytes + BUFFER_HEADER + 0x20;
    store_u32(info, 0xFFFFFFFF);        /* buffer size */
    store_u32(info + 0x0C, 0xFFFFFFFF); /* CPUs */
    store_u32(info + 0x24, 0xFFFFFFFF); /* buffers */
    memset(info + 0x100, 0, 8);         /* the clock's frequency */
}

static void bend_packed(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    memset(m->bytes + second + BUFFER_HEADER, 0xFF, 40);
}

static void bend_packed_claim(struct etl_memory *m, size_t second, uint64_t *random)
{
    (void)random;
    store_u32(m->bytes + second + 0x30, 0x40000000);
}

static void bend_noise(struct etl_memory *m, size_t second, uint64_t *random)
{
    for (size_t i = 0; i < m->size / 200; i++) {
        size_t at = second + etl_random(random) % (m->size - second);
        m->bytes[at] = (uint8_t)etl_random(random);
    }
}

#define DAMAGES(X)                                                                                 \
    X("truncated", "ends in the middle of a buffer", false, bend_truncated)                        \
    X("header-only", "nothing but the header buffer", false, bend_header_only)                     \
    X("short", "100 bytes", false, bend_short)                                                     \
    X("empty", "no bytes at all", false, bend_empty)                                               \
    X("not-etl", "something else", false, bend_foreign)                                            \
    X("damaged-header", "the first event is none", false, bend_header_event)                       \
    X("damaged-size-zero", "a buffer of no size", false, bend_size_zero)                           \
    X("damaged-size-huge", "a buffer beyond the end", false, bend_size_huge)                       \
    X("damaged-size-odd", "a buffer that ends within itself", false, bend_size_odd)                \
    X("damaged-filled-huge", "a buffer fuller than it is", false, bend_filled_huge)                \
    X("damaged-filled-small", "a buffer with less than its header", false, bend_filled_small)      \
    X("damaged-event-zero", "an event of no size", false, bend_event_size_zero)                    \
    X("damaged-event-huge", "an event beyond its buffer", false, bend_event_size_huge)             \
    X("damaged-marker", "an event without its mark", false, bend_marker)                           \
    X("damaged-time", "an event out of time", false, bend_time)                                    \
    X("damaged-cpu", "a CPU that is not there", false, bend_cpu)                                   \
    X("damaged-counts", "a header that lies in every number", false, bend_counts)                  \
    X("damaged-packed", "a buffer that does not inflate", true, bend_packed)                       \
    X("damaged-packed-claim", "a buffer that claims to inflate to 1 GiB", true, bend_packed_claim) \
    X("damaged-noise", "random bytes changed everywhere", false, bend_noise)                       \
    X("damaged-noise-packed", "the same in a compressed file", true, bend_noise)

static const struct damage damages[] = {
#define X(name, what, compressed, bend) {name, what, compressed, bend},
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
        damage->bend(&memory, second, &random);
        rc = make_put(output, memory.bytes, memory.size);
    }
    etl_memory_free(&memory);
    return rc;
}

const struct make_kind make_damage_kinds[] = {
#define X(name, what, compressed, bend) {name, what, make_damaged},
    DAMAGES(X)
#undef X
        {NULL, NULL, NULL},
};
