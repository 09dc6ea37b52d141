/* SPDX-License-Identifier: MIT */
#include "base/sid.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

enum { HEAD = 8, PARTS_MAX = 15 };

/* S-1-5-21-…: revision, authority (big endian), then the subauthorities. */
size_t ew_sid_text(char to[EW_SID_SIZE], const uint8_t *sid, size_t size)
{
    uint64_t authority = 0;
    if (size < HEAD || sid[1] > PARTS_MAX || size < HEAD + 4 * (size_t)sid[1])
        return 0;
    for (int i = 2; i < HEAD; i++)
        authority = authority << 8 | sid[i];
    int used = snprintf(to, EW_SID_SIZE, "S-%u-%llu", sid[0], (unsigned long long)authority);
    for (unsigned i = 0; i < sid[1] && used > 0 && used < EW_SID_SIZE; i++)
        used += snprintf(to + used, (size_t)(EW_SID_SIZE - used), "-%u",
                         ew_load_u32(sid + HEAD + 4 * (size_t)i));
    return used > 0 && used < EW_SID_SIZE ? (size_t)used : 0;
}

const char *ew_sid_name(const char *text)
{
    static const char *const known[][2] = {
        {"S-1-5-18", "SYSTEM"},
        {"S-1-5-19", "LOCAL SERVICE"},
        {"S-1-5-20", "NETWORK SERVICE"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(text, known[i][0]) == 0)
            return known[i][1];
    return text;
}
