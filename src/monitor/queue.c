/* SPDX-License-Identifier: MIT */
/*
 * A ring of samples that outlive the ledger they came from. Names are copied into the slot. Users
 * and cgroups are few and may be long: the queue keeps each text once, up to a limit; beyond it
 * they are unknown. Command lines are not kept: they are long and different for every process.
 *
 * A slot has its strings behind the sample, so the slots of a read are a batch as they are, with
 * the size of a slot as the stride.
 */
#include "monitor/monitor.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"

enum { TEXTS_MAX = 1024, RECENT_NAMES = 256 };

int ew_queue_init(struct ew_queue *queue, size_t size)
{
    memset(queue, 0, sizeof *queue);
    queue->slots = ew_calloc(size, sizeof *queue->slots);
    if (queue->slots == NULL)
        return ETWATCH_ENOMEM;
    queue->size = size;
    return 0;
}

void ew_queue_done(struct ew_queue *queue)
{
    for (size_t i = 0; i < queue->text_count; i++)
        ew_free(queue->texts[i]);
    ew_free(queue->texts);
    ew_free(queue->slots);
    ew_free(queue->handed_out);
    memset(queue, 0, sizeof *queue);
}

static const char *keep(char buffer[EW_QUEUE_NAME_SIZE], const char *text)
{
    if (text == NULL)
        return NULL;
    size_t length = strlen(text);
    length = length < EW_QUEUE_NAME_SIZE ? length : EW_QUEUE_NAME_SIZE - 1;
    memcpy(buffer, text, length);
    buffer[length] = '\0';
    return buffer;
}

static bool grow_texts(struct ew_queue *queue)
{
    size_t size = queue->text_size == 0 ? 16 : queue->text_size * 2;
    char **texts = ew_realloc_array(queue->texts, size, sizeof *texts);
    if (texts == NULL)
        return false;
    queue->texts = texts;
    queue->text_size = size;
    return true;
}

/* The queue's own copy of a text that many samples share, or NULL. */
static const char *share(struct ew_queue *queue, const char *text)
{
    size_t at = 0;
    if (text == NULL)
        return NULL;
    while (at < queue->text_count && strcmp(queue->texts[at], text) != 0)
        at++;
    char *own = at < queue->text_count ? queue->texts[at] : NULL;
    if (own == NULL) {
        if (at == TEXTS_MAX || (at == queue->text_size && !grow_texts(queue)))
            return NULL;
        own = ew_strdup(text);
        if (own == NULL)
            return NULL;
        queue->text_count++;
    }
    memmove(queue->texts + 1, queue->texts, at * sizeof *queue->texts);
    queue->texts[0] = own;
    return own;
}

/* Only marks which strings exist; the pointers are set when the slot is read. */
void ew_queue_put(struct ew_queue *queue, const struct etwatch_sample *sample)
{
    if (queue->size == 0)
        return;
    if (queue->count == queue->size) {
        queue->first = (queue->first + 1) % queue->size;
        queue->count--;
        queue->dropped++;
    }
    struct ew_queue_slot *slot = &queue->slots[(queue->first + queue->count) % queue->size];
    slot->sample = *sample;
    slot->sample.name = keep(slot->name, sample->name);
    slot->sample.thread_name = keep(slot->thread_name, sample->thread_name);
    slot->sample.user = share(queue, sample->user);
    slot->sample.cgroup = share(queue, sample->cgroup);
    slot->sample.cmdline = NULL;
    queue->count++;
}

/* The place of a text among the recent texts of one read. Two texts that alternate and share a
 * place cost a copy each time, which is rare. */
