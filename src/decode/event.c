/* SPDX-License-Identifier: MIT */
/*
 * Decodes what accounting needs of a record. The most frequent classes (switches, ready threads,
 * samples, faults, interrupts) are decoded here: one jump by class, one by opcode, one length
 * check, loads from fixed offsets. Layouts depend on version and length; payloads longer than known
 * are accepted.
 */
#include "decode/event.h"

#include "base/no_arrays.h"
#include "decode/decode.h"
#include "decode/kernel_table.h"

enum { PAGE_BYTES = 4096 }; /* on x86, x64 and ARM64 */

/* The kernel's shortest header may be followed by hardware counters of the CPU, as many as the
 * upper byte of its version says, preceded by the index of a record of another kind. The payload
 * follows them, so if it lies in the buffer, they do too. */
static void find_counters(const struct ew_record *record, struct ew_event *event)
{
    enum { PERFINFO = 17, PERFINFO_BYTES = 16, COUNT = 7, INDEX = 0x80 };
    event->u.cswitch.pmc_count = 0;
    /* Checks the cheap condition first: almost no switch has any. */
    if ((record->header_type | 1) != PERFINFO || record->payload == record->header + PERFINFO_BYTES)
        return;
    event->u.cswitch.pmc_count = record->header[1] & COUNT;
    event->u.cswitch.pmc = record->header + PERFINFO_BYTES + (record->header[1] & INDEX) / 16;
}

static bool decode_switch(const struct ew_record *record, struct ew_event *event)
{
    const uint8_t *p = record->payload;
    if (record->payload_size < 16)
        return false;
    event->kind = EW_EVENT_SWITCH;
    event->pid = EW_NO_ID;
    event->tid = ew_load_u32(p + 4);
    event->u.cswitch.new_tid = ew_load_u32(p);
    event->u.cswitch.new_priority = (int8_t)p[8];
    event->u.cswitch.old_priority = (int8_t)p[9];
    event->u.cswitch.old_wait_reason = p[12];
    /* From version 3 on the upper bits have another meaning. */
    event->u.cswitch.old_wait_mode = p[13] & 1;
    event->u.cswitch.old_state = p[14];
    bool has_wait = record->payload_size >= 24 && record->version >= 2;
    event->u.cswitch.new_wait_ticks = has_wait ? ew_load_u32(p + 16) : 0;
    find_counters(record, event);
    return true;
}

static bool decode_ready(const struct ew_record *record, struct ew_event *event)
{
    const uint8_t *p = record->payload;
    if (record->payload_size < 7)
        return false;
    event->kind = EW_EVENT_READY;
    event->pid = EW_NO_ID;
    event->tid = ew_load_u32(p);
    event->u.ready.reason = p[4];
    event->u.ready.increment = p[5];
    event->u.ready.flags = p[6];
    return true;
}

static bool decode_sample(const struct ew_record *record, size_t pointer_size,
                          struct ew_event *event)
{
    const uint8_t *p = record->payload;
    if (record->payload_size < pointer_size + 6)
        return false;
    event->kind = EW_EVENT_SAMPLE;
    event->pid = EW_NO_ID;
    event->tid = ew_load_u32(p + pointer_size);
    event->u.sample.ip = ew_event_pointer(p, pointer_size);
    event->u.sample.count = ew_load_u16(p + pointer_size + 4);
    uint8_t flags = record->payload_size > pointer_size + 6 ? p[pointer_size + 6] : 0;
    event->u.sample.in_dpc = flags & 1;
    event->u.sample.in_isr = flags & 2;
    /* Kernel addresses are in the upper half. */
    event->u.sample.in_kernel = event->u.sample.ip >> (8 * pointer_size - 1) != 0;
    return true;
}

static bool decode_interrupt(const struct ew_record *record, size_t pointer_size, bool is_isr,
                             struct ew_event *event)
{
    const uint8_t *p = record->payload;
    if (record->payload_size < 8 + pointer_size)
        return false;
    event->kind = EW_EVENT_INTERRUPT;
    event->pid = EW_NO_ID;
    event->tid = EW_NO_ID;
    event->u.interrupt.began_raw = ew_load_u64(p);
    event->u.interrupt.routine = ew_event_pointer(p + 8, pointer_size);
    event->u.interrupt.is_isr = is_isr;
    return true;
}

static bool decode_interval(const struct ew_record *record, struct ew_event *event)
{
    if (record->payload_size < 12)
        return false;
    event->kind = EW_EVENT_SAMPLE_INTERVAL;
    event->u.interval.profile_source = ew_load_u32(record->payload);
    event->u.interval.interval_100ns = ew_load_u32(record->payload + 4);
    return true;
}

/* A count, then that many names. */
static bool decode_pmc_names(const struct ew_record *record, struct ew_event *event)
{
    struct ew_pmc_map map = {0};
    struct ew_event_text name;
    if (record->payload_size < 4)
        return false;
    uint32_t count = ew_load_u32(record->payload);
    if (count > EW_PMC_MAX)
        return true; /* more than an event can carry */
    for (size_t at = 4; map.count < count;) {
        if (at >= record->payload_size)
            return false;
        at = ew_event_wide(record, at, &name);
        (void)ew_pmc_add(&map, name.bytes, name.len);
    }
    event->kind = EW_EVENT_PMC_NAMES;
    event->u.pmc_names = map;
    return true;
}

