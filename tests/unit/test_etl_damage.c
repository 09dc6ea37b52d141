/* SPDX-License-Identifier: MIT */
/*
 * Damaged recordings: the readable part is read, the rest is counted with the offset where the
 * damage begins.
 */
#include <stdio.h>

#include "etl_reader_kit.h"
#include "source/etl/merge.h"

enum { BUFFER = 4096, CPUS = 3, EVENTS = 600 };

/* 600 events of 40 bytes: about 6 buffers of 4 KiB, on three CPUs. */
static void make(struct etl_memory *memory)
{
    kit_make(memory, (struct ew_etl_writer_config){.cpu_count = CPUS, .buffer_bytes = BUFFER},
             EVENTS);
}

static int open_rc(const void *bytes, size_t size, struct ew_error *error)
{
    struct ew_etl_reader *reader = NULL;
    int rc = ew_etl_open_memory(bytes, size, NULL, &reader, error);
    ew_etl_close(reader);
    return rc;
}

/* ------------------------------------------------------------------ not a recording */

TEST(a_file_that_is_not_a_recording_is_refused_with_the_offset)
{
    static const char text[] = "This is not a recording, but it is long enough to be one of the "
                               "shortest that there could be, if it only were one.";
    static const uint8_t zeros[4096];
    struct ew_error error;
    CHECK_EQ_INT(open_rc("", 0, &error), ETWATCH_ETRUNC);
    CHECK_CONTAINS(error.message, "empty");
    CHECK_EQ_INT(open_rc(text, 71, &error), ETWATCH_ETRUNC);
    CHECK_EQ_UINT(error.offset, 71);
    CHECK_EQ_INT(open_rc(text, sizeof text, &error), ETWATCH_EFORMAT);
    CHECK_EQ_UINT(error.offset, 0);
    CHECK_CONTAINS(error.message, "54 68 69 73"); /* "This" */
    CHECK_EQ_INT(open_rc(zeros, sizeof zeros, &error), ETWATCH_EFORMAT);
    CHECK_EQ_UINT(error.offset, 0);
}

TEST(a_first_buffer_without_the_header_event_is_refused)
{
    struct etl_memory memory;
    struct ew_error error;
    make(&memory);
    memory.bytes[KIT_HEADER_SIZE + 6] = 1; /* not the header event */
    CHECK_EQ_INT(open_rc(memory.bytes, memory.size, &error), ETWATCH_EFORMAT);
    CHECK_EQ_UINT(error.offset, KIT_HEADER_SIZE);
    memory.bytes[KIT_HEADER_SIZE + 6] = 0;
    kit_set(memory.bytes + KIT_HEADER_SIZE + 4, 2, 0x100); /* too short for its layout */
    CHECK_EQ_INT(open_rc(memory.bytes, memory.size, &error), ETWATCH_EFORMAT);
    CHECK_CONTAINS(error.message, "too short");
    etl_memory_free(&memory);
}

TEST(a_backup_of_a_real_time_session_needs_no_header_event)
{
    struct etl_memory memory;
    make(&memory);
    struct etl_memory rest = {memory.bytes + BUFFER, memory.size - BUFFER, 0};
    for (size_t i = 0; kit_buffer(&rest, i); i++) {
        uint8_t *b = kit_buffer(&rest, i);
        kit_set(b + 0x20, 8, UINT64_C(10000000) << 3 | 1);
        b[0x34] |= 0x10;
        kit_set(b + 0x38, 8, 133700000000000000);
        kit_set(b + 0x40, 8, KIT_START_RAW - 50);
    }
    struct seen_list list = kit_read(&rest, 1);
    CHECK_EQ_UINT(list.count, EVENTS);
    CHECK_EQ_UINT(list.items[0].t_ns, 100 * (list.items[0].t_raw - KIT_START_RAW + 50));
    kit_free(&list);
    etl_memory_free(&memory);
}

/* -------------------------------------------------------------------- cut files */

