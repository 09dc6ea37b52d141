/* SPDX-License-Identifier: MIT */
/* Builds without eBPF have no probes. */
#include "probe/native.h"

int ew_probe_native_open(uint32_t flags, struct ew_probe_native **ret_native,
                         struct ew_error *reterr)
{
    (void)flags;
    (void)ret_native;
    return ew_error_set(reterr, ETWATCH_ENOTSUP, 0,
                        "probes in ONNX Runtime are part of Linux builds with eBPF");
}

void ew_probe_native_close(struct ew_probe_native *native)
{
    (void)native;
}

void ew_probe_native_add_process(struct ew_probe_native *native, uint32_t pid)
{
    (void)native;
    (void)pid;
}

int ew_probe_native_read(struct ew_probe_native *native, int64_t unix_minus_raw_ns,
                         void (*on_span)(void *ctx, const struct etwatch_span *span), void *ctx)
{
    (void)native;
    (void)unix_minus_raw_ns;
    (void)on_span;
    (void)ctx;
    return ETWATCH_EINVAL;
}

void ew_probe_native_stats(struct ew_probe_native *native, struct etwatch_probes_stats *ret_stats)
{
    (void)native;
    (void)ret_stats;
}
