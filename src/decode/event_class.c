/* SPDX-License-Identifier: MIT */
/* The less frequent classes: threads, memory, disk, files, network, images, losses. */
#include "decode/event.h"
#include "decode/kernel_table.h"

size_t ew_event_ansi(const struct ew_record *record, size_t at, struct ew_event_text *ret_text)
{
    size_t end = at;
    while (end < record->payload_size && record->payload[end])
        end++;
    ret_text->bytes = record->payload + at;
    ret_text->len = (uint32_t)(end - at);
    ret_text->wide = false;
    return end < record->payload_size ? end + 1 : end;
}

size_t ew_event_wide(const struct ew_record *record, size_t at, struct ew_event_text *ret_text)
{
    size_t end = at;
    while (end + 2 <= record->payload_size && (record->payload[end] || record->payload[end + 1]))
        end += 2;
    ret_text->bytes = record->payload + at;
    ret_text->len = (uint32_t)(end - at);
    ret_text->wide = true;
    return end + 2 <= record->payload_size ? end + 2 : record->payload_size;
}

/* -------------------------------------------------------------------- Thread */

static bool decode_thread(const struct ew_record *record, size_t pointer_size,
                          enum ew_event_kind kind, struct ew_event *event)
{
    const uint8_t *p = record->payload;
    size_t size = record->payload_size, fixed = 16 + 7 * pointer_size;
    /* Up to version 1 the end event of a thread has only the ids. */
    size_t need = record->version >= 3 ? fixed : record->version == 2 ? 12 + 7 * pointer_size : 8;
    if (size < need)
        return false;
    event->kind = (uint8_t)kind;
    bool reversed = record->version == 0;
    event->pid = ew_load_u32(p + (reversed ? 4 : 0));
    event->tid = ew_load_u32(p + (reversed ? 0 : 4));
    bool has_start = record->version >= 1 && size >= 8 + 6 * pointer_size;
    event->u.thread.start_address =
        has_start ? ew_event_pointer(p + 8 + 5 * pointer_size, pointer_size) : 0;
    event->u.thread.has_affinity = event->u.thread.has_priority = record->version >= 3;
    event->u.thread.affinity = 0;
    event->u.thread.base_priority = 0;
    event->u.thread.name = (struct ew_event_text){p, 0, true};
    if (record->version >= 3) {
        event->u.thread.affinity = ew_event_pointer(p + 8 + 4 * pointer_size, pointer_size);
        event->u.thread.base_priority = (int8_t)p[12 + 7 * pointer_size];
        if (size > fixed)
            ew_event_wide(record, fixed, &event->u.thread.name);
    }
    return true;
}

static bool decode_thread_name(const struct ew_record *record, struct ew_event *event)
{
    if (record->payload_size < 8)
        return false;
    event->kind = EW_EVENT_THREAD_NAME;
    event->pid = ew_load_u32(record->payload);
    event->tid = ew_load_u32(record->payload + 4);
    event->u.thread.start_address = event->u.thread.affinity = 0;
    event->u.thread.has_priority = event->u.thread.has_affinity = false;
    event->u.thread.base_priority = 0;
    ew_event_wide(record, 8, &event->u.thread.name);
    return true;
}

static bool decode_thread_class(const struct ew_record *record, uint8_t opcode, size_t pointer_size,
                                struct ew_event *event)
{
    switch (opcode) {
    case 1:
        return decode_thread(record, pointer_size, EW_EVENT_THREAD_START, event);
    case 2:
        return decode_thread(record, pointer_size, EW_EVENT_THREAD_END, event);
    case 3:
        return decode_thread(record, pointer_size, EW_EVENT_THREAD_THERE, event);
    case 4:
        return decode_thread(record, pointer_size, EW_EVENT_THREAD_STILL, event);
    case 72:
        return decode_thread_name(record, event);
    default:
        return true;
    }
}

/* -------------------------------------------------------------------- Memory */

