/* SPDX-License-Identifier: MIT */
/*
 * HTTP by libmicrohttpd, driven by our own loop: no thread of the library, so requests and facts
 * never meet. The library parses requests and frames responses; limits on headers, connections and
 * idle time are its own. The target is taken before the library decodes it: request.c parses it.
 *
 * A stream is suspended while there is nothing new, so it costs nothing between two seconds.
 */
#include "serve/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "os/os.h"
#include "serve/loader.h"

/*
 * libmicrohttpd is loaded when a server starts: with its TLS it would cost every other command 2.6
 * MB of memory at its start. The table is filled once, before the first call, and never changes.
 */
#define MHD_FUNCTIONS(X)                              \
    X(add_response_header)                            \
    X(create_response_from_buffer)                    \
    X(create_response_from_buffer_with_free_callback) \
    X(create_response_from_callback)                  \
    X(destroy_response)                               \
    X(get_connection_info)                            \
    X(get_connection_values)                          \
    X(get_daemon_info)                                \
    X(get_timeout)                                    \
    X(lookup_connection_value)                        \
    X(queue_response)                                 \
    X(resume_connection)                              \
    X(run)                                            \
    X(start_daemon)                                   \
    X(stop_daemon)                                    \
    X(suspend_connection)

static struct {
#define MHD_X(name) __typeof__(&MHD_##name) name;
    MHD_FUNCTIONS(MHD_X)
#undef MHD_X
} mhd;

static bool load(void)
{
    static const char *const names[] = {"libmicrohttpd.so.12", "libmicrohttpd.so"};
    void *library = ew_loader_open(names, sizeof names / sizeof names[0]);
    if (library == NULL)
        return false;
    bool found = true;
#define MHD_X(name) found = ew_loader_find(library, "MHD_" #name, &mhd.name) && found;
    MHD_FUNCTIONS(MHD_X)
#undef MHD_X
    return found;
}

struct client {
    struct ew_http *http;
    struct MHD_Connection *connection;
    uint64_t position;
    bool greeted, suspended;
    struct client *before, *after;
};

/* A connection, from its first byte to its end. */
struct peer {
    enum { WAITING, ANSWERING, STREAMING, CLOSING } state;
    int fd;
    uint64_t since_ns; /* WAITING: for a whole request; ANSWERING: the response is being taken */
    struct peer *before, *after;
};

struct ew_http {
    struct MHD_Daemon *daemon;
    struct ew_routes *routes;
    struct client *clients; /* streams */
    struct peer *peers;
    uint32_t peer_count;
    uint16_t port;
    int fd;
};

const char *ew_http_unavailable(void)
{
    return NULL;
}

/* ---------------------------------------------------------------------- connections */

/* A stranger may be pushed out after this time without a whole request. */
#define GRACE_NS UINT64_C(1000000000)

static struct peer *peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

static void set_peer(struct MHD_Connection *connection, int state)
{
    struct peer *peer = peer_of(connection);
    if (peer == NULL || peer->state == CLOSING)
        return;
    peer->state = state;
    peer->since_ns = ew_os_raw_ns();
}

static void add_peer(struct ew_http *http, struct MHD_Connection *connection, void **socket_context)
{
    const union MHD_ConnectionInfo *info =
        mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct peer *peer = info == NULL ? NULL : ew_calloc(1, sizeof *peer);
    *socket_context = peer;
    if (peer == NULL)
        return;
    *peer = (struct peer){.fd = info->connect_fd, .since_ns = ew_os_raw_ns(), .after = http->peers};
    if (http->peers != NULL)
        http->peers->before = peer;
    http->peers = peer;
    http->peer_count++;
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct ew_http *http = cls;
    struct peer *peer = *socket_context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        add_peer(http, connection, socket_context);
        return;
    }
    if (peer == NULL)
        return;
    if (peer->before != NULL)
        peer->before->after = peer->after;
    else
        http->peers = peer->after;
    if (peer->after != NULL)
        peer->after->before = peer->before;
    http->peer_count--;
    *socket_context = NULL;
    ew_free(peer);
}

/* When it is closed, whatever it sends or takes until then. */
static uint64_t deadline_of(const struct peer *peer, bool crowded)
{
    if (peer->state == WAITING)
        return peer->since_ns + (crowded ? GRACE_NS : EW_HTTP_REQUEST_S * UINT64_C(1000000000));
    if (peer->state == ANSWERING)
        return peer->since_ns + EW_HTTP_RESPONSE_S * UINT64_C(1000000000);
    return UINT64_MAX;
}

