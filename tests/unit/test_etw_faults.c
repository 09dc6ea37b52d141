/* SPDX-License-Identifier: MIT */
/*
 * Windows as its documentation describes it, and as it might be: a wrong keyword gives no events,
 * every call can fail, handles are reused, a flush has no effect, ProcessTrace ends at once or
 * never. The outcome is always events, polling, or an error with the code of Windows; never a
 * session of another program that was changed, a 0 for something unknown, or an endless wait.
 */
#include "etw_kit.h"

#include <etwatch/metrics.h>
#include <etwatch/session.h>

#include "etw_gates.h"
#include "listing_kit.h"
#include "monitor/monitor.h"
#include "source/etw/classes.h"
#include "source/etw/session_options.h"
#include "source/poll_windows/poll.h"

/* -------------------------------------------------------------------------- the table */

/* Rows of the gate table have the names of Windows. */
TEST(flags_and_keywords_are_those_of_windows)
{
    for (size_t i = 0; i < etw_gate_count; i++) {
        const struct etw_gate *gate = &etw_gates[i];
        char name[64];
        uint32_t set = 0;
        (void)snprintf(name, sizeof name, "EVENT_TRACE_FLAG_%s", gate->name);
        test_row(name);
        CHECK_EQ_INT(ew_etw_kernel_parse(name, &set, NULL), 0);
        CHECK_EQ_UINT(ew_etw_kernel_flags(set), gate->flag);
        for (uint32_t provider = 0; provider < EW_ETW_SYSTEM_PROVIDERS; provider++) {
            uint32_t row = etw_gate_provider(ew_etw_system_provider(provider));
            CHECK(row < ETW_GATE_PROVIDERS);
            CHECK_EQ_UINT(ew_etw_kernel_keywords(set, provider),
                          row == gate->provider ? gate->keyword : 0);
        }
    }
}

TEST(every_kind_of_kernel_event_is_in_the_table)
{
    for (uint32_t i = 0; i < EW_ETW_KERNEL_COUNT; i++) {
        uint32_t flag = ew_etw_kernel_flags(1u << i), found = 0;
        for (size_t k = 0; k < etw_gate_count; k++)
            found += etw_gates[k].flag == flag;
        test_row(ew_etw_kernel_name(i));
        CHECK(found > 0);
    }
}

/* -------------------------------------------------------------------------- a monitor */

struct watched {
    uint32_t samples;
    uint64_t lost, lost_buffers;
    bool file_io_known, file_io_nonzero, cpu_known;
    bool named;             /* a preexisting process */
    uint64_t most_switches; /* in one sample */
    uint32_t last_source;
};

static void note_samples(void *ctx, const struct etwatch_samples *batch)
{
    struct watched *watched = ctx;
    for (size_t i = 0; i < batch->count; i++) {
        const struct etwatch_sample *sample = etwatch_sample_at(batch, i);
        watched->samples++;
        watched->last_source = sample->source;
        watched->named |=
            (sample->flags & ETWATCH_SAMPLE_PREEXISTING) != 0 && sample->name[0] != '\0';
        if (sample->source != ETWATCH_SOURCE_ETW || sample->type != ETWATCH_TYPE_SAMPLE)
            continue;
        bool known = etwatch_sample_has(sample, ETWATCH_M_io_read_bytes);
        watched->file_io_known |= known;
        watched->file_io_nonzero |= known && sample->io_read_bytes + sample->io_write_bytes > 0;
        watched->cpu_known |= etwatch_sample_has(sample, ETWATCH_M_cpu_ns);
        if (etwatch_sample_has(sample, ETWATCH_M_switches_voluntary)) {
            uint64_t switches = sample->switches_voluntary + sample->switches_involuntary;
            if (switches > watched->most_switches)
                watched->most_switches = switches;
        }
    }
}

static void note_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct watched *watched = ctx;
    watched->lost += loss->count;
    watched->lost_buffers += loss->stage == ETWATCH_LOSS_BUFFERS ? loss->count : 0;
}

struct outcome {
    int error;
    struct etwatch_error_info info;
    struct etwatch_meta meta;
    char fallback[512];
    struct etwatch_stats stats;
};

static struct etwatch_monitor *new_monitor(struct watched *watched, const struct ew_etw_config *etw)
{
    struct etwatch_monitor *monitor = NULL;
    struct etwatch_config config = {
        .size = sizeof config,
        .flags = ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_NO_BUDGET,
        .hz = 100,
        .latency_ms = 20,
    };
    struct etwatch_callbacks callbacks = {
        .size = sizeof callbacks, .ctx = watched, .on_samples = note_samples, .on_loss = note_loss};
    CHECK_EQ_INT(etwatch_monitor_new(&config, &callbacks, &monitor, NULL), 0);
    monitor->etw = etw;
    return monitor;
}

static struct etw_emulator_counts counts_of(struct etw_emulator *emulator)
{
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    return counts;
}

