/* SPDX-License-Identifier: MIT */
/* What a decoder knows about a record, for tests and for whoever asks before decoding. */
#ifndef EW_DECODE_DECODER_H
#define EW_DECODE_DECODER_H

#include "decode/decode.h"
#include "decode/schema.h"

/* The schema by which the record's fields will be decoded, or NULL; the kernel's classes have none
 * here. A TraceLogging record's is valid until the next record. */
const struct ew_schema *ew_decoder_schema(struct ew_decoder *decoder,
                                          const struct ew_record *record);

/* How much could not be kept: schemas beyond the store's bounds, manifests beyond theirs. */
uint64_t ew_decoder_refused(const struct ew_decoder *decoder);

#endif
