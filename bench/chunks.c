/* SPDX-License-Identifier: MIT */
/*
 * A workload divided into equal chunks of work, each timed separately.
 *
 * The driver attaches a watcher, requests a chunk, detaches it, requests a chunk, hundreds of
 * times: neighbouring chunks see the same machine, so the ratio of a pair shows the cost of the
 * watcher even where whole runs scatter by ten percent. A chunk is a fixed number of units of work,
 * calibrated once at the start so that a chunk takes about 20 ms. "chunk" on stdin is answered by
 * its wall time in ns. Between chunks nothing here runs.
 *
 * Kinds: matrix (2 threads, no waiting), infer (a pipeline of threads that pass small pieces of
 * work on), fault (fresh pages touched), spawn (fork, exec, exit), pipe (two processes on one CPU
 * that exchange a byte: only switches), pipe2 (the same on two CPUs: each message also wakes an
 * idle CPU). If the scheduler places the pair, it changes between the two at will and chunks cannot
 * be compared.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/wait.h>

#include "util.h"

enum { CHUNK_NS = 20000000, MATRIX = 96, SMALL = 32, STAGES = 4, FAULT_BYTES = 4 << 20 };

/* ------------------------------------------------------------------ arithmetic */

struct matrices {
    float a[MATRIX][MATRIX], b[MATRIX][MATRIX], c[MATRIX][MATRIX];
};

static void fill(struct matrices *m)
{
    for (int i = 0; i < MATRIX; i++) {
        for (int j = 0; j < MATRIX; j++) {
            m->a[i][j] = (float)(i + j) / MATRIX;
            m->b[i][j] = (float)(i - j) / MATRIX;
        }
    }
}

static void multiply(struct matrices *m, int n)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            m->c[i][j] = 0;
        for (int k = 0; k < n; k++) {
            float factor = m->a[i][k];
            for (int j = 0; j < n; j++)
                m->c[i][j] += factor * m->b[k][j];
        }
    }
    /* The result feeds the next call, so the compiler cannot omit any. */
    m->a[0][0] = m->c[n - 1][n - 1] * 1e-6f;
}

/* ---------------------------------------------------------- threads with tasks */

struct stage {
    pthread_t thread;
    sem_t input;
    sem_t *output;
    uint64_t repeat; /* multiplications for each token */
    int n;
    struct matrices *matrices;
};

static void *run_stage(void *arg)
{
    struct stage *stage = arg;
    for (;;) {
        sem_wait(&stage->input);
        for (uint64_t i = 0; i < stage->repeat; i++)
            multiply(stage->matrices, stage->n);
        sem_post(stage->output);
    }
    return NULL;
}

static struct stage stages[STAGES];
static sem_t done;

static void start_stage(int at, sem_t *output, uint64_t repeat, int n)
{
    struct stage *stage = &stages[at];
    sem_init(&stage->input, 0, 0);
    stage->output = output;
    stage->repeat = repeat;
    stage->n = n;
    stage->matrices = pages(sizeof *stage->matrices);
    fill(stage->matrices);
    if (pthread_create(&stage->thread, NULL, run_stage, stage) != 0)
        die("no thread");
}

static void setup_matrix(void)
{
    sem_init(&done, 0, 0);
    for (int i = 0; i < 2; i++)
        start_stage(i, &done, 0, MATRIX);
}

/* Both threads get the whole chunk at once: two switches per chunk. */
static void work_matrix(uint64_t units)
{
    for (int i = 0; i < 2; i++) {
        stages[i].repeat = units;
        sem_post(&stages[i].input);
    }
    sem_wait(&done);
    sem_wait(&done);
}

static void setup_infer(void)
{
    sem_init(&done, 0, 0);
    for (int i = STAGES - 1; i >= 0; i--)
        start_stage(i, i == STAGES - 1 ? &done : &stages[i + 1].input, 8, SMALL);
}

/* Four requests are in flight at any time, as in a server that batches. */
static void work_infer(uint64_t units)
{
    uint64_t sent = 0, got = 0;
    while (got < units) {
        while (sent < units && sent - got < STAGES) {
            sem_post(&stages[0].input);
            sent++;
        }
        sem_wait(&done);
        got++;
    }
}

