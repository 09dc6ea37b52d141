/* SPDX-License-Identifier: MIT */
/*
 * A pull reader for the XML of event manifests: tags and attributes, nothing else. Text between
 * tags, comments, processing instructions and declarations are passed over; no entity but the five
 * of XML itself and character numbers; no recursion, no allocation. Names lose their prefix
 * ("win:").
 */
#ifndef EW_DECODE_XML_H
#define EW_DECODE_XML_H

#include <stdbool.h>

#include "base/bytes.h"

enum { EW_XML_ATTRIBUTES_MAX = 24 }; /* of one tag; more are passed over */

enum ew_xml_kind {
    EW_XML_END = 0, /* of the input, or of what can be read of it */
    EW_XML_OPEN,    /* <name …> */
    EW_XML_SELF,    /* <name …/> */
    EW_XML_CLOSE,   /* </name> */
};

struct ew_xml {
    struct ew_bytes in;
    struct ew_span name; /* of the tag at hand */
    unsigned attribute_count;
    struct {
        struct ew_span name, value; /* value: entities are still in it */
    } attribute[EW_XML_ATTRIBUTES_MAX];
};

void ew_xml_init(struct ew_xml *xml, const void *text, size_t size);
enum ew_xml_kind ew_xml_next(struct ew_xml *xml);
/* The attribute of the tag at hand; an empty span with text NULL if it has none. */
struct ew_span ew_xml_attribute(const struct ew_xml *xml, const char *name);
/* An attribute's value with its entities replaced: not longer than before. Returns the length; the
 * buffer holds value.len bytes at least. */
size_t ew_xml_unescape(struct ew_span value, char *buffer);

#endif
