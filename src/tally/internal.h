/* SPDX-License-Identifier: MIT */
/*
 * What the files of the tally share. threads.c and processes.c keep who there is, run.c adds up
 * time, work.c what was done in it, memory.c gauges and images, facts.c tells it interval by
 * interval, totals.c at the end.
 */
#ifndef EW_TALLY_INTERNAL_H
#define EW_TALLY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tally/tally.h"

/* ------------------------------------------------------------------------------ store */

/*
 * What the tally keeps its things in: objects that never move, a map from 32-bit ids, and texts
 * kept once. All grow in chunks, never per event, and all have a stated maximum.
 */

/* Objects of one size (a multiple of 8), each chunk begins at a cache line. */
struct ew_store_pool {
    void **chunks; /* as allocated */
    void *free;    /* the first word of a free object points to the next */
    size_t object_size;
    uint32_t chunk_count, chunk_capacity;
    uint32_t used;
};

void ew_store_pool_init(struct ew_store_pool *pool, size_t object_size);
void ew_store_pool_done(struct ew_store_pool *pool);
/* Zeroed, or NULL. */
void *ew_store_pool_take(struct ew_store_pool *pool);
void ew_store_pool_give(struct ew_store_pool *pool, void *object);

struct ew_store_slot {
    void *value; /* NULL: empty */
    uint32_t key;
};

struct ew_store_map {
    struct ew_store_slot *slots;
    uint32_t capacity; /* 0 or a power of two */
    uint32_t used;
};

void ew_store_map_done(struct ew_store_map *map);
/* 0 or ETWATCH_ENOMEM; replaces. */
int ew_store_map_put(struct ew_store_map *map, uint32_t key, void *value);
void ew_store_map_remove(struct ew_store_map *map, uint32_t key);

static inline uint32_t ew_store_hash(uint32_t key)
{
    key *= 2654435769u;
    return key ^ key >> 15;
}

static inline void *ew_store_map_get(const struct ew_store_map *map, uint32_t key)
{
    if (map->capacity == 0)
        return NULL;
    uint32_t mask = map->capacity - 1;
    for (uint32_t at = ew_store_hash(key) & mask; map->slots[at].value != NULL;
         at = (at + 1) & mask)
        if (map->slots[at].key == key)
            return map->slots[at].value;
    return NULL;
}

/* Equal texts are one. */
struct ew_store_texts {
    char *block; /* the one being filled; its first word points to the one before */
    size_t block_used, block_size;
    const char **slots;
    uint32_t capacity, used;
    size_t bytes, max_bytes;
    uint64_t refused;
    bool failed; /* for want of memory, not of room; whoever asks clears it */
};

void ew_store_texts_init(struct ew_store_texts *texts, size_t max_bytes);
void ew_store_texts_done(struct ew_store_texts *texts);
/* A terminated copy that lives as long as the texts do; "" if there is no room, which is counted.
 */
const char *ew_store_keep_text(struct ew_store_texts *texts, const char *text, size_t len);

/* Counted in a thread apart from its time. */
enum ew_tally_deed {
    EW_DEED_FAULTS_MINOR,
    EW_DEED_FAULTS_MAJOR,
    EW_DEED_FAULTS_HARD, /* the same faults as told by the class of soft ones */
    EW_DEED_IO_READ_BYTES,
    EW_DEED_IO_WRITE_BYTES,
    EW_DEED_IO_READ_OPS,
    EW_DEED_IO_WRITE_OPS,
    EW_DEED_DISK_READ_BYTES,
    EW_DEED_DISK_WRITE_BYTES,
    EW_DEED_NET_RECEIVED_BYTES,
    EW_DEED_NET_SENT_BYTES,
    EW_DEED_SAMPLES,
    EW_DEED_SAMPLE_NS,     /* what they stand for, interrupts left out ... */
    EW_DEED_SAMPLES_EARLY, /* ... and how many came before it was told for how much */
    EW_DEED_KERNEL_NS,     /* of both, those in the kernel */
    EW_DEED_KERNEL_EARLY,
    EW_DEED_PMC, /* hardware counters, by their place in the event */
    EW_DEED_COUNT = EW_DEED_PMC + EW_PMC_MAX
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
    EW_TT_OWN = 1u << 1,        /* what its process did in no known thread */
    EW_TT_ENDING = 1u << 2,     /* ended, but still on a CPU: until its last switch */
    EW_TT_TOLD = 1u << 3,       /* there were readings of it */
    EW_TT_LISTED = 1u << 4,     /* in the list of those to be told at the end of the interval */
    EW_TT_INCOMPLETE = 1u << 5, /* something of it was lost since its last reading */
    EW_TT_STARTED = 1u << 6,    /* its start is in the recording */
    EW_TT_ENDED = 1u << 7,      /* kept only for its totals */
};

