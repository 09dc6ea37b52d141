/* SPDX-License-Identifier: MIT */
/*
 * Runs py-spy next to the command. It is created, held, together with the command, because this
 * process gives up the right to create others before the command runs. What py-spy writes goes to
 * memory without a name, so nothing is left behind, whatever ends.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

enum { WAIT_MS = 50, WAITS_MAX = 200 };

bool ew_cli_py_spy_prepare(void)
{
    const char *path = getenv("PATH");
    char file[4096];
    while (path != NULL && *path != '\0') {
        size_t len = strcspn(path, ":");
        int file_len =
            snprintf(file, sizeof file, "%.*s/py-spy", (int)(len < 4000 ? len : 4000), path);
        if (len > 0 && file_len > 0 && (size_t)file_len < sizeof file && access(file, X_OK) == 0)
            return setenv("ETWATCH_PY_SPY", "1", 1) == 0;
        path += len + (path[len] == ':' ? 1 : 0);
    }
    return false;
}

int ew_cli_py_spy_hold(struct ew_cli_py_spy *spy, uint32_t pid)
{
    char pid_text[16], out_text[32], hz_text[16], script[96];
    spy->out_fd = memfd_create("etwatch-py-spy", 0);
    spy->message_fd = memfd_create("etwatch-py-spy-messages", 0);
    if (spy->out_fd < 0 || spy->message_fd < 0)
        return errno;
    (void)snprintf(pid_text, sizeof pid_text, "%u", (unsigned)pid);
    (void)snprintf(hz_text, sizeof hz_text, "%d", (int)EW_PY_SPY_HZ);
    (void)snprintf(out_text, sizeof out_text, "/dev/fd/%d", spy->out_fd);
    /* The command may take a moment until it is Python. */
    (void)snprintf(
        script, sizeof script,
        "for i in 1 2 3 4 5; do \"$0\" \"$@\" && exit; sleep 0.1; done >>/dev/fd/%d 2>&1",
        spy->message_fd);
    char *command[] = {"/bin/sh",        "-c",         script,  "py-spy",      "record",
                       "--pid",          pid_text,     "-f",    "chrometrace", "-o",
                       out_text,         "-r",         hz_text, "--threads",   "--idle",
                       "--subprocesses", "--nolineno", NULL};
    int error = ew_child_hold(&spy->child, command);
    (void)fcntl(spy->out_fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(spy->message_fd, F_SETFD, FD_CLOEXEC);
    spy->held = error == 0;
    return error;
}

void ew_cli_py_spy_release(struct ew_cli_py_spy *spy)
{
    if (spy->held)
        (void)ew_child_release(&spy->child);
}

/* It ends by itself when the command has; a command that leaves processes behind does not end it.
 */
void ew_cli_py_spy_wait(struct ew_cli_py_spy *spy)
{
    if (!spy->held)
        return;
    for (int i = 0; i < 2 * WAITS_MAX && !ew_child_ended(&spy->child); i++) {
        if (i == WAITS_MAX)
            ew_child_signal(&spy->child, SIGTERM);
        (void)poll(NULL, 0, WAIT_MS);
    }
    if (!ew_child_ended(&spy->child))
        ew_child_signal(&spy->child, SIGKILL);
    ew_child_reap(&spy->child);
    spy->held = false;
}

/* All of a file in memory, terminated; NULL: empty, too large, or no memory. */
static char *read_all(int fd, size_t max, size_t *ret_size)
{
    struct stat info;
    size_t size = 0;
    if (fd < 0 || fstat(fd, &info) != 0 || info.st_size <= 0 || (size_t)info.st_size > max)
        return NULL;
    char *text = ew_calloc((size_t)info.st_size + 1, 1);
    while (text != NULL && size < (size_t)info.st_size) {
        ssize_t got = pread(fd, text + size, (size_t)info.st_size - size, (off_t)size);
        if (got <= 0)
            break;
        size += (size_t)got;
    }
    *ret_size = size;
    return text;
}

char *ew_cli_py_spy_text(const struct ew_cli_py_spy *spy, size_t *ret_size)
{
    return read_all(spy->out_fd, EW_PY_SPY_TEXT_MAX, ret_size);
}

void ew_cli_py_spy_message(const struct ew_cli_py_spy *spy, char *text, size_t size)
{
    size_t len = 0;
    char *all = read_all(spy->message_fd, 1 << 16, &len);
    size_t kept = 0;
    for (size_t i = 0; i < len && kept + 1 < size; i++)
        text[kept++] = (unsigned char)all[i] < ' ' ? ' ' : all[i];
    text[kept] = '\0';
    ew_free(all);
}

void ew_cli_py_spy_close(struct ew_cli_py_spy *spy)
{
    ew_cli_py_spy_wait(spy);
    if (spy->out_fd > 0)
        (void)close(spy->out_fd);
    if (spy->message_fd > 0)
        (void)close(spy->message_fd);
    spy->out_fd = spy->message_fd = -1;
}
