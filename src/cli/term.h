/* SPDX-License-Identifier: MIT */
/* The terminal: is there one, how large, keys without Enter. */
#ifndef EW_CLI_TERM_H
#define EW_CLI_TERM_H

#include <stdbool.h>
#include <stdint.h>

enum { EW_TERM_OUT = 1, EW_TERM_ERR = 2 };

bool ew_term_is(int which);
/* Colour for this output: a terminal, and NO_COLOR is not set. */
bool ew_term_color(int which);
/* 80 x 24 if unknown. */
void ew_term_size(uint32_t *ret_columns, uint32_t *ret_rows);
/* Keys come one by one and are not echoed; false if there is no keyboard. */
bool ew_term_raw(void);
/* As before ew_term_raw. May be called twice. */
void ew_term_restore(void);
/* The next key that is waiting, or 0. */
int ew_term_key(void);

#endif
