/* SPDX-License-Identifier: MIT */
/*
 * The polled process list next to the event stream: gauges of processes that ran, and after a loss
 * all processes that started or exited unnoticed.
 */
#include "metric_kit.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "etw_emulator.h"
#include "listing_kit.h"
#include "monitor/monitor.h"
#include "source/etw/consumer.h"
#include "source/etw/etw.h"

enum { INTERVAL_MS = 100 };
#define BEGUN_NS (1000 * MS)

struct machine {
    struct list list;
    uint32_t lists, closed, held;
    char reported[2048];
    struct ew_reading last; /* of a process */
};

static int list_processes(void *ctx, struct ew_listing *ret_listing, struct ew_error *reterr)
{
    struct machine *m = ctx;
    (void)reterr;
    m->lists++;
    ew_listing_init(ret_listing, m->list.bytes, m->list.size, ADDRESS);
    return 0;
}

static void *hold(void *ctx, uint32_t pid)
{
    struct machine *m = ctx;
    (void)pid;
    m->held++;
    return m;
}

static uint32_t more(void *ctx, void *held, uint64_t gauge[EW_GAUGE_COUNT])
{
    CHECK(ctx == held);
    gauge[EW_G_gdi_objects] = 77;
    return EW_HAS_G(gdi_objects);
}

static void release(void *ctx, void *held)
{
    CHECK(ctx == held);
    ((struct machine *)ctx)->held--;
}

static void close_list(void *ctx)
{
    ((struct machine *)ctx)->closed++;
}

static struct ew_winpoll_system system_of(struct machine *m)
{
    return (struct ew_winpoll_system){.ctx = m,
                                      .list = list_processes,
                                      .hold = hold,
                                      .slow = more,
                                      .slow_has = EW_METRIC_SET(ETWATCH_M_gdi_objects),
                                      .release = release,
                                      .close = close_list,
                                      .raw_zero = ZERO};
}

/* ------------------------------------------------------------------------ facts */

static void note(struct machine *m, const char *what, uint32_t pid, const char *name)
{
    size_t len = strlen(m->reported);
    (void)snprintf(m->reported + len, sizeof m->reported - len, "%s%s %u%s%s", len > 0 ? ", " : "",
                   what, pid, name[0] != '\0' ? " " : "", name);
}

static void on_process(void *ctx, const struct ew_process_fact *fact)
{
    static const char *const kinds[] = {"?", "seen", "start", "exec", "rename", "exit"};
    note(ctx, kinds[fact->kind], fact->pid, fact->name);
    if (fact->kind == EW_PROCESS_EXIT)
        CHECK_EQ_UINT(fact->has & EW_HAS_EXIT_STATUS, 0);
}

static void on_reading(void *ctx, const struct ew_reading *reading)
{
    struct machine *m = ctx;
    if (reading->tid != 0)
        return;
    m->last = *reading;
    note(m, "read", reading->pid, "");
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    (void)ctx;
    (void)loss;
}

static struct ew_facts facts_of(struct machine *m)
{
    return (struct ew_facts){
        .ctx = m, .process = on_process, .reading = on_reading, .loss = on_loss};
}

static struct ew_tally *new_tally(void)
{
    struct ew_tally *tally;
    struct ew_tally_config config = {.cpu_count = 1,
                                     .first_ns = BEGUN_NS,
                                     .epoch_ns = BEGUN_NS,
                                     .interval_ns = INTERVAL_MS * MS};
    CHECK_EQ_INT(ew_tally_new(&config, &tally), 0);
    return tally;
}

static void event_of(struct ew_tally *tally, const struct ew_facts *facts, enum ew_event_kind kind,
                     uint32_t pid, const char *name, uint64_t t_ns)
{
    struct ew_record record = {.t_ns = t_ns};
    struct ew_event event = {.kind = (uint8_t)kind, .t_ns = t_ns, .pid = pid, .tid = EW_NO_ID};
    event.u.process.parent_pid = event.u.process.session_id = EW_NO_ID;
    event.u.process.image =
        (struct ew_event_text){.bytes = (const uint8_t *)name, .len = (uint32_t)strlen(name)};
    CHECK_EQ_INT(ew_tally_event(tally, &record, &event, facts), 0);
}

static uint64_t units_at(uint64_t t_ns)
{
    return ZERO + t_ns / 100;
}

#define RELIST(m, ...)                                       \
    make_list(&(m)->list, (const struct row[]){__VA_ARGS__}, \
              sizeof((const struct row[]){__VA_ARGS__}) / sizeof(struct row))

