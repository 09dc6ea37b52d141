/* SPDX-License-Identifier: MIT */
/*
 * A recording as a source: the facts a live session would have told, by the recording's own time.
 *
 * It is read twice. The first reading learns which kinds of events there are and who was there
 * before he is told of, which a live session knows when it begins; the second tells. Cuts are made
 * where an interval ends, so they fall on the same times however the file is read, and what waits
 * for a cut is what happened in one interval, however long the recording.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/utf16.h"
#include "decode/decode.h"
#include "monitor/chosen.h"
#include "monitor/cmdline.h"
#include "monitor/monitor.h"
#include "source/etl/reader.h"
#include "tally/tally.h"

enum { RECORDS_PER_DRAIN = 1 << 18, LINES_MAX = 65536, LINE_BUCKETS = 4096 };

/* The command line of a process. */
struct line {
    struct line *next;
    uint32_t pid;
    char text[];
};

struct replay {
    struct ew_source base;
    struct ew_source_ops ops; /* with what this recording has */
    struct ew_etl_reader *reader;
    struct ew_tally *tally;
    struct ew_chosen chosen;
    const struct ew_record *batch;
    uint32_t batch_count, batch_at;
    const struct ew_facts *facts; /* of the drain at hand */
    uint64_t horizon_ns, last_ns;
    bool cut;             /* an interval ended in this drain */
    uint64_t header_lost; /* events that the headers say were lost ... */
    uint64_t placed_lost; /* ... and what buffers and events in the stream say, one each */
    bool flagged;         /* a buffer says so */
    bool ended, loss_told;
    struct ew_source_stats stats;
    uint32_t cpu_count;
    struct line **lines; /* NULL: nobody wants them */
    uint32_t line_count;
};

static uint64_t raw_to_ns(void *ctx, const struct ew_record *record, uint64_t raw)
{
    return ew_etl_raw_to_ns(ctx, record, raw);
}

static bool wanted(void *ctx, uint32_t pid, const char *name)
{
    const struct replay *replay = ctx;
    return ew_chosen_has(&replay->chosen, pid, name);
}

static void interval_over(void *ctx, uint64_t end_ns)
{
    struct replay *replay = ctx;
    replay->horizon_ns = end_ns;
    replay->cut = true;
    if (replay->facts->over != NULL)
        replay->facts->over(replay->facts->ctx, end_ns);
}

/* ------------------------------------------------------------ command lines */

static struct line **find_line(const struct replay *replay, uint32_t pid)
{
    struct line **at = &replay->lines[pid / 4 % LINE_BUCKETS];
    while (*at != NULL && (*at)->pid != pid)
        at = &(*at)->next;
    return at;
}

static void drop_line(struct replay *replay, struct line **at)
{
    struct line *line = *at;
    *at = line->next;
    ew_free(line);
    replay->line_count--;
}

static void keep_line(struct replay *replay, const struct ew_event *event)
{
    char text[EW_CMDLINE_BYTES], masked[EW_CMDLINE_BYTES];
    const struct ew_event_text *given = &event->u.process.command_line;
    struct line **at = find_line(replay, event->pid);
    if (*at != NULL && event->kind == EW_EVENT_PROCESS_START)
        drop_line(replay, at);
    if (*at != NULL || given->len == 0 || !given->wide || replay->line_count == LINES_MAX)
        return;
    (void)ew_utf16_to_utf8(given->bytes, ew_utf16_len(given->bytes, given->len), text, sizeof text);
    ew_cmdline_mask(text, masked);
    size_t len = strlen(masked);
    struct line *line = len == 0 ? NULL : ew_calloc(1, sizeof *line + len + 1);
    if (line == NULL)
        return;
    line->pid = event->pid;
    memcpy(line->text, masked, len + 1);
    line->next = *at;
    *at = line;
    replay->line_count++;
}

static const char *cmdline(struct ew_source *source, uint32_t pid)
{
    const struct replay *replay = (const struct replay *)source;
    const struct line *line = replay->lines == NULL ? NULL : *find_line(replay, pid);
    return line == NULL ? NULL : line->text;
}

/* ------------------------------------------------------------------ opening */

#define KIND(name) (UINT64_C(1) << EW_EVENT_##name)

