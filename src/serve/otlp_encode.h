/* SPDX-License-Identifier: MIT */
/*
 * One export: an OTLP ExportMetricsServiceRequest with what /metrics shows at the same instant,
 * under the names of OpenTelemetry's conventions. One walk writes protobuf or JSON, so both say the
 * same.
 *
 * The host is one resource; groups of processes are data points of it with the attribute
 * process.executable.name, and with --prom-pid-label each process is a resource of its own. Metrics
 * are in scopes by exactness (attribute etwatch.exactness: exact, polled, estimated), which costs
 * nothing per data point. Amounts that add up over processes are sums, other gauges are gauges.
 */
#ifndef EW_SERVE_OTLP_ENCODE_H
#define EW_SERVE_OTLP_ENCODE_H

#include "serve/state.h"

struct ew_otlp_attribute {
    const char *key, *value;
};

/* What the export before had, for delta temporality. */
struct ew_otlp_base {
    uint64_t serial; /* of the group; 0 in a free entry */
    uint64_t counters[ETWATCH_METRIC_COUNT];
    uint64_t started, exited;
};

enum { EW_OTLP_SELF_COUNT = 6 }; /* counters of etwatch itself */

struct ew_otlp_encoder {
    bool json;
    bool delta; /* counters; sums that may fall are always cumulative */
    const struct ew_otlp_attribute *attributes; /* of the resource: they replace those of etwatch */
    uint32_t attribute_count;
    /* Of the latest export; zero at first, freed by ew_otlp_encoder_done. */
    uint64_t last_ns;
    struct ew_otlp_base *bases, other;
    uint32_t base_size;
    uint64_t system[ETWATCH_SYSTEM_METRIC_COUNT];
    uint64_t self[EW_OTLP_SELF_COUNT];
    uint64_t (*devices)[ETWATCH_DEVICE_METRIC_COUNT]; /* EW_STATE_DEVICES_MAX of them */
};

/* Appends the export as of t_ns. Returns 0 and the number of data points, or a negative code; the
 * next delta then begins where this one did. */
int ew_otlp_encode(struct ew_otlp_encoder *encoder, const struct ew_state *state, uint64_t t_ns,
                   struct ew_buf *out, uint64_t *ret_points);
void ew_otlp_encoder_done(struct ew_otlp_encoder *encoder);

/* What a receiver answered to an accepted export: how many data points it refused, and why.
 * Malformed bytes are no refusal. */
void ew_otlp_read_answer(bool json, const void *bytes, size_t len, uint64_t *ret_rejected,
                         char *ret_message, size_t message_size);

#endif
