/* SPDX-License-Identifier: MIT */
/*
 * The public questions about one process. Owns nothing between calls: the facts of a single look
 * become the caller's structs, raw times become Unix times by an anchor taken in the same call.
 */
#include <etwatch/process.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/facts.h"
#include "os/os.h"
#include "source/snapshot.h"

struct asked {
    uint32_t pid; /* 0: all of them */
    bool found;
    uint64_t unix_zero_ns; /* Unix time of the raw clock's zero */
    struct ew_process_fact fact;
    struct etwatch_process_id *ids;
    struct etwatch_process_thread *threads;
    size_t max, count;
};

static void begin(struct asked *asked, uint32_t pid)
{
    uint64_t unix_ns, raw_ns;
    memset(asked, 0, sizeof *asked);
    ew_os_anchor(&unix_ns, &raw_ns);
    asked->pid = pid;
    asked->unix_zero_ns = unix_ns - raw_ns;
}

static struct etwatch_process_id identity(const struct asked *asked,
                                          const struct ew_process_fact *fact)
{
    return (struct etwatch_process_id){.pid = fact->pid,
                                       .ppid = fact->has & EW_HAS_PPID ? fact->ppid : 0,
                                       .start_ns = asked->unix_zero_ns + fact->start_ns,
                                       .start_raw_ns = fact->start_ns};
}

static void on_process(void *ctx, const struct ew_process_fact *fact)
{
    struct asked *asked = ctx;
    if (fact->kind != EW_PROCESS_SEEN)
        return;
    if (asked->pid == 0) {
        if (asked->count < asked->max)
            asked->ids[asked->count] = identity(asked, fact);
        asked->count++;
    } else if (fact->pid == asked->pid) {
        asked->fact = *fact;
        asked->found = true;
    }
}

