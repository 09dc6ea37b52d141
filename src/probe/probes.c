/* SPDX-License-Identifier: MIT */
/*
 * The public functions of etwatch_probes. Where ETW is the system's source of events, inferences
 * come from the provider of ONNX Runtime, else from probes in its library.
 */
#include <etwatch/span.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/sized.h"
#include "probe/native.h"
#include "source/source.h"

struct etwatch_probes {
    struct ew_probe_etw *etw; /* one of both */
    struct ew_probe_native *native;
};

/* The provider does not know which programs are Python. */
static int open_etw(struct etwatch_probes *probes, uint32_t flags,
                    struct etwatch_error_info *reterr)
{
    struct ew_error err = {0};
    if ((flags & ETWATCH_PROBES_ONLY_PYTHON) == 0)
        return ew_probe_etw_open(NULL, &probes->etw, reterr);
    int rc = ew_error_set(&err, ETWATCH_ENOTSUP, 0,
                          "events of ONNX Runtime are not selected by the language of a program");
    ew_error_out(reterr, &err, rc);
    return rc;
}

static int open_native(struct etwatch_probes *probes, uint32_t flags,
                       struct etwatch_error_info *reterr)
{
    struct ew_error err = {0};
    int rc = ew_probe_native_open(flags, &probes->native, &err);
    if (rc < 0)
        ew_error_out(reterr, &err, rc);
    return rc;
}

int etwatch_probes_new(const struct etwatch_probes_options *given,
                       struct etwatch_probes **ret_probes, struct etwatch_error_info *reterr)
{
    struct etwatch_probes_options options = {.size = sizeof options};
    if (ret_probes == NULL)
        return ETWATCH_EINVAL;
    int rc = given == NULL ? 0 : ew_sized_in(&options, sizeof options, given, "options", NULL);
    if (rc < 0)
        return rc;
    if (options.flags >= ETWATCH_PROBES_NO_PYTHON + ETWATCH_PROBES_ONLY_PYTHON)
        return ETWATCH_EINVAL;
    struct etwatch_probes *probes = ew_calloc(1, sizeof *probes);
    if (probes == NULL)
        return ETWATCH_ENOMEM;
    rc = ew_source_native()->id == ETWATCH_SOURCE_ETW ? open_etw(probes, options.flags, reterr)
                                                      : open_native(probes, options.flags, reterr);
    if (rc < 0) {
        ew_free(probes);
        return rc;
    }
    *ret_probes = probes;
    return 0;
}

void etwatch_probes_free(struct etwatch_probes *probes)
{
    if (probes == NULL)
        return;
    ew_probe_etw_close(probes->etw);
    ew_probe_native_close(probes->native);
    ew_free(probes);
}

int etwatch_probes_add_process(struct etwatch_probes *probes, uint32_t pid)
{
    if (probes == NULL)
        return ETWATCH_EINVAL;
    if (probes->native != NULL)
        ew_probe_native_add_process(probes->native, pid);
    return 0;
}

int etwatch_probes_read(struct etwatch_probes *probes, int64_t unix_minus_raw_ns,
                        void (*on_span)(void *ctx, const struct etwatch_span *span), void *ctx)
{
    if (probes == NULL || on_span == NULL)
        return ETWATCH_EINVAL;
    return probes->etw != NULL
               ? ew_probe_etw_read(probes->etw, on_span, ctx)
               : ew_probe_native_read(probes->native, unix_minus_raw_ns, on_span, ctx);
}

int etwatch_probes_stats(struct etwatch_probes *probes, struct etwatch_probes_stats *ret_stats)
{
    struct etwatch_probes_stats stats = {.size = sizeof stats};
    if (probes == NULL || ret_stats == NULL)
        return ETWATCH_EINVAL;
    if (probes->etw != NULL)
        ew_probe_etw_stats(probes->etw, &stats);
    else
        ew_probe_native_stats(probes->native, &stats);
    return ew_sized_out(ret_stats, &stats, sizeof stats);
}
