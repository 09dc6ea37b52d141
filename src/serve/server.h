/* SPDX-License-Identifier: MIT */
/*
 * The serving process: reads frames from a pipe and answers requests until the pipe ends. The
 * program forks; this is what the child runs. server_linux.c, server_windows.c.
 *
 * The process for details sleeps until the serving process requests the scheduling or the stacks of
 * a process, which it names by its pid. It then starts a child that sends them as frames, and ends
 * it when nothing has been requested for a while. It keeps the rights it was started with: reading
 * the scheduler needs them again for each request. Nothing but a struct ew_serve_request ever
 * reaches it, and every member is checked.
 */
#ifndef EW_SERVE_SERVER_H
#define EW_SERVE_SERVER_H

#include "serve/archive.h"
#include "serve/http.h"
#include "serve/push.h"

struct ew_server_link;
struct ew_server_handles;

/* Sends the frames of a request, and EW_FRAME_DETAIL_END at the end. Runs in a process of its own,
 * which is killed when the request is over. */
typedef void (*ew_server_details_fn)(void *ctx, const struct ew_serve_request *request,
                                     struct ew_server_link *to);

struct ew_server_options {
    struct ew_http_options http;
    struct ew_state_options state;
    struct ew_otlp_options otlp;
    struct ew_archive_options store;
    const char *token;             /* NULL: none */
    const char *const *host_names; /* ends with NULL */
    ew_server_details_fn details;  /* NULL: there are none */
    void *details_ctx;
    bool recorded;
};

/* NULL: serving works here; else why not and what to do. */
const char *ew_server_unavailable(void);

/* The pipe between the two processes, from the collecting side. */
struct ew_server_link {
    int fd;
    int pid;
    int details_pid; /* 0: none */
    uint16_t port;
    int confined;                  /* of the serving process, see ew_os_confine_server */
    struct ew_server_handles *own; /* Windows, instead of the numbers above */
};

/* Starts the serving process and waits until it listens. 0, or a negative code with one line in
 * reterr_text. The calling process must have one thread and no monitor yet. */
int ew_server_start(const struct ew_server_options *options, struct ew_server_link *ret_link,
                    char *reterr_text, size_t text_size);
/* An etwatch_write_fn: sends all bytes. A negative code: the serving process is gone. */
int ew_server_send(void *link, const void *bytes, size_t len);
/* Ends the serving process and waits for it. */
void ew_server_stop(struct ew_server_link *link);
/* False: the serving process has ended by itself. */
bool ew_server_alive(const struct ew_server_link *link);

#endif
