/* SPDX-License-Identifier: MIT */
/*
 * A ring of samples that outlive the ledger they came from. Names are copied into the slot. Users
 * and cgroups are few and may be long: the queue keeps each text once, up to a limit; beyond it
 * they are unknown. The command line is only the callback's: it is long and different for every
 * process.
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

/* Only says which strings there are; the pointers are set when the slot has its last place. */
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

/* Where a text of one take belongs among the recent ones. Texts that take turns fall into the same
 * places only now and then, which costs a copy. */
static const char **place_of(const char *recent[RECENT_NAMES], const char *text)
{
    uint32_t hash = 2166136261u;
    for (const char *c = text; *c != 0; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    return &recent[(hash >> 16 ^ hash) & (RECENT_NAMES - 1)];
}

/* Equal names of one take share an address: whoever copies them out does so once. */
static const char *hand_out(const char *recent[RECENT_NAMES], const char *name)
{
    const char **same = place_of(recent, name);
    if (*same == NULL || strcmp(*same, name) != 0)
        *same = name;
    return *same;
}

/* An empty queue begins anew, where the memory is still warm. */
static void drop_first(struct ew_queue *queue, size_t count)
{
    queue->count -= count;
    queue->first = queue->count == 0 ? 0 : (queue->first + count) % queue->size;
}

int ew_queue_take(struct ew_queue *queue, struct etwatch_sample *ret_samples, size_t max)
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
            out->sample.name = hand_out(recent, out->name);
        if (out->sample.thread_name != NULL)
            out->sample.thread_name = hand_out(recent, out->thread_name);
        ret_samples[i] = out->sample;
    }
    drop_first(queue, count);
    return (int)count;
}

/* ------------------------------------------------------------- with their strings */

struct texts {
    char *memory;
    size_t size, used;
    const char *recent[RECENT_NAMES];
};

/* False: it finds no room. */
static bool copy_text(struct texts *texts, const char **text)
{
    if (*text == NULL)
        return true;
    const char **same = place_of(texts->recent, *text);
    if (*same == NULL || strcmp(*same, *text) != 0) {
        size_t size = strlen(*text) + 1;
        if (size > texts->size - texts->used)
            return false;
        *same = memcpy(texts->memory + texts->used, *text, size);
        texts->used += size;
    }
    *text = *same;
    return true;
}

static bool copy_texts(struct texts *texts, struct etwatch_sample *sample)
{
    return copy_text(texts, &sample->name) && copy_text(texts, &sample->thread_name) &&
           copy_text(texts, &sample->user) && copy_text(texts, &sample->cgroup);
}

int ew_queue_copy(struct ew_queue *queue, struct etwatch_sample *ret_samples, size_t max,
                  char *ret_texts, size_t texts_size, size_t *ret_texts_used)
{
    struct texts texts = {.memory = ret_texts, .size = texts_size};
    size_t wanted = queue->count < max ? queue->count : max, count = 0;
    for (; count < wanted; count++) {
        const struct ew_queue_slot *slot = &queue->slots[(queue->first + count) % queue->size];
        struct etwatch_sample *out = &ret_samples[count];
        *out = slot->sample;
        if (out->name != NULL)
            out->name = slot->name;
        if (out->thread_name != NULL)
            out->thread_name = slot->thread_name;
        if (copy_texts(&texts, out))
            continue;
        if (count > 0)
            break;
        out->name = out->thread_name = out->user = out->cgroup = NULL;
    }
    drop_first(queue, count);
    *ret_texts_used = texts.used;
    return (int)count;
}
