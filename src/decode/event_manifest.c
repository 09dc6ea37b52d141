/* SPDX-License-Identifier: MIT */
/*
 * Manifest providers with the same content as kernel classes, for recordings of sessions that are
 * not system loggers: Microsoft-Windows-Kernel-Process, -Memory, -Network, -Disk and -File. Layouts
 * that equal those of a kernel class are passed to its decoder.
 */
#include <string.h>

#include "decode/event.h"
#include "decode/kernel_table.h"

/* Byte order as on disk: the first three parts are little-endian. */
static const uint8_t process_guid[16] = {0xd6, 0x2c, 0xfb, 0x22, 0x7b, 0x0e, 0x2b, 0x42,
                                         0xa0, 0xc7, 0x2f, 0xad, 0x1f, 0xd0, 0xe7, 0x16};
static const uint8_t memory_guid[16] = {0xf7, 0x3e, 0xd9, 0xd1, 0xf2, 0xe1, 0x45, 0x4f,
                                        0x99, 0x43, 0x03, 0xd2, 0x45, 0xfe, 0x6c, 0x00};
static const uint8_t network_guid[16] = {0x49, 0x2a, 0xd4, 0x7d, 0x29, 0x53, 0x32, 0x48,
                                         0x8d, 0xfd, 0x43, 0xd9, 0x79, 0x15, 0x3a, 0x88};
static const uint8_t disk_guid[16] = {0x9a, 0xe6, 0xbd, 0xc7, 0xe0, 0xe1, 0x77, 0x41,
                                      0xb6, 0xef, 0x28, 0x3a, 0xd1, 0x52, 0x52, 0x71};
static const uint8_t file_guid[16] = {0x27, 0x89, 0xd0, 0xed, 0xc4, 0x9c, 0x65, 0x4e,
                                      0xb9, 0x70, 0xc2, 0x56, 0x0f, 0xb5, 0xc2, 0x89};

static bool is_guid(const struct ew_record *record, const uint8_t guid[16])
{
    return memcmp(record->provider, guid, 16) == 0;
}

static void clear_process(enum ew_event_kind kind, struct ew_event *event)
{
    event->kind = (uint8_t)kind;
    event->tid = EW_NO_ID;
    memset(&event->u.process, 0, sizeof event->u.process);
    event->u.process.parent_pid = event->u.process.session_id = EW_NO_ID;
    event->u.process.command_line.wide = true;
}

/* pid, time, parent, session; then flags; from version `sequenced` on also a sequence number after
 * each pid, token information, and the SID of the mandatory label. The path is the last item read.
 */
static bool decode_start(const struct ew_record *record, enum ew_event_kind kind, uint8_t flagged,
                         uint8_t sequenced, struct ew_event *event)
{
    const uint8_t *p = record->payload;
    bool long_form = record->version >= sequenced;
    size_t ids = long_form ? 36 : 20, at = ids + (record->version >= flagged ? 4 : 0);
    if (record->payload_size < at)
        return false;
    clear_process(kind, event);
    event->pid = ew_load_u32(p);
    event->u.process.start_filetime = ew_load_u64(p + (long_form ? 12 : 4));
    event->u.process.parent_pid = ew_load_u32(p + (long_form ? 20 : 12));
    event->u.process.session_id = ew_load_u32(p + ids - 4);
    if (long_form) {
        at += 8; /* elevation type, and whether the token is elevated */
        if (record->payload_size < at + 8)
            return false;
        at += 8 + 4u * p[at + 1];
        if (record->payload_size < at)
            return false;
    }
    ew_event_wide(record, at, &event->u.process.image);
    return true;
}

static bool decode_stop(const struct ew_record *record, struct ew_event *event)
{
    const uint8_t *p = record->payload;
    size_t shift = record->version >= 2 ? 8 : 0;
    size_t name_at = 48 + shift + (record->version >= 1 ? 28 : 0);
    if (record->payload_size < name_at)
        return false;
    clear_process(EW_EVENT_PROCESS_END, event);
    event->pid = ew_load_u32(p);
    p += shift;
    event->u.process.start_filetime = ew_load_u64(p + 4);
    event->u.process.exit_filetime = ew_load_u64(p + 12);
    event->u.process.exit_status = (int32_t)ew_load_u32(p + 20);
    ew_event_ansi(record, name_at, &event->u.process.image);
    return true;
}

static bool decode_thread(const struct ew_record *record, size_t pointer_size,
                          enum ew_event_kind kind, struct ew_event *event)
{
    const uint8_t *p = record->payload;
    if (record->payload_size < 8 + 7 * pointer_size)
        return false;
    event->kind = (uint8_t)kind;
    memset(&event->u.thread, 0, sizeof event->u.thread);
    event->pid = ew_load_u32(p);
    event->tid = ew_load_u32(p + 4);
    event->u.thread.start_address = ew_event_pointer(p + 8 + 5 * pointer_size, pointer_size);
    event->u.thread.name.wide = true;
    return true;
}

