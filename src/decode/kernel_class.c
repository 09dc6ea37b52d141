/* SPDX-License-Identifier: MIT */
/*
 * Which kernel class a record belongs to, and the two properties that must be derived from its
 * bytes before its fields can be read: the width of its pointers, and the end of the user's SID.
 */
#include "decode/kernel_table.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"

struct class_guid {
    uint8_t guid[16]; /* as on disk: the first three parts are little-endian */
    uint8_t class_id;
};

/* Converts a GUID in text order to its byte order on disk. */
#define GUID(a, b, c, ...)                                                                      \
    {                                                                                           \
        (a) & 0xff, (a) >> 8 & 0xff, (a) >> 16 & 0xff, (a) >> 24, (b)&0xff, (b) >> 8, (c)&0xff, \
            (c) >> 8, __VA_ARGS__                                                               \
    }

static const struct class_guid class_guids[] = {
    {GUID(0x68fdd900, 0x4a3e, 0x11d1, 0x84, 0xf4, 0x00, 0x00, 0xf8, 0x04, 0x64, 0xe3),
     EW_KERNEL_EVENTTRACE},
    {GUID(0x3d6fa8d4, 0xfe05, 0x11d0, 0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c),
     EW_KERNEL_DISKIO},
    {GUID(0x3d6fa8d3, 0xfe05, 0x11d0, 0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c),
     EW_KERNEL_MEMORY},
    {GUID(0x3d6fa8d0, 0xfe05, 0x11d0, 0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c),
     EW_KERNEL_PROCESS},
    {GUID(0x90cbdc39, 0x4a3e, 0x11d1, 0x84, 0xf4, 0x00, 0x00, 0xf8, 0x04, 0x64, 0xe3),
     EW_KERNEL_FILEIO},
    {GUID(0x3d6fa8d1, 0xfe05, 0x11d0, 0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c),
     EW_KERNEL_THREAD},
    {GUID(0x9a280ac0, 0xc8e0, 0x11d1, 0x84, 0xe2, 0x00, 0xc0, 0x4f, 0xb9, 0x98, 0xa2),
     EW_KERNEL_TCPIP},
    {GUID(0x3282fc76, 0xfeed, 0x498e, 0x8a, 0xa7, 0xe7, 0x0f, 0x45, 0x9d, 0x43, 0x0e),
     EW_KERNEL_JOB},
    {GUID(0xbf3a50c5, 0xa9c9, 0x4988, 0xa0, 0x05, 0x2d, 0xf0, 0xb7, 0xc8, 0x0f, 0x80),
     EW_KERNEL_UDPIP},
    {GUID(0xae53722e, 0xc863, 0x11d2, 0x86, 0x59, 0x00, 0xc0, 0x4f, 0xa3, 0x21, 0xa1),
     EW_KERNEL_REGISTRY},
    {GUID(0x13976d09, 0xa327, 0x438c, 0x95, 0x0b, 0x7f, 0x03, 0x19, 0x28, 0x15, 0xc7),
     EW_KERNEL_DEBUGPRINT},
    {GUID(0x01853a65, 0x418f, 0x4f36, 0xae, 0xfc, 0xdc, 0x0f, 0x1d, 0x2f, 0xd2, 0x35),
     EW_KERNEL_SYSTEMCONFIG},
    {GUID(0x0268a8b6, 0x74fd, 0x4302, 0x9d, 0xd0, 0x6e, 0x8f, 0x17, 0x95, 0xc0, 0xcf),
     EW_KERNEL_POOL},
    {GUID(0xce1dbfb4, 0x137e, 0x4da6, 0x87, 0xb0, 0x3f, 0x59, 0xaa, 0x10, 0x2c, 0xbc),
     EW_KERNEL_PERFINFO},
    {GUID(0x222962ab, 0x6180, 0x4b88, 0xa8, 0x25, 0x34, 0x6b, 0x75, 0xf2, 0xa2, 0x4a),
     EW_KERNEL_HEAP},
    {GUID(0x89497f50, 0xeffe, 0x4440, 0x8c, 0xf2, 0xce, 0x6b, 0x1c, 0xdc, 0xac, 0xa7),
     EW_KERNEL_OBJECT},
    {GUID(0xe43445e0, 0x0903, 0x48c3, 0xb8, 0x78, 0xff, 0x0f, 0xcc, 0xeb, 0xdd, 0x04),
     EW_KERNEL_POWER},
    {GUID(0x2cb15d1d, 0x5fc1, 0x11d2, 0xab, 0xe1, 0x00, 0xa0, 0xc9, 0x11, 0xf5, 0x18),
     EW_KERNEL_IMAGE},
    {GUID(0x7687a439, 0xf752, 0x45b8, 0xb7, 0x41, 0x32, 0x1a, 0xec, 0x0f, 0x8d, 0xf9),
     EW_KERNEL_CC},
    {GUID(0x3ac66736, 0xcc59, 0x4cff, 0x81, 0x15, 0x8d, 0xf5, 0x0e, 0x39, 0x81, 0x6b),
     EW_KERNEL_CRITSEC},
    {GUID(0xdef2fe46, 0x7bd6, 0x4b80, 0xbd, 0x94, 0xf5, 0x7f, 0xe2, 0x0d, 0x0c, 0xe3),
     EW_KERNEL_STACKWALK},
    {GUID(0x9aec974b, 0x5b8e, 0x4118, 0x9b, 0x92, 0x31, 0x86, 0xd8, 0x00, 0x2c, 0xe5),
     EW_KERNEL_UMS},
    {GUID(0x45d8cccd, 0x539f, 0x4b72, 0xa8, 0xb7, 0x5c, 0x68, 0x31, 0x42, 0x60, 0x9a),
     EW_KERNEL_ALPC},
    {GUID(0xd837ca92, 0x12b9, 0x44a5, 0xad, 0x6a, 0x3a, 0x65, 0xb3, 0x57, 0x8a, 0xa8),
     EW_KERNEL_SPLITIO},
    {GUID(0xc861d0e2, 0xa2c1, 0x4d36, 0x9f, 0x9c, 0x97, 0x0b, 0xab, 0x94, 0x3a, 0x12),
     EW_KERNEL_THREADPOOL},
    {GUID(0x6a399ae0, 0x4bc6, 0x4de9, 0x87, 0x0b, 0x36, 0x57, 0xf8, 0x94, 0x7e, 0x7e),
     EW_KERNEL_LOST},
    {GUID(0xb3e675d7, 0x2554, 0x4f18, 0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde),
     EW_KERNEL_IMAGEID},
    {GUID(0x9b79ee91, 0xb5fd, 0x41c0, 0xa2, 0x43, 0x42, 0x48, 0xe2, 0x66, 0xe9, 0xd0),
     EW_KERNEL_SYSCONFIG},
    {GUID(0xed54dff8, 0xc409, 0x4cf6, 0xbf, 0x83, 0x05, 0xe1, 0xe6, 0x1a, 0x09, 0xc4),
     EW_KERNEL_WINSAT},
    {GUID(0xbbccf6c1, 0x6cd1, 0x48c4, 0x80, 0xff, 0x83, 0x94, 0x82, 0xe3, 0x76, 0x71),
     EW_KERNEL_METADATA},
};

