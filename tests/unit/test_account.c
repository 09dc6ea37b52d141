/* SPDX-License-Identifier: MIT */
/* Accounts: what was delivered, added up into a report. */
#include <stdio.h>
#include <string.h>

#include <etwatch/account.h>

#include "sample_maker.h"
#include "sampler/account.h"
#include "test.h"

/* What a report delivers. */
static struct {
    struct etwatch_trace_system system;
    struct etwatch_trace_class klass[600];
    char names[600][64];
    struct etwatch_sample process[8];
    char process_name[8][32], thread_name[8][32];
    bool cmdline[8];
    struct etwatch_metric_set estimated[8];
    uint32_t classes, processes, stop_after;
} seen;

static int on_system(void *ctx, const struct etwatch_trace_system *system)
{
    (void)ctx;
    seen.system = *system;
    return 0;
}

static int on_class(void *ctx, const struct etwatch_trace_class *klass)
{
    (void)ctx;
    CHECK(seen.classes < 600);
    (void)snprintf(seen.names[seen.classes], sizeof seen.names[0], "%s/%s", klass->provider,
                   klass->event);
    seen.klass[seen.classes++] = *klass;
    return seen.classes == seen.stop_after ? 9 : 0;
}

static int on_process(void *ctx, const struct etwatch_sample *process,
                      const struct etwatch_metric_set *estimated)
{
    (void)ctx;
    CHECK(seen.processes < 8);
    uint32_t at = seen.processes++;
    seen.process[at] = *process;
    seen.estimated[at] = *estimated;
    seen.cmdline[at] = process->cmdline != NULL;
    (void)snprintf(seen.process_name[at], 32, "%s", process->name == NULL ? "-" : process->name);
    (void)snprintf(seen.thread_name[at], 32, "%s",
                   process->thread_name == NULL ? "-" : process->thread_name);
    return 0;
}

static int report(struct etwatch_account *account, uint32_t flags)
{
    struct etwatch_report_callbacks callbacks = {.size = sizeof callbacks,
                                                 .flags = flags,
                                                 .on_system = on_system,
                                                 .on_class = on_class,
                                                 .on_process = on_process};
    uint32_t stop_after = seen.stop_after;
    memset(&seen, 0, sizeof seen);
    seen.stop_after = stop_after;
    return etwatch_account_report(account, &callbacks);
}

static void check_class(uint32_t at, const char *name, uint64_t count)
{
    CHECK(at < seen.classes);
    CHECK_EQ_STR(seen.names[at], name);
    CHECK_EQ_UINT(seen.klass[at].count, count);
}

static struct etwatch_account *new_account(uint32_t flags)
{
    struct etwatch_account_options options = {.size = sizeof options, .flags = flags};
    struct etwatch_account *account = NULL;
    CHECK_EQ_INT(etwatch_account_new(&options, &account), 0);
    return account;
}

static struct etwatch_trace_stats stats_of(const struct etwatch_account *account)
{
    struct etwatch_trace_stats stats = {.size = sizeof stats};
    CHECK_EQ_INT(etwatch_account_stats(account, &stats), 0);
    return stats;
}

static void add_switch(struct etwatch_account *account, uint32_t cpu, uint32_t tid, uint32_t next,
                       uint32_t state, uint64_t t_ns)
{
    struct etwatch_event event = {
        .size = sizeof event,
        .kind = ETWATCH_EVENT_SWITCH,
        .cpu = cpu,
        .pid = tid >= 10 ? 10 : tid,
        .tid = tid,
        .next_pid = next >= 10 ? 10 : next,
        .next_tid = next,
        .state = state,
        .t_ns = t_ns,
        .name = tid == 10 ? "main" : "worker",
    };
    CHECK_EQ_INT(etwatch_account_add_event(account, &event), 0);
}

