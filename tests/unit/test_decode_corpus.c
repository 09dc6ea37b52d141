/* SPDX-License-Identifier: MIT */
/*
 * Real recordings (in the folder ETWATCH_CORPUS; skipped without it): every event with a known
 * schema is decoded to its last byte, and a provider's manifest gives the same values as another
 * decoder.
 */
#include <stdlib.h>

#include "decode/decoder.h"
#include "decode_kit.h"
#include "source/etl/reader.h"

static const char *corpus(const char *relative)
{
    static char path[1024];
    const char *folder = getenv("ETWATCH_CORPUS");
    if (!folder || !*folder)
        SKIP("ETWATCH_CORPUS names no folder with recordings");
    snprintf(path, sizeof path, "%s/%s", folder, relative);
    return path;
}

static char *read_file(const char *relative, size_t *ret_size)
{
    static char text[1 << 20];
    FILE *file = fopen(corpus(relative), "rb");
    if (!file)
        SKIP("the folder with recordings is not complete");
    *ret_size = fread(text, 1, sizeof text - 1, file);
    text[*ret_size] = '\0';
    fclose(file);
    return text;
}

typedef void (*record_fn)(void *ctx, struct ew_decoder *decoder, const struct ew_record *record);

/* Learns schemas from the whole recording, then passes its records to the callback. */
static void walk(const char *name, const char *manifest, size_t manifest_size, record_fn fn,
                 void *ctx)
{
    char relative[256];
    struct ew_etl_reader *reader;
    struct ew_decoder *decoder;
    const struct ew_record *records;
    struct ew_etl_options options = {.workers = 1};
    struct ew_error error;
    int count;
    snprintf(relative, sizeof relative, "etl/%s", name);
    const char *path = corpus(relative);
    test_row(name);
    CHECK_EQ_INT(ew_etl_open(&path, 1, &options, &reader, &error), 0);
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    if (manifest)
        CHECK(ew_decoder_learn_manifest(decoder, manifest, manifest_size) > 0);
    while ((count = ew_etl_next(reader, &records)) > 0)
        for (int i = 0; i < count; i++)
            CHECK_EQ_INT(ew_decoder_learn(decoder, &records[i]), 0);
    CHECK_EQ_INT(ew_etl_rewind(reader), 0);
    while ((count = ew_etl_next(reader, &records)) > 0)
        for (int i = 0; i < count; i++)
            fn(ctx, decoder, &records[i]);
    CHECK_EQ_UINT(ew_decoder_refused(decoder), 0);
    ew_decoder_free(decoder);
    ew_etl_close(reader);
}

struct totals {
    struct ew_fields fields;
    unsigned long records, known, rest;
};

static void check_consumed(void *ctx, struct ew_decoder *decoder, const struct ew_record *record)
{
    struct totals *totals = ctx;
    size_t used;
    if (record->kind != EW_RECORD_MANIFEST)
        return;
    totals->records++;
    const struct ew_schema *schema = ew_decoder_schema(decoder, record);
    if (!schema)
        return;
    totals->known++;
    ew_fields_clear(&totals->fields);
    bool ok = ew_schema_decode(schema, record->payload, record->payload_size, record->pointer_size,
                               &totals->fields, &used);
    /* EventSource: the manifest text itself is not a field, and enums are written wider than the
     * manifest declares. */
    bool wide = schema->origin == EW_SCHEMA_EVENTSOURCE;
    if (!ok || (used != record->payload_size && !wide)) {
        char text[1400];
        snprintf(text, sizeof text, "%s: %zu of %u bytes, version %u", names(decoder, record), used,
                 record->payload_size, record->version);
        FAIL(text);
    }
    totals->rest += used != record->payload_size;
}

