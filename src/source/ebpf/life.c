/* SPDX-License-Identifier: MIT */
/*
 * Reads the ring buffers. Lifecycle records become process facts at once, except exits: an exit is
 * recorded before the last switch of the thread, so it is delivered after the logs were read and
 * all readings of the process precede it. If the pid is reused in the same drain, the exit is
 * delivered before that start: facts about one pid stay in order.
 *
 * An exec by a thread that is not the leader changes the meaning of a tid. It is held until the
 * logs have been read up to its time: see log.c.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "base/alloc.h"
#include "source/ebpf/ebpf.h"

/* Pids are assigned in sequence: few of one drain share a bit. */
static uint32_t exit_bit(uint32_t pid)
{
    return pid % (uint32_t)(sizeof((struct ew_ebpf_source *)NULL)->exit_bits * 8);
}

static int keep(struct ew_ebpf_kept *kept, const struct ew_process_fact *fact)
{
    if (kept->count == kept->size) {
        uint32_t size = kept->size == 0 ? 16 : kept->size * 2;
        struct ew_process_fact *facts = ew_realloc_array(kept->facts, size, sizeof *facts);
        if (facts == NULL)
            return ETWATCH_ENOMEM;
        kept->facts = facts;
        kept->size = size;
    }
    kept->facts[kept->count++] = *fact;
    return 0;
}

/* Without memory to hold it, an exit is delivered at once and waits for the last readings in the
 * sampler. */
static void keep_exit(struct ew_ebpf_source *source, const struct ew_process_fact *fact)
{
    if (keep(&source->exits, fact) < 0)
        source->facts->process(source->facts->ctx, fact);
    else
        source->exit_bits[exit_bit(fact->pid) / 64] |= 1ULL << (exit_bit(fact->pid) % 64);
}

/* Delivers the held exit of the process that had this pid, if there is one. */
static void release_exit(struct ew_ebpf_source *source, uint32_t pid)
{
    if ((source->exit_bits[exit_bit(pid) / 64] >> (exit_bit(pid) % 64) & 1) == 0)
        return;
    struct ew_ebpf_kept *exits = &source->exits;
    for (uint32_t i = 0; i < exits->count; i++) {
        if (exits->facts[i].pid != pid)
            continue;
        source->facts->process(source->facts->ctx, &exits->facts[i]);
        exits->facts[i] = exits->facts[--exits->count];
        return;
    }
}

static int on_life(void *ctx, void *data, size_t size)
{
    struct ew_ebpf_source *source = ctx;
    struct ew_k_life life;
    uint32_t kind = 0;
    if (size >= sizeof kind)
        memcpy(&kind, data, sizeof kind);
    if (kind == EW_K_LIFE_WAKE)
        return 0;
    if (size < sizeof life) {
        source->undecoded++;
        return 0;
    }
    memcpy(&life, data, sizeof life);
    struct ew_process_fact fact;
    ew_ebpf_process(&source->units, &life, &fact);
    source->events++;
    switch (life.kind) {
    case EW_K_LIFE_FORK:
        fact.kind = EW_PROCESS_START;
        release_exit(source, fact.pid);
        break;
    case EW_K_LIFE_SEEN:
        fact.kind = EW_PROCESS_SEEN;
        break;
    case EW_K_LIFE_EXEC:
        fact.kind = EW_PROCESS_EXEC;
        if (fact.old_tid != 0 && keep(&source->moves, &fact) == 0)
            return 0;
        source->refused += fact.old_tid != 0; /* no memory to hold it: delivered too early */
        break;
    case EW_K_LIFE_RENAME:
        fact.kind = EW_PROCESS_RENAME;
        break;
    case EW_K_LIFE_EXIT:
        fact.kind = EW_PROCESS_EXIT;
        ew_ebpf_proc_gauges_gone(source->proc_gauges, fact.pid);
        keep_exit(source, &fact);
        return 0;
    default:
        source->undecoded++;
        return 0;
    }
    ew_ebpf_proc_gauges_ran(source->proc_gauges, fact.pid);
    source->facts->process(source->facts->ctx, &fact);
    return 0;
}

/* The last known names of threads, by tid: a record carries one name, most events have two
 * threads. If another thread took the cell, the name is unknown, never wrong. */
static struct ew_ebpf_named *named_of(struct ew_ebpf_source *source, uint32_t tid)
{
    return &source->named[(tid * 2654435761u) >> (32 - EW_EBPF_NAMED_BITS)];
}

static void keep_name(struct ew_ebpf_source *source, uint32_t tid, const char *name)
{
    struct ew_ebpf_named *named = named_of(source, tid);
    named->tid = tid;
    memcpy(named->name, name, sizeof named->name);
}

static const char *name_of(struct ew_ebpf_source *source, uint32_t tid)
{
    const struct ew_ebpf_named *named = named_of(source, tid);
    return named->tid == tid && named->name[0] != '\0' ? named->name : NULL;
}

