/* SPDX-License-Identifier: MIT */
/*
 * Walks over a Perfetto trace in time order.
 *
 * A trace is ordered per CPU and nearly ordered as a whole: bundles of different CPUs follow each
 * other. So events pass through a heap that is kept filled with one window of events; those that
 * are further out of order cannot be corrected and are counted as late. Samples wait with copies of
 * their strings, in slots that are reused.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/perfetto.h"
#include "recording/perfetto_trace.h"

enum {
    TEXT_MAX = 16 << 20, /* strings of waiting samples */
    TEXT_KEPT = 512,     /* a free slot keeps a block of at most this size */
};

static const char *or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

/* ------------------------------------------------------------------------ heap */

static bool before(const struct ew_perfetto_trace_item *a, const struct ew_perfetto_trace_item *b)
{
    return a->t_ns < b->t_ns || (a->t_ns == b->t_ns && a->order < b->order);
}

static struct ew_perfetto_trace_item *push(struct ew_perfetto_trace *trace,
                                           const struct ew_perfetto_trace_item *item)
{
    if (trace->heap_count == trace->heap_size) {
        uint32_t size = trace->heap_size == 0 ? EW_PERFETTO_TRACE_WINDOW : trace->heap_size * 2;
        struct ew_perfetto_trace_item *heap = ew_realloc_array(trace->heap, size, sizeof *heap);
        if (heap == NULL) {
            trace->error = ETWATCH_ENOMEM;
            return NULL;
        }
        trace->heap = heap;
        trace->heap_size = size;
    }
    uint32_t at = trace->heap_count++;
    while (at > 0 && before(item, &trace->heap[(at - 1) / 2])) {
        trace->heap[at] = trace->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    trace->heap[at] = *item;
    return &trace->heap[at];
}

static void pop(struct ew_perfetto_trace *trace, struct ew_perfetto_trace_item *ret_item)
{
    *ret_item = trace->heap[0];
    struct ew_perfetto_trace_item last = trace->heap[--trace->heap_count];
    uint32_t at = 0, count = trace->heap_count;
    while (at * 2 + 1 < count) {
        uint32_t child = at * 2 + 1;
        if (child + 1 < count && before(&trace->heap[child + 1], &trace->heap[child]))
            child++;
        if (!before(&trace->heap[child], &last))
            break;
        trace->heap[at] = trace->heap[child];
        at = child;
    }
    if (count > 0)
        trace->heap[at] = last;
}

/* ----------------------------------------------------------------------- slots */

static const char **string_of(struct etwatch_sample *sample, unsigned i)
{
    const char **names[] = {&sample->name, &sample->thread_name, &sample->user, &sample->cgroup,
                            &sample->cmdline};
    return i < sizeof names / sizeof names[0] ? names[i] : NULL;
}

static uint32_t take_slot(struct ew_perfetto_trace *trace)
{
    if (trace->free_slot != 0) {
        uint32_t slot = trace->free_slot - 1;
        trace->free_slot = trace->slots[slot].next_free;
        return slot;
    }
    if (trace->slot_count == trace->slot_size) {
        uint32_t size = trace->slot_size == 0 ? 256 : trace->slot_size * 2;
        struct ew_perfetto_trace_slot *slots = ew_realloc_array(trace->slots, size, sizeof *slots);
        if (slots == NULL)
            return UINT32_MAX;
        trace->slots = slots;
        trace->slot_size = size;
    }
    memset(&trace->slots[trace->slot_count], 0, sizeof *trace->slots);
    return trace->slot_count++;
}

static bool has_slot(const struct ew_perfetto_trace_item *item)
{
    return item->what == EW_PERFETTO_TRACE_SAMPLE || item->what == EW_PERFETTO_TRACE_ALERT;
}

static void release_slot(struct ew_perfetto_trace *trace, uint32_t slot)
{
    struct ew_perfetto_trace_slot *released = &trace->slots[slot];
    trace->text_bytes -= released->text_len;
    released->text_len = 0;
    if (released->text_size > TEXT_KEPT) {
        ew_free(released->text);
        released->text = NULL;
        released->text_size = 0;
    }
    trace->slots[slot].next_free = trace->free_slot;
    trace->free_slot = slot + 1;
}

static bool keep_sample(struct ew_perfetto_trace_slot *slot, const struct etwatch_sample *sample)
{
    const char **string;
    size_t size = 0;
    slot->sample = *sample;
    for (unsigned i = 0; (string = string_of(&slot->sample, i)) != NULL; i++)
        size += *string != NULL ? strlen(*string) + 1 : 0;
    if (size > slot->text_size) {
        char *text = ew_realloc_array(slot->text, size, 1);
        if (text == NULL)
            return false;
        slot->text = text;
        slot->text_size = size;
    }
    char *at = slot->text;
    for (unsigned i = 0; (string = string_of(&slot->sample, i)) != NULL; i++) {
        if (*string == NULL)
            continue;
        size_t len = strlen(*string) + 1;
        memcpy(at, *string, len);
        *string = at;
        at += len;
    }
    slot->text_len = size;
    return true;
}

/* ------------------------------------------------------------ filling the window */

static bool is_selected(const struct ew_perfetto_trace *trace, uint32_t pid, const char *name)
{
    return ew_perfetto_trace_selected(trace, trace->selection, pid, name);
}

static int put(struct ew_perfetto_trace *trace, struct ew_perfetto_trace_item *item)
{
    item->order = trace->order++;
    return push(trace, item) == NULL ? ETWATCH_ENOMEM : 0;
}

static int on_event(void *ctx, const struct etwatch_event *event)
{
    struct ew_perfetto_trace *trace = ctx;
    struct ew_perfetto_trace_item item = {
        .t_ns = event->t_ns, .what = EW_PERFETTO_TRACE_EVENT, .event = *event};
    bool wanted = is_selected(trace, event->pid, event->name) ||
                  (event->kind == ETWATCH_EVENT_SWITCH &&
                   is_selected(trace, event->next_pid, event->next_name));
    if (!wanted || !ew_perfetto_trace_in_range(trace, event->t_ns))
        return 0;
    (void)snprintf(item.name, sizeof item.name, "%s", event->name != NULL ? event->name : "");
    (void)snprintf(item.next_name, sizeof item.next_name, "%s",
                   event->next_name != NULL ? event->next_name : "");
    return put(trace, &item);
}

static int on_sample(void *ctx, const struct etwatch_sample *sample)
{
    struct ew_perfetto_trace *trace = ctx;
    struct ew_perfetto_trace_item item = {.t_ns = sample->t_ns, .what = EW_PERFETTO_TRACE_SAMPLE};
    if (!is_selected(trace, sample->pid, sample->name) ||
        !ew_perfetto_trace_in_range(trace, sample->t_ns))
        return 0;
    item.slot = take_slot(trace);
    if (item.slot == UINT32_MAX || !keep_sample(&trace->slots[item.slot], sample))
        return ETWATCH_ENOMEM;
    trace->text_bytes += trace->slots[item.slot].text_len;
    return put(trace, &item);
}

static int on_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct ew_perfetto_trace *trace = ctx;
    struct ew_perfetto_trace_item item = {.t_ns = loss->to_ns, .what = EW_PERFETTO_TRACE_LOSS};
    trace->stats.lost += loss->count;
    if (!ew_perfetto_trace_in_range(trace, loss->to_ns))
        return 0;
    item.event.t_ns = loss->from_ns;
    item.event.kind = loss->stage;
    memcpy(item.name, &loss->count, sizeof loss->count);
    return put(trace, &item);
}

