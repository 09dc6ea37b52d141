/* SPDX-License-Identifier: MIT */
/*
 * Converts rows to columns. A layout lists the columns of a table; a builder takes one row after
 * the other; its rows are cut into batches, which are immutable and can be shared.
 *
 * A value that was not set is null. Columns without any value take no memory. Text is stored
 * unchanged, except that each byte that is not valid UTF-8 becomes U+FFFD.
 */
#ifndef EW_ARROW_COLUMNS_H
#define EW_ARROW_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EW_BATCH_ROWS = 65536, EW_BATCH_ROWS_MAX = 1 << 20, EW_COLUMNS_MAX = 4096 };

enum ew_column_type {
    EW_COLUMN_I64 = 1,
    EW_COLUMN_U64,
    EW_COLUMN_F64,
    EW_COLUMN_TIME, /* i64, Unix ns, typed as a timestamp */
    EW_COLUMN_I32,
    EW_COLUMN_U32,
    EW_COLUMN_U16,
    EW_COLUMN_U8,
    EW_COLUMN_BOOL,
    EW_COLUMN_TEXT,
    EW_COLUMN_BINARY,
    EW_COLUMN_DICT, /* repeated text: an index into a dictionary */
};

struct ew_column_def {
    char *name;
    uint8_t type;  /* enum ew_column_type */
    bool nullable; /* false: every row sets it */
};

/* Reference-counted. */
struct ew_layout;
/* 0 or ETWATCH_ENOMEM. batch_rows 0: EW_BATCH_ROWS. */
int ew_layout_new(uint32_t batch_rows, struct ew_layout **ret_layout);
/* Only before the layout is shared. ETWATCH_ENOMEM, ETWATCH_ELIMIT. name is copied. */
int ew_layout_add(struct ew_layout *layout, const char *name, enum ew_column_type type,
                  bool nullable);
struct ew_layout *ew_layout_ref(struct ew_layout *layout);
void ew_layout_unref(struct ew_layout *layout);
uint32_t ew_layout_count(const struct ew_layout *layout);
const struct ew_column_def *ew_layout_column(const struct ew_layout *layout, uint32_t i);
/* The column with this name, or -1. */
int ew_layout_find(const struct ew_layout *layout, const char *name);

/* The distinct texts of a column, numbered in order of first use. Entries are only appended: the
 * holder of a reference may read the entries that existed when the reference was taken. */
struct ew_dictionary {
    int32_t *offsets; /* count + 1 entries */
    char *text;
    uint32_t count;
};

struct ew_batch_column {
    uint8_t *values; /* fixed width; BOOL: bits; TEXT, BINARY: int32 offsets; DICT: int32 */
    uint8_t *valid;  /* bits; NULL: no nulls */
    uint8_t *text;
    uint32_t null_count;
    struct ew_dictionary *dictionary;
    uint32_t entry_count;
};

struct ew_batch {
    struct ew_layout *layout;
    uint32_t rows;
    struct ew_batch_column *columns;
};

struct ew_batch *ew_batch_ref(struct ew_batch *batch);
void ew_batch_unref(struct ew_batch *batch);

/* A builder. Use the functions; the fields are public only for the inline functions. */
struct ew_column {
    uint8_t type;
    bool nullable;
    uint8_t *values, *valid;
    uint32_t known;  /* number of values set */
    uint32_t filled; /* TEXT: rows with an offset */
    uint8_t *text;
    size_t text_len, text_size;
    struct ew_dictionary *dictionary;
    uint32_t *index; /* hash of an entry: its index + 1, or 0 */
    uint32_t index_mask;
};

struct ew_columns {
    struct ew_layout *layout;
    struct ew_column *list;
    uint32_t count;
    uint32_t rows, capacity, batch_rows;
    size_t text_bytes; /* of the rows so far */
    bool full;         /* the batch must be cut before the next row */
    int error;         /* sticky: ETWATCH_ENOMEM */
    uint64_t refused;  /* texts beyond the maximum, which became null */
};

int ew_columns_init(struct ew_columns *columns, struct ew_layout *layout);
void ew_columns_done(struct ew_columns *columns);

/* Makes room for the next row; false: out of memory, and the functions below do nothing. */
bool ew_columns_grow(struct ew_columns *columns);
static inline bool ew_columns_begin(struct ew_columns *columns)
{
    return columns->rows < columns->capacity ? columns->error == 0 : ew_columns_grow(columns);
}
static inline void ew_columns_end(struct ew_columns *columns)
{
    if (++columns->rows == columns->batch_rows)
        columns->full = true;
}

