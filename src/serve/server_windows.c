/* SPDX-License-Identifier: MIT */
/*
 * The serving process on Windows: this program again, started with two pipes as its standard input
 * and output. The order (what to serve, with the secrets) comes first on the input and the facts
 * follow; the answer of the start goes out. Order at its start: listen, give up every right, report
 * the port, then touch the first byte from outside. It ends when the pipe ends, and a job ends it
 * with its parent.
 *
 * A pipe cannot be waited for together with HTTP.sys, so a thread reads it: its bytes are taken
 * over by the loop, which alone touches the state.
 */
#include "serve/server.h"

#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "base/alloc.h"
#include "os/os.h"
#include "serve/http_windows.h"
#include "serve/server_windows.h"

enum {
    ORDER_MAX = 1 << 20,
    TEXTS_MAX = 64, /* of one list */
    READ_BYTES = 1 << 18,
    PIPE_BYTES = 1 << 20,
    STOP_MS = 10000,
};

/* What the collecting process holds of the serving one. */
struct ew_server_handles {
    HANDLE process, job, facts;
};

/* The answer of the serving process: the port, or why there is none. */
struct report {
    int code;
    int confined; /* of ew_os_confine_server */
    uint32_t port;
    char text[256];
};

const char *ew_server_unavailable(void)
{
    return ew_http_unavailable();
}

/* ----------------------------------------------------------------------------- order */

/* Both directions of one list of fields: what one writes the other reads. */
struct order {
    struct ew_buf *out;     /* writing */
    struct ew_bytes *bytes; /* reading: texts point into it */
};

static void put_u64(struct ew_buf *out, uint64_t value)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    ew_buf_bytes(out, bytes, sizeof bytes);
}

static void number(struct order *order, uint64_t *value)
{
    if (order->out != NULL)
        put_u64(order->out, *value);
    else
        *value = ew_bytes_u64(order->bytes);
}

static void flag(struct order *order, bool *value)
{
    uint64_t as_number = *value;
    number(order, &as_number);
    *value = as_number != 0;
}

static void small(struct order *order, uint32_t *value)
{
    uint64_t as_number = *value;
    number(order, &as_number);
    *value = (uint32_t)as_number;
}

/* Its length with the terminator; 0: NULL. */
static void text(struct order *order, const char **value)
{
    uint64_t size = order->out != NULL && *value != NULL ? strlen(*value) + 1 : 0;
    number(order, &size);
    if (order->out != NULL) {
        ew_buf_bytes(order->out, *value != NULL ? *value : "", (size_t)size);
        return;
    }
    *value = NULL;
    const uint8_t *found = size > 0 && size <= ew_bytes_left(order->bytes)
                               ? ew_bytes_take(order->bytes, (size_t)size)
                               : NULL;
    if (found != NULL && found[size - 1] == '\0')
        *value = (const char *)found;
    else if (size > 0)
        ew_bytes_fail(order->bytes, ETWATCH_EFORMAT);
}

/* A list that ends with NULL. */
static void texts(struct order *order, const char *const **value, const char *list[TEXTS_MAX + 1])
{
    uint32_t count = 0;
    while (order->out != NULL && *value != NULL && (*value)[count] != NULL && count < TEXTS_MAX)
        count++;
    small(order, &count);
    for (uint32_t i = 0; i < count && i < TEXTS_MAX; i++) {
        list[i] = order->out != NULL ? (*value)[i] : NULL;
        text(order, &list[i]);
    }
    if (order->out == NULL) {
        list[count < TEXTS_MAX ? count : TEXTS_MAX] = NULL;
        *value = list;
    }
}

/* The options of a serving process with what they point to. */
struct given {
    struct ew_server_options options;
    struct ew_otlp_attribute attributes[EW_OTLP_ATTRIBUTES_MAX];
    const char *hosts[TEXTS_MAX + 1], *headers[TEXTS_MAX + 1];
};

static void size_of(struct order *order, size_t *value)
{
    uint64_t as_number = *value;
    number(order, &as_number);
    *value = (size_t)as_number;
}

