/* SPDX-License-Identifier: MIT */
/*
 * The serving process. Order at its start: listen (and read key and token, which the caller has
 * done), report the port, give up every right, then touch the first byte from outside. It ends when
 * the pipe ends, and dies with its parent.
 *
 * The loop takes facts before requests, so that a flood of requests delays answers and not the
 * collecting process.
 *
 * The process for details is forked first: it has neither the pipe of facts nor the port.
 */
#include "serve/server.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "os/os.h"

/* A request for details is over when it was not repeated for so long. */
enum { DETAILS_IDLE_MS = 6000 };

enum { READ_BYTES = 1 << 18, PIPE_BYTES = 1 << 20, NOBODY = 65534, READS_PER_TURN = 16 };

/* Bytes that came in: an incomplete frame at most, and what was read after it. */
struct input {
    int fd; /* -1: closed */
    uint8_t *bytes;
    size_t len, size;
};

struct server {
    struct ew_state state;
    struct ew_feed stream;
    struct ew_routes routes;
    struct ew_http *http;
    struct input facts, details;
    bool news; /* a second was closed */
    struct ew_push push;
    struct ew_archive *store; /* NULL: none */
};

const char *ew_server_unavailable(void)
{
    return ew_http_unavailable();
}

/* --------------------------------------------------------------------------- rights */

