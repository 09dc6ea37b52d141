/* SPDX-License-Identifier: MIT */
/*
 * Spans and operators in a Perfetto trace: slices on two tracks below each thread, because the
 * profile that operators come from has whole microseconds, and a slice must not end after the one
 * that contains it. Asynchronous spans may overlap: they have tracks of their own. The table of
 * threads is bounded; beyond it spans are not shown.
 */
#include "base/alloc.h"
#include "sink/perfetto.h"

enum { THREADS_MAX = 4096, LANES = 8, TRACK_SPANS = 1, TRACK_OPERATORS = 2, TRACK_LANES = 3 };

struct ew_pf_span_thread {
    uint32_t pid, tid;
    uint64_t uuid;      /* of the thread; its tracks follow */
    uint32_t described; /* a bit for each track */
    uint64_t lane_end_ns[LANES];
};

void ew_pf_spans_done(struct ew_pf_sink *sink)
{
    ew_free(sink->span_threads);
    sink->span_threads = NULL;
    sink->span_thread_count = 0;
}

void ew_pf_spans_again(struct ew_pf_sink *sink)
{
    for (uint32_t i = 0; i < sink->span_thread_count; i++)
        sink->span_threads[i].described = 0;
}

static struct ew_pf_span_thread *find(struct ew_pf_sink *sink, uint32_t pid, uint32_t tid)
{
    struct ew_pf_span_thread *threads = sink->span_threads;
    uint32_t count = sink->span_thread_count;
    if (sink->span_last < count && threads[sink->span_last].tid == tid &&
        threads[sink->span_last].pid == pid)
        return &threads[sink->span_last];
    for (uint32_t i = 0; i < count; i++)
        if (threads[i].pid == pid && threads[i].tid == tid) {
            sink->span_last = i;
            return &threads[i];
        }
    if (threads == NULL)
        sink->span_threads = threads = ew_calloc(THREADS_MAX, sizeof *threads);
    if (threads == NULL || count == THREADS_MAX)
        return NULL;
    threads[count] = (struct ew_pf_span_thread){.pid = pid, .tid = tid, .uuid = sink->next_uuid};
    sink->next_uuid += TRACK_LANES + LANES;
    sink->span_last = count;
    sink->span_thread_count++;
    return &threads[count];
}

static void describe(struct ew_pf_sink *sink, struct ew_pf_span_thread *thread, uint32_t number,
                     const char *name, const char *thread_name)
{
    struct ew_buf *out = &sink->packets;
    if ((thread->described >> number & 1) != 0)
        return;
    thread->described |= 1u << number;
    size_t packet = ew_proto_begin(out, EW_PF_TRACE_PACKET);
    ew_proto_u64(out, EW_PF_SEQUENCE_ID, EW_PF_SEQUENCE);
    size_t track = ew_proto_begin(out, EW_PF_TRACK_DESCRIPTOR);
    ew_proto_u64(out, EW_PF_TRACK_UUID, thread->uuid + number);
    if (number == 0) {
        size_t inner = ew_proto_begin(out, EW_PF_TRACK_THREAD);
        ew_proto_u64(out, 1, thread->pid);
        ew_proto_u64(out, 2, thread->tid);
        if (thread_name != NULL)
            ew_proto_text(out, 5, thread_name);
        ew_proto_end(out, inner);
    } else {
        ew_proto_u64(out, EW_PF_TRACK_PARENT, thread->uuid);
        ew_proto_text(out, EW_PF_TRACK_NAME, name);
    }
    ew_proto_end(out, track);
    ew_pf_packet_end(sink, packet);
}

static void put_causes(struct ew_pf_sink *sink, const struct etwatch_span *span)
{
    static const char *const names[ETWATCH_CAUSE_COUNT] = {
        "work_ns",      "runq_wait_ns",    "throttled_ns", "fault_ns",  "disk_wait_ns",
        "lock_wait_ns", "process_wait_ns", "sleep_ns",     "unknown_ns"};
    bool faults = (span->flags & ETWATCH_SPAN_HAS_FAULTS) != 0;
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++)
        if (i == ETWATCH_CAUSE_FAULT ? faults : span->ns[i] > 0)
            ew_pf_put_named(sink, names[i], span->ns[i]);
}

