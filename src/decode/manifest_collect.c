/* SPDX-License-Identifier: MIT */
/*
 * Walks the tags of a manifest and gathers its parts. Nesting matters only for fields (template,
 * struct) and map entries; everything else is identified by its name alone.
 */
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "decode/guid.h"
#include "decode/manifest.h"
#include "decode/manifest_parts.h"
#include "decode/xml.h"

void ew_parts_init(struct ew_parts *parts)
{
    memset(parts, 0, sizeof *parts);
    parts->providers.item_size = sizeof(struct ew_part_provider);
    parts->events.item_size = sizeof(struct ew_part_event);
    parts->templates.item_size = sizeof(struct ew_part_template);
    parts->fields.item_size = sizeof(struct ew_part_field);
    parts->maps.item_size = sizeof(struct ew_part_map);
    parts->entries.item_size = sizeof(struct ew_part_entry);
    parts->strings.item_size = sizeof(struct ew_part_string);
}

void ew_parts_done(struct ew_parts *parts)
{
    ew_free(parts->providers.items);
    ew_free(parts->events.items);
    ew_free(parts->templates.items);
    ew_free(parts->fields.items);
    ew_free(parts->maps.items);
    ew_free(parts->entries.items);
    ew_free(parts->strings.items);
}

/* The next item, zeroed; NULL if there are too many or no memory. */
static void *add(struct ew_parts *parts, struct ew_part_list *list)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 16;
        if (capacity > EW_MANIFEST_ITEMS_MAX)
            return NULL;
        void *items = ew_realloc_array(list->items, capacity, list->item_size);
        if (!items) {
            parts->error = ETWATCH_ENOMEM;
            return NULL;
        }
        list->items = items;
        list->capacity = capacity;
    }
    void *item = (char *)list->items + list->count++ * list->item_size;
    memset(item, 0, list->item_size);
    return item;
}

static bool parse_number(struct ew_span text, uint64_t *ret_value)
{
    struct ew_bytes in;
    if (!text.text || !text.len)
        return false;
    ew_bytes_init(&in, text.text, text.len);
    bool hex = ew_bytes_accept(&in, "0x") || ew_bytes_accept(&in, "0X");
    if (hex)
        *ret_value = ew_bytes_hex_u64(&in);
    else if (ew_bytes_peek(&in) == '-')
        *ret_value = (uint64_t)ew_bytes_dec_i64(&in);
    else
        *ret_value = ew_bytes_dec_u64(&in);
    return ew_bytes_ok(&in) && ew_bytes_left(&in) == 0;
}

/* -------------------------------------------------------------------- types */

struct named {
    const char *name;
    uint16_t value;
};

