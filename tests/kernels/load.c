/* SPDX-License-Identifier: MIT */
/*
 * A load that knows what it did, for the guests of tests/kernels/run.
 *
 *   load             two busy threads, 32 MB touched, 1 MB written, 23 children; then one line of
 *                    JSON with the kernel's accounting of itself and of each child
 *   load spin S      keeps one CPU busy for S seconds
 *   load child N     executed by some of the children: burns a little, exits with N
 *   load send        copies its input to I/O port 0xe9, which the emulator writes to a file:
 * without a driver and without interrupts
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    THREADS = 2,
    THREAD_MS = 300,
    CHILDREN = 23, /* a prime: no batch size hides a lost child */
    CHILD_MS = 3,
    MEMORY_BYTES = 32 << 20,
    BLOCK_BYTES = 4096,
    BLOCKS = 256,
    SLEEPS = 20,
};

static uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void burn(clockid_t id, uint64_t ns)
{
    uint64_t end_ns = clock_ns(id) + ns;
    while (clock_ns(id) < end_ns) {
        for (volatile int i = 0; i < 1000; i++)
            continue;
    }
}

static void *burn_thread(void *arg)
{
    (void)arg;
    burn(CLOCK_THREAD_CPUTIME_ID, (uint64_t)THREAD_MS * 1000000u);
    return NULL;
}

static int touch_memory(void)
{
    char *memory =
        mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* Small pages, whatever the machine's default: the number of faults is then known. */
    if (memory == MAP_FAILED)
        return -1;
    (void)madvise(memory, MEMORY_BYTES, MADV_NOHUGEPAGE); /* fails where there are no huge pages */
    for (size_t at = 0; at < MEMORY_BYTES; at += 4096)
        memory[at] = 1;
    return munmap(memory, MEMORY_BYTES);
}

static int write_blocks(void)
{
    char block[BLOCK_BYTES];
    memset(block, 'x', sizeof block);
    int fd = open("/tmp/load.blocks", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    int result = 0;
    for (int i = 0; i < BLOCKS; i++) {
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block)
            result = -1;
    }
    close(fd);
    unlink("/tmp/load.blocks");
    return result;
}

/* Children exit in three ways: normally, after an exec, and by a signal. */
static _Noreturn void be_child(int number)
{
    char text[16];
    burn(CLOCK_PROCESS_CPUTIME_ID, (uint64_t)CHILD_MS * 1000000u);
    if (number % 3 == 1) {
        snprintf(text, sizeof text, "%d", number);
        execl("/bin/load", "load", "child", text, (char *)NULL);
        _exit(99);
    }
    if (number % 3 == 2)
        kill(getpid(), SIGKILL);
    _exit(number);
}

static int run_children(void)
{
    for (int i = 0; i < CHILDREN; i++) {
        pid_t pid = fork();
        int status = 0;
        struct rusage usage;
        if (pid == 0)
            be_child(i);
        if (pid < 0 || wait4(pid, &status, 0, &usage) != pid)
            return -1;
        long long cpu_us = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000LL +
                           usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
        printf("%s{\"pid\":%d,\"exit_code\":%d,\"exit_signal\":%d,\"cpu_ns\":%lld}",
               i == 0 ? "" : ",", (int)pid, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
               WIFSIGNALED(status) ? WTERMSIG(status) : 0, cpu_us * 1000);
    }
    return 0;
}

static int run_load(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, burn_thread, NULL) != 0)
            return 1;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < SLEEPS; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (touch_memory() != 0 || write_blocks() != 0)
        return 1;
    printf("{\"children\":[");
    if (run_children() != 0)
        return 1;
    printf("],\"pid\":%d,\"memory_bytes\":%d,\"written_bytes\":%d,\"writes\":%d,\"sleeps\":%d,",
           (int)getpid(), MEMORY_BYTES, BLOCKS * BLOCK_BYTES, BLOCKS, SLEEPS);
    printf("\"cpu_ns\":%llu}\n", (unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    return 0;
}

static int send_input(void)
{
    static char block[1 << 16];
    const unsigned short port = 0xe9;
    ssize_t got;
    if (ioperm(port, 1, 1) != 0)
        return 1;
    while ((got = read(STDIN_FILENO, block, sizeof block)) > 0)
        outsb(port, block, (unsigned long)got);
    return got < 0;
}

int main(int argc, char **argv)
{
    /* Children exit only by _exit or exec, so buffered output is written once. */
    static char buffer[1 << 16];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    if (argc == 3 && strcmp(argv[1], "spin") == 0) {
        burn(CLOCK_MONOTONIC, (uint64_t)strtoul(argv[2], NULL, 10) * 1000000000u);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "child") == 0) {
        burn(CLOCK_PROCESS_CPUTIME_ID, (uint64_t)CHILD_MS * 1000000u);
        _exit((int)strtol(argv[2], NULL, 10));
    }
    if (argc == 2 && strcmp(argv[1], "send") == 0)
        return send_input();
    return run_load();
}
