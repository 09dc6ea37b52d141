/* SPDX-License-Identifier: MIT */
/*
 * Perfetto's trace format (.pftrace), written packet by packet during the run.
 *
 * Owns the packets that wait to be compressed. Invariant: only whole packets are written, each a
 * field of the file by itself, so everything written before a crash or a full disk can be read to
 * the last packet. Memory is bounded: packets wait for a full block or a flush, repeated strings
 * are interned once, and the tables of processes, threads and CPUs have maxima.
 *
 * Times in the file are those of the boot clock, as in ftrace; one clock snapshot at the start
 * relates them to Unix time, to the nanosecond.
 */
#include "sink/perfetto.h"

#include <string.h>

#include "base/alloc.h"
#include "sink/fields.h"

/* A block of this size is compressed: small enough to lose little in a crash. */
enum { BLOCK_BYTES = 64 * 1024, PACKETS_MAX = 4 * 1024 * 1024 };

size_t ew_pf_packet(struct ew_pf_sink *sink, uint64_t t_ns)
{
    size_t mark = ew_proto_begin(&sink->packets, EW_PF_TRACE_PACKET);
    ew_proto_u64(&sink->packets, EW_PF_TIMESTAMP, t_ns - sink->unix_minus_boot_ns);
    ew_proto_u64(&sink->packets, EW_PF_SEQUENCE_ID, EW_PF_SEQUENCE);
    ew_proto_u64(&sink->packets, EW_PF_SEQUENCE_FLAGS, EW_PF_SEQ_NEEDS_STATE);
    return mark;
}

void ew_pf_packet_end(struct ew_pf_sink *sink, size_t mark)
{
    ew_proto_end(&sink->packets, mark);
    ew_pf_pack(sink, false);
}

void ew_pf_pack(struct ew_pf_sink *sink, bool all)
{
    struct ew_buf *packets = &sink->packets, *out = &sink->base.out;
    if (packets->error != 0 && out->error == 0)
        out->error = packets->error;
    if (out->error != 0 || packets->len == 0 || (!all && packets->len < BLOCK_BYTES))
        return;
    size_t from = out->len;
    size_t outer = ew_proto_begin(out, EW_PF_TRACE_PACKET);
    size_t inner = ew_proto_begin(out, EW_PF_COMPRESSED);
    bool compressed = sink->compressor != NULL && !sink->etw &&
                      ew_deflate_put(sink->compressor, packets->data, packets->len, out);
    if (compressed) {
        ew_proto_end(out, inner);
        ew_proto_end(out, outer);
    }
    if (!compressed || out->len - from >= packets->len) {
        out->len = from;
        ew_buf_bytes(out, packets->data, packets->len);
    }
    packets->len = 0;
    ew_buf_end_line(out);
}

/* ---------------------------------------------------------------- start of a trace */

static void put_interned(struct ew_buf *out, uint32_t kind, uint32_t iid, const char *name)
{
    size_t mark = ew_proto_begin(out, kind);
    ew_proto_u64(out, 1, iid);
    ew_proto_text(out, 2, name);
    ew_proto_end(out, mark);
}

static void put_interned_all(struct ew_buf *out)
{
    static const char *const events[] = {
#define EW_X(name) #name,
        EW_PF_EVENTS(EW_X)
#undef EW_X
    };
    static const char *const values[] = {
#define EW_X(name) #name,
        EW_PF_VALUES(EW_X)
#undef EW_X
    };
    put_interned(out, EW_PF_INTERNED_CATEGORY, 1, "etwatch");
    for (uint32_t i = 0; i < EW_PF_EVENT_COUNT; i++)
        put_interned(out, EW_PF_INTERNED_EVENT_NAME, i + 1, events[i]);
    for (uint32_t i = 0; i < EW_PF_VALUE_COUNT; i++)
        put_interned(out, EW_PF_INTERNED_ANNOTATION_NAME, i + 1, values[i]);
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        put_interned(out, EW_PF_INTERNED_ANNOTATION_NAME, EW_PF_METRIC_IID + i,
                     ew_sink_metric_info[i].name);
}

