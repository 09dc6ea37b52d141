/* SPDX-License-Identifier: MIT */
/* MS-XCA compression, plain LZ77 and LZ77+Huffman: the inverse of source/etl/xpress.h. */
#ifndef XPRESS_DEFLATE_H
#define XPRESS_DEFLATE_H

#include <stddef.h>
#include <stdint.h>

/* The maximum compressed size of size bytes. */
size_t ew_xpress_bound(size_t size);
/*
 * Compresses everything; out must have ew_xpress_bound(in_size) bytes. Returns the size or
 * ETWATCH_ENOMEM.
 */
int64_t ew_xpress_deflate(const uint8_t *in, size_t in_size, uint8_t *out);
int64_t ew_xpress_huffman_deflate(const uint8_t *in, size_t in_size, uint8_t *out);

#endif
