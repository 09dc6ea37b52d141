/* SPDX-License-Identifier: MIT */
/*
 * Hardware counters in context switches: which thread they belong to, and when they belong to none.
 */
#include "tally_kit.h"

/*
 * A switch with these values of the CPU's counters; all counters of one event are stored in a row.
 */
static struct ew_event counted(struct ew_event e, uint8_t count, uint64_t first, uint64_t second)
{
    static uint64_t places[64][2];
    static unsigned next;
    uint64_t *place = places[next++ % 64];
    place[0] = first;
    place[1] = second;
    e.u.cswitch.pmc_count = count;
    e.u.cswitch.pmc = (const uint8_t *)place;
    return e;
}

static struct ew_pmc_map map_of(const char *first, const char *second)
{
    struct ew_pmc_map map = {0};
    const char *const names[] = {first, second};
    for (size_t i = 0; i < 2 && names[i] != NULL; i++) {
        uint8_t wide[80];
        size_t len = strlen(names[i]);
        for (size_t k = 0; k < len; k++) {
            wide[2 * k] = (uint8_t)names[i][k];
            wide[2 * k + 1] = 0;
        }
        CHECK(ew_pmc_add(&map, wide, 2 * len));
    }
    return map;
}

static struct ew_event names(uint64_t t_ns, const char *first, const char *second)
{
    struct ew_event e = kit_event(EW_EVENT_PMC_NAMES, t_ns, NO, NO);
    e.u.pmc_names = map_of(first, second);
    return e;
}

static void rundown(struct ew_tally *tally)
{
    feed(tally, ev_process(EW_EVENT_PROCESS_THERE, US(0), 100, 4, "alpha.exe"));
    feed(tally, ev_thread(EW_EVENT_THREAD_THERE, US(0), 100, 104));
    feed(tally, ev_thread(EW_EVENT_THREAD_THERE, US(0), 100, 108));
    feed(tally, ev_process(EW_EVENT_PROCESS_THERE, US(0), 200, 100, "beta.exe"));
    feed(tally, ev_thread(EW_EVENT_THREAD_THERE, US(0), 200, 204));
}

static struct ew_tally *begin(void)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, names(US(1), "TotalCycles", "LLCMisses"));
    return tally;
}

static void end(struct ew_tally *tally, uint64_t t_ns)
{
    ew_tally_finish(tally, t_ns, NULL);
    take_totals(tally, true);
    ew_tally_free(tally);
}

static uint64_t cycles(uint32_t pid, uint32_t tid)
{
    const struct ew_total *total = total_nth(pid, tid, 0);
    CHECK((total->counter_has & EW_HAS_C(cycles)) != 0);
    return total->counter[EW_C_cycles];
}

static bool known(uint32_t pid)
{
    return (total_of(pid)->counter_has & EW_HAS_PMC) != 0;
}

static bool complete(uint32_t pid)
{
    return (total_of(pid)->flags & EW_TOTAL_INCOMPLETE) == 0;
}

/* ------------------------------------------------------------------------ attribution */

TEST(counts_of_a_cpu_belong_to_the_thread_that_ran)
{
    struct ew_tally *tally = begin();
    feed(tally, counted(ev_switch(US(10), 0, 0, 104, WAITING), 2, 1000, 10));
    feed(tally, counted(ev_switch(US(12), 1, 0, 204, WAITING), 2, 9000, 90));
    feed(tally, counted(ev_switch(US(30), 0, 104, 108, READY), 2, 1500, 13));
    feed(tally, counted(ev_switch(US(40), 0, 108, 0, WAITING), 2, 1507, 13));
    feed(tally, counted(ev_switch(US(50), 1, 204, 104, WAITING), 2, 9100, 91));
    feed(tally, counted(ev_switch(US(60), 0, 0, 204, WAITING), 2, 2000, 14));
    feed(tally, counted(ev_switch(US(70), 1, 104, 0, WAITING), 2, 9900, 99));
    feed(tally, counted(ev_switch(US(80), 0, 204, 0, WAITING), 2, 2003, 14));
    end(tally, US(100));
    CHECK_EQ_UINT(cycles(100, 104), 500 + 800);
    CHECK_EQ_UINT(cycles(100, 108), 7);
    CHECK_EQ_UINT(cycles(100, 0), 1307);
    CHECK_EQ_UINT(cycles(200, 0), 100 + 3);
    CHECK_EQ_UINT(cycles(0, 0), 493); /* of the idle thread */
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_cache_misses], 3 + 8);
    CHECK_EQ_UINT(total_of(100)->counter_has & EW_HAS_C(instructions), 0);
    CHECK(complete(100) && complete(200));
}

