/* SPDX-License-Identifier: MIT */
/*
 * The HTTP client by WinHTTP, which is part of Windows and loaded when a push starts. Its calls
 * wait, so they are made on a thread: one request at a time, with the limits of the options. No
 * redirects (headers may carry secrets), no cookies, no credentials of the user.
 *
 * Closing the handle of a request is how another thread cancels it.
 */
#include "serve/post.h"

#include <windows.h>

#include <winhttp.h>

#include <stdio.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "os/os.h"
#include "os/windows/text.h"
#include "serve/loader.h"

#define HTTP_FUNCTIONS(X)     \
    X(WinHttpCloseHandle)     \
    X(WinHttpConnect)         \
    X(WinHttpCrackUrl)        \
    X(WinHttpOpen)            \
    X(WinHttpOpenRequest)     \
    X(WinHttpQueryHeaders)    \
    X(WinHttpReadData)        \
    X(WinHttpReceiveResponse) \
    X(WinHttpSendRequest)     \
    X(WinHttpSetOption)       \
    X(WinHttpSetTimeouts)

/* Filled once, before the first call, and never changed. */
static struct {
#define HTTP_X(name) __typeof__(&name) name;
    HTTP_FUNCTIONS(HTTP_X)
#undef HTTP_X
} api;

enum { LOOK_MS = 50, READ_MAX = 4 << 20, RETRY_MAX_S = 86400 };

struct ew_post {
    HINTERNET session, connection;
    wchar_t *host, *path, *headers;
    bool secure;
    struct ew_thread_handle *thread;
    HANDLE go; /* a request, or the end */
    struct ew_mutex *lock;
    /* Under the lock: */
    HINTERNET request;
    bool end, cancelled, done;
    struct ew_post_result result;
    /* Of the thread from `go` to `done`: */
    const void *bytes;
    size_t len;
    bool busy; /* of the caller alone */
};

const char *ew_post_unavailable(void)
{
    return NULL;
}

static bool load(void)
{
    static const char *const names[] = {"winhttp.dll"};
    void *library = ew_loader_open(names, 1);
    bool found = library != NULL;
#define HTTP_X(name) found = found && ew_loader_find(library, #name, &api.name);
    HTTP_FUNCTIONS(HTTP_X)
#undef HTTP_X
    return found;
}

/* --------------------------------------------------------------------- on the thread */

static void describe(DWORD error, struct ew_post_result *result)
{
    const char *words = error == ERROR_WINHTTP_CANNOT_CONNECT      ? "cannot connect"
                        : error == ERROR_WINHTTP_TIMEOUT           ? "no answer in time"
                        : error == ERROR_WINHTTP_NAME_NOT_RESOLVED ? "the name is unknown"
                        : error == ERROR_WINHTTP_SECURE_FAILURE    ? "the certificate is not valid"
                        : error == ERROR_WINHTTP_CONNECTION_ERROR  ? "the connection was closed"
                                                                   : "WinHTTP";
    (void)snprintf(result->error, sizeof result->error, "%s (error %lu)", words, error);
    result->status = 0;
}

static uint32_t retry_after(HINTERNET request)
{
    DWORD number = 0, size = sizeof number;
    SYSTEMTIME date, now;
    FILETIME then_file, now_file;
    if (api.WinHttpQueryHeaders(request, WINHTTP_QUERY_RETRY_AFTER | WINHTTP_QUERY_FLAG_NUMBER,
                                WINHTTP_HEADER_NAME_BY_INDEX, &number, &size,
                                WINHTTP_NO_HEADER_INDEX))
        return number < RETRY_MAX_S ? number : RETRY_MAX_S;
    size = sizeof date;
    if (!api.WinHttpQueryHeaders(request, WINHTTP_QUERY_RETRY_AFTER | WINHTTP_QUERY_FLAG_SYSTEMTIME,
                                 WINHTTP_HEADER_NAME_BY_INDEX, &date, &size,
                                 WINHTTP_NO_HEADER_INDEX))
        return 0;
    GetSystemTime(&now);
    if (!SystemTimeToFileTime(&date, &then_file) || !SystemTimeToFileTime(&now, &now_file))
        return 0;
    uint64_t then = (uint64_t)then_file.dwHighDateTime << 32 | then_file.dwLowDateTime;
    uint64_t since = (uint64_t)now_file.dwHighDateTime << 32 | now_file.dwLowDateTime;
    uint64_t left_s = then > since ? (then - since) / 10000000 : 0;
    return left_s < RETRY_MAX_S ? (uint32_t)left_s : RETRY_MAX_S;
}

