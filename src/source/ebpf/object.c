/* SPDX-License-Identifier: MIT */
/*
 * Loads and attaches the programs that a configuration needs, with maps of the size that it needs.
 *
 * Nothing is pinned: everything belongs to file descriptors of this process, so the kernel removes
 * it when the process ends, however it ends. load.c loads the programs; libbpf (load_libbpf.c) is
 * the fallback.
 */
#include "source/ebpf/ebpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "model/name.h"
#include "source/poll/slow_gauges.h"

enum {
    LOG_BYTES_MAX = 8 << 20, /* of all CPUs together */
    LOG_ENTRIES_MAX = 4096,
    LOG_ENTRIES_MIN = 256,
    LIFE_BYTES_PER_CPU = 256 << 10,
    LIFE_BYTES_MAX = 8 << 20,
    STREAM_BYTES_PER_CPU = 2 << 20,
    STREAM_BYTES_MAX = 64 << 20,
    OPTIONALS_MAX = 32768, /* threads with optional counters */
};

/* -------------------------------------------------------------- prerequisites */

/* Used to explain a failure, never to cause one: distributions backport eBPF to older kernels. */
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
                                 "PERFMON and a seccomp profile with bpf");
        else
            ew_error_fix(reterr, "run as root, or: sudo setcap cap_bpf,cap_perfmon+ep "
                                 "\"$(command -v etwatch)\"");
        return ETWATCH_EPERM;
    }
    if (os_code == ENOMEM)
        return ew_error_set(reterr, ETWATCH_ENOMEM, os_code, "eBPF: %s: out of memory", what);
    if (os_code == ESRCH) {
        /* libbpf before 1.0 cannot read the 64-bit enums in the BTF of kernels from 6.0 on. */
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

/* The programs see pids of the initial namespace; in another one they would be wrong. */
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
                     "eBPF: this container has a pid namespace of its own");
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

/* The groups of counters that these metrics need. */
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
                return ew_error_set(
                    reterr, ETWATCH_ELIMIT, 0,
                    "\"%s\" is too long: names have at most %d bytes, not counting *",
                    filter->names[i], EW_K_NAME_SIZE - 1);
            continue;
        }
        /* The kernel keeps 15 bytes of a name: compare no more. */
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