/* A short run may be over before the flushing thread makes its calls. */
static bool is_over(struct etw_emulator *emulator, uint32_t call)
{
    bool made = counts_of(emulator).calls[call] > 0;
    return etw_emulator_done(emulator) &&
           (made || (call != ETW_CALL_QUERY && call != ETW_CALL_FLUSH));
}

/* Watches until everything has been delivered, and the call was made, or the monitor polls. */
static struct outcome watch_call(struct etw_emulator *emulator, struct ew_etw_config *etw,
                                 struct watched *watched, uint32_t call)
{
    struct outcome outcome = {.info = {.size = sizeof outcome.info},
                              .meta = {.size = sizeof outcome.meta},
                              .stats = {.size = sizeof outcome.stats}};
    etw->api = etw_emulator_api(emulator);
    etw->flush_ms = etw->flush_ms == 0 ? 5 : etw->flush_ms;
    struct etwatch_monitor *monitor = new_monitor(watched, etw);
    outcome.error = etwatch_monitor_open(monitor, &outcome.info);
    for (int i = 0; i < 2000 && outcome.error == 0; i++) {
        int rc = etwatch_monitor_poll(monitor, 10, &outcome.info);
        outcome.error = rc < 0 ? rc : 0;
        CHECK_EQ_INT(etwatch_monitor_meta(monitor, &outcome.meta), 0);
        if (is_over(emulator, call) || outcome.meta.source == ETWATCH_SOURCE_POLL)
            break;
    }
    if (outcome.error == 0) {
        CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
        CHECK_EQ_INT(etwatch_monitor_meta(monitor, &outcome.meta), 0);
        (void)snprintf(outcome.fallback, sizeof outcome.fallback, "%s", outcome.meta.fallback);
        CHECK_EQ_INT(etwatch_monitor_stats(monitor, &outcome.stats), 0);
    }
    etwatch_monitor_free(monitor);
    return outcome;
}

static struct outcome watch(struct etw_emulator *emulator, struct ew_etw_config *etw,
                            struct watched *watched)
{
    return watch_call(emulator, etw, watched, ETW_CALL_NONE);
}

/* ----------------------------------------------------------------- what is not logged */

static struct watched watch_machine(const struct etw_emulator_config *given, uint32_t way)
{
    struct recorded_scenario recorded;
    struct watched watched = {0};
    struct etw_emulator_config config = *given;
    record(&recorded,
           &(struct etl_scenario_config){
               .classes = ETL_EVERYTHING, .cpu_count = 2, .seed = 7, .event_count = 4000});
    config.cpu_count = 2;
    config.real_time = config.to_now = true;
    config.recording = recorded.memory.bytes;
    config.recording_size = recorded.memory.size;
    struct etw_emulator *emulator = etw_emulator_new(&config);
    struct ew_etw_config etw = {.session = {.way = way}};
    struct outcome outcome = watch(emulator, &etw, &watched);
    CHECK_EQ_INT(outcome.error, 0);
    CHECK_EQ_UINT(outcome.meta.source, ETWATCH_SOURCE_ETW);
    etw_emulator_free(emulator);
    forget(&recorded);
    return watched;
}

TEST(file_io_is_measured_on_every_windows_and_unknown_where_it_is_not_logged)
{
    static const struct {
        const char *remark;
        uint32_t build, way;
        bool known;
    } rows[] = {
        {"Windows 10", 19045, EW_ETW_WAY_ANY, true},
        {"Server 2022", 20348, EW_ETW_WAY_ANY, true},
        {"Windows 11", 22631, EW_ETW_WAY_ANY, true},
        {"Windows 11 24H2, providers", 26100, EW_ETW_WAY_PROVIDERS, true},
        /* SYSTEM_IO_KW_FILE_INIT does not exist there yet. */
        {"Server 2022, providers", 20348, EW_ETW_WAY_PROVIDERS, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].remark);
        struct watched watched =
            watch_machine(&(struct etw_emulator_config){.os_build = rows[i].build}, rows[i].way);
        CHECK(watched.cpu_known);
        CHECK_EQ_INT(watched.file_io_known, rows[i].known);
        CHECK_EQ_INT(watched.file_io_nonzero, rows[i].known);
    }
}

TEST(a_rundown_may_be_late_missing_or_repeated_at_the_end)
{
    static const struct {
        const char *remark;
        struct etw_emulator_config emulated;
        bool named;
    } rows[] = {
        {"late", {.late_rundown_ms = 300}, true},
        {"missing", {.no_rundown = true}, true}, /* later events have the names */
        {"at the end too", {.rundown_at_stop = true}, true},
        {"at the end too, whole buffers", {.rundown_at_stop = true, .offers_buffers = true}, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].remark);
        struct watched watched = watch_machine(&rows[i].emulated, EW_ETW_WAY_ANY);
        CHECK_EQ_UINT(watched.lost, 0);
        CHECK(watched.samples > 0);
        CHECK_EQ_INT(watched.named, rows[i].named);
    }
}

/* -------------------------------------------------------------------- the fault matrix */

static const struct etw_emulator_config short_run = {
    .cpu_count = 2, .real_time = true, .generate = 300, .rate_hz = 100000};

