/* SPDX-License-Identifier: MIT */
/*
 * The records of a live session, in batches, as the reader of recordings hands them out.
 *
 * ETW calls us on a thread that does nothing but copy (rings.h): whole buffers where Windows offers
 * them, else events. Another one asks the session to
 * hand over what it has, several times a second, and what it lost, once a second. Whoever takes the
 * records gets them in order of time up to the horizon: what happened before the last but one of
 * these requests has arrived.
 *
 * A session that somebody else stops is made anew, three times; each gap is a loss.
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
    const struct ew_etw_api *api; /* NULL: the real one */
    struct ew_etw_session_config session;
    const char *attach;  /* read this session, whosever it is, and change nothing; NULL: our own */
    uint32_t flush_ms;   /* 0: 100 */
    uint64_t pool_bytes; /* that may wait to be taken; 0: 32 MiB */
    bool no_buffers;     /* event by event, even where Windows offers whole buffers */
};

struct ew_etw_consumer;

int ew_etw_consumer_open(const struct ew_etw_config *config, struct ew_etw_consumer **ret_consumer,
                         struct ew_error *reterr);
/* Ends a session of ours. */
void ew_etw_consumer_close(struct ew_etw_consumer *consumer);

/*
 * The next records up to the horizon, valid until the next call; t_ns never goes back. Returns
 * their number, 0 if there are none now, or an error: ESTATE if the session is gone for good, in
 * which case everything that it told has been taken. Among them are those of kind LOSS: the payload
 * is the number of events lost (8 bytes), cpu is UINT16_MAX if nobody knows where. The number 0
 * stands for events that came too late: they were handed out, with the time of the one before.
 */
int ew_etw_consumer_next(struct ew_etw_consumer *consumer, const struct ew_record **ret_records,
                         struct ew_error *reterr);
/* Up to here everything has been handed out, once next has returned 0. */
uint64_t ew_etw_consumer_horizon_ns(const struct ew_etw_consumer *consumer);
/* Ends the session: what it still had comes with the next calls, and then nothing. */
void ew_etw_consumer_finish(struct ew_etw_consumer *consumer);

/* Who lists the processes of the machine: the caller closes it. ENOTSUP: nobody. */
int ew_etw_consumer_processes(const struct ew_etw_consumer *consumer,
                              struct ew_winpoll_system *ret_system);
uint64_t ew_etw_consumer_raw_to_ns(const struct ew_etw_consumer *consumer, uint64_t raw);

struct ew_etw_counts {
    uint64_t records;      /* handed out, without losses */
    uint64_t lost_session; /* events and buffers, as the session says */
    uint64_t lost_here;    /* because nobody took them in time */
    uint64_t late;         /* came after later ones had been handed out */
    uint32_t restarts;
    bool buffers; /* they come whole */
};
void ew_etw_consumer_counts(const struct ew_etw_consumer *consumer,
                            struct ew_etw_counts *ret_counts);
/* When the session had been started: who was there then has been logged by then. */
uint64_t ew_etw_consumer_started_ns(const struct ew_etw_consumer *consumer);
/* What is logged: enum ew_etw_kernel. Of another's session as far as it tells. */
uint32_t ew_etw_consumer_kernel(const struct ew_etw_consumer *consumer);
/* While it runs: other kinds of kernel events, and which have stacks (NULL: as they are). ESTATE:
 * the session is not ours, or over. */
int ew_etw_consumer_set_kernel(struct ew_etw_consumer *consumer, uint32_t kernel,
                               const uint32_t *stacks, struct ew_error *reterr);
/* What switches carry; of another's session not known: count 0, and no reasons. */
const struct ew_etw_pmc *ew_etw_consumer_pmc(const struct ew_etw_consumer *consumer);
uint32_t ew_etw_consumer_cpu_count(const struct ew_etw_consumer *consumer);

#endif
