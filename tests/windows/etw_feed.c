/* SPDX-License-Identifier: MIT */
/*
 * The events of a session. They are delivered without the lock, on the thread that calls `process`,
 * as ETW does: from one thread, in time order within each group.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "etw_buffers.h"
#include "etw_emulator_parts.h"
#include "etw_events.h"
#include "etw_move.h"
#include "source/etl/reader.h"
#include "source/etl/walk.h"

static uint64_t open_session(struct etw_emulator *emulator, const uint16_t *name,
                             const struct trace *wanted, struct ew_etw_logfile_header *header,
                             uint32_t *ret_error)
{
    uint64_t handle = EW_ETW_INVALID_HANDLE;
    ew_mutex_lock(emulator->lock);
    struct session *session = emulator_find(emulator, 0, name);
    uint32_t fault =
        emulator_fault(emulator, wanted->on_buffer != NULL ? ETW_CALL_OPEN_BUFFERS : ETW_CALL_OPEN);
    if (fault != 0) {
        *ret_error = fault;
    } else if (session == NULL || emulator->trace_count == TRACES_ROOM) {
        *ret_error = EW_WIN_INSTANCE_NOT_FOUND;
    } else {
        struct trace *trace = &emulator->traces[emulator->trace_count];
        *trace = *wanted;
        trace->used = true;
        trace->session = (uint32_t)(session - emulator->sessions);
        trace->serial = session->serial;
        handle = ++emulator->trace_count;
        /* From here on the time is that of the events, none of which has arrived yet. */
        if (!emulator->config.real_time && emulator->config.recording != NULL)
            atomic_store(&emulator->now_ns, 0);
        header->clock = emulator->config.clock;
        header->perf_frequency = emulator->config.perf_frequency;
        header->cpu_mhz = emulator->config.cpu_mhz;
        header->start_filetime = ETW_EMULATOR_START_FILETIME;
        if (emulator->config.clock == 3)
            header->start_filetime +=
                (int64_t)(emulator->config.start_raw * 10 / emulator->config.cpu_mhz);
        header->cpu_count = emulator->config.cpu_count;
    }
    ew_mutex_unlock(emulator->lock);
    return handle;
}

uint64_t emulator_open_trace(void *ctx, struct ew_etw_logfile *logfile, uint32_t *ret_error)
{
    struct trace wanted = {.on_event = logfile->on_event, .context = logfile->context};
    return open_session(ctx, logfile->session_name, &wanted, &logfile->header, ret_error);
}

uint64_t emulator_open_buffers(void *ctx, const uint16_t *name,
                               const struct ew_etw_open_options *options,
                               struct ew_etw_logfile_header *ret_header, uint32_t *ret_error)
{
    struct etw_emulator *emulator = ctx;
    struct trace wanted = {.on_buffer = options->on_buffer, .context = options->buffer_context};
    if (!emulator->config.offers_buffers) {
        *ret_error = EW_WIN_NOT_SUPPORTED;
        return EW_ETW_INVALID_HANDLE;
    }
    return open_session(emulator, name, &wanted, ret_header, ret_error);
}

bool emulator_goes_on(const struct etw_emulator *emulator, const struct trace *trace)
{
    const struct session *session = &emulator->sessions[trace->session];
    return session->used && session->serial == trace->serial && !trace->closed;
}

static void wait_for_end(struct etw_emulator *emulator, const struct trace *trace)
{
    ew_mutex_lock(emulator->lock);
    if (emulator_goes_on(emulator, trace)) {
        emulator->done = true;
        /* Time passes. */
        atomic_fetch_add(&emulator->now_ns, 3000000000);
    }
    ew_cond_signal(emulator->changed);
    while (emulator_goes_on(emulator, trace) && !emulator->released)
        (void)ew_cond_wait(emulator->changed, emulator->lock, -1);
    bool deaf = emulator->config.deaf_process, dead = emulator->config.dead_process;
    while ((dead || (deaf && !trace->closed)) && !emulator->released)
        (void)ew_cond_wait(emulator->changed, emulator->lock, -1);
    ew_mutex_unlock(emulator->lock);
}

