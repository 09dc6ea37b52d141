/* SPDX-License-Identifier: MIT */
/*
 * Reads TRACE_EVENT_INFO (opcode 32) and EVENT_MAP_INFO (opcode 33) in TDH's layout. Offsets in
 * them are relative to their own start; each is checked when it is followed, and text ends with its
 * block at the latest.
 */
#include "decode/internal.h"

#include <string.h>

#include "base/utf16.h"
#include "decode/decode.h"
#include "decode/guid.h"

enum {
    OPCODE_EVENT_INFO = 32,
    OPCODE_MAP_INFO = 33,
    PROPERTIES_AT = 112, /* after the fixed part of TRACE_EVENT_INFO */
    SOURCE_XML = 0,
    SOURCE_WBEM = 1,

    PROPERTY_STRUCT = 0x1,
    PROPERTY_LENGTH_FIELD = 0x2,
    PROPERTY_COUNT_FIELD = 0x4,
    PROPERTY_LENGTH_FIXED = 0x10,
    PROPERTY_COUNT_FIXED = 0x20,

    MAP_IS_BITS = 0x2 | 0x10 | 0x20, /* manifest bit map, WBEM bit map, WBEM flags */
    MAP_ENTRIES_MAX = 4096,
};

bool ew_metadata_is(const struct ew_record *record)
{
    static const uint8_t guid[16] = {0xC1, 0xF6, 0xCC, 0xBB, 0xD1, 0x6C, 0xC4, 0x48,
                                     0x80, 0xFF, 0x83, 0x94, 0x82, 0xE3, 0x76, 0x71};
    return record->kind == EW_RECORD_CLASSIC && record->provider &&
           memcmp(record->provider, guid, sizeof guid) == 0;
}

/* The text at an offset of the block: its bytes before the NUL. Empty for offset 0, which means no
 * text. */
static const uint8_t *text_at(const struct ew_bytes *block, uint32_t offset, size_t *ret_len)
{
    *ret_len = 0;
    if (offset == 0 || offset >= block->size)
        return NULL;
    const uint8_t *text = block->data + offset;
    *ret_len = ew_utf16_len(text, block->size - offset);
    return text;
}

static const char *keep_text(struct ew_store *store, const struct ew_bytes *block, uint32_t offset)
{
    size_t len;
    const uint8_t *text = text_at(block, offset, &len);
    return text && len ? ew_store_utf16(store, text, len) : NULL;
}

static struct ew_map *map_at(struct ew_store *store, const uint8_t guid[16],
                             const struct ew_bytes *block, uint32_t offset)
{
    char name[128];
    size_t len;
    const uint8_t *text = text_at(block, offset, &len);
    if (!text || !len)
        return NULL;
    size_t used = ew_utf16_to_utf8(text, len, name, sizeof name);
    while (used && name[used - 1] == ' ')
        used--;
    return used ? ew_store_map(store, guid, name, used) : NULL;
}

/* ------------------------------------------------------------------- events */

struct info {
    struct ew_bytes block;
    const uint8_t *provider, *event_guid;
    uint16_t id;
    uint8_t version, opcode;
    uint32_t source, provider_name, task_name, opcode_name, property_count, top_count;
};

static bool read_info(const struct ew_record *record, struct info *ret)
{
    struct ew_bytes *in = &ret->block;
    ew_bytes_init(in, record->payload, record->payload_size);
    ret->provider = ew_bytes_take(in, 16);
    ret->event_guid = ew_bytes_take(in, 16);
    ret->id = ew_bytes_u16(in);
    ret->version = ew_bytes_u8(in);
    ew_bytes_skip(in, 2); /* channel, level */
    ret->opcode = ew_bytes_u8(in);
    ew_bytes_skip(in, 10); /* task, keyword */
    ret->source = ew_bytes_u32(in);
    ret->provider_name = ew_bytes_u32(in);
    ew_bytes_skip(in, 12); /* level, channel, keywords */
    ret->task_name = ew_bytes_u32(in);
    ret->opcode_name = ew_bytes_u32(in);
    ew_bytes_skip(in, 24); /* messages, binary XML, names of activities */
    ret->property_count = ew_bytes_u32(in);
    ret->top_count = ew_bytes_u32(in);
    ew_bytes_skip(in, 4); /* flags */
    return ew_bytes_ok(in) && in->pos == PROPERTIES_AT &&
           ret->property_count <= EW_SCHEMA_FIELDS_MAX && ret->top_count <= ret->property_count;
}

static bool is_sized(unsigned in)
{
    return in == EW_IN_UTF16 || in == EW_IN_ANSI || in == EW_IN_BINARY;
}

