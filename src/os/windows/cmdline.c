/* SPDX-License-Identifier: MIT */
/*
 * Command lines. Windows stores one string; it is split at spaces outside of quotes into arguments
 * that end in NUL, because masking secrets needs to know where an argument ends.
 */
#include <windows.h>

#include <winternl.h>

#include "base/alloc.h"
#include "os/os.h"
#include "os/windows/text.h"

/* ProcessCommandLineInformation, since Windows 8.1; not in the headers. */
enum { COMMAND_LINE_CLASS = 60, TEXT_BYTES_MAX = 68 * 1024 };

/* Offsets in the memory of a 64-bit process, for Windows before 8.1 and for Wine. */
enum { PEB_PARAMETERS = 0x20, PARAMETERS_COMMAND_LINE = 0x70 };

static bool read_at(HANDLE process, uintptr_t at, void *bytes, size_t size)
{
    SIZE_T got = 0;
    return ReadProcessMemory(process, (const void *)at, bytes, size, &got) && got == size;
}

_Static_assert(TEXT_BYTES_MAX >= sizeof(UNICODE_STRING) + 0xFFFF, "any length fits");

static bool read_memory(uint32_t pid, UNICODE_STRING *text)
{
    PROCESS_BASIC_INFORMATION basic = {0};
    uintptr_t parameters = 0;
    UNICODE_STRING found = {0};
    HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_VM_READ, FALSE, pid);
    bool read = process &&
                NtQueryInformationProcess(process, ProcessBasicInformation, &basic, sizeof basic,
                                          NULL) >= 0 &&
                read_at(process, (uintptr_t)basic.PebBaseAddress + PEB_PARAMETERS, &parameters,
                        sizeof parameters) &&
                read_at(process, parameters + PARAMETERS_COMMAND_LINE, &found, sizeof found) &&
                read_at(process, (uintptr_t)found.Buffer, text + 1, found.Length);
    text->Length = read ? found.Length : 0;
    text->Buffer = read ? (wchar_t *)(text + 1) : NULL;
    if (process)
        (void)CloseHandle(process);
    return read;
}

static size_t split_args(char *text, size_t len)
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
    /* The text follows its descriptor in the same block. */
    UNICODE_STRING *text = process ? ew_calloc(1, TEXT_BYTES_MAX) : NULL;
    bool read = text && size > 0 &&
                ((NtQueryInformationProcess(process, (PROCESSINFOCLASS)COMMAND_LINE_CLASS, text,
                                            TEXT_BYTES_MAX, NULL) >= 0 &&
                  text->Buffer != NULL) ||
                 read_memory(pid, text));
    if (read) {
        size_t len = ew_wide_to_utf8(text->Buffer, text->Length / sizeof(wchar_t), buffer, size);
        /* Includes the terminator of the last argument. */
        *ret_len = split_args(buffer, len) + (len > 0 ? 1 : 0);
    }
    ew_free(text);
    if (process)
        (void)CloseHandle(process);
    return read;
}
