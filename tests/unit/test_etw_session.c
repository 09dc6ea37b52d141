/* SPDX-License-Identifier: MIT */
/*
 * Sessions with the emulator: the calls made to Windows, that nothing is left behind, and the error
 * of every refusal.
 */
#include "test.h"

#include <stdio.h>

#include <string.h>

#include <etwatch/session.h>

#include "etw_emulator.h"
#include "source/etw/controller.h"

static const char *const default_name = "etwatch-watch";

static struct ew_etw_session *start(struct etw_emulator *emulator,
                                    const struct ew_etw_session_config *config)
{
    struct ew_etw_session *session = NULL;
    struct ew_error error = {0};
    int rc = ew_etw_session_start(etw_emulator_api(emulator), config, &session, &error);
    if (rc != 0)
        FAIL(error.message);
    return session;
}

static struct etw_emulator_session seen(struct etw_emulator *emulator, const char *name)
{
    struct etw_emulator_session session = {0};
    CHECK(etw_emulator_session(emulator, name, &session));
    return session;
}

static uint32_t ours(struct etw_emulator *emulator)
{
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    return counts.ours;
}

/* ------------------------------------------------------------------ requests */

TEST(a_session_is_a_system_logger_in_real_time_with_enough_buffers)
{
    static const struct {
        uint32_t cpus, buffer_kb, min_buffers, max_buffers;
        uint64_t memory_bytes;
    } rows[] = {
        {1, 64, 16, 64, 0},        {4, 64, 32, 64, 0},     {16, 64, 128, 256, 0},
        {64, 64, 512, 1024, 0},    {64, 128, 512, 512, 0}, {128, 64, 1024, 1024, 0},
        {256, 64, 1024, 1024, 0},  /* the limit of 64 MiB is fully used */
        {1024, 64, 2048, 2048, 0}, /* two per CPU in any case */
        {8, 64, 16, 16, 1 << 20},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct etw_emulator *emulator =
            etw_emulator_new(&(struct etw_emulator_config){.cpu_count = rows[i].cpus});
        struct ew_etw_session *session =
            start(emulator, &(struct ew_etw_session_config){
                                .buffer_kb = rows[i].buffer_kb == 64 ? 0 : rows[i].buffer_kb,
                                .memory_bytes = rows[i].memory_bytes});
        struct etw_emulator_session got = seen(emulator, default_name);
        CHECK_EQ_UINT(got.log_mode, 0x02000000 | 0x08000000 | 0x100);
        CHECK_EQ_UINT(got.buffer_kb, rows[i].buffer_kb);
        CHECK_EQ_UINT(got.min_buffers, rows[i].min_buffers);
        CHECK_EQ_UINT(got.max_buffers, rows[i].max_buffers);
        CHECK(!ew_etw_session_took_over(session));
        ew_etw_session_stop(session);
        CHECK_EQ_UINT(ours(emulator), 0);
        etw_emulator_free(emulator);
    }
}

enum { NO_SYSCONFIG = 0x10000000 };

TEST(a_session_writes_a_file_without_a_consumer)
{
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){0});
    struct ew_etw_session *session =
        start(emulator, &(struct ew_etw_session_config){.name = "etwatch-record",
                                                        .file = "C:\\Temp\\\xc3\xa4.etl"});
    CHECK_EQ_UINT(seen(emulator, "etwatch-record").log_mode, 0x02000000 | 0x08000000 | 0x1);
    /* Other readers of the file need the description of the machine. */
    CHECK_EQ_UINT(seen(emulator, "etwatch-record").enable_flags & NO_SYSCONFIG, 0);
    ew_etw_session_stop(session);
    CHECK_EQ_UINT(ours(emulator), 0);
    etw_emulator_free(emulator);
}

TEST(kernel_events_are_flags_of_the_session_on_every_windows)
{
    static const uint32_t builds[] = {19045, 20348, 22631, 26100};
    struct ew_etw_session_config config = {.kernel = EW_ETW_PROCESS | EW_ETW_CSWITCH | EW_ETW_DISK};
    for (size_t i = 0; i < sizeof builds / sizeof builds[0]; i++) {
        struct etw_emulator *emulator =
            etw_emulator_new(&(struct etw_emulator_config){.os_build = builds[i]});
        struct ew_etw_session *session = start(emulator, &config);
        CHECK_EQ_UINT(seen(emulator, default_name).enable_flags, 0x1 | 0x10 | 0x100 | NO_SYSCONFIG);
        CHECK_EQ_UINT(seen(emulator, default_name).providers, 0);
        CHECK_EQ_INT(ew_etw_session_set_kernel(session, EW_ETW_PROCESS | EW_ETW_NETWORK, NULL), 0);
        CHECK_EQ_UINT(seen(emulator, default_name).enable_flags, 0x1 | 0x10000 | NO_SYSCONFIG);
        CHECK_EQ_UINT(ew_etw_session_kernel(session), EW_ETW_PROCESS | EW_ETW_NETWORK);
        ew_etw_session_stop(session);
        etw_emulator_free(emulator);
    }
}

