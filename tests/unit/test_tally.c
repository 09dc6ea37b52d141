/* SPDX-License-Identifier: MIT */
/* Accounting from events: hand-written schedules with results computed by hand. */
#include "tally_kit.h"

/* Process 100 with threads 104 and 108, process 200 with thread 204, all preexisting. */
static void rundown(struct ew_tally *tally)
{
    feed(tally, ev_process(EW_EVENT_PROCESS_THERE, US(0), 100, 4, "alpha.exe"));
    feed(tally, ev_thread(EW_EVENT_THREAD_THERE, US(0), 100, 104));
    feed(tally, ev_thread(EW_EVENT_THREAD_THERE, US(0), 100, 108));
    feed(tally, ev_process(EW_EVENT_PROCESS_THERE, US(0), 200, 100, "beta.exe"));
    feed(tally, ev_thread(EW_EVENT_THREAD_THERE, US(0), 200, 204));
}

static void check_all_time(const struct ew_tally *tally, uint64_t cpus, uint64_t wall_us)
{
    struct ew_tally_system s = system_of(tally);
    CHECK_EQ_UINT(s.busy_ns + s.idle_ns + s.dpc_ns + s.isr_ns + s.unknown_ns,
                  cpus * wall_us * 1000);
}

TEST(time_is_charged_to_the_outgoing_thread)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_switch(US(10), 0, 0, 104, WAITING)); /* before this no running thread is known */
    feed(tally, ev_switch(US(30), 0, 104, 204, READY));
    feed(tally, ev_switch(US(35), 0, 204, 104, WAITING));
    feed(tally, ev_switch(US(60), 0, 104, 0, WAITING));
    feed(tally, ev_switch(US(90), 0, 0, 108, WAITING));
    ew_tally_finish(tally, US(100), NULL);
    take_totals(tally, true);
    CHECK_EQ_UINT(cpu_us(total_of(100)), 20 + 25 + 10);
    CHECK_EQ_UINT(cpu_us(total_of(200)), 5);
    CHECK_EQ_UINT(cpu_us(total_nth(100, 104, 0)), 45);
    CHECK_EQ_UINT(cpu_us(total_nth(100, 108, 0)), 10);
    CHECK_EQ_UINT(total_nth(100, 104, 0)->counter[EW_C_switches_voluntary], 1);
    CHECK_EQ_UINT(total_nth(100, 104, 0)->counter[EW_C_switches_involuntary], 1);
    CHECK_EQ_UINT(cpu_us(total_of(0)), 30);
    CHECK((total_of(0)->flags & EW_TOTAL_IDLE) != 0);
    struct ew_tally_system s = system_of(tally);
    CHECK_EQ_UINT(s.busy_ns, 60000);
    CHECK_EQ_UINT(s.unknown_ns, 10000);
    CHECK_EQ_UINT(s.switches, 5);
    CHECK(s.cpu_from_switches);
    check_all_time(tally, 1, 100);
    ew_tally_free(tally);
}

TEST(unknown_counters_are_not_zero)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_switch(US(10), 0, 0, 104, WAITING));
    take_totals(tally, false);
    uint32_t has = total_of(100)->counter_has;
    CHECK((has & EW_HAS_C(cpu_ns)) != 0);
    CHECK((has & EW_HAS_C(switches_voluntary)) != 0);
    CHECK_EQ_UINT(has & EW_HAS_C(runq_wait_ns), 0);
    CHECK_EQ_UINT(has & EW_HAS_C(faults_minor), 0);
    CHECK_EQ_UINT(has & EW_HAS_C(disk_read_bytes), 0);
    CHECK_EQ_UINT(has & EW_HAS_C(cpu_user_ns), 0);
    feed(tally, ev_ready(US(11), 0, 204));
    feed(tally, ev_fault(US(12), 0, NO, 104, 11));
    take_totals(tally, false);
    has = total_of(200)->counter_has;
    CHECK((has & EW_HAS_C(runq_wait_ns)) != 0);
    CHECK((has & EW_HAS_C(faults_minor)) != 0);
    CHECK_EQ_UINT(total_of(200)->counter[EW_C_faults_minor], 0);
    ew_tally_free(tally);
}

