/* SPDX-License-Identifier: MIT */
/*
 * A recording gives the same output as its events delivered live: the events of a synthetic machine
 * are delivered once record by record, in chunks of odd sizes, and once through a file; the JSON of
 * both must be equal byte for byte.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/decode.h"
#include "etl_kit.h"
#include "facts_kit.h"
#include "monitor/monitor.h"
#include "replay_machine.h"
#include "sampler/sampler.h"
#include "system.h"
#include "tally/tally.h"

/* ---------------------------------------------------------- through a recording */

static void write_recording(struct recorded *recorded, const struct machine *m, bool compress)
{
    struct etl_memory memory = {0};
    struct ew_etl_writer *writer = NULL;
    struct ew_etl_writer_config config = {
        .cpu_count = CPUS,
        .buffer_bytes = 8192,
        .start_raw = START_RAW,
        .compress = compress,
        .ctx = &memory,
        .write = etl_memory_write,
        .rewrite = etl_memory_rewrite,
    };
    CHECK_EQ_INT(ew_etl_writer_new(&config, &writer), 0);
    for (size_t i = 0; i < m->count; i++)
        CHECK_EQ_INT(ew_etl_write(writer, &m->items[i].event), 0);
    CHECK_EQ_INT(ew_etl_writer_finish(writer, m->now_raw, 0, 0), 0);
    ew_etl_writer_free(writer);
    write_recorded(recorded, &memory);
    etl_memory_free(&memory);
}

/* -------------------------------------------------------------------- directly */

struct direct {
    struct ew_sampler *sampler;
    uint32_t pid; /* selected; 0: all */
};

static void on_interval_over(void *ctx, uint64_t end_ns)
{
    CHECK(ew_sampler_deliver(((struct direct *)ctx)->sampler, end_ns) >= 0);
}

static bool is_wanted(void *ctx, uint32_t pid, const char *name)
{
    (void)name;
    return pid == ((struct direct *)ctx)->pid;
}

static uint64_t raw_to_ns(void *ctx, const struct ew_record *record, uint64_t raw)
{
    (void)ctx;
    (void)record;
    return (raw - START_RAW) * NS_PER_TICK;
}

static void describe(void *ctx, uint32_t pid, uint32_t uid, const char *sid, uint64_t cgroup_id,
                     const char **ret_user, const char **ret_cgroup, const char **ret_cmdline)
{
    (void)ctx;
    (void)pid;
    (void)uid;
    (void)sid;
    (void)cgroup_id;
    *ret_user = *ret_cgroup = NULL;
    *ret_cmdline = "run --password=*** x";
}

static struct ew_record record_of(const struct ew_etl_event *event)
{
    static const uint8_t header[0x50];
    bool perfinfo = event->header_type == 17;
    return (struct ew_record){
        .t_ns = (event->t_raw - START_RAW) * NS_PER_TICK,
        .t_raw = event->t_raw,
        .header = header,
        .payload = event->payload,
        .payload_size = event->payload_size,
        .pid = perfinfo ? EW_NO_ID : event->pid,
        .tid = perfinfo ? EW_NO_ID : event->tid,
        .cpu = event->cpu,
        .kind = EW_RECORD_KERNEL,
        .header_type = event->header_type,
        .pointer_size = PTR,
        .version = event->version,
        .opcode = event->opcode,
        .group = event->group,
    };
}

/* A live session queries the existing processes when it begins, before it takes any other event. */
static void learn_rundown(const struct machine *m, struct ew_tally *tally)
{
    for (size_t i = 0; i < m->count; i++) {
        struct ew_record record = record_of(&m->items[i].event);
        struct ew_event event;
        CHECK(ew_decode_event(&record, &event));
        if (event.kind == EW_EVENT_PROCESS_THERE || event.kind == EW_EVENT_THREAD_THERE)
            ew_tally_learn(tally, &event);
    }
}

