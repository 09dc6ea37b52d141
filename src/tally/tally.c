/* SPDX-License-Identifier: MIT */
/*
 * The tally's public functions: create, free, and dispatch each event to the file that counts it.
 * Nothing here reads a clock or the system; the same events yield the same facts and totals.
 */
#include "base/alloc.h"
#include "base/no_arrays.h"
#include "tally/internal.h"
#include "tally/pmc.h"

#define TEXTS_MAX ((size_t)24 << 20)
enum { LOST_EVENT = 32 };

/* Counters that are known if events of these classes were recorded. */
static uint32_t counters_of(uint32_t classes)
{
    static const struct {
        uint32_t classes, counters;
    } table[] = {
        {EW_TALLY_SWITCHES,
         EW_HAS_C(cpu_ns) | EW_HAS_C(switches_voluntary) | EW_HAS_C(switches_involuntary)},
        {EW_TALLY_SWITCHES | EW_TALLY_READY, EW_HAS_C(runq_wait_ns)},
        {EW_TALLY_SAMPLES, EW_HAS_C(cpu_ns) | EW_HAS_C(cpu_user_ns) | EW_HAS_C(cpu_kernel_ns)},
        {EW_TALLY_FAULTS, EW_HAS_C(faults_minor) | EW_HAS_C(faults_major)},
        {EW_TALLY_HARD_FAULTS, EW_HAS_C(faults_major)},
        {EW_TALLY_DISK, EW_HAS_C(disk_read_bytes) | EW_HAS_C(disk_write_bytes)},
        {EW_TALLY_FILES, EW_HAS_C(io_read_bytes) | EW_HAS_C(io_write_bytes) |
                             EW_HAS_C(io_read_ops) | EW_HAS_C(io_write_ops)},
        {EW_TALLY_NET, EW_HAS_C(net_received_bytes) | EW_HAS_C(net_sent_bytes)},
    };
    uint32_t counters = 0;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if ((classes & table[i].classes) == table[i].classes)
            counters |= table[i].counters;
    return counters;
}

/* Known without an event: the caller knows what is recorded. */
static void set_known(struct ew_tally *tally, uint32_t classes)
{
    tally->classes |= classes;
    tally->counter_has = counters_of(tally->classes) | ew_tally_pmc_known(tally);
}

void ew_tally_saw_class(struct ew_tally *tally, uint32_t class_bit)
{
    tally->seen |= class_bit;
    set_known(tally, class_bit);
}

void ew_tally_short_of_memory(struct ew_tally *tally)
{
    tally->failure = ETWATCH_ENOMEM;
    tally->refused++;
    tally->lost++;
}

int ew_tally_new(const struct ew_tally_config *config, struct ew_tally **ret_tally)
{
    struct ew_tally *tally = ew_calloc(1, sizeof *tally);
    if (tally == NULL)
        return ETWATCH_ENOMEM;
    tally->config = *config;
    if (config->max_processes == 0)
        tally->config.max_processes = 65536;
    if (config->max_threads == 0)
        tally->config.max_threads = 131072;
    ew_tally_pool_init(&tally->threads, sizeof(struct ew_tally_thread));
    ew_tally_pool_init(&tally->cold, sizeof(struct ew_tally_thread_cold));
    ew_tally_pool_init(&tally->processes, sizeof(struct ew_tally_process));
    ew_tally_texts_init(&tally->texts, TEXTS_MAX);
    ew_facts_init(tally);
    tally->now_ns = config->first_ns;
    tally->pmc = config->pmc;
    set_known(tally, config->classes_known);
    tally->idle.flags = EW_TT_IDLE;
    tally->idle.cold = &tally->idle_cold;
    tally->idle.epoch = tally->epoch;
    tally->idle.process = &tally->idle_process;
    tally->idle_process.name = tally->idle_process.command_line = tally->idle_process.sid = "";
    tally->idle_cold.name = "";
    uint32_t cpus = config->cpu_count < EW_CPUS_MAX ? config->cpu_count : EW_CPUS_MAX;
    if (ew_tids_set(&tally->tids, 0, &tally->idle) < 0 || (cpus > 0 && !ew_run_grow(tally, cpus))) {
        ew_tally_free(tally);
        return ETWATCH_ENOMEM;
    }
    *ret_tally = tally;
    return 0;
}

