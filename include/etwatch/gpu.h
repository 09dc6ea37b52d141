/* SPDX-License-Identifier: MIT */
/*
 * GPU traces: every kernel, copy and wait of CUDA programs, with the thread that launched it.
 *
 * A trace listens for programs that were started with three variables in their environment:
 * CUDA_INJECTION64_PATH and NVTX_INJECTION64_PATH name libetwatch-cuda.so, and ETWATCH_GPU is the
 * address of the trace. The library asks CUPTI (which comes with CUDA) for the records. A monitor
 * that gets the trace (etwatch_config.gpu_trace) reads it, and its exact GPU times replace the
 * estimates of the driver; without a monitor call etwatch_gpu_trace_read.
 *
 * Times of operations are those of CUPTI, on the clock of all events of a monitor, so operations
 * can be joined with spans and switches. Linux; elsewhere etwatch_gpu_trace_new returns
 * ETWATCH_ENOTSUP.
 *
 * The rules of etwatch.h hold. A trace may be used by one thread at a time: that of the monitor
 * while a monitor has it. on_op and on_state are then callbacks of the monitor. In them
 * etwatch_gpu_trace_process, _kernel, _stream and _refused of the same trace may be called, but
 * neither etwatch_gpu_trace_read nor _free.
 */
#ifndef ETWATCH_GPU_H
#define ETWATCH_GPU_H

#include <etwatch/etwatch.h>

