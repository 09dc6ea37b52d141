/* SPDX-License-Identifier: MIT */
/*
 * Converts decoded fields to the form of the public API: few types, terminated text.
 *
 * The text size of a field is known before it is written, so the text of one event is one block
 * that is allocated before anything points into it.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/sid.h"
#include "model/windows_cmdline.h"
#include "recording/trace.h"

enum { GUID_LEN = 36, ADDRESS_LEN = 46, TIME_LEN = 40 };

void ew_trace_fields_init(struct ew_trace_fields *fields)
{
    memset(fields, 0, sizeof *fields);
    ew_fields_init(&fields->decoded);
}

void ew_trace_fields_done(struct ew_trace_fields *fields)
{
    ew_fields_done(&fields->decoded);
    ew_free(fields->list);
    ew_free(fields->text);
    memset(fields, 0, sizeof *fields);
}

/* ------------------------------------------------------------ command lines */

static bool begins_with_word(const char *name, size_t len, const char *word)
{
    size_t matched = 0;
    for (size_t i = 0; i < len && word[matched] != '\0'; i++) {
        char c = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] | 0x20) : name[i];
        if (c == word[matched])
            matched++;
        else if (i == 0 || (c != '_' && c != ' ' && c != '-'))
            break;
    }
    return word[matched] == '\0';
}

/* CommandLine, ParentCommandLine, Command_Line, CmdLine, ... Most fields are numbers, so their
 * names are not looked at. */
static bool is_cmdline(const struct ew_field *field)
{
    bool can_hold_text = field->type == EW_FIELD_TEXT || field->type == EW_FIELD_BINARY ||
                         field->type == EW_FIELD_ARRAY || field->type == EW_FIELD_STRUCT;
    if (!can_hold_text || field->name == NULL)
        return false;
    const char *name = field->name;
    for (size_t len = field->name_len; len >= strlen("cmdline"); name++, len--) {
        bool c = *name == 'c' || *name == 'C'; /* both words begin with it, few names contain it */
        if (c &&
            (begins_with_word(name, len, "commandline") || begins_with_word(name, len, "cmdline")))
            return true;
    }
    return false;
}

static bool is_rest(const struct ew_field *field)
{
    return field->type == EW_FIELD_BINARY && field->name_len == 7 &&
           memcmp(field->name, "payload", 7) == 0;
}

/* Whether the value of a field is not shown as it is. *depth counts the open structs and arrays
 * inside a command line (a list of arguments); secrets cannot be recognised in a single argument.
 */
static bool is_private(const struct ew_field *field, bool withheld, uint32_t *depth)
{
    bool opens = field->type == EW_FIELD_ARRAY || field->type == EW_FIELD_STRUCT;
    bool inside = *depth > 0;
    if (opens)
        *depth += inside || is_cmdline(field);
    else if (field->type == EW_FIELD_CLOSE)
        *depth -= inside;
    else
        return inside || is_cmdline(field) || (withheld && is_rest(field));
    return false;
}

/* Copies the text with its secrets masked. Returns the length; to has EW_CMDLINE_BYTES. */
static size_t put_masked(char *to, const struct ew_field *field)
{
    char text[EW_CMDLINE_BYTES];
    size_t len = field->len < sizeof text ? field->len : sizeof text - 1;
    memcpy(text, field->v.text, len);
    text[len] = '\0';
    ew_cmdline_mask(text, to);
    return strlen(to);
}

/* ------------------------------------------------------------------------ room */

static size_t text_need(const struct ew_field *field)
{
    switch (field->type) {
    case EW_FIELD_TEXT:
        if (is_cmdline(field))
            return EW_CMDLINE_BYTES;
        return (size_t)field->len + 1;
    case EW_FIELD_ENUM:
        return (size_t)field->len + 1;
    case EW_FIELD_GUID:
        return GUID_LEN + 1;
    case EW_FIELD_SID:
        return EW_SID_SIZE;
    case EW_FIELD_IPV4:
    case EW_FIELD_IPV6:
        return ADDRESS_LEN + 1;
    case EW_FIELD_FILETIME:
    case EW_FIELD_UNIXTIME:
        return TIME_LEN + 1;
    default:
        return 0;
    }
}

