/* SPDX-License-Identifier: MIT */
/*
 * A fake NVIDIA driver library for tests: the functions of NVML with the behaviour that NVIDIA's
 * documentation of NVML describes and that was measured on an H200 (driver 580): power samples
 * every 20 ms in a ring of 119, utilization samples every 200 ms in a ring of 71, process
 * utilization that returns "not found" without new samples, memory of processes, energy in mJ since
 * the driver was loaded. The declarations are written anew here, not taken from etwatch.
 *
 * The file named by FAKE_NVML has lines `name value` and is read again at every call that lists or
 * measures:
 *   count N        GPUs                         util A B    per cent, of the first GPU and the
 * second watts A B      power of both                pid P M U G E D a process: pid, MiB, per cent,
 * GPU, per cent of the encoder and of the decoder    codec E D  those of every GPU
 *   block MS       every power query takes so long
 *   garbage 1      every value is nonsense      lost N      the Nth GPU has fallen off the bus;
 * later its handle is stale until nvmlInit is called again init CODE      nvmlInit fails with CODE
 * mig N       instances of the first GPU old 1          a driver without momentary power code CODE
 * power and memory fail        use CODE    process utilization fails counter MJ     the energy
 * counter; without it what the power was is added up nvlink R S     counters of NVLink in KiB
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC visibility push(default)

typedef struct device {
    int index;
} * nvml_device;

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, NO_SIZE = 7, LOST = 15 };
enum { GPUS = 8, PROCESSES = 16 };

static struct device devices[2 * GPUS] = {{0}, {1}, {2},  {3},  {4},  {5},  {6},  {7},
                                          {8}, {9}, {10}, {11}, {12}, {13}, {14}, {15}};
static struct {
    unsigned count, util[2], watts[2], block_ms, garbage, lost, init, mig, old, code, use, counter;
    unsigned nvlink[2], codec[2];
    struct {
        unsigned pid, mib, util, gpu, encoder, decoder;
    } process[PROCESSES];
    unsigned process_count;
} state;

static int stale[GPUS]; /* lost, and nvmlInit was not called since it came back */

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void load(void)
{
    const char *path = getenv("FAKE_NVML");
    FILE *file = path == NULL ? NULL : fopen(path, "r");
    char line[200], name[20];
    unsigned a, b, c, d, e, f;
    memset(&state, 0, sizeof state);
    state.count = 1;
    state.watts[0] = state.watts[1] = 100;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        a = b = c = d = e = f = 0;
        int got = sscanf(line, "%19s %u %u %u %u %u %u", name, &a, &b, &c, &d, &e, &f);
        if (got < 2)
            continue;
        if (strcmp(name, "count") == 0)
            state.count = a;
        else if (strcmp(name, "util") == 0)
            state.util[0] = a, state.util[1] = b;
        else if (strcmp(name, "watts") == 0)
            state.watts[0] = a, state.watts[1] = b;
        else if (strcmp(name, "block") == 0)
            state.block_ms = a;
        else if (strcmp(name, "garbage") == 0)
            state.garbage = a;
        else if (strcmp(name, "lost") == 0)
            state.lost = a;
        else if (strcmp(name, "init") == 0)
            state.init = a;
        else if (strcmp(name, "mig") == 0)
            state.mig = a;
        else if (strcmp(name, "old") == 0)
            state.old = a;
        else if (strcmp(name, "code") == 0)
            state.code = a;
        else if (strcmp(name, "use") == 0)
            state.use = a;
        else if (strcmp(name, "counter") == 0)
            state.counter = a;
        else if (strcmp(name, "nvlink") == 0)
            state.nvlink[0] = a, state.nvlink[1] = b;
        else if (strcmp(name, "codec") == 0)
            state.codec[0] = a, state.codec[1] = b;
        else if (strcmp(name, "pid") == 0 && state.process_count < PROCESSES) {
            state.process[state.process_count].pid = a;
            state.process[state.process_count].mib = b;
            state.process[state.process_count].util = c;
            state.process[state.process_count].encoder = e;
            state.process[state.process_count].decoder = f;
            state.process[state.process_count++].gpu = d;
        }
    }
    if (file != NULL)
        fclose(file);
    if (state.lost > 0 && state.lost <= GPUS)
        stale[state.lost - 1] = 1;
}

static int is_lost(nvml_device device)
{
    return stale[device->index % GPUS];
}

static unsigned of(const unsigned *pair, nvml_device device)
{
    return pair[device->index % GPUS == 1];
}

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    memset(stale, 0, sizeof stale);
    load();
    return (int)state.init;
}

int nvmlShutdown(void);
int nvmlShutdown(void)
{
    return OK;
}

