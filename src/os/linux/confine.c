/* SPDX-License-Identifier: MIT */
/*
 * Filters of system calls. A call that is not listed here fails with EPERM instead of ending the
 * process: a C library that uses a newer call then falls back, and the call is not executed either
 * way. Calls of another architecture end the process.
 *
 * Tables instead of libseccomp, which would be a dependency for two lists. Arguments are compared
 * by their low 32 bits, all that matters for flags; so architectures are listed, and must be
 * little-endian.
 */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#endif

#if defined(NATIVE) && EW_CONFINE

/* ------------------------------------------------------------------- what is allowed */

enum test {
    ALWAYS,
    NO_BITS,  /* the argument has none of these bits */
    ANY_BITS, /* it has one of them */
    EQUALS,   /* it is this value; several rows of one call add up */
};

struct rule {
    int number;
    enum test test;
    uint32_t arg, value;
};

/* Reading and writing what is open, memory, threads, time. */
static const struct rule common[] = {
    {SYS_read, ALWAYS, 0, 0},
    {SYS_readv, ALWAYS, 0, 0},
    {SYS_pread64, ALWAYS, 0, 0},
    {SYS_write, ALWAYS, 0, 0},
    {SYS_writev, ALWAYS, 0, 0},
    {SYS_lseek, ALWAYS, 0, 0},
    {SYS_ftruncate, ALWAYS, 0, 0},
    {SYS_close, ALWAYS, 0, 0},
    {SYS_newfstatat, EQUALS, 3, AT_EMPTY_PATH},
    {SYS_fstat, ALWAYS, 0, 0},
    {SYS_ppoll, ALWAYS, 0, 0},
    {SYS_eventfd2, ALWAYS, 0, 0},
    {SYS_recvmsg, ALWAYS, 0, 0}, /* from the helper that creates files */
    {SYS_wait4, ALWAYS, 0, 0},
    {SYS_ioctl, EQUALS, 1, TCGETS},
    {SYS_ioctl, EQUALS, 1, TIOCGWINSZ},
    {SYS_fcntl, EQUALS, 1, F_GETFL},
    {SYS_fcntl, EQUALS, 1, F_GETFD},
    {SYS_brk, ALWAYS, 0, 0},
    {SYS_munmap, ALWAYS, 0, 0},
    {SYS_mremap, ALWAYS, 0, 0},
    {SYS_madvise, ALWAYS, 0, 0},
    {SYS_mprotect, NO_BITS, 2, PROT_EXEC},
    {SYS_futex, ALWAYS, 0, 0},
    {SYS_clone, ANY_BITS, 0, CLONE_THREAD},
    {SYS_set_robust_list, ALWAYS, 0, 0},
    {SYS_rseq, ALWAYS, 0, 0},
    {SYS_gettid, ALWAYS, 0, 0},
    {SYS_getpid, ALWAYS, 0, 0},
    {SYS_sched_yield, ALWAYS, 0, 0},
    {SYS_sched_getaffinity, ALWAYS, 0, 0},
    {SYS_rt_sigaction, ALWAYS, 0, 0},
    {SYS_rt_sigprocmask, ALWAYS, 0, 0},
    {SYS_rt_sigreturn, ALWAYS, 0, 0},
    {SYS_sigaltstack, ALWAYS, 0, 0},
    {SYS_restart_syscall, ALWAYS, 0, 0},
    {SYS_clock_gettime, ALWAYS, 0, 0},
    {SYS_clock_getres, ALWAYS, 0, 0},
    {SYS_clock_nanosleep, ALWAYS, 0, 0},
    {SYS_gettimeofday, ALWAYS, 0, 0},
    {SYS_getrusage, ALWAYS, 0, 0},
    {SYS_getrandom, ALWAYS, 0, 0},
    {SYS_sysinfo, ALWAYS, 0, 0},
    {SYS_uname, ALWAYS, 0, 0},
    {SYS_exit, ALWAYS, 0, 0},
    {SYS_exit_group, ALWAYS, 0, 0},
#ifdef SYS_poll /* calls that newer architectures lack */
    {SYS_poll, ALWAYS, 0, 0},
    {SYS_time, ALWAYS, 0, 0},
#endif
};

static const struct rule reader[] = {
    {SYS_mmap, NO_BITS, 2, PROT_EXEC},
};

/*
 * Live: reading files of /proc and /sys, the maps and programs that are already loaded, signals to
 * the command of run, the terminal. The name of a user may come from a module that the C library
 * loads and that talks to a local service (sssd, systemd): files may be mapped as executable, but
 * not memory that can be written, and local sockets may be connected.
 */
