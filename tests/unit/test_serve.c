/* SPDX-License-Identifier: MIT */
/* The server without a socket: requests, history, groups, what Prometheus and the API show. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "serve/device_series.h"
#include "serve/gzip.h"
#include "serve/prometheus.h"
#include "serve/routes.h"
#include "test.h"

#define S UINT64_C(1000000000)

/* ------------------------------------------------------------------------- requests */

TEST(hosts_other_than_loopback_are_refused)
{
    static const char *const names[] = {"web1.example", "10.0.0.7", NULL};
    static const struct {
        const char *remark, *host;
        bool allowed;
    } rows[] = {
        {"loopback", "127.0.0.1:9797", true},
        {"without a port", "localhost", true},
        {"case", "LocalHost:1", true},
        {"v6", "[::1]:9797", true},
        {"given name", "WEB1.example:9797", true},
        {"given address", "10.0.0.7", true},
        {"rebinding", "evil.example:9797", false},
        {"suffix", "127.0.0.1.evil.example", false},
        {"prefix", "evil.127.0.0.1", false},
        {"credentials", "127.0.0.1@evil.example", false},
        {"port that is none", "127.0.0.1:x", false},
        {"empty port", "127.0.0.1:", false},
        {"empty", "", false},
        {"open bracket", "[::1", false},
        {"missing", NULL, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].remark);
        CHECK_EQ_INT(ew_request_host_allowed(rows[i].host, names), rows[i].allowed);
    }
}

TEST(pages_of_other_sites_are_refused)
{
    struct ew_request request = {.host = "127.0.0.1:9797"};
    CHECK(ew_request_same_origin(&request));
    request.origin = "http://127.0.0.1:9797";
    CHECK(ew_request_same_origin(&request));
    request.origin = "http://evil.example";
    CHECK(!ew_request_same_origin(&request));
    request.origin = "null";
    CHECK(!ew_request_same_origin(&request));
    request.origin = NULL;
    request.fetch_site = "cross-site";
    CHECK(!ew_request_same_origin(&request));
    request.fetch_site = "same-site";
    CHECK(!ew_request_same_origin(&request));
    request.fetch_site = "same-origin";
    CHECK(ew_request_same_origin(&request));
}

TEST(only_the_exact_token_is_accepted)
{
    struct ew_request request = {0};
    const char *token = "0123456789abcdef";
    CHECK(!ew_request_authorized(&request, token));
    request.authorization = "Bearer 0123456789abcdef";
    CHECK(ew_request_authorized(&request, token));
    request.authorization = "Bearer 0123456789abcdef0123456789abcdef";
    CHECK(!ew_request_authorized(&request, token));
    request.authorization = "Bearer 0123456789abcde";
    CHECK(!ew_request_authorized(&request, token));
    request.authorization = "Bearer ";
    CHECK(!ew_request_authorized(&request, token));
    request.authorization = "Basic 0123456789abcdef";
    CHECK(!ew_request_authorized(&request, token));
    request.authorization = NULL;
    request.cookie = "a=b; etwatch_token=0123456789abcdef";
    CHECK(ew_request_authorized(&request, token));
    request.cookie = "etwatch_token=0123456789abcdeg; xetwatch_token=0123456789abcdef";
    CHECK(!ew_request_authorized(&request, token));
}

TEST(malformed_targets_are_refused)
{
    static const struct {
        const char *remark, *target;
        bool good;
    } rows[] = {
        {"plain", "/metrics", true},
        {"query", "/a?from=-60000&metrics=cpu_ns%2Crss_bytes", true},
        {"traversal in escapes", "/%2e%2e/etc/passwd", false},
        {"no slash", "metrics", false},
        {"control character", "/a?x=%00", false},
        {"line end", "/a?x=%0d%0aSet-Cookie:", false},
        {"short escape", "/a?x=%4", false},
        {"bad escape", "/a?x=%zz", false},
        {"twice", "/a?x=1&x=2", false},
        {"no value", "/a?x", false},
        {"no key", "/a?=1", false},
        {"trailing", "/a?x=1&", false},
        {"invalid UTF-8", "/a?x=%ff", false},
        {"too many", "/a?a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1", false},
        {"script", "/<script>", false},
    };
    struct ew_query query;
    char path[256];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].remark);
        CHECK_EQ_INT(ew_request_split(rows[i].target, path, sizeof path, &query), rows[i].good);
    }
    CHECK(ew_request_split("/p?metrics=a%2Cb+c", path, sizeof path, &query));
    CHECK_EQ_STR(ew_query_get(&query, "metrics"), "a,b c");
}

