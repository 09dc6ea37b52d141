/* SPDX-License-Identifier: MIT */
/*
 * Helpers for decoder tests: builders for payloads and the records around them, and the decoded
 * fields as one line of text, so that a test can compare them with "a=1 b='x' c=[1 2] d={e=-3}".
 */
#ifndef DECODE_KIT_H
#define DECODE_KIT_H

#include <stdio.h>
#include <string.h>

#include "decode/decode.h"
#include "decode/guid.h"
#include "model/field.h"
#include "model/record.h"
#include "test.h"

enum { KIT_BYTES = 1 << 17, KIT_TEXT = 1 << 14, KIT_HEADER = 0x50 };

struct bytes {
    uint8_t data[KIT_BYTES];
    size_t size;
};

static inline void put(struct bytes *bytes, const void *data, size_t size)
{
    CHECK(size <= sizeof bytes->data - bytes->size);
    if (size)
        memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
}

static inline void put_int(struct bytes *bytes, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)(value >> (8 * i));
        put(bytes, &byte, 1);
    }
}

/* Including the terminator. */
static inline void put_text(struct bytes *bytes, const char *text)
{
    put(bytes, text, strlen(text) + 1);
}

/* ASCII as UTF-16, including the terminator. */
static inline void put_wide(struct bytes *bytes, const char *text)
{
    do {
        put_int(bytes, (uint8_t)*text, 2);
    } while (*text++);
}

/*
 * A manifest record: the header, its extended items directly after it, the payload in separate
 * memory.
 */
struct made_record {
    struct ew_record record;
    uint8_t header[KIT_HEADER + 8192];
    uint8_t guid[16];
};

static inline void make_record(struct made_record *made, const char *guid, uint16_t id,
                               uint8_t version, const void *payload, size_t size)
{
    memset(made, 0, sizeof *made);
    CHECK(ew_guid_parse(guid, strlen(guid), made->guid));
    made->record.header = made->header;
    made->record.provider = made->guid;
    made->record.payload = payload;
    made->record.payload_size = (uint32_t)size;
    made->record.pid = 10;
    made->record.tid = 11;
    made->record.kind = EW_RECORD_MANIFEST;
    made->record.header_type = 19;
    made->record.pointer_size = 8;
    made->record.id = id;
    made->record.version = version;
}

static inline void make_classic(struct made_record *made, const char *guid, uint8_t opcode,
                                uint8_t version, const void *payload, size_t size)
{
    make_record(made, guid, 0, version, payload, size);
    made->record.kind = EW_RECORD_CLASSIC;
    made->record.header_type = 20;
    made->record.opcode = opcode;
}

/* Adds an extended item and links the previous one to it. */
static inline void add_item(struct made_record *made, unsigned type, const void *data, size_t size)
{
    uint8_t *items = made->header + KIT_HEADER;
    size_t at = made->record.extended_size, whole = (8 + size + 7) / 8 * 8, last = 0;
    CHECK(KIT_HEADER + at + whole <= sizeof made->header);
    for (size_t i = 0; i < at; i += (size_t)(items[i] | items[i + 1] << 8))
        last = i;
    if (at)
        items[last + 4] = 1;
    items[at] = (uint8_t)whole;
    items[at + 1] = (uint8_t)(whole >> 8);
    items[at + 2] = (uint8_t)type;
    items[at + 6] = (uint8_t)size;
    items[at + 7] = (uint8_t)(size >> 8);
    memcpy(items + at + 8, data, size);
    made->record.extended_size = (uint16_t)(at + whole);
}

/* -------------------------------------------------------------- fields as text */

static inline int show_value(const struct ew_field *field, char *to, size_t size)
{
    char guid[EW_GUID_TEXT];
    int used = 0;
    switch (field->type) {
    case EW_FIELD_I64:
        return snprintf(to, size, "%lld", (long long)field->v.i);
    case EW_FIELD_HEX:
        return snprintf(to, size, "0x%llx", (unsigned long long)field->v.u);
    case EW_FIELD_BOOL:
        return snprintf(to, size, field->v.u ? "true" : "false");
    case EW_FIELD_FLOAT:
    case EW_FIELD_DOUBLE:
        return snprintf(to, size, "%g", field->v.d);
    case EW_FIELD_TEXT:
        return snprintf(to, size, "'%.*s'", (int)field->len, field->v.text);
    case EW_FIELD_GUID:
        ew_guid_text(field->v.raw, guid);
        return snprintf(to, size, "%s", guid);
    case EW_FIELD_FILETIME:
        return snprintf(to, size, "ft%llu", (unsigned long long)field->v.u);
    case EW_FIELD_ENUM:
        return snprintf(to, size, "%llu:%.*s", (unsigned long long)field->v.u, (int)field->len,
                        field->len ? field->label : "");
    case EW_FIELD_NULL:
        return snprintf(to, size, "null");
    case EW_FIELD_SID:
    case EW_FIELD_IPV4:
    case EW_FIELD_IPV6:
    case EW_FIELD_BINARY:
        used = snprintf(to, size, "#");
        for (uint32_t i = 0; i < field->len && (size_t)used + 3 < size; i++)
            used += snprintf(to + used, size - (size_t)used, "%02x", field->v.raw[i]);
        return used;
    default:
        return snprintf(to, size, "%llu", (unsigned long long)field->v.u);
    }
}

/* All fields in one line; valid until the next call. */
static inline const char *show(const struct ew_fields *fields)
{
    static char text[KIT_TEXT];
    bool array[64] = {false};
    unsigned depth = 0;
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < fields->count && used + 64 < sizeof text; i++) {
        const struct ew_field *field = &fields->list[i];
        size_t left = sizeof text - used;
        if (field->type == EW_FIELD_CLOSE) {
            CHECK(depth > 0);
            text[used++] = array[--depth] ? ']' : '}';
            text[used] = '\0';
            continue;
        }
        if (used && text[used - 1] != '[' && text[used - 1] != '{')
            text[used++] = ' ';
        if (field->name)
            used +=
                (size_t)snprintf(text + used, left - 1, "%.*s=", (int)field->name_len, field->name);
        left = sizeof text - used;
        if (field->type == EW_FIELD_ARRAY || field->type == EW_FIELD_STRUCT) {
            CHECK(depth < 64);
            array[depth++] = field->type == EW_FIELD_ARRAY;
            text[used++] = field->type == EW_FIELD_ARRAY ? '[' : '{';
        } else {
            int added = show_value(field, text + used, left);
            used += added > 0 && (size_t)added < left ? (size_t)added : left - 1;
        }
        text[used] = '\0';
    }
    CHECK_EQ_UINT(depth, 0);
    return text;
}

/*
 * Decodes the record and formats its fields. *ret_ok (may be NULL) is set if all of the record was
 * decoded.
 */
static inline const char *decode(struct ew_decoder *decoder, const struct ew_record *record,
                                 bool *ret_ok)
{
    static struct ew_fields fields;
    ew_fields_done(&fields);
    ew_fields_init(&fields);
    bool ok = ew_decoder_fields(decoder, record, &fields);
    if (ret_ok)
        *ret_ok = ok;
    const char *text = show(&fields);
    ew_fields_done(&fields);
    return text;
}

/* "provider/event". */
static inline const char *names(struct ew_decoder *decoder, const struct ew_record *record)
{
    static char text[1200];
    struct ew_event_names found;
    ew_decoder_names(decoder, record, &found);
    snprintf(text, sizeof text, "%s/%s", found.provider, found.event);
    return text;
}

#endif