static struct machine machine;

/* Reads the list a second later and drains up to the end of that interval. */
static const char *poll_and_drain(struct ew_etw_list_sync *sync, struct ew_tally *tally,
                                  const struct ew_facts *facts, uint64_t now_ns)
{
    machine.reported[0] = '\0';
    CHECK_EQ_UINT(ew_etw_list_sync_read(sync, now_ns), now_ns);
    ew_tally_advance(tally, now_ns, facts);
    ew_etw_list_sync_emit(sync, tally, facts);
    ew_tally_advance(tally, now_ns + INTERVAL_MS * MS, facts);
    return machine.reported;
}

TEST(gauges_are_reported_for_processes_that_ran)
{
    struct machine *m = &machine;
    struct ew_winpoll_system system = system_of(m);
    struct ew_facts facts = facts_of(m);
    struct ew_etw_list_sync *sync = NULL;
    memset(m, 0, sizeof *m);
    struct row a = {.pid = 8,
                    .name = "a.exe",
                    .user = 5,
                    .rss = 4096,
                    .rss_private = 3000,
                    .pools = 64,
                    .threads = 2,
                    .other_bytes = 500};
    struct row b = {.pid = 12, .name = "b.exe", .user = 5, .rss = 8192};
    struct row other = {.pid = 99, .name = "unknown.exe", .user = 5};
    RELIST(m, other, a, b);
    struct ew_tally *tally = new_tally();
    event_of(tally, &facts, EW_EVENT_PROCESS_THERE, 8, "a.exe", BEGUN_NS);
    event_of(tally, &facts, EW_EVENT_PROCESS_THERE, 12, "b.exe", BEGUN_NS);
    CHECK_EQ_INT(ew_etw_list_sync_new(&system, BEGUN_NS, &sync), 0);
    static const struct etwatch_metric_set expected =
        EW_METRIC_SET(ETWATCH_M_rss_bytes, ETWATCH_M_handles, ETWATCH_M_gdi_objects,
                      ETWATCH_M_pool_paged_bytes, ETWATCH_M_rss_private_bytes,
                      ETWATCH_M_io_other_ops, ETWATCH_M_cpu_user_ns, ETWATCH_M_cpu_kernel_ns);
    CHECK(includes(ew_etw_list_sync_available(sync), &expected));
    CHECK(!etwatch_metric_set_has(ew_etw_list_sync_available(sync), ETWATCH_M_threads_running));
    /* The first list also shows what the rundown of the session lacked. */
    CHECK_EQ_STR(poll_and_drain(sync, tally, &facts, 2000 * MS),
                 "seen 99 unknown.exe, read 99, read 8, read 12");
    CHECK_EQ_UINT(m->last.gauge[EW_G_rss_bytes], 8192);
    CHECK_EQ_UINT(m->last.gauge[EW_G_gdi_objects], 77);
    CHECK_EQ_UINT(m->last.t_ns, 2100 * MS);
    /* Not before a second has passed. */
    CHECK_EQ_UINT(ew_etw_list_sync_read(sync, 2900 * MS), UINT64_MAX);
    CHECK_EQ_STR(poll_and_drain(sync, tally, &facts, 3000 * MS), "");
    CHECK_EQ_UINT(m->last.counter_has, EW_HAS_C(io_other_bytes) | EW_HAS_C(io_other_ops) |
                                           EW_HAS_C(cpu_user_ns) | EW_HAS_C(cpu_kernel_ns));
    a.kernel = 1;
    a.rss = 5000;
    a.other_bytes = 700;
    RELIST(m, b, a, other);
    CHECK_EQ_STR(poll_and_drain(sync, tally, &facts, 4000 * MS), "read 8");
    CHECK_EQ_UINT(m->last.gauge[EW_G_rss_bytes], 5000);
    CHECK_EQ_UINT(m->last.gauge[EW_G_pool_nonpaged_bytes], 32);
    CHECK_EQ_UINT(m->last.gauge[EW_G_rss_private_bytes], 3000);
    CHECK_EQ_UINT(m->last.counter[EW_C_io_other_bytes], 700);
    CHECK_EQ_UINT(m->last.counter[EW_C_io_other_ops], 70);
    CHECK_EQ_UINT(m->last.counter[EW_C_cpu_user_ns], 500);
    CHECK_EQ_UINT(m->last.counter[EW_C_cpu_kernel_ns], 100);
    CHECK_EQ_UINT(m->last.gauge[EW_G_threads], 2);
    ew_etw_list_sync_free(sync);
    ew_tally_free(tally);
    CHECK_EQ_UINT(m->closed, 1);
    CHECK_EQ_UINT(m->held, 0);
}