/* What the kinds of events in a recording let be known. */
static uint64_t available_from(uint64_t kinds)
{
    static const struct {
        uint64_t kinds; /* any of them */
        uint64_t metrics;
    } known[] = {
        {KIND(SWITCH) | KIND(SAMPLE), ETWATCH_HAS(cpu_percent) | ETWATCH_HAS(cpu_ns)},
        {KIND(SWITCH), ETWATCH_HAS(switches_voluntary) | ETWATCH_HAS(switches_involuntary) |
                           ETWATCH_HAS(priority)},
        {KIND(READY), ETWATCH_HAS(runq_wait_ns)},
        {KIND(FAULT), ETWATCH_HAS(faults_minor)},
        {KIND(HARD_FAULT), ETWATCH_HAS(faults_major)},
        {KIND(DISK_READ) | KIND(DISK_WRITE),
         ETWATCH_HAS(disk_read_bytes) | ETWATCH_HAS(disk_write_bytes)},
        {KIND(FILE_READ) | KIND(FILE_WRITE),
         ETWATCH_HAS(io_read_bytes) | ETWATCH_HAS(io_write_bytes) | ETWATCH_HAS(io_read_ops) |
             ETWATCH_HAS(io_write_ops)},
        {KIND(NET_SEND) | KIND(NET_RECEIVE),
         ETWATCH_HAS(net_received_bytes) | ETWATCH_HAS(net_sent_bytes)},
        {KIND(THREAD_START) | KIND(THREAD_THERE), ETWATCH_HAS(threads)},
        {KIND(PROCESS_COUNTERS) | KIND(WORKING_SETS),
         ETWATCH_HAS(rss_bytes) | ETWATCH_HAS(private_bytes) | ETWATCH_HAS(virtual_bytes)},
        {KIND(PROCESS_COUNTERS), ETWATCH_HAS(rss_peak_bytes) | ETWATCH_HAS(handles)},
        {KIND(PROCESS_END), ETWATCH_HAS(exit_ns) | ETWATCH_HAS(exit_code)},
    };
    uint64_t available = 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if ((kinds & known[i].kinds) != 0)
            available |= known[i].metrics;
    return available;
}

static void learn_machine(struct replay *replay)
{
    for (size_t i = 0; i < ew_etl_file_count(replay->reader); i++) {
        const struct ew_etl_file_info *info = ew_etl_file_info(replay->reader, i);
        if (info->cpu_count > replay->cpu_count)
            replay->cpu_count = info->cpu_count;
        replay->header_lost += info->events_lost;
    }
}

/* The first reading. */
static int learn(struct replay *replay)
{
    const struct ew_record *records;
    struct ew_event event;
    uint64_t kinds = 0;
    int count;
    while ((count = ew_etl_next(replay->reader, &records)) > 0) {
        for (int i = 0; i < count; i++) {
            replay->last_ns = records[i].t_ns;
            if (records[i].kind == EW_RECORD_LOSS) {
                replay->flagged = true;
                replay->placed_lost++;
            }
            if (records[i].kind != EW_RECORD_LOSS && ew_decode_event(&records[i], &event) &&
                event.kind != EW_EVENT_OTHER) {
                kinds |= UINT64_C(1) << event.kind;
                replay->placed_lost += event.kind == EW_EVENT_LOST;
                ew_tally_learn(replay->tally, &event);
            }
        }
    }
    if (count < 0)
        return count;
    replay->ops.available = available_from(kinds);
    if ((kinds & (KIND(SWITCH) | KIND(SAMPLE))) == KIND(SAMPLE))
        replay->ops.estimated = ETWATCH_HAS(cpu_percent) | ETWATCH_HAS(cpu_ns);
    return ew_etl_rewind(replay->reader);
}

static int open_tally(struct replay *replay, const struct ew_source_config *config)
{
    const struct ew_filter *filter = &config->filter;
    struct ew_tally_config wanted_config = {
        .max_processes = config->max_processes,
        .max_threads = config->max_threads,
        .cpu_count = replay->cpu_count,
        .interval_ns = config->interval_ns,
        .threads = config->threads,
        .interval_over = interval_over,
        .interval_ctx = replay,
        .clock_ctx = replay->reader,
        .raw_to_ns = raw_to_ns,
        .working_set = ew_decode_working_set,
        .wanted = filter->all ? NULL : wanted,
        .wanted_ctx = replay,
    };
    int rc = ew_chosen_init(&replay->chosen, filter->pids, filter->pid_count, filter->names,
                            filter->name_count);
    return rc == 0 ? ew_tally_new(&wanted_config, &replay->tally) : rc;
}

