/* SPDX-License-Identifier: MIT */
/*
 * The service manager of Windows. Its dispatcher calls service_main on a thread of its own and the
 * handler on the main thread; the handler only sets flags, so the recorder ends as after Ctrl-C.
 *
 * A service has no standard error: its messages are in the event log (Application, source etwatch).
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>
/* Needs windows.h before it. */
#include <ntsecapi.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/service.h"
#include "os/windows/text.h"

enum {
    WRITE_RING = 200, /* `sc control etwatch 200` writes the ring */
    STOP_HINT_MS = 30000,
    RESET_SECONDS = 3600,
    SID_UNRESTRICTED = 1,
};

/* NULL only if memory is exhausted or the text is not UTF-8. */
static wchar_t *wide(const char *text)
{
    return ew_wide_from_utf8(text);
}

static uint32_t result_of(BOOL ok)
{
    return ok ? 0 : GetLastError();
}

/* ------------------------------------------------------------------- manager */

static uint32_t open_manager(void *ctx, bool create, void **ret_manager)
{
    (void)ctx;
    *ret_manager =
        OpenSCManagerW(NULL, NULL, SC_MANAGER_CONNECT | (create ? SC_MANAGER_CREATE_SERVICE : 0));
    return result_of(*ret_manager != NULL);
}

static uint32_t create_service(void *ctx, void *manager, const struct ew_service *service,
                               const char *command_line, void **ret_service)
{
    (void)ctx;
    wchar_t *name = wide(service->name), *title = wide(service->title),
            *account = wide(service->account), *command = wide(command_line);
    uint32_t code = ERROR_NOT_ENOUGH_MEMORY;
    if (name && title && account && command) {
        *ret_service = CreateServiceW(
            manager, name, title, SERVICE_ALL_ACCESS, SERVICE_WIN32_OWN_PROCESS, SERVICE_AUTO_START,
            SERVICE_ERROR_NORMAL, command, NULL, NULL, NULL, account, L"");
        code = result_of(*ret_service != NULL);
    }
    ew_free(name);
    ew_free(title);
    ew_free(account);
    ew_free(command);
    return code;
}

static uint32_t find_service(void *ctx, void *manager, const char *name, void **ret_service)
{
    (void)ctx;
    wchar_t *text = wide(name);
    if (text == NULL)
        return ERROR_NOT_ENOUGH_MEMORY;
    *ret_service = OpenServiceW(manager, text, SERVICE_STOP | SERVICE_QUERY_STATUS | DELETE);
    uint32_t code = result_of(*ret_service != NULL);
    ew_free(text);
    return code;
}

/* The privileges as consecutive texts with an empty one at the end. */
static wchar_t *make_list(const struct ew_service *service)
{
    size_t used = 0, size = 1;
    for (size_t i = 0; service->privileges[i] != NULL; i++)
        size += strlen(service->privileges[i]) + 1;
    wchar_t *list = ew_calloc(size, sizeof *list);
    for (size_t i = 0; list != NULL && service->privileges[i] != NULL; i++) {
        for (const char *at = service->privileges[i]; *at != '\0'; at++)
            list[used++] = (wchar_t)*at; /* ASCII */
        used++;
    }
    return list;
}

/* Wine does not have every level; every Windows since Vista has. */
static uint32_t change(SC_HANDLE handle, DWORD level, void *info)
{
    uint32_t code = result_of(ChangeServiceConfig2W(handle, level, info));
    return code == ERROR_INVALID_LEVEL ? 0 : code;
}

