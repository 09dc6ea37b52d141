/* SPDX-License-Identifier: MIT */
/* Decoded events of live sessions, against the emulator: they are those of the recording that it
 * plays, and of a trace of that recording. */
#include "etw_kit.h"

#include <etwatch/session.h>

#include "arrow_kit.h"
#include "consumer/consumer.h"

/* -------------------------------------------------------------------------- helpers */

struct seen {
    uint64_t count, fields, decoded, processes;
    struct text text; /* a line per event */
    const char *only; /* lines of this event only; NULL: all */
    uint64_t zero_ns; /* subtracted from times */
};

static void note(struct seen *seen, const struct etwatch_trace_event *event)
{
    char line[512];
    seen->count++;
    seen->fields += event->field_count;
    seen->decoded += (event->flags & ETWATCH_TRACE_DECODED) != 0;
    seen->processes += event->process != NULL;
    if (seen->only != NULL && strcmp(event->event, seen->only) != 0)
        return;
    int len = snprintf(line, sizeof line, "%llu %s %s %u %u %u %d %u\n",
                       (unsigned long long)(event->t_ns - seen->zero_ns), event->provider,
                       event->event, event->cpu, event->opcode, event->version,
                       (event->flags & ETWATCH_TRACE_HAS_TID) != 0 ? (int)event->tid : -1,
                       event->field_count);
    CHECK_EQ_INT(append(&seen->text, line, (size_t)len), 0);
}

static void on_event(void *ctx, const struct etwatch_trace_event *event)
{
    CHECK_EQ_UINT(event->size, sizeof *event);
    note(ctx, event);
}

static void read_trace(const struct recorded_scenario *recorded, struct seen *seen)
{
    struct etwatch_trace *trace;
    struct etwatch_trace_event event = {.size = sizeof event};
    const char *path = recorded->file.path;
    CHECK_EQ_INT(etwatch_trace_open(&path, 1, NULL, &trace, NULL), 0);
    while (etwatch_trace_next(trace, &event, NULL) > 0) {
        CHECK_EQ_INT(etwatch_trace_fields(trace, &event), 0);
        note(seen, &event);
    }
    etwatch_trace_free(trace);
}

/* Everything that the emulator plays. */
static void consume(struct etw_emulator *emulator, const struct etwatch_consumer_options *options,
                    struct seen *seen, struct etwatch_consumer_stats *ret_stats)
{
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator), .flush_ms = FLUSH_MS};
    struct etwatch_error_info error = {.size = sizeof error};
    struct etwatch_consumer *consumer;
    int rc;
    CHECK_EQ_INT(ew_consumer_open_with(options, &etw, &consumer, &error), 0);
    while (!etw_emulator_done(emulator))
        CHECK(etwatch_consumer_poll(consumer, 5, on_event, seen, &error) >= 0);
    etwatch_consumer_stop(consumer);
    while ((rc = etwatch_consumer_poll(consumer, -1, on_event, seen, &error)) > 0)
        ;
    CHECK_EQ_INT(rc, ETWATCH_ESTATE);
    ret_stats->size = sizeof *ret_stats;
    CHECK_EQ_INT(etwatch_consumer_stats(consumer, ret_stats), 0);
    etwatch_consumer_free(consumer);
}

static struct etw_emulator *play(const struct recorded_scenario *recorded, uint32_t cpus)
{
    return make_emulator(&(struct etw_emulator_config){.cpu_count = cpus,
                                                       .recording = recorded->memory.bytes,
                                                       .recording_size = recorded->memory.size});
}

static const struct etwatch_session_options everything = {
    .size = sizeof everything,
    .kernel = "process,thread,counters,cswitch,dispatcher,profile,dpc,interrupt,pagefaults,"
              "hardfaults,disk,disk-init,fileio,fileio-init,network,image,virtualalloc",
};

static void forget_seen(struct seen *seen)
{
    free(seen->text.bytes);
}

/* --------------------------------------------------------------------------- events */

TEST_BOTH_DELIVERIES(a_live_session_delivers_the_events_of_its_recording)
{
    struct recorded_scenario recorded;
    struct seen live = {0}, want = {0};
    struct etwatch_consumer_stats stats;
    struct etwatch_consumer_options options = {.size = sizeof options,
                                               .session_options = &everything};
    record(&recorded,
           &(struct etl_scenario_config){
               .classes = ETL_EVERYTHING, .cpu_count = 2, .seed = 5, .event_count = 5000});
    struct etw_emulator *emulator = play(&recorded, 2);
    live.only = want.only = "Thread/CSwitch";
    live.zero_ns = START_NS; /* the counter was 0 at the recording's wall clock */
    read_trace(&recorded, &want);
    consume(emulator, &options, &live, &stats);
    CHECK(want.text.len > 1000);
    check_same(&live.text, &want.text);
    CHECK_EQ_UINT(stats.delivered, live.count);
    CHECK_EQ_UINT(stats.events, live.count);
    CHECK_EQ_UINT(stats.lost, 0);
    CHECK_EQ_UINT(stats.source, ETWATCH_SOURCE_ETW);
    CHECK(live.fields > live.count);
    CHECK(live.processes > live.count / 2);
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(counts.ours, 0); /* nothing is left behind */
    etw_emulator_free(emulator);
    forget_seen(&live);
    forget_seen(&want);
    forget(&recorded);
}

