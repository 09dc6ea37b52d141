/* SPDX-License-Identifier: MIT */
/*
 * One GPU that two sensors read. On Windows the graphics kernel counts exactly what each process
 * does on a GPU, and NVIDIA's driver estimates the same: only the former may count. Both name the
 * GPU by its PCI address.
 */
#ifndef EW_SENSOR_OVERLAP_H
#define EW_SENSOR_OVERLAP_H

#include "sensor/sensor.h"

enum { EW_OVERLAP_MAX = 64 };

struct ew_overlap {
    char ids[EW_OVERLAP_MAX][EW_DEVICE_ID_SIZE]; /* of GPUs that wddm reads */
    uint32_t count;
};

/* Notes the GPUs of a batch of wddm; removes time and memory of processes from one of nvml where
 * wddm reads the same GPU. Energy stays. */
void ew_overlap_apply(struct ew_overlap *overlap, struct ew_sensor_batch *batch);

#endif
