/* SPDX-License-Identifier: MIT */
/*
 * Converts the text of a manifest to schemas, in two steps because its parts come in any order (the
 * strings last, in EventSource's manifests the templates after the events): manifest_collect.c
 * gathers all parts as spans of the text; here they are sorted by name and assembled.
 *
 * Bounded: each list by EW_MANIFEST_ITEMS_MAX, the result by the store. Lookups are binary
 * searches, so a crafted manifest cannot make them slow.
 */
#include "decode/manifest.h"

#include <stdlib.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/utf16.h"
#include "decode/manifest_parts.h"
#include "decode/xml.h"

/* ------------------------------------------------------------------ looking up */

static int compare_spans(struct ew_span a, struct ew_span b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len ? memcmp(a.text, b.text, len) : 0;
    return order ? order : a.len < b.len ? -1 : a.len > b.len;
}

/* Every part that is looked up starts with its struct ew_part_key. */
static int compare_keys(const void *left, const void *right)
{
    const struct ew_part_key *a = left, *b = right;
    if (a->provider != b->provider)
        return a->provider < b->provider ? -1 : 1;
    return compare_spans(a->name, b->name);
}

static void sort(struct ew_part_list *list)
{
    if (list->count)
        qsort(list->items, list->count, list->item_size, compare_keys);
}

static void *find(const struct ew_part_list *list, unsigned provider, struct ew_span name)
{
    struct ew_part_key key = {name, provider};
    if (!name.text || !list->count)
        return NULL;
    return bsearch(&key, list->items, list->count, list->item_size, compare_keys);
}

/* ------------------------------------------------------------------- texts */

/* A copy in the store without entities. */
static const char *keep(struct ew_store *store, struct ew_span text, size_t *ret_len)
{
    char *copy = ew_store_alloc(store, text.len + 1, 1);
    if (copy)
        *ret_len = ew_xml_unescape(text, copy);
    return copy;
}

/* "$(string.ID)" is the text of that id; if unknown, the part of the id after its last dot. */
static struct ew_span resolve(const struct ew_parts *parts, struct ew_span message)
{
    static const char open[] = "$(string.";
    if (!ew_span_starts(message, open) || message.text[message.len - 1] != ')')
        return message;
    struct ew_span id = {message.text + sizeof open - 1, message.len - sizeof open};
    const struct ew_part_string *string = find(&parts->strings, 0, id);
    if (string)
        return string->value;
    for (size_t i = id.len; i > 0; i--)
        if (id.text[i - 1] == '.')
            return (struct ew_span){id.text + i, id.len - i};
    return id;
}

static struct ew_span without_prefix(struct ew_span name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.text[i] == ':')
            return (struct ew_span){name.text + i + 1, name.len - i - 1};
    return name;
}

/* "Task/Opcode"; the opcode Info is omitted. NULL: the manifest has no name for it. */
static const char *event_name(struct ew_store *store, const struct ew_part_event *event)
{
    struct ew_span task = event->task.len ? without_prefix(event->task) : event->symbol;
    struct ew_span opcode = without_prefix(event->opcode);
    if (!task.len)
        return NULL;
    if (ew_span_equals(opcode, "Info"))
        opcode.len = 0;
    char *name = ew_store_alloc(store, task.len + opcode.len + 2, 1);
    if (!name)
        return NULL;
    size_t used = ew_xml_unescape(task, name);
    if (opcode.len) {
        name[used++] = '/';
        used += ew_xml_unescape(opcode, name + used);
    }
    name[used] = '\0';
    return name;
}

/* ----------------------------------------------------------------- building */

struct build {
    struct ew_store *store;
    struct ew_parts *parts;
    unsigned origin;
};

static void build_map(const struct build *build, const struct ew_part_map *part,
                      const uint8_t guid[16])
{
    const struct ew_part_entry *parts = build->parts->entries.items;
    struct ew_map *map = ew_store_map(build->store, guid, part->key.name.text, part->key.name.len);
    if (!map || map->count)
        return;
    struct ew_map_entry *entries = ew_store_alloc(build->store, part->count, sizeof *entries);
    if (!entries)
        return;
    for (uint32_t i = 0; i < part->count; i++) {
        const struct ew_part_entry *entry = &parts[part->first + i];
        size_t len = 0;
        entries[i].value = entry->value;
        entries[i].label = keep(build->store, resolve(build->parts, entry->message), &len);
        entries[i].label_len = (uint32_t)len;
        if (!entries[i].label)
            return;
    }
    if (!ew_map_sort(entries, part->count))
        return;
    map->style = part->flags ? EW_MAP_BITS : EW_MAP_VALUES;
    map->entries = entries;
    map->count = part->count;
}

