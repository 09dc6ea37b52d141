/* SPDX-License-Identifier: MIT */
/*
 * Samples in a Perfetto trace: an instant that carries every value exactly, and counter tracks for
 * display.
 *
 * A counter value applies from its time to the next one, but a sample describes the time before it:
 * so a counter value is written at the start of its interval. An interval without a sample means
 * that nothing happened, so a rate that is not followed at once by another drops to 0. Unchanged
 * values are not repeated. The lifetime of a process is a slice on its own track, because only
 * Linux has scheduler events that show when a process ends.
 */
#include <string.h>

#include "base/alloc.h"
#include "sink/fields.h"
#include "sink/perfetto.h"

enum counter_kind { GAUGE, PERCENT, PER_SECOND, SHARE, WATTS };

/* The counter tracks; at most EW_PF_COUNTER_MAX. */
static const struct counter {
    uint32_t metric;
    enum counter_kind kind;
    const char *name, *unit;
} counters[] = {
    {ETWATCH_M_cpu_percent, PERCENT, "cpu_percent", "%"},
    {ETWATCH_M_rss_bytes, GAUGE, "rss_bytes", "bytes"},
    {ETWATCH_M_io_read_bytes, PER_SECOND, "io_read_bytes/s", "bytes/s"},
    {ETWATCH_M_io_write_bytes, PER_SECOND, "io_write_bytes/s", "bytes/s"},
    {ETWATCH_M_faults_minor, PER_SECOND, "faults_minor/s", "1/s"},
    {ETWATCH_M_faults_major, PER_SECOND, "faults_major/s", "1/s"},
    {ETWATCH_M_runq_wait_ns, SHARE, "runq_wait_percent", "%"},
    {ETWATCH_M_threads, GAUGE, "threads", "threads"},
    {ETWATCH_M_net_received_bytes, PER_SECOND, "net_received_bytes/s", "bytes/s"},
    {ETWATCH_M_net_sent_bytes, PER_SECOND, "net_sent_bytes/s", "bytes/s"},
    {ETWATCH_M_gpu_percent, PERCENT, "gpu_percent", "%"},
    {ETWATCH_M_gpu_memory_bytes, GAUGE, "gpu_memory_bytes", "bytes"},
    {ETWATCH_M_npu_percent, PERCENT, "npu_percent", "%"},
    {ETWATCH_M_energy_uj, WATTS, "power_watts", "W"},
    {ETWATCH_M_disk_read_bytes, PER_SECOND, "disk_read_bytes/s", "bytes/s"},
    {ETWATCH_M_disk_write_bytes, PER_SECOND, "disk_write_bytes/s", "bytes/s"},
    {ETWATCH_M_presents, PER_SECOND, "presents/s", "1/s"},
};
enum {
    COUNTER_COUNT = sizeof counters / sizeof counters[0],
    FIRST_COUNTER = 2,
    OVERVIEW = FIRST_COUNTER + EW_PF_COUNTER_MAX, /* its lifetime above all processes */
};
_Static_assert((int)COUNTER_COUNT <= (int)EW_PF_COUNTER_MAX, "room in a row");

/* ------------------------------------------------------------------ instants */

size_t ew_pf_instant(struct ew_pf_sink *sink, uint64_t t_ns, uint64_t track, enum ew_pf_event event,
                     size_t *ret_inner)
{
    struct ew_buf *out = &sink->packets;
    size_t packet = ew_pf_packet(sink, t_ns);
    *ret_inner = ew_proto_begin(out, EW_PF_TRACK_EVENT);
    ew_proto_u64(out, EW_PF_EVENT_TYPE, EW_PF_TYPE_INSTANT);
    ew_proto_u64(out, EW_PF_EVENT_TRACK, track);
    ew_proto_u64(out, EW_PF_EVENT_CATEGORY_IID, 1);
    ew_proto_u64(out, EW_PF_EVENT_NAME_IID, (uint32_t)event + 1);
    return packet;
}

/* Starts a value with its name: interned, or as text. */
static size_t begin_interned(struct ew_buf *out, uint32_t iid)
{
    size_t mark = ew_proto_begin(out, EW_PF_EVENT_ANNOTATION);
    ew_proto_u64(out, EW_PF_ANNOTATION_NAME_IID, iid);
    return mark;
}

