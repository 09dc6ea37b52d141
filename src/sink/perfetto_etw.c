/* SPDX-License-Identifier: MIT */
/*
 * Windows recordings as Perfetto traces: switches and ready threads become Perfetto's own ETW
 * messages, directly from their payload, so that its tools draw the scheduling of Windows like that
 * of Linux. Any other event is an instant on its thread, with its fields, if the caller decoded
 * them; without fields it is omitted.
 *
 * Pitfalls of the importer: an omitted thread id 0 is taken for a hidden thread, and older versions
 * read the wait reason from another field, so both fields are written.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/event_state.h"
#include "sink/perfetto.h"

enum { CSWITCH = 36, READY_THREAD = 50, CSWITCH_SIZE = 16, READY_SIZE = 8 };

/* Times of the file: since boot, if the recording contains the boot time. */
void ew_pf_trace(struct etwatch_sink *base, const struct etwatch_trace_summary *trace)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    if (trace->system != NULL)
        ew_pf_put_system(sink, trace);
    if (sink->begun || trace->file_count == 0)
        return;
    const struct etwatch_trace_file *file = &trace->files[0];
    sink->meta.anchor_unix_ns = file->start_ns;
    sink->meta.cpu_count = file->cpu_count;
    sink->unix_minus_boot_ns =
        file->boot_ns != 0 && file->boot_ns < file->start_ns ? file->boot_ns : 0;
}

static struct ew_buf *begin_event(struct ew_pf_sink *sink, const struct etwatch_trace_event *event,
                                  size_t *ret_mark)
{
    struct ew_buf *out = ew_pf_etw_events(sink, event->cpu);
    if (out == NULL)
        return NULL;
    *ret_mark = ew_proto_begin(out, EW_PF_BUNDLE_EVENT);
    ew_proto_u64(out, EW_PF_ETW_TIME, event->t_ns - sink->unix_minus_boot_ns);
    ew_proto_u64(out, EW_PF_ETW_CPU, event->cpu);
    return out;
}

static void put_cswitch(struct ew_pf_sink *sink, const struct etwatch_trace_event *event)
{
    const uint8_t *p = event->payload;
    size_t mark = 0;
    struct ew_buf *out = begin_event(sink, event, &mark);
    if (out == NULL)
        return;
    ew_proto_u64(out, EW_PF_ETW_TID, ew_load_u32(p));
    sink->etw_running[event->cpu] = ew_load_u32(p) + 1;
    size_t inner = ew_proto_begin(out, EW_PF_ETW_CSWITCH);
    ew_proto_u64(out, EW_PF_CSWITCH_NEW_TID, ew_load_u32(p));
    ew_proto_u64(out, EW_PF_CSWITCH_OLD_TID, ew_load_u32(p + 4));
    ew_proto_sint(out, EW_PF_CSWITCH_NEW_PRIORITY, (int8_t)p[8]);
    ew_proto_sint(out, EW_PF_CSWITCH_OLD_PRIORITY, (int8_t)p[9]);
    ew_proto_u64(out, EW_PF_CSWITCH_C_STATE, p[10]);
    ew_proto_u64(out, EW_PF_CSWITCH_REASON, p[12]);
    ew_proto_u64(out, EW_PF_CSWITCH_REASON_INT, p[12]);
    ew_proto_u64(out, EW_PF_CSWITCH_MODE_INT, p[13]);
    ew_proto_sint(out, EW_PF_CSWITCH_STATE_INT, (int8_t)p[14]);
    ew_proto_sint(out, EW_PF_CSWITCH_IDEAL_CPU, (int8_t)p[15]);
    if (event->payload_size >= CSWITCH_SIZE + 4)
        ew_proto_u64(out, EW_PF_CSWITCH_WAIT_TIME, ew_load_u32(p + 16));
    ew_proto_end(out, inner);
    ew_proto_end(out, mark);
}

static void put_ready(struct ew_pf_sink *sink, const struct etwatch_trace_event *event)
{
    const uint8_t *p = event->payload;
    size_t mark = 0;
    struct ew_buf *out = begin_event(sink, event, &mark);
    if (out == NULL)
        return;
    /* The thread that readied it is the one running on this CPU. */
    if (sink->etw_running[event->cpu] != 0)
        ew_proto_u64(out, EW_PF_ETW_TID, sink->etw_running[event->cpu] - 1);
    size_t inner = ew_proto_begin(out, EW_PF_ETW_READY);
    ew_proto_u64(out, 1, ew_load_u32(p));
    ew_proto_u64(out, 5, p[4]);
    ew_proto_sint(out, 3, (int8_t)p[5]);
    ew_proto_u64(out, 6, p[6]);
    ew_proto_end(out, inner);
    ew_proto_end(out, mark);
}

/* ----------------------------------------------------------------- other events */

