/* SPDX-License-Identifier: MIT */
/*
 * Loads the embedded programs, sizes and maps their maps, attaches them.
 *
 * Everything hangs on file descriptors of this process: nothing is pinned, so the kernel undoes all
 * of it when the process dies, however it dies. libbpf's copy of the kernel's type information is
 * the largest thing we ever hold; it goes as soon as the programs are loaded.
 *
 * libbpf is used by hand and not through a generated skeleton: that needs one tool less on the
 * build machine, and the handful of look-ups by name is shorter than what it replaces.
 */
#include "source/ebpf/ebpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "model/name.h"
#include "source/ebpf/ebpf_object.h"
#include "source/poll/slow_gauges.h"

enum {
    LOG_BYTES_MAX = 8 << 20, /* of all CPUs together */
    LOG_ENTRIES_MAX = 4096,
    LOG_ENTRIES_MIN = 256,
    LIFE_BYTES_PER_CPU = 256 << 10,
    LIFE_BYTES_MAX = 8 << 20,
    STREAM_BYTES_PER_CPU = 2 << 20,
    STREAM_BYTES_MAX = 64 << 20,
    EXTRAS_MAX = 32768, /* threads with sums of their own */
};

/* ------------------------------------------------------------------- can it work */

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
    (void)level;
    (void)format;
    (void)args;
    return 0;
}

/*
 * Distributions put newer eBPF into older kernels: the version explains a failure, it never causes
 * one.
 */
static bool kernel_is_old(struct utsname *ret_system)
{
    unsigned major = 0, minor = 0;
    return uname(ret_system) == 0 && sscanf(ret_system->release, "%u.%u", &major, &minor) == 2 &&
           (major < 5 || (major == 5 && minor < 15));
}

static int explain(struct ew_error *reterr, int os_code, const char *what)
{
    struct utsname system;
    if (os_code == EPERM || os_code == EACCES) {
        ew_error_set(reterr, ETWATCH_EPERM, os_code, "eBPF: %s: %s", what, strerror(os_code));
        if (geteuid() == 0)
            ew_error_fix(reterr, "a sandbox refuses it: give the container --cap-add BPF --cap-add "
                                 "PERFMON --cap-add SYS_RESOURCE and a seccomp profile with bpf");
        else
            ew_error_fix(reterr, "run as root, or: sudo setcap cap_bpf,cap_perfmon,"
                                 "cap_sys_resource+ep \"$(command -v etwatch)\"");
        return ETWATCH_EPERM;
    }
    if (os_code == ENOMEM)
        return ew_error_set(reterr, ETWATCH_ENOMEM, os_code, "eBPF: %s: out of memory", what);
    if (os_code == ESRCH) {
        /* What libbpf before 1.0 says of the BTF of kernels from 6.0 on, which has 64-bit enums. */
        ew_error_set(reterr, ETWATCH_ENOTSUP, os_code,
                     "eBPF: the libbpf of this build cannot read this kernel's type information");
        ew_error_fix(reterr, "use a build with libbpf 1.0 or newer, as Debian 12 and Ubuntu 24.04 "
                             "have it; --source poll works anyway");
        return ETWATCH_ENOTSUP;
    }
    if (kernel_is_old(&system)) {
        ew_error_set(reterr, ETWATCH_ENOTSUP, os_code,
                     "eBPF: Linux %.32s is older than 5.15 and does not take the programs",
                     system.release);
        ew_error_fix(reterr, "use Linux 5.15 or newer, or --source poll");
        return ETWATCH_ENOTSUP;
    }
    ew_error_set(reterr, ETWATCH_ENOTSUP, os_code, "eBPF: %s: %s", what, strerror(os_code));
    ew_error_fix(reterr, "etwatch doctor shows what this kernel lacks; --source poll works anyway");
    return ETWATCH_ENOTSUP;
}

/* The kernel knows pids of the first namespace only; in another one they would name strangers. */
static bool in_first_pid_namespace(void)
{
    static const ino_t first_namespace = 0xEFFFFFFC; /* the kernel's PROC_PID_INIT_INO */
    struct stat status;
    return stat("/proc/self/ns/pid", &status) != 0 || status.st_ino == first_namespace;
}

static bool confidentiality_lockdown(void)
{
    char text[128] = "";
    FILE *file = fopen("/sys/kernel/security/lockdown", "re");
    if (file == NULL)
        return false;
    bool read = fgets(text, sizeof text, file) != NULL;
    (void)fclose(file);
    return read && strstr(text, "[confidentiality]") != NULL;
}

