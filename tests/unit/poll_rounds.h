/* SPDX-License-Identifier: MIT */
/*
 * Helpers for the tests of the poll source: they present a recorded tree to it in each round and
 * keep the facts that it reports. The root is a symbolic link that points to another tree in each
 * round.
 */
#ifndef POLL_ROUNDS_H
#define POLL_ROUNDS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "source/poll/poll.h"
#include "test.h"

enum { FACTS_MAX = 64 };

struct rounds {
    char folder[64], root[80];
    struct ew_poll *poll;
    struct ew_facts facts;
    uint64_t now_ns, horizon_ns;
    /* The facts of the last round. */
    struct ew_process_fact processes[FACTS_MAX];
    struct ew_reading readings[FACTS_MAX];
    char thread_names[FACTS_MAX][EW_NAME_SIZE];
    int process_count, reading_count;
    uint64_t lost;
    int order[2 * FACTS_MAX]; /* pid, or -pid for a reading, in order of arrival */
    int order_count;
};

static inline void take_process(void *ctx, const struct ew_process_fact *fact)
{
    struct rounds *rounds = ctx;
    CHECK(rounds->process_count < FACTS_MAX);
    rounds->processes[rounds->process_count++] = *fact;
    rounds->order[rounds->order_count++] = (int)fact->pid;
}

static inline void take_reading(void *ctx, const struct ew_reading *reading)
{
    struct rounds *rounds = ctx;
    CHECK(rounds->reading_count < FACTS_MAX);
    int at = rounds->reading_count++;
    rounds->readings[at] = *reading;
    (void)snprintf(rounds->thread_names[at], EW_NAME_SIZE, "%s",
                   reading->thread_name ? reading->thread_name : "");
    rounds->order[rounds->order_count++] = -(int)reading->pid;
}

static inline void take_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct rounds *rounds = ctx;
    CHECK_EQ_UINT(loss->stage, ETWATCH_LOSS_TABLE);
    rounds->lost += loss->count;
}

static inline void rounds_done(struct rounds *rounds)
{
    ew_source_poll.close(&rounds->poll->base.source);
    (void)unlink(rounds->root);
    (void)rmdir(rounds->folder);
}

/* Points the root to a tree below tests/golden/proc. */
static inline void point_root_at(struct rounds *rounds, const char *tree)
{
    char relative[128];
    (void)snprintf(relative, sizeof relative, "golden/proc/%s", tree);
    (void)unlink(rounds->root);
    CHECK_EQ_INT(symlink(test_path(relative), rounds->root), 0);
}

static inline void rounds_open(struct rounds *rounds, const char *tree,
                               const struct ew_filter *filter, bool threads, uint32_t max)
{
    static const struct ew_poll_units units = {.ticks_per_s = 100, .page_bytes = 4096};
    memset(rounds, 0, sizeof *rounds);
    (void)snprintf(rounds->folder, sizeof rounds->folder, "/tmp/etwatch-poll-XXXXXX");
    CHECK(mkdtemp(rounds->folder) != NULL);
    (void)snprintf(rounds->root, sizeof rounds->root, "%s/proc", rounds->folder);
    point_root_at(rounds, tree);
    struct ew_source_config config = {
        .filter = *filter, .threads = threads, .max_processes = max, .proc_root = rounds->root};
    struct ew_error error = {.code = 0};
    int rc = ew_poll_open(&config, &units, &rounds->poll, &error);
    CHECK_EQ_STR(error.message, "");
    CHECK_EQ_INT(rc, 0);
    rounds->facts = (struct ew_facts){
        .ctx = rounds, .process = take_process, .reading = take_reading, .loss = take_loss};
    rounds->now_ns = UINT64_C(100000000000);
}

/* Drains once, 100 ms after the previous round. */
static inline void drain_again(struct rounds *rounds)
{
    struct ew_error error;
    rounds->process_count = rounds->reading_count = rounds->order_count = 0;
    rounds->now_ns += 100000000;
    CHECK_EQ_INT(ew_source_poll.drain(&rounds->poll->base.source, rounds->now_ns, &rounds->facts,
                                      &rounds->horizon_ns, &error),
                 0);
    CHECK_EQ_UINT(rounds->horizon_ns, rounds->now_ns);
}

static inline void drain_tree(struct rounds *rounds, const char *tree)
{
    point_root_at(rounds, tree);
    drain_again(rounds);
}

static inline const struct ew_process_fact *process_fact(const struct rounds *rounds, uint32_t pid,
                                                         enum ew_process_kind kind)
{
    for (int i = 0; i < rounds->process_count; i++)
        if (rounds->processes[i].pid == pid && rounds->processes[i].kind == kind)
            return &rounds->processes[i];
    return NULL;
}

static inline const struct ew_reading *reading_of(const struct rounds *rounds, uint32_t pid,
                                                  uint32_t tid)
{
    for (int i = 0; i < rounds->reading_count; i++)
        if (rounds->readings[i].pid == pid && rounds->readings[i].tid == tid)
            return &rounds->readings[i];
    return NULL;
}

static inline uint64_t undecoded(const struct rounds *rounds)
{
    struct ew_source_stats stats;
    ew_source_poll.stats(&rounds->poll->base.source, &stats);
    return stats.undecoded;
}

static const struct ew_filter everything = {.all = true};

#endif
