/* SPDX-License-Identifier: MIT */
/*
 * The processes. A process id belongs to one process at a time; processes that ended are kept for
 * the totals, in order of start, until the limit is reached. Then the oldest ended process is
 * merged into the rest.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sid.h"
#include "base/utf16.h"
#include "base/utf8.h"
#include "tally/internal.h"
#include "tally/program_name.h"

#define TWICE_NS UINT64_C(1000000000)
#define ROOM_STEPS 16
/* The last switch of a thread comes within this time after its end, or was lost. */
#define LAST_SWITCH_NS UINT64_C(2000000000)

/* A name in the kernel's 8-bit strings is mostly ASCII; bytes that are not UTF-8 become '?'. */
static size_t clean(const uint8_t *bytes, size_t len, char *buffer, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < len && bytes[i] != '\0';) {
        uint32_t code;
        size_t n = ew_utf8_decode((const char *)bytes + i, len - i, &code);
        if (used + n >= size)
            break;
        if (code == EW_UTF8_INVALID)
            buffer[used] = '?';
        else
            memcpy(buffer + used, bytes + i, n);
        used += n;
        i += n;
    }
    return used;
}

static const char *keep_scratch(struct ew_tally *tally, size_t from, size_t len)
{
    const char *kept = ew_tally_keep_text(&tally->texts, tally->scratch + from, len);
    if (tally->texts.failed) {
        tally->texts.failed = false;
        ew_tally_short_of_memory(tally);
    }
    return kept;
}

const char *ew_processes_text(struct ew_tally *tally, const struct ew_event_text *text,
                              bool base_name)
{
    char *buffer = tally->scratch;
    size_t len = text->wide ? ew_utf16_to_utf8(text->bytes, ew_utf16_len(text->bytes, text->len),
                                               buffer, sizeof tally->scratch)
                            : clean(text->bytes, text->len, buffer, sizeof tally->scratch);
    size_t from = 0;
    for (size_t i = 0; base_name && i < len; i++)
        if (buffer[i] == '\\')
            from = i + 1;
    return keep_scratch(tally, from, len - from);
}

/* The name in a process event, "" if it has none. */
static const char *name_in(struct ew_tally *tally, const struct ew_event *event)
{
    const struct ew_event_text *image = &event->u.process.image;
    if (image->len == 0)
        return "";
    size_t len = ew_program_name(image, &event->u.process.command_line, tally->scratch,
                                 sizeof tally->scratch);
    return len > 0 ? keep_scratch(tally, 0, len) : ew_processes_text(tally, image, true);
}

/* ---------------------------------------------------------------------- selecting */

static void report(struct ew_tally *tally, struct ew_tally_process *process,
                   enum ew_process_kind kind, uint64_t t_ns)
{
    if ((process->flags & (EW_TP_SELECTED | EW_TP_REPORTED)) != EW_TP_SELECTED ||
        tally->interval_ns == 0 || (process->flags & EW_TP_ENDED) != 0)
        return;
    ew_facts_process(tally, process, kind, t_ns);
}

static bool is_parent(const struct ew_tally_process *parent, const struct ew_tally_process *child)
{
    return parent != child && (child->flags & EW_TP_HAS_PPID) != 0 && child->ppid == parent->pid &&
           parent->start_ns <= child->start_ns;
}

static void unlink_sibling(struct ew_tally *tally, struct ew_tally_process *process)
{
    struct ew_tally_process *prev = process->sibling_prev, *next = process->sibling_next;
    if ((process->flags & EW_TP_SIBLING) == 0)
        return;
    process->flags &= ~(uint32_t)EW_TP_SIBLING;
    if (next != NULL)
        next->sibling_prev = prev;
    if (prev != NULL)
        prev->sibling_next = next;
    else if (next != NULL)
        (void)ew_tally_map_put(&tally->children, process->ppid, next); /* replaces: cannot fail */
    else
        ew_tally_map_remove(&tally->children, process->ppid);
}