void ew_tally_free(struct ew_tally *tally)
{
    if (tally == NULL)
        return;
    for (uint32_t i = 0; i < tally->cpu_count; i++) {
        ew_free(tally->cpus[i].irqs);
        ew_free(tally->cpus[i].pmc);
    }
    ew_free(tally->cpus);
    ew_tids_done(&tally->tids);
    ew_tally_pool_done(&tally->threads);
    ew_tally_pool_done(&tally->cold);
    ew_tally_pool_done(&tally->processes);
    ew_tally_map_done(&tally->pids);
    ew_tally_map_done(&tally->children);
    ew_tally_map_done(&tally->learned);
    ew_tally_texts_done(&tally->texts);
    ew_memory_images_free(tally->images);
    ew_graphics_free(tally->graphics);
    ew_free(tally->irps);
    ew_free(tally->gone);
    ew_free(tally);
}

/* --------------------------------------------------------------------- learning */

static uint32_t class_of(uint8_t kind)
{
    static const uint16_t classes[] = {
        [EW_EVENT_SWITCH] = EW_TALLY_SWITCHES,  [EW_EVENT_READY] = EW_TALLY_READY,
        [EW_EVENT_SAMPLE] = EW_TALLY_SAMPLES,   [EW_EVENT_INTERRUPT] = EW_TALLY_INTERRUPTS,
        [EW_EVENT_FAULT] = EW_TALLY_FAULTS,     [EW_EVENT_HARD_FAULT] = EW_TALLY_HARD_FAULTS,
        [EW_EVENT_DISK_READ] = EW_TALLY_DISK,   [EW_EVENT_DISK_WRITE] = EW_TALLY_DISK,
        [EW_EVENT_FILE_READ] = EW_TALLY_FILES,  [EW_EVENT_FILE_WRITE] = EW_TALLY_FILES,
        [EW_EVENT_NET_SEND] = EW_TALLY_NET,     [EW_EVENT_NET_RECEIVE] = EW_TALLY_NET,
        [EW_EVENT_PRESENT] = EW_TALLY_PRESENTS,
    };
    return kind < sizeof classes / sizeof classes[0] ? classes[kind] : 0;
}

/* Events that both the kernel's own classes and the manifest providers of the same name report. */
static uint32_t family_of(uint8_t kind)
{
    if (kind >= EW_EVENT_PROCESS_START && kind <= EW_EVENT_PROCESS_DEFUNCT)
        return EW_FAMILY_PROCESS;
    if (kind >= EW_EVENT_THREAD_START && kind <= EW_EVENT_THREAD_STILL)
        return EW_FAMILY_THREAD;
    if (kind >= EW_EVENT_IMAGE_LOAD && kind <= EW_EVENT_IMAGE_STILL)
        return EW_FAMILY_IMAGE;
    if (kind >= EW_EVENT_DISK_READ && kind <= EW_EVENT_DISK_INIT)
        return EW_FAMILY_DISK;
    if (kind == EW_EVENT_FILE_READ || kind == EW_EVENT_FILE_WRITE)
        return EW_FAMILY_FILE;
    if (kind == EW_EVENT_NET_SEND || kind == EW_EVENT_NET_RECEIVE)
        return EW_FAMILY_NET;
    return kind == EW_EVENT_WORKING_SETS ? EW_FAMILY_MEMORY : 0;
}

/* A recording of both has each fact twice: from its first event on, only the kernel's class counts.
 */
