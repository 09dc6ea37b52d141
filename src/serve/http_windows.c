/* SPDX-License-Identifier: MIT */
/*
 * HTTP by HTTP.sys, the server in the kernel of Windows: it parses requests, frames responses and
 * enforces the limits on headers and idle connections. httpapi.dll is loaded when a server starts.
 *
 * HTTP.sys listens on every address of the machine. Requests that arrived at another address than
 * the one of --listen are refused here, before anything in them is looked at.
 *
 * A stream is answered event by event: a request waits until a second is closed, gets that event as
 * a whole response with the id of its end, and the client asks again with Last-Event-ID, as
 * EventSource does by itself. A slow client then holds one response, like every other.
 *
 * Nothing here waits: a response that is being taken belongs to the kernel until it is complete.
 */
#include "serve/http_windows.h"

#include <winsock2.h>
#include <ws2tcpip.h>

#include <http.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "os/os.h"
#include "serve/loader.h"

#define HTTP_FUNCTIONS(X)      \
    X(HttpInitialize)          \
    X(HttpTerminate)           \
    X(HttpCreateServerSession) \
    X(HttpCloseServerSession)  \
    X(HttpCreateUrlGroup)      \
    X(HttpCloseUrlGroup)       \
    X(HttpSetUrlGroupProperty) \
    X(HttpAddUrlToUrlGroup)    \
    X(HttpCreateRequestQueue)  \
    X(HttpCloseRequestQueue)   \
    X(HttpReceiveHttpRequest)  \
    X(HttpSendHttpResponse)

/* Filled once, before the first call, and never changed. */
static struct {
#define HTTP_X(name) __typeof__(&name) name;
    HTTP_FUNCTIONS(HTTP_X)
#undef HTTP_X
} api;

enum {
    RECEIVE_BYTES = 65536,
    REQUESTS_PER_TURN = 64,
    KNOWN_MAX = 9,
    UNKNOWN_MAX = 6,
    FREE_PORT_TRIES = 64,
    RETRY_MS = 100,
    START_TRIES = 100,
};

/* A client that got an event is expected back within this time. */
#define RETURN_NS UINT64_C(15000000000)

/* A response that the kernel sends. */
struct sending {
    OVERLAPPED overlapped;
    HTTP_RESPONSE to;
    HTTP_DATA_CHUNK chunk;
    HTTP_UNKNOWN_HEADER unknown[UNKNOWN_MAX];
    struct ew_response from;
    char number[24], length[24];
    uint64_t since_ns;
    struct sending *next; /* a later one */
};

/* A client that waits for the next event. */
struct stream {
    HTTP_REQUEST_ID id;
    uint64_t position;
    struct stream *next;
};

struct ew_http {
    struct ew_routes *routes;
    bool initialized;
    HTTP_SERVER_SESSION_ID session;
    HTTP_URL_GROUP_ID group;
    HANDLE queue, event;
    OVERLAPPED receive;
    bool receiving;
    ULONG received; /* the result of a receive that ended at once */
    HTTP_REQUEST *request;
    struct sending *sendings, **sendings_end;
    uint32_t sending_count;
    struct stream *streams;
    uint32_t stream_count, expected; /* waiting; expected back */
    uint64_t expected_until_ns;
    uint64_t instance; /* the first part of the id of an event */
    uint16_t port;
    bool any; /* of all addresses of this machine */
    char address[EW_IPV6_TEXT];
    char texts[EW_HTTP_HEADER_BYTES * 2];
};

const char *ew_http_unavailable(void)
{
    return NULL;
}

static bool load(void)
{
    static const char *const names[] = {"httpapi.dll"};
    void *library = ew_loader_open(names, 1);
    bool found = library != NULL;
#define HTTP_X(name) found = found && ew_loader_find(library, #name, &api.name);
    HTTP_FUNCTIONS(HTTP_X)
#undef HTTP_X
    return found;
}

