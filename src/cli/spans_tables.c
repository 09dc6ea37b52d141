/* SPDX-License-Identifier: MIT */
/*
 * Spans and operators as rows: CSV (spans only) as they come, Arrow files at the end. A file has
 * one table: with --operators -o FILE.arrow the operators are in FILE.operators.arrow. The columns
 * of CSV are the keys of the JSON output, in its order.
 */
#include <stdio.h>
#include <string.h>

#include <etwatch/arrow.h>
#include <etwatch/export.h>

#include "base/alloc.h"
#include "cli/cli.h"

static const char csv_head[] =
    "kind,name,session,shape,pid,tid,thread_name,t_ns,dt_ns,cpu_ns,work_ns,runq_wait_ns,"
    "throttled_ns,fault_ns,disk_wait_ns,lock_wait_ns,process_wait_ns,sleep_ns,unknown_ns,helpers,"
    "helper_cpu_ns,helper_runq_wait_ns,shared_cpu_ns,faults,preempted,gpu_ns,wait_gpu_ns,gpu_"
    "kernels,failed,async,complete,"
    "causes\n";

/* ------------------------------------------------------------------------- files */

/* "x.arrow" becomes "x.operators.arrow". NULL: out of memory. */
static char *operators_path(const char *path)
{
    size_t len = strlen(path), size = len + sizeof ".operators";
    const char *dot = strrchr(path, '.');
    char *made = ew_calloc(1, size);
    size_t stem = dot == NULL ? len : (size_t)(dot - path);
    if (made != NULL)
        (void)snprintf(made, size, "%.*s.operators%s", (int)stem, path, path + stem);
    return made;
}

static int open_operators(struct ew_spans_tables *tables, const struct ew_options *options)
{
    tables->operators_path = operators_path(options->output_path);
    if (tables->operators_path == NULL) {
        ew_print_error("out of memory");
        return EW_EXIT_FAILED;
    }
    int error = ew_output_open_whole(&tables->operators, tables->operators_path, options->mode,
                                     &tables->operators_place);
    return error == 0 ? EW_EXIT_OK : ew_print_write_error(tables->operators_path, error);
}

int ew_cli_spans_tables_init(struct ew_spans_tables *tables, const struct ew_options *options)
{
    struct etwatch_error_info error = {.size = sizeof error};
    memset(tables, 0, sizeof *tables);
    ew_output_init(&tables->operators, -1, NULL);
    if (options->csv) {
        ew_buf_init(&tables->csv, 0, ew_output_write, NULL);
        tables->csv.csv_raw = options->csv_raw;
    }
    if (options->spans_format != ETWATCH_EXPORT_ARROW)
        return EW_EXIT_OK;
    int rc = etwatch_collector_new(NULL, &tables->collector, &error);
    if (rc < 0)
        return ew_print_failure(&error, rc);
    return options->operators ? open_operators(tables, options) : EW_EXIT_OK;
}

static int close_operators(struct ew_spans_tables *tables, bool complete)
{
    int error = ew_output_close_whole(&tables->operators, tables->operators_place, complete);
    tables->operators_place = NULL;
    return error;
}

void ew_cli_spans_tables_done(struct ew_spans_tables *tables)
{
    if (tables->operators_path != NULL)
        (void)close_operators(tables, false);
    etwatch_collector_free(tables->collector);
    ew_free(tables->operators_path);
    if (tables->csv.write != NULL)
        ew_buf_done(&tables->csv);
    memset(tables, 0, sizeof *tables);
}

void ew_cli_spans_tables_output(struct ew_spans_tables *tables, struct ew_output *output)
{
    tables->output = output;
    if (tables->csv.write == NULL)
        return;
    tables->csv.ctx = output;
    ew_buf_text(&tables->csv, csv_head);
}

/* The message about the second file is printed here: the watch knows its own output only. */
static int write_operators(struct ew_spans_tables *tables)
{
    struct ArrowArrayStream stream;
    int rc = etwatch_collector_table(tables->collector, ETWATCH_TABLE_OPERATORS, 0, &stream);
    if (rc == 0)
        rc = etwatch_arrow_write(&stream, ew_output_write, &tables->operators, NULL, NULL);
    int error = tables->operators.os_error, closed = close_operators(tables, rc == 0);
    error = error != 0 ? error : closed;
    if (error != 0)
        (void)ew_print_write_error(tables->operators_path, error);
    return rc == 0 && error != 0 ? ETWATCH_EOS : rc;
}

int ew_cli_spans_tables_end(struct ew_spans_tables *tables)
{
    struct ArrowArrayStream stream;
    if (tables->collector == NULL)
        return 0;
    int rc = etwatch_collector_table(tables->collector, ETWATCH_TABLE_SPANS, 0, &stream);
    if (rc == 0)
        rc = etwatch_arrow_write(&stream, ew_output_write, tables->output, NULL, NULL);
    return rc == 0 && tables->operators_path != NULL ? write_operators(tables) : rc;
}