static bool is_duplicate(struct ew_tally *tally, const struct ew_event *event)
{
    uint32_t family = family_of(event->kind);
    if (event->from_manifest)
        return (tally->kernel_families & family) != 0;
    tally->kernel_families |= family;
    return false;
}

/* Whether this is the first mention of the id, which is remembered. */
static bool first_mention(struct ew_tally *tally, uint32_t key)
{
    if (ew_tally_map_get(&tally->learned, key) != NULL ||
        tally->learned.used >= 4 * tally->config.max_threads)
        return false;
    if (ew_tally_map_put(&tally->learned, key, tally) < 0) {
        ew_tally_short_of_memory(tally);
        return false;
    }
    return true;
}

/* Ids are multiples of 4, so the low bits distinguish processes from threads. */
static uint32_t process_key(uint32_t pid)
{
    return pid | 1;
}

static void learn_thread(struct ew_tally *tally, const struct ew_event *event)
{
    if (!first_mention(tally, event->tid) || event->kind == EW_EVENT_THREAD_START)
        return;
    struct ew_tally_process *process = ew_processes_find(tally, event->pid);
    if (process == NULL && first_mention(tally, process_key(event->pid)))
        process = ew_processes_get(tally, event->pid, tally->config.first_ns);
    if (process != NULL)
        (void)ew_threads_add(tally, process, event->tid);
}

static void learn_pmc(struct ew_tally *tally, const struct ew_event *event)
{
    if (event->kind == EW_EVENT_PMC_NAMES)
        ew_tally_pmc_names(tally, &event->u.pmc_names);
    else if (event->kind == EW_EVENT_PMC_DISTURBED)
        ew_tally_pmc_disturbed(tally);
}

void ew_tally_learn(struct ew_tally *tally, const struct ew_event *event)
{
    tally->learning = true;
    ew_tally_saw(tally, class_of(event->kind));
    if (is_duplicate(tally, event))
        return;
    if (event->kind == EW_EVENT_SAMPLE_INTERVAL && tally->sample_ns == 0)
        ew_run_interval(tally, event);
    if (event->kind == EW_EVENT_SWITCH)
        ew_tally_pmc_saw(tally, event->u.cswitch.pmc_count);
    learn_pmc(tally, event);
    if (event->pid == 0 || event->pid == EW_NO_ID)
        return;
    switch (event->kind) {
    case EW_EVENT_PROCESS_START:
    case EW_EVENT_PROCESS_THERE:
    case EW_EVENT_PROCESS_STILL:
    case EW_EVENT_PROCESS_END:
        ew_processes_learn(tally, event, first_mention(tally, process_key(event->pid)));
        break;
    case EW_EVENT_THREAD_START:
    case EW_EVENT_THREAD_THERE:
    case EW_EVENT_THREAD_STILL:
    case EW_EVENT_THREAD_END:
        if (event->tid != 0 && event->tid != EW_NO_ID)
            learn_thread(tally, event);
        break;
    default:
        break;
    }
}

static void begin(struct ew_tally *tally, const struct ew_facts *facts)
{
    tally->facts = facts;
    if (!tally->learning)
        return;
    tally->learning = false;
    ew_tally_map_done(&tally->learned);
    ew_processes_learned(tally);
}

/* ----------------------------------------------------------------------- events */