/* ----------------------------------------------------------------- page faults */

static void setup_nothing(void)
{
}

static void work_fault(uint64_t units)
{
    for (uint64_t i = 0; i < units; i++) {
        volatile char *memory = pages(FAULT_BYTES);
        for (size_t at = 0; at < FAULT_BYTES; at += 4096)
            memory[at] = 1;
        munmap((void *)memory, FAULT_BYTES);
    }
}

/* ------------------------------------------------------------- fork, exec, exit */

static void work_spawn(uint64_t units)
{
    for (uint64_t i = 0; i < units; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            execl("/proc/self/exe", "chunks", "--nothing", (char *)NULL);
            _exit(127);
        }
        if (pid < 0 || waitpid(pid, NULL, 0) != pid)
            die("spawn: %s", strerror(errno));
    }
}

/* ------------------------------------------------------------------- ping-pong */

static int to_child[2], to_parent[2];

/* Pins the caller to the nth CPU from the end, or to the first. */
static void pin(long from_end)
{
    long cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1 - from_end;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)(cpu > 0 ? cpu : 0), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        die("affinity: %s", strerror(errno));
}

static void start_echo(long parent_cpu, long child_cpu)
{
    if (pipe(to_child) != 0 || pipe(to_parent) != 0)
        die("pipe: %s", strerror(errno));
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0)
        die("fork: %s", strerror(errno));
    pin(pid > 0 ? parent_cpu : child_cpu);
    if (pid > 0)
        return;
    end_with_parent(parent);
    char byte;
    while (read(to_child[0], &byte, 1) == 1 && write(to_parent[1], &byte, 1) == 1)
        ;
    _exit(0);
}

static void setup_pipe(void)
{
    start_echo(0, 0);
}

static void setup_pipe2(void)
{
    start_echo(0, 1);
}

static void work_pipe(uint64_t units)
{
    char byte = 1;
    for (uint64_t i = 0; i < units; i++) {
        if (write(to_child[1], &byte, 1) != 1 || read(to_parent[0], &byte, 1) != 1)
            die("pipe: %s", strerror(errno));
    }
}

/* ------------------------------------------------------------------ the chunks */

static const struct kind {
    const char *name;
    void (*setup)(void);
    void (*work)(uint64_t units);
} kinds[] = {
    {"matrix", setup_matrix, work_matrix}, {"infer", setup_infer, work_infer},
    {"fault", setup_nothing, work_fault},  {"spawn", setup_nothing, work_spawn},
    {"pipe", setup_pipe, work_pipe},       {"pipe2", setup_pipe2, work_pipe},
};

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    }
    die("chunks: no such workload: '%s'", name);
}

static uint64_t timed(const struct kind *kind, uint64_t units)
{
    uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
    kind->work(units);
    return clock_ns(CLOCK_MONOTONIC) - start_ns;
}

/*
 * The number of units that takes about one chunk: the best of a few tries, because noise only adds
 * time.
 */
static uint64_t calibrate(const struct kind *kind)
{
    uint64_t units = 1, ns = timed(kind, units);
    while (ns < CHUNK_NS / 4) {
        units *= 2;
        ns = timed(kind, units);
    }
    uint64_t best_ns = ns;
    for (int i = 0; i < 5; i++) {
        ns = timed(kind, units);
        if (ns < best_ns)
            best_ns = ns;
    }
    units = units * CHUNK_NS / best_ns;
    return units > 0 ? units : 1;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--nothing") == 0)
        return 0;
    if (argc != 2)
        die("usage: chunks matrix|infer|fault|spawn|pipe|pipe2");
    const struct kind *kind = find_kind(argv[1]);
    end_with_parent(getppid());
    kind->setup();
    uint64_t units = calibrate(kind);
    printf("ready %ld %llu\n", (long)getpid(), (unsigned long long)units);
    fflush(stdout);
    char line[16];
    while (read_command(line, sizeof line)) {
        printf("%llu\n", (unsigned long long)timed(kind, units));
        fflush(stdout);
    }
    return 0;
}
