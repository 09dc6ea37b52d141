/* SPDX-License-Identifier: MIT */
/* The push without a socket: what an export says, and what the queue does when it is refused. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/proto.h"
#include "serve/gzip.h"
#include "serve/otlp.h"
#include "test.h"

#define S UINT64_C(1000000000)

/* --------------------------------------------------------------------------- the state */

static void tick(struct ew_state *state, uint32_t pid, const char *name, uint64_t t_ns,
                 uint64_t cpu_ns)
{
    struct etwatch_sample sample = {.size = sizeof sample,
                                    .type = ETWATCH_TYPE_SAMPLE,
                                    .pid = pid,
                                    .start_ns = pid * S,
                                    .t_ns = t_ns,
                                    .dt_ns = S / 10,
                                    .name = name,
                                    .flags = ETWATCH_SAMPLE_COMPLETE};
    struct ew_buf frame;
    struct ew_bytes body;
    size_t at = 0;
    uint32_t type;
    bool broken = false;
    etwatch_metric_set_add(&sample.has, ETWATCH_M_cpu_ns);
    etwatch_metric_set_add(&sample.has, ETWATCH_M_rss_bytes);
    sample.cpu_ns = cpu_ns;
    sample.rss_bytes = 4096 * pid;
    ew_buf_init(&frame, 0, NULL, NULL);
    ew_wire_sample(&frame, &sample);
    CHECK(ew_wire_next((const uint8_t *)frame.data, frame.len, &at, &type, &body, &broken));
    ew_state_frame(state, type, &body);
    ew_buf_done(&frame);
}

static struct ew_state *new_state(uint32_t top, bool pid_label)
{
    struct ew_state_options options = {
        .fine_bytes = 1 << 20, .coarse_bytes = 1 << 20, .top = top, .pid_label = pid_label};
    struct ew_state *state = ew_calloc(1, sizeof *state);
    CHECK(state != NULL);
    CHECK_EQ_INT(ew_state_init(state, &options), 0);
    state->meta_known = true;
    state->meta.meta.source = ETWATCH_SOURCE_EBPF;
    (void)snprintf(state->meta.host, sizeof state->meta.host, "web1");
    return state;
}

static void free_state(struct ew_state *state)
{
    CHECK_EQ_UINT(state->malformed, 0);
    ew_state_done(state);
    ew_free(state);
}

/* ------------------------------------------------------------------------- the export */

static const char *json_of(struct ew_otlp_encoder *encoder, const struct ew_state *state,
                           uint64_t *ret_points)
{
    static char text[1 << 18];
    struct ew_buf out;
    encoder->json = true;
    ew_buf_init(&out, 0, NULL, NULL);
    CHECK_EQ_INT(ew_otlp_encode(encoder, state, state->now_ns, &out, ret_points), 0);
    CHECK(out.len < sizeof text);
    memcpy(text, out.data, out.len);
    text[out.len] = '\0';
    ew_buf_done(&out);
    return text;
}

/* The value of the first data point of a metric with this attribute value; NAN: there is none. */
static double value_in(const char *json, const char *metric, const char *attribute)
{
    char head[128], wanted[128];
    double value = NAN;
    (void)snprintf(head, sizeof head, "{\"name\":\"%s\",", metric);
    (void)snprintf(wanted, sizeof wanted, "\"stringValue\":\"%s\"}", attribute);
    const char *at = strstr(json, head);
    const char *end = at == NULL ? NULL : strstr(at + 1, "{\"name\":");
    at = at == NULL ? NULL : strstr(at, wanted);
    if (at == NULL || (end != NULL && at > end))
        return NAN;
    const char *number = strstr(at, "\"as");
    if (number != NULL && sscanf(number, "\"asInt\":\"%lf", &value) != 1)
        (void)sscanf(number, "\"asDouble\":%lf", &value);
    return value;
}