uint64_t ew_cli_spans_tables_dropped(const struct ew_spans_tables *tables)
{
    struct etwatch_collector_stats stats = {.size = sizeof stats};
    bool known =
        tables->collector != NULL && etwatch_collector_stats(tables->collector, &stats) == 0;
    return known ? stats.dropped : 0;
}

/* -------------------------------------------------------------------------- rows */

static void csv_text(struct ew_buf *out, const char *text)
{
    if (text != NULL)
        ew_buf_csv_field(out, text, strlen(text));
    ew_buf_char(out, ',');
}

static void csv_number(struct ew_buf *out, uint64_t value)
{
    ew_buf_u64(out, value);
    ew_buf_char(out, ',');
}

static void csv_number_if(struct ew_buf *out, bool known, uint64_t value)
{
    if (known)
        ew_buf_u64(out, value);
    ew_buf_char(out, ',');
}

static void csv_bool(struct ew_buf *out, bool value)
{
    ew_buf_text(out, value ? "true," : "false,");
}

static void json_number_if(struct ew_buf *json, bool known, uint64_t value)
{
    if (known)
        ew_buf_u64(json, value);
    else
        ew_buf_text(json, "null");
}

static void json_cause(struct ew_buf *json, const struct etwatch_cause *cause)
{
    ew_buf_text(json, "{\"cause\":\"");
    ew_buf_text(json, etwatch_cause_name(cause->kind));
    ew_buf_text(json, "\",\"pid\":");
    json_number_if(json, cause->pid != UINT32_MAX, cause->pid);
    ew_buf_text(json, ",\"tid\":");
    json_number_if(json, cause->tid != 0, cause->tid);
    ew_buf_text(json, ",\"name\":");
    if (cause->name[0] != '\0')
        ew_buf_json_string(json, cause->name, strlen(cause->name));
    else
        ew_buf_text(json, "null");
    ew_buf_text(json, ",\"ns\":");
    ew_buf_u64(json, cause->ns);
    ew_buf_char(json, '}');
}

/* The same array as in the other outputs. */
static void csv_causes(struct ew_buf *out, const struct etwatch_span *span)
{
    struct ew_buf json;
    ew_buf_init(&json, 0, NULL, NULL);
    ew_buf_char(&json, '[');
    for (uint32_t i = 0; i < span->cause_count; i++) {
        if (i > 0)
            ew_buf_char(&json, ',');
        json_cause(&json, &span->causes[i]);
    }
    ew_buf_char(&json, ']');
    if (json.error != 0)
        out->error = json.error;
    ew_buf_csv_field(out, json.data, json.len);
    ew_buf_done(&json);
}

static void csv_span(struct ew_buf *out, const struct etwatch_span *span)
{
    bool faults = (span->flags & ETWATCH_SPAN_HAS_FAULTS) != 0;
    bool gpu = (span->flags & ETWATCH_SPAN_HAS_GPU) != 0;
    csv_text(out, etwatch_span_kind_name(span->kind));
    csv_text(out, span->name);
    csv_text(out, span->session);
    csv_text(out, span->shape);
    csv_number(out, span->pid);
    csv_number(out, span->tid);
    csv_text(out, span->thread_name);
    csv_number(out, span->end_ns);
    csv_number(out, span->end_ns - span->start_ns);
    csv_number(out, span->cpu_ns);
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++)
        csv_number_if(out, i != ETWATCH_CAUSE_FAULT || faults, span->ns[i]);
    csv_number(out, span->helpers);
    csv_number(out, span->helper_cpu_ns);
    csv_number(out, span->helper_ready_ns);
    csv_number(out, span->shared_cpu_ns);
    csv_number_if(out, faults, span->fault_count);
    csv_number(out, span->preempted);
    csv_number_if(out, gpu, span->gpu_ns);
    csv_number_if(out, gpu, span->wait_gpu_ns);
    csv_number_if(out, gpu, span->gpu_kernels);
    csv_bool(out, (span->flags & ETWATCH_SPAN_FAILED) != 0);
    csv_bool(out, (span->flags & ETWATCH_SPAN_ASYNC) != 0);
    csv_bool(out, (span->flags & ETWATCH_SPAN_COMPLETE) != 0);
    csv_causes(out, span);
    ew_buf_char(out, '\n');
    ew_buf_end_line(out);
}

void ew_cli_spans_tables_span(struct ew_spans_tables *tables, const struct etwatch_span *span)
{
    if (tables->csv.write != NULL)
        csv_span(&tables->csv, span);
    if (tables->collector != NULL)
        etwatch_collector_on_span(tables->collector, span);
}

void ew_cli_spans_tables_operator(struct ew_spans_tables *tables, const struct etwatch_operator *op)
{
    if (tables->collector != NULL)
        etwatch_collector_on_operator(tables->collector, op);
}

int ew_cli_spans_tables_flush(struct ew_spans_tables *tables)
{
    return tables->csv.write != NULL ? ew_buf_flush(&tables->csv) : 0;
}
