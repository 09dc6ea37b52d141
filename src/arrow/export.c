/* SPDX-License-Identifier: MIT */
/*
 * Converts our structs to those of Arrow's C data interface. Nothing is copied: the array of a
 * column refers to its batch and drops the reference in its release, at any time and on any thread;
 * so a consumer may keep one column and release the others.
 *
 * Each struct and its children are separate blocks of memory, because a child may be moved out of
 * its parent and released later.
 */
#include "arrow/export.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* ------------------------------------------------------------------- schema */

static const char *format_of(uint8_t type)
{
    switch (type) {
    case EW_COLUMN_I64:
        return "l";
    case EW_COLUMN_U64:
        return "L";
    case EW_COLUMN_F64:
        return "g";
    case EW_COLUMN_TIME:
        return "tsn:UTC";
    case EW_COLUMN_U32:
        return "I";
    case EW_COLUMN_U16:
        return "S";
    case EW_COLUMN_U8:
        return "C";
    case EW_COLUMN_BOOL:
        return "b";
    case EW_COLUMN_TEXT:
        return "u";
    case EW_COLUMN_BINARY:
        return "z";
    default: /* I32, and the indexes of DICT */
        return "i";
    }
}

struct schema_memory {
    char *name;
    struct ArrowSchema **children;
    struct ArrowSchema *own; /* the children, or the dictionary */
};

static void release_schema(struct ArrowSchema *schema)
{
    struct schema_memory *memory = schema->private_data;
    for (int64_t i = 0; i < schema->n_children; i++)
        if (schema->children[i]->release != NULL)
            schema->children[i]->release(schema->children[i]);
    if (schema->dictionary != NULL && schema->dictionary->release != NULL)
        schema->dictionary->release(schema->dictionary);
    ew_free(memory->name);
    ew_free(memory->children);
    ew_free(memory->own);
    ew_free(memory);
    schema->release = NULL;
}

/* A schema without children that owns its name. */
static int begin_schema(const char *format, const char *name, struct ArrowSchema *ret_schema)
{
    struct schema_memory *memory = ew_calloc(1, sizeof *memory);
    if (memory == NULL)
        return ETWATCH_ENOMEM;
    memory->name = ew_strdup(name);
    if (memory->name == NULL) {
        ew_free(memory);
        return ETWATCH_ENOMEM;
    }
    *ret_schema = (struct ArrowSchema){
        .format = format,
        .name = memory->name,
        .release = release_schema,
        .private_data = memory,
    };
    return 0;
}

static int column_schema(const struct ew_column_def *def, struct ArrowSchema *ret_schema)
{
    struct ArrowSchema schema;
    int rc = begin_schema(format_of(def->type), def->name, &schema);
    if (rc < 0)
        return rc;
    schema.flags = def->nullable ? ARROW_FLAG_NULLABLE : 0;
    if (def->type == EW_COLUMN_DICT) {
        struct schema_memory *memory = schema.private_data;
        memory->own = ew_calloc(1, sizeof *memory->own);
        rc = memory->own == NULL ? ETWATCH_ENOMEM : begin_schema("u", "", memory->own);
        if (rc < 0) {
            release_schema(&schema);
            return rc;
        }
        memory->own->flags = ARROW_FLAG_NULLABLE;
        schema.dictionary = memory->own;
    }
    *ret_schema = schema;
    return 0;
}

int ew_layout_export(const struct ew_layout *layout, struct ArrowSchema *ret_schema)
{
    struct ArrowSchema schema;
    uint32_t count = ew_layout_count(layout);
    int rc = begin_schema("+s", "", &schema);
    if (rc < 0)
        return rc;
    struct schema_memory *memory = schema.private_data;
    memory->own = ew_calloc((size_t)count + 1, sizeof *memory->own);
    memory->children = ew_calloc((size_t)count + 1, sizeof *memory->children);
    rc = memory->own == NULL || memory->children == NULL ? ETWATCH_ENOMEM : 0;
    schema.children = memory->children;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        rc = column_schema(ew_layout_column(layout, i), &memory->own[i]);
        memory->children[i] = &memory->own[i];
        schema.n_children += rc == 0;
    }
    if (rc < 0) {
        release_schema(&schema);
        return rc;
    }
    *ret_schema = schema;
    return 0;
}

/* ------------------------------------------------------------------- arrays */

struct array_memory {
    struct ew_batch *batch;
    struct ew_dictionary *dictionary; /* of the array of a dictionary; otherwise NULL */
    const void *buffers[3];
    struct ArrowArray **children;
    struct ArrowArray *own;
};

