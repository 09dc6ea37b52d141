/* SPDX-License-Identifier: MIT */
/* Text of paths, with the separators of every system. */
#ifndef EW_BASE_PATH_H
#define EW_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The part after the last separator. */
const char *ew_path_name(const char *path);
/* The path of a file in a sequence: run.pftrace, run.2.pftrace, run.3.pftrace, … False: it does not
 * fit. */
bool ew_path_numbered(const char *path, uint32_t number, char *buffer, size_t size);

#endif