TEST(openmetrics_is_used_only_if_preferred)
{
    CHECK(!ew_request_wants_openmetrics(NULL));
    CHECK(!ew_request_wants_openmetrics("*/*"));
    CHECK(!ew_request_wants_openmetrics("text/plain"));
    CHECK(ew_request_wants_openmetrics(
        "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"));
    CHECK(!ew_request_wants_openmetrics("application/openmetrics-text;q=0.2,text/plain;q=0.5"));
    CHECK(!ew_request_wants_openmetrics("application/openmetrics-text;version=0.0.1,text/plain"));
}

TEST(gzip_is_used_only_if_it_is_accepted)
{
    CHECK(!ew_request_accepts_gzip(NULL));
    CHECK(!ew_request_accepts_gzip(""));
    CHECK(!ew_request_accepts_gzip("identity"));
    CHECK(!ew_request_accepts_gzip("gzip;q=0, br"));
    CHECK(!ew_request_accepts_gzip("notgzip"));
    CHECK(ew_request_accepts_gzip("gzip"));
    CHECK(ew_request_accepts_gzip("br, GZIP;q=0.5"));
    CHECK(ew_request_accepts_gzip("gzip, deflate, br, zstd"));
}

/* -------------------------------------------------------------------------- history */

TEST(history_returns_what_was_appended_newest_first)
{
    uint8_t types[EW_HISTORY_VALUES] = {EW_HISTORY_DOUBLE, EW_HISTORY_U64, EW_HISTORY_I64};
    struct ew_history history;
    struct ew_history_point point;
    struct etwatch_metric_set has = {{7}};
    uint64_t marks[2] = {0, 0}, values[3] = {0, 0, (uint64_t)-5};
    double percent = 12.345;
    CHECK_EQ_INT(ew_history_init(&history, 1 << 16, 0, types), 0);
    memcpy(&values[0], &percent, sizeof percent);
    for (uint64_t i = 1; i <= 5000; i++) {
        values[1] = i * 1000000007;
        CHECK(ew_history_append(&history, &marks[i % 2], i * S, S, i % 3 != 0, &has, values));
    }
    uint64_t mark = marks[1], expected = 4999;
    uint32_t found = 0;
    for (; ew_history_read(&history, mark, &point); mark = point.before, expected -= 2, found++) {
        CHECK_EQ_UINT(point.t_ns, expected * S);
        CHECK_EQ_UINT(point.values[1], expected * 1000000007);
        CHECK_EQ_INT((int64_t)point.values[2], -5);
        CHECK_NEAR(ew_catalog_number(EW_HISTORY_DOUBLE, point.values[0]), 12.345, 1e-9);
        CHECK_EQ_INT(point.complete, expected % 3 != 0);
    }
    CHECK(found > 100 && found < 2500);
    CHECK_EQ_UINT(history.overwritten + 2 * found, 5000 - (5000 - history.overwritten) % 2);
    CHECK(history.head - history.tail <= history.size);
    ew_history_done(&history);
}

TEST(history_forgets_what_is_older_than_its_retention)
{
    uint8_t types[EW_HISTORY_VALUES] = {0};
    struct ew_history history;
    struct etwatch_metric_set has = {{1}};
    uint64_t mark = 0, value = 1;
    CHECK_EQ_INT(ew_history_init(&history, 1 << 16, 60 * S, types), 0);
    for (uint64_t i = 1000; i < 1300; i++)
        CHECK(ew_history_append(&history, &mark, i * S, S, true, &has, &value));
    CHECK_EQ_UINT(ew_history_oldest_ns(&history), (1299 - 60) * S);
    ew_history_done(&history);
}

/* ---------------------------------------------------------------------------- state */

static void feed(struct ew_state *state, const struct etwatch_sample *sample)
{
    struct ew_buf frames;
    struct ew_bytes body;
    size_t at = 0;
    uint32_t type;
    bool broken;
    ew_buf_init(&frames, 0, NULL, NULL);
    ew_wire_sample(&frames, sample);
    CHECK(ew_wire_next((const uint8_t *)frames.data, frames.len, &at, &type, &body, &broken));
    CHECK_EQ_UINT(at, frames.len);
    ew_state_frame(state, type, &body);
    ew_buf_done(&frames);
}

