/* SPDX-License-Identifier: MIT */
/*
 * Computes totals: a process is the sum of its ended threads, its live threads and its
 * pseudo-thread. Nothing that was counted is dropped: threads without a known process and the
 * processes merged because of the limits have entries of their own.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tally/internal.h"
#include "tally/pmc.h"

#define ASSUMED_SAMPLE_NS UINT64_C(1000000)

void ew_totals_of_thread(const struct ew_tally_thread *thread, struct ew_tally_sums *ret_sums)
{
    ret_sums->cpu_ns = thread->cpu_ns;
    ret_sums->runq_ns = thread->runq_ns;
    ret_sums->voluntary = thread->voluntary;
    ret_sums->involuntary = thread->involuntary;
    memcpy(ret_sums->work, thread->cold->work, sizeof ret_sums->work);
}

void ew_totals_add(struct ew_tally_sums *sums, const struct ew_tally_sums *more)
{
    sums->cpu_ns += more->cpu_ns;
    sums->runq_ns += more->runq_ns;
    sums->voluntary += more->voluntary;
    sums->involuntary += more->involuntary;
    for (uint32_t i = 0; i < EW_WORK_COUNT; i++)
        sums->work[i] += more->work[i];
}

/* Time that samples stand for; early: samples taken before the sampling interval was known. */
static uint64_t sample_time_ns(const struct ew_tally *tally, uint64_t ns, uint64_t early)
{
    return ns + early * (tally->sample_ns != 0 ? tally->sample_ns : ASSUMED_SAMPLE_NS);
}

static uint64_t sampled_ns(const struct ew_tally *tally, const uint64_t work[EW_WORK_COUNT])
{
    return sample_time_ns(tally, work[EW_WORK_SAMPLE_NS], work[EW_WORK_SAMPLES_EARLY]);
}

void ew_totals_counters(const struct ew_tally *tally, const struct ew_tally_sums *sums,
                        uint64_t counter[EW_COUNTER_COUNT])
{
    const uint64_t *work = sums->work;
    uint64_t major = work[EW_WORK_FAULTS_MAJOR], hard = work[EW_WORK_FAULTS_HARD];
    uint64_t sampled = sampled_ns(tally, work);
    uint64_t kernel = sample_time_ns(tally, work[EW_WORK_KERNEL_NS], work[EW_WORK_KERNEL_EARLY]);
    counter[EW_C_cpu_ns] = ew_tally_estimates(tally) ? sampled : sums->cpu_ns;
    counter[EW_C_cpu_user_ns] = sampled - kernel;
    counter[EW_C_cpu_kernel_ns] = kernel;
    counter[EW_C_switches_voluntary] = sums->voluntary;
    counter[EW_C_switches_involuntary] = sums->involuntary;
    counter[EW_C_runq_wait_ns] = sums->runq_ns;
    counter[EW_C_faults_minor] = work[EW_WORK_FAULTS_MINOR];
    counter[EW_C_faults_major] = major > hard ? major : hard;
    counter[EW_C_io_read_bytes] = work[EW_WORK_IO_READ_BYTES];
    counter[EW_C_io_write_bytes] = work[EW_WORK_IO_WRITE_BYTES];
    counter[EW_C_io_read_ops] = work[EW_WORK_IO_READ_OPS];
    counter[EW_C_io_write_ops] = work[EW_WORK_IO_WRITE_OPS];
    counter[EW_C_disk_read_bytes] = work[EW_WORK_DISK_READ_BYTES];
    counter[EW_C_disk_write_bytes] = work[EW_WORK_DISK_WRITE_BYTES];
    counter[EW_C_net_received_bytes] = work[EW_WORK_NET_RECEIVED_BYTES];
    counter[EW_C_net_sent_bytes] = work[EW_WORK_NET_SENT_BYTES];
    ew_tally_pmc_counters(tally, work, counter);
    /* Unknown counters are 0, so that a comparison of all counters shows no change. */
    for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++)
        counter[i] &= 0 - (uint64_t)(tally->counter_has >> i & 1);
}

/* ---------------------------------------------------------------------- delivery */

struct delivery {
    const struct ew_tally *tally;
    bool threads;
    int (*on_total)(void *ctx, const struct ew_total *total);
    void *ctx;
};

