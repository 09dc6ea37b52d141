/* SPDX-License-Identifier: MIT */
/*
 * Helpers for the tally tests: short names for events, a tally that is fed by hand, and a pipeline
 * from events to samples and their JSON. Times are microseconds since FIRST: US(12).
 */
#ifndef TALLY_KIT_H
#define TALLY_KIT_H

#include <stdio.h>
#include <string.h>

#include <etwatch/sink.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "sampler/sampler.h"
#include "tally/tally.h"
#include "test.h"

#define FIRST UINT64_C(7000000000)
#define US(x) (FIRST + (uint64_t)(x)*1000u)
#define NO EW_NO_ID

enum { READY = 1, TERMINATED = 4, WAITING = 5 };

static inline struct ew_event_text kit_text(const char *text)
{
    return (struct ew_event_text){.bytes = (const uint8_t *)text, .len = (uint32_t)strlen(text)};
}

static inline struct ew_event kit_event(enum ew_event_kind kind, uint64_t t_ns, uint32_t pid,
                                        uint32_t tid)
{
    return (struct ew_event){.kind = (uint8_t)kind, .t_ns = t_ns, .pid = pid, .tid = tid};
}

static inline struct ew_event ev_switch(uint64_t t_ns, uint16_t cpu, uint32_t old_tid,
                                        uint32_t new_tid, uint8_t old_state)
{
    struct ew_event e = kit_event(EW_EVENT_SWITCH, t_ns, NO, old_tid);
    e.cpu = cpu;
    e.u.cswitch.new_tid = new_tid;
    e.u.cswitch.old_state = old_state;
    e.u.cswitch.new_priority = 8;
    return e;
}

static inline struct ew_event ev_ready(uint64_t t_ns, uint16_t cpu, uint32_t tid)
{
    struct ew_event e = kit_event(EW_EVENT_READY, t_ns, NO, tid);
    e.cpu = cpu;
    return e;
}

static inline struct ew_event ev_sample(uint64_t t_ns, uint16_t cpu, uint32_t tid)
{
    struct ew_event e = kit_event(EW_EVENT_SAMPLE, t_ns, NO, tid);
    e.cpu = cpu;
    e.u.sample.count = 1;
    return e;
}

static inline struct ew_event ev_sample_interval(uint64_t t_ns, uint64_t interval_100ns)
{
    struct ew_event e = kit_event(EW_EVENT_SAMPLE_INTERVAL, t_ns, NO, NO);
    e.u.interval.interval_100ns = interval_100ns;
    return e;
}

/* A DPC or ISR from began_ns to t_ns. */
static inline struct ew_event ev_irq(uint64_t began_ns, uint64_t t_ns, uint16_t cpu, bool is_isr)
{
    struct ew_event e = kit_event(EW_EVENT_INTERRUPT, t_ns, NO, NO);
    e.cpu = cpu;
    e.u.interrupt.began_raw = began_ns;
    e.u.interrupt.is_isr = is_isr;
    return e;
}

static inline struct ew_event ev_process(enum ew_event_kind kind, uint64_t t_ns, uint32_t pid,
                                         uint32_t parent_pid, const char *name)
{
    struct ew_event e = kit_event(kind, t_ns, pid, NO);
    e.u.process.parent_pid = parent_pid;
    e.u.process.session_id = 1;
    e.u.process.image = kit_text(name);
    return e;
}

static inline struct ew_event ev_thread(enum ew_event_kind kind, uint64_t t_ns, uint32_t pid,
                                        uint32_t tid)
{
    return kit_event(kind, t_ns, pid, tid);
}

static inline struct ew_event ev_io(enum ew_event_kind kind, uint64_t t_ns, uint32_t tid,
                                    uint64_t irp, uint32_t bytes)
{
    struct ew_event e = kit_event(kind, t_ns, NO, tid);
    e.u.io.irp = irp;
    e.u.io.bytes = bytes;
    return e;
}

static inline struct ew_event ev_net(enum ew_event_kind kind, uint64_t t_ns, uint32_t pid,
                                     uint32_t tid, uint32_t bytes)
{
    struct ew_event e = kit_event(kind, t_ns, pid, tid);
    e.u.net.bytes = bytes;
    return e;
}

