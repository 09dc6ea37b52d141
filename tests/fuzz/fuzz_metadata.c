/* SPDX-License-Identifier: MIT */
/*
 * The input: blocks of metadata, each with its opcode (even 32, odd 33) and size; the remaining
 * bytes are the payload of the event that each block describes.
 */
#include "decode_input.h"
#include "fuzz.h"

static void learn(struct ew_decoder *decoder, uint8_t opcode, const uint8_t *block, size_t size)
{
    static const uint8_t metadata[16] = {0xC1, 0xF6, 0xCC, 0xBB, 0xD1, 0x6C, 0xC4, 0x48,
                                         0x80, 0xFF, 0x83, 0x94, 0x82, 0xE3, 0x76, 0x71};
    struct ew_record record = make_input_record(metadata, 0, 0, block, size);
    record.kind = EW_RECORD_CLASSIC;
    record.header_type = 20;
    record.opcode = opcode;
    (void)ew_decoder_learn(decoder, &record);
    check_record(decoder, &record);
}

/* The event that a block describes, by manifest and by class. */
static void decode_described(struct ew_decoder *decoder, const uint8_t *block,
                             const uint8_t *payload, size_t size, unsigned pointer_size)
{
    struct ew_record record =
        make_input_record(block, (uint16_t)(block[32] | block[33] << 8), block[34], payload, size);
    record.pointer_size = (uint8_t)pointer_size;
    check_record(decoder, &record);
    record.provider = block + 16;
    record.kind = EW_RECORD_CLASSIC;
    record.opcode = block[37];
    check_record(decoder, &record);
}

enum { BLOCKS_MAX = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *blocks[BLOCKS_MAX];
    unsigned block_count = 0;
    struct ew_decoder *decoder;
    if (size < 2 || size > 65536 || ew_decoder_new(&decoder) < 0)
        return 0;
    unsigned count = data[0] % (BLOCKS_MAX + 1), pointer_size = data[1] & 1 ? 4 : 8;
    size_t at = 2;
    for (unsigned i = 0; i < count && size - at >= 3; i++) {
        uint8_t opcode = data[at] & 1 ? 33 : 32;
        size_t len = (size_t)(data[at + 1] | data[at + 2] << 8);
        at += 3;
        if (len > size - at)
            len = size - at;
        learn(decoder, opcode, data + at, len);
        if (opcode == 32 && len >= 48)
            blocks[block_count++] = data + at;
        at += len;
    }
    for (unsigned i = 0; i < block_count; i++)
        decode_described(decoder, blocks[i], data + at, size - at, pointer_size);
    ew_decoder_free(decoder);
    return 0;
}
