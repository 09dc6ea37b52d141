/* SPDX-License-Identifier: MIT */
/*
 * Hardware counters in a live session: which counters are requested from Windows, how a refusal is
 * handled, and that the values at context switches are attributed to threads exactly.
 */
#include "etw_kit.h"

#include "listing_kit.h"
#include "metric_kit.h"
#include "monitor/monitor.h"
#include "sampler/sampler.h"
#include "source/etw/controller.h"
#include "source/poll_windows/poll.h"
#include "source/source.h"

#define WANTED (EW_HAS_C(cycles) | EW_HAS_C(instructions) | EW_HAS_C(cache_misses))
static const struct etwatch_metric_set counters =
    EW_METRIC_SET(ETWATCH_M_cycles, ETWATCH_M_instructions, ETWATCH_M_cache_misses);

static const char *const all[] = {"Timer",        "TotalIssues",        "CacheMisses",
                                  "TotalCycles",  "LLCMisses",          "UnhaltedCoreCycles",
                                  "DcacheMisses", "InstructionRetired", NULL};
static const char *const amd[] = {"Timer", "TotalIssues", "DcacheMisses", "TotalCycles", NULL};
static const char *const none[] = {"Timer", NULL};

static struct ew_etw_pmc requested(const struct etw_emulator_config *config, uint32_t wanted,
                                   struct etw_emulator_session *ret_seen)
{
    struct etw_emulator *emulator = etw_emulator_new(config);
    struct ew_etw_session_config what = {.counters = wanted};
    struct ew_etw_session *session = NULL;
    struct ew_error error = {0};
    if (ew_etw_session_start(etw_emulator_api(emulator), &what, &session, &error) != 0)
        FAIL(error.message);
    CHECK(etw_emulator_session(emulator, "etwatch-watch", ret_seen));
    struct ew_etw_pmc pmc = *ew_etw_session_pmc(session);
    ew_etw_session_stop(session);
    etw_emulator_free(emulator);
    return pmc;
}

/* ------------------------------------------------------------------ what is requested */

TEST(the_best_counters_are_requested_in_the_order_of_the_metrics)
{
    struct etw_emulator_session seen = {0};
    struct ew_etw_pmc pmc = requested(&(struct etw_emulator_config){.sources = all}, WANTED, &seen);
    CHECK_EQ_UINT(seen.counter_count, 3);
    CHECK_EQ_UINT(seen.counters[0], 105); /* UnhaltedCoreCycles, not TotalCycles */
    CHECK_EQ_UINT(seen.counters[1], 107); /* InstructionRetired, not TotalIssues */
    CHECK_EQ_UINT(seen.counters[2], 104); /* LLCMisses, not CacheMisses */
    CHECK(seen.counted_switches);
    CHECK_EQ_UINT(pmc.map.count, 3);
    CHECK_EQ_UINT(pmc.map.counter[0], EW_C_cycles);
    CHECK_EQ_UINT(pmc.map.counter[1], EW_C_instructions);
    CHECK_EQ_UINT(pmc.map.counter[2], EW_C_cache_misses);
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        CHECK(ew_etw_pmc_unavailable_reason(&pmc, i) == NULL);
}

TEST(counters_that_are_not_selected_are_not_requested)
{
    struct etw_emulator_session seen = {0};
    struct ew_etw_pmc pmc = requested(&(struct etw_emulator_config){.sources = all}, 0, &seen);
    CHECK_EQ_UINT(seen.counter_count, 0);
    CHECK(!seen.counted_switches);
    CHECK_EQ_UINT(pmc.map.count, 0);
    pmc = requested(&(struct etw_emulator_config){.sources = all}, EW_HAS_C(instructions), &seen);
    CHECK_EQ_UINT(seen.counter_count, 1);
    CHECK_EQ_UINT(ew_pmc_has(&pmc.map), EW_HAS_C(instructions));
}

/* ----------------------------------------------------------------------- refusals */

static void check_reason(const struct ew_etw_pmc *pmc, uint32_t metric, const char *word)
{
    const char *why = ew_etw_pmc_unavailable_reason(pmc, metric);
    CHECK(why != NULL && strstr(why, word) != NULL);
}

