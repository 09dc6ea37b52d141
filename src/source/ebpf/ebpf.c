/* SPDX-License-Identifier: MIT */
/*
 * The eBPF source. Programs in the kernel write the counters of threads to logs (watch.bpf.c); this
 * side reads the logs a few times a second and turns them into facts. It owns the programs, the
 * maps and their descriptors; the kernel removes everything when the source is closed or the
 * process dies.
 */
#include "source/ebpf/ebpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "model/metric.h"
#include "source/poll/slow_gauges.h"

static const struct etwatch_metric_set proc_metrics = EW_METRIC_SET(
    ETWATCH_M_handles, ETWATCH_M_handles_peak, ETWATCH_M_io_priority, ETWATCH_M_threads_running,
    ETWATCH_M_threads_ready, ETWATCH_M_threads_waiting, ETWATCH_M_threads_suspended);
static const struct etwatch_metric_set io_metrics =
    EW_METRIC_SET(ETWATCH_M_io_read_bytes, ETWATCH_M_io_write_bytes, ETWATCH_M_io_read_ops,
                  ETWATCH_M_io_write_ops);
static const struct etwatch_metric_set disk_metrics =
    EW_METRIC_SET(ETWATCH_M_disk_read_bytes, ETWATCH_M_disk_write_bytes);

/* A switch on another CPU may have read its clock and not yet written its entry. */
static const uint64_t log_lag_ns = 300 * 1000ULL;

static void close_source(struct ew_source *base)
{
    struct ew_ebpf_source *source = (struct ew_ebpf_source *)base;
    ew_ebpf_cost_close(source);
    ew_ebpf_life_close(source);
    ew_ebpf_object_close(&source->object);
    ew_ebpf_proc_gauges_free(source->proc_gauges);
    ew_free(source->requested);
    ew_free(source->active);
    ew_free(source->active_index);
    ew_free(source);
}

static int watch_pid(struct ew_ebpf_source *source, uint32_t pid)
{
    uint64_t any_start = 0;
    if (source->requested_count == source->requested_size) {
        uint32_t size = source->requested_size == 0 ? 8 : source->requested_size * 2;
        uint32_t *requested = ew_realloc_array(source->requested, size, sizeof *requested);
        if (requested == NULL)
            return ETWATCH_ENOMEM;
        source->requested = requested;
        source->requested_size = size;
    }
    source->requested[source->requested_count++] = pid;
    if (bpf_map_update_elem(source->object.watched_fd, &pid, &any_start, BPF_ANY) == 0)
        return 0;
    return errno == E2BIG ? ETWATCH_ELIMIT : ETWATCH_EOS;
}

/* Limits the metrics to those that this machine has. */
static void describe_source(struct ew_ebpf_source *source, const struct etwatch_metric_set *polled)
{
    struct etwatch_metric_set *available = &source->ops.available, polled_memory = *polled;
    struct etwatch_metric_set optional = ew_ebpf_optional_available(&source->object.optional);
    struct etwatch_metric_set from_proc = ew_ebpf_proc_gauges_available(source->proc_gauges);
    source->optional = source->object.optional.net || source->object.optional.pmu != 0;
    etwatch_metric_set_subtract(available, &ew_ebpf_net_metrics);
    etwatch_metric_set_subtract(available, &ew_ebpf_pmu_metrics);
    etwatch_metric_set_subtract(available, &proc_metrics);
    etwatch_metric_set_union(available, &optional);
    etwatch_metric_set_union(available, &from_proc);
    etwatch_metric_set_intersect(&polled_memory, &ew_slow_gauge_memory);
    etwatch_metric_set_subtract(&source->ops.estimated, &polled_memory);
}

static const char *unavailable_reason(const struct ew_source *base, uint32_t metric)
{
    const struct ew_ebpf_source *source = (const struct ew_ebpf_source *)base;
    uint64_t features = source->units.features;
    if ((features & EW_K_HAS_RUNQ_WAIT) == 0 && metric == ETWATCH_M_runq_wait_ns)
        return "the kernel lacks CONFIG_SCHED_INFO";
    if ((features & EW_K_HAS_IO_BYTES) == 0 && etwatch_metric_set_has(&io_metrics, metric))
        return "the kernel lacks CONFIG_TASK_XACCT";
    if ((features & EW_K_HAS_DISK_BYTES) == 0 && etwatch_metric_set_has(&disk_metrics, metric))
        return "the kernel lacks CONFIG_TASK_IO_ACCOUNTING";
    if (metric == ETWATCH_M_affinity && !source->units.affinity_fits)
        return "more than 64 CPUs do not fit into a mask";
    return ew_ebpf_optional_unavailable_reason(&source->object.optional, metric);
}

