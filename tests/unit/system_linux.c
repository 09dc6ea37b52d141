/* SPDX-License-Identifier: MIT */
#include "system.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

void test_folder(char *folder, size_t size)
{
    int len = snprintf(folder, size, "%s/etwatch-XXXXXX", P_tmpdir);
    CHECK(len > 0 && (size_t)len < size);
    CHECK(mkdtemp(folder) != NULL);
}

void test_folder_remove(const char *folder)
{
    (void)rmdir(folder);
}

void test_truncate(const char *path, uint64_t size)
{
    CHECK_EQ_INT(truncate(path, (off_t)size), 0);
}

bool test_pipe(const char *path)
{
    CHECK_EQ_INT(mkfifo(path, 0600), 0);
    return true;
}

uint32_t test_start_busy(void)
{
    pid_t parent = getpid(), pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        for (volatile unsigned i = 0;; i++)
            if (i % 4000000 == 0 && getppid() != parent)
                _exit(0);
    }
    return (uint32_t)pid;
}

void test_end_child(uint32_t pid)
{
    kill((pid_t)pid, SIGKILL);
    waitpid((pid_t)pid, NULL, 0);
}

void test_sleep_ms(unsigned ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
}

int test_open_handles(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir != NULL);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

uint32_t test_own_pid(void)
{
    return (uint32_t)getpid();
}
