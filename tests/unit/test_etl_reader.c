/* SPDX-License-Identifier: MIT */
/* Whole recordings: every kind of event, the order, any number of workers. */
#include <stdio.h>

#include "etl_reader_kit.h"

/* --------------------------------------------------------------- event kinds */

static const uint8_t guid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

struct kind_case {
    const char *remark;
    uint8_t header_type, kind, pointer_size;
    bool has_ids, has_guid;
};

static const struct kind_case kinds[] = {
    {"system 32", 1, EW_RECORD_KERNEL, 4, true, false},
    {"system 64", 2, EW_RECORD_KERNEL, 8, true, false},
    {"compact 32", 3, EW_RECORD_KERNEL, 4, true, false},
    {"compact 64", 4, EW_RECORD_KERNEL, 8, true, false},
    {"perfinfo 32", 16, EW_RECORD_KERNEL, 4, false, false},
    {"perfinfo 64", 17, EW_RECORD_KERNEL, 8, false, false},
    {"full 32", 10, EW_RECORD_CLASSIC, 4, true, true},
    {"full 64", 20, EW_RECORD_CLASSIC, 8, true, true},
    {"instance 32", 11, EW_RECORD_CLASSIC, 4, true, true},
    {"instance 64", 21, EW_RECORD_CLASSIC, 8, true, true},
    {"event 32", 18, EW_RECORD_MANIFEST, 4, true, true},
    {"event 64", 19, EW_RECORD_MANIFEST, 8, true, true},
    {"message", 15, EW_RECORD_MESSAGE, 8, true, true},
};
enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

static void put_kinds(struct ew_etl_writer *writer)
{
    for (uint32_t i = 0; i < KIND_COUNT; i++) {
        char payload[16] = {0};
        (void)snprintf(payload, sizeof payload, "payload %u", i);
        struct ew_etl_event event = {.header_type = kinds[i].header_type,
                                     .group = 3,
                                     .opcode = (uint8_t)(i + 1),
                                     .version = 2,
                                     .level = 3,
                                     .t_raw = KIT_START_RAW + 10 * (i + 1),
                                     .pid = 4000 + i,
                                     .tid = 5000 + i,
                                     .provider = guid,
                                     .id = (uint16_t)(600 + i),
                                     .message_flags = 0x2 | 0x8 | 0x20 | 0x80,
                                     .payload = payload,
                                     .payload_size = 11 + i % 3};
        CHECK_EQ_INT(ew_etl_write(writer, &event), 0);
    }
}

static void check_kinds(const struct etl_memory *memory)
{
    struct ew_etl_reader *reader = NULL;
    struct ew_etl_options options = {.workers = 1};
    CHECK_EQ_INT(ew_etl_open_memory(memory->bytes, memory->size, &options, &reader, NULL), 0);
    const struct ew_record *r;
    CHECK_EQ_INT(ew_etl_next(reader, &r), 1 + KIND_COUNT);
    CHECK_EQ_INT(r[0].kind, EW_RECORD_KERNEL);
    CHECK_EQ_UINT(r[0].group, 0);
    CHECK_EQ_UINT(r[0].opcode, 0);
    CHECK_EQ_UINT(r[0].t_ns, 0);
    r++;
    for (uint32_t i = 0; i < KIND_COUNT; i++, r++) {
        const struct kind_case *k = &kinds[i];
        char payload[16] = {0};
        (void)snprintf(payload, sizeof payload, "payload %u", i);
        test_row(k->remark);
        CHECK_EQ_UINT(r->kind, k->kind);
        CHECK_EQ_UINT(r->header_type, k->header_type);
        CHECK_EQ_UINT(r->pointer_size, k->pointer_size);
        CHECK_EQ_UINT(r->t_raw, KIT_START_RAW + 10 * (i + 1));
        CHECK_EQ_UINT(r->t_ns, 1000 * (i + 1));
        CHECK_EQ_UINT(r->pid, k->has_ids ? 4000 + i : EW_NO_ID);
        CHECK_EQ_UINT(r->tid, k->has_ids ? 5000 + i : EW_NO_ID);
        CHECK_EQ_UINT(r->payload_size, 11 + i % 3);
        CHECK_EQ_MEM(r->payload, payload, r->payload_size);
        CHECK_EQ_INT(r->provider != NULL, k->has_guid);
        if (k->has_guid)
            CHECK_EQ_MEM(r->provider, guid, 16);
        if (k->kind == EW_RECORD_MESSAGE) {
            CHECK_EQ_UINT(r->id, 600 + i);
            continue;
        }
        CHECK_EQ_UINT(r->version, 2);
        CHECK_EQ_UINT(r->opcode, i + 1);
        CHECK_EQ_UINT(r->group, 3); /* class or level */
        CHECK_EQ_UINT(r->id, k->kind == EW_RECORD_MANIFEST ? 600 + i : 0);
    }
    CHECK_EQ_INT(ew_etl_next(reader, &r), 0);
    CHECK_EQ_INT(ew_etl_next(reader, &r), 0); /* and the value stays there */
    struct ew_etl_counts counts;
    ew_etl_counts(reader, &counts);
    CHECK_EQ_UINT(counts.records, 1 + KIND_COUNT);
    CHECK_EQ_UINT(counts.bad_buffers + counts.bad_records + counts.late, 0);
    CHECK_EQ_UINT(counts.bytes, memory->size);
    ew_etl_close(reader);
}

