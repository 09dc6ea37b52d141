/* SPDX-License-Identifier: MIT */
/*
 * Internal interface between the files of the tally. threads.c and processes.c own the threads and
 * processes, run.c accounts CPU time, work.c counts faults, I/O and network, graphics.c the time of
 * GPUs, memory.c keeps gauges and images, facts.c emits facts per interval, totals.c the totals at
 * the end.
 */
#ifndef EW_TALLY_INTERNAL_H
#define EW_TALLY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tally/tally.h"

/* ------------------------------------------------------------------------------ store */

/*
 * Containers of the tally: objects that never move, a map keyed by 32-bit ids, and interned
 * strings. All grow in chunks, never per event, and all have a fixed maximum.
 */

/* Objects of one size (a multiple of 8); each chunk starts at a cache line. */
struct ew_tally_pool {
    void **chunks; /* as allocated */
    void *free;    /* the first word of a free object points to the next */
    size_t object_size;
    uint32_t chunk_count, chunk_capacity;
    uint32_t used;
};

void ew_tally_pool_init(struct ew_tally_pool *pool, size_t object_size);
void ew_tally_pool_done(struct ew_tally_pool *pool);
/* Zeroed, or NULL. */
void *ew_tally_pool_take(struct ew_tally_pool *pool);
void ew_tally_pool_give(struct ew_tally_pool *pool, void *object);

struct ew_tally_slot {
    void *value; /* NULL: empty */
    uint32_t key;
};

struct ew_tally_map {
    struct ew_tally_slot *slots;
    uint32_t capacity; /* 0 or a power of two */
    uint32_t used;
    uint32_t seed; /* set with the first slots */
};

void ew_tally_map_done(struct ew_tally_map *map);
/* Replaces an existing value. Returns 0 or ETWATCH_ENOMEM. */
int ew_tally_map_put(struct ew_tally_map *map, uint32_t key, void *value);
void ew_tally_map_remove(struct ew_tally_map *map, uint32_t key);

static inline uint32_t ew_tally_hash(uint32_t key)
{
    key *= 2654435769u;
    return key ^ key >> 15;
}

static inline void *ew_tally_map_get(const struct ew_tally_map *map, uint32_t key)
{
    if (map->capacity == 0)
        return NULL;
    uint32_t mask = map->capacity - 1;
    for (uint32_t at = ew_tally_hash(key ^ map->seed) & mask; map->slots[at].value != NULL;
         at = (at + 1) & mask)
        if (map->slots[at].key == key)
            return map->slots[at].value;
    return NULL;
}

/* Interned strings: equal texts are stored once. */
struct ew_tally_texts {
    char *block; /* being filled; its first word points to the previous block */
    size_t block_used, block_size;
    const char **slots;
    uint32_t capacity, used;
    size_t bytes, max_bytes;
    uint64_t refused;
    bool failed; /* an allocation failed (not: limit reached); the reader clears it */
};

void ew_tally_texts_init(struct ew_tally_texts *texts, size_t max_bytes);
void ew_tally_texts_done(struct ew_tally_texts *texts);
/* A terminated copy that lives as long as the texts; "" if the limit is reached, which is counted.
 */
const char *ew_tally_keep_text(struct ew_tally_texts *texts, const char *text, size_t len);

/* What is counted per thread in addition to its CPU time. */
enum ew_tally_work {
    EW_WORK_FAULTS_MINOR,
    EW_WORK_FAULTS_MAJOR,
    EW_WORK_FAULTS_HARD, /* the same faults, as counted by the soft-fault class */
    EW_WORK_IO_READ_BYTES,
    EW_WORK_IO_WRITE_BYTES,
    EW_WORK_IO_READ_OPS,
    EW_WORK_IO_WRITE_OPS,
    EW_WORK_DISK_READ_BYTES,
    EW_WORK_DISK_WRITE_BYTES,
    EW_WORK_NET_RECEIVED_BYTES,
    EW_WORK_NET_SENT_BYTES,
    EW_WORK_SAMPLES,
    EW_WORK_SAMPLE_NS,     /* time the samples stand for, without interrupts ... */
    EW_WORK_SAMPLES_EARLY, /* ... and samples taken before the sampling interval was known */
    EW_WORK_KERNEL_NS,     /* the kernel-mode share of both */
    EW_WORK_KERNEL_EARLY,
    EW_WORK_GPU_NS, /* of the pseudo-thread, like ... */
    EW_WORK_PRESENTS,
    EW_WORK_PMC, /* hardware counters, by their position in the event */
    EW_WORK_COUNT = EW_WORK_PMC + EW_PMC_MAX
};