TEST(a_missing_counter_has_a_reason_and_the_others_work)
{
    struct etw_emulator_session seen = {0};
    struct ew_etw_pmc pmc = requested(&(struct etw_emulator_config){.sources = amd}, WANTED, &seen);
    CHECK_EQ_UINT(ew_pmc_has(&pmc.map), EW_HAS_C(cycles) | EW_HAS_C(instructions));
    CHECK_EQ_UINT(seen.counters[1], 101);
    check_reason(&pmc, ETWATCH_M_cache_misses, "no such counter");
    CHECK(ew_etw_pmc_unavailable_reason(&pmc, ETWATCH_M_cycles) == NULL);
    pmc = requested(&(struct etw_emulator_config){.sources = none}, WANTED, &seen);
    CHECK_EQ_UINT(pmc.map.count, 0);
    CHECK_EQ_UINT(seen.counter_count, 0);
    check_reason(&pmc, ETWATCH_M_cycles, "virtual");
    /* An old Windows does not know the query. */
    pmc = requested(&(struct etw_emulator_config){0}, WANTED, &seen);
    check_reason(&pmc, ETWATCH_M_cycles, "error 50");
}

TEST(if_not_all_counters_are_free_fewer_are_requested)
{
    struct etw_emulator_session seen = {0};
    struct ew_etw_pmc pmc =
        requested(&(struct etw_emulator_config){.sources = all, .max_counters = 2}, WANTED, &seen);
    CHECK_EQ_UINT(ew_pmc_has(&pmc.map), EW_HAS_C(cycles) | EW_HAS_C(instructions));
    CHECK_EQ_UINT(seen.counter_count, 2);
    check_reason(&pmc, ETWATCH_M_cache_misses, "error 170");
    pmc = requested(&(struct etw_emulator_config){.sources = all, .counters_busy = true}, WANTED,
                    &seen);
    CHECK_EQ_UINT(pmc.map.count, 0);
    check_reason(&pmc, ETWATCH_M_cycles, "error 170");
    check_reason(&pmc, ETWATCH_M_instructions, "error 170");
    pmc = requested(&(struct etw_emulator_config){.sources = all, .no_counted_events = true},
                    WANTED, &seen);
    CHECK_EQ_UINT(pmc.map.count, 0);
    check_reason(&pmc, ETWATCH_M_cycles, "with context switches (error 87)");
    pmc = requested(&(struct etw_emulator_config){.sources = all, .no_privilege = true}, WANTED,
                    &seen);
    CHECK_EQ_UINT(pmc.map.count, 0);
    check_reason(&pmc, ETWATCH_M_cycles, "error 1314");
}

TEST(a_long_list_is_read_to_its_end)
{
    static char texts[600][40];
    static const char *names[602];
    struct etw_emulator_session seen = {0};
    for (size_t i = 0; i < 600; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "ProcessorSpecificEventNumber%zu", i);
        names[i] = texts[i];
    }
    names[600] = "TotalCycles";
    struct ew_etw_pmc pmc =
        requested(&(struct etw_emulator_config){.sources = names}, WANTED, &seen);
    CHECK_EQ_UINT(ew_pmc_has(&pmc.map), EW_HAS_C(cycles));
    CHECK_EQ_UINT(seen.counters[0], 700);
}

/* ------------------------------------------------------------------------ samples */

struct sums {
    uint64_t cycles, instructions, cache_misses, thread_cycles;
    uint64_t samples, incomplete, without;
};

static void add_up(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    struct sums *sums = ctx;
    for (size_t i = 0; i < count; i++) {
        const struct etwatch_sample *s = &samples[i];
        if (s->type == ETWATCH_TYPE_THREAD)
            sums->thread_cycles += s->cycles;
        if (s->type != ETWATCH_TYPE_SAMPLE)
            continue;
        sums->samples++;
        sums->incomplete += (s->flags & ETWATCH_SAMPLE_COMPLETE) == 0;
        sums->without += !etwatch_sample_has(s, ETWATCH_M_cycles);
        sums->cycles += s->cycles;
        sums->instructions += s->instructions;
        sums->cache_misses += s->cache_misses;
    }
}

static void no_loss(void *ctx, const struct etwatch_loss *loss)
{
    (void)ctx;
    (void)loss;
}

