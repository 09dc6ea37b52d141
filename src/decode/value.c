/* SPDX-License-Identifier: MIT */
/*
 * One value of a payload: every type that TDH knows, and the output formats that change its meaning
 * (an address in an integer, text in bytes). Reads only through the cursor; an incomplete value
 * leaves the cursor's error set and appends nothing.
 */
#include <stdio.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/utf16.h"
#include "decode/schema.h"

struct value {
    const struct ew_schema_field *field;
    const char *name;
    size_t name_len;
    struct ew_bytes *in;
    unsigned pointer_size;
    uint64_t length;
    struct ew_fields *out;
};

uint8_t ew_out_from_tdh(unsigned out)
{
    switch (out) {
    case 1:
        return EW_OUT_TEXT;
    case 2:
    case 33:
    case 38:
        return EW_OUT_FILETIME;
    case 3:
    case 5:
    case 7:
    case 9:
        return EW_OUT_SIGNED;
    case 4:
    case 6:
    case 8:
    case 10:
    case 20: /* PID */
    case 21: /* TID */
    case 30: /* WIN32ERROR */
        return EW_OUT_UNSIGNED;
    case 13:
        return EW_OUT_BOOLEAN;
    case 15:
    case 16:
    case 17:
    case 18:
    case 19:
    case 29: /* ERRORCODE */
    case 31: /* NTSTATUS */
    case 32: /* HRESULT */
    case 37: /* CODE_POINTER */
        return EW_OUT_HEX;
    case 22:
        return EW_OUT_PORT;
    case 23:
        return EW_OUT_IPV4;
    case 24:
        return EW_OUT_IPV6;
    case 25:
        return EW_OUT_SOCKADDR;
    case 28: /* XML */
    case 34: /* JSON */
    case 35: /* UTF8 */
        return EW_OUT_UTF8;
    default:
        return EW_OUT_DEFAULT;
    }
}

/* ------------------------------------------------------------------ numbers */

/* Merge sort: of several entries with one value the first applies, so their order must stay. */
bool ew_map_sort(struct ew_map_entry *entries, uint32_t count)
{
    bool sorted = true;
    for (uint32_t i = 1; i < count && sorted; i++)
        sorted = entries[i - 1].value <= entries[i].value;
    if (sorted)
        return true;
    struct ew_map_entry *merged = ew_calloc(count, sizeof *merged);
    if (!merged)
        return false;
    for (uint32_t width = 1; width < count; width *= 2) {
        for (uint32_t from = 0; from < count; from += 2 * width) {
            uint32_t a = from, a_end = from + width < count ? from + width : count;
            uint32_t b = a_end, b_end = a_end + width < count ? a_end + width : count;
            for (uint32_t to = from; to < b_end; to++) {
                bool left = b == b_end || (a < a_end && entries[a].value <= entries[b].value);
                merged[to] = entries[left ? a++ : b++];
            }
        }
        memcpy(entries, merged, count * sizeof *entries);
    }
    ew_free(merged);
    return true;
}

