/* SPDX-License-Identifier: MIT */
/*
 * Owns the child process and its job. The process is created with its first thread suspended, which
 * holds it until it is watched.
 *
 * The child never outlives etwatch: the job ends all its processes when its last handle is closed,
 * and Windows closes it however etwatch ends. Once the child has exited by itself, its descendants
 * may continue, as on every system.
 *
 * A command that cannot be run fails when the process is created; the error is reported when it is
 * released, as on other systems.
 */
#include "cli/cli.h"

#include <errno.h>
#include <string.h>
#include <windows.h>

#include "base/alloc.h"
#include "base/path.h"
#include "os/windows/text.h"

/* The batch file that a command without extension means (npm is npm.cmd), or a batch file itself.
 * False: it is something else. */
static bool find_batch(const char *program, char *ret_path, size_t size)
{
    static const wchar_t *const extensions[] = {L".exe", L".com", L".bat", L".cmd"};
    wchar_t found[1024];
    wchar_t *wide = ew_wide_from_utf8(program);
    DWORD units = 0;
    size_t i = 0;
    if (wide && ew_quote_is_batch(program))
        units = SearchPathW(NULL, wide, NULL, sizeof found / sizeof found[0], found, NULL);
    else if (wide && strchr(ew_path_name(program), '.') == NULL)
        for (i = 0; i < 4 && units == 0; i++)
            units =
                SearchPathW(NULL, wide, extensions[i], sizeof found / sizeof found[0], found, NULL);
    ew_free(wide);
    bool batch = units > 0 && units < sizeof found / sizeof found[0] && (i == 0 || i > 2);
    return batch && ew_wide_to_utf8(found, units, ret_path, size) < size - 1;
}

static bool put_batch(struct ew_buf *line, char **command)
{
    enum { PATH_BYTES = 4096 };
    wchar_t folder[MAX_PATH];
    char interpreter[PATH_BYTES], path[PATH_BYTES];
    UINT units = GetSystemDirectoryW(folder, MAX_PATH);
    if (units == 0 || units >= MAX_PATH || !find_batch(command[0], path, sizeof path))
        return false;
    size_t len = ew_wide_to_utf8(folder, units, interpreter, sizeof interpreter - 16);
    memcpy(interpreter + len, "\\cmd.exe", sizeof "\\cmd.exe");
    return ew_quote_batch(line, interpreter, path, command + 1);
}

/* Why a batch file cannot be run: it does not exist, or it has an argument with a line end. */
static int batch_error(char **command)
{
    char path[4096];
    return find_batch(command[0], path, sizeof path) ? EINVAL : ENOENT;
}

/* NULL and *ret_error: the command cannot be expressed as a Windows command line. */
static wchar_t *command_line(char **command, int *ret_error)
{
    struct ew_buf line;
    wchar_t *wide = NULL;
    ew_buf_init(&line, 0, NULL, NULL);
    bool batch = put_batch(&line, command);
    if (!batch)
        line.len = 0;
    *ret_error = ew_quote_is_batch(command[0]) ? batch_error(command) : ENOENT;
    if (batch || (!ew_quote_is_batch(command[0]) && ew_quote_program(&line, command[0]))) {
        for (size_t i = 1; command[i] != NULL && !batch; i++) {
            ew_buf_char(&line, ' ');
            ew_quote_argument(&line, command[i]);
        }
        ew_buf_char(&line, '\0');
        *ret_error = ENOMEM;
        wide = line.error == 0 ? ew_wide_from_utf8(line.data) : NULL;
    }
    ew_buf_done(&line);
    return wide;
}

static void set_kill_on_close(HANDLE job, bool on)
{
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {0};
    limits.BasicLimitInformation.LimitFlags = on ? JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE : 0;
    (void)SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
}

/* If the parent of a process existed only between two polls, the process list does not show that it
 * is a descendant. The job knows: it reports every new process at the port. */
