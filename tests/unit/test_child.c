/* SPDX-License-Identifier: MIT */
/* The command of run never outlives etwatch unnoticed, also if etwatch is killed while it starts.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "test.h"

/* The program is no library: its file is part of the test. */
#include "cli/child_linux.c"

static bool wait_for_death; /* of the process that holds the command */
static pid_t holder;

static void on_term(int number)
{
    (void)number; /* as etwatch's handler: it only notes the signal */
}

/* The moment before the command starts, while etwatch's handlers are still installed. */
void ew_signals_restore(void)
{
    while (wait_for_death && getppid() == holder)
        (void)usleep(1000);
    (void)signal(SIGTERM, SIG_DFL);
}

/* Holds and starts "touch path" and dies at once or waits for it; returns whether path exists when
 * every process is gone. */
static bool command_ran(bool dies)
{
    char folder[] = "/tmp/etwatch-child-XXXXXX", path[64], byte;
    int alive[2];
    CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof path, "%s/ran", folder);
    char *command[] = {"touch", path, NULL};
    CHECK_EQ_INT(pipe(alive), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        struct ew_child child;
        holder = getpid();
        wait_for_death = dies;
        (void)signal(SIGTERM, on_term);
        if (ew_child_hold(&child, command) != 0)
            _exit(1);
        if (dies) {
            (void)!write(child.go_fd, "g", 1);
            (void)kill(getpid(), SIGKILL);
        }
        (void)ew_child_release(&child);
        ew_child_wait(&child);
        ew_child_reap(&child);
        _exit(child.status);
    }
    (void)close(alive[1]);
    CHECK_EQ_INT(waitpid(pid, NULL, 0), pid);
    /* The pipe ends with the last process that has inherited it. */
    CHECK_EQ_INT(read(alive[0], &byte, 1), 0);
    (void)close(alive[0]);
    bool ran = access(path, F_OK) == 0;
    (void)unlink(path);
    (void)rmdir(folder);
    return ran;
}

TEST(a_released_command_runs)
{
    CHECK(command_ran(false));
}

TEST(a_command_does_not_start_after_etwatch_was_killed)
{
    CHECK(!command_ran(true));
}

TEST(a_command_that_does_not_exist_is_reported)
{
    struct ew_child child;
    char *command[] = {"/nonexistent/command", NULL};
    CHECK_EQ_INT(ew_child_hold(&child, command), 0);
    CHECK_EQ_INT(ew_child_release(&child), ENOENT);
    ew_child_wait(&child);
    CHECK_EQ_INT(child.status, EW_EXIT_NOT_FOUND);
    ew_child_reap(&child);
    CHECK(child.reaped);
}

TEST(a_command_that_is_never_released_ends)
{
    struct ew_child child;
    char *command[] = {"sleep", "1000", NULL};
    CHECK_EQ_INT(ew_child_hold(&child, command), 0);
    CHECK(!ew_child_ended(&child));
    ew_child_reap(&child);
    CHECK(child.reaped);
}
