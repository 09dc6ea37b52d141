/* SPDX-License-Identifier: MIT */
/*
 * A pull reader for the XML of event manifests: tags and attributes, nothing else. Text between
 * tags, comments, processing instructions and declarations are skipped; the only entities are the
 * five of XML itself and character numbers; no recursion, no allocation. Names lose their prefix
 * ("win:").
 */
#ifndef EW_DECODE_XML_H
#define EW_DECODE_XML_H

#include <stdbool.h>

#include "base/bytes.h"

enum { EW_XML_ATTRIBUTES_MAX = 24 }; /* per tag; more are ignored */

enum ew_xml_kind {
    EW_XML_END = 0, /* end of the input, or invalid markup */
    EW_XML_OPEN,    /* <name …> */
    EW_XML_SELF,    /* <name …/> */
    EW_XML_CLOSE,   /* </name> */
};

struct ew_xml {
    struct ew_bytes in;
    struct ew_span name; /* of the current tag */
    unsigned attribute_count;
    struct {
        struct ew_span name, value; /* value: entities are not yet replaced */
    } attribute[EW_XML_ATTRIBUTES_MAX];
};

void ew_xml_init(struct ew_xml *xml, const void *text, size_t size);
enum ew_xml_kind ew_xml_next(struct ew_xml *xml);
/* An attribute of the current tag; an empty span with text NULL if it has none. */
struct ew_span ew_xml_attribute(const struct ew_xml *xml, const char *name);
/* Replaces the entities in an attribute's value, which does not get longer. Returns the length; the
 * buffer must hold value.len bytes. */
size_t ew_xml_unescape(struct ew_span value, char *buffer);

#endif
