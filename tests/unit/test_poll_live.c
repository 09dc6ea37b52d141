/* SPDX-License-Identifier: MIT */
/*
 * The poll source on the real /proc, with children that know what they did: their CPU time by their
 * own clock, bytes and switches by counting. No assertion depends on how long anything takes.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"
#include "source/poll/poll.h"
#include "test.h"

enum { FACTS_MAX = 512 };

struct live {
    struct ew_source *source;
    struct ew_facts facts;
    struct ew_process_fact processes[FACTS_MAX];
    struct ew_reading readings[FACTS_MAX];
    int process_count, reading_count;
};

static void take_process(void *ctx, const struct ew_process_fact *fact)
{
    struct live *live = ctx;
    if (live->process_count < FACTS_MAX)
        live->processes[live->process_count++] = *fact;
}

static void take_reading(void *ctx, const struct ew_reading *reading)
{
    struct live *live = ctx;
    if (live->reading_count < FACTS_MAX)
        live->readings[live->reading_count++] = *reading;
}

static void take_loss(void *ctx, const struct etwatch_loss *loss)
{
    (void)ctx;
    (void)loss;
}

static struct live live;

static void live_open(uint32_t pid, bool threads)
{
    struct ew_source_config config = {.filter = {.pids = &pid, .pid_count = 1},
                                      .threads = threads,
                                      .max_processes = 1000,
                                      .proc_root = "/proc"};
    struct ew_error error;
    live.facts = (struct ew_facts){
        .ctx = &live, .process = take_process, .reading = take_reading, .loss = take_loss};
    CHECK_EQ_INT(ew_source_poll.open(&config, &live.source, &error), 0);
    if (!((struct ew_poll *)live.source)->files.own_ids) {
        ew_source_poll.close(live.source);
        SKIP("/proc is not that of this pid namespace");
    }
}

static uint64_t ahead_ns; /* monotonic time, for events that follow after seconds */

static void drain(void)
{
    uint64_t now_ns = ew_os_raw_ns() + ahead_ns, horizon_ns = 0;
    struct ew_error error;
    live.process_count = live.reading_count = 0;
    CHECK_EQ_INT(ew_source_poll.drain(live.source, now_ns, &live.facts, &horizon_ns, &error), 0);
    CHECK_EQ_UINT(horizon_ns, now_ns);
}

static const struct ew_process_fact *fact_of(pid_t pid, enum ew_process_kind kind)
{
    for (int i = 0; i < live.process_count; i++)
        if (live.processes[i].pid == (uint32_t)pid && live.processes[i].kind == kind)
            return &live.processes[i];
    return NULL;
}

/* The last reading of a process or of one of its threads. */
static const struct ew_reading *reading_of(pid_t pid, uint32_t tid)
{
    for (int i = live.reading_count; i-- > 0;)
        if (live.readings[i].pid == (uint32_t)pid && live.readings[i].tid == tid)
            return &live.readings[i];
    return NULL;
}

/* A child that does one step of its work per request and answers with a number. */
struct child {
    pid_t pid;
    int to, from;
};

static uint64_t own_cpu_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void burn(uint64_t ns)
{
    uint64_t until_ns = own_cpu_ns() + ns;
    while (own_cpu_ns() < until_ns)
        continue;
}

static struct child start_child(uint64_t (*work)(char step))
{
    int to[2], from[2];
    CHECK(pipe(to) == 0 && pipe(from) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        char step;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(to[1]);
        (void)close(from[0]);
        while (read(to[0], &step, 1) == 1) {
            uint64_t answer = work(step);
            if (write(from[1], &answer, sizeof answer) != (ssize_t)sizeof answer)
                break;
        }
        _exit(3);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    return (struct child){pid, to[1], from[0]};
}

static uint64_t request_step(struct child child, char step)
{
    uint64_t answer = 0;
    CHECK_EQ_INT(write(child.to, &step, 1), 1);
    CHECK_EQ_INT(read(child.from, &answer, sizeof answer), sizeof answer);
    return answer;
}

/* Waits until the child has exited but is not reaped. */
static void wait_for_exit(struct child child)
{
    siginfo_t info;
    (void)close(child.to);
    CHECK_EQ_INT(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT), 0);
    (void)close(child.from);
}

