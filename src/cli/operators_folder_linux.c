/* SPDX-License-Identifier: MIT */
/*
 * The private folder in which ONNX Runtime creates its profiles. The hook removes the name of each
 * file as soon as it exists, so a file has a name for milliseconds; what is left of it is removed
 * by a process that waits for the end of this one, however it ends.
 */
#include "cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"

/* The command may run longer than this program, and create files. */
enum { SWEEPS = 3 };

static void remove_files(int folder_fd)
{
    int copy = dup(folder_fd);
    DIR *folder = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;
    if (folder == NULL) {
        if (copy >= 0)
            (void)close(copy);
        return;
    }
    rewinddir(folder);
    while ((entry = readdir(folder)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(folder_fd, entry->d_name, 0);
    (void)closedir(folder);
}

/* The process that removes the folder: waits until the other end of the pipe is closed. */
static void guard(const char *path, int folder_fd, int pipe_fd)
{
    char byte;
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL); /* Ctrl-C is for the others */
    long most = sysconf(_SC_OPEN_MAX);
    most = most < 0 || most > 4096 ? 4096 : most;
    for (int fd = 0; fd < most; fd++)
        if (fd != folder_fd && fd != pipe_fd)
            (void)close(fd);
    ew_os_drop_all_rights();
    while (read(pipe_fd, &byte, 1) < 0 && errno == EINTR)
        continue;
    for (int i = 0; i < SWEEPS; i++) {
        remove_files(folder_fd);
        if (rmdir(path) == 0 || errno != ENOTEMPTY)
            break;
    }
    _exit(0);
}

static int start_guard(struct ew_operators_folder *folder, int folder_fd)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    pid_t pid = fork();
    int error = pid < 0 ? errno : 0;
    if (pid == 0)
        guard(folder->path, folder_fd, ends[0]);
    (void)close(ends[0]);
    if (error != 0) {
        (void)close(ends[1]);
        return error;
    }
    folder->pipe_fd = ends[1];
    folder->guard = pid;
    return 0;
}

int ew_cli_operators_folder_open(struct ew_operators_folder *folder)
{
    const char *parent = getenv("TMPDIR");
    int len = snprintf(folder->path, sizeof folder->path, "%s/etwatch-operators-XXXXXX",
                       parent == NULL || parent[0] != '/' ? "/tmp" : parent);
    folder->pipe_fd = -1;
    if (len < 0 || (size_t)len >= sizeof folder->path) {
        ew_print_error("TMPDIR is too long");
        return EW_EXIT_FAILED;
    }
    if (mkdtemp(folder->path) == NULL) {
        ew_print_error("cannot create %s for --operators: %s", folder->path, strerror(errno));
        return EW_EXIT_FAILED;
    }
    int fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int error = fd < 0 ? errno : start_guard(folder, fd);
    if (fd >= 0)
        (void)close(fd);
    if (error == 0 && setenv("ETWATCH_OPERATORS", folder->path, 1) != 0)
        error = ENOMEM;
    if (error == 0)
        return EW_EXIT_OK;
    ew_print_error("cannot guard %s: %s", folder->path, strerror(error));
    (void)rmdir(folder->path);
    return EW_EXIT_FAILED;
}

void ew_cli_operators_folder_close(struct ew_operators_folder *folder)
{
    if (folder->guard == 0)
        return;
    (void)close(folder->pipe_fd);
    while (waitpid((pid_t)folder->guard, NULL, 0) < 0 && errno == EINTR)
        continue;
    folder->guard = 0;
}