/* What a switch touches of a thread: one cache line. */
struct ew_tally_thread {
    uint64_t cpu_ns;   /* up to its CPU's since_ns, if it runs */
    uint64_t ready_ns; /* since when it waits for a CPU; 0: it does not */
    uint64_t runq_ns;
    uint64_t voluntary, involuntary;
    struct ew_tally_process *process; /* NULL: not known yet */
    struct ew_tally_deeds *deeds;     /* never NULL */
    uint32_t epoch;                   /* the interval it was last active in */
    uint16_t cpu;                     /* where it ran last */
    int8_t priority;
    uint8_t flags; /* enum ew_tally_thread_flag */
};
_Static_assert(sizeof(void *) != 8 || sizeof(struct ew_tally_thread) == 64, "one cache line");

/* The rest of a thread. */
struct ew_tally_deeds {
    uint32_t tid;
    uint32_t made_epoch; /* the interval in which it was first heard of */
    uint64_t deed[EW_DEED_COUNT];
    uint64_t orphans; /* events while its process was not known */
    uint64_t start_ns, end_ns;
    uint64_t affinity;
    const char *name;                           /* "" or kept by the texts */
    struct ew_tally_thread *prev, *next;        /* of the process, or of nobody */
    struct ew_tally_thread *list_prev, *listed; /* to be told */
    struct ew_tally_thread *older, *newer;      /* ENDED: in order of their ends */
    bool has_priority, has_affinity;
};

enum ew_tally_process_flag {
    EW_TP_STARTED = 1u << 0,
    EW_TP_ENDED = 1u << 1,
    EW_TP_HAS_PPID = 1u << 2,
    EW_TP_HAS_SESSION = 1u << 3,
    EW_TP_HAS_EXIT = 1u << 4,
    EW_TP_WANTED = 1u << 5,
    EW_TP_TOLD = 1u << 6,        /* SEEN or START was told */
    EW_TP_ALL_THREADS = 1u << 7, /* all its threads are known */
    EW_TP_INCOMPLETE = 1u << 8,
    EW_TP_HAS_FAULTS = 1u << 9, /* fault_count */
    EW_TP_SUCCEEDED = 1u << 10, /* learning: the id is another's later on */
};

/* Absolute sums of a thread, or of all ended threads of a process. */
struct ew_tally_sums {
    uint64_t cpu_ns, runq_ns, voluntary, involuntary;
    uint64_t deed[EW_DEED_COUNT];
};

struct ew_tally_process {
    uint32_t pid, ppid, session_id;
    uint32_t flags; /* enum ew_tally_process_flag */
    uint32_t serial;
    int32_t exit_status;
    uint32_t live_threads, thread_count; /* now, ever; without its own */
    uint32_t ending_threads;             /* of the live ones */
    uint32_t image_count, images_still;
    uint32_t fault_count;
    uint32_t epoch;  /* the interval it is listed for */
    uint64_t losses; /* how many losses there had been when it began */
    uint64_t key, start_ns, end_ns;
    const char *name, *command_line;        /* never NULL */
    struct ew_tally_thread *threads, *own;  /* live and kept; own may be NULL */
    struct ew_tally_process *older, *newer; /* in order of their beginning */
    struct ew_tally_process *listed;        /* to be told */
    struct ew_tally_process *want_next;     /* children of these may be wanted too */
    struct ew_tally_process *next_ended;    /* in order of their ends */
    uint32_t gauge_has, gauge_new;          /* known; read in this interval */
    uint64_t gauge[EW_GAUGE_COUNT];
    bool other_new; /* the next two were read in this interval */
    uint64_t other_bytes, other_ops;
    bool cycles_new; /* the next was */
    uint64_t cycles;
    bool modes_new; /* the next two were */
    uint64_t user_ns, kernel_ns;
    struct ew_tally_sums ended; /* of threads that are over */
};

