/* SPDX-License-Identifier: MIT */
/*
 * A path is compared with the list of routes; nothing in it names a file. An unknown key of a query
 * is an error, because a misspelt one would otherwise be ignored silently.
 */
#include "serve/routes.h"

#include <stdio.h>
#include <string.h>

#include "serve/archive.h"
#include "serve/gzip.h"
#include "serve/prometheus.h"

/* Styles and scripts are files of their own; charts set styles by script, which needs no inline
 * permission. Images are drawn by the page itself (export). */
const char ew_routes_policy[] = "default-src 'none'; script-src 'self'; style-src 'self'; img-src "
                                "'self' data: blob:; connect-src 'self'; base-uri 'none'; "
                                "form-action 'none'; frame-ancestors 'none'";

/* What a request for spans without a time gets. */
#define SPANS_NS (UINT64_C(60) * EW_STATE_SECOND_NS)

static const char json_type[] = "application/json; charset=utf-8";
static const char text_type[] = "text/plain; charset=utf-8";

struct call {
    struct ew_routes *routes;
    const struct ew_request *request;
    struct ew_response *response;
    char path[256];
    struct ew_query query;
    uint64_t now_ns; /* the clock of ew_routes_answer */
};

/* An error as JSON: what is wrong. */
static void fail(struct ew_response *response, int status, const char *format, const char *word)
{
    char text[320]; /* a whole path and a sentence */
    (void)snprintf(text, sizeof text, format, word);
    response->status = status;
    response->content_type = json_type;
    response->fixed = NULL;
    response->flags = 0;
    response->body.len = 0;
    response->body.error = 0;
    ew_buf_text(&response->body, "{\"error\":");
    ew_buf_json_string(&response->body, text, strlen(text));
    ew_buf_text(&response->body, "}\n");
}

/* False, and the response is an error: a key is not one of these. */
static bool only(struct call *call, const char *const *keys)
{
    const char *key = NULL;
    if (ew_query_only(&call->query, keys, &key))
        return true;
    fail(call->response, 400, "unknown parameter: %s", key);
    return false;
}

/* --------------------------------------------------------------------------- routes */

static void answer_health(struct call *call)
{
    const struct ew_state *state = call->routes->state;
    struct ew_response *response = call->response;
    static const char *const none[] = {NULL};
    if (!only(call, none))
        return;
    response->content_type = text_type;
    response->status = state->meta_known ? 200 : 503;
    ew_buf_text(&response->body, state->meta_known ? "ok\n" : "starting\n");
}

static void answer_metrics(struct call *call)
{
    static const char *const none[] = {NULL};
    bool open = ew_request_wants_openmetrics(call->request->accept);
    if (!only(call, none))
        return;
    call->response->content_type = open ? EW_PROMETHEUS_OPENMETRICS : EW_PROMETHEUS_TEXT;
    ew_prometheus_write(call->routes->state, open, &call->response->body);
}

static void answer_meta(struct call *call)
{
    static const char *const none[] = {NULL};
    if (only(call, none))
        ew_api_meta(call->routes->state, &call->response->body);
}

/* A switch of a query: 0 or 1. False, and the response is an error: another value. */
static bool read_switch(struct call *call, const char *key, bool *ret_on)
{
    const char *text = ew_query_get(&call->query, key);
    *ret_on = text != NULL && strcmp(text, "1") == 0;
    if (text == NULL || *ret_on || strcmp(text, "0") == 0)
        return true;
    fail(call->response, 400, "a switch is 0 or 1, not %s", text);
    return false;
}

static void answer_processes(struct call *call)
{
    static const char *const keys[] = {"exited", "trend", NULL};
    bool exited, trend;
    if (only(call, keys) && read_switch(call, "exited", &exited) &&
        read_switch(call, "trend", &trend))
        ew_api_processes(call->routes->state, exited, trend, &call->response->body);
}

static void answer_alerts(struct call *call)
{
    static const char *const none[] = {NULL};
    if (only(call, none))
        ew_api_alerts(call->routes->state, &call->response->body);
}

static void answer_stream(struct call *call)
{
    static const char *const none[] = {NULL};
    if (!only(call, none))
        return;
    call->response->flags |= EW_RESPONSE_STREAM;
    call->response->content_type = "text/event-stream; charset=utf-8";
}

