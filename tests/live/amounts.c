/* SPDX-License-Identifier: MIT */
/*
 * A process that does a known amount of everything that is measured and prints what it did as JSON
 * objects: the reference for the live tests and `./dev accuracy`. It is a child; its parent prints
 * the kernel's record of it, read after the child has left the CPU for the last time and before it
 * is reaped: earlier its last steps are missing from the record.
 *
 *   amounts [SECONDS]        gauges (threads, descriptors, memory, priorities)
 *                            held for SECONDS (default 3), and network bytes
 *   amounts counts           counters: one thread, so that the record covers everything
 *   amounts states MS        threads that wait and one that runs for MS; then stopped for MS
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
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
    BURN_MS = 200, /* in user mode and in the kernel */
    NAPS = 40,
    DISK_BYTES = 1 << 20,
    HARD_PAGES = 64,
    WAITING = 3,
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

/* Both ends belong to this process: equal numbers of bytes sent and received. */
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

/*
 * Runs for one millisecond in fifty, so that sources that read only processes that ran read this
 * one.
 */
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

static void print_gauges(void)
{
    printf("{\"pid\":%d,\"handles\":%d,\"threads\":%d,\"priority\":%d,\"affinity\":1,"
           "\"io_priority\":%d,\"net_sent_bytes\":%d,\"net_received_bytes\":%d,"
           "\"written\":%d,"
           "\"private_bytes\":%ld,\"virtual_bytes\":%ld,\"rss_bytes\":%ld}\n",
           (int)getpid(), DESCRIPTORS + 3, THREADS + 1, 20 + NICE, (int)IO_PRIORITY, (int)NET_BYTES,
           (int)NET_BYTES, (int)FILE_BYTES, kilobytes("RssAnon:") * 1024,
           kilobytes("VmSize:") * 1024, kilobytes("VmRSS:") * 1024);
    (void)fflush(stdout);
}

/* ------------------------------------------------------------------------- counters */

static void burn_user(long ms)
{
    volatile unsigned sum = 0;
    uint64_t until = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + (uint64_t)ms * 1000000;
    while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
        for (unsigned i = 0; i < 200000; i++)
            sum += i;
}

static void burn_kernel(long ms)
{
    static char block[1 << 20];
    int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    uint64_t until = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + (uint64_t)ms * 1000000;
    while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
        if (read(fd, block, sizeof block) != (ssize_t)sizeof block)
            fail("/dev/zero");
    (void)close(fd);
}

/*
 * A file on a disk, not in memory; -1 if there is none. Its blocks are allocated, its pages are not
 * cached.
 */
static int make_file(void)
{
    static const char *const folders[] = {"/tmp", "/var/tmp", "."};
    static char block[DISK_BYTES];
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "%s/amounts-XXXXXX", folders[i]);
        int fd = mkstemp(path), direct = -1;
        if (fd < 0)
            continue;
        if (write(fd, block, sizeof block) == (ssize_t)sizeof block && fsync(fd) == 0 &&
            posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0)
            direct = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
        (void)unlink(path);
        (void)close(fd);
        if (direct >= 0)
            return direct;
    }
    return -1;
}

/*
 * Reads each page separately, from the disk and not from read-ahead. Then reads and writes all of
 * it.
 */
static void use_disk(int fd)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, HARD_PAGES * page, PROT_READ, MAP_SHARED, fd, 0);
    void *block = NULL;
    volatile char sum = 0;
    if (pages == MAP_FAILED || madvise(pages, HARD_PAGES * page, MADV_RANDOM) != 0)
        fail("mmap");
    for (size_t i = 0; i < HARD_PAGES; i++)
        sum = (char)(sum + pages[i * page]);
    (void)munmap(pages, HARD_PAGES * page);
    if (posix_memalign(&block, page, DISK_BYTES) != 0)
        fail("posix_memalign");
    memset(block, 1, DISK_BYTES);
    if (pread(fd, block, DISK_BYTES, 0) != DISK_BYTES ||
        pwrite(fd, block, DISK_BYTES, 0) != DISK_BYTES)
        fail("O_DIRECT");
    free(block);
}

