/* SPDX-License-Identifier: MIT */
/*
 * The Arrow IPC file format: magic, the schema, a message per batch, then the dictionaries and a
 * footer with the location of everything.
 *
 * Dictionaries only grow while a stream is read, so the last one of a column is valid for every
 * batch; it is written after them. Readers of the file format start with the footer and find it
 * there. Buffers are written as they are in memory, each padded to 64 bytes, so that a reader can
 * map the file.
 */
#include "arrow/export.h"

#include <stdio.h>
#include <string.h>

#include "arrow/flatbuffer.h"
#include "base/alloc.h"
#include "base/error.h"

enum { ALIGN = 64, STAGE = 256 * 1024, VERSION_5 = 4 };
enum { SCHEMA_MESSAGE = 1, DICTIONARY_MESSAGE = 2, BATCH_MESSAGE = 3 };
/* Tags of the type union. */
enum {
    TYPE_INT = 2,
    TYPE_FLOAT = 3,
    TYPE_BINARY = 4,
    TYPE_UTF8 = 5,
    TYPE_BOOL = 6,
    TYPE_TIME = 10
};

struct block {
    uint64_t offset, body_size;
    uint32_t head_size;
};

struct blocks {
    struct block *list;
    size_t count, size;
};

struct column {
    const char *format;
    uint32_t bits; /* of a value or an offset */
    bool text, dict;
    int64_t dictionary_id;
    struct ArrowArray dictionary; /* the last dictionary; released: none yet */
};

struct file {
    etwatch_write_fn write;
    void *ctx;
    struct ArrowSchema schema;
    struct column *columns;
    uint32_t count;
    struct ew_flatbuffer flat;
    uint8_t *stage;
    size_t staged;
    uint64_t offset;
    struct blocks batches, dictionaries;
    uint64_t rows;
    struct ew_error error;
    int rc; /* sticky */
};

static const uint8_t zeros[ALIGN];

/* ------------------------------------------------------------------ writing */

static void flush(struct file *file)
{
    if (file->rc == 0 && file->staged > 0)
        file->rc = file->write(file->ctx, file->stage, file->staged);
    file->staged = 0;
}

static void put(struct file *file, const void *bytes, size_t size)
{
    if (file->rc != 0 || size == 0)
        return;
    file->offset += size;
    if (size > STAGE - file->staged)
        flush(file);
    if (size > STAGE) {
        if (file->rc == 0)
            file->rc = file->write(file->ctx, bytes, size);
        return;
    }
    memcpy(file->stage + file->staged, bytes, size);
    file->staged += size;
}

static size_t padding(uint64_t size, size_t align)
{
    return (size_t)((align - size % align) % align);
}

static void put_u32(struct file *file, uint32_t value)
{
    uint8_t bytes[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                        (uint8_t)(value >> 24)};
    put(file, bytes, sizeof bytes);
}

/* Writes the part of a message before its body, which then starts at a multiple of ALIGN. */
static void put_head(struct file *file, size_t header, unsigned header_type, uint64_t body_size,
                     struct block *ret_block)
{
    struct ew_flatbuffer *flat = &file->flat;
    size_t size = 0;
    ew_flatbuffer_table_begin(flat);
    ew_flatbuffer_field(flat, 3, body_size, 8);
    ew_flatbuffer_field_ref(flat, 2, header);
    ew_flatbuffer_field(flat, 0, VERSION_5, 2);
    ew_flatbuffer_field(flat, 1, header_type, 1);
    const uint8_t *bytes = ew_flatbuffer_finish(flat, ew_flatbuffer_table_end(flat), &size);
    if (bytes == NULL) {
        file->rc = flat->error;
        return;
    }
    size_t pad = padding(file->offset + 8 + size, ALIGN);
    *ret_block = (struct block){
        .offset = file->offset, .head_size = (uint32_t)(8 + size + pad), .body_size = body_size};
    put_u32(file, UINT32_MAX);
    put_u32(file, (uint32_t)(size + pad));
    put(file, bytes, size);
    put(file, zeros, pad);
}

static void keep_block(struct file *file, struct blocks *blocks, const struct block *block)
{
    if (blocks->count == blocks->size) {
        size_t size = blocks->size == 0 ? 64 : blocks->size * 2;
        struct block *list = ew_realloc_array(blocks->list, size, sizeof *list);
        if (list == NULL) {
            file->rc = ETWATCH_ENOMEM;
            return;
        }
        blocks->list = list;
        blocks->size = size;
    }
    blocks->list[blocks->count++] = *block;
}