static void on_reading(void *ctx, const struct ew_reading *reading)
{
    struct asked *asked = ctx;
    if (reading->pid != asked->pid || reading->tid == 0 || asked->threads == NULL)
        return;
    if (asked->count < asked->max) {
        struct etwatch_process_thread *thread = &asked->threads[asked->count];
        *thread = (struct etwatch_process_thread){.tid = reading->tid};
        thread->start_ns = asked->unix_zero_ns + reading->start_ns;
#define TAKE(name)                                              \
    if (reading->counter_has & EW_HAS_C(name)) {                \
        thread->name = reading->counter[EW_C_##name];           \
        etwatch_metric_set_add(&thread->has, ETWATCH_M_##name); \
    }
        TAKE(cpu_ns)
        TAKE(cpu_user_ns)
        TAKE(cpu_kernel_ns)
#undef TAKE
    }
    asked->count++;
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    (void)ctx, (void)loss;
}

static int look(struct asked *asked, bool threads, struct ew_error *error)
{
    struct ew_facts facts = {
        .ctx = asked, .process = on_process, .reading = on_reading, .loss = on_loss};
    int rc = asked->pid == 0 ? ew_snapshot_all(&facts, error)
                             : ew_snapshot_process(asked->pid, threads, &facts, error);
    if (rc == 0 && asked->pid != 0 && !asked->found)
        rc = ew_error_set(error, ETWATCH_ENOENT, 0, "no process %u", asked->pid);
    return rc;
}

static void fill(struct etwatch_sample *sample, const struct asked *asked)
{
    const struct ew_process_fact *fact = &asked->fact;
    memset(sample, 0, sizeof *sample);
    sample->type = ETWATCH_TYPE_SAMPLE;
    sample->source = ETWATCH_SOURCE_POLL;
    sample->flags = ETWATCH_SAMPLE_COMPLETE;
    sample->pid = fact->pid;
    if (fact->has & EW_HAS_PPID) {
        sample->flags |= ETWATCH_SAMPLE_HAS_PPID;
        sample->ppid = fact->ppid;
    }
    if (fact->has & EW_HAS_SESSION) {
        sample->flags |= ETWATCH_SAMPLE_HAS_SESSION;
        sample->session_id = fact->session_id;
    }
    sample->start_ns = asked->unix_zero_ns + fact->start_ns;
    sample->t_ns = asked->unix_zero_ns + fact->t_ns;
    sample->dt_ns = fact->t_ns > fact->start_ns ? fact->t_ns - fact->start_ns : 0;
#define EW_X(name)                                              \
    if (fact->counter_has & EW_HAS_C(name)) {                   \
        sample->name = fact->counter[EW_C_##name];              \
        etwatch_metric_set_add(&sample->has, ETWATCH_M_##name); \
    }
    EW_COUNTERS(EW_X)
#undef EW_X
#define EW_X(name)                                                          \
    if (fact->gauge_has & EW_HAS_G(name)) {                                 \
        memcpy(&sample->name, &fact->gauge[EW_G_##name], sizeof(uint64_t)); \
        etwatch_metric_set_add(&sample->has, ETWATCH_M_##name);             \
    }
    EW_GAUGES(EW_X)
#undef EW_X
}

int etwatch_process_read(uint32_t pid, uint32_t flags, struct etwatch_sample *ret_sample,
                         char *buffer, size_t buffer_size, struct etwatch_process_id *ret_id,
                         struct etwatch_error_info *reterr)
{
    struct ew_error error = {0};
    struct asked asked;
    struct etwatch_sample sample;
    if (pid == 0 || ret_sample == NULL || ret_sample->size < 2 * sizeof(uint32_t) ||
        (flags & ~(uint32_t)ETWATCH_PROCESS_THREAD_SUMS) != 0) {
        int rc =
            ew_error_set(&error, ETWATCH_EINVAL, 0, "a pid and a sample with its size are needed");
        ew_error_out(reterr, &error, error.code);
        return rc;
    }
    begin(&asked, pid);
    int rc = look(&asked, (flags & ETWATCH_PROCESS_THREAD_SUMS) != 0, &error);
    if (rc < 0) {
        ew_error_out(reterr, &error, error.code);
        return rc;
    }
    fill(&sample, &asked);
    if (buffer != NULL && buffer_size > 0 && (asked.fact.has & EW_HAS_NAME)) {
        size_t len = strnlen(asked.fact.name, sizeof asked.fact.name - 1);
        len = len < buffer_size - 1 ? len : buffer_size - 1;
        memcpy(buffer, asked.fact.name, len);
        buffer[len] = '\0';
        sample.name = buffer;
    }
    sample.size = ret_sample->size;
    memcpy(ret_sample, &sample, sample.size < sizeof sample ? sample.size : sizeof sample);
    if (ret_id != NULL)
        *ret_id = identity(&asked, &asked.fact);
    return 0;
}

int etwatch_process_threads(uint32_t pid, struct etwatch_process_thread *ret_threads, size_t max,
                            struct etwatch_error_info *reterr)
{
    struct ew_error error = {0};
    struct asked asked;
    begin(&asked, pid);
    asked.threads = ret_threads;
    asked.max = max;
    int rc = pid == 0 || ret_threads == NULL
                 ? ew_error_set(&error, ETWATCH_EINVAL, 0, "a pid and room for threads are needed")
                 : look(&asked, true, &error);
    if (rc < 0)
        ew_error_out(reterr, &error, error.code);
    return rc < 0 ? rc : (int)asked.count;
}

int etwatch_process_list(struct etwatch_process_id *ret_ids, size_t max,
                         struct etwatch_error_info *reterr)
{
    struct ew_error error = {0};
    struct asked asked;
    begin(&asked, 0);
    asked.ids = ret_ids;
    asked.max = ret_ids == NULL ? 0 : max;
    int rc = look(&asked, false, &error);
    if (rc < 0)
        ew_error_out(reterr, &error, error.code);
    return rc < 0 ? rc : (int)asked.count;
}
