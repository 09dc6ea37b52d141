/* SPDX-License-Identifier: MIT */
/*
 * The shared memory between libetwatch-cuda.so inside a CUDA program and its watcher. The program
 * creates it, seals its size and sends it once; it is the only writer. To the watcher it is foreign
 * bytes.
 *
 *   0                          header
 *   EW_GPU_RING_HEADER         texts: each a length of two bytes and the bytes; fields `text` of
 *                              records are offsets here; 0: none
 *   EW_GPU_RING_FIRST          records, used in turn
 *
 * A record is valid if its `commit` is its number + 1 (numbers start at 0); it is written last.
 */
#ifndef EW_GPU_RING_H
#define EW_GPU_RING_H

#include <stdint.h>

enum {
    EW_GPU_RING_VERSION = 1,
    EW_GPU_RING_HEADER = 4096,
    EW_GPU_RING_TEXTS = 1 << 20,
    EW_GPU_RING_RECORDS = 1 << 17,
    EW_GPU_RING_FIRST = EW_GPU_RING_HEADER + EW_GPU_RING_TEXTS,
    EW_GPU_RING_TEXT_MAX = 1000,
    EW_GPU_RING_PROBLEM = 200,
};

#define EW_GPU_RING_MAGIC "etwgpu01"

enum ew_gpu_ring_state {
    EW_GPU_RING_STARTING = 0,
    EW_GPU_RING_ACTIVE = 1,
    EW_GPU_RING_FAILED = 2, /* `problem` says why: no records */
    EW_GPU_RING_TAKEN = 3,  /* the program uses CUPTI itself: no further records */
    EW_GPU_RING_CLOSED = 4, /* the program exited and delivered everything */
};

struct ew_gpu_ring_header {
    char magic[8];
    uint32_t version, records, texts, pid;
    uint32_t state; /* enum ew_gpu_ring_state */
    uint32_t cupti_version;
    /* CLOCK_BOOTTIME: what had ended before is in the ring, unless a launch of earlier is still
     * without its record. */
    uint64_t flushed_ns;
    uint64_t started_ns;
    uint64_t dropped; /* records that CUPTI or the writer dropped */
    char problem[EW_GPU_RING_PROBLEM];
};

enum ew_gpu_record_kind {
    EW_GPU_RECORD_KERNEL = 1,
    EW_GPU_RECORD_COPY = 2, /* sub: how, as in enum etwatch_gpu_copy */
    EW_GPU_RECORD_SET = 3,
    EW_GPU_RECORD_CALL = 4, /* sub: enum ew_gpu_call; text: 0; context: cbid, device: domain */
    EW_GPU_RECORD_SYNC = 5, /* the host waited; sub: the type of CUPTI */
    EW_GPU_RECORD_MARK = 6, /* NVTX; sub: flags of CUPTI; correlation: id of the range */
};

enum ew_gpu_call {
    EW_GPU_CALL_LAUNCH = 1,
    EW_GPU_CALL_COPY = 2,
    EW_GPU_CALL_SET = 3,
    EW_GPU_CALL_SYNC = 4,
    EW_GPU_CALL_GRAPH = 5,
};

struct ew_gpu_ring_record {
    uint64_t start_ns, end_ns; /* CLOCK_BOOTTIME */
    uint8_t kind, sub;
    uint16_t device;
    uint32_t context, stream;
    uint32_t correlation; /* joins an operation with the call that started it */
    uint32_t text;
    uint32_t tid; /* CALL and MARK */
    uint64_t bytes;
    uint32_t flags; /* CALL: 1: it failed; COPY: 1: asynchronous */
    uint32_t reserved;
    uint64_t commit;
};

_Static_assert(sizeof(struct ew_gpu_ring_record) == 72 - 8, "layout");
_Static_assert(sizeof(struct ew_gpu_ring_header) <= EW_GPU_RING_HEADER, "layout");

#define EW_GPU_RING_SIZE \
    (EW_GPU_RING_FIRST + EW_GPU_RING_RECORDS * (uint32_t)sizeof(struct ew_gpu_ring_record))

/* The environment of a traced program: the address of the watcher ("@" and an abstract Unix
 * address), and a library of CUPTI to be used instead of those that are found. */
#define EW_GPU_RING_VARIABLE "ETWATCH_GPU"
#define EW_GPU_CUPTI_VARIABLE "ETWATCH_CUPTI"

#endif