/* ------------------------------------------------------------------------- responses */

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {{200, "OK"},
                   {303, "See Other"},
                   {304, "Not Modified"},
                   {400, "Bad Request"},
                   {401, "Unauthorized"},
                   {403, "Forbidden"},
                   {404, "Not Found"},
                   {405, "Method Not Allowed"},
                   {414, "URI Too Long"},
                   {421, "Misdirected Request"},
                   {429, "Too Many Requests"},
                   {431, "Request Header Fields Too Large"},
                   {503, "Service Unavailable"}};
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].status == status)
            return reasons[i].text;
    return "Unknown";
}

static void known(struct sending *sending, HTTP_HEADER_ID id, const char *value)
{
    HTTP_KNOWN_HEADER *header = &sending->to.Headers.KnownHeaders[id];
    if (value == NULL || value[0] == '\0')
        return;
    header->pRawValue = value;
    header->RawValueLength = (USHORT)strlen(value);
}

static void unknown(struct sending *sending, const char *name, const char *value)
{
    sending->unknown[sending->to.Headers.UnknownHeaderCount++] =
        (HTTP_UNKNOWN_HEADER){.pName = name,
                              .NameLength = (USHORT)strlen(name),
                              .pRawValue = value,
                              .RawValueLength = (USHORT)strlen(value)};
}

static void put_headers(struct sending *sending, size_t len)
{
    const struct ew_response *from = &sending->from;
    bool gzip = (from->flags & EW_RESPONSE_GZIP) != 0;
    known(sending, HttpHeaderContentType, from->content_type);
    known(sending, HttpHeaderCacheControl, from->etag[0] != '\0' ? "no-cache" : "no-store");
    known(sending, HttpHeaderEtag, from->etag);
    known(sending, HttpHeaderContentEncoding, gzip ? "gzip" : NULL);
    known(sending, HttpHeaderLocation, from->location);
    known(sending, HttpHeaderSetCookie, from->cookie);
    known(sending, HttpHeaderAllow, from->allow);
    known(sending, HttpHeaderWwwAuthenticate, from->status == 401 ? "Bearer" : NULL);
    (void)snprintf(sending->number, sizeof sending->number, "%u", from->retry_after_s);
    known(sending, HttpHeaderRetryAfter, from->retry_after_s != 0 ? sending->number : NULL);
    (void)snprintf(sending->length, sizeof sending->length, "%zu", len);
    known(sending, HttpHeaderContentLength, from->status != 304 ? sending->length : NULL);
    sending->to.Headers.pUnknownHeaders = sending->unknown;
    unknown(sending, "Content-Security-Policy", ew_routes_policy);
    unknown(sending, "X-Content-Type-Options", "nosniff");
    unknown(sending, "X-Frame-Options", "DENY");
    unknown(sending, "Referrer-Policy", "no-referrer");
    unknown(sending, "Cross-Origin-Resource-Policy", "same-origin");
    unknown(sending, "Cross-Origin-Opener-Policy", "same-origin");
}

static void free_sending(struct sending *sending)
{
    ew_buf_done(&sending->from.body);
    ew_free(sending);
}

/* Frees what the kernel is done with, and cancels what takes too long. */
static void free_sent(struct ew_http *http)
{
    uint64_t now_ns = ew_os_raw_ns();
    struct sending **at = &http->sendings;
    while (*at != NULL) {
        struct sending *sending = *at;
        if (!HasOverlappedIoCompleted(&sending->overlapped)) {
            bool crowded = http->sending_count >= EW_HTTP_CONNECTIONS_MAX;
            if (crowded || now_ns - sending->since_ns > EW_HTTP_RESPONSE_S * UINT64_C(1000000000))
                (void)CancelIoEx(http->queue, &sending->overlapped);
            at = &sending->next;
            continue;
        }
        *at = sending->next;
        http->sending_count--;
        free_sending(sending);
    }
    http->sendings_end = at;
}

