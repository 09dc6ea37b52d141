/* SPDX-License-Identifier: MIT */
/*
 * A ring of spans that its process writes as it likes. Input: steps of one byte each, with their
 * arguments: 0 reads; 1 reads for the last time; 2 changes the header, 3 the texts, 4 a record: two
 * bytes of position (a record: its number), one of length, the bytes. Delivered spans are bounded
 * and in order, whatever the bytes are.
 */
#include <string.h>

#include "base/bytes.h"
#include "fuzz.h"
#include "span/ring.h"
#include "span/ring_reader.h"

static _Alignas(8) unsigned char ring_bytes[EW_SPANS_RING_SIZE];

static void on_span(void *ctx, const struct etwatch_span *span)
{
    unsigned *seen = ctx;
    ++*seen;
    require(span->name != NULL && strlen(span->name) <= EW_SPANS_RING_TEXT_MAX, "a bounded name");
    require(span->session == NULL || strlen(span->session) <= EW_SPANS_RING_TEXT_MAX,
            "a bounded session");
    require(span->end_ns >= span->start_ns, "times in order");
    require(span->kind >= ETWATCH_SPAN_WORK && span->kind <= ETWATCH_SPAN_LOAD, "a known kind");
    require((span->flags & ~(uint32_t)(ETWATCH_SPAN_FAILED | ETWATCH_SPAN_ASYNC)) == 0,
            "only flags of a mark");
    require(span->pid == 7, "the pid of the sender");
}

static void change(struct ew_bytes *input, unsigned step)
{
    static const uint32_t starts[] = {0, EW_SPANS_RING_HEADER, EW_SPANS_RING_FIRST};
    static const uint32_t sizes[] = {EW_SPANS_RING_HEADER, EW_SPANS_RING_TEXTS,
                                     EW_SPANS_RING_SIZE - EW_SPANS_RING_FIRST};
    uint32_t at = ew_bytes_u16(input);
    if (step == 2)
        at *= (uint32_t)sizeof(struct ew_spans_ring_record);
    size_t len = ew_bytes_u8(input);
    at %= sizes[step];
    len = len < sizes[step] - at ? len : sizes[step] - at;
    const uint8_t *bytes = ew_bytes_take(input, len);
    if (bytes != NULL)
        memcpy(ring_bytes + starts[step] + at, bytes, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct ew_spans_ring_header header = {.version = EW_SPANS_RING_VERSION,
                                                .records = EW_SPANS_RING_RECORDS,
                                                .texts = EW_SPANS_RING_TEXTS};
    unsigned seen = 0;
    uint64_t lost = 0;
    struct ew_spans_ring ring = {.bytes = ring_bytes, .pid = 7};
    struct ew_spans_ring_target target = {
        .unix_minus_raw_ns = INT64_C(1700000000000000000), .on_span = on_span, .ctx = &seen};
    struct ew_bytes input;
    memset(ring_bytes, 0, sizeof ring_bytes);
    memcpy(ring_bytes, &header, sizeof header);
    memcpy(ring_bytes, EW_SPANS_RING_MAGIC, sizeof header.magic);
    require(ew_spans_ring_valid(ring_bytes), "the header of a ring");
    ew_bytes_init(&input, data, size);
    for (unsigned reads = 0; ew_bytes_left(&input) > 0 && reads < 64;) {
        unsigned step = ew_bytes_u8(&input) % 5;
        if (step >= 2) {
            change(&input, step - 2);
            continue;
        }
        unsigned before = seen;
        int count = ew_spans_ring_read(&ring, &target, step == 1, &lost);
        require(count >= 0 && (unsigned)count == seen - before, "each span is counted");
        require(count <= 2 * EW_SPANS_RING_RECORDS, "a read ends");
        reads++;
    }
    (void)ew_spans_ring_valid(ring_bytes);
    return 0;
}
