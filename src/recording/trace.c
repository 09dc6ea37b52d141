/* SPDX-License-Identifier: MIT */
/*
 * The public walk over recordings: connects reader, decoder and process history.
 *
 * Schemas and names often come after the events that need them, so the first call of
 * etwatch_trace_next reads everything once to learn them and then restarts. Memory is bounded: what
 * is learned has a maximum, and only the reader's window of the recording is open.
 */
#include "recording/trace.h"

#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/sized.h"
#include "decode/kernel.h"
#include "os/os.h"
#include "recording/onnx_events.h"

enum { IRPS = 4096, CPUS_MAX = 65536, PROGRESS_BYTES = 1 << 20 };
#define MEMORY_MAX (UINT64_C(1) << 30) /* unless the options set a limit */

static const uint64_t filetime_of_1970 = 116444736000000000u;

static int take_options(struct etwatch_trace *trace, const struct etwatch_trace_options *options,
                        struct ew_error *reterr)
{
    struct etwatch_trace_options *to = &trace->options;
    if (options != NULL) {
        int rc = ew_sized_in(to, sizeof *to, options, "options", reterr);
        if (rc < 0)
            return rc;
    }
    to->size = sizeof *to;
    if (to->until_ns != 0 && to->until_ns <= to->from_ns)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "until_ns must be after from_ns");
    if ((to->flags & ~(uint32_t)(ETWATCH_CONFIG_NO_SYSTEM | ETWATCH_CONFIG_CMDLINE)) != 0)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "flags has an unknown bit");
    int rc =
        ew_selection_init(&trace->selection, to->pids, to->pid_count, to->names, to->name_count);
    if (rc == 0)
        rc = ew_selection_exclude(&trace->selection, to->exclude_pids, to->exclude_pid_count,
                                  to->exclude_names, to->exclude_name_count,
                                  (to->flags & ETWATCH_CONFIG_NO_SYSTEM) != 0);
    if (rc < 0)
        return ew_error_set(reterr, rc, 0, "%s",
                            rc == ETWATCH_EINVAL ? "a list or a name is NULL" : "out of memory");
    to->pids = to->exclude_pids = NULL;
    to->names = to->exclude_names = NULL;
    return 0;
}

static int open_stages(struct etwatch_trace *trace, const char *const *paths, size_t count,
                       struct ew_error *reterr)
{
    struct ew_etl_options wanted = {.workers = trace->options.workers};
    int rc = ew_etl_open(paths, count, &wanted, &trace->reader, reterr);
    if (rc < 0)
        return rc;
    rc = ew_decoder_new(&trace->decoder);
    trace->on_cpu = ew_calloc(CPUS_MAX, sizeof *trace->on_cpu);
    if (rc < 0 || trace->on_cpu == NULL)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    for (size_t i = 0; i < ew_etl_file_count(trace->reader); i++)
        trace->all_bytes += ew_etl_file_info(trace->reader, i)->file_bytes;
    trace->unix_minus_raw_ns = ew_etl_unix_minus_raw_ns(trace->reader);
    return 0;
}

static int keep_paths(struct etwatch_trace *trace, const char *const *paths, size_t count)
{
    trace->paths = ew_calloc(count, sizeof *trace->paths);
    for (size_t i = 0; i < count && trace->paths != NULL; i++) {
        trace->paths[i] = ew_strdup(paths[i]);
        if (trace->paths[i] == NULL)
            return ETWATCH_ENOMEM;
        trace->path_count++;
    }
    return trace->paths == NULL ? ETWATCH_ENOMEM : 0;
}

static int use_limit(struct etwatch_trace *trace, struct ew_error *reterr)
{
    uint64_t max = trace->options.max_memory_bytes;
    trace->memory = ew_alloc_limit_new(max != 0 ? max : MEMORY_MAX);
    if (trace->memory == NULL)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    (void)ew_alloc_limit_use(trace->memory);
    return 0;
}