enum ew_tally_family {
    EW_FAMILY_PROCESS = 1u << 0,
    EW_FAMILY_THREAD = 1u << 1,
    EW_FAMILY_IMAGE = 1u << 2,
    EW_FAMILY_DISK = 1u << 3,
    EW_FAMILY_FILE = 1u << 4,
    EW_FAMILY_NET = 1u << 5,
    EW_FAMILY_MEMORY = 1u << 6,
};

enum ew_tally_thread_flag {
    EW_TT_IDLE = 1u << 0,
    EW_TT_OWN = 1u << 1,        /* pseudo-thread: work of its process in no known thread */
    EW_TT_ENDING = 1u << 2,     /* ended, but its last switch is still to come */
    EW_TT_REPORTED = 1u << 3,   /* readings of it were emitted */
    EW_TT_LISTED = 1u << 4,     /* in the list of threads to read at the interval's end */
    EW_TT_INCOMPLETE = 1u << 5, /* some of its events were lost since its last reading */
    EW_TT_STARTED = 1u << 6,    /* its start is in the recording */
    EW_TT_ENDED = 1u << 7,      /* kept for its totals only */
};

/* The part of a thread that a switch touches: one cache line. */
struct ew_tally_thread {
    uint64_t cpu_ns;   /* if it runs: up to its CPU's since_ns */
    uint64_t ready_ns; /* waiting for a CPU since then; 0: not waiting */
    uint64_t runq_ns;
    uint64_t voluntary, involuntary;
    struct ew_tally_process *process;  /* NULL: unknown yet */
    struct ew_tally_thread_cold *cold; /* never NULL */
    uint32_t epoch;                    /* interval in which it was last active */
    uint16_t cpu;                      /* on which it ran last */
    int8_t priority;
    uint8_t flags; /* enum ew_tally_thread_flag */
};
_Static_assert(sizeof(void *) != 8 || sizeof(struct ew_tally_thread) == 64, "one cache line");

/* The rest of a thread, which a switch does not touch. */
struct ew_tally_thread_cold {
    uint32_t tid;
    uint32_t made_epoch; /* interval in which it was first mentioned */
    uint64_t work[EW_WORK_COUNT];
    uint64_t orphans; /* events while its process was unknown */
    uint64_t start_ns, end_ns;
    uint64_t affinity;
    const char *name;                           /* "" or interned */
    struct ew_tally_thread *prev, *next;        /* of its process, or of tally->unowned */
    struct ew_tally_thread *list_prev, *listed; /* to be read at the interval's end */
    struct ew_tally_thread *older, *newer;      /* ENDED: in order of end */
    bool has_priority, has_affinity;
};

enum ew_tally_process_flag {
    EW_TP_STARTED = 1u << 0,
    EW_TP_ENDED = 1u << 1,
    EW_TP_HAS_PPID = 1u << 2,
    EW_TP_HAS_SESSION = 1u << 3,
    EW_TP_HAS_EXIT = 1u << 4,
    EW_TP_SELECTED = 1u << 5,
    EW_TP_REPORTED = 1u << 6,    /* SEEN or START was emitted */
    EW_TP_ALL_THREADS = 1u << 7, /* all its threads are known */
    EW_TP_INCOMPLETE = 1u << 8,
    EW_TP_HAS_FAULTS = 1u << 9,  /* fault_count */
    EW_TP_PID_REUSED = 1u << 10, /* learning pass: the id is reused later on */
    EW_TP_SIBLING = 1u << 11,    /* in the list of children of its ppid */
};