static void take_rare(struct ew_tally *tally, const struct ew_record *record,
                      const struct ew_event *event)
{
    if (is_duplicate(tally, event))
        return;
    switch (event->kind) {
    case EW_EVENT_PROCESS_START:
    case EW_EVENT_PROCESS_END:
    case EW_EVENT_PROCESS_THERE:
    case EW_EVENT_PROCESS_STILL:
    case EW_EVENT_PROCESS_DEFUNCT:
        ew_processes_event(tally, event);
        break;
    case EW_EVENT_PROCESS_COUNTERS:
        ew_memory_counters(tally, event);
        break;
    case EW_EVENT_THREAD_START:
    case EW_EVENT_THREAD_END:
    case EW_EVENT_THREAD_THERE:
    case EW_EVENT_THREAD_STILL:
    case EW_EVENT_THREAD_NAME:
        ew_threads_event(tally, event);
        break;
    case EW_EVENT_SAMPLE_INTERVAL:
        ew_run_interval(tally, event);
        break;
    case EW_EVENT_WORKING_SETS:
        ew_memory_working_sets(tally, record, event);
        break;
    case EW_EVENT_IMAGE_LOAD:
    case EW_EVENT_IMAGE_UNLOAD:
    case EW_EVENT_IMAGE_THERE:
    case EW_EVENT_IMAGE_STILL:
        ew_memory_image(tally, event);
        break;
    case EW_EVENT_PMC_NAMES:
    case EW_EVENT_PMC_DISTURBED:
        learn_pmc(tally, event);
        break;
    case EW_EVENT_GPU_DEVICE:
    case EW_EVENT_GPU_CONTEXT:
    case EW_EVENT_GPU_CONTEXT_END:
    case EW_EVENT_GPU_QUEUE:
    case EW_EVENT_GPU_PACKET:
    case EW_EVENT_GPU_PACKET_END:
    case EW_EVENT_GPU_SUBMIT:
    case EW_EVENT_GPU_SUBMIT_END:
        if (!tally->config.ignore_gpu)
            ew_graphics_event(tally, event);
        break;
    case EW_EVENT_LOST:
        ew_run_lose(tally, UINT16_MAX, event->t_ns, 1,
                    event->u.lost.what == LOST_EVENT ? ETWATCH_LOSS_KERNEL_LOG
                                                     : ETWATCH_LOSS_BUFFERS);
        break;
    default:
        ew_work_event(tally, record, event);
        break;
    }
}

EW_NO_ARRAYS int ew_tally_event(struct ew_tally *tally, const struct ew_record *record,
                                const struct ew_event *event, const struct ew_facts *facts)
{
    begin(tally, facts);
    if (event->t_ns >= tally->end_ns)
        ew_facts_close(tally, event->t_ns, true);
    if (event->t_ns > tally->now_ns)
        tally->now_ns = event->t_ns;
    switch (event->kind) {
    case EW_EVENT_SWITCH:
        ew_run_switch(tally, event);
        break;
    case EW_EVENT_READY:
        ew_run_ready(tally, event);
        break;
    case EW_EVENT_SAMPLE:
        ew_run_sample(tally, event);
        break;
    case EW_EVENT_INTERRUPT:
        ew_run_interrupt(tally, record, event);
        break;
    default:
        take_rare(tally, record, event);
        break;
    }
    if (event->cpu < tally->cpu_count && event->t_ns > tally->cpus[event->cpu].last_ns)
        tally->cpus[event->cpu].last_ns = event->t_ns;
    int failure = tally->failure;
    tally->failure = 0;
    return failure;
}

void ew_tally_advance(struct ew_tally *tally, uint64_t t_ns, const struct ew_facts *facts)
{
    begin(tally, facts);
    ew_facts_close(tally, t_ns, false);
}

void ew_tally_loss(struct ew_tally *tally, uint16_t cpu, uint64_t t_ns, uint64_t count,
                   const struct ew_facts *facts)
{
    begin(tally, facts);
    ew_facts_close(tally, t_ns, true);
    ew_run_lose(tally, cpu, t_ns, count, ETWATCH_LOSS_KERNEL_LOG);
}

void ew_tally_lost_buffers(struct ew_tally *tally, uint16_t cpu, uint64_t t_ns, uint64_t count,
                           const struct ew_facts *facts)
{
    begin(tally, facts);
    ew_facts_close(tally, t_ns, true);
    ew_run_lose(tally, cpu, t_ns, count, ETWATCH_LOSS_BUFFERS);
}

