/* SPDX-License-Identifier: MIT */
/*
 * Reads the profile of ONNX Runtime, a JSON array with one event per line. It is foreign: names are
 * not escaped in it, the order of keys is random, and it may be cut. A line that is no event is
 * counted as lost and ends nothing.
 */
#ifndef EW_SPANS_PROFILE_READER_H
#define EW_SPANS_PROFILE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/span.h>

enum {
    EW_SPANS_PROFILE_LINE_MAX = 1 << 18,
    /* ONNX Runtime keeps no more of a session. */
    EW_SPANS_PROFILE_EVENTS_MAX = 1000000,
};

struct ew_spans_profile {
    uint32_t pid;
    uint64_t start_ns; /* Unix time of its beginning */
    const char *session;
    void (*on_operator)(void *ctx, const struct etwatch_operator *op);
    void *ctx;
    uint64_t events, operators, lost;
    bool ended; /* the end of the array was seen */
    char *line; /* the line that is being read */
    size_t len, size;
    bool too_long; /* the rest of the line is skipped */
};

/* Bytes of the file, in any portions. 0 or ETWATCH_ENOMEM. */
int ew_spans_profile_add(struct ew_spans_profile *profile, const void *bytes, size_t len);
/* The file has ended: counts what is missing. Frees the line. */
void ew_spans_profile_end(struct ew_spans_profile *profile);

#endif
