/* SPDX-License-Identifier: MIT */
/*
 * Computes per-thread and per-process counters from events: which thread ran when, on which CPU,
 * and what it did. Windows has no kernel program that could sum these counters for us, so this is
 * done here, on one thread, without an allocation per event.
 *
 * Events arrive in time order. The tally keeps the running thread and its start time per CPU, the
 * absolute counters per thread and process, and the thread-to-process map as it was at each moment
 * (ids are reused). It emits the same facts as any other source (process facts and readings, split
 * exactly at interval ends), so ledger and sampler treat a recording like a live session.
 *
 * Unknown values are not guessed: before the first switch on a CPU, and after a loss on it, the
 * running thread is unknown and the threads concerned are marked incomplete.
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
 * Attribution. An event either names a thread or belongs to the thread that runs on its CPU; the
 * process is the one the thread belonged to at that moment. A thread without a known process is
 * kept by its id and joins its process as soon as any event names it, so totals are correct even if
 * that is the rundown at the end. Work that cannot be attributed to a known thread of its process
 * (network, I/O that completed after its thread exited) is reported as a pseudo-thread with the
 * process's id as tid, which no real thread of that process can have.
 *
 * Known counters. A counter is known if the events it is computed from were recorded at all; the
 * classes distinguish 0 from "not recorded". For totals this is evaluated at the end. Facts use it
 * from the start if the caller provides it (classes_known, or ew_tally_learn), otherwise from the
 * first event of a class on.
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
    EW_TALLY_GPU = 1u << 11,
    EW_TALLY_PRESENTS = 1u << 12,
};

struct ew_tally_config {
    uint32_t max_processes; /* 0: 65536 */
    uint32_t max_threads;   /* 0: 131072 */
    uint32_t cpu_count;     /* of the machine; 0: as many as the events mention */
    uint32_t classes_known; /* enum ew_tally_class: recorded from the start; 0: as seen */
    uint64_t first_ns;      /* raw: start of the recording */
    struct ew_pmc_map pmc;  /* hardware counters that switches carry; count 0: named by events */
    /* Facts: only if interval_ns is not 0. Interval ends are epoch_ns + n * interval_ns. */
    uint64_t epoch_ns;
    uint64_t interval_ns;
    bool threads;    /* readings also carry thread names and priorities */
    bool images;     /* keep the list of images */
    bool ignore_gpu; /* something else counts GPU time */
    /* May be NULL. Called when all facts of the interval that ended at end_ns (after silence: of
     * all intervals up to it) have been emitted. A caller that cuts samples exactly here gets the
     * same samples no matter how the events arrive. */
    void (*interval_over)(void *ctx, uint64_t end_ns);
    void *interval_ctx;
    /* Converts the session's clock to ns, for times inside payloads. NULL: interrupt time is not
     * separated from the threads it interrupts. */
    void *clock_ctx;
    uint64_t (*raw_to_ns)(void *ctx, const struct ew_record *record, uint64_t raw);
    /* ew_decode_working_set; NULL: such events are ignored. */
    bool (*working_set)(const struct ew_record *record, uint32_t i, struct ew_working_set *ret);
    /* Facts are emitted only for these processes and their descendants. NULL: for all. */
    bool (*selected)(void *ctx, uint32_t pid, const char *name);
    void *selected_ctx;
};

int ew_tally_new(const struct ew_tally_config *config, struct ew_tally **ret_tally);
void ew_tally_free(struct ew_tally *tally);

/*
 * For callers that can read a recording twice: pass every event here first, before any other call.
 * The classes are then known from the start, and so are the processes and threads that existed from
 * the start but are mentioned late (a circular recording has its rundown only at the end).
 */
void ew_tally_learn(struct ew_tally *tally, const struct ew_event *event);

/* Processes one event; facts (may be NULL) receives what it made certain. Returns 0 or
 * ETWATCH_ENOMEM (the event is then counted as lost). */