/* Lists a process by its parent, so that a selected process finds its children. */
static void link_sibling(struct ew_tally *tally, struct ew_tally_process *process)
{
    if (tally->config.selected == NULL || (process->flags & EW_TP_SELECTED) != 0)
        return;
    struct ew_tally_process *first = ew_tally_map_get(&tally->children, process->ppid);
    if (ew_tally_map_put(&tally->children, process->ppid, process) < 0) {
        ew_tally_short_of_memory(tally);
        return;
    }
    process->flags |= EW_TP_SIBLING;
    process->sibling_prev = NULL;
    process->sibling_next = first;
    if (first != NULL)
        first->sibling_prev = process;
}

static bool is_selected(struct ew_tally *tally, const struct ew_tally_process *process)
{
    const struct ew_tally_config *config = &tally->config;
    if (config->selected == NULL ||
        config->selected(config->selected_ctx, process->pid, process->name))
        return true;
    if ((process->flags & EW_TP_HAS_PPID) == 0)
        return false;
    const struct ew_tally_process *parent = ew_processes_find(tally, process->ppid);
    return parent != NULL && (parent->flags & EW_TP_SELECTED) != 0 && is_parent(parent, process);
}

static int by_serial(const void *a, const void *b)
{
    const struct ew_tally_process *x = *(struct ew_tally_process *const *)a;
    const struct ew_tally_process *y = *(struct ew_tally_process *const *)b;
    return (x->serial > y->serial) - (x->serial < y->serial);
}

/* Selects the children of a process in the order in which they were found, and appends them to
 * the queue that ends with `last`. Returns its new end. */
static struct ew_tally_process *select_children(struct ew_tally *tally,
                                                const struct ew_tally_process *process,
                                                struct ew_tally_process *last, uint64_t t_ns)
{
    struct ew_tally_process *first = ew_tally_map_get(&tally->children, process->pid);
    uint32_t count = 0;
    for (struct ew_tally_process *p = first; p != NULL; p = p->sibling_next)
        count += is_parent(process, p);
    if (count == 0)
        return last;
    struct ew_tally_process **list = ew_calloc(count, sizeof(struct ew_tally_process *));
    if (list == NULL) {
        ew_tally_short_of_memory(tally);
        return last;
    }
    count = 0;
    for (struct ew_tally_process *p = first; p != NULL; p = p->sibling_next)
        if (is_parent(process, p))
            list[count++] = p;
    qsort(list, count, sizeof *list, by_serial);
    for (uint32_t i = 0; i < count; i++) {
        struct ew_tally_process *child = list[i];
        unlink_sibling(tally, child);
        child->flags |= EW_TP_SELECTED;
        report(tally, child, EW_PROCESS_SEEN, t_ns);
        child->select_next = NULL;
        last->select_next = child;
        last = child;
    }
    ew_free(list);
    return last;
}

/* A newly selected process also selects its descendants, which may have been seen before it. */
static void consider(struct ew_tally *tally, struct ew_tally_process *process,
                     enum ew_process_kind kind, uint64_t t_ns)
{
    if ((process->flags & EW_TP_SELECTED) != 0 || tally->learning || !is_selected(tally, process))
        return;
    unlink_sibling(tally, process);
    process->flags |= EW_TP_SELECTED;
    report(tally, process, kind, t_ns);
    if (tally->config.selected == NULL || kind == EW_PROCESS_START)
        return;
    process->select_next = NULL;
    struct ew_tally_process *last = process;
    for (; process != NULL; process = process->select_next)
        last = select_children(tally, process, last, t_ns);
}

/* ----------------------------------------------------------------------- making */