static uint8_t class_by_guid(const uint8_t *guid)
{
    for (size_t i = 0; i < sizeof class_guids / sizeof *class_guids; i++)
        if (class_guids[i].guid[0] == guid[0] && memcmp(class_guids[i].guid, guid, 16) == 0)
            return class_guids[i].class_id;
    return EW_KERNEL_NO_CLASS;
}

uint8_t ew_kernel_class_of(const struct ew_record *record, uint8_t *ret_opcode)
{
    *ret_opcode = record->opcode;
    if (record->kind == EW_RECORD_CLASSIC && record->provider)
        return class_by_guid(record->provider);
    if (record->kind != EW_RECORD_KERNEL)
        return EW_KERNEL_NO_CLASS;
    if (record->group == EW_KERNEL_PROCESS && record->opcode == 10)
        return EW_KERNEL_IMAGE;
    return record->group <= EW_KERNEL_THREADPOOL ? record->group : EW_KERNEL_NO_CLASS;
}

const uint8_t *ew_kernel_guid(const struct ew_record *record)
{
    uint8_t opcode, class_id = ew_kernel_class_of(record, &opcode);
    for (size_t i = 0; i < sizeof class_guids / sizeof *class_guids; i++)
        if (class_guids[i].class_id == class_id)
            return class_guids[i].guid;
    return NULL;
}