TEST(every_kind_of_event_becomes_its_record)
{
    struct etl_memory memory;
    struct ew_etl_writer *writer = kit_writer(&memory, (struct ew_etl_writer_config){0});
    put_kinds(writer);
    kit_finish(writer, KIT_START_RAW + 1000);
    check_kinds(&memory);
    etl_memory_free(&memory);
}

TEST(compressed_buffers_hold_the_same_events)
{
    struct etl_memory memory;
    struct ew_etl_writer *writer =
        kit_writer(&memory, (struct ew_etl_writer_config){.compress = true});
    put_kinds(writer);
    kit_finish(writer, KIT_START_RAW + 1000);
    check_kinds(&memory);
    etl_memory_free(&memory);
}

TEST(files_of_32_bit_systems_are_read_the_same)
{
    struct etl_memory memory;
    struct ew_etl_writer *writer =
        kit_writer(&memory, (struct ew_etl_writer_config){.pointer_size = 4});
    put_kinds(writer);
    kit_finish(writer, KIT_START_RAW + 1000);
    check_kinds(&memory);
    etl_memory_free(&memory);
}

TEST(hardware_counters_before_the_data_are_skipped)
{
    struct etl_memory memory;
    struct ew_etl_writer *writer = kit_writer(&memory, (struct ew_etl_writer_config){0});
    uint64_t payload[5] = {1, 2, 3, 4, 0x1122334455667788};
    struct ew_etl_event event = {.header_type = 17,
                                 .group = 5,
                                 .opcode = 36,
                                 .version = 4,
                                 .t_raw = KIT_START_RAW + 1,
                                 .payload = payload,
                                 .payload_size = sizeof payload};
    CHECK_EQ_INT(ew_etl_write(writer, &event), 0);
    kit_finish(writer, KIT_START_RAW + 2);
    uint8_t *at = kit_buffer(&memory, 1) + KIT_HEADER_SIZE;
    at[1] = 0x83; /* three counters and an index */
    struct seen_list list = kit_read(&memory, 1);
    CHECK_EQ_UINT(list.items[1].payload_size, 8);
    CHECK_EQ_UINT(list.items[1].first, 0x55667788);
    CHECK_EQ_UINT(list.items[1].version, 4);
    CHECK_EQ_UINT(list.counts.bad_records, 0);
    kit_free(&list);
    at[1] = 0x07; /* more than there is */
    list = kit_read(&memory, 1);
    CHECK_EQ_UINT(list.count, 2);
    CHECK_EQ_UINT(list.items[1].payload_size, 0);
    CHECK_EQ_UINT(list.counts.bad_records, 1);
    kit_free(&list);
    etl_memory_free(&memory);
}

