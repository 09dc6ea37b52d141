/* SPDX-License-Identifier: MIT */
/*
 * Delivers the records of a live session in batches, like the reader of recordings.
 *
 * ETW calls a thread that only copies (rings.h): whole buffers where Windows supports it, else
 * single events. A second thread flushes the session several times a second and queries its losses
 * once a second. Records are taken in time order up to the horizon: every event before the last but
 * one flush has arrived.
 *
 * A session that another program stops is restarted, at most three times; each gap is reported as a
 * loss.
 */
#ifndef EW_SOURCE_ETW_CONSUMER_H
#define EW_SOURCE_ETW_CONSUMER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/facts.h"
#include "model/record.h"
#include "source/etw/controller.h"

struct ew_etw_config {
    const struct ew_etw_api *api; /* NULL: the real functions */
    struct ew_etw_session_config session;
    const char *attach;  /* only read this session, started by any program; NULL: start our own */
    uint32_t flush_ms;   /* 0: 100 */
    uint64_t pool_bytes; /* limit of records not taken yet; 0: 32 MiB */
    bool no_buffers;     /* single events, even where Windows supports whole buffers */
};

struct ew_etw_consumer;

int ew_etw_consumer_open(const struct ew_etw_config *config, struct ew_etw_consumer **ret_consumer,
                         struct ew_error *reterr);
/* Stops the session if it is ours. */
void ew_etw_consumer_close(struct ew_etw_consumer *consumer);

/*
 * The next records up to the horizon, valid until the next call; t_ns never decreases. Returns
 * their number, 0 if none are available now, or an error: ESTATE if the session has ended for good
 * and everything from it has been taken. Records of kind LOSS are among them: the payload is the
 * number of lost events (8 bytes), cpu is UINT16_MAX if unknown. The number 0 stands for events
 * that arrived late: they were delivered with the time of the preceding record.
 */
int ew_etw_consumer_next(struct ew_etw_consumer *consumer, const struct ew_record **ret_records,
                         struct ew_error *reterr);
/* Once next has returned 0, every record up to this time has been delivered. */
uint64_t ew_etw_consumer_horizon_ns(const struct ew_etw_consumer *consumer);
/* Stops the session. The next calls return what it still had, then nothing. */
void ew_etw_consumer_finish(struct ew_etw_consumer *consumer);

/* Lists the processes of the machine; the caller closes it. ENOTSUP: not available. */
int ew_etw_consumer_processes(const struct ew_etw_consumer *consumer,
                              struct ew_winpoll_system *ret_system);
uint64_t ew_etw_consumer_raw_to_ns(const struct ew_etw_consumer *consumer, uint64_t raw);

struct ew_etw_counts {
    uint64_t records;      /* delivered, without losses */
    uint64_t lost_session; /* events and buffers, as counted by the session */
    uint64_t lost_here;    /* not taken in time */
    uint64_t late;         /* arrived after later ones had been delivered */
    uint32_t restarts;
    bool buffers; /* delivered as whole buffers */
};
void ew_etw_consumer_counts(const struct ew_etw_consumer *consumer,
                            struct ew_etw_counts *ret_counts);
/* When the session had been started: preexisting processes have been logged by then. */
uint64_t ew_etw_consumer_started_ns(const struct ew_etw_consumer *consumer);
/* What is logged (enum ew_etw_kernel); for another program's session, as far as it is known. */
uint32_t ew_etw_consumer_kernel(const struct ew_etw_consumer *consumer);
/* Changes the logged kernel events of a running session, and those that carry stacks (NULL:
 * unchanged). ESTATE: the session is not ours, or has ended. */
int ew_etw_consumer_set_kernel(struct ew_etw_consumer *consumer, uint32_t kernel,
                               const uint32_t *stacks, struct ew_error *reterr);
/* The counters that switches carry; for another program's session unknown: count 0, no reasons. */
/* What Windows refused, and the session goes on without; NULL: nothing. */
const struct ew_error *ew_etw_consumer_refused(const struct ew_etw_consumer *consumer);
/* Whether our own session has enabled this provider; false with a session of another program. */
bool ew_etw_consumer_has_provider(const struct ew_etw_consumer *consumer, const uint8_t guid[16]);
const struct ew_etw_pmc *ew_etw_consumer_pmc(const struct ew_etw_consumer *consumer);
uint32_t ew_etw_consumer_cpu_count(const struct ew_etw_consumer *consumer);

#endif
