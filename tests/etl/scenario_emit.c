/* SPDX-License-Identifier: MIT */
/* Writes what happens on the synthetic machine as the events of its Windows version. */
#include <stdio.h>
#include <string.h>

#include "scenario_machine.h"

enum { NO_ID_TID = 8, SYSTEM_PID = 4 };

static unsigned process_version(bool old, unsigned opcode)
{
    if (opcode == 10)
        return old ? 2 : 3; /* an image */
    if (opcode == 11 || opcode >= 32)
        return 2;
    return old ? 3 : 4;
}

static unsigned version_of(const struct machine *m, unsigned hook)
{
    bool old = m->config.windows7;
    unsigned opcode = hook & 0xFF;
    switch (hook >> 8) {
    case 0x03:
        return process_version(old, opcode);
    case 0x05:
        if (opcode == 36)
            return old ? 2 : 4;
        return opcode == 50 ? 2 : 3;
    case 0x01:
    case 0x04:
    case 0x14:
        return old ? 2 : 3;
    case 0x0F:
        return opcode >= 72 ? 3 : 2;
    default:
        return 2;
    }
}

static void emit_at(struct machine *m, uint16_t cpu, uint64_t t_raw, unsigned hook, uint32_t by)
{
    uint32_t pid = by == ETL_IDLE ? SYSTEM_PID : m->truth.threads[by].pid;
    uint32_t tid = by == ETL_IDLE ? NO_ID_TID : m->truth.threads[by].tid;
    int rc = etl_write_kernel(m->writer, m->config.pointer_size, hook, version_of(m, hook), cpu,
                              t_raw, pid, tid, &m->payload);
    if (rc < 0 && m->error == 0)
        m->error = rc;
    m->truth.events++;
}

static void emit(struct machine *m, uint16_t cpu, unsigned hook, uint32_t by)
{
    emit_at(m, cpu, m->now, hook, by);
}

void emit_short(struct machine *m, uint16_t cpu, unsigned hook)
{
    emit(m, cpu, hook, ETL_IDLE);
}

static uint32_t tid_of(const struct machine *m, uint32_t thread)
{
    return thread == ETL_IDLE ? 0 : m->truth.threads[thread].tid;
}

void emit_session_start(struct machine *m)
{
    /* PERF_… groups: every class that the machine logs. */
    static const uint32_t mask[8] = {0x0601370F, 0xC286, 0x40, 0, 0, 0, 0, 0};
    etl_extension(&m->payload, mask, 70);
    emit(m, 0, 0x0005, ETL_IDLE);
    if (machine_has(m, ETL_SAMPLES)) {
        uint32_t interval = m->config.sample_100ns;
        etl_sample_interval(&m->payload, 3, 0, interval, interval);
        emit(m, 0, 0x0F49, ETL_IDLE);
    }
    bool named = m->config.counters != ETL_COUNTERS_UNNAMED &&
                 m->config.counters != ETL_COUNTERS_NAMED_LATE &&
                 m->config.counters != ETL_COUNTERS_OURS;
    if (machine_has(m, ETL_COUNTERS) && named)
        emit_counter_names(m, false);
}

void emit_process(struct machine *m, uint16_t cpu, uint32_t process, unsigned opcode, uint32_t by)
{
    /* S-1-5-18 */
    static const uint8_t sid[] = {1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0};
    const struct etl_truth_process *p = &m->truth.processes[process];
    char command[96];
    snprintf(command, sizeof command, "\"C:\\Program Files\\%s\" --number %u", p->name,
             (unsigned)process);
    struct etl_process x = {.key = p->key,
                            .directory = 0x1ad000 + process * 0x1000,
                            .pid = p->pid,
                            .parent_pid = p->parent_pid,
                            .session_id = p->session_id,
                            .exit_status = p->exit_status,
                            .flags = process % 7 == 0 ? 2 : 0,
                            .sid = process % 2 ? sid : NULL,
                            .sid_size = sizeof sid,
                            .image = p->name,
                            .command_line = command,
                            .package = "",
                            .application = ""};
    etl_process(&m->payload, version_of(m, 0x0300u | opcode), m->config.pointer_size, &x);
    emit(m, cpu, 0x0300u | opcode, by);
}

