/* SPDX-License-Identifier: MIT */
/*
 * Owns the dictionaries of columns. Entries are only appended, so earlier batches can continue to
 * use a dictionary; if it must be enlarged, the builder continues with a copy, and the old one
 * lives as long as a batch uses it.
 *
 * Text that is not valid UTF-8 is stored in cleaned form and looked up by it.
 */
#include "arrow/columns.h"

#include <stdatomic.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/utf8.h"

enum { FIRST_ENTRIES = 32, FIRST_TEXT = 512, FIRST_INDEX = 64 };

struct dictionary {
    struct ew_dictionary base;
    atomic_uint refs;
    uint32_t size;
    uint32_t text_size;
};

struct ew_dictionary *ew_dictionary_ref(struct ew_dictionary *dictionary)
{
    atomic_fetch_add_explicit(&((struct dictionary *)dictionary)->refs, 1, memory_order_relaxed);
    return dictionary;
}

void ew_dictionary_unref(struct ew_dictionary *base)
{
    struct dictionary *dictionary = (struct dictionary *)base;
    if (dictionary == NULL ||
        atomic_fetch_sub_explicit(&dictionary->refs, 1, memory_order_acq_rel) > 1)
        return;
    ew_free(base->offsets);
    ew_free(base->text);
    ew_free(dictionary);
}

size_t ew_dictionary_clean(const char *text, size_t len, char *to)
{
    size_t used = 0;
    for (size_t i = 0; i < len;) {
        uint32_t code;
        size_t taken = ew_utf8_decode(text + i, len - i, &code);
        if (code == EW_UTF8_INVALID) {
            memcpy(to + used, "\xEF\xBF\xBD", 3);
            used += 3;
        } else {
            memcpy(to + used, text + i, taken);
            used += taken;
        }
        i += taken;
    }
    return used;
}

/* ------------------------------------------------------------------- memory */

/* Creates a dictionary of this size with the entries of the old one, which may be NULL. */
static struct dictionary *new_dictionary(uint32_t size, uint32_t text_size,
                                         const struct ew_dictionary *old)
{
    struct dictionary *dictionary = ew_calloc(1, sizeof *dictionary);
    if (dictionary == NULL)
        return NULL;
    dictionary->base.offsets = ew_calloc((size_t)size + 1, sizeof(int32_t));
    dictionary->base.text = ew_calloc(text_size, 1);
    if (dictionary->base.offsets == NULL || dictionary->base.text == NULL) {
        ew_free(dictionary->base.offsets);
        ew_free(dictionary->base.text);
        ew_free(dictionary);
        return NULL;
    }
    atomic_init(&dictionary->refs, 1);
    dictionary->size = size;
    dictionary->text_size = text_size;
    if (old != NULL) {
        dictionary->base.count = old->count;
        memcpy(dictionary->base.offsets, old->offsets, ((size_t)old->count + 1) * sizeof(int32_t));
        memcpy(dictionary->base.text, old->text, (size_t)old->offsets[old->count]);
    }
    return dictionary;
}

static int make_room(struct ew_column *column, size_t len)
{
    struct dictionary *dictionary = (struct dictionary *)column->dictionary;
    uint32_t size = dictionary == NULL ? FIRST_ENTRIES : dictionary->size;
    uint32_t text_size = dictionary == NULL ? FIRST_TEXT : dictionary->text_size;
    uint32_t count = dictionary == NULL ? 0 : dictionary->base.count;
    size_t needed = len + (dictionary == NULL ? 0 : (size_t)dictionary->base.offsets[count]);
    if (count == EW_DICT_ENTRIES_MAX || needed > EW_DICT_TEXT_MAX)
        return ETWATCH_ELIMIT;
    if (dictionary != NULL && count < size && needed <= text_size)
        return 0;
    size = count < size ? size : size * 2;
    while (text_size < needed)
        text_size *= 2;
    struct dictionary *larger = new_dictionary(size, text_size, column->dictionary);
    if (larger == NULL)
        return ETWATCH_ENOMEM;
    ew_dictionary_unref(column->dictionary);
    column->dictionary = &larger->base;
    return 0;
}

/* -------------------------------------------------------------------- index */

static uint32_t hash(const char *text, size_t len)
{
    uint64_t sum = ew_hash_seed();
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(sum ^ sum >> 32);
}

static bool is_entry(const struct ew_dictionary *dictionary, uint32_t i, const char *text,
                     size_t len)
{
    int32_t from = dictionary->offsets[i];
    return (size_t)(dictionary->offsets[i + 1] - from) == len &&
           (len == 0 || memcmp(dictionary->text + from, text, len) == 0);
}

/* The slot of a text, or the free slot where it belongs. */
static uint32_t slot_of(const struct ew_column *column, const char *text, size_t len)
{
    uint32_t at = hash(text, len) & column->index_mask;
    while (column->index[at] != 0 &&
           !is_entry(column->dictionary, column->index[at] - 1, text, len))
        at = (at + 1) & column->index_mask;
    return at;
}

static int grow_index(struct ew_column *column)
{
    uint32_t count = column->dictionary == NULL ? 0 : column->dictionary->count;
    uint32_t size = column->index == NULL ? FIRST_INDEX : (column->index_mask + 1) * 2;
    if (column->index != NULL && (count + 1) * 2 <= column->index_mask)
        return 0;
    uint32_t *index = ew_calloc(size, sizeof *index);
    if (index == NULL)
        return ETWATCH_ENOMEM;
    ew_free(column->index);
    column->index = index;
    column->index_mask = size - 1;
    for (uint32_t i = 0; i < count; i++) {
        int32_t from = column->dictionary->offsets[i];
        size_t len = (size_t)(column->dictionary->offsets[i + 1] - from);
        index[slot_of(column, column->dictionary->text + from, len)] = i + 1;
    }
    return 0;
}

int32_t ew_dictionary_find(const struct ew_column *column, const char *text, size_t len)
{
    if (column->index == NULL)
        return -1;
    return (int32_t)column->index[slot_of(column, text, len)] - 1;
}

static int add(struct ew_column *column, const char *text, size_t len, int32_t *ret_index)
{
    int rc = make_room(column, len);
    if (rc == 0)
        rc = grow_index(column);
    if (rc < 0)
        return rc;
    struct ew_dictionary *dictionary = column->dictionary;
    uint32_t slot = slot_of(column, text, len);
    int32_t from = dictionary->offsets[dictionary->count];
    if (len > 0)
        memcpy(dictionary->text + from, text, len);
    dictionary->offsets[dictionary->count + 1] = from + (int32_t)len;
    column->index[slot] = ++dictionary->count;
    *ret_index = (int32_t)dictionary->count - 1;
    return 0;
}

int ew_dictionary_add(struct ew_column *column, const char *text, size_t len, int32_t *ret_index)
{
    if (len > EW_DICT_TEXT_MAX / 4)
        return ETWATCH_ELIMIT;
    if (ew_utf8_is_valid(text, len))
        return add(column, text, len, ret_index);
    char *clean = ew_calloc(len, 3);
    if (clean == NULL)
        return ETWATCH_ENOMEM;
    size_t clean_len = ew_dictionary_clean(text, len, clean);
    *ret_index = ew_dictionary_find(column, clean, clean_len);
    int rc = *ret_index >= 0 ? 0 : add(column, clean, clean_len, ret_index);
    ew_free(clean);
    return rc;
}
