/* SPDX-License-Identifier: MIT */
/* A build without zlib: packets are written uncompressed, which every reader accepts. */
#include "sink/deflate.h"

struct ew_deflate *ew_deflate_new(void)
{
    return NULL;
}

void ew_deflate_free(struct ew_deflate *compressor)
{
    (void)compressor;
}

bool ew_deflate_put(struct ew_deflate *compressor, const void *bytes, size_t len,
                    struct ew_buf *out)
{
    (void)compressor;
    (void)bytes;
    (void)len;
    (void)out;
    return false;
}
