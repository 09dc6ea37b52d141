/* SPDX-License-Identifier: MIT */
/* Event metadata in a merged recording: the descriptions that TDH gave for its events. */
#include "decode/decoder.h"
#include "decode/internal.h"
#include "decode/schema.h"
#include "decode_kit.h"

#define METADATA "bbccf6c1-6cd1-48c4-80ff-839482e37671"
#define PROVIDER "11111111-2222-3333-4444-555555555555"
#define CLASS "66666666-7777-8888-9999-aaaaaaaaaaaa"

enum {
    FIXED = 112,
    PROPERTY = 24,
    STRUCT = 1,
    LENGTH_FIELD = 2,
    COUNT_FIELD = 4,
    COUNT_FIXED = 32
};

struct property {
    const char *name, *map;
    uint32_t flags;
    uint16_t in, out, count, length; /* in, out: first member and number of members of a struct */
};

struct event {
    uint16_t id;
    uint8_t version, opcode;
    uint32_t source; /* 0 manifest, 1 class */
    const char *provider_name, *task, *opcode_name;
    const struct property *properties;
    uint32_t property_count, top_count;
};

static void put_guid(struct bytes *bytes, const char *text)
{
    uint8_t guid[16];
    CHECK(ew_guid_parse(text, strlen(text), guid));
    put(bytes, guid, 16);
}

static void set_u32(struct bytes *bytes, size_t at, size_t value)
{
    for (size_t i = 0; i < 4; i++)
        bytes->data[at + i] = (uint8_t)(value >> (8 * i));
}

/* Appends text to the block and notes its offset at `at`. */
static void set_text(struct bytes *bytes, size_t at, const char *text)
{
    if (!text)
        return;
    set_u32(bytes, at, bytes->size);
    put_wide(bytes, text);
}

static void make_info(struct bytes *bytes, const struct event *event)
{
    bytes->size = 0;
    put_guid(bytes, PROVIDER);
    put_guid(bytes, CLASS);
    put_int(bytes, event->id, 2);
    put_int(bytes, event->version, 1);
    put_int(bytes, 0, 2);
    put_int(bytes, event->opcode, 1);
    put_int(bytes, 0, 8);
    put_int(bytes, 0, 2);
    put_int(bytes, event->source, 4);
    while (bytes->size < FIXED)
        put_int(bytes, 0, 4);
    set_u32(bytes, 100, event->property_count);
    set_u32(bytes, 104, event->top_count);
    for (uint32_t i = 0; i < event->property_count; i++) {
        const struct property *p = &event->properties[i];
        put_int(bytes, p->flags, 4);
        put_int(bytes, 0, 4);
        put_int(bytes, p->in, 2);
        put_int(bytes, p->out, 2);
        put_int(bytes, 0, 4);
        put_int(bytes, p->count, 2);
        put_int(bytes, p->length, 2);
        put_int(bytes, 0, 4);
    }
    set_text(bytes, 52, event->provider_name);
    set_text(bytes, 68, event->task);
    set_text(bytes, 72, event->opcode_name);
    for (uint32_t i = 0; i < event->property_count; i++) {
        set_text(bytes, FIXED + i * PROPERTY + 4, event->properties[i].name);
        set_text(bytes, FIXED + i * PROPERTY + 12, event->properties[i].map);
    }
}

struct entry {
    uint32_t value;
    const char *text;
};

static void make_map(struct bytes *bytes, const char *name, uint32_t flags,
                     const struct entry *entries, uint32_t count)
{
    static struct bytes block;
    block.size = 0;
    put_int(&block, 0, 4);
    put_int(&block, flags, 4);
    put_int(&block, count, 4);
    put_int(&block, 0, 4);
    for (uint32_t i = 0; i < count; i++) {
        put_int(&block, 0, 4);
        put_int(&block, entries[i].value, 4);
    }
    set_text(&block, 0, name);
    for (uint32_t i = 0; i < count; i++)
        set_text(&block, 16 + 8 * i, entries[i].text);
    bytes->size = 0;
    put_guid(bytes, PROVIDER);
    put(bytes, block.data, block.size);
}

