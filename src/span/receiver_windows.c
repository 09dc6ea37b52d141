/* SPDX-License-Identifier: MIT */
/* See marks_windows.c: there is nothing to receive. */
#include <etwatch/span.h>

#include "base/error.h"

int etwatch_receiver_new(struct etwatch_receiver **ret_receiver, struct etwatch_error_info *reterr)
{
    struct ew_error err = {0};
    (void)ret_receiver;
    (void)ew_error_set(&err, ETWATCH_ENOTSUP, 0, "marks of spans are not supported on Windows yet");
    ew_error_out(reterr, &err, ETWATCH_ENOTSUP);
    return ETWATCH_ENOTSUP;
}

void etwatch_receiver_free(struct etwatch_receiver *receiver)
{
    (void)receiver;
}

const char *etwatch_receiver_address(const struct etwatch_receiver *receiver)
{
    (void)receiver;
    return NULL;
}

int etwatch_receiver_read(struct etwatch_receiver *receiver, int64_t unix_minus_raw_ns, int last,
                          void (*on_span)(void *ctx, const struct etwatch_span *span), void *ctx)
{
    (void)receiver;
    (void)unix_minus_raw_ns;
    (void)last;
    (void)on_span;
    (void)ctx;
    return ETWATCH_ENOTSUP;
}

int etwatch_receiver_operators(struct etwatch_receiver *receiver, int64_t unix_minus_raw_ns,
                               void (*on_operator)(void *ctx, const struct etwatch_operator *op),
                               void *ctx)
{
    (void)receiver;
    (void)unix_minus_raw_ns;
    (void)on_operator;
    (void)ctx;
    return ETWATCH_ENOTSUP;
}

uint64_t etwatch_receiver_lost_operators(const struct etwatch_receiver *receiver)
{
    (void)receiver;
    return 0;
}

uint64_t etwatch_receiver_lost(const struct etwatch_receiver *receiver)
{
    (void)receiver;
    return 0;
}