const char *nvmlErrorString(int code);
const char *nvmlErrorString(int code)
{
    return code == LOST  ? "GPU is lost"
           : code == 9   ? "Driver Not Loaded"
           : code == 999 ? "Unknown Error"
                         : "Some error";
}

int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetCount_v2(unsigned *count)
{
    load();
    *count = state.garbage ? 4000000000u : state.count;
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device)
{
    if (index >= state.count || index >= GPUS)
        return INVALID;
    if (state.lost == index + 1)
        return LOST;
    *device = &devices[index];
    return OK;
}

int nvmlDeviceGetName(nvml_device device, char *name, unsigned length);
int nvmlDeviceGetName(nvml_device device, char *name, unsigned length)
{
    snprintf(name, length, device->index < GPUS ? "NVIDIA Fake %d" : "NVIDIA Fake MIG %d",
             device->index);
    return OK;
}

struct pci_info {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};

int nvmlDeviceGetPciInfo_v3(nvml_device device, struct pci_info *pci);
int nvmlDeviceGetPciInfo_v3(nvml_device device, struct pci_info *pci)
{
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", 0x41 + device->index);
    return OK;
}

struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

int nvmlDeviceGetMemoryInfo_v2(nvml_device device, struct memory_v2 *memory);
int nvmlDeviceGetMemoryInfo_v2(nvml_device device, struct memory_v2 *memory)
{
    load();
    if (memory->version != 0x02000028)
        return INVALID;
    if (is_lost(device))
        return LOST;
    if (state.code != 0)
        return (int)state.code;
    memory->total = 141ull << 30;
    memory->used = state.garbage ? 1ull << 60 : 2ull << 30;
    return OK;
}

struct rates {
    unsigned gpu, memory;
};

int nvmlDeviceGetUtilizationRates(nvml_device device, struct rates *rates);
int nvmlDeviceGetUtilizationRates(nvml_device device, struct rates *rates)
{
    load();
    if (is_lost(device))
        return LOST;
    rates->gpu = state.garbage ? 4711 : of(state.util, device);
    rates->memory = state.garbage ? 4711 : 7;
    return OK;
}

int nvmlDeviceGetEncoderUtilization(nvml_device device, unsigned *percent, unsigned *period_us);
int nvmlDeviceGetEncoderUtilization(nvml_device device, unsigned *percent, unsigned *period_us)
{
    *period_us = 167000;
    *percent = state.garbage ? 4711 : state.codec[0];
    return is_lost(device) ? LOST : OK;
}

int nvmlDeviceGetDecoderUtilization(nvml_device device, unsigned *percent, unsigned *period_us);
int nvmlDeviceGetDecoderUtilization(nvml_device device, unsigned *percent, unsigned *period_us)
{
    *period_us = 167000;
    *percent = state.garbage ? 4711 : state.codec[1];
    return is_lost(device) ? LOST : OK;
}

int nvmlDeviceGetPowerUsage(nvml_device device, unsigned *milliwatts);
int nvmlDeviceGetPowerUsage(nvml_device device, unsigned *milliwatts)
{
    load();
    if (state.block_ms > 0) {
        struct timespec time = {state.block_ms / 1000, (long)(state.block_ms % 1000) * 1000000};
        nanosleep(&time, NULL);
    }
    if (is_lost(device))
        return LOST;
    if (state.code != 0)
        return (int)state.code;
    *milliwatts = state.garbage ? 4294967295u : of(state.watts, device) * 1000;
    return OK;
}

struct field {
    unsigned id, scope;
    long long time_us, latency_us;
    int type, code;
    union {
        unsigned u32;
        unsigned long long u64;
    } value;
};

int nvmlDeviceGetFieldValues(nvml_device device, int count, struct field *fields);
int nvmlDeviceGetFieldValues(nvml_device device, int count, struct field *fields)
{
    unsigned milliwatts = 0;
    int code = nvmlDeviceGetPowerUsage(device, &milliwatts);
    for (int i = 0; i < count; i++) {
        int nvlink = (fields[i].id == 138 || fields[i].id == 139) && fields[i].scope == ~0u;
        if (nvlink) {
            fields[i].code = code != OK ? code : state.nvlink[0] == 0 ? NOT_SUPPORTED : OK;
            fields[i].type = 3;
            fields[i].value.u64 = state.nvlink[fields[i].id == 138];
            continue;
        }
        fields[i].code = fields[i].id != 186 || state.old ? NOT_SUPPORTED : code;
        fields[i].type = 1;
        fields[i].value.u32 = milliwatts;
    }
    return OK;
}

int nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned *celsius);
int nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned *celsius)
{
    (void)device;
    (void)sensor;
    *celsius = state.garbage ? 99999 : 47;
    return OK;
}