int ew_tally_event(struct ew_tally *tally, const struct ew_record *record,
                   const struct ew_event *event, const struct ew_facts *facts);
/* No event before t_ns will follow: closes the intervals up to there. */
void ew_tally_advance(struct ew_tally *tally, uint64_t t_ns, const struct ew_facts *facts);
/* Events of this CPU (UINT16_MAX: any) were lost up to now. */
void ew_tally_loss(struct ew_tally *tally, uint16_t cpu, uint64_t t_ns, uint64_t count,
                   const struct ew_facts *facts);
/* Whole buffers were lost: how many events they held is unknown. */
void ew_tally_lost_buffers(struct ew_tally *tally, uint16_t cpu, uint64_t t_ns, uint64_t count,
                           const struct ew_facts *facts);
/* From now on the meaning of the hardware counters in switches is unknown. */
void ew_tally_forget_counters(struct ew_tally *tally);
/* From t_ns on exactly these classes are recorded. */
void ew_tally_set_classes(struct ew_tally *tally, uint32_t classes, uint64_t t_ns,
                          const struct ew_facts *facts);
/* Applies from at_ns on, which must be an interval end. */
void ew_tally_set_interval(struct ew_tally *tally, uint64_t at_ns, uint64_t interval_ns);
/* The result of `selected` changed: report this process and its descendants from now on, or stop
 * reporting this one process. */
void ew_tally_select(struct ew_tally *tally, uint32_t pid, const struct ew_facts *facts);
void ew_tally_deselect(struct ew_tally *tally, uint32_t pid);
/*
 * For callers that also poll the process list.
 * gauges, other_io, cycles, modes, faults: polled values of a live process, emitted with the open
 * interval. All but gauges count from the process's start. cycles is used only if switches carry no
 * cycle counter, modes (user and kernel time) only if there are no samples to derive them from,
 * faults (minor ones) only if there are no fault events.
 * name: the name in UTF-16. Events have it in the system's code page, in which other characters
 * than those of ASCII are ambiguous: the list's name replaces such a name.
 * is_alive: whether a process with this id is alive; ret_start_ns (may be NULL) is 0 if it is
 * preexisting.
 * end_absent: ends every process that started before since_ns and is no longer present; its exit
 * event was missed.
 */
void ew_tally_gauges(struct ew_tally *tally, uint32_t pid, uint32_t has,
                     const uint64_t gauge[EW_GAUGE_COUNT], const struct ew_facts *facts);
void ew_tally_other_io(struct ew_tally *tally, uint32_t pid, uint64_t bytes, uint64_t ops,
                       const struct ew_facts *facts);
void ew_tally_cycles(struct ew_tally *tally, uint32_t pid, uint64_t cycles,
                     const struct ew_facts *facts);
void ew_tally_modes(struct ew_tally *tally, uint32_t pid, uint64_t user_ns, uint64_t kernel_ns,
                    const struct ew_facts *facts);
void ew_tally_faults(struct ew_tally *tally, uint32_t pid, uint64_t minor,
                     const struct ew_facts *facts);
void ew_tally_name(struct ew_tally *tally, uint32_t pid, const struct ew_event_text *name,
                   const struct ew_facts *facts);
bool ew_tally_is_alive(const struct ew_tally *tally, uint32_t pid, uint64_t *ret_start_ns);
void ew_tally_end_absent(struct ew_tally *tally,
                         bool (*is_there)(void *ctx, uint32_t pid, uint64_t start_ns), void *ctx,
                         uint64_t since_ns, uint64_t t_ns, const struct ew_facts *facts);
/* Counters (EW_HAS_C) of classes that should be recorded, but of which no event has arrived so far:
 * a 0 might mean that the system does not record them. */
