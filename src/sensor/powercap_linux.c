/* SPDX-License-Identifier: MIT */
/*
 * Energy of CPU packages and memory: RAPL through /sys/class/powercap, which Intel and AMD share.
 *
 *   intel-rapl:0/name        package-0
 *   intel-rapl:0/energy_uj   a counter that wraps at max_energy_range_uj; readable by root only
 *   intel-rapl:0:0/name      core, uncore, dram: parts of the package, except dram
 *   intel-rapl:1/name        package-1, or psys: the whole board, which contains all others
 *   intel-rapl-mmio:0        the same package through another interface: ignored
 *
 * Where these files may not be read, the same counters through perf (rapl_perf_linux.c).
 *
 * Every meter is reported, but only packages and their memory are attributed to processes (psys
 * only if there is no package), so that nothing is counted twice.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "model/metric.h"
#include "sensor/cpu_busy_linux.h"
#include "sensor/idle_power.h"
#include "sensor/rapl_perf_linux.h"
#include "sensor/sensor.h"
#include "sensor/sysfs_linux.h"

enum { METERS_MAX = 64, FOLDER_SIZE = 1024 };

struct meter {
    char id[EW_DEVICE_ID_SIZE]; /* "package-0", "package-0/core" */
    int fd;
    uint64_t range_uj;   /* the counter wraps here; 0: unknown */
    double uj_per_count; /* of perf; 0: a file of powercap */
    uint64_t last_uj, last_ns;
    bool attributed;
    struct ew_idle_power idle;
};

struct powercap {
    struct meter meters[METERS_MAX];
    uint32_t count;
    struct ew_cpu_busy cpu;
    uint64_t cpu_read_ns;
    /* While listing. */
    char folder[FOLDER_SIZE / 2];
    uint32_t found;
    int denied; /* errno of the first meter that could not be opened */
};

static void folder_of(const struct ew_sensor_config *config, char *folder, size_t size)
{
    (void)snprintf(folder, size, "%s/class/powercap", config->sys_root);
}

static void count_entry(void *ctx, const char *name)
{
    if (strncmp(name, "intel-rapl:", 11) == 0)
        ++*(uint32_t *)ctx;
}

static bool probe(const struct ew_sensor_config *config, struct ew_error *reterr)
{
    char folder[FOLDER_SIZE];
    uint32_t count = 0;
    folder_of(config, folder, sizeof folder);
    if ((ew_sysfs_list(folder, count_entry, &count) && count > 0) ||
        ew_rapl_perf_has(config->sys_root))
        return true;
    (void)ew_error_set(reterr, ETWATCH_ENOTSUP, 0,
                       "no energy meter: %s has no intel-rapl (virtual machines and containers "
                       "usually have none)",
                       folder);
    return false;
}

/* Packages and their memory are attributed, and nothing that one of them contains. */
static bool is_attributed(const char *id)
{
    const char *part = strchr(id, '/');
    return strncmp(id, "package", 7) == 0 && (part == NULL || strcmp(part, "/dram") == 0);
}

/* A part of a package, intel-rapl:0:1, has its number and that of the package. */
static void add_meter(void *ctx, const char *entry)
{
    struct powercap *cap = ctx;
    char folder[FOLDER_SIZE], name[EW_DEVICE_ID_SIZE / 2], package[EW_DEVICE_ID_SIZE / 2];
    if (strncmp(entry, "intel-rapl:", 11) != 0 || cap->count == METERS_MAX)
        return;
    (void)snprintf(folder, sizeof folder, "%s/%.256s", cap->folder, entry);
    if (!ew_sysfs_read_text(folder, "name", name, sizeof name))
        return;
    cap->found++;
    struct meter *meter = &cap->meters[cap->count];
    memset(meter, 0, sizeof *meter);
    const char *part = strchr(entry + 11, ':');
    char top[FOLDER_SIZE];
    (void)snprintf(top, sizeof top, "%s/%.*s", cap->folder,
                   part != NULL ? (int)(part - entry > 256 ? 256 : part - entry) : 0, entry);
    if (part != NULL && ew_sysfs_read_text(top, "name", package, sizeof package))
        (void)snprintf(meter->id, sizeof meter->id, "%.30s/%.30s", package, name);
    else
        (void)snprintf(meter->id, sizeof meter->id, "%s", name);
    meter->attributed = is_attributed(meter->id);
    meter->fd = ew_sysfs_open(folder, "energy_uj");
    if (meter->fd < 0) {
        cap->denied = cap->denied == 0 ? errno : cap->denied;
        return;
    }
    (void)ew_sysfs_read_number(folder, "max_energy_range_uj", &meter->range_uj);
    cap->count++;
}

/* A board without packages: psys is the only meter that includes the CPUs. */
static void attribute_psys(struct powercap *cap)
{
    bool any = false;
    for (uint32_t i = 0; i < cap->count; i++)
        any = any || cap->meters[i].attributed;
    for (uint32_t i = 0; i < cap->count && !any; i++)
        cap->meters[i].attributed = strcmp(cap->meters[i].id, "psys") == 0;
}

static void close_powercap(void *state)
{
    struct powercap *cap = state;
    for (uint32_t i = 0; i < cap->count; i++)
        (void)close(cap->meters[i].fd);
    ew_cpu_busy_close(&cap->cpu);
    ew_free(cap);
}

