/* SPDX-License-Identifier: MIT */
/* The clock of a recording, its own description, and several files at once. */
#include <stdio.h>

#include "etl_reader_kit.h"
#include "source/etl/clock.h"
#include "system.h"

/* -------------------------------------------------------------------- clock */

TEST(ticks_become_ns_without_rounding_errors)
{
    static const struct {
        const char *remark;
        uint32_t kind;
        uint64_t hz;
        uint32_t mhz;
        uint64_t ticks, ns;
    } rows[] = {
        {"10 MHz", 1, 10000000, 0, 123456789, 12345678900},
        {"a frequency that does not divide a second", 1, 3579545, 0, 3579545, 1000000000},
        {"rounded down", 1, 3579545, 0, 1, 279},
        {"after a year", 1, 3579545, 0, UINT64_C(3579545) * 31536000 + 1,
         UINT64_C(31536000000000279)},
        {"2.4 GHz, after a year", 1, 2400000000, 0, UINT64_C(2400000000) * 31536000 + 12,
         UINT64_C(31536000000000005)},
        {"system time", 2, 3579545, 0, 5, 500},
        {"cycles", 3, 3579545, 2500, 5000, 2000},
        {"no frequency", 1, 0, 0, 5, 500},
        {"an absurd frequency", 1, UINT64_MAX, 0, 5, 500},
        {"more than the time range", 1, 1, 0, UINT64_MAX / 2, EW_ETL_NS_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_etl_clock clock;
        test_row(rows[i].remark);
        ew_etl_clock_init(&clock, rows[i].kind, rows[i].hz, rows[i].mhz, 1000);
        CHECK_EQ_UINT(ew_etl_clock_ticks_ns(&clock, rows[i].ticks), rows[i].ns);
        CHECK_EQ_UINT(ew_etl_clock_ns(&clock, 1000 + rows[i].ticks), rows[i].ns);
        CHECK_EQ_UINT(ew_etl_clock_ns(&clock, 999), 0); /* no time is before the beginning */
        clock.zero_ns = 1000000000000;
        if (rows[i].ns < 1000000000000)
            CHECK_EQ_UINT(ew_etl_clock_ns(&clock, 1000 - rows[i].ticks),
                          1000000000000 - rows[i].ns);
    }
}

TEST(division_and_multiplication_agree_for_any_frequency)
{
    static const uint64_t frequencies[] = {
        1,       3,        7919,     32768,      1193182,    2147483,    3312642,    3579545,
        9999991, 14318180, 24000000, 2400000003, 3000000001, 9999999999, 10000000000};
    uint64_t seed = 42;
    for (size_t i = 0; i < sizeof frequencies / sizeof frequencies[0]; i++) {
        struct ew_etl_clock clock;
        ew_etl_clock_init(&clock, 1, frequencies[i], 0, 0);
        for (int n = 0; n < 20000; n++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            uint64_t ticks = seed >> (1 + n % 62);
            if (n % 3 == 0) /* at and next to whole seconds, where rounding would show */
                ticks = ticks / frequencies[i] * frequencies[i] - (uint64_t)(n / 3 % 3) + 1;
            if (ticks > INT64_MAX)
                continue;
            CHECK_EQ_UINT(ew_etl_clock_ns(&clock, ticks), ew_etl_clock_ticks_ns(&clock, ticks));
        }
    }
}

TEST(the_start_time_is_read_from_the_file)
{
    struct etl_memory memory;
    struct ew_etl_writer_config config = {.start_filetime = 133700000000000000,
                                          .cpu_count = 4,
                                          .session_name = "S\xc3\xa9ssion",
                                          .file_name = "C:\\trace.etl"};
    struct ew_etl_writer *writer = kit_writer(&memory, config);
    kit_put(writer, 0, KIT_START_RAW + 1, 0);
    CHECK_EQ_INT(ew_etl_writer_finish(writer, KIT_START_RAW + 5, 11, 22), 0);
    ew_etl_writer_free(writer);
    struct ew_etl_reader *reader = NULL;
    CHECK_EQ_INT(ew_etl_open_memory(memory.bytes, memory.size, NULL, &reader, NULL), 0);
    CHECK_EQ_INT(ew_etl_unix_minus_raw_ns(reader), INT64_C(1725526400000000000));
    const struct ew_etl_file_info *info = ew_etl_file_info(reader, 0);
    CHECK_EQ_UINT(info->file_bytes, memory.size);
    CHECK_EQ_UINT(info->buffer_bytes, 65536);
    CHECK_EQ_UINT(info->os_major, 10);
    CHECK_EQ_UINT(info->os_build, 19045);
    CHECK_EQ_UINT(info->cpu_count, 4);
    CHECK_EQ_UINT(info->pointer_size, 8);
    CHECK_EQ_UINT(info->clock, 1);
    CHECK_EQ_UINT(info->perf_frequency, 10000000);
    CHECK_EQ_UINT(info->events_lost, 11);
    CHECK_EQ_UINT(info->buffers_lost, 22);
    CHECK_EQ_INT(info->start_filetime, 133700000000000000);
    CHECK(info->end_filetime > info->start_filetime);
    CHECK_EQ_UINT(info->header_raw, KIT_START_RAW);
    CHECK_EQ_STR(info->session_name, "S\xc3\xa9ssion");
    CHECK_EQ_STR(info->file_name, "C:\\trace.etl");
    CHECK(!info->compressed);
    CHECK(ew_etl_file_info(reader, 1) == NULL);
    CHECK_EQ_UINT(ew_etl_file_count(reader), 1);
    ew_etl_close(reader);
    etl_memory_free(&memory);
}

/* -------------------------------------------------------------------- files */

static char folder[320];

static const char *store(const char *name, const struct etl_memory *memory)
{
    static char paths[4][400];
    static unsigned next;
    if (!folder[0])
        test_folder(folder, sizeof folder);
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL);
    CHECK_EQ_UINT(fwrite(memory->bytes, 1, memory->size, file), memory->size);
    CHECK_EQ_INT(fclose(file), 0);
    return path;
}

