/* SPDX-License-Identifier: MIT */
/*
 * Owns the rows of an account and their strings. Rows are never removed, so they stay in order of
 * arrival; the index is rebuilt as they grow.
 */
#include "sampler/account.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

static const struct metric {
    uint16_t offset;
    bool counter;
} metrics[] = {
#define counter true
#define gauge false
#define ETWATCH_X(name, type, kind) {offsetof(struct etwatch_sample, name), kind},
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
#undef gauge
#undef counter
};

static void index_row(struct ew_account_rows *rows, uint32_t i)
{
    const struct etwatch_sample *sum = &rows->rows[i].sum;
    uint32_t at = ew_hash_identity(sum->pid, sum->start_ns, sum->tid) & rows->index_mask;
    while (rows->index[at] != 0)
        at = (at + 1) & rows->index_mask;
    rows->index[at] = i + 1;
}

static bool grow(struct ew_account_rows *rows)
{
    uint32_t size = rows->size == 0 ? 64 : rows->size * 2;
    if (rows->count == EW_ACCOUNT_ROWS_MAX)
        return false;
    struct ew_account_row *larger = ew_realloc_array(rows->rows, size, sizeof *larger);
    if (larger == NULL)
        return false;
    rows->rows = larger;
    uint32_t *index = ew_calloc((size_t)size * 2, sizeof *index);
    if (index == NULL)
        return false;
    ew_free(rows->index);
    rows->index = index;
    rows->index_mask = size * 2 - 1;
    rows->size = size;
    for (uint32_t i = 0; i < rows->count; i++)
        index_row(rows, i);
    return true;
}

struct ew_account_row *ew_account_row(struct ew_account_rows *rows, uint32_t pid, uint64_t start_ns,
                                      uint32_t tid)
{
    if (rows->size > 0) {
        uint32_t at = ew_hash_identity(pid, start_ns, tid) & rows->index_mask;
        for (; rows->index[at] != 0; at = (at + 1) & rows->index_mask) {
            struct ew_account_row *row = &rows->rows[rows->index[at] - 1];
            if (row->sum.pid == pid && row->sum.tid == tid && row->sum.start_ns == start_ns)
                return row;
        }
    }
    if (rows->count == rows->size && !grow(rows))
        return NULL;
    struct ew_account_row *row = &rows->rows[rows->count];
    *row = (struct ew_account_row){.order = rows->count, .owner = rows->count};
    row->sum = (struct etwatch_sample){
        .size = sizeof row->sum,
        .type = tid == 0 ? ETWATCH_TYPE_EXIT : ETWATCH_TYPE_THREAD,
        .flags = ETWATCH_SAMPLE_COMPLETE,
        .pid = pid,
        .tid = tid,
        .start_ns = start_ns,
    };
    index_row(rows, rows->count++);
    return row;
}

static void free_word(const char *word)
{
    ew_free((char *)word);
}

void ew_account_strings_done(const struct etwatch_sample *sample)
{
    free_word(sample->name);
    free_word(sample->thread_name);
    free_word(sample->user);
    free_word(sample->cgroup);
    free_word(sample->cmdline);
}

static const char *copy_word(const char *word)
{
    return word == NULL ? NULL : ew_strdup(word);
}

void ew_account_strings_copy(struct etwatch_sample *sample)
{
    sample->name = copy_word(sample->name);
    sample->thread_name = copy_word(sample->thread_name);
    sample->user = copy_word(sample->user);
    sample->cgroup = copy_word(sample->cgroup);
    sample->cmdline = copy_word(sample->cmdline);
}

void ew_account_rows_done(struct ew_account_rows *rows)
{
    for (uint32_t i = 0; i < rows->count; i++)
        ew_account_strings_done(&rows->rows[i].sum);
    ew_free(rows->rows);
    ew_free(rows->index);
    *rows = (struct ew_account_rows){0};
}

static void take_word(const char **to, const char *word)
{
    if (word == NULL || (*to != NULL && strcmp(*to, word) == 0))
        return;
    free_word(*to);
    *to = ew_strdup(word);
}

void ew_account_row_strings(struct ew_account_row *row, const struct etwatch_sample *sample)
{
    struct etwatch_sample *sum = &row->sum;
    if (row->sum.tid == 0)
        take_word(&sum->name, sample->name);
    take_word(&sum->thread_name, sample->thread_name);
    take_word(&sum->user, sample->user);
    take_word(&sum->cgroup, sample->cgroup);
    take_word(&sum->cmdline, sample->cmdline);
    if ((sample->flags & ETWATCH_SAMPLE_HAS_PPID) != 0)
        sum->ppid = sample->ppid;
    if ((sample->flags & ETWATCH_SAMPLE_HAS_SESSION) != 0)
        sum->session_id = sample->session_id;
    sum->flags |= sample->flags & (ETWATCH_SAMPLE_HAS_PPID | ETWATCH_SAMPLE_HAS_SESSION);
    sum->source = sample->source;
}

static void *metric_at(struct etwatch_sample *sample, uint32_t m)
{
    return (char *)sample + metrics[m].offset;
}

/* Every metric has eight bytes; counters are unsigned. */
static void take_metric(struct etwatch_sample *sum, const struct etwatch_sample *sample, uint32_t m,
                        bool add)
{
    uint64_t value, before = 0;
    memcpy(&value, (const char *)sample + metrics[m].offset, sizeof value);
    if (add && etwatch_sample_has(sum, m))
        memcpy(&before, metric_at(sum, m), sizeof before);
    value += before;
    memcpy(metric_at(sum, m), &value, sizeof value);
    etwatch_metric_set_add(&sum->has, m);
}

void ew_account_row_add(struct ew_account_row *row, const struct etwatch_sample *sample)
{
    for (uint32_t m = 0; m < ETWATCH_METRIC_COUNT; m++)
        if (etwatch_sample_has(sample, m))
            take_metric(&row->sum, sample, m, metrics[m].counter);
    if ((sample->flags & ETWATCH_SAMPLE_COMPLETE) == 0)
        row->sum.flags &= ~(uint32_t)ETWATCH_SAMPLE_COMPLETE;
    row->sum.t_ns = sample->t_ns;
    ew_account_row_strings(row, sample);
}

void ew_account_row_end(struct ew_account_row *row, const struct etwatch_sample *exit, bool totals)
{
    for (uint32_t m = 0; m < ETWATCH_METRIC_COUNT; m++)
        if (etwatch_sample_has(exit, m) && (totals || !metrics[m].counter))
            take_metric(&row->sum, exit, m, false);
    if ((exit->flags & ETWATCH_SAMPLE_COMPLETE) == 0)
        row->sum.flags &= ~(uint32_t)ETWATCH_SAMPLE_COMPLETE;
    row->sum.t_ns = exit->t_ns;
    row->exited = true;
    ew_account_row_strings(row, exit);
}
