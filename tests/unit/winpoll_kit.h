/* SPDX-License-Identifier: MIT */
/* A simulated Windows for the poll source: synthetic lists, and the reported facts as text. */
#ifndef WINPOLL_KIT_H
#define WINPOLL_KIT_H

#include "test.h"

#include <stdio.h>
#include <string.h>

#include "listing_kit.h"
#include "source/poll_windows/poll.h"

enum { TOLD_MAX = 256 };

/* ------------------------------------------------------------- the simulated system */

struct machine {
    struct list list;
    uint32_t held, released, closed;
    uint32_t refused_pid;
    struct ew_winpoll_last last;
    bool last_known;
    uint32_t gauge_queries;
    uint64_t thread_cycles; /* of every thread; 0: no thread can be opened */
    uint32_t thread_queries;
    uint64_t zero; /* of the raw clock, as of now */
    /* The reported facts as text: one word per fact. */
    char reported[4096];
    struct ew_reading readings[TOLD_MAX];
    struct ew_process_fact facts[TOLD_MAX];
    size_t reading_count, fact_count;
    uint64_t lost;
};

static inline int list_processes(void *ctx, struct ew_listing *ret_listing, struct ew_error *reterr)
{
    struct machine *m = ctx;
    (void)reterr;
    ew_listing_init(ret_listing, m->list.bytes, m->list.size, ADDRESS);
    return 0;
}

static inline void *hold(void *ctx, uint32_t pid)
{
    struct machine *m = ctx;
    if (pid == m->refused_pid)
        return NULL;
    m->held++;
    return m;
}

static inline bool last(void *ctx, void *held, struct ew_winpoll_last *ret_last)
{
    struct machine *m = ctx;
    CHECK(held == m);
    *ret_last = m->last;
    return m->last_known;
}

static inline uint32_t more(void *ctx, void *held, uint64_t gauge[EW_GAUGE_COUNT])
{
    struct machine *m = ctx;
    CHECK(held == m);
    gauge[EW_G_gdi_objects] = 10 + m->gauge_queries++;
    gauge[EW_G_affinity] = 3;
    return EW_HAS_G(gdi_objects) | EW_HAS_G(affinity);
}

static inline void release(void *ctx, void *held)
{
    struct machine *m = ctx;
    CHECK(held == m);
    m->released++;
}

static inline void *hold_thread(void *ctx, uint32_t tid)
{
    struct machine *m = ctx;
    (void)tid;
    m->thread_queries++;
    m->held += m->thread_cycles != 0;
    return m->thread_cycles != 0 ? m : NULL;
}

static inline uint64_t thread_cycles(void *ctx, void *held)
{
    struct machine *m = ctx;
    CHECK(held == m);
    return m->thread_cycles;
}

static inline uint64_t zero_now(void *ctx)
{
    return ((struct machine *)ctx)->zero;
}

static inline void close_list(void *ctx)
{
    ((struct machine *)ctx)->closed++;
}

static inline void note(struct machine *m, const char *what, uint32_t id)
{
    size_t len = strlen(m->reported);
    int more = snprintf(m->reported + len, sizeof m->reported - len, "%s%s %u", len > 0 ? ", " : "",
                        what, id);
    CHECK(more > 0 && len + (size_t)more < sizeof m->reported);
}

static inline void on_process(void *ctx, const struct ew_process_fact *fact)
{
    static const char *const kinds[] = {"?", "seen", "start", "exec", "rename", "exit"};
    struct machine *m = ctx;
    CHECK(m->fact_count < TOLD_MAX);
    m->facts[m->fact_count++] = *fact;
    note(m, kinds[fact->kind], fact->pid);
}

static inline void on_reading(void *ctx, const struct ew_reading *reading)
{
    struct machine *m = ctx;
    CHECK(m->reading_count < TOLD_MAX);
    m->readings[m->reading_count++] = *reading;
    const char *what = reading->tid == 0                   ? "read"
                       : reading->kind == EW_READING_FINAL ? "final"
                                                           : "thread";
    note(m, what, reading->tid == 0 ? reading->pid : reading->tid);
}

static inline void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    ((struct machine *)ctx)->lost += loss->count;
}

static inline struct ew_source *open_on(struct machine *m, const struct ew_filter *filter,
                                        bool threads, uint32_t max)
{
    struct ew_source_config config = {.filter = *filter, .threads = threads, .max_processes = max};
    struct ew_winpoll_system system = {.ctx = m,
                                       .list = list_processes,
                                       .hold = hold,
                                       .last = last,
                                       .slow = more,
                                       .slow_has = EW_METRIC_SET(ETWATCH_M_gdi_objects),
                                       .release = release,
                                       .hold_thread = hold_thread,
                                       .thread_cycles = thread_cycles,
                                       .close = close_list,
                                       .raw_zero = ZERO,
                                       .zero = zero_now};
    struct ew_source *source = NULL;
    struct ew_error error = {0};
    CHECK_EQ_INT(ew_winpoll_open(&config, &system, &source, &error), 0);
    return source;
}

/* The facts of one round. */
static inline const char *round_of(struct machine *m, struct ew_source *source, uint64_t now_ns)
{
    struct ew_facts facts = {
        .ctx = m, .process = on_process, .reading = on_reading, .loss = on_loss};
    struct ew_error error = {0};
    uint64_t horizon_ns = 0;
    m->reported[0] = '\0';
    m->fact_count = m->reading_count = 0;
    CHECK_EQ_INT(source->ops->drain(source, now_ns, &facts, &horizon_ns, &error), 0);
    CHECK_EQ_UINT(horizon_ns, now_ns);
    return m->reported;
}

static inline void close_on(struct machine *m, struct ew_source *source)
{
    source->ops->close(source);
    CHECK_EQ_UINT(m->held, m->released);
    CHECK_EQ_UINT(m->closed, 1);
}

static struct machine machine;

static inline struct machine *new_machine(const struct row *rows, size_t count)
{
    memset(&machine, 0, sizeof machine);
    machine.zero = ZERO;
    make_list(&machine.list, rows, count);
    return &machine;
}

#define ROWS(...)                      \
    (const struct row[]){__VA_ARGS__}, \
        sizeof((const struct row[]){__VA_ARGS__}) / sizeof(struct row)
#define RELIST(m, ...) make_list(&(m)->list, ROWS(__VA_ARGS__))

static const struct row idle = {.pid = 0, .name = "", .threads = 2, .user = 999999};
static const struct ew_filter all = {.all = true};

#endif