TEST(kernel_events_are_enabled_by_providers_if_flags_are_refused)
{
    struct ew_etw_session_config config = {.kernel = EW_ETW_PROCESS | EW_ETW_CSWITCH | EW_ETW_DISK};
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){
        .os_build = 20348, .fault = {.call = ETW_CALL_START, .code = 87, .times = 1}});
    struct ew_etw_session *session = start(emulator, &config);
    CHECK_EQ_UINT(seen(emulator, default_name).enable_flags, 0);
    CHECK_EQ_UINT(seen(emulator, default_name).providers, 3); /* process, scheduler, I/O */
    CHECK_EQ_UINT(seen(emulator, default_name).keywords, 0x1 | 0x200);
    CHECK_EQ_INT(ew_etw_session_set_kernel(session, EW_ETW_PROFILE | EW_ETW_PROCESS, NULL), 0);
    CHECK_EQ_UINT(seen(emulator, default_name).providers, 4);
    ew_etw_session_stop(session);
    etw_emulator_free(emulator);

    /* Older versions have no such providers: the refusal is final. */
    struct ew_error error = {0};
    emulator = etw_emulator_new(&(struct etw_emulator_config){
        .os_build = 19045, .fault = {.call = ETW_CALL_START, .code = 87, .times = 1}});
    CHECK_EQ_INT(ew_etw_session_start(etw_emulator_api(emulator), &config, &session, &error),
                 ETWATCH_EINVAL);
    CHECK_EQ_INT(error.os_code, 87);
    CHECK_EQ_UINT(ours(emulator), 0);
    etw_emulator_free(emulator);
}

TEST(kernel_events_have_names)
{
    uint32_t set = 0;
    struct ew_error error = {0};
    CHECK_EQ_INT(ew_etw_kernel_parse("process,cswitch,hardfaults", &set, &error), 0);
    CHECK_EQ_UINT(set, EW_ETW_PROCESS | EW_ETW_CSWITCH | EW_ETW_HARD_FAULTS);
    CHECK_EQ_UINT(ew_etw_kernel_flags(set), 0x1 | 0x10 | 0x2000);
    CHECK_EQ_UINT(ew_etw_kernel_from_flags(0x1 | 0x10 | 0x2000), set);
    CHECK_EQ_INT(ew_etw_kernel_parse("process,swaps", &set, &error), ETWATCH_EINVAL);
    CHECK_CONTAINS(error.message, "swaps");
    CHECK_CONTAINS(error.fix, "cswitch");
    CHECK_EQ_INT(ew_etw_kernel_parse("", &set, &error), 0);
    CHECK_EQ_UINT(set, 0);
    for (uint32_t i = 0; i < EW_ETW_KERNEL_COUNT; i++) {
        CHECK_EQ_INT(ew_etw_kernel_parse(ew_etw_kernel_name(i), &set, &error), 0);
        CHECK_EQ_UINT(set, UINT32_C(1) << i);
        CHECK(ew_etw_kernel_flags(set) != 0);
    }
}

TEST(stacks_and_providers_are_enabled_with_their_filters)
{
    static const uint32_t pids[] = {4, 8, 12};
    static const uint16_t ids[] = {1, 2};
    struct ew_etw_provider providers[] = {
        {.guid = {1}, .level = 4, .keywords = 0x10, .pids = pids, .pid_count = 3},
        {.guid = {2}, .event_ids = ids, .event_id_count = 2, .pids = pids, .pid_count = 1},
        {.guid = {3}},
    };
    struct ew_etw_session_config config = {.kernel = EW_ETW_PROFILE | EW_ETW_CSWITCH,
                                           .stacks = EW_ETW_PROFILE | EW_ETW_CSWITCH,
                                           .providers = providers,
                                           .provider_count = 3};
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.os_build = 19045});
    struct ew_etw_session *session = start(emulator, &config);
    struct etw_emulator_session got = seen(emulator, default_name);
    CHECK_EQ_UINT(got.stack_count, 2);
    CHECK_EQ_UINT(got.providers, 3);
    CHECK_EQ_UINT(got.filters, 3);
    CHECK_EQ_INT(ew_etw_session_restart(session, NULL), 0);
    CHECK_EQ_UINT(seen(emulator, default_name).filters, 3);
    ew_etw_session_stop(session);
    providers[0].pid_count = 9;
    struct ew_error error = {0};
    CHECK_EQ_INT(ew_etw_session_start(etw_emulator_api(emulator), &config, &session, &error),
                 ETWATCH_EINVAL);
    CHECK_EQ_UINT(ours(emulator), 0);
    etw_emulator_free(emulator);
}

