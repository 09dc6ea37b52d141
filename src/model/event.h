/* SPDX-License-Identifier: MIT */
/*
 * One decoded event, as the tally counts it. It holds only what accounting needs; model/field.h has
 * every field of every event by its documented name.
 *
 * Text is not copied: it points into the record's payload, in the payload's encoding.
 */
#ifndef EW_MODEL_EVENT_H
#define EW_MODEL_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/pmc.h"

enum ew_event_kind {
    EW_EVENT_OTHER = 0, /* not accounted */

    EW_EVENT_PROCESS_START,
    EW_EVENT_PROCESS_END,
    EW_EVENT_PROCESS_THERE,    /* in the rundown at the session's start */
    EW_EVENT_PROCESS_STILL,    /* in the rundown at the session's end */
    EW_EVENT_PROCESS_DEFUNCT,  /* ended, but a handle to it is still open */
    EW_EVENT_PROCESS_COUNTERS, /* memory and faults, at exit or in the rundown */
    EW_EVENT_THREAD_START,
    EW_EVENT_THREAD_END,
    EW_EVENT_THREAD_THERE,
    EW_EVENT_THREAD_STILL,
    EW_EVENT_THREAD_NAME,

    EW_EVENT_SWITCH,
    EW_EVENT_READY,
    EW_EVENT_SAMPLE,          /* the profiler sampled this thread */
    EW_EVENT_SAMPLE_INTERVAL, /* the sampling interval from now on */
    EW_EVENT_INTERRUPT,       /* a DPC or ISR ended */

    EW_EVENT_FAULT, /* soft */
    EW_EVENT_HARD_FAULT,
    EW_EVENT_WORKING_SETS, /* gauges of many processes at once: see ew_decode_working_set */
    EW_EVENT_VIRTUAL_ALLOC,
    EW_EVENT_VIRTUAL_FREE,

    EW_EVENT_DISK_READ,
    EW_EVENT_DISK_WRITE,
    EW_EVENT_DISK_FLUSH,
    EW_EVENT_DISK_INIT, /* an I/O is issued to the disk; names the thread */
    EW_EVENT_FILE_READ,
    EW_EVENT_FILE_WRITE,
    EW_EVENT_NET_SEND,
    EW_EVENT_NET_RECEIVE,

    EW_EVENT_IMAGE_LOAD,
    EW_EVENT_IMAGE_UNLOAD,
    EW_EVENT_IMAGE_THERE,
    EW_EVENT_IMAGE_STILL,

    EW_EVENT_LOST, /* the session lost events or buffers */

    EW_EVENT_PMC_NAMES,     /* names of the hardware counters that events carry */
    EW_EVENT_PMC_DISTURBED, /* the counters are unreliable: another program used them */

    EW_EVENT_PRESENT, /* a frame is presented */
    EW_EVENT_GPU_DEVICE,
    EW_EVENT_GPU_CONTEXT,
    EW_EVENT_GPU_CONTEXT_END,
    EW_EVENT_GPU_QUEUE,  /* of a context, on a GPU that schedules itself */
    EW_EVENT_GPU_PACKET, /* work is given to an engine */
    EW_EVENT_GPU_PACKET_END,
    EW_EVENT_GPU_SUBMIT, /* work is submitted by a process */
    EW_EVENT_GPU_SUBMIT_END,
};

/* Text in a payload; wide: UTF-16LE. len is in bytes, without the terminator. */
struct ew_event_text {
    const uint8_t *bytes;
    uint32_t len;
    bool wide;
};

/* One entry of EW_EVENT_WORKING_SETS. */
struct ew_working_set {
    uint32_t pid;
    uint64_t working_set_bytes, commit_bytes, virtual_bytes, private_working_set_bytes;
};

struct ew_event {
    uint64_t t_ns;
    uint8_t kind; /* enum ew_event_kind */
    uint8_t version;
    uint16_t cpu;
    /* The subject: from the payload if it has one, else from the header, else EW_NO_ID. The latter
     * means the thread running on the CPU; for a completed disk I/O it means unknown, to be looked
     * up by its irp. */
    uint32_t pid, tid;
    /* From a manifest provider that duplicates a kernel class: if a recording has both, only one
     * may be counted. */
    bool from_manifest;
    union {
        struct {
            uint64_t key; /* unique while the process lives */
            uint32_t parent_pid, session_id;
            int32_t exit_status;
            uint32_t flags; /* 1 application id, 2 Wow64, 4 protected, 8 packaged */
            uint64_t start_filetime, exit_filetime;   /* 0: unknown */
            struct ew_event_text image, command_line; /* image: a name, or (wide) a path */
            const uint8_t *sid;                       /* of the user; NULL: not in the event */
            uint32_t sid_size;
        } process;
        struct {
            uint32_t fault_count, handle_count;
            uint64_t peak_virtual_bytes, peak_working_set_bytes, virtual_bytes, working_set_bytes,
                pagefile_bytes, private_bytes, pool_paged_bytes, pool_nonpaged_bytes;
        } counters;
        struct {
            uint64_t start_address, affinity;
            int8_t base_priority; /* valid if has_priority */
            bool has_priority, has_affinity;
            struct ew_event_text name; /* len 0: none */
        } thread;
        struct {
            uint32_t new_tid; /* the outgoing thread is tid */
            int8_t new_priority, old_priority;
            uint8_t old_state, old_wait_reason, old_wait_mode;
            uint32_t new_wait_ticks; /* clock ticks that the incoming thread waited */
            uint8_t pmc_count;       /* number of hardware counters of the CPU at this switch */
            const uint8_t *pmc;      /* their values, 8 bytes each, located before the payload */
        } cswitch;
        struct {
            uint8_t reason, increment, flags;
        } ready; /* tid became ready */
        struct {
            uint64_t ip;
            uint32_t count;
            bool in_dpc, in_isr, in_kernel;
        } sample;
        struct {
            uint64_t interval_100ns;
            uint32_t profile_source; /* 0: the timer */
        } interval;
        struct {
            uint64_t began_raw; /* the session's clock */
            uint64_t routine;
            bool is_isr;
        } interrupt;
        struct {
            uint64_t address, program_counter;
            uint64_t began_raw; /* hard faults */
            uint32_t bytes;
            uint8_t opcode; /* kind of soft fault: 10 transition … 15 access violation */
        } fault;
        struct {
            uint64_t base, bytes;
            uint32_t flags;
        } alloc;
        struct {
            uint64_t irp, file_object, offset;
            uint32_t bytes, disk;
            uint64_t response_raw; /* the session's clock; disk only */
        } io;
        struct {
            uint32_t bytes;
            bool udp, v6;
        } net;
        struct {
            uint64_t base, bytes;
            uint32_t checksum, timestamp;
            struct ew_event_text path;
        } image;
        struct {
            uint32_t what; /* 32 events, 33 buffers, 34 backing file */
        } lost;
        struct ew_pmc_map pmc_names;
        struct {
            uint64_t adapter, device, context, queue; /* handles */
            uint32_t pid;                             /* of the process; EW_NO_ID: unknown */
            uint32_t node, sequence, packet_type;
        } gpu;
    } u;
};

#endif
