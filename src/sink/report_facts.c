/* SPDX-License-Identifier: MIT */
/*
 * The head of a report: machine, time, number of events, losses and damage, and the source of CPU
 * times. Problems are highlighted.
 */
#include "sink/report.h"

#include <stdio.h>
#include <string.h>

enum { LABEL_WIDTH = 10, TEXT_SHOWN = 300 };

struct facts {
    struct ew_buf *out;
    bool color;
    ew_utc_offset utc_offset;
};

static void label(const struct facts *facts, const char *name)
{
    if (facts->color)
        ew_buf_text(facts->out, "\033[2m");
    ew_buf_text(facts->out, name);
    ew_buf_repeat(facts->out, ' ', LABEL_WIDTH - strlen(name));
    if (facts->color)
        ew_buf_text(facts->out, "\033[0m");
}

static void warn(const struct facts *facts, bool begin)
{
    if (facts->color)
        ew_buf_text(facts->out, begin ? "\033[33m" : "\033[0m");
}

static void put_name(struct ew_buf *out, const char *text)
{
    const char *known = text != NULL && text[0] != '\0' ? text : "-";
    (void)ew_buf_screen(out, known, strlen(known), TEXT_SHOWN);
}

static void put_files(const struct facts *facts, const struct etwatch_trace_summary *trace)
{
    struct ew_buf *out = facts->out;
    for (uint32_t i = 0; i < trace->file_count; i++) {
        const struct etwatch_trace_file *file = &trace->files[i];
        label(facts, i == 0 ? "file" : "");
        put_name(out, file->path);
        ew_buf_text(out, ", ");
        ew_units_bytes(out, file->file_bytes);
        if (file->compressed != 0)
            ew_buf_text(out, " compressed");
        if (file->format != ETWATCH_TRACE_PERFETTO) {
            ew_buf_text(out, ", session ");
            put_name(out, file->session_name);
        }
        bool ours = file->format != ETWATCH_TRACE_PERFETTO || file->source != 0;
        if (file->end_ns == 0 && ours) {
            warn(facts, true);
            ew_buf_text(out, ", never closed");
            warn(facts, false);
        }
        ew_buf_char(out, '\n');
    }
}

static void put_frequency(struct ew_buf *out, uint64_t hz)
{
    if (hz == 0)
        return;
    ew_buf_text(out, " at ");
    (void)ew_buf_fixed(out, (double)hz / 1e6, hz % 1000000 == 0 ? 0 : 2);
    ew_buf_text(out, " MHz");
}

static void put_machine(const struct facts *facts, const struct etwatch_trace_file *file)
{
    struct ew_buf *out = facts->out;
    label(facts, "system");
    if (file->format == ETWATCH_TRACE_PERFETTO) {
        put_name(out, file->os);
    } else {
        ew_buf_text(out, "Windows ");
        ew_buf_u64(out, file->os_major);
        ew_buf_char(out, '.');
        ew_buf_u64(out, file->os_minor);
        ew_buf_char(out, '.');
        ew_buf_u64(out, file->os_build);
    }
    ew_buf_text(out, ", ");
    ew_buf_u64(out, file->cpu_count);
    ew_buf_text(out, file->cpu_count == 1 ? " CPU" : " CPUs");
    put_frequency(out, (uint64_t)file->cpu_mhz * 1000000);
    ew_buf_text(out, file->pointer_size == 4 ? ", 32-bit\n" : ", 64-bit\n");
}

static void put_time(const struct facts *facts, const struct etwatch_trace_summary *trace,
                     const struct etwatch_trace_file *file)
{
    static const char *const clocks[] = {"unknown", "performance counter", "system time",
                                         "CPU cycles", "time since boot"};
    struct ew_buf *out = facts->out;
    const struct etwatch_trace_stats *stats = trace->stats;
    label(facts, "time");
    ew_units_time(out, stats->events > 0 ? stats->first_ns : file->start_ns, facts->utc_offset);
    ew_buf_text(out, ", over ");
    ew_units_ns(out, stats->last_ns - stats->first_ns);
    if (trace->from_ns != 0 || trace->until_ns != 0)
        ew_buf_text(out, " (a part of the recording)");
    ew_buf_text(out, ", clock: ");
    ew_buf_text(out, clocks[file->clock < 5 ? file->clock : 0]);
    if (file->clock == 1)
        put_frequency(out, file->clock_frequency);
    if (stats->clock_set_back_ns > 0) {
        warn(facts, true);
        ew_buf_text(out, ", set back by ");
        ew_units_ns(out, stats->clock_set_back_ns);
        ew_buf_text(out, " or more while this was recorded");
        warn(facts, false);
    }
    ew_buf_char(out, '\n');
}

