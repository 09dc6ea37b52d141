/* SPDX-License-Identifier: MIT */
/*
 * --gpu-trace: listens for the records of the command's CUDA programs, passes the monitor the
 * trace, writes each operation where operations are written, and a report at the end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/units.h"
#include "cli/cli.h"

enum { SHOWN_KERNELS = 10, KERNELS_MAX = 65536, NAME_WIDTH = 100 };

static void keep_error(struct ew_gpu_view *view, int rc)
{
    if (rc < 0 && view->error == 0)
        view->error = rc;
}

static void on_op(void *ctx, const struct etwatch_gpu_op *op)
{
    struct ew_gpu_view *view = ctx;
    view->ops++;
    if (view->sink != NULL)
        keep_error(view, etwatch_sink_gpu_op(view->sink, op));
    if (view->spans != NULL)
        (void)etwatch_spans_add_gpu_op(view->spans, op);
}

/* One line for each process with missing records. */
static void on_state(void *ctx, const struct etwatch_gpu_process *process)
{
    const struct ew_gpu_view *view = ctx;
    const char *why = process->problem != NULL ? process->problem : "unknown reason";
    if (process->state == ETWATCH_GPU_FAILED)
        ew_print_info(view->options, "gpu trace of process %u: %s; the driver's estimates remain",
                      process->pid, why);
    else if (process->state == ETWATCH_GPU_TAKEN)
        ew_print_info(view->options,
                      "gpu trace of process %u ends: %s; the driver's estimates follow",
                      process->pid, why);
}

int ew_cli_gpu_init(struct ew_gpu_view *view, const struct ew_options *options)
{
    struct etwatch_error_info error = {.size = sizeof error};
    const struct etwatch_gpu_trace_options wanted = {
        .size = sizeof wanted, .ctx = view, .on_op = on_op, .on_state = on_state};
    memset(view, 0, sizeof *view);
    view->options = options;
    int rc = etwatch_gpu_trace_new(&wanted, &view->trace, &error);
    return rc < 0 ? ew_print_failure(&error, rc)
                  : ew_cli_gpu_environment(etwatch_gpu_trace_address(view->trace));
}

void ew_cli_gpu_step(struct ew_gpu_view *view)
{
    struct etwatch_gpu_process process = {.size = sizeof process};
    for (uint32_t i = 0;
         view->spans != NULL && etwatch_gpu_trace_process(view->trace, i, &process) == 0; i++)
        (void)etwatch_spans_add_gpu_process(view->spans, &process);
}

void ew_cli_gpu_done(struct ew_gpu_view *view)
{
    etwatch_gpu_trace_free(view->trace);
    memset(view, 0, sizeof *view);
}

/* ------------------------------------------------------------------------ objects */

int ew_cli_gpu_end(struct ew_gpu_view *view)
{
    struct etwatch_gpu_process process = {.size = sizeof process};
    struct etwatch_gpu_sum sum = {.size = sizeof sum};
    for (uint32_t i = 0; etwatch_gpu_trace_process(view->trace, i, &process) == 0; i++)
        keep_error(view, etwatch_sink_gpu_process(view->sink, &process));
    for (uint32_t i = 0; etwatch_gpu_trace_kernel(view->trace, i, &sum) == 0; i++)
        keep_error(view, etwatch_sink_gpu_sum(view->sink, &sum));
    for (uint32_t i = 0; etwatch_gpu_trace_stream(view->trace, i, &sum) == 0; i++)
        keep_error(view, etwatch_sink_gpu_sum(view->sink, &sum));
    keep_error(view, etwatch_sink_flush(view->sink));
    return view->error;
}

bool ew_cli_gpu_is_exact(const struct ew_gpu_view *view)
{
    struct etwatch_gpu_process process = {.size = sizeof process};
    uint32_t i = 0;
    for (; etwatch_gpu_trace_process(view->trace, i, &process) == 0; i++)
        if (process.state == ETWATCH_GPU_FAILED || process.state == ETWATCH_GPU_TAKEN)
            return false;
    return i > 0;
}

/* ------------------------------------------------------------------------- report */

static void put_time(struct ew_buf *out, const char *label, uint64_t ns)
{
    ew_buf_text(out, label);
    ew_units_ns(out, ns);
}

static void put_bytes(struct ew_buf *out, const char *label, uint64_t bytes, bool *any)
{
    if (bytes == 0)
        return;
    ew_buf_text(out, *any ? ", " : "");
    ew_units_bytes(out, bytes);
    ew_buf_text(out, label);
    *any = true;
}

static void put_copies(struct ew_buf *out, const struct etwatch_gpu_process *p)
{
    bool any = false;
    if (p->copies == 0)
        return;
    ew_buf_text(out, "  ");
    ew_buf_u64(out, p->copies);
    put_time(out, p->copies == 1 ? " copy, " : " copies, ", p->copy_ns);
    ew_buf_text(out, ": ");
    put_bytes(out, " to the GPU", p->bytes_to_device, &any);
    put_bytes(out, " from it", p->bytes_to_host, &any);
    put_bytes(out, " on it", p->bytes_on_device, &any);
    put_bytes(out, " between GPUs or otherwise", p->bytes_other, &any);
    ew_buf_text(out, any ? "\n" : "no bytes\n");
}

