/* SPDX-License-Identifier: MIT */
/*
 * Owns the processes that ran, by pid, and when the gauges of each are due. A process is in the
 * queue exactly if one of its gauges is stale; the queue is walked once per drain, so idle
 * processes cost nothing. At most READS_MAX are read in one drain, so that the first drain, in
 * which all processes are new, is no long pause. If all processes are watched, a new process is not
 * read for the first 200 ms: during a build, most have exited by then.
 */
#include "source/ebpf/ebpf.h"

#include <string.h>

#include "base/alloc.h"
#include "source/poll/slow_gauges.h"

enum { READS_MAX = 128 };
static const uint64_t patience_ns = 200 * 1000 * 1000ULL;

struct item {
    uint32_t pid; /* 0: free */
    bool queued;
    struct ew_slow_gauges_item slow;
};

struct ew_ebpf_proc_gauges {
    struct ew_ebpf_source *source;
    struct ew_proc_files files;
    struct ew_slow_gauges slow;
    struct item *items; /* open addressing */
    uint32_t count, size, max;
    uint32_t *queue;
    uint32_t queue_count, queue_size;
    uint64_t patience_ns; /* new processes are not read for this long */
};

/* Threads of the process that were on a CPU when the CPUs were last read. */
static uint32_t on_cpu(void *ctx, uint32_t pid)
{
    const struct ew_ebpf_source *source = ((struct ew_ebpf_proc_gauges *)ctx)->source;
    uint32_t count = 0;
    for (uint32_t i = 0; i < source->running_count; i++)
        if (source->object.running[source->running[i].cpu].thread.entry.tgid == pid)
            count++;
    return count;
}

int ew_ebpf_proc_gauges_new(struct ew_ebpf_source *source, const struct ew_source_config *config,
                            struct ew_ebpf_proc_gauges **ret_gauges)
{
    *ret_gauges = NULL;
    struct ew_slow_gauges slow = {0};
    ew_slow_gauges_init(&slow, config);
    if (!ew_slow_gauges_wanted(&slow))
        return 0;
    struct ew_ebpf_proc_gauges *proc_gauges = ew_calloc(1, sizeof *proc_gauges);
    if (proc_gauges == NULL)
        return ETWATCH_ENOMEM;
    proc_gauges->source = source;
    proc_gauges->max = config->max_processes;
    proc_gauges->patience_ns = config->filter.all ? patience_ns : 0;
    proc_gauges->slow = slow;
    proc_gauges->slow.files = &proc_gauges->files;
    proc_gauges->slow.on_cpu = on_cpu;
    proc_gauges->slow.ctx = proc_gauges;
    if (ew_proc_files_open(&proc_gauges->files, config->proc_root, NULL) < 0) {
        ew_free(proc_gauges);
        return 0; /* without /proc no gauge is available */
    }
    *ret_gauges = proc_gauges;
    return 0;
}

void ew_ebpf_proc_gauges_free(struct ew_ebpf_proc_gauges *proc_gauges)
{
    if (proc_gauges == NULL)
        return;
    ew_proc_files_close(&proc_gauges->files);
    ew_free(proc_gauges->slow.listed.ids);
    ew_free(proc_gauges->items);
    ew_free(proc_gauges->queue);
    ew_free(proc_gauges);
}

struct etwatch_metric_set
ew_ebpf_proc_gauges_available(const struct ew_ebpf_proc_gauges *proc_gauges)
{
    struct etwatch_metric_set available = {{0}};
    if (proc_gauges == NULL)
        return available;
    available = ew_slow_gauge_states;
    etwatch_metric_set_add(&available, ETWATCH_M_handles);
    etwatch_metric_set_add(&available, ETWATCH_M_handles_peak);
    if (proc_gauges->files.own_ids)
        etwatch_metric_set_add(&available, ETWATCH_M_io_priority);
    return available;
}

/* ----------------------------------------------------------------------- the table */

/* The item of pid, or the free one where it belongs. */
static struct item *find(const struct ew_ebpf_proc_gauges *proc_gauges, uint32_t pid)
{
    uint32_t at = (pid * 2654435761u) & (proc_gauges->size - 1);
    while (proc_gauges->items[at].pid != 0 && proc_gauges->items[at].pid != pid)
        at = (at + 1) & (proc_gauges->size - 1);
    return &proc_gauges->items[at];
}

