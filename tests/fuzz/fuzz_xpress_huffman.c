/* SPDX-License-Identifier: MIT */
/* LZ77 with Huffman codes: whatever is inflated does no harm, and what was compressed comes back.
 */
#define INFLATE ew_xpress_huffman_inflate
#define DEFLATE ew_xpress_huffman_deflate
#include "xpress_deflate.h"
#include "xpress_input.h"
