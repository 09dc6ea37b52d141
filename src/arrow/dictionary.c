/* SPDX-License-Identifier: MIT */
/*
 * Owns the words of columns. A block of words only grows at its end, so earlier batches can
 * continue to use it; if it must be reallocated while a batch uses it, the builder continues with a
 * copy.
 *
 * Text that is not valid UTF-8 is stored in cleaned form and looked up by it.
 */
#include "arrow/columns.h"

#include <stdatomic.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/utf8.h"

enum { FIRST_WORDS = 32, FIRST_TEXT = 512, FIRST_INDEX = 64 };

struct words {
    struct ew_dictionary shown;
    atomic_uint refs;
    uint32_t size;
    uint32_t text_size;
};

struct ew_dictionary *ew_dictionary_ref(struct ew_dictionary *words)
{
    atomic_fetch_add_explicit(&((struct words *)words)->refs, 1, memory_order_relaxed);
    return words;
}

void ew_dictionary_unref(struct ew_dictionary *shown)
{
    struct words *words = (struct words *)shown;
    if (words == NULL || atomic_fetch_sub_explicit(&words->refs, 1, memory_order_acq_rel) > 1)
        return;
    ew_free(shown->offsets);
    ew_free(shown->text);
    ew_free(words);
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

/* Creates a block of this size with the words of the old one. */
static struct words *make(uint32_t size, uint32_t text_size, const struct ew_dictionary *old)
{
    struct words *words = ew_calloc(1, sizeof *words);
    if (words == NULL)
        return NULL;
    words->shown.offsets = ew_calloc((size_t)size + 1, sizeof(int32_t));
    words->shown.text = ew_calloc(text_size, 1);
    if (words->shown.offsets == NULL || words->shown.text == NULL) {
        ew_free(words->shown.offsets);
        ew_free(words->shown.text);
        ew_free(words);
        return NULL;
    }
    atomic_init(&words->refs, 1);
    words->size = size;
    words->text_size = text_size;
    if (old != NULL) {
        words->shown.count = old->count;
        memcpy(words->shown.offsets, old->offsets, ((size_t)old->count + 1) * sizeof(int32_t));
        memcpy(words->shown.text, old->text, (size_t)old->offsets[old->count]);
    }
    return words;
}

static int make_room(struct ew_column *column, size_t len)
{
    struct words *words = (struct words *)column->words;
    uint32_t size = words == NULL ? FIRST_WORDS : words->size;
    uint32_t text_size = words == NULL ? FIRST_TEXT : words->text_size;
    uint32_t count = words == NULL ? 0 : words->shown.count;
    size_t needed = len + (words == NULL ? 0 : (size_t)words->shown.offsets[count]);
    if (count == EW_WORDS_MAX || needed > EW_WORDS_TEXT_MAX)
        return ETWATCH_ELIMIT;
    if (words != NULL && count < size && needed <= text_size)
        return 0;
    size = count < size ? size : size * 2;
    while (text_size < needed)
        text_size *= 2;
    struct words *wider = make(size, text_size, column->words);
    if (wider == NULL)
        return ETWATCH_ENOMEM;
    ew_dictionary_unref(column->words);
    column->words = &wider->shown;
    return 0;
}

/* -------------------------------------------------------------------- index */

static uint32_t hash(const char *text, size_t len)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(sum ^ sum >> 32);
}

static bool is_word(const struct ew_dictionary *words, uint32_t i, const char *text, size_t len)
{
    int32_t from = words->offsets[i];
    return (size_t)(words->offsets[i + 1] - from) == len &&
           (len == 0 || memcmp(words->text + from, text, len) == 0);
}

/* The slot of a word, or the free slot where it belongs. */
static uint32_t place_of(const struct ew_column *column, const char *text, size_t len)
{
    uint32_t at = hash(text, len) & column->index_mask;
    while (column->index[at] != 0 && !is_word(column->words, column->index[at] - 1, text, len))
        at = (at + 1) & column->index_mask;
    return at;
}

static int grow_index(struct ew_column *column)
{
    uint32_t count = column->words == NULL ? 0 : column->words->count;
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
        int32_t from = column->words->offsets[i];
        size_t len = (size_t)(column->words->offsets[i + 1] - from);
        index[place_of(column, column->words->text + from, len)] = i + 1;
    }
    return 0;
}

int32_t ew_dictionary_find(const struct ew_column *column, const char *text, size_t len)
{
    if (column->index == NULL)
        return -1;
    return (int32_t)column->index[place_of(column, text, len)] - 1;
}

static int add(struct ew_column *column, const char *text, size_t len, int32_t *ret_word)
{
    int rc = make_room(column, len);
    if (rc == 0)
        rc = grow_index(column);
    if (rc < 0)
        return rc;
    struct ew_dictionary *words = column->words;
    uint32_t place = place_of(column, text, len);
    int32_t from = words->offsets[words->count];
    if (len > 0)
        memcpy(words->text + from, text, len);
    words->offsets[words->count + 1] = from + (int32_t)len;
    column->index[place] = ++words->count;
    *ret_word = (int32_t)words->count - 1;
    return 0;
}

int ew_dictionary_add(struct ew_column *column, const char *text, size_t len, int32_t *ret_word)
{
    if (len > EW_WORDS_TEXT_MAX / 4)
        return ETWATCH_ELIMIT;
    if (ew_utf8_is_valid(text, len))
        return add(column, text, len, ret_word);
    char *clean = ew_calloc(len, 3);
    if (clean == NULL)
        return ETWATCH_ENOMEM;
    size_t clean_len = ew_dictionary_clean(text, len, clean);
    *ret_word = ew_dictionary_find(column, clean, clean_len);
    int rc = *ret_word >= 0 ? 0 : add(column, clean, clean_len, ret_word);
    ew_free(clean);
    return rc;
}
