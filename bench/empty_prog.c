/* SPDX-License-Identifier: MIT */
/*
 * The lower bound of a hook's cost: an eBPF program on sched_switch that returns at once, of the
 * same type (tp_btf) as the one it is compared with. Its two instructions need no compiler, so they
 * are written here.
 *
 * Reads commands from stdin: attach, detach, quit; answers each with "ok". The first line of output
 * is "ready" with the pid and the program's ID.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <sys/syscall.h>

#include "util.h"

static int load(void)
{
    const struct bpf_insn body[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    int type_id = libbpf_find_vmlinux_btf_id("sched_switch", BPF_TRACE_RAW_TP);
    if (type_id < 0)
        die("sched_switch: not in the kernel's BTF: %s", strerror(-type_id));
    /* The system call itself: libbpf 0.5 and 1.x have different functions for it. */
    union bpf_attr attr = {
        .prog_type = BPF_PROG_TYPE_TRACING,
        .insns = (__u64)(uintptr_t)body,
        .insn_cnt = sizeof body / sizeof *body,
        .license = (__u64)(uintptr_t) "GPL",
        .prog_name = "bench_empty",
        .expected_attach_type = BPF_TRACE_RAW_TP,
        .attach_btf_id = (__u32)type_id,
    };
    long fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr);
    if (fd < 0)
        die("loading the empty program: %s", strerror(errno));
    return (int)fd;
}

static uint32_t program_id(int fd)
{
    struct bpf_prog_info info = {0};
    __u32 len = sizeof info;
    if (bpf_obj_get_info_by_fd(fd, &info, &len) != 0)
        die("program info: %s", strerror(errno));
    return info.id;
}

int main(void)
{
    end_with_parent(getppid());
    int fd = load(), link = -1;
    printf("ready %ld %u\n", (long)getpid(), program_id(fd));
    fflush(stdout);
    char line[16];
    while (read_command(line, sizeof line) && strcmp(line, "quit") != 0) {
        if (strcmp(line, "attach") == 0 && link < 0) {
            link = bpf_raw_tracepoint_open(NULL, fd);
            if (link < 0)
                die("attach: %s", strerror(errno));
        } else if (strcmp(line, "detach") == 0 && link >= 0) {
            close(link);
            link = -1;
        } else {
            die("'%s': unknown command", line);
        }
        printf("ok\n");
        fflush(stdout);
    }
    return 0;
}
