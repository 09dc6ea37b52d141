/* SPDX-License-Identifier: MIT */
/*
 * What the writer writes the reader reads back: random events with every kind of header on several
 * CPUs, in all kinds of files, compared record by record.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "etl_kit.h"
#include "scenario.h"
#include "source/etl/reader.h"
#include "test.h"

enum { EVENTS = 3000, MAX_PAYLOAD = 300, START_RAW = 777 };

struct written {
    struct ew_etl_event event;
    uint8_t payload[MAX_PAYLOAD];
    uint8_t provider[16];
    uint8_t extended[48];
};

struct file_kind {
    const char *remark;
    struct ew_etl_writer_config config;
};

static const struct file_kind file_kinds[] = {
    {"plain", {.cpu_count = 4, .buffer_bytes = 8192}},
    {"compressed", {.cpu_count = 4, .buffer_bytes = 8192, .compress = true}},
    {"one CPU", {.cpu_count = 1, .buffer_bytes = 65536}},
    {"many CPUs", {.cpu_count = 300, .buffer_bytes = 4096}},
    {"many CPUs, compressed", {.cpu_count = 64, .buffer_bytes = 16384, .compress = true}},
    {"Windows 7",
     {.cpu_count = 16,
      .buffer_bytes = 8192,
      .cpu_bytes = true,
      .os_major = 6,
      .os_minor = 1,
      .os_build = 7601}},
    {"32 bit", {.cpu_count = 2, .buffer_bytes = 4096, .pointer_size = 4}},
    {"another clock", {.cpu_count = 2, .buffer_bytes = 4096, .perf_frequency = 2597891}},
    {"large buffers", {.cpu_count = 3, .buffer_bytes = 1 << 20}},
};

static void make_event(struct written *w, uint64_t *random, uint16_t cpu, uint64_t t_raw)
{
    static const uint8_t types[] = {1, 2, 3, 4, 10, 20, 11, 21, 16, 17, 18, 19, 15};
    uint64_t r = etl_random(random);
    uint8_t type = types[r % sizeof types];
    w->event = (struct ew_etl_event){.header_type = type,
                                     .group = (uint8_t)(0x40 + r / 16 % 64),
                                     .opcode = (uint8_t)(r >> 20),
                                     .version = (uint8_t)(r >> 28 & 7),
                                     .level = (uint8_t)(r >> 32 & 7),
                                     .cpu = cpu,
                                     .t_raw = t_raw,
                                     .pid = (uint32_t)(r >> 40),
                                     .tid = (uint32_t)(r >> 36),
                                     .id = (uint16_t)(r >> 12),
                                     .provider = w->provider,
                                     .message_flags = 0x2A,
                                     .payload = w->payload,
                                     .payload_size = (uint32_t)(r >> 50) % MAX_PAYLOAD};
    for (size_t i = 0; i < 16; i++)
        w->provider[i] = (uint8_t)(r >> i);
    for (uint32_t i = 0; i < w->event.payload_size; i++)
        w->payload[i] = (uint8_t)(i % 3 ? i : etl_random(random));
    if ((type == 18 || type == 19) && r % 2) {
        struct etl_payload items = {.size = 0};
        etl_extended(&items, 0xD, "12345678", 8, true);
        etl_extended(&items, 0x10, "abc", 3, false);
        memcpy(w->extended, items.bytes, items.size);
        w->event.extended = w->extended;
        w->event.extended_size = items.size;
    }
}

static struct written *write_events(const struct file_kind *kind, struct etl_memory *memory)
{
    struct written *all = ew_calloc(EVENTS, sizeof *all);
    struct ew_etl_writer_config config = kind->config;
    struct ew_etl_writer *writer;
    uint64_t random = 42, t_raw = START_RAW;
    CHECK(all != NULL);
    config.start_raw = START_RAW;
    config.ctx = memory;
    config.write = etl_memory_write;
    config.rewrite = etl_memory_rewrite;
    CHECK_EQ_INT(ew_etl_writer_new(&config, &writer), 0);
    for (size_t i = 0; i < EVENTS; i++) {
        t_raw += 1 + etl_random(&random) % 5000;
        make_event(&all[i], &random, (uint16_t)(etl_random(&random) % config.cpu_count), t_raw);
        CHECK_EQ_INT(ew_etl_write(writer, &all[i].event), 0);
    }
    CHECK_EQ_INT(ew_etl_writer_finish(writer, t_raw, 3, 4), 0);
    ew_etl_writer_free(writer);
    return all;
}

static void check_record(const struct ew_record *r, const struct ew_etl_event *e)
{
    bool has_ids = e->header_type != 16 && e->header_type != 17;
    bool is_kernel = e->header_type <= 4 || !has_ids;
    CHECK_EQ_UINT(r->t_raw, e->t_raw);
    CHECK_EQ_UINT(r->header_type, e->header_type);
    CHECK_EQ_UINT(r->cpu, e->cpu);
    CHECK_EQ_UINT(r->pid, has_ids ? e->pid : EW_NO_ID);
    CHECK_EQ_UINT(r->tid, has_ids ? e->tid : EW_NO_ID);
    CHECK_EQ_UINT(r->payload_size, e->payload_size);
    CHECK_EQ_MEM(r->payload, e->payload, e->payload_size);
    CHECK((r->provider == NULL) == is_kernel);
    if (!is_kernel)
        CHECK_EQ_MEM(r->provider, e->provider, 16);
    if (is_kernel)
        CHECK_EQ_UINT(r->group, e->group);
    if (e->header_type != 15) {
        CHECK_EQ_UINT(r->opcode, e->opcode);
        CHECK_EQ_UINT(r->version, e->version);
    }
    if (e->header_type == 15 || e->header_type == 18 || e->header_type == 19)
        CHECK_EQ_UINT(r->id, e->id);
    CHECK_EQ_UINT(r->extended_size, e->extended_size);
    if (e->extended_size)
        CHECK_EQ_MEM(r->header + 0x50, e->extended, e->extended_size);
}

static void check_file_info(const struct ew_etl_reader *reader, const struct file_kind *kind)
{
    const struct ew_etl_file_info *info = ew_etl_file_info(reader, 0);
    CHECK_EQ_UINT(info->cpu_count, kind->config.cpu_count);
    CHECK_EQ_UINT(info->buffer_bytes, kind->config.buffer_bytes);
    CHECK_EQ_UINT(info->events_lost, 3);
    CHECK_EQ_UINT(info->buffers_lost, 4);
    CHECK_EQ_UINT(info->header_raw, START_RAW);
    CHECK_EQ_UINT(info->compressed, kind->config.compress);
    CHECK_EQ_STR(info->session_name, "etwatch");
    CHECK(info->end_filetime > info->start_filetime);
}

static void check_kind(const struct file_kind *kind, uint32_t workers)
{
    struct etl_memory memory = {0};
    struct written *all = write_events(kind, &memory);
    struct ew_etl_options options = {.workers = workers};
    struct ew_etl_reader *reader;
    struct ew_error error = {0};
    const struct ew_record *records;
    struct ew_etl_counts counts;
    size_t next = 0;
    CHECK_EQ_INT(ew_etl_open_memory(memory.bytes, memory.size, &options, &reader, &error), 0);
    check_file_info(reader, kind);
    for (int n; (n = ew_etl_next(reader, &records)) != 0;) {
        CHECK(n > 0);
        for (int i = 0; i < n; i++) {
            if (next == 0 && records[i].group == 0 && records[i].header_type <= 2)
                continue; /* the header event */
            CHECK(next < EVENTS);
            check_record(&records[i], &all[next].event);
            next++;
        }
    }
    CHECK_EQ_UINT(next, EVENTS);
    ew_etl_counts(reader, &counts);
    CHECK_EQ_UINT(counts.bad_buffers + counts.bad_records + counts.late, 0);
    CHECK_EQ_UINT(counts.records, EVENTS + 1);
    ew_etl_close(reader);
    etl_memory_free(&memory);
    ew_free(all);
}

TEST(every_kind_of_file_reads_back_as_it_was_written)
{
    for (size_t i = 0; i < sizeof file_kinds / sizeof file_kinds[0]; i++) {
        for (uint32_t workers = 1; workers <= 2; workers++) {
            char row[64];
            snprintf(row, sizeof row, "%s, %u workers", file_kinds[i].remark, (unsigned)workers);
            test_row(row);
            check_kind(&file_kinds[i], workers);
        }
    }
}
