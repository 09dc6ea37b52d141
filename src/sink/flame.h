/* SPDX-License-Identifier: MIT */
/*
 * A profile: samples with their stacks, and the two text formats that flame graph viewers read.
 * Stacks with a common start share it, so memory grows with distinct stacks, not with samples.
 */
#ifndef EW_SINK_FLAME_H
#define EW_SINK_FLAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { EW_FLAME_NODES_MAX = 1 << 22, EW_FLAME_SAMPLES_MAX = 1 << 23 };

/* A node in the tree of stacks: a frame below its caller. */
struct ew_flame_node {
    uint64_t key;    /* distinguishes it from its siblings: an address */
    uint32_t parent; /* node, or EW_FLAME_ROOT */
    uint32_t frame;
    uint32_t count; /* samples that ended here */
};
#define EW_FLAME_ROOT UINT32_MAX

struct ew_flame_sample {
    uint32_t thread; /* node of the thread */
    uint32_t node;
    uint32_t weight_100ns; /* 0: unknown */
};

/* Interned names. */
struct ew_flame_names {
    char *text;
    uint32_t *offsets; /* of each name, and the end */
    uint32_t count, size, text_size;
    uint32_t *index, index_mask;
};

struct ew_flame {
    struct ew_flame_names frames;
    struct ew_flame_node *nodes;
    uint32_t node_count, node_size;
    uint32_t *index, index_mask;
    struct ew_flame_sample *samples;
    uint32_t sample_count, sample_size;
    uint64_t refused; /* samples beyond a maximum, or without memory */
    bool timed;       /* every sample has a weight */
};

void ew_flame_init(struct ew_flame *flame);
void ew_flame_done(struct ew_flame *flame);
/* The child with this key; UINT32_MAX: none. */
uint32_t ew_flame_find(const struct ew_flame *flame, uint32_t parent, uint64_t key);
/* Adds a child; UINT32_MAX: no room. */
uint32_t ew_flame_add(struct ew_flame *flame, uint32_t parent, uint64_t key, const char *frame);
/* Adds a sample with node as its innermost frame. */
void ew_flame_sample(struct ew_flame *flame, uint32_t thread, uint32_t node, uint32_t weight_100ns);

/* frame;frame;frame COUNT, one line per distinct stack. */
void ew_flame_put_folded(const struct ew_flame *flame, struct ew_buf *out);
/* The JSON of speedscope: one profile per thread, with its samples in time order. */
void ew_flame_put_speedscope(const struct ew_flame *flame, struct ew_buf *out, const char *name);

#endif
