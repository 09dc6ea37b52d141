/* SPDX-License-Identifier: MIT */
/* Owns the socket of a trace and the memory of its processes. */
#include <string.h>

#include "base/alloc.h"
#include "base/ring_socket.h"
#include "gpu/trace.h"
#include "os/os.h"

struct etwatch_gpu_trace {
    struct ew_gpu_list list;
    struct ew_ring_socket socket;
};

int etwatch_gpu_trace_new(const struct etwatch_gpu_trace_options *options,
                          struct etwatch_gpu_trace **ret_trace, struct etwatch_error_info *reterr)
{
    struct ew_error err = {0};
    struct etwatch_gpu_trace *trace = ret_trace == NULL ? NULL : ew_calloc(1, sizeof *trace);
    if (ret_trace == NULL)
        return ETWATCH_EINVAL;
    int rc = trace == NULL ? ETWATCH_ENOMEM : 0;
    if (rc == 0) {
        trace->socket.fd = -1;
        rc = ew_gpu_list_options(&trace->list, options);
    }
    if (rc == 0)
        rc = ew_ring_socket_open(&trace->socket, "gpu", &err);
    if (rc == 0) {
        *ret_trace = trace;
        return 0;
    }
    ew_error_out(reterr, &err, rc);
    etwatch_gpu_trace_free(trace);
    return rc;
}

void etwatch_gpu_trace_free(struct etwatch_gpu_trace *trace)
{
    if (trace == NULL)
        return;
    for (uint32_t i = 0; i < trace->list.count; i++) {
        struct ew_gpu_process *process = trace->list.entries[i].process;
        const unsigned char *ring = ew_gpu_process_ring(process);
        ew_gpu_process_free(process);
        ew_ring_socket_unmap(ring, EW_GPU_RING_SIZE);
    }
    ew_ring_socket_close(&trace->socket);
    ew_free(trace);
}

const char *etwatch_gpu_trace_address(const struct etwatch_gpu_trace *trace)
{
    return trace == NULL ? NULL : trace->socket.address;
}

struct ew_gpu_list *ew_gpu_trace_list(const struct etwatch_gpu_trace *trace)
{
    return (struct ew_gpu_list *)(uintptr_t)&trace->list;
}

/* One message. False: there is none. */
static bool accept_one(struct etwatch_gpu_trace *trace)
{
    const unsigned char *bytes;
    uint32_t pid;
    if (!ew_ring_socket_take(&trace->socket, EW_GPU_RING_SIZE, &bytes, &pid))
        return false;
    struct ew_gpu_process *process =
        bytes != NULL && ew_gpu_ring_valid(bytes) ? ew_gpu_process_new(bytes, pid) : NULL;
    if (process == NULL || !ew_gpu_list_add(&trace->list, process, pid)) {
        trace->list.refused++;
        ew_gpu_process_free(process);
        ew_ring_socket_unmap(bytes, EW_GPU_RING_SIZE);
    }
    return true;
}

int ew_gpu_trace_read(struct etwatch_gpu_trace *trace, const struct ew_gpu_reading *reading)
{
    /* A sender that is faster than this must not keep the reader here. */
    for (uint32_t i = 0; i < EW_GPU_PROCESSES_MAX && accept_one(trace); i++)
        continue;
    return ew_gpu_list_read(&trace->list, reading);
}

int etwatch_gpu_trace_read(struct etwatch_gpu_trace *trace, int64_t unix_minus_raw_ns, int last)
{
    const struct ew_gpu_reading reading = {
        .unix_minus_raw_ns = unix_minus_raw_ns, .now_ns = ew_os_raw_ns(), .last = last != 0};
    return trace == NULL ? ETWATCH_EINVAL : ew_gpu_trace_read(trace, &reading);
}
