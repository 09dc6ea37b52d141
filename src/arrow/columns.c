/* SPDX-License-Identifier: MIT */
/*
 * Owns the memory of columns. A builder's buffers double until a batch is full and then become the
 * batch's, so nothing is copied; the next batch starts with as much room as the last one needed. A
 * batch is cut early if its text grows large, or if it has very many columns: both its rows and its
 * bytes are bounded.
 *
 * Shared objects (layouts, batches) are reference-counted, because a consumer may release an array
 * on any thread.
 */
#include "arrow/columns.h"

#include <stdatomic.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/utf8.h"

enum {
    FIRST_ROWS = 256,
    TEXT_FULL = 32 << 20, /* of all columns of a batch */
    TEXT_FIRST = 4096,
    CELLS_MAX = 8 << 20, /* a batch of very many columns has fewer rows */
};

struct ew_layout {
    atomic_uint refs;
    uint32_t count, size, batch_rows;
    struct ew_column_def *columns;
    uint8_t *zeros;
};

struct batch {
    struct ew_batch base;
    atomic_uint refs;
};

/* ------------------------------------------------------------------ layouts */

int ew_layout_new(uint32_t batch_rows, struct ew_layout **ret_layout)
{
    struct ew_layout *layout = ew_calloc(1, sizeof *layout);
    if (layout == NULL)
        return ETWATCH_ENOMEM;
    atomic_init(&layout->refs, 1);
    layout->batch_rows = batch_rows == 0 ? EW_BATCH_ROWS : batch_rows;
    /* Never written to: the system maps one shared page of zeros. */
    layout->zeros = ew_calloc((size_t)layout->batch_rows + 1, 8);
    if (layout->zeros == NULL) {
        ew_free(layout);
        return ETWATCH_ENOMEM;
    }
    *ret_layout = layout;
    return 0;
}

int ew_layout_add(struct ew_layout *layout, const char *name, enum ew_column_type type,
                  bool nullable)
{
    if (layout->count == EW_COLUMNS_MAX)
        return ETWATCH_ELIMIT;
    if (layout->count == layout->size) {
        uint32_t size = layout->size == 0 ? 16 : layout->size * 2;
        struct ew_column_def *columns = ew_realloc_array(layout->columns, size, sizeof *columns);
        if (columns == NULL)
            return ETWATCH_ENOMEM;
        layout->columns = columns;
        layout->size = size;
    }
    char *copy = ew_strdup(name);
    if (copy == NULL)
        return ETWATCH_ENOMEM;
    layout->columns[layout->count++] =
        (struct ew_column_def){.name = copy, .type = (uint8_t)type, .nullable = nullable};
    return 0;
}

struct ew_layout *ew_layout_ref(struct ew_layout *layout)
{
    atomic_fetch_add_explicit(&layout->refs, 1, memory_order_relaxed);
    return layout;
}

