/* SPDX-License-Identifier: MIT */
/* /proc/PID/io from any bytes. */
#include <stdint.h>
#include <string.h>

#include "fuzz.h"
#include "source/poll/proc_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_proc_io io;
    struct ew_error error;
    int rc = ew_proc_parse_io(data, size, &io, &error);
    if (rc != 0)
        require(error.code == rc && error.offset <= size, "the error lies within the text");
    else
        require(data[size - 1] == '\n', "only text that ends with a newline is complete");
    return 0;
}