TEST(counts_before_the_first_switch_belong_to_no_thread)
{
    struct ew_tally *tally = begin();
    feed(tally, counted(ev_switch(US(10), 0, 104, 204, WAITING), 2, 70000, 500));
    feed(tally, counted(ev_switch(US(20), 0, 204, 0, WAITING), 2, 70001, 501));
    end(tally, US(30));
    CHECK_EQ_UINT(cycles(100, 0), 0);
    CHECK_EQ_UINT(cycles(200, 0), 1);
}

TEST(across_a_loss_nothing_is_counted)
{
    struct ew_tally *tally = begin();
    feed(tally, counted(ev_switch(US(10), 0, 0, 104, WAITING), 2, 1000, 10));
    ew_tally_loss(tally, 0, US(20), 5, NULL);
    feed(tally, counted(ev_switch(US(30), 0, 104, 204, WAITING), 2, 5000, 50));
    feed(tally, counted(ev_switch(US(40), 0, 204, 0, WAITING), 2, 5002, 50));
    end(tally, US(50));
    CHECK_EQ_UINT(cycles(100, 0), 0);
    CHECK_EQ_UINT(cycles(200, 0), 2);
    CHECK(!complete(100));
}

TEST(a_switch_from_an_unexpected_thread_means_that_one_was_lost)
{
    struct ew_tally *tally = begin();
    feed(tally, counted(ev_switch(US(10), 0, 0, 104, WAITING), 2, 1000, 10));
    feed(tally, counted(ev_switch(US(30), 0, 204, 108, WAITING), 2, 5000, 50));
    feed(tally, counted(ev_switch(US(40), 0, 108, 0, WAITING), 2, 5009, 50));
    end(tally, US(50));
    CHECK_EQ_UINT(cycles(100, 0), 9);
    CHECK_EQ_UINT(cycles(200, 0), 0);
}

TEST(a_counter_that_decreases_is_a_gap_of_that_counter_only)
{
    struct ew_tally *tally = begin();
    feed(tally, counted(ev_switch(US(10), 0, 0, 104, WAITING), 2, 1000, 10));
    feed(tally, counted(ev_switch(US(20), 0, 104, 204, WAITING), 2, 5, 12));
    feed(tally, counted(ev_switch(US(30), 0, 204, 0, WAITING), 2, 11, 13));
    end(tally, US(50));
    CHECK_EQ_UINT(cycles(100, 0), 0);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_cache_misses], 2);
    CHECK(!complete(100));
    CHECK_EQ_UINT(cycles(200, 0), 6);
    CHECK(complete(200));
}

TEST(switches_without_counters_are_a_gap_once_there_were_some)
{
    struct ew_tally *tally = begin();
    feed(tally, ev_switch(US(5), 0, 0, 204, WAITING)); /* they have not begun */
    feed(tally, ev_switch(US(6), 0, 204, 0, WAITING));
    feed(tally, counted(ev_switch(US(10), 0, 0, 204, WAITING), 2, 1000, 10));
    feed(tally, counted(ev_switch(US(20), 0, 204, 104, WAITING), 2, 1020, 10));
    feed(tally, ev_switch(US(30), 0, 104, 0, WAITING));
    feed(tally, counted(ev_switch(US(40), 0, 0, 204, WAITING), 2, 3000, 10));
    feed(tally, counted(ev_switch(US(50), 0, 204, 0, WAITING), 2, 3001, 10));
    end(tally, US(60));
    CHECK_EQ_UINT(cycles(100, 0), 0);
    CHECK(!complete(100));
    CHECK_EQ_UINT(cycles(200, 0), 21);
    CHECK(complete(200));
}

/* ------------------------------------------------------------------------ names */

TEST(names_may_come_late_but_must_not_change)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, counted(ev_switch(US(10), 0, 0, 104, WAITING), 2, 1000, 10));
    feed(tally, counted(ev_switch(US(20), 0, 104, 0, WAITING), 2, 1020, 15));
    take_totals(tally, false);
    CHECK(!known(100));
    feed(tally, names(US(30), "CacheMisses", "InstructionRetired"));
    take_totals(tally, false);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_cache_misses], 20);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_instructions], 5);
    CHECK_EQ_UINT(total_of(100)->counter_has & EW_HAS_C(cycles), 0);
    feed(tally, names(US(31), "CacheMisses", "InstructionRetired"));
    take_totals(tally, false);
    CHECK(known(100));
    feed(tally, names(US(32), "InstructionRetired", "CacheMisses"));
    end(tally, US(50));
    CHECK(!known(100));
}

