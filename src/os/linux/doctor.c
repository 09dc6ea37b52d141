/* SPDX-License-Identifier: MIT */
/*
 * What this system offers and what etwatch may use of it. Each probe examines one thing and reports
 * what it found, what its absence costs the user, and the exact command that fixes it.
 *
 * All data is read from files below two roots, so that recorded trees of other systems can be
 * examined. The only test on the live kernel creates one small BPF map, because no file shows
 * whether a container's seccomp filter blocks the bpf() system call.
 */
#include "os/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"

#define POLLS_INSTEAD "no eBPF: etwatch polls, misses short processes and costs more"
#define OLDER(p, x, y) \
    ((p)->major != 0 && ((p)->major < (x) || ((p)->major == (x) && (p)->minor < (y))))

enum { TEXT_SIZE = 65536, FOUND_SIZE = 160, FIX_SIZE = 256 };

enum {
    DAC_OVERRIDE = 1,
    DAC_READ_SEARCH = 2,
    SYS_PTRACE = 19,
    SYS_ADMIN = 21,
    SYS_RESOURCE = 24,
    PERFMON = 38,
    BPF = 39,
};

/* What etwatch can use, in the order of the setcap line. */
static const struct {
    unsigned number;
    const char *name, *container; /* of setcap; of docker run --cap-add */
} capabilities[] = {
    {BPF, "cap_bpf", "BPF"},
    {PERFMON, "cap_perfmon", "PERFMON"},
    {SYS_ADMIN, "cap_sys_admin", "SYS_ADMIN"},
    {SYS_RESOURCE, "cap_sys_resource", "SYS_RESOURCE"},
    {SYS_PTRACE, "cap_sys_ptrace", "SYS_PTRACE"},
    {DAC_READ_SEARCH, "cap_dac_read_search", "DAC_READ_SEARCH"},
};

struct probe {
    const struct ew_doctor_config *config;
    char text[TEXT_SIZE]; /* of the file read last */
    size_t text_size;
    char found[FOUND_SIZE];
    unsigned major, minor; /* of the kernel; 0.0: unknown */
    uint64_t caps, bounds; /* effective ones, and those that a program file can grant */
    uint32_t uid;          /* effective; UINT32_MAX: unknown */
    bool caps_known;
    bool memlock_low, meter_closed;
    /* What eBPF needs here, and what else is missing. Together with what the program has they make
     * the one setcap line: setcap replaces the capabilities of a file. */
    uint64_t required, optional;
    char fix[FIX_SIZE]; /* made last */
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
    p->config->on_check(p->config->ctx, &check);
}

static void EW_PRINTF(2, 3) found(struct probe *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(p->found, sizeof p->found, format, args);
    va_end(args);
}