static int find_map(const struct ew_image *image, const char *name)
{
    for (size_t i = 0; i < image->map_count; i++)
        if (strcmp(image->maps[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* How many entries each map needs. 0: the programs do not use it with this configuration. */
static int size_maps(struct ew_ebpf_object *object, const struct ew_source_config *config,
                     struct ew_k_config *rodata, struct ew_load_plan *plan)
{
    uint32_t cpus = object->cpu_count;
    uint32_t by_size = LOG_BYTES_MAX / (uint32_t)sizeof(struct ew_k_entry) / cpus;
    object->log_entries = power_of_two_at_most(clamp(by_size, LOG_ENTRIES_MIN, LOG_ENTRIES_MAX));
    uint32_t life = power_of_two_at_most(clamp(cpus * LIFE_BYTES_PER_CPU, 0, LIFE_BYTES_MAX));
    uint32_t stream = power_of_two_at_most(clamp(cpus * STREAM_BYTES_PER_CPU, 0, STREAM_BYTES_MAX));
    uint32_t log_entries = cpus * object->log_entries;
    rodata->with_rss = config->sample_ns >= EW_K_RSS_INTERVAL_NS;
    rodata->log_mask = object->log_entries - 1;
    rodata->log_wake = object->log_entries / 2;
    rodata->life_wake = life / 4;
    rodata->stream_wake = stream / 4;
    rodata->stream_all = config->events_all;
    rodata->causes = object->causes;

    const struct {
        const char *name;
        uint32_t max_entries;
    } sizes[] = {
        {"cpus", cpus},
        {"heads", cpus},
        {"losses", cpus},
        {"running", cpus},
        {"entries", log_entries},
        {"entry_tasks", log_entries},
        {"watched", config->filter.all ? 0 : config->max_processes},
        {"former", config->filter.all ? 0 : EW_K_FORMER_MAX},
        {"excluded", config->filter.excludes ? config->max_processes : 0},
        {"life", life},
        {"stream", config->events ? stream : 0},
        {"interrupts", object->causes ? cpus : 0},
        {"faults", object->causes ? EW_K_FAULTS_THREADS : 0},
        {"entry_optionals", rodata->optional ? log_entries : 0},
        {"optionals", rodata->optional ? clamp(config->max_threads, 1, OPTIONALS_MAX) : 0},
        {"pmu_cpus", rodata->pmu ? cpus : 0},
        {"pmu_cycles", rodata->pmu ? cpus : 0},
        {"pmu_instructions", rodata->pmu ? cpus : 0},
        {"pmu_cache_misses", rodata->pmu ? cpus : 0},
    };
    for (size_t i = 0; i < plan->image->map_count; i++)
        plan->map_entries[i] = plan->image->maps[i].max_entries;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int map = find_map(plan->image, sizes[i].name);
        if (map < 0)
            return ENOENT;
        plan->map_entries[map] = sizes[i].max_entries;
    }
    return 0;
}

static bool wanted(const char *program, const struct ew_source_config *config,
                   const struct ew_ebpf_object *object)
{
    const struct ew_ebpf_optional *optional = &object->optional;
    if (strncmp(program, "ew_net_tp_", 10) == 0)
        return optional->net && optional->net_tracepoints;
    if (strncmp(program, "ew_net_fn_", 10) == 0)
        return optional->net && !optional->net_tracepoints;
    if (strncmp(program, "ew_net_fn6_", 11) == 0)
        return optional->net && !optional->net_tracepoints && optional->has_ipv6;
    if (strcmp(program, "ew_pmu") == 0)
        return optional->pmu != 0;
    if (strncmp(program, "ew_stream_cause_", 16) == 0 || strncmp(program, "ew_fault_", 9) == 0)
        return object->causes;
    if (strncmp(program, "ew_stream_", 10) == 0)
        return config->events;
    if (strcmp(program, "ew_free") == 0)
        return !config->filter.all;
    if (strcmp(program, "ew_cgroup_attach") == 0)
        return config->filter.cgroup_count > 0;
    return true;
}

static int map_fd(const struct ew_ebpf_object *object, const char *name)
{
    int map = find_map(object->image, name);
    return map < 0 ? -1 : object->loaded.map_fds[map];
}

/* A map that was not needed stays NULL. */
static int map_one(struct ew_ebpf_object *object, const struct ew_load_plan *plan, const char *name,
                   void *ret_base)
{
    int index = find_map(object->image, name);
    if (index < 0)
        return -ENOENT;
    if (object->loaded.map_fds[index] < 0 || plan->map_entries[index] == 0)
        return 0;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t value = ((size_t)object->image->maps[index].value_size + 7) & ~(size_t)7;
    size_t size = (value * plan->map_entries[index] + page - 1) & ~(page - 1);
    void *base =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, object->loaded.map_fds[index], 0);
    if (base == MAP_FAILED)
        return -errno;
    object->mappings[object->mapping_count++] = (struct ew_ebpf_mapping){base, size};
    memcpy(ret_base, &base, sizeof base);
    return 0;
}

static int map_all(struct ew_ebpf_object *object, const struct ew_load_plan *plan)
{
    const struct {
        const char *name;
        void *ret_base;
    } maps[] = {
        {"clock", &object->clock},       {"heads", &object->heads},
        {"entries", &object->entries},   {"losses", &object->losses},
        {"requests", &object->requests}, {"threads", &object->threads},
        {"running", &object->running},   {"entry_optionals", &object->entry_optionals},
    };
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        int error = map_one(object, plan, maps[i].name, maps[i].ret_base);
        if (error != 0)
            return error;
    }
    for (uint32_t i = 0; ew_ebpf_optional_map(i) != NULL; i++) {
        int error =
            ew_ebpf_optional_fill(&object->optional, i, map_fd(object, ew_ebpf_optional_map(i)));
        if (error != 0)
            return error;
    }
    object->watched_fd = map_fd(object, "watched");
    object->excluded_fd = map_fd(object, "excluded");
    object->life_fd = map_fd(object, "life");
    object->stream_fd = map_fd(object, "stream");
    return 0;
}

static int attach_all(struct ew_ebpf_object *object)
{
    for (size_t i = 0; i < object->image->function_count; i++) {
        const struct ew_image_function *program = &object->image->functions[i];
        int program_fd = object->loaded.program_fds[i];
        if (program_fd < 0)
            continue;
        if (strcmp(program->name, "ew_read_tasks") == 0) {
            object->read_tasks_fd = program_fd;
            continue;
        }
        if (strcmp(program->name, "ew_switch") == 0)
            object->switch_fd = program_fd;
        if (strcmp(program->section, "perf_event") == 0) {
            int error = ew_ebpf_faults_attach(&object->faults, program->name, program_fd,
                                              object->cpu_count);
            if (error != 0)
                return error;
            object->timed_fds[object->timed_count++] = program_fd;
            continue;
        }
        int link = ew_load_attach(program, program_fd);
        if (link < 0 && strncmp(program->name, "ew_net", 6) == 0) {
            object->optional.net = false; /* a part of the bytes is not what was requested */
            continue;
        }
        if (link < 0)
            return link;
        object->links[object->link_count++] = link;
        if (strcmp(program->name, "ew_seed") == 0)
            object->seed_link_fd = link;
        else if (object->timed_count < EW_EBPF_TIMED_MAX)
            object->timed_fds[object->timed_count++] = program_fd;
    }
    return 0;
}

/* Loads one of the two builds; an errno, and nothing is left, if the kernel refuses. */
static int load_build(struct ew_ebpf_object *object, const struct ew_source_config *config,
                      struct ew_k_config *rodata, const struct ew_image *image,
                      struct ew_load_plan *plan)
{
    memset(plan, 0, sizeof *plan);
    plan->image = object->image = image;
    plan->config = rodata;
    for (size_t i = 0; i < image->function_count; i++)
        plan->programs[i] =
            image->functions[i].section != NULL && wanted(image->functions[i].name, config, object);
    int error = size_maps(object, config, rodata, plan);
    if (error == 0)
        error = ew_load_directly(plan, &object->loaded);
    if (error != 0 && error != EPERM && error != ENOMEM && error != ENOSYS)
        error = ew_load_by_libbpf(plan, &object->loaded);
    return error;
}

static int load_either(struct ew_ebpf_object *object, const struct ew_source_config *config,
                       struct ew_k_config *rodata, struct ew_load_plan *plan)
{
    rodata->pmu = object->optional.pmu;
    rodata->optional = object->optional.pmu != 0 || object->optional.net;
    int error = load_build(object, config, rodata, &ew_ebpf_typed, plan);
    if (error != 0 && error != EPERM && error != ENOMEM)
        error = load_build(object, config, rodata, &ew_ebpf_plain, plan);
    return error;
}

/* A kernel may support neither way to count network bytes: then continue without. */
static int load_with_net(struct ew_ebpf_object *object, const struct ew_source_config *config,
                         struct ew_k_config *rodata, struct ew_load_plan *plan)
{
    struct ew_ebpf_optional *optional = &object->optional;
    optional->has_ipv6 = access("/proc/net/if_inet6", F_OK) == 0;
    optional->net = optional->net_tracepoints = optional->want_net;
    int error = load_either(object, config, rodata, plan);
    if (error == 0 || !optional->want_net || error == ENOMEM)
        return error;
    optional->net_tracepoints = false;
    if (load_either(object, config, rodata, plan) == 0)
        return 0;
    optional->net = false;
    return load_either(object, config, rodata, plan);
}

/* Nor do all kernels have what the causes of waits need: then continue without. */
static int load_with_faults(struct ew_ebpf_object *object, const struct ew_source_config *config,
                            struct ew_k_config *rodata, struct ew_load_plan *plan)
{
    object->causes = config->events && config->causes;
    int error = load_with_net(object, config, rodata, plan);
    if (error == 0 || !object->causes || error == ENOMEM)
        return error;
    object->causes = false;
    return load_with_net(object, config, rodata, plan);
}

static int load(struct ew_ebpf_object *object, const struct ew_source_config *config,
                struct ew_error *reterr)
{
    struct ew_k_config rodata;
    struct ew_load_plan plan;
    int error = fill_config(&rodata, config, reterr);
    if (error != 0)
        return error;
    if (ew_ebpf_optional_open(&object->optional, config, object->cpu_count) != 0)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    object->want = rodata.want;
    error = load_with_faults(object, config, &rodata, &plan);
    if (error != 0)
        return explain(reterr, error, "the kernel does not take the programs");
    error = map_all(object, &plan);
    if (error != 0)
        return explain(reterr, -error, "cannot map the tables");
    object->clock->at_ns = config->epoch_ns;
    object->clock->era[1] = (struct ew_k_era){config->epoch_ns, config->interval_ns, 1};
    object->clock->era[0] = object->clock->era[1];
    error = attach_all(object);
    if (error != 0)
        return explain(reterr, -error, "cannot attach the programs");
    return 0;
}

static void reset(struct ew_ebpf_object *object)
{
    memset(object, 0, sizeof *object);
    ew_loaded_init(&object->loaded);
    object->read_tasks_fd = object->switch_fd = object->seed_link_fd = -1;
}

int ew_ebpf_object_open(struct ew_ebpf_object *object, const struct ew_source_config *config,
                        struct ew_error *reterr)
{
    reset(object);
    int error = check_system(reterr);
    if (error != 0)
        return error;
    int cpus = libbpf_num_possible_cpus();
    if (cpus <= 0 || cpus > EW_K_CPUS_MAX)
        return ew_error_set(reterr, ETWATCH_ENOTSUP, 0, "eBPF: %d CPUs, at most %d are supported",
                            cpus, EW_K_CPUS_MAX);
    object->cpu_count = (uint32_t)cpus;
    error = load(object, config, reterr);
    if (error != 0)
        ew_ebpf_object_close(object);
    return error;
}

void ew_ebpf_object_close(struct ew_ebpf_object *object)
{
    ew_ebpf_faults_detach(&object->faults);
    for (uint32_t i = 0; i < object->link_count; i++)
        (void)close(object->links[i]);
    for (uint32_t i = 0; i < object->mapping_count; i++)
        (void)munmap(object->mappings[i].base, object->mappings[i].size);
    ew_loaded_close(&object->loaded);
    ew_ebpf_optional_close(&object->optional);
    reset(object);
}

int ew_ebpf_object_read_tasks(struct ew_ebpf_object *object, uint32_t request_count, bool cpus,
                              bool clear_cells)
{
    struct ew_k_read_args args = {
        .request_count = request_count,
        .cpu_count = cpus ? object->cpu_count : 0,
        .flags = clear_cells ? EW_K_READ_CLEAR_CELLS : 0,
    };
    /* Not LIBBPF_OPTS: libbpf 0.5 has another name for it. */
    struct bpf_test_run_opts options = {
        .sz = sizeof options, .ctx_in = &args, .ctx_size_in = sizeof args};
    return bpf_prog_test_run_opts(object->read_tasks_fd, &options) == 0 ? 0 : -errno;
}
