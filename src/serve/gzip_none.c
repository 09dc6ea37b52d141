/* SPDX-License-Identifier: MIT */
#include "serve/gzip.h"

bool ew_gzip(const void *bytes, size_t len, struct ew_buf *out)
{
    (void)bytes;
    (void)len;
    (void)out;
    return false;
}

bool ew_gzip_available(void)
{
    return false;
}