static bool grow(struct ew_ebpf_proc_gauges *proc_gauges)
{
    if (proc_gauges->count * 2 < proc_gauges->size)
        return true;
    uint32_t old_size = proc_gauges->size, size = old_size == 0 ? 256 : old_size * 2;
    struct item *old = proc_gauges->items, *items = ew_calloc(size, sizeof *items);
    if (items == NULL)
        return false;
    proc_gauges->items = items;
    proc_gauges->size = size;
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i].pid != 0)
            *find(proc_gauges, old[i].pid) = old[i];
    ew_free(old);
    return true;
}

/* Items that follow in the same run are inserted again. */
static void drop(struct ew_ebpf_proc_gauges *proc_gauges, struct item *item)
{
    uint32_t mask = proc_gauges->size - 1, at = (uint32_t)(item - proc_gauges->items);
    item->pid = 0;
    proc_gauges->count--;
    for (at = (at + 1) & mask; proc_gauges->items[at].pid != 0; at = (at + 1) & mask) {
        struct item moved = proc_gauges->items[at];
        proc_gauges->items[at].pid = 0;
        *find(proc_gauges, moved.pid) = moved;
    }
}

static void enqueue(struct ew_ebpf_proc_gauges *proc_gauges, struct item *item)
{
    if (proc_gauges->queue_count == proc_gauges->queue_size) {
        uint32_t size = proc_gauges->queue_size == 0 ? 256 : proc_gauges->queue_size * 2;
        uint32_t *queue = ew_realloc_array(proc_gauges->queue, size, sizeof *queue);
        if (queue == NULL)
            return; /* the next run of the process enqueues it */
        proc_gauges->queue = queue;
        proc_gauges->queue_size = size;
    }
    proc_gauges->queue[proc_gauges->queue_count++] = item->pid;
    item->queued = true;
}

void ew_ebpf_proc_gauges_ran(struct ew_ebpf_proc_gauges *proc_gauges, uint32_t pid)
{
    if (proc_gauges == NULL || pid == 0 || !grow(proc_gauges))
        return;
    struct item *item = find(proc_gauges, pid);
    if (item->pid == 0) {
        if (proc_gauges->count == proc_gauges->max)
            return;
        *item = (struct item){.pid = pid};
        for (int i = 0; i < EW_SLOW_GAUGE_COUNT; i++)
            item->slow.due_ns[i] = proc_gauges->source->last_drain_ns + proc_gauges->patience_ns;
        proc_gauges->count++;
    }
    ew_slow_gauges_ran(&item->slow);
    if (!item->queued)
        enqueue(proc_gauges, item);
}

void ew_ebpf_proc_gauges_gone(struct ew_ebpf_proc_gauges *proc_gauges, uint32_t pid)
{
    if (proc_gauges == NULL || proc_gauges->size == 0)
        return;
    struct item *item = find(proc_gauges, pid);
    if (item->pid == pid)
        drop(proc_gauges, item);
}

/* ------------------------------------------------------------------------- reading */

static void deliver(const struct ew_facts *facts, uint32_t pid, uint64_t now_ns, uint32_t has,
                    const uint64_t *gauge)
{
    struct ew_reading reading = {
        .kind = EW_READING_AT, .pid = pid, .t_ns = now_ns, .gauge_has = has};
    memcpy(reading.gauge, gauge, sizeof reading.gauge);
    facts->reading(facts->ctx, &reading);
}

void ew_ebpf_proc_gauges_read(struct ew_ebpf_proc_gauges *proc_gauges, uint64_t now_ns,
                              const struct ew_facts *facts)
{
    uint32_t kept = 0, reads = 0;
    if (proc_gauges == NULL || proc_gauges->size == 0)
        return;
    for (uint32_t i = 0; i < proc_gauges->queue_count; i++) {
        uint32_t pid = proc_gauges->queue[i];
        struct item *item = find(proc_gauges, pid);
        if (item->pid == 0)
            continue; /* exited meanwhile */
        if (reads < READS_MAX && ew_slow_gauges_due_ns(&proc_gauges->slow, &item->slow) <= now_ns) {
            uint64_t gauge[EW_GAUGE_COUNT] = {0};
            uint32_t has = ew_slow_gauges_read(&proc_gauges->slow, pid, &item->slow, now_ns, gauge);
            reads++;
            if (has == 0) { /* exited, or access denied */
                drop(proc_gauges, item);
                continue;
            }
            deliver(facts, pid, now_ns, has, gauge);
        }
        item->queued = ew_slow_gauges_due_ns(&proc_gauges->slow, &item->slow) != UINT64_MAX;
        if (item->queued)
            proc_gauges->queue[kept++] = pid;
    }
    proc_gauges->queue_count = kept;
}
