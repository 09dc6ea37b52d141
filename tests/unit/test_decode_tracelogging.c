/* SPDX-License-Identifier: MIT */
/* TraceLogging: valid and damaged schemas that the event itself carries. */
#include "decode/decoder.h"
#include "decode/internal.h"
#include "decode_kit.h"

#define PROVIDER "3a26b1ff-7484-7484-7484-15261f42614d"

enum { CONST_COUNT = 0x20, PREFIX_COUNT = 0x40, CUSTOM = 0x60, CHAIN = 0x80 };

/* The item: size and tags first, then the name; the test appends the fields. */
static void begin_schema(struct bytes *schema, const char *name)
{
    schema->size = 0;
    put_int(schema, 0, 3); /* the size is set at the end */
    put_text(schema, name);
}

static void add_field(struct bytes *schema, const char *name, unsigned in)
{
    put_text(schema, name);
    put_int(schema, in, 1);
}

static void add_shown(struct bytes *schema, const char *name, unsigned in, unsigned out)
{
    add_field(schema, name, in | CHAIN);
    put_int(schema, out, 1);
}

static void set_schema(struct made_record *made, struct bytes *schema)
{
    schema->data[0] = (uint8_t)schema->size;
    schema->data[1] = (uint8_t)(schema->size >> 8);
    add_item(made, EW_EXT_TRACELOGGING, schema->data, schema->size);
}

static struct ew_decoder *new_decoder(void)
{
    struct ew_decoder *decoder;
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    return decoder;
}

TEST(fields_of_every_kind_are_decoded)
{
    static struct bytes schema, payload;
    static struct made_record made;
    begin_schema(&schema, "Everything");
    add_field(&schema, "wide", EW_IN_UTF16);
    put_wide(&payload, "hi");
    add_field(&schema, "narrow", EW_IN_ANSI);
    put_text(&payload, "ho");
    add_field(&schema, "counted", EW_IN_COUNTED_UTF16);
    put_int(&payload, 2, 2);
    put_int(&payload, 'x', 2);
    add_field(&schema, "bytes", EW_IN_BINARY); /* counted strings in TraceLogging */
    put_int(&payload, 2, 2);
    put_int(&payload, 0xBBAA, 2);
    add_shown(&schema, "json", EW_IN_COUNTED_ANSI, 12);
    put_int(&payload, 2, 2);
    put(&payload, "{}", 2);
    add_shown(&schema, "yes", EW_IN_BOOLEAN, 3);
    put_int(&payload, 1, 4);
    add_shown(&schema, "pid", EW_IN_UINT32, 5);
    put_int(&payload, 4321, 4);
    add_shown(&schema, "status", EW_IN_INT32, 14);
    put_int(&payload, 0xC0000005u, 4);
    add_shown(&schema, "port", EW_IN_UINT16, 7);
    put(&payload, "\x00\x50", 2);
    add_shown(&schema, "at", EW_IN_UINT64, 16);
    put_int(&payload, 5, 8);
    add_field(&schema, "where", EW_IN_POINTER);
    put_int(&payload, 0x123456789, 8);
    add_field(&schema, "half", EW_IN_FLOAT);
    put(&payload, "\x00\x00\x00\x3F", 4);
    make_record(&made, PROVIDER, 0, 0, payload.data, payload.size);
    set_schema(&made, &schema);
    struct ew_decoder *decoder = new_decoder();
    bool ok;
    CHECK_EQ_STR(decode(decoder, &made.record, &ok),
                 "wide='hi' narrow='ho' counted='x' bytes=#aabb json='{}' yes=true pid=4321 "
                 "status=0xc0000005 port=80 at=ft5 where=0x123456789 half=0.5");
    CHECK(ok);
    ew_decoder_free(decoder);
}

