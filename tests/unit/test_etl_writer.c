/* SPDX-License-Identifier: MIT */
/*
 * The output of the recording writer, byte by byte: buffers, the header event, each kind of event
 * header, compression. The offsets are those of Windows' structures, written out here a second
 * time.
 */
#include <stdint.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "etl_writer.h"
#include "source/etl/xpress.h"
#include "test.h"

enum { ROOM = 1024 * 1024, BUFFER = 4096, HEAD = 72 };

struct memory {
    uint8_t *bytes;
    size_t size;
    unsigned writes, rewrites;
    int fail_at; /* the number of the write that fails; 0: none */
};

static int write_memory(void *ctx, const void *bytes, size_t len)
{
    struct memory *m = ctx;
    m->writes++;
    if (m->fail_at != 0 && (int)m->writes >= m->fail_at)
        return ETWATCH_EOS;
    CHECK(m->size + len <= ROOM);
    memcpy(m->bytes + m->size, bytes, len);
    m->size += len;
    return 0;
}

static int rewrite_memory(void *ctx, uint64_t offset, const void *bytes, size_t len)
{
    struct memory *m = ctx;
    m->rewrites++;
    CHECK(offset + len <= m->size);
    memcpy(m->bytes + offset, bytes, len);
    return 0;
}

static struct memory make_memory(void)
{
    struct memory m = {.bytes = ew_calloc(ROOM, 1)};
    CHECK(m.bytes != NULL);
    return m;
}

static struct ew_etl_writer_config config_for(struct memory *m)
{
    return (struct ew_etl_writer_config){.buffer_bytes = BUFFER,
                                         .cpu_count = 4,
                                         .start_raw = 5000,
                                         .ctx = m,
                                         .write = write_memory,
                                         .rewrite = rewrite_memory};
}

static struct ew_etl_writer *begin(const struct ew_etl_writer_config *config)
{
    struct ew_etl_writer *writer;
    CHECK_EQ_INT(ew_etl_writer_new(config, &writer), 0);
    return writer;
}

static struct ew_etl_event switch_event(uint16_t cpu, uint64_t t_raw, const void *payload,
                                        uint32_t size)
{
    return (struct ew_etl_event){.header_type = 17,
                                 .group = 5,
                                 .opcode = 36,
                                 .version = 4,
                                 .cpu = cpu,
                                 .t_raw = t_raw,
                                 .payload = payload,
                                 .payload_size = size};
}

static void check_text16(const uint8_t *bytes, const char *text)
{
    for (size_t i = 0; i <= strlen(text); i++)
        CHECK_EQ_UINT(ew_load_u16(bytes + 2 * i), (unsigned char)text[i]);
}

/* ----------------------------------------------------------------- file header */

TEST(an_empty_recording_is_its_header_buffer)
{
    struct memory m = make_memory();
    struct ew_etl_writer_config config = config_for(&m);
    config.session_name = "Session";
    config.file_name = "C:\\x.etl";
    config.perf_frequency = 1000;
    config.log_file_mode = 0x2000001;
    struct ew_etl_writer *writer = begin(&config);
    CHECK_EQ_INT(ew_etl_writer_finish(writer, 7500, 11, 3), 0);
    CHECK_EQ_UINT(m.size, BUFFER);
    const uint8_t *b = m.bytes, *event = b + HEAD, *info = event + 0x20;
    CHECK_EQ_UINT(ew_load_u32(b), BUFFER);
    CHECK_EQ_UINT(ew_load_u32(b + 0x2C), 3);
    CHECK_EQ_UINT(ew_load_u32(b + 0x30), HEAD + 0x20 + 0x118 + 16 + 18 + 6 /* padding */);
    CHECK_EQ_UINT(ew_load_u16(b + 0x34), 0x21);
    CHECK_EQ_UINT(ew_load_u16(b + 0x36), 4);
    CHECK_EQ_UINT(ew_load_u32(event), 0xC0020002);
    CHECK_EQ_UINT(ew_load_u16(event + 4), 0x20 + 0x118 + 16 + 18);
    CHECK_EQ_UINT(ew_load_u16(event + 6), 0);
    CHECK_EQ_UINT(ew_load_u64(event + 0x10), 5000);
    CHECK_EQ_UINT(ew_load_u32(info), BUFFER);
    CHECK_EQ_UINT(ew_load_u32(info + 4), 0x0501000A);
    CHECK_EQ_UINT(ew_load_u32(info + 8), 19045);
    CHECK_EQ_UINT(ew_load_u32(info + 0x0C), 4);
    CHECK_EQ_UINT(ew_load_u64(info + 0x10), 134116992000000000u + 25000000u);
    CHECK_EQ_UINT(ew_load_u32(info + 0x18), 156250);
    CHECK_EQ_UINT(ew_load_u32(info + 0x20), 0x2000001);
    CHECK_EQ_UINT(ew_load_u32(info + 0x24), 1);
    CHECK_EQ_UINT(ew_load_u32(info + 0x2C), 8);
    CHECK_EQ_UINT(ew_load_u32(info + 0x30), 11);
    CHECK_EQ_UINT(ew_load_u64(info + 0xF8), 134116992000000000u - 50000000u);
    CHECK_EQ_UINT(ew_load_u64(info + 0x100), 1000);
    CHECK_EQ_UINT(ew_load_u64(info + 0x108), 134116992000000000u);
    CHECK_EQ_UINT(ew_load_u32(info + 0x110), 1);
    CHECK_EQ_UINT(ew_load_u32(info + 0x114), 3);
    check_text16(info + 0x118, "Session");
    check_text16(info + 0x118 + 16, "C:\\x.etl");
    for (size_t i = ew_load_u32(b + 0x30); i < BUFFER; i++)
        CHECK_EQ_UINT(b[i], 0xFF);
    ew_etl_writer_free(writer);
    ew_free(m.bytes);
}