/* The thread of a process, by its id. */
static uint32_t process_of(const struct ew_tally *tally, uint32_t tid)
{
    uint32_t pid = EW_NO_ID;
    (void)ew_tally_identify(tally, UINT16_MAX, &pid, &tid);
    return pid;
}

TEST(what_the_rundown_lacks_is_known_from_the_list_at_the_start)
{
    struct machine *m = &machine;
    struct ew_winpoll_system system = system_of(m);
    struct ew_facts facts = facts_of(m);
    struct ew_etw_list_sync *sync = NULL;
    struct ew_listing listing;
    struct ew_listed_process listed;
    struct ew_listed_thread thread;
    memset(m, 0, sizeof *m);
    struct row old = {.pid = 8, .name = "old.exe", .user = 5, .threads = 2};
    struct row young = {.pid = 12, .name = "young.exe", .created = units_at(BEGUN_NS)};
    RELIST(m, old, young);
    CHECK_EQ_INT(list_processes(m, &listing, NULL), 0);
    CHECK_EQ_INT(ew_listing_next(&listing, &listed), 1);
    ew_listed_thread(&listed, 1, &thread);
    struct ew_tally *tally = new_tally();
    CHECK_EQ_INT(ew_etw_list_sync_new(&system, BEGUN_NS, &sync), 0);
    ew_etw_list_sync_seed(sync, tally);
    ew_tally_advance(tally, BEGUN_NS, &facts);
    CHECK(ew_tally_is_alive(tally, 8, NULL));
    CHECK_EQ_UINT(process_of(tally, thread.tid), 8);
    CHECK(!ew_tally_is_alive(tally, 12, NULL)); /* its start is logged */
    CHECK_EQ_STR(m->reported, "seen 8 old.exe");
    ew_etw_list_sync_free(sync);
    ew_tally_free(tally);
}

static uint64_t drifted(void *ctx)
{
    (void)ctx;
    return ZERO + 3 * 10000000; /* three seconds */
}

/* After a loss: the process of the list is the known one although the clocks have drifted. */
TEST(the_clocks_are_compared_anew_with_every_list)
{
    struct machine *m = &machine;
    struct ew_winpoll_system system = system_of(m);
    struct ew_facts facts = facts_of(m);
    struct ew_etw_list_sync *sync = NULL;
    memset(m, 0, sizeof *m);
    system.zero = drifted;
    struct row a = {.pid = 8, .name = "a.exe", .created = drifted(NULL) + 1500 * MS / 100};
    RELIST(m, a);
    struct ew_tally *tally = new_tally();
    CHECK_EQ_INT(ew_etw_list_sync_new(&system, BEGUN_NS, &sync), 0);
    event_of(tally, &facts, EW_EVENT_PROCESS_START, 8, "a.exe", 1500 * MS);
    ew_etw_list_sync_note_loss(sync, 1600 * MS);
    CHECK_EQ_STR(poll_and_drain(sync, tally, &facts, 2000 * MS), "read 8");
    CHECK(ew_tally_is_alive(tally, 8, NULL));
    ew_etw_list_sync_free(sync);
    ew_tally_free(tally);
}

TEST(a_name_in_a_code_page_is_replaced_by_that_of_the_list)
{
    struct machine *m = &machine;
    struct ew_winpoll_system system = system_of(m);
    struct ew_facts facts = facts_of(m);
    struct ew_etw_list_sync *sync = NULL;
    memset(m, 0, sizeof *m);
    RELIST(m, ((struct row){.pid = 8, .name = "K\xe4se.exe", .user = 5}),
           ((struct row){.pid = 12, .name = "other.exe", .user = 5}));
    struct ew_tally *tally = new_tally();
    event_of(tally, &facts, EW_EVENT_PROCESS_THERE, 8, "K\xe4se.exe", BEGUN_NS);
    event_of(tally, &facts, EW_EVENT_PROCESS_THERE, 12, "plain.exe", BEGUN_NS);
    CHECK_EQ_INT(ew_etw_list_sync_new(&system, BEGUN_NS, &sync), 0);
    const char *reported = poll_and_drain(sync, tally, &facts, 2000 * MS);
    CHECK_CONTAINS(reported, "rename 8 K\xc3\xa4se.exe");
    CHECK(strstr(reported, "rename 12") == NULL);
    ew_etw_list_sync_free(sync);
    ew_tally_free(tally);
}

