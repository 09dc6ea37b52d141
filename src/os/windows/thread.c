/* SPDX-License-Identifier: MIT */
/* Threads, locks and conditions. */
#include <errno.h>
#include <process.h>
#include <windows.h>

#include "base/alloc.h"
#include "os/os.h"

#include <etwatch/etwatch.h>

struct ew_thread_handle {
    HANDLE handle;
    unsigned id;
    void (*run)(void *);
    void *arg;
    struct ew_alloc_limit *limit; /* of the thread that started it */
};

static unsigned __stdcall enter(void *arg)
{
    struct ew_thread_handle *thread = arg;
    (void)ew_alloc_limit_use(thread->limit);
    thread->run(thread->arg);
    return 0;
}

int ew_os_thread_start(void (*run)(void *), void *arg, struct ew_thread_handle **ret_thread)
{
    struct ew_thread_handle *thread = ew_calloc(1, sizeof *thread);
    if (!thread)
        return ETWATCH_ENOMEM;
    thread->run = run;
    thread->arg = arg;
    thread->limit = ew_alloc_limit_in_use();
    thread->handle = (HANDLE)_beginthreadex(NULL, 0, enter, thread, 0, &thread->id);
    if (!thread->handle) {
        int code = errno == EAGAIN ? ETWATCH_ELIMIT : ETWATCH_EOS;
        ew_free(thread);
        return code;
    }
    *ret_thread = thread;
    return 0;
}

void ew_os_thread_join(struct ew_thread_handle *thread)
{
    if (!thread)
        return;
    (void)WaitForSingleObject(thread->handle, INFINITE);
    (void)CloseHandle(thread->handle);
    ew_free(thread);
}

void ew_os_thread_detach(struct ew_thread_handle *thread)
{
    (void)CloseHandle(thread->handle);
    ew_free(thread);
}

bool ew_os_thread_is_self(const struct ew_thread_handle *thread)
{
    return thread && thread->id == GetCurrentThreadId();
}

/* Recursive, like all critical sections: a callback may call functions of the monitor that runs it.
 */
struct ew_mutex {
    CRITICAL_SECTION lock;
};

int ew_mutex_new(struct ew_mutex **ret_mutex)
{
    struct ew_mutex *mutex = ew_calloc(1, sizeof *mutex);
    if (!mutex)
        return ETWATCH_ENOMEM;
    InitializeCriticalSection(&mutex->lock);
    *ret_mutex = mutex;
    return 0;
}

void ew_mutex_free(struct ew_mutex *mutex)
{
    if (!mutex)
        return;
    DeleteCriticalSection(&mutex->lock);
    ew_free(mutex);
}

void ew_mutex_lock(struct ew_mutex *mutex)
{
    EnterCriticalSection(&mutex->lock);
}

void ew_mutex_unlock(struct ew_mutex *mutex)
{
    LeaveCriticalSection(&mutex->lock);
}

struct ew_cond {
    CONDITION_VARIABLE cond;
};

int ew_cond_new(struct ew_cond **ret_cond)
{
    struct ew_cond *cond = ew_calloc(1, sizeof *cond);
    if (!cond)
        return ETWATCH_ENOMEM;
    InitializeConditionVariable(&cond->cond);
    *ret_cond = cond;
    return 0;
}

void ew_cond_free(struct ew_cond *cond)
{
    ew_free(cond);
}

/* Wakes all waiters, since each may wait for a different condition. */
void ew_cond_signal(struct ew_cond *cond)
{
    WakeAllConditionVariable(&cond->cond);
}

void ew_os_sleep_ms(uint32_t ms)
{
    Sleep(ms);
}

bool ew_cond_wait(struct ew_cond *cond, struct ew_mutex *mutex, int timeout_ms)
{
    DWORD wait_ms = timeout_ms < 0 ? INFINITE : (DWORD)timeout_ms;
    return SleepConditionVariableCS(&cond->cond, &mutex->lock, wait_ms) != 0;
}
