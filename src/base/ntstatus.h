/* SPDX-License-Identifier: MIT */
/* Exit codes as text. */
#ifndef EW_BASE_NTSTATUS_H
#define EW_BASE_NTSTATUS_H

#include <stdint.h>

#include "base/buf.h"

/* Large codes are NTSTATUS values of Windows: in hexadecimal, and with their name if it is known,
 * "0xc0000005 access violation". Others are decimal. */
void ew_ntstatus_put(struct ew_buf *out, int64_t code);

#endif