/* More than is kept is read and ignored, up to a limit. */
static bool read_answer(HINTERNET request, struct ew_post_result *result)
{
    uint8_t part[4096];
    DWORD len = 0;
    size_t all = 0;
    do {
        if (!api.WinHttpReadData(request, part, sizeof part, &len))
            return false;
        size_t room = EW_POST_ANSWER_MAX - result->answer_len;
        size_t kept = len < room ? len : room;
        memcpy(result->answer + result->answer_len, part, kept);
        result->answer_len += kept;
        all += len;
    } while (len > 0 && all < READ_MAX);
    return true;
}

static bool exchange(struct ew_post *post, HINTERNET request, struct ew_post_result *result)
{
    DWORD status = 0, size = sizeof status;
    DWORD off =
        WINHTTP_DISABLE_COOKIES | WINHTTP_DISABLE_REDIRECTS | WINHTTP_DISABLE_AUTHENTICATION;
    if (!api.WinHttpSetOption(request, WINHTTP_OPTION_DISABLE_FEATURE, &off, sizeof off) ||
        !api.WinHttpSendRequest(request, post->headers, (DWORD)-1, (void *)(uintptr_t)post->bytes,
                                (DWORD)post->len, (DWORD)post->len, 0) ||
        !api.WinHttpReceiveResponse(request, NULL) ||
        !api.WinHttpQueryHeaders(request, WINHTTP_QUERY_STATUS_CODE | WINHTTP_QUERY_FLAG_NUMBER,
                                 WINHTTP_HEADER_NAME_BY_INDEX, &status, &size,
                                 WINHTTP_NO_HEADER_INDEX))
        return false;
    result->retry_after_s = retry_after(request);
    if (!read_answer(request, result))
        return false;
    result->status = (int)status;
    return true;
}

/* The handle belongs to the function that takes it out of the structure under the lock. */
static void close_request(struct ew_post *post)
{
    ew_mutex_lock(post->lock);
    HINTERNET request = post->request;
    post->request = NULL;
    ew_mutex_unlock(post->lock);
    if (request != NULL)
        (void)api.WinHttpCloseHandle(request);
}

static void make_request(struct ew_post *post)
{
    static const struct ew_post_result none;
    struct ew_post_result result = none;
    HINTERNET request = api.WinHttpOpenRequest(post->connection, L"POST", post->path, NULL,
                                               WINHTTP_NO_REFERER, WINHTTP_DEFAULT_ACCEPT_TYPES,
                                               post->secure ? WINHTTP_FLAG_SECURE : 0);
    DWORD error = GetLastError();
    ew_mutex_lock(post->lock);
    post->request = request;
    bool cancelled = post->cancelled;
    ew_mutex_unlock(post->lock);
    bool good = request != NULL && !cancelled && exchange(post, request, &result);
    if (!good)
        describe(request == NULL ? error : GetLastError(), &result);
    close_request(post);
    ew_mutex_lock(post->lock);
    post->result = result;
    post->done = true;
    ew_mutex_unlock(post->lock);
}

static void run(void *arg)
{
    struct ew_post *post = arg;
    for (;;) {
        (void)WaitForSingleObject(post->go, INFINITE);
        ew_mutex_lock(post->lock);
        bool end = post->end;
        ew_mutex_unlock(post->lock);
        if (end)
            return;
        make_request(post);
    }
}

/* ------------------------------------------------------------------------------ open */

static wchar_t *copy(const wchar_t *from, size_t units)
{
    wchar_t *to = ew_calloc(units + 1, sizeof *to);
    if (to != NULL)
        memcpy(to, from, units * sizeof *to);
    return to;
}

/* One text with all headers. libcurl removes a header of its own for "Name:", which WinHTTP does
 * not have. */
static wchar_t *join(const char *const *headers)
{
    struct ew_buf all;
    ew_buf_init(&all, 1 << 20, NULL, NULL);
    for (uint32_t i = 0; headers[i] != NULL; i++) {
        size_t len = strlen(headers[i]);
        if (len == 0 || headers[i][len - 1] == ':')
            continue;
        ew_buf_text(&all, headers[i]);
        ew_buf_text(&all, "\r\n");
    }
    ew_buf_char(&all, '\0');
    wchar_t *wide = all.error == 0 ? ew_wide_from_utf8(all.data) : NULL;
    ew_buf_done(&all);
    return wide;
}