/* category: NULL for none. */
static size_t begin_slice(struct ew_pf_sink *sink, uint64_t track, uint64_t t_ns, const char *name,
                          const char *category, size_t *ret_inner)
{
    struct ew_buf *out = &sink->packets;
    size_t packet = ew_pf_packet(sink, t_ns);
    *ret_inner = ew_proto_begin(out, EW_PF_TRACK_EVENT);
    ew_proto_u64(out, EW_PF_EVENT_TYPE, EW_PF_TYPE_BEGIN);
    ew_proto_u64(out, EW_PF_EVENT_TRACK, track);
    ew_proto_text(out, EW_PF_EVENT_NAME, name);
    if (category != NULL)
        ew_proto_text(out, EW_PF_EVENT_CATEGORY, category);
    return packet;
}

static void end_slice(struct ew_pf_sink *sink, uint64_t track, uint64_t t_ns)
{
    struct ew_buf *out = &sink->packets;
    size_t packet = ew_pf_packet(sink, t_ns);
    size_t inner = ew_proto_begin(out, EW_PF_TRACK_EVENT);
    ew_proto_u64(out, EW_PF_EVENT_TYPE, EW_PF_TYPE_END);
    ew_proto_u64(out, EW_PF_EVENT_TRACK, track);
    ew_proto_end(out, inner);
    ew_pf_packet_end(sink, packet);
    ew_pf_pack(sink, false);
}

/* Spans come by their end, so a span is free of overlap if it begins after the last one ended. */
static uint32_t lane_of(struct ew_pf_span_thread *thread, const struct etwatch_span *span)
{
    uint32_t lane = 0;
    while (lane + 1 < LANES && thread->lane_end_ns[lane] > span->start_ns)
        lane++;
    thread->lane_end_ns[lane] = span->end_ns;
    return lane;
}

void ew_pf_span(struct etwatch_sink *base, const struct etwatch_span *span)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    ew_pf_begin(sink);
    struct ew_pf_span_thread *thread = find(sink, span->pid, span->tid);
    if (thread == NULL)
        return;
    bool async = (span->flags & ETWATCH_SPAN_ASYNC) != 0;
    uint32_t number = async ? TRACK_LANES + lane_of(thread, span) : TRACK_SPANS;
    describe(sink, thread, 0, NULL, span->thread_name);
    describe(sink, thread, number, async ? "asynchronous inferences" : "inferences and spans",
             NULL);
    size_t inner;
    size_t packet = begin_slice(sink, thread->uuid + number, span->start_ns, span->name,
                                etwatch_span_kind_name(span->kind), &inner);
    if (span->session != NULL)
        ew_pf_put_named_text(sink, "session", span->session);
    if (span->shape != NULL)
        ew_pf_put_named_text(sink, "shape", span->shape);
    if ((span->flags & ETWATCH_SPAN_FAILED) != 0)
        ew_pf_put_named_text(sink, "result", "failed");
    ew_pf_put_named(sink, "dt_ns", span->end_ns - span->start_ns);
    ew_pf_put_named(sink, "cpu_ns", span->cpu_ns);
    put_causes(sink, span);
    if ((span->flags & ETWATCH_SPAN_HAS_GPU) != 0) {
        ew_pf_put_named(sink, "gpu_ns", span->gpu_ns);
        ew_pf_put_named(sink, "wait_gpu_ns", span->wait_gpu_ns);
        ew_pf_put_named(sink, "gpu_kernels", span->gpu_kernels);
    }
    ew_proto_end(&sink->packets, inner);
    ew_pf_packet_end(sink, packet);
    end_slice(sink, thread->uuid + number, span->end_ns);
}

void ew_pf_operator(struct etwatch_sink *base, const struct etwatch_operator *op)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    const struct etwatch_span *span = op->span;
    ew_pf_begin(sink);
    struct ew_pf_span_thread *thread = find(sink, span->pid, span->tid);
    if (thread == NULL)
        return;
    describe(sink, thread, 0, NULL, span->thread_name);
    describe(sink, thread, TRACK_OPERATORS, "operators", NULL);
    size_t inner;
    size_t packet = begin_slice(sink, thread->uuid + TRACK_OPERATORS, span->start_ns,
                                op->node == NULL ? "" : op->node, NULL, &inner);
    ew_pf_put_named_text(sink, "operator", span->name);
    if (op->provider != NULL)
        ew_pf_put_named_text(sink, "provider", op->provider);
    if (op->pool_percent >= 0 && op->pool_threads > 0)
        ew_pf_put_named_double(sink, "pool_percent", op->pool_percent);
    put_causes(sink, span);
    ew_proto_end(&sink->packets, inner);
    ew_pf_packet_end(sink, packet);
    end_slice(sink, thread->uuid + TRACK_OPERATORS, span->end_ns);
}