/* Where some work has no known process, a process without any may have done it. */
static void put_gpu(const struct ew_tally *tally, const struct ew_tally_sums *sums,
                    struct ew_total *total)
{
    uint64_t gpu_ns = sums->work[EW_WORK_GPU_NS];
    total->flags |= (tally->classes & EW_TALLY_PRESENTS) != 0 ? EW_TOTAL_PRESENTS : 0u;
    total->presents = sums->work[EW_WORK_PRESENTS];
    if ((tally->classes & EW_TALLY_GPU) == 0 || (gpu_ns == 0 && !ew_graphics_is_complete(tally)))
        return;
    total->flags |= EW_TOTAL_GPU;
    total->flags |= ew_graphics_is_unsure(tally) ? EW_TOTAL_GPU_ESTIMATED : 0u;
    total->gpu_ns = gpu_ns;
}

static int deliver(const struct delivery *to, struct ew_total *total,
                   const struct ew_tally_sums *sums)
{
    total->counter_has |= to->tally->counter_has;
    ew_totals_counters(to->tally, sums, total->counter);
    total->samples = sums->work[EW_WORK_SAMPLES];
    if (ew_tally_estimates(to->tally))
        total->flags |= EW_TOTAL_CPU_ESTIMATED;
    return to->on_total(to->ctx, total);
}

static int by_start(const void *a, const void *b)
{
    const struct ew_tally_thread *x = *(struct ew_tally_thread *const *)a;
    const struct ew_tally_thread *y = *(struct ew_tally_thread *const *)b;
    const struct ew_tally_thread_cold *dx = x->cold, *dy = y->cold;
    if (dx->start_ns != dy->start_ns)
        return dx->start_ns < dy->start_ns ? -1 : 1;
    return dx->tid < dy->tid ? -1 : dx->tid > dy->tid;
}

static int deliver_thread(const struct delivery *to, uint32_t pid,
                          const struct ew_tally_thread *thread)
{
    const struct ew_tally_thread_cold *cold = thread->cold;
    struct ew_total total = {.pid = pid,
                             .tid = cold->tid,
                             .process_count = 1,
                             .start_ns = cold->start_ns,
                             .end_ns = cold->end_ns,
                             .name = cold->name,
                             .command_line = ""};
    if ((thread->flags & EW_TT_STARTED) != 0)
        total.flags |= EW_TOTAL_STARTED;
    if ((thread->flags & (EW_TT_ENDED | EW_TT_ENDING)) != 0)
        total.flags |= EW_TOTAL_ENDED;
    if (thread->process == NULL)
        total.flags |= EW_TOTAL_UNKNOWN;
    if (cold->has_priority || (to->tally->classes & EW_TALLY_SWITCHES) != 0) {
        total.gauge_has |= EW_HAS_G(priority);
        total.gauge[EW_G_priority] = (uint64_t)(int64_t)thread->priority;
    }
    if (cold->has_affinity) {
        total.gauge_has |= EW_HAS_G(affinity);
        total.gauge[EW_G_affinity] = cold->affinity;
    }
    struct ew_tally_sums sums;
    ew_totals_of_thread(thread, &sums);
    return deliver(to, &total, &sums);
}

static int deliver_threads(const struct delivery *to, uint32_t pid,
                           const struct ew_tally_thread *first)
{
    uint32_t count = 0;
    for (const struct ew_tally_thread *t = first; t != NULL; t = t->cold->next)
        count++;
    if (count == 0 || !to->threads)
        return 0;
    const struct ew_tally_thread **sorted = ew_calloc(count, sizeof(struct ew_tally_thread *));
    if (sorted == NULL)
        return ETWATCH_ENOMEM;
    uint32_t n = 0;
    for (const struct ew_tally_thread *t = first; t != NULL; t = t->cold->next)
        sorted[n++] = t;
    qsort(sorted, count, sizeof *sorted, by_start);
    int r = 0;
    for (n = 0; n < count && r == 0; n++)
        r = deliver_thread(to, pid, sorted[n]);
    ew_free(sorted);
    return r;
}

/* Windows reports the fault count of the whole lifetime at exit; used if single faults were not
 * recorded. */
static void fill_faults(const struct ew_tally *tally, const struct ew_tally_process *process,
                        const struct ew_tally_sums *sums, struct ew_total *total)
{
    uint32_t fault_classes = EW_TALLY_FAULTS | EW_TALLY_HARD_FAULTS;
    uint64_t major = sums->work[EW_WORK_FAULTS_MAJOR];
    uint32_t whole = EW_TP_HAS_FAULTS | EW_TP_STARTED;
    if ((tally->classes & fault_classes) != EW_TALLY_HARD_FAULTS ||
        (process->flags & whole) != whole || process->fault_count < major)
        return;
    total->counter_has |= EW_HAS_C(faults_minor);
    total->counter[EW_C_faults_minor] = process->fault_count - major;
}