/* A reading of a GPU: 40 W for a second, of which the counter is exact and the idle part is not. */
static void read_gpu(struct ew_state *state, const char *id, uint64_t t_ns, double watts)
{
    struct etwatch_device device = {.size = sizeof device,
                                    .kind = ETWATCH_DEVICE_GPU,
                                    .t_ns = t_ns,
                                    .dt_ns = S,
                                    .driver = "nvml",
                                    .id = id,
                                    .power_watts = watts,
                                    .energy_uj = 40000000,
                                    .idle_energy_uj = 10000000,
                                    .util_percent = 25};
    struct ew_buf frame;
    struct ew_bytes body;
    size_t at = 0;
    uint32_t type;
    bool broken = false;
    etwatch_metric_set_add(&device.has, ETWATCH_D_energy_uj);
    etwatch_metric_set_add(&device.has, ETWATCH_D_idle_energy_uj);
    etwatch_metric_set_add(&device.estimated, ETWATCH_D_idle_energy_uj);
    if (watts >= 0) {
        etwatch_metric_set_add(&device.has, ETWATCH_D_power_watts);
        etwatch_metric_set_add(&device.has, ETWATCH_D_util_percent);
    }
    ew_buf_init(&frame, 0, NULL, NULL);
    ew_wire_device(&frame, &device);
    CHECK(ew_wire_next((const uint8_t *)frame.data, frame.len, &at, &type, &body, &broken));
    ew_state_frame(state, type, &body);
    ew_buf_done(&frame);
}

TEST(devices_are_data_points_of_the_host_by_their_exactness)
{
    struct ew_state *state = new_state(5, false);
    struct ew_otlp_encoder encoder = {0}, delta = {.delta = true};
    uint64_t points = 0;
    read_gpu(state, "0000:41:00.0", 101 * S, 40);
    read_gpu(state, "a,b=c", 101 * S, 40);
    tick(state, 7, "a", 102 * S + 1, 0);
    const char *json = json_of(&encoder, state, &points);
    CHECK_NEAR(value_in(json, "etwatch.device.power", "0000:41:00.0"), 40, 1e-9);
    CHECK_NEAR(value_in(json, "etwatch.device.power", "a_b_c"), 40, 1e-9);
    CHECK_NEAR(value_in(json, "etwatch.device.utilization", "0000:41:00.0"), 0.25, 1e-9);
    CHECK_NEAR(value_in(json, "etwatch.device.energy", "0000:41:00.0"), 40, 1e-9);
    CHECK_NEAR(value_in(json, "etwatch.device.energy.idle", "0000:41:00.0"), 10, 1e-9);
    const char *estimated = strstr(json, "\"stringValue\":\"estimated\"");
    CHECK(estimated != NULL);
    CHECK(strstr(json, "etwatch.device.energy\"") < estimated);
    CHECK(strstr(json, "etwatch.device.energy.idle") > estimated);
    /* A delta has what was counted since the export before. */
    CHECK_NEAR(value_in(json_of(&delta, state, &points), "etwatch.device.energy", "0000:41:00.0"),
               40, 1e-9);
    read_gpu(state, "0000:41:00.0", 103 * S, 40);
    read_gpu(state, "0000:41:00.0", 104 * S, 40);
    tick(state, 7, "a", 105 * S + 1, 0);
    CHECK_NEAR(value_in(json_of(&delta, state, &points), "etwatch.device.energy", "0000:41:00.0"),
               80, 1e-9);
    CHECK_NEAR(value_in(json_of(&encoder, state, &points), "etwatch.device.energy", "0000:41:00.0"),
               120, 1e-9);
    ew_otlp_encoder_done(&encoder);
    ew_otlp_encoder_done(&delta);
    free_state(state);
}

