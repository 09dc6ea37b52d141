/* SPDX-License-Identifier: MIT */
/*
 * Records of a live session alone: their totals, sessions of other programs, clocks, and the
 * selection of processes.
 */
#include "etw_kit.h"

#include "decode/decode.h"
#include "source/etl/reader.h"
#include "source/source.h"
#include "tally/tally.h"

/* -------------------------------------------------------------------------- totals */

static int print_total(void *ctx, const struct ew_total *total)
{
    char line[512];
    uint64_t zero_ns = ((struct text *)ctx)->lost; /* in units of its clock */
    int len = snprintf(
        line, sizeof line, "%u %u %u %s %llu %llu %u", total->flags, total->pid, total->tid,
        total->name, (unsigned long long)(total->start_ns ? total->start_ns - zero_ns : 0),
        (unsigned long long)(total->end_ns ? total->end_ns - zero_ns : 0), total->counter_has);
    CHECK_EQ_INT(append(ctx, line, (size_t)len), 0);
    for (int i = 0; i < EW_COUNTER_COUNT; i++) {
        len = snprintf(line, sizeof line, " %llu", (unsigned long long)total->counter[i]);
        CHECK_EQ_INT(append(ctx, line, (size_t)len), 0);
    }
    return append(ctx, "\n", 1);
}

static uint64_t etl_raw_to_ns(void *ctx, const struct ew_record *record, uint64_t raw)
{
    return ew_etl_raw_to_ns(ctx, record, raw);
}

static uint64_t etw_raw_to_ns(void *ctx, const struct ew_record *record, uint64_t raw)
{
    (void)record;
    return ew_etw_consumer_raw_to_ns(ctx, raw);
}

static void add(struct ew_tally *tally, const struct ew_record *records, int count)
{
    struct ew_event event;
    for (int i = 0; i < count; i++)
        if (ew_decode_event(&records[i], &event))
            CHECK_EQ_INT(ew_tally_event(tally, &records[i], &event, NULL), 0);
}

static void print_totals(struct ew_tally *tally, uint64_t zero_ns, uint64_t end_ns,
                         struct text *text)
{
    memset(text, 0, sizeof *text);
    text->lost = zero_ns;
    ew_tally_finish(tally, end_ns, NULL);
    CHECK_EQ_INT(ew_tally_totals(tally, true, print_total, text), 0);
    ew_tally_free(tally);
}

static void totals_recorded(const struct recorded_scenario *recorded, struct text *text)
{
    struct ew_etl_reader *reader;
    const struct ew_record *records;
    struct ew_tally *tally;
    int count;
    CHECK_EQ_INT(
        ew_etl_open_memory(recorded->memory.bytes, recorded->memory.size, NULL, &reader, NULL), 0);
    struct ew_tally_config config = {.clock_ctx = reader, .raw_to_ns = etl_raw_to_ns};
    CHECK_EQ_INT(ew_tally_new(&config, &tally), 0);
    while ((count = ew_etl_next(reader, &records)) > 0)
        add(tally, records, count);
    print_totals(tally, 0, (recorded->last_raw - START_RAW) * TICK_NS, text);
    ew_etl_close(reader);
}

static void totals_live(const struct recorded_scenario *recorded, uint32_t cpus, struct text *text)
{
    struct etw_emulator *emulator =
        make_emulator(&(struct etw_emulator_config){.cpu_count = cpus,
                                                    .recording = recorded->memory.bytes,
                                                    .recording_size = recorded->memory.size});
    struct ew_etw_config etw = {
        .api = etw_emulator_api(emulator), .flush_ms = FLUSH_MS, .session = {.kernel = ALL_KERNEL}};
    struct ew_etw_consumer *consumer;
    const struct ew_record *records;
    struct ew_tally *tally;
    int count;
    CHECK_EQ_INT(ew_etw_consumer_open(&etw, &consumer, NULL), 0);
    struct ew_tally_config config = {.first_ns = START_NS,
                                     .epoch_ns = START_NS,
                                     .clock_ctx = consumer,
                                     .raw_to_ns = etw_raw_to_ns};
    CHECK_EQ_INT(ew_tally_new(&config, &tally), 0);
    while (!etw_emulator_done(emulator)) {
        while ((count = ew_etw_consumer_next(consumer, &records, NULL)) > 0)
            add(tally, records, count);
        test_sleep_ms(1);
    }
    ew_etw_consumer_finish(consumer);
    while ((count = ew_etw_consumer_next(consumer, &records, NULL)) > 0)
        add(tally, records, count);
    print_totals(tally, START_NS, recorded->last_raw * TICK_NS, text);
    ew_etw_consumer_close(consumer);
    etw_emulator_free(emulator);
}