/* from, to and step, in milliseconds; 0: not given. */
static bool read_times(struct call *call, uint64_t ms[3])
{
    const struct ew_state *state = call->routes->state;
    static const char *const keys[] = {"from", "to", "step"};
    ms[0] = ms[1] = ms[2] = 0;
    for (int i = 0; i < 3; i++) {
        const char *text = ew_query_get(&call->query, keys[i]);
        bool good =
            text == NULL || (i < 2 ? ew_request_time_ms(text, state->now_ns / 1000000, &ms[i])
                                   : ew_request_u64(text, UINT64_C(864000000), &ms[i]));
        if (!good) {
            fail(call->response, 400,
                 i < 2 ? "a time is in milliseconds of Unix time, or with - before now: not %s"
                       : "step is in milliseconds: not %s",
                 text);
            return false;
        }
    }
    return true;
}

static bool read_range(struct call *call, bool machine, struct ew_range *ret_range)
{
    const struct ew_state *state = call->routes->state;
    uint64_t ms[3];
    if (!read_times(call, ms))
        return false;
    if (ew_range_fit(state, ms[0] * 1000000, ms[1] * 1000000, ms[2] * 1000000, machine, ret_range))
        return true;
    fail(call->response, 404, "the history has nothing in this range%s", "");
    return false;
}

static bool read_metrics(struct call *call, struct etwatch_metric_set *ret_metrics)
{
    const struct ew_catalog *catalog = &call->routes->state->catalog;
    const char *at = ew_query_get(&call->query, "metrics");
    *ret_metrics = (struct etwatch_metric_set){{0}};
    while (at != NULL && *at != '\0') {
        size_t len = strcspn(at, ",");
        uint32_t metric = ew_catalog_find(catalog, at, len);
        if (metric == ETWATCH_METRIC_COUNT) {
            fail(call->response, 400, "there is no metric %s", at);
            return false;
        }
        etwatch_metric_set_add(ret_metrics, metric);
        at += len + (at[len] == ',');
    }
    return true;
}

/* Whether a range begins before what is in memory, so that only the disk may have it. */
static bool is_older(const struct call *call, bool machine, uint64_t from_ms)
{
    const struct ew_state *state = call->routes->state;
    uint64_t oldest_ns = ew_history_oldest_ns(machine ? &state->machine : &state->coarse);
    if (oldest_ns < state->first_ns)
        oldest_ns = state->first_ns;
    return call->routes->store != NULL && from_ms != 0 &&
           from_ms * 1000000 + 2 * EW_STATE_SECOND_NS < oldest_ns;
}

/* From disk. process NULL: the machine. */
static void answer_stored(struct call *call, const struct ew_archive_process *process,
                          const uint64_t ms[3])
{
    struct etwatch_metric_set metrics = {{0}};
    if (process != NULL && !read_metrics(call, &metrics))
        return;
    int rc =
        ew_archive_api_history(call->routes->store, call->routes->state, process, ms[0] * 1000000,
                               ms[1] * 1000000, ms[2] * 1000000, &metrics, &call->response->body);
    if (rc == ETWATCH_EINVAL)
        fail(call->response, 404, "the history has nothing in this range%s", "");
    else if (rc < 0)
        fail(call->response, 503, "the database cannot be read: %s",
             call->routes->state->store.error);
}

static void answer_store(struct call *call)
{
    static const char *const none[] = {NULL};
    if (only(call, none))
        ew_archive_api_info(call->routes->store, call->routes->state, &call->response->body);
}

static void answer_stored_processes(struct call *call)
{
    static const char *const keys[] = {"from", "to", NULL};
    const struct ew_state *state = call->routes->state;
    uint64_t ms[3];
    if (!only(call, keys) || !read_times(call, ms))
        return;
    uint64_t to_ns = ms[1] != 0 ? ms[1] * 1000000 : state->now_ns;
    if (call->routes->store == NULL)
        fail(call->response, 404, "there is no history on disk: start with --store DIR%s", "");
    else if (ew_archive_api_processes(call->routes->store, ms[0] * 1000000, to_ns,
                                      &call->response->body) < 0)
        fail(call->response, 503, "the database cannot be read: %s", state->store.error);
}