TEST(waiting_for_a_cpu_is_counted_from_ready_and_from_preemption)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_switch(US(10), 0, 0, 104, WAITING));
    feed(tally, ev_ready(US(12), 0, 204));
    feed(tally, ev_ready(US(15), 0, 204)); /* logged twice: the first counts */
    feed(tally, ev_switch(US(20), 0, 104, 204, READY));
    feed(tally, ev_switch(US(50), 0, 204, 104, WAITING));
    take_totals(tally, false);
    CHECK_EQ_UINT(total_of(200)->counter[EW_C_runq_wait_ns], 8000);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_runq_wait_ns], 30000);
    /* Made ready while it was still being switched out: it waits from its switch-out. */
    feed(tally, ev_ready(US(60), 1, 104));
    feed(tally, ev_switch(US(70), 0, 104, 0, WAITING));
    feed(tally, ev_switch(US(75), 0, 0, 104, WAITING));
    take_totals(tally, false);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_runq_wait_ns], 35000);
    ew_tally_free(tally);
}

TEST(a_yield_is_voluntary_and_waits)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_ready(US(5), 0, 104));
    feed(tally, ev_switch(US(10), 0, 0, 104, WAITING));
    struct ew_event yield = ev_switch(US(20), 0, 104, 204, READY);
    yield.u.cswitch.old_wait_reason = 33;
    feed(tally, yield);
    feed(tally, ev_switch(US(26), 0, 204, 104, WAITING));
    take_totals(tally, false);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_switches_voluntary], 1);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_switches_involuntary], 0);
    CHECK_EQ_UINT(total_of(100)->counter[EW_C_runq_wait_ns], 5000 + 6000);
    ew_tally_free(tally);
}

TEST(a_thread_counts_from_the_beginning_if_its_process_is_logged_at_the_end)
{
    struct ew_tally *tally = tally_open(tally_config());
    feed(tally, ev_switch(US(0), 0, 0, 304, WAITING));
    feed(tally, ev_switch(US(40), 0, 304, 0, WAITING));
    take_totals(tally, true);
    CHECK((total_of(NO)->flags & EW_TOTAL_UNKNOWN) != 0);
    CHECK_EQ_UINT(cpu_us(total_of(NO)), 40);
    CHECK(system_of(tally).unattributed > 0);
    feed(tally, ev_thread(EW_EVENT_THREAD_STILL, US(90), 300, 304));
    feed(tally, ev_process(EW_EVENT_PROCESS_STILL, US(91), 300, 4, "late.exe"));
    ew_tally_finish(tally, US(100), NULL);
    take_totals(tally, true);
    CHECK_EQ_UINT(cpu_us(total_of(300)), 40);
    CHECK_EQ_STR(total_of(300)->name, "late.exe");
    CHECK_EQ_UINT(system_of(tally).unattributed, 0);
    ew_tally_free(tally);
}

TEST(a_reused_thread_id_is_another_thread)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_switch(US(0), 0, 0, 104, WAITING));
    feed(tally, ev_thread(EW_EVENT_THREAD_END, US(10), 100, 104));
    feed(tally,
         ev_switch(US(12), 0, 104, 0, TERMINATED)); /* its end is logged before its last run */
    feed(tally, ev_thread(EW_EVENT_THREAD_START, US(20), 200, 104));
    feed(tally, ev_switch(US(30), 0, 0, 104, WAITING));
    feed(tally, ev_switch(US(35), 0, 104, 0, WAITING));
    take_totals(tally, false);
    CHECK_EQ_UINT(cpu_us(total_of(100)), 12);
    CHECK_EQ_UINT(cpu_us(total_of(200)), 5);
    CHECK_EQ_UINT(total_of(100)->thread_count, 2);
    CHECK_EQ_UINT(total_of(100)->gauge[EW_G_threads], 1);
    CHECK_EQ_UINT(total_of(200)->gauge[EW_G_threads], 2);
    ew_tally_free(tally);
}

TEST(a_thread_may_wait_after_its_end_was_logged)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_switch(US(0), 0, 0, 104, WAITING));
    feed(tally, ev_thread(EW_EVENT_THREAD_END, US(10), 100, 104));
    feed(tally, ev_switch(US(12), 0, 104, 0, WAITING));
    take_totals(tally, false);
    CHECK_EQ_UINT(total_of(100)->gauge[EW_G_threads], 1);
    feed(tally, ev_switch(US(20), 0, 0, 104, WAITING));
    feed(tally, ev_switch(US(27), 0, 104, 0, TERMINATED));
    take_totals(tally, true);
    CHECK_EQ_UINT(cpu_us(total_of(100)), 19);
    CHECK_EQ_UINT(kit_totals.count, 1 + 2 + 2); /* the exited thread is not kept */
    ew_tally_free(tally);
}