TEST(a_process_is_the_sum_of_its_samples_with_its_own_cpu_percent)
{
    struct etwatch_account *account = new_account(0);
    struct etwatch_meta meta = {.size = sizeof meta, .anchor_unix_ns = T0_NS};
    struct etwatch_stats stats = {
        .size = sizeof stats, .duration_ns = SECOND_NS, .lost = 7, .undecoded = 3, .late = 2};
    etwatch_metric_set_add(&meta.estimated, ETWATCH_M_cpu_ns);
    etwatch_metric_set_add(&meta.estimated, ETWATCH_M_rss_bytes);
    CHECK_EQ_INT(etwatch_account_add_meta(account, &meta), 0);
    struct etwatch_sample start = make_sample(ETWATCH_TYPE_START, 42, "app", 0);
    start.flags |= ETWATCH_SAMPLE_PREEXISTING;
    start.cmdline = "app --x";
    CHECK_EQ_INT(etwatch_account_add_sample(account, &start), 0);
    for (uint64_t i = 1; i <= 3; i++) {
        struct etwatch_sample sample = make_sample(ETWATCH_TYPE_SAMPLE, 42, "app", i * 100);
        set_cpu(&sample, 50000000);
        CHECK_EQ_INT(etwatch_account_add_sample(account, &sample), 0);
    }
    CHECK_EQ_INT(etwatch_account_add_stats(account, &stats), 0);
    CHECK_EQ_INT(report(account, 0), 0);
    CHECK_EQ_UINT(seen.processes, 1);
    const struct etwatch_sample *app = &seen.process[0];
    CHECK_EQ_STR(seen.process_name[0], "app");
    CHECK(!seen.cmdline[0]);
    CHECK_EQ_UINT(app->cpu_ns, 150000000);
    CHECK_EQ_UINT(app->switches_voluntary, 36);
    CHECK_EQ_UINT(app->t_ns, T0_NS + SECOND_NS);
    CHECK_EQ_UINT(app->dt_ns, SECOND_NS);
    CHECK((app->flags & ETWATCH_SAMPLE_PREEXISTING) != 0);
    CHECK(app->cpu_percent > 14.99 && app->cpu_percent < 15.01);
    CHECK(etwatch_metric_set_has(&seen.estimated[0], ETWATCH_M_cpu_ns));
    CHECK(!etwatch_metric_set_has(&seen.estimated[0], ETWATCH_M_rss_bytes));
    CHECK_EQ_UINT(seen.classes, 2);
    check_class(0, "etwatch/start", 1);
    check_class(1, "etwatch/sample", 3);
    struct etwatch_trace_stats sums = stats_of(account);
    CHECK_EQ_UINT(sums.events, 4);
    CHECK_EQ_UINT(sums.lost, 7);
    CHECK_EQ_UINT(sums.undecoded, 3);
    CHECK_EQ_UINT(sums.late, 2);
    CHECK_EQ_UINT(sums.first_ns, T0_NS);
    CHECK_EQ_UINT(sums.last_ns, T0_NS + 300000000);
    CHECK_EQ_INT(report(account, ETWATCH_REPORT_CMDLINE), 0);
    CHECK(seen.cmdline[0]);
    etwatch_account_free(account);
}

TEST(a_process_that_exited_ends_with_its_exit_and_has_its_totals)
{
    struct etwatch_account *account = new_account(0);
    struct etwatch_sample start = make_sample(ETWATCH_TYPE_START, 42, "app", 100);
    start.start_ns = start.t_ns;
    struct etwatch_sample last = make_sample(ETWATCH_TYPE_EXIT, 42, "app", 300);
    last.start_ns = start.start_ns;
    set_cpu(&last, 100000000);
    CHECK_EQ_INT(etwatch_account_add_sample(account, &start), 0);
    CHECK_EQ_INT(etwatch_account_add_sample(account, &last), 0);
    struct etwatch_loss loss = {.size = sizeof loss,
                                .stage = ETWATCH_LOSS_QUEUE,
                                .count = 5,
                                .from_ns = T0_NS,
                                .to_ns = T0_NS + SECOND_NS};
    CHECK_EQ_INT(etwatch_account_add_loss(account, &loss), 0);
    CHECK_EQ_INT(report(account, 0), 0);
    CHECK_EQ_UINT(seen.process[0].cpu_ns, 100000000);
    CHECK_EQ_UINT(seen.process[0].dt_ns, 200000000);
    CHECK_EQ_UINT(seen.process[0].t_ns, T0_NS + 300000000);
    CHECK((seen.process[0].flags & ETWATCH_SAMPLE_PREEXISTING) == 0);
    CHECK(seen.process[0].cpu_percent > 49.99 && seen.process[0].cpu_percent < 50.01);
    check_class(1, "etwatch/exit", 1);
    check_class(2, "etwatch/loss", 1);
    CHECK_EQ_UINT(stats_of(account).lost, 5);
    etwatch_account_free(account);
}

