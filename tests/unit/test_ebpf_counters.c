/* SPDX-License-Identifier: MIT */
/*
 * Hardware counters, testable on machines without them: the kernel's CPU clock event replaces them,
 * so that the path from the per-CPU event to the reading of a thread is the same. It counts
 * nanoseconds, which can be compared with the scheduler's accounting.
 */
#include <time.h>
#include <unistd.h>

#include "model/metric.h"
#include "os/os.h"
#include "source/source.h"
#include "test.h"

static struct {
    uint64_t first[2], last[2]; /* cycles, cpu_ns */
    uint32_t count;
} seen;

static void take_process(void *ctx, const struct ew_process_fact *fact)
{
    (void)ctx;
    (void)fact;
}

/*
 * Readings at switches only: counts of a thread that is on a CPU are added when it is switched out.
 */
static void take_reading(void *ctx, const struct ew_reading *reading)
{
    (void)ctx;
    if (reading->tid != (uint32_t)getpid() || (reading->counter_has & EW_HAS_C(cycles)) == 0 ||
        reading->kind != EW_READING_OPEN)
        return;
    uint64_t values[2] = {reading->counter[EW_C_cycles], reading->counter[EW_C_cpu_ns]};
    for (int i = 0; i < 2; i++) {
        if (seen.count == 0)
            seen.first[i] = values[i];
        seen.last[i] = values[i];
    }
    seen.count++;
}

static void take_loss(void *ctx, const struct etwatch_loss *loss)
{
    (void)ctx;
    (void)loss;
}

static void all_seen(void *ctx, uint64_t since_ns)
{
    (void)ctx;
    (void)since_ns;
}

static void burn_ms(long ms)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    long long until = t.tv_sec * 1000000000LL + t.tv_nsec + ms * 1000000LL;
    do
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    while (t.tv_sec * 1000000000LL + t.tv_nsec < until);
}

TEST(a_thread_is_charged_what_was_counted_while_it_ran)
{
    uint32_t pid = (uint32_t)getpid();
    uint64_t epoch_ns = ew_os_raw_ns(), horizon_ns = 0;
    struct ew_source_config config = {.filter = {.pids = &pid, .pid_count = 1},
                                      .max_processes = 100,
                                      .max_threads = 1000,
                                      .proc_root = "/proc",
                                      .epoch_ns = epoch_ns,
                                      .interval_ns = 10000000,
                                      .sample_ns = 10000000,
                                      .software_counters = true,
                                      .metrics = EW_METRIC_SET(ETWATCH_M_cpu_ns, ETWATCH_M_cycles)};
    struct ew_facts facts = {
        .process = take_process, .reading = take_reading, .loss = take_loss, .all_seen = all_seen};
    struct ew_source *source = NULL;
    struct ew_error error;
    const struct ew_source_ops *ops = ew_source_native();
    if (ops->open(&config, &source, &error) != 0)
        SKIP("eBPF cannot be used here");
    if (!etwatch_metric_set_has(&source->ops->available, ETWATCH_M_cycles)) {
        source->ops->close(source);
        SKIP("perf_event_open is refused");
    }
    for (int i = 0; i < 20; i++) {
        burn_ms(5);
        (void)nanosleep(&(struct timespec){.tv_nsec = 15000000}, NULL);
        CHECK_EQ_INT(source->ops->drain(source, ew_os_raw_ns(), &facts, &horizon_ns, &error), 0);
    }
    source->ops->close(source);
    CHECK(seen.count > 5);
    double counted = (double)(seen.last[0] - seen.first[0]);
    double used = (double)(seen.last[1] - seen.first[1]);
    /* The clock also runs during interrupts and while the hypervisor runs other guests. */
    CHECK(used > 20e6 && counted > 0.9 * used && counted < 10 * used);
}