TEST(counters_are_used_only_if_all_have_names)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, names(US(1), "TotalCycles", NULL));
    feed(tally, counted(ev_switch(US(10), 0, 0, 104, WAITING), 2, 1000, 10));
    feed(tally, counted(ev_switch(US(20), 0, 104, 0, WAITING), 2, 1020, 15));
    end(tally, US(50));
    CHECK(!known(100));
    tally = begin();
    feed(tally, counted(ev_switch(US(10), 0, 0, 104, WAITING), 2, 1000, 10));
    feed(tally, counted(ev_switch(US(20), 0, 104, 0, WAITING), 2, 1020, 15));
    take_totals(tally, false);
    CHECK(known(100));
    feed(tally, counted(ev_switch(US(30), 0, 0, 104, WAITING), 1, 1100, 0));
    end(tally, US(50));
    CHECK(!known(100));
}

TEST(names_without_counters_do_not_give_zeros)
{
    struct ew_tally *tally = begin();
    feed(tally, ev_switch(US(10), 0, 0, 104, WAITING));
    feed(tally, ev_switch(US(20), 0, 104, 0, WAITING));
    end(tally, US(50));
    CHECK(!known(100));
}

TEST(disturbed_counters_are_not_reported)
{
    struct ew_tally *tally = begin();
    feed(tally, counted(ev_switch(US(10), 0, 0, 104, WAITING), 2, 1000, 10));
    feed(tally, counted(ev_switch(US(20), 0, 104, 0, WAITING), 2, 1020, 15));
    feed(tally, kit_event(EW_EVENT_PMC_DISTURBED, US(30), NO, NO));
    end(tally, US(50));
    CHECK(!known(100));
}

TEST(of_two_names_for_one_metric_the_better_is_used)
{
    struct ew_pmc_map map = map_of("TotalCycles", "UnhaltedCoreCycles");
    CHECK_EQ_UINT(map.counter[0], EW_PMC_NONE);
    CHECK_EQ_UINT(map.counter[1], EW_C_cycles);
    map = map_of("UnhaltedCoreCycles", "TotalCycles");
    CHECK_EQ_UINT(map.counter[0], EW_C_cycles);
    CHECK_EQ_UINT(map.counter[1], EW_PMC_NONE);
    CHECK_EQ_UINT(ew_pmc_has(&map), EW_HAS_C(cycles));
    map = map_of("UnhaltedReferenceCycles", "DcacheMisses"); /* similar, but a different counter */
    CHECK_EQ_UINT(ew_pmc_has(&map), 0);
    CHECK_EQ_UINT(map.count, 2);
}

/* -------------------------------------------------------------------------- in samples */

TEST(a_run_counts_in_the_interval_in_which_it_ends)
{
    struct ew_tally_config config = tally_config();
    config.pmc = map_of("TotalCycles", "LLCMisses");
    config.classes_known = EW_TALLY_SWITCHES;
    struct pipeline *p = pipe_open(config, 1000, false);
    p->only_pid = 100;
    struct ew_event first = counted(ev_switch(US(100), 0, 0, 104, WAITING), 2, 1000, 10);
    ew_tally_learn(p->tally, &first); /* as a session does with its initial events */
    pipe_feed(p, ev_process(EW_EVENT_PROCESS_THERE, US(0), 100, 4, "alpha.exe"));
    pipe_feed(p, ev_thread(EW_EVENT_THREAD_THERE, US(0), 100, 104));
    pipe_feed(p, first);
    pipe_feed(p, counted(ev_switch(US(600), 0, 104, 0, WAITING), 2, 1500, 11));
    pipe_feed(p, counted(ev_switch(US(900), 0, 0, 104, WAITING), 2, 1600, 11));
    pipe_feed(p, counted(ev_switch(US(1500), 0, 104, 0, WAITING), 2, 2600, 19));
    pipe_feed(p, counted(ev_switch(US(2100), 0, 0, 104, WAITING), 2, 2700, 19));
    pipe_finish(p, US(2200));
    CHECK_EQ_UINT(p->kept_count, 3);
    CHECK_EQ_UINT(p->kept[0].cycles, 500);
    CHECK_EQ_UINT(p->kept[1].cycles, 1000);
    CHECK_EQ_UINT(p->kept[1].cache_misses, 8);
    CHECK((p->kept[1].flags & ETWATCH_SAMPLE_COMPLETE) != 0);
    CHECK(!etwatch_sample_has(&p->kept[0], ETWATCH_M_instructions));
    /* It still runs: its counts are not reported any more. */
    CHECK((p->kept[2].flags & ETWATCH_SAMPLE_COMPLETE) == 0);
    pipe_close(p);
}

