/* SPDX-License-Identifier: MIT */
/* Shared by the parts of ew_decode_event: loads from a payload after one length check. */
#ifndef EW_DECODE_EVENT_H
#define EW_DECODE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "model/event.h"
#include "model/record.h"

/* Each fills *event, which already has its common part. False: the payload is too short. */
bool ew_event_of_class(const struct ew_record *record, uint8_t class_id, uint8_t opcode,
                       size_t pointer_size, struct ew_event *event);
bool ew_event_of_process(const struct ew_record *record, uint8_t opcode, size_t pointer_size,
                         struct ew_event *event);
bool ew_event_of_manifest(const struct ew_record *record, struct ew_event *event);
bool ew_event_of_graphics(const struct ew_record *record, struct ew_event *event);

static inline uint64_t ew_event_pointer(const uint8_t *p, size_t pointer_size)
{
    return pointer_size == 8 ? ew_load_u64(p) : ew_load_u32(p);
}

/* The payload names the thread; the header's pid applies only if its tid is the same. */
static inline void ew_event_set_tid(const struct ew_record *record, uint32_t tid,
                                    struct ew_event *event)
{
    event->pid = record->tid == tid ? record->pid : EW_NO_ID;
    event->tid = tid;
}

/* Text from at on, up to a NUL or the end. Returns the position behind it and its NUL. */
size_t ew_event_ansi(const struct ew_record *record, size_t at, struct ew_event_text *ret_text);
size_t ew_event_wide(const struct ew_record *record, size_t at, struct ew_event_text *ret_text);

#endif
