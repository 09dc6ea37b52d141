/* SPDX-License-Identifier: MIT */
/*
 * Owns the history of threads and CPUs. Every event ends one entry of a thread and begins another,
 * so entries have only a start. Threads of processes that are not watched have a name and no
 * entries: they appear only as what a CPU ran, or as wakers.
 */
#include "span/history.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* Bits of the Linux task state. */
enum { LINUX_DEAD = 0x80 | 0x10 | 0x20 };

/* A wake-up may overtake the switch of the thread that goes to sleep by about this much. */
static const uint64_t early_max_ns = 200000;

void ew_spans_history_init(struct ew_spans_history *history, uint64_t history_ns,
                           uint64_t max_entries)
{
    memset(history, 0, sizeof *history);
    ew_pool_init(&history->threads, sizeof(struct ew_spans_thread));
    ew_pool_init(&history->processes, sizeof(struct ew_spans_process));
    ew_index_init(&history->by_tid);
    ew_index_init(&history->by_pid);
    history->history_ns = history_ns;
    history->max_entries = max_entries;
}

void ew_spans_history_done(struct ew_spans_history *history)
{
    for (uint32_t i = 1; i <= history->threads.used; i++) {
        struct ew_spans_thread *thread = ew_pool_at(&history->threads, i);
        ew_free(thread->parts.items);
        ew_free(thread->faults.items);
    }
    for (uint32_t i = 0; i < EW_SPANS_CPUS_MAX; i++)
        ew_free(history->cpus[i].items);
    ew_pool_done(&history->threads);
    ew_pool_done(&history->processes);
    ew_index_done(&history->by_tid);
    ew_index_done(&history->by_pid);
}

/* ------------------------------------------------------------------------- lists */

/* Room for one more entry at the end; NULL: none, which is counted. */
static void *append(struct ew_spans_history *history, struct ew_spans_list *list, size_t item_size)
{
    if (list->first + list->count == list->size) {
        uint32_t size = list->size == 0 ? 32 : list->size * 2;
        if (list->first > list->size / 2) {
            memmove(list->items, (char *)list->items + list->first * item_size,
                    list->count * item_size);
            list->first = 0;
        } else {
            void *items = history->entries >= history->max_entries
                              ? NULL
                              : ew_realloc_array(list->items, size, item_size);
            if (items == NULL) {
                history->dropped++;
                return NULL;
            }
            list->items = items;
            list->size = size;
        }
    }
    history->entries++;
    return (char *)list->items + (list->first + list->count++) * item_size;
}

static uint64_t from_of(const struct ew_spans_list *list, size_t item_size, uint32_t i)
{
    uint64_t from_ns;
    memcpy(&from_ns, (const char *)list->items + (list->first + i) * item_size, sizeof from_ns);
    return from_ns;
}

uint32_t ew_spans_list_find(const struct ew_spans_list *list, size_t item_size, uint64_t t_ns)
{
    uint32_t low = 0, high = list->count; /* the first entry that begins after t_ns */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (from_of(list, item_size, middle) > t_ns)
            high = middle;
        else
            low = middle + 1;
    }
    return low > 0 ? low - 1 : 0;
}

/* Keeps the entry that contains t_ns. */
static void cut(struct ew_spans_history *history, struct ew_spans_list *list, size_t item_size,
                uint64_t t_ns)
{
    uint32_t dropped = list->count == 0 ? 0 : ew_spans_list_find(list, item_size, t_ns);
    list->first += dropped;
    list->count -= dropped;
    history->entries -= dropped;
}

void ew_spans_history_trim(struct ew_spans_history *history, uint64_t t_ns)
{
    uint64_t keep_ns = t_ns > history->history_ns ? t_ns - history->history_ns : 0;
    /* Over the limit the past is halved until there is room again. */
    for (uint64_t left_ns = history->history_ns;; left_ns /= 2) {
        for (uint32_t i = 1; i <= history->threads.used; i++) {
            struct ew_spans_thread *thread = ew_pool_at(&history->threads, i);
            cut(history, &thread->parts, sizeof(struct ew_spans_part), keep_ns);
            cut(history, &thread->faults, sizeof(struct ew_spans_faults), keep_ns);
        }
        for (uint32_t i = 0; i < EW_SPANS_CPUS_MAX; i++)
            cut(history, &history->cpus[i], sizeof(struct ew_spans_turn), keep_ns);
        if (history->entries < history->max_entries / 2 || left_ns < 1000000)
            return;
        keep_ns = t_ns - left_ns / 2;
    }
}

/* ------------------------------------------------------------ threads and processes */

