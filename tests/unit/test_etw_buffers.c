/* SPDX-License-Identifier: MIT */
/*
 * Whole buffers through the rings: the records equal those that the reader makes of the same
 * buffers in a recording, whatever their size and compression. Flagged and damaged buffers, and
 * those without room, are counted.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "etl_kit.h"
#include "etw_events.h"
#include "scenario.h"
#include "source/etl/reader.h"
#include "source/etw/rings.h"

enum { START_RAW = 1000000, CPUS = 4, MIB = 1 << 20, HEADER = 72 };

static void write_scenario(uint32_t buffer_bytes, bool compressed, struct etl_memory *memory)
{
    struct ew_etl_writer *writer;
    struct etl_truth truth;
    struct ew_etl_writer_config config = {.cpu_count = CPUS,
                                          .buffer_bytes = buffer_bytes,
                                          .compress = compressed,
                                          .pointer_size = 8,
                                          .start_raw = START_RAW,
                                          .ctx = memory,
                                          .write = etl_memory_write,
                                          .rewrite = etl_memory_rewrite};
    struct etl_scenario_config what = {.classes = ETL_EVERYTHING,
                                       .cpu_count = CPUS,
                                       .pointer_size = 8,
                                       .seed = 6,
                                       .event_count = 8000,
                                       .start_raw = START_RAW + 50};
    CHECK_EQ_INT(ew_etl_writer_new(&config, &writer), 0);
    CHECK_EQ_INT(etl_scenario_run(&what, writer, &truth), 0);
    CHECK_EQ_INT(ew_etl_writer_finish(writer, truth.last_raw, 0, 0), 0);
    ew_etl_writer_free(writer);
    etl_truth_free(&truth);
}

/* Puts the buffers in the order in which a session would deliver them: as in the file. */
static void put_file(struct ew_etw_rings *rings, const uint8_t *bytes, size_t size)
{
    for (size_t at = 0; size - at >= HEADER;) {
        uint32_t buffer = ew_load_u32(bytes + at);
        if (buffer < HEADER || buffer > size - at)
            break;
        ew_etw_rings_put_buffer(rings, bytes + at, buffer);
        at += buffer;
    }
}

static void check_record(const struct ew_record *got, const struct ew_record *want)
{
    CHECK_EQ_UINT(got->kind, want->kind);
    CHECK_EQ_UINT(got->t_raw, want->t_raw);
    CHECK_EQ_UINT(got->cpu, want->cpu);
    CHECK_EQ_UINT(got->header_type, want->header_type);
    CHECK_EQ_UINT(got->payload_size, want->payload_size);
    size_t size = (size_t)(want->payload - want->header) + want->payload_size;
    CHECK_EQ_MEM(got->header, want->header, size);
}

/* Returns the number of records. in_order: the reader had nothing to reorder. */
static uint64_t check_bytes(const uint8_t *bytes, size_t size, bool *ret_in_order)
{
    struct ew_etl_reader *reader;
    struct ew_etl_counts read;
    struct ew_etw_rings *rings;
    struct ew_etw_rings_counts counts;
    const struct ew_record *want;
    struct ew_record got;
    uint64_t checked = 0;
    int count;
    CHECK_EQ_INT(ew_etl_open_memory(bytes, size, NULL, &reader, NULL), 0);
    CHECK_EQ_INT(ew_etw_rings_new(2048, 16 * (uint64_t)size + 64 * MIB, &rings), 0);
    while ((count = ew_etl_next(reader, &want)) > 0)
        ;
    ew_etl_counts(reader, &read);
    *ret_in_order = read.late == 0 && read.bad_records == 0 && read.bad_buffers == 0;
    CHECK_EQ_INT(ew_etl_rewind(reader), 0);
    put_file(rings, bytes, size);
    while (*ret_in_order && (count = ew_etl_next(reader, &want)) > 0)
        for (int i = 0; i < count; i++) {
            CHECK_EQ_UINT(ew_etw_rings_take(rings, UINT64_MAX, &got, 1), 1);
            if (want[i].kind == EW_RECORD_LOSS) {
                CHECK_EQ_UINT(got.kind, EW_RECORD_LOSS);
                CHECK_EQ_UINT(got.opcode, 1);
                continue;
            }
            check_record(&got, &want[i]);
            checked++;
        }
    while (!*ret_in_order && ew_etw_rings_take(rings, UINT64_MAX, &got, 1) > 0)
        checked += got.kind != EW_RECORD_LOSS;
    CHECK_EQ_UINT(ew_etw_rings_take(rings, UINT64_MAX, &got, 1), 0);
    ew_etw_rings_counts(rings, &counts);
    CHECK_EQ_UINT(counts.put, checked);
    CHECK_EQ_UINT(checked, read.records);
    ew_etw_rings_free(rings);
    ew_etl_close(reader);
    return checked;
}

