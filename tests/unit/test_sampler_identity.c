/* SPDX-License-Identifier: MIT */
/* Which process a fact belongs to: reused IDs, unknown ones, exec, watching again. */
#include "sampler_kit.h"

#define CPU(s) ((s)->cpu_ns / NS_PER_MS)
#define OPEN EW_READING_OPEN
#define SPAN EW_READING_SPAN
#define AT EW_READING_AT
#define FINAL EW_READING_FINAL

TEST(a_pid_that_comes_back_ends_the_old_process_with_unknown_status)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "old");
    kit_read(OPEN, 1, 1, MS(2), 0, 0);
    kit_read(AT, 1, 1, MS(4), NS_PER_MS, 1);
    kit_start(1, MS(7), "new");
    struct ew_reading r = kit_values(OPEN, 1, 1, MS(8), 0, 0);
    r.start_ns = MS(7);
    kit_reading(r);
    r = kit_values(AT, 1, 1, MS(10), 2 * NS_PER_MS, 1);
    r.start_ns = MS(7);
    kit_reading(r);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 S1 s1");
    CHECK_EQ_STR(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->name, "new");
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 2);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->start_ns, UNIX_MS(7));
    (void)kit_cut(MS(20));
    (void)kit_cut(MS(30));
    CHECK_EQ_STR(kit_story(), "s1 X1"); /* the exit of its thread was never reported */
    const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_EXIT, 1, 0);
    CHECK_EQ_STR(s->name, "old");
    CHECK_EQ_UINT(CPU(s), 1);
    CHECK_EQ_UINT(s->start_ns, UNIX_MS(1));
    CHECK((s->flags & ETWATCH_SAMPLE_COMPLETE) == 0);
    CHECK(!kit_has(s, ETWATCH_M_exit_code));
    CHECK(!kit_has(s, ETWATCH_M_exit_ns));
    CHECK_EQ_UINT(kit_counts().processes, 1);
    kit_close();
}

TEST(readings_of_old_and_new_under_one_pid_do_not_mix)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "old");
    kit_exit(1, MS(1), MS(5), 0);
    kit_start(1, MS(6), "new");
    struct ew_reading r = kit_values(FINAL, 1, 1, MS(5), 3 * NS_PER_MS, 1);
    r.start_ns = MS(1);
    r.ran_from_ns = MS(2);
    kit_reading(r);
    r = kit_values(AT, 1, 1, MS(9), NS_PER_MS, 1);
    r.start_ns = MS(6);
    kit_reading(r);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 S1 s1 s1 X1");
    for (size_t i = 0; i < 2; i++) {
        const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_SAMPLE, 1, i);
        CHECK_EQ_UINT(CPU(s), s->start_ns == UNIX_MS(1) ? 3 : 1);
    }
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_EXIT, 1, 0)->start_ns, UNIX_MS(1));
    kit_close();
}

TEST(a_thread_of_a_new_process_does_not_belong_to_the_exited_one)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "old");
    kit_exit(1, MS(1), MS(5), 0);
    struct ew_reading r = kit_values(AT, 1, 2, MS(9), NS_PER_MS, 1);
    r.start_ns = MS(7);
    kit_reading(r);
    kit_start(1, MS(6), "new");
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 S1 s1 s1 X1");
    CHECK_EQ_STR(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->name, "new");
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 1);
    CHECK(!kit_has(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1), ETWATCH_M_cpu_ns));
    kit_close();
}

TEST(readings_of_an_exited_process_do_not_create_a_new_one)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "a");
    kit_exit(1, MS(1), MS(6), 0);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 s1 X1");
    struct ew_reading r = kit_values(FINAL, 1, 1, MS(6.1), NS_PER_MS, 1);
    r.start_ns = MS(1);
    kit_reading(r);
    r.tid = 2;
    r.start_ns = MS(3);
    kit_reading(r);
    kit_exit(1, MS(1), MS(6), 0);
    (void)kit_cut(MS(30));
    CHECK_EQ_STR(kit_story(), "");
    CHECK_EQ_UINT(kit_counts().processes, 0);
    CHECK_EQ_UINT(kit_counts().late, 3);
    kit_close();
}

TEST(a_reading_of_an_unknown_process_creates_it_without_name_and_incomplete)
{
    kit_open(kit_config());
    struct ew_reading r = kit_values(OPEN, 1, 1, MS(2), 50, 0);
    r.start_ns = 777;
    kit_reading(r);
    kit_read(AT, 1, 1, MS(9), NS_PER_MS + 50, 0);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 s1");
    CHECK_EQ_STR(kit_nth(ETWATCH_TYPE_START, 1, 0)->name, NULL);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_START, 1, 0)->flags, 0);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_START, 1, 0)->start_ns, 777 + (uint64_t)UNIX_MINUS_RAW);
    CHECK((kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->flags & ETWATCH_SAMPLE_COMPLETE) != 0);
    kit_close();
}

TEST(a_start_that_follows_its_readings_in_the_same_drain_is_complete)
{
    kit_open(kit_config());
    struct ew_reading r = kit_values(FINAL, 1, 2, MS(5), NS_PER_MS, 1); /* not the leader */
    r.start_ns = MS(4);
    kit_reading(r);
    kit_start(1, MS(3), "a");
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 s1");
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_START, 1, 0)->flags, ETWATCH_SAMPLE_COMPLETE);
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_START, 1, 0)->start_ns, UNIX_MS(3));
    CHECK_EQ_STR(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->name, "a");
    kit_close();
}

