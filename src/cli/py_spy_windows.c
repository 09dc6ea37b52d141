/* SPDX-License-Identifier: MIT */
/* Windows has no marks yet; the receiver has reported it before these are called. */
#include "cli/cli.h"

bool ew_cli_py_spy_prepare(void)
{
    return false;
}

int ew_cli_py_spy_hold(struct ew_cli_py_spy *spy, uint32_t pid)
{
    (void)pid;
    spy->held = false;
    return 0;
}

void ew_cli_py_spy_release(struct ew_cli_py_spy *spy)
{
    (void)spy;
}

void ew_cli_py_spy_wait(struct ew_cli_py_spy *spy)
{
    (void)spy;
}

char *ew_cli_py_spy_text(const struct ew_cli_py_spy *spy, size_t *ret_size)
{
    (void)spy;
    *ret_size = 0;
    return NULL;
}

void ew_cli_py_spy_message(const struct ew_cli_py_spy *spy, char *text, size_t size)
{
    (void)spy;
    if (size > 0)
        text[0] = '\0';
}

void ew_cli_py_spy_close(struct ew_cli_py_spy *spy)
{
    (void)spy;
}