bool ew_kernel_has_cmdline(const struct ew_record *record)
{
    uint8_t opcode;
    return record->kind <= EW_RECORD_CLASSIC &&
           ew_kernel_class_of(record, &opcode) == EW_KERNEL_PROCESS;
}

/* ------------------------------------------------------------------------ SID */

enum { SID_HEAD = 8, SID_PARTS_MAX = 15 };

/* Size of the SID at the start of bytes, or 0. */
static size_t sid_size(const uint8_t *bytes, size_t size)
{
    if (size < SID_HEAD || bytes[0] != 1 || bytes[1] > SID_PARTS_MAX)
        return 0;
    size_t need = SID_HEAD + 4u * bytes[1];
    return need <= size ? need : 0;
}

/*
 * A zero means that there is no SID. But a TOKEN_USER with a cleared pointer starts with zeros too:
 * a SID then follows, and a name cannot have its first byte at that place.
 */
size_t ew_kernel_sid(const uint8_t *bytes, size_t size, size_t pointer_size,
                     const uint8_t **ret_sid, size_t *ret_sid_len)
{
    size_t head = 2 * pointer_size;
    *ret_sid = NULL;
    *ret_sid_len = 0;
    if (size < 4)
        return 0;
    size_t len = size > head ? sid_size(bytes + head, size - head) : 0;
    if (len) {
        *ret_sid = bytes + head;
        *ret_sid_len = len;
        return head + len;
    }
    return ew_load_u32(bytes) == 0 ? 4 : 0;
}

/* --------------------------------------------------------------- pointer size */

/* Whether the UTF-16 text from at on ends exactly at the end of the payload. */
static bool text_ends_payload(const struct ew_record *record, size_t at)
{
    const uint8_t *bytes = record->payload;
    size_t size = record->payload_size;
    if (at + 2 > size || (size - at) % 2)
        return false;
    for (; at + 2 < size; at += 2)
        if (bytes[at] == 0 && bytes[at + 1] == 0)
            return false;
    return true;
}

/* An image has a nonzero size, and its name ends the payload. */
static bool image_fits(const struct ew_record *record, size_t pointer_size)
{
    if (record->payload_size < pointer_size + 4 || !ew_load_u32(record->payload + pointer_size))
        return false;
    switch (record->version) {
    case 0:
        return text_ends_payload(record, pointer_size + 4);
    case 1:
        return text_ends_payload(record, 2 * pointer_size + 4);
    default:
        return text_ends_payload(record, 3 * pointer_size + 32);
    }
}

/* An optional SID is followed by a printable character. */
static bool process_fits(const struct ew_record *record, size_t pointer_size)
{
    size_t at = record->version == 0  ? 2 * pointer_size
                : record->version < 3 ? pointer_size + 16
                : record->version < 4 ? 2 * pointer_size + 16
                                      : 2 * pointer_size + 20;
    const uint8_t *sid;
    size_t sid_len;
    if (record->payload_size <= at)
        return false;
    size_t skip = ew_kernel_sid(record->payload + at, record->payload_size - at, pointer_size, &sid,
                                &sid_len);
    at += skip;
    return skip && at < record->payload_size && record->payload[at] >= 0x20;
}

uint8_t ew_kernel_pointer_size(const struct ew_record *record, uint8_t class_id)
{
    uint8_t recorded = record->pointer_size == 4 ? 4 : 8, other = recorded == 4 ? 8 : 4;
    if (record->kind != EW_RECORD_CLASSIC)
        return recorded;
    bool (*fits)(const struct ew_record *, size_t);
    uint8_t op = record->opcode;
    if (class_id == EW_KERNEL_IMAGE && ((op >= 2 && op <= 4) || op == 10))
        fits = image_fits;
    else if (class_id == EW_KERNEL_PROCESS && ((op >= 1 && op <= 4) || op == 39))
        fits = process_fits;
    else
        return recorded;
    return !fits(record, recorded) && fits(record, other) ? other : recorded;
}