static bool keep_alert(struct ew_perfetto_trace_slot *slot, const struct etwatch_alert *alert)
{
    size_t condition = strlen(alert->condition) + 1;
    size_t name = alert->name != NULL ? strlen(alert->name) + 1 : 0;
    slot->alert = *alert;
    if (condition + name > slot->text_size) {
        char *text = ew_realloc_array(slot->text, condition + name, 1);
        if (text == NULL)
            return false;
        slot->text = text;
        slot->text_size = condition + name;
    }
    slot->alert.condition = memcpy(slot->text, alert->condition, condition);
    if (name > 0)
        slot->alert.name = memcpy(slot->text + condition, alert->name, name);
    slot->text_len = condition + name;
    return true;
}

static int on_alert(void *ctx, const struct etwatch_alert *alert)
{
    struct ew_perfetto_trace *trace = ctx;
    struct ew_perfetto_trace_item item = {.t_ns = alert->from_ns, .what = EW_PERFETTO_TRACE_ALERT};
    if (!is_selected(trace, alert->pid, alert->name) ||
        !ew_perfetto_trace_in_range(trace, alert->from_ns))
        return 0;
    item.slot = take_slot(trace);
    if (item.slot == UINT32_MAX || !keep_alert(&trace->slots[item.slot], alert))
        return ETWATCH_ENOMEM;
    trace->text_bytes += trace->slots[item.slot].text_len;
    return put(trace, &item);
}