static void reap(struct child child)
{
    int status;
    CHECK_EQ_INT(waitpid(child.pid, &status, 0), child.pid);
}

static uint64_t burn_and_return_cpu(char step)
{
    burn(step == 'b' ? 20000000 : 0);
    return own_cpu_ns();
}

TEST(cpu_time_lies_between_the_childs_own_readings)
{
    struct child child = start_child(burn_and_return_cpu);
    live_open((uint32_t)child.pid, false);
    uint64_t before_ns = request_step(child, 'b');
    drain();
    const struct ew_process_fact *seen = fact_of(child.pid, EW_PROCESS_SEEN);
    CHECK(seen != NULL);
    uint64_t after_ns = request_step(child, 't');
    CHECK(seen->counter[EW_C_cpu_ns] >= before_ns);
    CHECK(seen->counter[EW_C_cpu_ns] <= after_ns);
    for (int i = 0; i < 5; i++) {
        before_ns = request_step(child, 'b');
        drain();
        const struct ew_reading *reading = reading_of(child.pid, 0);
        CHECK(reading != NULL);
        after_ns = request_step(child, 't');
        CHECK(reading->counter[EW_C_cpu_ns] >= before_ns);
        CHECK(reading->counter[EW_C_cpu_ns] <= after_ns);
    }
    wait_for_exit(child);
    drain();
    reap(child);
    ew_source_poll.close(live.source);
}

TEST(an_idle_child_is_not_reported_again)
{
    struct child child = start_child(burn_and_return_cpu);
    (void)request_step(child, 't');
    live_open((uint32_t)child.pid, false);
    drain();
    CHECK(fact_of(child.pid, EW_PROCESS_SEEN) != NULL);
    /* It may run a moment longer before it sleeps; after that no sample follows. */
    int reported = 0;
    for (int i = 0; i < 200; i++) {
        drain();
        reported += live.reading_count;
    }
    CHECK(reported <= 2);
    wait_for_exit(child);
    reap(child);
    ew_source_poll.close(live.source);
}

TEST(a_zombie_is_reported_with_its_status_and_final_counts)
{
    struct child child = start_child(burn_and_return_cpu);
    live_open((uint32_t)child.pid, false);
    drain();
    uint64_t cpu_ns = request_step(child, 'b');
    wait_for_exit(child);
    drain();
    const struct ew_process_fact *end = fact_of(child.pid, EW_PROCESS_EXIT);
    const struct ew_reading *reading = reading_of(child.pid, 0);
    CHECK(end != NULL && reading != NULL);
    CHECK(!reading->incomplete);
    CHECK(reading->counter[EW_C_cpu_ns] >= cpu_ns);
    if (end->has & EW_HAS_EXIT_STATUS) {
        CHECK_EQ_INT(end->exit_code, 3);
        CHECK_EQ_INT(end->exit_signal, 0);
    }
    struct rusage before, after;
    (void)getrusage(RUSAGE_CHILDREN, &before);
    reap(child);
    (void)getrusage(RUSAGE_CHILDREN, &after);
    /* The kernel's own record of the whole lifetime, for counters that do not depend on ticks. */
    CHECK_EQ_UINT(reading->counter[EW_C_faults_minor],
                  (uint64_t)(after.ru_minflt - before.ru_minflt));
    /* The final switch away from the CPU may happen after the reading. */
    uint64_t switches = (uint64_t)(after.ru_nvcsw - before.ru_nvcsw);
    CHECK(reading->counter[EW_C_switches_voluntary] <= switches);
    CHECK(reading->counter[EW_C_switches_voluntary] + 1 >= switches);
    drain();
    CHECK_EQ_INT(live.process_count, 0);
    ew_source_poll.close(live.source);
}

