/* SPDX-License-Identifier: MIT */
/* The search for functions of ONNX Runtime reads files of other users. */
#include <string.h>

#include "fuzz.h"
#include "probe/onnx_elf.h"

struct input {
    const uint8_t *data;
    size_t size;
};

static int64_t read_input(void *ctx, uint64_t offset, void *bytes, size_t size)
{
    const struct input *input = ctx;
    size_t left = offset < input->size ? input->size - (size_t)offset : 0;
    size = size < left ? size : left;
    if (size > 0)
        memcpy(bytes, input->data + offset, size);
    return (int64_t)size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct ew_onnx_file file = {read_input, &input};
    uint64_t offsets[EW_ONNX_FUNCTIONS] = {0};
    (void)ew_onnx_find_api(&file, offsets);
    (void)ew_onnx_find_methods(&file, offsets);
    return 0;
}