#define WRITING (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND)
#define NOT_LOCAL ~(uint32_t)AF_UNIX
enum {
    BPF_LOOKUP = 1,
    BPF_UPDATE = 2,
    BPF_DELETE = 3,
    BPF_NEXT_KEY = 4,
    BPF_RUN = 10,
    BPF_INFO = 15,
    BPF_LOOKUP_BATCH = 24,
    BPF_ITER_NEW = 33, /* lists the tasks again after a loss */
};
static const struct rule live[] = {
    {SYS_mmap, NO_BITS, 2, PROT_EXEC},
    {SYS_mmap, NO_BITS, 2, PROT_WRITE},
    {SYS_newfstatat, ALWAYS, 0, 0},
    {SYS_openat, NO_BITS, 2, WRITING},
    {SYS_getdents64, ALWAYS, 0, 0},
    {SYS_readlinkat, ALWAYS, 0, 0},
    {SYS_faccessat, ALWAYS, 0, 0},
    {SYS_statfs, ALWAYS, 0, 0},
    {SYS_fstatfs, ALWAYS, 0, 0},
    {SYS_statx, ALWAYS, 0, 0},
    {SYS_bpf, EQUALS, 0, BPF_LOOKUP},
    {SYS_bpf, EQUALS, 0, BPF_UPDATE},
    {SYS_bpf, EQUALS, 0, BPF_DELETE},
    {SYS_bpf, EQUALS, 0, BPF_NEXT_KEY},
    {SYS_bpf, EQUALS, 0, BPF_RUN},
    {SYS_bpf, EQUALS, 0, BPF_INFO},
    {SYS_bpf, EQUALS, 0, BPF_LOOKUP_BATCH},
    {SYS_bpf, EQUALS, 0, BPF_ITER_NEW},
    {SYS_ioprio_get, ALWAYS, 0, 0},
    {SYS_getpriority, ALWAYS, 0, 0},
    {SYS_sched_getscheduler, ALWAYS, 0, 0},
    {SYS_sched_getattr, ALWAYS, 0, 0},
    {SYS_epoll_pwait, ALWAYS, 0, 0},
    {SYS_waitid, ALWAYS, 0, 0},
    {SYS_kill, ALWAYS, 0, 0},
    {SYS_tgkill, ALWAYS, 0, 0},
    {SYS_pidfd_open, ALWAYS, 0, 0}, /* top: end a process, change its priority */
    {SYS_pidfd_send_signal, ALWAYS, 0, 0},
    {SYS_setpriority, ALWAYS, 0, 0},
    {SYS_ioctl, EQUALS, 1, TCSETS},
    {SYS_ioctl, EQUALS, 1, TCSETSW},
    {SYS_ioctl, EQUALS, 1, TCSETSF},
    {SYS_ioctl, EQUALS, 1, FIONREAD},
    {SYS_fcntl, EQUALS, 1, F_SETFD},
    {SYS_fcntl, EQUALS, 1, F_SETFL},
    {SYS_fcntl, EQUALS, 1, F_DUPFD_CLOEXEC},
    {SYS_fcntl, EQUALS, 1, F_GET_SEALS}, /* of the rings of spans */
    {SYS_socket, NO_BITS, 0, NOT_LOCAL},
    {SYS_connect, ALWAYS, 0, 0},
    {SYS_sendto, ALWAYS, 0, 0},
    {SYS_sendmsg, ALWAYS, 0, 0},
    {SYS_recvfrom, ALWAYS, 0, 0},
    {SYS_getsockopt, ALWAYS, 0, 0},
    {SYS_setsockopt, ALWAYS, 0, 0},
    {SYS_getpeername, ALWAYS, 0, 0},
    {SYS_getsockname, ALWAYS, 0, 0},
    {SYS_shutdown, ALWAYS, 0, 0},
    {SYS_prlimit64, EQUALS, 2, 0}, /* only reads a limit */
    {SYS_getppid, ALWAYS, 0, 0},
    {SYS_getuid, ALWAYS, 0, 0},
    {SYS_geteuid, ALWAYS, 0, 0},
    {SYS_getgid, ALWAYS, 0, 0},
    {SYS_getegid, ALWAYS, 0, 0},
    {SYS_capget, ALWAYS, 0, 0},
#ifdef SYS_poll
    {SYS_open, NO_BITS, 1, WRITING},
    {SYS_stat, ALWAYS, 0, 0},
    {SYS_lstat, ALWAYS, 0, 0},
    {SYS_access, ALWAYS, 0, 0},
    {SYS_readlink, ALWAYS, 0, 0},
    {SYS_epoll_wait, ALWAYS, 0, 0},
#endif
};

