/* SPDX-License-Identifier: MIT */
/*
 * Reads the instants of category "etwatch" that etwatch itself wrote back into the structs they
 * were made from.
 *
 * Names are resolved through the trace's own interning table, so a trace by another version can be
 * read as far as the names agree; an unknown metric is skipped. Track events of other programs are
 * counted by type.
 */
#include <string.h>

#include "source/pftrace/pftrace.h"

static const char *const value_names[] = {
#define EW_X(name) #name,
    EW_PF_VALUES(EW_X)
#undef EW_X
};
static const char *const event_names[] = {
#define EW_X(name) #name,
    EW_PF_EVENTS(EW_X)
#undef EW_X
};
static const char *const metric_names[] = {
#define ETWATCH_X(name, type, kind) #name,
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
};
static const uint16_t metric_offsets[] = {
#define ETWATCH_X(name, type, kind) offsetof(struct etwatch_sample, name),
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
};

static uint16_t find_value(struct ew_span name)
{
    for (uint32_t i = 0; i < EW_PF_VALUE_COUNT; i++)
        if (ew_span_equals(name, value_names[i]))
            return (uint16_t)i;
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        if (ew_span_equals(name, metric_names[i]))
            return (uint16_t)(EW_PF_VALUE_COUNT + i);
    return EW_PFT_UNKNOWN;
}

/* -------------------------------------------------------------------- interned */

static void read_entry(struct ew_bytes *entry, uint64_t *ret_iid, struct ew_span *ret_name)
{
    struct ew_proto_field field;
    *ret_iid = 0;
    *ret_name = (struct ew_span){"", 0};
    while (ew_proto_next(entry, &field)) {
        if (field.number == 1 && field.wire == EW_PROTO_VARINT)
            *ret_iid = field.u;
        if (field.number == 2 && field.wire == EW_PROTO_LEN)
            *ret_name = (struct ew_span){(const char *)field.body.data, field.body.size};
    }
}

static void take_entry(struct ew_pftrace *trace, uint32_t kind, uint64_t iid, struct ew_span name)
{
    if (kind == EW_PF_INTERNED_ANNOTATION_NAME && iid < EW_PFT_IIDS_MAX)
        trace->value_of[iid] = find_value(name);
    if (kind != EW_PF_INTERNED_EVENT_NAME || iid >= sizeof trace->event_of)
        return;
    for (uint32_t i = 0; i < EW_PF_EVENT_COUNT; i++)
        if (ew_span_equals(name, event_names[i]))
            trace->event_of[iid] = (uint8_t)(i + 1);
}

void ew_pft_intern(struct ew_pftrace *trace, struct ew_bytes *interned, uint32_t sequence)
{
    struct ew_bytes again = *interned;
    struct ew_proto_field field;
    struct ew_span name;
    uint64_t iid;
    while (ew_proto_next(interned, &field)) {
        if (field.number != EW_PF_INTERNED_CATEGORY || field.wire != EW_PROTO_LEN)
            continue;
        read_entry(&field.body, &iid, &name);
        if (!ew_span_equals(name, "etwatch"))
            continue;
        trace->own_known = true;
        trace->own_sequence = sequence;
        trace->own_category = (uint32_t)iid;
        memset(trace->value_of, 0xFF, sizeof trace->value_of);
        memset(trace->event_of, 0, sizeof trace->event_of);
    }
    if (!trace->own_known || sequence != trace->own_sequence)
        return;
    while (ew_proto_next(&again, &field)) {
        if (field.wire != EW_PROTO_LEN)
            continue;
        read_entry(&field.body, &iid, &name);
        take_entry(trace, field.number, iid, name);
    }
}

/* ----------------------------------------------------------------- annotations */

struct annotation {
    uint16_t value; /* as in value_of; EW_PFT_UNKNOWN: see name */
    struct ew_span name, text;
    uint64_t u; /* also holds the bits of a double */
    bool is_text;
};

