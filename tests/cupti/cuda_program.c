/* SPDX-License-Identifier: MIT */
/*
 * A CUDA program for tests without a GPU. It contains a fake driver, which loads the library that
 * CUDA_INJECTION64_PATH names in cuInit as the real one does, and passes what happens "on the GPU"
 * to the fake CUPTI. Its arguments are steps:
 *
 *   init                       cuInit
 *   launch:NAME:US:STREAM:N    N kernels of US microseconds each, one after another on the stream
 *   copy:BYTES:KIND:US         an asynchronous copy; KIND as CUPTI numbers them (1: to the device)
 *   set:BYTES:US               a memset
 *   sync                       waits until all streams are done
 *   sleep:MS                   the GPU waits for the CPU
 *   range:NAME / end           an NVTX range
 *   fork                       a child that exits normally
 *   exec                       the process runs this program again, with the remaining steps
 *   close                      the injected library is closed as often as it was opened
 *   again                      the driver calls the injected library a second time
 *   span:NAME / done           a span of etwatch; "done" prints its time of waiting for the GPU
 *   thread                     the remaining steps run on another thread
 *   quit:N / kill              _exit(N), or SIGKILL
 *
 * It prints what it did as JSON: the numbers that etwatch must report.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <etwatch/span.h>

#include "fake_cupti.h"

enum { STREAMS = 16, KERNEL = 10, MEMCPY = 1, MEMSET = 2, SYNC = 38 };
enum { LAUNCH_CALL = 211, COPY_CALL = 41, SET_CALL = 51, SYNC_CALL = 165, VERSION_CALL = 2 };

static struct {
    uint64_t stream_end[STREAMS];
    uint32_t correlation, marker, ranges[16], range_count;
    char *path;
    void *injected;
    uint64_t kernels, kernel_ns, copied, wait_ns, idle_ns, last_end;
    fake_operation_fn operation;
    fake_call_fn call;
    fake_marker_fn mark;
} own;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void find(const char *name, void *slot)
{
    const char *path = getenv("ETWATCH_CUPTI");
    void *library = path == NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    void *function = library == NULL ? NULL : dlsym(library, name);
    memcpy(slot, &function, sizeof function);
}

__attribute__((visibility("default"))) int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version)
{
    uint64_t start = now();
    *version = 13000;
    if (own.call != NULL)
        own.call(1, VERSION_CALL, 0, start, now(), 0);
    return 0;
}

static void inject(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path == NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*initialize)(void) = NULL;
    void *function = library == NULL ? NULL : dlsym(library, "InitializeInjection");
    memcpy(&initialize, &function, sizeof initialize);
    if (path != NULL && (initialize == NULL || initialize() != 1))
        fprintf(stderr, "the injected library failed: %s\n", initialize == NULL ? dlerror() : "");
    own.injected = library;
    find("fake_cupti_operation", &own.operation);
    find("fake_cupti_call", &own.call);
    find("fake_cupti_marker", &own.mark);
}

static void put(struct fake_operation *o, uint32_t cbid, uint64_t us)
{
    uint64_t called = now(), *end = &own.stream_end[o->stream];
    o->start = *end > called ? *end : called + 2000;
    o->end = o->start + us * 1000;
    if (own.last_end != 0 && called > own.last_end)
        own.idle_ns += called - own.last_end;
    *end = o->end;
    own.last_end = o->end > own.last_end ? o->end : own.last_end;
    o->context = 1;
    o->correlation = ++own.correlation;
    if (own.operation != NULL)
        own.operation(o);
    if (own.call != NULL)
        own.call(0, cbid, o->correlation, called, now(), 0);
}

static void launch(char *rest)
{
    const char *name = strtok_r(rest, ":", &rest);
    uint64_t us = strtoull(strtok_r(rest, ":", &rest), NULL, 10);
    uint32_t stream = (uint32_t)strtoul(strtok_r(rest, ":", &rest), NULL, 10) % STREAMS;
    uint64_t count = strtoull(strtok_r(rest, ":", &rest), NULL, 10);
    for (uint64_t i = 0; i < count; i++) {
        struct fake_operation o = {.kind = KERNEL, .stream = stream, .name = name};
        put(&o, LAUNCH_CALL, us);
        own.kernels++;
        own.kernel_ns += us * 1000;
    }
}

static void copy(char *rest)
{
    struct fake_operation o = {.kind = MEMCPY};
    o.bytes = strtoull(strtok_r(rest, ":", &rest), NULL, 10);
    o.copy_kind = (uint8_t)strtoul(strtok_r(rest, ":", &rest), NULL, 10);
    put(&o, COPY_CALL, strtoull(strtok_r(rest, ":", &rest), NULL, 10));
    own.copied += o.bytes;
}

static void set(char *rest)
{
    struct fake_operation o = {.kind = MEMSET};
    o.bytes = strtoull(strtok_r(rest, ":", &rest), NULL, 10);
    put(&o, SET_CALL, strtoull(strtok_r(rest, ":", &rest), NULL, 10));
}

static void synchronize(void)
{
    struct fake_operation o = {.kind = SYNC, .start = now(), .correlation = ++own.correlation};
    uint64_t until = 0;
    for (uint32_t i = 0; i < STREAMS; i++)
        until = own.stream_end[i] > until ? own.stream_end[i] : until;
    while (now() < until)
        usleep((useconds_t)((until - now()) / 1000 + 1));
    o.end = now();
    own.wait_ns += o.end - o.start;
    if (own.operation != NULL)
        own.operation(&o);
    if (own.call != NULL)
        own.call(0, SYNC_CALL, o.correlation, o.start, o.end, 0);
}

static void range(const char *name)
{
    own.ranges[own.range_count++ % 16] = ++own.marker;
    if (own.mark != NULL)
        own.mark(own.marker, 2, name);
}

/* One at a time. */
static void span(const char *name)
{
    static struct etwatch_marks *marks;
    static uint64_t begun, waited;
    static const char *last;
    if (marks == NULL && etwatch_marks_new(&marks) < 0)
        exit(3);
    if (name != NULL) {
        last = name;
        waited = own.wait_ns;
        begun = etwatch_span_begin(marks);
        return;
    }
    etwatch_span_end(marks, begun, last, "model");
    printf("{\"span\":\"%s\",\"tid\":%ld,\"wait_ns\":%llu}\n", last, (long)syscall(SYS_gettid),
           (unsigned long long)(own.wait_ns - waited));
}

