/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA GPUs through the driver's own library (NVML), loaded at run time.
 *
 * Declarations are our own (nvml_api.h). Nothing that the driver returns is trusted: counts are
 * bounded, percentages above 100 and impossible values are unknown.
 *
 * Each function has the rate that its cost allows; readings in between repeat the value. Per call
 * on an H200 (driver 580): momentary power 1 us, memory 6 us, process lists 10 us each, throttle
 * reasons 12 us, temperature 22 us, clock 45 us, utilization 55 us, average power 180 us; PCIe
 * throughput 0.8 ms (and 20 ms of waiting), utilization of processes 2.7 ms, the ring of
 * utilization samples 2.7 ms, and the energy counter 4.1 ms. So energy between two readings of the
 * counter is power times time, and what the counter then differs is made up for: the sums are those
 * of the counter.
 *
 * GPU time of a process is an estimate: NVML has only utilization in per cent, averaged over an
 * unknown time, and splits it wrongly between processes. Its last value is held until the next.
 * Memory of processes is exact. Energy of a device above idle is shared by these estimates.
 */
#include "sensor/nvml_api.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/metric.h"
#include "os/os.h"
#include "sensor/idle_power.h"
#include "sensor/sensor.h"

enum {
    GPUS_MAX = 64,
    MIG_MAX = 8, /* of one GPU */
    PROCESSES_MAX = 1024,
};
#define MS_NS UINT64_C(1000000)
static const uint64_t list_every_ns = 500 * MS_NS, utilization_every_ns = 5000 * MS_NS;
static const uint64_t count_every_ns = 2000 * MS_NS, pcie_every_ns = 10000 * MS_NS;
static const uint64_t rates_every_ns = 200 * MS_NS, figures_every_ns = 500 * MS_NS;
static const uint64_t counter_every_ns = 5000 * MS_NS, rare_counter_every_ns = 30000 * MS_NS;
/* A GPU that was lost has a new handle after its reset, and only after the library was started
 * again, which costs 30 ms and a reading of the other GPUs. */
static const uint64_t restart_every_ns = 30000 * MS_NS;

struct process {
    uint32_t pid;
    uint64_t memory_bytes;
    bool memory_known;
    double use; /* 0 to 1; of the last utilization */
    bool use_known;
    double encoder, decoder; /* 0 to 1, likewise */
    bool codec_known;
};

struct gpu {
    struct ew_nvml_device *handle;
    uint32_t number; /* the driver's */
    char id[EW_DEVICE_ID_SIZE], name[EW_DEVICE_NAME_SIZE];
    bool instance;    /* a MIG instance: only memory and processes are known */
    bool partitioned; /* has such instances: they list its processes */
    bool lost;
    uint64_t last_ns;
    uint64_t energy_mj, energy_ns; /* of the counter, when it was last read */
    bool energy_known;
    double energy_sum_uj;  /* reported since then, as power times time */
    double energy_debt_uj; /* what the counter had more than that, not yet made up for */
    double power_mw;       /* momentary; < 0: unknown */
    bool no_fields;        /* the driver has no momentary power */
    int power_code;        /* of its last query */
    struct ew_idle_power idle;
    uint64_t process_seen_us;
    uint64_t listed_ns, utilized_ns, pcie_ns, rates_ns, figures_ns, power_ns; /* last read */
    struct ew_device_reading held; /* the values of those that are not read each time */
    bool listed;                   /* the process list is known */
    bool utilization;              /* process utilization is known */
    struct process *processes;
    uint32_t process_count;
    double pcie_received, pcie_sent; /* bytes a second; < 0: unknown */
    uint64_t nvlink_ns, nvlink_kib[2];
    bool no_nvlink, nvlink_known;
    double util; /* the last known, for the attribution of energy; < 0: unknown */
};

struct nvml {
    struct ew_nvml_api api;
    struct ew_os_library *library;
    bool started;
    struct gpu gpus[GPUS_MAX];
    uint32_t count;
    uint32_t driver_count; /* what the driver said */
    bool energy;           /* it is wanted, so the counter is read often */
    uint64_t counted_ns;
    uint64_t lost_ns; /* since when a GPU is lost, or when it was last looked for; 0: none is */
    uint32_t missing, number; /* GPUs that are lost and have no handle; the first of them */
    char missing_text[128];
    bool foreign_pids; /* a container: pids are those of the host */
    union {
        struct ew_nvml_process list[PROCESSES_MAX];
        struct ew_nvml_process_v1 list_v1[PROCESSES_MAX];
        struct ew_nvml_utilization_sample utilization[PROCESSES_MAX];
    } buffer;
};

static const char *text_of(const struct ew_nvml_api *api, int code)
{
    const char *text = api->error_string != NULL ? api->error_string(code) : NULL;
    return text != NULL ? text : "unknown error";
}

static bool is_gone(int code)
{
    return code == EW_NVML_GPU_IS_LOST || code == EW_NVML_RESET_REQUIRED;
}

/* The driver itself is gone: unloaded, or never started. */
static bool is_unloaded(int code)
{
    return code == EW_NVML_UNINITIALIZED || code == EW_NVML_DRIVER_NOT_LOADED;
}