static int on_other(void *ctx, const char *provider, const char *event, uint64_t t_ns, bool decoded)
{
    struct ew_perfetto_trace *trace = ctx;
    struct ew_perfetto_trace_item item = {.t_ns = t_ns, .what = EW_PERFETTO_TRACE_OTHER};
    (void)decoded;
    if (!ew_selection_includes_all(trace->selection) || !ew_perfetto_trace_in_range(trace, t_ns))
        return 0;
    (void)snprintf(item.name, sizeof item.name, "%s", event);
    (void)snprintf(item.next_name, sizeof item.next_name, "%s", provider);
    return put(trace, &item);
}

/* Fills the heap until a window of items is waiting, their strings take too much memory, or the
 * files end. */
static int fill_window(struct ew_perfetto_trace *trace)
{
    struct ew_pftrace_visitor visitor = {
        .ctx = trace,
        .sample = on_sample,
        .event = on_event,
        .loss = on_loss,
        .alert = on_alert,
        .other = on_other,
    };
    while (trace->heap_count < EW_PERFETTO_TRACE_WINDOW && trace->text_bytes < TEXT_MAX &&
           trace->file_at < trace->file_count) {
        int rc = ew_pftrace_next(trace->files[trace->file_at].reader, &visitor);
        if (rc < 0)
            return rc;
        if (rc == 0)
            trace->file_at++;
        else if (ew_perfetto_trace_progress(trace, trace->file_at) < 0)
            return ETWATCH_ESTATE;
    }
    return 0;
}

int ew_perfetto_trace_rewind(struct ew_perfetto_trace *trace)
{
    for (uint32_t i = 0; i < trace->heap_count; i++)
        if (has_slot(&trace->heap[i]))
            release_slot(trace, trace->heap[i].slot);
    if (trace->has_current && has_slot(&trace->current))
        release_slot(trace, trace->current.slot);
    trace->has_current = false;
    trace->heap_count = 0;
    trace->order = 0;
    trace->file_at = 0;
    trace->progress_bytes = 0;
    trace->stats = (struct etwatch_trace_stats){0};
    for (size_t i = 0; i < trace->file_count; i++)
        ew_pftrace_rewind(trace->files[i].reader);
    return 0;
}

void ew_perfetto_trace_walk_done(struct ew_perfetto_trace *trace)
{
    for (uint32_t i = 0; i < trace->slot_count; i++)
        ew_free(trace->slots[i].text);
    ew_free(trace->slots);
    ew_free(trace->heap);
    ew_free(trace->processes);
}

/* ---------------------------------------------------------------------- delivery */

static const char *const sample_names[] = {"", "start", "exit", "sample", "thread"};

