/* SPDX-License-Identifier: MIT */
/*
 * Random machines checked by an independent computation. A machine generates which thread has which
 * CPU from when to when, with interrupts in between; the expected time of each thread is computed
 * by intersecting these pieces with the intervals, one by one, without the tally's bookkeeping. The
 * tally sees only the events.
 */
#include <stdlib.h>

#include "tally_kit.h"

enum { CPUS = 3, PROCESSES = 5, THREADS = 48, EVENTS_MAX = 40000, PIECES_MAX = 20000 };

/* A run of a thread (index; THREADS: idle) on a CPU, or an interrupt during it. */
struct piece {
    uint64_t from_ns, to_ns;
    uint32_t thread;
    uint16_t cpu;
    bool interrupt, is_isr;
};

struct life {
    uint32_t pid, tid;
    uint64_t end_ns;  /* 0: never exits */
    bool logged_late; /* only the rundown at the end names its process */
    uint64_t ready_ns, runq_ns, voluntary, involuntary, faults;
    bool running;
};

struct machine {
    uint64_t random;
    struct ew_event event[EVENTS_MAX];
    size_t event_count;
    struct piece piece[PIECES_MAX];
    size_t piece_count;
    struct life life[THREADS];
    uint32_t lives; /* used so far */
    uint32_t on_cpu[CPUS];
    uint64_t since_ns[CPUS], free_ns[CPUS]; /* start of the run; no interrupt before this */
    uint64_t now_ns, end_ns;
    uint32_t free_tid; /* ID of a thread that exited, for reuse */
};

static struct machine m;

static uint64_t roll(uint64_t below)
{
    m.random ^= m.random << 13;
    m.random ^= m.random >> 7;
    m.random ^= m.random << 17;
    return (m.random >> 11) % below;
}

static void log_event(struct ew_event event)
{
    CHECK(m.event_count < EVENTS_MAX);
    m.event[m.event_count++] = event;
}

static struct piece *add_piece(uint64_t from_ns, uint64_t to_ns, uint32_t thread, uint16_t cpu)
{
    CHECK(m.piece_count < PIECES_MAX);
    m.piece[m.piece_count] =
        (struct piece){.from_ns = from_ns, .to_ns = to_ns, .thread = thread, .cpu = cpu};
    return &m.piece[m.piece_count++];
}

static uint32_t tid_of(uint32_t thread)
{
    return thread == THREADS ? 0 : m.life[thread].tid;
}

/* Another thread that is neither exited nor on a CPU, or idle. */
static uint32_t pick(void)
{
    for (int tries = 0; tries < 8; tries++) {
        uint32_t thread = (uint32_t)roll(m.lives);
        if (m.life[thread].end_ns == 0 && !m.life[thread].running)
            return thread;
    }
    return THREADS;
}

static void new_thread(void)
{
    if (m.lives == THREADS)
        return;
    struct life *life = &m.life[m.lives];
    *life = (struct life){.pid = 100 * (1 + (uint32_t)roll(PROCESSES)), .tid = m.free_tid};
    if (life->tid == 0)
        life->tid = 1004 + 4 * m.lives;
    m.free_tid = 0;
    m.lives++;
    log_event(ev_thread(EW_EVENT_THREAD_START, m.now_ns, life->pid, life->tid));
}

static void do_switch(uint16_t cpu)
{
    uint32_t old = m.on_cpu[cpu], next = pick();
    if (next == old)
        return;
    uint8_t state = roll(3) == 0 ? READY : WAITING;
    if (old != THREADS) {
        struct life *life = &m.life[old];
        /* Its end was logged a moment ago: this is its last switch. */
        if (life->end_ns != 0)
            state = TERMINATED;
        life->voluntary += state != READY;
        life->involuntary += state == READY;
        life->ready_ns =
            state == READY || (life->ready_ns != 0 && state != TERMINATED) ? m.now_ns : 0;
        life->running = false;
    }
    log_event(ev_switch(m.now_ns, cpu, tid_of(old), tid_of(next), state));
    if (m.since_ns[cpu] != 0) /* before the first switch the running thread is unknown */
        add_piece(m.since_ns[cpu], m.now_ns, old, cpu);
    if (next != THREADS) {
        struct life *life = &m.life[next];
        if (life->ready_ns != 0)
            life->runq_ns += m.now_ns - life->ready_ns;
        life->ready_ns = 0;
        life->running = true;
    }
    if (old != THREADS && m.life[old].end_ns != 0)
        m.free_tid = m.life[old].tid;
    m.on_cpu[cpu] = next;
    m.since_ns[cpu] = m.free_ns[cpu] = m.now_ns;
}