TEST_BOTH_DELIVERIES(filters_select_events_before_they_are_decoded)
{
    struct recorded_scenario recorded;
    struct etwatch_consumer_stats stats;
    record(&recorded,
           &(struct etl_scenario_config){
               .classes = ETL_EVERYTHING, .cpu_count = 2, .seed = 5, .event_count = 3000});
    static const char *const switches[] = {"CSwitch"}, *const nothing[] = {"Switch"};
    static const struct {
        const char *remark;
        const char *const *events;
        uint32_t flags;
        bool some, fields;
    } rows[] = {
        {"a name", switches, 0, true, true},
        {"no fields", switches, ETWATCH_CONSUMER_NO_FIELDS, true, false},
        {"a part of a name", nothing, 0, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct seen seen = {0};
        struct etwatch_consumer_options options = {.size = sizeof options,
                                                   .flags = rows[i].flags,
                                                   .session_options = &everything,
                                                   .events = rows[i].events,
                                                   .event_count = 1};
        struct etw_emulator *emulator = play(&recorded, 2);
        test_row(rows[i].remark);
        consume(emulator, &options, &seen, &stats);
        CHECK_EQ_INT(seen.count > 100, rows[i].some);
        CHECK_EQ_INT(seen.fields > 0, rows[i].fields);
        CHECK(stats.events > seen.count);
        etw_emulator_free(emulator);
        forget_seen(&seen);
    }
    forget(&recorded);
}

/* -------------------------------------------------------------------------- layouts */

/* Events of a provider that no table has. */
static void record_unknown(struct recorded_scenario *recorded)
{
    struct ew_etl_writer *writer;
    struct etl_payload *payload = calloc(1, sizeof *payload);
    memset(recorded, 0, sizeof *recorded);
    struct ew_etl_writer_config config = {.cpu_count = 1,
                                          .buffer_bytes = 16384,
                                          .start_raw = START_RAW,
                                          .ctx = &recorded->memory,
                                          .write = etl_memory_write,
                                          .rewrite = etl_memory_rewrite};
    CHECK_EQ_INT(ew_etl_writer_new(&config, &writer), 0);
    for (uint32_t i = 0; i < 10; i++) {
        etl_clear(payload);
        etl_u32(payload, i);
        etl_wide(payload, "job");
        struct ew_etl_event event = {.header_type = 19,
                                     .provider = etw_emulator_provider_guid,
                                     .id = i < 5 ? 7 : 8,
                                     .version = 1,
                                     .level = 4,
                                     .opcode = 1,
                                     .pid = 4000,
                                     .tid = 4004,
                                     .t_raw = START_RAW + 100 + i * 100,
                                     .payload = payload->bytes,
                                     .payload_size = payload->size};
        CHECK_EQ_INT(ew_etl_write(writer, &event), 0);
    }
    CHECK_EQ_INT(ew_etl_writer_finish(writer, START_RAW + 5000, 0, 0), 0);
    ew_etl_writer_free(writer);
    free(payload);
    write_recorded(&recorded->file, &recorded->memory);
}

static void on_unknown(void *ctx, const struct etwatch_trace_event *event)
{
    struct seen *seen = ctx;
    if (event->id == 7) {
        CHECK_EQ_STR(event->provider, ETW_EMULATOR_PROVIDER);
        CHECK_EQ_STR(event->event, "Job/Start");
        CHECK_EQ_UINT(event->field_count, 2);
        CHECK_EQ_STR(event->fields[0].name, "Number");
        CHECK_EQ_UINT(event->fields[0].v.u, seen->decoded);
        CHECK_EQ_STR(event->fields[1].v.text, "job");
        seen->decoded++;
    } else if (event->id == 8) {
        CHECK_EQ_STR(event->event, "EventID(8)");
        CHECK_EQ_STR(event->provider, ETW_EMULATOR_PROVIDER); /* as it was enabled */
        CHECK_EQ_UINT(event->flags & ETWATCH_TRACE_DECODED, 0);
        seen->count++;
    }
}

TEST_BOTH_DELIVERIES(the_layout_of_an_unknown_event_is_queried_once)
{
    struct recorded_scenario recorded;
    struct seen seen = {0};
    struct etwatch_consumer *consumer;
    record_unknown(&recorded);
    struct etw_emulator *emulator = play(&recorded, 1);
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator), .flush_ms = FLUSH_MS};
    struct etwatch_provider provider = {.size = sizeof provider, .name = ETW_EMULATOR_PROVIDER};
    struct etwatch_session_options session = {
        .size = sizeof session, .providers = &provider, .provider_count = 1};
    struct etwatch_consumer_options options = {.size = sizeof options, .session_options = &session};
    CHECK_EQ_INT(ew_consumer_open_with(&options, &etw, &consumer, NULL), 0);
    while (!etw_emulator_done(emulator))
        test_sleep_ms(1);
    etwatch_consumer_stop(consumer);
    while (etwatch_consumer_poll(consumer, -1, on_unknown, &seen, NULL) > 0)
        ;
    CHECK_EQ_UINT(seen.decoded, 5);
    CHECK_EQ_UINT(seen.count, 5);
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(counts.layouts, 2); /* one for each kind */
    etwatch_consumer_free(consumer);
    etw_emulator_free(emulator);
    forget(&recorded);
}

