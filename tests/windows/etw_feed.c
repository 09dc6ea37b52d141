/* SPDX-License-Identifier: MIT */
/*
 * The events of a session. They are handed over without the lock, on the thread that calls
 * `process`, as ETW does: from one thread, in order of time as far as they come together.
 */
#include <stdlib.h>
#include <string.h>

#include "etw_emulator_parts.h"
#include "etw_events.h"
#include "source/etl/reader.h"

uint64_t emulator_open_trace(void *ctx, struct ew_etw_logfile *logfile, uint32_t *ret_error)
{
    struct etw_emulator *emulator = ctx;
    uint64_t handle = EW_ETW_INVALID_HANDLE;
    ew_mutex_lock(emulator->lock);
    struct session *session = emulator_find(emulator, 0, logfile->session_name);
    if (session == NULL || emulator->trace_count == TRACES_ROOM) {
        *ret_error = EW_WIN_INSTANCE_NOT_FOUND;
    } else {
        struct trace *trace = &emulator->traces[emulator->trace_count];
        *trace = (struct trace){
            .used = true,
            .session = (uint32_t)(session - emulator->sessions),
            .serial = session->serial,
            .on_event = logfile->on_event,
            .context = logfile->context,
        };
        handle = ++emulator->trace_count;
        logfile->header.clock = emulator->config.clock;
        logfile->header.perf_frequency = emulator->config.perf_frequency;
        logfile->header.cpu_mhz = emulator->config.cpu_mhz;
        logfile->header.start_filetime = EMULATOR_START_FILETIME;
        logfile->header.cpu_count = emulator->config.cpu_count;
    }
    ew_mutex_unlock(emulator->lock);
    return handle;
}

static bool goes_on(struct etw_emulator *emulator, const struct trace *trace)
{
    const struct session *session = &emulator->sessions[trace->session];
    return session->used && session->serial == trace->serial && !trace->closed;
}

static void wait_for_end(struct etw_emulator *emulator, const struct trace *trace)
{
    ew_mutex_lock(emulator->lock);
    if (goes_on(emulator, trace)) {
        emulator->done = true;
        /* Time goes on. */
        atomic_fetch_add(&emulator->now_ns, 1000000000);
    }
    ew_cond_signal(emulator->changed);
    while (goes_on(emulator, trace))
        (void)ew_cond_wait(emulator->changed, emulator->lock, -1);
    ew_mutex_unlock(emulator->lock);
}

/* What is held goes out when somebody asks for it, or when the session ends. */
static void wait_for_flush(struct etw_emulator *emulator, const struct trace *trace)
{
    ew_mutex_lock(emulator->lock);
    uint32_t before = emulator->counts.flushes;
    while (goes_on(emulator, trace) && emulator->counts.flushes == before)
        (void)ew_cond_wait(emulator->changed, emulator->lock, -1);
    ew_mutex_unlock(emulator->lock);
}

static uint64_t to_ns(const struct etw_emulator *emulator, uint64_t raw)
{
    uint64_t hz = emulator->config.perf_frequency;
    if (emulator->config.clock == 2)
        return (raw - (uint64_t)EMULATOR_START_FILETIME) * 100;
    if (emulator->config.clock == 3)
        return raw * 1000 / emulator->config.cpu_mhz;
    return raw / hz * 1000000000 + raw % hz * 1000000000 / hz;
}

struct feed {
    struct etw_emulator *emulator;
    const struct trace *trace;
    uint64_t count;
};

/* False: the session is over. */
static bool before_event(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    const struct etw_emulator_config *config = &emulator->config;
    feed->count++;
    bool hold = config->hold > 0 && feed->count % config->hold == 0;
    if (hold)
        wait_for_flush(emulator, feed->trace);
    if (feed->count % 256 != 0 && !hold && config->stop_after == 0)
        return true;
    ew_mutex_lock(emulator->lock);
    struct session *session = &emulator->sessions[feed->trace->session];
    bool on = goes_on(emulator, feed->trace);
    if (on && config->stop_after > 0 && feed->count > config->stop_after &&
        emulator->stopped_by_others < config->stop_times) {
        emulator->stopped_by_others++;
        emulator_end_session(emulator, session);
        on = false;
    }
    /* What is in the buffers of a session that ends still comes. */
    bool closed = feed->trace->closed;
    bool stopped_by_us = !on && !closed && emulator->stopped_by_others == 0;
    ew_mutex_unlock(emulator->lock);
    return on || (stopped_by_us && config->generate == 0);
}