/* Takes over the body of the response. */
static void respond(struct ew_http *http, HTTP_REQUEST_ID id, struct ew_response *response,
                    bool head_only)
{
    const bool refused = response->status >= 400;
    struct sending *sending = ew_calloc(1, sizeof *sending);
    if (sending == NULL) {
        ew_buf_done(&response->body);
        return;
    }
    sending->from = *response;
    const void *bytes = response->fixed != NULL ? response->fixed : response->body.data;
    size_t len = response->fixed != NULL ? response->fixed_size : response->body.len;
    const char *reason = reason_of(response->status);
    sending->to.StatusCode = (USHORT)response->status;
    sending->to.pReason = reason;
    sending->to.ReasonLength = (USHORT)strlen(reason);
    put_headers(sending, len);
    if (len > 0 && !head_only && response->status != 304) {
        sending->chunk.DataChunkType = HttpDataChunkFromMemory;
        sending->chunk.FromMemory.pBuffer = (void *)(uintptr_t)bytes;
        sending->chunk.FromMemory.BufferLength = (ULONG)len;
        sending->to.EntityChunkCount = 1;
        sending->to.pEntityChunks = &sending->chunk;
    }
    sending->since_ns = ew_os_raw_ns();
    ULONG rc =
        api.HttpSendHttpResponse(http->queue, id, refused ? HTTP_SEND_RESPONSE_FLAG_DISCONNECT : 0,
                                 &sending->to, NULL, NULL, NULL, 0, &sending->overlapped, NULL);
    /* Without pending input and output the kernel no longer uses any of it. */
    if (rc != ERROR_IO_PENDING &&
        (rc != NO_ERROR || HasOverlappedIoCompleted(&sending->overlapped))) {
        free_sending(sending);
        return;
    }
    *http->sendings_end = sending;
    http->sendings_end = &sending->next;
    http->sending_count++;
}

/* -------------------------------------------------------------------------- streams */

/* The feed writes events while there are clients: those that are about to return count. */
static void count_clients(struct ew_http *http)
{
    if (http->expected > 0 && ew_os_raw_ns() > http->expected_until_ns)
        http->expected = 0;
    http->routes->stream->clients = http->stream_count + http->expected;
}

/* One response with all that is new at the position. False: there is nothing new. */
static bool send_event(struct ew_http *http, HTTP_REQUEST_ID id, uint64_t *position)
{
    static char part[32768];
    struct ew_feed *feed = http->routes->stream;
    struct ew_response response = {.status = 200,
                                   .content_type = "text/event-stream; charset=utf-8"};
    size_t len = ew_feed_read(feed, position, part, sizeof part);
    if (len == 0)
        return false;
    ew_buf_init(&response.body, EW_ROUTES_BODY_MAX, NULL, NULL);
    ew_buf_text(&response.body, "retry: 0\n\n");
    for (; len > 0; len = ew_feed_read(feed, position, part, sizeof part))
        ew_buf_bytes(&response.body, part, len);
    ew_buf_text(&response.body, "id: ");
    ew_buf_u64(&response.body, http->instance);
    ew_buf_char(&response.body, '-');
    ew_buf_u64(&response.body, *position);
    ew_buf_text(&response.body, "\n\n");
    if (response.body.error != 0)
        response.body.len = 0;
    respond(http, id, &response, false);
    http->expected++;
    http->expected_until_ns = ew_os_raw_ns() + RETURN_NS;
    return true;
}

void ew_http_wake_streams(struct ew_http *http)
{
    struct stream **at = &http->streams;
    while (*at != NULL) {
        struct stream *stream = *at;
        if (!send_event(http, stream->id, &stream->position)) {
            at = &stream->next;
            continue;
        }
        *at = stream->next;
        http->stream_count--;
        ew_free(stream);
    }
    count_clients(http);
}

/* Where a client begins: after the event that it had last, or with the newest. */
static uint64_t position_of(struct ew_http *http, const char *last_id)
{
    struct ew_feed *feed = http->routes->stream;
    uint64_t instance = 0, position = 0;
    struct ew_bytes bytes;
    if (last_id == NULL)
        return ew_feed_begin(feed);
    ew_bytes_init(&bytes, last_id, strlen(last_id));
    instance = ew_bytes_dec_u64(&bytes);
    ew_bytes_expect(&bytes, "-");
    position = ew_bytes_dec_u64(&bytes);
    if (!ew_bytes_ok(&bytes) || ew_bytes_left(&bytes) != 0 || instance != http->instance ||
        position > feed->head)
        return ew_feed_begin(feed);
    http->expected -= http->expected > 0;
    return position;
}

