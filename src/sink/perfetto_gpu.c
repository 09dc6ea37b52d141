/* SPDX-License-Identifier: MIT */
/*
 * GPU operations in a Perfetto trace: a track for each stream below its process, the calls, waits
 * and ranges on the tracks of their threads, and a flow from each call to what it launched.
 *
 * Perfetto takes two tracks with the same pid for two processes, so the tracks of streams hang
 * below the track that the samples of the process have. Operations wait until the start of their
 * process was delivered. Tables are bounded: what finds no track is not shown.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sink/perfetto.h"

enum { TRACKS_MAX = 4096, WAITING_MAX = 1 << 16, CALLS = 1 << 12 };

struct track {
    uint32_t pid, tid; /* tid 0: a stream */
    uint32_t device, context, stream;
    uint64_t uuid, parent;
    bool described;
};

struct ew_pf_gpu {
    struct track tracks[TRACKS_MAX];
    uint32_t count, last;
    struct etwatch_gpu_op *waiting; /* their names are own copies */
    uint32_t waiting_count, waiting_size;
    uint64_t shown_calls[CALLS]; /* pid and correlation id: a call may launch several operations */
};

void ew_pf_gpu_done(struct ew_pf_sink *sink)
{
    for (uint32_t i = 0; sink->gpu != NULL && i < sink->gpu->waiting_count; i++)
        ew_free((char *)(uintptr_t)sink->gpu->waiting[i].name);
    if (sink->gpu != NULL)
        ew_free(sink->gpu->waiting);
    ew_free(sink->gpu);
    sink->gpu = NULL;
}

void ew_pf_gpu_again(struct ew_pf_sink *sink)
{
    for (uint32_t i = 0; sink->gpu != NULL && i < sink->gpu->count; i++)
        sink->gpu->tracks[i].described = false;
}

/* The track of the newest process with this pid; 0: it has none yet. */
static uint64_t process_track(const struct ew_pf_sink *sink, uint32_t pid)
{
    for (const struct ew_pf_row *row = sink->rows.last; row != NULL; row = row->before)
        if (row->pid == pid && row->tid == 0)
            return row->uuid;
    return 0;
}

static bool same(const struct track *track, const struct track *wanted)
{
    return track->pid == wanted->pid && track->tid == wanted->tid &&
           track->device == wanted->device && track->context == wanted->context &&
           track->stream == wanted->stream;
}

static void describe(struct ew_pf_sink *sink, struct track *track)
{
    struct ew_buf *out = &sink->packets;
    char name[64];
    size_t packet = ew_proto_begin(out, EW_PF_TRACE_PACKET);
    ew_proto_u64(out, EW_PF_SEQUENCE_ID, EW_PF_SEQUENCE);
    size_t inner = ew_proto_begin(out, EW_PF_TRACK_DESCRIPTOR);
    ew_proto_u64(out, EW_PF_TRACK_UUID, track->uuid);
    if (track->tid != 0) {
        size_t thread = ew_proto_begin(out, EW_PF_TRACK_THREAD);
        ew_proto_u64(out, 1, track->pid);
        ew_proto_u64(out, 2, track->tid);
        ew_proto_end(out, thread);
    } else {
        (void)snprintf(name, sizeof name, "GPU %u stream %u", track->device, track->stream);
        ew_proto_u64(out, EW_PF_TRACK_PARENT, track->parent);
        ew_proto_text(out, EW_PF_TRACK_NAME, name);
    }
    ew_proto_end(out, inner);
    ew_pf_packet_end(sink, packet);
    track->described = true;
}

/* NULL: the process is not there yet (*ret_wait), or the table is full. */
static struct track *find(struct ew_pf_sink *sink, const struct track *wanted, bool force,
                          bool *ret_wait)
{
    struct ew_pf_gpu *gpu = sink->gpu;
    struct track *track = NULL;
    for (uint32_t i = 0; i < gpu->count && track == NULL; i++) {
        uint32_t at = (gpu->last + i) % gpu->count;
        if (same(&gpu->tracks[at], wanted)) {
            gpu->last = at;
            track = &gpu->tracks[at];
        }
    }
    if (track == NULL) {
        uint64_t parent = process_track(sink, wanted->pid);
        *ret_wait = parent == 0 && !force;
        if (*ret_wait || gpu->count == TRACKS_MAX)
            return NULL;
        gpu->last = gpu->count;
        track = &gpu->tracks[gpu->count++];
        *track = *wanted;
        track->parent = parent != 0 ? parent : (uint64_t)EW_PF_OWN_TRACK;
        track->uuid = sink->next_uuid++;
    }
    if (!track->described)
        describe(sink, track);
    return track;
}

static void put_flow(struct ew_buf *out, const struct etwatch_gpu_op *op)
{
    double bits;
    uint64_t id = (uint64_t)op->pid << 32 | op->correlation;
    memcpy(&bits, &id, sizeof bits);
    ew_proto_double(out, EW_PF_EVENT_FLOW, bits); /* a double is a fixed64 too */
}

static void put_note(struct ew_buf *out, const char *key, uint64_t value)
{
    size_t mark = ew_proto_begin(out, EW_PF_EVENT_ANNOTATION);
    ew_proto_text(out, EW_PF_ANNOTATION_NAME, key);
    ew_proto_u64(out, EW_PF_ANNOTATION_U64, value);
    ew_proto_end(out, mark);
}