static inline struct ew_event ev_fault(uint64_t t_ns, uint16_t cpu, uint32_t pid, uint32_t tid,
                                       uint8_t opcode)
{
    struct ew_event e = kit_event(EW_EVENT_FAULT, t_ns, pid, tid);
    e.cpu = cpu;
    e.u.fault.opcode = opcode;
    return e;
}

/* ------------------------------------------------------------------------ a tally */

static inline uint64_t kit_raw_to_ns(void *ctx, const struct ew_record *record, uint64_t raw)
{
    (void)ctx;
    (void)record;
    return raw;
}

/* Working sets of a synthetic event: entries of the kit. */
static struct ew_working_set kit_sets[8];
static uint32_t kit_set_count;

static inline bool kit_working_set(const struct ew_record *record, uint32_t i,
                                   struct ew_working_set *ret)
{
    (void)record;
    if (i >= kit_set_count)
        return false;
    *ret = kit_sets[i];
    return true;
}

static inline struct ew_tally_config tally_config(void)
{
    return (struct ew_tally_config){.first_ns = FIRST,
                                    .epoch_ns = FIRST,
                                    .raw_to_ns = kit_raw_to_ns,
                                    .working_set = kit_working_set};
}

static inline struct ew_tally *tally_open(struct ew_tally_config config)
{
    struct ew_tally *tally = NULL;
    CHECK_EQ_INT(ew_tally_new(&config, &tally), 0);
    return tally;
}

static inline void feed_to(struct ew_tally *tally, struct ew_event event,
                           const struct ew_facts *facts)
{
    struct ew_record record = {.t_ns = event.t_ns, .cpu = event.cpu, .pid = NO, .tid = NO};
    CHECK_EQ_INT(ew_tally_event(tally, &record, &event, facts), 0);
}

static inline void feed(struct ew_tally *tally, struct ew_event event)
{
    feed_to(tally, event, NULL);
}

/* ----------------------------------------------------------------------- totals */

struct kit_totals {
    struct ew_total total[512];
    char name[512][64];
    size_t count;
};

static struct kit_totals kit_totals;

static inline int kit_on_total(void *ctx, const struct ew_total *total)
{
    struct kit_totals *to = ctx;
    CHECK(to->count < 512);
    to->total[to->count] = *total;
    (void)snprintf(to->name[to->count], sizeof to->name[0], "%s", total->name);
    to->total[to->count].name = to->name[to->count];
    to->count++;
    return 0;
}

static inline void take_totals(const struct ew_tally *tally, bool threads)
{
    kit_totals.count = 0;
    CHECK_EQ_INT(ew_tally_totals(tally, threads, kit_on_total, &kit_totals), 0);
}

/* The n-th entry of this process and thread (0: the process) among the totals. */
static inline const struct ew_total *total_nth(uint32_t pid, uint32_t tid, size_t n)
{
    for (size_t i = 0; i < kit_totals.count; i++)
        if (kit_totals.total[i].pid == pid && kit_totals.total[i].tid == tid && n-- == 0)
            return &kit_totals.total[i];
    FAIL("no such total");
    return NULL;
}

static inline const struct ew_total *total_of(uint32_t pid)
{
    return total_nth(pid, 0, 0);
}

static inline uint64_t cpu_us(const struct ew_total *total)
{
    return total->counter[EW_C_cpu_ns] / 1000;
}

static inline struct ew_tally_system system_of(const struct ew_tally *tally)
{
    struct ew_tally_system system;
    ew_tally_system(tally, &system);
    return system;
}

/* --------------------------------------------------------------------- pipeline */

/* From events to samples to JSON, with the sums of the samples by process and thread. */
struct pipeline {
    struct ew_tally *tally;
    struct ew_sampler *sampler;
    struct ew_facts facts;
    struct etwatch_sink *sink;
    struct ew_buf json;
    size_t samples, starts, exits, incomplete;
    uint32_t only_pid; /* samples of this process are kept */
    struct etwatch_sample kept[64];
    size_t kept_count;
    struct etwatch_sample exit; /* its samples */
    uint64_t sum[2][4096];      /* cpu_ns by pid / 4 and by tid / 4 */
    uint64_t switches[4096], net[4096], runq[4096];
    uint64_t most_cpu_ns; /* largest value of one thread in one interval */
};

