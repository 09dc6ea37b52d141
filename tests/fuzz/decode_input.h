/* SPDX-License-Identifier: MIT */
/* Shared by the fuzz targets of the decoders: a record around bytes, and a check of every field. */
#ifndef DECODE_INPUT_H
#define DECODE_INPUT_H

#include <stdint.h>
#include <string.h>

#include "decode/decode.h"
#include "fuzz.h"

/* Checks that the list is well formed and all of it can be read. */
static inline void check_fields(const struct ew_fields *fields)
{
    uint32_t depth = 0;
    require(fields->count <= EW_FIELDS_MAX, "no more fields than allowed");
    require(fields->open == 0 && fields->skipped == 0, "everything is closed");
    for (uint32_t i = 0; i < fields->count; i++) {
        const struct ew_field *field = &fields->list[i];
        if (field->name)
            (void)touch(field->name, field->name_len);
        switch (field->type) {
        case EW_FIELD_ARRAY:
        case EW_FIELD_STRUCT:
            depth++;
            break;
        case EW_FIELD_CLOSE:
            require(depth > 0, "nothing is closed before it is opened");
            depth--;
            break;
        case EW_FIELD_TEXT:
            (void)touch(field->v.text, field->len);
            break;
        case EW_FIELD_ENUM:
            if (field->len)
                (void)touch(field->label, field->len);
            break;
        case EW_FIELD_GUID:
        case EW_FIELD_SID:
        case EW_FIELD_IPV4:
        case EW_FIELD_IPV6:
        case EW_FIELD_BINARY:
            (void)touch(field->v.raw, field->len);
            break;
        default:
            require(field->type >= EW_FIELD_U64 && field->type <= EW_FIELD_CLOSE, "a known type");
            break;
        }
    }
    require(depth == 0, "every opened entry is closed");
}

static inline void check_names(struct ew_decoder *decoder, const struct ew_record *record)
{
    struct ew_event_names names;
    ew_decoder_names(decoder, record, &names);
    (void)touch(names.provider, strlen(names.provider));
    (void)touch(names.event, strlen(names.event));
}

/* Names and fields of one record. */
static inline void check_record(struct ew_decoder *decoder, const struct ew_record *record)
{
    struct ew_fields fields;
    check_names(decoder, record);
    ew_fields_init(&fields);
    (void)ew_decoder_fields(decoder, record, &fields);
    check_fields(&fields);
    ew_fields_done(&fields);
}

/* A manifest record without extended items. */
static inline struct ew_record make_input_record(const uint8_t *provider, uint16_t id,
                                                 uint8_t version, const uint8_t *payload,
                                                 size_t size)
{
    static const uint8_t header[0x50];
    struct ew_record record;
    memset(&record, 0, sizeof record);
    record.header = header;
    record.provider = provider;
    record.payload = payload;
    record.payload_size = (uint32_t)size;
    record.kind = EW_RECORD_MANIFEST;
    record.header_type = 19;
    record.pointer_size = 8;
    record.id = id;
    record.version = version;
    return record;
}

#endif
