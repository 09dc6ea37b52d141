/* SPDX-License-Identifier: MIT */
/*
 * Reads the schema item of a TraceLogging event: u16 size, tags, name, and then the fields, each a
 * name, a type and the parameters of the type. A struct states how many of the following fields are
 * its members, so the list is a tree in depth-first order; open structs are kept on a small stack.
 */
#include "decode/internal.h"

#include <string.h>

#include "decode/decode.h"

enum {
    IN_MASK = 0x1F,
    IN_COUNT_CONST = 0x20,
    IN_COUNT_PREFIX = 0x40,
    IN_CUSTOM = 0x60, /* both: data of a custom format, preceded by its size */
    CHAIN = 0x80,     /* another byte follows */
};

struct parse {
    struct ew_bytes in;
    struct ew_tracelogging *out;
    unsigned count;
    unsigned depth;
    struct {
        unsigned field, left; /* left: members still to come */
    } open[EW_SCHEMA_DEPTH_MAX];
};

/* A NUL-terminated name within the item. */
static struct ew_span take_name(struct ew_bytes *in)
{
    return ew_bytes_until(in, '\0');
}

static void skip_tags(struct ew_bytes *in)
{
    while (ew_bytes_u8(in) & CHAIN)
        ;
}

static uint8_t out_from_tlg(unsigned out)
{
    static const uint8_t table[] = {
        [2] = EW_OUT_TEXT,      [3] = EW_OUT_BOOLEAN,  [4] = EW_OUT_HEX,
        [5] = EW_OUT_UNSIGNED,  [6] = EW_OUT_UNSIGNED, /* pid, tid */
        [7] = EW_OUT_PORT,      [8] = EW_OUT_IPV4,     [9] = EW_OUT_IPV6,
        [10] = EW_OUT_SOCKADDR, [11] = EW_OUT_UTF8,    [12] = EW_OUT_UTF8, /* XML, JSON */
        [13] = EW_OUT_UNSIGNED,                                            /* Win32 error */
        [14] = EW_OUT_HEX,      [15] = EW_OUT_HEX,                         /* NTSTATUS, HRESULT */
        [16] = EW_OUT_FILETIME, [17] = EW_OUT_SIGNED,  [18] = EW_OUT_UNSIGNED,
        [35] = EW_OUT_UTF8,     [37] = EW_OUT_HEX, /* code pointer */
        [38] = EW_OUT_FILETIME,
    };
    return out < sizeof table ? table[out] : (uint8_t)EW_OUT_DEFAULT;
}

/* Closes every struct that has all its members, which may complete the enclosing one. */
static void close_structs(struct parse *parse)
{
    while (parse->depth && parse->open[parse->depth - 1].left == 0) {
        unsigned field = parse->open[--parse->depth].field;
        parse->out->fields[field].skip = (uint16_t)(parse->count - field - 1);
    }
}

/* Starts a struct: the next `members` fields belong to it. */
static bool open_struct(struct parse *parse, struct ew_schema_field *field, unsigned members)
{
    if (parse->depth == EW_SCHEMA_DEPTH_MAX)
        return false;
    field->first = (uint16_t)parse->count;
    field->members = (uint16_t)members;
    parse->open[parse->depth].field = parse->count - 1;
    parse->open[parse->depth].left = members;
    parse->depth++;
    return true;
}

static void set_type(struct ew_schema_field *field, unsigned in, unsigned out)
{
    field->in = (uint16_t)(in & IN_MASK);
    field->out = out_from_tlg(out);
    if (field->in == EW_IN_BINARY) /* always counted in TraceLogging */
        field->in = EW_IN_COUNTED_BINARY;
    if ((in & IN_CUSTOM) == IN_COUNT_CONST)
        field->count_by = EW_EXTENT_CONST;
    if ((in & IN_CUSTOM) == IN_COUNT_PREFIX)
        field->count_by = EW_EXTENT_PREFIX;
    if ((in & IN_CUSTOM) == IN_CUSTOM) {
        field->in = EW_IN_COUNTED_BINARY;
        field->out = EW_OUT_DEFAULT;
    }
}

static bool parse_field(struct parse *parse)
{
    struct ew_bytes *in = &parse->in;
    if (parse->count == EW_SCHEMA_FIELDS_MAX)
        return false;
    struct ew_schema_field *field = &parse->out->fields[parse->count++];
    memset(field, 0, sizeof *field);
    struct ew_span name = take_name(in);
    if (name.len > UINT16_MAX)
        return false;
    field->name = name.text;
    field->name_len = (uint16_t)name.len;
    unsigned type = ew_bytes_u8(in), out = 0;
    if (type & CHAIN) {
        out = ew_bytes_u8(in);
        if (out & CHAIN)
            skip_tags(in);
    }
    set_type(field, type, out & 0x7F);
    if (field->count_by == EW_EXTENT_CONST)
        field->count = ew_bytes_u16(in);
    if ((type & IN_CUSTOM) == IN_CUSTOM)
        ew_bytes_skip(in, ew_bytes_u16(in));
    if (!ew_bytes_ok(in))
        return false;
    if (parse->depth)
        parse->open[parse->depth - 1].left--;
    else
        parse->out->schema.top_count++;
    if (field->in == EW_IN_STRUCT && !open_struct(parse, field, out & 0x7F))
        return false;
    close_structs(parse);
    return true;
}

/* The item after its size and tags: the name comes next. */
static bool find_schema(const struct ew_record *record, struct ew_bytes *ret_in)
{
    struct ew_bytes data;
    if (!ew_extended_find(record, EW_EXT_TRACELOGGING, &data))
        return false;
    size_t size = ew_bytes_u16(&data);
    if (!ew_bytes_ok(&data) || size < 2 || size - 2 > ew_bytes_left(&data))
        return false;
    ew_bytes_sub(&data, size - 2, ret_in);
    skip_tags(ret_in);
    return ew_bytes_ok(ret_in);
}

bool ew_tracelogging_parse(const struct ew_record *record, struct ew_tracelogging *ret)
{
    struct parse parse;
    memset(&ret->schema, 0, sizeof ret->schema);
    parse.out = ret;
    parse.count = 0;
    parse.depth = 0;
    if (!find_schema(record, &parse.in))
        return false;
    struct ew_span name = take_name(&parse.in);
    while (ew_bytes_left(&parse.in))
        if (!parse_field(&parse))
            return false;
    if (!ew_bytes_ok(&parse.in) || parse.depth)
        return false;
    ret->schema.event = name.text;
    ret->schema.fields = ret->fields;
    ret->schema.field_count = (uint16_t)parse.count;
    ret->schema.origin = EW_SCHEMA_TRACELOGGING;
    return true;
}

const char *ew_tracelogging_event(const struct ew_record *record)
{
    struct ew_bytes in;
    if (!find_schema(record, &in))
        return NULL;
    struct ew_span name = take_name(&in);
    return ew_bytes_ok(&in) ? name.text : NULL;
}

const char *ew_traits_provider(const struct ew_record *record)
{
    struct ew_bytes data;
    if (!ew_extended_find(record, EW_EXT_TRAITS, &data))
        return NULL;
    ew_bytes_skip(&data, 2); /* the size of the traits */
    struct ew_span name = take_name(&data);
    return ew_bytes_ok(&data) && name.len ? name.text : NULL;
}