/* Returns all rows so far as a batch and starts the next one; NULL: no rows, or out of memory. */
struct ew_batch *ew_columns_cut(struct ew_columns *columns);
/* The same, but without rows an empty batch. */
struct ew_batch *ew_columns_cut_any(struct ew_columns *columns);

/* Drops the rows of the open batch. */
void ew_columns_reset(struct ew_columns *columns);

/* Allocates memory for a column's first value in this batch. */
bool ew_arrow_column_open(struct ew_columns *columns, struct ew_column *column);

/* Shared by the inline functions: the column, prepared for a value in this row. */
static inline struct ew_column *ew_column_set(struct ew_columns *columns, uint32_t i)
{
    struct ew_column *column = &columns->list[i];
    if (column->values == NULL && !ew_arrow_column_open(columns, column))
        return NULL;
    if (column->valid != NULL)
        column->valid[columns->rows >> 3] |= (uint8_t)(1u << (columns->rows & 7));
    column->known++;
    return column;
}

#define EW_COLUMN_PUT(suffix, type)                                                            \
    static inline void ew_columns_##suffix(struct ew_columns *columns, uint32_t i, type value) \
    {                                                                                          \
        struct ew_column *column = ew_column_set(columns, i);                                  \
        if (column != NULL)                                                                    \
            ((type *)(void *)column->values)[columns->rows] = value;                           \
    }
EW_COLUMN_PUT(i64, int64_t)
EW_COLUMN_PUT(u64, uint64_t)
EW_COLUMN_PUT(f64, double)
EW_COLUMN_PUT(i32, int32_t) /* also an index into the dictionary */
EW_COLUMN_PUT(u32, uint32_t)
EW_COLUMN_PUT(u16, uint16_t)
EW_COLUMN_PUT(u8, uint8_t)
#undef EW_COLUMN_PUT

/* Whether a nullable column has a value in this row. */
static inline bool ew_columns_has(const struct ew_columns *columns, uint32_t i)
{
    const uint8_t *valid = columns->list[i].valid;
    return valid != NULL && (valid[columns->rows >> 3] >> (columns->rows & 7) & 1) != 0;
}

void ew_columns_bool(struct ew_columns *columns, uint32_t i, bool value);
void ew_columns_bytes(struct ew_columns *columns, uint32_t i, const void *bytes, size_t len);
void ew_columns_text(struct ew_columns *columns, uint32_t i, const char *text, size_t len);
/* text may be NULL: the value stays null. */
void ew_columns_dict(struct ew_columns *columns, uint32_t i, const char *text);
/* The index of a text, which never changes; -1: the limit is reached, or out of memory. */
int32_t ew_columns_dict_index(struct ew_columns *columns, uint32_t i, const char *text, size_t len);
/* Number of dictionary entries of a column so far. */
uint32_t ew_columns_dict_count(const struct ew_columns *columns, uint32_t i);

/* For other files of this folder. */
uint32_t
ew_arrow_column_bits(uint8_t type); /* width of a value; for TEXT and BINARY of an offset */
struct ew_dictionary *ew_dictionary_ref(struct ew_dictionary *dictionary);
void ew_dictionary_unref(struct ew_dictionary *dictionary);
/* Zeros, large enough for any buffer of a column without values. */
const uint8_t *ew_layout_zeros(const struct ew_layout *layout);

/* ------------------------------------------------------------------------- dictionary */

/* The dictionaries of columns: each text is stored once and numbered. */

enum { EW_DICT_ENTRIES_MAX = 1 << 20, EW_DICT_TEXT_MAX = 64 << 20 };

/* The index of a text, or -1 if the dictionary does not have it. */
int32_t ew_dictionary_find(const struct ew_column *column, const char *text, size_t len);
/* Adds a text that the dictionary does not have. ETWATCH_ENOMEM, ETWATCH_ELIMIT. */
int ew_dictionary_add(struct ew_column *column, const char *text, size_t len, int32_t *ret_index);
/* Copies text with U+FFFD for each invalid UTF-8 byte; at most 3 * len bytes. Returns the length.
 */
size_t ew_dictionary_clean(const char *text, size_t len, char *to);

#endif