/* What a session is made with, so that it needs a call. */
enum how {
    PLAIN,
    BY_PROVIDERS,
    WITH_EXTRAS, /* a provider, stacks, a profile interval and counters */
    LITTLE_MEMORY,
};

struct fault_row {
    const char *remark;
    uint32_t call;
    enum how how;
    enum { EACH_WAY, BY_EVENT, BY_BUFFER } delivery;
};

/* Every call, in each kind of session that makes it. */
static const struct fault_row fault_rows[] = {
    {"start", ETW_CALL_START, PLAIN, EACH_WAY},
    {"start, providers", ETW_CALL_START, BY_PROVIDERS, EACH_WAY},
    {"query", ETW_CALL_QUERY, PLAIN, EACH_WAY},
    {"stop", ETW_CALL_STOP, PLAIN, EACH_WAY},
    {"flush", ETW_CALL_FLUSH, PLAIN, EACH_WAY},
    {"enable, system providers", ETW_CALL_ENABLE, BY_PROVIDERS, EACH_WAY},
    {"enable, a provider", ETW_CALL_ENABLE, WITH_EXTRAS, EACH_WAY},
    {"set, profile interval", ETW_CALL_SET_INFORMATION, WITH_EXTRAS, EACH_WAY},
    {"query, profile interval", ETW_CALL_QUERY_INFORMATION, WITH_EXTRAS, EACH_WAY},
    {"query, number of sessions", ETW_CALL_QUERY_INFORMATION, LITTLE_MEMORY, EACH_WAY},
    {"list of sessions", ETW_CALL_QUERY_ALL, LITTLE_MEMORY, EACH_WAY},
    {"open", ETW_CALL_OPEN, PLAIN, BY_EVENT},
    {"open whole buffers", ETW_CALL_OPEN_BUFFERS, PLAIN, BY_BUFFER},
    {"process", ETW_CALL_PROCESS, PLAIN, EACH_WAY},
    {"close", ETW_CALL_CLOSE, PLAIN, EACH_WAY},
    {"privilege", ETW_CALL_PRIVILEGE, PLAIN, EACH_WAY},
    {"privilege to profile", ETW_CALL_PRIVILEGE, WITH_EXTRAS, EACH_WAY},
};
enum { FAULT_ROWS = sizeof fault_rows / sizeof fault_rows[0] };

static const char *const emulated_counters[] = {"TotalCycles", "InstructionRetired", NULL};
static const struct ew_etw_provider extra_provider = {.guid = {0xe7, 1, 2, 3, 4, 5, 6, 7}};

static void describe_how(enum how how, struct etw_emulator_config *emulated,
                         struct ew_etw_session_config *session)
{
    if (how == BY_PROVIDERS)
        session->way = EW_ETW_WAY_PROVIDERS;
    if (how == LITTLE_MEMORY)
        emulated->memory_buffers = 20;
    if (how != WITH_EXTRAS)
        return;
    emulated->sources = emulated_counters;
    session->kernel = EW_ETW_KERNEL_WATCH | EW_ETW_PROFILE;
    session->stacks = EW_ETW_PROFILE;
    session->profile_100ns = 5000;
    session->providers = &extra_provider;
    session->provider_count = 1;
    session->counters = EW_HAS_PMC;
}

/* A call that only an extra needs: the session goes on without it, and says so. */
static void check_extra_refused(const struct fault_row *row, const struct outcome *outcome,
                                const char *wanted)
{
    if (row->how != WITH_EXTRAS)
        return;
    CHECK_EQ_INT(outcome->error, 0);
    CHECK_EQ_UINT(outcome->meta.source, ETWATCH_SOURCE_ETW);
    CHECK_CONTAINS(outcome->fallback, wanted);
    CHECK_CONTAINS(outcome->fallback, "the session goes on without it");
}

static void check_fault(const struct fault_row *row, uint32_t code, bool buffers)
{
    struct watched watched = {0};
    struct ew_etw_config etw = {0};
    uint32_t call = row->call;
    char wanted[32], remark[96];
    struct etw_emulator_config config = short_run;
    config.offers_buffers = buffers;
    config.fault.call = call;
    config.fault.code = code;
    describe_how(row->how, &config, &etw.session);
    (void)snprintf(remark, sizeof remark, "%s: code %u%s", row->remark, code,
                   buffers ? ", buffers" : "");
    (void)snprintf(wanted, sizeof wanted, "(error %u)", code);
    test_row(remark);
    struct etw_emulator *emulator = etw_emulator_new(&config);
    etw_emulator_add(emulator, "NT Kernel Logger", 0x100, 0x11);
    struct outcome outcome = watch_call(emulator, &etw, &watched, call);
    struct etw_emulator_counts counts = counts_of(emulator);
    CHECK(counts.calls[call] > 0); /* otherwise the row proves nothing */
    CHECK_EQ_UINT(counts.foreign_changes, 0);
    /* A session that Windows does not stop stays; the next etwatch takes it over. */
    bool stays = call == ETW_CALL_STOP && code != EW_WIN_MORE_DATA;
    CHECK(counts.ours <= (uint32_t)stays);
    CHECK(!watched.file_io_known); /* only switches arrive */
    check_extra_refused(row, &outcome, wanted);
    /* Polling is allowed and works here, so nothing that Windows refuses ends the run. */
    CHECK_EQ_INT(outcome.error, 0);
    if (outcome.meta.source == ETWATCH_SOURCE_POLL) {
        bool stopped = call == ETW_CALL_PROCESS && (code == 1223 || code == 4201);
        CHECK_CONTAINS(outcome.fallback, stopped ? "stopped by another program" : wanted);
        CHECK(row->how != LITTLE_MEMORY); /* only the cause of another error is looked for */
    } else {
        CHECK_EQ_UINT(outcome.stats.events + outcome.stats.lost, 600);
    }
    etw_emulator_free(emulator);
}

