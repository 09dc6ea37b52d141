/* SPDX-License-Identifier: MIT */
/*
 * Uses zlib, which libbpf needs anyway; on Windows it is linked into the program. Owns one stream
 * that is reset for each block, so a block needs no allocation; the lowest level, because recording
 * must be cheap and the repetition in a trace is found at any level.
 */
#include "sink/deflate.h"

#include <zlib.h>

#include "base/alloc.h"

enum { LEVEL = 1, WINDOW_BITS = 15, MEMORY_LEVEL = 8 };

struct ew_deflate {
    z_stream stream;
};

static voidpf zlib_alloc(voidpf ctx, uInt count, uInt size)
{
    (void)ctx;
    return ew_calloc(count, size);
}

static void zlib_free(voidpf ctx, voidpf block)
{
    (void)ctx;
    ew_free(block);
}

struct ew_deflate *ew_deflate_new(void)
{
    struct ew_deflate *compressor = ew_calloc(1, sizeof *compressor);
    if (compressor == NULL)
        return NULL;
    compressor->stream.zalloc = zlib_alloc;
    compressor->stream.zfree = zlib_free;
    if (deflateInit2(&compressor->stream, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        ew_free(compressor);
        return NULL;
    }
    return compressor;
}

void ew_deflate_free(struct ew_deflate *compressor)
{
    if (compressor == NULL)
        return;
    (void)deflateEnd(&compressor->stream);
    ew_free(compressor);
}

bool ew_deflate_put(struct ew_deflate *compressor, const void *bytes, size_t len,
                    struct ew_buf *out)
{
    z_stream *stream = &compressor->stream;
    if (deflateReset(stream) != Z_OK)
        return false;
    size_t room = deflateBound(stream, (uLong)len);
    if (room > out->max - out->len || !ew_buf_reserve(out, room))
        return false;
    stream->next_in = (Bytef *)bytes;
    stream->avail_in = (uInt)len;
    stream->next_out = (Bytef *)ew_buf_end(out);
    stream->avail_out = (uInt)room;
    if (deflate(stream, Z_FINISH) != Z_STREAM_END)
        return false;
    out->len += room - stream->avail_out;
    return true;
}
