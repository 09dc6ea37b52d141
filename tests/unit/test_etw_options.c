/* SPDX-License-Identifier: MIT */
/*
 * Session options in the public structs: they reach Windows unchanged, can be changed while a
 * monitor runs, and impossible ones are refused before anything starts.
 */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include <etwatch/session.h>

#include "base/sha1.h"
#include "decode/guid.h"
#include "etw_emulator.h"
#include "monitor/monitor.h"
#include "os/os.h"
#include "source/etw/consumer.h"
#include "source/etw/etw.h"
#include "source/etw/session_options.h"
#include "system.h"

enum { NO_SYSCONFIG = 0x10000000 }; /* of every session that writes no file */

static struct etw_emulator_session seen(struct etw_emulator *emulator, const char *name)
{
    struct etw_emulator_session session = {0};
    CHECK(etw_emulator_session(emulator, name, &session));
    return session;
}

static struct etw_emulator_counts counts_of(struct etw_emulator *emulator)
{
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    return counts;
}

/* ------------------------------------------------------------------------ refusals */

static const struct etwatch_provider nameless = {.size = sizeof nameless};
static const struct etwatch_provider crowded = {
    .size = sizeof crowded, .name = "X", .pids = (const uint32_t[9]){0}, .pid_count = 9};
static const struct etwatch_provider loud = {.size = sizeof loud, .name = "X", .level = 256};

TEST(impossible_options_are_refused_by_name)
{
    static const struct {
        const char *part; /* part of the message */
        struct etwatch_session_options options;
    } rows[] = {
        {"buffer_kb must be 4 to 16384, not 3", {.buffer_kb = 3}},
        {"buffer_kb must be 4 to 16384", {.buffer_kb = 16385}},
        {"min_buffers (9) is more than max_buffers (8)", {.min_buffers = 9, .max_buffers = 8}},
        {"at most 65536 buffers", {.min_buffers = 65537}},
        {"flush_ms must be at most", {.flush_ms = 60001}},
        {"profile_hz must be at most", {.profile_hz = 8001}},
        {"kernel: 'swaps' is not a kind", {.kernel = "process,swaps"}},
        {"kernel names no kind", {.kernel = ""}},
        {"stacks: 'EVENT_TRACE_FLAG_X' is not a kind", {.stacks = "EVENT_TRACE_FLAG_X"}},
        {"the name of a session must have 1 to", {.name = ""}},
        {"a count is set, but its list is NULL", {.provider_count = 1}},
        {"at most 64 providers", {.providers = &nameless, .provider_count = 65}},
        {"a provider needs a name", {.providers = &nameless, .provider_count = 1}},
        {"limited to 8 processes and 64 events", {.providers = &crowded, .provider_count = 1}},
        {"level must be at most 255", {.providers = &loud, .provider_count = 1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct etwatch_session_options options = rows[i].options;
        struct etwatch_config config = {
            .size = sizeof config, .flags = ETWATCH_CONFIG_ALL, .session_options = &options};
        struct etwatch_error_info error = {.size = sizeof error};
        struct etwatch_monitor *monitor = NULL;
        test_row(rows[i].part);
        options.size = sizeof options;
        CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, &error), ETWATCH_EINVAL);
        CHECK_CONTAINS(error.message, rows[i].part);
        CHECK(monitor == NULL);
    }
}

TEST(session_options_and_a_foreign_session_exclude_each_other)
{
    struct etwatch_session_options options = {.size = sizeof options};
    struct etwatch_config config = {.size = sizeof config,
                                    .flags = ETWATCH_CONFIG_ALL,
                                    .session = "x",
                                    .session_options = &options};
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_monitor *monitor = NULL;
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, &error), ETWATCH_EINVAL);
    CHECK_CONTAINS(error.message, "session is read as it is");
    config.session = NULL;
    config.source = ETWATCH_SOURCE_POLL;
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, &error), ETWATCH_EINVAL);
    CHECK_CONTAINS(error.message, "only for the source etw");
    config.source = ETWATCH_SOURCE_AUTO;
    options.size = 3;
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, &error), ETWATCH_EINVAL);
    CHECK_CONTAINS(error.message, "session_options.size");
}

/* On a system without ETW no other source replaces it. */
TEST(a_session_with_options_is_not_replaced_by_another_source)
{
    struct etwatch_session_options options = {.size = sizeof options, .kernel = "cswitch"};
    struct etwatch_config config = {
        .size = sizeof config, .flags = ETWATCH_CONFIG_ALL, .session_options = &options};
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_monitor *monitor = NULL;
    struct etwatch_recorder *recorder = NULL;
    if (ew_source_native()->id == ETWATCH_SOURCE_ETW)
        SKIP("this is Windows");
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, &error), 0);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, &error), ETWATCH_ENOTSUP);
    CHECK_CONTAINS(error.message, "Windows only");
    etwatch_monitor_free(monitor);
    CHECK_EQ_INT(etwatch_recorder_start("x.etl", NULL, &recorder, &error), ETWATCH_ENOTSUP);
    CHECK(recorder == NULL);
}

