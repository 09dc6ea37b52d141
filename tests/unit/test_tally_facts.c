/* SPDX-License-Identifier: MIT */
/*
 * From events to samples through the real sampler: exact at interval ends, and incomplete values
 * are marked.
 */
#include "tally_kit.h"

/* The n-th kept sample of the process that the pipeline keeps. */
static uint64_t cpu_of(const struct pipeline *p, size_t n)
{
    CHECK(n < p->kept_count);
    return p->kept[n].cpu_ns / 1000;
}

static struct pipeline *open_for(uint32_t pid, uint64_t interval_us)
{
    struct pipeline *p = pipe_open(tally_config(), interval_us, true);
    p->only_pid = pid;
    pipe_feed(p, ev_process(EW_EVENT_PROCESS_THERE, US(0), 100, 4, "alpha.exe"));
    pipe_feed(p, ev_thread(EW_EVENT_THREAD_THERE, US(0), 100, 104));
    pipe_feed(p, ev_thread(EW_EVENT_THREAD_THERE, US(0), 100, 108));
    pipe_feed(p, ev_process(EW_EVENT_PROCESS_THERE, US(0), 200, 100, "beta.exe"));
    pipe_feed(p, ev_thread(EW_EVENT_THREAD_THERE, US(0), 200, 204));
    return p;
}

TEST(a_run_is_split_exactly_at_interval_ends)
{
    struct pipeline *p = open_for(100, 1000);
    pipe_feed(p, ev_switch(US(300), 0, 0, 104, WAITING));
    pipe_feed(p, ev_switch(US(2400), 0, 104, 0, WAITING));
    pipe_feed(p, ev_switch(US(2500), 0, 0, 108, WAITING));
    pipe_feed(p, ev_switch(US(2600), 0, 108, 0, READY));
    pipe_finish(p, US(5000));
    CHECK_EQ_UINT(p->kept_count, 3);
    CHECK_EQ_UINT(cpu_of(p, 0), 700);
    CHECK_EQ_UINT(cpu_of(p, 1), 1000);
    CHECK_EQ_UINT(cpu_of(p, 2), 500);
    CHECK_EQ_UINT(p->kept[2].switches_voluntary, 1);
    CHECK_EQ_UINT(p->kept[2].switches_involuntary, 1);
    CHECK_EQ_UINT(p->kept[1].switches_voluntary, 0);
    CHECK_EQ_UINT(p->sum[1][104 / 4], 2100000);
    CHECK_EQ_UINT(p->kept[0].threads, 2);
    CHECK(etwatch_sample_has(&p->kept[0], ETWATCH_M_threads));
    CHECK_EQ_UINT(p->starts, 2);
    CHECK_EQ_UINT(p->incomplete, 0);
    pipe_close(p);
}

TEST(an_event_exactly_at_an_end_belongs_to_the_next_interval)
{
    struct pipeline *p = open_for(100, 1000);
    pipe_feed(p, ev_switch(US(500), 0, 0, 104, WAITING));
    pipe_feed(p, ev_switch(US(1000), 0, 104, 0, WAITING));
    pipe_feed(p, ev_io(EW_EVENT_FILE_READ, US(2000), 104, 1, 77));
    pipe_finish(p, US(3000));
    CHECK_EQ_UINT(p->kept_count, 3);
    CHECK_EQ_UINT(cpu_of(p, 0), 500);
    CHECK_EQ_UINT(p->kept[0].switches_voluntary, 0);
    CHECK_EQ_UINT(p->kept[1].switches_voluntary, 1);
    CHECK_EQ_UINT(p->kept[2].io_read_bytes, 77);
    CHECK_EQ_UINT(p->kept[2].t_ns, US(3000));
    pipe_close(p);
}