static int check_system(struct ew_error *reterr)
{
    if (access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
        ew_error_set(reterr, ETWATCH_ENOTSUP, errno,
                     "eBPF: the kernel has no type information "
                     "(/sys/kernel/btf/vmlinux)");
        ew_error_fix(reterr, "use a kernel with CONFIG_DEBUG_INFO_BTF, or --source poll");
        return ETWATCH_ENOTSUP;
    }
    if (confidentiality_lockdown()) {
        ew_error_set(reterr, ETWATCH_ENOTSUP, EPERM,
                     "eBPF: the kernel is locked down (confidentiality)");
        ew_error_fix(reterr, "boot with lockdown=integrity, or use --source poll");
        return ETWATCH_ENOTSUP;
    }
    if (!in_first_pid_namespace()) {
        ew_error_set(reterr, ETWATCH_ENOTSUP, 0,
                     "eBPF: in a container with process ids of its own");
        ew_error_fix(reterr, "start the container with --pid=host, or use --source poll");
        return ETWATCH_ENOTSUP;
    }
    return 0;
}

/* ---------------------------------------------------------------------- loading */

static bool fill_glob(struct ew_k_config *out, uint32_t index, const char *pattern)
{
    uint32_t at = 0;
    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '*') {
            out->glob_stars[index] |= 1u << at;
            continue;
        }
        if (at == EW_K_NAME_SIZE - 1)
            return false;
        if (*pattern == '?')
            out->glob_any[index] |= 1u << at;
        else
            out->names[index][at] = *pattern;
        at++;
    }
    out->glob_end[index] = 1u << at;
    return true;
}

/* What the programs copy for these metrics, apart from the CPU time. */
static uint32_t wanted_copies(const struct etwatch_metric_set *metrics)
{
    static const struct {
        struct etwatch_metric_set metrics;
        uint32_t want;
    } rows[] = {
        {EW_METRIC_SET(ETWATCH_M_cpu_user_ns, ETWATCH_M_cpu_kernel_ns), EW_K_WANT_MODES},
        {EW_METRIC_SET(ETWATCH_M_switches_voluntary, ETWATCH_M_switches_involuntary),
         EW_K_WANT_SWITCHES},
        {EW_METRIC_SET(ETWATCH_M_runq_wait_ns), EW_K_WANT_RUNQ_WAIT},
        {EW_METRIC_SET(ETWATCH_M_faults_minor, ETWATCH_M_faults_major), EW_K_WANT_FAULTS},
        {EW_METRIC_SET(ETWATCH_M_io_read_bytes, ETWATCH_M_io_write_bytes, ETWATCH_M_io_read_ops,
                       ETWATCH_M_io_write_ops),
         EW_K_WANT_IO},
        {EW_METRIC_SET(ETWATCH_M_disk_read_bytes, ETWATCH_M_disk_write_bytes), EW_K_WANT_DISK},
        {EW_METRIC_SET(ETWATCH_M_threads), EW_K_WANT_THREADS},
        {EW_METRIC_SET(ETWATCH_M_priority, ETWATCH_M_affinity), EW_K_WANT_SCHEDULING},
    };
    uint32_t want = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (ew_metric_set_intersects(metrics, &rows[i].metrics))
            want |= rows[i].want;
    return want;
}

static int fill_config(struct ew_k_config *out, const struct ew_source_config *config,
                       struct ew_error *reterr)
{
    const struct ew_filter *filter = &config->filter;
    memset(out, 0, sizeof *out);
    out->all = filter->all;
    out->kernel_threads = filter->kernel_threads;
    out->excludes = filter->excludes;
    out->want = wanted_copies(&config->metrics);
    if (filter->name_count > EW_K_FILTERS_MAX || filter->uid_count > EW_K_FILTERS_MAX ||
        filter->cgroup_count > EW_K_FILTERS_MAX)
        return ew_error_set(reterr, ETWATCH_ELIMIT, 0,
                            "at most %d names, %d users and %d cgroups can be watched",
                            EW_K_FILTERS_MAX, EW_K_FILTERS_MAX, EW_K_FILTERS_MAX);
    for (uint32_t i = 0; i < filter->name_count; i++) {
        size_t length = strlen(filter->names[i]);
        if (ew_name_is_glob(filter->names[i])) {
            if (!fill_glob(out, i, filter->names[i]))
                return ew_error_set(reterr, ETWATCH_ELIMIT, 0,
                                    "\"%s\" is longer than names are here: %d bytes beside the *",
                                    filter->names[i], EW_K_NAME_SIZE - 1);
            continue;
        }
        /* The kernel keeps 15 bytes of a name: compare as much of ours. */
        if (length > EW_K_NAME_SIZE - 1)
            length = EW_K_NAME_SIZE - 1;
        memcpy(out->names[i], filter->names[i], length);
    }
    for (uint32_t i = 0; i < filter->uid_count; i++)
        out->uids[i] = filter->uids[i];
    for (uint32_t i = 0; i < filter->cgroup_count; i++) {
        int error = ew_ebpf_cgroup_id(filter->cgroups[i], &out->cgroups[i], reterr);
        if (error != 0)
            return error;
    }
    struct etwatch_metric_set not_polled = config->metrics;
    etwatch_metric_set_subtract(&not_polled, &config->polled);
    out->rss_period_ns =
        ew_metrics_period_ns(&not_polled, config->rates, config->rate_count, &ew_slow_gauge_memory);
    out->memory = out->rss_period_ns != 0;
    if (!out->memory)
        out->rss_period_ns = 1;
    out->name_count = filter->name_count;
    out->uid_count = filter->uid_count;
    out->cgroup_count = filter->cgroup_count;
    return 0;
}

