/* SPDX-License-Identifier: MIT */
/* Converts kernel layouts to facts. Counters that the kernel does not keep stay unknown. */
#include "source/ebpf/ebpf.h"

#include <string.h>

/*
 * The kernel knows the CPU time exactly and samples user and kernel mode at its tick. /proc shows
 * the exact time, divided in the sampled proportion; so does this.
 */
static uint64_t kernel_share(uint64_t cpu_ns, uint64_t utime_ns, uint64_t stime_ns)
{
    if (stime_ns == 0)
        return 0;
    if (utime_ns == 0)
        return cpu_ns;
    /* A double is precise enough for an estimate and ten times as fast as 128-bit arithmetic. */
    double share = (double)stime_ns / ((double)stime_ns + (double)utime_ns);
    uint64_t kernel_ns = (uint64_t)((double)cpu_ns * share);
    return kernel_ns < cpu_ns ? kernel_ns : cpu_ns;
}

uint64_t ew_ebpf_start(uint64_t start_ns)
{
    return start_ns == 0 ? 1 : start_ns;
}

uint32_t ew_ebpf_effective_want(uint32_t want, uint64_t features)
{
    uint32_t absent = 0;
    if ((features & EW_K_HAS_RUNQ_WAIT) == 0)
        absent |= EW_K_WANT_RUNQ_WAIT;
    if ((features & EW_K_HAS_IO_BYTES) == 0)
        absent |= EW_K_WANT_IO;
    if ((features & EW_K_HAS_DISK_BYTES) == 0)
        absent |= EW_K_WANT_DISK;
    return want & ~absent;
}

void ew_ebpf_counters(const struct ew_ebpf_units *units, const struct ew_k_entry *entry,
                      uint64_t cpu_ns, uint32_t *ret_has, uint64_t counter[EW_COUNTER_COUNT])
{
    uint32_t has = EW_HAS_C(cpu_ns), want = units->want;
    counter[EW_C_cpu_ns] = cpu_ns;
    if (want & EW_K_WANT_MODES) {
        uint64_t kernel_ns = kernel_share(cpu_ns, entry->utime_ns, entry->stime_ns);
        has |= EW_HAS_C(cpu_user_ns) | EW_HAS_C(cpu_kernel_ns);
        counter[EW_C_cpu_kernel_ns] = kernel_ns;
        counter[EW_C_cpu_user_ns] = cpu_ns - kernel_ns;
    }
    if (want & EW_K_WANT_SWITCHES) {
        has |= EW_HAS_C(switches_voluntary) | EW_HAS_C(switches_involuntary);
        counter[EW_C_switches_voluntary] = entry->switches_voluntary;
        counter[EW_C_switches_involuntary] = entry->switches_involuntary;
    }
    if (want & EW_K_WANT_FAULTS) {
        has |= EW_HAS_C(faults_minor) | EW_HAS_C(faults_major);
        counter[EW_C_faults_minor] = entry->faults_minor;
        counter[EW_C_faults_major] = entry->faults_major;
    }
    if (want & EW_K_WANT_RUNQ_WAIT) {
        has |= EW_HAS_C(runq_wait_ns);
        counter[EW_C_runq_wait_ns] = entry->runq_wait_ns;
    }
    if (want & EW_K_WANT_IO) {
        has |= EW_HAS_C(io_read_bytes) | EW_HAS_C(io_write_bytes) | EW_HAS_C(io_read_ops) |
               EW_HAS_C(io_write_ops);
        counter[EW_C_io_read_bytes] = entry->io_read_bytes;
        counter[EW_C_io_write_bytes] = entry->io_write_bytes;
        counter[EW_C_io_read_ops] = entry->io_read_ops;
        counter[EW_C_io_write_ops] = entry->io_write_ops;
    }
    if (want & EW_K_WANT_DISK) {
        has |= EW_HAS_C(disk_read_bytes) | EW_HAS_C(disk_write_bytes);
        counter[EW_C_disk_read_bytes] = entry->disk_read_bytes;
        counter[EW_C_disk_write_bytes] = entry->disk_write_bytes;
    }
    *ret_has = has;
}

void ew_ebpf_gauges(const struct ew_ebpf_units *units, const struct ew_k_thread *thread,
                    uint32_t *ret_has, uint64_t gauge[EW_GAUGE_COUNT])
{
    uint32_t has = 0;
    if (units->want & EW_K_WANT_THREADS) {
        has |= EW_HAS_G(threads);
        gauge[EW_G_threads] = thread->threads;
    }
    if (units->want & EW_K_WANT_SCHEDULING) {
        has |= EW_HAS_G(priority);
        gauge[EW_G_priority] = (uint64_t)(int64_t)thread->priority;
    }
    /* No virtual memory: a kernel thread, or a process that is exiting. */
    if (thread->virtual_pages != 0) {
        uint64_t peak =
            thread->rss_peak_pages > thread->rss_pages ? thread->rss_peak_pages : thread->rss_pages;
        has |= EW_HAS_G(rss_bytes) | EW_HAS_G(rss_peak_bytes) | EW_HAS_G(virtual_bytes) |
               EW_HAS_G(private_bytes);
        gauge[EW_G_rss_bytes] = thread->rss_pages * units->page_bytes;
        gauge[EW_G_rss_peak_bytes] = peak * units->page_bytes;
        gauge[EW_G_private_bytes] = thread->private_pages * units->page_bytes;
        gauge[EW_G_virtual_bytes] = thread->virtual_pages * units->page_bytes;
    }
    if (units->affinity_fits && units->want & EW_K_WANT_SCHEDULING) {
        has |= EW_HAS_G(affinity);
        gauge[EW_G_affinity] = thread->affinity;
    }
    *ret_has = has;
}

void ew_ebpf_process(const struct ew_ebpf_units *units, const struct ew_k_life *life,
                     struct ew_process_fact *ret_fact)
{
    memset(ret_fact, 0, sizeof *ret_fact);
    ret_fact->has = EW_HAS_PPID | EW_HAS_SESSION | EW_HAS_UID | EW_HAS_NAME;
    ret_fact->t_ns = life->t_ns;
    ret_fact->start_ns = ew_ebpf_start(life->start_ns);
    ret_fact->pid = life->pid;
    ret_fact->ppid = life->ppid;
    ret_fact->session_id = life->session_id;
    ret_fact->uid = life->uid;
    ret_fact->old_tid = life->old_tid;
    ret_fact->kernel_thread = life->kernel_thread != 0;
    if (life->cgroup_id != 0) {
        ret_fact->has |= EW_HAS_CGROUP;
        ret_fact->cgroup_id = life->cgroup_id;
    }
    ret_fact->gauge_has = EW_HAS_G(priority);
    ret_fact->gauge[EW_G_priority] = (uint64_t)(int64_t)life->priority;
    if (units->affinity_fits) {
        ret_fact->gauge_has |= EW_HAS_G(affinity);
        ret_fact->gauge[EW_G_affinity] = life->affinity;
    }
    memcpy(ret_fact->name, life->name, sizeof life->name);
    ret_fact->name[sizeof life->name - 1] = '\0';
    if (life->kind == EW_K_LIFE_EXIT) {
        ret_fact->has |= EW_HAS_EXIT_STATUS;
        ret_fact->exit_signal = life->exit_status & 0x7f;
        ret_fact->exit_code = (life->exit_status >> 8) & 0xff;
        if (life->rss_peak_pages != 0) {
            ret_fact->gauge_has |= EW_HAS_G(rss_peak_bytes);
            ret_fact->gauge[EW_G_rss_peak_bytes] = life->rss_peak_pages * units->page_bytes;
        }
    }
}
