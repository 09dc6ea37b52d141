/* SPDX-License-Identifier: MIT */
/*
 * Builders for the content of recordings, for unit tests and for make_etl: the payloads of the
 * kernel's classes in each version and pointer size, self-describing events, and a recording in
 * memory. The layouts are written here independently of src/decode/.
 */
#ifndef ETL_KIT_H
#define ETL_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "etl_writer.h"

/* ------------------------------------------------------------ payload bytes */

enum { ETL_PAYLOAD_ROOM = 16384 };

/* A payload under construction. Overflow ends the program: tests know their sizes. */
struct etl_payload {
    uint8_t bytes[ETL_PAYLOAD_ROOM];
    uint32_t size;
};

void etl_clear(struct etl_payload *p);
void etl_u8(struct etl_payload *p, unsigned value);
void etl_u16(struct etl_payload *p, unsigned value);
void etl_u32(struct etl_payload *p, uint32_t value);
void etl_u64(struct etl_payload *p, uint64_t value);
void etl_pointer(struct etl_payload *p, unsigned pointer_size, uint64_t value); /* 4 or 8 */
void etl_bytes(struct etl_payload *p, const void *bytes, size_t size);
void etl_ansi(struct etl_payload *p, const char *text); /* with terminator; NULL writes nothing */
void etl_wide(struct etl_payload *p, const char *text); /* UTF-16 from UTF-8, likewise */

/* "{3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c}", braces or not, as it is on disk. */
void etl_guid(const char *text, uint8_t ret_guid[16]);

/* ------------------------------------------------- kernel classes: payload only */

struct etl_process {
    uint64_t key, directory;
    uint32_t pid, parent_pid, session_id;
    int32_t exit_status;
    uint32_t flags;
    const uint8_t *sid; /* NULL: none */
    uint32_t sid_size;
    const char *image, *command_line, *package, *application; /* NULL: omitted */
    uint64_t exit_filetime;                                   /* version 5 */
};
void etl_process(struct etl_payload *p, unsigned version, unsigned ptr,
                 const struct etl_process *x);

struct etl_counters {
    uint32_t pid, fault_count, handle_count;
    uint64_t peak_virtual, peak_working_set, peak_pagefile, peak_paged, peak_nonpaged,
        virtual_bytes, working_set, pagefile, paged, nonpaged, private_bytes;
};
void etl_counters(struct etl_payload *p, unsigned ptr, const struct etl_counters *x);

struct etl_thread {
    uint32_t pid, tid;
    uint64_t stack_base, stack_limit, user_stack_base, user_stack_limit, start, win32_start, teb,
        affinity;
    uint32_t tag;
    int8_t base_priority;
    uint8_t wait_mode, page_priority, io_priority, flags;
    const char *name; /* versions 3 and 4; NULL: without */
};
void etl_thread(struct etl_payload *p, unsigned version, unsigned ptr, const struct etl_thread *x);
/* The end event of version 1: only the IDs. */
void etl_thread_short(struct etl_payload *p, unsigned version, uint32_t pid, uint32_t tid);
void etl_thread_name(struct etl_payload *p, uint32_t pid, uint32_t tid, const char *name);

struct etl_switch {
    uint32_t new_tid, old_tid;
    int8_t new_priority, old_priority;
    uint8_t previous_cstate, wait_reason, wait_mode, state, ideal_cpu;
    uint32_t new_wait_ticks;
};
void etl_switch(struct etl_payload *p, unsigned version, const struct etl_switch *x);
void etl_ready(struct etl_payload *p, uint32_t tid, int reason, int increment, unsigned flags);

void etl_sample(struct etl_payload *p, unsigned version, unsigned ptr, uint64_t ip, uint32_t tid,
                unsigned count, unsigned flags);
void etl_sample_interval(struct etl_payload *p, unsigned version, uint32_t source,
                         uint32_t now_100ns, uint32_t before_100ns);
/* The names of the hardware counters that events carry, in order. */
void etl_counter_names(struct etl_payload *p, const char *const *names, uint32_t count);
void etl_counter_corruption(struct etl_payload *p, uint32_t cpu, uint32_t source,
                            uint64_t good_raw);
void etl_dpc(struct etl_payload *p, unsigned ptr, uint64_t began_raw, uint64_t routine);
void etl_isr(struct etl_payload *p, unsigned ptr, uint64_t began_raw, uint64_t routine,
             unsigned handled, unsigned vector);
void etl_fault(struct etl_payload *p, unsigned ptr, uint64_t address, uint64_t program_counter);
struct etl_hard_fault {
    uint64_t began_raw, offset, address, file_object;
    uint32_t tid, bytes;
};
void etl_hard_fault(struct etl_payload *p, unsigned ptr, const struct etl_hard_fault *x);
void etl_virtual(struct etl_payload *p, unsigned ptr, uint64_t base, uint64_t size, uint32_t pid,
                 uint32_t flags);
struct etl_working_set {
    uint32_t pid;
    uint64_t working_set, commit, virtual_size, private_working_set; /* pages */
};
void etl_working_sets(struct etl_payload *p, unsigned version, unsigned ptr,
                      const struct etl_working_set *sets, uint32_t count);

