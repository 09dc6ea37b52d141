/* SPDX-License-Identifier: MIT */
/* The native event source of Linux is eBPF. */
#include "source/source.h"

const struct ew_source_ops *ew_source_native(void)
{
    return &ew_source_ebpf;
}
