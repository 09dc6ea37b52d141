/* SPDX-License-Identifier: MIT */
/*
 * What is on disk in the form of the API. The records of a track are put into a history in memory
 * for the time of a request, so that range.c computes rates and gaps as it does for the latest
 * hour. Buckets in which the machine has no record are unknown: etwatch did not run.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "serve/archive.h"
#include "serve/range.h"

enum { READ_BYTES = 8 << 20, LIST_MAX = 2000 };

struct query {
    struct ew_archive *store;
    const struct ew_state *state;
    struct ew_range range;
    uint32_t level;
    struct ew_history history;
    uint64_t mark;
    bool *covered; /* per bucket */
};

static void put_text(struct ew_buf *out, const char *key, const char *text)
{
    ew_buf_text(out, key);
    ew_buf_json_string(out, text, strlen(text));
}

static void put_ms(struct ew_buf *out, const char *key, uint64_t ns)
{
    ew_buf_text(out, key);
    if (ns == 0)
        ew_buf_text(out, "null");
    else
        ew_catalog_put_short(out, (double)(ns / 1000) / 1000);
}

/* ew_range_fit with the bounds and the interval of the store. False: the range is empty. */
static bool fit(struct query *query, uint64_t from_ns, uint64_t to_ns, uint64_t step_ns)
{
    struct ew_state *view = ew_calloc(1, sizeof *view);
    if (view == NULL)
        return false;
    /* A young database has everything at its finest level, however far back a range begins. */
    uint64_t oldest_ns = ew_archive_oldest_ns(query->store);
    uint64_t begin_ns = from_ns != 0 ? from_ns : query->state->now_ns;
    query->level = ew_archive_level_at(query->store, begin_ns > oldest_ns ? begin_ns : oldest_ns);
    /* Right after the start no second is closed yet. */
    view->now_ns = to_ns > query->state->now_ns ? to_ns : query->state->now_ns;
    view->first_ns = oldest_ns;
    view->meta.meta.hz_requested = 1.0 / ew_archive_level_s(query->level);
    bool good =
        view->first_ns != 0 && ew_range_fit(view, from_ns, to_ns, step_ns, true, &query->range);
    ew_free(view);
    return good;
}

/* The records of a track; the history is empty before. */
static int read_track(struct query *query, int64_t id, const uint8_t *types)
{
    uint64_t before_ns = ew_archive_level_s(query->level) * EW_STATE_SECOND_NS;
    const struct ew_range *range = &query->range;
    uint64_t from_ns = range->from_ns > before_ns ? range->from_ns - before_ns : 0;
    ew_history_done(&query->history);
    query->mark = 0;
    int rc = ew_history_init(&query->history, READ_BYTES, 0, types);
    return rc < 0 ? rc
                  : ew_archive_read(query->store, id, query->level, from_ns,
                                    range->to_ns + before_ns, &query->history, &query->mark);
}

/* A record of the machine covers the stretch before its time. */
static int find_covered(struct query *query)
{
    const struct ew_range *range = &query->range;
    uint64_t length_ns = ew_archive_level_s(query->level) * EW_STATE_SECOND_NS;
    query->covered = ew_calloc(range->buckets, sizeof *query->covered);
    int rc = query->covered == NULL ? ETWATCH_ENOMEM
                                    : read_track(query, 0, query->state->catalog.system_types);
    uint64_t t_ns, before, mark = query->mark;
    while (rc == 0 && ew_history_peek(&query->history, mark, &t_ns, &before)) {
        mark = before;
        uint64_t begin_ns = t_ns - length_ns > range->from_ns ? t_ns - length_ns : range->from_ns;
        for (uint64_t at = begin_ns; at < t_ns; at += range->step_ns)
            if ((at - range->from_ns) / range->step_ns < range->buckets)
                query->covered[(at - range->from_ns) / range->step_ns] = true;
        if (t_ns > range->from_ns && (t_ns - 1 - range->from_ns) / range->step_ns < range->buckets)
            query->covered[(t_ns - 1 - range->from_ns) / range->step_ns] = true;
    }
    return rc;
}

static struct etwatch_metric_set metrics_in(const struct query *query)
{
    struct etwatch_metric_set found = {{0}};
    for (uint32_t i = 0; i < query->history.shape_count; i++)
        etwatch_metric_set_union(&found, &query->history.shapes[i]);
    return found;
}

static void put_series(const struct query *query, const char *name, const double *values,
                       struct ew_buf *out)
{
    put_text(out, "", name);
    ew_buf_text(out, ":[");
    for (uint32_t b = 0; b < query->range.buckets; b++) {
        if (b > 0)
            ew_buf_char(out, ',');
        ew_catalog_put_short(out, query->covered[b] ? values[b] : NAN);
    }
    ew_buf_char(out, ']');
}

