/* SPDX-License-Identifier: MIT */
/*
 * Writes a table as lines of text: CSV or JSON Lines, row by row from the columns of each batch.
 * Numbers are formatted like in the other outputs, so that the same events yield the same bytes
 * whether they pass through a table or not.
 */
#include <stdio.h>
#include <string.h>

#include <etwatch/arrow.h>

#include "arrow/columns.h"
#include "arrow/export.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/real.h"

enum { LINE_MAX_BYTES = 16 << 20, FLUSH_AT = 128 * 1024, NUMBER_ROOM = 64 };

enum kind { SIGNED, UNSIGNED, REAL, BOOLEAN, TEXT, BINARY };

struct column {
    uint8_t kind; /* enum kind; of a dictionary: the kind of its entries */
    uint8_t bits; /* of a number */
    bool dict, json, fixed;
    size_t key_len;
    char *key; /* ,"name": or ,name */
    const struct ArrowArray *array, *dictionary;
};

struct lines {
    struct ArrowSchema schema;
    struct column *columns;
    uint32_t count;
    bool csv;
    struct ew_buf head, out;
    uint64_t rows;
    struct ew_error error;
};

/* ------------------------------------------------------------------- schema */

static bool parse_format(struct column *column, const char *format)
{
    static const struct {
        const char *format;
        uint8_t kind, bits;
    } known[] = {{"l", SIGNED, 64},   {"L", UNSIGNED, 64}, {"i", SIGNED, 32}, {"I", UNSIGNED, 32},
                 {"S", UNSIGNED, 16}, {"C", UNSIGNED, 8},  {"g", REAL, 64},   {"b", BOOLEAN, 1},
                 {"u", TEXT, 0},      {"z", BINARY, 0}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(format, known[i].format) != 0)
            continue;
        column->kind = known[i].kind;
        column->bits = known[i].bits;
        return true;
    }
    column->kind = SIGNED;
    column->bits = 64;
    return strncmp(format, "tsn:", 4) == 0;
}

static int make_key(struct lines *lines, struct column *column, const char *name, bool first)
{
    struct ew_buf key;
    ew_buf_init(&key, 0, NULL, NULL);
    if (!first)
        ew_buf_char(&key, ',');
    if (!lines->csv) {
        ew_buf_json_string(&key, name, strlen(name));
        ew_buf_char(&key, ':');
    }
    column->key = key.error == 0 ? ew_calloc(key.len + 1, 1) : NULL;
    if (column->key != NULL && key.len > 0)
        memcpy(column->key, key.data, key.len);
    column->key_len = key.len;
    ew_buf_done(&key);
    return column->key == NULL ? ETWATCH_ENOMEM : 0;
}

static int read_schema(struct lines *lines, const char *type)
{
    const struct ArrowSchema *schema = &lines->schema;
    if (strcmp(schema->format, "+s") != 0 || schema->n_children > EW_COLUMNS_MAX)
        return ew_error_set(&lines->error, ETWATCH_ENOTSUP, 0, "the stream is not a table");
    lines->columns = ew_calloc((size_t)schema->n_children + 1, sizeof *lines->columns);
    if (lines->columns == NULL)
        return ETWATCH_ENOMEM;
    lines->count = (uint32_t)schema->n_children;
    int rc = 0;
    for (uint32_t i = 0; i < lines->count && rc == 0; i++) {
        const struct ArrowSchema *child = schema->children[i];
        struct column *column = &lines->columns[i];
        column->dict = child->dictionary != NULL;
        column->json = !lines->csv &&
                       (strcmp(child->name, "fields") == 0 || strcmp(child->name, "causes") == 0);
        size_t len = strlen(child->name);
        column->fixed = len > 8 && strcmp(child->name + len - 8, "_percent") == 0;
        bool known = parse_format(column, child->format);
        if (column->dict) {
            known = strcmp(child->format, "i") == 0;
            known = known && parse_format(column, child->dictionary->format);
        }
        if (!known)
            return ew_error_set(&lines->error, ETWATCH_ENOTSUP, 0,
                                "column %s has an unsupported type (%s)", child->name,
                                child->format);
        rc = make_key(lines, column, child->name, i == 0 && (lines->csv || type == NULL));
    }
    return rc;
}