/* ------------------------------------------------------------------- schema */

static size_t make_int(struct ew_flatbuffer *flat, unsigned bits, bool is_signed)
{
    ew_flatbuffer_table_begin(flat);
    ew_flatbuffer_field(flat, 0, bits, 4);
    ew_flatbuffer_field(flat, 1, is_signed, 1);
    return ew_flatbuffer_table_end(flat);
}

static size_t make_time(struct ew_flatbuffer *flat, const char *zone)
{
    size_t text = zone[0] != '\0' ? ew_flatbuffer_string(flat, zone) : 0;
    ew_flatbuffer_table_begin(flat);
    if (text != 0)
        ew_flatbuffer_field_ref(flat, 1, text);
    ew_flatbuffer_field(flat, 0, 3, 2); /* nanoseconds */
    return ew_flatbuffer_table_end(flat);
}

static size_t make_type(struct ew_flatbuffer *flat, const char *format, unsigned *ret_type)
{
    *ret_type = TYPE_INT;
    switch (format[0]) {
    case 'l':
    case 'L':
        return make_int(flat, 64, format[0] == 'l');
    case 'i':
    case 'I':
        return make_int(flat, 32, format[0] == 'i');
    case 'S':
        return make_int(flat, 16, false);
    case 'C':
        return make_int(flat, 8, false);
    case 't':
        *ret_type = TYPE_TIME;
        return make_time(flat, format + strlen("tsn:"));
    default:
        break;
    }
    *ret_type = format[0] == 'g'   ? TYPE_FLOAT
                : format[0] == 'b' ? TYPE_BOOL
                : format[0] == 'u' ? TYPE_UTF8
                                   : TYPE_BINARY;
    ew_flatbuffer_table_begin(flat);
    if (format[0] == 'g')
        ew_flatbuffer_field(flat, 0, 2, 2); /* double precision */
    return ew_flatbuffer_table_end(flat);
}

static size_t make_field(struct file *file, uint32_t i)
{
    struct ew_flatbuffer *flat = &file->flat;
    const struct ArrowSchema *schema = file->schema.children[i];
    const struct column *column = &file->columns[i];
    unsigned type;
    size_t dictionary = 0;
    size_t name = ew_flatbuffer_string(flat, schema->name != NULL ? schema->name : "");
    size_t type_at = make_type(flat, column->dict ? "u" : column->format, &type);
    if (column->dict) {
        size_t index = make_int(flat, 32, true);
        ew_flatbuffer_table_begin(flat);
        ew_flatbuffer_field(flat, 0, (uint64_t)column->dictionary_id, 8);
        ew_flatbuffer_field_ref(flat, 1, index);
        dictionary = ew_flatbuffer_table_end(flat);
    }
    ew_flatbuffer_vector_begin(flat, 0, 4, 4);
    size_t children = ew_flatbuffer_vector_end(flat, 0);
    ew_flatbuffer_table_begin(flat);
    ew_flatbuffer_field_ref(flat, 0, name);
    ew_flatbuffer_field_ref(flat, 3, type_at);
    ew_flatbuffer_field_ref(flat, 5, children);
    if (dictionary != 0)
        ew_flatbuffer_field_ref(flat, 4, dictionary);
    ew_flatbuffer_field(flat, 1, (schema->flags & ARROW_FLAG_NULLABLE) != 0, 1);
    ew_flatbuffer_field(flat, 2, type, 1);
    return ew_flatbuffer_table_end(flat);
}

static size_t make_schema(struct file *file)
{
    struct ew_flatbuffer *flat = &file->flat;
    size_t *fields = ew_calloc((size_t)file->count + 1, sizeof *fields);
    if (fields == NULL) {
        file->rc = ETWATCH_ENOMEM;
        return 0;
    }
    for (uint32_t i = 0; i < file->count; i++)
        fields[i] = make_field(file, i);
    ew_flatbuffer_vector_begin(flat, file->count, 4, 4);
    for (uint32_t i = file->count; i > 0; i--)
        ew_flatbuffer_push_ref(flat, fields[i - 1]);
    size_t list = ew_flatbuffer_vector_end(flat, file->count);
    ew_free(fields);
    ew_flatbuffer_table_begin(flat);
    ew_flatbuffer_field_ref(flat, 1, list);
    ew_flatbuffer_field(flat, 0, 0, 2); /* little endian */
    return ew_flatbuffer_table_end(flat);
}