static const uint32_t codes[] = {5, 8, 24, 50, 87, 183, 234, 1314, 1450, 4201, 1223, 31337};
enum { CODES = sizeof codes / sizeof codes[0] };

TEST(every_call_is_in_the_matrix)
{
    for (uint32_t call = ETW_CALL_START; call < ETW_CALL_COUNT; call++) {
        uint32_t rows = 0;
        for (size_t i = 0; i < FAULT_ROWS; i++)
            rows += fault_rows[i].call == call;
        CHECK(rows > 0);
    }
}

TEST(whatever_fails_the_outcome_is_events_polling_or_a_true_message)
{
    for (size_t row = 0; row < FAULT_ROWS; row++)
        for (size_t i = 0; i < CODES && fault_rows[row].delivery != BY_EVENT; i++)
            check_fault(&fault_rows[row], codes[i], true);
}

TEST(whatever_fails_event_by_event_likewise)
{
    for (size_t row = 0; row < FAULT_ROWS; row++)
        for (size_t i = 0; i < CODES && fault_rows[row].delivery != BY_BUFFER; i++)
            check_fault(&fault_rows[row], codes[i], false);
}

/* A session without one of its extras has the others, and loses none at a restart. */
TEST(what_is_refused_is_left_out_alone)
{
    struct ew_etw_session_config wanted = {.optional = true};
    struct etw_emulator_config config = {.fault = {.call = ETW_CALL_ENABLE, .code = 5, .times = 1}};
    struct ew_etw_session *session = NULL;
    struct etw_emulator_session seen;
    struct ew_error error = {0};
    describe_how(WITH_EXTRAS, &config, &wanted);
    struct etw_emulator *emulator = etw_emulator_new(&config);
    CHECK_EQ_INT(ew_etw_session_start(etw_emulator_api(emulator), &wanted, &session, &error), 0);
    CHECK(etw_emulator_session(emulator, "etwatch-watch", &seen));
    CHECK_EQ_UINT(seen.providers, 0);
    CHECK(seen.stack_count > 0);
    CHECK_EQ_UINT(seen.counter_count, 2);
    CHECK_EQ_UINT(counts_of(emulator).profile_interval_100ns, 5000);
    const struct ew_error *why = ew_etw_session_refused(session);
    CHECK(why != NULL);
    CHECK_CONTAINS(why->message, "cannot enable a provider");
    CHECK_EQ_INT(ew_etw_session_restart(session, &error), 0);
    CHECK(ew_etw_session_refused(session) == NULL); /* this time it was accepted */
    CHECK(etw_emulator_session(emulator, "etwatch-watch", &seen));
    CHECK_EQ_UINT(seen.providers, 1);
    ew_etw_session_stop(session);
    CHECK_EQ_UINT(counts_of(emulator).profile_interval_100ns, 10000);
    etw_emulator_free(emulator);
}

/* What the user insists on is not left out. */
TEST(without_fallback_a_refused_provider_is_an_error)
{
    struct ew_etw_session_config wanted = {.providers = &extra_provider, .provider_count = 1};
    struct etw_emulator *emulator = etw_emulator_new(
        &(struct etw_emulator_config){.fault = {.call = ETW_CALL_ENABLE, .code = 5}});
    struct ew_etw_session *session = NULL;
    struct ew_error error = {0};
    CHECK_EQ_INT(ew_etw_session_start(etw_emulator_api(emulator), &wanted, &session, &error),
                 ETWATCH_EPERM);
    CHECK_CONTAINS(error.message, "cannot enable a provider");
    CHECK_EQ_UINT(counts_of(emulator).ours, 0);
    etw_emulator_free(emulator);
}

