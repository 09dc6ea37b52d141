/* SPDX-License-Identifier: MIT */
/*
 * A live ETW session as a source: records from the consumer, accounted for like those of a
 * recording.
 *
 * Differences: nothing can be read twice, so the logged events are known from the session's
 * configuration, and the preexisting processes from the rundown at its start. The raw clock is the
 * machine's, and time passes without events: intervals up to the horizon are closed whether or not
 * something happened.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "decode/decode.h"
#include "source/etw/consumer.h"
#include "source/etw/etw.h"
#include "source/record_accounting.h"

/* The rundown is logged while the session starts; its events may be this much later than the
 * start. */
static const uint64_t rundown_ns = 50000000;
enum { LOST_BUFFERS = 4 }; /* id of a LOSS record */

struct live {
    struct ew_source base;
    struct ew_source_ops ops; /* available and estimated reflect this session */
    struct ew_etw_consumer *consumer;
    struct ew_accounting accounting;
    struct ew_etw_config config;
    struct ew_startup_buffer startup;
    struct ew_etw_list_sync *list_sync; /* NULL: the system cannot list processes */
    uint64_t list_due_ns;               /* time of the pending list */
    uint64_t lost_before;               /* losses already noted */
    bool rundown_done;                  /* the rundown has been processed */
    uint64_t started_ns;                /* when the session was started */
    uint64_t classes_ns;                /* when other classes were enabled; 0: no pending change */
    uint32_t classes;
    struct etwatch_metric_set metrics; /* requested */
    struct ew_pmc_map pmc;             /* hardware counters that switches carry */
    bool lists_cycles;                 /* switches carry no cycles, but the process list has them */
    struct ew_etw_provider *providers; /* those requested, and those of graphics; may be NULL */
    bool selection_changed;            /* a pid was added: it is emitted if it is already running */
};

/* ---------------------------------------------------------------------------- open */

static const struct {
    uint32_t kernel;  /* enum ew_etw_kernel: any of these ... */
    uint64_t kinds;   /* ... gives these events */
    uint32_t classes; /* enum ew_tally_class */
} gives[] = {
    {EW_ETW_PROCESS, EW_KIND(PROCESS_START) | EW_KIND(PROCESS_END), EW_TALLY_PROCESSES},
    {EW_ETW_THREAD, EW_KIND(THREAD_START) | EW_KIND(THREAD_END), EW_TALLY_THREADS},
    {EW_ETW_COUNTERS, EW_KIND(PROCESS_COUNTERS), 0},
    {EW_ETW_CSWITCH, EW_KIND(SWITCH), EW_TALLY_SWITCHES},
    {EW_ETW_DISPATCHER, EW_KIND(READY), EW_TALLY_READY},
    {EW_ETW_PROFILE, EW_KIND(SAMPLE), EW_TALLY_SAMPLES},
    {EW_ETW_DPC | EW_ETW_INTERRUPT, EW_KIND(INTERRUPT), EW_TALLY_INTERRUPTS},
    {EW_ETW_PAGE_FAULTS, EW_KIND(FAULT), EW_TALLY_FAULTS},
    {EW_ETW_HARD_FAULTS, EW_KIND(HARD_FAULT), EW_TALLY_HARD_FAULTS},
    {EW_ETW_DISK, EW_KIND(DISK_READ) | EW_KIND(DISK_WRITE), EW_TALLY_DISK},
    {EW_ETW_FILE_IO_INIT, EW_KIND(FILE_READ) | EW_KIND(FILE_WRITE), EW_TALLY_FILES},
    {EW_ETW_NETWORK, EW_KIND(NET_SEND) | EW_KIND(NET_RECEIVE), EW_TALLY_NET},
};

/* Providers of graphics, and what they give. Presents are few; packets of the GPU are many, and
 * counters have the same time (sensor/wddm.c), so they are counted only if they are enabled
 * anyway. */