TEST(an_idle_interval_gives_no_sample)
{
    struct pipeline *p = open_for(100, 1000);
    pipe_feed(p, ev_switch(US(100), 0, 0, 104, WAITING));
    pipe_feed(p, ev_switch(US(200), 0, 104, 0, WAITING));
    pipe_feed(p, ev_switch(US(7100), 0, 0, 104, WAITING));
    pipe_feed(p, ev_switch(US(7200), 0, 104, 0, WAITING));
    pipe_finish(p, US(9000));
    CHECK_EQ_UINT(p->samples, 2);
    CHECK_EQ_UINT(p->kept[1].t_ns, US(8000));
    CHECK_EQ_UINT(cpu_of(p, 1), 100);
    pipe_close(p);
}

TEST(a_process_starts_and_exits_with_its_totals)
{
    struct pipeline *p = open_for(300, 1000);
    pipe_feed(p, ev_process(EW_EVENT_PROCESS_START, US(1200), 300, 100, "child.exe"));
    pipe_feed(p, ev_thread(EW_EVENT_THREAD_START, US(1201), 300, 304));
    pipe_feed(p, ev_switch(US(1300), 0, 0, 304, WAITING));
    struct ew_event counters = kit_event(EW_EVENT_PROCESS_COUNTERS, US(2300), 300, NO);
    counters.u.counters.peak_working_set_bytes = 12345;
    pipe_feed(p, counters);
    pipe_feed(p, ev_thread(EW_EVENT_THREAD_END, US(2310), 300, 304));
    struct ew_event end = ev_process(EW_EVENT_PROCESS_END, US(2320), 300, 100, "child.exe");
    end.u.process.exit_status = 3;
    pipe_feed(p, end);
    pipe_feed(p, ev_switch(US(2340), 0, 304, 0, TERMINATED));
    pipe_finish(p, US(4000));
    CHECK_EQ_UINT(p->exits, 1);
    CHECK_EQ_UINT(p->exit.cpu_ns, 1040000);
    CHECK_EQ_INT(p->exit.exit_code, 3);
    CHECK_EQ_UINT(p->exit.rss_peak_bytes, 12345);
    CHECK_EQ_UINT(p->exit.start_ns, US(1200));
    CHECK((p->exit.flags & ETWATCH_SAMPLE_COMPLETE) != 0);
    CHECK_EQ_UINT(p->kept_count, 2);
    CHECK_EQ_UINT(cpu_of(p, 0), 700);
    CHECK_EQ_UINT(cpu_of(p, 1), 340);
    pipe_close(p);
}

TEST(the_last_switch_may_be_in_a_later_interval_than_the_exit)
{
    struct pipeline *p = open_for(200, 1000);
    pipe_feed(p, ev_switch(US(500), 0, 0, 204, WAITING));
    pipe_feed(p, ev_thread(EW_EVENT_THREAD_END, US(980), 200, 204));
    pipe_feed(p, ev_process(EW_EVENT_PROCESS_END, US(990), 200, 100, "beta.exe"));
    pipe_feed(p, ev_switch(US(1020), 0, 204, 0, TERMINATED));
    pipe_finish(p, US(2000));
    CHECK_EQ_UINT(p->exits, 1);
    CHECK_EQ_UINT(p->sum[0][200 / 4], 520000);
    pipe_close(p);
}

TEST(network_bytes_are_in_the_interval_of_their_event)
{
    struct pipeline *p = open_for(200, 1000);
    pipe_feed(p, ev_net(EW_EVENT_NET_RECEIVE, US(100), 200, NO, 10));
    pipe_feed(p, ev_net(EW_EVENT_NET_RECEIVE, US(1100), 200, NO, 20));
    pipe_feed(p, ev_net(EW_EVENT_NET_SEND, US(1200), 200, NO, 40));
    pipe_feed(p, ev_switch(US(3100), 0, 0, 204, WAITING));
    pipe_feed(p, ev_switch(US(3200), 0, 204, 0, WAITING));
    pipe_finish(p, US(4000));
    CHECK_EQ_UINT(p->kept_count, 3);
    CHECK_EQ_UINT(p->kept[0].net_received_bytes, 10);
    CHECK_EQ_UINT(p->kept[1].net_received_bytes, 20);
    CHECK_EQ_UINT(p->kept[1].net_sent_bytes, 40);
    /* Known to be zero where only threads were active. */
    CHECK(etwatch_sample_has(&p->kept[2], ETWATCH_M_net_sent_bytes));
    CHECK_EQ_UINT(p->kept[2].net_sent_bytes, 0);
    pipe_close(p);
}