TEST(a_file_truncated_anywhere_gives_the_events_it_still_has)
{
    struct etl_memory memory;
    uint64_t before = 0;
    make(&memory);
    for (size_t size = 0; size <= memory.size; size += size < 600 ? 1 : 37) {
        struct ew_etl_reader *reader = NULL;
        struct ew_etl_options options = {.workers = 1};
        struct ew_error error = {0};
        int rc = ew_etl_open_memory(memory.bytes, size, &options, &reader, &error);
        if (rc < 0) {
            CHECK_EQ_INT(rc, ETWATCH_ETRUNC);
            CHECK(size < 600);
            continue;
        }
        struct seen_list list = kit_drain(reader);
        CHECK_EQ_INT(list.status, 0);
        CHECK_EQ_UINT(list.counts.bytes, size);
        CHECK(list.counts.records >= before);
        before = list.counts.records;
        kit_check_order(&list);
        kit_free(&list);
        ew_etl_close(reader);
    }
    struct seen_list all = kit_read(&memory, 1);
    CHECK_EQ_UINT(all.counts.records, 1 + EVENTS);
    CHECK(before + 30 > all.counts.records);
    kit_free(&all);
    etl_memory_free(&memory);
}

TEST(a_file_that_ends_inside_an_event_is_reported)
{
    struct etl_memory memory;
    make(&memory);
    memory.size = 2 * BUFFER + KIT_HEADER_SIZE + 40 * 10 + 20;
    struct seen_list list = kit_read(&memory, 1);
    CHECK_EQ_UINT(list.counts.bad_records, 1);
    CHECK_EQ_UINT(list.counts.bad_buffers, 1); /* the header counts more buffers */
    CHECK_EQ_UINT(list.counts.first_bad_offset, memory.size);
    CHECK_CONTAINS(list.counts.first_bad, "end");
    kit_free(&list);
    etl_memory_free(&memory);
}

TEST(a_file_that_was_never_closed_is_read_to_its_end)
{
    struct etl_memory memory = {0};
    struct ew_etl_writer *writer = NULL;
    struct ew_etl_writer_config config = {.cpu_count = 1,
                                          .buffer_bytes = BUFFER,
                                          .start_raw = KIT_START_RAW,
                                          .ctx = &memory,
                                          .write = etl_memory_write};
    CHECK_EQ_INT(ew_etl_writer_new(&config, &writer), 0);
    for (uint32_t i = 0; i < EVENTS; i++)
        kit_put(writer, 0, KIT_START_RAW + i, i);
    kit_finish(writer, KIT_START_RAW + EVENTS);
    struct seen_list list = kit_read(&memory, 1);
    CHECK_EQ_UINT(list.counts.records, 1 + EVENTS);
    kit_free(&list);
    struct ew_etl_reader *reader = NULL;
    CHECK_EQ_INT(ew_etl_open_memory(memory.bytes, memory.size, NULL, &reader, NULL), 0);
    CHECK_EQ_INT(ew_etl_file_info(reader, 0)->end_filetime, 0);
    CHECK(ew_etl_file_info(reader, 0)->buffers_written < 6);
    ew_etl_close(reader);
    etl_memory_free(&memory);
}

TEST(zeros_before_a_buffer_are_damage)
{
    struct etl_memory memory;
    make(&memory);
    struct seen_list whole = kit_read(&memory, 1);
    uint8_t *b = kit_buffer(&memory, 3);
    uint64_t lost = (ew_load_u32(b + 0x30) - KIT_HEADER_SIZE) / 40;
    memset(b, 0, BUFFER);
    struct seen_list list = kit_read(&memory, 1);
    CHECK_EQ_UINT(list.counts.records, whole.counts.records - lost);
    CHECK_EQ_UINT(list.counts.bad_buffers, 1);
    CHECK_EQ_UINT(list.counts.bad_records, 0);
    CHECK_CONTAINS(list.counts.first_bad, "zeros");
    CHECK_EQ_UINT(list.counts.bytes, memory.size);
    kit_free(&list);
    kit_free(&whole);
    etl_memory_free(&memory);
}

/* ---------------------------------------------------------------- wrong values */

