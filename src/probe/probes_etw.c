/* SPDX-License-Identifier: MIT */
/*
 * Owns a session with the ETW provider of ONNX Runtime. The events of the provider are paired into
 * spans (recording/onnx_events.c). Its keywords are those of sessions only: the events of runs have
 * none and always come, and those of logs and of profiling slow the runtime down.
 */
#include <limits.h>

#include <etwatch/session.h>

#include "base/alloc.h"
#include "consumer/consumer.h"
#include "probe/native.h"
#include "recording/onnx_events.h"

enum { EVENTS_PER_READ = 1 << 20 };

static const uint64_t session_keywords = 0x400000000001; /* Session, and measures of Microsoft */

struct ew_probe_etw {
    struct etwatch_consumer *consumer;
    struct ew_onnx_events events;
    uint64_t spans;
    /* Only while reading. */
    void (*on_span)(void *ctx, const struct etwatch_span *span);
    void *ctx;
    int count;
};

static void on_event(void *ctx, const struct etwatch_trace_event *event)
{
    struct ew_probe_etw *probe = ctx;
    struct etwatch_span span;
    if (!ew_recording_onnx_add(&probe->events, event, &span))
        return;
    probe->spans++;
    probe->count += probe->count < INT_MAX;
    probe->on_span(probe->ctx, &span);
}

int ew_probe_etw_open(const struct ew_etw_config *etw, struct ew_probe_etw **ret_probe,
                      struct etwatch_error_info *reterr)
{
    static const char *const name = "Microsoft.ML.ONNXRuntime";
    struct etwatch_provider provider = {
        .size = sizeof provider, .level = 5, .name = name, .keywords = session_keywords};
    struct etwatch_session_options session = {
        .size = sizeof session, .name = "onnx", .providers = &provider, .provider_count = 1};
    struct etwatch_consumer_options options = {.size = sizeof options,
                                               .session_options = &session,
                                               .providers = &name,
                                               .provider_count = 1};
    struct ew_probe_etw *probe = ew_calloc(1, sizeof *probe);
    if (probe == NULL)
        return ETWATCH_ENOMEM;
    int rc = ew_consumer_open_with(&options, etw, &probe->consumer, reterr);
    if (rc < 0) {
        ew_free(probe);
        return rc;
    }
    *ret_probe = probe;
    return 0;
}

void ew_probe_etw_close(struct ew_probe_etw *probe)
{
    if (probe == NULL)
        return;
    etwatch_consumer_free(probe->consumer);
    ew_recording_onnx_done(&probe->events);
    ew_free(probe);
}

int ew_probe_etw_read(struct ew_probe_etw *probe,
                      void (*on_span)(void *ctx, const struct etwatch_span *span), void *ctx)
{
    int rc, taken = 0;
    probe->on_span = on_span;
    probe->ctx = ctx;
    probe->count = 0;
    do {
        rc = etwatch_consumer_poll(probe->consumer, 0, on_event, probe, NULL);
        taken += rc > 0 ? rc : 0;
    } while (rc > 0 && taken < EVENTS_PER_READ);
    return rc < 0 && probe->count == 0 ? rc : probe->count;
}

void ew_probe_etw_stats(const struct ew_probe_etw *probe, struct etwatch_probes_stats *ret_stats)
{
    struct etwatch_consumer_stats session = {.size = sizeof session};
    (void)etwatch_consumer_stats(probe->consumer, &session);
    ret_stats->spans = probe->spans;
    ret_stats->lost = session.lost + probe->events.dropped;
}