enum { DXGKRNL, DXGI, D3D9, GRAPHICS_COUNT };
static const struct {
    uint8_t guid[16];
    uint64_t kinds;
    uint16_t present_ids[2]; /* the events that are needed */
    uint32_t present_id_count;
} graphics[GRAPHICS_COUNT] = {
    [DXGKRNL] = {.guid = {0x5a, 0xc4, 0x2e, 0x80, 0x99, 0x1e, 0x83, 0x4b, 0x99, 0x20, 0x87, 0xc9,
                          0x82, 0x77, 0xba, 0x9d},
                 .kinds = EW_KIND(GPU_PACKET) | EW_KIND(GPU_SUBMIT) | EW_KIND(GPU_QUEUE)},
    [DXGI] = {.guid = {0x36, 0xc0, 0x11, 0xca, 0x02, 0x01, 0x2d, 0x4a, 0xa6, 0xad, 0xf0, 0x3c, 0xfe,
                       0xd5, 0xd3, 0xc9},
              .kinds = EW_KIND(PRESENT),
              .present_ids = {42, 55},
              .present_id_count = 2},
    [D3D9] = {.guid = {0x0a, 0xca, 0x3a, 0x78, 0x0e, 0x79, 0x7f, 0x4d, 0x84, 0x51, 0xaa, 0x85, 0x05,
                       0x11, 0xc6, 0xb9},
              .kinds = EW_KIND(PRESENT),
              .present_ids = {1},
              .present_id_count = 1},
};

/*
 * The kernel events of a session without explicit configuration: those of the default set that the
 * requested metrics need. Processes, threads and switches are always included: an interval in which
 * a process did nothing gives no sample.
 */
static uint32_t needed_kernel_events(const struct ew_source_config *config)
{
    uint32_t kernel = EW_ETW_PROCESS | EW_ETW_THREAD | EW_ETW_COUNTERS | EW_ETW_CSWITCH;
    if (etwatch_metric_set_is_empty(&config->metrics) || config->events)
        return EW_ETW_KERNEL_WATCH;
    for (size_t i = 0; i < sizeof gives / sizeof gives[0]; i++) {
        struct etwatch_metric_set metrics = ew_accounting_available(gives[i].kinds);
        if (ew_metric_set_intersects(&metrics, &config->metrics))
            kernel |= gives[i].kernel;
    }
    if ((kernel & EW_ETW_DISK) != 0)
        kernel |= EW_ETW_DISK_INIT; /* maps a disk request to its process */
    return kernel & EW_ETW_KERNEL_WATCH;
}

/* An explicit configuration of the session must not suppress requested scheduler events. */
static void select_kernel_events(uint32_t *kernel, const struct ew_source_config *config)
{
    if (*kernel == 0)
        *kernel = needed_kernel_events(config);
    if (config->events)
        *kernel |= EW_ETW_THREAD | EW_ETW_CSWITCH | EW_ETW_DISPATCHER;
}

/* One line for doctor, for metrics that need hardware counters. */
static const char *unavailable_reason(const struct ew_source *source, uint32_t metric)
{
    const struct live *live = (const struct live *)source;
    bool is_counter = etwatch_metric_set_has(&live->metrics, metric) && ew_pmc_is_metric(metric);
    if (live->config.attach != NULL && is_counter)
        return "a session of another program: it carries hardware counters only if that program "
               "enabled them";
    bool switches = (ew_etw_consumer_kernel(live->consumer) & EW_ETW_CSWITCH) != 0;
    if (!switches && is_counter)
        return "hardware counters come with context switches, which this session does not log";
    return ew_etw_pmc_unavailable_reason(ew_etw_consumer_pmc(live->consumer), metric);
}

static void update_counters(struct live *live)
{
    uint32_t has = ew_pmc_has(&live->pmc);
    struct etwatch_metric_set counted = ew_pmc_metrics(has);
    etwatch_metric_set_union(&live->ops.available, &counted);
    bool missing =
        etwatch_metric_set_has(&live->metrics, ETWATCH_M_cycles) && (has & EW_HAS_C(cycles)) == 0;
    live->lists_cycles =
        missing && live->list_sync != NULL && ew_etw_list_sync_count_cycles(live->list_sync);
    if (!live->lists_cycles)
        return;
    etwatch_metric_set_add(&live->ops.available, ETWATCH_M_cycles);
    etwatch_metric_set_add(&live->ops.estimated, ETWATCH_M_cycles);
}

