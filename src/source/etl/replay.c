/* SPDX-License-Identifier: MIT */
/*
 * A recording as a source: the facts that a live session would have delivered, in trace time.
 *
 * It is read twice. The first pass learns which kinds of events exist and which processes existed
 * before their first event, which a live session knows when it starts; the second pass emits facts.
 * Intervals end in the tally, so they end at the same times however the file is read, and only the
 * facts of one interval are pending, however long the recording is.
 */
#include "base/alloc.h"
#include "decode/decode.h"
#include "source/etl/reader.h"
#include "source/record_accounting.h"
#include "tally/tally.h"

enum { RECORDS_PER_DRAIN = 1 << 18 };

struct replay {
    struct ew_source base;
    struct ew_source_ops ops; /* available and estimated reflect this recording */
    struct ew_etl_reader *reader;
    struct ew_accounting accounting;
    const struct ew_record *batch;
    uint32_t batch_count, batch_at;
    uint64_t header_lost;  /* lost events according to the headers ... */
    uint64_t located_lost; /* ... and according to buffers and events in the stream, one each */
    bool flagged;          /* a buffer has the loss flag */
    bool ended, loss_emitted;
    uint32_t cpu_count;
};

static uint64_t raw_to_ns(void *ctx, const struct ew_record *record, uint64_t raw)
{
    return ew_etl_raw_to_ns(ctx, record, raw);
}

/* --------------------------------------------------------------------- open */

static void learn_machine(struct replay *replay)
{
    for (size_t i = 0; i < ew_etl_file_count(replay->reader); i++) {
        const struct ew_etl_file_info *info = ew_etl_file_info(replay->reader, i);
        if (info->cpu_count > replay->cpu_count)
            replay->cpu_count = info->cpu_count;
        replay->header_lost += info->events_lost;
    }
}

/* The first pass. */
static int learn(struct replay *replay)
{
    const struct ew_record *records;
    struct ew_event event;
    uint64_t kinds = 0;
    int count;
    while ((count = ew_etl_next(replay->reader, &records)) > 0) {
        for (int i = 0; i < count; i++) {
            replay->accounting.last_ns = records[i].t_ns;
            if (records[i].kind == EW_RECORD_LOSS) {
                replay->flagged = true;
                replay->located_lost++;
            }
            if (records[i].kind != EW_RECORD_LOSS && ew_decode_event(&records[i], &event) &&
                event.kind != EW_EVENT_OTHER) {
                kinds |= UINT64_C(1) << event.kind;
                replay->located_lost += event.kind == EW_EVENT_LOST;
                ew_tally_learn(replay->accounting.tally, &event);
            }
        }
    }
    if (count < 0)
        return count;
    struct etwatch_metric_set counted = ew_pmc_metrics(ew_tally_counters(replay->accounting.tally));
    replay->ops.available = ew_accounting_available(kinds);
    etwatch_metric_set_union(&replay->ops.available, &counted);
    replay->ops.estimated = ew_accounting_estimated(kinds);
    return ew_etl_rewind(replay->reader);
}

static int open_accounting(struct replay *replay, const struct ew_source_config *config)
{
    struct ew_tally_config own = {
        .cpu_count = replay->cpu_count,
        .clock_ctx = replay->reader,
        .raw_to_ns = raw_to_ns,
    };
    return ew_accounting_init(&replay->accounting, config, &own);
}

static void close_replay(struct ew_source *source)
{
    struct replay *replay = (struct replay *)source;
    ew_accounting_done(&replay->accounting);
    if (replay->reader != NULL)
        ew_etl_close(replay->reader);
    ew_free(replay);
}

static int open_replay(const struct ew_source_config *config, struct ew_source **ret_source,
                       struct ew_error *reterr)
{
    struct replay *replay = ew_calloc(1, sizeof *replay);
    if (replay == NULL)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    replay->ops = ew_source_etl;
    replay->base.ops = &replay->ops;
    int rc = ew_etl_open(config->traces, config->trace_count, NULL, &replay->reader, reterr);
    if (rc == 0) {
        learn_machine(replay);
        rc = open_accounting(replay, config);
        if (rc == 0)
            rc = learn(replay);
        if (rc < 0)
            ew_error_set(reterr, rc, 0, "%s", etwatch_strerror(rc));
    }
    if (rc < 0) {
        close_replay(&replay->base);
        return rc;
    }
    *ret_source = &replay->base;
    return 0;
}

/* -------------------------------------------------------------------- drain */

/* The headers give the number of lost events, buffer flags and events in the stream the
 * position. Without these the loss may have been anywhere. */