/* False: there are too many, and the response says so. */
static bool add_stream(struct ew_http *http, HTTP_REQUEST_ID id, const char *last_id,
                       struct ew_response *response)
{
    uint64_t position = position_of(http, last_id);
    struct stream *stream = NULL;
    if (send_event(http, id, &position)) {
        count_clients(http);
        return true;
    }
    if (http->stream_count < EW_HTTP_STREAMS_MAX)
        stream = ew_calloc(1, sizeof *stream);
    if (stream == NULL) {
        response->status = 503;
        response->flags = 0;
        response->content_type = "application/json; charset=utf-8";
        ew_buf_text(&response->body, "{\"error\":\"too many streams\"}\n");
        return false;
    }
    *stream = (struct stream){.id = id, .position = position, .next = http->streams};
    http->streams = stream;
    http->stream_count++;
    count_clients(http);
    return true;
}

/* ------------------------------------------------------------------------- requests */

/* What came in, as texts that end. */
struct texts {
    char *at, *end;
    bool full, broken;
};

/* NULL: there is no such header. */
static const char *keep(struct texts *texts, const char *from, size_t len)
{
    char *to = texts->at;
    if (from == NULL)
        return NULL;
    if ((size_t)(texts->end - texts->at) <= len) {
        texts->full = true;
        return NULL;
    }
    texts->broken |= memchr(from, '\0', len) != NULL;
    memcpy(to, from, len);
    to[len] = '\0';
    texts->at += len + 1;
    return to;
}

static const char *keep_known(struct texts *texts, const HTTP_REQUEST *request, HTTP_HEADER_ID id)
{
    const HTTP_KNOWN_HEADER *header = &request->Headers.KnownHeaders[id];
    return keep(texts, header->RawValueLength > 0 ? header->pRawValue : NULL,
                header->RawValueLength);
}

static const char *keep_unknown(struct texts *texts, const HTTP_REQUEST *request, const char *name)
{
    for (USHORT i = 0; i < request->Headers.UnknownHeaderCount; i++) {
        const HTTP_UNKNOWN_HEADER *header = &request->Headers.pUnknownHeaders[i];
        if (header->NameLength == strlen(name) &&
            _strnicmp(header->pName, name, header->NameLength) == 0)
            return keep(texts, header->pRawValue, header->RawValueLength);
    }
    return NULL;
}

static const char *method_of(struct texts *texts, const HTTP_REQUEST *request)
{
    switch (request->Verb) {
    case HttpVerbGET:
        return "GET";
    case HttpVerbHEAD:
        return "HEAD";
    case HttpVerbUnknown: /* in any case none of the two */
        return keep(texts, request->pUnknownVerb, request->UnknownVerbLength);
    default:
        return "other";
    }
}

static bool has_body(const HTTP_REQUEST *request, const char *length)
{
    return (request->Flags & HTTP_REQUEST_FLAG_MORE_ENTITY_BODY_EXISTS) != 0 ||
           request->EntityChunkCount > 0 ||
           request->Headers.KnownHeaders[HttpHeaderTransferEncoding].RawValueLength > 0 ||
           (length != NULL && strcmp(length, "0") != 0);
}

/* Whether the request arrived at the address of --listen. */
static bool is_ours(const struct ew_http *http, const HTTP_REQUEST *request)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    const struct sockaddr *local = request->Address.pLocalAddress;
    char text[EW_IPV6_TEXT];
    if (http->any)
        return true;
    if (local == NULL)
        return false;
    if (local->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, local, sizeof v4);
        (void)ew_ipv4_text((const uint8_t *)&v4.sin_addr, text);
    } else if (local->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, local, sizeof v6);
        const uint8_t *bytes = (const uint8_t *)&v6.sin6_addr;
        if (memcmp(bytes, mapped, sizeof mapped) == 0)
            (void)ew_ipv4_text(bytes + sizeof mapped, text);
        else
            (void)ew_ipv6_text(bytes, text);
    } else {
        return false;
    }
    bool loopback = strncmp(text, "127.", 4) == 0 || strcmp(text, "::1") == 0;
    bool wanted = strncmp(http->address, "127.", 4) == 0 || strcmp(http->address, "::1") == 0;
    return wanted ? loopback : strcmp(text, http->address) == 0;
}