static size_t begin_named(struct ew_buf *out, const char *name)
{
    size_t mark = ew_proto_begin(out, EW_PF_EVENT_ANNOTATION);
    ew_proto_text(out, EW_PF_ANNOTATION_NAME, name);
    return mark;
}

static void end_u64(struct ew_buf *out, size_t mark, uint64_t value)
{
    ew_proto_u64(out, EW_PF_ANNOTATION_U64, value);
    ew_proto_end(out, mark);
}

static void end_text(struct ew_buf *out, size_t mark, const char *text)
{
    ew_proto_text(out, EW_PF_ANNOTATION_TEXT, text);
    ew_proto_end(out, mark);
}

void ew_pf_put_u64(struct ew_pf_sink *sink, uint32_t iid, uint64_t value)
{
    end_u64(&sink->packets, begin_interned(&sink->packets, iid), value);
}

void ew_pf_put_text(struct ew_pf_sink *sink, uint32_t iid, const char *text)
{
    end_text(&sink->packets, begin_interned(&sink->packets, iid), text);
}

void ew_pf_put_named(struct ew_pf_sink *sink, const char *name, uint64_t value)
{
    end_u64(&sink->packets, begin_named(&sink->packets, name), value);
}

void ew_pf_put_set_rest(struct ew_pf_sink *sink, const char *const names[ETWATCH_METRIC_SET_WORDS],
                        const struct etwatch_metric_set *set)
{
    for (uint32_t i = 1; i < ETWATCH_METRIC_SET_WORDS; i++)
        if (set->words[i] != 0)
            ew_pf_put_named(sink, names[i], set->words[i]);
}

void ew_pf_put_named_text(struct ew_pf_sink *sink, const char *name, const char *text)
{
    end_text(&sink->packets, begin_named(&sink->packets, name), text);
}

void ew_pf_put_named_double(struct ew_pf_sink *sink, const char *name, double value)
{
    struct ew_buf *out = &sink->packets;
    size_t mark = begin_named(out, name);
    ew_proto_double(out, EW_PF_ANNOTATION_DOUBLE, value);
    ew_proto_end(out, mark);
}

static void put_metric(struct ew_pf_sink *sink, uint32_t metric, const struct ew_value *value)
{
    struct ew_buf *out = &sink->packets;
    size_t mark = ew_proto_begin(out, EW_PF_EVENT_ANNOTATION);
    ew_proto_u64(out, EW_PF_ANNOTATION_NAME_IID, EW_PF_METRIC_IID + metric);
    if (value->kind == EW_VALUE_DOUBLE)
        ew_proto_double(out, EW_PF_ANNOTATION_DOUBLE, value->number);
    else if (value->kind == EW_VALUE_I64)
        ew_proto_i64(out, EW_PF_ANNOTATION_I64, value->i64);
    else
        ew_proto_u64(out, EW_PF_ANNOTATION_U64, value->u64);
    ew_proto_end(out, mark);
}

/* -------------------------------------------------------------------- tracks */

static void put_track(struct ew_pf_sink *sink, const struct ew_pf_row *row,
                      const struct etwatch_sample *s)
{
    struct ew_buf *out = &sink->packets;
    uint64_t t_ns = s->t_ns > row->shown_ns ? s->t_ns : row->shown_ns + 1;
    size_t packet = ew_pf_packet(sink, t_ns);
    size_t track = ew_proto_begin(out, EW_PF_TRACK_DESCRIPTOR);
    ew_proto_u64(out, EW_PF_TRACK_UUID, row->uuid);
    bool thread = row->tid != 0;
    size_t inner = ew_proto_begin(out, thread ? EW_PF_TRACK_THREAD : EW_PF_TRACK_PROCESS);
    ew_proto_u64(out, 1, row->pid);
    if (thread) {
        ew_proto_u64(out, 2, row->tid);
        if (s->thread_name != NULL)
            ew_proto_text(out, 5, s->thread_name);
    } else {
        if (s->name != NULL)
            ew_proto_text(out, 6, s->name);
        if (row->shown_ns > sink->unix_minus_boot_ns)
            ew_proto_u64(out, 7, row->shown_ns - sink->unix_minus_boot_ns);
    }
    ew_proto_end(out, inner);
    ew_proto_end(out, track);
    ew_pf_packet_end(sink, packet);
    packet = ew_pf_packet(sink, t_ns);
    track = ew_proto_begin(out, EW_PF_TRACK_DESCRIPTOR);
    ew_proto_u64(out, EW_PF_TRACK_UUID, row->uuid + 1);
    ew_proto_u64(out, EW_PF_TRACK_PARENT, row->uuid);
    ew_proto_text(out, EW_PF_TRACK_NAME, "samples");
    ew_proto_end(out, track);
    ew_pf_packet_end(sink, packet);
}