static bool has_provider(const struct ew_etw_session_config *session, const uint8_t guid[16])
{
    for (uint32_t i = 0; i < session->provider_count; i++)
        if (memcmp(session->providers[i].guid, guid, 16) == 0)
            return true;
    return false;
}

static uint32_t update_available(struct live *live)
{
    uint32_t kernel = ew_etw_consumer_kernel(live->consumer);
    uint64_t kinds = 0;
    uint32_t classes = 0;
    for (size_t i = 0; i < sizeof gives / sizeof gives[0]; i++)
        if ((kernel & gives[i].kernel) != 0) {
            kinds |= gives[i].kinds;
            classes |= gives[i].classes;
        }
    for (uint32_t i = 0; i < GRAPHICS_COUNT; i++)
        if (ew_etw_consumer_has_provider(live->consumer, graphics[i].guid))
            kinds |= graphics[i].kinds;
    live->ops.available = ew_accounting_available(kinds);
    live->ops.estimated = ew_accounting_estimated(kinds);
    if (live->list_sync != NULL)
        etwatch_metric_set_union(&live->ops.available, ew_etw_list_sync_available(live->list_sync));
    /* From clock ticks or CPU samples. */
    struct etwatch_metric_set modes = EW_METRICS(ETWATCH_M_cpu_user_ns, ETWATCH_M_cpu_kernel_ns);
    etwatch_metric_set_intersect(&modes, &live->ops.available);
    etwatch_metric_set_union(&live->ops.estimated, &modes);
    update_counters(live);
    return classes;
}

static uint64_t raw_to_ns(void *ctx, const struct ew_record *record, uint64_t raw)
{
    (void)record;
    return ew_etw_consumer_raw_to_ns(ctx, raw);
}

static void close_live(struct ew_source *source)
{
    struct live *live = (struct live *)source;
    ew_etw_consumer_close(live->consumer);
    ew_etw_list_sync_free(live->list_sync);
    ew_accounting_done(&live->accounting);
    ew_startup_buffer_done(&live->startup);
    ew_free(live->providers);
    ew_free(live);
}

static int refuse_filter(const struct ew_filter *filter, struct ew_error *reterr)
{
    if (filter->cgroup_count > 0)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "Windows has no cgroups");
    if (filter->uid_count > 0)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0,
                            "users of Windows have no numeric ids: filter by pid or name");
    return 0;
}

/* Optional: without a process list the session still delivers events. */
static void open_list_sync(struct live *live, const struct etwatch_metric_set *metrics)
{
    struct ew_winpoll_system system;
    live->started_ns = ew_etw_consumer_started_ns(live->consumer);
    live->list_due_ns = UINT64_MAX;
    if (ew_etw_consumer_processes(live->consumer, &system) != 0)
        return;
    if (!etwatch_metric_set_is_empty(metrics) &&
        !ew_metric_set_intersects(metrics, &system.slow_has))
        system.slow = NULL; /* no process needs to be opened then */
    (void)ew_etw_list_sync_new(&system, live->started_ns, &live->list_sync);
}

/* Presents are logged by providers of their own. */
static int add_present_providers(struct live *live, struct ew_error *reterr)
{
    struct ew_etw_session_config *session = &live->config.session;
    live->providers = ew_calloc(session->provider_count + GRAPHICS_COUNT, sizeof *live->providers);
    if (live->providers == NULL)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    if (session->provider_count > 0)
        memcpy(live->providers, session->providers,
               session->provider_count * sizeof *live->providers);
    uint32_t count = session->provider_count;
    for (uint32_t i = DXGI; i < GRAPHICS_COUNT; i++) {
        if (has_provider(session, graphics[i].guid))
            continue;
        struct ew_etw_provider *provider = &live->providers[count++];
        memcpy(provider->guid, graphics[i].guid, sizeof provider->guid);
        provider->event_ids = graphics[i].present_ids;
        provider->event_id_count = graphics[i].present_id_count;
    }
    session->providers = live->providers;
    session->provider_count = count;
    return 0;
}