static void put_clock(struct ew_buf *out, uint32_t id, uint64_t t_ns)
{
    size_t mark = ew_proto_begin(out, 1);
    ew_proto_u64(out, 1, id);
    ew_proto_u64(out, 2, t_ns);
    ew_proto_end(out, mark);
}

static void put_clocks(struct ew_pf_sink *sink)
{
    struct ew_buf *out = &sink->packets;
    size_t packet = ew_proto_begin(out, EW_PF_TRACE_PACKET);
    size_t snapshot = ew_proto_begin(out, EW_PF_CLOCK_SNAPSHOT);
    put_clock(out, EW_PF_CLOCK_BOOTTIME, sink->meta.anchor_unix_ns - sink->unix_minus_boot_ns);
    put_clock(out, EW_PF_CLOCK_REALTIME, sink->meta.anchor_unix_ns);
    ew_proto_u64(out, 2, EW_PF_CLOCK_BOOTTIME);
    ew_proto_end(out, snapshot);
    ew_proto_end(out, packet);
}

/* "Linux 6.1.0": Perfetto interprets thread states by the kernel version. */
static void put_system(struct ew_pf_sink *sink)
{
    struct ew_buf *out = &sink->packets;
    const char *os = sink->base.os, *blank = os != NULL ? strchr(os, ' ') : NULL;
    size_t packet = ew_proto_begin(out, EW_PF_TRACE_PACKET);
    size_t info = ew_proto_begin(out, EW_PF_SYSTEM_INFO);
    if (os != NULL) {
        size_t name = ew_proto_begin(out, 1);
        ew_proto_bytes(out, 1, os, blank != NULL ? (size_t)(blank - os) : strlen(os));
        if (blank != NULL)
            ew_proto_text(out, 3, blank + 1);
        ew_proto_end(out, name);
    }
    if (sink->meta.cpu_count > 0)
        ew_proto_u64(out, 8, sink->meta.cpu_count);
    if (sink->base.host != NULL)
        ew_proto_text(out, 17, sink->base.host);
    ew_proto_end(out, info);
    ew_proto_end(out, packet);
}

static void put_state(struct ew_pf_sink *sink)
{
    struct ew_buf *out = &sink->packets;
    size_t packet = ew_proto_begin(out, EW_PF_TRACE_PACKET);
    ew_proto_u64(out, EW_PF_SEQUENCE_ID, EW_PF_SEQUENCE);
    ew_proto_u64(out, EW_PF_SEQUENCE_FLAGS, EW_PF_SEQ_CLEARED);
    size_t interned = ew_proto_begin(out, EW_PF_INTERNED_DATA);
    put_interned_all(out);
    ew_proto_end(out, interned);
    ew_proto_end(out, packet);
    packet = ew_proto_begin(out, EW_PF_TRACE_PACKET);
    ew_proto_u64(out, EW_PF_SEQUENCE_ID, EW_PF_SEQUENCE);
    size_t track = ew_proto_begin(out, EW_PF_TRACK_DESCRIPTOR);
    ew_proto_u64(out, EW_PF_TRACK_UUID, EW_PF_OWN_TRACK);
    ew_proto_text(out, EW_PF_TRACK_NAME, "etwatch");
    ew_proto_end(out, track);
    ew_proto_end(out, packet);
}