/* The process tree, which Perfetto shows next to the names. */
static void put_process(struct ew_pf_sink *sink, const struct etwatch_sample *s, uint64_t start_ns,
                        uint64_t t_ns)
{
    struct ew_buf *out = &sink->packets;
    size_t packet = ew_pf_packet(sink, t_ns);
    size_t tree = ew_proto_begin(out, EW_PF_PROCESS_TREE);
    size_t process = ew_proto_begin(out, 1);
    ew_proto_u64(out, 1, s->pid);
    if ((s->flags & ETWATCH_SAMPLE_HAS_PPID) != 0)
        ew_proto_u64(out, 2, s->ppid);
    if (s->name != NULL) {
        ew_proto_text(out, 3, s->name);
        ew_proto_u64(out, 9, 1);
    }
    if (start_ns > sink->unix_minus_boot_ns)
        ew_proto_u64(out, 7, start_ns - sink->unix_minus_boot_ns);
    ew_proto_end(out, process);
    /* On Linux the first thread has the id of its process. */
    bool windows = s->source == ETWATCH_SOURCE_ETL || s->source == ETWATCH_SOURCE_ETW;
    if (!windows) {
        size_t thread = ew_proto_begin(out, 2);
        ew_proto_u64(out, 1, s->pid);
        if (s->name != NULL)
            ew_proto_text(out, 2, s->name);
        ew_proto_u64(out, 3, s->pid);
        ew_proto_end(out, thread);
        ew_pf_thread_described(sink, s->pid, s->pid);
    }
    ew_proto_end(out, tree);
    ew_pf_packet_end(sink, packet);
}

static void put_slice(struct ew_pf_sink *sink, const struct ew_pf_row *row, uint64_t track,
                      uint32_t type, uint64_t t_ns)
{
    struct ew_buf *out = &sink->packets;
    size_t packet = ew_pf_packet(sink, t_ns);
    size_t inner = ew_proto_begin(out, EW_PF_TRACK_EVENT);
    ew_proto_u64(out, EW_PF_EVENT_TYPE, type);
    ew_proto_u64(out, EW_PF_EVENT_TRACK, track);
    if (type == EW_PF_TYPE_BEGIN)
        ew_proto_text(out, EW_PF_EVENT_NAME, row->name != NULL ? row->name : "process");
    ew_proto_end(out, inner);
    ew_pf_packet_end(sink, packet);
}

/* Tracks with this name become one in the UI, with a line for each process. */
static void put_overview(struct ew_pf_sink *sink, const struct ew_pf_row *row, uint32_t type,
                         uint64_t t_ns)
{
    struct ew_buf *out = &sink->packets;
    if (type == EW_PF_TYPE_BEGIN) {
        size_t packet = ew_pf_packet(sink, t_ns);
        size_t track = ew_proto_begin(out, EW_PF_TRACK_DESCRIPTOR);
        ew_proto_u64(out, EW_PF_TRACK_UUID, row->uuid + OVERVIEW);
        ew_proto_u64(out, EW_PF_TRACK_PARENT, EW_PF_OWN_TRACK);
        ew_proto_text(out, EW_PF_TRACK_NAME, "watched processes");
        ew_proto_end(out, track);
        ew_pf_packet_end(sink, packet);
    }
    put_slice(sink, row, row->uuid + OVERVIEW, type, t_ns);
}

/* Start or end of the lifetime slice. */
static void put_lifetime(struct ew_pf_sink *sink, const struct ew_pf_row *row, uint32_t type,
                         uint64_t t_ns)
{
    put_slice(sink, row, row->uuid, type, t_ns);
    if ((sink->base.flags & ETWATCH_SINK_OVERVIEW) != 0 && row->tid == 0)
        put_overview(sink, row, type, t_ns);
}

