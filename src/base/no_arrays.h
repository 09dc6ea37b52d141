/* SPDX-License-Identifier: MIT */
/*
 * EW_NO_ARRAYS marks a function that runs for every event and has no array on its stack, only
 * structs that it passes by address. The stack protector guards arrays; in these functions it
 * costs 2 to 4 % of reading a recording. Compilers without the attribute keep the guard.
 */
#ifndef EW_BASE_NO_ARRAYS_H
#define EW_BASE_NO_ARRAYS_H

#ifdef __has_attribute
#if __has_attribute(no_stack_protector)
#define EW_NO_ARRAYS __attribute__((no_stack_protector))
#endif
#endif

#ifndef EW_NO_ARRAYS
#define EW_NO_ARRAYS
#endif

#endif