/* A Windows that refuses the providers of presents still has everything else. */
static int open_consumer(struct live *live, struct ew_error *reterr)
{
    const struct ew_etw_session_config requested = live->config.session;
    bool presents =
        live->config.attach == NULL && etwatch_metric_set_has(&live->metrics, ETWATCH_M_presents);
    int rc = presents ? add_present_providers(live, reterr) : 0;
    if (rc == 0)
        rc = ew_etw_consumer_open(&live->config, &live->consumer, reterr);
    if (rc != ETWATCH_EOS && rc != ETWATCH_EINVAL && rc != ETWATCH_EPERM)
        return rc;
    if (!presents || live->config.session.provider_count == requested.provider_count)
        return rc;
    live->config.session = requested;
    struct ew_error again = {0};
    return ew_etw_consumer_open(&live->config, &live->consumer, &again) == 0 ? 0 : rc;
}

static int open_live(const struct ew_source_config *config, struct ew_source **ret_source,
                     struct ew_error *reterr)
{
    int rc = refuse_filter(&config->filter, reterr);
    if (rc != 0)
        return rc;
    struct live *live = ew_calloc(1, sizeof *live);
    if (live == NULL)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    live->ops = ew_source_etw;
    live->base.ops = &live->ops;
    if (config->etw != NULL)
        live->config = *config->etw;
    if (live->config.attach == NULL)
        select_kernel_events(&live->config.session.kernel, config);
    live->metrics = config->metrics;
    /* Only if requested: counters make every switch event longer. */
    live->config.session.counters |= ew_pmc_counters_of(&config->metrics);
    rc = open_consumer(live, reterr);
    if (rc == 0) {
        struct ew_tally_config own = {
            .cpu_count = ew_etw_consumer_cpu_count(live->consumer),
            .first_ns = config->epoch_ns,
            .epoch_ns = config->epoch_ns,
            .clock_ctx = live->consumer,
            .raw_to_ns = raw_to_ns,
            .ignore_gpu = !ew_etw_consumer_has_provider(live->consumer, graphics[DXGKRNL].guid),
        };
        open_list_sync(live, &config->metrics);
        live->pmc = own.pmc = ew_etw_consumer_pmc(live->consumer)->map;
        own.classes_known = update_available(live);
        rc = ew_accounting_init(&live->accounting, config, &own);
        if (rc < 0)
            ew_error_set(reterr, rc, 0, "%s", etwatch_strerror(rc));
        live->accounting.horizon_ns = live->accounting.last_ns = config->epoch_ns;
    }
    if (rc < 0) {
        close_live(&live->base);
        return rc;
    }
    *ret_source = &live->base;
    return 0;
}

/* --------------------------------------------------------------------------- drain */

/* Every event up to the list's time has been processed. */
static void emit_list(struct live *live, const struct ew_facts *facts)
{
    ew_tally_advance(live->accounting.tally, live->list_due_ns, facts);
    ew_etw_list_sync_emit(live->list_sync, live->accounting.tally, facts);
    live->list_due_ns = UINT64_MAX;
}

static void take(struct live *live, const struct ew_record *record, const struct ew_facts *facts)
{
    if (record->t_ns >= live->list_due_ns)
        emit_list(live, facts);
    if (record->kind != EW_RECORD_LOSS) {
        ew_accounting_take(&live->accounting, record, facts);
        return;
    }
    uint64_t count = record->payload_size >= 8 ? ew_load_u64(record->payload) : 1;
    live->accounting.last_ns = record->t_ns;
    live->accounting.stats.lost += count;
    if (record->id == LOST_BUFFERS)
        ew_tally_lost_buffers(live->accounting.tally, record->cpu, record->t_ns, count, facts);
    else
        ew_tally_loss(live->accounting.tally, record->cpu, record->t_ns, count, facts);
}

