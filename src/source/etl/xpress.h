/* SPDX-License-Identifier: MIT */
/*
 * MS-XCA decompression: plain LZ77 (XPRESS), which merged recordings use for their buffers, and
 * LZ77+Huffman. The matching compressors are in tests/etl.
 */
#ifndef EW_SOURCE_ETL_XPRESS_H
#define EW_SOURCE_ETL_XPRESS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Decompresses until out_size bytes are written. Returns 0; ETWATCH_ETRUNC if the input ends first;
 * ETWATCH_EFORMAT for a match that reaches before the start or past out_size. *ret_written is the
 * number of valid bytes in every case. Never reads or writes outside of the two buffers.
 */
int ew_xpress_inflate(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size,
                      size_t *ret_written);
int ew_xpress_huffman_inflate(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size,
                              size_t *ret_written);

#endif