void emit_terminate(struct machine *m, uint16_t cpu, uint32_t process, uint32_t by)
{
    etl_clear(&m->payload);
    etl_u32(&m->payload, m->truth.processes[process].pid);
    emit(m, cpu, 0x030B, by);
}

void emit_counters(struct machine *m, uint16_t cpu, uint32_t process, unsigned opcode)
{
    const struct etl_truth_process *p = &m->truth.processes[process];
    if (!machine_has(m, ETL_MEMORY))
        return;
    uint64_t peak = p->working_set_peak_bytes;
    struct etl_counters x = {.pid = p->pid,
                             .fault_count = process * 100,
                             .handle_count = 50 + process,
                             .peak_virtual = 8 * peak,
                             .peak_working_set = peak,
                             .peak_pagefile = peak / 2,
                             .peak_paged = 4096,
                             .peak_nonpaged = 2048,
                             .virtual_bytes = 4 * peak,
                             .working_set = peak / 4 * 3,
                             .pagefile = peak / 4,
                             .paged = 2048,
                             .nonpaged = 1024,
                             .private_bytes = peak / 2};
    etl_counters(&m->payload, m->config.pointer_size, &x);
    emit(m, cpu, 0x0300u | opcode, ETL_IDLE);
}

void emit_thread(struct machine *m, uint16_t cpu, uint32_t thread, unsigned opcode, uint32_t by)
{
    const struct etl_truth_thread *t = &m->truth.threads[thread];
    static const char *const names[] = {"", "worker", "render"};
    struct etl_thread x = {.pid = t->pid,
                           .tid = t->tid,
                           .stack_base = 0xFFFFF88003000000 + thread * 0x7000u,
                           .stack_limit = 0xFFFFF88002FFA000 + thread * 0x7000u,
                           .user_stack_base = 0x140000,
                           .user_stack_limit = 0x132000,
                           .start = 0x77001000,
                           .win32_start = 0x7FF700001000,
                           .teb = 0x7FF5FFFD0000,
                           .affinity = 0xFF,
                           .base_priority = m->threads[thread].priority,
                           .page_priority = 5,
                           .io_priority = 2,
                           .name = m->config.windows7 ? NULL : names[thread % 3]};
    etl_thread(&m->payload, 3, m->config.pointer_size, &x);
    emit(m, cpu, 0x0500u | opcode, by);
}

void emit_image(struct machine *m, uint16_t cpu, uint32_t process, unsigned hook, uint32_t nth)
{
    static const char *const libraries[] = {"\\Windows\\System32\\ntdll.dll",
                                            "\\Windows\\System32\\kernel32.dll"};
    const struct etl_truth_process *p = &m->truth.processes[process];
    char path[128];
    if (nth == 0)
        snprintf(path, sizeof path, "\\Device\\HarddiskVolume3\\Program Files\\%s", p->name);
    else
        snprintf(path, sizeof path, "\\Device\\HarddiskVolume3%s", libraries[(nth - 1) % 2]);
    struct etl_image x = {.base = 0x7FF600000000 + (uint64_t)nth * 0x10000000,
                          .size = 0x1F0000,
                          .default_base = 0x140000000,
                          .pid = p->pid,
                          .checksum = 0x12345 + nth,
                          .timestamp = 0x5F000000 + nth,
                          .path = path};
    etl_image(&m->payload, version_of(m, 0x1403), m->config.pointer_size, &x);
    emit(m, cpu, hook, ETL_IDLE);
}