void ew_layout_unref(struct ew_layout *layout)
{
    if (layout == NULL || atomic_fetch_sub_explicit(&layout->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (uint32_t i = 0; i < layout->count; i++)
        ew_free(layout->columns[i].name);
    ew_free(layout->columns);
    ew_free(layout->zeros);
    ew_free(layout);
}

uint32_t ew_layout_count(const struct ew_layout *layout)
{
    return layout->count;
}

const struct ew_column_def *ew_layout_column(const struct ew_layout *layout, uint32_t i)
{
    return &layout->columns[i];
}

int ew_layout_find(const struct ew_layout *layout, const char *name)
{
    for (uint32_t i = 0; i < layout->count; i++)
        if (strcmp(layout->columns[i].name, name) == 0)
            return (int)i;
    return -1;
}

const uint8_t *ew_layout_zeros(const struct ew_layout *layout)
{
    return layout->zeros;
}

uint32_t ew_arrow_column_bits(uint8_t type)
{
    switch (type) {
    case EW_COLUMN_BOOL:
        return 1;
    case EW_COLUMN_U8:
        return 8;
    case EW_COLUMN_U16:
        return 16;
    case EW_COLUMN_I64:
    case EW_COLUMN_U64:
    case EW_COLUMN_F64:
    case EW_COLUMN_TIME:
        return 64;
    default:
        return 32;
    }
}

/* ----------------------------------------------------------------- batches */

struct ew_batch *ew_batch_ref(struct ew_batch *batch)
{
    atomic_fetch_add_explicit(&((struct batch *)batch)->refs, 1, memory_order_relaxed);
    return batch;
}

void ew_batch_unref(struct ew_batch *base)
{
    struct batch *batch = (struct batch *)base;
    if (batch == NULL || atomic_fetch_sub_explicit(&batch->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (uint32_t i = 0; i < ew_layout_count(base->layout); i++) {
        ew_free(base->columns[i].values);
        ew_free(base->columns[i].valid);
        ew_free(base->columns[i].text);
        ew_dictionary_unref(base->columns[i].dictionary);
    }
    ew_free(base->columns);
    ew_layout_unref(base->layout);
    ew_free(batch);
}

/* ----------------------------------------------------------------- builder */

static bool has_text(uint8_t type)
{
    return type == EW_COLUMN_TEXT || type == EW_COLUMN_BINARY;
}

/* Size of the values of this many rows; there is one offset more than rows. */
static size_t values_size(uint8_t type, uint32_t rows)
{
    size_t bits = (size_t)ew_arrow_column_bits(type) * ((size_t)rows + has_text(type));
    return (bits + 7) / 8 + 8;
}

static size_t valid_size(uint32_t rows)
{
    return (size_t)rows / 8 + 8;
}

int ew_columns_init(struct ew_columns *columns, struct ew_layout *layout)
{
    memset(columns, 0, sizeof *columns);
    columns->list = ew_calloc(layout->count == 0 ? 1 : layout->count, sizeof *columns->list);
    if (columns->list == NULL)
        return ETWATCH_ENOMEM;
    columns->layout = ew_layout_ref(layout);
    columns->count = layout->count;
    uint32_t rows_max = CELLS_MAX / (layout->count == 0 ? 1 : layout->count);
    columns->batch_rows = layout->batch_rows < rows_max ? layout->batch_rows : rows_max;
    for (uint32_t i = 0; i < layout->count; i++) {
        columns->list[i].type = layout->columns[i].type;
        columns->list[i].nullable = layout->columns[i].nullable;
    }
    return 0;
}

void ew_columns_done(struct ew_columns *columns)
{
    for (uint32_t i = 0; i < columns->count; i++) {
        struct ew_column *column = &columns->list[i];
        ew_free(column->values);
        ew_free(column->valid);
        ew_free(column->text);
        ew_free(column->index);
        ew_dictionary_unref(column->dictionary);
    }
    ew_free(columns->list);
    ew_layout_unref(columns->layout);
    memset(columns, 0, sizeof *columns);
}

bool ew_arrow_column_open(struct ew_columns *columns, struct ew_column *column)
{
    if (columns->error != 0)
        return false;
    uint8_t *values = ew_calloc(values_size(column->type, columns->capacity), 1);
    uint8_t *valid = column->nullable ? ew_calloc(valid_size(columns->capacity), 1) : NULL;
    if (values == NULL || (column->nullable && valid == NULL)) {
        ew_free(values);
        ew_free(valid);
        columns->error = ETWATCH_ENOMEM;
        return false;
    }
    column->values = values;
    column->valid = valid;
    return true;
}

/* Extends a buffer with zeros. */
static bool widen(uint8_t **buffer, size_t old_size, size_t new_size)
{
    if (*buffer == NULL)
        return true;
    uint8_t *larger = ew_calloc(new_size, 1);
    if (larger == NULL)
        return false;
    memcpy(larger, *buffer, old_size);
    ew_free(*buffer);
    *buffer = larger;
    return true;
}

bool ew_columns_grow(struct ew_columns *columns)
{
    uint32_t old = columns->capacity, rows = old < FIRST_ROWS ? FIRST_ROWS : old * 2;
    rows = rows > columns->batch_rows ? columns->batch_rows : rows;
    if (columns->error != 0 || columns->rows == columns->batch_rows)
        return false;
    for (uint32_t i = 0; i < columns->count; i++) {
        struct ew_column *column = &columns->list[i];
        if (!widen(&column->values, values_size(column->type, old),
                   values_size(column->type, rows)) ||
            !widen(&column->valid, valid_size(old), valid_size(rows))) {
            columns->error = ETWATCH_ENOMEM;
            return false;
        }
    }
    columns->capacity = rows;
    return true;
}

/* Null rows repeat the offset of the previous row. */
static void fill_offsets(struct ew_column *column, uint32_t rows)
{
    int32_t *offsets = (int32_t *)(void *)column->values;
    for (; column->filled < rows; column->filled++)
        offsets[column->filled + 1] = (int32_t)column->text_len;
}

static void close_column(struct ew_columns *columns, struct ew_column *column,
                         struct ew_batch_column *to)
{
    to->null_count = columns->rows - column->known;
    if (has_text(column->type) && column->values != NULL)
        fill_offsets(column, columns->rows);
    to->values = column->values;
    to->text = column->text;
    to->valid = column->valid;
    if (to->null_count == 0) {
        ew_free(to->valid);
        to->valid = NULL;
    }
    if (column->dictionary != NULL) {
        to->dictionary = ew_dictionary_ref(column->dictionary);
        to->entry_count = column->dictionary->count;
    }
    column->values = column->valid = column->text = NULL;
    column->known = column->filled = 0;
    column->text_len = column->text_size = 0;
}

struct ew_batch *ew_columns_cut(struct ew_columns *columns)
{
    return columns->rows == 0 ? NULL : ew_columns_cut_any(columns);
}

struct ew_batch *ew_columns_cut_any(struct ew_columns *columns)
{
    struct batch *batch = ew_calloc(1, sizeof *batch);
    struct ew_batch_column *list = ew_calloc(columns->count, sizeof *list);
    if (batch == NULL || list == NULL) {
        ew_free(batch);
        ew_free(list);
        columns->error = ETWATCH_ENOMEM;
        return NULL;
    }
    atomic_init(&batch->refs, 1);
    batch->base.layout = ew_layout_ref(columns->layout);
    batch->base.rows = columns->rows;
    batch->base.columns = list;
    for (uint32_t i = 0; i < columns->count; i++)
        close_column(columns, &columns->list[i], &list[i]);
    /* The next batch will probably be as long as this one. */
    columns->capacity = columns->rows < FIRST_ROWS ? 0 : columns->rows;
    columns->rows = 0;
    columns->text_bytes = 0;
    columns->full = false;
    return &batch->base;
}

void ew_columns_reset(struct ew_columns *columns)
{
    for (uint32_t i = 0; i < columns->count; i++) {
        struct ew_column *column = &columns->list[i];
        ew_free(column->values);
        ew_free(column->valid);
        ew_free(column->text);
        column->values = column->valid = column->text = NULL;
        column->known = column->filled = 0;
        column->text_len = column->text_size = 0;
    }
    columns->rows = columns->capacity = 0;
    columns->text_bytes = 0;
    columns->full = false;
}

/* ------------------------------------------------------------------ values */

void ew_columns_bool(struct ew_columns *columns, uint32_t i, bool value)
{
    struct ew_column *column = ew_column_set(columns, i);
    if (column != NULL && value)
        column->values[columns->rows >> 3] |= (uint8_t)(1u << (columns->rows & 7));
}

/* Room for len bytes of text, or NULL. */
static uint8_t *text_room(struct ew_columns *columns, struct ew_column *column, size_t len)
{
    if (column->text_len + len > INT32_MAX) {
        columns->error = ETWATCH_ELIMIT;
        return NULL;
    }
    if (column->text_len + len > column->text_size || column->text == NULL) {
        size_t size = column->text_size == 0 ? TEXT_FIRST : column->text_size * 2;
        while (size < column->text_len + len)
            size *= 2;
        uint8_t *text = ew_realloc_array(column->text, size, 1);
        if (text == NULL) {
            columns->error = ETWATCH_ENOMEM;
            return NULL;
        }
        column->text = text;
        column->text_size = size;
    }
    return column->text + column->text_len;
}

static void end_text(struct ew_columns *columns, struct ew_column *column, size_t len)
{
    fill_offsets(column, columns->rows);
    column->text_len += len;
    fill_offsets(column, columns->rows + 1);
    columns->text_bytes += len;
    if (columns->text_bytes >= TEXT_FULL)
        columns->full = true;
}

void ew_columns_bytes(struct ew_columns *columns, uint32_t i, const void *bytes, size_t len)
{
    struct ew_column *column = &columns->list[i];
    uint8_t *room = text_room(columns, column, len);
    if (room == NULL || ew_column_set(columns, i) == NULL)
        return;
    if (len > 0)
        memcpy(room, bytes, len);
    end_text(columns, column, len);
}

static bool is_ascii(const char *text, size_t len)
{
    uint64_t all = 0;
    size_t i = 0;
    for (; i + 8 <= len; i += 8) {
        uint64_t part;
        memcpy(&part, text + i, 8);
        all |= part;
    }
    for (; i < len; i++)
        all |= (uint8_t)text[i];
    return (all & UINT64_C(0x8080808080808080)) == 0;
}

void ew_columns_text(struct ew_columns *columns, uint32_t i, const char *text, size_t len)
{
    struct ew_column *column = &columns->list[i];
    if (is_ascii(text, len)) {
        ew_columns_bytes(columns, i, text, len);
        return;
    }
    uint8_t *room = text_room(columns, column, len * 3);
    if (room == NULL || ew_column_set(columns, i) == NULL)
        return;
    end_text(columns, column, ew_dictionary_clean(text, len, (char *)room));
}

int32_t ew_columns_dict_index(struct ew_columns *columns, uint32_t i, const char *text, size_t len)
{
    struct ew_column *column = &columns->list[i];
    int32_t index = ew_dictionary_find(column, text, len);
    if (index < 0 && columns->error == 0) {
        int rc = ew_dictionary_add(column, text, len, &index);
        if (rc == ETWATCH_ENOMEM)
            columns->error = rc;
        columns->refused += rc == ETWATCH_ELIMIT;
        index = rc < 0 ? -1 : index;
    }
    return index;
}

void ew_columns_dict(struct ew_columns *columns, uint32_t i, const char *text)
{
    if (text == NULL)
        return;
    int32_t index = ew_columns_dict_index(columns, i, text, strlen(text));
    if (index >= 0)
        ew_columns_i32(columns, i, index);
}

uint32_t ew_columns_dict_count(const struct ew_columns *columns, uint32_t i)
{
    const struct ew_dictionary *dictionary = columns->list[i].dictionary;
    return dictionary == NULL ? 0 : dictionary->count;
}
