/* SPDX-License-Identifier: MIT */
/*
 * Reads option values. strtod would take "1e3", "inf", "0x10" and, in some locales, "1,5"; a value
 * that is only nearly right should be refused with the right form, so the forms are read here.
 */
#include "cli/args/value.h"

#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "cli/args/parser.h"

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

bool ew_value_time(const char *text, uint64_t *ret_ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"min", 60e9}};
    char digits[32];
    double number;
    size_t len = strspn(text, "0123456789.");
    if (len >= sizeof digits)
        return false;
    memcpy(digits, text, len);
    digits[len] = '\0';
    if (!ew_value_number(digits, &number))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        double ns = number * units[i].ns;
        if (strcmp(units[i].name, text + len) == 0 && ns < 9e18) {
            *ret_ns = (uint64_t)(ns + 0.5);
            return true;
        }
    }
    return false;
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

int ew_list_add_word(struct ew_list *list, const char *word)
{
    return add_word(list, word, strlen(word));
}

int ew_list_add(struct ew_list *list, const char *words)
{
    for (;;) {
        size_t len = strcspn(words, ",");
        int rc = add_word(list, words, len);
        if (rc < 0 || words[len] == '\0')
            return rc;
        words += len + 1;
    }
}

void ew_list_done(struct ew_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        ew_free(list->words[i]);
    ew_free(list->words);
    *list = (struct ew_list){0};
}

int ew_u32_add(uint32_t **array, uint32_t *count, uint32_t value)
{
    uint32_t *grown = ew_realloc_array(*array, (size_t)*count + 1, sizeof *grown);
    if (grown == NULL)
        return ETWATCH_ENOMEM;
    grown[(*count)++] = value;
    *array = grown;
    return 0;
}

int ew_keep_text(struct ew_parser *p, const char *shown, const char *value, const char *what,
                 char **ret_text)
{
    if (value[0] == '\0')
        return ew_parser_fail(p, "%s needs %s", shown, what);
    char *copy = ew_strdup(value);
    if (copy == NULL)
        return ew_parser_fail(p, "out of memory");
    ew_free(*ret_text);
    *ret_text = copy;
    return 0;
}