static bool decode_image(const struct ew_record *record, size_t pointer_size,
                         enum ew_event_kind kind, struct ew_event *event)
{
    const uint8_t *p = record->payload;
    size_t ids = 2 * pointer_size, name_at = 3 * pointer_size + 12;
    if (record->payload_size < name_at)
        return false;
    event->kind = (uint8_t)kind;
    event->u.image.base = ew_event_pointer(p, pointer_size);
    event->u.image.bytes = ew_event_pointer(p + pointer_size, pointer_size);
    event->pid = ew_load_u32(p + ids);
    if (event->pid != record->pid)
        event->tid = EW_NO_ID;
    event->u.image.checksum = ew_load_u32(p + ids + 4);
    event->u.image.timestamp = ew_load_u32(p + ids + 8);
    ew_event_wide(record, name_at, &event->u.image.path);
    return true;
}

static bool decode_process_provider(const struct ew_record *record, size_t pointer_size,
                                    struct ew_event *event)
{
    switch (record->id) {
    case 1:
        return decode_start(record, EW_EVENT_PROCESS_START, 1, 3, event);
    case 15:
        return decode_start(record, EW_EVENT_PROCESS_THERE, 0, 1, event);
    case 2:
        return decode_stop(record, event);
    case 3:
        return decode_thread(record, pointer_size, EW_EVENT_THREAD_START, event);
    case 4:
        return decode_thread(record, pointer_size, EW_EVENT_THREAD_END, event);
    case 5:
        return decode_image(record, pointer_size, EW_EVENT_IMAGE_LOAD, event);
    case 6:
        return decode_image(record, pointer_size, EW_EVENT_IMAGE_UNLOAD, event);
    default:
        return true;
    }
}

static bool decode_network_provider(const struct ew_record *record, struct ew_event *event)
{
    bool send = record->id == 10 || record->id == 26 || record->id == 42 || record->id == 58;
    bool receive = record->id == 11 || record->id == 27 || record->id == 43 || record->id == 59;
    bool names_process =
        (record->id >= 12 && record->id <= 18 && record->id != 17) ||
        (record->id >= 28 && record->id <= 34 && record->id != 33); /* connects, disconnects, … */
    if (names_process && record->payload_size >= 4) {
        event->pid = ew_load_u32(record->payload);
        event->tid = EW_NO_ID;
    }
    if (!send && !receive)
        return true;
    if (record->payload_size < 8)
        return false;
    event->kind = send ? EW_EVENT_NET_SEND : EW_EVENT_NET_RECEIVE;
    event->pid = ew_load_u32(record->payload);
    event->tid = EW_NO_ID;
    event->u.net.bytes = ew_load_u32(record->payload + 4);
    event->u.net.udp = record->id >= 42;
    event->u.net.v6 = record->id == 26 || record->id == 27 || record->id >= 58;
    return true;
}

/* Version 0 has the layout of version 2 of the kernel class, version 1 that of version 3. */
static bool decode_as_class(const struct ew_record *record, uint8_t class_id, uint8_t opcode,
                            size_t pointer_size, struct ew_event *event)
{
    struct ew_record same = *record;
    same.version = (uint8_t)(record->version + 2);
    return ew_event_of_class(&same, class_id, opcode, pointer_size, event);
}

static bool decode_provider(const struct ew_record *record, struct ew_event *event)
{
    size_t pointer_size = record->pointer_size == 4 ? 4 : 8;
    switch (ew_load_u32(record->provider)) {
    case 0x22fb2cd6:
        return !is_guid(record, process_guid) ||
               decode_process_provider(record, pointer_size, event);
    case 0xd1d93ef7:
        if (!is_guid(record, memory_guid) || record->id != 2)
            return true;
        return ew_event_of_class(record, EW_KERNEL_MEMORY, 125, pointer_size, event);
    case 0x7dd42a49:
        return !is_guid(record, network_guid) || decode_network_provider(record, event);
    case 0xc7bde69a:
        if (!is_guid(record, disk_guid) ||
            (record->id != 10 && record->id != 11 && record->id != 14))
            return true;
        return decode_as_class(record, EW_KERNEL_DISKIO, (uint8_t)record->id, pointer_size, event);
    case 0xedd08927:
        if (!is_guid(record, file_guid) || (record->id != 15 && record->id != 16))
            return true;
        return decode_as_class(record, EW_KERNEL_FILEIO, record->id == 15 ? 67 : 68, pointer_size,
                               event);
    case 0x802ec45a: /* DxgKrnl, DXGI, Direct3D 9 */
    case 0xca11c036:
    case 0x783aca0a:
        return ew_event_of_graphics(record, event);
    default:
        return true;
    }
}

bool ew_event_of_manifest(const struct ew_record *record, struct ew_event *event)
{
    event->from_manifest = true;
    return !record->provider || decode_provider(record, event);
}
