/* SPDX-License-Identifier: MIT */
/*
 * A small synthetic machine for the tests of recordings: processes and threads that start, run, do
 * I/O and exit, as a list of events that can be replayed one by one or written to a file. No two
 * events have the same time.
 */
#ifndef REPLAY_MACHINE_H
#define REPLAY_MACHINE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etl_kit.h"
#include "etl_writer.h"
#include "scenario.h"
#include "test.h"

enum { CPUS = 3, EVENTS = 30000, THREADS = 40, START_RAW = 5000, PTR = 8, NS_PER_TICK = 100 };

struct item {
    struct ew_etl_event event;
    uint8_t payload[256];
};

struct thread {
    uint32_t pid, tid;
    int cpu; /* -1: on no CPU */
};

struct machine {
    struct item *items;
    size_t count;
    uint64_t now_raw, seed;
    struct thread threads[THREADS];
    uint32_t thread_count, next_id;
    uint32_t on_cpu[CPUS]; /* tid */
};

static uint64_t draw(struct machine *m, uint64_t below)
{
    return etl_random(&m->seed) % below;
}

static void emit(struct machine *m, unsigned hook, unsigned version, uint16_t cpu, uint32_t pid,
                 uint32_t tid, const struct etl_payload *payload)
{
    bool perfinfo = hook >> 8 == 5 && (hook & 0xFF) >= 36;
    CHECK(m->count < EVENTS && payload->size <= sizeof m->items[0].payload);
    struct item *item = &m->items[m->count++];
    memcpy(item->payload, payload->bytes, payload->size);
    item->event = (struct ew_etl_event){
        .header_type = perfinfo ? 17 : 2,
        .group = (uint8_t)(hook >> 8),
        .opcode = (uint8_t)hook,
        .version = (uint8_t)version,
        .cpu = cpu,
        .t_raw = m->now_raw,
        .pid = pid,
        .tid = tid,
        .payload = item->payload,
        .payload_size = payload->size,
    };
    m->now_raw += 1 + draw(m, 3000);
    if (draw(m, 5000) == 0)
        m->now_raw += draw(m, 30 * 10000000); /* no event for up to half a minute */
}

static void emit_process(struct machine *m, unsigned opcode, uint32_t pid, uint32_t parent)
{
    struct etl_payload payload;
    char name[32];
    (void)snprintf(name, sizeof name, "p%u.exe", pid % 7);
    etl_clear(&payload);
    etl_process(&payload, 4, PTR,
                &(struct etl_process){.key = pid,
                                      .pid = pid,
                                      .parent_pid = parent,
                                      .session_id = 1,
                                      .exit_status = opcode == 2 ? (int32_t)(pid % 5) : 259,
                                      .image = name,
                                      .command_line = "run --password=hunter2 x"});
    emit(m, 0x0300 | opcode, 4, 0, 4, 8, &payload);
}

static void emit_thread(struct machine *m, unsigned opcode, uint32_t pid, uint32_t tid)
{
    struct etl_payload payload;
    etl_clear(&payload);
    etl_thread(&payload, 3, PTR, &(struct etl_thread){.pid = pid, .tid = tid, .base_priority = 8});
    emit(m, 0x0500 | opcode, 3, 0, 4, 8, &payload);
}

static void add_thread(struct machine *m, unsigned opcode, uint32_t pid)
{
    if (m->thread_count == THREADS)
        return;
    struct thread *thread = &m->threads[m->thread_count++];
    *thread = (struct thread){.pid = pid, .tid = m->next_id += 4, .cpu = -1};
    emit_thread(m, opcode, pid, thread->tid);
}

static void add_process(struct machine *m, unsigned opcode)
{
    uint32_t pid = m->next_id += 4;
    uint32_t parent = m->thread_count == 0 ? 4 : m->threads[draw(m, m->thread_count)].pid;
    emit_process(m, opcode, pid, parent);
    for (uint64_t i = draw(m, 3) + 1; i > 0; i--)
        add_thread(m, opcode, pid);
}

static struct thread *any_thread(struct machine *m)
{
    return &m->threads[draw(m, m->thread_count)];
}

static void do_switch(struct machine *m)
{
    struct etl_payload payload;
    uint16_t cpu = (uint16_t)draw(m, CPUS);
    struct thread *next = any_thread(m);
    bool idle = draw(m, 4) == 0 || next->cpu >= 0;
    struct etl_switch x = {
        .new_tid = idle ? 0 : next->tid,
        .old_tid = m->on_cpu[cpu],
        .new_priority = 9,
        .state = draw(m, 3) == 0 ? 1 : 5,
    };
    if (x.new_tid == x.old_tid)
        return;
    for (uint32_t i = 0; i < m->thread_count; i++)
        if (m->threads[i].cpu == cpu)
            m->threads[i].cpu = -1;
    if (!idle)
        next->cpu = cpu;
    m->on_cpu[cpu] = x.new_tid;
    etl_clear(&payload);
    etl_switch(&payload, 4, &x);
    emit(m, 0x0524, 4, cpu, 0, 0, &payload);
}

static void do_work(struct machine *m)
{
    struct etl_payload payload;
    const struct thread *thread = any_thread(m);
    uint16_t cpu = (uint16_t)(thread->cpu >= 0 ? thread->cpu : 0);
    etl_clear(&payload);
    switch (draw(m, 4)) {
    case 0:
        etl_ready(&payload, thread->tid, 1, 1, 0);
        emit(m, 0x0532, 2, cpu, 0, 0, &payload);
        break;
    case 1:
        etl_fault(&payload, PTR, 0x1000, 0x2000);
        emit(m, 0x020B, 2, cpu, thread->pid, thread->tid, &payload);
        break;
    case 2:
        etl_disk(&payload, 3, PTR,
                 &(struct etl_disk){.bytes = 512 + (uint32_t)draw(m, 9) * 512, .tid = thread->tid});
        emit(m, 0x010A, 3, cpu, 0, 0, &payload);
        break;
    default:
        etl_tcp(&payload, PTR, 10,
                &(struct etl_net){.pid = thread->pid, .bytes = (uint32_t)draw(m, 1500)});
        emit(m, 0x060A, 2, cpu, 0, 0, &payload);
        break;
    }
}

/* Ends a whole process, if none of its threads is on a CPU. */
static void end_process(struct machine *m)
{
    uint32_t pid = any_thread(m)->pid, kept = 0, threads = 0;
    for (uint32_t i = 0; i < m->thread_count; i++) {
        if (m->threads[i].pid == pid && m->threads[i].cpu >= 0)
            return;
        threads += m->threads[i].pid == pid;
    }
    if (threads == m->thread_count)
        return;
    for (uint32_t i = 0; i < m->thread_count; i++) {
        if (m->threads[i].pid == pid)
            emit_thread(m, 2, pid, m->threads[i].tid);
        else
            m->threads[kept++] = m->threads[i];
    }
    m->thread_count = kept;
    emit_process(m, 2, pid, 4);
}

static inline void make_machine(struct machine *m, uint64_t seed)
{
    *m = (struct machine){.now_raw = START_RAW + 10, .seed = seed, .next_id = 100};
    m->items = calloc(EVENTS, sizeof *m->items);
    CHECK(m->items != NULL);
    for (int i = 0; i < 5; i++)
        add_process(m, 3);
    while (m->count < EVENTS - 100) {
        uint64_t dice = draw(m, 100);
        if (dice < 60)
            do_switch(m);
        else if (dice < 98)
            do_work(m);
        else if (dice < 99)
            add_process(m, 1);
        else
            end_process(m);
    }
}

#endif