static void fold_into_rest(struct ew_tally *tally, struct ew_tally_process *process)
{
    if (process->own != NULL)
        ew_threads_end(tally, process->own, process->end_ns);
    ew_threads_drop_kept(tally, process);
    ew_totals_add(&tally->rest, &process->ended);
    tally->rest_processes++;
    tally->rest_threads += process->thread_count;
    if (process->older != NULL)
        process->older->newer = process->newer;
    else
        tally->first_process = process->newer;
    if (process->newer != NULL)
        process->newer->older = process->older;
    else
        tally->last_process = process->older;
    if (ew_processes_find(tally, process->pid) == process)
        ew_tally_map_remove(&tally->pids, process->pid);
    unlink_sibling(tally, process);
    process->serial = 0;
    ew_tally_pool_give(&tally->processes, process);
}

static void push_ended(struct ew_tally *tally, struct ew_tally_process *process)
{
    process->next_ended = NULL;
    if (tally->last_ended != NULL)
        tally->last_ended->next_ended = process;
    else
        tally->first_ended = process;
    tally->last_ended = process;
}

/* False: no ended process can be freed. A process must stay while the last switch of
 * a thread of it is still to come, and if it is to be read in this interval. */
static bool make_room(struct ew_tally *tally)
{
    if (tally->processes.used < tally->config.max_processes)
        return true;
    for (int i = 0; i < ROOM_STEPS && tally->first_ended != NULL; i++) {
        struct ew_tally_process *process = tally->first_ended;
        tally->first_ended = process->next_ended;
        if (tally->first_ended == NULL)
            tally->last_ended = NULL;
        if (process->live_threads > 0 && tally->now_ns - process->end_ns > LAST_SWITCH_NS)
            ew_threads_end_ending(tally, process, tally->now_ns);
        if (process->live_threads == 0 && process->epoch != tally->epoch) {
            fold_into_rest(tally, process);
            return true;
        }
        push_ended(tally, process);
    }
    return false;
}

static struct ew_tally_process *make(struct ew_tally *tally, uint32_t pid)
{
    if (!make_room(tally)) {
        tally->refused++;
        return NULL;
    }
    struct ew_tally_process *process = ew_tally_pool_take(&tally->processes);
    if (process == NULL || ew_tally_map_put(&tally->pids, pid, process) < 0) {
        if (process != NULL)
            ew_tally_pool_give(&tally->processes, process);
        ew_tally_short_of_memory(tally);
        return NULL;
    }
    process->pid = pid;
    process->serial = ++tally->next_serial;
    process->name = process->command_line = process->sid = "";
    process->losses = tally->losses;
    process->epoch = tally->epoch - 1;
    process->older = tally->last_process;
    if (tally->last_process != NULL)
        tally->last_process->newer = process;
    else
        tally->first_process = process;
    tally->last_process = process;
    return process;
}

struct ew_tally_process *ew_processes_get(struct ew_tally *tally, uint32_t pid, uint64_t t_ns)
{
    struct ew_tally_process *process = ew_processes_find(tally, pid);
    if (process != NULL && (process->flags & EW_TP_ENDED) == 0)
        return process;
    process = make(tally, pid);
    if (process != NULL)
        consider(tally, process, EW_PROCESS_SEEN, t_ns);
    return process;
}

/* ----------------------------------------------------------------------- events */

static void keep_sid(struct ew_tally *tally, struct ew_tally_process *process, const uint8_t *sid,
                     size_t size)
{
    char text[EW_SID_SIZE];
    size_t len = ew_sid_text(text, sid, size);
    process->sid = ew_tally_keep_text(&tally->texts, text, len);
    if (tally->texts.failed) {
        tally->texts.failed = false;
        ew_tally_short_of_memory(tally);
    }
}

static void fill(struct ew_tally *tally, struct ew_tally_process *process,
                 const struct ew_event *event)
{
    if (event->u.process.image.len > 0)
        process->name = name_in(tally, event);
    if (event->u.process.command_line.len > 0)
        process->command_line = ew_processes_text(tally, &event->u.process.command_line, false);
    if (event->u.process.parent_pid != EW_NO_ID) {
        unlink_sibling(tally, process);
        process->ppid = event->u.process.parent_pid;
        process->flags |= EW_TP_HAS_PPID;
        link_sibling(tally, process);
    }
    if (event->u.process.session_id != EW_NO_ID) {
        process->session_id = event->u.process.session_id;
        process->flags |= EW_TP_HAS_SESSION;
    }
    if (event->u.process.key != 0)
        process->key = event->u.process.key;
    if (event->u.process.sid != NULL && process->sid[0] == '\0')
        keep_sid(tally, process, event->u.process.sid, event->u.process.sid_size);
}

