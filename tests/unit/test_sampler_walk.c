/* SPDX-License-Identifier: MIT */
/*
 * The property on which everything depends: for any schedule, CPU time per process and interval is
 * exact to the nanosecond, and no count is lost or doubled.
 *
 * A simulated machine runs threads on CPUs and keeps the true values. A simulated kernel log writes
 * what the in-kernel log would: an OPEN at a thread's first switch-in of an interval, a SPAN at a
 * switch-out after a run across an interval end, a FINAL at the end of a thread; and at each drain
 * a SPAN for every thread on a CPU and an AT for every other thread that ran. The readings of
 * different threads are delivered in random order.
 */
#include <stdlib.h>

#include "sampler_kit.h"

#define CPUS 3
#define THREADS 40
#define LIVES 400
#define INTERVALS 3000
#define RECORDS 20000

struct life { /* of a process */
    uint32_t pid;
    uint64_t start_ns, exit_ns;
    uint32_t threads;
    bool ended;
    uint64_t switches, faults;
    uint64_t cpu_ns[INTERVALS];
    /* as delivered */
    uint64_t got_switches, got_faults, got_total;
    uint64_t got_cpu_ns[INTERVALS];
    uint64_t got_thread_cpu_ns[INTERVALS];
    uint32_t starts, exits;
};

struct runner { /* a thread */
    bool live, dying;
    uint32_t tid, life;
    uint64_t start_ns;
    uint64_t cpu_ns, switches, faults;
    int cpu; /* -1: none */
    uint64_t ran_from_ns, ran_from_cpu_ns;
    uint64_t opened; /* interval of its last OPEN, plus 1 */
    bool active;     /* ran since the last drain */
};

struct record {
    struct ew_reading reading;
    uint32_t key; /* random per thread and drain */
    size_t order;
};

static struct world {
    uint64_t seed;
    uint64_t now_ns, interval_ns;
    struct life life[LIVES];
    size_t life_count;
    struct runner runner[THREADS];
    int on_cpu[CPUS];
    struct record record[RECORDS];
    size_t record_count;
    uint32_t key[THREADS];
    uint32_t next_tid;
    struct ew_process_fact fact[LIVES * 2];
    size_t fact_count;
    bool out_of_order;
    uint32_t window; /* this many threads can run at the same time ... */
    uint32_t base;   /* ... starting with this one */
} w;

static uint64_t rnd(uint64_t below)
{
    w.seed ^= w.seed << 13;
    w.seed ^= w.seed >> 7;
    w.seed ^= w.seed << 17;
    return w.seed % below;
}

static size_t interval_of(uint64_t t_ns)
{
    return (size_t)((t_ns - EPOCH) / w.interval_ns);
}

static void log_reading(struct runner *r, enum ew_reading_kind kind, uint64_t t_ns, uint64_t cpu_ns)
{
    CHECK(w.record_count < RECORDS);
    struct record *record = &w.record[w.record_count];
    *record = (struct record){.key = w.key[r - w.runner], .order = w.record_count};
    w.record_count++;
    struct ew_reading *reading = &record->reading;
    reading->kind = kind;
    reading->pid = w.life[r->life].pid;
    reading->tid = r->tid;
    reading->start_ns = r->start_ns;
    reading->t_ns = t_ns;
    reading->counter_has = EW_HAS_C(cpu_ns) | EW_HAS_C(switches_voluntary) | EW_HAS_C(faults_minor);
    reading->counter[EW_C_cpu_ns] = cpu_ns;
    reading->counter[EW_C_switches_voluntary] = r->switches;
    reading->counter[EW_C_faults_minor] = r->faults;
    if (kind == EW_READING_SPAN || kind == EW_READING_FINAL) {
        reading->ran_from_ns = r->ran_from_ns;
        reading->ran_from_cpu_ns = r->ran_from_cpu_ns;
    }
}

