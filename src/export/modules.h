/* SPDX-License-Identifier: MIT */
/* Which program file or library an address belongs to: of which process, and when. */
#ifndef EW_EXPORT_MODULES_H
#define EW_EXPORT_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/event.h"

struct ew_module {
    uint64_t base, end;
    uint64_t from_ns, to_ns;
    uint32_t pid;
    uint32_t name; /* place in the text */
};

struct ew_modules {
    struct ew_module *list;
    uint32_t count, size;
    char *text;
    uint32_t text_len, text_size;
    uint64_t refused; /* beyond the maximum, or without memory */
    bool sorted;
};

void ew_modules_init(struct ew_modules *modules);
void ew_modules_done(struct ew_modules *modules);
/* EW_EVENT_IMAGE_*, in order of time. */
void ew_modules_learn(struct ew_modules *modules, const struct ew_event *event);
/* After learning, before asking. */
void ew_modules_sort(struct ew_modules *modules);
/* "ntdll.dll!0x1234", or "0x7ff…" if the address is of no module. Always terminated. */
void ew_modules_name(const struct ew_modules *modules, uint32_t pid, uint64_t address,
                     uint64_t t_ns, char *buffer, size_t size);

#endif