int ew_trace_result(const struct etwatch_trace *trace, int rc, struct etwatch_error_info *reterr)
{
    const bool exceeded = rc != ETWATCH_ESTATE && ew_alloc_limit_exceeded(trace->memory);
    if (rc >= 0 && !exceeded) /* of every event: the large error is not even cleared */
        return rc;
    struct ew_error why = {0};
    if (exceeded) {
        uint64_t max = ew_alloc_limit_max(trace->memory);
        (void)ew_error_set(&why, ETWATCH_ELIMIT, 0,
                           "the recording needs more memory than the limit of %llu MiB",
                           (unsigned long long)(max >> 20));
        ew_error_fix(
            &why, "raise the limit (--max-memory, max_memory_bytes), or select processes or a time "
                  "range");
        rc = ETWATCH_ELIMIT;
    } else {
        (void)ew_error_set(&why, rc, 0, "%s",
                           rc == ETWATCH_ESTATE ? "canceled by the caller" : etwatch_strerror(rc));
    }
    ew_error_out(reterr, &why, why.code);
    return rc;
}

int etwatch_trace_open(const char *const *paths, size_t count,
                       const struct etwatch_trace_options *options,
                       struct etwatch_trace **ret_trace, struct etwatch_error_info *reterr)
{
    struct ew_error why;
    memset(&why, 0, sizeof why);
    if (paths == NULL || count == 0 || ret_trace == NULL)
        return ETWATCH_EINVAL;
    struct etwatch_trace *trace = ew_calloc(1, sizeof *trace);
    if (trace == NULL)
        return ETWATCH_ENOMEM;
    ew_recording_history_init(&trace->history);
    ew_trace_fields_init(&trace->fields);
    struct ew_alloc_limit *before = ew_alloc_limit_in_use();
    int rc = take_options(trace, options, &why);
    if (rc == 0)
        rc = use_limit(trace, &why);
    if (rc == 0 && ew_perfetto_trace_is(paths[0]))
        rc = ew_perfetto_trace_open(paths, count, &trace->options, &trace->selection,
                                    &trace->perfetto, &why);
    else if (rc == 0)
        rc = open_stages(trace, paths, count, &why);
    if (rc == 0 && keep_paths(trace, paths, count) < 0)
        rc = ew_error_set(&why, ETWATCH_ENOMEM, 0, "out of memory");
    (void)ew_alloc_limit_use(before);
    if (rc < 0) {
        if (ew_alloc_limit_exceeded(trace->memory))
            rc = ew_trace_result(trace, rc, reterr);
        else
            ew_error_out(reterr, &why, why.code);
        etwatch_trace_free(trace);
        return rc;
    }
    *ret_trace = trace;
    return 0;
}

int ew_trace_open_feed(const struct ew_trace_feed *feed, struct etwatch_trace **ret_trace)
{
    struct etwatch_trace *trace = ew_calloc(1, sizeof *trace);
    if (trace == NULL)
        return ETWATCH_ENOMEM;
    ew_recording_history_init(&trace->history);
    ew_trace_fields_init(&trace->fields);
    trace->feed = *feed;
    trace->learned = true;
    trace->on_cpu = ew_calloc(CPUS_MAX, sizeof *trace->on_cpu);
    int rc = ew_selection_init(&trace->selection, NULL, 0, NULL, 0);
    if (rc == 0)
        rc = ew_decoder_new(&trace->decoder);
    if (rc < 0 || trace->on_cpu == NULL) {
        etwatch_trace_free(trace);
        return ETWATCH_ENOMEM;
    }
    memset(trace->on_cpu, 0xFF, CPUS_MAX * sizeof *trace->on_cpu);
    *ret_trace = trace;
    return 0;
}