/*
 * An idle thread's entry may be evicted from the ledger; its earlier work must not be counted
 * again.
 */
TEST(a_process_active_again_after_a_long_time_is_not_counted_twice)
{
    struct pipeline *p = open_for(300, 1000);
    pipe_feed(p, ev_process(EW_EVENT_PROCESS_START, US(10), 300, 100, "child.exe"));
    pipe_feed(p, ev_net(EW_EVENT_NET_SEND, US(100), 300, NO, 1000));
    for (uint64_t i = 1; i < 20000; i++)
        pipe_feed(p, ev_switch(US(1000 * i + 50), 0, i % 2 ? 0 : 104, i % 2 ? 104 : 0, WAITING));
    pipe_feed(p, ev_net(EW_EVENT_NET_SEND, US(20000100), 300, NO, 1));
    pipe_finish(p, US(20001000));
    CHECK_EQ_UINT(p->net[300 / 4], 1001);
    CHECK_EQ_UINT(p->sum[0][100 / 4], 9999 * UINT64_C(1000000) + 1950000);
    pipe_close(p);
}

TEST(a_thread_logged_late_in_the_same_interval_loses_nothing)
{
    struct pipeline *p = pipe_open(tally_config(), 1000, true);
    p->only_pid = 100;
    pipe_feed(p, ev_switch(US(100), 0, 0, 104, WAITING));
    pipe_feed(p, ev_switch(US(200), 0, 104, 108, WAITING));
    pipe_feed(p, ev_process(EW_EVENT_PROCESS_THERE, US(300), 100, 4, "alpha.exe"));
    pipe_feed(p, ev_thread(EW_EVENT_THREAD_THERE, US(310), 100, 104));
    pipe_feed(p, ev_thread(EW_EVENT_THREAD_THERE, US(320), 100, 108));
    pipe_feed(p, ev_switch(US(400), 0, 108, 0, WAITING));
    pipe_finish(p, US(1500));
    CHECK_EQ_UINT(cpu_of(p, 0), 300);
    CHECK_EQ_UINT(p->incomplete, 0);
    pipe_close(p);
}

TEST(a_thread_logged_in_a_later_interval_is_marked)
{
    struct pipeline *p = pipe_open(tally_config(), 1000, true);
    p->only_pid = 100;
    pipe_feed(p, ev_switch(US(100), 0, 0, 104, WAITING));
    pipe_feed(p, ev_process(EW_EVENT_PROCESS_THERE, US(1300), 100, 4, "alpha.exe"));
    pipe_feed(p, ev_thread(EW_EVENT_THREAD_THERE, US(1310), 100, 104));
    pipe_feed(p, ev_switch(US(1400), 0, 104, 0, WAITING));
    pipe_finish(p, US(3000));
    CHECK_EQ_UINT(p->kept_count, 1);
    CHECK_EQ_UINT(cpu_of(p, 0), 400); /* for the current interval everything is known */
    CHECK_EQ_UINT(p->incomplete, 1);
    take_totals(p->tally, false);
    CHECK_EQ_UINT(cpu_us(total_of(100)), 1300);
    pipe_close(p);
}

