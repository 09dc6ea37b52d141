/* SPDX-License-Identifier: MIT */
/* An export is compressed once, however often it is sent; a low level, because its texts repeat so
 * much that a higher one saves little. */
#include "serve/gzip.h"

#include <zlib.h>

enum { LEVEL = 3, WINDOW_BITS = 15 + 16 /* gzip */, MEMORY_LEVEL = 8 };

bool ew_gzip(const void *bytes, size_t len, struct ew_buf *out)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return false;
    size_t room = deflateBound(&stream, (uLong)len);
    bool good = room <= out->max - out->len && ew_buf_reserve(out, room);
    if (good) {
        stream.next_in = (Bytef *)bytes;
        stream.avail_in = (uInt)len;
        stream.next_out = (Bytef *)ew_buf_end(out);
        stream.avail_out = (uInt)room;
        good = deflate(&stream, Z_FINISH) == Z_STREAM_END;
        if (good)
            out->len += room - stream.avail_out;
    }
    (void)deflateEnd(&stream);
    return good;
}

bool ew_gzip_available(void)
{
    return true;
}
