/* SPDX-License-Identifier: MIT */
/*
 * Live events, decoded: a consumer opens a session and delivers every event with its provider,
 * name, process and fields, as etwatch_trace_next does for recordings.
 *
 *   Windows  an own session with any providers and kernel events, or any real-time session of this
 *            machine. The kernel's events and TraceLogging are decoded by etwatch; layouts of other
 *            providers are queried from Windows (TDH).
 *   Linux    the scheduler events of the kernel, by eBPF, of the provider "sched": switches,
 *            wake-ups, new tasks, execs and exits, named like their tracepoints.
 *
 * Filters apply as early as possible: level, keywords, event ids and pids of a provider in the
 * kernel (etwatch_provider), kinds of kernel events by not enabling the others; `providers`,
 * `events`, `pids` and `names` below in the library, before fields are decoded.
 *
 * The rules of etwatch.h hold. There is no thread of the library in it that calls back: events are
 * delivered inside etwatch_consumer_poll. A consumer may be used by one thread at a time, except
 * etwatch_consumer_stop. In its callbacks only etwatch_consumer_stats and etwatch_consumer_stop of
 * the same consumer may be called.
 */
#ifndef ETWATCH_CONSUMER_H
#define ETWATCH_CONSUMER_H

#include <etwatch/arrow.h>
#include <etwatch/etwatch.h>
#include <etwatch/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

struct etwatch_consumer;

enum etwatch_consumer_flag {
    ETWATCH_CONSUMER_NO_FIELDS = 1u << 0, /* events have neither fields nor payload */
    ETWATCH_CONSUMER_CMDLINE = 1u << 1,   /* command lines in fields, secrets masked; else null */
};

struct etwatch_consumer_options {
    uint32_t size;
    uint32_t flags; /* enum etwatch_consumer_flag */
    /* Windows: read this real-time session and do not change it; NULL: an own one. */
    const char *session;
    /* Windows: of the own session. Without `kernel` and providers: the kernel's processes and
     * threads. NULL: the same. */
    const struct etwatch_session_options *session_options;
    /* Only events that match any of each list; none: all. As in etwatch_table_options. */
    const char *const *providers;
    const char *const *events;
    uint32_t provider_count, event_count;
    /* Only events of these processes, without their descendants; none: all. Linux: a switch is of
     * the outgoing and of the incoming thread's process, a new task of its creator and of itself.
     */
    const uint32_t *pids;
    const char *const *names; /* "python" also matches python3.11 and python.exe; globs */
    uint32_t pid_count, name_count;
    /* As in etwatch_table_options. */
    const struct etwatch_event_filter *filters;
    uint32_t filter_count;
    uint32_t reserved;
};

/* One event; it and what it points to are valid until the function returns. */
typedef void (*etwatch_event_fn)(void *ctx, const struct etwatch_trace_event *event);

struct etwatch_consumer_stats {
    uint32_t size;
    uint32_t source;             /* enum etwatch_source: ETW or EBPF */
    uint64_t events;             /* taken from the session */
    uint64_t delivered;          /* of them, selected by the filters */
    uint64_t undecoded;          /* without a known layout */
    uint64_t lost;               /* by the session, or not taken in time */
    uint64_t sample_interval_ns; /* of CPU samples, whether or not the filters select the event with
                                    it; 0: unknown */
};

/* Starts the session. EPERM, ENOTSUP, ELIMIT, EINVAL, ENOENT: the message has the reason. There is
 * no fallback: polling has no events. */
ETWATCH_API int etwatch_consumer_open(const struct etwatch_consumer_options *options,
                                      struct etwatch_consumer **ret_consumer,
                                      struct etwatch_error_info *reterr);
/* Stops the session if it is an own one. NULL is fine. A stream of it ends, and the session with
 * the stream. */
ETWATCH_API void etwatch_consumer_free(struct etwatch_consumer *consumer);

/* Waits up to timeout_ms (-1: as long as it takes) for events, and calls on_event for each that has
 * arrived, in order of time. Returns their number: 0 after the timeout. ETWATCH_ESTATE:
 * the session has ended, and all of its events were delivered. */
ETWATCH_API int etwatch_consumer_poll(struct etwatch_consumer *consumer, int timeout_ms,
                                      etwatch_event_fn on_event, void *ctx,
                                      struct etwatch_error_info *reterr);
/* Requests the end, and ends the wait of a poll or of a stream's get_next; from any thread. The
 * next poll stops the session and delivers what it still had, then ETWATCH_ESTATE is returned. */
ETWATCH_API void etwatch_consumer_stop(struct etwatch_consumer *consumer);

/* The events as they come, with the columns of ETWATCH_TABLE_EVENTS, as an Arrow stream: get_next
 * waits up to timeout_ms for events; a batch without rows means that there were none. The
 * stream ends after etwatch_consumer_stop; a session that another program ends is an error of
 * get_next. Of the options only FIELDS, PAYLOAD, TIMESTAMPS and batch_rows apply; may
 * be NULL. Use either this or poll, and one stream at a time. */
ETWATCH_API int etwatch_consumer_stream(struct etwatch_consumer *consumer, int timeout_ms,
                                        const struct etwatch_table_options *options,
                                        struct ArrowArrayStream *ret_stream,
                                        struct etwatch_error_info *reterr);

ETWATCH_API int etwatch_consumer_stats(const struct etwatch_consumer *consumer,
                                       struct etwatch_consumer_stats *ret_stats);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_CONSUMER_H */