/* -------------------------------------------------------------------------- streams */

TEST(a_stream_has_the_events_of_a_poll_and_ends_after_stop)
{
    struct recorded_scenario recorded;
    struct seen want = {0};
    struct etwatch_consumer_stats stats;
    struct etwatch_consumer_options options = {.size = sizeof options,
                                               .session_options = &everything};
    struct etwatch_table_options table = {
        .size = sizeof table, .flags = ETWATCH_TABLE_FIELDS, .batch_rows = 512};
    struct ArrowArrayStream stream;
    struct ArrowArray array;
    uint64_t rows = 0, full = 0;
    record(&recorded,
           &(struct etl_scenario_config){
               .classes = ETL_EVERYTHING, .cpu_count = 2, .seed = 5, .event_count = 5000});
    struct etw_emulator *emulator = play(&recorded, 2);
    consume(emulator, &options, &want, &stats);
    etw_emulator_free(emulator);
    emulator = play(&recorded, 2);
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator), .flush_ms = FLUSH_MS};
    struct etwatch_consumer *consumer;
    CHECK_EQ_INT(ew_consumer_open_with(&options, &etw, &consumer, NULL), 0);
    CHECK_EQ_INT(etwatch_consumer_stream(consumer, 1, &table, &stream, NULL), 0);
    for (;;) {
        if (etw_emulator_done(emulator))
            etwatch_consumer_stop(consumer);
        CHECK_EQ_INT(stream.get_next(&stream, &array), 0);
        if (array.release == NULL)
            break;
        CHECK_EQ_INT(array.n_children, 14);
        rows += (uint64_t)array.length;
        full += array.length == 512;
        CHECK(array.length <= 512);
        array.release(&array);
    }
    CHECK_EQ_UINT(rows, want.count);
    CHECK(full > 0);
    etwatch_consumer_free(consumer); /* the stream keeps it */
    CHECK_EQ_INT(stream.get_next(&stream, &array), 0);
    CHECK(array.release == NULL);
    stream.release(&stream);
    etw_emulator_free(emulator);
    forget_seen(&want);
    forget(&recorded);
}

/* --------------------------------------------------------------------------- errors */

TEST(what_cannot_be_opened_has_a_reason)
{
    struct etw_emulator *emulator = etw_emulator_new(&(struct etw_emulator_config){.generate = 1});
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator), .flush_ms = FLUSH_MS};
    struct etwatch_provider provider = {.size = sizeof provider, .name = "No-Such-Provider"};
    struct etwatch_session_options session = {
        .size = sizeof session, .providers = &provider, .provider_count = 1};
    const struct {
        const char *remark;
        struct etwatch_consumer_options options;
        int code;
    } rows[] = {
        {"no provider is named", {.session_options = &session}, ETWATCH_EINVAL},
        {"read as it is", {.session = "x", .session_options = &session}, ETWATCH_EINVAL},
        {"unknown bit", {.flags = 1u << 9}, ETWATCH_EINVAL},
        {"a list or a name is NULL", {.event_count = 1}, ETWATCH_EINVAL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct etwatch_consumer_options options = rows[i].options;
        struct etwatch_error_info error = {.size = sizeof error};
        struct etwatch_consumer *consumer = NULL;
        options.size = sizeof options;
        test_row(rows[i].remark);
        CHECK_EQ_INT(ew_consumer_open_with(&options, &etw, &consumer, &error), rows[i].code);
        CHECK(strstr(error.message, rows[i].remark) != NULL);
    }
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(counts.ours, 0);
    etw_emulator_free(emulator);
    CHECK_EQ_INT(etwatch_consumer_poll(NULL, 0, on_event, NULL, NULL), ETWATCH_EINVAL);
    etwatch_consumer_stop(NULL);
    etwatch_consumer_free(NULL);
}
