/* SPDX-License-Identifier: MIT */
/*
 * A recording with inferences of ONNX Runtime, as its ETW provider logs them: a session is created
 * in 10 ms, ten runs follow, and the last one is slow for known reasons. What each ms of it was
 * is in tests/etl/onnx.py. CPU 0 runs everything.
 */
#include "make_hand.h"

enum {
    PROGRAM = 4000,
    CALLER = 4004,
    HOLDER = 4008,
    HOG = 5000,
    HOG_THREAD = 5004,
    SESSION = 7,
    RUNS = 10,
    TICKS_A_MS = 10000,
    DELAY_EXECUTION = 4,
    PAGE_IN = 2,
    USER_REQUEST = 6,
    READY = 1,
    WAITING = 5,
};

static const uint8_t runtime[16] = {0xff, 0xb1, 0x26, 0x3a, 0x84, 0x74, 0x84, 0x74,
                                    0x74, 0x84, 0x15, 0x26, 0x1f, 0x42, 0x61, 0x4d};

struct machine {
    struct hand h;
    uint64_t begun;
    uint32_t running;
    bool old; /* the events of older versions, without the session */
};

/* The next event is at this time. */
static void at(struct machine *m, double ms)
{
    m->h.now = m->begun + (uint64_t)(ms * TICKS_A_MS) - 1000;
}

static void put_process(struct machine *m, uint32_t pid, const char *image, const uint32_t *threads,
                        uint32_t count)
{
    struct etl_process x = {.key = pid,
                            .pid = pid,
                            .parent_pid = 400,
                            .session_id = 1,
                            .exit_status = 259,
                            .image = image,
                            .command_line = image,
                            .package = "",
                            .application = ""};
    etl_process(&m->h.payload, 4, 8, &x);
    hand_put_kernel(&m->h, 8, 0x0303, 4);
    for (uint32_t i = 0; i < count; i++) {
        struct etl_thread thread = {.pid = pid, .tid = threads[i], .base_priority = 8};
        etl_thread(&m->h.payload, 3, 8, &thread);
        hand_put_kernel(&m->h, 8, 0x0503, 3);
    }
}

static void put_switch(struct machine *m, double ms, uint32_t to, uint8_t state, uint8_t reason)
{
    struct etl_switch s = {
        .new_tid = to, .old_tid = m->running, .state = state, .wait_reason = reason};
    at(m, ms);
    etl_switch(&m->h.payload, 4, &s);
    hand_put_kernel(&m->h, 8, 0x0524, 4);
    m->running = to;
}

static void put_ready(struct machine *m, double ms, uint32_t tid, bool by_dpc)
{
    at(m, ms);
    etl_ready(&m->h.payload, tid, 1, 0, by_dpc);
    hand_put_kernel(&m->h, 8, 0x0532, 0);
}

static void put_runtime(struct machine *m, double ms)
{
    static struct etl_payload traits;
    at(m, ms);
    m->h.pid = PROGRAM;
    m->h.tid = CALLER;
    etl_tlg_end(&m->h.schema);
    etl_tlg_provider(&traits, "Microsoft.ML.ONNXRuntime");
    etl_clear(&m->h.extended);
    etl_extended(&m->h.extended, 0xC, traits.bytes, traits.size, true);
    etl_extended(&m->h.extended, 0xB, m->h.schema.bytes, m->h.schema.size, false);
    hand_put(&m->h, (struct ew_etl_event){.header_type = 19,
                                          .provider = runtime,
                                          .channel = 11,
                                          .level = 5,
                                          .extended = m->h.extended.bytes,
                                          .extended_size = m->h.extended.size});
}

static void begin_runtime(struct machine *m, const char *event)
{
    etl_tlg_begin(&m->h.schema, event);
    etl_clear(&m->h.payload);
}

static void put_session_field(struct machine *m)
{
    etl_tlg_field(&m->h.schema, "sessionId", 8, 0);
    etl_u32(&m->h.payload, SESSION);
}

static void put_evaluation(struct machine *m, double ms, const char *event)
{
    begin_runtime(m, event);
    if (!m->old)
        put_session_field(m);
    put_runtime(m, ms);
}