static void refuse(struct ew_http *http, HTTP_REQUEST_ID id, int status, const char *text)
{
    struct ew_response response = {.status = status, .content_type = "text/plain; charset=utf-8"};
    ew_buf_init(&response.body, 4096, NULL, NULL);
    ew_buf_text(&response.body, text);
    http->routes->refused++;
    respond(http, id, &response, false);
}

static void answer(struct ew_http *http, const HTTP_REQUEST *from)
{
    struct texts texts = {.at = http->texts, .end = http->texts + sizeof http->texts};
    struct ew_response response;
    if (!is_ours(http, from)) {
        refuse(http, from->RequestId, 403, "this address is not served\n");
        return;
    }
    const char *length = keep_known(&texts, from, HttpHeaderContentLength);
    const char *last_id = keep_unknown(&texts, from, "Last-Event-ID");
    struct ew_request request = {
        .method = method_of(&texts, from),
        .target = keep(&texts, from->pRawUrl, from->RawUrlLength),
        .host = keep_known(&texts, from, HttpHeaderHost),
        .origin = keep_unknown(&texts, from, "Origin"),
        .fetch_site = keep_unknown(&texts, from, "Sec-Fetch-Site"),
        .authorization = keep_known(&texts, from, HttpHeaderAuthorization),
        .cookie = keep_known(&texts, from, HttpHeaderCookie),
        .accept = keep_known(&texts, from, HttpHeaderAccept),
        .accept_encoding = keep_known(&texts, from, HttpHeaderAcceptEncoding),
        .if_none_match = keep_known(&texts, from, HttpHeaderIfNoneMatch),
        .has_body = has_body(from, length),
    };
    if (texts.full || texts.broken || request.method == NULL || request.target == NULL) {
        refuse(http, from->RequestId, texts.full ? 431 : 400, "the request is malformed\n");
        return;
    }
    request.head_only = strcmp(request.method, "HEAD") == 0;
    ew_routes_answer(http->routes, &request, ew_os_raw_ns(), &response);
    bool stream = (response.flags & EW_RESPONSE_STREAM) != 0 && !request.head_only;
    if (stream && add_stream(http, from->RequestId, last_id, &response))
        ew_buf_done(&response.body);
    else
        respond(http, from->RequestId, &response, request.head_only);
}

/* True: a request is there, or the receive has ended with an error. */
static bool receive(struct ew_http *http)
{
    DWORD len = 0;
    if (!http->receiving) {
        HANDLE event = http->receive.hEvent;
        memset(&http->receive, 0, sizeof http->receive);
        http->receive.hEvent = event;
        http->received = api.HttpReceiveHttpRequest(http->queue, HTTP_NULL_ID, 0, http->request,
                                                    RECEIVE_BYTES, NULL, &http->receive);
        http->receiving = http->received == ERROR_IO_PENDING || http->received == NO_ERROR;
        if (!http->receiving)
            return true;
    }
    if (GetOverlappedResult(http->queue, &http->receive, &len, FALSE))
        http->received = NO_ERROR;
    else
        http->received = GetLastError();
    if (http->received == ERROR_IO_INCOMPLETE || http->received == ERROR_IO_PENDING)
        return false;
    http->receiving = false;
    return true;
}

void ew_http_run(struct ew_http *http)
{
    free_sent(http);
    for (int i = 0; i < REQUESTS_PER_TURN && receive(http); i++) {
        if (http->received == NO_ERROR)
            answer(http, http->request);
        else if (http->received == ERROR_MORE_DATA)
            refuse(http, http->request->RequestId, 431, "the headers are too long\n");
        else if (http->received != ERROR_CONNECTION_INVALID)
            return; /* again after RETRY_MS */
    }
    count_clients(http);
}

/* ------------------------------------------------------------------------------ open */