TEST(an_export_has_the_names_of_the_conventions_and_the_values_of_the_state)
{
    struct ew_state *state = new_state(5, false);
    struct ew_otlp_encoder encoder = {0};
    uint64_t points = 0;
    /* What a group did before it was shown counts as "other". */
    tick(state, 7, "a", 100 * S, 50000000);
    tick(state, 8, "b\"\n", 100 * S + 1, 50000000);
    tick(state, 7, "a", 102 * S, 250000000);
    tick(state, 7, "a", 103 * S + 1, 0);
    const char *json = json_of(&encoder, state, &points);
    CHECK_CONTAINS(json, "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"etwatch\"}}");
    CHECK_CONTAINS(json, "{\"key\":\"host.name\",\"value\":{\"stringValue\":\"web1\"}}");
    CHECK_NEAR(value_in(json, "etwatch.process.cpu.time", "a"), 0.25, 0);
    CHECK_NEAR(value_in(json, "process.memory.usage", "a"), 7 * 4096, 0);
    CHECK_NEAR(value_in(json, "etwatch.process.count", "a"), 1, 0);
    CHECK_CONTAINS(json, "\"stringValue\":\"b\\\"\\n\"");
    CHECK_CONTAINS(json,
                   "\"startTimeUnixNano\":\"100000000000\",\"timeUnixNano\":\"102000000000\"");
    /* Exact and estimated are apart, as the table of metrics says for eBPF. */
    const char *exact = strstr(json, "\"stringValue\":\"exact\""),
               *estimated = strstr(json, "\"stringValue\":\"estimated\""),
               *cpu = strstr(json, "etwatch.process.cpu.time"),
               *memory = strstr(json, "process.memory.usage");
    CHECK(exact != NULL && estimated != NULL && exact < cpu && cpu < estimated &&
          estimated < memory);
    CHECK(points > 8);
    free_state(state);
}

/* Counts data points, and adds up the doubles and integers of counters with the name. */
struct decoded {
    uint64_t points, monotonic;
    double sum;
};

static void read_point(struct ew_bytes *body, bool wanted, struct decoded *to)
{
    struct ew_proto_field field;
    to->points++;
    while (ew_proto_next(body, &field)) {
        if (wanted && field.number == 4 && field.wire == EW_PROTO_FIXED64)
            to->sum += ew_proto_to_double(field.u);
        if (wanted && field.number == 6 && field.wire == EW_PROTO_FIXED64)
            to->sum += (double)field.u;
    }
}

static void read_metric(struct ew_bytes *body, const char *name, struct decoded *to)
{
    struct ew_proto_field field, inner;
    bool wanted = false;
    while (ew_proto_next(body, &field)) {
        if (field.number == 1)
            wanted = field.body.size == strlen(name) &&
                     memcmp(field.body.data, name, field.body.size) == 0;
        if (field.number != 5 && field.number != 7)
            continue;
        while (ew_proto_next(&field.body, &inner)) {
            if (inner.number == 1)
                read_point(&inner.body, wanted, to);
            else if (inner.number == 3 && wanted)
                to->monotonic += inner.u;
        }
    }
}

static struct decoded decode(const void *bytes, size_t len, const char *name)
{
    struct decoded to = {0};
    struct ew_bytes all;
    struct ew_proto_field resource, scope, metric;
    ew_bytes_init(&all, bytes, len);
    while (ew_proto_next(&all, &resource))
        while (ew_proto_next(&resource.body, &scope))
            while (scope.number == 2 && ew_proto_next(&scope.body, &metric))
                if (metric.number == 2)
                    read_metric(&metric.body, name, &to);
    CHECK(ew_bytes_ok(&all));
    return to;
}

TEST(protobuf_and_json_say_the_same)
{
    struct ew_state *state = new_state(5, true);
    struct ew_otlp_encoder encoder = {0}, packed = {0};
    struct ew_buf out;
    uint64_t json_points = 0, points = 0;
    for (uint32_t p = 7; p < 12; p++)
        tick(state, p, "\xff\xfe", 100 * S + p, p * 10000000);
    tick(state, 7, "\xff\xfe", 102 * S, 0);
    const char *json = json_of(&encoder, state, &json_points);
    CHECK_CONTAINS(json, "{\"key\":\"process.pid\",\"value\":{\"intValue\":\"7\"}}");
    CHECK_CONTAINS(json, "\"stringValue\":\"1970-01-01T00:00:07.000000000Z\"");
    ew_buf_init(&out, 0, NULL, NULL);
    CHECK_EQ_INT(ew_otlp_encode(&packed, state, state->now_ns, &out, &points), 0);
    struct decoded decoded = decode(out.data, out.len, "etwatch.process.cpu.time");
    CHECK_EQ_UINT(points, json_points);
    CHECK_EQ_UINT(decoded.points, points);
    CHECK_NEAR(decoded.sum, (7 + 8 + 9 + 10 + 11) * 0.01, 1e-12);
    CHECK(decoded.monotonic > 0);
    ew_buf_done(&out);
    free_state(state);
}