/* Reads the start of a file into p->text; 0 or errno. */
static int read_file(struct probe *p, const char *root, const char *path)
{
    char full[4096];
    int len = snprintf(full, sizeof full, "%s/%s", root, path);
    p->text_size = 0;
    if (len < 0 || (size_t)len >= sizeof full)
        return ENAMETOOLONG;
    int fd = open(full, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return errno;
    ssize_t got = 0;
    do {
        got = read(fd, p->text + p->text_size, sizeof p->text - p->text_size);
        if (got > 0)
            p->text_size += (size_t)got;
    } while (got > 0 || (got < 0 && errno == EINTR));
    int failed = got < 0 ? errno : 0;
    (void)close(fd);
    return failed;
}

static void first_line(struct probe *p, char *buffer, size_t size)
{
    struct ew_bytes bytes;
    struct ew_span line = {"", 0};
    ew_bytes_init(&bytes, p->text, p->text_size);
    (void)ew_bytes_line(&bytes, &line);
    (void)ew_span_copy(line, buffer, size);
}

/* 6.1.0-18-amd64 */
static void probe_kernel(struct probe *p)
{
    struct ew_bytes bytes;
    char release[96];
    if (read_file(p, p->config->proc_root, "sys/kernel/osrelease") == 0) {
        ew_bytes_init(&bytes, p->text, p->text_size);
        uint64_t major = ew_bytes_dec_u64(&bytes);
        ew_bytes_expect(&bytes, ".");
        uint64_t minor = ew_bytes_dec_u64(&bytes);
        if (ew_bytes_ok(&bytes) && major < 1000 && minor < 1000) {
            p->major = (unsigned)major;
            p->minor = (unsigned)minor;
        }
    }
    first_line(p, release, sizeof release);
    found(p, "%s", p->major == 0 ? "unknown" : release);
    bool new_enough = p->major != 0 && !OLDER(p, 5, 15);
    report(p, new_enough ? ETWATCH_CHECK_OK : ETWATCH_CHECK_WARN, "kernel", "kernel 5.15 or newer",
           "eBPF programs are tested from 5.15 on; older kernels may refuse them",
           "use a kernel of 5.15 or newer, or --source poll");
}

static void probe_btf(struct probe *p)
{
    int error = read_file(p, p->config->sys_root, "kernel/btf/vmlinux");
    if (error == 0)
        found(p, "%s/kernel/btf/vmlinux", p->config->sys_root);
    else
        found(p, "%s", error == ENOENT ? "the kernel has none" : strerror(error));
    report(
        p, error == 0 ? ETWATCH_CHECK_OK : ETWATCH_CHECK_FAIL, "btf",
        "kernel type information (BTF)", POLLS_INSTEAD,
        "use a kernel built with CONFIG_DEBUG_INFO_BTF=y (Debian 12, Ubuntu 22.04 and newer are)");
}

/* ------------------------------------------------------------------ capabilities */

static uint64_t bit(unsigned capability)
{
    return (uint64_t)1 << capability;
}

static bool has(const struct probe *p, unsigned capability)
{
    return (p->caps & bit(capability)) != 0;
}

/*
 * Uid:	1000	1000	1000	1000
 * CapEff:	000001ffffffffff
 */
static void read_caps(struct probe *p)
{
    struct ew_bytes bytes;
    struct ew_span line;
    p->bounds = UINT64_MAX;
    p->uid = UINT32_MAX;
    if (read_file(p, p->config->proc_root, "self/status") != 0)
        return;
    ew_bytes_init(&bytes, p->text, p->text_size);
    while (ew_bytes_line(&bytes, &line)) {
        struct ew_bytes value;
        ew_bytes_init(&value, line.text, line.len);
        bool uid = ew_bytes_accept(&value, "Uid:");
        bool effective = !uid && ew_bytes_accept(&value, "CapEff:");
        if (!uid && !effective && !ew_bytes_accept(&value, "CapBnd:"))
            continue;
        ew_bytes_skip_spaces(&value);
        if (uid) {
            (void)ew_bytes_dec_u64(&value);
            ew_bytes_skip_spaces(&value);
        }
        uint64_t number = uid ? ew_bytes_dec_u64(&value) : ew_bytes_hex_u64(&value);
        if (!ew_bytes_ok(&value))
            continue;
        if (uid) {
            p->uid = number <= UINT32_MAX ? (uint32_t)number : UINT32_MAX;
        } else if (effective) {
            p->caps = number;
            p->caps_known = true;
        } else {
            p->bounds = number;
        }
    }
}

/* Max locked memory         8388608              8388608              bytes */
static struct ew_span memlock_limit(struct probe *p)
{
    struct ew_bytes bytes;
    struct ew_span line, limit = {"unknown", 7};
    if (read_file(p, p->config->proc_root, "self/limits") != 0)
        return limit;
    ew_bytes_init(&bytes, p->text, p->text_size);
    while (ew_bytes_line(&bytes, &line)) {
        struct ew_bytes row;
        ew_bytes_init(&row, line.text, line.len);
        if (!ew_bytes_accept(&row, "Max locked memory"))
            continue;
        ew_bytes_skip_spaces(&row);
        limit = ew_bytes_until(&row, ' ');
    }
    return limit;
}

/* The energy counters are readable by their owner alone; decided by the rights that are recorded,
 * not by opening, so that a recorded tree gives the same. */
static bool is_meter_closed(const struct probe *p)
{
    char path[4096];
    struct stat meter;
    int len = snprintf(path, sizeof path, "%s/class/powercap/intel-rapl:0/energy_uj",
                       p->config->sys_root);
    return len > 0 && (size_t)len < sizeof path && stat(path, &meter) == 0 &&
           (meter.st_mode & S_IROTH) == 0 && p->uid != 0 && !has(p, DAC_READ_SEARCH) &&
           !has(p, DAC_OVERRIDE);
}

static void plan_grant(struct probe *p)
{
    read_caps(p);
    p->memlock_low =
        OLDER(p, 5, 11) && !has(p, SYS_RESOURCE) && !ew_span_equals(memlock_limit(p), "unlimited");
    p->meter_closed = is_meter_closed(p);
    /* CAP_BPF and CAP_PERFMON exist from 5.8 on; CAP_SYS_ADMIN includes them. */
    if (OLDER(p, 5, 8) || has(p, SYS_ADMIN))
        p->required = bit(SYS_ADMIN);
    else
        p->required = bit(BPF) | bit(PERFMON);
    if (p->memlock_low && (p->bounds & bit(SYS_RESOURCE)) != 0)
        p->required |= bit(SYS_RESOURCE);
    if (!has(p, SYS_PTRACE))
        p->optional |= bit(SYS_PTRACE);
    if (p->meter_closed)
        p->optional |= bit(DAC_READ_SEARCH);
}

static void add(struct probe *p, const char *before, const char *text)
{
    size_t len = strlen(p->fix);
    (void)snprintf(p->fix + len, sizeof p->fix - len, "%s%s", before, text);
}

/* A capability that the bounding set lacks keeps a program file with it from starting at all: it is
 * never part of the line. The limits of a container set these bounds. */
static const char *setcap_line(struct probe *p, const char *head, uint64_t wanted)
{
    uint64_t used = 0, missing = wanted & ~p->bounds;
    for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++)
        used |= bit(capabilities[i].number);
    /* Root has its capabilities without the file. */
    uint64_t kept = p->uid == 0 ? 0 : p->caps & used;
    p->fix[0] = '\0';
    add(p, head, missing != 0 ? "the container does not grant it: docker run" : "sudo setcap ");
    const char *comma = "";
    for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++) {
        if (missing != 0 && (missing & bit(capabilities[i].number)) != 0)
            add(p, " --cap-add ", capabilities[i].container);
        if (missing == 0 && ((wanted | kept) & bit(capabilities[i].number)) != 0) {
            add(p, comma, capabilities[i].name);
            comma = ",";
        }
    }
    if (missing == 0)
        add(p, "", "+ep $(command -v etwatch)");
    return p->fix;
}