/* Absolute sums of a thread, or of all ended threads of a process. */
struct ew_tally_sums {
    uint64_t cpu_ns, runq_ns, voluntary, involuntary;
    uint64_t work[EW_WORK_COUNT];
};

struct ew_tally_process {
    uint32_t pid, ppid, session_id;
    uint32_t flags; /* enum ew_tally_process_flag */
    uint32_t serial;
    int32_t exit_status;
    uint32_t live_threads, thread_count; /* now, ever; without the pseudo-thread */
    uint32_t ending_threads;             /* of the live ones */
    uint32_t image_count, images_still;
    uint32_t fault_count;
    uint32_t epoch;  /* interval for which it is listed */
    uint64_t losses; /* tally->losses at its start */
    uint64_t key, start_ns, end_ns;
    const char *name, *command_line, *sid;  /* never NULL */
    struct ew_tally_thread *threads, *own;  /* live and kept; the pseudo-thread, may be NULL */
    struct ew_tally_process *older, *newer; /* in order of start */
    struct ew_tally_process *listed;        /* to be read at the interval's end */
    struct ew_tally_process *select_next;   /* queue of newly selected processes */
    struct ew_tally_process *sibling_prev, *sibling_next; /* SIBLING: same ppid, not selected */
    struct ew_tally_process *next_ended;                  /* in order of end */
    uint32_t gauge_has, gauge_new;                        /* known; updated in this interval */
    uint64_t gauge[EW_GAUGE_COUNT];
    bool other_new; /* other_bytes and other_ops were read in this interval */
    uint64_t other_bytes, other_ops;
    bool cycles_new; /* cycles was */
    uint64_t cycles;
    bool modes_new; /* user_ns and kernel_ns were */
    uint64_t user_ns, kernel_ns;
    bool faults_new; /* faults_minor was */
    uint64_t faults_minor;
    uint64_t gpu_given_ns, presents_given; /* of the pseudo-thread's: emitted */
    struct ew_tally_sums ended;            /* of ended threads */
};

enum { EW_IRQ_DEPTH = 32, EW_CPUS_MAX = 4096 };

/* Interrupts of the current run; a longer one that ends later may contain them. */
struct ew_tally_irqs {
    uint32_t count;
    struct {
        uint64_t from_ns, to_ns, spent_ns;
    } irq[EW_IRQ_DEPTH];
};

struct ew_tally_cpu {
    struct ew_tally_thread *running; /* NULL: unknown */
    uint64_t since_ns;               /* charged up to here */
    uint64_t began_ns;               /* start of the run, or of the unknown time */
    uint64_t irq_ns;                 /* interrupt time not yet subtracted */
    uint64_t last_ns;                /* time of its latest event */
    struct ew_tally_irqs *irqs;      /* NULL: there were none yet */
    uint32_t tid;                    /* of running */
    bool blind;                      /* the thread is unknown because of a loss */
    struct ew_tally_pmc *pmc;        /* NULL: no switch carried hardware counters yet */
};

/* Direct lookup for the ids that Windows assigns: small multiples of 4. */
enum { EW_TID_PAGE_BITS = 10, EW_TID_ROOT = 16384, EW_TID_PAGES_MAX = 768 };

struct ew_tally_tids {
    struct ew_tally_thread **root[EW_TID_ROOT];
    uint32_t pages;
    struct ew_tally_map others;
};

enum { EW_IRPS = 4096, EW_GONE = 1024, EW_CHANGES = 8 };

/* Which thread issued a disk I/O. */
struct ew_tally_irp {
    uint64_t irp; /* 0: empty */
    struct ew_tally_process *process;
    uint32_t tid, serial;
};

/* The process of a thread that has ended. */
struct ew_tally_gone {
    struct ew_tally_process *process;
    uint64_t end_ns;
    uint32_t tid, serial;
};

struct ew_tally_change {
    uint64_t at_ns, interval_ns;
};

struct ew_tally {
    struct ew_tally_config config;
    const struct ew_facts *facts; /* of the current call; may be NULL */