TEST(whole_buffers_give_the_records_of_the_reader)
{
    static const struct {
        const char *remark;
        uint32_t buffer_bytes;
        bool compressed;
    } rows[] = {
        {"small", 4096, false},
        {"as ours", 65536, false},
        {"large", 1024 * 1024, false},
        {"compressed", 65536, true},
        {"large and compressed", MIB, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct etl_memory memory = {0};
        bool in_order;
        test_row(rows[i].remark);
        write_scenario(rows[i].buffer_bytes, rows[i].compressed, &memory);
        CHECK(check_bytes(memory.bytes, memory.size, &in_order) > 8000);
        CHECK(in_order);
        etl_memory_free(&memory);
    }
}

static uint8_t *read_whole(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    CHECK_EQ_INT(fseek(file, 0, SEEK_END), 0);
    *ret_size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*ret_size);
    CHECK(bytes != NULL);
    CHECK_EQ_UINT(fread(bytes, 1, *ret_size, file), *ret_size);
    CHECK_EQ_INT(fclose(file), 0);
    return bytes;
}

TEST(whole_buffers_of_real_recordings_give_the_records_of_the_reader)
{
    const char *corpus = getenv("ETWATCH_CORPUS");
    char line[1024], path[1024];
    uint64_t checked = 0;
    int compared = 0;
    if (corpus == NULL)
        SKIP("ETWATCH_CORPUS is not set");
    (void)snprintf(path, sizeof path, "%s/MANIFEST.tsv", corpus);
    FILE *manifest = fopen(path, "r");
    if (manifest == NULL)
        SKIP("there is no MANIFEST.tsv in ETWATCH_CORPUS");
    while (fgets(line, sizeof line, manifest) != NULL) {
        size_t size;
        bool in_order;
        (void)snprintf(path, sizeof path, "%s/etl/%.*s", corpus, (int)strcspn(line, "\t\n"), line);
        test_row(path);
        uint8_t *bytes = strstr(path, ".etl") == NULL ? NULL : read_whole(path, &size);
        if (bytes == NULL)
            continue;
        checked += check_bytes(bytes, size, &in_order);
        compared += in_order;
        free(bytes);
    }
    CHECK_EQ_INT(fclose(manifest), 0);
    CHECK(checked > 100000);
    CHECK(compared > 10);
}

/* ----------------------------------------------------------------------- made by hand */

/* Makes a buffer with this many switches of CPU 1; returns its size. */
static uint32_t make_buffer(uint8_t *bytes, uint32_t events, uint64_t t_raw, uint16_t flags)
{
    uint32_t size = HEADER + events * ETW_SWITCH_SIZE;
    uint16_t cpu = 1;
    memset(bytes, 0, HEADER);
    memcpy(bytes, &size, 4);
    memcpy(bytes + 0x28, &cpu, 2);
    memcpy(bytes + 0x30, &size, 4);
    memcpy(bytes + 0x34, &flags, 2);
    for (uint32_t i = 0; i < events; i++)
        etw_switch_bytes(bytes + HEADER + i * ETW_SWITCH_SIZE, t_raw + i, 1, i);
    return size;
}

static struct ew_etw_rings *new_rings(uint64_t pool_bytes)
{
    struct ew_etw_rings *rings;
    CHECK_EQ_INT(ew_etw_rings_new(CPUS, pool_bytes, &rings), 0);
    return rings;
}

TEST(a_flagged_buffer_begins_with_a_loss_of_the_session)
{
    uint8_t bytes[4096];
    struct ew_record got[8];
    struct ew_etw_rings *rings = new_rings(MIB);
    ew_etw_rings_put_buffer(rings, bytes, make_buffer(bytes, 2, 100, 0x20));
    ew_etw_rings_put_buffer(rings, bytes, make_buffer(bytes, 2, 200, 0x20 | 2));
    CHECK_EQ_UINT(ew_etw_rings_take(rings, UINT64_MAX, got, 8), 2);
    CHECK_EQ_UINT(ew_etw_rings_take(rings, UINT64_MAX, got, 8), 3);
    CHECK_EQ_UINT(got[0].kind, EW_RECORD_LOSS);
    CHECK_EQ_UINT(got[0].opcode, 1);
    CHECK_EQ_UINT(got[0].cpu, 1);
    CHECK_EQ_UINT(got[0].t_raw, 200);
    CHECK_EQ_UINT(ew_load_u64(got[0].payload), 1);
    CHECK_EQ_UINT(got[2].t_raw, 201);
    ew_etw_rings_free(rings);
}

