/* SPDX-License-Identifier: MIT */
/*
 * A live session against the emulator: fed with a recording it tells what reading the recording
 * tells, byte for byte; losses are counted once, wherever they happen; a session that is stopped
 * comes back, and when it does not, the error says so.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <etwatch/sink.h>

#include "decode/decode.h"
#include "etl_kit.h"
#include "etw_emulator.h"
#include "os/os.h"
#include "sampler/sampler.h"
#include "scenario.h"
#include "source/etl/reader.h"
#include "source/etw/consumer.h"
#include "source/source.h"
#include "system.h"
#include "tally/tally.h"

enum { START_RAW = 1000000, TICK_NS = 100, FLUSH_MS = 2 };
#define START_NS ((uint64_t)START_RAW * TICK_NS)
/* Everything that the made-up machine logs. */
#define ALL_KERNEL ((UINT32_C(1) << EW_ETW_KERNEL_COUNT) - 1)

/* ----------------------------------------------------------------------- the text */

struct text {
    char *bytes;
    size_t len, size;
    struct etwatch_sink *sink;
    uint64_t lost;
};

static int append(void *ctx, const void *bytes, size_t len)
{
    struct text *text = ctx;
    if (text->len + len + 1 > text->size) {
        text->size = (text->len + len + 1) * 2;
        text->bytes = realloc(text->bytes, text->size);
        CHECK(text->bytes != NULL);
    }
    memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
    text->bytes[text->len] = '\0';
    return 0;
}

static void begin_text(struct text *text)
{
    struct etwatch_sink_options options = {.size = sizeof options};
    memset(text, 0, sizeof *text);
    CHECK_EQ_INT(etwatch_sink_new(ETWATCH_FORMAT_JSONL, append, text, &options, &text->sink, NULL),
                 0);
}

static void end_text(struct text *text)
{
    CHECK_EQ_INT(etwatch_sink_flush(text->sink), 0);
    etwatch_sink_free(text->sink);
    text->sink = NULL;
}

static void on_samples(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    CHECK_EQ_INT(etwatch_sink_samples(((struct text *)ctx)->sink, samples, count), 0);
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct text *text = ctx;
    text->lost += loss->count;
    CHECK_EQ_INT(etwatch_sink_loss(text->sink, loss), 0);
}

static void check_same(const struct text *got, const struct text *want)
{
    size_t at = 0, line = 1, begin = 0;
    while (at < got->len && at < want->len && got->bytes[at] == want->bytes[at]) {
        if (got->bytes[at++] == '\n') {
            line++;
            begin = at;
        }
    }
    if (at < got->len || at < want->len) {
        printf("# line %zu: live     %.900s\n", line, got->bytes + begin);
        printf("# line %zu: recorded %.900s\n", line, want->bytes + begin);
    }
    CHECK_EQ_UINT(at, got->len);
    CHECK_EQ_UINT(at, want->len);
}

/* ----------------------------------------------------------------------- recordings */

struct recorded {
    char folder[320], path[340];
    struct etl_memory memory;
    uint64_t last_raw, events;
};

static void record(struct recorded *recorded, const struct etl_scenario_config *given)
{
    struct ew_etl_writer *writer;
    struct etl_truth truth;
    struct etl_scenario_config what = *given;
    memset(recorded, 0, sizeof *recorded);
    what.pointer_size = what.pointer_size ? what.pointer_size : 8;
    what.start_raw = START_RAW + 50;
    struct ew_etl_writer_config config = {.cpu_count = what.cpu_count,
                                          .buffer_bytes = 16384,
                                          .pointer_size = what.pointer_size,
                                          .start_raw = START_RAW,
                                          .ctx = &recorded->memory,
                                          .write = etl_memory_write,
                                          .rewrite = etl_memory_rewrite};
    CHECK_EQ_INT(ew_etl_writer_new(&config, &writer), 0);
    CHECK_EQ_INT(etl_scenario_run(&what, writer, &truth), 0);
    CHECK_EQ_INT(ew_etl_writer_finish(writer, truth.last_raw, 0, 0), 0);
    recorded->last_raw = truth.last_raw;
    recorded->events = truth.events;
    ew_etl_writer_free(writer);
    etl_truth_free(&truth);
    test_folder(recorded->folder, sizeof recorded->folder);
    (void)snprintf(recorded->path, sizeof recorded->path, "%s/t.etl", recorded->folder);
    FILE *file = fopen(recorded->path, "wb");
    CHECK(file != NULL);
    CHECK_EQ_UINT(fwrite(recorded->memory.bytes, 1, recorded->memory.size, file),
                  recorded->memory.size);
    CHECK_EQ_INT(fclose(file), 0);
}