static void read_annotation(const struct ew_pftrace *trace, struct ew_bytes *body,
                            struct annotation *ret)
{
    struct ew_proto_field field;
    *ret = (struct annotation){.value = EW_PFT_UNKNOWN, .name = {"", 0}, .text = {"", 0}};
    while (ew_proto_next(body, &field)) {
        switch (field.number) {
        case EW_PF_ANNOTATION_NAME_IID:
            if (field.u < EW_PFT_IIDS_MAX)
                ret->value = trace->value_of[field.u];
            break;
        case EW_PF_ANNOTATION_BOOL:
        case EW_PF_ANNOTATION_U64:
        case EW_PF_ANNOTATION_I64:
        case EW_PF_ANNOTATION_DOUBLE:
            ret->u = field.u;
            break;
        case EW_PF_ANNOTATION_TEXT:
            if (field.wire == EW_PROTO_LEN) {
                ret->text = (struct ew_span){(const char *)field.body.data, field.body.size};
                ret->is_text = true;
            }
            break;
        case EW_PF_ANNOTATION_NAME:
            if (field.wire == EW_PROTO_LEN)
                ret->name = (struct ew_span){(const char *)field.body.data, field.body.size};
            break;
        default:
            break;
        }
    }
}

/* The next annotation of an event; false: none left. */
static bool next_annotation(const struct ew_pftrace *trace, struct ew_bytes *event,
                            struct annotation *ret)
{
    struct ew_proto_field field;
    while (ew_proto_next(event, &field)) {
        if (field.number == EW_PF_EVENT_ANNOTATION && field.wire == EW_PROTO_LEN) {
            read_annotation(trace, &field.body, ret);
            return true;
        }
    }
    return false;
}

/* ---------------------------------------------------------------------- samples */

/* Strings of a sample, by offset: pointers into the text buffer are valid only after the last
 * one was added. */
struct sample_strings {
    size_t name, thread_name, user, cgroup, cmdline; /* offset + 1; 0: none */
    uint64_t t_ns;                       /* if different from the packet's time; 0: same */
    struct etwatch_metric_set estimated; /* of totals */
};

static size_t store(struct ew_pftrace *trace, struct ew_span text)
{
    size_t at = trace->text.len;
    ew_buf_bytes(&trace->text, text.text, text.len < EW_PFT_TEXT_MAX ? text.len : EW_PFT_TEXT_MAX);
    ew_buf_char(&trace->text, '\0');
    return at + 1;
}

static void take_value(struct ew_pftrace *trace, const struct annotation *a,
                       struct etwatch_sample *s, struct sample_strings *strings)
{
    if (a->value >= EW_PF_VALUE_COUNT) {
        uint32_t m = a->value - (uint32_t)EW_PF_VALUE_COUNT;
        if (m >= ETWATCH_METRIC_COUNT)
            return;
        memcpy((char *)s + metric_offsets[m], &a->u, sizeof a->u);
        etwatch_metric_set_add(&s->has, m);
        return;
    }
    switch ((enum ew_pf_value)a->value) {
    case EW_PF_V_pid:
        s->pid = (uint32_t)a->u;
        break;
    case EW_PF_V_tid:
        s->tid = (uint32_t)a->u;
        break;
    case EW_PF_V_ppid:
        s->ppid = (uint32_t)a->u;
        break;
    case EW_PF_V_session_id:
        s->session_id = (uint32_t)a->u;
        break;
    case EW_PF_V_start_ns:
        s->start_ns = a->u;
        break;
    case EW_PF_V_dt_ns:
        s->dt_ns = a->u;
        break;
    case EW_PF_V_flags:
        s->flags = (uint32_t)a->u;
        break;
    case EW_PF_V_source:
        s->source = (uint32_t)a->u;
        break;
    case EW_PF_V_name:
        strings->name = store(trace, a->text);
        break;
    case EW_PF_V_thread_name:
        strings->thread_name = store(trace, a->text);
        break;
    case EW_PF_V_user:
        strings->user = store(trace, a->text);
        break;
    case EW_PF_V_cgroup:
        strings->cgroup = store(trace, a->text);
        break;
    case EW_PF_V_cmdline:
        strings->cmdline = store(trace, a->text);
        break;
    case EW_PF_V_t_ns:
        strings->t_ns = a->u;
        break;
    case EW_PF_V_estimated:
        strings->estimated.words[0] = a->u;
        break;
    default:
        break;
    }
}

