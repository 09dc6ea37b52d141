/* SPDX-License-Identifier: MIT */
/*
 * Joins the records of one process: an operation with the call that launched it (by correlation
 * id), the two ends of a range, and operations with each other into the time in which the GPU was
 * busy.
 *
 * Records arrive in buffers, in any order, and an operation arrives only when it is done. So busy
 * time is merged as it arrives (busy.h), and a process is known to be idle only up to a horizon:
 * the flush before the last, or the oldest launch that is still without its operation.
 */
#include "gpu/process.h"

#include <string.h>

#include "base/alloc.h"
#include "gpu/busy.h"
#include "gpu/calls.h"

enum {
    CALLS = 1 << 16, /* by correlation id, which counts on */
    OPEN_MAX = CALLS / 2,
    RANGES = 1 << 12, /* by id */
    READ_MAX = EW_GPU_RING_RECORDS,
    DEVICES = 16,
    BINS = 256,
    KERNELS_MAX = 4096,
    KERNEL_CELLS = 2 * KERNELS_MAX,
    STREAMS_MAX = 1024,
};
/* GPU time is reported in parts of this length. */
static const uint64_t bin_ns = 10000000;
static const uint64_t ahead_ns = 1000000000;
/* What is done arrives within two flushes, which are 100 ms apart, unless its buffer has work that
 * is not done. */
static const uint64_t flush_ns = 100000000;
static const uint64_t settle_ns = 3000000000;

struct call {
    uint64_t start_ns, end_ns;
    uint32_t correlation; /* 0: none */
    uint32_t tid;
    uint32_t cbid;
    uint8_t kind; /* enum ew_gpu_call */
    bool driver;
    bool open; /* it launched something that is not here yet */
};

struct range {
    uint64_t start_ns;
    uint32_t id, text, tid; /* id 0: none */
};

/* Busy time in a part of time. */
struct bin {
    uint64_t number, ns;
};

struct device {
    struct ew_gpu_busy_list busy;
    struct bin *bins; /* NULL: not used yet */
};

struct kernel {
    char *name;
    uint32_t text;
    uint64_t count, ns, min_ns, max_ns;
};

struct stream {
    uint32_t device, context, stream;
    uint64_t kernels, kernel_ns, min_ns, max_ns, copies, copy_ns, copy_bytes;
};

struct ew_gpu_process {
    struct ew_gpu_ring ring;
    struct etwatch_gpu_process totals; /* its times are Unix times */
    char problem[EW_GPU_RING_PROBLEM];
    struct call *calls;
    uint32_t oldest_open, newest; /* correlation ids */
    struct range *ranges;
    struct ew_gpu_ring_record
        *ops; /* the first `held` of them wait for their call since last time */
    uint32_t op_count, op_size, held;
    uint64_t known_ns; /* up to here it is known when it used a GPU; 0: never */
    struct device devices[DEVICES];
    struct kernel *kernels;
    uint32_t kernel_count, kernel_size;
    uint32_t kernel_cells[KERNEL_CELLS]; /* index + 1 */
    struct stream *streams;
    uint32_t stream_count, stream_size, last_stream;
    char text[EW_GPU_RING_TEXT_MAX + 1];
};

struct ew_gpu_process *ew_gpu_process_new(const unsigned char *bytes, uint32_t pid)
{
    struct ew_gpu_process *process = ew_calloc(1, sizeof *process);
    if (process == NULL)
        return NULL;
    process->calls = ew_calloc(CALLS, sizeof *process->calls);
    process->ranges = ew_calloc(RANGES, sizeof *process->ranges);
    process->ring.bytes = bytes;
    process->totals.size = sizeof process->totals;
    process->totals.pid = pid;
    if (process->calls == NULL || process->ranges == NULL) {
        ew_gpu_process_free(process);
        return NULL;
    }
    return process;
}

void ew_gpu_process_free(struct ew_gpu_process *process)
{
    if (process == NULL)
        return;
    for (uint32_t i = 0; i < process->kernel_count; i++)
        ew_free(process->kernels[i].name);
    ew_free(process->calls);
    ew_free(process->ranges);
    ew_free(process->ops);
    for (uint32_t i = 0; i < DEVICES; i++) {
        ew_gpu_busy_done(&process->devices[i].busy);
        ew_free(process->devices[i].bins);
    }
    ew_free(process->kernels);
    ew_free(process->streams);
    ew_free(process);
}