void ew_tally_forget_counters(struct ew_tally *tally)
{
    ew_tally_pmc_disturbed(tally);
}

void ew_tally_set_classes(struct ew_tally *tally, uint32_t classes, uint64_t t_ns,
                          const struct ew_facts *facts)
{
    begin(tally, facts);
    ew_facts_close(tally, t_ns, true);
    /* Without further switches the running threads would be charged for ever. */
    if ((tally->classes & ~classes & EW_TALLY_SWITCHES) != 0)
        ew_run_lose(tally, UINT16_MAX, t_ns, 0, ETWATCH_LOSS_KERNEL_LOG);
    tally->seen &= tally->classes & classes;
    tally->classes = 0;
    set_known(tally, classes);
}

void ew_tally_select(struct ew_tally *tally, uint32_t pid, const struct ew_facts *facts)
{
    begin(tally, facts);
    ew_processes_select(tally, pid);
}

void ew_tally_deselect(struct ew_tally *tally, uint32_t pid)
{
    struct ew_tally_process *process = ew_processes_find(tally, pid);
    if (process != NULL)
        process->flags &= ~(uint32_t)(EW_TP_SELECTED | EW_TP_REPORTED);
}

uint32_t ew_tally_unproven(const struct ew_tally *tally)
{
    return counters_of(tally->classes) & ~counters_of(tally->seen);
}

uint32_t ew_tally_counters(const struct ew_tally *tally)
{
    return tally->counter_has;
}

bool ew_tally_is_selected(const struct ew_tally *tally, uint32_t pid)
{
    const struct ew_tally_process *process = ew_processes_find(tally, pid);
    return process != NULL && (process->flags & EW_TP_SELECTED) != 0;
}

void ew_tally_gauges(struct ew_tally *tally, uint32_t pid, uint32_t has,
                     const uint64_t gauge[EW_GAUGE_COUNT], const struct ew_facts *facts)
{
    struct ew_tally_process *process = ew_processes_find(tally, pid);
    begin(tally, facts);
    if (process != NULL && (process->flags & EW_TP_ENDED) == 0)
        ew_memory_gauges(tally, process, has, gauge);
}

void ew_tally_other_io(struct ew_tally *tally, uint32_t pid, uint64_t bytes, uint64_t ops,
                       const struct ew_facts *facts)
{
    struct ew_tally_process *process = ew_processes_find(tally, pid);
    begin(tally, facts);
    if (process == NULL || (process->flags & EW_TP_ENDED) != 0)
        return;
    process->other_bytes = bytes;
    process->other_ops = ops;
    process->other_new = true;
    ew_facts_list_process(tally, process);
}

void ew_tally_cycles(struct ew_tally *tally, uint32_t pid, uint64_t cycles,
                     const struct ew_facts *facts)
{
    struct ew_tally_process *process = ew_processes_find(tally, pid);
    begin(tally, facts);
    if (process == NULL || (process->flags & EW_TP_ENDED) != 0)
        return;
    process->cycles = cycles;
    process->cycles_new = true;
    ew_facts_list_process(tally, process);
}

void ew_tally_modes(struct ew_tally *tally, uint32_t pid, uint64_t user_ns, uint64_t kernel_ns,
                    const struct ew_facts *facts)
{
    struct ew_tally_process *process = ew_processes_find(tally, pid);
    begin(tally, facts);
    if (process == NULL || (process->flags & EW_TP_ENDED) != 0)
        return;
    process->user_ns = user_ns;
    process->kernel_ns = kernel_ns;
    process->modes_new = true;
    ew_facts_list_process(tally, process);
}

void ew_tally_faults(struct ew_tally *tally, uint32_t pid, uint64_t minor,
                     const struct ew_facts *facts)
{
    struct ew_tally_process *process = ew_processes_find(tally, pid);
    begin(tally, facts);
    if (process == NULL || (process->flags & EW_TP_ENDED) != 0)
        return;
    process->faults_minor = minor;
    process->faults_new = true;
    ew_facts_list_process(tally, process);
}

