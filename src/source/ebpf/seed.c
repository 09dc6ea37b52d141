/* SPDX-License-Identifier: MIT */
/*
 * Lists the preexisting processes with one pass of the kernel's task iterator. The program ew_seed
 * applies the filters and writes one record per thread. The counters of a process are the sum over
 * its threads, running and exited.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "source/ebpf/ebpf.h"

enum { READ_BYTES = 64 << 10 };

/* Processes found so far. The index is by pid, open addressing. */
struct seeds {
    struct ew_process_fact *facts;
    uint32_t count, size;
    uint32_t *index;
    uint32_t mask;
    struct ew_k_entry *base_lines; /* initial counters of some threads */
    uint32_t base_line_count, base_line_size;
};

static uint32_t *find_seed(struct seeds *seeds, uint32_t pid)
{
    uint32_t at = (pid * 2654435761u) & seeds->mask;
    while (seeds->index[at] != 0 && seeds->facts[seeds->index[at] - 1].pid != pid)
        at = (at + 1) & seeds->mask;
    return &seeds->index[at];
}

static int grow_seeds(struct seeds *seeds)
{
    uint32_t size = seeds->size == 0 ? 256 : seeds->size * 2;
    struct ew_process_fact *facts = ew_realloc_array(seeds->facts, size, sizeof *facts);
    if (facts == NULL)
        return ETWATCH_ENOMEM;
    seeds->facts = facts;
    ew_free(seeds->index);
    seeds->index = ew_calloc((size_t)size * 2, sizeof *seeds->index);
    if (seeds->index == NULL)
        return ETWATCH_ENOMEM;
    seeds->mask = size * 2 - 1;
    seeds->size = size;
    for (uint32_t i = 0; i < seeds->count; i++)
        *find_seed(seeds, facts[i].pid) = i + 1;
    return 0;
}

static void add_counters(const struct ew_ebpf_source *source, struct ew_process_fact *fact,
                         const struct ew_k_entry *entry, bool living)
{
    uint64_t counter[EW_COUNTER_COUNT] = {0};
    uint32_t has = 0;
    ew_ebpf_counters(&source->units, entry, entry->cpu_ns, &has, counter);
    /* The kernel does not keep the waits of exited threads. */
    if (!living)
        has &= ~EW_HAS_C(runq_wait_ns);
    else
        fact->counter_has = has;
    for (uint32_t i = 0; i < EW_COUNTER_COUNT; i++)
        if (has & (1u << i))
            fact->counter[i] += counter[i];
}

/*
 * The initial counters of a thread usually come with its first entry. They must be kept here if the
 * thread is on a CPU now; if it ran in this interval before it was watched; and if it started after
 * the last drain: its first entry, with all counters 0, is still unread, but the sum of its process
 * includes what it has used.
 */
static int keep_base_line(struct ew_ebpf_source *source, struct seeds *seeds,
                          const struct ew_k_seed *seed)
{
    bool new = seed->thread.entry.start_ns >= source->read_until_ns;
    if (seed->on_cpu == 0 && !new && !source->filtered)
        return 0;
    if (seeds->base_line_count == seeds->base_line_size) {
        uint32_t size = seeds->base_line_size == 0 ? 16 : seeds->base_line_size * 2;
        struct ew_k_entry *lines = ew_realloc_array(seeds->base_lines, size, sizeof *lines);
        if (lines == NULL)
            return ETWATCH_ENOMEM;
        seeds->base_lines = lines;
        seeds->base_line_size = size;
    }
    seeds->base_lines[seeds->base_line_count++] = seed->thread.entry;
    return 0;
}

static void deliver_base_line(struct ew_ebpf_source *source, const struct ew_k_entry *entry)
{
    struct ew_reading reading;
    memset(&reading, 0, sizeof reading);
    reading.kind = EW_READING_AT;
    reading.pid = entry->tgid;
    reading.tid = entry->tid;
    reading.start_ns = ew_ebpf_start(entry->start_ns);
    reading.t_ns = entry->t_ns;
    reading.base_line = true;
    ew_ebpf_counters(&source->units, entry, entry->cpu_ns, &reading.counter_has, reading.counter);
    source->facts->reading(source->facts->ctx, &reading);
}

static int take_seed(struct ew_ebpf_source *source, struct seeds *seeds,
                     const struct ew_k_seed *seed)
{
    if (seed->thread.entry.kind == 0)
        return 0;
    if (seeds->count == seeds->size && grow_seeds(seeds) != 0)
        return ETWATCH_ENOMEM;
    uint32_t *cell = find_seed(seeds, seed->life.pid);
    if (*cell == 0) {
        ew_ebpf_process(&source->units, &seed->life, &seeds->facts[seeds->count]);
        seeds->facts[seeds->count].kind = EW_PROCESS_SEEN;
        *cell = ++seeds->count;
    }
    struct ew_process_fact *fact = &seeds->facts[*cell - 1];
    add_counters(source, fact, &seed->thread.entry, true);
    if (keep_base_line(source, seeds, seed) != 0)
        return ETWATCH_ENOMEM;
    if (seed->life.pid != seed->life.tid)
        return 0;
    add_counters(source, fact, &seed->dead, false);
    memcpy(fact->name, seed->life.name, sizeof seed->life.name);
    ew_ebpf_gauges(&source->units, &seed->thread, &fact->gauge_has, fact->gauge);
    return 0;
}