static void release_array(struct ArrowArray *array)
{
    struct array_memory *memory = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release != NULL)
            array->children[i]->release(array->children[i]);
    if (array->dictionary != NULL && array->dictionary->release != NULL)
        array->dictionary->release(array->dictionary);
    ew_batch_unref(memory->batch);
    ew_dictionary_unref(memory->dictionary);
    ew_free(memory->children);
    ew_free(memory->own);
    ew_free(memory);
    array->release = NULL;
}

static struct array_memory *begin_array(int64_t length, int64_t buffers, struct ArrowArray *array)
{
    struct array_memory *memory = ew_calloc(1, sizeof *memory);
    if (memory == NULL)
        return NULL;
    *array = (struct ArrowArray){
        .length = length,
        .n_buffers = buffers,
        .buffers = memory->buffers,
        .release = release_array,
        .private_data = memory,
    };
    return memory;
}

static int dictionary_array(const struct ew_batch *batch, const struct ew_batch_column *column,
                            struct ArrowArray *ret_array)
{
    struct array_memory *memory = begin_array(column->entry_count, 3, ret_array);
    if (memory == NULL)
        return ETWATCH_ENOMEM;
    if (column->dictionary == NULL) { /* column without values */
        memory->batch = ew_batch_ref((struct ew_batch *)batch);
        memory->buffers[1] = memory->buffers[2] = ew_layout_zeros(batch->layout);
        return 0;
    }
    memory->dictionary = ew_dictionary_ref(column->dictionary);
    memory->buffers[1] = column->dictionary->offsets;
    memory->buffers[2] = column->dictionary->text;
    return 0;
}

static int column_array(struct ew_batch *batch, uint32_t i, struct ArrowArray *ret_array)
{
    const struct ew_batch_column *column = &batch->columns[i];
    const struct ew_column_def *def = ew_layout_column(batch->layout, i);
    const uint8_t *zeros = ew_layout_zeros(batch->layout);
    bool text = def->type == EW_COLUMN_TEXT || def->type == EW_COLUMN_BINARY;
    struct ArrowArray array;
    struct array_memory *memory = begin_array(batch->rows, text ? 3 : 2, &array);
    if (memory == NULL)
        return ETWATCH_ENOMEM;
    array.null_count = column->null_count;
    memory->batch = ew_batch_ref(batch);
    memory->buffers[0] = column->valid;
    memory->buffers[1] = column->values != NULL ? column->values : zeros;
    if (column->values == NULL)
        memory->buffers[0] = zeros;
    if (text)
        memory->buffers[2] = column->text != NULL ? column->text : zeros;
    if (def->type == EW_COLUMN_DICT) {
        memory->own = ew_calloc(1, sizeof *memory->own);
        int rc =
            memory->own == NULL ? ETWATCH_ENOMEM : dictionary_array(batch, column, memory->own);
        if (rc < 0) {
            release_array(&array);
            return rc;
        }
        array.dictionary = memory->own;
    }
    *ret_array = array;
    return 0;
}

int ew_batch_export(struct ew_batch *batch, struct ArrowArray *ret_array)
{
    uint32_t count = ew_layout_count(batch->layout);
    struct ArrowArray array;
    struct array_memory *memory = begin_array(batch->rows, 1, &array);
    if (memory == NULL)
        return ETWATCH_ENOMEM;
    memory->own = ew_calloc((size_t)count + 1, sizeof *memory->own);
    memory->children = ew_calloc((size_t)count + 1, sizeof *memory->children);
    int rc = memory->own == NULL || memory->children == NULL ? ETWATCH_ENOMEM : 0;
    array.children = memory->children;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        rc = column_array(batch, i, &memory->own[i]);
        memory->children[i] = &memory->own[i];
        array.n_children += rc == 0;
    }
    if (rc < 0) {
        release_array(&array);
        return rc;
    }
    *ret_array = array;
    return 0;
}

/* ------------------------------------------------------------------ streams */

struct stream {
    struct ew_layout *layout;
    struct ew_batches batches;
    char message[256];
    bool failed;
};

static int errno_of(int rc)
{
    switch (rc) {
    case 0:
        return 0;
    case ETWATCH_ENOMEM:
        return ENOMEM;
    case ETWATCH_ESTATE:
        return ECANCELED;
    default:
        return EIO;
    }
}

int ew_stream_error(struct ArrowArrayStream *stream, int failed, struct ew_error *reterr)
{
    const char *text = stream->get_last_error(stream);
    int rc = failed == ENOMEM ? ETWATCH_ENOMEM : failed == ECANCELED ? ETWATCH_ESTATE : ETWATCH_EOS;
    return ew_error_set(reterr, rc, 0, "%s", text != NULL ? text : etwatch_strerror(rc));
}