static void put_counter_track(struct ew_pf_sink *sink, const struct ew_pf_row *row, uint32_t i)
{
    struct ew_buf *out = &sink->packets;
    size_t packet = ew_proto_begin(out, EW_PF_TRACE_PACKET);
    ew_proto_u64(out, EW_PF_SEQUENCE_ID, EW_PF_SEQUENCE);
    size_t track = ew_proto_begin(out, EW_PF_TRACK_DESCRIPTOR);
    ew_proto_u64(out, EW_PF_TRACK_UUID, row->uuid + FIRST_COUNTER + i);
    ew_proto_u64(out, EW_PF_TRACK_PARENT, row->uuid);
    ew_proto_text(out, EW_PF_TRACK_NAME, counters[i].name);
    size_t counter = ew_proto_begin(out, EW_PF_TRACK_COUNTER);
    ew_proto_text(out, 6, counters[i].unit);
    ew_proto_end(out, counter);
    ew_proto_end(out, track);
    ew_pf_packet_end(sink, packet);
}

static void put_counter(struct ew_pf_sink *sink, struct ew_pf_row *row, uint32_t i, uint64_t t_ns,
                        double value)
{
    struct ew_buf *out = &sink->packets;
    if ((row->described >> i & 1) == 0) {
        put_counter_track(sink, row, i);
        row->described |= 1u << i;
    } else if (!(row->shown[i] < value) && !(row->shown[i] > value)) {
        return;
    }
    row->shown[i] = value;
    size_t packet = ew_pf_packet(sink, t_ns);
    size_t inner = ew_proto_begin(out, EW_PF_TRACK_EVENT);
    ew_proto_u64(out, EW_PF_EVENT_TYPE, EW_PF_TYPE_COUNTER);
    ew_proto_u64(out, EW_PF_EVENT_TRACK, row->uuid + FIRST_COUNTER + i);
    ew_proto_double(out, EW_PF_EVENT_DOUBLE, value);
    ew_proto_end(out, inner);
    ew_pf_packet_end(sink, packet);
}

/* ------------------------------------------------------------------ counters */

static double number_of(const struct ew_value *value)
{
    return value->kind == EW_VALUE_DOUBLE ? value->number
           : value->kind == EW_VALUE_I64  ? (double)value->i64
                                          : (double)value->u64;
}

static double track_value(const struct counter *counter, double value, uint64_t dt_ns)
{
    double ns = (double)dt_ns;
    switch (counter->kind) {
    case PER_SECOND:
        return value * 1e9 / ns;
    case SHARE:
        return value * 100 / ns;
    case WATTS:
        return value * 1e3 / ns;
    default:
        return value;
    }
}

/* Rates drop to 0 at the end of the last interval; if the process is over, its gauges too. */
static void end_counters(struct ew_pf_sink *sink, struct ew_pf_row *row, bool exited, uint64_t t_ns)
{
    for (uint32_t i = 0; i < COUNTER_COUNT; i++)
        if ((row->described >> i & 1) != 0 && row->shown[i] > 0 &&
            (exited || counters[i].kind != GAUGE))
            put_counter(sink, row, i, t_ns, 0);
}

static void put_counters(struct ew_pf_sink *sink, struct ew_pf_row *row,
                         const struct etwatch_sample *s)
{
    uint64_t from_ns = s->t_ns - s->dt_ns > row->shown_ns ? s->t_ns - s->dt_ns : row->shown_ns + 1;
    uint32_t count = s->type == ETWATCH_TYPE_THREAD ? 1 : COUNTER_COUNT;
    if (row->end_ns != 0 && from_ns > row->end_ns)
        end_counters(sink, row, false, row->end_ns);
    for (uint32_t i = 0; i < count; i++) {
        struct ew_value value = ew_sink_metric_value(s, counters[i].metric);
        if (value.kind == EW_VALUE_NONE || (s->dt_ns == 0 && counters[i].kind != GAUGE))
            continue;
        put_counter(sink, row, i, from_ns, track_value(&counters[i], number_of(&value), s->dt_ns));
    }
    row->end_ns = s->t_ns;
}

