/* SPDX-License-Identifier: MIT */
/* Which Windows this is, or which Wine. */
#ifndef EW_OS_WINDOWS_VERSION_H
#define EW_OS_WINDOWS_VERSION_H

#include <stdint.h>

struct ew_windows_version {
    uint32_t major, minor, build;
    const char *wine; /* the version of Wine; NULL: it is Windows */
};

void ew_windows_version(struct ew_windows_version *ret_version);

#endif
