/* SPDX-License-Identifier: MIT */
/* The loaded programs and their maps, as user space sees them. */
#ifndef EW_SOURCE_EBPF_OBJECT_H
#define EW_SOURCE_EBPF_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/ebpf/abi.h"
#include "source/ebpf/optional_counters.h"
#include "source/source.h"

struct bpf_object;
struct bpf_link;

enum { EW_EBPF_LINKS_MAX = 24, EW_EBPF_TIMED_MAX = 24 };

/* One of the maps that both sides write to without a system call. */
struct ew_ebpf_mapping {
    void *base;
    size_t size;
};

struct ew_ebpf_object {
    struct bpf_object *bpf;
    struct bpf_link *links[EW_EBPF_LINKS_MAX];
    uint32_t link_count;
    uint32_t cpu_count;          /* possible CPUs */
    uint32_t log_entries;        /* per CPU, a power of two */
    int settle_fd;               /* programs */
    int switch_fd;               /* program */
    int seed_link_fd;            /* iterator link; each read makes an iterator of it */
    int watched_fd, excluded_fd; /* maps */
    int life_fd;
    int stream_fd;
    int timed_fds[EW_EBPF_TIMED_MAX]; /* attached programs, whose run time is ours */
    uint32_t timed_count;
    struct ew_ebpf_mapping mappings[12];
    uint32_t mapping_count;
    struct ew_k_clock *clock;
    struct ew_k_head *heads;
    const struct ew_k_entry *entries;
    const struct ew_k_lost *losses;
    uint64_t *requests; /* indexes of entries */
    const struct ew_k_settled *settled;
    const struct ew_k_running *running;
    const struct ew_k_extra *entry_extras; /* beside the entries, if asked for */
    struct ew_ebpf_optional optional;
    uint32_t want; /* enum ew_k_want: what the programs copy */
};

/* Loads and attaches everything the configuration asks for. On failure nothing stays behind. */
int ew_ebpf_object_open(struct ew_ebpf_object *object, const struct ew_source_config *config,
                        struct ew_error *reterr);
void ew_ebpf_object_close(struct ew_ebpf_object *object);

/* Runs the settle program over the first request_count requests and, if cpus, all CPUs. */
int ew_ebpf_object_settle(struct ew_ebpf_object *object, uint32_t request_count, bool cpus,
                          bool clear_cells);

#endif
