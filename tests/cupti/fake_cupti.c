/* SPDX-License-Identifier: MIT */
/*
 * A fake CUPTI for tests: the activity interface as NVIDIA's headers of CUDA 13 describe it. The
 * record layouts are written anew here, not taken from etwatch. Operations that are not done yet
 * stay in the library until a flush finds them done, or is forced.
 *
 * FAKE_CUPTI has words: version=N, busy (another subscriber), fail (no kernel records), no-clock
 * (no own time stamps: it counts from another time), all-calls (no selection of calls), block=MS
 * (each flush takes so long), silent=MS (after this time buffers are delivered to others: a
 * profiler took over).
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fake_cupti.h"

#pragma GCC visibility push(default)

enum { OK = 0, INVALID = 1, LIMIT = 12, BUSY = 39, KINDS = 64, CALLS = 1024, PENDING = 65536 };
enum { MEMCPY = 1, MEMSET = 2, DRIVER = 4, RUNTIME = 5, KERNEL = 10, MARKER = 12, SYNC = 38 };
static const uint64_t other_epoch_ns = 5000000000000;

static struct {
    pthread_mutex_t lock;
    void (*request)(uint8_t **buffer, size_t *size, size_t *records_max);
    void (*complete)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
    uint64_t (*now)(void);
    bool enabled[KINDS], runtime_calls[CALLS], driver_calls[CALLS];
    struct fake_operation pending[PENDING];
    uint32_t pending_count;
    uint64_t dropped, begun_ns, difference;
    uint8_t *buffer;
    size_t size, used;
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *word(const char *name)
{
    const char *words = getenv("FAKE_CUPTI");
    const char *at = words == NULL ? NULL : strstr(words, name);
    return at == NULL ? NULL : at + strlen(name);
}

static uint64_t clock_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t cupti_now(void)
{
    return own.now != NULL ? own.now() : clock_of(CLOCK_MONOTONIC) + other_epoch_ns;
}

/* A time of the driver as CUPTI reports it. The difference is the tightest of some pairs. */
static uint64_t time_of(uint64_t monotonic_ns)
{
    static uint64_t difference;
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 20 && difference == 0; i++) {
        uint64_t before = clock_of(CLOCK_MONOTONIC), now = cupti_now();
        uint64_t width = clock_of(CLOCK_MONOTONIC) - before;
        own.difference = width < best ? now - before : own.difference;
        best = width < best ? width : best;
    }
    difference = own.difference;
    return difference + monotonic_ns;
}

int cuptiGetVersion(uint32_t *version);
int cuptiGetVersion(uint32_t *version)
{
    const char *text = word("version=");
    *version = text == NULL ? 130100 : (uint32_t)strtoul(text, NULL, 10);
    return OK;
}

int cuptiActivityRegisterCallbacks(void (*request)(uint8_t **, size_t *, size_t *),
                                   void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t));
int cuptiActivityRegisterCallbacks(void (*request)(uint8_t **, size_t *, size_t *),
                                   void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t))
{
    own.begun_ns = clock_of(CLOCK_MONOTONIC);
    own.request = request;
    own.complete = complete;
    return OK;
}

int cuptiActivityEnable(int kind);
int cuptiActivityEnable(int kind)
{
    if (kind < 0 || kind >= KINDS || (kind == KERNEL && word("fail") != NULL))
        return INVALID;
    own.enabled[kind] = true;
    return OK;
}

int cuptiActivityDisable(int kind);
int cuptiActivityDisable(int kind)
{
    own.enabled[kind] = false;
    return OK;
}

static int enable_call(bool *calls, uint32_t cbid, uint8_t enable)
{
    if (word("all-calls") != NULL || cbid >= CALLS)
        return INVALID;
    calls[cbid] = enable != 0;
    return OK;
}

int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable);
int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable)
{
    return enable_call(own.runtime_calls, cbid, enable);
}

int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable);
int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable)
{
    return enable_call(own.driver_calls, cbid, enable);
}

int cuptiGetTimestamp(uint64_t *ns);
int cuptiGetTimestamp(uint64_t *ns)
{
    *ns = cupti_now();
    return OK;
}

int cuptiActivityRegisterTimestampCallback(uint64_t (*now)(void));
int cuptiActivityRegisterTimestampCallback(uint64_t (*now)(void))
{
    if (word("no-clock") != NULL)
        return INVALID;
    own.now = now;
    return OK;
}

int cuptiSetThreadIdType(int type);
int cuptiSetThreadIdType(int type)
{
    return type == 1 ? OK : INVALID;
}

int cuptiSubscribe(void **subscriber, void (*callback)(void), void *data);
int cuptiSubscribe(void **subscriber, void (*callback)(void), void *data)
{
    *subscriber = data;
    return callback == NULL ? INVALID : word("busy") != NULL ? BUSY : OK;
}

int cuptiUnsubscribe(void *subscriber);
int cuptiUnsubscribe(void *subscriber)
{
    (void)subscriber;
    return OK;
}

int cuptiGetResultString(int code, const char **text);
int cuptiGetResultString(int code, const char **text)
{
    *text = code == INVALID ? "CUPTI_ERROR_INVALID_PARAMETER" : "CUPTI_ERROR";
    return OK;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped);
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
    (void)context, (void)stream;
    *dropped = own.dropped;
    own.dropped = 0;
    return OK;
}

/* ------------------------------------------------------------------------ records */