static bool is_crowded(const struct ew_http *http)
{
    return http->peer_count > EW_HTTP_CONNECTIONS_MAX - EW_HTTP_CONNECTIONS_FREE;
}

/* The connection with the earliest deadline; the oldest is the last of equals. */
static struct peer *most_overdue(const struct ew_http *http, bool crowded)
{
    struct peer *found = NULL;
    for (struct peer *peer = http->peers; peer != NULL; peer = peer->after)
        if (found == NULL || deadline_of(peer, crowded) <= deadline_of(found, crowded))
            found = peer;
    return found;
}

/* The library sees the end of the connection and frees it. */
static void close_overdue(struct ew_http *http)
{
    uint64_t now_ns = ew_os_raw_ns();
    uint32_t closed = 0, most = is_crowded(http) ? EW_HTTP_CONNECTIONS_FREE : UINT32_MAX;
    struct peer *peer;
    while (closed < most && (peer = most_overdue(http, is_crowded(http))) != NULL &&
           deadline_of(peer, is_crowded(http)) <= now_ns) {
        peer->state = CLOSING;
        (void)shutdown(peer->fd, SHUT_RDWR);
        closed++;
    }
}

/* --------------------------------------------------------------------------- stream */

static void free_client(void *cls)
{
    struct client *client = cls;
    if (client->before != NULL)
        client->before->after = client->after;
    else
        client->http->clients = client->after;
    if (client->after != NULL)
        client->after->before = client->before;
    client->http->routes->stream->clients--;
    ew_free(client);
}

static ssize_t read_client(void *cls, uint64_t position, char *to, size_t size)
{
    static const char greeting[] = "retry: 2000\n\n";
    struct client *client = cls;
    (void)position;
    if (!client->greeted && size >= sizeof greeting - 1) {
        client->greeted = true;
        memcpy(to, greeting, sizeof greeting - 1);
        return sizeof greeting - 1;
    }
    size_t len = ew_feed_read(client->http->routes->stream, &client->position, to, size);
    if (len > 0)
        return (ssize_t)len;
    client->suspended = true;
    mhd.suspend_connection(client->connection);
    return 0;
}

void ew_http_wake_streams(struct ew_http *http)
{
    for (struct client *client = http->clients; client != NULL; client = client->after) {
        if (!client->suspended)
            continue;
        client->suspended = false;
        mhd.resume_connection(client->connection);
    }
}

static struct MHD_Response *make_stream(struct ew_http *http, struct MHD_Connection *connection)
{
    struct ew_feed *stream = http->routes->stream;
    struct client *client =
        stream->clients < EW_HTTP_STREAMS_MAX ? ew_calloc(1, sizeof *client) : NULL;
    if (client == NULL)
        return NULL;
    *client = (struct client){.http = http,
                              .connection = connection,
                              .position = ew_feed_begin(stream),
                              .after = http->clients};
    struct MHD_Response *response = mhd.create_response_from_callback(
        MHD_SIZE_UNKNOWN, 32768, read_client, client, free_client);
    if (response == NULL) {
        ew_free(client);
        return NULL;
    }
    if (http->clients != NULL)
        http->clients->before = client;
    http->clients = client;
    stream->clients++;
    return response;
}

/* ------------------------------------------------------------------------- requests */

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return mhd.lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result count_hosts(void *cls, enum MHD_ValueKind kind, const char *key,
                                   const char *value)
{
    (void)kind;
    (void)value;
    *(int *)cls += strcasecmp(key, "Host") == 0;
    return MHD_YES;
}

static void add(struct MHD_Response *response, const char *name, const char *value)
{
    (void)mhd.add_response_header(response, name, value);
}

static void add_headers(struct MHD_Response *to, const struct ew_response *from)
{
    char number[16];
    add(to, "Content-Type", from->content_type);
    add(to, "Content-Security-Policy", ew_routes_policy);
    add(to, "X-Content-Type-Options", "nosniff");
    add(to, "X-Frame-Options", "DENY");
    add(to, "Referrer-Policy", "no-referrer");
    add(to, "Cross-Origin-Resource-Policy", "same-origin");
    add(to, "Cross-Origin-Opener-Policy", "same-origin");
    add(to, "Cache-Control", from->etag[0] != '\0' ? "no-cache" : "no-store");
    if (from->etag[0] != '\0')
        add(to, "ETag", from->etag);
    if ((from->flags & EW_RESPONSE_GZIP) != 0)
        add(to, "Content-Encoding", "gzip");
    if (from->location[0] != '\0')
        add(to, "Location", from->location);
    if (from->cookie[0] != '\0')
        add(to, "Set-Cookie", from->cookie);
    if (from->allow != NULL)
        add(to, "Allow", from->allow);
    if (from->status == 401)
        add(to, "WWW-Authenticate", "Bearer");
    if (from->retry_after_s != 0) {
        (void)snprintf(number, sizeof number, "%u", from->retry_after_s);
        add(to, "Retry-After", number);
    }
    /* The rest of a refused request, if there is any, is not read. */
    if (from->status >= 400)
        add(to, "Connection", "close");
}

