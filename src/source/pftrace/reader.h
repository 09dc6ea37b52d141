/* SPDX-License-Identifier: MIT */
/*
 * Reads a Perfetto trace: the facts that etwatch recorded; from traces of other programs the
 * scheduling and the names.
 *
 * Reads one file from start to end through a window of bounded size. What cannot be read is counted
 * with the offset where it starts. A trace that ends within a packet is what a killed recorder
 * leaves; everything before that is delivered.
 */
#ifndef EW_SOURCE_PFTRACE_READER_H
#define EW_SOURCE_PFTRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/etwatch.h>
#include <etwatch/span.h>
#include <etwatch/trace.h>

#include "base/bytes.h"
#include "base/error.h"

enum {
    EW_PFTRACE_PACKET_MAX = 16 << 20,   /* size in the file */
    EW_PFTRACE_INFLATED_MAX = 64 << 20, /* decompressed size of a packet */
    /* All packets together may expand to this much, and to RATIO times the bytes of the file read
     * so far. Recordings compress to a tenth; a decompression bomb reaches a thousandth. */
    EW_PFTRACE_INFLATED_FREE = 1 << 20,
    EW_PFTRACE_INFLATED_RATIO = 64,
};

struct ew_pftrace;

/* Callbacks in file order; each may be NULL. Pointers are valid during the call. Times are Unix
 * times. A negative return value ends reading with that error. */
struct ew_pftrace_visitor {
    void *ctx;
    int (*meta)(void *ctx, const struct etwatch_meta *meta, const char *os, const char *host);
    int (*sample)(void *ctx, const struct etwatch_sample *sample);
    int (*event)(void *ctx, const struct etwatch_event *event);
    int (*loss)(void *ctx, const struct etwatch_loss *loss);
    int (*stats)(void *ctx, const struct etwatch_stats *stats);
    /* Totals of a process or thread, if the trace was made from a recording. */
    int (*total)(void *ctx, const struct etwatch_sample *total,
                 const struct etwatch_metric_set *estimated);
    int (*system)(void *ctx, const struct etwatch_trace_system *system);
    /* Its metric and its threads are not in a trace. NULL: alerts are given to `other`. */
    int (*alert)(void *ctx, const struct etwatch_alert *alert);
    /* A span that etwatch wrote; its process is unknown. */
    int (*span)(void *ctx, const struct etwatch_span *span);
    /* Anything else. */
    int (*other)(void *ctx, const char *provider, const char *event, uint64_t t_ns, bool decoded);
};

struct ew_pftrace_counts {
    uint64_t bytes;   /* read so far */
    uint64_t packets; /* including those in compressed packets */
    uint64_t bad_packets, bad_bytes;
    uint64_t truncated; /* 1: the file ends within a packet */
    uint64_t lost_bundles;
    uint64_t first_bad_offset;
    char first_bad[128];
};

/* Whether a file that starts with these bytes is a Perfetto trace. */
bool ew_pftrace_is(const uint8_t *bytes, size_t size);
int ew_pftrace_open(const char *path, struct ew_pftrace **ret_trace, struct ew_error *reterr);
void ew_pftrace_close(struct ew_pftrace *trace);
/* Reads the next packet, or the next part of one with many events, and calls the visitor: 1, 0 at
 * the end, or an error. */
int ew_pftrace_next(struct ew_pftrace *trace, const struct ew_pftrace_visitor *visitor);
void ew_pftrace_rewind(struct ew_pftrace *trace);
void ew_pftrace_counts(const struct ew_pftrace *trace, struct ew_pftrace_counts *ret_counts);
uint64_t ew_pftrace_file_bytes(const struct ew_pftrace *trace);
/* Unix time minus the time of the trace's clock; known once the clock snapshot was read. */
uint64_t ew_pftrace_unix_minus_boot_ns(const struct ew_pftrace *trace);

/* Reads a whole trace from memory; the trace has no file. */
struct ew_pftrace *ew_pftrace_new(void);
int ew_pftrace_bytes(struct ew_pftrace *trace, const uint8_t *bytes, size_t size,
                     const struct ew_pftrace_visitor *visitor);

#endif