TEST_BOTH_DELIVERIES(totals_are_the_same_in_every_delivery)
{
    struct recorded_scenario recorded;
    struct text live, want;
    record(&recorded,
           &(struct etl_scenario_config){
               .classes = ETL_EVERYTHING, .cpu_count = 4, .seed = 31, .event_count = 20000});
    totals_recorded(&recorded, &want);
    totals_live(&recorded, 4, &live);
    CHECK(want.len > 1000);
    check_same(&live, &want);
    free(live.bytes);
    free(want.bytes);
    forget(&recorded);
}

/* ------------------------------------------------------------------- foreign sessions */

TEST_BOTH_DELIVERIES(a_foreign_session_is_read_and_not_changed)
{
    struct recorded_scenario recorded;
    record(&recorded, &(struct etl_scenario_config){
                          .classes = ETL_SWITCHES, .cpu_count = 2, .seed = 3, .event_count = 3000});
    struct etw_emulator *emulator =
        make_emulator(&(struct etw_emulator_config){.cpu_count = 2,
                                                    .recording = recorded.memory.bytes,
                                                    .recording_size = recorded.memory.size});
    etw_emulator_add(emulator, "NT Kernel Logger", 0x100, 0x11);
    etw_emulator_add(emulator, "AutoLogger", 0x1, 0x1);
    struct ew_etw_config etw = {
        .api = etw_emulator_api(emulator), .flush_ms = FLUSH_MS, .attach = "NT Kernel Logger"};
    struct ew_etw_consumer *consumer;
    const struct ew_record *records;
    struct ew_error error = {0};
    uint64_t taken = 0;
    int count;
    CHECK_EQ_INT(ew_etw_consumer_open(&etw, &consumer, &error), 0);
    CHECK_EQ_UINT(ew_etw_consumer_kernel(consumer), EW_ETW_PROCESS | EW_ETW_CSWITCH);
    while (!etw_emulator_done(emulator))
        test_sleep_ms(1);
    ew_etw_consumer_finish(consumer);
    while ((count = ew_etw_consumer_next(consumer, &records, &error)) > 0)
        taken += (uint64_t)count;
    CHECK_EQ_INT(count, 0);
    ew_etw_consumer_close(consumer);
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(taken, counts.delivered);
    CHECK_EQ_UINT(counts.sessions, 2);
    CHECK_EQ_UINT(counts.flushes, 0);
    CHECK_EQ_UINT(counts.stops, 0);
    etw.attach = "no such";
    CHECK_EQ_INT(ew_etw_consumer_open(&etw, &consumer, &error), ETWATCH_ENOENT);
    CHECK_CONTAINS(error.fix, "etwatch sessions");
    etw.attach = "AutoLogger";
    CHECK_EQ_INT(ew_etw_consumer_open(&etw, &consumer, &error), ETWATCH_EINVAL);
    etw_emulator_free(emulator);
    forget(&recorded);
}

/* ---------------------------------------------------------------------------- clocks */

TEST_BOTH_DELIVERIES(every_session_clock_is_converted_to_the_machines_clock)
{
    static const struct {
        uint32_t clock;
        uint64_t frequency, raw, ns;
    } rows[] = {
        {1, 10000000, 12345678, 1234567800},
        {1, 3000000, 3000001, 1000000333},
        {1, 24000000, UINT64_C(24000000) * 86400 * 365, UINT64_C(31536000000000000)},
        /* units of 100 ns since 1601; the machine's clock was 0 when the wall clock was
           start_filetime */
        {2, 10000000, UINT64_C(134116992000000000) + 55, 5500},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct etw_emulator *emulator = make_emulator(&(struct etw_emulator_config){
            .clock = rows[i].clock, .perf_frequency = rows[i].frequency, .generate = 1});
        struct ew_etw_config etw = {.api = etw_emulator_api(emulator), .flush_ms = FLUSH_MS};
        struct ew_etw_consumer *consumer;
        CHECK_EQ_INT(ew_etw_consumer_open(&etw, &consumer, NULL), 0);
        CHECK_EQ_UINT(ew_etw_consumer_raw_to_ns(consumer, rows[i].raw), rows[i].ns);
        ew_etw_consumer_close(consumer);
        etw_emulator_free(emulator);
    }
}