static void log_process(enum ew_process_kind kind, const struct life *life)
{
    bool ends = kind == EW_PROCESS_EXIT;
    w.fact[w.fact_count++] =
        (struct ew_process_fact){.kind = kind,
                                 .has = ends ? EW_HAS_EXIT_STATUS : 0u,
                                 .pid = life->pid,
                                 .start_ns = life->start_ns,
                                 .t_ns = ends ? life->exit_ns : life->start_ns};
}

static void switch_in(struct runner *r, int cpu)
{
    r->cpu = cpu;
    w.on_cpu[cpu] = (int)(r - w.runner);
    r->ran_from_ns = w.now_ns;
    r->ran_from_cpu_ns = r->cpu_ns;
    r->active = true;
    if (r->opened != interval_of(w.now_ns) + 1) {
        r->opened = interval_of(w.now_ns) + 1;
        log_reading(r, EW_READING_OPEN, w.now_ns, r->cpu_ns);
    }
}

static void credit_truth(struct runner *r)
{
    struct life *life = &w.life[r->life];
    for (uint64_t at = r->ran_from_ns; at < w.now_ns;) {
        uint64_t end = EPOCH + (interval_of(at) + 1) * w.interval_ns;
        end = end < w.now_ns ? end : w.now_ns;
        life->cpu_ns[interval_of(at)] += end - at;
        at = end;
    }
}

static void switch_out(struct runner *r)
{
    uint64_t ran = w.now_ns - r->ran_from_ns;
    uint64_t faults = rnd(4) == 0 ? rnd(100) : 0;
    r->cpu_ns += ran;
    r->switches++;
    r->faults += faults;
    w.life[r->life].switches++;
    w.life[r->life].faults += faults;
    credit_truth(r);
    bool crossed = interval_of(r->ran_from_ns) != interval_of(w.now_ns);
    if (r->dying)
        log_reading(r, EW_READING_FINAL, w.now_ns, r->cpu_ns);
    else if (crossed)
        log_reading(r, EW_READING_SPAN, w.now_ns, r->cpu_ns);
    w.on_cpu[r->cpu] = -1;
    r->cpu = -1;
    if (!r->dying)
        return;
    r->live = false;
    struct life *life = &w.life[r->life];
    if (--life->threads == 0) {
        life->ended = true;
        life->exit_ns = w.now_ns;
        log_process(EW_PROCESS_EXIT, life);
    }
}

static bool pid_in_use(uint32_t pid)
{
    for (size_t i = 0; i < w.life_count; i++) {
        if (w.life[i].pid == pid && !w.life[i].ended)
            return true;
    }
    return false;
}

/*
 * A new process with one thread, or another thread of an existing process. IDs come from a small
 * range, so they are reused all the time.
 */
static void spawn(void)
{
    size_t slot = 0;
    while (slot < THREADS && w.runner[slot].live)
        slot++;
    if (slot == THREADS)
        return;
    struct runner *r = &w.runner[slot];
    uint32_t life_index = (uint32_t)w.life_count;
    for (size_t i = 0; i < THREADS && rnd(2) == 0; i++) {
        struct runner *sibling = &w.runner[rnd(THREADS)];
        if (sibling->live && !sibling->dying)
            life_index = sibling->life;
    }
    uint32_t id = 100 + (uint32_t)rnd(64);
    for (size_t i = 0; i < THREADS; i++) {
        if (w.runner[i].live && w.runner[i].tid == id)
            return;
    }
    if (life_index == w.life_count) {
        if (w.life_count == LIVES || pid_in_use(id))
            return;
        struct life *life = &w.life[w.life_count++];
        *life = (struct life){.pid = id, .start_ns = w.now_ns};
        log_process(EW_PROCESS_START, life);
    } else if (pid_in_use(id)) {
        return;
    }
    w.life[life_index].threads++;
    *r = (struct runner){
        .live = true, .tid = id, .life = life_index, .start_ns = w.now_ns, .cpu = -1};
}

