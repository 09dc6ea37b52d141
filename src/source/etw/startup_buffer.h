/* SPDX-License-Identifier: MIT */
/*
 * The first records of a live session, kept until it has told who is there. A recording can be read
 * twice to know that from the beginning; of a session the beginning is kept and gone through twice.
 */
#ifndef EW_SOURCE_ETW_STARTUP_BUFFER_H
#define EW_SOURCE_ETW_STARTUP_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "model/record.h"

struct ew_startup_buffer {
    struct ew_record *records;
    uint32_t count, room;
    uint8_t *bytes; /* of the records; their pointers are offsets into it until ew_opening_end */
    uint64_t size, bytes_room;
};

/* Takes a copy. False: no room for more, or no memory; it is not kept. */
bool ew_startup_buffer_add(struct ew_startup_buffer *buffer, const struct ew_record *record);
/* No more will be kept: from now on records can be read. */
void ew_startup_buffer_end(struct ew_startup_buffer *buffer);
void ew_startup_buffer_done(struct ew_startup_buffer *buffer);

#endif
