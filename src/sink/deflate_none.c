/* SPDX-License-Identifier: MIT */
/* A build without zlib: packets are written as they are, which every reader takes as well. */
#include "sink/deflate.h"

struct ew_deflate *ew_deflate_new(void)
{
    return NULL;
}

void ew_deflate_free(struct ew_deflate *squeeze)
{
    (void)squeeze;
}

bool ew_deflate_put(struct ew_deflate *squeeze, const void *bytes, size_t len, struct ew_buf *out)
{
    (void)squeeze;
    (void)bytes;
    (void)len;
    (void)out;
    return false;
}
