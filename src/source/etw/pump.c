/* SPDX-License-Identifier: MIT */
/*
 * Owns a trace handle and two threads. The lock guards the status that the flushing thread updates.
 * The processing thread takes no lock while it processes; it ends when the session ends or the
 * trace is closed. It is ended by Windows alone, so waiting for it is bounded: a thread that does
 * not come back keeps its pump and its rings.
 */
#include "source/etw/etw.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "os/os.h"
#include "source/etw/convert.h"

static const uint64_t query_every_ns = 1000000000;
static const uint64_t mute_ns = 2000000000; /* whole buffers must have come by then */
enum {
    CLOCK_QPC = 1,
    CLOCK_SYSTEM = 2,
    END_WAIT_MS = 3000,   /* a halted session delivers what it still has */
    CLOSE_WAIT_MS = 2000, /* after CloseTrace */
    BUFFER_TIME = 0x10,   /* WMI_BUFFER_HEADER.TimeStamp */
    BUFFER_HEADER = 72,
};

struct ew_etw_pump {
    struct ew_etw_pump_config config;
    uint64_t trace;
    struct ew_thread_handle *processor, *flusher;
    _Atomic bool ended;
    _Atomic uint32_t result;      /* of ProcessTrace, once it has ended */
    _Atomic uint64_t arrived_raw; /* the latest time up to which something has arrived */
    _Atomic bool has_arrived;
    uint64_t opened_ns;
    bool buffers; /* delivered as whole buffers */

    struct ew_mutex *lock;
    struct ew_cond *wake, *over;
    bool stopping, processed;
    struct ew_etw_pump_status status;
    uint64_t flushed_ns; /* time of the last flush that Windows accepted */
};

/* ------------------------------------------------------------------- called by ETW */

static void note_arrival(struct ew_etw_pump *pump, uint64_t raw)
{
    if (raw > atomic_load_explicit(&pump->arrived_raw, memory_order_relaxed))
        atomic_store_explicit(&pump->arrived_raw, raw, memory_order_release);
    atomic_store_explicit(&pump->has_arrived, true, memory_order_release);
}

static void on_event(const void *event_record)
{
    const uint8_t *record = event_record;
    struct ew_etw_pump *pump;
    uint64_t raw;
    memcpy(&pump, record + EW_ER_CONTEXT, sizeof pump);
    memcpy(&raw, record + EW_ER_TIME, sizeof raw);
    ew_etw_rings_put(pump->config.rings, record);
    note_arrival(pump, raw);
}

static int32_t on_buffer(const void *buffer, uint32_t size, const void *info, void *context)
{
    struct ew_etw_pump *pump = context;
    uint64_t raw = 0;
    (void)info;
    ew_etw_rings_put_buffer(pump->config.rings, buffer, size);
    if (size >= BUFFER_HEADER)
        memcpy(&raw, (const uint8_t *)buffer + BUFFER_TIME, sizeof raw);
    note_arrival(pump, raw);
    return 1;
}

static void process_events(void *arg)
{
    struct ew_etw_pump *pump = arg;
    const struct ew_etw_api *api = pump->config.api;
    uint32_t result = api->process(api->ctx, pump->trace);
    atomic_store_explicit(&pump->result, result, memory_order_relaxed);
    atomic_store_explicit(&pump->ended, true, memory_order_release);
    ew_mutex_lock(pump->lock);
    pump->processed = true;
    ew_cond_signal(pump->over);
    ew_mutex_unlock(pump->lock);
}

/* ----------------------------------------------------------------------- flushing */

/* False: the query failed, nothing new is known. */
static bool query_losses(const struct ew_etw_pump_config *config, struct ew_etw_lost *ret_lost)
{
    struct ew_etw_session_info info;
    if (config->session != NULL) {
        *ret_lost = ew_etw_session_lost(config->session);
        return true;
    }
    if (ew_etw_session_query(config->api, config->name, &info, NULL) != 0)
        return false;
    *ret_lost = (struct ew_etw_lost){
        .events = info.events_lost,
        .buffers = (uint64_t)info.log_buffers_lost + info.real_time_buffers_lost,
    };
    return true;
}