/* Held events are delivered on a flush request, or when the session ends. */
static void wait_for_flush(struct etw_emulator *emulator, const struct trace *trace)
{
    ew_mutex_lock(emulator->lock);
    uint32_t before = emulator->counts.flushes;
    while (emulator_goes_on(emulator, trace) && emulator->counts.flushes == before)
        (void)ew_cond_wait(emulator->changed, emulator->lock, -1);
    ew_mutex_unlock(emulator->lock);
}

static uint64_t to_ns(const struct etw_emulator *emulator, uint64_t raw)
{
    uint64_t hz = emulator->config.perf_frequency;
    if (emulator->config.clock == 2)
        return (raw - (uint64_t)ETW_EMULATOR_START_FILETIME) * 100;
    if (emulator->config.clock == 3)
        return raw * 1000 / emulator->config.cpu_mhz;
    return raw / hz * 1000000000 + raw % hz * 1000000000 / hz;
}

static uint64_t from_ns(const struct etw_emulator *emulator, uint64_t ns)
{
    if (emulator->config.clock == 2)
        return ns / 100 + (uint64_t)ETW_EMULATOR_START_FILETIME;
    if (emulator->config.clock == 3)
        return ns * emulator->config.cpu_mhz / 1000;
    uint64_t hz = emulator->config.perf_frequency;
    return ns / 1000000000 * hz + ns % 1000000000 * hz / 1000000000;
}

/* An event of the rundown that is logged later, or again. */
struct kept {
    struct kept *next;
    struct ew_record record;
    _Alignas(8) uint8_t bytes[];
};

struct feed {
    struct kept *kept, *kept_last;
    uint64_t late_raw; /* the kept events are logged then; 0: never, or already */
    struct etw_enabled enabled;
    uint32_t changes; /* as of which enabled is */
    uint32_t mask[8]; /* of the recording */
    bool has_mask;
    struct etw_emulator *emulator;
    const struct trace *trace;
    uint64_t count;
    struct etw_buffers *buffers; /* NULL: events are delivered directly */
    struct etw_event event;      /* for delivery */
    struct etw_moved moved;      /* likewise */
    uint64_t ticks;              /* the recording is shifted by this much */
    uint32_t flushed, flush_s;
    uint64_t timer_ns;
    _Atomic bool over; /* nothing more will be written */
};

/* ------------------------------------------------------------------ from the buffers */

static void deliver_all(struct feed *feed, struct etw_event *event)
{
    etw_event_context(event, feed->trace->context);
    feed->trace->on_event(event->bytes);
}

static void deliver_events(struct feed *feed, const struct etw_buffer *buffer)
{
    const uint8_t *at = buffer->bytes + 72, *end = buffer->bytes + buffer->filled;
    struct ew_etl_frame frame;
    struct ew_record record;
    const char *what;
    while (at < end && ew_etl_frame_slow(at, end, &frame, &what) == EW_ETL_EVENT) {
        (void)ew_etl_fill(&record, at, frame.size, frame.type, ew_load_u16(buffer->bytes + 0x28));
        record.t_raw = frame.t_raw;
        if (etw_event_from(&feed->event, &record))
            deliver_all(feed, &feed->event);
        at += ew_etl_padded(frame.size);
    }
}

/* True: there was a buffer. */
static bool deliver_buffer(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    struct etw_buffer *buffer = etw_buffers_take(feed->buffers);
    if (buffer == NULL)
        return false;
    if (emulator->config.pause_ms > 0) {
        ew_mutex_lock(emulator->lock);
        uint64_t until_ns = ew_os_raw_ns() + emulator->config.pause_ms * UINT64_C(1000000);
        while (ew_os_raw_ns() < until_ns)
            (void)ew_cond_wait(emulator->changed, emulator->lock, (int)emulator->config.pause_ms);
        ew_mutex_unlock(emulator->lock);
    }
    if (feed->trace->on_buffer != NULL)
        (void)feed->trace->on_buffer(buffer->bytes, ew_load_u32(buffer->bytes), NULL,
                                     feed->trace->context);
    else
        deliver_events(feed, buffer);
    atomic_fetch_add(&emulator->delivered, buffer->events);
    atomic_fetch_add(&emulator->buffers, feed->trace->on_buffer != NULL);
    etw_buffers_give(feed->buffers, buffer);
    return true;
}

/* Windows stamps a buffer when it is flushed. */
static uint64_t flush_raw(const struct etw_emulator *emulator)
{
    return emulator->config.real_time && emulator->config.recording == NULL
               ? from_ns(emulator, ew_os_raw_ns())
               : 0;
}

