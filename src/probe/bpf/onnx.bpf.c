/* SPDX-License-Identifier: MIT */
/*
 * The programs at functions of ONNX Runtime. A call is remembered by thread when it is entered and
 * becomes one record when it returns; calls of the same function within it are part of it. A thread
 * that left a call without returning (it was ended, or unwound) is recognised by its stack pointer:
 * a later call that begins at the same depth or above is no inner call.
 */
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

enum { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_RINGBUF = 27 };
enum { BPF_ANY = 0, BPF_RB_NO_WAKEUP = 1 };

#include <bpf/bpf_helpers.h>

#include "../record.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* User registers, as the kernel passes them to a program at a uprobe. A C++ method that returns an
 * object gets a hidden argument: the first one on x86, x8 on arm64. */
#if defined(__TARGET_ARCH_x86)
struct registers {
    __u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags,
        sp, ss;
};
#define ARG_1(regs) ((regs)->di)
#define ARG_2(regs) ((regs)->si)
#define ARG_4(regs) ((regs)->cx)
#define ARG_5(regs) ((regs)->r8)
#define METHOD_THIS(regs) ((regs)->si)
#define METHOD_RESULT(regs) ((regs)->di)
#define RETURNED(regs) ((regs)->ax)
#elif defined(__TARGET_ARCH_arm64)
struct registers {
    __u64 x[31], sp, pc, state;
};
#define ARG_1(regs) ((regs)->x[0])
#define ARG_2(regs) ((regs)->x[1])
#define ARG_4(regs) ((regs)->x[3])
#define ARG_5(regs) ((regs)->x[4])
#define METHOD_THIS(regs) ((regs)->x[0])
#define METHOD_RESULT(regs) ((regs)->x[8])
#define RETURNED(regs) ((regs)->x[0])
#endif

/* Read at once: the verifier does not take a load from a changed pointer to the registers. */
static __always_inline __u64 returned(const struct registers *regs)
{
    __u64 value = RETURNED(regs);
    asm volatile("" : "+r"(value));
    return value;
}

struct call {
    __u64 start_ns; /* 0: none */
    __u64 sp;
    __u64 session; /* or, for a load by the C API, where its address will be stored */
    __u64 result;  /* where the status will be; 0: in a register */
    __u64 tensor;
    __u32 depth;
    __u32 by_api;
};

struct state {
    struct call run, load;
    char path[EW_PROBE_PATH_SIZE];
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 8192);
    __type(key, __u32);
    __type(value, struct state);
} calls SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct state);
} empty SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} lost SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, EW_PROBE_RING_BYTES);
} records SEC(".maps");

static __always_inline void count_lost(void)
{
    __u32 zero = 0;
    __u64 *count = bpf_map_lookup_elem(&lost, &zero);
    if (count)
        __sync_fetch_and_add(count, 1);
}

static __always_inline struct state *my_state(int make)
{
    __u32 tid = (__u32)bpf_get_current_pid_tgid(), zero = 0;
    struct state *mine = bpf_map_lookup_elem(&calls, &tid);
    if (mine || !make)
        return mine;
    struct state *none = bpf_map_lookup_elem(&empty, &zero);
    if (none)
        bpf_map_update_elem(&calls, &tid, none, BPF_ANY);
    return bpf_map_lookup_elem(&calls, &tid);
}

/* Whether this is the outermost call. */
static __always_inline int enter(struct call *call, __u64 sp)
{
    if (call->start_ns && sp < call->sp) {
        call->depth++;
        return 0;
    }
    call->depth = 1;
    call->sp = sp;
    call->result = call->tensor = call->session = 0;
    call->by_api = 0;
    call->start_ns = bpf_ktime_get_boot_ns();
    return 1;
}

/* Whether the outermost call returns. */
static __always_inline int leave(struct call *call)
{
    return call->start_ns && --call->depth == 0;
}

static __always_inline void fill(struct ew_probe_record *record, const struct call *call,
                                 __u64 now_ns, __u32 kind)
{
    __u64 id = bpf_get_current_pid_tgid();
    record->start_ns = call->start_ns;
    record->end_ns = now_ns;
    record->session = call->session;
    record->pid = (__u32)(id >> 32);
    record->tid = (__u32)id;
    record->kind = kind;
    record->failed = 0;
}

/* ----------------------------------------------------------------------------- run */

/* The address of the first input: the inputs are passed as a length and an array of values, each of
 * which begins with the address of its tensor. */
static __always_inline __u64 first_tensor(const struct registers *regs)
{
    __u64 words[2] = {0, 0}, tensor = 0;
#if defined(__TARGET_ARCH_x86)
    if (bpf_probe_read_user(words, sizeof words, (const void *)(regs->sp + 8)) != 0)
        return 0;
#else
    words[0] = regs->x[4];
    words[1] = regs->x[5];
#endif
    __u64 count = words[0] < words[1] ? words[0] : words[1];
    __u64 array = words[0] < words[1] ? words[1] : words[0];
    if (count == 0 || count > 4096 ||
        bpf_probe_read_user(&tensor, sizeof tensor, (const void *)array) != 0)
        return 0;
    return tensor;
}