static void report_directly(const struct machine *m, double hz, uint32_t flags, const uint32_t *pid,
                            const struct etwatch_meta *meta, struct text *text)
{
    struct direct direct = {.pid = pid != NULL ? *pid : 0};
    struct ew_tally *tally = NULL;
    struct ew_facts facts;
    uint64_t interval_ns = (uint64_t)(1e9 / hz + 0.5), last_ns = 0, seed = 7;
    struct ew_sampler_config config = {
        .source = ETWATCH_SOURCE_ETL,
        .threads = (flags & ETWATCH_CONFIG_THREADS) != 0,
        .dense = (flags & ETWATCH_CONFIG_DENSE) != 0,
        .available = meta->available,
        .interval_ns = interval_ns,
        .unix_minus_raw_ns = (int64_t)(meta->anchor_unix_ns - meta->anchor_raw_ns),
        .max_processes = 65536,
        .max_threads = 131072,
        .ctx = text,
        .emit = on_samples,
        .loss = on_loss,
        .describe = (flags & ETWATCH_CONFIG_CMDLINE) != 0 ? describe : NULL,
    };
    struct ew_tally_config tally_config = {
        .cpu_count = CPUS,
        .classes_known = EW_TALLY_SWITCHES | EW_TALLY_READY | EW_TALLY_FAULTS | EW_TALLY_DISK |
                         EW_TALLY_NET | EW_TALLY_THREADS | EW_TALLY_PROCESSES,
        .interval_ns = interval_ns,
        .threads = config.threads,
        .interval_over = on_interval_over,
        .interval_ctx = &direct,
        .raw_to_ns = raw_to_ns,
        .working_set = ew_decode_working_set,
        .selected = pid != NULL ? is_wanted : NULL,
        .selected_ctx = &direct,
    };
    begin_text(text);
    CHECK_EQ_INT(ew_sampler_new(&config, &direct.sampler), 0);
    ew_sampler_facts(direct.sampler, &facts);
    CHECK_EQ_INT(ew_tally_new(&tally_config, &tally), 0);
    learn_rundown(m, tally);
    for (size_t i = 0; i < m->count;) {
        for (uint64_t chunk = 1 + etl_random(&seed) % 997; chunk > 0 && i < m->count; chunk--) {
            struct ew_record record = record_of(&m->items[i++].event);
            struct ew_event event;
            CHECK(ew_decode_event(&record, &event));
            last_ns = record.t_ns;
            CHECK_EQ_INT(ew_tally_event(tally, &record, &event, &facts), 0);
        }
        ew_tally_advance(tally, last_ns, &facts);
    }
    ew_tally_finish(tally, last_ns, &facts);
    CHECK(ew_sampler_finish(direct.sampler, last_ns) >= 0);
    ew_tally_free(tally);
    ew_sampler_free(direct.sampler);
    end_text(text);
}

/* ---------------------------------------------------------------------- tests */

static void compare(uint64_t seed, bool compress, double hz, uint32_t flags, bool one)
{
    struct machine machine;
    struct recorded recorded;
    struct text got, want;
    struct etwatch_meta meta;
    make_machine(&machine, seed);
    uint32_t pid = machine.items[0].payload[8]; /* of the first process */
    write_recording(&recorded, &machine, compress);
    report_recording(recorded.path, hz, flags, one ? &pid : NULL, &got, &meta);
    report_directly(&machine, hz, flags, one ? &pid : NULL, &meta, &want);
    remove_recorded(&recorded);
    CHECK(got.len > 10000);
    check_same(&got, &want);
    CHECK(strstr(got.bytes, "hunter2") == NULL);
    free(got.bytes);
    free(want.bytes);
    free(machine.items);
}

TEST(a_recording_gives_the_bytes_of_the_same_events_delivered_directly)
{
    static const double rates[] = {0.5, 10, 37, 1000};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        char remark[32];
        (void)snprintf(remark, sizeof remark, "%d Hz", (int)rates[i]);
        test_row(remark);
        compare(i + 1, i % 2 == 1, rates[i], ETWATCH_CONFIG_ALL, false);
    }
}

TEST(with_threads_and_dense_intervals_the_bytes_are_the_same)
{
    compare(11, false, 100, ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_THREADS, false);
    compare(12, true, 20, ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_DENSE, false);
    compare(13, false, 50, ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_CMDLINE, false);
}

TEST(for_one_process_and_its_descendants_the_bytes_are_the_same)
{
    compare(21, false, 100, 0, true);
    compare(22, false, 1000, ETWATCH_CONFIG_THREADS, true);
}

TEST(a_recording_has_metadata_and_ends)
{
    struct machine machine;
    struct recorded recorded;
    struct text text;
    struct etwatch_meta meta;
    make_machine(&machine, 31);
    write_recording(&recorded, &machine, false);
    report_recording(recorded.path, 100, ETWATCH_CONFIG_ALL, NULL, &text, &meta);
    remove_recorded(&recorded);
    CHECK_EQ_UINT(meta.source, ETWATCH_SOURCE_ETL);
    CHECK_EQ_UINT(meta.cpu_count, CPUS);
    CHECK(etwatch_metric_set_is_empty(&meta.estimated));
    CHECK(etwatch_metric_set_has(&meta.available, ETWATCH_M_cpu_ns));
    CHECK(!etwatch_metric_set_has(&meta.available, ETWATCH_M_io_read_bytes));
    /* A process that is alive at the end has no exit, as after a stop. */
    size_t starts = 0, exits = 0;
    for (const char *at = text.bytes; (at = strstr(at, "{\"type\":\"start\"")) != NULL; at++)
        starts++;
    for (const char *at = text.bytes; (at = strstr(at, "{\"type\":\"exit\"")) != NULL; at++)
        exits++;
    CHECK(exits > 0 && exits < starts);
    free(text.bytes);
    free(machine.items);
}

