/* SPDX-License-Identifier: MIT */
/* Walking a payload by a schema: every type, arrays, structs, and payloads with wrong lengths. */
#include "base/address.h"
#include "decode/schema.h"
#include "decode_kit.h"

#define FIELD(text, type) .name = text, .name_len = sizeof text - 1, .in = type
#define SCHEMA(array, tops)                                                               \
    {                                                                                     \
        .fields = array, .field_count = sizeof array / sizeof array[0], .top_count = tops \
    }

static const char *run(const struct ew_schema *schema, const void *payload, size_t size,
                       unsigned pointer_size, bool *ret_ok, size_t *ret_used)
{
    static struct ew_fields fields;
    size_t used;
    ew_fields_done(&fields);
    ew_fields_init(&fields);
    bool ok = ew_schema_decode(schema, payload, size, pointer_size, &fields, &used);
    if (ret_ok)
        *ret_ok = ok;
    if (ret_used)
        *ret_used = used;
    const char *text = show(&fields);
    ew_fields_done(&fields);
    return text;
}

TEST(every_type_is_decoded_and_one_byte_less_is_not)
{
    static const struct {
        unsigned in, out, pointer_size;
        const char *payload;
        size_t size;
        const char *want;
    } rows[] = {
        {EW_IN_INT8, 0, 8, "\xFF", 1, "-1"},
        {EW_IN_UINT8, 0, 8, "\xFF", 1, "255"},
        {EW_IN_UINT8, EW_OUT_BOOLEAN, 8, "\x02", 1, "true"},
        {EW_IN_UINT8, EW_OUT_TEXT, 8, "M", 1, "77"},
        {EW_IN_INT16, 0, 8, "\xFE\xFF", 2, "-2"},
        {EW_IN_UINT16, 0, 8, "\x34\x12", 2, "4660"},
        {EW_IN_UINT16, EW_OUT_PORT, 8, "\x01\xBB", 2, "443"},
        {EW_IN_INT32, 0, 8, "\xFD\xFF\xFF\xFF", 4, "-3"},
        {EW_IN_INT32, EW_OUT_HEX, 8, "\xFD\xFF\xFF\xFF", 4, "0xfffffffd"},
        {EW_IN_UINT32, 0, 8, "\x01\x00\x00\x80", 4, "2147483649"},
        {EW_IN_UINT32, EW_OUT_SIGNED, 8, "\x01\x00\x00\x80", 4, "-2147483647"},
        {EW_IN_UINT32, EW_OUT_HEX, 8, "\x01\x00\x00\x80", 4, "0x80000001"},
        {EW_IN_UINT32, EW_OUT_IPV4, 8, "\xC0\x00\x02\x01", 4, "#c0000201"},
        {EW_IN_INT64, 0, 8, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", 8, "9223372036854775807"},
        {EW_IN_INT64, EW_OUT_UNSIGNED, 8, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8,
         "18446744073709551615"},
        {EW_IN_UINT64, EW_OUT_FILETIME, 8, "\x01\x00\x00\x00\x00\x00\x00\x00", 8, "ft1"},
        {EW_IN_FLOAT, 0, 8, "\x00\x00\xC0\x3F", 4, "1.5"},
        {EW_IN_DOUBLE, 0, 8, "\x00\x00\x00\x00\x00\x00\x04\xC0", 8, "-2.5"},
        {EW_IN_BOOLEAN, 0, 8, "\x00\x01\x00\x00", 4, "true"},
        {EW_IN_GUID, 0, 8, "\x33\x22\x11\x00\x55\x44\x77\x66\x88\x99\xAA\xBB\xCC\xDD\xEE\xFF", 16,
         "00112233-4455-6677-8899-aabbccddeeff"},
        {EW_IN_POINTER, 0, 8, "\x01\x00\x00\x00\x00\x00\x00\x10", 8, "0x1000000000000001"},
        {EW_IN_POINTER, 0, 4, "\x01\x00\x00\x10", 4, "0x10000001"},
        {EW_IN_SIZE, 0, 4, "\x01\x00\x00\x10", 4, "268435457"},
        {EW_IN_FILETIME, 0, 8, "\x02\x00\x00\x00\x00\x00\x00\x00", 8, "ft2"},
        /* 2000-02-29 01:02:03.004 */
        {EW_IN_SYSTEMTIME, 0, 8, "\xD0\x07\x02\x00\x02\x00\x1D\x00\x01\x00\x02\x00\x03\x00\x04\x00",
         16, "ft125962597230040000"},
        {EW_IN_SYSTEMTIME, 0, 8, "\x41\x06\x01\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00",
         16, "ft0"},
        {EW_IN_SYSTEMTIME, 0, 8, "\xD0\x07\x0D\x00\x02\x00\x1D\x00\x01\x00\x02\x00\x03\x00\x04\x00",
         16, "null"},
        {EW_IN_SID, 0, 8, "\x01\x01\x00\x00\x00\x00\x00\x05\x12\x00\x00\x00", 12,
         "#010100000000000512000000"},
        {EW_IN_WBEM_SID, 0, 4,
         "\x99\x00\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00\x05\x12\x00\x00\x00", 20,
         "#010100000000000512000000"},
        {EW_IN_WBEM_SID, 0, 8, "\x00\x00\x00\x00", 4, "null"},
        {EW_IN_HEX32, 0, 8, "\x0A\x00\x00\x00", 4, "0xa"},
        {EW_IN_HEX64, 0, 8, "\x0B\x00\x00\x00\x00\x00\x00\x00", 8, "0xb"},
        {EW_IN_COUNTED_UTF16, 0, 8, "\x04\x00o\x00k\x00", 6, "'ok'"},
        {EW_IN_COUNTED_ANSI, 0, 8, "\x02\x00ok", 4, "'ok'"},
        {EW_IN_REVERSED_COUNTED_ANSI, 0, 8, "\x00\x02ok", 4, "'ok'"},
        {EW_IN_COUNTED_BINARY, 0, 8, "\x02\x00\x01\x02", 4, "#0102"},
        {EW_IN_COUNTED_BINARY, EW_OUT_UTF8, 8, "\x02\x00{}", 4, "'{}'"},
        {EW_IN_COUNTED_BINARY, EW_OUT_SOCKADDR, 8,
         "\x10\x00\x02\x00\x00\x50\xC0\x00\x02\x01\x00\x00\x00\x00\x00\x00\x00\x00", 18,
         "'192.0.2.1:80'"},
        {EW_IN_HEXDUMP, 0, 8, "\x02\x00\x00\x00\xAB\xCD", 6, "#abcd"},
        {EW_IN_CHAR16, 0, 8, "A\x00", 2, "'A'"},
        {EW_IN_BINARY, EW_OUT_IPV6, 8, "0123456789abcdef", 16, "#30313233343536373839616263646566"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_schema_field field = {FIELD("f", (uint16_t)rows[i].in),
                                        .out = (uint8_t)rows[i].out};
        struct ew_schema schema = {.fields = &field, .field_count = 1, .top_count = 1};
        char want[128];
        bool ok;
        size_t used;
        snprintf(want, sizeof want, "f=%s", rows[i].want);
        test_row(want);
        CHECK_EQ_STR(run(&schema, rows[i].payload, rows[i].size, rows[i].pointer_size, &ok, &used),
                     want);
        CHECK(ok);
        CHECK_EQ_UINT(used, rows[i].size);
        CHECK_EQ_STR(
            run(&schema, rows[i].payload, rows[i].size - 1, rows[i].pointer_size, &ok, &used), "");
        CHECK(!ok);
        CHECK_EQ_UINT(used, 0);
    }
}

TEST(text_ends_at_its_nul_or_with_the_payload)
{
    static const struct ew_schema_field fields[] = {{FIELD("a", EW_IN_ANSI)},
                                                    {FIELD("w", EW_IN_UTF16)}};
    static const struct ew_schema schema = SCHEMA(fields, 2);
    bool ok;
    size_t used;
    CHECK_EQ_STR(run(&schema, "x\0y\0\0\0", 6, 8, &ok, &used), "a='x' w='y'");
    CHECK(ok);
    CHECK_EQ_UINT(used, 6);
    CHECK_EQ_STR(run(&schema, "x\0y\0", 4, 8, &ok, &used), "a='x' w='y'");
    CHECK(ok);
    CHECK_EQ_STR(run(&schema, "\0\0\0", 3, 8, &ok, NULL), "a='' w=''");
    CHECK(ok);
    /* The payload ends before the second string begins. */
    CHECK_EQ_STR(run(&schema, "xyz", 3, 8, &ok, &used), "a='xyz'");
    CHECK(!ok);
    CHECK_EQ_UINT(used, 3);
}

TEST(lengths_and_counts_come_from_other_fields)
{
    static const struct ew_schema_field fields[] = {
        {FIELD("n", EW_IN_UINT8)},
        {FIELD("text", EW_IN_UTF16), .length_by = EW_EXTENT_FIELD, .length = 0},
        {FIELD("raw", EW_IN_BINARY), .length_by = EW_EXTENT_CONST, .length = 2},
        {FIELD("list", EW_IN_UINT16), .count_by = EW_EXTENT_FIELD, .count = 0},
        {FIELD("two", EW_IN_ANSI), .count_by = EW_EXTENT_CONST, .count = 2},
        {FIELD("pre", EW_IN_UINT8), .count_by = EW_EXTENT_PREFIX},
        {FIELD("name", EW_IN_UINT8), .out = EW_OUT_TEXT, .count_by = EW_EXTENT_CONST, .count = 4},
        {FIELD("rest", EW_IN_UINT8), .count_by = EW_EXTENT_REST},
    };
    static const struct ew_schema schema = SCHEMA(fields, 8);
    static const char payload[] = "\x02"
                                  "h\0i\0"
                                  "\xAA\xBB"
                                  "\x05\x00\x06\x00"
                                  "one\0two\0"
                                  "\x01\x00\x09"
                                  "ab\0\0"
                                  "\x07\x08";
    bool ok;
    size_t used;
    CHECK_EQ_STR(run(&schema, payload, sizeof payload - 1, 8, &ok, &used),
                 "n=2 text='hi' raw=#aabb list=[5 6] two=['one' 'two'] pre=[9] name='ab' "
                 "rest=[7 8]");
    CHECK(ok);
    CHECK_EQ_UINT(used, sizeof payload - 1);
    /* A count that the payload cannot hold: only the elements that are there are decoded. */
    CHECK_EQ_STR(run(&schema, "\x7F", 1, 8, &ok, &used), "n=127");
    CHECK(!ok);
    CHECK_EQ_UINT(used, 1);
}

TEST(structs_nest_and_repeat)
{
    static const struct ew_schema_field fields[] = {
        {FIELD("n", EW_IN_UINT8)},
        {FIELD("outer", EW_IN_STRUCT), .count_by = EW_EXTENT_FIELD, .count = 0, .first = 2,
         .members = 2, .skip = 3},
        {FIELD("inner", EW_IN_STRUCT), .first = 3, .members = 1, .skip = 1},
        {FIELD("x", EW_IN_UINT8)},
        {FIELD("y", EW_IN_UINT8)},
        {FIELD("end", EW_IN_UINT8)},
    };
    static const struct ew_schema schema = SCHEMA(fields, 3);
    bool ok;
    CHECK_EQ_STR(run(&schema, "\x02\x01\x02\x03\x04\x05", 6, 8, &ok, NULL),
                 "n=2 outer=[{inner={x=1} y=2} {inner={x=3} y=4}] end=5");
    CHECK(ok);
    CHECK_EQ_STR(run(&schema, "\x02\x01\x02\x03", 4, 8, &ok, NULL),
                 "n=2 outer=[{inner={x=1} y=2} {inner={x=3}}]");
    CHECK(!ok);
}

TEST(optional_fields_may_be_missing)
{
    static const struct ew_schema_field fields[] = {
        {FIELD("a", EW_IN_UINT8)},
        {FIELD("b", EW_IN_UINT16), .optional = 1},
        {FIELD("c", EW_IN_UINT16), .optional = 1},
    };
    static const struct ew_schema schema = SCHEMA(fields, 3);
    bool ok;
    CHECK_EQ_STR(run(&schema, "\x01", 1, 8, &ok, NULL), "a=1");
    CHECK(ok);
    CHECK_EQ_STR(run(&schema, "\x01\x02\x00", 3, 8, &ok, NULL), "a=1 b=2");
    CHECK(ok);
    CHECK_EQ_STR(run(&schema, "\x01\x02\x00\x03", 4, 8, &ok, NULL), "a=1 b=2");
    CHECK(!ok);
}

TEST(enum_values_have_names)
{
    static const struct ew_map_entry entries[] = {
        {0, "None", 4}, {1, "A", 1}, {2, "B", 1}, {3, "Both", 4}, {8, "D", 1}};
    static const struct {
        uint8_t style;
        const char *payload, *want;
    } rows[] = {
        {EW_MAP_VALUES, "\x03", "f=3:Both"},    {EW_MAP_VALUES, "\x07", "f=7:"},
        {EW_MAP_BITS, "\x03", "f=3:A|B"},       {EW_MAP_BITS, "\x05", "f=5:A|0x4"},
        {EW_MAP_BITS, "\x00", "f=0:None"},      {EW_MAP_FLAGS, "\x03", "f=3:Both"},
        {EW_MAP_FLAGS, "\x0B", "f=11:A, B, D"}, {EW_MAP_FLAGS, "\x05", "f=5:"},
        {EW_MAP_FLAGS, "\x00", "f=0:None"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_map map = {.count = 5, .style = rows[i].style, .entries = entries};
        struct ew_schema_field field = {FIELD("f", EW_IN_UINT8), .map = &map};
        struct ew_schema schema = {.fields = &field, .field_count = 1, .top_count = 1};
        test_row(rows[i].want);
        CHECK_EQ_STR(run(&schema, rows[i].payload, 1, 8, NULL, NULL), rows[i].want);
    }
}

TEST(a_value_of_an_unknown_map_has_no_name)
{
    static const struct ew_map map = {.style = EW_MAP_BITS};
    static const struct ew_schema_field field = {FIELD("f", EW_IN_UINT8), .map = &map};
    struct ew_schema schema = {.fields = &field, .field_count = 1, .top_count = 1};
    CHECK_EQ_STR(run(&schema, "\x00", 1, 8, NULL, NULL), "f=0:");
}

TEST(inconsistent_schemas_are_handled)
{
    bool ok;
    /* A struct that is a member of itself. */
    static const struct ew_schema_field loop[] = {
        {FIELD("s", EW_IN_STRUCT), .first = 0, .members = 1}};
    static const struct ew_schema loop_schema = SCHEMA(loop, 1);
    (void)run(&loop_schema, "x", 1, 8, &ok, NULL);
    CHECK(!ok);
    /* Members beyond the end, a length field that does not exist, an unknown type. */
    static const struct ew_schema_field beyond[] = {
        {FIELD("s", EW_IN_STRUCT), .first = 7, .members = 1}};
    static const struct ew_schema beyond_schema = SCHEMA(beyond, 1);
    (void)run(&beyond_schema, "x", 1, 8, &ok, NULL);
    CHECK(!ok);
    static const struct ew_schema_field nowhere[] = {
        {FIELD("b", EW_IN_BINARY), .length_by = EW_EXTENT_FIELD, .length = 9}};
    static const struct ew_schema nowhere_schema = SCHEMA(nowhere, 1);
    (void)run(&nowhere_schema, "x", 1, 8, &ok, NULL);
    CHECK(!ok);
    static const struct ew_schema_field odd[] = {{FIELD("o", 77)}};
    static const struct ew_schema odd_schema = SCHEMA(odd, 1);
    (void)run(&odd_schema, "x", 1, 8, &ok, NULL);
    CHECK(!ok);
}

TEST(an_array_of_zero_size_members_ends_at_the_limit)
{
    /* Its members take no bytes, so only the list of fields bounds it. */
    static const struct ew_schema_field fields[] = {
        {FIELD("n", EW_IN_UINT32)},
        {FIELD("s", EW_IN_STRUCT), .count_by = EW_EXTENT_FIELD, .count = 0, .first = 2,
         .members = 0},
    };
    static const struct ew_schema schema = SCHEMA(fields, 2);
    struct ew_fields list;
    size_t used;
    ew_fields_init(&list);
    CHECK(!ew_schema_decode(&schema, (const uint8_t *)"\xFF\xFF\xFF\xFF", 4, 8, &list, &used));
    CHECK(list.cut);
    CHECK_EQ_UINT(list.open, 0);
    CHECK(list.count <= EW_FIELDS_MAX);
    ew_fields_done(&list);
}

TEST(an_array_of_no_bytes_and_no_fields_ends_at_once)
{
    static const struct ew_schema_field fields[] = {
        {FIELD("n", EW_IN_UINT64)},
        {FIELD("p", EW_IN_PAD_POINTER), .count_by = EW_EXTENT_FIELD, .count = 0},
        {FIELD("end", EW_IN_UINT8)},
    };
    static const struct ew_schema schema = SCHEMA(fields, 3);
    bool ok;
    CHECK_EQ_STR(run(&schema, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x07", 9, 4, &ok, NULL),
                 "n=18446744073709551615 p=[] end=7");
    CHECK(ok);
}

TEST(guids_go_to_text_and_back)
{
    static const char text[] = "{22FB2CD6-0e7b-422b-a0c7-2fad1fd0e716}";
    uint8_t guid[16];
    char back[EW_GUID_TEXT];
    CHECK(ew_guid_parse(text, sizeof text - 1, guid));
    CHECK_EQ_MEM(guid, "\xd6\x2c\xfb\x22\x7b\x0e\x2b\x42\xa0\xc7\x2f\xad\x1f\xd0\xe7\x16", 16);
    ew_guid_text(guid, back);
    CHECK_EQ_STR(back, "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716");
    CHECK(ew_guid_parse(back, EW_GUID_TEXT - 1, guid));
    CHECK(!ew_guid_parse(back, EW_GUID_TEXT - 2, guid));
    back[8] = '0';
    CHECK(!ew_guid_parse(back, EW_GUID_TEXT - 1, guid));
    back[8] = '-';
    back[0] = 'g';
    CHECK(!ew_guid_parse(back, EW_GUID_TEXT - 1, guid));
}

TEST(addresses_are_shortened)
{
    static const struct {
        uint8_t address[16];
        const char *want;
    } rows[] = {
        {{0}, "::"},
        {{[15] = 1}, "::1"},
        {{0x20, 1, 0x0d, 0xb8}, "2001:db8::"},
        {{0x20, 1, 0x0d, 0xb8, [15] = 1}, "2001:db8::1"},
        /* The longest run; among equal runs the first; a single zero stays. */
        {{0x20, 1, [8] = 0, 1, [15] = 1}, "2001::1:0:0:1"},
        {{0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1}, "1::1:0:0:1:1"},
        {{0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}, "1:0:1:1:1:1:1:1"},
        {{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
          0xFF},
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[EW_IPV6_TEXT];
        CHECK_EQ_UINT(ew_ipv6_text(rows[i].address, text), strlen(rows[i].want));
        CHECK_EQ_STR(text, rows[i].want);
    }
    char v4[EW_IPV4_TEXT];
    CHECK_EQ_UINT(ew_ipv4_text((const uint8_t *)"\xFF\xFF\xFF\xFF", v4), 15);
    CHECK_EQ_STR(v4, "255.255.255.255");
}
