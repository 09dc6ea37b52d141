/* SPDX-License-Identifier: MIT */
/* Plain LZ77: decompressing any data is safe, and compressed data is decompressed unchanged. */
#define INFLATE ew_xpress_inflate
#define DEFLATE ew_xpress_deflate
#include "xpress_deflate.h"
#include "xpress_input.h"