TEST(a_part_ends_where_it_was_cut)
{
    struct ew_account_options options = {
        .part = true, .from_ns = T0_NS + 100000000, .until_ns = T0_NS + 200000000};
    struct etwatch_account *account = ew_account_new(&options);
    CHECK(account != NULL);
    struct etwatch_meta meta = {.size = sizeof meta, .anchor_unix_ns = T0_NS};
    struct etwatch_stats stats = {.size = sizeof stats, .duration_ns = SECOND_NS};
    struct etwatch_sample sample = make_sample(ETWATCH_TYPE_SAMPLE, 42, "app", 150);
    struct etwatch_trace_system whole = {.size = sizeof whole, .busy_ns = 77};
    set_cpu(&sample, 50000000);
    ew_account_meta(account, &meta);
    ew_account_sample(account, &sample);
    ew_account_stats(account, &stats);
    ew_account_system(account, &whole);
    CHECK_EQ_INT(report(account, 0), 0);
    CHECK_EQ_UINT(seen.process[0].dt_ns, 100000000);
    CHECK_EQ_UINT(seen.process[0].t_ns, T0_NS + 200000000);
    CHECK_EQ_UINT(seen.system.busy_ns, 0);
    etwatch_account_free(account);
}

TEST(totals_of_a_recording_replace_the_sums_unless_a_part_is_read)
{
    for (int part = 0; part < 2; part++) {
        struct ew_account_options options = {.part = part != 0};
        struct etwatch_account *account = ew_account_new(&options);
        CHECK(account != NULL);
        struct etwatch_trace_system whole = {.size = sizeof whole, .busy_ns = 77};
        struct etwatch_metric_set none = {{0}};
        struct etwatch_sample sample = make_sample(ETWATCH_TYPE_SAMPLE, 42, "app", 150);
        set_cpu(&sample, 50000000);
        ew_account_sample(account, &sample);
        ew_account_system(account, &whole);
        sample.type = ETWATCH_TYPE_EXIT;
        sample.cpu_ns = 999;
        for (uint32_t i = 0; i < 3; i++)
            ew_account_total(account, &sample, &none);
        sample.type = ETWATCH_TYPE_THREAD; /* threads were not requested */
        ew_account_total(account, &sample, &none);
        CHECK_EQ_INT(report(account, 0), 0);
        CHECK_EQ_UINT(seen.processes, part != 0 ? 1 : 3);
        CHECK_EQ_UINT(seen.process[0].cpu_ns, part != 0 ? 50000000 : 999);
        CHECK_EQ_UINT(seen.system.busy_ns, part != 0 ? 0 : 77);
        etwatch_account_free(account);
    }
}

TEST(threads_have_rows_after_their_process_if_requested)
{
    for (uint32_t flags = 0; flags <= ETWATCH_REPORT_THREADS; flags += ETWATCH_REPORT_THREADS) {
        struct etwatch_account *account = new_account(flags);
        const uint32_t tids[] = {45, 42};
        for (uint32_t i = 0; i < 2; i++) {
            struct etwatch_sample thread = make_sample(ETWATCH_TYPE_THREAD, 42, "app", 100 + i);
            thread.tid = tids[i];
            thread.thread_name = "w";
            set_cpu(&thread, 1000);
            CHECK_EQ_INT(etwatch_account_add_sample(account, &thread), 0);
        }
        struct etwatch_sample other = make_sample(ETWATCH_TYPE_SAMPLE, 7, "b", 100);
        set_cpu(&other, 5);
        CHECK_EQ_INT(etwatch_account_add_sample(account, &other), 0);
        struct etwatch_sample sample = make_sample(ETWATCH_TYPE_SAMPLE, 42, "app", 110);
        set_cpu(&sample, 2000);
        CHECK_EQ_INT(etwatch_account_add_sample(account, &sample), 0);
        CHECK_EQ_INT(report(account, flags), 0);
        if (flags == 0) {
            CHECK_EQ_UINT(seen.processes, 2);
            CHECK_EQ_UINT(seen.process[1].cpu_ns, 2000);
        } else {
            CHECK_EQ_UINT(seen.processes, 4);
            CHECK_EQ_UINT(seen.process[0].tid, 0);
            CHECK_EQ_UINT(seen.process[0].cpu_ns, 2000);
            CHECK_EQ_UINT(seen.process[1].tid, 45);
            CHECK_EQ_UINT(seen.process[2].tid, 42);
            CHECK_EQ_STR(seen.process_name[2], "app");
            CHECK_EQ_STR(seen.thread_name[2], "w");
            CHECK_EQ_UINT(seen.process[3].pid, 7);
        }
        check_class(1, "etwatch/thread", 2);
        etwatch_account_free(account);
    }
}