static const char **place_of(const char *recent[RECENT_NAMES], const char *text)
{
    uint32_t hash = 2166136261u;
    for (const char *c = text; *c != 0; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    return &recent[(hash >> 16 ^ hash) & (RECENT_NAMES - 1)];
}

/* Equal names of one read share an address: a caller that copies them needs to do so once. */
static const char *share_name(const char *recent[RECENT_NAMES], const char *name)
{
    const char **same = place_of(recent, name);
    if (*same == NULL || strcmp(*same, name) != 0)
        *same = name;
    return *same;
}

/* An empty queue restarts at its first slot, where the memory is still in the cache. */
static void drop_first(struct ew_queue *queue, size_t count)
{
    queue->count -= count;
    queue->first = queue->count == 0 ? 0 : (queue->first + count) % queue->size;
}

int ew_queue_take(struct ew_queue *queue, size_t max, struct ew_items *ret_items)
{
    const char *recent[RECENT_NAMES] = {NULL};
    size_t count = queue->count < max ? queue->count : max;
    if (count > queue->handed_out_size) {
        struct ew_queue_slot *bigger = ew_realloc_array(queue->handed_out, count, sizeof *bigger);
        if (bigger == NULL)
            return ETWATCH_ENOMEM;
        queue->handed_out = bigger;
        queue->handed_out_size = count;
    }
    for (size_t i = 0; i < count; i++) {
        struct ew_queue_slot *out = &queue->handed_out[i];
        *out = queue->slots[(queue->first + i) % queue->size];
        if (out->sample.name != NULL)
            out->sample.name = share_name(recent, out->name);
        if (out->sample.thread_name != NULL)
            out->sample.thread_name = share_name(recent, out->thread_name);
    }
    drop_first(queue, count);
    *ret_items = (struct ew_items){
        .size = sizeof *ret_items,
        .stride = sizeof(struct ew_queue_slot),
        .count = count,
        .items = queue->handed_out,
    };
    return (int)count;
}

/* ------------------------------------------------------- into memory of the caller */

/* Rows grow from the beginning of the buffer, strings from its end. */
struct copy {
    char *rows_end; /* of the rows so far */
    char *texts;    /* the first of the strings so far */
    const char *recent[RECENT_NAMES];
};

/* False: there is no room for it. */
static bool copy_text(struct copy *copy, const char **text)
{
    if (*text == NULL)
        return true;
    const char **same = place_of(copy->recent, *text);
    if (*same == NULL || strcmp(*same, *text) != 0) {
        size_t size = strlen(*text) + 1;
        if (size > (size_t)(copy->texts - copy->rows_end))
            return false;
        copy->texts -= size;
        *same = memcpy(copy->texts, *text, size);
    }
    *text = *same;
    return true;
}

static bool copy_texts(struct copy *copy, struct etwatch_sample *sample)
{
    return copy_text(copy, &sample->name) && copy_text(copy, &sample->thread_name) &&
           copy_text(copy, &sample->user) && copy_text(copy, &sample->cgroup);
}

static void move_text(const char **text, ptrdiff_t by)
{
    if (*text != NULL)
        *text += by;
}

/* Closes the gap between the rows and their strings. */
static void join(struct copy *copy, struct etwatch_sample *rows, size_t count, char *end)
{
    const ptrdiff_t by = copy->rows_end - copy->texts;
    memmove(copy->rows_end, copy->texts, (size_t)(end - copy->texts));
    for (size_t i = 0; i < count; i++) {
        move_text(&rows[i].name, by);
        move_text(&rows[i].thread_name, by);
        move_text(&rows[i].user, by);
        move_text(&rows[i].cgroup, by);
    }
}

int ew_queue_copy(struct ew_queue *queue, void *buffer, size_t buffer_size, size_t max,
                  struct ew_items *ret_items, size_t *ret_used)
{
    struct etwatch_sample *rows = buffer;
    char *const end = (char *)buffer + buffer_size;
    struct copy copy = {.rows_end = buffer, .texts = end};
    size_t limit = queue->count < max ? queue->count : max, count = 0;
    for (; count < limit; count++) {
        const struct ew_queue_slot *slot = &queue->slots[(queue->first + count) % queue->size];
        struct etwatch_sample sample = slot->sample;
        if ((size_t)(copy.texts - copy.rows_end) < sizeof sample)
            break;
        copy.rows_end += sizeof sample;
        if (sample.name != NULL)
            sample.name = slot->name;
        if (sample.thread_name != NULL)
            sample.thread_name = slot->thread_name;
        if (!copy_texts(&copy, &sample)) {
            if (count > 0) {
                copy.rows_end -= sizeof sample;
                break;
            }
            sample.name = sample.thread_name = sample.user = sample.cgroup = NULL;
        }
        rows[count] = sample;
    }
    join(&copy, rows, count, end);
    drop_first(queue, count);
    *ret_items = (struct ew_items){
        .size = sizeof *ret_items, .stride = sizeof *rows, .count = count, .items = rows};
    *ret_used = count * sizeof *rows + (size_t)(end - copy.texts);
    return (int)count;
}
