/* SPDX-License-Identifier: MIT */
/* A recording as if it had been made at another time of the machine's counter. */
#ifndef ETW_MOVE_H
#define ETW_MOVE_H

#include <stdint.h>

#include "model/record.h"

struct etw_moved {
    struct ew_record record;
    _Alignas(8) uint8_t bytes[1 << 17];
};

/*
 * A copy of the event with ticks added to its time, and to the times in its payload that matter for
 * accounting. Any event except a loss.
 */
const struct ew_record *etw_move(struct etw_moved *moved, const struct ew_record *record,
                                 uint64_t ticks);

#endif
