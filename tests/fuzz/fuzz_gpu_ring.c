/* SPDX-License-Identifier: MIT */
/*
 * The ring of a CUDA program, which writes it as it likes. Input: steps of one byte each, with
 * their arguments: 0 reads; 1 reads for the last time; 2 changes the header, 3 the texts, 4 a
 * record: two bytes of position (texts: in units of 16; a record: its number, from the end if
 * negative), one of length, the bytes; 5 writes the next record properly, from nine bytes.
 * Operations, busy times and totals agree and are bounded, whatever the bytes are.
 */
#include <string.h>

#include "base/bytes.h"
#include "fuzz.h"
#include "gpu/process.h"

enum { WRITES_MAX = 512, READS_MAX = 16 };
static const uint64_t now_ns = UINT64_C(10000000000000), end_max_ns = UINT64_C(10001000000000);

static _Alignas(8) unsigned char ring_bytes[EW_GPU_RING_SIZE];

struct run {
    struct ew_bytes input;
    uint64_t next; /* number of the next proper record */
    uint64_t ops, gpu_ns;
    struct {
        uint32_t at, len;
    } writes[WRITES_MAX]; /* to be undone: clearing the whole ring each time would be slow */
    uint32_t write_count;
};

static void write_ring(struct run *run, uint32_t at, const void *bytes, uint32_t len)
{
    if (run->write_count == WRITES_MAX)
        return;
    run->writes[run->write_count].at = at;
    run->writes[run->write_count++].len = len;
    memcpy(ring_bytes + at, bytes, len);
}

static void on_op(void *ctx, const struct etwatch_gpu_op *op)
{
    struct run *run = ctx;
    run->ops++;
    require(op->size == sizeof *op && op->pid == 7, "the pid of the sender");
    require(etwatch_gpu_op_kind_name(op->kind) != NULL, "a known kind");
    require(op->end_ns >= op->start_ns && op->end_ns <= end_max_ns, "times in order");
    require(op->call_end_ns >= op->call_start_ns && op->call_end_ns <= end_max_ns,
            "times of the call in order");
    require(op->name == NULL || strlen(op->name) <= EW_GPU_RING_TEXT_MAX, "a bounded name");
    (void)etwatch_gpu_copy_name(op->copy);
}

static void on_busy(void *ctx, const struct ew_gpu_busy *busy)
{
    struct run *run = ctx;
    require(busy->pid == 7 && busy->to_ns > busy->from_ns, "a part of time");
    require(busy->gpu_ns <= busy->to_ns - busy->from_ns, "no busier than always");
    run->gpu_ns += busy->gpu_ns;
}

static void change(struct run *run, unsigned what)
{
    static const uint32_t starts[] = {0, EW_GPU_RING_HEADER, EW_GPU_RING_FIRST};
    static const uint32_t units[] = {1, 16, sizeof(struct ew_gpu_ring_record)};
    static const uint32_t sizes[] = {sizeof(struct ew_gpu_ring_header), EW_GPU_RING_TEXTS,
                                     EW_GPU_RING_SIZE - EW_GPU_RING_FIRST};
    uint32_t at = ew_bytes_u16(&run->input);
    if (what == 2)
        at = at < 1u << 15 ? at : EW_GPU_RING_RECORDS - (1u << 16) + at;
    at = at * units[what] % sizes[what];
    size_t len = ew_bytes_u8(&run->input);
    len = len < sizes[what] - at ? len : sizes[what] - at;
    const uint8_t *bytes = ew_bytes_take(&run->input, len);
    if (bytes != NULL)
        write_ring(run, starts[what] + at, bytes, (uint32_t)len);
}

