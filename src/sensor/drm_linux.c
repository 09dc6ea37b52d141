/* SPDX-License-Identifier: MIT */
/*
 * GPUs and NPUs with a DRM or accel driver (amdgpu, i915, xe, v3d, amdxdna, ...): what each process
 * did, from /proc/PID/fdinfo, and figures of the device from /sys.
 *
 * A client is an open file of the device; a process may have several, and several processes may
 * share one. A client (device and drm-client-id) counts once, for the process where it was first
 * found. Finding them means reading the links of all open files, so known processes are searched
 * every five seconds and new ones every second; known clients are read every time. Counters may go
 * backwards for a moment: the highest value counts.
 *
 * Energy is the driver's counter (i915, xe: 64 bits, so that it does not wrap), for amdgpu, which
 * has none, that of AMD SMI if its library is given, else power times time, marked as an estimate.
 * Its part above idle is shared by the time of the clients, if every process may be read.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "model/metric.h"
#include "sensor/amdsmi_linux.h"
#include "sensor/fdinfo_text.h"
#include "sensor/idle_power.h"
#include "sensor/sensor.h"
#include "sensor/sysfs_linux.h"

enum { CLIENTS_MAX = 2048, DEVICES_MAX = 32, PIDS_MAX = 1 << 16, PATH_SIZE = 1024 };
#define SECOND_NS UINT64_C(1000000000)
static const uint64_t search_all_ns = 5 * SECOND_NS, search_new_ns = SECOND_NS;

struct client {
    uint32_t pid, device;
    int fd; /* its number in that process */
    uint64_t id;
    uint64_t busy_ns, cycles, total_cycles, memory_bytes;
    uint64_t encoder_ns, decoder_ns;
    uint64_t grown_ns, encoder_grown_ns, decoder_grown_ns; /* since the last reading */
    bool timed, has_codecs, has_memory, alive;
};

struct device {
    char driver[EW_DEVICE_DRIVER_SIZE], pdev[32];
    char folder[PATH_SIZE / 2]; /* in /sys; "": not found */
    char card[PATH_SIZE / 2];   /* its folder in /sys/class/drm; "": unknown */
    char hwmon[PATH_SIZE];      /* "": none */
    bool npu;
    bool has_clients; /* its driver has fdinfo: without clients it is known to be unused */
    uint64_t energy_uj;
    bool energy_known;
    struct ew_idle_power idle;
};

struct drm {
    struct ew_sensor_config config;
    struct client *clients;
    uint32_t client_count;
    struct device devices[DEVICES_MAX];
    uint32_t device_count;
    uint32_t *pids; /* known at the last search */
    uint32_t pid_count;
    uint64_t last_ns, all_ns, new_ns;
    bool searched; /* at least once: a process found later started while it was watched */
    bool denied;
    struct ew_amdsmi *amdsmi; /* NULL: none, or not wanted */
    bool amdsmi_opened;
    char amdsmi_problem[256];
    char text[16384];
};

/* -------------------------------------------------------------------------- devices */

static void count_card(void *ctx, const char *name)
{
    if (strncmp(name, "card", 4) == 0 || strncmp(name, "renderD", 7) == 0 ||
        strncmp(name, "accel", 5) == 0)
        ++*(uint32_t *)ctx;
}

static bool probe(const struct ew_sensor_config *config, struct ew_error *reterr)
{
    static const char *const classes[] = {"drm", "accel"};
    uint32_t count = 0;
    for (size_t i = 0; i < 2; i++) {
        char folder[PATH_SIZE];
        (void)snprintf(folder, sizeof folder, "%s/class/%s", config->sys_root, classes[i]);
        (void)ew_sysfs_list(folder, count_card, &count);
    }
    if (count > 0)
        return true;
    (void)ew_error_set(reterr, ETWATCH_ENOTSUP, 0, "no device in %s/class/drm or accel",
                       config->sys_root);
    return false;
}