/* Another program stops our session, and the restart meets a Windows that refuses. */
TEST(whatever_fails_in_a_restart_the_gap_is_counted_and_the_reason_is_true)
{
    static const uint32_t calls[] = {ETW_CALL_START, ETW_CALL_OPEN, ETW_CALL_PROCESS,
                                     ETW_CALL_PRIVILEGE};
    for (size_t k = 0; k < sizeof calls / sizeof calls[0] * CODES; k++) {
        uint32_t call = calls[k / CODES], code = codes[k % CODES];
        struct watched watched = {0};
        struct ew_etw_config etw = {0};
        char wanted[32], row[64];
        struct etw_emulator_config config = short_run;
        config.stop_after = 200;
        config.stop_times = 1;
        config.fault.call = call;
        config.fault.code = code;
        config.fault.after = 1;
        (void)snprintf(row, sizeof row, "second call %u, code %u", call, code);
        (void)snprintf(wanted, sizeof wanted, "(error %u)", code);
        test_row(row);
        struct etw_emulator *emulator = etw_emulator_new(&config);
        etw_emulator_add(emulator, "NT Kernel Logger", 0x100, 0x11);
        struct outcome outcome = watch(emulator, &etw, &watched);
        CHECK_EQ_INT(outcome.error, 0);
        CHECK(counts_of(emulator).calls[call] > 1);
        CHECK_EQ_UINT(counts_of(emulator).foreign_changes, 0);
        CHECK_EQ_UINT(counts_of(emulator).ours, 0);
        if (outcome.meta.source == ETWATCH_SOURCE_POLL) {
            bool stopped = call == ETW_CALL_PROCESS && (code == 1223 || code == 4201);
            CHECK_CONTAINS(outcome.fallback, stopped ? "stopped by another program" : wanted);
        } else {
            CHECK(watched.lost_buffers > 0); /* the gap */
        }
        etw_emulator_free(emulator);
    }
}