/* --------------------------------------------------------------------- selection */

struct selection {
    uint32_t pid;
    uint32_t processes, others, readings;
};

static void on_process(void *ctx, const struct ew_process_fact *fact)
{
    struct selection *selection = ctx;
    selection->processes += fact->pid == selection->pid;
    selection->others += fact->pid != selection->pid && fact->ppid != selection->pid;
}

static void on_reading(void *ctx, const struct ew_reading *reading)
{
    struct selection *selection = ctx;
    selection->readings += reading->pid == selection->pid;
}

static void ignore_loss(void *ctx, const struct etwatch_loss *loss)
{
    (void)ctx;
    (void)loss;
}

TEST_BOTH_DELIVERIES(an_added_process_is_reported_from_then_on)
{
    struct recorded_scenario recorded;
    struct selection selection = {.pid = 8}; /* the first process of the synthetic machine */
    struct ew_facts facts = {
        .ctx = &selection, .process = on_process, .reading = on_reading, .loss = ignore_loss};
    record(&recorded, &(struct etl_scenario_config){.classes = ETL_SWITCHES | ETL_READY,
                                                    .cpu_count = 4,
                                                    .seed = 51,
                                                    .gap_ticks = 600,
                                                    .event_count = 20000});
    struct etw_emulator *emulator =
        make_emulator(&(struct etw_emulator_config){.cpu_count = 4,
                                                    .recording = recorded.memory.bytes,
                                                    .recording_size = recorded.memory.size,
                                                    .hold = 500});
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator), .flush_ms = FLUSH_MS};
    struct ew_source_config config = {.max_processes = 1000,
                                      .max_threads = 1000,
                                      .proc_root = "/proc",
                                      .epoch_ns = START_NS,
                                      .interval_ns = 10000000,
                                      .etw = &etw};
    struct ew_source *source = NULL;
    uint64_t horizon_ns = 0;
    CHECK_EQ_INT(ew_source_etw.open(&config, &source, NULL), 0);
    while (horizon_ns < START_NS + 200000000) {
        CHECK_EQ_INT(source->ops->drain(source, UINT64_MAX / 4, &facts, &horizon_ns, NULL), 0);
        test_sleep_ms(1);
    }
    CHECK_EQ_UINT(selection.processes + selection.others + selection.readings, 0);
    CHECK_EQ_INT(source->ops->add(source, selection.pid), 0);
    CHECK_EQ_INT(source->ops->add(source, selection.pid), 0);
    while (!etw_emulator_done(emulator)) {
        CHECK_EQ_INT(source->ops->drain(source, UINT64_MAX / 4, &facts, &horizon_ns, NULL), 0);
        test_sleep_ms(1);
    }
    CHECK_EQ_UINT(selection.processes, 1);
    CHECK_EQ_UINT(selection.others, 0);
    CHECK(selection.readings > 10);
    CHECK_EQ_INT(source->ops->remove(source, selection.pid), 0);
    CHECK_EQ_INT(source->ops->remove(source, selection.pid), ETWATCH_ENOENT);
    uint32_t before = selection.readings;
    CHECK_EQ_INT(source->ops->finish(source, horizon_ns, &facts, NULL), 0);
    CHECK_EQ_UINT(selection.readings, before);
    source->ops->close(source);
    etw_emulator_free(emulator);
    forget(&recorded);
}

/* ----------------------------------------------------------------------------- memory */

static int open_and_close(void *ctx)
{
    struct etw_emulator *emulator = ctx;
    struct ew_etw_config etw = {
        .api = etw_emulator_api(emulator), .flush_ms = FLUSH_MS, .pool_bytes = 1 << 20};
    struct ew_source_config config = {.filter = {.all = true},
                                      .max_processes = 100,
                                      .max_threads = 100,
                                      .proc_root = "/proc",
                                      .interval_ns = 1000000,
                                      .etw = &etw};
    struct ew_source *source = NULL;
    int rc = ew_source_etw.open(&config, &source, NULL);
    if (rc == 0)
        source->ops->close(source);
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(counts.sessions, 0);
    return rc;
}

TEST_BOTH_DELIVERIES(without_memory_no_session_is_left_running)
{
    struct etw_emulator *emulator = make_emulator(&(struct etw_emulator_config){.generate = 1});
    TORTURE(open_and_close, emulator);
    etw_emulator_free(emulator);
}