/* An interrupt that ends now; half of them contain another one. */
static void do_interrupt(uint16_t cpu)
{
    if (m.since_ns[cpu] == 0 || m.now_ns - m.free_ns[cpu] < 400)
        return;
    uint64_t long_ns = 50 + roll(m.now_ns - m.free_ns[cpu] - 100);
    uint64_t from_ns = m.now_ns - (long_ns < 60000 ? long_ns : 60000);
    uint64_t inner_ns = (m.now_ns - from_ns) / 3;
    if (roll(2) == 0) {
        struct piece *inner =
            add_piece(from_ns + inner_ns, from_ns + 2 * inner_ns, m.on_cpu[cpu], cpu);
        inner->interrupt = inner->is_isr = true;
        struct ew_event event = ev_irq(inner->from_ns, inner->to_ns, cpu, true);
        /* In time order: it ended before the events that happened meanwhile. */
        size_t at = m.event_count;
        while (at > 0 && m.event[at - 1].t_ns > event.t_ns)
            at--;
        CHECK(m.event_count < EVENTS_MAX);
        memmove(&m.event[at + 1], &m.event[at], (m.event_count - at) * sizeof m.event[0]);
        m.event[at] = event;
        m.event_count++;
    }
    struct piece *outer = add_piece(from_ns, m.now_ns, m.on_cpu[cpu], cpu);
    outer->interrupt = true;
    log_event(ev_irq(from_ns, m.now_ns, cpu, false));
    m.free_ns[cpu] = m.now_ns;
}

static void do_something(void)
{
    uint16_t cpu = (uint16_t)roll(CPUS);
    uint32_t running = m.on_cpu[cpu];
    struct life *life = running != THREADS ? &m.life[running] : NULL;
    switch (roll(12)) {
    case 0:
        do_interrupt(cpu);
        break;
    case 1: {
        uint32_t thread = pick();
        if (thread == THREADS)
            break;
        log_event(ev_ready(m.now_ns, cpu, m.life[thread].tid));
        if (m.life[thread].ready_ns == 0)
            m.life[thread].ready_ns = m.now_ns;
        break;
    }
    case 2:
        if (life == NULL || m.since_ns[cpu] == 0)
            break;
        log_event(ev_fault(m.now_ns, cpu, NO, NO, 11));
        life->faults++;
        break;
    case 3:
        if (roll(6) == 0)
            new_thread();
        break;
    case 4: /* the thread exits; its last switch follows */
        if (life == NULL || m.since_ns[cpu] == 0 || life->logged_late || roll(4) != 0)
            break;
        log_event(ev_thread(EW_EVENT_THREAD_END, m.now_ns, life->pid, life->tid));
        life->end_ns = m.now_ns;
        m.now_ns += 1 + roll(3000);
        do_switch(cpu);
        break;
    default:
        do_switch(cpu);
        break;
    }
}

static void make(uint64_t seed, bool logged_late, uint64_t long_ns)
{
    memset(&m, 0, sizeof m);
    m.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    m.now_ns = FIRST;
    for (uint32_t i = 0; i < PROCESSES; i++)
        log_event(ev_process(EW_EVENT_PROCESS_THERE, m.now_ns, 100 * (i + 1), 4, "p.exe"));
    for (m.lives = 0; m.lives < 16; m.lives++) {
        struct life *life = &m.life[m.lives];
        *life = (struct life){.pid = 100 * (1 + m.lives % PROCESSES), .tid = 1004 + 4 * m.lives};
        life->logged_late = logged_late && m.lives % 3 == 0;
        if (!life->logged_late)
            log_event(ev_thread(EW_EVENT_THREAD_THERE, m.now_ns, life->pid, life->tid));
    }
    for (uint32_t cpu = 0; cpu < CPUS; cpu++)
        m.on_cpu[cpu] = THREADS;
    m.end_ns = FIRST + long_ns;
    for (;;) {
        m.now_ns += 1 + roll(roll(20) == 0 ? 400000 : 8000);
        if (m.now_ns + 5000 >= m.end_ns)
            break;
        do_something();
    }
    for (uint16_t cpu = 0; cpu < CPUS; cpu++)
        if (m.since_ns[cpu] != 0)
            add_piece(m.since_ns[cpu], m.end_ns, m.on_cpu[cpu], cpu);
    for (uint32_t i = 0; i < m.lives; i++)
        if (m.life[i].logged_late)
            log_event(
                ev_thread(EW_EVENT_THREAD_STILL, m.end_ns - 1000, m.life[i].pid, m.life[i].tid));
}

/* --------------------------------------------------- independent computation */