static int fail(struct stream *stream, int rc)
{
    stream->failed = true;
    if (stream->message[0] == '\0')
        (void)snprintf(stream->message, sizeof stream->message, "%s", etwatch_strerror(rc));
    return errno_of(rc);
}

static int get_schema(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    struct stream *stream = self->private_data;
    int rc = ew_layout_export(stream->layout, out);
    return rc < 0 ? fail(stream, rc) : 0;
}

static int get_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    struct stream *stream = self->private_data;
    struct ew_batch *batch = NULL;
    if (stream->failed)
        return EIO;
    int rc =
        stream->batches.next(stream->batches.ctx, &batch, stream->message, sizeof stream->message);
    if (rc == 0 && batch == NULL) {
        memset(out, 0, sizeof *out); /* the end is marked by a released array */
        return 0;
    }
    if (rc == 0)
        rc = ew_batch_export(batch, out);
    ew_batch_unref(batch);
    return rc < 0 ? fail(stream, rc) : 0;
}

static const char *get_last_error(struct ArrowArrayStream *self)
{
    struct stream *stream = self->private_data;
    return stream->failed ? stream->message : NULL;
}

static void release_stream(struct ArrowArrayStream *self)
{
    struct stream *stream = self->private_data;
    if (stream->batches.done != NULL)
        stream->batches.done(stream->batches.ctx);
    ew_layout_unref(stream->layout);
    ew_free(stream);
    self->release = NULL;
}

int ew_stream_export(struct ew_layout *layout, const struct ew_batches *batches,
                     struct ArrowArrayStream *ret_stream)
{
    struct stream *stream = ew_calloc(1, sizeof *stream);
    if (stream == NULL)
        return ETWATCH_ENOMEM;
    stream->layout = ew_layout_ref(layout);
    stream->batches = *batches;
    *ret_stream = (struct ArrowArrayStream){
        .get_schema = get_schema,
        .get_next = get_next,
        .get_last_error = get_last_error,
        .release = release_stream,
        .private_data = stream,
    };
    return 0;
}

/* -------------------------------------------------------------------- lists */

void ew_batch_list_done(struct ew_batch_list *list)
{
    for (size_t i = list->first; i < list->count; i++)
        ew_batch_unref(list->list[i]);
    ew_free(list->list);
    memset(list, 0, sizeof *list);
}

int ew_batch_list_add(struct ew_batch_list *list, struct ew_batch *batch)
{
    if (batch == NULL)
        return 0;
    if (list->count == list->size && list->first > 0) {
        memmove(list->list, list->list + list->first,
                (list->count - list->first) * sizeof(struct ew_batch *));
        list->count -= list->first;
        list->first = 0;
    }
    if (list->count == list->size) {
        size_t size = list->size == 0 ? 16 : list->size * 2;
        struct ew_batch **larger = ew_realloc_array(list->list, size, sizeof(struct ew_batch *));
        if (larger == NULL) {
            ew_batch_unref(batch);
            return ETWATCH_ENOMEM;
        }
        list->list = larger;
        list->size = size;
    }
    list->list[list->count++] = batch;
    list->rows += batch->rows;
    return 0;
}

struct ew_batch *ew_batch_list_take(struct ew_batch_list *list)
{
    if (list->first == list->count)
        return NULL;
    struct ew_batch *batch = list->list[list->first++];
    list->rows -= batch->rows;
    return batch;
}

int ew_batch_list_copy(const struct ew_batch_list *from, struct ew_batch_list *ret_list)
{
    struct ew_batch_list copy = {0};
    for (size_t i = from->first; i < from->count; i++) {
        if (ew_batch_list_add(&copy, ew_batch_ref(from->list[i])) < 0) {
            ew_batch_list_done(&copy);
            return ETWATCH_ENOMEM;
        }
    }
    *ret_list = copy;
    return 0;
}

static int next_of_list(void *ctx, struct ew_batch **ret_batch, char *message, size_t size)
{
    (void)message;
    (void)size;
    *ret_batch = ew_batch_list_take(ctx);
    return 0;
}

static void free_list(void *ctx)
{
    ew_batch_list_done(ctx);
    ew_free(ctx);
}

int ew_batch_list_export(struct ew_batch_list *list, struct ew_layout *layout,
                         struct ArrowArrayStream *ret_stream)
{
    struct ew_batch_list *own = ew_calloc(1, sizeof *own);
    if (own == NULL)
        return ETWATCH_ENOMEM;
    struct ew_batches batches = {.next = next_of_list, .done = free_list, .ctx = own};
    int rc = ew_stream_export(layout, &batches, ret_stream);
    if (rc < 0) {
        ew_free(own);
        return rc;
    }
    *own = *list;
    memset(list, 0, sizeof *list);
    return 0;
}