/*
 * The list after a loss must not fail: it is what ends processes with a lost exit. Without memory
 * it only proves which processes exist. One with a lost start then has no counters from before.
 */
static void deliver_leader(struct ew_ebpf_source *source, const struct ew_k_seed *seed)
{
    struct ew_process_fact fact;
    if (seed->thread.entry.kind == 0 || seed->life.pid != seed->life.tid)
        return;
    ew_ebpf_process(&source->units, &seed->life, &fact);
    fact.kind = EW_PROCESS_SEEN;
    ew_ebpf_proc_gauges_ran(source->proc_gauges, fact.pid);
    source->facts->process(source->facts->ctx, &fact);
}

/* Passes every record of the iterator to take_seed or, without seeds, to deliver_leader. */
static int read_records(struct ew_ebpf_source *source, int fd, struct seeds *seeds,
                        unsigned char *buffer, size_t size)
{
    size_t held = 0;
    int error = 0;
    while (error == 0) {
        ssize_t got = read(fd, buffer + held, size - held);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got <= 0) {
            error = got < 0 ? ETWATCH_EOS : 0;
            break;
        }
        held += (size_t)got;
        size_t at = 0;
        for (; error == 0 && held - at >= sizeof(struct ew_k_seed);
             at += sizeof(struct ew_k_seed)) {
            struct ew_k_seed seed;
            memcpy(&seed, buffer + at, sizeof seed);
            if (seeds == NULL)
                deliver_leader(source, &seed);
            else
                error = take_seed(source, seeds, &seed);
        }
        memmove(buffer, buffer + at, held - at);
        held -= at;
    }
    return error;
}

static int read_seeds(struct ew_ebpf_source *source, int fd, struct seeds *seeds)
{
    unsigned char *buffer = ew_calloc(READ_BYTES, 1);
    if (buffer == NULL)
        return ETWATCH_ENOMEM;
    int error = read_records(source, fd, seeds, buffer, READ_BYTES);
    ew_free(buffer);
    return error;
}

/* A requested pid that does not exist must not match the next process that gets it. */
static void forget_absent(struct ew_ebpf_source *source, struct seeds *seeds)
{
    for (uint32_t i = 0; i < source->requested_count; i++) {
        uint32_t pid = source->requested[i];
        if (seeds->size == 0 || *find_seed(seeds, pid) == 0)
            (void)bpf_map_delete_elem(source->object.watched_fd, &pid);
    }
    source->requested_count = 0;
}

static int list_existing(struct ew_ebpf_source *source)
{
    unsigned char buffer[8 << 10];
    int fd = bpf_iter_create(source->object.seed_link_fd);
    if (fd < 0)
        return ETWATCH_EOS;
    source->refused++;
    int error = read_records(source, fd, NULL, buffer, sizeof buffer);
    (void)close(fd);
    return error;
}

int ew_ebpf_seed(struct ew_ebpf_source *source, struct ew_error *reterr)
{
    struct seeds seeds = {0};
    /* The iterator needs the clock offset of its CPU, which a switch measures: cause one. */
    (void)nanosleep(&(struct timespec){.tv_nsec = 50 * 1000}, NULL);
    int fd = bpf_iter_create(source->object.seed_link_fd);
    int error = fd < 0 ? ETWATCH_EOS : read_seeds(source, fd, &seeds);
    if (error == 0)
        forget_absent(source, &seeds);
    if (error == ETWATCH_ENOMEM && source->drained) {
        error = list_existing(source);
        seeds.count = seeds.base_line_count = 0;
    }
    if (error != 0)
        ew_error_set(reterr, error, errno, "eBPF: cannot list the tasks");
    for (uint32_t i = 0; error == 0 && i < seeds.count; i++) {
        ew_ebpf_proc_gauges_ran(source->proc_gauges, seeds.facts[i].pid);
        source->facts->process(source->facts->ctx, &seeds.facts[i]);
    }
    for (uint32_t i = 0; error == 0 && i < seeds.base_line_count; i++)
        deliver_base_line(source, &seeds.base_lines[i]);
    if (fd >= 0)
        (void)close(fd);
    ew_free(seeds.facts);
    ew_free(seeds.index);
    ew_free(seeds.base_lines);
    return error;
}
