/* SPDX-License-Identifier: MIT */
/*
 * A fuzz target for one compression format: INFLATE and DEFLATE are its functions.
 *
 * The first two bytes are the size of the output buffer; the rest is decompressed as it is, and
 * then used as data: compressed and decompressed it must be unchanged.
 */
#include <stdint.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "fuzz.h"
#include "source/etl/xpress.h"
#include "xpress_deflate.h"

/*
 * Blocks have exactly the declared size, so that the address sanitizer detects any access outside.
 */
static uint8_t *make(size_t size)
{
    uint8_t *block = ew_calloc(size ? size : 1, 1);
    require(block != NULL, "memory");
    return block;
}

static void inflate(const uint8_t *data, size_t size, size_t room)
{
    size_t written = room + 1;
    uint8_t *out = make(room);
    int rc = INFLATE(data, size, out, room, &written);
    require(rc == 0 || rc == ETWATCH_ETRUNC || rc == ETWATCH_EFORMAT, "a known code");
    require(rc == 0 ? written == room : written <= room, "what was written");
    ew_free(out);
}

static void round_trip(const uint8_t *data, size_t size)
{
    uint8_t *room = make(ew_xpress_bound(size)), *back = make(size);
    size_t written = size + 1;
    int64_t packed_size = DEFLATE(data, size, room);
    require(packed_size >= 0 && (size_t)packed_size <= ew_xpress_bound(size), "the bound");
    uint8_t *packed = make((size_t)packed_size);
    memcpy(packed, room, (size_t)packed_size);
    ew_free(room);
    int rc = INFLATE(packed, (size_t)packed_size, back, size, &written);
    require(rc == 0 && written == size, "inflates to its size");
    require(size == 0 || memcmp(back, data, size) == 0, "the same bytes");
    ew_free(packed);
    ew_free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t room = (size_t)(data[0] | data[1] << 8);
    inflate(data + 2, size - 2, room);
    round_trip(data + 2, size - 2);
    return 0;
}