struct ew_spans_thread *ew_spans_history_thread(const struct ew_spans_history *history,
                                                uint32_t tid)
{
    uint32_t cursor = ew_index_home(&history->by_tid, tid);
    uint32_t ref = ew_index_next(&history->by_tid, tid, &cursor);
    return ref == 0 ? NULL : ew_pool_at(&history->threads, ref);
}

static uint32_t process_ref(const struct ew_spans_history *history, uint32_t pid)
{
    uint32_t cursor = ew_index_home(&history->by_pid, pid);
    return ew_index_next(&history->by_pid, pid, &cursor);
}

struct ew_spans_process *ew_spans_history_find(const struct ew_spans_history *history, uint32_t pid)
{
    uint32_t ref = process_ref(history, pid);
    return ref == 0 ? NULL : ew_pool_at(&history->processes, ref);
}

static void set_name(char *to, const char *name)
{
    if (name != NULL && name[0] != '\0')
        (void)snprintf(to, 16, "%s", name);
}

int ew_spans_history_process(struct ew_spans_history *history, uint32_t pid, const char *name)
{
    struct ew_spans_process *process = ew_spans_history_find(history, pid);
    uint32_t ref = 0;
    if (process == NULL) {
        process = history->processes.used < EW_SPANS_PROCESSES_MAX
                      ? ew_pool_take(&history->processes, &ref)
                      : NULL;
        if (process == NULL || ew_index_add(&history->by_pid, pid, ref) < 0)
            return ETWATCH_ENOMEM;
        process->pid = pid;
    }
    set_name(process->name, name);
    return 0;
}

/* A thread belongs to the process that its latest event names: ids are reused. */
static void adopt(struct ew_spans_history *history, struct ew_spans_thread *thread, uint32_t ref,
                  uint32_t pid)
{
    if (pid == UINT32_MAX || (thread->pid == pid && thread->process != 0))
        return;
    uint32_t process_number = process_ref(history, pid);
    if (thread->process == process_number && thread->pid == pid)
        return;
    if (thread->process != 0) { /* leave the list of the old process */
        struct ew_spans_process *old = ew_pool_at(&history->processes, thread->process);
        uint32_t *at = &old->threads;
        while (*at != 0 && *at != ref)
            at = &((struct ew_spans_thread *)ew_pool_at(&history->threads, *at))->next;
        if (*at == ref)
            *at = thread->next;
        history->entries -= thread->parts.count + thread->faults.count;
        thread->parts.count = thread->faults.count = 0;
    }
    thread->pid = pid;
    thread->process = process_number;
    if (process_number != 0) {
        struct ew_spans_process *process = ew_pool_at(&history->processes, process_number);
        thread->next = process->threads;
        process->threads = ref;
    }
}

static struct ew_spans_thread *thread_of(struct ew_spans_history *history, uint32_t pid,
                                         uint32_t tid, const char *name)
{
    if (tid == 0)
        return NULL;
    uint32_t cursor = ew_index_home(&history->by_tid, tid);
    uint32_t ref = ew_index_next(&history->by_tid, tid, &cursor);
    struct ew_spans_thread *thread = ref == 0 ? NULL : ew_pool_at(&history->threads, ref);
    if (thread == NULL) {
        thread = history->threads.used < EW_SPANS_THREADS_MAX
                     ? ew_pool_take(&history->threads, &ref)
                     : NULL;
        if (thread == NULL || ew_index_add(&history->by_tid, tid, ref) < 0) {
            history->dropped++;
            return NULL;
        }
        thread->tid = tid;
        thread->pid = UINT32_MAX;
    }
    adopt(history, thread, ref, pid);
    set_name(thread->name, name);
    return thread;
}

const char *ew_spans_history_name(const struct ew_spans_history *history, uint32_t pid,
                                  uint32_t tid)
{
    const struct ew_spans_process *process = ew_spans_history_find(history, pid);
    const struct ew_spans_thread *leader = ew_spans_history_thread(history, pid);
    if (process != NULL && process->name[0] != '\0')
        return process->name;
    if (leader == NULL || leader->name[0] == '\0')
        leader = ew_spans_history_thread(history, tid);
    return leader == NULL ? "" : leader->name;
}

/* ------------------------------------------------------------------------ events */

static struct ew_spans_part *last_part(const struct ew_spans_thread *thread)
{
    const struct ew_spans_list *parts = &thread->parts;
    return parts->count == 0
               ? NULL
               : (struct ew_spans_part *)parts->items + parts->first + parts->count - 1;
}