static bool is_ascii(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text >= 0x80 || *text == '?')
            return false;
    return true;
}

void ew_processes_rename(struct ew_tally *tally, struct ew_tally_process *process,
                         const struct ew_event_text *name)
{
    if (name->len == 0 || (process->name[0] != '\0' && is_ascii(process->name)))
        return;
    const char *better = ew_processes_text(tally, name, true);
    if (strcmp(better, process->name) == 0)
        return;
    process->name = better;
    if ((process->flags & EW_TP_REPORTED) != 0)
        ew_facts_process(tally, process, EW_PROCESS_RENAME, tally->now_ns);
}

static void end(struct ew_tally *tally, struct ew_tally_process *process, uint64_t t_ns)
{
    if (tally->losses > process->losses)
        process->flags |= EW_TP_INCOMPLETE;
    process->end_ns = t_ns;
    ew_graphics_charge(tally, t_ns);
    ew_threads_end_all(tally, process, t_ns);
    if ((process->flags & EW_TP_REPORTED) != 0)
        ew_facts_process(tally, process, EW_PROCESS_EXIT, t_ns);
    process->flags |= EW_TP_ENDED;
    push_ended(tally, process);
}

static void set_exit(struct ew_tally_process *process, const struct ew_event *event)
{
    process->exit_status = event->u.process.exit_status;
    process->flags |= EW_TP_HAS_EXIT;
}

/* The same text, or one of them unknown. */
static bool may_equal(const char *a, const char *b)
{
    return a[0] == '\0' || b[0] == '\0' || strcmp(a, b) == 0;
}

/* Whether this start is already known, from another provider or from the process's own events. */
static bool is_duplicate(struct ew_tally *tally, const struct ew_tally_process *process,
                         const struct ew_event *event)
{
    if (process == NULL || (process->flags & EW_TP_ENDED) != 0)
        return false;
    if ((process->flags & EW_TP_STARTED) == 0)
        return process->name[0] == '\0' && process->serial == tally->next_serial;
    if (event->t_ns - process->start_ns >= TWICE_NS)
        return false;
    const char *name = name_in(tally, event);
    bool parent = (process->flags & EW_TP_HAS_PPID) == 0 ||
                  event->u.process.parent_pid == EW_NO_ID ||
                  process->ppid == event->u.process.parent_pid;
    return parent && may_equal(process->name, name);
}

static void start(struct ew_tally *tally, const struct ew_event *event)
{
    struct ew_tally_process *process = ew_processes_find(tally, event->pid);
    bool twice = is_duplicate(tally, process, event);
    if (!twice) {
        if (process != NULL && (process->flags & EW_TP_ENDED) == 0)
            end(tally, process, event->t_ns); /* its end event is missing */
        process = make(tally, event->pid);
        if (process == NULL)
            return;
    }
    if ((process->flags & EW_TP_STARTED) == 0) {
        process->flags |= EW_TP_STARTED | EW_TP_ALL_THREADS;
        process->start_ns = event->t_ns;
    }
    bool named = process->name[0] != '\0';
    fill(tally, process, event);
    if ((process->flags & EW_TP_REPORTED) != 0 && !named)
        ew_facts_process(tally, process, EW_PROCESS_RENAME, event->t_ns);
    consider(tally, process, EW_PROCESS_START, event->t_ns);
}

