/* SPDX-License-Identifier: MIT */
/* The payloads of the kernel's classes, field by field as Windows writes them. */
#include "etl_kit.h"

void etl_process(struct etl_payload *p, unsigned version, unsigned ptr, const struct etl_process *x)
{
    etl_clear(p);
    if (version == 0) {
        etl_pointer(p, ptr, x->pid);
        etl_pointer(p, ptr, x->parent_pid);
    } else {
        etl_pointer(p, ptr, x->key);
        etl_u32(p, x->pid);
        etl_u32(p, x->parent_pid);
        etl_u32(p, x->session_id);
        etl_u32(p, (uint32_t)x->exit_status);
    }
    if (version >= 3)
        etl_pointer(p, ptr, x->directory);
    if (version >= 4)
        etl_u32(p, x->flags);
    if (x->sid) {
        /* A TOKEN_USER as it was in memory, followed by the data it pointed to. */
        etl_pointer(p, ptr, 0xFFFFA00012345678);
        etl_pointer(p, ptr, 0);
        etl_bytes(p, x->sid, x->sid_size);
    } else {
        etl_u32(p, 0);
    }
    etl_ansi(p, x->image);
    if (version >= 2)
        etl_wide(p, x->command_line);
    if (version >= 4) {
        etl_wide(p, x->package);
        etl_wide(p, x->application);
    }
    if (version >= 5)
        etl_u64(p, x->exit_filetime);
}

void etl_counters(struct etl_payload *p, unsigned ptr, const struct etl_counters *x)
{
    const uint64_t sizes[11] = {x->peak_virtual, x->peak_working_set, x->peak_pagefile,
                                x->peak_paged,   x->peak_nonpaged,    x->virtual_bytes,
                                x->working_set,  x->pagefile,         x->paged,
                                x->nonpaged,     x->private_bytes};
    etl_clear(p);
    etl_u32(p, x->pid);
    etl_u32(p, x->fault_count);
    etl_u32(p, x->handle_count);
    etl_u32(p, 0);
    for (int i = 0; i < 11; i++)
        etl_pointer(p, ptr, sizes[i]);
}

void etl_thread(struct etl_payload *p, unsigned version, unsigned ptr, const struct etl_thread *x)
{
    etl_clear(p);
    etl_u32(p, version == 0 ? x->tid : x->pid);
    etl_u32(p, version == 0 ? x->pid : x->tid);
    if (version == 0)
        return;
    etl_pointer(p, ptr, x->stack_base);
    etl_pointer(p, ptr, x->stack_limit);
    etl_pointer(p, ptr, x->user_stack_base);
    etl_pointer(p, ptr, x->user_stack_limit);
    etl_pointer(p, ptr, version >= 3 ? x->affinity : x->start);
    etl_pointer(p, ptr, x->win32_start);
    if (version == 1) {
        etl_u8(p, x->wait_mode);
        return;
    }
    etl_pointer(p, ptr, x->teb);
    etl_u32(p, x->tag);
    if (version == 2)
        return;
    etl_u8(p, (uint8_t)x->base_priority);
    etl_u8(p, x->page_priority);
    etl_u8(p, x->io_priority);
    etl_u8(p, x->flags);
    etl_wide(p, x->name);
}

void etl_thread_short(struct etl_payload *p, unsigned version, uint32_t pid, uint32_t tid)
{
    etl_clear(p);
    etl_u32(p, version == 0 ? tid : pid);
    etl_u32(p, version == 0 ? pid : tid);
}

void etl_thread_name(struct etl_payload *p, uint32_t pid, uint32_t tid, const char *name)
{
    etl_clear(p);
    etl_u32(p, pid);
    etl_u32(p, tid);
    etl_wide(p, name);
}

void etl_switch(struct etl_payload *p, unsigned version, const struct etl_switch *x)
{
    etl_clear(p);
    etl_u32(p, x->new_tid);
    etl_u32(p, x->old_tid);
    etl_u8(p, (uint8_t)x->new_priority);
    etl_u8(p, (uint8_t)x->old_priority);
    etl_u8(p, x->previous_cstate);
    etl_u8(p, 0);
    etl_u8(p, x->wait_reason);
    etl_u8(p, x->wait_mode);
    etl_u8(p, x->state);
    etl_u8(p, x->ideal_cpu);
    if (version < 2)
        return;
    etl_u32(p, x->new_wait_ticks);
    etl_u32(p, 0);
}

void etl_ready(struct etl_payload *p, uint32_t tid, int reason, int increment, unsigned flags)
{
    etl_clear(p);
    etl_u32(p, tid);
    etl_u8(p, (uint8_t)reason);
    etl_u8(p, (uint8_t)increment);
    etl_u8(p, flags);
    etl_u8(p, 0);
}

