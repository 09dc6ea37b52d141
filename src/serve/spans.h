/* SPDX-License-Identifier: MIT */
/*
 * The latest spans (--onnx, --spans) with their causes, of all processes together: a ring of a
 * stated size that exists once there is a span. Statistics of a range are computed when they are
 * requested, by the same code as those of `run --onnx`, so both state the same.
 */
#ifndef EW_SERVE_SPANS_H
#define EW_SERVE_SPANS_H

#include "base/buf.h"
#include "serve/wire.h"

enum {
    EW_LATEST_SPANS_MAX = 16384,   /* 10 MB */
    EW_LATEST_SPANS_GROUPS = 64,   /* of a response; spans of more names are counted in `others` */
    EW_LATEST_SPANS_SLOWEST = 20,  /* of a response */
    EW_LATEST_SPANS_BUCKETS = 120, /* of the timeline of a response */
};

struct ew_latest_spans {
    struct ew_serve_span *spans; /* NULL: none yet */
    uint64_t count;              /* ever; the newest is at (count - 1) % EW_LATEST_SPANS_MAX */
    uint64_t dropped;            /* no memory */
};

/* Spans of which process, and those that ended when (from_ns < end_ns <= to_ns). */
struct ew_latest_spans_query {
    uint32_t pid;              /* 0: of all processes; a group is then of one process */
    uint64_t born_ns, exit_ns; /* life of the process; exit_ns 0: alive */
    uint64_t from_ns, to_ns;
};

void ew_latest_spans_add(struct ew_latest_spans *ring, const struct ew_serve_span *span);
void ew_latest_spans_done(struct ew_latest_spans *ring);
/* The JSON of a range. 0 or ETWATCH_ENOMEM. */
int ew_latest_spans_put(const struct ew_latest_spans *ring,
                        const struct ew_latest_spans_query *query, struct ew_buf *out);

#endif