static int make_room(struct ew_trace_fields *fields)
{
    const struct ew_fields *decoded = &fields->decoded;
    size_t text = 0;
    for (uint32_t i = 0; i < decoded->count; i++)
        text += text_need(&decoded->list[i]) + decoded->list[i].name_len + 1;
    if (text > fields->text_size) {
        size_t size = text < 4096 ? 4096 : text * 2;
        char *block = ew_realloc_array(fields->text, size, 1);
        if (block == NULL)
            return ETWATCH_ENOMEM;
        fields->text = block;
        fields->text_size = size;
    }
    if (decoded->count > fields->size) {
        uint32_t size = decoded->count < 64 ? 64 : decoded->count * 2;
        struct etwatch_field *list = ew_realloc_array(fields->list, size, sizeof *list);
        if (list == NULL)
            return ETWATCH_ENOMEM;
        fields->list = list;
        fields->size = size;
    }
    return 0;
}

/* --------------------------------------------------------------------- text */

static size_t put_guid(char *to, const uint8_t *guid)
{
    int len = snprintf(to, GUID_LEN + 1, "%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                       ew_load_u32(guid), ew_load_u16(guid + 4), ew_load_u16(guid + 6), guid[8],
                       guid[9], guid[10], guid[11], guid[12], guid[13], guid[14], guid[15]);
    return len > 0 ? (size_t)len : 0;
}

static size_t put_ipv4(char *to, const uint8_t *a)
{
    int len = snprintf(to, ADDRESS_LEN + 1, "%u.%u.%u.%u", a[0], a[1], a[2], a[3]);
    return len > 0 ? (size_t)len : 0;
}

/* The longest run of zero groups (at least two) is "::" (RFC 5952). */
static void find_zeros(const uint16_t *groups, int *ret_from, int *ret_len)
{
    *ret_from = -1;
    *ret_len = 1;
    for (int i = 0; i < 8; i++) {
        int len = 0;
        while (i + len < 8 && groups[i + len] == 0)
            len++;
        if (len > *ret_len) {
            *ret_from = i;
            *ret_len = len;
        }
    }
}

static size_t put_ipv6(char *to, const uint8_t *a)
{
    uint16_t groups[8];
    int from, zeros, used = 0;
    for (size_t i = 0; i < 8; i++)
        groups[i] = (uint16_t)(a[2 * i] << 8 | a[2 * i + 1]);
    find_zeros(groups, &from, &zeros);
    for (int i = 0; i < 8; i++) {
        if (i == from) {
            to[used++] = ':';
            to[used++] = ':';
            i += zeros - 1;
            continue;
        }
        bool colon = used > 0 && to[used - 1] != ':';
        used += snprintf(to + used, (size_t)(ADDRESS_LEN + 1 - used), "%s%x", colon ? ":" : "",
                         groups[i]);
    }
    to[used] = '\0';
    return (size_t)used;
}

/* Converts days since 1601 to a date, by eras of 400 years that begin in March (the leap day
 * comes last). */
static size_t put_time(char *to, uint64_t filetime, bool fraction)
{
    uint64_t seconds = filetime / 10000000, days = seconds / 86400 + 584694;
    uint64_t era_day = days % 146097;
    uint64_t era_year = (era_day - era_day / 1460 + era_day / 36524 - era_day / 146096) / 365;
    uint64_t year_day = era_day - (365 * era_year + era_year / 4 - era_year / 100);
    uint64_t shifted = (5 * year_day + 2) / 153;
    unsigned month = (unsigned)(shifted < 10 ? shifted + 3 : shifted - 9);
    unsigned day = (unsigned)(year_day - (153 * shifted + 2) / 5 + 1);
    unsigned long long year = days / 146097 * 400 + era_year + (month <= 2);
    int len = snprintf(to, TIME_LEN + 1, "%04llu-%02u-%02uT%02u:%02u:%02u", year, month, day,
                       (unsigned)(seconds / 3600 % 24), (unsigned)(seconds / 60 % 60),
                       (unsigned)(seconds % 60));
    if (fraction && len > 0)
        len += snprintf(to + len, (size_t)(TIME_LEN + 1 - len), ".%07u",
                        (unsigned)(filetime % 10000000));
    if (len > 0 && len < TIME_LEN)
        to[len++] = 'Z';
    to[len] = '\0';
    return (size_t)len;
}