void ew_pf_end_counters(struct ew_pf_sink *sink)
{
    for (struct ew_pf_row *row = sink->rows.first; row != NULL; row = row->next)
        end_counters(sink, row, false, row->end_ns);
}

/* ------------------------------------------------------------------- samples */

static bool differs(const char *a, const char *b)
{
    return (a == NULL) != (b == NULL) || (a != NULL && b != NULL && strcmp(a, b) != 0);
}

static void put_text_if(struct ew_pf_sink *sink, uint32_t iid, const char *text)
{
    if (text != NULL)
        ew_pf_put_text(sink, iid, text);
}

/* Names are written when they change; user, cgroup and command line once, with the start. */
static void put_strings(struct ew_pf_sink *sink, const struct ew_pf_row *row,
                        const struct etwatch_sample *s)
{
    bool start = s->type == ETWATCH_TYPE_START;
    const char *name = s->type == ETWATCH_TYPE_THREAD ? s->thread_name : s->name;
    uint32_t iid = s->type == ETWATCH_TYPE_THREAD ? EW_PF_IID(thread_name) : EW_PF_IID(name);
    if (start || row == NULL || differs(row->name, name))
        put_text_if(sink, iid, name);
    if (!start && row != NULL && row->start != NULL)
        return;
    put_text_if(sink, EW_PF_IID(user), s->user);
    put_text_if(sink, EW_PF_IID(cgroup), s->cgroup);
    put_text_if(sink, EW_PF_IID(cmdline), s->cmdline);
}

void ew_pf_put_numbers(struct ew_pf_sink *sink, const struct etwatch_sample *s)
{
    ew_pf_put_u64(sink, EW_PF_IID(pid), s->pid);
    ew_pf_put_u64(sink, EW_PF_IID(start_ns), s->start_ns);
    if (s->type == ETWATCH_TYPE_THREAD)
        ew_pf_put_u64(sink, EW_PF_IID(tid), s->tid);
    if (s->type != ETWATCH_TYPE_START)
        ew_pf_put_u64(sink, EW_PF_IID(dt_ns), s->dt_ns);
    ew_pf_put_u64(sink, EW_PF_IID(flags), s->flags);
    if (s->source != sink->meta.source)
        ew_pf_put_u64(sink, EW_PF_IID(source), s->source);
    if ((s->flags & ETWATCH_SAMPLE_HAS_PPID) != 0)
        ew_pf_put_u64(sink, EW_PF_IID(ppid), s->ppid);
    if ((s->flags & ETWATCH_SAMPLE_HAS_SESSION) != 0)
        ew_pf_put_u64(sink, EW_PF_IID(session_id), s->session_id);
    for (uint32_t m = 0; m < ETWATCH_METRIC_COUNT; m++) {
        struct ew_value value = ew_sink_metric_value(s, m);
        if (value.kind != EW_VALUE_NONE)
            put_metric(sink, m, &value);
    }
}

static void put_instant(struct ew_pf_sink *sink, const struct ew_pf_row *row,
                        const struct etwatch_sample *s, uint64_t t_ns)
{
    static const enum ew_pf_event events[] = {
        [ETWATCH_TYPE_START] = EW_PF_E_start,
        [ETWATCH_TYPE_EXIT] = EW_PF_E_exit,
        [ETWATCH_TYPE_SAMPLE] = EW_PF_E_sample,
        [ETWATCH_TYPE_THREAD] = EW_PF_E_thread,
    };
    size_t inner;
    uint64_t track = row == NULL ? EW_PF_OWN_TRACK : row->uuid + 1;
    size_t packet = ew_pf_instant(sink, t_ns, track, events[s->type], &inner);
    if (t_ns != s->t_ns)
        ew_pf_put_u64(sink, EW_PF_IID(t_ns), s->t_ns);
    ew_pf_put_numbers(sink, s);
    put_strings(sink, row, s);
    ew_proto_end(&sink->packets, inner);
    ew_proto_end(&sink->packets, packet);
}

static void keep_name(struct ew_pf_row *row, const struct etwatch_sample *s)
{
    const char *name = s->type == ETWATCH_TYPE_THREAD ? s->thread_name : s->name;
    if (!differs(row->name, name))
        return;
    ew_free(row->name);
    row->name = name != NULL ? ew_strdup(name) : NULL;
}

