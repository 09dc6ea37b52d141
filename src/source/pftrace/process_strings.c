/* SPDX-License-Identifier: MIT */
/*
 * Owns the strings of processes and threads while they run. The writer emits a string once and
 * again when it changes; this table adds it to the other samples. When the table is full, the rows
 * of ended processes are removed; if too many are still running, all rows are dropped, as in the
 * writer, which then emits all strings again. The same happens if the strings take too much memory,
 * which no recorder's do.
 */
#include "source/pftrace/pftrace.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { STRINGS = 5 };

struct ew_pft_string_row {
    uint32_t pid, tid;
    uint64_t start_ns;
    bool ended;
    char *text[STRINGS]; /* name, thread_name, user, cgroup, cmdline */
};

void ew_pft_strings_done(struct ew_pft_strings *strings)
{
    for (uint32_t i = 0; i < strings->count; i++)
        for (uint32_t column = 0; column < STRINGS; column++)
            ew_free(strings->rows[i].text[column]);
    ew_free(strings->rows);
    ew_free(strings->index);
    *strings = (struct ew_pft_strings){0};
}

static void index_row(struct ew_pft_strings *strings, uint32_t i)
{
    const struct ew_pft_string_row *row = &strings->rows[i];
    uint32_t at = ew_hash_identity(row->pid, row->start_ns, row->tid) & strings->index_mask;
    while (strings->index[at] != 0)
        at = (at + 1) & strings->index_mask;
    strings->index[at] = i + 1;
}

static struct ew_pft_string_row *find(struct ew_pft_strings *strings, uint32_t pid,
                                      uint64_t start_ns, uint32_t tid);

static void drop_text(struct ew_pft_strings *strings, char *text)
{
    strings->bytes -= text != NULL ? strlen(text) + 1 : 0;
    ew_free(text);
}

/* Removes the rows of ended threads and processes; an ended process takes its threads with it. */
static void compact(struct ew_pft_strings *strings)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < strings->count; i++) {
        struct ew_pft_string_row *row = &strings->rows[i];
        const struct ew_pft_string_row *process = find(strings, row->pid, row->start_ns, 0);
        row->ended = row->ended || process == NULL || process->ended;
    }
    for (uint32_t i = 0; i < strings->count; i++) {
        struct ew_pft_string_row row = strings->rows[i];
        for (uint32_t column = 0; column < STRINGS && row.ended; column++)
            drop_text(strings, row.text[column]);
        if (!row.ended)
            strings->rows[kept++] = row;
    }
    strings->count = kept;
    memset(strings->index, 0, ((size_t)strings->index_mask + 1) * sizeof *strings->index);
    for (uint32_t i = 0; i < kept; i++)
        index_row(strings, i);
}

static bool is_full(const struct ew_pft_strings *strings)
{
    return strings->count == EW_PFT_STRINGS_MAX || strings->bytes > EW_PFT_STRINGS_BYTES_MAX;
}

static bool grow(struct ew_pft_strings *strings)
{
    if (is_full(strings)) {
        compact(strings);
        if (strings->count > EW_PFT_STRINGS_MAX / 2 ||
            strings->bytes > EW_PFT_STRINGS_BYTES_MAX / 2)
            ew_pft_strings_done(strings);
        if (strings->count < strings->size)
            return true;
    }
    uint32_t size = strings->size == 0 ? 64 : strings->size * 2;
    struct ew_pft_string_row *larger = ew_realloc_array(strings->rows, size, sizeof *larger);
    if (larger == NULL)
        return false;
    strings->rows = larger;
    uint32_t *index = ew_calloc((size_t)size * 2, sizeof *index);
    if (index == NULL)
        return false;
    ew_free(strings->index);
    strings->index = index;
    strings->index_mask = size * 2 - 1;
    strings->size = size;
    for (uint32_t i = 0; i < strings->count; i++)
        index_row(strings, i);
    return true;
}

static struct ew_pft_string_row *find(struct ew_pft_strings *strings, uint32_t pid,
                                      uint64_t start_ns, uint32_t tid)
{
    if (strings->size == 0)
        return NULL;
    uint32_t at = ew_hash_identity(pid, start_ns, tid) & strings->index_mask;
    for (; strings->index[at] != 0; at = (at + 1) & strings->index_mask) {
        struct ew_pft_string_row *row = &strings->rows[strings->index[at] - 1];
        if (row->pid == pid && row->tid == tid && row->start_ns == start_ns)
            return row;
    }
    return NULL;
}

static struct ew_pft_string_row *make(struct ew_pft_strings *strings, uint32_t pid,
                                      uint64_t start_ns, uint32_t tid)
{
    if ((strings->count == strings->size || is_full(strings)) && !grow(strings))
        return NULL;
    struct ew_pft_string_row *row = &strings->rows[strings->count];
    *row = (struct ew_pft_string_row){.pid = pid, .start_ns = start_ns, .tid = tid};
    index_row(strings, strings->count++);
    return row;
}

/* Stores a new string, fills in a missing one. */
static void exchange(struct ew_pft_strings *strings, char **kept, const char **given)
{
    if (*given == NULL) {
        *given = *kept;
        return;
    }
    if (*kept != NULL && strcmp(*kept, *given) == 0)
        return;
    drop_text(strings, *kept);
    *kept = ew_strdup(*given);
    strings->bytes += *kept != NULL ? strlen(*kept) + 1 : 0;
}

void ew_pft_strings_complete(struct ew_pft_strings *strings, struct etwatch_sample *s)
{
    uint32_t tid = s->type == ETWATCH_TYPE_THREAD ? s->tid : 0;
    struct ew_pft_string_row *row = find(strings, s->pid, s->start_ns, tid);
    if (row == NULL)
        row = make(strings, s->pid, s->start_ns, tid);
    if (row == NULL)
        return;
    if (tid == 0) {
        exchange(strings, &row->text[0], &s->name);
    } else {
        const struct ew_pft_string_row *process = find(strings, s->pid, s->start_ns, 0);
        exchange(strings, &row->text[1], &s->thread_name);
        if (s->name == NULL && process != NULL)
            s->name = process->text[0];
    }
    exchange(strings, &row->text[2], &s->user);
    exchange(strings, &row->text[3], &s->cgroup);
    exchange(strings, &row->text[4], &s->cmdline);
    row->ended = s->type == ETWATCH_TYPE_EXIT;
}