TEST(minor_faults_come_from_the_list_if_no_event_counts_them)
{
    struct machine *m = &machine;
    struct ew_winpoll_system system = system_of(m);
    struct ew_facts facts = facts_of(m);
    struct ew_etw_list_sync *sync = NULL;
    memset(m, 0, sizeof *m);
    RELIST(m, ((struct row){.pid = 8, .name = "a.exe", .user = 5, .faults = 120, .hard = 20}));
    struct ew_tally *tally = new_tally();
    event_of(tally, &facts, EW_EVENT_PROCESS_THERE, 8, "a.exe", BEGUN_NS);
    CHECK_EQ_INT(ew_etw_list_sync_new(&system, BEGUN_NS, &sync), 0);
    CHECK(etwatch_metric_set_has(ew_etw_list_sync_available(sync), ETWATCH_M_faults_minor));
    CHECK_EQ_STR(poll_and_drain(sync, tally, &facts, 2000 * MS), "read 8");
    CHECK_EQ_UINT(m->last.counter[EW_C_faults_minor], 100);
    ew_etw_list_sync_free(sync);
    ew_tally_free(tally);
}

TEST(cycles_are_reported_if_no_event_counts_them)
{
    struct machine *m = &machine;
    struct ew_winpoll_system system = system_of(m);
    struct ew_facts facts = facts_of(m);
    struct ew_etw_list_sync *sync = NULL;
    memset(m, 0, sizeof *m);
    struct row a = {.pid = 8, .name = "a.exe", .user = 5, .cycles = 700};
    RELIST(m, a);
    struct ew_tally *tally = new_tally();
    event_of(tally, &facts, EW_EVENT_PROCESS_THERE, 8, "a.exe", BEGUN_NS);
    CHECK_EQ_INT(ew_etw_list_sync_new(&system, BEGUN_NS, &sync), 0);
    CHECK_EQ_STR(poll_and_drain(sync, tally, &facts, 2000 * MS), "read 8");
    CHECK_EQ_UINT(m->last.counter_has & EW_HAS_C(cycles), 0);
    CHECK(ew_etw_list_sync_count_cycles(sync));
    a.cycles = 900;
    RELIST(m, a);
    CHECK_EQ_STR(poll_and_drain(sync, tally, &facts, 3000 * MS), "read 8");
    CHECK((m->last.counter_has & EW_HAS_C(cycles)) != 0);
    CHECK_EQ_UINT(m->last.counter[EW_C_cycles], 900);
    ew_etw_list_sync_free(sync);
    /* As under Wine: 0 means unknown. */
    a.cycles = 0;
    RELIST(m, a);
    CHECK_EQ_INT(ew_etw_list_sync_new(&system, BEGUN_NS, &sync), 0);
    CHECK(!ew_etw_list_sync_count_cycles(sync));
    ew_etw_list_sync_free(sync);
    ew_tally_free(tally);
}

TEST(after_a_loss_started_and_exited_processes_are_found)
{
    struct machine *m = &machine;
    struct ew_winpoll_system system = system_of(m);
    struct ew_facts facts = facts_of(m);
    struct ew_etw_list_sync *sync = NULL;
    memset(m, 0, sizeof *m);
    struct row stays = {.pid = 8, .name = "stays.exe", .created = units_at(10 * MS)};
    struct row came = {.pid = 16, .name = "came.exe", .created = units_at(1400 * MS)};
    struct row young = {.pid = 20, .name = "young.exe", .created = units_at(1990 * MS)};
    struct row again = {.pid = 24, .name = "again.exe", .created = units_at(1450 * MS)};
    RELIST(m, stays, came, young, again);
    struct ew_tally *tally = new_tally();
    event_of(tally, &facts, EW_EVENT_PROCESS_THERE, 8, "stays.exe", BEGUN_NS);
    event_of(tally, &facts, EW_EVENT_PROCESS_THERE, 12, "gone.exe", BEGUN_NS);
    event_of(tally, &facts, EW_EVENT_PROCESS_START, 24, "before.exe", 1001 * MS);
    /* It may have left the list before its exit is logged. */
    event_of(tally, &facts, EW_EVENT_PROCESS_START, 28, "ending.exe", 1980 * MS);
    CHECK_EQ_INT(ew_etw_list_sync_new(&system, 300 * MS, &sync), 0);
    ew_etw_list_sync_note_loss(sync, 1500 * MS);
    const char *reported = poll_and_drain(sync, tally, &facts, 2000 * MS);
    CHECK_CONTAINS(reported, "exit 12 gone.exe");
    CHECK_CONTAINS(reported, "seen 16 came.exe");
    CHECK(strstr(reported, "exit 24") ==
          NULL); /* its start time is within a second of that in the list */
    CHECK(strstr(reported, "20 young.exe") == NULL);
    CHECK(strstr(reported, "exit 28") == NULL);
    CHECK(strstr(reported, "exit 8") == NULL && strstr(reported, "seen 8") == NULL);
    /* Once is enough. */
    reported = poll_and_drain(sync, tally, &facts, 3000 * MS);
    CHECK(strstr(reported, "young") == NULL);
    again.created = units_at(2500 * MS);
    RELIST(m, stays, came, young, again);
    ew_etw_list_sync_note_loss(sync, 3500 * MS);
    reported = poll_and_drain(sync, tally, &facts, 4000 * MS);
    CHECK_CONTAINS(reported, "exit 24 before.exe");
    CHECK_CONTAINS(reported, "seen 24 again.exe");
    CHECK_CONTAINS(reported, "seen 20 young.exe");
    CHECK_CONTAINS(reported, "exit 28 ending.exe");
    ew_etw_list_sync_free(sync);
    ew_tally_free(tally);
}

