/* SPDX-License-Identifier: MIT */
/*
 * What a Windows energy meter says about itself (EMI_METADATA_V1, EMI_METADATA_V2 of emi.h): bytes
 * of a driver, so they are read with care. Portable.
 */
#ifndef EW_SENSOR_EMI_METADATA_H
#define EW_SENSOR_EMI_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    EW_EMI_CHANNELS_MAX = 64,
    EW_EMI_NAME_SIZE = 64,      /* UTF-8 */
    EW_EMI_METADATA_MAX = 65536 /* bytes */
};

struct ew_emi_metadata {
    uint32_t channel_count;
    char channels[EW_EMI_CHANNELS_MAX][EW_EMI_NAME_SIZE];
};

/* version: 1 or 2. False: not valid, or energy in a unit that is not known. */
bool ew_emi_metadata_parse(uint16_t version, const uint8_t *bytes, size_t size,
                           struct ew_emi_metadata *ret_metadata);

#endif