TEST(deltas_add_up_to_the_counters_also_of_hidden_groups)
{
    struct ew_state *state = new_state(2, false);
    struct ew_otlp_encoder encoder = {.delta = true};
    struct ew_buf out;
    double sum = 0;
    uint64_t points = 0;
    for (uint64_t second = 100; second < 130; second++) {
        for (uint32_t p = 0; p < 8; p++) {
            char name[8];
            (void)snprintf(name, sizeof name, "p%u", p);
            /* The busiest change all the time, so groups are shown and hidden. */
            tick(state, 10 + p, name, second * S + p + 1, (second / 3 + p) % 8 * 40000000);
        }
        ew_buf_init(&out, 0, NULL, NULL);
        CHECK_EQ_INT(ew_otlp_encode(&encoder, state, state->now_ns, &out, &points), 0);
        sum += decode(out.data, out.len, "etwatch.process.cpu.time").sum;
        ew_buf_done(&out);
    }
    double total = ew_catalog_number(EW_HISTORY_U64, state->other.counters[ETWATCH_M_cpu_ns]);
    for (uint32_t g = 0; g < state->group_count; g++)
        total += (double)state->groups[g].counters[ETWATCH_M_cpu_ns];
    CHECK(total > 1e9);
    CHECK_NEAR(sum, total / 1e9, 1e-9);
    ew_otlp_encoder_done(&encoder);
    free_state(state);
}

TEST(attributes_of_the_user_replace_those_of_etwatch)
{
    static const struct ew_otlp_attribute attributes[] = {{"service.name", "mine"},
                                                          {"deployment", "test"}};
    struct ew_state *state = new_state(5, false);
    struct ew_otlp_encoder encoder = {.attributes = attributes, .attribute_count = 2};
    uint64_t points = 0;
    tick(state, 7, "a", 100 * S, 1);
    tick(state, 7, "a", 102 * S, 1);
    const char *json = json_of(&encoder, state, &points);
    CHECK_CONTAINS(json, "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"mine\"}}");
    CHECK_CONTAINS(json, "{\"key\":\"deployment\",\"value\":{\"stringValue\":\"test\"}}");
    CHECK(strstr(json, "{\"stringValue\":\"etwatch\"}") == NULL);
    free_state(state);
}

/* -------------------------------------------------------------------------- the queue */

/* A collector that answers what the test wants, and what it got. */
struct fake {
    int status;
    uint32_t retry_after_s;
    const char *answer;
    bool silent; /* no answer yet */
    uint32_t starts;
    size_t lens[64];
    const void *bytes;
};

static bool start_fake(void *ctx, const void *bytes, size_t len)
{
    struct fake *fake = ctx;
    fake->lens[fake->starts++ % 64] = len;
    fake->bytes = bytes;
    return true;
}

static bool run_fake(void *ctx, struct ew_post_result *ret_result)
{
    const struct fake *fake = ctx;
    if (fake->silent)
        return false;
    *ret_result =
        (struct ew_post_result){.status = fake->status, .retry_after_s = fake->retry_after_s};
    if (fake->status == 0)
        (void)snprintf(ret_result->error, sizeof ret_result->error, "refused");
    if (fake->answer != NULL) {
        ret_result->answer_len = strlen(fake->answer);
        memcpy(ret_result->answer, fake->answer, ret_result->answer_len);
    }
    return true;
}

static uint32_t said;

static void count_line(const char *text)
{
    (void)text;
    said++;
}

