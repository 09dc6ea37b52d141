/* SPDX-License-Identifier: MIT */
/*
 * The border to the HTTP client: one POST at a time to one fixed address, never waiting.
 * post_linux.c uses libcurl, post_windows.c WinHTTP; post_none.c is for builds without libcurl.
 * Everything runs on the thread that calls.
 */
#ifndef EW_SERVE_POST_H
#define EW_SERVE_POST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EW_POST_ANSWER_MAX = 4096, EW_POST_HEADERS_MAX = 32 };

struct ew_post_options {
    const char *url;            /* http:// or https:// */
    const char *const *headers; /* "Name: value"; ends with NULL */
    uint32_t timeout_ms;        /* of a whole request */
    const char *ca;             /* PEM; NULL: the certificates of the system */
    const char *cert, *key;     /* PEM of the client; NULL: none */
};

/* How a request ended. */
struct ew_post_result {
    int status;             /* of HTTP; 0: there is no answer, `error` says why */
    uint32_t retry_after_s; /* 0: not given */
    char error[128];
    size_t answer_len; /* the first EW_POST_ANSWER_MAX bytes of the body */
    uint8_t answer[EW_POST_ANSWER_MAX];
};

struct ew_post;

/* NULL: this build can push; else why not and what to do. */
const char *ew_post_unavailable(void);
/* 0 or a negative code with one line in reterr_text. The texts of the options must outlive it. */
int ew_post_open(const struct ew_post_options *options, struct ew_post **ret_post,
                 char *reterr_text, size_t text_size);
/* NULL is allowed. A request that is under way is cancelled. */
void ew_post_close(struct ew_post *post);
/* Starts a request. The bytes must stay until its end. False: it cannot start. */
bool ew_post_start(struct ew_post *post, const void *bytes, size_t len);
/* Does what is due. True: the request ended, with its result. */
bool ew_post_run(struct ew_post *post, struct ew_post_result *ret_result);
/* Waits until ew_post_run has something to do, at most this long. */
void ew_post_wait(struct ew_post *post, int timeout_ms);
/* The descriptor that becomes readable when ew_post_run has something to do; -1 where there are
 * none: ew_post_timeout_ms is then short while a request is under way. */
int ew_post_fd(const struct ew_post *post);
/* At most this long until ew_post_run must be called; -1: no limit. */
int ew_post_timeout_ms(const struct ew_post *post);

#endif
