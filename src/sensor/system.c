/* SPDX-License-Identifier: MIT */
/*
 * Owns the last reading: counters are differences to it, so the first reading has none. Counters
 * that went backwards (a disk or an interface was removed) are unknown for that reading.
 */
#include "sensor/system.h"

#include <etwatch/system.h>
#include <string.h>

#include "base/alloc.h"
#include "os/os.h"

struct etwatch_system_reader {
    struct ew_system_source *source;
    struct ew_system_text now, before;
    uint64_t read_ns;        /* raw; 0: never */
    bool has_process_counts; /* the caller counts starts and exits */
    uint64_t counted_started, counted_ended;
    double percents[EW_SYSTEM_CPUS_MAX];
};

int etwatch_system_open(const char *proc_root, struct etwatch_system_reader **ret_reader)
{
    struct etwatch_system_reader *reader = ew_calloc(1, sizeof *reader);
    if (reader == NULL)
        return ETWATCH_ENOMEM;
    int rc = ew_system_source_open(proc_root != NULL ? proc_root : "/proc", &reader->source);
    if (rc < 0) {
        ew_free(reader);
        return rc;
    }
    *ret_reader = reader;
    return 0;
}

void etwatch_system_close(struct etwatch_system_reader *reader)
{
    if (reader == NULL)
        return;
    ew_system_source_close(reader->source);
    ew_free(reader);
}

void etwatch_system_set_process_counts(struct etwatch_system_reader *reader, uint64_t started,
                                       uint64_t ended)
{
    reader->has_process_counts = true;
    reader->counted_started += started;
    reader->counted_ended += ended;
}

static double percent_of(const struct ew_system_cpu *now, const struct ew_system_cpu *before)
{
    if (now->total <= before->total || now->busy < before->busy)
        return now->total == 0 ? -1 : 0;
    return 100.0 * (double)(now->busy - before->busy) / (double)(now->total - before->total);
}

#define PUT(name, value)                                     \
    do {                                                     \
        out->name = (value);                                 \
        etwatch_metric_set_add(&out->has, ETWATCH_S_##name); \
    } while (0)
#define GREW(name, field)                          \
    do {                                           \
        if (now->field >= before->field)           \
            PUT(name, now->field - before->field); \
    } while (0)

static void put_gauges(const struct ew_system_text *now, uint64_t processes,
                       struct etwatch_system *out)
{
    if ((now->has & EW_SYSTEM_MEMORY) != 0) {
        PUT(memory_total_bytes, now->memory_total);
        PUT(memory_available_bytes, now->memory_available);
    }
    if ((now->has & EW_SYSTEM_SWAP) != 0) {
        PUT(swap_total_bytes, now->swap_total);
        PUT(swap_used_bytes,
            now->swap_total > now->swap_free ? now->swap_total - now->swap_free : 0);
    }
    if ((now->has & EW_SYSTEM_LOAD) != 0) {
        PUT(load_1, now->load[0]);
        PUT(load_5, now->load[1]);
        PUT(load_15, now->load[2]);
    }
    if (now->threads != 0)
        PUT(threads, now->threads);
    if (now->running != 0)
        PUT(threads_running, now->running);
    if (processes != UINT64_MAX)
        PUT(processes, processes);
}

static void put_counters(const struct ew_system_text *now, const struct ew_system_text *before,
                         struct etwatch_system *out)
{
    uint32_t both = now->has & before->has;
    if ((both & EW_SYSTEM_STAT) != 0 && now->all.total > before->all.total)
        PUT(cpu_percent, percent_of(&now->all, &before->all) * now->cpu_count);
    if (now->switches != 0 && before->switches != 0)
        GREW(switches, switches);
    if (now->forks != 0 && before->forks != 0)
        GREW(threads_started, forks);
    if ((both & EW_SYSTEM_PAGING) != 0) {
        GREW(paged_in_bytes, paged_in);
        GREW(paged_out_bytes, paged_out);
    }
    if ((both & EW_SYSTEM_DISKS) != 0) {
        GREW(disk_read_bytes, disk_read);
        GREW(disk_write_bytes, disk_write);
    }
    if ((both & EW_SYSTEM_NET) != 0) {
        GREW(net_received_bytes, net_received);
        GREW(net_sent_bytes, net_sent);
    }
    if ((both & EW_SYSTEM_PROCESSES) != 0) {
        GREW(processes_started, processes_started);
        GREW(processes_ended, processes_ended);
    }
    /* Threads ended = previous number + started - current number. */
    uint64_t expected = out->threads_started + before->threads;
    if (now->threads != 0 && before->threads != 0 &&
        etwatch_system_has(out, ETWATCH_S_threads_started) && expected >= now->threads)
        PUT(threads_ended, expected - now->threads);
}

/* The caller's counts are exact. Those from before the first reading are dropped. */
static void put_process_counts(struct etwatch_system_reader *reader, struct etwatch_system *out)
{
    if (reader->has_process_counts && reader->read_ns != 0) {
        PUT(processes_started, reader->counted_started);
        PUT(processes_ended, reader->counted_ended);
        etwatch_metric_set_remove(&out->estimated, ETWATCH_S_processes_started);
        etwatch_metric_set_remove(&out->estimated, ETWATCH_S_processes_ended);
    }
    reader->counted_started = reader->counted_ended = 0;
}

int etwatch_system_read(struct etwatch_system_reader *reader, struct etwatch_system *ret_system)
{
    struct etwatch_system system = {0}, *out = &system;
    uint64_t processes = UINT64_MAX, now_ns = ew_os_raw_ns();
    if (reader == NULL || ret_system == NULL || ret_system->size < sizeof(uint32_t) * 4)
        return ETWATCH_EINVAL;
    reader->before = reader->now;
    memset(&reader->now, 0, sizeof reader->now);
    int rc = ew_system_source_read(reader->source, !reader->has_process_counts, &reader->now,
                                   &processes);
    if (rc < 0)
        return rc;
    uint64_t raw_ns = 0;
    ew_os_anchor(&system.t_ns, &raw_ns);
    system.dt_ns = reader->read_ns == 0 ? 0 : now_ns - reader->read_ns;
    put_gauges(&reader->now, processes, out);
    if (reader->read_ns != 0) {
        put_counters(&reader->now, &reader->before, out);
        system.cpu_count = reader->now.cpu_count;
        for (uint32_t i = 0; i < system.cpu_count; i++)
            reader->percents[i] = percent_of(&reader->now.cpus[i], &reader->before.cpus[i]);
        system.cpu_percents = reader->percents;
    }
    system.estimated = ew_system_source_estimates;
    etwatch_metric_set_intersect(&system.estimated, &system.has);
    put_process_counts(reader, out);
    reader->read_ns = now_ns;
    system.size = ret_system->size;
    memcpy(ret_system, &system, system.size < sizeof system ? system.size : sizeof system);
    return 0;
}