TEST(a_child_killed_and_reaped_between_rounds_ends_incomplete)
{
    struct child child = start_child(burn_and_return_cpu);
    live_open((uint32_t)child.pid, false);
    drain();
    CHECK_EQ_INT(kill(child.pid, SIGKILL), 0);
    reap(child);
    (void)close(child.to);
    (void)close(child.from);
    drain();
    const struct ew_process_fact *end = fact_of(child.pid, EW_PROCESS_EXIT);
    CHECK(end != NULL);
    CHECK_EQ_UINT(end->has & EW_HAS_EXIT_STATUS, 0);
    CHECK(reading_of(child.pid, 0)->incomplete);
    ew_source_poll.close(live.source);
}

static uint64_t write_to_null(char step)
{
    static char block[1000];
    int fd = open("/dev/null", O_WRONLY);
    for (int i = 0; i < 23 && step == 'w'; i++)
        (void)!write(fd, block, sizeof block);
    (void)close(fd);
    return 0;
}

TEST(io_is_counted_to_the_byte)
{
    struct child child = start_child(write_to_null);
    live_open((uint32_t)child.pid, false);
    (void)request_step(child, 't');
    drain();
    const struct ew_process_fact *seen = fact_of(child.pid, EW_PROCESS_SEEN);
    CHECK(seen != NULL);
    if (!(seen->counter_has & EW_HAS_C(io_write_bytes)))
        SKIP("no right to read /proc/PID/io");
    uint64_t bytes = seen->counter[EW_C_io_write_bytes], calls = seen->counter[EW_C_io_write_ops];
    (void)request_step(child, 'w');
    drain();
    const struct ew_reading *reading = reading_of(child.pid, 0);
    CHECK(reading != NULL);
    /* 23 blocks, and the answer of 8 bytes. */
    CHECK_EQ_UINT(reading->counter[EW_C_io_write_bytes] - bytes, 23 * 1000 + 8);
    CHECK_EQ_UINT(reading->counter[EW_C_io_write_ops] - calls, 23 + 1);
    wait_for_exit(child);
    reap(child);
    ew_source_poll.close(live.source);
}

static uint64_t fork_family(char step)
{
    static pid_t kid;
    if (step == 'f') {
        kid = fork();
        if (kid == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                (void)pause();
        }
    } else if (step == 'k' && kid > 0) {
        (void)kill(kid, SIGKILL);
        (void)waitpid(kid, NULL, 0);
    }
    return (uint64_t)kid;
}

TEST(children_of_a_watched_process_are_followed)
{
    struct child child = start_child(fork_family);
    live_open((uint32_t)child.pid, false);
    drain();
    for (int i = 0; i < 23; i++) {
        pid_t kid = (pid_t)request_step(child, 'f');
        drain();
        CHECK(fact_of(kid, EW_PROCESS_START) != NULL);
        CHECK_EQ_UINT(fact_of(kid, EW_PROCESS_START)->ppid, (uint32_t)child.pid);
        (void)request_step(child, 'k');
        drain();
        CHECK(fact_of(kid, EW_PROCESS_EXIT) != NULL);
    }
    wait_for_exit(child);
    reap(child);
    ew_source_poll.close(live.source);
}

static pthread_mutex_t hold = PTHREAD_MUTEX_INITIALIZER;

static void *burn_in_thread(void *arg)
{
    burn(10000000);
    *(uint64_t *)arg = ew_os_thread_cpu_ns();
    (void)pthread_mutex_lock(&hold);
    (void)pthread_mutex_unlock(&hold);
    return NULL;
}