TEST(a_32_bit_header_is_eight_bytes_shorter)
{
    struct memory m = make_memory();
    struct ew_etl_writer_config config = config_for(&m);
    config.pointer_size = 4;
    config.os_major = 6;
    config.os_minor = 1;
    config.os_build = 7601;
    config.cpu_bytes = true;
    struct ew_etl_writer *writer = begin(&config);
    CHECK_EQ_INT(ew_etl_writer_finish(writer, 5000, 0, 9), 0);
    const uint8_t *event = m.bytes + HEAD, *info = event + 0x20;
    CHECK_EQ_UINT(ew_load_u32(event), 0xC0010002);
    CHECK_EQ_UINT(ew_load_u32(info + 4), 0x05010106);
    CHECK_EQ_UINT(ew_load_u32(info + 0x2C), 4);
    CHECK_EQ_UINT(ew_load_u64(info + 0xF8), 10000000);
    CHECK_EQ_UINT(ew_load_u64(info + 0x100), 134116992000000000u);
    CHECK_EQ_UINT(ew_load_u32(info + 0x108), 1);
    CHECK_EQ_UINT(ew_load_u32(info + 0x10C), 9);
    check_text16(info + 0x110, "etwatch");
    CHECK_EQ_UINT(ew_load_u16(m.bytes + 0x28), 0x0800);
    CHECK_EQ_UINT(ew_load_u16(m.bytes + 0x34), 0x01);
    ew_etl_writer_free(writer);
    ew_free(m.bytes);
}

TEST(names_beyond_ascii_become_utf16)
{
    struct memory m = make_memory();
    struct ew_etl_writer_config config = config_for(&m);
    config.session_name = "\xc3\xa4\xf0\x9f\x98\x80\xff";
    struct ew_etl_writer *writer = begin(&config);
    static const uint16_t want[] = {0xE4, 0xD83D, 0xDE00, 0xFFFD, 0};
    for (size_t i = 0; i < 5; i++)
        CHECK_EQ_UINT(ew_load_u16(m.bytes + HEAD + 0x20 + 0x118 + 2 * i), want[i]);
    ew_etl_writer_free(writer);
    ew_free(m.bytes);
}

TEST(without_rewrite_the_file_looks_unclosed)
{
    struct memory m = make_memory();
    struct ew_etl_writer_config config = config_for(&m);
    config.rewrite = NULL;
    struct ew_etl_writer *writer = begin(&config);
    CHECK_EQ_INT(ew_etl_writer_finish(writer, 9000, 5, 5), 0);
    CHECK_EQ_UINT(ew_load_u64(m.bytes + HEAD + 0x20 + 0x10), 0);
    CHECK_EQ_UINT(ew_load_u32(m.bytes + HEAD + 0x20 + 0x30), 0);
    ew_etl_writer_free(writer);
    ew_free(m.bytes);
}

/* --------------------------------------------------------------------- buffers */

