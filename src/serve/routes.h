/* SPDX-License-Identifier: MIT */
/*
 * Requests in, responses out. Pure: no socket, no file, no clock but the one passed in. The checks
 * of every request come first, in this order: Host, Origin, method, body, address, rate, token.
 */
#ifndef EW_SERVE_ROUTES_H
#define EW_SERVE_ROUTES_H

#include "serve/api.h"
#include "serve/feed.h"
#include "serve/request.h"

/* An embedded file of the dashboard. Made by scripts/web_assets.py. */
struct ew_asset {
    const char *path; /* "/app.js" */
    const char *content_type;
    const char *etag;
    const uint8_t *bytes;
    size_t size;
    bool is_gzip;
    bool is_page;
};

/* path NULL ends the list. Without a dashboard it only has the OpenAPI file. */
extern const struct ew_asset ew_assets[];
/* Whether the dashboard was built in; else why not, in one sentence. */
extern const char *const ew_assets_missing; /* NULL: it is there */

/* A bucket of requests for all clients together: the state has one thread. */
struct ew_allowance {
    double left;
    uint64_t at_ns; /* 0: full */
};

struct ew_routes {
    struct ew_state *state;
    struct ew_feed *stream;
    struct ew_archive *store;                /* NULL: no history on disk */
    const char *token;                       /* NULL: none needed */
    const char *const *host_names;           /* in addition to loopback; ends with NULL */
    bool secure;                             /* the connection is TLS: cookies are Secure */
    uint32_t rate;                           /* requests a second; 0: the default */
    struct ew_allowance admitted, strangers; /* with the token, without it */
    uint64_t requests, refused;
};

enum {
    EW_ROUTES_RATE = 500,
    EW_ROUTES_STRANGERS_PART = 5, /* requests without the token get this part of the rate */
    EW_ROUTES_BODY_MAX = 64 << 20,
    EW_ROUTES_GZIP_MIN = 2048, /* shorter answers are not compressed */
};

/* Fills the response; the caller frees its body with ew_buf_done. now_ns: any steady clock. */
void ew_routes_answer(struct ew_routes *routes, const struct ew_request *request, uint64_t now_ns,
                      struct ew_response *ret_response);
/* The text of the Content-Security-Policy header of every response. */
extern const char ew_routes_policy[];

#endif
