/* SPDX-License-Identifier: MIT */
/*
 * Scheduler events of Linux, as a monitor delivers them: with the names and fields of the kernel's
 * tracepoints, and what the monitor adds (how long the incoming thread had waited, how a thread
 * ended). The monitor's samples are not used; their interval is the longest possible.
 */
#include "consumer/consumer.h"

#include <string.h>

#include "base/alloc.h"
#include "recording/trace.h"

enum { LATENCY_MS = 100 };

struct ew_consumer_sched {
    struct etwatch_consumer *consumer;
    struct etwatch_monitor *monitor;
};

static void put(struct etwatch_field *fields, uint32_t *count, const char *name, uint64_t value)
{
    fields[(*count)++] =
        (struct etwatch_field){.name = name, .type = ETWATCH_FIELD_U64, .v.u = value};
}

/* What a recording does not have. */
static void put_more(const struct etwatch_event *event, struct etwatch_field *fields,
                     uint32_t *count)
{
    if (event->kind == ETWATCH_EVENT_SWITCH) {
        put(fields, count, "next_tgid", event->next_pid);
        if (event->wait_ns != UINT64_MAX)
            put(fields, count, "wait_ns", event->wait_ns);
        if (event->ready_ns != UINT64_MAX)
            put(fields, count, "ready_ns", event->ready_ns);
    } else if (event->kind == ETWATCH_EVENT_EXIT && event->exit_code >= 0) {
        uint32_t status = (uint32_t)event->exit_code;
        put(fields, count, "exit_code", status >> 8 & 0xFF);
        put(fields, count, "exit_signal", status & 0x7F);
    }
}

/* A switch and a new task are about two processes: either may be selected. */
static bool wants(const struct etwatch_consumer *consumer, const struct etwatch_event *from,
                  const struct etwatch_trace_event *event)
{
    if (ew_consumer_wants(consumer, event))
        return true;
    if (from->kind != ETWATCH_EVENT_SWITCH && from->kind != ETWATCH_EVENT_FORK)
        return false;
    struct etwatch_trace_event other = *event;
    other.pid = from->next_pid;
    other.process = from->next_name;
    return ew_consumer_wants(consumer, &other);
}

static void on_events(void *ctx, const struct etwatch_events *batch)
{
    struct ew_consumer_sched *sched = ctx;
    struct etwatch_consumer *consumer = sched->consumer;
    struct etwatch_field fields[EW_SCHED_FIELDS_MAX + 4];
    for (size_t i = 0; i < batch->count; i++) {
        const struct etwatch_event *from = etwatch_event_at(batch, i);
        struct etwatch_trace_event event = {.size = sizeof event};
        ew_recording_sched_describe(from, &event);
        event.t_ns = from->t_ns;
        consumer->events++;
        if (consumer->on_event == NULL || !wants(consumer, from, &event))
            continue;
        if (!consumer->no_fields) {
            event.field_count = ew_recording_sched_fields(from, fields);
            put_more(from, fields, &event.field_count);
            event.fields = fields;
        }
        ew_consumer_deliver(consumer, &event);
    }
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct ew_consumer_sched *sched = ctx;
    if (loss->stage == ETWATCH_LOSS_STREAM || loss->stage == ETWATCH_LOSS_LIFECYCLE)
        sched->consumer->lost += loss->count;
}

int ew_consumer_sched_open(struct etwatch_consumer *consumer, struct ew_consumer_sched **ret_sched,
                           struct etwatch_error_info *reterr)
{
    struct ew_consumer_sched *sched = ew_calloc(1, sizeof *sched);
    if (sched == NULL)
        return ETWATCH_ENOMEM;
    sched->consumer = consumer;
    struct etwatch_config config = {
        .size = sizeof config,
        .flags = ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_KERNEL_THREADS | ETWATCH_CONFIG_EVENTS |
                 ETWATCH_CONFIG_EVENTS_ALL | ETWATCH_CONFIG_NO_FALLBACK | ETWATCH_CONFIG_NO_BUDGET,
        .hz = 0.1,
        .latency_ms = LATENCY_MS,
    };
    etwatch_metric_set_add(&config.metrics, ETWATCH_M_cpu_ns);
    struct etwatch_callbacks callbacks = {
        .size = sizeof callbacks, .ctx = sched, .on_events = on_events, .on_loss = on_loss};
    int rc = etwatch_monitor_new(&config, &callbacks, &sched->monitor, reterr);
    if (rc == 0)
        rc = etwatch_monitor_open(sched->monitor, reterr);
    if (rc < 0) {
        ew_consumer_sched_close(sched);
        return rc;
    }
    *ret_sched = sched;
    return 0;
}

void ew_consumer_sched_close(struct ew_consumer_sched *sched)
{
    if (sched == NULL)
        return;
    etwatch_monitor_free(sched->monitor);
    ew_free(sched);
}

int ew_consumer_sched_finish(struct ew_consumer_sched *sched)
{
    return etwatch_monitor_stop(sched->monitor);
}

int ew_consumer_sched_drain(struct ew_consumer_sched *sched, int timeout_ms,
                            struct etwatch_error_info *reterr)
{
    uint64_t before = sched->consumer->events;
    int rc = etwatch_monitor_poll(sched->monitor, timeout_ms, reterr);
    uint64_t taken = sched->consumer->events - before;
    return rc < 0 ? rc : taken > 0 ? 1 : 0;
}
