/* SPDX-License-Identifier: MIT */
/* Spans, operators and groups as objects of JSON Lines. Unknown page faults are null. */
#include "sink/json.h"
#include "sink/sink.h"

void ew_json_causes(struct ew_buf *out, const struct etwatch_cause *causes, uint32_t count)
{
    ew_buf_char(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            ew_buf_char(out, ',');
        EW_JSON(out, "{\"cause\":");
        ew_json_text(out, etwatch_cause_name(causes[i].kind));
        EW_JSON(out, ",\"pid\":");
        ew_json_number_if(out, causes[i].pid != UINT32_MAX, causes[i].pid);
        EW_JSON(out, ",\"tid\":");
        ew_json_number_if(out, causes[i].tid != 0, causes[i].tid);
        EW_JSON(out, ",\"name\":");
        ew_json_text(out, causes[i].name[0] != '\0' ? causes[i].name : NULL);
        EW_JSON(out, ",\"ns\":");
        ew_buf_u64(out, causes[i].ns);
        ew_buf_char(out, '}');
    }
    ew_buf_char(out, ']');
}

static void put_causes(struct ew_buf *out, const char *key, size_t key_len,
                       const struct etwatch_cause *causes, uint32_t count)
{
    ew_buf_bytes(out, key, key_len);
    ew_json_causes(out, causes, count);
}

static void put_ns(struct ew_buf *out, const uint64_t ns[ETWATCH_CAUSE_COUNT], bool faults)
{
    EW_JSON(out, ",\"work_ns\":");
    ew_buf_u64(out, ns[ETWATCH_CAUSE_WORK]);
    EW_JSON(out, ",\"runq_wait_ns\":");
    ew_buf_u64(out, ns[ETWATCH_CAUSE_CPU]);
    EW_JSON(out, ",\"throttled_ns\":");
    ew_buf_u64(out, ns[ETWATCH_CAUSE_THROTTLED]);
    EW_JSON(out, ",\"fault_ns\":");
    ew_json_number_if(out, faults, ns[ETWATCH_CAUSE_FAULT]);
    EW_JSON(out, ",\"disk_wait_ns\":");
    ew_buf_u64(out, ns[ETWATCH_CAUSE_DISK]);
    EW_JSON(out, ",\"lock_wait_ns\":");
    ew_buf_u64(out, ns[ETWATCH_CAUSE_LOCK]);
    EW_JSON(out, ",\"process_wait_ns\":");
    ew_buf_u64(out, ns[ETWATCH_CAUSE_PROCESS]);
    EW_JSON(out, ",\"sleep_ns\":");
    ew_buf_u64(out, ns[ETWATCH_CAUSE_SLEEP]);
    EW_JSON(out, ",\"unknown_ns\":");
    ew_buf_u64(out, ns[ETWATCH_CAUSE_UNKNOWN]);
}

static void put_identity(struct ew_buf *out, uint32_t kind, const char *name, const char *session)
{
    EW_JSON(out, "\"kind\":");
    ew_json_text(out, etwatch_span_kind_name(kind));
    EW_JSON(out, ",\"name\":");
    ew_json_text(out, name);
    EW_JSON(out, ",\"session\":");
    ew_json_text(out, session);
}

static void put_gpu(struct ew_buf *out, bool known, uint64_t gpu_ns, uint64_t wait_ns,
                    uint64_t kernels)
{
    EW_JSON(out, ",\"gpu_ns\":");
    ew_json_number_if(out, known, gpu_ns);
    EW_JSON(out, ",\"wait_gpu_ns\":");
    ew_json_number_if(out, known, wait_ns);
    EW_JSON(out, ",\"gpu_kernels\":");
    ew_json_number_if(out, known, kernels);
}

/* What spans and operators have in common, up to the end of the object. */
static void put_rest(struct ew_buf *out, const struct etwatch_span *span)
{
    static const char key[] = ",\"causes\":";
    bool faults = (span->flags & ETWATCH_SPAN_HAS_FAULTS) != 0;
    EW_JSON(out, ",\"pid\":");
    ew_buf_u64(out, span->pid);
    EW_JSON(out, ",\"tid\":");
    ew_buf_u64(out, span->tid);
    EW_JSON(out, ",\"thread_name\":");
    ew_json_text(out, span->thread_name);
    EW_JSON(out, ",\"t_ns\":");
    ew_buf_u64(out, span->end_ns);
    EW_JSON(out, ",\"dt_ns\":");
    ew_buf_u64(out, span->end_ns - span->start_ns);
    EW_JSON(out, ",\"cpu_ns\":");
    ew_buf_u64(out, span->cpu_ns);
    put_ns(out, span->ns, faults);
    EW_JSON(out, ",\"helpers\":");
    ew_buf_u64(out, span->helpers);
    EW_JSON(out, ",\"helper_cpu_ns\":");
    ew_buf_u64(out, span->helper_cpu_ns);
    EW_JSON(out, ",\"helper_runq_wait_ns\":");
    ew_buf_u64(out, span->helper_ready_ns);
    EW_JSON(out, ",\"shared_cpu_ns\":");
    ew_buf_u64(out, span->shared_cpu_ns);
    EW_JSON(out, ",\"faults\":");
    ew_json_number_if(out, faults, span->fault_count);
    EW_JSON(out, ",\"preempted\":");
    ew_buf_u64(out, span->preempted);
    put_gpu(out, (span->flags & ETWATCH_SPAN_HAS_GPU) != 0, span->gpu_ns, span->wait_gpu_ns,
            span->gpu_kernels);
    EW_JSON(out, ",\"failed\":");
    ew_json_bool(out, (span->flags & ETWATCH_SPAN_FAILED) != 0);
    EW_JSON(out, ",\"async\":");
    ew_json_bool(out, (span->flags & ETWATCH_SPAN_ASYNC) != 0);
    EW_JSON(out, ",\"complete\":");
    ew_json_bool(out, (span->flags & ETWATCH_SPAN_COMPLETE) != 0);
    put_causes(out, key, sizeof key - 1, span->causes, span->cause_count);
    EW_JSON(out, "}\n");
    ew_buf_end_line(out);
}

