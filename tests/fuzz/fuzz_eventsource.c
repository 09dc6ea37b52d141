/* SPDX-License-Identifier: MIT */
/*
 * The input: a byte of flags, the size of a manifest, its text, a payload. The text is learned
 * whole or in chunks; for any text, events of its provider (seeds use this one) are decoded with
 * the payload.
 */
#include "decode_input.h"
#include "fuzz.h"

/* {06f0e00e-422a-4987-922b-2ec13e281ea4} */
static const uint8_t provider[16] = {0x0e, 0xe0, 0xf0, 0x06, 0x2a, 0x42, 0x87, 0x49,
                                     0x92, 0x2b, 0x2e, 0xc1, 0x3e, 0x28, 0x1e, 0xa4};

static void learn_chunks(struct ew_decoder *decoder, const uint8_t *text, size_t size)
{
    uint8_t chunk[8 + 100] = {1, 1, 0, 0x5B};
    size_t total = size / 100 + 1;
    for (size_t i = 0; i < total; i++) {
        size_t len = size - i * 100 < 100 ? size - i * 100 : 100;
        chunk[4] = (uint8_t)total;
        chunk[5] = (uint8_t)(total >> 8);
        chunk[6] = (uint8_t)i;
        chunk[7] = (uint8_t)(i >> 8);
        memcpy(chunk + 8, text + i * 100, len);
        struct ew_record record = make_input_record(provider, 0xFFFE, 1, chunk, 8 + len);
        (void)ew_decoder_learn(decoder, &record);
        check_record(decoder, &record);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_decoder *decoder;
    if (size < 3 || size > 65536)
        return 0;
    size_t len = (size_t)(data[1] | data[2] << 8);
    if (len > size - 3)
        len = size - 3;
    if (ew_decoder_new(&decoder) < 0)
        return 0;
    if (data[0] & 2)
        learn_chunks(decoder, data + 3, len);
    else
        (void)ew_decoder_learn_manifest(decoder, data + 3, len);
    for (uint16_t id = 0; id < 8; id++) {
        struct ew_record record =
            make_input_record(provider, id, data[0] >> 4, data + 3 + len, size - 3 - len);
        record.pointer_size = data[0] & 1 ? 4 : 8;
        check_record(decoder, &record);
    }
    ew_decoder_free(decoder);
    return 0;
}
