/* SPDX-License-Identifier: MIT */
/* Windows has no marks yet; the receiver has reported it before this is called. */
#include "cli/cli.h"

int ew_cli_spans_environment(const char *address, bool onnx)
{
    (void)address;
    (void)onnx;
    return EW_EXIT_FAILED;
}