static uint64_t track_of(struct ew_pf_sink *sink, const struct etwatch_trace_event *event)
{
    uint32_t both = ETWATCH_TRACE_HAS_PID | ETWATCH_TRACE_HAS_TID;
    struct ew_buf *out = &sink->packets;
    if ((event->flags & both) != both)
        return EW_PF_OWN_TRACK;
    struct ew_pf_row *row = ew_pf_rows_find(&sink->rows, event->pid, 0, event->tid);
    if (row != NULL)
        return row->uuid;
    row = ew_pf_rows_add(&sink->rows, event->pid, 0, event->tid);
    if (row == NULL)
        return EW_PF_OWN_TRACK;
    row->uuid = sink->next_uuid;
    sink->next_uuid += 32;
    size_t packet = ew_pf_packet(sink, event->t_ns);
    size_t track = ew_proto_begin(out, EW_PF_TRACK_DESCRIPTOR);
    ew_proto_u64(out, EW_PF_TRACK_UUID, row->uuid);
    size_t thread = ew_proto_begin(out, EW_PF_TRACK_THREAD);
    ew_proto_u64(out, 1, event->pid);
    ew_proto_u64(out, 2, event->tid);
    ew_proto_end(out, thread);
    ew_proto_end(out, track);
    ew_pf_packet_end(sink, packet);
    return row->uuid;
}

static void put_field(struct ew_buf *out, const struct etwatch_field *field)
{
    size_t mark = ew_proto_begin(out, EW_PF_EVENT_ANNOTATION);
    ew_proto_text(out, EW_PF_ANNOTATION_NAME, field->name);
    switch (field->type) {
    case ETWATCH_FIELD_U64:
        ew_proto_u64(out, EW_PF_ANNOTATION_U64, field->v.u);
        break;
    case ETWATCH_FIELD_I64:
        ew_proto_i64(out, EW_PF_ANNOTATION_I64, field->v.i);
        break;
    case ETWATCH_FIELD_HEX:
        ew_proto_u64(out, EW_PF_ANNOTATION_POINTER, field->v.u);
        break;
    case ETWATCH_FIELD_BOOL:
        ew_proto_u64(out, EW_PF_ANNOTATION_BOOL, field->v.u);
        break;
    case ETWATCH_FIELD_DOUBLE:
    case ETWATCH_FIELD_FLOAT:
        ew_proto_double(out, EW_PF_ANNOTATION_DOUBLE, field->v.d);
        break;
    default:
        ew_proto_bytes(out, EW_PF_ANNOTATION_TEXT, field->v.text, field->len);
        break;
    }
    ew_proto_end(out, mark);
}

static void put_instant(struct ew_pf_sink *sink, const struct etwatch_trace_event *event)
{
    struct ew_buf *out = &sink->packets;
    char name[256];
    uint64_t track = track_of(sink, event);
    (void)snprintf(name, sizeof name, "%s/%s", event->provider, event->event);
    size_t packet = ew_pf_packet(sink, event->t_ns);
    size_t inner = ew_proto_begin(out, EW_PF_TRACK_EVENT);
    ew_proto_u64(out, EW_PF_EVENT_TYPE, EW_PF_TYPE_INSTANT);
    ew_proto_u64(out, EW_PF_EVENT_TRACK, track);
    ew_proto_text(out, EW_PF_EVENT_CATEGORY, "etw");
    ew_proto_text(out, EW_PF_EVENT_NAME, name);
    uint32_t open = 0;
    for (uint32_t i = 0; i < event->field_count; i++) {
        const struct etwatch_field *field = &event->fields[i];
        bool opens = field->type == ETWATCH_FIELD_ARRAY || field->type == ETWATCH_FIELD_STRUCT;
        open += opens;
        if (field->type == ETWATCH_FIELD_CLOSE && open > 0)
            open--;
        /* Nested fields and binary data are not shown in a timeline. */
        bool shown = open == 0 && !opens && field->name != NULL &&
                     field->type != ETWATCH_FIELD_CLOSE && field->type != ETWATCH_FIELD_NULL &&
                     field->type != ETWATCH_FIELD_BINARY;
        if (shown)
            put_field(out, field);
    }
    uint32_t state = ew_event_state(event->flags);
    if (state != ETWATCH_CLASS_DECODED) {
        size_t mark = ew_proto_begin(out, EW_PF_EVENT_ANNOTATION);
        ew_proto_text(out, EW_PF_ANNOTATION_NAME, "state");
        ew_proto_text(out, EW_PF_ANNOTATION_TEXT, ew_event_state_name(state));
        ew_proto_end(out, mark);
    }
    ew_proto_end(out, inner);
    ew_pf_packet_end(sink, packet);
}

/* Older versions have another layout: they become instants like any other event. */
static bool is_cswitch(const struct etwatch_trace_event *event)
{
    return event->opcode == CSWITCH && event->version >= 2 && event->payload_size >= CSWITCH_SIZE &&
           strcmp(event->event, "Thread/CSwitch") == 0;
}

static bool is_ready(const struct etwatch_trace_event *event)
{
    return event->opcode == READY_THREAD && event->payload_size >= READY_SIZE &&
           strcmp(event->event, "Dispatcher/ReadyThread") == 0;
}

bool ew_pf_wants_fields(const struct etwatch_trace_event *event)
{
    return !is_cswitch(event) && !is_ready(event);
}

void ew_pf_trace_event(struct etwatch_sink *base, const struct etwatch_trace_event *event)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    uint32_t both = ETWATCH_TRACE_HAS_PID | ETWATCH_TRACE_HAS_TID;
    sink->etw = true;
    ew_pf_begin(sink);
    if ((event->flags & both) == both)
        ew_pf_thread(sink, event->pid, event->tid, event->process, event->t_ns);
    if (is_cswitch(event))
        put_cswitch(sink, event);
    else if (is_ready(event))
        put_ready(sink, event);
    else if (event->field_count > 0)
        put_instant(sink, event);
}
