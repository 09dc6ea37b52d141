/* SPDX-License-Identifier: MIT */
/* Manifests that .NET's EventSource writes into its own stream, in chunks. */
#ifndef EW_DECODE_EVENTSOURCE_H
#define EW_DECODE_EVENTSOURCE_H

#include "decode/store.h"
#include "model/record.h"

enum {
    EW_EVENTSOURCE_OPEN_MAX = 16,          /* manifests that are being put together */
    EW_EVENTSOURCE_MANIFEST_MAX = 1 << 20, /* bytes of one */
    EW_EVENTSOURCE_KNOWN_MAX = 1024,       /* manifests that need not be read again */
};

struct ew_eventsource {
    struct ew_eventsource_open {
        uint8_t guid[16];
        uint32_t pid;
        uint16_t total, next; /* chunks; total 0: free */
        uint32_t used_at;     /* for choosing whom to give up */
        char *text;
        size_t len, size;
    } open[EW_EVENTSOURCE_OPEN_MAX];
    uint32_t clock;
    uint32_t known_count;
    uint64_t known[EW_EVENTSOURCE_KNOWN_MAX]; /* hashes of (provider, text) */
    uint64_t refused;                         /* chunks out of order, manifests too large */
};

void ew_eventsource_done(struct ew_eventsource *source);

/* The record is a chunk of a manifest. */
bool ew_eventsource_is_chunk(const struct ew_record *record);
/* Takes a chunk; after the last one the manifest's schemas are in the store. 1: they came now;
 * 0: not yet, or known already; ETWATCH_ENOMEM. */
int ew_eventsource_learn(struct ew_eventsource *source, struct ew_store *store,
                         const struct ew_record *record);
/* The layout of the chunk event itself. */
const struct ew_schema *ew_eventsource_chunk_schema(void);

#endif
