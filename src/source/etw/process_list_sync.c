/* SPDX-License-Identifier: MIT */
/*
 * Owns the system interface, the pending list, and the CPU times of the previous list.
 *
 * At the start: the processes and threads of the first list are learned together with the rundown
 * of the session, which may be late, partial or missing.
 *
 * Repair after a loss: a process that the tally considers alive and that is not in the list has
 * ended; one that is in the list and unknown to the tally has started; the events of both were
 * lost. A list is used for this only some time after the loss, and processes that started or ended
 * shortly before the list are skipped, because their events may still arrive.
 */
#include "source/etw/etw.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static const uint64_t list_every_ns = 1000000000;
static const uint64_t repair_delay_ns = 100000000;
static const uint64_t young_ns = 50000000; /* its start event may still arrive */
static const uint64_t same_ns =
    1000000000; /* maximum difference of two start times of the same process */
enum { NS_PER_UNIT = 100 };

/* CPU time of a process, in list order. */
struct ran {
    uint32_t pid;
    uint64_t created, units, cycles;
};

struct ew_etw_list_sync {
    struct ew_winpoll_system system;
    struct ew_listing listing;
    uint64_t begun_ns;
    bool pending; /* the listing has not been emitted yet */
    uint64_t listed_ns;
    uint64_t lost_ns; /* events were lost up to here; 0: repaired */
    bool has_states, counts_io, has_cycles, emits_cycles, has_modes, counts_faults;
    bool seedable; /* the listing is still the first one */
    struct ran *ran;
    uint32_t ran_count, ran_room;
    struct etwatch_metric_set available;
};

/* -------------------------------------------------------------------- new and free */