/* --------------------------------------------------------------------------- open */

static bool probe(const struct ew_sensor_config *config, struct ew_error *reterr)
{
    struct ew_error err = {0};
    struct ew_os_library *library = ew_nvml_load(config->nvml_library, &err);
    if (library == NULL) {
        if (reterr != NULL)
            *reterr = err;
        return false;
    }
    ew_os_library_close(library);
    return true;
}

static void drop_gpus(struct nvml *nvml)
{
    for (uint32_t i = 0; i < nvml->count; i++)
        ew_free(nvml->gpus[i].processes);
    nvml->count = nvml->missing = 0;
}

static void close_nvml(void *state)
{
    struct nvml *nvml = state;
    drop_gpus(nvml);
    if (nvml->started)
        (void)nvml->api.shutdown();
    ew_os_library_close(nvml->library);
    ew_free(nvml);
}

static bool add_gpu(struct nvml *nvml, struct ew_nvml_device *handle, unsigned number,
                    const char *id, bool instance)
{
    if (nvml->count == GPUS_MAX)
        return false;
    struct gpu *gpu = &nvml->gpus[nvml->count];
    memset(gpu, 0, sizeof *gpu);
    gpu->processes = ew_calloc(PROCESSES_MAX, sizeof *gpu->processes);
    if (gpu->processes == NULL)
        return false;
    gpu->handle = handle;
    gpu->number = number;
    gpu->instance = instance;
    gpu->pcie_received = gpu->pcie_sent = gpu->util = gpu->power_mw = -1;
    (void)snprintf(gpu->id, sizeof gpu->id, "%s", id);
    if (nvml->api.name == NULL ||
        nvml->api.name(handle, gpu->name, (unsigned)sizeof gpu->name) != EW_NVML_SUCCESS)
        gpu->name[0] = '\0';
    gpu->name[sizeof gpu->name - 1] = '\0';
    nvml->count++;
    return true;
}

/* The instances of a GPU in MIG mode are devices of their own, after the GPU. */
static void add_instances(struct nvml *nvml, struct ew_nvml_device *handle, const char *gpu_id)
{
    const struct ew_nvml_api *api = &nvml->api;
    unsigned now = 0, pending = 0;
    uint32_t whole = nvml->count - 1;
    if (api->mig_mode == NULL || api->mig_handle == NULL ||
        api->mig_mode(handle, &now, &pending) != EW_NVML_SUCCESS || now != 1)
        return;
    for (unsigned i = 0; i < MIG_MAX; i++) {
        struct ew_nvml_device *instance = NULL;
        char id[EW_DEVICE_ID_SIZE];
        if (api->mig_handle(handle, i, &instance) != EW_NVML_SUCCESS || instance == NULL)
            continue;
        (void)snprintf(id, sizeof id, "%.40s/mig%u", gpu_id, i);
        nvml->gpus[whole].partitioned |=
            add_gpu(nvml, instance, nvml->gpus[whole].number, id, true);
    }
}

static void id_of(const struct nvml *nvml, struct ew_nvml_device *handle, unsigned index, char *id,
                  size_t size)
{
    struct ew_nvml_pci pci;
    memset(&pci, 0, sizeof pci);
    (void)snprintf(id, size, "%u", index);
    if (nvml->api.pci == NULL || nvml->api.pci(handle, &pci) != EW_NVML_SUCCESS)
        return;
    pci.bus_id[sizeof pci.bus_id - 1] = '\0';
    if (pci.bus_id[0] != '\0')
        (void)snprintf(id, size, "%s", pci.bus_id);
}

static int count_gpus(struct nvml *nvml, struct ew_error *reterr)
{
    unsigned count = 0;
    int code = nvml->api.count(&count);
    if (code != EW_NVML_SUCCESS)
        return ew_error_set(reterr, ETWATCH_EOS, code, "the driver cannot list its GPUs: %s",
                            text_of(&nvml->api, code));
    if (count > GPUS_MAX)
        return ew_error_set(reterr, ETWATCH_EFORMAT, 0,
                            "the driver reports %u GPUs, which cannot be", count);
    return (int)count;
}

static int list_gpus(struct nvml *nvml, struct ew_error *reterr)
{
    int count = count_gpus(nvml, reterr);
    if (count < 0)
        return count;
    nvml->driver_count = (uint32_t)count;
    for (unsigned i = 0; i < (unsigned)count; i++) {
        struct ew_nvml_device *handle = NULL;
        char id[EW_DEVICE_ID_SIZE];
        int code = nvml->api.handle(i, &handle);
        if (is_gone(code)) {
            nvml->number = nvml->missing == 0 ? i : nvml->number;
            nvml->missing++;
            (void)snprintf(nvml->missing_text, sizeof nvml->missing_text, "%s",
                           text_of(&nvml->api, code));
        }
        if (code != EW_NVML_SUCCESS || handle == NULL)
            continue; /* lost, or not ours to see */
        id_of(nvml, handle, i, id, sizeof id);
        if (add_gpu(nvml, handle, i, id, false))
            add_instances(nvml, handle, id);
    }
    if (nvml->count == 0 && nvml->missing == 0)
        return ew_error_set(reterr, ETWATCH_ENOTSUP, 0, "the NVIDIA driver has no GPU to read");
    return 0;
}

