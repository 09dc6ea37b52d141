/* SPDX-License-Identifier: MIT */
/* What the BPF programs of probes write, shared with the reader in user space. */
#ifndef EW_PROBE_RECORD_H
#define EW_PROBE_RECORD_H

#ifdef __bpf__
typedef __u32 ew_u32;
typedef __u64 ew_u64;
#else
#include <stdint.h>
typedef uint32_t ew_u32;
typedef uint64_t ew_u64;
#endif

enum {
    EW_PROBE_RUN = 1,
    EW_PROBE_LOAD = 2,
    EW_PROBE_PATH_SIZE = 256,
    EW_PROBE_TENSOR_WORDS = 18, /* of the first input: enough to hold its shape */
    EW_PROBE_RING_BYTES = 1 << 20,
};

/* One call that has returned. Times are those of CLOCK_BOOTTIME. */
struct ew_probe_record {
    ew_u64 start_ns, end_ns;
    ew_u64 session; /* address of the object; 0: unknown */
    ew_u32 pid, tid;
    ew_u32 kind;
    ew_u32 failed;
};

struct ew_probe_run {
    struct ew_probe_record head;
    ew_u64 tensor;                       /* address of the first input; 0: unknown */
    ew_u64 words[EW_PROBE_TENSOR_WORDS]; /* its bytes */
};

struct ew_probe_load {
    struct ew_probe_record head;
    char path[EW_PROBE_PATH_SIZE]; /* "": unknown */
};

#endif