static void count(int disk)
{
    touch_pages();
    if (disk >= 0)
        use_disk(disk);
    else
        write_file();
    for (int i = 0; i < NAPS; i++)
        pause_ms(1);
    burn_user(BURN_MS);
    burn_kernel(BURN_MS);
    long page = sysconf(_SC_PAGESIZE);
    printf("{\"counted\":%d,\"cpu_user_ns\":%d,\"cpu_kernel_ns\":%d,\"naps\":%d,\"pages\":%d,"
           "\"written\":%d",
           (int)getpid(), BURN_MS * 1000000, BURN_MS * 1000000, (int)NAPS, (int)PAGES,
           disk >= 0 ? (int)DISK_BYTES : (int)FILE_BYTES);
    if (disk >= 0)
        printf(",\"faults_major\":%d,\"disk_read_bytes\":%ld,\"disk_write_bytes\":%d",
               (int)HARD_PAGES, DISK_BYTES + HARD_PAGES * page, (int)DISK_BYTES);
    printf("}\n");
    (void)fflush(stdout);
    pause_ms(400); /* polling sees all of the above */
}

/* -------------------------------------------------------------------------------- states */

static void *spin(void *arg)
{
    for (volatile int *over = arg; !*over;)
        continue;
    return NULL;
}

static void states(long ms)
{
    static volatile int over;
    int status;
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child == 0) {
        pthread_t thread;
        for (int i = 0; i < WAITING; i++)
            if (pthread_create(&thread, NULL, sit, NULL) != 0)
                fail("pthread_create");
        if (pthread_create(&thread, NULL, spin, (void *)&over) != 0)
            fail("pthread_create");
        pause_ms(3600000);
        _exit(0);
    }
    printf("{\"states\":%d,\"threads\":%d,\"active\":1,\"waiting\":%d}\n", (int)child, WAITING + 2,
           WAITING + 1);
    (void)fflush(stdout);
    pause_ms(ms);
    if (kill(child, SIGSTOP) != 0)
        fail("kill");
    pause_ms(ms);
    if (kill(child, SIGKILL) != 0 || waitpid(child, &status, 0) != child)
        fail("kill");
}

/* ---------------------------------------------------------------------------- the record */

/* The number after a label in a file of /proc; -1 if it is missing. */
static long long of_proc(pid_t pid, const char *name, const char *word)
{
    char path[64], text[4096];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -1;
    size_t len = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[len] = '\0';
    const char *at = *word == '\0' ? strchr(text, ' ') : strstr(text, word);
    return at == NULL ? -1 : strtoll(at + strlen(word), NULL, 10);
}

static void print_proc(pid_t pid, const char *name, const char *word, const char *as)
{
    long long value = of_proc(pid, name, word);
    if (value >= 0)
        printf(",\"%s\":%lld", as, value);
}

static uint64_t of_timeval(struct timeval time)
{
    return ((uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_usec) * 1000u;
}

/* The kernel's record of the whole lifetime, including the exit. */
static int wait_and_print(pid_t child)
{
    struct rusage usage;
    siginfo_t info;
    int status;
    if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) != 0)
        fail("waitid");
    pause_ms(50);
    printf("{\"ended\":%d", (int)child);
    print_proc(child, "schedstat", "", "runq_wait_ns");
    print_proc(child, "io", "rchar: ", "io_read_bytes");
    print_proc(child, "io", "wchar: ", "io_write_bytes");
    print_proc(child, "io", "syscr: ", "io_read_ops");
    print_proc(child, "io", "syscw: ", "io_write_ops");
    print_proc(child, "io", "\nread_bytes: ", "disk_read_bytes");
    print_proc(child, "io", "\nwrite_bytes: ", "disk_write_bytes");
    if (wait4(child, &status, 0, &usage) != child)
        fail("wait4");
    uint64_t user_ns = of_timeval(usage.ru_utime), kernel_ns = of_timeval(usage.ru_stime);
    printf(",\"cpu_ns\":%llu,\"cpu_user_ns\":%llu,\"cpu_kernel_ns\":%llu,\"faults_minor\":%ld,"
           "\"faults_major\":%ld,\"switches_voluntary\":%ld,\"switches_involuntary\":%ld,"
           "\"rss_peak_bytes\":%ld}\n",
           (unsigned long long)(user_ns + kernel_ns), (unsigned long long)user_ns,
           (unsigned long long)kernel_ns, usage.ru_minflt, usage.ru_majflt, usage.ru_nvcsw,
           usage.ru_nivcsw, usage.ru_maxrss * 1024);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    bool counts = strcmp(what, "counts") == 0;
    if (strcmp(what, "states") == 0) {
        states(argc > 2 ? strtol(argv[2], NULL, 10) : 0);
        return 0;
    }
    int disk = counts ? make_file() : -1;
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child == 0 && counts) {
        count(disk);
        return 0;
    }
    if (child == 0) {
        set_up();
        touch_pages();
        talk();
        write_file();
        stay(argc > 1 ? strtol(what, NULL, 10) : 3);
        print_gauges();
        return 0;
    }
    return wait_and_print(child);
}
