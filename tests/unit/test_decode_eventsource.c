/* SPDX-License-Identifier: MIT */
/* Manifests: the XML reader, learning from a manifest text, and manifests sent in chunks. */
#include <stdlib.h>

#include <etwatch/etwatch.h>

#include "decode/decoder.h"
#include "decode/internal.h"
#include "decode/manifest.h"
#include "decode/xml.h"
#include "decode_kit.h"

#define PROVIDER "06f0e00e-422a-4987-922b-2ec13e281ea4"

static const char manifest[] =
    "<?xml version=\"1.0\"?><!-- <provider name='no'/> -->\n"
    "<instrumentationManifest xmlns=\"http://x/\"><instrumentation><events>\n"
    "<provider name=\"Made-Up\" guid=\"{" PROVIDER "}\" symbol=\"P\">\n"
    " <tasks><task name=\"Work\" value=\"1\"/></tasks>\n"
    " <maps>\n"
    "  <valueMap name=\"Colour\"><map value=\"1\" message=\"$(string.map_Colour.Red)\"/>\n"
    "   <map value=\"0x2\" message=\"$(string.map_Colour.Green)\"/></valueMap>\n"
    "  <bitMap name=\"Bits\"><map value=\"0x1\" message=\"$(string.bit.One)\"/>\n"
    "   <map value=\"0x2\" message=\"$(string.bit.Missing)\"/></bitMap>\n"
    " </maps>\n"
    " <events>\n"
    "  <event value=\"1\" version=\"0\" opcode=\"win:Start\" task=\"Work\" template=\"A\"/>\n"
    "  <event value=\"1\" version=\"1\" opcode=\"win:Info\" task=\"Work\" template=\"B\"/>\n"
    "  <event value=\"2\" symbol=\"Lone&amp;ly\"/>\n"
    "  <event value=\"3\" template=\"A\"/>\n"
    "  <event value=\"4\" task=\"Work\" template=\"Unknown\"/>\n"
    "  <event value=\"5\" task=\"Work\" template=\"Bad\"/>\n"
    "  <event value=\"99999\" task=\"Work\"/>\n"
    " </events>\n"
    " <templates>\n"
    "  <template tid=\"A\">\n"
    "   <data name=\"colour\" inType=\"win:UInt32\" map=\"Colour\"/>\n"
    "   <data name=\"bits\" inType=\"win:UInt8\" outType=\"win:HexInt8\" map=\"Bits\"/>\n"
    "   <data name=\"text\" inType=\"win:UnicodeString\"/>\n"
    "  </template>\n"
    "  <template tid=\"B\">\n"
    "   <data name=\"n\" inType=\"win:UInt8\"/>\n"
    "   <data name=\"raw\" inType=\"win:Binary\" length=\"n\"/>\n"
    "   <data name=\"fix\" inType=\"win:AnsiString\" length=\"3\"/>\n"
    "   <struct name=\"list\" count=\"n\"><data name=\"a\" inType=\"win:UInt8\"/>\n"
    "    <struct name=\"in\"><data name=\"b\" inType=\"win:Boolean\"/></struct></struct>\n"
    "   <data name=\"tail\" inType=\"win:Pointer\"/>\n"
    "  </template>\n"
    "  <template tid=\"Bad\"><data name=\"x\" inType=\"win:Nonsense\"/></template>\n"
    " </templates>\n"
    "</provider></events></instrumentation>\n"
    "<localization><resources culture=\"en-US\"><stringTable>\n"
    " <string id=\"map_Colour.Red\" value=\"red &#x26; hot\"/>\n"
    " <string id=\"map_Colour.Green\" value=\"green\"/><string id=\"bit.One\" value=\"One\"/>\n"
    "</stringTable></resources>\n"
    "<resources culture=\"de\"><stringTable><string id=\"bit.Missing\" value=\"nein\"/>\n"
    "</stringTable></resources></localization></instrumentationManifest>\n";