/* Prepares the start of each line, and writes the header of CSV. */
static int begin(struct lines *lines, const char *type)
{
    int rc = read_schema(lines, type);
    if (rc < 0)
        return rc;
    if (!lines->csv) {
        ew_buf_char(&lines->head, '{');
        if (type != NULL) {
            ew_buf_text(&lines->head, "\"type\":");
            ew_buf_json_string(&lines->head, type, strlen(type));
        }
        return lines->head.error;
    }
    for (uint32_t i = 0; i < lines->count; i++) {
        const char *name = lines->schema.children[i]->name;
        if (i > 0)
            ew_buf_char(&lines->out, ',');
        ew_buf_csv_field(&lines->out, name, strlen(name));
    }
    ew_buf_char(&lines->out, '\n');
    ew_buf_end_line(&lines->out);
    return lines->out.error;
}

/* --------------------------------------------------------------------- rows */

static bool is_null(const struct ArrowArray *array, size_t row)
{
    const uint8_t *valid = array->buffers[0];
    return valid != NULL && array->null_count != 0 && (valid[row >> 3] >> (row & 7) & 1) == 0;
}

static uint64_t number_at(const struct column *column, size_t row)
{
    const void *values = column->array->buffers[1];
    switch (column->bits) {
    case 64:
        return ((const uint64_t *)values)[row];
    case 32:
        return column->kind == SIGNED ? (uint64_t)(int64_t)((const int32_t *)values)[row]
                                      : ((const uint32_t *)values)[row];
    case 16:
        return ((const uint16_t *)values)[row];
    case 8:
        return ((const uint8_t *)values)[row];
    default:
        return ((const uint8_t *)values)[row >> 3] >> (row & 7) & 1;
    }
}

static void put_number(struct lines *lines, const struct column *column, size_t row)
{
    struct ew_buf *out = &lines->out;
    uint64_t value = number_at(column, row);
    double real;
    if (!ew_buf_reserve(out, NUMBER_ROOM))
        return;
    char *at = ew_buf_end(out), *end;
    switch (column->kind) {
    case SIGNED:
        if ((int64_t)value < 0) {
            *at++ = '-';
            value = 0 - value;
        }
        ew_buf_take(out, ew_raw_u64(at, value));
        break;
    case REAL:
        memcpy(&real, &value, sizeof real);
        end = column->fixed ? ew_raw_fixed3(at, real) : ew_raw_real(at, real, false);
        if (end != NULL)
            ew_buf_take(out, end);
        else if (!lines->csv)
            ew_buf_text(out, "null");
        break;
    case BOOLEAN:
        ew_buf_text(out, value != 0 ? "true" : "false");
        break;
    default:
        ew_buf_take(out, ew_raw_u64(at, value));
        break;
    }
}

static void put_hex(struct lines *lines, const uint8_t *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    if (!ew_buf_reserve(&lines->out, 2 * len + 2))
        return;
    char *at = ew_buf_end(&lines->out);
    if (!lines->csv)
        *at++ = '"';
    for (size_t i = 0; i < len; i++) {
        *at++ = digits[bytes[i] >> 4];
        *at++ = digits[bytes[i] & 15];
    }
    if (!lines->csv)
        *at++ = '"';
    ew_buf_take(&lines->out, at);
}

static void put_text(struct lines *lines, const struct column *column, size_t row)
{
    const struct ArrowArray *array = column->array;
    if (column->dict) {
        row = (size_t)((const int32_t *)array->buffers[1])[row];
        array = column->dictionary;
    }
    const int32_t *offsets = array->buffers[1];
    const char *text = (const char *)array->buffers[2] + offsets[row];
    size_t len = (size_t)(offsets[row + 1] - offsets[row]);
    if (column->kind == BINARY)
        put_hex(lines, (const uint8_t *)text, len);
    else if (lines->csv)
        ew_buf_csv_field(&lines->out, text, len);
    else if (column->json)
        ew_buf_bytes(&lines->out, text, len);
    else
        ew_buf_json_string(&lines->out, text, len);
}