static void answer_machine(struct call *call)
{
    static const char *const keys[] = {"from", "to", "step", NULL};
    struct ew_range range;
    uint64_t ms[3];
    if (!only(call, keys) || !read_times(call, ms))
        return;
    if (is_older(call, true, ms[0])) {
        answer_stored(call, NULL, ms);
        return;
    }
    if (read_range(call, true, &range) &&
        ew_api_machine(call->routes->state, &range, &call->response->body) < 0)
        fail(call->response, 503, "out of memory%s", "");
}

static void answer_history(struct call *call, const struct ew_state_process *process, bool threads)
{
    static const char *const keys[] = {"from", "to", "step", "metrics", NULL};
    static const char *const thread_keys[] = {"from", "to", "step", NULL};
    struct ew_range range;
    struct etwatch_metric_set metrics;
    struct ew_archive_process stored;
    uint64_t ms[3];
    if (!only(call, threads ? thread_keys : keys) || !read_times(call, ms))
        return;
    if (!threads && is_older(call, false, ms[0]) &&
        ew_archive_find(call->routes->store, process->pid, process->start_ns, &stored)) {
        answer_stored(call, &stored, ms);
        return;
    }
    if (!read_range(call, false, &range) || !read_metrics(call, &metrics))
        return;
    int rc = threads ? ew_api_threads(call->routes->state, process, &range, &call->response->body)
                     : ew_api_history(call->routes->state, process, &range, &metrics,
                                      &call->response->body);
    if (rc < 0)
        fail(call->response, 503, "out of memory%s", "");
}

/* process NULL: the spans of all. */
static void answer_spans(struct call *call, const struct ew_state_process *process)
{
    static const char *const keys[] = {"from", "to", NULL};
    const struct ew_state *state = call->routes->state;
    struct ew_latest_spans_query query = {0};
    uint64_t ms[3];
    if (!state->meta.inferences && !state->meta.marks) {
        fail(call->response, 404, "spans are not watched: start with --onnx or --spans%s", "");
        return;
    }
    if (!only(call, keys) || !read_times(call, ms))
        return;
    query.to_ns = ms[1] != 0 ? ms[1] * 1000000 : state->now_ns;
    query.from_ns = ms[0] != 0               ? ms[0] * 1000000
                    : query.to_ns > SPANS_NS ? query.to_ns - SPANS_NS
                                             : 0;
    if (process != NULL) {
        query.pid = process->pid;
        query.born_ns = process->start_ns;
        query.exit_ns = process->exit_ns;
    }
    if (query.from_ns >= query.to_ns)
        fail(call->response, 400, "from must be before to%s", "");
    else if (ew_latest_spans_put(&state->spans, &query, &call->response->body) < 0)
        fail(call->response, 503, "out of memory%s", "");
}

static void answer_all_spans(struct call *call)
{
    answer_spans(call, NULL);
}

static void answer_devices(struct call *call)
{
    static const char *const none[] = {NULL};
    if (only(call, none))
        ew_api_devices(call->routes->state, &call->response->body);
}

/* /api/v1/devices/NUMBER/history */
static void answer_device(struct call *call, const char *rest)
{
    static const char *const keys[] = {"from", "to", "step", NULL};
    const struct ew_state *state = call->routes->state;
    struct ew_range range;
    uint64_t number = 0;
    char digits[16];
    size_t len = strcspn(rest, "/");
    (void)snprintf(digits, sizeof digits, "%.*s", len < sizeof digits ? (int)len : 0, rest);
    if (!ew_request_u64(digits, EW_STATE_DEVICES_MAX, &number) || number >= state->device_count ||
        strcmp(rest + len, "/history") != 0) {
        fail(call->response, 404, "there is no %s", call->path);
        return;
    }
    if (only(call, keys) && read_range(call, true, &range) &&
        ew_api_device(state, &state->devices[number], &range, &call->response->body) < 0)
        fail(call->response, 503, "out of memory%s", "");
}