static struct etwatch_sample sample_of(uint32_t type, uint32_t pid, const char *name, uint64_t t_ns,
                                       uint64_t cpu_ns)
{
    struct etwatch_sample sample = {.size = sizeof sample,
                                    .type = type,
                                    .pid = pid,
                                    .start_ns = pid * S,
                                    .t_ns = t_ns,
                                    .dt_ns = S / 10,
                                    .name = name,
                                    .flags = ETWATCH_SAMPLE_COMPLETE};
    if (type != ETWATCH_TYPE_SAMPLE)
        return sample;
    etwatch_metric_set_add(&sample.has, ETWATCH_M_cpu_ns);
    etwatch_metric_set_add(&sample.has, ETWATCH_M_rss_bytes);
    sample.cpu_ns = cpu_ns;
    sample.rss_bytes = 4096 * pid;
    return sample;
}

static void tick(struct ew_state *state, uint32_t pid, const char *name, uint64_t t_ns,
                 uint64_t cpu_ns)
{
    struct etwatch_sample sample = sample_of(ETWATCH_TYPE_SAMPLE, pid, name, t_ns, cpu_ns);
    feed(state, &sample);
}

static void life(struct ew_state *state, uint32_t type, uint32_t pid, const char *name,
                 uint64_t t_ns)
{
    struct etwatch_sample sample = sample_of(type, pid, name, t_ns, 0);
    feed(state, &sample);
}

static struct ew_state *new_state(uint32_t top, bool pid_label)
{
    struct ew_state_options options = {
        .fine_bytes = 1 << 20, .coarse_bytes = 1 << 20, .top = top, .pid_label = pid_label};
    struct ew_state *state = ew_calloc(1, sizeof *state);
    CHECK(state != NULL);
    CHECK_EQ_INT(ew_state_init(state, &options), 0);
    state->meta_known = true;
    return state;
}

static void free_state(struct ew_state *state)
{
    CHECK_EQ_UINT(state->malformed, 0);
    ew_state_done(state);
    ew_free(state);
}

/* The text of /metrics; valid until the next call. */
static const char *metrics_of(const struct ew_state *state, bool open)
{
    static char text[1 << 18];
    struct ew_buf out;
    ew_buf_init(&out, 0, NULL, NULL);
    ew_prometheus_write(state, open, &out);
    ew_buf_char(&out, '\0');
    CHECK_EQ_INT(out.error, 0);
    CHECK(out.len < sizeof text);
    memcpy(text, out.data, out.len);
    ew_buf_done(&out);
    return text;
}

