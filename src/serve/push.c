/* SPDX-License-Identifier: MIT */
#include "serve/push.h"

#include <stdio.h>

#include "os/os.h"

#define REST_NS UINT64_C(3000000000)

static bool start_post(void *ctx, const void *bytes, size_t len)
{
    return ew_post_start(ctx, bytes, len);
}

static bool run_post(void *ctx, struct ew_post_result *ret_result)
{
    return ew_post_run(ctx, ret_result);
}

int ew_push_open(struct ew_push *push, const struct ew_otlp_options *options,
                 struct ew_state_push *figures, char *reterr_text, size_t text_size)
{
    if (options->post.url == NULL)
        return 0;
    int rc = ew_post_open(&options->post, &push->post, reterr_text, text_size);
    const struct ew_otlp_sender sender = {start_post, run_post, push->post};
    if (rc == 0 && ew_otlp_init(&push->otlp, options, &sender, figures) < 0) {
        (void)snprintf(reterr_text, text_size, "out of memory");
        rc = ETWATCH_ENOMEM;
    }
    return rc;
}

void ew_push_close(struct ew_push *push)
{
    ew_post_close(push->post);
    ew_otlp_done(&push->otlp);
    push->post = NULL;
}

void ew_push_second(struct ew_push *push, const struct ew_state *state, uint64_t t_ns)
{
    /* A recording is pushed once, as of its end. */
    if (push->post != NULL && (state->ended || !state->meta.recorded))
        ew_otlp_second(&push->otlp, state, t_ns, state->ended);
}

void ew_push_run(struct ew_push *push)
{
    if (push->post != NULL)
        ew_otlp_run(&push->otlp, ew_os_raw_ns());
}

int ew_push_fd(const struct ew_push *push)
{
    return push->post != NULL ? ew_post_fd(push->post) : -1;
}

int ew_push_timeout_ms(const struct ew_push *push)
{
    if (push->post == NULL)
        return -1;
    int post_ms = ew_post_timeout_ms(push->post);
    int otlp_ms = ew_otlp_timeout_ms(&push->otlp, ew_os_raw_ns());
    return post_ms < 0 || (otlp_ms >= 0 && otlp_ms < post_ms) ? otlp_ms : post_ms;
}

void ew_push_rest(struct ew_push *push, const struct ew_state *state)
{
    if (push->post == NULL)
        return;
    uint64_t end_ns = ew_os_raw_ns() + REST_NS;
    ew_otlp_second(&push->otlp, state, state->now_ns, true);
    ew_push_run(push);
    while (push->otlp.count > 0 && !push->otlp.failing && ew_os_raw_ns() < end_ns) {
        int timeout_ms = ew_push_timeout_ms(push);
        ew_post_wait(push->post, timeout_ms >= 0 && timeout_ms < 100 ? timeout_ms : 100);
        ew_push_run(push);
    }
}