static void describe(struct ew_perfetto_trace *trace, const struct ew_perfetto_trace_item *item,
                     struct etwatch_trace_event *e)
{
    *e = (struct etwatch_trace_event){
        .flags = ETWATCH_TRACE_DECODED | ETWATCH_TRACE_NAMED,
        .t_ns = item->t_ns,
        .t_rel_ns = item->t_ns > trace->begin_ns ? item->t_ns - trace->begin_ns : 0,
        .provider = "etwatch",
        .event = "loss",
    };
    e->t_raw = e->t_rel_ns;
    switch ((enum ew_perfetto_trace_what)item->what) {
    case EW_PERFETTO_TRACE_EVENT:
        ew_recording_sched_describe(&item->event, e);
        break;
    case EW_PERFETTO_TRACE_SAMPLE: {
        const struct etwatch_sample *s = &trace->slots[item->slot].sample;
        e->event = sample_names[s->type];
        e->pid = s->pid;
        e->tid = s->tid;
        e->flags |= ETWATCH_TRACE_HAS_PID;
        e->flags |= s->type == ETWATCH_TYPE_THREAD ? (uint32_t)ETWATCH_TRACE_HAS_TID : 0;
        e->process = s->name;
        break;
    }
    case EW_PERFETTO_TRACE_ALERT:
        e->event = "alert";
        e->pid = trace->slots[item->slot].alert.pid;
        e->flags |= ETWATCH_TRACE_HAS_PID;
        e->process = trace->slots[item->slot].alert.name;
        break;
    case EW_PERFETTO_TRACE_OTHER:
        e->provider = item->next_name;
        e->event = item->name;
        e->flags = 0;
        break;
    default:
        break;
    }
}

int ew_perfetto_trace_next(struct ew_perfetto_trace *trace, struct etwatch_trace_event *ret_event)
{
    struct etwatch_trace_stats *stats = &trace->stats;
    if (trace->has_current && has_slot(&trace->current))
        release_slot(trace, trace->current.slot);
    trace->has_current = false;
    int rc = trace->learned ? 0 : ew_perfetto_trace_learn(trace, trace->selection);
    if (rc == 0)
        rc = fill_window(trace);
    if (rc < 0 || trace->heap_count == 0) {
        ew_perfetto_trace_count_damage(trace);
        return rc;
    }
    pop(trace, &trace->current);
    trace->has_current = true;
    if (trace->current.what == EW_PERFETTO_TRACE_EVENT) {
        /* The original strings are gone by now; the item has copies. */
        trace->current.event.name = or_null(trace->current.name);
        trace->current.event.next_name = or_null(trace->current.next_name);
    }
    uint64_t t_ns = trace->current.t_ns;
    stats->late += stats->events > 0 && t_ns < stats->last_ns;
    if (stats->events++ == 0)
        stats->first_ns = t_ns;
    stats->last_ns = t_ns;
    stats->undecoded += trace->current.what == EW_PERFETTO_TRACE_OTHER;
    describe(trace, &trace->current, ret_event);
    return 1;
}

const struct etwatch_sample *ew_perfetto_trace_sample(const struct ew_perfetto_trace *trace)
{
    bool sample = trace->has_current && trace->current.what == EW_PERFETTO_TRACE_SAMPLE;
    return sample ? &trace->slots[trace->current.slot].sample : NULL;
}

const struct etwatch_event *ew_perfetto_trace_event(const struct ew_perfetto_trace *trace)
{
    bool event = trace->has_current && trace->current.what == EW_PERFETTO_TRACE_EVENT;
    return event ? &trace->current.event : NULL;
}

/* ------------------------------------------------------------------------- fields */

static void put_number(struct etwatch_field **at, const char *name, uint64_t value)
{
    *(*at)++ = (struct etwatch_field){.name = name, .type = ETWATCH_FIELD_U64, .v.u = value};
}

