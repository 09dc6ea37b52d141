/* SPDX-License-Identifier: MIT */
/* The short texts, schedstat and loadavg, and names of directory entries, from any bytes. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "source/poll/proc_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_proc_schedstat schedstat;
    struct ew_error error;
    uint32_t pid;
    char name[32], again[32];
    int rc = ew_proc_parse_schedstat(data, size, &schedstat, &error);
    require(rc == 0 || (error.code == rc && error.offset <= size), "the error is in the text");
    rc = ew_proc_parse_last_pid(data, size, &pid, &error);
    require(rc == 0 || (error.code == rc && error.offset <= size), "the error is in the text");
    size_t len = size < sizeof name - 1 ? size : sizeof name - 1;
    if (len > 0)
        memcpy(name, data, len);
    name[len] = '\0';
    pid = ew_proc_parse_pid_name(name);
    (void)snprintf(again, sizeof again, "%lu", (unsigned long)pid);
    require(pid == 0 || strcmp(name, again) == 0, "a pid has one name");
    return 0;
}