static void add_counters(const struct ew_sensor_config *config, struct powercap *cap)
{
    struct ew_rapl_counter counters[METERS_MAX];
    int os_code = 0;
    uint32_t count = ew_rapl_perf_open(config, counters, METERS_MAX, &os_code);
    for (uint32_t i = 0; i < count; i++) {
        struct meter *meter = &cap->meters[cap->count++];
        memset(meter, 0, sizeof *meter);
        memcpy(meter->id, counters[i].id, sizeof meter->id);
        meter->fd = counters[i].fd;
        meter->uj_per_count = counters[i].uj_per_count;
        meter->attributed = is_attributed(meter->id);
    }
    cap->denied = cap->denied == 0 ? os_code : cap->denied;
}

static int open_powercap(const struct ew_sensor_config *config, void **ret_state,
                         struct ew_error *reterr)
{
    struct powercap *cap = ew_calloc(1, sizeof *cap);
    if (cap == NULL)
        return ETWATCH_ENOMEM;
    folder_of(config, cap->folder, sizeof cap->folder);
    int error = ew_cpu_busy_open(&cap->cpu, config->proc_root);
    if (error != 0) {
        ew_free(cap);
        return error;
    }
    (void)ew_sysfs_list(cap->folder, add_meter, cap);
    if (cap->count == 0)
        add_counters(config, cap);
    if (cap->count == 0) {
        error = cap->denied == EACCES || cap->denied == EPERM ? ETWATCH_EPERM : ETWATCH_ENOTSUP;
        (void)ew_error_set(reterr, error, cap->denied,
                           "the energy counters (%s/intel-rapl*/energy_uj) cannot be read: %s",
                           cap->folder, cap->denied != 0 ? strerror(cap->denied) : "none found");
        if (error == ETWATCH_EPERM)
            ew_error_fix(reterr, "run as root, or: setcap cap_dac_read_search,cap_perfmon+ep "
                                 "etwatch");
        close_powercap(cap);
        return error;
    }
    attribute_psys(cap);
    *ret_state = cap;
    return 0;
}

/* The increment since the last reading; false: unknown. */
static bool grown(struct meter *meter, uint64_t now_uj, uint64_t *ret_uj)
{
    if (now_uj >= meter->last_uj)
        *ret_uj = now_uj - meter->last_uj;
    else if (meter->range_uj >= meter->last_uj)
        *ret_uj = meter->range_uj - meter->last_uj + now_uj;
    else
        return false;
    return true;
}

static void read_meter(struct meter *meter, uint32_t index, uint64_t now_ns, bool cpu_known,
                       uint64_t busy_ns, double use, struct ew_sensor_batch *batch)
{
    uint64_t now_uj = 0, energy_uj = 0;
    struct ew_device_reading *out = ew_sensor_add_device(batch);
    if (out == NULL)
        return;
    out->kind = ETWATCH_DEVICE_ENERGY;
    out->index = index;
    out->t_ns = now_ns;
    (void)snprintf(out->driver, sizeof out->driver, "%s",
                   meter->uj_per_count > 0 ? "perf" : "powercap");
    (void)snprintf(out->id, sizeof out->id, "%s", meter->id);
    bool known = meter->uj_per_count > 0
                     ? ew_rapl_perf_read(meter->fd, meter->uj_per_count, &now_uj)
                     : ew_sysfs_number(meter->fd, &now_uj);
    if (!known) {
        (void)snprintf(batch->problem, sizeof batch->problem, "the meter %s cannot be read",
                       meter->id);
        return;
    }
    uint64_t dt_ns = now_ns - meter->last_ns;
    if (meter->last_ns != 0 && dt_ns > 0 && grown(meter, now_uj, &energy_uj)) {
        out->from_ns = meter->last_ns;
        EW_DEVICE_PUT(out, energy_uj, energy_uj);
        EW_DEVICE_PUT(out, power_watts, (double)energy_uj * 1e3 / (double)dt_ns);
        if (meter->attributed && cpu_known) {
            out->by_cpu_time = true;
            out->cpu_busy_ns = busy_ns;
            EW_DEVICE_PUT(out, idle_energy_uj,
                          ew_idle_power_split(&meter->idle, energy_uj, dt_ns, use));
            etwatch_metric_set_add(&out->estimated, ETWATCH_D_idle_energy_uj);
        }
    }
    meter->last_uj = now_uj;
    meter->last_ns = now_ns;
}

static int read_powercap(void *state, uint64_t now_ns, struct ew_sensor_batch *batch,
                         struct ew_error *reterr)
{
    struct powercap *cap = state;
    uint64_t busy_ns = 0;
    double use = 0;
    (void)reterr;
    bool known = ew_cpu_busy_read(&cap->cpu, now_ns - cap->cpu_read_ns, &busy_ns, &use);
    cap->cpu_read_ns = now_ns;
    for (uint32_t i = 0; i < cap->count; i++)
        read_meter(&cap->meters[i], i, now_ns, known, busy_ns, use, batch);
    return 0;
}

const struct ew_sensor_ops ew_sensor_powercap = {
    .name = "powercap",
    .kinds = 1u << ETWATCH_DEVICE_ENERGY,
    .min_period_ns = 10000000,
    .metrics = EW_METRIC_SET(ETWATCH_M_energy_uj),
    .estimated = EW_METRIC_SET(ETWATCH_M_energy_uj),
    .probe = probe,
    .open = open_powercap,
    .close = close_powercap,
    .read = read_powercap,
};
