/* SPDX-License-Identifier: MIT */
/* The Perfetto sink from the inside: what its files share. */
#ifndef EW_SINK_PERFETTO_H
#define EW_SINK_PERFETTO_H

#include "base/proto.h"
#include "model/perfetto.h"
#include "sink/deflate.h"
#include "sink/sink.h"

enum { EW_PF_ROWS_MAX = 1 << 16, EW_PF_COUNTER_MAX = 16, EW_PF_CPUS_MAX = 1024 };

/* One process or thread that was told of. Its tracks are uuid, uuid + 1, ... */
struct ew_pf_row {
    uint32_t pid, tid;
    uint64_t start_ns;
    uint64_t uuid;
    uint64_t end_ns;    /* of its last sample */
    uint64_t begin_ns;  /* when its life is drawn from; 0: it is not */
    uint64_t shown_ns;  /* its start as Perfetto is told it */
    uint32_t described; /* bit per counter that has a track */
    double shown[EW_PF_COUNTER_MAX];
    char *name;  /* as last told; NULL: unknown */
    char *start; /* its START as a packet, to be told again; NULL: none */
    size_t start_size;
};

/* Rows by (pid, start, tid): open addressing, no holes left by removals. */
struct ew_pf_rows {
    struct ew_pf_row **cells;
    uint32_t count, mask;
};

struct ew_pf_row *ew_pf_rows_find(const struct ew_pf_rows *rows, uint32_t pid, uint64_t start_ns,
                                  uint32_t tid);
/* Makes a row. When there are too many, all are forgotten: they will be told of again. */
struct ew_pf_row *ew_pf_rows_add(struct ew_pf_rows *rows, uint32_t pid, uint64_t start_ns,
                                 uint32_t tid);
void ew_pf_rows_remove(struct ew_pf_rows *rows, struct ew_pf_row *row);
void ew_pf_rows_done(struct ew_pf_rows *rows);

struct ew_pf_cpu;

/* Who a thread is, as far as the trace was told: by tid, newest wins. */
struct ew_pf_thread {
    uint32_t tid, pid;
    uint32_t begun_tid; /* the last one of this cell that was seen to begin */
    uint64_t begun_ns;  /* Unix */
};

struct ew_pf_sink {
    struct etwatch_sink base;
    struct ew_buf packets;      /* whole packets that are not written yet */
    struct ew_deflate *squeeze; /* NULL: this build does not compress */
    bool begun, named;
    uint64_t unix_minus_boot_ns;
    struct etwatch_meta meta; /* size 0: not known */
    uint64_t end_ns;          /* of a recording that is told as a whole; 0: not known */
    uint64_t next_uuid;
    struct ew_pf_rows rows;
    struct ew_pf_cpu *cpus[EW_PF_CPUS_MAX];
    uint32_t cpu_count; /* highest used + 1 */
    bool stream_lost;
    bool etw;                             /* bundles are those of Windows */
    uint32_t etw_running[EW_PF_CPUS_MAX]; /* who runs there, tid + 1; 0: not known */
    struct ew_pf_thread *threads;         /* by hash of tid */
    uint8_t *processes;                   /* bits by the end of a pid: what Perfetto knows */
};

/* perfetto.c */
/* Opens a packet with its time (Unix) and returns the mark for ew_pf_packet_end. */
size_t ew_pf_packet(struct ew_pf_sink *sink, uint64_t t_ns);
void ew_pf_packet_end(struct ew_pf_sink *sink, size_t mark);
/* What every trace begins with, once. */
void ew_pf_begin(struct ew_pf_sink *sink);
/* Squeezes what is waiting into the output if there is enough of it, or whatever there is. */
void ew_pf_pack(struct ew_pf_sink *sink, bool all);

/* perfetto_sample.c */
void ew_pf_sample(struct etwatch_sink *sink, const struct etwatch_sample *sample);
/* What a sample says in numbers, as annotations of the instant that is open. */
void ew_pf_put_numbers(struct ew_pf_sink *sink, const struct etwatch_sample *sample);
/* Counters whose interval is over fall to 0. */
void ew_pf_settle_all(struct ew_pf_sink *sink);
/* Every process that is there is told again. */
void ew_pf_describe_again(struct ew_pf_sink *sink);
/* An instant of etwatch's own; then its annotations; then ew_pf_packet_end. */
size_t ew_pf_instant(struct ew_pf_sink *sink, uint64_t t_ns, uint64_t track, enum ew_pf_event event,
                     size_t *ret_inner);
void ew_pf_put_u64(struct ew_pf_sink *sink, uint32_t iid, uint64_t value);
void ew_pf_put_text(struct ew_pf_sink *sink, uint32_t iid, const char *text);
/* With a name that is not interned. */
void ew_pf_put_named(struct ew_pf_sink *sink, const char *name, uint64_t value);
/* The words of a set after the first, as far as they are not 0: see EW_PF_SET_NAMES. */
void ew_pf_put_set_rest(struct ew_pf_sink *sink, const char *const names[ETWATCH_METRIC_SET_WORDS],
                        const struct etwatch_metric_set *set);
void ew_pf_put_named_text(struct ew_pf_sink *sink, const char *name, const char *text);
void ew_pf_put_named_double(struct ew_pf_sink *sink, const char *name, double value);

/* perfetto_sched.c */
void ew_pf_event(struct etwatch_sink *sink, const struct etwatch_event *event);
/* Puts what the CPUs have gathered into packets. */
void ew_pf_sched_flush(struct ew_pf_sink *sink);
void ew_pf_sched_done(struct ew_pf_sink *sink);
/* Where events of Windows on this CPU are gathered; NULL: there is no such CPU, or no memory. */
struct ew_buf *ew_pf_etw_events(struct ew_pf_sink *sink, uint32_t cpu);
/* The trace is to know which process a thread is of. */
void ew_pf_thread(struct ew_pf_sink *sink, uint32_t pid, uint32_t tid, const char *name,
                  uint64_t t_ns);
/* The time of the event that it began with, if that was seen and is not before start_ns; else
 * start_ns. To Perfetto whoever began at another time, or is told of before that event, is somebody
 * else of the same number. */
uint64_t ew_pf_begin_of(const struct ew_pf_sink *sink, uint32_t tid, uint64_t start_ns);
/* The first of the tracks of a process or thread. there: it was there before the recording. */
uint64_t ew_pf_take_uuid(struct ew_pf_sink *sink, uint32_t pid, uint32_t tid, bool there);
/* It was told already. */
void ew_pf_thread_described(struct ew_pf_sink *sink, uint32_t pid, uint32_t tid);

/* perfetto_etw.c */
bool ew_pf_wants_fields(const struct etwatch_trace_event *event);
void ew_pf_trace_event(struct etwatch_sink *sink, const struct etwatch_trace_event *event);
void ew_pf_trace(struct etwatch_sink *sink, const struct etwatch_trace_summary *trace);

/* perfetto_report.c */
void ew_pf_put_system(struct ew_pf_sink *sink, const struct etwatch_trace_summary *trace);
void ew_pf_total(struct etwatch_sink *sink, const struct etwatch_sample *total,
                 const struct etwatch_metric_set *estimated);

/* Interned numbers: those of annotations are the value's or the metric's place in its list. */
#define EW_PF_IID(name) ((uint32_t)EW_PF_V_##name + 1)
enum { EW_PF_METRIC_IID = 64 };

#endif