void emit_switch(struct machine *m, uint16_t cpu, uint32_t from, uint32_t to, unsigned state)
{
    if (!machine_has(m, ETL_SWITCHES))
        return;
    struct etl_switch x = {.new_tid = tid_of(m, to),
                           .old_tid = tid_of(m, from),
                           .new_priority = to == ETL_IDLE ? 0 : m->threads[to].priority,
                           .old_priority = from == ETL_IDLE ? 0 : m->threads[from].priority,
                           .wait_reason = (uint8_t)(state == 5 ? 6 + m->now % 10 : 0),
                           .wait_mode = (uint8_t)(m->now % 2),
                           .state = (uint8_t)state,
                           .ideal_cpu = (uint8_t)cpu};
    if (to != ETL_IDLE)
        x.new_wait_ticks = (uint32_t)((m->now - m->threads[to].ready_raw) / 156250);
    etl_switch(&m->payload, version_of(m, 0x0524), &x);
    uint64_t counters[ETL_COUNTER_COUNT];
    uint32_t count = carry_counters(m, cpu, counters);
    if (count == 0) {
        emit(m, cpu, 0x0524, ETL_IDLE);
        return;
    }
    int rc = etl_write_counted(m->writer, m->config.pointer_size, 0x0524, version_of(m, 0x0524),
                               cpu, m->now, counters, count, &m->payload);
    if (rc < 0 && m->error == 0)
        m->error = rc;
    m->truth.events++;
}

void emit_ready(struct machine *m, uint16_t cpu, uint32_t thread)
{
    if (!machine_has(m, ETL_READY))
        return;
    etl_ready(&m->payload, tid_of(m, thread), 1, 0, (unsigned)(m->now & 1));
    emit(m, cpu, 0x0532, ETL_IDLE);
}

void emit_sample(struct machine *m, uint16_t cpu, uint32_t thread, uint64_t t_raw)
{
    uint64_t ip = (thread == ETL_IDLE ? 0xFFFFF80201230000 : 0x7FF600001000) + t_raw % 4096;
    etl_sample(&m->payload, 2, m->config.pointer_size, ip, tid_of(m, thread), 1, 8u << 3);
    emit_at(m, cpu, t_raw, 0x0F2E, ETL_IDLE);
    if (machine_has(m, ETL_STACKS) && thread != ETL_IDLE && t_raw % 3 == 0)
        emit_stack(m, cpu, thread, t_raw);
}

void emit_interrupt(struct machine *m, uint16_t cpu, bool is_isr, uint64_t began_raw)
{
    unsigned ptr = m->config.pointer_size;
    uint64_t routine = 0xFFFFF80204560000 + began_raw % 16 * 0x100;
    if (is_isr)
        etl_isr(&m->payload, ptr, began_raw, routine, 1, 0x91);
    else
        etl_dpc(&m->payload, ptr, began_raw, routine);
    static const unsigned dpcs[] = {0x0F44, 0x0F44, 0x0F44, 0x0F45};
    emit(m, cpu, is_isr ? 0x0F43 : dpcs[began_raw % 4], ETL_IDLE);
}

void emit_fault(struct machine *m, uint16_t cpu, unsigned opcode)
{
    etl_fault(&m->payload, m->config.pointer_size, 0x1F0000000 + m->now % 65536 * 4096,
              0x7FF600002000 + m->now % 256);
    emit(m, cpu, 0x0200u | opcode, ETL_IDLE);
}

void emit_hard_fault(struct machine *m, uint16_t cpu, uint32_t thread, uint64_t began_raw)
{
    struct etl_hard_fault x = {.began_raw = began_raw,
                               .offset = m->now % 1000 * 4096,
                               .address = 0x7FF600003000,
                               .file_object = 0xFFFFA48900005000,
                               .tid = tid_of(m, thread),
                               .bytes = 32768};
    etl_hard_fault(&m->payload, m->config.pointer_size, &x);
    emit(m, cpu, 0x0220, ETL_IDLE);
}

void emit_virtual(struct machine *m, uint16_t cpu, uint32_t process, bool is_free)
{
    etl_virtual(&m->payload, m->config.pointer_size, 0x1F0000000, 65536,
                m->truth.processes[process].pid, is_free ? 0x8000 : 0x1000);
    emit(m, cpu, is_free ? 0x0263 : 0x0262, ETL_IDLE);
}