static bool decode_hard_fault(const struct ew_record *record, size_t pointer_size,
                              struct ew_event *event)
{
    const uint8_t *p = record->payload;
    if (record->payload_size < 24 + 2 * pointer_size)
        return false;
    event->kind = EW_EVENT_HARD_FAULT;
    ew_event_set_tid(record, ew_load_u32(p + 16 + 2 * pointer_size), event);
    event->u.fault.began_raw = ew_load_u64(p);
    event->u.fault.address = ew_event_pointer(p + 16, pointer_size);
    event->u.fault.program_counter = 0;
    event->u.fault.bytes = ew_load_u32(p + 20 + 2 * pointer_size);
    event->u.fault.opcode = 32;
    return true;
}

static bool decode_alloc(const struct ew_record *record, size_t pointer_size,
                         enum ew_event_kind kind, struct ew_event *event)
{
    const uint8_t *p = record->payload;
    if (record->payload_size < 8 + 2 * pointer_size)
        return false;
    event->kind = (uint8_t)kind;
    event->pid = ew_load_u32(p + 2 * pointer_size);
    if (event->pid != record->pid)
        event->tid = EW_NO_ID;
    event->u.alloc.base = ew_event_pointer(p, pointer_size);
    event->u.alloc.bytes = ew_event_pointer(p + pointer_size, pointer_size);
    event->u.alloc.flags = ew_load_u32(p + 4 + 2 * pointer_size);
    return true;
}

static bool decode_memory_class(const struct ew_record *record, uint8_t opcode, size_t pointer_size,
                                struct ew_event *event)
{
    switch (opcode) {
    case 32:
        return decode_hard_fault(record, pointer_size, event);
    case 98:
        return decode_alloc(record, pointer_size, EW_EVENT_VIRTUAL_ALLOC, event);
    case 99:
        return decode_alloc(record, pointer_size, EW_EVENT_VIRTUAL_FREE, event);
    case 125:
        if (record->payload_size < 4)
            return false;
        event->kind = EW_EVENT_WORKING_SETS;
        return true;
    default:
        return true;
    }
}

/* ------------------------------------------------------------- disk and files */

/* The thread that runs when a disk I/O completes is unrelated to it. From version 3 on the payload
 * names the issuing thread; in version 2 the event of the I/O's start does, with the same irp;
 * before that the header is the issuer's. */
static bool decode_disk(const struct ew_record *record, size_t pointer_size,
                        enum ew_event_kind kind, struct ew_event *event)
{
    const uint8_t *p = record->payload;
    uint8_t version = record->version;
    size_t need = version >= 3   ? 36 + 2 * pointer_size
                  : version == 2 ? 32 + 2 * pointer_size
                  : version == 1 ? 32 + pointer_size
                                 : 24 + pointer_size;
    if (record->payload_size < need)
        return false;
    event->kind = (uint8_t)kind;
    event->u.io.disk = ew_load_u32(p);
    event->u.io.bytes = ew_load_u32(p + 8);
    event->u.io.offset = ew_load_u64(p + 16);
    event->u.io.file_object = ew_event_pointer(p + 24, pointer_size);
    event->u.io.irp = 0;
    event->u.io.response_raw = 0;
    if (version >= 2) {
        event->u.io.irp = ew_event_pointer(p + 24 + pointer_size, pointer_size);
        event->u.io.response_raw = ew_load_u64(p + 24 + 2 * pointer_size);
        event->pid = event->tid = EW_NO_ID;
    } else if (version == 1) {
        event->u.io.response_raw = ew_load_u64(p + 24 + pointer_size);
    }
    if (version >= 3)
        ew_event_set_tid(record, ew_load_u32(p + 32 + 2 * pointer_size), event);
    return true;
}

static bool decode_disk_flush(const struct ew_record *record, size_t pointer_size,
                              struct ew_event *event)
{
    const uint8_t *p = record->payload;
    size_t need = (record->version >= 3 ? 20 : 16) + pointer_size;
    if (record->payload_size < need)
        return false;
    event->kind = EW_EVENT_DISK_FLUSH;
    event->pid = event->tid = EW_NO_ID;
    event->u.io.disk = ew_load_u32(p);
    event->u.io.bytes = 0;
    event->u.io.offset = event->u.io.file_object = 0;
    event->u.io.response_raw = ew_load_u64(p + 8);
    event->u.io.irp = ew_event_pointer(p + 16, pointer_size);
    if (record->version >= 3)
        ew_event_set_tid(record, ew_load_u32(p + 16 + pointer_size), event);
    return true;
}