/* The writer checks for a flush request. */
static void serve_flush(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    uint32_t requested = atomic_load_explicit(&emulator->flush_requested, memory_order_relaxed);
    if (feed->buffers == NULL || requested == feed->flushed)
        return;
    feed->flushed = requested;
    etw_buffers_flush(feed->buffers, flush_raw(emulator));
    while (!emulator->config.real_time && deliver_buffer(feed))
        ;
    ew_mutex_lock(emulator->lock);
    atomic_store(&emulator->flush_done, requested);
    ew_cond_signal(emulator->changed);
    ew_mutex_unlock(emulator->lock);
}

static void lose(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    atomic_fetch_add(&emulator->lost, 1);
    ew_mutex_lock(emulator->lock);
    emulator->sessions[feed->trace->session].properties.events_lost++;
    ew_mutex_unlock(emulator->lock);
}

static void set_time(struct etw_emulator *emulator, uint64_t t_ns)
{
    if (!emulator->config.real_time)
        atomic_store(&emulator->now_ns, t_ns);
    atomic_store_explicit(&emulator->last_ns, t_ns, memory_order_relaxed);
}

/* Without real time nothing can be too late: the writer delivers directly. */
static void write_event(struct feed *feed, uint16_t cpu, uint64_t t_raw, const void *event,
                        uint32_t size, uint64_t t_ns)
{
    bool fits = etw_buffers_write(feed->buffers, cpu, t_raw, event, size);
    while (!fits && !feed->emulator->config.real_time && deliver_buffer(feed))
        fits = etw_buffers_write(feed->buffers, cpu, t_raw, event, size);
    set_time(feed->emulator, t_ns);
    if (fits)
        return;
    lose(feed);
    etw_buffers_mark(feed->buffers, cpu);
}

/* ------------------------------------------------------------------- event by event */

static void update_enabled(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    uint32_t changes = atomic_load_explicit(&emulator->changes, memory_order_acquire);
    if (changes == feed->changes)
        return;
    ew_mutex_lock(emulator->lock);
    if (emulator_goes_on(emulator, feed->trace))
        feed->enabled = emulator->sessions[feed->trace->session].enabled;
    ew_mutex_unlock(emulator->lock);
    feed->changes = changes;
}

/* Whether the session has enabled the provider of an event that is not of the kernel. */
static bool manifest_passes(struct feed *feed, const struct ew_record *record)
{
    uint32_t manifest = record->kind == EW_RECORD_MANIFEST && record->provider != NULL
                            ? etw_gate_manifest(record->provider)
                            : ETW_GATE_MANIFESTS;
    if (manifest == ETW_GATE_MANIFESTS || feed->emulator->config.own_mask)
        return true;
    update_enabled(feed);
    return (feed->enabled.manifests >> manifest & 1) != 0;
}

/* Whether the session has enabled such events. */
static bool passes(struct feed *feed, uint8_t group, uint8_t opcode)
{
    struct etw_emulator *emulator = feed->emulator;
    if (emulator->config.own_mask)
        return !feed->has_mask || etw_gate_mask_passes(feed->mask, group, opcode);
    update_enabled(feed);
    return etw_gate_passes(&feed->enabled, emulator_build(emulator), group, opcode);
}

/* False: the session is over. */
static bool before_event(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    const struct etw_emulator_config *config = &emulator->config;
    feed->count++;
    serve_flush(feed);
    bool hold = config->hold > 0 && feed->count % config->hold == 0;
    if (hold)
        wait_for_flush(emulator, feed->trace);
    if (feed->count % 256 != 0 && !hold && config->stop_after == 0)
        return true;
    ew_mutex_lock(emulator->lock);
    struct session *session = &emulator->sessions[feed->trace->session];
    bool on = emulator_goes_on(emulator, feed->trace);
    if (on && config->stop_after > 0 && feed->count > config->stop_after &&
        emulator->stopped_by_others < config->stop_times) {
        emulator->stopped_by_others++;
        emulator_end_session(emulator, session);
        on = false;
    }
    /* Events in the buffers of a session that ends are still delivered. */
    bool closed = feed->trace->closed;
    bool stopped_by_us = !on && !closed && emulator->stopped_by_others == 0;
    ew_mutex_unlock(emulator->lock);
    return on || (stopped_by_us && config->generate == 0);
}

