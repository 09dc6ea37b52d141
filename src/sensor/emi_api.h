/* SPDX-License-Identifier: MIT */
/* The functions of Windows that emi.c calls, as a table, so that tests can put a fake in their
 * place. The first argument is the table's ctx. */
#ifndef EW_SENSOR_EMI_API_H
#define EW_SENSOR_EMI_API_H

#include <stdbool.h>
#include <stdint.h>

/* IOCTL_EMI_GET_VERSION (u16), _METADATA_SIZE (u32), _METADATA, _MEASUREMENT. */
enum ew_emi_code {
    EW_EMI_VERSION = 0x224000,
    EW_EMI_METADATA_SIZE = 0x224004,
    EW_EMI_METADATA = 0x224008,
    EW_EMI_MEASUREMENT = 0x22400C,
};

/* EMI_CHANNEL_MEASUREMENT_DATA, one per channel. */
struct ew_emi_measurement {
    uint64_t energy_pwh; /* picowatt-hours */
    uint64_t time_100ns;
};

struct ew_emi_battery {
    bool discharging, rate_known;
    uint32_t rate_mw; /* of the discharge */
};

struct ew_emi_api {
    void *ctx;
    /* The energy meter with this index; false: there are no more. *ret_meter NULL: it cannot be
     * opened, *ret_error says why. */
    bool (*open)(void *ctx, uint32_t index, void **ret_meter, uint32_t *ret_error);
    /* 0, or the error of Windows. */
    uint32_t (*control)(void *ctx, void *meter, uint32_t code, void *out, uint32_t size,
                        uint32_t *ret_size);
    void (*close)(void *ctx, void *meter);
    /* Since the start of the machine, summed over its processors. */
    bool (*cpu_times)(void *ctx, uint64_t *ret_busy_100ns, uint64_t *ret_all_100ns);
    uint32_t (*cpu_count)(void *ctx);
    /* False: there is no battery. */
    bool (*battery)(void *ctx, struct ew_emi_battery *ret_battery);
};

/* NULL: this system is not Windows. */
const struct ew_emi_api *ew_emi_real_api(void);

#endif
