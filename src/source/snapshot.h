/* SPDX-License-Identifier: MIT */
/*
 * A single look at what is there, without a source that watches: told in the same facts. Every
 * system has its own in the folder of its poll source.
 */
#ifndef EW_SOURCE_SNAPSHOT_H
#define EW_SOURCE_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/facts.h"

/* SEEN with all that is known of it; with threads, a reading of each of its threads as well.
 * Others may be told too. ETWATCH_ENOENT: it is not there. */
int ew_snapshot_process(uint32_t pid, bool threads, const struct ew_facts *facts,
                        struct ew_error *reterr);
/* SEEN for every process, of which the identity and the parent are known. */
int ew_snapshot_all(const struct ew_facts *facts, struct ew_error *reterr);

#endif