void etl_sample(struct etl_payload *p, unsigned version, unsigned ptr, uint64_t ip, uint32_t tid,
                unsigned count, unsigned flags)
{
    etl_clear(p);
    etl_pointer(p, ptr, ip);
    etl_u32(p, tid);
    etl_u16(p, count);
    if (version >= 2) {
        etl_u8(p, flags);
        etl_u8(p, 0);
    }
}

void etl_sample_interval(struct etl_payload *p, unsigned version, uint32_t source,
                         uint32_t now_100ns, uint32_t before_100ns)
{
    etl_clear(p);
    etl_u32(p, source);
    etl_u32(p, now_100ns);
    etl_u32(p, before_100ns);
    if (version >= 3)
        etl_wide(p, source == 0 ? "Timer" : "Other");
}

void etl_counter_names(struct etl_payload *p, const char *const *names, uint32_t count)
{
    etl_clear(p);
    etl_u32(p, count);
    for (uint32_t i = 0; i < count; i++)
        etl_wide(p, names[i]);
}

void etl_counter_corruption(struct etl_payload *p, uint32_t cpu, uint32_t source, uint64_t good_raw)
{
    etl_clear(p);
    etl_u32(p, cpu);
    etl_u32(p, 1);
    etl_u32(p, source);
    etl_u64(p, good_raw);
}

void etl_dpc(struct etl_payload *p, unsigned ptr, uint64_t began_raw, uint64_t routine)
{
    etl_clear(p);
    etl_u64(p, began_raw);
    etl_pointer(p, ptr, routine);
}

void etl_isr(struct etl_payload *p, unsigned ptr, uint64_t began_raw, uint64_t routine,
             unsigned handled, unsigned vector)
{
    etl_dpc(p, ptr, began_raw, routine);
    etl_u8(p, handled);
    etl_u16(p, vector);
    etl_u8(p, 0);
}

void etl_fault(struct etl_payload *p, unsigned ptr, uint64_t address, uint64_t program_counter)
{
    etl_clear(p);
    etl_pointer(p, ptr, address);
    etl_pointer(p, ptr, program_counter);
}

void etl_hard_fault(struct etl_payload *p, unsigned ptr, const struct etl_hard_fault *x)
{
    etl_clear(p);
    etl_u64(p, x->began_raw);
    etl_u64(p, x->offset);
    etl_pointer(p, ptr, x->address);
    etl_pointer(p, ptr, x->file_object);
    etl_u32(p, x->tid);
    etl_u32(p, x->bytes);
}

void etl_virtual(struct etl_payload *p, unsigned ptr, uint64_t base, uint64_t size, uint32_t pid,
                 uint32_t flags)
{
    etl_clear(p);
    etl_pointer(p, ptr, base);
    etl_pointer(p, ptr, size);
    etl_u32(p, pid);
    etl_u32(p, flags);
}

void etl_working_sets(struct etl_payload *p, unsigned version, unsigned ptr,
                      const struct etl_working_set *sets, uint32_t count)
{
    etl_clear(p);
    etl_u32(p, count);
    for (uint32_t i = 0; i < count; i++) {
        etl_u32(p, sets[i].pid);
        etl_pointer(p, ptr, sets[i].working_set);
        etl_pointer(p, ptr, sets[i].commit);
        etl_pointer(p, ptr, sets[i].virtual_size);
        etl_pointer(p, ptr, sets[i].private_working_set);
        for (int k = 0; version >= 2 && k < 4; k++)
            etl_pointer(p, ptr, 0);
    }
}

void etl_disk(struct etl_payload *p, unsigned version, unsigned ptr, const struct etl_disk *x)
{
    etl_clear(p);
    etl_u32(p, x->disk);
    etl_u32(p, x->irp_flags);
    etl_u32(p, x->bytes);
    etl_u32(p, version < 2 ? (uint32_t)x->response_ticks : 0);
    etl_u64(p, x->offset);
    etl_pointer(p, ptr, x->file_object);
    if (version >= 2)
        etl_pointer(p, ptr, x->irp);
    if (version >= 1)
        etl_u64(p, x->response_ticks);
    if (version >= 3)
        etl_u32(p, x->tid);
}

void etl_disk_init(struct etl_payload *p, unsigned version, unsigned ptr, uint64_t irp,
                   uint32_t tid)
{
    etl_clear(p);
    etl_pointer(p, ptr, irp);
    if (version >= 3)
        etl_u32(p, tid);
}