const unsigned char *ew_gpu_process_ring(const struct ew_gpu_process *process)
{
    return process->ring.bytes;
}

/* Room for one more; NULL: the maximum is reached, or out of memory. */
static void *grow(void *list, uint32_t count, uint32_t *size, uint32_t max, size_t each)
{
    if (count < *size)
        return list;
    uint32_t wanted = *size == 0 ? 64 : *size * 2;
    void *bigger = wanted > max ? NULL : ew_realloc_array(list, wanted, each);
    if (bigger != NULL)
        *size = wanted;
    return bigger;
}

/* -------------------------------------------------------------------------- calls */

static struct call *call_of(const struct ew_gpu_process *process, uint32_t correlation)
{
    struct call *call = &process->calls[correlation % CALLS];
    return correlation != 0 && call->correlation == correlation ? call : NULL;
}

static void take_call(struct ew_gpu_process *process, const struct ew_gpu_ring_record *record)
{
    bool launches = record->sub == EW_GPU_CALL_LAUNCH || record->sub == EW_GPU_CALL_GRAPH;
    struct call *call = &process->calls[record->correlation % CALLS];
    if (record->correlation == 0 || record->end_ns < record->start_ns)
        return;
    if (call->correlation == record->correlation)
        return; /* the runtime's call contains that of the driver */
    *call = (struct call){
        .start_ns = record->start_ns,
        .end_ns = record->end_ns,
        .correlation = record->correlation,
        .tid = record->tid,
        .cbid = record->context,
        .kind = record->sub,
        .driver = record->device != 0,
        .open = launches && (record->flags & 1) == 0,
    };
    if (launches) {
        process->totals.launches++;
        process->totals.launch_ns += record->end_ns - record->start_ns;
    }
    if (process->newest == 0)
        process->oldest_open = record->correlation;
    if (record->correlation > process->newest)
        process->newest = record->correlation;
    else if (record->correlation < process->oldest_open)
        process->oldest_open = record->correlation; /* of another thread */
}

/* The start of the oldest launch without its operation; UINT64_MAX: there is none. */
static uint64_t oldest_launch(struct ew_gpu_process *process)
{
    if (process->newest - process->oldest_open > OPEN_MAX)
        process->oldest_open = process->newest - OPEN_MAX;
    uint64_t oldest_ns = UINT64_MAX;
    for (; process->oldest_open < process->newest; process->oldest_open++) {
        const struct call *call = call_of(process, process->oldest_open);
        if (call != NULL && call->open)
            break;
    }
    const struct call *call = call_of(process, process->oldest_open);
    if (call != NULL && call->open)
        oldest_ns = call->start_ns;
    return oldest_ns;
}

/* ------------------------------------------------------------------ kernels, streams */

static struct kernel *kernel_of(struct ew_gpu_process *process, uint32_t text)
{
    uint32_t cell = (text * 2654435761u >> 8) % KERNEL_CELLS;
    for (; process->kernel_cells[cell] != 0; cell = (cell + 1) % KERNEL_CELLS)
        if (process->kernels[process->kernel_cells[cell] - 1].text == text)
            return &process->kernels[process->kernel_cells[cell] - 1];
    void *list = grow(process->kernels, process->kernel_count, &process->kernel_size, KERNELS_MAX,
                      sizeof *process->kernels);
    if (list == NULL)
        return NULL;
    process->kernels = list;
    bool known = ew_gpu_ring_text(&process->ring, text, process->text, sizeof process->text);
    char *name = ew_strdup(known ? process->text : "(unknown)");
    if (name == NULL)
        return NULL;
    struct kernel *kernel = &process->kernels[process->kernel_count++];
    *kernel = (struct kernel){.name = name, .text = text, .min_ns = UINT64_MAX};
    process->kernel_cells[cell] = process->kernel_count;
    return kernel;
}

static struct stream *stream_of(struct ew_gpu_process *process, const struct ew_gpu_ring_record *op)
{
    for (uint32_t i = 0; i < process->stream_count; i++) {
        uint32_t at = (process->last_stream + i) % process->stream_count;
        struct stream *stream = &process->streams[at];
        if (stream->stream == op->stream && stream->context == op->context &&
            stream->device == op->device) {
            process->last_stream = at;
            return stream;
        }
    }
    void *list = grow(process->streams, process->stream_count, &process->stream_size, STREAMS_MAX,
                      sizeof *process->streams);
    if (list == NULL)
        return NULL;
    process->streams = list;
    struct stream *stream = &process->streams[process->stream_count++];
    *stream = (struct stream){
        .device = op->device, .context = op->context, .stream = op->stream, .min_ns = UINT64_MAX};
    return stream;
}

