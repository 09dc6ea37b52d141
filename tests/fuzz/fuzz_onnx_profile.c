/* SPDX-License-Identifier: MIT */
/* A profile of ONNX Runtime, in two portions: operators are bounded, and what is no event is lost.
 */
#include <string.h>

#include "fuzz.h"
#include "span/profile_reader.h"

static void on_operator(void *ctx, const struct etwatch_operator *op)
{
    ++*(uint64_t *)ctx;
    require(op->span->end_ns >= op->span->start_ns, "times in order");
    require(strlen(op->node) < 256 && strlen(op->span->name) < 64, "bounded names");
    require(op->span->kind == ETWATCH_SPAN_OPERATOR && op->span->pid == 7, "an operator");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t seen = 0;
    struct ew_spans_profile profile = {
        .pid = 7, .start_ns = 1, .session = "m", .on_operator = on_operator, .ctx = &seen};
    require(ew_spans_profile_add(&profile, data, size / 2) == 0, "memory");
    require(ew_spans_profile_add(&profile, data + size / 2, size - size / 2) == 0, "memory");
    ew_spans_profile_end(&profile);
    require(profile.operators == seen, "every operator is counted");
    require(profile.operators <= profile.events, "an operator is an event");
    return 0;
}
