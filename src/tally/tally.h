/* SPDX-License-Identifier: MIT */
/*
 * Adds events up: who ran when, on which CPU, and what it did. Windows has no counters that a
 * kernel program could add up for us, so this is done here, on one thread, with no allocation per
 * event.
 *
 * Events come in time order. The tally keeps, per CPU, the thread that runs and since when; per
 * thread and process the absolute counters; and the thread-to-process map as it was at each moment
 * (ids are reused). It yields the same facts as any other source: process facts and readings, cut
 * at interval ends exactly, so that ledger and sampler cannot tell a recording from a live session.
 *
 * What is not known is not made up: before the first switch on a CPU, and after a loss on it,
 * nobody is known to run there, and the threads concerned are marked incomplete.
 */
#ifndef EW_TALLY_TALLY_H
#define EW_TALLY_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/event.h"
#include "model/facts.h"
#include "model/record.h"

/*
 * Who did what. An event names a thread, or the thread that runs on its CPU is meant; the process
 * is the one that the thread belonged to at that moment. A thread that nothing has told of yet is
 * kept under its id alone and joins its process as soon as any event tells which that is, so totals
 * are right even if that is the rundown at the end. What a process did in no thread that is known
 * (network, I/O that ended after its thread) is told as a thread with the id of the process, which
 * no thread of that process can have.
 *
 * What is known. A counter is known if the events it is counted from were recorded at all; 0 and
 * "not recorded" are told apart by the classes. Totals know that at the end. Facts know it from the
 * beginning if the caller says so (classes_known, or ew_tally_learn); else from the first event of
 * a class on.
 */
struct ew_tally;

enum ew_tally_class {
    EW_TALLY_SWITCHES = 1u << 0,
    EW_TALLY_READY = 1u << 1,
    EW_TALLY_SAMPLES = 1u << 2,
    EW_TALLY_INTERRUPTS = 1u << 3,
    EW_TALLY_FAULTS = 1u << 4,
    EW_TALLY_HARD_FAULTS = 1u << 5,
    EW_TALLY_DISK = 1u << 6,
    EW_TALLY_FILES = 1u << 7,
    EW_TALLY_NET = 1u << 8,
    EW_TALLY_THREADS = 1u << 9,
    EW_TALLY_PROCESSES = 1u << 10,
};

struct ew_tally_config {
    uint32_t max_processes; /* 0: 65536 */
    uint32_t max_threads;   /* 0: 131072 */
    uint32_t cpu_count;     /* of the machine; 0: those that events come from */
    uint32_t classes_known; /* enum ew_tally_class: recorded from the beginning; 0: as seen */
    uint64_t first_ns;      /* raw: the recording begins */
    struct ew_pmc_map pmc;  /* hardware counters that switches carry; count 0: events tell */
    /* Facts: only if interval_ns is not 0. Interval ends are epoch_ns + n * interval_ns. */
    uint64_t epoch_ns;
    uint64_t interval_ns;
    bool threads; /* thread names and priorities in the readings too */
    bool images;  /* keep the list of images */
    /* May be NULL. All facts of the interval that ended at end_ns (or, after silence, of all up to
     * it) are told: whoever cuts exactly here gets the same samples however the events arrive. */
    void (*interval_over)(void *ctx, uint64_t end_ns);
    void *interval_ctx;
    /* Turns the session's clock into ns, for times inside payloads. NULL: interrupts are not told
     * apart from the threads they interrupt. */
    void *clock_ctx;
    uint64_t (*raw_to_ns)(void *ctx, const struct ew_record *record, uint64_t raw);
    /* ew_decode_working_set; NULL: such events are passed over. */
    bool (*working_set)(const struct ew_record *record, uint32_t i, struct ew_working_set *ret);
    /* Only these are told as facts: NULL = everybody. Descendants are followed. */
    bool (*wanted)(void *ctx, uint32_t pid, const char *name);
    void *wanted_ctx;
};

int ew_tally_new(const struct ew_tally_config *config, struct ew_tally **ret_tally);
void ew_tally_free(struct ew_tally *tally);

/*
 * For whoever can read a recording twice: in a first pass, before anything else, every event is
 * learned. Then the classes are known, and so are the processes and threads that were there from
 * the beginning but are told of late (a circular recording has its rundown only at the end).
 */
void ew_tally_learn(struct ew_tally *tally, const struct ew_event *event);

/* Takes one event; facts (may be NULL) get what became certain by it. 0 or ETWATCH_ENOMEM (then
 * counted as lost). */
int ew_tally_event(struct ew_tally *tally, const struct ew_record *record,
                   const struct ew_event *event, const struct ew_facts *facts);
/* Time has come this far (no event before it will come): closes intervals. */
void ew_tally_advance(struct ew_tally *tally, uint64_t t_ns, const struct ew_facts *facts);
/* Events of this CPU (UINT16_MAX: any) were lost up to now. */
void ew_tally_loss(struct ew_tally *tally, uint16_t cpu, uint64_t t_ns, uint64_t count,
                   const struct ew_facts *facts);
/* From now on nobody knows what hardware counters of switches are. */
void ew_tally_forget_counters(struct ew_tally *tally);
/* From t_ns on these classes are recorded, whatever was before. */
void ew_tally_set_classes(struct ew_tally *tally, uint32_t classes, uint64_t t_ns,
                          const struct ew_facts *facts);
/* From at_ns on, an interval end. */
void ew_tally_set_interval(struct ew_tally *tally, uint64_t at_ns, uint64_t interval_ns);
/* `wanted` has changed its mind: this process and its descendants are told from now on; or it alone
 * is told no more. */