static size_t put_text(char *to, const struct ew_field *field)
{
    switch (field->type) {
    case EW_FIELD_GUID:
        return field->len >= 16 ? put_guid(to, field->v.raw) : 0;
    case EW_FIELD_SID:
        return ew_sid_text(to, field->v.raw, field->len);
    case EW_FIELD_IPV4:
        return field->len >= 4 ? put_ipv4(to, field->v.raw) : 0;
    case EW_FIELD_IPV6:
        return field->len >= 16 ? put_ipv6(to, field->v.raw) : 0;
    case EW_FIELD_FILETIME:
        return put_time(to, field->v.u, true);
    case EW_FIELD_UNIXTIME:
        return put_time(to, field->v.u % 100000000000u * 10000000u + 116444736000000000u, false);
    default: {
        const char *text = field->type == EW_FIELD_ENUM ? field->label : field->v.text;
        if (field->len > 0)
            memcpy(to, text, field->len);
        return field->len;
    }
    }
}

/* --------------------------------------------------------------- conversion */

static uint32_t public_type(const struct ew_field *field)
{
    switch (field->type) {
    case EW_FIELD_U64:
    case EW_FIELD_PORT:
        return ETWATCH_FIELD_U64;
    case EW_FIELD_I64:
        return ETWATCH_FIELD_I64;
    case EW_FIELD_HEX:
        return ETWATCH_FIELD_HEX;
    case EW_FIELD_BOOL:
        return ETWATCH_FIELD_BOOL;
    case EW_FIELD_DOUBLE:
        return ETWATCH_FIELD_DOUBLE;
    case EW_FIELD_FLOAT:
        return ETWATCH_FIELD_FLOAT;
    case EW_FIELD_ENUM:
        return field->len > 0 ? ETWATCH_FIELD_TEXT : ETWATCH_FIELD_U64;
    case EW_FIELD_BINARY:
        return ETWATCH_FIELD_BINARY;
    case EW_FIELD_NULL:
        return ETWATCH_FIELD_NULL;
    case EW_FIELD_ARRAY:
        return ETWATCH_FIELD_ARRAY;
    case EW_FIELD_STRUCT:
        return ETWATCH_FIELD_STRUCT;
    case EW_FIELD_CLOSE:
        return ETWATCH_FIELD_CLOSE;
    default:
        return ETWATCH_FIELD_TEXT;
    }
}

int ew_trace_fields_convert(struct ew_trace_fields *fields, bool show_cmdline,
                            bool may_have_cmdline)
{
    const struct ew_fields *decoded = &fields->decoded;
    int rc = decoded->error != 0 ? decoded->error : make_room(fields);
    if (rc < 0)
        return rc;
    char *at = fields->text;
    uint32_t depth = 0;
    fields->withheld = may_have_cmdline;
    for (uint32_t i = 0; i < decoded->count && !fields->withheld; i++)
        fields->withheld = is_cmdline(&decoded->list[i]);
    for (uint32_t i = 0; i < decoded->count; i++) {
        const struct ew_field *from = &decoded->list[i];
        struct etwatch_field *to = &fields->list[i];
        to->name = NULL;
        if (from->name != NULL) {
            memcpy(at, from->name, from->name_len);
            at[from->name_len] = '\0';
            to->name = at;
            at += from->name_len + 1;
        }
        bool private = fields->withheld && is_private(from, fields->withheld, &depth);
        bool masked = private && show_cmdline && depth == 0 && from->type == EW_FIELD_TEXT;
        to->type = private && !masked ? ETWATCH_FIELD_NULL : public_type(from);
        to->len = 0;
        to->v.u = from->v.u;
        if (to->type == ETWATCH_FIELD_NULL) {
            to->v.u = 0;
        } else if (to->type == ETWATCH_FIELD_BINARY) {
            to->len = from->len;
            to->v.bytes = from->v.raw;
        } else if (to->type == ETWATCH_FIELD_TEXT) {
            size_t len = masked ? put_masked(at, from) : put_text(at, from);
            at[len] = '\0';
            to->len = (uint32_t)len;
            to->v.text = at;
            at += text_need(from);
        } else if (from->type == EW_FIELD_DOUBLE || from->type == EW_FIELD_FLOAT) {
            to->v.d = from->v.d;
        }
    }
    return 0;
}