static struct MHD_Response *make_response(struct ew_http *http, struct MHD_Connection *connection,
                                          struct ew_response *response, bool head_only)
{
    if ((response->flags & EW_RESPONSE_STREAM) != 0 && !head_only) {
        struct MHD_Response *stream = make_stream(http, connection);
        if (stream != NULL)
            return stream;
        response->status = 503;
        response->flags = 0;
        response->content_type = "application/json; charset=utf-8";
        ew_buf_text(&response->body, "{\"error\":\"too many streams\"}\n");
    }
    if (response->fixed != NULL)
        return mhd.create_response_from_buffer(
            response->fixed_size, (void *)(uintptr_t)response->fixed, MHD_RESPMEM_PERSISTENT);
    return mhd.create_response_from_buffer_with_free_callback(response->body.len,
                                                              response->body.data, ew_free);
}

static enum MHD_Result answer(struct ew_http *http, struct MHD_Connection *connection,
                              const struct ew_request *request)
{
    struct ew_response response;
    ew_routes_answer(http->routes, request, ew_os_raw_ns(), &response);
    struct MHD_Response *made = make_response(http, connection, &response, request->head_only);
    /* From here on the library owns the body. */
    if (made == NULL || response.fixed != NULL ||
        ((response.flags & EW_RESPONSE_STREAM) != 0 && !request->head_only))
        ew_buf_done(&response.body);
    if (made == NULL)
        return MHD_NO;
    set_peer(connection, (response.flags & EW_RESPONSE_STREAM) != 0 && !request->head_only
                             ? STREAMING
                             : ANSWERING);
    add_headers(made, &response);
    enum MHD_Result result = mhd.queue_response(connection, (unsigned)response.status, made);
    mhd.destroy_response(made);
    return result;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_size, void **con_cls)
{
    int hosts = 0;
    char *kept = *con_cls;
    if (kept == NULL)
        return MHD_NO; /* out of memory: closes the connection */
    const char *length = header(connection, "Content-Length");
    (void)mhd.get_connection_values(connection, MHD_HEADER_KIND, count_hosts, &hosts);
    struct ew_request request = {
        .method = method,
        .target = kept + 1,
        .host = hosts == 1 ? header(connection, "Host") : NULL,
        .origin = header(connection, "Origin"),
        .fetch_site = header(connection, "Sec-Fetch-Site"),
        .authorization = header(connection, "Authorization"),
        .cookie = header(connection, "Cookie"),
        .accept = header(connection, "Accept"),
        .accept_encoding = header(connection, "Accept-Encoding"),
        .if_none_match = header(connection, "If-None-Match"),
        .head_only = strcmp(method, "HEAD") == 0,
        .has_body = header(connection, "Transfer-Encoding") != NULL ||
                    (length != NULL && strcmp(length, "0") != 0) || *body_size > 0,
    };
    (void)url;
    (void)version;
    (void)body;
    /* An answer before the end of the request closes the connection: only for refused bodies. */
    if (kept[0] == '\0' && !request.has_body) {
        kept[0] = 1;
        return MHD_YES;
    }
    return answer(cls, connection, &request);
}

/* Keeps the target as the client sent it; the first byte is 1 once the headers were seen. */
static void *on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    size_t len = strlen(target);
    char *kept = ew_calloc(len + 2, 1);
    (void)cls;
    (void)connection;
    if (kept != NULL)
        memcpy(kept + 1, target, len);
    return kept;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
                         enum MHD_RequestTerminationCode code)
{
    (void)cls;
    (void)code;
    set_peer(connection, WAITING);
    ew_free(*con_cls);
    *con_cls = NULL;
}

/* ---------------------------------------------------------------------------- daemon */

/* The library's own messages are about broken clients, which are not ours to fix. */
static void ignore_message(void *cls, const char *format, va_list args)
{
    (void)cls;
    (void)format;
    (void)args;
}