static uint32_t power_of_two_at_most(uint32_t value)
{
    uint32_t power = 1;
    while (power <= value / 2)
        power *= 2;
    return power;
}

static uint32_t clamp(uint32_t value, uint32_t low, uint32_t high)
{
    return value < low ? low : value > high ? high : value;
}

static int set_map(struct bpf_object *bpf, const char *name, uint32_t max_entries)
{
    struct bpf_map *map = bpf_object__find_map_by_name(bpf, name);
    return map == NULL ? -ENOENT : bpf_map__set_max_entries(map, max_entries);
}

static struct bpf_map *find_rodata(struct bpf_object *bpf)
{
    struct bpf_map *map;
    bpf_object__for_each_map(map, bpf)
    {
        const char *name = bpf_map__name(map);
        size_t length = strlen(name);
        if (length >= 7 && strcmp(name + length - 7, ".rodata") == 0)
            return map;
    }
    return NULL;
}

static int size_maps(struct ew_ebpf_object *object, const struct ew_source_config *config,
                     struct ew_k_config *rodata)
{
    struct bpf_object *bpf = object->bpf;
    uint32_t cpus = object->cpu_count;
    uint32_t by_size = LOG_BYTES_MAX / (uint32_t)sizeof(struct ew_k_entry) / cpus;
    object->log_entries = power_of_two_at_most(clamp(by_size, LOG_ENTRIES_MIN, LOG_ENTRIES_MAX));
    uint32_t life = power_of_two_at_most(clamp(cpus * LIFE_BYTES_PER_CPU, 0, LIFE_BYTES_MAX));
    uint32_t stream =
        config->events
            ? power_of_two_at_most(clamp(cpus * STREAM_BYTES_PER_CPU, 0, STREAM_BYTES_MAX))
            : (uint32_t)sysconf(_SC_PAGESIZE);
    rodata->with_rss = config->sample_ns >= EW_K_RSS_INTERVAL_NS;
    rodata->log_mask = object->log_entries - 1;
    rodata->log_wake = object->log_entries / 2;
    rodata->life_wake = life / 4;
    rodata->stream_wake = stream / 4;
    rodata->stream_all = config->events_all;

    const struct {
        const char *name;
        uint32_t max_entries;
    } sizes[] = {
        {"cpus", cpus},
        {"heads", cpus},
        {"losses", cpus},
        {"running", cpus},
        {"entries", cpus * object->log_entries},
        {"entry_tasks", cpus * object->log_entries},
        {"watched", config->filter.all ? 1 : config->max_processes},
        {"excluded", config->filter.excludes ? config->max_processes : 1},
        {"life", life},
        {"stream", stream},
        {"entry_extras", rodata->optional ? cpus * object->log_entries : 1},
        {"optionals", rodata->optional ? clamp(config->max_threads, 1, EXTRAS_MAX) : 1},
        {"pmu_cpus", rodata->pmu ? cpus : 1},
        {"pmu_cycles", rodata->pmu ? cpus : 1},
        {"pmu_instructions", rodata->pmu ? cpus : 1},
        {"pmu_cache_misses", rodata->pmu ? cpus : 1},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int error = set_map(bpf, sizes[i].name, sizes[i].max_entries);
        if (error != 0)
            return error;
    }
    struct bpf_map *map = find_rodata(bpf);
    return map == NULL ? -ENOENT : bpf_map__set_initial_value(map, rodata, sizeof *rodata);
}

