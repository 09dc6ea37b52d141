/* SPDX-License-Identifier: MIT */
/* A command line of Windows from arguments. */
#ifndef EW_CLI_QUOTE_H
#define EW_CLI_QUOTE_H

#include "base/buf.h"

/*
 * Adds one argument so that a program that parts its command line by the rules of Microsoft's C
 * library (and CommandLineToArgvW) gets exactly this text back.
 */
void ew_quote_argument(struct ew_buf *out, const char *argument);
/* The first word, the program: no escapes are known in it, so what has a quote cannot be named.
 * False then. */
bool ew_quote_program(struct ew_buf *out, const char *program);
/* Whether Windows would hand this program to its command interpreter, which parts the line by rules
 * of its own and runs what it finds behind an & in an argument. */
bool ew_quote_is_batch(const char *program);

#endif
