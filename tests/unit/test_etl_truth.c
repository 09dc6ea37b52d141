/* SPDX-License-Identifier: MIT */
/*
 * From the bytes of a recording to the work of every thread: a recording of a synthetic machine
 * with known results is written, read, decoded and added up; the sums must match to the nanosecond.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "decode/decode.h"
#include "etl_kit.h"
#include "scenario.h"
#include "source/etl/reader.h"
#include "tally/tally.h"
#include "test.h"

enum { START_RAW = 1000000, TICK_NS = 100, EVENTS = 12000 };

struct kind {
    const char *remark;
    struct etl_scenario_config what;
    bool compress;
};

static const struct kind kinds[] = {
    {"switches", {.classes = ETL_SWITCHES | ETL_READY | ETL_CHURN, .cpu_count = 4}, false},
    {"everything", {.classes = ETL_EVERYTHING, .cpu_count = 4}, false},
    {"everything, compressed", {.classes = ETL_EVERYTHING, .cpu_count = 8}, true},
    {"32 bit", {.classes = ETL_EVERYTHING, .cpu_count = 2, .pointer_size = 4}, false},
    {"Windows 7", {.classes = ETL_EVERYTHING, .cpu_count = 3, .windows7 = true}, false},
    {"one CPU", {.classes = ETL_EVERYTHING, .cpu_count = 1, .gap_ticks = 400}, false},
    {"32 CPUs", {.classes = ETL_EVERYTHING, .cpu_count = 32, .gap_ticks = 5}, true},
    {"chains", {.classes = ETL_EVERYTHING, .cpu_count = 8, .chains = true}, false},
};

struct check {
    const struct etl_truth *truth;
    uint64_t first_ns; /* START_RAW in the reader's clock */
    uint32_t found, found_processes;
};

static void make(const struct kind *kind, uint64_t seed, struct etl_memory *memory,
                 struct etl_truth *ret_truth)
{
    struct etl_scenario_config what = kind->what;
    struct ew_etl_writer_config config = {.cpu_count = what.cpu_count,
                                          .buffer_bytes = 16384,
                                          .pointer_size = what.pointer_size,
                                          .compress = kind->compress,
                                          .cpu_bytes = what.windows7,
                                          .start_raw = START_RAW,
                                          .ctx = memory,
                                          .write = etl_memory_write,
                                          .rewrite = etl_memory_rewrite};
    struct ew_etl_writer *writer;
    what.pointer_size = what.pointer_size ? what.pointer_size : 8;
    what.seed = seed;
    what.event_count = EVENTS;
    what.start_raw = START_RAW + 50;
    CHECK_EQ_INT(ew_etl_writer_new(&config, &writer), 0);
    CHECK_EQ_INT(etl_scenario_run(&what, writer, ret_truth), 0);
    CHECK_EQ_INT(ew_etl_writer_finish(writer, ret_truth->last_raw, 0, 0), 0);
    ew_etl_writer_free(writer);
}

static uint64_t raw_to_ns(void *ctx, const struct ew_record *record, uint64_t raw)
{
    return ew_etl_raw_to_ns(ctx, record, raw);
}

/* Everything in the recording, added up. */
static struct ew_tally *add_up(struct ew_etl_reader *reader)
{
    struct ew_tally_config config = {.threads = true,
                                     .clock_ctx = reader,
                                     .raw_to_ns = raw_to_ns,
                                     .working_set = ew_decode_working_set};
    struct ew_tally *tally;
    const struct ew_record *records;
    uint64_t last_ns = 0;
    CHECK_EQ_INT(ew_tally_new(&config, &tally), 0);
    for (int n; (n = ew_etl_next(reader, &records)) != 0;) {
        CHECK(n > 0);
        for (int i = 0; i < n; i++) {
            struct ew_event event;
            CHECK(ew_decode_event(&records[i], &event));
            CHECK(records[i].t_ns >= last_ns);
            last_ns = records[i].t_ns;
            if (event.kind != EW_EVENT_OTHER)
                CHECK_EQ_INT(ew_tally_event(tally, &records[i], &event, NULL), 0);
        }
    }
    ew_tally_finish(tally, last_ns, NULL);
    return tally;
}

static bool began_at(const struct check *c, const struct ew_total *x, uint64_t start_raw)
{
    if ((x->flags & EW_TOTAL_STARTED) == 0)
        return start_raw == 0;
    return start_raw != 0 && x->start_ns == (start_raw - START_RAW) * TICK_NS + c->first_ns;
}