/* from and to in nanoseconds: the last two seconds, or what is given. */
static bool read_moment(struct call *call, uint64_t *ret_from_ns, uint64_t *ret_to_ns)
{
    const struct ew_state *state = call->routes->state;
    static const char *const keys[] = {"from", "to"};
    const uint64_t now_ms = state->now_ns / 1000000;
    uint64_t ms[2] = {now_ms > 2000 ? now_ms - 2000 : 0, now_ms > 0 ? now_ms : 1};
    for (int i = 0; i < 2; i++) {
        const char *text = ew_query_get(&call->query, keys[i]);
        if (text != NULL && !ew_request_time_ms(text, now_ms, &ms[i])) {
            fail(call->response, 400,
                 "a time is in milliseconds of Unix time, or with - before now: not %s", text);
            return false;
        }
    }
    *ret_from_ns = ms[0] * 1000000;
    *ret_to_ns = ms[1] * 1000000;
    if (ms[0] < ms[1])
        return true;
    fail(call->response, 400, "from must be before to%s", "");
    return false;
}

/* Why there are no details of a process; NULL: there may be some. */
static const char *details_missing(const struct ew_state *state,
                                   const struct ew_state_process *process, bool stacks)
{
    if (!state->sched.available)
        return "this server has no details: it was started with --no-details, or they have ended";
    if (stacks && !state->sched.recorded)
        return "stacks are in recordings with profile samples only";
    if (!state->sched.recorded && process->exit_ns != 0)
        return "the process has exited";
    return NULL;
}

/* The strip and the stacks of a process: its client is why they are measured. */
static void answer_details(struct call *call, const struct ew_state_process *process, bool stacks)
{
    static const char *const keys[] = {"from", "to", NULL};
    struct ew_state *state = call->routes->state;
    struct ew_strip *sched = &state->sched;
    const char *reason = details_missing(state, process, stacks);
    uint64_t from_ns, to_ns;
    if (reason != NULL)
        fail(call->response, 404, "%s", reason);
    if (reason != NULL || !only(call, keys) || !read_moment(call, &from_ns, &to_ns))
        return;
    if (stacks) {
        ew_strip_want_stacks(sched, process->pid, from_ns, to_ns, call->now_ns);
        ew_strip_put_stacks(sched, &call->response->body);
        return;
    }
    const struct ew_strip_slot *slot =
        ew_strip_want(sched, process->pid, from_ns, to_ns, call->now_ns);
    if (slot == NULL)
        fail(call->response, 503, "out of memory%s", "");
    else
        ew_strip_put_strip(sched, slot, from_ns, to_ns, &call->response->body);
}

/* A process that only the disk knows, of this run or one before. rest: what follows its id. */
static bool answer_forgotten(struct call *call, uint32_t pid, uint64_t start_ns, const char *rest)
{
    static const char *const keys[] = {"from", "to", "step", "metrics", NULL};
    static const char *const none[] = {NULL};
    struct ew_archive_process stored;
    uint64_t ms[3];
    bool threads = strcmp(rest, "/threads") == 0;
    if ((rest[0] != '\0' && !threads && strcmp(rest, "/history") != 0) ||
        call->routes->store == NULL ||
        !ew_archive_find(call->routes->store, pid, start_ns, &stored))
        return false;
    if (rest[0] == '\0') {
        if (only(call, none))
            ew_archive_api_process(&stored, &call->response->body);
        return true;
    }
    if (!only(call, keys) || !read_times(call, ms))
        return true;
    if (threads) { /* they are not stored */
        ew_buf_text(&call->response->body, "{\"threads\":[]}\n");
        return true;
    }
    if (ms[0] == 0)
        ms[0] = stored.first_ns / 1000000 - 300000;
    if (ms[1] == 0)
        ms[1] = stored.last_ns / 1000000 + 300000; /* it is noted every 5 minutes */
    answer_stored(call, &stored, ms);
    return true;
}