static uint64_t run_threads(char step)
{
    static pthread_t threads[3];
    static volatile uint64_t burned_ns[3];
    if (step == 'f') {
        (void)pthread_mutex_lock(&hold);
        for (int i = 0; i < 3; i++)
            (void)pthread_create(&threads[i], NULL, burn_in_thread, (void *)&burned_ns[i]);
        for (int i = 0; i < 3; i++)
            while (burned_ns[i] == 0)
                (void)usleep(1000);
        return burned_ns[0] + burned_ns[1] + burned_ns[2];
    }
    (void)pthread_mutex_unlock(&hold);
    for (int i = 0; i < 3; i++)
        (void)pthread_join(threads[i], NULL);
    return own_cpu_ns();
}

TEST(threads_are_read_and_their_exit_is_reported)
{
    struct child child = start_child(run_threads);
    live_open((uint32_t)child.pid, true);
    drain();
    CHECK(fact_of(child.pid, EW_PROCESS_SEEN) != NULL);
    uint64_t burned_ns = request_step(child, 'f');
    drain();
    uint64_t sum_ns = 0;
    int count = 0, over = 0;
    for (int i = 0; i < live.reading_count; i++)
        if (live.readings[i].tid != 0 && live.readings[i].tid != (uint32_t)child.pid) {
            sum_ns += live.readings[i].counter[EW_C_cpu_ns];
            count++;
        }
    CHECK_EQ_INT(count, 3);
    CHECK(sum_ns >= burned_ns);
    CHECK_EQ_UINT(reading_of(child.pid, 0)->gauge[EW_G_threads], 4);
    CHECK(reading_of(child.pid, 0)->counter[EW_C_cpu_ns] >= burned_ns);
    uint64_t total_ns = request_step(child, 'j');
    drain();
    for (int i = 0; i < live.reading_count; i++)
        over += live.readings[i].kind == EW_READING_FINAL;
    CHECK_EQ_INT(over, 3);
    CHECK(reading_of(child.pid, 0)->counter[EW_C_cpu_ns] >= total_ns);
    wait_for_exit(child);
    reap(child);
    ew_source_poll.close(live.source);
}

TEST(with_few_descriptors_the_values_are_the_same)
{
    struct rlimit limit, small;
    CHECK_EQ_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
    small = limit;
    small.rlim_cur = 66; /* two may be kept open, a process has four */
    CHECK_EQ_INT(setrlimit(RLIMIT_NOFILE, &small), 0);
    struct child child = start_child(burn_and_return_cpu);
    live_open((uint32_t)child.pid, false);
    const struct ew_poll *poll = (const struct ew_poll *)live.source;
    for (int i = 0; i < 5; i++) {
        uint64_t before_ns = request_step(child, 'b');
        drain();
        CHECK(poll->files.kept_count <= 2);
        CHECK(i == 0 || reading_of(child.pid, 0)->counter[EW_C_cpu_ns] >= before_ns);
        CHECK(i == 0 || reading_of(child.pid, 0)->gauge_has & EW_HAS_G(rss_peak_bytes));
    }
    CHECK_EQ_UINT(poll->files.kept_count, 2);
    wait_for_exit(child);
    drain();
    CHECK_EQ_UINT(poll->files.kept_count, 0);
    reap(child);
    ew_source_poll.close(live.source);
    CHECK_EQ_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(the_files_of_a_busy_process_stay_open_until_it_is_idle)
{
    struct child child = start_child(burn_and_return_cpu);
    live_open((uint32_t)child.pid, false);
    const struct ew_poll *poll = (const struct ew_poll *)live.source;
    for (int i = 0; i < 4; i++) {
        (void)request_step(child, 'b');
        drain();
    }
    CHECK_EQ_UINT(poll->files.kept_count, EW_POLL_FILE_COUNT);
    /* It sleeps once its answer is written; from then on its clock stops. */
    do {
        drain();
        ahead_ns += UINT64_C(6000000000);
    } while (poll->files.kept_count > 0 && ahead_ns < UINT64_C(600000000000));
    CHECK_EQ_UINT(poll->files.kept_count, 0);
    ahead_ns = 0;
    wait_for_exit(child);
    reap(child);
    ew_source_poll.close(live.source);
}