/* Sizes of the newest records. */
static size_t size_of(uint32_t kind)
{
    return kind == KERNEL   ? 216
           : kind == MEMCPY ? 96
           : kind == MEMSET ? 88
           : kind == MARKER ? 56
           : kind == SYNC   ? 56
                            : 40;
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
    uint8_t *next = buffer;
    uint32_t kind;
    if (*record != NULL) {
        memcpy(&kind, *record, sizeof kind);
        next = (uint8_t *)*record + size_of(kind);
    }
    if (next >= buffer + valid)
        return LIMIT;
    *record = next;
    return OK;
}

static void deliver(void)
{
    uint8_t *buffer = own.buffer;
    size_t size = own.size, used = own.used;
    own.buffer = NULL;
    if (buffer == NULL)
        return;
    const char *silent = word("silent=");
    if (silent != NULL &&
        clock_of(CLOCK_MONOTONIC) > own.begun_ns + strtoul(silent, NULL, 10) * 1000000u)
        free(buffer); /* as the functions of another client do */
    else
        own.complete(NULL, 0, buffer, size, used);
}

static uint8_t *room(uint32_t kind)
{
    size_t wanted = size_of(kind), most = 0;
    if (own.request == NULL)
        return NULL;
    if (own.buffer != NULL && own.used + wanted > own.size)
        deliver();
    if (own.buffer == NULL) {
        own.used = 0;
        own.request(&own.buffer, &own.size, &most);
    }
    if (own.buffer == NULL) {
        own.dropped++;
        return NULL;
    }
    uint8_t *at = own.buffer + own.used;
    own.used += wanted;
    memset(at, 0, wanted);
    memcpy(at, &kind, sizeof kind);
    return at;
}

static void put32(uint8_t *record, size_t at, uint32_t value)
{
    memcpy(record + at, &value, sizeof value);
}

static void put64(uint8_t *record, size_t at, uint64_t value)
{
    memcpy(record + at, &value, sizeof value);
}

static void put_operation(const struct fake_operation *o)
{
    if (o->kind >= KINDS || !own.enabled[o->kind])
        return;
    uint8_t *record = room(o->kind);
    if (record == NULL)
        return;
    if (o->kind == SYNC) {
        put32(record, 4, 4);
        put64(record, 8, time_of(o->start));
        put64(record, 16, time_of(o->end));
        put32(record, 24, o->correlation);
        put32(record, 28, o->context);
        return;
    }
    put64(record, 16, time_of(o->start));
    put64(record, 24, time_of(o->end));
    size_t at = o->kind == KERNEL ? 40 : 32;
    put32(record, at, o->device);
    put32(record, at + 4, o->context);
    put32(record, at + 8, o->stream);
    put32(record, o->kind == KERNEL ? 92 : 44, o->correlation);
    if (o->kind == KERNEL)
        memcpy(record + 104, &o->name, sizeof o->name);
    else
        put64(record, 8, o->bytes);
    if (o->kind == MEMCPY)
        record[4] = o->copy_kind;
}

void fake_cupti_operation(const struct fake_operation *operation);
void fake_cupti_operation(const struct fake_operation *operation)
{
    pthread_mutex_lock(&own.lock);
    if (own.pending_count < PENDING)
        own.pending[own.pending_count++] = *operation;
    else
        own.dropped += own.enabled[operation->kind % KINDS];
    pthread_mutex_unlock(&own.lock);
}

void fake_cupti_call(int driver, uint32_t cbid, uint32_t correlation, uint64_t start, uint64_t end,
                     uint32_t result);
void fake_cupti_call(int driver, uint32_t cbid, uint32_t correlation, uint64_t start, uint64_t end,
                     uint32_t result)
{
    pthread_mutex_lock(&own.lock);
    const bool *calls = driver ? own.driver_calls : own.runtime_calls;
    uint32_t kind = driver ? DRIVER : RUNTIME;
    uint8_t *record = own.enabled[kind] || calls[cbid] ? room(kind) : NULL;
    if (record != NULL) {
        put32(record, 4, cbid);
        put64(record, 8, time_of(start));
        put64(record, 16, time_of(end));
        put32(record, 24, (uint32_t)getpid());
        put32(record, 28, (uint32_t)syscall(SYS_gettid));
        put32(record, 32, correlation);
        put32(record, 36, result);
    }
    pthread_mutex_unlock(&own.lock);
}

void fake_cupti_marker(uint32_t id, uint32_t flags, const char *name);
void fake_cupti_marker(uint32_t id, uint32_t flags, const char *name)
{
    pthread_mutex_lock(&own.lock);
    uint8_t *record = own.enabled[MARKER] ? room(MARKER) : NULL;
    if (record != NULL) {
        put32(record, 4, flags);
        put64(record, 8, cupti_now());
        put32(record, 16, id);
        put32(record, 20, 2);
        put32(record, 24, (uint32_t)getpid());
        put32(record, 28, (uint32_t)syscall(SYS_gettid));
        memcpy(record + 40, &name, sizeof name);
    }
    pthread_mutex_unlock(&own.lock);
}

int cuptiActivityFlushAll(uint32_t flags);
int cuptiActivityFlushAll(uint32_t flags)
{
    const char *block = word("block=");
    if (block != NULL)
        usleep((useconds_t)strtoul(block, NULL, 10) * 1000);
    pthread_mutex_lock(&own.lock);
    uint64_t now_ns = clock_of(CLOCK_MONOTONIC);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < own.pending_count; i++) {
        if (own.pending[i].end <= now_ns || (flags & 1) != 0)
            put_operation(&own.pending[i]);
        else
            own.pending[kept++] = own.pending[i];
    }
    own.pending_count = kept;
    deliver();
    pthread_mutex_unlock(&own.lock);
    return OK;
}