static uint32_t configure(void *ctx, void *handle, const struct ew_service *service)
{
    (void)ctx;
    wchar_t *text = wide(service->description), *list = make_list(service);
    if (text == NULL || list == NULL) {
        ew_free(text);
        ew_free(list);
        return ERROR_NOT_ENOUGH_MEMORY;
    }
    SERVICE_DESCRIPTIONW description = {text};
    SERVICE_REQUIRED_PRIVILEGES_INFOW privileges = {list};
    SERVICE_SID_INFO identity = {SID_UNRESTRICTED};
    SC_ACTION restart = {SC_ACTION_RESTART, service->restart_ms};
    SERVICE_FAILURE_ACTIONSW actions = {
        .dwResetPeriod = RESET_SECONDS, .cActions = 1, .lpsaActions = &restart};
    SERVICE_FAILURE_ACTIONS_FLAG also_for_exit_codes = {TRUE};
    /* These are the rights and must succeed; the rest is comfort. */
    uint32_t code = change(handle, SERVICE_CONFIG_SERVICE_SID_INFO, &identity);
    if (code == 0)
        code = change(handle, SERVICE_CONFIG_REQUIRED_PRIVILEGES_INFO, &privileges);
    (void)ChangeServiceConfig2W(handle, SERVICE_CONFIG_DESCRIPTION, &description);
    (void)ChangeServiceConfig2W(handle, SERVICE_CONFIG_FAILURE_ACTIONS, &actions);
    (void)ChangeServiceConfig2W(handle, SERVICE_CONFIG_FAILURE_ACTIONS_FLAG, &also_for_exit_codes);
    ew_free(text);
    ew_free(list);
    return code;
}

static uint32_t start(void *ctx, void *handle)
{
    (void)ctx;
    return result_of(StartServiceW(handle, 0, NULL));
}

static uint32_t stop(void *ctx, void *handle)
{
    SERVICE_STATUS status;
    (void)ctx;
    return result_of(ControlService(handle, SERVICE_CONTROL_STOP, &status));
}

static uint32_t query(void *ctx, void *handle, bool *ret_running)
{
    SERVICE_STATUS status;
    (void)ctx;
    if (!QueryServiceStatus(handle, &status))
        return GetLastError();
    *ret_running = status.dwCurrentState != SERVICE_STOPPED;
    return 0;
}

static uint32_t delete_service(void *ctx, void *handle)
{
    (void)ctx;
    return result_of(DeleteService(handle));
}

static void close_handle(void *ctx, void *handle)
{
    (void)ctx;
    (void)CloseServiceHandle(handle);
}

/* -------------------------------------------------------------------- rights */

static uint32_t set_right_of(PSID sid, wchar_t *right, bool granted)
{
    LSA_OBJECT_ATTRIBUTES attributes = {.Length = sizeof attributes};
    LSA_HANDLE policy = NULL;
    size_t bytes = wcslen(right) * sizeof *right;
    LSA_UNICODE_STRING text = {(USHORT)bytes, (USHORT)(bytes + sizeof *right), right};
    NTSTATUS status =
        LsaOpenPolicy(NULL, &attributes, POLICY_LOOKUP_NAMES | POLICY_CREATE_ACCOUNT, &policy);
    if (status != 0)
        return LsaNtStatusToWinError(status);
    status = granted ? LsaAddAccountRights(policy, sid, &text, 1)
                     : LsaRemoveAccountRights(policy, sid, FALSE, &text, 1);
    (void)LsaClose(policy);
    return LsaNtStatusToWinError(status);
}

static uint32_t set_right(void *ctx, const char *account, const char *right, bool granted)
{
    BYTE sid[SECURITY_MAX_SID_SIZE];
    WCHAR domain[256];
    DWORD sid_size = sizeof sid, domain_len = 256;
    SID_NAME_USE use;
    (void)ctx;
    wchar_t *name = wide(account), *text = wide(right);
    uint32_t code =
        name && text
            ? result_of(LookupAccountNameW(NULL, name, sid, &sid_size, domain, &domain_len, &use))
            : (uint32_t)ERROR_NOT_ENOUGH_MEMORY;
    if (code == 0)
        code = set_right_of(sid, text, granted);
    ew_free(name);
    ew_free(text);
    return code;
}

/* --------------------------------------------------------------------- paths */

enum { WIDE_SIZE = 4096 };

static uint32_t to_utf8(const wchar_t *text, DWORD len, char *path, size_t size)
{
    if (len == 0)
        return GetLastError();
    if (len >= WIDE_SIZE)
        return ERROR_FILENAME_EXCED_RANGE;
    (void)ew_wide_to_utf8(text, len, path, size);
    return 0;
}

static uint32_t program(void *ctx, char *path, size_t size)
{
    wchar_t text[WIDE_SIZE];
    (void)ctx;
    return to_utf8(text, GetModuleFileNameW(NULL, text, WIDE_SIZE), path, size);
}