static const char *const estimated_names[] = EW_PF_SET_NAMES("estimated");
static const char *const available_names[] = EW_PF_SET_NAMES("available");

static void take_set(const struct annotation *a, const char *const names[ETWATCH_METRIC_SET_WORDS],
                     struct etwatch_metric_set *to)
{
    for (uint32_t i = 0; i < ETWATCH_METRIC_SET_WORDS; i++)
        if (ew_span_equals(a->name, names[i]))
            to->words[i] = a->u;
}

static const char *stored(const struct ew_pftrace *trace, size_t at)
{
    return at == 0 || trace->text.error != 0 ? NULL : trace->text.data + at - 1;
}

static void read_sample(struct ew_pftrace *trace, struct ew_bytes *event, struct etwatch_sample *s,
                        struct sample_strings *strings)
{
    struct annotation annotation;
    trace->text.len = 0;
    trace->text.error = 0;
    while (next_annotation(trace, event, &annotation)) {
        if (annotation.value != EW_PFT_UNKNOWN)
            take_value(trace, &annotation, s, strings);
        else
            take_set(&annotation, estimated_names, &strings->estimated);
    }
    s->name = stored(trace, strings->name);
    s->thread_name = stored(trace, strings->thread_name);
    s->user = stored(trace, strings->user);
    s->cgroup = stored(trace, strings->cgroup);
    s->cmdline = stored(trace, strings->cmdline);
}

static int emit_sample(struct ew_pftrace *trace, struct ew_bytes *event, uint64_t t_ns,
                       uint32_t type, const struct ew_pftrace_visitor *visitor)
{
    struct etwatch_sample s = {
        .size = sizeof s, .type = type, .t_ns = t_ns, .source = trace->source};
    struct sample_strings strings = {0};
    read_sample(trace, event, &s, &strings);
    s.t_ns = strings.t_ns != 0 ? strings.t_ns : t_ns;
    ew_pft_strings_complete(&trace->strings, &s);
    return visitor->sample != NULL ? visitor->sample(visitor->ctx, &s) : 0;
}

/* Totals with a tid are those of threads. */
static int emit_total(struct ew_pftrace *trace, struct ew_bytes *event,
                      const struct ew_pftrace_visitor *visitor)
{
    struct etwatch_sample s = {.size = sizeof s, .source = trace->source};
    struct sample_strings strings = {0};
    if (visitor->total == NULL)
        return 0;
    read_sample(trace, event, &s, &strings);
    s.type = s.tid != 0 ? ETWATCH_TYPE_THREAD : ETWATCH_TYPE_EXIT;
    s.t_ns = strings.t_ns;
    return visitor->total(visitor->ctx, &s, &strings.estimated);
}

/* ---------------------------------------------------------------------------- run */

static int emit_loss(struct ew_pftrace *trace, struct ew_bytes *event,
                     const struct ew_pftrace_visitor *visitor)
{
    struct etwatch_loss loss = {.size = sizeof loss};
    struct annotation a;
    while (next_annotation(trace, event, &a)) {
        if (a.value == EW_PF_V_stage)
            loss.stage = (uint32_t)a.u;
        else if (a.value == EW_PF_V_count)
            loss.count = a.u;
        else if (a.value == EW_PF_V_from_ns)
            loss.from_ns = a.u;
        else if (a.value == EW_PF_V_to_ns)
            loss.to_ns = a.u;
    }
    return visitor->loss != NULL ? visitor->loss(visitor->ctx, &loss) : 0;
}

static void take_number(const struct annotation *a, const char *name, uint64_t *to)
{
    if (ew_span_equals(a->name, name))
        *to = a->u;
}

static void take_double(const struct annotation *a, const char *name, double *to)
{
    if (ew_span_equals(a->name, name))
        *to = ew_proto_to_double(a->u);
}

