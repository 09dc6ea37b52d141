/* SPDX-License-Identifier: MIT */
/* Names of kinds of devices. */
#include "model/device.h"

#include <stddef.h>

const char *etwatch_device_kind_name(uint32_t kind)
{
    switch (kind) {
    case ETWATCH_DEVICE_GPU:
        return "gpu";
    case ETWATCH_DEVICE_NPU:
        return "npu";
    case ETWATCH_DEVICE_ENERGY:
        return "energy";
    default:
        return NULL;
    }
}
