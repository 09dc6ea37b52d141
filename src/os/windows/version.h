/* SPDX-License-Identifier: MIT */
/* The version of Windows or Wine. */
#ifndef EW_OS_WINDOWS_VERSION_H
#define EW_OS_WINDOWS_VERSION_H

#include <stdint.h>

struct ew_windows_version {
    uint32_t major, minor, build;
    const char *wine; /* version of Wine; NULL: this is Windows */
};

void ew_windows_version(struct ew_windows_version *ret_version);

#endif