TEST(a_thread_with_a_lost_last_switch_ends_with_the_recording)
{
    struct ew_tally_config config = tally_config();
    config.threads = true;
    struct ew_tally *tally = tally_open(config);
    rundown(tally);
    feed(tally, ev_switch(US(0), 0, 0, 104, WAITING));
    feed(tally, ev_thread(EW_EVENT_THREAD_END, US(10), 100, 104));
    ew_tally_loss(tally, 0, US(30), 2, NULL);
    feed(tally, ev_switch(US(40), 0, 204, 0, WAITING));
    ew_tally_finish(tally, US(50), NULL);
    take_totals(tally, true);
    CHECK_EQ_UINT(cpu_us(total_nth(100, 104, 0)), 10);
    CHECK_EQ_UINT(total_nth(100, 104, 0)->end_ns, US(10));
    CHECK((total_nth(100, 104, 0)->flags & EW_TOTAL_ENDED) != 0);
    CHECK_EQ_UINT(total_of(100)->gauge[EW_G_threads], 1);
    check_all_time(tally, 1, 50);
    ew_tally_free(tally);
}

TEST(a_reused_process_id_is_another_process)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_switch(US(0), 0, 0, 204, WAITING));
    feed(tally, ev_thread(EW_EVENT_THREAD_END, US(5), 200, 204));
    struct ew_event end = ev_process(EW_EVENT_PROCESS_END, US(6), 200, 100, "beta.exe");
    end.u.process.exit_status = -5;
    feed(tally, end);
    feed(tally, ev_switch(US(8), 0, 204, 0, TERMINATED));
    feed(tally, ev_process(EW_EVENT_PROCESS_START, US(20), 200, 100, "gamma.exe"));
    feed(tally, ev_thread(EW_EVENT_THREAD_START, US(21), 200, 204));
    feed(tally, ev_switch(US(30), 0, 0, 204, WAITING));
    feed(tally, ev_switch(US(31), 0, 204, 0, WAITING));
    ew_tally_finish(tally, US(40), NULL);
    take_totals(tally, false);
    const struct ew_total *first = total_nth(200, 0, 0), *second = total_nth(200, 0, 1);
    CHECK_EQ_STR(first->name, "beta.exe");
    CHECK_EQ_UINT(cpu_us(first), 8);
    CHECK_EQ_UINT(first->end_ns, US(6));
    CHECK_EQ_INT(first->exit_status, -5);
    CHECK_EQ_UINT(first->flags & (EW_TOTAL_ENDED | EW_TOTAL_STARTED | EW_TOTAL_HAS_EXIT),
                  EW_TOTAL_ENDED | EW_TOTAL_HAS_EXIT);
    CHECK_EQ_STR(second->name, "gamma.exe");
    CHECK_EQ_UINT(cpu_us(second), 1);
    CHECK_EQ_UINT(second->start_ns, US(20));
    CHECK_EQ_UINT(second->ppid, 100);
    check_all_time(tally, 1, 40);
    ew_tally_free(tally);
}

TEST(two_providers_may_log_the_same_start)
{
    struct ew_tally *tally = tally_open(tally_config());
    feed(tally, ev_process(EW_EVENT_PROCESS_START, US(0), 100, 4, "alpha.exe"));
    feed(tally, ev_process(EW_EVENT_PROCESS_START, US(3), 100, 4, "\\Device\\x\\alpha.exe"));
    feed(tally, ev_thread(EW_EVENT_THREAD_START, US(4), 100, 104));
    feed(tally, ev_thread(EW_EVENT_THREAD_START, US(5), 100, 104));
    feed(tally, ev_process(EW_EVENT_PROCESS_END, US(9), 100, 4, "alpha.exe"));
    feed(tally, ev_process(EW_EVENT_PROCESS_END, US(10), 100, 4, "alpha.exe"));
    take_totals(tally, false);
    CHECK_EQ_UINT(kit_totals.count, 1);
    CHECK_EQ_UINT(total_of(100)->thread_count, 1);
    CHECK_EQ_UINT(total_of(100)->end_ns, US(9));
    ew_tally_free(tally);
}

TEST(interrupt_time_is_subtracted_from_the_thread_and_nests)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_switch(US(0), 0, 0, 104, WAITING));
    feed(tally, ev_irq(US(10), US(12), 0, true)); /* an ISR alone */
    feed(tally, ev_irq(US(22), US(24), 0, true)); /* two in a DPC */
    feed(tally, ev_irq(US(25), US(26), 0, true));
    feed(tally, ev_irq(US(20), US(30), 0, false));
    feed(tally, ev_switch(US(50), 0, 104, 0, WAITING));
    feed(tally, ev_irq(US(60), US(64), 0, false)); /* during idle, too */
    feed(tally, ev_switch(US(70), 0, 0, 204, WAITING));
    ew_tally_finish(tally, US(80), NULL);
    take_totals(tally, false);
    CHECK_EQ_UINT(cpu_us(total_of(100)), 50 - 2 - 10);
    struct ew_tally_system s = system_of(tally);
    CHECK_EQ_UINT(s.isr_ns, 5000);
    CHECK_EQ_UINT(s.dpc_ns, 7000 + 4000);
    CHECK_EQ_UINT(s.idle_ns, 16000);
    check_all_time(tally, 1, 80);
    ew_tally_free(tally);
}