/* Without it the loss would be known only from the totals, which are queried once a second. */
TEST(an_empty_flagged_buffer_marks_the_position_of_a_loss)
{
    uint8_t bytes[4096];
    struct ew_record got[8];
    struct ew_etw_rings *rings = new_rings(MIB);
    ew_etw_rings_put_buffer(rings, bytes, make_buffer(bytes, 2, 100, 0x20));
    ew_etw_rings_put_buffer(rings, bytes, make_buffer(bytes, 0, 0, 0x20 | 2));
    ew_etw_rings_put_buffer(rings, bytes, make_buffer(bytes, 1, 200, 0x20));
    CHECK_EQ_UINT(ew_etw_rings_take(rings, UINT64_MAX, got, 8), 2);
    CHECK_EQ_UINT(ew_etw_rings_take(rings, UINT64_MAX, got, 8), 2);
    CHECK_EQ_UINT(got[0].kind, EW_RECORD_LOSS);
    CHECK_EQ_UINT(got[0].opcode, 1);
    CHECK_EQ_UINT(got[0].cpu, 1);
    CHECK_EQ_UINT(got[0].t_raw, 101);
    CHECK_EQ_UINT(got[1].t_raw, 200);
    ew_etw_rings_free(rings);
}

TEST(damage_in_a_buffer_is_a_loss_and_the_next_buffer_is_read)
{
    uint8_t bytes[4096];
    struct ew_record got[16];
    struct ew_etw_rings_counts counts;
    struct ew_etw_rings *rings = new_rings(MIB);
    uint32_t size = make_buffer(bytes, 6, 100, 0x20);
    bytes[HEADER + 2 * ETW_SWITCH_SIZE + 3] = 0; /* no event begins here */
    ew_etw_rings_put_buffer(rings, bytes, size);
    ew_etw_rings_put_buffer(rings, bytes, make_buffer(bytes, 3, 200, 0x20));
    CHECK_EQ_UINT(ew_etw_rings_take(rings, UINT64_MAX, got, 16), 2);
    CHECK_EQ_UINT(ew_etw_rings_take(rings, UINT64_MAX, got, 16), 4);
    CHECK_EQ_UINT(got[0].kind, EW_RECORD_LOSS);
    CHECK_EQ_UINT(got[0].opcode, 0);
    CHECK_EQ_UINT(got[3].t_raw, 202);
    ew_etw_rings_counts(rings, &counts);
    CHECK_EQ_UINT(counts.put, 5);
    CHECK_EQ_UINT(counts.dropped, 1);
    ew_etw_rings_free(rings);
}

TEST(events_of_buffers_that_do_not_fit_are_counted)
{
    static uint8_t bytes[65536];
    static struct ew_record got[4096];
    struct ew_etw_rings_counts counts;
    struct ew_etw_rings *rings = new_rings(1); /* four blocks */
    uint64_t records = 0, lost = 0;
    for (uint32_t i = 0; i < 10; i++)
        ew_etw_rings_put_buffer(rings, bytes, make_buffer(bytes, 1600, 10000 * i, 0x20));
    for (int round = 0; round < 2; round++) {
        size_t count;
        while ((count = ew_etw_rings_take(rings, UINT64_MAX, got, 4096)) > 0)
            for (size_t i = 0; i < count; i++) {
                if (got[i].kind == EW_RECORD_LOSS)
                    lost += ew_load_u64(got[i].payload);
                else
                    records++;
            }
        if (round == 0)
            ew_etw_rings_put_buffer(rings, bytes, make_buffer(bytes, 1600, 200000, 0x20));
    }
    ew_etw_rings_counts(rings, &counts);
    CHECK(lost >= 6 * 1600);
    CHECK_EQ_UINT(records + lost, 11 * 1600);
    CHECK_EQ_UINT(counts.put, records);
    CHECK_EQ_UINT(counts.dropped, lost);
    ew_etw_rings_free(rings);
}

TEST(bytes_that_are_not_a_buffer_are_skipped)
{
    uint8_t bytes[256];
    struct ew_record got[4];
    struct ew_etw_rings *rings = new_rings(MIB);
    memset(bytes, 0, sizeof bytes);
    ew_etw_rings_put_buffer(rings, bytes, 10);
    ew_etw_rings_put_buffer(rings, bytes, sizeof bytes);
    uint32_t size = make_buffer(bytes, 2, 5, 0x20);
    bytes[0x30] = 0xFF; /* more than there is */
    bytes[0x31] = 0xFF;
    ew_etw_rings_put_buffer(rings, bytes, size);
    CHECK_EQ_UINT(ew_etw_rings_take(rings, UINT64_MAX, got, 4), 2);
    CHECK_EQ_UINT(ew_etw_rings_take(rings, UINT64_MAX, got, 4), 0);
    ew_etw_rings_free(rings);
}
