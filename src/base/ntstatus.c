/* SPDX-License-Identifier: MIT */
/* A table of the codes with which processes end that did not choose their exit code. */
#include "base/ntstatus.h"

#include <stddef.h>

static const struct {
    uint32_t code;
    const char *name;
} names[] = {
    {0x80000003, "breakpoint"},
    {0x80000004, "single step"},
    {0xC0000005, "access violation"},
    {0xC0000006, "in-page error"},
    {0xC0000017, "no memory"},
    {0xC000001D, "illegal instruction"},
    {0xC0000094, "integer division by zero"},
    {0xC00000FD, "stack overflow"},
    {0xC0000135, "DLL not found"},
    {0xC0000139, "entry point not found"},
    {0xC000013A, "control-C"},
    {0xC0000142, "DLL initialization failed"},
    {0xC0000374, "heap corruption"},
    {0xC0000409, "fail fast"},
    {0xC0000417, "invalid C runtime parameter"},
    {0xC0000420, "assertion failure"},
    {0xE0434352, "unhandled .NET exception"},
    {0xE06D7363, "unhandled C++ exception"},
};

void ew_ntstatus_put(struct ew_buf *out, int64_t code)
{
    static const char digits[] = "0123456789abcdef";
    if (code >= -255 && code <= 65535) {
        ew_buf_i64(out, code);
        return;
    }
    ew_buf_text(out, "0x");
    for (int shift = 28; shift >= 0; shift -= 4)
        ew_buf_char(out, digits[(uint64_t)code >> shift & 15]);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].code == (uint32_t)code) {
            ew_buf_char(out, ' ');
            ew_buf_text(out, names[i].name);
        }
}
