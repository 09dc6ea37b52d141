/* SPDX-License-Identifier: MIT */
/*
 * run --py-spy: samples of py-spy, joined with spans on time and thread. py-spy states times since
 * its own start, so the hook lets a thread call functions that are named after the time of the
 * call: the latest start that is possible with all of them is the one that is used.
 */
#ifndef EW_CLI_PY_SPY_H
#define EW_CLI_PY_SPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/span.h>

#include "base/buf.h"

enum { EW_PY_SPY_HZ = 200, EW_PY_SPY_TEXT_MAX = 1 << 29 };

/* What a thread executed from from_us on, until its next one; stack UINT32_MAX: nothing. */
struct ew_py_spy_part {
    uint32_t pid, tid;
    uint64_t from_us; /* since the start of py-spy */
    uint32_t stack;
};

struct ew_py_spy {
    struct ew_py_spy_part *parts; /* by pid, tid and time, after ew_py_spy_parse */
    size_t part_count, part_size;
    struct ew_py_spy_table *stacks;
    uint64_t start_ns; /* CLOCK_BOOTTIME of its time 0; 0: unknown */
    uint64_t lost;     /* events that could not be read or found no room */
};

/* Reads what py-spy wrote (-f chrometrace -t). 0, or a negative code. */
int ew_py_spy_parse(struct ew_py_spy *spy, const void *text, size_t size);
void ew_py_spy_done(struct ew_py_spy *spy);

/* A table of texts with weights; texts are numbered from 0. */
struct ew_py_spy_table;
struct ew_py_spy_table *ew_py_spy_table_new(void);
void ew_py_spy_table_free(struct ew_py_spy_table *table);
/* The number of a text, or UINT32_MAX: no room. Adds to its weight. */
uint32_t ew_py_spy_table_add(struct ew_py_spy_table *table, const char *text, size_t len,
                             uint64_t weight);

/* Adds the samples of a span's time, with what its thread did meanwhile, to `folded`. */
void ew_py_spy_join(const struct ew_py_spy *spy, const struct etwatch_spans *spans,
                    const struct etwatch_span *span, int64_t unix_minus_raw_ns,
                    struct ew_py_spy_table *folded);
/* Lines "NAME of SESSION;STATE;FRAME;... MICROSECONDS". */
void ew_py_spy_write(const struct ew_py_spy_table *folded, struct ew_buf *out);

#endif
