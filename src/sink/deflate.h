/* SPDX-License-Identifier: MIT */
/* Compression of packets, where the build has it (zlib); elsewhere packets stay as they are. */
#ifndef EW_SINK_DEFLATE_H
#define EW_SINK_DEFLATE_H

#include <stddef.h>

#include "base/buf.h"

struct ew_deflate;

/* NULL: this build cannot, or there is no memory. */
struct ew_deflate *ew_deflate_new(void);
void ew_deflate_free(struct ew_deflate *squeeze);
/* Appends the bytes as one stream in the format of zlib. False: nothing was appended. */
bool ew_deflate_put(struct ew_deflate *squeeze, const void *bytes, size_t len, struct ew_buf *out);

#endif
