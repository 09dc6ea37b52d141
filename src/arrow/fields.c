/* SPDX-License-Identifier: MIT */
/*
 * Kinds of events have different fields, and so do versions of one kind. Before columns are
 * created, all events are examined: a field gets the type that can represent every value it ever
 * had, which is text if nothing else can. Structs and arrays become JSON.
 */
#include "arrow/fields.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "sink/json.h"

enum { NAME_SIZE = 300 };

static bool opens(const struct etwatch_field *field)
{
    return field->type == ETWATCH_FIELD_ARRAY || field->type == ETWATCH_FIELD_STRUCT;
}

void ew_arrow_fields_put_json(struct ew_columns *columns, uint32_t column, struct ew_buf *scratch,
                              const struct etwatch_field *fields, uint32_t count)
{
    scratch->len = 0;
    ew_json_put_fields(scratch, fields, count);
    if (scratch->error == 0) {
        ew_columns_text(columns, column, scratch->data, scratch->len);
        return;
    }
    /* Too large: unknown, as in the JSON output. */
    if (scratch->error == ETWATCH_ELIMIT)
        scratch->error = 0;
    else
        columns->error = scratch->error;
}

/* -------------------------------------------------------------------- types */

/* The kinds of values of one field, over all events. */
enum seen {
    SEEN_NUMBER = 1 << 0,
    SEEN_NEGATIVE = 1 << 1,
    SEEN_LARGE = 1 << 2, /* above 63 bits, or an address or mask, which may be */
    SEEN_BOOL = 1 << 3,
    SEEN_REAL = 1 << 4,
    SEEN_BINARY = 1 << 5,
    SEEN_TEXT = 1 << 6, /* and values written as JSON */
};

static uint32_t kinds_seen(const struct etwatch_field *field)
{
    switch (field->type) {
    case ETWATCH_FIELD_U64:
        return SEEN_NUMBER | (field->v.u > INT64_MAX ? SEEN_LARGE : 0);
    case ETWATCH_FIELD_I64:
        return SEEN_NUMBER | (field->v.i < 0 ? SEEN_NEGATIVE : 0);
    case ETWATCH_FIELD_HEX:
        return SEEN_NUMBER | SEEN_LARGE;
    case ETWATCH_FIELD_BOOL:
        return SEEN_BOOL;
    case ETWATCH_FIELD_DOUBLE:
    case ETWATCH_FIELD_FLOAT:
        return SEEN_REAL;
    case ETWATCH_FIELD_BINARY:
        return SEEN_BINARY;
    case ETWATCH_FIELD_NULL:
        return 0;
    default:
        return SEEN_TEXT;
    }
}

static enum ew_column_type type_of(uint32_t seen)
{
    switch (seen) {
    case SEEN_NUMBER:
    case SEEN_NUMBER | SEEN_NEGATIVE:
        return EW_COLUMN_I64;
    case SEEN_NUMBER | SEEN_LARGE:
        return EW_COLUMN_U64;
    case SEEN_BOOL:
        return EW_COLUMN_BOOL;
    case SEEN_REAL:
        return EW_COLUMN_F64;
    case SEEN_BINARY:
        return EW_COLUMN_BINARY;
    default:
        return EW_COLUMN_TEXT;
    }
}

/* The slot of a name in the index, or the free one for it. */
static uint32_t slot_of(const struct ew_field_kinds *kinds, const char *name)
{
    enum { MASK = 2 * EW_FIELD_KINDS_MAX - 1 };
    uint64_t hash = ew_hash_seed();
    for (const char *c = name; *c != '\0'; c++)
        hash = ew_hash_mix(hash, (uint8_t)*c);
    uint32_t at = (uint32_t)(hash >> 16) & MASK;
    while (kinds->index[at] != 0 && strcmp(kinds->list[kinds->index[at] - 1].name, name) != 0)
        at = (at + 1) & MASK;
    return at;
}

/* The field with this name; `hint` is its probable index. */
static uint32_t find(const struct ew_field_kinds *kinds, const char *name, uint32_t hint)
{
    if (hint < kinds->count && strcmp(kinds->list[hint].name, name) == 0)
        return hint;
    return (uint32_t)kinds->index[slot_of(kinds, name)] - 1; /* UINT32_MAX: none */
}

/* The index after fields[i] and everything nested in it. */
static uint32_t after_entry(const struct etwatch_field *fields, uint32_t count, uint32_t i)
{
    uint32_t open = 0;
    for (; i < count; i++) {
        open += opens(&fields[i]);
        if (fields[i].type == ETWATCH_FIELD_CLOSE && open > 0)
            open--;
        if (open == 0)
            return i + 1;
    }
    return count;
}

