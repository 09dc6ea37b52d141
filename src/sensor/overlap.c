/* SPDX-License-Identifier: MIT */
#include "sensor/overlap.h"

#include <string.h>

/* "0000:01:00.0" and NVML's "00000000:01:00.0"; Windows does not report the domain. */
static bool is_same_address(const char *a, const char *b)
{
    const char *x = strchr(a, ':'), *y = strchr(b, ':');
    if (x == NULL || y == NULL)
        return false;
    for (; *x != '\0' && *y != '\0'; x++, y++) {
        char p = *x >= 'A' && *x <= 'F' ? (char)(*x - 'A' + 'a') : *x;
        char q = *y >= 'A' && *y <= 'F' ? (char)(*y - 'A' + 'a') : *y;
        if (p != q)
            return false;
    }
    return *x == *y;
}

static bool is_known(const struct ew_overlap *overlap, const char *id)
{
    for (uint32_t i = 0; i < overlap->count; i++)
        if (is_same_address(overlap->ids[i], id))
            return true;
    return false;
}

void ew_overlap_apply(struct ew_overlap *overlap, struct ew_sensor_batch *batch)
{
    const uint32_t doubled = ETWATCH_DEVICE_PROCESS_GPU_TIME | ETWATCH_DEVICE_PROCESS_MEMORY |
                             ETWATCH_DEVICE_PROCESS_CODEC_TIME;
    if (strcmp(batch->sensor, "wddm") == 0) {
        for (uint32_t i = 0; i < batch->device_count && overlap->count < EW_OVERLAP_MAX; i++)
            if (!is_known(overlap, batch->devices[i].id))
                memcpy(overlap->ids[overlap->count++], batch->devices[i].id, EW_DEVICE_ID_SIZE);
        return;
    }
    if (overlap->count == 0 || strcmp(batch->sensor, "nvml") != 0)
        return;
    for (uint32_t i = 0; i < batch->use_count; i++) {
        struct ew_device_use *use = &batch->uses[i];
        if (use->device >= batch->device_count ||
            !is_known(overlap, batch->devices[use->device].id))
            continue;
        use->process.has &= ~doubled;
        use->process.gpu_ns = use->process.memory_bytes = 0;
        use->process.encoder_ns = use->process.decoder_ns = 0;
    }
}
