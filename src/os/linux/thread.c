/* SPDX-License-Identifier: MIT */
/*
 * Threads, locks and conditions over pthreads.
 *
 * A thread of the library starts with all signals blocked: the program that uses the library
 * decides where its signals are handled, and none may be delivered to this thread.
 */
#include "os/os.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/alloc.h"

#include <etwatch/etwatch.h>

struct ew_thread_handle {
    pthread_t id;
    void (*run)(void *);
    void *arg;
    struct ew_alloc_limit *limit; /* of the thread that started it */
};

static void *enter(void *arg)
{
    struct ew_thread_handle *thread = arg;
    (void)ew_alloc_limit_use(thread->limit);
    thread->run(thread->arg);
    return NULL;
}

int ew_os_thread_start(void (*run)(void *), void *arg, struct ew_thread_handle **ret_thread)
{
    struct ew_thread_handle *thread = ew_calloc(1, sizeof *thread);
    if (!thread)
        return ETWATCH_ENOMEM;
    thread->run = run;
    thread->arg = arg;
    thread->limit = ew_alloc_limit_in_use();

    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread->id, NULL, enter, thread);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        ew_free(thread);
        return rc == EAGAIN ? ETWATCH_ELIMIT : ETWATCH_EOS;
    }
    *ret_thread = thread;
    return 0;
}

void ew_os_thread_join(struct ew_thread_handle *thread)
{
    if (!thread)
        return;
    (void)pthread_join(thread->id, NULL);
    ew_free(thread);
}

void ew_os_thread_detach(struct ew_thread_handle *thread)
{
    (void)pthread_detach(thread->id);
    ew_free(thread);
}

bool ew_os_thread_is_self(const struct ew_thread_handle *thread)
{
    return thread && pthread_equal(thread->id, pthread_self());
}

/* Recursive: a callback may call functions of the monitor that runs it. */
struct ew_mutex {
    pthread_mutex_t lock;
};

int ew_mutex_new(struct ew_mutex **ret_mutex)
{
    struct ew_mutex *mutex = ew_calloc(1, sizeof *mutex);
    if (!mutex)
        return ETWATCH_ENOMEM;
    pthread_mutexattr_t attr;
    int rc = pthread_mutexattr_init(&attr);
    if (rc == 0) {
        rc = pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
        if (rc == 0)
            rc = pthread_mutex_init(&mutex->lock, &attr);
        (void)pthread_mutexattr_destroy(&attr);
    }
    if (rc != 0) {
        ew_free(mutex);
        return ETWATCH_EOS;
    }
    *ret_mutex = mutex;
    return 0;
}

void ew_mutex_free(struct ew_mutex *mutex)
{
    if (!mutex)
        return;
    (void)pthread_mutex_destroy(&mutex->lock);
    ew_free(mutex);
}

void ew_mutex_lock(struct ew_mutex *mutex)
{
    (void)pthread_mutex_lock(&mutex->lock);
}

void ew_mutex_unlock(struct ew_mutex *mutex)
{
    (void)pthread_mutex_unlock(&mutex->lock);
}

struct ew_cond {
    pthread_cond_t cond;
};

/* Timed waits use CLOCK_MONOTONIC: a step of the wall clock must not extend them. */
int ew_cond_new(struct ew_cond **ret_cond)
{
    struct ew_cond *cond = ew_calloc(1, sizeof *cond);
    if (!cond)
        return ETWATCH_ENOMEM;
    pthread_condattr_t attr;
    int rc = pthread_condattr_init(&attr);
    if (rc == 0) {
        rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        if (rc == 0)
            rc = pthread_cond_init(&cond->cond, &attr);
        (void)pthread_condattr_destroy(&attr);
    }
    if (rc != 0) {
        ew_free(cond);
        return ETWATCH_EOS;
    }
    *ret_cond = cond;
    return 0;
}

void ew_cond_free(struct ew_cond *cond)
{
    if (!cond)
        return;
    (void)pthread_cond_destroy(&cond->cond);
    ew_free(cond);
}

/* Wakes all waiters, since each may wait for a different condition. */
void ew_cond_signal(struct ew_cond *cond)
{
    (void)pthread_cond_broadcast(&cond->cond);
}

void ew_os_sleep_ms(uint32_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

bool ew_cond_wait(struct ew_cond *cond, struct ew_mutex *mutex, int timeout_ms)
{
    if (timeout_ms < 0)
        return pthread_cond_wait(&cond->cond, &mutex->lock) == 0;
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return pthread_cond_timedwait(&cond->cond, &mutex->lock, &until) == 0;
}