static const struct etl_truth_thread *find_thread(const struct check *c, const struct ew_total *x)
{
    for (uint32_t i = 0; i < c->truth->thread_count; i++) {
        const struct etl_truth_thread *t = &c->truth->threads[i];
        if (t->tid == x->tid && t->pid == x->pid && began_at(c, x, t->start_raw))
            return t;
    }
    return NULL;
}

static const struct etl_truth_process *find_process(const struct check *c, const struct ew_total *x)
{
    for (uint32_t i = 0; i < c->truth->process_count; i++) {
        const struct etl_truth_process *p = &c->truth->processes[i];
        if (p->pid == x->pid && began_at(c, x, p->start_raw))
            return p;
    }
    return NULL;
}

static void check_process(struct check *c, const struct ew_total *x)
{
    const struct etl_truth_process *p = find_process(c, x);
    CHECK(p != NULL);
    CHECK_EQ_STR(x->name, p->name);
    CHECK_EQ_UINT(x->ppid, p->parent_pid);
    CHECK_EQ_UINT(x->session_id, p->session_id);
    CHECK_EQ_UINT(x->thread_count, p->thread_count);
    CHECK_EQ_UINT(x->counter[EW_C_net_sent_bytes], p->sent_bytes);
    CHECK_EQ_UINT(x->counter[EW_C_net_received_bytes], p->received_bytes);
    CHECK_EQ_INT((x->flags & EW_TOTAL_ENDED) != 0, p->end_raw != 0);
    if (p->end_raw)
        CHECK_EQ_INT(x->exit_status, p->exit_status);
    c->found_processes++;
}

static void check_counters(const struct ew_total *x, const struct etl_truth_thread *t)
{
    uint64_t net_ticks = t->cpu_ticks - t->interrupt_ticks;
    CHECK_EQ_UINT(x->counter[EW_C_cpu_ns], net_ticks * TICK_NS);
    CHECK_EQ_UINT(x->counter[EW_C_switches_voluntary], t->out_waiting);
    CHECK_EQ_UINT(x->counter[EW_C_switches_involuntary], t->out_ready);
    CHECK_EQ_UINT(x->counter[EW_C_runq_wait_ns], t->ready_ticks * TICK_NS);
    CHECK_EQ_UINT(x->counter[EW_C_faults_minor], t->faults);
    CHECK_EQ_UINT(x->counter[EW_C_faults_major], t->hard_faults);
    CHECK_EQ_UINT(x->counter[EW_C_disk_read_bytes], t->disk_read_bytes);
    CHECK_EQ_UINT(x->counter[EW_C_disk_write_bytes], t->disk_write_bytes);
}

static int on_total(void *ctx, const struct ew_total *x)
{
    struct check *c = ctx;
    /* Work of a process outside of any thread is reported under the process ID. */
    if ((x->flags & EW_TOTAL_IDLE) || x->pid == 0 || x->tid == x->pid)
        return 0;
    if (x->tid == 0) {
        check_process(c, x);
        return 0;
    }
    const struct etl_truth_thread *t = find_thread(c, x);
    CHECK(t != NULL);
    check_counters(x, t);
    c->found++;
    return 0;
}

TEST(the_work_of_every_thread_is_computed_from_the_bytes)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (uint64_t seed = 1; seed <= 3; seed++) {
            char row[64];
            snprintf(row, sizeof row, "%s, seed %d", kinds[i].remark, (int)seed);
            test_row(row);
            struct etl_memory memory = {0};
            struct etl_truth truth;
            struct ew_etl_reader *reader;
            struct ew_error error = {0};
            struct ew_tally_system system;
            make(&kinds[i], seed, &memory, &truth);
            CHECK_EQ_INT(ew_etl_open_memory(memory.bytes, memory.size, NULL, &reader, &error), 0);
            struct ew_tally *tally = add_up(reader);
            struct check check = {.truth = &truth};
            CHECK_EQ_INT(ew_tally_totals(tally, true, on_total, &check), 0);
            CHECK_EQ_UINT(check.found, truth.thread_count);
            CHECK_EQ_UINT(check.found_processes, truth.process_count);
            ew_tally_system(tally, &system);
            CHECK_EQ_UINT(system.switches, truth.switches);
            CHECK_EQ_UINT(system.dpc_ns, truth.dpc_ticks * TICK_NS);
            CHECK_EQ_UINT(system.isr_ns, truth.isr_ticks * TICK_NS);
            CHECK_EQ_UINT(system.inconsistent, 0);
            CHECK_EQ_UINT(system.busy_ns + system.idle_ns + system.dpc_ns + system.isr_ns,
                          (truth.busy_ticks + truth.idle_ticks) * TICK_NS);
            ew_tally_free(tally);
            ew_etl_close(reader);
            etl_truth_free(&truth);
            etl_memory_free(&memory);
        }
    }
}
