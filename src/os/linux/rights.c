/* SPDX-License-Identifier: MIT */
/*
 * Least privilege: after the programs are loaded only a few capabilities are needed. Kept are
 * CAP_BPF and CAP_PERFMON to run the program that drains, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH to
 * read /proc of other users' processes, CAP_KILL to forward a signal to a child that changed its
 * user. Those for loading (CAP_SYS_ADMIN, CAP_SYS_RESOURCE) and all others are dropped.
 *
 * Uses the system call directly, because libcap would be a dependency for one call.
 */
#include "os/os.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CAP_PERFMON_NUMBER = 38, CAP_BPF_NUMBER = 39 }; /* headers before 5.8 lack them */

static uint64_t kept_caps(void)
{
    return (uint64_t)1 << CAP_PERFMON_NUMBER | (uint64_t)1 << CAP_BPF_NUMBER |
           (uint64_t)1 << CAP_SYS_PTRACE | (uint64_t)1 << CAP_DAC_READ_SEARCH |
           (uint64_t)1 << CAP_KILL;
}

static void keep_only(uint64_t kept)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0, 0, 0}, {0, 0, 0}};

    /* Programs started from here must not gain privileges by being set-uid. */
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_capget, &header, data) != 0)
        return;
    for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        uint32_t mask = (uint32_t)(kept >> (32 * i));
        data[i].effective &= mask;
        data[i].permitted &= mask;
        data[i].inheritable = 0;
    }
    (void)syscall(SYS_capset, &header, data);
}

void ew_os_drop_rights(void)
{
    keep_only(kept_caps());
}

void ew_os_drop_all_rights(void)
{
    keep_only(0);
}

/* Both calls above concern the calling thread only. */
void ew_os_thread_drop_rights(void)
{
    ew_os_drop_rights();
}