TEST(each_cpu_fills_its_own_buffers)
{
    struct memory m = make_memory();
    struct ew_etl_writer_config config = config_for(&m);
    struct ew_etl_writer *writer = begin(&config);
    uint8_t payload[24];
    unsigned per_buffer = (BUFFER - HEAD) / 40;
    for (uint32_t i = 0; i < 2 * per_buffer + 1; i++) {
        memset(payload, (int)i, sizeof payload);
        struct ew_etl_event event = switch_event(2, 6000 + i, payload, sizeof payload);
        CHECK_EQ_INT(ew_etl_write(writer, &event), 0);
    }
    struct ew_etl_event other = switch_event(0, 5500, payload, 21);
    CHECK_EQ_INT(ew_etl_write(writer, &other), 0);
    CHECK_EQ_INT(ew_etl_writer_finish(writer, 7000, 0, 0), 0);
    CHECK_EQ_UINT(m.size, 5 * BUFFER);
    CHECK_EQ_UINT(ew_load_u32(m.bytes + HEAD + 0x20 + 0x24), 5);
    static const uint16_t cpus[] = {0, 2, 2, 0, 2};
    static const uint64_t numbers[] = {0, 1, 2, 4, 3}; /* in the order of their first events */
    for (unsigned i = 1; i < 5; i++) {
        const uint8_t *b = m.bytes + (size_t)i * BUFFER;
        CHECK_EQ_UINT(ew_load_u16(b + 0x28), cpus[i]);
        CHECK_EQ_UINT(ew_load_u64(b + 0x18), numbers[i]);
        CHECK_EQ_UINT(ew_load_u16(b + 0x34), 0x20);
        CHECK_EQ_UINT(ew_load_u16(b + 0x36), 0);
        uint32_t used = ew_load_u32(b + 0x30);
        CHECK_EQ_UINT(used, HEAD + 40 * (i < 3 ? per_buffer : 1));
        CHECK_EQ_UINT(b[used], 0xFF);
        CHECK_EQ_UINT(b[BUFFER - 1], 0xFF);
    }
    const uint8_t *second = m.bytes + BUFFER + HEAD + 40;
    CHECK_EQ_UINT(ew_load_u32(second), 0xC0110004);
    CHECK_EQ_UINT(ew_load_u16(second + 4), 40);
    CHECK_EQ_UINT(ew_load_u16(second + 6), 0x0524);
    CHECK_EQ_UINT(ew_load_u64(second + 8), 6001);
    CHECK_EQ_UINT(second[16], 1);
    CHECK_EQ_UINT(ew_load_u64(m.bytes + BUFFER + 0x10), 6000 + per_buffer - 1);
    /* 16 + 21 bytes in a slot of 40. */
    CHECK_EQ_UINT(ew_load_u16(m.bytes + 3 * BUFFER + HEAD + 4), 37);
    ew_etl_writer_free(writer);
    ew_free(m.bytes);
}

TEST(a_buffer_ended_by_hand_has_the_requested_flags)
{
    struct memory m = make_memory();
    struct ew_etl_writer_config config = config_for(&m);
    struct ew_etl_writer *writer = begin(&config);
    struct ew_etl_event event = switch_event(1, 6000, "abcdefgh", 8);
    CHECK_EQ_INT(ew_etl_write(writer, &event), 0);
    CHECK_EQ_INT(ew_etl_writer_end_buffer(writer, 1, 2), 0);
    CHECK_EQ_INT(ew_etl_writer_end_buffer(writer, 1, 0), 0); /* an empty buffer is not written */
    CHECK_EQ_INT(ew_etl_writer_end_buffer(writer, 3, 4), 0);
    CHECK_EQ_INT(ew_etl_writer_end_buffer(writer, 4, 0), ETWATCH_EINVAL);
    CHECK_EQ_UINT(m.size, 3 * BUFFER);
    CHECK_EQ_UINT(ew_load_u16(m.bytes + BUFFER + 0x34), 0x22);
    CHECK_EQ_UINT(ew_load_u16(m.bytes + 2 * BUFFER + 0x34), 0x24);
    CHECK_EQ_UINT(ew_load_u32(m.bytes + 2 * BUFFER + 0x30), HEAD);
    ew_etl_writer_free(writer);
    ew_free(m.bytes);
}