TEST(a_loss_marks_the_samples_until_the_next_switch)
{
    struct pipeline *p = open_for(100, 1000);
    pipe_feed(p, ev_switch(US(100), 0, 0, 104, WAITING));
    pipe_feed(p, ev_switch(US(150), 1, 0, 204, WAITING));
    pipe_feed(p, ev_ready(US(1200), 0, 204));
    pipe_feed(p, ev_ready(US(1250), 1, 108));
    ew_tally_loss(p->tally, 0, US(1500), 5, &p->facts);
    pipe_feed(p, ev_switch(US(3100), 0, 108, 104, WAITING));
    pipe_feed(p, ev_switch(US(3200), 0, 104, 0, WAITING));
    pipe_feed(p, ev_switch(US(4200), 0, 0, 104, WAITING));
    pipe_finish(p, US(5000));
    /* alpha: 0.9 ms, 0.2 ms, nothing known, 0.1 ms and a large unknown part, 0.8 ms */
    CHECK_EQ_UINT(p->kept_count, 4);
    CHECK_EQ_UINT(cpu_of(p, 0), 900);
    CHECK((p->kept[0].flags & ETWATCH_SAMPLE_COMPLETE) != 0);
    CHECK_EQ_UINT(cpu_of(p, 1), 200);
    CHECK_EQ_UINT(p->kept[1].flags & ETWATCH_SAMPLE_COMPLETE, 0);
    CHECK_EQ_UINT(cpu_of(p, 2), 100);
    CHECK_EQ_UINT(p->kept[2].flags & ETWATCH_SAMPLE_COMPLETE, 0);
    CHECK_EQ_UINT(cpu_of(p, 3), 800);
    CHECK((p->kept[3].flags & ETWATCH_SAMPLE_COMPLETE) != 0);
    ew_buf_char(&p->json, '\0');
    CHECK_CONTAINS(p->json.data, "\"loss\"");
    pipe_close(p);
}

TEST(an_interrupt_across_an_interval_end_is_corrected_in_the_next)
{
    struct pipeline *p = open_for(100, 1000);
    pipe_feed(p, ev_switch(US(0), 0, 0, 104, WAITING));
    pipe_feed(p, ev_irq(US(990), US(1010), 0, false));
    pipe_feed(p, ev_switch(US(1500), 0, 104, 0, WAITING));
    pipe_finish(p, US(2000));
    CHECK_EQ_UINT(p->sum[0][100 / 4], 1480000);
    take_totals(p->tally, false);
    CHECK_EQ_UINT(cpu_us(total_of(100)), 1480);
    CHECK_EQ_UINT(cpu_of(p, 1), 480);
    pipe_close(p);
}

TEST(gauges_are_on_the_sample_they_were_read_for)
{
    struct pipeline *p = open_for(100, 1000);
    pipe_feed(p, ev_switch(US(0), 0, 0, 104, WAITING));
    kit_sets[0] = (struct ew_working_set){
        .pid = 100, .working_set_bytes = 4096, .private_working_set_bytes = 1024};
    kit_set_count = 1;
    pipe_feed(p, kit_event(EW_EVENT_WORKING_SETS, US(1500), NO, NO));
    pipe_finish(p, US(3000));
    CHECK_EQ_UINT(p->kept_count, 3);
    CHECK(!etwatch_sample_has(&p->kept[0], ETWATCH_M_rss_bytes));
    CHECK(etwatch_sample_has(&p->kept[1], ETWATCH_M_rss_bytes));
    CHECK_EQ_UINT(p->kept[1].rss_bytes, 4096);
    CHECK(etwatch_sample_has(&p->kept[1], ETWATCH_M_rss_private_bytes));
    CHECK_EQ_UINT(p->kept[1].rss_private_bytes, 1024);
    CHECK(!etwatch_sample_has(&p->kept[2], ETWATCH_M_rss_bytes));
    pipe_close(p);
}

TEST(samples_alone_give_estimated_intervals)
{
    struct pipeline *p = open_for(100, 10000);
    pipe_feed(p, ev_sample_interval(US(0), 10000));
    pipe_feed(p, ev_sample(US(9990), 0, 104)); /* represents a millisecond of this interval */
    for (uint64_t i = 11; i < 15; i++)
        pipe_feed(p, ev_sample(US(1000 * i), 0, 104));
    pipe_finish(p, US(20000));
    CHECK_EQ_UINT(p->kept_count, 2);
    CHECK_EQ_UINT(cpu_of(p, 0), 1000);
    CHECK_EQ_UINT(cpu_of(p, 1), 4000);
    CHECK(!etwatch_sample_has(&p->kept[0], ETWATCH_M_switches_voluntary));
    pipe_close(p);
}

static bool only_beta(void *ctx, uint32_t pid, const char *name)
{
    (void)ctx;
    (void)pid;
    return strcmp(name, "beta.exe") == 0;
}