static int start_nvml(struct nvml *nvml, struct ew_error *reterr)
{
    int code = nvml->api.init();
    nvml->started = code == EW_NVML_SUCCESS;
    if (!nvml->started)
        return ew_error_set(reterr, ETWATCH_EOS, code, "the NVIDIA driver does not start: %s",
                            text_of(&nvml->api, code));
    return list_gpus(nvml, reterr);
}

static int open_nvml(const struct ew_sensor_config *config, void **ret_state,
                     struct ew_error *reterr)
{
    struct nvml *nvml = ew_calloc(1, sizeof *nvml);
    if (nvml == NULL)
        return ETWATCH_ENOMEM;
    int error = 0;
    nvml->library = ew_nvml_load(config->nvml_library, reterr);
    if (nvml->library == NULL)
        error = ETWATCH_ENOTSUP;
    else if (!ew_nvml_resolve(nvml->library, &nvml->api))
        error = ew_error_set(reterr, ETWATCH_ENOTSUP, 0,
                             "the NVIDIA library lacks functions that every driver has");
    if (error == 0)
        error = start_nvml(nvml, reterr);
    if (error != 0) {
        close_nvml(nvml);
        return error;
    }
    nvml->energy = config->energy;
    nvml->foreign_pids = ew_os_pids_are_foreign(config->proc_root);
    *ret_state = nvml;
    return 0;
}

/* ------------------------------------------------------------------------ processes */

static struct process *process_of(struct gpu *gpu, uint32_t pid)
{
    for (uint32_t i = 0; i < gpu->process_count; i++)
        if (gpu->processes[i].pid == pid)
            return &gpu->processes[i];
    return NULL;
}

static struct process *add_process(struct gpu *gpu, uint32_t pid)
{
    struct process *process = process_of(gpu, pid);
    if (process == NULL && gpu->process_count < PROCESSES_MAX) {
        process = &gpu->processes[gpu->process_count++];
        *process = (struct process){.pid = pid};
    }
    return process;
}

/* A process may have contexts of several kinds; NVML lists it once for each, with the same memory.
 */
static bool take_list(struct nvml *nvml, struct gpu *gpu, const struct ew_nvml_list *list)
{
    unsigned count = PROCESSES_MAX;
    if (list->get == NULL && list->get_v1 == NULL)
        return false;
    memset(&nvml->buffer, 0, sizeof nvml->buffer);
    int code = list->get != NULL ? list->get(gpu->handle, &count, nvml->buffer.list)
                                 : list->get_v1(gpu->handle, &count, nvml->buffer.list_v1);
    if (code != EW_NVML_SUCCESS)
        return false;
    for (unsigned i = 0; i < count && i < PROCESSES_MAX; i++) {
        uint32_t pid = list->get != NULL ? nvml->buffer.list[i].pid : nvml->buffer.list_v1[i].pid;
        uint64_t bytes = list->get != NULL ? nvml->buffer.list[i].used_memory
                                           : nvml->buffer.list_v1[i].used_memory;
        struct process *process = pid == 0 ? NULL : add_process(gpu, pid);
        if (process == NULL || bytes == EW_NVML_NOT_AVAILABLE || bytes >> 50 != 0)
            continue;
        process->memory_known = true;
        process->memory_bytes = bytes > process->memory_bytes ? bytes : process->memory_bytes;
    }
    return true;
}

static void list_processes(struct nvml *nvml, struct gpu *gpu)
{
    struct process *before = gpu->processes;
    uint32_t before_count = gpu->process_count;
    struct process *now = ew_calloc(PROCESSES_MAX, sizeof *now);
    if (now == NULL)
        return;
    gpu->processes = now;
    gpu->process_count = 0;
    bool listed = false;
    for (uint32_t i = 0; i < EW_NVML_LISTS; i++)
        listed |= take_list(nvml, gpu, &nvml->api.lists[i]);
    gpu->listed = listed;
    uint32_t same_count = 0;
    for (uint32_t i = 0; i < before_count; i++) {
        struct process *same = process_of(gpu, before[i].pid);
        if (same != NULL) {
            same->use = before[i].use;
            same->use_known = before[i].use_known;
            same->encoder = before[i].encoder;
            same->decoder = before[i].decoder;
            same->codec_known = before[i].codec_known;
            same_count++;
        }
    }
    if (same_count < gpu->process_count)
        gpu->utilized_ns = 0; /* a new process: its use is read at once */
    ew_free(before);
}

/* The only process of a GPU has the use of the GPU. */
static void utilize_one(struct gpu *gpu)
{
    struct process *process = &gpu->processes[0];
    const struct ew_device_reading *held = &gpu->held;
    process->use_known = gpu->utilization = true;
    process->use = gpu->util / 100;
    process->codec_known = etwatch_metric_set_has(&held->has, ETWATCH_D_encoder_percent) &&
                           etwatch_metric_set_has(&held->has, ETWATCH_D_decoder_percent);
    process->encoder = process->codec_known ? held->encoder_percent / 100 : 0;
    process->decoder = process->codec_known ? held->decoder_percent / 100 : 0;
}

