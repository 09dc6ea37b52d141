/* SPDX-License-Identifier: MIT */
/* The parts of the operating system layer that only Windows has. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "base/alloc.h"
#include "os/os.h"
#include "os/windows/text.h"
#include "os/windows/version.h"
#include "source/poll_windows/poll.h"
#include "system.h"
#include "test.h"

#include <etwatch/etwatch.h>

TEST(text_survives_conversion_to_utf16_and_back)
{
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
    char back[32];
    wchar_t *wide = ew_wide_from_utf8(text);
    CHECK(wide != NULL);
    CHECK_EQ_UINT(wcslen(wide), 5);
    CHECK_EQ_UINT(ew_wide_to_utf8(wide, 5, back, sizeof back), sizeof text - 1);
    CHECK_EQ_STR(back, text);
    ew_free(wide);
    CHECK(ew_wide_from_utf8("\xff") == NULL);
}

TEST(a_process_exists_until_it_exits_and_neighbouring_ids_do_not)
{
    uint32_t child = test_start_busy();
    CHECK(ew_os_process_exists("/proc", child));
    CHECK(!ew_os_process_ended("/proc", child));
    CHECK(!ew_os_process_exists("/proc", child + 1));
    test_end_child(child);
    CHECK(ew_os_process_ended("/proc", child));
    CHECK(!ew_os_process_exists("/proc", child));
}

TEST(the_command_line_of_a_process_is_split_into_arguments)
{
    char text[1024];
    size_t len = 0;
    uint32_t child = test_start_busy();
    bool read = ew_os_cmdline("/proc", child, text, sizeof text, &len);
    /* A process that has just been created may not have its command line yet, or only the name of
     * the program. */
    for (int tries = 0; tries < 500 && read && (len == 0 || strlen(text) + 1 >= len); tries++) {
        test_sleep_ms(10);
        read = ew_os_cmdline("/proc", child, text, sizeof text, &len);
    }
    test_end_child(child);
    CHECK(read);
    CHECK(len > 0 && text[len - 1] == '\0');
    CHECK_CONTAINS(text + strlen(text) + 1, "--busy-child");
    CHECK_EQ_UINT(strlen(text) + 1 + strlen("--busy-child") + 1, len);
}

TEST(a_process_has_a_user_with_a_name)
{
    char name[256] = "", again[256] = "";
    uint64_t key = 0, same = 1;
    uint32_t child = test_start_busy();
    CHECK(ew_os_process_user(test_own_pid(), &key, name, sizeof name));
    CHECK(ew_os_process_user(child, &same, again, sizeof again));
    CHECK(ew_os_process_user(child, &same, NULL, 0));
    test_end_child(child);
    CHECK(name[0] != '\0');
    CHECK_EQ_STR(again, name);
    CHECK_EQ_UINT(same, key);
    CHECK(!ew_os_process_user(0xFFFFFFF0, &key, name, sizeof name));
}

TEST(a_file_name_may_have_any_characters)
{
    char folder[320], path[400], bytes[8];
    struct ew_os_file *file = NULL;
    uint64_t size = 0;
    int64_t code = 0;
    test_folder(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/\xc3\xa4\xd0\x96\xe6\xbc\xa2.etl", folder);
    wchar_t *wide = ew_wide_from_utf8(path);
    FILE *out = _wfopen(wide, L"wb");
    CHECK(out != NULL);
    CHECK_EQ_UINT(fwrite("12345", 1, 5, out), 5);
    CHECK_EQ_INT(fclose(out), 0);
    CHECK_EQ_INT(ew_os_file_open(path, &file, &size, &code), 0);
    CHECK_EQ_UINT(size, 5);
    CHECK_EQ_INT(ew_os_file_read(file, 3, bytes, sizeof bytes), 2);
    CHECK_EQ_MEM(bytes, "45", 2);
    CHECK_EQ_INT(ew_os_file_read(file, 100, bytes, sizeof bytes), 0);
    ew_os_file_close(file);
    FILE *in = ew_os_stream_open(path);
    CHECK(in != NULL);
    CHECK_EQ_INT(fgetc(in), '1');
    (void)fclose(in);
    CHECK_EQ_INT(_wremove(wide), 0);
    ew_free(wide);
    CHECK_EQ_INT(ew_os_file_open(path, &file, &size, &code), ETWATCH_EOS);
    CHECK_EQ_INT(code, ENOENT);
    CHECK_EQ_INT(ew_os_file_open(folder, &file, &size, &code), ETWATCH_EOS);
    CHECK_EQ_INT(code, EISDIR);
    test_folder_remove(folder);
}

/* 0: not in the token, 1: switched off, 2: enabled. */
static int privilege_state(const wchar_t *name)
{
    union {
        TOKEN_PRIVILEGES all;
        char room[4096];
    } token_privileges;
    HANDLE token;
    DWORD size = 0;
    LUID wanted;
    int state = 0;
    CHECK(OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token));
    CHECK(LookupPrivilegeValueW(NULL, name, &wanted));
    CHECK(GetTokenInformation(token, TokenPrivileges, &token_privileges, sizeof token_privileges,
                              &size));
    for (DWORD i = 0; i < token_privileges.all.PrivilegeCount; i++) {
        const LUID_AND_ATTRIBUTES *one = &token_privileges.all.Privileges[i];
        if (one->Luid.LowPart == wanted.LowPart)
            state = (one->Attributes & SE_PRIVILEGE_ENABLED) != 0 ? 2 : 1;
    }
    (void)CloseHandle(token);
    return state;
}

static bool has_privilege(const wchar_t *name)
{
    return privilege_state(name) > 0;
}

/* An elevated token has it switched off. */
TEST(processes_are_listed_with_the_right_to_open_those_of_other_users_where_it_is_held)
{
    struct ew_winpoll_system system;
    int before = privilege_state(L"SeDebugPrivilege");
    CHECK_EQ_INT(ew_winpoll_system(&system), 0);
    system.close(system.ctx);
    CHECK_EQ_INT(privilege_state(L"SeDebugPrivilege"), before > 0 ? 2 : 0);
}

TEST(dropped_privileges_do_not_return)
{
    struct ew_windows_version version;
    ew_windows_version(&version);
    CHECK(version.major >= 6);
    if (version.wine != NULL)
        SKIP("Wine only switches privileges off");
    bool debug = has_privilege(L"SeDebugPrivilege");
    ew_os_drop_rights();
    CHECK(!has_privilege(L"SeShutdownPrivilege"));
    CHECK(has_privilege(L"SeChangeNotifyPrivilege"));
    CHECK_EQ_INT(has_privilege(L"SeDebugPrivilege"), debug);
}
