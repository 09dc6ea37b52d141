/* SPDX-License-Identifier: MIT */
/* Linux has its events from eBPF. */
#include "source/source.h"

const struct ew_source_ops *ew_source_native(void)
{
    return &ew_source_ebpf;
}