/* The average of its samples; without any the process did nothing. */
static void utilize(struct process *process, const struct ew_nvml_utilization_sample *samples,
                    unsigned count)
{
    uint32_t found = 0, impossible = 0, codec_impossible = 0;
    double sum = 0, encoder = 0, decoder = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct ew_nvml_utilization_sample *sample = &samples[i];
        if (sample->pid != process->pid)
            continue;
        if (sample->sm > 100) {
            impossible++;
            continue;
        }
        found++;
        sum += sample->sm;
        codec_impossible += sample->encoder > 100 || sample->decoder > 100;
        encoder += sample->encoder;
        decoder += sample->decoder;
    }
    process->use_known = found > 0 || impossible == 0;
    process->use = found == 0 ? 0 : sum / (100.0 * found);
    process->codec_known = process->use_known && codec_impossible == 0;
    process->encoder = found == 0 || !process->codec_known ? 0 : encoder / (100.0 * found);
    process->decoder = found == 0 || !process->codec_known ? 0 : decoder / (100.0 * found);
}

static void utilize_processes(struct nvml *nvml, struct gpu *gpu)
{
    unsigned count = PROCESSES_MAX;
    if (gpu->process_count == 1 && gpu->util >= 0) {
        utilize_one(gpu);
        return;
    }
    gpu->utilization = false;
    if (nvml->api.process_utilization == NULL)
        return;
    memset(&nvml->buffer, 0, sizeof nvml->buffer);
    int code = nvml->api.process_utilization(gpu->handle, nvml->buffer.utilization, &count,
                                             gpu->process_seen_us);
    gpu->utilization = code == EW_NVML_SUCCESS || code == EW_NVML_NOT_FOUND;
    if (!gpu->utilization)
        return;
    count = code == EW_NVML_NOT_FOUND ? 0 : count < PROCESSES_MAX ? count : PROCESSES_MAX;
    for (uint32_t p = 0; p < gpu->process_count; p++)
        utilize(&gpu->processes[p], nvml->buffer.utilization, count);
    for (unsigned i = 0; i < count; i++) {
        uint64_t at_us = nvml->buffer.utilization[i].time_us;
        if (at_us > gpu->process_seen_us && at_us >> 60 == 0)
            gpu->process_seen_us = at_us;
    }
}

/* Energy is attributed only then: a use that is unknown would become 0 J. */
static bool knows_every_use(const struct gpu *gpu)
{
    bool known = gpu->process_count == 0 || gpu->utilization;
    for (uint32_t i = 0; i < gpu->process_count; i++)
        known = known && gpu->processes[i].use_known;
    return known;
}

static void put_processes(const struct gpu *gpu, uint32_t device, bool times, uint64_t now_ns,
                          uint64_t energy_uj, struct ew_sensor_batch *batch)
{
    uint64_t dt_ns = gpu->last_ns == 0 ? 0 : now_ns - gpu->last_ns;
    double uses = 0, done = 0;
    uint64_t done_uj = 0;
    for (uint32_t i = 0; i < gpu->process_count; i++)
        uses += gpu->processes[i].use_known ? gpu->processes[i].use : 0;
    for (uint32_t i = 0; i < gpu->process_count; i++) {
        const struct process *process = &gpu->processes[i];
        struct ew_device_use *use = ew_sensor_add_use(batch);
        if (use == NULL)
            return;
        use->from_ns = gpu->last_ns == 0 ? now_ns - 1 : gpu->last_ns;
        use->t_ns = now_ns;
        use->device = device;
        use->process.pid = process->pid;
        if (process->memory_known) {
            use->process.has |= ETWATCH_DEVICE_PROCESS_MEMORY;
            use->process.memory_bytes = process->memory_bytes;
        }
        if (!times || !process->use_known || dt_ns == 0)
            continue;
        use->process.has |= ETWATCH_DEVICE_PROCESS_GPU_TIME;
        use->process.gpu_ns = (uint64_t)(process->use * (double)dt_ns);
        if (process->codec_known) {
            use->process.has |= ETWATCH_DEVICE_PROCESS_CODEC_TIME;
            use->process.encoder_ns = (uint64_t)(process->encoder * (double)dt_ns);
            use->process.decoder_ns = (uint64_t)(process->decoder * (double)dt_ns);
        }
        if (energy_uj == UINT64_MAX || !(uses > 0))
            continue;
        done += process->use;
        uint64_t up_to = (uint64_t)((double)energy_uj * (done / uses));
        up_to = up_to < energy_uj ? up_to : energy_uj;
        use->process.has |= ETWATCH_DEVICE_PROCESS_ENERGY;
        use->process.energy_uj = up_to - done_uj;
        done_uj = up_to;
    }
}

/* -------------------------------------------------------------------------- devices */

static bool fits(double value, double max)
{
    return value >= 0 && value <= max;
}

/* Whether it is time again; then *last_ns moves on. */
static bool is_due(uint64_t *last_ns, uint64_t now_ns, uint64_t every_ns)
{
    if (*last_ns != 0 && now_ns - *last_ns < every_ns)
        return false;
    *last_ns = now_ns;
    return true;
}

