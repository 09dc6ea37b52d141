/* SPDX-License-Identifier: MIT */
/*
 * infer LIBRARY MODEL COUNT [THREADS] [ROWS] [PAUSE_MS]: runs a model with the C API of ONNX
 * Runtime and measures each inference itself.
 *
 *   etwatch run --onnx -- ./infer libonnxruntime.so.1 model.onnx 200
 *
 * explains them: the program has no mark and needs none. LIBRARY is that of PyPI's package
 * (onnxruntime/capi/libonnxruntime.so.1.X.Y), of npm's onnxruntime-node, or of a release. The model
 * has one input "x" and one output "y", rows of 256 floats. Prints as JSON what it measured of
 * each inference: thread, latency, context switches, CPU time.
 *
 * The packages of PyPI and npm have no header, so the functions that are used are declared here, by
 * their position in struct OrtApi: the positions never change (onnxruntime_c_api.h).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RUSAGE_THREAD */
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef struct OrtStatus OrtStatus;
typedef struct OrtEnv OrtEnv;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtValue OrtValue;
typedef void (*function)(void);

struct api_base {
    const function *(*get_api)(uint32_t version);
    const char *(*get_version)(void);
};

enum { API_VERSION = 11, COLUMNS = 256, FLOAT = 1, ARENA = 0, DEFAULT_MEMORY = 0, WARNING = 2 };
enum position {
    GET_ERROR_MESSAGE = 2,
    CREATE_ENV = 3,
    CREATE_SESSION = 7,
    RUN = 9,
    CREATE_SESSION_OPTIONS = 10,
    SET_INTRA_OP_NUM_THREADS = 24,
    CREATE_TENSOR_WITH_DATA = 49,
    CREATE_CPU_MEMORY_INFO = 69,
    RELEASE_VALUE = 96,
};

typedef const char *(*get_error_message_fn)(const OrtStatus *);
typedef OrtStatus *(*create_env_fn)(int, const char *, OrtEnv **);
typedef OrtStatus *(*create_session_fn)(const OrtEnv *, const char *, const OrtSessionOptions *,
                                        OrtSession **);
typedef OrtStatus *(*run_fn)(OrtSession *, const void *, const char *const *,
                             const OrtValue *const *, size_t, const char *const *, size_t,
                             OrtValue **);
typedef OrtStatus *(*create_options_fn)(OrtSessionOptions **);
typedef OrtStatus *(*set_threads_fn)(OrtSessionOptions *, int);
typedef OrtStatus *(*create_tensor_fn)(const OrtMemoryInfo *, void *, size_t, const int64_t *,
                                       size_t, int, OrtValue **);
typedef OrtStatus *(*create_memory_info_fn)(int, int, OrtMemoryInfo **);
typedef void (*release_value_fn)(OrtValue *);

/* What the program measures: the latency, the CPU time of its thread, and how often that was
 * switched out. */
struct call {
    uint64_t ns, cpu_ns;
    long switches;
};

struct work {
    const function *api;
    OrtSession *session;
    OrtValue *input;
    long count, pause_ms;
    struct call *calls;
    long tid;
    pthread_t thread;
};

static void check(const function *api, OrtStatus *status)
{
    if (status == NULL)
        return;
    fprintf(stderr, "infer: %s\n", ((get_error_message_fn)api[GET_ERROR_MESSAGE])(status));
    exit(1);
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static long switches_of_thread(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw + usage.ru_nvcsw;
}

static const function *open_api(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "infer: %s\n", dlerror());
        exit(1);
    }
    const struct api_base *(*get_base)(void);
    void *symbol = dlsym(library, "OrtGetApiBase");
    memcpy(&get_base, &symbol, sizeof get_base);
    return get_base == NULL ? NULL : get_base()->get_api(API_VERSION);
}