static void step(void)
{
    w.now_ns += 1 + (rnd(20) == 0 ? rnd(6 * w.interval_ns) : rnd(w.interval_ns / 3));
    int cpu = (int)rnd(CPUS);
    if (w.on_cpu[cpu] >= 0) {
        struct runner *r = &w.runner[w.on_cpu[cpu]];
        r->dying = rnd(30) == 0;
        switch_out(r);
    }
    if (rnd(8) == 0)
        spawn();
    if (rnd(5) == 0)
        return;
    struct runner *r = &w.runner[(w.base + rnd(w.window)) % THREADS];
    if (r->live && r->cpu < 0)
        switch_in(r, cpu);
}

static int compare_records(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static void deliver_facts(void)
{
    for (size_t i = 0; i < w.fact_count; i++)
        kit.facts.process(kit.facts.ctx, &w.fact[i]);
    w.fact_count = 0;
}

static void drain(void)
{
    for (size_t i = 0; i < THREADS; i++) {
        struct runner *r = &w.runner[i];
        if (!r->live || !r->active)
            continue;
        if (r->cpu >= 0)
            log_reading(r, EW_READING_SPAN, w.now_ns, r->cpu_ns + (w.now_ns - r->ran_from_ns));
        else
            log_reading(r, EW_READING_AT, w.now_ns, r->cpu_ns);
        r->active = r->cpu >= 0;
    }
    if (w.out_of_order)
        qsort(w.record, w.record_count, sizeof w.record[0], compare_records);
    deliver_facts();
    for (size_t i = 0; i < w.record_count; i++)
        kit.facts.reading(kit.facts.ctx, &w.record[i].reading);
    w.record_count = 0;
    for (size_t i = 0; i < THREADS; i++)
        w.key[i] = (uint32_t)rnd(UINT32_MAX);
}

static struct life *lifetime_of(const struct etwatch_sample *s)
{
    for (size_t i = 0; i < w.life_count; i++) {
        if (w.life[i].pid == s->pid && w.life[i].start_ns + (uint64_t)UNIX_MINUS_RAW == s->start_ns)
            return &w.life[i];
    }
    FAIL("a sample of a process that never existed");
    return NULL;
}

static void check_emitted(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        const struct etwatch_sample *s = &samples[i];
        struct life *life = lifetime_of(s);
        uint64_t t_ns = s->t_ns - (uint64_t)UNIX_MINUS_RAW;
        CHECK((s->flags & ETWATCH_SAMPLE_COMPLETE) != 0);
        if (s->type == ETWATCH_TYPE_START) {
            CHECK_EQ_UINT(life->starts++, 0);
        } else if (s->type == ETWATCH_TYPE_EXIT) {
            CHECK_EQ_UINT(life->exits++, 0);
            CHECK_EQ_UINT(t_ns, life->exit_ns);
            life->got_total = s->cpu_ns;
        } else {
            CHECK_EQ_UINT(life->starts, 1);
            CHECK_EQ_UINT(life->exits, 0);
            size_t n = interval_of(t_ns);
            if ((t_ns - EPOCH) % w.interval_ns == 0 && s->dt_ns > 0)
                n--;
            if (s->type == ETWATCH_TYPE_THREAD) {
                life->got_thread_cpu_ns[n] += s->cpu_ns;
                continue;
            }
            uint64_t begin = EPOCH + n * w.interval_ns;
            begin = life->start_ns > begin ? life->start_ns : begin;
            CHECK_EQ_UINT(s->dt_ns, t_ns - begin);
            life->got_cpu_ns[n] += s->cpu_ns;
            life->got_switches += s->switches_voluntary;
            life->got_faults += s->faults_minor;
        }
    }
}