/* Opens a source on the emulator, drains it to the end and adds up the samples. */
static struct sums watch(struct etw_emulator *emulator, struct etwatch_metric_set metrics,
                         struct etwatch_metric_set *ret_available)
{
    struct ew_source *source = NULL;
    struct ew_sampler *sampler = NULL;
    struct ew_error error = {0};
    struct ew_facts facts;
    struct etw_emulator_counts counts;
    struct sums sums = {0};
    uint64_t horizon_ns = 0;
    struct ew_etw_config etw = {
        .api = etw_emulator_api(emulator), .flush_ms = FLUSH_MS, .session = {.kernel = ALL_KERNEL}};
    struct ew_source_config config = {
        .filter = {.all = true},
        .threads = true,
        .max_processes = 65536,
        .max_threads = 131072,
        .proc_root = "/proc",
        .epoch_ns = START_NS,
        .interval_ns = 10000000,
        .metrics = metrics,
        .etw = &etw,
    };
    if (ew_source_etw.open(&config, &source, &error) != 0)
        FAIL(error.message);
    *ret_available = source->ops->available;
    struct ew_sampler_config wish = {
        .source = ETWATCH_SOURCE_ETW,
        .threads = true,
        .available = source->ops->available,
        .epoch_ns = START_NS,
        .interval_ns = 10000000,
        .max_processes = 65536,
        .max_threads = 131072,
        .ctx = &sums,
        .emit = add_up,
        .loss = no_loss,
    };
    CHECK_EQ_INT(ew_sampler_new(&wish, &sampler), 0);
    ew_sampler_facts(sampler, &facts);
    for (bool over = false; !over;) {
        test_sleep_ms(1);
        bool done = etw_emulator_done(emulator);
        etw_emulator_counts(emulator, &counts);
        CHECK_EQ_INT(source->ops->drain(source, counts.last_ns, &facts, &horizon_ns, &error), 0);
        over = done && horizon_ns >= counts.last_ns;
        CHECK(over || ew_sampler_deliver(sampler, horizon_ns) >= 0);
    }
    CHECK_EQ_INT(source->ops->finish(source, counts.last_ns, &facts, &error), 0);
    CHECK(ew_sampler_finish(sampler, counts.last_ns) >= 0);
    source->ops->close(source);
    ew_sampler_free(sampler);
    return sums;
}

struct made {
    struct etl_memory memory;
    struct etl_truth truth;
};

static void make(struct made *made, enum etl_counters_fate fate)
{
    struct ew_etl_writer *writer;
    struct etl_scenario_config what = {.classes = ETL_EVERYTHING | ETL_COUNTERS,
                                       .counters = fate,
                                       .cpu_count = 4,
                                       .pointer_size = 8,
                                       .seed = 5,
                                       .event_count = 20000,
                                       .start_raw = START_RAW + 50};
    struct ew_etl_writer_config config = {.cpu_count = 4,
                                          .buffer_bytes = 16384,
                                          .start_raw = START_RAW,
                                          .ctx = &made->memory,
                                          .write = etl_memory_write,
                                          .rewrite = etl_memory_rewrite};
    memset(made, 0, sizeof *made);
    CHECK_EQ_INT(ew_etl_writer_new(&config, &writer), 0);
    CHECK_EQ_INT(etl_scenario_run(&what, writer, &made->truth), 0);
    CHECK_EQ_INT(ew_etl_writer_finish(writer, made->truth.last_raw, 0, 0), 0);
    ew_etl_writer_free(writer);
}

static void unmake(struct made *made)
{
    etl_memory_free(&made->memory);
    etl_truth_free(&made->truth);
}

static uint64_t truth_of(const struct made *made, uint32_t which)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < made->truth.thread_count; i++)
        sum += made->truth.threads[i].counters[which];
    return sum;
}

static struct etw_emulator *play(const struct made *made, const char *const *sources)
{
    return make_emulator(&(struct etw_emulator_config){.cpu_count = 4,
                                                       .recording = made->memory.bytes,
                                                       .recording_size = made->memory.size,
                                                       .sources = sources});
}

TEST_BOTH_DELIVERIES(known_counters_give_exact_sums)
{
    struct made made;
    struct etwatch_metric_set available;
    make(&made, ETL_COUNTERS_OURS);
    struct etw_emulator *emulator = play(&made, all);
    struct etwatch_metric_set metrics = counters;
    etwatch_metric_set_add(&metrics, ETWATCH_M_cpu_ns);
    struct sums sums = watch(emulator, metrics, &available);
    CHECK(includes(&available, &counters));
    CHECK_EQ_UINT(sums.cycles, truth_of(&made, ETL_CYCLES));
    CHECK_EQ_UINT(sums.instructions, truth_of(&made, ETL_INSTRUCTIONS));
    CHECK_EQ_UINT(sums.cache_misses, truth_of(&made, ETL_CACHE_MISSES));
    CHECK_EQ_UINT(sums.thread_cycles, sums.cycles);
    CHECK_EQ_UINT(sums.incomplete, 0);
    CHECK(sums.samples > 50 && sums.cycles > 1000000);
    CHECK_EQ_UINT(sums.without, 0);
    etw_emulator_free(emulator);
    unmake(&made);
}