static int on_event(void *ctx, void *data, size_t size)
{
    struct ew_ebpf_source *source = ctx;
    struct ew_k_event record;
    if (size < sizeof record) {
        source->undecoded++;
        return 0;
    }
    memcpy(&record, data, sizeof record);
    record.name[sizeof record.name - 1] = '\0';
    struct etwatch_event event = {
        .size = sizeof event,
        .kind = record.kind,
        .t_ns = record.t_ns,
        .cpu = record.cpu,
        .pid = record.pid,
        .tid = record.tid,
        .next_pid = record.other_pid,
        .next_tid = record.other_tid,
        .state = record.state,
        .priority = record.priority,
        .next_priority = record.other_priority,
        .target_cpu = UINT32_MAX,
    };
    const uint32_t bits = EW_K_STATE_IN_FAULT | EW_K_STATE_THROTTLED;
    if (record.kind == ETWATCH_EVENT_SWITCH || record.kind == ETWATCH_EVENT_WAKEUP) {
        event.state = record.state & ~bits;
        event.throttled = (record.state & EW_K_STATE_THROTTLED) != 0 ? 2 : 1;
        if (source->object.causes)
            event.in_fault = (record.state & EW_K_STATE_IN_FAULT) != 0 ? 2 : 1;
        record.state = event.state;
    }
    switch (record.kind) {
    case ETWATCH_EVENT_FAULTS:
        event.next_tid = event.state = 0;
        event.from_ns = record.t_ns - record.state;
        event.fault_ns = record.detail;
        event.fault_count = record.other_tid;
        event.name = record.name;
        break;
    case ETWATCH_EVENT_SWITCH:
        event.io_wait = (record.detail & 1) != 0 && record.state != 0 ? 2 : 1;
        event.hard_faults = record.detail >> 1;
        event.name = name_of(source, record.tid);
        event.next_name = record.name;
        break;
    case ETWATCH_EVENT_FORK:
        event.name = name_of(source, record.tid);
        event.next_name = record.name;
        break;
    case ETWATCH_EVENT_WAKEUP:
        event.target_cpu = record.detail;
        event.name = record.name;
        break;
    default:
        event.exit_code = (int32_t)record.detail;
        event.name = record.name;
        break;
    }
    source->events++;
    if (source->facts->event != NULL)
        source->facts->event(source->facts->ctx, &event);
    /* After the delivery: the outgoing thread's name may be in the same cell. */
    keep_name(source, event.next_name != NULL ? record.other_tid : record.tid, record.name);
    return 0;
}

int ew_ebpf_life_open(struct ew_ebpf_source *source, bool events)
{
    source->rings = ring_buffer__new(source->object.life_fd, on_life, source, NULL);
    if (libbpf_get_error(source->rings) != 0) {
        source->rings = NULL;
        return ETWATCH_EOS;
    }
    if (!events)
        return 0;
    source->named = ew_calloc((size_t)1 << EW_EBPF_NAMED_BITS, sizeof *source->named);
    if (source->named == NULL)
        return ETWATCH_ENOMEM;
    /* Not in the other ring_buffer: its descriptor is polled, and every event would end the wait.
     */
    source->stream = ring_buffer__new(source->object.stream_fd, on_event, source, NULL);
    if (libbpf_get_error(source->stream) != 0) {
        source->stream = NULL;
        return ETWATCH_EOS;
    }
    return 0;
}

void ew_ebpf_life_close(struct ew_ebpf_source *source)
{
    if (source->stream != NULL)
        ring_buffer__free(source->stream);
    if (source->rings != NULL)
        ring_buffer__free(source->rings);
    ew_free(source->named);
    ew_free(source->exits.facts);
    ew_free(source->moves.facts);
}

int ew_ebpf_read_life(struct ew_ebpf_source *source)
{
    int count = ring_buffer__consume(source->rings);
    if (count >= 0 && source->stream != NULL)
        count = ring_buffer__consume(source->stream);
    return count < 0 ? ETWATCH_ENOMEM : 0;
}

void ew_ebpf_flush_moves(struct ew_ebpf_source *source, uint32_t count)
{
    struct ew_ebpf_kept *moves = &source->moves;
    for (uint32_t i = 0; i < count; i++) {
        const struct ew_process_fact *exec = &moves->facts[i];
        source->facts->process(source->facts->ctx, exec);
        source->gone[exec->pid % EW_EBPF_GONE_CELLS].pid = 0;
    }
    moves->count -= count;
    source->moves_delivered += count;
    memmove(moves->facts, moves->facts + count, moves->count * sizeof *moves->facts);
}

void ew_ebpf_flush_exits(struct ew_ebpf_source *source)
{
    for (uint32_t i = 0; i < source->exits.count; i++)
        source->facts->process(source->facts->ctx, &source->exits.facts[i]);
    source->exits.count = 0;
    memset(source->exit_bits, 0, sizeof source->exit_bits);
}