static void close_replay(struct ew_source *source)
{
    struct replay *replay = (struct replay *)source;
    for (uint32_t i = 0; replay->lines != NULL && i < LINE_BUCKETS; i++)
        while (replay->lines[i] != NULL)
            drop_line(replay, &replay->lines[i]);
    ew_free(replay->lines);
    ew_chosen_done(&replay->chosen);
    if (replay->tally != NULL)
        ew_tally_free(replay->tally);
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
        rc = open_tally(replay, config);
        if (rc == 0 && config->cmdlines) {
            replay->lines = ew_calloc(LINE_BUCKETS, sizeof(struct line *));
            rc = replay->lines == NULL ? ETWATCH_ENOMEM : 0;
        }
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

/* ----------------------------------------------------------------- draining */

/* The headers know how many events were lost, flags of buffers and events in the stream know where.
 * Without those it may have been anywhere. */
static void tell_header_loss(struct replay *replay, const struct ew_facts *facts)
{
    replay->loss_told = true;
    if (replay->header_lost <= replay->placed_lost || replay->flagged)
        return;
    struct etwatch_loss loss = {
        .size = sizeof loss,
        .stage = ETWATCH_LOSS_KERNEL_LOG,
        .count = replay->header_lost - replay->placed_lost,
        .to_ns = replay->last_ns,
    };
    facts->loss(facts->ctx, &loss);
}

static void take_loss(struct replay *replay, const struct ew_record *record,
                      const struct ew_facts *facts)
{
    /* The first flag stands for all that the others do not stand for. */
    uint64_t more =
        replay->header_lost > replay->placed_lost ? replay->header_lost - replay->placed_lost : 0;
    replay->header_lost = 0;
    ew_tally_loss(replay->tally, record->cpu, record->t_ns, 1 + more, facts);
}

static void take(struct replay *replay, const struct ew_record *record,
                 const struct ew_facts *facts)
{
    struct ew_event event;
    replay->last_ns = record->t_ns;
    if (record->kind == EW_RECORD_LOSS) {
        take_loss(replay, record, facts);
        return;
    }
    replay->stats.events++;
    if (!ew_decode_event(record, &event)) {
        replay->stats.undecoded++;
        return;
    }
    if (event.kind == EW_EVENT_OTHER)
        return;
    bool told = event.kind == EW_EVENT_PROCESS_START || event.kind == EW_EVENT_PROCESS_THERE ||
                event.kind == EW_EVENT_PROCESS_STILL;
    if (replay->lines != NULL && told)
        keep_line(replay, &event);
    /* Short of memory: the tally counts it as lost. */
    (void)ew_tally_event(replay->tally, record, &event, facts);
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
    replay->facts = facts;
    replay->cut = false;
    if (!replay->loss_told)
        tell_header_loss(replay, facts);
    for (uint32_t left = RECORDS_PER_DRAIN; left > 0 && !replay->ended; left--) {
        if (replay->batch_at == replay->batch_count) {
            int count = fetch(replay);
            if (count < 0)
                return ew_error_set(reterr, count, 0, "%s", etwatch_strerror(count));
            if (count == 0) {
                ew_tally_finish(replay->tally, replay->last_ns, facts);
                replay->horizon_ns = replay->last_ns;
                replay->ended = true;
                break;
            }
        }
        take(replay, &replay->batch[replay->batch_at++], facts);
        if (replay->cut)
            break;
    }
    *ret_horizon_ns = replay->horizon_ns;
    return 0;
}

/* -------------------------------------------------------------------- other */

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

static void stats(struct ew_source *source, struct ew_source_stats *ret_stats)
{
    const struct replay *replay = (const struct replay *)source;
    *ret_stats = replay->stats;
    ret_stats->kernel_ns_known = true; /* nothing of ours is in any kernel */
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
