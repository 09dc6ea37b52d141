/* SPDX-License-Identifier: MIT */
/*
 * A request as it comes from the HTTP library, and frames of the pipe. Input: lines of target,
 * Host, Origin, Authorization, Cookie, Accept; what follows an empty line are frames. A response
 * never has a line end in a header, and the state stays usable.
 */
#include <string.h>

#include "base/alloc.h"
#include "fuzz.h"
#include "serve/routes.h"

static void take_frames(struct ew_state *state, const uint8_t *data, size_t size)
{
    size_t at = 0;
    uint32_t type;
    struct ew_bytes body;
    bool broken = false;
    while (ew_wire_next(data, size, &at, &type, &body, &broken))
        if (type != EW_FRAME_META && type != EW_FRAME_STATS)
            ew_state_frame(state, type, &body);
}

static void feed_one(struct ew_state *state)
{
    struct etwatch_sample sample = {.size = sizeof sample,
                                    .type = ETWATCH_TYPE_SAMPLE,
                                    .pid = 7,
                                    .start_ns = 7,
                                    .t_ns = UINT64_C(100000000000),
                                    .dt_ns = 100000000,
                                    .name = "a"};
    struct ew_buf frames;
    etwatch_metric_set_add(&sample.has, ETWATCH_M_cpu_ns);
    ew_buf_init(&frames, 0, NULL, NULL);
    ew_wire_sample(&frames, &sample);
    sample.t_ns += UINT64_C(2000000000);
    ew_wire_sample(&frames, &sample);
    take_frames(state, (const uint8_t *)frames.data, frames.len);
    ew_buf_done(&frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_state_options options = {.fine_bytes = 1 << 14, .coarse_bytes = 1 << 14, .top = 2};
    static struct ew_state state;
    char *text = ew_calloc(size + 1, 1);
    char *lines[6] = {0};
    if (text == NULL || ew_state_init(&state, &options) < 0) {
        ew_free(text);
        return 0;
    }
    memcpy(text, data, size);
    char *at = text;
    for (int i = 0; i < 6 && at != NULL && *at != '\n'; i++) {
        lines[i] = at;
        at = strchr(at, '\n');
        if (at != NULL)
            *at++ = '\0';
    }
    feed_one(&state);
    state.meta.inferences = true;
    if (at != NULL && *at == '\n')
        take_frames(&state, data + (at + 1 - text), size - (size_t)(at + 1 - text));
    struct ew_request request = {.method = "GET",
                                 .target = lines[0] != NULL ? lines[0] : "/",
                                 .host = lines[1],
                                 .origin = lines[2],
                                 .authorization = lines[3],
                                 .cookie = lines[4],
                                 .accept = lines[5],
                                 .accept_encoding = lines[5]};
    struct ew_routes routes = {.state = &state, .token = size % 2 != 0 ? "0123456789abcdef" : NULL};
    struct ew_response response;
    ew_routes_answer(&routes, &request, 1, &response);
    require(response.status >= 200 && response.status < 600, "a status of HTTP");
    require(strpbrk(response.location, "\r\n") == NULL && strpbrk(response.cookie, "\r\n") == NULL,
            "no line end in a header");
    ew_buf_done(&response.body);
    ew_state_done(&state);
    ew_free(text);
    return 0;
}