enum { EW_IRQ_DEPTH = 32, EW_CPUS_MAX = 4096 };

/* Interrupts of the run at hand that a longer one may yet turn out to contain. */
struct ew_tally_irqs {
    uint32_t count;
    struct {
        uint64_t from_ns, to_ns, spent_ns;
    } irq[EW_IRQ_DEPTH];
};

struct ew_tally_cpu {
    struct ew_tally_thread *running; /* NULL: not known */
    uint64_t since_ns;               /* accounted for up to here */
    uint64_t began_ns;               /* the run, or the not knowing, began */
    uint64_t irq_ns;                 /* interrupts that are not yet taken off */
    uint64_t last_ns;                /* its latest event */
    struct ew_tally_irqs *irqs;      /* NULL: there were none yet */
    uint32_t tid;                    /* of running */
    bool blind;                      /* nobody is known because of a loss */
    struct ew_tally_pmc *pmc;        /* NULL: no switch carried hardware counters yet */
};

/* Direct lookup for the ids that Windows gives out: small multiples of 4. */
enum { EW_TID_PAGE_BITS = 10, EW_TID_ROOT = 16384, EW_TID_PAGES_MAX = 768 };

struct ew_tally_tids {
    struct ew_tally_thread **root[EW_TID_ROOT];
    uint32_t pages;
    struct ew_store_map others;
};

enum { EW_IRPS = 4096, EW_GONE = 1024, EW_CHANGES = 8 };

/* Who handed an I/O to the disk. */
struct ew_tally_irp {
    uint64_t irp; /* 0: empty */
    struct ew_tally_process *process;
    uint32_t tid, serial;
};

/* Whose thread this id was, after its end. */
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
    const struct ew_facts *facts; /* of the call at hand; may be NULL */

    /* What every event asks for. */
    uint64_t end_ns; /* of the open interval; UINT64_MAX without intervals */
    uint64_t now_ns; /* of the latest event */
    struct ew_tally_cpu *cpus;
    uint32_t cpu_count;
    uint32_t epoch;
    uint64_t run_ns; /* all time accounted to threads, idle ones too */
    uint64_t switches;
    uint64_t lost_ns; /* time of the latest loss: who was ready before may have run */
    uint32_t classes;
    uint32_t counter_has;
    uint32_t kernel_families; /* enum ew_tally_family: told by the kernel's classes */
    int failure;              /* since the last call */
    uint8_t pmc_seen;         /* hardware counters that a switch carries; 0: none did yet */
    bool pmc_unsure;          /* not all switches, or not all names, agree */
    struct ew_pmc_map pmc;    /* what they are */
    bool learning, finished;

    struct ew_tally_thread idle; /* of all CPUs, in a process that is never told of */
    struct ew_tally_deeds idle_deeds;
    struct ew_tally_process idle_process;
    struct ew_store_pool threads, deeds, processes;
    struct ew_store_map pids;
    struct ew_store_texts texts;
    struct ew_tally_thread *nobodys; /* threads whose process is not known */
    struct ew_tally_thread *oldest_ended, *newest_ended;
    struct ew_tally_process *first_process, *last_process;
    struct ew_tally_process *first_ended, *last_ended;
    uint32_t next_serial;
    struct ew_tally_sums rest;         /* of processes beyond the limit */
    struct ew_tally_sums lost_threads; /* of threads that ended before their process was known */
    uint32_t rest_processes, rest_threads;

    uint64_t sample_ns; /* one sample stands for; 0: not told yet */
    uint64_t dpc_ns, isr_ns, unknown_ns;
    uint64_t samples, sampled_irq[2]; /* all; in DPCs and ISRs */
    uint64_t lost, losses, unattributed, inconsistent, refused;
    uint32_t blind_cpus;
    struct ew_store_map learned; /* ids whose first mention is known */

    /* Intervals. */
    uint64_t begin_ns; /* of the open one */
    uint64_t interval_ns;
    struct ew_tally_change change[EW_CHANGES];
    uint32_t change_count;
    struct ew_tally_thread *first_listed, *last_listed;
    struct ew_tally_process *first_active, *last_active;
    struct ew_reading reading; /* zero but for what each sets */

    struct ew_tally_irp *irps;
    struct ew_tally_gone *gone;
    struct ew_tally_images *images;
    char scratch[8192];
    struct ew_tally_tids tids;
};

