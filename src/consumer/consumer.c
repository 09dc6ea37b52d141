/* SPDX-License-Identifier: MIT */
/*
 * The handle: options, filters, waiting, and delivery either to a function or into columns. Where
 * the events come from is the backend's business (etw.c, sched.c).
 */
#include "consumer/consumer.h"

#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "source/etw/consumer.h"
#include "source/etw/session_options.h"
#include "source/source.h"

enum { STEP_MS = 20, EVENTS_MAX = 1 << 17 };

/* ---------------------------------------------------------------------------- open */

static int take_filters(struct etwatch_consumer *consumer,
                        const struct etwatch_consumer_options *options, struct ew_error *reterr)
{
    struct etwatch_table_options words = {
        .providers = options->providers,
        .provider_count = options->provider_count,
        .events = options->events,
        .event_count = options->event_count,
        .filters = options->filters,
        .filter_count = options->filter_count,
        .pids = options->pids,
        .pid_count = options->pid_count,
        .names = options->names,
        .name_count = options->name_count,
    };
    if ((options->flags & ~(uint32_t)(ETWATCH_CONSUMER_NO_FIELDS | ETWATCH_CONSUMER_CMDLINE)) != 0)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "flags has an unknown bit");
    consumer->no_fields = (options->flags & ETWATCH_CONSUMER_NO_FIELDS) != 0;
    consumer->cmdline = (options->flags & ETWATCH_CONSUMER_CMDLINE) != 0;
    int rc = ew_export_name_filter_init(&consumer->names, &words);
    if (rc < 0)
        return ew_error_set(reterr, rc, 0, "%s",
                            rc == ETWATCH_EINVAL ? "a list or a name is NULL, or a filter is wrong"
                                                 : "out of memory");
    return ew_waiter_new(&consumer->waiter) < 0
               ? ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory")
               : 0;
}

static int open_etw(struct etwatch_consumer *consumer,
                    const struct etwatch_consumer_options *options, const struct ew_etw_config *etw,
                    struct ew_error *reterr)
{
    struct ew_etw_config config = {0};
    struct ew_session_options session;
    if (etw != NULL)
        config = *etw;
    config.attach = options->session;
    if (options->session_options == NULL)
        return ew_consumer_etw_open(&config, NULL, consumer->cmdline, &consumer->etw, reterr);
    if (options->session != NULL)
        return ew_error_set(reterr, ETWATCH_EINVAL, 0,
                            "session is read as it is: it cannot have session_options");
    int rc = ew_session_options_copy(&session, options->session_options, reterr);
    if (rc < 0)
        return rc;
    rc = ew_consumer_etw_open(&config, &session, consumer->cmdline, &consumer->etw, reterr);
    ew_session_options_done(&session);
    return rc;
}

int ew_consumer_open_with(const struct etwatch_consumer_options *given,
                          const struct ew_etw_config *etw, struct etwatch_consumer **ret_consumer,
                          struct etwatch_error_info *reterr)
{
    struct etwatch_consumer_options options = {.size = sizeof options};
    struct ew_error why = {0};
    if (ret_consumer == NULL)
        return ETWATCH_EINVAL;
    int rc =
        given == NULL ? 0 : ew_sized_in(&options, sizeof options, given, "consumer options", &why);
    struct etwatch_consumer *consumer = ew_calloc(1, sizeof *consumer);
    if (rc == 0 && consumer == NULL)
        rc = ew_error_set(&why, ETWATCH_ENOMEM, 0, "out of memory");
    if (consumer != NULL)
        atomic_store(&consumer->refs, 1);
    if (rc == 0)
        rc = take_filters(consumer, &options, &why);
    bool events_are_etw = etw != NULL || options.session != NULL ||
                          options.session_options != NULL ||
                          ew_source_native()->id == ETWATCH_SOURCE_ETW;
    if (rc == 0 && events_are_etw)
        rc = open_etw(consumer, &options, etw, &why);
    if (rc < 0)
        ew_error_out(reterr, &why, why.code);
    else if (!events_are_etw)
        rc = ew_consumer_sched_open(consumer, &consumer->sched, reterr);
    if (rc < 0) {
        etwatch_consumer_free(consumer);
        return rc;
    }
    *ret_consumer = consumer;
    return 0;
}

int etwatch_consumer_open(const struct etwatch_consumer_options *options,
                          struct etwatch_consumer **ret_consumer, struct etwatch_error_info *reterr)
{
    return ew_consumer_open_with(options, NULL, ret_consumer, reterr);
}

void etwatch_consumer_free(struct etwatch_consumer *consumer)
{
    if (consumer == NULL)
        return;
    if (consumer->waiter != NULL)
        etwatch_consumer_stop(consumer); /* ends the streams */
    ew_consumer_unref(consumer);
}

