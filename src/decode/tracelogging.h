/* SPDX-License-Identifier: MIT */
/* TraceLogging: every event carries its own schema. .NET's self-describing events do the same. */
#ifndef EW_DECODE_TRACELOGGING_H
#define EW_DECODE_TRACELOGGING_H

#include "decode/schema.h"
#include "model/record.h"

/* One schema, reused from event to event; its names point into the record. */
struct ew_tracelogging {
    struct ew_schema schema;
    struct ew_schema_field fields[EW_SCHEMA_FIELDS_MAX];
};

/* False: the record carries no schema, or one that cannot be read. */
bool ew_tracelogging_parse(const struct ew_record *record, struct ew_tracelogging *ret);
/* Only the name of the event, terminated, within the record; NULL if there is none. */
const char *ew_tracelogging_event(const struct ew_record *record);
/* The name of the provider, from its traits, likewise. */
const char *ew_traits_provider(const struct ew_record *record);

#endif
