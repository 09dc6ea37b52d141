/* SPDX-License-Identifier: MIT */
/* Windows has no marks yet; the receiver has reported it before this is called. */
#include "cli/cli.h"

int ew_cli_operators_folder_open(struct ew_operators_folder *folder)
{
    folder->guard = 0;
    return EW_EXIT_FAILED;
}

void ew_cli_operators_folder_close(struct ew_operators_folder *folder)
{
    folder->guard = 0;
}