static int open_source(const struct ew_source_config *config, struct ew_source **ret_source,
                       struct ew_error *reterr)
{
    struct ew_ebpf_source *source = ew_calloc(1, sizeof *source);
    if (source == NULL)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    source->ops = ew_source_ebpf;
    source->ops.available = ew_metrics_available(ETWATCH_BACKEND_EBPF);
    source->ops.estimated = ew_metrics_with(ETWATCH_BACKEND_EBPF, ETWATCH_EXACTNESS_ESTIMATED);
    source->base.ops = &source->ops;
    source->filtered = !config->filter.all;
    source->read_until_ns = config->epoch_ns;
    ew_ebpf_cost_open(source);
    int error = ew_ebpf_object_open(&source->object, config, reterr);
    if (error != 0) {
        ew_free(source);
        return error;
    }
    source->units.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    source->units.affinity_fits = source->object.cpu_count <= 64;
    error = ew_ebpf_proc_gauges_new(source, config, &source->proc_gauges);
    describe_source(source, &config->polled);
    if (error == 0)
        error = ew_ebpf_life_open(source, config->events);
    for (uint32_t i = 0; error == 0 && source->filtered && i < config->filter.pid_count; i++)
        error = watch_pid(source, config->filter.pids[i]);
    if (error == 0 && ew_ebpf_object_read_tasks(&source->object, 0, false, false) != 0)
        error = ETWATCH_EOS;
    if (error != 0) {
        close_source(&source->base);
        return ew_error_set(reterr, error, errno, "eBPF: cannot start");
    }
    source->units.features = source->object.clock->features;
    source->units.want = ew_ebpf_effective_want(source->object.want, source->units.features);
    *ret_source = &source->base;
    return 0;
}

/* If the map is full, entries are still written; the caller then drops them. */
static void exclude(struct ew_source *base, uint32_t pid, uint64_t start_ns, bool excluded)
{
    struct ew_ebpf_source *source = (struct ew_ebpf_source *)base;
    if (excluded)
        (void)bpf_map_update_elem(source->object.excluded_fd, &pid, &start_ns, BPF_ANY);
    else
        (void)bpf_map_delete_elem(source->object.excluded_fd, &pid);
}

/* Reports what was lost since the last report, with the time in which it happened. */
static void report_loss(struct ew_ebpf_source *source, uint32_t stage, uint64_t total,
                        uint64_t *reported, uint64_t from_ns, uint64_t to_ns)
{
    if (total == *reported)
        return;
    struct etwatch_loss loss = {
        .size = sizeof loss,
        .stage = stage,
        .count = total - *reported,
        .from_ns = from_ns,
        .to_ns = to_ns,
    };
    *reported = total;
    source->facts->loss(source->facts->ctx, &loss);
}

static void report_losses(struct ew_ebpf_source *source, uint64_t from_ns, uint64_t to_ns)
{
    const struct ew_ebpf_object *object = &source->object;
    uint64_t log = 0, life = 0, stream = 0, watch = 0;
    for (uint32_t cpu = 0; cpu < object->cpu_count; cpu++) {
        log += __atomic_load_n(&object->heads[cpu].lost, __ATOMIC_RELAXED);
        life += __atomic_load_n(&object->losses[cpu].life, __ATOMIC_RELAXED);
        stream += __atomic_load_n(&object->losses[cpu].stream, __ATOMIC_RELAXED);
        watch += __atomic_load_n(&object->losses[cpu].watch, __ATOMIC_RELAXED);
    }
    report_loss(source, ETWATCH_LOSS_KERNEL_LOG, log, &source->lost_log, from_ns, to_ns);
    report_loss(source, ETWATCH_LOSS_KERNEL_LOG, source->missed_runs, &source->lost_runs, from_ns,
                to_ns);
    report_loss(source, ETWATCH_LOSS_LIFECYCLE, life, &source->lost_life, from_ns, to_ns);
    report_loss(source, ETWATCH_LOSS_STREAM, stream, &source->lost_stream, from_ns, to_ns);
    report_loss(source, ETWATCH_LOSS_TABLE, watch, &source->lost_watch, from_ns, to_ns);
}

static uint64_t lost_life(const struct ew_ebpf_source *source)
{
    uint64_t life = 0;
    for (uint32_t cpu = 0; cpu < source->object.cpu_count; cpu++)
        life += __atomic_load_n(&source->object.losses[cpu].life, __ATOMIC_RELAXED);
    return life;
}