static bool decode_fault(const struct ew_record *record, uint8_t opcode, size_t pointer_size,
                         struct ew_event *event)
{
    const uint8_t *p = record->payload;
    if (record->payload_size < 2 * pointer_size)
        return false;
    event->kind = EW_EVENT_FAULT;
    event->u.fault.address = ew_event_pointer(p, pointer_size);
    event->u.fault.program_counter = ew_event_pointer(p + pointer_size, pointer_size);
    event->u.fault.began_raw = 0;
    event->u.fault.bytes = 0;
    event->u.fault.opcode = opcode;
    return true;
}

static bool decode_thread_class(const struct ew_record *record, uint8_t opcode, size_t pointer_size,
                                struct ew_event *event)
{
    switch (opcode) {
    case 36:
        return decode_switch(record, event);
    case 50:
        return decode_ready(record, event);
    default:
        return ew_event_of_class(record, EW_KERNEL_THREAD, opcode, pointer_size, event);
    }
}

/* Threaded DPCs (66) and passive interrupts (95) are ignored: they run in threads, which can be
 * switched out meanwhile. I/O timers (70) run inside a DPC that has an event of its own. */
static bool decode_perf_class(const struct ew_record *record, uint8_t opcode, size_t pointer_size,
                              struct ew_event *event)
{
    switch (opcode) {
    case 46:
        return decode_sample(record, pointer_size, event);
    case 48:
        return decode_pmc_names(record, event);
    case 49:
        event->kind = EW_EVENT_PMC_DISTURBED;
        return true;
    case 68: /* DPC */
    case 69: /* timer DPC */
        return decode_interrupt(record, pointer_size, false, event);
    case 50: /* message-signaled */
    case 67:
        return decode_interrupt(record, pointer_size, true, event);
    case 72: /* set */
    case 73: /* rundown at the start */
    case 74: /* rundown at the end */
        return decode_interval(record, event);
    default:
        return true;
    }
}

EW_NO_ARRAYS static bool decode_class(const struct ew_record *record, uint8_t class_id,
                                      uint8_t opcode, size_t pointer_size, struct ew_event *event)
{
    switch (class_id) {
    case EW_KERNEL_THREAD:
        return decode_thread_class(record, opcode, pointer_size, event);
    case EW_KERNEL_PERFINFO:
        return decode_perf_class(record, opcode, pointer_size, event);
    case EW_KERNEL_MEMORY:
        if (opcode >= 10 && opcode <= 15)
            return decode_fault(record, opcode, pointer_size, event);
        return ew_event_of_class(record, class_id, opcode, pointer_size, event);
    case EW_KERNEL_PROCESS:
        if (opcode == 10 && record->kind == EW_RECORD_KERNEL)
            return ew_event_of_class(record, EW_KERNEL_IMAGE, 10, pointer_size, event);
        return ew_event_of_process(record, opcode, pointer_size, event);
    default:
        return ew_event_of_class(record, class_id, opcode, pointer_size, event);
    }
}

EW_NO_ARRAYS bool ew_decode_event(const struct ew_record *record, struct ew_event *ret_event)
{
    ret_event->t_ns = record->t_ns;
    ret_event->kind = EW_EVENT_OTHER;
    ret_event->version = record->version;
    ret_event->cpu = record->cpu;
    ret_event->pid = record->pid;
    ret_event->tid = record->tid;
    ret_event->from_manifest = false;
    if (record->kind == EW_RECORD_KERNEL)
        return decode_class(record, record->group, record->opcode,
                            record->pointer_size == 4 ? 4 : 8, ret_event);
    if (record->kind == EW_RECORD_MANIFEST)
        return ew_event_of_manifest(record, ret_event);
    uint8_t opcode, class_id = ew_kernel_class_of(record, &opcode);
    if (class_id == EW_KERNEL_NO_CLASS)
        return true;
    return decode_class(record, class_id, opcode, ew_kernel_pointer_size(record, class_id),
                        ret_event);
}

/* A count, then packed entries of a pid and four or eight page counts. */
bool ew_decode_working_set(const struct ew_record *record, uint32_t i, struct ew_working_set *ret)
{
    size_t pointer_size = record->pointer_size == 4 ? 4 : 8, size = record->payload_size;
    if (size < 4 || i >= ew_load_u32(record->payload))
        return false;
    uint64_t count = ew_load_u32(record->payload);
    size_t small = 4 + 4 * pointer_size, large = 4 + 8 * pointer_size, entry;
    if (size - 4 == count * small)
        entry = small;
    else if (size - 4 == count * large)
        entry = large;
    else
        entry = record->version >= 2 ? large : small;
    if ((uint64_t)i * entry + entry > size - 4)
        return false;
    const uint8_t *p = record->payload + 4 + i * entry;
    ret->pid = ew_load_u32(p);
    p += 4;
    ret->working_set_bytes = PAGE_BYTES * ew_event_pointer(p, pointer_size);
    ret->commit_bytes = PAGE_BYTES * ew_event_pointer(p + pointer_size, pointer_size);
    ret->virtual_bytes = PAGE_BYTES * ew_event_pointer(p + 2 * pointer_size, pointer_size);
    ret->private_working_set_bytes =
        PAGE_BYTES * ew_event_pointer(p + 3 * pointer_size, pointer_size);
    return true;
}