TEST(an_interrupt_logged_after_many_others_counts_once)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_switch(US(0), 0, 0, 104, WAITING));
    for (uint64_t i = 0; i < 100; i++)
        feed(tally, ev_irq(US(100 + 10 * i), US(104 + 10 * i), 0, true));
    feed(tally, ev_irq(US(50), US(1200), 0, false));
    ew_tally_finish(tally, US(2000), NULL);
    struct ew_tally_system s = system_of(tally);
    CHECK_EQ_UINT(s.isr_ns, 400000);
    CHECK_EQ_UINT(s.dpc_ns, 1150000 - 400000);
    check_all_time(tally, 1, 2000);
    ew_tally_free(tally);
}

TEST(after_a_loss_the_running_thread_is_unknown_until_the_next_switch)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_switch(US(0), 0, 0, 104, WAITING));
    feed(tally, ev_switch(US(1), 1, 0, 204, WAITING));
    feed(tally, ev_ready(US(10), 0, 108)); /* the last event of CPU 0 before the loss */
    ew_tally_loss(tally, 0, US(50), 7, NULL);
    feed(tally, ev_switch(US(60), 0, 108, 104, WAITING));
    feed(tally, ev_switch(US(70), 0, 104, 0, WAITING));
    ew_tally_finish(tally, US(100), NULL);
    take_totals(tally, true);
    CHECK_EQ_UINT(cpu_us(total_nth(100, 104, 0)), 10 + 10);
    CHECK_EQ_UINT(cpu_us(total_nth(100, 108, 0)), 0);
    CHECK_EQ_UINT(total_nth(100, 108, 0)->counter[EW_C_runq_wait_ns], 0);
    CHECK_EQ_UINT(cpu_us(total_of(200)), 99);
    CHECK((total_of(100)->flags & EW_TOTAL_INCOMPLETE) != 0);
    struct ew_tally_system s = system_of(tally);
    CHECK_EQ_UINT(s.unknown_ns, 50000 + 1000);
    CHECK_EQ_UINT(s.lost, 7);
    check_all_time(tally, 2, 100);
    ew_tally_free(tally);
}

TEST(a_switch_from_an_unexpected_thread_means_that_switches_were_lost)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_switch(US(0), 0, 0, 104, WAITING));
    feed(tally, ev_switch(US(30), 0, 204, 0, WAITING));
    ew_tally_finish(tally, US(50), NULL);
    take_totals(tally, false);
    CHECK_EQ_UINT(cpu_us(total_of(100)), 0);
    CHECK_EQ_UINT(cpu_us(total_of(200)), 0);
    CHECK_EQ_UINT(system_of(tally).inconsistent, 1);
    CHECK_EQ_UINT(system_of(tally).unknown_ns, 30000);
    check_all_time(tally, 1, 50);
    ew_tally_free(tally);
}

TEST(without_switches_time_is_estimated_from_samples)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_sample(US(5), 0, 104)); /* before the interval is reported */
    feed(tally, ev_sample_interval(US(6), 5000));
    feed(tally, ev_sample(US(10), 0, 104));
    feed(tally, ev_sample(US(15), 0, 0));
    feed(tally, ev_sample_interval(US(16), 10000));
    feed(tally, ev_sample(US(20), 0, 204));
    struct ew_event dpc = ev_sample(US(25), 0, 204);
    dpc.u.sample.in_dpc = true;
    feed(tally, dpc);
    take_totals(tally, false);
    CHECK_EQ_UINT(cpu_us(total_of(100)), 1000 + 500);
    CHECK_EQ_UINT(cpu_us(total_of(200)), 1000);
    CHECK_EQ_UINT(total_of(200)->samples, 2);
    CHECK_EQ_UINT(cpu_us(total_of(0)), 500);
    CHECK((total_of(100)->flags & EW_TOTAL_CPU_ESTIMATED) != 0);
    CHECK((total_of(100)->counter_has & EW_HAS_C(cpu_ns)) != 0);
    CHECK_EQ_UINT(total_of(100)->counter_has & EW_HAS_C(switches_voluntary), 0);
    struct ew_tally_system s = system_of(tally);
    CHECK(!s.cpu_from_switches);
    CHECK(!s.sample_interval_assumed);
    CHECK_EQ_UINT(s.busy_ns, 2500000);
    CHECK_EQ_UINT(s.dpc_ns, 1000000);
    CHECK_EQ_UINT(s.samples, 5);
    /* Switches take precedence over samples as soon as there are any. */
    feed(tally, ev_switch(US(30), 0, 0, 104, WAITING));
    feed(tally, ev_switch(US(40), 0, 104, 0, WAITING));
    take_totals(tally, false);
    CHECK_EQ_UINT(cpu_us(total_of(100)), 10);
    CHECK_EQ_UINT(total_of(100)->flags & EW_TOTAL_CPU_ESTIMATED, 0);
    ew_tally_free(tally);
}

