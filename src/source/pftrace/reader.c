/* SPDX-License-Identifier: MIT */
/*
 * Owns the file and the window over it. Invariant: the window starts at a packet and is never
 * larger than the largest allowed packet, so memory does not grow with the trace. Damage ends a
 * packet, not the reading; only if the length of a packet cannot be read, nothing after it can be
 * found.
 */
#include "source/pftrace/reader.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "os/os.h"
#include "source/pftrace/pftrace.h"

enum { WINDOW_FIRST = 1 << 20 };

bool ew_pftrace_is(const uint8_t *bytes, size_t size)
{
    return size > 1 && bytes[0] == (EW_PF_TRACE_PACKET << 3 | EW_PROTO_LEN);
}

void ew_pft_damage(struct ew_pftrace *trace, uint64_t offset, uint64_t bytes, const char *what)
{
    struct ew_pftrace_counts *counts = &trace->counts;
    if (counts->bad_packets == 0) {
        counts->first_bad_offset = offset;
        (void)snprintf(counts->first_bad, sizeof counts->first_bad, "%s", what);
    }
    counts->bad_packets++;
    counts->bad_bytes += bytes;
}

struct ew_pftrace *ew_pftrace_new(void)
{
    struct ew_pftrace *trace = ew_calloc(1, sizeof *trace);
    if (trace == NULL)
        return NULL;
    trace->inflated.max = EW_PFTRACE_INFLATED_MAX;
    ew_buf_init(&trace->text, 0, NULL, NULL);
    trace->threads = ew_calloc((size_t)1 << EW_PFT_THREAD_BITS, sizeof *trace->threads);
    trace->names = ew_calloc(EW_PFT_NAMES_MAX, sizeof *trace->names);
    if (trace->threads == NULL || trace->names == NULL) {
        ew_pftrace_close(trace);
        return NULL;
    }
    return trace;
}

int ew_pftrace_open(const char *path, struct ew_pftrace **ret_trace, struct ew_error *reterr)
{
    int64_t os_code = 0;
    struct ew_pftrace *trace = ew_pftrace_new();
    if (trace == NULL)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    int rc = ew_os_file_open(path, &trace->file, &trace->file_bytes, &os_code);
    if (rc < 0) {
        (void)ew_error_set(reterr, rc, os_code, "cannot open %s", path);
        ew_pftrace_close(trace);
        return rc;
    }
    *ret_trace = trace;
    return 0;
}

void ew_pftrace_close(struct ew_pftrace *trace)
{
    if (trace == NULL)
        return;
    if (trace->file != NULL)
        ew_os_file_close(trace->file);
    ew_free(trace->window);
    ew_inflated_done(&trace->inflated);
    ew_buf_done(&trace->text);
    ew_pft_strings_done(&trace->strings);
    ew_free(trace->threads);
    ew_free(trace->names);
    ew_free(trace->switches.events);
    ew_free(trace->wakings.events);
    ew_free(trace->others.events);
    ew_free(trace);
}

static void close_packet(struct ew_pftrace *trace)
{
    trace->packet_open = trace->runs_open = false;
    ew_bytes_init(&trace->etw, NULL, 0);
}

void ew_pftrace_rewind(struct ew_pftrace *trace)
{
    trace->window_len = trace->window_at = 0;
    ew_bytes_init(&trace->inner, NULL, 0);
    close_packet(trace);
    trace->inflated_bytes = 0;
    trace->window_offset = trace->at = 0;
    trace->counts = (struct ew_pftrace_counts){0};
    trace->own_known = trace->clock_known = false;
    trace->unix_minus_boot_ns = 0;
    ew_pft_strings_done(&trace->strings);
    memset(trace->cpus, 0, sizeof trace->cpus);
    memset(trace->threads, 0, sizeof *trace->threads << EW_PFT_THREAD_BITS);
}

void ew_pftrace_counts(const struct ew_pftrace *trace, struct ew_pftrace_counts *ret_counts)
{
    *ret_counts = trace->counts;
    ret_counts->bytes = trace->at;
}

uint64_t ew_pftrace_file_bytes(const struct ew_pftrace *trace)
{
    return trace->file_bytes;
}

uint64_t ew_pftrace_unix_minus_boot_ns(const struct ew_pftrace *trace)
{
    return trace->unix_minus_boot_ns;
}

/* ------------------------------------------------------------------- packets */

static void read_clocks(struct ew_pftrace *trace, struct ew_bytes *snapshot)
{
    struct ew_proto_field field, part;
    uint64_t boot_ns = 0, unix_ns = 0;
    while (ew_proto_next(snapshot, &field)) {
        uint64_t id = 0, t_ns = 0;
        if (field.number != 1 || field.wire != EW_PROTO_LEN)
            continue;
        while (ew_proto_next(&field.body, &part)) {
            id = part.number == 1 ? part.u : id;
            t_ns = part.number == 2 ? part.u : t_ns;
        }
        boot_ns = id == EW_PF_CLOCK_BOOTTIME ? t_ns : boot_ns;
        unix_ns = id == EW_PF_CLOCK_REALTIME ? t_ns : unix_ns;
    }
    if (trace->clock_known || unix_ns == 0)
        return;
    trace->clock_known = true;
    trace->unix_minus_boot_ns = unix_ns - boot_ns;
}

