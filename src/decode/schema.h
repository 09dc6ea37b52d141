/* SPDX-License-Identifier: MIT */
/*
 * The layout of a payload, independent of its origin: TraceLogging, manifests, event metadata and
 * the built-in tables all become this list of fields, and one walk decodes by it.
 *
 * Types have TDH's numbers (_TDH_IN_TYPE of tdh.h), because both TraceLogging and the metadata use
 * them; output formats are our own, because they differ between the two.
 */
#ifndef EW_DECODE_SCHEMA_H
#define EW_DECODE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "model/field.h"

enum {
    EW_SCHEMA_FIELDS_MAX = 512, /* of one event, with the members of its structs */
    EW_SCHEMA_DEPTH_MAX = 8,    /* of structs within structs */
};

enum ew_in {
    EW_IN_NULL = 0,
    EW_IN_UTF16 = 1, /* up to a NUL or the payload's end, or a length in units */
    EW_IN_ANSI = 2,
    EW_IN_INT8 = 3,
    EW_IN_UINT8 = 4,
    EW_IN_INT16 = 5,
    EW_IN_UINT16 = 6,
    EW_IN_INT32 = 7,
    EW_IN_UINT32 = 8,
    EW_IN_INT64 = 9,
    EW_IN_UINT64 = 10,
    EW_IN_FLOAT = 11,
    EW_IN_DOUBLE = 12,
    EW_IN_BOOLEAN = 13, /* four bytes */
    EW_IN_BINARY = 14,  /* a length, otherwise the rest of the payload */
    EW_IN_GUID = 15,
    EW_IN_POINTER = 16,
    EW_IN_FILETIME = 17,
    EW_IN_SYSTEMTIME = 18,
    EW_IN_SID = 19,
    EW_IN_HEX32 = 20,
    EW_IN_HEX64 = 21,
    EW_IN_COUNTED_UTF16 = 22, /* u16 bytes before the text */
    EW_IN_COUNTED_ANSI = 23,
    EW_IN_STRUCT = 24,
    EW_IN_COUNTED_BINARY = 25,
    EW_IN_MOF_COUNTED_UTF16 = 300,
    EW_IN_MOF_COUNTED_ANSI = 301,
    EW_IN_REVERSED_COUNTED_UTF16 = 302, /* with a big-endian count */
    EW_IN_REVERSED_COUNTED_ANSI = 303,
    EW_IN_REST_UTF16 = 304, /* the rest of the payload */
    EW_IN_REST_ANSI = 305,
    EW_IN_CHAR16 = 306,
    EW_IN_CHAR8 = 307,
    EW_IN_SIZE = 308, /* as wide as a pointer */
    EW_IN_HEXDUMP = 309,
    EW_IN_WBEM_SID = 310, /* TOKEN_USER followed by the SID */
    /* Our own: padding between fields. */
    EW_IN_PAD2 = 1000,
    EW_IN_PAD_POINTER, /* four bytes if pointers have eight */
};

enum ew_out {
    EW_OUT_DEFAULT = 0, /* by the type */
    EW_OUT_HEX,
    EW_OUT_SIGNED,
    EW_OUT_UNSIGNED,
    EW_OUT_BOOLEAN,
    EW_OUT_TEXT, /* an array of 8-bit or 16-bit units is a string */
    EW_OUT_UTF8, /* also JSON and XML */
    EW_OUT_PORT, /* big-endian */
    EW_OUT_IPV4,
    EW_OUT_IPV6,
    EW_OUT_SOCKADDR,
    EW_OUT_FILETIME,
};

/* Source of a length or a count. */
enum ew_extent {
    EW_EXTENT_NONE = 0,
    EW_EXTENT_CONST,
    EW_EXTENT_FIELD,  /* the value of an earlier field: its index */
    EW_EXTENT_PREFIX, /* u16 right before the data */
    EW_EXTENT_REST,   /* counts only: to the end of the payload */
};

struct ew_map_entry {
    uint64_t value;
    const char *label;
    uint32_t label_len;
};

enum ew_map_style {
    EW_MAP_VALUES = 0,
    EW_MAP_BITS,  /* labels of all set bits: "A|B|0x10" */
    EW_MAP_FLAGS, /* like .NET flags: the value's own name, else "A, B", else the number */
};

/* Names for values. */
struct ew_map {
    const char *name;
    uint32_t name_len;
    uint32_t count;
    uint8_t style;                      /* enum ew_map_style */
    const struct ew_map_entry *entries; /* by value; equal values in their original order */
};

/* Brings the entries into the order that struct ew_map requires. False: out of memory. */
bool ew_map_sort(struct ew_map_entry *entries, uint32_t count);

struct ew_schema_field {
    const char *name; /* not terminated */
    const struct ew_map *map;
    uint16_t name_len;
    uint16_t in; /* enum ew_in */
    uint8_t out; /* enum ew_out */
    uint8_t length_by, count_by;
    uint8_t optional; /* may be missing at the end: added by a later version of the event */
    uint16_t length, count;
    uint16_t first, members; /* STRUCT: `members` siblings starting at entry `first` */
    uint16_t skip;           /* entries between this one and its next sibling */
};

struct ew_schema {
    const char *provider, *event; /* terminated; NULL: unknown */
    const struct ew_schema_field *fields;
    uint16_t field_count; /* with the members of structs */
    uint16_t top_count;   /* number of top-level fields */
    uint8_t origin;       /* enum ew_schema_origin */
};

/*
 * Appends the fields of the payload by `schema`. True: the payload has all of them. *ret_used:
 * number of bytes decoded; on failure those before the field that did not fit.
 */
bool ew_schema_decode(const struct ew_schema *schema, const uint8_t *payload, size_t size,
                      unsigned pointer_size, struct ew_fields *fields, size_t *ret_used);

/* Decodes one value of a field that is not a struct; *ret_number is its value if it is an integer.
 * On failure `in` has the error. */
void ew_schema_value(const struct ew_schema_field *field, const char *name, size_t name_len,
                     struct ew_bytes *in, unsigned pointer_size, uint64_t length,
                     struct ew_fields *fields, uint64_t *ret_number);

/* Whether a value can be a length or a count of others. */
static inline bool ew_in_is_integer(unsigned in)
{
    return (in >= EW_IN_INT8 && in <= EW_IN_UINT64) || in == EW_IN_HEX32 || in == EW_IN_HEX64 ||
           in == EW_IN_POINTER || in == EW_IN_SIZE;
}

/* Converts TDH's output types, which manifests and metadata use, to ours. */
uint8_t ew_out_from_tdh(unsigned out);

#endif