TEST(tags_are_read_one_by_one)
{
    static const char text[] = "\xEF\xBB\xBF<?pi > ?><a x='1' win:y = \"2\"><!-- <b> --><c/>text"
                               "<![CDATA[<d>]]></a>";
    struct ew_xml xml;
    ew_xml_init(&xml, text, sizeof text - 1);
    CHECK_EQ_INT(ew_xml_next(&xml), EW_XML_OPEN);
    CHECK(ew_span_equals(xml.name, "a"));
    CHECK(ew_span_equals(ew_xml_attribute(&xml, "x"), "1"));
    CHECK(ew_span_equals(ew_xml_attribute(&xml, "y"), "2"));
    CHECK(ew_xml_attribute(&xml, "z").text == NULL);
    CHECK_EQ_INT(ew_xml_next(&xml), EW_XML_SELF);
    CHECK(ew_span_equals(xml.name, "c"));
    CHECK_EQ_UINT(xml.attribute_count, 0);
    CHECK_EQ_INT(ew_xml_next(&xml), EW_XML_CLOSE);
    CHECK(ew_span_equals(xml.name, "a"));
    CHECK_EQ_INT(ew_xml_next(&xml), EW_XML_END);
    CHECK_EQ_INT(ew_xml_next(&xml), EW_XML_END);
}

TEST(bad_markup_ends_reading)
{
    static const char *const rows[] = {
        "",    "<",      "<a",        "<a x", "<a x=", "<a x=1",   "<a x='1", "<a x='1'", "</",
        "</a", "<!-- -", "<![CDATA[", "<?x",  "< a/>", "<a 'x'/>", "<=/>",    "<:/>"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_xml xml;
        test_row(rows[i]);
        ew_xml_init(&xml, rows[i], strlen(rows[i]));
        CHECK_EQ_INT(ew_xml_next(&xml), EW_XML_END);
    }
}

TEST(entities_become_characters)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"a &amp; b &lt;&gt;&quot;&apos;", "a & b <>\"'"},
        {"&#65;&#x20AC;&#x1F600;", "A\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {"&nbsp; &#0; &#xD800; &#x110000; & &; &#;", "&nbsp; &#0; &#xD800; &#x110000; & &; &#;"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char buffer[128];
        size_t len = ew_xml_unescape((struct ew_span){rows[i].text, strlen(rows[i].text)}, buffer);
        buffer[len] = '\0';
        CHECK_EQ_STR(buffer, rows[i].want);
    }
}

static void check_learned(struct ew_decoder *decoder)
{
    static struct bytes payload;
    static struct made_record made;
    bool ok;
    payload.size = 0;
    put_int(&payload, 1, 4);
    put_int(&payload, 7, 1);
    put_wide(&payload, "t");
    make_record(&made, PROVIDER, 1, 0, payload.data, payload.size);
    CHECK_EQ_STR(names(decoder, &made.record), "Made-Up/Work/Start");
    CHECK_EQ_STR(decode(decoder, &made.record, &ok),
                 "colour=1:red & hot bits=7:One|Missing|0x4 text='t'");
    CHECK(ok);
    payload.size = 0;
    put(&payload,
        "\x02\xAA\xBB"
        "ab\0"
        "\x05\x01\0\0\0\x06\0\0\0\0"
        "\x09\0\0\0\0\0\0\0",
        24);
    make_record(&made, PROVIDER, 1, 1, payload.data, payload.size);
    CHECK_EQ_STR(names(decoder, &made.record), "Made-Up/Work");
    CHECK_EQ_STR(decode(decoder, &made.record, &ok),
                 "n=2 raw=#aabb fix='ab' list=[{a=5 in={b=true}} {a=6 in={b=false}}] tail=0x9");
    CHECK(ok);
    make_record(&made, PROVIDER, 2, 0, "", 0);
    CHECK_EQ_STR(names(decoder, &made.record), "Made-Up/Lone&ly");
    CHECK_EQ_STR(decode(decoder, &made.record, &ok), "");
    CHECK(ok);
    /* No task and no symbol; a missing template; an unknown type. */
    for (uint16_t id = 3; id <= 5; id++) {
        make_record(&made, PROVIDER, id, 0, "x", 1);
        char want[64];
        snprintf(want, sizeof want, "Made-Up/EventID(%u)", id);
        CHECK_EQ_STR(names(decoder, &made.record), want);
        CHECK_EQ_STR(decode(decoder, &made.record, &ok), "payload=#78");
        CHECK(!ok);
    }
    /* Another version of a known event is a different event. */
    make_record(&made, PROVIDER, 1, 2, "x", 1);
    CHECK_EQ_STR(names(decoder, &made.record), "Made-Up/EventID(1)");
}

