/* SPDX-License-Identifier: MIT */
/*
 * Records in, events and named fields out. Pure: bytes in, facts out, no clock, no system.
 *
 * Two ways, because they are asked for at different speeds. ew_decode_event takes out of the
 * kernel's classes what accounting needs, in a few nanoseconds, without state. A decoder names
 * providers, events and every field; it learns schemas that a recording carries about itself
 * (TraceLogging, EventSource manifests, KernelTraceControl metadata) and knows the layouts of the
 * kernel classes and of some manifest providers by itself.
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
 * Fills *ret_event (kind EW_EVENT_OTHER: nothing to account for). Returns false if the record is of
 * a class that is decoded here but its payload is too short for it: count it as undecoded.
 * By version and by length; longer payloads than known are fine.
 */
bool ew_decode_event(const struct ew_record *record, struct ew_event *ret_event);

/* EW_EVENT_WORKING_SETS: entry `i`, false after the last. */
bool ew_decode_working_set(const struct ew_record *record, uint32_t i, struct ew_working_set *ret);

/* ---------------------------------------------------------- names and fields */

struct ew_decoder;

enum ew_schema_origin {
    EW_SCHEMA_NONE = 0, /* not known: only header fields and raw payload */
    EW_SCHEMA_KERNEL,   /* the kernel's classes: our tables */
    EW_SCHEMA_TABLE,    /* a manifest provider of our tables */
    EW_SCHEMA_TRACELOGGING,
    EW_SCHEMA_EVENTSOURCE, /* a manifest carried in the stream */
    EW_SCHEMA_METADATA,    /* KernelTraceControl event metadata carried in the stream */
};

/* Names are UTF-8, terminated, and live as long as the decoder; those of TraceLogging events and of
 * unknown ones only until the next record. "" where nothing is known. */
struct ew_event_names {
    const char *provider; /* "Microsoft-Windows-Kernel-Process", or the GUID as text */
    const char *event;    /* "ProcessStart/Start", "Thread/CSwitch"; or "EventID(7)", "Opcode(3)" */
    uint8_t origin;       /* enum ew_schema_origin */
};

int ew_decoder_new(struct ew_decoder **ret_decoder);
void ew_decoder_free(struct ew_decoder *decoder);

/* Keeps what the record says about schemas; cheap for the others. Schemas often come after the
 * events they describe: whoever can reads a recording twice and learns first. Bounded memory. */
int ew_decoder_learn(struct ew_decoder *decoder, const struct ew_record *record);

/* The same from the text of a manifest (.man, UTF-8 or UTF-16). Returns the number of events it
 * describes, ETWATCH_EFORMAT if it is none, or ETWATCH_ENOMEM. */
int ew_decoder_learn_manifest(struct ew_decoder *decoder, const void *xml, size_t size);

void ew_decoder_names(struct ew_decoder *decoder, const struct ew_record *record,
                      struct ew_event_names *ret_names);
/*
 * All fields of the record, in the order of its schema. Returns true if the schema is known and
 * everything it asks for was there; else *fields holds what could be read and the rest of the
 * payload as a BINARY field named "payload".
 */
bool ew_decoder_fields(struct ew_decoder *decoder, const struct ew_record *record,
                       struct ew_fields *fields);

#endif