static bool is_lost(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    uint64_t every = emulator->config.lose_every;
    if (every == 0 || feed->count % every != 0)
        return false;
    atomic_fetch_add(&emulator->lost, 1);
    ew_mutex_lock(emulator->lock);
    emulator->sessions[feed->trace->session].properties.events_lost++;
    ew_mutex_unlock(emulator->lock);
    return true;
}

static void hand_over(struct feed *feed, struct etw_event *event)
{
    etw_event_context(event, feed->trace->context);
    feed->trace->on_event(event->bytes);
}

static void deliver(struct feed *feed, struct etw_event *event, uint64_t t_ns)
{
    struct etw_emulator *emulator = feed->emulator;
    if (!emulator->config.real_time)
        atomic_store(&emulator->now_ns, t_ns);
    atomic_store_explicit(&emulator->last_ns, t_ns, memory_order_relaxed);
    hand_over(feed, event);
    atomic_fetch_add_explicit(&emulator->delivered, 1, memory_order_relaxed);
}

static void feed_recording(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    struct ew_etl_reader *reader = NULL;
    const struct ew_record *records;
    struct ew_etl_options options = {.workers = 1};
    struct etw_event *event = calloc(1, sizeof *event);
    int count;
    if (event == NULL ||
        ew_etl_open_memory(emulator->config.recording, emulator->config.recording_size, &options,
                           &reader, NULL) != 0)
        abort();
    bool on = true;
    while (on && (count = ew_etl_next(reader, &records)) > 0)
        for (int i = 0; i < count && (on = before_event(feed)); i++) {
            uint64_t t_ns = to_ns(emulator, records[i].t_raw);
            if (!is_lost(feed)) {
                if (etw_event_from(event, &records[i]))
                    deliver(feed, event, t_ns);
            } else if (emulator->config.lose_marks) {
                etw_event_lost(event, records[i].t_raw, records[i].cpu);
                hand_over(feed, event);
            }
        }
    ew_etl_close(reader);
    free(event);
}

static void sleep_until(struct etw_emulator *emulator, uint64_t due_ns)
{
    ew_mutex_lock(emulator->lock);
    while (ew_os_raw_ns() < due_ns)
        (void)ew_cond_wait(emulator->changed, emulator->lock, 1);
    ew_mutex_unlock(emulator->lock);
}

/* Switches between threads of one process, on each CPU in turn. */
static void feed_switches(struct feed *feed)
{
    struct etw_emulator *emulator = feed->emulator;
    const struct etw_emulator_config *config = &emulator->config;
    struct etw_event *event = calloc(1, sizeof *event);
    uint64_t total = config->generate * config->cpu_count, began_ns = ew_os_raw_ns();
    if (event == NULL)
        abort();
    etw_event_switch(event);
    for (uint64_t i = 0; i < total && before_event(feed); i++) {
        uint64_t due_ns = config->rate_hz == 0 ? 0 : i * 1000000000 / config->rate_hz;
        if (config->rate_hz != 0 && i % 1024 == 0)
            sleep_until(emulator, began_ns + due_ns);
        uint64_t t_ns = config->real_time ? began_ns + due_ns : 1000000 + i * 1000;
        etw_event_set_switch(event, t_ns / (1000000000 / config->perf_frequency),
                             (uint16_t)(i % config->cpu_count), (uint32_t)(i / config->cpu_count));
        if (!is_lost(feed))
            deliver(feed, event, t_ns);
    }
    free(event);
}

uint32_t emulator_process(void *ctx, uint64_t handle)
{
    struct etw_emulator *emulator = ctx;
    struct feed feed = {.emulator = emulator, .trace = &emulator->traces[handle - 1]};
    if (emulator->config.recording != NULL)
        feed_recording(&feed);
    else
        feed_switches(&feed);
    wait_for_end(emulator, feed.trace);
    return 0;
}

uint32_t emulator_close_trace(void *ctx, uint64_t handle)
{
    struct etw_emulator *emulator = ctx;
    ew_mutex_lock(emulator->lock);
    emulator->traces[handle - 1].closed = true;
    ew_cond_signal(emulator->changed);
    ew_mutex_unlock(emulator->lock);
    return 0;
}
