/* SPDX-License-Identifier: MIT */
/*
 * The push to an OpenTelemetry collector: encodes an export each interval, queues it, and sends one
 * at a time in the order of time. Nothing here waits.
 *
 * An export leaves the queue when the receiver has accepted it or refused it for good. No answer,
 * 429, 502, 503 and 504 are repeated: after 1 s, then twice as long each time up to 30 s, each half
 * fixed and half random, or what Retry-After says. If the queue has no room, its oldest exports are
 * dropped and their data points counted. What happened is in struct ew_state_push.
 */
#ifndef EW_SERVE_OTLP_H
#define EW_SERVE_OTLP_H

#include "serve/otlp_encode.h"
#include "serve/post.h"

enum { EW_OTLP_EXPORTS_MAX = 4096, EW_OTLP_ATTRIBUTES_MAX = 32 };

#define EW_OTLP_QUEUE_BYTES (UINT64_C(16) << 20)
#define EW_OTLP_INTERVAL_NS (UINT64_C(10) * 1000000000)
#define EW_OTLP_INTERVAL_MAX_NS (UINT64_C(60) * 1000000000) /* a hidden group is kept that long */

struct ew_otlp_options {
    struct ew_post_options post; /* url NULL: no push */
    bool json, delta, gzip;
    const struct ew_otlp_attribute *attributes;
    uint32_t attribute_count;
    uint64_t interval_ns, queue_bytes; /* 0: the default */
    /* One line for people, when the state changes; may be NULL. */
    void (*say)(const char *text);
};

/* How requests are made; a test has its own. */
struct ew_otlp_sender {
    bool (*start)(void *ctx, const void *bytes, size_t len);
    bool (*run)(void *ctx, struct ew_post_result *ret_result); /* true: it ended */
    void *ctx;
};

struct ew_otlp_export {
    void *bytes;
    size_t len;
    uint64_t points;
};

struct ew_otlp {
    struct ew_otlp_options options;
    struct ew_otlp_sender sender;
    struct ew_otlp_encoder encoder;
    struct ew_state_push *push;
    struct ew_otlp_export *queue; /* a ring of EW_OTLP_EXPORTS_MAX */
    uint32_t first, count;
    bool sending;         /* the first export is under way */
    uint64_t next_ns;     /* trace time of the next export */
    uint64_t retry_at_ns; /* raw time; 0: now */
    uint64_t backoff_ns;
    uint64_t refusal_said_ns; /* raw time of the latest message about a refusal; 0: none */
    bool failing;
    struct ew_buf text; /* of the encoder, reused */
};

/* push: where the figures go; it must outlive otlp. 0 or ETWATCH_ENOMEM. */
int ew_otlp_init(struct ew_otlp *otlp, const struct ew_otlp_options *options,
                 const struct ew_otlp_sender *sender, struct ew_state_push *push);
void ew_otlp_done(struct ew_otlp *otlp);
/* A second of the state was closed: queues an export if one is due, or in any case. */
void ew_otlp_second(struct ew_otlp *otlp, const struct ew_state *state, uint64_t t_ns, bool now);
/* Sends and takes answers. now_ns: raw time. */
void ew_otlp_run(struct ew_otlp *otlp, uint64_t now_ns);
/* At most this long until ew_otlp_run must be called; -1: no limit but the sender's. */
int ew_otlp_timeout_ms(const struct ew_otlp *otlp, uint64_t now_ns);

#endif
