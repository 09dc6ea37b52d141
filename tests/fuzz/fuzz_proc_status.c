/* SPDX-License-Identifier: MIT */
/* /proc/PID/status from any bytes, also for the check of the pid namespace. */
#include <stdint.h>
#include <string.h>

#include "fuzz.h"
#include "source/poll/proc_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_proc_status status, cut;
    struct ew_error error;
    (void)ew_proc_same_namespace(data, size, 1);
    int rc = ew_proc_parse_status(data, size, &status, &error);
    if (rc != 0) {
        require(error.code == rc && error.offset <= size, "the error lies within the text");
        return 0;
    }
    require(size > 0 && data[size - 1] == '\n', "only text that ends with a newline is complete");
    if (size > 1 && data[size - 2] != '\n')
        require(ew_proc_parse_status(data, size - 1, &cut, NULL) != 0,
                "a truncated line is an error");
    return 0;
}
