/* SPDX-License-Identifier: MIT */
/* Compression of packets, if the build has zlib; otherwise packets are written uncompressed. */
#ifndef EW_SINK_DEFLATE_H
#define EW_SINK_DEFLATE_H

#include <stddef.h>

#include "base/buf.h"

struct ew_deflate;

/* NULL: not available in this build, or out of memory. */
struct ew_deflate *ew_deflate_new(void);
void ew_deflate_free(struct ew_deflate *compressor);
/* Appends the bytes as one zlib stream. False: nothing was appended. */
bool ew_deflate_put(struct ew_deflate *compressor, const void *bytes, size_t len,
                    struct ew_buf *out);

#endif