static uint64_t overlap(const struct piece *piece, uint64_t from_ns, uint64_t to_ns)
{
    from_ns = from_ns > piece->from_ns ? from_ns : piece->from_ns;
    to_ns = to_ns < piece->to_ns ? to_ns : piece->to_ns;
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

/* The thread's time in [from_ns, to_ns) without interrupts; an ISR in a DPC counts once. */
static uint64_t had_ns(uint32_t thread, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < m.piece_count; i++) {
        if (m.piece[i].thread != thread || m.piece[i].is_isr)
            continue;
        uint64_t part_ns = overlap(&m.piece[i], from_ns, to_ns);
        ns += m.piece[i].interrupt ? 0 - part_ns : part_ns;
    }
    return ns;
}

static void check_threads(const struct ew_tally *tally)
{
    take_totals(tally, true);
    for (uint32_t i = 0; i < m.lives; i++) {
        const struct life *life = &m.life[i];
        /* The ID may have been reused: the n-th thread with this ID in that process. */
        size_t nth = 0;
        for (uint32_t k = 0; k < i; k++)
            nth += m.life[k].tid == life->tid && m.life[k].pid == life->pid;
        const struct ew_total *total = total_nth(life->pid, life->tid, nth);
        CHECK_EQ_UINT(total->counter[EW_C_cpu_ns], had_ns(i, FIRST, m.end_ns));
        CHECK_EQ_UINT(total->counter[EW_C_switches_voluntary], life->voluntary);
        CHECK_EQ_UINT(total->counter[EW_C_switches_involuntary], life->involuntary);
        CHECK_EQ_UINT(total->counter[EW_C_runq_wait_ns], life->runq_ns);
        CHECK_EQ_UINT(total->counter[EW_C_faults_minor], life->faults);
    }
    for (uint32_t p = 1; p <= PROCESSES; p++) {
        uint64_t cpu_ns = 0;
        for (uint32_t i = 0; i < m.lives; i++)
            cpu_ns += m.life[i].pid == 100 * p ? had_ns(i, FIRST, m.end_ns) : 0;
        CHECK_EQ_UINT(total_of(100 * p)->counter[EW_C_cpu_ns], cpu_ns);
    }
}

static void check_system(const struct ew_tally *tally)
{
    struct ew_tally_system s = system_of(tally);
    uint64_t isr_ns = 0, all_irq_ns = 0;
    for (size_t i = 0; i < m.piece_count; i++) {
        const struct piece *piece = &m.piece[i];
        if (piece->interrupt && piece->is_isr)
            isr_ns += piece->to_ns - piece->from_ns;
        else if (piece->interrupt)
            all_irq_ns += piece->to_ns - piece->from_ns;
    }
    CHECK_EQ_UINT(s.isr_ns, isr_ns);
    CHECK_EQ_UINT(s.dpc_ns, all_irq_ns - isr_ns);
    CHECK_EQ_UINT(s.idle_ns, had_ns(THREADS, FIRST, m.end_ns));
    CHECK_EQ_UINT(s.busy_ns + s.idle_ns + s.dpc_ns + s.isr_ns + s.unknown_ns,
                  s.cpus * (m.end_ns - FIRST));
    CHECK_EQ_UINT(s.inconsistent, 0);
    CHECK_EQ_UINT(s.unattributed, 0);
}

TEST(totals_equal_the_independent_computation)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        make(seed, seed % 2 == 0, 20000000);
        struct ew_tally_config config = tally_config();
        config.threads = true;
        config.cpu_count = CPUS;
        struct ew_tally *tally = tally_open(config);
        for (size_t i = 0; i < m.event_count; i++)
            feed(tally, m.event[i]);
        ew_tally_finish(tally, m.end_ns, NULL);
        check_threads(tally);
        check_system(tally);
        ew_tally_free(tally);
    }
}