static int emit_whole_alert(struct ew_pftrace *trace, struct ew_bytes *event, uint64_t t_ns,
                            const struct ew_pftrace_visitor *visitor)
{
    struct etwatch_alert alert = {.size = sizeof alert, .from_ns = t_ns, .to_ns = t_ns};
    struct annotation a;
    char condition[128] = "", name[64] = "";
    uint64_t flags = 0, pid = 0;
    while (next_annotation(trace, event, &a)) {
        if (a.value == EW_PF_V_from_ns)
            alert.from_ns = a.u;
        else if (a.value == EW_PF_V_to_ns)
            alert.to_ns = a.u;
        else if (a.value == EW_PF_V_start_ns)
            alert.start_ns = a.u;
        else if (a.value == EW_PF_V_pid)
            pid = a.u;
        else if (a.value == EW_PF_V_flags)
            flags = a.u;
        else if (a.value == EW_PF_V_name)
            (void)ew_span_copy(a.text, name, sizeof name);
        else if (ew_span_equals(a.name, "condition"))
            (void)ew_span_copy(a.text, condition, sizeof condition);
        take_double(&a, "threshold", &alert.threshold);
        take_double(&a, "value", &alert.value);
        take_double(&a, "peak", &alert.peak);
    }
    alert.source = trace->source;
    alert.flags = (uint32_t)flags;
    alert.pid = (uint32_t)pid;
    alert.condition = condition;
    alert.name = name[0] != '\0' ? name : NULL;
    return visitor->alert(visitor->ctx, &alert);
}

/* Without a visitor of alerts: only that there was one, and since when its condition held. */
static int emit_alert(struct ew_pftrace *trace, struct ew_bytes *event, uint64_t t_ns,
                      const struct ew_pftrace_visitor *visitor)
{
    struct annotation a;
    if (visitor->alert != NULL)
        return emit_whole_alert(trace, event, t_ns, visitor);
    while (next_annotation(trace, event, &a)) {
        if (a.value == EW_PF_V_from_ns)
            t_ns = a.u;
    }
    return visitor->other != NULL ? visitor->other(visitor->ctx, "etwatch", "alert", t_ns, true)
                                  : 0;
}

static int emit_meta(struct ew_pftrace *trace, struct ew_bytes *event,
                     const struct ew_pftrace_visitor *visitor)
{
    struct etwatch_meta meta = {.size = sizeof meta};
    struct annotation a;
    uint64_t cpus = 0;
    while (next_annotation(trace, event, &a)) {
        if (a.value == EW_PF_V_source)
            meta.source = (uint32_t)a.u;
        take_number(&a, "cpu_count", &cpus);
        take_double(&a, "hz_requested", &meta.hz_requested);
        take_number(&a, "anchor_unix_ns", &meta.anchor_unix_ns);
        take_number(&a, "anchor_raw_ns", &meta.anchor_raw_ns);
        take_set(&a, estimated_names, &meta.estimated);
        take_set(&a, available_names, &meta.available);
        if (ew_span_equals(a.name, "fallback"))
            (void)ew_span_copy(a.text, meta.fallback, sizeof meta.fallback);
        if (ew_span_equals(a.name, "os"))
            (void)ew_span_copy(a.text, trace->os, sizeof trace->os);
        if (ew_span_equals(a.name, "host"))
            (void)ew_span_copy(a.text, trace->host, sizeof trace->host);
    }
    meta.cpu_count = (uint32_t)cpus;
    trace->source = meta.source;
    return visitor->meta != NULL ? visitor->meta(visitor->ctx, &meta, trace->os, trace->host) : 0;
}

static int emit_stats(struct ew_pftrace *trace, struct ew_bytes *event,
                      const struct ew_pftrace_visitor *visitor)
{
    struct etwatch_stats stats = {.size = sizeof stats};
    struct annotation a;
    uint64_t source = 0;
    while (next_annotation(trace, event, &a)) {
        take_number(&a, "source", &source);
        take_double(&a, "hz_requested", &stats.hz_requested);
        take_double(&a, "hz_reached", &stats.hz_reached);
        take_double(&a, "hz_effective", &stats.hz_effective);
        take_number(&a, "samples", &stats.samples);
        take_number(&a, "events", &stats.events);
        take_number(&a, "lost", &stats.lost);
        take_number(&a, "undecoded", &stats.undecoded);
        take_number(&a, "late", &stats.late);
        take_number(&a, "wakeups", &stats.wakeups);
        take_number(&a, "processes", &stats.processes);
        take_number(&a, "threads", &stats.threads);
        take_number(&a, "self_rss_bytes", &stats.self_rss_bytes);
        take_number(&a, "self_rss_peak_bytes", &stats.self_rss_peak_bytes);
        take_double(&a, "self_cpu_percent", &stats.self_cpu_percent);
        take_double(&a, "self_kernel_percent", &stats.self_kernel_percent);
        take_number(&a, "duration_ns", &stats.duration_ns);
        take_number(&a, "queue_dropped", &stats.queue_dropped);
    }
    stats.source = (uint32_t)source;
    return visitor->stats != NULL ? visitor->stats(visitor->ctx, &stats) : 0;
}

