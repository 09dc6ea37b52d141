/* SPDX-License-Identifier: MIT */
/*
 * Inferences in the events of ONNX Runtime's own ETW provider, Microsoft.ML.ONNXRuntime. The
 * runtime logs EvaluationStart and EvaluationStop around each run, on the thread that executes it,
 * and events around the creation of a session. Pairs of them become spans; nothing else is kept
 * than what has begun and the names of sessions, and both are bounded.
 */
#ifndef EW_RECORDING_ONNX_EVENTS_H
#define EW_RECORDING_ONNX_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <etwatch/span.h>
#include <etwatch/trace.h>

enum {
    EW_ONNX_OPEN_MAX = 4096, /* runs and creations at a time */
    EW_ONNX_SESSIONS_MAX = 4096,
    EW_ONNX_NAME_SIZE = 64,
};

struct ew_onnx_open;
struct ew_onnx_session;

/* Zeroed is empty. */
struct ew_onnx_events {
    struct ew_onnx_open *open;
    uint32_t open_count, open_size;
    struct ew_onnx_session *sessions;
    uint32_t session_count, session_size;
    uint64_t dropped; /* found no room */
};

void ew_recording_onnx_done(struct ew_onnx_events *events);
/* Whether the event is of the provider: then it needs its fields. */
bool ew_recording_onnx_wants(const struct etwatch_trace_event *event);
/* True: the event ended a run or the creation of a session, which is in ret_span; its strings are
 * valid until the next call. Events come in the order of their time, with their fields. */
bool ew_recording_onnx_add(struct ew_onnx_events *events, const struct etwatch_trace_event *event,
                           struct etwatch_span *ret_span);

#endif