static void find_hwmon(void *ctx, const char *name)
{
    struct device *device = ctx;
    if (device->hwmon[0] == '\0' && strncmp(name, "hwmon", 5) == 0)
        (void)snprintf(device->hwmon, sizeof device->hwmon, "%s/hwmon/%.64s", device->folder, name);
}

/* Others that have it are known by their first client. */
static bool has_fdinfo(const char *driver)
{
    return strcmp(driver, "amdgpu") == 0 || strcmp(driver, "i915") == 0 ||
           strcmp(driver, "xe") == 0 || strncmp(driver, "amdxdna", 7) == 0;
}

/* Clients of a device that is not on PCI (v3d, msm, panthor) name only their driver. */
static bool is_of(const struct device *device, const struct ew_fdinfo *info)
{
    return info->pdev[0] != '\0' ? strcmp(device->pdev, info->pdev) == 0
                                 : strcmp(device->driver, info->driver) == 0;
}

/* accel: it has a file in /dev/accel, so it is an NPU. folder: of the device in /sys; NULL: that of
 * its PCI address. */
static struct device *device_of(struct drm *drm, const struct ew_fdinfo *info, bool accel,
                                const char *folder, uint32_t *ret_index)
{
    for (uint32_t i = 0; i < drm->device_count; i++) {
        if (is_of(&drm->devices[i], info)) {
            *ret_index = i;
            return &drm->devices[i];
        }
    }
    if (drm->device_count == DEVICES_MAX)
        return NULL;
    *ret_index = drm->device_count;
    struct device *device = &drm->devices[drm->device_count++];
    memset(device, 0, sizeof *device);
    memcpy(device->driver, info->driver, sizeof device->driver);
    memcpy(device->pdev, info->pdev, sizeof device->pdev);
    device->npu = accel;
    device->has_clients = has_fdinfo(info->driver);
    char hwmon[PATH_SIZE];
    if (folder != NULL)
        (void)snprintf(device->folder, sizeof device->folder, "%.500s", folder);
    else if (info->pdev[0] != '\0')
        (void)snprintf(device->folder, sizeof device->folder, "%.400s/bus/pci/devices/%s",
                       drm->config.sys_root, info->pdev);
    (void)snprintf(hwmon, sizeof hwmon, "%s/hwmon", device->folder);
    (void)ew_sysfs_list(hwmon, find_hwmon, device);
    return device;
}

/* Other sensors read the devices of these drivers. */
static bool is_read_elsewhere(const char *driver)
{
    return strncmp(driver, "nvidia", 6) == 0 || strcmp(driver, "intel_vpu") == 0;
}

/* A card or accelerator that has a device and a driver with fdinfo. */
static void add_card(struct drm *drm, const char *class, const char *name)
{
    char folder[PATH_SIZE], inner[PATH_SIZE];
    struct ew_fdinfo info;
    struct device *device = NULL;
    uint32_t index = 0;
    memset(&info, 0, sizeof info);
    (void)snprintf(folder, sizeof folder, "%.400s/class/%s/%.64s", drm->config.sys_root, class,
                   name);
    (void)snprintf(inner, sizeof inner, "%.1000s/device", folder);
    if (strchr(name, '-') == NULL &&
        ew_sysfs_link_name(folder, "device", info.pdev, sizeof info.pdev) &&
        ew_sysfs_link_name(inner, "driver", info.driver, sizeof info.driver) &&
        !is_read_elsewhere(info.driver))
        device = device_of(drm, &info, strcmp(class, "accel") == 0, inner, &index);
    if (device != NULL && device->card[0] == '\0')
        (void)snprintf(device->card, sizeof device->card, "%.500s", folder);
}

static void add_drm_card(void *ctx, const char *name)
{
    if (strncmp(name, "card", 4) == 0)
        add_card(ctx, "drm", name);
}

static void add_accel_card(void *ctx, const char *name)
{
    add_card(ctx, "accel", name);
}