/* Keeps the packet just written, in case the trace is restarted. */
static void keep_start(struct ew_pf_sink *sink, struct ew_pf_row *row, size_t from)
{
    const struct ew_buf *out = &sink->packets;
    if (out->error != 0 || row->start != NULL)
        return;
    row->start = ew_calloc(out->len - from, 1);
    if (row->start == NULL)
        return;
    row->start_size = out->len - from;
    memcpy(row->start, out->data + from, row->start_size);
}

static struct ew_pf_row *find_row(struct ew_pf_sink *sink, const struct etwatch_sample *s,
                                  bool *ret_new)
{
    uint32_t tid = s->type == ETWATCH_TYPE_THREAD ? s->tid : 0;
    struct ew_pf_row *row = ew_pf_rows_find(&sink->rows, s->pid, s->start_ns, tid);
    *ret_new = false;
    if (row != NULL)
        return row;
    row = ew_pf_rows_add(&sink->rows, s->pid, s->start_ns, tid);
    if (row == NULL)
        return NULL;
    row->uuid = ew_pf_take_uuid(sink, s->pid, tid, (s->flags & ETWATCH_SAMPLE_PREEXISTING) != 0);
    row->shown_ns = ew_pf_start_of(sink, tid != 0 ? tid : s->pid, s->start_ns);
    *ret_new = true;
    return row;
}

void ew_pf_sample(struct etwatch_sink *base, const struct etwatch_sample *s)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    bool is_new;
    if (s->type < ETWATCH_TYPE_START || s->type > ETWATCH_TYPE_THREAD)
        return;
    ew_pf_begin(sink);
    struct ew_pf_row *row = find_row(sink, s, &is_new);
    if (row != NULL && (is_new || (s->type != ETWATCH_TYPE_THREAD && differs(row->name, s->name))))
        put_track(sink, row, s);
    bool start = s->type == ETWATCH_TYPE_START;
    uint64_t begin_ns = row != NULL ? row->shown_ns : s->start_ns, shown_ns = s->t_ns;
    if (start && begin_ns >= s->t_ns)
        shown_ns = begin_ns + 1;
    if (start)
        put_process(sink, s, begin_ns, shown_ns);
    size_t from = sink->packets.len;
    put_instant(sink, row, s, shown_ns);
    if (row != NULL && start)
        keep_start(sink, row, from);
    if (row != NULL) {
        keep_name(row, s);
        if (start && row->begin_ns == 0) {
            row->begin_ns = shown_ns;
            put_lifetime(sink, row, EW_PF_TYPE_BEGIN, shown_ns);
        }
        if (s->type == ETWATCH_TYPE_SAMPLE || s->type == ETWATCH_TYPE_THREAD)
            put_counters(sink, row, s);
        if (s->type == ETWATCH_TYPE_EXIT) {
            if (row->begin_ns != 0)
                put_lifetime(sink, row, EW_PF_TYPE_END, s->t_ns);
            end_counters(sink, row, true, row->end_ns > s->t_ns ? row->end_ns : s->t_ns);
            ew_pf_rows_remove(&sink->rows, row);
        }
    }
    ew_pf_pack(sink, false);
}

void ew_pf_describe_again(struct ew_pf_sink *sink)
{
    for (struct ew_pf_row *row = sink->rows.first; row != NULL; row = row->next) {
        if (row->tid == 0 && row->start == NULL)
            continue;
        struct etwatch_sample s = {
            .t_ns = sink->meta.anchor_unix_ns,
            .pid = row->pid,
            .start_ns = row->start_ns,
            .name = row->tid == 0 ? row->name : NULL,
            .thread_name = row->tid == 0 ? NULL : row->name,
        };
        row->described = 0;
        put_track(sink, row, &s);
        if (row->tid == 0)
            ew_pf_process_described(sink, row->pid);
        ew_buf_bytes(&sink->packets, row->start, row->start_size);
        if (row->begin_ns != 0)
            put_lifetime(sink, row, EW_PF_TYPE_BEGIN, row->begin_ns);
        ew_pf_pack(sink, false);
    }
}
