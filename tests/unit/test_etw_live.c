/* SPDX-License-Identifier: MIT */
/*
 * A live session with the emulator: fed with a recording it reports what reading the recording
 * reports, byte for byte. Losses are counted once, wherever they happen. A stopped session is
 * restarted; if that fails the error explains why.
 */
#include "etw_kit.h"

#include "sampler/sampler.h"
#include "source/source.h"

/* ----------------------------------------------------------------------------- live */

struct reported {
    struct ew_source_stats stats;
    struct ew_error error;
    int rc; /* error of the drain that failed */
    struct etwatch_metric_set available;
    uint64_t drains;
};

static struct ew_source *open_live(struct etw_emulator *emulator, struct ew_etw_config *etw,
                                   double hz, uint32_t flags)
{
    struct ew_source *source = NULL;
    struct ew_error error = {0};
    etw->api = etw_emulator_api(emulator);
    etw->flush_ms = FLUSH_MS;
    struct ew_source_config config = {
        .filter = {.all = true},
        .threads = (flags & ETWATCH_CONFIG_THREADS) != 0,
        .max_processes = 65536,
        .max_threads = 131072,
        .proc_root = "/proc",
        .epoch_ns = START_NS,
        .interval_ns = (uint64_t)(1e9 / hz + 0.5),
        .etw = etw,
    };
    if (ew_source_etw.open(&config, &source, &error) != 0)
        FAIL(error.message);
    return source;
}

/* Drains until everything has arrived and is reported, as the monitor does. */
static void report_live(struct etw_emulator *emulator, struct ew_etw_config *etw, double hz,
                        uint32_t flags, struct text *text, struct reported *reported)
{
    struct ew_source *source = open_live(emulator, etw, hz, flags);
    struct ew_sampler *sampler = NULL;
    struct ew_facts facts;
    struct etw_emulator_counts counts;
    uint64_t horizon_ns = 0;
    struct ew_sampler_config config = {
        .source = ETWATCH_SOURCE_ETL, /* to get the same bytes */
        .threads = (flags & ETWATCH_CONFIG_THREADS) != 0,
        .dense = (flags & ETWATCH_CONFIG_DENSE) != 0,
        .available = source->ops->available,
        .epoch_ns = START_NS,
        .interval_ns = (uint64_t)(1e9 / hz + 0.5),
        .unix_minus_raw_ns = INT64_C(1767225600000000000) - (int64_t)START_NS,
        .max_processes = 65536,
        .max_threads = 131072,
        .ctx = text,
        .emit = on_samples,
        .loss = on_loss,
    };
    memset(reported, 0, sizeof *reported);
    reported->available = source->ops->available;
    begin_text(text);
    CHECK_EQ_INT(ew_sampler_new(&config, &sampler), 0);
    ew_sampler_facts(sampler, &facts);
    do {
        test_sleep_ms(1);
        bool done = etw_emulator_done(emulator);
        etw_emulator_counts(emulator, &counts);
        reported->rc =
            source->ops->drain(source, counts.last_ns, &facts, &horizon_ns, &reported->error);
        reported->drains++;
        if (reported->rc != 0 || (done && horizon_ns >= counts.last_ns))
            break;
        CHECK(ew_sampler_deliver(sampler, horizon_ns) >= 0);
    } while (true);
    if (reported->rc == 0)
        CHECK_EQ_INT(source->ops->finish(source, counts.last_ns, &facts, &reported->error), 0);
    CHECK(ew_sampler_finish(sampler, counts.last_ns) >= 0);
    source->ops->stats(source, &reported->stats);
    source->ops->close(source);
    ew_sampler_free(sampler);
    end_text(text);
}

