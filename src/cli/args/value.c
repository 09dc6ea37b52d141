/* SPDX-License-Identifier: MIT */
/*
 * Value types of options: numbers, durations, sizes, lists. strtod would accept "1e3", "inf",
 * "0x10" and, in some locales, "1,5". A value that is almost right must be rejected with the right
 * form, so the text is read here, independent of the locale.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/quantity.h"
#include "cli/args/args.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool ew_value_number(const char *text, double *ret_number)
{
    double number = 0, place = 1;
    size_t digits = 0;
    for (; is_digit(*text); text++, digits++)
        number = number * 10 + (*text - '0');
    if (*text == '.') {
        for (text++; is_digit(*text); text++, digits++) {
            place /= 10;
            number += (*text - '0') * place;
        }
    }
    if (digits == 0 || digits > 15 || *text != '\0')
        return false;
    *ret_number = number;
    return true;
}

bool ew_value_u64(const char *text, uint64_t *ret_number)
{
    uint64_t number = 0;
    const char *at = text;
    for (; is_digit(*at) && at - text < 18; at++)
        number = number * 10 + (uint64_t)(*at - '0');
    if (at == text || *at != '\0')
        return false;
    *ret_number = number;
    return true;
}

bool ew_value_u32(const char *text, uint32_t *ret_number)
{
    uint64_t number;
    if (!ew_value_u64(text, &number) || number > UINT32_MAX)
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

/* A number and a unit; the result is at most 9e18, which fits into 64 bits. */
static bool read_quantity(const char *text, double bare_unit,
                          bool (*unit_of)(const char *unit, size_t len, double *ret_factor),
                          uint64_t *ret_value)
{
    char digits[32];
    double number, factor = bare_unit;
    size_t len = strspn(text, "0123456789.");
    if (len >= sizeof digits)
        return false;
    memcpy(digits, text, len);
    digits[len] = '\0';
    if (!ew_value_number(digits, &number) ||
        (text[len] != '\0' && !unit_of(text + len, strlen(text + len), &factor)) ||
        number * factor >= 9e18)
        return false;
    *ret_value = (uint64_t)(number * factor + 0.5);
    return true;
}

bool ew_value_duration(const char *text, double unit_ns, uint64_t *ret_ns)
{
    return read_quantity(text, unit_ns, ew_unit_of_time, ret_ns);
}

bool ew_value_size(const char *text, double unit_bytes, uint64_t *ret_bytes)
{
    return read_quantity(text, unit_bytes, ew_unit_of_memory, ret_bytes);
}

static int add_word(struct ew_list *list, const char *word, size_t len)
{
    if (len == 0)
        return ETWATCH_EINVAL;
    char **words = ew_realloc_array(list->words, (size_t)list->count + 1, sizeof *words);
    if (words == NULL)
        return ETWATCH_ENOMEM;
    list->words = words;
    char *copy = ew_calloc(len + 1, 1);
    if (copy == NULL)
        return ETWATCH_ENOMEM;
    memcpy(copy, word, len);
    words[list->count++] = copy;
    return 0;
}

int ew_args_list_add_word(struct ew_list *list, const char *word)
{
    return add_word(list, word, strlen(word));
}

int ew_args_list_add(struct ew_list *list, const char *words)
{
    for (;;) {
        size_t len = strcspn(words, ",");
        int rc = add_word(list, words, len);
        if (rc < 0 || words[len] == '\0')
            return rc;
        words += len + 1;
    }
}

void ew_args_list_done(struct ew_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        ew_free(list->words[i]);
    ew_free(list->words);
    *list = (struct ew_list){0};
}

int ew_ids_add(struct ew_ids *ids, uint32_t id)
{
    uint32_t *grown = ew_realloc_array(ids->ids, (size_t)ids->count + 1, sizeof *grown);
    if (grown == NULL)
        return ETWATCH_ENOMEM;
    grown[ids->count++] = id;
    ids->ids = grown;
    return 0;
}

void ew_ids_done(struct ew_ids *ids)
{
    ew_free(ids->ids);
    *ids = (struct ew_ids){0};
}