void ew_arrow_field_kinds_done(struct ew_field_kinds *kinds)
{
    for (uint32_t i = 0; i < kinds->count; i++)
        ew_free(kinds->list[i].name);
    ew_free(kinds->list);
    memset(kinds, 0, sizeof *kinds);
}

static int add_kind(struct ew_field_kinds *kinds, const char *name, uint32_t *ret_at)
{
    if (kinds->count == EW_FIELD_KINDS_MAX)
        return ETWATCH_ELIMIT;
    if (kinds->count == kinds->size) {
        uint32_t size = kinds->size == 0 ? 16 : kinds->size * 2;
        struct ew_field_kind *list = ew_realloc_array(kinds->list, size, sizeof *list);
        if (list == NULL)
            return ETWATCH_ENOMEM;
        kinds->list = list;
        kinds->size = size;
    }
    char *copy = ew_strdup(name);
    if (copy == NULL)
        return ETWATCH_ENOMEM;
    kinds->index[slot_of(kinds, name)] = (uint16_t)(kinds->count + 1);
    kinds->list[kinds->count] = (struct ew_field_kind){.name = copy};
    *ret_at = kinds->count++;
    return 0;
}

int ew_arrow_field_kinds_learn(struct ew_field_kinds *kinds, const struct etwatch_field *fields,
                               uint32_t count)
{
    uint32_t hint = 0;
    for (uint32_t i = 0; i < count; i = after_entry(fields, count, i), hint++) {
        if (fields[i].name == NULL)
            continue;
        uint32_t at = find(kinds, fields[i].name, hint);
        int rc = at == UINT32_MAX ? add_kind(kinds, fields[i].name, &at) : 0;
        if (rc < 0)
            return rc;
        kinds->list[at].seen |= kinds_seen(&fields[i]);
    }
    return 0;
}

int ew_arrow_field_kinds_add(struct ew_field_kinds *kinds, struct ew_layout *layout)
{
    int rc = 0;
    kinds->first = ew_layout_count(layout);
    for (uint32_t i = 0; i < kinds->count && rc == 0; i++) {
        char name[NAME_SIZE];
        const char *own = kinds->list[i].name;
        (void)snprintf(name, sizeof name, "fields.%s", own);
        bool taken = ew_layout_find(layout, own) >= 0;
        rc = ew_layout_add(layout, taken ? name : own, type_of(kinds->list[i].seen), true);
    }
    return rc;
}

/* ------------------------------------------------------------------- values */

/* A value in a text column: text unchanged, anything else as in JSON. */
static void put_text(struct ew_columns *columns, uint32_t column, struct ew_buf *scratch,
                     const struct etwatch_field *fields, uint32_t count)
{
    if (fields[0].type == ETWATCH_FIELD_TEXT) {
        ew_columns_text(columns, column, fields[0].v.text, fields[0].len);
        return;
    }
    scratch->len = 0;
    ew_json_put_field(scratch, fields, count);
    bool quoted = fields[0].type == ETWATCH_FIELD_BINARY;
    if (scratch->error == 0)
        ew_columns_text(columns, column, scratch->data + quoted, scratch->len - (quoted ? 2 : 0));
    else if (scratch->error == ETWATCH_ELIMIT)
        scratch->error = 0;
    else
        columns->error = scratch->error;
}

static void put_value(struct ew_columns *columns, uint32_t column, struct ew_buf *scratch,
                      const struct etwatch_field *fields, uint32_t count)
{
    const struct etwatch_field *field = &fields[0];
    if (field->type == ETWATCH_FIELD_NULL)
        return;
    switch (columns->list[column].type) {
    case EW_COLUMN_I64:
    case EW_COLUMN_U64:
        ew_columns_u64(columns, column, field->v.u);
        break;
    case EW_COLUMN_F64:
        ew_columns_f64(columns, column, field->v.d);
        break;
    case EW_COLUMN_BOOL:
        ew_columns_bool(columns, column, field->v.u != 0);
        break;
    case EW_COLUMN_BINARY:
        ew_columns_bytes(columns, column, field->v.bytes, field->len);
        break;
    default:
        put_text(columns, column, scratch, fields, count);
        break;
    }
}

void ew_arrow_field_kinds_put(const struct ew_field_kinds *kinds, struct ew_columns *columns,
                              struct ew_buf *scratch, const struct etwatch_field *fields,
                              uint32_t count)
{
    uint32_t hint = 0, end;
    for (uint32_t i = 0; i < count; i = end, hint++) {
        end = after_entry(fields, count, i);
        uint32_t at = fields[i].name == NULL ? UINT32_MAX : find(kinds, fields[i].name, hint);
        /* If a name occurs twice in one event, the first value counts. */
        if (at != UINT32_MAX && !ew_columns_has(columns, kinds->first + at))
            put_value(columns, kinds->first + at, scratch, fields + i, end - i);
    }
}