TEST(the_interval_of_the_profiler_is_restored)
{
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){0});
    struct etw_emulator_counts counts;
    struct ew_etw_session_config config = {.kernel = EW_ETW_PROFILE, .profile_100ns = 1221};
    struct ew_etw_session *session = start(emulator, &config);
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(counts.profile_interval_100ns, 1221);
    CHECK_EQ_INT(ew_etw_session_restart(session, NULL), 0);
    ew_etw_session_stop(session);
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(counts.profile_interval_100ns, 10000);
    etw_emulator_free(emulator);
}

/* -------------------------------------------------------------------- left behind */

TEST(a_killed_process_leaves_one_session_that_the_next_takes_over)
{
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){0});
    struct ew_etw_session *lost[100];
    for (size_t i = 0; i < 100; i++) {
        /* Killed: nothing is stopped. The memory is freed only for the test. */
        lost[i] = start(emulator, &(struct ew_etw_session_config){0});
        CHECK_EQ_INT(ew_etw_session_took_over(lost[i]), i > 0);
        CHECK_EQ_UINT(ours(emulator), 1);
    }
    CHECK_EQ_INT(ew_etw_session_cleanup(etw_emulator_api(emulator), NULL), 1);
    CHECK_EQ_UINT(ours(emulator), 0);
    for (size_t i = 0; i < 100; i++)
        ew_etw_session_stop(lost[i]);
    etw_emulator_free(emulator);
}

struct names {
    uint32_t count, ours;
    bool kernel_logger;
};

static void take_name(void *ctx, const struct ew_etw_session_info *info)
{
    struct names *names = ctx;
    names->count++;
    names->ours += info->ours;
    names->kernel_logger = names->kernel_logger || strcmp(info->name, "NT Kernel Logger") == 0;
    CHECK_EQ_UINT(info->buffer_kb, 64);
}

TEST(all_sessions_are_listed_and_only_own_sessions_are_ended)
{
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.max_sessions = 200});
    struct names names = {0};
    etw_emulator_add(emulator, "NT Kernel Logger", 0x100, 0x10);
    etw_emulator_add(emulator, "etwatchdog", 0x100, 0);
    etw_emulator_add(emulator, "etwatch", 0x100, 0);
    etw_emulator_add(emulator, "etwatch-record", 0x100, 0);
    char name[16] = "other 00";
    for (int i = 0; i < 80; i++) {
        name[6] = (char)('0' + i / 10);
        name[7] = (char)('0' + i % 10);
        etw_emulator_add(emulator, name, 0x100, 0);
    }
    CHECK_EQ_INT(ew_etw_session_list(etw_emulator_api(emulator), take_name, &names, NULL), 84);
    CHECK_EQ_UINT(names.count, 84);
    CHECK_EQ_UINT(names.ours, 2);
    CHECK(names.kernel_logger);
    CHECK_EQ_INT(ew_etw_session_cleanup(etw_emulator_api(emulator), NULL), 2);
    CHECK_EQ_INT(ew_etw_session_cleanup(etw_emulator_api(emulator), NULL), 0);
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(counts.sessions, 82);
    struct ew_etw_session_info info;
    struct ew_error error = {0};
    CHECK_EQ_INT(
        ew_etw_session_query(etw_emulator_api(emulator), "NT Kernel Logger", &info, &error), 0);
    CHECK_EQ_UINT(info.kernel_flags, 0x10);
    CHECK_EQ_INT(ew_etw_session_query(etw_emulator_api(emulator), "none", &info, &error),
                 ETWATCH_ENOENT);
    CHECK_CONTAINS(error.message, "none");
    etw_emulator_free(emulator);
}

/* ------------------------------------------------------------------------ refusals */

static void check_refusal(const struct etw_emulator_config *emulated,
                          const struct ew_etw_session_config *config, int code, int os_code,
                          const char *fix)
{
    struct etw_emulator *emulator = etw_emulator_new(emulated);
    struct ew_etw_session *session = NULL;
    struct ew_error error = {0};
    for (char number = '1'; number <= '9' && emulated->stuck_session; number++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s-%c", default_name, number);
        if (number == '1')
            name[strlen(default_name)] = '\0';
        etw_emulator_add(emulator, name, 0x02000100, 0);
    }
    struct etw_emulator_counts before, after;
    etw_emulator_counts(emulator, &before);
    CHECK_EQ_INT(ew_etw_session_start(etw_emulator_api(emulator), config, &session, &error), code);
    CHECK(session == NULL);
    CHECK_EQ_INT(error.code, code);
    CHECK_EQ_INT(error.os_code, os_code);
    CHECK_CONTAINS(error.fix, fix);
    etw_emulator_counts(emulator, &after);
    CHECK_EQ_UINT(after.sessions, before.sessions);
    CHECK_EQ_UINT(after.profile_interval_100ns, 10000);
    etw_emulator_free(emulator);
}

