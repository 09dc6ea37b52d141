/* SPDX-License-Identifier: MIT */
/*
 * The tables behind the sampler: objects that do not move, IDs used by several objects, shared
 * strings, limits and eviction.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "ledger/ledger.h"
#include "test.h"

TEST(pool_objects_are_zeroed_do_not_move_and_are_reused)
{
    struct ew_pool pool;
    ew_pool_init(&pool, 24);
    static const unsigned char zeros[24];
    unsigned char *object[200];
    uint32_t ref[200];
    for (int i = 0; i < 200; i++) {
        object[i] = ew_pool_take(&pool, &ref[i]);
        CHECK(object[i] != NULL);
        CHECK_EQ_MEM(object[i], zeros, 24);
        memset(object[i], i + 1, 24);
    }
    for (int i = 0; i < 200; i++) {
        CHECK(ew_pool_at(&pool, ref[i]) == object[i]);
        CHECK_EQ_INT(object[i][23], (i + 1) & 0xff);
    }
    ew_pool_give(&pool, ref[7]);
    CHECK_EQ_UINT(pool.used, 199);
    uint32_t again;
    CHECK(ew_pool_take(&pool, &again) == object[7]);
    CHECK_EQ_UINT(again, ref[7]);
    CHECK_EQ_MEM(object[7], zeros, 24);
    CHECK_EQ_UINT(ew_pool_last(&pool), 256);
    ew_pool_done(&pool);
}

/* Compared with a plain array, with colliding hashes, several objects per ID, and many removals. */
TEST(the_index_finds_every_object_of_an_id_after_any_removals)
{
    enum { PAIRS = 3000, IDS = 701 };
    static uint32_t id_of[PAIRS + 1];
    struct ew_index index;
    ew_index_init(&index);
    uint64_t seed = 42;
    for (int round = 0; round < 40000; round++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint32_t ref = (uint32_t)(seed >> 33) % PAIRS + 1;
        if (id_of[ref] != 0) {
            ew_index_remove(&index, id_of[ref], ref);
            id_of[ref] = 0;
        } else {
            id_of[ref] = (uint32_t)(seed >> 20) % IDS * 64 + 1;
            CHECK_EQ_INT(ew_index_add(&index, id_of[ref], ref), 0);
        }
    }
    for (uint32_t id = 1; id < IDS * 64; id += 64) {
        uint32_t want = 0, got = 0;
        for (uint32_t ref = 1; ref <= PAIRS; ref++)
            want += id_of[ref] == id;
        uint32_t cursor = ew_index_home(&index, id);
        uint32_t ref;
        while ((ref = ew_index_next(&index, id, &cursor)) != 0) {
            CHECK_EQ_UINT(id_of[ref], id);
            got++;
        }
        CHECK_EQ_UINT(got, want);
    }
    ew_index_done(&index);
}

TEST(equal_strings_are_shared_until_the_last_reference_is_dropped)
{
    struct ew_intern intern;
    ew_intern_init(&intern);
    char text[32];
    const char *held[300];
    for (int i = 0; i < 300; i++) {
        (void)snprintf(text, sizeof text, "name %d", i % 100);
        held[i] = ew_intern_take(&intern, text);
        CHECK_EQ_STR(held[i], text);
    }
    CHECK(held[3] == held[103] && held[3] == held[203]);
    CHECK_EQ_UINT(intern.used, 100);
    for (int i = 0; i < 200; i++)
        ew_intern_release(&intern, held[i]);
    CHECK_EQ_UINT(intern.used, 100);
    CHECK_EQ_STR(held[203], "name 3");
    for (int i = 200; i < 300; i++)
        ew_intern_release(&intern, held[i]);
    CHECK_EQ_UINT(intern.used, 0);
    ew_intern_release(&intern, NULL);
    ew_intern_done(&intern);
}

TEST(a_reused_pid_is_another_process)
{
    struct ew_ledger ledger;
    struct ew_process *old, *new;
    ew_ledger_init(&ledger, 10, 10);
    CHECK_EQ_INT(ew_ledger_add_process(&ledger, 7, 100, &old), 0);
    CHECK_EQ_INT(ew_ledger_add_process(&ledger, 7, 200, &new), 0);
    CHECK(ew_ledger_find_process(&ledger, 7, 100) == old);
    CHECK(ew_ledger_find_process(&ledger, 7, 200) == new);
    CHECK(ew_ledger_find_process(&ledger, 7, 0) == new);
    CHECK(ew_ledger_find_process(&ledger, 7, 300) == NULL);
    CHECK(ew_ledger_find_process_at(&ledger, 7, 99) == NULL);
    CHECK(ew_ledger_find_process_at(&ledger, 7, 199) == old);
    CHECK(ew_ledger_find_process_at(&ledger, 7, 200) == new);
    ew_ledger_drop_process(&ledger, new);
    CHECK(ew_ledger_find_process(&ledger, 7, 0) == old);
    ew_ledger_done(&ledger);
}