static bool wanted(const char *program, const struct ew_source_config *config,
                   const struct ew_ebpf_optional *optional)
{
    if (strncmp(program, "ew_net_tp_", 10) == 0)
        return optional->net && optional->net_tracepoints;
    if (strncmp(program, "ew_net_fn_", 10) == 0)
        return optional->net && !optional->net_tracepoints;
    if (strncmp(program, "ew_net_fn6_", 11) == 0)
        return optional->net && !optional->net_tracepoints && optional->has_ipv6;
    if (strcmp(program, "ew_pmu") == 0)
        return optional->pmu != 0;
    if (strncmp(program, "ew_stream_", 10) == 0)
        return config->events;
    if (strcmp(program, "ew_free") == 0)
        return !config->filter.all;
    if (strcmp(program, "ew_cgroup_attach") == 0)
        return config->filter.cgroup_count > 0;
    return true;
}

static int map_one(struct ew_ebpf_object *object, const char *name, void *ret_base)
{
    struct bpf_map *map = bpf_object__find_map_by_name(object->bpf, name);
    if (map == NULL)
        return -ENOENT;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t value = ((size_t)bpf_map__value_size(map) + 7) & ~(size_t)7;
    size_t size = (value * bpf_map__max_entries(map) + page - 1) & ~(page - 1);
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
    if (base == MAP_FAILED)
        return -errno;
    object->mappings[object->mapping_count++] = (struct ew_ebpf_mapping){base, size};
    memcpy(ret_base, &base, sizeof base);
    return 0;
}

static int map_all(struct ew_ebpf_object *object)
{
    const struct {
        const char *name;
        void *ret_base;
    } maps[] = {
        {"clock", &object->clock},       {"heads", &object->heads},
        {"entries", &object->entries},   {"losses", &object->losses},
        {"requests", &object->requests}, {"settled", &object->settled},
        {"running", &object->running},   {"entry_extras", &object->entry_extras},
    };
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        int error = map_one(object, maps[i].name, maps[i].ret_base);
        if (error != 0)
            return error;
    }
    for (uint32_t i = 0; ew_ebpf_optional_map(i) != NULL; i++) {
        int fd = bpf_object__find_map_fd_by_name(object->bpf, ew_ebpf_optional_map(i));
        int error = ew_ebpf_optional_fill(&object->optional, i, fd);
        if (error != 0)
            return error;
    }
    object->watched_fd = bpf_object__find_map_fd_by_name(object->bpf, "watched");
    object->excluded_fd = bpf_object__find_map_fd_by_name(object->bpf, "excluded");
    object->life_fd = bpf_object__find_map_fd_by_name(object->bpf, "life");
    object->stream_fd = bpf_object__find_map_fd_by_name(object->bpf, "stream");
    return 0;
}

static int attach_all(struct ew_ebpf_object *object, const struct ew_source_config *config)
{
    struct bpf_program *program;
    bpf_object__for_each_program(program, object->bpf)
    {
        const char *name = bpf_program__name(program);
        if (!wanted(name, config, &object->optional))
            continue;
        if (strcmp(name, "ew_settle") == 0) {
            object->settle_fd = bpf_program__fd(program);
            continue;
        }
        if (strcmp(name, "ew_switch") == 0)
            object->switch_fd = bpf_program__fd(program);
        bool iterator = strcmp(name, "ew_seed") == 0;
        struct bpf_link *link =
            iterator ? bpf_program__attach_iter(program, NULL) : bpf_program__attach(program);
        long error = libbpf_get_error(link);
        if (error != 0 && strncmp(name, "ew_net", 6) == 0) {
            object->optional.net = false; /* not all of it would not be what was asked for */
            continue;
        }
        if (error != 0)
            return (int)error;
        object->links[object->link_count++] = link;
        if (iterator)
            object->seed_link_fd = bpf_link__fd(link);
        else if (object->timed_count < EW_EBPF_TIMED_MAX)
            object->timed_fds[object->timed_count++] = bpf_program__fd(program);
    }
    return 0;
}

/* Opens one of the two builds and loads it; an errno, and nothing left, if the kernel refuses. */
static int load_build(struct ew_ebpf_object *object, const struct ew_source_config *config,
                      struct ew_k_config *rodata, const unsigned char *build, size_t size)
{
    object->bpf = bpf_object__open_mem(build, size, NULL);
    long open_error = libbpf_get_error(object->bpf);
    if (open_error != 0) {
        object->bpf = NULL;
        return (int)-open_error;
    }
    struct bpf_program *program;
    bpf_object__for_each_program(program, object->bpf)(void) bpf_program__set_autoload(
        program, wanted(bpf_program__name(program), config, &object->optional));
    int error = size_maps(object, config, rodata);
    if (error == 0)
        error = bpf_object__load(object->bpf);
    if (error != 0) {
        bpf_object__close(object->bpf);
        object->bpf = NULL;
    }
    return -error;
}

