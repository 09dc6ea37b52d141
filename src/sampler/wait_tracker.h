/* SPDX-License-Identifier: MIT */
/*
 * What a switch alone does not say of the thread that takes the CPU: how long it had been off it,
 * how long of that it was ready, and who woke it. Events of the scheduler in the order of time in,
 * the same events with that filled in out. No clock; bounded: a thread that finds no room, or whose
 * last switch was not seen, has nothing filled in.
 */
#ifndef EW_SAMPLER_WAIT_TRACKER_H
#define EW_SAMPLER_WAIT_TRACKER_H

#include <etwatch/etwatch.h>

enum { EW_PAIRING_THREADS_MAX = 65536 };

struct ew_wait_tracker;

int ew_wait_tracker_new(struct ew_wait_tracker **ret_tracker);
void ew_wait_tracker_free(struct ew_wait_tracker *wait_tracker);

/* Fills wait_ns, ready_ns, waker_pid and waker_tid of a switch; of others they are unknown. */
void ew_wait_tracker_event(struct ew_wait_tracker *wait_tracker, struct etwatch_event *event);
/* Events were lost: who does what is not known any more. */
void ew_wait_tracker_gap(struct ew_wait_tracker *wait_tracker);

#endif