static bool is_lost(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    const struct etw_emulator_config *config = &emulator->config;
    bool in_gap = feed->count >= config->lose_from && feed->count < config->lose_to;
    if (!in_gap && (config->lose_every == 0 || feed->count % config->lose_every != 0))
        return false;
    lose(feed);
    return true;
}

static void deliver(struct feed *feed, struct etw_event *event, uint64_t t_ns)
{
    set_time(feed->emulator, t_ns);
    deliver_all(feed, event);
    atomic_fetch_add_explicit(&feed->emulator->delivered, 1, memory_order_relaxed);
}

static void feed_record(struct feed *feed, const struct ew_record *record)
{
    bool marks = feed->emulator->config.lose_marks;
    if (record->kind == EW_RECORD_LOSS ||
        (record->kind == EW_RECORD_KERNEL && !passes(feed, record->group, record->opcode)) ||
        !manifest_passes(feed, record))
        return;
    bool lost = is_lost(feed);
    if (feed->ticks != 0)
        record = etw_move(&feed->moved, record, feed->ticks);
    uint64_t t_ns = to_ns(feed->emulator, record->t_raw);
    if (feed->buffers != NULL) {
        if (lost && marks)
            etw_buffers_mark(feed->buffers, record->cpu);
        else if (!lost)
            write_event(feed, record->cpu, record->t_raw, record->header,
                        (uint32_t)(record->payload - record->header) + record->payload_size, t_ns);
    } else if (!lost && etw_event_from(&feed->event, record)) {
        deliver(feed, &feed->event, t_ns);
    } else if (lost && marks) {
        etw_event_lost(&feed->event, record->t_raw, record->cpu);
        deliver_all(feed, &feed->event);
    }
}

static bool is_rundown(const struct ew_record *record)
{
    return record->kind == EW_RECORD_KERNEL && record->opcode == 3 &&
           (record->group == 3 || record->group == 5 || record->group == 0x14);
}

static void keep(struct feed *feed, const struct ew_record *record)
{
    size_t before = (size_t)(record->payload - record->header);
    struct kept *kept = malloc(sizeof *kept + before + record->payload_size);
    if (kept == NULL)
        abort();
    memcpy(kept->bytes, record->header, before + record->payload_size);
    kept->record = *record;
    kept->record.header = kept->bytes;
    kept->record.payload = kept->bytes + before;
    kept->next = NULL;
    if (feed->kept == NULL)
        feed->kept = kept;
    else
        feed->kept_last->next = kept;
    feed->kept_last = kept;
}

/* Logs the kept events at this time of the recording; opcode 4: as the rundown at the end. */
static void feed_kept(struct feed *feed, uint64_t raw, uint8_t opcode)
{
    for (struct kept *kept = feed->kept; kept != NULL; kept = kept->next) {
        struct etw_moved *moved = calloc(1, sizeof *moved);
        if (moved == NULL)
            abort();
        (void)etw_move(moved, &kept->record, raw - kept->record.t_raw);
        moved->bytes[6] = moved->record.opcode = opcode;
        feed_record(feed, &moved->record);
        free(moved);
    }
}

/* An event of the recording, with its rundown as configured. */
static void feed_next(struct feed *feed, const struct ew_record *record)
{
    const struct etw_emulator_config *config = &feed->emulator->config;
    uint64_t late_ns = config->late_rundown_ms * UINT64_C(1000000);
    bool rundown = is_rundown(record), late = config->late_rundown_ms != 0;
    if (rundown && (late || config->rundown_at_stop))
        keep(feed, record);
    if (rundown && late && feed->late_raw == 0)
        feed->late_raw = record->t_raw + from_ns(feed->emulator, late_ns) -
                         (config->clock == 2 ? (uint64_t)ETW_EMULATOR_START_FILETIME : 0);
    if (rundown && (late || config->no_rundown))
        return;
    if (feed->late_raw != 0 && record->t_raw >= feed->late_raw) {
        feed_kept(feed, feed->late_raw, 3);
        feed->late_raw = 0;
    }
    feed_record(feed, record);
}