int nvmlDeviceGetClockInfo(nvml_device device, int type, unsigned *mhz);
int nvmlDeviceGetClockInfo(nvml_device device, int type, unsigned *mhz)
{
    (void)device;
    *mhz = state.garbage ? 4000000000u : type == 1 ? 1980 : 3201;
    return OK;
}

int nvmlDeviceGetTotalEnergyConsumption(nvml_device device, unsigned long long *millijoules);
int nvmlDeviceGetTotalEnergyConsumption(nvml_device device, unsigned long long *millijoules)
{
    /* Adds up what the power was between two queries. */
    static uint64_t before_us[GPUS];
    static double sum_mj[GPUS];
    uint64_t now = now_us();
    int i = device->index % GPUS;
    if (state.garbage) {
        *millijoules = (unsigned long long)rand() << 30;
        return OK;
    }
    if (state.counter != 0) {
        *millijoules = state.counter;
        return OK;
    }
    if (before_us[i] != 0)
        sum_mj[i] += (double)of(state.watts, device) * (double)(now - before_us[i]) / 1000;
    before_us[i] = now;
    *millijoules = 1000000 + (unsigned long long)sum_mj[i];
    return OK;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(nvml_device device, unsigned long long *reasons);
int nvmlDeviceGetCurrentClocksThrottleReasons(nvml_device device, unsigned long long *reasons)
{
    *reasons = state.garbage ? ~0ull : of(state.util, device) == 0 ? 1 : 4;
    return OK;
}

struct sample {
    unsigned long long time_us, value;
};

int nvmlDeviceGetSamples(nvml_device device, int type, unsigned long long last_seen_us,
                         int *value_type, unsigned *count, struct sample *samples);
int nvmlDeviceGetSamples(nvml_device device, int type, unsigned long long last_seen_us,
                         int *value_type, unsigned *count, struct sample *samples)
{
    unsigned every_us = type == 0 ? 20000 : 200000, ring = type == 0 ? 119 : 71, n = 0;
    uint64_t last_us = now_us() / every_us * every_us;
    if (type > 1)
        return NOT_SUPPORTED;
    *value_type = 1;
    for (unsigned i = ring; i > 0; i--) {
        uint64_t at_us = last_us - (uint64_t)(i - 1) * every_us;
        if (at_us <= last_seen_us || n == *count)
            continue;
        samples[n].time_us = at_us;
        samples[n].value = state.garbage ? 0xdeadbeef
                           : type == 0   ? of(state.watts, device) * 1000
                                         : of(state.util, device);
        n++;
    }
    *count = state.garbage ? 4000000000u : n;
    return n == 0 && !state.garbage ? NOT_FOUND : OK;
}

struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};

int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *count,
                                            struct process *list);
int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *count,
                                            struct process *list)
{
    load();
    unsigned n = 0;
    if (*count < state.process_count)
        return *count = state.process_count, NO_SIZE;
    for (unsigned i = 0; i < state.process_count; i++) {
        if (state.process[i].gpu != (unsigned)device->index % GPUS || device->index > GPUS)
            continue;
        list[n].pid = state.process[i].pid;
        list[n++].used =
            state.garbage ? 1ull << 62 : (unsigned long long)state.process[i].mib << 20;
    }
    *count = state.garbage ? 4000000000u : n;
    return OK;
}

struct utilization {
    unsigned pid;
    unsigned long long time_us;
    unsigned sm, memory, encoder, decoder;
};

int nvmlDeviceGetProcessUtilization(nvml_device device, struct utilization *list, unsigned *count,
                                    unsigned long long last_seen_us);
int nvmlDeviceGetProcessUtilization(nvml_device device, struct utilization *list, unsigned *count,
                                    unsigned long long last_seen_us)
{
    unsigned n = 0;
    if (state.use != 0)
        return (int)state.use;
    if (now_us() < last_seen_us + 200000)
        return NOT_FOUND;
    for (unsigned i = 0; i < state.process_count && n < *count; i++) {
        if (state.process[i].gpu != (unsigned)device->index)
            continue;
        list[n].pid = state.process[i].pid;
        list[n].time_us = now_us();
        list[n].sm = state.garbage ? 4000 : state.process[i].util;
        list[n].encoder = state.process[i].encoder;
        list[n].decoder = state.process[i].decoder;
        n++;
    }
    *count = n;
    return n == 0 ? NOT_FOUND : OK;
}

int nvmlDeviceGetMigMode(nvml_device device, unsigned *current, unsigned *pending);
int nvmlDeviceGetMigMode(nvml_device device, unsigned *current, unsigned *pending)
{
    *current = *pending = device->index == 0 && state.mig > 0;
    return OK;
}

int nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned index, nvml_device *instance);
int nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned index, nvml_device *instance)
{
    if (device->index != 0 || index >= state.mig)
        return NOT_FOUND;
    *instance = &devices[GPUS + index];
    return OK;
}
