/* SPDX-License-Identifier: MIT */
/* Windows has its events from ETW. */
#include "source/source.h"

const struct ew_source_ops *ew_source_native(void)
{
    return &ew_source_etw;
}