static const struct ew_map_entry *find_label(const struct ew_map *map, uint64_t value)
{
    uint32_t low = 0, high = map->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (map->entries[middle].value < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < map->count && map->entries[low].value == value ? &map->entries[low] : NULL;
}

/* The labels of single bits, in bit order. A bit without a label is shown in hex, or (FLAGS) makes
 * the text fail. 0: there is no text for the value, or no room. */
static size_t join_bits(const struct ew_map *map, uint64_t value, char *text, size_t size)
{
    const char *joint = map->style == EW_MAP_FLAGS ? ", " : "|";
    size_t len = 0;
    for (unsigned bit = 0; bit < 64 && value >> bit; bit++) {
        if (!(value >> bit & 1))
            continue;
        const struct ew_map_entry *entry = find_label(map, (uint64_t)1 << bit);
        if (!entry && map->style == EW_MAP_FLAGS)
            return 0;
        int added = entry ? snprintf(text + len, size - len, "%s%.*s", len ? joint : "",
                                     (int)entry->label_len, entry->label)
                          : snprintf(text + len, size - len, "%s0x%llx", len ? joint : "",
                                     (unsigned long long)1 << bit);
        if (added < 0 || (size_t)added >= size - len)
            return 0;
        len += (size_t)added;
    }
    return len;
}

static void add_mapped(const struct value *value, uint64_t number)
{
    const struct ew_map *map = value->field->map;
    bool bits = map->style == EW_MAP_BITS && map->count && number != 0;
    const struct ew_map_entry *entry = bits ? NULL : find_label(map, number);
    const char *label = entry ? entry->label : NULL;
    size_t len = entry ? entry->label_len : 0;
    char joined[512];
    if (!entry && map->style != EW_MAP_VALUES) {
        len = join_bits(map, number, joined, sizeof joined);
        label = len ? ew_fields_keep(value->out, joined, len) : NULL;
    }
    ew_fields_enum(value->out, value->name, value->name_len, number, label, len);
}

static uint64_t swap_bytes(uint64_t number, unsigned size)
{
    uint64_t swapped = 0;
    for (unsigned i = 0; i < size; i++)
        swapped |= (number >> (8 * i) & 0xFF) << (8 * (size - 1 - i));
    return swapped;
}

static int64_t sign_extend(uint64_t number, unsigned size)
{
    unsigned shift = 64 - 8 * size;
    return (int64_t)(number << shift) >> shift;
}

static void add_integer(const struct value *value, const uint8_t *raw, uint64_t number,
                        unsigned size, bool is_signed, bool hex)
{
    const struct ew_schema_field *field = value->field;
    enum ew_field_type type = hex ? EW_FIELD_HEX : EW_FIELD_U64;
    if (field->map) {
        add_mapped(value, number);
        return;
    }
    switch (field->out) {
    case EW_OUT_SIGNED:
        is_signed = true;
        hex = false;
        break;
    case EW_OUT_UNSIGNED:
        is_signed = hex = false;
        type = EW_FIELD_U64;
        break;
    case EW_OUT_HEX:
        hex = true;
        type = EW_FIELD_HEX;
        break;
    case EW_OUT_BOOLEAN:
        ew_fields_u64(value->out, value->name, value->name_len, EW_FIELD_BOOL, number != 0);
        return;
    case EW_OUT_PORT:
        ew_fields_u64(value->out, value->name, value->name_len, EW_FIELD_PORT,
                      swap_bytes(number, size));
        return;
    case EW_OUT_IPV4:
        if (size == 4) {
            ew_fields_raw(value->out, value->name, value->name_len, EW_FIELD_IPV4, raw, 4);
            return;
        }
        break;
    case EW_OUT_FILETIME:
        if (size == 8) {
            ew_fields_u64(value->out, value->name, value->name_len, EW_FIELD_FILETIME, number);
            return;
        }
        break;
    default:
        break;
    }
    if (is_signed && !hex)
        ew_fields_i64(value->out, value->name, value->name_len, sign_extend(number, size));
    else
        ew_fields_u64(value->out, value->name, value->name_len, type, number);
}

static uint64_t take_integer(const struct value *value, unsigned size, bool is_signed, bool hex)
{
    const uint8_t *raw = ew_bytes_take(value->in, size);
    uint64_t number = 0;
    if (!raw)
        return 0;
    for (unsigned i = 0; i < size; i++)
        number |= (uint64_t)raw[i] << (8 * i);
    add_integer(value, raw, number, size, is_signed, hex);
    return is_signed ? (uint64_t)sign_extend(number, size) : number;
}

static void take_float(const struct value *value)
{
    uint32_t bits = ew_bytes_u32(value->in);
    float number;
    memcpy(&number, &bits, sizeof number);
    if (ew_bytes_ok(value->in))
        ew_fields_double(value->out, value->name, value->name_len, EW_FIELD_FLOAT, (double)number);
}

static void take_double(const struct value *value)
{
    uint64_t bits = ew_bytes_u64(value->in);
    double number;
    memcpy(&number, &bits, sizeof number);
    if (ew_bytes_ok(value->in))
        ew_fields_double(value->out, value->name, value->name_len, EW_FIELD_DOUBLE, number);
}

/* --------------------------------------------------------------------- text */

static void add_wide(const struct value *value, const uint8_t *text, size_t len)
{
    ew_fields_utf16(value->out, value->name, value->name_len, text, len);
}

static void add_narrow(const struct value *value, const uint8_t *text, size_t len)
{
    ew_fields_ansi(value->out, value->name, value->name_len, text, len);
}

/* Fixed-size text may be padded with NULs. */
static void take_text(const struct value *value, size_t len, bool wide)
{
    const uint8_t *text = ew_bytes_take(value->in, len);
    if (!text)
        return;
    if (wide) {
        add_wide(value, text, ew_utf16_len(text, len));
    } else {
        const uint8_t *nul = len ? memchr(text, 0, len) : NULL;
        add_narrow(value, text, nul ? (size_t)(nul - text) : len);
    }
}

/* Text up to its NUL, which may be missing at the end of a payload. */
static void take_terminated(const struct value *value, bool wide)
{
    struct ew_bytes *in = value->in;
    size_t left = ew_bytes_left(in);
    size_t unit = wide ? 2 : 1;
    const uint8_t *text = ew_bytes_take(in, 0);
    size_t len;
    if (!text)
        return;
    if (left < unit) { /* not even an empty text */
        ew_bytes_fail(in, ETWATCH_ETRUNC);
        return;
    }
    if (wide) {
        len = ew_utf16_len(text, left);
    } else {
        const uint8_t *nul = memchr(text, 0, left);
        len = nul ? (size_t)(nul - text) : left;
    }
    ew_bytes_skip(in, len + unit <= left ? len + unit : left);
    if (wide)
        add_wide(value, text, len);
    else
        add_narrow(value, text, len);
}

static void take_string(const struct value *value, bool wide)
{
    size_t unit = wide ? 2 : 1;
    if (!value->field->length_by) {
        take_terminated(value, wide);
        return;
    }
    if (value->length > ew_bytes_left(value->in) / unit)
        ew_bytes_fail(value->in, ETWATCH_ETRUNC);
    else
        take_text(value, (size_t)value->length * unit, wide);
}

/* -------------------------------------------------------------------- bytes */

/* "192.0.2.1:80", "[2001:db8::1]:80"; other families are shown as bytes. */
static void add_sockaddr(const struct value *value, const uint8_t *raw, size_t len)
{
    char address[EW_IPV6_TEXT], text[EW_IPV6_TEXT + 16];
    unsigned family = len >= 2 ? (unsigned)(raw[0] | raw[1] << 8) : 0;
    unsigned port = len >= 4 ? (unsigned)(raw[2] << 8 | raw[3]) : 0;
    int used = 0;
    if (family == 2 && len >= 8) {
        (void)ew_ipv4_text(raw + 4, address);
        used = snprintf(text, sizeof text, "%s:%u", address, port);
    } else if (family == 23 && len >= 24) {
        (void)ew_ipv6_text(raw + 8, address);
        used = snprintf(text, sizeof text, "[%s]:%u", address, port);
    }
    const char *kept = used > 0 ? ew_fields_keep(value->out, text, (size_t)used) : NULL;
    if (kept)
        ew_fields_text(value->out, value->name, value->name_len, kept, (size_t)used);
    else
        ew_fields_raw(value->out, value->name, value->name_len, EW_FIELD_BINARY, raw, len);
}

static void take_binary(const struct value *value, uint64_t length)
{
    size_t left = ew_bytes_left(value->in);
    const uint8_t *raw = length <= left ? ew_bytes_take(value->in, (size_t)length) : NULL;
    size_t len = (size_t)length;
    if (!raw) {
        ew_bytes_fail(value->in, ETWATCH_ETRUNC);
        return;
    }
    if (value->field->out == EW_OUT_IPV6 && len == 16)
        ew_fields_raw(value->out, value->name, value->name_len, EW_FIELD_IPV6, raw, 16);
    else if (value->field->out == EW_OUT_IPV4 && len == 4)
        ew_fields_raw(value->out, value->name, value->name_len, EW_FIELD_IPV4, raw, 4);
    else if (value->field->out == EW_OUT_SOCKADDR)
        add_sockaddr(value, raw, len);
    else if (value->field->out == EW_OUT_UTF8 || value->field->out == EW_OUT_TEXT)
        add_narrow(value, raw, len);
    else
        ew_fields_raw(value->out, value->name, value->name_len, EW_FIELD_BINARY, raw, len);
}

/* If there is no length: an IPv6 address has a fixed size, anything else is the rest. */
static uint64_t binary_length(const struct value *value)
{
    if (value->field->length_by)
        return value->length;
    if (value->field->out == EW_OUT_IPV6)
        return 16;
    return ew_bytes_left(value->in);
}

static void take_raw(const struct value *value, size_t len, enum ew_field_type type)
{
    const uint8_t *raw = ew_bytes_take(value->in, len);
    if (raw)
        ew_fields_raw(value->out, value->name, value->name_len, type, raw, len);
}

static void take_sid(const struct value *value, bool token_user)
{
    struct ew_bytes *in = value->in;
    if (token_user) {
        struct ew_bytes ahead = *in;
        if (ew_bytes_u32(&ahead) == 0) { /* no SID */
            ew_bytes_skip(in, 4);
            if (ew_bytes_ok(in))
                ew_fields_null(value->out, value->name, value->name_len);
            return;
        }
        ew_bytes_skip(in, 2 * (size_t)value->pointer_size);
    }
    struct ew_bytes ahead = *in;
    ew_bytes_skip(&ahead, 1);
    size_t subs = ew_bytes_u8(&ahead);
    take_raw(value, 8 + 4 * subs, EW_FIELD_SID);
}

/* Days from 1601-01-01 to a date of the Gregorian calendar, by Howard Hinnant's days_from_civil:
 * years start in March, so that the leap day is the last of its year. */
static uint64_t days_since_1601(unsigned year, unsigned month, unsigned day)
{
    unsigned y = month <= 2 ? year - 1 : year;
    unsigned era = y / 400, of_era = y % 400;
    unsigned of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    unsigned days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    return (uint64_t)era * 146097 + days - 584694; /* 1601-01-01 in this count */
}

static void take_systemtime(const struct value *value)
{
    uint16_t part[8]; /* year, month, day of week, day, hour, minute, second, millisecond */
    for (int i = 0; i < 8; i++)
        part[i] = ew_bytes_u16(value->in);
    if (!ew_bytes_ok(value->in))
        return;
    if (part[0] < 1601 || part[0] > 30827 || part[1] < 1 || part[1] > 12 || part[3] < 1 ||
        part[3] > 31 || part[4] > 23 || part[5] > 59 || part[6] > 60 || part[7] > 999) {
        ew_fields_null(value->out, value->name, value->name_len);
        return;
    }
    uint64_t seconds = days_since_1601(part[0], part[1], part[3]) * 86400 + part[4] * 3600u +
                       part[5] * 60u + part[6];
    ew_fields_u64(value->out, value->name, value->name_len, EW_FIELD_FILETIME,
                  seconds * 10000000 + part[7] * 10000u);
}

/* ---------------------------------------------------------------------- all */

static uint64_t take_number(const struct value *value, unsigned in)
{
    switch (in) {
    case EW_IN_INT8:
        return take_integer(value, 1, true, false);
    case EW_IN_UINT8:
    case EW_IN_CHAR8:
        return take_integer(value, 1, false, false);
    case EW_IN_INT16:
        return take_integer(value, 2, true, false);
    case EW_IN_UINT16:
        return take_integer(value, 2, false, false);
    case EW_IN_INT32:
        return take_integer(value, 4, true, false);
    case EW_IN_UINT32:
        return take_integer(value, 4, false, false);
    case EW_IN_INT64:
        return take_integer(value, 8, true, false);
    case EW_IN_UINT64:
        return take_integer(value, 8, false, false);
    case EW_IN_HEX32:
        return take_integer(value, 4, false, true);
    case EW_IN_HEX64:
        return take_integer(value, 8, false, true);
    case EW_IN_POINTER:
        return take_integer(value, value->pointer_size, false, true);
    default: /* EW_IN_SIZE */
        return take_integer(value, value->pointer_size, false, false);
    }
}

static void take_counted(const struct value *value, unsigned in)
{
    unsigned count = ew_bytes_u16(value->in);
    if (in == EW_IN_REVERSED_COUNTED_UTF16 || in == EW_IN_REVERSED_COUNTED_ANSI)
        count = (count >> 8 | count << 8) & 0xFFFF;
    if (!ew_bytes_ok(value->in))
        return;
    if (in == EW_IN_COUNTED_BINARY) {
        take_binary(value, count);
        return;
    }
    const uint8_t *text = ew_bytes_take(value->in, count);
    if (!text)
        return;
    if (in == EW_IN_COUNTED_UTF16 || in == EW_IN_MOF_COUNTED_UTF16 ||
        in == EW_IN_REVERSED_COUNTED_UTF16)
        add_wide(value, text, count);
    else
        add_narrow(value, text, count);
}

static void take_char16(const struct value *value)
{
    const uint8_t *unit = ew_bytes_take(value->in, 2);
    if (unit)
        add_wide(value, unit, 2);
}

static bool take_as_text(const struct value *value, unsigned in)
{
    switch (in) {
    case EW_IN_UTF16:
    case EW_IN_ANSI:
        take_string(value, in == EW_IN_UTF16);
        return true;
    case EW_IN_COUNTED_UTF16:
    case EW_IN_COUNTED_ANSI:
    case EW_IN_COUNTED_BINARY: /* may contain text */
    case EW_IN_MOF_COUNTED_UTF16:
    case EW_IN_MOF_COUNTED_ANSI:
    case EW_IN_REVERSED_COUNTED_UTF16:
    case EW_IN_REVERSED_COUNTED_ANSI:
        take_counted(value, in);
        return true;
    case EW_IN_REST_UTF16:
    case EW_IN_REST_ANSI:
        take_text(value, ew_bytes_left(value->in), in == EW_IN_REST_UTF16);
        return true;
    case EW_IN_CHAR16:
        take_char16(value);
        return true;
    default:
        return false;
    }
}

static bool take_as_bytes(const struct value *value, unsigned in)
{
    switch (in) {
    case EW_IN_BINARY:
        take_binary(value, binary_length(value));
        return true;
    case EW_IN_HEXDUMP:
        take_binary(value, ew_bytes_u32(value->in));
        return true;
    case EW_IN_GUID:
        take_raw(value, 16, EW_FIELD_GUID);
        return true;
    case EW_IN_SID:
    case EW_IN_WBEM_SID:
        take_sid(value, in == EW_IN_WBEM_SID);
        return true;
    case EW_IN_SYSTEMTIME:
        take_systemtime(value);
        return true;
    default:
        return false;
    }
}

/* A type with a single output format. */
static void take_plain(const struct value *value, enum ew_field_type type, uint64_t number)
{
    if (ew_bytes_ok(value->in))
        ew_fields_u64(value->out, value->name, value->name_len, type, number);
}

void ew_schema_value(const struct ew_schema_field *field, const char *name, size_t name_len,
                     struct ew_bytes *in, unsigned pointer_size, uint64_t length,
                     struct ew_fields *fields, uint64_t *ret_number)
{
    struct value value = {field, name, name_len, in, pointer_size == 4 ? 4 : 8, length, fields};
    *ret_number = 0;
    if (ew_in_is_integer(field->in) || field->in == EW_IN_CHAR8) {
        *ret_number = take_number(&value, field->in);
        return;
    }
    if (take_as_text(&value, field->in) || take_as_bytes(&value, field->in))
        return;
    switch (field->in) {
    case EW_IN_NULL:
        ew_fields_null(fields, name, name_len);
        break;
    case EW_IN_FLOAT:
        take_float(&value);
        break;
    case EW_IN_DOUBLE:
        take_double(&value);
        break;
    case EW_IN_BOOLEAN:
        *ret_number = ew_bytes_u32(in);
        take_plain(&value, EW_FIELD_BOOL, *ret_number != 0);
        break;
    case EW_IN_FILETIME:
        take_plain(&value, EW_FIELD_FILETIME, ew_bytes_u64(in));
        break;
    case EW_IN_PAD2:
        ew_bytes_skip(in, 2);
        break;
    case EW_IN_PAD_POINTER:
        ew_bytes_skip(in, value.pointer_size == 8 ? 4 : 0);
        break;
    default: /* an unknown type has no known size */
        ew_bytes_fail(in, ETWATCH_EFORMAT);
        break;
    }
}
