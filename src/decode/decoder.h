/* SPDX-License-Identifier: MIT */
/* The decoder's knowledge about a record, for tests and for callers that need it before decoding.
 */
#ifndef EW_DECODE_DECODER_H
#define EW_DECODE_DECODER_H

#include "decode/decode.h"
#include "decode/schema.h"

/* The schema by which the record's fields will be decoded, or NULL; kernel classes have no schema
 * here. The schema of a TraceLogging record is valid until the next record. */
const struct ew_schema *ew_decoder_schema(struct ew_decoder *decoder,
                                          const struct ew_record *record);

/* Number of schemas and manifests that were refused because of the limits. */
uint64_t ew_decoder_refused(const struct ew_decoder *decoder);

#endif