static void put_meta_instant(struct ew_pf_sink *sink)
{
    const struct etwatch_meta *meta = &sink->meta;
    size_t inner;
    size_t packet =
        ew_pf_instant(sink, meta->anchor_unix_ns, EW_PF_OWN_TRACK, EW_PF_E_meta, &inner);
    ew_pf_put_named_text(sink, "version", etwatch_version());
    ew_pf_put_u64(sink, EW_PF_IID(source), meta->source);
    ew_pf_put_named(sink, "cpu_count", meta->cpu_count);
    ew_pf_put_named_double(sink, "hz_requested", meta->hz_requested);
    ew_pf_put_named(sink, "anchor_unix_ns", meta->anchor_unix_ns);
    ew_pf_put_named(sink, "anchor_raw_ns", meta->anchor_raw_ns);
    static const char *const estimated[] = EW_PF_SET_NAMES("estimated");
    static const char *const available[] = EW_PF_SET_NAMES("available");
    ew_pf_put_named(sink, estimated[0], meta->estimated.words[0]);
    ew_pf_put_set_rest(sink, estimated, &meta->estimated);
    ew_pf_put_named(sink, available[0], meta->available.words[0]);
    ew_pf_put_set_rest(sink, available, &meta->available);
    if (meta->fallback[0] != '\0')
        ew_pf_put_named_text(sink, "fallback", meta->fallback);
    if (sink->base.os != NULL)
        ew_pf_put_named_text(sink, "os", sink->base.os);
    if (sink->base.host != NULL)
        ew_pf_put_named_text(sink, "host", sink->base.host);
    ew_proto_end(&sink->packets, inner);
    ew_pf_packet_end(sink, packet);
}

void ew_pf_begin(struct ew_pf_sink *sink)
{
    if (sink->begun)
        return;
    sink->begun = true;
    put_clocks(sink);
    put_system(sink);
    put_state(sink);
    if (sink->meta.size != 0)
        put_meta_instant(sink);
}

/* -------------------------------------------------------------------- calls */

static int init(struct etwatch_sink *base, const struct etwatch_sink_options *options,
                struct ew_error *reterr)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    (void)options;
    (void)reterr;
    ew_buf_init(&sink->packets, PACKETS_MAX, NULL, NULL);
    sink->compressor = ew_deflate_new();
    sink->next_uuid = 64;
    return 0;
}

static void done(struct etwatch_sink *base)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    ew_pf_sched_done(sink);
    ew_pf_rows_done(&sink->rows);
    ew_pf_devices_done(sink);
    ew_pf_spans_done(sink);
    ew_pf_gpu_done(sink);
    ew_deflate_free(sink->compressor);
    ew_buf_done(&sink->packets);
}

static void put_meta(struct etwatch_sink *base, const struct etwatch_meta *meta)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    sink->meta = *meta;
    sink->unix_minus_boot_ns = meta->anchor_unix_ns - meta->anchor_raw_ns;
    ew_pf_begin(sink);
}

static void put_loss(struct etwatch_sink *base, const struct etwatch_loss *loss)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    size_t inner;
    ew_pf_begin(sink);
    ew_pf_sched_flush(sink); /* earlier events must precede it */
    size_t packet = ew_pf_instant(sink, loss->to_ns, EW_PF_OWN_TRACK, EW_PF_E_loss, &inner);
    ew_pf_put_u64(sink, EW_PF_IID(stage), loss->stage);
    ew_pf_put_u64(sink, EW_PF_IID(count), loss->count);
    ew_pf_put_u64(sink, EW_PF_IID(from_ns), loss->from_ns);
    ew_pf_put_u64(sink, EW_PF_IID(to_ns), loss->to_ns);
    ew_proto_end(&sink->packets, inner);
    ew_pf_packet_end(sink, packet);
    sink->stream_lost = sink->stream_lost || loss->stage == ETWATCH_LOSS_STREAM;
}