static void put_text(struct etwatch_field **at, const char *name, const char *text)
{
    if (text == NULL)
        *(*at)++ = (struct etwatch_field){.name = name, .type = ETWATCH_FIELD_NULL};
    else
        *(*at)++ = (struct etwatch_field){.name = name,
                                          .type = ETWATCH_FIELD_TEXT,
                                          .len = (uint32_t)strlen(text),
                                          .v.text = text};
}

static void put_sample(struct etwatch_field **at, const struct etwatch_sample *s)
{
    put_number(at, "start_ns", s->start_ns);
    put_number(at, "dt_ns", s->dt_ns);
    *(*at)++ = (struct etwatch_field){.name = "complete",
                                      .type = ETWATCH_FIELD_BOOL,
                                      .v.u = (s->flags & ETWATCH_SAMPLE_COMPLETE) != 0};
    if (s->thread_name != NULL)
        put_text(at, "thread_name", s->thread_name);
    if (s->user != NULL)
        put_text(at, "user", s->user);
    if (s->cgroup != NULL)
        put_text(at, "cgroup", s->cgroup);
    if ((s->flags & ETWATCH_SAMPLE_HAS_PPID) != 0)
        put_number(at, "ppid", s->ppid);
#define FIELD_TYPE(value)                    \
    _Generic((value) + 0, double             \
             : ETWATCH_FIELD_DOUBLE, int64_t \
             : ETWATCH_FIELD_I64, default    \
             : ETWATCH_FIELD_U64)
#define ETWATCH_X(metric, type_name, kind)                                             \
    if (etwatch_sample_has(s, ETWATCH_M_##metric)) {                                   \
        **at = (struct etwatch_field){.name = #metric, .type = FIELD_TYPE(s->metric)}; \
        memcpy(&(*at)->v, &s->metric, sizeof s->metric);                               \
        (*at)++;                                                                       \
    }
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
#undef FIELD_TYPE
}

static void put_double(struct etwatch_field **at, const char *name, double value)
{
    *(*at)++ = (struct etwatch_field){.name = name, .type = ETWATCH_FIELD_DOUBLE, .v.d = value};
}

static void put_alert(struct etwatch_field **at, const struct etwatch_alert *alert)
{
    put_text(at, "condition", alert->condition);
    put_number(at, "start_ns", alert->start_ns);
    put_number(at, "flags", alert->flags);
    put_number(at, "from_ns", alert->from_ns);
    put_number(at, "to_ns", alert->to_ns);
    put_double(at, "threshold", alert->threshold);
    put_double(at, "value", alert->value);
    put_double(at, "peak", alert->peak);
}

_Static_assert((int)ETWATCH_METRIC_COUNT + 10 < (int)EW_PERFETTO_TRACE_FIELDS_MAX,
               "room for a sample");

int ew_perfetto_trace_fields(struct ew_perfetto_trace *trace, struct etwatch_trace_event *event)
{
    struct etwatch_field *at = trace->fields;
    if (!trace->has_current)
        return ETWATCH_ESTATE;
    const struct ew_perfetto_trace_item *item = &trace->current;
    if (item->what == EW_PERFETTO_TRACE_EVENT) {
        at += ew_recording_sched_fields(&item->event, at);
    } else if (item->what == EW_PERFETTO_TRACE_SAMPLE) {
        put_sample(&at, &trace->slots[item->slot].sample);
    } else if (item->what == EW_PERFETTO_TRACE_ALERT) {
        put_alert(&at, &trace->slots[item->slot].alert);
    } else if (item->what == EW_PERFETTO_TRACE_LOSS) {
        uint64_t count;
        memcpy(&count, item->name, sizeof count);
        put_number(&at, "stage", item->event.kind);
        put_number(&at, "count", count);
        put_number(&at, "from_ns", item->event.t_ns);
    }
    event->fields = trace->fields;
    event->field_count = (uint32_t)(at - trace->fields);
    return 0;
}