uint32_t ew_tally_unproven(const struct ew_tally *tally);
/* The counters known so far: EW_HAS_C. */
uint32_t ew_tally_counters(const struct ew_tally *tally);
/* Whether facts of this process are emitted. */
bool ew_tally_is_selected(const struct ew_tally *tally, uint32_t pid);
/* Charges all CPUs, idle ones included, up to t_ns: totals read after this are as of t_ns. */
void ew_tally_charge_running(struct ew_tally *tally, uint64_t t_ns);
/* The recording ends at t_ns: running threads are charged up to there. */
void ew_tally_finish(struct ew_tally *tally, uint64_t t_ns, const struct ew_facts *facts);

/*
 * Fills in *pid and *tid where they are EW_NO_ID, as of now; if both are, from the thread running
 * on cpu. Returns the name of the process, or NULL if it is unknown.
 */
const char *ew_tally_identify(const struct ew_tally *tally, uint16_t cpu, uint32_t *pid,
                              uint32_t *tid);

/* -------------------------------------------------------------------- totals */

enum ew_total_flag {
    EW_TOTAL_CPU_ESTIMATED = 1u << 0, /* from profile samples, because there were no switches */
    EW_TOTAL_STARTED = 1u << 1,       /* its start is in the recording */
    EW_TOTAL_ENDED = 1u << 2,
    EW_TOTAL_HAS_EXIT = 1u << 3, /* exit_status */
    EW_TOTAL_HAS_PPID = 1u << 4,
    EW_TOTAL_HAS_SESSION = 1u << 5,
    EW_TOTAL_INCOMPLETE = 1u << 6, /* events were lost during its lifetime */
    EW_TOTAL_IDLE = 1u << 7,       /* the idle process: cpu_ns is the idle time of all CPUs */
    EW_TOTAL_UNKNOWN = 1u << 8,    /* threads without a known process; pid is EW_NO_ID */
    EW_TOTAL_REST = 1u << 9,       /* ended processes beyond the limit, merged; pid is EW_NO_ID */
    EW_TOTAL_GPU = 1u << 10,       /* gpu_ns is known */
    EW_TOTAL_GPU_ESTIMATED = 1u << 11,
    EW_TOTAL_PRESENTS = 1u << 12, /* presents is known */
};

/* One process, or one of its threads, over its whole lifetime in the recording. Valid until the
 * next event. */
struct ew_total {
    uint32_t flags;
    uint32_t pid, tid; /* tid 0: the process */
    uint32_t ppid, session_id;
    int32_t exit_status;
    uint64_t start_ns, end_ns; /* raw; 0: not in the recording */
    const char *name;          /* UTF-8, "" unknown */
    const char *command_line;  /* processes; "" unknown. Private: mask before showing */
    const char *sid;           /* of the user of a process: S-1-…; "" or NULL: unknown */
    uint32_t thread_count;     /* over its lifetime */
    uint32_t process_count;    /* REST: number of merged processes; else 1 */
    uint32_t image_count;
    uint32_t counter_has, gauge_has;
    uint64_t counter[EW_COUNTER_COUNT];
    uint64_t gauge[EW_GAUGE_COUNT];
    uint64_t samples;          /* profile samples */
    uint64_t gpu_ns, presents; /* of processes */
};

/* In order of start; if threads is set, each process is followed by its threads. Stops at and
 * returns the first nonzero result of on_total. */
int ew_tally_totals(const struct ew_tally *tally, bool threads,
                    int (*on_total)(void *ctx, const struct ew_total *total), void *ctx);

/* Program files and libraries, in load order; kept only if config.images is set. */
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
    uint64_t unknown_ns;                       /* CPU time without a known thread */
    uint64_t switches, samples;
    bool cpu_from_switches;
    bool sample_interval_assumed; /* not in the recording; 1 ms is assumed */
    uint64_t lost;
    uint64_t unattributed; /* events that belong to no known process */
    uint64_t
        inconsistent; /* switches from a thread that was not running: other switches were lost */
    uint64_t refused; /* threads, processes, images and texts dropped because of the limits */
    uint32_t classes; /* enum ew_tally_class: seen or known */
    uint32_t cpus;
};
void ew_tally_system(const struct ew_tally *tally, struct ew_tally_system *ret_system);

#endif
