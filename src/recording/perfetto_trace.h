/* SPDX-License-Identifier: MIT */
/* Internal header of the Perfetto reader in this folder (perfetto_*.c); trace.h has the
 * interface to it. */
#ifndef EW_RECORDING_PERFETTO_TRACE_H
#define EW_RECORDING_PERFETTO_TRACE_H

#include "recording/trace.h"
#include "source/pftrace/reader.h"

enum {
    EW_PERFETTO_TRACE_FILES_MAX = 256,
    EW_PERFETTO_TRACE_WINDOW = 1 << 15,
    EW_PERFETTO_TRACE_FIELDS_MAX = 272 /* as many metrics as a set has, and the other fields */
};

struct ew_perfetto_trace_file {
    char *path;
    struct ew_pftrace *reader;
    struct etwatch_meta meta; /* size 0: none */
    char os[192], host[128];
    uint64_t end_ns; /* 0: never closed, or not read yet */
    bool compressed;
};

/* An item of the walk that is waiting to be delivered. */
struct ew_perfetto_trace_item {
    uint64_t t_ns, order;
    uint32_t what; /* enum ew_perfetto_trace_what */
    uint32_t slot; /* of samples */
    struct etwatch_event event;
    char name[64], next_name[16];
};

enum ew_perfetto_trace_what {
    EW_PERFETTO_TRACE_EVENT = 1,
    EW_PERFETTO_TRACE_SAMPLE,
    EW_PERFETTO_TRACE_LOSS,
    EW_PERFETTO_TRACE_OTHER,
    EW_PERFETTO_TRACE_ALERT,
};

/* A waiting sample, or alert, with its strings. */
struct ew_perfetto_trace_slot {
    struct etwatch_sample sample;
    struct etwatch_alert alert;
    char *text;
    size_t text_size, text_len; /* len: in use */
    uint32_t next_free;
};

/* A process as needed for the selection. */
struct ew_perfetto_trace_process {
    uint32_t pid, ppid, flags;
};

struct ew_perfetto_trace {
    struct ew_perfetto_trace_file *files;
    size_t file_count;
    const struct etwatch_trace_options *options;
    const struct ew_selection *selection;
    uint64_t begin_ns; /* Unix time of the start of the recording */
    struct etwatch_trace_stats stats;
    uint64_t progress_bytes;

    /* The walk. */
    size_t file_at;
    struct ew_perfetto_trace_item *heap;
    uint32_t heap_count, heap_size;
    uint64_t order;
    struct ew_perfetto_trace_slot *slots;
    uint32_t slot_count, slot_size, free_slot; /* free_slot: index + 1 */
    size_t text_bytes;                         /* strings of the waiting samples */
    struct ew_perfetto_trace_item current;
    bool has_current;
    struct etwatch_field fields[EW_PERFETTO_TRACE_FIELDS_MAX];
    char process[64];
    int error;

    /* The selection; see perfetto_selection.c. */
    struct ew_perfetto_trace_process *processes;
    uint32_t process_count, process_size;
    bool learned;
};

/* Reports progress; ETWATCH_ESTATE if the caller cancels. */
int ew_perfetto_trace_progress(struct ew_perfetto_trace *trace, size_t file);
/* Whether t_ns is in the selected time range. */
bool ew_perfetto_trace_in_range(const struct ew_perfetto_trace *trace, uint64_t t_ns);
/* Adds the readers' damage counts to the statistics. */
void ew_perfetto_trace_count_damage(struct ew_perfetto_trace *trace);
void ew_perfetto_trace_walk_done(struct ew_perfetto_trace *trace);

#endif