void emit_disk_begin(struct machine *m, uint16_t cpu, const struct machine_io *io)
{
    etl_disk_init(&m->payload, version_of(m, 0x010C), m->config.pointer_size, io->irp,
                  tid_of(m, io->thread));
    emit(m, cpu, io->is_write ? 0x010D : 0x010C, io->thread);
}

void emit_disk_end(struct machine *m, uint16_t cpu, const struct machine_io *io)
{
    struct etl_disk x = {.disk = 0,
                         .irp_flags = 0x60043,
                         .bytes = io->bytes,
                         .offset = io->irp % 100000 * 512,
                         .file_object = 0xFFFFA48900006000,
                         .irp = io->irp,
                         .response_ticks = m->now - io->began_raw,
                         .tid = tid_of(m, io->thread)};
    etl_disk(&m->payload, version_of(m, 0x010A), m->config.pointer_size, &x);
    emit(m, cpu, io->is_write ? 0x010B : 0x010A, ETL_IDLE);
}

void emit_file(struct machine *m, uint16_t cpu, uint32_t thread, bool is_write, uint32_t bytes)
{
    struct etl_file x = {.offset = m->now % 4096,
                         .irp = 0xFFFFA48900007000,
                         .file_object = 0xFFFFA48900006000,
                         .file_key = 0xFFFFA48900008000,
                         .tid = tid_of(m, thread),
                         .bytes = bytes,
                         .flags = 0x60900};
    etl_file(&m->payload, version_of(m, 0x0443), m->config.pointer_size, &x);
    emit(m, cpu, is_write ? 0x0444 : 0x0443, thread);
}

void emit_net(struct machine *m, uint16_t cpu, uint32_t process, bool is_send, uint32_t bytes)
{
    struct etl_net x = {.pid = m->truth.processes[process].pid,
                        .bytes = bytes,
                        .remote = {10, 0, 0, 1, [15] = 1},
                        .local = {192, 168, 0, 7, [15] = 7},
                        .remote_port = 443,
                        .local_port = (uint16_t)(50000 + m->now % 1000),
                        .start_time = 1,
                        .end_time = 2,
                        .connection = 0};
    bool is_udp = m->now % 4 == 0, is_v6 = m->now % 3 == 0;
    unsigned opcode = (is_send ? 10u : 11u) + (is_v6 ? 16u : 0u);
    (is_udp ? etl_udp : etl_tcp)(&m->payload, m->config.pointer_size, opcode, &x);
    emit(m, cpu, (is_udp ? 0x0800u : 0x0600u) | opcode, ETL_IDLE);
}

void emit_memory(struct machine *m, uint16_t cpu)
{
    enum { MAX_SETS = 200 };
    struct etl_working_set sets[MAX_SETS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->truth.process_count && count < MAX_SETS; i++) {
        const struct etl_truth_process *p = &m->truth.processes[i];
        if (p->end_raw != 0)
            continue;
        uint64_t pages = p->working_set_peak_bytes / 4096;
        sets[count++] =
            (struct etl_working_set){p->pid, pages / 4 * 3, pages, 4 * pages, pages / 2};
    }
    etl_working_sets(&m->payload, 2, m->config.pointer_size, sets, count);
    emit(m, cpu, 0x027D, ETL_IDLE);
}

void emit_stack(struct machine *m, uint16_t cpu, uint32_t thread, uint64_t event_raw)
{
    const uint64_t frames[] = {0xFFFFF80201230010, 0xFFFFF80201231020, 0x7FF600001234,
                               0x7FF600004321};
    const struct etl_truth_thread *t = &m->truth.threads[thread];
    etl_stack(&m->payload, m->config.pointer_size, event_raw, t->pid, t->tid, frames,
              2 + event_raw % 3);
    emit_at(m, cpu, event_raw, 0x1820, ETL_IDLE);
}