/* /api/v1/processes/PID-START[/history|/threads|/schedule|/spans|/stacks] */
static void answer_process(struct call *call, const char *rest)
{
    static const char *const none[] = {NULL};
    const struct ew_state *state = call->routes->state;
    uint32_t pid = 0;
    uint64_t start_ns = 0;
    size_t len = strcspn(rest, "/");
    if (!ew_request_process(rest, len, &pid, &start_ns)) {
        fail(call->response, 404, "a process is PID-START, not %s", rest);
        return;
    }
    uint32_t i = ew_state_find(state, pid, start_ns);
    const struct ew_state_process *process = i == EW_STATE_NONE ? NULL : ew_state_at(state, i);
    if (process == NULL && answer_forgotten(call, pid, start_ns, rest + len))
        return;
    if (process == NULL)
        fail(call->response, 404, "there is no process %s, or it is forgotten", rest);
    else if (strcmp(rest + len, "/history") == 0)
        answer_history(call, process, false);
    else if (strcmp(rest + len, "/threads") == 0)
        answer_history(call, process, true);
    else if (strcmp(rest + len, "/schedule") == 0)
        answer_details(call, process, false);
    else if (strcmp(rest + len, "/spans") == 0)
        answer_spans(call, process);
    else if (strcmp(rest + len, "/stacks") == 0)
        answer_details(call, process, true);
    else if (rest[len] != '\0')
        fail(call->response, 404, "there is no %s", call->path);
    else if (only(call, none))
        ew_api_process(state, process, &call->response->body);
}

/* The page: with ?token=… it stores the token and removes it from the address. */
static bool answer_login(struct call *call)
{
    const struct ew_routes *routes = call->routes;
    const char *given = ew_query_get(&call->query, "token");
    struct ew_response *response = call->response;
    if (routes->token == NULL || given == NULL || strcmp(call->path, "/") != 0)
        return false;
    if (!ew_request_token_equal(given, strlen(given), routes->token)) {
        fail(response, 401, "the token is wrong%s", "");
        return true;
    }
    response->status = 303;
    response->content_type = text_type;
    (void)snprintf(response->location, sizeof response->location, "/");
    (void)snprintf(response->cookie, sizeof response->cookie,
                   "etwatch_token=%s; Path=/; HttpOnly; SameSite=Strict%s", routes->token,
                   routes->secure ? "; Secure" : "");
    return true;
}

static void answer_asset(struct call *call)
{
    const char *path = strcmp(call->path, "/") == 0 ? "/index.html" : call->path;
    const struct ew_request *request = call->request;
    struct ew_response *response = call->response;
    const struct ew_asset *asset = ew_assets;
    while (asset->path != NULL && strcmp(asset->path, path) != 0)
        asset++;
    if (asset->path == NULL) {
        if (strcmp(path, "/index.html") == 0)
            fail(response, 404, "%s", ew_assets_missing);
        else
            fail(response, 404, "there is no %s", call->path);
        return;
    }
    (void)snprintf(response->etag, sizeof response->etag, "\"%s\"", asset->etag);
    response->content_type = asset->content_type;
    response->flags |= asset->is_page ? EW_RESPONSE_HTML : 0;
    if (request->if_none_match != NULL && strcmp(request->if_none_match, response->etag) == 0) {
        response->status = 304;
        return;
    }
    response->flags |= asset->is_gzip ? EW_RESPONSE_GZIP : 0;
    response->fixed = asset->bytes;
    response->fixed_size = asset->size;
}

static const struct {
    const char *path;
    void (*answer)(struct call *call);
} routes_table[] = {
    {"/healthz", answer_health},         {"/metrics", answer_metrics},
    {"/api/v1/meta", answer_meta},       {"/api/v1/processes", answer_processes},
    {"/api/v1/alerts", answer_alerts},   {"/api/v1/system/history", answer_machine},
    {"/api/v1/stream", answer_stream},   {"/api/v1/devices", answer_devices},
    {"/api/v1/store", answer_store},     {"/api/v1/store/processes", answer_stored_processes},
    {"/api/v1/spans", answer_all_spans},
};

static void dispatch(struct call *call)
{
    static const char process[] = "/api/v1/processes/", device[] = "/api/v1/devices/";
    for (size_t i = 0; i < sizeof routes_table / sizeof routes_table[0]; i++) {
        if (strcmp(call->path, routes_table[i].path) == 0) {
            routes_table[i].answer(call);
            return;
        }
    }
    if (strncmp(call->path, process, sizeof process - 1) == 0)
        answer_process(call, call->path + sizeof process - 1);
    else if (strncmp(call->path, device, sizeof device - 1) == 0)
        answer_device(call, call->path + sizeof device - 1);
    else
        answer_asset(call);
}

/* --------------------------------------------------------------------------- checks */