/* ------------------------------------------------------------------------ the program */

enum { INSTRUCTIONS_MAX = 400 };

struct program {
    struct sock_filter code[INSTRUCTIONS_MAX];
    unsigned short count;
};

static void add(struct program *program, unsigned code, uint32_t value, unsigned if_true,
                unsigned if_false)
{
    if (program->count < INSTRUCTIONS_MAX)
        program->code[program->count++] =
            (struct sock_filter){(uint16_t)code, (uint8_t)if_true, (uint8_t)if_false, value};
}

static void add_load(struct program *program, size_t offset)
{
    add(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void add_result(struct program *program, uint32_t result)
{
    add(program, BPF_RET | BPF_K, result, 0, 0);
}

/* The number is in the accumulator before and after. */
static void add_rule(struct program *program, const struct rule *rule)
{
    if (rule->test == ALWAYS) {
        add(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)rule->number, 0, 1);
        add_result(program, SECCOMP_RET_ALLOW);
        return;
    }
    unsigned jump = rule->test == EQUALS ? BPF_JEQ : BPF_JSET;
    bool wanted = rule->test != NO_BITS;
    add(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)rule->number, 0, 4);
    add_load(program, offsetof(struct seccomp_data, args) + rule->arg * sizeof(uint64_t));
    add(program, BPF_JMP | jump | BPF_K, rule->value, wanted ? 0 : 1, wanted ? 1 : 0);
    add_result(program, SECCOMP_RET_ALLOW);
    add_load(program, offsetof(struct seccomp_data, nr));
}

static void add_rules(struct program *program, const struct rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add_rule(program, &rules[i]);
}

static bool install(const struct rule *rules, size_t count)
{
    struct program program = {.count = 0};
    add_load(&program, offsetof(struct seccomp_data, arch));
    add(&program, BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0);
    add_result(&program, SECCOMP_RET_KILL_PROCESS);
    add_load(&program, offsetof(struct seccomp_data, nr));
    add_rules(&program, common, sizeof common / sizeof common[0]);
    add_rules(&program, rules, count);
    /* Its flags are in memory and cannot be judged; C libraries fall back to clone. */
    add(&program, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
    add_result(&program, SECCOMP_RET_ERRNO | ENOSYS);
    add_result(&program, SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog code = {.len = program.count, .filter = program.code};
    return program.count < INSTRUCTIONS_MAX && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &code, 0, 0) == 0;
}

/* io_uring would do what is refused here. */
static const int refused[] = {
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_bpf,
    SYS_process_vm_writev,
    SYS_perf_event_open,
    SYS_init_module,
    SYS_finit_module,
    SYS_io_uring_setup,
    SYS_mount,
    SYS_unshare,
    SYS_setns,
    SYS_keyctl,
    SYS_pidfd_getfd,
};
static const int outgoing[] = {SYS_socket, SYS_connect, SYS_socketpair};

enum { OTHER_ABI = 0x40000000 }; /* x32: the same calls under other numbers */

static void add_refused(struct program *program, const int *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        add(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)numbers[i], 0, 1);
        add_result(program, SECCOMP_RET_ERRNO | EPERM);
    }
}

bool ew_os_confine_server(bool connect)
{
    struct program program = {.count = 0};
    add_load(&program, offsetof(struct seccomp_data, arch));
    add(&program, BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0);
    add_result(&program, SECCOMP_RET_KILL_PROCESS);
    add_load(&program, offsetof(struct seccomp_data, nr));
    add(&program, BPF_JMP | BPF_JGE | BPF_K, OTHER_ABI, 0, 1);
    add_result(&program, SECCOMP_RET_ERRNO | EPERM);
    add_refused(&program, refused, sizeof refused / sizeof refused[0]);
    if (!connect)
        add_refused(&program, outgoing, sizeof outgoing / sizeof outgoing[0]);
    add_result(&program, SECCOMP_RET_ALLOW);
    struct sock_fprog code = {.len = program.count, .filter = program.code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &code, 0, 0) == 0;
}

bool ew_os_confine_live(void)
{
    return install(live, sizeof live / sizeof live[0]);
}

bool ew_os_confine_reader(void)
{
    ew_os_drop_all_rights();
    tzset(); /* reads the zone for ew_os_utc_offset_s: its file cannot be opened later */
    return install(reader, sizeof reader / sizeof reader[0]);
}

#else

bool ew_os_confine_server(bool connect)
{
    (void)connect;
    return false;
}

bool ew_os_confine_live(void)
{
    return false;
}

bool ew_os_confine_reader(void)
{
    ew_os_drop_all_rights();
    return false;
}

#endif
