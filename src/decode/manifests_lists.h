/* SPDX-License-Identifier: MIT */
/* The tables, one per file; each list ends with an entry without a GUID. */
#ifndef EW_DECODE_MANIFESTS_LISTS_H
#define EW_DECODE_MANIFESTS_LISTS_H

#include "decode/manifests.h"

extern const struct ew_table_event ew_clr_runtime_events[]; /* of ew_table_clr */

extern const struct ew_table_provider ew_table_clr[];      /* .NET */
extern const struct ew_table_provider ew_table_kernel[];   /* Microsoft-Windows-Kernel-* */
extern const struct ew_table_provider ew_table_graphics[]; /* DxgKrnl, DXGI, … */
extern const struct ew_table_provider ew_table_names[];    /* others */

#endif
