/* SPDX-License-Identifier: MIT */
/*
 * The library at its documented limits: more processes or threads than the tables hold; and
 * processes that the caller adds and removes while it runs.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "monitor_kit.h"

static pid_t start_busy(void)
{
    return (pid_t)test_start_busy();
}

static void end_child(pid_t pid)
{
    test_end_child((uint32_t)pid);
}

enum { TABLE = 40, CROWD = 100, KEPT_MAX = 4096 };

/* The delivered objects, as far as the tests need them. */
struct story {
    struct etwatch_sample kept[KEPT_MAX];
    size_t count;
    size_t starts, exits; /* all, also those that are not kept */
    uint64_t lost_table;
};
static struct story story;

static void on_samples(void *ctx, const struct etwatch_samples *batch)
{
    struct story *to = ctx;
    for (size_t i = 0; i < batch->count; i++) {
        const struct etwatch_sample *sample = etwatch_sample_at(batch, i);
        to->starts += sample->type == ETWATCH_TYPE_START;
        to->exits += sample->type == ETWATCH_TYPE_EXIT;
        if (to->count < KEPT_MAX)
            to->kept[to->count++] = *sample;
    }
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct story *to = ctx;
    if (loss->stage == ETWATCH_LOSS_TABLE)
        to->lost_table += loss->count;
}

static const struct etwatch_callbacks listening = {
    .size = sizeof listening, .ctx = &story, .on_samples = on_samples, .on_loss = on_loss};

static struct etwatch_config listening_config(uint32_t source)
{
    struct etwatch_config config = config_for(source);
    memset(&story, 0, sizeof story);
    return config;
}

static size_t count_of(uint32_t type, pid_t pid)
{
    size_t count = 0;
    for (size_t i = 0; i < story.count; i++)
        count += story.kept[i].type == type && (pid == 0 || story.kept[i].pid == (uint32_t)pid);
    return count;
}

static struct etwatch_stats stats_of(struct etwatch_monitor *monitor)
{
    struct etwatch_stats stats = {.size = sizeof stats};
    CHECK_EQ_INT(etwatch_monitor_stats(monitor, &stats), 0);
    return stats;
}

/* Polls the monitor for this long. */
static void poll_for(struct etwatch_monitor *monitor, int ms)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t end_ms = now.tv_sec * 1000 + now.tv_nsec / 1000000 + ms;
    do {
        struct etwatch_error_info error = {.size = sizeof error};
        int rc = etwatch_monitor_poll(monitor, 20, &error);
        if (rc < 0)
            printf("# %s\n", error.message);
        CHECK(rc >= 0);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < end_ms);
}

/* Polls until a START or EXIT of the process is delivered; false after ten seconds. */
static int poll_until(struct etwatch_monitor *monitor, uint32_t type, pid_t pid)
{
    for (int i = 0; i < 500 && count_of(type, pid) == 0; i++)
        poll_for(monitor, 20);
    return count_of(type, pid) > 0;
}

/* Polls until the table of processes is empty; false after ten seconds. An exit waits up to two
 * seconds for the last readings of its threads, also behind the exit of a later process. */
static int poll_until_empty(struct etwatch_monitor *monitor)
{
    for (int i = 0; i < 500 && stats_of(monitor).processes > 0; i++)
        poll_for(monitor, 20);
    return stats_of(monitor).processes == 0;
}

/*
 * Many children of one process: it signals its parent when they exist, and exits when the pipe is
 * closed.
 */
static pid_t start_crowd(int count, int *ret_fd)
{
    int ready[2], end[2];
    char byte;
    CHECK(pipe(ready) == 0 && pipe(end) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        close(end[1]);
        (void)!read(end[0], &byte, 1); /* until it is watched */
        for (int i = 0; i < count; i++) {
            if (fork() == 0) {
                (void)!read(end[0], &byte, 1);
                _exit(0);
            }
        }
        (void)!write(ready[1], "r", 1);
        while (wait(NULL) > 0)
            continue;
        _exit(0);
    }
    close(end[0]);
    close(ready[1]);
    ret_fd[0] = ready[0];
    ret_fd[1] = end[1];
    return pid;
}