static void *run_all(void *arg)
{
    static const char *const inputs[] = {"x"}, *const outputs[] = {"y"};
    struct work *work = arg;
    run_fn run = (run_fn)work->api[RUN];
    release_value_fn release = (release_value_fn)work->api[RELEASE_VALUE];
    work->tid = syscall(SYS_gettid);
    for (long i = 0; i < work->count; i++) {
        const OrtValue *values[] = {work->input};
        OrtValue *output = NULL;
        long switches = switches_of_thread();
        uint64_t cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID), begun_ns = now_ns(CLOCK_MONOTONIC);
        check(work->api, run(work->session, NULL, inputs, values, 1, outputs, 1, &output));
        work->calls[i].ns = now_ns(CLOCK_MONOTONIC) - begun_ns;
        work->calls[i].cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
        work->calls[i].switches = switches_of_thread() - switches;
        release(output);
        if (work->pause_ms > 0)
            usleep((useconds_t)work->pause_ms * 1000);
    }
    return NULL;
}

static long number(char **argv, int argc, int i, long otherwise)
{
    return i < argc ? strtol(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: infer LIBRARY MODEL COUNT [THREADS] [ROWS] [PAUSE_MS]\n");
        return 2;
    }
    long count = number(argv, argc, 3, 0), threads = number(argv, argc, 4, 1);
    long rows = number(argv, argc, 5, 16), pause_ms = number(argv, argc, 6, 0);
    if (count < 1 || threads < 1 || threads > 64 || rows < 1 || rows > 65536 || pause_ms < 0) {
        fprintf(stderr, "infer: COUNT, THREADS (at most 64) and ROWS (at most 65536) begin at 1\n");
        return 2;
    }
    const function *api = open_api(argv[1]);
    if (api == NULL) {
        fprintf(stderr, "infer: %s has no API of version %d\n", argv[1], API_VERSION);
        return 1;
    }
    OrtEnv *env = NULL;
    OrtSession *session = NULL;
    OrtSessionOptions *options = NULL;
    OrtMemoryInfo *memory = NULL;
    OrtValue *input = NULL;
    int64_t shape[] = {rows, COLUMNS};
    size_t floats = (size_t)rows * COLUMNS;
    float *data = calloc(floats, sizeof *data);
    struct work *works = calloc((size_t)threads, sizeof *works);
    struct call *calls = calloc((size_t)(threads * count), sizeof *calls);
    if (data == NULL || works == NULL || calls == NULL)
        return 1;
    check(api, ((create_env_fn)api[CREATE_ENV])(WARNING, "infer", &env));
    check(api, ((create_options_fn)api[CREATE_SESSION_OPTIONS])(&options));
    check(api, ((set_threads_fn)api[SET_INTRA_OP_NUM_THREADS])(options, 1));
    check(api, ((create_session_fn)api[CREATE_SESSION])(env, argv[2], options, &session));
    check(api,
          ((create_memory_info_fn)api[CREATE_CPU_MEMORY_INFO])(ARENA, DEFAULT_MEMORY, &memory));
    check(api, ((create_tensor_fn)api[CREATE_TENSOR_WITH_DATA])(memory, data, floats * sizeof *data,
                                                                shape, 2, FLOAT, &input));
    for (long i = 0; i < threads; i++) {
        works[i] = (struct work){api, session, input, count, pause_ms, calls + i * count, 0, 0};
        if (pthread_create(&works[i].thread, NULL, run_all, &works[i]) != 0)
            return 1;
    }
    for (long i = 0; i < threads; i++)
        pthread_join(works[i].thread, NULL);
    printf("{\"calls\": [");
    for (long i = 0; i < threads * count; i++)
        printf("%s[%ld, %llu, %ld, %llu]", i == 0 ? "" : ", ", works[i / count].tid,
               (unsigned long long)calls[i].ns, calls[i].switches,
               (unsigned long long)calls[i].cpu_ns);
    printf("]}\n");
    return 0;
}