static void read_rates(const struct nvml *nvml, struct gpu *gpu)
{
    struct ew_nvml_rates rates = {0, 0};
    bool known = nvml->api.rates != NULL && nvml->api.rates(gpu->handle, &rates) == EW_NVML_SUCCESS;
    gpu->util = known && rates.gpu <= 100 ? (double)rates.gpu : -1;
    etwatch_metric_set_remove(&gpu->held.has, ETWATCH_D_util_percent);
    etwatch_metric_set_remove(&gpu->held.has, ETWATCH_D_memory_util_percent);
    if (gpu->util >= 0)
        EW_DEVICE_PUT(&gpu->held, util_percent, gpu->util);
    if (known && rates.memory <= 100)
        EW_DEVICE_PUT(&gpu->held, memory_util_percent, rates.memory);
}

static int read_memory(const struct nvml *nvml, const struct gpu *gpu,
                       struct ew_device_reading *out)
{
    struct ew_nvml_memory_v2 memory = {.version = EW_NVML_MEMORY_V2};
    struct ew_nvml_memory old = {0, 0, 0};
    int code = EW_NVML_NOT_SUPPORTED;
    if (nvml->api.memory_v2 != NULL)
        code = nvml->api.memory_v2(gpu->handle, &memory);
    if (code != EW_NVML_SUCCESS && !is_gone(code) && nvml->api.memory != NULL) {
        code = nvml->api.memory(gpu->handle, &old);
        memory.total = old.total;
        memory.used = old.used;
    }
    if (code != EW_NVML_SUCCESS || memory.total == 0 || memory.total >> 50 != 0 ||
        memory.used > memory.total)
        return code;
    EW_DEVICE_PUT(out, memory_used_bytes, memory.used);
    EW_DEVICE_PUT(out, memory_total_bytes, memory.total);
    return code;
}

/* The momentary power; older drivers have an average, which costs more. */
static int read_power(struct nvml *nvml, struct gpu *gpu, uint64_t now_ns)
{
    struct ew_nvml_field field = {.id = EW_NVML_FIELD_POWER_INSTANT};
    unsigned value = 0;
    int code = EW_NVML_NOT_SUPPORTED;
    if (nvml->api.fields != NULL && !gpu->no_fields) {
        code = nvml->api.fields(gpu->handle, 1, &field);
        code = code == EW_NVML_SUCCESS ? field.code : code;
        value = field.value.u32;
        gpu->no_fields = code != EW_NVML_SUCCESS && !is_gone(code);
    }
    if (gpu->no_fields || nvml->api.fields == NULL) {
        if (!is_due(&gpu->power_ns, now_ns, figures_every_ns))
            return gpu->power_code;
        code =
            nvml->api.power == NULL ? EW_NVML_NOT_SUPPORTED : nvml->api.power(gpu->handle, &value);
    }
    gpu->power_code = code;
    gpu->power_mw = code == EW_NVML_SUCCESS && fits(value, 2e7) ? (double)value : -1;
    return code;
}

static void read_clock(const struct nvml *nvml, struct gpu *gpu)
{
    unsigned value = 0;
    struct ew_device_reading *held = &gpu->held;
    if (nvml->api.clock == NULL)
        return;
    if (nvml->api.clock(gpu->handle, EW_NVML_CLOCK_SM, &value) == EW_NVML_SUCCESS && value < 100000)
        EW_DEVICE_PUT(held, clock_mhz, value);
    if (nvml->api.clock(gpu->handle, EW_NVML_CLOCK_MEMORY, &value) == EW_NVML_SUCCESS &&
        value < 100000)
        EW_DEVICE_PUT(held, memory_clock_mhz, value);
}

/* What changes slowly. */
static void read_slow(const struct nvml *nvml, struct gpu *gpu)
{
    unsigned value = 0, period_us = 0;
    unsigned long long reasons = 0;
    struct ew_device_reading *held = &gpu->held;
    static const uint32_t values[] = {ETWATCH_D_temperature_celsius, ETWATCH_D_clock_mhz,
                                      ETWATCH_D_memory_clock_mhz,    ETWATCH_D_encoder_percent,
                                      ETWATCH_D_decoder_percent,     ETWATCH_D_throttle_reasons};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        etwatch_metric_set_remove(&held->has, values[i]);
    if (nvml->api.temperature != NULL &&
        nvml->api.temperature(gpu->handle, 0, &value) == EW_NVML_SUCCESS && value <= 200)
        EW_DEVICE_PUT(held, temperature_celsius, value);
    read_clock(nvml, gpu);
    if (nvml->api.encoder != NULL &&
        nvml->api.encoder(gpu->handle, &value, &period_us) == EW_NVML_SUCCESS && value <= 100)
        EW_DEVICE_PUT(held, encoder_percent, value);
    if (nvml->api.decoder != NULL &&
        nvml->api.decoder(gpu->handle, &value, &period_us) == EW_NVML_SUCCESS && value <= 100)
        EW_DEVICE_PUT(held, decoder_percent, value);
    if (nvml->api.throttle != NULL &&
        nvml->api.throttle(gpu->handle, &reasons) == EW_NVML_SUCCESS && reasons >> 32 == 0)
        EW_DEVICE_PUT(held, throttle_reasons, reasons);
}