static void more_processes_than_the_table_holds(uint32_t source, int all)
{
    struct etwatch_config config = listening_config(source);
    int fd[2];
    char byte;
    pid_t head = start_crowd(CROWD, fd);
    uint32_t pid = (uint32_t)head;
    config.max_processes = TABLE;
    config.pids = &pid;
    config.pid_count = 1;
    config.flags |= all ? (uint32_t)ETWATCH_CONFIG_ALL : 0;
    struct etwatch_monitor *monitor = new_monitor(&config, &listening);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    poll_for(monitor, 50);
    CHECK(write(fd[1], "g", 1) == 1);
    CHECK(read(fd[0], &byte, 1) == 1);
    poll_for(monitor, 300);
    struct etwatch_stats stats = stats_of(monitor);
    CHECK(stats.processes <= TABLE);
    CHECK(story.lost_table > 0);
    CHECK_EQ_UINT(stats.lost, story.lost_table);
    CHECK(all || story.starts <= TABLE);

    /* There is room again: new processes are reported. */
    close(fd[1]);
    waitpid(head, NULL, 0);
    close(fd[0]);
    if (!all) {
        poll_for(monitor, 300);
        pid_t busy = start_busy();
        CHECK_EQ_INT(etwatch_monitor_add(monitor, (uint32_t)busy), 0);
        int seen = poll_until(monitor, ETWATCH_TYPE_START, busy);
        end_child(busy);
        CHECK(seen);
        CHECK(poll_until(monitor, ETWATCH_TYPE_EXIT, busy));
        CHECK(poll_until_empty(monitor));
    }
    etwatch_monitor_free(monitor);
}

TEST(a_full_process_table_is_a_counted_loss_that_can_end)
{
    for (int i = 0; i < SOURCE_COUNT; i++)
        if (can_open(sources[i]))
            more_processes_than_the_table_holds(sources[i], 0);
}

TEST(a_full_table_keeps_its_limit_when_everything_is_watched)
{
    for (int i = 0; i < SOURCE_COUNT; i++)
        if (can_open(sources[i]))
            more_processes_than_the_table_holds(sources[i], 1);
}

enum {
    KIB = 1024,
    MEMORY_MIN = 16 * KIB,
    MEMORY_MAX = 64 * 1024 * KIB,
    MORE_MEMORY = 128 * KIB,
    MANY = 600,
};

/* The smallest power of two with which a monitor opens. Each smaller one fails and says why. */
static uint64_t find_least_memory(struct etwatch_config *config)
{
    int rc = ETWATCH_ELIMIT, refused = 0;
    uint64_t bytes = MEMORY_MIN;
    for (; rc != 0 && bytes <= MEMORY_MAX; bytes *= 2) {
        struct etwatch_monitor *monitor = NULL;
        struct etwatch_error_info error = {.size = sizeof error};
        config->max_memory_bytes = bytes;
        CHECK_EQ_INT(etwatch_monitor_new(config, NULL, &monitor, NULL), 0);
        rc = etwatch_monitor_open(monitor, &error);
        etwatch_monitor_free(monitor);
        if (rc == 0)
            break;
        refused++;
        CHECK_EQ_INT(rc, ETWATCH_ELIMIT);
        CHECK_CONTAINS(error.message, "more memory is needed than the limit of ");
        CHECK_CONTAINS(error.fix, "--max-memory");
    }
    CHECK_EQ_INT(rc, 0);
    CHECK(refused > 0);
    return bytes;
}