static void find_mask(struct feed *feed)
{
    const struct etw_emulator_config *config = &feed->emulator->config;
    struct ew_etl_reader *reader = NULL;
    const struct ew_record *records;
    int count;
    if (!config->own_mask ||
        ew_etl_open_memory(config->recording, config->recording_size,
                           &(struct ew_etl_options){.workers = 1}, &reader, NULL) != 0)
        return;
    while ((count = ew_etl_next(reader, &records)) > 0)
        for (int i = 0; i < count; i++)
            feed->has_mask |= etw_gate_add_mask(feed->mask, &records[i]);
    ew_etl_close(reader);
}

static void feed_recording(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    struct ew_etl_reader *reader = NULL;
    const struct ew_record *records;
    struct ew_etl_options options = {.workers = 1};
    int count;
    find_mask(feed);
    if (ew_etl_open_memory(emulator->config.recording, emulator->config.recording_size, &options,
                           &reader, NULL) != 0)
        abort();
    feed->ticks = emulator->config.move_ticks;
    if (emulator->config.to_now)
        feed->ticks = from_ns(emulator, ew_os_raw_ns()) - ew_etl_file_info(reader, 0)->header_raw;
    bool on = true;
    while (on && (count = ew_etl_next(reader, &records)) > 0)
        for (int i = 0; i < count && (on = before_event(feed)); i++)
            feed_next(feed, &records[i]);
    ew_etl_close(reader);
}

/* No request is needed: the session has a timer. */
static void serve_timer(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    uint64_t now_ns = ew_os_raw_ns();
    if (now_ns < feed->timer_ns)
        return;
    feed->timer_ns = now_ns + feed->flush_s * UINT64_C(1000000000);
    ew_mutex_lock(emulator->lock);
    atomic_fetch_add(&emulator->flush_requested, 1);
    ew_mutex_unlock(emulator->lock);
}

static void sleep_until(struct feed *feed, uint64_t due_ns)
{
    struct etw_emulator *emulator = feed->emulator;
    serve_timer(feed);
    while (ew_os_raw_ns() < due_ns) {
        ew_mutex_lock(emulator->lock);
        (void)ew_cond_wait(emulator->changed, emulator->lock, 1);
        ew_mutex_unlock(emulator->lock);
        serve_flush(feed);
    }
}

static void feed_switch(struct feed *feed, struct etw_event *event, uint64_t i, uint64_t t_ns)
{
    const struct etw_emulator_config *config = &feed->emulator->config;
    uint64_t t_raw = from_ns(feed->emulator, t_ns);
    uint16_t cpu = (uint16_t)(i % config->cpu_count);
    uint8_t bytes[ETW_SWITCH_SIZE];
    if (!passes(feed, 5, 36) || is_lost(feed))
        return;
    if (feed->buffers != NULL) {
        etw_switch_bytes(bytes, t_raw, cpu, (uint32_t)(i / config->cpu_count));
        write_event(feed, cpu, t_raw, bytes, sizeof bytes, t_ns);
        return;
    }
    etw_event_set_switch(event, t_raw, cpu, (uint32_t)(i / config->cpu_count));
    deliver(feed, event, t_ns);
}

/* Switches between threads of one process, on each CPU in turn. */
static void feed_switches(struct feed *feed)
{
    const struct etw_emulator_config *config = &feed->emulator->config;
    struct etw_event event;
    uint64_t total = config->generate * config->cpu_count, began_ns = ew_os_raw_ns();
    etw_event_switch(&event);
    for (uint64_t i = 0; i < total && before_event(feed); i++) {
        uint64_t due_ns = config->rate_hz == 0 ? 0 : i * 1000000000 / config->rate_hz;
        if (config->rate_hz != 0 && i % 1024 == 0)
            sleep_until(feed, began_ns + due_ns);
        feed_switch(feed, &event, i, config->real_time ? began_ns + due_ns : 1000000 + i * 1000);
    }
}

static void write_all(void *arg)
{
    struct feed *feed = arg;
    if (feed->emulator->config.recording != NULL)
        feed_recording(feed);
    else
        feed_switches(feed);
    if (feed->buffers != NULL)
        etw_buffers_flush(feed->buffers, flush_raw(feed->emulator));
    atomic_store(&feed->over, true);
}

static void set_feeding(struct etw_emulator *emulator, bool feeding)
{
    ew_mutex_lock(emulator->lock);
    emulator->feeding = feeding;
    ew_cond_signal(emulator->changed);
    ew_mutex_unlock(emulator->lock);
}

