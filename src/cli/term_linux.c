/* SPDX-License-Identifier: MIT */
/* Owns the mode of the terminal: ew_term_raw changes it, ew_term_restore restores it. */
#include "cli/cli.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios before;
static bool raw;

bool ew_term_is(int which)
{
    return isatty(which) == 1;
}

bool ew_term_color(int which)
{
    const char *no_color = getenv("NO_COLOR");
    return ew_term_is(which) && (no_color == NULL || no_color[0] == '\0');
}

void ew_term_size(uint32_t *ret_columns, uint32_t *ret_rows)
{
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    *ret_columns = known ? size.ws_col : 80;
    *ret_rows = known ? size.ws_row : 24;
}

bool ew_term_raw(void)
{
    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return false;
    struct termios mode = before;
    mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    mode.c_cc[VMIN] = 0;
    mode.c_cc[VTIME] = 0;
    raw = tcsetattr(STDIN_FILENO, TCSAFLUSH, &mode) == 0;
    return raw;
}

void ew_term_restore(void)
{
    if (raw)
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    raw = false;
}

int ew_term_key(void)
{
    struct pollfd polled = {.fd = STDIN_FILENO, .events = POLLIN};
    unsigned char key = 0;
    if (!raw || poll(&polled, 1, 0) != 1 || read(STDIN_FILENO, &key, 1) != 1)
        return 0;
    return key;
}
