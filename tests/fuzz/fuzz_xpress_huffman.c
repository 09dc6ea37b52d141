/* SPDX-License-Identifier: MIT */
/*
 * LZ77 with Huffman codes: decompressing any data is safe, and compressed data is decompressed
 * unchanged.
 */
#define INFLATE ew_xpress_huffman_inflate
#define DEFLATE ew_xpress_huffman_deflate
#include "xpress_deflate.h"
#include "xpress_input.h"
