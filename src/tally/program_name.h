/* SPDX-License-Identifier: MIT */
/*
 * The name of a program from its command line. Process events carry the name in the code page of
 * the recorded machine, which is unknown here: other letters than ASCII are lost, or replaced by
 * similar ones. The command line in the same event is UTF-16 and usually begins with the program.
 */
#ifndef EW_TALLY_PROGRAM_NAME_H
#define EW_TALLY_PROGRAM_NAME_H

#include <stddef.h>
#include <stdint.h>

#include "model/event.h"

/*
 * Writes the name in UTF-8, terminated, and returns its length. 0: the command line begins with
 * another program, or the name is plain ASCII there. size must be > 0.
 *
 * Taken only if every ASCII letter of it is at its place in the name of the event, and each other
 * letter stands for one or two bytes there: no other program is mistaken for it.
 */
size_t ew_program_name(const struct ew_event_text *image, const struct ew_event_text *command_line,
                       char *buffer, size_t size);

#endif
