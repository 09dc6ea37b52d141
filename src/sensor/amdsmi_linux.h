/* SPDX-License-Identifier: MIT */
/*
 * Energy counters of AMD GPUs through AMD SMI, the library of ROCm, loaded at run time: amdgpu has
 * no file with such a counter. It is loaded only on request, because it leaves locks in /dev/shm
 * and prints where it fails. One thread calls it.
 */
#ifndef EW_SENSOR_AMDSMI_H
#define EW_SENSOR_AMDSMI_H

#include <stdbool.h>
#include <stddef.h>

struct ew_amdsmi;

/* NULL: *ret_problem (size bytes) says why. */
struct ew_amdsmi *ew_amdsmi_open(const char *library, char *ret_problem, size_t size);
/* NULL is fine. */
void ew_amdsmi_close(struct ew_amdsmi *amdsmi);
/* The counter of the GPU with this PCI address ("0000:03:00.0"). False: unknown. */
bool ew_amdsmi_energy(struct ew_amdsmi *amdsmi, const char *pci_address, double *ret_uj);

#endif
