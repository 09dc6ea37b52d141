/* SPDX-License-Identifier: MIT */
/* Plain LZ77: whatever is inflated does no harm, and what was compressed comes back. */
#define INFLATE ew_xpress_inflate
#define DEFLATE ew_xpress_deflate
#include "xpress_deflate.h"
#include "xpress_input.h"
