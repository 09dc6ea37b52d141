/* SPDX-License-Identifier: MIT */
/* Libraries of the system that are loaded when they are used first. They stay loaded. */
#ifndef EW_SERVE_LOADER_H
#define EW_SERVE_LOADER_H

#include <stdbool.h>
#include <stddef.h>

/* The first of these file names that can be loaded; NULL: none. */
void *ew_loader_open(const char *const *names, size_t count);
/* ret_function: a pointer to a function, of any type. False: the library does not have it. */
bool ew_loader_find(void *library, const char *name, void *ret_function);

#endif