static bool take_allowance(struct ew_allowance *allowance, double rate, uint64_t now_ns)
{
    if (allowance->at_ns == 0)
        allowance->left = rate;
    else if (now_ns > allowance->at_ns)
        allowance->left += rate * (double)(now_ns - allowance->at_ns) / 1e9;
    allowance->at_ns = now_ns;
    if (allowance->left > rate)
        allowance->left = rate;
    if (allowance->left < 1)
        return false;
    allowance->left -= 1;
    return true;
}

/* A login carries the token in its query. */
static bool is_authorized(const struct call *call)
{
    const char *token = call->routes->token;
    const char *given = ew_query_get(&call->query, "token");
    return token == NULL || ew_request_authorized(call->request, token) ||
           (given != NULL && strcmp(call->path, "/") == 0 &&
            ew_request_token_equal(given, strlen(given), token));
}

/* Rate and token. Requests without the token have a bucket of their own, so that a flood of them
 * takes nothing from a scrape that has it. /healthz costs no more than a refusal and has no limit.
 */
static bool admit(struct call *call, uint64_t now_ns)
{
    struct ew_routes *routes = call->routes;
    double rate = routes->rate != 0 ? routes->rate : EW_ROUTES_RATE;
    if (strcmp(call->path, "/healthz") == 0)
        return true;
    bool authorized = is_authorized(call);
    if (!take_allowance(authorized ? &routes->admitted : &routes->strangers,
                        authorized ? rate : rate / EW_ROUTES_STRANGERS_PART, now_ns)) {
        fail(call->response, 429, "too many requests%s", "");
        call->response->retry_after_s = 1;
    } else if (routes->token != NULL && !ew_request_authorized(call->request, routes->token) &&
               !answer_login(call)) {
        fail(call->response, 401,
             "a token is needed: Authorization: Bearer TOKEN, or open /?token=TOKEN%s", "");
    }
    return call->response->status == 200;
}

/* False, and the response is an error. */
static bool check(struct call *call, uint64_t now_ns)
{
    struct ew_routes *routes = call->routes;
    const struct ew_request *request = call->request;
    struct ew_response *response = call->response;
    if (!ew_request_host_allowed(request->host, routes->host_names)) {
        fail(response, 421, "this server does not have the name in Host; see --allow-host%s", "");
    } else if (!ew_request_same_origin(request)) {
        fail(response, 403, "requests of other sites are refused%s", "");
    } else if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
        fail(response, 405, "only GET and HEAD%s", "");
        response->allow = "GET, HEAD";
    } else if (request->has_body) {
        fail(response, 400, "a request here has no body%s", "");
    } else if (strlen(request->target) > EW_TARGET_MAX) {
        fail(response, 414, "the address is too long%s", "");
    } else if (!ew_request_split(request->target, call->path, sizeof call->path, &call->query)) {
        fail(response, 400, "the address is malformed%s", "");
    } else {
        return admit(call, now_ns);
    }
    return false;
}

/* Metrics and JSON repeat themselves so much that a sixth or less is left of them. */
static void compress(const struct ew_request *request, struct ew_response *response)
{
    struct ew_buf small;
    if (response->status != 200 || response->fixed != NULL ||
        (response->flags & EW_RESPONSE_STREAM) != 0 || response->body.len < EW_ROUTES_GZIP_MIN ||
        !ew_request_accepts_gzip(request->accept_encoding))
        return;
    ew_buf_init(&small, EW_ROUTES_BODY_MAX, NULL, NULL);
    if (!ew_gzip(response->body.data, response->body.len, &small)) {
        ew_buf_done(&small);
        return;
    }
    ew_buf_done(&response->body);
    response->body = small;
    response->flags |= EW_RESPONSE_GZIP;
}

void ew_routes_answer(struct ew_routes *routes, const struct ew_request *request, uint64_t now_ns,
                      struct ew_response *ret_response)
{
    struct call call = {
        .routes = routes, .request = request, .response = ret_response, .now_ns = now_ns};
    *ret_response = (struct ew_response){.status = 200, .content_type = json_type};
    ew_buf_init(&ret_response->body, EW_ROUTES_BODY_MAX, NULL, NULL);
    routes->requests++;
    if (check(&call, now_ns))
        dispatch(&call);
    if (ret_response->body.error != 0)
        fail(ret_response, 503, "out of memory%s", "");
    compress(request, ret_response);
    routes->refused += ret_response->status >= 400;
}