static double value_of(const char *text, const char *series)
{
    const char *at = strstr(text, series);
    double value = NAN;
    if (at != NULL)
        (void)sscanf(at + strlen(series), "%lf", &value);
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

static double sum_of(const char *text, const char *family)
{
    char begin[128];
    double sum = 0, value;
    (void)snprintf(begin, sizeof begin, "\n%s{", family);
    for (const char *at = text; (at = strstr(at, begin)) != NULL; at++) {
        const char *end = strstr(at, "} ");
        CHECK(end != NULL && sscanf(end + 2, "%lf", &value) == 1);
        sum += value;
    }
    return sum;
}

TEST(counters_never_go_back_and_count_everything_once)
{
    struct ew_state *state = new_state(3, false);
    uint64_t given = 0;
    double before[8] = {0}, other = 0;
    for (uint64_t second = 100; second < 400; second++) {
        for (uint32_t p = 0; p < 8; p++) {
            char name[16];
            /* Another process is the busiest every 40 seconds. */
            uint64_t cpu = (second / 40) % 8 == p ? 900000000 : 1000000 * (p + 1);
            (void)snprintf(name, sizeof name, "p%u", p);
            tick(state, 10 + p, name, second * S + S / 2, cpu);
            given += cpu;
        }
        if (second % 10 != 0)
            continue;
        const char *text = metrics_of(state, false);
        double now = value_of(text, "cpu_seconds_total{name=\"other\"} ");
        CHECK(now >= other);
        other = now;
        for (uint32_t p = 0; p < 8; p++) {
            char series[64];
            (void)snprintf(series, sizeof series, "cpu_seconds_total{name=\"p%u\"} ", p);
            now = value_of(text, series);
            CHECK(isnan(now) || now >= before[p]);
            before[p] = isnan(now) ? before[p] : now;
        }
        CHECK(state->shown <= 3);
    }
    /* What was shown and is hidden now keeps its part. */
    double sum = other;
    for (uint32_t p = 0; p < 8; p++)
        sum += before[p];
    CHECK_NEAR(sum, (double)given / 1e9, 10 * 0.95);
    free_state(state);
}

TEST(the_number_of_series_is_bounded_by_the_option)
{
    struct ew_state *state = new_state(30, false);
    for (uint64_t second = 100; second < 110; second++)
        for (uint32_t p = 0; p < 1000; p++) {
            char name[16];
            (void)snprintf(name, sizeof name, "p%u", p);
            tick(state, 10 + p, name, second * S + S / 2, 20000000);
        }
    const char *text = metrics_of(state, false);
    uint32_t series = 0;
    for (const char *at = text; (at = strstr(at, "\netwatch_process_cpu_seconds_total{")) != NULL;
         at++)
        series++;
    CHECK_EQ_UINT(series, 31);
    CHECK(strlen(text) < 200000);
    CHECK_NEAR(sum_of(text, "etwatch_process_resident_memory_bytes"),
               4096.0 * (1000 * 10 + 999 * 1000 / 2), 1);
    CHECK_NEAR(sum_of(text, "etwatch_processes"), 1000, 0);
    free_state(state);
}

TEST(names_are_escaped_in_labels_and_json)
{
    struct ew_state *state = new_state(5, false);
    tick(state, 7, "<script>\"\\\n\xff", 100 * S, 50000000);
    tick(state, 7, "<script>\"\\\n\xff", 102 * S, 50000000);
    tick(state, 8, "other", 102 * S, 50000000);
    tick(state, 8, "other", 103 * S + 1, 50000000);
    const char *text = metrics_of(state, false);
    CHECK_CONTAINS(text, "{name=\"<script>\\\"\\\\\\n\xef\xbf\xbd\"}");
    CHECK(strstr(strstr(text, "cpu_seconds_total{name=\"other\"}") + 1,
                 "etwatch_process_cpu_seconds_total{name=\"other\"}") == NULL);
    struct ew_buf out;
    ew_buf_init(&out, 0, NULL, NULL);
    ew_api_processes(state, true, true, &out);
    ew_buf_char(&out, '\0');
    CHECK_CONTAINS(out.data, "\"<script>\\\"\\\\\\n\xef\xbf\xbd\"");
    ew_buf_done(&out);
    free_state(state);
}

TEST(openmetrics_ends_with_its_mark_and_names_units)
{
    struct ew_state *state = new_state(5, false);
    tick(state, 7, "a", 100 * S, 50000000);
    tick(state, 7, "a", 102 * S, 50000000);
    const char *text = metrics_of(state, true);
    CHECK_CONTAINS(text, "# TYPE etwatch_process_cpu_seconds counter\n"
                         "# UNIT etwatch_process_cpu_seconds seconds\n");
    CHECK_EQ_STR(text + strlen(text) - 6, "# EOF\n");
    free_state(state);
}

TEST(a_pid_label_gives_each_process_a_series)
{
    struct ew_state *state = new_state(5, true);
    for (uint64_t t = 100; t < 103; t++) {
        tick(state, 7, "a", t * S, 50000000);
        tick(state, 8, "a", t * S, 50000000);
    }
    const char *text = metrics_of(state, false);
    CHECK_CONTAINS(text, "etwatch_process_resident_memory_bytes{name=\"a\",pid=\"7\"} 28672\n");
    CHECK_CONTAINS(text, "etwatch_process_resident_memory_bytes{name=\"a\",pid=\"8\"} 32768\n");
    free_state(state);
}

TEST(exited_processes_are_kept_up_to_a_limit)
{
    struct ew_state *state = new_state(5, false);
    for (uint32_t i = 1; i <= EW_STATE_EXITED_MAX + 500; i++) {
        life(state, ETWATCH_TYPE_START, i, "short", 100 * S + i);
        tick(state, i, "short", 100 * S + i, 1000);
        life(state, ETWATCH_TYPE_EXIT, i, "short", 100 * S + i);
    }
    CHECK_EQ_UINT(state->exited_count, EW_STATE_EXITED_MAX);
    CHECK_EQ_UINT(state->live, 0);
    CHECK_EQ_UINT(state->process_count, EW_STATE_EXITED_MAX);
    CHECK_EQ_UINT(ew_state_find(state, 1, S), EW_STATE_NONE);
    CHECK(ew_state_find(state, 600, 600 * S) != EW_STATE_NONE);
    life(state, ETWATCH_TYPE_START, 1, "again", 102 * S);
    CHECK_NEAR(value_of(metrics_of(state, false), "etwatch_process_exits_total{name=\"other\"} "),
               EW_STATE_EXITED_MAX + 500, 0);
    free_state(state);
}

/* --------------------------------------------------------------------------- routes */

static struct ew_response ask(struct ew_state *state, const char *target, const char *token)
{
    struct ew_request request = {.method = "GET", .target = target, .host = "127.0.0.1:9797"};
    struct ew_routes routes = {.state = state, .token = token};
    struct ew_response response;
    ew_routes_answer(&routes, &request, 1, &response);
    ew_buf_char(&response.body, '\0');
    return response;
}

static int status_of(struct ew_state *state, const char *target, const char *token)
{
    struct ew_response response = ask(state, target, token);
    ew_buf_done(&response.body);
    return response.status;
}

TEST(history_is_a_grid_with_zero_for_idle_and_null_for_unknown)
{
    struct ew_state *state = new_state(5, false);
    life(state, ETWATCH_TYPE_START, 7, "a", 100 * S + 1);
    tick(state, 7, "a", 101 * S, 500000000);
    tick(state, 7, "a", 103 * S, 250000000);
    tick(state, 8, "b", 106 * S, 1);
    struct ew_response response = ask(
        state, "/api/v1/processes/7-7000000000/history?metrics=cpu_ns,rss_bytes&from=98000", NULL);
    CHECK_EQ_INT(response.status, 200);
    CHECK_CONTAINS(response.body.data, "\"from_ms\":99000,\"to_ms\":103000,\"step_ms\":1000");
    CHECK_CONTAINS(response.body.data, "\"cpu_ns\":[null,500000000,0,250000000]");
    CHECK_CONTAINS(response.body.data, "\"rss_bytes\":[null,28672,28672,28672]");
    ew_buf_done(&response.body);
    free_state(state);
}

TEST(routes_refuse_what_they_do_not_know)
{
    struct ew_state *state = new_state(5, false);
    tick(state, 7, "a", 101 * S, 1);
    tick(state, 7, "a", 103 * S, 1);
    static const struct {
        const char *target;
        int status;
    } rows[] = {
        {"/healthz", 200},
        {"/metrics", 200},
        {"/metrics?x=1", 400},
        {"/api/v1/meta", 200},
        {"/api/v1/processes?exited=1", 200},
        {"/api/v1/processes?exited=yes", 400},
        {"/api/v1/processes/7-7000000000", 200},
        {"/api/v1/processes/7-7000000001", 404},
        {"/api/v1/processes/7", 404},
        {"/api/v1/processes/7-7000000000/history?from=x", 400},
        {"/api/v1/processes/7-7000000000/history?metrics=nothing", 400},
        {"/api/v1/processes/7-7000000000/history?from=99999999999999999999", 400},
        {"/api/v1/processes/7-7000000000/threads", 200},
        {"/api/v1/processes/7-7000000000/secret", 404},
        {"/../../etc/passwd", 404},
        {"/api/v1/../../etc/passwd", 404},
        {"//etc/passwd", 404},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].target);
        CHECK_EQ_INT(status_of(state, rows[i].target, NULL), rows[i].status);
    }
    CHECK_EQ_INT(status_of(state, "/metrics", "0123456789abcdef"), 401);
    CHECK_EQ_INT(status_of(state, "/healthz", "0123456789abcdef"), 200);
    CHECK_EQ_INT(status_of(state, "/?token=0123456789abcdef", "0123456789abcdef"), 303);
    CHECK_EQ_INT(status_of(state, "/?token=0123456789abcdee", "0123456789abcdef"), 401);
    free_state(state);
}