TEST(samples_give_the_cpu_mode_that_switches_lack)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_switch(US(1), 0, 0, 104, WAITING));
    struct ew_event kernel = ev_sample(US(2), 0, 104);
    kernel.u.sample.in_kernel = true;
    feed(tally, kernel); /* before the interval is reported */
    feed(tally, ev_sample_interval(US(3), 5000));
    feed(tally, kernel);
    feed(tally, ev_sample(US(4), 0, 104));
    kernel.u.sample.in_dpc = true;
    feed(tally, kernel); /* not the thread's */
    feed(tally, ev_switch(US(9), 0, 104, 0, WAITING));
    take_totals(tally, false);
    const struct ew_total *total = total_of(100);
    CHECK_EQ_UINT(cpu_us(total), 8); /* still exact */
    CHECK_EQ_UINT(total->counter[EW_C_cpu_kernel_ns], 1000000);
    CHECK_EQ_UINT(total->counter[EW_C_cpu_user_ns], 500000);
    CHECK((total->counter_has & EW_HAS_C(cpu_kernel_ns)) != 0);
    ew_tally_free(tally);
}

TEST(a_sample_interval_that_is_never_logged_is_a_millisecond)
{
    struct ew_tally *tally = tally_open(tally_config());
    rundown(tally);
    feed(tally, ev_sample(US(5), 0, 104));
    take_totals(tally, false);
    CHECK_EQ_UINT(cpu_us(total_of(100)), 1000);
    CHECK(system_of(tally).sample_interval_assumed);
    ew_tally_free(tally);
}

TEST(idle_is_not_a_process)
{
    struct ew_tally *tally = tally_open(tally_config());
    feed(tally, ev_process(EW_EVENT_PROCESS_THERE, US(0), 0, 0, "Idle"));
    feed(tally, ev_thread(EW_EVENT_THREAD_THERE, US(0), 0, 0));
    feed(tally, ev_thread(EW_EVENT_THREAD_THERE, US(0), 0, 0));
    feed(tally, ev_switch(US(0), 0, 4, 0, WAITING));
    feed(tally, ev_switch(US(0), 1, 4, 0, WAITING));
    ew_tally_finish(tally, US(50), NULL);
    take_totals(tally, false);
    CHECK_EQ_UINT(cpu_us(total_of(0)), 100);
    CHECK_EQ_UINT(system_of(tally).busy_ns, 0);
    ew_tally_free(tally);
}

/* The object of an ended thread is used again: nothing may still point to it. */
TEST(a_thread_that_seems_to_run_on_two_cpus_leaves_both_when_it_ends)
{
    struct ew_tally_config config = tally_config();
    config.cpu_count = 2;
    struct ew_tally *tally = tally_open(config);
    rundown(tally);
    feed(tally, ev_switch(US(10), 0, 0, 104, WAITING));
    feed(tally, ev_switch(US(20), 1, 0, 104, WAITING)); /* its switch away from CPU 0 is missing */
    feed(tally, ev_thread(EW_EVENT_THREAD_END, US(30), 100, 104));
    feed(tally, ev_switch(US(40), 1, 104, 0, WAITING));
    feed(tally, ev_thread(EW_EVENT_THREAD_START, US(50), 200, 208));
    feed(tally, ev_switch(US(60), 0, 104, 0, WAITING));
    ew_tally_finish(tally, US(100), NULL);
    take_totals(tally, true);
    CHECK_EQ_UINT(cpu_us(total_nth(200, 208, 0)), 0);
    CHECK_EQ_UINT(cpu_us(total_of(200)), 0);
    CHECK(cpu_us(total_of(100)) >= 20);
    ew_tally_free(tally);
}