TEST(extended_items_are_between_header_and_payload)
{
    struct etl_memory memory;
    struct etl_payload items;
    struct ew_etl_writer *writer = kit_writer(&memory, (struct ew_etl_writer_config){0});
    etl_clear(&items);
    etl_extended(&items, 0xB, "schema", 6, true);
    etl_extended(&items, 0xD, "12345678", 8, false);
    struct ew_etl_event event = {.header_type = 19,
                                 .t_raw = KIT_START_RAW + 1,
                                 .provider = guid,
                                 .extended = items.bytes,
                                 .extended_size = items.size,
                                 .payload = "after",
                                 .payload_size = 5};
    CHECK_EQ_INT(ew_etl_write(writer, &event), 0);
    kit_finish(writer, KIT_START_RAW + 2);
    struct ew_etl_reader *reader = NULL;
    CHECK_EQ_INT(ew_etl_open_memory(memory.bytes, memory.size, NULL, &reader, NULL), 0);
    const struct ew_record *r;
    CHECK_EQ_INT(ew_etl_next(reader, &r), 2);
    CHECK_EQ_UINT(r[1].extended_size, items.size);
    CHECK_EQ_MEM(r[1].header + 0x50, items.bytes, items.size);
    CHECK_EQ_UINT(r[1].payload_size, 5);
    CHECK_EQ_MEM(r[1].payload, "after", 5);
    ew_etl_close(reader);

    /* A chain that does not end inside the event: the readable part is returned and the error is
     * counted. */
    uint8_t *at = kit_buffer(&memory, 1) + KIT_HEADER_SIZE;
    kit_set(at + 0x50 + 16, 2, 0x4000);
    struct seen_list list = kit_read(&memory, 1);
    CHECK_EQ_UINT(list.count, 2);
    CHECK_EQ_UINT(list.items[1].extended_size, 16);
    CHECK_EQ_UINT(list.counts.bad_records, 1);
    kit_free(&list);
    etl_memory_free(&memory);
}

TEST(messages_may_lack_every_optional_field)
{
    struct etl_memory memory;
    struct ew_etl_writer *writer = kit_writer(&memory, (struct ew_etl_writer_config){0});
    kit_put(writer, 0, KIT_START_RAW + 50, 77);
    struct ew_etl_event event = {.header_type = 15,
                                 .t_raw = KIT_START_RAW + 60,
                                 .id = 12,
                                 .message_flags = 0x40,
                                 .payload = "x",
                                 .payload_size = 1};
    CHECK_EQ_INT(ew_etl_write(writer, &event), 0);
    kit_finish(writer, KIT_START_RAW + 70);
    struct seen_list list = kit_read(&memory, 1);
    CHECK_EQ_UINT(list.count, 3);
    CHECK_EQ_UINT(list.items[2].kind, EW_RECORD_MESSAGE);
    CHECK_EQ_UINT(list.items[2].t_ns,
                  5000); /* taken from the previous event: it has none of its own */
    CHECK_EQ_UINT(list.items[2].pointer_size, 4);
    CHECK_EQ_UINT(list.items[2].pid, EW_NO_ID);
    CHECK_EQ_UINT(list.items[2].payload_size, 1);
    kit_free(&list);
    etl_memory_free(&memory);
}

/* -------------------------------------------------------------------- order */

TEST(cpus_are_merged_by_time_for_any_number_of_workers)
{
    static const bool compress[] = {false, true};
    for (int c = 0; c < 2; c++) {
        struct etl_memory memory;
        struct ew_etl_writer_config config = {
            .cpu_count = 8, .buffer_bytes = 8192, .compress = compress[c]};
        kit_make(&memory, config, 60000);
        struct seen_list one = kit_read(&memory, 1);
        CHECK_EQ_UINT(one.count, 60001);
        for (uint32_t i = 0; i < 60000; i++)
            CHECK_EQ_UINT(one.items[i + 1].first, i);
        CHECK_EQ_UINT(one.counts.late + one.counts.bad_buffers + one.counts.bad_records, 0);
        CHECK_EQ_UINT(one.counts.bytes, memory.size);
        CHECK_EQ_INT(one.counts.compressed_buffers > 0, compress[c]);
        for (uint32_t workers = 2; workers <= 5; workers++) {
            struct seen_list more = kit_read(&memory, workers);
            kit_check_same(&one, &more);
            kit_free(&more);
        }
        kit_free(&one);
        etl_memory_free(&memory);
    }
}

TEST(events_of_a_cpu_that_flushes_late_are_still_in_order)
{
    struct etl_memory memory;
    struct ew_etl_writer *writer =
        kit_writer(&memory, (struct ew_etl_writer_config){.cpu_count = 2, .buffer_bytes = 4096});
    kit_put(writer, 1, KIT_START_RAW + 5, 0); /* stays in its buffer until the very end */
    for (uint32_t i = 1; i < 20000; i++)
        kit_put(writer, 0, KIT_START_RAW + 10 * i, i);
    kit_finish(writer, KIT_START_RAW + 1000000);
    struct seen_list list = kit_read(&memory, 1);
    for (uint32_t i = 0; i < 20000; i++)
        CHECK_EQ_UINT(list.items[i + 1].first, i);
    CHECK_EQ_UINT(list.counts.late, 0);
    kit_free(&list);
    etl_memory_free(&memory);
}

