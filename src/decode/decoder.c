/* SPDX-License-Identifier: MIT */
/*
 * Selects the decoder of a record. A record belongs to the kernel (kernel.h), or it carries its own
 * schema (TraceLogging), or the decoder has a schema for it: learned from the recording, or from
 * the built-in tables. Names and fields are looked up in the same order.
 *
 * Lookups of a schema by key are cached, because events come in runs of a few kinds; learning a new
 * schema clears the cache.
 */
#include <stdio.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "decode/decode.h"
#include "decode/decoder.h"
#include "decode/guid.h"
#include "decode/internal.h"
#include "decode/kernel.h"
#include "decode/manifest.h"
#include "decode/manifests.h"
#include "decode/store.h"

enum { CACHE_SIZE = 256, NAME_SIZE = 512 }; /* CACHE_SIZE: a power of two */
_Static_assert((int)NAME_SIZE >= (int)EW_KERNEL_NAME_SIZE, "scratch for the kernel's names");

struct cached {
    uint8_t guid[16];
    uint32_t id;
    uint8_t version;
    bool used;
    const struct ew_schema *schema; /* NULL: there is none */
};

struct ew_decoder {
    struct ew_store learned, tables;
    struct ew_eventsource eventsource;
    struct cached cache[CACHE_SIZE];
    uint8_t table_guid[EW_TABLE_PROVIDERS_MAX][16];
    unsigned table_count;
    struct ew_tracelogging tracelogging;
    char provider[NAME_SIZE], event[NAME_SIZE]; /* of the last record, if they had to be composed */
};

int ew_decoder_new(struct ew_decoder **ret_decoder)
{
    struct ew_decoder *decoder = ew_calloc(1, sizeof *decoder);
    *ret_decoder = decoder;
    if (!decoder)
        return ETWATCH_ENOMEM;
    ew_store_init(&decoder->learned);
    ew_store_init(&decoder->tables);
    const struct ew_table_provider *table;
    while (decoder->table_count < EW_TABLE_PROVIDERS_MAX &&
           (table = ew_tables(decoder->table_count)) != NULL) {
        (void)ew_guid_parse(table->guid, strlen(table->guid),
                            decoder->table_guid[decoder->table_count]);
        decoder->table_count++;
    }
    return 0;
}

void ew_decoder_free(struct ew_decoder *decoder)
{
    if (!decoder)
        return;
    ew_eventsource_done(&decoder->eventsource);
    ew_store_done(&decoder->learned);
    ew_store_done(&decoder->tables);
    ew_free(decoder);
}

/* ----------------------------------------------------------------- learning */

static void clear_cache(struct ew_decoder *decoder)
{
    memset(decoder->cache, 0, sizeof decoder->cache);
}

int ew_decoder_learn_manifest(struct ew_decoder *decoder, const void *xml, size_t size)
{
    clear_cache(decoder);
    return ew_manifest_learn(&decoder->learned, xml, size, EW_SCHEMA_TABLE);
}

int ew_decoder_learn(struct ew_decoder *decoder, const struct ew_record *record)
{
    int learned = 0;
    if (!record->provider) {
        return 0;
    } else if (record->kind == EW_RECORD_CLASSIC) {
        if (ew_metadata_is(record))
            learned = ew_metadata_learn(&decoder->learned, record);
    } else if (record->kind == EW_RECORD_MANIFEST) {
        if (ew_eventsource_is_chunk(record))
            learned = ew_eventsource_learn(&decoder->eventsource, &decoder->learned, record);
        if (record->extended_size) {
            const char *name = ew_traits_provider(record);
            if (name && !ew_store_provider(&decoder->learned, record->provider))
                ew_store_put_provider(&decoder->learned, record->provider, name, strlen(name));
        }
    }
    if (learned > 0)
        clear_cache(decoder);
    return learned < 0 ? learned : 0;
}

void ew_decoder_name_provider(struct ew_decoder *decoder, const uint8_t guid[16], const char *name)
{
    if (!ew_store_provider(&decoder->learned, guid))
        ew_store_put_provider(&decoder->learned, guid, name, strlen(name));
}