/* One thread writes, this one delivers. */
static void deliver_while_writing(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    struct ew_thread_handle *writer = NULL;
    if (ew_os_thread_start(write_all, feed, &writer) != 0)
        abort();
    bool over;
    do {
        over = atomic_load(&feed->over);
        if (deliver_buffer(feed)) {
            over = false;
            continue;
        }
        ew_mutex_lock(emulator->lock);
        (void)ew_cond_wait(emulator->changed, emulator->lock, 1);
        ew_mutex_unlock(emulator->lock);
    } while (!over);
    ew_os_thread_join(writer);
}

static void feed_session(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    const struct etw_emulator_config *config = &emulator->config;
    const struct ew_etw_properties *p = &emulator->sessions[feed->trace->session].properties;
    uint64_t delay_ns = config->start_delay_ms * UINT64_C(1000000), began_ns = ew_os_raw_ns();
    feed->changes = UINT32_MAX;
    if (feed->trace->on_buffer != NULL || config->session_buffers)
        feed->buffers = etw_buffers_new(config->cpu_count, p->buffer_kb * 1024, p->min_buffers);
    if (feed->buffers != NULL)
        etw_buffers_delay(feed->buffers, config->slow_cpu_ms);
    feed->flush_s = p->flush_s == 0 ? 1 : p->flush_s;
    feed->timer_ns = began_ns + feed->flush_s * UINT64_C(1000000000);
    while (ew_os_raw_ns() - began_ns < delay_ns)
        ew_os_sleep_ms(5);
    if (feed->buffers != NULL && config->empty_lost_buffer) {
        etw_buffers_empty(feed->buffers, 0);
        lose(feed);
    }
    set_feeding(emulator, feed->buffers != NULL);
    if (feed->buffers != NULL && config->real_time)
        deliver_while_writing(feed);
    else
        write_all(feed);
    if (feed->buffers != NULL)
        etw_buffers_delay(feed->buffers, 0);
    while (feed->buffers != NULL && deliver_buffer(feed))
        ;
    set_feeding(emulator, false);
    wait_for_end(emulator, feed->trace);
    if (config->rundown_at_stop && !feed->trace->closed)
        feed_kept(feed, from_ns(emulator, etw_emulator_now_ns(emulator)), 4);
    if (feed->buffers != NULL)
        etw_buffers_flush(feed->buffers, 0);
    while (feed->buffers != NULL && deliver_buffer(feed))
        ;
    if (feed->buffers != NULL)
        etw_buffers_free(feed->buffers);
    while (feed->kept != NULL) {
        struct kept *next = feed->kept->next;
        free(feed->kept);
        feed->kept = next;
    }
}

uint32_t emulator_process(void *ctx, uint64_t handle)
{
    struct etw_emulator *emulator = ctx;
    struct feed *feed = calloc(1, sizeof *feed);
    if (feed == NULL)
        abort();
    feed->emulator = emulator;
    feed->trace = &emulator->traces[handle - 1];
    bool whole = feed->trace->on_buffer != NULL;
    ew_mutex_lock(emulator->lock);
    emulator->processing++;
    uint32_t rc = emulator_fault(emulator, ETW_CALL_PROCESS);
    bool mute = whole && emulator->config.mute_buffers;
    while (rc == 0 && mute && emulator_goes_on(emulator, feed->trace) && !emulator->released)
        (void)ew_cond_wait(emulator->changed, emulator->lock, -1);
    ew_mutex_unlock(emulator->lock);
    if (rc == 0 && !mute && !(whole && emulator->config.buffers_end))
        feed_session(feed);
    free(feed);
    ew_mutex_lock(emulator->lock);
    emulator->processing--;
    ew_cond_signal(emulator->changed);
    ew_mutex_unlock(emulator->lock);
    return rc;
}

uint32_t emulator_close_trace(void *ctx, uint64_t handle)
{
    struct etw_emulator *emulator = ctx;
    ew_mutex_lock(emulator->lock);
    uint32_t rc = emulator_fault(emulator, ETW_CALL_CLOSE);
    emulator->traces[handle - 1].closed = true; /* whatever it returns, delivery ends */
    ew_cond_signal(emulator->changed);
    ew_mutex_unlock(emulator->lock);
    return rc;
}