static void list_cards(struct drm *drm)
{
    char folder[PATH_SIZE];
    (void)snprintf(folder, sizeof folder, "%.400s/class/drm", drm->config.sys_root);
    (void)ew_sysfs_list(folder, add_drm_card, drm);
    (void)snprintf(folder, sizeof folder, "%.400s/class/accel", drm->config.sys_root);
    (void)ew_sysfs_list(folder, add_accel_card, drm);
}

/* -------------------------------------------------------------------------- clients */

static bool read_fdinfo(struct drm *drm, uint32_t pid, int fd, struct ew_fdinfo *ret_info)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%u/fdinfo/%d", pid, fd);
    int file = ew_sysfs_open(drm->config.proc_root, name);
    ssize_t len = file < 0 ? -1 : pread(file, drm->text, sizeof drm->text, 0);
    if (file >= 0)
        (void)close(file);
    return len > 0 && ew_fdinfo_parse(drm->text, (size_t)len, ret_info);
}

static uint64_t grown(uint64_t now, uint64_t *last)
{
    uint64_t count = now > *last ? now - *last : 0;
    *last += count;
    return count;
}

/* Time from cycles: the share of the engine's clock that the client had. */
static void count_use(struct client *client, const struct ew_fdinfo *info, uint64_t dt_ns)
{
    uint64_t cycles = grown(info->cycles, &client->cycles);
    uint64_t total = grown(info->total_cycles, &client->total_cycles);
    client->timed = info->has_engines || info->has_cycles;
    /* amdgpu leaves out the engines that the client never used. */
    client->has_codecs =
        info->has_codecs || (info->has_engines && strcmp(info->driver, "amdgpu") == 0);
    client->encoder_grown_ns = grown(info->encoder_ns, &client->encoder_ns);
    client->decoder_grown_ns = grown(info->decoder_ns, &client->decoder_ns);
    if (info->has_engines)
        client->grown_ns += grown(info->engines_ns, &client->busy_ns);
    else if (info->has_cycles && total > 0)
        client->grown_ns += (uint64_t)((double)dt_ns * (double)cycles / (double)total);
    client->has_memory = info->has_memory;
    client->memory_bytes = info->memory_bytes;
}

static void add_client(struct drm *drm, uint32_t pid, int fd, bool accel, bool from_start)
{
    struct ew_fdinfo info;
    uint32_t index = 0;
    if (drm->client_count == CLIENTS_MAX || !read_fdinfo(drm, pid, fd, &info) ||
        is_read_elsewhere(info.driver) || device_of(drm, &info, accel, NULL, &index) == NULL)
        return;
    for (uint32_t i = 0; i < drm->client_count; i++)
        if (drm->clients[i].device == index && drm->clients[i].id == info.client)
            return;
    struct client *client = &drm->clients[drm->client_count++];
    *client = (struct client){.pid = pid, .fd = fd, .device = index, .id = info.client};
    drm->devices[index].has_clients = true;
    client->alive = true;
    client->timed = info.has_engines || info.has_cycles;
    client->total_cycles = info.total_cycles;
    if (!from_start) {
        client->busy_ns = info.engines_ns;
        client->encoder_ns = info.encoder_ns;
        client->decoder_ns = info.decoder_ns;
        client->cycles = info.cycles;
    }
}