TEST(busy_and_idle_time_come_from_switches_of_a_known_thread)
{
    struct etwatch_account *account = new_account(0);
    add_switch(account, 0, 10, 0, 1, 1000);  /* since when 10 ran is unknown */
    add_switch(account, 0, 0, 10, 0, 1100);  /* idle for 100 */
    add_switch(account, 0, 10, 0, 1, 1130);  /* busy for 30 */
    add_switch(account, 1, 11, 10, 1, 1000); /* another CPU */
    add_switch(account, 1, 12, 0, 1, 1500);  /* not the thread that was scheduled */
    add_switch(account, 0, 0, 10, 0, 1120);  /* before the last switch */
    add_switch(account, EW_ACCOUNT_CPUS_MAX, 0, 10, 0, 1);
    struct etwatch_loss loss = {
        .size = sizeof loss, .stage = ETWATCH_LOSS_STREAM, .count = 1, .to_ns = 1600};
    CHECK_EQ_INT(etwatch_account_add_loss(account, &loss), 0);
    add_switch(account, 1, 0, 10, 0, 1700); /* what ran during the loss is unknown */
    struct etwatch_event none = {.size = sizeof none, .kind = 0, .t_ns = 1800};
    struct etwatch_event unknown = {.size = sizeof none, .kind = 99, .t_ns = 1800};
    CHECK_EQ_INT(etwatch_account_add_event(account, &none), 0);
    CHECK_EQ_INT(etwatch_account_add_event(account, &unknown), 0);
    CHECK_EQ_INT(report(account, 0), 0);
    CHECK_EQ_UINT(seen.system.idle_ns, 100);
    CHECK_EQ_UINT(seen.system.busy_ns, 30);
    CHECK_EQ_UINT(seen.system.switches, 8);
    CHECK(seen.system.cpu_from_switches);
    CHECK_EQ_UINT(seen.processes, 0);
    check_class(0, "etwatch/loss", 1);
    check_class(1, "sched/sched_switch", 8);
    CHECK_EQ_UINT(seen.classes, 2);
    CHECK_EQ_UINT(stats_of(account).events, 9);
    CHECK_EQ_UINT(stats_of(account).first_ns, 1);
    CHECK_EQ_UINT(stats_of(account).last_ns, 1700);
    etwatch_account_free(account);
}

TEST(without_samples_processes_have_their_cpu_time_from_switches)
{
    struct ew_account_options options = {.threads = true};
    struct etwatch_account *account = ew_account_new(&options);
    CHECK(account != NULL);
    ew_account_by_switches(account);
    add_switch(account, 0, 0, 10, 0, 1000);
    add_switch(account, 0, 10, 11, 1, 1100); /* waits: voluntary */
    add_switch(account, 0, 11, 0, 0, 1150);  /* preempted */
    CHECK_EQ_INT(report(account, ETWATCH_REPORT_THREADS), 0);
    CHECK_EQ_UINT(seen.processes, 3);
    CHECK_EQ_UINT(seen.process[0].pid, 10);
    CHECK_EQ_UINT(seen.process[0].cpu_ns, 150);
    CHECK_EQ_UINT(seen.process[0].switches_voluntary, 1);
    CHECK_EQ_UINT(seen.process[0].switches_involuntary, 1);
    CHECK_EQ_STR(seen.process_name[0], "main");
    CHECK_EQ_UINT(seen.process[1].tid, 10);
    CHECK_EQ_UINT(seen.process[1].cpu_ns, 100);
    CHECK_EQ_UINT(seen.process[2].tid, 11);
    CHECK_EQ_UINT(seen.process[2].cpu_ns, 50);
    CHECK_EQ_STR(seen.thread_name[2], "worker");
    CHECK_EQ_UINT(seen.system.busy_ns, 150);
    etwatch_account_free(account);
}

