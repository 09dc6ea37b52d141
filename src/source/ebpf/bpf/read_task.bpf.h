/* SPDX-License-Identifier: MIT */
/*
 * Reads the counters and gauges of a task. Part of watch.bpf.c.
 *
 * A pointer that the verifier trusts is read by plain loads. For a bare address, as ew_read_tasks
 * has it, there are two ways: from 6.2 on, bpf_rdonly_cast gives it a type and allows plain
 * loads (EW_TYPED: 0.9 µs per thread with cold caches, most of it waiting for memory); older
 * kernels need a helper call per piece (1.5 µs). The object is built both ways; the loader takes
 * the one that the kernel supports.
 */
#ifndef EW_SOURCE_EBPF_BPF_READ_TASK_BPF_H
#define EW_SOURCE_EBPF_BPF_READ_TASK_BPF_H

/* Groups that are not selected are not copied: the value is constant and the verifier removes the
 * branch. */
#define WANTS(what) ((config.want & EW_K_WANT_##what) != 0)

/* By plain loads; the verifier must know the type. */
static __always_inline void read_counters(struct ew_k_entry *entry, struct task_struct *task)
{
    entry->tid = (__u32)task->pid;
    entry->tgid = (__u32)task->tgid;
    entry->start_ns = task->start_boottime;
    entry->cpu_ns = task->se.sum_exec_runtime;
    if (WANTS(MODES)) {
        entry->utime_ns = task->utime;
        entry->stime_ns = task->stime;
    }
    if (WANTS(SWITCHES)) {
        entry->switches_voluntary = task->nvcsw;
        entry->switches_involuntary = task->nivcsw;
    }
    if (WANTS(RUNQ_WAIT) && bpf_core_field_exists(task->sched_info.run_delay))
        entry->runq_wait_ns = task->sched_info.run_delay;
    if (WANTS(FAULTS)) {
        entry->faults_minor = task->min_flt;
        entry->faults_major = task->maj_flt;
    }
    if (WANTS(IO) && bpf_core_field_exists(task->ioac.rchar)) {
        entry->io_read_bytes = task->ioac.rchar;
        entry->io_write_bytes = task->ioac.wchar;
        entry->io_read_ops = task->ioac.syscr;
        entry->io_write_ops = task->ioac.syscw;
    }
    if (WANTS(DISK) && bpf_core_field_exists(task->ioac.read_bytes)) {
        entry->disk_read_bytes = task->ioac.read_bytes;
        entry->disk_write_bytes = task->ioac.write_bytes;
    }
}

#define TASK_OFFSET(field) \
    __builtin_preserve_field_info(((struct task_struct *)0)->field, BPF_FIELD_BYTE_OFFSET)

#ifdef EW_TYPED

static __always_inline __u64 positive(__s64 count)
{
    return count > 0 ? (__u64)count : 0;
}

/* 0: another task has this address now. */
static __noinline int read_task(struct ew_k_thread *out, __u64 address, __u32 tid)
{
    if (!out || !address)
        return 0;
    struct task_struct *task =
        bpf_rdonly_cast((void *)address, bpf_core_type_id_kernel(struct task_struct));
    out->entry.kind = 0;
    if ((__u32)task->pid != tid)
        return 0;
    read_counters(&out->entry, task);
    if (WANTS(SCHEDULING)) {
        out->priority = task->prio - EW_MAX_RT_PRIO;
        out->affinity = task->cpus_mask.bits[0];
    }
    if (WANTS(THREADS))
        out->threads = (__u32)task->signal->nr_threads;
    bpf_probe_read_kernel(out->name, sizeof out->name, (char *)task + TASK_OFFSET(comm));
    out->entry.kind = EW_K_AT;
    if (!config.memory)
        return 1;
    struct mm_struct *mm = task->mm;
    out->rss_pages = 0;
    out->rss_peak_pages = 0;
    out->virtual_pages = 0;
    out->private_pages = 0;
    if (mm) {
        out->rss_pages = positive(mm->rss_stat[EW_MM_FILEPAGES].count) +
                         positive(mm->rss_stat[EW_MM_ANONPAGES].count) +
                         positive(mm->rss_stat[EW_MM_SHMEMPAGES].count);
        out->private_pages = positive(mm->rss_stat[EW_MM_ANONPAGES].count) +
                             positive(mm->rss_stat[EW_MM_SWAPENTS].count);
        out->rss_peak_pages = mm->hiwater_rss;
        out->virtual_pages = mm->total_vm;
    }
    return 1;
}

#else

