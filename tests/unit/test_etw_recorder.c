/* SPDX-License-Identifier: MIT */
/*
 * Recordings that ETW writes, and which of several etwatch processes owns which session: sessions
 * left behind are recognized and ended, sessions in use are kept.
 */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include <etwatch/session.h>

#include "etl_reader_kit.h"
#include "etw_emulator.h"
#include "monitor/monitor.h"
#include "source/etw/consumer.h"
#include "system.h"

struct place {
    char folder[320], path[340];
};

static void make_folder(struct place *place)
{
    test_folder(place->folder, sizeof place->folder);
    (void)snprintf(place->path, sizeof place->path, "%s/x.etl", place->folder);
}

static void remove_folder(struct place *place)
{
    (void)remove(place->path);
    test_folder_remove(place->folder);
}

static bool file_is_there(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return false;
    (void)fclose(file);
    return true;
}

static struct etw_emulator_counts counts_of(struct etw_emulator *emulator)
{
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    return counts;
}

static struct etwatch_recorder *start(struct etw_emulator *emulator, const char *path,
                                      const struct etwatch_session_options *options)
{
    struct etwatch_recorder *recorder = NULL;
    struct ew_error error = {0};
    if (ew_recorder_start(etw_emulator_api(emulator), path, options, &recorder, &error) != 0)
        FAIL(error.message);
    return recorder;
}

static struct etwatch_recorder_stats stats_of(struct etwatch_recorder *recorder)
{
    struct etwatch_recorder_stats stats = {.size = sizeof stats};
    CHECK_EQ_INT(etwatch_recorder_stats(recorder, &stats), 0);
    return stats;
}

TEST(a_recording_has_its_own_session_and_ends_with_it)
{
    struct place place;
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.os_build = 19045, .real_time = true});
    struct etw_emulator_session session;
    make_folder(&place);
    struct etwatch_recorder *recorder = start(emulator, place.path, NULL);
    CHECK(etw_emulator_session(emulator, "etwatch-record", &session));
    CHECK_EQ_UINT(session.log_mode, 0x02000000 | 0x08000000 | 0x1);
    CHECK((session.enable_flags & 0x4) != 0); /* images: readers of stacks need them */
    CHECK_EQ_UINT(stats_of(recorder).running, 1);
    CHECK_EQ_INT(etwatch_recorder_stop(recorder), 0);
    CHECK_EQ_UINT(counts_of(emulator).sessions, 0);
    CHECK_EQ_UINT(stats_of(recorder).running, 0);
    uint64_t duration_ns = stats_of(recorder).duration_ns;
    CHECK_EQ_INT(etwatch_recorder_stop(recorder), 0);
    CHECK_EQ_UINT(stats_of(recorder).duration_ns, duration_ns);
    etwatch_recorder_free(recorder);
    CHECK_EQ_UINT(counts_of(emulator).stops, 1);
    remove_folder(&place);
    etw_emulator_free(emulator);
}

/* As if ETW had written it: one image, with this file of this machine. */
static void write_recording(const char *path, const char *image_path)
{
    static struct etl_payload payload;
    struct etl_memory memory;
    struct ew_etl_writer *writer = kit_writer(&memory, (struct ew_etl_writer_config){0});
    struct etl_image image = {.base = 0x10000, .size = 0x9000, .pid = 4242, .path = image_path};
    etl_clear(&payload);
    etl_image(&payload, 2, 8, &image);
    struct ew_etl_event event = {.header_type = 2,
                                 .group = 0x14,
                                 .opcode = 3,
                                 .version = 2,
                                 .t_raw = KIT_START_RAW + 1,
                                 .payload = payload.bytes,
                                 .payload_size = payload.size};
    CHECK_EQ_INT(ew_etl_write(writer, &event), 0);
    kit_finish(writer, KIT_START_RAW + 2);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(memory.bytes, 1, memory.size, file) == memory.size &&
          fclose(file) == 0);
    etl_memory_free(&memory);
}

/* The fewest headers of a program file: 64 bits, no sections. */
static void write_program(const char *path)
{
    static uint8_t bytes[512];
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, "MZ", 2);
    kit_set(bytes + 0x3C, 4, 64);
    memcpy(bytes + 64, "PE", 2);
    kit_set(bytes + 64 + 20, 2, 240);
    kit_set(bytes + 64 + 24, 2, 0x20B);
    kit_set(bytes + 64 + 24 + 56, 4, 0x9000);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, sizeof bytes, file) == sizeof bytes &&
          fclose(file) == 0);
}