static const struct property properties[] = {
    {"Count", NULL, 0, EW_IN_UINT16, 0, 1, 2},
    {"Kind", "KindMap", 0, EW_IN_UINT8, 4, 1, 1},
    {"Bits", "BitsMap", 0, EW_IN_UINT8, 4, 1, 1},
    {"Status", NULL, 0, EW_IN_UINT32, 31, 1, 4},
    {"Data", NULL, LENGTH_FIELD, EW_IN_BINARY, 15, 1, 0},
    {"Rows", NULL, STRUCT | COUNT_FIELD, 9, 2, 0, 0},
    {"Two", NULL, COUNT_FIXED, EW_IN_UINT8, 0, 2, 1},
    {"Fix", NULL, 0, EW_IN_UTF16, 1, 1, 3},
    {"Name", NULL, 0, EW_IN_UTF16, 1, 1, 0},
    {"A", NULL, 0, EW_IN_UINT8, 0, 1, 1},
    {"B", NULL, 0, EW_IN_ANSI, 0, 1, 0},
};
static const struct event event = {.id = 7,
                                   .version = 2,
                                   .opcode = 1,
                                   .provider_name = "Made-Up ",
                                   .task = "Work ",
                                   .opcode_name = "win:Start ",
                                   .properties = properties,
                                   .property_count = 11,
                                   .top_count = 9};
static const struct entry kinds[] = {{1, "one "}, {2, "two "}};
static const struct entry bits[] = {{1, "X "}, {2, "Y "}};
static const char payload[] = "\x02\x00\x02\x03\x05\x00\x00\xC0\xAA\xBB"
                              "\x01"
                              "a\0\x02"
                              "b\0\x08\x09"
                              "f\0o\0o\0n\0\0";

static void learn(struct ew_decoder *decoder, uint8_t opcode, const struct bytes *bytes,
                  size_t size)
{
    static struct made_record made;
    make_classic(&made, METADATA, opcode, 0, bytes->data, size);
    CHECK(ew_metadata_is(&made.record));
    CHECK_EQ_INT(ew_decoder_learn(decoder, &made.record), 0);
}

TEST(events_and_maps_are_learned_in_any_order)
{
    static struct bytes bytes;
    static struct made_record made;
    for (int order = 0; order < 2; order++) {
        struct ew_decoder *decoder;
        bool ok;
        CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
        for (int step = 0; step < 2; step++) {
            if (step == order) {
                make_info(&bytes, &event);
                learn(decoder, 32, &bytes, bytes.size);
            } else {
                make_map(&bytes, "KindMap", 1, kinds, 2);
                learn(decoder, 33, &bytes, bytes.size);
                make_map(&bytes, "BitsMap", 2, bits, 2);
                learn(decoder, 33, &bytes, bytes.size);
            }
        }
        make_record(&made, PROVIDER, 7, 2, payload, sizeof payload);
        CHECK_EQ_STR(names(decoder, &made.record), "Made-Up/Work/Start");
        CHECK_EQ_STR(decode(decoder, &made.record, &ok),
                     "Count=2 Kind=2:two Bits=3:X|Y Status=0xc0000005 Data=#aabb "
                     "Rows=[{A=1 B='a'} {A=2 B='b'}] Two=[8 9] Fix='foo' Name='n'");
        CHECK(ok);
        CHECK_EQ_UINT(ew_decoder_schema(decoder, &made.record)->origin, EW_SCHEMA_METADATA);
        /* Another version is a different event; the name of its provider is known by now. */
        made.record.version = 3;
        CHECK_EQ_STR(names(decoder, &made.record), "Made-Up/EventID(7)");
        ew_decoder_free(decoder);
    }
}

TEST(classic_events_are_found_by_class_and_opcode)
{
    static struct bytes bytes;
    static struct made_record made;
    struct ew_decoder *decoder;
    struct event classic = event;
    bool ok;
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    classic.source = 1;
    classic.opcode = 9;
    classic.opcode_name = "Do";
    classic.property_count = classic.top_count = 1;
    make_info(&bytes, &classic);
    learn(decoder, 32, &bytes, bytes.size);
    make_classic(&made, CLASS, 9, 2, "\x05\x00", 2);
    CHECK_EQ_STR(names(decoder, &made.record), "Made-Up/Work/Do");
    CHECK_EQ_STR(decode(decoder, &made.record, &ok), "Count=5");
    CHECK(ok);
    made.record.opcode = 8;
    CHECK_EQ_STR(names(decoder, &made.record), "Made-Up/Opcode(8)");
    CHECK_EQ_STR(decode(decoder, &made.record, &ok), "payload=#0500");
    ew_decoder_free(decoder);
}

