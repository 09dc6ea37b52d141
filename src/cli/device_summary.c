/* SPDX-License-Identifier: MIT */
/*
 * The devices of a run in a few lines: energy of each meter and the part that the command caused,
 * GPU and NPU time, and peak GPU memory. Owns the sums; devices beyond the maximum are not listed.
 */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/cli.h"

static struct ew_device_sum *find(struct ew_device_summary *summary,
                                  const struct etwatch_device *device)
{
    const char *id = device->id != NULL ? device->id : "";
    for (uint32_t i = 0; i < summary->count; i++)
        if (summary->sums[i].kind == device->kind && strcmp(summary->sums[i].id, id) == 0)
            return &summary->sums[i];
    if (summary->count == EW_DEVICE_SUMS_MAX)
        return NULL;
    struct ew_device_sum *sum = &summary->sums[summary->count++];
    sum->kind = device->kind;
    (void)snprintf(sum->id, sizeof sum->id, "%s", id);
    (void)snprintf(sum->name, sizeof sum->name, "%s", device->name != NULL ? device->name : "");
    return sum;
}

void ew_cli_devices_add(struct ew_device_summary *summary, const struct etwatch_device *device)
{
    if ((device->flags & ETWATCH_DEVICE_PROBLEM) != 0)
        return;
    struct ew_device_sum *sum = find(summary, device);
    if (sum == NULL)
        return;
    if (etwatch_device_has(device, ETWATCH_D_energy_uj)) {
        sum->has_energy = true;
        sum->energy_uj += device->energy_uj;
    }
    if (etwatch_device_has(device, ETWATCH_D_watched_energy_uj)) {
        sum->has_parts = true;
        sum->idle_uj += device->idle_energy_uj;
        sum->watched_uj += device->watched_energy_uj;
        sum->other_uj += device->other_energy_uj;
    }
}

/* Samples of one interval come together, so the memory of all processes is a sum over equal times.
 */
void ew_cli_devices_sample(struct ew_device_summary *summary, const struct etwatch_sample *sample)
{
    if (sample->type == ETWATCH_TYPE_EXIT) {
        summary->has_gpu |= etwatch_sample_has(sample, ETWATCH_M_gpu_ns) != 0;
        summary->has_npu |= etwatch_sample_has(sample, ETWATCH_M_npu_ns) != 0;
        if (etwatch_sample_has(sample, ETWATCH_M_gpu_ns))
            summary->gpu_ns += sample->gpu_ns;
        if (etwatch_sample_has(sample, ETWATCH_M_npu_ns))
            summary->npu_ns += sample->npu_ns;
    }
    if (sample->type != ETWATCH_TYPE_SAMPLE ||
        !etwatch_sample_has(sample, ETWATCH_M_gpu_memory_bytes))
        return;
    summary->memory_bytes = sample->t_ns == summary->memory_ns
                                ? summary->memory_bytes + sample->gpu_memory_bytes
                                : sample->gpu_memory_bytes;
    summary->memory_ns = sample->t_ns;
    if (summary->memory_bytes > summary->memory_peak_bytes)
        summary->memory_peak_bytes = summary->memory_bytes;
}

static void put_time(struct ew_buf *out, const char *label, uint64_t ns, bool estimated)
{
    ew_buf_text(out, label);
    ew_units_ns(out, ns);
    ew_buf_text(out, estimated ? " (estimate)" : "");
}

static void put_energy(struct ew_buf *out, const struct ew_device_sum *sum, const char *command)
{
    ew_buf_text(out, "energy of ");
    (void)ew_buf_screen(out, sum->id, strlen(sum->id), 60);
    ew_buf_text(out, ": ");
    ew_cli_put_joules(out, sum->energy_uj);
    if (sum->has_parts) {
        ew_buf_text(out, " (idle ");
        ew_cli_put_joules(out, sum->idle_uj);
        ew_buf_text(out, ", ");
        (void)ew_buf_screen(out, command, strlen(command), 60);
        ew_buf_char(out, ' ');
        ew_cli_put_joules(out, sum->watched_uj);
        ew_buf_text(out, ", others ");
        ew_cli_put_joules(out, sum->other_uj);
        ew_buf_text(out, "; estimate)");
    }
    ew_buf_char(out, '\n');
}

void ew_cli_devices_write(const struct ew_device_summary *summary, const char *command,
                          const struct etwatch_metric_set *estimated, struct ew_buf *out)
{
    bool parts = false;
    if (summary->has_gpu || summary->memory_peak_bytes > 0) {
        put_time(out, "GPU time ", summary->gpu_ns,
                 etwatch_metric_set_has(estimated, ETWATCH_M_gpu_ns));
        ew_buf_text(out, ", peak GPU memory ");
        if (summary->memory_ns != 0)
            ew_units_bytes(out, summary->memory_peak_bytes);
        else
            ew_buf_text(out, "unknown");
        ew_buf_char(out, '\n');
    }
    if (summary->has_npu) {
        put_time(out, "NPU time ", summary->npu_ns,
                 etwatch_metric_set_has(estimated, ETWATCH_M_npu_ns));
        ew_buf_char(out, '\n');
    }
    for (uint32_t i = 0; i < summary->count; i++) {
        if (summary->sums[i].has_energy)
            put_energy(out, &summary->sums[i], command);
        parts = parts || summary->sums[i].has_parts;
    }
    if (parts)
        ew_buf_text(out, "The energy of a command is what its CPU and GPU time cost above idle, in "
                         "proportion to that of all processes.\n");
}
