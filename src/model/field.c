/* SPDX-License-Identifier: MIT */
/*
 * The list of an event's fields and its memory, both reused from event to event.
 *
 * Converted text is stored in chained blocks that are never reallocated: pointers to it stay valid
 * until the list is cleared. Of one event's blocks only the newest, which is the largest, is kept
 * for the next event, so a stream of similar events soon needs one block and no allocation.
 *
 * The list is always well formed: space for the closing entry is reserved together with the opening
 * one, so that a cut list still closes everything it opened.
 */
#include "model/field.h"

#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/utf16.h"
#include "base/utf8.h"

enum {
    FIRST_BLOCK_BYTES = 4096,
    TEXT_MAX_BYTES = 1 << 20, /* of one event: a payload of 64 KiB converts to less than 100 KiB */
    FIRST_CAPACITY = 32,
};

struct ew_fields_block {
    struct ew_fields_block *next; /* the older ones */
    size_t size, used, total;     /* total: sizes of this and the older ones */
    char data[];
};

void ew_fields_init(struct ew_fields *fields)
{
    memset(fields, 0, sizeof *fields);
}

static void free_blocks(struct ew_fields_block *block)
{
    while (block) {
        struct ew_fields_block *next = block->next;
        ew_free(block);
        block = next;
    }
}

void ew_fields_done(struct ew_fields *fields)
{
    free_blocks(fields->text);
    ew_free(fields->list);
    ew_fields_init(fields);
}

void ew_fields_clear(struct ew_fields *fields)
{
    fields->count = 0;
    fields->open = 0;
    fields->skipped = 0;
    fields->cut = false;
    fields->error = 0;
    if (fields->text) {
        free_blocks(fields->text->next);
        fields->text->next = NULL;
        fields->text->used = 0;
        fields->text->total = fields->text->size;
    }
}

static void stop(struct ew_fields *fields, int error)
{
    fields->cut = true;
    if (error && !fields->error)
        fields->error = error;
}

/* Room for `extra` entries in addition to the closing ones still due. */
static bool make_room(struct ew_fields *fields, uint32_t extra)
{
    uint32_t need = fields->count + fields->open + extra;
    if (fields->cut)
        return false;
    if (need <= fields->capacity)
        return true;
    if (need > EW_FIELDS_MAX) {
        stop(fields, 0);
        return false;
    }
    uint32_t capacity = fields->capacity ? fields->capacity * 2 : FIRST_CAPACITY;
    while (capacity < need)
        capacity *= 2;
    if (capacity > EW_FIELDS_MAX)
        capacity = EW_FIELDS_MAX;
    struct ew_field *list = ew_realloc_array(fields->list, capacity, sizeof *list);
    if (!list) {
        stop(fields, ETWATCH_ENOMEM);
        return false;
    }
    fields->list = list;
    fields->capacity = capacity;
    return true;
}

/* The next entry, or NULL if the list is cut here. */
static struct ew_field *add(struct ew_fields *fields, const char *name, size_t name_len,
                            enum ew_field_type type)
{
    if (!make_room(fields, 1))
        return NULL;
    struct ew_field *field = &fields->list[fields->count++];
    memset(field, 0, sizeof *field);
    field->name = name;
    field->name_len = (uint32_t)name_len;
    field->type = (uint8_t)type;
    return field;
}

/* Space for text, valid until the next clear, or NULL. */
static char *take_text(struct ew_fields *fields, size_t size)
{
    struct ew_fields_block *block = fields->text;
    if (block && block->size - block->used >= size)
        return block->data + block->used;
    size_t wanted = block ? block->size * 2 : FIRST_BLOCK_BYTES;
    size_t total = block ? block->total : 0;
    while (wanted < size && wanted < TEXT_MAX_BYTES)
        wanted *= 2;
    if (wanted < size || wanted > 2 * TEXT_MAX_BYTES || total > TEXT_MAX_BYTES) {
        stop(fields, 0);
        return NULL;
    }
    struct ew_fields_block *newest = ew_calloc(1, sizeof *newest + wanted);
    if (!newest) {
        stop(fields, ETWATCH_ENOMEM);
        return NULL;
    }
    newest->next = block;
    newest->size = wanted;
    newest->total = total + wanted;
    fields->text = newest;
    return newest->data;
}

void ew_fields_u64(struct ew_fields *fields, const char *name, size_t name_len,
                   enum ew_field_type type, uint64_t value)
{
    struct ew_field *field = add(fields, name, name_len, type);
    if (field)
        field->v.u = value;
}

