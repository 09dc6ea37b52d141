/* SPDX-License-Identifier: MIT */
/* The reader of the logs, on logs made by hand: the order in which the entries of CPUs appear. */
#include <stdlib.h>
#include <string.h>

#include "test.h"

/* The rest of the source is replaced, so that no kernel is needed. */
#include "source/ebpf/log.c"

enum { CPUS = 2, ENTRIES = 8, PID = 100 };

static struct ew_k_entry entries[CPUS * ENTRIES];
static struct ew_k_thread threads[EW_K_REQUESTS_MAX];
static bool answers; /* tasks are read; their counters are those of the entry */

int ew_ebpf_object_read_tasks(struct ew_ebpf_object *object, uint32_t request_count, bool cpus,
                              bool clear_cells)
{
    (void)cpus;
    (void)clear_cells;
    for (uint32_t i = 0; i < request_count; i++) {
        threads[i] = (struct ew_k_thread){.entry = entries[object->requests[i]]};
        threads[i].entry.kind = answers ? EW_K_AT : 0;
    }
    return 0;
}

int ew_ebpf_read_life(struct ew_ebpf_source *source)
{
    (void)source;
    return 0;
}

void ew_ebpf_flush_moves(struct ew_ebpf_source *source, uint32_t count)
{
    (void)source;
    (void)count;
}

void ew_ebpf_proc_gauges_ran(struct ew_ebpf_proc_gauges *proc_gauges, uint32_t pid)
{
    (void)proc_gauges;
    (void)pid;
}

uint32_t ew_ebpf_optional_counters(const struct ew_ebpf_optional *optional,
                                   const struct ew_k_optional *from, uint64_t *counter)
{
    (void)optional;
    (void)from;
    (void)counter;
    return 0;
}

static struct {
    struct ew_reading reading[16];
    uint32_t count;
} taken;

static void take(void *ctx, const struct ew_reading *reading)
{
    (void)ctx;
    CHECK(taken.count < 16);
    taken.reading[taken.count++] = *reading;
}

static struct ew_k_head heads[CPUS];
static struct ew_k_running running[CPUS];
static uint64_t requests[EW_K_REQUESTS_MAX];
static struct ew_k_clock clock_of_logs = {
    .at_ns = 0, .era = {{.base_ns = 0, .interval_ns = 1000}, {.base_ns = 0, .interval_ns = 1000}}};
static const struct ew_facts facts = {.reading = take};

static struct ew_ebpf_source *new_source(void)
{
    struct ew_ebpf_source *source = calloc(1, sizeof *source);
    CHECK(source != NULL);
    memset(heads, 0, sizeof heads);
    memset(&taken, 0, sizeof taken);
    answers = false;
    source->object.cpu_count = CPUS;
    source->object.log_entries = ENTRIES;
    source->object.heads = heads;
    source->object.entries = entries;
    source->object.running = running;
    source->object.threads = threads;
    source->object.requests = requests;
    source->object.clock = &clock_of_logs;
    source->facts = &facts;
    return source;
}

static void free_source(struct ew_ebpf_source *source)
{
    ew_free(source->active);
    ew_free(source->active_index);
    free(source);
}

/* What a CPU logs: an entry of the thread that started at that time. */
static void append(uint32_t cpu, uint32_t kind, uint32_t tid, uint64_t start_ns, uint64_t t_ns,
                   uint64_t cpu_ns)
{
    entries[cpu * ENTRIES + heads[cpu].head++ % ENTRIES] = (struct ew_k_entry){
        .kind = kind,
        .tid = tid,
        .tgid = PID,
        .start_ns = start_ns,
        .t_ns = t_ns,
        .in_ns = t_ns - cpu_ns,
        .cpu_ns = cpu_ns,
    };
}

static void drain(struct ew_ebpf_source *source)
{
    CHECK_EQ_INT(ew_ebpf_read_logs(source, 900, NULL), 0);
}

TEST(entries_of_all_processors_are_delivered_by_time)
{
    struct ew_ebpf_source *source = new_source();
    append(0, EW_K_OPEN, 7, 5, 30, 1);
    append(1, EW_K_OPEN, 8, 5, 20, 1);
    append(1, EW_K_FINAL, 7, 5, 40, 2);
    drain(source);
    CHECK_EQ_UINT(taken.count, 3);
    CHECK_EQ_UINT(taken.reading[0].tid, 8);
    CHECK_EQ_UINT(taken.reading[1].t_ns, 30);
    CHECK_EQ_UINT(taken.reading[2].kind, EW_READING_FINAL);
    free_source(source);
}

