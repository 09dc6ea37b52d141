/* SPDX-License-Identifier: MIT */
/*
 * Compares the slow spans of a group with typical ones. Both are averages over all causes, which
 * add up to the latency, so the differences add up to the difference in latency: nothing is left
 * over, and nothing is named that did not grow.
 */
#include "span/explain.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/sized.h"
#include "base/units.h"
#include "span/attribute.h"

enum { CAUSES_MAX = 64 };

static int by_latency(const void *a, const void *b)
{
    const struct ew_spans_kept *x = a, *y = b;
    return x->latency_ns < y->latency_ns ? -1 : x->latency_ns > y->latency_ns;
}

/* Nearest rank: the smallest value with at least this share of all values at or below it. */
static size_t rank_of(size_t count, uint32_t percent)
{
    size_t rank = (count * percent + 99) / 100;
    return rank == 0 ? 0 : rank - 1;
}

static uint64_t mean_of(const struct ew_spans_kept *kept, size_t from, size_t to, uint32_t cause)
{
    uint64_t sum_ns = 0;
    for (size_t i = from; i < to; i++)
        sum_ns += cause == ETWATCH_CAUSE_COUNT ? kept[i].latency_ns : kept[i].ns[cause];
    return to > from ? sum_ns / (to - from) : 0;
}

static void add_causes(const struct ew_spans_kept *kept, size_t from, size_t to,
                       struct etwatch_span_group *group)
{
    struct etwatch_cause causes[CAUSES_MAX];
    uint32_t count = 0;
    for (size_t i = from; i < to; i++)
        for (uint32_t c = 0; c < kept[i].cause_count; c++)
            ew_spans_cause_add(causes, &count, CAUSES_MAX, &kept[i].causes[c]);
    ew_spans_cause_sort(causes, count);
    group->slow_cause_count = count < ETWATCH_SPAN_CAUSES ? count : ETWATCH_SPAN_CAUSES;
    for (uint32_t i = 0; i < group->slow_cause_count; i++) {
        group->slow_causes[i] = causes[i];
        group->slow_causes[i].ns /= to - from;
    }
}

void ew_spans_explain(struct ew_spans_kept *kept, size_t count, struct etwatch_span_group *group)
{
    if (count == 0)
        return;
    qsort(kept, count, sizeof *kept, by_latency);
    group->p50_ns = kept[rank_of(count, 50)].latency_ns;
    group->p95_ns = kept[rank_of(count, 95)].latency_ns;
    group->p99_ns = kept[rank_of(count, 99)].latency_ns;
    size_t slow = rank_of(count, 99), low = rank_of(count, 25), high = rank_of(count, 75) + 1;
    group->slow_count = count - slow;
    group->slow_mean_ns = mean_of(kept, slow, count, ETWATCH_CAUSE_COUNT);
    group->typical_mean_ns = mean_of(kept, low, high, ETWATCH_CAUSE_COUNT);
    for (uint32_t cause = 0; cause < ETWATCH_CAUSE_COUNT; cause++)
        group->excess_ns[cause] =
            (int64_t)mean_of(kept, slow, count, cause) - (int64_t)mean_of(kept, low, high, cause);
    add_causes(kept, slow, count, group);
}

/* ---------------------------------------------------------------------- in words */

static const char *const words[ETWATCH_CAUSE_COUNT] = {
    "more work",
    "waiting for a CPU",
    "throttled by its cgroup",
    "page faults",
    "waiting for a disk",
    "waiting for another thread",
    "waiting for another process",
    "asleep (timer or network)",
    "unknown (events are missing)",
};

const char *etwatch_cause_name(uint32_t kind)
{
    static const char *const names[] = {"work", "cpu",     "throttled", "fault",  "disk",
                                        "lock", "process", "sleep",     "unknown"};
    return kind < ETWATCH_CAUSE_COUNT ? names[kind] : NULL;
}

