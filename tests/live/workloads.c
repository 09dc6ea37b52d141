/* SPDX-License-Identifier: MIT */
/*
 * Processes that know exactly what they did, for the live tests: each workload does something and
 * prints the kernel's own record of it to standard output, one JSON object per line.
 *
 *   workloads usage WORK…       runs WORK in a child and prints its usage from wait4()
 *   workloads burn MS           computes until its own CPU clock has reached MS milliseconds
 *   workloads hoard MB          exits with MB of memory, which the kernel then has to free
 *   workloads mix               computes, sleeps, touches memory, reads and writes
 *   workloads threads N MS      N threads that burn MS each; prints the CPU clock of each
 *   workloads die-together N    N threads that all end the process at the same time
 *   workloads crowd N SECONDS   N threads that exist at once
 *   workloads storm SECONDS     short-lived threads without pause
 *   workloads forks N MS        N children, one after the other, that burn MS each
 *   workloads bomb N MS         N children that all exist at once, for MS milliseconds
 *   workloads same-pid N MS     N children, one after the other, all with one process id
 *   workloads same-pid-threads N MS   the same; each has three more threads that burn
 *   workloads same-pid-late N   the same; each leaves its CPU for the last time only after the next
 *                               one has started
 *   workloads same-pid-wait     two children; the second one, unwatched, starts after a line of
 * input workloads same-tid N MS     threads, one after the other, all with one thread id workloads
 * thread-exec CMD…  a thread that is not the leader executes CMD, others are alive workloads daemon
 * CMD…       CMD as a daemon: two forks and its own session workloads without-bpf CMD…  CMD with
 * bpf() refused workloads programs          the IDs, names and instruction counts of etwatch's BPF
 * programs (ew_…) workloads sleep SECONDS     and nothing else
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
    fprintf(stderr, "workloads: %s: %s\n", what, strerror(errno));
    exit(77);
}

static long number(const char *text)
{
    char *end = NULL;
    long value = text == NULL ? 0 : strtol(text, &end, 10);
    if (text == NULL || *text == '\0' || *end != '\0') {
        fprintf(stderr, "workloads: a number is needed, not %s\n", text == NULL ? "nothing" : text);
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

static uint64_t of_timeval(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

static void pause_ms(long ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

static void burn(clockid_t clock, long ms)
{
    uint64_t end_ns = clock_ns(clock) + (uint64_t)ms * 1000000u;
    while (clock_ns(clock) < end_ns)
        for (volatile int i = 0; i < 20000; i++)
            continue;
}

static void print_usage(pid_t pid, int status, const struct rusage *usage)
{
    printf("{\"pid\":%d,\"status\":%d,\"cpu_ns\":%llu,\"faults_minor\":%ld,\"faults_major\":%ld,"
           "\"switches_voluntary\":%ld,\"switches_involuntary\":%ld,\"rss_peak_bytes\":%ld}\n",
           (int)pid, status,
           (unsigned long long)(of_timeval(usage->ru_utime) + of_timeval(usage->ru_stime)),
           usage->ru_minflt, usage->ru_majflt, usage->ru_nvcsw, usage->ru_nivcsw,
           usage->ru_maxrss * 1024);
    (void)fflush(stdout);
}

static void wait_and_print(pid_t pid)
{
    struct rusage usage;
    int status = 0;
    while (wait4(pid, &status, 0, &usage) != pid)
        if (errno != EINTR)
            fail("wait4");
    print_usage(pid, status, &usage);
}

/* ------------------------------------------------------------------------ workloads */

/* Bytes read and written so far, from /proc/self/io; reading that file is not included yet. */
static void print_io(void)
{
    char text[512] = "";
    int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    unsigned long long read_bytes, write_bytes, read_ops, write_ops;
    if (got <= 0 || sscanf(text, "rchar: %llu\nwchar: %llu\nsyscr: %llu\nsyscw: %llu", &read_bytes,
                           &write_bytes, &read_ops, &write_ops) != 4)
        fail("/proc/self/io");
    (void)close(fd);
    printf("{\"io_read_bytes\":%llu,\"io_write_bytes\":%llu,\"io_read_ops\":%llu,"
           "\"io_write_ops\":%llu}\n",
           read_bytes, write_bytes, read_ops, write_ops);
    (void)fflush(stdout);
}