/* ---------------------------------------------------------------------- busy time */

static void report(const struct ew_gpu_process *process, uint32_t device, uint64_t from_ns,
                   uint64_t to_ns, uint64_t gpu_ns, const struct ew_gpu_target *target)
{
    const struct ew_gpu_busy busy = {.pid = process->totals.pid,
                                     .device = device,
                                     .from_ns = from_ns,
                                     .to_ns = to_ns,
                                     .gpu_ns = gpu_ns};
    if (target->on_busy != NULL && to_ns > from_ns)
        target->on_busy(target->busy_ctx, &busy);
}

static void report_bin(struct ew_gpu_process *process, uint32_t device, struct bin *bin,
                       const struct ew_gpu_target *target)
{
    if (bin->ns > 0)
        report(process, device, bin->number * bin_ns, (bin->number + 1) * bin_ns, bin->ns, target);
    bin->ns = 0;
}

static void add_to_bin(struct ew_gpu_process *process, uint32_t device, uint64_t number,
                       uint64_t ns, const struct ew_gpu_target *target)
{
    struct bin *bin = &process->devices[device].bins[number % BINS];
    if (bin->number != number)
        report_bin(process, device, bin, target);
    bin->number = number;
    bin->ns += ns;
}

struct piece {
    struct ew_gpu_process *process;
    uint32_t device;
    const struct ew_gpu_target *target;
};

/* Short pieces are added up in bins; whole bins in the middle of a long one are reported at once.
 */
static void on_piece(void *ctx, uint64_t from_ns, uint64_t to_ns)
{
    const struct piece *piece = ctx;
    uint64_t first = from_ns / bin_ns, last = to_ns / bin_ns;
    if (first == last) {
        add_to_bin(piece->process, piece->device, first, to_ns - from_ns, piece->target);
        return;
    }
    add_to_bin(piece->process, piece->device, first, (first + 1) * bin_ns - from_ns, piece->target);
    report(piece->process, piece->device, (first + 1) * bin_ns, last * bin_ns,
           (last - first - 1) * bin_ns, piece->target);
    add_to_bin(piece->process, piece->device, last, to_ns - last * bin_ns, piece->target);
}

static void add_busy(struct ew_gpu_process *process, const struct ew_gpu_ring_record *op,
                     const struct call *call, const struct ew_gpu_target *target)
{
    uint32_t index = op->device < DEVICES ? op->device : DEVICES - 1u;
    struct device *device = &process->devices[index];
    const struct ew_gpu_interval added = {op->start_ns, op->end_ns,
                                          call != NULL ? call->end_ns : 0};
    struct piece piece = {process, index, target};
    if (device->bins == NULL)
        device->bins = ew_calloc(BINS, sizeof *device->bins);
    if (device->bins == NULL) {
        process->totals.late_ns += op->end_ns - op->start_ns;
        return;
    }
    ew_gpu_busy_add(&device->busy, &added, on_piece, &piece);
}

/* --------------------------------------------------------------------- operations */

static void count_kernel(struct ew_gpu_process *process, const struct ew_gpu_ring_record *op,
                         struct etwatch_gpu_op *out)
{
    uint64_t ns = op->end_ns - op->start_ns;
    struct kernel *kernel = kernel_of(process, op->text);
    process->totals.kernels++;
    process->totals.kernel_ns += ns;
    out->name = kernel != NULL ? kernel->name : NULL;
    if (kernel == NULL)
        return;
    kernel->count++;
    kernel->ns += ns;
    kernel->min_ns = ns < kernel->min_ns ? ns : kernel->min_ns;
    kernel->max_ns = ns > kernel->max_ns ? ns : kernel->max_ns;
}

static void count_copy(struct ew_gpu_process *process, const struct ew_gpu_ring_record *op)
{
    struct etwatch_gpu_process *totals = &process->totals;
    uint64_t ns = op->end_ns - op->start_ns;
    if (op->kind == EW_GPU_RECORD_SET) {
        totals->sets++;
        totals->set_ns += ns;
        totals->set_bytes += op->bytes;
        return;
    }
    totals->copies++;
    totals->copy_ns += ns;
    if (op->sub == ETWATCH_GPU_HOST_TO_DEVICE)
        totals->bytes_to_device += op->bytes;
    else if (op->sub == ETWATCH_GPU_DEVICE_TO_HOST)
        totals->bytes_to_host += op->bytes;
    else if (op->sub == ETWATCH_GPU_DEVICE_TO_DEVICE)
        totals->bytes_on_device += op->bytes;
    else
        totals->bytes_other += op->bytes;
}