const char *etwatch_span_kind_name(uint32_t kind)
{
    static const char *const names[] = {NULL, "work", "inference", "load", "operator"};
    return kind < sizeof names / sizeof names[0] ? names[kind] : NULL;
}

/* In brackets: which threads or processes, as far as they matter. */
static void put_names(struct ew_buf *out, const struct etwatch_span_group *group, uint32_t kind)
{
    uint32_t shown = 0;
    uint64_t part_ns = (uint64_t)group->excess_ns[kind] / 20;
    for (uint32_t i = 0; i < group->slow_cause_count && shown < 3; i++) {
        const struct etwatch_cause *cause = &group->slow_causes[i];
        if (cause->kind != kind || cause->ns < part_ns || kind == ETWATCH_CAUSE_WORK)
            continue;
        ew_buf_text(out, shown++ == 0 ? " (" : ", ");
        if (kind == ETWATCH_CAUSE_CPU && cause->pid == 0)
            ew_buf_text(out, "the CPU was idle");
        else if (cause->name[0] == '\0')
            ew_buf_text(out, "unknown");
        else
            (void)ew_buf_screen(out, cause->name, strlen(cause->name), 32);
        ew_buf_char(out, ' ');
        ew_units_ns(out, cause->ns);
    }
    if (shown > 0)
        ew_buf_char(out, ')');
}

static void put_excess(struct ew_buf *out, const struct etwatch_span_group *group,
                       int64_t difference_ns)
{
    bool done[ETWATCH_CAUSE_COUNT] = {false};
    for (uint32_t shown = 0; shown < 4; shown++) {
        uint32_t largest = ETWATCH_CAUSE_COUNT;
        for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++)
            if (!done[i] && group->excess_ns[i] * 20 >= difference_ns &&
                (largest == ETWATCH_CAUSE_COUNT || group->excess_ns[i] > group->excess_ns[largest]))
                largest = i;
        if (largest == ETWATCH_CAUSE_COUNT)
            return;
        done[largest] = true;
        ew_buf_text(out, shown == 0 ? ": " : ", ");
        ew_units_ns(out, (uint64_t)group->excess_ns[largest]);
        ew_buf_char(out, ' ');
        ew_buf_text(out, words[largest]);
        put_names(out, group, largest);
    }
}

static void put_text(struct ew_buf *out, const struct etwatch_span_group *group)
{
    int64_t difference_ns = (int64_t)group->slow_mean_ns - (int64_t)group->typical_mean_ns;
    ew_buf_text(out, "p99 ");
    ew_units_ns(out, group->p99_ns);
    ew_buf_text(out, ", median ");
    ew_units_ns(out, group->p50_ns);
    if (group->count < 2 || difference_ns <= 0 ||
        (uint64_t)difference_ns * 10 < group->typical_mean_ns) {
        ew_buf_text(out, ": the slowest are within 10 % of a typical one");
        return;
    }
    ew_buf_text(out, "; the slowest (");
    ew_buf_u64(out, group->slow_count);
    ew_buf_text(out, ") took ");
    ew_units_ns(out, (uint64_t)difference_ns);
    ew_buf_text(out, " more than a typical one");
    put_excess(out, group, difference_ns);
}

int etwatch_span_group_text(const struct etwatch_span_group *given, char *text, size_t text_size)
{
    struct etwatch_span_group copy;
    const struct etwatch_span_group *group =
        given == NULL ? NULL : ew_sized_or_null(given, &copy, sizeof copy);
    struct ew_buf out;
    if (group == NULL || (text == NULL && text_size > 0))
        return ew_sized_error(given, sizeof copy);
    ew_buf_init(&out, 0, NULL, NULL);
    put_text(&out, group);
    int rc = out.error != 0 ? out.error : (int)out.len;
    if (rc >= 0 && text_size > 0) {
        size_t kept = out.len < text_size ? out.len : text_size - 1;
        memcpy(text, out.data, kept);
        text[kept] = '\0';
    }
    ew_buf_done(&out);
    return rc;
}
