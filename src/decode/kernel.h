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

/*
 * Provider and event as PerfView calls them: "Windows Kernel", "Thread/CSwitch". The names are
 * constants. False: not one of these classes, nothing is written. An event of a known class whose
 * opcode is not known is called "Thread/Opcode(123)".
 */
bool ew_kernel_names(const struct ew_record *record, const char **ret_provider,
                     const char **ret_event);

/*
 * Appends every field by its documented name. 1: all of them; 0: the layout is not known, nothing
 * was appended; -1: known, but the payload is too short: the fields before that are there.
 * Bytes behind the last known field (a later version) are no error.
 */
int ew_kernel_fields(const struct ew_record *record, struct ew_fields *fields);

#endif