/* Events of different CPUs may be out of order by less than a microsecond. */
static void begin(struct ew_spans_history *history, struct ew_spans_thread *thread, uint64_t t_ns,
                  struct ew_spans_part part)
{
    if (thread == NULL || thread->process == 0)
        return;
    const struct ew_spans_part *last = last_part(thread);
    part.from_ns = last != NULL && last->from_ns > t_ns ? last->from_ns : t_ns;
    struct ew_spans_part *next = append(history, &thread->parts, sizeof part);
    if (next != NULL)
        *next = part;
}

/* Before its first event a thread was in the state that this event ended. */
static void begin_first(struct ew_spans_history *history, struct ew_spans_thread *thread,
                        uint8_t state, uint16_t cpu)
{
    if (thread != NULL && thread->parts.count == 0)
        begin(history, thread,
              history->gap_ns > history->begun_ns ? history->gap_ns : history->begun_ns,
              (struct ew_spans_part){.state = state, .cpu = cpu, .waker_tid = UINT32_MAX});
}

static uint8_t state_of(const struct etwatch_event *event)
{
    if ((event->state & LINUX_DEAD) != 0)
        return EW_SPANS_GONE;
    if (event->state == 0)
        return EW_SPANS_READY;
    if (event->in_fault == 2)
        return EW_SPANS_FAULT;
    return event->io_wait == 2 ? EW_SPANS_DISK : EW_SPANS_SLEEP;
}

/* Whether the thread is seen on another CPU already: the clocks of two CPUs differ a little, and
 * the order of their events too. Without this it would have lost the CPU until its next event. */
static bool runs_elsewhere(const struct ew_spans_thread *thread, uint16_t cpu, uint64_t t_ns)
{
    const struct ew_spans_part *last =
        thread == NULL || thread->process == 0 ? NULL : last_part(thread);
    return last != NULL && last->state == EW_SPANS_RUN && last->cpu != cpu &&
           last->cpu != EW_SPANS_NO_CPU && cpu != EW_SPANS_NO_CPU &&
           t_ns < last->from_ns + early_max_ns;
}

static void add_switch(struct ew_spans_history *history, const struct etwatch_event *event)
{
    struct ew_spans_thread *out = thread_of(history, event->pid, event->tid, event->name);
    struct ew_spans_thread *in =
        thread_of(history, event->next_pid, event->next_tid, event->next_name);
    uint16_t cpu = event->cpu < EW_SPANS_CPUS_MAX ? (uint16_t)event->cpu : EW_SPANS_NO_CPU;
    struct ew_spans_part run = {.waker_tid = UINT32_MAX};
    bool late = runs_elsewhere(out, cpu, event->t_ns);
    if (late)
        run = *last_part(out);
    begin_first(history, out, EW_SPANS_RUN, cpu);
    begin(history, out, event->t_ns,
          (struct ew_spans_part){
              .state = state_of(event),
              .throttled = event->throttled == 2,
              .cpu = cpu,
              .waker_tid = UINT32_MAX,
          });
    if (out != NULL && out->early_ns != 0) {
        if (event->state != 0 && event->t_ns - out->early_ns < early_max_ns)
            begin(history, out, event->t_ns,
                  (struct ew_spans_part){
                      .state = EW_SPANS_READY,
                      .cpu = EW_SPANS_NO_CPU,
                      .waker_pid = out->early_pid,
                      .waker_tid = out->early_tid,
                  });
        out->early_ns = 0;
    }
    if (late)
        begin(history, out, event->t_ns, run);
    begin(history, in, event->t_ns,
          (struct ew_spans_part){.state = EW_SPANS_RUN, .cpu = cpu, .waker_tid = UINT32_MAX});
    if (cpu == EW_SPANS_NO_CPU)
        return;
    /* Only a switch that was missing is late. */
    struct ew_spans_list *turns = &history->cpus[cpu];
    uint64_t from_ns =
        turns->count == 0 ? 0 : from_of(turns, sizeof(struct ew_spans_turn), turns->count - 1);
    struct ew_spans_turn *turn = append(history, turns, sizeof(struct ew_spans_turn));
    if (turn != NULL)
        *turn = (struct ew_spans_turn){event->t_ns > from_ns ? event->t_ns : from_ns,
                                       event->next_pid, event->next_tid};
}

/* A wake-up of a thread that is ready already changes nothing. */
static void add_wakeup(struct ew_spans_history *history, const struct etwatch_event *event)
{
    struct ew_spans_thread *thread = thread_of(history, event->pid, event->tid, event->name);
    begin_first(history, thread, EW_SPANS_SLEEP, EW_SPANS_NO_CPU);
    const struct ew_spans_part *last = thread == NULL ? NULL : last_part(thread);
    if (last != NULL && last->state == EW_SPANS_RUN) {
        thread->early_ns = event->t_ns;
        thread->early_pid = event->next_pid;
        thread->early_tid = event->next_tid;
    }
    if (last == NULL || last->state == EW_SPANS_RUN || last->state == EW_SPANS_READY)
        return;
    begin(history, thread, event->t_ns,
          (struct ew_spans_part){
              .state = EW_SPANS_READY,
              .throttled = event->throttled == 2,
              .cpu = EW_SPANS_NO_CPU,
              .waker_pid = event->next_pid,
              .waker_tid = event->next_tid,
          });
}

