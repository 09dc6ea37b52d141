/* SPDX-License-Identifier: MIT */
/* A build without libmicrohttpd: serve says so. */
#include <stdio.h>

#include "serve/http.h"

const char *ew_http_unavailable(void)
{
    return "this build has no HTTP server: install libmicrohttpd (Debian: libmicrohttpd-dev) and "
           "build again";
}

int ew_http_open(const struct ew_http_options *options, struct ew_routes *routes,
                 struct ew_http **ret_http, char *reterr_text, size_t text_size)
{
    (void)options;
    (void)routes;
    (void)ret_http;
    (void)snprintf(reterr_text, text_size, "%s", ew_http_unavailable());
    return ETWATCH_ENOTSUP;
}

void ew_http_close(struct ew_http *http)
{
    (void)http;
}

uint16_t ew_http_port(const struct ew_http *http)
{
    (void)http;
    return 0;
}

int ew_http_fd(const struct ew_http *http)
{
    (void)http;
    return -1;
}

int ew_http_timeout_ms(const struct ew_http *http)
{
    (void)http;
    return -1;
}

void ew_http_run(struct ew_http *http)
{
    (void)http;
}

void ew_http_wake_streams(struct ew_http *http)
{
    (void)http;
}
