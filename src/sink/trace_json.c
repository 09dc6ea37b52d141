/* SPDX-License-Identifier: MIT */
/*
 * JSON Lines of recordings: the objects of a report and one object per event.
 *
 * There may be millions of events, so lines are written without format strings, with room reserved
 * field by field. Field names are the documented ones; numbers stay numbers (addresses too), bytes
 * are hexadecimal text. A line longer than the maximum of the buffer is written without its fields
 * (null): one huge event must not end the output.
 */
#include "sink/sink.h"

#include <string.h>

#include "base/event_state.h"
#include "base/real.h"
#include "sink/fields.h"
#include "sink/json.h"

/* ------------------------------------------------------------------ report */

static const char *clock_name(uint32_t clock)
{
    static const char *const names[] = {NULL, "qpc", "system_time", "cpu_cycles", "boottime"};
    return clock < sizeof names / sizeof names[0] ? names[clock] : NULL;
}

#define NUMBER(out, name, value) (EW_JSON(out, ",\"" name "\":"), ew_buf_u64(out, value))
#define NUMBER_IF(out, name, known, value) \
    (EW_JSON(out, ",\"" name "\":"), ew_json_number_if(out, known, value))
#define TEXT(out, name, value) (EW_JSON(out, ",\"" name "\":"), ew_json_text(out, value))
#define BOOL(out, name, value) (EW_JSON(out, ",\"" name "\":"), ew_json_bool(out, value))

static void put_file(struct ew_buf *out, const struct etwatch_trace_file *file)
{
    EW_JSON(out, "{\"path\":");
    ew_json_text(out, file->path);
    TEXT(out, "session_name", file->session_name);
    NUMBER_IF(out, "os_build", file->format != ETWATCH_TRACE_PERFETTO, file->os_build);
    NUMBER(out, "cpus", file->cpu_count);
    TEXT(out, "clock", clock_name(file->clock));
    NUMBER(out, "start_ns", file->start_ns);
    NUMBER_IF(out, "end_ns", file->end_ns != 0, file->end_ns);
    NUMBER(out, "file_bytes", file->file_bytes);
    NUMBER(out, "buffer_bytes", file->buffer_bytes);
    NUMBER(out, "buffers_written", file->buffers_written);
    NUMBER(out, "log_file_mode", file->log_file_mode);
    BOOL(out, "compressed", file->compressed != 0);
    NUMBER(out, "events_lost", file->events_lost);
    NUMBER(out, "buffers_lost", file->buffers_lost);
    EW_JSON(out, "}");
}

static void put_machine(struct ew_buf *out, const struct etwatch_trace_summary *trace)
{
    const struct etwatch_trace_file none = {0};
    const struct etwatch_trace_file *file = trace->file_count > 0 ? &trace->files[0] : &none;
    uint64_t bytes = 0;
    bool compressed = false;
    for (uint32_t i = 0; i < trace->file_count; i++) {
        bytes += trace->files[i].file_bytes;
        compressed = compressed || trace->files[i].compressed != 0;
    }
    bool windows = file->format != ETWATCH_TRACE_PERFETTO;
    if (windows) {
        EW_JSON(out, ",\"os\":\"Windows ");
        ew_buf_u64(out, file->os_major);
        ew_buf_char(out, '.');
        ew_buf_u64(out, file->os_minor);
        ew_buf_char(out, '.');
        ew_buf_u64(out, file->os_build);
        ew_buf_char(out, '"');
    } else {
        TEXT(out, "os", file->os);
    }
    NUMBER_IF(out, "os_build", windows, file->os_build);
    NUMBER(out, "cpus", file->cpu_count);
    NUMBER_IF(out, "cpu_mhz", file->cpu_mhz != 0, file->cpu_mhz);
    NUMBER(out, "pointer_size", file->pointer_size);
    TEXT(out, "clock", clock_name(file->clock));
    NUMBER_IF(out, "clock_frequency", file->clock_frequency != 0, file->clock_frequency);
    NUMBER(out, "start_ns", file->start_ns);
    NUMBER_IF(out, "end_ns", file->end_ns != 0, file->end_ns);
    NUMBER_IF(out, "boot_ns", file->boot_ns != 0, file->boot_ns);
    NUMBER(out, "file_bytes", bytes);
    BOOL(out, "compressed", compressed);
}