/* ------------------------------------------------------------------------ threads.c */

static inline struct ew_tally_thread *ew_threads_find(const struct ew_tally *tally, uint32_t tid)
{
    uint32_t page = tid >> (2 + EW_TID_PAGE_BITS);
    if (page < EW_TID_ROOT && (tid & 3) == 0 && tally->tids.root[page] != NULL)
        return tally->tids.root[page][tid >> 2 & ((1u << EW_TID_PAGE_BITS) - 1)];
    return ew_store_map_get(&tally->tids.others, tid);
}

/* Made if need be, without a process; NULL: no room, which is counted. */
struct ew_tally_thread *ew_threads_get(struct ew_tally *tally, uint32_t tid);
/* A new thread of a process or of nobody; whoever had the id before is over. */
struct ew_tally_thread *ew_threads_add(struct ew_tally *tally, struct ew_tally_process *process,
                                       uint32_t tid);
/* Its process has become known. */
void ew_threads_adopt(struct ew_tally *tally, struct ew_tally_thread *thread,
                      struct ew_tally_process *process);
/* It is over, as of t_ns; not on a CPU any more. It may be gone after this. */
void ew_threads_end(struct ew_tally *tally, struct ew_tally_thread *thread, uint64_t t_ns);
/* All threads of a process, which ends. */
void ew_threads_end_all(struct ew_tally *tally, struct ew_tally_process *process, uint64_t t_ns);
/* The thread has told that it ends. */
void ew_threads_ending(struct ew_tally_thread *thread, uint64_t t_ns);
/* Threads that told of their end, but whose last switch never came. */
void ew_threads_end_ending(struct ew_tally *tally, struct ew_tally_process *process, uint64_t t_ns);
/* Forgets the threads that are kept for the totals of a process. */
void ew_threads_drop_kept(struct ew_tally *tally, struct ew_tally_process *process);
/* What a process does in no known thread. NULL: no room. */
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
    return ew_store_map_get(&tally->pids, pid);
}

/* The one that has this id now; made if need be, as one that was there before. NULL: no room. */
struct ew_tally_process *ew_processes_get(struct ew_tally *tally, uint32_t pid, uint64_t t_ns);
void ew_processes_event(struct ew_tally *tally, const struct ew_event *event);
/* In the first of two passes. first: nothing told of the id before, so it was there. */
void ew_processes_learn(struct ew_tally *tally, const struct ew_event *event, bool first);
/* The second pass begins: tells of those. */
void ew_processes_learned(struct ew_tally *tally);
/* Tells a process that is asked for by now. */
void ew_processes_want(struct ew_tally *tally, uint32_t pid);
void ew_processes_absent(struct ew_tally *tally,
                         bool (*is_there)(void *ctx, uint32_t pid, uint64_t start_ns), void *ctx,
                         uint64_t since_ns, uint64_t t_ns);
/* Kept text of an event: the part behind the last backslash if base_name. */
const char *ew_processes_text(struct ew_tally *tally, const struct ew_event_text *text,
                              bool base_name);