/* The packets inside are then read one by one: see ew_pftrace_next. */
static int unpack(struct ew_pftrace *trace, const struct ew_bytes *body)
{
    size_t at = 0;
    uint64_t allowed = (body->base + body->size) * EW_PFTRACE_INFLATED_RATIO +
                       EW_PFTRACE_INFLATED_FREE - trace->inflated_bytes;
    trace->inflated.max =
        allowed < EW_PFTRACE_INFLATED_MAX ? (size_t)allowed : EW_PFTRACE_INFLATED_MAX;
    int rc = ew_inflate(body->data, body->size, &trace->inflated, &at);
    trace->inflated_bytes += trace->inflated.len;
    if (rc == ETWATCH_ENOMEM)
        return rc;
    if (rc < 0) {
        ew_pft_damage(trace, body->base + at, body->size,
                      rc == ETWATCH_ELIMIT ? "a compressed packet expands too much"
                                           : "a compressed packet cannot be unpacked");
        return 0;
    }
    ew_bytes_init(&trace->inner, trace->inflated.data, trace->inflated.len);
    trace->inner_offset = body->base;
    return 0;
}

/* Fields come in any order, so those that others depend on are read first. */
static void read_envelope(struct ew_pftrace *trace, struct ew_bytes packet)
{
    struct ew_proto_field field;
    trace->packet_t_ns = 0;
    trace->packet_sequence = 0;
    while (ew_proto_next(&packet, &field)) {
        if (field.number == EW_PF_TIMESTAMP && field.wire == EW_PROTO_VARINT)
            trace->packet_t_ns = field.u;
        if (field.number == EW_PF_SEQUENCE_ID && field.wire == EW_PROTO_VARINT)
            trace->packet_sequence = (uint32_t)field.u;
    }
}

static int take_field(struct ew_pftrace *trace, struct ew_proto_field *field,
                      const struct ew_pftrace_visitor *visitor)
{
    switch (field->number) {
    case EW_PF_FTRACE_EVENTS:
        ew_pft_bundle(trace, &field->body);
        return 0;
    case EW_PF_PROCESS_TREE:
        ew_pft_process_tree(trace, &field->body);
        return 0;
    case EW_PF_CLOCK_SNAPSHOT:
        read_clocks(trace, &field->body);
        return 0;
    case EW_PF_INTERNED_DATA:
        ew_pft_intern(trace, &field->body, trace->packet_sequence);
        return 0;
    case EW_PF_TRACK_EVENT:
        return ew_pft_track_event(trace, &field->body, trace->packet_t_ns, trace->packet_sequence,
                                  visitor);
    case EW_PF_ETW_EVENTS:
        trace->etw = field->body;
        trace->etw_cpu = 0;
        return 0;
    case EW_PF_ZSTD_COMPRESSED:
        ew_pft_damage(trace, field->body.base, field->body.size,
                      "a packet is compressed with zstd, which is not supported");
        return 0;
    default:
        return 0;
    }
}

/* Continues with the open packet, for a bounded number of events. */
static int read_part(struct ew_pftrace *trace, const struct ew_pftrace_visitor *visitor)
{
    struct ew_proto_field field;
    int rc = 0;
    trace->steps = 0;
    while (rc == 0 && trace->steps < EW_PFT_STEPS) {
        if (trace->runs_open) {
            rc = ew_pft_emit(trace, visitor);
        } else if (ew_bytes_left(&trace->etw) > 0) {
            rc = ew_pft_etw_emit(trace, visitor);
        } else if (!ew_proto_next(&trace->packet, &field)) {
            trace->packet_open = false;
            break;
        } else if (field.wire == EW_PROTO_LEN) {
            trace->steps++;
            rc = take_field(trace, &field, visitor);
        }
    }
    if (rc == 0 && !trace->packet_open && !ew_bytes_ok(&trace->packet))
        ew_pft_damage(trace, trace->packet.error_offset, trace->packet.size,
                      "a packet is malformed");
    return rc;
}

static int read_packet(struct ew_pftrace *trace, const struct ew_bytes *packet,
                       const struct ew_pftrace_visitor *visitor)
{
    read_envelope(trace, *packet);
    trace->packet = *packet;
    trace->packet_open = true;
    trace->counts.packets++;
    return read_part(trace, visitor);
}

/* One packet of the file; a compressed one is unpacked for take_inner. */
static int take_outer(struct ew_pftrace *trace, struct ew_proto_field *field,
                      const struct ew_pftrace_visitor *visitor)
{
    struct ew_proto_field inner;
    if (field->number != EW_PF_TRACE_PACKET || field->wire != EW_PROTO_LEN)
        return 0;
    struct ew_bytes first = field->body;
    if (ew_proto_next(&first, &inner) && inner.number == EW_PF_COMPRESSED &&
        inner.wire == EW_PROTO_LEN)
        return unpack(trace, &inner.body);
    return read_packet(trace, &field->body, visitor);
}