static void step(char *text)
{
    char *rest = strchr(text, ':');
    if (rest != NULL)
        *rest++ = '\0';
    if (strcmp(text, "init") == 0 || strcmp(text, "again") == 0)
        inject();
    else if (strcmp(text, "launch") == 0)
        launch(rest);
    else if (strcmp(text, "copy") == 0)
        copy(rest);
    else if (strcmp(text, "set") == 0)
        set(rest);
    else if (strcmp(text, "sync") == 0)
        synchronize();
    else if (strcmp(text, "sleep") == 0)
        usleep((useconds_t)strtoul(rest, NULL, 10) * 1000);
    else if (strcmp(text, "range") == 0)
        range(rest);
    else if (strcmp(text, "span") == 0)
        span(rest);
    else if (strcmp(text, "done") == 0)
        span(NULL);
    else if (strcmp(text, "end") == 0 && own.mark != NULL)
        own.mark(own.ranges[--own.range_count % 16], 4, NULL);
    else if (strcmp(text, "close") == 0)
        for (int i = 0; i < 8 && own.injected != NULL; i++)
            (void)dlclose(own.injected);
    else if (strcmp(text, "kill") == 0)
        raise(SIGKILL);
    else if (strcmp(text, "fork") == 0) {
        pid_t child = fork();
        if (child == 0)
            exit(0);
        waitpid(child, NULL, 0);
    }
}

static void report(void)
{
    printf("{\"pid\":%d,\"tid\":%ld,\"kernels\":%llu,\"kernel_ns\":%llu,\"copied\":%llu,"
           "\"wait_ns\":%llu,\"idle_ns\":%llu}\n",
           getpid(), (long)syscall(SYS_gettid), (unsigned long long)own.kernels,
           (unsigned long long)own.kernel_ns, (unsigned long long)own.copied,
           (unsigned long long)own.wait_ns, (unsigned long long)own.idle_ns);
    fflush(stdout);
}

static void *run(void *arg)
{
    char **steps = arg;
    for (; *steps != NULL; steps++) {
        if (strcmp(*steps, "thread") == 0) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, run, steps + 1) == 0)
                pthread_join(thread, NULL);
            return NULL;
        }
        if (strncmp(*steps, "quit:", 5) == 0) {
            report();
            _exit((int)strtol(*steps + 5, NULL, 10));
        }
        if (strcmp(*steps, "exec") == 0) {
            report();
            *steps = own.path;
            execv(own.path, steps);
            _exit(127);
        }
        step(*steps);
    }
    report();
    return NULL;
}

int main(int argc, char **argv)
{
    (void)argc;
    own.path = argv[0];
    run(argv + 1);
    return 0;
}