static void hoard(long mb)
{
    size_t size = (size_t)mb << 20, page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    (void)madvise(memory, size, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < size; at += page)
        memory[at] = 1;
}

static void mix(void)
{
    enum { PAGES = 3000, BLOCK = 1 << 16, BLOCKS = 40, SLEEPS = 25 };
    static char block[BLOCK];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory =
        mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    (void)madvise(memory, PAGES * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < PAGES; i++)
        memory[i * page] = 1;
    for (int i = 0; i < SLEEPS; i++) {
        pause_ms(2);
        burn(CLOCK_PROCESS_CPUTIME_ID, 2);
    }
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    for (int i = 0; fd >= 0 && i < BLOCKS; i++)
        if (write(fd, block, BLOCK) != BLOCK)
            fail("write");
    for (int i = 0; fd >= 0 && i < BLOCKS; i++)
        if (pread(fd, block, BLOCK, (off_t)i * BLOCK) != BLOCK)
            fail("read");
    print_io();
}

static pthread_barrier_t together;

static void *burn_thread(void *arg)
{
    char name[16];
    (void)snprintf(name, sizeof name, "burner-%d", (int)gettid() % 1000);
    (void)prctl(PR_SET_NAME, name, 0, 0, 0);
    burn(CLOCK_THREAD_CPUTIME_ID, (long)(intptr_t)arg);
    /* Stays alive until its name was read: names are read only from existing threads. */
    (void)pthread_barrier_wait(&together);
    pause_ms(300);
    flockfile(stdout);
    printf("{\"tid\":%d,\"thread_name\":\"%s\",\"cpu_ns\":%llu}\n", (int)gettid(), name,
           (unsigned long long)clock_ns(CLOCK_THREAD_CPUTIME_ID));
    funlockfile(stdout);
    return NULL;
}

static void *end_all(void *arg)
{
    (void)arg;
    (void)pthread_barrier_wait(&together);
    _exit(3);
}

static void *sit(void *arg)
{
    (void)arg;
    (void)pthread_barrier_wait(&together);
    (void)pthread_barrier_wait(&together);
    return NULL;
}

static void *return_at_once(void *arg)
{
    return arg;
}

/* Starts count threads that meet this one at the barrier. */
static pthread_t *start_threads(long count, void *(*run)(void *), void *arg)
{
    pthread_attr_t attributes;
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    if (threads == NULL || pthread_attr_init(&attributes) != 0)
        fail("threads");
    (void)pthread_attr_setstacksize(&attributes, 64 << 10);
    (void)pthread_barrier_init(&together, NULL, (unsigned)count + 1);
    for (long i = 0; i < count; i++) {
        errno = pthread_create(&threads[i], &attributes, run, arg);
        if (errno != 0)
            fail("pthread_create");
    }
    return threads;
}

static void join_threads(pthread_t *threads, long count)
{
    for (long i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
    free(threads);
}

static void crowd(long count, long seconds)
{
    pthread_t *threads = start_threads(count, sit, NULL);
    (void)pthread_barrier_wait(&together);
    pause_ms(seconds * 1000);
    (void)pthread_barrier_wait(&together);
    join_threads(threads, count);
}

static void storm(long seconds)
{
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)seconds * 1000000000u;
    long count = 0;
    while (clock_ns(CLOCK_MONOTONIC) < end_ns) {
        join_threads(start_threads(20, return_at_once, NULL), 20);
        count += 20;
    }
    printf("{\"threads\":%ld}\n", count);
}

static void forks(long count, long ms)
{
    struct rusage usage;
    for (long i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            burn(CLOCK_PROCESS_CPUTIME_ID, ms);
            _exit((int)i);
        }
        if (pid < 0 || waitpid(pid, NULL, 0) != pid)
            fail("fork");
    }
    if (getrusage(RUSAGE_CHILDREN, &usage) != 0)
        fail("getrusage");
    print_usage(0, 0, &usage);
}