TEST(every_refusal_has_its_code_and_a_fix)
{
    struct ew_etw_session_config plain = {0}, profile = {.kernel = EW_ETW_PROFILE};
    test_row("no rights");
    check_refusal(&(struct etw_emulator_config){.no_rights = true}, &plain, ETWATCH_EPERM, 5,
                  "Performance Log Users");
    test_row("no privilege");
    check_refusal(&(struct etw_emulator_config){.no_privilege = true}, &profile, ETWATCH_EPERM,
                  1300, "SeSystemProfilePrivilege");
    test_row("slots full");
    check_refusal(&(struct etw_emulator_config){.loggers_in_use = true}, &plain, ETWATCH_ELIMIT,
                  1450, "etwatch sessions");
    test_row("none can be stopped");
    check_refusal(&(struct etw_emulator_config){.stuck_session = true}, &plain, ETWATCH_ESTATE, 183,
                  "logman stop");
    test_row("buffers");
    check_refusal(&(struct etw_emulator_config){0},
                  &(struct ew_etw_session_config){.buffer_kb = 20000}, ETWATCH_EINVAL, 0, "");
    check_refusal(&(struct etw_emulator_config){0},
                  &(struct ew_etw_session_config){.min_buffers = 9, .max_buffers = 8},
                  ETWATCH_EINVAL, 0, "");
    test_row("names");
    check_refusal(&(struct etw_emulator_config){0},
                  &(struct ew_etw_session_config){.name = "NT Kernel Logger"}, ETWATCH_EINVAL, 0,
                  "etwatch-");
    check_refusal(&(struct etw_emulator_config){0},
                  &(struct ew_etw_session_config){.name = "etwatch-\xff"}, ETWATCH_EINVAL, 0, "");
}

TEST(every_error_code_has_a_text)
{
    static const struct {
        uint32_t os_code;
        int code;
    } rows[] = {
        {5, ETWATCH_EPERM},     {1314, ETWATCH_EPERM}, {1300, ETWATCH_EPERM},
        {1450, ETWATCH_ELIMIT}, {183, ETWATCH_ESTATE}, {87, ETWATCH_EINVAL},
        {4201, ETWATCH_ENOENT}, {50, ETWATCH_ENOTSUP}, {1359, ETWATCH_EOS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_error error = {0};
        CHECK_EQ_INT(ew_etw_fail(&error, rows[i].os_code, "cannot start", "x"), rows[i].code);
        CHECK_EQ_INT(error.os_code, rows[i].os_code);
        CHECK_CONTAINS(error.message, "cannot start 'x'");
    }
}

static int start_and_stop(void *ctx)
{
    struct etw_emulator *emulator = ctx;
    struct ew_etw_provider provider = {.guid = {1}};
    struct ew_etw_session_config config = {.providers = &provider, .provider_count = 1};
    struct ew_etw_session *session = NULL;
    int rc = ew_etw_session_start(etw_emulator_api(emulator), &config, &session, NULL);
    if (rc == 0)
        ew_etw_session_stop(session);
    CHECK_EQ_UINT(ours(emulator), 0);
    return rc;
}

TEST(without_memory_nothing_is_left_running)
{
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){0});
    TORTURE(start_and_stop, emulator);
    etw_emulator_free(emulator);
}

static void count_session(void *ctx, const struct etwatch_session_info *info)
{
    CHECK(info->name != NULL);
    ++*(int *)ctx;
}

/* Only Windows has sessions: elsewhere the error explains that. */
TEST(without_etw_the_public_list_is_an_error_with_a_reason)
{
    struct ew_error why = {0};
    struct etwatch_error_info error = {.size = sizeof error};
    int count = 0;
    if (ew_etw_real_api(&why) != NULL)
        SKIP("this is Windows");
    CHECK_EQ_INT(etwatch_session_list(count_session, &count, &error), ETWATCH_ENOTSUP);
    CHECK_EQ_INT(count, 0);
    CHECK_EQ_STR(error.message, why.message);
    CHECK_EQ_INT(etwatch_session_cleanup(&error), ETWATCH_ENOTSUP);
    CHECK_EQ_INT(etwatch_session_list(NULL, NULL, &error), ETWATCH_EINVAL);
}