static bool read_property(struct ew_store *store, const struct info *info, struct ew_bytes *in,
                          struct ew_schema_field *field)
{
    uint32_t flags = ew_bytes_u32(in);
    uint32_t name = ew_bytes_u32(in);
    uint16_t type = ew_bytes_u16(in), out = ew_bytes_u16(in);
    uint32_t map = ew_bytes_u32(in);
    field->count = ew_bytes_u16(in);
    field->length = ew_bytes_u16(in);
    ew_bytes_skip(in, 4); /* tags */
    field->name = ew_bytes_ok(in) ? keep_text(store, &info->block, name) : NULL;
    if (!field->name || strlen(field->name) > UINT16_MAX)
        return false;
    field->name_len = (uint16_t)strlen(field->name);
    if (flags & PROPERTY_STRUCT) {
        field->in = EW_IN_STRUCT;
        field->first = type;
        field->members = out;
    } else {
        if (type >
            EW_IN_WBEM_SID) /* TDH has no higher types; our own must not come from a recording */
            return false;
        field->in = type;
        field->out = ew_out_from_tdh(out);
        field->map = map ? map_at(store, info->provider, &info->block, map) : NULL;
    }
    if (flags & PROPERTY_LENGTH_FIELD)
        field->length_by = EW_EXTENT_FIELD;
    else if (field->length && (is_sized(field->in) || flags & PROPERTY_LENGTH_FIXED))
        field->length_by = EW_EXTENT_CONST;
    if (flags & PROPERTY_COUNT_FIELD)
        field->count_by = EW_EXTENT_FIELD;
    else if (flags & PROPERTY_COUNT_FIXED || field->count > 1)
        field->count_by = EW_EXTENT_CONST;
    return true;
}

/* "Task/Opcode" as in PerfView: without the prefix "win:", and without the opcode Info. */
static const char *event_name(struct ew_store *store, const struct info *info)
{
    char name[256];
    size_t len, used = 0;
    const uint8_t *text = text_at(&info->block, info->task_name, &len);
    if (text)
        used = ew_utf16_to_utf8(text, len, name, sizeof name);
    while (used && name[used - 1] == ' ')
        used--;
    if (!used)
        return NULL;
    text = info->opcode ? text_at(&info->block, info->opcode_name, &len) : NULL;
    if (text && len && used + 2 < sizeof name) {
        char *at = name + used + 1;
        size_t opcode = ew_utf16_to_utf8(text, len, at, sizeof name - used - 1);
        while (opcode && at[opcode - 1] == ' ')
            opcode--;
        if (opcode > 4 && memcmp(at, "win:", 4) == 0) {
            memmove(at, at + 4, opcode - 4);
            opcode -= 4;
        }
        if (opcode) {
            name[used] = '/';
            used += 1 + opcode;
        }
    }
    return ew_store_text(store, name, used);
}

int ew_metadata_learn_event(struct ew_store *store, const struct ew_record *record)
{
    struct info info;
    if (!read_info(record, &info) || info.source > SOURCE_WBEM)
        return 0;
    bool classic = info.source == SOURCE_WBEM;
    const uint8_t *guid = classic ? info.event_guid : info.provider;
    uint32_t id = classic ? info.opcode | EW_KEY_CLASSIC : info.id;
    if (ew_store_schema(store, guid, id, info.version))
        return 0;
    struct ew_schema *schema = ew_store_alloc(store, 1, sizeof *schema);
    struct ew_schema_field *fields = ew_store_alloc(store, info.property_count, sizeof *fields);
    if (!schema || !fields)
        return 0;
    struct ew_bytes in = info.block;
    for (uint32_t i = 0; i < info.property_count; i++)
        if (!read_property(store, &info, &in, &fields[i]))
            return 0;
    schema->provider = keep_text(store, &info.block, info.provider_name);
    schema->event = event_name(store, &info);
    schema->fields = fields;
    schema->field_count = (uint16_t)info.property_count;
    schema->top_count = (uint16_t)info.top_count;
    schema->origin = EW_SCHEMA_METADATA;
    if (schema->provider)
        ew_store_put_provider(store, guid, schema->provider, strlen(schema->provider));
    ew_store_put_schema(store, guid, id, info.version, schema);
    return 1;
}

/* --------------------------------------------------------------------- maps */

static int learn_map(struct ew_store *store, const struct ew_record *record)
{
    struct ew_bytes in, block;
    ew_bytes_init(&in, record->payload, record->payload_size);
    const uint8_t *guid = ew_bytes_take(&in, 16);
    ew_bytes_sub(&in, ew_bytes_left(&in), &block);
    uint32_t name = ew_bytes_u32(&block), flags = ew_bytes_u32(&block);
    uint32_t count = ew_bytes_u32(&block);
    ew_bytes_skip(&block, 4); /* type of the values: numbers, for all flags read here */
    if (!ew_bytes_ok(&block) || count > MAP_ENTRIES_MAX || count > ew_bytes_left(&block) / 8)
        return 0;
    struct ew_map *map = map_at(store, guid, &block, name);
    if (!map || map->count)
        return 0;
    struct ew_map_entry *entries = ew_store_alloc(store, count, sizeof *entries);
    if (!entries)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        entries[i].label = keep_text(store, &block, ew_bytes_u32(&block));
        entries[i].value = ew_bytes_u32(&block);
        entries[i].label_len = entries[i].label ? (uint32_t)strlen(entries[i].label) : 0;
    }
    if (!ew_map_sort(entries, count))
        return 0;
    map->style = flags & MAP_IS_BITS ? EW_MAP_BITS : EW_MAP_VALUES;
    map->entries = entries;
    map->count = count;
    return 1;
}

int ew_metadata_learn(struct ew_store *store, const struct ew_record *record)
{
    if (record->opcode == OPCODE_EVENT_INFO)
        return ew_metadata_learn_event(store, record);
    return record->opcode == OPCODE_MAP_INFO ? learn_map(store, record) : 0;
}