static void forget(struct recorded *recorded)
{
    etl_memory_free(&recorded->memory);
    (void)remove(recorded->path);
    test_folder_remove(recorded->folder);
}

static void tell_recorded(const char *path, double hz, uint32_t flags, struct text *text,
                          struct etwatch_meta *ret_meta)
{
    struct etwatch_monitor *monitor = NULL;
    struct etwatch_config config = {
        .size = sizeof config,
        .source = ETWATCH_SOURCE_ETL,
        .flags = flags,
        .hz = hz,
        .traces = &path,
        .trace_count = 1,
        .callbacks = {.size = sizeof config.callbacks,
                      .on_samples = on_samples,
                      .on_loss = on_loss,
                      .ctx = text},
    };
    begin_text(text);
    CHECK_EQ_INT(etwatch_monitor_new(&config, &monitor, NULL), 0);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    ret_meta->size = sizeof *ret_meta;
    CHECK_EQ_INT(etwatch_monitor_meta(monitor, ret_meta), 0);
    int rc;
    while ((rc = etwatch_monitor_poll(monitor, 0)) >= 0)
        ;
    CHECK_EQ_INT(rc, ETWATCH_ESTATE);
    etwatch_monitor_free(monitor);
    end_text(text);
}

/* ----------------------------------------------------------------------------- live */

struct told {
    struct ew_source_stats stats;
    struct ew_error error;
    int rc; /* of the drain that failed */
    uint64_t available;
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
        .threads = (flags & ETWATCH_THREADS) != 0,
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

/* Drains until all has come and has been told, as the monitor would. */
static void tell_live(struct etw_emulator *emulator, struct ew_etw_config *etw, double hz,
                      uint32_t flags, struct text *text, struct told *told)
{
    struct ew_source *source = open_live(emulator, etw, hz, flags);
    struct ew_sampler *sampler = NULL;
    struct ew_facts facts;
    struct etw_emulator_counts counts;
    uint64_t horizon_ns = 0;
    struct ew_sampler_config config = {
        .source = ETWATCH_SOURCE_ETL, /* to be the same bytes */
        .threads = (flags & ETWATCH_THREADS) != 0,
        .dense = (flags & ETWATCH_DENSE) != 0,
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
    memset(told, 0, sizeof *told);
    told->available = source->ops->available;
    begin_text(text);
    CHECK_EQ_INT(ew_sampler_new(&config, &sampler), 0);
    ew_sampler_facts(sampler, &facts);
    do {
        test_sleep_ms(1);
        bool done = etw_emulator_done(emulator);
        etw_emulator_counts(emulator, &counts);
        told->rc = source->ops->drain(source, counts.last_ns, &facts, &horizon_ns, &told->error);
        told->drains++;
        if (told->rc != 0 || (done && horizon_ns >= counts.last_ns))
            break;
        CHECK(ew_sampler_cut(sampler, horizon_ns) >= 0);
    } while (true);
    if (told->rc == 0)
        CHECK_EQ_INT(source->ops->finish(source, counts.last_ns, &facts, &told->error), 0);
    CHECK(ew_sampler_finish(sampler, counts.last_ns) >= 0);
    source->ops->stats(source, &told->stats);
    source->ops->close(source);
    ew_sampler_free(sampler);
    end_text(text);
}

static void compare(const struct etl_scenario_config *what, double hz, uint32_t flags,
                    uint32_t hold)
{
    struct recorded recorded;
    struct text live, want;
    struct etwatch_meta meta;
    struct told told;
    record(&recorded, what);
    tell_recorded(recorded.path, hz, flags, &want, &meta);
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.cpu_count = what->cpu_count,
                                                       .recording = recorded.memory.bytes,
                                                       .recording_size = recorded.memory.size,
                                                       .hold = hold});
    struct ew_etw_config etw = {.session = {.kernel = ALL_KERNEL}};
    tell_live(emulator, &etw, hz, flags, &live, &told);
    CHECK_EQ_INT(told.rc, 0);
    CHECK_EQ_UINT(told.available, meta.available);
    CHECK(want.len > 5000);
    check_same(&live, &want);
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(counts.sessions, 0);
    CHECK_EQ_UINT(told.stats.events, counts.delivered);
    CHECK_EQ_UINT(told.stats.lost, 0);
    etw_emulator_free(emulator);
    free(live.bytes);
    free(want.bytes);
    forget(&recorded);
}

