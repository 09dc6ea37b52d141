/* SPDX-License-Identifier: MIT */
/* The parts of a manifest before they are assembled: spans of its text. */
#ifndef EW_DECODE_MANIFEST_PARTS_H
#define EW_DECODE_MANIFEST_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "decode/schema.h"

struct ew_part_list {
    void *items;
    uint32_t count, capacity;
    size_t item_size;
};

struct ew_part_key {
    struct ew_span name;
    uint32_t provider; /* index; 0 for strings, which belong to all providers */
};

struct ew_part_provider {
    struct ew_span name;
    uint8_t guid[16];
    bool valid;
};

struct ew_part_event {
    struct ew_span task, opcode, symbol, template;
    uint32_t provider;
    uint16_t id;
    uint8_t version;
};

struct ew_part_template {
    struct ew_part_key key;
    const struct ew_schema_field *built;
    uint32_t first, field_count, top_count;
    bool bad; /* an unknown type, or too many fields: its events stay undecoded */
};

struct ew_part_field {
    struct ew_schema_field field; /* without names */
    struct ew_span name, map;
    uint32_t provider;
};

struct ew_part_map {
    struct ew_part_key key;
    uint32_t first, count;
    bool flags;
};

struct ew_part_entry {
    uint64_t value;
    struct ew_span message;
};

struct ew_part_string {
    struct ew_part_key key;
    struct ew_span value;
};

struct ew_parts {
    struct ew_part_list providers, events, templates, fields, maps, entries, strings;
    int error; /* ETWATCH_ENOMEM */
    unsigned languages;
    /* The template that is being read. */
    bool in_template;
    unsigned depth;
    uint32_t open[EW_SCHEMA_DEPTH_MAX]; /* structs, as indexes of fields */
};

void ew_parts_init(struct ew_parts *parts);
void ew_parts_done(struct ew_parts *parts);
void ew_parts_collect(struct ew_parts *parts, const void *text, size_t size);

#endif
