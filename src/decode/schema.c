/* SPDX-License-Identifier: MIT */
/*
 * Walks a payload by its schema: structs, arrays, and lengths and counts given by other fields.
 *
 * Depth is bounded by EW_SCHEMA_DEPTH_MAX. Work is bounded by the list of fields and the payload:
 * every array element adds an entry or consumes bytes, and a list that is cut ends the walk, no
 * matter what counts a payload claims.
 */
#include "decode/schema.h"

#include <string.h>

#include <etwatch/etwatch.h>

#include "base/utf16.h"

struct walk {
    const struct ew_schema *schema;
    struct ew_bytes in;
    struct ew_fields *out;
    unsigned pointer_size;
    size_t whole;                          /* bytes up to the end of the last complete field */
    uint64_t number[EW_SCHEMA_FIELDS_MAX]; /* values that lengths and counts refer to */
};

static bool walk_members(struct walk *walk, unsigned first, unsigned count, unsigned depth);

/* Evaluates EW_EXTENT_*; false if it refers to nothing. */
static bool extent(struct walk *walk, unsigned by, unsigned value, uint64_t *ret)
{
    *ret = value;
    if (by == EW_EXTENT_FIELD) {
        if (value >= walk->schema->field_count)
            return false;
        *ret = walk->number[value];
    } else if (by == EW_EXTENT_PREFIX) {
        *ret = ew_bytes_u16(&walk->in);
    }
    return ew_bytes_ok(&walk->in);
}

static bool walk_one(struct walk *walk, unsigned index, bool named, unsigned depth)
{
    const struct ew_schema_field *field = &walk->schema->fields[index];
    const char *name = named ? field->name : NULL;
    size_t name_len = named ? field->name_len : 0;
    uint64_t length = 0;
    if (field->in == EW_IN_STRUCT) {
        if (depth >= EW_SCHEMA_DEPTH_MAX)
            return false;
        ew_fields_open(walk->out, name, name_len, EW_FIELD_STRUCT);
        bool ok = walk_members(walk, field->first, field->members, depth + 1);
        ew_fields_close(walk->out);
        return ok;
    }
    if (!extent(walk, field->length_by, field->length, &length))
        return false;
    ew_schema_value(field, name, name_len, &walk->in, walk->pointer_size, length, walk->out,
                    &walk->number[index]);
    if (ew_bytes_ok(&walk->in))
        walk->whole = walk->in.pos;
    return ew_bytes_ok(&walk->in);
}

/* An array of characters is one text. */
static bool walk_characters(struct walk *walk, const struct ew_schema_field *field, uint64_t count)
{
    bool wide = field->in == EW_IN_CHAR16 || field->in == EW_IN_UINT16 || field->in == EW_IN_INT16;
    size_t unit = wide ? 2 : 1;
    if (count > ew_bytes_left(&walk->in) / unit) {
        ew_bytes_fail(&walk->in, ETWATCH_ETRUNC);
        return false;
    }
    size_t len = (size_t)count * unit;
    const uint8_t *text = ew_bytes_take(&walk->in, len);
    walk->whole = walk->in.pos;
    if (wide) {
        ew_fields_utf16(walk->out, field->name, field->name_len, text, ew_utf16_len(text, len));
        return true;
    }
    const uint8_t *nul = len ? memchr(text, 0, len) : NULL;
    ew_fields_ansi(walk->out, field->name, field->name_len, text, nul ? (size_t)(nul - text) : len);
    return true;
}

static bool holds_characters(const struct ew_schema_field *field)
{
    switch (field->in) {
    case EW_IN_CHAR8:
    case EW_IN_CHAR16:
        return true;
    case EW_IN_INT8:
    case EW_IN_UINT8:
    case EW_IN_INT16:
    case EW_IN_UINT16:
        return field->out == EW_OUT_TEXT || field->out == EW_OUT_UTF8;
    default:
        return false;
    }
}

static bool walk_array(struct walk *walk, unsigned index, unsigned depth)
{
    const struct ew_schema_field *field = &walk->schema->fields[index];
    uint64_t count;
    bool ok = true;
    if (!extent(walk, field->count_by, field->count, &count))
        return false;
    if (field->count_by == EW_EXTENT_REST)
        count = UINT64_MAX;
    else if (holds_characters(field))
        return walk_characters(walk, field, count);
    ew_fields_open(walk->out, field->name, field->name_len, EW_FIELD_ARRAY);
    for (uint64_t i = 0; ok && i < count && !walk->out->cut; i++) {
        uint32_t entries = walk->out->count;
        size_t pos = walk->in.pos;
        if (field->count_by == EW_EXTENT_REST && ew_bytes_left(&walk->in) == 0)
            break;
        ok = walk_one(walk, index, false, depth);
        if (walk->out->count == entries && walk->in.pos == pos)
            break;
    }
    ew_fields_close(walk->out);
    return ok;
}

static bool walk_members(struct walk *walk, unsigned first, unsigned count, unsigned depth)
{
    unsigned i = first;
    for (; count > 0; count--) {
        if (i >= walk->schema->field_count || walk->out->cut)
            return false;
        const struct ew_schema_field *field = &walk->schema->fields[i];
        if (field->optional && ew_bytes_left(&walk->in) == 0)
            return true;
        bool ok = field->count_by ? walk_array(walk, i, depth) : walk_one(walk, i, true, depth);
        if (!ok)
            return false;
        i += 1u + field->skip;
    }
    return true;
}

bool ew_schema_decode(const struct ew_schema *schema, const uint8_t *payload, size_t size,
                      unsigned pointer_size, struct ew_fields *fields, size_t *ret_used)
{
    struct walk walk;
    walk.schema = schema;
    walk.out = fields;
    walk.pointer_size = pointer_size;
    walk.whole = 0;
    *ret_used = 0;
    if (schema->field_count > EW_SCHEMA_FIELDS_MAX)
        return false;
    memset(walk.number, 0, schema->field_count * sizeof walk.number[0]);
    ew_bytes_init(&walk.in, payload, size);
    bool ok = walk_members(&walk, 0, schema->top_count, 0);
    *ret_used = walk.whole;
    return ok && !fields->cut;
}