void ew_consumer_unref(struct etwatch_consumer *consumer)
{
    if (atomic_fetch_sub(&consumer->refs, 1) > 1)
        return;
    ew_consumer_etw_close(consumer->etw);
    ew_consumer_sched_close(consumer->sched);
    ew_export_name_filter_done(&consumer->names);
    if (consumer->waiter != NULL)
        ew_waiter_free(consumer->waiter);
    ew_free(consumer);
}

/* ------------------------------------------------------------------------ delivery */

bool ew_consumer_wants(const struct etwatch_consumer *consumer,
                       const struct etwatch_trace_event *event)
{
    return ew_export_name_filter_event(&consumer->names, event);
}

void ew_consumer_deliver(struct etwatch_consumer *consumer, const struct etwatch_trace_event *event)
{
    consumer->delivered++;
    consumer->room -= consumer->room > 0;
    consumer->on_event(consumer->ctx, event);
}

/* Stops the session and delivers what is left, at most as much as there is room for. */
static int finish(struct etwatch_consumer *consumer, struct ew_error *reterr)
{
    int rc = 0;
    if (consumer->sched != NULL) {
        rc = ew_consumer_sched_finish(consumer->sched);
        consumer->ended = true;
    } else {
        ew_consumer_etw_finish(consumer->etw);
        do {
            rc = ew_consumer_etw_drain(consumer->etw, consumer, reterr);
        } while (rc > 0 && consumer->room > 0);
        consumer->ended = rc <= 0;
    }
    return rc;
}

/* One step: what has arrived, waiting at most until until_ns. */
static int step(struct etwatch_consumer *consumer, uint64_t until_ns,
                struct etwatch_error_info *reterr)
{
    struct ew_error why = {0};
    uint64_t now_ns = ew_os_raw_ns();
    uint64_t left_ms = until_ns > now_ns ? (until_ns - now_ns) / 1000000 + 1 : 0;
    int wait_ms = left_ms < STEP_MS * 5 ? (int)left_ms : STEP_MS * 5, rc;
    if (atomic_load(&consumer->stopping))
        rc = finish(consumer, &why);
    else if (consumer->sched != NULL)
        return ew_consumer_sched_drain(consumer->sched, wait_ms, reterr);
    else
        rc = ew_consumer_etw_drain(consumer->etw, consumer, &why);
    if (rc < 0)
        ew_error_out(reterr, &why, rc);
    else if (rc == 0 && wait_ms > 0 && !consumer->ended)
        (void)ew_waiter_wait(consumer->waiter, now_ns + (uint64_t)STEP_MS * 1000000, -1);
    return rc;
}

static int refuse(struct etwatch_error_info *reterr)
{
    struct ew_error why = {0};
    int rc = ew_error_set(&why, ETWATCH_ESTATE, 0, "the consumer was stopped");
    ew_error_out(reterr, &why, rc);
    return rc;
}

int etwatch_consumer_poll(struct etwatch_consumer *consumer, int timeout_ms,
                          etwatch_event_fn on_event, void *ctx, struct etwatch_error_info *reterr)
{
    if (consumer == NULL || on_event == NULL)
        return ETWATCH_EINVAL;
    if (consumer->ended || consumer->on_event != NULL) /* stopped, or inside its own callback */
        return refuse(reterr);
    uint64_t until_ns =
        timeout_ms < 0 ? UINT64_MAX : ew_os_raw_ns() + (uint64_t)timeout_ms * UINT64_C(1000000);
    uint64_t before = consumer->delivered;
    consumer->on_event = on_event;
    consumer->ctx = ctx;
    consumer->room = EVENTS_MAX;
    int rc;
    do {
        rc = step(consumer, until_ns, reterr);
    } while (rc >= 0 && consumer->delivered == before && !consumer->ended &&
             ew_os_raw_ns() < until_ns);
    consumer->on_event = NULL;
    uint64_t count = consumer->delivered - before;
    if (rc < 0 && count == 0)
        return rc;
    if (count == 0 && consumer->ended)
        return refuse(reterr);
    return count > INT_MAX ? INT_MAX : (int)count; /* an error is reported by the next call */
}

void etwatch_consumer_stop(struct etwatch_consumer *consumer)
{
    if (consumer == NULL)
        return;
    atomic_store(&consumer->stopping, true);
    ew_waiter_wake(consumer->waiter);
}

int etwatch_consumer_stats(const struct etwatch_consumer *consumer,
                           struct etwatch_consumer_stats *ret_stats)
{
    if (consumer == NULL || ret_stats == NULL)
        return ETWATCH_EINVAL;
    struct etwatch_consumer_stats stats = {
        .source = consumer->etw != NULL ? ETWATCH_SOURCE_ETW : ETWATCH_SOURCE_EBPF,
        .events = consumer->events,
        .delivered = consumer->delivered,
        .undecoded = consumer->undecoded,
        .lost = consumer->lost,
        .sample_interval_ns = consumer->sample_interval_ns,
    };
    return ew_sized_out(ret_stats, &stats, sizeof stats);
}