/* Width of a value in bits; 0: unsupported type. */
static uint32_t bits_of(const char *format)
{
    static const struct {
        const char *format;
        uint32_t bits;
    } known[] = {{"l", 64}, {"L", 64}, {"g", 64}, {"i", 32}, {"I", 32},
                 {"S", 16}, {"C", 8},  {"b", 1},  {"u", 32}, {"z", 32}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].format, format) == 0)
            return known[i].bits;
    return strncmp(format, "tsn:", 4) == 0 ? 64 : 0;
}

static int read_schema(struct file *file)
{
    const struct ArrowSchema *schema = &file->schema;
    if (strcmp(schema->format, "+s") != 0 || schema->n_children > EW_COLUMNS_MAX)
        return ew_error_set(&file->error, ETWATCH_ENOTSUP, 0, "the stream is not a table");
    file->columns = ew_calloc((size_t)schema->n_children + 1, sizeof *file->columns);
    if (file->columns == NULL)
        return ETWATCH_ENOMEM;
    file->count = (uint32_t)schema->n_children;
    for (uint32_t i = 0; i < file->count; i++) {
        const struct ArrowSchema *child = schema->children[i];
        struct column *column = &file->columns[i];
        column->format = child->format;
        column->bits = bits_of(child->format);
        column->text = child->format[0] == 'u' || child->format[0] == 'z';
        column->dict = child->dictionary != NULL;
        column->dictionary_id = i;
        bool known = column->bits != 0 && child->n_children == 0;
        if (column->dict)
            known = strcmp(child->format, "i") == 0 && strcmp(child->dictionary->format, "u") == 0;
        if (!known)
            return ew_error_set(&file->error, ETWATCH_ENOTSUP, 0,
                                "column %s has an unsupported type (%s)", child->name,
                                child->format);
    }
    return 0;
}

/* ------------------------------------------------------------------ batches */

struct part {
    const void *bytes;
    uint64_t size;
};

/* The buffers of an array, in the order of the format. Returns their number. */
static unsigned list_parts(const struct ArrowArray *array, uint32_t bits, bool text,
                           struct part parts[3])
{
    uint64_t length = (uint64_t)array->length;
    bool nulls = array->null_count != 0 && array->buffers[0] != NULL;
    parts[0] = (struct part){array->buffers[0], nulls ? (length + 7) / 8 : 0};
    parts[1] = (struct part){array->buffers[1], ((length + text) * bits + 7) / 8};
    if (!text)
        return 2;
    const int32_t *offsets = array->buffers[1];
    parts[2] = (struct part){array->buffers[2], (uint64_t)offsets[length]};
    return 3;
}

/* A RecordBatch: nodes and buffers are vectors of structs, written last member first. */
static size_t make_batch(struct ew_flatbuffer *flat, int64_t length,
                         const struct ArrowArray *const *arrays, size_t count,
                         const struct part *parts, size_t part_count)
{
    uint64_t end = 0;
    for (size_t i = 0; i < part_count; i++)
        end += parts[i].size + padding(parts[i].size, ALIGN);
    ew_flatbuffer_vector_begin(flat, part_count, 16, 8);
    for (size_t i = part_count; i > 0; i--) {
        end -= parts[i - 1].size + padding(parts[i - 1].size, ALIGN);
        ew_flatbuffer_push(flat, parts[i - 1].size, 8);
        ew_flatbuffer_push(flat, end, 8);
    }
    size_t buffers = ew_flatbuffer_vector_end(flat, part_count);
    ew_flatbuffer_vector_begin(flat, count, 16, 8);
    for (size_t i = count; i > 0; i--) {
        ew_flatbuffer_push(flat, (uint64_t)arrays[i - 1]->null_count, 8);
        ew_flatbuffer_push(flat, (uint64_t)arrays[i - 1]->length, 8);
    }
    size_t nodes = ew_flatbuffer_vector_end(flat, count);
    ew_flatbuffer_table_begin(flat);
    ew_flatbuffer_field(flat, 0, (uint64_t)length, 8);
    ew_flatbuffer_field_ref(flat, 1, nodes);
    ew_flatbuffer_field_ref(flat, 2, buffers);
    return ew_flatbuffer_table_end(flat);
}

static uint64_t body_size(const struct part *parts, size_t count)
{
    uint64_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += parts[i].size + padding(parts[i].size, ALIGN);
    return size;
}

