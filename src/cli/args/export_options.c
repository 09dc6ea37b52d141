/* SPDX-License-Identifier: MIT */
/* What of the options of export fits together, and which format the name of a file means. */
#include <string.h>

#include <etwatch/export.h>

#include "cli/args/parser.h"

static uint32_t format_of_name(const char *path)
{
    static const struct {
        const char *end;
        uint32_t format;
    } known[] = {
        {".pftrace", ETWATCH_EXPORT_PERFETTO},  {".perfetto-trace", ETWATCH_EXPORT_PERFETTO},
        {".arrow", ETWATCH_EXPORT_ARROW},       {".feather", ETWATCH_EXPORT_ARROW},
        {".ipc", ETWATCH_EXPORT_ARROW},         {".csv", ETWATCH_EXPORT_CSV},
        {".jsonl", ETWATCH_EXPORT_JSONL},       {".folded", ETWATCH_EXPORT_FOLDED},
        {".collapsed", ETWATCH_EXPORT_FOLDED},  {".speedscope.json", ETWATCH_EXPORT_SPEEDSCOPE},
        {".trace.json", ETWATCH_EXPORT_CHROME},
    };
    size_t len = path == NULL ? 0 : strlen(path);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t end = strlen(known[i].end);
        if (len > end && strcmp(path + len - end, known[i].end) == 0)
            return known[i].format;
    }
    return 0;
}

static bool has_table(uint32_t format)
{
    return format == ETWATCH_EXPORT_ARROW || format == ETWATCH_EXPORT_CSV ||
           format == ETWATCH_EXPORT_JSONL;
}

/* Options that only some tables have. */
static int check_table(struct ew_parser *p)
{
    const struct ew_options *o = p->options;
    const struct ew_export_options *e = &o->export;
    const char *name = etwatch_table_name(e->table);
    bool events = e->table == ETWATCH_TABLE_EVENTS;
    bool samples = e->table == ETWATCH_TABLE_SAMPLES || e->table == ETWATCH_TABLE_THREAD_SAMPLES;
    if (!events &&
        (e->fields || e->typed || o->raw || o->providers.count > 0 || o->events.count > 0))
        return ew_parser_fail(p,
                              "--fields, --typed, --raw, --provider and --event are about events, "
                              "not about the table %s",
                              name);
    if (!samples && (o->hz > 0 || (o->config_flags & ETWATCH_CONFIG_DENSE) != 0))
        return ew_parser_fail(p, "--hz and --dense are about samples: use --table samples");
    if (e->fields && e->typed)
        return ew_parser_fail(p, "--fields and --typed exclude each other: choose one");
    if (e->timestamps && e->format != ETWATCH_EXPORT_ARROW)
        return ew_parser_fail(p, "--timestamps needs -f arrow: text has numbers");
    return 0;
}

int ew_check_export(struct ew_parser *p)
{
    struct ew_options *o = p->options;
    struct ew_export_options *e = &o->export;
    if (e->format == 0)
        e->format = format_of_name(o->output_path);
    if (e->format == 0)
        return ew_parser_fail(p, "export needs a format: -f perfetto, arrow, csv, jsonl, folded, "
                                 "speedscope or chrome");
    if (has_table(e->format)) {
        e->table = e->table == 0 ? (uint32_t)ETWATCH_TABLE_EVENTS : e->table;
        return check_table(p);
    }
    bool words = o->providers.count > 0 || o->events.count > 0;
    /* Perfetto traces hold samples and what was named. */
    bool more = words || o->hz > 0 || (o->config_flags & ETWATCH_CONFIG_CMDLINE) != 0;
    if (e->table != 0 || e->fields || e->typed || e->timestamps || o->raw ||
        (more && e->format != ETWATCH_EXPORT_PERFETTO) ||
        (o->config_flags & ETWATCH_CONFIG_DENSE) != 0)
        return ew_parser_fail(p, "-f %s is no table: only -p, -n, --from and --to choose from it",
                              etwatch_export_name(e->format));
    return 0;
}
