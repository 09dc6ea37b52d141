/* SPDX-License-Identifier: MIT */
/*
 * The cost of eBPF programs in the kernel, by the kernel's own statistics: run time and number of
 * runs of every loaded program. Statistics are on while this program lives (BPF_ENABLE_STATS) and
 * off again when it exits for any reason; no sysctl is changed. They add some 60 ns to each run of
 * every program.
 *
 * Each line on stdin is answered by one line of JSON: a list of {id, name, type, runs, ns,
 * instructions}.
 */
#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "util.h"

static bool program_info(uint32_t id, struct bpf_prog_info *ret_info)
{
    int fd = bpf_prog_get_fd_by_id(id);
    if (fd < 0)
        return false; /* unloaded meanwhile */
    __u32 len = sizeof *ret_info;
    memset(ret_info, 0, len);
    int r = bpf_obj_get_info_by_fd(fd, ret_info, &len);
    close(fd);
    return r == 0;
}

static void answer_list(void)
{
    const char *separator = "";
    struct bpf_prog_info info;
    printf("[");
    for (__u32 id = 0; bpf_prog_get_next_id(id, &id) == 0;) {
        if (!program_info(id, &info))
            continue;
        printf("%s{\"id\": %u, \"name\": \"%s\", \"type\": %u, \"runs\": %llu, \"ns\": %llu, "
               "\"instructions\": %u}",
               separator, info.id, info.name, info.type, (unsigned long long)info.run_cnt,
               (unsigned long long)info.run_time_ns, info.xlated_prog_len / 8);
        separator = ", ";
    }
    printf("]\n");
}

int main(void)
{
    end_with_parent(getppid());
    if (bpf_enable_stats(BPF_STATS_RUN_TIME) < 0)
        die("no run time statistics from this kernel: %s", strerror(errno));
    printf("ready %ld\n", (long)getpid());
    fflush(stdout);
    char line[16];
    while (read_command(line, sizeof line)) {
        answer_list();
        fflush(stdout);
    }
    return 0;
}