void ew_jsonl_span(struct etwatch_sink *sink, const struct etwatch_span *span)
{
    struct ew_buf *out = &sink->out;
    EW_JSON(out, "{\"type\":\"span\",");
    put_identity(out, span->kind, span->name, span->session);
    EW_JSON(out, ",\"shape\":");
    ew_json_text(out, span->shape);
    put_rest(out, span);
}

void ew_jsonl_operator(struct etwatch_sink *sink, const struct etwatch_operator *op)
{
    struct ew_buf *out = &sink->out;
    EW_JSON(out, "{\"type\":\"operator\",\"node\":");
    ew_json_text(out, op->node);
    EW_JSON(out, ",\"operator\":");
    ew_json_text(out, op->span->name);
    EW_JSON(out, ",\"provider\":");
    ew_json_text(out, op->provider);
    EW_JSON(out, ",\"session\":");
    ew_json_text(out, op->span->session);
    EW_JSON(out, ",\"inference_t_ns\":");
    ew_json_number_if(out, op->inference_ns != 0, op->inference_ns);
    EW_JSON(out, ",\"pool_threads\":");
    ew_json_number_if(out, op->pool_threads != 0, op->pool_threads);
    EW_JSON(out, ",\"pool_percent\":");
    if (op->pool_threads != 0 && op->pool_percent >= 0)
        ew_json_double(out, op->pool_percent);
    else
        EW_JSON(out, "null");
    put_rest(out, op->span);
}

void ew_jsonl_span_group(struct etwatch_sink *sink, const struct etwatch_span_group *group)
{
    static const char key[] = ",\"causes\":", slow_key[] = ",\"slow_causes\":";
    struct ew_buf *out = &sink->out;
    char text[512];
    bool faults = (group->flags & ETWATCH_SPAN_HAS_FAULTS) != 0;
    EW_JSON(out, "{\"type\":\"span_group\",");
    put_identity(out, group->kind, group->name, group->session);
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"count", group->count},
        {"failed", group->failed},
        {"incomplete", group->incomplete},
        {"from_ns", group->first_ns},
        {"to_ns", group->last_ns},
        {"p50_ns", group->p50_ns},
        {"p95_ns", group->p95_ns},
        {"p99_ns", group->p99_ns},
        {"max_ns", group->max_ns},
        {"mean_ns", group->mean_ns},
        {"first_ns", group->cold_ns},
        {"helpers", group->helpers},
        {"helper_cpu_ns", group->helper_cpu_ns},
        {"helper_runq_wait_ns", group->helper_ready_ns},
        {"shared_cpu_ns", group->shared_cpu_ns},
        {"preempted", group->preempted},
        {"slow_count", group->slow_count},
        {"slow_mean_ns", group->slow_mean_ns},
        {"typical_mean_ns", group->typical_mean_ns},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        EW_JSON(out, ",\"");
        ew_buf_text(out, numbers[i].key);
        EW_JSON(out, "\":");
        ew_buf_u64(out, numbers[i].value);
    }
    put_gpu(out, (group->flags & ETWATCH_SPAN_HAS_GPU) != 0, group->gpu_ns, group->wait_gpu_ns,
            group->gpu_kernels);
    put_ns(out, group->total, faults);
    put_causes(out, key, sizeof key - 1, group->causes, group->cause_count);
    EW_JSON(out, ",\"slow_excess_ns\":{");
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++) {
        EW_JSON(out, "\"");
        ew_buf_text(out, etwatch_cause_name(i));
        EW_JSON(out, "\":");
        if (i == ETWATCH_CAUSE_FAULT && !faults)
            EW_JSON(out, "null");
        else
            ew_buf_i64(out, group->excess_ns[i]);
        ew_buf_char(out, i + 1 < ETWATCH_CAUSE_COUNT ? ',' : '}');
    }
    put_causes(out, slow_key, sizeof slow_key - 1, group->slow_causes, group->slow_cause_count);
    EW_JSON(out, ",\"why\":");
    ew_json_text(out, etwatch_span_group_text(group, text, sizeof text) < 0 ? NULL : text);
    EW_JSON(out, "}\n");
    ew_buf_end_line(out);
}