void ew_tally_want(struct ew_tally *tally, uint32_t pid, const struct ew_facts *facts);
void ew_tally_unwant(struct ew_tally *tally, uint32_t pid);
/*
 * For whoever reads beside the events who is there. gauges, other_io, cycles, modes: of a process
 * that lives, told with the interval at hand; all but gauges count from its beginning; cycles count
 * only where switches carry none, modes (time in user space and in the kernel) where no samples
 * tell them. lives: whether a process of this id does; ret_start_ns (may be NULL) is 0 if it was
 * there before. absent: whoever began before since_ns and is not there has ended, which nobody
 * told.
 */
void ew_tally_gauges(struct ew_tally *tally, uint32_t pid, uint32_t has,
                     const uint64_t gauge[EW_GAUGE_COUNT], const struct ew_facts *facts);
void ew_tally_other_io(struct ew_tally *tally, uint32_t pid, uint64_t bytes, uint64_t ops,
                       const struct ew_facts *facts);
void ew_tally_cycles(struct ew_tally *tally, uint32_t pid, uint64_t cycles,
                     const struct ew_facts *facts);
void ew_tally_modes(struct ew_tally *tally, uint32_t pid, uint64_t user_ns, uint64_t kernel_ns,
                    const struct ew_facts *facts);
bool ew_tally_lives(const struct ew_tally *tally, uint32_t pid, uint64_t *ret_start_ns);
void ew_tally_absent(struct ew_tally *tally,
                     bool (*is_there)(void *ctx, uint32_t pid, uint64_t start_ns), void *ctx,
                     uint64_t since_ns, uint64_t t_ns, const struct ew_facts *facts);
/* The counters that are known by now: EW_HAS_C. */
uint32_t ew_tally_counters(const struct ew_tally *tally);
/* Whether this process is told. */
bool ew_tally_wants(const struct ew_tally *tally, uint32_t pid);
/* Accounts for whoever runs, and for idle CPUs, up to t_ns: totals taken now are as of then. */
void ew_tally_settle(struct ew_tally *tally, uint64_t t_ns);
/* The recording ends at t_ns: whoever runs is accounted for up to there. */
void ew_tally_finish(struct ew_tally *tally, uint64_t t_ns, const struct ew_facts *facts);

/*
 * Whom an event is about, as of now: *pid and *tid that are EW_NO_ID are filled in, from who runs
 * on the CPU if need be. Returns the name of the process, or NULL if unknown.
 */
const char *ew_tally_who(const struct ew_tally *tally, uint16_t cpu, uint32_t *pid, uint32_t *tid);

/* -------------------------------------------------------------------- totals */

enum ew_total_flag {
    EW_TOTAL_CPU_ESTIMATED = 1u << 0, /* from profile samples: there were no switches */
    EW_TOTAL_STARTED = 1u << 1,       /* its start is in the recording */
    EW_TOTAL_ENDED = 1u << 2,
    EW_TOTAL_HAS_EXIT = 1u << 3, /* exit_status */
    EW_TOTAL_HAS_PPID = 1u << 4,
    EW_TOTAL_HAS_SESSION = 1u << 5,
    EW_TOTAL_INCOMPLETE = 1u << 6, /* events were lost while it lived */
    EW_TOTAL_IDLE = 1u << 7,       /* the idle process: cpu_ns is the time that CPUs did nothing */
    EW_TOTAL_UNKNOWN = 1u << 8,    /* threads whose process was never told; pid is EW_NO_ID */
    EW_TOTAL_REST = 1u << 9,       /* ended processes beyond the limit, as one; pid is EW_NO_ID */
};

/* One process, or one thread of it, over its whole life in the recording. Valid until the next
 * event. */
struct ew_total {
    uint32_t flags;
    uint32_t pid, tid; /* tid 0: the process */
    uint32_t ppid, session_id;
    int32_t exit_status;
    uint64_t start_ns, end_ns; /* raw; 0: not in the recording */
    const char *name;          /* UTF-8, "" unknown */
    const char *command_line;  /* processes; "" unknown. Private: mask before showing */
    uint32_t thread_count;     /* ever */
    uint32_t process_count;    /* REST: how many; else 1 */
    uint32_t image_count;
    uint32_t counter_has, gauge_has;
    uint64_t counter[EW_COUNTER_COUNT];
    uint64_t gauge[EW_GAUGE_COUNT];
    uint64_t samples; /* profile samples */
};

/* In order of start; threads after their process if asked for. Returns what on_total returned if
 * that was not 0. */
int ew_tally_totals(const struct ew_tally *tally, bool threads,
                    int (*on_total)(void *ctx, const struct ew_total *total), void *ctx);

/* Program files and libraries, in order of loading; kept only if the configuration asks for them.
 */
struct ew_tally_image {
    uint32_t pid;
    uint64_t base, bytes;
    uint64_t load_ns, unload_ns; /* raw; 0: before or after the recording */
    const char *path;
};
int ew_tally_images(const struct ew_tally *tally,
                    int (*on_image)(void *ctx, const struct ew_tally_image *image), void *ctx);

struct ew_tally_system {
    uint64_t busy_ns, idle_ns, dpc_ns, isr_ns; /* summed over CPUs, where known */
    uint64_t unknown_ns;                       /* CPU time for which nobody is known */
    uint64_t switches, samples;
    bool cpu_from_switches;
    bool sample_interval_assumed; /* the recording never told it: 1 ms */
    uint64_t lost;
    uint64_t unattributed; /* events of threads that nothing is known about */
    uint64_t inconsistent; /* switches from a thread that was not running: others were lost */
    uint64_t refused;      /* threads, processes, images and texts that the limits left out */
    uint32_t classes;      /* enum ew_tally_class: seen or known */
    uint32_t cpus;
};
void ew_tally_system(const struct ew_tally *tally, struct ew_tally_system *ret_system);

#endif