/* ---------------------------------------------------------------------------- run.c */

void ew_run_switch(struct ew_tally *tally, const struct ew_event *event);
void ew_run_ready(struct ew_tally *tally, const struct ew_event *event);
void ew_run_sample(struct ew_tally *tally, const struct ew_event *event);
void ew_run_lose(struct ew_tally *tally, uint16_t cpu, uint64_t t_ns, uint64_t count);
void ew_run_interval(struct ew_tally *tally, const struct ew_event *event);
void ew_run_interrupt(struct ew_tally *tally, const struct ew_record *record,
                      const struct ew_event *event);
/* Accounts for what runs on the CPU, or for nobody, up to t_ns. */
void ew_run_charge(struct ew_tally *tally, struct ew_tally_cpu *cpu, uint64_t t_ns);
/* From since_ns on nobody is known there. */
void ew_run_blind(struct ew_tally *tally, struct ew_tally_cpu *cpu, uint64_t since_ns);
/* There are so many CPUs; false: too many or no memory. */
bool ew_run_grow(struct ew_tally *tally, uint32_t count);

/* --------------------------------------------------------------------------- work.c */

void ew_work_event(struct ew_tally *tally, const struct ew_record *record,
                   const struct ew_event *event);
/* Who has this id, or had it a moment ago (then its process); made if need be. NULL: no room. */
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

/* -------------------------------------------------------------------------- facts.c */

/* The first thing the thread does in this interval: its counters are as the last told. */
void ew_facts_open(struct ew_tally *tally, struct ew_tally_thread *thread, uint64_t t_ns);
/* It is over: its last reading. */
void ew_facts_final(struct ew_tally *tally, struct ew_tally_thread *thread, uint64_t t_ns);
/* It was active before its process was known. */
void ew_facts_join(struct ew_tally *tally, struct ew_tally_thread *thread);
void ew_facts_list_process(struct ew_tally *tally, struct ew_tally_process *process);
void ew_facts_process(struct ew_tally *tally, struct ew_tally_process *process,
                      enum ew_process_kind kind, uint64_t t_ns);
/* Ends every interval that ends at or before t_ns. happened: because of an event. */
void ew_facts_close(struct ew_tally *tally, uint64_t t_ns, bool happened);
void ew_facts_init(struct ew_tally *tally);
/* Tells what is known up to t_ns, in the middle of an interval. */
void ew_facts_finish(struct ew_tally *tally, uint64_t t_ns);

/* Before anything is counted: is it the thread's first in this interval? */
static inline void ew_facts_active(struct ew_tally *tally, struct ew_tally_thread *thread,
                                   uint64_t t_ns)
{
    if (thread->epoch != tally->epoch)
        ew_facts_open(tally, thread, t_ns);
}

/* ------------------------------------------------------------------------- totals.c */

void ew_totals_of_thread(const struct ew_tally_thread *thread, struct ew_tally_sums *ret_sums);
void ew_totals_add(struct ew_tally_sums *sums, const struct ew_tally_sums *more);
/* As the public counters; CPU time from switches or samples as the recording has them. */
void ew_totals_counters(const struct ew_tally *tally, const struct ew_tally_sums *sums,
                        uint64_t counter[EW_COUNTER_COUNT]);

/* -------------------------------------------------------------------------- tally.c */

void ew_tally_saw_class(struct ew_tally *tally, uint32_t class_bit);
/* Something could not be kept. */
void ew_tally_short_of_memory(struct ew_tally *tally);

static inline void ew_tally_saw(struct ew_tally *tally, uint32_t class_bit)
{
    if ((tally->classes & class_bit) == 0)
        ew_tally_saw_class(tally, class_bit);
}

static inline bool ew_tally_estimates(const struct ew_tally *tally)
{
    return (tally->classes & (EW_TALLY_SWITCHES | EW_TALLY_SAMPLES)) == EW_TALLY_SAMPLES;
}

#endif