TEST(methods_bodies_and_floods_are_refused)
{
    struct ew_state *state = new_state(5, false);
    struct ew_request request = {.method = "POST", .target = "/metrics", .host = "127.0.0.1"};
    struct ew_routes routes = {.state = state, .rate = 10};
    struct ew_response response;
    ew_routes_answer(&routes, &request, S, &response);
    CHECK_EQ_INT(response.status, 405);
    ew_buf_done(&response.body);
    request.method = "GET";
    request.has_body = true;
    ew_routes_answer(&routes, &request, S, &response);
    CHECK_EQ_INT(response.status, 400);
    ew_buf_done(&response.body);
    request.has_body = false;
    int refused = 0;
    for (int i = 0; i < 20; i++) {
        ew_routes_answer(&routes, &request, S, &response);
        refused += response.status == 429;
        ew_buf_done(&response.body);
    }
    CHECK_EQ_INT(refused, 10);
    ew_routes_answer(&routes, &request, 3 * S, &response);
    CHECK_EQ_INT(response.status, 200);
    ew_buf_done(&response.body);
    free_state(state);
}

TEST(long_answers_are_compressed_for_clients_that_accept_it)
{
    struct ew_state *state = new_state(50, false);
    struct ew_request request = {
        .method = "GET", .target = "/api/v1/processes", .host = "127.0.0.1"};
    struct ew_routes routes = {.state = state};
    struct ew_response plain, small;
    char name[16];
    for (uint32_t pid = 1; pid <= 40; pid++) {
        (void)snprintf(name, sizeof name, "name-%u", pid);
        tick(state, pid, name, 101 * S, 1000000 * pid);
    }
    ew_routes_answer(&routes, &request, S, &plain);
    request.accept_encoding = "gzip";
    ew_routes_answer(&routes, &request, S, &small);
    CHECK_EQ_UINT(plain.flags & EW_RESPONSE_GZIP, 0);
    CHECK(plain.body.len > EW_ROUTES_GZIP_MIN);
    if ((small.flags & EW_RESPONSE_GZIP) != 0) { /* not in a build without zlib */
        CHECK(small.body.len < plain.body.len / 3);
        CHECK_EQ_UINT((uint8_t)small.body.data[0], 0x1f);
    }
    CHECK_EQ_UINT((small.flags & EW_RESPONSE_GZIP) != 0, ew_gzip_available());
    ew_buf_done(&plain.body);
    ew_buf_done(&small.body);
    request.target = "/healthz";
    ew_routes_answer(&routes, &request, S, &small);
    CHECK_EQ_UINT(small.flags & EW_RESPONSE_GZIP, 0);
    ew_buf_done(&small.body);
    free_state(state);
}