static void transfer_push(struct order *order, struct given *given)
{
    struct ew_otlp_options *otlp = &given->options.otlp;
    text(order, &otlp->post.url);
    texts(order, &otlp->post.headers, given->headers);
    small(order, &otlp->post.timeout_ms);
    flag(order, &otlp->json);
    flag(order, &otlp->delta);
    flag(order, &otlp->gzip);
    number(order, &otlp->interval_ns);
    number(order, &otlp->queue_bytes);
    small(order, &otlp->attribute_count);
    if (otlp->attribute_count > EW_OTLP_ATTRIBUTES_MAX)
        otlp->attribute_count = EW_OTLP_ATTRIBUTES_MAX;
    for (uint32_t i = 0; i < otlp->attribute_count; i++) {
        if (order->out != NULL)
            given->attributes[i] = otlp->attributes[i];
        text(order, &given->attributes[i].key);
        text(order, &given->attributes[i].value);
    }
    if (order->out == NULL)
        otlp->attributes = given->attributes;
}

static void transfer(struct order *order, struct given *given)
{
    struct ew_server_options *options = &given->options;
    uint32_t port = options->http.port;
    text(order, &options->http.address);
    small(order, &port);
    options->http.port = (uint16_t)port;
    flag(order, &options->http.shared);
    size_of(order, &options->state.fine_bytes);
    size_of(order, &options->state.coarse_bytes);
    number(order, &options->state.fine_keep_ns);
    number(order, &options->state.coarse_keep_ns);
    small(order, &options->state.top);
    flag(order, &options->state.pid_label);
    flag(order, &options->recorded);
    text(order, &options->token);
    texts(order, &options->host_names, given->hosts);
    transfer_push(order, given);
}

/* ----------------------------------------------------------------------------- pipes */

static bool write_all(HANDLE to, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        DWORD written = 0;
        if (!WriteFile(to, at, len > READ_BYTES ? READ_BYTES : (DWORD)len, &written, NULL))
            return false;
        at += written;
        len -= written;
    }
    return true;
}

static bool read_exact(HANDLE from, void *bytes, size_t len)
{
    char *at = bytes;
    while (len > 0) {
        DWORD got = 0;
        if (!ReadFile(from, at, len > READ_BYTES ? READ_BYTES : (DWORD)len, &got, NULL) || got == 0)
            return false;
        at += got;
        len -= got;
    }
    return true;
}

/* The thread that reads: it fills `bytes`, sets `full`, and waits for `empty`. */
struct reader {
    HANDLE from, full, empty;
    uint8_t *bytes;
    DWORD len; /* 0: the end */
};

static void read_facts(void *arg)
{
    struct reader *reader = arg;
    do {
        DWORD got = 0;
        reader->len = ReadFile(reader->from, reader->bytes, READ_BYTES, &got, NULL) ? got : 0;
        (void)SetEvent(reader->full);
        (void)WaitForSingleObject(reader->empty, INFINITE);
    } while (reader->len > 0);
}

/* ------------------------------------------------------------------ the serving process */

struct server {
    struct ew_state state;
    struct ew_feed stream;
    struct ew_routes routes;
    struct ew_http *http;
    struct ew_push push;
    struct reader reader;
    uint8_t *bytes; /* an incomplete frame at most, and what was read after it */
    size_t len, size;
    bool news; /* a second was closed */
};

static void on_second(void *ctx, uint64_t t_ns)
{
    struct server *server = ctx;
    ew_feed_second(&server->stream, &server->state, t_ns);
    server->news = true;
    ew_push_second(&server->push, &server->state, t_ns);
}

/* Takes over what the thread has read. False: the end, or the stream is broken. */
static bool take_facts(struct server *server)
{
    struct reader *reader = &server->reader;
    size_t at = 0;
    uint32_t type;
    struct ew_bytes body;
    bool broken = false;
    if (reader->len == 0 || reader->len > server->size - server->len)
        return false;
    memcpy(server->bytes + server->len, reader->bytes, reader->len);
    server->len += reader->len;
    (void)ResetEvent(reader->full);
    (void)SetEvent(reader->empty);
    while (ew_wire_next(server->bytes, server->len, &at, &type, &body, &broken))
        ew_state_frame(&server->state, type, &body);
    memmove(server->bytes, server->bytes + at, server->len - at);
    server->len -= at;
    return !broken;
}

static DWORD sooner(int a_ms, int b_ms)
{
    if (a_ms < 0 && b_ms < 0)
        return INFINITE;
    return (DWORD)(a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms);
}

static void loop(struct server *server)
{
    HANDLE waits[2] = {server->reader.full, ew_http_event(server->http)};
    for (;;) {
        DWORD wait_ms = sooner(ew_http_timeout_ms(server->http), ew_push_timeout_ms(&server->push));
        if (WaitForMultipleObjects(2, waits, FALSE, wait_ms) == WAIT_FAILED)
            return;
        /* Facts before requests: a flood of requests delays answers, not the collecting process. */
        if (WaitForSingleObject(server->reader.full, 0) == WAIT_OBJECT_0 && !take_facts(server))
            return;
        ew_push_run(&server->push);
        if (server->news)
            ew_http_wake_streams(server->http);
        server->news = false;
        ew_http_run(server->http);
    }
}