/* The preexisting processes are known: the tally learns them first, then processes the buffered
 * records. */
static void end_startup(struct live *live, const struct ew_facts *facts)
{
    const struct ew_startup_buffer *startup = &live->startup;
    struct ew_event event;
    live->rundown_done = true;
    ew_startup_buffer_end(&live->startup);
    for (uint32_t i = 0; i < startup->count; i++)
        if (startup->records[i].kind != EW_RECORD_LOSS &&
            ew_decode_event(&startup->records[i], &event) && event.kind != EW_EVENT_OTHER)
            ew_tally_learn(live->accounting.tally, &event);
    if (live->list_sync != NULL)
        ew_etw_list_sync_seed(live->list_sync, live->accounting.tally);
    for (uint32_t i = 0; i < startup->count; i++)
        take(live, &startup->records[i], facts);
    ew_startup_buffer_done(&live->startup);
}

static void buffer_or_take(struct live *live, const struct ew_record *record,
                           const struct ew_facts *facts)
{
    if (!live->rundown_done && ew_startup_buffer_add(&live->startup, record)) {
        if (live->startup.count == 1 && record->t_ns > live->started_ns)
            live->started_ns = record->t_ns;
        return;
    }
    if (!live->rundown_done)
        end_startup(live, facts);
    take(live, record, facts);
}

/* Processes that start later are matched when they start; those already running are matched
 * here. */
static void emit_added(struct live *live, const struct ew_facts *facts)
{
    const struct ew_selection *selection = &live->accounting.selection;
    for (uint32_t i = 0; i < selection->pid_count; i++)
        ew_tally_select(live->accounting.tally, selection->pids[i], facts);
    live->selection_changed = false;
}

static int take_all(struct live *live, const struct ew_facts *facts, struct ew_error *reterr)
{
    const struct ew_record *records;
    int count;
    live->accounting.facts = facts;
    if (live->selection_changed && live->rundown_done)
        emit_added(live, facts);
    while ((count = ew_etw_consumer_next(live->consumer, &records, reterr)) > 0)
        for (int i = 0; i < count; i++)
            buffer_or_take(live, &records[i], facts);
    return count;
}

/* Applied once all events logged before the change have been taken. */
static void change_classes(struct live *live, uint64_t horizon_ns, const struct ew_facts *facts)
{
    if (live->classes_ns == 0 || horizon_ns < live->classes_ns)
        return;
    ew_tally_set_classes(live->accounting.tally, live->classes, live->classes_ns, facts);
    live->classes_ns = 0;
}

/* A session that was restarted may have got fewer counters. */
static void note_counters(struct live *live)
{
    if (!ew_pmc_same(&live->pmc, &ew_etw_consumer_pmc(live->consumer)->map))
        ew_tally_forget_counters(live->accounting.tally);
}

/* Losses arrive in several ways; the tally sees them all. */
static void note_losses(struct live *live)
{
    struct ew_tally_system system;
    ew_tally_system(live->accounting.tally, &system);
    if (live->list_sync != NULL && system.lost > live->lost_before)
        ew_etw_list_sync_note_loss(live->list_sync, live->accounting.last_ns);
    live->lost_before = system.lost;
}

