/* SPDX-License-Identifier: MIT */
#ifndef EW_CLI_SERVE_PUSH_H
#define EW_CLI_SERVE_PUSH_H

#include "cli/cli.h"
#include "serve/otlp.h"

/* The options of a push and the texts that they point to. */
struct ew_serve_push {
    struct ew_otlp_options options; /* post.url NULL: no push */
    char *url, *attribute_text, *ca, *cert, *key;
    char *headers[EW_POST_HEADERS_MAX + 1]; /* ends with NULL */
    uint32_t header_count;
    struct ew_otlp_attribute attributes[EW_OTLP_ATTRIBUTES_MAX];
};

/* An exit code; a failure is printed. */
int ew_serve_push_load(struct ew_serve_push *push, const struct ew_serve_options *options);
void ew_serve_push_done(struct ew_serve_push *push);
/* The content of a small file, terminated; NULL and a message if it cannot be read. */
char *ew_cli_read_secret(const char *path);

#endif
