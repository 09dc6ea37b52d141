/* SPDX-License-Identifier: MIT */
/*
 * The fields of one event by their documented names, in order: what `events` prints.
 *
 * A flat list; a struct or an array is an opening entry, its members, and a closing entry. Names
 * and text are UTF-8, with their length. The list and its text are reused from event to event, so
 * decoding one allocates nothing once they have grown. At most EW_FIELDS_MAX entries: what a
 * payload claims beyond that is cut and `cut` says so.
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
    EW_FIELD_FLOAT,    /* d, of single precision: shown with as many digits as that has */
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
    EW_FIELD_NULL,     /* there is such a field, but no value */
    EW_FIELD_ARRAY,    /* opens; members have no names */
    EW_FIELD_STRUCT,   /* opens */
    EW_FIELD_CLOSE,    /* closes the innermost */
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
    uint32_t skipped;             /* and those that began behind the cut */
    bool cut;                     /* more was there than could be kept */
    int error;                    /* sticky: ETWATCH_ENOMEM */
    struct ew_fields_block *text; /* where converted text lives until the next event */
};

void ew_fields_init(struct ew_fields *fields);
void ew_fields_done(struct ew_fields *fields);
/* Begins the next event: everything added before is gone. */
void ew_fields_clear(struct ew_fields *fields);

/* name must live as long as the fields are used (a table, a schema, the payload). */
void ew_fields_u64(struct ew_fields *fields, const char *name, size_t name_len,
                   enum ew_field_type type, uint64_t value);
void ew_fields_i64(struct ew_fields *fields, const char *name, size_t name_len, int64_t value);
void ew_fields_double(struct ew_fields *fields, const char *name, size_t name_len,
                      enum ew_field_type type, double value);
/* Not copied. */
void ew_fields_raw(struct ew_fields *fields, const char *name, size_t name_len,
                   enum ew_field_type type, const uint8_t *bytes, size_t len);
/* Converted to UTF-8; what is not valid becomes U+FFFD. len in bytes. */
void ew_fields_utf16(struct ew_fields *fields, const char *name, size_t name_len,
                     const uint8_t *bytes, size_t len);
/* Bytes of an unknown 8-bit code page: ASCII stays, bytes that are no valid UTF-8 are taken as
 * Latin-1. */
void ew_fields_ansi(struct ew_fields *fields, const char *name, size_t name_len,
                    const uint8_t *bytes, size_t len);
/* Taken as it is: text that outlives the fields. */
void ew_fields_text(struct ew_fields *fields, const char *name, size_t name_len, const char *text,
                    size_t len);
/* A copy that lives until the next clear, for labels and texts that are put together; NULL: no
 * room.
 */
const char *ew_fields_keep(struct ew_fields *fields, const char *text, size_t len);
/* label: a table, or kept with ew_fields_keep; NULL: the value has no name. */
void ew_fields_enum(struct ew_fields *fields, const char *name, size_t name_len, uint64_t value,
                    const char *label, size_t label_len);
void ew_fields_null(struct ew_fields *fields, const char *name, size_t name_len);
/* ARRAY or STRUCT; each is paid back by one close. */
void ew_fields_open(struct ew_fields *fields, const char *name, size_t name_len,
                    enum ew_field_type type);
void ew_fields_close(struct ew_fields *fields);

#endif