TEST(an_exit_of_an_unknown_process_is_reported_with_a_start)
{
    kit_open(kit_config());
    kit_exit(1, MS(3), MS(5), 7);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 s1 X1");
    CHECK((kit_nth(ETWATCH_TYPE_START, 1, 0)->flags & ETWATCH_SAMPLE_COMPLETE) == 0);
    CHECK((kit_nth(ETWATCH_TYPE_EXIT, 1, 0)->flags & ETWATCH_SAMPLE_COMPLETE) == 0);
    CHECK_EQ_INT(kit_nth(ETWATCH_TYPE_EXIT, 1, 0)->exit_code, 7);
    kit_close();
}

TEST(a_start_fact_sent_twice_is_one_start)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "a");
    kit_start(1, MS(1), "a");
    kit_process(EW_PROCESS_SEEN, 1, MS(1), MS(2), "a");
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1");
    kit_close();
}

TEST(an_exec_changes_the_name_and_rereads_the_strings)
{
    kit_open(kit_config());
    kit_start(1, MS(1), "sh");
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_nth(ETWATCH_TYPE_START, 1, 0)->name, "sh");
    kit_process(EW_PROCESS_EXEC, 1, MS(1), MS(11), "python3");
    kit_read(AT, 1, 1, MS(15), NS_PER_MS, 1);
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "s1");
    CHECK_EQ_STR(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->name, "python3");
    kit_process(EW_PROCESS_RENAME, 1, MS(1), MS(21), "main");
    kit_read(AT, 1, 1, MS(25), 2 * NS_PER_MS, 1);
    (void)kit_cut(MS(30));
    CHECK_EQ_STR(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)->name, "main");
    kit_close();
}

TEST(a_thread_that_calls_exec_moves_its_counts_to_the_leaders_id)
{
    kit_open(kit_config());
    kit_start(1, MS(0), "a");
    kit_read(OPEN, 1, 1, MS(1), 0, 0);
    kit_read(OPEN, 1, 2, MS(2), 0, 0);
    kit_ran(FINAL, 1, 1, MS(1), 0, MS(4), 3 * NS_PER_MS, 1);
    struct ew_process_fact fact = {
        .kind = EW_PROCESS_EXEC, .pid = 1, .start_ns = MS(0), .t_ns = MS(5), .old_tid = 2};
    kit.facts.process(kit.facts.ctx, &fact);
    kit_ran(SPAN, 1, 2, MS(2), 0, MS(4), 2 * NS_PER_MS, 1); /* from before, under the old ID */
    kit_read(AT, 1, 1, MS(10), 5 * NS_PER_MS, 1);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 s1");
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)),
                  8); /* 3 of the leader, 5 of the other thread */
    kit_close();
}

TEST(after_a_loss_processes_that_are_not_seen_again_have_exited)
{
    kit_open(kit_config());
    kit_seen(1, "stays");
    kit_seen(2, "gone");
    kit_start(3, MS(2), "gone too");
    kit_read(OPEN, 3, 3, MS(3), 0, 0);
    kit_read(AT, 3, 3, MS(4), NS_PER_MS, 1);
    (void)kit_cut(MS(10));
    kit_process(EW_PROCESS_SEEN, 1, EPOCH - 1000 * NS_PER_MS, MS(13), "stays");
    kit_start(4, MS(14), "new");
    kit.facts.all_seen(kit.facts.ctx, MS(12));
    (void)kit_cut(MS(20));
    CHECK_EQ_STR(kit_story(), "S4 s2 X2");
    const struct etwatch_sample *s = kit_nth(ETWATCH_TYPE_EXIT, 2, 0);
    CHECK((s->flags & ETWATCH_SAMPLE_COMPLETE) == 0);
    CHECK(!kit_has(s, ETWATCH_M_exit_ns) && !kit_has(s, ETWATCH_M_exit_code));
    (void)kit_cut(MS(30));
    (void)kit_cut(MS(40)); /* the exit of the other process's thread was never reported */
    CHECK_EQ_STR(kit_story(), "s3 X3");
    CHECK_EQ_UINT(kit_nth(ETWATCH_TYPE_EXIT, 3, 0)->cpu_ns, NS_PER_MS);
    CHECK_EQ_UINT(kit_counts().processes, 2);
    kit_close();
}

TEST(a_forgotten_process_is_dropped_without_exit_and_can_return)
{
    kit_open(kit_config());
    kit_seen(1, "a");
    kit_read(OPEN, 1, 1, MS(1), 0, 0);
    kit_read(AT, 1, 1, MS(4), NS_PER_MS, 1);
    CHECK_EQ_INT(ew_sampler_forget(kit.sampler, 1), 0);
    CHECK_EQ_INT(ew_sampler_forget(kit.sampler, 1), ETWATCH_ENOENT);
    kit_process(EW_PROCESS_SEEN, 1, EPOCH - 1000 * NS_PER_MS, MS(6), "a");
    kit_read(OPEN, 1, 1, MS(7), NS_PER_MS, 1);
    kit_read(AT, 1, 1, MS(9), 3 * NS_PER_MS, 1);
    (void)kit_cut(MS(10));
    CHECK_EQ_STR(kit_story(), "S1 S1 s1 s1");
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 0)), 2);
    CHECK_EQ_UINT(CPU(kit_nth(ETWATCH_TYPE_SAMPLE, 1, 1)), 1);
    CHECK_EQ_UINT(kit_counts().processes, 1);
    kit_close();
}