/* Totals do not depend on whether and how facts are reported. */
TEST(samples_add_up_to_the_totals)
{
    static const uint64_t interval_us[] = {1000, 1700, 5000, 100000};
    for (uint64_t seed = 1; seed <= 8; seed++) {
        make(seed, false, 20000000);
        struct ew_tally_config config = tally_config();
        config.cpu_count = CPUS;
        config.classes_known = EW_TALLY_SWITCHES | EW_TALLY_READY | EW_TALLY_FAULTS;
        struct pipeline *p = pipe_open(config, interval_us[seed % 4], true);
        for (size_t i = 0; i < m.event_count; i++)
            pipe_feed(p, m.event[i]);
        pipe_finish(p, m.end_ns);
        check_threads(p->tally);
        check_system(p->tally);
        for (uint32_t pid = 100; pid <= 100 * PROCESSES; pid += 100) {
            const struct ew_total *total = total_of(pid);
            uint64_t over_ns = p->sum[0][pid / 4] - total->counter[EW_C_cpu_ns];
            /* A thread may have been reported with too much time if its last run ended in an
             * interrupt. */
            CHECK(over_ns <= 60000);
            CHECK_EQ_UINT(p->switches[pid / 4], total->counter[EW_C_switches_voluntary] +
                                                    total->counter[EW_C_switches_involuntary]);
            CHECK_EQ_UINT(p->runq[pid / 4], total->counter[EW_C_runq_wait_ns]);
        }
        CHECK(p->most_cpu_ns <= interval_us[seed % 4] * 1000);
        pipe_close(p);
    }
}

/* Without interrupts every sample equals the pieces exactly. */
static struct {
    uint64_t interval_ns;
    size_t checked;
} exact;

static void check_exact(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        const struct etwatch_sample *s = &samples[i];
        if (s->type != ETWATCH_TYPE_SAMPLE)
            continue;
        uint64_t end_ns = FIRST + (s->t_ns - FIRST + exact.interval_ns - 1) / exact.interval_ns *
                                      exact.interval_ns;
        uint64_t cpu_ns = 0;
        for (uint32_t k = 0; k < m.lives; k++)
            if (m.life[k].pid == s->pid)
                cpu_ns += had_ns(k, end_ns - exact.interval_ns, end_ns);
        CHECK_EQ_UINT(s->cpu_ns, cpu_ns);
        exact.checked++;
    }
}

static void cut_exact(void *ctx, uint64_t end_ns)
{
    CHECK(ew_sampler_deliver(ctx, end_ns) >= 0);
}

TEST(every_sample_is_exact)
{
    for (uint64_t seed = 21; seed <= 24; seed++) {
        make(seed, false, 20000000);
        exact.interval_ns = 1000000 + 300000 * (seed % 4);
        exact.checked = 0;
        struct ew_sampler_config sampler_config = {.source = ETWATCH_SOURCE_ETL,
                                                   .epoch_ns = FIRST,
                                                   .interval_ns = exact.interval_ns,
                                                   .max_processes = 100,
                                                   .max_threads = 1000,
                                                   .emit = check_exact};
        struct ew_sampler *sampler;
        CHECK_EQ_INT(ew_sampler_new(&sampler_config, &sampler), 0);
        struct ew_facts facts;
        ew_sampler_facts(sampler, &facts);
        struct ew_tally_config config = tally_config();
        config.interval_ns = exact.interval_ns;
        config.interval_over = cut_exact;
        config.interval_ctx = sampler;
        struct ew_tally *tally = tally_open(config);
        size_t kept = 0; /* the pieces without interrupts */
        for (size_t i = 0; i < m.piece_count; i++)
            if (!m.piece[i].interrupt)
                m.piece[kept++] = m.piece[i];
        m.piece_count = kept;
        for (size_t i = 0; i < m.event_count; i++)
            if (m.event[i].kind != EW_EVENT_INTERRUPT)
                feed_to(tally, m.event[i], &facts);
        ew_tally_finish(tally, m.end_ns, &facts);
        CHECK(ew_sampler_finish(sampler, m.end_ns) >= 0);
        CHECK(exact.checked > 30);
        ew_tally_free(tally);
        ew_sampler_free(sampler);
    }
}

/* Live events arrive in pieces with time in between; a recording arrives at once. */
TEST(the_result_does_not_depend_on_how_events_arrive)
{
    for (uint64_t seed = 31; seed <= 36; seed++) {
        make(seed, seed % 2 == 0, 30000000);
        struct pipeline *all = pipe_open(tally_config(), 1000, true);
        struct pipeline *live = pipe_open(tally_config(), 1000, true);
        uint64_t lost_ns = FIRST + 15000000;
        bool lost[2] = {false, false};
        for (size_t i = 0; i < m.event_count; i++) {
            const struct ew_event *event = &m.event[i];
            if (!lost[0] && event->t_ns >= lost_ns) {
                lost[0] = lost[1] = true;
                ew_tally_loss(all->tally, 1, event->t_ns, 3, &all->facts);
                ew_tally_loss(live->tally, 1, event->t_ns, 3, &live->facts);
            }
            pipe_feed(all, *event);
            if (roll(3) == 0)
                ew_tally_advance(live->tally, event->t_ns, &live->facts);
            pipe_feed(live, *event);
            /* Up to the certain time: just before the next event. */
            if (i + 1 < m.event_count && roll(5) == 0)
                ew_tally_advance(live->tally, m.event[i + 1].t_ns, &live->facts);
        }
        pipe_finish(all, m.end_ns);
        ew_tally_advance(live->tally, m.end_ns, &live->facts);
        pipe_finish(live, m.end_ns);
        CHECK(all->json.len > 10000);
        CHECK_EQ_UINT(live->json.len, all->json.len);
        CHECK(memcmp(live->json.data, all->json.data, all->json.len) == 0);
        pipe_close(all);
        pipe_close(live);
    }
}