/* http://ADDRESS:PORT/ */
static ULONG add_url(struct ew_http *http, const char *name, uint16_t port)
{
    wchar_t url[80];
    bool v6 = strchr(name, ':') != NULL;
    int len = swprintf(url, sizeof url / sizeof url[0], L"http://%hs%hs%hs:%u/", v6 ? "[" : "",
                       name, v6 ? "]" : "", port);
    return len > 0 ? api.HttpAddUrlToUrlGroup(http->group, url, 0, 0) : ERROR_INVALID_PARAMETER;
}

/* A request is matched with its Host: an address that is served also as localhost has both. */
static ULONG add_urls(struct ew_http *http, const struct ew_http_options *options, uint16_t port)
{
    bool loopback =
        strncmp(options->address, "127.", 4) == 0 || strcmp(options->address, "::1") == 0;
    if (!loopback)
        return add_url(http, "+", port); /* Host is checked with --allow-host */
    ULONG rc = add_url(http, options->address, port);
    if (rc == NO_ERROR)
        (void)add_url(http, "localhost", port);
    return rc;
}

static bool is_free_again(ULONG rc)
{
    return rc == ERROR_SHARING_VIOLATION || rc == ERROR_ALREADY_EXISTS;
}

static ULONG listen_on(struct ew_http *http, const struct ew_http_options *options)
{
    ULONG rc = ERROR_SHARING_VIOLATION;
    http->port = options->port;
    if (options->port != 0)
        return add_urls(http, options, options->port);
    for (int i = 0; i < FREE_PORT_TRIES && is_free_again(rc); i++) {
        http->port = (uint16_t)(49152 + ew_random_u64() % 16384);
        rc = add_urls(http, options, http->port);
    }
    return rc;
}

/* Limits that HTTP.sys enforces; where it refuses them, its own defaults hold. */
static void set_limits(struct ew_http *http)
{
    HTTP_TIMEOUT_LIMIT_INFO times = {.Flags = {.Present = 1},
                                     .EntityBody = EW_HTTP_REQUEST_S,
                                     .DrainEntityBody = EW_HTTP_REQUEST_S,
                                     .RequestQueue = EW_HTTP_REQUEST_S,
                                     .IdleConnection = EW_HTTP_IDLE_S,
                                     .HeaderWait = EW_HTTP_REQUEST_S,
                                     .MinSendRate = 1024};
    HTTP_CONNECTION_LIMIT_INFO limit = {.Flags = {.Present = 1},
                                        .MaxConnections = EW_HTTP_CONNECTIONS_MAX};
    HTTP_QOS_SETTING_INFO connections = {.QosType = HttpQosSettingTypeConnectionLimit,
                                         .QosSetting = &limit};
    (void)api.HttpSetUrlGroupProperty(http->group, HttpServerTimeoutsProperty, &times,
                                      sizeof times);
    (void)api.HttpSetUrlGroupProperty(http->group, HttpServerQosProperty, &connections,
                                      sizeof connections);
}

/* Starts HTTP.sys if it does not run, which is refused while other services start. */
static ULONG initialize(struct ew_http *http, HTTPAPI_VERSION version)
{
    ULONG rc = ERROR_SERVICE_DATABASE_LOCKED;
    for (int i = 0; i < START_TRIES && rc == ERROR_SERVICE_DATABASE_LOCKED; i++) {
        if (i > 0)
            Sleep(RETRY_MS);
        rc = api.HttpInitialize(version, HTTP_INITIALIZE_SERVER, NULL);
    }
    http->initialized = rc == NO_ERROR;
    return rc;
}

static ULONG open_queue(struct ew_http *http)
{
    HTTPAPI_VERSION version = HTTPAPI_VERSION_2;
    HTTP_BINDING_INFO binding = {.Flags = {.Present = 1}};
    ULONG rc = initialize(http, version);
    if (rc == NO_ERROR)
        rc = api.HttpCreateServerSession(version, &http->session, 0);
    if (rc == NO_ERROR)
        rc = api.HttpCreateUrlGroup(http->session, &http->group, 0);
    if (rc == NO_ERROR)
        rc = api.HttpCreateRequestQueue(version, NULL, NULL, 0, &http->queue);
    binding.RequestQueueHandle = http->queue;
    if (rc == NO_ERROR)
        rc = api.HttpSetUrlGroupProperty(http->group, HttpServerBindingProperty, &binding,
                                         sizeof binding);
    return rc;
}

