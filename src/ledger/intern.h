/* SPDX-License-Identifier: MIT */
/*
 * Counted strings: many processes share few names, users and cgroups. A string lives as long as
 * somebody holds it, so that a machine that starts containers for months does not grow.
 */
#ifndef EW_LEDGER_INTERN_H
#define EW_LEDGER_INTERN_H

#include <stdint.h>

struct ew_intern_entry;

struct ew_intern {
    struct ew_intern_entry **buckets;
    uint32_t capacity; /* 0 or a power of two */
    uint32_t used;
};

void ew_intern_init(struct ew_intern *intern);
void ew_intern_done(struct ew_intern *intern);
/* A shared copy of text, or NULL without memory. Each take is paid back by one release. */
const char *ew_intern_take(struct ew_intern *intern, const char *text);
/* NULL is fine. */
void ew_intern_release(struct ew_intern *intern, const char *text);

#endif