TEST(an_impossible_buffer_header_is_skipped)
{
    static const struct {
        const char *remark;
        unsigned at, size;
        uint64_t value;
        const char *what;
    } rows[] = {
        {"a size of 0", 0, 4, 0, "shorter"},
        {"a size below its header", 0, 4, 71, "shorter"},
        {"a size beyond reason", 0, 4, 0x7FFFFFFF, "16 MiB"},
        {"a fill level of 0", 0x30, 4, 0, "filled"},
        {"a fill level below its header", 0x30, 4, 71, "filled"},
    };
    struct etl_memory memory;
    make(&memory);
    struct seen_list whole = kit_read(&memory, 1);
    uint8_t saved[KIT_HEADER_SIZE], *b = kit_buffer(&memory, 2);
    memcpy(saved, b, sizeof saved);
    uint64_t lost = (ew_load_u32(b + 0x30) - KIT_HEADER_SIZE) / 40;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].remark);
        memcpy(b, saved, sizeof saved);
        kit_set(b + rows[i].at, rows[i].size, rows[i].value);
        struct seen_list list = kit_read(&memory, 1);
        CHECK_EQ_UINT(list.counts.bad_buffers, 1);
        CHECK_EQ_UINT(list.counts.bad_bytes, BUFFER);
        CHECK_EQ_UINT(list.counts.first_bad_offset, 2 * BUFFER);
        CHECK_CONTAINS(list.counts.first_bad, rows[i].what);
        CHECK_EQ_UINT(list.counts.records, whole.counts.records - lost);
        kit_free(&list);
    }
    kit_free(&whole);
    etl_memory_free(&memory);
}

TEST(a_buffer_with_too_large_a_fill_level_ends_at_its_marker)
{
    struct etl_memory memory;
    make(&memory);
    struct seen_list whole = kit_read(&memory, 1);
    for (size_t i = 1; kit_buffer(&memory, i); i++)
        kit_set(kit_buffer(&memory, i) + 0x30, 4, 0xFFFFFFF0);
    struct seen_list list = kit_read(&memory, 1);
    CHECK_EQ_UINT(list.counts.records, whole.counts.records);
    CHECK_EQ_UINT(list.counts.bad_buffers + list.counts.bad_records, 0);
    kit_free(&list);
    kit_free(&whole);
    etl_memory_free(&memory);
}

TEST(overlapping_and_overlong_sizes_neither_loop_nor_crash)
{
    struct etl_memory memory;
    make(&memory);
    uint8_t *b = kit_buffer(&memory, 1);
    for (uint32_t size = 72; size < 3 * BUFFER; size += 40) {
        kit_set(b, 4, size);
        struct seen_list list = kit_read(&memory, 1);
        CHECK_EQ_UINT(list.counts.bytes, memory.size);
        kit_check_order(&list);
        kit_free(&list);
    }
    etl_memory_free(&memory);
}

TEST(an_event_with_a_wrong_size_ends_only_its_own_buffer)
{
    static const struct {
        const char *remark;
        unsigned at, size;
        uint64_t value;
        const char *what;
    } rows[] = {
        {"a size of 0", 4, 2, 0, "shorter than its header"},
        {"a size below its header", 4, 2, 15, "shorter than its header"},
        {"a size beyond the buffer", 4, 2, 0xFFFF, "cut short"},
        {"an unknown type", 2, 1, 99, "unknown type"},
        {"an obsolete type", 2, 1, 12, "unknown type"},
        {"no marker", 3, 1, 0x40, "no event"},
        {"zeros", 0, 4, 0, "no event"},
        {"a message below its header", 3, 1, 0x90, "message"},
    };
    struct etl_memory memory;
    make(&memory);
    struct seen_list whole = kit_read(&memory, 1);
    uint8_t *b = kit_buffer(&memory, 2), saved[16];
    uint32_t filled = ew_load_u32(b + 0x30);
    uint8_t *event = b + KIT_HEADER_SIZE + 40 * 5;
    memcpy(saved, event, sizeof saved);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].remark);
        memcpy(event, saved, sizeof saved);
        kit_set(event + rows[i].at, rows[i].size, rows[i].value);
        struct seen_list list = kit_read(&memory, 1);
        CHECK_EQ_UINT(list.counts.bad_records, 1);
        CHECK_EQ_UINT(list.counts.bad_buffers, 0);
        CHECK_EQ_UINT(list.counts.first_bad_offset, (uint64_t)(event - memory.bytes));
        CHECK_EQ_UINT(list.counts.bad_bytes, filled - KIT_HEADER_SIZE - 40 * 5);
        CHECK_CONTAINS(list.counts.first_bad, rows[i].what);
        CHECK_EQ_UINT(list.counts.records,
                      whole.counts.records - (filled - KIT_HEADER_SIZE - 40 * 5) / 40);
        kit_free(&list);
    }
    kit_free(&whole);
    etl_memory_free(&memory);
}

