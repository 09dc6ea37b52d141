/* SPDX-License-Identifier: MIT */
/*
 * Owns the perf events that run the programs of page faults. The kernel raises one event when a
 * fault begins and another when it has been handled, as minor or major; with a period of 1 every
 * one of them runs the program. A CPU that is offline has none.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "source/ebpf/ebpf.h"

static int open_event(uint64_t config, uint32_t cpu)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.type = PERF_TYPE_SOFTWARE;
    attr.size = sizeof attr;
    attr.config = config;
    attr.sample_period = 1;
    attr.disabled = 1;
    long fd = syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : (int)fd;
}

static int keep(struct ew_ebpf_faults *faults, int fd)
{
    if (faults->count == faults->size) {
        uint32_t size = faults->size == 0 ? 16 : faults->size * 2;
        int *fds = ew_realloc_array(faults->fds, size, sizeof *fds);
        if (fds == NULL) {
            (void)close(fd);
            return -ENOMEM;
        }
        faults->fds = fds;
        faults->size = size;
    }
    faults->fds[faults->count++] = fd;
    return 0;
}

static int attach_one(struct ew_ebpf_faults *faults, uint64_t config, uint32_t cpu, int program_fd)
{
    int fd = open_event(config, cpu);
    if (fd == -ENODEV)
        return 0;
    if (fd < 0)
        return fd;
    if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program_fd) != 0 ||
        ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) != 0) {
        int error = -errno;
        (void)close(fd);
        return error;
    }
    return keep(faults, fd);
}

int ew_ebpf_faults_attach(struct ew_ebpf_faults *faults, const char *program, int program_fd,
                          uint32_t cpu_count)
{
    bool begin = strcmp(program, "ew_fault_begin") == 0;
    int error = 0;
    for (uint32_t cpu = 0; error == 0 && cpu < cpu_count; cpu++) {
        error =
            attach_one(faults, begin ? PERF_COUNT_SW_PAGE_FAULTS : PERF_COUNT_SW_PAGE_FAULTS_MIN,
                       cpu, program_fd);
        if (error == 0 && !begin)
            error = attach_one(faults, PERF_COUNT_SW_PAGE_FAULTS_MAJ, cpu, program_fd);
    }
    return error;
}

void ew_ebpf_faults_detach(struct ew_ebpf_faults *faults)
{
    for (uint32_t i = 0; i < faults->count; i++)
        (void)close(faults->fds[i]);
    ew_free(faults->fds);
    memset(faults, 0, sizeof *faults);
}
