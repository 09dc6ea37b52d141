/* SPDX-License-Identifier: MIT */
/*
 * JSON Lines. Every object of a type has the same keys in the same order; unknown values are null.
 *
 * Most values of most samples are unknown (no GPU, no Windows objects), so a line is assembled from
 * a prepared text in which every value is null: from one known value to the next, all keys and
 * nulls are one copy. So the cost of a line is that of its known values.
 */
#include "sink/sink.h"

#include <string.h>

#include "base/alloc.h"
#include "sink/fields.h"
#include "sink/json.h"

enum { NULL_LEN = 4, TYPE_COUNT = EW_TYPE_PROCESS + 1 };

/* ,"cpu_percent":null,"cpu_ns":null,… : the metrics of one type. */
struct line_plan {
    struct etwatch_metric_set metrics;
    char *text;
    uint16_t end[ETWATCH_METRIC_COUNT]; /* end of each metric's null in text */
    uint16_t len;
    size_t worst_len; /* upper bound for the values at their longest */
};

struct jsonl {
    struct etwatch_sink base;
    struct line_plan plan[TYPE_COUNT]; /* by enum etwatch_type and EW_TYPE_PROCESS; [0] is unused */
};

static int plan_line(struct line_plan *plan, uint32_t type, struct ew_error *err)
{
    struct ew_buf text;
    ew_buf_init(&text, 0, NULL, NULL);
    plan->metrics = ew_sink_metrics_of_type(type);
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        if (!etwatch_metric_set_has(&plan->metrics, i))
            continue;
        ew_buf_text(&text, ",\"");
        ew_buf_text(&text, ew_sink_metric_info[i].name);
        ew_buf_text(&text, "\":null");
        plan->end[i] = (uint16_t)text.len;
    }
    ew_buf_text(&text, "}\n");
    if (text.error != 0) {
        int rc = ew_error_set(err, text.error, 0, "out of memory");
        ew_buf_done(&text);
        return rc;
    }
    plan->text = text.data;
    plan->len = (uint16_t)text.len;
    plan->worst_len = text.len + (size_t)ETWATCH_METRIC_COUNT * EW_FIXED3_LEN;
    return 0;
}

