/* SPDX-License-Identifier: MIT */
/* Shared by every fuzz target: the entry point, and a check that ends the program when it fails. */
#ifndef EW_TESTS_FUZZ_H
#define EW_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

/* Reads every byte, so that the address sanitizer checks it. */
static inline unsigned touch(const void *text, size_t len)
{
    static volatile unsigned seen; /* prevents the compiler from omitting the reads */
    const uint8_t *bytes = text;
    unsigned sum = 0;
    for (size_t i = 0; i < len; i++)
        sum += bytes[i];
    seen = sum;
    return seen;
}

#endif
