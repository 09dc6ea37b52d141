/* SPDX-License-Identifier: MIT */
/*
 * Which kernel events a session gets: by its flags, by the keywords of system providers, or by the
 * group mask of a recording. Written from the constants of the SDK and from Microsoft's
 * documentation, not from src/source/etw/kernel.h, so that a mistake there loses events here, as on
 * Windows.
 */
#ifndef ETW_GATES_H
#define ETW_GATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/record.h"

enum { ETW_GATE_PROVIDERS = 7, ETW_GATE_MANIFESTS = 3 };

/* What a session has enabled. */
struct etw_enabled {
    uint32_t flags;
    uint64_t keywords[ETW_GATE_PROVIDERS];
    uint32_t manifests; /* bit etw_gate_manifest */
};

/* Where a row comes from. */
enum etw_gate_source {
    ETW_GATE_SDK = 1,       /* constants of evntrace.h */
    ETW_GATE_DOC = 2,       /* pages of the event classes and "System Providers" */
    ETW_GATE_RECORDING = 4, /* real recordings with the bit in their group mask have the events */
};

struct etw_gate {
    const char *name;    /* EVENT_TRACE_FLAG_… */
    uint8_t group;       /* class of the events, as in recordings */
    uint8_t first, last; /* opcodes */
    uint32_t flag;
    uint8_t provider;       /* index of etw_gate_guid */
    uint64_t keyword;       /* SYSTEM_…_KW_… */
    uint32_t keyword_build; /* first build that knows the keyword */
    uint32_t mask;          /* PERF_…: group in the top three bits, bits below */
    uint8_t sources;        /* enum etw_gate_source */
};
extern const struct etw_gate etw_gates[];
extern const size_t etw_gate_count;
extern const uint8_t etw_gate_guid[ETW_GATE_PROVIDERS][16];

/* The index of a system provider, or ETW_GATE_PROVIDERS. */
uint32_t etw_gate_provider(const uint8_t guid[16]);
/* The same for the manifest providers that are gated: DxgKrnl, DXGI and Direct3D 9. Events of
 * others are always delivered. */
uint32_t etw_gate_manifest(const uint8_t guid[16]);
/* Whether a session with this gets such an event. Events without a row (headers, configuration)
 * pass. */
bool etw_gate_passes(const struct etw_enabled *enabled, uint32_t os_build, uint8_t group,
                     uint8_t opcode);
/* Adds the group masks in a record of the session that made a recording. A merged recording has
 * those of each of its sessions. False: it has none. */
bool etw_gate_add_mask(uint32_t mask[8], const struct ew_record *record);
/* Whether a mask gives such an event by this row. */
bool etw_gate_mask_gives(const struct etw_gate *gate, const uint32_t mask[8], uint8_t group,
                         uint8_t opcode);
/* The same for the group mask of a recording. */
bool etw_gate_mask_passes(const uint32_t mask[8], uint8_t group, uint8_t opcode);

#endif
