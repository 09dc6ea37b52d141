/* SPDX-License-Identifier: MIT */
/* The list of built-in providers, and the compiler of their notation. Names are not copied: schemas
 * point into the tables. */
#include "decode/manifests.h"

#include <string.h>

#include "decode/decode.h"
#include "decode/manifests_lists.h"

const struct ew_table_provider *ew_tables(unsigned i)
{
    static const struct ew_table_provider *const lists[] = {ew_table_clr, ew_table_kernel,
                                                            ew_table_graphics, ew_table_names};
    for (unsigned list = 0; list < sizeof lists / sizeof lists[0]; list++)
        for (const struct ew_table_provider *at = lists[list]; at->guid; at++)
            if (i-- == 0)
                return at;
    return NULL;
}

const struct ew_table_event *ew_manifest_table_find(const struct ew_table_provider *provider,
                                                    uint16_t id, uint8_t version)
{
    const struct ew_table_event *best = NULL;
    for (const struct ew_table_event *event = provider->events; event && event->name; event++)
        if (event->id == id && event->version <= version)
            best = event;
    return best;
}

/* ----------------------------------------------------------------- compiler */

struct compile {
    struct ew_store *store;
    const struct ew_table_provider *provider;
    struct ew_bytes in;
    unsigned count, top_count, depth;
    unsigned open[EW_SCHEMA_DEPTH_MAX];
    struct ew_schema_field fields[EW_SCHEMA_FIELDS_MAX];
};