static void add_fork(struct ew_spans_history *history, const struct etwatch_event *event)
{
    /* A child of a watched process is watched before its start is delivered. */
    if (event->next_pid != event->pid && ew_spans_history_find(history, event->pid) != NULL)
        (void)ew_spans_history_process(history, event->next_pid, NULL);
    struct ew_spans_thread *thread =
        thread_of(history, event->next_pid, event->next_tid, event->next_name);
    if (thread == NULL)
        return;
    thread->born_ns = event->t_ns;
    thread->pool = false;
    begin(history, thread, event->t_ns,
          (struct ew_spans_part){.state = EW_SPANS_SLEEP, .waker_tid = UINT32_MAX});
}

static void add_faults(struct ew_spans_history *history, const struct etwatch_event *event)
{
    struct ew_spans_thread *thread = thread_of(history, event->pid, event->tid, event->name);
    history->knows_faults = true;
    if (thread == NULL || thread->process == 0)
        return;
    struct ew_spans_faults *faults = append(history, &thread->faults, sizeof *faults);
    if (faults != NULL)
        *faults = (struct ew_spans_faults){event->from_ns, event->t_ns, event->fault_ns,
                                           event->fault_count};
}

static void end_throttling(struct ew_spans_history *history, const struct etwatch_event *event)
{
    for (uint32_t i = 1; i <= history->threads.used; i++) {
        struct ew_spans_thread *thread = ew_pool_at(&history->threads, i);
        const struct ew_spans_part *last = last_part(thread);
        if (last == NULL || last->state != EW_SPANS_READY || !last->throttled ||
            (last->cpu != EW_SPANS_NO_CPU && last->cpu != event->cpu))
            continue;
        begin(history, thread, event->t_ns,
              (struct ew_spans_part){
                  .state = EW_SPANS_READY, .cpu = last->cpu, .waker_tid = UINT32_MAX});
    }
}

void ew_spans_history_event(struct ew_spans_history *history, const struct etwatch_event *event)
{
    if (history->begun_ns == 0)
        history->begun_ns = event->t_ns;
    if (event->t_ns > history->last_ns)
        history->last_ns = event->t_ns;
    switch (event->kind) {
    case ETWATCH_EVENT_SWITCH:
        history->knows_faults = history->knows_faults || event->in_fault != 0;
        add_switch(history, event);
        break;
    case ETWATCH_EVENT_WAKEUP:
        add_wakeup(history, event);
        break;
    case ETWATCH_EVENT_FORK:
        add_fork(history, event);
        break;
    case ETWATCH_EVENT_FAULTS:
        add_faults(history, event);
        break;
    case ETWATCH_EVENT_UNTHROTTLE:
        end_throttling(history, event);
        break;
    default:
        break;
    }
}

void ew_spans_history_gap(struct ew_spans_history *history, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t at = history->loss_count++ % EW_SPANS_LOSSES;
    history->losses[at].from_ns = from_ns;
    history->losses[at].to_ns = to_ns;
    history->gap_ns = to_ns;
    for (uint32_t i = 1; i <= history->threads.used; i++) {
        struct ew_spans_thread *thread = ew_pool_at(&history->threads, i);
        if (thread->parts.count > 0)
            begin(history, thread, to_ns, (struct ew_spans_part){.state = EW_SPANS_UNKNOWN});
    }
}

bool ew_spans_history_lost(const struct ew_spans_history *history, uint64_t from_ns, uint64_t to_ns)
{
    for (uint64_t i = 0; i < history->loss_count && i < EW_SPANS_LOSSES; i++)
        if (history->losses[i].from_ns < to_ns && history->losses[i].to_ns > from_ns)
            return true;
    return false;
}

void ew_spans_history_loaded(struct ew_spans_history *history, uint32_t pid, uint64_t from_ns,
                             uint64_t to_ns)
{
    struct ew_spans_process *process = ew_spans_history_find(history, pid);
    struct ew_spans_thread *thread;
    if (process == NULL)
        return;
    process->has_pool = true;
    for (uint32_t ref = process->threads; ref != 0; ref = thread->next) {
        thread = ew_pool_at(&history->threads, ref);
        if (thread->born_ns >= from_ns && thread->born_ns < to_ns)
            thread->pool = true;
    }
}