TEST(the_lowest_offset_of_damage_is_reported)
{
    struct etl_memory memory;
    make(&memory);
    kit_set(kit_buffer(&memory, 4), 4, 3);
    kit_set(kit_buffer(&memory, 2) + KIT_HEADER_SIZE, 4, 0);
    struct seen_list list = kit_read(&memory, 1);
    CHECK_EQ_UINT(list.counts.bad_records, 1);
    CHECK_EQ_UINT(list.counts.bad_buffers, 1);
    CHECK_EQ_UINT(list.counts.first_bad_offset, 2 * BUFFER + KIT_HEADER_SIZE);
    CHECK_EQ_UINT(list.counts.first_bad_file, 0);
    kit_free(&list);
    etl_memory_free(&memory);
}

TEST(damage_in_compressed_bytes_is_counted_and_the_rest_is_read)
{
    struct etl_memory memory;
    kit_make(
        &memory,
        (struct ew_etl_writer_config){.cpu_count = CPUS, .buffer_bytes = BUFFER, .compress = true},
        EVENTS);
    struct seen_list whole = kit_read(&memory, 1);
    uint8_t *b = kit_buffer(&memory, 3);
    uint32_t size = ew_load_u32(b);
    memset(b + KIT_HEADER_SIZE + 100, 0xFF, size - KIT_HEADER_SIZE - 100);
    struct seen_list list = kit_read(&memory, 1);
    CHECK_EQ_UINT(list.counts.bad_buffers + list.counts.bad_records > 0, 1);
    CHECK_EQ_UINT(list.counts.first_bad_offset, (uint64_t)(b - memory.bytes));
    CHECK(list.counts.records < whole.counts.records);
    CHECK(list.counts.records > whole.counts.records * 2 / 3);
    kit_check_order(&list);
    struct seen_list two = kit_read(&memory, 2);
    kit_check_same(&list, &two);
    kit_free(&two);
    kit_free(&list);

    kit_set(b + 0x30, 4, 16 * 1048576 + 1); /* more than any buffer decompresses to */
    list = kit_read(&memory, 1);
    CHECK_EQ_UINT(list.counts.bad_buffers, 1);
    CHECK_CONTAINS(list.counts.first_bad, "inflate");
    kit_free(&list);
    kit_free(&whole);
    etl_memory_free(&memory);
}

TEST(the_next_buffer_of_a_compressed_file_is_found_after_a_broken_header)
{
    struct etl_memory memory;
    kit_make(
        &memory,
        (struct ew_etl_writer_config){.cpu_count = CPUS, .buffer_bytes = BUFFER, .compress = true},
        EVENTS);
    struct seen_list whole = kit_read(&memory, 1);
    static const uint32_t lies[] = {0, 3, 71, 0x7FFFFFFF};
    uint8_t *b = kit_buffer(&memory, 2), *next = kit_buffer(&memory, 3);
    uint64_t lost = (ew_load_u32(b + 0x30) - KIT_HEADER_SIZE) / 40;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        kit_set(b, 4, lies[i]);
        struct seen_list list = kit_read(&memory, 1);
        CHECK_EQ_UINT(list.counts.bad_buffers, 1);
        CHECK_EQ_UINT(list.counts.bad_bytes, (uint64_t)(next - b));
        CHECK_EQ_UINT(list.counts.first_bad_offset, (uint64_t)(b - memory.bytes));
        CHECK_EQ_UINT(list.counts.records, whole.counts.records - lost);
        CHECK_EQ_UINT(list.counts.bytes, memory.size);
        kit_free(&list);
    }
    kit_free(&whole);
    etl_memory_free(&memory);
}

/* ------------------------------------------------------------------------ order */

