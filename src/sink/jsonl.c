/* SPDX-License-Identifier: MIT */
/*
 * JSON Lines. Every object of a type has the same names in the same order, unknown ones null.
 *
 * Most values of most samples are unknown (no GPU, no Windows objects), so a line is cut out of a
 * ready text in which every value is null: from one known value to the next everything, keys and
 * nulls alike, is one copy. That makes a line cost what its known values cost.
 */
#include "sink/sink.h"

#include <string.h>

#include "base/alloc.h"
#include "sink/fields.h"

enum { PERCENT_DECIMALS = 3, NULL_LEN = 4, TYPE_COUNT = ETWATCH_THREAD + 1 };

/* ,"cpu_percent":null,"cpu_ns":null,… for the metrics of one type. */
struct line_plan {
    uint64_t metrics;
    char *text;
    uint16_t end[ETWATCH_METRIC_COUNT]; /* where the null of each metric ends in text */
    uint16_t len;
    size_t worst_len; /* with every value at its longest */
};

struct jsonl {
    struct etwatch_sink base;
    struct line_plan plan[TYPE_COUNT]; /* by enum etwatch_type; [0] is not used */
};

static int plan_line(struct line_plan *plan, uint32_t type, struct ew_error *err)
{
    struct ew_buf text;
    ew_buf_init(&text, 0, NULL, NULL);
    plan->metrics = ew_metrics_of_type(type);
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        if ((plan->metrics >> i & 1) == 0)
            continue;
        ew_buf_text(&text, ",\"");
        ew_buf_text(&text, ew_metric_info[i].name);
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
                            "JSON Lines always has every name; columns can be chosen for CSV "
                            "and the table");
    for (uint32_t type = ETWATCH_START; type < TYPE_COUNT; type++) {
        int rc = plan_line(&self->plan[type], type, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void done(struct etwatch_sink *sink)
{
    struct jsonl *self = (struct jsonl *)sink;
    for (uint32_t type = ETWATCH_START; type < TYPE_COUNT; type++)
        ew_free(self->plan[type].text);
}

#define PUT(out, literal) ew_buf_bytes((out), (literal), sizeof(literal) - 1)

static void put_text(struct ew_buf *out, const char *text)
{
    if (text == NULL)
        PUT(out, "null");
    else
        ew_buf_json_string(out, text, strlen(text));
}

static void put_number_if(struct ew_buf *out, bool known, uint64_t value)
{
    if (known)
        ew_buf_u64(out, value);
    else
        PUT(out, "null");
}

static void put_double(struct ew_buf *out, double value)
{
    if (!ew_buf_fixed(out, value, PERCENT_DECIMALS))
        PUT(out, "null");
}

/* ----------------------------------------------------------------- samples */

/* Within a line room is reserved once and text goes to `at`: see ew_raw_u64. */
#define RAW(at, literal) \
    (memcpy((at), (literal), sizeof(literal) - 1), (at) + (sizeof(literal) - 1))
#define HEAD(name)                                                                       \
    {                                                                                    \
        "{\"type\":\"" name "\",\"pid\":", sizeof("{\"type\":\"" name "\",\"pid\":") - 1 \
    }

enum { WHICH_WORST_LEN = 512 }; /* all keys and numbers in front of the metrics */

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

static char *raw_which(const struct etwatch_sink *sink, char *at, const struct etwatch_sample *s)
{
    static const struct {
        char text[32];
        size_t len;
    } heads[TYPE_COUNT] = {
        [ETWATCH_START] = HEAD("start"),
        [ETWATCH_EXIT] = HEAD("exit"),
        [ETWATCH_SAMPLE] = HEAD("sample"),
        [ETWATCH_THREAD] = HEAD("thread"),
    };
    memcpy(at, heads[s->type].text, sizeof heads[0].text);
    at = ew_raw_u64(at + heads[s->type].len, s->pid);
    at = RAW(at, ",\"start_ns\":");
    at = raw_number_if(at, s->start_ns != 0, s->start_ns);
    at = RAW(at, ",\"name\":");
    at = raw_text(at, s->name);
    at = RAW(at, ",\"ppid\":");
    at = raw_number_if(at, (s->flags & ETWATCH_HAS_PPID) != 0, s->ppid);
    at = RAW(at, ",\"session_id\":");
    at = raw_number_if(at, (s->flags & ETWATCH_HAS_SESSION) != 0, s->session_id);
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
    at = (s->flags & ETWATCH_COMPLETE) != 0 ? RAW(at, ",\"complete\":true")
                                            : RAW(at, ",\"complete\":false");
    if (s->type == ETWATCH_THREAD) {
        at = RAW(at, ",\"tid\":");
        at = ew_raw_u64(at, s->tid);
        at = RAW(at, ",\"thread_name\":");
        at = raw_text(at, s->thread_name);
    }
    return at;
}

static char *raw_value(char *at, const struct etwatch_sample *s, uint32_t metric)
{
    const struct ew_metric_info *info = &ew_metric_info[metric];
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

static void put_sample(struct etwatch_sink *sink, const struct etwatch_sample *s)
{
    struct ew_buf *out = &sink->out;
    if (s->type < ETWATCH_START || s->type >= TYPE_COUNT) {
        out->error = ETWATCH_EINVAL;
        return;
    }
    const struct line_plan *plan = &((struct jsonl *)sink)->plan[s->type];
    size_t texts = text_room(s->name) + text_room(s->user) + text_room(s->cgroup) +
                   text_room(s->cmdline) + text_room(s->thread_name);
    if (!ew_buf_reserve(out, WHICH_WORST_LEN + texts + plan->worst_len))
        return;
    char *at = raw_when(raw_which(sink, ew_buf_end(out), s), s);
    uint32_t copied = 0;
    for (uint64_t left = s->has & plan->metrics; left != 0; left &= left - 1) {
        uint32_t metric = (uint32_t)__builtin_ctzll(left);
        uint32_t len = plan->end[metric] - (uint32_t)NULL_LEN - copied;
        memcpy(at, plan->text + copied, len);
        at = raw_value(at + len, s, metric);
        copied = plan->end[metric];
    }
    memcpy(at, plan->text + copied, plan->len - copied);
    ew_buf_take(out, at + (plan->len - copied));
    ew_buf_end_line(out);
}

/* ------------------------------------------------------------ other objects */

static void put_names(struct ew_buf *out, uint64_t metrics)
{
    bool first = true;
    ew_buf_char(out, '[');
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        if ((metrics >> i & 1) == 0)
            continue;
        if (!first)
            ew_buf_char(out, ',');
        put_text(out, ew_metric_info[i].name);
        first = false;
    }
    ew_buf_char(out, ']');
}

static void put_meta(struct etwatch_sink *sink, const struct etwatch_meta *meta)
{
    struct ew_buf *out = &sink->out;
    PUT(out, "{\"type\":\"meta\",\"version\":");
    put_text(out, etwatch_version());
    PUT(out, ",\"host\":");
    put_text(out, sink->host);
    PUT(out, ",\"os\":");
    put_text(out, sink->os);
    PUT(out, ",\"cpus\":");
    put_number_if(out, meta->cpu_count != 0, meta->cpu_count);
    PUT(out, ",\"source\":");
    put_text(out, etwatch_source_name(meta->source));
    PUT(out, ",\"hz_asked\":");
    put_double(out, meta->hz_asked);
    PUT(out, ",\"anchor_unix_ns\":");
    ew_buf_u64(out, meta->anchor_unix_ns);
    PUT(out, ",\"anchor_raw_ns\":");
    ew_buf_u64(out, meta->anchor_raw_ns);
    PUT(out, ",\"estimated\":");
    put_names(out, meta->estimated);
    PUT(out, ",\"available\":");
    put_names(out, meta->available);
    PUT(out, ",\"fallback\":");
    put_text(out, meta->fallback[0] != '\0' ? meta->fallback : NULL);
    PUT(out, "}\n");
    ew_buf_end_line(out);
}

static const char *event_name(uint32_t kind)
{
    static const char *const names[] = {"unknown", "switch", "wakeup", "fork", "exec", "exit"};
    return names[kind < sizeof names / sizeof names[0] ? kind : 0];
}

/* The other thread of an event has a name for each kind, so that no reader has to guess. */
static void put_other(struct ew_buf *out, const struct etwatch_event *event)
{
    bool next = event->kind == ETWATCH_EVENT_SWITCH;
    bool waker = event->kind == ETWATCH_EVENT_WAKEUP;
    bool child = event->kind == ETWATCH_EVENT_FORK;
    PUT(out, ",\"next_pid\":");
    put_number_if(out, next, event->next_pid);
    PUT(out, ",\"next_tid\":");
    put_number_if(out, next, event->next_tid);
    PUT(out, ",\"waker_pid\":");
    put_number_if(out, waker, event->next_pid);
    PUT(out, ",\"waker_tid\":");
    put_number_if(out, waker, event->next_tid);
    PUT(out, ",\"child_pid\":");
    put_number_if(out, child, event->next_pid);
    PUT(out, ",\"child_tid\":");
    put_number_if(out, child, event->next_tid);
    PUT(out, ",\"state\":");
    put_number_if(out, next, event->state);
}

static void put_event(struct etwatch_sink *sink, const struct etwatch_event *event)
{
    struct ew_buf *out = &sink->out;
    bool over = event->kind == ETWATCH_EVENT_EXIT;
    PUT(out, "{\"type\":\"event\",\"event\":");
    put_text(out, event_name(event->kind));
    PUT(out, ",\"t_ns\":");
    ew_buf_u64(out, event->t_ns);
    PUT(out, ",\"cpu\":");
    ew_buf_u64(out, event->cpu);
    PUT(out, ",\"pid\":");
    ew_buf_u64(out, event->pid);
    PUT(out, ",\"tid\":");
    ew_buf_u64(out, event->tid);
    PUT(out, ",\"name\":");
    put_text(out, event->name);
    put_other(out, event);
    PUT(out, ",\"priority\":");
    ew_buf_i64(out, event->priority);
    /* As wait() encodes it: the code in the second byte, the signal in the low seven bits. */
    PUT(out, ",\"exit_code\":");
    put_number_if(out, over, (uint64_t)((uint32_t)event->exit_code >> 8 & 0xFF));
    PUT(out, ",\"exit_signal\":");
    put_number_if(out, over, (uint64_t)((uint32_t)event->exit_code & 0x7F));
    PUT(out, "}\n");
    ew_buf_end_line(out);
}

static void put_spread(struct ew_buf *out, const char *name, const struct etwatch_aggregate *a)
{
    const struct {
        const char *suffix;
        double value;
    } parts[] = {{"_avg", a->avg}, {"_max", a->max}, {"_p95", a->p95}, {"_p99", a->p99}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        PUT(out, ",\"");
        ew_buf_text(out, name);
        ew_buf_text(out, parts[i].suffix);
        PUT(out, "\":");
        if (a->count > 0)
            put_double(out, parts[i].value);
        else
            PUT(out, "null");
    }
}

static void put_window(struct etwatch_sink *sink, const struct etwatch_window *window)
{
    struct ew_buf *out = &sink->out;
    PUT(out, "{\"type\":\"window\",\"pid\":");
    ew_buf_u64(out, window->pid);
    PUT(out, ",\"start_ns\":");
    put_number_if(out, window->start_ns != 0, window->start_ns);
    PUT(out, ",\"name\":");
    put_text(out, window->name);
    PUT(out, ",\"t_ns\":");
    ew_buf_u64(out, window->t_ns);
    PUT(out, ",\"dt_ns\":");
    ew_buf_u64(out, window->dt_ns);
    PUT(out, ",\"source\":");
    put_text(out, etwatch_source_name(window->source));
    if ((window->flags & ETWATCH_COMPLETE) != 0)
        PUT(out, ",\"complete\":true");
    else
        PUT(out, ",\"complete\":false");
    PUT(out, ",\"intervals\":");
    ew_buf_u64(out, window->cpu_percent.count);
    put_spread(out, "cpu_percent", &window->cpu_percent);
    put_spread(out, "rss_bytes", &window->rss_bytes);
    PUT(out, "}\n");
    ew_buf_end_line(out);
}

static void put_loss(struct etwatch_sink *sink, const struct etwatch_loss *loss)
{
    struct ew_buf *out = &sink->out;
    PUT(out, "{\"type\":\"lost\",\"stage\":");
    put_text(out, ew_loss_stage_name(loss->stage));
    PUT(out, ",\"count\":");
    ew_buf_u64(out, loss->count);
    PUT(out, ",\"from_ns\":");
    put_number_if(out, loss->from_ns != 0, loss->from_ns);
    PUT(out, ",\"to_ns\":");
    put_number_if(out, loss->to_ns != 0, loss->to_ns);
    PUT(out, "}\n");
    ew_buf_end_line(out);
}

static void put_cost(struct ew_buf *out, const struct etwatch_stats *stats)
{
    PUT(out, ",\"self_cpu_percent\":");
    put_double(out, stats->self_cpu_percent);
    PUT(out, ",\"self_kernel_percent\":");
    if (stats->self_kernel_percent < 0)
        PUT(out, "null");
    else
        put_double(out, stats->self_kernel_percent);
    PUT(out, ",\"self_rss_bytes\":");
    put_number_if(out, stats->self_rss_bytes != 0, stats->self_rss_bytes);
    PUT(out, ",\"self_rss_peak_bytes\":");
    put_number_if(out, stats->self_rss_peak_bytes != 0, stats->self_rss_peak_bytes);
}

static void put_stats(struct etwatch_sink *sink, const struct etwatch_stats *stats)
{
    struct ew_buf *out = &sink->out;
    PUT(out, "{\"type\":\"stats\",\"source\":");
    put_text(out, etwatch_source_name(stats->source));
    PUT(out, ",\"hz_asked\":");
    put_double(out, stats->hz_asked);
    PUT(out, ",\"hz_reached\":");
    put_double(out, stats->hz_reached);
    PUT(out, ",\"samples\":");
    ew_buf_u64(out, stats->samples);
    PUT(out, ",\"events\":");
    ew_buf_u64(out, stats->events);
    PUT(out, ",\"lost\":");
    ew_buf_u64(out, stats->lost);
    PUT(out, ",\"undecoded\":");
    ew_buf_u64(out, stats->undecoded);
    PUT(out, ",\"late\":");
    ew_buf_u64(out, stats->late);
    put_cost(out, stats);
    PUT(out, ",\"wakeups\":");
    ew_buf_u64(out, stats->wakeups);
    PUT(out, ",\"hz_now\":");
    put_double(out, stats->hz_now);
    PUT(out, ",\"processes\":");
    ew_buf_u64(out, stats->processes);
    PUT(out, ",\"threads\":");
    ew_buf_u64(out, stats->threads);
    PUT(out, ",\"queue_dropped\":");
    ew_buf_u64(out, stats->queue_dropped);
    PUT(out, ",\"duration_ns\":");
    ew_buf_u64(out, stats->duration_ns);
    PUT(out, "}\n");
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
    .stats = put_stats,
};
