/* SPDX-License-Identifier: MIT */
/*
 * Reads the ring buffers: lifecycle records become process facts at once, except exits. An exit is
 * recorded before the thread's last switch, whose entry is in a log; it is delivered after the logs
 * were read, so that whoever adds up has heard of everything the process did.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "base/alloc.h"
#include "source/ebpf/ebpf.h"

static int keep_exit(struct ew_ebpf_source *source, const struct ew_process_fact *fact)
{
    if (source->exit_count == source->exit_size) {
        uint32_t size = source->exit_size == 0 ? 16 : source->exit_size * 2;
        struct ew_process_fact *exits = ew_realloc_array(source->exits, size, sizeof *exits);
        if (exits == NULL)
            return ETWATCH_ENOMEM;
        source->exits = exits;
        source->exit_size = size;
    }
    source->exits[source->exit_count++] = *fact;
    return 0;
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
        break;
    case EW_K_LIFE_SEEN:
        fact.kind = EW_PROCESS_SEEN;
        break;
    case EW_K_LIFE_EXEC:
        fact.kind = EW_PROCESS_EXEC;
        break;
    case EW_K_LIFE_RENAME:
        fact.kind = EW_PROCESS_RENAME;
        break;
    case EW_K_LIFE_EXIT:
        fact.kind = EW_PROCESS_EXIT;
        return keep_exit(source, &fact);
    default:
        source->undecoded++;
        return 0;
    }
    source->facts->process(source->facts->ctx, &fact);
    return 0;
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
        .exit_code = record.exit_status,
        .name = record.name,
    };
    source->events++;
    if (source->facts->event != NULL)
        source->facts->event(source->facts->ctx, &event);
    return 0;
}

int ew_ebpf_life_open(struct ew_ebpf_source *source, bool events)
{
    source->rings = ring_buffer__new(source->object.life_fd, on_life, source, NULL);
    if (libbpf_get_error(source->rings) != 0) {
        source->rings = NULL;
        return ETWATCH_EOS;
    }
    if (events && ring_buffer__add(source->rings, source->object.stream_fd, on_event, source) != 0)
        return ETWATCH_EOS;
    return 0;
}

void ew_ebpf_life_close(struct ew_ebpf_source *source)
{
    if (source->rings != NULL)
        ring_buffer__free(source->rings);
    ew_free(source->exits);
}

int ew_ebpf_read_life(struct ew_ebpf_source *source)
{
    int count = ring_buffer__consume(source->rings);
    return count < 0 ? ETWATCH_ENOMEM : 0;
}

void ew_ebpf_flush_exits(struct ew_ebpf_source *source)
{
    for (uint32_t i = 0; i < source->exit_count; i++) {
        const struct ew_process_fact *exit = &source->exits[i];
        source->facts->process(source->facts->ctx, exit);
        /* Its threads are told apart from a later process with the same pid by the start time, so
         * the entry only has to go some time. */
        if (source->filtered)
            (void)bpf_map_delete_elem(source->object.watched_fd, &exit->pid);
    }
    source->exit_count = 0;
}
