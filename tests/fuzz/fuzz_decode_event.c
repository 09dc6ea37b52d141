/* SPDX-License-Identifier: MIT */
/*
 * Any record as a typed event: no byte outside the payload is read, strings lie within it, and a
 * record truncated by one byte is decoded or reported as too short.
 */
#include "decode/decode.h"
#include "fuzz.h"
#include "kernel_input.h"

static void check_text(const struct ew_record *record, const struct ew_event_text *text)
{
    if (text->len == 0)
        return;
    require(text->bytes >= record->payload, "text begins in the payload");
    require((size_t)(text->bytes - record->payload) + text->len <= record->payload_size,
            "text ends in the payload");
    require(!text->wide || text->len % 2 == 0, "wide text has whole units");
    (void)touch(text->bytes, text->len);
}

static void check_event(const struct ew_record *record, const struct ew_event *event)
{
    struct ew_working_set set;
    switch (event->kind) {
    case EW_EVENT_PROCESS_START:
    case EW_EVENT_PROCESS_END:
    case EW_EVENT_PROCESS_THERE:
    case EW_EVENT_PROCESS_STILL:
    case EW_EVENT_PROCESS_DEFUNCT:
        check_text(record, &event->u.process.image);
        check_text(record, &event->u.process.command_line);
        return;
    case EW_EVENT_THREAD_START:
    case EW_EVENT_THREAD_END:
    case EW_EVENT_THREAD_THERE:
    case EW_EVENT_THREAD_STILL:
    case EW_EVENT_THREAD_NAME:
        check_text(record, &event->u.thread.name);
        return;
    case EW_EVENT_IMAGE_LOAD:
    case EW_EVENT_IMAGE_UNLOAD:
    case EW_EVENT_IMAGE_THERE:
    case EW_EVENT_IMAGE_STILL:
        check_text(record, &event->u.image.path);
        return;
    case EW_EVENT_WORKING_SETS:
        for (uint32_t i = 0; ew_decode_working_set(record, i, &set); i++)
            require(i < record->payload_size, "as many as fit");
        return;
    case EW_EVENT_PMC_NAMES:
        require(event->u.pmc_names.count <= EW_PMC_MAX, "as many as an event can carry");
        (void)ew_pmc_has(&event->u.pmc_names);
        return;
    default:
        return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_record record;
    struct ew_event event = {0};
    uint8_t *payload = make_record(data, size, &record);
    if (!payload)
        return 0;
    if (ew_decode_event(&record, &event))
        check_event(&record, &event);
    if (record.payload_size) {
        record.payload_size--;
        if (ew_decode_event(&record, &event))
            check_event(&record, &event);
    }
    free(payload);
    return 0;
}
