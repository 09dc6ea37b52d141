/* SPDX-License-Identifier: MIT */
/* Values of options: numbers and lists, strictly and without the locale. */
#ifndef EW_CLI_ARGS_VALUE_H
#define EW_CLI_ARGS_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/args/options.h"

/* Digits with an optional fraction ("10", "0.5"): no sign, no exponent, nothing behind it. */
bool ew_value_number(const char *text, double *ret_number);
bool ew_value_u32(const char *text, uint32_t *ret_number);
bool ew_value_u64(const char *text, uint64_t *ret_number);
/* A number of seconds, or with a unit: "2", "1.5s", "200ms", "50us", "3min". */
bool ew_value_time(const char *text, uint64_t *ret_ns);
/* Adds the words between commas. 0, ETWATCH_EINVAL for an empty word, ETWATCH_ENOMEM. */
int ew_list_add(struct ew_list *list, const char *words);
/* Adds one word as it is. 0, ETWATCH_EINVAL if it is empty, ETWATCH_ENOMEM. */
int ew_list_add_word(struct ew_list *list, const char *word);
void ew_list_done(struct ew_list *list);
/* Adds one number to an array that ew_free frees. 0 or ETWATCH_ENOMEM. */
int ew_u32_add(uint32_t **array, uint32_t *count, uint32_t value);

#endif
