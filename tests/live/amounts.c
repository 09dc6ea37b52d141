/* SPDX-License-Identifier: MIT */
/*
 * A process that does a known amount of everything that is measured, keeps it that way for a while
 * in which it runs in short pieces, and tells what it did as one JSON object: the truth that the
 * live tests and `./dev accuracy` hold the figures against. It is a child; its parent tells what
 * wait4() says of it.
 *
 *   amounts [SECONDS]        (default 3)
 *   amounts stopped SECONDS  a child that is stopped for so long
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    DESCRIPTORS = 37,
    THREADS = 5,
    NICE = 5,
    IO_PRIORITY = 2 << 13 | 6, /* best effort, level 6 */
    NET_BYTES = 300000,
    FILE_BYTES = 200000,
    PAGES = 700,
};

static void fail(const char *what)
{
    fprintf(stderr, "amounts: %s: %s\n", what, strerror(errno));
    exit(77);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        fail("clock_gettime");
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void pause_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        continue;
}

static void *sit(void *arg)
{
    (void)arg;
    for (;;)
        pause_ms(3600000);
    return NULL;
}

static void set_up(void)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(0, &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus) != 0)
        fail("sched_setaffinity");
    if (setpriority(PRIO_PROCESS, 0, NICE) != 0)
        fail("setpriority");
    if (syscall(SYS_ioprio_set, 1, 0, (int)IO_PRIORITY) != 0)
        fail("ioprio_set");
    for (int i = 0; i < DESCRIPTORS; i++)
        if (open("/dev/null", O_RDONLY) < 0)
            fail("open");
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, sit, NULL) != 0)
            fail("pthread_create");
    }
}

/* Both ends are ours: so many bytes out, as many in. */
static void talk(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    static char block[1000];
    int listener = socket(AF_INET, SOCK_STREAM, 0), out = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || out < 0 || bind(listener, (void *)&address, len) != 0 ||
        listen(listener, 1) != 0 || getsockname(listener, (void *)&address, &len) != 0 ||
        connect(out, (void *)&address, len) != 0)
        fail("socket");
    int in = accept(listener, NULL, NULL);
    if (in < 0)
        fail("accept");
    for (size_t sent = 0; sent < NET_BYTES; sent += sizeof block) {
        if (send(out, block, sizeof block, 0) != (ssize_t)sizeof block)
            fail("send");
        for (size_t got = 0; got < sizeof block;) {
            ssize_t part = recv(in, block, sizeof block - got, 0);
            if (part <= 0)
                fail("recv");
            got += (size_t)part;
        }
    }
    (void)close(in);
    (void)close(out);
    (void)close(listener);
}

static void write_file(void)
{
    char path[] = "/tmp/amounts-XXXXXX";
    static char block[FILE_BYTES / 100];
    int fd = mkstemp(path);
    if (fd < 0)
        fail("mkstemp");
    (void)unlink(path);
    for (int i = 0; i < 100; i++)
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block)
            fail("write");
    (void)close(fd);
}

static void touch_pages(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = page * PAGES;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    (void)madvise(memory, size, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < PAGES; i++)
        memory[i * page] = 1;
}

/* Awake for a millisecond in fifty, so that whoever reads only who ran reads us. */
static void stay(long seconds)
{
    uint64_t until = clock_ns(CLOCK_MONOTONIC) + (uint64_t)seconds * 1000000000u;
    while (clock_ns(CLOCK_MONOTONIC) < until) {
        uint64_t busy = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + 1000000;
        while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < busy)
            continue;
        pause_ms(50);
    }
}

static long kilobytes(const char *name)
{
    char line[256];
    long value = -1;
    FILE *file = fopen("/proc/self/status", "re");
    if (file == NULL)
        fail("/proc/self/status");
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtol(line + strlen(name), NULL, 10);
    (void)fclose(file);
    return value;
}

static void tell(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        fail("getrusage");
    printf("{\"pid\":%d,\"handles\":%d,\"threads\":%d,\"priority\":%d,\"affinity\":1,"
           "\"io_priority\":%d,\"net_sent_bytes\":%d,\"net_received_bytes\":%d,"
           "\"io_write_bytes\":%d,\"cpu_ns\":%llu,\"faults_minor\":%ld,\"switches\":%ld,"
           "\"private_bytes\":%ld,\"virtual_bytes\":%ld,\"rss_bytes\":%ld}\n",
           (int)getpid(), DESCRIPTORS + 3, THREADS + 1, 20 + NICE, (int)IO_PRIORITY, (int)NET_BYTES,
           (int)NET_BYTES, (int)FILE_BYTES, (unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID),
           usage.ru_minflt, usage.ru_nvcsw + usage.ru_nivcsw, kilobytes("RssAnon:") * 1024,
           kilobytes("VmSize:") * 1024, kilobytes("VmRSS:") * 1024);
    (void)fflush(stdout);
}

static void stopped(long seconds)
{
    int status;
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child == 0) {
        (void)raise(SIGSTOP);
        _exit(0);
    }
    printf("{\"stopped\":%d}\n", (int)child);
    (void)fflush(stdout);
    pause_ms(seconds * 1000);
    if (kill(child, SIGCONT) != 0 || waitpid(child, &status, 0) != child)
        fail("kill");
}

/* What the kernel has on record for all of its life, the end included. */
static int wait_and_tell(pid_t child)
{
    struct rusage usage;
    int status;
    if (wait4(child, &status, 0, &usage) != child)
        fail("wait4");
    uint64_t us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
                  (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    printf("{\"ended\":%d,\"cpu_ns\":%llu,\"faults_minor\":%ld,\"switches\":%ld}\n", (int)child,
           (unsigned long long)us * 1000, usage.ru_minflt, usage.ru_nvcsw + usage.ru_nivcsw);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "stopped") == 0) {
        stopped(strtol(argv[2], NULL, 10));
        return 0;
    }
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child == 0) {
        set_up();
        touch_pages();
        talk();
        write_file();
        stay(argc > 1 ? strtol(argv[1], NULL, 10) : 3);
        tell();
        return 0;
    }
    return wait_and_tell(child);
}
