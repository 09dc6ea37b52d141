/* SPDX-License-Identifier: MIT */
/*
 * Owns: the processes that ran, by pid, and when each is to be read again. A process is in the
 * queue exactly if something of it is stale; the queue is walked once per drain, so idle processes
 * cost nothing however many there are. At most READS_MAX are read in one drain: the rest waits, so
 * that the start, when everybody is new, does not become one long pause. If everybody is watched,
 * who is new is not read in the drain that found him: on a machine that builds, most are gone by
 * the next.
 */
#include "source/ebpf/proc_gauges.h"

#include <string.h>

#include "base/alloc.h"
#include "source/ebpf/ebpf.h"
#include "source/poll/slow_gauges.h"

enum { READS_MAX = 128 };
static const uint64_t patience_ns = 200 * 1000 * 1000ULL;

struct item {
    uint32_t pid; /* 0: free */
    bool queued;
    struct ew_more_item more;
};

struct ew_aside {
    struct ew_ebpf_source *source;
    struct ew_proc_files files;
    struct ew_more more;
    struct item *items; /* open addressing */
    uint32_t count, size, max;
    uint32_t *queue;
    uint32_t queue_count, queue_size;
    uint64_t patience_ns; /* how long who is new is left alone */
};

/* Of those that the last settling found on a CPU. */
static uint32_t on_cpu(void *ctx, uint32_t pid)
{
    const struct ew_ebpf_source *source = ((struct ew_aside *)ctx)->source;
    uint32_t count = 0;
    for (uint32_t i = 0; i < source->running_count; i++)
        if (source->object.running[source->running[i].cpu].settled.entry.tgid == pid)
            count++;
    return count;
}

int ew_aside_new(struct ew_ebpf_source *source, const struct ew_source_config *config,
                 struct ew_aside **ret_aside)
{
    *ret_aside = NULL;
    struct ew_more more = {0};
    ew_more_init(&more, config);
    if (!ew_more_wanted(&more))
        return 0;
    struct ew_aside *aside = ew_calloc(1, sizeof *aside);
    if (aside == NULL)
        return ETWATCH_ENOMEM;
    aside->source = source;
    aside->max = config->max_processes;
    aside->patience_ns = config->filter.all ? patience_ns : 0;
    aside->more = more;
    aside->more.files = &aside->files;
    aside->more.on_cpu = on_cpu;
    aside->more.ctx = aside;
    if (ew_proc_files_open(&aside->files, config->proc_root, NULL) < 0) {
        ew_free(aside);
        return 0; /* no /proc: nothing of it can be told */
    }
    *ret_aside = aside;
    return 0;
}

void ew_aside_free(struct ew_aside *aside)
{
    if (aside == NULL)
        return;
    ew_proc_files_close(&aside->files);
    ew_free(aside->more.listed.ids);
    ew_free(aside->items);
    ew_free(aside->queue);
    ew_free(aside);
}

uint64_t ew_aside_available(const struct ew_aside *aside)
{
    if (aside == NULL)
        return 0;
    return ETWATCH_HAS(handles) | ETWATCH_HAS(handles_peak) | EW_MORE_STATE_METRICS |
           (aside->files.own_ids ? ETWATCH_HAS(io_priority) : 0);
}

/* ----------------------------------------------------------------------- the table */

/* Where pid is, or belongs. */
static struct item *find(const struct ew_aside *aside, uint32_t pid)
{
    uint32_t at = (pid * 2654435761u) & (aside->size - 1);
    while (aside->items[at].pid != 0 && aside->items[at].pid != pid)
        at = (at + 1) & (aside->size - 1);
    return &aside->items[at];
}

static bool grow(struct ew_aside *aside)
{
    if (aside->count * 2 < aside->size)
        return true;
    uint32_t old_size = aside->size, size = old_size == 0 ? 256 : old_size * 2;
    struct item *old = aside->items, *items = ew_calloc(size, sizeof *items);
    if (items == NULL)
        return false;
    aside->items = items;
    aside->size = size;
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i].pid != 0)
            *find(aside, old[i].pid) = old[i];
    ew_free(old);
    return true;
}

/* Whoever stands behind it in the same run moves up. */
static void drop(struct ew_aside *aside, struct item *item)
{
    uint32_t mask = aside->size - 1, at = (uint32_t)(item - aside->items);
    item->pid = 0;
    aside->count--;
    for (at = (at + 1) & mask; aside->items[at].pid != 0; at = (at + 1) & mask) {
        struct item moved = aside->items[at];
        aside->items[at].pid = 0;
        *find(aside, moved.pid) = moved;
    }
}

static void enqueue(struct ew_aside *aside, struct item *item)
{
    if (aside->queue_count == aside->queue_size) {
        uint32_t size = aside->queue_size == 0 ? 256 : aside->queue_size * 2;
        uint32_t *queue = ew_realloc_array(aside->queue, size, sizeof *queue);
        if (queue == NULL)
            return; /* it will run again */
        aside->queue = queue;
        aside->queue_size = size;
    }
    aside->queue[aside->queue_count++] = item->pid;
    item->queued = true;
}

void ew_aside_ran(struct ew_aside *aside, uint32_t pid)
{
    if (aside == NULL || pid == 0 || !grow(aside))
        return;
    struct item *item = find(aside, pid);
    if (item->pid == 0) {
        if (aside->count == aside->max)
            return;
        *item = (struct item){.pid = pid};
        for (int i = 0; i < EW_MORE_COUNT; i++)
            item->more.due_ns[i] = aside->source->last_drain_ns + aside->patience_ns;
        aside->count++;
    }
    ew_more_ran(&item->more);
    if (!item->queued)
        enqueue(aside, item);
}

void ew_aside_gone(struct ew_aside *aside, uint32_t pid)
{
    if (aside == NULL || aside->size == 0)
        return;
    struct item *item = find(aside, pid);
    if (item->pid == pid)
        drop(aside, item);
}

/* ------------------------------------------------------------------------- reading */

static void tell(const struct ew_facts *facts, uint32_t pid, uint64_t now_ns, uint32_t has,
                 const uint64_t *gauge)
{
    struct ew_reading reading = {
        .kind = EW_READING_AT, .pid = pid, .t_ns = now_ns, .gauge_has = has};
    memcpy(reading.gauge, gauge, sizeof reading.gauge);
    facts->reading(facts->ctx, &reading);
}

void ew_aside_read(struct ew_aside *aside, uint64_t now_ns, const struct ew_facts *facts)
{
    uint32_t kept = 0, reads = 0;
    if (aside == NULL || aside->size == 0)
        return;
    for (uint32_t i = 0; i < aside->queue_count; i++) {
        uint32_t pid = aside->queue[i];
        struct item *item = find(aside, pid);
        if (item->pid == 0)
            continue; /* gone meanwhile */
        if (reads < READS_MAX && ew_more_due_ns(&aside->more, &item->more) <= now_ns) {
            uint64_t gauge[EW_GAUGE_COUNT] = {0};
            uint32_t has = ew_more_read(&aside->more, pid, &item->more, now_ns, gauge);
            reads++;
            if (has == 0) { /* over, or not ours to read */
                drop(aside, item);
                continue;
            }
            tell(facts, pid, now_ns, has, gauge);
        }
        item->queued = ew_more_due_ns(&aside->more, &item->more) != UINT64_MAX;
        if (item->queued)
            aside->queue[kept++] = pid;
    }
    aside->queue_count = kept;
}