static void flush_once(struct ew_etw_pump *pump, uint64_t *queried_ns)
{
    const struct ew_etw_pump_config *config = &pump->config;
    uint64_t now_ns = config->api->now_ns(config->api->ctx);
    struct ew_etw_lost lost = {0, 0};
    bool flushed = config->session != NULL && ew_etw_session_flush(config->session) == 0;
    bool query = now_ns - *queried_ns >= query_every_ns && query_losses(config, &lost);
    ew_mutex_lock(pump->lock);
    if (flushed) {
        pump->status.flushed_ns = pump->flushed_ns;
        pump->flushed_ns = now_ns;
    }
    pump->status.lagging_ns = now_ns > config->lag_ns ? now_ns - config->lag_ns : 0;
    if (query) {
        *queried_ns = now_ns;
        if (lost.events > pump->status.lost.events)
            pump->status.lost.events = lost.events;
        if (lost.buffers > pump->status.lost.buffers)
            pump->status.lost.buffers = lost.buffers;
        pump->status.lost_ns = now_ns;
    }
    ew_mutex_unlock(pump->lock);
}

static void flush_loop(void *arg)
{
    struct ew_etw_pump *pump = arg;
    uint64_t queried_ns = 0;
    ew_mutex_lock(pump->lock);
    while (!pump->stopping) {
        (void)ew_cond_wait(pump->wake, pump->lock, (int)pump->config.flush_ms);
        if (pump->stopping)
            break;
        ew_mutex_unlock(pump->lock);
        flush_once(pump, &queried_ns);
        ew_mutex_lock(pump->lock);
    }
    ew_mutex_unlock(pump->lock);
}

/* ----------------------------------------------------------------- start and stop */

/*
 * Prefers whole buffers: the rest of the work is then that of reading a recording. They do not
 * carry the start time of a session that counts cycles; the header event does.
 */
static bool open_buffers(struct ew_etw_pump *pump, const uint16_t *name,
                         struct ew_etw_logfile_header *header)
{
    const struct ew_etw_api *api = pump->config.api;
    struct ew_etw_open_options options = {
        .modes = EW_ETW_OPEN_RAW_TIMESTAMP, .on_buffer = on_buffer, .buffer_context = pump};
    uint32_t error = 0;
    if (pump->config.no_buffers)
        return false;
    pump->trace = api->open_buffers(api->ctx, name, &options, header, &error);
    if (pump->trace == EW_ETW_INVALID_HANDLE)
        return false;
    if (header->clock == CLOCK_SYSTEM || (header->clock == CLOCK_QPC && header->perf_frequency > 0))
        return true;
    (void)api->close(api->ctx, pump->trace);
    pump->trace = EW_ETW_INVALID_HANDLE;
    return false;
}

static int open_trace(struct ew_etw_pump *pump, struct ew_etw_logfile_header *ret_header,
                      struct ew_error *reterr)
{
    const struct ew_etw_api *api = pump->config.api;
    uint16_t wide[EW_ETW_NAME_MAX];
    struct ew_etw_logfile logfile;
    uint32_t error = 0;
    memset(&logfile, 0, sizeof logfile);
    if (!ew_etw_wide_name(pump->config.name, wide))
        return ew_etw_fail(reterr, EW_WIN_INSTANCE_NOT_FOUND, "cannot open the session",
                           pump->config.name);
    pump->buffers = open_buffers(pump, wide, ret_header);
    if (pump->buffers)
        return 0;
    logfile.session_name = wide;
    logfile.process_mode =
        EW_ETW_PROCESS_REAL_TIME | EW_ETW_PROCESS_RAW_TIMESTAMP | EW_ETW_PROCESS_EVENT_RECORD;
    logfile.on_event = on_event;
    logfile.context = pump;
    pump->trace = api->open(api->ctx, &logfile, &error);
    if (pump->trace == EW_ETW_INVALID_HANDLE)
        return ew_etw_fail(reterr, error, "cannot open the session", pump->config.name);
    *ret_header = logfile.header;
    return 0;
}

