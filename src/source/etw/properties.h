/* SPDX-License-Identifier: MIT */
/* EVENT_TRACE_PROPERTIES with room behind it for the names that Windows writes there. */
#ifndef EW_SOURCE_ETW_PROPERTIES_H
#define EW_SOURCE_ETW_PROPERTIES_H

#include <string.h>

#include "source/etw/api.h"

enum { EW_ETW_TEXT_UNITS = 1024 };

struct ew_etw_room {
    struct ew_etw_properties properties;
    uint16_t name[EW_ETW_TEXT_UNITS];
    uint16_t file[EW_ETW_TEXT_UNITS];
};

static inline void ew_etw_room_init(struct ew_etw_room *room)
{
    memset(room, 0, sizeof *room);
    room->properties.size = sizeof *room;
    room->properties.wnode_flags = EW_ETW_WNODE_TRACED_GUID;
    room->properties.name_at = offsetof(struct ew_etw_room, name);
    room->properties.file_name_at = offsetof(struct ew_etw_room, file);
}

#endif