TEST(a_circular_file_begins_with_its_oldest_buffer_of_each_cpu)
{
    struct etl_memory memory;
    make(&memory);
    struct seen_list whole = kit_read(&memory, 1);
    /* The header stays in place; the buffers after it rotate by three. */
    size_t count = memory.size / BUFFER - 1, by = 3;
    uint8_t *turned = malloc(memory.size);
    CHECK(turned != NULL && count > by);
    memcpy(turned, memory.bytes, BUFFER);
    for (size_t i = 0; i < count; i++)
        memcpy(turned + BUFFER * (1 + (i + by) % count), memory.bytes + BUFFER * (1 + i), BUFFER);
    memcpy(memory.bytes, turned, memory.size);
    free(turned);
    struct seen_list list = kit_read(&memory, 1);
    CHECK_EQ_UINT(list.count, whole.count);
    CHECK_EQ_UINT(list.counts.late, 0);
    for (size_t i = 0; i < list.count; i++)
        CHECK_EQ_UINT(list.items[i].first, whole.items[i].first);
    kit_free(&list);
    kit_free(&whole);
    etl_memory_free(&memory);
}

TEST(equal_times_at_the_seam_of_a_circular_file_stay_in_the_order_of_their_cpu)
{
    struct etl_memory memory;
    struct ew_etl_writer *writer =
        kit_writer(&memory, (struct ew_etl_writer_config){.buffer_bytes = BUFFER});
    kit_put(writer, 0, KIT_START_RAW + 1, 0);
    kit_put(writer, 0, KIT_START_RAW + 9, 1);
    CHECK_EQ_INT(ew_etl_writer_end_buffer(writer, 0, 0), 0);
    kit_put(writer, 0, KIT_START_RAW + 9, 2);
    kit_put(writer, 0, KIT_START_RAW + 20, 3);
    kit_finish(writer, KIT_START_RAW + 30);
    uint8_t swap[BUFFER];
    memcpy(swap, memory.bytes + BUFFER, BUFFER);
    memcpy(memory.bytes + BUFFER, memory.bytes + 2 * BUFFER, BUFFER);
    memcpy(memory.bytes + 2 * BUFFER, swap, BUFFER);
    struct seen_list list = kit_read(&memory, 1);
    CHECK_EQ_UINT(list.count, 5);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_EQ_UINT(list.items[1 + i].first, i);
    kit_free(&list);
    etl_memory_free(&memory);
}

TEST(a_time_slightly_out_of_order_is_sorted)
{
    struct etl_memory memory;
    make(&memory);
    struct seen_list whole = kit_read(&memory, 1);
    /* Event 200 gets the time of event 195. */
    const struct seen *s = &whole.items[1 + 200];
    uint8_t *event = kit_find(&memory, 200, s->cpu);
    kit_set(event + 8, 8, whole.items[1 + 195].t_raw);
    struct seen_list list = kit_read(&memory, 1);
    CHECK_EQ_UINT(list.counts.late, 0);
    CHECK_EQ_UINT(list.items[1 + 196].first, 200);
    CHECK_EQ_UINT(list.items[1 + 196].t_ns, list.items[1 + 195].t_ns);
    CHECK_EQ_UINT(list.items[1 + 200].first, 199);
    kit_check_order(&list);
    kit_free(&list);
    kit_free(&whole);
    etl_memory_free(&memory);
}

TEST(one_damaged_time_affects_only_its_own_event)
{
    static const struct {
        const char *remark;
        uint64_t raw;
    } rows[] = {
        {"far in the future", KIT_START_RAW + UINT64_C(1000000000000000)},
        {"beyond the range of any clock", UINT64_C(0x7FFFFFFFFFFFFFFF)},
        {"at the beginning", KIT_START_RAW},
        {"before the beginning", 1},
        {"negative", UINT64_MAX - 5},
    };
    struct etl_memory memory;
    make(&memory);
    struct seen_list whole = kit_read(&memory, 1);
    for (uint32_t number = 100; number < 500; number += 200) {
        const struct seen *s = &whole.items[1 + number];
        uint8_t *event = kit_find(&memory, number, s->cpu);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            test_row(rows[i].remark);
            kit_set(event + 8, 8, rows[i].raw);
            struct seen_list list = kit_read(&memory, 1);
            CHECK_EQ_UINT(list.count, whole.count);
            CHECK_EQ_UINT(list.counts.late, 1);
            kit_check_order(&list);
            /* It keeps its own time and its position within its CPU. */
            size_t moved = 0;
            for (size_t j = 0; j < list.count; j++) {
                if (list.items[j].first == number && list.items[j].opcode == 36)
                    CHECK_EQ_UINT(list.items[j].t_raw, rows[i].raw);
                else if (list.items[j].t_ns != whole.items[j].t_ns)
                    moved++;
            }
            CHECK(moved < 20);
            kit_free(&list);
        }
        kit_set(event + 8, 8, s->t_raw);
    }
    kit_free(&whole);
    etl_memory_free(&memory);
}

