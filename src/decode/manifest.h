/* SPDX-License-Identifier: MIT */
/* Manifests as text (XML, UTF-8 or UTF-16): those that EventSource writes into its stream, and
 * files.
 */
#ifndef EW_DECODE_MANIFEST_H
#define EW_DECODE_MANIFEST_H

#include <stddef.h>

#include "decode/store.h"

enum {
    EW_MANIFEST_BYTES_MAX = 4 << 20,
    EW_MANIFEST_ITEMS_MAX = 65536, /* of each kind: tasks, events, fields, … */
};

/*
 * Adds the schema of every event to the store, with this origin. Returns their number, or
 * ETWATCH_ENOMEM, or ETWATCH_EFORMAT: no provider in it, or larger than the maximum. Invalid markup
 * ends the manifest; everything before it counts.
 */
int ew_manifest_learn(struct ew_store *store, const void *text, size_t size, unsigned origin);

#endif