static uint32_t absolute(void *ctx, const char *file, char *path, size_t size)
{
    wchar_t text[WIDE_SIZE], *name = wide(file);
    (void)ctx;
    if (name == NULL)
        return ERROR_NOT_ENOUGH_MEMORY;
    DWORD len = GetFullPathNameW(name, WIDE_SIZE, text, NULL);
    uint32_t code = to_utf8(text, len, path, size);
    ew_free(name);
    return code;
}

/* --------------------------------------------------------------------- serve */

/* The dispatcher passes nothing to service_main, and a process has one service. */
static struct {
    wchar_t *name;
    SERVICE_STATUS_HANDLE handle;
    SERVICE_STATUS status;
    HANDLE log;
    int (*work)(void *arg);
    void *arg;
} served;

static void set_state(DWORD state, DWORD accepted)
{
    served.status.dwServiceType = SERVICE_WIN32_OWN_PROCESS;
    served.status.dwCurrentState = state;
    served.status.dwControlsAccepted = accepted;
    served.status.dwWaitHint = state == SERVICE_STOP_PENDING ? STOP_HINT_MS : 0;
    (void)SetServiceStatus(served.handle, &served.status);
}

static DWORD WINAPI on_control(DWORD control, DWORD type, void *data, void *ctx)
{
    (void)type;
    (void)data;
    (void)ctx;
    switch (control) {
    case SERVICE_CONTROL_STOP:
    case SERVICE_CONTROL_SHUTDOWN:
        set_state(SERVICE_STOP_PENDING, 0);
        ew_signals_request_user(); /* what led to the end of the machine is in the ring */
        ew_signals_request(SIGTERM);
        return NO_ERROR;
    case WRITE_RING:
        ew_signals_request_user();
        return NO_ERROR;
    case SERVICE_CONTROL_INTERROGATE:
        return NO_ERROR;
    default:
        return ERROR_CALL_NOT_IMPLEMENTED;
    }
}

static void log_line(void *ctx, const char *line)
{
    wchar_t *text = wide(line);
    const wchar_t *texts[1] = {text};
    (void)ctx;
    if (text != NULL && served.log != NULL)
        (void)ReportEventW(served.log, EVENTLOG_INFORMATION_TYPE, 0, 0, NULL, 1, 0, texts, NULL);
    ew_free(text);
}

static void WINAPI service_main(DWORD argc, wchar_t **argv)
{
    (void)argc;
    (void)argv;
    served.handle = RegisterServiceCtrlHandlerExW(served.name, on_control, NULL);
    if (served.handle == NULL)
        return;
    served.log = RegisterEventSourceW(NULL, served.name);
    ew_messages_to(log_line, NULL);
    set_state(SERVICE_RUNNING, SERVICE_ACCEPT_STOP | SERVICE_ACCEPT_SHUTDOWN);
    int code = served.work(served.arg);
    ew_messages_to(NULL, NULL);
    if (served.log != NULL)
        (void)DeregisterEventSource(served.log);
    if (code != 0) {
        served.status.dwWin32ExitCode = ERROR_SERVICE_SPECIFIC_ERROR;
        served.status.dwServiceSpecificExitCode = (DWORD)code;
    }
    set_state(SERVICE_STOPPED, 0);
}

static uint32_t serve(void *ctx, const char *name, int (*work)(void *arg), void *arg)
{
    (void)ctx;
    served.name = wide(name);
    served.work = work;
    served.arg = arg;
    if (served.name == NULL)
        return ERROR_NOT_ENOUGH_MEMORY;
    SERVICE_TABLE_ENTRYW table[] = {{served.name, service_main}, {NULL, NULL}};
    return result_of(StartServiceCtrlDispatcherW(table));
}

static void sleep_ms(void *ctx, uint32_t ms)
{
    (void)ctx;
    Sleep(ms);
}

const struct ew_scm *ew_scm_real(void)
{
    static const struct ew_scm scm = {
        .open = open_manager,
        .create = create_service,
        .find = find_service,
        .configure = configure,
        .start = start,
        .stop = stop,
        .query = query,
        .remove = delete_service,
        .close = close_handle,
        .set_right = set_right,
        .program = program,
        .absolute = absolute,
        .serve = serve,
        .sleep_ms = sleep_ms,
    };
    return &scm;
}
