/* SPDX-License-Identifier: MIT */
/* A Perfetto trace from the inside: what its files share. */
#ifndef EW_RECORDING_PERFETTO_TRACE_H
#define EW_RECORDING_PERFETTO_TRACE_H

#include "recording/trace.h"
#include "source/pftrace/reader.h"

enum {
    EW_PERFETTO_TRACE_FILES_MAX = 256,
    EW_PERFETTO_TRACE_WINDOW = 1 << 15,
    EW_PERFETTO_TRACE_FIELDS_MAX = 80
};

struct ew_perfetto_trace_file {
    char *path;
    struct ew_pftrace *reader;
    struct etwatch_meta meta; /* size 0: none */
    char os[192], host[128];
    uint64_t end_ns; /* 0: it was never closed, or is not read yet */
    bool compressed;
};

/* One thing of the walk that waits for its turn. */
struct ew_perfetto_trace_item {
    uint64_t t_ns, order;
    uint32_t what; /* enum ew_ptrace_what */
    uint32_t slot; /* of samples */
    struct etwatch_event event;
    char name[64], next_name[16];
};

enum ew_perfetto_trace_what {
    EW_PERFETTO_TRACE_EVENT = 1,
    EW_PERFETTO_TRACE_SAMPLE,
    EW_PERFETTO_TRACE_LOSS,
    EW_PERFETTO_TRACE_OTHER,
};

/* A sample that waits, with its strings. */
struct ew_perfetto_trace_slot {
    struct etwatch_sample sample;
    char *text;
    size_t text_size;
    uint32_t next_free;
};

/* A process as far as it matters who is meant. */
struct ew_perfetto_trace_process {
    uint32_t pid, ppid, flags;
};

struct ew_perfetto_trace {
    struct ew_perfetto_trace_file *files;
    size_t file_count;
    const struct etwatch_trace_options *options;
    const struct ew_selection *selection;
    uint64_t begin_ns; /* Unix: the recording's beginning */
    struct etwatch_trace_stats stats;
    uint64_t progress_bytes;

    /* The walk. */
    size_t file_at;
    struct ew_perfetto_trace_item *heap;
    uint32_t heap_count, heap_size;
    uint64_t order;
    struct ew_perfetto_trace_slot *slots;
    uint32_t slot_count, slot_size, free_slot; /* free_slot: index + 1 */
    struct ew_perfetto_trace_item current;
    bool has_current;
    struct etwatch_field fields[EW_PERFETTO_TRACE_FIELDS_MAX];
    char process[64];
    int error;

    /* Who is meant; see trace_perfetto_who.c. */
    struct ew_perfetto_trace_process *processes;
    uint32_t process_count, process_size;
    bool learned;
};

/* Progress of the reading; ETWATCH_ESTATE if the caller wants to end. */
int ew_perfetto_trace_progress(struct ew_perfetto_trace *trace, size_t file);
/* Whether it lies in the part that was asked for. */
bool ew_perfetto_trace_wants(const struct ew_perfetto_trace *trace, uint64_t t_ns);
/* Adds what the readers counted to the statistics. */
void ew_perfetto_trace_count_damage(struct ew_perfetto_trace *trace);
void ew_perfetto_trace_walk_done(struct ew_perfetto_trace *trace);

#endif
