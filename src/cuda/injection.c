/* SPDX-License-Identifier: MIT */
/*
 * libetwatch-cuda.so: loaded into a CUDA program by the driver (CUDA_INJECTION64_PATH), which calls
 * InitializeInjection in cuInit. It asks CUPTI for a record of each kernel, copy and launch, and
 * passes them to the watcher in shared memory (gpu/ring.h).
 *
 * Rules for code in a foreign program: it never prints, never ends it, changes no signal, and waits
 * for nothing without a limit. What fails is a text in the ring; the program runs on. Its thread
 * blocks all signals. In a forked child nothing of it works or runs. It is never unloaded, because
 * CUPTI calls its functions until the end. At exit the last records are flushed on its own thread,
 * which is given a second.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cuda/library.h"
#include "cuda/records.h"
#include "gpu/calls.h"

#define EXPORT __attribute__((visibility("default")))

enum { FLUSH_MS = 100, EXIT_WAIT_MS = 1000, CANARIES_MISSED = 50, CANARY_CBID = 2 };

static struct {
    pid_t pid; /* of the process with the thread */
    void *library;
    struct cupti_api api;
    bool resolved;
    char why[EW_GPU_RING_PROBLEM];
    bool own_clock; /* CUPTI takes its times from ew_cuda_now */
    int (*driver_version)(int *version);

    pthread_mutex_t lock;   /* guards what follows */
    pthread_cond_t changed; /* of the monotonic clock */
    bool stopping, ended;
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static pthread_once_t start_once = PTHREAD_ONCE_INIT;

static void load(void)
{
    own.library = ew_cuda_library_open(own.why, sizeof own.why);
    own.resolved = own.library != NULL &&
                   ew_cuda_library_resolve(own.library, &own.api, own.why, sizeof own.why);
}

/* -------------------------------------------------------------------------- thread */

/* A time from now on, for the condition. Monotonic: a clock that is set back must not keep the
 * program at its exit. */
static struct timespec after_ms(uint32_t ms)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

/* Without a clock of ours in CUPTI: the tightest of a few pairs. */
static void compare_clocks(void)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 5 && !own.own_clock && own.api.timestamp != NULL; i++) {
        uint64_t cupti_ns = 0, before = ew_cuda_now();
        if (own.api.timestamp(&cupti_ns) != CUPTI_OK)
            return;
        uint64_t width = ew_cuda_now() - before;
        if (width >= best)
            continue;
        best = width;
        ew_cuda_set_clock((int64_t)(before + width / 2 - cupti_ns));
    }
}

/*
 * A program that registers its own functions with CUPTI (a profiler inside the program) replaces
 * ours, and CUPTI does not say so. So each flush is preceded by a call of the driver that costs
 * nothing and is recorded for this thread only. Where that record does not come back, time is not
 * known to be complete; when it stays away, others get the records. A buffer with a kernel that
 * runs for seconds is late as well, so this is no final verdict.
 */
static void send_canary(void)
{
    int version;
    if (own.driver_version != NULL)
        (void)own.driver_version(&version);
}

/* After a flush. *seen: canaries so far. */
static bool has_returned(uint64_t *seen)
{
    uint64_t now = ew_cuda_canaries();
    bool returned = own.driver_version == NULL || now != *seen;
    *seen = now;
    return returned;
}

static bool wait_for_stop(uint32_t ms)
{
    struct timespec until = after_ms(ms);
    (void)pthread_mutex_lock(&own.lock);
    if (!own.stopping)
        (void)pthread_cond_timedwait(&own.changed, &own.lock, &until);
    bool stopping = own.stopping;
    (void)pthread_mutex_unlock(&own.lock);
    return stopping;
}

static void flush(uint32_t flags, uint64_t *seen, uint32_t *missed)
{
    struct ew_gpu_ring_header *header = ew_cuda_ring_header();
    uint64_t now_ns = ew_cuda_now();
    compare_clocks();
    send_canary();
    bool flushed = own.api.flush(flags) == CUPTI_OK;
    if (has_returned(seen)) {
        *missed = 0;
        if (flushed)
            __atomic_store_n(&header->flushed_ns, now_ns, __ATOMIC_RELEASE);
    } else if (*seen > 0 && *missed <= CANARIES_MISSED) {
        ++*missed;
    }
}

static void *run(void *arg)
{
    uint64_t seen = 0;
    uint32_t missed = 0;
    bool taken = false;
    (void)arg;
    (void)pthread_setname_np(pthread_self(), "etwatch-cuda");
    if (own.api.enable_driver_call != NULL &&
        own.api.enable_driver_call(CANARY_CBID, 1) == CUPTI_OK) {
        void *function = ew_cuda_driver_function("cuDriverGetVersion");
        ew_cuda_set_canary((uint32_t)syscall(SYS_gettid), CANARY_CBID);
        memcpy(&own.driver_version, &function, sizeof own.driver_version);
    }
    while (!wait_for_stop(FLUSH_MS)) {
        flush(0, &seen, &missed);
        bool now_taken = missed > CANARIES_MISSED;
        if (now_taken && !taken)
            ew_cuda_ring_set_state(EW_GPU_RING_TAKEN, "the program uses CUPTI itself");
        else if (!now_taken && taken)
            ew_cuda_ring_set_state(EW_GPU_RING_ACTIVE, NULL);
        taken = now_taken;
    }
    if (!taken) {
        flush(CUPTI_FLUSH_FORCED, &seen, &missed);
        ew_cuda_ring_set_state(EW_GPU_RING_CLOSED, NULL);
    }
    (void)pthread_mutex_lock(&own.lock);
    own.ended = true;
    (void)pthread_cond_broadcast(&own.changed);
    (void)pthread_mutex_unlock(&own.lock);
    return NULL;
}