static bool is_word(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

static struct ew_span take_word(struct ew_bytes *in)
{
    size_t start = in->pos;
    while (is_word(ew_bytes_peek(in)))
        ew_bytes_skip(in, 1);
    return (struct ew_span){(const char *)in->data + start, in->pos - start};
}

static bool set_type(struct ew_schema_field *field, struct ew_span type)
{
    static const struct {
        const char *name;
        uint16_t in;
        uint8_t out;
    } table[] = {
        {"u1", EW_IN_UINT8, EW_OUT_DEFAULT},
        {"u2", EW_IN_UINT16, EW_OUT_DEFAULT},
        {"u4", EW_IN_UINT32, EW_OUT_DEFAULT},
        {"u8", EW_IN_UINT64, EW_OUT_DEFAULT},
        {"i1", EW_IN_INT8, EW_OUT_DEFAULT},
        {"i2", EW_IN_INT16, EW_OUT_DEFAULT},
        {"i4", EW_IN_INT32, EW_OUT_DEFAULT},
        {"i8", EW_IN_INT64, EW_OUT_DEFAULT},
        {"x1", EW_IN_UINT8, EW_OUT_HEX},
        {"x2", EW_IN_UINT16, EW_OUT_HEX},
        {"x4", EW_IN_HEX32, EW_OUT_DEFAULT},
        {"x8", EW_IN_HEX64, EW_OUT_DEFAULT},
        {"p", EW_IN_POINTER, EW_OUT_DEFAULT},
        {"z", EW_IN_SIZE, EW_OUT_DEFAULT},
        {"f4", EW_IN_FLOAT, EW_OUT_DEFAULT},
        {"f8", EW_IN_DOUBLE, EW_OUT_DEFAULT},
        {"b", EW_IN_BOOLEAN, EW_OUT_DEFAULT},
        {"b1", EW_IN_UINT8, EW_OUT_BOOLEAN},
        {"w", EW_IN_UTF16, EW_OUT_DEFAULT},
        {"a", EW_IN_ANSI, EW_OUT_DEFAULT},
        {"wc", EW_IN_COUNTED_UTF16, EW_OUT_DEFAULT},
        {"ac", EW_IN_COUNTED_ANSI, EW_OUT_DEFAULT},
        {"g", EW_IN_GUID, EW_OUT_DEFAULT},
        {"ft", EW_IN_FILETIME, EW_OUT_DEFAULT},
        {"st", EW_IN_SYSTEMTIME, EW_OUT_DEFAULT},
        {"sid", EW_IN_SID, EW_OUT_DEFAULT},
        {"ip4", EW_IN_UINT32, EW_OUT_IPV4},
        {"ip6", EW_IN_BINARY, EW_OUT_IPV6},
        {"port", EW_IN_UINT16, EW_OUT_PORT},
        {"bin", EW_IN_BINARY, EW_OUT_DEFAULT},
        {"sa", EW_IN_BINARY, EW_OUT_SOCKADDR},
        {"pad2", EW_IN_PAD2, EW_OUT_DEFAULT},
        {"padp", EW_IN_PAD_POINTER, EW_OUT_DEFAULT},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (ew_span_equals(type, table[i].name)) {
            field->in = table[i].in;
            field->out = table[i].out;
            return true;
        }
    }
    return false;
}

/* A number or the name of an earlier field, and the bracket that ends it. */
static bool set_extent(struct compile *compile, const char *close, uint8_t *ret_by,
                       uint16_t *ret_value)
{
    struct ew_bytes *in = &compile->in;
    if (ew_bytes_accept(in, "*")) {
        *ret_by = EW_EXTENT_REST;
        return ew_bytes_accept(in, close);
    }
    int first = ew_bytes_peek(in);
    if (first >= '0' && first <= '9') {
        *ret_by = EW_EXTENT_CONST;
        *ret_value = (uint16_t)ew_bytes_dec_u64(in);
        return ew_bytes_accept(in, close);
    }
    struct ew_span name = take_word(in);
    for (unsigned i = compile->count - 1; i > 0; i--) {
        const struct ew_schema_field *field = &compile->fields[i - 1];
        if (field->name_len == name.len && memcmp(field->name, name.text, name.len) == 0) {
            *ret_by = EW_EXTENT_FIELD;
            *ret_value = (uint16_t)(i - 1);
            return ew_bytes_accept(in, close);
        }
    }
    return false;
}

static unsigned count_entries(const char *text)
{
    unsigned count = 0;
    for (; *text; text++)
        count += *text == '=';
    return count;
}

static bool fill_map(struct compile *compile, struct ew_map *map, const char *text, bool flags)
{
    unsigned count = count_entries(text);
    struct ew_map_entry *entries = ew_store_alloc(compile->store, count, sizeof *entries);
    struct ew_bytes in;
    if (!entries)
        return false;
    ew_bytes_init(&in, text, strlen(text));
    for (unsigned i = 0; i < count; i++) {
        ew_bytes_skip_spaces(&in);
        struct ew_span label = take_word(&in);
        ew_bytes_expect(&in, "=");
        entries[i].label = label.text;
        entries[i].label_len = (uint32_t)label.len;
        entries[i].value =
            ew_bytes_accept(&in, "0x") ? ew_bytes_hex_u64(&in) : ew_bytes_dec_u64(&in);
    }
    if (!ew_map_sort(entries, count))
        return false;
    map->entries = entries;
    map->count = count;
    map->style = flags ? EW_MAP_FLAGS : EW_MAP_VALUES;
    return ew_bytes_ok(&in) && ew_bytes_left(&in) == 0;
}

static bool set_map(struct compile *compile, struct ew_schema_field *field, bool flags)
{
    const struct ew_table_provider *provider = compile->provider;
    const uint8_t *owner = (const uint8_t *)provider->guid; /* 16 of its digits suffice as a key */
    struct ew_span name = take_word(&compile->in);
    for (const struct ew_table_map *table = provider->maps; table && table->name; table++) {
        if (!ew_span_equals(name, table->name))
            continue;
        struct ew_map *map = ew_store_map(compile->store, owner, name.text, name.len);
        if (!map || (!map->count && !fill_map(compile, map, table->entries, flags)))
            return false;
        field->map = map;
        return true;
    }
    return false;
}

static bool open_struct(struct compile *compile, unsigned index)
{
    if (compile->depth == EW_SCHEMA_DEPTH_MAX)
        return false;
    compile->fields[index].in = EW_IN_STRUCT;
    compile->fields[index].first = (uint16_t)(index + 1);
    compile->open[compile->depth++] = index;
    return true;
}

static bool compile_field(struct compile *compile)
{
    struct ew_bytes *in = &compile->in;
    if (compile->count == EW_SCHEMA_FIELDS_MAX)
        return false;
    unsigned index = compile->count++;
    struct ew_schema_field *field = &compile->fields[index];
    memset(field, 0, sizeof *field);
    field->optional = ew_bytes_accept(in, "?");
    struct ew_span name = take_word(in);
    field->name = name.text;
    field->name_len = (uint16_t)name.len;
    if (compile->depth)
        compile->fields[compile->open[compile->depth - 1]].members++;
    else
        compile->top_count++;
    bool ok = name.len > 0;
    bool typed = ew_bytes_accept(in, ":");
    if (typed)
        ok = ok && set_type(field, take_word(in));
    if (ew_bytes_accept(in, "="))
        ok = ok && set_map(compile, field, false);
    else if (ew_bytes_accept(in, "|"))
        ok = ok && set_map(compile, field, true);
    if (ew_bytes_accept(in, "("))
        ok = ok && set_extent(compile, ")", &field->length_by, &field->length);
    if (ew_bytes_accept(in, "["))
        ok = ok && set_extent(compile, "]", &field->count_by, &field->count);
    if (!typed)
        ok = ok && ew_bytes_accept(in, "{") && open_struct(compile, index);
    return ok;
}

static bool compile_fields(struct compile *compile)
{
    struct ew_bytes *in = &compile->in;
    for (;;) {
        ew_bytes_skip_spaces(in);
        if (ew_bytes_left(in) == 0)
            return ew_bytes_ok(in) && compile->depth == 0;
        if (ew_bytes_accept(in, "}")) {
            if (!compile->depth)
                return false;
            unsigned index = compile->open[--compile->depth];
            compile->fields[index].skip = (uint16_t)(compile->count - index - 1);
        } else if (!compile_field(compile)) {
            return false;
        }
    }
}

const struct ew_schema *ew_manifest_table_compile(struct ew_store *store,
                                                  const struct ew_table_provider *provider,
                                                  const struct ew_table_event *event)
{
    struct compile compile;
    compile.store = store;
    compile.provider = provider;
    compile.count = compile.top_count = compile.depth = 0;
    ew_bytes_init(&compile.in, event->fields, strlen(event->fields));
    if (!compile_fields(&compile))
        return NULL;
    struct ew_schema *schema = ew_store_alloc(store, 1, sizeof *schema);
    struct ew_schema_field *fields = ew_store_alloc(store, compile.count, sizeof *fields);
    if (!schema || !fields)
        return NULL;
    if (compile.count)
        memcpy(fields, compile.fields, compile.count * sizeof *fields);
    schema->provider = provider->name;
    schema->event = event->name;
    schema->fields = fields;
    schema->field_count = (uint16_t)compile.count;
    schema->top_count = (uint16_t)compile.top_count;
    schema->origin = EW_SCHEMA_TABLE;
    return schema;
}