static void bomb(long count, long ms)
{
    pid_t *pids = calloc((size_t)count, sizeof *pids);
    if (pids == NULL)
        fail("calloc");
    pid_t parent = getpid();
    for (long i = 0; i < count; i++) {
        pids[i] = fork();
        if (pids[i] < 0)
            fail("fork");
        if (pids[i] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
            while (getppid() == parent)
                (void)pause();
            _exit(0);
        }
    }
    printf("{\"processes\":%ld}\n", count);
    (void)fflush(stdout);
    pause_ms(ms);
    for (long i = 0; i < count; i++)
        (void)kill(pids[i], SIGKILL);
    for (long i = 0; i < count; i++)
        (void)waitpid(pids[i], NULL, 0);
    free(pids);
}

/* --------------------------------------------------------------- reused IDs */

/* A child with this process ID, or with any if it is 0. */
static pid_t fork_as(pid_t wanted)
{
    struct clone_args args = {.exit_signal = SIGCHLD};
    if (wanted != 0) {
        args.set_tid = (uint64_t)(uintptr_t)&wanted;
        args.set_tid_size = 1;
    }
    long pid = syscall(SYS_clone3, &args, sizeof args);
    if (pid < 0)
        fail("clone3 with a selected pid");
    return (pid_t)pid;
}

static void *burn_too(void *arg)
{
    burn(CLOCK_THREAD_CPUTIME_ID, (long)(intptr_t)arg);
    return NULL;
}

/* The children are distinguished by their CPU time: the i-th burns i times as long. */
static void same_pid(long count, long ms, bool threads)
{
    pid_t pid = 0;
    for (long i = 1; i <= count; i++) {
        pid = fork_as(pid);
        if (pid == 0) {
            if (threads)
                (void)start_threads(3, burn_too, (void *)(intptr_t)(ms * i));
            burn(CLOCK_PROCESS_CPUTIME_ID, ms * i);
            _exit((int)i);
        }
        wait_and_print(pid);
    }
}

/*
 * Delays every thread of this name when it enters the scheduler: a process that has taken the name
 * is reaped by its parent while it is still on its CPU, as it happens when a hypervisor stops that
 * CPU. Needs a kernel with the tracepoint (6.16).
 */
static const char late_name[16] = "late-to-leave";

static void delay_last_switches(void)
{
    enum { ROUNDS = 60000 };
    int64_t name;
    memcpy(&name, late_name, sizeof name);
#define INSN(c, d, s, o, i)                                                 \
    {                                                                       \
        .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) \
    }
    const struct bpf_insn code[] = {
        INSN(BPF_ALU64 | BPF_MOV | BPF_X, 1, 10, 0, 0),
        INSN(BPF_ALU64 | BPF_ADD | BPF_K, 1, 0, 0, -16),
        INSN(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 16),
        INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_comm),
        INSN(BPF_LDX | BPF_MEM | BPF_DW, 1, 10, -16, 0),
        INSN(BPF_LD | BPF_IMM | BPF_DW, 2, 0, 0, (int32_t)name),
        INSN(0, 0, 0, 0, (int32_t)(name >> 32)),
        INSN(BPF_JMP | BPF_JNE | BPF_X, 1, 2, 4, 0),
        INSN(BPF_ALU64 | BPF_MOV | BPF_K, 6, 0, 0, ROUNDS),
        INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ktime_get_boot_ns),
        INSN(BPF_ALU64 | BPF_SUB | BPF_K, 6, 0, 0, 1),
        INSN(BPF_JMP | BPF_JNE | BPF_K, 6, 0, -3, 0),
        INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
        INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
    };
#undef INSN
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
    attributes.insns = (uint64_t)(uintptr_t)code;
    attributes.insn_cnt = sizeof code / sizeof code[0];
    attributes.license = (uint64_t)(uintptr_t) "GPL";
    long program = syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof attributes);
    if (program < 0)
        fail("loading a BPF program");
    memset(&attributes, 0, sizeof attributes);
    attributes.raw_tracepoint.name = (uint64_t)(uintptr_t) "sched_entry_tp";
    attributes.raw_tracepoint.prog_fd = (uint32_t)program;
    if (syscall(SYS_bpf, BPF_RAW_TRACEPOINT_OPEN, &attributes, sizeof attributes) < 0)
        fail("the tracepoint sched_entry_tp");
}