    /* Accessed by every event. */
    uint64_t end_ns; /* of the open interval; UINT64_MAX without intervals */
    uint64_t now_ns; /* of the latest event */
    struct ew_tally_cpu *cpus;
    uint32_t cpu_count;
    uint32_t epoch;
    uint64_t run_ns; /* all time accounted to threads, idle ones too */
    uint64_t switches;
    uint64_t lost_ns; /* latest loss: a thread ready before it may have run since */
    uint32_t classes;
    uint32_t seen; /* of these, those of which an event has arrived */
    uint32_t counter_has;
    uint32_t kernel_families; /* enum ew_tally_family: provided by the kernel's classes */
    int failure;              /* since the last call */
    uint8_t pmc_seen;         /* number of hardware counters in a switch; 0: none so far */
    bool pmc_unsure;          /* switches or names disagree */
    struct ew_pmc_map pmc;    /* their meaning */
    bool learning, finished;

    struct ew_tally_thread idle; /* of all CPUs, in a process that is never reported */
    struct ew_tally_thread_cold idle_cold;
    struct ew_tally_process idle_process;
    struct ew_tally_pool threads, cold, processes;
    struct ew_tally_map pids;
    struct ew_tally_map children; /* by ppid: the first process that is not selected */
    struct ew_tally_texts texts;
    struct ew_tally_thread *unowned; /* threads without a known process */
    struct ew_tally_thread *oldest_ended, *newest_ended;
    struct ew_tally_process *first_process, *last_process;
    struct ew_tally_process *first_ended, *last_ended;
    uint32_t next_serial;
    struct ew_tally_sums rest;         /* of processes beyond the limit */
    struct ew_tally_sums lost_threads; /* of threads that ended before their process was known */
    uint32_t rest_processes, rest_threads;

    uint64_t sample_ns; /* sampling interval; 0: unknown yet */
    uint64_t dpc_ns, isr_ns, unknown_ns;
    uint64_t samples, sampled_irq[2]; /* all; in DPCs and ISRs */
    uint64_t lost, losses, unattributed, inconsistent, refused;
    uint32_t blind_cpus;
    struct ew_tally_map learned; /* ids that were already mentioned */

    /* Intervals. */
    uint64_t begin_ns; /* of the open interval */
    uint64_t interval_ns;
    struct ew_tally_change change[EW_CHANGES];
    uint32_t change_count;
    struct ew_tally_thread *first_listed, *last_listed;
    struct ew_tally_process *first_active, *last_active;
    struct ew_reading reading; /* fields that read_thread does not set stay 0 */

    struct ew_tally_irp *irps;
    struct ew_tally_gone *gone;
    struct ew_tally_images *images;
    struct ew_tally_graphics *graphics; /* NULL: no event of a GPU so far */
    char scratch[8192];
    struct ew_tally_tids tids;
};

/* ------------------------------------------------------------------------ threads.c */

static inline struct ew_tally_thread *ew_threads_find(const struct ew_tally *tally, uint32_t tid)
{
    uint32_t page = tid >> (2 + EW_TID_PAGE_BITS);
    if (page < EW_TID_ROOT && (tid & 3) == 0 && tally->tids.root[page] != NULL)
        return tally->tids.root[page][tid >> 2 & ((1u << EW_TID_PAGE_BITS) - 1)];
    return ew_tally_map_get(&tally->tids.others, tid);
}

/* Created without a process if it does not exist; NULL: no room, which is counted. */
struct ew_tally_thread *ew_threads_get(struct ew_tally *tally, uint32_t tid);
/* A new thread; process may be NULL (unknown). Ends the previous thread with this id. */
struct ew_tally_thread *ew_threads_add(struct ew_tally *tally, struct ew_tally_process *process,
                                       uint32_t tid);
/* Its process has become known. */
void ew_threads_adopt(struct ew_tally *tally, struct ew_tally_thread *thread,
                      struct ew_tally_process *process);
