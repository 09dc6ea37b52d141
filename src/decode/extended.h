/* SPDX-License-Identifier: MIT */
/* The extended items of a manifest event. */
#ifndef EW_DECODE_EXTENDED_H
#define EW_DECODE_EXTENDED_H

#include <stdbool.h>

#include "base/bytes.h"
#include "model/record.h"

enum ew_extended {
    EW_EXT_TRACELOGGING = 0xB, /* the schema of the event */
    EW_EXT_TRAITS = 0xC,       /* the name of its provider */
};

/* The data of the first item of that type; false if there is none. */
bool ew_extended_find(const struct ew_record *record, enum ew_extended type,
                      struct ew_bytes *ret_data);

#endif