static void same_pid_late(long count)
{
    pid_t pid = 0;
    delay_last_switches();
    for (long i = 1; i <= count; i++) {
        pid = fork_as(pid);
        if (pid == 0) {
            burn(CLOCK_PROCESS_CPUTIME_ID, 1);
            (void)prctl(PR_SET_NAME, late_name, 0, 0, 0);
            _exit((int)i);
        }
        wait_and_print(pid);
    }
}

static void same_pid_wait(void)
{
    char line;
    int go[2];
    if (pipe(go) != 0)
        fail("pipe");
    pid_t pid = fork_as(0);
    if (pid == 0) {
        (void)close(go[1]);
        _exit(read(go[0], &line, 1) == 0 ? 1 : 2);
    }
    printf("{\"pid\":%d}\n", (int)pid);
    (void)fflush(stdout);
    (void)!read(STDIN_FILENO, &line, 1);
    (void)close(go[1]);
    wait_and_print(pid);
    if (fork_as(pid) == 0) {
        burn(CLOCK_PROCESS_CPUTIME_ID, 50);
        pause_ms(300);
        _exit(2);
    }
    wait_and_print(pid);
}

struct short_thread {
    pid_t wanted, tid; /* 0: any ID */
    long ms;
};

static void *short_run(void *arg)
{
    struct short_thread *self = arg;
    self->tid = gettid();
    if (self->wanted != 0 && self->tid != self->wanted)
        return NULL;
    burn(CLOCK_THREAD_CPUTIME_ID, self->ms);
    printf("{\"tid\":%d,\"cpu_ns\":%llu}\n", (int)self->tid,
           (unsigned long long)clock_ns(CLOCK_THREAD_CPUTIME_ID));
    return NULL;
}

/* Sets the next ID, unless another process takes it first. */
static void choose_next_id(pid_t next)
{
    char text[16];
    int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
    int length = snprintf(text, sizeof text, "%d", (int)next - 1);
    if (fd < 0 || write(fd, text, (size_t)length) != length)
        fail("ns_last_pid");
    (void)close(fd);
}

static void same_tid(long count, long ms)
{
    enum { ATTEMPTS = 1000 };
    pid_t wanted = 0;
    for (long i = 1; i <= count; i++) {
        struct short_thread self = {.wanted = wanted, .ms = ms * i};
        for (int attempt = 0; self.tid == 0 || (wanted != 0 && self.tid != wanted); attempt++) {
            pthread_t thread;
            if (attempt == ATTEMPTS)
                fail("another process took the thread id");
            if (wanted != 0)
                choose_next_id(wanted);
            if (pthread_create(&thread, NULL, short_run, &self) != 0)
                fail("pthread_create");
            (void)pthread_join(thread, NULL);
        }
        wanted = self.tid;
    }
}

/* ------------------------------------------------------------------- other workloads */

static char **command_of_thread;

static void *exec_now(void *arg)
{
    (void)arg;
    burn(CLOCK_THREAD_CPUTIME_ID, 30);
    (void)execvp(command_of_thread[0], command_of_thread);
    fail("exec");
    return NULL;
}

static void *wait_for_ever(void *arg)
{
    (void)arg;
    for (;;)
        (void)pause();
    return NULL;
}

static void thread_exec(char **command)
{
    pthread_t thread;
    command_of_thread = command;
    burn(CLOCK_THREAD_CPUTIME_ID, 60);
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0)
            fail("pthread_create");
    if (pthread_create(&thread, NULL, exec_now, NULL) != 0)
        fail("pthread_create");
    wait_for_ever(NULL);
}

static void become_daemon(char **command)
{
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid > 0) {
        (void)waitpid(pid, NULL, 0);
        exit(0);
    }
    if (setsid() < 0)
        fail("setsid");
    pid_t parent = getpid();
    pid = fork();
    if (pid != 0)
        _exit(pid < 0 ? 1 : 0);
    /* Continues only after its parent has exited, so that its parent is the process that adopted
     * it. */
    while (getppid() == parent)
        pause_ms(1);
    (void)execvp(command[0], command);
    fail("exec");
}