/* Ends a thread that is no longer on a CPU, as of t_ns. May free it. */
void ew_threads_end(struct ew_tally *tally, struct ew_tally_thread *thread, uint64_t t_ns);
/* Ends all threads of a process that ends. */
void ew_threads_end_all(struct ew_tally *tally, struct ew_tally_process *process, uint64_t t_ns);
/* The thread's end event was seen; its last switch is still to come. */
void ew_threads_ending(struct ew_tally_thread *thread, uint64_t t_ns);
/* Ends threads that had an end event but no last switch. */
void ew_threads_end_ending(struct ew_tally *tally, struct ew_tally_process *process, uint64_t t_ns);
/* Frees the ended threads that are kept for the totals of a process. */
void ew_threads_drop_kept(struct ew_tally *tally, struct ew_tally_process *process);
/* The pseudo-thread for work of a process in no known thread. NULL: no room. */
struct ew_tally_thread *ew_threads_own(struct ew_tally *tally, struct ew_tally_process *process);
void ew_threads_event(struct ew_tally *tally, const struct ew_event *event);
int ew_tids_set(struct ew_tally_tids *tids, uint32_t tid, struct ew_tally_thread *thread);
void ew_tids_done(struct ew_tally_tids *tids);

static inline bool ew_threads_running(const struct ew_tally *tally,
                                      const struct ew_tally_thread *thread)
{
    return thread->cpu < tally->cpu_count && tally->cpus[thread->cpu].running == thread;
}

/* ---------------------------------------------------------------------- processes.c */

static inline struct ew_tally_process *ew_processes_find(const struct ew_tally *tally, uint32_t pid)
{
    return ew_tally_map_get(&tally->pids, pid);
}

/* The process that has this id now; created as preexisting if unknown. NULL: no room. */
struct ew_tally_process *ew_processes_get(struct ew_tally *tally, uint32_t pid, uint64_t t_ns);
void ew_processes_event(struct ew_tally *tally, const struct ew_event *event);
/* First of two passes. first: first mention of the id, so the process is preexisting. */
void ew_processes_learn(struct ew_tally *tally, const struct ew_event *event, bool first);
/* Start of the second pass: reports the preexisting processes. */
void ew_processes_learned(struct ew_tally *tally);
/* Reports a process that has become selected. */
void ew_processes_select(struct ew_tally *tally, uint32_t pid);
void ew_processes_end_absent(struct ew_tally *tally,
                             bool (*is_there)(void *ctx, uint32_t pid, uint64_t start_ns),
                             void *ctx, uint64_t since_ns, uint64_t t_ns);
/* Interned text of an event; base_name: only the part behind the last backslash. */
/* Replaces a name in the system's code page that is not plain ASCII. */
void ew_processes_rename(struct ew_tally *tally, struct ew_tally_process *process,
                         const struct ew_event_text *name);
const char *ew_processes_text(struct ew_tally *tally, const struct ew_event_text *text,
                              bool base_name);

/* ---------------------------------------------------------------------------- run.c */

void ew_run_switch(struct ew_tally *tally, const struct ew_event *event);
void ew_run_ready(struct ew_tally *tally, const struct ew_event *event);
void ew_run_sample(struct ew_tally *tally, const struct ew_event *event);
void ew_run_lose(struct ew_tally *tally, uint16_t cpu, uint64_t t_ns, uint64_t count,
                 enum etwatch_loss_stage stage);
void ew_run_interval(struct ew_tally *tally, const struct ew_event *event);
void ew_run_interrupt(struct ew_tally *tally, const struct ew_record *record,
                      const struct ew_event *event);
/* Charges the time up to t_ns to the CPU's thread, or to unknown_ns. */
void ew_run_charge(struct ew_tally *tally, struct ew_tally_cpu *cpu, uint64_t t_ns);
/* From since_ns on the CPU's thread is unknown. */
void ew_run_blind(struct ew_tally *tally, struct ew_tally_cpu *cpu, uint64_t since_ns);
/* Grows to count CPUs; false: too many or no memory. */
bool ew_run_grow(struct ew_tally *tally, uint32_t count);

/* --------------------------------------------------------------------------- work.c */

void ew_work_event(struct ew_tally *tally, const struct ew_record *record,
                   const struct ew_event *event);
/* The thread with this id; if it ended a moment ago, its process's pseudo-thread. Created if
 * unknown. NULL: no room. */
