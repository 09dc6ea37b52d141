/* SPDX-License-Identifier: MIT */
/*
 * Owns the session, its pump and the rings, and accounts for losses.
 *
 * ETW reports a loss twice: in the stream, as an event that marks its position, and in totals that
 * a query returns. Each loss must be counted once. Marks in the stream are passed on as they are.
 * The excess of a total over the marks is emitted once everything up to the time of that query has
 * been taken; a mark that arrives after a total that already includes it is skipped. Events and
 * buffers are counted apart: how many events a lost buffer held is unknown.
 *
 * The horizon. A flush is only a request, so it counts as done when something with a later time has
 * arrived. If nothing does, or flushing fails, the timer of the session delivers every event within
 * a known time. Buffers of one CPU may come later than those of another: the horizon is held back
 * by as much as the latest event was late, for as long as events are.
 */
#include "source/etw/consumer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "os/os.h"
#include "source/etl/clock.h"
#include "source/etw/classes.h"
#include "source/etw/etw.h"
#include "source/etw/rings.h"

enum {
    BATCH = 1024,
    RESTARTS_MAX = 3,
    DEFAULT_FLUSH_MS = 100,
    FLUSH_MS_MAX = 60000,
    CLOCK_QPC = 1,
    CLOCK_SYSTEM = 2,
    CLOCK_CYCLES = 3,
    LOST_EVENTS = 2, /* the flags of buffers */
    LOST_BUFFERS = 4,
    RT_LOST_EVENT = 32, /* opcodes of the session's own marks; others: a buffer, a file */
};
static const uint64_t default_pool_bytes = 32u << 20;
static const uint64_t lag_slack_ns = 500000000;
static const uint64_t slack_halves_ns = 10000000000; /* without a late event */
#define NS_PER_S UINT64_C(1000000000)
#define UNIX_EPOCH_FILETIME UINT64_C(116444736000000000)

struct ew_etw_consumer {
    const struct ew_etw_api *api;
    char attach[EW_ETW_NAME_MAX]; /* "": the session is ours */
    struct ew_etw_session *session;
    struct ew_etw_pump *pump;
    struct ew_etw_rings *rings;
    uint32_t flush_ms, kernel, cpu_count;
    uint64_t lag_ns, started_ns;
    bool finished, no_buffers;
    bool stuck; /* Windows did not return from ProcessTrace: the rings stay in use */

    struct ew_etl_clock clock;
    uint32_t clock_kind;
    bool clock_set;
    uint64_t start_filetime;
    uint64_t anchor_unix_ns, anchor_raw_ns;

    struct ew_record batch[BATCH];
    uint64_t horizon_ns, last_ns;
    uint64_t slack_ns, slack_since_ns; /* by which the horizon is held back, since when */
    struct ew_etw_counts counts;
    struct ew_etw_lost lost_before; /* by sessions before a restart */
    struct lost_kind {
        uint64_t marked, totaled; /* losses emitted: for marks in the stream, for totals */
        uint64_t unmarked;        /* of totaled, those without a mark so far */
    } lost[2];                    /* events, buffers */
    uint64_t late;                /* late events emitted so far */

    uint8_t loss_count[8];
};

/* -------------------------------------------------------------------------- clock */

/*
 * QPC is the raw clock of facts itself. System time is related to it by the anchor taken at open;
 * cycles by the header event, which has both a cycle count and a wall clock time.
 */
static void init_clock(struct ew_etw_consumer *consumer, const struct ew_etw_logfile_header *header)
{
    uint64_t zero_raw = 0;
    consumer->clock_kind =
        header->clock == CLOCK_SYSTEM || header->clock == CLOCK_CYCLES ? header->clock : CLOCK_QPC;
    consumer->start_filetime = (uint64_t)header->start_filetime;
    if (consumer->clock_kind == CLOCK_SYSTEM)
        zero_raw = consumer->anchor_unix_ns / 100 + UNIX_EPOCH_FILETIME;
    ew_etl_clock_init(&consumer->clock, consumer->clock_kind, header->perf_frequency,
                      header->cpu_mhz, zero_raw);
    consumer->clock.zero_ns = zero_raw == 0 ? 0 : consumer->anchor_raw_ns;
    consumer->clock_set = consumer->clock_kind != CLOCK_CYCLES;
}

