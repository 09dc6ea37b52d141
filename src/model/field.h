/* SPDX-License-Identifier: MIT */
/*
 * The fields of one event by their documented names, in order: what `events` prints.
 *
 * A flat list; a struct or array is an opening entry, its members, and a closing entry. Names and
 * text are UTF-8 with a length. The list and its text are reused from event to event, so decoding
 * allocates nothing once they have grown. The list has at most EW_FIELDS_MAX entries; a payload
 * that claims more is cut, and `cut` is set.
 */
#ifndef EW_MODEL_FIELD_H
#define EW_MODEL_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EW_FIELDS_MAX = 65536 };

enum ew_field_type {
    EW_FIELD_U64 = 1,  /* u */
    EW_FIELD_I64,      /* i */
    EW_FIELD_HEX,      /* u, shown as 0x…: pointers, flags, masks */
    EW_FIELD_BOOL,     /* u */
    EW_FIELD_DOUBLE,   /* d */
    EW_FIELD_FLOAT,    /* d, single precision: shown with that many digits */
    EW_FIELD_TEXT,     /* text */
    EW_FIELD_GUID,     /* raw, 16 bytes as on disk */
    EW_FIELD_SID,      /* raw: the binary SID */
    EW_FIELD_FILETIME, /* u: 100 ns since 1601, UTC */
    EW_FIELD_UNIXTIME, /* u: seconds since 1970 */
    EW_FIELD_IPV4,     /* raw, 4 bytes */
    EW_FIELD_IPV6,     /* raw, 16 bytes */
    EW_FIELD_PORT,     /* u, already in host order */
    EW_FIELD_BINARY,   /* raw */
    EW_FIELD_ENUM,     /* u, and label: its name (len 0: none known) */
    EW_FIELD_NULL,     /* the field exists but has no value */
    EW_FIELD_ARRAY,    /* opening entry; members have no names */
    EW_FIELD_STRUCT,   /* opening entry */
    EW_FIELD_CLOSE,    /* closes the innermost struct or array */
};

struct ew_field {
    const char *name; /* not terminated; may be NULL inside arrays and for CLOSE */
    uint32_t name_len;
    uint32_t len;      /* of text, raw or label */
    uint8_t type;      /* enum ew_field_type */
    const char *label; /* ENUM: UTF-8, not terminated */
    union {
        uint64_t u;
        int64_t i;
        double d;
        const char *text; /* UTF-8, not terminated */
        const uint8_t *raw;
    } v;
};

struct ew_fields {
    struct ew_field *list;
    uint32_t count, capacity;
    uint32_t open;                /* structs and arrays not yet closed */
    uint32_t skipped;             /* and those opened after the list was cut */
    bool cut;                     /* the list is incomplete: too many fields, or no memory */
    int error;                    /* sticky: ETWATCH_ENOMEM */
    struct ew_fields_block *text; /* converted text, valid until the next event */
};

void ew_fields_init(struct ew_fields *fields);
void ew_fields_done(struct ew_fields *fields);
/* Starts the next event: invalidates everything added before. */
void ew_fields_clear(struct ew_fields *fields);

/* name must outlive the use of the fields (a table, a schema, the payload). */
void ew_fields_u64(struct ew_fields *fields, const char *name, size_t name_len,
                   enum ew_field_type type, uint64_t value);
void ew_fields_i64(struct ew_fields *fields, const char *name, size_t name_len, int64_t value);
void ew_fields_double(struct ew_fields *fields, const char *name, size_t name_len,
                      enum ew_field_type type, double value);
/* The bytes are not copied. */
void ew_fields_raw(struct ew_fields *fields, const char *name, size_t name_len,
                   enum ew_field_type type, const uint8_t *bytes, size_t len);
/* Converted to UTF-8; invalid input becomes U+FFFD. len is in bytes. */
void ew_fields_utf16(struct ew_fields *fields, const char *name, size_t name_len,
                     const uint8_t *bytes, size_t len);
/* Bytes of an unknown 8-bit code page: valid UTF-8 is kept, other bytes above ASCII are read as
 * Latin-1. */
void ew_fields_ansi(struct ew_fields *fields, const char *name, size_t name_len,
                    const uint8_t *bytes, size_t len);
/* Not copied: the text must outlive the fields. */
void ew_fields_text(struct ew_fields *fields, const char *name, size_t name_len, const char *text,
                    size_t len);
/* A copy that is valid until the next clear, for composed labels and texts; NULL: no room. */
const char *ew_fields_keep(struct ew_fields *fields, const char *text, size_t len);
/* label: from a table or ew_fields_keep; NULL: the value has no name. */
void ew_fields_enum(struct ew_fields *fields, const char *name, size_t name_len, uint64_t value,
                    const char *label, size_t label_len);
void ew_fields_null(struct ew_fields *fields, const char *name, size_t name_len);
/* ARRAY or STRUCT; each needs one close. */
void ew_fields_open(struct ew_fields *fields, const char *name, size_t name_len,
                    enum ew_field_type type);
void ew_fields_close(struct ew_fields *fields);

#endif
