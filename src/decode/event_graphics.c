/* SPDX-License-Identifier: MIT */
/*
 * Events of the graphics kernel (DxgKrnl) about the work of GPUs, and presents of DXGI and
 * Direct3D 9. Payloads are packed; P is the size of a pointer:
 *
 *   27, 29 Device     process id (P), adapter (P), u32, device (P)
 *   30 to 32 Context  device (P), u32 node, seven u32, context (P); 31 is its end
 *   422, 424 HwQueue  context (P), queue of the driver (P), queue (P)
 *   175 DmaPacket     context (P), context (P), u32 type, u64 id, u32 sequence; it is given to the
 *                     engine. Version 0 lacks the second context
 *   176, 177          context (P), u32 type, u64 id, u32 sequence; it has ended
 *   178, 180          context or queue (P), u32 type, u32 sequence; submitted, ended
 */
#include <string.h>

#include "decode/event.h"

static const uint8_t dxgkrnl_guid[16] = {0x5a, 0xc4, 0x2e, 0x80, 0x99, 0x1e, 0x83, 0x4b,
                                         0x99, 0x20, 0x87, 0xc9, 0x82, 0x77, 0xba, 0x9d};
static const uint8_t dxgi_guid[16] = {0x36, 0xc0, 0x11, 0xca, 0x02, 0x01, 0x2d, 0x4a,
                                      0xa6, 0xad, 0xf0, 0x3c, 0xfe, 0xd5, 0xd3, 0xc9};
static const uint8_t d3d9_guid[16] = {0x0a, 0xca, 0x3a, 0x78, 0x0e, 0x79, 0x7f, 0x4d,
                                      0x84, 0x51, 0xaa, 0x85, 0x05, 0x11, 0xc6, 0xb9};

enum { PRESENT_TEST = 1 }; /* DXGI_PRESENT_TEST: nothing is shown */

static bool decode_device(const struct ew_record *record, size_t p, struct ew_event *event)
{
    const uint8_t *at = record->payload;
    if (record->payload_size < 3 * p + 4)
        return false;
    uint64_t pid = ew_event_pointer(at, p);
    event->kind = EW_EVENT_GPU_DEVICE;
    event->u.gpu.pid = pid <= UINT32_MAX && pid != 0 ? (uint32_t)pid : EW_NO_ID;
    event->u.gpu.adapter = ew_event_pointer(at + p, p);
    event->u.gpu.device = ew_event_pointer(at + 2 * p + 4, p);
    return true;
}

static bool decode_context(const struct ew_record *record, size_t p, struct ew_event *event)
{
    const uint8_t *at = record->payload;
    if (record->payload_size < 2 * p + 32)
        return false;
    event->kind = record->id == 31 ? EW_EVENT_GPU_CONTEXT_END : EW_EVENT_GPU_CONTEXT;
    event->u.gpu.device = ew_event_pointer(at, p);
    event->u.gpu.node = ew_load_u32(at + p);
    event->u.gpu.context = ew_event_pointer(at + p + 32, p);
    /* The rundown is logged by the process that enabled it. */
    event->u.gpu.pid = record->id == 30 && record->pid != 0 ? record->pid : EW_NO_ID;
    return true;
}

static bool decode_queue(const struct ew_record *record, size_t p, struct ew_event *event)
{
    if (record->payload_size < 3 * p)
        return false;
    event->kind = EW_EVENT_GPU_QUEUE;
    event->u.gpu.context = ew_event_pointer(record->payload, p);
    event->u.gpu.queue = ew_event_pointer(record->payload + 2 * p, p);
    return true;
}

static bool decode_packet(const struct ew_record *record, size_t p, struct ew_event *event)
{
    const uint8_t *at = record->payload;
    size_t contexts = record->id == 175 && record->version >= 1 ? 2 * p : p;
    if (record->payload_size < contexts + 16)
        return false;
    event->kind = record->id == 175 ? EW_EVENT_GPU_PACKET : EW_EVENT_GPU_PACKET_END;
    event->u.gpu.context = ew_event_pointer(at, p);
    event->u.gpu.packet_type = ew_load_u32(at + contexts);
    event->u.gpu.sequence = ew_load_u32(at + contexts + 12);
    return true;
}

static bool decode_submission(const struct ew_record *record, size_t p, struct ew_event *event)
{
    const uint8_t *at = record->payload;
    if (record->payload_size < p + 8)
        return false;
    event->kind = record->id == 178 ? EW_EVENT_GPU_SUBMIT : EW_EVENT_GPU_SUBMIT_END;
    event->u.gpu.context = ew_event_pointer(at, p);
    event->u.gpu.packet_type = ew_load_u32(at + p);
    event->u.gpu.sequence = ew_load_u32(at + p + 4);
    event->u.gpu.pid = record->id == 178 && record->pid != 0 ? record->pid : EW_NO_ID;
    return true;
}

static bool decode_dxgkrnl(const struct ew_record *record, size_t p, struct ew_event *event)
{
    switch (record->id) {
    case 27:
    case 29:
        return decode_device(record, p, event);
    case 30:
    case 31:
    case 32:
        return decode_context(record, p, event);
    case 422:
    case 424:
        return decode_queue(record, p, event);
    case 175:
    case 176:
    case 177:
        return decode_packet(record, p, event);
    case 178:
    case 180:
        return decode_submission(record, p, event);
    default:
        return true;
    }
}

/* The swap chain (P), then u32 flags. */
static bool decode_present(const struct ew_record *record, size_t p, bool tests,
                           struct ew_event *event)
{
    if (record->payload_size < p + 4)
        return false;
    if (!tests || (ew_load_u32(record->payload + p) & PRESENT_TEST) == 0)
        event->kind = EW_EVENT_PRESENT;
    return true;
}

bool ew_event_of_graphics(const struct ew_record *record, struct ew_event *event)
{
    size_t p = record->pointer_size == 4 ? 4 : 8;
    if (memcmp(record->provider, dxgkrnl_guid, 16) == 0) {
        memset(&event->u.gpu, 0, sizeof event->u.gpu);
        event->u.gpu.pid = EW_NO_ID;
        return decode_dxgkrnl(record, p, event);
    }
    if (memcmp(record->provider, dxgi_guid, 16) == 0 && (record->id == 42 || record->id == 55))
        return decode_present(record, p, true, event);
    if (memcmp(record->provider, d3d9_guid, 16) == 0 && record->id == 1)
        return decode_present(record, p, false, event);
    return true;
}
