/* SPDX-License-Identifier: MIT */
/*
 * The events of a consumer as an Arrow stream. A call of get_next delivers events into columns
 * until a batch is full or nothing more has arrived; full batches wait in a list.
 */
#include "consumer/consumer.h"

#include <stdio.h>

#include "arrow/fields.h"
#include "arrow/rows.h"
#include "base/alloc.h"
#include "base/buf.h"

enum { JSON_MAX = 4 << 20 };

struct stream {
    struct etwatch_consumer *consumer;
    struct ew_columns columns;
    uint32_t fields_column, payload_column; /* 0: none */
    struct ew_buf scratch;
    struct ew_batch_list ready;
    int timeout_ms;
    int error;
};

static void put(void *ctx, const struct etwatch_trace_event *event)
{
    struct stream *stream = ctx;
    if (ew_columns_begin(&stream->columns)) {
        ew_arrow_record_rows_put(&stream->columns, event);
        if (stream->fields_column != 0)
            ew_arrow_fields_put_json(&stream->columns, stream->fields_column, &stream->scratch,
                                     event->fields, event->field_count);
        if (stream->payload_column != 0 && event->payload != NULL)
            ew_columns_bytes(&stream->columns, stream->payload_column, event->payload,
                             event->payload_size);
        ew_columns_end(&stream->columns);
    }
    if (stream->columns.full) {
        int rc = ew_batch_list_add(&stream->ready, ew_columns_cut(&stream->columns));
        stream->error = rc < 0 ? rc : stream->error;
    }
    if (stream->columns.error != 0)
        stream->error = stream->columns.error;
}

static int next(void *ctx, struct ew_batch **ret_batch, char *message, size_t size)
{
    struct stream *stream = ctx;
    struct etwatch_error_info error = {.size = sizeof error};
    *ret_batch = ew_batch_list_take(&stream->ready);
    if (*ret_batch != NULL)
        return 0;
    int rc = etwatch_consumer_poll(stream->consumer, stream->timeout_ms, put, stream, &error);
    if (rc == ETWATCH_ESTATE && stream->consumer->ended) {
        *ret_batch = ew_columns_cut(&stream->columns); /* none: the end of the stream */
        return stream->columns.error;
    }
    if (rc < 0 || stream->error < 0) {
        (void)snprintf(message, size, "%s", error.message);
        return rc < 0 ? rc : stream->error;
    }
    *ret_batch = ew_batch_list_take(&stream->ready);
    if (*ret_batch == NULL)
        *ret_batch = ew_columns_cut_any(&stream->columns);
    return *ret_batch == NULL ? ETWATCH_ENOMEM : 0;
}

static void done(void *ctx)
{
    struct stream *stream = ctx;
    ew_batch_list_done(&stream->ready);
    ew_columns_done(&stream->columns);
    ew_buf_done(&stream->scratch);
    ew_consumer_unref(stream->consumer);
    ew_free(stream);
}

static int begin(struct stream *stream, const struct etwatch_table_options *options,
                 struct ArrowArrayStream *ret_stream)
{
    struct ew_batches batches = {.next = next, .done = done, .ctx = stream};
    struct ew_layout *layout = NULL;
    ew_buf_init(&stream->scratch, JSON_MAX, NULL, NULL);
    int rc = ew_arrow_record_layout(options->flags, options->batch_rows, &layout);
    if (rc == 0 && (options->flags & ETWATCH_TABLE_FIELDS) != 0) {
        stream->fields_column = ew_layout_count(layout);
        rc = ew_layout_add(layout, "fields", EW_COLUMN_TEXT, true);
    }
    if (rc == 0 && (options->flags & ETWATCH_TABLE_PAYLOAD) != 0) {
        stream->payload_column = ew_layout_count(layout);
        rc = ew_layout_add(layout, "payload", EW_COLUMN_BINARY, true);
    }
    if (rc == 0)
        rc = ew_columns_init(&stream->columns, layout);
    if (rc == 0)
        rc = ew_stream_export(layout, &batches, ret_stream);
    ew_layout_unref(layout);
    return rc;
}

int etwatch_consumer_stream(struct etwatch_consumer *consumer, int timeout_ms,
                            const struct etwatch_table_options *given,
                            struct ArrowArrayStream *ret_stream, struct etwatch_error_info *reterr)
{
    struct etwatch_table_options options;
    struct ew_error why = {0};
    if (consumer == NULL || ret_stream == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_table_options_take(given, &options, &why);
    if (rc == 0 && (options.flags & ~(uint32_t)(ETWATCH_TABLE_FIELDS | ETWATCH_TABLE_PAYLOAD |
                                                ETWATCH_TABLE_TIMESTAMPS)) != 0)
        rc = ew_error_set(&why, ETWATCH_EINVAL, 0,
                          "a live stream has only fields, payload and timestamps as options; "
                          "command lines are an option of the consumer");
    if (rc == 0) {
        struct stream *stream = ew_calloc(1, sizeof *stream);
        rc = stream == NULL ? ETWATCH_ENOMEM : 0;
        if (rc == 0) {
            stream->consumer = consumer;
            atomic_fetch_add(&consumer->refs, 1);
            stream->timeout_ms = timeout_ms;
            rc = begin(stream, &options, ret_stream);
            if (rc < 0)
                done(stream);
        }
        if (rc < 0)
            (void)ew_error_set(&why, rc, 0, "%s", etwatch_strerror(rc));
    }
    if (rc < 0)
        ew_error_out(reterr, &why, rc);
    return rc;
}
