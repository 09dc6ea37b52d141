/* SPDX-License-Identifier: MIT */
/*
 * serve: starts the serving process, then watches and sends it every fact until a signal. The
 * serving process is started first, while this one has no monitor: it inherits nothing but the
 * pipe. Files with secrets are read here, before rights are dropped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/serve_push.h"
#include "os/os.h"
#include "serve/server.h"

enum { SECRET_MAX = 65536, HOSTS_MAX = 32, DEFAULT_PORT = 9797, DEFAULT_TOP = 30 };

#define FINE_KEEP_NS (UINT64_C(60) * 1000000000)
#define COARSE_KEEP_NS (UINT64_C(3600) * 1000000000)

struct serving {
    const struct ew_options *options;
    struct ew_watch watch;
    struct ew_server_options server;
    struct ew_server_link link;
    struct ew_buf frames;
    char address[64];
    char *token, *cert, *key;
    const char *hosts[HOSTS_MAX + 2];
    struct ew_serve_push push;
    uint64_t stats_next_ns;
    struct ew_options watched; /* with what --onnx and --spans need */
    struct ew_spans_view spans;
    bool with_spans;
    uint64_t spans_next_ns, spans_lost;
};

/* The library's own statistics of spans are not used here: they begin anew after this time. */
#define SPANS_WINDOW_NS (UINT64_C(10) * 1000000000)

/* -------------------------------------------------------------------------- options */

char *ew_cli_read_secret(const char *path)
{
    FILE *file = ew_os_stream_open(path);
    char *text = file == NULL ? NULL : ew_calloc(SECRET_MAX + 1, 1);
    size_t len = text == NULL ? 0 : fread(text, 1, SECRET_MAX, file);
    bool good = text != NULL && ferror(file) == 0 && len > 0 && len < SECRET_MAX;
    if (file != NULL)
        (void)fclose(file);
    if (good)
        return text;
    ew_free(text);
    ew_print_error("cannot read %s: it must be a file that is not empty and below 64 KB", path);
    return NULL;
}

static bool is_token(const char *token)
{
    size_t len = strlen(token);
    return len >= EW_TOKEN_MIN && len <= EW_TOKEN_MAX &&
           strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+/=-") ==
               len;
}

static int load_token(struct serving *serving)
{
    const char *path = serving->options->serve.token_file;
    const char *given = getenv("ETWATCH_TOKEN");
    if (path == NULL && (given == NULL || given[0] == '\0'))
        return EW_EXIT_OK;
    serving->token = path != NULL ? ew_cli_read_secret(path) : ew_strdup(given);
    if (serving->token == NULL)
        return EW_EXIT_FAILED;
    serving->token[strcspn(serving->token, "\r\n")] = '\0';
    if (is_token(serving->token))
        return EW_EXIT_OK;
    ew_print_error("the token needs %d to %d characters of A-Z a-z 0-9 . _ ~ + / = -; make one "
                   "with: openssl rand -hex 32",
                   EW_TOKEN_MIN, EW_TOKEN_MAX);
    return EW_EXIT_USAGE;
}

/* ADDRESS, ADDRESS:PORT, [ADDRESS]:PORT, :PORT */
static bool split_listen(const char *text, char *address, size_t size, uint16_t *ret_port)
{
    const char *port = strrchr(text, ':');
    const char *close = strchr(text, ']');
    uint32_t number = DEFAULT_PORT;
    size_t len = strlen(text);
    bool bare_v6 = text[0] != '[' && port != NULL && strchr(text, ':') != port;
    if (port != NULL && !bare_v6 && (close == NULL || port > close)) {
        if (!ew_value_u32(port + 1, &number) || number > UINT16_MAX)
            return false;
        len = (size_t)(port - text);
    }
    if (text[0] == '[') {
        if (close == NULL || (size_t)(close - text) + 1 != len)
            return false;
        text++;
        len -= 2;
    }
    if (len >= size)
        return false;
    (void)snprintf(address, size, "%.*s", (int)len, text);
    if (len == 0)
        (void)snprintf(address, size, "127.0.0.1");
    if (strcmp(address, "localhost") == 0)
        (void)snprintf(address, size, "127.0.0.1");
    *ret_port = (uint16_t)number;
    return true;
}

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

static int load_hosts(struct serving *serving)
{
    const struct ew_list *hosts = &serving->options->serve.hosts;
    uint32_t count = 0;
    if (hosts->count > HOSTS_MAX) {
        ew_print_error("--allow-host takes at most %d names", HOSTS_MAX);
        return EW_EXIT_USAGE;
    }
    for (uint32_t i = 0; i < hosts->count; i++)
        serving->hosts[count++] = hosts->words[i];
    /* The address itself is no name that a DNS answer could point elsewhere. */
    serving->hosts[count] = serving->address;
    serving->server.host_names = serving->hosts;
    return EW_EXIT_OK;
}