int ew_decoder_learn_info(struct ew_decoder *decoder, const void *info, size_t size)
{
    struct ew_record record = {.kind = EW_RECORD_CLASSIC, .payload = info};
    record.payload_size = size > UINT32_MAX ? 0 : (uint32_t)size;
    clear_cache(decoder);
    return ew_metadata_learn_event(&decoder->learned, &record);
}

/* ------------------------------------------------------------ finding a schema */

static const struct ew_table_provider *find_table(const struct ew_decoder *decoder,
                                                  const uint8_t *guid)
{
    for (unsigned i = 0; i < decoder->table_count; i++)
        if (memcmp(decoder->table_guid[i], guid, 16) == 0)
            return ew_tables(i);
    return NULL;
}

/* Compiled once per table entry, even if it serves several versions of an event. */
static const struct ew_schema *table_schema(struct ew_decoder *decoder,
                                            const struct ew_table_provider *table,
                                            const uint8_t *guid, uint16_t id, uint8_t version)
{
    const struct ew_table_event *event = ew_manifest_table_find(table, id, version);
    if (!event)
        return NULL;
    const struct ew_schema *schema =
        ew_store_schema(&decoder->tables, guid, event->id, event->version);
    if (schema)
        return schema;
    schema = ew_manifest_table_compile(&decoder->tables, table, event);
    if (schema)
        ew_store_put_schema(&decoder->tables, guid, event->id, event->version, schema);
    return schema;
}

static const struct ew_schema *look_up(struct ew_decoder *decoder, const uint8_t *guid, uint32_t id,
                                       uint8_t version)
{
    const struct ew_table_provider *table = find_table(decoder, guid);
    if (table && table->classic != ((id & EW_KEY_CLASSIC) != 0))
        table = NULL;
    const struct ew_schema *schema = NULL;
    if (table && table->first)
        schema = table_schema(decoder, table, guid, (uint16_t)id, version);
    if (!schema)
        schema = ew_store_schema(&decoder->learned, guid, id, version);
    if (!schema && table && !table->first)
        schema = table_schema(decoder, table, guid, (uint16_t)id, version);
    return schema;
}

static struct cached *cache_place(struct ew_decoder *decoder, const uint8_t *guid, uint32_t id,
                                  uint8_t version)
{
    uint32_t hash = ((uint32_t)guid[0] | (uint32_t)guid[1] << 8 | (uint32_t)guid[2] << 16) ^
                    id * 2654435761u ^ (uint32_t)version << 5;
    return &decoder->cache[(hash ^ hash >> 16) & (CACHE_SIZE - 1)];
}

const struct ew_schema *ew_decoder_schema(struct ew_decoder *decoder,
                                          const struct ew_record *record)
{
    if (record->extended_size && ew_tracelogging_parse(record, &decoder->tracelogging))
        return &decoder->tracelogging.schema;
    if (!record->provider || record->kind == EW_RECORD_MESSAGE)
        return NULL;
    if (ew_eventsource_is_chunk(record))
        return ew_eventsource_chunk_schema();
    uint32_t id = record->kind == EW_RECORD_MANIFEST ? record->id : record->opcode | EW_KEY_CLASSIC;
    struct cached *cached = cache_place(decoder, record->provider, id, record->version);
    if (!cached->used || cached->id != id || cached->version != record->version ||
        memcmp(cached->guid, record->provider, 16) != 0) {
        cached->schema = look_up(decoder, record->provider, id, record->version);
        memcpy(cached->guid, record->provider, 16);
        cached->id = id;
        cached->version = record->version;
        cached->used = true;
    }
    return cached->schema;
}

uint64_t ew_decoder_refused(const struct ew_decoder *decoder)
{
    return decoder->learned.refused + decoder->eventsource.refused;
}

/* -------------------------------------------------------------------- names */

static const char *provider_name(struct ew_decoder *decoder, const struct ew_record *record)
{
    if (!record->provider)
        return "";
    const char *name = ew_store_provider(&decoder->learned, record->provider);
    if (name)
        return name;
    const struct ew_table_provider *table = find_table(decoder, record->provider);
    if (table)
        return table->name;
    name = record->extended_size ? ew_traits_provider(record) : NULL;
    if (name)
        return name;
    ew_guid_text(record->provider, decoder->provider);
    return decoder->provider;
}

