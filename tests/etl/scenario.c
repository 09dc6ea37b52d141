/* SPDX-License-Identifier: MIT */
/*
 * The events on the synthetic machine. Time only moves forward and is shared by all CPUs, so the
 * events of each CPU are in order. Invariants: a thread is in exactly one of: the waiting list, the
 * ready list, a CPU, or dead; an ID is used by at most one process or thread at a time.
 */
#include "scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "scenario_machine.h"

uint64_t etl_random(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15u;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static const char *const names[] = {
    "svchost.exe", "chrome.exe",   "inference.exe", "explorer.exe", "dwm.exe",          "csrss.exe",
    "python.exe",  "sqlservr.exe", "msedge.exe",    "code.exe",     "r\xc3\xb6hre.exe", "a b.exe",
};

/* ---------------------------------------------------------------------- lists */

static void list_add(struct machine *m, struct machine_list *list, uint32_t thread)
{
    m->threads[thread].place = list->count;
    list->items[list->count++] = thread;
}

static void list_remove(struct machine *m, struct machine_list *list, uint32_t thread)
{
    uint32_t place = m->threads[thread].place, last = list->items[--list->count];
    list->items[place] = last;
    m->threads[last].place = place;
}

static uint32_t take_id(struct machine *m)
{
    if (m->free_count > 0 && machine_random(m, 8) != 0)
        return m->free_ids[--m->free_count];
    uint32_t id = m->next_id;
    m->next_id += 4;
    return id;
}

static void free_id(struct machine *m, uint32_t id)
{
    m->free_ids[m->free_count++] = id;
}

/* ------------------------------------------------------------ starts and exits */

static bool has_room(const struct machine *m)
{
    return m->truth.thread_count < m->config.max_threads &&
           m->truth.process_count < m->config.max_threads;
}

static uint32_t add_process(struct machine *m, uint32_t parent_pid, uint64_t start_raw)
{
    uint32_t index = m->truth.process_count++;
    struct etl_truth_process *p = &m->truth.processes[index];
    *p = (struct etl_truth_process){.pid = take_id(m),
                                    .parent_pid = parent_pid,
                                    .session_id = index % 3,
                                    .exit_status = 259,
                                    .key = m->next_key += 0x440,
                                    .start_raw = start_raw};
    size_t name = machine_random(m, (uint32_t)(sizeof names / sizeof names[0]));
    snprintf(p->name, sizeof p->name, "%s", names[name]);
    p->working_set_peak_bytes = (uint64_t)(100 + machine_random(m, 100000)) * 4096;
    return index;
}

static uint32_t add_thread(struct machine *m, uint32_t process, uint64_t start_raw)
{
    uint32_t index = m->truth.thread_count++;
    struct etl_truth_process *p = &m->truth.processes[process];
    m->truth.threads[index] = (struct etl_truth_thread){
        .pid = p->pid, .tid = take_id(m), .process = process, .start_raw = start_raw};
    p->thread_count++;
    p->live_threads++;
    m->threads[index] = (struct machine_thread){.state = ETL_WAITING,
                                                .priority = (int8_t)(4 + machine_random(m, 12))};
    list_add(m, &m->waiting, index);
    return index;
}

static void load_images(struct machine *m, uint16_t cpu, uint32_t process, unsigned hook)
{
    for (uint32_t i = 0; machine_has(m, ETL_IMAGES) && i < 3; i++)
        emit_image(m, cpu, process, hook, i);
    if (machine_has(m, ETL_IMAGES) && (hook == 0x030A || hook == 0x1403))
        m->truth.processes[process].image_count += 3;
}

static void start_process(struct machine *m, uint16_t cpu, uint32_t by)
{
    uint32_t parent = by == ETL_IDLE ? 4 : m->truth.threads[by].pid;
    uint32_t process = add_process(m, parent, m->now);
    emit_process(m, cpu, process, 1, by);
    uint32_t thread = add_thread(m, process, m->now);
    emit_thread(m, cpu, thread, 1, by);
    load_images(m, cpu, process, 0x030A);
}

static void start_thread(struct machine *m, uint16_t cpu, uint32_t by)
{
    uint32_t thread = add_thread(m, m->truth.threads[by].process, m->now);
    emit_thread(m, cpu, thread, 1, by);
}

/* -------------------------------------------------------------------- switches */

static void switch_to(struct machine *m, uint16_t cpu, uint32_t to, unsigned state)
{
    struct machine_cpu *c = &m->cpus[cpu];
    uint32_t from = c->thread;
    uint64_t ticks = m->now - c->since_raw;
    count_run(m, cpu, from, ticks);
    if (from == ETL_IDLE) {
        m->truth.idle_ticks += ticks;
    } else {
        struct etl_truth_thread *old = &m->truth.threads[from];
        old->cpu_ticks += ticks;
        m->truth.busy_ticks += ticks;
        old->out_waiting += state == 5 || state == 4;
        old->out_ready += state == 1;
        m->threads[from].ready_raw = m->now;
        m->threads[from].state = state == 5 ? ETL_WAITING : state == 1 ? ETL_IS_READY : ETL_DEAD;
        if (state != 4)
            list_add(m, state == 5 ? &m->waiting : &m->ready, from);
    }
    if (to != ETL_IDLE) {
        list_remove(m, &m->ready, to);
        m->truth.threads[to].ready_ticks += m->now - m->threads[to].ready_raw;
        m->threads[to].state = ETL_RUNNING;
    }
    emit_switch(m, cpu, from, to, state);
    m->truth.switches++;
    c->thread = to;
    c->since_raw = m->now;
}

static void make_ready(struct machine *m, uint16_t cpu, uint32_t thread)
{
    list_remove(m, &m->waiting, thread);
    list_add(m, &m->ready, thread);
    m->threads[thread].state = ETL_IS_READY;
    m->threads[thread].ready_raw = m->now;
    m->truth.readies++;
    emit_ready(m, cpu, thread);
}

static void switch_somewhere(struct machine *m, uint16_t cpu)
{
    uint32_t from = m->cpus[cpu].thread, to = ETL_IDLE;
    if (m->ready.count > 0 && machine_random(m, 8) != 0)
        to = m->ready.items[machine_random(m, m->ready.count)];
    if (from == ETL_IDLE && to == ETL_IDLE)
        return;
    unsigned state = from == ETL_IDLE ? 2 : machine_random(m, 5) < 3 ? 5 : 1;
    switch_to(m, cpu, to, state);
    if (machine_has(m, ETL_STACKS) && machine_random(m, 8) == 0 && to != ETL_IDLE)
        emit_stack(m, cpu, to, m->now);
}

/* ---------------------------------------------------------------------- disk */

static void end_io(struct machine *m, uint16_t cpu, uint32_t i)
{
    struct machine_io io = m->ios[i];
    struct etl_truth_thread *t = &m->truth.threads[io.thread];
    m->ios[i] = m->ios[--m->io_count];
    m->threads[io.thread].io_count--;
    emit_disk_end(m, cpu, &io);
    *(io.is_write ? &t->disk_write_bytes : &t->disk_read_bytes) += io.bytes;
    (*(io.is_write ? &t->disk_writes : &t->disk_reads))++;
}

static void begin_io(struct machine *m, uint16_t cpu, uint32_t thread)
{
    if (m->io_count == ETL_MAX_IO) {
        end_io(m, cpu, machine_random(m, m->io_count));
        return;
    }
    struct machine_io *io = &m->ios[m->io_count++];
    *io = (struct machine_io){.irp = m->next_irp += 0x100,
                              .began_raw = m->now,
                              .thread = thread,
                              .bytes = 512u << machine_random(m, 10),
                              .is_write = machine_random(m, 3) == 0};
    m->threads[thread].io_count++;
    emit_disk_begin(m, cpu, io);
}

/* Ends the thread that runs here, and its process with the last one. */
static void end_thread(struct machine *m, uint16_t cpu)
{
    uint32_t thread = m->cpus[cpu].thread;
    struct etl_truth_thread *t = &m->truth.threads[thread];
    struct etl_truth_process *p = &m->truth.processes[t->process];
    for (uint32_t i = m->io_count; i-- > 0;) {
        if (m->ios[i].thread == thread) {
            m->now++;
            end_io(m, cpu, i);
        }
    }
    t->end_raw = m->now;
    emit_thread(m, cpu, thread, 2, thread);
    bool is_last = --p->live_threads == 0;
    if (is_last) {
        p->exit_status = (int32_t)machine_random(m, 3) - 1;
        emit_terminate(m, cpu, t->process, thread);
        m->now++;
        emit_counters(m, cpu, t->process, 32);
        p->end_raw = m->now;
        emit_process(m, cpu, t->process, 2, thread);
    }
    m->now += 1 + machine_random(m, 5);
    switch_to(m, cpu, ETL_IDLE, 4);
    free_id(m, t->tid);
    if (is_last)
        free_id(m, p->pid);
}

/* ------------------------------------------------------------------ one event */

static void interrupt(struct machine *m, uint16_t cpu)
{
    struct machine_cpu *c = &m->cpus[cpu];
    uint64_t quiet = m->now - c->last_raw;
    if (quiet < 2)
        return;
    uint64_t ticks = 1 + machine_random(m, quiet < 400 ? (uint32_t)quiet : 400);
    bool is_isr = machine_random(m, 3) == 0;
    emit_interrupt(m, cpu, is_isr, m->now - ticks);
    *(is_isr ? &m->truth.isr_ticks : &m->truth.dpc_ticks) += ticks;
    if (c->thread != ETL_IDLE)
        m->truth.threads[c->thread].interrupt_ticks += ticks;
}

/* kind: 0 to 39. */
static void fault(struct machine *m, uint16_t cpu, uint32_t thread, uint32_t kind)
{
    struct etl_truth_thread *t = &m->truth.threads[thread];
    if (kind == 0) {
        emit_hard_fault(m, cpu, thread, m->now - machine_random(m, 2000));
        t->hard_faults++;
    } else if (kind <= 2) {
        emit_virtual(m, cpu, t->process, kind == 2);
    } else {
        emit_fault(m, cpu, 10 + kind % 4);
        t->faults++;
    }
}

/* The work of a running thread apart from switches. roll: 0 to 999. */
static void do_work(struct machine *m, uint16_t cpu, uint32_t thread, uint32_t roll)
{
    struct etl_truth_thread *t = &m->truth.threads[thread];
    struct etl_truth_process *p = &m->truth.processes[t->process];
    uint32_t bytes = 1 + machine_random(m, 60000);
    bool other = machine_random(m, 2) == 0;
    if (roll < 700 && machine_has(m, ETL_FAULTS)) {
        fault(m, cpu, thread, machine_random(m, 40));
    } else if (roll < 780 && machine_has(m, ETL_DISK)) {
        begin_io(m, cpu, thread);
    } else if (roll < 860 && machine_has(m, ETL_FILES)) {
        emit_file(m, cpu, thread, other, bytes);
        *(other ? &t->file_write_bytes : &t->file_read_bytes) += bytes;
    } else if (roll < 960 && machine_has(m, ETL_NET)) {
        emit_net(m, cpu, t->process, other, bytes);
        *(other ? &p->sent_bytes : &p->received_bytes) += bytes;
    } else if (roll >= 960 && machine_has(m, ETL_CHURN) && has_room(m)) {
        /* Threads of the first process never end, so that there is always a thread to run. */
        if (roll >= 980 && t->process != 0)
            end_thread(m, cpu);
        else if (roll % 4 == 0)
            start_process(m, cpu, thread);
        else
            start_thread(m, cpu, thread);
    }
}

static void one_event(struct machine *m)
{
    uint16_t cpu = (uint16_t)machine_random(m, m->config.cpu_count);
    uint32_t roll = machine_random(m, 1000), thread = m->cpus[cpu].thread;
    if (m->io_count > 0 && machine_random(m, 100) == 0)
        end_io(m, cpu, machine_random(m, m->io_count));
    else if (roll < 360)
        switch_somewhere(m, cpu);
    else if (roll < 560 && m->waiting.count > 0)
        make_ready(m, cpu, m->waiting.items[machine_random(m, m->waiting.count)]);
    else if (roll < 680 && machine_has(m, ETL_INTERRUPTS))
        interrupt(m, cpu);
    else if (thread != ETL_IDLE)
        do_work(m, cpu, thread, machine_random(m, 1000));
    m->cpus[cpu].last_raw = m->now;
}

static void take_samples(struct machine *m);

/* A little later, on the same CPU. */
static void soon(struct machine *m, uint16_t cpu)
{
    m->cpus[cpu].last_raw = m->now;
    m->now += 2 + machine_random(m, 10);
    if (machine_has(m, ETL_SAMPLES))
        take_samples(m);
}

/* A device completes: it interrupts, which wakes a thread that gets the CPU. */
static void wake_chain(struct machine *m, uint16_t cpu)
{
    if (machine_has(m, ETL_INTERRUPTS)) {
        interrupt(m, cpu);
        soon(m, cpu);
    }
    if (m->waiting.count > 0) {
        make_ready(m, cpu, m->waiting.items[machine_random(m, m->waiting.count)]);
        soon(m, cpu);
    }
    switch_somewhere(m, cpu);
}

/* Memory is touched for the first time, page after page. */
static void fault_chain(struct machine *m, uint16_t cpu, uint32_t thread)
{
    uint32_t kind = machine_random(m, 40);
    for (uint32_t left = 1 + machine_random(m, 16); left > 0; left--) {
        fault(m, cpu, thread, kind);
        soon(m, cpu);
    }
}

/* Events on one CPU occur in causal chains of a few microseconds. */
static void one_chain(struct machine *m)
{
    uint16_t cpu = (uint16_t)machine_random(m, m->config.cpu_count);
    uint32_t roll = machine_random(m, 100), thread = m->cpus[cpu].thread;
    if (m->io_count > 0 && machine_random(m, 10) == 0)
        end_io(m, cpu, machine_random(m, m->io_count));
    else if (roll < 60 || thread == ETL_IDLE)
        wake_chain(m, cpu);
    else if (roll < 75 && machine_has(m, ETL_FAULTS))
        fault_chain(m, cpu, thread);
    else if (roll < 85)
        do_work(m, cpu, thread, 700 + machine_random(m, 300));
    else
        switch_somewhere(m, cpu);
    m->cpus[cpu].last_raw = m->now;
}

/* Each CPU is sampled at its own instants, before the next event. */
static void take_samples(struct machine *m)
{
    uint64_t step = m->config.sample_100ns * m->config.perf_frequency / 10000000;
    for (bool again = true; again;) {
        uint32_t due = 0;
        for (uint32_t i = 1; i < m->config.cpu_count; i++) {
            if (m->cpus[i].next_sample_raw < m->cpus[due].next_sample_raw)
                due = i;
        }
        struct machine_cpu *c = &m->cpus[due];
        again = c->next_sample_raw < m->now;
        if (!again)
            break;
        /* Events on this CPU in the meantime may have taken longer than that. */
        c->last_raw = c->next_sample_raw > c->last_raw ? c->next_sample_raw : c->last_raw;
        emit_sample(m, (uint16_t)due, c->thread, c->last_raw);
        m->truth.samples++;
        if (c->thread == ETL_IDLE)
            m->truth.idle_samples++;
        else
            m->truth.threads[c->thread].samples++;
        c->next_sample_raw += step;
    }
}

/* ------------------------------------------------------------------- the session */

static void begin_session(struct machine *m)
{
    emit_session_start(m);
    uint32_t count = m->config.process_count;
    for (uint32_t i = 0; i < count && has_room(m); i++) {
        uint32_t process = add_process(m, i == 0 ? 0 : m->truth.processes[0].pid, 0);
        m->now++;
        emit_process(m, 0, process, 3, ETL_IDLE);
        load_images(m, 0, process, 0x1403);
        for (uint32_t k = 0; k < 1 + machine_random(m, 6) && has_room(m); k++)
            emit_thread(m, 0, add_thread(m, process, 0), 3, ETL_IDLE);
    }
    for (uint32_t cpu = 0; cpu < m->config.cpu_count; cpu++) {
        struct machine_cpu *c = &m->cpus[cpu];
        m->now += 1 + machine_random(m, 10);
        *c = (struct machine_cpu){
            .thread = ETL_IDLE, .since_raw = m->now, .next_sample_raw = m->now + 100 + cpu * 7};
        for (uint32_t i = 0; i < ETL_COUNTER_COUNT; i++)
            c->counters[i] = UINT64_C(1000000000) * (i + 1) + cpu;
        uint32_t first = ETL_IDLE;
        if (m->waiting.count > 0) {
            first = m->waiting.items[machine_random(m, m->waiting.count)];
            make_ready(m, (uint16_t)cpu, first);
        }
        switch_to(m, (uint16_t)cpu, first, 2);
        c->last_raw = m->now;
    }
    m->next_memory_raw = m->now;
}

static void end_session(struct machine *m)
{
    while (m->io_count > 0)
        end_io(m, 0, m->io_count - 1);
    for (uint32_t cpu = 0; cpu < m->config.cpu_count; cpu++) {
        m->now++;
        if (m->cpus[cpu].thread != ETL_IDLE)
            switch_to(m, (uint16_t)cpu, ETL_IDLE, 5);
    }
    for (uint32_t i = 0; i < m->truth.process_count; i++) {
        if (m->truth.processes[i].end_raw != 0)
            continue;
        emit_process(m, 0, i, 4, ETL_IDLE);
        emit_counters(m, 0, i, 33);
        load_images(m, 0, i, 0x1404);
    }
    for (uint32_t i = 0; i < m->truth.thread_count; i++) {
        if (m->truth.threads[i].end_raw == 0)
            emit_thread(m, 0, i, 4, ETL_IDLE);
    }
    if (machine_has(m, ETL_COUNTERS) && m->config.counters == ETL_COUNTERS_NAMED_LATE)
        emit_counter_names(m, false);
    if (machine_has(m, ETL_COUNTERS) && m->config.counters == ETL_COUNTERS_DISTURBED)
        emit_counters_disturbed(m);
    for (uint32_t cpu = 0; cpu < m->config.cpu_count; cpu++)
        m->truth.idle_ticks += m->now - m->cpus[cpu].since_raw;
    m->truth.last_raw = m->now;
}

static bool is_over(const struct machine *m)
{
    if (m->error)
        return true;
    if (m->config.event_count != 0 && m->truth.events >= m->config.event_count)
        return true;
    return m->config.stop && m->config.stop(m->config.stop_ctx);
}

static int make_machine(struct machine *m, const struct etl_scenario_config *config)
{
    m->config = *config;
    struct etl_scenario_config *c = &m->config;
    c->process_count = c->process_count ? c->process_count : 12;
    c->max_threads = c->max_threads ? c->max_threads : 4096;
    c->gap_ticks = c->gap_ticks ? c->gap_ticks : 60;
    c->sample_100ns = c->sample_100ns ? c->sample_100ns : 10000;
    c->perf_frequency = c->perf_frequency ? c->perf_frequency : 10000000;
    m->random = c->seed;
    m->counter_random = c->seed ^ 0x5DEECE66D;
    m->now = m->truth.first_raw = c->start_raw;
    m->next_id = 8;
    m->next_irp = m->next_key = 0xFFFFA48900001000;
    m->truth.processes = ew_calloc(c->max_threads, sizeof *m->truth.processes);
    m->truth.threads = ew_calloc(c->max_threads, sizeof *m->truth.threads);
    m->threads = ew_calloc(c->max_threads, sizeof *m->threads);
    m->waiting.items = ew_calloc(c->max_threads, sizeof *m->waiting.items);
    m->ready.items = ew_calloc(c->max_threads, sizeof *m->ready.items);
    m->free_ids = ew_calloc(2 * (size_t)c->max_threads, sizeof *m->free_ids);
    bool is_whole = m->truth.processes && m->truth.threads && m->threads && m->waiting.items &&
                    m->ready.items && m->free_ids;
    if (c->cpu_count == 0 || c->cpu_count > ETL_MAX_CPUS)
        return ETWATCH_EINVAL;
    return is_whole ? 0 : ETWATCH_ENOMEM;
}

int etl_scenario_run(const struct etl_scenario_config *config, struct ew_etl_writer *writer,
                     struct etl_truth *ret_truth)
{
    struct machine *m = ew_calloc(1, sizeof *m);
    if (!m)
        return ETWATCH_ENOMEM;
    m->writer = writer;
    int rc = make_machine(m, config);
    if (rc == 0) {
        begin_session(m);
        while (!is_over(m)) {
            m->now += 1 + machine_random(m, 2 * m->config.gap_ticks);
            if (machine_has(m, ETL_SAMPLES))
                take_samples(m);
            if (machine_has(m, ETL_MEMORY) && m->now >= m->next_memory_raw) {
                emit_memory(m, 0);
                m->next_memory_raw = m->now + m->config.perf_frequency / 2;
            }
            if (m->config.chains)
                one_chain(m);
            else
                one_event(m);
        }
        end_session(m);
        rc = m->error;
    }
    *ret_truth = m->truth;
    ew_free(m->threads);
    ew_free(m->waiting.items);
    ew_free(m->ready.items);
    ew_free(m->free_ids);
    ew_free(m);
    if (rc < 0)
        etl_truth_free(ret_truth);
    return rc;
}

void etl_truth_free(struct etl_truth *truth)
{
    ew_free(truth->processes);
    ew_free(truth->threads);
    *truth = (struct etl_truth){0};
}