static void set_cycles(struct ew_etw_consumer *consumer, uint64_t raw)
{
    int64_t unix_minus_raw = (int64_t)(consumer->anchor_unix_ns - consumer->anchor_raw_ns);
    uint64_t unix_ns = (consumer->start_filetime - UNIX_EPOCH_FILETIME) * 100;
    bool known =
        consumer->start_filetime > UNIX_EPOCH_FILETIME && (int64_t)unix_ns > unix_minus_raw;
    consumer->clock.zero_raw = raw;
    consumer->clock.zero_ns =
        known ? (uint64_t)((int64_t)unix_ns - unix_minus_raw) : consumer->anchor_raw_ns;
    consumer->clock_set = true;
}

/* The inverse, rounded down. */
static uint64_t ns_to_raw(const struct ew_etw_consumer *consumer, uint64_t t_ns)
{
    const struct ew_etl_clock *clock = &consumer->clock;
    if (t_ns >= EW_ETL_NS_MAX)
        return UINT64_MAX;
    bool after = t_ns >= clock->zero_ns;
    uint64_t ns = after ? t_ns - clock->zero_ns : clock->zero_ns - t_ns;
    uint64_t ticks = ns / NS_PER_S * clock->hz + ns % NS_PER_S * clock->hz / NS_PER_S;
    if (after)
        return clock->zero_raw + ticks;
    return clock->zero_raw > ticks ? clock->zero_raw - ticks : 0;
}

uint64_t ew_etw_consumer_raw_to_ns(const struct ew_etw_consumer *consumer, uint64_t raw)
{
    return ew_etl_clock_ns(&consumer->clock, raw);
}

/* ------------------------------------------------------------------ open and close */

static int start_pump(struct ew_etw_consumer *consumer, struct ew_error *reterr)
{
    struct ew_etw_logfile_header header;
    struct ew_etw_pump_config config = {
        .api = consumer->api,
        .name =
            consumer->session != NULL ? ew_etw_session_name(consumer->session) : consumer->attach,
        .session = consumer->session,
        .rings = consumer->rings,
        .flush_ms = consumer->flush_ms,
        .lag_ns = consumer->lag_ns,
        .no_buffers = consumer->no_buffers,
    };
    memset(&header, 0, sizeof header);
    int error = ew_etw_pump_start(&config, &header, &consumer->pump, reterr);
    if (error == 0) {
        init_clock(consumer, &header);
        consumer->counts.buffers = ew_etw_pump_has_buffers(consumer->pump);
    }
    return error;
}

static int open_session(struct ew_etw_consumer *consumer, const struct ew_etw_config *config,
                        struct ew_error *reterr)
{
    struct ew_etw_session_info info;
    if (config->attach == NULL) {
        int error =
            ew_etw_session_start(consumer->api, &config->session, &consumer->session, reterr);
        if (error == 0)
            consumer->kernel = ew_etw_session_kernel(consumer->session);
        consumer->lag_ns = NS_PER_S + lag_slack_ns; /* its timer fires every second */
        return error;
    }
    size_t len = strlen(config->attach);
    if (len >= sizeof consumer->attach)
        return ew_etw_fail(reterr, EW_WIN_INSTANCE_NOT_FOUND, "cannot find the session",
                           config->attach);
    memcpy(consumer->attach, config->attach, len + 1);
    int error = ew_etw_session_query(consumer->api, config->attach, &info, reterr);
    if (error != 0)
        return error;
    if (!info.real_time) {
        ew_error_set(reterr, ETWATCH_EINVAL, 0, "the session '%.60s' only writes a file",
                     config->attach);
        ew_error_fix(reterr, "choose a real-time session: etwatch sessions");
        return ETWATCH_EINVAL;
    }
    consumer->kernel = ew_etw_kernel_from_flags(info.kernel_flags);
    consumer->lag_ns = (info.flush_s == 0 ? 1 : info.flush_s) * NS_PER_S + lag_slack_ns;
    return 0;
}

