/* SPDX-License-Identifier: MIT */
/* Interface of the formats: the public functions in sink.c pass each object to a table of
 * functions. */
#ifndef EW_SINK_SINK_H
#define EW_SINK_SINK_H

#include <etwatch/sink.h>

#include "base/buf.h"
#include "base/error.h"

struct ew_sink_ops {
    size_t size; /* of the sink's own struct, which starts with struct etwatch_sink */
    /* Each may be NULL, except sample: the format then ignores the object. */
    int (*init)(struct etwatch_sink *sink, const struct etwatch_sink_options *options,
                struct ew_error *reterr);
    void (*done)(struct etwatch_sink *sink);
    void (*meta)(struct etwatch_sink *sink, const struct etwatch_meta *meta);
    void (*sample)(struct etwatch_sink *sink, const struct etwatch_sample *sample);
    void (*event)(struct etwatch_sink *sink, const struct etwatch_event *event);
    void (*window)(struct etwatch_sink *sink, const struct etwatch_window *window);
    void (*loss)(struct etwatch_sink *sink, const struct etwatch_loss *loss);
    void (*alert)(struct etwatch_sink *sink, const struct etwatch_alert *alert);
    void (*span)(struct etwatch_sink *sink, const struct etwatch_span *span);
    void (*oper)(struct etwatch_sink *sink, const struct etwatch_operator *op);
    void (*span_group)(struct etwatch_sink *sink, const struct etwatch_span_group *group);
    void (*system)(struct etwatch_sink *sink, const struct etwatch_system *system);
    void (*device)(struct etwatch_sink *sink, const struct etwatch_device *device);
    void (*gpu_op)(struct etwatch_sink *sink, const struct etwatch_gpu_op *op);
    void (*gpu_process)(struct etwatch_sink *sink, const struct etwatch_gpu_process *process);
    void (*gpu_sum)(struct etwatch_sink *sink, const struct etwatch_gpu_sum *sum);
    void (*stats)(struct etwatch_sink *sink, const struct etwatch_stats *stats);
    void (*trace)(struct etwatch_sink *sink, const struct etwatch_trace_summary *trace);
    void (*klass)(struct etwatch_sink *sink, const struct etwatch_trace_class *klass);
    void (*process)(struct etwatch_sink *sink, const struct etwatch_sample *process,
                    const struct etwatch_metric_set *estimated);
    void (*image)(struct etwatch_sink *sink, const struct etwatch_trace_image *image);
    void (*trace_event)(struct etwatch_sink *sink, const struct etwatch_trace_event *event);
    void (*end)(struct etwatch_sink *sink);
    /* Writes data that waits inside the format to the buffer. */
    void (*flush)(struct etwatch_sink *sink);
    void (*restart)(struct etwatch_sink *sink);
    void (*name)(struct etwatch_sink *sink, uint32_t pid, const char *name);
    bool (*wants_fields)(const struct etwatch_trace_event *event); /* NULL: always */
};

/* Every field once, for as many metrics as a set holds; a caller may repeat some. */
enum { EW_SINK_COLUMNS_MAX = 288 };

struct etwatch_sink {
    const struct ew_sink_ops *ops;
    struct ew_buf out;
    uint32_t flags;
    uint32_t column_count;                 /* 0: the format's default */
    uint16_t columns[EW_SINK_COLUMNS_MAX]; /* enum ew_field_id */
    char *host;                            /* NULL: unknown */
    char *os;
};

extern const struct ew_sink_ops ew_sink_jsonl;
extern const struct ew_sink_ops ew_sink_csv;
extern const struct ew_sink_ops ew_sink_table;
extern const struct ew_sink_ops ew_sink_perfetto;

/* system.c */
void ew_jsonl_system(struct etwatch_sink *sink, const struct etwatch_system *system);
/* device.c */
void ew_jsonl_device(struct etwatch_sink *sink, const struct etwatch_device *device);
/* gpu.c */
void ew_jsonl_gpu_op(struct etwatch_sink *sink, const struct etwatch_gpu_op *op);
void ew_jsonl_gpu_process(struct etwatch_sink *sink, const struct etwatch_gpu_process *process);
void ew_jsonl_gpu_sum(struct etwatch_sink *sink, const struct etwatch_gpu_sum *sum);
/* alert.c */
void ew_jsonl_alert(struct etwatch_sink *sink, const struct etwatch_alert *alert);
/* span.c */
void ew_jsonl_span(struct etwatch_sink *sink, const struct etwatch_span *span);
void ew_jsonl_operator(struct etwatch_sink *sink, const struct etwatch_operator *op);
void ew_jsonl_span_group(struct etwatch_sink *sink, const struct etwatch_span_group *group);
/* trace_json.c */
void ew_jsonl_trace(struct etwatch_sink *sink, const struct etwatch_trace_summary *trace);
void ew_jsonl_class(struct etwatch_sink *sink, const struct etwatch_trace_class *klass);
void ew_jsonl_image(struct etwatch_sink *sink, const struct etwatch_trace_image *image);
void ew_jsonl_trace_event(struct etwatch_sink *sink, const struct etwatch_trace_event *event);
/* trace_text.c */
void ew_text_trace_event(struct etwatch_sink *sink, const struct etwatch_trace_event *event);

#endif
