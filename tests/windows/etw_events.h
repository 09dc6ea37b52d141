/* SPDX-License-Identifier: MIT */
/* Events as ETW delivers them (EVENT_RECORD), made from the records of a recording or by hand. */
#ifndef ETW_EVENTS_H
#define ETW_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/record.h"

enum { ETW_ITEMS_MAX = 16 };

struct etw_event {
    _Alignas(8) uint8_t bytes[112]; /* the EVENT_RECORD */
    _Alignas(8) uint8_t items[16 * ETW_ITEMS_MAX];
    _Alignas(8) uint8_t data[64];
};

/* Its pointers refer to the record's bytes. False: not an event. */
bool etw_event_from(struct etw_event *event, const struct ew_record *record);
/* The marker of a loss. */
void etw_event_lost(struct etw_event *event, uint64_t t_raw, uint16_t cpu);
/* A switch in which only these values change. */
void etw_event_switch(struct etw_event *event);
void etw_event_set_switch(struct etw_event *event, uint64_t t_raw, uint16_t cpu, uint32_t round);
/* The same switch in the format of the session's buffers. */
enum { ETW_SWITCH_SIZE = 40 };
void etw_switch_bytes(uint8_t bytes[ETW_SWITCH_SIZE], uint64_t t_raw, uint16_t cpu, uint32_t round);
void etw_event_context(struct etw_event *event, void *context);

#endif
