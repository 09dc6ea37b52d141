/* SPDX-License-Identifier: MIT */
/*
 * Version 1: u32 unit, two names of 16 units (maker, model), u16 revision, u16 bytes of the name,
 * the name. Version 2: the two names, u16 revision, u16 channels; each channel is u32 unit, u16
 * bytes of its name, its name, without padding. The only unit is 0, picowatt-hours.
 */
#include "sensor/emi_metadata.h"

#include <string.h>

#include "base/bytes.h"
#include "base/utf16.h"

enum { NAMES_SIZE = 64, PICOWATT_HOURS = 0 };

static bool take_channel(struct ew_bytes *bytes, uint32_t unit, uint16_t name_size,
                         struct ew_emi_metadata *metadata)
{
    const uint8_t *name = ew_bytes_take(bytes, name_size);
    if (name == NULL || unit != PICOWATT_HOURS || metadata->channel_count == EW_EMI_CHANNELS_MAX)
        return false;
    (void)ew_utf16_to_utf8(name, ew_utf16_len(name, name_size),
                           metadata->channels[metadata->channel_count++], EW_EMI_NAME_SIZE);
    return true;
}

bool ew_emi_metadata_parse(uint16_t version, const uint8_t *data, size_t size,
                           struct ew_emi_metadata *metadata)
{
    struct ew_bytes bytes;
    uint32_t unit = 0;
    memset(metadata, 0, sizeof *metadata);
    ew_bytes_init(&bytes, data, size);
    if (version == 1)
        unit = ew_bytes_u32(&bytes);
    ew_bytes_skip(&bytes, NAMES_SIZE + 2); /* maker, model, revision */
    uint16_t count = ew_bytes_u16(&bytes); /* version 1: bytes of the only name */
    if (version == 1)
        return take_channel(&bytes, unit, count, metadata);
    if (version != 2 || !ew_bytes_ok(&bytes) || count > EW_EMI_CHANNELS_MAX)
        return false;
    for (uint16_t i = 0; i < count; i++) {
        unit = ew_bytes_u32(&bytes);
        uint16_t name_size = ew_bytes_u16(&bytes);
        if (!take_channel(&bytes, unit, name_size, metadata))
            return false;
    }
    return count > 0;
}