static void add_record(struct run *run)
{
    struct ew_bytes *input = &run->input;
    struct ew_gpu_ring_record record = {.kind = ew_bytes_u8(input), .sub = ew_bytes_u8(input)};
    uint8_t where = ew_bytes_u8(input);
    record.device = where % 18;
    record.stream = where / 18;
    record.context = 211; /* cudaLaunchKernel */
    if (record.kind == EW_GPU_RECORD_CALL && record.sub != EW_GPU_CALL_LAUNCH)
        record.context = record.sub == EW_GPU_CALL_COPY ? 31 : 165;
    record.correlation = ew_bytes_u8(input);
    record.text = ew_bytes_u8(input) * 16u;
    record.start_ns = ew_bytes_u16(input) * UINT64_C(1000000);
    record.end_ns = record.start_ns + ew_bytes_u16(input) * UINT64_C(100000);
    record.tid = 8;
    record.bytes = 4096;
    record.commit = run->next + 1;
    write_ring(run, EW_GPU_RING_FIRST + (uint32_t)(run->next % EW_GPU_RING_RECORDS * sizeof record),
               &record, sizeof record);
    run->next++;
}

static void check_sum(const struct etwatch_gpu_sum *sum)
{
    require(sum->name == NULL || strlen(sum->name) <= EW_GPU_RING_TEXT_MAX, "a bounded name");
    require(sum->count == 0 || (sum->min_ns <= sum->max_ns && sum->max_ns <= sum->ns),
            "the longest is one of them");
}

static void check_results(const struct run *run, const struct ew_gpu_process *process)
{
    struct etwatch_gpu_process totals;
    struct etwatch_gpu_sum sum;
    ew_gpu_process_totals(process, &totals);
    require(etwatch_gpu_state_name(totals.state) != NULL, "a known state");
    require(totals.problem == NULL || strlen(totals.problem) < EW_GPU_RING_PROBLEM,
            "a bounded problem");
    require(totals.kernels + totals.copies + totals.sets + totals.waits + totals.ranges == run->ops,
            "each operation is counted once");
    require(totals.gpu_ns == run->gpu_ns, "the parts are the whole");
    require(totals.gpu_ns <= totals.kernel_ns + totals.copy_ns + totals.set_ns,
            "no busier than its operations");
    require(totals.cpu_wait_ns <= run->ops * end_max_ns, "no wait is longer than the time");
    require(totals.gpu_wait_ns <= 16 * end_max_ns, "no GPU waits longer than the time");
    require(totals.first_ns <= totals.last_ns, "the first is before the last");
    for (uint32_t i = 0; i < ew_gpu_process_kernels(process); i++) {
        ew_gpu_process_kernel(process, i, &sum);
        check_sum(&sum);
    }
    for (uint32_t i = 0; i < ew_gpu_process_streams(process); i++) {
        ew_gpu_process_stream(process, i, &sum);
        check_sum(&sum);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct run run;
    struct ew_gpu_ring_header header = {.version = EW_GPU_RING_VERSION,
                                        .records = EW_GPU_RING_RECORDS,
                                        .texts = EW_GPU_RING_TEXTS,
                                        .state = EW_GPU_RING_ACTIVE,
                                        .started_ns = 1000};
    const struct ew_gpu_target target = {
        .now_ns = now_ns, .ctx = &run, .on_op = on_op, .busy_ctx = &run, .on_busy = on_busy};
    memset(&run, 0, sizeof run);
    memcpy(header.magic, EW_GPU_RING_MAGIC, sizeof header.magic);
    write_ring(&run, 0, &header, sizeof header);
    require(ew_gpu_ring_valid(ring_bytes), "the header of a ring");
    struct ew_gpu_process *process = ew_gpu_process_new(ring_bytes, 7);
    require(process != NULL, "memory");
    ew_bytes_init(&run.input, data, size);
    for (unsigned reads = 0; ew_bytes_left(&run.input) > 0 && reads < READS_MAX;) {
        unsigned step = ew_bytes_u8(&run.input) % 6;
        if (step == 5) {
            add_record(&run);
        } else if (step >= 2) {
            change(&run, step - 2);
        } else {
            (void)ew_gpu_process_read(process, step == 1, &target);
            check_results(&run, process);
            reads++;
        }
    }
    (void)ew_gpu_process_read(process, true, &target);
    check_results(&run, process);
    ew_gpu_process_free(process);
    (void)ew_gpu_ring_valid(ring_bytes);
    for (uint32_t i = 0; i < run.write_count; i++)
        memset(ring_bytes + run.writes[i].at, 0, run.writes[i].len);
    return 0;
}