static void describe(struct ew_etw_list_sync *list_sync)
{
    struct ew_listing listing = list_sync->listing;
    struct ew_listed_process listed;
    uint64_t gauge[EW_GAUGE_COUNT];
    uint32_t has = 0;
    while (ew_listing_next(&listing, &listed) > 0) {
        list_sync->has_states |= ew_listed_runs(&listed);
        list_sync->counts_io |= listed.other_ops != 0;
        list_sync->has_cycles |= listed.pid != 0 && listed.cycles != 0;
        list_sync->has_modes |= listed.pid != 0 && listed.user != 0;
        list_sync->counts_faults |= listed.faults != 0;
        has |= ew_listed_gauges(&listed, list_sync->has_states, gauge);
    }
    struct etwatch_metric_set *available = &list_sync->available;
    if (list_sync->system.slow != NULL)
        *available = list_sync->system.slow_has;
    if (list_sync->counts_io)
        etwatch_metric_set_union(available,
                                 &EW_METRICS(ETWATCH_M_io_other_bytes, ETWATCH_M_io_other_ops));
    if (list_sync->has_modes)
        etwatch_metric_set_union(available,
                                 &EW_METRICS(ETWATCH_M_cpu_user_ns, ETWATCH_M_cpu_kernel_ns));
    if (list_sync->counts_faults)
        etwatch_metric_set_add(available, ETWATCH_M_faults_minor);
#define EW_X(name)                   \
    if ((has & EW_HAS_G(name)) != 0) \
        etwatch_metric_set_add(available, ETWATCH_M_##name);
    EW_GAUGES(EW_X)
#undef EW_X
}

int ew_etw_list_sync_new(const struct ew_winpoll_system *system, uint64_t begun_ns,
                         struct ew_etw_list_sync **ret_list_sync)
{
    struct ew_etw_list_sync *list_sync = ew_calloc(1, sizeof *list_sync);
    if (list_sync == NULL) {
        system->close(system->ctx);
        return ETWATCH_ENOMEM;
    }
    list_sync->system = *system;
    list_sync->begun_ns = begun_ns;
    list_sync->lost_ns = begun_ns; /* the second list repairs what the first one and events lack */
    list_sync->seedable =
        list_sync->system.list(list_sync->system.ctx, &list_sync->listing, NULL) == 0;
    if (list_sync->seedable)
        describe(list_sync);
    *ret_list_sync = list_sync;
    return 0;
}

void ew_etw_list_sync_free(struct ew_etw_list_sync *list_sync)
{
    if (list_sync == NULL)
        return;
    list_sync->system.close(list_sync->system.ctx);
    ew_free(list_sync->ran);
    ew_free(list_sync);
}

bool ew_etw_list_sync_count_cycles(struct ew_etw_list_sync *list_sync)
{
    return list_sync->emits_cycles = list_sync->has_cycles;
}

const struct etwatch_metric_set *
ew_etw_list_sync_available(const struct ew_etw_list_sync *list_sync)
{
    return &list_sync->available;
}

/* ------------------------------------------------------------------------ listing */

uint64_t ew_etw_list_sync_read(struct ew_etw_list_sync *list_sync, uint64_t now_ns)
{
    bool time = list_sync->listed_ns == 0 || now_ns >= list_sync->listed_ns + list_every_ns;
    if (!list_sync->pending && time && now_ns > list_sync->listed_ns) {
        list_sync->seedable = false;
        if (list_sync->system.zero != NULL)
            list_sync->system.raw_zero = list_sync->system.zero(list_sync->system.ctx);
        list_sync->pending =
            list_sync->system.list(list_sync->system.ctx, &list_sync->listing, NULL) == 0;
        list_sync->listed_ns = now_ns;
    }
    return list_sync->pending ? list_sync->listed_ns : UINT64_MAX;
}

void ew_etw_list_sync_note_loss(struct ew_etw_list_sync *list_sync, uint64_t t_ns)
{
    if (t_ns > list_sync->lost_ns)
        list_sync->lost_ns = t_ns;
}

/* ------------------------------------------------------------------------- gauges */

/* The entry of the previous list for this process, or NULL. Both lists have the same order. */
static const struct ran *find_ran(const struct ew_etw_list_sync *list_sync,
                                  const struct ew_listed_process *listed, uint32_t *at)
{
    for (uint32_t i = 0; i < list_sync->ran_count; i++) {
        uint32_t place = *at + i < list_sync->ran_count ? *at + i : *at + i - list_sync->ran_count;
        const struct ran *ran = &list_sync->ran[place];
        if (ran->pid == listed->pid && ran->created == listed->created) {
            *at = place + 1 < list_sync->ran_count ? place + 1 : 0;
            return ran;
        }
    }
    return NULL;
}

static void emit_gauges(struct ew_etw_list_sync *list_sync, const struct ew_listed_process *listed,
                        struct ew_tally *tally, const struct ew_facts *facts)
{
    const struct ew_winpoll_system *system = &list_sync->system;
    uint64_t gauge[EW_GAUGE_COUNT];
    if (!ew_tally_is_alive(tally, listed->pid, NULL))
        return;
    uint32_t has = ew_listed_gauges(listed, list_sync->has_states, gauge);
    void *held = system->slow != NULL ? system->hold(system->ctx, listed->pid) : NULL;
    if (held != NULL) {
        has |= system->slow(system->ctx, held, gauge);
        system->release(system->ctx, held);
    }
    /* The priority comes from events, whenever it changes. */
    ew_tally_gauges(tally, listed->pid, has & ~EW_HAS_G(priority), gauge, facts);
    if (list_sync->counts_io)
        ew_tally_other_io(tally, listed->pid, listed->other_bytes, listed->other_ops, facts);
    if (list_sync->has_modes)
        ew_tally_modes(tally, listed->pid, listed->user * NS_PER_UNIT, listed->kernel * NS_PER_UNIT,
                       facts);
    if (list_sync->counts_faults)
        ew_tally_faults(
            tally, listed->pid,
            listed->faults > listed->faults_hard ? listed->faults - listed->faults_hard : 0, facts);
    ew_tally_name(
        tally, listed->pid,
        &(struct ew_event_text){.bytes = listed->name, .len = listed->name_len, .wide = true},
        facts);
    if (list_sync->emits_cycles)
        ew_tally_cycles(tally, listed->pid, listed->cycles, facts);
}

/* Emits gauges, and the I/O that no event reports, of the processes that ran since the previous
 * list; then this list becomes the previous one. */
static void emit_all_gauges(struct ew_etw_list_sync *list_sync, struct ew_tally *tally,
                            const struct ew_facts *facts)
{
    struct ew_listing listing = list_sync->listing;
    struct ew_listed_process listed;
    uint32_t at = 0, count = 0;
    while (ew_listing_next(&listing, &listed) > 0) {
        const struct ran *ran = find_ran(list_sync, &listed, &at);
        if (ran == NULL || ran->units != listed.user + listed.kernel ||
            ran->cycles != listed.cycles)
            emit_gauges(list_sync, &listed, tally, facts);
        count++;
    }
    if (count > list_sync->ran_room) {
        uint32_t room = count + count / 4;
        struct ran *grown = ew_realloc_array(list_sync->ran, room, sizeof *grown);
        if (grown == NULL) {
            list_sync->ran_count = 0; /* every process is emitted next time */
            return;
        }
        list_sync->ran = grown;
        list_sync->ran_room = room;
    }
    listing = list_sync->listing;
    for (list_sync->ran_count = 0; ew_listing_next(&listing, &listed) > 0; list_sync->ran_count++)
        list_sync->ran[list_sync->ran_count] = (struct ran){.pid = listed.pid,
                                                            .created = listed.created,
                                                            .units = listed.user + listed.kernel,
                                                            .cycles = listed.cycles};
}

/* ------------------------------------------------------------------------- repair */

static uint64_t raw_ns(const struct ew_etw_list_sync *list_sync, uint64_t time)
{
    uint64_t zero = list_sync->system.raw_zero;
    return time > zero ? (time - zero) * NS_PER_UNIT : 0;
}

/* Whether the listed process is the one that started at start_ns (0: before the session). */
static bool is_same(const struct ew_etw_list_sync *list_sync, uint64_t created, uint64_t start_ns)
{
    uint64_t created_ns = raw_ns(list_sync, created);
    if (start_ns == 0)
        return created_ns <= list_sync->begun_ns + same_ns;
    return created_ns + same_ns >= start_ns && created_ns <= start_ns + same_ns;
}

/* A listed process, for lookup by pid. */
struct listed_id {
    uint32_t pid;
    uint64_t created;
};

struct pid_index {
    const struct ew_etw_list_sync *list_sync;
    struct listed_id *ids;
    size_t count;
};

static int by_pid(const void *a, const void *b)
{
    uint32_t x = ((const struct listed_id *)a)->pid, y = ((const struct listed_id *)b)->pid;
    return x < y ? -1 : x > y;
}

static bool is_listed(void *ctx, uint32_t pid, uint64_t start_ns)
{
    const struct pid_index *index = ctx;
    struct listed_id key = {.pid = pid};
    const struct listed_id *found =
        bsearch(&key, index->ids, index->count, sizeof *index->ids, by_pid);
    return found != NULL && is_same(index->list_sync, found->created, start_ns);
}

/* Ends the processes that are not in the list. */
static void end_absent(struct ew_etw_list_sync *list_sync, uint64_t old_ns, struct ew_tally *tally,
                       const struct ew_facts *facts)
{
    struct ew_listing listing = list_sync->listing;
    struct ew_listed_process listed;
    struct pid_index index = {.list_sync = list_sync};
    size_t count = 0;
    while (ew_listing_next(&listing, &listed) > 0)
        count++;
    index.ids = ew_calloc(count + 1, sizeof *index.ids);
    if (index.ids == NULL)
        return; /* the next loss gives another chance */
    listing = list_sync->listing;
    while (ew_listing_next(&listing, &listed) > 0)
        index.ids[index.count++] = (struct listed_id){listed.pid, listed.created};
    qsort(index.ids, index.count, sizeof *index.ids, by_pid);
    ew_tally_end_absent(tally, is_listed, &index, old_ns, list_sync->listed_ns, facts);
    ew_free(index.ids);
}

/* As the rundown of a session would report it. */
static void describe_process(const struct ew_listed_process *listed, uint64_t t_ns,
                             struct ew_event *event)
{
    *event = (struct ew_event){.t_ns = t_ns,
                               .kind = EW_EVENT_PROCESS_THERE,
                               .cpu = UINT16_MAX,
                               .pid = listed->pid,
                               .tid = EW_NO_ID};
    event->u.process.parent_pid = listed->ppid;
    event->u.process.session_id = listed->session_id;
    event->u.process.image =
        (struct ew_event_text){.bytes = listed->name, .len = listed->name_len, .wide = true};
}

static void describe_thread(const struct ew_listed_process *listed, uint32_t i,
                            struct ew_event *event)
{
    struct ew_listed_thread thread;
    ew_listed_thread(listed, i, &thread);
    memset(&event->u, 0, sizeof event->u);
    event->kind = EW_EVENT_THREAD_THERE;
    event->tid = thread.tid;
}

static void emit_present(const struct ew_listed_process *listed, uint64_t t_ns,
                         struct ew_tally *tally, const struct ew_facts *facts)
{
    struct ew_record record = {.t_ns = t_ns, .cpu = UINT16_MAX};
    struct ew_event event;
    describe_process(listed, t_ns, &event);
    if (!ew_tally_is_alive(tally, listed->pid, NULL))
        (void)ew_tally_event(tally, &record, &event, facts);
    for (uint32_t i = 0; i < listed->thread_count; i++) {
        describe_thread(listed, i, &event);
        (void)ew_tally_event(tally, &record, &event, facts);
    }
}

void ew_etw_list_sync_seed(const struct ew_etw_list_sync *list_sync, struct ew_tally *tally)
{
    struct ew_listing listing = list_sync->listing;
    struct ew_listed_process listed;
    struct ew_event event;
    while (list_sync->seedable && ew_listing_next(&listing, &listed) > 0) {
        /* The start of a younger one is logged. */
        if (listed.pid == 0 || raw_ns(list_sync, listed.created) + young_ns > list_sync->begun_ns)
            continue;
        describe_process(&listed, list_sync->begun_ns, &event);
        ew_tally_learn(tally, &event);
        for (uint32_t i = 0; i < listed.thread_count; i++) {
            describe_thread(&listed, i, &event);
            ew_tally_learn(tally, &event);
        }
    }
}

static void repair(struct ew_etw_list_sync *list_sync, struct ew_tally *tally,
                   const struct ew_facts *facts)
{
    uint64_t t_ns = list_sync->listed_ns, old_ns = t_ns > young_ns ? t_ns - young_ns : 0;
    struct ew_listing listing = list_sync->listing;
    struct ew_listed_process listed;
    end_absent(list_sync, old_ns, tally, facts);
    while (ew_listing_next(&listing, &listed) > 0)
        if (listed.pid != 0 && raw_ns(list_sync, listed.created) < old_ns)
            emit_present(&listed, t_ns, tally, facts);
}

void ew_etw_list_sync_emit(struct ew_etw_list_sync *list_sync, struct ew_tally *tally,
                           const struct ew_facts *facts)
{
    if (!list_sync->pending)
        return;
    list_sync->pending = false;
    if (list_sync->lost_ns != 0 && list_sync->listed_ns >= list_sync->lost_ns + repair_delay_ns) {
        repair(list_sync, tally, facts);
        list_sync->lost_ns = 0;
    }
    emit_all_gauges(list_sync, tally, facts);
}
