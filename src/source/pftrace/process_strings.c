/* SPDX-License-Identifier: MIT */
/*
 * Owns the words of processes and threads while they live. The writer tells a name once and again
 * when it changes; here the others get it back. When the table is full those that have ended go;
 * with more alive than it has room for, all are forgotten, as the writer does: it then tells all
 * words again.
 */
#include "source/pftrace/pftrace.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"

enum { WORDS = 5 };

struct ew_pft_string_row {
    uint32_t pid, tid;
    uint64_t start_ns;
    bool ended;
    char *words[WORDS]; /* name, thread_name, user, cgroup, cmdline */
};

static uint32_t hash(uint32_t pid, uint64_t start_ns, uint32_t tid)
{
    uint64_t h = (start_ns ^ (uint64_t)pid << 32 ^ tid) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(h >> 32);
}

void ew_pft_strings_done(struct ew_pft_strings *lives)
{
    for (uint32_t i = 0; i < lives->count; i++)
        for (uint32_t word = 0; word < WORDS; word++)
            ew_free(lives->lives[i].words[word]);
    ew_free(lives->lives);
    ew_free(lives->index);
    *lives = (struct ew_pft_strings){0};
}

static void index_life(struct ew_pft_strings *lives, uint32_t i)
{
    const struct ew_pft_string_row *life = &lives->lives[i];
    uint32_t at = hash(life->pid, life->start_ns, life->tid) & lives->index_mask;
    while (lives->index[at] != 0)
        at = (at + 1) & lives->index_mask;
    lives->index[at] = i + 1;
}

static struct ew_pft_string_row *find(struct ew_pft_strings *lives, uint32_t pid, uint64_t start_ns,
                                      uint32_t tid);

/* Those that have ended make room. Those of a process that has go with it. */
static void compact(struct ew_pft_strings *lives)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < lives->count; i++) {
        struct ew_pft_string_row *life = &lives->lives[i];
        const struct ew_pft_string_row *process = find(lives, life->pid, life->start_ns, 0);
        life->ended = life->ended || process == NULL || process->ended;
    }
    for (uint32_t i = 0; i < lives->count; i++) {
        struct ew_pft_string_row life = lives->lives[i];
        for (uint32_t word = 0; word < WORDS && life.ended; word++)
            ew_free(life.words[word]);
        if (!life.ended)
            lives->lives[kept++] = life;
    }
    lives->count = kept;
    memset(lives->index, 0, ((size_t)lives->index_mask + 1) * sizeof *lives->index);
    for (uint32_t i = 0; i < kept; i++)
        index_life(lives, i);
}

static bool grow(struct ew_pft_strings *lives)
{
    if (lives->count == EW_PFT_STRINGS_MAX) {
        compact(lives);
        if (lives->count > EW_PFT_STRINGS_MAX / 2)
            ew_pft_strings_done(lives);
        if (lives->size != 0)
            return true;
    }
    uint32_t size = lives->size == 0 ? 64 : lives->size * 2;
    struct ew_pft_string_row *larger = ew_realloc_array(lives->lives, size, sizeof *larger);
    if (larger == NULL)
        return false;
    lives->lives = larger;
    uint32_t *index = ew_calloc((size_t)size * 2, sizeof *index);
    if (index == NULL)
        return false;
    ew_free(lives->index);
    lives->index = index;
    lives->index_mask = size * 2 - 1;
    lives->size = size;
    for (uint32_t i = 0; i < lives->count; i++)
        index_life(lives, i);
    return true;
}

static struct ew_pft_string_row *find(struct ew_pft_strings *lives, uint32_t pid, uint64_t start_ns,
                                      uint32_t tid)
{
    if (lives->size == 0)
        return NULL;
    uint32_t at = hash(pid, start_ns, tid) & lives->index_mask;
    for (; lives->index[at] != 0; at = (at + 1) & lives->index_mask) {
        struct ew_pft_string_row *life = &lives->lives[lives->index[at] - 1];
        if (life->pid == pid && life->tid == tid && life->start_ns == start_ns)
            return life;
    }
    return NULL;
}

static struct ew_pft_string_row *make(struct ew_pft_strings *lives, uint32_t pid, uint64_t start_ns,
                                      uint32_t tid)
{
    if (lives->count == lives->size && !grow(lives))
        return NULL;
    struct ew_pft_string_row *life = &lives->lives[lives->count];
    *life = (struct ew_pft_string_row){.pid = pid, .start_ns = start_ns, .tid = tid};
    index_life(lives, lives->count++);
    return life;
}

/* Keeps what is new, gives what is missing. */
static void exchange(char **kept, const char **told)
{
    if (*told == NULL) {
        *told = *kept;
        return;
    }
    if (*kept != NULL && strcmp(*kept, *told) == 0)
        return;
    ew_free(*kept);
    *kept = ew_strdup(*told);
}

void ew_pft_strings_complete(struct ew_pft_strings *lives, struct etwatch_sample *s)
{
    uint32_t tid = s->type == ETWATCH_TYPE_THREAD ? s->tid : 0;
    struct ew_pft_string_row *life = find(lives, s->pid, s->start_ns, tid);
    if (life == NULL)
        life = make(lives, s->pid, s->start_ns, tid);
    if (life == NULL)
        return;
    if (tid == 0) {
        exchange(&life->words[0], &s->name);
    } else {
        const struct ew_pft_string_row *process = find(lives, s->pid, s->start_ns, 0);
        exchange(&life->words[1], &s->thread_name);
        if (s->name == NULL && process != NULL)
            s->name = process->words[0];
    }
    exchange(&life->words[2], &s->user);
    exchange(&life->words[3], &s->cgroup);
    exchange(&life->words[4], &s->cmdline);
    life->ended = s->type == ETWATCH_TYPE_EXIT;
}
