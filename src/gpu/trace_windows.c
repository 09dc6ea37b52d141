/* SPDX-License-Identifier: MIT */
/* No programs are traced on Windows: CUPTI is not injected there yet. */
#include "base/error.h"
#include "gpu/trace.h"

int etwatch_gpu_trace_new(const struct etwatch_gpu_trace_options *options,
                          struct etwatch_gpu_trace **ret_trace, struct etwatch_error_info *reterr)
{
    struct ew_error err = {0};
    (void)options;
    (void)ret_trace;
    int rc = ew_error_set(&err, ETWATCH_ENOTSUP, 0, "GPU traces need Linux");
    ew_error_out(reterr, &err, rc);
    return rc;
}

void etwatch_gpu_trace_free(struct etwatch_gpu_trace *trace)
{
    (void)trace;
}

const char *etwatch_gpu_trace_address(const struct etwatch_gpu_trace *trace)
{
    (void)trace;
    return NULL;
}

struct ew_gpu_list *ew_gpu_trace_list(const struct etwatch_gpu_trace *trace)
{
    (void)trace;
    return NULL;
}

int ew_gpu_trace_read(struct etwatch_gpu_trace *trace, const struct ew_gpu_reading *reading)
{
    (void)trace;
    (void)reading;
    return ETWATCH_ENOTSUP;
}

int etwatch_gpu_trace_read(struct etwatch_gpu_trace *trace, int64_t unix_minus_raw_ns, int last)
{
    (void)trace;
    (void)unix_minus_raw_ns;
    (void)last;
    return ETWATCH_ENOTSUP;
}