static void check_lifetime(const struct life *life, bool threads)
{
    for (size_t i = 0; threads && i < INTERVALS; i++)
        CHECK_EQ_UINT(life->got_thread_cpu_ns[i], life->cpu_ns[i]);
    for (size_t i = 0; i < INTERVALS; i++) {
        if (life->got_cpu_ns[i] != life->cpu_ns[i]) {
            char remark[128];
            (void)snprintf(remark, sizeof remark, "pid %u interval %zu", life->pid, i);
            test_row(remark);
            CHECK_EQ_UINT(life->got_cpu_ns[i], life->cpu_ns[i]);
        }
    }
    CHECK_EQ_UINT(life->got_switches, life->switches);
    CHECK_EQ_UINT(life->got_faults, life->faults);
    CHECK_EQ_UINT(life->starts, 1);
    if (!life->ended)
        return;
    uint64_t total = 0;
    for (size_t i = 0; i < INTERVALS; i++)
        total += life->cpu_ns[i];
    CHECK_EQ_UINT(life->exits, 1);
    CHECK_EQ_UINT(life->got_total, total);
}

static void walk(uint64_t seed, bool out_of_order, uint64_t interval_ns, uint32_t max_threads,
                 bool threads)
{
    memset(&w, 0, sizeof w);
    w.seed = seed * 2654435769u + 1;
    w.now_ns = EPOCH + 1;
    w.interval_ns = interval_ns;
    w.out_of_order = out_of_order;
    w.window = max_threads < THREADS ? max_threads / 3 : THREADS;
    for (int i = 0; i < CPUS; i++)
        w.on_cpu[i] = -1;
    struct ew_sampler_config config = kit_config();
    config.emit = check_emitted;
    config.interval_ns = interval_ns;
    config.max_threads = max_threads;
    config.threads = threads;
    kit_open(config);
    uint64_t end_ns = EPOCH + (INTERVALS - 100) * interval_ns;
    while (w.now_ns < end_ns) {
        uint64_t until_ns = w.now_ns + 1 + rnd(12 * interval_ns);
        while (w.now_ns < until_ns)
            step();
        drain();
        CHECK(ew_sampler_deliver(kit.sampler, w.now_ns) >= 0);
        CHECK(kit_counts().threads <= max_threads);
        w.base = w.window < THREADS ? (w.base + 1) % THREADS : 0;
    }
    /* Threads on a CPU were read at the last drain: that is the true value to compare with. */
    for (size_t i = 0; i < THREADS; i++) {
        if (w.runner[i].live && w.runner[i].cpu >= 0)
            credit_truth(&w.runner[i]);
    }
    CHECK(ew_sampler_finish(kit.sampler, w.now_ns) >= 0);
    CHECK_EQ_UINT(kit_counts().late, 0);
    CHECK_EQ_UINT(kit_counts().lost, 0);
    CHECK(w.life_count > 50);
    for (size_t i = 0; i < w.life_count; i++)
        check_lifetime(&w.life[i], threads);
    kit_close();
}

TEST(cpu_time_is_exact_to_the_nanosecond_for_readings_in_order)
{
    for (uint64_t seed = 1; seed <= 6; seed++)
        walk(seed, false, 10 * NS_PER_MS, 1000, false);
}

TEST(cpu_time_is_exact_to_the_nanosecond_for_threads_in_any_order)
{
    for (uint64_t seed = 11; seed <= 16; seed++)
        walk(seed, true, 10 * NS_PER_MS, 1000, false);
}

TEST(cpu_time_is_exact_at_a_thousand_hertz)
{
    for (uint64_t seed = 21; seed <= 24; seed++)
        walk(seed, true, NS_PER_MS, 1000, false);
}

TEST(threads_add_up_to_their_process_in_every_interval)
{
    for (uint64_t seed = 41; seed <= 44; seed++)
        walk(seed, true, NS_PER_MS, 1000, true);
}

/*
 * A third of the table can be busy at the same time: threads are evicted and return all the time.
 */
TEST(evicting_idle_threads_changes_no_number)
{
    for (uint64_t seed = 31; seed <= 36; seed++)
        walk(seed, true, NS_PER_MS, 18, false);
}
