/* SPDX-License-Identifier: MIT */
/* Internal header of src/consumer: the handle and its two backends. */
#ifndef EW_CONSUMER_CONSUMER_H
#define EW_CONSUMER_CONSUMER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <etwatch/consumer.h>

#include "base/error.h"
#include "export/export.h"
#include "os/os.h"

struct ew_consumer_etw;
struct ew_consumer_sched;
struct ew_etw_config;
struct ew_session_options;

struct etwatch_consumer {
    _Atomic uint32_t refs; /* the caller's and that of each stream */
    bool no_fields, cmdline;
    struct ew_event_name_filter names;
    struct ew_waiter *waiter;
    _Atomic bool stopping;
    bool ended;                  /* after stop: everything was delivered */
    struct ew_consumer_etw *etw; /* one of both */
    struct ew_consumer_sched *sched;

    etwatch_event_fn on_event; /* of the current call */
    void *ctx;
    int room;        /* events that the current call may still deliver */
    uint64_t events; /* taken so far */
    uint64_t delivered, undecoded, lost;
    uint64_t sample_interval_ns;
};

/* Opens with another ETW than the system's, for tests; etw may be NULL. */
int ew_consumer_open_with(const struct etwatch_consumer_options *options,
                          const struct ew_etw_config *etw, struct etwatch_consumer **ret_consumer,
                          struct etwatch_error_info *reterr);

/* Frees it with the last reference. */
void ew_consumer_unref(struct etwatch_consumer *consumer);
/* Whether the filters select an event. */
bool ew_consumer_wants(const struct etwatch_consumer *consumer,
                       const struct etwatch_trace_event *event);
/* Delivers an event. */
void ew_consumer_deliver(struct etwatch_consumer *consumer,
                         const struct etwatch_trace_event *event);

/* ------------------------------------------------------------------------------- etw */

/* session_options may be NULL. cmdline: fields have command lines. */
int ew_consumer_etw_open(const struct ew_etw_config *config,
                         struct ew_session_options *session_options, bool cmdline,
                         struct ew_consumer_etw **ret_etw, struct ew_error *reterr);
void ew_consumer_etw_close(struct ew_consumer_etw *etw);
/* Stops the session: the next drains deliver what it still had. */
void ew_consumer_etw_finish(struct ew_consumer_etw *etw);
/* Delivers what has arrived. The number of events taken, or an error. */
int ew_consumer_etw_drain(struct ew_consumer_etw *etw, struct etwatch_consumer *consumer,
                          struct ew_error *reterr);

/* ----------------------------------------------------------------------------- sched */

int ew_consumer_sched_open(struct etwatch_consumer *consumer, struct ew_consumer_sched **ret_sched,
                           struct etwatch_error_info *reterr);
void ew_consumer_sched_close(struct ew_consumer_sched *sched);
/* Stops and delivers what is left. */
int ew_consumer_sched_finish(struct ew_consumer_sched *sched);
/* Delivers what has arrived; waits up to timeout_ms. The number of events taken, or an error. */
int ew_consumer_sched_drain(struct ew_consumer_sched *sched, int timeout_ms,
                            struct etwatch_error_info *reterr);

#endif