TEST(the_identities_of_images_are_added_when_the_session_has_ended)
{
    struct place place;
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){0});
    struct ew_etl_reader *reader = NULL;
    struct ew_error error = {0};
    char program[360], name[380];
    const char *path = place.path;
    make_folder(&place);
    (void)snprintf(program, sizeof program, "%s/app.exe", place.folder);
    (void)snprintf(name, sizeof name, "%s%s", program[0] == '/' ? "" : "\\??\\", program);
    for (char *at = name; program[0] != '/' && *at != '\0'; at++)
        *at = *at == '/' ? '\\' : *at;
    write_program(program);
    struct etwatch_recorder *recorder = start(emulator, place.path, NULL);
    write_recording(place.path, name);
    CHECK_EQ_INT(etwatch_recorder_stop(recorder), 0);
    etwatch_recorder_free(recorder);
    CHECK_EQ_INT(ew_etl_open(&path, 1, NULL, &reader, &error), 0);
    struct seen_list list = kit_drain(reader);
    ew_etl_close(reader);
    CHECK_EQ_UINT(list.count, 3);
    CHECK_EQ_UINT(list.items[1].kind, EW_RECORD_CLASSIC); /* before the image itself */
    CHECK_EQ_UINT(list.items[1].pid, 4242);
    CHECK_EQ_UINT(list.items[2].group, 0x14);
    kit_free(&list);
    (void)remove(program);
    remove_folder(&place);
    etw_emulator_free(emulator);
}

static void note_file(void *ctx, const struct ew_etw_session_info *info)
{
    (void)snprintf(ctx, 400, "%.399s", info->file);
}

TEST(the_session_has_the_full_path_of_its_file)
{
    struct place place;
    char file[400] = "";
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){0});
    make_folder(&place);
    struct etwatch_recorder *recorder = start(emulator, place.path, NULL);
    CHECK_EQ_INT(ew_etw_session_list(etw_emulator_api(emulator), note_file, file, NULL), 1);
    CHECK_CONTAINS(file, "x.etl");
    CHECK(file[0] == '/' || file[1] == ':');
    etwatch_recorder_free(recorder);
    remove_folder(&place);
    etw_emulator_free(emulator);
}

TEST(a_recording_that_cannot_begin_leaves_neither_session_nor_file)
{
    static const struct {
        const char *remark;
        struct etw_emulator_config emulated;
        const char *kernel;
        int code;
    } rows[] = {
        {"no rights", {.no_rights = true}, NULL, ETWATCH_EPERM},
        {"no privilege", {.no_privilege = true}, "profile", ETWATCH_EPERM},
        {"no slots", {.loggers_in_use = true}, NULL, ETWATCH_ELIMIT},
        {"no such kind of event", {0}, "swaps", ETWATCH_EINVAL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct place place;
        struct etwatch_session_options options = {.size = sizeof options, .kernel = rows[i].kernel};
        struct etw_emulator *emulator = etw_emulator_new(&rows[i].emulated);
        struct etwatch_recorder *recorder = NULL;
        struct ew_error error = {0};
        test_row(rows[i].remark);
        make_folder(&place);
        CHECK_EQ_INT(
            ew_recorder_start(etw_emulator_api(emulator), place.path, &options, &recorder, &error),
            rows[i].code);
        CHECK(recorder == NULL);
        CHECK(error.message[0] != '\0' && error.fix[0] != '\0');
        CHECK_EQ_UINT(counts_of(emulator).ours, 0);
        CHECK(!file_is_there(place.path));
        remove_folder(&place);
        etw_emulator_free(emulator);
    }
}

TEST(an_existing_file_is_not_removed_when_the_start_fails)
{
    struct place place;
    struct etwatch_recorder *recorder = NULL;
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.no_rights = true});
    make_folder(&place);
    FILE *file = fopen(place.path, "wb");
    CHECK(file != NULL);
    CHECK_EQ_INT(fclose(file), 0);
    CHECK_EQ_INT(ew_recorder_start(etw_emulator_api(emulator), place.path, NULL, &recorder, NULL),
                 ETWATCH_EPERM);
    CHECK(file_is_there(place.path));
    remove_folder(&place);
    etw_emulator_free(emulator);
}

TEST(a_file_that_cannot_be_written_is_reported_before_anything_starts)
{
    struct place place;
    struct etwatch_recorder *recorder = NULL;
    struct ew_error error = {0};
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){0});
    make_folder(&place);
    CHECK_EQ_INT(
        ew_recorder_start(etw_emulator_api(emulator), place.folder, NULL, &recorder, &error),
        ETWATCH_EOS);
    CHECK_CONTAINS(error.message, "cannot write to");
    CHECK(error.os_code != 0);
    CHECK_EQ_UINT(counts_of(emulator).starts, 0);
    remove_folder(&place);
    etw_emulator_free(emulator);
}

TEST(a_recording_stopped_from_outside_is_reported)
{
    struct place place;
    struct ew_etw_session_info info;
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){0});
    make_folder(&place);
    struct etwatch_recorder *recorder = start(emulator, place.path, NULL);
    /* The emulator reports no owners: the session counts as left behind. */
    CHECK_EQ_INT(ew_etw_session_cleanup(etw_emulator_api(emulator), NULL), 1);
    CHECK_EQ_INT(ew_etw_session_query(etw_emulator_api(emulator), "etwatch-record", &info, NULL),
                 ETWATCH_ENOENT);
    CHECK_EQ_UINT(stats_of(recorder).running, 0);
    etwatch_recorder_free(recorder);
    remove_folder(&place);
    etw_emulator_free(emulator);
}