static void add_live(struct ew_tally_sums *sums, const struct ew_tally_thread *first)
{
    struct ew_tally_sums more;
    for (const struct ew_tally_thread *t = first; t != NULL; t = t->cold->next) {
        if ((t->flags & EW_TT_ENDED) != 0)
            continue; /* already in the sum of the ended threads */
        ew_totals_of_thread(t, &more);
        ew_totals_add(sums, &more);
    }
}

static void sum_process(const struct ew_tally_process *process, struct ew_tally_sums *ret_sums)
{
    *ret_sums = process->ended;
    add_live(ret_sums, process->threads);
    add_live(ret_sums, process->own);
}

static uint32_t flags_of(const struct ew_tally *tally, const struct ew_tally_process *process)
{
    uint32_t flags = 0;
    flags |= (process->flags & EW_TP_STARTED) != 0 ? EW_TOTAL_STARTED : 0u;
    flags |= (process->flags & EW_TP_ENDED) != 0 ? EW_TOTAL_ENDED : 0u;
    flags |= (process->flags & EW_TP_HAS_EXIT) != 0 ? EW_TOTAL_HAS_EXIT : 0u;
    flags |= (process->flags & EW_TP_HAS_PPID) != 0 ? EW_TOTAL_HAS_PPID : 0u;
    flags |= (process->flags & EW_TP_HAS_SESSION) != 0 ? EW_TOTAL_HAS_SESSION : 0u;
    bool lossy = (process->flags & EW_TP_INCOMPLETE) != 0 ||
                 ((process->flags & EW_TP_ENDED) == 0 && tally->losses > process->losses);
    return flags | (lossy ? EW_TOTAL_INCOMPLETE : 0u);
}

static int deliver_process(const struct delivery *to, const struct ew_tally_process *process)
{
    const struct ew_tally *tally = to->tally;
    struct ew_total total = {
        .flags = flags_of(tally, process),
        .pid = process->pid,
        .ppid = process->ppid,
        .session_id = process->session_id,
        .exit_status = process->exit_status,
        .start_ns = process->start_ns,
        .end_ns = process->end_ns,
        .name = process->name,
        .command_line = process->command_line,
        .sid = process->sid,
        .thread_count = process->thread_count,
        .process_count = 1,
        .image_count = process->image_count > process->images_still ? process->image_count
                                                                    : process->images_still,
        .gauge_has = process->gauge_has,
    };
    memcpy(total.gauge, process->gauge, sizeof total.gauge);
    if ((process->flags & EW_TP_ALL_THREADS) != 0) {
        total.gauge_has |= EW_HAS_G(threads);
        total.gauge[EW_G_threads] = process->live_threads - process->ending_threads;
    }
    struct ew_tally_sums sums;
    sum_process(process, &sums);
    total.counter_has = tally->counter_has;
    ew_totals_counters(tally, &sums, total.counter);
    total.samples = sums.work[EW_WORK_SAMPLES];
    put_gpu(tally, &sums, &total);
    total.flags |= ew_tally_estimates(tally) ? EW_TOTAL_CPU_ESTIMATED : 0u;
    fill_faults(tally, process, &sums, &total);
    int r = to->on_total(to->ctx, &total);
    if (r == 0)
        r = deliver_threads(to, process->pid, process->threads);
    if (r == 0 && to->threads && process->own != NULL)
        r = deliver_thread(to, process->pid, process->own);
    return r;
}

