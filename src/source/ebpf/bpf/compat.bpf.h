/* SPDX-License-Identifier: MIT */
/* Accessors for fields that differ between the kernels 5.15 and 6.18. */
#ifndef EW_SOURCE_EBPF_BPF_COMPAT_BPF_H
#define EW_SOURCE_EBPF_BPF_COMPAT_BPF_H

enum {
    EW_TASK_INTERRUPTIBLE = 0x1,
    EW_TASK_DEAD = 0x80,
    EW_PF_IDLE = 0x00000002,
    EW_PF_KTHREAD = 0x00200000,
    EW_SIGNAL_GROUP_EXIT = 4,
    EW_PIDTYPE_SID = 3,
    EW_MM_FILEPAGES = 0,
    EW_MM_ANONPAGES = 1,
    EW_MM_SWAPENTS = 2,
    EW_MM_SHMEMPAGES = 3,
    EW_MAX_RT_PRIO = 100,
};
#define EW_F_CURRENT_CPU 0xffffffffULL

#ifdef EW_TYPED
extern void *bpf_rdonly_cast(const void *address, __u32 btf_id) __ksym;
#endif

/*
 * The same task, for following pointers in it. From 6.3 on the verifier searches the whole kernel
 * BTF by name, up to four times (0.3 ms each), whenever a program loads a pointer through a trusted
 * pointer. Through an untrusted one, which can be read just as well, it does not. The verifier
 * removes the call. Scalar fields are read from the trusted task: that load needs no fault handler.
 */
static __always_inline struct task_struct *walkable(struct task_struct *task)
{
#ifdef EW_TYPED
    return bpf_rdonly_cast(task, bpf_core_type_id_kernel(struct task_struct));
#else
    return task;
#endif
}

/*
 * Resident pages. f1a7941243c1 ("mm: convert mm's rss stats into percpu_counter", 6.2) replaced a
 * struct of atomics by an array of per-CPU counters. Their `count` lacks what the CPUs have not
 * added yet; the kernel's own get_mm_counter() read the same until 6.17.
 */
static __always_inline __u64 resident_pages(struct mm_struct *mm)
{
    __s64 file = 0, anon = 0, shmem = 0;
    if (bpf_core_type_exists(struct mm_rss_stat___before_6_2)) {
        struct mm_struct___before_6_2 *old = (void *)mm;
        file = BPF_CORE_READ(old, rss_stat.count[EW_MM_FILEPAGES].counter);
        anon = BPF_CORE_READ(old, rss_stat.count[EW_MM_ANONPAGES].counter);
        shmem = BPF_CORE_READ(old, rss_stat.count[EW_MM_SHMEMPAGES].counter);
    } else {
        file = BPF_CORE_READ(mm, rss_stat[EW_MM_FILEPAGES].count);
        anon = BPF_CORE_READ(mm, rss_stat[EW_MM_ANONPAGES].count);
        shmem = BPF_CORE_READ(mm, rss_stat[EW_MM_SHMEMPAGES].count);
    }
    __s64 pages = (file > 0 ? file : 0) + (anon > 0 ? anon : 0) + (shmem > 0 ? shmem : 0);
    return (__u64)pages;
}

/* Anonymous pages, resident or swapped out. */
static __always_inline __u64 private_pages(struct mm_struct *mm)
{
    __s64 anon = 0, swapped = 0;
    if (bpf_core_type_exists(struct mm_rss_stat___before_6_2)) {
        struct mm_struct___before_6_2 *old = (void *)mm;
        anon = BPF_CORE_READ(old, rss_stat.count[EW_MM_ANONPAGES].counter);
        swapped = BPF_CORE_READ(old, rss_stat.count[EW_MM_SWAPENTS].counter);
    } else {
        anon = BPF_CORE_READ(mm, rss_stat[EW_MM_ANONPAGES].count);
        swapped = BPF_CORE_READ(mm, rss_stat[EW_MM_SWAPENTS].count);
    }
    return (__u64)((anon > 0 ? anon : 0) + (swapped > 0 ? swapped : 0));
}

/*
 * Before 6.2 the verifier does not allow loads from an array of atomics: one call reads all of
 * them. A separate function, because a caller with as much stack would get a private stack from
 * 6.13 on, in cold memory.
 */
static __noinline int rss_before_6_2(struct mm_struct *mm)
{
    struct mm_struct___before_6_2 *old = (void *)mm;
    __s64 count[4] = {0};
    bpf_core_read(count, sizeof count, &old->rss_stat);
    return (int)(count[EW_MM_FILEPAGES] + count[EW_MM_ANONPAGES] + count[EW_MM_SHMEMPAGES]);
}

/* Resident pages by plain loads, for a task that the verifier trusts; 0 without address space. */
static __always_inline __u32 noted_rss(struct task_struct *task)
{
    struct mm_struct *mm = walkable(task)->mm;
    __s64 pages = 0;
    if (!mm)
        return 0;
    if (bpf_core_type_exists(struct mm_rss_stat___before_6_2))
        pages = rss_before_6_2(mm);
    else
        pages = mm->rss_stat[EW_MM_FILEPAGES].count + mm->rss_stat[EW_MM_ANONPAGES].count +
                mm->rss_stat[EW_MM_SHMEMPAGES].count;
    return pages > 0 ? (__u32)pages : 0;
}

/* bcf9033e5449 ("sched: move CPU field back into thread_info", 5.16). */
static __always_inline __u32 task_cpu(struct task_struct *task)
{
    if (bpf_core_field_exists(task->thread_info.cpu))
        return BPF_CORE_READ(task, thread_info.cpu);
    struct task_struct___before_5_16 *old = (void *)task;
    return BPF_CORE_READ(old, cpu);
}

#endif