TEST(compressed_buffers_inflate_to_the_plain_ones)
{
    struct memory plain = make_memory(), packed = make_memory();
    struct ew_etl_writer *writers[2];
    for (int i = 0; i < 2; i++) {
        struct ew_etl_writer_config config = config_for(i ? &packed : &plain);
        config.compress = i;
        writers[i] = begin(&config);
        for (uint32_t k = 0; k < 500; k++) {
            uint8_t payload[24] = {(uint8_t)k, (uint8_t)(k / 7), 3, 4};
            struct ew_etl_event event = switch_event((uint16_t)(k % 3), 6000 + k, payload, 24);
            CHECK_EQ_INT(ew_etl_write(writers[i], &event), 0);
        }
        CHECK_EQ_INT(ew_etl_writer_finish(writers[i], 9000, 0, 0), 0);
        ew_etl_writer_free(writers[i]);
    }
    const uint8_t *info = packed.bytes + HEAD + 0x20;
    CHECK_EQ_UINT(ew_load_u32(info + 4), 0x0002000A);
    CHECK_EQ_UINT(ew_load_u32(info + 0x20), 0x04000000);
    CHECK_EQ_UINT(ew_load_u16(packed.bytes + 0x34), 0x21);
    size_t at = ew_load_u32(packed.bytes), count = 0;
    CHECK_EQ_UINT(at, 512);
    for (const uint8_t *p = plain.bytes + BUFFER; p < plain.bytes + plain.size; p += BUFFER) {
        const uint8_t *b = packed.bytes + at;
        uint8_t out[BUFFER];
        size_t written;
        CHECK(at + HEAD <= packed.size && at + ew_load_u32(b) <= packed.size);
        CHECK_EQ_UINT(ew_load_u16(b + 0x34), 0x60);
        CHECK_EQ_UINT(ew_load_u16(b + 0x28), ew_load_u16(p + 0x28));
        CHECK_EQ_UINT(ew_load_u32(b + 0x30), ew_load_u32(p + 0x30));
        CHECK_EQ_UINT(ew_load_u64(b + 0x10), 134116992000000000u + ew_load_u64(p + 0x10) - 5000);
        CHECK_EQ_INT(ew_xpress_inflate(b + HEAD, ew_load_u32(b) - HEAD, out,
                                       ew_load_u32(b + 0x30) - HEAD, &written),
                     0);
        CHECK_EQ_MEM(out, p + HEAD, written);
        at += ew_load_u32(b);
        count++;
    }
    CHECK_EQ_UINT(at, packed.size);
    CHECK_EQ_UINT(ew_load_u32(info + 0x24), count + 1);
    CHECK(packed.size < plain.size / 3);
    ew_free(plain.bytes);
    ew_free(packed.bytes);
}

/* --------------------------------------------------------------- event headers */

static const uint8_t guid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/* One event alone in a buffer; returns its offset. */
static const uint8_t *write_one(struct memory *m, struct ew_etl_event *event)
{
    struct ew_etl_writer_config config = config_for(m);
    struct ew_etl_writer *writer = begin(&config);
    event->t_raw = 0x1122334455667788;
    event->pid = 0xAABB;
    event->tid = 0xCCDD;
    event->payload = "payload";
    event->payload_size = 7;
    CHECK_EQ_INT(ew_etl_write(writer, event), 0);
    CHECK_EQ_INT(ew_etl_writer_finish(writer, event->t_raw, 0, 0), 0);
    ew_etl_writer_free(writer);
    return m->bytes + BUFFER + HEAD;
}

TEST(system_and_compact_headers_have_their_layout)
{
    static const struct {
        uint8_t type;
        unsigned size;
    } rows[] = {{1, 0x20}, {2, 0x20}, {3, 0x18}, {4, 0x18}};
    for (size_t i = 0; i < 4; i++) {
        struct memory m = make_memory();
        struct ew_etl_event event = {.header_type = rows[i].type,
                                     .group = 3,
                                     .opcode = 1,
                                     .version = 4,
                                     .kernel_ticks = 77,
                                     .user_ticks = 88};
        const uint8_t *e = write_one(&m, &event);
        CHECK_EQ_UINT(ew_load_u32(e), 0xC0000004u | (uint32_t)rows[i].type << 16);
        CHECK_EQ_UINT(ew_load_u16(e + 4), rows[i].size + 7);
        CHECK_EQ_UINT(ew_load_u16(e + 6), 0x0301);
        CHECK_EQ_UINT(ew_load_u32(e + 8), 0xCCDD);
        CHECK_EQ_UINT(ew_load_u32(e + 12), 0xAABB);
        CHECK_EQ_UINT(ew_load_u64(e + 16), 0x1122334455667788);
        if (rows[i].size == 0x20) {
            CHECK_EQ_UINT(ew_load_u32(e + 0x18), 77);
            CHECK_EQ_UINT(ew_load_u32(e + 0x1C), 88);
        }
        CHECK_EQ_MEM(e + rows[i].size, "payload", 7);
        ew_free(m.bytes);
    }
}

