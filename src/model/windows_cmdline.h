/* SPDX-License-Identifier: MIT */
/* Command lines as Windows records them. */
#ifndef EW_MODEL_WINDOWS_CMDLINE_H
#define EW_MODEL_WINDOWS_CMDLINE_H

#include <stddef.h>

enum { EW_CMDLINE_BYTES = 8192 };

/* Copies a command line with its secrets masked, truncated to the buffer. "" stays "". */
void ew_cmdline_mask(const char *command_line, char buffer[EW_CMDLINE_BYTES]);

#endif