static void count_stream(struct ew_gpu_process *process, const struct ew_gpu_ring_record *op)
{
    struct stream *stream = stream_of(process, op);
    uint64_t ns = op->end_ns - op->start_ns;
    if (stream == NULL)
        return;
    if (op->kind != EW_GPU_RECORD_KERNEL) {
        stream->copies++;
        stream->copy_ns += ns;
        stream->copy_bytes += op->bytes;
        return;
    }
    stream->kernels++;
    stream->kernel_ns += ns;
    stream->min_ns = ns < stream->min_ns ? ns : stream->min_ns;
    stream->max_ns = ns > stream->max_ns ? ns : stream->max_ns;
}

static void deliver(const struct ew_gpu_target *target, struct etwatch_gpu_op *op)
{
    uint64_t offset_ns = (uint64_t)target->unix_minus_raw_ns;
    op->size = sizeof *op;
    op->start_ns += offset_ns;
    op->end_ns += offset_ns;
    if (op->call_start_ns != 0) {
        op->call_start_ns += offset_ns;
        op->call_end_ns += offset_ns;
    }
    if (target->on_op != NULL)
        target->on_op(target->ctx, op);
}

static void describe_call(const struct call *call, struct etwatch_gpu_op *op)
{
    const struct ew_gpu_call_info *info = ew_gpu_call_find(call->driver, call->cbid);
    op->flags |= ETWATCH_GPU_OP_HAS_CALL;
    op->tid = call->tid;
    op->call_start_ns = call->start_ns;
    op->call_end_ns = call->end_ns;
    op->call = info != NULL ? info->name : NULL;
}

static void note_time(struct ew_gpu_process *process, const struct etwatch_gpu_op *op)
{
    struct etwatch_gpu_process *totals = &process->totals;
    if (totals->first_ns == 0 || op->start_ns < totals->first_ns)
        totals->first_ns = op->start_ns;
    totals->last_ns = op->end_ns > totals->last_ns ? op->end_ns : totals->last_ns;
}

/* Whether the call of a copy returns only when the copy is done. */
static bool waits_for_copy(const struct ew_gpu_ring_record *record, const struct call *call)
{
    const struct ew_gpu_call_info *info = ew_gpu_call_find(call->driver, call->cbid);
    return record->kind == EW_GPU_RECORD_COPY && info != NULL &&
           strstr(info->name, "Async") == NULL && record->end_ns >= call->start_ns &&
           record->end_ns <= call->end_ns;
}

static void take_operation(struct ew_gpu_process *process, const struct ew_gpu_ring_record *record,
                           struct call *call, const struct ew_gpu_target *target)
{
    struct etwatch_gpu_op op = {
        .kind = record->kind == EW_GPU_RECORD_KERNEL ? ETWATCH_GPU_KERNEL
                : record->kind == EW_GPU_RECORD_COPY ? ETWATCH_GPU_COPY
                                                     : ETWATCH_GPU_SET,
        .pid = process->totals.pid,
        .device = record->device,
        .context = record->context,
        .stream = record->stream,
        .copy = record->kind == EW_GPU_RECORD_COPY ? record->sub : 0u,
        .correlation = record->correlation,
        .start_ns = record->start_ns,
        .end_ns = record->end_ns,
        .bytes = record->bytes,
    };
    if (op.kind == ETWATCH_GPU_KERNEL)
        count_kernel(process, record, &op);
    else
        count_copy(process, record);
    count_stream(process, record);
    add_busy(process, record, call, target);
    if (record->kind == EW_GPU_RECORD_COPY && (record->flags & 1) != 0)
        op.flags |= ETWATCH_GPU_OP_ASYNC;
    if (call != NULL) {
        call->open = false;
        describe_call(call, &op);
        if (waits_for_copy(record, call))
            process->totals.cpu_wait_ns += record->end_ns - call->start_ns;
    }
    deliver(target, &op);
    note_time(process, &op);
}