static void put_notes(struct ew_buf *out, const struct etwatch_gpu_process *p)
{
    if (p->state == ETWATCH_GPU_CUT)
        ew_buf_text(out, "  it was ended: its last 100 ms on the GPU may be missing\n");
    if (p->lost > 0) {
        ew_buf_text(out, "  lost records: ");
        ew_buf_u64(out, p->lost);
        ew_buf_char(out, '\n');
    }
    if (p->late_ns > 0)
        put_time(out, "  of operations that arrived too late to be merged: ", p->late_ns);
    ew_buf_text(out, p->late_ns > 0 ? "\n" : "");
}

static void put_process(struct ew_buf *out, const struct etwatch_gpu_process *p)
{
    uint64_t all_ns = p->last_ns - p->first_ns;
    ew_buf_text(out, "\nGPU trace of process ");
    ew_buf_u64(out, p->pid);
    if (p->state == ETWATCH_GPU_FAILED) {
        ew_buf_text(out, ": no records: ");
        const char *problem = p->problem != NULL ? p->problem : "unknown reason";
        (void)ew_buf_screen(out, problem, strlen(problem), 200);
        ew_buf_char(out, '\n');
        return;
    }
    put_time(out, ": GPU busy ", p->gpu_ns);
    if (all_ns > 0) {
        put_time(out, " of ", all_ns);
        ew_buf_text(out, " (");
        (void)ew_buf_fixed(out, 100.0 * (double)p->gpu_ns / (double)all_ns, 1);
        ew_buf_text(out, " %)");
    }
    ew_buf_text(out, "\n  ");
    ew_buf_u64(out, p->kernels);
    put_time(out, p->kernels == 1 ? " kernel, " : " kernels, ", p->kernel_ns);
    ew_buf_text(out, "; ");
    ew_buf_u64(out, p->launches);
    put_time(out, p->launches == 1 ? " launch, " : " launches, ", p->launch_ns);
    ew_buf_text(out, " of CPU threads\n");
    put_copies(out, p);
    put_time(out, "  the CPU waited for the GPU: ", p->cpu_wait_ns);
    put_time(out, "; the GPU waited for the CPU: ", p->gpu_wait_ns);
    ew_buf_char(out, '\n');
    put_notes(out, p);
}

static int by_time(const void *a, const void *b)
{
    const struct etwatch_gpu_sum *x = a, *y = b;
    return x->ns > y->ns ? -1 : x->ns < y->ns;
}

static void put_kernels(struct ew_buf *out, const struct etwatch_gpu_sum *kernels, uint32_t count)
{
    ew_buf_text(out, "\nKernels with the most time:\n");
    for (uint32_t i = 0; i < count && i < SHOWN_KERNELS; i++) {
        const struct etwatch_gpu_sum *kernel = &kernels[i];
        put_time(out, "  ", kernel->ns);
        ew_buf_text(out, " in ");
        ew_buf_u64(out, kernel->count);
        put_time(out, ", mean ", kernel->count == 0 ? 0 : kernel->ns / kernel->count);
        put_time(out, ", max ", kernel->max_ns);
        ew_buf_text(out, ": ");
        (void)ew_buf_screen(out, kernel->name, strlen(kernel->name), NAME_WIDTH);
        ew_buf_char(out, '\n');
    }
    if (count > SHOWN_KERNELS) {
        ew_buf_text(out, "  and ");
        ew_buf_u64(out, count - SHOWN_KERNELS);
        ew_buf_text(out, " others\n");
    }
}

int ew_cli_gpu_write(const struct ew_gpu_view *view, struct ew_buf *out)
{
    struct etwatch_gpu_process process = {.size = sizeof process};
    struct etwatch_gpu_sum sum = {.size = sizeof sum};
    uint32_t processes = 0, count = 0;
    while (etwatch_gpu_trace_process(view->trace, processes, &process) == 0) {
        put_process(out, &process);
        processes++;
    }
    if (processes == 0)
        ew_buf_text(out, "\nGPU trace: the command ran no CUDA program\n");
    while (count < KERNELS_MAX && etwatch_gpu_trace_kernel(view->trace, count, &sum) == 0)
        count++;
    struct etwatch_gpu_sum *kernels = count == 0 ? NULL : ew_calloc(count, sizeof *kernels);
    for (uint32_t i = 0; kernels != NULL && i < count; i++) {
        kernels[i].size = sizeof kernels[i];
        (void)etwatch_gpu_trace_kernel(view->trace, i, &kernels[i]);
    }
    if (kernels != NULL) {
        qsort(kernels, count, sizeof *kernels, by_time);
        put_kernels(out, kernels, count);
    }
    ew_free(kernels);
    return out->error;
}