/* For everything that eBPF needs. */
static const char *required_fix(struct probe *p)
{
    (void)setcap_line(p, "", p->required);
    if ((p->required & ~p->bounds) == 0)
        add(p, ", or run as root", "");
    return p->fix;
}

/* There is never a second setcap line, which would take back the first. */
static const char *optional_fix(struct probe *p, size_t index)
{
    const uint64_t wanted = bit(capabilities[index].number);
    if ((wanted & ~p->bounds) != 0)
        return setcap_line(p, "", wanted);
    if ((p->required & ~p->caps) == 0)
        return setcap_line(p, "", p->required | (p->optional & p->bounds));
    p->fix[0] = '\0';
    add(p, "if you need it: add it to the list of setcap: ", capabilities[index].name);
    return p->fix;
}

static void probe_caps(struct probe *p)
{
    static const struct {
        unsigned number;
        bool admin_does; /* CAP_SYS_ADMIN includes it */
        uint32_t state;
        const char *id, *what, *cost;
    } rows[] = {
        {BPF, true, ETWATCH_CHECK_FAIL, "cap_bpf", "the right to load eBPF programs",
         POLLS_INSTEAD},
        {PERFMON, true, ETWATCH_CHECK_FAIL, "cap_perfmon", "the right to trace the kernel",
         POLLS_INSTEAD},
        {SYS_ADMIN, false, ETWATCH_CHECK_WARN, "cap_sys_admin",
         "the right to measure our cost in the "
         "kernel",
         "self_kernel_percent is null and the budget counts user space only"},
        {SYS_PTRACE, false, ETWATCH_CHECK_WARN, "cap_sys_ptrace", "the right to read all of /proc",
         "when polling, I/O and open descriptors of other users' processes are null"},
        {DAC_READ_SEARCH, false, ETWATCH_CHECK_WARN, "cap_dac_read_search",
         "the right to read the energy counters", "energy_uj is null (--energy)"},
    };
    plan_grant(p);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool have = has(p, rows[i].number);
        bool through_admin = !have && rows[i].admin_does && has(p, SYS_ADMIN);
        if (rows[i].number == DAC_READ_SEARCH && !p->meter_closed)
            continue; /* no such counters, or they can be read */
        found(p, "%s",
              !p->caps_known  ? "unknown"
              : have          ? "yes"
              : through_admin ? "yes, as part of CAP_SYS_ADMIN"
                              : "no");
        const char *fix = rows[i].admin_does ? required_fix(p)
                          : rows[i].number == SYS_ADMIN
                              ? "run as root, or: sudo sysctl kernel.bpf_stats_enabled=1"
                              : optional_fix(p, rows[i].number == SYS_PTRACE ? 4 : 5);
        report(p, have || through_admin ? (uint32_t)ETWATCH_CHECK_OK : rows[i].state, rows[i].id,
               rows[i].what, rows[i].cost, fix);
    }
}