static struct ew_state *begin(struct ew_otlp *otlp, struct fake *fake, uint64_t queue_bytes)
{
    struct ew_otlp_options options = {.json = true, .queue_bytes = queue_bytes, .say = count_line};
    const struct ew_otlp_sender sender = {start_fake, run_fake, fake};
    struct ew_state *state = new_state(5, false);
    options.post.url = "http://127.0.0.1:1/v1/metrics";
    said = 0;
    CHECK_EQ_INT(ew_otlp_init(otlp, &options, &sender, &state->push), 0);
    tick(state, 7, "a", 100 * S, 1000);
    tick(state, 7, "a", 102 * S, 1000);
    return state;
}

static void finish(struct ew_otlp *otlp, struct ew_state *state)
{
    ew_otlp_done(otlp);
    free_state(state);
}

TEST(an_interval_makes_one_export)
{
    struct ew_otlp otlp;
    struct fake fake = {.status = 200};
    struct ew_state *state = begin(&otlp, &fake, 0);
    for (uint64_t second = 101; second <= 140; second++) {
        ew_otlp_second(&otlp, state, second * S, false);
        ew_otlp_run(&otlp, second * S);
    }
    CHECK_EQ_UINT(state->push.sent_exports, 5); /* 101, 110, 120, 130, 140 */
    ew_otlp_second(&otlp, state, 140 * S, true);
    CHECK_EQ_UINT(state->push.queued_exports, 0); /* never two of one instant */
    CHECK_EQ_UINT(fake.starts, 5);
    CHECK_EQ_UINT(said, 0);
    finish(&otlp, state);
}

TEST(what_is_not_answered_is_kept_and_sent_again_later_each_time)
{
    struct ew_otlp otlp;
    struct fake fake = {.status = 503};
    struct ew_state *state = begin(&otlp, &fake, 0);
    uint64_t now = S, waited = 0;
    ew_otlp_second(&otlp, state, 102 * S, false);
    for (uint32_t attempt = 1; attempt <= 10; attempt++) {
        ew_otlp_run(&otlp, now);
        CHECK_EQ_UINT(fake.starts, attempt);
        CHECK_EQ_UINT(state->push.retries, attempt);
        uint64_t wait = otlp.retry_at_ns - now;
        uint64_t full = S << (attempt - 1) < 30 * S ? S << (attempt - 1) : 30 * S;
        CHECK(wait >= full / 2 && wait <= full);
        ew_otlp_run(&otlp, now + wait - 1);
        CHECK_EQ_UINT(fake.starts, attempt);
        CHECK_EQ_INT(ew_otlp_timeout_ms(&otlp, now), (int)(wait / 1000000) + 1);
        waited += wait;
        now += wait;
    }
    CHECK(waited > 60 * S);
    CHECK_EQ_UINT(said, 1);
    fake.status = 200;
    ew_otlp_run(&otlp, now);
    CHECK_EQ_UINT(state->push.sent_exports, 1);
    CHECK_EQ_UINT(state->push.dropped_points + state->push.rejected_points, 0);
    CHECK_EQ_UINT(said, 2);
    CHECK_EQ_STR(state->push.error, "");
    finish(&otlp, state);
}

TEST(retry_after_is_obeyed)
{
    struct ew_otlp otlp;
    struct fake fake = {.status = 429, .retry_after_s = 77};
    struct ew_state *state = begin(&otlp, &fake, 0);
    ew_otlp_second(&otlp, state, 102 * S, false);
    ew_otlp_run(&otlp, S);
    CHECK_EQ_UINT(otlp.retry_at_ns, 78 * S);
    finish(&otlp, state);
}