static bool decode_disk_init(const struct ew_record *record, size_t pointer_size,
                             struct ew_event *event)
{
    const uint8_t *p = record->payload;
    size_t need = pointer_size + (record->version >= 3 ? 4 : 0);
    if (record->payload_size < need)
        return false;
    event->kind = EW_EVENT_DISK_INIT;
    event->u.io.irp = ew_event_pointer(p, pointer_size);
    event->u.io.file_object = event->u.io.offset = event->u.io.response_raw = 0;
    event->u.io.bytes = event->u.io.disk = 0;
    if (record->version >= 3)
        ew_event_set_tid(record, ew_load_u32(p + pointer_size), event);
    return true;
}

static bool decode_disk_class(const struct ew_record *record, uint8_t opcode, size_t pointer_size,
                              struct ew_event *event)
{
    switch (opcode) {
    case 10:
    case 55: /* optical */
        return decode_disk(record, pointer_size, EW_EVENT_DISK_READ, event);
    case 11:
    case 56:
        return decode_disk(record, pointer_size, EW_EVENT_DISK_WRITE, event);
    case 12:
    case 13:
    case 15:
    case 58:
    case 59:
    case 60:
        return decode_disk_init(record, pointer_size, event);
    case 14:
    case 57:
        return decode_disk_flush(record, pointer_size, event);
    default:
        return true;
    }
}

/* Up to version 2 the thread id is as wide as a pointer and follows the irp. */
static bool decode_file(const struct ew_record *record, size_t pointer_size,
                        enum ew_event_kind kind, struct ew_event *event)
{
    const uint8_t *p = record->payload;
    bool new_layout = record->version >= 3;
    size_t at = 8 + pointer_size, need = 16 + (new_layout ? 3 : 4) * pointer_size;
    if (record->payload_size < need)
        return false;
    event->kind = (uint8_t)kind;
    event->u.io.offset = ew_load_u64(p);
    event->u.io.irp = ew_event_pointer(p + 8, pointer_size);
    event->u.io.disk = 0;
    event->u.io.response_raw = 0;
    if (new_layout) {
        event->u.io.file_object = ew_event_pointer(p + at, pointer_size);
        ew_event_set_tid(record, ew_load_u32(p + at + 2 * pointer_size), event);
        event->u.io.bytes = ew_load_u32(p + at + 2 * pointer_size + 4);
    } else {
        ew_event_set_tid(record, (uint32_t)ew_event_pointer(p + at, pointer_size), event);
        event->u.io.file_object = ew_event_pointer(p + at + pointer_size, pointer_size);
        event->u.io.bytes = ew_load_u32(p + at + 3 * pointer_size);
    }
    return true;
}

/* ------------------------------------------------------------------- network */

/* The oldest layouts have the pid last, or no pid. */
static bool decode_net(const struct ew_record *record, enum ew_event_kind kind, bool udp, bool v6,
                       struct ew_event *event)
{
    const uint8_t *p = record->payload;
    bool oldest = record->version == 0 && !v6;
    size_t pointer_size = record->pointer_size == 4 ? 4 : 8;
    if (record->payload_size < (!oldest ? 8 : udp ? pointer_size + 8 : 20))
        return false;
    event->kind = (uint8_t)kind;
    event->tid = EW_NO_ID;
    event->u.net.udp = udp;
    event->u.net.v6 = v6;
    if (!oldest) {
        event->pid = ew_load_u32(p);
        event->u.net.bytes = ew_load_u32(p + 4);
    } else if (!udp) {
        event->pid = ew_load_u32(p + 16);
        event->u.net.bytes = ew_load_u32(p + 12);
    } else {
        event->u.net.bytes = ew_load_u16(p + pointer_size + 6);
    }
    return true;
}

/* Connects, accepts, disconnects, retransmits and copies are not accounted, but name their
 * process: the thread that runs then is unrelated. */