static void put_body(struct file *file, const struct part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put(file, parts[i].bytes, (size_t)parts[i].size);
        put(file, zeros, padding(parts[i].size, ALIGN));
    }
}

/* Whether a dictionary starts with all entries of the previous one. */
static bool continues(const struct ArrowArray *before, const struct ArrowArray *after)
{
    if (before->release == NULL || before->length == 0)
        return true;
    if (after->length < before->length)
        return false;
    if (after->buffers[2] == before->buffers[2])
        return true;
    const int32_t *old = before->buffers[1], *new = after->buffers[1];
    size_t count = (size_t)before->length;
    return memcmp(old, new, (count + 1) * sizeof *old) == 0 &&
           memcmp(before->buffers[2], after->buffers[2], (size_t)old[count]) == 0;
}

/* Moves the dictionary out of a batch and keeps it. */
static int keep_dictionary(struct file *file, uint32_t i, struct ArrowArray *array)
{
    struct ArrowArray *dictionary = array->dictionary, *kept = &file->columns[i].dictionary;
    if (dictionary == NULL || dictionary->release == NULL || dictionary->offset != 0)
        return ew_error_set(&file->error, ETWATCH_EFORMAT, 0, "column %s has no dictionary",
                            file->schema.children[i]->name);
    if (!continues(kept, dictionary))
        return ew_error_set(&file->error, ETWATCH_ENOTSUP, 0,
                            "the dictionary of column %s differs between batches; entries may only "
                            "be appended",
                            file->schema.children[i]->name);
    if (kept->release != NULL)
        kept->release(kept);
    *kept = *dictionary;
    dictionary->release = NULL;
    return 0;
}

static int put_batch(struct file *file, struct ArrowArray *batch)
{
    size_t part_count = 0;
    if (batch->n_children != file->count || batch->offset != 0)
        return ew_error_set(&file->error, ETWATCH_EFORMAT, 0, "a batch does not match its schema");
    struct part *parts = ew_calloc((size_t)file->count * 3 + 1, sizeof *parts);
    int rc = parts == NULL ? ETWATCH_ENOMEM : 0;
    for (uint32_t i = 0; i < file->count && rc == 0; i++) {
        struct ArrowArray *array = batch->children[i];
        const struct column *column = &file->columns[i];
        if (array->offset != 0 || array->length != batch->length)
            rc = ew_error_set(&file->error, ETWATCH_ENOTSUP, 0,
                              "a column of a batch is a slice, which is not supported");
        else if (column->dict)
            rc = keep_dictionary(file, i, array);
        if (rc == 0)
            part_count += list_parts(array, column->bits, column->text, parts + part_count);
    }
    if (rc == 0) {
        struct block block = {0};
        ew_flatbuffer_clear(&file->flat);
        size_t header = make_batch(&file->flat, batch->length,
                                   (const struct ArrowArray *const *)batch->children, file->count,
                                   parts, part_count);
        put_head(file, header, BATCH_MESSAGE, body_size(parts, part_count), &block);
        put_body(file, parts, part_count);
        if (file->rc == 0)
            keep_block(file, &file->batches, &block);
        file->rows += (uint64_t)batch->length;
    }
    ew_free(parts);
    return rc;
}

static void put_dictionary(struct file *file, const struct column *column)
{
    static const int32_t no_offsets[2] = {0};
    static const void *const no_buffers[3] = {NULL, no_offsets, no_offsets};
    struct ArrowArray none = {.buffers = (const void **)(uintptr_t)no_buffers};
    const struct ArrowArray *dictionary =
        column->dictionary.release != NULL ? &column->dictionary : &none;
    struct part parts[3];
    struct block block = {0};
    unsigned count = list_parts(dictionary, 32, true, parts);
    ew_flatbuffer_clear(&file->flat);
    size_t data = make_batch(&file->flat, dictionary->length, &dictionary, 1, parts, count);
    ew_flatbuffer_table_begin(&file->flat);
    ew_flatbuffer_field(&file->flat, 0, (uint64_t)column->dictionary_id, 8);
    ew_flatbuffer_field_ref(&file->flat, 1, data);
    size_t header = ew_flatbuffer_table_end(&file->flat);
    put_head(file, header, DICTIONARY_MESSAGE, body_size(parts, count), &block);
    put_body(file, parts, count);
    if (file->rc == 0)
        keep_block(file, &file->dictionaries, &block);
}

/* ------------------------------------------------------------- the whole file */