static void read_pcie(const struct nvml *nvml, struct gpu *gpu)
{
    unsigned kilobytes = 0;
    gpu->pcie_received = gpu->pcie_sent = -1;
    if (nvml->api.pcie == NULL)
        return;
    if (nvml->api.pcie(gpu->handle, EW_NVML_PCIE_SENT, &kilobytes) == EW_NVML_SUCCESS)
        gpu->pcie_sent = 1024.0 * kilobytes;
    if (nvml->api.pcie(gpu->handle, EW_NVML_PCIE_RECEIVED, &kilobytes) == EW_NVML_SUCCESS)
        gpu->pcie_received = 1024.0 * kilobytes;
}

/* Counters of all links together. A GPU without NVLink is queried once. */
static void put_nvlink(const struct nvml *nvml, struct gpu *gpu, uint64_t now_ns,
                       struct ew_device_reading *out)
{
    struct ew_nvml_field fields[2] = {
        {.id = EW_NVML_FIELD_NVLINK_RECEIVED, .scope = EW_NVML_ALL_LINKS},
        {.id = EW_NVML_FIELD_NVLINK_SENT, .scope = EW_NVML_ALL_LINKS}};
    if (nvml->api.fields == NULL || gpu->no_nvlink ||
        !is_due(&gpu->nvlink_ns, now_ns, figures_every_ns))
        return;
    int code = nvml->api.fields(gpu->handle, 2, fields);
    bool known = code == EW_NVML_SUCCESS && fields[0].code == EW_NVML_SUCCESS &&
                 fields[1].code == EW_NVML_SUCCESS && fields[0].value.u64 >> 50 == 0 &&
                 fields[1].value.u64 >> 50 == 0;
    gpu->no_nvlink = !known && !gpu->nvlink_known;
    bool grew = known && gpu->nvlink_known && fields[0].value.u64 >= gpu->nvlink_kib[0] &&
                fields[1].value.u64 >= gpu->nvlink_kib[1];
    if (grew) {
        EW_DEVICE_PUT(out, nvlink_received_bytes, (fields[0].value.u64 - gpu->nvlink_kib[0]) << 10);
        EW_DEVICE_PUT(out, nvlink_sent_bytes, (fields[1].value.u64 - gpu->nvlink_kib[1]) << 10);
    }
    gpu->nvlink_known = known;
    gpu->nvlink_kib[0] = fields[0].value.u64;
    gpu->nvlink_kib[1] = fields[1].value.u64;
}

/* Compares the counter with what was reported. It restarts with the driver. */
static void read_counter(const struct nvml *nvml, struct gpu *gpu, uint64_t now_ns)
{
    unsigned long long now_mj = 0;
    bool known = nvml->api.energy != NULL &&
                 nvml->api.energy(gpu->handle, &now_mj) == EW_NVML_SUCCESS && now_mj >> 50 == 0;
    /* More than 20 kW cannot be. */
    double most_mj = 2e7 * ((double)(now_ns - gpu->energy_ns) / 1e9) + 1e6;
    bool grew = known && gpu->energy_known && now_mj >= gpu->energy_mj &&
                (double)(now_mj - gpu->energy_mj) <= most_mj;
    /* The first reading of a new pair of numbers only starts them. */
    gpu->energy_debt_uj = grew ? (double)(now_mj - gpu->energy_mj) * 1000 - gpu->energy_sum_uj : 0;
    gpu->energy_sum_uj = -gpu->energy_debt_uj;
    gpu->energy_known = known;
    gpu->energy_mj = now_mj;
    gpu->energy_ns = now_ns;
}

/* Energy since the last reading; UINT64_MAX: unknown. */
static uint64_t read_energy(const struct nvml *nvml, struct gpu *gpu, uint64_t now_ns, bool last)
{
    uint64_t every_ns = nvml->energy ? counter_every_ns : rare_counter_every_ns;
    double dt_ns = gpu->last_ns == 0 ? 0 : (double)(now_ns - gpu->last_ns);
    double energy_uj = gpu->power_mw < 0 ? 0 : gpu->power_mw * dt_ns / 1e6;
    bool due = gpu->energy_ns == 0 || now_ns - gpu->energy_ns >= every_ns ||
               (last && nvml->energy) || gpu->power_mw < 0;
    if (gpu->last_ns != 0)
        gpu->energy_sum_uj += energy_uj;
    if (due)
        read_counter(nvml, gpu, now_ns);
    if (gpu->last_ns == 0 || (gpu->power_mw < 0 && !gpu->energy_known))
        return UINT64_MAX;
    /* Half of it at most, so that the difference of seconds is no spike; all of it at the end. */
    double share_uj = gpu->energy_debt_uj, most_uj = energy_uj / 2;
    if (!last && gpu->power_mw >= 0)
        share_uj = share_uj > most_uj ? most_uj : share_uj < -most_uj ? -most_uj : share_uj;
    if (energy_uj + share_uj < 0)
        share_uj = -energy_uj;
    gpu->energy_debt_uj -= share_uj;
    uint64_t whole_uj = (uint64_t)(energy_uj + share_uj);
    gpu->energy_sum_uj += (double)whole_uj - energy_uj;
    return whole_uj;
}