static void put_stats(struct ew_buf *out, const struct etwatch_trace_stats *stats)
{
    bool damage = stats->bad_buffers > 0 || stats->bad_events > 0;
    bool any = stats->events > 0;
    NUMBER_IF(out, "first_ns", any, stats->first_ns);
    NUMBER_IF(out, "last_ns", any, stats->last_ns);
    NUMBER_IF(out, "duration_ns", any, stats->last_ns - stats->first_ns);
    NUMBER(out, "events", stats->events);
    NUMBER(out, "undecoded", stats->undecoded);
    NUMBER(out, "lost", stats->lost);
    NUMBER(out, "lost_buffers", stats->lost_buffers);
    NUMBER(out, "late", stats->late);
    NUMBER(out, "bad_buffers", stats->bad_buffers);
    NUMBER(out, "bad_events", stats->bad_events);
    NUMBER(out, "bad_bytes", stats->bad_bytes);
    NUMBER_IF(out, "first_bad_offset", damage, stats->first_bad_offset);
    NUMBER_IF(out, "first_bad_file", damage, stats->first_bad_file);
    TEXT(out, "first_bad", damage ? stats->first_bad : NULL);
    NUMBER_IF(out, "clock_set_back_ns", stats->clock_set_back_ns != 0, stats->clock_set_back_ns);
    BOOL(out, "complete", stats->lost == 0 && stats->lost_buffers == 0 && !damage);
}

static void put_system(struct ew_buf *out, const struct etwatch_trace_system *system)
{
    bool switches = system != NULL && system->cpu_from_switches != 0;
    bool sampled = system != NULL && system->samples > 0;
    bool known = switches || sampled;
    TEXT(out, "cpu_from", switches ? "switches" : sampled ? "samples" : NULL);
    NUMBER_IF(out, "busy_ns", known, known ? system->busy_ns : 0);
    NUMBER_IF(out, "idle_ns", known, known ? system->idle_ns : 0);
    NUMBER_IF(out, "dpc_ns", known, known ? system->dpc_ns : 0);
    NUMBER_IF(out, "isr_ns", known, known ? system->isr_ns : 0);
    NUMBER_IF(out, "unknown_ns", known, known ? system->unknown_ns : 0);
    NUMBER_IF(out, "switches", system != NULL, system != NULL ? system->switches : 0);
    NUMBER_IF(out, "samples", system != NULL, system != NULL ? system->samples : 0);
}

void ew_jsonl_trace(struct etwatch_sink *sink, const struct etwatch_trace_summary *trace)
{
    struct ew_buf *out = &sink->out;
    EW_JSON(out, "{\"type\":\"trace\",\"version\":");
    ew_json_text(out, etwatch_version());
    uint32_t source = trace->file_count > 0 ? trace->files[0].source : 0;
    TEXT(out, "source", etwatch_source_name(source != 0 ? source : ETWATCH_SOURCE_ETL));
    put_machine(out, trace);
    put_stats(out, trace->stats);
    put_system(out, trace->system);
    EW_JSON(out, ",\"files\":[");
    for (uint32_t i = 0; i < trace->file_count; i++) {
        if (i > 0)
            ew_buf_char(out, ',');
        put_file(out, &trace->files[i]);
    }
    EW_JSON(out, "]}\n");
    ew_buf_end_line(out);
}

void ew_jsonl_class(struct etwatch_sink *sink, const struct etwatch_trace_class *klass)
{
    struct ew_buf *out = &sink->out;
    EW_JSON(out, "{\"type\":\"class\",\"provider\":");
    ew_json_text(out, klass->provider);
    TEXT(out, "event", klass->event);
    NUMBER(out, "id", klass->id);
    NUMBER(out, "opcode", klass->opcode);
    NUMBER(out, "version", klass->version);
    NUMBER(out, "count", klass->count);
    BOOL(out, "decoded", klass->decoded != 0);
    TEXT(out, "state", ew_event_state_name(klass->state));
    EW_JSON(out, "}\n");
    ew_buf_end_line(out);
}

