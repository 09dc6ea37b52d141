/* SPDX-License-Identifier: MIT */
/*
 * The border to the HTTP library: one listening port, served inside ew_http_run. http_linux.c uses
 * libmicrohttpd, http_none.c is for builds without it, http_windows.c uses HTTP.sys. Everything
 * runs on the thread that calls.
 */
#ifndef EW_SERVE_HTTP_H
#define EW_SERVE_HTTP_H

#include "serve/routes.h"

/*
 * Stated limits of connections. A connection has a deadline for a whole request and one for taking
 * a whole response, so that neither can be held by a byte now and then. When few places are left,
 * the connection that has waited longest without a whole request is closed: a new one always gets
 * in.
 */
enum {
    EW_HTTP_CONNECTIONS_MAX = 256,
    EW_HTTP_CONNECTIONS_FREE = 16, /* places that are kept free in this way */
    EW_HTTP_PER_ADDRESS_MAX = 64,  /* of one address, if others than this machine can connect */
    EW_HTTP_STREAMS_MAX = 200,
    EW_HTTP_HEADER_BYTES = 16384, /* request line and headers */
    EW_HTTP_IDLE_S = 30,          /* a connection that sends or takes nothing is closed */
    EW_HTTP_REQUEST_S = 30,       /* from the first byte, or the response before, to its end */
    EW_HTTP_RESPONSE_S = 120,     /* no stream: those lose events instead */
};

struct ew_http_options {
    const char *address;    /* "127.0.0.1", "::1", "0.0.0.0" */
    uint16_t port;          /* 0: any free one */
    const char *cert, *key; /* PEM; NULL: no TLS */
    bool shared;            /* others than this machine can connect: the limit per address holds */
};

struct ew_http;

/* NULL: this build can serve; else why not and what to do. */
const char *ew_http_unavailable(void);
/* 0 or a negative code, with one line in reterr_text (text_size bytes). routes must outlive it. */
int ew_http_open(const struct ew_http_options *options, struct ew_routes *routes,
                 struct ew_http **ret_http, char *reterr_text, size_t text_size);
void ew_http_close(struct ew_http *http);
uint16_t ew_http_port(const struct ew_http *http);
/* The descriptor that becomes readable when ew_http_run has something to do; Windows has an event
 * instead (http_windows.h). */
int ew_http_fd(const struct ew_http *http);
/* At most this long until ew_http_run must be called; -1: no limit. */
int ew_http_timeout_ms(const struct ew_http *http);
/* Serves what is due, without waiting. */
void ew_http_run(struct ew_http *http);
/* The stream has new bytes. */
void ew_http_wake_streams(struct ew_http *http);

#endif