static void remove_all(const char *const *paths, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)remove(paths[i]);
    test_folder_remove(folder);
    folder[0] = '\0';
}

TEST(several_files_are_merged_each_with_its_own_clock)
{
    struct etl_memory a, b;
    /* The second recording begins 1 ms later, with another counter origin and another frequency. */
    struct ew_etl_writer_config first = {.start_filetime = 133700000000000000, .cpu_count = 1},
                                second = {.start_filetime = 133700000000010000,
                                          .cpu_count = 1,
                                          .start_raw = 77,
                                          .perf_frequency = 1000000};
    struct ew_etl_writer *writer = kit_writer(&a, first);
    for (uint32_t i = 0; i < 1000; i++)
        kit_put(writer, 0, KIT_START_RAW + 40 * i, 2 * i); /* every 4 us */
    kit_finish(writer, KIT_START_RAW + 100000);
    writer = kit_writer(&b, second);
    for (uint32_t i = 0; i < 500; i++)
        kit_put(writer, 0, 77 + 4 * i + 2, 2 * (250 + i) + 1); /* halfway between them */
    kit_finish(writer, 77 + 100000);
    const char *paths[] = {store("a.etl", &a), store("b.etl", &b)};
    for (uint32_t workers = 1; workers <= 2; workers++) {
        struct ew_etl_reader *reader = NULL;
        struct ew_error error = {0};
        struct ew_etl_options options = {.workers = workers};
        CHECK_EQ_INT(ew_etl_open(paths, 2, &options, &reader, &error), 0);
        struct seen_list list = kit_drain(reader);
        CHECK_EQ_UINT(list.count, 1502);
        kit_check_order(&list);
        uint32_t number = 0;
        for (size_t i = 0; i < list.count; i++) {
            struct seen *s = &list.items[i];
            if (s->opcode == 0)
                continue; /* the header events */
            CHECK_EQ_UINT(s->first, number);
            CHECK_EQ_UINT(s->file, number % 2);
            CHECK_EQ_UINT(s->t_ns, UINT64_C(2000) * number);
            number += number < 500 || number >= 1500 ? 2 : 1;
        }
        CHECK_EQ_INT(ew_etl_unix_minus_raw_ns(reader), INT64_C(1725526400000000000));
        kit_free(&list);
        ew_etl_close(reader);
    }
    remove_all(paths, 2);
    etl_memory_free(&a);
    etl_memory_free(&b);
}

TEST(sessions_of_one_boot_are_ordered_by_their_common_counter)
{
    /* The wall clock of the second recording was read 10 ms off; the counter is the same. */
    struct etl_memory a, b;
    struct ew_etl_writer_config first = {.start_filetime = 133700000000000000, .cpu_count = 1},
                                second = {.start_filetime = 133700000000100500,
                                          .cpu_count = 1,
                                          .start_raw = KIT_START_RAW + 500};
    struct ew_etl_writer *writer = kit_writer(&a, first);
    kit_put(writer, 0, KIT_START_RAW + 600, 0);
    kit_put(writer, 0, KIT_START_RAW + 800, 2);
    kit_finish(writer, KIT_START_RAW + 900);
    writer = kit_writer(&b, second);
    kit_put(writer, 0, KIT_START_RAW + 700, 1);
    kit_finish(writer, KIT_START_RAW + 900);
    const char *paths[] = {store("a.etl", &a), store("b.etl", &b)};
    struct ew_etl_reader *reader = NULL;
    CHECK_EQ_INT(ew_etl_open(paths, 2, NULL, &reader, NULL), 0);
    struct seen_list list = kit_drain(reader);
    CHECK_EQ_UINT(list.count, 5);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ_UINT(list.items[2 + i].first, i);
        CHECK_EQ_UINT(list.items[2 + i].t_ns, 60000 + 10000 * i);
    }
    kit_free(&list);
    ew_etl_close(reader);
    remove_all(paths, 2);
    etl_memory_free(&a);
    etl_memory_free(&b);
}

