/* SPDX-License-Identifier: MIT */
/*
 * Decodes records to events and named fields. Pure functions of the bytes: no clock, no system.
 *
 * There are two interfaces with different speeds. ew_decode_event extracts what accounting needs
 * from the kernel's classes, in a few nanoseconds, without state. A decoder names providers, events
 * and every field; it learns the schemas that a recording carries (TraceLogging, EventSource
 * manifests, KernelTraceControl metadata) and has built-in layouts of the kernel classes and of
 * some manifest providers.
 */
#ifndef EW_DECODE_DECODE_H
#define EW_DECODE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/event.h"
#include "model/field.h"
#include "model/record.h"

/* ------------------------------------------------------------ for accounting */

/*
 * Fills *ret_event (kind EW_EVENT_OTHER: not accounted). Returns false if the record is of a class
 * that is decoded here but its payload is too short: count it as undecoded. Layouts depend on
 * version and length; payloads longer than known are accepted.
 */
bool ew_decode_event(const struct ew_record *record, struct ew_event *ret_event);

/* EW_EVENT_WORKING_SETS: entry `i`, false after the last. */
bool ew_decode_working_set(const struct ew_record *record, uint32_t i, struct ew_working_set *ret);

/* ---------------------------------------------------------- names and fields */

struct ew_decoder;

enum ew_schema_origin {
    EW_SCHEMA_NONE = 0, /* unknown: only header fields and raw payload */
    EW_SCHEMA_KERNEL,   /* a kernel class, from the built-in tables */
    EW_SCHEMA_TABLE,    /* a manifest provider, from the built-in tables */
    EW_SCHEMA_TRACELOGGING,
    EW_SCHEMA_EVENTSOURCE, /* a manifest carried in the stream */
    EW_SCHEMA_METADATA,    /* KernelTraceControl event metadata carried in the stream */
};

/* Names are UTF-8, terminated, and live as long as the decoder; those of TraceLogging events and of
 * unknown events only until the next record. "" if unknown. */
struct ew_event_names {
    const char *provider; /* "Microsoft-Windows-Kernel-Process", or the GUID as text */
    const char *event;    /* "ProcessStart/Start", "Thread/CSwitch"; or "EventID(7)", "Opcode(3)" */
    uint8_t origin;       /* enum ew_schema_origin */
    bool named, laid_out; /* the name of the event is known; its fields are */
};

int ew_decoder_new(struct ew_decoder **ret_decoder);
void ew_decoder_free(struct ew_decoder *decoder);

/* Keeps the schemas that the record contains; cheap for all other records. Schemas often come after
 * the events they describe, so read a recording twice if possible and learn first. Bounded memory.
 */
int ew_decoder_learn(struct ew_decoder *decoder, const struct ew_record *record);

/* The same from the text of a manifest (.man, UTF-8 or UTF-16). Returns the number of events it
 * describes, ETWATCH_EFORMAT if it is not a manifest, or ETWATCH_ENOMEM. */
int ew_decoder_learn_manifest(struct ew_decoder *decoder, const void *xml, size_t size);

/* Names a provider that has no schema to name it. */
void ew_decoder_name_provider(struct ew_decoder *decoder, const uint8_t guid[16], const char *name);
/* The same from TDH's TRACE_EVENT_INFO of one event. 1, 0 if it is malformed, or an error. */
int ew_decoder_learn_info(struct ew_decoder *decoder, const void *info, size_t size);

void ew_decoder_names(struct ew_decoder *decoder, const struct ew_record *record,
                      struct ew_event_names *ret_names);
/*
 * All fields of the record, in schema order. Returns true if the schema is known and the payload
 * has all of its fields; otherwise *fields holds what could be read and the rest of the payload as
 * a BINARY field named "payload".
 */
bool ew_decoder_fields(struct ew_decoder *decoder, const struct ew_record *record,
                       struct ew_fields *fields);

#endif
