/* SPDX-License-Identifier: MIT */
/* Builds without eBPF have no probes. */
#include <etwatch/span.h>

#include "base/error.h"

int etwatch_probes_new(const struct etwatch_probes_options *options,
                       struct etwatch_probes **ret_probes, struct etwatch_error_info *reterr)
{
    struct ew_error err = {0};
    (void)options;
    (void)ret_probes;
    int rc = ew_error_set(&err, ETWATCH_ENOTSUP, 0,
                          "probes in ONNX Runtime are part of Linux builds with eBPF");
    ew_error_out(reterr, &err, rc);
    return rc;
}

void etwatch_probes_free(struct etwatch_probes *probes)
{
    (void)probes;
}

int etwatch_probes_add_process(struct etwatch_probes *probes, uint32_t pid)
{
    (void)probes;
    (void)pid;
    return ETWATCH_EINVAL;
}

int etwatch_probes_read(struct etwatch_probes *probes, int64_t unix_minus_raw_ns,
                        void (*on_span)(void *ctx, const struct etwatch_span *span), void *ctx)
{
    (void)probes;
    (void)unix_minus_raw_ns;
    (void)on_span;
    (void)ctx;
    return ETWATCH_EINVAL;
}

int etwatch_probes_stats(struct etwatch_probes *probes, struct etwatch_probes_stats *ret_stats)
{
    (void)probes;
    (void)ret_stats;
    return ETWATCH_EINVAL;
}