/* The first reading has no energy yet, but its power is often that of the idle GPU: use is an
 * average of the past, so when work begins the power rises before it. */
static void learn_idle_power(struct gpu *gpu)
{
    if (gpu->last_ns == 0 && gpu->util >= 0 && gpu->power_mw >= 0)
        (void)ew_idle_power_split(&gpu->idle, (uint64_t)(gpu->power_mw * 1000), 1000 * MS_NS,
                                  gpu->util / 100);
}

static void put_energy(const struct nvml *nvml, struct gpu *gpu, uint64_t now_ns, bool last,
                       struct ew_device_reading *out, uint64_t *ret_above_uj)
{
    learn_idle_power(gpu);
    uint64_t energy_uj = read_energy(nvml, gpu, now_ns, last);
    if (energy_uj == UINT64_MAX)
        return;
    EW_DEVICE_PUT(out, energy_uj, energy_uj);
    if (gpu->power_mw >= 0)
        etwatch_metric_set_add(&out->estimated, ETWATCH_D_energy_uj);
    if (gpu->util < 0)
        return;
    uint64_t idle_uj =
        ew_idle_power_split(&gpu->idle, energy_uj, now_ns - gpu->last_ns, gpu->util / 100);
    EW_DEVICE_PUT(out, idle_energy_uj, idle_uj);
    etwatch_metric_set_add(&out->estimated, ETWATCH_D_idle_energy_uj);
    *ret_above_uj = energy_uj - idle_uj;
}

