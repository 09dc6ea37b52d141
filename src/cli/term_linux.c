/* SPDX-License-Identifier: MIT */
/* Owns the mode of the terminal: ew_term_raw changes it, ew_term_restore restores it. */
#include "cli/cli.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
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

/* Bytes that were read and not yet parsed: a sequence may arrive in two parts. */
static char pending[64];
static size_t pending_len;
static bool waited; /* for the rest of a sequence, once */

bool ew_term_key(struct ew_key *ret_key)
{
    struct pollfd polled = {.fd = STDIN_FILENO, .events = POLLIN};
    if (raw && pending_len < sizeof pending && poll(&polled, 1, 0) == 1) {
        ssize_t count = read(STDIN_FILENO, pending + pending_len, sizeof pending - pending_len);
        pending_len += count > 0 ? (size_t)count : 0;
    }
    size_t taken = ew_keys_parse(pending, pending_len, !waited, ret_key);
    waited = taken == 0 && pending_len > 0;
    if (taken == 0)
        return false;
    pending_len -= taken;
    memmove(pending, pending + taken, pending_len);
    return true;
}

/* By the variables that select the locale, in their order: the program does not set a locale. */
bool ew_term_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0')
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
    }
    return false;
}

void ew_term_mouse(bool on)
{
    (void)on;
}