static void seen(struct ew_tally *tally, const struct ew_event *event)
{
    struct ew_tally_process *process = ew_processes_find(tally, event->pid);
    uint64_t key = event->u.process.key;
    bool other = process != NULL && (process->flags & EW_TP_ENDED) == 0 && key != 0 &&
                 process->key != 0 && process->key != key;
    if (other)
        end(tally, process, event->t_ns);
    if (process == NULL || (process->flags & EW_TP_ENDED) != 0)
        process = make(tally, event->pid);
    if (process == NULL)
        return;
    bool named = process->name[0] != '\0';
    fill(tally, process, event);
    if ((process->flags & EW_TP_REPORTED) != 0 && !named)
        ew_facts_process(tally, process, EW_PROCESS_RENAME, event->t_ns);
    consider(tally, process, EW_PROCESS_SEEN, event->t_ns);
}

static void exited(struct ew_tally *tally, const struct ew_event *event)
{
    struct ew_tally_process *process = ew_processes_find(tally, event->pid);
    if (process == NULL || (process->flags & EW_TP_ENDED) != 0) {
        if (event->kind == EW_EVENT_PROCESS_DEFUNCT || process != NULL) {
            if (process != NULL && (process->flags & EW_TP_HAS_EXIT) == 0)
                set_exit(process, event);
            return; /* it ended before the recording started, or this is a duplicate */
        }
        process = make(tally, event->pid);
        if (process == NULL)
            return;
    }
    uint64_t key = event->u.process.key;
    if (event->kind == EW_EVENT_PROCESS_DEFUNCT && key != 0 && process->key != 0 &&
        key != process->key)
        return; /* belongs to the previous process with this id */
    fill(tally, process, event);
    consider(tally, process, EW_PROCESS_SEEN, event->t_ns);
    set_exit(process, event);
    end(tally, process, event->t_ns);
}

void ew_processes_event(struct ew_tally *tally, const struct ew_event *event)
{
    ew_tally_saw(tally, EW_TALLY_PROCESSES);
    if (event->pid == 0 || event->pid == EW_NO_ID)
        return; /* the idle process is not counted as a process */
    switch (event->kind) {
    case EW_EVENT_PROCESS_START:
        start(tally, event);
        break;
    case EW_EVENT_PROCESS_THERE:
    case EW_EVENT_PROCESS_STILL:
        seen(tally, event);
        break;
    default:
        exited(tally, event);
        break;
    }
}

/* ---------------------------------------------------------------------- learning */

void ew_processes_learn(struct ew_tally *tally, const struct ew_event *event, bool first)
{
    struct ew_tally_process *process = ew_processes_find(tally, event->pid);
    if (event->kind == EW_EVENT_PROCESS_START) {
        if (process != NULL)
            process->flags |= EW_TP_PID_REUSED;
        return;
    }
    if (first)
        process = make(tally, event->pid);
    if (process != NULL && (process->flags & EW_TP_PID_REUSED) == 0 && process->name[0] == '\0')
        fill(tally, process, event);
}

void ew_processes_learned(struct ew_tally *tally)
{
    uint64_t t_ns = tally->config.first_ns > tally->config.epoch_ns ? tally->config.first_ns
                                                                    : tally->config.epoch_ns;
    struct ew_tally_process *process = tally->first_process;
    for (; process != NULL; process = process->newer)
        consider(tally, process, EW_PROCESS_SEEN, t_ns);
}

void ew_processes_select(struct ew_tally *tally, uint32_t pid)
{
    struct ew_tally_process *process = ew_processes_find(tally, pid);
    if (process != NULL && (process->flags & EW_TP_ENDED) == 0)
        consider(tally, process, EW_PROCESS_SEEN, tally->now_ns);
}

void ew_processes_end_absent(struct ew_tally *tally,
                             bool (*is_there)(void *ctx, uint32_t pid, uint64_t start_ns),
                             void *ctx, uint64_t since_ns, uint64_t t_ns)
{
    struct ew_tally_process *process = tally->first_process;
    for (; process != NULL; process = process->newer)
        if ((process->flags & EW_TP_ENDED) == 0 && process->start_ns < since_ns &&
            !is_there(ctx, process->pid, process->start_ns))
            end(tally, process, t_ns);
}