TEST(other_kinds_of_events_are_counted_by_name_up_to_a_limit)
{
    struct ew_account_options options = {.threads = false};
    struct etwatch_account *account = ew_account_new(&options);
    CHECK(account != NULL);
    char name[32];
    for (uint32_t i = 0; i < EW_ACCOUNT_KINDS_MAX + 3; i++) {
        (void)snprintf(name, sizeof name, "event%u", i);
        ew_account_other(account, "p", name, i == 0 ? 0 : i, i % 2 == 0);
    }
    ew_account_other(account, "p", "event0", 5, true);
    ew_account_other(account, "q", "event0", 5, true);
    struct etwatch_alert alert = {.size = sizeof alert, .from_ns = 50};
    CHECK_EQ_INT(etwatch_account_add_alert(account, &alert), 0);
    CHECK_EQ_INT(report(account, 0), 0);
    CHECK_EQ_UINT(seen.classes, EW_ACCOUNT_KINDS_MAX + 1);
    check_class(0, "p/event0", 2);
    check_class(1, "p/event1", 1);
    CHECK(seen.klass[0].decoded);
    CHECK(!seen.klass[1].decoded);
    check_class(EW_ACCOUNT_KINDS_MAX, "perfetto/other", 5);
    CHECK_EQ_UINT(stats_of(account).events, EW_ACCOUNT_KINDS_MAX + 6);
    CHECK_EQ_UINT(stats_of(account).undecoded, EW_ACCOUNT_KINDS_MAX / 2 + 1);
    CHECK_EQ_UINT(stats_of(account).first_ns, 1);
    etwatch_account_free(account);
}

TEST(a_callback_ends_the_report_with_its_code)
{
    struct etwatch_account *account = new_account(0);
    struct etwatch_sample start = make_sample(ETWATCH_TYPE_START, 42, "app", 0);
    struct etwatch_sample sample = make_sample(ETWATCH_TYPE_SAMPLE, 42, "app", 100);
    struct etwatch_event event = {.size = sizeof event, .kind = ETWATCH_EVENT_FORK, .t_ns = 5};
    CHECK_EQ_INT(etwatch_account_add_sample(account, &start), 0);
    CHECK_EQ_INT(etwatch_account_add_sample(account, &sample), 0);
    CHECK_EQ_INT(etwatch_account_add_event(account, &event), 0);
    for (seen.stop_after = 1; seen.stop_after <= 3; seen.stop_after++) {
        CHECK_EQ_INT(report(account, 0), 9);
        CHECK_EQ_UINT(seen.classes, seen.stop_after);
        CHECK_EQ_UINT(seen.processes, 0);
    }
    seen.stop_after = 0;
    etwatch_account_free(account);
}

TEST(missing_arguments_are_errors)
{
    struct etwatch_account *account = new_account(0);
    struct etwatch_trace_stats stats = {.size = sizeof stats};
    struct etwatch_report_callbacks callbacks = {.size = sizeof callbacks};
    struct etwatch_sample sample = make_sample(ETWATCH_TYPE_SAMPLE, 42, "app", 100);
    struct etwatch_event event = {.size = sizeof event};
    struct etwatch_loss loss = {.size = sizeof loss};
    struct etwatch_alert alert = {.size = sizeof alert};
    struct etwatch_meta meta = {.size = sizeof meta};
    struct etwatch_stats end = {.size = sizeof end};
    CHECK_EQ_INT(etwatch_account_new(NULL, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_account_add_sample(account, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_account_add_sample(NULL, &sample), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_account_add_event(account, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_account_add_event(NULL, &event), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_account_add_loss(account, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_account_add_loss(NULL, &loss), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_account_add_alert(account, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_account_add_alert(NULL, &alert), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_account_add_meta(account, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_account_add_meta(NULL, &meta), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_account_add_stats(account, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_account_add_stats(NULL, &end), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_account_stats(account, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_account_stats(NULL, &stats), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_account_report(NULL, &callbacks), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_account_report(account, NULL), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_account_report(account, &callbacks), 0);
    sample.type = 77;
    CHECK_EQ_INT(etwatch_account_add_sample(account, &sample), 0);
    CHECK_EQ_UINT(stats_of(account).events, 0);
    etwatch_account_free(account);
    etwatch_account_free(NULL);
}
