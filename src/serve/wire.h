/* SPDX-License-Identifier: MIT */
/*
 * What the collecting process sends to the serving process: frames of a length, a type and a body.
 * Both ends are the same program, so layouts need no version; the reader is bounded all the same.
 *
 * Details (the scheduling of single processes, stacks) are too much to send all the time. The
 * serving process requests them from a third process (server.h) with a struct ew_serve_request, and
 * gets frames as well.
 */
#ifndef EW_SERVE_WIRE_H
#define EW_SERVE_WIRE_H

#include <etwatch/device.h>
#include <etwatch/etwatch.h>
#include <etwatch/span.h>
#include <etwatch/system.h>

#include "base/buf.h"
#include "base/bytes.h"

enum ew_frame_type {
    EW_FRAME_META = 1,
    EW_FRAME_SAMPLE,
    EW_FRAME_LOSS,
    EW_FRAME_ALERT,
    EW_FRAME_SYSTEM,
    EW_FRAME_STATS,
    EW_FRAME_END, /* a recording was read to its end */
    EW_FRAME_DEVICE,
    EW_FRAME_SCHED,      /* details: an array of struct ew_serve_event */
    EW_FRAME_STACKS,     /* details: a part of the folded stacks */
    EW_FRAME_DETAIL_END, /* details: struct ew_serve_detail_end */
    EW_FRAME_SPAN,
};

enum { EW_FRAME_MAX = 1 << 20 };

/* The machine and the source. */
struct ew_serve_meta {
    struct etwatch_meta meta;
    bool recorded; /* from files: time is that of the recording */
    char host[128], os[128];
    bool inferences, marks; /* --onnx, --spans */
};

void ew_wire_meta(struct ew_buf *out, const struct ew_serve_meta *meta);
void ew_wire_sample(struct ew_buf *out, const struct etwatch_sample *sample);
void ew_wire_loss(struct ew_buf *out, const struct etwatch_loss *loss);
/* text: the alert in words. */
void ew_wire_alert(struct ew_buf *out, const struct etwatch_alert *alert, const char *text);
void ew_wire_system(struct ew_buf *out, const struct etwatch_system *system);
void ew_wire_stats(struct ew_buf *out, const struct etwatch_stats *stats);
void ew_wire_end(struct ew_buf *out);

/* One alert without its threads. */
struct ew_serve_alert {
    uint32_t pid;
    bool ended;
    uint64_t start_ns, from_ns, to_ns;
    double value, peak, threshold;
    char metric[32], condition[96], name[64], text[256];
};

/* One reading of a device, without its processes. */
struct ew_serve_device {
    uint32_t kind, flags, index;
    uint64_t t_ns, dt_ns;
    struct etwatch_metric_set has, estimated;
    uint64_t values[ETWATCH_DEVICE_METRIC_COUNT]; /* raw bits */
    char driver[32], id[64], name[96], problem[160];
};

/* An explained span is shorter than this (104 days). */
#define EW_SERVE_SPAN_NS_MAX (UINT64_C(1) << 53)

/* An explained span. */
struct ew_serve_span {
    struct etwatch_span span; /* its texts are NULL */
    bool has_session;
    char name[64], session[96], shape[32];
};

enum { EW_SERVE_PIDS_MAX = 4 };

enum ew_serve_request_kind {
    EW_SERVE_SCHED = 1, /* the scheduling of the threads of these processes */
    EW_SERVE_STACKS,    /* the profile samples of one process in a recording */
};

/* A request for details. The same one again prolongs it; another one ends it. */
struct ew_serve_request {
    uint32_t kind; /* enum ew_serve_request_kind */
    uint32_t pid_count;
    uint32_t pids[EW_SERVE_PIDS_MAX];
    uint64_t from_ns, to_ns; /* Unix, of a recording; 0: no limit */
};

/* A scheduler event with what the strip shows of it. */
struct ew_serve_event {
    uint64_t t_ns;
    uint32_t pid, tid, next_pid, next_tid;
    uint64_t ready_ns; /* UINT64_MAX: unknown */
    uint32_t kind;     /* enum etwatch_event_kind */
    uint32_t cpu, state, reserved;
    char name[16], next_name[16]; /* "": unknown */
};

enum { EW_SERVE_EVENTS_MAX = 512 }; /* of one frame */

/* The end of a request. text: "" if everything was sent, else why there is nothing or not all. */
struct ew_serve_detail_end {
    struct ew_serve_request request;
    uint64_t lost; /* events */
    char text[256];
};

void ew_wire_device(struct ew_buf *out, const struct etwatch_device *device);
void ew_wire_span(struct ew_buf *out, const struct etwatch_span *span);
/* At most EW_SERVE_EVENTS_MAX. */
void ew_wire_sched(struct ew_buf *out, const struct ew_serve_event *events, size_t count);
/* At most EW_FRAME_MAX / 2 bytes. */
void ew_wire_stacks(struct ew_buf *out, const char *text, size_t len);
void ew_wire_detail_end(struct ew_buf *out, const struct ew_serve_detail_end *end);

enum { EW_SERVE_CPUS_MAX = 128 };

struct ew_serve_system {
    struct etwatch_system system; /* its cpu_percents is NULL */
    uint32_t cpu_count;           /* entries of cpus */
    double cpus[EW_SERVE_CPUS_MAX];
};

/* A complete frame of the input: true with its type and body, and *at moves past it. False: more
 * bytes are needed, or *ret_broken. */
bool ew_wire_next(const uint8_t *bytes, size_t len, size_t *at, uint32_t *ret_type,
                  struct ew_bytes *ret_body, bool *ret_broken);
/* Bodies. False: malformed. Strings of the sample point into the body. */
bool ew_wire_read_meta(struct ew_bytes *body, struct ew_serve_meta *ret_meta);
bool ew_wire_read_sample(struct ew_bytes *body, struct etwatch_sample *ret_sample);
bool ew_wire_read_loss(struct ew_bytes *body, struct etwatch_loss *ret_loss);
bool ew_wire_read_alert(struct ew_bytes *body, struct ew_serve_alert *ret_alert);
bool ew_wire_read_system(struct ew_bytes *body, struct ew_serve_system *ret_system);
bool ew_wire_read_device(struct ew_bytes *body, struct ew_serve_device *ret_device);
bool ew_wire_read_span(struct ew_bytes *body, struct ew_serve_span *ret_span);
/* The next event of a frame; false: there is none left. */
bool ew_wire_read_event(struct ew_bytes *body, struct ew_serve_event *ret_event);
bool ew_wire_read_detail_end(struct ew_bytes *body, struct ew_serve_detail_end *ret_end);
bool ew_wire_read_stats(struct ew_bytes *body, struct etwatch_stats *ret_stats);

#endif
