/* SPDX-License-Identifier: MIT */
/* The push as the loop of the serving process sees it: queue and HTTP client together. A push that
 * is not open does nothing. */
#ifndef EW_SERVE_PUSH_H
#define EW_SERVE_PUSH_H

#include "serve/otlp.h"

struct ew_push {
    struct ew_post *post; /* NULL: not open */
    struct ew_otlp otlp;
};

/* Opens it if the options name a collector. 0 or a negative code with one line in reterr_text. */
int ew_push_open(struct ew_push *push, const struct ew_otlp_options *options,
                 struct ew_state_push *figures, char *reterr_text, size_t text_size);
void ew_push_close(struct ew_push *push);
/* A second of the state was closed. */
void ew_push_second(struct ew_push *push, const struct ew_state *state, uint64_t t_ns);
/* Sends and takes answers, without waiting. */
void ew_push_run(struct ew_push *push);
/* As in poll(2): -1 is no descriptor and no limit. */
int ew_push_fd(const struct ew_push *push);
int ew_push_timeout_ms(const struct ew_push *push);
/* The end: what is queued gets a last chance of at most 3 seconds. */
void ew_push_rest(struct ew_push *push, const struct ew_state *state);

#endif