TEST(whatever_fails_a_recording_begins_or_names_the_error_and_leaves_nothing)
{
    static const uint32_t calls[] = {ETW_CALL_START,
                                     ETW_CALL_QUERY,
                                     ETW_CALL_ENABLE,
                                     ETW_CALL_SET_INFORMATION,
                                     ETW_CALL_QUERY_INFORMATION,
                                     ETW_CALL_PRIVILEGE};
    struct etwatch_provider provider = {.size = sizeof provider, .name = ETW_EMULATOR_PROVIDER};
    char folder[320], path[340];
    test_folder(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/x.etl", folder);
    for (size_t k = 0; k < sizeof calls / sizeof calls[0] * CODES; k++) {
        struct etwatch_recorder *recorder = NULL;
        struct ew_error error = {0};
        struct etwatch_session_options options = {.size = sizeof options,
                                                  .kernel = "process,cswitch,profile",
                                                  .stacks = "profile",
                                                  .profile_hz = 2000,
                                                  .providers = &provider,
                                                  .provider_count = 1};
        char wanted[32], row[64];
        struct etw_emulator_config config = {
            .fault = {.call = calls[k / CODES], .code = codes[k % CODES]}};
        (void)snprintf(row, sizeof row, "call %u, code %u", config.fault.call, config.fault.code);
        (void)snprintf(wanted, sizeof wanted, "(error %u)", config.fault.code);
        test_row(row);
        struct etw_emulator *emulator = etw_emulator_new(&config);
        int rc = ew_recorder_start(etw_emulator_api(emulator), path, &options, &recorder, &error);
        if (rc == 0) {
            struct etwatch_recorder_stats stats = {.size = sizeof stats};
            CHECK_EQ_UINT(counts_of(emulator).ours, 1);
            CHECK_EQ_INT(etwatch_recorder_stats(recorder, &stats), 0);
            /* Only one code of a query means that the session has ended. */
            CHECK_EQ_INT(stats.running,
                         config.fault.call != ETW_CALL_QUERY || config.fault.code != 4201);
            etwatch_recorder_free(recorder);
            (void)remove(path);
        } else {
            FILE *file = fopen(path, "rb");
            CHECK_CONTAINS(error.message, wanted);
            CHECK_EQ_INT(error.os_code, config.fault.code);
            CHECK(file == NULL); /* no file is left */
        }
        CHECK(counts_of(emulator).calls[config.fault.call] > 0);
        CHECK_EQ_UINT(counts_of(emulator).ours, 0);
        CHECK_EQ_UINT(counts_of(emulator).foreign_changes, 0);
        etw_emulator_free(emulator);
    }
    test_folder_remove(folder);
}

TEST(whatever_fails_when_a_running_session_is_changed_it_logs_what_it_says)
{
    static const uint32_t calls[] = {ETW_CALL_QUERY, ETW_CALL_SET_INFORMATION};
    for (size_t k = 0; k < sizeof calls / sizeof calls[0] * CODES; k++) {
        struct ew_etw_session *session = NULL;
        struct ew_error error = {0};
        struct etw_emulator_session seen;
        char row[64];
        struct etw_emulator_config config = {
            .fault = {.call = calls[k / CODES], .code = codes[k % CODES]}};
        (void)snprintf(row, sizeof row, "call %u, code %u", config.fault.call, config.fault.code);
        test_row(row);
        struct etw_emulator *emulator = etw_emulator_new(&config);
        struct ew_etw_session_config wanted = {.kernel = EW_ETW_PROCESS | EW_ETW_CSWITCH};
        CHECK_EQ_INT(ew_etw_session_start(etw_emulator_api(emulator), &wanted, &session, &error),
                     0);
        int rc = ew_etw_session_set_kernel(session, EW_ETW_PROCESS | EW_ETW_DISK, &error);
        CHECK(rc == 0 || error.os_code == (int64_t)config.fault.code);
        CHECK_EQ_INT(rc == 0, config.fault.code == 234 && config.fault.call == ETW_CALL_QUERY);
        CHECK(etw_emulator_session(emulator, "etwatch-watch", &seen));
        CHECK_EQ_UINT(seen.enable_flags & 0xFFFF,
                      ew_etw_kernel_flags(ew_etw_session_kernel(session)));
        ew_etw_session_stop(session);
        CHECK_EQ_UINT(counts_of(emulator).foreign_changes, 0);
        CHECK_EQ_UINT(counts_of(emulator).ours, 0);
        etw_emulator_free(emulator);
    }
}

/* ------------------------------------------------------------------------ ProcessTrace */

TEST(the_result_of_process_trace_is_reported)
{
    struct watched watched = {0};
    struct ew_etw_config etw = {0};
    struct etw_emulator_config config = short_run;
    config.fault.call = ETW_CALL_PROCESS;
    config.fault.code = 1359;
    struct etw_emulator *emulator = etw_emulator_new(&config);
    struct outcome outcome = watch(emulator, &etw, &watched);
    CHECK_EQ_UINT(outcome.meta.source, ETWATCH_SOURCE_POLL);
    CHECK_CONTAINS(outcome.fallback, "cannot read the session 'etwatch-watch'");
    CHECK_CONTAINS(outcome.fallback, "(error 1359)");
    etw_emulator_free(emulator);
}

TEST(without_whole_buffers_the_session_is_read_event_by_event)
{
    for (int i = 0; i < 2; i++) {
        struct watched watched = {0};
        struct ew_etw_config etw = {0};
        struct etw_emulator_config config = short_run;
        config.offers_buffers = true;
        config.mute_buffers = i == 0;
        config.buffers_end = i == 1;
        test_row(i == 0 ? "none comes" : "ProcessTrace returns at once");
        struct etw_emulator *emulator = etw_emulator_new(&config);
        struct outcome outcome = watch(emulator, &etw, &watched);
        struct etw_emulator_counts counts = counts_of(emulator);
        CHECK_EQ_UINT(outcome.meta.source, ETWATCH_SOURCE_ETW);
        CHECK_EQ_UINT(outcome.stats.events, 600);
        CHECK_EQ_UINT(counts.starts, 1); /* the same session */
        CHECK_EQ_UINT(counts.buffers, 0);
        etw_emulator_free(emulator);
    }
}

TEST(the_end_does_not_wait_for_windows_for_ever)
{
    for (int i = 0; i < 2; i++) {
        struct watched watched = {0};
        struct ew_etw_config etw = {0};
        struct etw_emulator_config config = short_run;
        config.deaf_process = i == 0;
        config.dead_process = i == 1;
        test_row(i == 0 ? "until CloseTrace" : "never");
        struct etw_emulator *emulator = etw_emulator_new(&config);
        struct outcome outcome = watch(emulator, &etw, &watched);
        CHECK_EQ_INT(outcome.error, 0);
        CHECK_EQ_UINT(outcome.stats.events, 600);
        CHECK_EQ_UINT(counts_of(emulator).ours, 0);
        etw_emulator_free(emulator);
    }
}

/* ----------------------------------------------------------- sessions of others */

TEST(a_session_that_got_the_slot_of_ours_is_not_touched)
{
    struct watched watched = {0};
    struct ew_etw_config etw = {0};
    struct etw_emulator_config config = short_run;
    config.generate = 20000;
    config.slot_is_reused = true;
    config.stop_after = 5000;
    config.stop_times = 1;
    struct etw_emulator *emulator = etw_emulator_new(&config);
    struct outcome outcome = watch(emulator, &etw, &watched);
    struct etw_emulator_counts counts = counts_of(emulator);
    CHECK_EQ_UINT(outcome.meta.source, ETWATCH_SOURCE_ETW);
    CHECK_EQ_UINT(counts.foreign_changes, 0);
    CHECK_EQ_UINT(counts.sessions, 1); /* "Foreign" */
    CHECK_EQ_UINT(counts.ours, 0);
    CHECK_EQ_UINT(watched.lost_buffers, 1); /* the gap */
    etw_emulator_free(emulator);
}

/* Rights may be missing for the one way only. */
TEST(access_denied_to_flags_leads_to_providers)
{
    struct etw_emulator *emulator = etw_emulator_new(
        &(struct etw_emulator_config){.fault = {.call = ETW_CALL_START, .code = 5, .times = 1}});
    struct ew_etw_session *session = NULL;
    struct etw_emulator_session seen;
    CHECK_EQ_INT(ew_etw_session_start(etw_emulator_api(emulator),
                                      &(struct ew_etw_session_config){0}, &session, NULL),
                 0);
    CHECK(etw_emulator_session(emulator, "etwatch-watch", &seen));
    CHECK_EQ_UINT(seen.enable_flags, 0);
    CHECK(seen.providers > 0);
    ew_etw_session_stop(session);
    etw_emulator_free(emulator);
}

TEST(a_handle_that_is_another_session_by_now_is_not_used)
{
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.slot_is_reused = true});
    const struct ew_etw_api *api = etw_emulator_api(emulator);
    struct ew_etw_session *session = NULL;
    struct ew_etw_properties stopped[40] = {{.size = sizeof stopped}}; /* room for a name */
    uint16_t name[EW_ETW_NAME_MAX];
    struct ew_error error = {0};
    CHECK_EQ_INT(ew_etw_session_start(api, &(struct ew_etw_session_config){0}, &session, &error),
                 0);
    CHECK(ew_etw_wide_name("etwatch-watch", name));
    CHECK_EQ_UINT(api->control(api->ctx, 0, name, stopped, EW_ETW_CONTROL_STOP), 0);
    CHECK_EQ_INT(ew_etw_session_set_kernel(session, EW_ETW_PROCESS, &error), ETWATCH_ENOENT);
    CHECK_EQ_INT(ew_etw_session_set_stacks(session, EW_ETW_PROCESS, &error), ETWATCH_ENOENT);
    ew_etw_session_stop(session);
    CHECK_EQ_UINT(counts_of(emulator).foreign_changes, 0);
    CHECK_EQ_UINT(counts_of(emulator).sessions, 1);
    etw_emulator_free(emulator);
}

