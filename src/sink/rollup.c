/* SPDX-License-Identifier: MIT */
/*
 * Owns one row per (pid, start time, tid) in an array with a hash index. Invariant: every counter
 * is in exactly one place, a row or the rest, so the displayed sums always add up.
 *
 * The array has a fixed maximum. When it is full, the exited half with the least CPU time is folded
 * into the rest, so many short processes cost an occasional sort and not one per process; live rows
 * are kept. Threads get at most three quarters of the rows, and a thread is listed only if it was
 * listed from its start: a partial sum would look like a complete one.
 */
#include "sink/rollup.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/sized.h"
#include "sink/fields.h"

enum { FIRST_ROWS = 16 };

void ew_rollup_init(struct ew_rollup *rollup, uint32_t max_rows, bool totals)
{
    uint32_t max = FIRST_ROWS;
    while (max < max_rows && max < 1u << 20)
        max *= 2;
    *rollup = (struct ew_rollup){.max = max, .totals = totals};
}

void ew_rollup_done(struct ew_rollup *rollup)
{
    ew_free(rollup->rows);
    ew_free(rollup->index);
    ew_free(rollup->order);
    *rollup = (struct ew_rollup){0};
}

static bool is_row(const struct ew_rollup_row *row, uint32_t pid, uint64_t start_ns, uint32_t tid)
{
    return row->sum.pid == pid && row->sum.start_ns == start_ns && row->sum.tid == tid;
}

static struct ew_rollup_row *find(const struct ew_rollup *rollup, uint32_t pid, uint64_t start_ns,
                                  uint32_t tid)
{
    if (rollup->index == NULL)
        return NULL;
    for (uint32_t i = ew_hash_identity(pid, start_ns, tid);; i++) {
        uint32_t at = rollup->index[i & rollup->index_mask];
        if (at == 0)
            return NULL;
        if (is_row(&rollup->rows[at - 1], pid, start_ns, tid))
            return &rollup->rows[at - 1];
    }
}

static void index_row(struct ew_rollup *rollup, uint32_t row)
{
    const struct etwatch_sample *sum = &rollup->rows[row].sum;
    uint32_t i = ew_hash_identity(sum->pid, sum->start_ns, sum->tid);
    while (rollup->index[i & rollup->index_mask] != 0)
        i++;
    rollup->index[i & rollup->index_mask] = row + 1;
}

static void rebuild_index(struct ew_rollup *rollup)
{
    memset(rollup->index, 0, ((size_t)rollup->index_mask + 1) * sizeof *rollup->index);
    for (uint32_t i = 0; i < rollup->count; i++)
        index_row(rollup, i);
}

/* The strings of a row point into the row itself and must be updated when it moves. */
static void point_strings(struct ew_rollup_row *row)
{
    row->sum.name = row->name[0] != '\0' ? row->name : NULL;
    row->sum.thread_name = row->thread_name[0] != '\0' ? row->thread_name : NULL;
    row->sum.user = row->user[0] != '\0' ? row->user : NULL;
    row->sum.cgroup = NULL;
    row->sum.cmdline = NULL;
}

static int grow(struct ew_rollup *rollup)
{
    uint32_t size = rollup->size == 0 ? (uint32_t)FIRST_ROWS : rollup->size * 2;
    uint32_t *index = ew_calloc((size_t)size * 2, sizeof *index);
    if (index == NULL)
        return ETWATCH_ENOMEM;
    struct ew_rollup_row *rows = ew_realloc_array(rollup->rows, size, sizeof *rows);
    if (rows == NULL) {
        ew_free(index);
        return ETWATCH_ENOMEM;
    }
    ew_free(rollup->index);
    rollup->index = index;
    rollup->index_mask = size * 2 - 1;
    rollup->rows = rows;
    rollup->size = size;
    for (uint32_t i = 0; i < rollup->count; i++)
        point_strings(&rows[i]);
    rebuild_index(rollup);
    return 0;
}

static uint64_t *metric_at(struct etwatch_sample *sample, uint32_t metric)
{
    return (uint64_t *)(void *)((char *)sample + ew_sink_metric_info[metric].offset);
}

static uint64_t metric_u64(const struct etwatch_sample *sample, uint32_t metric)
{
    uint64_t value;
    memcpy(&value, (const char *)sample + ew_sink_metric_info[metric].offset, sizeof value);
    return value;
}

