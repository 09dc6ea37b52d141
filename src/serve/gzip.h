/* SPDX-License-Identifier: MIT */
/* Compression of what is pushed: gzip_zlib.c, or gzip_none.c in a build without zlib. */
#ifndef EW_SERVE_GZIP_H
#define EW_SERVE_GZIP_H

#include "base/buf.h"

/* Appends the bytes in the format of gzip. False, and nothing appended: out of memory, or this
 * build cannot compress. */
bool ew_gzip(const void *bytes, size_t len, struct ew_buf *out);
bool ew_gzip_available(void);

#endif