TEST(only_selected_processes_and_their_descendants_are_reported)
{
    struct ew_tally_config config = tally_config();
    config.selected = only_beta;
    struct pipeline *p = pipe_open(config, 1000, false);
    /* The rundown logs a grandchild before its ancestors. */
    pipe_feed(p, ev_process(EW_EVENT_PROCESS_THERE, US(0), 400, 300, "grandchild.exe"));
    pipe_feed(p, ev_thread(EW_EVENT_THREAD_THERE, US(0), 400, 404));
    pipe_feed(p, ev_process(EW_EVENT_PROCESS_THERE, US(0), 300, 200, "child.exe"));
    pipe_feed(p, ev_process(EW_EVENT_PROCESS_THERE, US(0), 100, 4, "alpha.exe"));
    pipe_feed(p, ev_thread(EW_EVENT_THREAD_THERE, US(0), 100, 104));
    CHECK_EQ_UINT(p->starts, 0);
    pipe_feed(p, ev_process(EW_EVENT_PROCESS_THERE, US(0), 200, 4, "beta.exe"));
    pipe_feed(p, ev_thread(EW_EVENT_THREAD_THERE, US(0), 200, 204));
    pipe_feed(p, ev_process(EW_EVENT_PROCESS_START, US(50), 500, 400, "new.exe"));
    pipe_feed(p, ev_process(EW_EVENT_PROCESS_START, US(60), 600, 100, "other.exe"));
    pipe_feed(p, ev_switch(US(100), 0, 0, 104, WAITING));
    pipe_feed(p, ev_switch(US(200), 0, 104, 404, WAITING));
    pipe_feed(p, ev_switch(US(300), 0, 404, 204, WAITING));
    pipe_feed(p, ev_switch(US(500), 0, 204, 0, WAITING));
    pipe_finish(p, US(1000));
    CHECK_EQ_UINT(p->starts, 4);
    CHECK_EQ_UINT(p->sum[0][100 / 4], 0);
    CHECK_EQ_UINT(p->sum[0][200 / 4], 200000);
    CHECK_EQ_UINT(p->sum[0][400 / 4], 100000);
    take_totals(p->tally, false); /* totals cover all processes */
    CHECK_EQ_UINT(cpu_us(total_of(100)), 100);
    pipe_close(p);
}

/* Never a zero that means "unknown". */
TEST(metrics_of_disabled_events_become_unknown)
{
    struct pipeline *p = open_for(100, 1000);
    pipe_feed(p, ev_switch(US(100), 0, 0, 104, WAITING));
    pipe_feed(p, ev_io(EW_EVENT_FILE_READ, US(500), 104, 1, 77));
    /* 104 still runs when switches end. */
    ew_tally_set_classes(p->tally, EW_TALLY_PROCESSES | EW_TALLY_THREADS | EW_TALLY_FILES, US(1500),
                         &p->facts);
    pipe_feed(p, ev_io(EW_EVENT_FILE_READ, US(5500), 104, 1, 7));
    pipe_finish(p, US(7000));
    CHECK(p->kept_count >= 2);
    CHECK_EQ_UINT(cpu_of(p, 0), 900);
    const struct etwatch_sample *last = &p->kept[p->kept_count - 1];
    CHECK_EQ_UINT(last->io_read_bytes, 7);
    CHECK(!etwatch_sample_has(last, ETWATCH_M_cpu_ns));
    CHECK(!etwatch_sample_has(last, ETWATCH_M_switches_voluntary));
    CHECK(etwatch_sample_has(last, ETWATCH_M_io_read_bytes));
    CHECK_EQ_UINT(p->sum[1][104 / 4], 900000); /* an interval that is half known */
    pipe_close(p);
}