/* The library's own thread, a small queue and a slow reader: nothing is dropped. */
TEST(a_recording_waits_for_its_reader)
{
    struct machine machine;
    struct recorded recorded;
    struct text text;
    struct etwatch_meta meta;
    struct etwatch_monitor *monitor = NULL;
    struct etwatch_samples batch = {.size = sizeof batch};
    size_t lines = 0, read = 0;
    make_machine(&machine, 41);
    write_recording(&recorded, &machine, false);
    report_recording(recorded.path, 20, ETWATCH_CONFIG_ALL, NULL, &text, &meta);
    for (size_t i = 0; i < text.len; i++)
        lines += text.bytes[i] == '\n';
    const char *path = recorded.path;
    struct etwatch_config config = {
        .size = sizeof config,
        .flags = ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_QUEUE,
        .hz = 20,
        .traces = &path,
        .trace_count = 1,
        .queue_samples =
            3000, /* more than arrive at once after a pause, fewer than there are in total */
    };
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, NULL), 0);
    CHECK_EQ_INT(etwatch_monitor_start(monitor, NULL), 0);
    int count;
    while ((count = etwatch_monitor_read(monitor, 16, -1, &batch)) >= 0)
        read += (size_t)count;
    CHECK_EQ_INT(count, ETWATCH_ESTATE);
    CHECK(lines > 2 * config.queue_samples);
    CHECK_EQ_UINT(read, lines);
    struct etwatch_stats stats = {.size = sizeof stats};
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
    CHECK_EQ_INT(etwatch_monitor_stats(monitor, &stats), 0);
    CHECK_EQ_UINT(stats.queue_dropped, 0);
    CHECK_EQ_UINT(stats.events, machine.count + 1); /* plus the header */
    CHECK_EQ_UINT(stats.source, ETWATCH_SOURCE_ETL);
    etwatch_monitor_free(monitor);
    remove_recorded(&recorded);
    free(text.bytes);
    free(machine.items);
}

struct finished {
    size_t samples, samples_after;
    int ends, errors;
};

static void count_samples(void *ctx, const struct etwatch_samples *batch)
{
    struct finished *finished = ctx;
    finished->samples += batch->count;
    finished->samples_after += finished->ends > 0 ? batch->count : 0;
}

static void count_end(void *ctx, const struct etwatch_error_info *error)
{
    struct finished *finished = ctx;
    finished->ends++;
    finished->errors += error != NULL;
}

TEST(the_end_of_a_recording_is_reported_once_after_its_last_sample)
{
    struct machine machine;
    struct recorded recorded;
    struct text text = {0};
    struct etwatch_meta meta;
    size_t lines = 0;
    make_machine(&machine, 43);
    write_recording(&recorded, &machine, false);
    report_recording(recorded.path, 20, ETWATCH_CONFIG_ALL, NULL, &text, &meta);
    for (size_t i = 0; i < text.len; i++)
        lines += text.bytes[i] == '\n';
    const char *path = recorded.path;
    struct etwatch_config config = {.size = sizeof config,
                                    .flags = ETWATCH_CONFIG_ALL,
                                    .hz = 20,
                                    .traces = &path,
                                    .trace_count = 1};
    for (int thread = 0; thread < 2; thread++) {
        struct finished finished = {0};
        struct etwatch_callbacks callbacks = {.size = sizeof callbacks,
                                              .ctx = &finished,
                                              .on_samples = count_samples,
                                              .on_end = count_end};
        struct etwatch_monitor *monitor = NULL;
        test_row(thread ? "thread" : "poll");
        CHECK_EQ_INT(etwatch_monitor_new(&config, &callbacks, &monitor, NULL), 0);
        if (thread) {
            CHECK_EQ_INT(etwatch_monitor_start(monitor, NULL), 0);
            bool over = false;
            for (int i = 0; i < 5000 && !over; i++) {
                test_sleep_ms(2);
                ew_mutex_lock(monitor->lock);
                over = monitor->over;
                ew_mutex_unlock(monitor->lock);
            }
        } else {
            CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
            while (etwatch_monitor_poll(monitor, 0, NULL) >= 0)
                CHECK_EQ_INT(finished.errors, 0);
        }
        CHECK_EQ_INT(finished.ends, 1);
        CHECK_EQ_INT(etwatch_monitor_last_error(monitor, NULL), 0);
        CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
        CHECK_EQ_INT(finished.ends, 1);
        CHECK_EQ_INT(finished.errors, 0);
        CHECK_EQ_UINT(finished.samples, lines);
        CHECK_EQ_UINT(finished.samples_after, 0);
        etwatch_monitor_free(monitor);
    }
    remove_recorded(&recorded);
    free(text.bytes);
    free(machine.items);
}

TEST(an_impossible_configuration_is_refused)
{
    static const char *const paths[] = {"x.etl"};
    static const uint32_t uid = 1;
    struct etwatch_monitor *monitor = NULL;
    struct etwatch_config config = {.size = sizeof config, .source = ETWATCH_SOURCE_ETL};
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, NULL), ETWATCH_EINVAL);
    config.traces = paths;
    config.trace_count = 1;
    config.source = ETWATCH_SOURCE_POLL;
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, NULL), ETWATCH_EINVAL);
    config.source = ETWATCH_SOURCE_ETL;
    config.uids = &uid;
    config.uid_count = 1;
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, NULL), ETWATCH_EINVAL);
    config.uid_count = 0;
    config.flags = ETWATCH_CONFIG_ALL;
    CHECK_EQ_INT(etwatch_monitor_new(&config, NULL, &monitor, NULL), 0);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), ETWATCH_EOS);
    etwatch_monitor_free(monitor);
}
