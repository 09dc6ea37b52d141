/* SPDX-License-Identifier: MIT */
#include "base/quantity.h"

#include <string.h>

struct unit {
    const char *name;
    double factor;
};

static const struct unit times[] = {
    {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9},
};

#define KIBI 1024.0
static const struct unit sizes[] = {
    {"B", 1},
    {"K", KIBI},
    {"M", KIBI *KIBI},
    {"G", KIBI *KIBI *KIBI},
    {"T", KIBI *KIBI *KIBI *KIBI},
    {"k", KIBI},
    {"KiB", KIBI},
    {"MiB", KIBI *KIBI},
    {"GiB", KIBI *KIBI *KIBI},
    {"TiB", KIBI *KIBI *KIBI *KIBI},
    {"KB", 1e3},
    {"kB", 1e3},
    {"MB", 1e6},
    {"GB", 1e9},
    {"TB", 1e12},
};

static bool find(const struct unit *units, size_t count, const char *unit, size_t len,
                 double *ret_factor)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(units[i].name) == len && memcmp(units[i].name, unit, len) == 0) {
            *ret_factor = units[i].factor;
            return true;
        }
    }
    return false;
}

bool ew_unit_of_time(const char *unit, size_t len, double *ret_ns)
{
    return find(times, sizeof times / sizeof times[0], unit, len, ret_ns);
}

bool ew_unit_of_memory(const char *unit, size_t len, double *ret_bytes)
{
    return find(sizes, sizeof sizes / sizeof sizes[0], unit, len, ret_bytes);
}
