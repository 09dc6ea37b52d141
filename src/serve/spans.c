/* SPDX-License-Identifier: MIT */
/*
 * A response walks the ring once and keeps the numbers of the spans of its range; everything else
 * works on these. Latencies are nanoseconds, exact in a double.
 */
#include "serve/spans.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "serve/catalog.h"
#include "span/explain.h"

struct found {
    const struct ew_serve_span *span;
    uint32_t group;  /* EW_LATEST_SPANS_GROUPS: none was free */
    uint32_t bucket; /* of the timeline */
};

struct answer {
    const struct ew_latest_spans_query *query;
    struct found *found;
    size_t count;
    struct etwatch_span_group groups[EW_LATEST_SPANS_GROUPS];
    const struct ew_serve_span
        *firsts[EW_LATEST_SPANS_GROUPS]; /* one span of each group: its names */
    uint32_t group_count;
    uint64_t others, step_ns;
};

void ew_latest_spans_add(struct ew_latest_spans *ring, const struct ew_serve_span *span)
{
    if (ring->spans == NULL)
        ring->spans = ew_calloc(EW_LATEST_SPANS_MAX, sizeof *ring->spans);
    if (ring->spans == NULL)
        ring->dropped++;
    else
        ring->spans[ring->count++ % EW_LATEST_SPANS_MAX] = *span;
}

void ew_latest_spans_done(struct ew_latest_spans *ring)
{
    ew_free(ring->spans);
    *ring = (struct ew_latest_spans){0};
}

/* -------------------------------------------------------------------------- selection */

static bool is_wanted(const struct ew_latest_spans_query *query, const struct etwatch_span *span)
{
    bool owner = query->pid == 0 || (span->pid == query->pid && span->end_ns >= query->born_ns &&
                                     (query->exit_ns == 0 || span->start_ns <= query->exit_ns));
    return owner && span->end_ns > query->from_ns && span->end_ns <= query->to_ns;
}

static uint32_t group_of(struct answer *answer, const struct ew_serve_span *span)
{
    for (uint32_t i = 0; i < answer->group_count; i++) {
        const struct ew_serve_span *first = answer->firsts[i];
        if (first->span.kind == span->span.kind && strcmp(first->name, span->name) == 0 &&
            first->has_session == span->has_session && strcmp(first->session, span->session) == 0 &&
            (answer->query->pid != 0 || first->span.pid == span->span.pid))
            return i;
    }
    if (answer->group_count == EW_LATEST_SPANS_GROUPS)
        return EW_LATEST_SPANS_GROUPS;
    struct etwatch_span_group *group = &answer->groups[answer->group_count];
    *group = (struct etwatch_span_group){.size = sizeof *group,
                                         .kind = span->span.kind,
                                         .flags = ETWATCH_SPAN_HAS_FAULTS,
                                         .first_ns = UINT64_MAX,
                                         .name = span->name,
                                         .session = span->has_session ? span->session : NULL};
    answer->firsts[answer->group_count] = span;
    return answer->group_count++;
}

static void add_to_group(struct etwatch_span_group *group, const struct etwatch_span *span)
{
    uint64_t latency_ns = span->end_ns - span->start_ns;
    if (span->start_ns < group->first_ns) {
        group->first_ns = span->start_ns;
        group->cold_ns = latency_ns;
    }
    group->last_ns = span->end_ns > group->last_ns ? span->end_ns : group->last_ns;
    group->max_ns = latency_ns > group->max_ns ? latency_ns : group->max_ns;
    group->mean_ns += latency_ns; /* their sum, until all are added */
    group->count++;
    group->failed += (span->flags & ETWATCH_SPAN_FAILED) != 0;
    group->incomplete += (span->flags & ETWATCH_SPAN_COMPLETE) == 0;
    group->flags &= span->flags;
    group->preempted += span->preempted;
    group->helpers = span->helpers > group->helpers ? span->helpers : group->helpers;
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++)
        group->total[i] += span->ns[i];
}