static bool fill_address(const struct ew_http_options *options, struct sockaddr_storage *address,
                         socklen_t *len)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    memset(address, 0, sizeof *address);
    if (inet_pton(AF_INET, options->address, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(options->port);
        *len = sizeof *v4;
        return true;
    }
    if (inet_pton(AF_INET6, options->address, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(options->port);
        *len = sizeof *v6;
        return true;
    }
    return false;
}

static int open_socket(const struct ew_http_options *options, uint16_t *ret_port, char *text,
                       size_t text_size)
{
    struct sockaddr_storage address;
    socklen_t len = 0;
    const int yes = 1;
    if (!fill_address(options, &address, &len)) {
        (void)snprintf(text, text_size, "\"%s\" is not an IPv4 or IPv6 address", options->address);
        return -1;
    }
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) != 0 || listen(fd, 128) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) != 0) {
        (void)snprintf(text, text_size,
                       "cannot listen on %s port %u: %s; choose another with "
                       "--listen ADDRESS:PORT",
                       options->address, options->port, strerror(errno));
        if (fd >= 0)
            (void)close(fd);
        return -1;
    }
    *ret_port = ntohs(address.ss_family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port
                                                   : ((struct sockaddr_in6 *)&address)->sin6_port);
    return fd;
}

static struct MHD_Daemon *start(struct ew_http *http, const struct ew_http_options *options,
                                int socket)
{
    bool secure = options->cert != NULL;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->key},
        {MHD_OPTION_END, 0, NULL},
    };
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (secure ? MHD_USE_TLS : 0u);
    /* All clients of this machine have one address. */
    unsigned per_address = options->shared ? EW_HTTP_PER_ADDRESS_MAX : 0u;
    return mhd.start_daemon(
        flags, 0, NULL, NULL, on_request, http, MHD_OPTION_EXTERNAL_LOGGER, ignore_message, NULL,
        MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_URI_LOG_CALLBACK, on_target, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)EW_HTTP_CONNECTIONS_MAX, MHD_OPTION_PER_IP_CONNECTION_LIMIT, per_address,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)EW_HTTP_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)EW_HTTP_HEADER_BYTES,
        MHD_OPTION_ARRAY, secure ? tls : tls + 2, MHD_OPTION_END);
}

int ew_http_open(const struct ew_http_options *options, struct ew_routes *routes,
                 struct ew_http **ret_http, char *reterr_text, size_t text_size)
{
    if (!load()) {
        (void)snprintf(reterr_text, text_size,
                       "the library libmicrohttpd is missing (Debian: libmicrohttpd12)");
        return ETWATCH_ENOTSUP;
    }
    struct ew_http *http = ew_calloc(1, sizeof *http);
    if (http == NULL)
        return ETWATCH_ENOMEM;
    http->routes = routes;
    int socket = open_socket(options, &http->port, reterr_text, text_size);
    if (socket >= 0) {
        http->daemon = start(http, options, socket);
        if (http->daemon == NULL) {
            (void)snprintf(reterr_text, text_size, "libmicrohttpd does not start%s",
                           options->cert != NULL ? ": check --cert and --key" : "");
            (void)close(socket);
        }
    }
    const union MHD_DaemonInfo *info =
        http->daemon == NULL ? NULL : mhd.get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == NULL) {
        ew_http_close(http);
        return ETWATCH_EOS;
    }
    http->fd = info->epoll_fd;
    *ret_http = http;
    return 0;
}

void ew_http_close(struct ew_http *http)
{
    if (http == NULL)
        return;
    if (http->daemon != NULL) {
        ew_http_wake_streams(http);
        mhd.stop_daemon(http->daemon);
    }
    ew_free(http);
}

uint16_t ew_http_port(const struct ew_http *http)
{
    return http->port;
}

int ew_http_fd(const struct ew_http *http)
{
    return http->fd;
}

int ew_http_timeout_ms(const struct ew_http *http)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
    const struct peer *peer = most_overdue(http, is_crowded(http));
    uint64_t now_ns = ew_os_raw_ns();
    uint64_t deadline_ns = peer == NULL ? UINT64_MAX : deadline_of(peer, is_crowded(http));
    uint64_t left_ms = deadline_ns == UINT64_MAX ? UINT64_MAX
                       : deadline_ns > now_ns    ? (deadline_ns - now_ns) / 1000000 + 1
                                                 : 1;
    if (mhd.get_timeout(http->daemon, &timeout_ms) == MHD_YES && timeout_ms < left_ms)
        left_ms = timeout_ms;
    if (left_ms == UINT64_MAX)
        return -1;
    return left_ms > 60000 ? 60000 : (int)left_ms;
}

void ew_http_run(struct ew_http *http)
{
    close_overdue(http);
    (void)mhd.run(http->daemon);
}
