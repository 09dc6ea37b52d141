/* SPDX-License-Identifier: MIT */
/*
 * The HTTP client by libcurl, driven by our own loop: its sockets are collected in one epoll
 * descriptor. Only http and https, no redirects (headers may carry secrets), no cookies, no files.
 * libcurl resolves names on a thread of its own, so a slow DNS server delays nothing here.
 */
#include "serve/post.h"

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "os/os.h"
#include "serve/loader.h"

/* Loaded when a push starts: with its TLS it would cost every other command several MB. The table
 * is filled once, before the first call, and never changes. */
#define CURL_FUNCTIONS(X)  \
    X(easy_cleanup)        \
    X(easy_getinfo)        \
    X(easy_init)           \
    X(easy_setopt)         \
    X(easy_strerror)       \
    X(global_init)         \
    X(multi_add_handle)    \
    X(multi_cleanup)       \
    X(multi_info_read)     \
    X(multi_init)          \
    X(multi_remove_handle) \
    X(multi_setopt)        \
    X(multi_socket_action) \
    X(slist_append)        \
    X(slist_free_all)

static struct {
#define CURL_X(name) __typeof__(&curl_##name) name;
    CURL_FUNCTIONS(CURL_X)
#undef CURL_X
} curl;

static bool load(void)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"};
    void *library = ew_loader_open(names, sizeof names / sizeof names[0]);
    if (library == NULL)
        return false;
    bool found = true;
#define CURL_X(name) found = ew_loader_find(library, "curl_" #name, &curl.name) && found;
    CURL_FUNCTIONS(CURL_X)
#undef CURL_X
    return found && curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

struct ew_post {
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers;
    int fd;              /* epoll */
    uint64_t timeout_at; /* of libcurl, in raw time; 0: none */
    bool busy;
    char error[CURL_ERROR_SIZE];
    struct ew_post_result result;
};

const char *ew_post_unavailable(void)
{
    return NULL;
}

/* ------------------------------------------------------------------------- callbacks */

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *ctx, void *socket_ctx)
{
    struct ew_post *post = ctx;
    struct epoll_event event = {.data.fd = socket};
    (void)easy;
    (void)socket_ctx;
    if (what == CURL_POLL_REMOVE) {
        (void)epoll_ctl(post->fd, EPOLL_CTL_DEL, socket, &event);
        return 0;
    }
    event.events = ((what & CURL_POLL_IN) != 0 ? (uint32_t)EPOLLIN : 0) |
                   ((what & CURL_POLL_OUT) != 0 ? (uint32_t)EPOLLOUT : 0);
    if (epoll_ctl(post->fd, EPOLL_CTL_MOD, socket, &event) != 0)
        (void)epoll_ctl(post->fd, EPOLL_CTL_ADD, socket, &event);
    return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *ctx)
{
    struct ew_post *post = ctx;
    (void)multi;
    post->timeout_at = timeout_ms < 0 ? 0 : ew_os_raw_ns() + (uint64_t)timeout_ms * 1000000 + 1;
    return 0;
}

/* More than is kept is read and ignored, up to 4 MiB. */
static size_t on_answer(char *bytes, size_t size, size_t count, void *ctx)
{
    struct ew_post *post = ctx;
    size_t len = size * count;
    size_t room = EW_POST_ANSWER_MAX - post->result.answer_len;
    size_t kept = len < room ? len : room;
    memcpy(post->result.answer + post->result.answer_len, bytes, kept);
    post->result.answer_len += kept;
    return len;
}

/* ------------------------------------------------------------------------------ open */

static CURLcode set_blob(CURL *easy, CURLoption option, const char *pem)
{
    struct curl_blob blob = {.data = (void *)(uintptr_t)pem, .flags = CURL_BLOB_NOCOPY};
    if (pem == NULL)
        return CURLE_OK;
    blob.len = strlen(pem);
    return curl.easy_setopt(easy, option, &blob);
}

static bool add_headers(struct ew_post *post, const struct ew_post_options *options)
{
    for (uint32_t i = 0; options->headers[i] != NULL; i++) {
        struct curl_slist *list = curl.slist_append(post->headers, options->headers[i]);
        if (list == NULL)
            return false;
        post->headers = list;
    }
    return true;
}

/* The library that is loaded may be older than the header: until 7.84 the option was a mask. */
static CURLcode allow_http_only(CURL *easy)
{
    const int protocols = CURLOPTTYPE_LONG + 181, protocols_str = CURLOPTTYPE_OBJECTPOINT + 318;
    CURLcode rc = curl.easy_setopt(easy, (CURLoption)protocols_str, "http,https");
    if (rc == CURLE_UNKNOWN_OPTION)
        rc =
            curl.easy_setopt(easy, (CURLoption)protocols, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    return rc;
}

static bool configure(struct ew_post *post, const struct ew_post_options *options)
{
    CURL *easy = post->easy;
    CURLcode rc = CURLE_OK;
#define SET(option, value) rc = rc == CURLE_OK ? curl.easy_setopt(easy, option, value) : rc
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_ERRORBUFFER, post->error);
    SET(CURLOPT_URL, options->url);
    rc = rc == CURLE_OK ? allow_http_only(easy) : rc;
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_HTTPHEADER, post->headers);
    SET(CURLOPT_TIMEOUT_MS, (long)options->timeout_ms);
    SET(CURLOPT_MAXFILESIZE, 4L << 20);
    SET(CURLOPT_WRITEFUNCTION, on_answer);
    SET(CURLOPT_WRITEDATA, post);