static void put_count(struct ew_buf *out, uint64_t count, const char *what)
{
    ew_buf_u64(out, count);
    ew_buf_char(out, ' ');
    ew_buf_text(out, what);
    if (count != 1)
        ew_buf_char(out, 's');
}

static void put_events(const struct facts *facts, const struct etwatch_trace_stats *stats)
{
    struct ew_buf *out = facts->out;
    label(facts, "events");
    ew_buf_u64(out, stats->events);
    ew_buf_text(out, ", ");
    if (stats->lost == 0 && stats->lost_buffers == 0) {
        ew_buf_text(out, "none lost");
    } else {
        warn(facts, true);
        ew_buf_text(out, "lost: ");
        put_count(out, stats->lost, "event");
        ew_buf_text(out, ", ");
        put_count(out, stats->lost_buffers, "buffer");
        warn(facts, false);
    }
    if (stats->undecoded > 0) {
        ew_buf_text(out, ", ");
        ew_buf_u64(out, stats->undecoded);
        ew_buf_text(out, " of unknown layout");
    }
    if (stats->late > 0) {
        ew_buf_text(out, ", ");
        ew_buf_u64(out, stats->late);
        ew_buf_text(out, " out of order");
    }
    ew_buf_char(out, '\n');
}

static void put_damage(const struct facts *facts, const struct etwatch_trace_summary *trace)
{
    struct ew_buf *out = facts->out;
    const struct etwatch_trace_stats *stats = trace->stats;
    if (stats->bad_buffers == 0 && stats->bad_events == 0)
        return;
    label(facts, "damage");
    warn(facts, true);
    put_count(out, stats->bad_buffers, "buffer");
    ew_buf_text(out, ", ");
    put_count(out, stats->bad_events, "unreadable event");
    ew_buf_text(out, ", ");
    ew_units_bytes(out, stats->bad_bytes);
    ew_buf_text(out, " skipped; first at byte ");
    ew_buf_u64(out, stats->first_bad_offset);
    if (stats->first_bad_file < trace->file_count && trace->file_count > 1) {
        ew_buf_text(out, " of ");
        put_name(out, trace->files[stats->first_bad_file].path);
    }
    ew_buf_text(out, ": ");
    (void)ew_buf_screen(out, stats->first_bad, strlen(stats->first_bad), TEXT_SHOWN);
    warn(facts, false);
    ew_buf_char(out, '\n');
}

static void put_part(struct ew_buf *out, const char *name, uint64_t ns, uint64_t all_ns)
{
    if (ns == 0)
        return;
    ew_buf_text(out, ", ");
    ew_buf_text(out, name);
    ew_buf_char(out, ' ');
    ew_units_ns(out, ns);
    if (all_ns > 0) {
        ew_buf_text(out, " (");
        (void)ew_buf_fixed(out, 100.0 * (double)ns / (double)all_ns, 1);
        ew_buf_text(out, " %)");
    }
}

static void put_cpu(const struct facts *facts, const struct etwatch_trace_system *system)
{
    struct ew_buf *out = facts->out;
    if (system == NULL)
        return;
    label(facts, "CPU");
    if (system->cpu_from_switches == 0 && system->samples == 0) {
        ew_buf_text(out, "unknown: neither context switches nor profile samples were recorded\n");
        return;
    }
    if (system->cpu_from_switches != 0) {
        ew_buf_text(out, "from ");
        put_count(out, system->switches, "switch");
        if (system->switches != 1) {
            out->len--;
            ew_buf_text(out, "es");
        }
    } else {
        ew_buf_text(out, "estimated from ");
        put_count(out, system->samples, "profile sample");
    }
    uint64_t all_ns = system->busy_ns + system->idle_ns + system->unknown_ns;
    put_part(out, "busy", system->busy_ns, all_ns);
    put_part(out, "idle", system->idle_ns, all_ns);
    put_part(out, "unknown", system->unknown_ns, all_ns);
    put_part(out, "DPC", system->dpc_ns, all_ns);
    put_part(out, "ISR", system->isr_ns, all_ns);
    ew_buf_char(out, '\n');
}

void ew_report_facts(struct ew_buf *out, const struct etwatch_trace_summary *trace, bool color,
                     ew_utc_offset utc_offset)
{
    const struct facts facts = {out, color, utc_offset};
    const struct etwatch_trace_file none = {0};
    const struct etwatch_trace_file *first = trace->file_count > 0 ? &trace->files[0] : &none;
    put_files(&facts, trace);
    put_machine(&facts, first);
    put_time(&facts, trace, first);
    put_events(&facts, trace->stats);
    put_damage(&facts, trace);
    put_cpu(&facts, trace->system);
    ew_buf_end_line(out);
}
