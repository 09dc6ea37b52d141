/* SPDX-License-Identifier: MIT */
/*
 * The part of CUPTI's binary interface that is used here, declared anew because NVIDIA's headers
 * are not needed to build. Records grow at their end with each version; the fields below have had
 * the same offsets in the newest records of CUDA 11.7, 11.8, 12.1, 12.4, 12.6, 12.8 and 13.0
 * (compared with a program that prints offsetof for each set of headers).
 */
#ifndef EW_CUDA_CUPTI_ABI_H
#define EW_CUDA_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

enum {
    CUPTI_OK = 0,
    CUPTI_LIMIT_REACHED = 12, /* the end of a buffer */
    CUPTI_BUSY = 39,          /* another subscriber */
};

enum cupti_kind {
    CUPTI_MEMCPY = 1,
    CUPTI_MEMSET = 2,
    CUPTI_DRIVER = 4,
    CUPTI_RUNTIME = 5,
    CUPTI_CONCURRENT_KERNEL = 10,
    CUPTI_MARKER = 12,
    CUPTI_MEMCPY_PEER = 22,
    CUPTI_SYNCHRONIZATION = 38,
};

enum { CUPTI_THREAD_ID_SYSTEM = 1, CUPTI_FLUSH_FORCED = 1 };

/* All records are packed to 8 bytes and begin with their kind. */
struct cupti_kernel {
    uint32_t kind;
    uint8_t skipped[12];
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint32_t local_per_thread, local_total;
    uint32_t correlation;
    int64_t grid_id;
    const char *name;
};
struct cupti_memcpy {
    uint32_t kind;
    uint8_t copy_kind, source_kind, target_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
};
struct cupti_memcpy_peer {
    uint32_t kind;
    uint8_t copy_kind, source_kind, target_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, source_device, source_context, target_device, target_context;
    uint32_t correlation;
};
struct cupti_memset {
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
};
struct cupti_call {
    uint32_t kind, cbid;
    uint64_t start, end;
    uint32_t process, thread, correlation, result;
};
struct cupti_marker {
    uint32_t kind, flags;
    uint64_t time;
    uint32_t id, object_kind;
    uint32_t process, thread; /* of the object, for threads */
    uint32_t skipped[2];
    const char *name, *domain;
};
struct cupti_synchronization {
    uint32_t kind, type;
    uint64_t start, end;
    uint32_t correlation, context, stream, event;
};

_Static_assert(offsetof(struct cupti_kernel, start) == 16 &&
                   offsetof(struct cupti_kernel, device) == 40 &&
                   offsetof(struct cupti_kernel, correlation) == 92 &&
                   (sizeof(void *) != 8 || offsetof(struct cupti_kernel, name) == 104) &&
                   offsetof(struct cupti_memcpy, correlation) == 44 &&
                   offsetof(struct cupti_memcpy_peer, correlation) == 60 &&
                   offsetof(struct cupti_memset, correlation) == 44 &&
                   offsetof(struct cupti_call, thread) == 28 && sizeof(struct cupti_call) == 40 &&
                   offsetof(struct cupti_marker, name) == 40 &&
                   offsetof(struct cupti_synchronization, correlation) == 24,
               "layouts of cupti_activity.h");

typedef void (*cupti_request)(uint8_t **buffer, size_t *size, size_t *records_max);
typedef void (*cupti_complete)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                               size_t valid);

/* NULL: this version does not have it. Those up to flush are always there. */
struct cupti_api {
    int (*version)(uint32_t *version);
    int (*register_callbacks)(cupti_request request, cupti_complete complete);
    int (*enable)(int kind);
    int (*disable)(int kind);
    int (*next)(uint8_t *buffer, size_t valid, void **record);
    int (*flush)(uint32_t flags);
    int (*dropped)(void *context, uint32_t stream, size_t *dropped);
    int (*timestamp)(uint64_t *ns);
    int (*register_timestamp)(uint64_t (*now)(void));
    int (*thread_id_type)(int type);
    int (*enable_runtime_call)(uint32_t cbid, uint8_t enable);
    int (*enable_driver_call)(uint32_t cbid, uint8_t enable);
    int (*subscribe)(void **subscriber, void (*callback)(void), void *data);
    int (*unsubscribe)(void *subscriber);
    int (*error_string)(int code, const char **text);
    int (*nvtx)(void *table);
};

#endif