static int init(struct etwatch_sink *sink, const struct etwatch_sink_options *options,
                struct ew_error *err)
{
    struct jsonl *self = (struct jsonl *)sink;
    (void)options;
    if (sink->column_count > 0)
        return ew_error_set(err, ETWATCH_EINVAL, 0,
                            "JSON Lines always contains all fields; columns can be selected "
                            "for CSV and tables only");
    for (uint32_t type = ETWATCH_TYPE_START; type < TYPE_COUNT; type++) {
        int rc = plan_line(&self->plan[type], type, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void done(struct etwatch_sink *sink)
{
    struct jsonl *self = (struct jsonl *)sink;
    for (uint32_t type = ETWATCH_TYPE_START; type < TYPE_COUNT; type++)
        ew_free(self->plan[type].text);
}

/* ----------------------------------------------------------------- samples */

/* Within a line, room is reserved once and text is written to `at`: see ew_raw_u64. */
#define RAW(at, literal) \
    (memcpy((at), (literal), sizeof(literal) - 1), (at) + (sizeof(literal) - 1))
#define HEAD(name)                                                                       \
    {                                                                                    \
        "{\"type\":\"" name "\",\"pid\":", sizeof("{\"type\":\"" name "\",\"pid\":") - 1 \
    }

enum { IDENTITY_WORST_LEN = 512 }; /* all keys and numbers before the metrics */

static size_t text_room(const char *text)
{
    return text == NULL ? 0 : EW_JSON_LEN(strlen(text));
}

static char *raw_text(char *at, const char *text)
{
    return text == NULL ? RAW(at, "null") : ew_raw_json_string(at, text, strlen(text));
}

static char *raw_number_if(char *at, bool known, uint64_t value)
{
    return known ? ew_raw_u64(at, value) : RAW(at, "null");
}

static char *raw_identity(const struct etwatch_sink *sink, char *at, const struct etwatch_sample *s)
{
    static const struct {
        char text[32];
        size_t len;
    } heads[TYPE_COUNT] = {
        [ETWATCH_TYPE_START] = HEAD("start"),   [ETWATCH_TYPE_EXIT] = HEAD("exit"),
        [ETWATCH_TYPE_SAMPLE] = HEAD("sample"), [ETWATCH_TYPE_THREAD] = HEAD("thread"),
        [EW_TYPE_PROCESS] = HEAD("process"),
    };
    memcpy(at, heads[s->type].text, sizeof heads[0].text);
    at = raw_number_if(at + heads[s->type].len, s->pid != UINT32_MAX, s->pid);
    at = RAW(at, ",\"start_ns\":");
    at = raw_number_if(at, s->start_ns != 0, s->start_ns);
    at = RAW(at, ",\"name\":");
    at = raw_text(at, s->name);
    at = RAW(at, ",\"ppid\":");
    at = raw_number_if(at, (s->flags & ETWATCH_SAMPLE_HAS_PPID) != 0, s->ppid);
    at = RAW(at, ",\"session_id\":");
    at = raw_number_if(at, (s->flags & ETWATCH_SAMPLE_HAS_SESSION) != 0, s->session_id);
    at = RAW(at, ",\"user\":");
    at = raw_text(at, s->user);
    at = RAW(at, ",\"cgroup\":");
    at = raw_text(at, s->cgroup);
    if ((sink->flags & ETWATCH_SINK_CMDLINE) != 0) {
        at = RAW(at, ",\"cmdline\":");
        at = raw_text(at, s->cmdline);
    }
    return at;
}

static char *raw_when(char *at, const struct etwatch_sample *s)
{
    at = RAW(at, ",\"t_ns\":");
    at = ew_raw_u64(at, s->t_ns);
    at = RAW(at, ",\"dt_ns\":");
    at = ew_raw_u64(at, s->dt_ns);
    at = RAW(at, ",\"source\":");
    at = raw_text(at, etwatch_source_name(s->source));
    at = (s->flags & ETWATCH_SAMPLE_COMPLETE) != 0 ? RAW(at, ",\"complete\":true")
                                                   : RAW(at, ",\"complete\":false");
    if (s->type == ETWATCH_TYPE_THREAD) {
        at = RAW(at, ",\"tid\":");
        at = ew_raw_u64(at, s->tid);
        at = RAW(at, ",\"thread_name\":");
        at = raw_text(at, s->thread_name);
    }
    if ((s->flags & ETWATCH_SAMPLE_OTHER) != 0) {
        at = RAW(at, ",\"processes\":");
        at = ew_raw_u64(at, s->tid);
    }
    return at;
}

static char *raw_value(char *at, const struct etwatch_sample *s, uint32_t metric)
{
    const struct ew_metric_info *info = &ew_sink_metric_info[metric];
    const char *from = (const char *)s + info->offset;
    uint64_t value;
    double number;
    if (info->kind == EW_VALUE_DOUBLE) {
        memcpy(&number, from, sizeof number);
        char *end = ew_raw_fixed3(at, number);
        return end != NULL ? end : RAW(at, "null");
    }
    memcpy(&value, from, sizeof value);
    if (info->kind == EW_VALUE_I64 && (int64_t)value < 0) {
        *at++ = '-';
        value = 0 - value;
    }
    return ew_raw_u64(at, value);
}

static void put_line(struct etwatch_sink *sink, const struct etwatch_sample *s)
{
    struct ew_buf *out = &sink->out;
    if (s->type < ETWATCH_TYPE_START || s->type >= TYPE_COUNT) {
        out->error = ETWATCH_EINVAL;
        return;
    }
    const struct line_plan *plan = &((struct jsonl *)sink)->plan[s->type];
    size_t texts = text_room(s->name) + text_room(s->user) + text_room(s->cgroup) +
                   text_room(s->cmdline) + text_room(s->thread_name);
    if (!ew_buf_reserve(out, IDENTITY_WORST_LEN + texts + plan->worst_len))
        return;
    char *at = raw_when(raw_identity(sink, ew_buf_end(out), s), s);
    uint32_t copied = 0;
    for (uint32_t word = 0; word < EW_METRIC_WORDS_USED; word++) {
        uint64_t left = s->has.words[word] & plan->metrics.words[word];
        for (; left != 0; left &= left - 1) {
            uint32_t metric = word * 64 + (uint32_t)__builtin_ctzll(left);
            uint32_t len = plan->end[metric] - (uint32_t)NULL_LEN - copied;
            memcpy(at, plan->text + copied, len);
            at = raw_value(at + len, s, metric);
            copied = plan->end[metric];
        }
    }
    memcpy(at, plan->text + copied, plan->len - copied);
    ew_buf_take(out, at + (plan->len - copied));
}

static void put_sample(struct etwatch_sink *sink, const struct etwatch_sample *s)
{
    put_line(sink, s);
    ew_buf_end_line(&sink->out);
}

/* For reports: the line of a process or thread, plus the names of its estimated metrics. */
static void put_process(struct etwatch_sink *sink, const struct etwatch_sample *process,
                        const struct etwatch_metric_set *estimated)
{
    struct ew_buf *out = &sink->out;
    struct etwatch_sample named = *process;
    if (named.type != ETWATCH_TYPE_THREAD)
        named.type = EW_TYPE_PROCESS;
    put_line(sink, &named);
    if (out->error != 0)
        return;
    out->len -= strlen("}\n");
    EW_JSON(out, ",\"estimated\":");
    ew_json_names(out, estimated);
    EW_JSON(out, "}\n");
    ew_buf_end_line(out);
}

/* ------------------------------------------------------------ other objects */

static void put_meta(struct etwatch_sink *sink, const struct etwatch_meta *meta)
{
    struct ew_buf *out = &sink->out;
    EW_JSON(out, "{\"type\":\"meta\",\"version\":");
    ew_json_text(out, etwatch_version());
    EW_JSON(out, ",\"host\":");
    ew_json_text(out, sink->host);
    EW_JSON(out, ",\"os\":");
    ew_json_text(out, sink->os);
    EW_JSON(out, ",\"cpus\":");
    ew_json_number_if(out, meta->cpu_count != 0, meta->cpu_count);
    EW_JSON(out, ",\"source\":");
    ew_json_text(out, etwatch_source_name(meta->source));
    EW_JSON(out, ",\"hz_requested\":");
    ew_json_double(out, meta->hz_requested);
    EW_JSON(out, ",\"anchor_unix_ns\":");
    ew_buf_u64(out, meta->anchor_unix_ns);
    EW_JSON(out, ",\"anchor_raw_ns\":");
    ew_buf_u64(out, meta->anchor_raw_ns);
    EW_JSON(out, ",\"estimated\":");
    ew_json_names(out, &meta->estimated);
    EW_JSON(out, ",\"available\":");
    ew_json_names(out, &meta->available);
    EW_JSON(out, ",\"fallback\":");
    ew_json_text(out, meta->fallback[0] != '\0' ? meta->fallback : NULL);
    EW_JSON(out, "}\n");
    ew_buf_end_line(out);
}

static const char *event_name(uint32_t kind)
{
    static const char *const names[] = {"unknown", "switch", "wakeup", "fork", "exec", "exit"};
    return names[kind < sizeof names / sizeof names[0] ? kind : 0];
}

/* The other thread of an event has a different key for each kind of event. */
static void put_other(struct ew_buf *out, const struct etwatch_event *event)
{
    bool next = event->kind == ETWATCH_EVENT_SWITCH;
    bool waker = event->kind == ETWATCH_EVENT_WAKEUP;
    bool child = event->kind == ETWATCH_EVENT_FORK;
    EW_JSON(out, ",\"next_pid\":");
    ew_json_number_if(out, next, event->next_pid);
    EW_JSON(out, ",\"next_tid\":");
    ew_json_number_if(out, next, event->next_tid);
    bool woken = next && event->waker_tid != UINT32_MAX;
    EW_JSON(out, ",\"waker_pid\":");
    ew_json_number_if(out, waker || woken, waker ? event->next_pid : event->waker_pid);
    EW_JSON(out, ",\"waker_tid\":");
    ew_json_number_if(out, waker || woken, waker ? event->next_tid : event->waker_tid);
    EW_JSON(out, ",\"child_pid\":");
    ew_json_number_if(out, child, event->next_pid);
    EW_JSON(out, ",\"child_tid\":");
    ew_json_number_if(out, child, event->next_tid);
    EW_JSON(out, ",\"state\":");
    ew_json_number_if(out, next, event->state);
    EW_JSON(out, ",\"io_wait\":");
    if (event->io_wait == 0)
        EW_JSON(out, "null");
    else
        ew_json_bool(out, event->io_wait == 2);
    EW_JSON(out, ",\"wait_reason\":");
    ew_json_text(out, event->wait_reason);
    EW_JSON(out, ",\"wait_ns\":");
    ew_json_number_if(out, next && event->wait_ns != UINT64_MAX, event->wait_ns);
    EW_JSON(out, ",\"ready_ns\":");
    ew_json_number_if(out, next && event->ready_ns != UINT64_MAX, event->ready_ns);
}

static void put_event(struct etwatch_sink *sink, const struct etwatch_event *event)
{
    struct ew_buf *out = &sink->out;
    bool ended = event->kind == ETWATCH_EVENT_EXIT && event->exit_code >= 0;
    EW_JSON(out, "{\"type\":\"event\",\"event\":");
    ew_json_text(out, event_name(event->kind));
    EW_JSON(out, ",\"t_ns\":");
    ew_buf_u64(out, event->t_ns);
    EW_JSON(out, ",\"cpu\":");
    ew_buf_u64(out, event->cpu);
    EW_JSON(out, ",\"pid\":");
    ew_buf_u64(out, event->pid);
    EW_JSON(out, ",\"tid\":");
    ew_buf_u64(out, event->tid);
    EW_JSON(out, ",\"name\":");
    ew_json_text(out, event->name);
    put_other(out, event);
    EW_JSON(out, ",\"priority\":");
    ew_buf_i64(out, event->priority);
    /* Encoded like the status of wait(): code in the second byte, signal in the low seven bits. */
    EW_JSON(out, ",\"exit_code\":");
    ew_json_number_if(out, ended, (uint64_t)((uint32_t)event->exit_code >> 8 & 0xFF));
    EW_JSON(out, ",\"exit_signal\":");
    ew_json_number_if(out, ended, (uint64_t)((uint32_t)event->exit_code & 0x7F));
    EW_JSON(out, "}\n");
    ew_buf_end_line(out);
}

static void put_spread(struct ew_buf *out, const char *name, const struct etwatch_aggregate *a)
{
    const struct {
        const char *suffix;
        double value;
    } parts[] = {{"_avg", a->avg}, {"_max", a->max}, {"_p95", a->p95}, {"_p99", a->p99}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        EW_JSON(out, ",\"");
        ew_buf_text(out, name);
        ew_buf_text(out, parts[i].suffix);
        EW_JSON(out, "\":");
        if (a->count > 0)
            ew_json_double(out, parts[i].value);
        else
            EW_JSON(out, "null");
    }
}

static void put_window(struct etwatch_sink *sink, const struct etwatch_window *window)
{
    struct ew_buf *out = &sink->out;
    EW_JSON(out, "{\"type\":\"window\",\"pid\":");
    ew_buf_u64(out, window->pid);
    EW_JSON(out, ",\"start_ns\":");
    ew_json_number_if(out, window->start_ns != 0, window->start_ns);
    EW_JSON(out, ",\"name\":");
    ew_json_text(out, window->name);
    EW_JSON(out, ",\"t_ns\":");
    ew_buf_u64(out, window->t_ns);
    EW_JSON(out, ",\"dt_ns\":");
    ew_buf_u64(out, window->dt_ns);
    EW_JSON(out, ",\"source\":");
    ew_json_text(out, etwatch_source_name(window->source));
    if ((window->flags & ETWATCH_SAMPLE_COMPLETE) != 0)
        EW_JSON(out, ",\"complete\":true");
    else
        EW_JSON(out, ",\"complete\":false");
    EW_JSON(out, ",\"intervals\":");
    ew_buf_u64(out, window->cpu_percent.count);
    put_spread(out, "cpu_percent", &window->cpu_percent);
    put_spread(out, "rss_bytes", &window->rss_bytes);
    const struct etwatch_aggregate *spread = window->more_spreads;
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++)
        if (etwatch_metric_set_has(&window->more, i))
            put_spread(out, ew_sink_metric_info[i].name, spread++);
    EW_JSON(out, "}\n");
    ew_buf_end_line(out);
}

static void put_loss(struct etwatch_sink *sink, const struct etwatch_loss *loss)
{
    struct ew_buf *out = &sink->out;
    EW_JSON(out, "{\"type\":\"loss\",\"stage\":");
    ew_json_text(out, ew_loss_stage_name(loss->stage));
    EW_JSON(out, ",\"count\":");
    ew_buf_u64(out, loss->count);
    EW_JSON(out, ",\"from_ns\":");
    ew_json_number_if(out, loss->from_ns != 0, loss->from_ns);
    EW_JSON(out, ",\"to_ns\":");
    ew_json_number_if(out, loss->to_ns != 0, loss->to_ns);
    EW_JSON(out, "}\n");
    ew_buf_end_line(out);
}

static void put_cost(struct ew_buf *out, const struct etwatch_stats *stats)
{
    EW_JSON(out, ",\"self_cpu_percent\":");
    ew_json_double(out, stats->self_cpu_percent);
    EW_JSON(out, ",\"self_kernel_percent\":");
    if (stats->self_kernel_percent < 0)
        EW_JSON(out, "null");
    else
        ew_json_double(out, stats->self_kernel_percent);
    EW_JSON(out, ",\"self_rss_bytes\":");
    ew_json_number_if(out, stats->self_rss_bytes != 0, stats->self_rss_bytes);
    EW_JSON(out, ",\"self_rss_peak_bytes\":");
    ew_json_number_if(out, stats->self_rss_peak_bytes != 0, stats->self_rss_peak_bytes);
}

static void put_stats(struct etwatch_sink *sink, const struct etwatch_stats *stats)
{
    struct ew_buf *out = &sink->out;
    EW_JSON(out, "{\"type\":\"stats\",\"source\":");
    ew_json_text(out, etwatch_source_name(stats->source));
    EW_JSON(out, ",\"hz_requested\":");
    ew_json_double(out, stats->hz_requested);
    EW_JSON(out, ",\"hz_reached\":");
    ew_json_double(out, stats->hz_reached);
    EW_JSON(out, ",\"samples\":");
    ew_buf_u64(out, stats->samples);
    EW_JSON(out, ",\"events\":");
    ew_buf_u64(out, stats->events);
    EW_JSON(out, ",\"lost\":");
    ew_buf_u64(out, stats->lost);
    EW_JSON(out, ",\"undecoded\":");
    ew_buf_u64(out, stats->undecoded);
    EW_JSON(out, ",\"late\":");
    ew_buf_u64(out, stats->late);
    put_cost(out, stats);
    EW_JSON(out, ",\"wakeups\":");
    ew_buf_u64(out, stats->wakeups);
    EW_JSON(out, ",\"hz_effective\":");
    ew_json_double(out, stats->hz_effective);
    EW_JSON(out, ",\"processes\":");
    ew_buf_u64(out, stats->processes);
    EW_JSON(out, ",\"threads\":");
    ew_buf_u64(out, stats->threads);
    EW_JSON(out, ",\"queue_dropped\":");
    ew_buf_u64(out, stats->queue_dropped);
    EW_JSON(out, ",\"duration_ns\":");
    ew_buf_u64(out, stats->duration_ns);
    EW_JSON(out, "}\n");
    ew_buf_end_line(out);
}

const struct ew_sink_ops ew_sink_jsonl = {
    .size = sizeof(struct jsonl),
    .init = init,
    .done = done,
    .meta = put_meta,
    .sample = put_sample,
    .event = put_event,
    .window = put_window,
    .loss = put_loss,
    .system = ew_jsonl_system,
    .alert = ew_jsonl_alert,
    .device = ew_jsonl_device,
    .gpu_op = ew_jsonl_gpu_op,
    .gpu_process = ew_jsonl_gpu_process,
    .gpu_sum = ew_jsonl_gpu_sum,
    .span = ew_jsonl_span,
    .oper = ew_jsonl_operator,
    .span_group = ew_jsonl_span_group,
    .stats = put_stats,
    .trace = ew_jsonl_trace,
    .klass = ew_jsonl_class,
    .process = put_process,
    .image = ew_jsonl_image,
    .trace_event = ew_jsonl_trace_event,
};
