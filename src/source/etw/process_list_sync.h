/* SPDX-License-Identifier: MIT */
/*
 * What is read beside the events of a live session: the list of all processes, once a second.
 *
 * It has what no event carries (memory, pools, handles, objects of the desktop, and in which mode
 * the clock's ticks found a process), which is told of those that ran; and after a loss of events
 * it says who is there, so that whoever came or went unnoticed is found again.
 *
 * A list is as of the moment at which it was made, while events come later than they happen: it
 * waits until they have come that far.
 */
#ifndef EW_SOURCE_ETW_PROCESS_LIST_SYNC_H
#define EW_SOURCE_ETW_PROCESS_LIST_SYNC_H

#include <stdint.h>

#include "source/poll_windows/poll.h"
#include "tally/tally.h"

struct ew_list_sync;

/* The system is closed with it, also if this fails. begun_ns: since then events tell who comes. */
int ew_list_sync_new(const struct ew_winpoll_system *system, uint64_t begun_ns,
                     struct ew_list_sync **ret_list_sync);
void ew_list_sync_free(struct ew_list_sync *list_sync); /* may be NULL */

/* Makes a list if it is time for one and none waits. Returns when it, or the one that waits, was
 * made; UINT64_MAX: there is none. */
uint64_t ew_list_sync_read(struct ew_list_sync *list_sync, uint64_t now_ns);
/* Events up to the list's time have been added up: tells what it says. */
void ew_list_sync_emit(struct ew_list_sync *list_sync, struct ew_tally *tally,
                       const struct ew_facts *facts);
/* Events were lost up to here. */
void ew_list_sync_note_loss(struct ew_list_sync *list_sync, uint64_t t_ns);

/* ETWATCH_HAS bits that it adds. */
uint64_t ew_list_sync_available(const struct ew_list_sync *list_sync);
/* It tells cycles too, where the list has them. False: it has not. */
bool ew_list_sync_count_cycles(struct ew_list_sync *list_sync);

#endif