static void search_process(struct drm *drm, uint32_t pid, bool from_start)
{
    char folder[PATH_SIZE];
    (void)snprintf(folder, sizeof folder, "%s/%u/fd", drm->config.proc_root, pid);
    DIR *files = opendir(folder);
    if (files == NULL) {
        char status[64];
        (void)snprintf(status, sizeof status, "%u/stat", pid);
        int file = ew_sysfs_open(drm->config.proc_root, status);
        drm->denied |= file >= 0; /* it exists, but is not ours to see */
        if (file >= 0)
            (void)close(file);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(files)) != NULL;) {
        char target[64];
        ssize_t len = readlinkat(dirfd(files), entry->d_name, target, sizeof target - 1);
        if (len <= 0)
            continue;
        target[len] = '\0';
        bool accel = strncmp(target, "/dev/accel/", 11) == 0;
        if (accel || strncmp(target, "/dev/dri/", 9) == 0)
            add_client(drm, pid, (int)strtol(entry->d_name, NULL, 10), accel, from_start);
    }
    (void)closedir(files);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void search(struct drm *drm, uint64_t now_ns)
{
    bool all = drm->all_ns == 0 || now_ns - drm->all_ns >= search_all_ns;
    if (!all && now_ns - drm->new_ns < search_new_ns)
        return;
    DIR *folder = opendir(drm->config.proc_root);
    uint32_t *pids = folder == NULL ? NULL : ew_calloc(PIDS_MAX, sizeof *pids);
    uint32_t count = 0;
    for (const struct dirent *entry; pids != NULL && (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && count < PIDS_MAX)
            pids[count++] = (uint32_t)strtoul(entry->d_name, NULL, 10);
    if (folder != NULL)
        (void)closedir(folder);
    if (pids == NULL)
        return;
    qsort(pids, count, sizeof *pids, by_number);
    drm->denied = all ? false : drm->denied;
    for (uint32_t i = 0; i < count; i++) {
        bool known = drm->pid_count > 0 &&
                     bsearch(&pids[i], drm->pids, drm->pid_count, sizeof *pids, by_number) != NULL;
        if (all || !known)
            search_process(drm, pids[i], drm->searched && !known);
    }
    ew_free(drm->pids);
    drm->pids = pids;
    drm->pid_count = count;
    drm->new_ns = now_ns;
    drm->all_ns = all ? now_ns : drm->all_ns;
    drm->searched = true;
}

/* ------------------------------------------------------------------------------ read */

static void put_number(struct ew_device_reading *out, const char *folder, const char *name,
                       double scale, double max, uint32_t metric, double *slot)
{
    uint64_t value = 0;
    if (folder[0] == '\0' || !ew_sysfs_read_number(folder, name, &value) ||
        (double)value * scale > max)
        return;
    *slot = (double)value * scale;
    etwatch_metric_set_add(&out->has, metric);
}

static bool has_energy(const struct device *device)
{
    static const char *const names[] = {"energy1_input", "power1_average", "power1_input"};
    uint64_t value = 0;
    bool found = false;
    for (size_t i = 0; i < 3 && device->hwmon[0] != '\0'; i++)
        found = found || ew_sysfs_read_number(device->hwmon, names[i], &value);
    return found;
}

/* The first time it is needed: then a GPU of amdgpu is there. */
static bool read_amdsmi(struct drm *drm, const struct device *device, uint64_t *ret_uj)
{
    double uj = 0;
    if (drm->config.amdsmi_library == NULL || !drm->config.energy ||
        strcmp(device->driver, "amdgpu") != 0)
        return false;
    if (!drm->amdsmi_opened)
        drm->amdsmi = ew_amdsmi_open(drm->config.amdsmi_library, drm->amdsmi_problem,
                                     sizeof drm->amdsmi_problem);
    drm->amdsmi_opened = true;
    if (!ew_amdsmi_energy(drm->amdsmi, device->pdev, &uj))
        return false;
    *ret_uj = (uint64_t)uj;
    return true;
}

/* A counter that is lower than before started anew: what was used meanwhile is unknown. */
static void put_energy(struct drm *drm, struct device *device, struct ew_device_reading *out)
{
    uint64_t energy_uj = 0;
    bool known = (device->hwmon[0] != '\0' &&
                  ew_sysfs_read_number(device->hwmon, "energy1_input", &energy_uj)) ||
                 read_amdsmi(drm, device, &energy_uj);
    double dt_ns = out->from_ns == 0 ? 0 : (double)(out->t_ns - out->from_ns);
    if (known && device->energy_known && dt_ns > 0 && energy_uj >= device->energy_uj) {
        EW_DEVICE_PUT(out, energy_uj, energy_uj - device->energy_uj);
        if (!etwatch_metric_set_has(&out->has, ETWATCH_D_power_watts))
            EW_DEVICE_PUT(out, power_watts, (double)out->energy_uj * 1e3 / dt_ns);
    } else if (!known && dt_ns > 0 && etwatch_metric_set_has(&out->has, ETWATCH_D_power_watts)) {
        EW_DEVICE_PUT(out, energy_uj, (uint64_t)(out->power_watts * dt_ns / 1e3));
        etwatch_metric_set_add(&out->estimated, ETWATCH_D_energy_uj);
    }
    device->energy_known = known;
    device->energy_uj = energy_uj;
}

/* Names of amdgpu, and of hwmon (Documentation/hwmon/sysfs-interface). */
static void put_figures(struct drm *drm, struct device *device, struct ew_device_reading *out)
{
    uint64_t used = 0, total = 0;
    put_number(out, device->folder, "gpu_busy_percent", 1, 100, ETWATCH_D_util_percent,
               &out->util_percent);
    if (ew_sysfs_read_number(device->folder, "mem_info_vram_used", &used) &&
        ew_sysfs_read_number(device->folder, "mem_info_vram_total", &total) && used <= total) {
        EW_DEVICE_PUT(out, memory_used_bytes, used);
        EW_DEVICE_PUT(out, memory_total_bytes, total);
    }
    put_number(out, device->hwmon, "temp1_input", 1e-3, 200, ETWATCH_D_temperature_celsius,
               &out->temperature_celsius);
    put_number(out, device->hwmon, "freq1_input", 1e-6, 1e5, ETWATCH_D_clock_mhz, &out->clock_mhz);
    put_number(out, device->hwmon, "freq2_input", 1e-6, 1e5, ETWATCH_D_memory_clock_mhz,
               &out->memory_clock_mhz);
    put_number(out, device->hwmon, "power1_input", 1e-6, 2e4, ETWATCH_D_power_watts,
               &out->power_watts);
    put_number(out, device->hwmon, "power1_average", 1e-6, 2e4, ETWATCH_D_power_watts,
               &out->power_watts);
    /* i915 and xe: the clock in use (ABI/testing/sysfs-driver-intel-i915, sysfs-driver-xe). */
    put_number(out, device->card, "gt_act_freq_mhz", 1, 1e5, ETWATCH_D_clock_mhz, &out->clock_mhz);
    put_number(out, device->folder, "tile0/gt0/freq0/act_freq", 1, 1e5, ETWATCH_D_clock_mhz,
               &out->clock_mhz);
    put_energy(drm, device, out);
}

static void read_clients(struct drm *drm, uint64_t dt_ns)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < drm->client_count; i++) {
        struct client *client = &drm->clients[i];
        struct ew_fdinfo info;
        bool there = read_fdinfo(drm, client->pid, client->fd, &info) && info.client == client->id;
        client->grown_ns = 0;
        if (!there)
            continue; /* closed: its last use since the reading before is not known */
        count_use(client, &info, dt_ns);
        drm->clients[kept++] = *client;
    }
    drm->client_count = kept;
}