static void find_all(struct answer *answer, const struct ew_latest_spans *ring)
{
    const struct ew_latest_spans_query *query = answer->query;
    uint64_t at = ring->count > EW_LATEST_SPANS_MAX ? ring->count - EW_LATEST_SPANS_MAX : 0;
    for (; at < ring->count; at++) {
        const struct ew_serve_span *span = &ring->spans[at % EW_LATEST_SPANS_MAX];
        if (!is_wanted(query, &span->span))
            continue;
        uint64_t bucket = (span->span.end_ns - 1 - query->from_ns) / answer->step_ns;
        struct found *found = &answer->found[answer->count++];
        found->span = span;
        found->group = group_of(answer, span);
        found->bucket =
            bucket < EW_LATEST_SPANS_BUCKETS ? (uint32_t)bucket : EW_LATEST_SPANS_BUCKETS - 1;
        if (found->group < EW_LATEST_SPANS_GROUPS)
            add_to_group(&answer->groups[found->group], &span->span);
        else
            answer->others++;
    }
}

/* ------------------------------------------------------------------------------- JSON */

static void put_key(struct ew_buf *out, const char *key)
{
    ew_buf_text(out, ",\"");
    ew_buf_text(out, key);
    ew_buf_text(out, "\":");
}

static void put_number(struct ew_buf *out, const char *key, uint64_t value)
{
    put_key(out, key);
    ew_buf_u64(out, value);
}

static void put_text(struct ew_buf *out, const char *key, const char *text)
{
    put_key(out, key);
    if (text == NULL)
        ew_buf_text(out, "null");
    else
        ew_buf_json_string(out, text, strlen(text));
}

static void put_ms(struct ew_buf *out, const char *key, uint64_t ns)
{
    put_key(out, key);
    if (ns == 0)
        ew_buf_text(out, "null");
    else
        ew_catalog_put_short(out, (double)(ns / 1000) / 1000);
}

/* By cause, in the order of `causes` of the response. Without faults their cause is unknown. */
static void put_by_cause(struct ew_buf *out, const char *key, const uint64_t *ns, bool faults)
{
    put_key(out, key);
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++) {
        ew_buf_char(out, i == 0 ? '[' : ',');
        if (i == ETWATCH_CAUSE_FAULT && !faults)
            ew_buf_text(out, "null");
        else
            ew_buf_u64(out, ns[i]);
    }
    ew_buf_char(out, ']');
}

static void put_causes(struct ew_buf *out, const char *key, const struct etwatch_cause *causes,
                       uint32_t count)
{
    put_key(out, key);
    ew_buf_char(out, '[');
    for (uint32_t i = 0; i < count && i < ETWATCH_SPAN_CAUSES; i++) {
        ew_buf_text(out, i == 0 ? "{\"kind\":" : ",{\"kind\":");
        ew_buf_u64(out, causes[i].kind);
        put_number(out, "pid", causes[i].pid);
        put_number(out, "tid", causes[i].tid);
        put_number(out, "ns", causes[i].ns);
        put_text(out, "name", causes[i].name[0] != '\0' ? causes[i].name : NULL);
        ew_buf_char(out, '}');
    }
    ew_buf_char(out, ']');
}

static void put_identity(struct ew_buf *out, const struct ew_serve_span *span)
{
    ew_buf_text(out, "{\"kind\":");
    const char *kind = etwatch_span_kind_name(span->span.kind);
    ew_buf_json_string(out, kind != NULL ? kind : "?", kind != NULL ? strlen(kind) : 1);
    put_text(out, "name", span->name);
    put_text(out, "session", span->has_session ? span->session : NULL);
    put_number(out, "pid", span->span.pid);
}

static void keep(struct ew_spans_kept *kept, const struct etwatch_span *span)
{
    kept->latency_ns = span->end_ns - span->start_ns;
    memcpy(kept->ns, span->ns, sizeof kept->ns);
    kept->cause_count =
        span->cause_count < EW_SPANS_KEPT_CAUSES ? span->cause_count : EW_SPANS_KEPT_CAUSES;
    memcpy(kept->causes, span->causes, kept->cause_count * sizeof *kept->causes);
}

