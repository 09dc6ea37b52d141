/* SPDX-License-Identifier: MIT */
/*
 * The shared memory between a program that marks spans and its watcher. The program creates it,
 * seals its size and sends it once; it is the only writer. python/etwatch/_marks.py writes the same
 * layout: change both.
 *
 *   0       header
 *   4096    texts: each a length of two bytes and the bytes; record fields are offsets here; 0:
 * none 69632   records, used in turn
 *
 * A record is valid if its `commit` is its number + 1 (numbers start at 0); it is written last.
 */
#ifndef EW_SPANS_RING_H
#define EW_SPANS_RING_H

#include <stdint.h>

enum {
    EW_SPANS_RING_VERSION = 1,
    EW_SPANS_RING_HEADER = 4096,
    EW_SPANS_RING_TEXTS = 65536,
    EW_SPANS_RING_RECORDS = 16384,
    EW_SPANS_RING_FIRST = EW_SPANS_RING_HEADER + EW_SPANS_RING_TEXTS,
    EW_SPANS_RING_TEXT_MAX = 255,
};

#define EW_SPANS_RING_MAGIC "etwspan1"

/* A message with a profile of ONNX Runtime instead of a ring: this, the CLOCK_BOOTTIME at which the
 * profile begins (8 bytes), and the name of the session. */
#define EW_SPANS_PROFILE_MAGIC "etwprof1"

struct ew_spans_ring_header {
    char magic[8];
    uint32_t version, records, texts, pid;
};

struct ew_spans_ring_record {
    uint64_t start_ns, end_ns; /* CLOCK_BOOTTIME */
    uint32_t tid, end_tid;
    uint32_t name, session; /* offsets of texts */
    uint32_t kind, flags;   /* enum etwatch_span_kind, etwatch_span_flag */
    uint32_t shape;         /* of the first input; offset of a text */
    uint32_t reserved32;
    uint64_t reserved;
    uint64_t commit;
};

_Static_assert(sizeof(struct ew_spans_ring_record) == 72 - 8, "the layout is shared with Python");

#define EW_SPANS_RING_SIZE \
    (EW_SPANS_RING_FIRST + EW_SPANS_RING_RECORDS * (uint32_t)sizeof(struct ew_spans_ring_record))

/* The environment variable with the address of the watcher: "@" and an abstract Unix address. */
#define EW_SPANS_RING_VARIABLE "ETWATCH_SPANS"

#endif