static int open_server(struct server *server, const struct ew_server_options *options,
                       char *reterr_text, size_t text_size)
{
    struct reader *reader = &server->reader;
    int rc = ew_state_init(&server->state, &options->state);
    if (rc == 0)
        rc = ew_feed_init(&server->stream, 0);
    server->size = EW_FRAME_MAX + 2 * READ_BYTES;
    server->bytes = ew_calloc(server->size, 1);
    reader->bytes = ew_calloc(READ_BYTES, 1);
    reader->full = CreateEventW(NULL, TRUE, FALSE, NULL);
    reader->empty = CreateEventW(NULL, FALSE, FALSE, NULL);
    if (rc < 0 || server->bytes == NULL || reader->bytes == NULL || reader->full == NULL ||
        reader->empty == NULL) {
        (void)snprintf(reterr_text, text_size, "out of memory");
        return ETWATCH_ENOMEM;
    }
    server->state.on_second = on_second;
    server->state.ctx = server;
    server->state.sched.recorded = options->recorded;
    server->routes.state = &server->state;
    server->routes.stream = &server->stream;
    server->routes.token = options->token;
    server->routes.host_names = options->host_names;
    rc = ew_push_open(&server->push, &options->otlp, &server->state.push, reterr_text, text_size);
    return rc < 0 ? rc
                  : ew_http_open(&options->http, &server->routes, &server->http, reterr_text,
                                 text_size);
}

/* NULL: there is no order. The options point into it. */
static uint8_t *read_order(HANDLE from, struct given *given)
{
    struct ew_bytes bytes;
    struct order order = {.bytes = &bytes};
    uint32_t size = 0;
    if (!read_exact(from, &size, sizeof size) || size > ORDER_MAX)
        return NULL;
    uint8_t *all = ew_calloc((size_t)size + 1, 1);
    if (all == NULL || !read_exact(from, all, size)) {
        ew_free(all);
        return NULL;
    }
    ew_bytes_init(&bytes, all, size);
    transfer(&order, given);
    if (ew_bytes_ok(&bytes) && ew_bytes_left(&bytes) == 0 && given->options.http.address != NULL)
        return all;
    ew_free(all);
    return NULL;
}

int ew_server_run(void (*say)(const char *text))
{
    static struct server server; /* of this process alone */
    static struct given given;
    struct report report = {0};
    HANDLE in = GetStdHandle(STD_INPUT_HANDLE), out = GetStdHandle(STD_OUTPUT_HANDLE);
    struct ew_thread_handle *thread = NULL;
    (void)SetConsoleCtrlHandler(NULL,
                                TRUE); /* Ctrl-C ends the collecting process, which ends this */
    uint8_t *order = read_order(in, &given);
    if (order == NULL)
        return 2;
    given.options.otlp.say = say;
    report.code = open_server(&server, &given.options, report.text, sizeof report.text);
    if (report.code == 0) {
        report.port = ew_http_port(server.http);
        report.confined = ew_os_confine_server(given.options.otlp.post.url != NULL);
        /* Serving with rights would break the promise. */
        if (report.confined <= 0) {
            report.code = ETWATCH_EPERM;
            (void)snprintf(report.text, sizeof report.text, "the server cannot give up its rights");
        }
    }
    server.reader.from = in;
    if (write_all(out, &report, sizeof report) && report.code == 0 &&
        ew_os_thread_start(read_facts, &server.reader, &thread) == 0) {
        loop(&server);
        ew_os_thread_detach(thread); /* it may wait in its read; the end of the process ends it */
        ew_push_rest(&server.push, &server.state);
    }
    ew_http_close(server.http);
    ew_push_close(&server.push);
    ew_feed_done(&server.stream);
    ew_state_done(&server.state);
    ew_free(server.bytes);
    ew_free(order);
    return 0;
}

/* ------------------------------------------------------------------ the other process */

static bool make_pipe(HANDLE *ret_read, HANDLE *ret_write, bool child_reads)
{
    SECURITY_ATTRIBUTES inherited = {.nLength = sizeof inherited, .bInheritHandle = TRUE};
    return CreatePipe(ret_read, ret_write, &inherited, PIPE_BYTES) &&
           SetHandleInformation(child_reads ? *ret_write : *ret_read, HANDLE_FLAG_INHERIT, 0);
}