TEST(a_session_fed_with_a_recording_tells_what_the_recording_tells)
{
    compare(
        &(struct etl_scenario_config){
            .classes = ETL_EVERYTHING, .cpu_count = 4, .seed = 1, .event_count = 20000},
        100, ETWATCH_ALL, 0);
}

TEST(so_it_is_at_every_rate_with_threads_and_when_events_are_held_back)
{
    struct etl_scenario_config what = {.classes = ETL_EVERYTHING, .event_count = 12000};
    static const struct {
        const char *remark;
        uint32_t cpus, pointer_size, flags, hold;
        double hz;
        bool chains;
    } rows[] = {
        {"10 Hz", 2, 8, ETWATCH_ALL, 0, 10, false},
        {"1000 Hz, threads", 8, 8, ETWATCH_ALL | ETWATCH_THREADS, 0, 1000, false},
        {"held", 4, 8, ETWATCH_ALL, 500, 100, false},
        {"held, dense", 3, 8, ETWATCH_ALL | ETWATCH_DENSE, 977, 50, false},
        {"32 bit", 2, 4, ETWATCH_ALL, 0, 100, false},
        {"chains", 16, 8, ETWATCH_ALL, 0, 100, true},
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

/* -------------------------------------------------------------------------- totals */

static int print_total(void *ctx, const struct ew_total *total)
{
    char line[512];
    uint64_t zero_ns = ((struct text *)ctx)->lost; /* of its clock */
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

static void totals_recorded(const struct recorded *recorded, struct text *text)
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

static void totals_live(const struct recorded *recorded, uint32_t cpus, struct text *text)
{
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.cpu_count = cpus,
                                                       .recording = recorded->memory.bytes,
                                                       .recording_size = recorded->memory.size});
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator), .flush_ms = FLUSH_MS};
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

TEST(what_everybody_did_is_the_same_in_all)
{
    struct recorded recorded;
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

/* -------------------------------------------------------------------------- losses */

static void check_losses(bool marks)
{
    struct recorded recorded;
    struct text text;
    struct told told;
    struct etw_emulator_counts counts;
    record(&recorded,
           &(struct etl_scenario_config){
               .classes = ETL_EVERYTHING, .cpu_count = 4, .seed = 41, .event_count = 20000});
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.cpu_count = 4,
                                                       .recording = recorded.memory.bytes,
                                                       .recording_size = recorded.memory.size,
                                                       .lose_every = 997,
                                                       .lose_marks = marks});
    struct ew_etw_config etw = {.session = {.kernel = ALL_KERNEL}};
    tell_live(emulator, &etw, 100, ETWATCH_ALL, &text, &told);
    etw_emulator_counts(emulator, &counts);
    CHECK(counts.lost >= 20);
    CHECK_EQ_UINT(text.lost, counts.lost);
    CHECK(strstr(text.bytes, "\"complete\":false") != NULL);
    CHECK_EQ_UINT(counts.sessions, 0);
    etw_emulator_free(emulator);
    free(text.bytes);
    forget(&recorded);
}

TEST(as_many_events_are_told_lost_as_were)
{
    test_row("only totals");
    check_losses(false);
    test_row("marks in the stream too");
    check_losses(true);
}

TEST(a_full_pool_loses_and_says_how_many)
{
    struct text text;
    struct told told;
    struct etw_emulator_counts counts;
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.cpu_count = 2, .generate = 40000});
    struct ew_etw_config etw = {.session = {.kernel = ALL_KERNEL}, .pool_bytes = 1};
    tell_live(emulator, &etw, 10, ETWATCH_ALL, &text, &told);
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(counts.delivered, 80000);
    CHECK_EQ_UINT(told.stats.events + told.stats.lost, counts.delivered);
    CHECK_EQ_UINT(text.lost, told.stats.lost);
    etw_emulator_free(emulator);
    free(text.bytes);
}

/* ------------------------------------------------------------------------- restarts */

static void check_restarts(uint32_t times)
{
    struct text text;
    struct told told;
    struct etw_emulator_counts counts;
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){
        .cpu_count = 2, .generate = 1000, .stop_after = 500, .stop_times = times});
    struct ew_etw_config etw = {.session = {.kernel = ALL_KERNEL}};
    tell_live(emulator, &etw, 10, ETWATCH_ALL, &text, &told);
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_INT(told.rc, times <= 3 ? 0 : ETWATCH_ESTATE);
    if (times > 3) {
        CHECK_EQ_INT(told.error.code, ETWATCH_ESTATE);
        CHECK_CONTAINS(told.error.message, "etwatch-watch");
    }
    /* Every gap is one. */
    CHECK_EQ_UINT(text.lost, times <= 3 ? times : 3);
    CHECK_EQ_UINT(counts.starts, times <= 3 ? times + 1 : 4);
    CHECK_EQ_UINT(counts.sessions, 0);
    CHECK_EQ_UINT(told.stats.events, counts.delivered);
    etw_emulator_free(emulator);
    free(text.bytes);
}