#undef SET
    return rc == CURLE_OK && set_blob(easy, CURLOPT_CAINFO_BLOB, options->ca) == CURLE_OK &&
           set_blob(easy, CURLOPT_SSLCERT_BLOB, options->cert) == CURLE_OK &&
           set_blob(easy, CURLOPT_SSLKEY_BLOB, options->key) == CURLE_OK;
}

static bool open_handles(struct ew_post *post, const struct ew_post_options *options)
{
    post->fd = epoll_create1(EPOLL_CLOEXEC);
    post->multi = curl.multi_init();
    post->easy = curl.easy_init();
    return post->fd >= 0 && post->multi != NULL && post->easy != NULL &&
           add_headers(post, options) && configure(post, options) &&
           curl.multi_setopt(post->multi, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK &&
           curl.multi_setopt(post->multi, CURLMOPT_SOCKETDATA, post) == CURLM_OK &&
           curl.multi_setopt(post->multi, CURLMOPT_TIMERFUNCTION, on_timer) == CURLM_OK &&
           curl.multi_setopt(post->multi, CURLMOPT_TIMERDATA, post) == CURLM_OK;
}

int ew_post_open(const struct ew_post_options *options, struct ew_post **ret_post,
                 char *reterr_text, size_t text_size)
{
    if (!load()) {
        (void)snprintf(reterr_text, text_size,
                       "--otlp: the library libcurl is missing (Debian: libcurl4)");
        return ETWATCH_ENOTSUP;
    }
    struct ew_post *post = ew_calloc(1, sizeof *post);
    if (post != NULL && open_handles(post, options)) {
        *ret_post = post;
        return 0;
    }
    (void)snprintf(reterr_text, text_size, "--otlp: libcurl cannot use %s%s%s", options->url,
                   post != NULL && post->error[0] != '\0' ? ": " : "",
                   post != NULL ? post->error : "");
    ew_post_close(post);
    return ETWATCH_EOS;
}

static void end_request(struct ew_post *post)
{
    if (post->busy)
        (void)curl.multi_remove_handle(post->multi, post->easy);
    post->busy = false;
}

void ew_post_close(struct ew_post *post)
{
    if (post == NULL)
        return;
    end_request(post);
    if (post->easy != NULL)
        curl.easy_cleanup(post->easy);
    if (post->multi != NULL)
        (void)curl.multi_cleanup(post->multi);
    curl.slist_free_all(post->headers);
    if (post->fd >= 0)
        (void)close(post->fd);
    ew_free(post);
}

/* --------------------------------------------------------------------------- request */

bool ew_post_start(struct ew_post *post, const void *bytes, size_t len)
{
    end_request(post);
    post->error[0] = '\0';
    post->result = (struct ew_post_result){0};
    if (curl.easy_setopt(post->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len) != CURLE_OK ||
        curl.easy_setopt(post->easy, CURLOPT_POSTFIELDS, bytes) != CURLE_OK ||
        curl.multi_add_handle(post->multi, post->easy) != CURLM_OK)
        return false;
    post->busy = true;
    return true;
}

static void finish(struct ew_post *post, CURLcode code)
{
    struct ew_post_result *result = &post->result;
    long status = 0;
    curl_off_t retry_s = 0;
    (void)curl.easy_getinfo(post->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl.easy_getinfo(post->easy, CURLINFO_RETRY_AFTER, &retry_s);
    if (code != CURLE_OK) {
        (void)snprintf(result->error, sizeof result->error, "%.*s", (int)sizeof result->error - 1,
                       post->error[0] != '\0' ? post->error : curl.easy_strerror(code));
        status = 0;
    }
    result->status = (int)status;
    result->retry_after_s = retry_s > 0 ? (uint32_t)(retry_s < 86400 ? retry_s : 86400) : 0;
    end_request(post);
}

bool ew_post_run(struct ew_post *post, struct ew_post_result *ret_result)
{
    struct epoll_event events[8];
    int running = 0, left = 0;
    if (!post->busy)
        return false;
    int count = epoll_wait(post->fd, events, 8, 0);
    for (int i = 0; i < count; i++) {
        int flags = ((events[i].events & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) |
                    ((events[i].events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                    ((events[i].events & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0);
        (void)curl.multi_socket_action(post->multi, events[i].data.fd, flags, &running);
    }
    if (post->timeout_at != 0 && ew_os_raw_ns() >= post->timeout_at) {
        post->timeout_at = 0;
        (void)curl.multi_socket_action(post->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    for (CURLMsg *message = curl.multi_info_read(post->multi, &left); message != NULL;
         message = curl.multi_info_read(post->multi, &left)) {
        if (message->msg != CURLMSG_DONE)
            continue;
        finish(post, message->data.result);
        *ret_result = post->result;
        return true;
    }
    return false;
}

void ew_post_wait(struct ew_post *post, int timeout_ms)
{
    struct pollfd wait = {.fd = post->fd, .events = POLLIN};
    (void)poll(&wait, 1, timeout_ms);
}

int ew_post_fd(const struct ew_post *post)
{
    return post->fd;
}

int ew_post_timeout_ms(const struct ew_post *post)
{
    uint64_t now_ns = ew_os_raw_ns();
    if (!post->busy || post->timeout_at == 0)
        return -1;
    return post->timeout_at <= now_ns ? 0 : (int)((post->timeout_at - now_ns) / 1000000) + 1;
}