static int in_order(const void *a, const void *b)
{
    const struct ew_tally_process *x = *(struct ew_tally_process *const *)a;
    const struct ew_tally_process *y = *(struct ew_tally_process *const *)b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

static int deliver_processes(const struct delivery *to)
{
    const struct ew_tally *tally = to->tally;
    if (tally->processes.used == 0)
        return 0;
    const struct ew_tally_process **sorted =
        ew_calloc(tally->processes.used, sizeof(struct ew_tally_process *));
    if (sorted == NULL)
        return ETWATCH_ENOMEM;
    uint32_t count = 0;
    for (const struct ew_tally_process *p = tally->first_process; p != NULL; p = p->newer)
        sorted[count++] = p;
    qsort(sorted, count, sizeof *sorted, in_order);
    int r = 0;
    for (uint32_t i = 0; i < count && r == 0; i++)
        r = deliver_process(to, sorted[i]);
    ew_free(sorted);
    return r;
}

static int deliver_idle(const struct delivery *to)
{
    struct ew_total total = {.flags = EW_TOTAL_IDLE,
                             .process_count = 1,
                             .thread_count = to->tally->cpu_count,
                             .name = "Idle",
                             .command_line = ""};
    struct ew_tally_sums sums;
    ew_totals_of_thread(&to->tally->idle, &sums);
    sums.voluntary = sums.involuntary = sums.runq_ns = 0;
    return deliver(to, &total, &sums);
}

static bool nothing(const struct ew_tally_sums *sums)
{
    static const struct ew_tally_sums none;
    return memcmp(sums, &none, sizeof none) == 0;
}

int ew_tally_totals(const struct ew_tally *tally, bool threads,
                    int (*on_total)(void *ctx, const struct ew_total *total), void *ctx)
{
    struct delivery to = {.tally = tally, .threads = threads, .on_total = on_total, .ctx = ctx};
    uint32_t time_classes = EW_TALLY_SWITCHES | EW_TALLY_SAMPLES;
    int r = (tally->classes & time_classes) != 0 ? deliver_idle(&to) : 0;
    if (r == 0)
        r = deliver_processes(&to);
    struct ew_tally_sums sums = tally->lost_threads;
    add_live(&sums, tally->unowned);
    if (r == 0 && !nothing(&sums)) {
        struct ew_total total = {.flags = EW_TOTAL_UNKNOWN,
                                 .pid = EW_NO_ID,
                                 .process_count = 1,
                                 .name = "",
                                 .command_line = ""};
        for (const struct ew_tally_thread *t = tally->unowned; t != NULL; t = t->cold->next)
            total.thread_count++;
        r = deliver(&to, &total, &sums);
        if (r == 0)
            r = deliver_threads(&to, EW_NO_ID, tally->unowned);
    }
    if (r == 0 && tally->rest_processes > 0) {
        struct ew_total total = {.flags = EW_TOTAL_REST | EW_TOTAL_ENDED,
                                 .pid = EW_NO_ID,
                                 .process_count = tally->rest_processes,
                                 .thread_count = tally->rest_threads,
                                 .name = "",
                                 .command_line = ""};
        r = deliver(&to, &total, &tally->rest);
    }
    return r;
}

/* ------------------------------------------------------------------------ system */

static uint64_t sampled_busy_ns(const struct ew_tally *tally)
{
    struct ew_tally_sums all = tally->lost_threads, more;
    ew_totals_add(&all, &tally->rest);
    add_live(&all, tally->unowned);
    for (const struct ew_tally_process *p = tally->first_process; p != NULL; p = p->newer) {
        sum_process(p, &more);
        ew_totals_add(&all, &more);
    }
    return sampled_ns(tally, all.work);
}

void ew_tally_system(const struct ew_tally *tally, struct ew_tally_system *ret_system)
{
    bool switches = (tally->classes & EW_TALLY_SWITCHES) != 0;
    *ret_system = (struct ew_tally_system){
        .busy_ns = tally->run_ns - tally->idle.cpu_ns,
        .idle_ns = tally->idle.cpu_ns,
        .dpc_ns = tally->dpc_ns,
        .isr_ns = tally->isr_ns,
        .unknown_ns = switches ? tally->unknown_ns : 0,
        .switches = tally->switches,
        .samples = tally->samples,
        .cpu_from_switches = switches,
        .sample_interval_assumed = tally->samples > 0 && tally->sample_ns == 0,
        .lost = tally->lost,
        .unattributed = tally->unattributed,
        .inconsistent = tally->inconsistent,
        .refused = tally->refused + tally->texts.refused,
        .classes = tally->classes,
        .cpus = tally->cpu_count,
    };
    for (const struct ew_tally_thread *t = tally->unowned; t != NULL; t = t->cold->next)
        ret_system->unattributed += t->cold->orphans;
    if (switches)
        return;
    uint64_t each_ns = tally->sample_ns != 0 ? tally->sample_ns : ASSUMED_SAMPLE_NS;
    ret_system->busy_ns = sampled_busy_ns(tally);
    ret_system->idle_ns = sampled_ns(tally, tally->idle_cold.work);
    if ((tally->classes & EW_TALLY_INTERRUPTS) != 0)
        return;
    ret_system->dpc_ns = tally->sampled_irq[0] * each_ns;
    ret_system->isr_ns = tally->sampled_irq[1] * each_ns;
}