struct ew_tally_thread *ew_work_thread(struct ew_tally *tally, uint32_t tid, uint64_t t_ns);
void ew_work_remember_gone(struct ew_tally *tally, const struct ew_tally_thread *thread);

/* ------------------------------------------------------------------------- memory.c */

void ew_memory_gauges(struct ew_tally *tally, struct ew_tally_process *process, uint32_t has,
                      const uint64_t gauge[EW_GAUGE_COUNT]);
void ew_memory_counters(struct ew_tally *tally, const struct ew_event *event);
void ew_memory_working_sets(struct ew_tally *tally, const struct ew_record *record,
                            const struct ew_event *event);
void ew_memory_image(struct ew_tally *tally, const struct ew_event *event);
void ew_memory_images_free(struct ew_tally_images *images);

/* ----------------------------------------------------------------------- graphics.c */

struct ew_tally_graphics;

void ew_graphics_event(struct ew_tally *tally, const struct ew_event *event);
/* Charges the work that runs now up to t_ns. */
void ew_graphics_charge(struct ew_tally *tally, uint64_t t_ns);
/* Events were lost: what runs is unknown. */
void ew_graphics_lose(struct ew_tally *tally);
/* GPU time is an estimate. */
bool ew_graphics_is_unsure(const struct ew_tally *tally);
/* All work belongs to known processes: the others did none. */
bool ew_graphics_is_complete(const struct ew_tally *tally);
void ew_graphics_free(struct ew_tally_graphics *graphics); /* may be NULL */

/* -------------------------------------------------------------------------- facts.c */

/* First activity in this interval: the counters are still those of its last reading. */
void ew_facts_open(struct ew_tally *tally, struct ew_tally_thread *thread, uint64_t t_ns);
/* Emits the last reading of a thread that ends. */
void ew_facts_final(struct ew_tally *tally, struct ew_tally_thread *thread, uint64_t t_ns);
/* The process of a thread that was already active became known. */
void ew_facts_join(struct ew_tally *tally, struct ew_tally_thread *thread);
void ew_facts_list_process(struct ew_tally *tally, struct ew_tally_process *process);
void ew_facts_process(struct ew_tally *tally, struct ew_tally_process *process,
                      enum ew_process_kind kind, uint64_t t_ns);
/* Closes every interval that ends at or before t_ns. happened: an event caused the call. */
void ew_facts_close(struct ew_tally *tally, uint64_t t_ns, bool happened);
void ew_facts_init(struct ew_tally *tally);
/* Emits everything up to t_ns, in the middle of an interval. */
void ew_facts_finish(struct ew_tally *tally, uint64_t t_ns);

/* Must be called before anything is counted for the thread. */
static inline void ew_facts_active(struct ew_tally *tally, struct ew_tally_thread *thread,
                                   uint64_t t_ns)
{
    if (thread->epoch != tally->epoch)
        ew_facts_open(tally, thread, t_ns);
}

/* ------------------------------------------------------------------------- totals.c */

void ew_totals_of_thread(const struct ew_tally_thread *thread, struct ew_tally_sums *ret_sums);
void ew_totals_add(struct ew_tally_sums *sums, const struct ew_tally_sums *more);
/* Converts to public counters; CPU time comes from switches if recorded, else from samples. */
void ew_totals_counters(const struct ew_tally *tally, const struct ew_tally_sums *sums,
                        uint64_t counter[EW_COUNTER_COUNT]);

/* -------------------------------------------------------------------------- tally.c */

void ew_tally_saw_class(struct ew_tally *tally, uint32_t class_bit);
/* An allocation failed: counts the event as lost. */
void ew_tally_short_of_memory(struct ew_tally *tally);

static inline void ew_tally_saw(struct ew_tally *tally, uint32_t class_bit)
{
    if ((tally->seen & class_bit) == 0)
        ew_tally_saw_class(tally, class_bit);
}

static inline bool ew_tally_estimates(const struct ew_tally *tally)
{
    return (tally->classes & (EW_TALLY_SWITCHES | EW_TALLY_SAMPLES)) == EW_TALLY_SAMPLES;
}

#endif
