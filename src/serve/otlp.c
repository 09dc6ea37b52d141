/* SPDX-License-Identifier: MIT */
/* The queue and its sending. Invariant: push->queued_bytes is the sum of the lengths in the ring.
 */
#include "serve/otlp.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "serve/gzip.h"

#define BACKOFF_FIRST_NS UINT64_C(1000000000)
#define BACKOFF_MAX_NS UINT64_C(30000000000)
#define SAY_AGAIN_NS UINT64_C(60000000000)

enum { EXPORT_MAX = 64 << 20 }; /* the limit that the protocol recommends to receivers */

int ew_otlp_init(struct ew_otlp *otlp, const struct ew_otlp_options *options,
                 const struct ew_otlp_sender *sender, struct ew_state_push *push)
{
    *otlp = (struct ew_otlp){.options = *options, .sender = *sender, .push = push};
    if (otlp->options.interval_ns == 0)
        otlp->options.interval_ns = EW_OTLP_INTERVAL_NS;
    if (otlp->options.queue_bytes == 0)
        otlp->options.queue_bytes = EW_OTLP_QUEUE_BYTES;
    otlp->encoder = (struct ew_otlp_encoder){.json = options->json,
                                             .delta = options->delta,
                                             .attributes = options->attributes,
                                             .attribute_count = options->attribute_count};
    ew_buf_init(&otlp->text, EXPORT_MAX, NULL, NULL);
    push->enabled = true;
    push->queue_size = otlp->options.queue_bytes;
    otlp->queue = ew_calloc(EW_OTLP_EXPORTS_MAX, sizeof *otlp->queue);
    return otlp->queue != NULL ? 0 : ETWATCH_ENOMEM;
}

/* ----------------------------------------------------------------------------- queue */

static struct ew_otlp_export *at(struct ew_otlp *otlp, uint32_t i)
{
    return &otlp->queue[(otlp->first + i) % EW_OTLP_EXPORTS_MAX];
}

static void count_queue(struct ew_otlp *otlp, int64_t bytes)
{
    otlp->push->queued_exports = otlp->count;
    otlp->push->queued_bytes += (uint64_t)bytes;
}

/* Frees entry i and moves those before it. */
static void remove_at(struct ew_otlp *otlp, uint32_t i)
{
    struct ew_otlp_export gone = *at(otlp, i);
    for (; i > 0; i--)
        *at(otlp, i) = *at(otlp, i - 1);
    ew_free(gone.bytes);
    otlp->first = (otlp->first + 1) % EW_OTLP_EXPORTS_MAX;
    otlp->count--;
    count_queue(otlp, -(int64_t)gone.len);
}

void ew_otlp_done(struct ew_otlp *otlp)
{
    while (otlp->queue != NULL && otlp->count > 0)
        remove_at(otlp, 0);
    ew_free(otlp->queue);
    ew_buf_done(&otlp->text);
    ew_otlp_encoder_done(&otlp->encoder);
    *otlp = (struct ew_otlp){0};
}

/* The export that is under way stays: its bytes are in use. False: there is nothing to drop. */
static bool drop_oldest(struct ew_otlp *otlp)
{
    uint32_t i = otlp->sending ? 1 : 0;
    if (i >= otlp->count)
        return false;
    otlp->push->dropped_points += at(otlp, i)->points;
    remove_at(otlp, i);
    return true;
}

/* Takes the bytes over. */
static void enqueue(struct ew_otlp *otlp, void *bytes, size_t len, uint64_t points)
{
    while ((otlp->count == EW_OTLP_EXPORTS_MAX ||
            otlp->push->queued_bytes + len > otlp->options.queue_bytes) &&
           drop_oldest(otlp))
        continue;
    if (otlp->count == EW_OTLP_EXPORTS_MAX ||
        otlp->push->queued_bytes + len > otlp->options.queue_bytes) {
        otlp->push->dropped_points += points;
        ew_free(bytes);
        return;
    }
    otlp->count++;
    *at(otlp, otlp->count - 1) = (struct ew_otlp_export){bytes, len, points};
    count_queue(otlp, (int64_t)len);
}

static void encode(struct ew_otlp *otlp, const struct ew_state *state, uint64_t t_ns)
{
    struct ew_buf *text = &otlp->text, packed;
    uint64_t points = 0;
    text->len = 0;
    text->error = 0;
    if (ew_otlp_encode(&otlp->encoder, state, t_ns, text, &points) < 0) {
        otlp->push->dropped_points++; /* how many is not known: at least one */
        return;
    }
    ew_buf_init(&packed, EXPORT_MAX, NULL, NULL);
    bool good = otlp->options.gzip ? ew_gzip(text->data, text->len, &packed)
                                   : (ew_buf_bytes(&packed, text->data, text->len), !packed.error);
    if (!good) {
        otlp->push->dropped_points += points;
        ew_buf_done(&packed);
        return;
    }
    void *exact = ew_calloc(packed.len, 1);
    if (exact != NULL) {
        memcpy(exact, packed.data, packed.len);
        enqueue(otlp, exact, packed.len, points);
    } else {
        otlp->push->dropped_points += points;
    }
    ew_buf_done(&packed);
}