/* The energy above idle, to the processes of the clients in proportion to their time. */
static void share_energy(struct device *device, struct ew_device_reading *out, uint64_t busy_ns,
                         uint32_t first, struct ew_sensor_batch *batch)
{
    uint64_t done_ns = 0, done_uj = 0;
    if (!etwatch_metric_set_has(&out->has, ETWATCH_D_energy_uj))
        return;
    const uint64_t dt_ns = out->t_ns - out->from_ns;
    double use = etwatch_metric_set_has(&out->has, ETWATCH_D_util_percent)
                     ? out->util_percent / 100
                     : (double)busy_ns / (double)dt_ns;
    uint64_t idle_uj = ew_idle_power_split(&device->idle, out->energy_uj, dt_ns, use);
    uint64_t above_uj = out->energy_uj - idle_uj;
    EW_DEVICE_PUT(out, idle_energy_uj, idle_uj);
    etwatch_metric_set_add(&out->estimated, ETWATCH_D_idle_energy_uj);
    out->by_uses = true;
    for (uint32_t i = first; i < batch->use_count; i++) {
        struct etwatch_device_process *process = &batch->uses[i].process;
        done_ns += device->npu ? process->npu_ns : process->gpu_ns;
        double part = busy_ns > 0 ? (double)done_ns / (double)busy_ns : 0;
        uint64_t up_to_uj = (uint64_t)((double)above_uj * part);
        up_to_uj = up_to_uj < above_uj ? up_to_uj : above_uj;
        process->has |= ETWATCH_DEVICE_PROCESS_ENERGY;
        process->energy_uj = up_to_uj - done_uj;
        done_uj = up_to_uj;
    }
}