static bool decode_net_owner(const struct ew_record *record, bool v6, struct ew_event *event)
{
    size_t at = record->version == 0 && !v6 ? 16 : 0;
    if (record->payload_size >= at + 4) {
        event->pid = ew_load_u32(record->payload + at);
        event->tid = EW_NO_ID;
    }
    return true;
}

static bool decode_net_class(const struct ew_record *record, uint8_t opcode, bool udp,
                             struct ew_event *event)
{
    if (!udp && ((opcode >= 12 && opcode <= 22 && opcode != 17) ||
                 (opcode >= 28 && opcode <= 34 && opcode != 33)))
        return decode_net_owner(record, opcode >= 28, event);
    switch (opcode) {
    case 10:
        return decode_net(record, EW_EVENT_NET_SEND, udp, false, event);
    case 11:
        return decode_net(record, EW_EVENT_NET_RECEIVE, udp, false, event);
    case 26:
        return decode_net(record, EW_EVENT_NET_SEND, udp, true, event);
    case 27:
        return decode_net(record, EW_EVENT_NET_RECEIVE, udp, true, event);
    default:
        return true;
    }
}

/* -------------------------------------------------------------------- Image */

static bool decode_image(const struct ew_record *record, size_t pointer_size,
                         enum ew_event_kind kind, struct ew_event *event)
{
    const uint8_t *p = record->payload;
    uint8_t version = record->version;
    size_t name_at = version >= 2   ? 3 * pointer_size + 32
                     : version == 1 ? 2 * pointer_size + 4
                                    : pointer_size + 4;
    if (record->payload_size < name_at)
        return false;
    event->kind = (uint8_t)kind;
    event->u.image.base = ew_event_pointer(p, pointer_size);
    event->u.image.checksum = event->u.image.timestamp = 0;
    if (version == 0) {
        event->u.image.bytes = ew_load_u32(p + pointer_size);
    } else {
        event->u.image.bytes = ew_event_pointer(p + pointer_size, pointer_size);
        event->pid = ew_load_u32(p + 2 * pointer_size);
        if (event->pid != record->pid)
            event->tid = EW_NO_ID;
    }
    if (version >= 2) {
        event->u.image.checksum = ew_load_u32(p + 2 * pointer_size + 4);
        event->u.image.timestamp = ew_load_u32(p + 2 * pointer_size + 8);
    }
    ew_event_wide(record, name_at, &event->u.image.path);
    return true;
}

static bool decode_image_class(const struct ew_record *record, uint8_t opcode, size_t pointer_size,
                               struct ew_event *event)
{
    switch (opcode) {
    case 10:
        return decode_image(record, pointer_size, EW_EVENT_IMAGE_LOAD, event);
    case 2:
        return decode_image(record, pointer_size, EW_EVENT_IMAGE_UNLOAD, event);
    case 3:
        return decode_image(record, pointer_size, EW_EVENT_IMAGE_THERE, event);
    case 4:
        return decode_image(record, pointer_size, EW_EVENT_IMAGE_STILL, event);
    default:
        return true;
    }
}

bool ew_event_of_class(const struct ew_record *record, uint8_t class_id, uint8_t opcode,
                       size_t pointer_size, struct ew_event *event)
{
    switch (class_id) {
    case EW_KERNEL_THREAD:
        return decode_thread_class(record, opcode, pointer_size, event);
    case EW_KERNEL_MEMORY:
        return decode_memory_class(record, opcode, pointer_size, event);
    case EW_KERNEL_DISKIO:
        return decode_disk_class(record, opcode, pointer_size, event);
    case EW_KERNEL_FILEIO:
        if (opcode != 67 && opcode != 68)
            return true;
        return decode_file(record, pointer_size,
                           opcode == 67 ? EW_EVENT_FILE_READ : EW_EVENT_FILE_WRITE, event);
    case EW_KERNEL_TCPIP:
    case EW_KERNEL_UDPIP:
        return decode_net_class(record, opcode, class_id == EW_KERNEL_UDPIP, event);
    case EW_KERNEL_IMAGE:
        return decode_image_class(record, opcode, pointer_size, event);
    case EW_KERNEL_LOST:
        event->kind = EW_EVENT_LOST;
        event->u.lost.what = opcode;
        return true;
    default:
        return true;
    }
}