static int put_metrics(const struct query *query, const struct ew_archive_process *process,
                       const struct etwatch_metric_set *metrics, struct ew_buf *out)
{
    const struct ew_catalog *catalog = &query->state->catalog;
    const struct etwatch_metric_info *infos = process != NULL ? catalog->process : catalog->system;
    const struct etwatch_metric_set *counters =
        process != NULL ? &catalog->process_counters : &catalog->system_counters;
    struct etwatch_metric_set all = metrics_in(query);
    const struct etwatch_metric_set *set = etwatch_metric_set_is_empty(metrics) ? &all : metrics;
    double *values = ew_calloc(query->range.buckets, sizeof *values);
    int rc = values == NULL ? ETWATCH_ENOMEM : 0;
    uint64_t from_ns = process != NULL ? process->first_ns - 300 * EW_STATE_SECOND_NS : 0;
    uint64_t to_ns = process != NULL ? process->exit_ns : 0;
    bool first = true;
    for (uint32_t m = etwatch_metric_set_next(set, 0); rc == 0 && m != ETWATCH_METRIC_SET_END;
         m = etwatch_metric_set_next(set, m + 1)) {
        struct ew_range_metric one = {
            .metric = m, .counter = etwatch_metric_set_has(counters, m), .values = values};
        if (!etwatch_metric_set_has(&all, m))
            continue;
        rc = ew_range_read(&query->history, query->mark, &query->range, from_ns, to_ns, &one, 1);
        ew_buf_text(out, first ? "" : ",");
        first = false;
        put_series(query, infos[m].name, values, out);
    }
    ew_free(values);
    return rc;
}

static int put_history(struct query *query, const struct ew_archive_process *process,
                       const struct etwatch_metric_set *metrics, struct ew_buf *out)
{
    const struct ew_range *range = &query->range;
    int rc = find_covered(query);
    if (rc == 0 && process != NULL)
        rc = read_track(query, process->id, query->state->catalog.process_types);
    put_ms(out, "{\"from_ms\":", range->from_ns);
    put_ms(out, ",\"to_ms\":", range->from_ns + range->buckets * range->step_ns);
    put_ms(out, ",\"step_ms\":", range->step_ns);
    ew_buf_text(out, ",\"count\":");
    ew_buf_u64(out, range->buckets);
    put_text(out, ",\"resolution\":", query->level == 0 ? "10s" : "5m");
    ew_buf_text(out, ",\"series\":{");
    if (rc == 0)
        rc = put_metrics(query, process, metrics, out);
    ew_buf_text(out, "},\"peaks\":{},\"cpus\":[]}\n");
    return rc;
}

int ew_archive_api_history(struct ew_archive *store, const struct ew_state *state,
                           const struct ew_archive_process *process, uint64_t from_ns,
                           uint64_t to_ns, uint64_t step_ns,
                           const struct etwatch_metric_set *metrics, struct ew_buf *out)
{
    struct query query = {.store = store, .state = state};
    if (!fit(&query, from_ns, to_ns, step_ns))
        return ETWATCH_EINVAL;
    int rc = put_history(&query, process, metrics, out);
    ew_history_done(&query.history);
    ew_free(query.covered);
    return rc;
}

static void put_identity(const struct ew_archive_process *process, struct ew_buf *out)
{
    ew_buf_text(out, "{\"id\":\"");
    ew_buf_u64(out, process->pid);
    ew_buf_char(out, '-');
    ew_buf_u64(out, process->start_ns);
    ew_buf_text(out, "\",\"pid\":");
    ew_buf_u64(out, process->pid);
    ew_buf_text(out, ",\"ppid\":");
    ew_buf_u64(out, process->ppid);
    put_text(out, ",\"name\":", process->name);
    put_text(out, ",\"user\":", process->user);
    put_ms(out, ",\"start_ms\":", process->start_ns);
    put_ms(out, ",\"first_ms\":", process->first_ns);
    put_ms(out, ",\"last_ms\":", process->last_ns);
    put_ms(out, ",\"exit_ms\":", process->exit_ns);
}

void ew_archive_api_process(const struct ew_archive_process *process, struct ew_buf *out)
{
    put_identity(process, out);
    ew_buf_text(out, ",\"stored\":true,\"cgroup\":null,\"values\":{},\"totals\":{},"
                     "\"threads\":[]}\n");
}

struct listing {
    struct ew_buf *out;
    bool first;
};

static void put_process(void *ctx, const struct ew_archive_process *process)
{
    struct listing *listing = ctx;
    struct ew_buf *out = listing->out;
    ew_buf_text(out, listing->first ? "" : ",");
    listing->first = false;
    put_identity(process, out);
    ew_buf_char(out, '}');
}

int ew_archive_api_processes(struct ew_archive *store, uint64_t from_ns, uint64_t to_ns,
                             struct ew_buf *out)
{
    struct listing listing = {out, true};
    ew_buf_text(out, "{\"processes\":[");
    int rc = ew_archive_list(store, from_ns, to_ns, LIST_MAX, put_process, &listing);
    ew_buf_text(out, "]}\n");
    return rc;
}

void ew_archive_api_info(const struct ew_archive *store, const struct ew_state *state,
                         struct ew_buf *out)
{
    const struct ew_state_store *figures = &state->store;
    ew_buf_text(out, store != NULL ? "{\"enabled\":true" : "{\"enabled\":false");
    put_ms(out, ",\"oldest_ms\":", store != NULL ? ew_archive_oldest_ns(store) : 0);
    ew_buf_text(out, ",\"bytes\":");
    ew_buf_u64(out, figures->bytes);
    ew_buf_text(out, ",\"records\":");
    ew_buf_u64(out, figures->records);
    ew_buf_text(out, ",\"dropped_records\":");
    ew_buf_u64(out, figures->dropped_records);
    ew_buf_text(out, ",\"replaced\":");
    ew_buf_u64(out, figures->replaced);
    put_text(out, ",\"error\":", figures->error);
    ew_buf_text(out, "}\n");
}