static void at_exit(void)
{
    if (own.pid != getpid()) /* a forked child has no thread */
        return;
    struct timespec until = after_ms(EXIT_WAIT_MS);
    (void)pthread_mutex_lock(&own.lock);
    own.stopping = true;
    (void)pthread_cond_broadcast(&own.changed);
    while (!own.ended && pthread_cond_timedwait(&own.changed, &own.lock, &until) == 0)
        continue;
    (void)pthread_mutex_unlock(&own.lock);
}

static bool make_condition(void)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return false;
    bool made = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                pthread_cond_init(&own.changed, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    return made;
}

static bool start_thread(void)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    own.pid = getpid();
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ready = make_condition() && pthread_attr_init(&attributes) == 0;
    if (ready) {
        (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        ready = pthread_create(&thread, &attributes, run, NULL) == 0;
        (void)pthread_attr_destroy(&attributes);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ready;
}

/* --------------------------------------------------------------------------- start */

static const char *text_of(int code)
{
    const char *text = NULL;
    if (own.api.error_string == NULL || own.api.error_string(code, &text) != CUPTI_OK)
        return "unknown error";
    return text != NULL ? text : "unknown error";
}

static void ignore_callback(void)
{
}

/* Another tool inside this process has subscribed. */
static bool is_busy(void)
{
    void *subscriber = NULL;
    if (own.api.subscribe == NULL || own.api.unsubscribe == NULL)
        return false;
    int code = own.api.subscribe(&subscriber, ignore_callback, NULL);
    if (code == CUPTI_OK)
        (void)own.api.unsubscribe(subscriber);
    return code == CUPTI_BUSY;
}

static bool enable_calls(bool driver, int (*enable)(uint32_t cbid, uint8_t enable), int kind)
{
    uint32_t count, enabled = 0;
    const struct ew_gpu_call_info *calls = ew_gpu_calls(driver, &count);
    if (enable == NULL)
        return own.api.enable(kind) == CUPTI_OK;
    /* Older versions refuse the numbers that they do not know. */
    for (uint32_t i = 0; i < count; i++)
        enabled += enable(calls[i].cbid, 1) == CUPTI_OK;
    return enabled > 0 || own.api.enable(kind) == CUPTI_OK;
}

static int enable_all(void)
{
    static const int wanted[] = {CUPTI_MEMCPY, CUPTI_MEMCPY_PEER, CUPTI_MEMSET, CUPTI_MARKER};
    int code = own.api.enable(CUPTI_CONCURRENT_KERNEL);
    if (code != CUPTI_OK)
        return code;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        (void)own.api.enable(wanted[i]);
    (void)enable_calls(false, own.api.enable_runtime_call, CUPTI_RUNTIME);
    (void)enable_calls(true, own.api.enable_driver_call, CUPTI_DRIVER);
    return CUPTI_OK;
}

static bool start_cupti(void)
{
    uint32_t version = 0;
    if (!own.resolved)
        return false;
    (void)own.api.version(&version);
    ew_cuda_ring_header()->cupti_version = version;
    if (is_busy()) {
        (void)snprintf(own.why, sizeof own.why, "another profiler uses CUPTI in this process");
        return false;
    }
    ew_cuda_records_init(&own.api);
    if (own.api.thread_id_type != NULL)
        (void)own.api.thread_id_type(CUPTI_THREAD_ID_SYSTEM);
    own.own_clock =
        own.api.register_timestamp != NULL && own.api.register_timestamp(ew_cuda_now) == CUPTI_OK;
    compare_clocks();
    int code = own.api.register_callbacks(ew_cuda_request, ew_cuda_complete);
    if (code == CUPTI_OK)
        code = enable_all();
    if (code != CUPTI_OK)
        (void)snprintf(own.why, sizeof own.why, "CUPTI does not start: %.100s (%d)", text_of(code),
                       code);
    return code == CUPTI_OK;
}

static void start(void)
{
    const char *address = getenv(EW_GPU_RING_VARIABLE);
    if (address == NULL || address[0] != '@' || strlen(address) < 2 || strlen(address) > 100 ||
        !ew_cuda_ring_open(address))
        return;
    (void)pthread_once(&load_once, load);
    if (!start_cupti()) {
        ew_cuda_ring_set_state(EW_GPU_RING_FAILED, own.why);
        return;
    }
    ew_cuda_ring_set_state(EW_GPU_RING_ACTIVE, NULL);
    if (start_thread())
        (void)atexit(at_exit);
    else
        ew_cuda_ring_set_state(EW_GPU_RING_FAILED, "no thread could be created");
}

/* Called by the driver. 1: it worked; anything else would be an error of cuInit. */
EXPORT int InitializeInjection(void);
EXPORT int InitializeInjection(void)
{
    (void)pthread_once(&start_once, start);
    return 1;
}

/* Called by NVTX (NVTX_INJECTION64_PATH) at the first range. CUPTI records the ranges. */
EXPORT int InitializeInjectionNvtx2(void *table);
EXPORT int InitializeInjectionNvtx2(void *table)
{
    if (getenv(EW_GPU_RING_VARIABLE) == NULL)
        return 0;
    (void)pthread_once(&load_once, load);
    return own.resolved && own.api.nvtx != NULL ? own.api.nvtx(table) : 0;
}
