/* SPDX-License-Identifier: MIT */
/* Internet addresses, 4 or 16 bytes in network order, as text. */
#ifndef EW_BASE_ADDRESS_H
#define EW_BASE_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

enum { EW_IPV4_TEXT = 16, EW_IPV6_TEXT = 40 }; /* with the terminator */

/* Both return the length without the terminator. IPv6 by RFC 5952: lower case, no leading zeros,
 * the longest run of zero groups is "::". */
size_t ew_ipv4_text(const uint8_t address[4], char ret_text[EW_IPV4_TEXT]);
size_t ew_ipv6_text(const uint8_t address[16], char ret_text[EW_IPV6_TEXT]);

#endif