static inline int pipe_write(void *ctx, const void *bytes, size_t len)
{
    ew_buf_bytes(ctx, bytes, len);
    return 0;
}

static inline void pipe_emit(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    struct pipeline *p = ctx;
    CHECK_EQ_INT(etwatch_sink_samples(p->sink, samples, count), 0);
    for (size_t i = 0; i < count; i++) {
        const struct etwatch_sample *s = &samples[i];
        p->starts += s->type == ETWATCH_TYPE_START;
        p->exits += s->type == ETWATCH_TYPE_EXIT;
        if (s->type == ETWATCH_TYPE_EXIT && s->pid == p->only_pid)
            p->exit = *s;
        if (s->type == ETWATCH_TYPE_THREAD) {
            p->sum[1][s->tid / 4 % 4096] += s->cpu_ns;
            p->most_cpu_ns = s->cpu_ns > p->most_cpu_ns ? s->cpu_ns : p->most_cpu_ns;
        }
        if (s->type != ETWATCH_TYPE_SAMPLE)
            continue;
        p->samples++;
        p->incomplete += (s->flags & ETWATCH_SAMPLE_COMPLETE) == 0;
        p->sum[0][s->pid / 4 % 4096] += s->cpu_ns;
        p->switches[s->pid / 4 % 4096] += s->switches_voluntary + s->switches_involuntary;
        p->net[s->pid / 4 % 4096] += s->net_received_bytes + s->net_sent_bytes;
        p->runq[s->pid / 4 % 4096] += s->runq_wait_ns;
        if (s->pid == p->only_pid && p->kept_count < 64) {
            p->kept[p->kept_count] = *s;
            p->kept[p->kept_count++].name = NULL;
        }
    }
}

static inline void pipe_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct pipeline *p = ctx;
    CHECK_EQ_INT(etwatch_sink_loss(p->sink, loss), 0);
}

static inline void pipe_cut(void *ctx, uint64_t end_ns)
{
    struct pipeline *p = ctx;
    CHECK(ew_sampler_deliver(p->sampler, end_ns) >= 0);
}

static inline struct pipeline *pipe_open(struct ew_tally_config config, uint64_t interval_us,
                                         bool threads)
{
    static struct pipeline pipelines[2];
    static unsigned next;
    struct pipeline *p = &pipelines[next++ % 2];
    memset(p, 0, sizeof *p);
    ew_buf_init(&p->json, (size_t)64 << 20, NULL, NULL);
    CHECK_EQ_INT(etwatch_sink_new(ETWATCH_FORMAT_JSONL, pipe_write, &p->json, NULL, &p->sink, NULL),
                 0);
    struct ew_sampler_config sampler = {.source = ETWATCH_SOURCE_ETL,
                                        .threads = threads,
                                        .epoch_ns = config.epoch_ns,
                                        .interval_ns = interval_us * 1000,
                                        .max_processes = 10000,
                                        .max_threads = 10000,
                                        .ctx = p,
                                        .emit = pipe_emit,
                                        .loss = pipe_loss};
    CHECK_EQ_INT(ew_sampler_new(&sampler, &p->sampler), 0);
    ew_sampler_facts(p->sampler, &p->facts);
    config.threads = threads;
    config.interval_ns = interval_us * 1000;
    config.interval_over = pipe_cut;
    config.interval_ctx = p;
    p->tally = tally_open(config);
    return p;
}

static inline void pipe_feed(struct pipeline *p, struct ew_event event)
{
    feed_to(p->tally, event, &p->facts);
}

static inline void pipe_finish(struct pipeline *p, uint64_t t_ns)
{
    ew_tally_finish(p->tally, t_ns, &p->facts);
    CHECK(ew_sampler_finish(p->sampler, t_ns) >= 0);
    CHECK_EQ_INT(etwatch_sink_flush(p->sink), 0);
}

static inline void pipe_close(struct pipeline *p)
{
    etwatch_sink_free(p->sink);
    ew_buf_done(&p->json);
    ew_sampler_free(p->sampler);
    ew_tally_free(p->tally);
}

#endif
