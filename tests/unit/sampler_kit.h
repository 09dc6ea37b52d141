/* SPDX-License-Identifier: MIT */
/*
 * Helpers for the sampler tests: a sampler with known settings that keeps everything it delivers,
 * and short names for facts. Times in tests are milliseconds since the epoch: MS(12) is 12 ms into
 * the run.
 */
#ifndef SAMPLER_KIT_H
#define SAMPLER_KIT_H

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sampler/sampler.h"
#include "test.h"

#define EPOCH UINT64_C(50000000000)
#define MS(x) (EPOCH + (uint64_t)((double)(x)*1000000.0 + 0.5))
#define UNIX_MINUS_RAW INT64_C(1700000000000000000)
#define UNIX_MS(x) (MS(x) + (uint64_t)UNIX_MINUS_RAW)
#define NS_PER_MS UINT64_C(1000000)
#define KIT_OBJECTS 4096

struct kit_object {
    struct etwatch_sample s;
    char name[EW_NAME_SIZE], thread_name[16], user[16], cgroup[32], cmdline[32];
};

struct kit {
    struct ew_sampler *sampler;
    struct ew_facts facts;
    size_t count;
    size_t batches;
    size_t described;
    size_t loss_count;
    struct etwatch_loss loss[8];
    size_t event_count;
    struct etwatch_event event;
    struct kit_object object[KIT_OBJECTS];
};

static struct kit kit;

static inline void kit_copy(char *to, size_t size, const char **text)
{
    if (*text == NULL)
        return;
    (void)snprintf(to, size, "%s", *text);
    *text = to;
}

static inline void kit_emit(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    (void)ctx;
    kit.batches++;
    for (size_t i = 0; i < count; i++) {
        if (kit.count == KIT_OBJECTS)
            return;
        struct kit_object *o = &kit.object[kit.count++];
        o->s = samples[i];
        kit_copy(o->name, sizeof o->name, &o->s.name);
        kit_copy(o->thread_name, sizeof o->thread_name, &o->s.thread_name);
        kit_copy(o->user, sizeof o->user, &o->s.user);
        kit_copy(o->cgroup, sizeof o->cgroup, &o->s.cgroup);
        kit_copy(o->cmdline, sizeof o->cmdline, &o->s.cmdline);
    }
}

static inline void kit_loss(void *ctx, const struct etwatch_loss *loss)
{
    (void)ctx;
    if (kit.loss_count < 8)
        kit.loss[kit.loss_count] = *loss;
    kit.loss_count++;
}

static inline void kit_event(void *ctx, const struct etwatch_event *events, size_t count)
{
    (void)ctx;
    kit.event = events[0];
    kit.event_count += count;
}

/* Intervals of 10 ms, all other settings at their plainest. */
static inline struct ew_sampler_config kit_config(void)
{
    return (struct ew_sampler_config){
        .source = ETWATCH_SOURCE_EBPF,
        .epoch_ns = EPOCH,
        .interval_ns = 10 * NS_PER_MS,
        .unix_minus_raw_ns = UNIX_MINUS_RAW,
        .max_processes = 1000,
        .max_threads = 1000,
        .emit = kit_emit,
        .loss = kit_loss,
        .event = kit_event,
    };
}

static inline void kit_open(struct ew_sampler_config config)
{
    memset(&kit, 0, sizeof kit);
    CHECK_EQ_INT(ew_sampler_new(&config, &kit.sampler), 0);
    ew_sampler_facts(kit.sampler, &kit.facts);
}

static inline void kit_close(void)
{
    ew_sampler_free(kit.sampler);
    kit.sampler = NULL;
}

/* Drops the objects delivered so far; the next ones start at [0]. */
static inline int kit_cut(uint64_t horizon_ns)
{
    kit.count = 0;
    return ew_sampler_deliver(kit.sampler, horizon_ns);
}

static inline void kit_process(enum ew_process_kind kind, uint32_t pid, uint64_t start_ns,
                               uint64_t t_ns, const char *name)
{
    struct ew_process_fact fact = {.kind = kind, .pid = pid, .start_ns = start_ns, .t_ns = t_ns};
    if (name != NULL) {
        fact.has |= EW_HAS_NAME;
        (void)snprintf(fact.name, sizeof fact.name, "%s", name);
    }
    kit.facts.process(kit.facts.ctx, &fact);
}