static int take_inner(struct ew_pftrace *trace, const struct ew_pftrace_visitor *visitor)
{
    struct ew_proto_field field;
    if (!ew_proto_next(&trace->inner, &field)) {
        ew_pft_damage(trace, trace->inner_offset, trace->inner.size - trace->inner.pos,
                      "a compressed packet contains something that is not a packet");
        return 0;
    }
    if (field.number != EW_PF_TRACE_PACKET || field.wire != EW_PROTO_LEN)
        return 0;
    return read_packet(trace, &field.body, visitor);
}

/* -------------------------------------------------------------------- window */

/* Ensures that `size` bytes from the window's position are loaded, or as many as the file has. */
static int fill(struct ew_pftrace *trace, size_t size)
{
    if (trace->window_len - trace->window_at >= size)
        return 0;
    size_t rest = trace->window_len - trace->window_at;
    if (rest > 0 && trace->window_at > 0)
        memmove(trace->window, trace->window + trace->window_at, rest);
    trace->window_offset += trace->window_at;
    trace->window_len = rest;
    trace->window_at = 0;
    size_t wanted = size > WINDOW_FIRST ? size : WINDOW_FIRST;
    if (wanted > trace->window_size) {
        uint8_t *window = ew_realloc_array(trace->window, wanted, 1);
        if (window == NULL)
            return ETWATCH_ENOMEM;
        trace->window = window;
        trace->window_size = wanted;
    }
    int64_t got = ew_os_file_read(trace->file, trace->window_offset + rest, trace->window + rest,
                                  trace->window_size - rest);
    if (got < 0)
        return (int)got;
    trace->window_len += (size_t)got;
    return 0;
}

/* The outermost field at the window's position: 1 with its body in *ret_field, 0 at the end. */
static int next_field(struct ew_pftrace *trace, struct ew_proto_field *ret_field)
{
    struct ew_bytes bytes;
    size_t wanted = 32;
    for (;;) {
        int rc = fill(trace, wanted);
        if (rc < 0)
            return rc;
        size_t left = trace->window_len - trace->window_at;
        if (left == 0)
            return 0;
        ew_bytes_init(&bytes, trace->window + trace->window_at, left);
        bytes.base = trace->window_offset + trace->window_at;
        struct ew_bytes head = bytes;
        uint64_t tag = ew_proto_read_varint(&head), len = ew_proto_read_varint(&head);
        bool packet = (tag & 7) == EW_PROTO_LEN && tag >> 3 != 0;
        if (!ew_bytes_ok(&head) && head.error == ETWATCH_EFORMAT)
            packet = false;
        if (ew_bytes_ok(&head) && (!packet || len > EW_PFTRACE_PACKET_MAX)) {
            ew_pft_damage(trace, bytes.base, trace->file_bytes - bytes.base,
                          packet ? "a packet exceeds the maximum size"
                                 : "expected a packet, found something else");
            return 0;
        }
        if (ew_bytes_ok(&head) && ew_bytes_left(&head) >= len) {
            (void)ew_proto_next(&bytes, ret_field);
            trace->window_at += bytes.pos;
            trace->at = trace->window_offset + trace->window_at;
            return 1;
        }
        size_t needed = ew_bytes_ok(&head) ? head.pos + (size_t)len : wanted;
        if (left >= needed || trace->window_offset + trace->window_len >= trace->file_bytes) {
            trace->counts.truncated = 1;
            ew_pft_damage(trace, bytes.base, left, "the file ends within a packet");
            return 0;
        }
        wanted = needed;
    }
}

int ew_pftrace_next(struct ew_pftrace *trace, const struct ew_pftrace_visitor *visitor)
{
    struct ew_proto_field field;
    int rc;
    if (trace->packet_open) {
        rc = read_part(trace, visitor);
        return rc < 0 ? rc : 1;
    }
    if (ew_bytes_left(&trace->inner) > 0) {
        rc = take_inner(trace, visitor);
        return rc < 0 ? rc : 1;
    }
    rc = trace->file != NULL ? next_field(trace, &field) : 0;
    if (rc <= 0) {
        trace->at = trace->file_bytes;
        return rc;
    }
    rc = take_outer(trace, &field, visitor);
    return rc < 0 ? rc : 1;
}

int ew_pftrace_bytes(struct ew_pftrace *trace, const uint8_t *bytes, size_t size,
                     const struct ew_pftrace_visitor *visitor)
{
    struct ew_bytes all;
    struct ew_proto_field field;
    int rc = 0;
    ew_bytes_init(&all, bytes, size);
    while (rc == 0 && ew_proto_next(&all, &field)) {
        rc = take_outer(trace, &field, visitor);
        while (rc == 0 && (trace->packet_open || ew_bytes_left(&trace->inner) > 0))
            rc = trace->packet_open ? read_part(trace, visitor) : take_inner(trace, visitor);
    }
    if (rc == 0 && !ew_bytes_ok(&all))
        ew_pft_damage(trace, all.error_offset, size - all.pos,
                      "expected a packet, found something else");
    return rc;
}