static void more_processes_than_the_memory_holds(uint32_t source)
{
    struct etwatch_config config = listening_config(source);
    int fd[2];
    char byte;
    pid_t head = start_crowd(MANY, fd);
    uint32_t pid = (uint32_t)head;
    config.pids = &pid;
    config.pid_count = 1;
    config.max_memory_bytes = find_least_memory(&config) + MORE_MEMORY;
    struct etwatch_monitor *monitor = new_monitor(&config, &listening);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    poll_for(monitor, 50);
    CHECK(write(fd[1], "g", 1) == 1);
    CHECK(read(fd[0], &byte, 1) == 1);
    for (int i = 0; i < 500 && story.lost_table == 0; i++)
        poll_for(monitor, 20);
    poll_for(monitor, 300);
    struct etwatch_stats stats = stats_of(monitor);
    CHECK(stats.processes > 0);
    CHECK(stats.processes + stats.threads < 2u * MANY); /* each process has a thread */
    CHECK(story.lost_table > 0);

    /* All exits at once need memory too: the monitor goes on without it. */
    close(fd[1]);
    waitpid(head, NULL, 0);
    close(fd[0]);
    CHECK(poll_until_empty(monitor));
    CHECK(story.exits > 0);
    CHECK_EQ_UINT(story.exits, story.starts);
    etwatch_monitor_free(monitor);
}

TEST(a_monitor_at_its_memory_limit_counts_what_it_drops_and_goes_on)
{
    for (int i = 0; i < SOURCE_COUNT; i++)
        if (can_open(sources[i]))
            more_processes_than_the_memory_holds(sources[i]);
}

static pthread_barrier_t there;

static void *spin(void *arg)
{
    atomic_int *stop = arg;
    pthread_barrier_wait(&there);
    while (!atomic_load(stop))
        test_sleep_ms(1);
    return NULL;
}

TEST(the_process_is_correct_with_more_threads_than_the_table_holds)
{
    enum { THREADS = 60 };
    pthread_t threads[THREADS];
    atomic_int stop = 0;
    if (!can_open(ETWATCH_SOURCE_EBPF))
        SKIP("polling does not count by thread");
    struct etwatch_config config = listening_config(ETWATCH_SOURCE_EBPF);
    uint32_t pid = test_own_pid();
    config.pids = &pid;
    config.pid_count = 1;
    config.max_threads = THREADS / 2;
    struct etwatch_monitor *monitor = new_monitor(&config, &listening);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    CHECK_EQ_INT(pthread_barrier_init(&there, NULL, THREADS + 1), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ_INT(pthread_create(&threads[i], NULL, spin, &stop), 0);
    pthread_barrier_wait(&there);
    poll_for(monitor, 300);
    struct etwatch_stats stats = stats_of(monitor);
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&there);
    CHECK(stats.threads <= THREADS / 2);
    CHECK(story.lost_table > 0);
    /* CPU time of threads that are not in the table is missing, and marked as missing. */
    int marked = 0;
    for (size_t i = 0; i < story.count; i++)
        marked |= story.kept[i].type == ETWATCH_TYPE_SAMPLE &&
                  (story.kept[i].flags & ETWATCH_SAMPLE_COMPLETE) == 0;
    CHECK(marked);
    etwatch_monitor_free(monitor);
}

/*
 * One busy thread cannot use more than its interval. Polling sees CPU time a tick late, and for a
 * thread that runs when watching begins only the CPU time up to the last tick is known.
 */
static void check_no_lumps(pid_t pid)
{
    enum { TICK_NS = 10000000, SLACK_NS = 500000 };
    int first = 0;
    for (size_t i = 0; i < story.count; i++) {
        const struct etwatch_sample *sample = &story.kept[i];
        if (sample->pid != (uint32_t)pid)
            continue;
        uint64_t slack_ns = first ? TICK_NS : SLACK_NS;
        if (sample->type == ETWATCH_TYPE_SAMPLE && sample->source == ETWATCH_SOURCE_EBPF &&
            (etwatch_sample_has(sample, ETWATCH_M_cpu_ns)))
            CHECK(sample->cpu_ns <= sample->dt_ns + slack_ns);
        first = sample->type == ETWATCH_TYPE_START;
    }
}