void ew_otlp_second(struct ew_otlp *otlp, const struct ew_state *state, uint64_t t_ns, bool now)
{
    uint64_t interval_ns = otlp->options.interval_ns;
    /* The receiver takes no second export of the same instant. */
    if (t_ns == 0 || t_ns <= otlp->encoder.last_ns || (!now && t_ns < otlp->next_ns))
        return;
    encode(otlp, state, t_ns);
    otlp->next_ns = (t_ns / interval_ns + 1) * interval_ns;
}

/* --------------------------------------------------------------------------- sending */

static void say(struct ew_otlp *otlp, const char *what, const char *why)
{
    char line[512];
    if (otlp->options.say == NULL)
        return;
    (void)snprintf(line, sizeof line, "otlp: %s %s%s%s", otlp->options.post.url, what,
                   why[0] != '\0' ? ": " : "", why);
    otlp->options.say(line);
}

static void plan_retry(struct ew_otlp *otlp, const struct ew_post_result *result, uint64_t now_ns)
{
    otlp->backoff_ns = otlp->backoff_ns == 0 ? BACKOFF_FIRST_NS : otlp->backoff_ns * 2;
    if (otlp->backoff_ns > BACKOFF_MAX_NS)
        otlp->backoff_ns = BACKOFF_MAX_NS;
    uint64_t half = otlp->backoff_ns / 2;
    uint64_t wait_ns = half + ew_hash_mix(ew_hash_seed(), now_ns) % (half + 1);
    if (result->retry_after_s != 0)
        wait_ns = (uint64_t)result->retry_after_s * 1000000000;
    otlp->retry_at_ns = now_ns + wait_ns;
    otlp->push->retries++;
    if (!otlp->failing)
        say(otlp, "does not take exports; they are kept and sent again", otlp->push->error);
    otlp->failing = true;
}

/* Refusals come with every export: one line a minute. */
static void say_refusal(struct ew_otlp *otlp, const char *what, uint64_t now_ns)
{
    if (otlp->refusal_said_ns != 0 && now_ns < otlp->refusal_said_ns + SAY_AGAIN_NS)
        return;
    otlp->refusal_said_ns = now_ns;
    say(otlp, what, otlp->push->error);
}

static void take_success(struct ew_otlp *otlp, const struct ew_post_result *result, uint64_t now_ns)
{
    struct ew_state_push *push = otlp->push;
    uint64_t points = at(otlp, 0)->points, rejected = 0;
    char message[128];
    ew_otlp_read_answer(otlp->options.json, result->answer, result->answer_len, &rejected, message,
                        sizeof message);
    if (rejected > points)
        rejected = points;
    push->sent_exports++;
    push->sent_points += points - rejected;
    push->rejected_points += rejected;
    push->error[0] = '\0';
    if (otlp->failing)
        say(otlp, "takes exports again", "");
    otlp->failing = false;
    if (rejected == 0)
        return;
    (void)snprintf(push->error, sizeof push->error, "%s",
                   message[0] != '\0' ? message : "no reason given");
    say_refusal(otlp, "refused a part of the data points", now_ns);
    push->error[0] = '\0'; /* it is reached */
}

static bool is_temporary(int status)
{
    return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

static void take_result(struct ew_otlp *otlp, const struct ew_post_result *result, uint64_t now_ns)
{
    struct ew_state_push *push = otlp->push;
    otlp->sending = false;
    if (result->status == 0)
        (void)snprintf(push->error, sizeof push->error, "%s", result->error);
    else
        (void)snprintf(push->error, sizeof push->error, "HTTP status %d", result->status);
    if (is_temporary(result->status)) {
        plan_retry(otlp, result, now_ns);
        return;
    }
    if (result->status >= 200 && result->status < 300) {
        take_success(otlp, result, now_ns);
    } else {
        push->rejected_points += at(otlp, 0)->points;
        say_refusal(otlp, "refuses exports; they are dropped", now_ns);
    }
    remove_at(otlp, 0);
    otlp->backoff_ns = otlp->retry_at_ns = 0;
}

void ew_otlp_run(struct ew_otlp *otlp, uint64_t now_ns)
{
    /* An answer may be there at once: then the next export goes out in the same call. */
    for (uint32_t turn = 0; turn < 8; turn++) {
        struct ew_post_result result;
        if (otlp->sending) {
            if (!otlp->sender.run(otlp->sender.ctx, &result))
                return;
            take_result(otlp, &result, now_ns);
        }
        if (otlp->count == 0 || now_ns < otlp->retry_at_ns)
            return;
        const struct ew_otlp_export *next = at(otlp, 0);
        otlp->sending = true;
        if (!otlp->sender.start(otlp->sender.ctx, next->bytes, next->len)) {
            result = (struct ew_post_result){.error = "the request cannot start"};
            take_result(otlp, &result, now_ns);
            return;
        }
    }
}

int ew_otlp_timeout_ms(const struct ew_otlp *otlp, uint64_t now_ns)
{
    if (otlp->sending || otlp->count == 0)
        return -1;
    return now_ns >= otlp->retry_at_ns ? 0 : (int)((otlp->retry_at_ns - now_ns) / 1000000) + 1;
}
