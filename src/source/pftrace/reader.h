/* SPDX-License-Identifier: MIT */
/*
 * A Perfetto trace, read back: packets in, the facts that etwatch recorded out; of traces by others
 * the scheduling and the names.
 *
 * One file at a time, from its beginning to its end, through a window of bounded size. What cannot
 * be read is counted with the offset where it began; a trace that ends within a packet is what a
 * killed recorder leaves, and everything before that is told.
 */
#ifndef EW_SOURCE_PFTRACE_READER_H
#define EW_SOURCE_PFTRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/etwatch.h>
#include <etwatch/trace.h>

#include "base/bytes.h"
#include "base/error.h"

enum {
    EW_PFTRACE_PACKET_MAX = 16 << 20,   /* as it lies in the file */
    EW_PFTRACE_INFLATED_MAX = 64 << 20, /* what a compressed packet holds */
};

struct ew_pftrace;

/* What is told, in the order of the file; each may be NULL. Pointers are valid until it returns.
 * Times are Unix. A negative code ends the reading with it. */
struct ew_pftrace_visitor {
    void *ctx;
    int (*meta)(void *ctx, const struct etwatch_meta *meta, const char *os, const char *host);
    int (*sample)(void *ctx, const struct etwatch_sample *sample);
    int (*event)(void *ctx, const struct etwatch_event *event);
    int (*loss)(void *ctx, const struct etwatch_loss *loss);
    int (*stats)(void *ctx, const struct etwatch_stats *stats);
    /* What was added up of the recording that this trace was made of: a process or a thread. */
    int (*total)(void *ctx, const struct etwatch_sample *total,
                 const struct etwatch_metric_set *estimated);
    int (*system)(void *ctx, const struct etwatch_trace_system *system);
    /* Anything else. */
    int (*other)(void *ctx, const char *provider, const char *event, uint64_t t_ns, bool decoded);
};

struct ew_pftrace_counts {
    uint64_t bytes;   /* read so far */
    uint64_t packets; /* also those inside of others */
    uint64_t bad_packets, bad_bytes;
    uint64_t truncated; /* 1: the file ends within a packet */
    uint64_t lost_bundles;
    uint64_t first_bad_offset;
    char first_bad[128];
};

/* Whether a file that begins with these bytes is one. */
bool ew_pftrace_is(const uint8_t *bytes, size_t size);
int ew_pftrace_open(const char *path, struct ew_pftrace **ret_trace, struct ew_error *reterr);
void ew_pftrace_close(struct ew_pftrace *trace);
/* Reads on to the next packet and tells of it: 1, 0 at the end, or an error. */
int ew_pftrace_next(struct ew_pftrace *trace, const struct ew_pftrace_visitor *visitor);
void ew_pftrace_rewind(struct ew_pftrace *trace);
void ew_pftrace_counts(const struct ew_pftrace *trace, struct ew_pftrace_counts *ret_counts);
uint64_t ew_pftrace_file_bytes(const struct ew_pftrace *trace);
/* Known once its packet was met: Unix time less that of the trace's clock. */
uint64_t ew_pftrace_unix_minus_boot_ns(const struct ew_pftrace *trace);

/* The same of bytes that lie in memory, all at once; the trace has no file. */
struct ew_pftrace *ew_pftrace_new(void);
int ew_pftrace_bytes(struct ew_pftrace *trace, const uint8_t *bytes, size_t size,
                     const struct ew_pftrace_visitor *visitor);

#endif