static void put_slice(struct ew_pf_sink *sink, const struct track *track,
                      const struct etwatch_gpu_op *op, const char *name, uint64_t start_ns,
                      uint64_t end_ns, bool flow)
{
    struct ew_buf *out = &sink->packets;
    size_t packet = ew_pf_packet(sink, start_ns);
    size_t inner = ew_proto_begin(out, EW_PF_TRACK_EVENT);
    ew_proto_u64(out, EW_PF_EVENT_TYPE, EW_PF_TYPE_BEGIN);
    ew_proto_u64(out, EW_PF_EVENT_TRACK, track->uuid);
    ew_proto_text(out, EW_PF_EVENT_CATEGORY, "gpu");
    ew_proto_text(out, EW_PF_EVENT_NAME, name);
    if (flow)
        put_flow(out, op);
    if (track->tid == 0 && op->kind != ETWATCH_GPU_KERNEL)
        put_note(out, "bytes", op->bytes);
    if (track->tid == 0)
        put_note(out, "context", op->context);
    ew_proto_end(out, inner);
    ew_pf_packet_end(sink, packet);
    packet = ew_pf_packet(sink, end_ns);
    inner = ew_proto_begin(out, EW_PF_TRACK_EVENT);
    ew_proto_u64(out, EW_PF_EVENT_TYPE, EW_PF_TYPE_END);
    ew_proto_u64(out, EW_PF_EVENT_TRACK, track->uuid);
    ew_proto_end(out, inner);
    ew_pf_packet_end(sink, packet);
}

static const char *name_of(const struct etwatch_gpu_op *op, char *text, size_t size)
{
    const char *copy = etwatch_gpu_copy_name(op->copy);
    if (op->name != NULL)
        return op->name;
    if (op->kind == ETWATCH_GPU_COPY) {
        (void)snprintf(text, size, "copy %s", copy != NULL ? copy : "");
        return text;
    }
    if (op->kind == ETWATCH_GPU_WAIT && op->call != NULL)
        return op->call;
    const char *kind = etwatch_gpu_op_kind_name(op->kind);
    return kind != NULL ? kind : "operation";
}

/* Whether the call of this operation is not in the trace yet. */
static bool is_first(struct ew_pf_gpu *gpu, const struct etwatch_gpu_op *op)
{
    uint64_t key = (uint64_t)op->pid << 32 | op->correlation;
    uint64_t *shown = &gpu->shown_calls[(op->correlation ^ op->pid * 31u) % CALLS];
    if (*shown == key)
        return false;
    *shown = key;
    return true;
}

/* False: it has to wait for its process. */
static bool put_op(struct ew_pf_sink *sink, const struct etwatch_gpu_op *op, bool force)
{
    char text[64];
    bool wait = false, on_gpu = op->kind <= ETWATCH_GPU_SET;
    bool called = (op->flags & ETWATCH_GPU_OP_HAS_CALL) != 0 && op->tid != 0;
    const struct track thread = {.pid = op->pid, .tid = op->tid};
    const struct track stream = {
        .pid = op->pid, .device = op->device, .context = op->context, .stream = op->stream};
    const struct track *track = NULL;
    if (!on_gpu && op->tid == 0)
        return true;
    if (on_gpu ? called : op->tid != 0) {
        track = find(sink, &thread, force, &wait);
        if (wait)
            return false;
    }
    if (!on_gpu && track != NULL)
        put_slice(sink, track, op, name_of(op, text, sizeof text), op->start_ns, op->end_ns, false);
    if (!on_gpu)
        return true;
    if (track != NULL && op->call != NULL && is_first(sink->gpu, op))
        put_slice(sink, track, op, op->call, op->call_start_ns, op->call_end_ns, true);
    track = find(sink, &stream, force, &wait);
    if (track != NULL)
        put_slice(sink, track, op, name_of(op, text, sizeof text), op->start_ns, op->end_ns,
                  called);
    return !wait;
}

static void hold(struct ew_pf_gpu *gpu, const struct etwatch_gpu_op *op)
{
    if (gpu->waiting_count == gpu->waiting_size) {
        uint32_t size = gpu->waiting_size == 0 ? 256 : gpu->waiting_size * 2;
        void *bigger =
            size > WAITING_MAX ? NULL : ew_realloc_array(gpu->waiting, size, sizeof *gpu->waiting);
        if (bigger == NULL)
            return;
        gpu->waiting = bigger;
        gpu->waiting_size = size;
    }
    struct etwatch_gpu_op *kept = &gpu->waiting[gpu->waiting_count++];
    *kept = *op;
    kept->name = op->name == NULL ? NULL : ew_strdup(op->name);
}

void ew_pf_gpu_flush(struct ew_pf_sink *sink, bool all)
{
    struct ew_pf_gpu *gpu = sink->gpu;
    uint32_t kept = 0;
    for (uint32_t i = 0; gpu != NULL && i < gpu->waiting_count; i++) {
        if (put_op(sink, &gpu->waiting[i], all))
            ew_free((char *)(uintptr_t)gpu->waiting[i].name);
        else
            gpu->waiting[kept++] = gpu->waiting[i];
    }
    if (gpu != NULL)
        gpu->waiting_count = kept;
}

void ew_pf_gpu_op(struct etwatch_sink *base, const struct etwatch_gpu_op *op)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    ew_pf_begin(sink);
    if (sink->gpu == NULL)
        sink->gpu = ew_calloc(1, sizeof *sink->gpu);
    if (sink->gpu == NULL || op->end_ns < op->start_ns || op->start_ns < sink->unix_minus_boot_ns)
        return;
    if (!put_op(sink, op, false))
        hold(sink->gpu, op);
}
