/* SPDX-License-Identifier: MIT */
/*
 * The input is a recording. For any input, reading ends, the order never goes backwards, every byte
 * that a record points to can be read, and the counts are correct.
 */
#include <stdint.h>

#include "fuzz.h"
#include "source/etl/reader.h"

static unsigned check_record(const struct ew_record *r)
{
    unsigned sum = touch(r->payload, r->payload_size) + touch(r->header, 8);
    if (r->provider)
        sum += touch(r->provider, 16);
    if (r->extended_size)
        sum += touch(r->header + 0x50, r->extended_size);
    require(r->kind >= EW_RECORD_KERNEL && r->kind <= EW_RECORD_LOSS, "the kind is valid");
    require(r->pointer_size == 4 || r->pointer_size == 8, "a pointer has 4 or 8 bytes");
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_etl_options options = {.workers = 1, .window_bytes = 1 << 20};
    struct ew_etl_reader *reader = NULL;
    struct ew_error error;
    if (ew_etl_open_memory(data, size, &options, &reader, &error) < 0)
        return 0;
    volatile unsigned sum = 0;
    uint64_t last_ns = 0, records = 0;
    const struct ew_record *batch;
    int got;
    while ((got = ew_etl_next(reader, &batch)) > 0) {
        for (int i = 0; i < got; i++) {
            require(batch[i].t_ns >= last_ns, "time never goes backwards");
            last_ns = batch[i].t_ns;
            records += batch[i].kind != EW_RECORD_LOSS;
            sum += check_record(&batch[i]);
        }
    }
    struct ew_etl_counts counts;
    ew_etl_counts(reader, &counts);
    require(got == 0, "damage is not an error");
    require(counts.records == records, "every record is counted once");
    require(counts.bytes == size, "every byte of the file was passed");
    require(counts.late <= records, "only records are late");
    (void)sum; /* only to keep every read */
    ew_etl_close(reader);
    return 0;
}
