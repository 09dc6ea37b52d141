/* SPDX-License-Identifier: MIT */
/*
 * Owns two tables of lifetimes, by process id and by thread id. The lifetimes of one id form a
 * list, newest first, and ids are found by hashing; both only grow, up to a fixed maximum.
 *
 * A lifetime extends to the start of the next one with the same id, not to its end event: events of
 * a process still arrive during its teardown.
 */
#include "recording/trace.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/utf16.h"
#include "base/utf8.h"
#include "model/record.h"
#include "tally/program_name.h"

enum { LIFETIMES_MAX = 1 << 19, TEXT_MAX = 8 << 20, FIRST_SIZE = 256, NAME_MAX = 260 };

void ew_recording_history_init(struct ew_process_history *history)
{
    memset(history, 0, sizeof *history);
}

static void done_table(struct ew_process_history_table *table)
{
    ew_free(table->lifetimes);
    ew_free(table->newest);
}

void ew_recording_history_done(struct ew_process_history *history)
{
    done_table(&history->processes);
    done_table(&history->threads);
    ew_free(history->text);
    memset(history, 0, sizeof *history);
}

/* --------------------------------------------------------------------- text */

/* An unknown 8-bit code page: valid UTF-8 is kept, other bytes are converted as Latin-1. */
static size_t ansi_copy(const uint8_t *bytes, size_t len, char *buffer, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < len && bytes[i] != 0;) {
        uint32_t code;
        size_t taken = ew_utf8_decode((const char *)bytes + i, len - i, &code);
        size_t needed = code == EW_UTF8_INVALID ? 2 : taken;
        if (used + needed >= size)
            break;
        if (code == EW_UTF8_INVALID) {
            buffer[used] = (char)(0xC0 | bytes[i] >> 6);
            buffer[used + 1] = (char)(0x80 | (bytes[i] & 0x3F));
        } else {
            memcpy(buffer + used, bytes + i, taken);
        }
        used += needed;
        i += taken;
    }
    buffer[used] = '\0';
    return used;
}

size_t ew_recording_event_text_copy(const struct ew_event_text *text, char *buffer, size_t size)
{
    size_t len = text->wide ? ew_utf16_to_utf8(text->bytes, ew_utf16_len(text->bytes, text->len),
                                               buffer, size)
                            : ansi_copy(text->bytes, text->len, buffer, size);
    for (size_t i = len; i > 0; i--) {
        if (buffer[i - 1] == '\\' && i < len) {
            memmove(buffer, buffer + i, len - i + 1);
            return len - i;
        }
    }
    return len;
}

/* ------------------------------------------------------------------- tables */

static uint32_t hash(uint32_t id)
{
    return (uint32_t)(ew_hash_mix(ew_hash_seed(), id) >> 40);
}

/* The slot of an id in `newest`, or the free one for it. */
static uint32_t slot_of(const struct ew_process_history_table *table, uint32_t id)
{
    uint32_t at = hash(id) & table->mask;
    while (table->newest[at] != 0 && table->lifetimes[table->newest[at] - 1].id != id)
        at = (at + 1) & table->mask;
    return at;
}

static struct ew_lifetime *newest_of(const struct ew_process_history_table *table, uint32_t id)
{
    if (table->newest == NULL)
        return NULL;
    uint32_t lifetime = table->newest[slot_of(table, id)];
    return lifetime == 0 ? NULL : &table->lifetimes[lifetime - 1];
}

static bool grow_index(struct ew_process_history_table *table)
{
    uint32_t size = table->newest == NULL ? FIRST_SIZE : (table->mask + 1) * 2;
    uint32_t *newest = ew_calloc(size, sizeof *newest);
    if (newest == NULL)
        return false;
    uint32_t *old = table->newest;
    uint32_t old_size = old == NULL ? 0 : table->mask + 1;
    table->newest = newest;
    table->mask = size - 1;
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i] != 0)
            newest[slot_of(table, table->lifetimes[old[i] - 1].id)] = old[i];
    ew_free(old);
    return true;
}