/* How many of `count` requests at one instant have this status. */
static int count_status(struct ew_routes *routes, const struct ew_request *request, int count,
                        uint64_t now_ns, int status)
{
    struct ew_response response;
    int found = 0;
    for (int i = 0; i < count; i++) {
        ew_routes_answer(routes, request, now_ns, &response);
        found += response.status == status;
        ew_buf_done(&response.body);
    }
    return found;
}

TEST(a_flood_without_the_token_takes_nothing_from_scrapes_and_health)
{
    static const char token[] = "0123456789abcdef";
    struct ew_state *state = new_state(5, false);
    struct ew_routes routes = {.state = state, .rate = 50, .token = token};
    struct ew_request flood = {.method = "GET", .target = "/metrics", .host = "127.0.0.1"};
    struct ew_request guess = {.method = "GET", .target = "/?token=x", .host = "127.0.0.1"};
    struct ew_request health = {.method = "GET", .target = "/healthz", .host = "127.0.0.1"};
    struct ew_request scrape = flood, login = flood;
    scrape.authorization = "Bearer 0123456789abcdef";
    login.target = "/?token=0123456789abcdef";
    /* A fifth of the rate, then nothing. */
    CHECK_EQ_INT(count_status(&routes, &flood, 1000, S, 401), 10);
    CHECK_EQ_INT(count_status(&routes, &guess, 100, S, 429), 100);
    CHECK_EQ_INT(count_status(&routes, &health, 1000, S, 200), 1000);
    CHECK_EQ_INT(count_status(&routes, &login, 1, S, 303), 1);
    CHECK_EQ_INT(count_status(&routes, &scrape, 100, S, 200), 49);
    CHECK_EQ_INT(count_status(&routes, &flood, 1000, 2 * S, 401), 10);
    free_state(state);
}

/* ---------------------------------------------------------------------------- spans */

