/* SPDX-License-Identifier: MIT */
/*
 * Built-in tables for providers without schemas in recordings, in a short notation that is compiled
 * to schemas at the first event of each kind.
 *
 * An entry applies to its version and later ones up to the next entry of the same id: later
 * versions append fields, which are ignored. The notation, fields separated by spaces:
 *
 *   Name:u4        type: u1 u2 u4 u8 and i… integers, x… the same in hex, p pointer, z size (as
 *                  wide as a pointer), f4 f8, b boolean of four bytes, b1 of one, w UTF-16 text up
 *                  to NUL, a 8-bit text, wc ac counted text, g GUID, ft FILETIME, st SYSTEMTIME,
 *                  sid, ip4 ip6 addresses, port (big-endian), bin bytes, sa socket address;
 *                  pad2, padp: padding of two bytes, or of four if pointers have eight
 *   Name:u4=Map    a value with names; =Map for one of several, |Map for flags
 *   Name:w(Other)  length from another field or a number, in characters or bytes
 *   Name:u8[Other] array with a count from another field or a number; [*] to the end
 *   Name[Other]{…} the same for structs; Name{…} a single struct
 *   ?Name:u4       optional from here on: the payload may end before it
 */
#ifndef EW_DECODE_MANIFESTS_H
#define EW_DECODE_MANIFESTS_H

#include "decode/store.h"

struct ew_table_event {
    uint16_t id;
    uint8_t version;
    const char *name;   /* "Task/Opcode" */
    const char *fields; /* NULL: the layout is unknown, only the name is known */
};

struct ew_table_map {
    const char *name;
    const char *entries; /* "Small=0 Large=1 Pinned=0x4"; '_' in a label stands for itself */
};

struct ew_table_provider {
    const char *guid, *name;
    /* By id, then by version, ends with an entry without a name; NULL: only the provider is known.
     */
    const struct ew_table_event *events;
    /* The table takes precedence over the recording's own schemas, because its names are those of
     * Microsoft's tools. */
    bool first;
    bool classic;                    /* the ids are opcodes of a classic provider */
    const struct ew_table_map *maps; /* ends with an entry without a name; may be NULL */
};

enum { EW_TABLE_PROVIDERS_MAX = 128 };

/* All providers; at most EW_TABLE_PROVIDERS_MAX. */
const struct ew_table_provider *ew_tables(unsigned i); /* NULL after the last */

/* The entry for an event, or NULL. */
const struct ew_table_event *ew_manifest_table_find(const struct ew_table_provider *provider,
                                                    uint16_t id, uint8_t version);
/* Allocated in the store; NULL if that is full, or the notation is invalid (an error in a table,
 * which tests would find). */
const struct ew_schema *ew_manifest_table_compile(struct ew_store *store,
                                                  const struct ew_table_provider *provider,
                                                  const struct ew_table_event *event);

#endif
