/* SPDX-License-Identifier: MIT */
/*
 * Walks the extended items after an event header: u16 size of the whole item (a multiple of 8), u16
 * type, u16 linkage (bit 0: another item follows), u16 size of the data, data. An item always takes
 * at least its own eight bytes, so the walk terminates for any sizes.
 */
#include "decode/internal.h"

enum { EVENT_HEADER_BYTES = 0x50, ITEM_BYTES = 8 };

bool ew_extended_find(const struct ew_record *record, enum ew_extended type,
                      struct ew_bytes *ret_data)
{
    struct ew_bytes items;
    if (record->kind != EW_RECORD_MANIFEST || record->extended_size < ITEM_BYTES)
        return false;
    ew_bytes_init(&items, record->header + EVENT_HEADER_BYTES, record->extended_size);
    for (;;) {
        size_t start = items.pos;
        size_t size = ew_bytes_u16(&items);
        unsigned found = ew_bytes_u16(&items);
        unsigned linkage = ew_bytes_u16(&items);
        size_t data_size = ew_bytes_u16(&items);
        ew_bytes_sub(&items, data_size, ret_data);
        if (!ew_bytes_ok(&items))
            return false;
        if (found == (unsigned)type)
            return true;
        if (!(linkage & 1) || size < ITEM_BYTES)
            return false;
        ew_bytes_seek(&items, start + size);
    }
}
