/* SPDX-License-Identifier: MIT */
/*
 * Reads tags one after the other. Invalid markup ends the reading; everything before it counts.
 * Manifests are machine-written, so errors need not be tolerated, only handled safely.
 */
#include "decode/xml.h"

#include <string.h>

#include <etwatch/etwatch.h>

void ew_xml_init(struct ew_xml *xml, const void *text, size_t size)
{
    memset(xml, 0, sizeof *xml);
    ew_bytes_init(&xml->in, text, size);
}

static bool is_space(int c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_space(struct ew_bytes *in)
{
    while (is_space(ew_bytes_peek(in)))
        ew_bytes_skip(in, 1);
}

static bool is_name(int c)
{
    return c >= 0 && !is_space(c) && c != '=' && c != '>' && c != '/' && c != '<' && c != '"' &&
           c != '\'';
}

static struct ew_span take_name(struct ew_bytes *in)
{
    size_t start = in->pos, from = start;
    while (is_name(ew_bytes_peek(in))) {
        if (ew_bytes_peek(in) == ':')
            from = in->pos + 1;
        ew_bytes_skip(in, 1);
    }
    if (in->pos == from)
        ew_bytes_fail(in, ETWATCH_EFORMAT);
    return (struct ew_span){(const char *)in->data + from, in->pos - from};
}

/* Skips everything up to and including `stop`. */
static void skip_past(struct ew_bytes *in, const char *stop)
{
    while (ew_bytes_left(in)) {
        if (ew_bytes_accept(in, stop))
            return;
        ew_bytes_skip(in, 1);
    }
    ew_bytes_fail(in, ETWATCH_ETRUNC);
}

static void take_attribute(struct ew_xml *xml)
{
    struct ew_bytes *in = &xml->in;
    struct ew_span name = take_name(in);
    skip_space(in);
    ew_bytes_expect(in, "=");
    skip_space(in);
    char quote = (char)ew_bytes_u8(in);
    if (quote != '"' && quote != '\'')
        ew_bytes_fail(in, ETWATCH_EFORMAT);
    struct ew_span value = ew_bytes_until(in, quote);
    if (!ew_bytes_ok(in) || xml->attribute_count == EW_XML_ATTRIBUTES_MAX)
        return;
    xml->attribute[xml->attribute_count].name = name;
    xml->attribute[xml->attribute_count].value = value;
    xml->attribute_count++;
}

/* Reads what follows the name of an opening tag. */
static enum ew_xml_kind take_attributes(struct ew_xml *xml)
{
    struct ew_bytes *in = &xml->in;
    while (ew_bytes_left(in)) {
        skip_space(in);
        if (ew_bytes_accept(in, "/>"))
            return EW_XML_SELF;
        if (ew_bytes_accept(in, ">"))
            return EW_XML_OPEN;
        take_attribute(xml);
    }
    return EW_XML_END;
}

enum ew_xml_kind ew_xml_next(struct ew_xml *xml)
{
    struct ew_bytes *in = &xml->in;
    for (;;) {
        xml->attribute_count = 0;
        (void)ew_bytes_until(in, '<');
        if (!ew_bytes_ok(in))
            return EW_XML_END;
        if (ew_bytes_accept(in, "!--")) {
            skip_past(in, "-->");
        } else if (ew_bytes_accept(in, "![CDATA[")) {
            skip_past(in, "]]>");
        } else if (ew_bytes_peek(in) == '?' || ew_bytes_peek(in) == '!') {
            skip_past(in, ">");
        } else if (ew_bytes_accept(in, "/")) {
            xml->name = take_name(in);
            skip_past(in, ">");
            return ew_bytes_ok(in) ? EW_XML_CLOSE : EW_XML_END;
        } else {
            xml->name = take_name(in);
            return ew_bytes_ok(in) ? take_attributes(xml) : EW_XML_END;
        }
    }
}

struct ew_span ew_xml_attribute(const struct ew_xml *xml, const char *name)
{
    for (unsigned i = 0; i < xml->attribute_count; i++)
        if (ew_span_equals(xml->attribute[i].name, name))
            return xml->attribute[i].value;
    return (struct ew_span){NULL, 0};
}

static size_t put_utf8(uint32_t code, char *at)
{
    if (code < 0x80) {
        at[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        at[0] = (char)(0xC0 | code >> 6);
        at[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        at[0] = (char)(0xE0 | code >> 12);
        at[1] = (char)(0x80 | (code >> 6 & 0x3F));
        at[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    at[0] = (char)(0xF0 | code >> 18);
    at[1] = (char)(0x80 | (code >> 12 & 0x3F));
    at[2] = (char)(0x80 | (code >> 6 & 0x3F));
    at[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

/* The character an entity stands for (without '&' and ';'), or 0. Every character is shorter in
 * UTF-8 than as an entity: "&#1;" is the shortest. */
static uint32_t entity(struct ew_span text)
{
    static const struct {
        const char *name;
        char c;
    } known[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (ew_span_equals(text, known[i].name))
            return (uint32_t)known[i].c;
    if (!ew_span_starts(text, "#"))
        return 0;
    struct ew_bytes in;
    ew_bytes_init(&in, text.text + 1, text.len - 1);
    bool hex = ew_bytes_accept(&in, "x");
    uint64_t code = hex ? ew_bytes_hex_u64(&in) : ew_bytes_dec_u64(&in);
    bool valid = ew_bytes_ok(&in) && ew_bytes_left(&in) == 0 && code <= 0x10FFFF &&
                 (code < 0xD800 || code > 0xDFFF);
    /* Even the shortest, "&#9;", has four bytes: room for any character. */
    return valid && code >= 1 ? (uint32_t)code : 0;
}

size_t ew_xml_unescape(struct ew_span value, char *buffer)
{
    size_t used = 0;
    for (size_t i = 0; i < value.len;) {
        const char *end = NULL;
        size_t left = value.len - i;
        if (value.text[i] == '&')
            end = memchr(value.text + i, ';', left < 12 ? left : 12);
        if (end) {
            struct ew_span name = {value.text + i + 1, (size_t)(end - value.text) - i - 1};
            uint32_t code = entity(name);
            if (code) {
                used += put_utf8(code, buffer + used);
                i += name.len + 2;
                continue;
            }
        }
        buffer[used++] = value.text[i++];
    }
    return used;
}
