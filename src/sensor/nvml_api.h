/* SPDX-License-Identifier: MIT */
/*
 * The part of NVML's binary interface that etwatch calls, declared here because NVIDIA's header is
 * not needed to build. Layouts and numbers are those of nvml.h as NVIDIA publishes it with CUDA 12
 * and 13 (also in the Python package nvidia-ml-py); they are stable, and later layouts have
 * functions with other names.
 */
#ifndef EW_SENSOR_NVML_API_H
#define EW_SENSOR_NVML_API_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct ew_nvml_device; /* opaque */
struct ew_os_library;

enum {
    EW_NVML_SUCCESS = 0,
    EW_NVML_UNINITIALIZED = 1,
    EW_NVML_NOT_SUPPORTED = 3,
    EW_NVML_NOT_FOUND = 6,
    EW_NVML_DRIVER_NOT_LOADED = 9,
    EW_NVML_GPU_IS_LOST = 15,
    EW_NVML_RESET_REQUIRED = 16,
    EW_NVML_UNKNOWN = 999,
};
enum { EW_NVML_SAMPLES_POWER = 0, EW_NVML_SAMPLES_GPU = 1 };
enum { EW_NVML_VALUE_DOUBLE = 0, EW_NVML_VALUE_UINT = 1 };
enum { EW_NVML_CLOCK_SM = 1, EW_NVML_CLOCK_MEMORY = 2 };
enum { EW_NVML_PCIE_SENT = 0, EW_NVML_PCIE_RECEIVED = 1 };
/* Memory of a process under Windows' display driver model. */
#define EW_NVML_NOT_AVAILABLE UINT64_MAX

struct ew_nvml_rates {
    unsigned gpu, memory; /* per cent */
};
struct ew_nvml_memory {
    unsigned long long total, free, used;
};
struct ew_nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
#define EW_NVML_MEMORY_V2 ((unsigned)sizeof(struct ew_nvml_memory_v2) | 2u << 24)
struct ew_nvml_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};
struct ew_nvml_process { /* of the functions _v2 and _v3 */
    unsigned pid;
    unsigned long long used_memory;
    unsigned gpu_instance, compute_instance;
};
struct ew_nvml_process_v1 {
    unsigned pid;
    unsigned long long used_memory;
};
struct ew_nvml_utilization_sample {
    unsigned pid;
    unsigned long long time_us;
    unsigned sm, memory, encoder, decoder; /* per cent */
};
struct ew_nvml_sample {
    unsigned long long time_us;
    union {
        double real;
        unsigned u32;
        unsigned long long u64;
    } value;
};
_Static_assert(sizeof(struct ew_nvml_process) == 24 && sizeof(struct ew_nvml_process_v1) == 16 &&
                   sizeof(struct ew_nvml_utilization_sample) == 32 &&
                   sizeof(struct ew_nvml_memory_v2) == 40 && sizeof(struct ew_nvml_pci) == 68 &&
                   sizeof(struct ew_nvml_sample) == 16,
               "layouts of nvml.h");

struct ew_nvml_field {
    unsigned id, scope;
    long long time_us, latency_us;
    int value_type, code;
    union {
        double real;
        unsigned u32;
        unsigned long long u64;
    } value;
};
enum {
    EW_NVML_FIELD_NVLINK_SENT = 138,     /* in KiB since the driver was loaded */
    EW_NVML_FIELD_NVLINK_RECEIVED = 139, /* likewise */
    EW_NVML_FIELD_POWER_INSTANT = 186,   /* in mW; since driver 530 */
};
#define EW_NVML_ALL_LINKS UINT32_MAX /* scope of the fields of NVLink */
_Static_assert(sizeof(struct ew_nvml_field) == 40, "layout of nvml.h");

enum { EW_NVML_LISTS = 3 }; /* compute, graphics, MPS */
struct ew_nvml_list {
    int (*get)(struct ew_nvml_device *device, unsigned *count, struct ew_nvml_process *list);
    int (*get_v1)(struct ew_nvml_device *device, unsigned *count, struct ew_nvml_process_v1 *list);
};

/* NULL: this driver does not have it. The first four are always there. */
struct ew_nvml_api {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *count);
    int (*handle)(unsigned index, struct ew_nvml_device **device);
    const char *(*error_string)(int code);
    int (*name)(struct ew_nvml_device *device, char *name, unsigned length);
    int (*pci)(struct ew_nvml_device *device, struct ew_nvml_pci *pci);
    int (*memory_v2)(struct ew_nvml_device *device, struct ew_nvml_memory_v2 *memory);
    int (*memory)(struct ew_nvml_device *device, struct ew_nvml_memory *memory);
    int (*rates)(struct ew_nvml_device *device, struct ew_nvml_rates *rates);
    int (*encoder)(struct ew_nvml_device *device, unsigned *percent, unsigned *period_us);
    int (*decoder)(struct ew_nvml_device *device, unsigned *percent, unsigned *period_us);
    int (*power)(struct ew_nvml_device *device, unsigned *milliwatts);
    int (*temperature)(struct ew_nvml_device *device, int sensor, unsigned *celsius);
    int (*clock)(struct ew_nvml_device *device, int type, unsigned *mhz);
    int (*energy)(struct ew_nvml_device *device, unsigned long long *millijoules);
    int (*throttle)(struct ew_nvml_device *device, unsigned long long *reasons);
    int (*pcie)(struct ew_nvml_device *device, int counter, unsigned *kilobytes_per_second);
    int (*samples)(struct ew_nvml_device *device, int type, unsigned long long last_seen_us,
                   int *value_type, unsigned *count, struct ew_nvml_sample *samples);
    int (*process_utilization)(struct ew_nvml_device *device,
                               struct ew_nvml_utilization_sample *samples, unsigned *count,
                               unsigned long long last_seen_us);
    int (*fields)(struct ew_nvml_device *device, int count, struct ew_nvml_field *fields);
    int (*mig_mode)(struct ew_nvml_device *device, unsigned *current, unsigned *pending);
    int (*mig_handle)(struct ew_nvml_device *device, unsigned index,
                      struct ew_nvml_device **instance);
    struct ew_nvml_list lists[EW_NVML_LISTS];
};

/* Loads the library: path, or NULL where the driver installs it. NULL: *reterr says why. */
struct ew_os_library *ew_nvml_load(const char *path, struct ew_error *reterr);
/* False: a function is missing that every driver has. */
bool ew_nvml_resolve(struct ew_os_library *library, struct ew_nvml_api *ret_api);

#endif
