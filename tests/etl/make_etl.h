/* SPDX-License-Identifier: MIT */
/* The options of make_etl, and the kinds of recordings it can make. */
#ifndef MAKE_ETL_H
#define MAKE_ETL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "etl_kit.h"
#include "scenario.h"

struct make_options {
    const char *kind, *out, *truth; /* truth is NULL if not requested */
    uint64_t seed, events, bytes;   /* 0: the default of the kind */
    uint32_t cpus, pointer_size, buffer_bytes, processes;
    bool compress;
};

/* The destination of a recording. */
struct make_output {
    FILE *file;
    uint64_t written;
    uint64_t stop_bytes;     /* a scenario ends when this many bytes are written; 0: never */
    uint64_t circular_slots; /* number of buffers after the header that are reused in turn; 0: not
                                circular */
    uint64_t slot, slot_bytes, header_bytes;
};

struct make_kind {
    const char *name, *what;
    int (*make)(const struct make_options *options, struct make_output *output);
};

extern const struct make_kind make_plain_kinds[]; /* the last entry has no name */
extern const struct make_kind make_content_kinds[];
extern const struct make_kind make_user_kinds[];
extern const struct make_kind make_graphics_kinds[];
extern const struct make_kind make_wrong_kinds[];
extern const struct make_kind make_damage_kinds[];
extern const struct make_kind make_names_kinds[];
extern const struct make_kind make_onnx_kinds[];

/* A config that writes to the output, with the given options. */
struct ew_etl_writer_config make_config(const struct make_options *options,
                                        struct make_output *output);
/* The same into memory, small enough to be damaged afterwards. */
int make_memory(const struct make_options *options, bool compress, uint64_t events,
                struct etl_memory *ret_memory);
int make_put(struct make_output *output, const void *bytes, size_t size);
int make_truth(const struct make_options *options, const struct ew_etl_writer_config *config,
               const struct etl_truth *truth);

#endif