/* The session requests three counters, but its events have four: their meaning is unknown. */
TEST_BOTH_DELIVERIES(counters_other_than_those_requested_are_not_reported)
{
    struct made made;
    struct etwatch_metric_set available;
    make(&made, ETL_COUNTERS_UNNAMED);
    struct etw_emulator *emulator = play(&made, all);
    struct sums sums = watch(emulator, counters, &available);
    CHECK_EQ_UINT(sums.without, sums.samples);
    CHECK_EQ_UINT(sums.cycles, 0);
    etw_emulator_free(emulator);
    unmake(&made);
}

TEST_BOTH_DELIVERIES(counters_of_a_foreign_session_are_reported_if_the_stream_names_them)
{
    struct made made;
    struct etwatch_metric_set available;
    make(&made, ETL_COUNTERS_NAMED);
    struct etw_emulator *emulator = play(&made, none);
    struct sums sums = watch(emulator, (struct etwatch_metric_set){{0}}, &available);
    CHECK_EQ_UINT(sums.cycles, truth_of(&made, ETL_CYCLES));
    CHECK_EQ_UINT(sums.instructions, truth_of(&made, ETL_INSTRUCTIONS));
    etw_emulator_free(emulator);
    unmake(&made);
}

/* -------------------------------------------------------------------- without counters */

static struct list list;

static int list_processes(void *ctx, struct ew_listing *ret_listing, struct ew_error *reterr)
{
    (void)ctx;
    (void)reterr;
    ew_listing_init(ret_listing, list.bytes, list.size, ADDRESS);
    return 0;
}

static void close_list(void *ctx)
{
    (void)ctx;
}

/* How a source offers cycles: available, estimated, or unavailable with the reason. */
static void check_cycles(const char *const *sources, uint32_t kernel, uint64_t listed_cycles,
                         bool available, bool estimated, const char *why)
{
    struct row row = {.pid = 8, .name = "a.exe", .cycles = listed_cycles};
    struct ew_winpoll_system system = {
        .list = list_processes, .close = close_list, .raw_zero = ZERO};
    make_list(&list, &row, 1);
    struct etw_emulator *emulator = etw_emulator_new(
        &(struct etw_emulator_config){.generate = 1, .sources = sources, .processes = &system});
    struct ew_etw_config etw = {
        .api = etw_emulator_api(emulator), .flush_ms = FLUSH_MS, .session = {.kernel = kernel}};
    struct ew_source_config config = {.filter = {.all = true},
                                      .max_processes = 16,
                                      .max_threads = 16,
                                      .proc_root = "/proc",
                                      .interval_ns = 10000000,
                                      .metrics = counters,
                                      .etw = &etw};
    struct ew_source *source = NULL;
    struct ew_error error = {0};
    CHECK_EQ_INT(ew_source_etw.open(&config, &source, &error), 0);
    CHECK_EQ_INT(etwatch_metric_set_has(&source->ops->available, ETWATCH_M_cycles), available);
    CHECK_EQ_INT(etwatch_metric_set_has(&source->ops->estimated, ETWATCH_M_cycles), estimated);
    const char *got = source->ops->unavailable_reason(source, ETWATCH_M_cycles);
    CHECK(why == NULL ? got == NULL : got != NULL && strstr(got, why) != NULL);
    CHECK(source->ops->unavailable_reason(source, ETWATCH_M_cpu_ns) == NULL);
    source->ops->close(source);
    etw_emulator_free(emulator);
}

TEST(without_a_hardware_counter_cycles_come_from_the_process_list)
{
    check_cycles(all, 0, 500, true, false, NULL);
    check_cycles(none, 0, 500, true, true, "no such counter");
    check_cycles(none, 0, 0, false, false, "no such counter");
    check_cycles(all, EW_ETW_PROCESS, 0, false, false, "which this session does not log");
}

TEST(a_session_restarted_with_fewer_counters_reports_none)
{
    struct made made;
    struct etwatch_metric_set available;
    make(&made, ETL_COUNTERS_OURS);
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.cpu_count = 4,
                                                       .recording = made.memory.bytes,
                                                       .recording_size = made.memory.size,
                                                       .stop_after = 10000,
                                                       .stop_times = 1,
                                                       .counters_once = true,
                                                       .sources = all});
    struct sums sums = watch(emulator, counters, &available);
    CHECK(includes(&available, &counters));
    CHECK(sums.cycles > 0 && sums.cycles < truth_of(&made, ETL_CYCLES));
    CHECK(sums.without > 0 && sums.without < sums.samples);
    etw_emulator_free(emulator);
    unmake(&made);
}
