/* SPDX-License-Identifier: MIT */
/*
 * Windows has no fork: the busy child is this program again, started with an extra argument that is
 * checked before main. All children are in one job object that ends with this process.
 */
#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

#include "test.h"

#define BUSY_WORD L"--busy-child"

enum { CHILDREN_MAX = 16 };
static HANDLE children[CHILDREN_MAX], job;

__attribute__((constructor)) static void be_busy(void)
{
    if (wcsstr(GetCommandLineW(), BUSY_WORD) == NULL)
        return;
    for (volatile unsigned i = 0;; i++)
        continue;
}

void test_folder(char *folder, size_t size)
{
    char base[MAX_PATH];
    CHECK(GetTempPathA(sizeof base, base) > 0);
    for (unsigned i = 0; i < 1000; i++) {
        int len = snprintf(folder, size, "%setwatch-%lu-%u", base, GetCurrentProcessId(), i);
        CHECK(len > 0 && (size_t)len < size);
        for (char *at = folder; *at != '\0'; at++)
            *at = *at == '\\' ? '/' : *at;
        if (CreateDirectoryA(folder, NULL))
            return;
    }
    FAIL("cannot make a folder");
}

void test_folder_remove(const char *folder)
{
    (void)RemoveDirectoryA(folder);
}

void test_truncate(const char *path, uint64_t size)
{
    LARGE_INTEGER at = {.QuadPart = (LONGLONG)size};
    HANDLE file =
        CreateFileA(path, GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                    NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    CHECK(file != INVALID_HANDLE_VALUE);
    CHECK(SetFilePointerEx(file, at, NULL, FILE_BEGIN));
    CHECK(SetEndOfFile(file));
    CHECK(CloseHandle(file));
}

bool test_pipe(const char *path)
{
    (void)path;
    return false;
}

static void make_job(void)
{
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {0};
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    job = CreateJobObjectW(NULL, NULL);
    CHECK(job != NULL);
    CHECK(SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits));
}

static void keep(HANDLE process)
{
    for (size_t i = 0; i < CHILDREN_MAX; i++) {
        if (children[i] == NULL) {
            children[i] = process;
            return;
        }
    }
    FAIL("too many children");
}

uint32_t test_start_busy(void)
{
    wchar_t program[MAX_PATH], line[MAX_PATH + 32];
    STARTUPINFOW startup = {.cb = sizeof startup};
    PROCESS_INFORMATION made;
    if (job == NULL)
        make_job();
    CHECK(GetModuleFileNameW(NULL, program, MAX_PATH) > 0);
    (void)swprintf(line, sizeof line / sizeof line[0], L"\"%ls\" %ls", program, BUSY_WORD);
    CHECK(CreateProcessW(program, line, NULL, NULL, FALSE, CREATE_SUSPENDED, NULL, NULL, &startup,
                         &made));
    CHECK(AssignProcessToJobObject(job, made.hProcess));
    (void)ResumeThread(made.hThread);
    (void)CloseHandle(made.hThread);
    keep(made.hProcess);
    return made.dwProcessId;
}

void test_end_child(uint32_t pid)
{
    for (size_t i = 0; i < CHILDREN_MAX; i++) {
        if (children[i] == NULL || GetProcessId(children[i]) != pid)
            continue;
        (void)TerminateProcess(children[i], 1);
        (void)WaitForSingleObject(children[i], INFINITE);
        (void)CloseHandle(children[i]);
        children[i] = NULL;
    }
}

void test_sleep_ms(unsigned ms)
{
    Sleep(ms);
}

int test_open_handles(void)
{
    DWORD count = 0;
    CHECK(GetProcessHandleCount(GetCurrentProcess(), &count));
    return (int)count;
}

uint32_t test_own_pid(void)
{
    return GetCurrentProcessId();
}
