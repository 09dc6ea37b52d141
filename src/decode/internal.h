/* SPDX-License-Identifier: MIT */
/* The decoders of schemas contained in a recording, to which decoder.c dispatches. */
#ifndef EW_DECODE_INTERNAL_H
#define EW_DECODE_INTERNAL_H

#include <stdbool.h>

#include "base/bytes.h"
#include "decode/schema.h"
#include "decode/store.h"
#include "model/record.h"

/* --------------------------------------------------------------------------- extended */

/* The extended items of a manifest event. */

enum ew_extended {
    EW_EXT_TRACELOGGING = 0xB, /* the schema of the event */
    EW_EXT_TRAITS = 0xC,       /* the name of its provider */
};

/* The data of the first item of that type; false if there is none. */
bool ew_extended_find(const struct ew_record *record, enum ew_extended type,
                      struct ew_bytes *ret_data);

/* --------------------------------------------------------------------------- metadata */

/*
 * Event metadata that merging tools (PerfView, xperf) add to a recording so that it can be decoded
 * on another machine: the TDH description of each kind of event, and the maps of their values.
 */

/* Whether the record is of the metadata class {bbccf6c1-6cd1-48c4-80ff-839482e37671}. */
bool ew_metadata_is(const struct ew_record *record);
/* Adds its content to the store. 1: something new; 0: nothing new, or unreadable. */
int ew_metadata_learn(struct ew_store *store, const struct ew_record *record);
/* The payload is a TRACE_EVENT_INFO, whatever the record is. */
int ew_metadata_learn_event(struct ew_store *store, const struct ew_record *record);

/* ----------------------------------------------------------------------- tracelogging */

/* TraceLogging: every event carries its own schema. .NET's self-describing events do the same. */

/* One schema, reused from event to event; its names point into the record. */
struct ew_tracelogging {
    struct ew_schema schema;
    struct ew_schema_field fields[EW_SCHEMA_FIELDS_MAX];
};

/* False: the record carries no schema, or an unreadable one. */
bool ew_tracelogging_parse(const struct ew_record *record, struct ew_tracelogging *ret);
/* Only the name of the event, terminated, within the record; NULL if there is none. */
const char *ew_tracelogging_event(const struct ew_record *record);
/* The name of the provider, from its traits, likewise. */
const char *ew_traits_provider(const struct ew_record *record);

/* ------------------------------------------------------------------------ eventsource */

/* Manifests that .NET's EventSource writes into its own stream, in chunks. */

enum {
    EW_EVENTSOURCE_OPEN_MAX = 16,          /* manifests being assembled */
    EW_EVENTSOURCE_MANIFEST_MAX = 1 << 20, /* bytes per manifest */
    EW_EVENTSOURCE_KNOWN_MAX = 1024,       /* manifests that need not be read again */
};

struct ew_eventsource {
    struct ew_eventsource_open {
        uint8_t guid[16];
        uint32_t pid;
        uint16_t total, next; /* chunks; total 0: free */
        uint32_t used_at;     /* for replacing the least recently used */
        char *text;
        size_t len, size;
    } open[EW_EVENTSOURCE_OPEN_MAX];
    uint32_t clock;
    uint32_t known_count;
    uint64_t known[EW_EVENTSOURCE_KNOWN_MAX]; /* hashes of (provider, text) */
    uint64_t refused;                         /* chunks out of order, manifests too large */
};

void ew_eventsource_done(struct ew_eventsource *source);

/* Whether the record is a chunk of a manifest. */
bool ew_eventsource_is_chunk(const struct ew_record *record);
/* Adds a chunk; after the last one the manifest's schemas are in the store. 1: they are new; 0: not
 * complete, or already known; ETWATCH_ENOMEM. */
int ew_eventsource_learn(struct ew_eventsource *source, struct ew_store *store,
                         const struct ew_record *record);
/* The layout of the chunk event itself. */
const struct ew_schema *ew_eventsource_chunk_schema(void);

#endif