TEST(times_in_payloads_are_converted_with_the_clock_of_their_file)
{
    struct etl_memory a, b;
    struct ew_etl_writer_config first = {.start_filetime = 133700000000000000, .cpu_count = 1},
                                second = {.start_filetime = 133700000000010000,
                                          .cpu_count = 1,
                                          .start_raw = 77,
                                          .perf_frequency = 1000000};
    kit_make(&a, first, 1);
    struct ew_etl_writer *writer = kit_writer(&b, second);
    kit_put(writer, 0, 100, 0);
    kit_finish(writer, 200);
    const char *paths[] = {store("a.etl", &a), store("b.etl", &b)};
    struct ew_etl_reader *reader = NULL;
    CHECK_EQ_INT(ew_etl_open(paths, 2, NULL, &reader, NULL), 0);
    const struct ew_record *r;
    CHECK_EQ_INT(ew_etl_next(reader, &r), 4);
    CHECK_EQ_UINT(ew_etl_file_of(reader, &r[3]), 1);
    CHECK_EQ_UINT(ew_etl_raw_to_ns(reader, &r[3], 78), 1001000);
    CHECK_EQ_UINT(ew_etl_ticks_to_ns(reader, &r[3], 3), 3000);
    CHECK_EQ_UINT(ew_etl_raw_to_ns(reader, &r[0], KIT_START_RAW + 3), 300);
    ew_etl_close(reader);
    remove_all(paths, 2);
    etl_memory_free(&a);
    etl_memory_free(&b);
}

TEST(a_file_that_cannot_be_opened_is_reported_with_its_path)
{
    struct ew_etl_reader *reader = NULL;
    struct ew_error error = {0};
    const char *paths[] = {"/nowhere/at all.etl"};
    CHECK_EQ_INT(ew_etl_open(paths, 1, NULL, &reader, &error), ETWATCH_EOS);
    CHECK_CONTAINS(error.message, "/nowhere/at all.etl");
    CHECK(error.os_code != 0);
    paths[0] = test_path("unit");
    CHECK_EQ_INT(ew_etl_open(paths, 1, NULL, &reader, &error), ETWATCH_EOS);
    CHECK_EQ_INT(ew_etl_open(paths, 0, NULL, &reader, &error), ETWATCH_EINVAL);
    CHECK(reader == NULL);
}

TEST(a_pipe_is_refused_and_not_waited_for)
{
    struct etl_memory memory;
    kit_make(&memory, (struct ew_etl_writer_config){.cpu_count = 1}, 1);
    const char *path = store("pipe.etl", &memory);
    CHECK_EQ_INT(remove(path), 0);
    if (!test_pipe(path))
        SKIP("this system has no named pipes in the file system");
    struct ew_etl_reader *reader = NULL;
    struct ew_error error = {0};
    CHECK_EQ_INT(ew_etl_open(&path, 1, NULL, &reader, &error), ETWATCH_EOS);
    CHECK_CONTAINS(error.message, "pipe.etl");
    remove_all(&path, 1);
    etl_memory_free(&memory);
}

TEST(a_file_truncated_while_it_is_read_gives_the_remaining_events)
{
    struct etl_memory memory;
    kit_make(&memory, (struct ew_etl_writer_config){.cpu_count = 2, .buffer_bytes = 8192}, 40000);
    const char *path = store("cut.etl", &memory);
    for (uint32_t workers = 1; workers <= 2; workers++) {
        struct ew_etl_options options = {.workers = workers, .window_bytes = 1 << 20};
        struct ew_etl_reader *reader = NULL;
        CHECK_EQ_INT(ew_etl_open(&path, 1, &options, &reader, NULL), 0);
        const struct ew_record *records;
        CHECK(ew_etl_next(reader, &records) > 0);
        test_truncate(path, memory.size / 2 + 100);
        struct seen_list list = kit_drain(reader);
        CHECK_EQ_INT(list.status, 0);
        CHECK(list.counts.bad_records > 0);
        CHECK(list.counts.records >= 19000 && list.counts.records < 40000);
        kit_check_order(&list);
        kit_free(&list);
        ew_etl_close(reader);
        CHECK(store("cut.etl", &memory) != NULL);
    }
    remove_all(&path, 1);
    etl_memory_free(&memory);
}
