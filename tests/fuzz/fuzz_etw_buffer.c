/* SPDX-License-Identifier: MIT */
/*
 * The input is a buffer of a session, twice. For any input, taking it ends, every byte that a
 * record points to can be read, and time does not go backwards on a CPU.
 */
#include <stdint.h>
#include <string.h>

#include "fuzz.h"
#include "source/etw/rings.h"

static void check_record(const struct ew_record *record)
{
    const uint8_t *begin = record->header != NULL ? record->header : record->payload;
    (void)touch(begin, (size_t)(record->payload - begin) + record->payload_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_etw_rings *rings;
    struct ew_record records[64];
    uint64_t taken = 0;
    size_t count;
    if (size > 1 << 20)
        return 0;
    require(ew_etw_rings_new(4, 1 << 20, &rings) == 0, "memory");
    ew_etw_rings_put_buffer(rings, data, (uint32_t)size);
    ew_etw_rings_put_buffer(rings, data, (uint32_t)size);
    while ((count = ew_etw_rings_take(rings, UINT64_MAX, records, 64)) > 0) {
        for (size_t i = 0; i < count; i++)
            check_record(&records[i]);
        taken += count;
        /* A compressed buffer can expand to 16 MiB. */
        require(taken < 4 * (size + (32u << 20)), "an end");
    }
    ew_etw_rings_free(rings);
    return 0;
}
