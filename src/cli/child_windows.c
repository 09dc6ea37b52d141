/* SPDX-License-Identifier: MIT */
/*
 * Owns the child process and the job it is in. It is made with its first thread suspended, which
 * holds it until it is watched.
 *
 * Whatever becomes of us the child does not stay behind: the job ends all its processes when its
 * last handle is closed, which Windows does for us however we end. Once the child has ended by
 * itself, what it started may go on, as on every system.
 *
 * What is wrong with the command shows when the process is made, but is told where other systems
 * tell it, when it is let go.
 */
#include "cli/child.h"

#include <errno.h>
#include <windows.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "cli/args/options.h"
#include "cli/quote.h"
#include "os/windows/text.h"

/* NULL and *ret_error: the command has no form that Windows would read as it is meant. */
static wchar_t *command_line(char **command, int *ret_error)
{
    struct ew_buf line;
    wchar_t *wide = NULL;
    ew_buf_init(&line, 0, NULL, NULL);
    *ret_error = ew_quote_is_batch(command[0]) ? ENOEXEC : ENOENT;
    if (!ew_quote_is_batch(command[0]) && ew_quote_program(&line, command[0])) {
        for (size_t i = 1; command[i] != NULL; i++) {
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

static void set_ends_with_us(HANDLE job, bool ends)
{
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {0};
    limits.BasicLimitInformation.LimitFlags = ends ? JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE : 0;
    (void)SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
}

/* A process whose parent lived between two looks at the list belongs to nobody there, but to the
 * job: it says so at the port when a process comes. */
static void make_job(struct ew_child *child)
{
    JOBOBJECT_ASSOCIATE_COMPLETION_PORT port = {0};
    child->job = CreateJobObjectW(NULL, NULL);
    if (!child->job)
        return;
    set_ends_with_us(child->job, true);
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
    PROCESS_INFORMATION made;
    startup.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
    startup.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
    startup.hStdError = GetStdHandle(STD_ERROR_HANDLE);
    if (!CreateProcessW(NULL, line, NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL, &startup,
                        &made))
        return ew_errno_from_windows(GetLastError());
    child->pid = made.dwProcessId;
    child->process = made.hProcess;
    child->thread = made.hThread;
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

static bool look(struct ew_child *child, DWORD wait_ms)
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
    return look(child, 0);
}

void ew_child_wait(struct ew_child *child)
{
    (void)look(child, INFINITE);
}

static void close_handle(void **handle)
{
    if (*handle)
        (void)CloseHandle(*handle);
    *handle = NULL;
}

void ew_child_reap(struct ew_child *child)
{
    if (child->thread) { /* never let go */
        (void)TerminateProcess(child->process, EW_EXIT_FAILED);
        (void)WaitForSingleObject(child->process, INFINITE);
    }
    if (child->job)
        set_ends_with_us(child->job, false);
    close_handle(&child->thread);
    close_handle(&child->process);
    close_handle(&child->job);
    close_handle(&child->port);
    child->reaped = true;
}

/* There are no signals; what a console tells us it tells the child too. */
void ew_child_signal(const struct ew_child *child, int number)
{
    (void)child;
    (void)number;
}
