/* SPDX-License-Identifier: MIT */
/*
 * Command lines. Windows keeps one text; arguments end where blanks stand outside of quotes, and
 * are handed out ending in NUL, because masking secrets needs to know where one ends.
 */
#include <windows.h>

#include <winternl.h>

#include "base/alloc.h"
#include "os/os.h"
#include "os/windows/text.h"

/* ProcessCommandLineInformation, since Windows 8.1; not in the headers. */
enum { COMMAND_LINE_CLASS = 60, TEXT_BYTES_MAX = 68 * 1024 };

static size_t part(char *text, size_t len)
{
    bool quoted = false;
    for (size_t i = 0; i < len; i++) {
        quoted = quoted != (text[i] == '"');
        if (text[i] == ' ' && !quoted)
            text[i] = '\0';
    }
    return len;
}

bool ew_os_cmdline(const char *proc_root, uint32_t pid, char *buffer, size_t size, size_t *ret_len)
{
    (void)proc_root;
    HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid);
    /* The text follows its own descriptor in the same block. */
    UNICODE_STRING *text = process ? ew_calloc(1, TEXT_BYTES_MAX) : NULL;
    bool read = text && size > 0 &&
                NtQueryInformationProcess(process, (PROCESSINFOCLASS)COMMAND_LINE_CLASS, text,
                                          TEXT_BYTES_MAX, NULL) >= 0 &&
                text->Buffer != NULL;
    if (read) {
        size_t len = ew_utf8_from_wide(text->Buffer, text->Length / sizeof(wchar_t), buffer, size);
        /* The end of the last argument counts too. */
        *ret_len = part(buffer, len) + (len > 0 ? 1 : 0);
    }
    ew_free(text);
    if (process)
        (void)CloseHandle(process);
    return read;
}