struct etl_disk {
    uint32_t disk, irp_flags, bytes;
    uint64_t offset, file_object, irp, response_ticks;
    uint32_t tid;
};
void etl_disk(struct etl_payload *p, unsigned version, unsigned ptr, const struct etl_disk *x);
void etl_disk_init(struct etl_payload *p, unsigned version, unsigned ptr, uint64_t irp,
                   uint32_t tid);
void etl_disk_flush(struct etl_payload *p, unsigned version, unsigned ptr,
                    const struct etl_disk *x);
struct etl_file {
    uint64_t offset, irp, file_object, file_key;
    uint32_t tid, bytes, flags;
};
void etl_file(struct etl_payload *p, unsigned version, unsigned ptr, const struct etl_file *x);
void etl_file_name(struct etl_payload *p, unsigned ptr, uint64_t file_object, const char *path);

struct etl_image {
    uint64_t base, size, default_base;
    uint32_t pid, checksum, timestamp;
    const char *path;
};
void etl_image(struct etl_payload *p, unsigned version, unsigned ptr, const struct etl_image *x);

void etl_stack(struct etl_payload *p, unsigned ptr, uint64_t event_raw, uint32_t pid, uint32_t tid,
               const uint64_t *frames, size_t count);
void etl_stack_key(struct etl_payload *p, unsigned ptr, uint64_t event_raw, uint32_t pid,
                   uint32_t tid, uint64_t key);
void etl_stack_definition(struct etl_payload *p, unsigned ptr, uint64_t key, const uint64_t *frames,
                          size_t count);

struct etl_net {
    uint32_t pid, bytes;
    uint8_t remote[16], local[16]; /* the first 4 for IPv4 */
    uint16_t remote_port, local_port;
    uint32_t start_time, end_time, sequence;
    uint64_t connection;
};
/* The opcode determines the fields: 10 send, 11 receive, …; + 16 for IPv6. */
void etl_tcp(struct etl_payload *p, unsigned ptr, unsigned opcode, const struct etl_net *x);
void etl_udp(struct etl_payload *p, unsigned ptr, unsigned opcode, const struct etl_net *x);

void etl_extension(struct etl_payload *p, const uint32_t group_mask[8], uint32_t kernel_version);

/* ------------------------------------------------------- self-describing events */

/* TraceLogging: the metadata of one event, as in the extended item of type 0xB. */
void etl_tlg_begin(struct etl_payload *p, const char *event_name);
/* A field. in_type with its flags (0x20 constant count, 0x40 variable count), out_type 0: none. */
void etl_tlg_field(struct etl_payload *p, const char *name, unsigned in_type, unsigned out_type);
void etl_tlg_array(struct etl_payload *p, const char *name, unsigned in_type, unsigned count);
void etl_tlg_struct(struct etl_payload *p, const char *name, unsigned field_count);
void etl_tlg_end(struct etl_payload *p);
/* Provider traits: the provider's name, extended item of type 0xC. */
void etl_tlg_provider(struct etl_payload *p, const char *name);
/* Frames data as an extended item, padded to 8. more: another item follows. */
void etl_extended(struct etl_payload *p, unsigned type, const void *data, size_t size, bool more);

/* EventSource: one chunk of a manifest; the event has id 0xFFFE. */
void etl_manifest_chunk(struct etl_payload *p, unsigned chunk, unsigned chunk_count,
                        const void *bytes, size_t size);

/* KernelTraceControl event metadata (TRACE_EVENT_INFO): class etl_ktc_metadata, opcode 32. */
extern const uint8_t etl_ktc_metadata[16];
extern const uint8_t etl_rt_lost[16]; /* opcodes 32 events, 33 buffers, 34 file */
struct etl_property {
    const char *name;
    unsigned in_type, out_type, count, length;
    uint32_t flags;
};
struct etl_event_info {
    const uint8_t *provider;
    uint16_t id, task;
    uint8_t version, channel, level, opcode;
    uint64_t keyword;
    const char *provider_name, *task_name, *opcode_name; /* NULL: none */
    const struct etl_property *properties;
    uint32_t property_count;
};
void etl_event_info(struct etl_payload *p, const struct etl_event_info *x);

/* ------------------------------------------------------------------- recordings */

/* A recording in memory, for ew_etl_open_memory. */
struct etl_memory {
    uint8_t *bytes;
    size_t size, room;
};
void etl_memory_free(struct etl_memory *memory);
/* For the writer's config. */
int etl_memory_write(void *ctx, const void *bytes, size_t len);
int etl_memory_rewrite(void *ctx, uint64_t offset, const void *bytes, size_t len);

/*
 * Writes an event of a kernel class with its usual header: PERFINFO for events of the scheduler,
 * the profiler and the rundown, SYSTEM with these IDs for the others.
 */
int etl_write_kernel(struct ew_etl_writer *writer, unsigned ptr, unsigned hook, unsigned version,
                     uint16_t cpu, uint64_t t_raw, uint32_t pid, uint32_t tid,
                     const struct etl_payload *payload);
/* The same with hardware counters of the CPU, which only the short header can carry. */
int etl_write_counted(struct ew_etl_writer *writer, unsigned ptr, unsigned hook, unsigned version,
                      uint16_t cpu, uint64_t t_raw, const uint64_t *counters, uint32_t count,
                      const struct etl_payload *payload);

#endif