static void compare_recorded(struct recorded_scenario *recorded, uint32_t cpus, double hz,
                             uint32_t flags, uint32_t hold)
{
    struct text live, want;
    struct etwatch_meta meta;
    struct reported reported;
    report_recording(recorded->file.path, hz, flags, NULL, &want, &meta);
    struct etw_emulator *emulator =
        make_emulator(&(struct etw_emulator_config){.cpu_count = cpus,
                                                    .clock = recorded->clock,
                                                    .cpu_mhz = CPU_MHZ,
                                                    .start_raw = recorded->start_raw,
                                                    .recording = recorded->memory.bytes,
                                                    .recording_size = recorded->memory.size,
                                                    .hold = hold});
    struct ew_etw_config etw = {.session = {.kernel = ALL_KERNEL}};
    report_live(emulator, &etw, hz, flags, &live, &reported);
    CHECK_EQ_INT(reported.rc, 0);
    /* Memory events are only in recordings: a live session reads the list of processes. */
    CHECK(etwatch_metric_set_has(&meta.available, ETWATCH_M_rss_private_bytes));
    etwatch_metric_set_remove(&meta.available, ETWATCH_M_rss_private_bytes);
    CHECK(etwatch_metric_set_equal(&reported.available, &meta.available));
    CHECK(want.len > 5000);
    check_same(&live, &want);
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(counts.sessions, 0);
    CHECK_EQ_UINT(reported.stats.events, counts.delivered);
    CHECK_EQ_UINT(reported.stats.lost, 0);
    /* A session that counts cycles is read event by event. */
    CHECK_EQ_INT(counts.buffers > 0, offers_buffers && recorded->clock != 3);
    etw_emulator_free(emulator);
    free(live.bytes);
    free(want.bytes);
}

static void compare(const struct etl_scenario_config *what, double hz, uint32_t flags,
                    uint32_t hold)
{
    struct recorded_scenario recorded;
    record(&recorded, what);
    compare_recorded(&recorded, what->cpu_count, hz, flags, hold);
    forget(&recorded);
}

TEST_BOTH_DELIVERIES(a_session_fed_with_a_recording_reports_what_the_recording_reports)
{
    compare(
        &(struct etl_scenario_config){
            .classes = ETL_EVERYTHING, .cpu_count = 4, .seed = 1, .event_count = 20000},
        100, ETWATCH_CONFIG_ALL, 0);
}

TEST_BOTH_DELIVERIES(reports_are_equal_at_every_rate_with_threads_and_with_delayed_events)
{
    struct etl_scenario_config what = {.classes = ETL_EVERYTHING, .event_count = 12000};
    static const struct {
        const char *remark;
        uint32_t cpus, pointer_size, flags, hold;
        double hz;
        bool chains;
    } rows[] = {
        {"10 Hz", 2, 8, ETWATCH_CONFIG_ALL, 0, 10, false},
        {"1000 Hz, threads", 8, 8, ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_THREADS, 0, 1000, false},
        {"held", 4, 8, ETWATCH_CONFIG_ALL, 500, 100, false},
        {"held, dense", 3, 8, ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_DENSE, 977, 50, false},
        {"32 bit", 2, 4, ETWATCH_CONFIG_ALL, 0, 100, false},
        {"chains", 16, 8, ETWATCH_CONFIG_ALL, 0, 100, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].remark);
        what.seed = 10 + i;
        what.cpu_count = rows[i].cpus;
        what.pointer_size = rows[i].pointer_size;
        what.chains = rows[i].chains;
        compare(&what, rows[i].hz, rows[i].flags, rows[i].hold);
    }
}

