/* SPDX-License-Identifier: MIT */
/* A build without an HTTP client: --otlp says so. */
#include <stdio.h>

#include <etwatch/etwatch.h>

#include "serve/post.h"

const char *ew_post_unavailable(void)
{
    return "this build cannot push: install libcurl (Debian: libcurl4-openssl-dev) and build "
           "again, "
           "or let a collector scrape /metrics";
}

int ew_post_open(const struct ew_post_options *options, struct ew_post **ret_post,
                 char *reterr_text, size_t text_size)
{
    (void)options;
    (void)ret_post;
    (void)snprintf(reterr_text, text_size, "%s", ew_post_unavailable());
    return ETWATCH_ENOTSUP;
}

void ew_post_close(struct ew_post *post)
{
    (void)post;
}

bool ew_post_start(struct ew_post *post, const void *bytes, size_t len)
{
    (void)post;
    (void)bytes;
    (void)len;
    return false;
}

bool ew_post_run(struct ew_post *post, struct ew_post_result *ret_result)
{
    (void)post;
    (void)ret_result;
    return false;
}

void ew_post_wait(struct ew_post *post, int timeout_ms)
{
    (void)post;
    (void)timeout_ms;
}

int ew_post_fd(const struct ew_post *post)
{
    (void)post;
    return -1;
}

int ew_post_timeout_ms(const struct ew_post *post)
{
    (void)post;
    return -1;
}