TEST(arrays_structs_tags_and_custom_encodings_are_decoded)
{
    static struct bytes schema, payload;
    static struct made_record made;
    begin_schema(&schema, "Nested");
    add_field(&schema, "two", EW_IN_UINT8 | CONST_COUNT);
    put_int(&schema, 2, 2);
    add_field(&schema, "some", EW_IN_UINT16 | PREFIX_COUNT);
    /* An array of structs with a nested struct; the tag bytes do not affect the layout. */
    add_field(&schema, "list", EW_IN_STRUCT | PREFIX_COUNT | CHAIN);
    put_int(&schema, 2 | CHAIN, 1);
    put_int(&schema, 0x05, 1);
    add_field(&schema, "pair", EW_IN_STRUCT | CHAIN);
    put_int(&schema, 2, 1);
    add_field(&schema, "x", EW_IN_UINT8);
    add_field(&schema, "y", EW_IN_UINT8);
    add_field(&schema, "z", EW_IN_ANSI);
    add_field(&schema, "own", EW_IN_ANSI | CUSTOM);
    put_int(&schema, 3, 2);
    put(&schema, "abc", 3);
    add_field(&schema, "end", EW_IN_INT8);
    put(&payload, "\x01\x02", 2);
    put(&payload, "\x01\x00\x07\x00", 4);
    put(&payload, "\x02\x00\x03\x04s\0\x05\x06t\0", 10);
    put(&payload, "\x01\x00\xEE", 3);
    put(&payload, "\xFF", 1);
    make_record(&made, PROVIDER, 0, 0, payload.data, payload.size);
    set_schema(&made, &schema);
    struct ew_decoder *decoder = new_decoder();
    bool ok;
    CHECK_EQ_STR(decode(decoder, &made.record, &ok),
                 "two=[1 2] some=[7] list=[{pair={x=3 y=4} z='s'} {pair={x=5 y=6} z='t'}] own=#ee "
                 "end=-1");
    CHECK(ok);
    ew_decoder_free(decoder);
}

TEST(names_come_from_the_event_and_the_traits)
{
    static struct bytes schema;
    static struct made_record made;
    struct ew_decoder *decoder = new_decoder();
    begin_schema(&schema, "OrtRun");
    make_record(&made, "00000000-1111-2222-3333-444444444444", 0, 0, "", 0);
    set_schema(&made, &schema);
    CHECK_EQ_STR(names(decoder, &made.record), "00000000-1111-2222-3333-444444444444/OrtRun");
    made.record.opcode = 1;
    CHECK_EQ_STR(names(decoder, &made.record), "00000000-1111-2222-3333-444444444444/OrtRun/Start");
    made.record.opcode = 77;
    CHECK_EQ_STR(names(decoder, &made.record),
                 "00000000-1111-2222-3333-444444444444/OrtRun/Opcode(77)");
    made.record.opcode = 2;
    add_item(&made, EW_EXT_TRAITS, "\x0B\x00My.Source\0", 12);
    CHECK_EQ_STR(names(decoder, &made.record), "My.Source/OrtRun/Stop");
    /* Once learned, the name also applies to events without traits. */
    CHECK_EQ_INT(ew_decoder_learn(decoder, &made.record), 0);
    make_record(&made, "00000000-1111-2222-3333-444444444444", 7, 0, "", 0);
    CHECK_EQ_STR(names(decoder, &made.record), "My.Source/EventID(7)");
    /* Some providers are known by their GUID. */
    make_record(&made, PROVIDER, 0, 0, "", 0);
    set_schema(&made, &schema);
    CHECK_EQ_STR(names(decoder, &made.record), "Microsoft.ML.ONNXRuntime/OrtRun");
    ew_decoder_free(decoder);
}

TEST(a_payload_that_is_too_short_is_shown_raw_from_there_on)
{
    static struct bytes schema;
    static struct made_record made;
    begin_schema(&schema, "Short");
    add_field(&schema, "a", EW_IN_UINT16);
    add_field(&schema, "b", EW_IN_UINT32);
    make_record(&made, PROVIDER, 0, 0, "\x01\x00\xFE\xFF", 4);
    set_schema(&made, &schema);
    struct ew_decoder *decoder = new_decoder();
    bool ok;
    CHECK_EQ_STR(decode(decoder, &made.record, &ok), "a=1 payload=#feff");
    CHECK(!ok);
    ew_decoder_free(decoder);
}