TEST(an_added_process_is_reported_and_the_others_are_not_disturbed)
{
    for (int i = 0; i < SOURCE_COUNT; i++) {
        if (!can_open(sources[i]))
            continue;
        struct etwatch_config config = listening_config(sources[i]);
        pid_t first = start_busy(), second = start_busy();
        uint32_t pid = (uint32_t)first;
        config.pids = &pid;
        config.pid_count = 1;
        config.latency_ms = 100;
        struct etwatch_monitor *monitor = new_monitor(&config, &listening);
        int rc = etwatch_monitor_open(monitor, NULL);
        poll_for(monitor, 250);
        size_t before = count_of(ETWATCH_TYPE_START, second);
        int added = etwatch_monitor_add(monitor, (uint32_t)second);
        int seen = poll_until(monitor, ETWATCH_TYPE_SAMPLE, second);
        /* Adding it twice makes no difference. */
        int again = etwatch_monitor_add(monitor, (uint32_t)second);
        poll_for(monitor, 250);
        end_child(second);
        int ended = poll_until(monitor, ETWATCH_TYPE_EXIT, second);
        end_child(first);
        etwatch_monitor_free(monitor);
        CHECK_EQ_INT(rc, 0);
        CHECK_EQ_UINT(before, 0);
        CHECK(added == 0 && again == 0 && seen && ended);
        CHECK_EQ_UINT(count_of(ETWATCH_TYPE_START, first), 1);
        CHECK_EQ_UINT(count_of(ETWATCH_TYPE_START, second), 1);
        check_no_lumps(first);
        check_no_lumps(second);
    }
}

TEST(a_removed_process_is_not_reported_and_can_be_added_again)
{
    for (int i = 0; i < SOURCE_COUNT; i++) {
        if (!can_open(sources[i]))
            continue;
        struct etwatch_config config = listening_config(sources[i]);
        pid_t busy = start_busy();
        uint32_t pid = (uint32_t)busy;
        config.pids = &pid;
        config.pid_count = 1;
        struct etwatch_monitor *monitor = new_monitor(&config, &listening);
        int rc = etwatch_monitor_open(monitor, NULL);
        int seen = poll_until(monitor, ETWATCH_TYPE_SAMPLE, busy);
        int removed = etwatch_monitor_remove(monitor, pid);
        poll_for(monitor, 150); /* the work done so far is delivered */
        size_t samples = count_of(ETWATCH_TYPE_SAMPLE, busy);
        poll_for(monitor, 300);
        size_t later = count_of(ETWATCH_TYPE_SAMPLE, busy),
               exits = count_of(ETWATCH_TYPE_EXIT, busy);
        int unknown = etwatch_monitor_remove(monitor, pid);
        int added = etwatch_monitor_add(monitor, pid);
        for (int wait = 0; wait < 500 && count_of(ETWATCH_TYPE_SAMPLE, busy) == later; wait++)
            poll_for(monitor, 20);
        poll_for(monitor, 300);
        size_t back = count_of(ETWATCH_TYPE_SAMPLE, busy);
        end_child(busy);
        int ended = poll_until(monitor, ETWATCH_TYPE_EXIT, busy);
        etwatch_monitor_free(monitor);
        CHECK(rc == 0 && seen && removed == 0 && added == 0);
        CHECK_EQ_UINT(later, samples);
        CHECK_EQ_UINT(exits, 0);
        CHECK_EQ_INT(unknown, ETWATCH_ENOENT);
        CHECK(back > later);
        CHECK(ended);
        CHECK_EQ_UINT(count_of(ETWATCH_TYPE_START, busy), 2);
        check_no_lumps(busy);
    }
}
