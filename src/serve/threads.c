/* SPDX-License-Identifier: MIT */
/*
 * Threads of the processes: CPU time and run-queue wait, for the band of a process by thread. A
 * thread keeps its slot as long as its process does; when the table is full, new threads are
 * counted as dropped and the rest of the band shows them as one.
 */
#include "serve/state.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { INDEX_SIZE = 65536, FIRST_SLOTS = 256 };

static uint32_t *chain_of(const struct ew_state *state, uint32_t process, uint32_t tid)
{
    return &state->thread_index[ew_hash_identity(process, 0, tid) % INDEX_SIZE];
}

static uint32_t take_slot(struct ew_state *state)
{
    uint32_t i = state->free_thread;
    if (i != EW_STATE_NONE) {
        state->free_thread = state->threads[i].next;
        return i;
    }
    if (state->thread_count == state->thread_size) {
        uint32_t wanted = state->thread_size == 0 ? FIRST_SLOTS : state->thread_size * 2;
        struct ew_state_thread *grown =
            wanted > EW_STATE_THREADS_MAX ? NULL
                                          : ew_realloc_array(state->threads, wanted, sizeof *grown);
        if (grown == NULL)
            return EW_STATE_NONE;
        state->threads = grown;
        state->thread_size = wanted;
    }
    return state->thread_count++;
}

static uint32_t find_or_add(struct ew_state *state, uint32_t process, uint32_t tid)
{
    uint32_t *chain = chain_of(state, process, tid);
    uint32_t i = *chain;
    while (i != EW_STATE_NONE &&
           (state->threads[i].process != process || state->threads[i].tid != tid))
        i = state->threads[i].next;
    if (i != EW_STATE_NONE)
        return i;
    i = take_slot(state);
    if (i == EW_STATE_NONE) {
        state->dropped++;
        return i;
    }
    struct ew_state_process *owner = &state->processes[process];
    state->threads[i] = (struct ew_state_thread){
        .process = process, .tid = tid, .next_of_process = owner->threads, .next = *chain};
    *chain = i;
    owner->threads = i;
    owner->thread_count++;
    return i;
}

static bool set_active(struct ew_state *state, uint32_t i)
{
    if (state->threads[i].in_second)
        return true;
    if (state->active_thread_count == state->active_thread_size) {
        uint32_t wanted =
            state->active_thread_size == 0 ? FIRST_SLOTS : state->active_thread_size * 2;
        uint32_t *grown = ew_realloc_array(state->active_threads, wanted, sizeof *grown);
        if (grown == NULL)
            return false;
        state->active_threads = grown;
        state->active_thread_size = wanted;
    }
    state->threads[i].in_second = true;
    state->active_threads[state->active_thread_count++] = i;
    return true;
}

static void append(struct ew_history *history, uint64_t *mark, uint64_t t_ns, uint64_t dt_ns,
                   uint64_t cpu_ns, uint64_t wait_ns)
{
    struct etwatch_metric_set has = {{0}};
    uint64_t values[ETWATCH_METRIC_COUNT];
    etwatch_metric_set_add(&has, ETWATCH_M_cpu_ns);
    etwatch_metric_set_add(&has, ETWATCH_M_runq_wait_ns);
    values[ETWATCH_M_cpu_ns] = cpu_ns;
    values[ETWATCH_M_runq_wait_ns] = wait_ns;
    (void)ew_history_append(history, mark, t_ns, dt_ns, true, &has, values);
}

void ew_state_threads_add(struct ew_state *state, const struct etwatch_sample *sample)
{
    uint32_t process = ew_state_find(state, sample->pid, sample->start_ns);
    if (process == EW_STATE_NONE)
        return;
    uint32_t i = find_or_add(state, process, sample->tid);
    if (i == EW_STATE_NONE || !set_active(state, i))
        return;
    struct ew_state_thread *thread = &state->threads[i];
    uint64_t cpu_ns = etwatch_sample_has(sample, ETWATCH_M_cpu_ns) ? sample->cpu_ns : 0;
    uint64_t wait_ns =
        etwatch_sample_has(sample, ETWATCH_M_runq_wait_ns) ? sample->runq_wait_ns : 0;
    const char *name = sample->thread_name != NULL ? sample->thread_name : "";
    size_t len = strlen(name);
    if (len >= sizeof thread->name)
        len = sizeof thread->name - 1;
    memcpy(thread->name, name, len);
    thread->name[len] = '\0';
    thread->cpu_ns += cpu_ns;
    thread->wait_ns += wait_ns;
    thread->second_cpu_ns += cpu_ns;
    thread->second_wait_ns += wait_ns;
    if (sample->dt_ns < EW_STATE_SECOND_NS)
        append(&state->fine, &thread->fine, sample->t_ns, sample->dt_ns, cpu_ns, wait_ns);
}

void ew_state_threads_close_second(struct ew_state *state, uint64_t t_ns)
{
    for (uint32_t n = 0; n < state->active_thread_count; n++) {
        struct ew_state_thread *thread = &state->threads[state->active_threads[n]];
        append(&state->coarse, &thread->coarse, t_ns, EW_STATE_SECOND_NS, thread->second_cpu_ns,
               thread->second_wait_ns);
        thread->second_cpu_ns = thread->second_wait_ns = 0;
        thread->in_second = false;
    }
    state->active_thread_count = 0;
}

static void remove_active(struct ew_state *state, uint32_t i)
{
    for (uint32_t n = 0; n < state->active_thread_count; n++) {
        if (state->active_threads[n] != i)
            continue;
        state->active_threads[n] = state->active_threads[--state->active_thread_count];
        return;
    }
}

void ew_state_threads_free_of(struct ew_state *state, struct ew_state_process *process)
{
    uint32_t i = process->threads;
    while (i != EW_STATE_NONE) {
        struct ew_state_thread *thread = &state->threads[i];
        uint32_t following = thread->next_of_process;
        uint32_t *link = chain_of(state, thread->process, thread->tid);
        while (*link != i)
            link = &state->threads[*link].next;
        *link = thread->next;
        if (thread->in_second)
            remove_active(state, i);
        *thread = (struct ew_state_thread){.process = EW_STATE_NONE, .next = state->free_thread};
        state->free_thread = i;
        i = following;
    }
    process->threads = EW_STATE_NONE;
}
