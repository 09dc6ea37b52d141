/* SPDX-License-Identifier: MIT */
/*
 * Requests and responses between the HTTP library and the routes, and everything of a request that
 * is parsed here: the target with its query, Host, Origin, the token. Pure functions over foreign
 * texts, which a fuzz target drives.
 */
#ifndef EW_SERVE_REQUEST_H
#define EW_SERVE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum {
    EW_TARGET_MAX = 2048, /* longer ones are 414 */
    EW_QUERY_KEYS_MAX = 8,
    EW_TOKEN_MIN = 16,
    EW_TOKEN_MAX = 256,
};

/* What a client sent; a header that is missing is NULL. */
struct ew_request {
    const char *method;
    const char *target; /* path and query, not decoded */
    const char *host, *origin, *fetch_site, *authorization, *cookie, *accept, *accept_encoding;
    const char *if_none_match;
    bool head_only; /* HEAD */
    bool has_body;
};

enum ew_response_flag {
    EW_RESPONSE_GZIP = 1u << 0,      /* the body is compressed */
    EW_RESPONSE_STREAM = 1u << 1,    /* server-sent events: the body is the stream */
    EW_RESPONSE_IMMUTABLE = 1u << 2, /* may be cached */
    EW_RESPONSE_HTML = 1u << 3,      /* a page: needs the policy of pages */
};

struct ew_response {
    int status;
    uint32_t flags; /* enum ew_response_flag */
    const char *content_type;
    const void *fixed; /* a body that outlives the response; NULL: `body` */
    size_t fixed_size;
    struct ew_buf body;
    char etag[48];          /* "" : none */
    char location[128];     /* "" : none */
    char cookie[384];       /* Set-Cookie; "" : none */
    const char *allow;      /* 405 */
    unsigned retry_after_s; /* 429; 0: none */
};

/* A query with its values decoded. */
struct ew_query {
    uint32_t count;
    struct {
        const char *key;
        const char *value;
    } pairs[EW_QUERY_KEYS_MAX];
    char text[EW_TARGET_MAX + 1];
};

/* Splits a target at its first '?' and decodes the query. The path is copied without decoding: no
 * route has a character that needs it. False: malformed (an escape that is none, a control
 * character, invalid UTF-8, too many keys, a key twice, too long). */
bool ew_request_split(const char *target, char *ret_path, size_t path_size,
                      struct ew_query *ret_query);
/* The value of a key; NULL: not given. */
const char *ew_query_get(const struct ew_query *query, const char *key);
/* False: some key is not in the list (ends with NULL); *ret_key is that key. */
bool ew_query_only(const struct ew_query *query, const char *const *keys, const char **ret_key);

/* A time: milliseconds of Unix time, or with '-' in front before `now_ms`. */
bool ew_request_time_ms(const char *text, uint64_t now_ms, uint64_t *ret_ms);
bool ew_request_u64(const char *text, uint64_t max, uint64_t *ret_number);
/* PID-START of a process. */
bool ew_request_process(const char *text, size_t len, uint32_t *ret_pid, uint64_t *ret_start_ns);

/* Whether a Host header names this server: a loopback name or address, or one of `names` (ends with
 * NULL), with any port. Protects against DNS rebinding. */
bool ew_request_host_allowed(const char *host, const char *const *names);
/* Whether a request comes from no page, or from a page of this server. */
bool ew_request_same_origin(const struct ew_request *request);
/* Whether two texts are equal, in a time that depends only on the length of `given`. */
bool ew_request_token_equal(const char *given, size_t given_len, const char *token);
/* Whether the request carries the token: Authorization: Bearer, or the cookie of the dashboard. */
bool ew_request_authorized(const struct ew_request *request, const char *token);
/* Whether an Accept header prefers OpenMetrics 1.0 to the text format. */
bool ew_request_wants_openmetrics(const char *accept);
/* Whether an Accept-Encoding header names gzip, with a weight above 0. */
bool ew_request_accepts_gzip(const char *accept_encoding);

#endif