TEST(equal_times_are_in_file_order)
{
    struct etl_memory memory;
    struct ew_etl_writer *writer =
        kit_writer(&memory, (struct ew_etl_writer_config){.cpu_count = 3, .buffer_bytes = 4096});
    static const uint16_t flush_order[] = {2, 0, 1};
    for (uint16_t cpu = 0; cpu < 3; cpu++) {
        for (uint32_t i = 0; i < 3; i++)
            kit_put(writer, cpu, KIT_START_RAW + 7, i);
    }
    for (int i = 0; i < 3; i++)
        CHECK_EQ_INT(ew_etl_writer_end_buffer(writer, flush_order[i], 0), 0);
    kit_finish(writer, KIT_START_RAW + 8);
    struct seen_list list = kit_read(&memory, 1);
    for (uint32_t i = 0; i < 9; i++) {
        CHECK_EQ_UINT(list.items[1 + i].cpu, flush_order[i / 3]);
        CHECK_EQ_UINT(list.items[1 + i].first, i % 3);
    }
    kit_free(&list);
    etl_memory_free(&memory);
}

TEST(cpu_numbers_of_one_byte_are_read_without_their_alignment)
{
    struct etl_memory memory;
    struct ew_etl_writer *writer = kit_writer(
        &memory,
        (struct ew_etl_writer_config){
            .cpu_count = 4, .cpu_bytes = true, .os_major = 6, .os_minor = 1, .os_build = 7601});
    kit_put(writer, 3, KIT_START_RAW + 1, 0);
    kit_finish(writer, KIT_START_RAW + 8);
    struct seen_list list = kit_read(&memory, 1);
    CHECK_EQ_UINT(list.items[1].cpu, 3);
    kit_free(&list);
    etl_memory_free(&memory);
}

TEST(events_larger_than_a_part_of_a_buffer_are_delivered_whole)
{
    /* Buffers of 1 MiB are decoded in parts; the events cross every border between parts. */
    struct etl_memory memory;
    struct ew_etl_writer *writer =
        kit_writer(&memory, (struct ew_etl_writer_config){.cpu_count = 2, .buffer_bytes = 1 << 20});
    static uint8_t payload[65000];
    for (uint32_t i = 0; i < 400; i++) {
        uint32_t size = 8 + i * 7919 % (sizeof payload - 8);
        memset(payload, (int)i, sizeof payload);
        kit_set(payload, 4, i);
        struct ew_etl_event event = {.header_type = 17,
                                     .cpu = (uint16_t)(i % 2),
                                     .t_raw = KIT_START_RAW + i,
                                     .payload = payload,
                                     .payload_size = size};
        CHECK_EQ_INT(ew_etl_write(writer, &event), 0);
    }
    kit_finish(writer, KIT_START_RAW + 1000);
    struct seen_list list = kit_read(&memory, 1);
    CHECK_EQ_UINT(list.count, 401);
    for (uint32_t i = 0; i < 400; i++) {
        uint32_t size = 8 + i * 7919 % (sizeof payload - 8);
        memset(payload, (int)i, sizeof payload);
        kit_set(payload, 4, i);
        CHECK_EQ_UINT(list.items[i + 1].first, i);
        CHECK_EQ_UINT(list.items[i + 1].payload_size, size);
        uint8_t header[8] = {0, 0, 17, 0xC0, (uint8_t)(16 + size), (uint8_t)((16 + size) >> 8)};
        CHECK_EQ_UINT(list.items[i + 1].sum, kit_sum(kit_sum(0, header, 8), payload, size));
    }
    CHECK_EQ_UINT(list.counts.bad_records, 0);
    struct seen_list three = kit_read(&memory, 3);
    kit_check_same(&list, &three);
    kit_free(&list);
    kit_free(&three);
    etl_memory_free(&memory);
}