static bool set_address(struct ew_post *post, const char *url, INTERNET_PORT *ret_port)
{
    URL_COMPONENTS parts = {.dwStructSize = sizeof parts,
                            .dwHostNameLength = (DWORD)-1,
                            .dwUrlPathLength = (DWORD)-1,
                            .dwSchemeLength = (DWORD)-1};
    wchar_t *wide = ew_wide_from_utf8(url);
    if (wide != NULL && api.WinHttpCrackUrl(wide, 0, 0, &parts)) {
        post->secure = parts.nScheme == INTERNET_SCHEME_HTTPS;
        post->host = copy(parts.lpszHostName, parts.dwHostNameLength);
        /* With the query, which follows it. */
        post->path = copy(parts.lpszUrlPath, wcslen(parts.lpszUrlPath));
        *ret_port = parts.nPort;
    }
    ew_free(wide);
    return post->host != NULL && post->path != NULL;
}

static bool open_handles(struct ew_post *post, const struct ew_post_options *options)
{
    INTERNET_PORT port = 0;
    int ms = (int)options->timeout_ms;
    post->headers = join(options->headers);
    if (post->headers == NULL || !set_address(post, options->url, &port))
        return false;
    post->session = api.WinHttpOpen(L"etwatch", WINHTTP_ACCESS_TYPE_DEFAULT_PROXY,
                                    WINHTTP_NO_PROXY_NAME, WINHTTP_NO_PROXY_BYPASS, 0);
    if (post->session == NULL || !api.WinHttpSetTimeouts(post->session, ms, ms, ms, ms))
        return false;
    post->connection = api.WinHttpConnect(post->session, post->host, port, 0);
    return post->connection != NULL;
}

int ew_post_open(const struct ew_post_options *options, struct ew_post **ret_post,
                 char *reterr_text, size_t text_size)
{
    if (options->ca != NULL || options->cert != NULL || options->key != NULL) {
        (void)snprintf(reterr_text, text_size,
                       "--otlp: certificates in files do not work on Windows: add them to the "
                       "store of the machine");
        return ETWATCH_ENOTSUP;
    }
    struct ew_post *post = ew_calloc(1, sizeof *post);
    if (post == NULL)
        return ETWATCH_ENOMEM;
    if (!load()) {
        (void)snprintf(reterr_text, text_size,
                       "--otlp: winhttp.dll cannot be loaded, or lacks a function");
        ew_post_close(post);
        return ETWATCH_ENOTSUP;
    }
    post->go = CreateEventW(NULL, FALSE, FALSE, NULL);
    if (post->go != NULL && ew_mutex_new(&post->lock) == 0 && open_handles(post, options) &&
        ew_os_thread_start(run, post, &post->thread) == 0) {
        *ret_post = post;
        return 0;
    }
    (void)snprintf(reterr_text, text_size, "--otlp: WinHTTP cannot use %s (error %lu)",
                   options->url, GetLastError());
    ew_post_close(post);
    return ETWATCH_EOS;
}

static void end_thread(struct ew_post *post)
{
    ew_mutex_lock(post->lock);
    post->end = true;
    post->cancelled = true;
    ew_mutex_unlock(post->lock);
    close_request(post);
    (void)SetEvent(post->go);
    ew_os_thread_join(post->thread);
}

void ew_post_close(struct ew_post *post)
{
    if (post == NULL)
        return;
    if (post->thread != NULL)
        end_thread(post);
    if (post->connection != NULL)
        (void)api.WinHttpCloseHandle(post->connection);
    if (post->session != NULL)
        (void)api.WinHttpCloseHandle(post->session);
    if (post->go != NULL)
        (void)CloseHandle(post->go);
    ew_mutex_free(post->lock);
    ew_free(post->host);
    ew_free(post->path);
    ew_free(post->headers);
    ew_free(post);
}

/* --------------------------------------------------------------------------- request */

bool ew_post_start(struct ew_post *post, const void *bytes, size_t len)
{
    if (post->busy || len > UINT32_MAX)
        return false;
    post->bytes = bytes;
    post->len = len;
    post->done = false;
    post->busy = true;
    return SetEvent(post->go) != 0;
}

bool ew_post_run(struct ew_post *post, struct ew_post_result *ret_result)
{
    if (!post->busy)
        return false;
    ew_mutex_lock(post->lock);
    bool done = post->done;
    if (done)
        *ret_result = post->result;
    ew_mutex_unlock(post->lock);
    post->busy = !done;
    return done;
}

void ew_post_wait(struct ew_post *post, int timeout_ms)
{
    (void)post;
    ew_os_sleep_ms((uint32_t)(timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS));
}

int ew_post_fd(const struct ew_post *post)
{
    (void)post;
    return -1;
}

int ew_post_timeout_ms(const struct ew_post *post)
{
    return post->busy ? LOOK_MS : -1;
}