static void put_row(struct lines *lines, size_t row)
{
    struct ew_buf *out = &lines->out;
    ew_buf_bytes(out, lines->head.data, lines->head.len);
    for (uint32_t i = 0; i < lines->count; i++) {
        const struct column *column = &lines->columns[i];
        ew_buf_bytes(out, column->key, column->key_len);
        if (is_null(column->array, row)) {
            if (!lines->csv)
                ew_buf_bytes(out, "null", 4);
        } else if (column->kind == TEXT || column->kind == BINARY) {
            put_text(lines, column, row);
        } else {
            put_number(lines, column, row);
        }
    }
    if (!lines->csv)
        ew_buf_char(out, '}');
    ew_buf_char(out, '\n');
    ew_buf_end_line(out);
}

static int put_batch(struct lines *lines, const struct ArrowArray *batch)
{
    if (batch->n_children != lines->count || batch->offset != 0)
        return ew_error_set(&lines->error, ETWATCH_EFORMAT, 0, "a batch does not match its schema");
    for (uint32_t i = 0; i < lines->count; i++) {
        lines->columns[i].array = batch->children[i];
        lines->columns[i].dictionary = batch->children[i]->dictionary;
        if (batch->children[i]->offset != 0 ||
            lines->columns[i].dict != (batch->children[i]->dictionary != NULL))
            return ew_error_set(&lines->error, ETWATCH_ENOTSUP, 0,
                                "a column of a batch is a slice, which is not supported");
    }
    for (int64_t row = 0; row < batch->length && lines->out.error == 0; row++)
        put_row(lines, (size_t)row);
    lines->rows += (uint64_t)batch->length;
    return lines->out.error;
}

/* --------------------------------------------------------------------- whole */

static int put_all(struct lines *lines, struct ArrowArrayStream *stream, const char *type)
{
    if (stream->get_schema(stream, &lines->schema) != 0) {
        lines->schema.release = NULL;
        return ew_error_set(&lines->error, ETWATCH_EFORMAT, 0, "the stream has no schema");
    }
    int rc = begin(lines, type);
    while (rc == 0) {
        struct ArrowArray batch;
        int failed = stream->get_next(stream, &batch);
        if (failed != 0)
            return ew_stream_error(stream, failed, &lines->error);
        if (batch.release == NULL)
            break;
        rc = put_batch(lines, &batch);
        batch.release(&batch);
    }
    int flushed = ew_buf_flush(&lines->out);
    return rc == 0 ? flushed : rc;
}

static void done(struct lines *lines)
{
    for (uint32_t i = 0; i < lines->count; i++)
        ew_free(lines->columns[i].key);
    ew_free(lines->columns);
    ew_buf_done(&lines->head);
    ew_buf_done(&lines->out);
    if (lines->schema.release != NULL)
        lines->schema.release(&lines->schema);
}

int etwatch_table_write(struct ArrowArrayStream *stream, uint32_t format, const char *type,
                        etwatch_write_fn write, void *ctx, uint64_t *ret_rows,
                        struct etwatch_error_info *reterr)
{
    if (stream == NULL || stream->release == NULL || write == NULL ||
        (format != ETWATCH_FORMAT_CSV && format != ETWATCH_FORMAT_CSV_RAW &&
         format != ETWATCH_FORMAT_JSONL))
        return ETWATCH_EINVAL;
    struct lines *lines = ew_calloc(1, sizeof *lines);
    int rc = lines == NULL ? ETWATCH_ENOMEM : 0;
    if (rc == 0) {
        lines->csv = format != ETWATCH_FORMAT_JSONL;
        ew_buf_init(&lines->head, 0, NULL, NULL);
        ew_buf_init(&lines->out, LINE_MAX_BYTES, write, ctx);
        lines->out.flush_at = FLUSH_AT;
        lines->out.csv_raw = format == ETWATCH_FORMAT_CSV_RAW;
        rc = put_all(lines, stream, type);
        if (rc < 0)
            ew_error_out(reterr, &lines->error, rc);
        else if (ret_rows != NULL)
            *ret_rows = lines->rows;
        done(lines);
    }
    stream->release(stream);
    ew_free(lines);
    return rc;
}