static void take_wait(struct ew_gpu_process *process, const struct ew_gpu_ring_record *record,
                      const struct ew_gpu_target *target)
{
    const struct ew_gpu_call_info *info = ew_gpu_call_find(record->device != 0, record->context);
    struct etwatch_gpu_op op = {
        .kind = ETWATCH_GPU_WAIT,
        .flags = ETWATCH_GPU_OP_HAS_CALL,
        .pid = process->totals.pid,
        .tid = record->tid,
        .correlation = record->correlation,
        .start_ns = record->start_ns,
        .end_ns = record->end_ns,
        .call_start_ns = record->start_ns,
        .call_end_ns = record->end_ns,
        .call = info != NULL ? info->name : NULL,
    };
    process->totals.waits++;
    process->totals.cpu_wait_ns += record->end_ns - record->start_ns;
    deliver(target, &op);
}

static void take_mark(struct ew_gpu_process *process, const struct ew_gpu_ring_record *record,
                      const struct ew_gpu_target *target)
{
    enum { STARTS = 2, ENDS = 4 };
    struct range *range = &process->ranges[record->correlation % RANGES];
    if ((record->sub & STARTS) != 0) {
        *range = (struct range){record->start_ns, record->correlation, record->text, record->tid};
        return;
    }
    if ((record->sub & ENDS) == 0 || range->id != record->correlation || range->id == 0 ||
        record->start_ns < range->start_ns)
        return;
    bool known = ew_gpu_ring_text(&process->ring, range->text, process->text, sizeof process->text);
    struct etwatch_gpu_op op = {
        .kind = ETWATCH_GPU_RANGE,
        .pid = process->totals.pid,
        .tid = range->tid,
        .start_ns = range->start_ns,
        .end_ns = record->start_ns,
        .name = known ? process->text : NULL,
    };
    range->id = 0;
    process->totals.ranges++;
    deliver(target, &op);
}

/* ------------------------------------------------------------------------ reading */

struct reading {
    struct ew_gpu_process *process;
    const struct ew_gpu_target *target;
};

static void hold_operation(struct ew_gpu_process *process, const struct ew_gpu_ring_record *record)
{
    void *list = grow(process->ops, process->op_count, &process->op_size, 4 * READ_MAX,
                      sizeof *process->ops);
    if (list == NULL) {
        process->totals.lost++;
        return;
    }
    process->ops = list;
    process->ops[process->op_count++] = *record;
}

static void on_record(void *ctx, const struct ew_gpu_ring_record *record)
{
    struct reading *reading = ctx;
    struct ew_gpu_process *process = reading->process;
    /* An operation that was cut by the last flush has no end. */
    if (record->start_ns == 0 || record->end_ns < record->start_ns ||
        record->end_ns > reading->target->now_ns + ahead_ns) {
        process->totals.lost++;
        return;
    }
    switch (record->kind) {
    case EW_GPU_RECORD_CALL:
        if (record->sub == EW_GPU_CALL_SYNC)
            take_wait(process, record, reading->target);
        else
            take_call(process, record);
        break;
    case EW_GPU_RECORD_MARK:
        take_mark(process, record, reading->target);
        break;
    case EW_GPU_RECORD_KERNEL:
    case EW_GPU_RECORD_COPY:
    case EW_GPU_RECORD_SET:
        hold_operation(process, record);
        break;
    default:
        break;
    }
}

/* Operations with their calls; those without wait for one more reading. */
static uint32_t take_operations(struct ew_gpu_process *process, bool last,
                                const struct ew_gpu_target *target)
{
    uint32_t count = 0, kept = 0;
    for (uint32_t i = 0; i < process->op_count; i++) {
        const struct ew_gpu_ring_record record = process->ops[i];
        struct call *call = call_of(process, record.correlation);
        if (call == NULL && i >= process->held && !last) {
            process->ops[kept++] = record;
            continue;
        }
        take_operation(process, &record, call, target);
        count++;
    }
    process->op_count = process->held = kept;
    return count;
}

/* Reports what the bins have, and that the process used no GPU otherwise up to the horizon. */
static void report_all(struct ew_gpu_process *process, uint64_t horizon_ns,
                       const struct ew_gpu_target *target)
{
    for (uint32_t i = 0; i < DEVICES; i++)
        for (uint32_t b = 0; b < BINS && process->devices[i].bins != NULL; b++)
            report_bin(process, i, &process->devices[i].bins[b], target);
    if (process->known_ns != 0 && horizon_ns > process->known_ns)
        report(process, 0, process->known_ns, horizon_ns, 0, target);
    if (horizon_ns > process->known_ns)
        process->known_ns = horizon_ns;
}