static void emit_header_loss(struct replay *replay, const struct ew_facts *facts)
{
    replay->loss_emitted = true;
    if (replay->header_lost <= replay->located_lost || replay->flagged)
        return;
    struct etwatch_loss loss = {
        .size = sizeof loss,
        .stage = ETWATCH_LOSS_KERNEL_LOG,
        .count = replay->header_lost - replay->located_lost,
        .to_ns = replay->accounting.last_ns,
    };
    facts->loss(facts->ctx, &loss);
}

static void take_loss(struct replay *replay, const struct ew_record *record,
                      const struct ew_facts *facts)
{
    /* The first flag accounts for all losses that have no position. */
    uint64_t excess =
        replay->header_lost > replay->located_lost ? replay->header_lost - replay->located_lost : 0;
    replay->header_lost = 0;
    replay->accounting.last_ns = record->t_ns;
    ew_tally_loss(replay->accounting.tally, record->cpu, record->t_ns, 1 + excess, facts);
}

static void take(struct replay *replay, const struct ew_record *record,
                 const struct ew_facts *facts)
{
    if (record->kind == EW_RECORD_LOSS)
        take_loss(replay, record, facts);
    else
        ew_accounting_take(&replay->accounting, record, facts);
}

static int fetch(struct replay *replay)
{
    int count = ew_etl_next(replay->reader, &replay->batch);
    replay->batch_at = 0;
    replay->batch_count = count > 0 ? (uint32_t)count : 0;
    return count;
}

static int drain(struct ew_source *source, uint64_t now_ns, const struct ew_facts *facts,
                 uint64_t *ret_horizon_ns, struct ew_error *reterr)
{
    struct replay *replay = (struct replay *)source;
    (void)now_ns;
    replay->accounting.facts = facts;
    replay->accounting.cut = false;
    if (!replay->loss_emitted)
        emit_header_loss(replay, facts);
    for (uint32_t left = RECORDS_PER_DRAIN; left > 0 && !replay->ended; left--) {
        if (replay->batch_at == replay->batch_count) {
            int count = fetch(replay);
            if (count < 0)
                return ew_error_set(reterr, count, 0, "%s", etwatch_strerror(count));
            if (count == 0) {
                ew_tally_finish(replay->accounting.tally, replay->accounting.last_ns, facts);
                replay->accounting.horizon_ns = replay->accounting.last_ns;
                replay->ended = true;
                break;
            }
        }
        take(replay, &replay->batch[replay->batch_at++], facts);
        if (replay->accounting.cut)
            break;
    }
    *ret_horizon_ns = replay->accounting.horizon_ns;
    return 0;
}

/* --------------------------------------------------------- other operations */

static int set_interval(struct ew_source *source, uint64_t at_ns, uint64_t interval_ns)
{
    (void)source;
    (void)at_ns;
    (void)interval_ns;
    return ETWATCH_ENOTSUP;
}

static int change_filter(struct ew_source *source, uint32_t pid)
{
    (void)source;
    (void)pid;
    return ETWATCH_ENOTSUP;
}

static const char *cmdline(struct ew_source *source, uint32_t pid)
{
    return ew_accounting_cmdline(&((const struct replay *)source)->accounting, pid);
}

static void stats(struct ew_source *source, struct ew_source_stats *ret_stats)
{
    const struct replay *replay = (const struct replay *)source;
    *ret_stats = replay->accounting.stats;
    ret_stats->kernel_ns_known = true; /* no program of ours runs in a kernel */
}

static int wake_fd(struct ew_source *source)
{
    (void)source;
    return -1;
}

static void own_time(const struct ew_source *source, struct ew_source_time *ret_time)
{
    const struct replay *replay = (const struct replay *)source;
    *ret_time = (struct ew_source_time){
        .unix_ns = (uint64_t)ew_etl_unix_minus_raw_ns(replay->reader),
        .raw_ns = 0,
        .cpu_count = replay->cpu_count,
    };
}

static bool ended(const struct ew_source *source)
{
    return ((const struct replay *)source)->ended;
}

const struct ew_source_ops ew_source_etl = {
    .id = ETWATCH_SOURCE_ETL,
    .backend = ETWATCH_BACKEND_ETL,
    .open = open_replay,
    .close = close_replay,
    .drain = drain,
    .set_interval = set_interval,
    .add = change_filter,
    .remove = change_filter,
    .stats = stats,
    .wake_fd = wake_fd,
    .own_time = own_time,
    .ended = ended,
    .cmdline = cmdline,
};