static void add_span(struct ew_state *state, uint32_t pid, uint64_t end_ns, uint64_t work_ns,
                     uint64_t wait_ns)
{
    struct etwatch_span span = {
        .size = sizeof span,
        .kind = ETWATCH_SPAN_INFERENCE,
        .flags = ETWATCH_SPAN_COMPLETE,
        .pid = pid,
        .tid = pid,
        .start_ns = end_ns - work_ns - wait_ns,
        .end_ns = end_ns,
        .name = "run",
        .session = "<model>",
        .ns = {[ETWATCH_CAUSE_WORK] = work_ns, [ETWATCH_CAUSE_CPU] = wait_ns},
        .cause_count = wait_ns > 0,
        .causes = {{.kind = ETWATCH_CAUSE_CPU, .pid = 9, .ns = wait_ns, .name = "hog"}}};
    struct ew_buf frames;
    struct ew_bytes body;
    size_t at = 0;
    uint32_t type;
    bool broken;
    ew_buf_init(&frames, 0, NULL, NULL);
    ew_wire_span(&frames, &span);
    CHECK(ew_wire_next((const uint8_t *)frames.data, frames.len, &at, &type, &body, &broken));
    ew_state_frame(state, type, &body);
    ew_buf_done(&frames);
}

TEST(spans_are_shown_with_their_causes_of_the_process_and_range_that_is_requested)
{
    struct ew_state *state = new_state(5, false);
    CHECK_EQ_INT(status_of(state, "/api/v1/spans", NULL), 404);
    state->meta.inferences = true;
    life(state, ETWATCH_TYPE_START, 7, "a", 100 * S);
    for (uint32_t i = 0; i < 99; i++)
        add_span(state, 7, 101 * S + i * S / 100, 10000000, 0);
    add_span(state, 7, 102 * S, 10000000, 30000000);
    add_span(state, 8, 102 * S, 77000000, 0); /* another process */
    add_span(state, 7, 6 * S, 66000000, 0);   /* before the process: of one with the same pid */
    add_span(state, 7, 105 * S, 55000000, 0); /* after the range */
    tick(state, 7, "a", 120 * S, 1);
    tick(state, 7, "a", 122 * S, 1);
    struct ew_response response =
        ask(state, "/api/v1/processes/7-7000000000/spans?from=1&to=104000", NULL);
    CHECK_EQ_INT(response.status, 200);
    CHECK_CONTAINS(response.body.data, "\"count\":100,\"others\":0");
    CHECK_CONTAINS(response.body.data, "\"session\":\"<model>\",\"pid\":7,\"count\":100");
    CHECK_CONTAINS(response.body.data,
                   "\"p50_ns\":10000000,\"p95_ns\":10000000,\"p99_ns\":10000000,"
                   "\"max_ns\":40000000,\"mean_ns\":10300000");
    CHECK_CONTAINS(response.body.data, "\"total_ns\":[1000000000,30000000,0,null,0,0,0,0,0]");
    CHECK_CONTAINS(response.body.data, "\"latency_ns\":40000000,\"ns\":[10000000,30000000,");
    CHECK_CONTAINS(response.body.data, "\"ns\":30000000,\"name\":\"hog\"");
    CHECK_CONTAINS(response.body.data, "\"known_from_ms\":null");
    CHECK(strstr(response.body.data, "77000000") == NULL);
    CHECK(strstr(response.body.data, "66000000") == NULL);
    CHECK(strstr(response.body.data, "55000000") == NULL);
    ew_buf_done(&response.body);
    response = ask(state, "/api/v1/spans?from=1&to=104000", NULL);
    CHECK_CONTAINS(response.body.data, "\"count\":102,");
    CHECK_CONTAINS(response.body.data, "\"pid\":8,\"count\":1,");
    ew_buf_done(&response.body);
    CHECK_EQ_INT(status_of(state, "/api/v1/spans?from=104000&to=103000", NULL), 400);
    free_state(state);
}

TEST(the_ring_of_spans_forgets_the_oldest_and_says_since_when_it_knows)
{
    struct ew_state *state = new_state(5, false);
    state->meta.marks = true;
    for (uint32_t i = 0; i < EW_LATEST_SPANS_MAX + 10; i++)
        add_span(state, 7, 100 * S + i * 1000000, 500000, 0);
    struct ew_response response = ask(state, "/api/v1/spans?from=1&to=200000", NULL);
    CHECK_CONTAINS(response.body.data, "{\"kept\":16384,\"known_from_ms\":100010,");
    CHECK_CONTAINS(response.body.data, "\"count\":16384,");
    ew_buf_done(&response.body);
    free_state(state);
}

