/* SPDX-License-Identifier: MIT */
/*
 * Owns the tally, the selection of processes and the command lines. The tally reports every
 * interval end while it processes records, so intervals end at the same times no matter how the
 * records are split over drains.
 */
#include "source/record_accounting.h"

#include <string.h>

#include "base/alloc.h"
#include "base/no_arrays.h"
#include "base/utf16.h"
#include "decode/decode.h"
#include "model/windows_cmdline.h"

enum { LINES_MAX = 65536, LINE_BUCKETS = 4096 };

/* The command line of a process. */
struct ew_accounting_line {
    struct ew_accounting_line *next;
    uint32_t pid;
    char text[];
};

static bool wanted(void *ctx, uint32_t pid, const char *name)
{
    const struct ew_accounting *accounting = ctx;
    return ew_selection_includes(&accounting->selection, pid, name);
}

static void interval_over(void *ctx, uint64_t end_ns)
{
    struct ew_accounting *accounting = ctx;
    accounting->horizon_ns = end_ns;
    accounting->cut = true;
    if (accounting->facts->over != NULL)
        accounting->facts->over(accounting->facts->ctx, end_ns);
}

/* ------------------------------------------------------------ command lines */

static struct ew_accounting_line **find_line(const struct ew_accounting *accounting, uint32_t pid)
{
    struct ew_accounting_line **at = &accounting->lines[pid / 4 % LINE_BUCKETS];
    while (*at != NULL && (*at)->pid != pid)
        at = &(*at)->next;
    return at;
}

static void drop_line(struct ew_accounting *accounting, struct ew_accounting_line **at)
{
    struct ew_accounting_line *line = *at;
    *at = line->next;
    ew_free(line);
    accounting->line_count--;
}

static void keep_line(struct ew_accounting *accounting, const struct ew_event *event)
{
    char text[EW_CMDLINE_BYTES], masked[EW_CMDLINE_BYTES];
    const struct ew_event_text *command_line = &event->u.process.command_line;
    struct ew_accounting_line **at = find_line(accounting, event->pid);
    if (*at != NULL && event->kind == EW_EVENT_PROCESS_START)
        drop_line(accounting, at);
    if (*at != NULL || command_line->len == 0 || !command_line->wide ||
        accounting->line_count == LINES_MAX)
        return;
    (void)ew_utf16_to_utf8(command_line->bytes,
                           ew_utf16_len(command_line->bytes, command_line->len), text, sizeof text);
    ew_cmdline_mask(text, masked);
    size_t len = strlen(masked);
    struct ew_accounting_line *line = len == 0 ? NULL : ew_calloc(1, sizeof *line + len + 1);
    if (line == NULL)
        return;
    line->pid = event->pid;
    memcpy(line->text, masked, len + 1);
    line->next = *at;
    *at = line;
    accounting->line_count++;
}

const char *ew_accounting_cmdline(const struct ew_accounting *accounting, uint32_t pid)
{
    const struct ew_accounting_line *line =
        accounting->lines == NULL ? NULL : *find_line(accounting, pid);
    return line == NULL ? NULL : line->text;
}

/* ------------------------------------------------------------------- availability */

