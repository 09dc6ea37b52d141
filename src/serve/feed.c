/* SPDX-License-Identifier: MIT */
#include "serve/feed.h"

#include <string.h>

#include "base/alloc.h"
#include "serve/api.h"

enum { EVENTS = 8, DEFAULT_BYTES = 4 << 20 };

int ew_feed_init(struct ew_feed *stream, size_t size)
{
    *stream = (struct ew_feed){.size = size != 0 ? size : DEFAULT_BYTES};
    stream->ring = ew_calloc(stream->size, 1);
    return stream->ring != NULL ? 0 : ETWATCH_ENOMEM;
}

void ew_feed_done(struct ew_feed *stream)
{
    ew_free(stream->ring);
    *stream = (struct ew_feed){0};
}

static void append(struct ew_feed *stream, const char *text, size_t len)
{
    while (len > 0) {
        size_t offset = (size_t)(stream->head % stream->size);
        size_t part = stream->size - offset < len ? stream->size - offset : len;
        memcpy(stream->ring + offset, text, part);
        stream->head += part;
        text += part;
        len -= part;
    }
}

void ew_feed_second(struct ew_feed *stream, const struct ew_state *state, uint64_t t_ns)
{
    static const char begin[] = "event: second\ndata: ", end[] = "\n\n";
    struct ew_buf text;
    if (stream->clients == 0)
        return;
    ew_buf_init(&text, stream->size / 2, NULL, NULL);
    ew_buf_text(&text, begin);
    ew_api_second(state, t_ns, &text);
    ew_buf_text(&text, end);
    if (text.error == 0) {
        stream->events[stream->count++ % EVENTS] = stream->head;
        append(stream, text.data, text.len);
    } else {
        stream->lost++;
    }
    ew_buf_done(&text);
}

uint64_t ew_feed_begin(const struct ew_feed *stream)
{
    return stream->head;
}

/* The oldest event that is still there as a whole. */
static uint64_t oldest(const struct ew_feed *stream)
{
    uint64_t found = stream->head;
    for (uint64_t i = 0; i < EVENTS && i < stream->count; i++) {
        uint64_t at = stream->events[(stream->count - 1 - i) % EVENTS];
        if (stream->head - at > stream->size)
            break;
        found = at;
    }
    return found;
}

size_t ew_feed_read(struct ew_feed *stream, uint64_t *position, char *to, size_t size)
{
    if (stream->head - *position > stream->size) {
        /* The rest of the event that the client was reading is gone: it ends the broken one. */
        static const char cut[] = "\n\nevent: lost\ndata: {}\n\n";
        if (size < sizeof cut - 1)
            return 0;
        stream->lost++;
        *position = oldest(stream);
        memcpy(to, cut, sizeof cut - 1);
        return sizeof cut - 1;
    }
    size_t len = (size_t)(stream->head - *position);
    size_t offset = (size_t)(*position % stream->size);
    if (len > size)
        len = size;
    if (len > stream->size - offset)
        len = stream->size - offset;
    memcpy(to, stream->ring + offset, len);
    *position += len;
    return len;
}
