/* SPDX-License-Identifier: MIT */
/* placeholder */
#include "sink/perfetto.h"
void ew_pf_trace_event(struct etwatch_sink *sink, const struct etwatch_trace_event *event)
{
    (void)sink;
    (void)event;
}
void ew_pf_trace(struct etwatch_sink *sink, const struct etwatch_trace_summary *trace)
{
    (void)sink;
    (void)trace;
}
