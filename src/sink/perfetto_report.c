/* SPDX-License-Identifier: MIT */
/*
 * Writes the report on a recording into the trace made from it: the totals of each process and
 * thread, and of the machine, as instants at the end. A Windows recording contains more about a
 * process than the sum of its switches and samples (activity before its first switch, and before
 * the recording). So the totals are included, and a reader of the trace produces the same report.
 */
#include "sink/fields.h"
#include "sink/perfetto.h"

void ew_pf_put_system(struct ew_pf_sink *sink, const struct etwatch_trace_summary *trace)
{
    const struct etwatch_trace_system *system = trace->system;
    size_t inner;
    sink->end_ns = trace->stats->last_ns;
    ew_pf_begin(sink);
    ew_pf_sched_flush(sink);
    size_t packet = ew_pf_instant(sink, sink->end_ns, EW_PF_OWN_TRACK, EW_PF_E_system, &inner);
#define PUT(name) ew_pf_put_named(sink, #name, system->name)
    PUT(cpu_from_switches);
    PUT(busy_ns);
    PUT(idle_ns);
    PUT(dpc_ns);
    PUT(isr_ns);
    PUT(unknown_ns);
    PUT(switches);
    PUT(samples);
#undef PUT
    ew_proto_end(&sink->packets, inner);
    ew_pf_packet_end(sink, packet);
}

static void put_text_if(struct ew_pf_sink *sink, uint32_t iid, const char *text)
{
    if (text != NULL)
        ew_pf_put_text(sink, iid, text);
}

static const char *const estimated_names[] = EW_PF_SET_NAMES("estimated");

void ew_pf_total(struct etwatch_sink *base, const struct etwatch_sample *s,
                 const struct etwatch_metric_set *estimated)
{
    struct ew_pf_sink *sink = (struct ew_pf_sink *)base;
    uint64_t t_ns = sink->end_ns != 0 ? sink->end_ns : s->t_ns;
    size_t inner;
    ew_pf_begin(sink);
    size_t packet = ew_pf_instant(sink, t_ns, EW_PF_OWN_TRACK, EW_PF_E_total, &inner);
    ew_pf_put_u64(sink, EW_PF_IID(t_ns), s->t_ns);
    if (estimated->words[0] != 0)
        ew_pf_put_u64(sink, EW_PF_IID(estimated), estimated->words[0]);
    ew_pf_put_set_rest(sink, estimated_names, estimated);
    ew_pf_put_numbers(sink, s);
    put_text_if(sink, EW_PF_IID(name), s->type == ETWATCH_TYPE_THREAD ? NULL : s->name);
    put_text_if(sink, EW_PF_IID(thread_name), s->thread_name);
    put_text_if(sink, EW_PF_IID(user), s->user);
    put_text_if(sink, EW_PF_IID(cgroup), s->cgroup);
    put_text_if(sink, EW_PF_IID(cmdline), s->cmdline);
    ew_proto_end(&sink->packets, inner);
    ew_pf_packet_end(sink, packet);
}