TEST(a_loss_is_reported_before_the_first_event_after_it)
{
    struct etl_memory memory;
    struct ew_etl_writer *writer =
        kit_writer(&memory, (struct ew_etl_writer_config){.cpu_count = 2});
    kit_put(writer, 0, KIT_START_RAW + 1, 0);
    CHECK_EQ_INT(ew_etl_writer_end_buffer(writer, 0, 0), 0);
    kit_put(writer, 1, KIT_START_RAW + 2, 1);
    kit_put(writer, 0, KIT_START_RAW + 3, 2);
    CHECK_EQ_INT(ew_etl_writer_end_buffer(writer, 0, 2 | 4), 0);
    kit_finish(writer, KIT_START_RAW + 8);
    struct seen_list list = kit_read(&memory, 1);
    CHECK_EQ_UINT(list.count, 5);
    CHECK_EQ_UINT(list.items[3].kind, EW_RECORD_LOSS);
    CHECK_EQ_UINT(list.items[3].id, 6);
    CHECK_EQ_UINT(list.items[3].cpu, 0);
    CHECK_EQ_UINT(list.items[3].t_ns, 300);
    CHECK_EQ_UINT(list.items[4].first, 2);
    CHECK_EQ_UINT(list.counts.records, 4); /* it is not a record of the file */
    CHECK_EQ_UINT(list.counts.flag_events_lost, 1);
    CHECK_EQ_UINT(list.counts.flag_buffers_lost, 1);
    kit_free(&list);
    etl_memory_free(&memory);
}

/* ------------------------------------------------------------------- lifetime */

TEST(a_reader_can_restart_and_be_closed_anywhere)
{
    struct etl_memory memory;
    struct ew_etl_writer_config config = {.cpu_count = 4, .buffer_bytes = 4096, .compress = true};
    kit_make(&memory, config, 30000);
    for (uint32_t workers = 1; workers <= 3; workers++) {
        struct ew_etl_options options = {.workers = workers};
        struct ew_etl_reader *reader = NULL;
        CHECK_EQ_INT(ew_etl_open_memory(memory.bytes, memory.size, &options, &reader, NULL), 0);
        const struct ew_record *records;
        for (int i = 0; i < 5; i++)
            CHECK(ew_etl_next(reader, &records) > 0);
        CHECK_EQ_INT(ew_etl_rewind(reader), 0);
        struct seen_list a = kit_drain(reader);
        CHECK_EQ_UINT(a.count, 30001);
        CHECK_EQ_INT(ew_etl_rewind(reader), 0);
        struct seen_list b = kit_drain(reader);
        kit_check_same(&a, &b);
        kit_free(&a);
        kit_free(&b);
        CHECK_EQ_INT(ew_etl_rewind(reader), 0);
        CHECK(ew_etl_next(reader, &records) > 0);
        ew_etl_close(reader);
    }
    etl_memory_free(&memory);
}

struct torture {
    const struct etl_memory *memory;
};

static int read_with_failures(void *ctx)
{
    struct torture *t = ctx;
    struct ew_etl_options options = {.workers = 1};
    struct ew_etl_reader *reader = NULL;
    const struct ew_record *records;
    int rc = ew_etl_open_memory(t->memory->bytes, t->memory->size, &options, &reader, NULL);
    while (rc == 0 && (rc = ew_etl_next(reader, &records)) > 0)
        rc = 0;
    ew_etl_close(reader);
    return rc;
}

TEST(running_out_of_memory_anywhere_is_an_error_and_leaks_nothing)
{
    struct etl_memory memory;
    kit_make(&memory,
             (struct ew_etl_writer_config){.cpu_count = 3, .buffer_bytes = 4096, .compress = true},
             2000);
    struct torture t = {&memory};
    TORTURE(read_with_failures, &t);
    etl_memory_free(&memory);
}

struct walk {
    struct ew_etl_reader *reader;
    int batches;
};

static void walk_on(void *ctx)
{
    struct walk *w = ctx;
    const struct ew_record *records;
    for (int i = 0; i < w->batches; i++)
        CHECK(ew_etl_next(w->reader, &records) > 0);
}

TEST(nothing_is_allocated_once_the_window_is_filled)
{
    struct etl_memory memory;
    kit_make(&memory, (struct ew_etl_writer_config){.cpu_count = 4, .buffer_bytes = 8192}, 100000);
    struct ew_etl_options options = {.workers = 1};
    struct walk w = {NULL, 10};
    CHECK_EQ_INT(ew_etl_open_memory(memory.bytes, memory.size, &options, &w.reader, NULL), 0);
    walk_on(&w);
    w.batches = 60;
    CHECK_EQ_UINT(test_count_allocations(walk_on, &w), 0);
    ew_etl_close(w.reader);
    etl_memory_free(&memory);
}
