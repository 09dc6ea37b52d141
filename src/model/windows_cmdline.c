/* SPDX-License-Identifier: MIT */
/*
 * Windows keeps a command line as one string, while secrets are recognized per argument. So it is
 * split at spaces outside of quotes; the masked arguments joined by spaces look as before.
 */
#include "model/windows_cmdline.h"

#include <stdbool.h>

#include "model/mask.h"

void ew_cmdline_mask(const char *command_line, char buffer[EW_CMDLINE_BYTES])
{
    char args[EW_CMDLINE_BYTES];
    size_t len = 0;
    bool quoted = false;
    for (; command_line[len] != '\0' && len + 1 < sizeof args; len++) {
        quoted = quoted != (command_line[len] == '"');
        args[len] = command_line[len] == ' ' && !quoted ? '\0' : command_line[len];
    }
    buffer[0] = '\0';
    if (len == 0)
        return;
    args[len++] = '\0';
    (void)ew_mask_cmdline(args, len, buffer, EW_CMDLINE_BYTES);
}