TEST(statuses_are_temporary_or_final)
{
    static const struct {
        int status;
        bool temporary;
    } rows[] = {
        {0, true},    {429, true},  {502, true},  {503, true},  {504, true},  {301, false},
        {400, false}, {401, false}, {404, false}, {413, false}, {500, false}, {501, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_otlp otlp;
        struct fake fake = {.status = rows[i].status};
        struct ew_state *state = begin(&otlp, &fake, 0);
        ew_otlp_second(&otlp, state, 102 * S, false);
        ew_otlp_run(&otlp, S);
        CHECK_EQ_UINT(state->push.queued_exports, rows[i].temporary);
        CHECK_EQ_INT(state->push.rejected_points > 0, !rows[i].temporary);
        CHECK_EQ_UINT(said, 1);
        CHECK(state->push.error[0] != '\0');
        finish(&otlp, state);
    }
}

TEST(a_full_queue_drops_its_oldest_exports_and_counts_them)
{
    struct ew_otlp otlp;
    struct fake fake = {.silent = true};
    struct ew_state *state = begin(&otlp, &fake, 20000);
    for (uint64_t second = 102; second < 600; second += 10) {
        ew_otlp_second(&otlp, state, second * S, false);
        ew_otlp_run(&otlp, second * S);
        CHECK(state->push.queued_bytes <= 20000);
    }
    CHECK_EQ_UINT(fake.starts, 1);
    uint64_t kept = state->push.queued_exports;
    CHECK(kept > 1 && kept < 50);
    uint64_t points = otlp.queue[otlp.first].points; /* every export has as many */
    CHECK_EQ_UINT(state->push.dropped_points, (50 - kept) * points);
    fake.silent = false;
    fake.status = 200;
    for (int i = 0; i < 50; i++)
        ew_otlp_run(&otlp, 700 * S);
    CHECK_EQ_UINT(state->push.sent_points + state->push.dropped_points, 50 * points);
    CHECK_EQ_UINT(state->push.queued_bytes, 0);
    finish(&otlp, state);
}

TEST(a_partial_success_is_counted_and_not_repeated)
{
    struct ew_otlp otlp;
    struct fake fake = {
        .status = 200,
        .answer = "{\"partialSuccess\":{\"rejectedDataPoints\":\"3\",\"errorMessage\":\"old\"}}"};
    struct ew_state *state = begin(&otlp, &fake, 0);
    ew_otlp_second(&otlp, state, 102 * S, false);
    ew_otlp_run(&otlp, S);
    CHECK_EQ_UINT(state->push.rejected_points, 3);
    CHECK_EQ_UINT(state->push.queued_exports, 0);
    CHECK_EQ_UINT(state->push.retries, 0);
    CHECK_EQ_UINT(said, 1);
    finish(&otlp, state);
}

TEST(answers_of_collectors_are_read_and_broken_ones_ignored)
{
    static const struct {
        const char *remark, *text;
        bool json;
        uint64_t rejected;
        const char *message;
    } rows[] = {
        {"empty", "", false, 0, ""},
        {"empty object", "{}", true, 0, ""},
        {"null", "{\"partialSuccess\":null}", true, 0, ""},
        {"number", "{ \"partialSuccess\" : { \"rejectedDataPoints\" : 12 } }", true, 12, ""},
        {"text", "{\"partialSuccess\":{\"errorMessage\":\"no\",\"rejectedDataPoints\":\"5\"}}",
         true, 5, "no"},
        {"value that looks like the name", "{\"a\":\"rejectedDataPoints\",\"b\":7}", true, 0, ""},
        {"cut", "{\"partialSuccess\":{\"rejectedDataPoints\":\"", true, 0, ""},
        {"protobuf", "\x0a\x05\x08\x03\x12\x01x", false, 3, "x"},
        {"cut protobuf", "\x0a\x7f\x08", false, 0, ""},
        {"HTML", "<html>\"", true, 0, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t rejected = 1;
        char message[16];
        test_row(rows[i].remark);
        ew_otlp_read_answer(rows[i].json, rows[i].text, strlen(rows[i].text), &rejected, message,
                            sizeof message);
        CHECK_EQ_UINT(rejected, rows[i].rejected);
        CHECK_EQ_STR(message, rows[i].message);
    }
}

TEST(compressed_exports_are_smaller)
{
    struct ew_buf out;
    char text[4096];
    memset(text, 'a', sizeof text);
    if (!ew_gzip_available())
        SKIP("this build has no zlib");
    ew_buf_init(&out, 0, NULL, NULL);
    CHECK(ew_gzip(text, sizeof text, &out));
    CHECK(out.len < 200);
    CHECK_EQ_UINT((uint8_t)out.data[0], 0x1f);
    CHECK_EQ_UINT((uint8_t)out.data[1], 0x8b);
    ew_buf_done(&out);
}