/* The jump of the lifetime that follows `older` (Myers' skew-binary list): from any lifetime, jumps
 * and single steps reach every older one in a logarithmic number of moves. */
static uint32_t jump_of(const struct ew_process_history_table *table, uint32_t older)
{
    if (older == 0)
        return 0;
    const struct ew_lifetime *first = &table->lifetimes[older - 1];
    if (first->jump == 0)
        return older;
    const struct ew_lifetime *second = &table->lifetimes[first->jump - 1];
    uint32_t second_end = second->jump == 0 ? 0 : table->lifetimes[second->jump - 1].depth;
    bool equal = second->jump != 0 && first->depth - second->depth == second->depth - second_end;
    return equal ? second->jump : older;
}

static struct ew_lifetime *add(struct ew_process_history_table *table, uint32_t id,
                               uint64_t from_ns)
{
    if (table->count == LIFETIMES_MAX)
        return NULL;
    if (table->count == table->size) {
        uint32_t size = table->size == 0 ? FIRST_SIZE : table->size * 2;
        struct ew_lifetime *lifetimes = ew_realloc_array(table->lifetimes, size, sizeof *lifetimes);
        if (lifetimes == NULL)
            return NULL;
        table->lifetimes = lifetimes;
        table->size = size;
    }
    if (table->newest == NULL || (table->used + 1) * 2 > table->mask) {
        if (!grow_index(table))
            return NULL;
    }
    uint32_t slot = slot_of(table, id);
    uint32_t older = table->newest[slot];
    table->used += older == 0;
    struct ew_lifetime *lifetime = &table->lifetimes[table->count];
    *lifetime = (struct ew_lifetime){
        .from_ns = from_ns,
        .to_ns = UINT64_MAX,
        .id = id,
        .older = older,
        .jump = jump_of(table, older),
        .depth = older == 0 ? 0 : table->lifetimes[older - 1].depth + 1,
        .pid = EW_NO_ID,
    };
    table->newest[slot] = ++table->count;
    return lifetime;
}

static const struct ew_lifetime *find(const struct ew_process_history_table *table, uint32_t id,
                                      uint64_t t_ns)
{
    const struct ew_lifetime *lifetime = newest_of(table, id);
    while (lifetime != NULL && lifetime->from_ns > t_ns) {
        uint32_t next = lifetime->older;
        if (lifetime->jump != 0 && table->lifetimes[lifetime->jump - 1].from_ns > t_ns)
            next = lifetime->jump;
        lifetime = next == 0 ? NULL : &table->lifetimes[next - 1];
    }
    return lifetime;
}

/* ----------------------------------------------------------------- learning */

enum phase { STARTS, EXISTS, ENDS };

/* The lifetime that an event belongs to. Without a start event it began before the recording, or
 * when the previous lifetime of the id ended. */
static struct ew_lifetime *lifetime_of_event(struct ew_process_history *history,
                                             struct ew_process_history_table *table, uint32_t id,
                                             enum phase phase, uint64_t t_ns)
{
    struct ew_lifetime *lifetime = newest_of(table, id);
    bool ended = lifetime != NULL && lifetime->to_ns != UINT64_MAX;
    if (lifetime == NULL || ended || phase == STARTS) {
        uint64_t from_ns = phase == STARTS ? t_ns : lifetime == NULL ? 0 : lifetime->to_ns;
        lifetime = add(table, id, from_ns);
        history->refused += lifetime == NULL;
    }
    if (lifetime != NULL && phase == ENDS)
        lifetime->to_ns = t_ns;
    return lifetime;
}

static uint32_t keep_text(struct ew_process_history *history, const char *name, size_t len)
{
    if (history->text_len + len + 1 > history->text_size) {
        uint32_t size = history->text_size == 0 ? 4096 : history->text_size * 2;
        char *grown = size > TEXT_MAX ? NULL : ew_realloc_array(history->text, size, 1);
        if (grown == NULL)
            return 0;
        history->text = grown;
        history->text_size = size;
    }
    uint32_t at = history->text_len;
    memcpy(history->text + at, name, len + 1);
    history->text_len += (uint32_t)len + 1;
    return at + 1;
}

