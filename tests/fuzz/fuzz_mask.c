/* SPDX-License-Identifier: MIT */
/*
 * Any command line, followed by a secret. Whatever the preceding arguments are, the secret must not
 * be in the output, the text must be terminated within its buffer, and a smaller buffer must hold a
 * prefix of the same text.
 */
#include <stdint.h>
#include <string.h>

#include "fuzz.h"
#include "model/mask.h"

enum { INPUT_MAX = 2048 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char secret[] = "\0--password=S3cr3t-0-Mark\0--token\0S3cr3t-0-Mark two";
    char args[INPUT_MAX + sizeof secret], whole[4 * (INPUT_MAX + sizeof secret)], part[64];
    if (size > INPUT_MAX)
        return 0;
    if (size > 0)
        memcpy(args, data, size);
    memcpy(args + size, secret, sizeof secret);

    size_t len = ew_mask_cmdline(args, size + sizeof secret, whole, sizeof whole);
    require(len < sizeof whole && strlen(whole) == len, "the text is terminated");
    require(memchr(data, 'M', size) != NULL || strstr(whole, "Mark") == NULL, "nothing leaks");
    size_t part_len = ew_mask_cmdline(args, size + sizeof secret, part, sizeof part);
    require(part_len < sizeof part && memcmp(part, whole, part_len) == 0,
            "a truncated text is a prefix");

    /* Alone, and truncated in the middle of an argument. */
    len = ew_mask_cmdline((const char *)data, size, whole, sizeof whole);
    require(strlen(whole) == len, "the text is terminated");
    return 0;
}
