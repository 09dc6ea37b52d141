/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

int ew_cli_gpu_environment(const char *address)
{
    (void)address;
    ew_print_error("--gpu-trace needs Linux");
    return EW_EXIT_FAILED;
}

enum ew_cupti ew_cli_gpu_cupti(const char *proc_root, char *ret_path, size_t size)
{
    (void)proc_root;
    if (size > 0)
        ret_path[0] = '\0';
    return EW_CUPTI_UNUSED;
}