void etwatch_trace_free(struct etwatch_trace *trace)
{
    if (trace == NULL)
        return;
    ew_perfetto_trace_free(trace->perfetto);
    ew_trace_fields_done(&trace->fields);
    ew_recording_history_done(&trace->history);
    ew_selection_done(&trace->selection);
    for (uint32_t i = 0; i < trace->path_count; i++)
        ew_free(trace->paths[i]);
    ew_free(trace->paths);
    ew_free(trace->on_cpu);
    ew_free(trace->irps);
    ew_decoder_free(trace->decoder);
    if (trace->reader != NULL)
        ew_etl_close(trace->reader);
    ew_alloc_limit_drop(trace->memory);
    ew_free(trace);
}

/* -------------------------------------------------------------- information */

size_t etwatch_trace_file_count(const struct etwatch_trace *trace)
{
    if (trace == NULL)
        return 0;
    return trace->perfetto != NULL ? ew_perfetto_trace_file_count(trace->perfetto)
                                   : ew_etl_file_count(trace->reader);
}

static uint64_t to_unix(int64_t filetime)
{
    uint64_t ticks = (uint64_t)filetime;
    return filetime <= 0 || ticks < filetime_of_1970 ? 0 : (ticks - filetime_of_1970) * 100;
}

int etwatch_trace_file(const struct etwatch_trace *trace, size_t i,
                       struct etwatch_trace_file *ret_file)
{
    struct etwatch_trace_file perfetto;
    if (trace == NULL || ret_file == NULL || i >= etwatch_trace_file_count(trace))
        return ETWATCH_EINVAL;
    if (trace->perfetto != NULL) {
        ew_perfetto_trace_file(trace->perfetto, i, &perfetto);
        return ew_sized_out(ret_file, &perfetto, sizeof perfetto);
    }
    const struct ew_etl_file_info *info = ew_etl_file_info(trace->reader, i);
    struct etwatch_trace_file file = {
        .os_major = info->os_major,
        .os_minor = info->os_minor,
        .os_build = info->os_build,
        .cpu_count = info->cpu_count,
        .pointer_size = info->pointer_size,
        .clock = info->clock,
        .cpu_mhz = info->cpu_mhz,
        .clock_frequency = info->perf_frequency,
        .log_file_mode = info->log_file_mode,
        .compressed = info->compressed,
        .buffer_bytes = info->buffer_bytes,
        .buffers_written = info->buffers_written,
        .events_lost = info->events_lost,
        .buffers_lost = info->buffers_lost,
        .start_ns = to_unix(info->start_filetime),
        .end_ns = to_unix(info->end_filetime),
        .boot_ns = to_unix(info->boot_filetime),
        .file_bytes = info->file_bytes,
        .path = info->path,
        .session_name = info->session_name,
        .format = ETWATCH_TRACE_ETL,
        .source = ETWATCH_SOURCE_ETL,
    };
    return ew_sized_out(ret_file, &file, sizeof file);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Losses are reported three times: in the header at the end of the session, by events in the
 * stream, and by flags of buffers. All three describe the same losses; the largest number is the
 * best estimate. */
static void count_lost(const struct etwatch_trace *trace, const struct ew_etl_counts *counts,
                       struct etwatch_trace_stats *stats)
{
    uint64_t events = 0, buffers = 0;
    for (size_t i = 0; i < ew_etl_file_count(trace->reader); i++) {
        const struct ew_etl_file_info *info = ew_etl_file_info(trace->reader, i);
        events += info->events_lost;
        buffers += info->buffers_lost;
    }
    stats->lost = larger(larger(events, trace->lost), counts->flag_events_lost) + trace->refused;
    stats->lost_buffers = larger(larger(buffers, trace->lost_buffers), counts->flag_buffers_lost);
}

int etwatch_trace_stats(const struct etwatch_trace *trace, struct etwatch_trace_stats *ret_stats)
{
    struct ew_etl_counts counts;
    struct etwatch_trace_stats perfetto;
    if (trace == NULL || ret_stats == NULL)
        return ETWATCH_EINVAL;
    if (trace->perfetto != NULL) {
        ew_perfetto_trace_stats(trace->perfetto, &perfetto);
        return ew_sized_out(ret_stats, &perfetto, sizeof perfetto);
    }
    ew_etl_counts(trace->reader, &counts);
    struct etwatch_trace_stats stats = {
        .events = trace->events,
        .undecoded = trace->undecoded,
        .bad_buffers = counts.bad_buffers,
        .bad_events = counts.bad_records,
        .bad_bytes = counts.bad_bytes,
        .late = counts.late,
        .bytes = counts.bytes,
        .first_bad_offset = counts.first_bad_offset,
        .first_bad_file = counts.first_bad_file,
        .clock_set_back_ns = ew_etl_set_back_ns(trace->reader),
    };
    memcpy(stats.first_bad, counts.first_bad, sizeof stats.first_bad);
    count_lost(trace, &counts, &stats);
    if (trace->events > 0) {
        stats.first_ns = trace->first_ns + (uint64_t)trace->unix_minus_raw_ns;
        stats.last_ns = trace->last_ns + (uint64_t)trace->unix_minus_raw_ns;
    }
    return ew_sized_out(ret_stats, &stats, sizeof stats);
}

/* --------------------------------------------------------------------- walk */

int ew_trace_progress(struct etwatch_trace *trace, uint32_t pass, uint32_t passes, bool always)
{
    struct ew_etl_counts counts;
    if (trace->options.on_progress == NULL)
        return 0;
    ew_etl_counts(trace->reader, &counts);
    if (!always && counts.bytes - trace->progress_bytes < PROGRESS_BYTES)
        return 0;
    trace->progress_bytes = counts.bytes;
    uint64_t done = (pass * trace->all_bytes + counts.bytes) / passes;
    return trace->options.on_progress(trace->options.ctx, done, trace->all_bytes) != 0
               ? ETWATCH_ESTATE
               : 0;
}

int ew_trace_restart(struct etwatch_trace *trace)
{
    trace->batch_count = trace->batch_at = 0;
    trace->current = NULL;
    trace->ended = false;
    trace->events = trace->undecoded = trace->lost = trace->lost_buffers = trace->refused = 0;
    trace->first_ns = trace->last_ns = 0;
    trace->progress_bytes = 0;
    memset(trace->on_cpu, 0xFF, CPUS_MAX * sizeof *trace->on_cpu);
    if (trace->irps != NULL)
        memset(trace->irps, 0, IRPS * sizeof *trace->irps);
    return ew_etl_rewind(trace->reader);
}

/* Whether a record may describe the start or end of a process or thread: kernel records of two
 * classes do, except switches, which are the majority of all records. */
static bool describes_processes(const struct ew_record *record)
{
    enum { PROCESS = 0x03, THREAD = 0x05, SWITCH = 36 };
    return record->kind != EW_RECORD_KERNEL || record->group == PROCESS ||
           (record->group == THREAD && record->opcode != SWITCH);
}

static int learn_record(struct etwatch_trace *trace, const struct ew_record *record)
{
    struct ew_event event;
    int rc = 0;
    if (record->kind == EW_RECORD_LOSS || !describes_processes(record))
        return 0;
    if (record->kind != EW_RECORD_KERNEL)
        rc = ew_decoder_learn(trace->decoder, record);
    if (ew_decode_event(record, &event) && event.kind != EW_EVENT_OTHER)
        ew_recording_history_learn(&trace->history, &event);
    return rc;
}

int ew_trace_learn(struct etwatch_trace *trace)
{
    const struct ew_record *records;
    int count;
    int rc = ew_trace_restart(trace);
    while (rc == 0 && (count = ew_etl_next(trace->reader, &records)) != 0) {
        if (count < 0)
            return count;
        for (int i = 0; i < count && rc == 0; i++)
            rc = learn_record(trace, &records[i]);
        if (rc == 0)
            rc = ew_trace_progress(trace, 0, 2, false);
    }
    if (rc == 0 && !ew_selection_is_all(&trace->selection))
        rc = ew_recording_history_select(&trace->history, &trace->selection);
    if (rc == 0)
        rc = ew_trace_restart(trace);
    trace->learned = rc == 0;
    return rc;
}

static int next_batch(struct etwatch_trace *trace)
{
    if (trace->reader != NULL)
        return trace->ended ? 0 : ew_etl_next(trace->reader, &trace->batch);
    ew_recording_history_trim(&trace->history);
    return trace->feed.next(trace->feed.ctx, &trace->batch);
}

static void note_loss(struct etwatch_trace *trace, const struct ew_record *record)
{
    if (record->cpu < UINT16_MAX)
        trace->on_cpu[record->cpu] = EW_NO_ID;
    else
        memset(trace->on_cpu, 0xFF, CPUS_MAX * sizeof *trace->on_cpu);
    if (trace->reader == NULL && record->payload_size >= 8)
        trace->lost += ew_load_u64(record->payload);
}

/* The next record that is an event: 1, 0 at the end (of a live session: none now), or an error. */
static int take(struct etwatch_trace *trace, const struct ew_record **ret_record)
{
    for (;;) {
        while (trace->batch_at < trace->batch_count) {
            const struct ew_record *record = &trace->batch[trace->batch_at++];
            if (record->kind == EW_RECORD_LOSS) {
                note_loss(trace, record);
                continue;
            }
            *ret_record = record;
            int rc = trace->reader != NULL ? 0 : learn_record(trace, record);
            return rc < 0 ? rc : 1;
        }
        int rc = ew_trace_progress(trace, 1, 2, false);
        if (rc < 0)
            return rc;
        int count = next_batch(trace);
        trace->batch_at = 0;
        trace->batch_count = count > 0 ? (uint32_t)count : 0;
        trace->ended = count == 0;
        if (count <= 0)
            return count;
    }
}

/* Stack records have the ids of their process and thread at a fixed offset; accounting ignores
 * them. */
static void owner_of_stack(const struct ew_record *record, struct ew_event *event)
{
    bool stack = record->kind == EW_RECORD_KERNEL && record->group == 0x18 &&
                 (record->opcode == 32 || record->opcode == 37 || record->opcode == 38);
    if (!stack || record->payload_size < 16)
        return;
    event->pid = ew_load_u32(record->payload + 8);
    event->tid = ew_load_u32(record->payload + 12);
}

static struct ew_trace_irp *irp_slot(struct etwatch_trace *trace, uint64_t irp)
{
    if (trace->irps == NULL)
        trace->irps = ew_calloc(IRPS, sizeof *trace->irps);
    return trace->irps == NULL || irp == 0 ? NULL : &trace->irps[(irp >> 4 ^ irp >> 16) % IRPS];
}

/* The completion of a disk request: its issuer, by the payload. The thread that runs then is
 * unrelated. */
static void owner_of_request(struct etwatch_trace *trace, struct ew_event *known)
{
    const struct ew_trace_irp *slot = irp_slot(trace, known->u.io.irp);
    if (known->tid == EW_NO_ID && slot != NULL && slot->irp == known->u.io.irp) {
        known->pid = slot->pid;
        known->tid = slot->tid;
    }
}

static void note_request(struct etwatch_trace *trace, const struct ew_event *known)
{
    struct ew_trace_irp *slot = irp_slot(trace, known->u.io.irp);
    if (slot != NULL)
        *slot = (struct ew_trace_irp){known->u.io.irp, known->pid, known->tid};
}

/* Determines the process and thread of an event, or EW_NO_ID: by the payload if it names them, else
 * by the header, else by the running thread of the CPU, which is tracked here. */
static void find_owner(struct etwatch_trace *trace, const struct ew_record *record,
                       struct ew_event *known)
{
    bool completion = false;
    if (!ew_decode_event(record, known)) {
        known->kind = EW_EVENT_OTHER;
        known->pid = record->pid;
        known->tid = record->tid;
    }
    if (known->kind == EW_EVENT_OTHER)
        owner_of_stack(record, known);
    if (known->kind >= EW_EVENT_DISK_READ && known->kind <= EW_EVENT_DISK_FLUSH &&
        known->pid == EW_NO_ID) {
        completion = true;
        owner_of_request(trace, known);
    }
    if (known->kind == EW_EVENT_SWITCH) {
        known->tid = known->u.cswitch.new_tid;
        known->pid = EW_NO_ID;
        trace->on_cpu[record->cpu] = known->tid;
    }
    if (known->pid == EW_NO_ID && known->tid == EW_NO_ID && !completion)
        known->tid = trace->on_cpu[record->cpu];
    if (known->pid == EW_NO_ID && known->tid == 0)
        known->pid = 0; /* the idle threads, one per CPU, share this id */
    if (known->pid == EW_NO_ID && known->tid != EW_NO_ID)
        (void)ew_recording_history_process_of(&trace->history, known->tid, record->t_ns,
                                              &known->pid);
    if (known->kind == EW_EVENT_DISK_INIT)
        note_request(trace, known);
}

static bool is_selected(const struct etwatch_trace *trace, const struct ew_record *record,
                        const struct ew_event *known)
{
    if (known->pid == EW_NO_ID || ew_selection_is_all(&trace->selection))
        return ew_selection_includes_all(&trace->selection);
    return ew_recording_history_selected(&trace->history, &trace->selection, known->pid,
                                         record->t_ns);
}

static void count_event(struct etwatch_trace *trace, const struct ew_record *record,
                        const struct ew_event *known)
{
    if (trace->events++ == 0)
        trace->first_ns = record->t_ns;
    trace->last_ns = record->t_ns;
    if (known->kind == EW_EVENT_LOST) {
        trace->lost += known->u.lost.what == 32;
        trace->lost_buffers += known->u.lost.what == 33;
    }
}

static uint64_t keyword_of(const struct ew_record *record)
{
    return record->kind == EW_RECORD_MANIFEST ? ew_load_u64(record->header + 0x30) : 0;
}

/* Names a record; the schema of an unknown event is queried once. */
static void find_names(struct etwatch_trace *trace, const struct ew_record *record,
                       struct ew_event_names *ret_names)
{
    const void *info;
    size_t size;
    ew_decoder_names(trace->decoder, record, ret_names);
    if (ret_names->origin == EW_SCHEMA_NONE && trace->feed.schema != NULL &&
        record->kind == EW_RECORD_MANIFEST &&
        trace->feed.schema(trace->feed.ctx, record, &info, &size) &&
        ew_decoder_learn_info(trace->decoder, info, size) > 0)
        ew_decoder_names(trace->decoder, record, ret_names);
}

void ew_trace_describe(struct etwatch_trace *trace, const struct ew_record *record,
                       const struct ew_event *known, struct etwatch_trace_event *event)
{
    struct ew_event_names names;
    find_names(trace, record, &names);
    *event = (struct etwatch_trace_event){
        .flags = (names.laid_out ? (uint32_t)ETWATCH_TRACE_DECODED : 0u) |
                 (names.named ? (uint32_t)ETWATCH_TRACE_NAMED : 0u),
        .t_ns = record->t_ns + (uint64_t)trace->unix_minus_raw_ns,
        .t_rel_ns = record->t_ns,
        .t_raw = record->t_raw,
        .cpu = record->cpu,
        .id = record->id,
        .opcode = record->opcode,
        .version = record->version,
        .level = record->kind == EW_RECORD_KERNEL ? 0 : record->group,
        .keyword = keyword_of(record),
        .provider = names.provider,
        .event = names.event,
        .payload = record->payload,
        .payload_size = record->payload_size,
    };
    const uint8_t *guid = record->provider != NULL ? record->provider : ew_kernel_guid(record);
    if (guid != NULL)
        memcpy(event->provider_guid, guid, sizeof event->provider_guid);
    if (known->pid != EW_NO_ID) {
        event->pid = known->pid;
        event->flags |= ETWATCH_TRACE_HAS_PID;
        event->process = ew_recording_history_name(&trace->history, known->pid, record->t_ns);
    }
    if (known->tid != EW_NO_ID) {
        event->tid = known->tid;
        event->flags |= ETWATCH_TRACE_HAS_TID;
    }
    if (record->pid != EW_NO_ID && record->tid != EW_NO_ID) {
        event->header_pid = record->pid;
        event->header_tid = record->tid;
        event->flags |= ETWATCH_TRACE_HAS_HEADER_IDS;
    }
    trace->undecoded += !names.laid_out;
}

/* The next record in the time range and selection: 1, 0 at the end, or an error. */
static int find_next(struct etwatch_trace *trace, const struct ew_record **ret_record,
                     struct ew_event *known)
{
    int rc;
    while ((rc = take(trace, ret_record)) > 0) {
        const struct ew_record *record = *ret_record;
        find_owner(trace, record, known);
        if (!ew_trace_in_range(trace, record->t_ns)) {
            if (record->t_ns < trace->options.from_ns)
                continue;
            trace->ended = true; /* after the time range: no more events */
            trace->batch_count = trace->batch_at = 0;
            return 0;
        }
        if (is_selected(trace, record, known))
            return 1;
    }
    return rc;
}

int ew_trace_next_record(struct etwatch_trace *trace, const struct ew_record **ret_record,
                         struct ew_event *ret_known)
{
    if (trace->perfetto != NULL)
        return ETWATCH_ENOTSUP;
    trace->current = NULL;
    struct ew_alloc_limit *before = ew_alloc_limit_use(trace->memory);
    int rc = trace->learned ? 0 : ew_trace_learn(trace);
    if (rc == 0)
        rc = find_next(trace, ret_record, ret_known);
    (void)ew_alloc_limit_use(before);
    if (rc <= 0)
        return rc;
    trace->current = *ret_record;
    count_event(trace, *ret_record, ret_known);
    return 1;
}

static int next_of_etl(struct etwatch_trace *trace, struct etwatch_trace_event *ret_event)
{
    const struct ew_record *record = NULL;
    struct ew_event known;
    int rc = ew_trace_next_record(trace, &record, &known);
    if (rc > 0)
        ew_trace_describe(trace, record, &known, ret_event);
    return rc;
}

int etwatch_trace_next(struct etwatch_trace *trace, struct etwatch_trace_event *ret_event,
                       struct etwatch_error_info *reterr)
{
    struct etwatch_trace_event event;
    if (trace == NULL || ret_event == NULL)
        return ETWATCH_EINVAL;
    struct ew_alloc_limit *before = ew_alloc_limit_use(trace->memory);
    int rc = trace->perfetto != NULL ? ew_perfetto_trace_next(trace->perfetto, &event)
                                     : next_of_etl(trace, &event);
    (void)ew_alloc_limit_use(before);
    rc = ew_trace_result(trace, rc, reterr);
    if (rc <= 0)
        return rc;
    rc = ew_sized_out(ret_event, &event, sizeof event);
    return rc < 0 ? rc : 1;
}

static int decode_fields(struct etwatch_trace *trace, struct etwatch_trace_event *event)
{
    if (trace->perfetto != NULL)
        return ew_perfetto_trace_fields(trace->perfetto, event);
    if (trace->current == NULL)
        return ETWATCH_ESTATE;
    ew_fields_clear(&trace->fields.decoded);
    struct ew_alloc_limit *before = ew_alloc_limit_use(trace->memory);
    bool whole = ew_decoder_fields(trace->decoder, trace->current, &trace->fields.decoded);
    int rc = ew_trace_fields_convert(&trace->fields,
                                     (trace->options.flags & ETWATCH_CONFIG_CMDLINE) != 0,
                                     !whole && ew_kernel_has_cmdline(trace->current));
    (void)ew_alloc_limit_use(before);
    rc = ew_trace_result(trace, rc, NULL);
    if (rc < 0)
        return rc;
    if (!whole && (event->flags & ETWATCH_TRACE_DECODED) != 0) {
        event->flags &= ~(uint32_t)ETWATCH_TRACE_DECODED;
        trace->undecoded++;
    }
    if (trace->fields.withheld) {
        event->payload = NULL;
        event->payload_size = 0;
    }
    event->fields = trace->fields.list;
    event->field_count = trace->fields.decoded.count;
    return 0;
}

int etwatch_trace_fields(struct etwatch_trace *trace, struct etwatch_trace_event *event)
{
    struct etwatch_trace_event own;
    const void *view;
    if (trace == NULL || event == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_sized_view(&view, &own, sizeof own, event);
    if (rc < 0)
        return rc;
    if (view == event) /* not smaller than ours: no copy */
        return decode_fields(trace, event);
    rc = decode_fields(trace, &own);
    return rc < 0 ? rc : ew_sized_out(event, &own, sizeof own);
}

int etwatch_trace_rewind(struct etwatch_trace *trace)
{
    if (trace == NULL)
        return ETWATCH_EINVAL;
    struct ew_alloc_limit *before = ew_alloc_limit_use(trace->memory);
    int rc = trace->perfetto != NULL ? ew_perfetto_trace_rewind(trace->perfetto)
                                     : ew_trace_restart(trace);
    (void)ew_alloc_limit_use(before);
    return rc;
}

/* The inferences in the events of ONNX Runtime. */
static int onnx_spans(struct etwatch_trace *trace,
                      void (*on_span)(void *ctx, const struct etwatch_span *span), void *ctx,
                      struct etwatch_error_info *reterr)
{
    struct ew_onnx_events events = {0};
    struct etwatch_trace_event event = {.size = sizeof event};
    struct etwatch_span span;
    int count = 0, rc = etwatch_trace_rewind(trace);
    while (rc == 0 && (rc = etwatch_trace_next(trace, &event, reterr)) > 0) {
        rc = ew_recording_onnx_wants(&event) ? etwatch_trace_fields(trace, &event) : 0;
        if (rc == 0 && ew_recording_onnx_add(&events, &event, &span)) {
            on_span(ctx, &span);
            count += count < INT_MAX;
        }
    }
    ew_recording_onnx_done(&events);
    if (rc == 0)
        rc = etwatch_trace_rewind(trace);
    return rc < 0 ? rc : count;
}

int etwatch_trace_spans(struct etwatch_trace *trace,
                        void (*on_span)(void *ctx, const struct etwatch_span *span), void *ctx,
                        struct etwatch_error_info *reterr)
{
    if (trace == NULL || on_span == NULL)
        return ETWATCH_EINVAL;
    if (trace->perfetto == NULL)
        return onnx_spans(trace, on_span, ctx, reterr);
    struct ew_alloc_limit *before = ew_alloc_limit_use(trace->memory);
    int rc = ew_perfetto_trace_spans(trace->perfetto, on_span, ctx);
    (void)ew_alloc_limit_use(before);
    return rc < 0 ? ew_trace_result(trace, rc, reterr) : rc;
}

const struct etwatch_sample *etwatch_trace_sample(const struct etwatch_trace *trace)
{
    return trace == NULL || trace->perfetto == NULL ? NULL
                                                    : ew_perfetto_trace_sample(trace->perfetto);
}

const struct etwatch_event *etwatch_trace_sched_event(const struct etwatch_trace *trace)
{
    return trace == NULL || trace->perfetto == NULL ? NULL
                                                    : ew_perfetto_trace_event(trace->perfetto);
}

int etwatch_trace_meta(const struct etwatch_trace *trace, size_t i, struct etwatch_meta *ret_meta)
{
    struct etwatch_meta meta;
    if (trace == NULL || ret_meta == NULL || i >= etwatch_trace_file_count(trace))
        return ETWATCH_EINVAL;
    if (trace->perfetto == NULL || !ew_perfetto_trace_meta(trace->perfetto, i, &meta))
        return ETWATCH_ENOENT;
    return ew_sized_out(ret_meta, &meta, sizeof meta);
}