static void make_job(struct ew_child *child)
{
    JOBOBJECT_ASSOCIATE_COMPLETION_PORT port = {0};
    child->job = CreateJobObjectW(NULL, NULL);
    if (!child->job)
        return;
    set_kill_on_close(child->job, true);
    child->port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 1);
    port.CompletionKey = child->job;
    port.CompletionPort = child->port;
    if (child->port)
        (void)SetInformationJobObject(child->job, JobObjectAssociateCompletionPortInformation,
                                      &port, sizeof port);
    (void)AssignProcessToJobObject(child->job, child->process);
}

uint32_t ew_child_take_started(struct ew_child *child)
{
    DWORD message;
    ULONG_PTR key;
    OVERLAPPED *pid;
    while (child->port && GetQueuedCompletionStatus(child->port, &message, &key, &pid, 0))
        if (message == JOB_OBJECT_MSG_NEW_PROCESS && (uint32_t)(ULONG_PTR)pid != child->pid)
            return (uint32_t)(ULONG_PTR)pid;
    return 0;
}

bool ew_child_tree_ended(struct ew_child *child)
{
    JOBOBJECT_BASIC_ACCOUNTING_INFORMATION info;
    return !child->job ||
           !QueryInformationJobObject(child->job, JobObjectBasicAccountingInformation, &info,
                                      sizeof info, NULL) ||
           info.ActiveProcesses == 0;
}

static int create(struct ew_child *child, wchar_t *line)
{
    STARTUPINFOW startup = {.cb = sizeof startup, .dwFlags = STARTF_USESTDHANDLES};
    PROCESS_INFORMATION info;
    startup.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
    startup.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
    startup.hStdError = GetStdHandle(STD_ERROR_HANDLE);
    if (!CreateProcessW(NULL, line, NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL, &startup,
                        &info))
        return ew_errno_from_windows(GetLastError());
    child->pid = info.dwProcessId;
    child->process = info.hProcess;
    child->thread = info.hThread;
    make_job(child);
    return 0;
}

int ew_child_hold(struct ew_child *child, char **command)
{
    *child = (struct ew_child){.go_fd = -1, .failed_fd = -1};
    wchar_t *line = command_line(command, &child->failed);
    if (line)
        child->failed = create(child, line);
    ew_free(line);
    return 0;
}

int ew_child_release(struct ew_child *child)
{
    if (child->failed != 0)
        return child->failed;
    (void)ResumeThread(child->thread);
    (void)CloseHandle(child->thread);
    child->thread = NULL;
    return 0;
}

static bool check_exit(struct ew_child *child, DWORD wait_ms)
{
    DWORD code = 0;
    if (child->ended)
        return true;
    if (child->process == NULL || WaitForSingleObject(child->process, wait_ms) != WAIT_OBJECT_0)
        return false;
    (void)GetExitCodeProcess(child->process, &code);
    child->ended = true;
    child->status = (int)code;
    return true;
}

bool ew_child_ended(struct ew_child *child)
{
    return check_exit(child, 0);
}

void ew_child_wait(struct ew_child *child)
{
    (void)check_exit(child, INFINITE);
}

static void close_handle(void **handle)
{
    if (*handle)
        (void)CloseHandle(*handle);
    *handle = NULL;
}

void ew_child_reap(struct ew_child *child)
{
    if (child->thread) { /* never released */
        (void)TerminateProcess(child->process, EW_EXIT_FAILED);
        (void)WaitForSingleObject(child->process, INFINITE);
    }
    if (child->job)
        set_kill_on_close(child->job, false);
    close_handle(&child->thread);
    close_handle(&child->process);
    close_handle(&child->job);
    close_handle(&child->port);
    child->reaped = true;
}

/* Windows has no signals; a console sends its events to the child as well. */
void ew_child_signal(const struct ew_child *child, int number)
{
    (void)child;
    (void)number;
}