static void say(const char *text)
{
    ew_print_error("%s", text);
}

static int load_options(struct serving *serving)
{
    const struct ew_serve_options *options = &serving->options->serve;
    struct ew_server_options *server = &serving->server;
    const char *listen = options->listen != NULL ? options->listen : "127.0.0.1";
    if (!split_listen(listen, serving->address, sizeof serving->address, &server->http.port)) {
        ew_print_error("--listen needs ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT, not \"%s\"",
                       listen);
        return EW_EXIT_USAGE;
    }
    server->http.address = serving->address;
    int code = load_token(serving);
    if (code == EW_EXIT_OK)
        code = load_hosts(serving);
    if (code != EW_EXIT_OK)
        return code;
    server->token = serving->token;
    server->http.shared = !is_loopback(serving->address);
    if (!is_loopback(serving->address) && serving->token == NULL) {
        ew_print_error("--listen %s is open to other machines and needs a token: add --token-file "
                       "FILE, or set ETWATCH_TOKEN",
                       listen);
        return EW_EXIT_USAGE;
    }
    if (options->cert != NULL) {
        serving->cert = ew_cli_read_secret(options->cert);
        serving->key = serving->cert == NULL ? NULL : ew_cli_read_secret(options->key);
        if (serving->key == NULL)
            return EW_EXIT_FAILED;
        server->http.cert = serving->cert;
        server->http.key = serving->key;
    }
    bool recorded = serving->options->files.count > 0;
    server->recorded = recorded;
    if (!options->no_details) {
        server->details = ew_cli_serve_details;
        server->details_ctx = (void *)(uintptr_t)serving->options;
    }
    size_t size = (size_t)options->history_bytes;
    server->state = (struct ew_state_options){
        .top = options->prom_top != 0 ? options->prom_top : DEFAULT_TOP,
        .pid_label = options->pid_label,
        .fine_bytes = size / 3,
        .coarse_bytes = size - size / 3,
        .fine_keep_ns = recorded ? 0 : FINE_KEEP_NS,
        .coarse_keep_ns = recorded ? 0 : COARSE_KEEP_NS,
    };
    if (options->store != NULL && ew_archive_unavailable() != NULL) {
        ew_print_error("%s", ew_archive_unavailable());
        return EW_EXIT_FAILED;
    }
    server->store = (struct ew_archive_options){.dir = options->store,
                                                .keep_ns = options->store_keep_ns,
                                                .size_bytes = options->store_bytes,
                                                .say = say};
    code = ew_serve_push_load(&serving->push, options);
    server->otlp = serving->push.options;
    return code;
}

/* ---------------------------------------------------------------------------- frames */

static int send_meta(void *ctx, const struct etwatch_meta *meta)
{
    struct serving *serving = ctx;
    struct ew_serve_meta sent;
    memset(&sent, 0, sizeof sent);
    sent.meta = *meta;
    sent.recorded = serving->options->files.count > 0;
    sent.inferences = serving->options->onnx;
    sent.marks = serving->options->spans;
    if (!sent.recorded) {
        ew_os_host_name(sent.host, sizeof sent.host);
        ew_os_system_name(sent.os, sizeof sent.os);
    } else {
        (void)snprintf(sent.host, sizeof sent.host, "%s", serving->options->files.words[0]);
    }
    ew_wire_meta(&serving->frames, &sent);
    return 0;
}

static int send_samples(void *ctx, const struct etwatch_samples *batch)
{
    struct serving *serving = ctx;
    for (size_t i = 0; i < batch->count; i++) {
        ew_wire_sample(&serving->frames, etwatch_sample_at(batch, i));
        ew_buf_end_line(&serving->frames);
    }
    return serving->frames.error;
}

static int send_events(void *ctx, const struct etwatch_events *batch)
{
    (void)ctx;
    (void)batch;
    return 0;
}

static int send_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct serving *serving = ctx;
    ew_wire_loss(&serving->frames, loss);
    return 0;
}

static int send_alert(void *ctx, const struct etwatch_alert *alert)
{
    struct serving *serving = ctx;
    char text[512];
    if (etwatch_alert_text(alert, text, sizeof text) >= 0)
        ew_wire_alert(&serving->frames, alert, text);
    return 0;
}

static int send_system(void *ctx, const struct etwatch_system *system)
{
    struct serving *serving = ctx;
    ew_wire_system(&serving->frames, system);
    return 0;
}

