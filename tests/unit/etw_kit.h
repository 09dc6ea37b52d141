/* SPDX-License-Identifier: MIT */
/*
 * Helpers for the tests of live ETW: the output as text that can be compared, and recordings that
 * the emulator plays back.
 */
#ifndef ETW_KIT_H
#define ETW_KIT_H

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etl_kit.h"
#include "etw_emulator.h"
#include "facts_kit.h"
#include "scenario.h"
#include "source/etw/consumer.h"

enum { START_RAW = 1000000, TICK_NS = 100, FLUSH_MS = 2, CPU_MHZ = 2400 };
#define START_NS ((uint64_t)START_RAW * TICK_NS)
/* Every kernel event that the synthetic machine logs. */
#define ALL_KERNEL ((UINT32_C(1) << EW_ETW_KERNEL_COUNT) - 1)

/* ------------------------------------------------------------------------- delivery */

/* What the current emulator offers: only single events, or whole buffers as well. */
static bool offers_buffers;

static inline struct etw_emulator *make_emulator(const struct etw_emulator_config *config)
{
    struct etw_emulator_config both = *config;
    both.offers_buffers = offers_buffers;
    return etw_emulator_new(&both);
}

/*
 * Runs the test once with single events and once with whole buffers; the result must be the same.
 */
#define TEST_BOTH_DELIVERIES(sentence)     \
    static void sentence##_this_way(void); \
    TEST(sentence)                         \
    {                                      \
        offers_buffers = false;            \
        test_row("event by event");        \
        sentence##_this_way();             \
        offers_buffers = true;             \
        test_row("whole buffers");         \
        sentence##_this_way();             \
    }                                      \
    static void sentence##_this_way(void)

/* ----------------------------------------------------------------------- recordings */

struct recorded_scenario {
    struct recorded file;
    struct etl_memory memory;
    uint64_t start_raw, last_raw, events;
    uint32_t clock;
};

/* START_NS in the unit of each clock. */
static inline uint64_t start_by(uint32_t clock)
{
    if (clock == 2)
        return UINT64_C(134116992000000000) + START_RAW;
    return clock == 3 ? START_NS * CPU_MHZ / 1000 : START_RAW;
}

static inline void record_as(struct recorded_scenario *recorded,
                             const struct etl_scenario_config *given, uint32_t clock, bool compress)
{
    struct ew_etl_writer *writer;
    struct etl_truth truth;
    struct etl_scenario_config what = *given;
    memset(recorded, 0, sizeof *recorded);
    what.pointer_size = what.pointer_size ? what.pointer_size : 8;
    recorded->clock = clock;
    recorded->start_raw = start_by(clock);
    what.start_raw = recorded->start_raw + 50;
    struct ew_etl_writer_config config = {.cpu_count = what.cpu_count,
                                          .buffer_bytes = 16384,
                                          .pointer_size = what.pointer_size,
                                          .clock = clock,
                                          .compress = compress,
                                          .start_raw = recorded->start_raw,
                                          .ctx = &recorded->memory,
                                          .write = etl_memory_write,
                                          .rewrite = etl_memory_rewrite};
    CHECK_EQ_INT(ew_etl_writer_new(&config, &writer), 0);
    CHECK_EQ_INT(etl_scenario_run(&what, writer, &truth), 0);
    CHECK_EQ_INT(ew_etl_writer_finish(writer, truth.last_raw, 0, 0), 0);
    recorded->last_raw = truth.last_raw;
    recorded->events = truth.events;
    ew_etl_writer_free(writer);
    etl_truth_free(&truth);
    write_recorded(&recorded->file, &recorded->memory);
}

static inline void record(struct recorded_scenario *recorded,
                          const struct etl_scenario_config *given)
{
    record_as(recorded, given, 1, false);
}

static inline void forget(struct recorded_scenario *recorded)
{
    etl_memory_free(&recorded->memory);
    remove_recorded(&recorded->file);
}

#endif
