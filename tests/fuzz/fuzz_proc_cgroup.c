/* SPDX-License-Identifier: MIT */
/* /proc/PID/cgroup from any bytes. */
#include <stdint.h>
#include <string.h>

#include "fuzz.h"
#include "source/poll/proc_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_span path;
    struct ew_error error;
    int rc = ew_proc_parse_cgroup(data, size, &path, &error);
    if (rc != 0) {
        require(error.code == rc && error.offset <= size, "the error lies within the text");
        return 0;
    }
    const char *text = (const char *)data;
    require(path.len == 0 || (path.text > text && path.text + path.len < text + size),
            "the path lies within the text");
    require(path.len == 0 || memchr(path.text, '\n', path.len) == NULL, "and within its line");
    return 0;
}
