/* SPDX-License-Identifier: MIT */
/*
 * Programs that know when they ran and which thread woke them, for the live tests of alerts and
 * waits. They print what they did to standard output, one JSON object per line; times are those of
 * the raw clock.
 *
 *   relay spikes N MS MS    N bursts of MS of CPU time, each after a pause of MS
 *   relay pass N MS         N times a byte through two pipes: the first thread waits MS and
 *                           writes, the second passes it on to the third; prints their IDs
 *   relay borrow N MS       N times a child that borrows its parent's memory for MS (vfork); the
 * parent is blocked meanwhile: an uninterruptible wait, as for a disk
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 200 };

static void fail(const char *what)
{
    fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
    exit(1);
}

static long number(const char *text)
{
    char *end = NULL;
    long value = text == NULL ? 0 : strtol(text, &end, 10);
    if (text == NULL || *text == '\0' || *end != '\0' || value < 0) {
        fprintf(stderr, "relay: a number is needed, not %s\n", text == NULL ? "nothing" : text);
        exit(2);
    }
    return value;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0)
        fail("clock_gettime");
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void pause_ms(long ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

static uint64_t burn(long ms)
{
    uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), now_ns = begin_ns;
    while (now_ns - begin_ns < (uint64_t)ms * 1000000u)
        now_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return now_ns - begin_ns;
}

static void spikes(long count, long ms, long pause)
{
    /* between_ns: CPU time since the previous burst, for going to sleep and waking up. */
    static uint64_t from_ns[MOST], to_ns[MOST], cpu_ns[MOST], between_ns[MOST + 1];
    uint64_t used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (count > MOST)
        fail("too many");
    for (long i = 0; i < count; i++) {
        pause_ms(pause);
        from_ns[i] = clock_ns(CLOCK_BOOTTIME);
        between_ns[i] = clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns;
        cpu_ns[i] = burn(ms);
        to_ns[i] = clock_ns(CLOCK_BOOTTIME);
        used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    }
    pause_ms(pause);
    between_ns[count] = clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns;
    for (long i = 0; i < count; i++)
        printf("{\"spike\":%ld,\"pid\":%d,\"from_ns\":%llu,\"to_ns\":%llu,\"cpu_ns\":%llu,"
               "\"before_ns\":%llu,\"after_ns\":%llu}\n",
               i, (int)getpid(), (unsigned long long)from_ns[i], (unsigned long long)to_ns[i],
               (unsigned long long)cpu_ns[i], (unsigned long long)between_ns[i],
               (unsigned long long)between_ns[i + 1]);
}

static int first_pipe[2], second_pipe[2];
static int ids[3];

static void *pass_on(void *arg)
{
    long count = (long)(intptr_t)arg;
    char byte;
    ids[1] = (int)syscall(SYS_gettid);
    (void)prctl(PR_SET_NAME, "middle");
    for (long i = 0; i < count; i++)
        if (read(first_pipe[0], &byte, 1) != 1 || write(second_pipe[1], &byte, 1) != 1)
            fail("pass on");
    return NULL;
}

static void *take(void *arg)
{
    long count = (long)(intptr_t)arg;
    char byte;
    ids[2] = (int)syscall(SYS_gettid);
    (void)prctl(PR_SET_NAME, "last");
    for (long i = 0; i < count; i++)
        if (read(second_pipe[0], &byte, 1) != 1)
            fail("take");
    return NULL;
}

/* Each byte is written long after the other threads began to wait for it. */
static void pass(long count, long ms)
{
    pthread_t threads[2];
    ids[0] = (int)syscall(SYS_gettid);
    (void)prctl(PR_SET_NAME, "first");
    if (pipe(first_pipe) != 0 || pipe(second_pipe) != 0 ||
        pthread_create(&threads[0], NULL, pass_on, (void *)(intptr_t)count) != 0 ||
        pthread_create(&threads[1], NULL, take, (void *)(intptr_t)count) != 0)
        fail("pass");
    for (long i = 0; i < count; i++) {
        pause_ms(ms);
        if (write(first_pipe[1], "x", 1) != 1)
            fail("write");
    }
    (void)pthread_join(threads[0], NULL);
    (void)pthread_join(threads[1], NULL);
    printf("{\"pid\":%d,\"first\":%d,\"middle\":%d,\"last\":%d}\n", (int)getpid(), ids[0], ids[1],
           ids[2]);
}

/* The child also runs on its parent's stack, so it only sleeps. */
static __attribute__((noinline)) pid_t lend(const struct timespec *length)
{
    pid_t child = vfork();
    if (child == 0) {
        (void)nanosleep(length, NULL);
        _exit(0);
    }
    return child;
}

static void borrow(long count, long ms)
{
    struct timespec length = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    uint64_t waited_ns = 0, least_ns = UINT64_MAX;
    for (long i = 0; i < count; i++) {
        uint64_t begin_ns = clock_ns(CLOCK_BOOTTIME);
        pid_t child = lend(&length);
        if (child < 0)
            fail("vfork");
        uint64_t ns = clock_ns(CLOCK_BOOTTIME) - begin_ns;
        waited_ns += ns;
        least_ns = ns < least_ns ? ns : least_ns;
        (void)waitpid(child, NULL, 0);
    }
    printf("{\"pid\":%d,\"waited_ns\":%llu,\"least_ns\":%llu}\n", (int)getpid(),
           (unsigned long long)waited_ns, (unsigned long long)least_ns);
}

int main(int argc, char **argv)
{
    struct sched_param high = {.sched_priority = 10};
    /* Nothing interrupts a burst where the machine allows real-time priority. */
    (void)sched_setscheduler(0, SCHED_FIFO, &high);
    if (argc == 5 && strcmp(argv[1], "spikes") == 0)
        spikes(number(argv[2]), number(argv[3]), number(argv[4]));
    else if (argc == 4 && strcmp(argv[1], "pass") == 0)
        pass(number(argv[2]), number(argv[3]));
    else if (argc == 4 && strcmp(argv[1], "borrow") == 0)
        borrow(number(argv[2]), number(argv[3]));
    else
        return 2;
    return 0;
}