TEST_BOTH_DELIVERIES(reports_are_equal_with_every_clock_and_compressed)
{
    static const struct {
        const char *remark;
        uint32_t clock;
        bool compress;
    } rows[] = {
        {"performance counter, compressed", 1, true},
        {"wall clock", 2, false},
        {"wall clock, compressed", 2, true},
        {"cycles", 3, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct recorded_scenario recorded;
        test_row(rows[i].remark);
        record_as(&recorded,
                  &(struct etl_scenario_config){.classes = ETL_EVERYTHING,
                                                .cpu_count = 8,
                                                .gap_ticks = rows[i].clock == 3 ? 1500 : 60,
                                                .seed = 70 + i,
                                                .event_count = 12000},
                  rows[i].clock, rows[i].compress);
        compare_recorded(&recorded, 8, 100, ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_THREADS, 0);
        forget(&recorded);
    }
}

/* -------------------------------------------------------------------------- losses */

static void check_losses(bool marks)
{
    struct recorded_scenario recorded;
    struct text text;
    struct reported reported;
    struct etw_emulator_counts counts;
    record(&recorded,
           &(struct etl_scenario_config){
               .classes = ETL_EVERYTHING, .cpu_count = 4, .seed = 41, .event_count = 20000});
    struct etw_emulator *emulator =
        make_emulator(&(struct etw_emulator_config){.cpu_count = 4,
                                                    .recording = recorded.memory.bytes,
                                                    .recording_size = recorded.memory.size,
                                                    .lose_every = 997,
                                                    .lose_marks = marks});
    struct ew_etw_config etw = {.session = {.kernel = ALL_KERNEL}};
    report_live(emulator, &etw, 100, ETWATCH_CONFIG_ALL, &text, &reported);
    etw_emulator_counts(emulator, &counts);
    CHECK(counts.lost >= 20);
    CHECK_EQ_UINT(text.lost, counts.lost);
    CHECK(strstr(text.bytes, "\"complete\":false") != NULL);
    CHECK_EQ_UINT(counts.sessions, 0);
    etw_emulator_free(emulator);
    free(text.bytes);
    forget(&recorded);
}

TEST_BOTH_DELIVERIES(the_reported_number_of_lost_events_is_exact)
{
    test_row("only totals");
    check_losses(false);
    test_row("marks in the stream too");
    check_losses(true);
}

TEST_BOTH_DELIVERIES(losses_of_a_full_pool_are_counted)
{
    struct text text;
    struct reported reported;
    struct etw_emulator_counts counts;
    struct etw_emulator *emulator =
        make_emulator(&(struct etw_emulator_config){.cpu_count = 2, .generate = 40000});
    struct ew_etw_config etw = {.session = {.kernel = ALL_KERNEL}, .pool_bytes = 1};
    report_live(emulator, &etw, 10, ETWATCH_CONFIG_ALL, &text, &reported);
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(counts.delivered, 80000);
    CHECK_EQ_UINT(reported.stats.events + reported.stats.lost, counts.delivered);
    CHECK_EQ_UINT(text.lost, reported.stats.lost);
    etw_emulator_free(emulator);
    free(text.bytes);
}

/* ------------------------------------------------------------------------- restarts */

static void check_restarts(uint32_t times)
{
    struct text text;
    struct reported reported;
    struct etw_emulator_counts counts;
    struct etw_emulator *emulator = make_emulator(&(struct etw_emulator_config){
        .cpu_count = 2, .generate = 1000, .stop_after = 500, .stop_times = times});
    struct ew_etw_config etw = {.session = {.kernel = ALL_KERNEL}};
    report_live(emulator, &etw, 10, ETWATCH_CONFIG_ALL, &text, &reported);
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_INT(reported.rc, times <= 3 ? 0 : ETWATCH_ESTATE);
    if (times > 3) {
        CHECK_EQ_INT(reported.error.code, ETWATCH_ESTATE);
        CHECK_CONTAINS(reported.error.message, "etwatch-watch");
    }
    /* Every gap is one loss. */
    CHECK_EQ_UINT(text.lost, times <= 3 ? times : 3);
    CHECK_EQ_UINT(counts.starts, times <= 3 ? times + 1 : 4);
    CHECK_EQ_UINT(counts.sessions, 0);
    CHECK_EQ_UINT(reported.stats.events, counts.delivered);
    etw_emulator_free(emulator);
    free(text.bytes);
}

TEST_BOTH_DELIVERIES(a_session_stopped_from_outside_is_restarted_three_times)
{
    check_restarts(1);
    check_restarts(3);
    check_restarts(4);
}
