/* SPDX-License-Identifier: MIT */
/* The poll source on recorded trees: selection of processes, and threads. */
#include "poll_rounds.h"

#define TICK_NS UINT64_C(10000000)

/* Checks that the last round reported exactly these processes with this kind. */
static void check_reported(const struct rounds *rounds, enum ew_process_kind kind,
                           const uint32_t *pids, int count)
{
    int reported = 0;
    for (int i = 0; i < rounds->process_count; i++)
        reported += rounds->processes[i].kind == kind;
    CHECK_EQ_INT(reported, count);
    for (int i = 0; i < count; i++)
        CHECK(process_fact(rounds, pids[i], kind) != NULL);
}

#define CHECK_TOLD(rounds, kind, ...)                                 \
    check_reported((rounds), (kind), (const uint32_t[]){__VA_ARGS__}, \
                   sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void check_filter(const char *tree, struct ew_filter filter, const uint32_t *pids, int count,
                         const char *remark)
{
    struct rounds rounds;
    test_row(remark);
    rounds_open(&rounds, tree, &filter, false, 100);
    drain_again(&rounds);
    check_reported(&rounds, EW_PROCESS_SEEN, pids, count);
    drain_again(&rounds);
    CHECK_EQ_INT(rounds.process_count, 0);
    rounds_done(&rounds);
}

TEST(containers_are_selected_by_their_id_or_its_beginning)
{
    static const char *const short_id[] = {"container:3f2a9c41d07b"};
    static const char *const long_id[] = {
        "container:3f2a9c41d07b6e5580a1c2d3e4f5061728394a5b6c7d8e9f0a1b2c3d4e5f6071"};
    static const char *const both[] = {"container:3f2a", "container:9f2a"};
    static const char *const none[] = {"container:f2a9"};
    check_filter("containers", (struct ew_filter){.cgroups = short_id, .cgroup_count = 1},
                 (uint32_t[]){100, 101, 102}, 3, "docker, in version 2, in version 1, in both");
    check_filter("containers", (struct ew_filter){.cgroups = long_id, .cgroup_count = 1},
                 (uint32_t[]){100, 101, 102}, 3, "the whole id");
    check_filter("containers", (struct ew_filter){.cgroups = both, .cgroup_count = 2},
                 (uint32_t[]){100, 101, 102, 103, 105}, 5, "podman and containerd too");
    check_filter("containers", (struct ew_filter){.cgroups = none, .cgroup_count = 1}, NULL, 0,
                 "not the middle of an id");
}

TEST(users_and_cgroups_select_processes)
{
    static const uint32_t uids[] = {1000, 4711}, root[] = {0};
    static const char *const slice[] = {"/user.slice"}, *const bare[] = {"user.slice/"};
    static const char *const scope[] = {"/user.slice/user-1001.slice"};
    static const char *const top[] = {"/"}, *const none[] = {"/user.sl"};
    static const char *const names[] = {"bob"};
    check_filter("users", (struct ew_filter){.uids = uids, .uid_count = 2}, (uint32_t[]){100}, 1,
                 "a user");
    check_filter("users", (struct ew_filter){.cgroups = slice, .cgroup_count = 1},
                 (uint32_t[]){100, 101}, 2, "a cgroup and what is below it");
    check_filter("users", (struct ew_filter){.cgroups = bare, .cgroup_count = 1},
                 (uint32_t[]){100, 101}, 2, "the same, written in another way");
    check_filter("users", (struct ew_filter){.cgroups = scope, .cgroup_count = 1},
                 (uint32_t[]){101}, 1, "an inner one");
    check_filter("users", (struct ew_filter){.cgroups = top, .cgroup_count = 1},
                 (uint32_t[]){100, 101, 102, 103}, 4, "the root, except processes in no such tree");
    check_filter("users", (struct ew_filter){.cgroups = none, .cgroup_count = 1}, NULL, 0,
                 "part of a name is not a cgroup");
    check_filter("users",
                 (struct ew_filter){.names = names, .name_count = 1, .uids = root, .uid_count = 1},
                 (uint32_t[]){101, 102, 104}, 3, "any rule is enough");
    check_filter("users", (struct ew_filter){.all = false}, NULL, 0, "no rule");
    check_filter("kernel_threads", (struct ew_filter){.uids = root, .uid_count = 1},
                 (uint32_t[]){100}, 1, "kernel threads belong to no user");
    check_filter("kernel_threads", (struct ew_filter){.cgroups = top, .cgroup_count = 1},
                 (uint32_t[]){100}, 1, "nor in a group");
}

TEST(names_select_processes_also_after_an_exec)
{
    static const char *const names[] = {"python", "kworker/0:1"};
    struct ew_filter filter = {.names = names, .name_count = 2};
    struct rounds rounds;
    rounds_open(&rounds, "rounds/2", &filter, false, 100);
    drain_again(&rounds);
    CHECK_EQ_INT(rounds.process_count, 0);
    drain_tree(&rounds, "rounds/3");
    CHECK_TOLD(&rounds, EW_PROCESS_SEEN, 100);
    CHECK_EQ_STR(rounds.processes[0].name, "python3.11");
    /* The work under its old name is not counted. */
    CHECK_EQ_UINT(rounds.processes[0].counter[EW_C_cpu_ns], 21 * TICK_NS);
    CHECK_EQ_INT(rounds.reading_count, 0);
    rounds_done(&rounds);
    check_filter("kernel_threads", filter, (uint32_t[]){3}, 1, "a kernel thread by its name");
}

TEST(a_pid_selects_its_descendants_also_after_their_parent_exits)
{
    static const uint32_t pids[] = {100};
    struct ew_filter filter = {.pids = pids, .pid_count = 1};
    struct rounds rounds;
    rounds_open(&rounds, "rounds/1", &filter, false, 100);
    drain_again(&rounds);
    CHECK_TOLD(&rounds, EW_PROCESS_SEEN, 100);
    drain_tree(&rounds, "rounds/2");
    CHECK_TOLD(&rounds, EW_PROCESS_START, 200, 201);
    drain_tree(&rounds, "rounds/3");
    CHECK_TOLD(&rounds, EW_PROCESS_EXIT, 200);
    CHECK_TOLD(&rounds, EW_PROCESS_START, 202); /* child of 201, now reparented to init */
    drain_tree(&rounds, "rounds/4");
    CHECK_TOLD(&rounds, EW_PROCESS_EXIT, 202);
    CHECK_EQ_INT(rounds.process_count, 1); /* 200 is another process now */
    rounds_done(&rounds);
}

TEST(preexisting_descendants_belong_to_the_tree)
{
    static const uint32_t pids[] = {100};
    check_filter("rounds/2", (struct ew_filter){.pids = pids, .pid_count = 1},
                 (uint32_t[]){100, 200, 201}, 3, "children and grandchildren");
}

TEST(a_pid_means_the_process_that_has_it_now)
{
    static const uint32_t pids[] = {100};
    struct ew_filter filter = {.pids = pids, .pid_count = 1};
    struct rounds rounds;
    rounds_open(&rounds, "reuse/1", &filter, false, 100);
    drain_again(&rounds);
    CHECK_TOLD(&rounds, EW_PROCESS_SEEN, 100);
    drain_tree(&rounds, "reuse/2");
    CHECK_TOLD(&rounds, EW_PROCESS_EXIT, 100);
    CHECK_EQ_INT(rounds.process_count, 1);
    rounds_done(&rounds);

    /* A later process with a pid that was unused then is not selected either. */
    rounds_open(&rounds, "users", &(struct ew_filter){.pids = (uint32_t[]){200}, .pid_count = 1},
                false, 100);
    drain_again(&rounds);
    drain_tree(&rounds, "rounds/2");
    CHECK_EQ_INT(rounds.process_count, 0);
    rounds_done(&rounds);
}

TEST(processes_are_added_and_removed_between_rounds)
{
    struct ew_filter none = {.all = false};
    struct rounds rounds;
    rounds_open(&rounds, "rounds/2", &none, false, 100);
    drain_again(&rounds);
    CHECK_EQ_INT(rounds.process_count, 0);
    CHECK_EQ_INT(ew_source_poll.add(&rounds.poll->base.source, 4711), ETWATCH_ENOENT);
    CHECK_EQ_INT(ew_source_poll.remove(&rounds.poll->base.source, 4711), ETWATCH_ENOENT);
    CHECK_EQ_INT(ew_source_poll.remove(&rounds.poll->base.source, 200), ETWATCH_ENOENT);
    CHECK_EQ_INT(ew_source_poll.add(&rounds.poll->base.source, 200), 0);
    drain_again(&rounds);
    CHECK_TOLD(&rounds, EW_PROCESS_SEEN, 200, 201);
    CHECK_EQ_INT(ew_source_poll.remove(&rounds.poll->base.source, 201), 0);
    drain_tree(&rounds, "rounds/3");
    CHECK_TOLD(&rounds, EW_PROCESS_EXIT, 200);
    CHECK_EQ_INT(rounds.process_count, 1); /* neither 201 nor its new child */
    CHECK(reading_of(&rounds, 201, 0) == NULL);
    CHECK_EQ_INT(ew_source_poll.add(&rounds.poll->base.source, 201), 0);
    drain_again(&rounds);
    CHECK_TOLD(&rounds, EW_PROCESS_SEEN, 201, 202);
    rounds_done(&rounds);
}

TEST(adding_a_watched_process_watches_its_children_too)
{
    static const char *const names[] = {"sh"};
    struct ew_filter filter = {.names = names, .name_count = 1};
    struct rounds rounds;
    rounds_open(&rounds, "rounds/2", &filter, false, 100);
    drain_again(&rounds);
    CHECK_TOLD(&rounds, EW_PROCESS_SEEN, 100);
    CHECK_EQ_INT(ew_source_poll.add(&rounds.poll->base.source, 100), 0);
    drain_again(&rounds);
    CHECK_TOLD(&rounds, EW_PROCESS_SEEN, 200, 201);
    rounds_done(&rounds);
}

/* ----------------------------------------------------------------- threads */

static const char *thread_name(const struct rounds *rounds, uint32_t tid)
{
    for (int i = 0; i < rounds->reading_count; i++)
        if (rounds->readings[i].tid == tid)
            return rounds->thread_names[i];
    return NULL;
}

TEST(threads_are_reported_one_by_one_and_add_up_in_the_process)
{
    struct rounds rounds;
    rounds_open(&rounds, "threads/1", &everything, true, 100);
    drain_again(&rounds);
    CHECK_TOLD(&rounds, EW_PROCESS_SEEN, 100, 200);
    CHECK_EQ_INT(rounds.reading_count, 3); /* the threads; the name of the process is in its fact */
    const struct ew_reading *worker = reading_of(&rounds, 100, 101);
    CHECK(worker != NULL);
    CHECK_EQ_STR(thread_name(&rounds, 101), "worker-1");
    CHECK_EQ_UINT(worker->start_ns, 1001 * TICK_NS);
    CHECK_EQ_INT(worker->kind, EW_READING_AT);
    CHECK_EQ_UINT(worker->counter[EW_C_cpu_ns], 200000000); /* exact, not in ticks */
    CHECK_EQ_UINT(worker->counter[EW_C_cpu_user_ns], 20 * TICK_NS);
    CHECK_EQ_UINT(worker->counter[EW_C_switches_voluntary], 20);
    CHECK_EQ_UINT(worker->counter[EW_C_runq_wait_ns], 2000);
    CHECK_EQ_UINT(worker->counter_has & EW_HAS_C(io_read_bytes), 0);
    CHECK_EQ_UINT(worker->gauge_has, EW_HAS_G(priority) | EW_HAS_G(affinity));
    const struct ew_process_fact *pool = process_fact(&rounds, 100, EW_PROCESS_SEEN);
    CHECK_EQ_UINT(pool->counter[EW_C_switches_voluntary], 30);
    CHECK_EQ_UINT(pool->counter[EW_C_switches_involuntary], 3);
    CHECK_EQ_UINT(pool->counter[EW_C_runq_wait_ns], 3000);
    CHECK_EQ_UINT(pool->counter[EW_C_cpu_ns],
                  30 * TICK_NS); /* from stat: includes threads that exited */
    rounds_done(&rounds);
}

TEST(only_threads_that_ran_are_reported_and_exited_ones_stay_in_the_sum)
{
    struct rounds rounds;
    rounds_open(&rounds, "threads/1", &everything, true, 100);
    drain_again(&rounds);
    drain_tree(&rounds, "threads/2");
    CHECK(reading_of(&rounds, 100, 100) == NULL);
    CHECK(reading_of(&rounds, 200, 200) == NULL);
    CHECK_EQ_UINT(reading_of(&rounds, 100, 101)->counter[EW_C_cpu_ns], 300000000);
    CHECK_EQ_UINT(reading_of(&rounds, 100, 102)->counter[EW_C_cpu_ns], 50000000);
    CHECK_EQ_UINT(reading_of(&rounds, 100, 0)->counter[EW_C_switches_voluntary], 45);
    CHECK_EQ_INT(rounds.reading_count, 3);
    /* The process is reported before its threads. */
    CHECK_EQ_UINT(rounds.readings[0].tid, 0);

    drain_tree(&rounds, "threads/3");
    const struct ew_reading *over = reading_of(&rounds, 100, 101);
    CHECK(over != NULL);
    CHECK_EQ_INT(over->kind, EW_READING_FINAL);
    CHECK_EQ_UINT(over->counter[EW_C_cpu_ns], 300000000);
    CHECK_EQ_UINT(over->ran_from_cpu_ns, 300000000);
    CHECK_EQ_UINT(over->ran_from_ns, over->t_ns);
    CHECK_EQ_STR(thread_name(&rounds, 102), "renamed");
    /* 11 + 30 of the exited thread + 6 */
    CHECK_EQ_UINT(reading_of(&rounds, 100, 0)->counter[EW_C_switches_voluntary], 47);
    CHECK_EQ_UINT(reading_of(&rounds, 100, 0)->counter[EW_C_runq_wait_ns], 1100 + 3000 + 600);
    CHECK_EQ_UINT(rounds.poll->base.thread_count, 3);
    drain_again(&rounds);
    CHECK_EQ_INT(rounds.reading_count, 0);
    rounds_done(&rounds);
}

TEST(a_reused_tid_is_another_thread)
{
    struct rounds rounds;
    rounds_open(&rounds, "threads/3", &everything, true, 100);
    drain_again(&rounds);
    drain_tree(&rounds, "threads/4");
    const struct ew_reading *over = NULL, *begun = NULL;
    for (int i = 0; i < rounds.reading_count; i++)
        if (rounds.readings[i].tid == 102)
            *(rounds.readings[i].kind == EW_READING_FINAL ? &over : &begun) = &rounds.readings[i];
    CHECK(over != NULL && begun != NULL && over < begun);
    CHECK_EQ_UINT(over->start_ns, 1050 * TICK_NS);
    CHECK_EQ_UINT(over->counter[EW_C_cpu_ns], 60000000);
    CHECK_EQ_UINT(begun->start_ns, 1300 * TICK_NS);
    CHECK_EQ_UINT(begun->counter[EW_C_cpu_ns], 3 * TICK_NS); /* no schedstat: in ticks */
    CHECK_EQ_UINT(begun->counter_has & EW_HAS_C(runq_wait_ns), 0);
    /* 11 + 6 of the previous thread + 2 */
    CHECK_EQ_UINT(reading_of(&rounds, 100, 0)->counter[EW_C_switches_voluntary], 19);
    rounds_done(&rounds);
}

TEST(threads_are_removed_with_their_process)
{
    struct rounds rounds;
    rounds_open(&rounds, "threads/1", &everything, true, 100);
    drain_again(&rounds);
    CHECK_EQ_UINT(rounds.poll->base.thread_count, 3);
    drain_tree(&rounds, "users");
    CHECK(process_fact(&rounds, 200, EW_PROCESS_EXIT) != NULL);
    CHECK_EQ_UINT(rounds.poll->base.thread_count, 0);
    rounds_done(&rounds);
}

/* ------------------------------------------------------------------- table */

TEST(the_table_finds_its_entries_after_any_additions_and_removals)
{
    enum { PIDS = 3000 };
    static uint8_t there[PIDS + 1];
    struct ew_poll_table table;
    uint32_t random = 1, count = 0;
    ew_poll_table_init(&table, PIDS / 2);
    for (int step = 0; step < 40000; step++) {
        random = random * 1664525u + 1013904223u;
        uint32_t pid = random / 65536 % PIDS + 1;
        struct ew_poll_entry *entry = ew_poll_table_find(&table, pid);
        CHECK_EQ_INT(entry != NULL, there[pid]);
        if (entry) {
            CHECK_EQ_UINT(entry->pid, pid);
            ew_poll_table_remove(&table, entry);
        } else if (!ew_poll_table_add(&table, pid)) {
            CHECK_EQ_UINT(count, PIDS / 2);
            continue;
        }
        there[pid] = !entry;
        count += there[pid] ? 1u : UINT32_MAX;
        CHECK_EQ_UINT(table.count, count);
    }
    for (uint32_t pid = 1; pid <= PIDS; pid++)
        CHECK_EQ_INT(ew_poll_table_find(&table, pid) != NULL, there[pid]);
    ew_poll_table_done(&table);
}