static void put_uses(struct drm *drm, uint32_t index, uint32_t reading, uint64_t now_ns,
                     struct ew_sensor_batch *batch)
{
    struct ew_device_reading *out = &batch->devices[reading];
    bool npu = drm->devices[index].npu;
    uint64_t busy_ns = 0, processes = 0;
    bool timed = false;
    uint32_t first = batch->use_count;
    for (uint32_t i = 0; i < drm->client_count; i++) {
        const struct client *client = &drm->clients[i];
        if (client->device != index)
            continue;
        struct ew_device_use *use = NULL;
        for (uint32_t j = first; j < batch->use_count && use == NULL; j++)
            if (batch->uses[j].process.pid == client->pid)
                use = &batch->uses[j];
        processes += use == NULL;
        if (use == NULL && (use = ew_sensor_add_use(batch)) == NULL)
            return;
        use->from_ns = drm->last_ns == 0 ? now_ns - 1 : drm->last_ns;
        use->t_ns = now_ns;
        use->device = reading;
        use->process.pid = client->pid;
        if (client->has_memory && !npu) {
            use->process.has |= ETWATCH_DEVICE_PROCESS_MEMORY;
            use->process.memory_bytes += client->memory_bytes;
        }
        if (!client->timed || drm->last_ns == 0)
            continue;
        timed = true;
        busy_ns += client->grown_ns;
        use->process.has |= npu ? ETWATCH_DEVICE_PROCESS_NPU_TIME : ETWATCH_DEVICE_PROCESS_GPU_TIME;
        *(npu ? &use->process.npu_ns : &use->process.gpu_ns) += client->grown_ns;
        if (!client->has_codecs || npu)
            continue;
        use->process.has |= ETWATCH_DEVICE_PROCESS_CODEC_TIME;
        use->process.encoder_ns += client->encoder_grown_ns;
        use->process.decoder_ns += client->decoder_grown_ns;
    }
    if (drm->devices[index].has_clients)
        EW_DEVICE_PUT(out, processes, processes);
    if (timed) {
        EW_DEVICE_PUT(out, busy_ns, busy_ns);
        if (drm->denied)
            etwatch_metric_set_add(&out->estimated, ETWATCH_D_busy_ns);
    }
    bool unused = processes == 0 && drm->devices[index].has_clients;
    if (drm->config.energy && !drm->denied && (timed || unused))
        share_energy(&drm->devices[index], out, busy_ns, first, batch);
}