TEST(classic_headers_have_their_layout)
{
    static const uint8_t types[] = {10, 20, 11, 21};
    for (size_t i = 0; i < 4; i++) {
        struct memory m = make_memory();
        struct ew_etl_event event = {.header_type = types[i],
                                     .opcode = 36,
                                     .level = 5,
                                     .version = 2,
                                     .id = 99,
                                     .provider = guid};
        const uint8_t *e = write_one(&m, &event);
        unsigned size = i < 2 ? 0x30 : 0x48;
        CHECK_EQ_UINT(ew_load_u32(e), 0xC0000000u | (uint32_t)types[i] << 16 | (size + 7));
        CHECK_EQ_UINT(e[4], 36);
        CHECK_EQ_UINT(e[5], 5);
        CHECK_EQ_UINT(ew_load_u16(e + 6), 2);
        CHECK_EQ_UINT(ew_load_u64(e + 0x10), 0x1122334455667788);
        CHECK_EQ_MEM(e + 0x18, guid, 16);
        if (size == 0x48)
            CHECK_EQ_UINT(ew_load_u32(e + 0x30), 99);
        CHECK_EQ_MEM(e + size, "payload", 7);
        ew_free(m.bytes);
    }
}

TEST(event_headers_and_extended_items_have_their_layout)
{
    static const uint8_t item[16] = {16, 0, 0xD, 0, 0, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8};
    for (uint8_t type = 18; type <= 19; type++) {
        struct memory m = make_memory();
        struct ew_etl_event event = {.header_type = type,
                                     .id = 300,
                                     .version = 3,
                                     .channel = 11,
                                     .level = 4,
                                     .opcode = 2,
                                     .task = 500,
                                     .keyword = 0x8000000000000010,
                                     .provider = guid,
                                     .activity = guid,
                                     .extended = item,
                                     .extended_size = sizeof item};
        const uint8_t *e = write_one(&m, &event);
        CHECK_EQ_UINT(ew_load_u32(e), 0xC0000000u | (uint32_t)type << 16 | (0x50 + 16 + 7));
        CHECK_EQ_UINT(ew_load_u16(e + 4), 1);
        CHECK_EQ_UINT(ew_load_u32(e + 8), 0xCCDD);
        CHECK_EQ_UINT(ew_load_u32(e + 12), 0xAABB);
        CHECK_EQ_MEM(e + 0x18, guid, 16);
        CHECK_EQ_UINT(ew_load_u16(e + 0x28), 300);
        CHECK_EQ_UINT(e[0x2A], 3);
        CHECK_EQ_UINT(e[0x2B], 11);
        CHECK_EQ_UINT(e[0x2C], 4);
        CHECK_EQ_UINT(e[0x2D], 2);
        CHECK_EQ_UINT(ew_load_u16(e + 0x2E), 500);
        CHECK_EQ_UINT(ew_load_u64(e + 0x30), 0x8000000000000010);
        CHECK_EQ_MEM(e + 0x40, guid, 16);
        CHECK_EQ_MEM(e + 0x50, item, 16);
        CHECK_EQ_MEM(e + 0x60, "payload", 7);
        ew_free(m.bytes);
    }
}

