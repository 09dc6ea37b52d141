/* SPDX-License-Identifier: MIT */
/*
 * GUIDs of the kernel's event classes. Recordings identify a class by its group, live sessions by
 * its GUID. Mapping the GUID back to the group makes both look the same to the code that follows.
 */
#ifndef EW_SOURCE_ETW_CLASSES_H
#define EW_SOURCE_ETW_CLASSES_H

#include <stdint.h>

enum {
    EW_ETW_CLASS_EVENTTRACE = 0x00,
    EW_ETW_CLASS_DISK = 0x01,
    EW_ETW_CLASS_FAULT = 0x02,
    EW_ETW_CLASS_PROCESS = 0x03,
    EW_ETW_CLASS_FILE = 0x04,
    EW_ETW_CLASS_THREAD = 0x05,
    EW_ETW_CLASS_PERFINFO = 0x0F,
    EW_ETW_CLASS_IMAGE = 0x14,
    EW_ETW_CLASS_STACK = 0x18,
    EW_ETW_NO_CLASS = 0xFF,
};

/* The group of a class, or EW_ETW_NO_CLASS. */
uint8_t ew_etw_class_of(const uint8_t guid[16]);
/* The GUID of a group, or NULL. */
const uint8_t *ew_etw_class_guid(uint8_t group);

/* Class of the events in which a session reports its losses. */
extern const uint8_t ew_etw_lost_guid[16];

#endif