TEST(of_several_processes_with_one_pid_the_running_one_is_found)
{
    struct ew_ledger ledger;
    struct ew_process *ended, *runs;
    ew_ledger_init(&ledger, 10, 10);
    CHECK_EQ_INT(ew_ledger_add_process(&ledger, 7, 500, &ended), 0);
    ended->flags |= EW_P_EXITING;
    CHECK_EQ_INT(ew_ledger_add_process(&ledger, 7, 0, &runs), 0);
    CHECK(ew_ledger_find_process(&ledger, 7, 0) == runs);
    ew_ledger_done(&ledger);
}

TEST(a_tid_with_another_start_time_is_another_thread)
{
    struct ew_ledger ledger;
    struct ew_process *process;
    struct ew_thread *old, *new;
    ew_ledger_init(&ledger, 10, 10);
    CHECK_EQ_INT(ew_ledger_add_process(&ledger, 7, 100, &process), 0);
    CHECK_EQ_INT(ew_ledger_add_thread(&ledger, process, 9, 100, 0, 0, &old), 0);
    CHECK_EQ_INT(ew_ledger_add_thread(&ledger, process, 9, 200, 0, 0, &new), 0);
    CHECK(ew_ledger_find_thread(&ledger, 7, 9, 100) == old);
    CHECK(ew_ledger_find_thread(&ledger, 7, 9, 200) == new);
    CHECK(ew_ledger_find_thread(&ledger, 7, 9, 300) == NULL);
    CHECK(ew_ledger_find_thread(&ledger, 8, 9, 100) == NULL);
    CHECK_EQ_UINT(process->thread_count, 2);
    ew_ledger_done(&ledger);
}

TEST(dropping_a_process_drops_its_threads)
{
    struct ew_ledger ledger;
    struct ew_process *process;
    struct ew_thread *thread;
    ew_ledger_init(&ledger, 10, 10);
    CHECK_EQ_INT(ew_ledger_add_process(&ledger, 7, 100, &process), 0);
    for (uint32_t tid = 1; tid <= 5; tid++)
        CHECK_EQ_INT(ew_ledger_add_thread(&ledger, process, tid, 100, 0, 0, &thread), 0);
    ew_ledger_drop_process(&ledger, process);
    CHECK_EQ_UINT(ledger.threads.used, 0);
    CHECK_EQ_UINT(ledger.tids.used, 0);
    CHECK_EQ_UINT(ledger.pids.used, 0);
    CHECK_EQ_UINT(ledger.processes.used, 0);
    ew_ledger_done(&ledger);
}

TEST(a_full_process_table_refuses)
{
    struct ew_ledger ledger;
    struct ew_process *process;
    ew_ledger_init(&ledger, 3, 10);
    for (uint32_t pid = 1; pid <= 3; pid++)
        CHECK_EQ_INT(ew_ledger_add_process(&ledger, pid, 1, &process), 0);
    CHECK_EQ_INT(ew_ledger_add_process(&ledger, 4, 1, &process), ETWATCH_ELIMIT);
    ew_ledger_drop_process(&ledger, process);
    CHECK_EQ_INT(ew_ledger_add_process(&ledger, 4, 1, &process), 0);
    ew_ledger_done(&ledger);
}

static struct ew_thread *add_open_thread(struct ew_ledger *ledger, struct ew_process *process,
                                         uint32_t tid, uint32_t cut, uint64_t open_index)
{
    struct ew_thread *thread = NULL;
    CHECK_EQ_INT(ew_ledger_add_thread(ledger, process, tid, 1, cut, 0, &thread), 0);
    thread->flags |= EW_T_OPEN;
    thread->open_index = open_index;
    return thread;
}