static void without_bpf(char **command)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
        fail("seccomp");
    (void)execvp(command[0], command);
    fail("exec");
}

static long call_bpf(enum bpf_cmd command, union bpf_attr *attributes)
{
    return syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

static void programs(void)
{
    union bpf_attr next;
    memset(&next, 0, sizeof next);
    while (call_bpf(BPF_PROG_GET_NEXT_ID, &next) == 0) {
        union bpf_attr attributes;
        struct bpf_prog_info info;
        memset(&attributes, 0, sizeof attributes);
        attributes.prog_id = next.next_id;
        long fd = call_bpf(BPF_PROG_GET_FD_BY_ID, &attributes);
        if (fd >= 0) {
            memset(&info, 0, sizeof info);
            memset(&attributes, 0, sizeof attributes);
            attributes.info.bpf_fd = (uint32_t)fd;
            attributes.info.info_len = sizeof info;
            attributes.info.info = (uint64_t)(uintptr_t)&info;
            if (call_bpf(BPF_OBJ_GET_INFO_BY_FD, &attributes) == 0 &&
                strncmp(info.name, "ew_", 3) == 0)
                printf("%u %s %u\n", next.next_id, info.name, info.xlated_prog_len / 8);
            (void)close((int)fd);
        }
        next.start_id = next.next_id;
    }
    if (errno != ENOENT)
        fail("bpf");
}

static void run_and_print_usage(char **arguments)
{
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        (void)execv("/proc/self/exe", arguments);
        fail("exec");
    }
    wait_and_print(pid);
}

static int do_workload(char **argv)
{
    const char *workload = argv[1];
    const char *first = argv[2], *second = first == NULL ? NULL : argv[3];
    if (strcmp(workload, "usage") == 0)
        run_and_print_usage(argv + 1);
    else if (strcmp(workload, "burn") == 0)
        burn(CLOCK_PROCESS_CPUTIME_ID, number(first));
    else if (strcmp(workload, "hoard") == 0)
        hoard(number(first));
    else if (strcmp(workload, "mix") == 0)
        mix();
    else if (strcmp(workload, "threads") == 0) {
        pthread_t *threads =
            start_threads(number(first), burn_thread, (void *)(intptr_t)number(second));
        (void)pthread_barrier_wait(&together);
        join_threads(threads, number(first));
    } else if (strcmp(workload, "die-together") == 0) {
        (void)start_threads(number(first), end_all, NULL);
        end_all(NULL);
    } else if (strcmp(workload, "crowd") == 0)
        crowd(number(first), number(second));
    else if (strcmp(workload, "storm") == 0)
        storm(number(first));
    else if (strcmp(workload, "forks") == 0)
        forks(number(first), number(second));
    else if (strcmp(workload, "bomb") == 0)
        bomb(number(first), number(second));
    else if (strcmp(workload, "same-pid") == 0)
        same_pid(number(first), number(second), false);
    else if (strcmp(workload, "same-pid-threads") == 0)
        same_pid(number(first), number(second), true);
    else if (strcmp(workload, "same-pid-late") == 0)
        same_pid_late(number(first));
    else if (strcmp(workload, "same-pid-wait") == 0)
        same_pid_wait();
    else if (strcmp(workload, "same-tid") == 0)
        same_tid(number(first), number(second));
    else if (strcmp(workload, "thread-exec") == 0 && first != NULL)
        thread_exec(argv + 2);
    else if (strcmp(workload, "daemon") == 0 && first != NULL)
        become_daemon(argv + 2);
    else if (strcmp(workload, "without-bpf") == 0 && first != NULL)
        without_bpf(argv + 2);
    else if (strcmp(workload, "programs") == 0)
        programs();
    else if (strcmp(workload, "sleep") == 0)
        pause_ms(number(first) * 1000);
    else
        return 2;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "workloads: no such workload; see the top of workloads.c\n");
        return 2;
    }
    return do_workload(argv);
}
