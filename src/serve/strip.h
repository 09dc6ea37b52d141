/* SPDX-License-Identifier: MIT */
/*
 * Details on demand: the scheduling of a few processes while a client looks at it, and the stacks
 * of a process of a recording. Nothing is kept, and nothing is measured, unless a client asks; what
 * no client has requested in EW_STRIP_IDLE_NS is no longer requested.
 *
 * Live: the events of the last seconds of each process, in a ring. Recording: those of a range of
 * time, read again from the files for each range.
 */
#ifndef EW_SERVE_STRIP_H
#define EW_SERVE_STRIP_H

#include "serve/wire.h"

enum {
    EW_STRIP_SLOTS = EW_SERVE_PIDS_MAX,
    EW_STRIP_EVENTS = 131072, /* of one process */
    EW_STRIP_NAMES = 4096,
    EW_STRIP_THREADS = 64,         /* in one answer */
    EW_STRIP_INTERVALS = 20000,    /* in one answer */
    EW_STRIP_STACKS_MAX = 8 << 20, /* bytes of folded stacks */
};

#define EW_STRIP_IDLE_NS UINT64_C(8000000000)

enum ew_strip_stage { EW_STRIP_NONE, EW_STRIP_READING, EW_STRIP_READ };

struct ew_strip_event {
    uint64_t t_ns;
    uint32_t pid, tid, next_pid, next_tid;
    uint32_t ready_us; /* UINT32_MAX: unknown */
    uint16_t cpu;
    uint8_t kind, state;
};

struct ew_strip_slot {
    uint32_t pid; /* 0: a free slot */
    uint64_t wanted_ns;
    struct ew_strip_event *events;
    uint64_t count;          /* ever; the ring has the latest */
    uint64_t from_ns, to_ns; /* recording: the range that was read */
    uint32_t stage;          /* recording: enum ew_strip_stage */
    uint64_t began_ns;       /* live: the first event */
};

struct ew_strip_name {
    uint32_t tid, pid;
    char name[16];
};

struct ew_strip {
    bool available; /* there is a process that serves details */
    bool recorded;
    struct ew_strip_slot slots[EW_STRIP_SLOTS];
    struct ew_strip_name *names;
    char problem[256]; /* why there are no events; "": none known */
    uint64_t lost;
    /* Stacks of one process. */
    struct {
        uint32_t pid, stage;
        uint64_t from_ns, to_ns, wanted_ns;
        struct ew_buf text;
        char problem[256];
    } stacks;
    struct ew_serve_request sent; /* the latest request; kind 0: none */
    uint64_t sent_ns;
};

void ew_strip_done(struct ew_strip *sched);
bool ew_strip_frame(struct ew_strip *sched, uint32_t type, struct ew_bytes *body);

/* A client wants the scheduling of a process. from_ns and to_ns: of a recording. now_ns: the raw
 * clock. The slot; NULL: out of memory. */
struct ew_strip_slot *ew_strip_want(struct ew_strip *sched, uint32_t pid, uint64_t from_ns,
                                    uint64_t to_ns, uint64_t now_ns);
/* The same for stacks, which are in sched->stacks. */
void ew_strip_want_stacks(struct ew_strip *sched, uint32_t pid, uint64_t from_ns, uint64_t to_ns,
                          uint64_t now_ns);
/* The request that is due now: true, and it counts as sent. */
bool ew_strip_request(struct ew_strip *sched, uint64_t now_ns,
                      struct ew_serve_request *ret_request);

/* The name of a thread of any process; NULL: unknown. */
const struct ew_strip_name *ew_strip_name(const struct ew_strip *sched, uint32_t tid);
/* The JSON of the strip and of the flame graph. */
void ew_strip_put_strip(const struct ew_strip *sched, const struct ew_strip_slot *slot,
                        uint64_t from_ns, uint64_t to_ns, struct ew_buf *out);
void ew_strip_put_stacks(const struct ew_strip *sched, struct ew_buf *out);

#endif
