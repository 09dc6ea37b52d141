/* SPDX-License-Identifier: MIT */
/*
 * Events as ETW delivers them become the same records that a reader of recordings makes of them.
 * Between two threads no event is lost or changed, and events that do not fit are counted.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/kernel_table.h"
#include "etl_kit.h"
#include "etw_events.h"
#include "os/os.h"
#include "scenario.h"
#include "source/etl/reader.h"
#include "source/etw/classes.h"
#include "source/etw/rings.h"

enum { START_RAW = 1000000, CPUS = 4, MIB = 1 << 20 };

static void write_scenario(uint32_t pointer_size, struct etl_memory *memory)
{
    struct ew_etl_writer *writer;
    struct etl_truth truth;
    struct ew_etl_writer_config config = {.cpu_count = CPUS,
                                          .buffer_bytes = 16384,
                                          .pointer_size = pointer_size,
                                          .start_raw = START_RAW,
                                          .ctx = memory,
                                          .write = etl_memory_write,
                                          .rewrite = etl_memory_rewrite};
    struct etl_scenario_config what = {.classes = ETL_EVERYTHING,
                                       .cpu_count = CPUS,
                                       .pointer_size = pointer_size,
                                       .seed = 5,
                                       .event_count = 5000,
                                       .start_raw = START_RAW + 50};
    CHECK_EQ_INT(ew_etl_writer_new(&config, &writer), 0);
    CHECK_EQ_INT(etl_scenario_run(&what, writer, &truth), 0);
    CHECK_EQ_INT(ew_etl_writer_finish(writer, truth.last_raw, 0, 0), 0);
    ew_etl_writer_free(writer);
    etl_truth_free(&truth);
}

/* One event of each header type, with extended items after the header that supports them. */
static void write_headers(struct etl_memory *memory)
{
    static const uint8_t types[] = {1, 2, 3, 4, 10, 20, 11, 21, 15, 16, 17, 18, 19};
    static const uint8_t provider[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    static const uint8_t payload[128] = "some payload";
    struct ew_etl_writer *writer;
    struct etl_payload items;
    struct ew_etl_writer_config config = {.cpu_count = CPUS,
                                          .start_raw = START_RAW,
                                          .ctx = memory,
                                          .write = etl_memory_write,
                                          .rewrite = etl_memory_rewrite};
    etl_clear(&items);
    etl_extended(&items, 0xD, "startkey", 8, true);
    etl_extended(&items, 0xB, "schema of 13b", 13, false);
    CHECK_EQ_INT(ew_etl_writer_new(&config, &writer), 0);
    for (size_t i = 0; i < 4 * sizeof types; i++) {
        uint8_t type = types[i / 4];
        struct ew_etl_event event = {
            .header_type = type,
            .group = (uint8_t)(type == 16 || type == 17 ? 0x0F : 0x03),
            .opcode = (uint8_t)(type == 1 ? 10 : 7 + i),
            .version = (uint8_t)(1 + i % 3),
            .level = 4,
            .cpu = (uint16_t)(i % CPUS),
            .t_raw = START_RAW + 10 * i,
            .pid = 1000 + (uint32_t)i,
            .tid = 2000 + (uint32_t)i,
            .provider = provider,
            .id = (uint16_t)(300 + i),
            .task = 9,
            .keyword = 0x8000000000000123,
            .activity = provider,
            .extended = items.bytes,
            .extended_size = type >= 18 && type <= 19 && i % 2 == 0 ? items.size : 0,
            .message_flags = 0x2 | 0x8 | 0x20 | 0x80,
            .payload = payload,
            .payload_size = (uint32_t)(i * 2),
        };
        CHECK_EQ_INT(ew_etl_write(writer, &event), 0);
    }
    CHECK_EQ_INT(ew_etl_writer_finish(writer, START_RAW + 10000, 0, 0), 0);
    ew_etl_writer_free(writer);
}

/*
 * Programs may log the kernel's classes too, with the long header; a session does not distinguish
 * them.
 */
static bool is_imitation(const struct ew_record *record)
{
    return record->kind == EW_RECORD_CLASSIC &&
           ew_etw_class_of(record->provider) != EW_ETW_NO_CLASS;
}

static void check_kind(const struct ew_record *got, const struct ew_record *want)
{
    if (is_imitation(want)) {
        CHECK_EQ_UINT(got->kind, EW_RECORD_KERNEL);
        return;
    }
    CHECK_EQ_UINT(got->kind, want->kind);
    CHECK_EQ_UINT(got->group, want->group);
    CHECK_EQ_INT(got->provider == NULL, want->provider == NULL);
    if (want->provider != NULL)
        CHECK_EQ_MEM(got->provider, want->provider, 16);
}

static void check_record(const struct ew_record *got, const struct ew_record *want)
{
    check_kind(got, want);
    CHECK_EQ_UINT(got->t_raw, want->t_raw);
    CHECK_EQ_UINT(got->pid, want->pid);
    CHECK_EQ_UINT(got->tid, want->tid);
    CHECK_EQ_UINT(got->cpu, want->cpu);
    CHECK_EQ_UINT(got->id, want->id);
    CHECK_EQ_UINT(got->pointer_size, want->pointer_size);
    CHECK_EQ_UINT(got->version, want->version);
    CHECK_EQ_UINT(got->opcode, want->opcode);
    CHECK_EQ_UINT(got->payload_size, want->payload_size);
    CHECK_EQ_MEM(got->payload, want->payload, want->payload_size);
    CHECK_EQ_UINT(got->extended_size, want->extended_size);
    if (want->extended_size > 0)
        CHECK_EQ_MEM(got->header + 0x50, want->header + 0x50, want->extended_size);
}

/* Passes the records through the rings and compares each with that of the reader. */
static uint64_t check_reader(struct ew_etl_reader *reader, uint32_t cpus)
{
    struct ew_etw_rings *rings;
    const struct ew_record *want;
    struct ew_record got[64];
    struct etw_event event;
    uint64_t checked = 0;
    int count;
    CHECK_EQ_INT(ew_etw_rings_new(cpus, 64 * MIB, &rings), 0);
    while ((count = ew_etl_next(reader, &want)) > 0) {
        for (int i = 0; i < count; i++)
            if (etw_event_from(&event, &want[i]))
                ew_etw_rings_put(rings, event.bytes);
        size_t taken;
        int at = 0;
        while ((taken = ew_etw_rings_take(rings, UINT64_MAX, got, 64)) > 0)
            for (size_t i = 0; i < taken; i++, at++) {
                while (!etw_event_from(&event, &want[at]))
                    at++;
                check_record(&got[i], &want[at]);
                checked++;
            }
    }
    struct ew_etw_rings_counts counts;
    ew_etw_rings_counts(rings, &counts);
    CHECK_EQ_UINT(counts.put, checked);
    CHECK_EQ_UINT(counts.dropped, 0);
    ew_etw_rings_free(rings);
    ew_etl_close(reader);
    return checked;
}

static uint64_t check_recording(const struct etl_memory *memory)
{
    struct ew_etl_reader *reader;
    CHECK_EQ_INT(ew_etl_open_memory(memory->bytes, memory->size, NULL, &reader, NULL), 0);
    return check_reader(reader, CPUS);
}

TEST(an_event_of_a_session_gives_the_record_of_a_recording)
{
    for (uint32_t pointer_size = 4; pointer_size <= 8; pointer_size += 4) {
        struct etl_memory memory = {0};
        write_scenario(pointer_size, &memory);
        CHECK(check_recording(&memory) > 5000);
        etl_memory_free(&memory);
    }
}

TEST(every_kind_of_header_gives_the_record_of_a_recording)
{
    struct etl_memory memory = {0};
    write_headers(&memory);
    CHECK_EQ_UINT(check_recording(&memory), 1 + 4 * 13);
    etl_memory_free(&memory);
}

TEST(events_of_real_recordings_give_the_same_records)
{
    const char *corpus = getenv("ETWATCH_CORPUS");
    char line[1024], path[1024];
    uint64_t checked = 0;
    if (corpus == NULL)
        SKIP("ETWATCH_CORPUS is not set");
    (void)snprintf(path, sizeof path, "%s/MANIFEST.tsv", corpus);
    FILE *manifest = fopen(path, "r");
    if (manifest == NULL)
        SKIP("there is no MANIFEST.tsv in ETWATCH_CORPUS");
    while (fgets(line, sizeof line, manifest) != NULL) {
        struct ew_etl_reader *reader;
        const char *file = path;
        (void)snprintf(path, sizeof path, "%s/etl/%.*s", corpus, (int)strcspn(line, "\t\n"), line);
        test_row(path);
        if (strstr(path, ".etl") != NULL && ew_etl_open(&file, 1, NULL, &reader, NULL) == 0)
            checked += check_reader(reader, 2048);
    }
    CHECK_EQ_INT(fclose(manifest), 0);
    CHECK(checked > 100000);
}

TEST(the_classes_are_those_of_the_decoder)
{
    static const uint8_t unknown[16] = {1};
    int found = 0;
    for (unsigned group = 0; group < 256; group++) {
        const uint8_t *guid = ew_etw_class_guid((uint8_t)group);
        struct ew_record record = {.kind = EW_RECORD_CLASSIC, .provider = guid};
        uint8_t opcode;
        if (guid == NULL)
            continue;
        CHECK_EQ_UINT(ew_etw_class_of(guid), group);
        CHECK_EQ_UINT(ew_kernel_class_of(&record, &opcode), group);
        found++;
    }
    CHECK(found > 20);
    CHECK_EQ_UINT(ew_etw_class_of(unknown), EW_ETW_NO_CLASS);
    CHECK_EQ_MEM(ew_etw_lost_guid, etl_rt_lost, 16);
}

TEST(records_are_ordered_by_time_up_to_the_horizon)
{
    struct ew_etw_rings *rings;
    struct ew_record got[16];
    struct etw_event event;
    CHECK_EQ_INT(ew_etw_rings_new(CPUS, MIB, &rings), 0);
    etw_event_switch(&event);
    /* The buffer of one CPU after that of another. */
    for (unsigned cpu = 0; cpu < 3; cpu++)
        for (unsigned i = 0; i < 4; i++) {
            etw_event_set_switch(&event, 100 * i + (cpu == 2 ? 0 : cpu), (uint16_t)cpu, i);
            ew_etw_rings_put(rings, event.bytes);
        }
    CHECK_EQ_UINT(ew_etw_rings_take(rings, 150, got, 16), 6);
    static const uint64_t times[] = {0, 0, 1, 100, 100, 101};
    static const uint16_t cpus[] = {0, 2, 1, 0, 2, 1}; /* equal times: in insertion order */
    for (int i = 0; i < 6; i++) {
        CHECK_EQ_UINT(got[i].t_raw, times[i]);
        CHECK_EQ_UINT(got[i].cpu, cpus[i]);
    }
    CHECK_EQ_UINT(ew_etw_rings_take(rings, 150, got, 16), 0);
    CHECK_EQ_UINT(ew_etw_rings_take(rings, UINT64_MAX, got, 2), 2);
    CHECK_EQ_UINT(ew_etw_rings_take(rings, UINT64_MAX, got, 16), 4);
    CHECK_EQ_UINT(got[3].t_raw, 301);
    struct ew_etw_rings_counts counts;
    ew_etw_rings_counts(rings, &counts);
    CHECK_EQ_UINT(counts.put, 12);
    CHECK_EQ_UINT(counts.late, 0);
    etw_event_set_switch(&event, 250, 0, 9);
    ew_etw_rings_put(rings, event.bytes);
    CHECK_EQ_UINT(ew_etw_rings_take(rings, UINT64_MAX, got, 16), 1);
    CHECK_EQ_UINT(got[0].t_raw, 250);
    ew_etw_rings_free(rings);
}

TEST(events_that_do_not_fit_are_counted_and_marked)
{
    struct ew_etw_rings *rings;
    static struct ew_record got[4096];
    struct etw_event event;
    uint64_t records = 0, lost = 0, losses = 0;
    CHECK_EQ_INT(ew_etw_rings_new(2, 1, &rings), 0);
    etw_event_switch(&event);
    for (uint32_t i = 0; i < 30000; i++) {
        etw_event_set_switch(&event, i, (uint16_t)(i % 2), i / 2);
        ew_etw_rings_put(rings, event.bytes);
        /* Drained twice while events arrive: this frees room, and the earlier loss is marked there.
         */
        size_t count;
        if (i != 12000 && i != 20000 && i != 29999)
            continue;
        while ((count = ew_etw_rings_take(rings, UINT64_MAX, got, 4096)) > 0)
            for (size_t k = 0; k < count; k++) {
                if (got[k].kind != EW_RECORD_LOSS) {
                    records++;
                    continue;
                }
                uint64_t here;
                CHECK_EQ_UINT(got[k].payload_size, 8);
                memcpy(&here, got[k].payload, 8);
                CHECK(here > 0);
                lost += here;
                losses++;
            }
    }
    struct ew_etw_rings_counts counts;
    ew_etw_rings_counts(rings, &counts);
    CHECK(losses >= 2);
    CHECK(lost > 0);
    CHECK_EQ_UINT(counts.put, records);
    CHECK_EQ_UINT(counts.dropped, lost);
    CHECK_EQ_UINT(records + lost, 30000);
    ew_etw_rings_free(rings);
}

/* --------------------------------------------------------------------- two threads */

enum { MANY = 400000 };

static void put_many(void *arg)
{
    struct etw_event event;
    etw_event_switch(&event);
    for (uint32_t i = 0; i < MANY; i++) {
        etw_event_set_switch(&event, i, (uint16_t)(i % CPUS), i / CPUS);
        ew_etw_rings_put(arg, event.bytes);
    }
}

TEST(between_two_threads_every_lost_event_is_counted)
{
    struct ew_etw_rings *rings;
    static struct ew_record got[1024];
    static uint64_t last[CPUS];
    struct ew_thread_handle *thread;
    uint64_t records = 0, lost = 0, here;
    memset(last, 0, sizeof last);
    CHECK_EQ_INT(ew_etw_rings_new(CPUS, MIB, &rings), 0);
    CHECK_EQ_INT(ew_os_thread_start(put_many, rings, &thread), 0);
    while (records + lost < MANY) {
        size_t count = ew_etw_rings_take(rings, UINT64_MAX, got, 1024);
        for (size_t i = 0; i < count; i++) {
            if (got[i].kind == EW_RECORD_LOSS) {
                memcpy(&here, got[i].payload, 8);
                lost += here;
                continue;
            }
            CHECK(got[i].t_raw >= last[got[i].cpu]);
            CHECK_EQ_UINT(got[i].payload_size, 24);
            CHECK_EQ_UINT(got[i].t_raw % CPUS, got[i].cpu);
            last[got[i].cpu] = got[i].t_raw;
            records++;
        }
    }
    ew_os_thread_join(thread);
    struct ew_etw_rings_counts counts;
    ew_etw_rings_counts(rings, &counts);
    CHECK_EQ_UINT(counts.put, records);
    CHECK_EQ_UINT(counts.dropped, lost);
    CHECK_EQ_UINT(records + lost, MANY);
    ew_etw_rings_free(rings);
}

static void put_one(void *ctx)
{
    void **both = ctx;
    ew_etw_rings_put(both[0], both[1]);
}

TEST(an_event_costs_no_allocation)
{
    struct ew_etw_rings *rings;
    struct etw_event event;
    CHECK_EQ_INT(ew_etw_rings_new(CPUS, MIB, &rings), 0);
    etw_event_switch(&event);
    void *both[2] = {rings, event.bytes};
    CHECK_EQ_UINT(test_count_allocations(put_one, both), 0);
    ew_etw_rings_free(rings);
}

static int make_rings(void *ctx)
{
    struct ew_etw_rings *rings;
    (void)ctx;
    int rc = ew_etw_rings_new(CPUS, MIB, &rings);
    if (rc == 0)
        ew_etw_rings_free(rings);
    return rc;
}

TEST(making_rings_without_memory_fails_cleanly)
{
    TORTURE(make_rings, NULL);
}