/* Another user left it behind, with more rights: the next name is free. */
TEST(a_session_that_may_not_be_stopped_leads_to_the_next_name)
{
    for (int i = 0; i < 2; i++) {
        struct etw_emulator *emulator = etw_emulator_new(
            &(struct etw_emulator_config){.stuck_session = true, .knows_owners = i == 1});
        struct ew_etw_session *session = NULL;
        test_row(i == 0 ? "without claims" : "with claims");
        etw_emulator_add(emulator, "etwatch-watch", 0x02000100, 0x1);
        CHECK_EQ_INT(ew_etw_session_start(etw_emulator_api(emulator),
                                          &(struct ew_etw_session_config){0}, &session, NULL),
                     0);
        CHECK_EQ_STR(ew_etw_session_name(session), "etwatch-watch-2");
        CHECK(!ew_etw_session_took_over(session));
        ew_etw_session_stop(session);
        CHECK_EQ_UINT(counts_of(emulator).ours, 1);
        etw_emulator_free(emulator);
    }
}

TEST(a_session_that_takes_a_moment_to_stop_is_taken_over)
{
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.stop_takes = 4});
    struct ew_etw_session *session = NULL;
    etw_emulator_add(emulator, "etwatch-watch", 0x02000100, 0x1);
    CHECK_EQ_INT(ew_etw_session_start(etw_emulator_api(emulator),
                                      &(struct ew_etw_session_config){0}, &session, NULL),
                 0);
    CHECK(ew_etw_session_took_over(session));
    ew_etw_session_stop(session);
    etw_emulator_free(emulator);
}

/* ------------------------------------------------------------------------------ limits */

TEST(error_1450_is_named_by_its_cause)
{
    struct ew_etw_session *session = NULL;
    struct ew_error error = {0};
    struct etw_emulator_session seen;
    struct ew_etw_session_config plain = {0};
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.loggers_in_use = true});
    CHECK_EQ_INT(ew_etw_session_start(etw_emulator_api(emulator), &plain, &session, &error),
                 ETWATCH_ELIMIT);
    CHECK_CONTAINS(error.message, "all system loggers");
    etw_emulator_free(emulator);

    emulator = etw_emulator_new(&(struct etw_emulator_config){.max_sessions = 3});
    etw_emulator_add(emulator, "one", 0x100, 0);
    etw_emulator_add(emulator, "two", 0x100, 0);
    etw_emulator_add(emulator, "three", 0x100, 0);
    CHECK_EQ_INT(ew_etw_session_start(etw_emulator_api(emulator), &plain, &session, &error),
                 ETWATCH_ELIMIT);
    CHECK_CONTAINS(error.message, "all 3 sessions");
    etw_emulator_free(emulator);

    /* Too little memory: with fewer buffers it works. */
    emulator = etw_emulator_new(&(struct etw_emulator_config){.memory_buffers = 20});
    CHECK_EQ_INT(ew_etw_session_start(etw_emulator_api(emulator), &plain, &session, &error), 0);
    CHECK(etw_emulator_session(emulator, "etwatch-watch", &seen));
    CHECK_EQ_UINT(seen.max_buffers, 16);
    ew_etw_session_stop(session);
    etw_emulator_free(emulator);
    emulator = etw_emulator_new(&(struct etw_emulator_config){.memory_buffers = 1});
    CHECK_EQ_INT(ew_etw_session_start(etw_emulator_api(emulator), &plain, &session, &error),
                 ETWATCH_ELIMIT);
    CHECK_CONTAINS(error.message, "no memory for its buffers");
    CHECK_EQ_INT(error.os_code, 1450);
    etw_emulator_free(emulator);
}

/* ------------------------------------------------------------------------- the horizon */

