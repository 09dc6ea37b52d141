/* SPDX-License-Identifier: MIT */
/* The answer of a collector: the first byte selects JSON or protobuf. The message always ends. */
#include <string.h>

#include "fuzz.h"
#include "serve/otlp_encode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char message[32];
    uint64_t rejected = 0;
    if (size == 0)
        return 0;
    memset(message, 'x', sizeof message);
    ew_otlp_read_answer(data[0] == '{', data[0] == '{' ? data : data + 1,
                        data[0] == '{' ? size : size - 1, &rejected, message, sizeof message);
    require(memchr(message, '\0', sizeof message) != NULL, "the message ends");
    return 0;
}