static bool build_field(const struct build *build, const struct ew_part_field *part,
                        const uint8_t guid[16], struct ew_schema_field *ret_field)
{
    size_t len = 0;
    *ret_field = part->field;
    ret_field->name = keep(build->store, part->name, &len);
    if (!ret_field->name || len > UINT16_MAX)
        return false;
    ret_field->name_len = (uint16_t)len;
    if (part->map.len && find(&build->parts->maps, part->provider, part->map))
        ret_field->map = ew_store_map(build->store, guid, part->map.text, part->map.len);
    return true;
}

/* The fields of a template, built once even if several events use it. */
static const struct ew_schema_field *
build_template(const struct build *build, struct ew_part_template *part, const uint8_t guid[16])
{
    if (part->built || !part->field_count)
        return part->built;
    const struct ew_part_field *parts = build->parts->fields.items;
    struct ew_schema_field *fields =
        ew_store_alloc(build->store, part->field_count, sizeof *fields);
    if (!fields)
        return NULL;
    for (uint32_t i = 0; i < part->field_count; i++)
        if (!build_field(build, &parts[part->first + i], guid, &fields[i]))
            return NULL;
    part->built = fields;
    return fields;
}

static bool build_event(const struct build *build, const struct ew_part_event *event)
{
    const struct ew_part_provider *provider =
        (const struct ew_part_provider *)build->parts->providers.items + event->provider;
    struct ew_part_template *template =
        find(&build->parts->templates, event->provider, event->template);
    if (!provider->valid || (event->template.len && !template) || (template && template->bad))
        return false;
    struct ew_schema *schema = ew_store_alloc(build->store, 1, sizeof *schema);
    if (!schema)
        return false;
    if (template) {
        schema->fields = build_template(build, template, provider->guid);
        if (!schema->fields && template->field_count)
            return false;
        schema->field_count = (uint16_t) template->field_count;
        schema->top_count = (uint16_t) template->top_count;
    }
    schema->provider = ew_store_provider(build->store, provider->guid);
    schema->event = event_name(build->store, event);
    schema->origin = (uint8_t)build->origin;
    ew_store_put_schema(build->store, provider->guid, event->id, event->version, schema);
    return true;
}

static int build_all(const struct build *build)
{
    struct ew_parts *parts = build->parts;
    const struct ew_part_provider *providers = parts->providers.items;
    const struct ew_part_map *maps = parts->maps.items;
    const struct ew_part_event *events = parts->events.items;
    int learned = 0;
    for (uint32_t i = 0; i < parts->providers.count; i++)
        if (providers[i].valid)
            ew_store_put_provider(build->store, providers[i].guid, providers[i].name.text,
                                  providers[i].name.len);
    for (uint32_t i = 0; i < parts->maps.count; i++)
        if (providers[maps[i].key.provider].valid)
            build_map(build, &maps[i], providers[maps[i].key.provider].guid);
    for (uint32_t i = 0; i < parts->events.count; i++)
        learned += build_event(build, &events[i]);
    return learned;
}

static int learn_utf8(struct ew_store *store, const void *text, size_t size, unsigned origin)
{
    struct ew_parts parts;
    int learned;
    ew_parts_init(&parts);
    ew_parts_collect(&parts, text, size);
    if (parts.error) {
        learned = parts.error;
    } else if (!parts.providers.count) {
        learned = ETWATCH_EFORMAT;
    } else {
        sort(&parts.strings);
        sort(&parts.maps);
        sort(&parts.templates);
        learned = build_all(&(struct build){store, &parts, origin});
    }
    ew_parts_done(&parts);
    return learned;
}

int ew_manifest_learn(struct ew_store *store, const void *text, size_t size, unsigned origin)
{
    const uint8_t *bytes = text;
    if (size > EW_MANIFEST_BYTES_MAX)
        return ETWATCH_EFORMAT;
    if (size < 2 || bytes[0] != 0xFF || bytes[1] != 0xFE)
        return learn_utf8(store, text, size, origin);
    size_t room = EW_UTF16_UTF8_MAX(size) + 1;
    char *copy = ew_calloc(room, 1);
    if (!copy)
        return ETWATCH_ENOMEM;
    size_t len = ew_utf16_to_utf8(bytes + 2, size - 2, copy, room);
    int learned = learn_utf8(store, copy, len, origin);
    ew_free(copy);
    return learned;
}