static void put_group(const struct answer *answer, uint32_t number, struct ew_spans_kept *kept,
                      struct ew_buf *out)
{
    struct etwatch_span_group group = answer->groups[number];
    bool faults = (group.flags & ETWATCH_SPAN_HAS_FAULTS) != 0;
    char text[512];
    size_t count = 0;
    for (size_t i = 0; i < answer->count; i++)
        if (answer->found[i].group == number)
            keep(&kept[count++], &answer->found[i].span->span);
    ew_spans_explain(kept, count, &group);
    group.mean_ns /= group.count;
    put_identity(out, answer->firsts[number]);
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"count", group.count},           {"failed", group.failed},
        {"incomplete", group.incomplete}, {"p50_ns", group.p50_ns},
        {"p95_ns", group.p95_ns},         {"p99_ns", group.p99_ns},
        {"max_ns", group.max_ns},         {"mean_ns", group.mean_ns},
        {"first_ns", group.cold_ns},      {"preempted", group.preempted},
        {"helpers", group.helpers},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        put_number(out, numbers[i].key, numbers[i].value);
    put_by_cause(out, "total_ns", group.total, faults);
    put_causes(out, "slow_causes", group.slow_causes, group.slow_cause_count);
    put_text(out, "text", etwatch_span_group_text(&group, text, sizeof text) >= 0 ? text : NULL);
    ew_buf_char(out, '}');
}

static void put_span(const struct ew_serve_span *span, struct ew_buf *out)
{
    const struct etwatch_span *s = &span->span;
    put_identity(out, span);
    put_number(out, "tid", s->tid);
    put_text(out, "shape", span->shape[0] != '\0' ? span->shape : NULL);
    put_ms(out, "start_ms", s->start_ns);
    put_number(out, "start_ns", s->start_ns);
    put_number(out, "latency_ns", s->end_ns - s->start_ns);
    put_by_cause(out, "ns", s->ns, (s->flags & ETWATCH_SPAN_HAS_FAULTS) != 0);
    put_causes(out, "causes", s->causes, s->cause_count);
    put_number(out, "cpu_ns", s->cpu_ns);
    put_number(out, "helpers", s->helpers);
    put_number(out, "helper_cpu_ns", s->helper_cpu_ns);
    put_number(out, "preempted", s->preempted);
    ew_buf_text(out,
                (s->flags & ETWATCH_SPAN_FAILED) != 0 ? ",\"failed\":true" : ",\"failed\":false");
    ew_buf_text(out, (s->flags & ETWATCH_SPAN_COMPLETE) != 0 ? ",\"complete\":true}"
                                                             : ",\"complete\":false}");
}

static uint64_t latency_of(const struct found *found)
{
    return found->span->span.end_ns - found->span->span.start_ns;
}

static int by_latency(const void *a, const void *b)
{
    uint64_t x = latency_of(a), y = latency_of(b);
    return x > y ? -1 : x < y;
}

static int by_bucket(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->bucket != y->bucket)
        return x->bucket < y->bucket ? -1 : 1;
    return by_latency(b, a);
}

/* One number per bucket; null without a span. what: 0 their count, 1 the median, 2 the largest
 * latency, 3 + cause the mean. found is sorted by bucket, then by latency. */
static void put_buckets(const struct answer *answer, uint32_t what, struct ew_buf *out)
{
    size_t at = 0;
    for (uint32_t bucket = 0; bucket < EW_LATEST_SPANS_BUCKETS; bucket++) {
        size_t first = at;
        uint64_t sum_ns = 0;
        for (; at < answer->count && answer->found[at].bucket == bucket; at++)
            sum_ns += what < 3 ? 0 : answer->found[at].span->span.ns[what - 3];
        size_t count = at - first;
        ew_buf_char(out, bucket == 0 ? '[' : ',');
        if (what == 0)
            ew_buf_u64(out, count);
        else if (count == 0)
            ew_buf_text(out, "null");
        else if (what == 1)
            ew_buf_u64(out, latency_of(&answer->found[first + (count + 1) / 2 - 1]));
        else
            ew_buf_u64(out, what == 2 ? latency_of(&answer->found[at - 1]) : sum_ns / count);
    }
    ew_buf_char(out, ']');
}

