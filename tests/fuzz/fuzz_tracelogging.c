/* SPDX-License-Identifier: MIT */
/*
 * The input: a byte of flags, an opcode, the size of the extended items, the items, the payload.
 * Any schema with any payload gives a well-formed list of fields.
 */
#include "decode_input.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t provider[16] = {1, 2, 3};
    struct ew_decoder *decoder;
    if (size < 4 || size > 65536)
        return 0;
    size_t items = (size_t)(data[2] | data[3] << 8);
    if (items > size - 4)
        items = size - 4;
    /* On the heap with its exact size, so that a read past the end is detected. */
    uint8_t *header = malloc(0x50 + items);
    require(header != NULL, "memory for the header");
    memset(header, 0, 0x50);
    memcpy(header + 0x50, data + 4, items);
    struct ew_record record = make_input_record(provider, 0, 0, data + 4 + items, size - 4 - items);
    record.header = header;
    record.extended_size = (uint16_t)items;
    record.opcode = data[1];
    record.pointer_size = data[0] & 1 ? 4 : 8;
    if (ew_decoder_new(&decoder) == 0) {
        (void)ew_decoder_learn(decoder, &record);
        check_record(decoder, &record);
        ew_decoder_free(decoder);
    }
    free(header);
    return 0;
}