/* For every damaged schema: no crash, and the payload is reported raw. */
static void check_undecoded(const struct bytes *item, const char *remark)
{
    static struct made_record made;
    struct ew_decoder *decoder = new_decoder();
    bool ok;
    test_row(remark);
    make_record(&made, PROVIDER, 3, 0, "\x01\x02", 2);
    add_item(&made, EW_EXT_TRACELOGGING, item->data, item->size);
    CHECK_EQ_STR(decode(decoder, &made.record, &ok), "payload=#0102");
    CHECK(!ok);
    ew_decoder_free(decoder);
}

TEST(damaged_schemas_leave_the_payload_raw)
{
    static struct bytes good, bad;
    begin_schema(&good, "Event");
    add_field(&good, "s", EW_IN_STRUCT | CHAIN);
    put_int(&good, 1, 1);
    add_shown(&good, "x", EW_IN_UINT8 | CONST_COUNT, 4);
    put_int(&good, 1, 2);
    good.data[0] = (uint8_t)good.size;
    for (size_t cut = 0; cut < good.size; cut++) {
        bad = good;
        bad.size = cut;
        check_undecoded(&bad, "the item is shorter than it claims");
        if (cut >= 2) {
            bad.data[0] = (uint8_t)cut;
            /* A name alone is a valid schema: an event without fields. */
            if (cut != 9)
                check_undecoded(&bad, "it ends within a field");
        }
    }
    bad = good;
    bad.data[0] = (uint8_t)(good.size + 1);
    check_undecoded(&bad, "it claims more bytes than there are");
    begin_schema(&bad, "Deep");
    for (int i = 0; i < EW_SCHEMA_DEPTH_MAX + 1; i++) {
        add_field(&bad, "s", EW_IN_STRUCT | CHAIN);
        put_int(&bad, 1, 1);
    }
    add_field(&bad, "x", EW_IN_UINT8);
    bad.data[0] = (uint8_t)bad.size;
    check_undecoded(&bad, "structs too deep");
    begin_schema(&bad, "Wide");
    for (int i = 0; i < EW_SCHEMA_FIELDS_MAX + 1; i++)
        add_field(&bad, "x", EW_IN_NULL);
    bad.data[0] = (uint8_t)bad.size;
    bad.data[1] = (uint8_t)(bad.size >> 8);
    check_undecoded(&bad, "too many fields");
}

TEST(inconsistent_extended_items_are_handled)
{
    static struct made_record made;
    struct ew_bytes data;
    make_record(&made, PROVIDER, 0, 0, "", 0);
    CHECK(!ew_extended_find(&made.record, EW_EXT_TRACELOGGING, &data));
    add_item(&made, 1, "0123456789abcdef", 16);
    add_item(&made, EW_EXT_TRAITS, "\x02\x00", 2);
    CHECK(!ew_extended_find(&made.record, EW_EXT_TRACELOGGING, &data));
    CHECK(ew_extended_find(&made.record, EW_EXT_TRAITS, &data));
    CHECK_EQ_UINT(data.size, 2);
    CHECK(ew_traits_provider(&made.record) == NULL);
    /* An item of size 0 that claims that another one follows, and one that extends beyond the end.
     */
    made.header[KIT_HEADER] = 0;
    CHECK(!ew_extended_find(&made.record, EW_EXT_TRAITS, &data));
    made.header[KIT_HEADER] = 255;
    CHECK(!ew_extended_find(&made.record, EW_EXT_TRAITS, &data));
    made.header[KIT_HEADER + 7] = 255;
    CHECK(!ew_extended_find(&made.record, 1, &data));
}
