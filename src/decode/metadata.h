/* SPDX-License-Identifier: MIT */
/*
 * Event metadata that merging tools (PerfView, xperf) add to a recording so that it can be decoded
 * on another machine: what TDH said about each kind of event, and the maps of their values.
 */
#ifndef EW_DECODE_METADATA_H
#define EW_DECODE_METADATA_H

#include "decode/store.h"
#include "model/record.h"

/* The record is of the metadata class {bbccf6c1-6cd1-48c4-80ff-839482e37671}. */
bool ew_metadata_is(const struct ew_record *record);
/* Puts what it says into the store. 1: something new; 0: nothing, or not readable. */
int ew_metadata_learn(struct ew_store *store, const struct ew_record *record);

#endif
