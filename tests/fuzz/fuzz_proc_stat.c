/* SPDX-License-Identifier: MIT */
/*
 * /proc/PID/stat from any bytes: an error lies within the text, and a complete line truncated
 * anywhere gives the same numbers or an error, never other numbers.
 */
#include <stdint.h>
#include <string.h>

#include "fuzz.h"
#include "source/poll/proc_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_proc_stat stat, cut;
    struct ew_error error;
    int rc = ew_proc_parse_stat(data, size, &stat, &error);
    if (rc != 0) {
        require(error.code == rc && error.offset <= size, "the error lies within the text");
        return 0;
    }
    require(memchr(stat.comm, '\0', sizeof stat.comm) != NULL, "the name is terminated");
    for (size_t len = size > 64 ? size - 64 : 0; len < size; len++)
        if (ew_proc_parse_stat(data, len, &cut, NULL) == 0)
            require(cut.start_ticks == stat.start_ticks && cut.exit_code == stat.exit_code,
                    "truncated text gives the same numbers or none");
    return 0;
}