static int read_drm(void *state, uint64_t now_ns, struct ew_sensor_batch *batch,
                    struct ew_error *reterr)
{
    struct drm *drm = state;
    (void)reterr;
    search(drm, now_ns);
    read_clients(drm, drm->last_ns == 0 ? 0 : now_ns - drm->last_ns);
    for (uint32_t i = 0; i < drm->device_count; i++) {
        struct device *device = &drm->devices[i];
        bool energy = drm->config.energy && has_energy(device);
        if (!energy && (device->npu ? !drm->config.npu : !drm->config.gpu))
            continue;
        struct ew_device_reading *out = ew_sensor_add_device(batch);
        if (out == NULL)
            break;
        out->kind = device->npu ? ETWATCH_DEVICE_NPU : ETWATCH_DEVICE_GPU;
        out->index = i;
        out->t_ns = now_ns;
        out->from_ns = drm->last_ns;
        memcpy(out->driver, device->driver, sizeof out->driver);
        memcpy(out->id, device->pdev, sizeof device->pdev);
        put_figures(drm, device, out);
        put_uses(drm, i, batch->device_count - 1, now_ns, batch);
    }
    if (drm->denied)
        (void)snprintf(batch->problem, sizeof batch->problem,
                       "the open files of other users' processes cannot be read (needs "
                       "CAP_SYS_PTRACE): their use is unknown, and the energy of all processes");
    else if (drm->amdsmi_problem[0] != '\0')
        (void)snprintf(batch->problem, sizeof batch->problem, "%s", drm->amdsmi_problem);
    drm->last_ns = now_ns;
    return 0;
}

static void close_drm(void *state)
{
    struct drm *drm = state;
    ew_amdsmi_close(drm->amdsmi);
    ew_free(drm->clients);
    ew_free(drm->pids);
    ew_free(drm);
}

static int open_drm(const struct ew_sensor_config *config, void **ret_state,
                    struct ew_error *reterr)
{
    struct drm *drm = ew_calloc(1, sizeof *drm);
    (void)reterr;
    if (drm == NULL)
        return ETWATCH_ENOMEM;
    drm->config = *config;
    drm->clients = ew_calloc(CLIENTS_MAX, sizeof *drm->clients);
    if (drm->clients == NULL) {
        close_drm(drm);
        return ETWATCH_ENOMEM;
    }
    list_cards(drm);
    *ret_state = drm;
    return 0;
}

/* Most servers have a card for their screen, and no driver reports its energy. */
static uint32_t find_kinds(const struct ew_sensor_config *config)
{
    uint32_t kinds = 1u << ETWATCH_DEVICE_GPU | 1u << ETWATCH_DEVICE_NPU;
    struct ew_error err = {0};
    void *state = NULL;
    if (!config->energy || open_drm(config, &state, &err) != 0)
        return kinds;
    const struct drm *drm = state;
    for (uint32_t i = 0; i < drm->device_count; i++)
        if (has_energy(&drm->devices[i]))
            kinds |= 1u << ETWATCH_DEVICE_ENERGY;
    close_drm(state);
    return kinds;
}

const struct ew_sensor_ops ew_sensor_drm = {
    .name = "drm",
    .kinds = 1u << ETWATCH_DEVICE_GPU | 1u << ETWATCH_DEVICE_NPU | 1u << ETWATCH_DEVICE_ENERGY,
    .min_period_ns = 20000000,
    .metrics = EW_METRIC_SET(ETWATCH_M_gpu_ns, ETWATCH_M_gpu_percent, ETWATCH_M_gpu_memory_bytes,
                             ETWATCH_M_npu_ns, ETWATCH_M_npu_percent, ETWATCH_M_energy_uj,
                             ETWATCH_M_gpu_encoder_ns, ETWATCH_M_gpu_decoder_ns),
    /* Which of its engines for video does what is not the same for all GPUs of amdgpu. */
    .estimated =
        EW_METRIC_SET(ETWATCH_M_energy_uj, ETWATCH_M_gpu_encoder_ns, ETWATCH_M_gpu_decoder_ns),
    .find_kinds = find_kinds,
    .probe = probe,
    .open = open_drm,
    .close = close_drm,
    .read = read_drm,
};