static int start_and_stop(void *ctx)
{
    struct place place;
    struct etwatch_recorder *recorder = NULL;
    struct etwatch_provider provider = {.size = sizeof provider, .name = ETW_EMULATOR_PROVIDER};
    struct etwatch_session_options options = {
        .size = sizeof options, .providers = &provider, .provider_count = 1};
    make_folder(&place);
    int rc = ew_recorder_start(etw_emulator_api(ctx), place.path, &options, &recorder, NULL);
    etwatch_recorder_free(recorder);
    CHECK_EQ_UINT(counts_of(ctx).ours, 0);
    remove_folder(&place);
    return rc;
}

TEST(without_memory_no_recording_is_left_running)
{
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){0});
    TORTURE(start_and_stop, emulator);
    etw_emulator_free(emulator);
}

/* ------------------------------------------------------------- several processes */

static struct etwatch_monitor *watch(const struct ew_etw_config *etw)
{
    struct etwatch_monitor *monitor = NULL;
    struct etwatch_config config = {.size = sizeof config, .flags = ETWATCH_CONFIG_ALL};
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, NULL), 0);
    monitor->etw = etw;
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    return monitor;
}

TEST(a_second_monitor_does_not_disturb_the_first)
{
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.real_time = true, .knows_owners = true});
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator)};
    struct etw_emulator_session session;
    struct etwatch_monitor *first = watch(&etw), *second = watch(&etw);
    CHECK(etw_emulator_session(emulator, "etwatch-watch", &session));
    CHECK(etw_emulator_session(emulator, "etwatch-watch-2", &session));
    CHECK_EQ_UINT(counts_of(emulator).stops, 0);
    CHECK_EQ_INT(ew_etw_session_cleanup(etw.api, NULL), 0);
    CHECK_EQ_UINT(counts_of(emulator).ours, 2);
    etwatch_monitor_free(first);
    first = watch(&etw);
    CHECK_EQ_UINT(counts_of(emulator).ours, 2);
    etwatch_monitor_free(second);
    etwatch_monitor_free(first);
    CHECK_EQ_UINT(counts_of(emulator).ours, 0);
    etw_emulator_free(emulator);
}

static void count_orphans(void *ctx, const struct ew_etw_session_info *info)
{
    *(int *)ctx += info->orphan;
}

TEST(the_session_of_a_killed_program_is_an_orphan_and_is_taken_over)
{
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.real_time = true, .knows_owners = true});
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator)};
    int orphans = 0;
    etw_emulator_add(emulator, "etwatchdog", 0x100, 0);
    struct etwatch_monitor *killed = watch(&etw);
    CHECK_EQ_INT(ew_etw_session_list(etw.api, count_orphans, &orphans, NULL), 2);
    CHECK_EQ_INT(orphans, 0);
    etw_emulator_kill(emulator);
    CHECK_EQ_INT(ew_etw_session_list(etw.api, count_orphans, &orphans, NULL), 2);
    CHECK_EQ_INT(orphans, 1);
    struct etwatch_monitor *next = watch(&etw);
    CHECK_EQ_UINT(counts_of(emulator).ours,
                  2); /* together with the other session that only shares the start of the name */
    CHECK_EQ_UINT(counts_of(emulator).stops, 1);
    etwatch_monitor_free(next);
    etwatch_monitor_free(killed);
    etw_emulator_free(emulator);
}

enum { KILLS = 100 };

TEST(a_hundred_killed_programs_leave_one_session_of_each_kind_and_cleanup_removes_them)
{
    struct place place;
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.real_time = true, .knows_owners = true});
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator), .pool_bytes = 1 << 20};
    struct etwatch_monitor *watching[KILLS];
    struct etwatch_recorder *recording[KILLS];
    make_folder(&place);
    for (int i = 0; i < KILLS; i++) {
        /* Nothing is stopped. The memory is freed only for the test. */
        watching[i] = watch(&etw);
        recording[i] = start(emulator, place.path, NULL);
        CHECK_EQ_UINT(counts_of(emulator).ours, 2);
        etw_emulator_kill(emulator);
    }
    CHECK_EQ_INT(ew_etw_session_cleanup(etw.api, NULL), 2);
    CHECK_EQ_UINT(counts_of(emulator).ours, 0);
    CHECK_EQ_UINT(counts_of(emulator).sessions, 0);
    for (int i = 0; i < KILLS; i++) {
        etwatch_recorder_free(recording[i]);
        etwatch_monitor_free(watching[i]);
    }
    CHECK_EQ_UINT(counts_of(emulator).sessions, 0);
    remove_folder(&place);
    etw_emulator_free(emulator);
}