TEST(an_entry_that_appears_after_the_last_one_of_its_thread_is_ignored)
{
    struct ew_ebpf_source *source = new_source();
    append(1, EW_K_FINAL, 7, 5, 40, 2);
    drain(source);
    append(0, EW_K_OPEN, 7, 5, 30, 1);
    drain(source);
    CHECK_EQ_UINT(taken.count, 1);
    CHECK_EQ_UINT(taken.reading[0].kind, EW_READING_FINAL);
    free_source(source);
}

TEST(a_new_thread_with_the_id_of_an_exited_one_is_delivered)
{
    struct ew_ebpf_source *source = new_source();
    append(1, EW_K_FINAL, 7, 5, 40, 2);
    drain(source);
    append(0, EW_K_OPEN, 7, 45, 50, 0);
    append(0, EW_K_FINAL, 7, 45, 60, 3);
    drain(source);
    CHECK_EQ_UINT(taken.count, 3);
    CHECK_EQ_UINT(taken.reading[2].t_ns, 60);
    free_source(source);
}

TEST(an_exited_leader_is_replaced_only_by_an_exec)
{
    struct ew_ebpf_source *source = new_source();
    append(1, EW_K_FINAL, PID, 5, 40, 2);
    drain(source);
    append(0, EW_K_OPEN, PID, 5, 50, 1);
    drain(source);
    CHECK_EQ_UINT(taken.count, 1);
    /* What ew_ebpf_flush_moves does with the exec. */
    source->gone[PID % EW_EBPF_GONE_CELLS].pid = 0;
    append(0, EW_K_OPEN, PID, 5, 60, 4);
    drain(source);
    CHECK_EQ_UINT(taken.count, 2);
    CHECK_EQ_UINT(taken.reading[1].t_ns, 60);
    free_source(source);
}

TEST(a_thread_in_the_place_of_an_overwritten_entry_is_not_delivered)
{
    struct ew_ebpf_source *source = new_source();
    append(0, EW_K_OPEN, 7, 5, 100, 1);
    drain(source);
    /* The log wraps; the thread of the last entry has exited when the drain ends. */
    for (uint32_t i = 1; i < ENTRIES; i++)
        append(0, EW_K_FINAL, 10 + i, 5, 100 + i, 3);
    append(0, EW_K_FINAL, 20, 5, 200, 3);
    drain(source);
    uint32_t before = taken.count;
    /* Thread 7 had its entry in this interval: it is read again, by the place of its entry. */
    answers = true;
    drain(source);
    CHECK_EQ_UINT(taken.count, before);
    free_source(source);
}

TEST(a_thread_that_may_run_on_is_read_in_the_next_drain)
{
    struct ew_ebpf_source *source = new_source();
    append(0, EW_K_OPEN, 7, 5, 100, 1);
    drain(source);
    answers = true;
    drain(source);
    CHECK_EQ_UINT(taken.count, 2);
    CHECK_EQ_UINT(taken.reading[1].kind, EW_READING_AT);
    CHECK_EQ_UINT(taken.reading[1].tid, 7);
    free_source(source);
}

static int refuse(void *ctx, size_t size)
{
    (void)ctx;
    (void)size;
    return 1;
}

TEST(without_memory_readings_are_delivered_marked_and_counted)
{
    struct ew_ebpf_source *source = new_source();
    append(0, EW_K_OPEN, 7, 5, 30, 1);
    append(0, EW_K_SPAN, 8, 5, 40, 2);
    append(1, EW_K_FINAL, 9, 5, 50, 3);
    ew_alloc_set_hook(refuse, NULL);
    drain(source);
    ew_alloc_set_hook(NULL, NULL);
    CHECK_EQ_UINT(taken.count, 3);
    CHECK(taken.reading[0].incomplete && taken.reading[1].incomplete);
    CHECK(!taken.reading[2].incomplete); /* nothing follows it */
    CHECK_EQ_UINT(source->refused, 2);
    append(0, EW_K_SPAN, 7, 5, 60, 4);
    drain(source);
    CHECK_EQ_UINT(taken.count, 4);
    CHECK(!taken.reading[3].incomplete);
    CHECK_EQ_UINT(source->refused, 2);
    free_source(source);
}