/* 0, or the errno: serving with rights would break the promise, so the caller gives up. */
static int give_up_rights(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0, 0, 0}, {0, 0, 0}};
    const struct rlimit no_core = {0, 0};
    if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
                           setresuid(NOBODY, NOBODY, NOBODY) != 0))
        return errno;
    if (syscall(SYS_capset, &head, none) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return errno;
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    /* Changing the user clears it. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    return 0;
}

/* ----------------------------------------------------------------------------- loop */

static void on_second(void *ctx, uint64_t t_ns)
{
    struct server *server = ctx;
    ew_feed_second(&server->stream, &server->state, t_ns);
    server->news = true;
    ew_push_second(&server->push, &server->state, t_ns);
    if (server->store != NULL)
        ew_archive_second(server->store, t_ns);
}

/* Takes every whole frame. False: the stream is broken. */
static bool take_frames(struct server *server, struct input *input)
{
    size_t at = 0;
    uint32_t type;
    struct ew_bytes body;
    bool broken = false;
    while (ew_wire_next(input->bytes, input->len, &at, &type, &body, &broken))
        ew_state_frame(&server->state, type, &body);
    memmove(input->bytes, input->bytes + at, input->len - at);
    input->len -= at;
    return !broken;
}

/* 1: there may be more, 0: nothing now, -1: the end. */
static int read_frames(struct server *server, struct input *input)
{
    if (input->len == input->size)
        return -1; /* a frame is never longer: broken */
    ssize_t len =
        recv(input->fd, input->bytes + input->len, input->size - input->len, MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (len <= 0)
        return -1;
    input->len += (size_t)len;
    return take_frames(server, input) ? 1 : -1;
}

/* False: the other end is closed, or the stream is broken. */
static bool read_all(struct server *server, struct input *input)
{
    int more = 1;
    for (int i = 0; i < READS_PER_TURN && more > 0; i++)
        more = read_frames(server, input);
    return more >= 0;
}

/* A part of a frame of a child that was killed ends the stream of details: without them serving
 * goes on. */
static void exchange_details(struct server *server)
{
    struct ew_serve_request request;
    struct input *input = &server->details;
    bool good = input->fd >= 0 && read_all(server, input);
    if (good && ew_strip_request(&server->state.sched, ew_os_raw_ns(), &request))
        (void)send(input->fd, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (good || input->fd < 0)
        return;
    (void)close(input->fd);
    input->fd = -1;
    server->state.sched.available = false;
}

static int sooner(int a_ms, int b_ms)
{
    return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
}

static void loop(struct server *server)
{
    for (;;) {
        struct pollfd waits[4] = {{.fd = server->facts.fd, .events = POLLIN},
                                  {.fd = ew_http_fd(server->http), .events = POLLIN},
                                  {.fd = server->details.fd, .events = POLLIN},
                                  {.fd = ew_push_fd(&server->push), .events = POLLIN}};
        int timeout_ms =
            sooner(ew_http_timeout_ms(server->http), ew_push_timeout_ms(&server->push));
        int ready = poll(waits, 4, timeout_ms);
        if (ready < 0 && errno != EINTR)
            return;
        if (!read_all(server, &server->facts))
            return;
        exchange_details(server);
        ew_push_run(&server->push);
        if (server->news)
            ew_http_wake_streams(server->http);
        server->news = false;
        ew_http_run(server->http);
        exchange_details(server); /* a request that was answered now may need them */
    }
}

static bool open_input(struct input *input)
{
    input->size = EW_FRAME_MAX + READ_BYTES;
    input->bytes = ew_calloc(input->size, 1);
    return input->bytes != NULL;
}

static int open_server(struct server *server, const struct ew_server_options *options, char *text,
                       size_t text_size)
{
    int rc = ew_state_init(&server->state, &options->state);
    if (rc == 0)
        rc = ew_feed_init(&server->stream, 0);
    if (rc < 0 || !open_input(&server->facts) ||
        (server->details.fd >= 0 && !open_input(&server->details))) {
        (void)snprintf(text, text_size, "out of memory");
        return ETWATCH_ENOMEM;
    }
    server->state.on_second = on_second;
    server->state.ctx = server;
    server->state.sched.available = server->details.fd >= 0;
    server->state.sched.recorded = options->recorded;
    server->routes.state = &server->state;
    server->routes.stream = &server->stream;
    server->routes.token = options->token;
    server->routes.host_names = options->host_names;
    server->routes.secure = options->http.cert != NULL;
    if (options->store.dir != NULL)
        rc = ew_archive_prepare(&options->store, geteuid() == 0 ? NOBODY : 0, text, text_size);
    if (rc < 0)
        return rc;
    rc = ew_push_open(&server->push, &options->otlp, &server->state.push, text, text_size);
    return rc < 0 ? rc
                  : ew_http_open(&options->http, &server->routes, &server->http, text, text_size);
}

/* The answer of the child: the port, or why there is none. */
struct report {
    int code;
    int confined; /* of ew_os_confine_server */
    uint16_t port;
    char text[256];
};

static void serve(const struct ew_server_options *options, int fd, int details_fd)
{
    static struct server server; /* of this process alone */
    struct report report = {0};
    server.facts.fd = fd;
    server.details.fd = details_fd;
    (void)prctl(PR_SET_NAME, "etwatch-http", 0, 0, 0);
    (void)signal(SIGINT, SIG_IGN); /* Ctrl-C ends the collecting process, which ends this one */
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGQUIT, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGTERM,
                 SIG_IGN); /* a service manager signals both; this one ends with the pipe */
    report.code = open_server(&server, options, report.text, sizeof report.text);
    if (report.code == 0) {
        report.port = ew_http_port(server.http);
        int error = give_up_rights();
        /* Where the system has no filters the rest still holds. */
        report.confined = ew_os_confine_server(options->otlp.post.url != NULL);
        if (error == 0 && options->store.dir != NULL)
            report.code = ew_archive_open(&options->store, &server.state, &server.store,
                                          report.text, sizeof report.text);
        server.routes.store = server.store;
        if (error != 0) {
            report.code = ETWATCH_EPERM;
            (void)snprintf(report.text, sizeof report.text,
                           "the server cannot give up its rights: "
                           "%s",
                           strerror(error));
        }
    }
    if (send(fd, &report, sizeof report, MSG_NOSIGNAL) == (ssize_t)sizeof report &&
        report.code == 0)
        loop(&server);
    if (report.code == 0)
        ew_push_rest(&server.push, &server.state);
    ew_http_close(server.http);
    ew_push_close(&server.push);
    ew_archive_close(server.store);
    ew_feed_done(&server.stream);
    ew_state_done(&server.state);
    ew_free(server.facts.bytes);
    ew_free(server.details.bytes);
}

/* -------------------------------------------------------------------------- details */

static bool is_valid(const struct ew_serve_request *request)
{
    bool known = request->kind == EW_SERVE_SCHED || request->kind == EW_SERVE_STACKS;
    bool counted = request->pid_count >= 1 && request->pid_count <= EW_SERVE_PIDS_MAX;
    for (uint32_t i = 0; counted && i < request->pid_count; i++)
        counted = request->pids[i] != 0;
    return known && counted && request->from_ns <= request->to_ns;
}

static void end_child(pid_t *child)
{
    if (*child > 0) {
        (void)kill(*child, SIGKILL);
        while (waitpid(*child, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    *child = 0;
}

/*
 * A killed child may leave a part of a frame in the socket, so the child does not have it: it
 * writes to a pipe, and whole frames are passed on from there.
 */
struct details {
    int fd; /* to the serving process */
    pid_t child;
    struct ew_serve_request request; /* of the child */
    struct input frames;             /* from the child */
    bool broken;
};

static void start_child(struct details *details, const struct ew_server_options *options)
{
    int ends[2];
    end_child(&details->child);
    if (details->frames.fd >= 0)
        (void)close(details->frames.fd);
    details->frames.fd = -1;
    details->frames.len = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return;
    pid_t parent = getpid();
    details->child = fork();
    if (details->child == 0) {
        struct ew_server_link to = {.fd = ends[1]};
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        (void)prctl(PR_SET_NAME, "etwatch-sched", 0, 0, 0);
        (void)close(details->fd);
        (void)close(ends[0]);
        if (getppid() == parent)
            options->details(options->details_ctx, &details->request, &to);
        _Exit(0);
    }
    (void)close(ends[1]);
    details->frames.fd = ends[0];
}

/* Passes on what the child has written, up to the end of its last whole frame. */
static void pass_frames(struct details *details)
{
    struct input *input = &details->frames;
    ssize_t len =
        recv(input->fd, input->bytes + input->len, input->size - input->len, MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len <= 0) {
        (void)close(input->fd);
        input->fd = -1;
        end_child(&details->child);
        return;
    }
    input->len += (size_t)len;
    size_t at = 0;
    uint32_t type;
    struct ew_bytes body;
    bool broken = false;
    while (ew_wire_next(input->bytes, input->len, &at, &type, &body, &broken))
        continue;
    struct ew_server_link to = {.fd = details->fd};
    details->broken = broken || ew_server_send(&to, input->bytes, at) < 0;
    memmove(input->bytes, input->bytes + at, input->len - at);
    input->len -= at;
}

/* False: the serving process has ended, or sends what it never would. */
static bool take_request(struct details *details, const struct ew_server_options *options)
{
    struct ew_serve_request request;
    ssize_t len = recv(details->fd, &request, sizeof request, MSG_WAITALL);
    if (len < 0 && errno == EINTR)
        return true;
    if (len != (ssize_t)sizeof request || !is_valid(&request))
        return false;
    bool same = memcmp(&request, &details->request, sizeof request) == 0;
    details->request = request;
    if (!same || details->child == 0)
        start_child(details, options);
    return true;
}

static void serve_details(const struct ew_server_options *options, int fd)
{
    static struct details details; /* of this process alone */
    uint64_t last_ns = 0;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)prctl(PR_SET_NAME, "etwatch-details", 0, 0, 0);
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGQUIT, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    details = (struct details){.fd = fd, .frames = {.fd = -1}};
    bool open = open_input(&details.frames);
    while (open && !details.broken) {
        struct pollfd waits[2] = {{.fd = fd, .events = POLLIN},
                                  {.fd = details.frames.fd, .events = POLLIN}};
        int ready = poll(waits, 2, details.child > 0 ? 1000 : -1);
        if (ready < 0 && errno != EINTR)
            break;
        if (ready > 0 && waits[1].revents != 0)
            pass_frames(&details);
        if (ready > 0 && waits[0].revents != 0) {
            open = take_request(&details, options);
            last_ns = ew_os_raw_ns();
        }
        if (details.child > 0 && ew_os_raw_ns() - last_ns > DETAILS_IDLE_MS * UINT64_C(1000000))
            end_child(&details.child);
    }
    end_child(&details.child);
}

/* Forks the process for details; *ret_fd: its socket, for the serving process. -1: there is none.
 */
static int start_details(const struct ew_server_options *options, int *ret_fd)
{
    int ends[2];
    *ret_fd = -1;
    if (options->details == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return 0;
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (getppid() == parent)
            serve_details(options, ends[1]);
        _Exit(0);
    }
    (void)close(ends[1]);
    if (pid < 0)
        (void)close(ends[0]);
    else
        *ret_fd = ends[0];
    return pid < 0 ? 0 : (int)pid;
}

/* ------------------------------------------------------------------ the other process */

static void wait_for(int *pid)
{
    while (*pid > 0 && waitpid((pid_t)*pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    *pid = 0;
}

int ew_server_start(const struct ew_server_options *options, struct ew_server_link *ret_link,
                    char *reterr_text, size_t text_size)
{
    int ends[2];
    struct report report = {.code = ETWATCH_EOS, .text = "the server ended at its start"};
    int details_fd;
    int details_pid = start_details(options, &details_fd);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        (void)snprintf(reterr_text, text_size, "cannot make a pipe: %s", strerror(errno));
        if (details_fd >= 0)
            (void)close(details_fd);
        wait_for(&details_pid);
        return ETWATCH_EOS;
    }
    const int size = PIPE_BYTES;
    (void)setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        (void)close(ends[0]);
        if (getppid() == parent)
            serve(options, ends[1], details_fd);
        _Exit(0);
    }
    (void)close(ends[1]);
    if (details_fd >= 0)
        (void)close(details_fd);
    *ret_link = (struct ew_server_link){.fd = ends[0], .pid = (int)pid, .details_pid = details_pid};
    if (pid < 0) {
        (void)snprintf(reterr_text, text_size, "cannot start a process: %s", strerror(errno));
        ret_link->pid = 0;
        ew_server_stop(ret_link);
        return ETWATCH_EOS;
    }
    ssize_t len;
    do
        len = recv(ends[0], &report, sizeof report, MSG_WAITALL);
    while (len < 0 && errno == EINTR);
    if (len == (ssize_t)sizeof report && report.code == 0) {
        ret_link->port = report.port;
        ret_link->confined = report.confined;
        return 0;
    }
    (void)snprintf(reterr_text, text_size, "%s", report.text);
    ew_server_stop(ret_link);
    return report.code < 0 ? report.code : ETWATCH_EOS;
}

int ew_server_send(void *link, const void *bytes, size_t len)
{
    const struct ew_server_link *to = link;
    const char *at = bytes;
    while (len > 0) {
        /* Not send(2): a process that reads recordings may only write. SIGPIPE is ignored. */
        ssize_t sent = write(to->fd, at, len);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return ETWATCH_EOS;
        at += sent;
        len -= (size_t)sent;
    }
    return 0;
}

bool ew_server_alive(const struct ew_server_link *link)
{
    struct pollfd wait = {.fd = link->fd, .events = 0};
    return poll(&wait, 1, 0) == 0;
}

/* The process for details ends when the serving process has ended. */
void ew_server_stop(struct ew_server_link *link)
{
    if (link->pid <= 0 && link->details_pid <= 0)
        return;
    (void)close(link->fd);
    wait_for(&link->pid);
    wait_for(&link->details_pid);
}