static void put_creation(struct machine *m)
{
    begin_runtime(m, "SessionCreationStart");
    etl_tlg_field(&m->h.schema, "UTCReplace_AppSessionGuid", 4, 3);
    etl_u8(&m->h.payload, 1);
    if (!m->old)
        put_session_field(m);
    put_runtime(m, 11);
    begin_runtime(m, "SessionCreation");
    etl_tlg_field(&m->h.schema, "UTCReplace_AppSessionGuid", 4, 3);
    etl_u8(&m->h.payload, 1);
    put_session_field(m);
    if (!m->old) {
        etl_tlg_field(&m->h.schema, "modelFileName", 2, 0);
        etl_ansi(&m->h.payload, "C:\\models\\mlp.onnx");
    }
    etl_tlg_field(&m->h.schema, "modelGraphName", 2, 0);
    etl_ansi(&m->h.payload, "mlp_graph");
    put_runtime(m, 21);
    if (m->old)
        return;
    begin_runtime(m, "SessionCreationEnd");
    put_session_field(m);
    etl_tlg_field(&m->h.schema, "isSuccess", 4, 3);
    etl_u8(&m->h.payload, 1);
    put_runtime(m, 21.5);
}

/* 46 ms: see tests/etl/onnx.py. */
static void put_slow_run(struct machine *m, double ms)
{
    put_switch(m, ms - 0.5, CALLER, 0, 0);
    put_evaluation(m, ms, "EvaluationStart");
    put_switch(m, ms + 2, HOG_THREAD, READY, 0);
    put_switch(m, ms + 22, CALLER, READY, 0);
    put_switch(m, ms + 24, 0, WAITING, PAGE_IN);
    put_ready(m, ms + 30, CALLER, true);
    put_switch(m, ms + 31, CALLER, 0, 0);
    put_switch(m, ms + 33, HOLDER, WAITING, USER_REQUEST);
    put_ready(m, ms + 38, CALLER, false);
    put_switch(m, ms + 39, CALLER, WAITING, USER_REQUEST);
    put_switch(m, ms + 40, 0, WAITING, DELAY_EXECUTION);
    put_ready(m, ms + 44.9, CALLER, true);
    put_switch(m, ms + 45, CALLER, 0, 0);
    put_evaluation(m, ms + 46, "EvaluationStop");
    put_switch(m, ms + 47, 0, WAITING, USER_REQUEST);
}

static int make_onnx(const struct make_options *o, struct make_output *output, bool old)
{
    static const uint32_t threads[] = {CALLER, HOLDER}, hog_threads[] = {HOG_THREAD};
    static struct machine m;
    m = (struct machine){.old = old};
    int rc = hand_begin(&m.h, o, output);
    if (rc < 0)
        return rc;
    m.begun = m.h.now + TICKS_A_MS;
    put_process(&m, PROGRAM, "infer.exe", threads, 2);
    put_process(&m, HOG, "hog.exe", hog_threads, 1);
    put_switch(&m, 10, CALLER, 0, 0);
    put_creation(&m);
    put_switch(&m, 25, 0, WAITING, USER_REQUEST);
    for (uint32_t i = 0; i + 1 < RUNS; i++) {
        double ms = 100 + 20.0 * i;
        put_switch(&m, ms - 0.5, CALLER, 0, 0);
        if (i == 5) /* this one fails, and has no end */
            put_evaluation(&m, ms - 0.3, "EvaluationStart");
        put_evaluation(&m, ms, "EvaluationStart");
        put_evaluation(&m, ms + 4, "EvaluationStop");
        put_switch(&m, ms + 5, 0, WAITING, USER_REQUEST);
    }
    put_slow_run(&m, 400);
    return hand_end(&m.h, 0, 0);
}

static int make_new(const struct make_options *o, struct make_output *output)
{
    return make_onnx(o, output, false);
}

static int make_old(const struct make_options *o, struct make_output *output)
{
    return make_onnx(o, output, true);
}

const struct make_kind make_onnx_kinds[] = {
    {"onnx", "inferences of ONNX Runtime, the last one slow for known reasons", make_new},
    {"onnx_old", "the same by an older version of the runtime", make_old},
    {NULL, NULL, NULL},
};