TEST(a_full_thread_table_evicts_only_threads_idle_since_before_their_interval)
{
    struct ew_ledger ledger;
    struct ew_process *process;
    struct ew_thread *thread;
    ew_ledger_init(&ledger, 3, 3);
    CHECK_EQ_INT(ew_ledger_add_process(&ledger, 1, 1, &process), 0);
    (void)add_open_thread(&ledger, process, 11, 5, 40); /* read in this drain */
    (void)add_open_thread(&ledger, process, 12, 4, 50); /* its interval is still open */
    (void)add_open_thread(&ledger, process, 13, 4, 49); /* idle */
    CHECK_EQ_INT(ew_ledger_add_thread(&ledger, process, 14, 1, 5, 50, &thread), 0);
    CHECK(ew_ledger_find_thread(&ledger, 1, 13, 1) == NULL);
    CHECK(ew_ledger_find_thread(&ledger, 1, 11, 1) != NULL);
    CHECK(ew_ledger_find_thread(&ledger, 1, 12, 1) != NULL);
    CHECK((process->flags & EW_P_REBASE) != 0);
    CHECK_EQ_INT(ew_ledger_add_thread(&ledger, process, 15, 1, 5, 50, &thread), ETWATCH_ELIMIT);
    CHECK_EQ_UINT(process->thread_count, 3);
    ew_ledger_done(&ledger);
}

TEST(a_sweep_evicts_threads_that_are_idle_for_long)
{
    struct ew_ledger ledger;
    struct ew_process *process;
    ew_ledger_init(&ledger, 3, 1000);
    CHECK_EQ_INT(ew_ledger_add_process(&ledger, 1, 1, &process), 0);
    for (uint32_t tid = 1; tid <= 100; tid++)
        (void)add_open_thread(&ledger, process, tid, tid, 0);
    for (int i = 0; i < 16; i++)
        ew_ledger_sweep_threads(&ledger, 16, 61, 10);
    CHECK_EQ_UINT(ledger.threads.used, 40);
    CHECK(ew_ledger_find_thread(&ledger, 1, 60, 1) == NULL);
    CHECK(ew_ledger_find_thread(&ledger, 1, 61, 1) != NULL);
    ew_ledger_done(&ledger);
}

TEST(a_thread_that_takes_over_the_leaders_id_keeps_its_counts)
{
    struct ew_ledger ledger;
    struct ew_process *process;
    struct ew_thread *thread;
    ew_ledger_init(&ledger, 3, 10);
    CHECK_EQ_INT(ew_ledger_add_process(&ledger, 1, 1, &process), 0);
    CHECK_EQ_INT(ew_ledger_add_thread(&ledger, process, 5, 50, 0, 0, &thread), 0);
    thread->last[EW_C_cpu_ns] = 77;
    CHECK_EQ_INT(ew_ledger_move_thread(&ledger, thread, 1, 1), 0);
    CHECK(ew_ledger_find_thread(&ledger, 1, 5, 50) == NULL);
    CHECK(ew_ledger_find_thread(&ledger, 1, 1, 1) == thread);
    CHECK_EQ_UINT(thread->last[EW_C_cpu_ns], 77);
    ew_ledger_done(&ledger);
}

/* Sums the requested sizes. Frees are not counted, so grown blocks count twice: an upper bound. */
static int add_size(void *ctx, size_t size)
{
    *(size_t *)ctx += size;
    return 0;
}

TEST(ten_thousand_idle_processes_fit_in_little_more_than_five_megabytes)
{
    struct ew_ledger ledger;
    size_t bytes = 0;
    ew_ledger_init(&ledger, 65536, 131072);
    ew_alloc_set_hook(add_size, &bytes);
    for (uint32_t i = 1; i <= 10000; i++) {
        struct ew_process *process = NULL;
        char name[32];
        (void)snprintf(name, sizeof name, "worker%u", i % 500);
        int r = ew_ledger_add_process(&ledger, i, i, &process);
        r = r < 0 ? r : ew_ledger_set_text(&ledger, &process->name, name);
        r = r < 0 ? r : ew_ledger_set_text(&ledger, &process->user, "daemon");
        if (r < 0)
            break;
    }
    ew_alloc_set_hook(NULL, NULL);
    CHECK_EQ_UINT(ledger.processes.used, 10000);
    CHECK(bytes < 5300000);
    ew_ledger_done(&ledger);
}

static int fill(void *ctx)
{
    (void)ctx;
    struct ew_ledger ledger;
    ew_ledger_init(&ledger, 1000, 1000);
    int r = 0;
    for (uint32_t i = 1; r == 0 && i <= 150; i++) {
        struct ew_process *process;
        struct ew_thread *thread;
        char name[16];
        (void)snprintf(name, sizeof name, "n%u", i);
        r = ew_ledger_add_process(&ledger, i, 1, &process);
        r = r < 0 ? r : ew_ledger_set_text(&ledger, &process->name, name);
        r = r < 0 ? r : ew_ledger_add_thread(&ledger, process, i, 1, 0, 0, &thread);
        r = r < 0 ? r : ew_ledger_move_thread(&ledger, thread, i + 1000, 1);
    }
    ew_ledger_done(&ledger);
    return r;
}

TEST(every_failed_allocation_is_handled)
{
    TORTURE(fill, NULL);
}
