/* SPDX-License-Identifier: MIT */
/* SHA-1, for identifiers that are defined by it. Not for security. */
#ifndef EW_BASE_SHA1_H
#define EW_BASE_SHA1_H

#include <stddef.h>
#include <stdint.h>

struct ew_sha1 {
    uint32_t state[5];
    uint64_t bytes;
    uint8_t block[64];
};

void ew_sha1_init(struct ew_sha1 *sha1);
void ew_sha1_add(struct ew_sha1 *sha1, const void *bytes, size_t size);
void ew_sha1_end(struct ew_sha1 *sha1, uint8_t ret_digest[20]);

#endif