/* On the track of its process, at the time from which the condition held. */
static void put_alert(struct etwatch_sink *base, const struct etwatch_alert *alert)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    const struct ew_pf_row *row = ew_pf_rows_find(&sink->rows, alert->pid, alert->start_ns, 0);
    size_t inner;
    /* Not before the start of its process, even if the window starts earlier. */
    uint64_t t_ns =
        row != NULL && alert->from_ns <= row->shown_ns ? row->shown_ns + 1 : alert->from_ns;
    ew_pf_begin(sink);
    size_t packet = ew_pf_instant(
        sink, t_ns, row != NULL ? row->uuid + 1 : (uint64_t)EW_PF_OWN_TRACK, EW_PF_E_alert, &inner);
    ew_pf_put_named_text(sink, "condition", alert->condition != NULL ? alert->condition : "");
    ew_pf_put_u64(sink, EW_PF_IID(pid), alert->pid);
    ew_pf_put_u64(sink, EW_PF_IID(start_ns), alert->start_ns);
    ew_pf_put_u64(sink, EW_PF_IID(flags), alert->flags);
    ew_pf_put_u64(sink, EW_PF_IID(from_ns), alert->from_ns);
    ew_pf_put_u64(sink, EW_PF_IID(to_ns), alert->to_ns);
    if (alert->name != NULL)
        ew_pf_put_text(sink, EW_PF_IID(name), alert->name);
    ew_pf_put_named_double(sink, "threshold", alert->threshold);
    ew_pf_put_named_double(sink, "value", alert->value);
    ew_pf_put_named_double(sink, "peak", alert->peak);
    ew_proto_end(&sink->packets, inner);
    ew_pf_packet_end(sink, packet);
}

static void put_stats(struct etwatch_sink *base, const struct etwatch_stats *stats)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    uint64_t end_ns = sink->meta.anchor_unix_ns + stats->duration_ns;
    size_t inner;
    ew_pf_begin(sink);
    ew_pf_sched_flush(sink);
    ew_pf_gpu_flush(sink, true);
    ew_pf_end_counters(sink);
    size_t packet = ew_pf_instant(sink, end_ns, EW_PF_OWN_TRACK, EW_PF_E_stats, &inner);
#define PUT(name) ew_pf_put_named(sink, #name, stats->name)
#define PUT_DOUBLE(name) ew_pf_put_named_double(sink, #name, stats->name)
    PUT(source);
    PUT_DOUBLE(hz_requested);
    PUT_DOUBLE(hz_reached);
    PUT_DOUBLE(hz_effective);
    PUT(samples);
    PUT(events);
    PUT(lost);
    PUT(undecoded);
    PUT(late);
    PUT(processes);
    PUT(threads);
    PUT(duration_ns);
    PUT(queue_dropped);
    /* The cost of reading a recording is not part of its content. */
    if (stats->source != ETWATCH_SOURCE_ETL) {
        PUT(wakeups);
        PUT(self_rss_bytes);
        PUT(self_rss_peak_bytes);
        PUT_DOUBLE(self_cpu_percent);
        PUT_DOUBLE(self_kernel_percent);
    }
#undef PUT_DOUBLE
#undef PUT
    ew_proto_end(&sink->packets, inner);
    ew_pf_packet_end(sink, packet);
    ew_pf_pack(sink, true);
}

static void flush(struct etwatch_sink *base)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    ew_pf_sched_flush(sink);
    ew_pf_gpu_flush(sink, false);
    ew_pf_pack(sink, true);
}

/* Output from here on can be read without the earlier output. */
static void restart(struct etwatch_sink *base)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    flush(base);
    ew_pf_sched_done(sink);
    sink->begun = false;
    ew_pf_begin(sink);
    ew_pf_devices_again(sink);
    ew_pf_spans_again(sink);
    ew_pf_gpu_again(sink);
    ew_pf_describe_again(sink);
}

static void end(struct etwatch_sink *base)
{
    flush(base);
}

const struct ew_sink_ops ew_sink_perfetto = {
    .size = sizeof(struct ew_pf_sink),
    .init = init,
    .done = done,
    .meta = put_meta,
    .sample = ew_pf_sample,
    .event = ew_pf_event,
    .loss = put_loss,
    .alert = put_alert,
    .device = ew_pf_device,
    .span = ew_pf_span,
    .oper = ew_pf_operator,
    .gpu_op = ew_pf_gpu_op,
    .stats = put_stats,
    .trace = ew_pf_trace,
    .process = ew_pf_total,
    .trace_event = ew_pf_trace_event,
    .end = end,
    .flush = flush,
    .restart = restart,
    .name = ew_pf_name,
    .wants_fields = ew_pf_wants_fields,
};