/* ---------------------------------------------------------------- through a monitor */

struct seen {
    uint64_t cpu_ns, rss_bytes;
    uint32_t samples, starts;
};

static void on_samples(void *ctx, const struct etwatch_samples *batch)
{
    struct seen *seen = ctx;
    for (size_t i = 0; i < batch->count; i++) {
        const struct etwatch_sample *sample = etwatch_sample_at(batch, i);
        if (sample->pid != 500)
            continue;
        seen->starts += sample->type == ETWATCH_TYPE_START;
        seen->samples += sample->type == ETWATCH_TYPE_SAMPLE;
        if (etwatch_sample_has(sample, ETWATCH_M_cpu_ns))
            seen->cpu_ns += sample->cpu_ns;
        if (etwatch_sample_has(sample, ETWATCH_M_rss_bytes))
            seen->rss_bytes = sample->rss_bytes;
    }
}

TEST(a_process_with_a_lost_start_is_watched)
{
    struct machine *m = &machine;
    struct ew_winpoll_system system = system_of(m);
    struct seen seen = {0};
    memset(m, 0, sizeof *m);
    /* The threads that the emulator schedules on its first CPU. */
    struct row worker = {.pid = 500,
                         .name = "worker.exe",
                         .created = ZERO + 1,
                         .threads = 8,
                         .first_tid = 1000,
                         .user = 1,
                         .rss = 123456};
    RELIST(m, worker);
    struct etw_emulator *emulator =
        etw_emulator_new(&(struct etw_emulator_config){.cpu_count = 1,
                                                       .real_time = true,
                                                       .generate = 60000,
                                                       .rate_hz = 20000,
                                                       .lose_from = 10,
                                                       .lose_to = 20,
                                                       .processes = &system});
    struct ew_etw_config etw = {.api = etw_emulator_api(emulator), .flush_ms = 5};
    struct etwatch_config config = {.size = sizeof config,
                                    .flags = ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_NO_BUDGET,
                                    .hz = 20,
                                    .latency_ms = 50};
    struct etwatch_callbacks callbacks = {
        .size = sizeof callbacks, .ctx = &seen, .on_samples = on_samples};
    struct etwatch_monitor *monitor = NULL;
    CHECK_EQ_INT(etwatch_monitor_new(&config, &callbacks, &monitor, NULL), 0);
    monitor->etw = &etw;
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    while (!etw_emulator_done(emulator) && (seen.samples < 3 || seen.rss_bytes == 0)) {
        CHECK(etwatch_monitor_poll(monitor, 50, NULL) >= 0);
        worker.user++; /* it runs */
        RELIST(m, worker);
    }
    CHECK_EQ_INT(etwatch_monitor_stop(monitor), 0);
    CHECK_EQ_UINT(seen.starts, 1);
    CHECK(seen.samples >= 3);
    CHECK(seen.cpu_ns > 0);
    CHECK_EQ_UINT(seen.rss_bytes, 123456);
    etwatch_monitor_free(monitor);
    etw_emulator_free(emulator);
    CHECK_EQ_UINT(m->closed, 1);
}