static void put_timeline(struct answer *answer, struct ew_buf *out)
{
    qsort(answer->found, answer->count, sizeof *answer->found, by_bucket);
    ew_buf_text(out, "],\n\"timeline\":{\"from_ms\":");
    ew_catalog_put_short(out, (double)(answer->query->from_ns / 1000) / 1000);
    ew_buf_text(out, ",\"step_ms\":");
    ew_catalog_put_short(out, (double)answer->step_ns / 1e6);
    put_key(out, "counts");
    put_buckets(answer, 0, out);
    put_key(out, "p50_ns");
    put_buckets(answer, 1, out);
    put_key(out, "max_ns");
    put_buckets(answer, 2, out);
    put_key(out, "mean_ns");
    for (uint32_t cause = 0; cause < ETWATCH_CAUSE_COUNT; cause++) {
        ew_buf_char(out, cause == 0 ? '[' : ',');
        put_buckets(answer, 3 + cause, out);
    }
    ew_buf_text(out, "]}");
}

static void put_answer(struct answer *answer, struct ew_spans_kept *kept, struct ew_buf *out)
{
    ew_buf_text(out, ",\"causes\":[");
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++) {
        const char *name = etwatch_cause_name(i);
        ew_buf_text(out, i == 0 ? "" : ",");
        ew_buf_json_string(out, name, strlen(name));
    }
    ew_buf_char(out, ']');
    put_number(out, "count", answer->count);
    put_number(out, "others", answer->others);
    ew_buf_text(out, ",\n\"groups\":[");
    for (uint32_t i = 0; i < answer->group_count; i++) {
        ew_buf_text(out, i == 0 ? "\n" : ",\n");
        put_group(answer, i, kept, out);
    }
    qsort(answer->found, answer->count, sizeof *answer->found, by_latency);
    ew_buf_text(out, "],\n\"slowest\":[");
    for (size_t i = 0; i < answer->count && i < EW_LATEST_SPANS_SLOWEST; i++) {
        ew_buf_text(out, i == 0 ? "\n" : ",\n");
        put_span(answer->found[i].span, out);
    }
    put_timeline(answer, out);
}

int ew_latest_spans_put(const struct ew_latest_spans *ring,
                        const struct ew_latest_spans_query *query, struct ew_buf *out)
{
    size_t size = ring->count < EW_LATEST_SPANS_MAX ? (size_t)ring->count : EW_LATEST_SPANS_MAX;
    size = ring->spans == NULL ? 0 : size;
    struct answer *answer = ew_calloc(1, sizeof *answer);
    struct found *found = ew_calloc(size + 1, sizeof *found);
    struct ew_spans_kept *kept = ew_calloc(size + 1, sizeof *kept);
    bool good = answer != NULL && found != NULL && kept != NULL;
    if (good) {
        uint64_t length_ns = query->to_ns > query->from_ns ? query->to_ns - query->from_ns : 1;
        answer->query = query;
        answer->found = found;
        answer->step_ns = (length_ns + EW_LATEST_SPANS_BUCKETS - 1) / EW_LATEST_SPANS_BUCKETS;
        if (size > 0)
            find_all(answer, ring);
        /* Older ones were overwritten. */
        uint64_t oldest_ns = ring->count > EW_LATEST_SPANS_MAX
                                 ? ring->spans[ring->count % EW_LATEST_SPANS_MAX].span.end_ns
                                 : 0;
        ew_buf_text(out, "{\"kept\":");
        ew_buf_u64(out, size);
        put_ms(out, "known_from_ms", oldest_ns);
        put_ms(out, "from_ms", query->from_ns);
        put_ms(out, "to_ms", query->to_ns);
        put_answer(answer, kept, out);
        ew_buf_text(out, "}\n");
    }
    ew_free(answer);
    ew_free(found);
    ew_free(kept);
    return good ? 0 : ETWATCH_ENOMEM;
}