static int drain(struct ew_source *base, uint64_t now_ns, const struct ew_facts *facts,
                 uint64_t *ret_horizon_ns, struct ew_error *reterr)
{
    struct ew_ebpf_source *source = (struct ew_ebpf_source *)base;
    uint64_t from_ns = source->last_drain_ns;
    source->facts = facts;
    source->last_drain_ns = now_ns;
    uint64_t horizon_ns = now_ns > log_lag_ns ? now_ns - log_lag_ns : 0;
    int error = 0;
    /* After a lost start or exit all tasks are listed again. */
    bool recover = lost_life(source) != source->lost_life;
    if (!source->seeded || recover) {
        error = ew_ebpf_seed(source, reterr);
        source->seeded = error == 0 && source->requested_count == 0;
    }
    if (error == 0) {
        /* Before the readings, so that the affected ones are marked incomplete. */
        ew_ebpf_cost_missed(source, now_ns);
        report_losses(source, from_ns, now_ns);
        error = ew_ebpf_read_logs(source, horizon_ns, reterr);
        report_loss(source, ETWATCH_LOSS_TABLE, source->refused, &source->lost_refused, from_ns,
                    now_ns);
    }
    if (error == 0) {
        ew_ebpf_proc_gauges_read(source->proc_gauges, now_ns, facts);
        ew_ebpf_flush_exits(source);
        if (recover)
            facts->all_seen(facts->ctx, now_ns);
        ew_ebpf_cost_update(source, now_ns);
        source->read_until_ns = horizon_ns;
        source->drained = true;
        *ret_horizon_ns = horizon_ns;
    }
    source->facts = NULL;
    return error;
}

static int set_interval(struct ew_source *base, uint64_t at_ns, uint64_t interval_ns)
{
    struct ew_ebpf_source *source = (struct ew_ebpf_source *)base;
    struct ew_k_clock *clock = source->object.clock;
    struct ew_k_era now = clock->era[1];
    if (interval_ns == 0 || at_ns < now.base_ns)
        return ETWATCH_EINVAL;
    /* era[0] is effective until at_ns: it must equal the current era before at_ns moves. */
    clock->era[0] = now;
    __atomic_store_n(&clock->at_ns, at_ns, __ATOMIC_SEQ_CST);
    uint64_t passed = (at_ns - now.base_ns + now.interval_ns - 1) / now.interval_ns;
    clock->era[1] = (struct ew_k_era){at_ns, interval_ns, now.base_seq + passed};
    return 0;
}

static int add(struct ew_source *base, uint32_t pid)
{
    struct ew_ebpf_source *source = (struct ew_ebpf_source *)base;
    if (!source->filtered)
        return 0;
    int error = watch_pid(source, pid);
    /* The next drain lists all tasks again, this one and its descendants among them. */
    source->seeded = false;
    return error;
}

static int forget(struct ew_source *base, uint32_t pid)
{
    struct ew_ebpf_source *source = (struct ew_ebpf_source *)base;
    if (!source->filtered)
        return ETWATCH_ESTATE;
    return bpf_map_delete_elem(source->object.watched_fd, &pid) == 0 ? 0 : ETWATCH_ENOENT;
}

static void stats(struct ew_source *base, struct ew_source_stats *ret_stats)
{
    struct ew_ebpf_source *source = (struct ew_ebpf_source *)base;
    memset(ret_stats, 0, sizeof *ret_stats);
    ret_stats->events = source->events;
    ret_stats->lost = source->lost_log + source->lost_runs + source->lost_life +
                      source->lost_stream + source->lost_watch + source->lost_refused;
    ret_stats->undecoded = source->undecoded;
    ret_stats->kernel_ns = (uint64_t)source->kernel_ns;
    ret_stats->kernel_ns_known = source->cost_known;
}

static int wake_fd(struct ew_source *base)
{
    struct ew_ebpf_source *source = (struct ew_ebpf_source *)base;
    return ring_buffer__epoll_fd(source->rings);
}

static uint64_t due_ns(const struct ew_source *base)
{
    return ew_ebpf_cost_due_ns((const struct ew_ebpf_source *)base);
}

const struct ew_source_ops ew_source_ebpf = {
    .id = ETWATCH_SOURCE_EBPF,
    .backend = ETWATCH_BACKEND_EBPF,
    .open = open_source,
    .close = close_source,
    .drain = drain,
    .set_interval = set_interval,
    .add = add,
    .remove = forget,
    .exclude = exclude,
    .stats = stats,
    .wake_fd = wake_fd,
    .unavailable_reason = unavailable_reason,
    .due_ns = due_ns,
};