/* ----------------------------------------------------------------------- providers */

static void check_provider(const char *name, const char *guid)
{
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){0});
    uint8_t found[16];
    char text[EW_GUID_TEXT];
    struct ew_error error = {0};
    test_row(name);
    CHECK_EQ_INT(ew_provider_find(etw_emulator_api(emulator), name, found, &error), 0);
    ew_guid_text(found, text);
    CHECK_EQ_STR(text, guid);
    etw_emulator_free(emulator);
}

TEST(a_provider_is_found_by_guid_by_name_or_by_the_hash_of_its_name)
{
    const char *process = "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716";
    check_provider("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716", process);
    check_provider("{22FB2CD6-0E7B-422B-A0C7-2FAD1FD0E716}", process);
    check_provider("Microsoft-Windows-Kernel-Process", process);
    check_provider("microsoft-windows-kernel-process", process);
    check_provider("Microsoft.ML.ONNXRuntime", "3a26b1ff-7484-7484-7484-15261f42614d");
    check_provider(ETW_EMULATOR_PROVIDER, "030201e7-0504-0706-0000-000000000000");
    check_provider("*MyCompany.MyComponent", "ce5fa4ea-ab00-5402-8b76-9f76ac858fb5");
    check_provider("*MYCOMPANY.mycomponent", "ce5fa4ea-ab00-5402-8b76-9f76ac858fb5");
}

TEST(an_unknown_provider_is_refused_with_a_fix)
{
    static const char *const names[] = {"No-Such-Provider", "*", "*\xff",
                                        "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e71"};
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){0});
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct etwatch_provider provider = {.size = sizeof provider, .name = names[i]};
        struct etwatch_session_options options = {
            .size = sizeof options, .providers = &provider, .provider_count = 1};
        struct ew_etw_config etw = {.api = etw_emulator_api(emulator)};
        struct etwatch_config config = {
            .size = sizeof config, .flags = ETWATCH_CONFIG_ALL, .session_options = &options};
        struct etwatch_error_info error = {.size = sizeof error};
        struct etwatch_monitor *monitor = NULL;
        test_row(names[i]);
        CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, NULL), 0);
        monitor->etw = &etw;
        CHECK_EQ_INT(etwatch_monitor_open(monitor, &error), ETWATCH_EINVAL);
        CHECK_CONTAINS(error.message, "no provider is named");
        CHECK_CONTAINS(error.fix, "logman query providers");
        etwatch_monitor_free(monitor);
    }
    CHECK_EQ_UINT(counts_of(emulator).starts, 0);
    etw_emulator_free(emulator);
}

TEST(sha1_matches_the_standard)
{
    static const struct {
        const char *text;
        uint8_t first[4];
    } rows[] = {
        {"", {0xda, 0x39, 0xa3, 0xee}},
        {"abc", {0xa9, 0x99, 0x3e, 0x36}},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", {0x84, 0x98, 0x3e, 0x44}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_sha1 sha1;
        uint8_t digest[20];
        ew_sha1_init(&sha1);
        ew_sha1_add(&sha1, rows[i].text, strlen(rows[i].text));
        ew_sha1_end(&sha1, digest);
        CHECK_EQ_MEM(digest, rows[i].first, 4);
    }
}

/* -------------------------------------------------------------------- what arrives */

static struct etwatch_monitor *open_with_options(struct ew_etw_config *etw,
                                                 const struct etwatch_session_options *options)
{
    struct etwatch_monitor *monitor = NULL;
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_config config = {.size = sizeof config,
                                    .flags = ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_NO_BUDGET,
                                    .hz = 100,
                                    .latency_ms = 20,
                                    .session_options = options};
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, NULL), 0);
    monitor->etw = etw;
    if (etwatch_monitor_open(monitor, &error) != 0)
        FAIL(error.message);
    return monitor;
}

TEST(every_option_reaches_windows)
{
    const uint32_t pids[2] = {7, 8};
    const uint16_t ids[3] = {1, 2, 3};
    struct etwatch_provider providers[2] = {
        {.size = sizeof providers[0],
         .name = ETW_EMULATOR_PROVIDER,
         .keywords = 0x40000000,
         .pids = pids,
         .pid_count = 2,
         .event_ids = ids,
         .event_id_count = 3},
        {.size = sizeof providers[0], .name = "*Some.Thing", .keywords = 0x80000000},
    };
    struct etwatch_session_options options = {
        .size = sizeof options,
        .buffer_kb = 128,
        .min_buffers = 10,
        .max_buffers = 20,
        .profile_hz = 2000,
        .name = "mine",
        .kernel = "EVENT_TRACE_FLAG_CSWITCH,disk,EVENT_TRACE_FLAG_MEMORY_PAGE",
        .stacks = "cswitch,disk-init",
        .providers = providers,
        .provider_count = 2,
    };
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.os_build = 19045, .real_time = true});
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator)};
    struct etwatch_monitor *monitor = open_with_options(&etw, &options);
    struct etw_emulator_session got = seen(emulator, "etwatch-mine");
    CHECK_EQ_UINT(got.buffer_kb, 128);
    CHECK_EQ_UINT(got.min_buffers, 10);
    CHECK_EQ_UINT(got.max_buffers, 20);
    /* Processes and threads are always enabled, and the profiler with its rate. */
    CHECK_EQ_UINT(got.enable_flags, 0x1 | 0x2 | 0x10 | 0x100 | 0x1000 | 0x1000000 | NO_SYSCONFIG);
    CHECK_EQ_UINT(got.stack_count, 1 + 3);
    CHECK_EQ_UINT(got.providers, 2);
    CHECK_EQ_UINT(got.filters, 2);
    CHECK_EQ_UINT(got.keywords, 0xC0000000);
    CHECK_EQ_UINT(counts_of(emulator).profile_interval_100ns, 5000);
    etwatch_monitor_free(monitor);
    CHECK_EQ_UINT(counts_of(emulator).sessions, 0);
    CHECK_EQ_UINT(counts_of(emulator).profile_interval_100ns, 10000);
    etw_emulator_free(emulator);
}