static int send_devices(void *ctx, const struct etwatch_devices *batch)
{
    struct serving *serving = ctx;
    for (size_t i = 0; i < batch->count; i++)
        ew_wire_device(&serving->frames, etwatch_device_at(batch, i));
    return 0;
}

static int send_stats(void *ctx, const struct etwatch_stats *stats)
{
    struct serving *serving = ctx;
    ew_wire_stats(&serving->frames, stats);
    return 0;
}

/* The end of a delivery; the cost of the monitor once a second. */
static int send_all(void *ctx)
{
    struct serving *serving = ctx;
    struct etwatch_stats stats = {.size = sizeof stats};
    uint64_t now_ns = ew_os_raw_ns();
    if (now_ns >= serving->stats_next_ns &&
        etwatch_monitor_stats(serving->watch.monitor, &stats) == 0) {
        serving->stats_next_ns = now_ns + 1000000000;
        (void)send_stats(serving, &stats);
    }
    return ew_buf_flush(&serving->frames);
}

static const struct ew_watch_tap tap = {
    .meta = send_meta,
    .samples = send_samples,
    .events = send_events,
    .loss = send_loss,
    .alert = send_alert,
    .system = send_system,
    .devices = send_devices,
    .flush = send_all,
    .stats = send_stats,
};

/* ----------------------------------------------------------------------------- spans */

static void send_span(void *ctx, const struct etwatch_span *span)
{
    struct serving *serving = ctx;
    ew_wire_span(&serving->frames, span);
    ew_buf_end_line(&serving->frames);
}

static int add_sample(void *ctx, const struct etwatch_sample *sample)
{
    return ew_cli_spans_sample(&((struct serving *)ctx)->spans, sample);
}

static void add_events(void *ctx, const struct etwatch_events *batch)
{
    ew_cli_spans_events(&((struct serving *)ctx)->spans, batch);
}

static void add_loss(void *ctx, const struct etwatch_loss *loss)
{
    ew_cli_spans_loss(&((struct serving *)ctx)->spans, loss);
}

/* Spans and events without room are a loss like every other. */
static void send_lost_spans(struct serving *serving)
{
    const struct ew_spans_view *view = &serving->spans;
    struct etwatch_probes_stats stats = {.size = sizeof stats};
    uint64_t lost = etwatch_receiver_lost(view->receiver) + etwatch_spans_dropped(view->spans);
    if (view->probes != NULL && etwatch_probes_stats(view->probes, &stats) == 0)
        lost += stats.lost;
    if (lost <= serving->spans_lost)
        return;
    struct etwatch_loss loss = {.size = sizeof loss, .count = lost - serving->spans_lost};
    serving->spans_lost = lost;
    ew_wire_loss(&serving->frames, &loss);
}

static int open_spans(struct serving *serving)
{
    struct ew_watch *watch = &serving->watch;
    struct ew_options *options = &serving->watched;
    serving->with_spans = options->spans || options->onnx;
    if (!serving->with_spans)
        return EW_EXIT_OK;
    options->config_flags |=
        ETWATCH_CONFIG_EVENTS | ETWATCH_CONFIG_EVENTS_ALL | ETWATCH_CONFIG_EVENTS_CAUSES;
    options->config_flags |= options->onnx ? (uint32_t)ETWATCH_CONFIG_NO_FALLBACK : 0;
    watch->on_sample = add_sample;
    watch->on_events = add_events;
    watch->on_loss = add_loss;
    watch->ctx = serving;
    int code = ew_cli_spans_init_serve(&serving->spans, options, send_span, serving);
    if (code == EW_EXIT_OK && serving->spans.receiver != NULL)
        ew_print_info(options,
                      "marks are received from programs that are started with "
                      "ETWATCH_SPANS=%s",
                      etwatch_receiver_address(serving->spans.receiver));
    return code;
}

/* One delivery. False: the watch is over. */
static bool step(struct serving *serving)
{
    struct ew_watch *watch = &serving->watch;
    uint64_t now_ns = ew_os_raw_ns();
    if (!ew_cli_watch_step(watch, 250))
        return false;
    if (!serving->with_spans)
        return true;
    int rc = ew_cli_spans_step(&serving->spans, &watch->meta, false);
    if (now_ns >= serving->spans_next_ns) {
        serving->spans_next_ns = now_ns + SPANS_WINDOW_NS;
        send_lost_spans(serving);
        (void)etwatch_spans_clear(serving->spans.spans);
    }
    if (rc == 0)
        rc = ew_buf_flush(&serving->frames);
    watch->error = watch->error == 0 ? rc : watch->error;
    return watch->error == 0;
}