#ifdef __cplusplus
extern "C" {
#endif

enum etwatch_gpu_op_kind {
    ETWATCH_GPU_KERNEL = 1,
    ETWATCH_GPU_COPY = 2,
    ETWATCH_GPU_SET = 3,   /* memory was filled */
    ETWATCH_GPU_WAIT = 4,  /* a thread waited for the GPU in a call */
    ETWATCH_GPU_RANGE = 5, /* a range of NVTX: a thread marked what it did */
};

/* "kernel", "copy", "set", "wait", "range"; NULL. */
ETWATCH_API const char *etwatch_gpu_op_kind_name(uint32_t kind);

/* The direction of a copy, as CUPTI numbers it. */
enum etwatch_gpu_copy {
    ETWATCH_GPU_HOST_TO_DEVICE = 1,
    ETWATCH_GPU_DEVICE_TO_HOST = 2,
    ETWATCH_GPU_DEVICE_TO_DEVICE = 8,
    ETWATCH_GPU_HOST_TO_HOST = 9,
    ETWATCH_GPU_PEER_TO_PEER = 10,
};

/* "host_to_device", ...; "array" for copies of arrays; NULL for a number that is not known. */
ETWATCH_API const char *etwatch_gpu_copy_name(uint32_t copy);

enum etwatch_gpu_op_flag {
    ETWATCH_GPU_OP_HAS_CALL = 1u << 0, /* tid, call and its times are known */
    ETWATCH_GPU_OP_ASYNC = 1u << 1,    /* COPY: the call did not wait for it */
};

/* One operation. KERNEL, COPY and SET ran on the GPU from start_ns to end_ns; WAIT and RANGE are
 * times of a thread. */
struct etwatch_gpu_op {
    uint32_t size;
    uint32_t kind;  /* enum etwatch_gpu_op_kind */
    uint32_t flags; /* enum etwatch_gpu_op_flag */
    uint32_t pid;
    uint32_t tid; /* of the thread that launched it, or that waited; 0: unknown */
    uint32_t device, context, stream;
    uint32_t copy;        /* enum etwatch_gpu_copy */
    uint32_t correlation; /* joins it with its call: unique in the process, counts on */
    uint64_t start_ns, end_ns;
    uint64_t call_start_ns, call_end_ns; /* of the call that launched it; 0: unknown */
    uint64_t bytes;                      /* COPY and SET */
    const char *name;                    /* KERNEL and RANGE; else NULL */
    const char *call;                    /* "cudaLaunchKernel"; NULL: unknown */
};

enum etwatch_gpu_state {
    ETWATCH_GPU_STARTING = 0,
    ETWATCH_GPU_ACTIVE = 1,
    ETWATCH_GPU_FAILED = 2, /* `problem` says why: nothing of it is known */
    ETWATCH_GPU_TAKEN = 3,  /* the program began to use CUPTI itself: nothing later is known */
    ETWATCH_GPU_CLOSED = 4, /* it exited, and everything is known */
    ETWATCH_GPU_CUT = 5,    /* it was ended: up to 100 ms before its end may be missing */
};

/* "starting", "active", "failed", "taken", "closed", "cut"; NULL. */
ETWATCH_API const char *etwatch_gpu_state_name(uint32_t state);

/* A CUDA process so far. */
struct etwatch_gpu_process {
    uint32_t size;
    uint32_t pid;
    uint32_t state; /* enum etwatch_gpu_state */
    uint32_t cupti_version;
    const char *problem; /* NULL: none */
    uint64_t kernels, copies, sets, waits, ranges;
    /* The time in which at least one of its operations ran on a GPU (added up over GPUs), and the
     * durations of all of them, which may overlap. */
    uint64_t gpu_ns, kernel_ns, copy_ns, set_ns;
    uint64_t bytes_to_device, bytes_to_host, bytes_on_device, bytes_other, set_bytes;
    uint64_t launches, launch_ns; /* calls that launched kernels or graphs, and the time in them */
    /* Threads waited for the GPU: in calls that wait, and in copies that are not asynchronous. */
    uint64_t cpu_wait_ns;
    /* Between its operations the GPU had none of this process, and the next was not launched yet.
     */
    uint64_t gpu_wait_ns;
    uint64_t first_ns, last_ns; /* the start of the first and the end of the last operation */
    uint64_t lost;              /* records that were overwritten, dropped or unfinished */
    uint64_t late_ns;           /* of operations that arrived too late for gpu_ns */
};

/* All operations of one kernel name, or of one stream. */
struct etwatch_gpu_sum {
    uint32_t size;
    uint32_t pid;
    uint32_t device, context, stream; /* of a stream; else 0 */
    uint32_t reserved;
    const char *name; /* of a kernel; else NULL */
    uint64_t count;   /* kernels */
    uint64_t ns, min_ns, max_ns;
    uint64_t copies, copy_bytes, copy_ns; /* of a stream; includes sets */
};

struct etwatch_gpu_trace;

struct etwatch_gpu_trace_options {
    uint32_t size;
    uint32_t reserved;
    void *ctx;
    /* Each operation, when it is known: about in order of their ends. May be NULL. */
    void (*on_op)(void *ctx, const struct etwatch_gpu_op *op);
    /* A process has another state. May be NULL. */
    void (*on_state)(void *ctx, const struct etwatch_gpu_process *process);
};

/* options may be NULL. */
ETWATCH_API int etwatch_gpu_trace_new(const struct etwatch_gpu_trace_options *options,
                                      struct etwatch_gpu_trace **ret_trace,
                                      struct etwatch_error_info *reterr);
/* After the monitor that has it. NULL is fine. */
ETWATCH_API void etwatch_gpu_trace_free(struct etwatch_gpu_trace *trace);
/* The value of ETWATCH_GPU for programs to be traced. Valid as long as the trace. */
ETWATCH_API const char *etwatch_gpu_trace_address(const struct etwatch_gpu_trace *trace);
/* Delivers what is new. unix_minus_raw_ns: anchor_unix_ns - anchor_raw_ns of etwatch_meta; `last`:
 * the processes have exited. Returns the number of operations. Not while a monitor has it. */
ETWATCH_API int etwatch_gpu_trace_read(struct etwatch_gpu_trace *trace, int64_t unix_minus_raw_ns,
                                       int last);
/* Process, kernel name or stream i, from 0, in the order in which they were seen. ETWATCH_EINVAL:
 * none. Strings are valid as long as the trace. */
ETWATCH_API int etwatch_gpu_trace_process(const struct etwatch_gpu_trace *trace, uint32_t i,
                                          struct etwatch_gpu_process *ret_process);
ETWATCH_API int etwatch_gpu_trace_kernel(const struct etwatch_gpu_trace *trace, uint32_t i,
                                         struct etwatch_gpu_sum *ret_sum);
ETWATCH_API int etwatch_gpu_trace_stream(const struct etwatch_gpu_trace *trace, uint32_t i,
                                         struct etwatch_gpu_sum *ret_sum);
/* Refused rings: of other users, or not rings. */
ETWATCH_API uint64_t etwatch_gpu_trace_refused(const struct etwatch_gpu_trace *trace);

#ifdef __cplusplus
}
#endif

#endif /* ETWATCH_GPU_H */