/* ----------------------------------------------------------------------- memory */

/* Reads with a small index, directly from the merge. */
static uint64_t count_with_index(struct etl_memory *memory, uint32_t entry_max, uint64_t *ret_late)
{
    struct ew_etl_file *file = calloc(1, sizeof *file);
    struct ew_etl_merge *merge = calloc(1, sizeof *merge);
    struct ew_record *records = calloc(64, sizeof *records);
    struct ew_etl_batch batch = {.records = records, .capacity = 64, .retired_max = 1 << 20};
    uint64_t count = 0, last_ns = 0;
    CHECK(file && merge && records);
    CHECK_EQ_INT(ew_etl_file_open(file, NULL, memory->bytes, memory->size, NULL), 0);
    CHECK_EQ_INT(ew_etl_merge_init(merge, file, 1, 1 << 20, 0, entry_max), 0);
    do {
        ew_etl_merge_fill(merge, &batch);
        CHECK_EQ_INT(batch.status, 0);
        for (size_t i = 0; i < batch.count; i++) {
            CHECK(records[i].t_ns >= last_ns);
            last_ns = records[i].t_ns;
        }
        count += batch.count;
        CHECK(merge->entry_count <= entry_max);
    } while (batch.count);
    CHECK_EQ_UINT(batch.counts.records, count);
    CHECK_EQ_UINT(batch.counts.bytes, memory->size);
    *ret_late = batch.counts.late;
    ew_etl_merge_release(merge, &batch);
    ew_etl_merge_done(merge);
    ew_etl_file_close(file);
    free(records);
    free(merge);
    free(file);
    return count;
}

TEST(with_a_full_index_order_is_lost_but_no_record)
{
    struct etl_memory memory;
    uint64_t late;
    kit_make(&memory, (struct ew_etl_writer_config){.cpu_count = 8, .buffer_bytes = BUFFER}, 20000);
    CHECK_EQ_UINT(count_with_index(&memory, 1000, &late), 20001);
    CHECK_EQ_UINT(late, 0);
    CHECK_EQ_UINT(count_with_index(&memory, 32, &late), 20001);
    CHECK_EQ_UINT(late, 0); /* far enough ahead for equally busy CPUs */
    CHECK_EQ_UINT(count_with_index(&memory, 1, &late), 20001);
    CHECK(late > 0);
    etl_memory_free(&memory);
}

TEST(a_batch_that_keeps_much_memory_alive_ends_early)
{
    struct etl_memory memory;
    struct ew_etl_writer *writer =
        kit_writer(&memory, (struct ew_etl_writer_config){.buffer_bytes = 65536});
    static uint8_t payload[60000];
    for (uint32_t i = 0; i < 200; i++) {
        struct ew_etl_event event = {.header_type = 17,
                                     .t_raw = KIT_START_RAW + i,
                                     .payload = payload,
                                     .payload_size = sizeof payload};
        CHECK_EQ_INT(ew_etl_write(writer, &event), 0);
    }
    kit_finish(writer, KIT_START_RAW + 1000);
    struct ew_etl_options options = {.workers = 1, .window_bytes = 1 << 20};
    struct ew_etl_reader *reader = NULL;
    CHECK_EQ_INT(ew_etl_open_memory(memory.bytes, memory.size, &options, &reader, NULL), 0);
    const struct ew_record *records;
    int got, total = 0;
    while ((got = ew_etl_next(reader, &records)) > 0) {
        CHECK(got < 16); /* 12 MB of events, half a MiB of them at a time */
        total += got;
    }
    CHECK_EQ_INT(total, 201);
    ew_etl_close(reader);
    etl_memory_free(&memory);
}