static bool look_up(const struct named *table, size_t count, struct ew_span name,
                    uint16_t *ret_value)
{
    for (size_t i = 0; i < name.len; i++) {
        if (name.text[i] == ':') {
            name.text += i + 1;
            name.len -= i + 1;
            break;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (ew_span_equals(name, table[i].name)) {
            *ret_value = table[i].value;
            return true;
        }
    }
    return false;
}

static bool in_type(struct ew_span name, uint16_t *ret_in)
{
    static const struct named table[] = {
        {"UnicodeString", EW_IN_UTF16},
        {"AnsiString", EW_IN_ANSI},
        {"Int8", EW_IN_INT8},
        {"UInt8", EW_IN_UINT8},
        {"Int16", EW_IN_INT16},
        {"UInt16", EW_IN_UINT16},
        {"Int32", EW_IN_INT32},
        {"UInt32", EW_IN_UINT32},
        {"Int64", EW_IN_INT64},
        {"UInt64", EW_IN_UINT64},
        {"Float", EW_IN_FLOAT},
        {"Double", EW_IN_DOUBLE},
        {"Boolean", EW_IN_BOOLEAN},
        {"Binary", EW_IN_BINARY},
        {"GUID", EW_IN_GUID},
        {"Pointer", EW_IN_POINTER},
        {"FILETIME", EW_IN_FILETIME},
        {"SYSTEMTIME", EW_IN_SYSTEMTIME},
        {"SID", EW_IN_SID},
        {"HexInt32", EW_IN_HEX32},
        {"HexInt64", EW_IN_HEX64},
        {"CountedUnicodeString", EW_IN_COUNTED_UTF16},
        {"CountedAnsiString", EW_IN_COUNTED_ANSI},
        {"CountedBinary", EW_IN_COUNTED_BINARY},
        {"SizeT", EW_IN_SIZE},
        {"UnicodeChar", EW_IN_CHAR16},
        {"AnsiChar", EW_IN_CHAR8},
        {"WBEMSid", EW_IN_WBEM_SID},
    };
    return look_up(table, sizeof table / sizeof table[0], name, ret_in);
}

static uint8_t out_type(struct ew_span name)
{
    static const struct named table[] = {
        {"string", EW_OUT_TEXT},
        {"dateTime", EW_OUT_FILETIME},
        {"byte", EW_OUT_SIGNED},
        {"short", EW_OUT_SIGNED},
        {"int", EW_OUT_SIGNED},
        {"long", EW_OUT_SIGNED},
        {"unsignedByte", EW_OUT_UNSIGNED},
        {"unsignedShort", EW_OUT_UNSIGNED},
        {"unsignedInt", EW_OUT_UNSIGNED},
        {"unsignedLong", EW_OUT_UNSIGNED},
        {"boolean", EW_OUT_BOOLEAN},
        {"HexInt8", EW_OUT_HEX},
        {"HexInt16", EW_OUT_HEX},
        {"HexInt32", EW_OUT_HEX},
        {"HexInt64", EW_OUT_HEX},
        {"PID", EW_OUT_UNSIGNED},
        {"TID", EW_OUT_UNSIGNED},
        {"Port", EW_OUT_PORT},
        {"IPv4", EW_OUT_IPV4},
        {"IPv6", EW_OUT_IPV6},
        {"SocketAddress", EW_OUT_SOCKADDR},
        {"Xml", EW_OUT_UTF8},
        {"Json", EW_OUT_UTF8},
        {"Utf8", EW_OUT_UTF8},
        {"ErrorCode", EW_OUT_HEX},
        {"Win32Error", EW_OUT_UNSIGNED},
        {"NTSTATUS", EW_OUT_HEX},
        {"HResult", EW_OUT_HEX},
        {"CodePointer", EW_OUT_HEX},
        {"DateTimeUtc", EW_OUT_FILETIME},
        {"DateTimeCultureInsensitive", EW_OUT_FILETIME},
    };
    uint16_t out = EW_OUT_DEFAULT;
    if (name.text)
        (void)look_up(table, sizeof table / sizeof table[0], name, &out);
    return (uint8_t)out;
}

/* ------------------------------------------------------------------- fields */

static struct ew_part_template *open_template(struct ew_parts *parts)
{
    struct ew_part_template *templates = parts->templates.items;
    return parts->in_template ? &templates[parts->templates.count - 1] : NULL;
}

/* A length or count is a number or the name of an earlier field of the template. */
static bool set_extent(const struct ew_parts *parts, const struct ew_part_template *template,
                       struct ew_span text, uint8_t *ret_by, uint16_t *ret_value)
{
    const struct ew_part_field *fields = parts->fields.items;
    uint64_t number;
    if (!text.text)
        return true;
    if (parse_number(text, &number)) {
        *ret_by = EW_EXTENT_CONST;
        *ret_value = (uint16_t)number;
        return number <= UINT16_MAX;
    }
    for (uint32_t i = text.len ? template->field_count : 0; i > 0; i--) {
        struct ew_span name = fields[template->first + i - 1].name;
        if (name.len == text.len && memcmp(name.text, text.text, text.len) == 0) {
            *ret_by = EW_EXTENT_FIELD;
            *ret_value = (uint16_t)(i - 1);
            return true;
        }
    }
    return false;
}

static void begin_field(struct ew_parts *parts, const struct ew_xml *xml, bool is_struct,
                        bool stays_open)
{
    struct ew_part_template *template = open_template(parts);
    if (!template)
        return;
    struct ew_part_field *part =
        template->field_count < EW_SCHEMA_FIELDS_MAX ? add(parts, &parts->fields) : NULL;
    template = open_template(parts);
    if (!part) {
        template->bad = true;
        return;
    }
    struct ew_schema_field *field = &part->field;
    part->name = ew_xml_attribute(xml, "name");
    part->map = ew_xml_attribute(xml, "map");
    part->provider = template->key.provider;
    field->in = EW_IN_STRUCT;
    field->out = out_type(ew_xml_attribute(xml, "outType"));
    bool ok = is_struct || in_type(ew_xml_attribute(xml, "inType"), &field->in);
    ok = ok && set_extent(parts, template, ew_xml_attribute(xml, "length"), &field->length_by,
                          &field->length);
    ok = ok && set_extent(parts, template, ew_xml_attribute(xml, "count"), &field->count_by,
                          &field->count);
    if (!ok || !part->name.text)
        template->bad = true;
    uint32_t index = template->field_count++;
    field->first = (uint16_t)(index + 1);
    if (parts->depth)
        ((struct ew_part_field *)
             parts->fields.items)[template->first + parts->open[parts->depth - 1]]
            .field.members++;
    else
        template->top_count++;
    if (!is_struct || !stays_open)
        return;
    if (parts->depth == EW_SCHEMA_DEPTH_MAX)
        template->bad = true;
    else
        parts->open[parts->depth++] = index;
}

static void end_struct(struct ew_parts *parts)
{
    struct ew_part_template *template = open_template(parts);
    if (!template || !parts->depth)
        return;
    uint32_t index = parts->open[--parts->depth];
    struct ew_part_field *fields = parts->fields.items;
    fields[template->first + index].field.skip = (uint16_t)(template->field_count - index - 1);
}

/* --------------------------------------------------------------- other parts */

static uint32_t this_provider(const struct ew_parts *parts)
{
    return parts->providers.count - 1;
}

static void add_provider(struct ew_parts *parts, const struct ew_xml *xml)
{
    struct ew_part_provider *provider = add(parts, &parts->providers);
    struct ew_span guid = ew_xml_attribute(xml, "guid");
    if (!provider)
        return;
    provider->name = ew_xml_attribute(xml, "name");
    provider->valid =
        guid.text && provider->name.len && ew_guid_parse(guid.text, guid.len, provider->guid);
}

static void add_event(struct ew_parts *parts, const struct ew_xml *xml)
{
    uint64_t id, version = 0;
    struct ew_span text = ew_xml_attribute(xml, "version");
    if (!parse_number(ew_xml_attribute(xml, "value"), &id) || id > UINT16_MAX)
        return;
    if (text.text && (!parse_number(text, &version) || version > UINT8_MAX))
        return;
    struct ew_part_event *event = add(parts, &parts->events);
    if (!event)
        return;
    event->provider = this_provider(parts);
    event->id = (uint16_t)id;
    event->version = (uint8_t)version;
    event->task = ew_xml_attribute(xml, "task");
    event->opcode = ew_xml_attribute(xml, "opcode");
    event->symbol = ew_xml_attribute(xml, "symbol");
    event->template = ew_xml_attribute(xml, "template");
}

static void add_template(struct ew_parts *parts, const struct ew_xml *xml, bool stays_open)
{
    struct ew_part_template *template = add(parts, &parts->templates);
    parts->in_template = template && stays_open;
    parts->depth = 0;
    if (!template)
        return;
    template->key.name = ew_xml_attribute(xml, "tid");
    template->key.provider = this_provider(parts);
    template->first = parts->fields.count;
}

static void add_map(struct ew_parts *parts, const struct ew_xml *xml, bool flags)
{
    struct ew_part_map *map = add(parts, &parts->maps);
    if (!map)
        return;
    map->key.name = ew_xml_attribute(xml, "name");
    map->key.provider = this_provider(parts);
    map->first = parts->entries.count;
    map->flags = flags;
}

static void add_entry(struct ew_parts *parts, const struct ew_xml *xml)
{
    uint64_t value;
    struct ew_span message = ew_xml_attribute(xml, "message");
    if (!parts->maps.count || !message.text ||
        !parse_number(ew_xml_attribute(xml, "value"), &value))
        return;
    struct ew_part_entry *entry = add(parts, &parts->entries);
    if (!entry)
        return;
    entry->value = value;
    entry->message = message;
    ((struct ew_part_map *)parts->maps.items)[parts->maps.count - 1].count++;
}

/* Uses strings of the first language only: names of values are not translated. */
static void add_string(struct ew_parts *parts, const struct ew_xml *xml)
{
    struct ew_span id = ew_xml_attribute(xml, "id");
    struct ew_part_string *string =
        parts->languages <= 1 && id.text ? add(parts, &parts->strings) : NULL;
    if (!string)
        return;
    string->key.name = id;
    string->value = ew_xml_attribute(xml, "value");
}

static void begin(struct ew_parts *parts, const struct ew_xml *xml, bool stays_open)
{
    struct ew_span name = xml->name;
    if (ew_span_equals(name, "provider"))
        add_provider(parts, xml);
    else if (ew_span_equals(name, "resources"))
        parts->languages++;
    else if (ew_span_equals(name, "string"))
        add_string(parts, xml);
    else if (!parts->providers.count)
        return;
    else if (ew_span_equals(name, "event"))
        add_event(parts, xml);
    else if (ew_span_equals(name, "template"))
        add_template(parts, xml, stays_open);
    else if (ew_span_equals(name, "data"))
        begin_field(parts, xml, false, false);
    else if (ew_span_equals(name, "struct"))
        begin_field(parts, xml, true, stays_open);
    else if (ew_span_equals(name, "valueMap") || ew_span_equals(name, "bitMap"))
        add_map(parts, xml, ew_span_equals(name, "bitMap"));
    else if (ew_span_equals(name, "map"))
        add_entry(parts, xml);
}

void ew_parts_collect(struct ew_parts *parts, const void *text, size_t size)
{
    struct ew_xml xml;
    enum ew_xml_kind kind;
    ew_xml_init(&xml, text, size);
    while (!parts->error && (kind = ew_xml_next(&xml)) != EW_XML_END) {
        if (kind != EW_XML_CLOSE)
            begin(parts, &xml, kind == EW_XML_OPEN);
        else if (ew_span_equals(xml.name, "struct"))
            end_struct(parts);
        else if (ew_span_equals(xml.name, "template"))
            parts->in_template = false;
    }
    if (parts->in_template) /* the text ended inside of it */
        open_template(parts)->bad = true;
}