/* "[none] integrity confidentiality": the one in brackets is effective. */
static void probe_lockdown(struct probe *p)
{
    struct ew_bytes bytes;
    struct ew_span mode = {"none", 4};
    if (read_file(p, p->config->sys_root, "kernel/security/lockdown") == 0) {
        ew_bytes_init(&bytes, p->text, p->text_size);
        (void)ew_bytes_until(&bytes, '[');
        struct ew_span named = ew_bytes_until(&bytes, ']');
        if (ew_bytes_ok(&bytes))
            mode = named;
    }
    bool secret = ew_span_equals(mode, "confidentiality");
    found(p, "%.*s", (int)mode.len, mode.text);
    report(
        p, secret ? ETWATCH_CHECK_FAIL : ETWATCH_CHECK_OK, "lockdown",
        "kernel memory may be read (lockdown)", POLLS_INSTEAD,
        "boot with lockdown=integrity instead of lockdown=confidentiality, or use --source poll");
}

static int create_map(void)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.map_type = BPF_MAP_TYPE_ARRAY;
    attr.key_size = 4;
    attr.value_size = 8;
    attr.max_entries = 1;
    long fd = syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr);
    if (fd < 0)
        return errno;
    (void)close((int)fd);
    return 0;
}

static void probe_bpf(struct probe *p)
{
    if (p->config->try_bpf == NULL)
        return;
    int error = p->config->try_bpf();
    bool refused = error == EPERM && (has(p, BPF) || has(p, SYS_ADMIN));
    if (error == 0)
        found(p, "works");
    else if (error == ENOSYS)
        found(p, "the kernel has none");
    else
        found(p, "refused: %s%s", strerror(error),
              refused ? " although the capability is present (seccomp?)" : "");
    report(p, error == 0 ? ETWATCH_CHECK_OK : ETWATCH_CHECK_FAIL, "bpf_syscall",
           "the bpf() system call", POLLS_INSTEAD,
           error == ENOSYS ? "use a kernel built with CONFIG_BPF_SYSCALL=y"
           : refused       ? "allow bpf in the container's seccomp profile (docker run --cap-add "
                             "BPF --cap-add PERFMON --security-opt seccomp=...)"
                           : required_fix(p));
}

static void probe_unprivileged(struct probe *p)
{
    char value[16] = "unknown";
    if (read_file(p, p->config->proc_root, "sys/kernel/unprivileged_bpf_disabled") == 0)
        first_line(p, value, sizeof value);
    /* Irrelevant to etwatch: its programs need the capabilities above in any case. */
    found(p, "kernel.unprivileged_bpf_disabled = %s; not needed", value);
    report(p, ETWATCH_CHECK_OK, "unprivileged_bpf", "eBPF without capabilities", "", "");
}

static void probe_memlock(struct probe *p)
{
    if (!OLDER(p, 5, 11))
        return;
    struct ew_span limit = memlock_limit(p);
    found(p, "%.*s", (int)limit.len, limit.text);
    char fix[FIX_SIZE + 32] = "ulimit -l unlimited";
    if (p->memlock_low && (p->bounds & bit(SYS_RESOURCE)) != 0)
        (void)snprintf(fix, sizeof fix, "ulimit -l unlimited, or: %s", required_fix(p));
    report(p, p->memlock_low ? ETWATCH_CHECK_FAIL : ETWATCH_CHECK_OK, "memlock",
           "memory that eBPF maps may lock (kernels before 5.11)", POLLS_INSTEAD, fix);
}

static void probe_readable(struct probe *p, const char *path, const char *id, const char *what,
                           const char *cost, const char *fix)
{
    int error = read_file(p, p->config->proc_root, path);
    found(p, "%s", error == 0 ? "yes" : strerror(error));
    report(p, error == 0 ? ETWATCH_CHECK_OK : ETWATCH_CHECK_WARN, id, what, cost, fix);
}

/*
 * 22 28 0:20 / /proc rw,nosuid shared:12 - proc proc rw,hidepid=2
 * The type of the file system follows " - ", its options are the last field.
 */
