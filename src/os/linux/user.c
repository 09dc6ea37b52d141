/* SPDX-License-Identifier: MIT */
/* Names of users. The lookup may use the network (NSS), so callers cache the result. */
#include "os/os.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>

#include "base/alloc.h"

/* Entries with a long comment or home directory need more; beyond this the number is used. */
#define LOOKUP_SIZE_MAX ((size_t)64 * 1024)

static bool look_up(uint32_t uid, char *buffer, size_t size)
{
    struct passwd entry, *found = NULL;
    for (size_t work_size = 1024; work_size <= LOOKUP_SIZE_MAX; work_size *= 4) {
        char *work = ew_calloc(work_size, 1);
        if (!work)
            return false;
        int rc = getpwuid_r((uid_t)uid, &entry, work, work_size, &found);
        bool fits = rc == 0 && found && (size_t)snprintf(buffer, size, "%s", found->pw_name) < size;
        ew_free(work);
        if (rc != ERANGE)
            return fits;
    }
    return false;
}

void ew_os_user_name(uint32_t uid, char *buffer, size_t size)
{
    if (size > 0 && !look_up(uid, buffer, size))
        (void)snprintf(buffer, size, "%lu", (unsigned long)uid);
}

bool ew_os_process_user(uint32_t pid, uint64_t *ret_key, char *buffer, size_t size)
{
    (void)pid;
    (void)ret_key;
    (void)buffer;
    (void)size;
    return false;
}

bool ew_os_sid_user(const char *sid, uint64_t *ret_key, char *buffer, size_t size)
{
    (void)sid;
    (void)ret_key;
    (void)buffer;
    (void)size;
    return false;
}

bool ew_os_is_windows(void)
{
    return false;
}

bool ew_os_has_uids(void)
{
    return true;
}