struct etwatch_metric_set ew_accounting_available(uint64_t kinds)
{
    static const struct {
        uint64_t kinds; /* any of these */
        struct etwatch_metric_set metrics;
    } known[] = {
        {EW_KIND(SWITCH) | EW_KIND(SAMPLE), EW_METRIC_SET(ETWATCH_M_cpu_percent, ETWATCH_M_cpu_ns)},
        {EW_KIND(SAMPLE), EW_METRIC_SET(ETWATCH_M_cpu_user_ns, ETWATCH_M_cpu_kernel_ns)},
        {EW_KIND(SWITCH), EW_METRIC_SET(ETWATCH_M_switches_voluntary,
                                        ETWATCH_M_switches_involuntary, ETWATCH_M_priority)},
        {EW_KIND(READY), EW_METRIC_SET(ETWATCH_M_runq_wait_ns)},
        {EW_KIND(FAULT), EW_METRIC_SET(ETWATCH_M_faults_minor)},
        {EW_KIND(HARD_FAULT), EW_METRIC_SET(ETWATCH_M_faults_major)},
        {EW_KIND(DISK_READ) | EW_KIND(DISK_WRITE),
         EW_METRIC_SET(ETWATCH_M_disk_read_bytes, ETWATCH_M_disk_write_bytes)},
        {EW_KIND(FILE_READ) | EW_KIND(FILE_WRITE),
         EW_METRIC_SET(ETWATCH_M_io_read_bytes, ETWATCH_M_io_write_bytes, ETWATCH_M_io_read_ops,
                       ETWATCH_M_io_write_ops)},
        {EW_KIND(NET_SEND) | EW_KIND(NET_RECEIVE),
         EW_METRIC_SET(ETWATCH_M_net_received_bytes, ETWATCH_M_net_sent_bytes)},
        {EW_KIND(THREAD_START) | EW_KIND(THREAD_THERE),
         EW_METRIC_SET(ETWATCH_M_threads, ETWATCH_M_affinity)},
        {EW_KIND(PROCESS_COUNTERS) | EW_KIND(WORKING_SETS),
         EW_METRIC_SET(ETWATCH_M_rss_bytes, ETWATCH_M_private_bytes, ETWATCH_M_virtual_bytes)},
        {EW_KIND(WORKING_SETS), EW_METRIC_SET(ETWATCH_M_rss_private_bytes)},
        {EW_KIND(PROCESS_COUNTERS),
         EW_METRIC_SET(ETWATCH_M_rss_peak_bytes, ETWATCH_M_pool_paged_bytes,
                       ETWATCH_M_pool_nonpaged_bytes, ETWATCH_M_handles)},
        {EW_KIND(PROCESS_END), EW_METRIC_SET(ETWATCH_M_exit_ns, ETWATCH_M_exit_code)},
        {EW_KIND(PRESENT), EW_METRIC_SET(ETWATCH_M_presents)},
        {EW_KIND(GPU_PACKET) | EW_KIND(GPU_SUBMIT),
         EW_METRIC_SET(ETWATCH_M_gpu_ns, ETWATCH_M_gpu_percent)},
    };
    struct etwatch_metric_set available = {{0}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if ((kinds & known[i].kinds) != 0)
            etwatch_metric_set_union(&available, &known[i].metrics);
    return available;
}

struct etwatch_metric_set ew_accounting_estimated(uint64_t kinds)
{
    struct etwatch_metric_set estimated = {{0}};
    /* Submissions stand in where packets or contexts are missing, and on hardware queues. */
    bool queues = (kinds & (EW_KIND(GPU_PACKET) | EW_KIND(GPU_QUEUE))) != EW_KIND(GPU_PACKET);
    bool described = (kinds & EW_KIND(GPU_DEVICE)) != 0 && (kinds & EW_KIND(GPU_CONTEXT)) != 0;
    if ((kinds & (EW_KIND(GPU_PACKET) | EW_KIND(GPU_SUBMIT))) != 0 && (queues || !described))
        estimated = EW_METRICS(ETWATCH_M_gpu_ns, ETWATCH_M_gpu_percent);
    if ((kinds & EW_KIND(SAMPLE)) == 0)
        return estimated;
    etwatch_metric_set_union(&estimated,
                             &EW_METRICS(ETWATCH_M_cpu_user_ns, ETWATCH_M_cpu_kernel_ns));
    if ((kinds & EW_KIND(SWITCH)) == 0)
        etwatch_metric_set_union(&estimated, &EW_METRICS(ETWATCH_M_cpu_percent, ETWATCH_M_cpu_ns));
    return estimated;
}

/* ------------------------------------------------------------------- init and done */

int ew_accounting_init(struct ew_accounting *accounting, const struct ew_source_config *config,
                       const struct ew_tally_config *own)
{
    const struct ew_filter *filter = &config->filter;
    struct ew_tally_config tally = *own;
    tally.max_processes = config->max_processes;
    tally.max_threads = config->max_threads;
    tally.interval_ns = config->interval_ns;
    tally.threads = config->threads;
    tally.interval_over = interval_over;
    tally.interval_ctx = accounting;
    tally.working_set = ew_decode_working_set;
    tally.selected = filter->all ? NULL : wanted;
    tally.selected_ctx = accounting;
    memset(accounting, 0, sizeof *accounting);
    accounting->events = config->events;
    accounting->sched = (struct ew_sched_events){config->events_all, config->causes};
    int rc = ew_selection_init(&accounting->selection, filter->pids, filter->pid_count,
                               filter->names, filter->name_count);
    if (rc == 0)
        rc = ew_tally_new(&tally, &accounting->tally);
    if (rc == 0 && config->cmdlines) {
        accounting->lines = ew_calloc(LINE_BUCKETS, sizeof(struct ew_accounting_line *));
        rc = accounting->lines == NULL ? ETWATCH_ENOMEM : 0;
    }
    return rc;
}

void ew_accounting_done(struct ew_accounting *accounting)
{
    for (uint32_t i = 0; accounting->lines != NULL && i < LINE_BUCKETS; i++)
        while (accounting->lines[i] != NULL)
            drop_line(accounting, &accounting->lines[i]);
    ew_free(accounting->lines);
    ew_selection_done(&accounting->selection);
    if (accounting->tally != NULL)
        ew_tally_free(accounting->tally);
}

/* ------------------------------------------------------------------------- records */

EW_NO_ARRAYS void ew_accounting_take(struct ew_accounting *accounting,
                                     const struct ew_record *record, const struct ew_facts *facts)
{
    struct ew_event event;
    accounting->last_ns = record->t_ns;
    accounting->stats.events++;
    if (!ew_decode_event(record, &event)) {
        accounting->stats.undecoded++;
        return;
    }
    if (event.kind == EW_EVENT_OTHER)
        return;
    bool announces = event.kind == EW_EVENT_PROCESS_START || event.kind == EW_EVENT_PROCESS_THERE ||
                     event.kind == EW_EVENT_PROCESS_STILL;
    if (accounting->lines != NULL && announces)
        keep_line(accounting, &event);
    if (accounting->events)
        ew_sched_events_emit(accounting->tally, &accounting->sched, false, record, &event, facts);
    /* On allocation failure the tally counts the event as lost. */
    (void)ew_tally_event(accounting->tally, record, &event, facts);
    if (accounting->events)
        ew_sched_events_emit(accounting->tally, &accounting->sched, true, record, &event, facts);
}
