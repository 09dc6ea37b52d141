/* SPDX-License-Identifier: MIT */
/* Operations of GPUs, and their sums, as objects of JSON Lines. */
#include "sink/json.h"
#include "sink/sink.h"

struct number {
    const char *key;
    uint64_t value;
};

static void put_numbers(struct ew_buf *out, const struct number *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        EW_JSON(out, ",\"");
        ew_buf_text(out, numbers[i].key);
        EW_JSON(out, "\":");
        ew_buf_u64(out, numbers[i].value);
    }
}

void ew_jsonl_gpu_op(struct etwatch_sink *sink, const struct etwatch_gpu_op *op)
{
    struct ew_buf *out = &sink->out;
    bool on_gpu = op->kind <= ETWATCH_GPU_SET;
    bool moves = op->kind == ETWATCH_GPU_COPY || op->kind == ETWATCH_GPU_SET;
    bool called = (op->flags & ETWATCH_GPU_OP_HAS_CALL) != 0;
    EW_JSON(out, "{\"type\":\"gpu\",\"kind\":");
    ew_json_text(out, etwatch_gpu_op_kind_name(op->kind));
    EW_JSON(out, ",\"pid\":");
    ew_buf_u64(out, op->pid);
    EW_JSON(out, ",\"tid\":");
    ew_json_number_if(out, op->tid != 0, op->tid);
    EW_JSON(out, ",\"t_ns\":");
    ew_buf_u64(out, op->end_ns);
    EW_JSON(out, ",\"dt_ns\":");
    ew_buf_u64(out, op->end_ns - op->start_ns);
    EW_JSON(out, ",\"name\":");
    ew_json_text(out, op->name);
    EW_JSON(out, ",\"device\":");
    ew_json_number_if(out, on_gpu, op->device);
    EW_JSON(out, ",\"context\":");
    ew_json_number_if(out, on_gpu, op->context);
    EW_JSON(out, ",\"stream\":");
    ew_json_number_if(out, on_gpu, op->stream);
    EW_JSON(out, ",\"bytes\":");
    ew_json_number_if(out, moves, op->bytes);
    EW_JSON(out, ",\"copy\":");
    ew_json_text(out, op->kind == ETWATCH_GPU_COPY ? etwatch_gpu_copy_name(op->copy) : NULL);
    EW_JSON(out, ",\"call\":");
    ew_json_text(out, op->call);
    EW_JSON(out, ",\"call_t_ns\":");
    ew_json_number_if(out, called, op->call_end_ns);
    EW_JSON(out, ",\"call_dt_ns\":");
    ew_json_number_if(out, called, op->call_end_ns - op->call_start_ns);
    EW_JSON(out, ",\"correlation\":");
    ew_json_number_if(out, op->correlation != 0, op->correlation);
    EW_JSON(out, "}\n");
    ew_buf_end_line(out);
}

/* Without records the numbers of a process are null; its state says why. */
void ew_jsonl_gpu_process(struct etwatch_sink *sink, const struct etwatch_gpu_process *process)
{
    struct ew_buf *out = &sink->out;
    bool known = process->state != ETWATCH_GPU_FAILED && process->state != ETWATCH_GPU_STARTING;
    const struct number numbers[] = {
        {"kernels", process->kernels},
        {"copies", process->copies},
        {"sets", process->sets},
        {"waits", process->waits},
        {"ranges", process->ranges},
        {"gpu_ns", process->gpu_ns},
        {"kernel_ns", process->kernel_ns},
        {"copy_ns", process->copy_ns},
        {"set_ns", process->set_ns},
        {"bytes_to_device", process->bytes_to_device},
        {"bytes_to_host", process->bytes_to_host},
        {"bytes_on_device", process->bytes_on_device},
        {"bytes_other", process->bytes_other},
        {"set_bytes", process->set_bytes},
        {"launches", process->launches},
        {"launch_ns", process->launch_ns},
        {"cpu_wait_ns", process->cpu_wait_ns},
        {"gpu_wait_ns", process->gpu_wait_ns},
        {"first_ns", process->first_ns},
        {"last_ns", process->last_ns},
        {"late_ns", process->late_ns},
    };
    EW_JSON(out, "{\"type\":\"gpu_process\",\"pid\":");
    ew_buf_u64(out, process->pid);
    EW_JSON(out, ",\"state\":");
    ew_json_text(out, etwatch_gpu_state_name(process->state));
    EW_JSON(out, ",\"problem\":");
    ew_json_text(out, process->problem);
    EW_JSON(out, ",\"cupti_version\":");
    ew_json_number_if(out, process->cupti_version != 0, process->cupti_version);
    EW_JSON(out, ",\"lost\":");
    ew_buf_u64(out, process->lost);
    if (known)
        put_numbers(out, numbers, sizeof numbers / sizeof numbers[0]);
    for (size_t i = 0; !known && i < sizeof numbers / sizeof numbers[0]; i++) {
        EW_JSON(out, ",\"");
        ew_buf_text(out, numbers[i].key);
        EW_JSON(out, "\":null");
    }
    EW_JSON(out, ",\"complete\":");
    ew_json_bool(out, process->state == ETWATCH_GPU_CLOSED && process->lost == 0 &&
                          process->late_ns == 0);
    EW_JSON(out, "}\n");
    ew_buf_end_line(out);
}

void ew_jsonl_gpu_sum(struct etwatch_sink *sink, const struct etwatch_gpu_sum *sum)
{
    struct ew_buf *out = &sink->out;
    const struct number kernel[] = {
        {"count", sum->count}, {"ns", sum->ns}, {"min_ns", sum->min_ns}, {"max_ns", sum->max_ns}};
    const struct number stream[] = {{"device", sum->device},   {"context", sum->context},
                                    {"stream", sum->stream},   {"kernels", sum->count},
                                    {"kernel_ns", sum->ns},    {"copies", sum->copies},
                                    {"copy_ns", sum->copy_ns}, {"copy_bytes", sum->copy_bytes}};
    EW_JSON(out, "{\"type\":");
    ew_json_text(out, sum->name != NULL ? "gpu_kernel" : "gpu_stream");
    EW_JSON(out, ",\"pid\":");
    ew_buf_u64(out, sum->pid);
    if (sum->name != NULL) {
        EW_JSON(out, ",\"name\":");
        ew_json_text(out, sum->name);
        put_numbers(out, kernel, sizeof kernel / sizeof kernel[0]);
    } else {
        put_numbers(out, stream, sizeof stream / sizeof stream[0]);
    }
    EW_JSON(out, "}\n");
    ew_buf_end_line(out);
}
