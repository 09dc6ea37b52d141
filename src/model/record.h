/* SPDX-License-Identifier: MIT */
/*
 * One raw ETW event, undecoded. Recordings and live sessions yield the same record, so later stages
 * need not distinguish them.
 *
 * A record is one cache line: it contains what is needed for every event; the rest is read from the
 * header bytes. It owns nothing; its source defines how long the pointers
 * are valid.
 */
#ifndef EW_MODEL_RECORD_H
#define EW_MODEL_RECORD_H

#include <stdint.h>

/* pid or tid that the header does not have (the kernel's own short headers). */
#define EW_NO_ID UINT32_MAX

enum ew_record_kind {
    EW_RECORD_KERNEL = 1, /* SYSTEM, COMPACT, PERFINFO: class by group, event by opcode */
    EW_RECORD_CLASSIC,    /* EVENT_TRACE_HEADER, INSTANCE: class by GUID, event by opcode */
    EW_RECORD_MANIFEST,   /* EVENT_HEADER: provider by GUID, event by id (TraceLogging too) */
    EW_RECORD_MESSAGE,    /* WPP: message GUID and number */
    /* Not an event: events of this CPU were lost before the next record. id has the flags of the
     * buffer (2: events, 4: buffers were lost before it), t_ns is the time of the next record;
     * header is the buffer's own (72 bytes), there is no payload. A live session knows the number
     * of lost events: it is the payload (8 bytes), there is no header, and cpu is UINT16_MAX if the
     * CPU is unknown. Only time accounting needs this record. */
    EW_RECORD_LOSS,
};

struct ew_record {
    uint64_t t_ns;         /* raw clock of the reader in ns, common to all files of one reader */
    uint64_t t_raw;        /* the session's own clock, as written */
    const uint8_t *header; /* valid for the size of its type */
    const uint8_t *payload;
    const uint8_t *provider; /* 16 bytes of GUID as on disk, or NULL: EW_RECORD_KERNEL */
    uint32_t payload_size;
    uint32_t pid, tid; /* or EW_NO_ID */
    uint16_t cpu;
    uint16_t id;            /* MANIFEST: event id; MESSAGE: number; else 0 */
    uint16_t extended_size; /* MANIFEST: size of the extended items, which start at header + 0x50 */
    uint8_t kind;           /* enum ew_record_kind */
    uint8_t header_type;    /* as on disk: 1 SYSTEM32 … 19 EVENT_HEADER64; 15 MESSAGE */
    uint8_t pointer_size;   /* 4 or 8: of pointers in this payload */
    uint8_t version;
    uint8_t opcode;
    uint8_t group; /* KERNEL: the class (0x03 Process, 0x05 Thread, …); else level */
};

_Static_assert(sizeof(void *) != 8 || sizeof(struct ew_record) == 64, "one cache line");

#endif
