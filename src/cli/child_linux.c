/* SPDX-License-Identifier: MIT */
/*
 * Owns the child process and three pipes to it. The child closes the first when it is ready and
 * waits on the second before exec; the third is closed by a successful exec (close-on-exec) or
 * carries the errno of a failed one.
 *
 * The child never outlives etwatch unnoticed: while it is held, the closed pipe ends it; later the
 * kernel sends it SIGTERM when etwatch dies (PR_SET_PDEATHSIG).
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Gives the process the name of the command already before exec. */
static void set_name(const char *command)
{
    const char *slash = strrchr(command, '/');
    (void)prctl(PR_SET_NAME, slash != NULL ? slash + 1 : command, 0, 0, 0);
}

static void run_child(char **command, pid_t parent, int ready_fd, int go_fd, int failed_fd)
{
    char go;
    ssize_t got;
    set_name(command[0]);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    if (getppid() != parent)
        _exit(EW_EXIT_FAILED);
    (void)close(ready_fd); /* a byte would count as I/O of the command */
    do
        got = read(go_fd, &go, 1);
    while (got < 0 && errno == EINTR);
    if (got != 1)
        _exit(EW_EXIT_FAILED);
    ew_signals_restore();
    /* If etwatch died before this, its handler took the signal that should end the command. */
    if (getppid() != parent)
        _exit(EW_EXIT_FAILED);
    (void)execvp(command[0], command);
    int error = errno;
    (void)!write(failed_fd, &error, sizeof error);
    _exit(error == ENOENT ? EW_EXIT_NOT_FOUND : EW_EXIT_CANNOT_EXEC);
}

static void close_pipe(const int ends[2])
{
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* All three or none. */
static int make_pipes(int ready[2], int go[2], int failed[2])
{
    if (pipe2(ready, O_CLOEXEC) != 0)
        return errno;
    if (pipe2(go, O_CLOEXEC) != 0) {
        int error = errno;
        close_pipe(ready);
        return error;
    }
    if (pipe2(failed, O_CLOEXEC) != 0) {
        int error = errno;
        close_pipe(ready);
        close_pipe(go);
        return error;
    }
    return 0;
}

/* Waits until the child has its name, so that the monitor reads the right one. */
static void wait_until_ready(int ready_fd)
{
    char nothing;
    while (read(ready_fd, &nothing, 1) < 0 && errno == EINTR)
        continue;
    (void)close(ready_fd);
}

int ew_child_hold(struct ew_child *child, char **command)
{
    int ready[2], go[2], failed[2];
    *child = (struct ew_child){.go_fd = -1, .failed_fd = -1};
    int error = make_pipes(ready, go, failed);
    if (error != 0)
        return error;
    pid_t parent = getpid();
    pid_t pid = fork();
    error = errno;
    if (pid == 0) {
        (void)close(ready[0]);
        (void)close(go[1]);
        (void)close(failed[0]);
        run_child(command, parent, ready[1], go[0], failed[1]);
    }
    (void)close(ready[1]);
    (void)close(go[0]);
    (void)close(failed[1]);
    wait_until_ready(ready[0]);
    if (pid < 0) {
        (void)close(go[1]);
        (void)close(failed[0]);
        return error;
    }
    child->pid = (uint32_t)pid;
    child->go_fd = go[1];
    child->failed_fd = failed[0];
    return 0;
}

int ew_child_release(struct ew_child *child)
{
    int error = 0;
    ssize_t got;
    (void)!write(child->go_fd, "g", 1);
    (void)close(child->go_fd);
    child->go_fd = -1;
    do
        got = read(child->failed_fd, &error, sizeof error);
    while (got < 0 && errno == EINTR);
    (void)close(child->failed_fd);
    child->failed_fd = -1;
    return got == (ssize_t)sizeof error ? error : 0;
}

static bool check_exit(struct ew_child *child, int flags)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    if (child->ended)
        return true;
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT | flags) != 0 || info.si_pid == 0)
        return false;
    child->ended = true;
    child->signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
    child->status = child->signal == 0 ? info.si_status : EW_EXIT_SIGNAL + info.si_status;
    return true;
}

bool ew_child_ended(struct ew_child *child)
{
    return check_exit(child, WNOHANG);
}

void ew_child_wait(struct ew_child *child)
{
    (void)check_exit(child, 0);
}

/* On Linux the sources follow the process tree. */
uint32_t ew_child_take_started(struct ew_child *child)
{
    (void)child;
    return 0;
}

bool ew_child_tree_ended(struct ew_child *child)
{
    (void)child;
    return true;
}

void ew_child_reap(struct ew_child *child)
{
    if (child->pid == 0 || child->reaped)
        return;
    if (child->go_fd >= 0)
        (void)close(child->go_fd);
    if (child->failed_fd >= 0)
        (void)close(child->failed_fd);
    child->go_fd = child->failed_fd = -1;
    while (waitpid((pid_t)child->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    child->reaped = true;
}

void ew_child_signal(const struct ew_child *child, int number)
{
    if (child->pid != 0 && !child->reaped)
        (void)kill((pid_t)child->pid, number);
}
