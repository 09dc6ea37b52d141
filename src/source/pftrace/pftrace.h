/* SPDX-License-Identifier: MIT */
/* Internal interfaces of the Perfetto trace reader. */
#ifndef EW_SOURCE_PFTRACE_PFTRACE_H
#define EW_SOURCE_PFTRACE_PFTRACE_H

#include <stdint.h>

#include <etwatch/etwatch.h>

#include "base/buf.h"
#include "base/proto.h"
#include "model/perfetto.h"
#include "source/pftrace/inflate.h"
#include "source/pftrace/reader.h"

/* -------------------------------------------------------------------- process_strings */

/* The last known strings of each process and thread: samples carry strings only when they
 * change. */

enum { EW_PFT_STRINGS_MAX = 1 << 16, EW_PFT_STRINGS_BYTES_MAX = 16 << 20 };

struct ew_pft_string_row;

struct ew_pft_strings {
    struct ew_pft_string_row *rows;
    uint32_t count, size;
    size_t bytes;    /* of all texts */
    uint32_t *index; /* hash of (pid, start, tid) to row + 1 */
    uint32_t index_mask;
};

void ew_pft_strings_done(struct ew_pft_strings *strings);
/* Stores the strings that the sample has and fills in those that it lacks, valid until the next
 * call. Without memory, or beyond the maximum, the sample is unchanged. */
void ew_pft_strings_complete(struct ew_pft_strings *strings, struct etwatch_sample *sample);

enum {
    EW_PFT_CPUS_MAX = 1024,
    EW_PFT_IIDS_MAX = 512,
    EW_PFT_NAMES_MAX = 8192, /* in the table of one bundle */
    EW_PFT_THREAD_BITS = 15,
    EW_PFT_NAME_SIZE = 16,
    EW_PFT_TEXT_MAX = 8192, /* longer strings of samples are truncated */
    EW_PFT_STEPS = 4096,    /* events that one call of ew_pftrace_next emits at most */
};

/* A thread as described by the trace so far; the latest description wins. */
struct ew_pft_thread {
    uint32_t tid, pid;
    char name[EW_PFT_NAME_SIZE];
};

/* The thread that runs on a CPU. */
struct ew_pft_cpu {
    bool known;
    uint32_t tid;
    int32_t priority;
    char name[EW_PFT_NAME_SIZE];
};

/* One event of a bundle before it is emitted. */
struct ew_pft_event {
    uint64_t t_ns; /* by the trace's clock */
    uint32_t kind; /* enum etwatch_event_kind; 0: other, see field */
    uint32_t field;
    bool full; /* includes the outgoing thread */
    uint32_t tid, next_tid, next_pid, state, target_cpu;
    int32_t priority, next_priority;
    char name[EW_PFT_NAME_SIZE], next_name[EW_PFT_NAME_SIZE];
};

struct ew_pft_run {
    struct ew_pft_event *events;
    uint32_t count, size;
};

/* Meaning of an annotation's iid: enum ew_pf_value, or EW_PF_VALUE_COUNT + a metric; or unknown. */
enum { EW_PFT_UNKNOWN = 0xFFFF };

struct ew_pftrace {
    struct ew_os_file *file;
    uint64_t file_bytes, at; /* at: offset of the first byte not consumed yet */
    uint8_t *window;
    size_t window_size, window_len, window_at;
    uint64_t window_offset;
    struct ew_inflated inflated;
    uint64_t inflated_bytes; /* of all compressed packets so far */
    struct ew_bytes inner;   /* unread rest of the decompressed packet */
    uint64_t inner_offset;   /* offset of that packet in the file */
    /* The packet being read. A packet may hold any number of events, so each call emits a part. */
    struct ew_bytes packet;
    bool packet_open;
    uint64_t packet_t_ns;
    uint32_t packet_sequence;
    uint32_t steps; /* events and fields of this call */
    struct ew_pftrace_counts counts;

    uint64_t unix_minus_boot_ns;
    bool clock_known;
    char os[192], host[128];

    /* The sequence that etwatch wrote. */
    uint32_t own_sequence;
    bool own_known;
    uint16_t value_of[EW_PFT_IIDS_MAX];
    uint8_t event_of[64]; /* enum ew_pf_event + 1 */
    uint32_t own_category;
    uint32_t source;    /* for samples without a source */
    struct ew_buf text; /* strings of the current sample */

    struct ew_pft_strings strings;

    struct ew_pft_thread *threads;
    struct ew_pft_cpu cpus[EW_PFT_CPUS_MAX];
    struct ew_pft_run switches, wakings, others;
    uint32_t run_at[3], run_cpu; /* of the bundle that is being emitted */
    bool runs_open;
    struct ew_bytes etw; /* unread rest of a bundle of Windows events */
    uint32_t etw_cpu;
    struct ew_span *names;
    uint32_t name_count;
};

/* sched.c */
/* Reads a bundle; its events are then emitted by ew_pft_emit, as long as runs_open. */
void ew_pft_bundle(struct ew_pftrace *trace, struct ew_bytes *bundle);
int ew_pft_emit(struct ew_pftrace *trace, const struct ew_pftrace_visitor *visitor);
void ew_pft_process_tree(struct ew_pftrace *trace, struct ew_bytes *tree);
void ew_pft_set_thread(struct ew_pftrace *trace, uint32_t pid, uint32_t tid, const char *name,
                       size_t len);
const struct ew_pft_thread *ew_pft_thread(const struct ew_pftrace *trace, uint32_t tid);

/* etw.c */
/* Emits events of trace->etw. */
int ew_pft_etw_emit(struct ew_pftrace *trace, const struct ew_pftrace_visitor *visitor);

/* etwatch_events.c */
void ew_pft_intern(struct ew_pftrace *trace, struct ew_bytes *interned, uint32_t sequence);
int ew_pft_track_event(struct ew_pftrace *trace, struct ew_bytes *event, uint64_t t_ns,
                       uint32_t sequence, const struct ew_pftrace_visitor *visitor);

/* reader.c */
void ew_pft_damage(struct ew_pftrace *trace, uint64_t offset, uint64_t bytes, const char *what);

#endif
