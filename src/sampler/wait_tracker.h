/* SPDX-License-Identifier: MIT */
/*
 * Adds what a switch alone does not contain about the incoming thread: how long it was off the CPU,
 * how long of that it was runnable, and which thread woke it. Takes scheduler events in time order
 * and fills in these fields. No clock; bounded: for a thread beyond the limit, or without a known
 * last switch, they stay unknown.
 */
#ifndef EW_SAMPLER_WAIT_TRACKER_H
#define EW_SAMPLER_WAIT_TRACKER_H

#include <etwatch/etwatch.h>

enum { EW_WAIT_TRACKER_THREADS_MAX = 65536 };

struct ew_wait_tracker;

int ew_wait_tracker_new(struct ew_wait_tracker **ret_tracker);
void ew_wait_tracker_free(struct ew_wait_tracker *wait_tracker);

/* Fills wait_ns, ready_ns, waker_pid and waker_tid of a switch; sets them to unknown in other
 * events. */
void ew_wait_tracker_event(struct ew_wait_tracker *wait_tracker, struct etwatch_event *event);
/* Events were lost: the state of all threads is unknown. */
void ew_wait_tracker_gap(struct ew_wait_tracker *wait_tracker);

#endif
