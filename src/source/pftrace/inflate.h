/* SPDX-License-Identifier: MIT */
/* zlib decompression (RFC 1950, 1951), for the packets of a trace. */
#ifndef EW_SOURCE_PFTRACE_INFLATE_H
#define EW_SOURCE_PFTRACE_INFLATE_H

#include <stddef.h>
#include <stdint.h>

/* The output: grows as needed up to max. */
struct ew_inflated {
    uint8_t *data;
    size_t len, size, max;
};

/* Replaces the content of *out. Returns 0; ETWATCH_EFORMAT or ETWATCH_ETRUNC (input error at
 * *reterr_at), ETWATCH_ELIMIT (more than max), ETWATCH_ENOMEM. A wrong checksum is EFORMAT. */
int ew_inflate(const uint8_t *bytes, size_t size, struct ew_inflated *out, size_t *reterr_at);
void ew_inflated_done(struct ew_inflated *out);

#endif