TEST(a_manifest_is_learned_from_its_text)
{
    struct ew_decoder *decoder;
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    CHECK_EQ_INT(ew_decoder_learn_manifest(decoder, manifest, sizeof manifest - 1), 4);
    check_learned(decoder);
    CHECK_EQ_INT(ew_decoder_learn_manifest(decoder, "no xml", 6), ETWATCH_EFORMAT);
    CHECK_EQ_INT(ew_decoder_learn_manifest(decoder, "<a/>", 4), ETWATCH_EFORMAT);
    check_learned(decoder);
    ew_decoder_free(decoder);
}

TEST(a_manifest_in_utf16_is_the_same)
{
    static struct bytes wide;
    struct ew_decoder *decoder;
    put(&wide, "\xFF\xFE", 2);
    for (const char *c = manifest; *c; c++)
        put_int(&wide, (uint8_t)*c, 2);
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    CHECK_EQ_INT(ew_decoder_learn_manifest(decoder, wide.data, wide.size), 4);
    check_learned(decoder);
    ew_decoder_free(decoder);
}

TEST(a_manifest_truncated_anywhere_is_handled)
{
    for (size_t len = 0; len < sizeof manifest; len += 7) {
        struct ew_decoder *decoder;
        CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
        int learned = ew_decoder_learn_manifest(decoder, manifest, len);
        CHECK(learned <= 4);
        ew_decoder_free(decoder);
    }
}

/* ------------------------------------------------------------------- chunks */

static struct bytes chunk_bytes;
static struct made_record chunk_record;

static const struct ew_record *chunk(uint32_t pid, unsigned total, unsigned number,
                                     const char *text, size_t len)
{
    chunk_bytes.size = 0;
    put(&chunk_bytes, "\x01\x01\x00\x5B", 4);
    put_int(&chunk_bytes, total, 2);
    put_int(&chunk_bytes, number, 2);
    put(&chunk_bytes, text, len);
    make_record(&chunk_record, PROVIDER, 0xFFFE, 1, chunk_bytes.data, chunk_bytes.size);
    chunk_record.record.pid = pid;
    return &chunk_record.record;
}

enum { PIECE = 500 };

/* The n-th of `total` pieces of the manifest. */
static const struct ew_record *piece(uint32_t pid, unsigned number)
{
    size_t whole = sizeof manifest - 1, from = (size_t)number * PIECE;
    unsigned total = (unsigned)((whole + PIECE - 1) / PIECE);
    return chunk(pid, total, number, manifest + from, whole - from < PIECE ? whole - from : PIECE);
}

static unsigned piece_count(void)
{
    return (unsigned)((sizeof manifest - 1 + PIECE - 1) / PIECE);
}

TEST(chunks_are_assembled_per_process)
{
    struct ew_decoder *decoder;
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    for (unsigned i = 0; i < piece_count(); i++) {
        CHECK_EQ_INT(ew_decoder_learn(decoder, piece(1, i)), 0);
        if (i + 1 < piece_count()) /* another process, interleaved, never complete */
            CHECK_EQ_INT(ew_decoder_learn(decoder, piece(2, i)), 0);
    }
    check_learned(decoder);
    CHECK_EQ_STR(names(decoder, piece(1, 0)), "Made-Up/ManifestData");
    char want[200];
    snprintf(want, sizeof want,
             "Format=1 MajorVersion=1 MinorVersion=0 Magic=91 TotalChunks=%u ChunkNumber=1 "
             "PayloadLength=508",
             piece_count());
    CHECK_EQ_STR(decode(decoder, piece(1, 1), NULL), want);
    CHECK_EQ_UINT(ew_decoder_refused(decoder), 0);
    ew_decoder_free(decoder);
}