TEST(the_first_description_is_kept)
{
    static struct bytes bytes;
    static struct made_record made;
    struct ew_decoder *decoder;
    struct event other = event;
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    make_info(&bytes, &event);
    learn(decoder, 32, &bytes, bytes.size);
    other.task = "Other";
    make_info(&bytes, &other);
    learn(decoder, 32, &bytes, bytes.size);
    make_record(&made, PROVIDER, 7, 2, payload, sizeof payload);
    CHECK_EQ_STR(names(decoder, &made.record), "Made-Up/Work/Start");
    ew_decoder_free(decoder);
}

TEST(truncated_or_wrong_metadata_is_handled)
{
    static struct bytes bytes, bad;
    static struct made_record made;
    make_info(&bytes, &event);
    for (size_t size = 0; size < bytes.size; size += 3) {
        struct ew_decoder *decoder;
        CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
        learn(decoder, 32, &bytes, size);
        learn(decoder, 33, &bytes, size);
        make_record(&made, PROVIDER, 7, 2, payload, sizeof payload);
        (void)names(decoder, &made.record);
        (void)decode(decoder, &made.record, NULL);
        ew_decoder_free(decoder);
    }
    /* Every number of the metadata, set to its maximum. */
    for (size_t at = 48; at + 4 <= FIXED + 11 * PROPERTY; at += 4) {
        struct ew_decoder *decoder;
        bad = bytes;
        set_u32(&bad, at, 0xFFFFFFFFu);
        CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
        learn(decoder, 32, &bad, bad.size);
        make_record(&made, PROVIDER, 7, 2, payload, sizeof payload);
        (void)names(decoder, &made.record);
        (void)decode(decoder, &made.record, NULL);
        ew_decoder_free(decoder);
    }
}

TEST(a_map_that_claims_too_much_is_refused)
{
    static struct bytes bytes;
    static struct made_record made;
    struct ew_decoder *decoder;
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    make_map(&bytes, "KindMap", 1, kinds, 2);
    set_u32(&bytes, 16 + 8, 1000000);
    learn(decoder, 33, &bytes, bytes.size);
    make_info(&bytes, &event);
    learn(decoder, 32, &bytes, bytes.size);
    make_record(&made, PROVIDER, 7, 2, payload, sizeof payload);
    CHECK_CONTAINS(decode(decoder, &made.record, NULL), "Kind=2: Bits");
    ew_decoder_free(decoder);
}

TEST(types_unknown_to_tdh_are_refused)
{
    static struct bytes bytes;
    static struct made_record made;
    static const struct property odd[] = {{"X", NULL, 0, EW_IN_PAD_POINTER, 0, 1, 0}};
    struct ew_decoder *decoder;
    struct event other = event;
    other.properties = odd;
    other.property_count = other.top_count = 1;
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    make_info(&bytes, &other);
    learn(decoder, 32, &bytes, bytes.size);
    make_record(&made, PROVIDER, 7, 2, payload, sizeof payload);
    CHECK(ew_decoder_schema(decoder, &made.record) == NULL);
    ew_decoder_free(decoder);
}

TEST(the_metadata_event_itself_is_decoded)
{
    static struct bytes bytes;
    static struct made_record made;
    struct ew_decoder *decoder;
    bool ok;
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    make_info(&bytes, &event);
    make_classic(&made, METADATA, 32, 0, bytes.data, bytes.size);
    CHECK_EQ_STR(names(decoder, &made.record), "KernelTraceControl/MetaData/EventInfo");
    CHECK_CONTAINS(decode(decoder, &made.record, &ok), "ProviderGuid=" PROVIDER);
    CHECK(ok);
    ew_decoder_free(decoder);
}