static uint32_t keep_name(struct ew_process_history *history, const struct ew_event *event)
{
    char name[NAME_MAX];
    const struct ew_event_text *text = &event->u.process.image;
    size_t len = ew_program_name(text, &event->u.process.command_line, name, sizeof name);
    if (len == 0 && text->len > 0)
        len = ew_recording_event_text_copy(text, name, sizeof name);
    return len == 0 ? 0 : keep_text(history, name, len);
}

static void learn_process(struct ew_process_history *history, const struct ew_event *event,
                          enum phase phase)
{
    if (event->pid == EW_NO_ID)
        return;
    struct ew_lifetime *lifetime =
        lifetime_of_event(history, &history->processes, event->pid, phase, event->t_ns);
    if (lifetime == NULL)
        return;
    if (lifetime->name == 0)
        lifetime->name = keep_name(history, event);
    if (event->u.process.parent_pid != EW_NO_ID)
        lifetime->pid = event->u.process.parent_pid;
}

static void learn_thread(struct ew_process_history *history, const struct ew_event *event,
                         enum phase phase)
{
    if (event->tid == UINT32_MAX || event->pid == EW_NO_ID)
        return;
    struct ew_lifetime *lifetime =
        lifetime_of_event(history, &history->threads, event->tid, phase, event->t_ns);
    if (lifetime != NULL)
        lifetime->pid = event->pid;
}

void ew_recording_history_learn(struct ew_process_history *history, const struct ew_event *event)
{
    switch (event->kind) {
    case EW_EVENT_PROCESS_START:
        learn_process(history, event, STARTS);
        break;
    case EW_EVENT_PROCESS_THERE:
    case EW_EVENT_PROCESS_STILL:
        learn_process(history, event, EXISTS);
        break;
    case EW_EVENT_PROCESS_END:
        learn_process(history, event, ENDS);
        break;
    case EW_EVENT_THREAD_START:
        learn_thread(history, event, STARTS);
        break;
    case EW_EVENT_THREAD_THERE:
    case EW_EVENT_THREAD_STILL:
        learn_thread(history, event, EXISTS);
        break;
    case EW_EVENT_THREAD_END:
        learn_thread(history, event, ENDS);
        break;
    default:
        break;
    }
}

/* ----------------------------------------------------------------- trimming */

static bool copy_open(struct ew_process_history *to, struct ew_process_history_table *table,
                      const struct ew_process_history *from,
                      const struct ew_process_history_table *old)
{
    for (uint32_t i = 0; i < old->count; i++) {
        const struct ew_lifetime *lifetime = &old->lifetimes[i];
        if (lifetime->to_ns != UINT64_MAX || newest_of(old, lifetime->id) != lifetime)
            continue;
        struct ew_lifetime *copy = add(table, lifetime->id, lifetime->from_ns);
        if (copy == NULL)
            return false;
        copy->pid = lifetime->pid;
        const char *name = lifetime->name == 0 ? NULL : from->text + lifetime->name - 1;
        copy->name = name == NULL ? 0 : keep_text(to, name, strlen(name));
    }
    return true;
}

void ew_recording_history_trim(struct ew_process_history *history)
{
    struct ew_process_history kept;
    if (history->processes.count < LIFETIMES_MAX / 2 &&
        history->threads.count < LIFETIMES_MAX / 2 && history->text_len < TEXT_MAX / 2)
        return;
    ew_recording_history_init(&kept);
    if (!copy_open(&kept, &kept.processes, history, &history->processes) ||
        !copy_open(&kept, &kept.threads, history, &history->threads)) {
        ew_recording_history_done(&kept);
        return;
    }
    kept.refused = history->refused;
    ew_recording_history_done(history);
    *history = kept;
}

/* ------------------------------------------------------------------ queries */