TEST(chunks_out_of_order_are_refused)
{
    struct ew_decoder *decoder;
    static struct made_record made;
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    CHECK_EQ_INT(ew_decoder_learn(decoder, piece(1, 1)), 0);
    CHECK_EQ_INT(ew_decoder_learn(decoder, piece(1, 0)), 0);
    CHECK_EQ_INT(ew_decoder_learn(decoder, piece(1, 2)), 0);
    for (unsigned i = 1; i < piece_count(); i++)
        CHECK_EQ_INT(ew_decoder_learn(decoder, piece(1, i)), 0);
    CHECK(ew_decoder_refused(decoder) > 0);
    make_record(&made, PROVIDER, 1, 0, "", 0);
    CHECK_EQ_STR(names(decoder, &made.record), PROVIDER "/EventID(1)");
    /* From the first chunk on it is accepted again. */
    for (unsigned i = 0; i < piece_count(); i++)
        CHECK_EQ_INT(ew_decoder_learn(decoder, piece(1, i)), 0);
    check_learned(decoder);
    ew_decoder_free(decoder);
}

TEST(manifests_that_never_end_are_bounded)
{
    static char big[60000];
    struct ew_decoder *decoder;
    memset(big, 'x', sizeof big);
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    for (unsigned i = 0; i < 100; i++)
        CHECK_EQ_INT(ew_decoder_learn(decoder, chunk(1, 65535, i, big, sizeof big)), 0);
    CHECK(ew_decoder_refused(decoder) > 0);
    /* More incomplete manifests at once than are kept: the oldest ones are dropped. */
    uint64_t before = ew_decoder_refused(decoder);
    for (uint32_t pid = 100; pid < 100 + 2 * EW_EVENTSOURCE_OPEN_MAX; pid++)
        CHECK_EQ_INT(ew_decoder_learn(decoder, chunk(pid, 2, 0, big, 10)), 0);
    CHECK(ew_decoder_refused(decoder) > before);
    ew_decoder_free(decoder);
}

TEST(events_that_are_not_chunks_are_ignored)
{
    struct ew_decoder *decoder;
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    CHECK_EQ_INT(ew_decoder_learn(decoder, chunk(1, 0, 0, "x", 1)), 0);
    CHECK_EQ_INT(ew_decoder_learn(decoder, chunk(1, 1, 1, "x", 1)), 0);
    const struct ew_record *record = chunk(1, 1, 0, "<a>", 3);
    chunk_bytes.data[3] = 0x5A;
    CHECK(!ew_eventsource_is_chunk(record));
    CHECK_EQ_INT(ew_decoder_learn(decoder, record), 0);
    chunk_bytes.data[3] = 0x5B;
    chunk_record.record.payload_size = 7;
    CHECK(!ew_eventsource_is_chunk(record));
    ew_decoder_free(decoder);
}

static int learn_all(void *ctx)
{
    (void)ctx;
    struct ew_decoder *decoder;
    int r = ew_decoder_new(&decoder);
    if (r < 0)
        return r;
    for (unsigned i = 0; r >= 0 && i < piece_count(); i++)
        r = ew_decoder_learn(decoder, piece(1, i));
    uint64_t refused = ew_decoder_refused(decoder);
    ew_decoder_free(decoder);
    /* A store that could not grow must have refused something and reported it. */
    return r < 0 ? r : refused ? ETWATCH_ENOMEM : 0;
}

TEST(running_out_of_memory_is_reported)
{
    TORTURE(learn_all, NULL);
}

TEST(the_store_is_bounded)
{
    /* Each manifest has its own provider with many events; the total is far more than the store
     * holds. */
    static char text[300000];
    struct ew_decoder *decoder;
    CHECK_EQ_INT(ew_decoder_new(&decoder), 0);
    for (unsigned round = 0; round < 40; round++) {
        size_t len = (size_t)snprintf(
            text, sizeof text,
            "<provider name='P%u' guid='{%08x-0000-0000-0000-000000000000}'><events>", round,
            round + 1);
        for (unsigned i = 0; i < 4000; i++)
            len += (size_t)snprintf(text + len, sizeof text - len,
                                    "<event value='%u' task='LongTaskName%u'/>", i, i);
        CHECK(ew_decoder_learn_manifest(decoder, text, len) >= 0);
    }
    CHECK(ew_decoder_refused(decoder) > 0);
    static struct made_record made;
    make_record(&made, "00000001-0000-0000-0000-000000000000", 17, 0, "", 0);
    CHECK_EQ_STR(names(decoder, &made.record), "P0/LongTaskName17");
    ew_decoder_free(decoder);
}