static int load_either(struct ew_ebpf_object *object, const struct ew_source_config *config,
                       struct ew_k_config *rodata)
{
    rodata->pmu = object->optional.pmu;
    rodata->optional = object->optional.pmu != 0 || object->optional.net;
    int error = load_build(object, config, rodata, ew_ebpf_typed, ew_ebpf_typed_size);
    if (error != 0 && error != EPERM && error != ENOMEM)
        error = load_build(object, config, rodata, ew_ebpf_plain, ew_ebpf_plain_size);
    return error;
}

/* A kernel may have neither way to follow the network: then go on without. */
static int load_with_net(struct ew_ebpf_object *object, const struct ew_source_config *config,
                         struct ew_k_config *rodata)
{
    struct ew_ebpf_optional *optional = &object->optional;
    optional->has_ipv6 = access("/proc/net/if_inet6", F_OK) == 0;
    optional->net = optional->net_tracepoints = optional->want_net;
    int error = load_either(object, config, rodata);
    if (error == 0 || !optional->want_net || error == ENOMEM)
        return error;
    optional->net_tracepoints = false;
    if (load_either(object, config, rodata) == 0)
        return 0;
    optional->net = false;
    return load_either(object, config, rodata);
}

static int load(struct ew_ebpf_object *object, const struct ew_source_config *config,
                struct ew_error *reterr)
{
    struct ew_k_config rodata;
    int error = fill_config(&rodata, config, reterr);
    if (error != 0)
        return error;
    if (ew_ebpf_optional_open(&object->optional, config, object->cpu_count) != 0)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    object->want = rodata.want;
    error = load_with_net(object, config, &rodata);
    if (error != 0)
        return explain(reterr, error, "the kernel does not take the programs");
    error = map_all(object);
    if (error != 0)
        return explain(reterr, -error, "cannot map the tables");
    object->clock->at_ns = config->epoch_ns;
    object->clock->era[1] = (struct ew_k_era){config->epoch_ns, config->interval_ns, 1};
    object->clock->era[0] = object->clock->era[1];
    error = attach_all(object, config);
    if (error != 0)
        return explain(reterr, -error, "cannot attach the programs");
    return 0;
}

int ew_ebpf_object_open(struct ew_ebpf_object *object, const struct ew_source_config *config,
                        struct ew_error *reterr)
{
    memset(object, 0, sizeof *object);
    object->settle_fd = object->switch_fd = object->seed_link_fd = -1;
    int error = check_system(reterr);
    if (error != 0)
        return error;
    int cpus = libbpf_num_possible_cpus();
    if (cpus <= 0 || cpus > EW_K_CPUS_MAX)
        return ew_error_set(reterr, ETWATCH_ENOTSUP, 0, "eBPF: %d CPUs, at most %d are supported",
                            cpus, EW_K_CPUS_MAX);
    object->cpu_count = (uint32_t)cpus;
    /* libbpf prints to stderr unless told otherwise; whoever set a printer gets it back. */
    libbpf_print_fn_t printer = libbpf_set_print(quiet);
    error = load(object, config, reterr);
    (void)libbpf_set_print(printer);
    if (error != 0)
        ew_ebpf_object_close(object);
    (void)malloc_trim(0); /* the kernel's type information was several MB */
    return error;
}

void ew_ebpf_object_close(struct ew_ebpf_object *object)
{
    for (uint32_t i = 0; i < object->link_count; i++)
        (void)bpf_link__destroy(object->links[i]);
    for (uint32_t i = 0; i < object->mapping_count; i++)
        (void)munmap(object->mappings[i].base, object->mappings[i].size);
    if (object->bpf != NULL)
        bpf_object__close(object->bpf);
    ew_ebpf_optional_close(&object->optional);
    memset(object, 0, sizeof *object);
    object->settle_fd = object->switch_fd = object->seed_link_fd = -1;
}

int ew_ebpf_object_settle(struct ew_ebpf_object *object, uint32_t request_count, bool cpus,
                          bool clear_cells)
{
    struct ew_k_settle_args args = {
        .request_count = request_count,
        .cpu_count = cpus ? object->cpu_count : 0,
        .flags = clear_cells ? EW_K_SETTLE_CLEAR_CELLS : 0,
    };
    /* Not LIBBPF_OPTS: libbpf 0.5 has it under another name. */
    struct bpf_test_run_opts options = {
        .sz = sizeof options, .ctx_in = &args, .ctx_size_in = sizeof args};
    return bpf_prog_test_run_opts(object->settle_fd, &options) == 0 ? 0 : -errno;
}