static int emit_system(struct ew_pftrace *trace, struct ew_bytes *event,
                       const struct ew_pftrace_visitor *visitor)
{
    struct etwatch_trace_system system = {.size = sizeof system};
    struct annotation a;
    uint64_t by_switches = 0;
    while (next_annotation(trace, event, &a)) {
        take_number(&a, "cpu_from_switches", &by_switches);
        take_number(&a, "busy_ns", &system.busy_ns);
        take_number(&a, "idle_ns", &system.idle_ns);
        take_number(&a, "dpc_ns", &system.dpc_ns);
        take_number(&a, "isr_ns", &system.isr_ns);
        take_number(&a, "unknown_ns", &system.unknown_ns);
        take_number(&a, "switches", &system.switches);
        take_number(&a, "samples", &system.samples);
    }
    system.cpu_from_switches = by_switches != 0;
    return visitor->system != NULL ? visitor->system(visitor->ctx, &system) : 0;
}

/* -------------------------------------------------------------------------- spans */

static const char *const cause_names[ETWATCH_CAUSE_COUNT] = {
    "work_ns",      "runq_wait_ns",    "throttled_ns", "fault_ns",  "disk_wait_ns",
    "lock_wait_ns", "process_wait_ns", "sleep_ns",     "unknown_ns"};

/* 0: the category is that of no span. */
static uint32_t span_kind(struct ew_span category)
{
    static const char *const names[] = {[ETWATCH_SPAN_WORK] = "work",
                                        [ETWATCH_SPAN_INFERENCE] = "inference",
                                        [ETWATCH_SPAN_LOAD] = "load"};
    for (uint32_t kind = ETWATCH_SPAN_WORK; kind < sizeof names / sizeof names[0]; kind++)
        if (ew_span_equals(category, names[kind]))
            return kind;
    return 0;
}

static void take_cause(const struct annotation *a, struct etwatch_span *span)
{
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++) {
        if (!ew_span_equals(a->name, cause_names[i]))
            continue;
        span->ns[i] = a->u;
        span->flags |= i == ETWATCH_CAUSE_FAULT ? (uint32_t)ETWATCH_SPAN_HAS_FAULTS : 0;
    }
}

static int emit_span(struct ew_pftrace *trace, struct ew_bytes *event, uint64_t t_ns, uint32_t kind,
                     struct ew_span name, const struct ew_pftrace_visitor *visitor)
{
    struct etwatch_span span = {.size = sizeof span, .kind = kind, .start_ns = t_ns};
    struct annotation a;
    uint64_t latency_ns = 0, kernels = 0;
    size_t session = 0, shape = 0;
    trace->text.len = 0;
    trace->text.error = 0;
    size_t name_at = store(trace, name);
    while (next_annotation(trace, event, &a)) {
        take_number(&a, "dt_ns", &latency_ns);
        take_number(&a, "cpu_ns", &span.cpu_ns);
        take_cause(&a, &span);
        take_number(&a, "gpu_ns", &span.gpu_ns);
        take_number(&a, "wait_gpu_ns", &span.wait_gpu_ns);
        take_number(&a, "gpu_kernels", &kernels);
        if (ew_span_equals(a.name, "gpu_ns"))
            span.flags |= ETWATCH_SPAN_HAS_GPU;
        if (ew_span_equals(a.name, "result") && ew_span_equals(a.text, "failed"))
            span.flags |= ETWATCH_SPAN_FAILED;
        if (ew_span_equals(a.name, "session") && a.is_text)
            session = store(trace, a.text);
        if (ew_span_equals(a.name, "shape") && a.is_text)
            shape = store(trace, a.text);
    }
    span.name = stored(trace, name_at);
    span.session = stored(trace, session);
    span.shape = stored(trace, shape);
    span.end_ns = latency_ns <= UINT64_MAX - t_ns ? t_ns + latency_ns : t_ns;
    span.gpu_kernels = (uint32_t)kernels;
    return span.name == NULL ? ETWATCH_ENOMEM : visitor->span(visitor->ctx, &span);
}