/*
 * From a bare address, by the helper that survives bad addresses. A call costs more than copying
 * some more bytes, so neighbouring fields are copied in one piece and extracted by the distances
 * that CO-RE provides.
 */

/* The word of `field` in a piece that was copied from `first` on; 0 if it is outside. */
#define PICK(piece, first, field)                                                              \
    ({                                                                                         \
        __u32 distance_ = TASK_OFFSET(field) - TASK_OFFSET(first);                             \
        distance_ <= sizeof piece - sizeof(__u64) ? *(__u64 *)((char *)piece + distance_) : 0; \
    })

static __always_inline void read_times(struct ew_k_entry *entry, struct task_struct *task)
{
    __u64 piece[20]; /* utime, stime, …, nvcsw, nivcsw, …, start_boottime, min_flt, maj_flt */
    if (bpf_probe_read_kernel(piece, sizeof piece, (char *)task + TASK_OFFSET(utime)) != 0)
        return;
    entry->utime_ns = PICK(piece, utime, utime);
    entry->stime_ns = PICK(piece, utime, stime);
    entry->switches_voluntary = PICK(piece, utime, nvcsw);
    entry->switches_involuntary = PICK(piece, utime, nivcsw);
    entry->start_ns = PICK(piece, utime, start_boottime);
    entry->faults_minor = PICK(piece, utime, min_flt);
    entry->faults_major = PICK(piece, utime, maj_flt);
}

static __always_inline void read_io(struct ew_k_entry *entry, struct task_struct *task)
{
    __u64 piece[8];
    if ((!WANTS(IO) && !WANTS(DISK)) || !bpf_core_field_exists(task->ioac) ||
        bpf_probe_read_kernel(piece, sizeof piece, (char *)task + TASK_OFFSET(ioac)) != 0)
        return;
    if (bpf_core_field_exists(task->ioac.rchar)) {
        entry->io_read_bytes = PICK(piece, ioac, ioac.rchar);
        entry->io_write_bytes = PICK(piece, ioac, ioac.wchar);
        entry->io_read_ops = PICK(piece, ioac, ioac.syscr);
        entry->io_write_ops = PICK(piece, ioac, ioac.syscw);
    }
    if (bpf_core_field_exists(task->ioac.read_bytes)) {
        entry->disk_read_bytes = PICK(piece, ioac, ioac.read_bytes);
        entry->disk_write_bytes = PICK(piece, ioac, ioac.write_bytes);
    }
}

/* 0: another task has this address now. */
static __noinline int read_task(struct ew_k_thread *out, __u64 address, __u32 tid)
{
    struct task_struct *task = (void *)address;
    struct {
        __u32 pid, tgid; /* adjacent in every kernel */
    } ids;
    if (!out)
        return 0;
    struct ew_k_entry *entry = &out->entry;
    entry->kind = 0;
    if (!task || bpf_probe_read_kernel(&ids, sizeof ids, (char *)task + TASK_OFFSET(pid)) != 0 ||
        ids.pid != tid)
        return 0;
    entry->tid = tid;
    entry->tgid = ids.tgid;
    entry->cpu_ns = BPF_CORE_READ(task, se.sum_exec_runtime);
    read_times(entry, task);
    read_io(entry, task);
    if (WANTS(RUNQ_WAIT) && bpf_core_field_exists(task->sched_info.run_delay))
        entry->runq_wait_ns = BPF_CORE_READ(task, sched_info.run_delay);
    if (WANTS(SCHEDULING)) {
        out->priority = BPF_CORE_READ(task, prio) - EW_MAX_RT_PRIO;
        out->affinity = BPF_CORE_READ(task, cpus_mask.bits[0]);
    }
    if (WANTS(THREADS))
        out->threads = (__u32)BPF_CORE_READ(task, signal, nr_threads);
    bpf_probe_read_kernel(out->name, sizeof out->name, (char *)task + TASK_OFFSET(comm));
    entry->kind = EW_K_AT;
    if (!config.memory)
        return 1;
    struct mm_struct *mm = BPF_CORE_READ(task, mm);
    out->rss_pages = 0;
    out->rss_peak_pages = 0;
    out->virtual_pages = 0;
    out->private_pages = 0;
    if (mm) {
        out->rss_pages = resident_pages(mm);
        out->private_pages = private_pages(mm);
        out->rss_peak_pages = BPF_CORE_READ(mm, hiwater_rss);
        out->virtual_pages = BPF_CORE_READ(mm, total_vm);
    }
    return 1;
}

#endif

#endif
