/* SPDX-License-Identifier: MIT */
/*
 * Names and fields of the Windows kernel's own classes, from tables. The classes are the same
 * whether they come with the kernel's short headers (class by group) or with the GUID of the class.
 * Includes the events that KernelTraceControl adds to a merged recording.
 */
#ifndef EW_DECODE_KERNEL_H
#define EW_DECODE_KERNEL_H

#include <stdbool.h>

#include "model/field.h"
#include "model/record.h"

/* Buffer size for names that are not in the tables: "SystemConfig/Opcode(255)". */
enum { EW_KERNEL_NAME_SIZE = 40 };

struct ew_kernel_name {
    const char *provider, *event;
    bool named, laid_out; /* whether the tables have its name, and the layout of its fields */
};

/*
 * Provider and event by their PerfView names: "Windows Kernel", "Thread/CSwitch". Constants, except
 * for an unknown opcode of a known class ("Thread/Opcode(123)"), which is written to scratch.
 * False: not one of these classes, nothing is written.
 */
bool ew_kernel_names(const struct ew_record *record, char scratch[EW_KERNEL_NAME_SIZE],
                     struct ew_kernel_name *ret);

/*
 * Appends every field by its documented name. 1: all fields; 0: the layout is unknown, nothing was
 * appended; -1: the payload is too short: only the fields before the missing one were appended.
 * Bytes after the last known field (a later version) are not an error.
 */
int ew_kernel_fields(const struct ew_record *record, struct ew_fields *fields);

/* The GUID of the record's class, which short headers omit; 16 bytes as on disk, or NULL. */
const uint8_t *ew_kernel_guid(const struct ew_record *record);
/* Whether the record is of the class with command lines, decoded or not. */
bool ew_kernel_has_cmdline(const struct ew_record *record);

#endif