static int start_threads(struct ew_etw_pump *pump, struct ew_error *reterr)
{
    int error = ew_mutex_new(&pump->lock);
    if (error == 0)
        error = ew_cond_new(&pump->wake);
    if (error == 0)
        error = ew_cond_new(&pump->over);
    pump->opened_ns = ew_os_raw_ns();
    if (error == 0)
        error = ew_os_thread_start(process_events, pump, &pump->processor);
    if (error == 0)
        error = ew_os_thread_start(flush_loop, pump, &pump->flusher);
    if (error != 0)
        return ew_error_set(reterr, error, 0, "cannot start a thread: %s", etwatch_strerror(error));
    return 0;
}

int ew_etw_pump_start(const struct ew_etw_pump_config *config,
                      struct ew_etw_logfile_header *ret_header, struct ew_etw_pump **ret_pump,
                      struct ew_error *reterr)
{
    struct ew_etw_pump *pump = ew_calloc(1, sizeof *pump);
    if (pump == NULL)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    pump->config = *config;
    pump->trace = EW_ETW_INVALID_HANDLE;
    int error = open_trace(pump, ret_header, reterr);
    if (error == 0)
        error = start_threads(pump, reterr);
    if (error != 0) {
        (void)ew_etw_pump_stop(pump, false);
        return error;
    }
    *ret_pump = pump;
    return 0;
}

void ew_etw_pump_stop_flushing(struct ew_etw_pump *pump)
{
    if (pump == NULL || pump->flusher == NULL)
        return;
    ew_mutex_lock(pump->lock);
    pump->stopping = true;
    ew_cond_signal(pump->wake);
    ew_mutex_unlock(pump->lock);
    ew_os_thread_join(pump->flusher);
    pump->flusher = NULL;
}

/* Whether the processing thread has come back. */
static bool wait_processed(struct ew_etw_pump *pump, int timeout_ms)
{
    uint64_t until_ns = ew_os_raw_ns() + (uint64_t)timeout_ms * 1000000;
    ew_mutex_lock(pump->lock);
    while (!pump->processed && ew_os_raw_ns() < until_ns)
        (void)ew_cond_wait(pump->over, pump->lock, timeout_ms);
    bool processed = pump->processed;
    ew_mutex_unlock(pump->lock);
    return processed;
}

bool ew_etw_pump_stop(struct ew_etw_pump *pump, bool halted)
{
    if (pump == NULL)
        return true;
    const struct ew_etw_api *api = pump->config.api;
    bool processed = pump->processor == NULL;
    ew_etw_pump_stop_flushing(pump);
    if (halted && !processed)
        processed = wait_processed(pump, END_WAIT_MS);
    if (pump->trace != EW_ETW_INVALID_HANDLE)
        (void)api->close(api->ctx, pump->trace);
    if (!processed && !wait_processed(pump, CLOSE_WAIT_MS))
        return false;
    ew_os_thread_join(pump->processor);
    ew_cond_free(pump->wake);
    ew_cond_free(pump->over);
    ew_mutex_free(pump->lock);
    ew_free(pump);
    return true;
}

bool ew_etw_pump_ended(const struct ew_etw_pump *pump)
{
    return atomic_load_explicit(&pump->ended, memory_order_acquire);
}

uint32_t ew_etw_pump_result(const struct ew_etw_pump *pump)
{
    return atomic_load_explicit(&pump->result, memory_order_relaxed);
}

bool ew_etw_pump_is_mute(const struct ew_etw_pump *pump)
{
    if (!pump->buffers || atomic_load_explicit(&pump->has_arrived, memory_order_acquire))
        return false;
    return ew_etw_pump_ended(pump) || ew_os_raw_ns() - pump->opened_ns >= mute_ns;
}

void ew_etw_pump_status(struct ew_etw_pump *pump, struct ew_etw_pump_status *ret_status)
{
    ew_mutex_lock(pump->lock);
    *ret_status = pump->status;
    ew_mutex_unlock(pump->lock);
    ret_status->arrived_raw = atomic_load_explicit(&pump->arrived_raw, memory_order_acquire);
}

bool ew_etw_pump_has_buffers(const struct ew_etw_pump *pump)
{
    return pump->buffers;
}