enum { PER_CPU = 60000, ALL_EVENTS = 2 * PER_CPU, RATE = 80000, PER_SAMPLE = RATE / 2 / 100 };

/* The process of the threads that the emulator schedules on its first CPU. */
static int list_worker(void *ctx, struct ew_listing *ret_listing, struct ew_error *reterr)
{
    static const struct row worker = {
        .pid = 500, .name = "worker.exe", .created = ZERO + 1, .threads = 8, .first_tid = 1000};
    struct list *list = ctx;
    (void)reterr;
    make_list(list, &worker, 1);
    ew_listing_init(ret_listing, list->bytes, list->size, ADDRESS);
    return 0;
}

static void close_list(void *ctx)
{
    (void)ctx;
}

/* Events that came after later ones, and the most events that one sample counted: an interval that
 * is closed before its events have come passes them on to a later one. */
struct order {
    uint64_t late, most;
};

/* A busy machine delays threads, so of several attempts the first one counts that is good. */
static struct order watch_order(const struct etw_emulator_config *given, const struct order *good)
{
    struct order order = {UINT64_MAX, UINT64_MAX};
    for (int i = 0; i < 5 && (order.late >= good->late || order.most >= good->most); i++) {
        static struct list list;
        const struct ew_winpoll_system system = {
            .ctx = &list, .list = list_worker, .close = close_list, .raw_zero = ZERO};
        struct watched watched = {0};
        /* All events fit into the buffers: however late they are read, none is lost. */
        struct ew_etw_config etw = {.session = {.min_buffers = 128}};
        struct etw_emulator_config config = *given;
        config.cpu_count = 2;
        config.real_time = config.session_buffers = true;
        config.generate = PER_CPU;
        config.rate_hz = RATE;
        config.processes = &system;
        struct etw_emulator *emulator = etw_emulator_new(&config);
        struct outcome outcome = watch(emulator, &etw, &watched);
        CHECK_EQ_UINT(outcome.meta.source, ETWATCH_SOURCE_ETW);
        CHECK_EQ_UINT(outcome.stats.events, ALL_EVENTS);
        CHECK_EQ_UINT(outcome.stats.lost, 0);
        order = (struct order){outcome.stats.late, watched.most_switches};
        etw_emulator_free(emulator);
    }
    return order;
}

TEST(intervals_wait_for_their_events_where_a_flush_has_no_effect)
{
    static const struct order good = {ALL_EVENTS / 10, 2 * PER_SAMPLE};
    for (int i = 0; i < 4; i++) {
        struct etw_emulator_config config = {
            .offers_buffers = i % 2 != 0,
            .flush_dead = i < 2,
            .fault = {.call = i < 2 ? ETW_CALL_NONE : ETW_CALL_FLUSH, .code = 50},
        };
        test_row(i < 2 ? "no effect" : "refused");
        /* Trusting the flush, one sample gets the events of several intervals. */
        struct order order = watch_order(&config, &good);
        CHECK(order.late < good.late);
        CHECK(order.most < good.most);
        CHECK(order.most >= PER_SAMPLE / 2);
    }
}

/* The buffers of a busy CPU do not vouch for those of another. */
TEST(few_events_are_late_where_the_buffers_of_one_cpu_come_later)
{
    static const struct order good = {ALL_EVENTS / 4, UINT64_MAX};
    for (int i = 0; i < 2; i++) {
        struct etw_emulator_config config = {.slow_cpu_ms = 50, .offers_buffers = i == 1};
        test_row(i == 0 ? "event by event" : "whole buffers");
        /* Without a horizon that adapts nearly all events of this CPU are: half of all. */
        struct order order = watch_order(&config, &good);
        CHECK(order.late > 0);
        CHECK(order.late < good.late);
    }
}

TEST(a_session_may_log_nothing_for_a_while_after_its_start)
{
    struct watched watched = {0};
    struct ew_etw_config etw = {0};
    struct etw_emulator_config config = short_run;
    config.start_delay_ms = 300;
    struct etw_emulator *emulator = etw_emulator_new(&config);
    struct outcome outcome = watch(emulator, &etw, &watched);
    CHECK_EQ_UINT(outcome.meta.source, ETWATCH_SOURCE_ETW);
    CHECK_EQ_UINT(outcome.stats.events, 600);
    CHECK_EQ_UINT(outcome.stats.late, 0);
    etw_emulator_free(emulator);
}

/* -------------------------------------------------------------------------------- loss */

TEST(a_loss_on_an_empty_buffer_is_counted)
{
    struct watched watched = {0};
    struct ew_etw_config etw = {0};
    struct etw_emulator_config config = short_run;
    config.offers_buffers = true;
    config.empty_lost_buffer = true;
    struct etw_emulator *emulator = etw_emulator_new(&config);
    struct outcome outcome = watch(emulator, &etw, &watched);
    CHECK_EQ_UINT(outcome.stats.events, 600);
    CHECK_EQ_UINT(outcome.stats.lost, 1);
    CHECK_EQ_UINT(watched.lost, 1);
    CHECK_EQ_UINT(watched.lost_buffers, 0);
    etw_emulator_free(emulator);
}