TEST(a_session_that_somebody_stops_comes_back_three_times)
{
    check_restarts(1);
    check_restarts(3);
    check_restarts(4);
}

/* ------------------------------------------------------------------- others' sessions */

TEST(another_session_is_read_and_not_touched)
{
    struct recorded recorded;
    record(&recorded, &(struct etl_scenario_config){
                          .classes = ETL_SWITCHES, .cpu_count = 2, .seed = 3, .event_count = 3000});
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.cpu_count = 2,
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

TEST(every_clock_of_a_session_becomes_the_machines)
{
    static const struct {
        uint32_t clock;
        uint64_t frequency, raw, ns;
    } rows[] = {
        {1, 10000000, 12345678, 1234567800},
        {1, 3000000, 3000001, 1000000333},
        {1, 24000000, UINT64_C(24000000) * 86400 * 365, UINT64_C(31536000000000000)},
        /* 100 ns since 1601; the machine's clock was 0 when the wall's was start_filetime */
        {2, 10000000, UINT64_C(134116992000000000) + 55, 5500},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){
            .clock = rows[i].clock, .perf_frequency = rows[i].frequency, .generate = 1});
        struct ew_etw_config etw = {.api = etw_emulator_api(emulator), .flush_ms = FLUSH_MS};
        struct ew_etw_consumer *consumer;
        CHECK_EQ_INT(ew_etw_consumer_open(&etw, &consumer, NULL), 0);
        CHECK_EQ_UINT(ew_etw_consumer_raw_to_ns(consumer, rows[i].raw), rows[i].ns);
        ew_etw_consumer_close(consumer);
        etw_emulator_free(emulator);
    }
}

/* ---------------------------------------------------------------------- who is chosen */

struct chosen {
    uint32_t pid;
    uint32_t processes, others, readings;
};

static void on_process(void *ctx, const struct ew_process_fact *fact)
{
    struct chosen *chosen = ctx;
    chosen->processes += fact->pid == chosen->pid;
    chosen->others += fact->pid != chosen->pid && fact->ppid != chosen->pid;
}

static void on_reading(void *ctx, const struct ew_reading *reading)
{
    struct chosen *chosen = ctx;
    chosen->readings += reading->pid == chosen->pid;
}

static void ignore_loss(void *ctx, const struct etwatch_loss *loss)
{
    (void)ctx;
    (void)loss;
}

TEST(whoever_is_added_is_told_from_then_on)
{
    struct recorded recorded;
    struct chosen chosen = {.pid = 8}; /* of the first process of the made-up machine */
    struct ew_facts facts = {
        .ctx = &chosen, .process = on_process, .reading = on_reading, .loss = ignore_loss};
    record(&recorded, &(struct etl_scenario_config){.classes = ETL_SWITCHES | ETL_READY,
                                                    .cpu_count = 4,
                                                    .seed = 51,
                                                    .gap_ticks = 600,
                                                    .event_count = 20000});
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.cpu_count = 4,
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
    CHECK_EQ_UINT(chosen.processes + chosen.others + chosen.readings, 0);
    CHECK_EQ_INT(source->ops->add(source, chosen.pid), 0);
    CHECK_EQ_INT(source->ops->add(source, chosen.pid), 0);
    while (!etw_emulator_done(emulator)) {
        CHECK_EQ_INT(source->ops->drain(source, UINT64_MAX / 4, &facts, &horizon_ns, NULL), 0);
        test_sleep_ms(1);
    }
    CHECK_EQ_UINT(chosen.processes, 1);
    CHECK_EQ_UINT(chosen.others, 0);
    CHECK(chosen.readings > 10);
    CHECK_EQ_INT(source->ops->remove(source, chosen.pid), 0);
    CHECK_EQ_INT(source->ops->remove(source, chosen.pid), ETWATCH_ENOENT);
    uint32_t before = chosen.readings;
    CHECK_EQ_INT(source->ops->finish(source, horizon_ns, &facts, NULL), 0);
    CHECK_EQ_UINT(chosen.readings, before);
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

TEST(without_memory_no_session_is_left)
{
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){.generate = 1});
    TORTURE(open_and_close, emulator);
    etw_emulator_free(emulator);
}
