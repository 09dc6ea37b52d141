/* SPDX-License-Identifier: MIT */
/* The dictionaries of columns: each text once, numbered. */
#ifndef EW_ARROW_DICTIONARY_H
#define EW_ARROW_DICTIONARY_H

#include "arrow/columns.h"

enum { EW_WORDS_MAX = 1 << 20, EW_WORDS_TEXT_MAX = 64 << 20 };

/* The number of a word that is there already, or -1. */
int32_t ew_dictionary_find(const struct ew_column *column, const char *text, size_t len);
/* One more. ETWATCH_ENOMEM, ETWATCH_ELIMIT. */
int ew_dictionary_add(struct ew_column *column, const char *text, size_t len, int32_t *ret_word);
/* A copy with U+FFFD for each byte that is no UTF-8; at most 3 * len bytes. Returns its length. */
size_t ew_dictionary_clean(const char *text, size_t len, char *to);

#endif