static void put_held(const struct gpu *gpu, struct ew_device_reading *out)
{
#define ETWATCH_X(name, type, kind)                               \
    if (etwatch_metric_set_has(&gpu->held.has, ETWATCH_D_##name)) \
        EW_DEVICE_PUT(out, name, gpu->held.name);
    ETWATCH_DEVICE_METRICS(ETWATCH_X)
#undef ETWATCH_X
}

/* The figures of a whole GPU. Returns the code that says whether the GPU is there. */
static int read_figures(struct nvml *nvml, struct gpu *gpu, uint64_t now_ns, bool last,
                        struct ew_device_reading *out, uint64_t *ret_above_uj)
{
    int code = read_power(nvml, gpu, now_ns);
    if (is_gone(code))
        return code;
    if (gpu->power_mw >= 0)
        EW_DEVICE_PUT(out, power_watts, gpu->power_mw / 1000);
    if (is_due(&gpu->rates_ns, now_ns, rates_every_ns))
        read_rates(nvml, gpu);
    if (is_due(&gpu->figures_ns, now_ns, figures_every_ns))
        read_slow(nvml, gpu);
    if (is_due(&gpu->pcie_ns, now_ns, pcie_every_ns))
        read_pcie(nvml, gpu);
    put_held(gpu, out);
    if (gpu->pcie_received >= 0)
        EW_DEVICE_PUT(out, pcie_received_bytes_per_second, gpu->pcie_received);
    if (gpu->pcie_sent >= 0)
        EW_DEVICE_PUT(out, pcie_sent_bytes_per_second, gpu->pcie_sent);
    put_nvlink(nvml, gpu, now_ns, out);
    put_energy(nvml, gpu, now_ns, last, out, ret_above_uj);
    return code;
}

/* Nothing of a lost GPU is known, and its counters start anew. */
static void forget(struct gpu *gpu, struct ew_device_reading *out)
{
    out->from_ns = gpu->last_ns = 0;
    memset(&out->has, 0, sizeof out->has);
    memset(&out->estimated, 0, sizeof out->estimated);
    out->by_uses = false;
    gpu->process_count = 0;
    gpu->energy_known = gpu->nvlink_known = false;
    gpu->energy_sum_uj = gpu->energy_debt_uj = 0;
}

/* Returns the code that says whether the GPU and its driver are there. */
static int read_gpu(struct nvml *nvml, struct gpu *gpu, uint32_t index, uint64_t now_ns,
                    struct ew_sensor_batch *batch)
{
    struct ew_device_reading *out = ew_sensor_add_device(batch);
    uint32_t device = batch->device_count - 1;
    uint64_t above_uj = UINT64_MAX;
    if (out == NULL)
        return EW_NVML_SUCCESS;
    out->kind = ETWATCH_DEVICE_GPU;
    out->index = index;
    out->t_ns = now_ns;
    out->from_ns = gpu->last_ns;
    (void)snprintf(out->driver, sizeof out->driver, "nvml");
    memcpy(out->id, gpu->id, sizeof out->id);
    memcpy(out->name, gpu->name, sizeof out->name);
    int code = gpu->instance ? EW_NVML_SUCCESS
                             : read_figures(nvml, gpu, now_ns, batch->last, out, &above_uj);
    if (!is_gone(code) && !is_unloaded(code)) {
        int memory_code = read_memory(nvml, gpu, out);
        bool unknown = code == EW_NVML_UNKNOWN && memory_code == EW_NVML_UNKNOWN;
        code = unknown                                            ? EW_NVML_GPU_IS_LOST
               : is_gone(memory_code) || is_unloaded(memory_code) ? memory_code
                                                                  : code;
    }
    gpu->lost = is_gone(code);
    if (gpu->lost || is_unloaded(code)) {
        forget(gpu, out);
        return code;
    }
    if (!gpu->partitioned && (gpu->listed_ns == 0 || now_ns - gpu->listed_ns >= list_every_ns)) {
        gpu->listed_ns = now_ns;
        list_processes(nvml, gpu);
    }
    bool alone = gpu->process_count == 1 && gpu->util >= 0;
    bool due = alone || gpu->utilized_ns == 0 || now_ns - gpu->utilized_ns >= utilization_every_ns;
    if (!gpu->instance && gpu->process_count > 0 && due) {
        gpu->utilized_ns = now_ns;
        utilize_processes(nvml, gpu);
    }
    if (gpu->listed)
        EW_DEVICE_PUT(out, processes, gpu->process_count);
    if (gpu->listed && !nvml->foreign_pids) {
        out->by_uses = above_uj != UINT64_MAX && knows_every_use(gpu);
        put_processes(gpu, device, gpu->utilization, now_ns, out->by_uses ? above_uj : UINT64_MAX,
                      batch);
    }
    gpu->last_ns = now_ns;
    return code;
}

/* Counts the GPUs now and then. An error: they are others than before, or the driver is gone. */
static int check_count(struct nvml *nvml, uint64_t now_ns, struct ew_error *reterr)
{
    if (nvml->counted_ns == 0)
        nvml->counted_ns = now_ns; /* they were counted when it was opened */
    if (now_ns - nvml->counted_ns < count_every_ns)
        return 0;
    int count = count_gpus(nvml, reterr);
    nvml->counted_ns = now_ns;
    if (count < 0)
        return count;
    if ((uint32_t)count != nvml->driver_count)
        return ew_error_set(reterr, ETWATCH_ESTATE, 0,
                            "the number of GPUs changed from %u to %d: starting again",
                            nvml->driver_count, count);
    return 0;
}

/* One text for as long as the same GPU is lost, with a handle or without: it is reported once. */
static void put_lost(struct ew_sensor_batch *batch, uint32_t number, const char *text)
{
    if (batch->problem[0] == '\0')
        (void)snprintf(batch->problem, sizeof batch->problem, "GPU %u: %.200s", number, text);
}

/* Starts the library again while a GPU is lost: a reset GPU comes back only then. */
static int look_for_lost(struct nvml *nvml, uint64_t now_ns, struct ew_error *reterr)
{
    if (nvml->lost_ns == 0 || now_ns - nvml->lost_ns < restart_every_ns)
        return 0;
    nvml->lost_ns = now_ns;
    drop_gpus(nvml);
    (void)nvml->api.shutdown();
    nvml->started = false;
    return start_nvml(nvml, reterr);
}

static int read_nvml(void *state, uint64_t now_ns, struct ew_sensor_batch *batch,
                     struct ew_error *reterr)
{
    struct nvml *nvml = state;
    bool lost = false;
    int error = look_for_lost(nvml, now_ns, reterr);
    if (error == 0)
        error = check_count(nvml, now_ns, reterr);
    if (error != 0)
        return error;
    if (nvml->missing > 0)
        put_lost(batch, nvml->number, nvml->missing_text);
    for (uint32_t i = 0; i < nvml->count; i++) {
        int code = read_gpu(nvml, &nvml->gpus[i], i, now_ns, batch);
        if (is_unloaded(code))
            return ew_error_set(reterr, ETWATCH_EOS, code, "the NVIDIA driver is gone: %s",
                                text_of(&nvml->api, code));
        lost = lost || is_gone(code);
        if (is_gone(code))
            put_lost(batch, nvml->gpus[i].number, text_of(&nvml->api, code));
    }
    if (nvml->foreign_pids && batch->problem[0] == '\0')
        (void)snprintf(batch->problem, sizeof batch->problem,
                       "in a container NVML has the process ids of the host: GPU time and memory "
                       "of processes are unknown");
    lost = lost || nvml->missing > 0;
    nvml->lost_ns = !lost ? 0 : nvml->lost_ns == 0 ? now_ns : nvml->lost_ns;
    return 0;
}

const struct ew_sensor_ops ew_sensor_nvml = {
    .name = "nvml",
    .kinds = 1u << ETWATCH_DEVICE_GPU | 1u << ETWATCH_DEVICE_ENERGY,
    .min_period_ns = 20 * MS_NS,
    .metrics =
        EW_METRIC_SET(ETWATCH_M_gpu_ns, ETWATCH_M_gpu_percent, ETWATCH_M_gpu_memory_bytes,
                      ETWATCH_M_energy_uj, ETWATCH_M_gpu_encoder_ns, ETWATCH_M_gpu_decoder_ns),
    .estimated = EW_METRIC_SET(ETWATCH_M_gpu_ns, ETWATCH_M_gpu_percent, ETWATCH_M_energy_uj,
                               ETWATCH_M_gpu_encoder_ns, ETWATCH_M_gpu_decoder_ns),
    .probe = probe,
    .open = open_nvml,
    .close = close_nvml,
    .read = read_nvml,
};
