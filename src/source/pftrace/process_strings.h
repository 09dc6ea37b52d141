/* SPDX-License-Identifier: MIT */
/* What was last said about a process or thread in words: samples say them only when they change. */
#ifndef EW_SOURCE_PFTRACE_PROCESS_STRINGS_H
#define EW_SOURCE_PFTRACE_PROCESS_STRINGS_H

#include <stdint.h>

#include <etwatch/etwatch.h>

enum { EW_PFT_STRINGS_MAX = 1 << 16 };

struct ew_pft_string_row;

struct ew_pft_strings {
    struct ew_pft_string_row *lives;
    uint32_t count, size;
    uint32_t *index; /* hash of (pid, start, tid) to life + 1 */
    uint32_t index_mask;
};

void ew_pft_strings_done(struct ew_pft_strings *lives);
/* Words that the sample brings are kept, words that it lacks are put in, valid until the next call.
 * Without memory, or beyond the maximum, it stays as it is. */
void ew_pft_strings_complete(struct ew_pft_strings *lives, struct etwatch_sample *sample);

#endif