SEC("uprobe")
int ew_ort_run_enter(struct registers *regs)
{
    struct state *mine = my_state(1);
    if (!mine) {
        count_lost();
        return 0;
    }
    if (!enter(&mine->run, regs->sp))
        return 0;
    mine->run.session = METHOD_THIS(regs);
    mine->run.result = METHOD_RESULT(regs);
    mine->run.tensor = first_tensor(regs);
    return 0;
}

/* OrtApi Run. Its status is returned in a register; its inputs are addresses of values. */
SEC("uprobe")
int ew_ort_api_run_enter(struct registers *regs)
{
    struct state *mine = my_state(1);
    __u64 value = 0, tensor = 0;
    if (!mine) {
        count_lost();
        return 0;
    }
    if (!enter(&mine->run, regs->sp))
        return 0;
    mine->run.by_api = 1;
    mine->run.session = ARG_1(regs);
    if (bpf_probe_read_user(&value, sizeof value, (const void *)ARG_4(regs)) == 0 &&
        bpf_probe_read_user(&tensor, sizeof tensor, (const void *)value) == 0)
        mine->run.tensor = tensor;
    return 0;
}

SEC("uprobe")
int ew_ort_run_return(struct registers *regs)
{
    __u64 status_of_api = returned(regs);
    __u64 now_ns = bpf_ktime_get_boot_ns();
    struct state *mine = my_state(0);
    if (!mine || !leave(&mine->run))
        return 0;
    struct ew_probe_run *record = bpf_ringbuf_reserve(&records, sizeof *record, 0);
    if (!record) {
        mine->run.start_ns = 0;
        count_lost();
        return 0;
    }
    __u64 status = 0;
    fill(&record->head, &mine->run, now_ns, EW_PROBE_RUN);
    if (mine->run.by_api)
        record->head.failed = status_of_api != 0;
    else if (bpf_probe_read_user(&status, sizeof status, (const void *)mine->run.result) == 0)
        record->head.failed = status != 0;
    record->tensor = mine->run.tensor;
    if (record->tensor == 0 ||
        bpf_probe_read_user(record->words, sizeof record->words, (const void *)record->tensor) != 0)
        record->tensor = 0;
    mine->run.start_ns = 0;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return 0;
}

/* ---------------------------------------------------------------------------- load */

SEC("uprobe")
int ew_ort_create_enter(struct registers *regs)
{
    struct state *mine = my_state(1);
    if (!mine || !enter(&mine->load, regs->sp))
        return 0;
    mine->load.by_api = 1;
    mine->load.session = ARG_4(regs);
    if (bpf_probe_read_user_str(mine->path, sizeof mine->path, (const void *)ARG_2(regs)) < 0)
        mine->path[0] = '\0';
    return 0;
}

SEC("uprobe")
int ew_ort_create_array_enter(struct registers *regs)
{
    struct state *mine = my_state(1);
    if (!mine || !enter(&mine->load, regs->sp))
        return 0;
    mine->load.by_api = 1;
    mine->load.session = ARG_5(regs);
    mine->path[0] = '\0';
    return 0;
}

SEC("uprobe")
int ew_ort_init_enter(struct registers *regs)
{
    struct state *mine = my_state(1);
    if (!mine || !enter(&mine->load, regs->sp))
        return 0;
    mine->load.session = METHOD_THIS(regs);
    mine->load.result = METHOD_RESULT(regs);
    mine->path[0] = '\0';
    return 0;
}

SEC("uprobe")
int ew_ort_load_return(struct registers *regs)
{
    __u64 status_of_api = returned(regs);
    __u64 now_ns = bpf_ktime_get_boot_ns();
    struct state *mine = my_state(0);
    if (!mine || !leave(&mine->load))
        return 0;
    struct ew_probe_load *record = bpf_ringbuf_reserve(&records, sizeof *record, 0);
    if (!record) {
        mine->load.start_ns = 0;
        count_lost();
        return 0;
    }
    __u64 value = 0;
    fill(&record->head, &mine->load, now_ns, EW_PROBE_LOAD);
    if (mine->load.by_api) {
        record->head.failed = status_of_api != 0;
        if (bpf_probe_read_user(&value, sizeof value, (const void *)mine->load.session) != 0)
            value = 0;
        record->head.session = value;
    } else if (bpf_probe_read_user(&value, sizeof value, (const void *)mine->load.result) == 0) {
        record->head.failed = value != 0;
    }
    __builtin_memcpy(record->path, mine->path, sizeof record->path);
    mine->load.start_ns = 0;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return 0;
}