/* Adds up what nothing can change any more. */
static void settle(struct ew_gpu_process *process, uint64_t before_ns)
{
    struct etwatch_gpu_process *totals = &process->totals;
    totals->gpu_ns = totals->gpu_wait_ns = 0;
    for (uint32_t i = 0; i < DEVICES; i++) {
        struct ew_gpu_busy_list *busy = &process->devices[i].busy;
        ew_gpu_busy_forget(busy, before_ns);
        totals->gpu_ns += busy->busy_ns;
        totals->gpu_wait_ns += busy->wait_ns;
        totals->late_ns += busy->late_ns;
        busy->late_ns = 0;
    }
}

static void take_state(struct ew_gpu_process *process, const struct ew_gpu_ring_header *header,
                       bool ended)
{
    struct etwatch_gpu_process *totals = &process->totals;
    uint32_t state = header->state <= EW_GPU_RING_CLOSED ? header->state : EW_GPU_RING_FAILED;
    bool cut = ended && (state == EW_GPU_RING_ACTIVE || state == EW_GPU_RING_STARTING);
    totals->state = cut ? (uint32_t)ETWATCH_GPU_CUT : state;
    totals->cupti_version = header->cupti_version;
    memcpy(process->problem, header->problem, sizeof process->problem);
    totals->problem = process->problem[0] != '\0' ? process->problem : NULL;
}

uint32_t ew_gpu_process_read(struct ew_gpu_process *process, bool ended,
                             const struct ew_gpu_target *target)
{
    struct reading reading = {process, target};
    struct ew_gpu_ring_header header;
    /* The header first: what it says to be complete is then in the ring. */
    ew_gpu_ring_header(&process->ring, &header);
    take_state(process, &header, ended);
    bool last = ended || header.state == EW_GPU_RING_CLOSED;
    (void)ew_gpu_ring_read(&process->ring, last, READ_MAX, on_record, &reading);
    uint32_t count = take_operations(process, last, target);
    uint64_t horizon_ns = oldest_launch(process);
    uint64_t flushed_ns = header.flushed_ns > flush_ns ? header.flushed_ns - flush_ns : 0;
    horizon_ns = flushed_ns < horizon_ns ? flushed_ns : horizon_ns;
    if (process->known_ns == 0 && header.started_ns <= target->now_ns)
        process->known_ns = header.started_ns;
    if (last)
        horizon_ns = target->now_ns;
    report_all(process, horizon_ns < target->now_ns ? horizon_ns : target->now_ns, target);
    settle(process, last ? UINT64_MAX : horizon_ns > settle_ns ? horizon_ns - settle_ns : 0);
    return count;
}

/* ------------------------------------------------------------------------ results */

void ew_gpu_process_totals(const struct ew_gpu_process *process,
                           struct etwatch_gpu_process *ret_totals)
{
    struct ew_gpu_ring_header header;
    ew_gpu_ring_header(&process->ring, &header);
    *ret_totals = process->totals;
    ret_totals->lost += process->ring.lost + header.dropped;
}

uint32_t ew_gpu_process_kernels(const struct ew_gpu_process *process)
{
    return process->kernel_count;
}

uint32_t ew_gpu_process_streams(const struct ew_gpu_process *process)
{
    return process->stream_count;
}

void ew_gpu_process_kernel(const struct ew_gpu_process *process, uint32_t i,
                           struct etwatch_gpu_sum *ret_sum)
{
    const struct kernel *kernel = &process->kernels[i];
    *ret_sum = (struct etwatch_gpu_sum){
        .size = sizeof *ret_sum,
        .pid = process->totals.pid,
        .name = kernel->name,
        .count = kernel->count,
        .ns = kernel->ns,
        .min_ns = kernel->min_ns,
        .max_ns = kernel->max_ns,
    };
}

void ew_gpu_process_stream(const struct ew_gpu_process *process, uint32_t i,
                           struct etwatch_gpu_sum *ret_sum)
{
    const struct stream *stream = &process->streams[i];
    *ret_sum = (struct etwatch_gpu_sum){
        .size = sizeof *ret_sum,
        .pid = process->totals.pid,
        .device = stream->device,
        .context = stream->context,
        .stream = stream->stream,
        .count = stream->kernels,
        .ns = stream->kernel_ns,
        .min_ns = stream->kernels > 0 ? stream->min_ns : 0,
        .max_ns = stream->max_ns,
        .copies = stream->copies,
        .copy_bytes = stream->copy_bytes,
        .copy_ns = stream->copy_ns,
    };
}