uint32_t ew_recording_history_find(const struct ew_process_history *history, uint32_t pid,
                                   uint64_t t_ns)
{
    const struct ew_lifetime *lifetime = find(&history->processes, pid, t_ns);
    return lifetime == NULL ? UINT32_MAX : (uint32_t)(lifetime - history->processes.lifetimes);
}

const char *ew_recording_history_name(const struct ew_process_history *history, uint32_t pid,
                                      uint64_t t_ns)
{
    const struct ew_lifetime *lifetime = find(&history->processes, pid, t_ns);
    return lifetime == NULL || lifetime->name == 0 ? NULL : history->text + lifetime->name - 1;
}

bool ew_recording_history_process_of(const struct ew_process_history *history, uint32_t tid,
                                     uint64_t t_ns, uint32_t *ret_pid)
{
    const struct ew_lifetime *lifetime = find(&history->threads, tid, t_ns);
    if (lifetime == NULL)
        return false;
    *ret_pid = lifetime->pid;
    return true;
}

static const char *name_of(const struct ew_process_history *history,
                           const struct ew_lifetime *lifetime)
{
    return lifetime->name == 0 ? NULL : history->text + lifetime->name - 1;
}

/* Follows the parents of a process up to one with a known selection, and applies that to all on
 * the way, so every process is visited once. Parents may form a circle: it ends where it meets
 * itself. A rundown may list a child before its parent, so the table must be complete. */
static void inherit(struct ew_process_history_table *table, uint32_t *path, uint8_t *state,
                    uint32_t first)
{
    enum { UNKNOWN, ON_PATH, KNOWN };
    uint32_t count = 0, at = first;
    bool selected = false;
    for (;;) {
        const struct ew_lifetime *lifetime = &table->lifetimes[at];
        selected = lifetime->selected;
        if (selected || state[at] != UNKNOWN)
            break;
        state[at] = ON_PATH;
        path[count++] = at;
        if (lifetime->pid == EW_NO_ID || lifetime->pid == lifetime->id)
            break;
        const struct ew_lifetime *parent = find(table, lifetime->pid, lifetime->from_ns);
        if (parent == NULL)
            break;
        at = (uint32_t)(parent - table->lifetimes);
    }
    for (uint32_t i = 0; i < count; i++) {
        table->lifetimes[path[i]].selected = selected;
        state[path[i]] = KNOWN;
    }
}

static int inherit_all(struct ew_process_history_table *table)
{
    uint32_t *path = ew_calloc((size_t)table->count + 1, sizeof *path);
    uint8_t *state = ew_calloc((size_t)table->count + 1, sizeof *state);
    bool fits = path != NULL && state != NULL;
    for (uint32_t i = 0; fits && i < table->count; i++)
        inherit(table, path, state, i);
    ew_free(path);
    ew_free(state);
    return fits ? 0 : ETWATCH_ENOMEM;
}

int ew_recording_history_select(struct ew_process_history *history,
                                const struct ew_selection *selection)
{
    struct ew_process_history_table *table = &history->processes;
    for (uint32_t i = 0; i < table->count; i++)
        table->lifetimes[i].selected =
            ew_selection_includes_all(selection) ||
            ew_selection_includes(selection, table->lifetimes[i].id,
                                  name_of(history, &table->lifetimes[i]));
    int rc = inherit_all(table);
    for (uint32_t i = 0; i < table->count; i++) {
        struct ew_lifetime *lifetime = &table->lifetimes[i];
        lifetime->selected =
            lifetime->selected &&
            !ew_selection_excludes(selection, lifetime->id, name_of(history, lifetime));
    }
    return rc;
}

bool ew_recording_history_selected(const struct ew_process_history *history,
                                   const struct ew_selection *selection, uint32_t pid,
                                   uint64_t t_ns)
{
    const struct ew_lifetime *lifetime = find(&history->processes, pid, t_ns);
    return lifetime != NULL ? lifetime->selected : ew_selection_matches(selection, pid, NULL);
}