int ew_etw_consumer_open(const struct ew_etw_config *config, struct ew_etw_consumer **ret_consumer,
                         struct ew_error *reterr)
{
    const struct ew_etw_api *api = config->api == NULL ? ew_etw_real_api(reterr) : config->api;
    if (api == NULL)
        return ETWATCH_ENOTSUP;
    struct ew_etw_consumer *consumer = ew_calloc(1, sizeof *consumer);
    if (consumer == NULL)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    consumer->api = api;
    consumer->flush_ms = config->flush_ms == 0             ? DEFAULT_FLUSH_MS
                         : config->flush_ms > FLUSH_MS_MAX ? FLUSH_MS_MAX
                                                           : config->flush_ms;
    consumer->no_buffers = config->no_buffers;
    consumer->cpu_count = api->cpu_count(api->ctx);
    api->anchor(api->ctx, &consumer->anchor_unix_ns, &consumer->anchor_raw_ns);
    int error = ew_etw_rings_new(consumer->cpu_count,
                                 config->pool_bytes == 0 ? default_pool_bytes : config->pool_bytes,
                                 &consumer->rings);
    if (error != 0)
        ew_error_set(reterr, error, 0, "out of memory");
    if (error == 0)
        error = open_session(consumer, config, reterr);
    consumer->started_ns = api->now_ns(api->ctx);
    if (error == 0)
        error = start_pump(consumer, reterr);
    if (error != 0) {
        ew_etw_consumer_close(consumer);
        return error;
    }
    *ret_consumer = consumer;
    return 0;
}

static void stop_pump(struct ew_etw_consumer *consumer)
{
    ew_etw_pump_stop_flushing(consumer->pump);
    bool halted = consumer->session != NULL && ew_etw_session_halt(consumer->session);
    consumer->stuck |= !ew_etw_pump_stop(consumer->pump, halted);
    consumer->pump = NULL;
}

void ew_etw_consumer_close(struct ew_etw_consumer *consumer)
{
    if (consumer == NULL)
        return;
    stop_pump(consumer);
    ew_etw_session_stop(consumer->session);
    if (!consumer->stuck)
        ew_etw_rings_free(consumer->rings);
    ew_free(consumer);
}

void ew_etw_consumer_finish(struct ew_etw_consumer *consumer)
{
    if (consumer->finished)
        return;
    consumer->finished = true;
    stop_pump(consumer);
}

/* -------------------------------------------------------------------------- losses */

static int emit_loss(struct ew_etw_consumer *consumer, uint16_t what, uint64_t count, uint64_t t_ns)
{
    struct ew_record *record = &consumer->batch[0];
    memset(record, 0, sizeof *record);
    for (int i = 0; i < 8; i++)
        consumer->loss_count[i] = (uint8_t)(count >> 8 * i);
    if (t_ns > consumer->last_ns)
        consumer->last_ns = t_ns;
    record->kind = EW_RECORD_LOSS;
    record->t_ns = consumer->last_ns;
    record->cpu = UINT16_MAX;
    record->id = what;
    record->pid = record->tid = EW_NO_ID;
    record->payload = consumer->loss_count;
    record->payload_size = 8;
    return 1;
}

static void count_lost(struct ew_etw_consumer *consumer)
{
    uint64_t sum = 0;
    for (int i = 0; i < 2; i++)
        sum += consumer->lost[i].marked + consumer->lost[i].totaled;
    if (sum > consumer->counts.lost_session)
        consumer->counts.lost_session = sum;
}

