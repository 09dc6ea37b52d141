/* SPDX-License-Identifier: MIT */
/* Parses /proc/PID/fdinfo/FD of a DRM or accel device: what one client did on it. */
#ifndef EW_SENSOR_FDINFO_TEXT_H
#define EW_SENSOR_FDINFO_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ew_fdinfo {
    char driver[32], pdev[32]; /* "": not there */
    uint64_t client;
    bool has_client;
    bool has_engines;    /* drm-engine-*: busy time */
    uint64_t engines_ns; /* sum over all engines */
    bool has_codecs;     /* an engine that only encodes or only decodes */
    uint64_t encoder_ns, decoder_ns;
    bool has_cycles;       /* drm-cycles-* with drm-total-cycles-* (xe) */
    uint64_t cycles;       /* sum over all engines */
    uint64_t total_cycles; /* of one engine: they all count the same clock */
    bool has_memory;
    uint64_t memory_bytes; /* resident, else what the older key drm-memory-* says */
};

/* False: not the text of such a device. Unknown keys are ignored. */
bool ew_fdinfo_parse(const void *text, size_t len, struct ew_fdinfo *ret_info);

#endif
