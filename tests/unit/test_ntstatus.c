/* SPDX-License-Identifier: MIT */
#include "base/ntstatus.h"
#include "test.h"

TEST(large_exit_codes_are_hexadecimal_with_their_name)
{
    static const struct {
        int64_t code;
        const char *text;
    } rows[] = {
        {0, "0"},
        {-1, "-1"},
        {259, "259"},
        {(int32_t)0xC0000005, "0xc0000005 access violation"},
        {0xC0000374, "0xc0000374 heap corruption"},
        {(int32_t)0xDEADBEEF, "0xdeadbeef"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_buf out;
        ew_buf_init(&out, 0, NULL, NULL);
        ew_ntstatus_put(&out, rows[i].code);
        ew_buf_char(&out, '\0');
        CHECK_EQ_STR(out.data, rows[i].text);
        ew_buf_done(&out);
    }
}