/* The TraceLogging name of an event, with the opcode unless it is Info (0). */
static const char *tracelogging_name(struct ew_decoder *decoder, const struct ew_record *record,
                                     const char *name)
{
    static const char *const opcodes[] = {"",          "Start", "Stop",   "DCStart", "DCStop",
                                          "Extension", "Reply", "Resume", "Suspend", "Send"};
    unsigned opcode = record->opcode;
    const char *text = opcode < sizeof opcodes / sizeof opcodes[0] ? opcodes[opcode]
                       : opcode == 240                             ? "Receive"
                                                                   : NULL;
    if (opcode == 0)
        return name;
    if (text)
        (void)snprintf(decoder->event, sizeof decoder->event, "%s/%s", name, text);
    else
        (void)snprintf(decoder->event, sizeof decoder->event, "%s/Opcode(%u)", name, opcode);
    return decoder->event;
}

static void name_unknown(struct ew_decoder *decoder, const struct ew_record *record)
{
    if (record->kind == EW_RECORD_MANIFEST)
        (void)snprintf(decoder->event, sizeof decoder->event, "EventID(%u)", record->id);
    else if (record->kind == EW_RECORD_MESSAGE)
        (void)snprintf(decoder->event, sizeof decoder->event, "Message(%u)", record->id);
    else
        (void)snprintf(decoder->event, sizeof decoder->event, "Opcode(%u)", record->opcode);
}

void ew_decoder_names(struct ew_decoder *decoder, const struct ew_record *record,
                      struct ew_event_names *ret_names)
{
    struct ew_kernel_name kernel;
    ret_names->origin = EW_SCHEMA_KERNEL;
    if (record->kind <= EW_RECORD_CLASSIC && ew_kernel_names(record, decoder->event, &kernel)) {
        ret_names->provider = kernel.provider;
        ret_names->event = kernel.event;
        ret_names->named = kernel.named;
        /* KernelTraceControl may describe what the tables lack. */
        ret_names->laid_out = kernel.laid_out || ew_decoder_schema(decoder, record) != NULL;
        return;
    }
    ret_names->named = ret_names->laid_out = true;
    const char *own = record->extended_size ? ew_tracelogging_event(record) : NULL;
    if (own) {
        ret_names->provider = provider_name(decoder, record);
        ret_names->event = tracelogging_name(decoder, record, own);
        ret_names->origin = EW_SCHEMA_TRACELOGGING;
        return;
    }
    const struct ew_schema *schema = ew_decoder_schema(decoder, record);
    ret_names->origin = schema ? schema->origin : EW_SCHEMA_NONE;
    ret_names->named = ret_names->laid_out = schema != NULL;
    ret_names->provider =
        schema && schema->provider ? schema->provider : provider_name(decoder, record);
    if (!schema || !schema->event)
        name_unknown(decoder, record);
    ret_names->event = schema && schema->event ? schema->event : decoder->event;
}

/* ------------------------------------------------------------------- fields */

static void add_rest(const struct ew_record *record, size_t from, struct ew_fields *fields)
{
    if (from < record->payload_size)
        ew_fields_raw(fields, "payload", 7, EW_FIELD_BINARY, record->payload + from,
                      record->payload_size - from);
}

static bool decode_by(const struct ew_schema *schema, const struct ew_record *record,
                      struct ew_fields *fields)
{
    size_t used;
    bool ok = ew_schema_decode(schema, record->payload, record->payload_size, record->pointer_size,
                               fields, &used);
    if (!ok)
        add_rest(record, used, fields);
    return ok;
}

bool ew_decoder_fields(struct ew_decoder *decoder, const struct ew_record *record,
                       struct ew_fields *fields)
{
    if (record->kind <= EW_RECORD_CLASSIC) {
        int known = ew_kernel_fields(record, fields);
        if (known < 0)
            add_rest(record, 0, fields);
        if (known != 0)
            return known > 0;
    }
    const struct ew_schema *schema = ew_decoder_schema(decoder, record);
    if (!schema) {
        add_rest(record, 0, fields);
        return false;
    }
    bool ok = decode_by(schema, record, fields);
    if (schema == ew_eventsource_chunk_schema())
        ew_fields_u64(fields, "PayloadLength", 13, EW_FIELD_U64, record->payload_size);
    return ok;
}