void ew_tally_name(struct ew_tally *tally, uint32_t pid, const struct ew_event_text *name,
                   const struct ew_facts *facts)
{
    struct ew_tally_process *process = ew_processes_find(tally, pid);
    begin(tally, facts);
    if (process != NULL && (process->flags & EW_TP_ENDED) == 0)
        ew_processes_rename(tally, process, name);
}

bool ew_tally_is_alive(const struct ew_tally *tally, uint32_t pid, uint64_t *ret_start_ns)
{
    const struct ew_tally_process *process = ew_processes_find(tally, pid);
    if (process == NULL || (process->flags & EW_TP_ENDED) != 0)
        return false;
    if (ret_start_ns != NULL)
        *ret_start_ns = process->start_ns;
    return true;
}

void ew_tally_end_absent(struct ew_tally *tally,
                         bool (*is_there)(void *ctx, uint32_t pid, uint64_t start_ns), void *ctx,
                         uint64_t since_ns, uint64_t t_ns, const struct ew_facts *facts)
{
    begin(tally, facts);
    ew_processes_end_absent(tally, is_there, ctx, since_ns, t_ns);
}

void ew_tally_set_interval(struct ew_tally *tally, uint64_t at_ns, uint64_t interval_ns)
{
    if (tally->interval_ns == 0 || interval_ns == 0)
        return;
    if (at_ns <= tally->begin_ns) {
        tally->interval_ns = interval_ns;
        tally->end_ns = tally->begin_ns + interval_ns;
        return;
    }
    while (tally->change_count > 0 && tally->change[tally->change_count - 1].at_ns >= at_ns)
        tally->change_count--;
    if (tally->change_count == EW_CHANGES)
        tally->change_count--;
    tally->change[tally->change_count++] =
        (struct ew_tally_change){.at_ns = at_ns, .interval_ns = interval_ns};
}

void ew_tally_charge_running(struct ew_tally *tally, uint64_t t_ns)
{
    ew_graphics_charge(tally, t_ns);
    for (uint32_t i = 0; i < tally->cpu_count; i++)
        ew_run_charge(tally, &tally->cpus[i], t_ns);
}

void ew_tally_finish(struct ew_tally *tally, uint64_t t_ns, const struct ew_facts *facts)
{
    if (tally->finished)
        return;
    begin(tally, facts);
    if (t_ns < tally->now_ns)
        t_ns = tally->now_ns;
    ew_facts_close(tally, t_ns, true);
    for (struct ew_tally_process *p = tally->first_process; p != NULL; p = p->newer)
        ew_threads_end_ending(tally, p, t_ns);
    ew_tally_pmc_finish(tally);
    ew_facts_finish(tally, t_ns);
    tally->finished = true;
}

const char *ew_tally_identify(const struct ew_tally *tally, uint16_t cpu, uint32_t *pid,
                              uint32_t *tid)
{
    const struct ew_tally_thread *thread = NULL;
    if (*tid != EW_NO_ID)
        thread = ew_threads_find(tally, *tid);
    else if (*pid == EW_NO_ID && cpu < tally->cpu_count)
        thread = tally->cpus[cpu].running;
    if (thread != NULL && *tid == EW_NO_ID)
        *tid = thread->cold->tid;
    if (thread != NULL && (thread->flags & EW_TT_IDLE) != 0 && (*pid == EW_NO_ID || *pid == 0)) {
        *pid = 0;
        return "Idle";
    }
    const struct ew_tally_process *process = NULL;
    if (*pid != EW_NO_ID)
        process = ew_processes_find(tally, *pid);
    else if (thread != NULL)
        process = thread->process;
    if (process == NULL)
        return NULL;
    *pid = process->pid;
    return process->name[0] != '\0' ? process->name : NULL;
}