/* Emits the part of a total of the session that no mark accounted for; 0: none. */
static int emit_excess(struct ew_etw_consumer *consumer, struct lost_kind *kind, uint64_t total,
                       uint16_t what)
{
    if (total <= kind->marked + kind->totaled)
        return 0;
    uint64_t excess = total - kind->marked - kind->totaled;
    kind->totaled += excess;
    kind->unmarked += excess;
    count_lost(consumer);
    return emit_loss(consumer, what, excess, 0);
}

static int emit_total_loss(struct ew_etw_consumer *consumer, const struct ew_etw_lost *lost)
{
    int emitted = emit_excess(consumer, &consumer->lost[0],
                              consumer->lost_before.events + lost->events, LOST_EVENTS);
    if (emitted != 0)
        return emitted;
    return emit_excess(consumer, &consumer->lost[1], consumer->lost_before.buffers + lost->buffers,
                       LOST_BUFFERS);
}

/* A mark of lost events may stand for a lost buffer and the other way round. False: a total has
 * already accounted for this mark. */
static bool keep_mark(struct ew_etw_consumer *consumer, bool buffer)
{
    struct lost_kind *kind = &consumer->lost[buffer];
    if (kind->unmarked == 0 && consumer->lost[!buffer].unmarked > 0)
        kind = &consumer->lost[!buffer];
    if (kind->unmarked > 0) {
        kind->unmarked--;
        return false;
    }
    kind->marked++;
    count_lost(consumer);
    return true;
}

static bool is_lost_event(const struct ew_record *record)
{
    return record->kind == EW_RECORD_CLASSIC && memcmp(record->provider, ew_etw_lost_guid, 16) == 0;
}

static bool is_mark(const struct ew_record *record)
{
    if (record->kind == EW_RECORD_LOSS)
        return record->opcode == 1; /* a buffer with the loss flag */
    return is_lost_event(record);
}

static bool is_buffer_mark(const struct ew_record *record)
{
    return record->kind == EW_RECORD_LOSS ? record->id == LOST_BUFFERS
                                          : record->opcode != RT_LOST_EVENT;
}

/* ------------------------------------------------------------------------- records */

static int finish_batch(struct ew_etw_consumer *consumer, size_t count)
{
    struct ew_record *batch = consumer->batch;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (!consumer->clock_set && batch[i].kind != EW_RECORD_LOSS)
            set_cycles(consumer, batch[i].t_raw);
        if (is_mark(&batch[i]) && !keep_mark(consumer, is_buffer_mark(&batch[i])))
            continue;
        uint64_t t_ns = ew_etl_clock_ns(&consumer->clock, batch[i].t_raw);
        if (t_ns > consumer->last_ns)
            consumer->last_ns = t_ns;
        if (kept != i)
            batch[kept] = batch[i];
        batch[kept].t_ns = consumer->last_ns;
        consumer->counts.records += batch[kept++].kind != EW_RECORD_LOSS;
    }
    return (int)kept;
}

/* The session has ended for good. result: of ProcessTrace. */
static int fail_ended(const struct ew_etw_consumer *consumer, uint32_t result,
                      struct ew_error *reterr)
{
    const char *name =
        consumer->session != NULL ? ew_etw_session_name(consumer->session) : consumer->attach;
    if (consumer->stuck) {
        ew_error_set(reterr, ETWATCH_ESTATE, 0, "Windows does not end reading the session '%.60s'",
                     name);
        ew_error_fix(reterr, "start etwatch again");
    } else if (result == 0 || result == EW_WIN_CANCELLED || result == EW_WIN_INSTANCE_NOT_FOUND) {
        ew_error_set(reterr, ETWATCH_ESTATE, result,
                     "the session '%.60s' was stopped by another program", name);
        ew_error_fix(reterr, "find the program that stops ETW sessions on this machine");
    } else {
        (void)ew_etw_fail(reterr, result, "cannot read the session", name);
        if (reterr != NULL)
            reterr->code = ETWATCH_ESTATE;
    }
    return ETWATCH_ESTATE;
}