/* ------------------------------------------------------------------------------- run */

static void print_where(const struct serving *serving)
{
    const char *scheme = serving->cert != NULL ? "https" : "http";
    bool v6 = strchr(serving->address, ':') != NULL;
    ew_print_info(serving->options,
                  "serving %s://%s%s%s:%u/ (dashboard), /metrics, /api/v1/; Ctrl-C ends%s", scheme,
                  v6 ? "[" : "", serving->address, v6 ? "]" : "", serving->link.port,
                  serving->token != NULL ? "; a token is needed: /?token=TOKEN" : "");
    if (serving->push.url != NULL)
        ew_print_info(serving->options, "pushing to %s", serving->push.url);
    if (ew_assets_missing != NULL)
        ew_print_info(serving->options, "%s", ew_assets_missing);
}

/* A recording stays open after its end. */
static void wait_for_signal(struct serving *serving)
{
    ew_wire_end(&serving->frames);
    if (ew_buf_flush(&serving->frames) < 0)
        return;
    struct ew_waiter *waiter;
    if (ew_waiter_new(&waiter) < 0)
        return;
    while (ew_signals_ending() == 0 && ew_server_alive(&serving->link))
        (void)ew_waiter_wait(waiter, ew_os_raw_ns() + 250000000, -1);
    ew_waiter_free(waiter);
}

/* Perfetto traces have the samples as they were recorded. */
static int replay(struct serving *serving)
{
    int code = ew_cli_recording_confine(serving->options);
    if (code != EW_EXIT_OK)
        return code;
    print_where(serving);
    code = ew_cli_serve_replay(serving->options, &serving->frames);
    if (code == EW_EXIT_OK && ew_signals_ending() == 0)
        wait_for_signal(serving);
    int signal = ew_signals_ending();
    if (code == EW_EXIT_OK && signal == 0) {
        ew_print_error("the serving process has ended");
        code = EW_EXIT_FAILED;
    }
    return code != EW_EXIT_OK ? code : EW_EXIT_SIGNAL + signal;
}

static int watch(struct serving *serving)
{
    struct ew_watch *watch = &serving->watch;
    watch->tap = &tap;
    watch->tap_ctx = serving;
    serving->watched = *serving->options;
    int code = open_spans(serving);
    if (code == EW_EXIT_OK)
        code = ew_cli_watch_prepare(watch, &serving->watched, 0);
    if (code == EW_EXIT_OK)
        code = ew_cli_watch_open(watch, 0);
    if (code == EW_EXIT_OK) {
        print_where(serving);
        bool recorded = serving->options->files.count > 0;
        while (ew_signals_ending() == 0 && step(serving))
            continue;
        if (recorded && watch->error == 0 && ew_signals_ending() == 0)
            wait_for_signal(serving);
    }
    if (watch->error != 0 && !ew_server_alive(&serving->link)) {
        ew_print_error("the serving process has ended");
        watch->error = 0;
        watch->tap = NULL;
        code = EW_EXIT_FAILED;
    }
    int signal = ew_signals_ending();
    int end_code = ew_cli_watch_close(watch);
    if (serving->with_spans)
        ew_cli_spans_done(&serving->spans);
    if (code != EW_EXIT_OK)
        return code;
    if (end_code != EW_EXIT_OK)
        return end_code;
    return signal != 0 ? EW_EXIT_SIGNAL + signal : EW_EXIT_OK;
}

int ew_cmd_serve(const struct ew_options *options)
{
    struct serving serving = {.options = options};
    char text[256] = "";
    const char *reason = ew_server_unavailable();
    if (reason != NULL) {
        ew_print_error("%s", reason);
        return EW_EXIT_FAILED;
    }
    int code = load_options(&serving);
    if (code == EW_EXIT_OK) {
        ew_signals_init();
        int rc = ew_server_start(&serving.server, &serving.link, text, sizeof text);
        if (rc < 0) {
            ew_print_error("%s", text);
            code = EW_EXIT_FAILED;
        }
        ew_print_if_unconfined(rc < 0 ? 0 : serving.link.confined);
    }
    if (code == EW_EXIT_OK) {
        ew_buf_init(&serving.frames, 8 << 20, ew_server_send, &serving.link);
        code = ew_cli_serve_is_perfetto(options) ? replay(&serving) : watch(&serving);
        ew_buf_done(&serving.frames);
        ew_server_stop(&serving.link);
    }
    ew_free(serving.token);
    ew_free(serving.cert);
    ew_free(serving.key);
    ew_serve_push_done(&serving.push);
    return code;
}