static bool find_mount(struct probe *p, const char *type, struct ew_span *ret_line)
{
    struct ew_bytes bytes;
    struct ew_span line;
    char marker[32];
    (void)snprintf(marker, sizeof marker, " - %s ", type);
    if (read_file(p, p->config->proc_root, "self/mountinfo") != 0)
        return false;
    ew_bytes_init(&bytes, p->text, p->text_size);
    while (ew_bytes_line(&bytes, &line)) {
        if (memmem(line.text, line.len, marker, strlen(marker)) != NULL) {
            *ret_line = line;
            return true;
        }
    }
    return false;
}

static void probe_hidepid(struct probe *p)
{
    struct ew_span line;
    const char *option = NULL;
    char value[16] = "";
    if (find_mount(p, "proc", &line))
        option = memmem(line.text, line.len, "hidepid=", 8);
    if (option != NULL) {
        struct ew_span rest = {option + 8, (size_t)(line.text + line.len - option) - 8};
        for (size_t i = 0; i < rest.len; i++)
            if (rest.text[i] == ',')
                rest.len = i;
        (void)ew_span_copy(rest, value, sizeof value);
    }
    bool hides = value[0] != '\0' && strcmp(value, "0") != 0 && strcmp(value, "off") != 0;
    found(p, "%s%s", hides ? "hidepid=" : "all are visible", hides ? value : "");
    bool seen_anyway = hides && has(p, SYS_PTRACE);
    report(p, hides && !seen_anyway ? ETWATCH_CHECK_WARN : ETWATCH_CHECK_OK, "hidepid",
           "other users' processes in /proc", "when polling, only your own processes are seen",
           "sudo mount -o remount,hidepid=0 /proc, or the capability cap_sys_ptrace");
}

static void probe_cgroup(struct probe *p)
{
    struct ew_span line;
    bool there = find_mount(p, "cgroup2", &line);
    found(p, "%s", there ? "mounted" : "not mounted");
    report(p, there ? ETWATCH_CHECK_OK : ETWATCH_CHECK_WARN, "cgroup2", "cgroup v2",
           "--cgroup finds nothing and the cgroup of a process may be null",
           "boot with systemd.unified_cgroup_hierarchy=1");
}

static void probe_poll(struct probe *p)
{
    int error = read_file(p, p->config->proc_root, "self/stat");
    found(p, "%s", error == 0 ? p->config->proc_root : strerror(error));
    report(p, error == 0 ? ETWATCH_CHECK_OK : ETWATCH_CHECK_FAIL, "proc", "/proc can be read",
           "nothing can be watched by polling", "mount -t proc proc /proc");
}

int ew_doctor_probe(const struct ew_doctor_config *config)
{
    struct probe p;
    memset(&p, 0, sizeof p);
    p.config = config;
    probe_kernel(&p);
    probe_btf(&p);
    probe_caps(&p);
    probe_lockdown(&p);
    probe_bpf(&p);
    probe_unprivileged(&p);
    probe_memlock(&p);
    probe_poll(&p);
    probe_readable(
        &p, "self/schedstat", "schedstat", "run-queue wait when polling",
        "when polling, cpu_ns has the resolution of clock ticks and runq_wait_ns is null",
        "use a kernel built with CONFIG_SCHED_INFO=y");
    probe_readable(&p, "self/io", "task_io", "I/O accounting", "io_* and disk_* are null",
                   "use a kernel built with CONFIG_TASK_IO_ACCOUNTING=y");
    probe_hidepid(&p);
    probe_cgroup(&p);
    return 0;
}

int etwatch_doctor(const char *proc_root,
                   void (*on_check)(void *ctx, const struct etwatch_check *check), void *ctx)
{
    char sys_root[4096] = "/sys";
    struct ew_doctor_config config = {
        .proc_root = proc_root == NULL ? "/proc" : proc_root,
        .sys_root = sys_root,
        .on_check = on_check,
        .ctx = ctx,
    };
    if (on_check == NULL)
        return ETWATCH_EINVAL;
    /* A recorded tree has its sys next to its proc; the bpf() test does not apply to it. */
    size_t len = strlen(config.proc_root);
    bool live = strcmp(config.proc_root, "/proc") == 0;
    if (live)
        config.try_bpf = create_map;
    else if (len > 5 && len < sizeof sys_root && strcmp(config.proc_root + len - 5, "/proc") == 0)
        (void)snprintf(sys_root, sizeof sys_root, "%.*s/sys", (int)(len - 5), config.proc_root);
    return ew_doctor_probe(&config);
}