/* What a row may take over: every known metric except cpu_percent, which does not add up. */
static struct etwatch_metric_set known_but_percent(const struct etwatch_sample *sample)
{
    struct etwatch_metric_set known = sample->has;
    etwatch_metric_set_remove(&known, ETWATCH_M_cpu_percent);
    return known;
}

/* Adds counters, replaces gauges; values unknown in both stay unknown. */
static void merge(struct etwatch_sample *sum, const struct etwatch_sample *sample, bool gauges)
{
    struct etwatch_metric_set known = known_but_percent(sample);
    EW_METRIC_SET_EACH (metric, &known) {
        if (ew_sink_metric_info[metric].counter && etwatch_sample_has(sum, metric))
            *metric_at(sum, metric) += metric_u64(sample, metric);
        else if (ew_sink_metric_info[metric].counter || gauges)
            *metric_at(sum, metric) = metric_u64(sample, metric);
        else
            etwatch_metric_set_remove(&known, metric);
    }
    etwatch_metric_set_union(&sum->has, &known);
}

static void fold_into_rest(struct ew_rollup *rollup, const struct etwatch_sample *sample)
{
    merge(&rollup->rest, sample, false);
}

static int by_cpu(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Removes a row: a process goes into the rest; a thread is already part of its process. */
static void fold(struct ew_rollup *rollup, const struct ew_rollup_row *row)
{
    if (row->sum.type == ETWATCH_TYPE_THREAD) {
        rollup->thread_count--;
    } else {
        fold_into_rest(rollup, &row->sum);
        rollup->rest_count++;
    }
}

/* Removes up to `most` exited rows that used at most limit_ns. */
static void compact(struct ew_rollup *rollup, uint64_t limit_ns, uint32_t most)
{
    uint32_t kept = 0, folded = 0;
    for (uint32_t i = 0; i < rollup->count; i++) {
        struct ew_rollup_row *row = &rollup->rows[i];
        if (row->exited && folded < most && row->sum.cpu_ns <= limit_ns) {
            fold(rollup, row);
            folded++;
            continue;
        }
        if (kept != i)
            rollup->rows[kept] = *row;
        point_strings(&rollup->rows[kept]);
        kept++;
    }
    rollup->count = kept;
    rebuild_index(rollup);
}

static int make_room(struct ew_rollup *rollup)
{
    uint32_t exited = 0;
    uint64_t *cpu = ew_calloc(rollup->count, sizeof *cpu);
    if (cpu == NULL)
        return ETWATCH_ENOMEM;
    for (uint32_t i = 0; i < rollup->count; i++)
        if (rollup->rows[i].exited)
            cpu[exited++] = rollup->rows[i].sum.cpu_ns;
    if (exited > 0) {
        uint32_t most = exited > 3 ? exited / 2 : exited;
        qsort(cpu, exited, sizeof *cpu, by_cpu);
        compact(rollup, cpu[most - 1], most);
    }
    ew_free(cpu);
    return 0;
}

static void set_text(char *to, size_t size, const char *from)
{
    if (from == NULL)
        return;
    size_t len = strlen(from);
    if (len >= size)
        len = size - 1;
    memcpy(to, from, len);
    to[len] = '\0';
}

static int make_row(struct ew_rollup *rollup, const struct etwatch_sample *sample,
                    struct ew_rollup_row **ret_row)
{
    bool thread = sample->type == ETWATCH_TYPE_THREAD;
    int rc = 0;
    *ret_row = NULL;
    if (thread && rollup->thread_count >= rollup->max / 4 * 3) {
        rollup->threads_unlisted = true;
        return 0;
    }
    if (rollup->count == rollup->size)
        rc = rollup->size < rollup->max ? grow(rollup) : make_room(rollup);
    if (rc < 0 || rollup->count == rollup->size)
        return rc;
    struct ew_rollup_row *row = &rollup->rows[rollup->count];
    memset(row, 0, sizeof *row);
    row->sum.size = sizeof row->sum;
    row->sum.type = thread ? ETWATCH_TYPE_THREAD : ETWATCH_TYPE_SAMPLE;
    row->sum.source = sample->source;
    row->sum.flags = ETWATCH_SAMPLE_COMPLETE;
    row->sum.pid = sample->pid;
    row->sum.start_ns = sample->start_ns;
    row->sum.tid = thread ? sample->tid : 0;
    row->first_ns = sample->t_ns - sample->dt_ns;
    rollup->thread_count += thread;
    index_row(rollup, rollup->count++);
    *ret_row = row;
    return 0;
}

static void update_identity(struct ew_rollup_row *row, const struct etwatch_sample *sample)
{
    const uint32_t known = ETWATCH_SAMPLE_HAS_PPID | ETWATCH_SAMPLE_HAS_SESSION;
    set_text(row->name, sizeof row->name, sample->name);
    set_text(row->thread_name, sizeof row->thread_name, sample->thread_name);
    set_text(row->user, sizeof row->user, sample->user);
    point_strings(row);
    if ((sample->flags & ETWATCH_SAMPLE_HAS_PPID) != 0)
        row->sum.ppid = sample->ppid;
    if ((sample->flags & ETWATCH_SAMPLE_HAS_SESSION) != 0)
        row->sum.session_id = sample->session_id;
    row->sum.flags |= sample->flags & known;
    if ((sample->flags & ETWATCH_SAMPLE_COMPLETE) == 0)
        row->sum.flags &= ~(uint32_t)ETWATCH_SAMPLE_COMPLETE;
    row->sum.t_ns = sample->t_ns;
}

/* Counters from before the process was first seen are ignored, its gauges are used. */
static void set_gauges(struct etwatch_sample *sum, const struct etwatch_sample *sample)
{
    struct etwatch_metric_set known = known_but_percent(sample);
    EW_METRIC_SET_EACH (metric, &known) {
        if (ew_sink_metric_info[metric].counter)
            continue;
        *metric_at(sum, metric) = metric_u64(sample, metric);
        etwatch_metric_set_add(&sum->has, metric);
    }
}

/* EXIT carries totals over the lifetime: they replace sums or are ignored, but are never added. */
static void add_exit(struct ew_rollup *rollup, struct ew_rollup_row *row,
                     const struct etwatch_sample *sample)
{
    row->exited = true;
    struct etwatch_metric_set known = known_but_percent(sample);
    EW_METRIC_SET_EACH (metric, &known) {
        if (ew_sink_metric_info[metric].counter && !rollup->totals)
            continue;
        *metric_at(&row->sum, metric) = metric_u64(sample, metric);
        etwatch_metric_set_add(&row->sum.has, metric);
    }
    if (rollup->totals)
        row->sum.dt_ns = sample->dt_ns;
}

static void end_threads(struct ew_rollup *rollup, const struct etwatch_sample *exit)
{
    for (uint32_t i = 0; i < rollup->count; i++) {
        struct ew_rollup_row *row = &rollup->rows[i];
        if (row->sum.type == ETWATCH_TYPE_THREAD && row->sum.pid == exit->pid &&
            row->sum.start_ns == exit->start_ns)
            row->exited = true;
    }
}

static void add_interval(struct ew_rollup_row *row, const struct etwatch_sample *sample)
{
    merge(&row->sum, sample, true);
    row->sum.dt_ns += sample->dt_ns;
    row->active = true;
    if (etwatch_sample_has(sample, ETWATCH_M_cpu_percent) && sample->cpu_percent >= 0 &&
        sample->cpu_percent < 1e9) {
        uint64_t milli = (uint64_t)(sample->cpu_percent * 1000);
        if (milli > row->peak_percent_milli)
            row->peak_percent_milli = milli;
    }
}

int ew_rollup_add(struct ew_rollup *rollup, const struct etwatch_sample *sample)
{
    bool thread = sample->type == ETWATCH_TYPE_THREAD;
    struct ew_rollup_row *row =
        find(rollup, sample->pid, sample->start_ns, thread ? sample->tid : 0);
    if (row == NULL) {
        int rc = make_row(rollup, sample, &row);
        if (rc < 0)
            return rc;
    }
    if (sample->t_ns > rollup->last_ns)
        rollup->last_ns = sample->t_ns;
    /* A START is incomplete if it was missed by the source; that does not affect the sums. */
    if ((sample->flags & ETWATCH_SAMPLE_COMPLETE) == 0 && sample->type != ETWATCH_TYPE_START)
        rollup->incomplete = true;
    if (row == NULL) { /* all rows are live */
        if (sample->type == ETWATCH_TYPE_SAMPLE)
            fold_into_rest(rollup, sample);
        rollup->rest_count += sample->type == ETWATCH_TYPE_START;
        return 0;
    }
    update_identity(row, sample);
    switch (sample->type) {
    case ETWATCH_TYPE_START:
        row->preexisting = (sample->flags & ETWATCH_SAMPLE_PREEXISTING) != 0;
        set_gauges(&row->sum, sample);
        break;
    case ETWATCH_TYPE_EXIT:
        add_exit(rollup, row, sample);
        if (rollup->thread_count > 0)
            end_threads(rollup, sample);
        break;
    default:
        add_interval(row, sample);
        break;
    }
    return 0;
}

void ew_rollup_next(struct ew_rollup *rollup)
{
    /* Threads have no START and EXIT: one that was idle for a block may have ended. */
    for (uint32_t i = 0; i < rollup->count; i++)
        if (rollup->rows[i].sum.type == ETWATCH_TYPE_THREAD && !rollup->rows[i].active)
            rollup->rows[i].exited = true;
    if (rollup->count > 0)
        compact(rollup, UINT64_MAX, UINT32_MAX);
    for (uint32_t i = 0; i < rollup->count; i++) {
        struct ew_rollup_row *row = &rollup->rows[i];
        for (uint32_t m = 0; m < ETWATCH_METRIC_COUNT; m++)
            if (ew_sink_metric_info[m].counter)
                *metric_at(&row->sum, m) = 0;
        row->sum.dt_ns = 0;
        row->sum.flags |= ETWATCH_SAMPLE_COMPLETE;
        row->peak_percent_milli = 0;
        row->active = false;
    }
    memset(&rollup->rest, 0, sizeof rollup->rest);
    rollup->rest_count = 0;
    rollup->incomplete = false;
}

double ew_rollup_percent(const struct ew_rollup_row *row, uint64_t wall_ns)
{
    if (!etwatch_sample_has(&row->sum, ETWATCH_M_cpu_ns) || wall_ns == 0)
        return -1;
    return 100.0 * (double)row->sum.cpu_ns / (double)wall_ns;
}

struct ew_rollup_order {
    uint64_t group_key; /* of the process */
    uint64_t key;
    const struct ew_rollup_row *row;
};

static int by_key(const void *a, const void *b)
{
    const struct ew_rollup_order *x = a, *y = b;
    const struct etwatch_sample *s = &x->row->sum, *t = &y->row->sum;
    if (x->group_key != y->group_key)
        return x->group_key < y->group_key ? 1 : -1;
    if (s->pid != t->pid)
        return s->pid < t->pid ? -1 : 1;
    if (s->start_ns != t->start_ns)
        return s->start_ns < t->start_ns ? -1 : 1;
    if (s->type != t->type)
        return s->type == ETWATCH_TYPE_THREAD ? 1 : -1;
    if (x->key != y->key)
        return x->key < y->key ? 1 : -1;
    return (s->tid > t->tid) - (s->tid < t->tid);
}

static uint64_t sort_key(const struct etwatch_sample *sum, uint32_t metric)
{
    return etwatch_sample_has(sum, metric) ? metric_u64(sum, metric) : 0;
}

size_t ew_rollup_sort(struct ew_rollup *rollup, uint32_t metric, bool active_only)
{
    size_t count = 0;
    struct ew_rollup_order *order =
        ew_realloc_array(rollup->order, rollup->count + 1u, sizeof *order);
    if (order == NULL) {
        rollup->error = ETWATCH_ENOMEM;
        return 0;
    }
    rollup->order = order;
    for (uint32_t i = 0; i < rollup->count; i++) {
        const struct ew_rollup_row *row = &rollup->rows[i], *process = row;
        if (active_only && !row->active)
            continue;
        if (row->sum.type == ETWATCH_TYPE_THREAD)
            process = find(rollup, row->sum.pid, row->sum.start_ns, 0);
        order[count].row = row;
        order[count].key = sort_key(&row->sum, metric);
        order[count].group_key =
            process != NULL ? sort_key(&process->sum, metric) : order[count].key;
        count++;
    }
    qsort(order, count, sizeof *order, by_key);
    return count;
}

const struct ew_rollup_row *ew_rollup_sorted(const struct ew_rollup *rollup, size_t i)
{
    return rollup->order[i].row;
}

/* -------------------------------------------------------------------- public */

enum { DEFAULT_ROWS = 4096 };

struct etwatch_rollup {
    struct ew_rollup own;
    uint32_t sorted; /* rows of the last sort; 0 after a change */
};

int etwatch_rollup_new(const struct etwatch_rollup_options *given,
                       struct etwatch_rollup **ret_rollup)
{
    struct etwatch_rollup_options options = {.size = sizeof options};
    if (ret_rollup == NULL)
        return ETWATCH_EINVAL;
    int rc = given == NULL
                 ? 0
                 : ew_sized_in(&options, sizeof options, given, "etwatch_rollup_options", NULL);
    if (rc < 0)
        return rc;
    struct etwatch_rollup *rollup = ew_calloc(1, sizeof *rollup);
    if (rollup == NULL)
        return ETWATCH_ENOMEM;
    ew_rollup_init(&rollup->own, options.max_rows != 0 ? options.max_rows : DEFAULT_ROWS,
                   (options.flags & ETWATCH_ROLLUP_TOTALS) != 0);
    *ret_rollup = rollup;
    return 0;
}

void etwatch_rollup_free(struct etwatch_rollup *rollup)
{
    if (rollup == NULL)
        return;
    ew_rollup_done(&rollup->own);
    ew_free(rollup);
}

int etwatch_rollup_add(struct etwatch_rollup *rollup, const struct etwatch_sample *given)
{
    struct etwatch_sample copy;
    const struct etwatch_sample *sample =
        rollup == NULL || given == NULL ? NULL : ew_sized_or_null(given, &copy, sizeof copy);
    if (sample == NULL)
        return ew_sized_error(given, sizeof copy);
    rollup->sorted = 0;
    return ew_rollup_add(&rollup->own, sample);
}

int etwatch_rollup_next(struct etwatch_rollup *rollup)
{
    if (rollup == NULL)
        return ETWATCH_EINVAL;
    rollup->sorted = 0;
    ew_rollup_next(&rollup->own);
    return 0;
}

int etwatch_rollup_sort(struct etwatch_rollup *rollup, uint32_t metric, uint32_t flags)
{
    if (rollup == NULL || metric >= ETWATCH_METRIC_COUNT ||
        ew_sink_metric_info[metric].kind != EW_VALUE_U64)
        return ETWATCH_EINVAL;
    rollup->own.error = 0;
    rollup->sorted =
        (uint32_t)ew_rollup_sort(&rollup->own, metric, (flags & ETWATCH_ROLLUP_ACTIVE) != 0);
    return rollup->own.error != 0 ? rollup->own.error : (int)rollup->sorted;
}

int etwatch_rollup_row(const struct etwatch_rollup *rollup, uint32_t i,
                       struct etwatch_rollup_row *ret_row)
{
    if (rollup == NULL || ret_row == NULL || i >= rollup->sorted)
        return ETWATCH_EINVAL;
    const struct ew_rollup_row *row = ew_rollup_sorted(&rollup->own, i);
    struct etwatch_rollup_row out = {
        .flags = (row->active ? (uint32_t)ETWATCH_ROLLUP_ACTIVE : 0) |
                 (row->preexisting ? (uint32_t)ETWATCH_ROLLUP_PREEXISTING : 0) |
                 (row->exited ? (uint32_t)ETWATCH_ROLLUP_EXITED : 0),
        .first_ns = row->first_ns,
        .sum = &row->sum,
    };
    return ew_sized_out(ret_row, &out, sizeof out);
}

int etwatch_rollup_info(const struct etwatch_rollup *rollup, struct etwatch_rollup_info *ret_info)
{
    if (rollup == NULL || ret_info == NULL)
        return ETWATCH_EINVAL;
    const struct ew_rollup *own = &rollup->own;
    struct etwatch_rollup_info info = {
        .flags = (own->threads_unlisted ? (uint32_t)ETWATCH_ROLLUP_THREADS_UNLISTED : 0) |
                 (own->incomplete ? (uint32_t)ETWATCH_ROLLUP_INCOMPLETE : 0),
        .last_ns = own->last_ns,
        .cpu_ns = own->rest.cpu_ns,
        .unlisted = own->rest_count,
        .unlisted_cpu_ns = own->rest.cpu_ns,
    };
    for (uint32_t i = 0; i < own->count; i++) {
        const struct ew_rollup_row *row = &own->rows[i];
        if (row->sum.type == ETWATCH_TYPE_THREAD)
            continue;
        info.cpu_ns += row->sum.cpu_ns;
        info.active += row->active;
    }
    return ew_sized_out(ret_info, &info, sizeof info);
}