TEST(a_span_that_cannot_be_is_malformed)
{
    struct ew_state *state = new_state(5, false);
    state->meta.marks = true;
    add_span(state, 7, 100 * S, EW_SERVE_SPAN_NS_MAX, 0);
    add_span(state, 7, 100 * S, 1, UINT64_MAX - 100);
    CHECK_EQ_UINT(state->malformed, 2);
    CHECK_EQ_UINT(state->spans.count, 0);
    state->malformed = 0;
    free_state(state);
}

/* ----------------------------------------------------------------------------- feed */

TEST(a_slow_client_of_the_stream_loses_whole_events)
{
    struct ew_state *state = new_state(5, false);
    struct ew_feed stream;
    char text[4096];
    CHECK_EQ_INT(ew_feed_init(&stream, 8192), 0);
    stream.clients = 1;
    uint64_t position = ew_feed_begin(&stream);
    tick(state, 7, "a", 101 * S, 1);
    ew_feed_second(&stream, state, 101 * S);
    size_t len = ew_feed_read(&stream, &position, text, sizeof text);
    CHECK(len > 0 && memcmp(text, "event: second\ndata: {", 21) == 0);
    CHECK_EQ_UINT(ew_feed_read(&stream, &position, text, sizeof text), 0);
    for (uint64_t i = 0; i < 100; i++)
        ew_feed_second(&stream, state, (102 + i) * S);
    len = ew_feed_read(&stream, &position, text, sizeof text);
    CHECK(len > 0 && memcmp(text, "\n\nevent: lost\n", 14) == 0);
    len = ew_feed_read(&stream, &position, text, sizeof text);
    CHECK(len > 0 && memcmp(text, "event: second\ndata: {", 21) == 0);
    ew_feed_done(&stream);
    free_state(state);
}

static int make_state(void *ctx)
{
    struct ew_state_options options = {.fine_bytes = 1 << 16, .coarse_bytes = 1 << 16, .top = 2};
    struct ew_state state;
    (void)ctx;
    int rc = ew_state_init(&state, &options);
    if (rc == 0)
        ew_state_done(&state);
    return rc;
}

TEST(a_state_that_finds_no_memory_leaves_nothing_behind)
{
    TORTURE(make_state, NULL);
}

TEST(every_metric_of_devices_is_a_series)
{
    for (uint32_t m = 0; m < ETWATCH_DEVICE_METRIC_COUNT; m++) {
        test_row(ew_catalog_device_name(m));
        CHECK(ew_device_series[m].prometheus != NULL && ew_device_series[m].otlp != NULL);
    }
}

TEST(devices_are_series_and_a_device_that_is_no_longer_read_has_no_gauges)
{
    struct ew_state *state = new_state(5, false);
    read_gpu(state, "0000:41:00.0", 101 * S, 40);
    read_gpu(state, "a\"b", 101 * S, 50);
    tick(state, 7, "a", 102 * S + 1, 0);
    const char *text = metrics_of(state, false);
    CHECK_NEAR(
        value_of(text,
                 "etwatch_device_power_watts{kind=\"gpu\",driver=\"nvml\",device=\"a\\\"b\"}"),
        50, 1e-9);
    CHECK_NEAR(
        value_of(text,
                 "etwatch_device_use_ratio{kind=\"gpu\",driver=\"nvml\",device=\"0000:41:00.0\"}"),
        0.25, 1e-9);
    CHECK_CONTAINS(text, "# TYPE etwatch_device_energy_joules_total counter\n");
    CHECK(strstr(text, "etwatch_device_temperature_celsius") == NULL);
    /* Lost: the gauges are unknown, the counters remain. */
    read_gpu(state, "0000:41:00.0", 103 * S, -1);
    tick(state, 7, "a", 104 * S + 1, 0);
    text = metrics_of(state, true);
    CHECK(strstr(
              text,
              "etwatch_device_power_watts{kind=\"gpu\",driver=\"nvml\",device=\"0000:41:00.0\"}") ==
          NULL);
    CHECK_NEAR(value_of(text, "etwatch_device_energy_joules_total{kind=\"gpu\",driver=\"nvml\","
                              "device=\"0000:41:00.0\"}"),
               80, 1e-9);
    /* Its driver hangs: nothing arrives any more. */
    tick(state, 7, "a", 120 * S + 1, 0);
    tick(state, 7, "a", 121 * S + 1, 0);
    CHECK(strstr(metrics_of(state, false), "etwatch_device_power_watts") == NULL);
    free_state(state);
}