static inline void kit_start(uint32_t pid, uint64_t t_ns, const char *name)
{
    kit_process(EW_PROCESS_START, pid, t_ns, t_ns, name);
}

/* A process that started 1 s before the epoch. */
static inline void kit_seen(uint32_t pid, const char *name)
{
    kit_process(EW_PROCESS_SEEN, pid, EPOCH - 1000 * NS_PER_MS, EPOCH, name);
}

static inline void kit_exit(uint32_t pid, uint64_t start_ns, uint64_t t_ns, int32_t code)
{
    struct ew_process_fact fact = {.kind = EW_PROCESS_EXIT,
                                   .has = EW_HAS_EXIT_STATUS,
                                   .pid = pid,
                                   .start_ns = start_ns,
                                   .t_ns = t_ns,
                                   .exit_code = code};
    kit.facts.process(kit.facts.ctx, &fact);
}

static inline void kit_reading(struct ew_reading reading)
{
    kit.facts.reading(kit.facts.ctx, &reading);
}

/* Readings of CPU time and voluntary switches of a thread with unknown start time. */
static inline struct ew_reading kit_values(enum ew_reading_kind kind, uint32_t pid, uint32_t tid,
                                           uint64_t t_ns, uint64_t cpu_ns, uint64_t switches)
{
    struct ew_reading r = {.kind = kind,
                           .pid = pid,
                           .tid = tid,
                           .t_ns = t_ns,
                           .counter_has = EW_HAS_C(cpu_ns) | EW_HAS_C(switches_voluntary)};
    r.counter[EW_C_cpu_ns] = cpu_ns;
    r.counter[EW_C_switches_voluntary] = switches;
    return r;
}

static inline void kit_read(enum ew_reading_kind kind, uint32_t pid, uint32_t tid, uint64_t t_ns,
                            uint64_t cpu_ns, uint64_t switches)
{
    kit_reading(kit_values(kind, pid, tid, t_ns, cpu_ns, switches));
}

/* The run ends with a switch, which the counter includes. */
static inline void kit_left(enum ew_left left, uint32_t pid, uint32_t tid, uint64_t from_ns,
                            uint64_t t_ns, uint64_t cpu_ns, uint64_t waited, uint64_t preempted)
{
    struct ew_reading r = kit_values(EW_READING_SPAN, pid, tid, t_ns, cpu_ns, waited);
    r.left = left;
    r.ran_from_ns = from_ns;
    r.counter_has |= EW_HAS_C(switches_involuntary);
    r.counter[EW_C_switches_involuntary] = preempted;
    kit_reading(r);
}

static inline void kit_ran(enum ew_reading_kind kind, uint32_t pid, uint32_t tid, uint64_t from_ns,
                           uint64_t from_cpu_ns, uint64_t t_ns, uint64_t cpu_ns, uint64_t switches)
{
    struct ew_reading r = kit_values(kind, pid, tid, t_ns, cpu_ns, switches);
    r.ran_from_ns = from_ns;
    r.ran_from_cpu_ns = from_cpu_ns;
    kit_reading(r);
}

static inline struct ew_sampler_counts kit_counts(void)
{
    struct ew_sampler_counts counts;
    ew_sampler_counts(kit.sampler, &counts);
    return counts;
}

static inline bool kit_has(const struct etwatch_sample *s, uint32_t metric)
{
    return etwatch_sample_has(s, metric);
}

/* "S1 s1 X1": kind and pid of each object. T and t are preexisting processes and threads (tid). */
static inline const char *kit_story(void)
{
    static char text[4096];
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < kit.count && len + 16 < sizeof text; i++) {
        const struct etwatch_sample *s = &kit.object[i].s;
        static const char letter[] = "?SXst";
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%c%u", i > 0 ? " " : "",
                                letter[s->type <= 4 ? s->type : 0],
                                s->type == ETWATCH_TYPE_THREAD ? s->tid : s->pid);
    }
    return text;
}

/* The n-th SAMPLE of a process among the kept objects; the test fails if there is none. */
static inline const struct etwatch_sample *kit_nth(uint32_t type, uint32_t pid, size_t n)
{
    for (size_t i = 0; i < kit.count; i++) {
        if (kit.object[i].s.type == type && kit.object[i].s.pid == pid && n-- == 0)
            return &kit.object[i].s;
    }
    FAIL("no such object");
    return NULL;
}

#endif