TEST(without_memory_a_thread_that_is_known_is_read_as_before)
{
    struct ew_ebpf_source *source = new_source();
    append(0, EW_K_OPEN, 7, 5, 30, 1);
    drain(source);
    source->active_size = source->active_count; /* full */
    append(0, EW_K_SPAN, 7, 5, 40, 2);
    ew_alloc_set_hook(refuse, NULL);
    drain(source);
    ew_alloc_set_hook(NULL, NULL);
    CHECK_EQ_UINT(source->refused, 0);
    CHECK(!taken.reading[taken.count - 1].incomplete);
    free_source(source);
}

TEST(an_entry_says_how_a_thread_left_its_processor)
{
    struct ew_ebpf_source *source = new_source();
    source->units.page_bytes = 4096;
    append(0, EW_K_SPAN, 7, 5, 30, 4);
    entries[0].rss_pages = 3;
    append(0, EW_K_SPAN_WAITS, 7, 5, 40, 5);
    append(0, EW_K_SPAN, 7, 5, 50, 50); /* ran from 0: unknown */
    append(0, EW_K_OPEN, 7, 5, 60, 6);
    drain(source);
    CHECK_EQ_UINT(taken.count, 4);
    const struct ew_reading *found = taken.reading;
    CHECK_EQ_UINT(found[0].kind, EW_READING_SPAN);
    CHECK_EQ_UINT(found[0].left, EW_LEFT_PREEMPTED);
    CHECK_EQ_UINT(found[0].ran_from_ns, 26);
    CHECK_EQ_UINT(found[0].gauge_has, EW_HAS_G(rss_bytes));
    CHECK_EQ_UINT(found[0].gauge[EW_G_rss_bytes], 3 * 4096);
    CHECK_EQ_UINT(found[1].left, EW_LEFT_WAITING);
    CHECK_EQ_UINT(found[1].gauge_has, 0);
    CHECK_EQ_UINT(found[2].kind, EW_READING_AT);
    CHECK_EQ_UINT(found[3].kind, EW_READING_OPEN);
    CHECK_EQ_UINT(found[3].ran_from_ns, 0);
    CHECK_EQ_UINT(found[3].left, EW_LEFT_NOT);
    free_source(source);
}

TEST(a_running_thread_has_its_cpu_time_up_to_the_horizon)
{
    struct ew_ebpf_source *source = new_source();
    source->last_drain_ns = 1000;
    running[0].thread.entry = (struct ew_k_entry){.kind = EW_K_AT,
                                                  .tid = 7,
                                                  .tgid = PID,
                                                  .start_ns = 5,
                                                  .t_ns = 1000,
                                                  .in_ns = 700,
                                                  .in_cpu_ns = 50};
    running[1].thread.entry = running[0].thread.entry;
    running[1].thread.entry.tid = 8;
    running[1].thread.entry.in_ns = 950; /* after the horizon */
    drain(source);
    memset(running, 0, sizeof running);
    CHECK_EQ_UINT(taken.count, 2);
    CHECK_EQ_UINT(taken.reading[0].kind, EW_READING_SPAN);
    CHECK_EQ_UINT(taken.reading[0].t_ns, 900);
    CHECK_EQ_UINT(taken.reading[0].counter[EW_C_cpu_ns], 250);
    CHECK_EQ_UINT(taken.reading[0].ran_from_ns, 700);
    CHECK_EQ_UINT(taken.reading[1].kind, EW_READING_AT);
    CHECK_EQ_UINT(taken.reading[1].t_ns, 1000);
    CHECK_EQ_UINT(taken.reading[1].counter_has, 0);
    free_source(source);
}

TEST(threads_of_many_drains_are_each_found_again)
{
    enum { DRAINS = 80 };
    struct ew_ebpf_source *source = new_source();
    for (uint32_t i = 0; i < DRAINS; i++) {
        for (uint32_t k = 0; k < ENTRIES; k++)
            append(i % CPUS, EW_K_OPEN, 1000 + i * ENTRIES + k, 5, 100 + i, 1);
        taken.count = 0;
        drain(source);
        CHECK_EQ_UINT(taken.count, ENTRIES);
        CHECK_EQ_UINT(source->active_count, (i + 1) * ENTRIES);
    }
    for (uint32_t tid = 1000; tid < 1000 + DRAINS * ENTRIES; tid++) {
        const struct ew_ebpf_active *active = find_active(source, tid);
        CHECK(active != NULL);
        CHECK_EQ_UINT(active->tid, tid);
    }
    CHECK(find_active(source, 999) == NULL);
    free_source(source);
}