/* Whole buffers do not come: reads the same session event by event. False: that failed too. */
static bool reopen(struct ew_etw_consumer *consumer)
{
    bool stopped = ew_etw_pump_stop(consumer->pump, false);
    consumer->pump = NULL;
    consumer->stuck |= !stopped;
    consumer->no_buffers = true;
    return stopped && start_pump(consumer, NULL) == 0;
}

static int restart(struct ew_etw_consumer *consumer, uint32_t result, struct ew_error *reterr)
{
    if (consumer->pump != NULL)
        stop_pump(consumer);
    if (consumer->session == NULL || consumer->counts.restarts == RESTARTS_MAX || consumer->stuck)
        return fail_ended(consumer, result, reterr);
    struct ew_etw_lost lost = ew_etw_session_lost(consumer->session);
    consumer->lost_before.events += lost.events;
    consumer->lost_before.buffers += lost.buffers;
    consumer->counts.restarts++;
    int error = ew_etw_session_restart(consumer->session, reterr);
    if (error == 0)
        error = start_pump(consumer, reterr);
    /* Whatever the cause, there is no session any more. */
    if (error != 0)
        return reterr == NULL ? ETWATCH_ESTATE : (reterr->code = ETWATCH_ESTATE);
    return emit_loss(consumer, LOST_BUFFERS, 1, consumer->api->now_ns(consumer->api->ctx));
}

/* Every record up to the horizon has been taken: emits losses, or restarts the session. */
static int emit_rest(struct ew_etw_consumer *consumer, bool ended,
                     const struct ew_etw_pump_status *status, struct ew_error *reterr)
{
    struct ew_etw_lost lost = status->lost;
    if (consumer->finished) {
        if (consumer->session != NULL)
            lost = ew_etw_session_lost(consumer->session);
        return emit_total_loss(consumer, &lost);
    }
    if (ended)
        return restart(consumer, ew_etw_pump_result(consumer->pump), reterr);
    return status->lost_ns <= consumer->horizon_ns ? emit_total_loss(consumer, &lost) : 0;
}

/* Late events show how much later than others the buffers of a CPU come. */
static void adapt_slack(struct ew_etw_consumer *consumer, uint64_t now_ns)
{
    if (!consumer->clock_set || consumer->clock.hz == 0)
        return;
    uint64_t late_raw = ew_etw_rings_lateness(consumer->rings);
    uint64_t late_ns = late_raw / consumer->clock.hz * NS_PER_S +
                       late_raw % consumer->clock.hz * NS_PER_S / consumer->clock.hz;
    if (late_raw == 0 && now_ns - consumer->slack_since_ns < slack_halves_ns)
        return;
    if (late_raw == 0)
        consumer->slack_ns /= 2;
    else if (late_ns > consumer->slack_ns)
        consumer->slack_ns = late_ns < consumer->lag_ns ? late_ns : consumer->lag_ns;
    consumer->slack_since_ns = now_ns;
}

static void advance_horizon(struct ew_etw_consumer *consumer,
                            const struct ew_etw_pump_status *status)
{
    uint64_t horizon_ns = status->flushed_ns;
    uint64_t arrived_ns = consumer->clock_set && status->arrived_raw != 0
                              ? ew_etl_clock_ns(&consumer->clock, status->arrived_raw)
                              : 0;
    if (arrived_ns < horizon_ns)
        horizon_ns = arrived_ns;
    horizon_ns = horizon_ns > consumer->slack_ns ? horizon_ns - consumer->slack_ns : 0;
    if (horizon_ns < status->lagging_ns)
        horizon_ns = status->lagging_ns;
    if (horizon_ns > consumer->horizon_ns)
        consumer->horizon_ns = horizon_ns;
}

