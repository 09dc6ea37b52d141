/* SPDX-License-Identifier: MIT */
/*
 * once [--first-line] COMMAND...: runs a command once and prints what it took, as a line of JSON:
 * wall time, CPU time and peak memory by wait4. Its output is read and thrown away. With
 * --first-line also the time until its first line of output; the command is then ended by SIGINT.
 *
 * A separate program because a child's peak memory is never below that of the process that forked
 * it: forked by the interpreter, every command would seem to need its 10 MB.
 */
#include "util.h"

#include <sys/resource.h>
#include <sys/wait.h>

static uint64_t ns_of(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

/* Reads the output to its end; returns when the first line was complete, 0 if none was. */
static uint64_t read_output(int fd, pid_t pid, bool end_after_first)
{
    char buffer[65536];
    uint64_t first_ns = 0;
    ssize_t got = 0;
    while ((got = read(fd, buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR)) {
        if (got <= 0 || first_ns != 0 || memchr(buffer, '\n', (size_t)got) == NULL)
            continue;
        first_ns = clock_ns(CLOCK_MONOTONIC);
        if (end_after_first)
            kill(pid, SIGINT);
    }
    return first_ns;
}

int main(int argc, char **argv)
{
    bool first_line = argc > 1 && strcmp(argv[1], "--first-line") == 0;
    char **command = argv + (first_line ? 2 : 1);
    int output[2];
    if (argc < (first_line ? 3 : 2))
        die("usage: once [--first-line] COMMAND...");
    if (pipe(output) != 0)
        die("pipe: %s", strerror(errno));
    uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    pid_t pid = fork();
    if (pid < 0)
        die("fork: %s", strerror(errno));
    if (pid == 0) {
        dup2(output[1], STDOUT_FILENO);
        dup2(output[1], STDERR_FILENO);
        close(output[0]);
        close(output[1]);
        execvp(command[0], command);
        _exit(127);
    }
    close(output[1]);
    uint64_t first_ns = read_output(output[0], pid, first_line);
    struct rusage usage;
    int status = 0;
    while (wait4(pid, &status, 0, &usage) < 0)
        if (errno != EINTR)
            die("wait4: %s", strerror(errno));
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC);
    printf("{\"wall_ns\":%llu,\"first_line_ns\":%llu,\"cpu_ns\":%llu,\"peak_kb\":%ld,"
           "\"status\":%d}\n",
           (unsigned long long)(end_ns - begin_ns),
           (unsigned long long)(first_ns == 0 ? 0 : first_ns - begin_ns),
           (unsigned long long)(ns_of(usage.ru_utime) + ns_of(usage.ru_stime)), usage.ru_maxrss,
           WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return 0;
}