/* -------------------------------------------------------------- while it runs */

static bool is_available(struct etwatch_monitor *monitor, uint32_t metric)
{
    struct etwatch_meta meta = {.size = sizeof meta};
    CHECK_EQ_INT(etwatch_monitor_meta(monitor, &meta), 0);
    return etwatch_metric_set_has(&meta.available, metric);
}

TEST(kernel_events_change_while_a_monitor_runs)
{
    struct etw_emulator *emulator = etw_emulator_new(
        &(struct etw_emulator_config){.os_build = 19045, .cpu_count = 2, .real_time = true});
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator), .flush_ms = 5};
    struct etwatch_config config = {.size = sizeof config,
                                    .flags = ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_DENSE |
                                             ETWATCH_CONFIG_NO_BUDGET,
                                    .hz = 100,
                                    .latency_ms = 20};
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_monitor *monitor = NULL;
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, NULL), 0);
    monitor->etw = &etw;
    CHECK_EQ_INT(etwatch_monitor_set_kernel(monitor, "disk", NULL, &error), ETWATCH_ESTATE);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    CHECK(is_available(monitor, ETWATCH_M_cpu_ns));
    CHECK_EQ_INT(etwatch_monitor_set_kernel(monitor, "disk,swaps", NULL, &error), ETWATCH_EINVAL);
    CHECK_CONTAINS(error.message, "swaps");
    CHECK_EQ_INT(etwatch_monitor_set_kernel(monitor, NULL, NULL, &error), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_monitor_set_kernel(monitor, "disk", "disk-init", &error), 0);
    CHECK_EQ_UINT(seen(emulator, "etwatch-watch").enable_flags, 0x1 | 0x2 | 0x100 | NO_SYSCONFIG);
    CHECK_EQ_UINT(seen(emulator, "etwatch-watch").stack_count, 3);
    CHECK(!is_available(monitor, ETWATCH_M_cpu_ns));
    CHECK(is_available(monitor, ETWATCH_M_disk_read_bytes));
    CHECK_EQ_INT(etwatch_monitor_set_kernel(monitor, "cswitch", "", &error), 0);
    CHECK_EQ_UINT(seen(emulator, "etwatch-watch").stack_count, 0);
    CHECK_EQ_UINT(seen(emulator, "etwatch-watch").enable_flags, 0x1 | 0x2 | 0x10 | NO_SYSCONFIG);
    CHECK(is_available(monitor, ETWATCH_M_cpu_ns));
    etw_emulator_set_rights(emulator, false, true);
    CHECK_EQ_INT(etwatch_monitor_set_kernel(monitor, "cswitch", "cswitch", &error), ETWATCH_EPERM);
    CHECK_CONTAINS(error.fix, "SeSystemProfilePrivilege");
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
    etwatch_monitor_free(monitor);
    etw_emulator_free(emulator);
}

TEST(only_own_sessions_can_be_changed)
{
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.real_time = true});
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator)};
    struct etwatch_config config = {
        .size = sizeof config, .flags = ETWATCH_CONFIG_ALL, .session = "NT Kernel Logger"};
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_monitor *monitor = NULL;
    etw_emulator_add(emulator, "NT Kernel Logger", 0x100, 0x13);
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, NULL), 0);
    monitor->etw = &etw;
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    CHECK_EQ_INT(etwatch_monitor_set_kernel(monitor, "disk", NULL, &error), ETWATCH_ESTATE);
    CHECK_EQ_UINT(seen(emulator, "NT Kernel Logger").enable_flags, 0x13);
    etwatch_monitor_free(monitor);
    config.session = NULL;
    config.source = ETWATCH_SOURCE_POLL;
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, NULL), 0);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    CHECK_EQ_INT(etwatch_monitor_set_kernel(monitor, "disk", NULL, &error), ETWATCH_ENOTSUP);
    etwatch_monitor_free(monitor);
    etw_emulator_free(emulator);
}