void ew_jsonl_image(struct etwatch_sink *sink, const struct etwatch_trace_image *image)
{
    struct ew_buf *out = &sink->out;
    EW_JSON(out, "{\"type\":\"image\",\"pid\":");
    ew_buf_u64(out, image->pid);
    NUMBER(out, "base", image->base);
    NUMBER(out, "image_bytes", image->bytes);
    NUMBER_IF(out, "load_ns", image->load_ns != 0, image->load_ns);
    NUMBER_IF(out, "unload_ns", image->unload_ns != 0, image->unload_ns);
    TEXT(out, "path", image->path);
    EW_JSON(out, "}\n");
    ew_buf_end_line(out);
}

/* ------------------------------------------------------------------ events */

#define RAW(at, literal) \
    (memcpy((at), (literal), sizeof(literal) - 1), (at) + (sizeof(literal) - 1))

enum { HEAD_ROOM = 512 };

static char *raw_if(char *at, bool known, uint64_t value)
{
    return known ? ew_raw_u64(at, value) : RAW(at, "null");
}

static void put_head(struct ew_buf *out, const struct etwatch_trace_event *event)
{
    size_t name = event->process != NULL ? strlen(event->process) : 0;
    size_t provider = strlen(event->provider), type = strlen(event->event);
    if (!ew_buf_reserve(out,
                        HEAD_ROOM + EW_JSON_LEN(name) + EW_JSON_LEN(provider) + EW_JSON_LEN(type)))
        return;
    char *at = ew_buf_end(out);
    at = RAW(at, "{\"type\":\"event\",\"t_ns\":");
    at = ew_raw_u64(at, event->t_ns);
    at = RAW(at, ",\"cpu\":");
    at = ew_raw_u64(at, event->cpu);
    at = RAW(at, ",\"pid\":");
    at = raw_if(at, (event->flags & ETWATCH_TRACE_HAS_PID) != 0, event->pid);
    at = RAW(at, ",\"tid\":");
    at = raw_if(at, (event->flags & ETWATCH_TRACE_HAS_TID) != 0, event->tid);
    at = RAW(at, ",\"name\":");
    at = event->process != NULL ? ew_raw_json_string(at, event->process, name) : RAW(at, "null");
    at = RAW(at, ",\"provider\":");
    at = ew_raw_json_string(at, event->provider, provider);
    at = RAW(at, ",\"event\":");
    at = ew_raw_json_string(at, event->event, type);
    at = RAW(at, ",\"id\":");
    at = ew_raw_u64(at, event->id);
    at = RAW(at, ",\"opcode\":");
    at = ew_raw_u64(at, event->opcode);
    at = RAW(at, ",\"version\":");
    at = ew_raw_u64(at, event->version);
    bool header = (event->flags & ETWATCH_TRACE_HAS_HEADER_IDS) != 0;
    at = RAW(at, ",\"header_pid\":");
    at = raw_if(at, header, event->header_pid);
    at = RAW(at, ",\"header_tid\":");
    at = raw_if(at, header, event->header_tid);
    const char *state = ew_event_state_name(ew_event_state(event->flags));
    at = RAW(at, ",\"state\":");
    at = ew_raw_json_string(at, state, strlen(state));
    at = RAW(at, ",\"fields\":");
    ew_buf_take(out, at);
}

static void put_tail(struct etwatch_sink *sink, const struct etwatch_trace_event *event)
{
    if ((sink->flags & ETWATCH_SINK_PAYLOAD) != 0) {
        EW_JSON(&sink->out, ",\"payload\":");
        if (event->payload == NULL)
            EW_JSON(&sink->out, "null");
        else
            ew_json_hex(&sink->out, event->payload, event->payload_size);
    }
    EW_JSON(&sink->out, "}\n");
}

void ew_jsonl_trace_event(struct etwatch_sink *sink, const struct etwatch_trace_event *event)
{
    struct ew_buf *out = &sink->out;
    size_t from = out->len;
    put_head(out, event);
    ew_json_put_fields(out, event->fields, event->field_count);
    put_tail(sink, event);
    if (out->error == ETWATCH_ELIMIT) {
        out->error = 0;
        out->len = from;
        put_head(out, event);
        EW_JSON(out, "null");
        put_tail(sink, event);
    }
    ew_buf_end_line(out);
}