static void close_handle(HANDLE *handle)
{
    if (*handle != NULL)
        (void)CloseHandle(*handle);
    *handle = NULL;
}

/* The serving process ends with the last handle of its job, however this process ends. */
static HANDLE make_job(HANDLE process)
{
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {0};
    HANDLE job = CreateJobObjectW(NULL, NULL);
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    if (job != NULL) {
        (void)SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits,
                                      sizeof limits);
        (void)AssignProcessToJobObject(job, process);
    }
    return job;
}

static bool start_process(HANDLE in, HANDLE out, struct ew_server_handles *handles)
{
    wchar_t program[4096], line[] = L"etwatch " EW_SERVER_WORD;
    STARTUPINFOW startup = {.cb = sizeof startup, .dwFlags = STARTF_USESTDHANDLES};
    PROCESS_INFORMATION info;
    DWORD len = GetModuleFileNameW(NULL, program, sizeof program / sizeof program[0]);
    startup.hStdInput = in;
    startup.hStdOutput = out;
    startup.hStdError = GetStdHandle(STD_ERROR_HANDLE);
    if (len == 0 || len >= sizeof program / sizeof program[0] ||
        !CreateProcessW(program, line, NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL, &startup,
                        &info))
        return false;
    handles->process = info.hProcess;
    handles->job = make_job(info.hProcess);
    (void)ResumeThread(info.hThread);
    (void)CloseHandle(info.hThread);
    return true;
}

static bool send_order(HANDLE to, const struct ew_server_options *options)
{
    struct ew_buf text;
    struct given given = {.options = *options};
    ew_buf_init(&text, ORDER_MAX, NULL, NULL);
    struct order order = {.out = &text};
    transfer(&order, &given);
    uint32_t size = (uint32_t)text.len;
    bool good =
        text.error == 0 && write_all(to, &size, sizeof size) && write_all(to, text.data, text.len);
    ew_buf_done(&text);
    return good;
}

int ew_server_start(const struct ew_server_options *options, struct ew_server_link *ret_link,
                    char *reterr_text, size_t text_size)
{
    HANDLE in = NULL, answers = NULL, out = NULL;
    struct report report = {.code = ETWATCH_EOS, .text = "the server ended at its start"};
    struct ew_server_handles *handles = ew_calloc(1, sizeof *handles);
    *ret_link = (struct ew_server_link){.fd = -1, .own = handles};
    if (options->http.cert != NULL) {
        (void)snprintf(
            reterr_text, text_size,
            "--cert and --key do not work on Windows: HTTP.sys takes certificates from the "
            "store of the machine; use a proxy with TLS in front");
        ew_server_stop(ret_link);
        return ETWATCH_ENOTSUP;
    }
    bool started = handles != NULL && make_pipe(&in, &handles->facts, true) &&
                   make_pipe(&answers, &out, false) && start_process(in, out, handles);
    if (!started)
        (void)snprintf(report.text, sizeof report.text, "cannot start a process: error %lu",
                       GetLastError());
    close_handle(&in);
    close_handle(&out);
    if (started && send_order(handles->facts, options))
        (void)read_exact(answers, &report, sizeof report);
    close_handle(&answers);
    if (report.code == 0) {
        ret_link->port = (uint16_t)report.port;
        ret_link->confined = report.confined;
        return 0;
    }
    (void)snprintf(reterr_text, text_size, "%.*s", (int)sizeof report.text - 1, report.text);
    ew_server_stop(ret_link);
    return report.code < 0 ? report.code : ETWATCH_EOS;
}

int ew_server_send(void *link, const void *bytes, size_t len)
{
    const struct ew_server_link *to = link;
    return write_all(to->own->facts, bytes, len) ? 0 : ETWATCH_EOS;
}

bool ew_server_alive(const struct ew_server_link *link)
{
    return WaitForSingleObject(link->own->process, 0) == WAIT_TIMEOUT;
}

void ew_server_stop(struct ew_server_link *link)
{
    struct ew_server_handles *handles = link->own;
    if (handles == NULL)
        return;
    close_handle(&handles->facts);
    if (handles->process != NULL && WaitForSingleObject(handles->process, STOP_MS) != WAIT_OBJECT_0)
        (void)TerminateProcess(handles->process, 1);
    close_handle(&handles->process);
    close_handle(&handles->job);
    ew_free(handles);
    link->own = NULL;
}