TEST(messages_have_the_parts_that_their_flags_declare)
{
    static const struct {
        uint32_t flags;
        unsigned size, guid_at, time_at, ids_at;
    } rows[] = {
        {0, 8, 0, 0, 0},      {0x2B, 44, 12, 28, 36}, {0x2F, 32, 0, 16, 24},
        {0x0A, 32, 8, 24, 0}, {0x28, 24, 0, 8, 16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct memory m = make_memory();
        struct ew_etl_event event = {
            .header_type = 15, .id = 41, .provider = guid, .message_flags = rows[i].flags};
        const uint8_t *e = write_one(&m, &event);
        CHECK_EQ_UINT(ew_load_u32(e), 0x90000000u | (rows[i].size + 7));
        CHECK_EQ_UINT(ew_load_u16(e + 4), 41);
        CHECK_EQ_UINT(ew_load_u16(e + 6), rows[i].flags);
        if (rows[i].guid_at)
            CHECK_EQ_MEM(e + rows[i].guid_at, guid, 16);
        if (rows[i].time_at)
            CHECK_EQ_UINT(ew_load_u64(e + rows[i].time_at), 0x1122334455667788);
        if (rows[i].ids_at) {
            CHECK_EQ_UINT(ew_load_u32(e + rows[i].ids_at), 0xCCDD);
            CHECK_EQ_UINT(ew_load_u32(e + rows[i].ids_at + 4), 0xAABB);
        }
        CHECK_EQ_MEM(e + rows[i].size, "payload", 7);
        ew_free(m.bytes);
    }
}

/* ---------------------------------------------------------------------- errors */

TEST(events_that_cannot_be_written_are_refused)
{
    struct memory m = make_memory();
    struct ew_etl_writer_config config = config_for(&m);
    struct ew_etl_writer *writer = begin(&config);
    static uint8_t big[70000];
    struct ew_etl_event event = switch_event(0, 6000, big, 8);
    CHECK_EQ_INT(ew_etl_write(writer, &event), 0);
    event.t_raw = 5999;
    CHECK_EQ_INT(ew_etl_write(writer, &event), ETWATCH_EINVAL);
    event.t_raw = 6000;
    event.cpu = 4;
    CHECK_EQ_INT(ew_etl_write(writer, &event), ETWATCH_EINVAL);
    event.cpu = 0;
    event.header_type = 5;
    CHECK_EQ_INT(ew_etl_write(writer, &event), ETWATCH_EINVAL);
    event.header_type = 17;
    event.payload_size = BUFFER - HEAD - 16 + 1;
    CHECK_EQ_INT(ew_etl_write(writer, &event), ETWATCH_EINVAL);
    event.payload_size = BUFFER - HEAD - 16;
    CHECK_EQ_INT(ew_etl_write(writer, &event), 0);
    event.payload_size = 70000;
    CHECK_EQ_INT(ew_etl_write(writer, &event), ETWATCH_EINVAL);
    ew_etl_writer_free(writer);
    ew_free(m.bytes);
}

TEST(invalid_configurations_are_refused)
{
    struct memory m = make_memory();
    struct ew_etl_writer *writer;
    struct ew_etl_writer_config bad[5];
    for (int i = 0; i < 5; i++)
        bad[i] = config_for(&m);
    bad[0].buffer_bytes = 100;
    bad[1].cpu_count = 5000;
    bad[2].pointer_size = 5;
    bad[3].clock = 4;
    bad[4].write = NULL;
    for (int i = 0; i < 5; i++)
        CHECK_EQ_INT(ew_etl_writer_new(&bad[i], &writer), ETWATCH_EINVAL);
    CHECK_EQ_UINT(m.size, 0);
    ew_free(m.bytes);
}

TEST(a_failed_write_stays_failed)
{
    struct memory m = make_memory();
    struct ew_etl_writer_config config = config_for(&m);
    struct ew_etl_writer *writer = begin(&config);
    struct ew_etl_event event = switch_event(0, 6000, "12345678", 8);
    CHECK_EQ_INT(ew_etl_write(writer, &event), 0);
    m.fail_at = 1;
    CHECK_EQ_INT(ew_etl_writer_end_buffer(writer, 0, 0), ETWATCH_EOS);
    m.fail_at = 0;
    CHECK_EQ_INT(ew_etl_write(writer, &event), ETWATCH_EOS);
    CHECK_EQ_INT(ew_etl_writer_finish(writer, 6000, 0, 0), ETWATCH_EOS);
    CHECK_EQ_UINT(m.rewrites, 0);
    ew_etl_writer_free(writer);
    ew_free(m.bytes);
}

static int write_something(void *ctx)
{
    struct memory *m = ctx;
    struct ew_etl_writer_config config = config_for(m);
    struct ew_etl_writer *writer;
    m->size = 0;
    config.compress = true;
    int rc = ew_etl_writer_new(&config, &writer);
    if (rc < 0)
        return rc;
    struct ew_etl_event event = switch_event(0, 6000, "12345678", 8);
    rc = ew_etl_write(writer, &event);
    if (rc == 0)
        rc = ew_etl_writer_finish(writer, 6000, 0, 0);
    ew_etl_writer_free(writer);
    return rc;
}

TEST(writing_without_memory_is_an_error)
{
    struct memory m = make_memory();
    TORTURE(write_something, &m);
    ew_free(m.bytes);
}
