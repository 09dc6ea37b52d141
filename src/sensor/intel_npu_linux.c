/* SPDX-License-Identifier: MIT */
/*
 * Intel NPUs: /sys/bus/pci/drivers/intel_vpu/DEVICE/npu_busy_time_us (Linux 6.11) and
 * npu_memory_utilization (6.15), see Documentation/ABI/testing/sysfs-driver-intel_vpu. Both are of
 * the whole device; the driver does not count per process. Reading disturbs the submission of work,
 * so it is read at most once a second.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/metric.h"
#include "sensor/sensor.h"
#include "sensor/sysfs_linux.h"

enum { NPUS_MAX = 8, FOLDER_SIZE = 1024 };

struct npu {
    char id[EW_DEVICE_ID_SIZE];
    uint64_t busy_us, last_ns;
    bool known;
};

struct npus {
    char folder[FOLDER_SIZE / 2];
    struct npu list[NPUS_MAX];
    uint32_t count;
};

/* Devices are links with PCI addresses: 0000:00:0b.0. */
static void add_npu(void *ctx, const char *name)
{
    struct npus *npus = ctx;
    if (strchr(name, ':') == NULL || npus->count == NPUS_MAX)
        return;
    (void)snprintf(npus->list[npus->count++].id, EW_DEVICE_ID_SIZE, "%.60s", name);
}

static void find(const struct ew_sensor_config *config, struct npus *npus)
{
    memset(npus, 0, sizeof *npus);
    (void)snprintf(npus->folder, sizeof npus->folder, "%.400s/bus/pci/drivers/intel_vpu",
                   config->sys_root);
    (void)ew_sysfs_list(npus->folder, add_npu, npus);
}

static bool probe(const struct ew_sensor_config *config, struct ew_error *reterr)
{
    struct npus npus;
    find(config, &npus);
    if (npus.count == 0)
        (void)ew_error_set(reterr, ETWATCH_ENOTSUP, 0,
                           "no NPU: the driver intel_vpu has no device");
    return npus.count > 0;
}

static int open_npus(const struct ew_sensor_config *config, void **ret_state,
                     struct ew_error *reterr)
{
    struct npus *npus = ew_calloc(1, sizeof *npus);
    (void)reterr;
    if (npus == NULL)
        return ETWATCH_ENOMEM;
    find(config, npus);
    *ret_state = npus;
    return 0;
}

static void close_npus(void *state)
{
    ew_free(state);
}

static void read_npu(const struct npus *npus, struct npu *npu, uint64_t now_ns,
                     struct ew_device_reading *out)
{
    char folder[FOLDER_SIZE];
    uint64_t busy_us = 0, bytes = 0;
    (void)snprintf(folder, sizeof folder, "%s/%s", npus->folder, npu->id);
    bool known = ew_sysfs_read_number(folder, "npu_busy_time_us", &busy_us);
    if (known && npu->known && busy_us >= npu->busy_us && now_ns > npu->last_ns) {
        uint64_t busy_ns = (busy_us - npu->busy_us) * 1000;
        double percent = 100.0 * (double)busy_ns / (double)(now_ns - npu->last_ns);
        out->from_ns = npu->last_ns;
        EW_DEVICE_PUT(out, busy_ns, busy_ns);
        EW_DEVICE_PUT(out, util_percent, percent < 100 ? percent : 100);
    }
    if (ew_sysfs_read_number(folder, "npu_memory_utilization", &bytes))
        EW_DEVICE_PUT(out, memory_used_bytes, bytes);
    npu->known = known;
    npu->busy_us = busy_us;
    npu->last_ns = now_ns;
}

static int read_npus(void *state, uint64_t now_ns, struct ew_sensor_batch *batch,
                     struct ew_error *reterr)
{
    struct npus *npus = state;
    (void)reterr;
    for (uint32_t i = 0; i < npus->count; i++) {
        struct ew_device_reading *out = ew_sensor_add_device(batch);
        if (out == NULL)
            break;
        out->kind = ETWATCH_DEVICE_NPU;
        out->index = i;
        out->t_ns = now_ns;
        (void)snprintf(out->driver, sizeof out->driver, "intel_vpu");
        memcpy(out->id, npus->list[i].id, sizeof out->id);
        (void)snprintf(out->name, sizeof out->name, "Intel NPU");
        read_npu(npus, &npus->list[i], now_ns, out);
    }
    return 0;
}

const struct ew_sensor_ops ew_sensor_intel_npu = {
    .name = "intel_vpu",
    .kinds = 1u << ETWATCH_DEVICE_NPU,
    .min_period_ns = 1000000000,
    .probe = probe,
    .open = open_npus,
    .close = close_npus,
    .read = read_npus,
};