void ew_fields_i64(struct ew_fields *fields, const char *name, size_t name_len, int64_t value)
{
    struct ew_field *field = add(fields, name, name_len, EW_FIELD_I64);
    if (field)
        field->v.i = value;
}

void ew_fields_double(struct ew_fields *fields, const char *name, size_t name_len,
                      enum ew_field_type type, double value)
{
    struct ew_field *field = add(fields, name, name_len, type);
    if (field)
        field->v.d = value;
}

void ew_fields_raw(struct ew_fields *fields, const char *name, size_t name_len,
                   enum ew_field_type type, const uint8_t *bytes, size_t len)
{
    struct ew_field *field = add(fields, name, name_len, type);
    if (field) {
        field->v.raw = bytes;
        field->len = (uint32_t)len;
    }
}

void ew_fields_text(struct ew_fields *fields, const char *name, size_t name_len, const char *text,
                    size_t len)
{
    struct ew_field *field = add(fields, name, name_len, EW_FIELD_TEXT);
    if (field) {
        field->v.text = text;
        field->len = (uint32_t)len;
    }
}

void ew_fields_utf16(struct ew_fields *fields, const char *name, size_t name_len,
                     const uint8_t *bytes, size_t len)
{
    if (fields->cut)
        return;
    size_t size = EW_UTF16_UTF8_MAX(len) + 1;
    char *text = take_text(fields, size);
    if (!text)
        return;
    size_t used = ew_utf16_to_utf8(bytes, len, text, size);
    fields->text->used += used + 1;
    ew_fields_text(fields, name, name_len, text, used);
}

/* Bytes above ASCII that start no valid UTF-8 character are Latin-1; text has room for 2 * len. */
static size_t from_ansi(const char *bytes, size_t len, char *text)
{
    size_t used = 0;
    for (size_t i = 0; i < len;) {
        uint32_t code;
        size_t taken = ew_utf8_decode(bytes + i, len - i, &code);
        if (code == EW_UTF8_INVALID) {
            uint8_t byte = (uint8_t)bytes[i];
            text[used++] = (char)(0xC0 | byte >> 6);
            text[used++] = (char)(0x80 | (byte & 0x3F));
        } else {
            memcpy(text + used, bytes + i, taken);
            used += taken;
        }
        i += taken;
    }
    return used;
}

void ew_fields_ansi(struct ew_fields *fields, const char *name, size_t name_len,
                    const uint8_t *bytes, size_t len)
{
    const char *text = (const char *)bytes;
    if (fields->cut)
        return;
    if (!ew_utf8_is_valid(text, len)) {
        char *copy = take_text(fields, 2 * len);
        if (!copy)
            return;
        len = from_ansi(text, len, copy);
        fields->text->used += len;
        text = copy;
    }
    ew_fields_text(fields, name, name_len, text, len);
}

const char *ew_fields_keep(struct ew_fields *fields, const char *text, size_t len)
{
    char *copy = fields->cut ? NULL : take_text(fields, len);
    if (!copy)
        return NULL;
    if (len)
        memcpy(copy, text, len);
    fields->text->used += len;
    return copy;
}

void ew_fields_enum(struct ew_fields *fields, const char *name, size_t name_len, uint64_t value,
                    const char *label, size_t label_len)
{
    struct ew_field *field = add(fields, name, name_len, EW_FIELD_ENUM);
    if (field) {
        field->v.u = value;
        field->label = label;
        field->len = label ? (uint32_t)label_len : 0;
    }
}

void ew_fields_null(struct ew_fields *fields, const char *name, size_t name_len)
{
    (void)add(fields, name, name_len, EW_FIELD_NULL);
}

void ew_fields_open(struct ew_fields *fields, const char *name, size_t name_len,
                    enum ew_field_type type)
{
    /* One entry for itself and one for its close. */
    if (!make_room(fields, 2)) {
        fields->skipped++;
        return;
    }
    (void)add(fields, name, name_len, type);
    fields->open++;
}

void ew_fields_close(struct ew_fields *fields)
{
    if (fields->skipped) {
        fields->skipped--;
        return;
    }
    if (!fields->open)
        return;
    fields->open--;
    struct ew_field *field = &fields->list[fields->count++];
    memset(field, 0, sizeof *field);
    field->type = EW_FIELD_CLOSE;
}
