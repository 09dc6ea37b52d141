/* SPDX-License-Identifier: MIT */
/*
 * What this Windows offers and what etwatch may use of it. Each probe examines one thing and
 * reports what it found, what its absence costs the user, and the exact command that fixes it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <windows.h>

#include "base/alloc.h"
#include "base/error.h"
#include "os/os.h"
#include "os/windows/version.h"

#define POLLS_INSTEAD "no ETW: etwatch polls, misses short processes and costs more"
#define OLDEST_BUILD 10240u /* the first Windows 10 */

struct probe {
    void (*on_check)(void *ctx, const struct etwatch_check *check);
    void *ctx;
    char found[160];
};

static void report(struct probe *p, uint32_t state, const char *id, const char *what,
                   const char *cost, const char *fix)
{
    bool ok = state == ETWATCH_CHECK_OK;
    struct etwatch_check check = {
        .size = sizeof check,
        .state = state,
        .id = id,
        .what = what,
        .found = p->found,
        .cost = ok ? "" : cost,
        .fix = ok ? "" : fix,
    };
    p->on_check(p->ctx, &check);
}

static void EW_PRINTF(2, 3) found(struct probe *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(p->found, sizeof p->found, format, args);
    va_end(args);
}

static void probe_version(struct probe *p, const struct ew_windows_version *version)
{
    found(p, "%lu.%lu, build %lu", (unsigned long)version->major, (unsigned long)version->minor,
          (unsigned long)version->build);
    report(p, version->build >= OLDEST_BUILD ? ETWATCH_CHECK_OK : ETWATCH_CHECK_WARN, "windows",
           "Windows 10 or newer", "older versions are not tested", "use Windows 10 or newer");
}

static void probe_wine(struct probe *p, const struct ew_windows_version *version)
{
    if (!version->wine)
        return;
    found(p, "Wine %s", version->wine);
    report(p, ETWATCH_CHECK_WARN, "wine", "a kernel that records events",
           "Wine has no ETW: etwatch polls and sees only what runs in Wine",
           "on Linux use the etwatch for Linux, which sees everything");
}

static bool in_group(WELL_KNOWN_SID_TYPE group)
{
    BYTE sid[SECURITY_MAX_SID_SIZE];
    DWORD size = sizeof sid;
    BOOL member = FALSE;
    return CreateWellKnownSid(group, NULL, sid, &size) &&
           CheckTokenMembership(NULL, sid, &member) && member;
}

static void probe_groups(struct probe *p)
{
    bool admin = in_group(WinBuiltinAdministratorsSid);
    bool logs = in_group(WinBuiltinPerfLoggingUsersSid);
    found(p, "%s", admin ? "yes" : "no");
    report(p, admin ? ETWATCH_CHECK_OK : ETWATCH_CHECK_WARN, "admin",
           "running as administrator (elevated)",
           logs ? "figures of other users' processes may be null" : POLLS_INSTEAD,
           "add --elevate, or start the terminal with \"Run as administrator\"");
    found(p, "%s", logs ? "yes" : admin ? "no; not needed as administrator" : "no");
    report(p, logs || admin ? ETWATCH_CHECK_OK : ETWATCH_CHECK_FAIL, "perf_log_users",
           "member of Performance Log Users", POLLS_INSTEAD,
           "net localgroup \"Performance Log Users\" \"%USERDOMAIN%\\%USERNAME%\" /add as "
           "administrator, then sign in again");
}

/* 0: not in the token, 1: in the token but disabled, 2: enabled. */
static int privilege_state(HANDLE token, const wchar_t *name)
{
    LUID wanted;
    DWORD size = 0;
    int state = 0;
    (void)GetTokenInformation(token, TokenPrivileges, NULL, 0, &size);
    TOKEN_PRIVILEGES *all = ew_calloc(1, size > 0 ? size : 1);
    if (all && LookupPrivilegeValueW(NULL, name, &wanted) &&
        GetTokenInformation(token, TokenPrivileges, all, size, &size)) {
        for (DWORD i = 0; i < all->PrivilegeCount; i++) {
            const LUID_AND_ATTRIBUTES *one = &all->Privileges[i];
            if (one->Luid.LowPart == wanted.LowPart && one->Luid.HighPart == wanted.HighPart)
                state = (one->Attributes & SE_PRIVILEGE_ENABLED) != 0 ? 2 : 1;
        }
    }
    ew_free(all);
    return state;
}

static void probe_privileges(struct probe *p)
{
    static const char *const states[] = {"no", "yes", "yes, enabled"};
    HANDLE token;
    if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token))
        return;
    int profile = privilege_state(token, L"SeSystemProfilePrivilege");
    int debug = privilege_state(token, L"SeDebugPrivilege");
    (void)CloseHandle(token);
    found(p, "%s", states[profile]);
    report(p, profile > 0 ? ETWATCH_CHECK_OK : ETWATCH_CHECK_FAIL, "se_system_profile",
           "the right to record switches and CPU samples", POLLS_INSTEAD,
           "run as administrator, or give the user \"Profile system performance\" in secpol.msc");
    found(p, "%s", states[debug]);
    report(p, debug > 0 ? ETWATCH_CHECK_OK : ETWATCH_CHECK_WARN, "se_debug",
           "the right to open every process",
           "last figures and exit codes of other users' processes are null",
           "run as administrator");
}

int etwatch_doctor(const char *proc_root,
                   void (*on_check)(void *ctx, const struct etwatch_check *check), void *ctx)
{
    struct probe p = {.on_check = on_check, .ctx = ctx};
    struct ew_windows_version version;
    if (on_check == NULL || proc_root != NULL)
        return ETWATCH_EINVAL;
    ew_windows_version(&version);
    probe_version(&p, &version);
    probe_wine(&p, &version);
    probe_groups(&p);
    probe_privileges(&p);
    return 0;
}