static size_t make_blocks(struct ew_flatbuffer *flat, const struct blocks *blocks)
{
    ew_flatbuffer_vector_begin(flat, blocks->count, 24, 8);
    for (size_t i = blocks->count; i > 0; i--) {
        ew_flatbuffer_push(flat, blocks->list[i - 1].body_size, 8);
        ew_flatbuffer_push(flat, blocks->list[i - 1].head_size,
                           8); /* four bytes, plus four of padding */
        ew_flatbuffer_push(flat, blocks->list[i - 1].offset, 8);
    }
    return ew_flatbuffer_vector_end(flat, blocks->count);
}

static void put_footer(struct file *file)
{
    struct ew_flatbuffer *flat = &file->flat;
    size_t size = 0;
    put_u32(file, UINT32_MAX); /* end of the messages */
    put_u32(file, 0);
    ew_flatbuffer_clear(flat);
    size_t schema = make_schema(file);
    size_t dictionaries = make_blocks(flat, &file->dictionaries);
    size_t batches = make_blocks(flat, &file->batches);
    ew_flatbuffer_table_begin(flat);
    ew_flatbuffer_field_ref(flat, 1, schema);
    ew_flatbuffer_field_ref(flat, 2, dictionaries);
    ew_flatbuffer_field_ref(flat, 3, batches);
    ew_flatbuffer_field(flat, 0, VERSION_5, 2);
    const uint8_t *bytes = ew_flatbuffer_finish(flat, ew_flatbuffer_table_end(flat), &size);
    if (bytes == NULL) {
        file->rc = flat->error;
        return;
    }
    put(file, bytes, size);
    put_u32(file, (uint32_t)size);
    put(file, "ARROW1", 6);
}

static int begin(struct file *file, struct ArrowArrayStream *stream)
{
    struct block block;
    file->stage = ew_calloc(STAGE, 1);
    if (file->stage == NULL)
        return ETWATCH_ENOMEM;
    if (stream->get_schema(stream, &file->schema) != 0) {
        file->schema.release = NULL;
        return ew_error_set(&file->error, ETWATCH_EFORMAT, 0, "the stream has no schema");
    }
    int rc = read_schema(file);
    if (rc < 0)
        return rc;
    put(file, "ARROW1\0\0", 8);
    size_t schema = make_schema(file);
    put_head(file, schema, SCHEMA_MESSAGE, 0, &block);
    return 0;
}

static int put_batches(struct file *file, struct ArrowArrayStream *stream)
{
    int rc = 0;
    while (rc == 0 && file->rc == 0) {
        struct ArrowArray batch;
        int failed = stream->get_next(stream, &batch);
        if (failed != 0)
            return ew_stream_error(stream, failed, &file->error);
        if (batch.release == NULL)
            break;
        rc = put_batch(file, &batch);
        batch.release(&batch);
    }
    return rc;
}

static void done(struct file *file)
{
    for (uint32_t i = 0; i < file->count; i++)
        if (file->columns[i].dictionary.release != NULL)
            file->columns[i].dictionary.release(&file->columns[i].dictionary);
    if (file->schema.release != NULL)
        file->schema.release(&file->schema);
    ew_free(file->columns);
    ew_free(file->stage);
    ew_free(file->batches.list);
    ew_free(file->dictionaries.list);
    ew_flatbuffer_done(&file->flat);
}

int etwatch_arrow_write(struct ArrowArrayStream *stream, etwatch_write_fn write, void *ctx,
                        uint64_t *ret_rows, struct etwatch_error_info *reterr)
{
    if (stream == NULL || stream->release == NULL || write == NULL)
        return ETWATCH_EINVAL;
    struct file *file = ew_calloc(1, sizeof *file);
    int rc = file == NULL ? ETWATCH_ENOMEM : 0;
    if (rc == 0) {
        file->write = write;
        file->ctx = ctx;
        ew_flatbuffer_init(&file->flat);
        rc = begin(file, stream);
        if (rc == 0)
            rc = put_batches(file, stream);
        for (uint32_t i = 0; i < file->count && rc == 0; i++)
            if (file->columns[i].dict)
                put_dictionary(file, &file->columns[i]);
        if (rc == 0)
            put_footer(file);
        flush(file);
        rc = rc == 0 ? file->rc : rc;
        if (rc < 0)
            ew_error_out(reterr, &file->error, rc);
        else if (ret_rows != NULL)
            *ret_rows = file->rows;
        done(file);
    }
    stream->release(stream);
    ew_free(file);
    return rc;
}
