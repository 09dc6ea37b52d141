/* SPDX-License-Identifier: MIT */
/* JSON of others: any bytes are skipped or refused, and texts stay inside of their buffer. */
#include <string.h>

#include "base/json_read.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_bytes in, whole;
    char text[9];
    ew_bytes_init(&whole, data, size);
    ew_jsonin_skip(&whole);
    require(ew_bytes_ok(&whole) || ew_bytes_left(&whole) == 0, "a failed cursor stands");
    ew_bytes_init(&in, data, size);
    for (bool more = ew_jsonin_first(&in, '{'); more; more = ew_jsonin_next(&in, '}')) {
        ew_jsonin_key(&in, text, sizeof text);
        char c = ew_jsonin_peek(&in);
        if (c == '"') {
            size_t len = ew_jsonin_text(&in, text, sizeof text);
            require(len == strlen(text) && len < sizeof text, "a terminated text");
        } else if (c == '-') {
            (void)ew_jsonin_number(&in);
        } else if (c >= '0' && c <= '9') {
            (void)ew_jsonin_u64(&in);
        } else {
            ew_jsonin_skip(&in);
        }
    }
    return 0;
}