void etl_disk_flush(struct etl_payload *p, unsigned version, unsigned ptr, const struct etl_disk *x)
{
    etl_clear(p);
    etl_u32(p, x->disk);
    etl_u32(p, x->irp_flags);
    etl_u64(p, x->response_ticks);
    etl_pointer(p, ptr, x->irp);
    if (version >= 3)
        etl_u32(p, x->tid);
}

void etl_file(struct etl_payload *p, unsigned version, unsigned ptr, const struct etl_file *x)
{
    etl_clear(p);
    etl_u64(p, x->offset);
    etl_pointer(p, ptr, x->irp);
    if (version < 3)
        etl_pointer(p, ptr, x->tid);
    etl_pointer(p, ptr, x->file_object);
    etl_pointer(p, ptr, x->file_key);
    if (version >= 3)
        etl_u32(p, x->tid);
    etl_u32(p, x->bytes);
    etl_u32(p, x->flags);
    if (version >= 3 && ptr == 8)
        etl_u32(p, 0);
}

void etl_file_name(struct etl_payload *p, unsigned ptr, uint64_t file_object, const char *path)
{
    etl_clear(p);
    etl_pointer(p, ptr, file_object);
    etl_wide(p, path);
}

void etl_image(struct etl_payload *p, unsigned version, unsigned ptr, const struct etl_image *x)
{
    etl_clear(p);
    etl_pointer(p, ptr, x->base);
    etl_pointer(p, ptr, x->size);
    if (version >= 1)
        etl_u32(p, x->pid);
    if (version >= 2) {
        etl_u32(p, x->checksum);
        etl_u32(p, x->timestamp);
        etl_u32(p, version >= 3 ? 0x0004 : 0); /* signature level and type */
        etl_pointer(p, ptr, x->default_base);
        for (int i = 0; i < 4; i++)
            etl_u32(p, 0);
    }
    etl_wide(p, x->path);
}

void etl_stack(struct etl_payload *p, unsigned ptr, uint64_t event_raw, uint32_t pid, uint32_t tid,
               const uint64_t *frames, size_t count)
{
    etl_clear(p);
    etl_u64(p, event_raw);
    etl_u32(p, pid);
    etl_u32(p, tid);
    for (size_t i = 0; i < count; i++)
        etl_pointer(p, ptr, frames[i]);
}

void etl_stack_key(struct etl_payload *p, unsigned ptr, uint64_t event_raw, uint32_t pid,
                   uint32_t tid, uint64_t key)
{
    etl_stack(p, ptr, event_raw, pid, tid, &key, 1);
}

void etl_stack_definition(struct etl_payload *p, unsigned ptr, uint64_t key, const uint64_t *frames,
                          size_t count)
{
    etl_clear(p);
    etl_pointer(p, ptr, key);
    for (size_t i = 0; i < count; i++)
        etl_pointer(p, ptr, frames[i]);
}

/* Ports are in network order. */
static void put_ports(struct etl_payload *p, const struct etl_net *x)
{
    etl_u16(p, (unsigned)(x->remote_port >> 8 | (x->remote_port & 0xFF) << 8));
    etl_u16(p, (unsigned)(x->local_port >> 8 | (x->local_port & 0xFF) << 8));
}

void etl_udp(struct etl_payload *p, unsigned ptr, unsigned opcode, const struct etl_net *x)
{
    size_t address = opcode >= 26 ? 16 : 4;
    etl_clear(p);
    etl_u32(p, x->pid);
    etl_u32(p, x->bytes);
    etl_bytes(p, x->remote, address);
    etl_bytes(p, x->local, address);
    put_ports(p, x);
    etl_u32(p, x->sequence);
    etl_pointer(p, ptr, x->connection);
}

void etl_tcp(struct etl_payload *p, unsigned ptr, unsigned opcode, const struct etl_net *x)
{
    if (opcode != 10 && opcode != 26) {
        etl_udp(p, ptr, opcode, x);
        return;
    }
    size_t address = opcode >= 26 ? 16 : 4;
    etl_clear(p);
    etl_u32(p, x->pid);
    etl_u32(p, x->bytes);
    etl_bytes(p, x->remote, address);
    etl_bytes(p, x->local, address);
    put_ports(p, x);
    etl_u32(p, x->start_time);
    etl_u32(p, x->end_time);
    etl_u32(p, x->sequence);
    etl_pointer(p, ptr, x->connection);
}

void etl_extension(struct etl_payload *p, const uint32_t group_mask[8], uint32_t kernel_version)
{
    etl_clear(p);
    for (int i = 0; i < 8; i++)
        etl_u32(p, group_mask[i]);
    etl_u32(p, kernel_version);
}
