/* SPDX-License-Identifier: MIT */
/* Finds earlier occurrences of the following bytes: the basis of both compression formats. */
#ifndef EW_SOURCE_ETL_XPRESS_MATCH_H
#define EW_SOURCE_ETL_XPRESS_MATCH_H

#include <stddef.h>
#include <stdint.h>

enum { EW_XPRESS_MIN_MATCH = 3 };

struct ew_xpress_finder {
    const uint8_t *in;
    size_t size;
    size_t window; /* the largest distance */
    uint32_t *head;
    uint32_t *prev;
    size_t entered; /* positions before this one are in the chains */
};

struct ew_xpress_match {
    size_t len; /* 0: none */
    size_t distance;
};

/* window: a power of two. Inputs up to 4 GiB. ETWATCH_ENOMEM, ETWATCH_EINVAL. */
int ew_xpress_finder_init(struct ew_xpress_finder *finder, const uint8_t *in, size_t size,
                          size_t window);
void ew_xpress_finder_done(struct ew_xpress_finder *finder);
/* The longest match at pos that does not extend past end (positions only increase). */
struct ew_xpress_match ew_xpress_find(struct ew_xpress_finder *finder, size_t pos, size_t end);

#endif
