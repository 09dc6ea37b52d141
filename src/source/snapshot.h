/* SPDX-License-Identifier: MIT */
/*
 * Reads the running processes once, without opening a source, and reports them as facts. Each
 * system implements it in the folder of its poll source.
 */
#ifndef EW_SOURCE_SNAPSHOT_H
#define EW_SOURCE_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/facts.h"

/* Emits SEEN with everything known of the process; with threads, also a reading of each of its
 * threads. Facts of other processes may be emitted too. ETWATCH_ENOENT: there is no such
 * process. */
int ew_snapshot_process(uint32_t pid, bool threads, const struct ew_facts *facts,
                        struct ew_error *reterr);
/* Emits SEEN for every process; only identity and parent are known. */
int ew_snapshot_all(const struct ew_facts *facts, struct ew_error *reterr);

#endif