TEST(every_known_event_is_decoded_to_its_last_byte)
{
    size_t size;
    struct totals totals = {.records = 0};
    char *list = read_file("MANIFEST.tsv", &size);
    ew_fields_init(&totals.fields);
    for (char *line = strchr(list, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        char name[128];
        size_t len = strcspn(line + 1, "\t");
        CHECK(len < sizeof name);
        memcpy(name, line + 1, len);
        name[len] = '\0';
        walk(name, NULL, 0, check_consumed, &totals);
    }
    ew_fields_done(&totals.fields);
    printf("# %lu of %lu manifest events have a known schema, %lu of those have extra bytes\n",
           totals.known, totals.records, totals.rest);
    CHECK(totals.records > 0);
    CHECK(totals.known * 100 >= totals.records * 99);
}

/* ------------------------------------------------- against another decoder */

/*
 * The reference is the output of another decoder for the same provider, but from another run:
 * names, their order and which fields are arrays can be compared, values cannot.
 */
struct comparison {
    const char *json; /* of one event */
    unsigned id;
    unsigned records, properties;
};

/* Finds the property as the next one in the reference; its value begins after its name. */
static const char *next_property(const char *json, const struct ew_field *field)
{
    char key[128];
    snprintf(key, sizeof key, "\"Name\": \"%.*s\",", (int)field->name_len, field->name);
    const char *at = strstr(json, key);
    at = at ? strstr(at, "\"Value\": ") : NULL;
    return at ? at + strlen("\"Value\": ") : NULL;
}

static void compare(void *ctx, struct ew_decoder *decoder, const struct ew_record *record)
{
    struct comparison *comparison = ctx;
    const char *json = comparison->json;
    struct ew_fields fields;
    unsigned depth = 0, properties = 0;
    if (record->kind != EW_RECORD_MANIFEST || record->id != comparison->id)
        return;
    ew_fields_init(&fields);
    CHECK(ew_decoder_fields(decoder, record, &fields));
    for (uint32_t i = 0; i < fields.count; i++) {
        const struct ew_field *field = &fields.list[i];
        bool opens = field->type == EW_FIELD_ARRAY || field->type == EW_FIELD_STRUCT;
        if (depth == 0) {
            json = next_property(json, field);
            CHECK(json != NULL);
            CHECK_EQ_INT(*json, field->type == EW_FIELD_ARRAY ? '[' : '"');
            properties++;
        }
        if (opens)
            depth++;
        else if (field->type == EW_FIELD_CLOSE)
            depth--;
    }
    ew_fields_done(&fields);
    comparison->properties = properties;
    comparison->records++;
}

TEST(a_manifest_gives_the_properties_another_decoder_found)
{
    static char manifest[1 << 16];
    size_t size, json_size;
    char *text = read_file("reference/beats-sample.man", &size);
    CHECK(size < sizeof manifest);
    memcpy(manifest, text, size);
    char *json = read_file("reference/beats-sample.golden.json", &json_size);
    char *second = strstr(json, "\"EventID\": 2");
    CHECK(second != NULL);
    second[-1] = '\0';
    struct comparison one = {.json = json, .id = 1}, two = {.json = second, .id = 2};
    walk("beats-sample.etl", manifest, size, compare, &one);
    walk("beats-sample.etl", manifest, size, compare, &two);
    CHECK_EQ_UINT(one.records, 15);
    CHECK_EQ_UINT(two.records, 15);
    CHECK_EQ_UINT(one.properties, 22);
    CHECK_EQ_UINT(two.properties, 11);
}

static void check_beats(void *ctx, struct ew_decoder *decoder, const struct ew_record *record)
{
    check_consumed(ctx, decoder, record);
    if (record->kind == EW_RECORD_MANIFEST)
        CHECK(ew_decoder_schema(decoder, record) != NULL);
}

TEST(a_manifest_decodes_its_recording_to_the_last_byte)
{
    static char manifest[1 << 16];
    struct totals totals = {.records = 0};
    size_t size;
    char *text = read_file("reference/beats-sample.man", &size);
    CHECK(size < sizeof manifest);
    memcpy(manifest, text, size);
    ew_fields_init(&totals.fields);
    walk("beats-sample.etl", manifest, size, check_beats, &totals);
    ew_fields_done(&totals.fields);
    CHECK_EQ_UINT(totals.known, 30);
}