TEST(from_a_disturbance_on_samples_have_no_counters)
{
    struct ew_tally_config config = tally_config();
    config.pmc = map_of("TotalCycles", "LLCMisses");
    struct pipeline *p = pipe_open(config, 1000, false);
    p->only_pid = 100;
    pipe_feed(p, ev_process(EW_EVENT_PROCESS_THERE, US(0), 100, 4, "alpha.exe"));
    pipe_feed(p, ev_thread(EW_EVENT_THREAD_THERE, US(0), 100, 104));
    pipe_feed(p, counted(ev_switch(US(100), 0, 0, 104, WAITING), 2, 1000, 10));
    pipe_feed(p, counted(ev_switch(US(600), 0, 104, 0, WAITING), 2, 1500, 11));
    pipe_feed(p, kit_event(EW_EVENT_PMC_DISTURBED, US(1100), NO, NO));
    pipe_feed(p, counted(ev_switch(US(1200), 0, 0, 104, WAITING), 2, 1600, 11));
    pipe_feed(p, counted(ev_switch(US(1500), 0, 104, 0, WAITING), 2, 2600, 19));
    pipe_finish(p, US(2100));
    CHECK_EQ_UINT(p->kept_count, 2);
    CHECK_EQ_UINT(p->kept[0].cycles, 500);
    CHECK(!etwatch_sample_has(&p->kept[1], ETWATCH_M_cycles));
    CHECK(etwatch_sample_has(&p->kept[1], ETWATCH_M_cpu_ns));
    pipe_close(p);
}

TEST(names_that_come_in_the_middle_of_samples_are_too_late)
{
    struct pipeline *p = pipe_open(tally_config(), 1000, false);
    p->only_pid = 100;
    pipe_feed(p, ev_process(EW_EVENT_PROCESS_START, US(0), 100, 4, "alpha.exe"));
    pipe_feed(p, ev_thread(EW_EVENT_THREAD_START, US(0), 100, 104));
    pipe_feed(p, counted(ev_switch(US(100), 0, 0, 104, WAITING), 2, 1000, 10));
    pipe_feed(p, counted(ev_switch(US(600), 0, 104, 0, WAITING), 2, 1500, 11));
    pipe_feed(p, names(US(1100), "TotalCycles", "LLCMisses"));
    pipe_feed(p, counted(ev_switch(US(1200), 0, 0, 104, WAITING), 2, 1600, 11));
    pipe_feed(p, counted(ev_switch(US(1500), 0, 104, 0, WAITING), 2, 2600, 19));
    pipe_finish(p, US(2100));
    CHECK_EQ_UINT(p->kept_count, 2);
    CHECK(!etwatch_sample_has(&p->kept[0], ETWATCH_M_cycles));
    CHECK(!etwatch_sample_has(&p->kept[1], ETWATCH_M_cycles));
    pipe_close(p);
}

static int run_once(void *ctx)
{
    struct ew_tally_config config = tally_config();
    struct ew_tally *tally = NULL;
    (void)ctx;
    int rc = ew_tally_new(&config, &tally);
    if (rc < 0)
        return rc;
    struct ew_event events[] = {names(US(1), "TotalCycles", "LLCMisses"),
                                counted(ev_switch(US(10), 0, 0, 104, WAITING), 2, 1000, 10),
                                counted(ev_switch(US(20), 0, 104, 0, WAITING), 2, 1001, 10)};
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        struct ew_record record = {.t_ns = events[i].t_ns, .pid = NO, .tid = NO};
        int one = ew_tally_event(tally, &record, &events[i], NULL);
        rc = rc < 0 ? rc : one;
    }
    ew_tally_free(tally);
    return rc;
}

TEST(every_failed_allocation_is_handled)
{
    TORTURE(run_once, NULL);
}
