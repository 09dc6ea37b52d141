/* SPDX-License-Identifier: MIT */
/*
 * The live stream: one text for all clients. Every closed second appends an event to a ring; a
 * client is a position in it. A client that is too slow loses whole events, counted, and never
 * delays another.
 */
#ifndef EW_SERVE_FEED_H
#define EW_SERVE_FEED_H

#include "serve/state.h"

struct ew_feed {
    char *ring;
    size_t size;
    uint64_t head;      /* bytes ever written */
    uint64_t events[8]; /* where the latest events begin, the newest at (count - 1) % 8 */
    uint64_t count;
    uint64_t lost; /* events that slow clients missed */
    uint32_t clients;
};

/* size 0: 4 MiB. 0 or ETWATCH_ENOMEM. */
int ew_feed_init(struct ew_feed *stream, size_t size);
void ew_feed_done(struct ew_feed *stream);
/* Appends the event of a closed second; nothing if there is no client. */
void ew_feed_second(struct ew_feed *stream, const struct ew_state *state, uint64_t t_ns);
/* Where a new client begins: with the newest event. */
uint64_t ew_feed_begin(const struct ew_feed *stream);
/* Copies up to size bytes from *position on and moves it. 0: nothing new. */
size_t ew_feed_read(struct ew_feed *stream, uint64_t *position, char *to, size_t size);

#endif
