/* SPDX-License-Identifier: MIT */
/*
 * --operators: adds up the operators of inferences by session and node, and writes the ten that
 * took the most time of each session.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/units.h"

enum { NODES_MAX = 1 << 16, SHOWN = 10, SESSIONS_SHOWN = 8 };

struct ew_operator_sum {
    char session[64], node[64], type[32], provider[32];
    uint64_t count, time_ns;
    uint64_t pool_ns; /* the time with a known pool */
    uint64_t ns[ETWATCH_CAUSE_COUNT];
    double pool_percent; /* sum, each times its time */
};

static void copy_text(char *to, size_t size, const char *from)
{
    size_t len = from == NULL ? 0 : strlen(from);
    len = len < size ? len : size - 1;
    if (len > 0)
        memcpy(to, from, len);
    to[len] = '\0';
}

static uint32_t hash_of(const struct ew_operator_sum *sum)
{
    uint32_t hash = 2166136261u;
    for (const char *at = sum->session; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    for (const char *at = sum->node; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    for (const char *at = sum->type; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    return hash;
}

static bool is_same(const struct ew_operator_sum *a, const struct ew_operator_sum *b)
{
    return strcmp(a->node, b->node) == 0 && strcmp(a->session, b->session) == 0 &&
           strcmp(a->type, b->type) == 0 && strcmp(a->provider, b->provider) == 0;
}

/* The places are twice as many as the nodes, a power of two. */
static bool grow(struct ew_operators_view *view)
{
    uint32_t places = view->place_count == 0 ? 256 : view->place_count * 2;
    struct ew_operator_sum *sums =
        places / 2 > NODES_MAX ? NULL : ew_realloc_array(view->sums, places / 2, sizeof *sums);
    uint32_t *table = sums == NULL ? NULL : ew_calloc(places, sizeof *table);
    if (sums != NULL)
        view->sums = sums;
    if (table == NULL)
        return false;
    ew_free(view->places);
    view->places = table;
    view->place_count = places;
    for (uint32_t i = 0; i < view->count; i++) {
        uint32_t at = hash_of(&sums[i]) & (places - 1);
        while (table[at] != 0)
            at = (at + 1) & (places - 1);
        table[at] = i + 1;
    }
    return true;
}

static struct ew_operator_sum *find(struct ew_operators_view *view,
                                    const struct ew_operator_sum *key)
{
    if (view->count * 2 >= view->place_count && !grow(view))
        return NULL;
    uint32_t at = hash_of(key) & (view->place_count - 1);
    for (; view->places[at] != 0; at = (at + 1) & (view->place_count - 1))
        if (is_same(&view->sums[view->places[at] - 1], key))
            return &view->sums[view->places[at] - 1];
    view->sums[view->count] = *key;
    view->places[at] = ++view->count;
    return &view->sums[view->count - 1];
}

void ew_cli_operators_add(struct ew_operators_view *view, const struct etwatch_operator *op)
{
    static const char suffix[] = "ExecutionProvider";
    struct ew_operator_sum key = {.count = 0};
    copy_text(key.session, sizeof key.session, op->span->session);
    copy_text(key.node, sizeof key.node, op->node);
    copy_text(key.type, sizeof key.type, op->span->name);
    copy_text(key.provider, sizeof key.provider, op->provider);
    size_t len = strlen(key.provider), suffix_len = sizeof suffix - 1;
    if (len > suffix_len && strcmp(key.provider + len - suffix_len, suffix) == 0)
        key.provider[len - suffix_len] = '\0';
    view->operators++;
    struct ew_operator_sum *sum = find(view, &key);
    if (sum == NULL) {
        view->dropped++;
        return;
    }
    sum->count++;
    sum->time_ns += op->span->end_ns - op->span->start_ns;
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++)
        sum->ns[i] += op->span->ns[i];
    if (op->pool_percent >= 0) {
        uint64_t time_ns = op->span->end_ns - op->span->start_ns;
        sum->pool_percent += op->pool_percent * (double)time_ns;
        sum->pool_ns += time_ns;
    }
}

void ew_cli_operators_done(struct ew_operators_view *view)
{
    ew_free(view->sums);
    ew_free(view->places);
    memset(view, 0, sizeof *view);
}

/* -------------------------------------------------------------------------- the table */

static int by_time(const void *a, const void *b)
{
    const struct ew_operator_sum *x = a, *y = b;
    int order = strcmp(x->session, y->session);
    if (order != 0)
        return order;
    return x->time_ns > y->time_ns ? -1 : x->time_ns < y->time_ns;
}

static const char *const waits[ETWATCH_CAUSE_COUNT] = {
    "work",     "a CPU",     "its cgroup", "page faults", "a disk",
    "a thread", "a process", "a timer",    "unknown",
};

enum { NODE_WIDTH = 24, TYPE_WIDTH = 16, PROVIDER_WIDTH = 9, NUMBER_WIDTH = 10 };

static void put_text(struct ew_buf *out, const char *text, size_t width)
{
    size_t used = ew_buf_screen(out, text, strlen(text), width);
    ew_buf_repeat(out, ' ', used < width ? width - used + 1 : 1);
}

/* Ends a number at the right side of its column. */
static void align(struct ew_buf *out, size_t from, size_t width)
{
    size_t len = out->len - from;
    if (len >= width || !ew_buf_reserve(out, width))
        return;
    memmove(out->data + from + (width - len), out->data + from, len);
    memset(out->data + from, ' ', width - len);
    out->len = from + width;
}

static void put_percent(struct ew_buf *out, bool known, double percent, size_t width)
{
    size_t from = out->len;
    if (known) {
        (void)ew_buf_fixed(out, percent, 1);
        ew_buf_text(out, " %");
    } else {
        ew_buf_char(out, '-');
    }
    align(out, from, width);
}

static void put_time(struct ew_buf *out, uint64_t ns)
{
    size_t from = out->len;
    ew_units_ns(out, ns);
    align(out, from, NUMBER_WIDTH);
}

static void put_sum(struct ew_buf *out, const struct ew_operator_sum *sum, uint64_t all_ns)
{
    uint32_t largest = ETWATCH_CAUSE_CPU;
    uint64_t wait_ns = 0, known_ns = sum->time_ns - sum->ns[ETWATCH_CAUSE_UNKNOWN];
    for (uint32_t i = ETWATCH_CAUSE_CPU; i < ETWATCH_CAUSE_UNKNOWN; i++) {
        wait_ns += sum->ns[i];
        largest = sum->ns[i] > sum->ns[largest] ? i : largest;
    }
    ew_buf_text(out, "  ");
    put_text(out, sum->node, NODE_WIDTH);
    put_text(out, sum->type, TYPE_WIDTH);
    put_text(out, sum->provider[0] == '\0' ? "-" : sum->provider, PROVIDER_WIDTH);
    size_t from = out->len;
    ew_buf_u64(out, sum->count);
    align(out, from, NUMBER_WIDTH - 2);
    put_time(out, sum->time_ns);
    put_percent(out, all_ns > 0, 100.0 * (double)sum->time_ns / (double)all_ns, NUMBER_WIDTH - 2);
    put_time(out, sum->time_ns / sum->count);
    put_percent(out, known_ns > 0, 100.0 * (double)wait_ns / (double)known_ns, NUMBER_WIDTH - 2);
    put_percent(out, sum->pool_ns > 0, sum->pool_percent / (double)sum->pool_ns, NUMBER_WIDTH - 2);
    if (wait_ns * 50 >= known_ns && wait_ns > 0) {
        ew_buf_text(out, "  ");
        ew_buf_text(out, waits[largest]);
    }
    ew_buf_char(out, '\n');
}

static void put_head(struct ew_buf *out)
{
    static const struct {
        const char *text;
        size_t width;
    } columns[] = {{"count", NUMBER_WIDTH - 2},   {"time", NUMBER_WIDTH},
                   {"share", NUMBER_WIDTH - 2},   {"each", NUMBER_WIDTH},
                   {"waiting", NUMBER_WIDTH - 2}, {"pool", NUMBER_WIDTH - 2}};
    ew_buf_text(out, "  ");
    put_text(out, "node", NODE_WIDTH);
    put_text(out, "operator", TYPE_WIDTH);
    put_text(out, "provider", PROVIDER_WIDTH);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        size_t from = out->len;
        ew_buf_text(out, columns[i].text);
        align(out, from, columns[i].width);
    }
    ew_buf_text(out, "  mostly for\n");
}

/* One session: `count` sums. */
static void put_session(struct ew_buf *out, const struct ew_operator_sum *sums, uint32_t count)
{
    uint64_t all_ns = 0;
    for (uint32_t i = 0; i < count; i++)
        all_ns += sums[i].time_ns;
    ew_buf_text(out, "\noperators of ");
    (void)ew_buf_screen(out, sums->session, strlen(sums->session), 64);
    ew_buf_text(out, ": ");
    ew_buf_u64(out, count);
    ew_buf_text(out, count > SHOWN ? " nodes, the first ten by time\n" : " nodes, by time\n");
    put_head(out);
    for (uint32_t i = 0; i < count && i < SHOWN; i++)
        put_sum(out, &sums[i], all_ns);
}

void ew_cli_operators_write(struct ew_operators_view *view, struct ew_buf *out)
{
    uint32_t sessions = 0;
    if (view->count > 0)
        qsort(view->sums, view->count, sizeof *view->sums, by_time);
    for (uint32_t from = 0; from < view->count && sessions < SESSIONS_SHOWN; sessions++) {
        uint32_t to = from + 1;
        while (to < view->count && strcmp(view->sums[to].session, view->sums[from].session) == 0)
            to++;
        put_session(out, view->sums + from, to - from);
        from = to;
    }
    if (view->count > 0)
        ew_buf_text(out, "\nlatencies include the profiling of ONNX Runtime (--operators), some "
                         "microseconds per operator\n");
    if (view->lost + view->dropped > 0) {
        ew_buf_text(out, "\noperators are missing: ");
        ew_buf_u64(out, view->lost + view->dropped);
        ew_buf_text(out, " (a process was killed, or ONNX Runtime's limit of 1,000,000 events a "
                         "session was reached)\n");
    }
}