TEST(intervals_may_change_their_length)
{
    struct pipeline *p = open_for(100, 1000);
    pipe_feed(p, ev_switch(US(0), 0, 0, 104, WAITING));
    pipe_feed(p, ev_ready(US(1500), 0, 108));
    ew_tally_set_interval(p->tally, US(2000), 4000000);
    CHECK_EQ_INT(ew_sampler_set_interval(p->sampler, US(2000), 4000000), 0);
    pipe_feed(p, ev_switch(US(9000), 0, 104, 0, WAITING));
    pipe_finish(p, US(10000));
    CHECK_EQ_UINT(p->kept_count, 4);
    CHECK_EQ_UINT(cpu_of(p, 1), 1000);
    CHECK_EQ_UINT(cpu_of(p, 2), 4000);
    CHECK_EQ_UINT(cpu_of(p, 3), 3000);
    pipe_close(p);
}

/* A time far ahead must not create millions of intervals: no thread runs through such a gap. */
TEST(a_long_gap_makes_the_running_threads_unknown)
{
    struct pipeline *p = open_for(100, 1000);
    pipe_feed(p, ev_switch(US(0), 0, 0, 104, WAITING));
    ew_tally_advance(p->tally, US(1) + (UINT64_C(1) << 50), &p->facts);
    CHECK(p->samples <= 1100);
    pipe_feed(p, ev_switch(US(1) + (UINT64_C(1) << 50), 0, 104, 0, WAITING));
    pipe_finish(p, US(2) + (UINT64_C(1) << 50));
    CHECK(p->samples <= 1100);
    struct ew_tally_system s = system_of(p->tally);
    CHECK(s.unknown_ns > UINT64_C(1) << 49);
    CHECK_EQ_UINT(s.busy_ns + s.unknown_ns + s.idle_ns, 2000 + (UINT64_C(1) << 50));
    pipe_close(p);
}

static struct etwatch_sample last_thread;
static char last_thread_name[32], last_name[80];

static void keep_thread(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(last_name, sizeof last_name, "%s", samples[i].name);
        if (samples[i].type != ETWATCH_TYPE_THREAD)
            continue;
        last_thread = samples[i];
        (void)snprintf(last_thread_name, sizeof last_thread_name, "%s", samples[i].thread_name);
    }
}

TEST(threads_are_reported_with_name_priority_and_affinity)
{
    struct ew_sampler_config sampler_config = {.source = ETWATCH_SOURCE_ETL,
                                               .threads = true,
                                               .epoch_ns = FIRST,
                                               .interval_ns = 1000000,
                                               .max_processes = 100,
                                               .max_threads = 100,
                                               .emit = keep_thread};
    struct ew_sampler *sampler;
    struct ew_facts facts;
    CHECK_EQ_INT(ew_sampler_new(&sampler_config, &sampler), 0);
    ew_sampler_facts(sampler, &facts);
    struct ew_tally_config config = tally_config();
    config.interval_ns = 1000000;
    config.threads = true;
    struct ew_tally *tally = tally_open(config);
    /* A name too long for a fact ends at a whole character. */
    char name[80];
    memset(name, 'n', 62);
    memcpy(name + 62, "\xc3\xa9.exe", 7);
    feed_to(tally, ev_process(EW_EVENT_PROCESS_THERE, US(0), 100, 4, name), &facts);
    struct ew_event there = ev_thread(EW_EVENT_THREAD_THERE, US(0), 100, 104);
    there.u.thread.has_affinity = there.u.thread.has_priority = true;
    there.u.thread.affinity = 5;
    there.u.thread.base_priority = 8;
    there.u.thread.name = kit_text("worker");
    feed_to(tally, there, &facts);
    struct ew_event in = ev_switch(US(100), 0, 0, 104, WAITING);
    in.u.cswitch.new_priority = 13;
    feed_to(tally, in, &facts);
    ew_tally_finish(tally, US(900), &facts);
    CHECK(ew_sampler_finish(sampler, US(900)) > 0);
    CHECK_EQ_STR(last_thread_name, "worker");
    CHECK_EQ_INT(last_thread.priority, 13);
    CHECK_EQ_UINT(last_thread.affinity, 5);
    CHECK_EQ_UINT(last_thread.cpu_ns, 800000);
    name[62] = '\0';
    CHECK_EQ_STR(last_name, name);
    ew_tally_free(tally);
    ew_sampler_free(sampler);
}