int ew_etw_consumer_next(struct ew_etw_consumer *consumer, const struct ew_record **ret_records,
                         struct ew_error *reterr)
{
    struct ew_etw_pump_status status = {0};
    bool ended = consumer->pump == NULL;
    *ret_records = consumer->batch;
    if (!ended && ew_etw_pump_is_mute(consumer->pump) && !reopen(consumer))
        ended = true;
    if (ended && !consumer->finished)
        return restart(consumer, EW_WIN_INSTANCE_NOT_FOUND, reterr);
    if (!ended) {
        ew_etw_pump_status(consumer->pump, &status);
        ended = ew_etw_pump_ended(consumer->pump);
        adapt_slack(consumer, consumer->api->now_ns(consumer->api->ctx));
        advance_horizon(consumer, &status);
    }
    if (ew_etw_rings_late(consumer->rings) > consumer->late) {
        consumer->late = ew_etw_rings_late(consumer->rings);
        return emit_loss(consumer, LOST_EVENTS, 0, 0);
    }
    for (;;) {
        uint64_t until =
            ended || !consumer->clock_set ? UINT64_MAX : ns_to_raw(consumer, consumer->horizon_ns);
        size_t room = consumer->clock_set ? BATCH : 1;
        size_t count = ew_etw_rings_take(consumer->rings, until, consumer->batch, room);
        if (count == 0)
            return emit_rest(consumer, ended, &status, reterr);
        int kept = finish_batch(consumer, count);
        if (kept > 0)
            return kept;
    }
}

uint64_t ew_etw_consumer_horizon_ns(const struct ew_etw_consumer *consumer)
{
    return consumer->horizon_ns > consumer->last_ns ? consumer->horizon_ns : consumer->last_ns;
}

void ew_etw_consumer_counts(const struct ew_etw_consumer *consumer,
                            struct ew_etw_counts *ret_counts)
{
    struct ew_etw_rings_counts rings;
    ew_etw_rings_counts(consumer->rings, &rings);
    *ret_counts = consumer->counts;
    ret_counts->lost_here = rings.dropped;
    ret_counts->late = rings.late;
}

uint64_t ew_etw_consumer_started_ns(const struct ew_etw_consumer *consumer)
{
    return consumer->started_ns;
}

uint32_t ew_etw_consumer_kernel(const struct ew_etw_consumer *consumer)
{
    return consumer->kernel;
}

int ew_etw_consumer_set_kernel(struct ew_etw_consumer *consumer, uint32_t kernel,
                               const uint32_t *stacks, struct ew_error *reterr)
{
    if (consumer->session == NULL || consumer->pump == NULL)
        return ew_error_set(reterr, ETWATCH_ESTATE, 0,
                            "only a running session that etwatch started can be changed");
    int error = stacks == NULL ? 0 : ew_etw_session_set_stacks(consumer->session, *stacks, reterr);
    if (error == 0)
        error = ew_etw_session_set_kernel(consumer->session, kernel, reterr);
    consumer->kernel = ew_etw_session_kernel(consumer->session);
    return error;
}

const struct ew_etw_pmc *ew_etw_consumer_pmc(const struct ew_etw_consumer *consumer)
{
    static const struct ew_etw_pmc none;
    return consumer->session == NULL ? &none : ew_etw_session_pmc(consumer->session);
}

const struct ew_error *ew_etw_consumer_refused(const struct ew_etw_consumer *consumer)
{
    return consumer->session == NULL ? NULL : ew_etw_session_refused(consumer->session);
}

bool ew_etw_consumer_has_provider(const struct ew_etw_consumer *consumer, const uint8_t guid[16])
{
    return consumer->session != NULL && ew_etw_session_has_provider(consumer->session, guid);
}

uint32_t ew_etw_consumer_cpu_count(const struct ew_etw_consumer *consumer)
{
    return consumer->cpu_count;
}

int ew_etw_consumer_processes(const struct ew_etw_consumer *consumer,
                              struct ew_winpoll_system *ret_system)
{
    return consumer->api->processes(consumer->api->ctx, ret_system);
}
