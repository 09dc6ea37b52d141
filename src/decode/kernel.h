/* SPDX-License-Identifier: MIT */
/*
 * Names and fields of the Windows kernel's own classes, from tables. The classes are the same
 * whether they come with the kernel's short headers (class by group) or with the GUID of the class;
 * the events that KernelTraceControl adds to a merged recording are here too.
 */
#ifndef EW_DECODE_KERNEL_H
#define EW_DECODE_KERNEL_H

#include <stdbool.h>

#include "model/field.h"
#include "model/record.h"

/* What ew_kernel_names may need for a name that is in no table: "SystemConfig/Opcode(255)". */
enum { EW_KERNEL_NAME_SIZE = 40 };

/*
 * Provider and event as PerfView calls them: "Windows Kernel", "Thread/CSwitch". Constants, but for
 * an event of a known class whose opcode is not known ("Thread/Opcode(123)"), which is written to
 * scratch. False: not one of these classes, nothing is written.
 */
bool ew_kernel_names(const struct ew_record *record, char scratch[EW_KERNEL_NAME_SIZE],
                     const char **ret_provider, const char **ret_event);

/*
 * Appends every field by its documented name. 1: all of them; 0: the layout is not known, nothing
 * was appended; -1: known, but the payload is too short: the fields before that are there.
 * Bytes behind the last known field (a later version) are no error.
 */
int ew_kernel_fields(const struct ew_record *record, struct ew_fields *fields);

/* The GUID of its class, which short headers leave out; 16 bytes as on disk, or NULL. */
const uint8_t *ew_kernel_guid(const struct ew_record *record);

#endif
