/* SPDX-License-Identifier: MIT */
/*
 * The best that polling can do: every process's stat, statm and io kept open and read with one
 * pread each, and the list of processes read once a second. No output, no arithmetic beyond parsing
 * the values that a monitor would show. It represents "just write the poller in C".
 *
 * On SIGTERM it prints the number of its rounds, which gives the rate it reached.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "util.h"

enum { FILES = 3, MAX_PROCESSES = 40000 };
static const char *const file_names[FILES] = {"stat", "statm", "io"};

struct process {
    uint32_t pid;
    int fd[FILES];
    uint64_t sum; /* sum of the values: the parsing must not be optimised away */
};

static struct process *table;
static size_t process_count;
static uint8_t *known; /* by pid */
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static int open_file(uint32_t pid, const char *file)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/%s", (unsigned)pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    /* Reading less than requested would make this peer look cheaper than it is. */
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        die("too few file descriptors to keep every process open");
    return fd;
}

static void add(uint32_t pid)
{
    if (known[pid] || process_count == MAX_PROCESSES)
        return;
    struct process *p = &table[process_count++];
    p->pid = pid;
    p->sum = 0;
    for (int i = 0; i < FILES; i++)
        p->fd[i] = open_file(pid, file_names[i]);
    known[pid] = 1;
}

static void scan(uint32_t only_pid)
{
    if (only_pid != 0) {
        add(only_pid);
        return;
    }
    DIR *dir = opendir("/proc");
    if (dir == NULL)
        die("/proc: %s", strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            add((uint32_t)parse_u64(entry->d_name, "/proc"));
    }
    closedir(dir);
}

static uint64_t parse_figures(const char *text, size_t len)
{
    uint64_t sum = 0, value = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            value = value * 10 + (uint64_t)(text[i] - '0');
        } else {
            sum += value;
            value = 0;
        }
    }
    return sum + value;
}

/* False when the process is gone. A file that must not be read is skipped. */
static bool read_process(struct process *p)
{
    char text[1024];
    for (int i = 0; i < FILES; i++) {
        if (p->fd[i] < 0)
            continue;
        ssize_t len = pread(p->fd[i], text, sizeof text, 0);
        if (len < 0 && errno == ESRCH)
            return false;
        if (len > 0)
            p->sum += parse_figures(text, (size_t)len);
    }
    return true;
}

static void drop(size_t at)
{
    for (int i = 0; i < FILES; i++) {
        if (table[at].fd[i] >= 0)
            close(table[at].fd[i]);
    }
    known[table[at].pid] = 0;
    table[at] = table[--process_count];
}

static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static uint64_t poll_all(uint64_t hz, uint32_t only_pid)
{
    uint64_t rounds = 0, next_ns = clock_ns(CLOCK_MONOTONIC), scan_ns = next_ns + 1000000000u;
    while (!stop) {
        next_ns += 1000000000u / hz;
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        if (next_ns < now_ns)
            next_ns = now_ns;
        else
            sleep_until(CLOCK_MONOTONIC, next_ns);
        if (now_ns >= scan_ns) {
            scan(only_pid);
            scan_ns = now_ns + 1000000000u;
        }
        for (size_t i = process_count; i-- > 0;) {
            if (!read_process(&table[i]))
                drop(i);
        }
        rounds++;
    }
    return rounds;
}

int main(int argc, char **argv)
{
    uint64_t hz = 100;
    uint32_t only_pid = 0;
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        uint64_t value = parse_u64(option_value(argc, argv, &i), name);
        if (strcmp(name, "--hz") == 0 && value > 0)
            hz = value;
        else if (strcmp(name, "--pid") == 0)
            only_pid = (uint32_t)value;
        else
            die("usage: poller [--hz N] [--pid PID]");
    }
    end_with_parent(getppid());
    raise_file_limit();
    signal(SIGTERM, on_signal);
    table = pages(sizeof *table * MAX_PROCESSES);
    known = pages(1u << 22);
    scan(only_pid);
    printf("ready %ld\n", (long)getpid());
    fflush(stdout);
    uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t rounds = poll_all(hz, only_pid);
    double seconds = (double)(clock_ns(CLOCK_MONOTONIC) - start_ns) / 1e9;
    printf("{\"hz_reached\": %.2f, \"processes\": %zu}\n", (double)rounds / seconds, process_count);
    return 0;
}