/* ------------------------------------------------------------------- track events */

static int emit_other(struct ew_pftrace *trace, uint64_t type, uint64_t t_ns,
                      const struct ew_pftrace_visitor *visitor)
{
    static const char *const types[] = {"unspecified", "slice_begin", "slice_end", "instant",
                                        "counter"};
    const char *name = type < sizeof types / sizeof types[0] ? types[type] : types[0];
    (void)trace;
    return visitor->other != NULL ? visitor->other(visitor->ctx, "track_event", name, t_ns, false)
                                  : 0;
}

int ew_pft_track_event(struct ew_pftrace *trace, struct ew_bytes *event, uint64_t t_ns,
                       uint32_t sequence, const struct ew_pftrace_visitor *visitor)
{
    struct ew_bytes scan = *event;
    struct ew_proto_field field;
    uint64_t type = 0, name = 0, category = 0;
    struct ew_span name_text = {"", 0}, category_text = {"", 0};
    bool has_category = false;
    while (ew_proto_next(&scan, &field)) {
        type = field.number == EW_PF_EVENT_TYPE ? field.u : type;
        name = field.number == EW_PF_EVENT_NAME_IID ? field.u : name;
        category = field.number == EW_PF_EVENT_CATEGORY_IID ? field.u : category;
        has_category |= field.number == EW_PF_EVENT_CATEGORY_IID;
        has_category |= field.number == EW_PF_EVENT_CATEGORY;
        if (field.number == EW_PF_EVENT_NAME && field.wire == EW_PROTO_LEN)
            name_text = (struct ew_span){(const char *)field.body.data, field.body.size};
        if (field.number == EW_PF_EVENT_CATEGORY && field.wire == EW_PROTO_LEN)
            category_text = (struct ew_span){(const char *)field.body.data, field.body.size};
    }
    t_ns += trace->unix_minus_boot_ns;
    bool own = trace->own_known && sequence == trace->own_sequence;
    uint32_t kind = own && type == EW_PF_TYPE_BEGIN ? span_kind(category_text) : 0;
    if (kind != 0 && visitor->span != NULL)
        return emit_span(trace, event, t_ns, kind, name_text, visitor);
    /* Our counters and slices repeat the samples; problems of devices are only shown. */
    if (own && (type != EW_PF_TYPE_INSTANT || !has_category))
        return 0;
    if (!own || category != trace->own_category || name >= sizeof trace->event_of ||
        trace->event_of[name] == 0)
        return emit_other(trace, type, t_ns, visitor);
    switch ((enum ew_pf_event)(trace->event_of[name] - 1)) {
    case EW_PF_E_start:
        return emit_sample(trace, event, t_ns, ETWATCH_TYPE_START, visitor);
    case EW_PF_E_exit:
        return emit_sample(trace, event, t_ns, ETWATCH_TYPE_EXIT, visitor);
    case EW_PF_E_sample:
        return emit_sample(trace, event, t_ns, ETWATCH_TYPE_SAMPLE, visitor);
    case EW_PF_E_thread:
        return emit_sample(trace, event, t_ns, ETWATCH_TYPE_THREAD, visitor);
    case EW_PF_E_meta:
        return emit_meta(trace, event, visitor);
    case EW_PF_E_loss:
        return emit_loss(trace, event, visitor);
    case EW_PF_E_stats:
        return emit_stats(trace, event, visitor);
    case EW_PF_E_alert:
        return emit_alert(trace, event, t_ns, visitor);
    case EW_PF_E_total:
        return emit_total(trace, event, visitor);
    case EW_PF_E_system:
        return emit_system(trace, event, visitor);
    default:
        return emit_other(trace, type, t_ns, visitor);
    }
}