/* Events lost at random: no time appears or disappears, and no thread gets more than it had. */
TEST(after_losses_all_time_is_still_accounted_for)
{
    for (uint64_t seed = 41; seed <= 52; seed++) {
        make(seed, false, 20000000);
        struct ew_tally_config config = tally_config();
        config.cpu_count = CPUS;
        config.threads = true;
        struct ew_tally *tally = tally_open(config);
        uint64_t until_ns[CPUS] = {0};
        size_t lost = 0;
        for (size_t i = 0; i < m.event_count; i++) {
            const struct ew_event *event = &m.event[i];
            bool of_cpu = event->kind == EW_EVENT_SWITCH || event->kind == EW_EVENT_INTERRUPT;
            if (of_cpu && until_ns[event->cpu] != 0 && event->t_ns < until_ns[event->cpu]) {
                lost++;
                continue;
            }
            if (of_cpu && until_ns[event->cpu] != 0) {
                ew_tally_loss(tally, event->cpu, event->t_ns, 1, NULL);
                until_ns[event->cpu] = 0;
            } else if (of_cpu && roll(50) == 0) {
                until_ns[event->cpu] = event->t_ns + roll(1000000);
            }
            feed(tally, *event);
        }
        CHECK(lost > 0);
        ew_tally_finish(tally, m.end_ns, NULL);
        struct ew_tally_system s = system_of(tally);
        CHECK_EQ_UINT(s.busy_ns + s.idle_ns + s.dpc_ns + s.isr_ns + s.unknown_ns,
                      s.cpus * (m.end_ns - FIRST));
        ew_tally_free(tally);
    }
}

/* Random events in any order: the only effect is counts. */
TEST(random_events_are_handled)
{
    for (uint64_t seed = 61; seed <= 70; seed++) {
        m.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
        struct ew_tally_config config = tally_config();
        config.max_processes = 8;
        config.max_threads = 24;
        config.images = true;
        struct pipeline *p = pipe_open(config, 1000, seed % 2 == 0);
        uint64_t t_ns = FIRST;
        for (int i = 0; i < 20000; i++) {
            struct ew_event event;
            memset(&event, 0, sizeof event);
            event.kind = (uint8_t)roll(EW_EVENT_LOST + 2);
            if (event.kind == EW_EVENT_LOST && roll(20) != 0)
                event.kind = EW_EVENT_SWITCH;
            t_ns += roll(5000);
            event.t_ns = roll(50) == 0 ? t_ns - roll(100000) : t_ns;
            event.pid = roll(9) == 0 ? NO : 4 * (uint32_t)roll(12);
            event.tid = roll(9) == 0 ? NO : 4 * (uint32_t)roll(40) + (uint32_t)(roll(9) == 0);
            event.cpu = (uint16_t)(roll(100) == 0 ? roll(65536) : roll(4));
            if (event.kind <= EW_EVENT_PROCESS_DEFUNCT) {
                event.u.process.parent_pid = 4 * (uint32_t)roll(12);
                event.u.process.key = roll(3);
                event.u.process.image = kit_text(roll(2) ? "a.exe" : "b.exe");
            } else if (event.kind == EW_EVENT_SWITCH) {
                event.u.cswitch.new_tid = 4 * (uint32_t)roll(40);
                event.u.cswitch.old_state = (uint8_t)roll(10);
            } else if (event.kind == EW_EVENT_INTERRUPT) {
                event.u.interrupt.began_raw = t_ns - roll(20000);
            } else if (event.kind >= EW_EVENT_DISK_READ && event.kind <= EW_EVENT_FILE_WRITE) {
                event.u.io.irp = roll(20);
                event.u.io.bytes = (uint32_t)roll(5000);
            }
            pipe_feed(p, event);
        }
        pipe_finish(p, t_ns);
        struct ew_tally_system s = system_of(p->tally);
        CHECK_EQ_UINT(s.busy_ns + s.idle_ns + s.dpc_ns + s.isr_ns + s.unknown_ns,
                      s.cpus * (t_ns - FIRST));
        pipe_close(p);
    }
}