static void describe(const struct ew_http_options *options, uint16_t port, ULONG rc, char *text,
                     size_t size)
{
    if (rc == ERROR_ACCESS_DENIED)
        (void)snprintf(text, size,
                       "Windows lets only an administrator listen on %s port %u, or a user with a "
                       "reservation: netsh http add urlacl url=http://%s:%u/ user=NAME",
                       options->address, port, options->shared ? "+" : options->address, port);
    else if (is_free_again(rc))
        (void)snprintf(text, size,
                       "cannot listen on %s port %u: it is in use; choose another with --listen "
                       "ADDRESS:PORT",
                       options->address, port);
    else
        (void)snprintf(text, size, "cannot listen on %s port %u: HTTP.sys refuses (error %lu)",
                       options->address, port, rc);
}

static bool is_any(const char *address)
{
    return strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0;
}

int ew_http_open(const struct ew_http_options *options, struct ew_routes *routes,
                 struct ew_http **ret_http, char *reterr_text, size_t text_size)
{
    struct ew_http *http = ew_calloc(1, sizeof *http);
    if (http == NULL)
        return ETWATCH_ENOMEM;
    http->routes = routes;
    http->instance = ew_random_u64();
    http->sendings_end = &http->sendings;
    http->any = is_any(options->address);
    (void)snprintf(http->address, sizeof http->address, "%s", options->address);
    http->request = ew_calloc(1, RECEIVE_BYTES);
    http->event = CreateEventW(NULL, TRUE, FALSE, NULL);
    http->receive.hEvent = http->event;
    ULONG rc = ERROR_NOT_ENOUGH_MEMORY;
    bool loaded = http->request != NULL && http->event != NULL && load();
    if (!loaded)
        (void)snprintf(
            reterr_text, text_size,
            "httpapi.dll cannot be loaded, or lacks a function: Windows 7 or newer is needed");
    if (loaded)
        rc = open_queue(http);
    if (loaded && rc == NO_ERROR) {
        set_limits(http);
        rc = listen_on(http, options);
    }
    if (rc == NO_ERROR) {
        *ret_http = http;
        return 0;
    }
    if (loaded)
        describe(options, http->port, rc, reterr_text, text_size);
    ew_http_close(http);
    return ETWATCH_EOS;
}

void ew_http_close(struct ew_http *http)
{
    if (http == NULL)
        return;
    /* Ends what is pending: the kernel uses none of the memory afterwards. */
    if (http->queue != NULL) {
        (void)CancelIoEx(http->queue, NULL);
        if (http->receiving) {
            DWORD len;
            (void)GetOverlappedResult(http->queue, &http->receive, &len, TRUE);
        }
        for (int i = 0; i < 100 && http->sendings != NULL; i++) {
            free_sent(http);
            if (http->sendings != NULL)
                Sleep(10);
        }
        (void)api.HttpCloseRequestQueue(http->queue);
    }
    while (http->streams != NULL) {
        struct stream *stream = http->streams;
        http->streams = stream->next;
        ew_free(stream);
    }
    if (http->group != 0)
        (void)api.HttpCloseUrlGroup(http->group);
    if (http->session != 0)
        (void)api.HttpCloseServerSession(http->session);
    if (http->initialized)
        (void)api.HttpTerminate(HTTP_INITIALIZE_SERVER, NULL);
    if (http->event != NULL)
        (void)CloseHandle(http->event);
    ew_free(http->request);
    ew_free(http);
}

uint16_t ew_http_port(const struct ew_http *http)
{
    return http->port;
}

int ew_http_fd(const struct ew_http *http)
{
    (void)http;
    return -1;
}

void *ew_http_event(const struct ew_http *http)
{
    return http->event;
}

int ew_http_timeout_ms(const struct ew_http *http)
{
    return http->sendings != NULL || !http->receiving ? RETRY_MS : -1;
}
