/* SPDX-License-Identifier: MIT */
/* Writes small recordings by hand, one event after the other. */
#ifndef MAKE_HAND_H
#define MAKE_HAND_H

#include "make_etl.h"

struct hand {
    struct ew_etl_writer *writer;
    uint64_t now;
    int error;
    uint32_t pointer_size;
    uint32_t pid, tid; /* of the headers */
    struct etl_payload payload, extended, schema;
};

static inline int hand_begin(struct hand *h, const struct make_options *o,
                             struct make_output *output)
{
    struct ew_etl_writer_config config = make_config(o, output);
    config.buffer_bytes = o->buffer_bytes ? o->buffer_bytes : 16384;
    *h = (struct hand){
        .now = config.start_raw + 100, .pointer_size = o->pointer_size, .pid = 4000, .tid = 4004};
    return ew_etl_writer_new(&config, &h->writer);
}

static inline int hand_end(struct hand *h, uint32_t events_lost, uint32_t buffers_lost)
{
    int rc = h->error;
    if (rc == 0)
        rc = ew_etl_writer_finish(h->writer, h->now, events_lost, buffers_lost);
    ew_etl_writer_free(h->writer);
    return rc;
}

/* Fills in the common fields of all events here, and the current payload. */
static inline void hand_put(struct hand *h, struct ew_etl_event event)
{
    h->now += 1000;
    event.t_raw = h->now;
    event.pid = h->pid;
    event.tid = h->tid;
    event.payload = h->payload.bytes;
    event.payload_size = h->payload.size;
    int rc = ew_etl_write(h->writer, &event);
    if (rc < 0 && h->error == 0)
        h->error = rc;
}

static inline void hand_put_kernel(struct hand *h, unsigned ptr, unsigned hook, unsigned version)
{
    h->now += 1000;
    int rc =
        etl_write_kernel(h->writer, ptr, hook, version, 0, h->now, h->pid, h->tid, &h->payload);
    if (rc < 0 && h->error == 0)
        h->error = rc;
}

#endif
