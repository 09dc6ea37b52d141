/* SPDX-License-Identifier: MIT */
/*
 * Names of the instances of Windows' GPU counters. Portable, so that it is tested on every system.
 *
 *   pid_1234_luid_0x00000000_0x0000D3A1_phys_0_eng_3_engtype_VideoDecode   GPU Engine
 *   pid_1234_luid_0x00000000_0x0000D3A1_phys_0                             GPU Process Memory
 *   luid_0x00000000_0x0000D3A1_phys_0_part_0                               GPU Local Adapter Memory
 */
#ifndef EW_SENSOR_WDDM_NAME_H
#define EW_SENSOR_WDDM_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EW_WDDM_NAME_MAX = 256 }; /* characters; a longer name is none of these */

enum ew_wddm_codec { EW_WDDM_NO_CODEC, EW_WDDM_ENCODER, EW_WDDM_DECODER, EW_WDDM_BOTH };

struct ew_wddm_name {
    uint64_t luid; /* of the adapter */
    uint32_t pid, phys, eng;
    bool has_pid, has_eng;
    enum ew_wddm_codec codec; /* of the engine */
};

/* name: len units of UTF-16 in the machine's byte order. False: it is none of these. */
bool ew_wddm_name_parse(const uint16_t *name, size_t len, struct ew_wddm_name *ret_name);

#endif