static int drain(struct ew_source *source, uint64_t now_ns, const struct ew_facts *facts,
                 uint64_t *ret_horizon_ns, struct ew_error *reterr)
{
    struct live *live = (struct live *)source;
    if (live->list_sync != NULL && live->rundown_done)
        live->list_due_ns = ew_etw_list_sync_read(live->list_sync, now_ns);
    int rc = take_all(live, facts, reterr);
    if (rc < 0 && !live->rundown_done)
        end_startup(live, facts);
    if (rc < 0)
        return rc;
    uint64_t horizon_ns = ew_etw_consumer_horizon_ns(live->consumer);
    if (!live->rundown_done && horizon_ns >= live->started_ns + rundown_ns)
        end_startup(live, facts);
    if (horizon_ns > now_ns)
        horizon_ns = now_ns;
    *ret_horizon_ns = live->accounting.horizon_ns;
    if (!live->rundown_done)
        return 0;
    change_classes(live, horizon_ns, facts);
    if (horizon_ns >= live->list_due_ns)
        emit_list(live, facts);
    ew_tally_advance(live->accounting.tally, horizon_ns, facts);
    note_losses(live);
    note_counters(live);
    if (horizon_ns > live->accounting.horizon_ns)
        live->accounting.horizon_ns = horizon_ns;
    *ret_horizon_ns = live->accounting.horizon_ns;
    return 0;
}

/* The session is stopped first, so that everything it logged has arrived. */
static int finish(struct ew_source *source, uint64_t now_ns, const struct ew_facts *facts,
                  struct ew_error *reterr)
{
    struct live *live = (struct live *)source;
    ew_etw_consumer_finish(live->consumer);
    int rc = take_all(live, facts, reterr);
    if (!live->rundown_done)
        end_startup(live, facts);
    uint64_t end_ns = now_ns > live->accounting.last_ns ? now_ns : live->accounting.last_ns;
    ew_tally_finish(live->accounting.tally, end_ns, facts);
    return rc < 0 ? rc : 0;
}

/* ---------------------------------------------------------------- other operations */

static int set_interval(struct ew_source *source, uint64_t at_ns, uint64_t interval_ns)
{
    ew_tally_set_interval(((struct live *)source)->accounting.tally, at_ns, interval_ns);
    return 0;
}

static int add(struct ew_source *source, uint32_t pid)
{
    struct live *live = (struct live *)source;
    live->selection_changed = true;
    return ew_selection_add(&live->accounting.selection, pid);
}

static int remove_pid(struct ew_source *source, uint32_t pid)
{
    struct live *live = (struct live *)source;
    ew_tally_deselect(live->accounting.tally, pid);
    return ew_selection_remove(&live->accounting.selection, pid);
}

/* Process and thread events are always logged: without them, other events cannot be attributed. */
static int set_kernel(struct ew_source *source, uint64_t now_ns, uint32_t kernel,
                      const uint32_t *stacks, struct ew_error *reterr)
{
    struct live *live = (struct live *)source;
    int rc = ew_etw_consumer_set_kernel(live->consumer, kernel | EW_ETW_PROCESS | EW_ETW_THREAD,
                                        stacks, reterr);
    if (rc < 0)
        return rc;
    live->classes = update_available(live);
    live->classes_ns = now_ns;
    return 0;
}

static void stats(struct ew_source *source, struct ew_source_stats *ret_stats)
{
    const struct live *live = (const struct live *)source;
    struct ew_etw_counts counts;
    ew_etw_consumer_counts(live->consumer, &counts);
    *ret_stats = live->accounting.stats;
    ret_stats->late = counts.late;
    ret_stats->kernel_ns_known = false; /* ETW does not report its cost */
}

/* Enabling a class is no proof that this Windows logs it. */
static uint32_t unproven(const struct ew_source *source)
{
    return ew_tally_unproven(((const struct live *)source)->accounting.tally);
}

static const struct ew_error *refused(const struct ew_source *source)
{
    return ew_etw_consumer_refused(((const struct live *)source)->consumer);
}

static int wake_fd(struct ew_source *source)
{
    (void)source;
    return -1;
}

const struct ew_source_ops ew_source_etw = {
    .id = ETWATCH_SOURCE_ETW,
    .backend = ETWATCH_BACKEND_ETW,
    .open = open_live,
    .close = close_live,
    .drain = drain,
    .set_interval = set_interval,
    .add = add,
    .remove = remove_pid,
    .stats = stats,
    .wake_fd = wake_fd,
    .finish = finish,
    .set_kernel = set_kernel,
    .unavailable_reason = unavailable_reason,
    .unproven = unproven,
    .refused = refused,
};
